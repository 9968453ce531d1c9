/* What forecasts of run times are worth: a stream of jobs whose users declare limits two to ten
 * times too long, through a fleet of 32 nodes of 8 GPUs, with the policy's `forecast` off and on.
 * Prints waits, how full the fleet was, how far off reserved starts and start estimates were.
 * The same seeds give the same jobs in every row; how many is the argument. bench/README.md keeps
 * the numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "core/core.h"

#define NODES     32
#define ACCOUNTS  4
#define USERS     12
#define KINDS     3
#define JOBS      2000
#define SEEDS_MAX 100
#define MINUTE    INT64_C(60000)
#define LOOK_MS   (30 * MINUTE) /* how often waiting jobs are told when they should start */

typedef struct job {
    int account, user, kind, tasks, gpus;
    int64_t submit_ms, run_ms, limit_ms;
    int64_t start_ms, end_ms; /* -1 not yet */
    int64_t told_ms, lo_ms, hi_ms;
    int64_t reserved_ms; /* as first reserved; -1 never */
    bool told, margin;
} job;

typedef struct kind {
    int tasks, gpus;
    int64_t run_ms, limit_ms; /* what is usual, what is declared */
} kind;

typedef struct world {
    st_core *core;
    st_effects fx;
    job *jobs;
    size_t next; /* to submit */
    ST_VEC(size_t) running;
    int64_t now;
    int64_t busy; /* GPU x ms until the last submit */
} world;

static void must(int rc, const st_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "bench_backfill: %s\n", err->msg);
        exit(1);
    }
}

/* ---- the stream ------------------------------------------------------------------------ */

static kind random_kind(st_rng *rng)
{
    kind k = {.tasks = 1, .gpus = 1 << st_rng_below(rng, 4)};
    if (st_rng_chance(rng, 1, 4)) {
        k.gpus = 8;
        k.tasks = 2 << st_rng_below(rng, 3); /* 2 to 16 nodes */
    }
    k.run_ms = st_rng_range(rng, 5, 60) * MINUTE * (st_rng_chance(rng, 1, 4) ? 6 : 1);
    k.limit_ms = k.run_ms * st_rng_range(rng, 2, 10);
    return k;
}

static int64_t job_load(const job *j)
{
    return (int64_t)j->tasks * j->gpus * j->run_ms;
}

/* Arrivals so that `load` percent of the fleet is asked for. */
static job *make_stream(uint64_t seed, int load, int limitless)
{
    st_rng rng;
    st_rng_seed(&rng, seed);
    kind kinds[USERS][KINDS];
    for (int u = 0; u < USERS; u++)
        for (int k = 0; k < KINDS; k++)
            kinds[u][k] = random_kind(&rng);
    job *jobs = st_xcalloc(JOBS, sizeof *jobs);
    int64_t sum = 0;
    for (int i = 0; i < JOBS; i++) {
        int u = (int)st_rng_below(&rng, USERS), k = (int)st_rng_below(&rng, KINDS);
        const kind *of = &kinds[u][k];
        jobs[i] = (job){.account = u % ACCOUNTS, .user = u, .kind = k};
        jobs[i].tasks = of->tasks;
        jobs[i].gpus = of->gpus;
        jobs[i].limit_ms = of->limit_ms;
        jobs[i].run_ms = of->run_ms * st_rng_range(&rng, 60, 140) / 100;
        if (st_rng_chance(&rng, 1, 12)) /* fails early */
            jobs[i].run_ms /= 10;
        else if (st_rng_chance(&rng, 1, 12)) /* hangs, until its limit */
            jobs[i].run_ms = of->limit_ms;
        if ((int)st_rng_below(&rng, 100) < limitless)
            jobs[i].limit_ms = ST_TIME_NEVER;
        jobs[i].start_ms = jobs[i].end_ms = jobs[i].reserved_ms = -1;
        sum += job_load(&jobs[i]);
    }
    int64_t gap = sum / JOBS * 100 / load / (NODES * 8), at = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i].submit_ms = at;
        at += st_rng_range(&rng, 0, 2 * gap);
    }
    return jobs;
}

/* ---- playing --------------------------------------------------------------------------- */

static st_core *build(const st_policy *policy, st_effects *fx)
{
    st_err err;
    st_core *core = st_core_new(policy);
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    must(st_core_apply(core, &ev, 0, fx, &err), &err);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = 1u << ST_LEVEL_WHOLE;
    ev.u.pool.oversub_m = 1000;
    must(st_core_apply(core, &ev, 0, fx, &err), &err);
    for (int i = 0; i < NODES; i++) {
        char name[32];
        snprintf(name, sizeof name, "n%d", i);
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = name, .ndevs = 8, .cpu_m = 64000, .ram_mib = 500000};
        must(st_core_apply(core, &ev, 0, fx, &err), &err);
    }
    for (int i = 0; i < ACCOUNTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "a%d", i);
        ev = (st_event){.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        ev.u.account.name = name;
        must(st_core_apply(core, &ev, 0, fx, &err), &err);
    }
    st_core_pass(core, 0, fx);
    return core;
}

