/*
 * Dates, and moments as people write and read them.
 *
 * Dates of the Gregorian calendar, carried on into the past, as days since 1970-01-01. No zone, no clock.
 *
 * A local time is the count of seconds since 1970-01-01 00:00 as a wall clock shows them: day * 86400 + second of
 * the day. It is an instant only together with a zone (calendar/tz.h).
 *
 * Moments:
 *
 *   2026-12-01 09:00          a wall clock in the zone; seconds may follow; without a time it is 00:00
 *   2026-12-01T09:00:00+01:00 RFC 3339; Z is UTC; the zone does not matter
 *   today 09:00, tomorrow 09:00, friday 09:00   (the next such day after today)
 *   now, +90m
 *
 * A wall-clock time that its zone skips or has twice is refused, with both moments it could mean.
 */
#ifndef ST_CALENDAR_CALENDAR_H
#define ST_CALENDAR_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "calendar/tz.h"

/* ---- dates (civil.c) ----------------------------------------------------------------------- */

#define ST_DAY_S INT64_C(86400)

typedef struct st_date {
    int32_t year;
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
} st_date;

bool st_date_is_leap(int32_t year);
/* Days of a month: 28 to 31. */
int32_t st_date_month_days(int32_t year, int32_t month);
bool st_date_is_valid(const st_date *d);

/* For valid dates in the years -9999 to 99999, and back. */
int64_t st_date_to_day(const st_date *d);
st_date st_date_of_day(int64_t day);

/* 0 is Monday, 6 Sunday. */
int st_day_weekday(int64_t day);
const char *st_weekday_name(int weekday); /* Monday */

/* The day a local time, or an instant in UTC, is on; what is left is its second of the day. */
int64_t st_day_of(int64_t local_s);

/* ---- moments (when.c) ---------------------------------------------------------------------- */

#define ST_WHEN_MAX 48

int st_when_parse(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_ms, st_err *err);
/* The same without asking the zone whether there is such a moment: local seconds. For the anchor of a series. */
int st_when_local(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_local_s,
                  st_err *err);
/* Whether the text says what a clock shows, and not an instant: local seconds. */
bool st_when_on_clock(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_local_s);
/* 2026-12-01 as a day since 1970. */
int st_when_date(const char *text, int64_t *ret_day, st_err *err);

/* Writing; each fills buf and returns it. */
const char *st_when_text(char buf[ST_WHEN_MAX], const st_tz *tz,
                         int64_t ms); /* 2026-12-01 09:00 CET */
const char *st_when_rfc3339(char buf[ST_WHEN_MAX], const st_tz *tz,
                            int64_t ms);                     /* 2026-12-01T09:00:00+01:00 */
const char *st_when_day(char buf[ST_WHEN_MAX], int64_t day); /* 2026-12-01 */

#endif
