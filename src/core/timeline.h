/* What is to come, as far as it is known: the play that start estimates are read from (estimate.c), kept, so that many
 * questions are answered from one play.
 *
 * A job that is not in it, because it came later or is only thought of, changes nothing before its own start. So its
 * start is found by going through the play once more and asking at each moment whether the job would be let in by
 * then: whole GPUs, CPU and RAM exactly, slices and shares as if they needed a GPU that is otherwise empty. That takes
 * about a millisecond where the play itself takes a second. */
#ifndef ST_CORE_TIMELINE_H
#define ST_CORE_TIMELINE_H

#include "core/core.h"

typedef struct st_timeline st_timeline;

/* Plays what is to come for a copy of the core. */
int st_core_timeline(const st_core *core, st_timeline **ret, st_err *err);
void st_timeline_free(st_timeline *tl);
ST_DEFINE_FREEP(st_timeline, st_timeline_free)

/* The estimates of all who waited, as st_core_estimate has them. */
const st_estimates *st_timeline_list(const st_timeline *tl);
/* Of one job; false: it did not wait then. */
bool st_timeline_find(const st_timeline *tl, uint64_t job, st_estimate *ret);
/* Of a job that is not in it but waits in `core`, which is the same cluster not much later, or a copy of it. */
void st_timeline_probe(const st_timeline *tl, st_core *core, uint64_t job, st_estimate *ret);

#endif
