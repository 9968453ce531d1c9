/* Zones: every change of every zone as zdump has it, gaps and overlaps, and bytes that are refused. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/testing.h"
#include "calendar/calendar.h"
#include "calendar/test/zonefile.h"
#include "calendar/tz.h"
#include "calendar/tz_rule.h"

/* ---- against zdump -------------------------------------------------------------------------- */

#define FROM_YEAR 2026
#define TO_YEAR   2048 /* beyond 2037, where files have only their rule */
#define BATCH     60

static bool same(const st_tz_type *a, const st_tz_type *b)
{
    return a->offset_s == b->offset_s && a->dst == b->dst && strcmp(a->abbr, b->abbr) == 0;
}

static int month_of(const char *name)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *at = strstr(names, name);

    assert_non_null(at);
    return (int)(at - names) / 3 + 1;
}

/* What a change of the offset does to local times: none in a gap, two in an overlap, one around both. */
static void check_edge(const st_tz *tz, int64_t at, int32_t before, int32_t after, int *gaps,
                       int *overlaps)
{
    int64_t lo = at + ST_MIN(before, after), hi = at + ST_MAX(before, after);
    int64_t inside[] = {lo, lo + (hi - lo) / 2, hi - 1};
    int64_t other;
    bool alone = !st_tz_next(tz, at, &other) || other > at + 2 * ST_DAY_S;
    st_tz_moment m;

    for (size_t i = 0; i < ST_ARRAY_LEN(inside); i++) {
        m = st_tz_resolve(tz, inside[i]);
        if (after > before) {
            assert_int_equal(m.kind, ST_TZ_GAP);
            assert_int_equal(m.first_s, inside[i] - before);
            assert_int_equal(m.second_s, at);
        } else {
            assert_int_equal(m.kind, ST_TZ_TWICE);
            assert_int_equal(m.first_s, inside[i] - before);
            assert_int_equal(m.second_s, inside[i] - after);
        }
    }
    *(after > before ? gaps : overlaps) += 1;
    if (!alone)
        return;
    m = st_tz_resolve(tz, hi);
    assert_int_equal(m.kind, ST_TZ_ONCE);
    assert_int_equal(m.first_s, hi - after);
}

typedef struct dumped {
    char zone[ST_TZ_NAME_MAX];
    int64_t at_s;
    st_tz_type type;
} dumped;

/* A line of `zdump -v`; false for those of the ends of time. */
static bool read_line(const char *line, dumped *ret)
{
    char month[4], local_month[4], abbr[ST_TZ_ABBR_MAX];
    int day, h, m, s, year, isdst, d2, h2, m2, s2, y2, off;

    if (sscanf(line,
               "%63s %*3s %3s %d %d:%d:%d %d UT = %*3s %3s %d %d:%d:%d %d %15s isdst=%d gmtoff=%d",
               ret->zone, month, &day, &h, &m, &s, &year, local_month, &d2, &h2, &m2, &s2, &y2,
               abbr, &isdst, &off) != 16)
        return false;
    ret->at_s = wall(year, month_of(month), day, h, m) + s;
    ret->type.offset_s = off;
    ret->type.dst = isdst;
    memcpy(ret->type.abbr, abbr, sizeof abbr);
    /* What the clock shows, from zdump's own words. */
    assert_int_equal(wall(y2, month_of(local_month), d2, h2, m2) + s2, ret->at_s + off);
    return true;
}

/* The next change that can be seen. */
static bool next_seen(const st_tz *tz, int64_t after, int64_t *ret)
{
    st_tz_type before = st_tz_at(tz, after);

    while (st_tz_next(tz, after, &after) && after < wall(TO_YEAR, 1, 1, 0, 0)) {
        st_tz_type now = st_tz_at(tz, after);

        if (!same(&before, &now)) {
            *ret = after;
            return true;
        }
    }
    return false;
}

