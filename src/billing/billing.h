/*
 * Metering and money inside the control loop, for the loop; money.h is what others see.
 *
 *   zone.c      months
 *   keys.c      who signs                 books.c     how far each book is, and writing entries
 *   entries.c   from records to entries   money.c     what a transaction means in money; cuts; closes
 *   admit.c     holds and floors          load.c      from the store back; the snapshot
 *   budget.c    warnings                  credits.c   credits by a person
 *   caps.c      what happens at caps      bookings.c  what bookings cost
 *   lent.c      who uses what they leave
 *
 * Invariants:
 *  1 An interval is metered, posted and in the log in one transaction, or not at all.
 *  2 All moments of cuts up to the core's time have been carried out.
 *  3 The meter is what the log gives when it is played; the ledger is what the books give when folded.
 */
#ifndef ST_BILLING_BILLING_H
#define ST_BILLING_BILLING_H

#include "base/arena.h"
#include "base/map.h"
#include "billing/money.h"
#include "billing/zone.h"
#include "meter/meter.h"
#include "state/state.h"

/* How far one book has come. */
typedef struct st_book_head {
    char *account;
    st_hash chain;
    st_peaks *peaks;
} st_book_head;

/* What the floors of an account cost is kept by caps: as last written into its book. */
typedef struct st_floor_said {
    int32_t account, type;
    int64_t gpu_m;
} st_floor_said;

/* A job is on GPUs of somebody else's booking: so many of its own. */
typedef struct st_lent {
    uint64_t job, booking;
    int32_t account; /* whose booking */
    int devs, of;
} st_lent;
typedef ST_VEC(st_lent) st_lent_rows;

/* What LENT entries say about one piece and booking, in all. */
typedef struct st_lent_said {
    const char *child, *booking;
    int64_t share, charged;
} st_lent_said;

/* How many thresholds of an account's plan somebody was told of, and of which plan and month. */
typedef struct st_warned {
    int64_t plan_ms, period_ms; /* when they began */
    int n;
    bool capped; /* and that the cap is reached */
} st_warned;

/* What a cap did to a job in this transaction. */
typedef enum st_cap_does { ST_CAP_STOPS, ST_CAP_WAITS, ST_CAP_LIFTED } st_cap_does;
typedef struct st_cap_said {
    uint64_t job;
    st_cap_does does;
    int64_t until_ms; /* STOPS: when its notice is over */
} st_cap_said;

typedef struct st_books {
    ST_VEC(st_book_head) heads;
    st_map *ids;                 /* of heads by account */
    int64_t n;                   /* the last entry of all */
    int64_t last_ms;             /* and its moment: nothing comes before it any more */
    int64_t signed_n, signed_ms; /* the last checkpoint */
} st_books;

/* The Ed25519 key (libsodium's 64 bytes) and the secret that salts are made of. */
typedef struct st_keys {
    unsigned char key[64], secret[32];
} st_keys;

struct st_billing {
    st_meter *meter;   /* NULL: metering has not begun */
    st_ledger *ledger; /* likewise */
    st_books books;
    st_zone *zone;           /* in which months end now */
    ST_VEC(st_zone *) zones; /* and all in which they ever did; it is one of them */
    st_keys keys;
    char cluster[64];
    ST_VEC(st_floor_said) floors;
    st_lent_rows lent;            /* see lent.c */
    int64_t next_ms;              /* the next cut; 0: to be found out */
    ST_VEC(st_warned) warned;     /* by account */
    int64_t watch_ms, watched_ms; /* when what runs is looked at next, and was last */
    int64_t caps_ms;              /* when caps are looked at next */
    int64_t anomaly_ms;           /* when it is looked for what is unusual */
    st_map *anomalies;            /* that were told, "day book user" */

    /* The comparison of every day, in a thread of its own. */
    st_reconcile *daily; /* while it runs */
    pthread_t daily_thread;
    int64_t daily_day, daily_n;  /* when it last began; what it found, -1: it could not be done */
    bool daily_stop, daily_over; /* atomic */

    int64_t shared_upto; /* see book_names.c */

