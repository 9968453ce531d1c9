/* The ledger: from usage to money that adds up.
 *
 * Books are lists of entries that only grow. Everything a bill depends upon is an entry:
 * accounts, price books, plans and the terms that follow from them, usage with the postings it led to, reservations,
 * holds, credits, corrections, the close of a month. The ledger is what folding the book gives (st_ledger_apply), so
 * playing the books again gives every bill again, bit by bit; nothing else is remembered.
 *
 * An entry is one line of JSON with a fixed order of keys and integers only (st_entry_write): those bytes
 * are what is stored, hashed (proof/proof.h), downloaded and verified.
 *
 * Money is in micro-dollars. A posting (a line of an entry) moves `amount` from the customer's account to a
 * revenue account named after its component, "#burst", which is written beside the lines (`contra`); so the sum over all
 * accounts is 0 at any moment. Division leaves a
 * remainder, which is carried to the next posting of the same account and component and is
 * written into the line:
 *
 *     quantity x rate x factor + carry_in = amount x D + carry_out,  0 <= carry_out < D
 *
 * with D = 10000 (factors are in hundredths of a percent) x the component's units in one priced unit. 128-bit
 * intermediates.
 *
 * Invariants:
 *  1 Each account has a book of its own, entries with seq 1, 2, 3 ...; the cluster's ("") holds what is
 *    everybody's: prices, and the close of periods. They are applied in the order they were made, and a refused
 *    one changes nothing. A book names nobody above or beside its account: who is below whom stands in the book of the
 *    one above, and what a plan from above means for prices stands as terms in every book it is for. What the cluster
 *    itself has of these is in the fleet's book. A tenant who sees all of its own book learns nothing about others'.
 *  2 What is closed is closed: an entry about a time before the last close counts in the open period
 *    and names what it corrects.
 *  3 A usage entry lies within one price book and one period.
 *  4 In a period, of an account with a cap and all below it: postings + what is still held <= cap.
 *    What a job would cost beyond its hold is credited in the same entry (component `cap`). A cap that was
 *    announced and falls below holds is kept by postings alone.
 *    A credit for lost work is what was charged for that time in all components, less what caps paid of it, times
 *    the percentage of the price book: per job, credits are at most charges. What a correction gives back pays for
 *    the credit that it makes too high, whatever the cap leaves: together they charge nothing.
 *  5 The bill of an account is the sum of its own postings and its children's bills.
 *  6 Right after a plan, and after the first entry of a new account, come the terms that follow from it, in the same
 *    moment: the terms of an account are at any time those of the nearest plan at or above it. Prices depend on terms.
 *
 * Place in the law: base <- model <- ledger. Pure; hashing and verifying use libsodium, keys come in from outside. */
#ifndef ST_LEDGER_LEDGER_H
#define ST_LEDGER_LEDGER_H

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "model/fleet.h"
#include "model/record.h"
#include "model/tree.h"

#define ST_BP         10000                  /* a factor of 1 */
#define ST_RATE_MAX   INT64_C(1000000000000) /* a million dollars per priced unit */
#define ST_FACTOR_MAX INT64_C(11000000)      /* a level of 100, a premium of 10 */
#define ST_AMOUNT_MAX (INT64_MAX / 64)       /* of any posting, hold or cap */

/* ---- components --------------------------------------------------------------------------- */

