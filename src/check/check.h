/*
 * The invariants of the core (core/core.h), checked from outside.
 *
 * st_check looks at one state; st_watch follows a run through its effects and knows what was
 * there before. Both build their own picture from jobs, grants and the specs of nodes and
 * accounts, with none of the core's bookkeeping (check/room.h, check/quota.h), and
 * then compare the core's counters with it. They return 0, or -ST_EINTERNAL and a sentence
 * that names the invariant, the job or node, and the numbers.
 */
#ifndef ST_CHECK_CHECK_H
#define ST_CHECK_CHECK_H

#include "core/core.h"

/* Everything that must hold between two steps. */
int st_check(const st_core *core, st_err *err);

/* A run, as its effects tell it. */
typedef struct st_watch st_watch;

/* Begins with a core that has no jobs. */
st_watch *st_watch_new(const st_core *core);
void st_watch_free(st_watch *watch);
ST_DEFINE_FREEP(st_watch, st_watch_free)

/* One step was taken: these events were applied to `core` at its present time, those that
 * were refused left out, and had these effects. */
int st_watch_step(st_watch *watch, const st_core *core, const st_event *const *events,
                  size_t nevents, const st_effects *fx, st_err *err);

/* Whether anybody waits who could start, and whether everybody who waits is told why, and
 * truly. With `every` above 1 only one in so many of them is looked at, others with each `turn`. Asks the
 * core for its reasons, so it may not be called in the middle of a step. */
int st_watch_waiting(st_watch *watch, st_core *core, int every, int64_t turn, st_err *err);

/* Whether the job could ever start if it were alone in a fleet with every node ready. */
bool st_check_could_ever(const st_core *core, const st_job *job);

typedef struct st_watch_counts {
    int64_t starts, preemptions;
} st_watch_counts;

st_watch_counts st_watch_counted(const st_watch *watch);

#endif