    /* While a log is played: sees the records of each row. */
    void (*witness)(void *ctx, st_control *ctl);
    void *witness_ctx;
    int64_t snap_n; /* the last entry that the snapshot has */

    /* Scratch of one transaction. */
    st_records records;
    st_arena *arena;
    ST_VEC(int32_t) spent; /* accounts to whose books something was posted */
    ST_VEC(st_cap_said) caps_said;
};

/* ---- keys.c --------------------------------------------------------------------------------- */

/* Beside the store unless told otherwise. */
void st_keys_path(const st_store *store, const char *given, st_strbuf *out);
/* Reads the file; ST_ENOENT: there is none. */
int st_keys_read(const char *path, st_keys *ret, st_err *err);
/* Reads it or, the first time, makes it: 0600, whole or not at all. */
int st_keys_open(const char *path, st_keys *ret, st_err *err);

/* ---- lent.c --------------------------------------------------------------------------------- */

/* After a start: who is on whose bookings. */
void st_lent_begin(st_control *ctl);
/* Before the meter hears of a transaction: intervals end where that has changed. */
void st_lent_note(st_tx *tx);
/* Behind a USAGE entry of the job; and behind one that gives back something of a piece with so much share. */
int st_lent_post(st_tx *tx, const st_entry *usage, uint64_t job, st_err *err);
int st_lent_take_back(st_tx *tx, const st_entry *by, int64_t share, const st_lent_said *said,
                      size_t n, st_err *err);
/* After its records: what is so from now on. */
void st_lent_remember(st_tx *tx);

/* ---- books.c -------------------------------------------------------------------------------- */

void st_books_init(st_books *b);
void st_books_done(st_books *b);
st_book_head *st_books_head(st_books *b, const char *account); /* made if it is new */
/* The next entry of a book: hashes follow. */
void st_books_add(st_books *b, const char *account, int64_t at_ms, const char *data, size_t len,
                  st_hash *ret_chain);
/* All heads, as a checkpoint wants them; the caller frees *ret. */
size_t st_books_heads(const st_books *b, const st_keys *keys, st_head **ret);
void st_books_sign(const st_books *b, const st_keys *keys, const char *cluster, int64_t at_ms,
                   st_checkpoint *ret);
void st_books_save(const st_books *b, st_strbuf *out);
int st_books_load(const char *data, size_t len, st_books *ret, st_err *err);

/* ---- book_names.c --------------------------------------------------------------------------- */

/* The name of an account's book. */
const char *st_book_name(const st_control *ctl, int32_t id, char buf[ST_NAME_MAX + 1]);
/* The same by name; one that is gone is "NAME (SERIAL)". */
const char *st_book_of(const st_control *ctl, const char *account, char buf[ST_NAME_MAX + 1]);
/* Whose book it is; -1: nobody's. */
int32_t st_book_account(const st_control *ctl, const char *book);
/* An account by its name, one that is gone by "NAME (SERIAL)"; "" is the cluster, -1: there is none. */
int32_t st_account_known(const st_control *ctl, const char *name);
/* Whether a new account of this name can have a book. */
bool st_book_free(const st_control *ctl, const char *name);
/* Before a log is played, and for who writes once more behind it: up to where accounts of a name share a book. */
int st_books_shared(st_control *ctl, bool writes, st_err *err);

/* ---- fleet_marks.c -------------------------------------------------------------------------- */

/* Writes down where devices were up to now: a month ends here, and the next begins. */
int st_fleet_mark(st_tx *tx, st_err *err);

/* ---- entries.c ------------------------------------------------------------------------------ */

/* A record in the words of the book; names are the core's at this moment. `doc` is the job's document, NULL: not
 * known. Texts are in the arena or borrowed from the core. */
void st_entry_of(const st_control *ctl, const st_record *rec, const char *doc, st_arena *arena,
                 st_entry *ret);
/* From a job's document; NULL: none. */
typedef struct st_doc_words {
    const char *workload, *labels, *priority_class;
} st_doc_words;
void st_doc_names(const char *doc, st_arena *arena, st_doc_words *ret);