/* What a posting is for. X(id, name, unit shown, quantity units in one priced unit, what) */
#define ST_COMPONENT_TABLE(X)                                                                 \
    X(ST_PAY_RESERVED, "reserved", "GPU-hour", 3600000000, "floor, whether used or not")      \
    X(ST_PAY_GUARANTEED, "guaranteed", "GPU-hour", 3600000000, "use inside the floor")        \
    X(ST_PAY_BURST, "burst", "GPU-hour", 3600000000, "borrowed")                              \
    X(ST_PAY_ON_DEMAND, "on_demand", "GPU-hour", 3600000000, "beyond what the plan agreed")   \
    X(ST_PAY_BOOKED, "booked", "GPU-hour", 3600000000, "on a booking")                        \
    X(ST_PAY_TOPOLOGY, "topology", "GPU-hour", 3600000000, "premium for a required topology") \
    X(ST_PAY_IDLE, "idle", "GPU-hour", 3600000000, "surcharge on what was held and not used") \
    X(ST_PAY_CPU, "cpu", "core-hour", 3600000000, "CPU")                                      \
    X(ST_PAY_RAM, "ram", "GiB-hour", 3686400000, "memory")                                    \
    X(ST_PAY_ENERGY, "energy", "kWh", 3600000000, "energy")                                   \
    X(ST_PAY_FRAMES, "frames", "frame", 1, "finished frames")                                 \
    X(ST_PAY_MINUTES, "minutes", "minute", 60000, "finished minutes of video")                \
    X(ST_PAY_LOST, "lost", "", 1, "credit: work lost to preemption")                          \
    X(ST_PAY_FAULT, "fault", "", 1, "credit: work lost to a hardware fault")                  \
    X(ST_PAY_CAP, "cap", "", 1, "credit: beyond a spend cap")                                 \
    X(ST_PAY_ADJUST, "adjust", "", 1, "by a person, with a reason")                           \
    X(ST_PAY_WINDOW, "window", "GPU-hour", 3600000000, "booking, whether used or not")        \
    X(ST_PAY_CANCEL, "cancel", "GPU-hour", 3600000000, "fee: booked time that was given up")  \
    X(ST_PAY_SHORT, "short", "", 1, "credit: booked and not delivered")                       \
    X(ST_PAY_LENT, "lent", "", 1, "credit: share of what others paid for booked GPUs")
typedef enum st_component {
#define X(id, name, unit, per, what) id,
    ST_COMPONENT_TABLE(X)
#undef X
        ST_PAY_COUNT
} st_component;

const char *st_component_name(st_component c);
const char *st_component_unit(st_component c);
int64_t st_component_per(st_component c);
int st_component_parse(const char *name);

/* ---- prices and plans ---------------------------------------------------------------------- */

/* Rates in micro-dollars per priced unit for one GPU type; a level's factor multiplies them. */
typedef struct st_rates {
    char gpu[ST_NAME_MAX + 1];  /* "*" is every type without a row of its own */
    int64_t rate[ST_PAY_COUNT]; /* [RESERVED] .. [BOOKED] and [WINDOW]; others unused */
    int64_t level_bp[ST_LEVEL_COUNT];
} st_rates;

typedef struct st_unit_price {
    char
        workload[ST_NAME_MAX + 1]; /* jobs of this workload type pay by piece and not by GPU time */
    st_component by;               /* FRAMES or MINUTES */
    int64_t rate;
} st_unit_price;

/* What jobs of a priority class pay, beside others. */
typedef struct st_class_price {
    char name[ST_NAME_MAX + 1];
    int64_t bp;
} st_class_price;

/* A table over lengths of time, in ascending order. */
#define ST_STEPS_MAX 8
typedef struct st_price_step {
    int64_t ms, bp;
} st_price_step;
typedef struct st_steps {
    st_price_step v[ST_STEPS_MAX];
    int n;
} st_steps;

/* What a booking costs beside the rate of its GPU type. A book that does not say so has no price for
 * bookings: nothing is agreed then, and nothing charged. */
typedef struct st_booking_prices {
    bool there;
    st_steps term;   /* off for a window at least so long */
    st_steps lead;   /* off for one agreed at least so long before it begins */
    st_steps cancel; /* due of what is given up less than so long before it begins, or later */
    int64_t lent_bp; /* of what others pay for what it leaves unused, the booker's */
} st_booking_prices;

#define ST_RATES_MAX        32
#define ST_UNIT_PRICES_MAX  16
#define ST_CLASS_PRICES_MAX 16

/* Good from from_ms until the next book's. */
typedef struct st_price_book {
    char name[ST_NAME_MAX + 1];
    int64_t from_ms;
    st_rates rates[ST_RATES_MAX];
    int nrates;
    int64_t cpu, ram, energy;       /* per core-hour, GiB-hour, kWh */
    int64_t topo_bp[ST_TOPO_COUNT]; /* premium on the GPU rate for a required level */
    int64_t idle_bp;                /* surcharge on held time that telemetry saw unused */
    int64_t lost_bp, fault_bp;      /* how much of lost work is credited */
    st_unit_price units[ST_UNIT_PRICES_MAX];
    int nunits;
    st_class_price classes[ST_CLASS_PRICES_MAX];
    int nclasses;
    st_booking_prices booking;
} st_price_book;