static void hear(world *w)
{
    for (size_t i = 0; i < w->fx.list.n; i++) {
        const st_effect *e = &w->fx.list.v[i];
        if (e->job == 0)
            continue;
        size_t at = e->job - 1;
        if (e->kind == ST_FX_START) {
            w->jobs[at].start_ms = w->now;
            st_vec_push(&w->running, at);
        } else if (e->kind == ST_FX_END) {
            w->jobs[at].end_ms = w->now;
            for (size_t r = 0; r < w->running.n; r++)
                if (w->running.v[r] == at)
                    st_vec_remove(&w->running, r);
        }
    }
    st_reserved_list list = {0};
    st_core_reserved(w->core, &list);
    for (size_t i = 0; i < list.n; i++) {
        job *j = &w->jobs[list.v[i].job - 1];
        if (j->reserved_ms < 0)
            j->reserved_ms = list.v[i].at_ms;
    }
    st_vec_free(&list);
}

static void step(world *w, const st_event *ev)
{
    st_err err;
    st_effects_clear(&w->fx);
    must(st_core_step(w->core, ev, w->now, &w->fx, &err), &err);
    hear(w);
}

static void submit(world *w)
{
    const job *j = &w->jobs[w->next];
    char name[32], account[32], user[32];
    snprintf(name, sizeof name, "kind%c-%zu", 'a' + j->kind, w->next);
    snprintf(account, sizeof account, "a%d", j->account);
    snprintf(user, sizeof user, "u%d", j->user);
    st_event ev = {.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = ++w->next,
                             .name = name,
                             .account = account,
                             .user = user,
                             .pool = -1,
                             .tasks = j->tasks,
                             .shape = {.gpus = j->gpus},
                             .limit_ms = j->limit_ms,
                             .yield = ST_YIELD_REQUEUE};
    step(w, &ev);
}

/* Tell everybody who waits and was not told yet when to expect a start. */
static void tell(world *w)
{
    st_estimates list = {0};
    st_err err;
    must(st_core_estimate(w->core, &list, &err), &err);
    for (size_t i = 0; i < list.n; i++) {
        const st_estimate *e = &list.v[i];
        job *j = &w->jobs[e->job - 1];
        if (j->told || e->start_ms == ST_TIME_NEVER)
            continue;
        j->told = true;
        j->margin = e->seen > 0;
        j->told_ms = e->start_ms;
        j->lo_ms = e->lo_ms;
        j->hi_ms = e->hi_ms;
        st_event ev = {.kind = ST_EV_TOLD};
        ev.u.told.id = e->job;
        ev.u.told.start_ms = e->start_ms;
        step(w, &ev);
    }
    st_vec_free(&list);
}

/* The running job that ends next by itself. */
static size_t next_end(const world *w, int64_t *ret_ms)
{
    size_t best = 0;
    *ret_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < w->running.n; i++) {
        const job *j = &w->jobs[w->running.v[i]];
        if (j->start_ms + j->run_ms < *ret_ms) {
            *ret_ms = j->start_ms + j->run_ms;
            best = w->running.v[i];
        }
    }
    return best;
}

static void play(world *w)
{
    int64_t look = LOOK_MS;
    int64_t last = w->jobs[JOBS - 1].submit_ms;
    for (;;) {
        int64_t end_ms, timer = st_core_next_timer(w->core);
        size_t ending = next_end(w, &end_ms);
        int64_t arrive = w->next < JOBS ? w->jobs[w->next].submit_ms : ST_TIME_NEVER;
        if (end_ms == ST_TIME_NEVER && arrive == ST_TIME_NEVER)
            return;
        int64_t at = ST_MIN(ST_MIN(end_ms, arrive), ST_MIN(timer, look));
        for (size_t i = 0; i < w->running.n; i++) {
            const job *j = &w->jobs[w->running.v[i]];
            w->busy += (int64_t)j->tasks * j->gpus * ST_MAX(ST_MIN(at, last) - w->now, 0);
        }
        w->now = at;
        if (at == end_ms) {
            st_event ev = {.kind = ST_EV_FINISH};
            ev.u.finish.id = ending + 1;
            step(w, &ev);
        } else if (at == arrive) {
            submit(w);
        } else if (at == timer) {
            step(w, &(st_event){.kind = ST_EV_TIMER});
        } else {
            step(w, &(st_event){.kind = ST_EV_TIMER});
            tell(w);
            look += LOOK_MS;
        }
    }
}

/* ---- what came of it ------------------------------------------------------------------- */

typedef ST_VEC(int64_t) list;

/* Over all seeds of a row. */
typedef enum what { ALL, SMALL, GANGS, RESERVED, TOLD, LISTS } what;

typedef struct totals {
    list of[LISTS];
    size_t within, margins;
    double busy, whole;
} totals;

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return a < b ? -1 : a > b;
}

