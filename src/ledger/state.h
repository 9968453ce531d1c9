/* What the ledger keeps: the fold of all books. Private to this folder. */
#ifndef ST_LEDGER_STATE_H
#define ST_LEDGER_STATE_H

#include "base/map.h"
#include "ledger/price.h"

/* Postings of one account and period with the same component, GPU type and level. */
typedef struct ledger_row {
    st_component what;
    int gpu; /* in ledger.gpus; 0 is "" */
    st_level level;
    int64_t quantity, amount, rate, factor_bp;
    int64_t owed; /* of the amount: terms of its time say that it is to be paid */
    int64_t entries, first_seq, last_seq;
} ledger_row;

/* One account in one period. */
typedef struct ledger_tally {
    ST_VEC(ledger_row) rows; /* in order */
    st_bill_use use;         /* its account is NULL */
} ledger_tally;

typedef struct ledger_floor {
    int gpu;
    int64_t gpu_m;
    int64_t until_ms; /* up to here it is posted */
} ledger_floor;

typedef ST_VEC(st_price_plan) ledger_plans;
typedef ST_VEC(st_terms) ledger_terms;

typedef struct ledger_account {
    char *name;
    int parent; /* -1: the cluster itself */
    int depth;
    int64_t seq;
    bool closed; /* its book has this period's close */
    int64_t carry[ST_PAY_COUNT];
    int64_t balance;
    ledger_plans plans; /* by from_ms */
    ledger_terms terms; /* by from_ms; what was replaced is gone */
    ST_VEC(ledger_floor) floors;
    ledger_tally now;
    /* Of it and all below it, in the open period. Derived. */
    int64_t posted, held;
    /* What its last entry gave back, and of which piece, if that was a correction. Derived: the credit for
     * lost work that such a correction changes is the next entry, in the same moment. */
    int64_t gave_back, gave_of, gave_seq;
} ledger_account;

typedef struct ledger_hold {
    int account;
    char *job;
    int64_t amount; /* at its admission */
    int64_t left;   /* not spent yet */
} ledger_hold;

typedef struct ledger_booking {
    int account, gpu;
    char *id;
    int64_t gpu_m, from_ms, to_ms, agreed_ms, keep_bp, short_m, until_ms;
    /* Of its last WINDOW entry, what is given up, and when: the next entry does so. */
    int64_t removed, removed_at;
    int64_t lent, paid; /* see lent.c */
} ledger_booking;

/* The entry that was applied last, if others may have a share of it: what is left of it. */
typedef struct ledger_lendable {
    int account; /* 0: none */
    int gpu;
    bool back; /* it gives something back */
    bool owed;
    int64_t share, paid;
} ledger_lendable;

/* Between the two moments there was another history, which is void. */
typedef struct ledger_void {
    int64_t from_ms, to_ms;
} ledger_void;

typedef struct ledger_past {
    st_period period;
    ST_VEC(ledger_tally) tallies; /* by account */
} ledger_past;

/* What somebody cost by day. */
#define ST_DAILY_MAX 65536
#define ST_DAILY_KEY (ST_NAME_MAX + 32)
typedef struct ledger_daily {
    int account;
    char *user; /* "": the account with all below it */
    int64_t cost[ST_DAILY_DAYS];
} ledger_daily;

struct st_ledger {
    ST_VEC(ledger_account *) accounts; /* 0 is the cluster; parents come first */
    st_map *ids;
    ST_VEC(char *) gpus;
    ST_VEC(st_price_book *) books; /* by from_ms */
    ST_VEC(ledger_hold) holds;     /* in no order; hold_ids: "account job" */
    st_map *hold_ids;
    ST_VEC(ledger_booking) bookings; /* in no order; booking_ids: "account id" */
    st_map *booking_ids;
    size_t nshort; /* of them, those that lack something. Derived. */
    ST_VEC(ledger_past *) past;
    st_period period; /* without a name: not set */
    int64_t fleet_seq, entries, at_ms;
    int64_t revenue[ST_PAY_COUNT];
    ST_VEC(ledger_daily) daily; /* in the order they came */
    st_map *daily_ids;          /* "account user" */
    int64_t daily_day;          /* the newest, since the epoch */
    ST_VEC(ledger_void) voids;  /* in the order of their entries */
    /* Accounts whose first entry or terms must come next; those before due_at have theirs. Derived. */
    ST_VEC(int) due;
    size_t due_at;
    ledger_lendable lendable; /* derived: what a transaction is about is together */
};

