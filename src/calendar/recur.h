/*
 * A series of windows: which days it falls on, and the instants at which each begins and ends.
 *
 * 1. Days are walked from the anchor's day, never from the occurrence before: one that daylight saving time has shifted
 *    shifts no other.
 * 2. A start that clocks skip on its day is shifted by the skip or left out, as the series says. Of two that look the
 *    same the first counts.
 * 3. A length is elapsed time (8h are 8 hours) or wall-clock time (22:00 to 06:00, whatever happens at night). No
 *    occurrence is empty: where the clocks skip a wall-clock end as well, its length is elapsed time that day.
 * 4. `count` counts days of the series that exist, exceptions with them; what is left out by rule 2 does not count.
 * 5. A series has an end, at most ST_RECUR_MAX occurrences, and none of them overlap.
 */
#ifndef ST_CALENDAR_RECUR_H
#define ST_CALENDAR_RECUR_H

#include "base/vec.h"
#include "calendar/tz.h"

#define ST_RECUR_MAX          1000
#define ST_RECUR_SPAN_DAYS    INT64_C(3660)
#define ST_RECUR_INTERVAL_MAX 1000
#define ST_RECUR_NO_DAY       INT64_MIN

/* X(name, string) */
#define ST_RECUR_EVERY_TABLE(X) \
    X(ST_RECUR_DAILY, "day")    \
    X(ST_RECUR_WEEKLY, "week")  \
    X(ST_RECUR_MONTHLY, "month")
#define ST_RECUR_GAP_TABLE(X)  \
    X(ST_RECUR_SHIFT, "shift") \
    X(ST_RECUR_SKIP, "skip")
#define ST_RECUR_LENGTH_TABLE(X)   \
    X(ST_RECUR_ELAPSED, "elapsed") \
    X(ST_RECUR_WALL, "wall")

#define ST_RECUR_ENUM(name, string) name,
typedef enum st_recur_every { ST_RECUR_EVERY_TABLE(ST_RECUR_ENUM) } st_recur_every;
typedef enum st_recur_gap { ST_RECUR_GAP_TABLE(ST_RECUR_ENUM) } st_recur_gap;
typedef enum st_recur_length { ST_RECUR_LENGTH_TABLE(ST_RECUR_ENUM) } st_recur_length;
#undef ST_RECUR_ENUM

typedef struct st_recur {
    int64_t anchor_s; /* local time of the first start */
    int64_t length_s; /* elapsed or on the wall clock */
    st_recur_length length;
    st_recur_gap gap;
    st_recur_every every;
    int32_t interval;  /* every so many days, weeks or months; 1 is each */
    uint32_t weekdays; /* weekly: bit 0 is Monday; none is the anchor's */
    int32_t
        monthday; /* monthly: 1 to 31, from the end -1 to -31; 0 is the anchor's, or nth is set */
    int32_t nth,
        weekday; /* monthly: the first (1) to fifth or last (-1) such weekday; 0 is not used */
    int64_t until_day;     /* the last day it may begin on, or ST_RECUR_NO_DAY */
    int32_t count;         /* or so many; 0 is not used */
    const int64_t *except; /* days, each one of the series */
    size_t nexcept;
} st_recur;

/* A window as it was written: what the clocks of its zone show, in local seconds. ST_WALL_NONE: it was written as an
 * instant, or, of an end, as a length. */
#define ST_WALL_NONE INT64_MIN
typedef struct st_wall {
    int64_t from_s, to_s;
} st_wall;

typedef struct st_occurrence {
    int64_t from_ms, to_ms;
    st_wall wall;
    int64_t day;  /* of the series, as its zone has it */
    bool shifted; /* its clocks skip the start that day */
} st_occurrence;

typedef ST_VEC(st_occurrence) st_occurrences;

/* Appends the occurrences in order; *ret is as it was on failure. */
int st_recur_expand(const st_recur *recur, const st_tz *tz, st_occurrences *ret, st_err *err);

/* When a window is by this zone, by rules 2 and 3; one whose start clocks skip is shifted. In: when it was, out: when it
 * is. A start that is an instant stays. */
void st_wall_resolve(const st_wall *wall, const st_tz *tz, int64_t *from_ms, int64_t *to_ms);

/* "mon,wed" or "weekdays", "weekend": bits as in `weekdays`. */
int st_recur_weekdays(const char *text, uint32_t *ret, st_err *err);
/* "15", "last", "2nd tuesday", "last friday": fills monthday, or nth and weekday. */
int st_recur_monthly(const char *text, st_recur *ret, st_err *err);

#endif
