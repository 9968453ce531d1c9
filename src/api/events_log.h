/*
 * Events of the past, in files beside the store: what streams told, for those who ask later, also after a start of stintd.
 *
 * A folder has segments of a few MiB, one line an event, called by their numbers. The newest is written to, the oldest are removed when
 * they are older than is asked or all together have more than ST_EVENTS_BYTES. An organisation adds ST_EVENTS_BURST bytes at once and as
 * many a day: what is more is not kept, so that no tenant pushes out what others look for.
 *
 * Invariants:
 *  1 One thread adds (the control loop's); any thread reads, from descriptors of its own. Who adds never waits for who reads.
 *  2 A line is whole or it is not there: what a crash has cut off is marked as none before the next one.
 *  3 A reading is bounded by ST_EVENTS_SCAN bytes; it says where to go on.
 *
 * What is in there is a record and not the truth: it is written after the commit and not synced.
 */
#ifndef ST_API_EVENTS_LOG_H
#define ST_API_EVENTS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_EVENTS_SEGMENT (INT64_C(4) << 20)
#define ST_EVENTS_BYTES   (INT64_C(256) << 20)
#define ST_EVENTS_SCAN    (INT64_C(16) << 20)
#define ST_EVENTS_BURST   (INT64_C(2) << 20) /* of an organisation, and a day */

typedef struct st_events_log st_events_log;

/* One event; texts are the log's, good while it is told. */
typedef struct st_logged_event {
    uint64_t seq, job;
    int64_t run; /* which start of stintd numbered it */
    int64_t at_ms;
    int64_t serial; /* of the account, whoever has the name now */
    int32_t org;    /* who pays for it; 0: the cluster, without limit. Not told */
    bool admins;    /* for nobody else */
    const char *kind, *account, *node, *text;
} st_logged_event;

/* `dir` is made when the first one comes; keep_ms 0: as long as there is room. */
st_events_log *st_events_log_new(const char *dir, int64_t keep_ms, int64_t run);
void st_events_log_free(st_events_log *log);
/* `text` is one line of JSON. What cannot be written is not there later; nobody is held up by it. */
void st_events_log_add(st_events_log *log, const st_logged_event *e);
int64_t st_events_log_run(const st_events_log *log);

/* Tells events, the newest first, from behind `*position` (0: from the newest of all) until fn says 1, one is older than since_ms, or
 * enough was read. *position is then where to go on, 0: there is nothing more. ST_EINVAL: nobody was given that position. */
typedef int st_logged_fn(void *ctx, const st_logged_event *e, int64_t position);
int st_events_log_read(const st_events_log *log, int64_t since_ms, int64_t *position,
                       st_logged_fn *fn, void *ctx, st_err *err);

#endif