static double percentile(const list *l, int pct)
{
    return l->n ? (double)l->v[(l->n - 1) * (size_t)pct / 100] / (double)MINUTE : 0;
}

static double mean(const list *l)
{
    double sum = 0;
    for (size_t i = 0; i < l->n; i++)
        sum += (double)l->v[i] / (double)MINUTE;
    return l->n ? sum / (double)l->n : 0;
}

static void add_up(const world *w, totals *t)
{
    for (size_t i = 0; i < JOBS; i++) {
        const job *j = &w->jobs[i];
        int64_t wait = j->start_ms - j->submit_ms;
        st_vec_push(&t->of[ALL], wait);
        st_vec_push(&t->of[j->tasks > 1 ? GANGS : SMALL], wait);
        if (j->reserved_ms >= 0)
            st_vec_push(&t->of[RESERVED], llabs(j->start_ms - j->reserved_ms));
        if (j->told)
            st_vec_push(&t->of[TOLD], llabs(j->start_ms - j->told_ms));
        t->margins += j->told && j->margin;
        t->within += j->told && j->margin && j->start_ms >= j->lo_ms && j->start_ms <= j->hi_ms;
    }
    t->busy += (double)w->busy;
    t->whole += (double)w->jobs[JOBS - 1].submit_ms * NODES * 8;
}

static void report(totals *t, const char *name)
{
    for (int i = 0; i < LISTS; i++)
        qsort(t->of[i].v, t->of[i].n, sizeof *t->of[i].v, by_value);
    printf(
        "  forecast %-3s  wait: mean %5.1f p99 %5.0f, one node %5.1f, gangs mean %5.1f p99 %5.0f "
        "min; used %4.1f%%; reserved starts off by %4.0f min; %5zu estimates off by %4.0f min",
        name, mean(&t->of[ALL]), percentile(&t->of[ALL], 99), mean(&t->of[SMALL]),
        mean(&t->of[GANGS]), percentile(&t->of[GANGS], 99), 100 * t->busy / t->whole,
        percentile(&t->of[RESERVED], 50), t->of[TOLD].n, percentile(&t->of[TOLD], 50));
    if (t->margins)
        printf(", %.0f%% within their interval", 100.0 * (double)t->within / (double)t->margins);
    printf("\n");
    for (int i = 0; i < LISTS; i++)
        st_vec_free(&t->of[i]);
}

/* The 99th percentile of what the gangs of one stream waited, in minutes. */
static double gangs_p99(const world *w)
{
    list l = {0};
    for (size_t i = 0; i < JOBS; i++)
        if (w->jobs[i].tasks > 1)
            st_vec_push(&l, w->jobs[i].start_ms - w->jobs[i].submit_ms);
    qsort(l.v, l.n, sizeof *l.v, by_value);
    double p99 = percentile(&l, 99);
    st_vec_free(&l);
    return p99;
}

/* What forecasts change for the gangs, stream by stream: the mean, and where it lies with 95 in 100. */
static void compare(const double *off, const double *on, uint64_t n)
{
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += on[i] - off[i];
    double mid = sum / (double)n;
    for (uint64_t i = 0; i < n; i++)
        squares += (on[i] - off[i] - mid) * (on[i] - off[i] - mid);
    /* 2.09: Student's t for twenty streams. */
    double half = n > 1 ? 2.09 * sqrt(squares / (double)(n - 1) / (double)n) : 0;
    printf("  gangs' p99 of each stream, on less off: %+.0f min, %+.0f to %+.0f\n", mid, mid - half,
           mid + half);
}

static void run(uint64_t seed, int load, int limitless, bool forecast, totals *t, double *ret_p99)
{
    world w = {.jobs = make_stream(seed, load, limitless)};
    st_policy policy = st_policy_default();
    policy.forecast = forecast;
    policy.rebalance = 0;
    w.core = build(&policy, &w.fx);
    play(&w);
    add_up(&w, t);
    *ret_p99 = gangs_p99(&w);
    st_core_free(w.core);
    st_effects_done(&w.fx);
    st_vec_free(&w.running);
    free(w.jobs);
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 5;
    seeds = ST_MIN(ST_MAX(seeds, 1), SEEDS_MAX);
    static const struct {
        int load, limitless;
    } cases[] = {{85, 0}, {95, 0}, {85, 20}, {85, 100}};
    for (size_t i = 0; i < ST_ARRAY_LEN(cases); i++) {
        printf("%d x %d jobs on %d nodes x 8 GPUs, %d%% load, limits 2 to 10 times too long, %d%% "
               "of the jobs without\n",
               (int)seeds, JOBS, NODES, cases[i].load, cases[i].limitless);
        double p99[2][SEEDS_MAX];
        for (int on = 0; on <= 1; on++) {
            totals t = {0};
            for (uint64_t seed = 1; seed <= seeds; seed++)
                run(seed, cases[i].load, cases[i].limitless, on, &t, &p99[on][seed - 1]);
            report(&t, on ? "on" : "off");
        }
        compare(p99[0], p99[1], seeds);
    }
    return 0;
}
