/*
 * Looking at a play now and then (trace/play.h): what is given out, who waits, what everybody
 * holds and would be entitled to, and how much of what is free a typical job could not use.
 *
 * Between two moments nothing changes, so a sample is exact for its time. What an account is
 * entitled to is worked out at samples only; each stands for the time until the next.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "share/divide.h"
#include "trace/play.h"

#define SAMPLES_WANTED 500
#define SAMPLES_MAX    2000
#define SAMPLE_MIN_MS  1000

/* ---- entitlements ------------------------------------------------------------------------------ */

/* One row per account and, behind them, one for what each asks for itself. */
static void begin_division(st_player *p)
{
    const st_trace *trace = p->trace;
    size_t n = trace->accounts.n;
    ST_CLEANUP(st_map_freep) st_map *ids = st_map_new();

    p->divide_in = st_xcalloc(2 * n + 1, sizeof(*p->divide_in));
    p->divide_out = st_xcalloc(2 * n + 1, sizeof(*p->divide_out));
    for (size_t i = 0; i < n; i++)
        st_map_put(ids, trace->accounts.v[i].name, (int64_t)i);
    for (size_t i = 0; i < n; i++) {
        const st_account_spec *a = &trace->accounts.v[i];
        int64_t parent = -1;

        if (a->parent)
            (void)st_map_get(ids, a->parent, &parent);
        p->divide_in[i] = (st_divide_in){
            .parent = (int)parent,
            .priority = a->priority,
            .name = a->name,
            .guarantee = (double)st_quota_gpu_m(&a->guarantee),
            .max = a->max.gpu_m == ST_UNSET ? INFINITY : (double)a->max.gpu_m,
            .weight = (double)a->weight_m / 1000,
        };
        p->divide_in[n + i] = (st_divide_in){.parent = (int)i, .max = INFINITY, .weight = 1};
    }
}

