/*
 * Commands and questions about money (billing/money.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "ledger/text.h"

static int need_account(st_tx *tx, const char *account, int32_t *ret, st_err *err)
{
    int32_t id = st_account_known(tx->ctl, account);
    char q[ST_QUOTE_MAX];

    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, account));
    *ret = id;
    return 0;
}

/* One that is gone has a book, and no plan any more. */
static int need_there(st_tx *tx, const char *account, int32_t *ret, st_err *err)
{
    int r = need_account(tx, account, ret, err);

    return r == 0 && st_tree_account(st_core_tree(tx->ctl->core), *ret)->gone
               ? st_no_account(account, err)
               : r;
}

/* What comes into force does so at a moment that has not been yet, so that intervals can end there. */
static int need_future(st_tx *tx, const char *what, int64_t *from_ms, st_err *err)
{
    if (*from_ms < tx->now)
        return st_fail(err, ST_EINVAL,
                       "%s from a moment in the past on: what was used has its price already; "
                       "leave `from` out, or give a credit",
                       what);
    *from_ms = ST_MAX(*from_ms, tx->now + 1);
    return 0;
}

/* For whoever asks behind the answer. What is agreed has the prices of the millisecond before (ledger/bookings.c). */
static void put_in_force(st_tx *tx, int64_t from_ms)
{
    tx->in_force_ms = ST_MAX(tx->in_force_ms, from_ms + 1);
}

/* From now on: the next millisecond at which nothing of the kind begins yet, for two may be said within one. */
static int64_t prices_from(st_tx *tx)
{
    const st_price_book *b;
    int64_t at = tx->now + 1;

    while ((b = st_ledger_book(tx->ctl->billing->ledger, at)) && b->from_ms == at)
        at++;
    return at;
}

static int64_t plan_from(st_tx *tx, const char *book)
{
    const st_price_plan *p;
    int64_t at = tx->now + 1;

    while ((p = st_ledger_plan(tx->ctl->billing->ledger, book, at)) && p->from_ms == at)
        at++;
    return at;
}

/* ---- prices --------------------------------------------------------------------------------------- */

