/*
 * Rollups per grant: exact sums, gaps, and what is not measured.
 */
#include "agent/telemetry.h"
#include "base/testing.h"

static st_gpu_sample at(int64_t ms, int64_t util, int64_t energy)
{
    st_gpu_sample s = {.at_ms = ms};

    if (util >= 0)
        st_gpu_put(&s, ST_GPU_GPU_UTIL, util);
    if (energy >= 0)
        st_gpu_put(&s, ST_GPU_ENERGY, energy);
    return s;
}

static void test_sums(void **state)
{
    st_rollup r = {0};
    st_gpu_sample a = at(1000, 0, 500), b = at(2000, 50, 900), c = at(3000, 33, 1000);

    (void)state;
    st_rollup_add(&r, &a, &b, 1000);
    st_rollup_add(&r, &b, &c, 1000);
    assert_int_equal(r.sum.v[ST_USED_HELD], 2000);
    assert_int_equal(r.sum.v[ST_USED_SEEN], 2000);
    assert_int_equal(r.sum.v[ST_USED_BUSY], 830);
    assert_int_equal(r.sum.v[ST_USED_ENERGY], 500);
    st_rollup_add(&r, &c, &c, 1000); /* no time, nothing */
    assert_int_equal(r.sum.v[ST_USED_HELD], 2000);
}

/* A thousand small shares add up to what one large one would be. */
static void test_no_loss(void **state)
{
    st_rollup r = {0};

    (void)state;
    for (int i = 0; i < 1000; i++) {
        st_gpu_sample a = at(i * 7, 0, i), b = at((i + 1) * 7, 33, i + 1);

        st_rollup_add(&r, &a, &b, 333);
    }
    assert_int_equal(r.sum.v[ST_USED_BUSY], 7000 * 33 / 100);
    assert_int_equal(r.sum.v[ST_USED_ENERGY], 333);
}

static void test_gap(void **state)
{
    st_rollup r = {0};
    st_gpu_sample a = at(1000, 100, 10), b = at(60000, 100, 999), c = at(61000, 100, 5);

    (void)state;
    st_rollup_add(&r, &a, &b, 1000); /* nobody looked: held, not idle and not busy */
    assert_int_equal(r.sum.v[ST_USED_HELD], 59000);
    assert_int_equal(r.sum.v[ST_USED_SEEN], 0);
    assert_int_equal(r.sum.v[ST_USED_BUSY], 0);
    st_rollup_add(&r, &b, &c, 1000); /* a counter that went back */
    assert_false(r.sum.has >> ST_USED_ENERGY & 1);
    assert_int_equal(r.sum.v[ST_USED_BUSY], 1000);
}

static void test_absent(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_rollup r = {0};
    st_gpu_sample a = at(1000, -1, -1), b = at(2000, -1, -1);

    (void)state;
    st_rollup_add(&r, &a, &b, 1000);
    st_used_json(&r.sum, &out);
    assert_string_equal(out.s, "{\"held_gpu_ms\":1000,\"seen_gpu_ms\":1000}");
    st_gpu_put(&b, ST_GPU_GPU_UTIL, 10); /* the finer measure wins where both are there */
    st_gpu_put(&b, ST_GPU_GR_ACTIVE, 250000);
    st_rollup_add(&r, &a, &b, 1000);
    assert_int_equal(r.sum.v[ST_USED_BUSY], 250);
    st_rollup_memory(&r, 70);
    st_rollup_memory(&r, 60);
    assert_int_equal(r.sum.v[ST_USED_MEM_PEAK], 70);
    /* Memory over time: half a GPU's 80 MiB for a second, and nothing where nobody measured. */
    assert_false(r.sum.has >> ST_USED_MEM & 1);
    st_gpu_put(&b, ST_GPU_FB_USED, 80);
    st_rollup_add(&r, &a, &b, 500);
    assert_int_equal(r.sum.v[ST_USED_MEM], 40);
    /* Temperature is the device's, whoever has which part of it. */
    st_gpu_put(&b, ST_GPU_TEMP, 61);
    st_rollup_add(&r, &a, &b, 500);
    assert_int_equal(r.sum.v[ST_USED_HEAT], 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_no_loss),
        cmocka_unit_test(test_gap),
        cmocka_unit_test(test_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