static void test_every_zone(void **state)
{
    (void)state;
    size_t n;
    char **names = zonefile_names(&n);
    int lines = 0, gaps = 0, overlaps = 0;

    assert_true(n > 400);
    for (size_t first = 0; first < n; first += BATCH) {
        ST_CLEANUP(st_strbuf_done) st_strbuf cmd = {0};
        ST_CLEANUP(st_tz_freep) st_tz *tz = NULL;
        char line[512];
        dumped before = {0}, d;
        int64_t next = 0;
        bool open = false; /* the line before was the last second of a type */

        st_strbuf_addf(&cmd, "zdump -v -c %d,%d", FROM_YEAR, TO_YEAR);
        for (size_t i = first; i < n && i < first + BATCH; i++)
            st_strbuf_addf(&cmd, " %s", names[i]);
        FILE *f = popen(cmd.s, "r");

        assert_non_null(f);
        while (fgets(line, sizeof line, f)) {
            if (!read_line(line, &d))
                continue;
            if (!tz || strcmp(st_tz_name(tz), d.zone) != 0) {
                assert_true(!tz || !next_seen(tz, next, &next)); /* all were told */
                st_tz_free(tz);
                tz = zonefile(d.zone);
                next = wall(FROM_YEAR, 1, 1, 0, 0) - 1;
                open = false;
            }
            st_tz_type t = st_tz_at(tz, d.at_s);

            if (!same(&t, &d.type))
                fail_msg("%s: %d %s, not %d %s, in: %s", d.zone, t.offset_s, t.abbr,
                         d.type.offset_s, d.type.abbr, line);
            if (open) {
                assert_true(next_seen(tz, next, &next));
                assert_int_equal(next, d.at_s);
                if (before.type.offset_s != d.type.offset_s)
                    check_edge(tz, d.at_s, before.type.offset_s, d.type.offset_s, &gaps, &overlaps);
            }
            before = d;
            open = !open;
            lines++;
        }
        assert_int_equal(pclose(f), 0);
        assert_true(!tz || !next_seen(tz, next, &next));
    }
    print_message("%zu zones, %d lines of zdump, %d gaps, %d overlaps\n", n, lines, gaps, overlaps);
    assert_true(lines > 5000 && gaps > 1000 && overlaps > 1000);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* Each hour of 2026 to 2037 comes back from its local time, whatever the zone. */
static void test_there_and_back(void **state)
{
    (void)state;
    static const char *const zones[] = {
        "America/New_York", "Europe/Berlin",     "Australia/Lord_Howe", "Pacific/Apia",
        "Africa/Cairo",     "Africa/Casablanca", "Asia/Kathmandu",      "UTC"};
    for (size_t z = 0; z < ST_ARRAY_LEN(zones); z++) {
        ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile(zones[z]);

        for (int64_t t = wall(2026, 1, 1, 0, 0); t < wall(2038, 1, 1, 0, 0); t += 1700) {
            st_tz_moment m = st_tz_resolve(tz, t + st_tz_at(tz, t).offset_s);

            assert_int_not_equal(m.kind, ST_TZ_GAP);
            assert_true(m.first_s == t || m.second_s == t);
            assert_true(m.first_s <= m.second_s);
        }
    }
}

/* A day that Samoa never had. */
static void test_lost_day(void **state)
{
    (void)state;
    ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile("Pacific/Apia");
    st_tz_moment m = st_tz_resolve(tz, wall(2011, 12, 30, 12, 0));

    assert_int_equal(m.kind, ST_TZ_GAP);
    assert_int_equal(m.first_s + st_tz_at(tz, m.first_s).offset_s, wall(2011, 12, 31, 12, 0));
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void test_rules(void **state)
{
    (void)state;
    st_tz_rule rule;
    st_err err = {0};
    int64_t next;

    assert_ok(st_tz_rule_parse("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", &rule, &err));
    assert_int_equal(rule.std.offset_s, -7200);
    assert_int_equal(rule.start.time_s, -3600);
    assert_true(st_tz_rule_next(&rule, wall(2026, 1, 1, 0, 0), &next));
    assert_int_equal(next, wall(2026, 3, 29, 1, 0));
    /* Daylight saving time all year: the end of one is the start of the next. */
    assert_ok(st_tz_rule_parse("XXX3EDT4,0/0,J365/23", &rule, &err));
    for (int64_t t = wall(2024, 1, 1, 0, 0); t < wall(2030, 1, 1, 0, 0); t += 1800)
        assert_true(st_tz_rule_at(&rule, t)->dst);
    assert_ok(st_tz_rule_parse("EST5EDT,J60,J300", &rule, &err));
    assert_true(
        st_tz_rule_next(&rule, wall(2028, 1, 1, 0, 0), &next)); /* 1 March, leap year or not */
    assert_int_equal(next, wall(2028, 3, 1, 7, 0));
    assert_ok(st_tz_rule_parse("UTC0", &rule, &err));
    assert_false(st_tz_rule_next(&rule, 0, &next));

    static const char *const wrong[] = {"",
                                        "C",
                                        "CET",
                                        "CET-1CEST",
                                        "CET-25",
                                        "CET-1CEST,M3.5.0",
                                        "CET-1CEST,M13.5.0,M10.5.0",
                                        "CET-1CEST,M3.6.0,M10.5.0",
                                        "CET-1CEST,M3.5.7,M10.5.0",
                                        "CET-1CEST,J0,J5",
                                        "CET-1CEST,M3.5.0/168,M10.5.0",
                                        "CET-1CEST,M3.5.0,M10.5.0,",
                                        "<CET-1",
                                        "ABCDEFGHIJKLMNOPQ-1",
                                        "CET-1CEST,366,0",
                                        "CET-00001"};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_tz_rule_parse(wrong[i], &rule, &err), ST_EPARSE, "is no rule");
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf good = {0};
    st_tz *tz = NULL;
    st_err err = {0};

    assert_ok(st_file_read(ZONE_DIR "/Europe/Berlin", ST_TZ_BYTES_MAX, &good, &err));
    for (size_t n = 0; n < good.n; n++) /* every cut */
        assert_fails(st_tz_parse("Z", good.s, n, &tz, &err), ST_EPARSE, "\"Z\" cannot be used");
    for (size_t i = 0; i < good.n; i++) { /* every byte another one: refused or usable */
        good.s[i] ^= 0x5a;
        if (st_tz_parse("Z", good.s, good.n, &tz, &err) == 0) {
            st_tz_resolve(tz, wall(2026, 3, 29, 2, 30));
            st_tz_free(tz);
            tz = NULL;
        }
        good.s[i] ^= 0x5a;
    }
    ST_CLEANUP(st_strbuf_done) st_strbuf right = {0};

    assert_ok(st_file_read(ZONE_DIR "/right/Europe/Berlin", ST_TZ_BYTES_MAX, &right, &err));
    assert_fails(st_tz_parse("Z", right.s, right.n, &tz, &err), ST_EPARSE, "leap seconds");
    assert_null(tz);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires",
                                       "Etc/GMT+5", "America/Port-au-Prince"};
    static const char *const wrong[] = {
        "",
        "/etc/passwd",
        "../x",
        "Europe/../../x",
        "a b",
        "Europe/",
        "a//b",
        "Europe\n",
        "-v",
        "a.b",
        ("A23456789012345678901234567890123456789012345678901234567890"
         "1234567")};
    for (size_t i = 0; i < ST_ARRAY_LEN(good); i++)
        assert_true(st_tz_name_is_sane(good[i]));
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_false(st_tz_name_is_sane(wrong[i]));
}

static void test_dates(void **state)
{
    (void)state;
    st_date before = st_date_of_day(-4000000);

    for (int64_t day = -3999999; day < 4000000; day++) {
        st_date d = st_date_of_day(day);
        bool next_day = d.year == before.year && d.month == before.month && d.day == before.day + 1;
        bool first = d.day == 1 && before.day == st_date_month_days(before.year, before.month);

        assert_true(next_day || first);
        assert_true(st_date_is_valid(&d));
        if (st_date_to_day(&d) != day)
            fail_msg("day %lld", (long long)day);
        before = d;
    }
    st_date d = {2026, 11, 16};

    assert_int_equal(st_day_weekday(st_date_to_day(&d)), 0);
    assert_string_equal(st_weekday_name(0), "Monday");
    assert_false(st_date_is_valid(&(st_date){2026, 2, 29}));
    assert_true(st_date_is_valid(&(st_date){2028, 2, 29}));
    assert_int_equal(st_day_of(-1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lost_day),   cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_every_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
