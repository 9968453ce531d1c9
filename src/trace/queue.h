/*
 * What will happen to jobs by itself, in order of time: a heap of (moment, kind, number of entry).
 * An entry carries the generation its job had; one whose job has moved on since is stale, and its
 * owner skips it. Private to the player of traces.
 */
#ifndef ST_TRACE_QUEUE_H
#define ST_TRACE_QUEUE_H

#include <stdint.h>

#include "base/vec.h"

/* In the order in which they happen at one moment: a job that is through frees its place before
 * anybody is asked to leave. */
typedef enum st_due_kind { ST_DUE_FINISH, ST_DUE_SAVED } st_due_kind;

typedef struct st_due {
    int64_t at_ms;
    st_due_kind kind;
    uint32_t generation;
    uint64_t seq; /* set by st_due_push */
    size_t job;
} st_due;

typedef struct st_due_queue {
    ST_VEC(st_due) heap;
    uint64_t pushed;
} st_due_queue;

void st_due_push(st_due_queue *q, st_due due);
const st_due *st_due_first(const st_due_queue *q); /* NULL: none */
st_due st_due_pop(st_due_queue *q);
void st_due_done(st_due_queue *q);

#endif
