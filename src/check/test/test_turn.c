/*
 * Whose turn it is inside an account (check/turn.c): a core that takes somebody for younger than he is, is noticed.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "check/check.h"

typedef struct world {
    st_core *core;
    st_watch *watch;
    st_effects fx;
    st_event last;
} world;

static void step(world *w, const st_event *ev, int64_t now)
{
    st_err err = {0};
    w->last = *ev;
    st_effects_clear(&w->fx);
    assert_ok(st_core_step(w->core, ev, now, &w->fx, &err));
}

static int look(world *w, st_err *err)
{
    const st_event *events[] = {&w->last};
    return st_watch_step(w->watch, w->core, events, 1, &w->fx, err);
}

static void play(world *w, const st_event *ev, int64_t now)
{
    st_err err = {0};
    step(w, ev, now);
    assert_ok(look(w, &err));
}

static void build(world *w)
{
    st_policy policy = st_policy_default();
    policy.reservations = policy.rebalance = policy.urgent = 0;
    policy.ageing_ms = 60000;
    *w = (world){.core = st_core_new(&policy)};
    w->watch = st_watch_new(w->core);
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    play(w, &ev, 0);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "p";
    ev.u.pool.levels = 0xf;
    ev.u.pool.oversub_m = 2000;
    play(w, &ev, 0);
    ev = (st_event){.kind = ST_EV_NODE};
    ev.u.node = (st_node_spec){.name = "n0", .ndevs = 4, .cpu_m = 8000, .ram_mib = 1000};
    play(w, &ev, 0);
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "guest";
    play(w, &ev, 0);
}

/* A low priority waits from 1 s on, a higher one from 65 s, both beside one that fits nowhere; after a minute the first
 * comes before the second. */
static void begin(world *w)
{
    static const struct {
        uint64_t id;
        int priority, tasks;
        int64_t now;
    } jobs[] = {
        {1, 300, 1, 0}, {2, 300, 3, 0}, {5, 0, 1, 1000}, {7, 200, 4, 1000}, {6, 50, 1, 65000}};
    build(w);
    for (size_t i = 0; i < ST_ARRAY_LEN(jobs); i++) {
        st_event ev = {.kind = ST_EV_SUBMIT};
        ev.u.job = (st_job_spec){.id = jobs[i].id,
                                 .name = "job",
                                 .account = "guest",
                                 .user = "ann",
                                 .pool = -1,
                                 .priority = jobs[i].priority,
                                 .tasks = jobs[i].tasks,
                                 .shape = {.level = ST_LEVEL_WHOLE, .gpus = 1},
                                 .limit_ms = ST_TIME_NEVER,
                                 .yield = ST_YIELD_REQUEUE};
        play(w, &ev, jobs[i].now);
    }
}

static void end(world *w)
{
    st_effects_done(&w->fx);
    st_watch_free(w->watch);
    st_core_free(w->core);
}

static void test_ageing(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    st_event ev = {.kind = ST_EV_FINISH, .u.finish.id = 1};
    begin(&w);
    play(&w, &ev, 70000);
    assert_int_equal(st_core_job(w.core, 5)->state, ST_JOB_RUNNING);
    end(&w);
    begin(&w);
    /* As if it had just come. */
    ((st_job *)(uintptr_t)st_core_job(w.core, 5))->queued_ms = 69999;
    step(&w, &ev, 70000);
    assert_fails(
        look(&w, &err), ST_EINTERNAL,
        "turn: job 6 (priority 50) starts, and job 5 of its account (priority 0, waiting for "
        "69000 ms) comes before it");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ageing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
