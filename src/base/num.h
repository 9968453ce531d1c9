/*
 * Numbers with units, read strictly and exactly, and written back. No floating
 * point: what a person wrote is what is counted.
 *
 *   whole numbers   -12, 0, 4096; decimal only, no sign +, no separators
 *   milli           a decimal with at most three decimals: 2 -> 2000, 0.25 -> 250
 *   durations       90s, 2h, 1d, 500ms, 1h30m, 1.5h; units w d h m s ms, each once and from
 *                   large to small; only 0 may stand without a unit; at most 1000 years
 *   memory          64Gi, 512Mi, 1.5Ti (powers of 1024) and 64G, 512M (powers of 1000, rounded
 *                   up to whole MiB), with or without a final B; a PLAIN NUMBER IS IN GiB, so
 *                   that `ram: 64` means 64 GiB; at most 1 EiB
 *
 * The parsers take the whole string or fail: no blanks around it, nothing
 * behind it. They return 0 or -ST_EPARSE (not such a thing) or -ST_ERANGE
 * (such a thing, but too small or too large), with a sentence that quotes the
 * text; *ret is untouched on failure.
 */
#ifndef ST_BASE_NUM_H
#define ST_BASE_NUM_H

#include <stdint.h>

#include "base/err.h"

#define ST_DURATION_MAX_MS (INT64_C(365250) * 86400 * 1000)
#define ST_MIB_MAX         (INT64_C(1) << 40)

int st_parse_i64(const char *s, int64_t lo, int64_t hi, int64_t *ret, st_err *err);
int st_parse_milli(const char *s, int64_t lo, int64_t hi, int64_t *ret, st_err *err);
int st_parse_duration_ms(const char *s, int64_t *ret, st_err *err);
int st_parse_mib(const char *s, int64_t *ret, st_err *err);

/* Writing; each fills buf and returns it. What they write, the parsers above read back. */
#define ST_FMT_MAX 32

const char *st_fmt_milli(char buf[ST_FMT_MAX], int64_t milli); /* 2, 0.25, -1.5 */
const char *st_fmt_duration(char buf[ST_FMT_MAX], int64_t ms); /* 1h30m, 500ms, 0s */
const char *st_fmt_mib(char buf[ST_FMT_MAX], int64_t mib);     /* 64Gi, 1536Mi, 0 */

#endif
