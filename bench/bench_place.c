/* What learning the workload is worth to the core's own placement: the same stream of jobs
 * played twice, with policy learn_workload off (the fullest place is taken) and on. Prints, per
 * mix, how many arrivals had to wait, how long on average, and how much GPU stood free while
 * somebody waited, as the mean over seeds. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "core/core.h"

#define NODES   64
#define JOBS    6000
#define WARM    1500 /* arrivals that are not counted */
#define SEEDS   5
#define HOUR_MS INT64_C(3600000)

typedef enum mix { WHOLE, UNEVEN, SHARES, SLICES, MIXED, TYPES, MIXES } mix;
static const char *const mix_names[MIXES] = {"whole GPUs", "uneven CPU",  "shares",
                                             "MIG slices", "all of them", "two types"};

typedef struct plan {
    st_job_spec spec;
    int64_t at_ms, runs_ms;
    int64_t end_ms; /* 0: not started */
} plan;

typedef struct result {
    double waited, wait_min, stranded;
} result;

static void must(int rc, const st_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_place: %s\n", err->msg);
        exit(1);
    }
}

static void step(st_core *core, const st_event *ev, int64_t now, st_effects *fx)
{
    st_err err;
    must(st_core_step(core, ev, now, fx, &err), &err);
}

static void build(st_core *core, mix m, st_effects *fx)
{
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    step(core, &ev, 0, fx);
    ev.u.type.name = "a100-80";
    ev.u.type.board = ST_BOARD_A100_80;
    step(core, &ev, 0, fx);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = (1u << ST_LEVEL_COUNT) - 1;
    ev.u.pool.oversub_m = 1000;
    step(core, &ev, 0, fx);
    for (int i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%d", i);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = name, .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20};
        if (m == TYPES && i % 2 > 0) /* the second type has less CPU beside its GPUs */
            ev.u.node.type = 1, ev.u.node.cpu_m = 80000;
        step(core, &ev, 0, fx);
    }
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "a";
    step(core, &ev, 0, fx);
}

/* Tasks of a mix: how often, level, GPUs or share or profile, milli-CPU. */
typedef struct row {
    int often;
    st_level level;
    int gpus, share_m;
    st_mig profile;
    int cpu_m;
} row;

static const row whole_rows[] = {{35, ST_LEVEL_WHOLE, 1, 0, 0, 12000},
                                 {10, ST_LEVEL_WHOLE, 1, 0, 0, 32000},
                                 {20, ST_LEVEL_WHOLE, 2, 0, 0, 24000},
                                 {20, ST_LEVEL_WHOLE, 4, 0, 0, 48000},
                                 {15, ST_LEVEL_WHOLE, 8, 0, 0, 96000}};
static const row uneven_rows[] = {
    {35, ST_LEVEL_WHOLE, 1, 0, 0, 6000},  {15, ST_LEVEL_WHOLE, 1, 0, 0, 40000},
    {20, ST_LEVEL_WHOLE, 2, 0, 0, 12000}, {20, ST_LEVEL_WHOLE, 4, 0, 0, 24000},
    {5, ST_LEVEL_WHOLE, 8, 0, 0, 48000},  {5, ST_LEVEL_WHOLE, 0, 0, 0, 24000}};
static const row share_rows[] = {{20, ST_LEVEL_MPS, 1, 250, 0, 4000},
                                 {25, ST_LEVEL_MPS, 1, 500, 0, 8000},
                                 {20, ST_LEVEL_MPS, 1, 750, 0, 8000},
                                 {20, ST_LEVEL_WHOLE, 1, 0, 0, 12000},
                                 {15, ST_LEVEL_WHOLE, 4, 0, 0, 48000}};
static const row slice_rows[] = {
    {35, ST_LEVEL_MIG, 1, 0, ST_MIG_1G, 2000}, {10, ST_LEVEL_MIG, 1, 0, ST_MIG_1G2, 2000},
    {15, ST_LEVEL_MIG, 1, 0, ST_MIG_2G, 4000}, {20, ST_LEVEL_MIG, 1, 0, ST_MIG_3G, 6000},
    {10, ST_LEVEL_MIG, 1, 0, ST_MIG_4G, 6000}, {10, ST_LEVEL_WHOLE, 1, 0, 0, 12000}};
