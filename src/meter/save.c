/* The meter to bytes and back.
 *
 * One description serves both directions (model/codec.h). Only what cannot be derived is stored: rates,
 * sums over tasks and who stands on which device follow from the stays. The same state gives the same
 * bytes, in whatever order it came about. The last eight bytes are a hash over all the others.
 *
 * Loading trusts nothing: every number has a range, and numbers that belong together are compared. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "meter/state.h"
#include "model/codec.h"

#define MAGIC         UINT64_C(0x3672746d544e5453) /* "STNTmtr6" */
#define MAGIC5        UINT64_C(0x3572746d544e5453) /* "STNTmtr5": no GPU is out alone */
#define MAGIC4        UINT64_C(0x3472746d544e5453) /* "STNTmtr4": what is inside floors is not known */
#define MAGIC3        UINT64_C(0x3372746d544e5453) /* "STNTmtr3": pools are not known */
#define MAGIC2        UINT64_C(0x3272746d544e5453) /* "STNTmtr2": starts are not known */
#define MAGIC1        UINT64_C(0x3172746d544e5453) /* "STNTmtr1": nothing is kept in memory */
#define SEED          11
#define AMOUNT_MAX    (INT64_C(1) << 61)
#define RESIDENTS_MAX 4096 /* of one device */

static void spoil_if(codec *c, bool wrong)
{
    if (!c->out && wrong)
        c->bad = true;
}

static void io_moment(codec *c, int64_t *v, int64_t lo, int64_t hi)
{
    *v = io_in(c, *v, lo, ST_MAX(lo, hi));
}

static void io_amount(codec *c, int64_t *v)
{
    *v = io_in(c, ST_MIN(*v, AMOUNT_MAX), 0, AMOUNT_MAX);
}

static void io_i128(codec *c, st_i128 *v)
{
    int64_t high = (int64_t)(*v >> 62), low = (int64_t)(*v & ((INT64_C(1) << 62) - 1));
    high = io_in(c, high, -(INT64_C(1) << 50), INT64_C(1) << 50);
    low = io_in(c, low, 0, (INT64_C(1) << 62) - 1);
    *v = (st_i128)high * ((st_i128)1 << 62) + low;
}

/* ---- nodes, floors, accounts -------------------------------------------------------------- */

static void io_nodes(codec *c, st_meter *m)
{
    size_t n = io_count(c, m->nodes.n, ST_NODES_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&m->nodes, (host){.devs_at = m->devs.n});
        host *nd = &m->nodes.v[i];
        IO_IN(c, nd->type, -1, ST_TYPES_MAX - 1);
        IO_IN(c, nd->ndevs, 0, nd->type < 0 ? 0 : ST_DEVS_MAX);
        IO_IN(c, nd->state, 0, ST_NODE_STATE_COUNT - 1);
        if (c->format < 4)
            nd->pool = -1;
        else
            IO_IN(c, nd->pool, -1, INT32_MAX);
        if (!c->out && nd->ndevs > 0)
            nd->part = meter_part(m, nd->type, nd->pool);
        for (int d = 0; !c->out && d < nd->ndevs; d++) {
            st_vec_push(&m->devs, (dev){.node = (int32_t)i});
            m->types[nd->type].ndevs++;
        }
        for (int d = 0; c->format >= 6 && d < nd->ndevs && !c->bad; d++)
            IO_IN(c, meter_dev(m, (int32_t)i, d)->state, 0, ST_NODE_STATE_COUNT - 1);
    }
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        for (int p = 0; p < NPLACES; p++) {
            io_i128(c, &m->types[t].acc[p]);
            io_i128(c, &m->types[t].total[p]);
        }
    }
}

/* Those that have devices are there already; others had. */
static void io_parts(codec *c, st_meter *m)
{
    size_t *order = meter_parts_sorted(m);
    size_t n = io_count(c, m->parts.n, (size_t)ST_TYPES_MAX * ST_NODES_MAX);
    IO_IN(c, m->parts_whole, 0, 1);
    IO_IN(c, m->pools_known, 0, 1);
    for (size_t i = 0; i < n && !c->bad; i++) {
        part_sum key = c->out ? m->parts.v[order[i]] : (part_sum){0};
        IO_IN(c, key.type, 0, ST_TYPES_MAX - 1);
        IO_IN(c, key.pool, -1, INT32_MAX);
        if (c->bad)
            break;
        part_sum *p =
            c->out ? &m->parts.v[order[i]] : &m->parts.v[meter_part(m, key.type, key.pool)];
        for (int w = 0; w < ST_WHERE_COUNT; w++)
            io_i128(c, &p->total[w]);
    }
    free(order);
}

