/* Terms: what the plans at and above an account mean for its prices, said in its own book.
 *
 * The plan that applies at a moment is the nearest, and of that account's own the latest that has begun; so terms are a
 * function of time with steps. A new plan changes it from its own beginning on, and maybe at later steps: one that a plan
 * further up had announced is none any more below the new one. Such a step is written again, and the later entry counts. */
#include <string.h>

#include "ledger/state.h"

const st_terms *st_ledger_terms_of(const ledger_account *a, int64_t at_ms)
{
    for (size_t i = a->terms.n; i-- > 0;)
        if (a->terms.v[i].from_ms <= at_ms)
            return &a->terms.v[i];
    return NULL;
}

const st_terms *st_ledger_terms(const st_ledger *l, const char *account, int64_t at_ms)
{
    const ledger_account *a = st_ledger_account(l, account);
    return a ? st_ledger_terms_of(a, at_ms) : NULL;
}

static int64_t next_plan(const st_ledger *l, int account, int64_t after)
{
    int64_t next = ST_TIME_NEVER;
    for (; account >= 0; account = l->accounts.v[account]->parent) {
        const ledger_plans *plans = &l->accounts.v[account]->plans;
        for (size_t i = 0; i < plans->n; i++)
            if (plans->v[i].from_ms > after)
                next = ST_MIN(next, plans->v[i].from_ms);
    }
    return next;
}

bool st_ledger_terms_differ(const st_ledger *l, int account, st_terms *ret)
{
    static const st_terms none = {0};
    for (int64_t at = l->at_ms; at != ST_TIME_NEVER; at = next_plan(l, account, at)) {
        const st_price_plan *plan = st_ledger_plan_of(l, account, at);
        const st_terms *said = st_ledger_terms_of(l->accounts.v[account], at);
        if (!said)
            said = &none;
        *ret = (st_terms){.from_ms = at,
                          .chargeback = plan && plan->chargeback,
                          .discount_bp = plan ? plan->discount_bp : 0};
        if (said->chargeback != ret->chargeback || said->discount_bp != ret->discount_bp)
            return true;
    }
    return false;
}

/* ---- what must come next ------------------------------------------------------------------------ */

void st_ledger_add_due(st_ledger *l, int top)
{
    for (int i = ST_MAX(top, 1); i < (int)l->accounts.n; i++) /* those below come behind */
        if (st_ledger_within(l, i, top))
            st_vec_push(&l->due, i);
}

void st_ledger_refresh_due(st_ledger *l)
{
    st_terms unused;
    for (; l->due_at < l->due.n; l->due_at++) {
        int id = l->due.v[l->due_at];
        if (l->accounts.v[id]->seq == 0 || st_ledger_terms_differ(l, id, &unused))
            return;
    }
    st_vec_clear(&l->due);
    l->due_at = 0;
}

bool st_ledger_due(const st_ledger *l, st_entry *ret)
{
    st_terms terms;
    if (l->due_at == l->due.n)
        return false;
    int id = l->due.v[l->due_at];
    if (l->accounts.v[id]->seq == 0 || !st_ledger_terms_differ(l, id, &terms))
        return false;
    *ret = (st_entry){.kind = ST_ENTRY_TERMS,
                      .account = l->accounts.v[id]->name,
                      .from_ms = terms.from_ms,
                      .chargeback = terms.chargeback,
                      .discount_bp = terms.discount_bp};
    return true;
}

int st_ledger_check_due(const st_ledger *l, const st_entry *e, st_err *err)
{
    if (l->due_at == l->due.n)
        return 0;
    const ledger_account *a = l->accounts.v[l->due.v[l->due_at]];
    st_entry_kind kind = a->seq == 0 ? ST_ENTRY_ACCOUNT : ST_ENTRY_TERMS;
    if (e->kind == kind && e->at_ms == l->at_ms && strcmp(e->account, a->name) == 0)
        return 0;
    return st_fail(err, ST_ESTATE,
                   "entry %lld of \"%s\" comes where %s of %s must, as of the same moment",
                   (long long)e->seq, e->account,
                   kind == ST_ENTRY_ACCOUNT ? "the first entry" : "the terms", a->name);
}

int st_ledger_apply_terms(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    ledger_terms *list = &l->accounts.v[id]->terms;
    st_entry must;
    size_t i = 0;
    if (!st_ledger_due(l, &must))
        return st_fail(err, ST_ESTATE, "entry %lld of %s: no plan has changed its terms",
                       (long long)e->seq, e->account);
    if (e->from_ms != must.from_ms || e->chargeback != must.chargeback ||
        e->discount_bp != must.discount_bp)
        return st_fail(err, ST_EINVAL,
                       "entry %lld of %s: its terms are not those of the plan that applies",
                       (long long)e->seq, e->account);
    while (i < list->n && list->v[i].from_ms < e->from_ms)
        i++;
    const st_terms terms = {e->from_ms, e->chargeback != 0, e->discount_bp};
    if (i < list->n && list->v[i].from_ms == e->from_ms)
        list->v[i] = terms;
    else
        st_vec_insert(list, i, terms);
    return 0;
}

size_t st_ledger_terms_list(const st_ledger *l, const char *account, const st_terms **ret)
{
    const ledger_account *a = st_ledger_account(l, account);
    *ret = a ? a->terms.v : NULL;
    return a ? a->terms.n : 0;
}
