/* Series: known days across daylight saving time in six zones, and any series against a plain walk over all days. */
#include <string.h>

#include "base/rng.h"
#include "base/testing.h"
#include "calendar/calendar.h"
#include "calendar/recur.h"
#include "calendar/test/zonefile.h"

static int64_t day_of(int year, int month, int day)
{
    return wall(year, month, day, 0, 0) / ST_DAY_S;
}

static st_recur series(int64_t anchor, int64_t length_s, st_recur_every every, int count)
{
    return (st_recur){.anchor_s = anchor,
                      .length_s = length_s,
                      .every = every,
                      .interval = 1,
                      .count = count,
                      .until_day = ST_RECUR_NO_DAY};
}

/* The occurrences as local clocks show them: "2026-03-28 02:30 EST/2026-03-28 03:30 EST". */
static void check(const char *zone, const st_recur *r, const char *const want[])
{
    ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile(zone);
    st_occurrences got = {0};
    st_err err = {0};
    char a[ST_WHEN_MAX], b[ST_WHEN_MAX], both[2 * ST_WHEN_MAX];
    size_t i = 0;

    assert_ok(st_recur_expand(r, tz, &got, &err));
    for (; want[i] && i < got.n; i++) {
        snprintf(both, sizeof both, "%s/%s", st_when_text(a, tz, got.v[i].from_ms),
                 st_when_text(b, tz, got.v[i].to_ms));
        assert_string_equal(both, want[i]);
    }
    assert_int_equal(got.n, i);
    assert_null(want[i]);
    st_vec_free(&got);
}

#define CHECK(zone, r, ...) check(zone, r, (const char *const[]){__VA_ARGS__, NULL})

/* The day on which Slurm's daily 02:30 becomes empty for good. */
static void test_new_york(void **state)
{
    (void)state;
    st_recur r = series(wall(2027, 3, 13, 2, 30), 3600, ST_RECUR_DAILY, 3);

    CHECK("America/New_York", &r, "2027-03-13 02:30 EST/2027-03-13 03:30 EST",
          "2027-03-14 03:30 EDT/2027-03-14 04:30 EDT", "2027-03-15 02:30 EDT/2027-03-15 03:30 EDT");
    r.length = ST_RECUR_WALL; /* 02:30 to 03:30: the end is there, but not behind the start */
    CHECK("America/New_York", &r, "2027-03-13 02:30 EST/2027-03-13 03:30 EST",
          "2027-03-14 03:30 EDT/2027-03-14 04:30 EDT", "2027-03-15 02:30 EDT/2027-03-15 03:30 EDT");
    r.length_s = 4 * 3600;
    CHECK("America/New_York", &r, "2027-03-13 02:30 EST/2027-03-13 06:30 EST",
          "2027-03-14 03:30 EDT/2027-03-14 06:30 EDT", "2027-03-15 02:30 EDT/2027-03-15 06:30 EDT");
    r.gap = ST_RECUR_SKIP;
    CHECK("America/New_York", &r, "2027-03-13 02:30 EST/2027-03-13 06:30 EST",
          "2027-03-15 02:30 EDT/2027-03-15 06:30 EDT", "2027-03-16 02:30 EDT/2027-03-16 06:30 EDT");
    /* Twice 01:30: the first. */
    r = series(wall(2026, 10, 31, 1, 30), 3600, ST_RECUR_DAILY, 3);
    CHECK("America/New_York", &r, "2026-10-31 01:30 EDT/2026-10-31 02:30 EDT",
          "2026-11-01 01:30 EDT/2026-11-01 01:30 EST", "2026-11-02 01:30 EST/2026-11-02 02:30 EST");
    r.length = ST_RECUR_WALL;
    CHECK("America/New_York", &r, "2026-10-31 01:30 EDT/2026-10-31 02:30 EDT",
          "2026-11-01 01:30 EDT/2026-11-01 02:30 EST", "2026-11-02 01:30 EST/2026-11-02 02:30 EST");
}

