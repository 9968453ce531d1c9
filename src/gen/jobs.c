/*
 * What people submit: one function per kind (gen/gen.h), each making the shape, the run time and
 * the wishes of one job. All shapes fit every GPU type they name: at most 24 CPUs and 120 GiB of
 * memory to a GPU.
 */
#include <string.h>

#include "gen/plan.h"

#define GIB(n)    ((n)*INT64_C(1024))
#define ARRAY_MIN 4
#define ARRAY_MAX 64

static const char *const kind_words[] = {
#define X(id, word, part) [id] = word,
    ST_GEN_KIND_TABLE(X)
#undef X
};

const char *st_gen_kind_name(st_gen_kind kind)
{
    return kind_words[kind];
}

st_gen_kind st_gen_kind_of(const st_trace_job *job)
{
    for (int k = 0; k < ST_GEN_KIND_COUNT; k++) {
        size_t n = strlen(kind_words[k]);
        if (strncmp(job->name, kind_words[k], n) == 0 && (job->name[n] == '-' || !job->name[n]))
            return (st_gen_kind)k;
    }
    return ST_GEN_TRAIN;
}

/* x = log2(v) in 1/256, and back; straight lines between the powers of two. */
static int64_t log2_q8(int64_t v)
{
    int top = 63 - __builtin_clzll((uint64_t)v);

    return top * 256 + (int64_t)(((st_i128)(v - (INT64_C(1) << top)) * 256) >> top);
}

static int64_t exp2_q8(int64_t x)
{
    return (int64_t)(((st_i128)(256 + x % 256) << (x / 256)) / 256);
}

int64_t st_gen_skewed(st_rng *rng, int64_t lo, int64_t hi)
{
    int64_t a = log2_q8(lo), b = log2_q8(hi), x = 0;

    for (int i = 0; i < 3; i++)
        x += st_rng_range(rng, a, b);
    return ST_MIN(ST_MAX(exp2_q8(x / 3), lo), hi);
}

/* One of a list, by weight; both end with a weight of 0. */
typedef struct choice {
    int value;
    uint32_t weight;
} choice;

static int choose(st_rng *rng, const choice *list)
{
    uint64_t sum = 0, x;
    const choice *c = list;

    for (const choice *i = list; i->weight > 0; i++)
        sum += i->weight;
    x = st_rng_below(rng, sum);
    for (; x >= c->weight; c++)
        x -= c->weight;
    return c->value;
}

/* CPU and memory beside so many GPUs, or beside a share of one. */
static void beside(st_gen_plan *p, st_shape *s, int gpus)
{
    static const choice cpus[] = {{8, 20}, {12, 20}, {16, 40}, {24, 20}, {0, 0}};
    static const choice ram_gib[] = {{48, 25}, {64, 35}, {96, 25}, {120, 15}, {0, 0}};

    s->cpu_m = choose(&p->rng, cpus) * 1000 * gpus;
    s->ram_mib = GIB(choose(&p->rng, ram_gib)) * gpus;
}

static void whole(st_gen_plan *p, st_shape *s, int gpus)
{
    s->level = ST_LEVEL_WHOLE;
    s->gpus = gpus;
    beside(p, s, gpus);
}

static void part(st_gen_plan *p, st_shape *s, st_level level, int share_or_profile)
{
    static const choice cpus[] = {{2, 30}, {4, 50}, {8, 20}, {0, 0}};
    static const choice ram_gib[] = {{8, 30}, {16, 40}, {32, 30}, {0, 0}};

    s->level = level;
    s->gpus = 1;
    if (level == ST_LEVEL_MIG)
        s->profile = (st_mig)share_or_profile;
    else
        s->share_m = share_or_profile;
    s->cpu_m = choose(&p->rng, cpus) * 1000;
    s->ram_mib = GIB(choose(&p->rng, ram_gib));
}

/* ---- the kinds ---------------------------------------------------------------------- */

typedef void draw_fn(st_gen_plan *p, st_trace_job *j, int64_t gpus);

static int gang_pct(const st_gen_plan *p, int64_t mean_gpus);
static int64_t gang_gpus(st_gen_plan *p, int ratio_pct);

