/*
 * Decayed usage of users.
 */
#include <math.h>

#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"
#include "share/share.h"

#define HOUR INT64_C(3600000)
#define WEEK (168 * HOUR)

static void near(int64_t got, int64_t want, int64_t parts)
{
    int64_t diff = got > want ? got - want : want - got;
    if (diff > want / parts)
        fail_msg("%lld is not within 1/%lld of %lld", (long long)got, (long long)parts,
                 (long long)want);
}

/* Use `rate_m` from `from` to `to`. */
static void use(st_tree *tree, int32_t user, int64_t rate_m, int64_t from, int64_t to, int64_t half)
{
    st_usage_note(tree, 0, user, from, half, rate_m);
    st_usage_note(tree, 0, user, to, half, -rate_m);
}

static void test_counts_while_held(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    assert_int_equal(st_usage_read(tree, 0, 0, 5000, WEEK), 0);
    st_usage_note(tree, 0, 0, 1000, WEEK, 4000);
    assert_int_equal(st_usage_read(tree, 0, 0, 1000, WEEK), 0);
    st_usage_note(tree, 0, 0, 1500, WEEK, 0);
    assert_int_equal(st_usage_read(tree, 0, 0, 1500, WEEK), 4000 * 500);
    st_usage_note(tree, 0, 0, 2000, WEEK, 1000); /* two jobs now */
    st_usage_note(tree, 0, 0, 3000, WEEK, -5000);
    assert_int_equal(st_usage_read(tree, 0, 0, 3000, WEEK), 4000 * 1000 + 5000 * 1000);
    assert_int_equal(st_usage_read(tree, 0, 0, 9000, WEEK), 9000 * 1000);
    /* Reading changes nothing. */
    assert_int_equal(st_usage_read(tree, 0, 0, 3000, WEEK), 9000 * 1000);
    st_tree_free(tree);
}

/* Time alone changes what is read only at sixteenths of a half-life. */
static void test_reads_by_sixteenths(void **state)
{
    (void)state;
    const int64_t part = HOUR / 16;
    st_tree *tree = st_tree_new();
    st_usage_note(tree, 0, 0, 0, HOUR, 1000);
    assert_int_equal(st_usage_read(tree, 0, 0, part - 1, HOUR), 0);
    int64_t last = 0;
    for (int i = 1; i <= 64; i++) {
        int64_t now = st_usage_read(tree, 0, 0, i * part, HOUR);
        assert_true(now > last);
        assert_int_equal(st_usage_read(tree, 0, 0, (i + 1) * part - 1, HOUR), now);
        last = now;
    }
    near(st_usage_read(tree, 0, 0, part, HOUR), 1000 * part, 20);
    st_tree_free(tree);
}

static void test_half_after_a_half_life(void **state)
{
    (void)state;
    const int64_t half_lives[] = {HOUR, 24 * HOUR, WEEK};
    for (size_t h = 0; h < ST_ARRAY_LEN(half_lives); h++) {
        int64_t half = half_lives[h];
        st_rng r;
        st_rng_seed(&r, h + 1);
        for (int i = 0; i < 100; i++) {
            st_tree *tree = st_tree_new();
            int64_t from = st_rng_range(&r, 0, 5 * half), to = from + 60000;
            use(tree, 0, 8000, from, to, half);
            int64_t full = st_usage_read(tree, 0, 0, to, half);
            near(full, 8000 * INT64_C(60000), 20); /* a sixteenth may end inside it */
            near(st_usage_read(tree, 0, 0, to + half, half), full / 2, 1000);
            near(st_usage_read(tree, 0, 0, to + 2 * half, half), full / 4, 1000);
            near(st_usage_read(tree, 0, 0, to + 10 * half, half), full / 1024, 100);
            /* Between, it goes by sixteenths: at most one step off. */
            near(st_usage_read(tree, 0, 0, to + half / 2, half), full * 7071 / 10000, 20);
            assert_int_equal(st_usage_read(tree, 0, 0, to + 100 * half, half), 0);
            st_tree_free(tree);
        }
    }
}

/* Each sixteenth is worth 2^(-1/16). */
static void test_the_curve(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    const int64_t full = 8000 * (HOUR / 16);
    use(tree, 0, 8000, 0, HOUR / 16, HOUR);
    int64_t then = st_usage_read(tree, 0, 0, HOUR / 16, HOUR);
    near(then, full, 20);
    for (int k = 1; k <= 40; k++)
        near(st_usage_read(tree, 0, 0, (k + 1) * (HOUR / 16), HOUR),
             (int64_t)((double)then * exp2(-k / 16.0)), 10000);
    st_tree_free(tree);
}

