/*
 * Rounds that take more than one pass: what happens while one is not over. And what one leaves behind for the
 * next.
 */
#include "core/test/world.h"

#define OWNERS 6

/* Two GPUs with borrowers who are protected. Owners wait for them, each with a claim of its own shape
 * that comes to nothing, and a pass has effort for one of them: it has stopped in the middle of a round. */
static void begin_round(world *w)
{
    st_policy policy = st_policy_default();
    policy.reservations = policy.rebalance = policy.urgent = 0;
    policy.min_run_ms = 100000 * SEC;
    policy.claim_effort = 1;
    begin(w, &policy, 1, 2);
    account(w, "lend", ST_UNSET);
    account(w, "own", 2000);
    submit(w, 1, "lend");
    submit(w, 2, "lend");
    st_err err = {0};
    for (int i = 0; i < OWNERS; i++) {
        st_event ev = job_event((uint64_t)(10 + i), "own");
        ev.u.job.shape.cpu_m = 1000 * (i + 1);
        assert_ok(st_core_apply(w->core, &ev, w->now, &w->fx, &err));
    }
    tick(w, w->now + 1);
    assert_true(st_core_resumes(w->core));
}

static st_job_state state_of(const world *w, uint64_t id)
{
    return st_core_job(w->core, id)->state;
}

/* How many passes until the round is over. */
static int go_on(world *w)
{
    int passes = 0;
    for (; st_core_resumes(w->core); passes++) {
        assert_int_equal(st_core_next_timer(w->core), w->now + 1);
        tick(w, w->now + 1);
    }
    return passes;
}

static size_t told(const world *w, st_effect_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fx.list.n; i++)
        n += w->fx.list.v[i].kind == kind;
    return n;
}

/* Whoever comes meanwhile makes the round no longer, and is looked at when it is over. */
static void test_a_submit_does_not_begin_it_anew(void **state)
{
    (void)state;
    world alone, w;
    begin_round(&alone);
    begin_round(&w);
    int passes = 0;
    for (uint64_t id = 100; st_core_resumes(w.core) && id < 200; id++, passes++) {
        submit(&w, id, "lend");
        assert_int_equal(w.fx.list.n, 1);
        assert_int_equal(told(&w, ST_FX_QUEUED), 1);
        assert_int_equal(st_core_next_timer(w.core), w.now + 1);
        tick(&w, w.now + 1);
    }
    assert_int_equal(passes, go_on(&alone));
    assert_int_equal(state_of(&w, 100), ST_JOB_PENDING);
    end(&w);
    end(&alone);
}

/* Who needs nothing that anybody waits for starts once the round is over, and no later. */
static void test_who_comes_meanwhile_joins(void **state)
{
    (void)state;
    world w;
    begin_round(&w);
    st_event ev = job_event(100, "lend");
    ev.u.job.shape.gpus = 0;
    ev.u.job.shape.cpu_m = 1000;
    step(&w, &ev);
    assert_int_equal(state_of(&w, 100), ST_JOB_PENDING);
    go_on(&w);
    assert_int_equal(state_of(&w, 100), ST_JOB_RUNNING);
    end(&w);
}

/* What is freed in a moment that has had its pass is given out in the next. */
static void test_an_end_is_for_the_next_moment(void **state)
{
    (void)state;
    world w;
    begin_round(&w);
    tell(&w, ST_EV_FINISH, 1);
    assert_int_equal(told(&w, ST_FX_END), 1);
    assert_int_equal(told(&w, ST_FX_START), 0);
    assert_int_equal(st_core_next_timer(w.core), w.now + 1);
    tick(&w, w.now + 1);
    assert_int_equal(told(&w, ST_FX_START), 1);
    assert_int_equal(state_of(&w, 10), ST_JOB_RUNNING);
    end(&w);
}

/* A core that was saved in between knows who came meanwhile, in whatever order their numbers are. */
static void test_saved_in_between(void **state)
{
    (void)state;
    world w, other = {0};
    begin_round(&w);
    st_event ev = job_event(101, "lend");
    ev.u.job.shape.gpus = 0;
    ev.u.job.shape.cpu_m = 1000;
    step(&w, &ev);
    submit(&w, 100, "own");
    st_strbuf bytes = {0}, again = {0};
    st_err err = {0};
    st_core_save(w.core, &bytes);
    assert_ok(st_core_load(bytes.s, bytes.n, &other.core, &err));
    st_core_save(other.core, &again);
    assert_int_equal(bytes.n, again.n);
    assert_memory_equal(bytes.s, again.s, bytes.n);
    other.now = w.now;
    assert_int_equal(go_on(&w), go_on(&other));
    assert_int_equal(state_of(&other, 101), ST_JOB_RUNNING);
    st_strbuf_clear(&bytes);
    st_strbuf_clear(&again);
    st_core_save(w.core, &bytes);
    st_core_save(other.core, &again);
    assert_int_equal(bytes.n, again.n);
    assert_memory_equal(bytes.s, again.s, bytes.n);
    st_strbuf_done(&bytes);
    st_strbuf_done(&again);
    end(&other);
    end(&w);
}

