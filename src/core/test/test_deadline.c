/*
 * Deadlines: a hard one has its place in the calendar, and is met whoever comes; a soft one orders.
 */
#include "core/test/booked.h"

#define SLACK (NOTICE + GRACE + 120 * SEC)

static void begin_one(world *w)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = NOTICE;
    policy.grace_ms = GRACE;
    policy.min_run_ms = 0;
    policy.rebalance = 0;
    policy.booking_share_m = policy.booking_account_share_m = 1000;
    begin(w, &policy, 1, 4);
    account(w, "a", ST_UNSET);
    account(w, "b", ST_UNSET);
}

static st_event due_job(uint64_t id, const char *account, int gpus, int64_t limit_ms, int64_t by_ms)
{
    st_event ev = job_event(id, account);
    ev.u.job.shape.gpus = gpus;
    ev.u.job.limit_ms = limit_ms;
    ev.u.job.by_ms = by_ms;
    return ev;
}

static st_event promised(uint64_t id, int64_t limit_ms, int64_t by_ms)
{
    st_event ev = due_job(id, "a", 4, limit_ms, by_ms);
    ev.u.job.hard = true;
    ev.u.job.hold = 100 + id;
    return ev;
}

static int refused_saying(world *w, const st_event *ev, const char *says)
{
    st_err err = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf after = {0};
    st_core_save(w->core, &before);
    st_effects_clear(&w->fx);
    int rc = st_core_apply(w->core, ev, w->now, &w->fx, &err);
    assert_true(rc < 0);
    assert_non_null(strstr(err.msg, says));
    st_core_save(w->core, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, before.n);
    return -rc;
}

static const st_job *the_job(const world *w, uint64_t id)
{
    const st_job *job = st_core_job(w->core, id);
    assert_non_null(job);
    return job;
}

/* With all GPUs free it starts at once, inside what is kept for it; that goes with the job. */
static void test_at_once(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = promised(1, HOUR, 2 * HOUR);
    step(&w, &ev);
    assert_int_equal(the_job(&w, 1)->state, ST_JOB_RUNNING);
    assert_int_equal(the_job(&w, 1)->class, ST_CLASS_BOOKED);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 1)), ST_DEADLINE_PROMISED);
    st_event no = event(ST_EV_BOOK_CANCEL);
    no.u.booking.id = 101;
    refused_saying(&w, &no, "cancel the job");
    w.now += SEC;
    st_event done = event(ST_EV_FINISH);
    done.u.finish.id = 1;
    step(&w, &done);
    assert_int_equal(st_core_nbookings(w.core), 0);
    end(&w);
}

/* Its place is kept where it may run: in pools that allow what it needs. Bookings begin with the last nodes otherwise. */
static void test_where_it_may_run(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = pool_event("q", 0xf);
    ev.u.pool.rules.allow = 1;
    step(&w, &ev);
    for (int i = 0; i < 2; i++) {
        ev = node_event(i == 0 ? "n8" : "n9", 4);
        ev.u.node.pool = i == 0;
        step(&w, &ev);
    }
    ev = promised(1, HOUR, 2 * HOUR);
    ev.u.job.shape.needs = 1;
    step(&w, &ev);
    assert_int_equal(the_job(&w, 1)->state, ST_JOB_RUNNING);
    assert_int_equal(the_job(&w, 1)->class, ST_CLASS_BOOKED);
    assert_int_equal(the_job(&w, 1)->grants[0].node, 1);
    /* Also when it has to move, by a core that was loaded. */
    ev = promised(2, HOUR, 4 * HOUR);
    ev.u.job.shape.needs = 1;
    step(&w, &ev);
    reload(&w);
    st_err err = {0};
    ev = state_event(1, ST_NODE_DRAINING);
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ESTATE, "no other");
    end(&w);
}

