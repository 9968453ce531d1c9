/*
 * Traces: a fleet, a tree of accounts, and jobs with the moment they came and the time they
 * really need. `stint sim trace` plays one through the core, as stintd would, and tells what
 * became of everybody; doc/reference/traces.md describes the formats and every figure.
 *
 *     read or make a trace   trace_read*.c, gen.c    -> st_trace
 *     play it                trace_play.c            -> st_trace_run
 *     count                  trace_stats.c           -> st_run_stats
 *     tell                   trace_report.c (table, JSON, CSV), trace_html.c (a page)
 *
 * A trace knows what the scheduler must not: `run_ms` is how long a job really needs, while the
 * core sees only `limit_ms`, what its owner declared. Playing is deterministic: the same trace
 * and options give the same st_trace_run, but for `seconds` and `peak_kib`.
 */
#ifndef ST_TRACE_TRACE_H
#define ST_TRACE_TRACE_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "core/core.h"

typedef struct st_trace_type {
    const char *name;
    int64_t vram_mib;
    st_board board;
} st_trace_type;

typedef struct st_trace_pool {
    const char *name;
    uint32_t levels;
    int64_t oversub_m;
} st_trace_pool;

typedef struct st_trace_job {
    const char *name;
    int32_t account; /* in st_trace.accounts */
    const char *user;
    int tasks;
    bool split;     /* the tasks are ours: the trace says only how many GPUs it has in all */
    st_shape shape; /* shape.types by st_trace.types; 0: any */
    st_topo topo;
    bool topo_required;
    bool latency_critical;
    int priority;
    int64_t submit_ms; /* from the start of the trace */
    int64_t run_ms;    /* what it really needs; ST_TIME_NEVER: it stays */
    int64_t limit_ms;  /* what its owner declares; ST_TIME_NEVER: nothing */
    st_yield yield;
    bool planned; /* somebody knew of it ahead (st_trace_plan_share) */
} st_trace_job;

/* Texts and the arrays of accounts live in the arena. Jobs are in order of submit_ms. */
typedef struct st_trace {
    st_arena *arena;
    const char *name;
    int64_t epoch_s; /* what 0 is in UTC; 0: the trace does not say */
    ST_VEC(st_trace_type) types;
    ST_VEC(st_trace_pool) pools; /* none: one that allows everything */
    ST_VEC(st_node_spec) nodes;  /* pool is 0 where there are none */
    ST_VEC(st_account_spec) accounts;
    ST_VEC(int64_t) own_m; /* GPU an account has of its own; none: its guarantee */
    ST_VEC(st_trace_job) jobs;
    uint64_t dropped; /* rows that make no job, with the first reason */
    const char *dropped_why;
} st_trace;

st_trace *st_trace_new(const char *name);
void st_trace_free(st_trace *trace);
ST_DEFINE_FREEP(st_trace, st_trace_free)

/* Counts a row that makes no job; the first reason is kept. */
void st_trace_drop(st_trace *trace, const char *fmt, ...) ST_PRINTF(2, 3);

/* Puts the jobs in order of submit_ms; equal ones stay as they are. */
void st_trace_sort(st_trace *trace);

/* Makes every run time `micro` millionths of what it was. */
void st_trace_scale(st_trace *trace, int64_t micro);

/* What users declare: `micro` millionths of the run time, up to the next second; 0: nothing. */
void st_trace_declare(st_trace *trace, int64_t micro);

/* Says of jobs that they were known `lead_ms` before they came: as many, in order, as make up so many thousandths of the GPU
 * time; or those with these names. Only whole GPUs of one type with an end can be. How many there are. */
uint64_t st_trace_plan_share(st_trace *trace, int64_t share_m, int64_t lead_ms);
uint64_t st_trace_plan_named(st_trace *trace, const st_map *names, int64_t lead_ms);

/* Milli-GPU of a job, and of the nodes an account would have were it alone. */
int64_t st_trace_job_gpu_m(const st_trace_job *job);
int64_t st_trace_own_m(const st_trace *trace, int32_t account);

/* ---- playing ------------------------------------------------------------------------ */

/* What a preemption costs. Leaving takes `save` on the devices without progress, coming back
 * `restore`; what is per GiB counts the memory of one of its GPUs, as they save side by side. */
typedef struct st_run_cost {
    int64_t save_ms, restore_ms;                 /* fixed */
    int64_t save_ms_per_gib, restore_ms_per_gib; /* of the VRAM one of its GPUs holds */
} st_run_cost;

/* How jobs that are planned are played. X(id, name, what) */
#define ST_PLANNED_TABLE(X)                                                                   \
    X(ST_PLANNED_BOOKED, "booked", "a booking each, made ahead; what it leaves is lent")      \
    X(ST_PLANNED_FENCED, "fenced", "GPUs are kept from then on, and are idle until it comes") \
    X(ST_PLANNED_JOBS, "jobs", "jobs like all others")
typedef enum st_planned {
#define X(id, name, what) id,
    ST_PLANNED_TABLE(X)
#undef X
        ST_PLANNED_COUNT
} st_planned;

