/* What became of jobs since this stintd started, by account: for metrics, and for nothing else.
 *
 * The control loop adds after each commit; metrics are read from any thread, so there is a lock of its own. Counts are of
 * an account alone, not of those below it, so that they can be added up. A restart begins at 0, as counters of
 * Prometheus may. */
#ifndef ST_STATE_TALLY_H
#define ST_STATE_TALLY_H

#include "core/core.h"

/* Upper bounds of waits in seconds; above the last one there is one more. */
#define ST_TALLY_BOUNDS                                                             \
    {                                                                               \
        1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600 \
    }
#define ST_TALLY_BUCKETS 11
#define ST_TALLY_CLASSES ST_CLASS_COUNT

typedef struct st_job_counts {
    uint64_t ended[ST_JOB_STATE_COUNT]; /* by the state they ended in */
    uint64_t preempted;                 /* times that a job had to leave for another */
    uint64_t requeued;      /* ... or for another reason: its node, or it could not be started */
    uint64_t slowed, slows; /* times that a neighbour was found to slow a job, and the other way */
    struct {
        uint64_t count[ST_TALLY_BUCKETS + 1];
        uint64_t sum_ms;
    } wait[ST_TALLY_CLASSES]; /* from the submit, or from when it waited again, to the start */
} st_job_counts;

typedef struct st_tallies st_tallies;

st_tallies *st_tallies_new(void);
void st_tallies_free(st_tallies *t);

/* One effect about a job of `account`, that had waited since queued_ms. */
void st_tallies_add(st_tallies *t, int32_t account, const st_effect *fx, int64_t queued_ms);

/* A job of `account` was found to be slowed by a neighbour, or to slow one. */
void st_tallies_neighbour(st_tallies *t, int32_t account, bool slows);

/* What one account has; adds to *ret. */
void st_tallies_get(st_tallies *t, int32_t account, st_job_counts *ret);

#endif
