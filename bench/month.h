/* A month of a busy fleet, made up from a seed and told to a meter: nodes of 8 GPUs, 300 teams in 10
 * organisations, each team with a floor of a fifth of a percent of the fleet.
 *
 * Jobs are one to eight whole GPUs, or shares of a GPU that three and more of them crowd; they run for a minute to 29 hours, one in
 * ten changes between guaranteed and burstable on the way, each has telemetry at every
 * cut and at its end (one in ten: behind it), and their real ends lie half a second back when they become known. */
#ifndef ST_BENCH_MONTH_H
#define ST_BENCH_MONTH_H

#include "base/rng.h"
#include "meter/meter.h"

#define MONTH_DEVS  8
#define MONTH_ORGS  10
#define MONTH_TEAMS 300
#define MONTH_JOBS  900000
#define MONTH_DAY   INT64_C(86400000)
#define MONTH_DAYS  30
#define MONTH_LIMIT (2 * MONTH_DAY)
#define MONTH_LONG  (MONTH_DAY * 6 / 5) /* no job runs longer */

typedef struct month_place month_place;

typedef struct month_event {
    int64_t at_ms;
    uint32_t job;
    uint8_t what;
} month_event;

/* Who listens. Records are good until the next call. */
typedef struct month_ears {
    void (*record)(void *ctx, const st_record *rec, int64_t now);
    void (*begins)(void *ctx, const st_job *job, int64_t now); /* before it does; may be NULL */
    void (*ends)(void *ctx, uint64_t job, int32_t account,
                 int64_t now); /* after it did; likewise */
    void *ctx;
} month_ears;

typedef struct month {
    int64_t from_ms;
    int32_t nodes;
    uint32_t jobs, next;
    month_ears ears;
    st_meter *m;
    st_tree *tree;
    st_fleet *fleet;
    st_rng rng;
    month_place *places;
    st_grant *grant;   /* by job */
    uint8_t *gpus;     /* by job; 0: a share */
    int64_t *start_ms; /* by job */
    ST_VEC(month_event) heap;
    st_records out;
    int64_t refused; /* found no room */
} month;

/* Nodes are as many as such a number of jobs keeps busy: 6,250 for 900,000. Organisations are the accounts 1 to 10, teams
 * those after them. */
void month_begin(month *w, uint32_t jobs, int64_t from_ms, const month_ears *ears);
void month_done(month *w);
/* All that happens before a moment. */
void month_until(month *w, int64_t at_ms);
/* Ends all intervals there. */
void month_cut(month *w, int64_t at_ms);
int32_t month_account_of(uint32_t job);

#endif