/* What a cap does when it is reached. X(id, name, what) */
#define ST_AT_CAP_TABLE(X)                                                                      \
    X(ST_AT_CAP_REFUSE, "refuse", "no new work; what was admitted has its whole limit on hold") \
    X(ST_AT_CAP_WARN, "warn", "an event; work goes on and is owed")                             \
    X(ST_AT_CAP_STOP, "stop", "work is held by the hour and stopped after a notice")
typedef enum st_at_cap {
#define X(id, name, what) id,
    ST_AT_CAP_TABLE(X)
#undef X
        ST_AT_CAP_COUNT
} st_at_cap;
const char *st_at_cap_name(st_at_cap at);

#define ST_CAP_GRACE_MS (INT64_C(10) * 60 * 1000)
#define ST_CAP_HOLD_MS  (INT64_C(60) * 60 * 1000)

/* Of an account and, where they have none of their own, all below it. */
typedef struct st_price_plan {
    char account[ST_NAME_MAX + 1];
    int64_t from_ms;
    bool chargeback;      /* false: showback, the same numbers with nothing owed */
    int64_t discount_bp;  /* off everything but credits and adjustments */
    int64_t burst_m;      /* burst beyond this is on demand (st_meter_agree); ST_UNSET: never */
    int64_t cap_udollars; /* per month; ST_UNSET: none */
    int64_t warn_bp[4];   /* thresholds of the cap, or of `budget` */
    int nwarn;
    int64_t budget_udollars; /* what is planned, for warnings only; ST_UNSET: none */
    st_at_cap at_cap;
    int64_t grace_ms; /* the notice of work that a cap stops */
    int64_t hold_ms; /* for how long a job without an end, or under `stop`, holds money at a time */
} st_price_plan;

/* What the plan that applies to an account means for its prices; all that its own book says about plans above. */
typedef struct st_terms {
    int64_t from_ms;
    bool chargeback;
    int64_t discount_bp;
} st_terms;

/* Documents, YAML or JSON, see doc/reference/prices.md. Amounts are dollars with up to six places, factors
 * percent with up to two. `name` is for messages. A book without `from` is good from `now`. */
int st_price_book_read(const char *name, const char *text, size_t len, int64_t now,
                       st_price_book *ret, st_err *err);
int st_price_plan_read(const char *name, const char *text, size_t len, int64_t now,
                       st_price_plan *ret, st_err *err);
/* Canonical JSON: integers, fixed order. st_..._read reads it back the same. */
void st_price_book_write(const st_price_book *book, st_strbuf *out);
void st_price_plan_write(const st_price_plan *plan, st_strbuf *out);

/* ---- entries ------------------------------------------------------------------------------- */

/* A book that no tenant sees; no account can have this name. */
#define ST_BOOK_FLEET "#fleet"

/* X(id, name) */
#define ST_ENTRY_TABLE(X)                                                                   \
    X(ST_ENTRY_ACCOUNT, "account") /* the first of an account's book */                     \
    X(ST_ENTRY_CHILD, "child")     /* there is an account below, from now on */             \
    X(ST_ENTRY_TERMS, "terms")     /* what the plan that applies means for prices */        \
    X(ST_ENTRY_PRICES, "prices")   /* a price book, in `doc` */                             \
    X(ST_ENTRY_PLAN, "plan")       /* a plan, in `doc` */                                   \
    X(ST_ENTRY_USAGE, "usage")     /* an interval of a stay, with its postings */           \
    X(ST_ENTRY_RESERVE, "reserve") /* an interval of a floor, with its postings */          \
    X(ST_ENTRY_FIX, "fix")         /* deltas to the entry `fixes`, with their postings */   \
    X(ST_ENTRY_LOST, "lost")       /* work of the entry `fixes` is gone: its credit */      \
    X(ST_ENTRY_PIECES, "pieces")   /* frames or minutes a job has finished */               \
    X(ST_ENTRY_CREDIT, "credit")   /* by a person, with a reason; may name an entry */      \
    X(ST_ENTRY_HOLD, "hold")       /* worst case of a job, at its admission */              \
    X(ST_ENTRY_RELEASE, "release") /* of that hold, when the job is over */                 \
    X(ST_ENTRY_FLOOR, "floor")     /* the floor from now on: caps keep what it will cost */ \
    X(ST_ENTRY_FLEET, "fleet")     /* where the devices of a type were */                   \
    X(ST_ENTRY_CLOSE,                                                                       \
      "close") /* a month is over: last in each book, the cluster's after all others */     \
    X(ST_ENTRY_RESTORED,                                                                    \
      "restored") /* the cluster's: what all books had from `from` to `to` is void */       \
    X(ST_ENTRY_BOOKING, "booking") /* a booking as it is agreed from now on */              \
    X(ST_ENTRY_WINDOW, "window")   /* an interval of a booking, with its postings */        \
    X(ST_ENTRY_LENT, "lent")       /* the fleet's: what was paid for GPUs of a booking */
