/* Nodes that drain by a time: who is told, who leaves how and when, and who may stay after all. */
#include "core/test/world.h"

#define JOB   1
#define START (1000 * SEC)
#define BY    (START + 3600 * SEC)

static const st_yield ways[] = {ST_YIELD_CHECKPOINT, ST_YIELD_PAUSE, ST_YIELD_REQUEUE,
                                ST_YIELD_CANCEL};

static void drain(world *w, int64_t by_ms, st_drain_then then)
{
    st_event ev = state_event(0, ST_NODE_DRAINING);
    ev.u.node_state.by_ms = by_ms;
    ev.u.node_state.then = then;
    step(w, &ev);
}

/* One node and a job on it; notice 30 s, grace two minutes. */
static void begin_with(world *w, st_yield yield)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = 30 * SEC;
    policy.grace_ms = 120 * SEC;
    begin(w, &policy, 1, 2);
    account(w, "team", 2000);
    w->now = START;
    st_event ev = job_event(JOB, "team");
    ev.u.job.yield = yield;
    step(w, &ev);
    in_state(w, JOB, ST_JOB_RUNNING);
}

static void reload(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0}, again = {0};
    st_err err = {0};
    st_core_save(w->core, &data);
    st_core_free(ST_TAKE(w->core));
    assert_ok(st_core_load(data.s, data.n, &w->core, &err));
    st_core_save(w->core, &again);
    assert_int_equal(data.n, again.n);
    assert_memory_equal(data.s, again.s, data.n);
}

static bool gone(const world *w)
{
    const st_job *job = st_core_job(w->core, JOB);
    return !job || job->state == ST_JOB_PENDING;
}

/* Told at once, told to go in time, gone by then; and nobody rests for it. */
static void test_each_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(ways); i++) {
        world w;
        bool saves = ways[i] == ST_YIELD_CHECKPOINT;
        begin_with(&w, ways[i]);
        drain(&w, BY, ST_DRAIN_REQUEUE);
        const st_effect *told = effect(&w, ST_FX_DRAIN, JOB);
        assert_non_null(told);
        assert_int_equal(told->until_ms, BY);
        assert_int_equal(told->node, 0);
        assert_int_equal(told->then, ST_DRAIN_REQUEUE);
        in_state(&w, JOB, ST_JOB_RUNNING);
        reload(&w);
        assert_int_equal(st_core_next_timer(w.core), BY - 150 * SEC);
        tick(&w, BY - 150 * SEC - 1);
        in_state(&w, JOB, ST_JOB_RUNNING);
        tick(&w, BY - 150 * SEC);
        in_state(&w, JOB, ST_JOB_NOTIFIED);
        assert_int_equal(effect(&w, ST_FX_NOTIFY, JOB)->until_ms, saves ? BY - 120 * SEC : BY);
        reload(&w);
        if (saves) {
            tick(&w, BY - 120 * SEC);
            in_state(&w, JOB, ST_JOB_CHECKPOINTING);
            tell(&w, ST_EV_CHECKPOINTED, JOB);
            assert_int_equal(job_of(&w, JOB)->saved_ms, 3480 * SEC);
        }
        tick(&w, BY - 1);
        assert_true(saves == gone(&w));
        tick(&w, BY);
        assert_true(gone(&w));
        const st_effect *left =
            effect(&w, ways[i] == ST_YIELD_CANCEL ? ST_FX_END : ST_FX_REQUEUE, JOB);
        assert_true(saves || !left->ordered); /* what it lost is not its own doing */
        assert_true(saves || left->unsaved_ms == 3600 * SEC);
        if (ways[i] == ST_YIELD_CANCEL) {
            end(&w);
            continue;
        }
        assert_int_equal(job_of(&w, JOB)->preemptions, 0);
        assert_int_equal(job_of(&w, JOB)->barred, 0);
        set_node(&w, 0, ST_NODE_READY);
        in_state(&w, JOB, ST_JOB_RUNNING);
        end(&w);
    }
}

/* What can be paused may stay in memory, where that is said; and it goes on there. */
static void test_pause(void **state)
{
    (void)state;
    world w;
    begin_with(&w, ST_YIELD_PAUSE);
    drain(&w, BY, ST_DRAIN_PAUSE);
    tick(&w, BY - 150 * SEC);
    tick(&w, BY - 120 * SEC);
    in_state(&w, JOB, ST_JOB_CHECKPOINTING);
    tell(&w, ST_EV_CHECKPOINTED, JOB);
    in_state(&w, JOB, ST_JOB_PAUSED);
    set_node(&w, 0, ST_NODE_READY);
    in_state(&w, JOB, ST_JOB_RUNNING);
    /* Paused for a drain, it leaves the memory too when the node must be empty. */
    drain(&w, w.now + 1, ST_DRAIN_PAUSE);
    in_state(&w, JOB, ST_JOB_CHECKPOINTING);
    tell(&w, ST_EV_CHECKPOINTED, JOB);
    in_state(&w, JOB, ST_JOB_PAUSED);
    drain(&w, w.now + 10 * SEC, ST_DRAIN_REQUEUE);
    assert_true(gone(&w));
    end(&w);
}

