/*
 * Metering and money inside the loop: what may be asked and changed.
 *
 * Changes are commands (control/control.h). Questions are functions for use inside a command's `run` or
 * `ask`, in the loop; what takes long, a bill's file or a comparison of everything, is begun there and
 * finished outside, by any thread with a reader of the store. doc/dev/money.md has the whole story.
 *
 * Who may see or change what is the caller's to decide (st_directory_within); accounts that are not there
 * are ST_ENOENT.
 */
#ifndef ST_BILLING_MONEY_H
#define ST_BILLING_MONEY_H

#include "bill/file.h"
#include "ledger/ledger.h"
#include "meter/meter.h"
#include "proof/proof.h"
#include "state/command.h"

/* ---- changes -------------------------------------------------------------------------------- */

/* Publishes a price book: everybody's, so an owner's. From a moment in the past on is ST_EINVAL; from now on
 * means from the next millisecond on, so that intervals can end in between. */
typedef struct st_cmd_prices {
    st_cmd cmd;
    st_identity who;
    st_price_book book;
    bool now;    /* its from_ms was not said; filled in */
    int64_t seq; /* given: of the entry in the cluster's book */
} st_cmd_prices;

void st_cmd_prices_init(st_cmd_prices *cmd);

/* Sets the plan of an account from a moment on, as above. ST_EBUDGET: more than its cap is spent or on hold. */
typedef struct st_cmd_plan {
    st_cmd cmd;
    st_identity who;
    st_price_plan plan; /* its account is the account's name; "" everybody's */
    bool now;
    int64_t seq;     /* given: of the entry in the account's book; everybody's is in the fleet's */
    int64_t version; /* given */
} st_cmd_plan;

void st_cmd_plan_init(st_cmd_plan *cmd);

/* Gives an account money back, with a reason, or takes a credit back. ST_ESTATE: it is more than the account was charged and
 * nobody has confirmed that; or the credit was taken back before. */
typedef struct st_cmd_credit {
    st_cmd cmd;
    st_identity who;
    const char *account, *reason;
    int64_t amount_udollars; /* above 0; of a reversal it is given, below 0 */
    int64_t fixes;           /* the entry of its book this is about; 0: none */
    int64_t reverse;         /* the credit that is taken back; 0: one is given */
    bool confirmed;          /* however much it is */
    bool pending; /* given: a second owner must ask for the same, and nothing was posted */
    int64_t seq;  /* given */
} st_cmd_credit;

/* What nobody has joined by then is forgotten. */
#define ST_CREDIT_PENDING_MS (INT64_C(7) * 86400 * 1000)

void st_cmd_credit_init(st_cmd_credit *cmd);

/* ---- questions, in the loop ------------------------------------------------------------------- */

/* The ledger itself, to read: prices, plans, idle floors, the open period. */
const st_ledger *st_tx_ledger(st_tx *tx);
/* What a window would cost if it were confirmed now. */
void st_tx_window_price(st_tx *tx, const char *account, int32_t type, int64_t gpu_m,
                        const st_window *w, st_window_price *ret);
/* Whether caps let these windows be booked; ST_EBUDGET: the cap and the numbers, as far as `reader` may know them. */
int st_money_may_book(st_tx *tx, const st_booking_spec *spec, const st_window *windows, size_t n,
                      const char *reader, st_err *err);
/* What was agreed about a booking that is not over; false: nothing. Texts are the ledger's. */
bool st_tx_agreed(st_tx *tx, uint64_t id, st_agreed *ret);
/* What it costs, and what cancelling it now would; of one that was changed in this transaction, as it will be agreed. */
bool st_tx_agreed_price(st_tx *tx, uint64_t id, st_agreed_price *ret);

/* A bill as of now: of the open period (NULL) with the intervals that are still open, as if they ended now; of an
 * earlier one as it was closed. What is open is priced by itself, so it may end up a micro-dollar less or more. The
 * caller calls st_bill_done(). */
int st_tx_bill(st_tx *tx, const char *account, const char *period, st_bill *ret, st_err *err);
/* What the open intervals of an account and all below it would post if they ended now. Entries and their
 * texts are good until fn returns. */
typedef void (*st_open_fn)(void *ctx, const st_entry *e);
int st_tx_open_entries(st_tx *tx, const char *account, st_open_fn fn, void *ctx, st_err *err);
/* The same of the account alone. */
int st_tx_open_own(st_tx *tx, const char *account, st_open_fn fn, void *ctx, st_err *err);
/* What a job costs at most, by the dearest type and right it may get; ST_UNSET: it has no time limit. */
int64_t st_tx_cost_most(st_tx *tx, const st_job_spec *spec);
/* What a GPU-hour of a job would cost now, by type and by the right it has its devices with, less its plan's discount; and
 * what it would be charged as if it borrowed. A job without GPUs, or a type without a price, has none. */
typedef struct st_job_rates {
    st_basis borrows;
    uint32_t types; /* bit t set: type t has prices */
    int64_t udollars[ST_TYPES_MAX][ST_BASIS_COUNT];
} st_job_rates;
void st_tx_job_rates(st_tx *tx, const st_job_spec *spec, st_job_rates *ret);
/* Whether caps would let a job in; nothing is held. ST_EBUDGET: they would not. */
int st_tx_admit(st_tx *tx, const st_job_spec *spec, st_err *err);
int st_tx_budget(st_tx *tx, const char *account, st_budget_state *ret, st_err *err);
/* The same of all accounts at and below one that have a cap or a budget of their own. */
typedef void (*st_budget_fn)(void *ctx, const char *account, const st_budget_state *state);
int st_tx_budgets(st_tx *tx, const char *account, st_budget_fn fn, void *ctx, st_err *err);