static void test_never_grows_by_waiting(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    use(tree, 0, 123456, 777, 987654, HOUR);
    int64_t last = st_usage_read(tree, 0, 0, 987654, HOUR);
    for (int64_t t = 987654; t < 20 * HOUR; t += 60000) {
        int64_t now = st_usage_read(tree, 0, 0, t, HOUR);
        assert_true(now <= last && now >= 0);
        last = now;
    }
    st_tree_free(tree);
}

/* A clock that steps back neither takes away nor adds. */
static void test_time_stands(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    st_usage_note(tree, 0, 0, 10000, HOUR, 1000);
    assert_int_equal(st_usage_read(tree, 0, 0, 9000, HOUR), 0);
    st_usage_note(tree, 0, 0, 12000, HOUR, 0);
    st_usage_note(tree, 0, 0, 11000, HOUR, 0);
    assert_int_equal(st_usage_read(tree, 0, 0, 13000, HOUR), 2000 * 1000);
    st_usage_note(tree, 0, 0, 13000, HOUR, 0);
    assert_int_equal(st_usage_read(tree, 0, 0, 13000, HOUR), 3000 * 1000);
    st_tree_free(tree);
}

/* How often the books are brought up to date does not change what they say. A long job that
 * nothing happened to must not count its first week in full ten weeks later. */
static void test_noting_changes_nothing(void **state)
{
    (void)state;
    st_tree *once = st_tree_new(), *often = st_tree_new();
    st_usage_note(once, 0, 0, 0, WEEK, 1000);
    st_usage_note(often, 0, 0, 0, WEEK, 1000);
    for (int64_t t = HOUR; t <= 10 * WEEK; t += HOUR)
        st_usage_note(often, 0, 0, t, WEEK, 0);
    int64_t a = st_usage_read(once, 0, 0, 10 * WEEK, WEEK);
    int64_t b = st_usage_read(often, 0, 0, 10 * WEEK, WEEK);
    /* 1000 for ever is worth 1000 x half-life / ln 2. */
    near(b, 1000 * WEEK / 10000 * 14427, 20);
    near(a, b, 1000);
    st_tree_free(once);
    st_tree_free(often);
}

/* Who used more, and more lately, comes later. */
static void test_order_of_users(void **state)
{
    (void)state;
    enum { NONE, LONG_AGO, LITTLE, LATELY, MUCH, USERS };
    st_tree *tree = st_tree_new();
    use(tree, LONG_AGO, 8000, 0, HOUR, WEEK);
    use(tree, MUCH, 8000, 20 * WEEK - 2 * HOUR, 20 * WEEK, WEEK);
    use(tree, LATELY, 8000, 20 * WEEK - HOUR, 20 * WEEK, WEEK);
    use(tree, LITTLE, 100, 20 * WEEK - HOUR, 20 * WEEK, WEEK);
    int64_t last = -1;
    for (int32_t u = NONE; u < USERS; u++) {
        int64_t usage = st_usage_read(tree, 0, u, 20 * WEEK, WEEK);
        assert_true(usage > last);
        last = usage;
    }
    /* The same user in another account starts from nothing. */
    assert_int_equal(st_usage_read(tree, 1, MUCH, 20 * WEEK, WEEK), 0);
    st_tree_free(tree);
}

static void test_no_overflow(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    st_usage_note(tree, 0, 0, 0, WEEK, ST_QTY_MAX);
    assert_true(st_usage_read(tree, 0, 0, ST_QTY_MAX, WEEK) > INT64_MAX / 2);
    st_usage_note(tree, 0, 0, ST_QTY_MAX, WEEK, -ST_QTY_MAX);
    int64_t half = st_usage_read(tree, 0, 0, ST_QTY_MAX + WEEK, WEEK);
    assert_true(half > 0 && half < INT64_MAX);
    st_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_while_held),
        cmocka_unit_test(test_reads_by_sixteenths),
        cmocka_unit_test(test_half_after_a_half_life),
        cmocka_unit_test(test_the_curve),
        cmocka_unit_test(test_never_grows_by_waiting),
        cmocka_unit_test(test_time_stands),
        cmocka_unit_test(test_noting_changes_nothing),
        cmocka_unit_test(test_order_of_users),
        cmocka_unit_test(test_no_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
