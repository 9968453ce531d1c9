/*
 * Reserved starts: found where enough ends, kept while nothing touches them, and the same as counted
 * anew after every step; and when borrowers look for whom to displace.
 */
#include "core/test/world.h"

#define MINUTE (60 * SEC)

static void job(world *w, uint64_t id, const char *account, int tasks, int gpus, int64_t limit_ms)
{
    st_event ev = job_event(id, account);
    ev.u.job.tasks = tasks;
    ev.u.job.shape.gpus = gpus;
    ev.u.job.limit_ms = limit_ms;
    step(w, &ev);
}

/* When something is reserved for the job, by limits; and that counting anew says so too. */
static int64_t reserved(const world *w, uint64_t id)
{
    st_reserved_list list = {0};
    st_err err = {0};
    int64_t at_ms = -1;
    st_core_reserved(w->core, &list);
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].job == id)
            at_ms = list.v[i].by_ms;
    st_vec_free(&list);
    assert_ok(st_core_audit(w->core, &err));
    return at_ms;
}

/* Four nodes of two GPUs, each with a job that ends an hour after the one before. */
static void begin_full(world *w)
{
    st_policy policy = st_policy_default();
    policy.forecast = 0;
    begin(w, &policy, 4, 2);
    account(w, "a", ST_UNSET);
    for (uint64_t id = 1; id <= 4; id++)
        job(w, id, "a", 1, 2, (int64_t)id * 60 * MINUTE);
}

static void test_the_earliest_that_suffices(void **state)
{
    (void)state;
    world w;
    begin_full(&w);
    job(&w, 5, "a", 3, 2, 60 * MINUTE);
    assert_int_equal(reserved(&w, 5), 180 * MINUTE);
    /* Behind it: three nodes are planned for, one is not. */
    job(&w, 6, "a", 1, 2, 600 * MINUTE);
    assert_int_equal(reserved(&w, 6), 240 * MINUTE);
    end(&w);
}

static void test_an_end_before_its_time(void **state)
{
    (void)state;
    world w;
    begin_full(&w);
    job(&w, 5, "a", 3, 2, 60 * MINUTE);
    w.now = MINUTE;
    tell(&w, ST_EV_FINISH, 1);
    assert_int_equal(reserved(&w, 5), 180 * MINUTE); /* it was counted on anyway */
    w.now = 2 * MINUTE;
    tell(&w, ST_EV_FINISH, 4);
    assert_int_equal(reserved(&w, 5), 120 * MINUTE);
    w.now = 3 * MINUTE;
    tell(&w, ST_EV_FINISH, 3);
    in_state(&w, 5, ST_JOB_RUNNING);
    end(&w);
}

static void test_nodes_come_and_go(void **state)
{
    (void)state;
    world w;
    begin_full(&w);
    job(&w, 5, "a", 2, 2, 60 * MINUTE);
    assert_int_equal(reserved(&w, 5), 120 * MINUTE);
    set_node(&w, job_of(&w, 2)->grants[0].node, ST_NODE_DRAINING);
    assert_int_equal(reserved(&w, 5), 180 * MINUTE);
    set_node(&w, job_of(&w, 2)->grants[0].node, ST_NODE_READY);
    assert_int_equal(reserved(&w, 5), 120 * MINUTE);
    end(&w);
}

/* A paused gang goes on where it is: only those on its own nodes count. */
static void test_a_paused_gang(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.forecast = policy.notice_ms = policy.min_run_ms = 0;
    policy.pause_limit_ms = 600 * MINUTE;
    begin(&w, &policy, 3, 2);
    account(&w, "a", ST_UNSET);
    account(&w, "b", 6000);
    st_event gang = job_event(1, "a");
    gang.u.job.tasks = gang.u.job.shape.gpus = 2;
    gang.u.job.shape.ram_mib = 0;
    gang.u.job.yield = ST_YIELD_PAUSE;
    step(&w, &gang);
    job(&w, 2, "b", 1, 2, 30 * MINUTE);
    w.now = MINUTE;
    job(&w, 3, "b", 1, 2, 120 * MINUTE);
    in_state(&w, 1, ST_JOB_CHECKPOINTING);
    w.now = 2 * MINUTE;
    tell(&w, ST_EV_CHECKPOINTED, 1);
    in_state(&w, 1, ST_JOB_PAUSED);
    job(&w, 4, "b", 1, 2, 60 * MINUTE);
    in_state(&w, 4, ST_JOB_RUNNING);
    assert_int_not_equal(job_of(&w, 3)->grants[0].node, job_of(&w, 4)->grants[0].node);
    assert_int_equal(reserved(&w, 1), 122 * MINUTE);
    w.now = 3 * MINUTE;
    tell(&w, ST_EV_FINISH, 3);
    assert_int_equal(reserved(&w, 1), 62 * MINUTE);
    end(&w);
}