/* ---- money.c --------------------------------------------------------------------------------- */

/* Prices, applies and writes an entry; entries in one transaction follow each other. What the ledger refuses is
 * returned; a fault of the store is the transaction's as well. */
int st_money_post(st_tx *tx, st_entry *e, st_err *err);
/* When the next cut is due; ST_TIME_NEVER before metering has begun. */
int64_t st_money_next(const st_control *ctl);
/* The first entries: metering begins with this transaction, at its moment. */
bool st_money_begun(const st_control *ctl);
void st_money_begin(st_tx *tx);
/* All intervals end with this transaction, at its moment. */
void st_money_cut(st_tx *tx);
/* What the transaction's effects mean: after the pass, before the log is written. */
int st_money_follow(st_tx *tx, st_err *err);
/* A checkpoint, if a minute has gone by since the last and something was written; or at once. */
int st_money_sign(st_tx *tx, bool at_once, st_err *err);
/* Telemetry of one task, sums since its stay began. */
/* Since when its tasks have really run; the meter hears of it when something ends the interval. */
void st_money_started(st_live *live, int64_t started_ms);
void st_money_used(st_tx *tx, uint64_t job, int stay, int task, const st_sums *sums);
/* The meter's part of a row of the log. Records are added to billing->records. */
void st_money_meter(st_control *ctl, const st_effects *fx, st_notes *notes, int64_t now);

/* ---- admit.c ---------------------------------------------------------------------------------- */

/* Whether caps let the job in; *ret is what to hold, ST_UNSET: nothing. */
int st_money_admit(st_tx *tx, const st_job_spec *spec, int64_t *ret, st_err *err);
int st_money_hold(st_tx *tx, uint64_t job, const char *account, int64_t amount, st_err *err);
/* Whether caps let its limit change; *ret is what to hold instead of what it holds, ST_UNSET: as it is. */
int st_money_rehold(st_tx *tx, const st_job *job, const char *account, int64_t limit_ms,
                    const char *reader, int64_t *ret, st_err *err);
int st_money_hold_anew(st_tx *tx, uint64_t job, const char *account, int64_t amount, st_err *err);
/* Whether caps let floors rise. */
int st_money_admit_floor(st_tx *tx, const st_account_spec *spec, const char *reader, st_err *err);
/* An account is new: its book begins. */
int st_money_account(st_tx *tx, int32_t id, st_err *err);
/* Right after a plan or an account: what follows from plans, in the books of all it concerns. */
int st_money_terms(st_tx *tx, st_err *err);

/* ---- bookings.c ------------------------------------------------------------------------------- */

/* Whether caps let a booking become another; 0 where it has no price. st_money_may_book is in money.h. */
int st_money_may_rebook(st_tx *tx, const st_booking *b, const st_window *to, int tasks,
                        const char *reader, st_err *err);
/* Whether it may have another window of its own accord: nothing is due for that, and it does not cost more. */
bool st_money_moves_free(st_tx *tx, const st_booking *b, const st_window *to);
/* It is confirmed: its price is agreed. */
int st_money_booked(st_tx *tx, uint64_t id, st_err *err);
/* What happened to bookings: after the records of the meter, before a month closes. */
int st_money_follow_bookings(st_tx *tx, st_err *err);
/* Of an effect of a booking: those inside at its end are told to the meter. */
void st_money_note_beyond(st_tx *tx, const st_effect *fx);
/* A job comes into a booking, or to its devices in one. */
void st_money_note_within(st_tx *tx, const st_effect *fx, uint64_t booking);

/* What the job is and could cost; `limit_ms` from now on. Good as long as its texts. */
typedef struct st_job_cost {
    st_worst worst;
    const char *gpus[ST_TYPES_MAX];
    char book[ST_NAME_MAX + 1], reader[ST_NAME_MAX + 1], priority_class[ST_NAME_MAX + 1];
} st_job_cost;
/* Of a job that is there its class is in its document. */
void st_money_cost(st_tx *tx, const st_job *job, const char *account, const char *reader,
                   const char *priority_class, st_job_cost *ret);
