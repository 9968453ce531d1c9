/*
 * Counting what tenants have of stintd (state/allowance.h).
 *
 * Invariants: row 0 is the cluster; a row's parent has a lower number; used[] of a row is the sum of its own
 * charges and those of all rows below it. Rows are never given to others: one that was removed has no name, and
 * its place in the tree, so that what it still has is given back where it was charged.
 */
#include "state/allowance.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define CLUSTER ST_AL_CLUSTER

typedef struct row {
    char *name; /* NULL: it was removed */
    int32_t parent;
    int64_t set[ST_AL_COUNT];
    int64_t used[ST_AL_COUNT];
    int64_t milli; /* requests left, in thousandths */
    int64_t filled_ms;
} row;

struct st_allowance {
    pthread_mutex_t lock;
    st_allowance_limits organisation;
    ST_VEC(row) rows;
    st_map *ids;
};

const char *const st_allowed_keys[] = {
#define X(id, key, def, total, about) key,
    ST_ALLOWANCE_TABLE(X)
#undef X
        NULL,
};

const char *const st_allowed_about[] = {
#define X(id, key, def, total, about) about,
    ST_ALLOWANCE_TABLE(X)
#undef X
        NULL,
};

st_allowance_limits st_allowance_default(void)
{
    return (st_allowance_limits){{
#define X(id, key, def, total, about) def,
        ST_ALLOWANCE_TABLE(X)
#undef X
    }};
}

st_allowance_limits st_allowance_total(void)
{
    return (st_allowance_limits){{
#define X(id, key, def, total, about) total,
        ST_ALLOWANCE_TABLE(X)
#undef X
    }};
}

st_allowance_limits st_allowance_nothing(void)
{
    st_allowance_limits limits;

    for (int i = 0; i < ST_AL_COUNT; i++)
        limits.v[i] = ST_AL_NONE;
    return limits;
}

/* ---- accounts ------------------------------------------------------------------------------- */

static void add_row(st_allowance *al, const char *name, int32_t parent,
                    const st_allowance_limits *limits)
{
    row r = {.name = st_xstrdup(name), .parent = parent, .filled_ms = -1};

    memcpy(r.set, limits->v, sizeof r.set);
    st_map_put(al->ids, name, (int64_t)al->rows.n);
    st_vec_push(&al->rows, r);
}

st_allowance *st_allowance_new(const st_allowance_limits *organisation,
                               const st_allowance_limits *cluster)
{
    st_allowance *al = st_xcalloc(1, sizeof *al);

    ST_ASSERT(pthread_mutex_init(&al->lock, NULL) == 0);
    const st_allowance_limits total = cluster ? *cluster : st_allowance_total();

    al->organisation = organisation ? *organisation : st_allowance_default();
    al->ids = st_map_new();
    add_row(al, "", -1, &total);
    return al;
}

void st_allowance_free(st_allowance *al)
{
    if (!al)
        return;
    for (size_t i = 0; i < al->rows.n; i++)
        free(al->rows.v[i].name);
    st_vec_free(&al->rows);
    st_map_free(al->ids);
    pthread_mutex_destroy(&al->lock);
    free(al);
}

void st_allowance_defaults(st_allowance *al, const st_allowance_limits *organisation,
                           const st_allowance_limits *cluster)
{
    pthread_mutex_lock(&al->lock);
    al->organisation = *organisation;
    memcpy(al->rows.v[0].set, cluster->v, sizeof al->rows.v[0].set);
    pthread_mutex_unlock(&al->lock);
}

/* -1: there is no such account. */
static int32_t find(const st_allowance *al, const char *account)
{
    int64_t at;

    return st_map_get(al->ids, account, &at) ? (int32_t)at : -1;
}

void st_allowance_add(st_allowance *al, const char *account, const char *parent)
{
    const st_allowance_limits nothing = st_allowance_nothing();
    int32_t above;

    pthread_mutex_lock(&al->lock);
    above = find(al, parent);
    ST_ASSERT(above >= 0);
    if (find(al, account) < 0)
        add_row(al, account, above, &nothing);
    pthread_mutex_unlock(&al->lock);
}

void st_allowance_remove(st_allowance *al, const char *account)
{
    int32_t id;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    if (id > CLUSTER) {
        st_map_del(al->ids, account);
        free(ST_TAKE(al->rows.v[id].name));
    }
    pthread_mutex_unlock(&al->lock);
}

/* ---- limits --------------------------------------------------------------------------------- */

/* What counts at this one: its own, or of an organisation the configuration's. */
static int64_t limit_at(const st_allowance *al, int32_t id, int what)
{
    const row *r = &al->rows.v[id];

    if (r->set[what] != ST_AL_NONE || r->parent != CLUSTER)
        return r->set[what];
    return al->organisation.v[what];
}

