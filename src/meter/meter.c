/* The meter itself: time, nodes, plans, cuts, and what can be asked. */
#include "meter/meter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "meter/state.h"

st_meter *st_meter_new(int64_t now)
{
    ST_ASSERT(now > -MOMENT_MAX && now < MOMENT_MAX);
    st_meter *m = st_xcalloc(1, sizeof *m);
    m->now = m->cut_ms = now;
    m->by_job = st_idmap_new();
    m->parts_whole = m->pools_known = true;
    return m;
}

static void free_list(stay **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        meter_stay_free(list[i]);
    free(list);
}

static void free_devs(st_meter *m)
{
    for (size_t i = 0; i < m->devs.n; i++) {
        dev *d = &m->devs.v[i];
        for (size_t k = 0; k < d->list.n; k++) {
            if (d->list.v[k].past)
                st_vec_free(&d->list.v[k].past->list);
            free(d->list.v[k].past);
        }
        st_vec_free(&d->list);
    }
    st_vec_free(&m->devs);
}

void st_meter_free(st_meter *m)
{
    if (!m)
        return;
    free_devs(m);
    free_list(m->open.v, m->open.n);
    free_list(m->away.v, m->away.n);
    for (stay *s = m->first_over, *next; s; s = next) {
        next = s->next;
        meter_stay_free(s);
    }
    for (size_t i = 0; i < m->plans.n; i++)
        free(m->plans.v[i].grants);
    st_vec_free(&m->plans);
    st_vec_free(&m->nodes);
    st_vec_free(&m->parts);
    st_vec_free(&m->floors);
    st_vec_free(&m->limits);
    st_vec_free(&m->borrow);
    st_vec_free(&m->accounts);
    st_idmap_free(m->by_job);
    free(m);
}

/* ---- time --------------------------------------------------------------------------------- */

void st_meter_advance(st_meter *m, int64_t now)
{
    if (now <= m->now)
        return;
    now = ST_MIN(now, MOMENT_MAX);
    int64_t ms = now - m->now;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        for (int p = 0; m->types[t].ndevs > 0 && p < NPLACES; p++)
            m->types[t].acc[p] += (st_i128)m->types[t].rate_m[p] * ms;
    meter_parts_advance(m, ms);
    m->now = now;
    meter_purge(m);
}

int64_t st_meter_now(const st_meter *m)
{
    return m->now;
}

/* ---- nodes -------------------------------------------------------------------------------- */

static void add_node(st_meter *m, const st_node *in)
{
    ST_ASSERT(in->ndevs >= 0 && in->ndevs <= ST_DEVS_MAX && in->type < ST_TYPES_MAX);
    host nd = {in->type, in->ndevs, in->state, m->devs.n, in->pool, 0};
    if (in->ndevs > 0)
        nd.part = meter_part(m, in->type, in->pool);
    st_vec_push(&m->nodes, nd);
    for (int d = 0; d < in->ndevs; d++) {
        st_vec_push(&m->devs, (dev){.node = in->id});
        m->types[in->type].ndevs++;
        meter_place(m, &m->devs.v[m->devs.n - 1]);
    }
}

void st_meter_node(st_meter *m, const st_node *in, int64_t now)
{
    st_meter_advance(m, now);
    ST_ASSERT(in->id >= 0 && (size_t)in->id <= m->nodes.n);
    if ((size_t)in->id == m->nodes.n) {
        add_node(m, in);
        return;
    }
    host *nd = &m->nodes.v[in->id];
    nd->state = in->state;
    for (int d = 0; d < nd->ndevs; d++)
        meter_place(m, meter_dev(m, in->id, d));
}

void st_meter_gpu(st_meter *m, int32_t id, int gpu, st_node_state state, int64_t now)
{
    st_meter_advance(m, now);
    ST_ASSERT(id >= 0 && (size_t)id < m->nodes.n && gpu >= 0 && gpu < m->nodes.v[id].ndevs);
    dev *d = meter_dev(m, id, gpu);
    d->state = state;
    meter_place(m, d);
}

/* ---- plans -------------------------------------------------------------------------------- */

static size_t plan_at(const st_meter *m, uint64_t job)
{
    size_t lo = 0, hi = m->plans.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->plans.v[mid].job < job)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void meter_plan(st_meter *m, const plan *p, int sign)
{
    for (int t = 0; t < p->n; t++) {
        for (unsigned devs = p->grants[t].devs; devs; devs &= devs - 1) {
            dev *d = meter_dev(m, p->grants[t].node, __builtin_ctz(devs));
            d->planned_m += sign * p->dev_m;
            meter_place(m, d);
        }
    }
}

void st_meter_hold(st_meter *m, uint64_t job, const st_grant *grants, int n, const st_shape *shape,
                   int64_t now)
{
    st_meter_advance(m, now);
    size_t at = plan_at(m, job);
    if (at < m->plans.n && m->plans.v[at].job == job) {
        meter_plan(m, &m->plans.v[at], -1);
        free(m->plans.v[at].grants);
        st_vec_remove(&m->plans, at);
    }
    if (!grants)
        return;
    plan p = {.job = job, .n = n, .dev_m = (int32_t)meter_nominal_m(shape)};
    p.grants = st_xcalloc((size_t)ST_MAX(n, 1), sizeof *p.grants);
    memcpy(p.grants, grants, (size_t)n * sizeof *p.grants);
    st_vec_insert(&m->plans, at, p);
    meter_plan(m, &p, 1);
}

/* ---- cuts --------------------------------------------------------------------------------- */