/* A studio's nights: 22:00 to 06:00, which is 7, 8 or 9 hours. */
static void test_berlin(void **state)
{
    (void)state;
    st_recur r = series(wall(2027, 3, 26, 22, 0), 8 * 3600, ST_RECUR_DAILY, 3);

    r.length = ST_RECUR_WALL;
    CHECK("Europe/Berlin", &r, "2027-03-26 22:00 CET/2027-03-27 06:00 CET",
          "2027-03-27 22:00 CET/2027-03-28 06:00 CEST",
          "2027-03-28 22:00 CEST/2027-03-29 06:00 CEST");
    r.length = ST_RECUR_ELAPSED;
    CHECK("Europe/Berlin", &r, "2027-03-26 22:00 CET/2027-03-27 06:00 CET",
          "2027-03-27 22:00 CET/2027-03-28 07:00 CEST",
          "2027-03-28 22:00 CEST/2027-03-29 06:00 CEST");
    r = series(wall(2026, 10, 19, 9, 0), 3600, ST_RECUR_WEEKLY, 3);
    CHECK("Europe/Berlin", &r, "2026-10-19 09:00 CEST/2026-10-19 10:00 CEST",
          "2026-10-26 09:00 CET/2026-10-26 10:00 CET", "2026-11-02 09:00 CET/2026-11-02 10:00 CET");
}

static void test_far_zones(void **state)
{
    (void)state;
    /* Half an hour. */
    st_recur r = series(wall(2026, 10, 3, 2, 15), 1800, ST_RECUR_DAILY, 3);

    CHECK("Australia/Lord_Howe", &r, "2026-10-03 02:15 +1030/2026-10-03 02:45 +1030",
          "2026-10-04 02:45 +11/2026-10-04 03:15 +11", "2026-10-05 02:15 +11/2026-10-05 02:45 +11");
    /* A day that is not there. */
    r = series(wall(2011, 12, 29, 12, 0), 3600, ST_RECUR_DAILY, 3);
    r.gap = ST_RECUR_SKIP;
    CHECK("Pacific/Apia", &r, "2011-12-29 12:00 -10/2011-12-29 13:00 -10",
          "2011-12-31 12:00 +14/2011-12-31 13:00 +14", "2012-01-01 12:00 +14/2012-01-01 13:00 +14");
    /* Ramadan 2027 in Morocco: clocks go back on 7 February, on again on 14 March. */
    r = series(wall(2027, 2, 7, 2, 30), 3600, ST_RECUR_WEEKLY, 6);
    CHECK("Africa/Casablanca", &r, "2027-02-07 02:30 +01/2027-02-07 02:30 +00",
          "2027-02-14 02:30 +00/2027-02-14 03:30 +00", "2027-02-21 02:30 +00/2027-02-21 03:30 +00",
          "2027-02-28 02:30 +00/2027-02-28 03:30 +00", "2027-03-07 02:30 +00/2027-03-07 03:30 +00",
          "2027-03-14 03:30 +01/2027-03-14 04:30 +01");
    /* Egypt's clocks skip midnight on the last Friday of April. */
    r = series(wall(2026, 4, 23, 0, 0), 1800, ST_RECUR_DAILY, 3);
    CHECK("Africa/Cairo", &r, "2026-04-23 00:00 EET/2026-04-23 00:30 EET",
          "2026-04-24 01:00 EEST/2026-04-24 01:30 EEST",
          "2026-04-25 00:00 EEST/2026-04-25 00:30 EEST");
}

static void test_months(void **state)
{
    (void)state;
    st_recur r = series(wall(2027, 1, 31, 9, 0), 3600, ST_RECUR_MONTHLY, 4);

    CHECK("UTC", &r, "2027-01-31 09:00 UTC/2027-01-31 10:00 UTC",
          "2027-03-31 09:00 UTC/2027-03-31 10:00 UTC", "2027-05-31 09:00 UTC/2027-05-31 10:00 UTC",
          "2027-07-31 09:00 UTC/2027-07-31 10:00 UTC");
    r.count = 3;
    r.monthday = -1;
    CHECK("UTC", &r, "2027-01-31 09:00 UTC/2027-01-31 10:00 UTC",
          "2027-02-28 09:00 UTC/2027-02-28 10:00 UTC", "2027-03-31 09:00 UTC/2027-03-31 10:00 UTC");
    st_err err = {0};

    r.anchor_s = wall(2027, 1, 1, 9, 0);
    assert_ok(st_recur_monthly("2nd tuesday", &r, &err));
    CHECK("UTC", &r, "2027-01-12 09:00 UTC/2027-01-12 10:00 UTC",
          "2027-02-09 09:00 UTC/2027-02-09 10:00 UTC", "2027-03-09 09:00 UTC/2027-03-09 10:00 UTC");
    assert_ok(st_recur_monthly("last fri", &r, &err));
    r.interval = 2;
    CHECK("UTC", &r, "2027-01-29 09:00 UTC/2027-01-29 10:00 UTC",
          "2027-03-26 09:00 UTC/2027-03-26 10:00 UTC", "2027-05-28 09:00 UTC/2027-05-28 10:00 UTC");
    assert_ok(st_recur_monthly("15", &r, &err));
    assert_int_equal(r.monthday, 15);
    assert_ok(st_recur_monthly("last", &r, &err));
    assert_int_equal(r.monthday, -1);
    static const char *const wrong[] = {"",          "32",           "0", "2nd", "6th monday",
                                        "last week", "2nd  tuesday", "-1"};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_recur_monthly(wrong[i], &r, &err), ST_EPARSE, "is not a day of a month");
}

