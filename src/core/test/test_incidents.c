/* Incidents: which faults are one, what the breaker keeps in service, and when they are over. */
#include "core/test/world.h"

static st_node_state state_of(const world *w, int32_t node)
{
    return st_core_fleet(w->core)->nodes.v[node]->state;
}

static void is(const world *w, int32_t node, st_node_state state)
{
    if (state_of(w, node) != state)
        fail_msg("node %d is %s, wanted %s", node, st_node_state_name(state_of(w, node)),
                 st_node_state_name(state));
}

static void fault(world *w, int32_t node, st_fault kind, int gpu, int64_t code)
{
    st_event ev = state_event(node, ST_NODE_FAILED);
    ev.u.node_state.how = ST_HOW_FAULT;
    ev.u.node_state.by = "stintd";
    ev.u.node_state.reason = "GPU 1 had XID 79";
    ev.u.node_state.finding = (st_finding){.kind = kind, .gpu = gpu, .code = code};
    w->now += SEC;
    step(w, &ev);
}

static void healed(world *w, int32_t node)
{
    st_event ev = state_event(node, ST_NODE_READY);
    ev.u.node_state.how = ST_HOW_HEALED;
    w->now += SEC;
    step(w, &ev);
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

static bool told(const world *w, st_incident_news news, int32_t node)
{
    for (size_t i = 0; i < w->fx.list.n; i++)
        if (w->fx.list.v[i].kind == ST_FX_INCIDENT && w->fx.list.v[i].news == (int64_t)news &&
            w->fx.list.v[i].node == node)
            return true;
    return false;
}

static const st_incident *only(const world *w)
{
    assert_int_equal(st_core_nincidents(w->core), 1);
    return st_core_incident_at(w->core, 0);
}

/* One incident from the first fault to the end of the quiet after the last node is back. */
static void test_one(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 4, 2);
    account(&w, "team", 8000);
    submit(&w, 1, "team");
    fault(&w, 0, ST_FAULT_XID, 1, 79);
    assert_true(told(&w, ST_INCIDENT_OPENED, 0));
    const st_incident *inc = only(&w);
    assert_string_equal(inc->words, "GPU 1 had XID 79");
    assert_int_equal(inc->nodes.v[0].gpu, 1);
    assert_int_equal(inc->nodes.v[0].code, 79);
    assert_int_equal(inc->jobs.n, 1);
    assert_int_equal(inc->jobs.v[0].job, 1);
    assert_int_equal(st_core_incident_scope(w.core, inc), ST_SCOPE_GPU);
    fault(&w, 1, ST_FAULT_XID, 0, 79);
    assert_true(told(&w, ST_INCIDENT_JOINED, 1));
    reload(&w);
    inc = only(&w);
    assert_int_equal(inc->times, 2);
    assert_int_equal(st_incident_out(inc), 2);
    assert_int_equal(st_core_incident_scope(w.core, inc), ST_SCOPE_POOL);
    healed(&w, 0);
    assert_true(told(&w, ST_INCIDENT_BACK, 0));
    tick(&w, w.now + 100 * policy.incident_quiet_ms);
    assert_false(only(&w)->over); /* one is still out */
    healed(&w, 1);
    tick(&w, w.now + policy.incident_quiet_ms - 1);
    assert_false(only(&w)->over);
    tick(&w, w.now + 1);
    assert_true(told(&w, ST_INCIDENT_CLOSED, -1));
    assert_true(only(&w)->over);
    assert_true(st_core_next_timer(w.core) == ST_TIME_NEVER);
    reload(&w);
    /* What comes later is another one, and so is what is of another kind. */
    fault(&w, 0, ST_FAULT_XID, 1, 79);
    fault(&w, 1, ST_FAULT_SILENT, -1, 0);
    assert_int_equal(st_core_nincidents(w.core), 3);
    end(&w);
}

/* Nobody said what it is: as before there were incidents. */
static void test_none(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.breaker_nodes = 1;
    begin(&w, &policy, 4, 2);
    for (int n = 0; n < 4; n++) {
        fault(&w, n, ST_FAULT_NONE, 0, 0);
        is(&w, n, ST_NODE_FAILED);
    }
    assert_int_equal(st_core_nincidents(w.core), 0);
    end(&w);
}

/* The breaker keeps those that serve, until somebody has looked or all is over; who is silent is lost all the same. */
static void test_breaker(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    st_err err = {0};
    policy.breaker_nodes = 2;
    begin(&w, &policy, 4, 2);
    account(&w, "team", 8000);
    for (uint64_t id = 1; id <= 8; id++)
        submit(&w, id, "team");
    fault(&w, 0, ST_FAULT_XID, 0, 95);
    fault(&w, 1, ST_FAULT_GPU, 0, 0); /* of the same cause */
    is(&w, 1, ST_NODE_FAILED);
    fault(&w, 2, ST_FAULT_XID, 0, 95);
    assert_true(told(&w, ST_INCIDENT_TRIPPED, 2));
    assert_true(told(&w, ST_INCIDENT_HELD, 2));
    is(&w, 2, ST_NODE_SUSPECT);
    const st_view *view = &st_core_fleet(w.core)->nodes.v[2]->view;
    assert_int_equal(view->free, 0); /* its jobs are there */
    assert_true(st_core_holds(w.core, 2, ST_FAULT_XID));
    assert_false(st_core_holds(w.core, 3, ST_FAULT_XID));
    reload(&w);
    fault(&w, 2, ST_FAULT_XID, 0, 95);
    assert_false(told(&w, ST_INCIDENT_HELD, 2)); /* once */
    tick(&w, w.now + 10 * policy.suspect_ms);
    is(&w, 2, ST_NODE_SUSPECT); /* for as long as it is said */
    fault(&w, 3, ST_FAULT_SILENT, -1, 0);
    is(&w, 3, ST_NODE_FAILED);
    healed(&w, 3);
    st_event ev = id_event(ST_EV_INCIDENT, 9);
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ENOENT, "no incident 9");
    ev.u.id = 2;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ESTATE, "holds no nodes");
    healed(&w, 0); /* else as many are out as may be */
    ev.u.id = 1;
    step(&w, &ev);
    assert_true(told(&w, ST_INCIDENT_RESET, -1));
    assert_false(st_core_holds(w.core, 2, ST_FAULT_XID));
    fault(&w, 2, ST_FAULT_XID, 0, 95);
    is(&w, 2, ST_NODE_FAILED);
    end(&w);
}

