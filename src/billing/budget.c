/*
 * Warnings: whoever watches an account is told when what it has spent, with what runs as of now, passes a threshold of its budget,
 * or of its cap where there is no budget. Once for each threshold of a plan in a month; what had been passed before a start is
 * not told again.
 */
#include <string.h>

#include "billing/billing.h"

#define SOON_MS 1000

/* What is known of one account; the list goes by the core's numbers of accounts. */
static st_warned *warned_of(st_billing *b, int32_t account)
{
    while (b->warned.n <= (size_t)account)
        st_vec_push(&b->warned, ((st_warned){0}));
    return &b->warned.v[account];
}

st_warned *st_budget_warned(st_control *ctl, int32_t account, const st_price_plan *plan)
{
    st_billing *b = ctl->billing;
    int64_t period_ms = st_ledger_period(b->ledger)->from_ms;
    st_warned *w = warned_of(b, account);

    if (w->plan_ms != plan->from_ms || w->period_ms != period_ms)
        *w = (st_warned){.plan_ms = plan->from_ms, .period_ms = period_ms};
    return w;
}

/* Thresholds that were passed and, in *from, those of them that nobody was told of yet begin. */
static int passed(st_control *ctl, int32_t account, int64_t now, int64_t running, int *from,
                  const st_price_plan **plan, int64_t *spent)
{
    st_billing *b = ctl->billing;
    char buf[ST_NAME_MAX + 1];
    const char *name = st_book_name(ctl, account, buf);
    int n = st_ledger_warned(b->ledger, name, now, running, plan, spent);
    st_warned *w;

    if (n <= 0)
        return 0;
    w = st_budget_warned(ctl, account, *plan);
    *from = w->n;
    w->n = ST_MAX(w->n, n);
    return n;
}

/* Who has the name of one that is gone hears nothing of it. */
static void warn_about(st_control *ctl, int32_t account, int64_t now, int64_t running)
{
    static const st_effect nothing = {.kind = ST_FX_FLOOR};
    const st_account *a = st_tree_account(st_core_tree(ctl->core), account);
    const char *name = a->name;
    const st_price_plan *plan;
    int64_t spent;
    int from = 0, n = a->gone ? 0 : passed(ctl, account, now, running, &from, &plan, &spent);

    for (int i = from; i < n; i++) {
        const bool of_budget = plan->budget_udollars != ST_UNSET;
        const st_notice_budget said = {.threshold_bp = plan->warn_bp[i],
                                       .of_udollars =
                                           of_budget ? plan->budget_udollars : plan->cap_udollars,
                                       .spent_udollars = spent,
                                       .of_cap = !of_budget};
        const st_notice notice = {.seq = ++ctl->notice_seq,
                                  .at_ms = now,
                                  .account = name,
                                  .kind = "budget",
                                  .name = name,
                                  .fx = &nothing,
                                  .budget = &said};

        if (ctl->options.listen)
            ctl->options.listen(ctl->options.ctx, &notice);
    }
}

void st_budget_spent(st_tx *tx, const char *account)
{
    int32_t id = account[0] ? st_book_account(tx->ctl, account) : -1;
    st_billing *b = tx->ctl->billing;

    if (id > ST_ROOT && (b->spent.n == 0 || b->spent.v[b->spent.n - 1] != id))
        st_vec_push(&b->spent, id);
}

void st_budget_tell(st_tx *tx)
{
    st_billing *b = tx->ctl->billing;

    /* Soon, and not at each of a thousand postings in a second. At a cut prices, plans or the month may be others. */
    if (tx->cut)
        b->watch_ms = b->caps_ms = 0;
    else if (b->spent.n > 0)
        b->watch_ms = ST_MIN(b->watch_ms, b->watched_ms + SOON_MS);
    st_vec_clear(&b->spent);
    /* Nothing ran when it was looked at last. */
    if (b->watch_ms == ST_TIME_NEVER && b->meter && st_meter_stays(b->meter) > 0)
        b->watch_ms = tx->now + ST_BUDGET_WATCH_MS;
}

void st_budget_watch(st_tx *tx)
{
    st_control *ctl = tx->ctl;
    const st_tree *tree = st_core_tree(ctl->core);
    st_billing *b = ctl->billing;
    st_runnings running = {0};

    if (!b->meter || tx->now < b->watch_ms)
        return;
    st_money_running(tx, &running);
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++)
        if (!tree->accounts.v[i]->gone)
            warn_about(ctl, (int32_t)i, tx->now, running.v[i].all);
    st_vec_free(&running);
    b->watched_ms = tx->now;
    b->watch_ms = st_meter_stays(b->meter) > 0 ? tx->now + ST_BUDGET_WATCH_MS : ST_TIME_NEVER;
}

int64_t st_budget_next(const st_control *ctl)
{
    return ctl->billing->meter ? ctl->billing->watch_ms : ST_TIME_NEVER;
}

void st_budget_begin(st_control *ctl)
{
    const st_tree *tree = st_core_tree(ctl->core);
    const st_price_plan *plan;
    int64_t spent;
    int from;

    st_vec_clear(&ctl->billing->warned);
    st_vec_clear(&ctl->billing->spent);
    st_vec_clear(&ctl->billing->caps_said);
    ctl->billing->caps_ms = 0;
    for (size_t i = ST_ROOT + 1; i < tree->accounts.n; i++)
        if (!tree->accounts.v[i]->gone) {
            char buf[ST_NAME_MAX + 1];
            const char *book = st_book_name(ctl, (int32_t)i, buf);

            passed(ctl, (int32_t)i, st_core_now(ctl->core), 0, &from, &plan, &spent);
            if (st_ledger_cap_reached(ctl->billing->ledger, book, st_core_now(ctl->core), 0, &plan,
                                      &spent))
                st_budget_warned(ctl, (int32_t)i, plan)->capped = true;
        }
}