static void io_accounts(codec *c, st_meter *m)
{
    size_t n = io_count(c, m->accounts.n, ST_ACCOUNTS_MAX);
    m->known_accounts = io_count(c, m->known_accounts, n);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&m->accounts, (account){0});
        account *a = &m->accounts.v[i];
        IO_IN(c, a->parent, -1, i < m->known_accounts ? (int64_t)i - 1 : -1);
        IO_IN(c, a->agreed_m, ST_UNSET, ST_QTY_MAX);
    }
}

static void io_floors(codec *c, st_meter *m)
{
    size_t n = io_count(c, m->floors.n, (size_t)ST_ACCOUNTS_MAX * (ST_TYPES_MAX + 1));
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&m->floors, (floor_of){0});
        floor_of *f = &m->floors.v[i];
        IO_IN(c, f->account, 1, ST_MAX((int64_t)m->accounts.n - 1, 1));
        IO_IN(c, f->type, -1, ST_TYPES_MAX - 1);
        IO_IN(c, f->gpu_m, 1, ST_QTY_MAX);
        io_moment(c, &f->since_ms, m->cut_ms, m->now);
        spoil_if(c, i > 0 && (f[-1].account > f->account ||
                              (f[-1].account == f->account && f[-1].type >= f->type)));
    }
}

static void io_floor_limits(codec *c, st_meter *m)
{
    IO_BOOL(c, m->inside);
    size_t n = io_count(c, m->limits.n, ST_ACCOUNTS_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&m->limits, (limit){0});
        limit *l = &m->limits.v[i];
        IO_IN(c, l->account, 1, ST_MAX((int64_t)m->accounts.n - 1, 1));
        IO_IN(c, l->gpu_m, 0, ST_QTY_MAX);
        for (int t = 0; t < ST_TYPES_MAX; t++)
            IO_IN(c, l->type_m[t], 0, ST_QTY_MAX);
        spoil_if(c, (size_t)l->account >= m->accounts.n || (i > 0 && l[-1].account >= l->account));
    }
}

/* Grants lie on nodes and devices that exist, all of one type; *ret_ndevs: how many. */
static void io_grants(codec *c, const st_meter *m, st_grant **grants, int n, int *ret_ndevs,
                      int32_t *ret_type)
{
    *ret_ndevs = 0;
    *ret_type = -1;
    spoil_if(c, (size_t)n > c->n); /* each takes a byte at least */
    if (c->bad)
        return;
    if (!c->out)
        *grants = st_xcalloc((size_t)n, sizeof **grants);
    for (int t = 0; t < n && !c->bad; t++) {
        st_grant *g = &(*grants)[t];
        IO_IN(c, g->node, 0, ST_MAX((int64_t)m->nodes.n - 1, 0));
        IO_IN(c, g->devs, 0, UINT16_MAX);
        IO_IN(c, g->mig_start, -1, ST_MIG_MEMORY - 1);
        if (c->bad || (size_t)g->node >= m->nodes.n) {
            c->bad = true;
            return;
        }
        const host *nd = &m->nodes.v[g->node];
        spoil_if(c, g->devs >> nd->ndevs != 0);
        spoil_if(c, g->devs && *ret_type >= 0 && *ret_type != nd->type);
        if (g->devs)
            *ret_type = nd->type;
        *ret_ndevs += __builtin_popcount(g->devs);
    }
}

static void io_plans(codec *c, st_meter *m)
{
    size_t n = io_count(c, m->plans.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&m->plans, (plan){0});
        plan *p = &m->plans.v[i];
        int ndevs;
        int32_t type;
        io_u64(c, &p->job);
        IO_IN(c, p->n, 1, ST_TASKS_MAX);
        IO_IN(c, p->dev_m, 0, ST_WHOLE_M);
        io_grants(c, m, &p->grants, p->n, &ndevs, &type);
        spoil_if(c, i > 0 && p[-1].job >= p->job);
    }
}