static int run_prices(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_prices *c = (st_cmd_prices *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_entry e = {.kind = ST_ENTRY_PRICES, .account = ""};
    int r;

    if (c->now)
        c->book.from_ms = prices_from(tx);
    r = need_future(tx, "prices", &c->book.from_ms, err);
    if (r < 0)
        return r;
    st_price_book_write(&c->book, &doc);
    e.doc = st_strbuf_str(&doc);
    r = st_money_post(tx, &e, err);
    c->seq = e.seq;
    if (r == 0 && c->now)
        put_in_force(tx, c->book.from_ms);
    return r < 0 ? r : st_tx_audit(tx, &c->who, "prices.publish", "", c->book.name, e.doc, err);
}

void st_cmd_prices_init(st_cmd_prices *cmd)
{
    cmd->cmd.run = run_prices;
}

/* ---- plans ---------------------------------------------------------------------------------------- */

/* A cap below what is spent or on hold can only begin with a month. */
static int check_cap(st_tx *tx, const st_price_plan *plan, st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    char spent[ST_MONEY_MAX], held[ST_MONEY_MAX];
    st_budget_state state;
    int r;

    if (plan->cap_udollars == ST_UNSET || plan->at_cap != ST_AT_CAP_REFUSE ||
        plan->from_ms >= st_ledger_period(l)->to_ms)
        return 0;
    r = st_ledger_budget(l, plan->account, tx->now, &state, err);
    if (r == 0 && state.spent + state.held > plan->cap_udollars)
        r = st_fail(
            err, ST_EBUDGET,
            "account %s has spent %s and has %s on hold in %s: a lower cap can begin with the "
            "next month, or now with `at_cap: stop`",
            plan->account, st_money(spent, state.spent), st_money(held, state.held),
            st_ledger_period(l)->name);
    return r;
}

static int run_plan(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_plan *c = (st_cmd_plan *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    ST_CLEANUP(st_freep) char *account = st_xstrdup(c->plan.account);
    st_entry e = {.kind = ST_ENTRY_PLAN, .account = account[0] ? c->plan.account : ST_BOOK_FLEET};
    char buf[ST_NAME_MAX + 1];
    int32_t id = 0;
    int r = need_there(tx, account, &id, err);

    if (r == 0) /* a plan is of a book */
        snprintf(c->plan.account, sizeof c->plan.account, "%s", st_book_name(tx->ctl, id, buf));
    if (r == 0 && c->now)
        c->plan.from_ms = plan_from(tx, c->plan.account);
    if (r == 0)
        r = need_future(tx, "a plan", &c->plan.from_ms, err);
    if (r == 0)
        r = check_cap(tx, &c->plan, err);
    if (r < 0)
        return r;
    st_price_plan_write(&c->plan, &doc);
    e.doc = st_strbuf_str(&doc);
    r = st_money_post(tx, &e, err);
    c->seq = e.seq;
    if (r == 0)
        r = st_money_terms(tx, err);
    if (r == 0)
        r = st_version_edit(tx, "plan", account, err);
    if (r == 0 && c->now)
        put_in_force(tx, c->plan.from_ms);
    c->version = st_tx_version(tx, "plan", account);
    return r < 0 ? r : st_tx_audit(tx, &c->who, "plan.set", account, account, e.doc, err);
}

void st_cmd_plan_init(st_cmd_plan *cmd)
{
    cmd->cmd.run = run_plan;
}

/* ---- questions --------------------------------------------------------------------------------------- */

const st_ledger *st_tx_ledger(st_tx *tx)
{
    return tx->ctl->billing->ledger;
}

typedef struct open_ctx {
    st_tx *tx;
    st_arena *arena; /* its own: several may ask at once */
    int32_t root;
    st_bill *bill; /* NULL: entries go to fn */
    st_open_fn fn;
    void *ctx;
} open_ctx;

static bool is_below(const st_tree *tree, int32_t account, int32_t root)
{
    while (account > root && account > ST_ROOT)
        account = st_tree_account(tree, account)->parent;
    return account == root;
}

/* What cannot be priced is not on the bill yet: it is a look ahead. */
static int add_open(void *ctx, const st_record *rec)
{
    open_ctx *o = ctx;
    st_control *ctl = o->tx->ctl;
    const st_live *live = rec->job ? st_control_known(ctl, rec->job) : NULL;
    st_entry e;
    st_err err;

    if (rec->kind == ST_REC_FLEET || rec->account <= ST_ROOT || rec->from_ms == rec->to_ms ||
        !is_below(st_core_tree(ctl->core), rec->account, o->root))
        return 0;
    st_arena_reset(o->arena);
    st_entry_of(ctl, rec, live ? st_live_doc(ctl, live) : NULL, o->arena, &e);
    e.at_ms = o->tx->now;
    if (st_ledger_price(ctl->billing->ledger, &e, &err) < 0)
        return 0;
    if (o->bill)
        st_bill_add(o->bill, &e, st_ledger_owed(ctl->billing->ledger, &e));
    else
        o->fn(o->ctx, &e);
    return 0;
}

/* Everything that would be posted if all intervals ended now: of the meter, and of bookings. */
static void each_open(open_ctx *o)
{
    st_control *ctl = o->tx->ctl;
    const st_ledger *l = ctl->billing->ledger;

    st_meter_open(ctl->billing->meter, o->tx->now, add_open, o);
    for (size_t i = 0; i < st_ledger_nbookings(l); i++) {
        st_agreed was;
        st_entry e;
        st_err err;

        st_ledger_booking_at(l, i, &was);
        int32_t account = st_book_account(ctl, was.account);
        if (account <= ST_ROOT || !is_below(st_core_tree(ctl->core), account, o->root) ||
            !st_ledger_window(l, &was, NULL, o->tx->now, &e) || st_ledger_price(l, &e, &err) < 0)
            continue;
        if (o->bill)
            st_bill_add(o->bill, &e, st_ledger_owed(l, &e));
        else
            o->fn(o->ctx, &e);
    }
}

int st_tx_bill(st_tx *tx, const char *account, const char *period, st_bill *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_billing *b = tx->ctl->billing;
    open_ctx o = {.tx = tx, .arena = arena, .bill = ret};
    char book[ST_NAME_MAX + 1];
    int r = need_account(tx, account, &o.root, err);

    if (r == 0)
        r = st_ledger_bill(b->ledger, st_book_name(tx->ctl, o.root, book), period, ret, err);
    if (r == 0 && !ret->closed)
        each_open(&o);
    return r;
}

int st_tx_open_entries(st_tx *tx, const char *account, st_open_fn fn, void *ctx, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    open_ctx o = {.tx = tx, .arena = arena, .fn = fn, .ctx = ctx};
    int r = need_account(tx, account, &o.root, err);

    if (r == 0)
        each_open(&o);
    return r;
}

typedef struct own_ctx {
    const char *book;
    st_open_fn fn;
    void *ctx;
} own_ctx;

static void if_own(void *ctx, const st_entry *e)
{
    const own_ctx *o = ctx;

    if (strcmp(e->account, o->book) == 0)
        o->fn(o->ctx, e);
}

int st_tx_open_own(st_tx *tx, const char *account, st_open_fn fn, void *ctx, st_err *err)
{
    char book[ST_NAME_MAX + 1];
    own_ctx o = {.book = st_book_of(tx->ctl, account, book), .fn = fn, .ctx = ctx};

    return st_tx_open_entries(tx, account, if_own, &o, err);
}

typedef struct running_ctx {
    st_tx *tx;
    st_runnings *list;
} running_ctx;

static void add_running(void *ctx, const st_entry *e)
{
    const running_ctx *r = ctx;
    const st_ledger *l = r->tx->ctl->billing->ledger;
    int32_t id = st_book_account(r->tx->ctl, e->account);
    int64_t net = 0, held;

    for (int i = 0; i < e->nlines; i++)
        net += e->lines[i].amount;
    if (id <= ST_ROOT || (size_t)id >= r->list->n)
        return;
    st_running *to = &r->list->v[id];
    to->all += net;
    held = e->job ? st_ledger_held(l, e->account, e->job) : ST_UNSET;
    if (held != ST_UNSET)
        to->of_holds += ST_MIN(net, held);
    if (e->kind == ST_ENTRY_RESERVE)
        to->of_floors += net;
    if (e->kind == ST_ENTRY_WINDOW)
        to->of_windows += net;
}

void st_money_running(st_tx *tx, st_runnings *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_tree *tree = st_core_tree(tx->ctl->core);
    running_ctx r = {tx, ret};
    open_ctx o = {.tx = tx, .arena = arena, .root = ST_ROOT, .fn = add_running, .ctx = &r};

    st_vec_clear(ret);
    for (size_t i = 0; i < tree->accounts.n; i++)
        st_vec_push(ret, (st_running){0});
    each_open(&o);
    for (size_t i = tree->accounts.n; i-- > ST_ROOT + 1;) { /* parents come first */
        st_running *up = &ret->v[tree->accounts.v[i]->parent];

        up->all += ret->v[i].all;
        up->of_holds += ret->v[i].of_holds;
        up->of_floors += ret->v[i].of_floors;
        up->of_windows += ret->v[i].of_windows;
    }
}

typedef struct jobs_ctx {
    st_tx *tx;
    st_arena *arena;
    st_jobs_running *list;
} jobs_ctx;

static int add_job(void *ctx, const st_record *rec)
{
    const jobs_ctx *j = ctx;
    const st_live *live = rec->job ? st_control_known(j->tx->ctl, rec->job) : NULL;
    st_job_runs runs = {.job = rec->job};
    st_entry e;
    st_err err;

    if (!live || rec->account <= ST_ROOT || rec->from_ms == rec->to_ms)
        return 0;
    st_arena_reset(j->arena);
    st_entry_of(j->tx->ctl, rec, st_live_doc(j->tx->ctl, live), j->arena, &e);
    e.at_ms = j->tx->now;
    if (st_ledger_price(j->tx->ctl->billing->ledger, &e, &err) < 0)
        return 0;
    /* In full: what a cap would pay is what the job runs for beyond it. */
    for (int i = 0; i < e.nlines; i++)
        runs.udollars += e.lines[i].what == ST_PAY_CAP ? 0 : e.lines[i].amount;
    st_vec_push(j->list, runs);
    return 0;
}

static int by_job(const void *a, const void *b)
{
    const st_job_runs *x = a, *y = b;

    return x->job != y->job ? (x->job < y->job ? -1 : 1) : 0;
}

void st_money_running_jobs(st_tx *tx, st_jobs_running *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    jobs_ctx ctx = {tx, arena, ret};
    size_t n = 0;

    st_vec_clear(ret);
    st_meter_open(tx->ctl->billing->meter, tx->now, add_job, &ctx);
    if (ret->n > 1)
        qsort(ret->v, ret->n, sizeof *ret->v, by_job);
    for (size_t i = 0; i < ret->n;
         i++) { /* a job has one open interval; if not, they are one here */
        if (n > 0 && ret->v[n - 1].job == ret->v[i].job)
            ret->v[n - 1].udollars += ret->v[i].udollars;
        else
            ret->v[n++] = ret->v[i];
    }
    ret->n = n;
}

static int budget_of(st_tx *tx, int32_t id, const st_runnings *running, st_budget_state *ret,
                     st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    char buf[ST_NAME_MAX + 1];
    const char *book = st_book_name(tx->ctl, id, buf);
    int r = st_ledger_budget(l, book, tx->now, ret, err);

    if (r == 0)
        st_budget_run(l, book, tx->now, running->v[id].all, running->v[id].of_holds,
                      running->v[id].of_floors, running->v[id].of_windows, ret);
    return r;
}

int st_tx_budget(st_tx *tx, const char *account, st_budget_state *ret, st_err *err)
{
    st_runnings running = {0};
    int32_t id;
    int r = need_account(tx, account, &id, err);

    if (r < 0)
        return r;
    st_money_running(tx, &running);
    r = budget_of(tx, id, &running, ret, err);
    st_vec_free(&running);
    return r;
}

int st_tx_budgets(st_tx *tx, const char *account, st_budget_fn fn, void *ctx, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    st_runnings running = {0};
    st_budget_state state;
    int32_t top;
    int r = need_account(tx, account, &top, err);

    if (r < 0)
        return r;
    st_money_running(tx, &running);
    for (size_t i = ST_ROOT + 1; r == 0 && i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];

        if (a->gone || !is_below(tree, (int32_t)i, top))
            continue;
        r = budget_of(tx, (int32_t)i, &running, &state, err);
        if (r == 0 && (state.cap != ST_UNSET || state.budget != ST_UNSET))
            fn(ctx, a->name, &state);
    }
    st_vec_free(&running);
    return r;
}

const char *st_tx_book(st_tx *tx, const char *account, char buf[ST_NAME_MAX + 1])
{
    return st_book_of(tx->ctl, account, buf);
}

int32_t st_tx_book_account(st_tx *tx, const char *book)
{
    return st_book_account(tx->ctl, book);
}

int st_tx_admit(st_tx *tx, const st_job_spec *spec, st_err *err)
{
    int64_t hold;

    return st_money_admit(tx, spec, &hold, err);
}

const unsigned char *st_control_key(const st_control *ctl)
{
    return ctl->billing->keys.key + 32; /* libsodium: the seed, then the public key */
}

void st_control_sign_log(const st_control *ctl, st_log_head *head)
{
    snprintf(head->cluster, sizeof head->cluster, "%s", ctl->billing->cluster);
    st_log_head_sign(head, ctl->billing->keys.key);
}

const char *st_control_cluster(const st_control *ctl)
{
    return ctl->billing->cluster;
}

const char *st_control_currency(const st_control *ctl)
{
    return ctl->options.billing.currency ? ctl->options.billing.currency : "USD";
}

const char *st_control_zone(const st_control *ctl)
{
    return st_zone_name(ctl->billing->zone);
}
