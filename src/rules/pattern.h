/*
 * Lua's patterns, matched by code of our own for one reason: the library's matcher cannot be
 * stopped, and twenty `a-` in a row over a thousand bytes take longer than anyone waits. This
 * one is given a number of steps and gives up when they are used. The language is the one of the
 * Lua 5.4 manual, 6.4.1; a test compares the two on many patterns.
 */
#ifndef ST_RULES_PATTERN_H
#define ST_RULES_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ST_CAPTURES_MAX 32

typedef struct st_capture {
    size_t at;
    ptrdiff_t len; /* ST_CAPTURE_OPEN or ST_CAPTURE_POSITION or the length */
} st_capture;

#define ST_CAPTURE_OPEN     (-1)
#define ST_CAPTURE_POSITION (-2)

typedef struct st_pattern {
    const char *s, *p; /* subject and pattern; bytes, zeros included */
    size_t ns, np;
    int64_t steps; /* left; a match takes them away, and fails with ST_PATTERN_STEPS below 0 */
    int depth;
    const char *fault; /* what is wrong with the pattern */
    int ncaptures;
    st_capture captures[ST_CAPTURES_MAX];
} st_pattern;

/* What st_pattern_at returns besides the end of the match. */
#define ST_PATTERN_NONE  (-1)
#define ST_PATTERN_FAULT (-2) /* see fault */
#define ST_PATTERN_STEPS (-3)

/* Matches the pattern, from its byte `from` on, at byte `at` of the subject: the end of the match
 * or one of the above. */
ptrdiff_t st_pattern_at(st_pattern *m, size_t at, size_t from);

#endif