static bool within(const st_allowance *al, int32_t id, int32_t above)
{
    while (id >= 0 && id != above)
        id = al->rows.v[id].parent;
    return id >= 0;
}

void st_allowance_set(st_allowance *al, const char *account, const st_allowance_limits *limits)
{
    int32_t id;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    if (id > CLUSTER)
        memcpy(al->rows.v[id].set, limits->v, sizeof limits->v);
    pthread_mutex_unlock(&al->lock);
}

bool st_allowance_get(st_allowance *al, const char *account, st_allowance_limits *ret)
{
    int32_t id;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    if (id >= 0)
        memcpy(ret->v, al->rows.v[id].set, sizeof ret->v);
    pthread_mutex_unlock(&al->lock);
    return id >= 0;
}

static int fits(const st_allowance *al, int32_t id, int what, int64_t asked, int32_t reader,
                st_err *err)
{
    for (int32_t at = al->rows.v[id].parent; at > CLUSTER; at = al->rows.v[at].parent) {
        int64_t limit = limit_at(al, at, what);

        if (limit == ST_AL_NONE || asked <= limit)
            continue;
        if (!within(al, at, reader))
            return st_fail(err, ST_ERANGE, "%s %" PRId64 " is more than an account above yours has",
                           st_allowed_keys[what], asked);
        return st_fail(err, ST_ERANGE,
                       "%s %" PRId64 " is more than account %s above it has (%" PRId64 ")",
                       st_allowed_keys[what], asked, al->rows.v[at].name, limit);
    }
    return 0;
}

int st_allowance_fits(st_allowance *al, const char *account, const st_allowance_limits *limits,
                      const char *reader, st_err *err)
{
    int32_t id, who;
    int r = 0;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    who = find(al, reader);
    for (int i = 0; id > CLUSTER && r == 0 && i < ST_AL_COUNT; i++)
        if (limits->v[i] != ST_AL_NONE)
            r = fits(al, id, i, limits->v[i], who, err);
    pthread_mutex_unlock(&al->lock);
    return r;
}

/* ---- charging ------------------------------------------------------------------------------- */

static const char *name_of(const st_allowance *al, int32_t at)
{
    const char *name = al->rows.v[at].name;

    return at == CLUSTER ? "the cluster" : name ? name : "that was removed";
}

static int refuse(const st_allowance *al, int32_t at, int what, int64_t used, int64_t limit,
                  int32_t reader, st_err *err)
{
    if (at == CLUSTER && reader != CLUSTER)
        return st_fail(err, ST_EALLOWANCE,
                       "the cluster has no more room for %s (quota %s); try again later",
                       st_allowed_about[what], st_allowed_keys[what]);
    if (reader < 0 || !within(al, at, reader))
        return st_fail(err, ST_EALLOWANCE,
                       "an account above yours has reached its quota %s (%s); ask an admin there",
                       st_allowed_keys[what], st_allowed_about[what]);
    return st_fail(err, ST_EALLOWANCE,
                   "account %s has reached its quota %s: %" PRId64 " of %" PRId64
                   " %s; wait for some to end, or ask an admin above it for more",
                   name_of(al, at), st_allowed_keys[what], used, limit, st_allowed_about[what]);
}

static void add(st_allowance *al, int32_t id, int what, int64_t n)
{
    for (; id >= 0; id = al->rows.v[id].parent)
        al->rows.v[id].used[what] = ST_MAX(al->rows.v[id].used[what] + n, 0);
}

static int charge(st_allowance *al, int32_t id, st_allowed what, int64_t n, const char *reader,
                  st_err *err)
{
    int r = 0;

    for (int32_t at = id; r == 0 && at >= 0; at = al->rows.v[at].parent) {
        int64_t limit = limit_at(al, at, what), used = al->rows.v[at].used[what];

        if (limit != ST_AL_NONE && (used >= limit || n > limit - used))
            r = refuse(al, at, what, used, limit, find(al, reader), err);
    }
    if (r == 0)
        add(al, id, what, n);
    return r;
}

int st_allowance_charge(st_allowance *al, const char *account, st_allowed what, int64_t n,
                        const char *reader, st_err *err)
{
    int r;

    pthread_mutex_lock(&al->lock);
    r = charge(al, find(al, account), what, n, reader, err);
    pthread_mutex_unlock(&al->lock);
    return r;
}

int32_t st_allowance_number(st_allowance *al, const char *account)
{
    int32_t number;

    pthread_mutex_lock(&al->lock);
    number = find(al, account);
    pthread_mutex_unlock(&al->lock);
    return number;
}