/* Behind a borrower without an end: he leaves in time, and the deadline is met. */
static void test_behind_others(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event other = due_job(1, "b", 4, ST_TIME_NEVER, 0);
    step(&w, &other);
    assert_int_equal(the_job(&w, 1)->state, ST_JOB_RUNNING);
    st_event ev = promised(2, HOUR, HOUR + SLACK);
    assert_int_equal(refused_saying(&w, &ev, "the earliest that would work is 1h8m"), ST_EOVER);
    ev = promised(2, HOUR, 2 * HOUR);
    step(&w, &ev);
    assert_int_equal(the_job(&w, 2)->state, ST_JOB_PENDING);
    reload(&w);
    run_until(&w, NOTICE + GRACE + 61 * SEC);
    assert_int_equal(the_job(&w, 2)->state, ST_JOB_RUNNING);
    assert_int_equal(the_job(&w, 1)->state, ST_JOB_PENDING);
    run_until(&w, 2 * HOUR);
    assert_null(st_core_job(w.core, 2)); /* at its limit */
    assert_int_equal(st_core_nbookings(w.core), 0);
    assert_int_equal(the_job(&w, 1)->state, ST_JOB_RUNNING);
    end(&w);
}

/* A second one that does not fit behind the first is told when it would. */
static void test_full(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = promised(1, HOUR, 2 * HOUR);
    step(&w, &ev);
    ev = promised(2, HOUR, 2 * HOUR);
    refused_saying(&w, &ev, "the earliest that would work is");
    ev = promised(2, HOUR, 3 * HOUR);
    step(&w, &ev);
    assert_int_equal(st_core_nbookings(w.core), 2);
    run_until(&w, 3 * HOUR);
    assert_int_equal(st_core_njobs(w.core), 0);
    end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = promised(1, ST_TIME_NEVER, HOUR);
    assert_int_equal(refused_saying(&w, &ev, "needs a time limit"), ST_EINVAL);
    ev = promised(1, HOUR, 0);
    assert_int_equal(refused_saying(&w, &ev, "needs a time"), ST_EINVAL);
    w.now = SEC;
    ev = promised(1, HOUR, SEC);
    assert_int_equal(refused_saying(&w, &ev, "before it may begin"), ST_EINVAL);
    ev = promised(1, HOUR, INT64_MAX / 2);
    assert_int_equal(refused_saying(&w, &ev, "within 10 years"), ST_ERANGE);
    ev = promised(1, HOUR, 4 * HOUR);
    ev.u.job.end_by_ms = 3 * HOUR;
    assert_int_equal(refused_saying(&w, &ev, "no hard deadline"), ST_EINVAL);
    end(&w);
}

/* Among equals of one account the earliest deadline goes first, and those without one last. */
static void test_order(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event first = due_job(1, "a", 4, HOUR, 0);
    step(&w, &first);
    const int64_t by[] = {0, 9 * HOUR, 5 * HOUR};
    for (uint64_t i = 0; i < 3; i++) {
        st_event ev = due_job(2 + i, "a", 4, HOUR, by[i]);
        step(&w, &ev);
    }
    run_until(&w, HOUR);
    assert_int_equal(the_job(&w, 4)->state, ST_JOB_RUNNING);
    run_until(&w, 2 * HOUR);
    assert_int_equal(the_job(&w, 3)->state, ST_JOB_RUNNING);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 3)), ST_DEADLINE_OPEN);
    run_until(&w, 3 * HOUR);
    assert_int_equal(the_job(&w, 2)->state, ST_JOB_RUNNING);
    st_event late = due_job(9, "a", 4, 3 * HOUR, 4 * HOUR);
    step(&w, &late);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 9)), ST_DEADLINE_AT_RISK);
    end(&w);
}

/* Its node fails: nothing is kept any more, and that is said. */
static void test_at_risk(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = promised(1, HOUR, 6 * HOUR);
    ev.u.job.begin_ms = 2 * HOUR;
    step(&w, &ev);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 1)), ST_DEADLINE_PROMISED);
    w.now += SEC;
    st_event fails = event(ST_EV_NODE_STATE);
    fails.u.node_state.state = ST_NODE_FAILED;
    step(&w, &fails);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 1)), ST_DEADLINE_AT_RISK);
    run_until(&w, 7 * HOUR);
    assert_int_equal(st_core_deadline(w.core, the_job(&w, 1)), ST_DEADLINE_MISSED);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),       cmocka_unit_test(test_where_it_may_run),
        cmocka_unit_test(test_behind_others), cmocka_unit_test(test_full),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_order),
        cmocka_unit_test(test_at_risk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
