/*
 * Notices from the folders of tasks, so that nobody has to look at each of them again and again: a
 * record was written, output was, or the supervisor has gone (agent/exec.h says which folders).
 *
 * Where the kernel gives no more watches, `st_notice_watch` says so, and the task is looked at by the
 * clock.
 */
#ifndef ST_AGENT_NOTICE_H
#define ST_AGENT_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/poll.h"

typedef struct st_notices st_notices;

typedef enum st_notice_kind {
    ST_NOTICE_RECORD, /* of a task's folder */
    ST_NOTICE_OUTPUT, /* of its logs */
    ST_NOTICE_ALL,    /* some were lost: anything may have changed */
} st_notice_kind;

typedef void (*st_notice_fn)(void *ctx, st_notice_kind kind, int watch);

/* NULL where there is no such thing. Several nodes may have one each in one place to wait. */
st_notices *st_notices_new(st_poll *poll);
void st_notices_free(st_notices *n);

/* The number of a watch, greater than 0; 0: there is none. */
int st_notice_watch(st_notices *n, const char *path, st_notice_kind kind);
void st_notice_forget(st_notices *n, int watch);

/* Whether there are any; and hands them over. */
bool st_notices_ready(const st_notices *n);
void st_notices_take(st_notices *n, st_notice_fn fn, void *ctx);

#endif