/* Appends what each account is entitled to now. */
static void entitle(st_player *p)
{
    size_t n = p->trace->accounts.n;

    for (size_t i = 0; i < n; i++)
        p->divide_in[n + i].demand = (double)p->accounts[i].demand_m;
    st_share_divide((double)p->capacity_m, (st_share_counts)p->options->policy.counts, p->divide_in,
                    (int)(2 * n), p->divide_out, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        st_vec_push(&p->run->entitled_m, llround(p->divide_out[n + i].share));
}

/* ---- typical jobs ------------------------------------------------------------------------------- */

static int by_jobs(const void *pa, const void *pb)
{
    const st_player_class *a = pa, *b = pb;

    return a->jobs > b->jobs ? -1 : a->jobs < b->jobs;
}

/* The commonest shapes with GPUs; equal ones in the order they first came, as merged here. */
static void find_classes(st_player *p)
{
    ST_VEC(st_player_class) all = {0};
    ST_CLEANUP(st_map_freep) st_map *ids = st_map_new();

    for (size_t i = 0; i < p->trace->jobs.n; i++) {
        const st_shape *s = &p->trace->jobs.v[i].shape;
        char key[160];
        int64_t at;

        if (s->gpus == 0)
            continue;
        snprintf(key, sizeof(key), "%x %d %d %d %lld %lld %lld", s->types, (int)s->level, s->gpus,
                 (int)s->profile, (long long)s->share_m, (long long)s->cpu_m,
                 (long long)s->ram_mib);
        if (!st_map_get(ids, key, &at)) {
            at = (int64_t)all.n;
            st_map_put(ids, key, at);
            st_vec_push(&all, (st_player_class){.shape = *s});
        }
        all.v[at].jobs++;
    }
    if (all.n > 0)
        qsort(all.v, all.n, sizeof(*all.v), by_jobs);
    p->nclasses = (int)ST_MIN(all.n, ST_PLAYER_CLASSES_MAX);
    for (int c = 0; c < p->nclasses; c++)
        p->classes[c] = all.v[c];
    st_vec_free(&all);
}

static int64_t dev_free_m(const st_dev *dev)
{
    switch ((st_dev_mode)dev->mode) {
    case ST_DEV_FREE:
        return ST_WHOLE_M;
    case ST_DEV_MIG:
        return ST_WHOLE_M - ST_WHOLE_M * dev->mig_compute / ST_MIG_COMPUTE;
    case ST_DEV_MPS:
    case ST_DEV_TIME:
        return ST_MAX(ST_WHOLE_M - dev->used_m, 0);
    case ST_DEV_WHOLE:
        break;
    }
    return 0;
}

/* Of the free GPU of a node, what one more task of the shape could be put on. */
static int64_t usable_m(const st_node *node, const st_shape *shape)
{
    const st_view *view = &node->view;
    int64_t asked_m = st_shape_gpu_m(shape), usable = 0;

    if (node->type < 0 || (shape->types && !(shape->types >> node->type & 1)) ||
        view->cpu_free_m < shape->cpu_m || view->ram_free_mib < shape->ram_mib)
        return 0;
    if (shape->level == ST_LEVEL_WHOLE) {
        int whole = __builtin_popcount(view->free);

        return whole >= shape->gpus ? (int64_t)whole * ST_WHOLE_M : 0;
    }
    for (int d = 0; d < node->ndevs; d++) {
        int64_t free_m = dev_free_m(&view->dev[d]);

        if (free_m >= asked_m)
            usable += free_m;
    }
    return usable;
}

/* The mean over typical jobs of what is free and of no use to them. */
static int64_t stranded_m(const st_player *p)
{
    const st_fleet *fleet = st_core_fleet(p->core);
    int64_t jobs = 0;
    st_i128 sum = 0;

    for (size_t n = 0; n < fleet->nodes.n; n++) {
        const st_node *node = fleet->nodes.v[n];
        int64_t free_m = (int64_t)__builtin_popcount(node->view.free) * ST_WHOLE_M;

        for (int d = 0; d < node->ndevs && node->view.shared; d++)
            if (node->view.shared >> d & 1)
                free_m += dev_free_m(&node->view.dev[d]);
        for (int c = 0; free_m > 0 && c < p->nclasses; c++)
            sum += (st_i128)(free_m - usable_m(node, &p->classes[c].shape)) *
                   (int64_t)p->classes[c].jobs;
    }
    for (int c = 0; c < p->nclasses; c++)
        jobs += (int64_t)p->classes[c].jobs;
    return jobs > 0 ? (int64_t)(sum / jobs) : 0;
}

/* ---- samples -------------------------------------------------------------------------------------- */

void st_player_sample_begin(st_player *p)
{
    p->sample_ms = p->options->sample_ms;
    p->thin = p->sample_ms == 0;
    if (p->thin)
        p->sample_ms = ST_MAX(p->run->last_submit_ms / SAMPLES_WANTED, SAMPLE_MIN_MS);
    begin_division(p);
    find_classes(p);
}

/* Counts what the last sample stands for, up to `to_ms`. */
static void close_sample(st_player *p, int64_t to_ms)
{
    size_t n = p->trace->accounts.n;
    int64_t ms;

    if (p->run->samples.n == 0)
        return;
    ms = to_ms - p->run->samples.v[p->run->samples.n - 1].at_ms;
    for (size_t i = 0; i < n; i++)
        p->run->accounts.v[i].entitled += p->run->entitled_m.v[p->run->entitled_m.n - n + i] * ms;
}

/* Leaves out every other sample. */
static void thin_out(st_player *p)
{
    size_t n = p->trace->accounts.n, kept = 0;
    st_trace_run *run = p->run;

    for (size_t i = 0; i < run->samples.n; i += 2, kept++) {
        run->samples.v[kept] = run->samples.v[i];
        memmove(&run->held_m.v[kept * n], &run->held_m.v[i * n], n * sizeof(*run->held_m.v));
        memmove(&run->entitled_m.v[kept * n], &run->entitled_m.v[i * n],
                n * sizeof(*run->entitled_m.v));
    }
    run->samples.n = kept;
    run->held_m.n = run->entitled_m.n = kept * n;
    p->sample_ms *= 2;
}

static void take_sample(st_player *p, int64_t at_ms)
{
    st_run_sample s = {
        .at_ms = at_ms,
        .capacity_m = p->capacity_m,
        .allocated_m = p->allocated_m,
        .stranded_m = stranded_m(p),
        .waiting = p->waiting,
        .waiting_m = p->waiting_m,
        .running = p->running,
    };

    close_sample(p, at_ms);
    st_player_idle(p, &s);
    st_vec_push(&p->run->samples, s);
    for (size_t i = 0; i < p->trace->accounts.n; i++)
        st_vec_push(&p->run->held_m, p->accounts[i].held_m);
    entitle(p);
}

void st_player_sample(st_player *p, int64_t until_ms)
{
    while (p->next_sample_ms < until_ms) {
        take_sample(p, p->next_sample_ms);
        /* An odd number, so that the last one stays and time is counted on from it. */
        if (p->thin && p->run->samples.n > SAMPLES_MAX)
            thin_out(p);
        p->next_sample_ms = p->run->samples.v[p->run->samples.n - 1].at_ms + p->sample_ms;
    }
}

void st_player_sample_end(st_player *p)
{
    st_player_sample(p, p->now + 1);
    close_sample(p, p->now);
}

void st_player_sample_done(st_player *p)
{
    free(p->divide_in);
    free(p->divide_out);
}
