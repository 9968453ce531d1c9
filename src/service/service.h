/*
 * Services: a number of replicas, each a job, kept as their owner wants them. This module decides what to do next from
 * what is wanted and what is seen; who calls it carries it out (control/services.h) and looks again.
 *
 * Invariants:
 *  1 The same input gives the same decision; time comes in as an argument.
 *  2 A replica that is ready is taken off the route only while enough others are ready: what is wanted less
 *    `unavailable`. It makes no difference whether it is replaced by a new template or because its place goes away.
 *  3 There are never more replicas that serve or will serve than are wanted and `surge` (one where a replica must move).
 *  4 A replica's job is ended only once it is off the route and its requests are over, or `drain_ms` has passed.
 *  5 Starts after failures wait, twice as long each time, up to `wait_max_ms`.
 *
 * Place in the law: base <- service; beside health and neighbour.
 */
#ifndef ST_SERVICE_SERVICE_H
#define ST_SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/vec.h"

#define ST_SVC_REPLICAS_MAX 256 /* of one service */

/* X(id, word, what a service goes by when it changes its number of replicas) */
#define ST_SVC_SCALE_TABLE(X)                                             \
    X(ST_SVC_SCALE_NONE, "none", "it does not")                           \
    X(ST_SVC_SCALE_REQUESTS, "requests", "open requests at its route")    \
    X(ST_SVC_SCALE_QUEUE, "queue", "the length of the queue it tells of") \
    X(ST_SVC_SCALE_LATENCY, "latency", "the latency it tells of")
typedef enum st_svc_scale {
#define X(id, word, about) id,
    ST_SVC_SCALE_TABLE(X)
#undef X
} st_svc_scale;
extern const char *const st_svc_scale_words[]; /* NULL at the end */

/* X(id, word, how a replica is found to be healthy) */
#define ST_SVC_HEALTH_TABLE(X)                                   \
    X(ST_SVC_HEALTH_NONE, "none", "its job runs")                \
    X(ST_SVC_HEALTH_TCP, "tcp", "something listens on its port") \
    X(ST_SVC_HEALTH_HTTP, "http", "a path is answered with 200 to 399")
typedef enum st_svc_health {
#define X(id, word, about) id,
    ST_SVC_HEALTH_TABLE(X)
#undef X
} st_svc_health;
extern const char *const st_svc_health_words[]; /* NULL at the end */

/* What is wanted. */
typedef struct st_svc_spec {
    int replicas;                 /* where it does not scale, and to begin with */
    int min, max;                 /* where it scales */
    int revision;                 /* of the template; replicas of another one are replaced */
    int surge;                    /* replicas more than wanted while some are replaced */
    int unavailable;              /* and fewer */
    int64_t wait_ms, wait_max_ms; /* before a start after a failure */
    int64_t start_ms; /* a replica that is not ready so long after its job began has failed */
    int64_t drain_ms; /* what its open requests have */
    st_svc_scale scale;
    int64_t target;         /* of what it scales by: so much for each replica; of latency: ms */
    int64_t up_ms, down_ms; /* it must have been so for so long */
    int64_t idle_ms;        /* without requests for so long it ends; 0: never */
    bool removed;           /* it is to end */
} st_svc_spec;

/* X(id, word, what it means) */
#define ST_SVC_STATE_TABLE(X)                                                     \
    X(ST_SVC_WAITING, "waiting", "its job waits for its devices")                 \
    X(ST_SVC_STARTING, "starting", "its job runs, and it was not healthy yet")    \
    X(ST_SVC_READY, "ready", "it is healthy and gets requests")                   \
    X(ST_SVC_SICK, "sick", "its health check has failed as often as it may")      \
    X(ST_SVC_LEAVING, "leaving", "it gets no new requests, and its job will end") \
    X(ST_SVC_OVER, "over", "its job has ended")
typedef enum st_svc_state {
#define X(id, word, about) id,
    ST_SVC_STATE_TABLE(X)
#undef X
} st_svc_state;
extern const char *const st_svc_state_words[]; /* NULL at the end */

/* One replica as it is seen. */
typedef struct st_svc_seen {
    int64_t serial; /* grows with each that is started */
    int revision;
    st_svc_state state; /* LEAVING until OVER, once it was retired */
    int64_t since_ms;   /* it has been in this state */
    bool moving;        /* its place goes away: its node drains, or it was told to yield */
    bool retired;       /* OVER: it was, before it ended */
    int open;           /* its requests */
} st_svc_seen;

/* What is remembered from one decision to the next. */
typedef struct st_svc_memory {
    int target;                 /* replicas wanted now; 0: not known yet */
    int fails;                  /* in a row */
    int64_t failed_ms;          /* the last of them */
    int64_t retry_ms;           /* no start before; 0: at once */
    int64_t above_ms, below_ms; /* since when more, or fewer, are asked for; 0: they are not */
    int below_most;             /* the most that was asked for since */
    int64_t busy_ms;            /* the last time there was a request; 0: none yet */
    bool ended;                 /* it was idle too long, and has ended */
} st_svc_memory;

/* What is measured of all replicas together. */
typedef struct st_svc_figures {
    int64_t requests; /* open now */
    int64_t queue, latency_ms;
    bool told;       /* queue or latency are known and new enough */
    int64_t last_ms; /* the last request came; 0: none since this program started */
} st_svc_figures;

typedef enum st_svc_do {
    ST_SVC_START,  /* one more, of the spec's revision */
    ST_SVC_RETIRE, /* no new requests for it: it is LEAVING from now on */
    ST_SVC_END,    /* end its job */
    ST_SVC_FORGET, /* its job is over */
} st_svc_do;

typedef struct st_svc_action {
    st_svc_do what;
    int64_t serial; /* not of START */
} st_svc_action;

typedef ST_VEC(st_svc_action) st_svc_actions;

/* Adds what is to be done, and keeps what it must remember. Replicas in any order. *ret_next_ms: when to look again though
 * nothing changes; INT64_MAX: no need. */
void st_svc_decide(const st_svc_spec *spec, const st_svc_figures *figures, const st_svc_seen *seen,
                   size_t n, int64_t now_ms, st_svc_memory *memory, st_svc_actions *actions,
                   int64_t *ret_next_ms);

/* A start was refused, or a replica failed. */
void st_svc_failed(const st_svc_spec *spec, int64_t now_ms, st_svc_memory *memory);

/* How many replicas the figures ask for, within min and max; 0: they say nothing. */
int st_svc_wanted(const st_svc_spec *spec, const st_svc_figures *figures, int ready);

#endif
