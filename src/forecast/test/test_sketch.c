/* The histogram: where values go, what it says of them, and how it forgets. */
#include "base/macros.h"
#include "base/testing.h"
#include "forecast/forecast.h"

static void test_buckets(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        int bucket;
    } rows[] = {{-5, 0}, {0, 0},   {1, 1},   {3, 3},   {4, 4},   {7, 7},     {8, 8},    {9, 8},
                {10, 9}, {12, 10}, {14, 11}, {15, 11}, {16, 12}, {1000, 35}, {1024, 36}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(st_sketch_bucket(rows[i].value), rows[i].bucket);
    assert_int_equal(st_sketch_bucket(INT64_MAX), ST_SKETCH_BUCKETS - 1);
}

/* Every bucket begins where the one before ends, and no value is off by more than a quarter. */
static void test_edges(void **state)
{
    (void)state;
    for (int b = 0; b < ST_SKETCH_BUCKETS - 1; b++) {
        int64_t low = st_sketch_low(b), edge = st_sketch_low(b + 1);
        assert_true(low < edge);
        assert_int_equal(st_sketch_bucket(low), b);
        assert_int_equal(st_sketch_bucket(edge - 1), b);
        assert_true(b < 4 || 4 * (edge - low) <= low);
    }
}

static void test_quantiles(void **state)
{
    (void)state;
    st_sketch s = {0};
    assert_int_equal(st_sketch_quantile(&s, 0, 50), -1);
    for (int v = 1; v <= 10; v++) /* buckets 1 2 3 4 5 6 7, 8 twice, 9 */
        st_sketch_note(&s, v);
    assert_int_equal(s.total, 40);
    assert_int_equal(st_sketch_quantile(&s, 0, 50), 5);
    assert_int_equal(st_sketch_quantile(&s, 0, 90), 8);
    assert_int_equal(st_sketch_quantile(&s, 0, 91), 9);
    /* Of the four that are 7 or more: 7, 8, 9, 10. */
    assert_int_equal(st_sketch_above(&s, 7), 16);
    assert_int_equal(st_sketch_quantile(&s, 7, 50), 8);
    assert_int_equal(st_sketch_quantile(&s, 7, 25), 7);
    assert_int_equal(st_sketch_quantile(&s, 10, 50), -1);
}

/* 64 weigh all there is; the 65th halves them, and the one that stood alone is gone after
 * three halvings. */
static void test_decay(void **state)
{
    (void)state;
    st_sketch s = {0};
    st_sketch_note(&s, 1);
    for (int i = 0; i < 63; i++)
        st_sketch_note(&s, 100);
    assert_int_equal(s.total, 256);
    assert_int_equal(s.weight[1], 4);
    st_sketch_note(&s, 100);
    assert_int_equal(s.total, 2 + 128);
    assert_int_equal(s.weight[1], 2);
    for (int i = 0; i < 32; i++) /* 130 + 32 x 4 = 258 */
        st_sketch_note(&s, 1000);
    assert_int_equal(s.weight[1], 1);
    assert_int_equal(s.weight[st_sketch_bucket(100)], 64);
    assert_int_equal(s.weight[st_sketch_bucket(1000)], 64);
    for (int i = 0; i < 32; i++)
        st_sketch_note(&s, 1000);
    assert_int_equal(s.weight[1], 0);
    assert_int_equal(st_sketch_quantile(&s, 0, 50), st_sketch_bucket(1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