/* A save has no profiles; the loaded core finds the same. */
static void test_after_a_load(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin_full(&w);
    job(&w, 5, "a", 3, 2, 60 * MINUTE);
    ST_CLEANUP(st_strbuf_done) st_strbuf save = {0};
    st_core_save(w.core, &save);
    st_core_free(w.core);
    assert_ok(st_core_load(save.s, save.n, &w.core, &err));
    w.now = MINUTE;
    tell(&w, ST_EV_FINISH, 3);
    assert_int_equal(reserved(&w, 5), 120 * MINUTE);
    end(&w);
}

/* Account b has nothing and comes to a fleet that a has borrowed whole, a minute too early. */
static void begin_borrowed(world *w, int gpus)
{
    st_policy policy = st_policy_default();
    policy.min_run_ms = 90 * SEC;
    begin(w, &policy, 4, 2);
    account(w, "a", ST_UNSET);
    account(w, "b", ST_UNSET);
    for (uint64_t id = 1; id <= 8 / (uint64_t)gpus; id++)
        job(w, id, "a", gpus > 2 ? gpus / 2 : 1, gpus > 2 ? 2 : gpus, ST_TIME_NEVER);
    w->now = 50 * SEC;
    job(w, 20, "b", 1, 1, ST_TIME_NEVER);
    in_state(w, 20, ST_JOB_PENDING);
    assert_false(job_of(w, 20)->held);
}

static void test_borrowers_look_on_the_minute(void **state)
{
    (void)state;
    world w;
    begin_borrowed(&w, 1);
    assert_int_equal(st_core_next_timer(w.core), 60 * SEC); /* somebody moved since */
    tick(&w, 60 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 120 * SEC); /* at 90 s a protection ends */
    tick(&w, 100 * SEC);
    assert_false(job_of(&w, 20)->held);
    tick(&w, 120 * SEC);
    assert_true(job_of(&w, 20)->held);
    end(&w);
}

/* Nobody has moved for long: it is the one who comes that the minute is for. */
static void test_the_minute_of_who_comes(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 4, 2);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    for (uint64_t id = 1; id <= 8; id++)
        job(&w, id, "a", 1, 1, ST_TIME_NEVER);
    tick(&w, 600 * MINUTE);
    assert_int_equal(st_core_next_timer(w.core), ST_TIME_NEVER);
    w.now = 600 * MINUTE + 10 * SEC;
    job(&w, 20, "b", 1, 1, ST_TIME_NEVER);
    assert_false(job_of(&w, 20)->held);
    assert_int_equal(st_core_next_timer(w.core), 601 * MINUTE);
    tick(&w, 601 * MINUTE);
    assert_true(job_of(&w, 20)->held);
    end(&w);
}

static void test_no_more_than_it_takes(void **state)
{
    (void)state;
    world w;
    begin_borrowed(&w, 2);
    tick(&w, 120 * SEC); /* two GPUs for one */
    assert_false(job_of(&w, 20)->held);
    tick(&w, 49 * SEC + 4 * 60 * MINUTE);
    assert_false(job_of(&w, 20)->held);
    tick(&w, MINUTE + 4 * 60 * MINUTE);
    assert_true(job_of(&w, 20)->held);
    end(&w);
}

/* When somebody counts for more the next submit has everybody looked at, in a core that was loaded in between too.
 * Two owners wait for borrowers who are protected, and a pass has effort for one of them. */
