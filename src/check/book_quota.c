/*
 * Limits on bookings, from outside: what is made in a step is within those of its account, of all above it and of the
 * pools it is in. A limit may be lowered below what is booked, so bookings from before are only counted; a step in which
 * limits change says nothing, nor does one in which a booking from before is told (it may have been mended, which pools
 * do not limit).
 */
#include <inttypes.h>

#include "base/macros.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static int64_t gpus_of(const st_booking *b)
{
    return (int64_t)b->tasks * b->gpus;
}

/* Windows of the account and those below it at one moment. */
static int64_t windows_at(const st_core *core, int32_t account, int64_t at)
{
    int64_t n = 0;
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        n += !b->over && b->from_ms <= at && at < b->to_ms &&
             st_tree_within(st_core_tree(core), b->account, account);
    }
    return n;
}

static int64_t most_windows(const st_core *core, int32_t account, const st_booking *b)
{
    int64_t most = windows_at(core, account, b->from_ms);
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        int64_t at = st_core_booking_at(core, i)->from_ms;
        if (at >= b->from_ms && at < b->to_ms)
            most = ST_MAX(most, windows_at(core, account, at));
    }
    return most;
}

/* In GPU-milliseconds. */
static int64_t ahead(const st_core *core, int32_t account)
{
    int64_t sum = 0;
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        int64_t from = ST_MAX(b->from_ms, st_core_now(core));
        if (!b->over && b->to_ms > from && st_tree_within(st_core_tree(core), b->account, account))
            sum += gpus_of(b) * (b->to_ms - from);
    }
    return sum;
}

static int check_account(const st_core *core, const st_booking *b, int32_t account, st_err *err)
{
    const st_account *a = st_core_tree(core)->accounts.v[account];
    const st_book_limits *l = &a->book_limits;
    if (l->length_ms >= 0 && b->to_ms - b->from_ms > l->length_ms)
        return BAD("booking: %" PRIu64 " is longer than account %s allows", b->id, a->name);
    if (l->lead_ms >= 0 && b->from_ms - st_core_now(core) > l->lead_ms)
        return BAD("booking: %" PRIu64 " begins further ahead than account %s allows", b->id,
                   a->name);
    if (l->hours_m >= 0 && ahead(core, account) > l->hours_m * 3600)
        return BAD("booking: with %" PRIu64 " account %s has %" PRId64
                   " GPU-ms booked ahead, it may have %" PRId64,
                   b->id, a->name, ahead(core, account), l->hours_m * 3600);
    if (l->concurrent >= 0 && most_windows(core, account, b) > l->concurrent)
        return BAD("booking: with %" PRIu64 " account %s has %" PRId64
                   " windows at one moment, it may have %" PRId64,
                   b->id, a->name, most_windows(core, account, b), l->concurrent);
    return 0;
}

/* GPUs of the type in the pool that are booked at one moment, with the time that others need to leave. */
static int64_t booked_in(const st_core *core, int32_t pool, int32_t type, int64_t at)
{
    const st_fleet *fleet = st_core_fleet(core);
    int64_t sum = 0;
    for (size_t i = 0; i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        for (int t = 0; b->type == type && b->close_ms <= at && at < b->clear_ms && t < b->tasks;
             t++)
            if (b->plan[t].node >= 0 && fleet->nodes.v[b->plan[t].node]->pool == pool)
                sum += b->gpus;
    }
    return sum;
}

static int check_pool(const st_core *core, const st_booking *b, int32_t pool, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    const st_pool_rules *rules = &fleet->pools.v[pool].rules;
    int64_t gpus = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->pool == pool && fleet->nodes.v[i]->type == b->type &&
            fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            gpus += fleet->nodes.v[i]->ndevs;
    if (rules->book_horizon_ms > 0 && b->from_ms - st_core_now(core) > rules->book_horizon_ms)
        return BAD("booking: %" PRIu64 " is in pool %d further ahead than that allows", b->id,
                   pool);
    for (size_t i = 0; rules->book_share_m > 0 && i < st_core_nbookings(core); i++) {
        int64_t at = ST_MAX(st_core_booking_at(core, i)->close_ms, b->close_ms);
        if (at < b->clear_ms &&
            booked_in(core, pool, b->type, at) * 1000 > gpus * rules->book_share_m)
            return BAD("booking: with %" PRIu64 " pool %d has %" PRId64 " of %" PRId64
                       " GPUs booked at %" PRId64,
                       b->id, pool, booked_in(core, pool, b->type, at), gpus, at);
    }
    return 0;
}

static int check_pools(const st_core *core, const st_booking *b, st_err *err)
{
    uint64_t seen = 0;
    int rc = 0;
    for (int t = 0; rc == 0 && t < b->tasks; t++) {
        int32_t pool =
            b->plan[t].node < 0 ? -1 : st_core_fleet(core)->nodes.v[b->plan[t].node]->pool;
        if (pool < 0 || seen >> pool & 1)
            continue;
        seen |= UINT64_C(1) << pool;
        rc = check_pool(core, b, pool, err);
    }
    return rc;
}

int st_watch_book_quota(const st_step *step, st_err *err)
{
    const st_core *core = step->core;
    bool limits = true, pools = true;
    int rc = 0;
    for (size_t i = 0; i < step->nevents; i++) {
        st_event_kind kind = step->events[i]->kind;
        limits &= kind != ST_EV_ACCOUNT && kind != ST_EV_ACCOUNT_REMOVE;
        pools &= kind != ST_EV_POOL_CHANGE && kind != ST_EV_NODE_STATE && kind != ST_EV_NODE;
    }
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        const st_booking *b = e->kind == ST_FX_BOOKING ? st_core_booking(core, e->other) : NULL;
        pools &= !b || b->made_ms == step->now;
    }
    for (size_t i = 0; rc == 0 && i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        if (b->made_ms != step->now)
            continue;
        for (int32_t a = b->account; rc == 0 && limits && a > ST_ROOT;
             a = st_core_tree(core)->accounts.v[a]->parent)
            rc = check_account(core, b, a, err);
        if (rc == 0 && pools)
            rc = check_pools(core, b, err);
    }
    return rc;
}
