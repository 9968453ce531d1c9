/* The end of a month: by hand, and how often the truth lies inside. */
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/month_end.h"

#define DAY_MS INT64_C(86400000)

static void days_that_are_alike(void **state)
{
    (void)state;
    const int64_t days[] = {10000000, 10000000, 10000000, 10000000};
    st_month_so_far s = {.days = days,
                         .ndays = 4,
                         .spent = 45000000, /* half of today */
                         .cap = ST_UNSET,
                         .left_ms = 255 * DAY_MS / 10,
                         .observed_ms = 45 * DAY_MS / 10};
    st_month_end end;

    st_month_end_of(&s, &end);
    assert_int_equal(end.from, ST_MONTH_DAYS);
    assert_int_equal(end.chance_percent, 80);
    assert_int_equal(end.expected, 300000000);
    assert_int_equal(end.low, 300000000);
    assert_int_equal(end.high, 300000000);
    /* Floors are certain, a cap is the end. */
    s.to_come = 280000000;
    st_month_end_of(&s, &end);
    assert_int_equal(end.low, 325000000);
    assert_int_equal(end.expected, 325000000);
    s.to_come = 0;
    s.cap = 120000000;
    st_month_end_of(&s, &end);
    assert_int_equal(end.expected, 120000000);
    assert_int_equal(end.high, 120000000);
}

/* 8, 10 and 12 dollars: a variance of 4; ten days left: 4 x (10 + 100/3), t = 1.886. */
static void by_hand(void **state)
{
    (void)state;
    const int64_t days[] = {8000000, 10000000, 12000000};
    const st_month_so_far s = {.days = days,
                               .ndays = 3,
                               .spent = 30000000,
                               .cap = ST_UNSET,
                               .left_ms = 10 * DAY_MS,
                               .observed_ms = 3 * DAY_MS};
    st_month_end end;

    st_month_end_of(&s, &end);
    assert_int_equal(end.expected, 130000000);
    assert_in_range(end.high - 130000000, 24820000, 24840000);
    assert_int_equal(end.high - end.expected, end.expected - end.low);
}

static void little_is_known(void **state)
{
    (void)state;
    st_month_so_far s = {
        .spent = 6000000, .cap = ST_UNSET, .left_ms = 29 * DAY_MS, .observed_ms = DAY_MS};
    st_month_end end;

    st_month_end_of(&s, &end);
    assert_int_equal(end.from, ST_MONTH_SO_FAR);
    assert_int_equal(end.chance_percent, 0);
    assert_int_equal(end.low, 6000000);
    assert_int_equal(end.expected, 180000000);
    assert_int_equal(end.high, 354000000);
    s.observed_ms = 1000;
    st_month_end_of(&s, &end);
    assert_int_equal(end.from, ST_MONTH_UNKNOWN);
}

/* Days of any size, even such that cannot be: nothing overflows, and low <= expected <= high. */
static void huge(void **state)
{
    (void)state;
    int64_t days[31];
    st_rng rng;
    st_month_end end;

    st_rng_seed(&rng, 3);
    for (int i = 0; i < 2000; i++) {
        st_month_so_far s = {.days = days,
                             .ndays = (int)st_rng_below(&rng, 32),
                             .spent = st_rng_range(&rng, -ST_AMOUNT_MAX, ST_AMOUNT_MAX),
                             .to_come = st_rng_range(&rng, 0, ST_AMOUNT_MAX),
                             .cap = ST_UNSET,
                             .left_ms = st_rng_range(&rng, 0, 31 * DAY_MS),
                             .observed_ms = st_rng_range(&rng, 0, 31 * DAY_MS)};
        for (int k = 0; k < 31; k++)
            days[k] = st_rng_range(&rng, -ST_AMOUNT_MAX, ST_AMOUNT_MAX);
        st_month_end_of(&s, &end);
        assert_true(end.low <= end.expected && end.expected <= end.high);
    }
}

/* A month of thirty days, each cheap, or now and then dear: seen from day k, eight in ten ends lie inside. */
static int inside(st_rng *rng, int k)
{
    int64_t days[30], end_is = 0, spent = 0;
    st_month_end end;

    for (int i = 0; i < 30; i++) {
        days[i] = st_rng_range(rng, 0, 40000000) + st_rng_range(rng, 0, 40000000);
        end_is += days[i];
        spent += i < k ? days[i] : 0;
    }
    const st_month_so_far s = {.days = days,
                               .ndays = k,
                               .spent = spent,
                               .cap = ST_UNSET,
                               .left_ms = (30 - k) * DAY_MS,
                               .observed_ms = k * DAY_MS};
    st_month_end_of(&s, &end);
    return end.low <= end_is && end_is <= end.high;
}

static void eight_in_ten(void **state)
{
    (void)state;
    static const int seen[] = {3, 5, 10, 20, 27};
    st_rng rng;

    st_rng_seed(&rng, 1);
    for (size_t i = 0; i < ST_ARRAY_LEN(seen); i++) {
        int n = 0;

        for (int k = 0; k < 2000; k++)
            n += inside(&rng, seen[i]);
        assert_in_range(n, 1500, 1720);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(days_that_are_alike), cmocka_unit_test(by_hand),
        cmocka_unit_test(little_is_known),     cmocka_unit_test(huge),
        cmocka_unit_test(eight_in_ten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