static void test_weekdays(void **state)
{
    (void)state;
    uint32_t days;
    st_err err = {0};

    assert_ok(st_recur_weekdays("mon,Wednesday", &days, &err));
    assert_int_equal(days, 5);
    assert_ok(st_recur_weekdays("weekdays", &days, &err));
    assert_int_equal(days, 31);
    assert_ok(st_recur_weekdays("weekend,fri", &days, &err));
    assert_int_equal(days, 112);
    static const char *const wrong[] = {"", "mo", "mon,", ",mon", "monkey", "mon wed"};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_recur_weekdays(wrong[i], &days, &err), ST_EPARSE,
                     "is not a list of weekdays");
}

static void test_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_tz_freep) st_tz *tz = st_tz_utc();
    st_occurrences out = {0};
    st_err err = {0};
    st_recur good = series(wall(2027, 1, 1, 9, 0), 3600, ST_RECUR_DAILY, 5), r;
    int64_t days[] = {day_of(2027, 1, 2), day_of(2027, 1, 2)};

#define REFUSED(code, text) assert_fails(st_recur_expand(&r, tz, &out, &err), code, text)
    r = good, r.count = 10000;
    REFUSED(ST_ELIMIT, "1 to 1000 occurrences, not 10000");
    r = good, r.count = 0;
    REFUSED(ST_EINVAL, "needs an end");
    r = good, r.until_day = day_of(2027, 2, 1);
    REFUSED(ST_EINVAL, "needs an end");
    r = good, r.count = 0, r.until_day = day_of(2030, 2, 1);
    REFUSED(ST_ELIMIT, "more than 1000 occurrences");
    r = good, r.count = 0, r.until_day = day_of(2026, 12, 31);
    REFUSED(ST_EINVAL, "no occurrence");
    r = good, r.length_s = 25 * 3600;
    REFUSED(ST_EINVAL, "2027-01-02 begins before the one before it has ended");
    r = good, r.length_s = 0;
    REFUSED(ST_EINVAL, "longer than nothing");
    r = good, r.length_s = INT64_MAX;
    REFUSED(ST_ELIMIT, "at most a year");
    r = good, r.interval = 0;
    REFUSED(ST_ERANGE, "interval");
    r = good, r.interval = 1000;
    REFUSED(ST_ELIMIT, "ten years");
    r = good, r.except = days, r.nexcept = 2;
    REFUSED(ST_EINVAL, "twice");
    days[1] = day_of(2027, 1, 7);
    REFUSED(ST_EINVAL, "2027-01-07 is not a day of this series");
    r = series(wall(2027, 2, 1, 9, 0), 3600, ST_RECUR_MONTHLY, 2);
    r.monthday = 31, r.interval = 12; /* never */
    REFUSED(ST_ELIMIT, "ten years");
    assert_int_equal(out.n, 0);
}

/* ---- any series ----------------------------------------------------------------------------- */

/* Whether a day is of the series, from the words of the rule alone. */
static bool falls_on(const st_recur *r, int64_t day)
{
    int64_t anchor = st_day_of(r->anchor_s);
    st_date a = st_date_of_day(anchor), d = st_date_of_day(day);
    int days = st_date_month_days(d.year, d.month);

    switch (r->every) {
    case ST_RECUR_DAILY:
        return (day - anchor) % r->interval == 0;
    case ST_RECUR_WEEKLY:
        return (r->weekdays >> st_day_weekday(day) & 1) &&
               ((day - st_day_weekday(day)) - (anchor - st_day_weekday(anchor))) / 7 %
                       r->interval ==
                   0;
    case ST_RECUR_MONTHLY:
        break;
    }
    if (((d.year - a.year) * 12 + d.month - a.month) % r->interval != 0)
        return false;
    if (r->nth > 0)
        return st_day_weekday(day) == r->weekday && (d.day - 1) / 7 + 1 == r->nth;
    if (r->nth < 0)
        return st_day_weekday(day) == r->weekday && d.day + 7 > days;
    return r->monthday < 0 ? d.day == days + 1 + r->monthday : d.day == r->monthday;
}

