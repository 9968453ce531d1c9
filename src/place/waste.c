/* The tables of the target, and the waste of a node by them (place/waste.h).
 *
 * Shares of classes are counted in 1/65536, so waste is in milli-GPU / 65536 until the end. */
#include "place/waste.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"

#define ONE    65536
#define RATIOS 256 /* steps of CPU or RAM per GPU */

/* By what the free CPU of a node carries: the share of classes that use ... */
typedef struct row {
    int32_t one;                            /* one GPU or a part of it: all a free GPU is for */
    int32_t whole[ST_DEVS_MAX + 1];         /* at most so many whole GPUs, and more than one */
    int32_t slice[ST_MIG_COUNT];            /* a slice of the profile */
    int32_t part[2][ST_TYPICAL_TARGET + 1]; /* MPS, TIME: a share of at most that rank */
} row;

/* Per GPU type: the part of a free GPU that stays without CPU or RAM, by how much there is
 * for it, in steps of `step`. */
typedef struct short_of {
    int64_t step;
    int32_t part[RATIOS + 2];
} short_of;

struct st_waste {
    uint64_t epoch;
    int32_t ncpu, nparts;
    int64_t cpu[ST_TYPICAL_TARGET];
    uint8_t rank[ST_WHOLE_M + 1]; /* of a share */
    row *rows;                    /* [type][cpu rank] */
    short_of cpu_short, ram_short;
    /* How good a carved state is whatever is typical. */
    int32_t promise[1 << ST_MIG_MEMORY][ST_MIG_COMPUTE + 1];
};

st_waste *st_waste_new(void)
{
    return st_xcalloc(1, sizeof(st_waste));
}

void st_waste_free(st_waste *waste)
{
    if (!waste)
        return;
    free(waste->rows);
    free(waste);
}

/* ---- tables ------------------------------------------------------------------------------ */

static int32_t insert(int64_t *list, int32_t n, int64_t x)
{
    int32_t at = n;
    while (at > 0 && list[at - 1] > x)
        at--;
    if (at > 0 && list[at - 1] == x)
        return n;
    memmove(list + at + 1, list + at, (size_t)(n - at) * sizeof *list);
    list[at] = x;
    return n + 1;
}