/* ---- stays -------------------------------------------------------------------------------- */

static void io_head(codec *c, const st_meter *m, stay *s)
{
    io_u64(c, &s->job);
    IO_IN(c, s->number, 1, INT32_MAX - 1);
    if (!c->out)
        s->start = s->number;
    if (c->format >= 3) {
        IO_IN(c, s->start, 1, INT32_MAX - 1);
        IO_BOOL(c, s->resumed);
    }
    IO_IN(c, s->account, 0, ST_MAX((int64_t)m->accounts.n - 1, 0));
    spoil_if(c, (size_t)s->account >= m->accounts.n);
    IO_IN(c, s->user, -1, INT32_MAX);
    IO_IN(c, s->type, -1, ST_TYPES_MAX - 1);
    IO_IN(c, s->level, 0, ST_LEVEL_COUNT - 1);
    IO_IN(c, s->profile, -1, ST_MIG_COUNT - 1);
    spoil_if(c, (s->profile >= 0) != (s->level == ST_LEVEL_MIG));
    IO_IN(c, s->topo, 0, ST_TOPO_COUNT - 1);
    IO_IN(c, s->tasks, 1, ST_TASKS_MAX);
    IO_IN(c, s->ndevs, 0, ST_TASKS_MAX * ST_DEVS_MAX);
    IO_IN(c, s->dev_m, s->ndevs > 0, s->ndevs > 0 ? ST_WHOLE_M : 0);
    spoil_if(c, (s->type < 0) != (s->ndevs == 0));
    IO_IN(c, s->cpu_m, 0, ST_QTY_MAX * ST_TASKS_MAX);
    IO_IN(c, s->ram_mib, 0, ST_QTY_MAX * ST_TASKS_MAX);
    s->gpu_m = s->ndevs * s->dev_m;
    io_moment(c, &s->start_ms, -MOMENT_MAX, m->now);
}

static void io_pieces(codec *c, const st_meter *m, stay *s)
{
    IO_IN(c, s->first, 1, INT32_MAX - 2 * PIECES_MAX);
    size_t n = io_count(c, s->pieces.n, PIECES_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&s->pieces, (piece){0});
        piece *p = &s->pieces.v[i];
        io_moment(c, &p->from_ms, i > 0 ? p[-1].to_ms : s->start_ms, m->now);
        io_moment(c, &p->to_ms, p->from_ms, m->now);
        io_amount(c, &p->share);
        io_moment(c, &p->dev_seen, 0, times(s->ndevs, p->to_ms - p->from_ms));
        io_moment(c, &p->dev_busy, 0, p->dev_seen);
        io_moment(c, &p->seen, 0, p->share);
        io_moment(c, &p->busy, 0, p->seen);
        io_amount(c, &p->energy);
        IO_IN(c, p->basis, 0, ST_BASIS_COUNT - 1);
        if (c->format >= 5) {
            io_moment(c, &p->inside, 0, p->share);
            io_moment(c, &p->inside_idle, 0, p->share);
        }
        /* Only the real end of one that is over may lie before a piece. */
        spoil_if(c, i > 0 && !s->over && p[-1].to_ms != p->from_ms);
    }
}

static void io_telemetry(codec *c, stay *s)
{
    bool any = s->by_task != NULL;
    IO_IN(c, s->knows, 0, KNOWS_SEEN | KNOWS_BUSY | KNOWS_ENERGY);
    io_amount(c, &s->given.seen);
    io_amount(c, &s->given.busy);
    io_amount(c, &s->given.energy);
    IO_BOOL(c, any);
    spoil_if(c, any && (size_t)s->tasks > c->n);
    if (!any || c->bad)
        return;
    if (!c->out)
        s->by_task = st_xcalloc((size_t)s->tasks, sizeof *s->by_task);
    for (int t = 0; t < s->tasks; t++) {
        sums *one = &s->by_task[t];
        io_amount(c, &one->seen);
        io_amount(c, &one->busy);
        io_amount(c, &one->energy);
        if (c->out)
            continue;
        s->total.seen = plus(s->total.seen, one->seen);
        s->total.busy = plus(s->total.busy, one->busy);
        s->total.energy = plus(s->total.energy, one->energy);
    }
}

