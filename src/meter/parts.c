/* Where devices were, by type, pool and cause. Beside what the types say, and adding up to it: Σ over pools and causes of a
 * place is the place, exactly, at any moment (checked by st_meter_check). */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "meter/state.h"

const char *st_where_place(st_where where)
{
    static const char *const names[] = {
#define X(id, place, cause) [id] = place,
        ST_WHERE_TABLE(X)
#undef X
    };
    ST_ASSERT(where < ST_WHERE_COUNT);
    return names[where];
}

const char *st_where_cause(st_where where)
{
    static const char *const names[] = {
#define X(id, place, cause) [id] = cause,
        ST_WHERE_TABLE(X)
#undef X
    };
    ST_ASSERT(where < ST_WHERE_COUNT);
    return names[where];
}

static st_where where_of(int place, st_where why)
{
    return place == GRANTED     ? ST_WHERE_GRANTED
           : place == IDLE      ? ST_WHERE_IDLE
           : place == UNHEALTHY ? ST_WHERE_FAILED
                                : why;
}

static int place_of(st_where where)
{
    return where == ST_WHERE_GRANTED  ? GRANTED
           : where == ST_WHERE_IDLE   ? IDLE
           : where == ST_WHERE_FAILED ? UNHEALTHY
                                      : OVERHEAD;
}

size_t meter_part(st_meter *m, int32_t type, int32_t pool)
{
    for (size_t i = 0; i < m->parts.n; i++)
        if (m->parts.v[i].type == type && m->parts.v[i].pool == pool)
            return i;
    st_vec_push(&m->parts, (part_sum){.type = type, .pool = pool});
    return m->parts.n - 1;
}

static void count(part_sum *p, const int at[NPLACES], st_where why, int sign)
{
    for (int i = 0; i < NPLACES; i++)
        p->rate_m[where_of(i, why)] += sign * at[i];
}

void meter_part_move(st_meter *m, const dev *d, const int at[NPLACES], st_where why)
{
    part_sum *p = &m->parts.v[m->nodes.v[d->node].part];
    count(p, d->at_m, d->why, -1);
    count(p, at, why, 1);
}

void meter_parts_advance(st_meter *m, int64_t ms)
{
    for (size_t i = 0; i < m->parts.n; i++)
        for (int w = 0; w < ST_WHERE_COUNT; w++)
            m->parts.v[i].total[w] += (st_i128)m->parts.v[i].rate_m[w] * ms;
}

/* A gang is in one pool. */
void meter_part_ended(st_meter *m, const stay *s, int64_t share, st_where why)
{
    for (int t = 0; t < s->tasks; t++) {
        if (!s->grants[t].devs)
            continue;
        part_sum *p = &m->parts.v[m->nodes.v[s->grants[t].node].part];
        p->total[ST_WHERE_GRANTED] -= share;
        p->total[why] += share;
        return;
    }
}

void st_meter_pools(st_meter *m, const st_fleet *fleet)
{
    if (m->pools_known)
        return;
    for (size_t i = 0; i < m->nodes.n && i < fleet->nodes.n; i++) {
        host *nd = &m->nodes.v[i];
        if (nd->pool >= 0 || nd->ndevs == 0)
            continue;
        size_t was = nd->part;
        nd->pool = fleet->nodes.v[i]->pool;
        nd->part = meter_part(m, nd->type, nd->pool);
        for (int k = 0; k < nd->ndevs; k++) {
            const dev *d = meter_dev(m, (int32_t)i, k);
            count(&m->parts.v[was], d->at_m, d->why, -1);
            count(&m->parts.v[nd->part], d->at_m, d->why, 1);
        }
    }
    m->pools_known = true;
}

static int by_key(const void *a, const void *b, void *ctx)
{
    const st_meter *m = ctx;
    const part_sum *x = &m->parts.v[*(const size_t *)a], *y = &m->parts.v[*(const size_t *)b];
    return x->type != y->type ? (x->type < y->type ? -1 : 1)
                              : (x->pool > y->pool) - (x->pool < y->pool);
}

size_t *meter_parts_sorted(const st_meter *m)
{
    size_t *ret = st_xcalloc(m->parts.n + 1, sizeof *ret);
    for (size_t i = 0; i < m->parts.n; i++)
        ret[i] = i;
    qsort_r(ret, m->parts.n, sizeof *ret, by_key, (void *)(uintptr_t)m);
    return ret;
}

size_t st_meter_parts(const st_meter *m, int64_t now, st_meter_part **ret)
{
    size_t *order = meter_parts_sorted(m);
    st_meter_part *list = st_xcalloc(m->parts.n + 1, sizeof *list);
    int64_t ms = ST_MAX(ST_MIN(now, MOMENT_MAX) - m->now, 0);
    for (size_t i = 0; i < m->parts.n; i++) {
        const part_sum *p = &m->parts.v[order[i]];
        list[i].type = p->type;
        list[i].pool = p->pool;
        for (int w = 0; w < ST_WHERE_COUNT; w++)
            list[i].at[w] = clip(p->total[w] + (st_i128)p->rate_m[w] * ms);
    }
    free(order);
    *ret = list;
    return m->parts.n;
}

int meter_parts_check(const st_meter *m, st_err *err)
{
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        int64_t rate_m[NPLACES] = {0};
        st_i128 total[NPLACES] = {0};
        for (size_t i = 0; i < m->parts.n; i++) {
            const part_sum *p = &m->parts.v[i];
            for (int w = 0; p->type == t && w < ST_WHERE_COUNT; w++) {
                rate_m[place_of((st_where)w)] += p->rate_m[w];
                total[place_of((st_where)w)] += p->total[w];
            }
        }
        for (int p = 0; p < NPLACES; p++) {
            const type_sum *sum = &m->types[t];
            if (rate_m[p] != sum->rate_m[p])
                return st_fail(err, ST_ECORRUPT,
                               "meter: pools of type %d count at %" PRId64 ", not %" PRId64, t,
                               rate_m[p], sum->rate_m[p]);
            if (m->parts_whole && total[p] != sum->total[p] + sum->acc[p])
                return st_fail(err, ST_ECORRUPT, "meter: pools of type %d do not add up to it", t);
        }
    }
    return 0;
}