static const row mixed_rows[] = {
    {15, ST_LEVEL_MPS, 1, 250, 0, 4000},       {15, ST_LEVEL_MPS, 1, 500, 0, 8000},
    {15, ST_LEVEL_MIG, 1, 0, ST_MIG_1G, 2000}, {10, ST_LEVEL_MIG, 1, 0, ST_MIG_3G, 6000},
    {5, ST_LEVEL_MIG, 1, 0, ST_MIG_4G, 6000},  {20, ST_LEVEL_WHOLE, 1, 0, 0, 12000},
    {8, ST_LEVEL_WHOLE, 4, 0, 0, 48000},       {4, ST_LEVEL_WHOLE, 8, 0, 0, 96000},
    {8, ST_LEVEL_WHOLE, 0, 0, 0, 16000}};
static const row types_rows[] = {
    {25, ST_LEVEL_WHOLE, 1, 0, 0, 12000}, {15, ST_LEVEL_WHOLE, 2, 0, 0, 16000},
    {15, ST_LEVEL_WHOLE, 1, 0, 0, 12000}, {15, ST_LEVEL_WHOLE, 4, 0, 0, 48000},
    {15, ST_LEVEL_WHOLE, 1, 0, 0, 8000},  {10, ST_LEVEL_WHOLE, 4, 0, 0, 32000},
    {5, ST_LEVEL_MPS, 1, 500, 0, 4000}};
static const uint32_t types_allowed[] = {0, 0, 1, 1, 2, 0, 0}; /* bits of them; 0: any */

static const row *draw_row(st_rng *rng, mix m)
{
    static const struct {
        const row *v;
        size_t n;
    } rows[MIXES] = {
        {whole_rows, ST_ARRAY_LEN(whole_rows)}, {uneven_rows, ST_ARRAY_LEN(uneven_rows)},
        {share_rows, ST_ARRAY_LEN(share_rows)}, {slice_rows, ST_ARRAY_LEN(slice_rows)},
        {mixed_rows, ST_ARRAY_LEN(mixed_rows)}, {types_rows, ST_ARRAY_LEN(types_rows)}};
    int dice = (int)st_rng_below(rng, 100);
    for (size_t i = 0; i < rows[m].n; i++)
        if ((dice -= rows[m].v[i].often) < 0)
            return &rows[m].v[i];
    return &rows[m].v[rows[m].n - 1];
}

/* Arrivals that ask for `load_m` thousandths of the fleet, in the long run. */
static plan *draw(mix m, int64_t load_m, uint64_t seed)
{
    st_rng rng;
    st_rng_seed(&rng, seed);
    plan *plans = st_xcalloc(JOBS, sizeof *plans);
    int64_t asked = 0; /* milli-GPU x ms */
    for (int i = 0; i < JOBS; i++) {
        const row *r = draw_row(&rng, m);
        st_job_spec *s = &plans[i].spec;
        *s = (st_job_spec){.id = (uint64_t)i + 1, .account = "a", .user = "u", .pool = -1};
        s->name = "j";
        s->tasks = 1;
        s->shape = (st_shape){.level = r->level,
                              .gpus = r->gpus,
                              .profile = r->profile,
                              .share_m = r->share_m,
                              .cpu_m = r->cpu_m,
                              .ram_mib = 65536 * (int64_t)ST_MAX(r->gpus, 1)};
        if (m == TYPES)
            s->shape.types = types_allowed[r - types_rows];
        if (r->level != ST_LEVEL_WHOLE)
            s->shape.ram_mib = 16384;
        s->yield = ST_YIELD_REQUEUE;
        s->limit_ms = ST_TIME_NEVER;
        plans[i].runs_ms = HOUR_MS / 4 + (int64_t)st_rng_below(&rng, 4 * HOUR_MS);
        asked += st_shape_gpu_m(&s->shape) * plans[i].runs_ms;
    }
    int64_t span_ms = asked / (NODES * 8 * load_m);
    for (int i = 0; i < JOBS; i++)
        plans[i].at_ms = span_ms * i / JOBS;
    return plans;
}

