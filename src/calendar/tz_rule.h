/*
 * The rule in the footer of a TZif file: POSIX's TZ with RFC 8536's longer times, such as "CET-1CEST,M3.5.0,M10.5.0/3".
 * Private to src/calendar.
 */
#ifndef ST_CALENDAR_TZ_RULE_H
#define ST_CALENDAR_TZ_RULE_H

#include "calendar/tz.h"

typedef enum st_tz_day_kind { ST_TZ_DAY_JULIAN, ST_TZ_DAY_ZERO, ST_TZ_DAY_MONTH } st_tz_day_kind;

/* The day of a year on which a change happens, and the local second of that day, which may lie on another one. */
typedef struct st_tz_day {
    st_tz_day_kind kind;
    int32_t day;     /* of the year: Julian 1 to 365 without 29 February, zero-based 0 to 365 */
    int32_t month;   /* 1 to 12 */
    int32_t week;    /* 1 to 5, 5 is the last */
    int32_t weekday; /* 0 is Sunday, as POSIX has it */
    int32_t time_s;
} st_tz_day;

typedef struct st_tz_rule {
    bool has_dst;
    st_tz_type std, dst;
    st_tz_day start, end; /* of daylight saving time */
} st_tz_rule;

int st_tz_rule_parse(const char *text, st_tz_rule *ret, st_err *err);

/* The type at an instant, and the next change after one; false where there is none. */
const st_tz_type *st_tz_rule_at(const st_tz_rule *rule, int64_t utc_s);
bool st_tz_rule_next(const st_tz_rule *rule, int64_t after_s, int64_t *ret_s);

#endif
