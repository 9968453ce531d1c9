/*
 * What all readers of traces share (trace/trace.h): a trace's life, and what is done to all its jobs.
 */
#include "trace/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define MICRO INT64_C(1000000)

st_trace *st_trace_new(const char *name)
{
    st_trace *trace = st_xcalloc(1, sizeof(*trace));

    trace->arena = st_arena_new();
    trace->name = st_arena_strdup(trace->arena, name);
    return trace;
}

void st_trace_free(st_trace *trace)
{
    if (!trace)
        return;
    st_vec_free(&trace->types);
    st_vec_free(&trace->pools);
    st_vec_free(&trace->nodes);
    st_vec_free(&trace->accounts);
    st_vec_free(&trace->own_m);
    st_vec_free(&trace->jobs);
    st_arena_free(trace->arena);
    free(trace);
}

void st_trace_drop(st_trace *trace, const char *fmt, ...)
{
    char why[300];
    va_list args;

    if (trace->dropped++ > 0)
        return;
    va_start(args, fmt);
    vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    trace->dropped_why = st_arena_strdup(trace->arena, why);
}

/* ---- order ----------------------------------------------------------------------------- */

typedef struct sort_key {
    int64_t submit_ms;
    size_t at;
} sort_key;

static int by_submit(const void *pa, const void *pb)
{
    const sort_key *a = pa, *b = pb;

    if (a->submit_ms != b->submit_ms)
        return a->submit_ms < b->submit_ms ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

void st_trace_sort(st_trace *trace)
{
    size_t n = trace->jobs.n;
    ST_CLEANUP(st_freep) sort_key *keys = st_xcalloc(n + 1, sizeof(*keys));
    st_trace_job *sorted = st_xcalloc(n + 1, sizeof(*sorted));

    for (size_t i = 0; i < n; i++)
        keys[i] = (sort_key){trace->jobs.v[i].submit_ms, i};
    qsort(keys, n, sizeof(*keys), by_submit);
    for (size_t i = 0; i < n; i++)
        sorted[i] = trace->jobs.v[keys[i].at];
    st_vec_free(&trace->jobs);
    trace->jobs.v = sorted;
    trace->jobs.n = n;
    trace->jobs.cap = n + 1;
}

/* ---- times ------------------------------------------------------------------------------ */

/* At most the longest duration there is. */
static int64_t times_micro(int64_t ms, int64_t micro)
{
    st_i128 product = ((st_i128)ms * micro + MICRO / 2) / MICRO;

    return (int64_t)ST_MIN(product, ST_DURATION_MAX_MS);
}

void st_trace_scale(st_trace *trace, int64_t micro)
{
    for (size_t i = 0; i < trace->jobs.n; i++) {
        st_trace_job *job = &trace->jobs.v[i];

        if (job->run_ms != ST_TIME_NEVER)
            job->run_ms = ST_MAX(times_micro(job->run_ms, micro), 1);
    }
}

void st_trace_declare(st_trace *trace, int64_t micro)
{
    for (size_t i = 0; i < trace->jobs.n; i++) {
        st_trace_job *job = &trace->jobs.v[i];

        if (micro == 0 || job->run_ms == ST_TIME_NEVER)
            job->limit_ms = ST_TIME_NEVER;
        else
            job->limit_ms = ST_MAX((times_micro(job->run_ms, micro) + 999) / 1000, 1) * 1000;
    }
}

/* ---- amounts ----------------------------------------------------------------------------- */

int64_t st_trace_job_gpu_m(const st_trace_job *job)
{
    return st_shape_gpu_m(&job->shape) * job->tasks;
}

int64_t st_trace_own_m(const st_trace *trace, int32_t account)
{
    if (trace->own_m.n > 0)
        return trace->own_m.v[account];
    return st_quota_gpu_m(&trace->accounts.v[account].guarantee);
}
