/*
 * Rates and concurrency per principal: a token bucket and a count of running
 * calls by a 64-bit key. Thread-safe; time comes in as an argument.
 */
#ifndef ST_HTTP_LIMITS_H
#define ST_HTTP_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

typedef struct st_http_limits st_http_limits;

typedef enum { ST_LIMIT_PASS, ST_LIMIT_RATE, ST_LIMIT_RUNNING } st_limit_result;

st_http_limits *st_limits_new(void);
void st_limits_free(st_http_limits *limits);
ST_DEFINE_FREEP(st_http_limits, st_limits_free)

/* One more call. Rates and counts below 0 are no limit. A burst is two seconds' worth. When it does
 * not pass because of its rate, *ret_wait_ms is the time until it would. What passed is followed
 * by st_limits_leave with the same key. */
st_limit_result st_limits_enter(st_http_limits *limits, uint64_t key, int rate_per_s,
                                int running_max, int64_t now_ms, int64_t *ret_wait_ms);
void st_limits_leave(st_http_limits *limits, uint64_t key);

/* Forgets keys without running calls whose bucket is full again, that is, for ten seconds. */
void st_limits_sweep(st_http_limits *limits, int64_t now_ms);

#endif