/* Where the fleet's devices were since the meter began, by type, pool and cause (meter/meter.h), and of each type since the
 * last entry in the fleet's book. Names as they are now; "" where there is none any more. */
typedef struct st_fleet_part {
    char type[ST_NAME_MAX + 1], pool[ST_NAME_MAX + 1];
    int64_t at[ST_WHERE_COUNT];
} st_fleet_part;
typedef struct st_fleet_now {
    ST_VEC(st_fleet_part) parts;
    ST_VEC(st_fleet_part) open; /* [GRANTED], [IDLE], [FAILED]; all overhead is in [ENDED] */
} st_fleet_now;
void st_tx_fleet(st_tx *tx, st_fleet_now *ret);
/* The same parts at the beginning of a month, as they were written down then; none: there is no such moment. */
int st_fleet_mark_read(st_store *reader, int64_t at_ms, st_fleet_now *ret, st_err *err);

/* Days of an account, or of a user of it, that were told to be unusual in a span of time. */
typedef struct st_anomaly {
    const char *day, *account, *user; /* user "": the account with all below it */
    int64_t cost_udollars, usual_udollars;
} st_anomaly;
typedef void (*st_anomaly_fn)(void *ctx, const st_anomaly *a);
int st_anomalies_list(st_store *reader, int64_t from_ms, int64_t to_ms, st_anomaly_fn fn, void *ctx,
                      st_err *err);

/* The name of an account's book, which is the account's unless another had it before; and whose a book is, -1: nobody's. */
const char *st_tx_book(st_tx *tx, const char *account, char buf[ST_NAME_MAX + 1]);
int32_t st_tx_book_account(st_tx *tx, const char *book);

/* What a job's document stands for that may be priced by piece: frames, or milliseconds of video. */
int64_t st_doc_pieces(const char *doc, st_component by);

/* ---- a bill's file ------------------------------------------------------------------------------ */

/* Everything about the moment a file is made of: a checkpoint over it, and the heads of all books. */
typedef struct st_bill_ask st_bill_ask;

/* In the loop. The checkpoint is written with the transaction: use what is returned only in `done`. */
int st_tx_bill_ask(st_tx *tx, const char *account, const char *period, st_bill_ask **ret,
                   st_err *err);
/* What a file is made of, for those who keep books without a loop. */
typedef struct st_bill_source {
    const st_bill *bill;
    const char *currency, *zone;
    const st_checkpoint *point;
    const st_head *heads; /* of all books, as of the checkpoint */
    size_t nheads;
    const unsigned char *secret, *key; /* 32 and 64 bytes */
    char *const *own;                  /* the bill's account and all below it */
    size_t nown;
} st_bill_source;

/* Where the file goes: text is appended to `out`; after each line `flush`, unless it is NULL, may take all of it away. */
typedef struct st_bill_sink {
    st_strbuf *out;
    int (*flush)(void *ctx, st_err *err);
    void *ctx;
} st_bill_sink;

/* In any thread, with a reader. */
int st_bill_write(const st_bill_source *src, st_store *reader, const st_bill_sink *sink,
                  st_err *err);
int st_bill_ask_write(const st_bill_ask *ask, st_store *reader, const st_bill_sink *sink,
                      st_err *err);
const st_bill *st_bill_ask_bill(const st_bill_ask *ask);
void st_bill_ask_free(st_bill_ask *ask);
ST_DEFINE_FREEP(st_bill_ask, st_bill_ask_free)

/* The cluster's public key, with which files are verified; and how the money is called. From any thread. */
const unsigned char *st_control_key(const st_control *ctl);
/* Whose the log of checkpoints is, and the signature of its head. */
void st_control_sign_log(const st_control *ctl, st_log_head *head);
const char *st_control_cluster(const st_control *ctl);
const char *st_control_currency(const st_control *ctl);
const char *st_control_zone(const st_control *ctl);

/* ---- reconcile ------------------------------------------------------------------------------------ */

/* Compares meter, ledger, store and agents' counters. Begun in the loop, in a command's `publish` or `done`, so
 * that it sees what is committed and nothing else; finished outside. Each difference is one sentence with its cause. */
typedef struct st_reconcile st_reconcile;

/* NULL: the store is down, or metering has not begun. */
st_reconcile *st_reconcile_new(st_control *ctl);
/* Tells how many differences there are; an error means that it could not be done. What the books say of jobs is kept in
 * memory for as many jobs as about `at_once` entries have; books that are longer are read several times. */
#define ST_RECONCILE_ENTRIES 200000
int st_reconcile_run(const st_control *ctl, st_reconcile *rec, st_store *reader, int64_t at_once,
                     st_finding_fn fn, void *ctx, int64_t *ret_n, st_err *err);
void st_reconcile_free(st_reconcile *rec);
ST_DEFINE_FREEP(st_reconcile, st_reconcile_free)

#endif
