/* Used and unused floors by day (bill/focus_floors.h). */
#include "bill/focus_floors.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define DAY_MS  INT64_C(86400000)
#define KEY_MAX (2 * ST_NAME_MAX + 32)

/* A floor on one day. */
typedef struct pool {
    int64_t reserved, used;
    int64_t shown; /* of `reserved`, asked for with st_floors_used so far */
} pool;

typedef struct need {
    const char *account, *gpu;
    int64_t day, share;
    int depth;
    size_t order;
} need;

struct st_floors {
    st_arena *texts;
    st_map *parents; /* account -> index of its parent's name */
    ST_VEC(const char *) names;
    ST_VEC(pool) pools;
    st_map *pool_ids, *need_ids;
    st_map *types; /* account and type that have a floor on any day */
    ST_VEC(need) needs;
    bool shared_out;
};

st_floors *st_floors_new(void)
{
    st_floors *f = st_xcalloc(1, sizeof(*f));

    f->texts = st_arena_new();
    f->parents = st_map_new();
    f->pool_ids = st_map_new();
    f->need_ids = st_map_new();
    f->types = st_map_new();
    return f;
}

void st_floors_free(st_floors *f)
{
    if (!f)
        return;
    st_map_free(f->parents);
    st_map_free(f->pool_ids);
    st_map_free(f->need_ids);
    st_map_free(f->types);
    st_vec_free(&f->names);
    st_vec_free(&f->pools);
    st_vec_free(&f->needs);
    st_arena_free(f->texts);
    free(f);
}

void st_floors_account(st_floors *f, const char *account, const char *parent)
{
    st_map_put(f->parents, account, (int64_t)f->names.n);
    st_vec_push(&f->names, st_arena_strdup(f->texts, parent ? parent : ""));
}

/* NULL above the last account that is known. */
static const char *parent_of(const st_floors *f, const char *account)
{
    int64_t i;

    return *account && st_map_get(f->parents, account, &i) ? f->names.v[i] : NULL;
}

static int64_t day_of(const st_entry *e)
{
    return e->from_ms / DAY_MS - (e->from_ms % DAY_MS < 0);
}

static void make_key(char key[KEY_MAX], const char *account, const char *gpu, int64_t day)
{
    snprintf(key, KEY_MAX, "%s %s %lld", gpu, account, (long long)day);
}

static pool *find_pool(const st_floors *f, const char *account, const char *gpu, int64_t day)
{
    char key[KEY_MAX];
    int64_t i;

    make_key(key, account, gpu, day);
    return st_map_get(f->pool_ids, key, &i) ? &f->pools.v[i] : NULL;
}

static void learn_floor(st_floors *f, const st_entry *e)
{
    pool *p = find_pool(f, e->account, e->gpu, day_of(e));
    char key[KEY_MAX];

    if (!p) {
        make_key(key, e->account, e->gpu, day_of(e));
        st_map_put(f->pool_ids, key, (int64_t)f->pools.n);
        st_vec_push(&f->pools, (pool){0});
        p = &f->pools.v[f->pools.n - 1];
        make_key(key, e->account, e->gpu, 0);
        st_map_put(f->types, key, 1);
    }
    p->reserved += e->share;
}

static void learn_need(st_floors *f, const st_entry *e, int64_t share)
{
    char key[KEY_MAX];
    int depth = 0;
    int64_t i;

    make_key(key, e->account, e->gpu, day_of(e));
    if (st_map_get(f->need_ids, key, &i)) {
        f->needs.v[i].share += share;
        return;
    }
    for (const char *a = e->account; a && depth <= ST_DEPTH_MAX; a = parent_of(f, a))
        depth++;
    st_map_put(f->need_ids, key, (int64_t)f->needs.n);
    st_vec_push(&f->needs, (need){.account = st_arena_strdup(f->texts, e->account),
                                  .gpu = st_arena_strdup(f->texts, e->gpu),
                                  .day = day_of(e),
                                  .share = share,
                                  .depth = depth,
                                  .order = f->needs.n});
}

void st_floors_learn(st_floors *f, const st_entry *e)
{
    if (e->kind == ST_ENTRY_RESERVE)
        learn_floor(f, e);
    else if ((e->kind == ST_ENTRY_USAGE || e->kind == ST_ENTRY_FIX) && e->gpu &&
             (e->basis == ST_BASIS_GUARANTEED || e->inside != 0))
        learn_need(f, e, e->basis == ST_BASIS_GUARANTEED ? e->share : e->inside);
}

/* ---- who used what --------------------------------------------------------------------------------- */

static int deepest_first(const void *a, const void *b)
{
    const need *x = a, *y = b;

    if (x->depth != y->depth)
        return x->depth > y->depth ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void take(pool *p, int64_t *left)
{
    int64_t n;

    if (!p)
        return;
    n = ST_MIN(*left, p->reserved - p->used);
    p->used += n;
    *left -= n;
}

static void share_out(st_floors *f)
{
    f->shared_out = true;
    if (f->needs.n > 0)
        qsort(f->needs.v, f->needs.n, sizeof(*f->needs.v), deepest_first);
    for (size_t i = 0; i < f->needs.n; i++) {
        const need *n = &f->needs.v[i];
        int64_t left = ST_MAX(n->share, 0);
        int steps = 0;

        for (const char *a = n->account; a && left > 0 && steps <= ST_DEPTH_MAX; steps++) {
            take(find_pool(f, a, n->gpu, n->day), &left);
            take(find_pool(f, a, "*", n->day), &left);
            a = parent_of(f, a);
        }
    }
}

/* What a day used is spread over the day's entries, in proportion; the parts add up to it. */
int64_t st_floors_used(st_floors *f, const st_entry *e)
{
    pool *p = find_pool(f, e->account, e->gpu, day_of(e));
    int64_t before, after;

    if (!f->shared_out)
        share_out(f);
    if (!p || p->reserved <= 0)
        return 0;
    before = (int64_t)((st_i128)p->used * p->shown / p->reserved);
    p->shown += e->share;
    after = (int64_t)((st_i128)p->used * p->shown / p->reserved);
    return ST_MAX(0, ST_MIN(after - before, e->share));
}

const char *st_floors_of(const st_floors *f, const char *account, const char *gpu,
                         const char **ret_gpu)
{
    char key[KEY_MAX];
    int steps = 0;

    for (const char *a = account; a && steps <= ST_DEPTH_MAX; steps++, a = parent_of(f, a)) {
        const char *const types[] = {gpu, "*"};

        for (size_t i = 0; i < ST_ARRAY_LEN(types); i++) {
            make_key(key, a, types[i], 0);
            if (st_map_get(f->types, key, NULL)) {
                *ret_gpu = types[i];
                return a;
            }
        }
    }
    return NULL;
}
