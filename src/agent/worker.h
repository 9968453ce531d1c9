/*
 * What may take long, or touches what a tenant has made, is done by a worker: a forked child that does
 * one thing, says how it went, and ends. It has a time limit, after which it is killed; it dies with the
 * agent; and nothing of the agent is open in it. So no start, unpacking or removal holds up the acting
 * thread, and none outlives who asked for it.
 */
#ifndef ST_AGENT_WORKER_H
#define ST_AGENT_WORKER_H

#include "agent/plan.h"
#include "agent/poll.h"
#include "base/err.h"

typedef struct st_workers st_workers;

/* In the child, with all memory as it was when it was asked for. */
typedef int (*st_work_fn)(void *ctx, st_err *err);
/* In the agent, from st_workers_turn: what the work returned, or that it came to no end. */
typedef void (*st_worked_fn)(void *ctx, const st_task_key *key, int r, const st_err *err);

typedef struct st_agent_work {
    const char *what; /* for messages; static text */
    int64_t limit_ms;
    bool aside; /* it has no say in how many others begin */
    st_work_fn fn;
    void *ctx; /* needed until st_worker_start returns, for the child has a copy */
    st_worked_fn done;
    void *done_ctx;
    st_task_key key; /* whom it is for */
} st_agent_work;

st_workers *st_workers_new(st_poll *poll);
/* Kills those that are at work. */
void st_workers_free(st_workers *w);
ST_DEFINE_FREEP(st_workers, st_workers_free)

/* How many are at work, but for those that have taken longer than `young_ms`: a few that hang must not
 * keep everybody else waiting. */
int st_workers_busy(const st_workers *w, int64_t young_ms);
#define ST_WORKERS_MAX 256 /* that hang or not */

int st_worker_start(st_workers *w, const st_agent_work *work, int *ret_id, st_err *err);
/* Kills it; `done` is still called. */
void st_worker_kill(st_workers *w, int id);

/* Calls `done` of those that have ended; kills those whose time is over. Returns when to come again, on
 * the boot clock. */
int64_t st_workers_turn(st_workers *w);

#endif