static int32_t rank_of(const int64_t *list, int32_t n, int64_t x)
{
    int32_t lo = 0, hi = n;
    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;
        if (list[mid] <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void set_ranks(st_waste *w, const st_typical *t)
{
    int64_t parts[ST_TYPICAL_TARGET];
    w->ncpu = w->nparts = 0;
    for (int i = 0; i < t->ntarget; i++) {
        const st_kind *k = &t->target[i];
        if (k->gpus == 0)
            continue;
        w->ncpu = insert(w->cpu, w->ncpu, k->cpu_m);
        if (k->share_m > 0)
            w->nparts = insert(parts, w->nparts, k->share_m);
    }
    for (int m = 0; m <= ST_WHOLE_M; m++)
        w->rank[m] = (uint8_t)rank_of(parts, w->nparts, m);
}

static void count(const st_waste *w, row *r, const st_kind *k, int32_t share)
{
    if (k->level == ST_LEVEL_WHOLE && k->gpus > 1) {
        for (int n = k->gpus; n <= ST_DEVS_MAX; n++)
            r->whole[n] += share;
        return;
    }
    r->one += share;
    if (k->level == ST_LEVEL_MIG)
        r->slice[k->profile] += share;
    else if (k->level != ST_LEVEL_WHOLE)
        for (int p = w->rank[k->share_m]; p <= w->nparts; p++)
            r->part[k->level == ST_LEVEL_TIME][p] += share;
}

static void fill_type(st_waste *w, const st_typical *t, int type)
{
    row *rows = w->rows + (size_t)type * (size_t)(w->ncpu + 1);
    int64_t sum = 0;
    for (int i = 0; i < t->ntarget; i++)
        if (t->target[i].gpus > 0 && t->target[i].types >> type & 1)
            sum += t->target[i].weight;
    for (int i = 0; i < t->ntarget; i++) {
        const st_kind *k = &t->target[i];
        if (k->gpus == 0 || !(k->types >> type & 1))
            continue;
        for (int r = rank_of(w->cpu, w->ncpu, k->cpu_m); r <= w->ncpu; r++)
            count(w, &rows[r], k, (int32_t)(k->weight * ONE / sum));
    }
}

static void fill_short(short_of *s, const st_typical *t, bool ram)
{
    int64_t sum = 0, most = 1;
    memset(s, 0, sizeof *s);
    for (int i = 0; i < t->ntarget; i++) {
        const st_kind *k = &t->target[i];
        if (k->gpus == 0)
            continue;
        sum += k->weight * st_kind_gpu_m(k);
        most = ST_MAX(most, (ram ? k->ram_mib : k->cpu_m) * 1000 / st_kind_gpu_m(k));
    }
    s->step = most / RATIOS + 1;
    for (int i = 0; i < t->ntarget; i++) {
        const st_kind *k = &t->target[i];
        if (k->gpus == 0)
            continue;
        int64_t ratio = (ram ? k->ram_mib : k->cpu_m) * 1000 / st_kind_gpu_m(k);
        int64_t share = k->weight * st_kind_gpu_m(k) * ONE / sum;
        for (int64_t x = 0; x * s->step < ratio; x++)
            s->part[x] += (int32_t)(share * (ratio - x * s->step) / ratio);
    }
}

bool st_waste_ready(st_waste *w, const st_typical *t)
{
    if (t->ntarget == 0)
        return false;
    if (w->epoch == t->epoch && w->rows)
        return true;
    w->epoch = t->epoch;
    set_ranks(w, t);
    free(w->rows);
    w->rows = st_xcalloc((size_t)ST_TYPES_MAX * (size_t)(w->ncpu + 1), sizeof *w->rows);
    for (int type = 0; type < ST_TYPES_MAX; type++)
        fill_type(w, t, type);
    fill_short(&w->cpu_short, t, false);
    fill_short(&w->ram_short, t, true);
    return true;
}

/* ---- one GPU ----------------------------------------------------------------------------- */

/* What the typical workload can use of a GPU in milli-GPU / 65536, and what is free of it. */
static int64_t usable(const st_waste *w, const row *r, const st_dev *dev, int64_t top_m,
                      int64_t *ret_free_m)
{
    int64_t free_m = 0, sum = 0;
    switch ((st_dev_mode)dev->mode) {
    case ST_DEV_FREE:
        free_m = ST_WHOLE_M;
        sum = free_m * r->one;
        break;
    case ST_DEV_MPS:
        free_m = ST_MAX(ST_WHOLE_M - dev->used_m, 0);
        sum = free_m * r->part[0][w->rank[free_m]];
        break;
    case ST_DEV_TIME:
        free_m = ST_MAX(top_m - dev->used_m, 0);
        sum = r->part[1][w->rank[ST_MIN(free_m, ST_WHOLE_M)]];
        free_m = free_m * ST_WHOLE_M / top_m;
        sum *= free_m;
        break;
    case ST_DEV_MIG:
        free_m = ST_WHOLE_M - ST_WHOLE_M / ST_MIG_MEMORY * __builtin_popcount(dev->mig_mask);
        for (int p = 0; p < ST_MIG_COUNT; p++) {
            if (r->slice[p] == 0)
                continue;
            int64_t room = st_mig_room(dev->mig_mask, dev->mig_compute, (st_mig)p);
            sum += ST_MIN(room * st_mig_footprint_m((st_mig)p), free_m) * r->slice[p];
        }
        break;
    case ST_DEV_WHOLE:
        break;
    }
    *ret_free_m = free_m;
    return sum;
}

static int32_t promise(st_waste *w, uint8_t mask, int compute)
{
    int32_t *known = &w->promise[mask][compute];
    if (*known == 0)
        *known = st_mig_promise(mask, compute);
    return *known;
}

/* The device with one slice more, where that leaves most; returns where. */
static int8_t carve(st_waste *w, const row *r, st_dev *dev, st_mig profile)
{
    st_dev best = {0};
    int64_t best_use = -1;
    int best_start = -1;
    int32_t best_promise = -1;
    for (int s = ST_MIG_MEMORY - 1; s >= 0; s--) {
        if (!st_mig_start_legal(profile, s) || st_mig_overlaps(dev->mig_mask, profile, s))
            continue;
        st_dev then = {.mode = ST_DEV_MIG};
        then.mig_mask = dev->mig_mask | st_mig_mask(profile, s);
        then.mig_compute =
            (uint8_t)ST_MIN(dev->mig_compute + st_mig_compute(profile), ST_MIG_COMPUTE);
        int64_t free_m, use = usable(w, r, &then, ST_WHOLE_M, &free_m);
        int32_t n = promise(w, then.mig_mask, then.mig_compute);
        if (use > best_use || (use == best_use && n > best_promise)) {
            best = then;
            best_use = use;
            best_promise = n;
            best_start = s;
        }
    }
    ST_ASSERT(best_start >= 0);
    *dev = best;
    return (int8_t)best_start;
}

/* The device with one task of the job more. */
static st_dev with_task(st_waste *w, const row *r, const st_dev *dev, const st_job *job,
                        int8_t *ret_mig_start)
{
    st_dev then = *dev;
    if (job->shape.level == ST_LEVEL_MIG) {
        *ret_mig_start = carve(w, r, &then, job->shape.profile);
        return then;
    }
    *ret_mig_start = -1;
    then.mode = job->shape.level == ST_LEVEL_MPS ? ST_DEV_MPS : ST_DEV_TIME;
    then.used_m += (int32_t)job->shape.share_m;
    return then;
}

/* ---- one node ---------------------------------------------------------------------------- */

/* What a node offers with so much CPU. */
typedef struct offer {
    const row *row;
    int64_t usable, free_m;
    int wholes;
    int64_t top_m;
} offer;

static offer look(const st_waste *w, const st_spot *spot, int64_t cpu_m)
{
    const st_node *node = spot->node;
    size_t rows = (size_t)(w->ncpu + 1);
    offer o = {.row = w->rows + (size_t)node->type * rows + rank_of(w->cpu, w->ncpu, cpu_m),
               .wholes = __builtin_popcount(spot->view->free),
               .top_m = spot->fleet->pools.v[node->pool].oversub_m};
    o.free_m = (int64_t)ST_WHOLE_M * o.wholes;
    o.usable = o.free_m * o.row->one;
    for (unsigned devs = spot->view->shared; devs; devs &= devs - 1) {
        int64_t free_m;
        o.usable += usable(w, o.row, &spot->view->dev[__builtin_ctz(devs)], o.top_m, &free_m);
        o.free_m += free_m;
    }
    return o;
}

static int64_t lacking(const short_of *s, int64_t free_m, int64_t amount)
{
    int64_t ratio = ST_MAX(amount, 0) * 1000 / free_m, at = ratio / s->step;
    if (at >= RATIOS)
        return 0;
    return free_m * (s->part[at] - (s->part[at] - s->part[at + 1]) * (ratio % s->step) / s->step);
}

static int64_t waste(const st_waste *w, const offer *o, int64_t cpu_m, int64_t ram_mib)
{
    if (o->free_m <= 0)
        return 0;
    int64_t use = o->usable + (int64_t)o->wholes * ST_WHOLE_M * o->row->whole[o->wholes];
    int64_t cpu = lacking(&w->cpu_short, o->free_m, cpu_m);
    int64_t ram = lacking(&w->ram_short, o->free_m, ram_mib);
    return (o->free_m * ONE - use) / 2 + ST_MAX(cpu, ram);
}

static int fullness(const st_dev *dev)
{
    return dev->mode == ST_DEV_FREE  ? 0
           : dev->mode == ST_DEV_MIG ? 1 + __builtin_popcount(dev->mig_mask)
                                     : 1 + dev->used_m;
}

static bool alike(const st_dev *a, const st_dev *b)
{
    return a->mode == b->mode && a->mig_mask == b->mig_mask && a->mig_compute == b->mig_compute &&
           a->used_m == b->used_m;
}

/* The best device for one slice or share, -1: none; *o becomes the offer with it. */
static int best_dev(st_waste *w, const st_spot *spot, const st_job *job, offer *o,
                    int8_t *ret_mig_start)
{
    int best = -1, best_fill = -1;
    int64_t best_use = INT64_MIN;
    offer with = *o;
    unsigned tried = 0;
    for (unsigned devs = spot->devs & (spot->view->free | spot->view->shared); devs;
         devs &= devs - 1) {
        int d = __builtin_ctz(devs);
        const st_dev *dev = &spot->view->dev[d];
        bool again = tried != 0 && alike(dev, &spot->view->dev[__builtin_ctz(tried)]);
        if (again || st_dev_room(spot->fleet, spot->tree, spot->node, job, dev) < 1)
            continue;
        tried = 1u << d;
        int8_t start;
        st_dev then = with_task(w, o->row, dev, job, &start);
        int64_t had_m, has_m, had = usable(w, o->row, dev, o->top_m, &had_m);
        offer next = *o;
        next.usable += usable(w, o->row, &then, o->top_m, &has_m) - had;
        next.free_m += has_m - had_m;
        next.wholes -= dev->mode == ST_DEV_FREE;
        int64_t use = next.usable + (int64_t)next.wholes * ST_WHOLE_M * o->row->whole[next.wholes];
        /* Not what is free: of shares with an oversubscribed GPU to choose from, that differs. */
        use -= next.free_m * ONE;
        int fill = fullness(dev);
        if (use > best_use || (use == best_use && fill > best_fill)) {
            best = d;
            best_use = use;
            best_fill = fill;
            with = next;
            *ret_mig_start = start;
        }
    }
    *o = with;
    return best;
}

int st_waste_pick(st_waste *w, const st_spot *spot, const st_job *job, int8_t *ret_mig_start)
{
    offer o = look(w, spot, spot->view->cpu_free_m - job->shape.cpu_m);
    return best_dev(w, spot, job, &o, ret_mig_start);
}

int64_t st_waste_cost(st_waste *w, const st_spot *spot, const st_job *job)
{
    if (spot->node->type < 0)
        return 0;
    int64_t cpu_m = spot->view->cpu_free_m, ram_mib = spot->view->ram_free_mib;
    offer o = look(w, spot, cpu_m);
    int64_t before = waste(w, &o, cpu_m, ram_mib);
    cpu_m -= job->shape.cpu_m;
    ram_mib -= st_task_ram_mib(job);
    o = look(w, spot, cpu_m);
    int8_t start;
    if (job->shape.gpus > 0 && job->shape.level == ST_LEVEL_WHOLE) {
        int64_t took_m = (int64_t)ST_WHOLE_M * job->shape.gpus;
        o.wholes -= job->shape.gpus;
        o.free_m -= took_m;
        o.usable -= took_m * o.row->one;
    } else if (job->shape.gpus > 0) {
        best_dev(w, spot, job, &o, &start);
    }
    return (waste(w, &o, cpu_m, ram_mib) - before) / ONE;
}
