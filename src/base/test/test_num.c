/*
 * Numbers with units: what is read, what is refused, and that writing and
 * reading agree.
 */
#include "base/num.h"
#include "base/rng.h"
#include "base/testing.h"

static void test_i64(void **state)
{
    static const char *const bad[] = {"", "-", "+1", " 1", "1 ", "1.0", "0x10", "1e3", "--1", "a"};
    st_err err = {0};
    int64_t n = 77;

    (void)state;
    assert_ok(st_parse_i64("0", 0, 10, &n, &err));
    assert_int_equal(n, 0);
    assert_ok(st_parse_i64("-0", 0, 10, &n, &err));
    assert_ok(st_parse_i64("007", 0, 10, &n, &err));
    assert_int_equal(n, 7);
    assert_ok(st_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &n, &err));
    assert_true(n == INT64_MAX);
    assert_ok(st_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &n, &err));
    assert_true(n == INT64_MIN);

    n = 77;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_parse_i64(bad[i], INT64_MIN, INT64_MAX, &n, &err), ST_EPARSE,
                     "is not a whole number");
    assert_fails(st_parse_i64("11", 0, 10, &n, &err), ST_ERANGE,
                 "\"11\" is out of range: it must be from 0 to 10");
    assert_fails(st_parse_i64("-1", 0, 10, &n, &err), ST_ERANGE, "out of range");
    assert_fails(st_parse_i64("9223372036854775808", INT64_MIN, INT64_MAX, &n, &err), ST_ERANGE,
                 "out of range");
    assert_fails(st_parse_i64("-9223372036854775809", INT64_MIN, INT64_MAX, &n, &err), ST_ERANGE,
                 "out of range");
    assert_fails(st_parse_i64("99999999999999999999999999x", INT64_MIN, INT64_MAX, &n, &err),
                 ST_EPARSE, "is not a whole number");
    assert_int_equal(n, 77);
}

static void test_milli(void **state)
{
    static const struct {
        const char *text;
        int64_t milli;
    } good[] = {
        {"2", 2000}, {"0.25", 250},  {"1.5", 1500},     {"0.001", 1},
        {"0", 0},    {"-0.5", -500}, {"10.010", 10010}, {"9223372036854775.807", INT64_MAX},
    };
    static const char *const bad[] = {"",    ".5",    "5.",   "1e3", "nan",  "inf",  "1,5",
                                      "1.-", "0x1p3", "1.5 ", "- 1", "1..2", "1.5.0"};
    st_err err = {0};
    int64_t n = 0;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++) {
        assert_ok(st_parse_milli(good[i].text, -1000, INT64_MAX, &n, &err));
        assert_int_equal(n, good[i].milli);
    }
    n = 77;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_parse_milli(bad[i], 0, INT64_MAX, &n, &err), ST_EPARSE, "not a number");
    assert_fails(st_parse_milli("0.0001", 0, 1000, &n, &err), ST_EPARSE, "three decimals");
    assert_fails(st_parse_milli("-0.001", 0, 1000, &n, &err), ST_ERANGE, "from 0 to 1");
    assert_fails(st_parse_milli("1.001", 250, 1000, &n, &err), ST_ERANGE, "from 0.25 to 1");
    assert_fails(st_parse_milli("9223372036854775.808", 0, INT64_MAX, &n, &err), ST_ERANGE,
                 "out of range");
    assert_fails(st_parse_milli("99999999999999999999", 0, INT64_MAX, &n, &err), ST_ERANGE,
                 "out of range");
    assert_int_equal(n, 77);
}

static void test_duration(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {
        {"90s", 90000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"500ms", 500},
        {"0", 0},
        {"1h30m", 5400000},
        {"1.5h", 5400000},
        {"0.5s", 500},
        {"1w", 604800000},
        {"1m500ms", 60500},
        {"12.345s", 12345},
        {"0s", 0},
        {"1d2h3m4s5ms", 93784005},
    };
    static const char *const bad[] = {"",   "s",  "-1s", "1 h", "1h ",  "1h30", "30m1h", "1h1h",
                                      "1x", "1H", "1hm", "h1",  "1min", "1e3s", "1h-30m"};
    st_err err = {0};
    int64_t n = 0;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++) {
        assert_ok(st_parse_duration_ms(good[i].text, &n, &err));
        assert_int_equal(n, good[i].ms);
    }
    n = 77;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_parse_duration_ms(bad[i], &n, &err), ST_EPARSE, "not a duration");
    assert_fails(st_parse_duration_ms("90", &n, &err), ST_EPARSE, "90 needs a unit: 90s, 90m");
    assert_fails(st_parse_duration_ms("0.5", &n, &err), ST_EPARSE, "needs a unit");
    assert_fails(st_parse_duration_ms("0.5ms", &n, &err), ST_EPARSE, "finer");
    assert_fails(st_parse_duration_ms("1.2345s", &n, &err), ST_EPARSE, "decimals");
    assert_fails(st_parse_duration_ms("365251d", &n, &err), ST_ERANGE, "1000 years");
    assert_fails(st_parse_duration_ms("9223372036854775w", &n, &err), ST_ERANGE, "1000 years");
    assert_fails(st_parse_duration_ms("99999999999999999999s", &n, &err), ST_ERANGE, "years");
    assert_int_equal(n, 77);
}