/* Who lost its node looks before everybody else, and for now could have what is reserved for another. When it
 * would be let have that is nothing to wake for: the same moment again knows nothing of it. */
static void test_a_restart_leaves_no_timer(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.swap = 1;
    policy.rebalance = policy.defrag = 0;
    policy.min_run_ms = 30 * SEC;
    world w;
    begin(&w, &policy, 1, 2);
    account(&w, "a", 0);
    st_event ev = node_event("n1", 1);
    step(&w, &ev);
    /* One on the second node, two on the first; then one for whom the first is reserved. */
    static const struct {
        int gpus, priority;
        int64_t limit_ms;
    } jobs[] = {{1, 2, 9000 * SEC}, {1, 5, 5000 * SEC}, {1, 0, 4000 * SEC}, {2, 3, 3000 * SEC}};
    for (uint64_t id = 1; id <= ST_ARRAY_LEN(jobs); id++) {
        ev = job_event(id, "a");
        ev.u.job.shape.gpus = jobs[id - 1].gpus;
        ev.u.job.priority = jobs[id - 1].priority;
        ev.u.job.limit_ms = jobs[id - 1].limit_ms;
        step(&w, &ev);
    }
    assert_int_equal(job_of(&w, 1)->grants[0].node, 1);
    in_state(&w, 4, ST_JOB_PENDING);
    st_strbuf first = {0}, second = {0};
    w.now += SEC;
    set_node(&w, 1, ST_NODE_FAILED);
    in_state(&w, 1, ST_JOB_PENDING);
    st_core_save(w.core, &first);
    tick(&w, w.now);
    st_core_save(w.core, &second);
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.s, second.s, first.n);
    st_strbuf_done(&first);
    st_strbuf_done(&second);
    end(&w);
}

/* Who counts for more by the time a long round is over is ahead from then on: the round keeps the order it began
 * with, however late it goes on. */
static void test_who_ages_in_a_long_round(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.rebalance = policy.urgent = policy.forecast = 0;
    policy.reservations = 64;
    policy.min_run_ms = 100000 * SEC;
    policy.ageing_ms = 3 * SEC;
    policy.claim_effort = 1;
    world w;
    begin(&w, &policy, 1, 2);
    account(&w, "lend", ST_UNSET);
    st_event ev = account_event("own", ST_UNSET);
    ev.u.account.guarantee.cpu_m = 64000;
    step(&w, &ev);
    /* One GPU becomes free, and reserved beside the other for a gang of two; the older one behind that ages. */
    ev = job_event(1, "lend");
    ev.u.job.shape.cpu_m = 64000;
    ev.u.job.limit_ms = 5000 * SEC;
    step(&w, &ev);
    submit(&w, 4, "lend");
    ev = job_event(2, "lend");
    ev.u.job.priority = -100;
    step(&w, &ev);
    ev = job_event(3, "lend");
    ev.u.job.shape.gpus = 2;
    step(&w, &ev);
    tell(&w, ST_EV_FINISH, 4);
    in_state(&w, 2, ST_JOB_PENDING);
    st_err err = {0};
    for (int i = 0; i < OWNERS; i++) {
        ev = job_event((uint64_t)(10 + i), "own");
        ev.u.job.shape.gpus = 0;
        ev.u.job.shape.cpu_m = 1000 * (i + 1);
        assert_ok(st_core_apply(w.core, &ev, w.now, &w.fx, &err));
    }
    tick(&w, w.now + 1);
    assert_true(st_core_resumes(w.core));
    tick(&w, w.now + 5 * SEC);
    go_on(&w);
    in_state(&w, 2, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_submit_does_not_begin_it_anew),
        cmocka_unit_test(test_who_comes_meanwhile_joins),
        cmocka_unit_test(test_an_end_is_for_the_next_moment),
        cmocka_unit_test(test_saved_in_between),
        cmocka_unit_test(test_a_restart_leaves_no_timer),
        cmocka_unit_test(test_who_ages_in_a_long_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
