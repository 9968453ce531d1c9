/*
 * The generator: reproducible, unbiased, within its bounds.
 */
#include "base/rng.h"
#include "base/testing.h"

static void test_sequence(void **state)
{
    st_rng a, b, c;
    int same = 0;

    (void)state;
    st_rng_seed(&a, 42);
    st_rng_seed(&b, 42);
    st_rng_seed(&c, 43);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = st_rng_u64(&a);

        assert_true(x == st_rng_u64(&b));
        same += x == st_rng_u64(&c);
    }
    assert_int_equal(same, 0);
}

/* The published first outputs of xoshiro256** from the state 1, 2, 3, 4. */
static void test_reference(void **state)
{
    static const uint64_t want[] = {11520, 0, 1509978240, 1215971899390074240};
    st_rng r = {.s = {1, 2, 3, 4}};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(want); i++)
        assert_true(st_rng_u64(&r) == want[i]);
}

static void test_bounds(void **state)
{
    int hits[6] = {0};
    st_rng r;

    (void)state;
    st_rng_seed(&r, 7);
    for (int i = 0; i < 60000; i++)
        hits[st_rng_range(&r, -2, 3) + 2]++;
    for (size_t i = 0; i < ST_ARRAY_LEN(hits); i++)
        assert_in_range(hits[i], 9500, 10500);
    for (int i = 0; i < 1000; i++) {
        double u = st_rng_unit(&r);

        assert_true(u >= 0.0 && u < 1.0);
        assert_int_equal(st_rng_below(&r, 1), 0);
        assert_true(st_rng_chance(&r, 1, 1));
        assert_false(st_rng_chance(&r, 0, 5));
        assert_true(st_rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
        (void)st_rng_range(&r, INT64_MIN, INT64_MAX);
        assert_true(st_rng_range(&r, INT64_MAX, INT64_MAX) == INT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