static void test_mib(void **state)
{
    static const struct {
        const char *text;
        int64_t mib;
    } good[] = {
        {"64Gi", 65536}, {"512Mi", 512}, {"1Ti", 1048576}, {"64GiB", 65536},
        {"64", 65536},   {"0.5", 512},   {"0", 0},         {"64G", 61036},
        {"1M", 1},       {"1MB", 1},     {"1Ki", 1},       {"1k", 1},
        {"1.5Gi", 1536}, {"0.001Gi", 2}, {"2GB", 1908},    {"1024Pi", INT64_C(1) << 40},
    };
    static const char *const bad[] = {"",       "Gi", "64gi",  "64Gb", "64 Gi", "-1Gi",
                                      "64GiBB", "B",  "64BGi", "1i",   "1e3",   "64B"};
    st_err err = {0};
    int64_t n = 0;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++) {
        assert_ok(st_parse_mib(good[i].text, &n, &err));
        assert_int_equal(n, good[i].mib);
    }
    n = 77;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_parse_mib(bad[i], &n, &err), ST_EPARSE, "not an amount of memory");
    assert_fails(st_parse_mib("0.0001", &n, &err), ST_EPARSE, "three decimals");
    assert_fails(st_parse_mib("1024.001Pi", &n, &err), ST_ERANGE, "at most 1024Pi");
    assert_fails(st_parse_mib("9223372036854775P", &n, &err), ST_ERANGE, "at most 1024Pi");
    assert_int_equal(n, 77);
}

static void test_format(void **state)
{
    char buf[ST_FMT_MAX];

    (void)state;
    assert_string_equal(st_fmt_milli(buf, 2000), "2");
    assert_string_equal(st_fmt_milli(buf, 250), "0.25");
    assert_string_equal(st_fmt_milli(buf, -1500), "-1.5");
    assert_string_equal(st_fmt_milli(buf, 0), "0");
    assert_string_equal(st_fmt_milli(buf, 10000000), "10000");
    assert_string_equal(st_fmt_milli(buf, INT64_MIN), "-9223372036854775.808");
    assert_string_equal(st_fmt_duration(buf, 5400000), "1h30m");
    assert_string_equal(st_fmt_duration(buf, 500), "500ms");
    assert_string_equal(st_fmt_duration(buf, 0), "0s");
    assert_string_equal(st_fmt_duration(buf, -1001), "-1s1ms");
    assert_string_equal(st_fmt_duration(buf, INT64_MIN), "-106751991167d7h12m55s808ms");
    assert_string_equal(st_fmt_mib(buf, 65536), "64Gi");
    assert_string_equal(st_fmt_mib(buf, 1536), "1536Mi");
    assert_string_equal(st_fmt_mib(buf, 0), "0");
    assert_string_equal(st_fmt_mib(buf, INT64_MIN), "-8589934592Pi");
}

static void test_round_trip(void **state)
{
    st_err err = {0};
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 3);
    for (int i = 0; i < 20000; i++) {
        int64_t wide = st_rng_range(&rng, 0, INT64_C(1) << st_rng_below(&rng, 40));
        char buf[ST_FMT_MAX];
        int64_t n = -1;

        assert_ok(st_parse_milli(st_fmt_milli(buf, -wide), INT64_MIN, 0, &n, &err));
        assert_int_equal(n, -wide);
        assert_ok(st_parse_duration_ms(st_fmt_duration(buf, wide), &n, &err));
        assert_int_equal(n, wide);
        assert_ok(st_parse_mib(st_fmt_mib(buf, wide), &n, &err));
        assert_int_equal(n, wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_i64),      cmocka_unit_test(test_milli),
        cmocka_unit_test(test_duration), cmocka_unit_test(test_mib),
        cmocka_unit_test(test_format),   cmocka_unit_test(test_round_trip),
    };

    return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
