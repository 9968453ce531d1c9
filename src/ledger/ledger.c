/* The ledger's life, its names, what is in force when, and sums. */
#include "ledger/ledger.h"

#include <string.h>

#include "base/mem.h"
#include "ledger/state.h"

st_ledger *st_ledger_new(void)
{
    st_ledger *l = st_xcalloc(1, sizeof *l);
    l->ids = st_map_new();
    l->hold_ids = st_map_new();
    l->booking_ids = st_map_new();
    l->daily_ids = st_map_new();
    ledger_account *cluster = st_xcalloc(1, sizeof *cluster);
    cluster->name = st_xstrdup("");
    cluster->parent = -1;
    st_vec_push(&l->accounts, cluster);
    st_map_put(l->ids, "", 0);
    st_vec_push(&l->gpus, st_xstrdup(""));
    return l;
}

static void free_account(ledger_account *a)
{
    free(a->name);
    st_vec_free(&a->plans);
    st_vec_free(&a->terms);
    st_vec_free(&a->floors);
    st_ledger_tally_done(&a->now);
    free(a);
}

void st_ledger_free(st_ledger *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->accounts.n; i++)
        free_account(l->accounts.v[i]);
    st_vec_free(&l->accounts);
    st_map_free(l->ids);
    for (size_t i = 0; i < l->gpus.n; i++)
        free(l->gpus.v[i]);
    st_vec_free(&l->gpus);
    for (size_t i = 0; i < l->books.n; i++)
        free(l->books.v[i]);
    st_vec_free(&l->books);
    for (size_t i = 0; i < l->holds.n; i++)
        free(l->holds.v[i].job);
    st_vec_free(&l->holds);
    st_map_free(l->hold_ids);
    for (size_t i = 0; i < l->bookings.n; i++)
        free(l->bookings.v[i].id);
    st_vec_free(&l->bookings);
    st_map_free(l->booking_ids);
    st_ledger_daily_done(l);
    for (size_t i = 0; i < l->past.n; i++) {
        for (size_t k = 0; k < l->past.v[i]->tallies.n; k++)
            st_ledger_tally_done(&l->past.v[i]->tallies.v[k]);
        st_vec_free(&l->past.v[i]->tallies);
        free(l->past.v[i]);
    }
    st_vec_free(&l->past);
    st_vec_free(&l->voids);
    st_vec_free(&l->due);
    free(l);
}

/* ---- names ------------------------------------------------------------------------------------ */

int st_ledger_id(const st_ledger *l, const char *name)
{
    int64_t id;
    return name && st_map_get(l->ids, name, &id) ? (int)id : -1;
}

const char *st_ledger_parent(const st_ledger *l, const char *name)
{
    int id = st_ledger_id(l, name);
    int parent = id > 0 ? l->accounts.v[id]->parent : -1;

    return parent < 0 ? NULL : parent == 0 ? "" : l->accounts.v[parent]->name;
}

ledger_account *st_ledger_account(const st_ledger *l, const char *name)
{
    int id = st_ledger_id(l, name);
    return id < 0 ? NULL : l->accounts.v[id];
}

/* A fleet has at most a few types; the one asked for last is near. */
int st_ledger_gpu(const st_ledger *l, const char *gpu)
{
    for (size_t i = 0; i < l->gpus.n; i++)
        if (strcmp(l->gpus.v[i], gpu) == 0)
            return (int)i;
    return -1;
}

int st_ledger_add_gpu(st_ledger *l, const char *gpu)
{
    int id = st_ledger_gpu(l, gpu);
    if (id < 0) {
        id = (int)l->gpus.n;
        st_vec_push(&l->gpus, st_xstrdup(gpu));
    }
    return id;
}

bool st_ledger_within(const st_ledger *l, int account, int above)
{
    while (account >= 0 && account != above)
        account = l->accounts.v[account]->parent;
    return account >= 0;
}

int64_t st_ledger_seq(const st_ledger *l, const char *account)
{
    if (strcmp(account, ST_BOOK_FLEET) == 0)
        return l->fleet_seq;
    const ledger_account *a = st_ledger_account(l, account);
    return a ? a->seq : -1;
}

/* ---- what is in force ----------------------------------------------------------------------- */

const st_price_book *st_ledger_book(const st_ledger *l, int64_t at_ms)
{
    for (size_t i = l->books.n; i-- > 0;)
        if (l->books.v[i]->from_ms <= at_ms)
            return l->books.v[i];
    return NULL;
}

const st_price_plan *st_ledger_own_plan(const ledger_account *a, int64_t at_ms)
{
    for (size_t i = a->plans.n; i-- > 0;)
        if (a->plans.v[i].from_ms <= at_ms)
            return &a->plans.v[i];
    return NULL;
}

const st_price_plan *st_ledger_plan_of(const st_ledger *l, int account, int64_t at_ms)
{
    for (; account >= 0; account = l->accounts.v[account]->parent) {
        const st_price_plan *p = st_ledger_own_plan(l->accounts.v[account], at_ms);
        if (p)
            return p;
    }
    return NULL;
}

const st_price_plan *st_ledger_plan(const st_ledger *l, const char *account, int64_t at_ms)
{
    return st_ledger_plan_of(l, st_ledger_id(l, account), at_ms);
}

int64_t st_ledger_next_change(const st_ledger *l, int64_t now)
{
    int64_t next = ST_TIME_NEVER;
    for (size_t i = 0; i < l->books.n; i++)
        if (l->books.v[i]->from_ms > now)
            next = ST_MIN(next, l->books.v[i]->from_ms);
    for (size_t i = 0; i < l->accounts.n; i++) {
        const ledger_plans *plans = &l->accounts.v[i]->plans;
        for (size_t k = 0; k < plans->n; k++)
            if (plans->v[k].from_ms > now)
                next = ST_MIN(next, plans->v[k].from_ms);
    }
    return next;
}

void st_ledger_set_period(st_ledger *l, const st_period *period)
{
    ST_ASSERT(period->name[0] && memchr(period->name, '\0', sizeof period->name));
    ST_ASSERT(period->from_ms < period->to_ms);
    l->period = *period;
}

const st_period *st_ledger_period(const st_ledger *l)
{
    return &l->period;
}

/* ---- sums ------------------------------------------------------------------------------------- */

st_i128 st_ledger_sum(const st_ledger *l)
{
    st_i128 sum = 0;
    for (size_t i = 0; i < l->accounts.n; i++)
        sum += l->accounts.v[i]->balance;
    for (int c = 0; c < ST_PAY_COUNT; c++)
        sum += l->revenue[c];
    return sum;
}

int st_ledger_balance(const st_ledger *l, const char *account, int64_t *ret, st_err *err)
{
    const ledger_account *a = st_ledger_account(l, account);
    int c = account[0] == '#' ? st_component_parse(account + 1) : -1;
    if (!a && c < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", account);
    *ret = a ? a->balance : l->revenue[c];
    return 0;
}
