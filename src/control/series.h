/*
 * Figures over time (series/series.h), gathered beside the loop.
 *
 * A thread of its own looks at the committed state (control/follower.h) a few times in each bucket and takes what engines
 * have measured. When a bucket is over its rows are packed, and one command of the loop writes them. Wider buckets are
 * made of the narrow ones in the store, so that a restart loses none; what is too old is removed with them.
 *
 * Invariants:
 *  1 Every moment is counted once: a look stands for the time since the one before it, in the bucket that time was in.
 *  2 Time in which nobody could look (stintd was down, the machine slept) is no figure of 0: it is not counted at all.
 *  3 A bucket that is there already, from before a restart, is added to. Narrow ones are removed only after the wide one
 *    that they are in was made.
 *  4 The loop's part is to write rows that are packed. Nothing that is asked of series reaches it.
 */
#ifndef ST_CONTROL_SERIES_H
#define ST_CONTROL_SERIES_H

#include "control/control.h"
#include "series/series.h"

int64_t st_series_width(int64_t step_ms, int tier);

const st_series_options *st_control_series(const st_control *ctl);

/* For those who time it themselves, tests and benchmarks: a gatherer without its thread. */
typedef struct st_gatherer st_gatherer;
int st_gatherer_new(st_control *ctl, const st_series_options *o, st_gatherer **ret, st_err *err);
/* One look. When a bucket is over it is written, wider ones are made and old ones removed. */
int st_gatherer_look(st_gatherer *g, st_err *err);
/* Writes what there is of the bucket that is not over. */
int st_gatherer_flush(st_gatherer *g, st_err *err);
void st_gatherer_free(st_gatherer *g);
ST_DEFINE_FREEP(st_gatherer, st_gatherer_free)

/* The thread: after the follower, and before it is stopped. */
int st_series_start(st_control *ctl, st_err *err);
void st_series_stop(st_control *ctl);

#endif