typedef enum st_entry_kind {
#define X(id, name) id,
    ST_ENTRY_TABLE(X)
#undef X
        ST_ENTRY_COUNT
} st_entry_kind;

typedef struct st_line {
    st_component what;
    int64_t quantity;  /* units of the component's table row */
    int64_t rate;      /* micro-dollars per priced unit */
    int64_t factor_bp; /* level, premium, discount, multiplied and rounded half up */
    int64_t
        carry_in; /* a numerator below per x ST_BP, of the account's last line of this component */
    int64_t amount; /* micro-dollars; credits are negative */
    int64_t carry;  /* what is carried on */
} st_line;

#define ST_LINES_MAX 10

typedef struct st_entry_grant {
    const char *node;
    uint16_t devs;
    int mig_start;
    int n; /* so many tasks in a row have the same */
} st_entry_grant;

/* Texts live in the caller's arena or are borrowed. Those that do not apply are NULL. */
typedef struct st_entry {
    int64_t seq, at_ms;
    st_entry_kind kind;
    const char *account; /* whose book; "" is the cluster's, ST_BOOK_FLEET the fleet's */
    int64_t from_ms, to_ms;
    const char *child; /* CHILD: its name; TERMS have from_ms and: */
    int chargeback;    /* 0 or 1 */
    int64_t discount_bp;
    const char *doc;    /* PRICES, PLAN: canonical JSON */
    const char *period; /* CLOSE: "2026-10"; from_ms, to_ms are its ends */
    const char *zone;   /* CLOSE */

    const char *job, *user, *workload;
    const char *priority_class; /* of the job: the book may have a factor for it */
    const char *name;           /* of the job, for people */
    const char *labels; /* of the job: a JSON object of texts without blanks, keys in order */
    int stay, piece;
    const char *gpu; /* type's name; NULL: none; "*" any */
    st_level level;
    const char *profile;
    st_basis basis;
    st_topo topo;
    int tasks;
    st_cut cut;
    /* USAGE: seen, busy and energy may be ST_UNKNOWN. FIX: all are deltas, and none is unknown. */
    int64_t gpu_m, share, held, cpu, ram, seen, busy, energy_mj, lost;
    /* Of share, and of seen - busy, what lay inside floors though the stay borrows: it costs what guaranteed work does. */
    int64_t inside, inside_idle;
    int64_t pieces; /* PIECES: frames, or milliseconds of video */
    const st_entry_grant *grants;
    int ngrants;

    int64_t total, granted, idle, unhealthy, overhead; /* FLEET */

    const char *booking; /* BOOKING, WINDOW: which; USAGE: inside which it ran */
    int64_t agreed_ms;   /* the price book of the millisecond before this moment applies */
    int64_t keep_bp;     /* what discounts for length and lead time leave */
    int64_t short_m;     /* BOOKING: of gpu_m, what it does not get from now on */
    int64_t missing;     /* WINDOW: of share, what was not delivered */
    int64_t lent, paid;  /* WINDOW: of share, what others used, and what they paid for it */
    int64_t removed,
        fee_bp; /* WINDOW: booked time the next entry gives up, and what is due of it */

    int64_t amount; /* HOLD: held; CREDIT: granted, below 0 taken back; LOST: credited now */
    int64_t fixes;  /* seq of the entry it corrects; 0: none */
    int64_t
        capped; /* FIX: what caps had paid of the entry it corrects, with all corrections before */
    /* LOST: what the time was charged, less what caps had paid; what was credited for it before. LENT: what was paid. */
    int64_t charged, credited;
    const char *reason, *by;

    st_line lines[ST_LINES_MAX];
    int nlines;
    bool contra; /* names the account on the other side of each line; books of before do not */
} st_entry;

