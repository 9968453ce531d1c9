/*
 * For the tests of the core: a small machine, events written in a line, effects looked up.
 */
#ifndef ST_CORE_TEST_WORLD_H
#define ST_CORE_TEST_WORLD_H

#include "base/macros.h"
#include "base/testing.h"
#include "core/core.h"

#define SEC INT64_C(1000)

typedef struct world {
    st_core *core;
    st_effects fx; /* of the last step */
    int64_t now;
} world;

static inline st_event event(st_event_kind kind)
{
    return (st_event){.kind = kind};
}

/* One step at w->now that must be taken. */
static inline void step(world *w, const st_event *ev)
{
    st_err err = {0};
    st_effects_clear(&w->fx);
    assert_ok(st_core_step(w->core, ev, w->now, &w->fx, &err));
}

static inline void tick(world *w, int64_t now)
{
    st_event ev = event(ST_EV_TIMER);
    w->now = now;
    step(w, &ev);
}

static inline st_event type_event(const char *name, st_board board)
{
    st_event ev = event(ST_EV_TYPE);
    ev.u.type.name = name;
    ev.u.type.vram_mib = 80000;
    ev.u.type.board = board;
    return ev;
}

static inline st_event pool_event(const char *name, uint32_t levels)
{
    st_event ev = event(ST_EV_POOL);
    ev.u.pool.name = name;
    ev.u.pool.levels = levels;
    ev.u.pool.oversub_m = 2000;
    return ev;
}

static inline st_event node_event(const char *name, int ndevs)
{
    st_event ev = event(ST_EV_NODE);
    ev.u.node = (st_node_spec){.name = name, .ndevs = ndevs, .cpu_m = 64000, .ram_mib = 1000};
    return ev;
}

static inline st_event state_event(int32_t node, st_node_state state)
{
    st_event ev = event(ST_EV_NODE_STATE);
    ev.u.node_state.node = node;
    ev.u.node_state.state = state;
    return ev;
}

static inline st_event account_event(const char *name, int64_t guarantee_m)
{
    st_event ev = event(ST_EV_ACCOUNT);
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = name;
    ev.u.account.guarantee.gpu_m = guarantee_m;
    return ev;
}

/* One task on one whole GPU, without an end. */
static inline st_event job_event(uint64_t id, const char *account)
{
    st_event ev = event(ST_EV_SUBMIT);
    ev.u.job = (st_job_spec){.id = id,
                             .name = "job",
                             .account = account,
                             .user = "ann",
                             .pool = -1,
                             .tasks = 1,
                             .shape = {.level = ST_LEVEL_WHOLE, .gpus = 1},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    return ev;
}

static inline st_event id_event(st_event_kind kind, uint64_t id)
{
    st_event ev = event(kind);
    if (kind == ST_EV_FINISH)
        ev.u.finish.id = id;
    else
        ev.u.id = id;
    return ev;
}

static inline void submit(world *w, uint64_t id, const char *account)
{
    st_event ev = job_event(id, account);
    step(w, &ev);
}

static inline void tell(world *w, st_event_kind kind, uint64_t id)
{
    st_event ev = id_event(kind, id);
    step(w, &ev);
}

static inline void set_node(world *w, int32_t node, st_node_state state)
{
    st_event ev = state_event(node, state);
    step(w, &ev);
}

/* A type, a pool that allows everything, and nodes of one kind. */
static inline void begin(world *w, const st_policy *policy, int nodes, int ndevs)
{
    static const char *const names[] = {"n0", "n1", "n2", "n3"};
    *w = (world){.core = st_core_new(policy)};
    st_event ev = type_event("h100", ST_BOARD_H100_80);
    step(w, &ev);
    ev = pool_event("p", 0xf);
    step(w, &ev);
    for (int i = 0; i < nodes; i++) {
        ev = node_event(names[i], ndevs);
        step(w, &ev);
    }
}

static inline void account(world *w, const char *name, int64_t guarantee_m)
{
    st_event ev = account_event(name, guarantee_m);
    step(w, &ev);
}

static inline void end(world *w)
{
    st_effects_done(&w->fx);
    st_core_free(w->core);
}

/* The last step's effect of that kind for that job, or NULL. */
static inline const st_effect *effect(const world *w, st_effect_kind kind, uint64_t job)
{
    for (size_t i = 0; i < w->fx.list.n; i++)
        if (w->fx.list.v[i].kind == kind && w->fx.list.v[i].job == job)
            return &w->fx.list.v[i];
    return NULL;
}

static inline const st_job *job_of(const world *w, uint64_t id)
{
    const st_job *job = st_core_job(w->core, id);
    assert_non_null(job);
    return job;
}

static inline void in_state(const world *w, uint64_t id, st_job_state state)
{
    st_job_state is = job_of(w, id)->state;
    if (is != state)
        fail_msg("job %d is %s, wanted %s", (int)id, st_job_state_name(is),
                 st_job_state_name(state));
}

#endif
