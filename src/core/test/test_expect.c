/*
 * What is expected of jobs: set at the start, moved when outlived, kept in a save; and what
 * became of estimates.
 */
#include "core/test/world.h"

#define MINUTE (60 * SEC)
/* Five runs of ten minutes are told apart to here; half of it and of the lower edge is likely. */
#define SAFE   INT64_C(655360)
#define LIKELY INT64_C(589824)

static void job(world *w, uint64_t id, int gpus, int64_t limit_ms)
{
    st_event ev = job_event(id, "a");
    ev.u.job.shape.gpus = gpus;
    ev.u.job.limit_ms = limit_ms;
    step(w, &ev);
}

/* One node of 8; jobs of 8 GPUs that take ten minutes. */
static void begin_taught(world *w, const st_policy *policy, int64_t limit_ms)
{
    begin(w, policy, 1, 8);
    account(w, "a", ST_UNSET);
    for (uint64_t id = 1; id <= 5; id++) {
        job(w, id, 8, limit_ms);
        w->now += 10 * MINUTE;
        tell(w, ST_EV_FINISH, id);
    }
}

static st_estimate estimate_of(const world *w, uint64_t id)
{
    st_estimates list = {0};
    st_estimate found = {0};
    st_err err = {0};
    assert_ok(st_core_estimate(w->core, &list, &err));
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].job == id)
            found = list.v[i];
    st_vec_free(&list);
    return found;
}

static void told(world *w, uint64_t id, int64_t start_ms)
{
    st_event ev = event(ST_EV_TOLD);
    ev.u.told.id = id;
    ev.u.told.start_ms = start_ms;
    step(w, &ev);
}

static void test_expected(void **state)
{
    (void)state;
    world w;
    begin_taught(&w, NULL, 120 * MINUTE);
    int64_t from = w.now;
    job(&w, 10, 8, 120 * MINUTE);
    assert_int_equal(st_core_job(w.core, 10)->expect_ms, from + SAFE);
    assert_int_equal(st_core_next_timer(w.core), from + SAFE);
    /* 85 of 1024 parts of a limit of two hours were used, told apart to 96. */
    tick(&w, from + SAFE);
    assert_int_equal(st_core_job(w.core, 10)->expect_ms, from + 120 * MINUTE * 96 / 1024);
    tick(&w, from + 120 * MINUTE * 96 / 1024);
    assert_int_equal(st_core_job(w.core, 10)->expect_ms, ST_TIME_NEVER);
    assert_int_equal(st_core_next_timer(w.core), from + 120 * MINUTE); /* the limit is left */
    end(&w);
}

static void test_switched_off(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.forecast = 0;
    begin_taught(&w, &policy, 120 * MINUTE);
    job(&w, 10, 8, 120 * MINUTE);
    job(&w, 11, 8, 120 * MINUTE);
    assert_int_equal(st_core_job(w.core, 10)->expect_ms, ST_TIME_NEVER);
    assert_int_equal(estimate_of(&w, 11).start_ms, w.now + 120 * MINUTE);
    end(&w);
}

/* Cancelled jobs and those that were displaced say nothing of how long such jobs run. */
static void test_cancelled_teach_nothing(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 8);
    account(&w, "a", ST_UNSET);
    for (uint64_t id = 1; id <= 10; id++) {
        job(&w, id, 8, ST_TIME_NEVER);
        w.now += MINUTE;
        tell(&w, ST_EV_CANCEL, id);
    }
    job(&w, 20, 8, ST_TIME_NEVER);
    assert_int_equal(st_core_job(w.core, 20)->expect_ms, ST_TIME_NEVER);
    end(&w);
}

/* Estimates that came true after twice the wait make the next one an interval around that. */
static void test_interval(void **state)
{
    (void)state;
    world w;
    begin_taught(&w, NULL, ST_TIME_NEVER);
    uint64_t id = 10;
    job(&w, id, 8, ST_TIME_NEVER);
    for (int i = 0; i < 5; i++, id++) {
        job(&w, id + 1, 8, ST_TIME_NEVER);
        st_estimate e = estimate_of(&w, id + 1);
        assert_int_equal(e.start_ms, w.now + LIKELY);
        assert_int_equal(e.seen, 0);
        assert_int_equal(e.lo_ms, e.start_ms);
        assert_int_equal(e.hi_ms, e.start_ms);
        told(&w, id + 1, w.now + 5 * MINUTE);
        w.now += 10 * MINUTE;
        tell(&w, ST_EV_FINISH, id);
        assert_non_null(effect(&w, ST_FX_START, id + 1));
    }
    job(&w, id + 1, 8, ST_TIME_NEVER);
    st_estimate e = estimate_of(&w, id + 1);
    assert_int_equal(e.seen, 5);
    assert_int_equal(e.lo_ms, e.start_ms); /* never later than the estimate itself */
    assert_int_equal(e.hi_ms, w.now + LIKELY * 2560 / 1024);

    st_err err = {0};
    st_event ev = event(ST_EV_TOLD);
    ev.u.told.id = id;
    ev.u.told.start_ms = w.now;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ESTATE, "waits for no start");
    ev.u.told.id = id + 1;
    ev.u.told.start_ms = ST_TIME_NEVER;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ERANGE, "must be a moment");
    end(&w);
}

/* What was learned and told survives a save. */
static void test_saved(void **state)
{
    (void)state;
    world w;
    st_strbuf saved = {0};
    st_core *copy = NULL;
    st_err err = {0};
    begin_taught(&w, NULL, 120 * MINUTE);
    job(&w, 10, 8, 120 * MINUTE);
    job(&w, 11, 8, 120 * MINUTE);
    told(&w, 11, w.now + MINUTE);
    int64_t said = estimate_of(&w, 11).start_ms;
    assert_int_equal(said, w.now + LIKELY);
    st_core_save(w.core, &saved);
    assert_ok(st_core_load(saved.s, saved.n, &copy, &err));
    st_core_free(w.core);
    w.core = copy;
    assert_int_equal(estimate_of(&w, 11).start_ms, said);
    assert_int_equal(st_core_job(copy, 10)->expect_ms, w.now + SAFE);
    assert_int_equal(st_core_job(copy, 11)->told_ms, w.now + MINUTE);
    st_strbuf_done(&saved);
    end(&w);
}

/* A promise stays with the job that waits, whatever is let in on forecasts. */
static void test_promise(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.overstay_ms = 30 * MINUTE;
    begin(&w, &policy, 1, 8);
    account(&w, "a", ST_UNSET);
    for (uint64_t id = 1; id <= 5; id++) {
        job(&w, id, 1, 120 * MINUTE);
        w.now += 10 * MINUTE;
        tell(&w, ST_EV_FINISH, id);
    }
    int64_t from = w.now;
    job(&w, 10, 1, 60 * MINUTE);
    job(&w, 11, 8, 60 * MINUTE);
    assert_int_equal(st_core_job(w.core, 11)->promise_ms, from + 90 * MINUTE);
    tick(&w, from + 12 * MINUTE); /* 10 outlived what is known: only its limit counts */
    job(&w, 12, 1, 78 * MINUTE);  /* until the promise */
    assert_non_null(effect(&w, ST_FX_START, 12));
    assert_int_equal(st_core_job(w.core, 11)->promise_ms, from + 90 * MINUTE);
    w.now += 1000;
    job(&w, 13, 1, 78 * MINUTE); /* a second beyond */
    assert_null(effect(&w, ST_FX_START, 13));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_cancelled_teach_nothing),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