typedef struct st_run_options {
    st_policy policy;
    st_run_cost cost;
    int64_t sample_ms; /* between two samples; 0: a five-hundredth of the trace */
    int64_t tell_ms;   /* how often those who wait are told when they should start; 0: never */
    int64_t until_ms;  /* stop there; ST_TIME_NEVER: when every job has ended */
    st_planned planned;
    int64_t lead_ms; /* of those that are planned */
    /* May be NULL. Called now and then with what is done, of 1000. */
    void (*progress)(void *ctx, int done_m);
    void *ctx;
} st_run_options;

typedef struct st_run_job {
    st_job_state state;
    int64_t start_ms, end_ms; /* ST_UNSET: never */
    int64_t lost_ms;          /* run time thrown away, and time spent saving and restoring */
    int64_t held_ms;          /* on devices in all */
    int32_t preemptions;
    bool refused; /* the core would not have it */
} st_run_job;

/* What a job was told about its start, and what became of it. */
typedef struct st_trace_told {
    uint64_t job; /* of the trace */
    int64_t at_ms, said_ms, lo_ms, hi_ms;
    int seen;        /* how many estimates the interval was learned from; 0: there is none */
    int64_t real_ms; /* ST_UNSET: it did not start */
} st_trace_told;

/* What keeps GPUs free while jobs wait for some: X(id, name, what it means), the first that holds
 * counts (trace_idle.c). */
#define ST_IDLE_TABLE(X)                                                            \
    X(ST_IDLE_TYPE, "type", "of a GPU type that no waiting job takes")              \
    X(ST_IDLE_LIMITS, "limits", "ceilings and limits of those who wait")            \
    X(ST_IDLE_LEAVING, "leaving", "kept for a job until those before it have left") \
    X(ST_IDLE_RESERVED, "reserved", "reserved for a job ahead")                     \
    X(ST_IDLE_TOPOLOGY, "topology", "not in one domain, as the job requires")       \
    X(ST_IDLE_SCATTERED, "scattered", "enough, but in other pieces than are asked") \
    X(ST_IDLE_SIZE, "size", "fewer than the job needs")                             \
    X(ST_IDLE_OTHER, "other", "anything else")
typedef enum st_idle {
#define X(id, name, what) id,
    ST_IDLE_TABLE(X)
#undef X
        ST_IDLE_COUNT
} st_idle;

const char *st_idle_name(st_idle cause);
const char *st_idle_what(st_idle cause);

/* The state at one moment. Shares per account are in st_trace_run.held_m, naccounts to a sample. */
typedef struct st_run_sample {
    int64_t at_ms;
    int64_t capacity_m, allocated_m; /* milli-GPU: there and healthy; given out */
    int64_t stranded_m;              /* of what is free, what a typical job could not use */
    int64_t waiting, waiting_m;      /* jobs in the queue, and the GPU they ask for */
    int64_t running;
    int64_t idle_m[ST_IDLE_COUNT]; /* free while jobs wait for GPUs, by what keeps it so */
} st_run_sample;

/* One account over the whole run, in milli-GPU x ms. */
typedef struct st_run_account {
    int64_t held;     /* what its jobs held */
    int64_t entitled; /* min(what it asked for, floor + fair share of the surplus), integrated */
    int64_t lost;
    uint64_t jobs, preemptions;
    int64_t late_ms_sum; /* Σ of the waiting of its jobs */
} st_run_account;

/* What became of jobs that were planned, and of the others. */
typedef struct st_trace_plans {
    uint64_t planned, made, refused,
        on_time;              /* refused: no booking could be made, it came like others */
    double planned_s, rest_s; /* mean completion, from when it was to come */
    double fenced_gpu_hours;  /* kept and idle until their jobs came */
    char *why;                /* the first refusal */
} st_trace_plans;

typedef struct st_trace_run {
    const st_trace *trace;
    ST_VEC(st_run_job) jobs; /* as in the trace */
    ST_VEC(st_run_sample) samples;
    ST_VEC(int64_t) held_m, entitled_m; /* per sample and account of the trace */
    ST_VEC(st_run_account) accounts;
    ST_VEC(st_trace_told) told; /* in order */
    int64_t end_ms;
    int64_t allocated, capacity; /* milli-GPU x ms, integrated exactly */
    int64_t last_submit_ms;      /* when the last job came ... */
    int64_t allocated_till_then; /* ... and what of `allocated` was before */
    uint64_t refused;            /* jobs the core would not have, with the first reason */
    char *refused_why;
    uint64_t steps, decisions; /* calls of the core; starts, resumes, preemptions, refusals */
    double seconds;            /* inside the core */
    int64_t slowest_hour;      /* with decisions: the one with the fewest a second; -1 none */
    double slowest_per_s;
    size_t peak_kib; /* 0 where it is not known */
    uint64_t hash;   /* of all effects */
    st_trace_plans plans;
} st_trace_run;

int st_trace_play(const st_trace *trace, const st_run_options *options, st_trace_run **ret,
                  st_err *err);
void st_trace_run_free(st_trace_run *run);
ST_DEFINE_FREEP(st_trace_run, st_trace_run_free)

#endif
