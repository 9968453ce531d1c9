/*
 * A time zone, read from the bytes of a TZif file (RFC 8536) with the rule in its footer. Whoever has the bytes calls
 * st_tz_parse; nothing here looks at files, the environment or the C library's one zone.
 *
 * 1. Before the file's first change its first type holds, from its last change on the footer's rule does; without a
 *    footer the last type holds for ever.
 * 2. A local time happens once, never (clocks skip it: a gap) or twice (clocks are set back: an overlap).
 * 3. Bytes that break the format, files with leap seconds and files of version 1 are refused.
 */
#ifndef ST_CALENDAR_TZ_H
#define ST_CALENDAR_TZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"

#define ST_TZ_NAME_MAX  64
#define ST_TZ_ABBR_MAX  16
#define ST_TZ_BYTES_MAX (64u << 10) /* of a file */

typedef struct st_tz st_tz;

int st_tz_parse(const char *name, const void *bytes, size_t n, st_tz **ret, st_err *err);
/* The zone with one rule for all times, in the words of such a file's footer: "CET-1CEST,M3.5.0,M10.5.0/3". */
int st_tz_of_rule(const char *name, const char *rule, st_tz **ret, st_err *err);

/* The zone without any rules, which needs no file. */
st_tz *st_tz_utc(void);
void st_tz_free(st_tz *tz);
ST_DEFINE_FREEP(st_tz, st_tz_free)

const char *st_tz_name(const st_tz *tz);

/* Whether this could be a name in the IANA database: relative, of plain characters, without "." and "..". */
bool st_tz_name_is_sane(const char *name);

typedef struct st_tz_type {
    int32_t offset_s; /* east of UTC */
    bool dst;
    char abbr[ST_TZ_ABBR_MAX];
} st_tz_type;

/* What holds at an instant, in seconds since 1970 in UTC; years from 1 to 9999. */
st_tz_type st_tz_at(const st_tz *tz, int64_t utc_s);

/* The first moment after `after_s` at which another type begins to hold; it may look the same. False when there is none. */
bool st_tz_next(const st_tz *tz, int64_t after_s, int64_t *ret_s);

typedef enum st_tz_kind { ST_TZ_ONCE, ST_TZ_GAP, ST_TZ_TWICE } st_tz_kind;

/* When a wall clock shows a local time. */
typedef struct st_tz_moment {
    st_tz_kind kind;
    int64_t
        first_s; /* the instant; the first of two; in a gap the local time read with the offset before it */
    int64_t
        second_s; /* the second of two; in a gap the instant at which the clocks jump; else first_s */
} st_tz_moment;

st_tz_moment st_tz_resolve(const st_tz *tz, int64_t local_s);

#endif