/* One line of JSON without a newline. Reading is strict: exactly what writing gives, byte for byte. */
void st_entry_write(const st_entry *e, st_strbuf *out);
int st_entry_read(const char *text, size_t len, st_arena *arena, st_entry *ret, st_err *err);
const char *st_entry_kind_name(st_entry_kind kind);

/* A record of the meter in the words of the book. Lines, seq and at_ms are still to come, and of a FIX the entry it
 * corrects. Texts are in the arena or borrowed from `names`. */
typedef struct st_record_names {
    const st_fleet *fleet;
    const st_tree *tree;
    const char *job, *workload; /* of GRANT and FIX; workload NULL: none */
    const char *priority_class; /* likewise */
    const char *name, *labels;  /* likewise */
} st_record_names;
void st_entry_of_record(const st_record *rec, const st_record_names *names, st_arena *arena,
                        st_entry *ret);

/* ---- the ledger ---------------------------------------------------------------------------- */

typedef struct st_ledger st_ledger;

st_ledger *st_ledger_new(void);
void st_ledger_free(st_ledger *l);
ST_DEFINE_FREEP(st_ledger, st_ledger_free)
void st_ledger_save(const st_ledger *l, st_strbuf *out);
int st_ledger_load(const char *data, size_t len, st_ledger **ret, st_err *err);
/* Saved before it was kept what is owed: it must be folded from the books again. */
bool st_ledger_is_former(const char *data, size_t len);

/* What somebody has cost today, as far as it is posted, and what a day of theirs usually costs: the median of those of the
 * last `days` days before today on which they cost anything, and how many these are. `user` is "" for an account with all below
 * it. */
#define ST_DAILY_DAYS 32
typedef struct st_daily_cost {
    const char *account, *user;
    int64_t today, usual;
    int days;
} st_daily_cost;
typedef void (*st_daily_fn)(void *ctx, const st_daily_cost *d);
void st_ledger_daily_costs(const st_ledger *l, int64_t now, int days, st_daily_fn fn, void *ctx);

/* Takes the next entry in. Checks everything about it that can be: order, accounts, period, arithmetic of every
 * line against prices, terms and carries. */
int st_ledger_apply(st_ledger *l, const st_entry *e, st_err *err);
/* Entries in the account's book; -1: there is no such account. */
int64_t st_ledger_seq(const st_ledger *l, const char *account);
/* The account above in the books, "" for the cluster; NULL: there is no such book. */
const char *st_ledger_parent(const st_ledger *l, const char *account);

/* The terms that must be the next entry, in the same moment as the one before: after a plan or an account, as long as
 * there are any. Without seq and at_ms; account is the ledger's. */
bool st_ledger_due(const st_ledger *l, st_entry *ret);

/* What the books say about one piece of a stay: its USAGE entry and all FIX and LOST entries that name it, added in
 * order. FIX entries want `capped` of it, LOST entries what st_ledger_lost fills in. */
typedef struct st_piece_sum {
    int64_t seq; /* of the USAGE entry; 0: there is none */
    int64_t from_ms, to_ms, share;
    int64_t by_share, by_time; /* charged for GPUs; for CPU, memory and energy */
    int64_t capped;            /* of that, paid by caps */
    bool is_lost;              /* its end, from lost_from_ms on, with so much share */
    int64_t lost_from_ms, lost;
    st_cut cut;
    int64_t credited;
} st_piece_sum;
void st_piece_add(st_piece_sum *s, const st_entry *e);
/* Makes fixes, charged, credited and amount of a LOST entry; and with the price book of its time, without a ledger. */
void st_piece_lost(const st_price_book *book, const st_piece_sum *s, st_entry *lost);
void st_ledger_lost(const st_ledger *l, const st_piece_sum *s, st_entry *lost);
/* After a FIX of a piece that is lost (it is in the sum): the LOST entry that must follow, if any. Its texts are the
 * fix's. */
bool st_ledger_lost_again(const st_ledger *l, const st_piece_sum *s, const st_entry *fix,
                          st_entry *ret);

/* Fills in lines (and seq) of a USAGE, RESERVE, FIX, LOST, PIECES or CREDIT entry from what is in force at its time. Changes
 * nothing; apply it next. The postings of entries that are made before others are applied would carry wrongly. */