/* Whatever is out already counts. */
static void test_limit(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.breaker_nodes = 1;
    begin(&w, &policy, 4, 2);
    set_node(&w, 0, ST_NODE_DRAINING);
    fault(&w, 1, ST_FAULT_DISK, -1, 0);
    is(&w, 1, ST_NODE_SUSPECT);
    assert_false(only(&w)->breaker);
    healed(&w, 1);
    is(&w, 1, ST_NODE_READY);
    assert_int_equal(st_incident_out(only(&w)), 0);
    set_node(&w, 0, ST_NODE_READY);
    fault(&w, 1, ST_FAULT_DISK, -1, 0);
    is(&w, 1, ST_NODE_FAILED);
    end(&w);
}

/* To take nothing new ends nobody: that is never held back, and counts for nobody. */
static void test_soft(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.breaker_nodes = 1;
    policy.unavailable_share_m = 0;
    begin(&w, &policy, 4, 2);
    for (int n = 0; n < 4; n++) {
        st_event ev = state_event(n, ST_NODE_DRAINING);
        ev.u.node_state.how = ST_HOW_FAULT;
        ev.u.node_state.finding = (st_finding){.kind = ST_FAULT_DISK, .gpu = -1};
        step(&w, &ev);
        is(&w, n, ST_NODE_DRAINING);
    }
    assert_int_equal(st_incident_out(only(&w)), 4);
    for (int n = 1; n < 4; n++)
        healed(&w, n);
    is(&w, 1, ST_NODE_READY);
    end(&w);
}

/* What only informs takes nobody out. */
static void test_noted(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 4, 2);
    fault(&w, 0, ST_FAULT_CHECKER, -1, 0);
    is(&w, 0, ST_NODE_READY);
    assert_null(st_node_note_of(st_core_fleet(w.core)->nodes.v[0]));
    fault(&w, 0, ST_FAULT_PROGRAM, 1, 31);
    is(&w, 0, ST_NODE_READY);
    assert_int_equal(st_core_nincidents(w.core), 2);
    tick(&w, w.now + policy.incident_quiet_ms);
    assert_true(st_core_incident_at(w.core, 1)->over);
    end(&w);
}

/* Repaired twice, and there again. */
static void test_retired(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 4, 2);
    for (int i = 0; i < 3; i++) {
        fault(&w, 0, ST_FAULT_XID, 1, 79);
        fault(&w, 0, ST_FAULT_XID, 1, 79); /* said twice, and no more for that */
        reload(&w);
        healed(&w, 0);
        is(&w, 0, i < 2 ? ST_NODE_READY : ST_NODE_RETIRED);
    }
    assert_string_equal(st_node_note_of(st_core_fleet(w.core)->nodes.v[0])->by, "stintd");
    assert_int_equal(st_incident_out(only(&w)), 0);
    set_node(&w, 0, ST_NODE_READY);
    fault(&w, 0, ST_FAULT_XID, 1, 79);
    healed(&w, 0);
    is(&w, 0, ST_NODE_READY);
    /* Another GPU, or another error, is another matter; software is not retired. */
    for (int i = 0; i < 5; i++) {
        fault(&w, 1, ST_FAULT_XID, i % 2, 79);
        healed(&w, 1);
        fault(&w, 1, ST_FAULT_DRIVER, -1, 0);
        healed(&w, 1);
        is(&w, 1, ST_NODE_READY);
    }
    end(&w);
}

/* Out of service for good, it has a fault when no more nodes may be taken out: there is nothing to hold back, and nobody
 * who would say that it is over. */
static void test_retired_is_not_held(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.breaker_nodes = 1;
    policy.breaker_share_m = 0;
    begin(&w, &policy, 4, 2);
    fault(&w, 1, ST_FAULT_XID, 1, 79);
    set_node(&w, 0, ST_NODE_RETIRED);
    fault(&w, 0, ST_FAULT_XID, 1, 79);
    is(&w, 0, ST_NODE_RETIRED);
    assert_false(told(&w, ST_INCIDENT_HELD, 0));
    assert_int_equal(st_incident_out(only(&w)), 1);
    healed(&w, 1);
    tick(&w, w.now + policy.incident_quiet_ms);
    assert_true(only(&w)->over);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),     cmocka_unit_test(test_none),
        cmocka_unit_test(test_breaker), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_noted),   cmocka_unit_test(test_soft),
        cmocka_unit_test(test_retired), cmocka_unit_test(test_retired_is_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
