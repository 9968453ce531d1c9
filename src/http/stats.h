/*
 * The server's own numbers: calls by route and class of status, durations,
 * and what was turned away and why. Counted without locks.
 */
#ifndef ST_HTTP_STATS_H
#define ST_HTTP_STATS_H

#include "http/http.h"
#include "http/metrics.h"

/* Why a request or connection was turned away before its handler. X(name, label) */
#define ST_REJECT_TABLE(X)                      \
    X(ST_REJECT_PEER, "connections_per_peer")   \
    X(ST_REJECT_TOTAL, "connections")           \
    X(ST_REJECT_STRANGER, "strangers_per_peer") \
    X(ST_REJECT_SLOW, "slow")                   \
    X(ST_REJECT_MALFORMED, "malformed")         \
    X(ST_REJECT_SIZE, "size")                   \
    X(ST_REJECT_QUOTA, "quota")                 \
    X(ST_REJECT_AUTH, "unauthenticated")        \
    X(ST_REJECT_ROLE, "role")                   \
    X(ST_REJECT_RATE, "rate")                   \
    X(ST_REJECT_RUNNING, "running")             \
    X(ST_REJECT_STREAMS, "streams")             \
    X(ST_REJECT_OVERFLOW, "stream_overflow")    \
    X(ST_REJECT_STOPPING, "stopping")

typedef enum {
#define ST_REJECT_ENUM(name, label) name,
    ST_REJECT_TABLE(ST_REJECT_ENUM)
#undef ST_REJECT_ENUM
        ST_REJECT_COUNT
} st_reject;

typedef struct st_stats st_stats;

st_stats *st_stats_new(const st_route *routes, int nroute);
void st_stats_free(st_stats *stats);

/* A call that is over; route is an index into the table or -1 when none was found. */
void st_stats_call(st_stats *stats, int route, int status, int64_t duration_us);
void st_stats_reject(st_stats *stats, st_reject why);
void st_stats_write(const st_stats *stats, st_metrics *m);

#endif
