/* What accounts and users cost by day, for those who look for what is unusual (billing/anomalies.c).
 *
 * A fold of the postings like all of the ledger. An account's day has all below it; a user's is of one account. Credits by hand
 * are no spending. The last ST_DAILY_DAYS days are kept, counted from the newest that was posted to; who cost nothing in them is
 * forgotten. Days are UTC, because intervals end at midnight UTC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/state.h"

#define DAY_MS INT64_C(86400000)

static int64_t day_of(int64_t ms)
{
    return ms / DAY_MS - (ms % DAY_MS < 0);
}

static size_t slot(int64_t day)
{
    return (size_t)((day % ST_DAILY_DAYS + ST_DAILY_DAYS) % ST_DAILY_DAYS);
}

static const char *key_of(char buf[ST_DAILY_KEY], int account, const char *user)
{
    snprintf(buf, ST_DAILY_KEY, "%d %s", account, user);
    return buf;
}

static bool is_empty(const ledger_daily *d)
{
    for (int i = 0; i < ST_DAILY_DAYS; i++)
        if (d->cost[i] != 0)
            return false;
    return true;
}

void st_ledger_daily_done(st_ledger *l)
{
    for (size_t i = 0; i < l->daily.n; i++)
        free(l->daily.v[i].user);
    st_vec_free(&l->daily);
    st_map_free(l->daily_ids);
}

/* Another day has come: those that are too old go. */
static void turn_to(st_ledger *l, int64_t day)
{
    size_t n = 0;
    char key[ST_DAILY_KEY];

    int64_t from = ST_MAX(l->daily_day + 1, day - ST_DAILY_DAYS + 1);
    for (size_t i = 0; i < l->daily.n; i++) {
        ledger_daily *d = &l->daily.v[i];
        for (int64_t at = from; at <= day; at++)
            d->cost[slot(at)] = 0;
        if (is_empty(d)) {
            st_map_del(l->daily_ids, key_of(key, d->account, d->user));
            free(d->user);
        } else {
            l->daily.v[n++] = *d;
        }
    }
    l->daily.n = n;
    for (size_t i = 0; i < n; i++)
        st_map_put(l->daily_ids, key_of(key, l->daily.v[i].account, l->daily.v[i].user),
                   (int64_t)i);
    l->daily_day = day;
}

bool st_ledger_daily_add(st_ledger *l, int account, const char *user)
{
    char key[ST_DAILY_KEY];
    if (l->daily.n >= ST_DAILY_MAX || st_map_get(l->daily_ids, key_of(key, account, user), NULL))
        return false;
    st_map_put(l->daily_ids, key, (int64_t)l->daily.n);
    st_vec_push(&l->daily, ((ledger_daily){.account = account, .user = st_xstrdup(user)}));
    return true;
}

static void add(st_ledger *l, int account, const char *user, int64_t day, int64_t amount)
{
    char key[ST_DAILY_KEY];
    int64_t at, *to;
    if (!st_map_get(l->daily_ids, key_of(key, account, user), &at)) {
        if (!st_ledger_daily_add(l, account, user))
            return;
        at = (int64_t)l->daily.n - 1;
    }
    to = &l->daily.v[at].cost[slot(day)];
    if (st_ledger_sum_fits(*to, amount))
        *to += amount;
}

void st_ledger_daily_post(st_ledger *l, int account, const st_entry *e)
{
    int64_t day = day_of(e->kind == ST_ENTRY_PIECES ? e->at_ms - 1 : e->from_ms), amount = 0;

    for (int i = 0; i < e->nlines; i++)
        amount += e->lines[i].amount;
    if (e->kind == ST_ENTRY_CREDIT || amount == 0)
        return;
    if (l->daily.n == 0)
        l->daily_day = day;
    if (day > l->daily_day)
        turn_to(l, day);
    if (day <= l->daily_day - ST_DAILY_DAYS)
        return;
    if (e->user && e->user[0] && strlen(e->user) <= ST_NAME_MAX)
        add(l, account, e->user, day, amount);
    for (int a = account; a > 0; a = l->accounts.v[a]->parent)
        add(l, a, "", day, amount);
}

/* ---- asking --------------------------------------------------------------------------------- */

static int64_t cost_on(const st_ledger *l, const ledger_daily *d, int64_t day)
{
    return day > l->daily_day || day <= l->daily_day - ST_DAILY_DAYS ? 0 : d->cost[slot(day)];
}

static int by_cost(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void st_ledger_daily_costs(const st_ledger *l, int64_t now, int days, st_daily_fn fn, void *ctx)
{
    int64_t today = day_of(now);

    days = ST_MIN(ST_MAX(days, 1), ST_DAILY_DAYS - 1);
    for (size_t i = 0; i < l->daily.n; i++) {
        const ledger_daily *d = &l->daily.v[i];
        st_daily_cost ret = {.account = l->accounts.v[d->account]->name,
                             .user = d->user,
                             .today = cost_on(l, d, today)};
        int64_t costs[ST_DAILY_DAYS];
        for (int k = 1; k <= days; k++)
            if (cost_on(l, d, today - k) > 0)
                costs[ret.days++] = cost_on(l, d, today - k);
        qsort(costs, (size_t)ret.days, sizeof *costs, by_cost);
        if (ret.days > 0)
            ret.usual = costs[ret.days / 2] / 2 + costs[(ret.days - 1) / 2] / 2;
        fn(ctx, &ret);
    }
}
