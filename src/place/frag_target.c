/*
 * The typical workload as tables: from the counts of the classes seen so far, what share of them a
 * GPU, a node's CPU and a number of whole GPUs serve, so that the measure of a node is a handful of
 * lookups (frag_score.c). Derived anew each time the arrivals have doubled.
 */
#include "place/frag_state.h"

#include <string.h>

#include "base/mem.h"

void st_frag_target_done(frag_target *t)
{
    free(t->one);
    free(t->whole);
    t->one = t->whole = NULL;
}

/* The heaviest GPU classes, heaviest first; the older among equals. */
static void pick_typical(st_frag *f)
{
    frag_target *t = &f->target;

    t->n = 0;
    for (int32_t i = 0; i < f->nclasses; i++) {
        const frag_class *c = &f->classes[i];
        int32_t at;

        if (c->ask.gpus == 0 || c->weight == 0)
            continue;
        for (at = t->n; at > 0 && t->typical[at - 1].weight < c->weight; at--)
            if (at < ST_FRAG_TYPICAL)
                t->typical[at] = t->typical[at - 1];
        if (at < ST_FRAG_TYPICAL) {
            t->typical[at] = (frag_typical){c->ask, c->weight};
            t->n = ST_MIN(t->n + 1, ST_FRAG_TYPICAL);
        }
    }
}

/* Puts x into an ascending list without doubles. */
static void insert_sorted(int32_t *list, int32_t *n, int32_t x)
{
    int32_t at = *n;

    while (at > 0 && list[at - 1] > x)
        at--;
    if (at > 0 && list[at - 1] == x)
        return;
    memmove(list + at + 1, list + at, (size_t)(*n - at) * sizeof(*list));
    list[at] = x;
    ++*n;
}

static int32_t count_within(const int32_t *list, int32_t n, int32_t x)
{
    int32_t k = 0;

    while (k < n && list[k] <= x)
        k++;
    return k;
}

static void rank_values(frag_target *t)
{
    t->ncpu = t->npart = 0;
    for (int32_t i = 0; i < t->n; i++) {
        insert_sorted(t->cpu, &t->ncpu, t->typical[i].ask.cpu_m);
        insert_sorted(t->part, &t->npart, t->typical[i].ask.gpu_m);
    }
    for (int32_t m = 0; m <= 1000; m++)
        t->rank[m] = (uint8_t)count_within(t->part, t->npart, m);
}

/* Sums shares over both ranks, so that an entry counts all classes within it. */
static void accumulate(int32_t *table, int32_t rows, int32_t columns)
{
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 1; c < columns; c++)
            table[r * columns + c] += table[r * columns + c - 1];
    for (int32_t r = 1; r < rows; r++)
        for (int32_t c = 0; c < columns; c++)
            table[r * columns + c] += table[(r - 1) * columns + c];
}

static void fill_type(frag_target *t, int32_t type, int32_t *one, int32_t *whole)
{
    const int32_t parts = t->npart + 1, wholes = ST_FRAG_GPUS_MAX + 1;
    uint64_t sum = 0;

    for (int32_t i = 0; i < t->n; i++)
        if (t->typical[i].ask.types >> type & 1)
            sum += t->typical[i].weight;
    for (int32_t i = 0; i < t->n; i++) {
        const frag_typical *c = &t->typical[i];
        int32_t row = count_within(t->cpu, t->ncpu, c->ask.cpu_m), share;

        if (!(c->ask.types >> type & 1))
            continue;
        share = (int32_t)(c->weight * ST_FRAG_ONE / sum);
        if (c->ask.gpus == 1)
            one[row * parts + t->rank[c->ask.gpu_m]] += share;
        else if (c->ask.gpus <= ST_FRAG_GPUS_MAX)
            whole[row * wholes + c->ask.gpus] += share;
    }
    accumulate(one, t->ncpu + 1, parts);
    accumulate(whole, t->ncpu + 1, wholes);
}

/* For a node with x milli-CPU per free GPU: the part of a GPU that stays without CPU if arrivals of
 * one class filled it, averaged over the classes by the GPU they ask for. */
static void fill_short(frag_target *t)
{
    uint64_t sum = 0;

    memset(t->short_of, 0, sizeof(t->short_of));
    for (int32_t i = 0; i < t->n; i++)
        sum += t->typical[i].weight * (uint64_t)(t->typical[i].ask.gpus * t->typical[i].ask.gpu_m);
    for (int32_t i = 0; i < t->n; i++) {
        const frag_typical *c = &t->typical[i];
        int64_t gpu_m = (int64_t)c->ask.gpus * c->ask.gpu_m;
        int64_t ratio = ST_MIN((int64_t)c->ask.cpu_m * 1000 / gpu_m, ST_FRAG_RATIOS * 256);
        int64_t share = (int64_t)(c->weight * (uint64_t)gpu_m * ST_FRAG_ONE / sum);

        for (int64_t x = 0; x * 256 < ratio; x++)
            t->short_of[x] += (int32_t)(share * (ratio - x * 256) / ratio);
    }
}

void st_frag_target_derive(st_frag *f)
{
    frag_target *t = &f->target;
    size_t one, whole;

    pick_typical(f);
    rank_values(t);
    one = (size_t)(t->ncpu + 1) * (size_t)(t->npart + 1);
    whole = (size_t)(t->ncpu + 1) * (ST_FRAG_GPUS_MAX + 1);
    st_frag_target_done(t);
    t->one = st_xcalloc((size_t)f->ntypes * one, sizeof(*t->one));
    t->whole = st_xcalloc((size_t)f->ntypes * whole, sizeof(*t->whole));
    for (int32_t type = 0; type < f->ntypes; type++)
        fill_type(t, type, t->one + (size_t)type * one, t->whole + (size_t)type * whole);
    fill_short(t);
    f->epoch++;
    for (size_t i = 0; i < f->nodes.n; i++)
        f->nodes.v[i].measure = st_frag_measure_raw(f, &f->nodes.v[i]);
    for (size_t i = 0; i < f->kinds.n; i++)
        f->kinds.v[i].measure = st_frag_measure_raw(f, &f->kinds.v[i]);
}