static int by_job(const void *pa, const void *pb)
{
    const stay *a = *(stay *const *)pa, *b = *(stay *const *)pb;
    if (a->job != b->job)
        return a->job < b->job ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

stay **meter_sorted(stay *const *list, size_t n)
{
    stay **ret = st_xcalloc(n + 1, sizeof *ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = list[i];
    if (n > 1)
        qsort(ret, n, sizeof *ret, by_job);
    return ret;
}

static void fleet_record(const st_i128 at[NPLACES], st_record *r)
{
    r->granted = clip(at[GRANTED]);
    r->idle = clip(at[IDLE]);
    r->unhealthy = clip(at[UNHEALTHY]);
    r->overhead = clip(at[OVERHEAD]);
    r->total = clip(at[GRANTED] + at[IDLE] + at[UNHEALTHY] + at[OVERHEAD]);
}

/* Of a type since the last cut, up to a moment that is not before the last call. */
static st_record fleet_open(const st_meter *m, int type, int64_t now)
{
    const type_sum *t = &m->types[type];
    st_i128 at[NPLACES];
    for (int p = 0; p < NPLACES; p++)
        at[p] = t->acc[p] + (st_i128)t->rate_m[p] * (now - m->now);
    st_record r = {
        .kind = ST_REC_FLEET, .from_ms = m->cut_ms, .to_ms = now, .account = -1, .type = type};
    fleet_record(at, &r);
    return r;
}

static void cut_fleet(st_meter *m, st_records *out)
{
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        type_sum *type = &m->types[t];
        if (type->ndevs > 0 && m->now > m->cut_ms)
            st_vec_push(out, fleet_open(m, t, m->now));
        for (int p = 0; p < NPLACES; p++) {
            type->total[p] += type->acc[p];
            type->acc[p] = 0;
        }
    }
    m->cut_ms = m->now;
}

void st_meter_cut(st_meter *m, int64_t now, st_records *out)
{
    st_meter_advance(m, now);
    cut_fleet(m, out);
    meter_cut_floors(m, out);
    size_t n = m->open.n;
    stay **list = meter_sorted(m->open.v, n);
    st_basis *basis = st_xcalloc(n + 1, sizeof *basis);
    meter_decide(m, list, n, basis);
    for (size_t i = 0; i < n; i++)
        meter_next_piece(m, list[i], basis[i], out);
    free(basis);
    free(list);
}

int st_meter_open(const st_meter *m, int64_t now, st_record_fn fn, void *ctx)
{
    int rc = 0;
    now = ST_MIN(ST_MAX(now, m->now), MOMENT_MAX);
    for (int t = 0; rc == 0 && t < ST_TYPES_MAX; t++) {
        st_record r = fleet_open(m, t, now);
        if (m->types[t].ndevs > 0 && now > m->cut_ms)
            rc = fn(ctx, &r);
    }
    for (size_t i = 0; rc == 0 && i < m->floors.n; i++) {
        st_record r = meter_floor_record(&m->floors.v[i], now);
        if (r.to_ms > r.from_ms)
            rc = fn(ctx, &r);
    }
    stay **list = meter_sorted(m->open.v, m->open.n);
    for (size_t i = 0; rc == 0 && i < m->open.n; i++) {
        st_record r = meter_open_record(m, list[i], now);
        rc = fn(ctx, &r);
    }
    free(list);
    return rc;
}

void st_meter_totals(const st_meter *m, int32_t type, st_record *ret)
{
    ST_ASSERT(type >= 0 && type < ST_TYPES_MAX);
    st_i128 at[NPLACES];
    for (int p = 0; p < NPLACES; p++)
        at[p] = m->types[type].total[p] + m->types[type].acc[p];
    *ret = (st_record){.kind = ST_REC_FLEET, .account = -1, .type = type, .to_ms = m->now};
    fleet_record(at, ret);
}

/* ---- asking ------------------------------------------------------------------------------- */

size_t st_meter_nodes(const st_meter *m)
{
    return m->nodes.n;
}

size_t st_meter_stays(const st_meter *m)
{
    return m->open.n;
}

const st_grant *st_meter_grants(const st_meter *m, uint64_t job, int *ret_tasks)
{
    const stay *s = meter_find(m, job);
    if (!s || s->over)
        return NULL;
    if (ret_tasks)
        *ret_tasks = s->tasks;
    return s->grants;
}

st_node_state st_meter_node_state(const st_meter *m, int32_t id)
{
    ST_ASSERT(id >= 0 && (size_t)id < m->nodes.n);
    return m->nodes.v[id].state;
}

bool st_meter_failed(const st_meter *m, uint64_t job)
{
    int tasks = 0;
    const st_grant *grants = st_meter_grants(m, job, &tasks);
    for (int t = 0; t < tasks; t++)
        if (m->nodes.v[grants[t].node].state == ST_NODE_FAILED)
            return true;
    for (int t = 0; t < tasks; t++)
        for (unsigned devs = grants[t].devs; devs; devs &= devs - 1)
            if (meter_dev(m, grants[t].node, __builtin_ctz(devs))->state == ST_NODE_FAILED)
                return true;
    return false;
}

st_node_state st_meter_gpu_state(const st_meter *m, int32_t id, int gpu)
{
    ST_ASSERT(id >= 0 && (size_t)id < m->nodes.n && gpu >= 0 && gpu < m->nodes.v[id].ndevs);
    return meter_dev(m, id, gpu)->state;
}

st_meter_dev st_meter_device(const st_meter *m, int32_t id, int at)
{
    ST_ASSERT(id >= 0 && (size_t)id < m->nodes.n && at >= 0 && at < m->nodes.v[id].ndevs);
    const dev *d = meter_dev(m, id, at);
    return (st_meter_dev){d->at_m[GRANTED], d->at_m[IDLE], d->at_m[UNHEALTHY], d->at_m[OVERHEAD],
                          (int)d->list.n};
}
