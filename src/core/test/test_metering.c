/* From effects to the meter: stays, why they end, plans, floors, seeding. */
#include "core/metering.h"
#include "core/test/world.h"

typedef struct metered {
    world w;
    st_meter *m;
    st_records out; /* of the last feed */
    int64_t started_ms, ended_ms;
} metered;

static int64_t real_start(void *ctx, uint64_t job)
{
    (void)job;
    return ((metered *)ctx)->started_ms;
}

static int64_t real_end(void *ctx, uint64_t job)
{
    (void)job;
    return ((metered *)ctx)->ended_ms;
}

/* The effects of the last step. */
static void feed(metered *t)
{
    st_err err = {0};
    st_metering_hint hint = {real_start, real_end, t};
    st_vec_clear(&t->out);
    st_core_meter(t->w.core, &t->w.fx, 0, t->w.now, &hint, t->m, &t->out);
    assert_ok(st_meter_check(t->m, &err));
    assert_ok(st_core_meter_check(t->w.core, t->m, &err));
}

static void begin_metered(metered *t, const st_policy *policy, int nodes, int ndevs)
{
    *t = (metered){.m = st_meter_new(0), .started_ms = ST_UNSET, .ended_ms = ST_UNSET};
    begin(&t->w, policy, nodes, ndevs);
    st_core_meter_seed(t->w.core, t->m, 0, &t->out);
    account(&t->w, "a", 1000);
    feed(t);
    account(&t->w, "b", 0);
    feed(t);
}

static void end_metered(metered *t)
{
    st_meter_free(t->m);
    st_vec_free(&t->out);
    end(&t->w);
}

static const st_record *find(const metered *t, st_record_kind kind, uint64_t job)
{
    for (size_t i = 0; i < t->out.n; i++)
        if (t->out.v[i].kind == kind && t->out.v[i].job == job)
            return &t->out.v[i];
    fail_msg("no %s record of job %d", st_record_name(kind), (int)job);
    return NULL;
}

static void test_end(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    metered t;
    begin_metered(&t, &policy, 1, 2);
    t.w.now = 10 * SEC;
    submit(&t.w, 1, "a");
    feed(&t);
    t.w.now = 30 * SEC;
    t.started_ms = 12 * SEC;
    t.ended_ms = 25 * SEC;
    tell(&t.w, ST_EV_FINISH, 1);
    feed(&t);
    const st_record *r = find(&t, ST_REC_GRANT, 1);
    assert_int_equal(r->basis, ST_BASIS_GUARANTEED);
    assert_int_equal(r->cut, ST_CUT_ENDED);
    assert_int_equal(r->from_ms, 12 * SEC);
    assert_int_equal(r->to_ms, 25 * SEC);
    st_vec_clear(&t.out);
    st_meter_cut(t.m, 40 * SEC, &t.out);
    assert_int_equal(find(&t, ST_REC_RESERVE, 0)->share, 40 * SEC * 1000);
    assert_int_equal(find(&t, ST_REC_FLEET, 0)->overhead, (2 + 5) * SEC * 1000);
    end_metered(&t);
}

/* b borrows both GPUs; a wants one back. Then a node fails. */
static void test_preempted_and_fault(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.notice_ms = 0;
    policy.grace_ms = 0;
    policy.min_run_ms = 0;
    metered t;
    begin_metered(&t, &policy, 1, 1);
    submit(&t.w, 1, "b");
    feed(&t);
    t.w.now = 100 * SEC;
    submit(&t.w, 2, "a");
    feed(&t);
    const st_record *r = find(&t, ST_REC_GRANT, 1);
    assert_int_equal(r->cut, ST_CUT_PREEMPTED);
    assert_int_equal(r->basis, ST_BASIS_BURST);
    assert_int_equal(find(&t, ST_REC_LOST, 1)->lost, 100 * SEC * 1000);
    in_state(&t.w, 2, ST_JOB_RUNNING);
    t.w.now = 150 * SEC;
    set_node(&t.w, 0, ST_NODE_FAILED);
    feed(&t);
    r = find(&t, ST_REC_GRANT, 2);
    assert_int_equal(r->cut, ST_CUT_FAULT);
    assert_int_equal(find(&t, ST_REC_LOST, 2)->lost, 50 * SEC * 1000);
    assert_int_equal(find(&t, ST_REC_LOST, 2)->cut, ST_CUT_FAULT);
    assert_int_equal(st_meter_device(t.m, 0, 0).unhealthy_m, 1000);
    end_metered(&t);
}

/* b's only job has the GPU and yields to a in its own way. */
static void displace(metered *t, st_yield yield)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = 0;
    policy.grace_ms = 10 * SEC;
    policy.min_run_ms = 0;
    policy.pause_limit_ms = 60 * SEC;
    begin_metered(t, &policy, 1, 1);
    st_event ev = job_event(1, "b");
    ev.u.job.yield = yield;
    step(&t->w, &ev);
    feed(t);
    t->w.now = 100 * SEC;
    submit(&t->w, 2, "a");
    feed(t);
}