int st_ledger_price(const st_ledger *l, st_entry *e, st_err *err);

/* For verifiers, who have entries, prices and terms but no ledger: the arithmetic of one line, and the lines
 * that usage, prices, terms (either may be NULL) and carries (one for each component) lead to. What the ledger
 * adds to these is only a line `cap`. */
bool st_line_valid(const st_line *line);
int st_price_entry(st_entry *e, const st_price_book *book, const st_terms *terms,
                   const int64_t *carry, st_err *err);

/* When something changes by itself after `now`: the next book or plan comes into force. ST_TIME_NEVER. */
int64_t st_ledger_next_change(const st_ledger *l, int64_t now);
const st_price_book *st_ledger_book(const st_ledger *l, int64_t at_ms); /* NULL: none yet */
/* The nearest plan at or above the account. */
const st_price_plan *st_ledger_plan(const st_ledger *l, const char *account, int64_t at_ms);
/* What its book says follows from that; NULL: it says nothing, so there is no discount and nothing is owed. */
const st_terms *st_ledger_terms(const st_ledger *l, const char *account, int64_t at_ms);

/* All of them, by their beginnings; the ledger's own. */
size_t st_ledger_terms_list(const st_ledger *l, const char *account, const st_terms **ret);

/* ---- bookings -------------------------------------------------------------------------------- */

/* A booking that has a price, as it was agreed last. Texts are the ledger's. */
typedef struct st_agreed {
    const char *account, *booking, *gpu;
    int64_t gpu_m, from_ms, to_ms;
    int64_t agreed_ms, keep_bp;
    int64_t short_m;
    int64_t until_ms;   /* up to here it is posted */
    int64_t lent, paid; /* what others used of it and paid, that no window has taken over */
} st_agreed;
size_t st_ledger_nbookings(const st_ledger *l);
size_t st_ledger_nshort(const st_ledger *l); /* of them, those that do not get all they booked */
void st_ledger_booking_at(const st_ledger *l, size_t i, st_agreed *ret);
/* False: nothing was agreed about it, or its window is posted. */
bool st_ledger_booking(const st_ledger *l, const char *account, const char *booking,
                       st_agreed *ret);

/* What a window would cost if it were agreed now. */
typedef struct st_window_price {
    bool priced;                       /* false: the book has no price for bookings */
    int64_t rate;                      /* list, per GPU-hour */
    int64_t term_bp, lead_bp, plan_bp; /* off */
    int64_t keep_bp;                   /* what term and lead leave */
    int64_t amount;                    /* rounded up to a micro-dollar */
} st_window_price;
void st_ledger_window_price(const st_ledger *l, const char *account, const char *gpu, int64_t gpu_m,
                            int64_t from_ms, int64_t to_ms, int64_t at_ms, st_window_price *ret);
/* What an agreement means in money at a moment, before caps. */
typedef struct st_agreed_price {
    int64_t rate;    /* list, per GPU-hour */
    int64_t keep_bp; /* what the discounts that were agreed leave */
    int64_t plan_bp; /* off besides, by the plan of that moment */
    int64_t amount;  /* for all of its window; rounded up to a micro-dollar */
    int64_t fee;     /* for giving up at that moment what lies ahead */
} st_agreed_price;
void st_ledger_agreed_price(const st_ledger *l, const st_agreed *a, int64_t at_ms,
                            st_agreed_price *ret);
/* Makes agreed and keep of a BOOKING entry, whose account, booking, gpu, gpu_m, from, to and at are there: a new one has
 * those of now. One that is changed keeps its price, unless that of now (or, if it adds nothing, that of its new length)
 * is dearer: no change makes an hour cheaper. */
void st_ledger_agree(const st_ledger *l, st_entry *e);
/* The WINDOW entry up to `at_ms` of a booking; with what `next`, a BOOKING entry of the same moment, gives up. False:
 * there is nothing to post. */
bool st_ledger_window(const st_ledger *l, const st_agreed *was, const st_entry *next, int64_t at_ms,
                      st_entry *ret);

/* What an entry of a borrower charges for GPUs, less what a cap gave back. A correction or a credit is below 0. */
int64_t st_entry_paid(const st_entry *e);
/* Whether a share of what the entry charges is the booker's: not if only the booker's bill is to be paid. */
bool st_ledger_may_share(const st_ledger *l, const st_entry *e, const char *booker);

