/*
 * What happens at caps, every few seconds, for all jobs under one that does more than warn:
 *
 *   the job runs, and its hold is renewed by the hour   what is left of it gets short: it is held anew, for an hour and the grace
 *   there is no room for that, or its cap is reached    it is barred: it has the grace, then leaves its devices (core/bar.c)
 *   it came before the cap and holds nothing            as above: a hold for what is to come, or it is barred
 *   it is barred, and off its devices                   its hold is released
 *   it is barred, and there is room again               a hold, and it may run: a new month, a higher cap
 *
 * Everything follows from ledger, meter and core as they are: nothing is remembered here but who was told.
 *
 * Invariant: a job under such a cap runs on a hold that lasts for the grace at least, or it has its notice.
 */
#include <string.h>

#include "billing/billing.h"

#define WATCH_MS 5000
#define SOON_MS  250

typedef struct watch {
    st_tx *tx;
    st_runnings accounts;
    st_jobs_running jobs;
    size_t at;       /* in jobs: both lists go by id */
    int64_t hold_ms; /* the shortest of the caps that were met */
} watch;

/* ---- telling ----------------------------------------------------------------------------------- */

static void tell(st_control *ctl, const st_notice *n)
{
    if (ctl->options.listen)
        ctl->options.listen(ctl->options.ctx, n);
}

static void tell_job(st_tx *tx, const st_cap_said *said)
{
    static const char *const words[] = {
        [ST_CAP_STOPS] = "stops", [ST_CAP_WAITS] = "waits", [ST_CAP_LIFTED] = "lifted"};
    const st_effect fx = {.kind = ST_FX_NOTIFY, .job = said->job, .until_ms = said->until_ms};
    const st_live *live = st_control_known(tx->ctl, said->job);
    const st_job *job = st_core_job(tx->ctl->core, said->job);
    const st_notice_cap cap = {.does = words[said->does]};
    const st_notice n = {.seq = ++tx->ctl->notice_seq,
                         .at_ms = tx->now,
                         .job = said->job,
                         .account = live ? live->account : "",
                         .kind = "cap",
                         .state = live ? st_job_state_name(live->state) : NULL,
                         .name = job ? job->name : "",
                         .fx = &fx,
                         .cap = &cap};

    if (live)
        tell(tx->ctl, &n);
}

void st_caps_tell(st_tx *tx)
{
    st_billing *b = tx->ctl->billing;

    for (size_t i = 0; i < b->caps_said.n; i++)
        tell_job(tx, &b->caps_said.v[i]);
    st_vec_clear(&b->caps_said);
}

static void say(st_tx *tx, uint64_t job, st_cap_does does, int64_t until_ms)
{
    st_vec_push(&tx->ctl->billing->caps_said, ((st_cap_said){job, does, until_ms}));
}

/* ---- one job ------------------------------------------------------------------------------------ */

static int64_t running_of(watch *w, uint64_t job)
{
    while (w->at < w->jobs.n && w->jobs.v[w->at].job < job)
        w->at++;
    return w->at < w->jobs.n && w->jobs.v[w->at].job == job ? w->jobs.v[w->at].udollars : 0;
}

/* Whether the account's cap, or one above it, is reached by what is posted and runs. */
static bool is_reached(const watch *w, int32_t account)
{
    const st_tree *tree = st_core_tree(w->tx->ctl->core);
    const st_price_plan *plan;
    int64_t spent;

    for (; account >= ST_ROOT; account = tree->accounts.v[account]->parent) {
        char buf[ST_NAME_MAX + 1];
        const char *book = st_book_name(w->tx->ctl, account, buf);

        if (st_ledger_cap_reached(w->tx->ctl->billing->ledger, book, w->tx->now,
                                  w->accounts.v[account].all, &plan, &spent) &&
            plan->at_cap != ST_AT_CAP_WARN)
            return true;
    }
    return false;
}