static int64_t free_m(const st_core *core)
{
    const st_fleet *fleet = st_core_fleet(core);
    int64_t sum = 0;
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        const st_view *view = &fleet->nodes.v[i]->view;
        for (int d = 0; d < fleet->nodes.v[i]->ndevs; d++) {
            const st_dev *dev = &view->dev[d];
            if (dev->mode == ST_DEV_FREE)
                sum += 1000;
            else if (dev->mode == ST_DEV_MPS)
                sum += 1000 - dev->used_m;
            else if (dev->mode == ST_DEV_MIG)
                sum += 1000 - 125 * __builtin_popcount(dev->mig_mask);
        }
    }
    return sum;
}

static int next_end(const plan *plans)
{
    int best = -1;
    for (int i = 0; i < JOBS; i++)
        if (plans[i].end_ms > 0 && (best < 0 || plans[i].end_ms < plans[best].end_ms))
            best = i;
    return best;
}

typedef struct play {
    plan *plans;
    st_core *core;
    st_effects fx;
    int64_t now, waiting;
    double waited, wait_ms, stranded, span;
} play;

static void pass_time(play *p, int64_t to, bool counted)
{
    double ms = (double)(to - p->now);
    if (counted) {
        p->span += ms;
        if (p->waiting > 0)
            p->stranded += ms * (double)free_m(p->core);
    }
    p->now = to;
}

static void note(play *p)
{
    for (size_t i = 0; i < p->fx.list.n; i++) {
        const st_effect *e = &p->fx.list.v[i];
        plan *pl = e->job ? &p->plans[e->job - 1] : NULL;
        if (e->kind != ST_FX_START)
            continue;
        pl->end_ms = p->now + pl->runs_ms;
        if (pl->at_ms < p->now) {
            p->waiting--;
            if (e->job > WARM)
                p->wait_ms += (double)(p->now - pl->at_ms);
        }
    }
}

static result run(mix m, int64_t load_m, uint64_t seed, bool learn)
{
    st_policy policy = st_policy_default();
    policy.learn = learn;
    policy.reservations = 1;
    play p = {.plans = draw(m, load_m, seed), .core = st_core_new(&policy)};
    build(p.core, m, &p.fx);
    for (int i = 0; i < JOBS;) {
        int end = next_end(p.plans);
        bool ends = end >= 0 && p.plans[end].end_ms <= p.plans[i].at_ms;
        pass_time(&p, ends ? p.plans[end].end_ms : p.plans[i].at_ms, i > WARM);
        st_event ev = {.kind = ends ? ST_EV_FINISH : ST_EV_SUBMIT};
        st_effects_clear(&p.fx);
        if (ends) {
            ev.u.finish.id = p.plans[end].spec.id;
            p.plans[end].end_ms = -1;
        } else {
            ev.u.job = p.plans[i].spec;
        }
        step(p.core, &ev, p.now, &p.fx);
        note(&p);
        if (!ends) {
            bool waits = p.plans[i].end_ms == 0;
            p.waiting += waits;
            p.waited += waits && i >= WARM;
            i++;
        }
    }
    result r = {100 * p.waited / (JOBS - WARM), p.wait_ms / (JOBS - WARM) / 60000,
                100 * p.stranded / (p.span * NODES * 8 * 1000)};
    st_effects_done(&p.fx);
    st_core_free(p.core);
    free(p.plans);
    return r;
}

int main(void)
{
    static const int64_t loads_m[] = {900, 980};
    printf("%-12s %5s  %-9s %9s %14s %16s\n", "mix", "load", "places", "waited %", "mean wait, min",
           "free, waiting %");
    for (mix m = 0; m < MIXES; m++) {
        for (size_t l = 0; l < ST_ARRAY_LEN(loads_m); l++) {
            for (int learn = 0; learn < 2; learn++) {
                result sum = {0};
                for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                    result r = run(m, loads_m[l], seed, learn);
                    sum.waited += r.waited / SEEDS;
                    sum.wait_min += r.wait_min / SEEDS;
                    sum.stranded += r.stranded / SEEDS;
                }
                printf("%-12s %4.0f%%  %-9s %9.2f %14.2f %16.2f\n", mix_names[m],
                       (double)loads_m[l] / 10, learn ? "learned" : "fullest", sum.waited,
                       sum.wait_min, sum.stranded);
                fflush(stdout);
            }
        }
    }
    return 0;
}