/* Less time than notice and grace need is the operator's word. */
static void test_short(void **state)
{
    (void)state;
    world w;
    begin_with(&w, ST_YIELD_CHECKPOINT);
    drain(&w, w.now + 10 * SEC, ST_DRAIN_REQUEUE);
    in_state(&w, JOB, ST_JOB_CHECKPOINTING);
    assert_int_equal(job_of(&w, JOB)->deadline_ms, w.now + 10 * SEC);
    tick(&w, w.now + 10 * SEC);
    assert_true(gone(&w));
    set_node(&w, 0, ST_NODE_READY);
    in_state(&w, JOB, ST_JOB_RUNNING);
    drain(&w, w.now - 1, ST_DRAIN_REQUEUE); /* it is over */
    assert_true(gone(&w));
    end(&w);
}

/* Given back, given more time, or told to wait: who has not begun to save may stay. */
static void test_stay(void **state)
{
    (void)state;
    world w;
    for (int i = 0; i < 3; i++) {
        begin_with(&w, ST_YIELD_CHECKPOINT);
        drain(&w, BY, ST_DRAIN_REQUEUE);
        tick(&w, BY - 140 * SEC);
        in_state(&w, JOB, ST_JOB_NOTIFIED);
        if (i == 0)
            set_node(&w, 0, ST_NODE_READY);
        else
            drain(&w, i == 1 ? BY + 7200 * SEC : 0, i == 1 ? ST_DRAIN_REQUEUE : ST_DRAIN_WAIT);
        assert_non_null(effect(&w, ST_FX_SPARE, JOB));
        in_state(&w, JOB, ST_JOB_RUNNING);
        assert_int_equal(job_of(&w, JOB)->barred, 0);
        reload(&w);
        tick(&w, BY);
        in_state(&w, JOB, ST_JOB_RUNNING);
        end(&w);
    }
    begin_with(&w, ST_YIELD_CHECKPOINT);
    drain(&w, BY, ST_DRAIN_WAIT); /* nobody has to go, nobody is told */
    assert_null(effect(&w, ST_FX_DRAIN, JOB));
    assert_int_equal(st_core_next_timer(w.core), job_of(&w, JOB)->expect_ms);
    end(&w);
}

/* Where agents speak for the node, the job is gone when they say so. */
static void test_agents(void **state)
{
    (void)state;
    world w;
    st_event ev = event(ST_EV_AGENT), said = event(ST_EV_GONE);
    begin_with(&w, ST_YIELD_REQUEUE);
    step(&w, &ev);
    drain(&w, BY, ST_DRAIN_REQUEUE);
    tick(&w, BY - 150 * SEC);
    tick(&w, BY);
    in_state(&w, JOB, ST_JOB_STOPPING);
    said.u.gone.id = JOB;
    step(&w, &said);
    assert_true(gone(&w));
    end(&w);
}

/* A node that fails on the way is a node that has failed. */
static void test_fails(void **state)
{
    (void)state;
    world w;
    begin_with(&w, ST_YIELD_CHECKPOINT);
    drain(&w, BY, ST_DRAIN_REQUEUE);
    tick(&w, BY - 140 * SEC);
    st_event ev = state_event(0, ST_NODE_FAILED);
    ev.u.node_state.how = ST_HOW_FAULT;
    step(&w, &ev);
    assert_true(gone(&w));
    ev = state_event(0, ST_NODE_READY);
    ev.u.node_state.how = ST_HOW_HEALED;
    step(&w, &ev); /* it drains still */
    assert_true(gone(&w));
    set_node(&w, 0, ST_NODE_READY);
    assert_int_equal(st_core_fleet(w.core)->nodes.v[0]->drain_ms, 0);
    in_state(&w, JOB, ST_JOB_RUNNING);
    tick(&w, BY + SEC);
    in_state(&w, JOB, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_way), cmocka_unit_test(test_pause),
        cmocka_unit_test(test_short),    cmocka_unit_test(test_stay),
        cmocka_unit_test(test_agents),   cmocka_unit_test(test_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