/* To yield is to end for some: that is no choice of theirs. */
static void test_cancelled_to_yield(void **state)
{
    (void)state;
    metered t;
    displace(&t, ST_YIELD_CANCEL);
    const st_record *r = find(&t, ST_REC_GRANT, 1);
    assert_int_equal(r->cut, ST_CUT_PREEMPTED);
    assert_int_equal(find(&t, ST_REC_LOST, 1)->lost, 100 * SEC * 1000);
    end_metered(&t);
}

/* What was paused goes on in a second stay, or loses what it kept in memory. */
static void test_paused(void **state)
{
    (void)state;
    metered t;
    displace(&t, ST_YIELD_PAUSE);
    t.w.now = 105 * SEC;
    tell(&t.w, ST_EV_CHECKPOINTED, 1);
    feed(&t);
    const st_record *r = find(&t, ST_REC_GRANT, 1);
    assert_int_equal(r->cut, ST_CUT_PREEMPTED);
    assert_int_equal(r->to_ms, 105 * SEC);
    assert_int_equal(r->lost, 0);
    t.w.now = 110 * SEC;
    tell(&t.w, ST_EV_FINISH, 2);
    feed(&t);
    in_state(&t.w, 1, ST_JOB_RUNNING);
    t.w.now = 120 * SEC;
    tell(&t.w, ST_EV_CANCEL, 1);
    feed(&t);
    r = find(&t, ST_REC_GRANT, 1);
    assert_int_equal(r->stay, 2);
    assert_int_equal(r->from_ms, 110 * SEC);
    end_metered(&t);

    displace(&t, ST_YIELD_PAUSE);
    t.w.now = 105 * SEC;
    tell(&t.w, ST_EV_CHECKPOINTED, 1);
    feed(&t);
    tick(&t.w, 165 * SEC);
    feed(&t);
    in_state(&t.w, 1, ST_JOB_PENDING);
    r = find(&t, ST_REC_LOST, 1);
    assert_int_equal(r->cut, ST_CUT_PREEMPTED);
    assert_int_equal(r->lost, 105 * SEC * 1000);
    assert_int_equal(r->stay, 1);
    end_metered(&t);
}

/* While a victim has notice, what is free already is kept for the claimant. */
static void test_hold(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.notice_ms = 5 * SEC;
    policy.min_run_ms = 0;
    policy.grace_ms = 0;
    metered t;
    begin_metered(&t, &policy, 1, 2);
    st_event more = account_event("a", 2000);
    step(&t.w, &more);
    feed(&t);
    submit(&t.w, 1, "b");
    feed(&t);
    t.w.now = 60 * SEC;
    st_event two = job_event(2, "a");
    two.u.job.shape.gpus = 2;
    step(&t.w, &two);
    feed(&t);
    in_state(&t.w, 1, ST_JOB_NOTIFIED);
    int64_t kept = st_meter_device(t.m, 0, 0).overhead_m + st_meter_device(t.m, 0, 1).overhead_m;
    assert_int_equal(kept, 1000);
    tick(&t.w, 65 * SEC);
    feed(&t);
    in_state(&t.w, 2, ST_JOB_RUNNING);
    assert_int_equal(st_meter_device(t.m, 0, 0).granted_m, 1000);
    assert_int_equal(st_meter_device(t.m, 0, 0).overhead_m, 0);
    end_metered(&t);
}

/* It starts where it was held and ends before the meter has heard of either: nothing is kept any more. */
static void test_hold_over_at_once(void **state)
{
    (void)state;
    st_err err = {0};
    metered t;
    displace(&t, ST_YIELD_CHECKPOINT);
    in_state(&t.w, 1, ST_JOB_CHECKPOINTING);
    t.w.now = 105 * SEC;
    tell(&t.w, ST_EV_FINISH, 1);
    in_state(&t.w, 2, ST_JOB_RUNNING);
    st_event cancel = id_event(ST_EV_CANCEL, 2);
    assert_ok(st_core_step(t.w.core, &cancel, t.w.now, &t.w.fx, &err));
    feed(&t);
    assert_int_equal(st_meter_device(t.m, 0, 0).overhead_m, 0);
    assert_int_equal(st_meter_device(t.m, 0, 0).idle_m, 1000);
    end_metered(&t);
}

/* A meter that comes later knows who is there, from then on. */
static void test_seed(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    st_err err = {0};
    metered t;
    begin_metered(&t, &policy, 2, 2);
    submit(&t.w, 1, "a");
    feed(&t);
    submit(&t.w, 2, "b");
    feed(&t);
    set_node(&t.w, 1, ST_NODE_DRAINING);
    feed(&t);
    st_meter *late = st_meter_new(50 * SEC);
    assert_fails(st_core_meter_check(t.w.core, late, &err), ST_EINTERNAL, "nodes");
    st_core_meter_seed(t.w.core, late, 50 * SEC, &t.out);
    assert_ok(st_core_meter_check(t.w.core, late, &err));
    assert_int_equal(st_meter_stays(late), 2);
    /* They part as soon as one of them misses something. */
    t.w.now = 60 * SEC;
    tell(&t.w, ST_EV_FINISH, 1);
    assert_fails(st_core_meter_check(t.w.core, late, &err), ST_EINTERNAL, "metered");
    st_meter_free(late);
    end_metered(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_preempted_and_fault),
        cmocka_unit_test(test_cancelled_to_yield),
        cmocka_unit_test(test_paused),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_hold_over_at_once),
        cmocka_unit_test(test_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