static void draw_train(st_gen_plan *p, st_trace_job *j, int64_t ratio_pct)
{
    int64_t gpus = gang_gpus(p, (int)ratio_pct);

    whole(p, &j->shape, ST_GEN_NODE_GPUS);
    j->tasks = (int)(gpus / ST_GEN_NODE_GPUS);
    if (p->types_large && st_rng_chance(&p->rng, gpus > 64 ? 70 : 35, 100))
        j->shape.types = p->types_large;
    if (j->tasks > 1) {
        j->topo = gpus <= 32 ? ST_TOPO_RACK : gpus <= 256 ? ST_TOPO_BLOCK : ST_TOPO_ZONE;
        j->topo_required =
            gpus <= 128 && gpus <= p->gang_max / 4 && st_rng_chance(&p->rng, 10, 100);
    }
    j->run_ms = st_gen_skewed(&p->rng, 2 * ST_GEN_HOUR_MS, 96 * ST_GEN_HOUR_MS);
    /* What runs for a week has begun before the trace does. */
    if (st_rng_chance(&p->rng, (uint64_t)j->run_ms, (uint64_t)(j->run_ms + p->window_ms)))
        j->submit_ms = st_rng_range(&p->rng, 0, 1800) * 1000;
    else
        j->submit_ms = st_gen_when(p, ST_GEN_WORKING);
    j->yield = st_rng_chance(&p->rng, 85, 100) ? ST_YIELD_CHECKPOINT : ST_YIELD_REQUEUE;
}

static void draw_tune(st_gen_plan *p, st_trace_job *j, int64_t unused)
{
    static const choice gpus[] = {{1, 30}, {2, 20}, {4, 25}, {8, 25}, {0, 0}};

    (void)unused;
    whole(p, &j->shape, choose(&p->rng, gpus));
    if (p->types_large && st_rng_chance(&p->rng, 20, 100))
        j->shape.types = p->types_large;
    j->run_ms = st_gen_skewed(&p->rng, 20 * ST_GEN_MINUTE_MS, 30 * ST_GEN_HOUR_MS);
    j->submit_ms = st_gen_when(p, ST_GEN_WORKING);
    j->yield = st_rng_chance(&p->rng, 60, 100) ? ST_YIELD_CHECKPOINT : ST_YIELD_REQUEUE;
}

/* The first of an array; st_gen_draw makes the others from it. */
static void draw_sweep(st_gen_plan *p, st_trace_job *j, int64_t unused)
{
    static const choice gpus[] = {{1, 75}, {2, 15}, {4, 10}, {0, 0}};

    (void)unused;
    whole(p, &j->shape, choose(&p->rng, gpus));
    j->run_ms = st_gen_skewed(&p->rng, 10 * ST_GEN_MINUTE_MS, 10 * ST_GEN_HOUR_MS);
    j->submit_ms = st_rng_chance(&p->rng, 55, 100) ? st_gen_before_deadline(p)
                                                   : st_gen_when(p, ST_GEN_WORKING);
    j->yield = ST_YIELD_REQUEUE;
    j->priority = st_rng_chance(&p->rng, 30, 100) ? -100 : 0;
}

static void draw_debug(st_gen_plan *p, st_trace_job *j, int64_t unused)
{
    static const choice gpus[] = {{1, 60}, {2, 15}, {4, 8}, {8, 17}, {0, 0}};

    (void)unused;
    whole(p, &j->shape, choose(&p->rng, gpus));
    j->run_ms = st_gen_skewed(&p->rng, 20000, 40 * ST_GEN_MINUTE_MS);
    j->submit_ms = st_gen_when(p, ST_GEN_WORKING);
    j->yield = st_rng_chance(&p->rng, 50, 100) ? ST_YIELD_CANCEL : ST_YIELD_REQUEUE;
}

static void draw_notebook(st_gen_plan *p, st_trace_job *j, int64_t unused)
{
    static const choice shares_m[] = {{125, 15}, {250, 50}, {500, 35}, {0, 0}};
    static const choice profiles[] = {{ST_MIG_1G, 55}, {ST_MIG_2G, 30}, {ST_MIG_3G, 15}, {0, 0}};
    uint64_t how = st_rng_below(&p->rng, 100);

    (void)unused;
    if (how < 45)
        part(p, &j->shape, ST_LEVEL_TIME, choose(&p->rng, shares_m));
    else if (how < 70)
        part(p, &j->shape, ST_LEVEL_MIG, choose(&p->rng, profiles));
    else
        whole(p, &j->shape, 1);
    j->run_ms = st_gen_skewed(&p->rng, 30 * ST_GEN_MINUTE_MS, 11 * ST_GEN_HOUR_MS);
    j->submit_ms = st_gen_when(p, ST_GEN_OFFICE);
    /* A slice cannot be paused. */
    j->yield = j->shape.level == ST_LEVEL_MIG ? ST_YIELD_REQUEUE : ST_YIELD_PAUSE;
}

