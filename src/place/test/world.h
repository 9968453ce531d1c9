/*
 * For the tests of placement: a fleet built by hand, residents on it, and a gang that asks.
 */
#ifndef ST_PLACE_TEST_WORLD_H
#define ST_PLACE_TEST_WORLD_H

#include "base/macros.h"
#include "base/testing.h"
#include "place/place.h"

#define NODES_MAX 16
#define JOBS_MAX  32
#define TASKS_MAX 32

typedef struct world {
    st_fleet *fleet;
    st_tree *tree;
    st_placer *placer;
    st_job jobs[JOBS_MAX]; /* residents */
    st_grant grants[JOBS_MAX];
    int njobs;
    st_job job; /* the one that asks */
    st_grant ret[TASKS_MAX];
    uint8_t prefer[NODES_MAX];
} world;

static inline void begin(world *w)
{
    st_err err = {0};
    memset(w, 0, sizeof *w);
    w->fleet = st_fleet_new();
    w->tree = st_tree_new();
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = "a";
    assert_ok(st_tree_set(w->tree, &spec, NULL, &err));
    assert_ok(st_fleet_add_type(w->fleet, "h100", 80000, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_type(w->fleet, "l40", 40000, ST_BOARD_NONE, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 0xf, 2000, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "q", 1u << ST_LEVEL_WHOLE, 1000, &err));
    w->placer = st_placer_new(w->fleet, w->tree);
}

static inline void end(world *w)
{
    st_placer_free(w->placer);
    st_fleet_free(w->fleet);
    st_tree_free(w->tree);
}

static inline int32_t add(world *w, st_node_spec spec)
{
    st_err err = {0};
    int32_t id = -1;
    if (spec.cpu_m == 0)
        spec.cpu_m = 1000000;
    if (spec.ram_mib == 0)
        spec.ram_mib = 1000000;
    assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
    return id;
}

static inline int32_t add_in(world *w, const char *name, int ndevs, const char *block,
                             const char *rack)
{
    return add(w, (st_node_spec){.name = name,
                                 .ndevs = ndevs,
                                 .zone = block ? "z" : NULL,
                                 .block = block,
                                 .rack = rack});
}

/* Somebody runs on these devices. */
static inline st_job *occupy(world *w, int32_t node, uint16_t devs, st_level level)
{
    assert_true(w->njobs < JOBS_MAX);
    st_job *job = &w->jobs[w->njobs];
    st_grant *grant = &w->grants[w->njobs++];
    *job = (st_job){.account = 1, .tasks = 1, .state = ST_JOB_RUNNING, .pool = -1};
    job->shape = (st_shape){.types = 3, .level = level, .gpus = __builtin_popcount(devs)};
    job->shape.share_m = 300;
    *grant = (st_grant){node, devs, level == ST_LEVEL_MIG ? 4 : -1};
    job->shape.profile = ST_MIG_3G;
    job->grants = grant;
    st_node_add(w->fleet, w->tree, job, 0);
    return job;
}

static inline void set_state(world *w, int32_t node, st_node_state state)
{
    w->fleet->nodes.v[node]->state = state;
    st_node_refresh(w->fleet, w->tree, w->fleet->nodes.v[node]);
}

static inline void gang(world *w, int tasks, int gpus)
{
    assert_true(tasks <= TASKS_MAX);
    w->job = (st_job){.account = 1, .tasks = tasks, .pool = -1, .id = 99};
    w->job.shape = (st_shape){.types = 1, .level = ST_LEVEL_WHOLE, .gpus = gpus};
}

static inline void wish(world *w, st_topo topo, bool required)
{
    w->job.topo = topo;
    w->job.topo_required = required;
}

static inline st_ask ask_of(const world *w)
{
    return (st_ask){.job = &w->job, .type = w->job.shape.gpus > 0 ? 0 : -1};
}

static inline bool place_ask(world *w, const st_ask *ask)
{
    memset(w->ret, 0xee, sizeof w->ret);
    st_grant before[TASKS_MAX];
    memcpy(before, w->ret, sizeof before);
    bool ok = st_place_gang(w->placer, ask, w->ret);
    assert_int_equal(st_place_fits(w->placer, ask), ok);
    int used = ok ? w->job.tasks : 0; /* whole or not at all: nothing else was written */
    assert_memory_equal(&w->ret[used], &before[used], (TASKS_MAX - (size_t)used) * sizeof *w->ret);
    for (int t = 0; t < used; t++)
        assert_int_equal(__builtin_popcount(w->ret[t].devs), w->job.shape.gpus);
    return ok;
}

static inline bool place(world *w)
{
    st_ask ask = ask_of(w);
    return place_ask(w, &ask);
}

static inline int tasks_on(const world *w, int32_t node)
{
    int n = 0;
    for (int t = 0; t < w->job.tasks; t++)
        n += w->ret[t].node == node;
    return n;
}

static inline uint16_t devs_on(const world *w, int32_t node)
{
    uint16_t devs = 0;
    for (int t = 0; t < w->job.tasks; t++) {
        if (w->ret[t].node != node)
            continue;
        if (w->job.shape.level == ST_LEVEL_WHOLE)
            assert_int_equal(devs & w->ret[t].devs, 0);
        devs |= w->ret[t].devs;
    }
    return devs;
}

/* z / b1: r1 (n0 n1), r2 (n2 n3); b2: r3 (n4 n5); 4 GPUs each. */
static inline void build_racks(world *w)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    static const char *const racks[] = {"r1", "r1", "r2", "r2", "r3", "r3"};
    for (int i = 0; i < 6; i++)
        add_in(w, names[i], 4, i < 4 ? "b1" : "b2", racks[i]);
}

/* How many domains of a level the gang touches. */
static inline int spread(const world *w, int level)
{
    int n = 0;
    for (int t = 0; t < w->job.tasks; t++) {
        bool first = true;
        const st_node *x = w->fleet->nodes.v[w->ret[t].node];
        for (int u = 0; u < t && first; u++) {
            const st_node *y = w->fleet->nodes.v[w->ret[u].node];
            first = level == ST_TOPO_NODE ? x != y : x->place[level] != y->place[level];
        }
        n += first;
    }
    return n;
}

#endif