static int bar(st_tx *tx, const st_job *job, bool on, int64_t notice_ms, st_err *err)
{
    st_event ev = {.kind = ST_EV_BAR};
    uint64_t id = job->id;
    bool runs = st_job_on_devices(job);
    int r;

    ev.u.bar.id = id;
    ev.u.bar.on = on;
    ev.u.bar.notice_ms = on ? notice_ms : 0;
    r = st_tx_apply(tx, &ev, err);
    if (r == 0)
        say(tx, id,
            !on    ? ST_CAP_LIFTED
            : runs ? ST_CAP_STOPS
                   : ST_CAP_WAITS,
            on && runs ? tx->now + notice_ms : 0);
    return r;
}

/* Holds so much instead of what the job holds. Only a fault of the store is an error. */
static int hold(st_tx *tx, const st_job *job, const char *account, bool had, int64_t amount,
                st_err *err)
{
    return had ? st_money_hold_anew(tx, job->id, account, amount, err)
               : st_money_hold(tx, job->id, account, amount, err);
}

/* What the rest of its limit is. */
static int64_t rest_ms(const st_job *job, int64_t now)
{
    if (job->limit_ms == ST_TIME_NEVER)
        return ST_TIME_NEVER;
    return ST_MAX(job->limit_ms - st_job_ran_ms(job, now), 0);
}

static int release(st_tx *tx, const char *book, const char *job, st_err *err)
{
    st_entry e = {.kind = ST_ENTRY_RELEASE, .account = book, .job = job};

    return st_money_post(tx, &e, err);
}