/* ---- caps ---------------------------------------------------------------------------------- */

/* What a job could cost at most, with the dearest of the types it may get and by the dearest right it may have. */
typedef struct st_worst {
    const char *account;
    const char *const *gpus; /* types it may get */
    int ngpus;
    st_level level;
    st_topo topo;
    int64_t gpu_m, cpu_m, ram_mib; /* of the gang */
    int64_t limit_ms;              /* ST_TIME_NEVER: none */
    int64_t at_ms;
    const char *priority_class; /* NULL: none */
    const char *workload; /* NULL: none. One that is priced by piece costs at most this many: */
    int64_t pieces;       /* frames, or milliseconds of video; 0: not known, time counts */
    const char *reader; /* the account of whoever reads a refusal: caps above it have no name and no
                             numbers; NULL: may know everything */
} st_worst;

/* What the caps at and above an account mean for one of its jobs. Caps that only warn are none. */
typedef struct st_cap_terms {
    bool capped;
    bool rolls; /* its hold is for a while and is renewed; else for its whole limit */
    int64_t hold_ms, grace_ms; /* of the nearest cap; the longest of all */
} st_cap_terms;
st_cap_terms st_ledger_cap_terms(const st_ledger *l, const char *account, int64_t at_ms,
                                 int64_t limit_ms);
/* Whether what is posted and `running`, at and below the account, has reached its own cap; *ret_plan may be one that
 * only warns. */
bool st_ledger_cap_reached(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                           const st_price_plan **ret_plan, int64_t *ret_spent);
/* The most that w->limit_ms from now on can cost. */
int64_t st_ledger_worst(const st_ledger *l, const st_worst *w);
/* What a job must hold so that w->limit_ms from now on are paid for, beside the `running` that is not posted yet;
 * instead of what it holds. ST_EQUOTA: there is no room. */
int st_ledger_renew(const st_ledger *l, const st_worst *w, const char *job, int64_t running,
                    int64_t *ret_udollars, st_err *err);

/* 0 and no amount (ST_UNSET) where no account above has a cap. ST_EQUOTA: the cap and the numbers. */
int st_ledger_admit(const st_ledger *l, const st_worst *w, int64_t *ret_udollars, st_err *err);
/* What a job whose limit changes from w->limit_ms to `limit_ms` must hold from now on, instead of what it holds; ST_UNSET:
 * nothing changes. ST_EQUOTA: the cap has no room for the longer limit. */
int st_ledger_rehold(const st_ledger *l, const st_worst *w, const char *job, int64_t limit_ms,
                     int64_t *ret_udollars, st_err *err);
/* The same for a change of floors: what they cost until the end of the period must fit as well. gpu_m by type name. */
int st_ledger_admit_floor(const st_ledger *l, const char *account, const char *gpu, int64_t more_m,
                          int64_t at_ms, const char *reader, st_err *err);

/* What is left of a job's hold; ST_UNSET: it has none. */
int64_t st_ledger_held(const st_ledger *l, const char *account, const char *job);

typedef struct st_budget_state {
    int64_t cap, budget;           /* ST_UNSET */
    int64_t spent, held, reserved; /* in the open period: posted, on hold, floors still to come */
    int64_t booked;                /* windows of bookings still to come, in the open period */
    int64_t running; /* of `spent`, what open intervals would post now: the caller's to add */
    int64_t left;    /* of the cap */
    int warned;      /* thresholds that were passed */
} st_budget_state;
/* How many thresholds the account's own plan has that are passed by what is posted and `running`; 0 where it has
 * none. *ret_plan and *ret_spent are good for more than 0. */
int st_ledger_warned(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                     const st_price_plan **ret_plan, int64_t *ret_spent);
/* What runs counts as well: `running` in all, of it `of_holds` by jobs that hold it already, `of_floors` by floors,
 * `of_windows` by bookings. */
void st_budget_run(const st_ledger *l, const char *account, int64_t at_ms, int64_t running,
                   int64_t of_holds, int64_t of_floors, int64_t of_windows, st_budget_state *state);
int st_ledger_budget(const st_ledger *l, const char *account, int64_t at_ms, st_budget_state *ret,
                     st_err *err);

