/*
 * Counting what became of jobs: by account, by how, and how long they waited.
 */
#include "base/testing.h"
#include "state/tally.h"

static void add(st_tallies *t, int32_t account, st_effect fx, int64_t queued_ms)
{
    st_tallies_add(t, account, &fx, queued_ms);
}

static void test_counts(void **state)
{
    st_tallies *t = st_tallies_new();
    st_job_counts got = {0}, other = {0};

    (void)state;
    add(t, 3, (st_effect){.kind = ST_FX_START, .class = ST_CLASS_GUARANTEED, .at_ms = 2000}, 1000);
    add(t, 3, (st_effect){.kind = ST_FX_RESUME, .class = ST_CLASS_GUARANTEED, .at_ms = 8001000},
        1000);
    add(t, 3, (st_effect){.kind = ST_FX_START, .class = ST_CLASS_BURSTABLE, .at_ms = 1000},
        5000); /* never below 0 */
    add(t, 3,
        (st_effect){.kind = ST_FX_START, .class = ST_CLASS_BURSTABLE, .at_ms = INT64_C(1) << 40},
        0);
    add(t, 3, (st_effect){.kind = ST_FX_REQUEUE, .other = 7}, 0);
    add(t, 3, (st_effect){.kind = ST_FX_PAUSE, .other = 7}, 0);
    add(t, 3, (st_effect){.kind = ST_FX_REQUEUE}, 0);
    add(t, 3, (st_effect){.kind = ST_FX_END, .state = ST_JOB_DONE}, 0);
    add(t, 3, (st_effect){.kind = ST_FX_END, .state = ST_JOB_CANCELLED, .other = 7}, 0);
    add(t, 3, (st_effect){.kind = ST_FX_HOLD}, 0);
    add(t, -1, (st_effect){.kind = ST_FX_END, .state = ST_JOB_DONE},
        0); /* an account that is gone */
    st_tallies_get(t, 3, &got);
    assert_int_equal(got.wait[ST_CLASS_GUARANTEED].count[0], 1); /* 1 s is within the first bound */
    assert_int_equal(got.wait[ST_CLASS_GUARANTEED].count[7],
                     1); /* 8,000 s: above an hour, within four */
    assert_int_equal(got.wait[ST_CLASS_GUARANTEED].sum_ms, 8001000);
    assert_int_equal(got.wait[ST_CLASS_BURSTABLE].count[0], 1);
    assert_int_equal(got.wait[ST_CLASS_BURSTABLE].count[ST_TALLY_BUCKETS], 1);
    assert_int_equal(got.preempted, 3);
    assert_int_equal(got.requeued, 1);
    assert_int_equal(got.ended[ST_JOB_DONE], 1);
    assert_int_equal(got.ended[ST_JOB_CANCELLED], 1);
    st_tallies_get(t, 3, &got); /* adds */
    assert_int_equal(got.ended[ST_JOB_DONE], 2);
    st_tallies_get(t, 2, &other);
    st_tallies_get(t, 99, &other);
    assert_int_equal(other.ended[ST_JOB_DONE], 0);
    st_tallies_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