static void io_open(codec *c, const st_meter *m, stay *s)
{
    int ndevs;
    int32_t type;
    io_grants(c, m, &s->grants, s->tasks, &ndevs, &type);
    spoil_if(c, ndevs != s->ndevs || type != s->type);
    for (int t = 0; t < s->tasks && !c->bad; t++) {
        const st_grant *g = &s->grants[t];
        bool mig = s->level == ST_LEVEL_MIG && g->devs;
        spoil_if(c, mig && !st_mig_start_legal((st_mig)s->profile, g->mig_start));
    }
    IO_IN(c, s->class, 0, ST_CLASS_COUNT - 1);
    IO_IN(c, s->basis, 0, ST_BASIS_COUNT - 1);
    size_t n = s->pieces.n;
    io_moment(c, &s->from_ms, n > 0 ? s->pieces.v[n - 1].to_ms : s->start_ms, m->now);
    /* Pieces join; the first may begin when the tasks really did (st_meter_began). */
    int64_t late = n == 0 && s->first == 1 && !s->resumed ? ST_METER_READY_MS : 0;
    int64_t begins = n > 0 ? s->pieces.v[n - 1].to_ms : s->start_ms;
    spoil_if(c, s->from_ms < begins || s->from_ms - begins > late);
    int64_t acc = plus(s->acc, times(s->rate_m, m->now - s->fold_ms));
    io_amount(c, &acc);
    if (c->format >= 5) {
        IO_IN(c, s->inside_m, 0, s->gpu_m);
        io_moment(c, &s->in_mark, 0, acc);
        io_moment(c, &s->in_acc, 0, s->in_mark);
    }
    if (c->out)
        return;
    s->acc = acc;
    s->fold_ms = m->now;
}

static void io_stay(codec *c, const st_meter *m, stay *s)
{
    io_head(c, m, s);
    io_pieces(c, m, s);
    io_telemetry(c, s);
    if (!s->over) {
        io_open(c, m, s);
        return;
    }
    io_moment(c, &s->over_ms, s->start_ms, m->now);
    if (c->format < 2 || !s->away)
        return;
    IO_BOOL(c, s->kept);
    io_moment(c, &s->risk_ms, 0, s->over_ms - s->start_ms);
    io_amount(c, &s->risk_share);
}

/* A stay was read: it becomes the newest of its job, and is on its devices if it is open. */
static void take_stay(codec *c, st_meter *m, stay *s)
{
    stay *last = meter_find(m, s->job);
    if (c->bad ||
        (last && (last->number >= s->number || !last->over || (last->away && !last->kept)))) {
        c->bad = true;
        meter_stay_free(s);
        return;
    }
    for (int t = 0; !s->over && t < s->tasks; t++)
        for (unsigned devs = s->grants[t].devs; devs; devs &= devs - 1)
            spoil_if(c,
                     meter_dev(m, s->grants[t].node, __builtin_ctz(devs))->list.n >= RESIDENTS_MAX);
    meter_enter(m, s);
}

static void io_list(codec *c, st_meter *m, stay *const *list, size_t n, bool over, bool away)
{
    n = io_count(c, n, UINT32_MAX);
    uint64_t before = 0;
    int number = 0;
    for (size_t i = 0; i < n && !c->bad; i++) {
        stay *s = c->out ? list[i] : st_xcalloc(1, sizeof *s);
        if (!c->out) {
            s->over = over;
            s->away = away;
        }
        io_stay(c, m, s);
        spoil_if(c, (!over || away) && i > 0 &&
                        (s->job < before || (s->job == before && s->number <= number)));
        before = s->job;
        number = s->number;
        if (!c->out)
            take_stay(c, m, s);
    }
}

static void io_line(codec *c, st_meter *m)
{
    ST_VEC(stay *) line = {0};
    for (stay *s = m->first_over; s; s = s->next)
        st_vec_push(&line, s);
    io_list(c, m, line.v, line.n, true, false);
    st_vec_free(&line);
}

/* ---- the past of residents ---------------------------------------------------------------- */

