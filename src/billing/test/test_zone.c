/*
 * Where months begin: leap years, summer time, a midnight that does not exist, a changed zone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "billing/zone.h"

#define S  INT64_C(1000)
#define H  (3600 * S)
#define NY "America/New_York"

static void expect(const st_zone *zone, int64_t at_ms, const char *name, int64_t from, int64_t to)
{
    st_period p;

    st_zone_month(zone, at_ms, &p);
    assert_string_equal(p.name, name);
    assert_int_equal(p.from_ms, from);
    assert_int_equal(p.to_ms, to);
}

static st_zone *open_zone(const char *name)
{
    st_zone *zone = NULL;
    st_err err;

    assert_ok(st_zone_new(name, &zone, &err));
    return zone;
}

/* 2028-02-01 is 1832976000, 2028-03-01 is 1835481600: 29 days. */
static void utc_and_leap_years(void **state)
{
    ST_CLEANUP(st_zone_freep) st_zone *z = open_zone("UTC");
    const int64_t feb = 1832976000 * S, mar = 1835481600 * S;
    (void)state;

    expect(z, feb, "2028-02", feb, feb + 29 * 24 * H);
    expect(z, mar - 1, "2028-02", feb, mar);
    expect(z, mar, "2028-03", mar, mar + 31 * 24 * H);
    expect(z, 4107542400 * S, "2100-03", 4107542400 * S, (4107542400 + 31 * 86400) * S);
    expect(z, 4107542400 * S - 1, "2100-02", (4107542400 - 28 * 86400) * S, 4107542400 * S);
}

/* 2026-10-01 is 1790812800 UTC. Summer time ends on 25 October: the month has 745 hours. */
static void berlin(void **state)
{
    ST_CLEANUP(st_zone_freep) st_zone *z = open_zone("Europe/Berlin");
    const int64_t oct = 1790812800 * S - 2 * H;
    (void)state;

    expect(z, oct, "2026-10", oct, oct + 745 * H);
    expect(z, oct - 1, "2026-09", oct - 720 * H, oct);
    /* March: one hour is missing. 2027-03-01 is 1803859200. */
    expect(z, 1803859200 * S, "2027-03", 1803859200 * S - H, 1803859200 * S - H + 743 * H);
}

/* Far ahead there are no rows in the database, only a rule. 2090-11-01 is 3813177600. */
static void new_york(void **state)
{
    ST_CLEANUP(st_zone_freep) st_zone *z = open_zone(NY);
    const int64_t nov = 1793491200 * S + 4 * H; /* 2026-11-01, the day summer time ends */
    (void)state;

    expect(z, nov, "2026-11", nov, nov + 721 * H);
    expect(z, 3813177600 * S + 4 * H, "2090-11", 3813177600 * S + 4 * H,
           3813177600 * S + 4 * H + 721 * H);
}

/* On 1 October 2023, a Sunday, clocks in Paraguay went from 23:59:59 to 01:00:00: the month began at
 * 04:00 UTC. 2023-10-01 is 1696118400. */
static void a_midnight_that_is_not(void **state)
{
    ST_CLEANUP(st_zone_freep) st_zone *z = open_zone("America/Asuncion");
    const int64_t oct = 1696118400 * S + 4 * H;
    (void)state;

    expect(z, oct, "2023-10", oct, oct + 31 * 24 * H - H);
    expect(z, oct - 1, "2023-09", oct - 30 * 24 * H, oct);
}

static void months_join(void **state)
{
    static const char *const names[] = {"UTC",
                                        "Europe/Berlin",
                                        NY,
                                        "America/Asuncion",
                                        "Pacific/Apia",
                                        "Asia/Kathmandu",
                                        "Australia/Lord_Howe"};
    (void)state;

    for (size_t i = 0; i < ST_ARRAY_LEN(names); i++) {
        ST_CLEANUP(st_zone_freep) st_zone *z = open_zone(names[i]);
        st_period p, next;

        st_zone_month(z, 1500000000 * S, &p);
        for (int m = 0; m < 1000; m++, p = next) {
            assert_in_range(p.to_ms - p.from_ms, 27 * 24 * H, 32 * 24 * H);
            st_zone_month(z, p.to_ms, &next);
            assert_int_equal(next.from_ms, p.to_ms);
            st_zone_after(z, p.to_ms, &next);
            assert_int_equal(next.from_ms, p.to_ms);
            assert_string_not_equal(next.name, p.name);
        }
    }
}

/* A month closed in Berlin, the next one in New York: not a month of six hours. */
static void a_changed_zone(void **state)
{
    ST_CLEANUP(st_zone_freep) st_zone *berlin_ = open_zone("Europe/Berlin");
    ST_CLEANUP(st_zone_freep) st_zone *ny = open_zone(NY);
    st_period p, next;
    (void)state;

    st_zone_month(berlin_, 1790812800 * S, &p);
    st_zone_after(ny, p.to_ms, &next);
    assert_string_equal(next.name, "2026-11");
    assert_int_equal(next.from_ms, p.to_ms);
    st_zone_month(ny, 1793491200 * S + 4 * H, &p);
    assert_int_equal(next.to_ms, p.to_ms);
}

static void made_up_months(void **state)
{
    st_zone *z = NULL;
    st_period p, next;
    st_err err;
    (void)state;

    assert_ok(st_zone_new("test-3", &z, &err));
    st_zone_month(z, 1790812800 * S + 1, &p);
    assert_int_equal(p.to_ms - p.from_ms, 3000);
    st_zone_after(z, p.to_ms, &next);
    assert_int_equal(next.from_ms, p.to_ms);
    assert_int_equal(next.to_ms, p.to_ms + 3000);
    assert_string_not_equal(next.name, p.name);
    st_zone_free(z);
}

static void names_that_are_none(void **state)
{
    st_zone *z = NULL;
    st_err err;
    (void)state;

    assert_fails(st_zone_new("Mars/Olympus", &z, &err), ST_EINVAL, "tzdata");
    assert_fails(st_zone_new("../../etc/passwd", &z, &err), ST_EINVAL, "no name");
    assert_fails(st_zone_new("", &z, &err), ST_EINVAL, "no name");
}

static void the_environment_is_left_alone(void **state)
{
    (void)state;
    setenv("TZ", "UTC", 1);
    st_zone_free(open_zone("Asia/Tokyo"));
    assert_string_equal(getenv("TZ"), "UTC");
    unsetenv("TZ");
    st_zone_free(open_zone("Asia/Tokyo"));
    assert_null(getenv("TZ"));
}

static void midnights(void **state)
{
    (void)state;
    assert_int_equal(st_zone_midnight(0), 24 * H);
    assert_int_equal(st_zone_midnight(24 * H - 1), 24 * H);
    assert_int_equal(st_zone_midnight(24 * H), 48 * H);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utc_and_leap_years),
        cmocka_unit_test(berlin),
        cmocka_unit_test(new_york),
        cmocka_unit_test(a_midnight_that_is_not),
        cmocka_unit_test(months_join),
        cmocka_unit_test(a_changed_zone),
        cmocka_unit_test(made_up_months),
        cmocka_unit_test(names_that_are_none),
        cmocka_unit_test(the_environment_is_left_alone),
        cmocka_unit_test(midnights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