/* ---- periods and bills ---------------------------------------------------------------------- */

/* Months end where the zone says. The caller knows (a table of moments, edges[i] <= t < edges[i+1]); the ledger is told. */
typedef struct st_period {
    char name[8]; /* 2026-10 */
    int64_t from_ms, to_ms;
} st_period;
/* The open period: what comes between the last CLOSE and the moment given here. Set before the first entry
 * and after each CLOSE. */
void st_ledger_set_period(st_ledger *l, const st_period *period);
const st_period *st_ledger_period(const st_ledger *l);

/* Whether windows of the account fit under every cap above, with all that is booked already, in one month: the open
 * one or a later one. `more` is what they cost in it. */
int st_ledger_admit_booking(const st_ledger *l, const char *account, const st_period *month,
                            int64_t more, int64_t at_ms, const char *reader, st_err *err);

/* One line of a bill: all postings of one account with the same component, GPU type and level. */
typedef struct st_bill_line {
    const char *account; /* whose postings */
    st_component what;
    const char *gpu; /* "" none */
    st_level level;
    int64_t quantity, amount;
    int64_t owed; /* of the amount, what is to be paid: chargeback was agreed for its time */
    int64_t rate, factor_bp; /* ST_UNSET when not the same throughout */
    int64_t entries, first_seq, last_seq;
} st_bill_line;

/* Utilisation beside cost: paid, held, used. */
typedef struct st_bill_use {
    const char *account;
    int64_t first_seq, last_seq; /* of its book, this period; 0: nothing yet */
    int64_t reserved;            /* milli-GPU x ms of floor that was paid */
    int64_t guaranteed;          /* of that, used by grants */
    int64_t burst, on_demand, booked;
    int64_t seen, busy; /* of all held, with telemetry; of that, busy */
    int64_t energy_mj, lost;
    int64_t jobs; /* that began */
} st_bill_use;

/* Owns its texts: it outlives the ledger. */
typedef struct st_bill {
    char account[ST_NAME_MAX + 1];
    st_period period;
    bool closed, chargeback;
    int64_t void_from_ms,
        void_to_ms;     /* of the last restore that may have made another one void; 0: none */
    int charged, shown; /* accounts in it that pay, and that are only told */
    int64_t total, owed;
    ST_VEC(st_bill_line) lines; /* by account, component, GPU, level */
    ST_VEC(st_bill_use) uses;   /* by account, all of them */
    st_arena *texts;
} st_bill;

/* Of an account and all below it; period "2026-10", NULL the open one. Only what is in the book: open intervals are the
 * caller's to add (st_ledger_price on a copy, st_bill_add). ST_ENOENT: no such account or period. */
int st_ledger_bill(const st_ledger *l, const char *account, const char *period, st_bill *ret,
                   st_err *err);
/* The moment whose terms an entry has; what has no interval has those of just before it was made. */
int64_t st_entry_moment(const st_entry *e);
/* Whether what the entry posts is to be paid: by the terms of its own time, whatever came later. */
bool st_ledger_owed(const st_ledger *l, const st_entry *e);
/* Adds what an entry would post, for a bill as of now. */
void st_bill_add(st_bill *bill, const st_entry *e, bool owed);
void st_bill_done(st_bill *bill);

/* Floors that were paid and not used: what use inside the floor at and below an account left of it, by cost. */
typedef struct st_idle_floor {
    const char *account;      /* of the ledger */
    int64_t reserved, unused; /* milli-GPU x ms */
    int64_t cost;             /* micro-dollars, at what the floor cost on average */
} st_idle_floor;
typedef ST_VEC(st_idle_floor) st_idle_floors;
int st_ledger_idle_floors(const st_ledger *l, const char *account, const char *period,
                          st_idle_floors *ret, st_err *err);
/* The same of windows of bookings, and use inside them; as far as they are posted. */
int st_ledger_idle_bookings(const st_ledger *l, const char *account, const char *period,
                            st_idle_floors *ret, st_err *err);

/* Σ of all accounts, revenue included: 0, or the ledger is wrong. And what any account has: less than 0 is
 * what it owes; "#burst" is the revenue account of that component. */
st_i128 st_ledger_sum(const st_ledger *l);
int st_ledger_balance(const st_ledger *l, const char *account, int64_t *ret_udollars, st_err *err);

#endif
