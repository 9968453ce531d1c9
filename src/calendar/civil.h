/*
 * Dates of the Gregorian calendar, carried on into the past, as days since 1970-01-01. No zone, no clock.
 *
 * A local time is the count of seconds since 1970-01-01 00:00 as a wall clock shows them: day * 86400 + second of
 * the day. It is an instant only together with a zone (calendar/tz.h).
 */
#ifndef ST_CALENDAR_CIVIL_H
#define ST_CALENDAR_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