ledger_account *st_ledger_account(const st_ledger *l, const char *name);
int st_ledger_id(const st_ledger *l, const char *name); /* -1: none */
int st_ledger_gpu(const st_ledger *l, const char *gpu); /* -1: not seen yet */
int st_ledger_add_gpu(st_ledger *l, const char *gpu);
/* Whether `account` is `above` or below it. */
bool st_ledger_within(const st_ledger *l, int account, int above);
const st_price_plan *st_ledger_own_plan(const ledger_account *a, int64_t at_ms);
const st_price_plan *st_ledger_plan_of(const st_ledger *l, int account, int64_t at_ms);

/* daily.c */
void st_ledger_daily_post(st_ledger *l, int account, const st_entry *e);
bool st_ledger_daily_add(st_ledger *l, int account,
                         const char *user); /* false: there is no room, or it is there */
void st_ledger_daily_done(st_ledger *l);

/* terms.c */
const st_terms *st_ledger_terms_of(const ledger_account *a, int64_t at_ms); /* NULL: none */
/* The first moment from now on at which the account's terms are not those of the plan that applies. */
bool st_ledger_terms_differ(const st_ledger *l, int account, st_terms *ret);
int st_ledger_check_due(const st_ledger *l, const st_entry *e, st_err *err);
int st_ledger_apply_terms(st_ledger *l, const st_entry *e, int id, st_err *err);
/* Those at and below an account are looked at; then, after each entry, those that are right are done with. */
void st_ledger_add_due(st_ledger *l, int top);
void st_ledger_refresh_due(st_ledger *l);

/* bookings.c */
int st_ledger_check_window(const st_ledger *l, const st_entry *e, int id, st_err *err);
void st_ledger_window_posted(st_ledger *l, const st_entry *e, int id);
int st_ledger_apply_booking(st_ledger *l, const st_entry *e, int id, st_err *err);
ledger_booking *st_ledger_find_booking(const st_ledger *l, int account, const char *id);
/* Takes the id. */
void st_ledger_add_booking(st_ledger *l, const ledger_booking *b);
/* What bookings at and below an account cost in a stretch of time, as far as they are not posted; rounded up. */
int64_t st_ledger_bookings_cost(const st_ledger *l, int above, int64_t from_ms, int64_t to_ms);

/* lent.c */
void st_ledger_note_lendable(st_ledger *l, const st_entry *e, int id);
int st_ledger_apply_lent(st_ledger *l, const st_entry *e, st_err *err);
/* Of what others paid, as much as lies in the GPU time of a WINDOW entry; the rest waits for the next one. */
void st_ledger_lent_in(int64_t lent, int64_t paid, st_entry *window);

/* caps.c */
/* Rounded up; more than can be counted is ST_AMOUNT_MAX. */
int64_t st_ledger_cost_up(st_component what, st_i128 quantity, int64_t rate, int64_t factor_bp);
int64_t st_ledger_keep_at(const st_ledger *l, int account, int64_t at_ms);
ledger_hold *st_ledger_hold(const st_ledger *l, int account, const char *job);
void st_ledger_add_hold(st_ledger *l, int account, const char *job, int64_t amount, int64_t left);
void st_ledger_drop_hold(st_ledger *l, ledger_hold *h);
void st_ledger_move_held(st_ledger *l, int account, int64_t by);
/* How much of `net` may be charged to the account under its caps; all of it where there is none. */
int64_t st_ledger_chargeable(const st_ledger *l, int account, const ledger_hold *h, int64_t at_ms,
                             int64_t net);
/* Whether `more` fits under every cap above; ST_EQUOTA with the numbers, where the cap is of an account that
 * `reader` may know about (NULL: all). */
int st_ledger_fits(const st_ledger *l, int account, int64_t more, int64_t at_ms, const char *what,
                   const char *reader, st_err *err);
bool st_ledger_capped(const st_ledger *l, int account, int64_t at_ms);

/* tally.c */
void st_ledger_tally_post(st_ledger *l, ledger_tally *t, const st_entry *e, const st_line *line);
void st_ledger_tally_done(ledger_tally *t);
/* What an entry used; false, and nothing is added, where a sum would not fit. */
bool st_ledger_use_add(st_bill_use *to, const st_entry *e);
int st_ledger_row_order(const st_ledger *l, const ledger_row *a, const ledger_row *b);
/* Under which GPU type ("" none) and level a line is added up. */
void st_ledger_row_key(const st_entry *e, st_component what, const char **ret_gpu,
                       st_level *ret_level);

#define ST_FLOORS_MAX 64

/* Sums of money are kept so far from the ends that a few of them can be added without a thought. */
#define ST_SUM_MAX (INT64_MAX / 8)
static inline bool st_ledger_sum_fits(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) && sum <= ST_SUM_MAX && sum >= -ST_SUM_MAX;
}

#endif