void st_money_cost_live(st_tx *tx, const st_job *job, const char *account, const char *reader,
                        st_job_cost *ret);

/* What open intervals of a job would post now. */
typedef struct st_job_runs {
    uint64_t job;
    int64_t udollars;
} st_job_runs;
typedef ST_VEC(st_job_runs) st_jobs_running;

/* What open intervals would post now, by the core's number of an account, with all below it. */
typedef struct st_running {
    int64_t all, of_holds, of_floors, of_windows;
} st_running;
typedef ST_VEC(st_running) st_runnings;
void st_money_running(st_tx *tx, st_runnings *ret);
/* The same by job, in order of id, for those that run. */
void st_money_running_jobs(st_tx *tx, st_jobs_running *ret);

/* ---- caps.c ----------------------------------------------------------------------------------- */

/* Looks at caps, if it is time to: renews holds, bars jobs for which there is no room and lifts that where there is. In
 * the loop, before the pass. And when it wants to again. */
void st_caps_watch(st_tx *tx);
int64_t st_caps_next(const st_control *ctl);
/* After the commit: who watches is told. */
void st_caps_tell(st_tx *tx);

/* ---- budget.c --------------------------------------------------------------------------------- */

/* Something was posted to the account's book. */
void st_budget_spent(st_tx *tx, const char *account);
/* After the commit: tells listeners of thresholds that were passed by it. */
void st_budget_tell(st_tx *tx);
/* Looks at what runs, if it is time to: thresholds are told within ST_BUDGET_WATCH_MS of being passed. In the loop, behind a
 * commit. And when it wants to again. */
#define ST_BUDGET_WATCH_MS 5000
void st_budget_watch(st_tx *tx);
int64_t st_budget_next(const st_control *ctl);
/* After a load: what is passed already is not told. */
void st_budget_begin(st_control *ctl);
/* What somebody was told about the account under this plan, in this month. */
st_warned *st_budget_warned(st_control *ctl, int32_t account, const st_price_plan *plan);

/* ---- anomalies.c ------------------------------------------------------------------------------ */

/* In the loop, behind a commit; when it wants to again; and after a load. */
void st_anomalies_watch(st_tx *tx);
int64_t st_anomalies_next(const st_control *ctl);
int st_anomalies_begin(st_control *ctl, st_err *err);

/* ---- load.c ----------------------------------------------------------------------------- */

/* Zones and, for who writes, keys; once. */
int st_billing_open(st_control *ctl, bool writes, st_err *err);
void st_billing_free(st_control *ctl);
/* Before the core is loaded: forgets everything. */
void st_billing_reset(st_control *ctl);
/* A snapshot: core, meter and books in one. */
void st_billing_save(const st_control *ctl, st_strbuf *out);
/* Its parts; one from before there was money is all core. */
int st_billing_load(st_control *ctl, const char *data, size_t len, st_err *err);
/* Folds the entries behind the snapshot into the ledger. */
int st_billing_fold(st_control *ctl, st_err *err);
/* One entry more, also for those who fold elsewhere: sets the next period behind the last close. */
int st_billing_apply(const st_billing *b, st_ledger *l, const st_entry *e, st_err *err);
/* The zone in which months end now, by another's name for it. */
int st_billing_zone_as(st_control *copy, const st_control *ctl, st_err *err);
/* For those who are told entries: the ledger that a row of the log begins, if its notes say so. */
void st_billing_begin(st_control *copy, const st_notes *notes, int64_t now);
/* An empty ledger in the period in which the books begin; ST_ENOENT: there are none. */
int st_billing_first(const st_billing *b, st_store *store, st_ledger **ret, st_err *err);

/* ---- reconcile.c --------------------------------------------------------------------------------- */

/* Begins the day's comparison if there was none yet and it is quiet. */
void st_reconcile_daily(st_control *ctl, int64_t now, bool quiet);
/* Cleans up behind it, or ends it. */
void st_reconcile_end(st_control *ctl, bool wait);

#endif
