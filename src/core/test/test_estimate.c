/*
 * Start estimates: what they say is what happens when everything goes on as it is.
 */
#include "base/rng.h"
#include "core/test/world.h"

#define HOUR (3600 * SEC)
#define JOBS 40

static int64_t estimate_of(const world *w, uint64_t id)
{
    st_estimates list = {0};
    st_err err = {0};
    int64_t at = -1;
    assert_ok(st_core_estimate(w->core, &list, &err));
    for (size_t i = 0; i < list.n; i++)
        if (list.v[i].job == id)
            at = list.v[i].start_ms;
    st_vec_free(&list);
    return at;
}

static void job_on(world *w, uint64_t id, uint32_t types, int gpus, int64_t limit_ms)
{
    st_event ev = job_event(id, "a");
    ev.u.job.shape.types = types;
    ev.u.job.shape.gpus = gpus;
    ev.u.job.limit_ms = limit_ms;
    step(w, &ev);
}

static void job(world *w, uint64_t id, int gpus, int64_t limit_ms)
{
    job_on(w, id, 0, gpus, limit_ms);
}

static void test_by_hand(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 8);
    account(&w, "a", ST_UNSET);
    job(&w, 1, 6, 2 * HOUR);
    job(&w, 2, 2, 5 * HOUR);
    job(&w, 3, 8, HOUR);          /* needs both gone: at 5 h */
    job(&w, 4, 4, HOUR);          /* fits beside job 2, and is gone before job 3 starts */
    job(&w, 5, 8, ST_TIME_NEVER); /* behind job 3 */
    job(&w, 6, 8, HOUR);          /* behind a job without an end */
    assert_int_equal(estimate_of(&w, 3), 5 * HOUR);
    assert_int_equal(estimate_of(&w, 4), 2 * HOUR);
    assert_int_equal(estimate_of(&w, 5), 6 * HOUR);
    assert_int_equal(estimate_of(&w, 6), ST_TIME_NEVER);
    assert_int_equal(estimate_of(&w, 1), -1); /* it runs */
    end(&w);
}

static void test_quota_counts(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 2, 8);
    st_event ev = account_event("a", ST_UNSET);
    ev.u.account.max.gpu_m = 8000;
    step(&w, &ev);
    job(&w, 1, 8, 3 * HOUR);
    job(&w, 2, 8, HOUR); /* a node is free, the account is full */
    assert_int_equal(estimate_of(&w, 2), 3 * HOUR);
    end(&w);
}

static void test_changes_nothing(void **state)
{
    (void)state;
    world w;
    st_strbuf before = {0}, after = {0};
    begin(&w, NULL, 1, 4);
    account(&w, "a", 4000);
    job(&w, 1, 4, HOUR);
    job(&w, 2, 4, HOUR);
    st_core_save(w.core, &before);
    (void)estimate_of(&w, 2);
    st_core_save(w.core, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, before.n);
    st_strbuf_done(&before);
    st_strbuf_done(&after);
    end(&w);
}

/* One account in order of age, nothing reserved: the estimate is exact. */
static void more_types(world *w)
{
    st_event ev = type_event("b", ST_BOARD_NONE);
    step(w, &ev);
    for (int i = 0; i < 2; i++) {
        ev = node_event(i == 0 ? "b0" : "b1", 8);
        ev.u.node.type = 1;
        step(w, &ev);
    }
}

/* With one GPU type, and with two of which jobs want one, the other or either. */
static void check_comes_true(bool two)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        world w;
        st_rng r;
        st_policy policy = st_policy_default();
        int64_t said[JOBS + 1];
        policy.reservations = 0;
        st_rng_seed(&r, seed);
        begin(&w, &policy, 3, 8);
        account(&w, "a", ST_UNSET);
        if (two)
            more_types(&w);
        for (uint64_t id = 1; id <= JOBS; id++)
            job_on(&w, id, two ? (uint32_t)st_rng_range(&r, 0, 3) : 0, (int)st_rng_range(&r, 1, 8),
                   st_rng_range(&r, 1, 50) * HOUR / 10);
        for (uint64_t id = 1; id <= JOBS; id++)
            said[id] = estimate_of(&w, id);
        while (st_core_next_timer(w.core) != ST_TIME_NEVER) {
            tick(&w, st_core_next_timer(w.core));
            for (uint64_t id = 1; id <= JOBS; id++)
                if (effect(&w, ST_FX_START, id) && said[id] != w.now)
                    fail_msg("seed %d: job %d said %lld, started %lld", (int)seed, (int)id,
                             (long long)said[id], (long long)w.now);
        }
        assert_int_equal(st_core_njobs(w.core), 0);
        end(&w);
    }
}

static void test_comes_true(void **state)
{
    (void)state;
    check_comes_true(false);
}

static void test_comes_true_with_types(void **state)
{
    (void)state;
    check_comes_true(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_quota_counts),
        cmocka_unit_test(test_changes_nothing),
        cmocka_unit_test(test_comes_true),
        cmocka_unit_test(test_comes_true_with_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
