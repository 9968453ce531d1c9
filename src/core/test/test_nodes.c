/* The life of a node: on whose word it is out of service, and the tests through which it comes back. */
#include "core/test/world.h"

#define JOB 1

static const st_node *node_of(const world *w)
{
    return st_core_fleet(w->core)->nodes.v[0];
}

static void is(const world *w, st_node_state state)
{
    if (node_of(w)->state != state)
        fail_msg("the node is %s, wanted %s", st_node_state_name(node_of(w)->state),
                 st_node_state_name(state));
}

static void say(world *w, st_node_how how, st_node_state state, const char *by, const char *reason)
{
    st_event ev = state_event(0, state);
    ev.u.node_state.how = how;
    ev.u.node_state.by = by;
    ev.u.node_state.reason = reason;
    w->now += SEC;
    step(w, &ev);
}

static void noted(const world *w, const char *by, const char *reason)
{
    const st_node_note *note = st_node_note_of(node_of(w));
    if (!by) {
        assert_null(note);
        return;
    }
    assert_non_null(note);
    assert_string_equal(note->by, by);
    assert_string_equal(note->reason, reason);
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

static void answer(world *w, bool passed, const char *reason)
{
    st_event ev = event(ST_EV_TESTED);
    ev.u.tested.test = node_of(w)->test;
    ev.u.tested.passed = passed;
    ev.u.tested.reason = reason;
    step(w, &ev);
}

/* A node whose agent can test it: it is tested before anybody is placed there. */
static void begin_tested(world *w)
{
    st_policy policy = st_policy_default();
    st_event ev = event(ST_EV_AGENT);
    begin(w, &policy, 1, 2);
    account(w, "team", 2000);
    w->now = 1000 * SEC;
    ev.u.node_state.tests = true;
    step(w, &ev);
    is(w, ST_NODE_TESTING);
    submit(w, JOB, "team");
    in_state(w, JOB, ST_JOB_PENDING);
    reload(w);
    answer(w, true, NULL);
    is(w, ST_NODE_READY);
    in_state(w, JOB, ST_JOB_RUNNING);
    assert_int_equal(node_of(w)->passed_ms, w->now);
}

/* An engine's fault is the engine's to take back, and what somebody said before holds on. */
static void test_faults(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 1, 2);
    say(&w, ST_HOW_SAID, ST_NODE_DRAINING, "ann", "new disk");
    noted(&w, "ann", "new disk");
    say(&w, ST_HOW_FAULT, ST_NODE_FAILED, "stintd", "silent");
    is(&w, ST_NODE_FAILED);
    noted(&w, "stintd", "silent");
    reload(&w);
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_DRAINING);
    noted(&w, "ann", "new disk");
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL); /* a person took it out */
    is(&w, ST_NODE_DRAINING);
    say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
    is(&w, ST_NODE_READY);
    noted(&w, NULL, NULL);
    /* Held, then lost: what it was before is kept over both. */
    say(&w, ST_HOW_FAULT, ST_NODE_DRAINING, "stintd", "disk full");
    say(&w, ST_HOW_FAULT, ST_NODE_FAILED, "stintd", "silent");
    say(&w, ST_HOW_FAULT, ST_NODE_DRAINING, "stintd", "disk full"); /* it is lost */
    is(&w, ST_NODE_FAILED);
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_READY);
    /* Who decides takes the fault over. */
    say(&w, ST_HOW_FAULT, ST_NODE_FAILED, "stintd", "silent");
    say(&w, ST_HOW_SAID, ST_NODE_FAILED, "ann", "burnt");
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_FAILED);
    noted(&w, "ann", "burnt");
    end(&w);
}

/* What could not be read again is not taken. */
static void test_long_reason(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    st_err err = {0};
    char reason[ST_REASON_MAX + 2] = {0};
    begin(&w, &policy, 1, 2);
    memset(reason, 'x', ST_REASON_MAX + 1);
    st_event ev = state_event(0, ST_NODE_DRAINING);
    ev.u.node_state.by = "ann";
    ev.u.node_state.reason = reason;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ELIMIT, "at most 512 bytes");
    is(&w, ST_NODE_READY);
    reason[ST_REASON_MAX] = '\0';
    step(&w, &ev);
    reload(&w);
    noted(&w, "ann", reason);
    end(&w);
}