static st_recur any_series(st_rng *rng)
{
    st_recur r =
        series(wall(2026, 1, 1, 0, 0) + (int64_t)st_rng_below(rng, 4000) * ST_DAY_S +
                   (int64_t)st_rng_below(rng, 96) * 900,
               900 + (int64_t)st_rng_below(rng, 80) * 900, (st_recur_every)st_rng_below(rng, 3), 0);

    r.interval = 1 + (int)st_rng_below(rng, 3);
    r.weekdays = 1 + (uint32_t)st_rng_below(rng, 127);
    r.gap = (st_recur_gap)st_rng_below(rng, 2);
    r.length = (st_recur_length)st_rng_below(rng, 2);
    if (st_rng_below(rng, 2)) {
        r.nth = st_rng_below(rng, 4) == 0 ? -1 : 1 + (int)st_rng_below(rng, 5);
        r.weekday = (int)st_rng_below(rng, 7);
    } else
        r.monthday = st_rng_below(rng, 3) == 0 ? -1 - (int)st_rng_below(rng, 31)
                                               : 1 + (int)st_rng_below(rng, 31);
    r.until_day = st_day_of(r.anchor_s) + (int64_t)st_rng_below(rng, 700);
    return r;
}

static void check_any(const st_tz *tz, const st_recur *r)
{
    st_occurrences got = {0};
    st_err err = {0};
    size_t i = 0;
    int result = st_recur_expand(r, tz, &got, &err);

    if (result < 0) {
        assert_true(strstr(err.msg, "no occurrence") || strstr(err.msg, "has ended"));
        assert_int_equal(got.n, 0);
        return;
    }
    for (int64_t day = st_day_of(r->anchor_s); day <= r->until_day; day++) {
        int64_t local = day * ST_DAY_S + (r->anchor_s - st_day_of(r->anchor_s) * ST_DAY_S);
        st_tz_moment m = st_tz_resolve(tz, local);

        if (!falls_on(r, day) || (m.kind == ST_TZ_GAP && r->gap == ST_RECUR_SKIP))
            continue;
        assert_true(i < got.n);
        const st_occurrence *o = &got.v[i++];
        int64_t from = o->from_ms / 1000, to = o->to_ms / 1000;

        assert_int_equal(o->day, day);
        assert_int_equal(from, m.first_s);
        assert_true(to > from);
        assert_true(i < 2 || o[-1].to_ms <= o->from_ms);
        assert_int_equal(o->shifted, m.kind == ST_TZ_GAP);
        if (!o->shifted) /* the clock shows what was asked for */
            assert_int_equal(from + st_tz_at(tz, from).offset_s, local);
        if (r->length == ST_RECUR_ELAPSED)
            assert_int_equal(to - from, r->length_s);
        else
            assert_true(to - from >= r->length_s - 2 * 3600 && to - from <= r->length_s + 2 * 3600);
    }
    assert_int_equal(i, got.n);
    st_vec_free(&got);
}

static void test_any(void **state)
{
    (void)state;
    static const char *const zones[] = {"America/New_York",    "Europe/Berlin",
                                        "Australia/Lord_Howe", "Pacific/Apia",
                                        "Africa/Casablanca",   "Africa/Cairo"};
    st_rng rng;

    st_rng_seed(&rng, 20261116);
    for (size_t z = 0; z < ST_ARRAY_LEN(zones); z++) {
        ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile(zones[z]);

        for (int i = 0; i < 3000; i++) {
            st_recur r = any_series(&rng);

            check_any(tz, &r);
        }
    }
}

/* A count is that of the days; exceptions are among them. */
static void test_exceptions(void **state)
{
    (void)state;
    st_recur r = series(wall(2026, 12, 23, 9, 0), 3600, ST_RECUR_DAILY, 4);
    int64_t days[] = {day_of(2026, 12, 25), day_of(2026, 12, 24)};

    r.except = days;
    r.nexcept = 2;
    CHECK("UTC", &r, "2026-12-23 09:00 UTC/2026-12-23 10:00 UTC",
          "2026-12-26 09:00 UTC/2026-12-26 10:00 UTC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_york),   cmocka_unit_test(test_berlin),
        cmocka_unit_test(test_far_zones),  cmocka_unit_test(test_months),
        cmocka_unit_test(test_weekdays),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_exceptions), cmocka_unit_test(test_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
