/*
 * A made-up fleet with a made-up workload, for those who have no trace of their own at hand or
 * want one ten times as large: `stint sim gen`.
 *
 * What it imitates: gangs that train for hours or days on whole nodes and make up most of the GPU
 * time; a crowd of small jobs that make up most of the queue (sweeps in arrays, many of them in
 * the days before a deadline; fine-tuning; debugging); notebooks on shares of a GPU in office
 * hours; services that stay. Few users submit most jobs, declared limits are round and mostly far
 * too long, days and weeks have their rhythm, team sizes have a heavy tail.
 *
 * Promises, kept for every seed and tested:
 *  1 The same options give the same trace, on every machine.
 *  2 The guarantees add up to 80 to 90 per cent of the fleet, parents' to their children's.
 *  3 Σ GPUs x run time of all jobs is `load_pct` of the fleet over `days`, within 2 per cent.
 *  4 Every job fits the empty fleet, and its limit, if it has one, is longer than its run time.
 *
 * The small jobs are drawn as they are known to be; the gangs get what remains of the load. Where
 * the small jobs alone would be more than their part, all of them are shortened.
 */
#ifndef ST_GEN_GEN_H
#define ST_GEN_GEN_H

#include <stdio.h>

#include "trace/trace.h"

/* X(id, word, per mille of the jobs); the word begins the names of its jobs. */
#define ST_GEN_KIND_TABLE(X)            \
    X(ST_GEN_TRAIN, "train", 60)        \
    X(ST_GEN_TUNE, "tune", 110)         \
    X(ST_GEN_SWEEP, "sweep", 330)       \
    X(ST_GEN_DEBUG, "debug", 280)       \
    X(ST_GEN_NOTEBOOK, "notebook", 150) \
    X(ST_GEN_SERVE, "serve", 70)
typedef enum st_gen_kind {
#define X(id, word, part) id,
    ST_GEN_KIND_TABLE(X)
#undef X
        ST_GEN_KIND_COUNT
} st_gen_kind;

#define ST_GEN_GPUS_MAX  2000000
#define ST_GEN_TEAMS_MAX 20000
#define ST_GEN_USERS_MAX 1000000
#define ST_GEN_JOBS_MAX  10000000
#define ST_GEN_DAYS_MAX  365
#define ST_GEN_LOAD_MAX  1000

typedef struct st_gen_options {
    int64_t gpus; /* rounded down to nodes of eight */
    int64_t teams, users, jobs;
    uint64_t seed;
    int64_t days;
    int64_t load_pct;
} st_gen_options;

/* 1024 GPUs, 24 teams, 200 users, 5000 jobs, a week at 95 per cent. */
st_gen_options st_gen_options_default(void);

/* Fails with ST_ERANGE when so many jobs cannot make that load. */
int st_gen_trace(const st_gen_options *o, st_trace **ret, st_err *err);

/* What a job of a made trace is, from its name; and what that is called. */
st_gen_kind st_gen_kind_of(const st_trace_job *job);
const char *st_gen_kind_name(st_gen_kind kind);

/* A made trace as files: the fleet and the accounts as a scenario document without a timeline
 * (doc/reference/scenarios.md), the jobs as CSV. The caller looks at ferror. */
void st_gen_write_world(const st_trace *trace, FILE *out);
void st_gen_write_jobs(const st_trace *trace, FILE *out);

#endif