int st_allowance_charge_as(st_allowance *al, int32_t number, st_allowed what, int64_t n,
                           const char *reader, st_err *err)
{
    int r;

    pthread_mutex_lock(&al->lock);
    ST_ASSERT(number < (int32_t)al->rows.n);
    r = charge(al, number, what, n, reader, err);
    pthread_mutex_unlock(&al->lock);
    return r;
}

void st_allowance_put_as(st_allowance *al, int32_t number, st_allowed what, int64_t n)
{
    pthread_mutex_lock(&al->lock);
    ST_ASSERT(number < (int32_t)al->rows.n);
    add(al, number, what, n);
    pthread_mutex_unlock(&al->lock);
}

void st_allowance_put(st_allowance *al, const char *account, st_allowed what, int64_t n)
{
    pthread_mutex_lock(&al->lock);
    add(al, find(al, account), what, n);
    pthread_mutex_unlock(&al->lock);
}

void st_allowance_release(st_allowance *al, const char *account, st_allowed what, int64_t n)
{
    st_allowance_put(al, account, what, -n);
}

int64_t st_allowance_left_as(st_allowance *al, int32_t id, st_allowed what)
{
    int64_t left = INT64_MAX;

    pthread_mutex_lock(&al->lock);
    ST_ASSERT(id < (int32_t)al->rows.n);
    for (int32_t at = id; at > CLUSTER || (at == CLUSTER && id == CLUSTER);
         at = al->rows.v[at].parent) {
        int64_t limit = limit_at(al, at, what);

        if (limit != ST_AL_NONE)
            left = ST_MIN(left, limit - al->rows.v[at].used[what]);
    }
    pthread_mutex_unlock(&al->lock);
    return left;
}

void st_allowance_clear(st_allowance *al, st_allowed what)
{
    pthread_mutex_lock(&al->lock);
    for (size_t i = 0; i < al->rows.n; i++)
        al->rows.v[i].used[what] = 0;
    pthread_mutex_unlock(&al->lock);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A bucket has two seconds' worth. */
static void fill(row *r, int64_t rate, int64_t now_ms)
{
    int64_t full = rate * 2000;

    if (r->filled_ms < 0 || now_ms - r->filled_ms > 2000)
        r->milli = full;
    else if (now_ms > r->filled_ms)
        r->milli = ST_MIN(r->milli + (now_ms - r->filled_ms) * rate, full);
    r->filled_ms = ST_MAX(now_ms, r->filled_ms);
    r->used[ST_AL_REQUESTS] = (full - r->milli) / 2000; /* about, of the last two seconds */
}

int st_allowance_request(st_allowance *al, const char *account, int64_t now_ms,
                         int64_t *ret_wait_ms, st_err *err)
{
    int32_t id;
    int r = 0;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    for (int32_t at = id; r == 0 && at >= 0; at = al->rows.v[at].parent) {
        int64_t rate = limit_at(al, at, ST_AL_REQUESTS);

        if (rate == ST_AL_NONE)
            continue;
        fill(&al->rows.v[at], rate, now_ms);
        if (al->rows.v[at].milli >= 1000)
            continue;
        *ret_wait_ms = rate > 0 ? (1000 - al->rows.v[at].milli + rate - 1) / rate : 60000;
        r = refuse(al, at, ST_AL_REQUESTS, rate, rate, id, err);
    }
    for (int32_t at = id; r == 0 && at >= 0; at = al->rows.v[at].parent)
        if (limit_at(al, at, ST_AL_REQUESTS) != ST_AL_NONE)
            al->rows.v[at].milli -= 1000;
    pthread_mutex_unlock(&al->lock);
    return r;
}

/* ---- reading -------------------------------------------------------------------------------- */

bool st_allowance_read(st_allowance *al, const char *account, const char *reader,
                       st_allowance_row ret[ST_AL_COUNT])
{
    int32_t id, above;

    pthread_mutex_lock(&al->lock);
    id = find(al, account);
    above = find(al, reader);
    for (int i = 0; id >= 0 && i < ST_AL_COUNT; i++) {
        ret[i] = (st_allowance_row){
            .used = al->rows.v[id].used[i], .set = al->rows.v[id].set[i], .limit = ST_AL_NONE};
        for (int32_t at = id; at >= 0 && within(al, at, above); at = al->rows.v[at].parent) {
            int64_t limit = limit_at(al, at, i);

            if (limit != ST_AL_NONE && (ret[i].limit == ST_AL_NONE || limit < ret[i].limit))
                ret[i].limit = limit;
        }
    }
    pthread_mutex_unlock(&al->lock);
    return id >= 0;
}
