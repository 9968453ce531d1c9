/*
 * Counting what became of everybody in a run (trace/trace.h). doc/reference/traces.md defines every figure.
 */
#ifndef ST_TRACE_STATS_H
#define ST_TRACE_STATS_H

#include "trace/trace.h"

/* Of some durations, in ms; all 0 when there are none. Percentiles are nearest-rank: the smallest
 * value that at least so many per cent do not exceed. */
typedef struct st_spread {
    uint64_t n;
    double mean;
    int64_t p50, p90, p99, max;
} st_spread;

/* Sorts the values. */
void st_spread_of(int64_t *values, size_t n, st_spread *ret);

typedef struct st_run_stats {
    uint64_t jobs, done, timeout, cancelled, refused, unfinished;
    st_spread queueing;   /* submit to first start, of jobs that started */
    st_spread completion; /* submit to end, of jobs that ran to their end or their limit */
    double allocation, allocation_arriving; /* of capacity, to the end and to the last submit */
    double utilisation;                     /* of capacity, to the end, without what was lost */
    double lost_gpu_hours, allocated_gpu_hours;
    uint64_t preemptions, preempted_jobs;
    double jain;   /* of held / entitled over accounts entitled to anything; 1: all alike */
    int32_t worst; /* the account with the least of it, -1: none is entitled */
    double worst_ratio;
    double decisions_per_s;
    double stranded;                      /* mean over samples, of capacity */
    double idle[ST_IDLE_COUNT], idle_all; /* the same, until the last submit */
} st_run_stats;

/* What became of estimates. */
typedef struct st_told_stats {
    uint64_t told, early;                 /* of jobs that started; said too early */
    uint64_t with_interval, below, above; /* there was one; it started before it, after it */
    int64_t error_ms, error_p90_ms;       /* |said - real|, p50 and p90 */
    double part;                          /* p50 of that over what was left to wait */
} st_told_stats;

void st_run_told_stats(const st_trace_run *run, st_told_stats *ret);

void st_run_stats_of(const st_trace_run *run, st_run_stats *ret);

/* What an account held of what it was entitled to; NAN where that is nothing. */
double st_run_ratio(const st_trace_run *run, int32_t account);

/* (Σx)² / (n Σx²); 1 for no values. */
double st_jain(const double *x, size_t n);

#endif