static void io_past(codec *c, const st_meter *m, const dev *d, resident *r)
{
    size_t n = io_count(c, r->past ? r->past->list.n + 1 : 0, SPANS_MAX + 1);
    if (n > 0 && !c->out)
        r->past = st_xcalloc(1, sizeof *r->past);
    for (size_t i = 0; i + 1 < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&r->past->list, (span){0});
        span *s = &r->past->list.v[i];
        io_moment(c, &s->to_ms, i > 0 ? s[-1].to_ms + 1 : r->stay->start_ms, m->now);
        io_amount(c, &s->share);
    }
    spoil_if(c, meter_crowded(d) &&
                    (!r->past || meter_known_to(r->past, r->stay->start_ms) != d->since_ms));
}

static void io_devs(codec *c, st_meter *m)
{
    for (size_t i = 0; i < m->devs.n && !c->bad; i++) {
        dev *d = &m->devs.v[i];
        if (meter_crowded(d))
            io_moment(c, &d->since_ms, -MOMENT_MAX, m->now);
        for (size_t k = 0; k < d->list.n && !c->bad; k++)
            io_past(c, m, d, &d->list.v[k]);
    }
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* What follows from what was read. */
static void derive(st_meter *m)
{
    for (size_t i = 0; i < m->plans.n; i++)
        meter_plan(m, &m->plans.v[i], 1);
    for (size_t i = 0; i < m->devs.n; i++) {
        dev *d = &m->devs.v[i];
        for (size_t k = 0; k < d->list.n && !meter_crowded(d); k++)
            d->list.v[k].stay->rate_m += d->list.v[k].stay->dev_m;
        meter_place(m, d);
    }
    for (size_t i = 0; i < m->open.n; i++)
        meter_burst(m, m->open.v[i], 1);
    meter_inside_derive(m);
}

static void io_meter(codec *c, st_meter *m)
{
    uint64_t magic = MAGIC;
    io_u64(c, &magic);
    spoil_if(c, magic != MAGIC && magic != MAGIC5 && magic != MAGIC4 && magic != MAGIC3 &&
                    magic != MAGIC2 && magic != MAGIC1);
    c->format = magic == MAGIC1   ? 1
                : magic == MAGIC2 ? 2
                : magic == MAGIC3 ? 3
                : magic == MAGIC4 ? 4
                : magic == MAGIC5 ? 5
                                  : 6;
    if (!c->out)
        m->parts_whole = m->pools_known = c->format >= 4;
    io_moment(c, &m->now, -MOMENT_MAX, MOMENT_MAX);
    io_moment(c, &m->cut_ms, -MOMENT_MAX, m->now);
    io_nodes(c, m);
    if (c->format >= 4)
        io_parts(c, m);
    io_accounts(c, m);
    io_floors(c, m);
    if (c->format >= 5)
        io_floor_limits(c, m);
    io_plans(c, m);
    io_line(c, m);
    stay **list = meter_sorted(m->away.v, m->away.n);
    io_list(c, m, list, m->away.n, true, true);
    free(list);
    list = meter_sorted(m->open.v, m->open.n);
    io_list(c, m, list, m->open.n, false, false);
    free(list);
    io_devs(c, m);
}

void st_meter_save(const st_meter *m, st_strbuf *out)
{
    codec c = {.out = out};
    size_t from = out->n;
    io_meter(&c, (st_meter *)(uintptr_t)m); /* each value is written back as it was */
    uint64_t hash = st_hash_bytes(out->s + from, out->n - from, SEED);
    io_u64(&c, &hash);
}

int st_meter_load(const char *data, size_t len, st_meter **ret, st_err *err)
{
    codec c = {.in = data, .n = len, .at = len < 8 ? len : len - 8};
    uint64_t hash = 0;
    io_u64(&c, &hash);
    if (c.bad || hash != st_hash_bytes(data, len - 8, SEED))
        return st_fail(err, ST_EPARSE, "the saved meter is damaged: %zu bytes whose hash is wrong",
                       len);
    c = (codec){.in = data, .n = len - 8};
    ST_CLEANUP(st_meter_freep) st_meter *m = st_meter_new(0);
    io_meter(&c, m);
    if (c.bad || c.at != c.n)
        return st_fail(err, ST_EPARSE, "the saved meter is damaged at byte %zu of %zu", c.at, len);
    derive(m);
    int rc = st_meter_check(m, err);
    if (rc < 0)
        return st_fail(err, ST_EPARSE, "the saved meter contradicts itself");
    *ret = ST_TAKE(m);
    return 0;
}