/* What was noted before the core had it. */
static void test_recalled(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    st_event ev;
    begin(&w, &policy, 1, 2);
    set_node(&w, 0, ST_NODE_FAILED);
    ev = state_event(0, ST_NODE_DRAINING);
    ev.u.node_state.how = ST_HOW_RECALLED;
    ev.u.node_state.force = true;
    ev.u.node_state.by = "stintd";
    ev.u.node_state.reason = "silent";
    ev.u.node_state.since_ms = 77;
    step(&w, &ev);
    is(&w, ST_NODE_FAILED);
    assert_int_equal(node_of(&w)->fault.since_ms, 77);
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_DRAINING);
    end(&w);
}

/* No way back into service without a test. */
static void test_accepted(void **state)
{
    (void)state;
    static const st_node_state out[] = {ST_NODE_FAILED, ST_NODE_REPAIR, ST_NODE_RETIRED};
    world w;
    begin_tested(&w);
    for (size_t i = 0; i < ST_ARRAY_LEN(out); i++) {
        say(&w, ST_HOW_SAID, out[i], "ann", "");
        is(&w, out[i]);
        say(&w, ST_HOW_SAID, ST_NODE_DRAINING, "ann", ""); /* no way around */
        say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
        is(&w, ST_NODE_TESTING);
        reload(&w);
        say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
        is(&w, ST_NODE_TESTING);
        answer(&w, true, NULL);
        is(&w, ST_NODE_READY);
    }
    say(&w, ST_HOW_FAULT, ST_NODE_FAILED, "stintd", "silent");
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_TESTING);
    answer(&w, true, NULL);
    is(&w, ST_NODE_READY);
    /* A node that takes nothing new while it waits for its test says so, and waits for it again. */
    say(&w, ST_HOW_FAULT, ST_NODE_FAILED, "stintd", "silent");
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    say(&w, ST_HOW_FAULT, ST_NODE_DRAINING, "stintd", "its disk is full");
    is(&w, ST_NODE_DRAINING);
    noted(&w, "stintd", "its disk is full");
    reload(&w);
    say(&w, ST_HOW_HEALED, ST_NODE_READY, NULL, NULL);
    is(&w, ST_NODE_TESTING);
    answer(&w, true, NULL);
    is(&w, ST_NODE_READY);
    /* Who only drained has changed nothing. */
    say(&w, ST_HOW_SAID, ST_NODE_DRAINING, "ann", "");
    say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
    is(&w, ST_NODE_READY);
    /* A site may do without. */
    st_event ev = event(ST_EV_POLICY);
    ev.u.policy = *st_core_policy(w.core);
    ev.u.policy.acceptance = 0;
    step(&w, &ev);
    say(&w, ST_HOW_SAID, ST_NODE_REPAIR, "ann", "");
    say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
    is(&w, ST_NODE_READY);
    end(&w);
}

/* A suspicion ends nobody's job, takes no new one, and ends in a test. */
static void test_suspect(void **state)
{
    (void)state;
    world w;
    begin_tested(&w);
    int64_t test = node_of(&w)->test;
    say(&w, ST_HOW_SAID, ST_NODE_SUSPECT, "ann", "slow");
    in_state(&w, JOB, ST_JOB_RUNNING);
    submit(&w, 2, "team");
    in_state(&w, 2, ST_JOB_PENDING);
    reload(&w);
    assert_true(st_core_next_timer(w.core) <= w.now + st_core_policy(w.core)->suspect_ms);
    tick(&w, w.now + st_core_policy(w.core)->suspect_ms);
    is(&w, ST_NODE_SUSPECT); /* until the answer */
    assert_int_equal(node_of(&w)->test, test + 1);
    answer(&w, true, NULL);
    is(&w, ST_NODE_READY);
    noted(&w, NULL, NULL);
    in_state(&w, JOB, ST_JOB_RUNNING);
    in_state(&w, 2, ST_JOB_RUNNING);
    end(&w);
    /* Where nobody can test, it ends by itself. */
    st_policy policy = st_policy_default();
    begin(&w, &policy, 1, 2);
    say(&w, ST_HOW_SAID, ST_NODE_SUSPECT, "ann", "slow");
    tick(&w, w.now + policy.suspect_ms - 1);
    is(&w, ST_NODE_SUSPECT);
    tick(&w, w.now + 1);
    is(&w, ST_NODE_READY);
    assert_true(st_core_next_timer(w.core) == ST_TIME_NEVER);
    end(&w);
}