static void test_ageing_is_saved(void **state)
{
    (void)state;
    world w, other = {0};
    st_policy policy = st_policy_default();
    policy.reservations = policy.rebalance = policy.urgent = 0;
    policy.min_run_ms = 100000 * SEC;
    policy.ageing_ms = 500 * SEC;
    policy.claim_effort = 1;
    begin(&w, &policy, 1, 2);
    account(&w, "lend", ST_UNSET);
    account(&w, "own", 2000);
    submit(&w, 1, "lend");
    submit(&w, 2, "lend");
    submit(&w, 3, "own");
    st_event ev = job_event(4, "own");
    ev.u.job.priority = 1;
    step(&w, &ev);
    while (st_core_resumes(w.core))
        tick(&w, w.now + 1);
    ev = event(ST_EV_TOLD);
    ev.u.told.id = 3;
    ev.u.told.start_ms = 1000 * SEC;
    w.now = 485 * SEC; /* the minute in which the first has waited long enough */
    step(&w, &ev);
    st_strbuf bytes = {0};
    st_err err = {0};
    st_core_save(w.core, &bytes);
    assert_ok(st_core_load(bytes.s, bytes.n, &other.core, &err));
    st_strbuf_done(&bytes);
    other.now = w.now = 505 * SEC;
    submit(&w, 5, "lend");
    submit(&other, 5, "lend");
    assert_true(st_core_resumes(w.core));
    assert_true(st_core_resumes(other.core));
    end(&other);
    end(&w);
}

static void cpu_job(world *w, uint64_t id, const char *account, int64_t cpu_m)
{
    st_event ev = job_event(id, account);
    ev.u.job.shape.cpu_m = cpu_m;
    step(w, &ev);
}

/* Two owners come back ten seconds apart. The first takes the CPU of whoever leaves for it while the second one's
 * borrower is still there: who counts on what both leave waits for both. */
static void test_holds_come_true_one_by_one(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.forecast = policy.min_run_ms = policy.rebalance = 0;
    policy.overstay_ms = 0;
    begin(&w, &policy, 1, 6);
    account(&w, "a", ST_UNSET);
    account(&w, "b", 1000);
    account(&w, "c", 1000);
    account(&w, "d", 1000);
    cpu_job(&w, 2, "a", 24000);
    cpu_job(&w, 3, "d", 8000);
    w.now = SEC;
    cpu_job(&w, 1, "a", 32000); /* 64 CPUs are in use */
    w.now = 10 * SEC;
    cpu_job(&w, 4, "b", 32000);
    in_state(&w, 1, ST_JOB_NOTIFIED);
    w.now = 20 * SEC;
    cpu_job(&w, 5, "c", 16000);
    in_state(&w, 2, ST_JOB_NOTIFIED);
    in_state(&w, 3, ST_JOB_RUNNING);
    cpu_job(&w, 6, "a", 8000);
    int64_t by_ms = job_of(&w, 2)->deadline_ms + policy.grace_ms;
    assert_true(job_of(&w, 1)->deadline_ms + policy.grace_ms < by_ms);
    assert_int_equal(reserved(&w, 6), by_ms);
    tick(&w, job_of(&w, 1)->deadline_ms);
    in_state(&w, 4, ST_JOB_RUNNING);
    in_state(&w, 6, ST_JOB_PENDING);
    assert_int_equal(reserved(&w, 6), by_ms); /* as it was promised */
    tick(&w, job_of(&w, 2)->deadline_ms);
    in_state(&w, 5, ST_JOB_RUNNING);
    in_state(&w, 6, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ageing_is_saved),
        cmocka_unit_test(test_the_earliest_that_suffices),
        cmocka_unit_test(test_an_end_before_its_time),
        cmocka_unit_test(test_nodes_come_and_go),
        cmocka_unit_test(test_a_paused_gang),
        cmocka_unit_test(test_after_a_load),
        cmocka_unit_test(test_borrowers_look_on_the_minute),
        cmocka_unit_test(test_the_minute_of_who_comes),
        cmocka_unit_test(test_no_more_than_it_takes),
        cmocka_unit_test(test_holds_come_true_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
