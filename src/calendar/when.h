/*
 * Moments as people write and read them.
 *
 *   2026-12-01 09:00          a wall clock in the zone; seconds may follow; without a time it is 00:00
 *   2026-12-01T09:00:00+01:00 RFC 3339; Z is UTC; the zone does not matter
 *   today 09:00, tomorrow 09:00, friday 09:00   (the next such day after today)
 *   now, +90m
 *
 * A wall-clock time that its zone skips or has twice is refused, with both moments it could mean.
 */
#ifndef ST_CALENDAR_WHEN_H
#define ST_CALENDAR_WHEN_H

#include "calendar/tz.h"

#define ST_WHEN_MAX 48

int st_when_parse(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_ms, st_err *err);
/* The same without asking the zone whether there is such a moment: local seconds. For the anchor of a series. */
int st_when_local(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_local_s,
                  st_err *err);
/* 2026-12-01 as a day since 1970. */
int st_when_date(const char *text, int64_t *ret_day, st_err *err);

/* Writing; each fills buf and returns it. */
const char *st_when_text(char buf[ST_WHEN_MAX], const st_tz *tz,
                         int64_t ms); /* 2026-12-01 09:00 CET */
const char *st_when_rfc3339(char buf[ST_WHEN_MAX], const st_tz *tz,
                            int64_t ms);                     /* 2026-12-01T09:00:00+01:00 */
const char *st_when_day(char buf[ST_WHEN_MAX], int64_t day); /* 2026-12-01 */

#endif
