/* Moments as people write them, and iCalendar's lines. */
#include <string.h>

#include "base/testing.h"
#include "calendar/calendar.h"
#include "calendar/ics.h"
#include "calendar/test/zonefile.h"

#define NOW (wall(2026, 11, 16, 7, 0) * 1000) /* a Monday */

static void test_read(void **state)
{
    (void)state;
    ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile("Europe/Berlin");
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"2026-12-01 09:00", "2026-12-01T09:00:00+01:00"},
        {"2026-12-01T09:00", "2026-12-01T09:00:00+01:00"},
        {"2026-07-01 09:00:30", "2026-07-01T09:00:30+02:00"},
        {"2026-12-01", "2026-12-01T00:00:00+01:00"},
        {"2026-12-01T09:00:00Z", "2026-12-01T10:00:00+01:00"},
        {"2026-12-01T09:00:00.123456-05:30", "2026-12-01T15:30:00+01:00"},
        {"2026-12-01 09:00+01:00", "2026-12-01T09:00:00+01:00"},
        {"today 23:30", "2026-11-16T23:30:00+01:00"},
        {"Tomorrow 09:00", "2026-11-17T09:00:00+01:00"},
        {"tomorrow", "2026-11-17T00:00:00+01:00"},
        {"friday 09:00", "2026-11-20T09:00:00+01:00"},
        {"monday 09:00", "2026-11-23T09:00:00+01:00"},
        {"now", "2026-11-16T08:00:00+01:00"},
        {"+1h30m", "2026-11-16T09:30:00+01:00"},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        int64_t ms = 0;
        char buf[ST_WHEN_MAX];
        st_err err = {0};

        assert_ok(st_when_parse(rows[i].text, tz, NOW, &ms, &err));
        assert_string_equal(st_when_rfc3339(buf, tz, ms), rows[i].want);
    }
}

static void test_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_tz_freep) st_tz *tz = zonefile("Europe/Berlin");
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-13-01",
                                        "2026-02-29",
                                        "2026-12-01 24:00",
                                        "2026-12-01 09:60",
                                        "2026-12-01  09:00",
                                        "2026-12-01 09:00:60",
                                        "2026-12-01 9:00",
                                        "2026-12-01 09:00 ",
                                        "2026-12-01T09:00:00+24:00",
                                        "2026-12-01T09:00:00.",
                                        "99999-12-01 09:00",
                                        "1969-12-31",
                                        "someday 09:00",
                                        "todayT09:00",
                                        "monday09:00",
                                        "2026-12-01 09:00 Europe/Berlin"};
    int64_t ms = 7;
    st_err err = {0};

    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++)
        assert_fails(st_when_parse(wrong[i], tz, NOW, &ms, &err), ST_EPARSE,
                     "is not a time; write");
    assert_fails(st_when_parse("+1001y", tz, NOW, &ms, &err), ST_EPARSE, "1001y");
    assert_fails(st_when_date("2026-02-30", &ms, &err), ST_EPARSE, "is not a date");
    assert_fails(
        st_when_parse("2026-10-25 02:30", tz, NOW, &ms, &err), ST_EINVAL,
        "2026-10-25 02:30 happens twice in Europe/Berlin; write 2026-10-25T02:30:00+02:00 or "
        "2026-10-25T02:30:00+01:00");
    assert_fails(
        st_when_parse("2027-03-28 02:30", tz, NOW, &ms, &err), ST_EINVAL,
        "2027-03-28 02:30 does not exist in Europe/Berlin: clocks jump to 2027-03-28 03:00 "
        "CEST; write 2027-03-28T03:00:00+02:00 or 2027-03-28T03:30:00+02:00");
    assert_int_equal(ms, 7);
    assert_ok(
        st_when_local("2027-03-28 02:30", tz, NOW, &ms, &err)); /* for a series it is its rule's */
    assert_int_equal(ms, wall(2027, 3, 28, 2, 30));
    assert_ok(st_when_local("2026-12-01T09:00:00Z", tz, NOW, &ms, &err));
    assert_int_equal(ms, wall(2026, 12, 1, 10, 0));
}

/* Lines of at most 75 octets, whole characters, and no text that breaks out of its property. */
static void test_ics(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_ics_event e = {
        .uid = "b1@stint",
        .summary = "64 × h100; a, b\\c\nEND:VEVENT\r\nBEGIN:VEVENT\xff\x01 \xe2\x80\xae",
        .description = "äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü",
        .from_ms = wall(2026, 12, 1, 9, 0) * 1000,
        .to_ms = wall(2026, 12, 4, 9, 0) * 1000 + 1,
        .stamp_ms = NOW,
        .status = ST_ICS_CONFIRMED};

    st_ics_begin(&out, "vision");
    st_ics_event_add(&out, &e);
    st_ics_end(&out);
    assert_non_null(strstr(out.s, "SUMMARY:64 × h100\\; a\\, b\\\\c\\nEND:VEVENT"));
    assert_non_null(strstr(out.s, "DTSTART:20261201T090000Z\r\nDTEND:20261204T090000Z\r\n"));
    int begins = 0;

    for (char *line = out.s, *end; *line; line = end + 2) {
        end = strstr(line, "\r\n");
        assert_non_null(end);
        assert_true(end - line <= 75);
        for (char *p = line; p < end; p++)
            assert_true(*p != '\r' && *p != '\n');
        assert_true((*line & 0xc0) != 0x80 && (line[0] != ' ' || (line[1] & 0xc0) != 0x80));
        begins += strncmp(line, "BEGIN:VEVENT", 12) == 0;
    }
    assert_int_equal(begins, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