static void draw_serve(st_gen_plan *p, st_trace_job *j, int64_t unused)
{
    static const choice shares_m[] = {{100, 15}, {200, 25}, {250, 25},
                                      {300, 15}, {500, 20}, {0, 0}};
    static const choice profiles[] = {
        {ST_MIG_1G, 30}, {ST_MIG_1G2, 20}, {ST_MIG_2G, 25}, {ST_MIG_3G, 25}, {0, 0}};
    static const choice gpus[] = {{1, 45}, {2, 25}, {4, 20}, {8, 10}, {0, 0}};
    uint64_t how = st_rng_below(&p->rng, 100);

    (void)unused;
    if (how < 50)
        part(p, &j->shape, ST_LEVEL_MPS, choose(&p->rng, shares_m));
    else if (how < 75)
        part(p, &j->shape, ST_LEVEL_MIG, choose(&p->rng, profiles));
    else
        whole(p, &j->shape, choose(&p->rng, gpus));
    j->run_ms = st_gen_skewed(&p->rng, 8 * ST_GEN_HOUR_MS, 20 * ST_GEN_DAY_MS);
    /* Most are there when the trace begins; the others are new versions. */
    j->submit_ms = st_rng_chance(&p->rng, 40, 100) ? st_rng_range(&p->rng, 0, 900) * 1000
                                                   : st_gen_when(p, ST_GEN_STEADY);
    j->run_ms = ST_MIN(j->run_ms, p->window_ms - j->submit_ms);
    j->yield = ST_YIELD_REQUEUE;
    j->priority = 100;
}

static draw_fn *const draws[ST_GEN_KIND_COUNT] = {
    [ST_GEN_TRAIN] = draw_train, [ST_GEN_TUNE] = draw_tune,         [ST_GEN_SWEEP] = draw_sweep,
    [ST_GEN_DEBUG] = draw_debug, [ST_GEN_NOTEBOOK] = draw_notebook, [ST_GEN_SERVE] = draw_serve,
};

/* ---- gangs -------------------------------------------------------------------------- */

/* Sizes are 8, 16, 32 ... gang_max GPUs, each ratio_pct times as frequent as the one before. */
static int64_t gang_mean(const st_gen_plan *p, int ratio_pct)
{
    uint64_t weight = 1000000, sum = 0, gpus = 0;

    for (int size = ST_GEN_NODE_GPUS; size <= p->gang_max; size *= 2) {
        sum += weight;
        gpus += weight * (uint64_t)size;
        weight = weight * (uint64_t)ratio_pct / 100;
    }
    return (int64_t)(gpus / sum);
}

static int gang_pct(const st_gen_plan *p, int64_t mean_gpus)
{
    int pct = 20;

    while (pct < 250 && gang_mean(p, pct) < mean_gpus)
        pct += 5;
    return pct;
}

static int64_t gang_gpus(st_gen_plan *p, int ratio_pct)
{
    uint64_t weight = 1000000, sum = 0, x;
    int size = ST_GEN_NODE_GPUS;

    for (; size <= p->gang_max; size *= 2) {
        sum += weight;
        weight = weight * (uint64_t)ratio_pct / 100;
    }
    x = st_rng_below(&p->rng, sum);
    weight = 1000000;
    for (size = ST_GEN_NODE_GPUS; x >= weight; size *= 2) {
        x -= weight;
        weight = weight * (uint64_t)ratio_pct / 100;
    }
    return size;
}

/* ---- whose -------------------------------------------------------------------------- */

static const st_gen_team *whose_team(st_gen_plan *p)
{
    size_t lo = 0, hi = p->teams.n - 1;
    uint64_t x = st_rng_below(&p->rng, p->teams.v[hi].demand);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (p->teams.v[mid].demand > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return &p->teams.v[lo];
}

/* Few users submit most jobs, and for every kind these are others. */
static void whose(st_gen_plan *p, st_trace_job *j, st_gen_kind kind)
{
    const st_gen_team *team = whose_team(p);
    uint64_t n = (uint64_t)team->users, x = st_rng_below(&p->rng, 1024);
    uint64_t rank = (x * x * x * n) >> 30;
    const st_gen_user *u =
        &p->users.v[(uint64_t)team->first_user + (rank + (uint64_t)kind * (n / 4 + 1)) % n];

    j->account = team->account;
    j->user = u->name;
    j->limit_ms = kind == ST_GEN_SERVE ? ST_TIME_NEVER
                                       : st_rng_range(&p->rng, u->limit_lo_pct, u->limit_hi_pct);
}

void st_gen_draw(st_gen_plan *p, st_gen_kind kind, int64_t count, int64_t mean_gpus)
{
    int64_t ratio_pct = kind == ST_GEN_TRAIN ? gang_pct(p, mean_gpus) : 0;

    while (count > 0) {
        st_trace_job j = {.name = kind_words[kind], .tasks = 1};
        int64_t members = 1, run_ms;

        draws[kind](p, &j, ratio_pct);
        whose(p, &j, kind);
        if (kind == ST_GEN_SWEEP)
            members = st_gen_skewed(&p->rng, ARRAY_MIN, ARRAY_MAX);
        members = ST_MIN(members, count);
        run_ms = j.run_ms;
        for (int64_t i = 0; i < members; i++) {
            if (members > 1)
                j.run_ms = run_ms * st_rng_range(&p->rng, 60, 140) / 100;
            j.run_ms = ST_MAX(j.run_ms / 1000, 1) * 1000;
            st_vec_push(&p->trace->jobs, j);
        }
        count -= members;
    }
}