static int look_at(watch *w, const st_job *job, const st_live *live, st_err *err)
{
    st_tx *tx = w->tx;
    const st_ledger *l = tx->ctl->billing->ledger;
    int64_t running = running_of(w, job->id), rest = rest_ms(job, tx->now), want, left;
    st_job_cost cost;
    char name[ST_ID_TEXT];
    st_err why = {0};
    bool reached, fits = false;

    st_money_cost_live(tx, job, live->account, NULL, &cost);
    const st_cap_terms terms = st_ledger_cap_terms(l, cost.worst.account, tx->now, job->limit_ms);
    if (!terms.capped && !(job->barred & ST_BAR_ORDER))
        return 0;
    st_control_id_text(tx->ctl, job->id, name);
    left = st_ledger_held(l, cost.worst.account, name);
    if (!terms.capped) { /* the cap is gone */
        int r = bar(tx, job, false, 0, err);

        return r == -ST_ESTATE ? 0 : r;
    }
    w->hold_ms = ST_MIN(w->hold_ms, terms.hold_ms);
    reached = is_reached(w, job->account);
    if (!(job->barred & ST_BAR_ORDER) && !reached && left != ST_UNSET) {
        if (!terms.rolls)
            return 0; /* it was admitted with all it may cost */
        cost.worst.limit_ms = ST_MIN(rest, terms.grace_ms + terms.hold_ms / 2);
        if (left - running >= st_ledger_worst(l, &cost.worst))
            return 0;
    }
    cost.worst.limit_ms = terms.rolls ? ST_MIN(rest, terms.grace_ms + terms.hold_ms) : rest;
    if (!reached)
        fits = st_ledger_renew(l, &cost.worst, name, running, &want, &why) == 0;
    if (fits) {
        int r = (job->barred & ST_BAR_ORDER) ? bar(tx, job, false, 0, err) : 0;

        if (r == -ST_ESTATE)
            return 0; /* once it has left */
        return r < 0 ? r : hold(tx, job, live->account, left != ST_UNSET, want, err);
    }
    if (!(job->barred & ST_BAR_ORDER))
        return bar(tx, job, true, terms.grace_ms, err);
    return left != ST_UNSET && !st_job_on_devices(job) ? release(tx, cost.worst.account, name, err)
                                                       : 0;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

/* Once for a plan and month: those who watch hear that a cap is reached, whatever it does. */
static void look_at_account(watch *w, int32_t id, bool *any)
{
    st_control *ctl = w->tx->ctl;
    st_billing *b = ctl->billing;
    static const st_effect nothing = {.kind = ST_FX_FLOOR};
    const st_account *a = st_tree_account(st_core_tree(ctl->core), id);
    char buf[ST_NAME_MAX + 1];
    const char *book = st_book_name(ctl, id, buf);
    const st_price_plan *plan = st_ledger_plan(b->ledger, book, w->tx->now);
    int64_t spent;

    if (!plan || strcmp(plan->account, book) != 0 || plan->cap_udollars == ST_UNSET)
        return;
    *any = true;
    w->hold_ms = ST_MIN(w->hold_ms, plan->hold_ms);
    if (!st_ledger_cap_reached(b->ledger, book, w->tx->now, w->accounts.v[id].all, &plan, &spent))
        return;
    st_warned *said = st_budget_warned(ctl, id, plan);
    if (said->capped)
        return;
    said->capped = true;
    const st_notice_cap cap = {.does = "reached",
                               .at_cap = st_at_cap_name(plan->at_cap),
                               .cap_udollars = plan->cap_udollars,
                               .spent_udollars = spent};
    const st_notice n = {.seq = ++ctl->notice_seq,
                         .at_ms = w->tx->now,
                         .account = a->name,
                         .kind = "cap",
                         .name = a->name,
                         .fx = &nothing,
                         .cap = &cap};
    tell(ctl, &n);
}

static bool look_at_accounts(watch *w)
{
    const st_tree *tree = st_core_tree(w->tx->ctl->core);
    bool any = false;

    for (size_t i = 0; i < tree->accounts.n; i++)
        if (!tree->accounts.v[i]->gone)
            look_at_account(w, (int32_t)i, &any);
    return any;
}

static int look_at_jobs(watch *w, st_err *err)
{
    st_control *ctl = w->tx->ctl;
    int r = 0;

    for (size_t i = 0; r == 0 && i < st_core_njobs(ctl->core);) {
        const st_job *job = st_core_job_at(ctl->core, i);
        const st_live *live = st_control_live(ctl, job->id);
        uint64_t id = job->id;
        bool ends = job->stopping && job->after != ST_JOB_PENDING;

        if (live && !ends)
            r = look_at(w, job, live, err);
        /* One without a notice that ends when it must leave is gone from the list. */
        if (i < st_core_njobs(ctl->core) && st_core_job_at(ctl->core, i)->id == id)
            i++;
    }
    return r;
}

static bool any_barred(const st_control *ctl)
{
    for (size_t i = 0; i < st_core_njobs(ctl->core); i++)
        if (st_core_job_at(ctl->core, i)->barred & ST_BAR_ORDER)
            return true;
    return false;
}

void st_caps_watch(st_tx *tx)
{
    st_billing *b = tx->ctl->billing;
    watch w = {.tx = tx, .hold_ms = INT64_MAX};
    st_err err = {0};
    bool any;

    if (!b->meter || tx->now < b->caps_ms)
        return;
    st_money_running(tx, &w.accounts);
    any = look_at_accounts(&w);
    if (any || any_barred(tx->ctl)) {
        st_money_running_jobs(tx, &w.jobs);
        if (look_at_jobs(&w, &err) < 0 && !tx->broken)
            st_control_say(tx->ctl, "event=caps_failed reason=\"%s\"", err.msg);
    }
    any |= any_barred(tx->ctl);
    b->caps_ms = any ? tx->now + ST_MAX(ST_MIN(WATCH_MS, w.hold_ms / 8), SOON_MS) : ST_TIME_NEVER;
    st_vec_free(&w.accounts);
    st_vec_free(&w.jobs);
}

int64_t st_caps_next(const st_control *ctl)
{
    return ctl->billing->meter ? ctl->billing->caps_ms : ST_TIME_NEVER;
}