/* Its engine suspects it and takes that back itself: nobody wakes up for it meanwhile. An agent that can test it is asked. */
static void test_held(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    st_event ev = event(ST_EV_AGENT);
    policy.breaker_nodes = 0;
    policy.breaker_share_m = 0;
    begin(&w, &policy, 1, 2);
    st_event fault = state_event(0, ST_NODE_FAILED);
    fault.u.node_state.how = ST_HOW_FAULT;
    fault.u.node_state.finding = (st_finding){.kind = ST_FAULT_XID, .gpu = 1, .code = 79};
    step(&w, &fault);
    is(&w, ST_NODE_SUSPECT);
    tick(&w, w.now + policy.suspect_ms);
    is(&w, ST_NODE_SUSPECT);
    assert_true(st_core_next_timer(w.core) == ST_TIME_NEVER);
    ev.u.node_state.tests = true;
    step(&w, &ev);
    int64_t due_ms = w.now + policy.suspect_ms, test = node_of(&w)->test;
    assert_int_equal(st_core_next_timer(w.core), due_ms);
    tick(&w, due_ms);
    assert_int_equal(node_of(&w)->test, test + 1);
    answer(&w, true, NULL);
    is(&w, ST_NODE_READY);
    end(&w);
}

/* A test that fails takes the node out for repair, ends nobody's job, and is made again by itself. */
static void test_failed(void **state)
{
    (void)state;
    world w;
    begin_tested(&w);
    st_event ev = event(ST_EV_TEST);
    step(&w, &ev);
    is(&w, ST_NODE_READY);
    answer(&w, false, "GPU 1: NVLinks are down");
    is(&w, ST_NODE_REPAIR);
    noted(&w, "stintd", "GPU 1: NVLinks are down");
    in_state(&w, JOB, ST_JOB_RUNNING);
    reload(&w);
    answer(&w, true, NULL); /* of a test that was answered */
    is(&w, ST_NODE_REPAIR);
    tick(&w, w.now + st_core_policy(w.core)->retest_ms);
    answer(&w, false, "GPU 1: NVLinks are down");
    is(&w, ST_NODE_REPAIR);
    tick(&w, w.now + st_core_policy(w.core)->retest_ms);
    answer(&w, true, NULL);
    is(&w, ST_NODE_READY);
    noted(&w, NULL, NULL);
    /* What a person sent to repair stays there, whatever a test says. */
    say(&w, ST_HOW_SAID, ST_NODE_REPAIR, "ann", "fan");
    assert_int_equal(node_of(&w)->due_ms, 0);
    step(&w, &ev);
    answer(&w, true, NULL);
    is(&w, ST_NODE_REPAIR);
    noted(&w, "ann", "fan");
    end(&w);
}

/* A test that was asked for before the node went to repair says nothing of it afterwards. */
static void test_asked_before_the_repair(void **state)
{
    (void)state;
    world w;
    begin_tested(&w);
    st_event ev = event(ST_EV_TEST);
    step(&w, &ev);
    say(&w, ST_HOW_SAID, ST_NODE_REPAIR, "ann", "fan");
    reload(&w);
    answer(&w, true, NULL);
    say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
    is(&w, ST_NODE_TESTING);
    /* One that was asked for meanwhile does. */
    say(&w, ST_HOW_SAID, ST_NODE_REPAIR, "ann", "fan");
    step(&w, &ev);
    answer(&w, true, NULL);
    is(&w, ST_NODE_REPAIR);
    say(&w, ST_HOW_SAID, ST_NODE_READY, "ann", NULL);
    is(&w, ST_NODE_READY);
    end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    st_event ev = event(ST_EV_TEST);
    st_err err = {0};
    begin(&w, &policy, 1, 2);
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ESTATE, "no agent");
    ev = state_event(0, ST_NODE_TESTING);
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ESTATE, "no agent");
    ev = event(ST_EV_TESTED);
    ev.u.tested.node = 9;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ENOENT, "9");
    set_node(&w, 0, ST_NODE_REMOVED);
    ev.u.tested.node = 0;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ENOENT, "any more");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_long_reason),
        cmocka_unit_test(test_recalled),
        cmocka_unit_test(test_accepted),
        cmocka_unit_test(test_suspect),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_asked_before_the_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
