/*
 * The measure of a node (frag.h), and what an arrival would add to it, from the tables of
 * frag_target.c. In milli-GPU / 65536 until the very end, so that only the steps round.
 */
#include "place/frag_state.h"

/* What a node offers, as the tables want it. */
typedef struct offer {
    const int32_t *one;
    const int32_t *whole;
    int64_t usable; /* by one-GPU classes */
    int32_t wholes; /* free whole GPUs */
} offer;

static int32_t cpu_rank(const frag_target *t, int32_t cpu_m)
{
    int32_t lo = 0, hi = t->ncpu;

    while (lo < hi) {
        int32_t mid = (lo + hi) / 2;

        if (t->cpu[mid] <= cpu_m)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static offer look(const frag_target *t, const frag_node *n, int32_t cpu_m)
{
    size_t row = (size_t)n->type * (size_t)(t->ncpu + 1) + (size_t)cpu_rank(t, cpu_m);
    offer o = {t->one + row * (size_t)(t->npart + 1), t->whole + row * (ST_FRAG_GPUS_MAX + 1), 0,
               0};

    for (int i = 0; i < n->gpus; i++) {
        o.usable += (int64_t)n->free_m[i] * o.one[t->rank[n->free_m[i]]];
        o.wholes += n->free_m[i] == 1000;
    }
    return o;
}

/* Free GPU that the CPU beside it will not carry. */
static int64_t unbalanced(const frag_target *t, int32_t total_m, int32_t cpu_m)
{
    int64_t ratio, at;

    if (total_m <= 0)
        return 0;
    ratio = (int64_t)cpu_m * 1000 / total_m;
    at = ratio >> 8;
    if (at >= ST_FRAG_RATIOS)
        return 0;
    return total_m *
           (t->short_of[at] - ((t->short_of[at] - t->short_of[at + 1]) * (ratio & 255) >> 8));
}

static int64_t add_up(const frag_target *t, const offer *o, int32_t total_m, int32_t cpu_m)
{
    int64_t usable = o->usable + (int64_t)o->wholes * 1000 * o->whole[o->wholes];

    return ((int64_t)total_m * ST_FRAG_ONE - usable) / 2 + unbalanced(t, total_m, cpu_m);
}

int64_t st_frag_measure_raw(const st_frag *f, const frag_node *n)
{
    offer o;

    if (f->target.n == 0)
        return 0;
    o = look(&f->target, n, n->cpu_m);
    return add_up(&f->target, &o, n->total_m, n->cpu_m);
}

int16_t st_frag_steps(int64_t raw)
{
    const int64_t far = 16384;
    int64_t milli = (raw + ST_FRAG_STEP_M / 2 * ST_FRAG_ONE) >> 16;
    int64_t steps = (milli + far * ST_FRAG_STEP_M) / ST_FRAG_STEP_M - far;

    return (int16_t)ST_MAX(ST_MIN(steps, far), -far);
}

/* One GPU is shared: the one whose choice leaves the smallest measure. */
static int64_t best_share(const frag_target *t, const frag_node *n, const st_frag_ask *ask,
                          const offer *before, uint16_t *ret_devs)
{
    int32_t total_m = n->total_m - ask->gpu_m, cpu_m = n->cpu_m - ask->cpu_m, tried = -1;
    int64_t rest = unbalanced(t, total_m, cpu_m), best = INT64_MAX;

    for (int i = 0; i < n->gpus; i++) {
        int32_t had = n->free_m[i], has = had - ask->gpu_m, wholes;
        int64_t usable, left;

        if (has < 0 || had == tried)
            continue;
        tried = had;
        wholes = before->wholes - (had == 1000);
        usable = before->usable - (int64_t)had * before->one[t->rank[had]] +
                 (int64_t)has * before->one[t->rank[has]] +
                 (int64_t)wholes * 1000 * before->whole[wholes];
        left = ((int64_t)total_m * ST_FRAG_ONE - usable) / 2 + rest;
        if (left < best) {
            best = left;
            *ret_devs = (uint16_t)(1u << i);
        }
    }
    return best;
}

static int64_t take_wholes(const frag_target *t, const frag_node *n, const st_frag_ask *ask,
                           offer *o, uint16_t *ret_devs)
{
    int32_t left = ask->gpus;

    *ret_devs = 0;
    for (int i = 0; i < n->gpus && left > 0; i++) {
        if (n->free_m[i] < 1000)
            continue;
        *ret_devs = (uint16_t)(*ret_devs | 1u << i);
        left--;
    }
    o->wholes -= ask->gpus;
    o->usable -= (int64_t)ask->gpus * 1000 * o->one[t->rank[1000]];
    return add_up(t, o, n->total_m - ask->gpus * 1000, n->cpu_m - ask->cpu_m);
}

static bool has_room(const frag_node *n, const st_frag_ask *ask)
{
    int32_t enough = 0;

    if (n->cpu_m < ask->cpu_m || n->ram_mib < ask->ram_mib)
        return false;
    if (ask->gpus == 0)
        return true;
    if (!(ask->types >> n->type & 1) || n->total_m < ask->gpus * ask->gpu_m)
        return false;
    for (int i = 0; i < n->gpus; i++)
        enough += n->free_m[i] >= ask->gpu_m;
    return enough >= ask->gpus;
}

int16_t st_frag_score(const st_frag *f, const frag_node *n, const st_frag_ask *ask,
                      uint16_t *ret_devs)
{
    static const int32_t nothing[ST_FRAG_GPUS_MAX + 1] = {0};
    const frag_target *t = &f->target;
    offer o = {nothing, nothing, 0, 0};
    int64_t after;

    if (!has_room(n, ask))
        return ST_FRAG_NOWHERE;
    if (t->n > 0)
        o = look(t, n, n->cpu_m - ask->cpu_m);
    if (ask->gpus == 1 && ask->gpu_m < 1000)
        after = best_share(t, n, ask, &o, ret_devs);
    else
        after = take_wholes(t, n, ask, &o, ret_devs);
    return t->n > 0 ? st_frag_steps(after - n->measure) : 0;
}
