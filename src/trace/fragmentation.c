/*
 * The experiment of trace/fragmentation.h: draws the arrivals, has a policy place them, and counts.
 */
#include "trace/fragmentation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "core/core.h"
#include "spec/spec.h"
#include "trace/fragmentation_peers.h"

static const char *const names[] = {
#define NAME(name, text) #name,
    ST_FRAG_POLICIES(NAME)
#undef NAME
};

const char *st_frag_policy_name(st_frag_policy policy)
{
    return names[policy];
}

int st_frag_policy_find(const char *name)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

/* A policy at work: the scheduler, or one that was published. */
typedef struct player {
    const st_openb *trace;
    st_core *core;
    st_effects fx;
    uint64_t jobs;
    st_frag_peer *peer;
} player;

static void player_done(player *p)
{
    st_peer_free(p->peer);
    st_core_free(p->core);
    st_effects_done(&p->fx);
}

/* ---- the scheduler -------------------------------------------------------------------------------- */

#define VRAM_MIB 81920 /* of every type: the lists do not say */

static int tell_types(player *p, st_err *err)
{
    int r = 0;

    for (int32_t t = 0; t < p->trace->nmodels && r == 0; t++) {
        st_event ev = {.kind = ST_EV_TYPE};

        ev.u.type.name = p->trace->models[t];
        ev.u.type.vram_mib = VRAM_MIB;
        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    return r;
}

static int tell_nodes(player *p, const st_openb_stream *stream, st_err *err)
{
    char name[32];
    int r = 0;

    for (size_t i = 0; i < stream->nodes.n && r == 0; i++) {
        const st_openb_node *n = &p->trace->nodes.v[stream->nodes.v[i]];
        st_event ev = {.kind = ST_EV_NODE,
                       .u.node = {.name = name,
                                  .type = n->gpus > 0 ? n->type : -1,
                                  .ndevs = n->gpus,
                                  .cpu_m = n->cpu_m,
                                  .ram_mib = n->ram_mib}};

        snprintf(name, sizeof name, "n%zu", i);
        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    }
    return r;
}

static int begin_core(player *p, const st_openb_stream *stream, st_err *err)
{
    st_policy policy = st_policy_default();
    st_event ev = {.kind = ST_EV_POOL};
    int r;

    policy.reservations = 0; /* nobody waits, so nothing is reserved, and nobody yields */
    policy.rebalance = 0;
    p->core = st_core_new(&policy);
    ev.u.pool.name = "all";
    ev.u.pool.levels = ST_POOL_LEVELS;
    ev.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    if (r == 0)
        r = tell_types(p, err);
    if (r == 0)
        r = tell_nodes(p, stream, err);
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "all";
    if (r == 0)
        r = st_core_apply(p->core, &ev, 0, &p->fx, err);
    if (r == 0)
        st_core_pass(p->core, 0, &p->fx);
    return r;
}

/* It starts at once, or it is taken back: nobody waits in this experiment. */
static bool place_core(player *p, const st_openb_ask *ask)
{
    bool part = ask->gpus == 1 && ask->gpu_m < ST_WHOLE_M;
    uint32_t all = (UINT32_C(1) << p->trace->nmodels) - 1;
    st_event ev = {.kind = ST_EV_SUBMIT};
    const st_job *job;

    ev.u.job = (st_job_spec){.id = ++p->jobs,
                             .name = "pod",
                             .account = "all",
                             .user = "all",
                             .pool = -1,
                             .tasks = 1,
                             .shape = {.types = ask->gpus > 0 ? ask->types & all : 0,
                                       .level = part ? ST_LEVEL_MPS : ST_LEVEL_WHOLE,
                                       .gpus = ask->gpus,
                                       .share_m = part ? ask->gpu_m : 0,
                                       .cpu_m = ask->cpu_m,
                                       .ram_mib = ask->ram_mib},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    st_effects_clear(&p->fx);
    if (st_core_step(p->core, &ev, 0, &p->fx, NULL) < 0)
        return false;
    job = st_core_job(p->core, p->jobs);
    if (job && job->state == ST_JOB_RUNNING)
        return true;
    ev = (st_event){.kind = ST_EV_CANCEL, .u.id = p->jobs};
    (void)st_core_step(p->core, &ev, 0, &p->fx, NULL);
    return false;
}

/* ---- any of them ------------------------------------------------------------------------------------ */

static int begin(player *p, const st_openb_stream *stream, st_frag_policy policy, uint64_t seed,
                 st_err *err)
{
    if (policy == ST_FRAG_POLICY_stint)
        return begin_core(p, stream, err);
    p->peer = st_peer_new(p->trace, stream, policy, seed);
    return 0;
}

static bool place(player *p, int32_t pod)
{
    return p->core ? place_core(p, &p->trace->pods.v[pod].ask) : st_peer_place(p->peer, pod);
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int compare_ns(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What has arrived and what of it was placed. */
typedef struct tally {
    int64_t capacity_m, arrived_m, placed_m;
    int64_t at_100;       /* arrivals that round to 100 % */
    double placed_at_100; /* summed over them */
    double first_above;   /* placed when 100 % were first passed, where none rounds to it */
} tally;

static void count(tally *t, int64_t gpu_m, bool placed)
{
    int64_t pct;

    t->arrived_m += gpu_m;
    t->placed_m += placed ? gpu_m : 0;
    pct = llround(100.0 * (double)t->arrived_m / (double)t->capacity_m);
    if (pct == 100) {
        t->at_100++;
        t->placed_at_100 += (double)t->placed_m;
    }
    if (pct > 100 && t->first_above < 0)
        t->first_above = (double)t->placed_m;
}

int st_fragmentation_run(const st_openb *trace, st_frag_policy policy, uint64_t seed, int32_t times,
                         st_fragmentation *ret, st_err *err)
{
    ST_CLEANUP(st_openb_stream_done) st_openb_stream stream = {0};
    ST_CLEANUP(st_freep) int64_t *took_ns = NULL;
    tally t = {.capacity_m = trace->capacity_m * times, .first_above = -1};
    ST_CLEANUP(player_done) player p = {.trace = trace};
    int64_t start_ns, last_ns;
    size_t n;
    int r;

    st_openb_draw(trace, seed, times, &stream);
    r = begin(&p, &stream, policy, seed, err);
    if (r < 0)
        return r;
    n = stream.arrivals.n;
    took_ns = st_xcalloc(n, sizeof(*took_ns));
    start_ns = last_ns = now_ns();
    for (size_t i = 0; i < n; i++) {
        const st_openb_pod *pod = &trace->pods.v[stream.arrivals.v[i]];
        bool placed = place(&p, stream.arrivals.v[i]);
        int64_t ns = now_ns();

        took_ns[i] = ns - last_ns;
        last_ns = ns;
        count(&t, (int64_t)pod->ask.gpus * pod->gpu_m, placed);
    }
    qsort(took_ns, n, sizeof(*took_ns), compare_ns);
    *ret = (st_fragmentation){
        .unallocated_pct_at_100 =
            100 -
            100 * (t.at_100 > 0 ? t.placed_at_100 / (double)t.at_100 : ST_MAX(t.first_above, 0)) /
                (double)t.capacity_m,
        .allocated_pct_at_130 = 100.0 * (double)t.placed_m / (double)t.capacity_m,
        .decisions = (int64_t)n,
        .seconds = (double)(last_ns - start_ns) * 1e-9,
        .decision_p99_us = (double)took_ns[(n * 99 + 99) / 100 - 1] * 1e-3,
    };
    return 0;
}
