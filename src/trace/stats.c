/*
 * The figures of trace/stats.h.
 */
#include "trace/stats.h"

#include <math.h>

#include "base/mem.h"

#define GPU_HOUR (1000.0 * 3600 * 1000) /* in milli-GPU x ms */

static int by_value(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;

    return *a < *b ? -1 : *a > *b;
}

static int64_t nearest_rank(const int64_t *sorted, size_t n, size_t percent)
{
    size_t rank = (n * percent + 99) / 100;

    return sorted[ST_MAX(rank, 1) - 1];
}

void st_spread_of(int64_t *values, size_t n, st_spread *ret)
{
    double sum = 0;

    *ret = (st_spread){.n = n};
    if (n == 0)
        return;
    qsort(values, n, sizeof(*values), by_value);
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i];
    ret->mean = sum / (double)n;
    ret->p50 = nearest_rank(values, n, 50);
    ret->p90 = nearest_rank(values, n, 90);
    ret->p99 = nearest_rank(values, n, 99);
    ret->max = values[n - 1];
}

double st_jain(const double *x, size_t n)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

double st_run_ratio(const st_trace_run *run, int32_t account)
{
    const st_run_account *a = &run->accounts.v[account];

    return a->entitled > 0 ? (double)a->held / (double)a->entitled : (double)NAN;
}

static void count_jobs(const st_trace_run *run, st_run_stats *s)
{
    size_t n = run->jobs.n, waits = 0, ends = 0;
    ST_CLEANUP(st_freep) int64_t *wait = st_xcalloc(n + 1, sizeof(*wait));
    ST_CLEANUP(st_freep) int64_t *end = st_xcalloc(n + 1, sizeof(*end));

    s->jobs = n;
    for (size_t i = 0; i < n; i++) {
        const st_run_job *job = &run->jobs.v[i];
        int64_t submit_ms = run->trace->jobs.v[i].submit_ms;

        s->refused += job->refused;
        s->done += job->state == ST_JOB_DONE;
        s->timeout += job->state == ST_JOB_TIMEOUT;
        s->cancelled += !job->refused && job->state == ST_JOB_CANCELLED;
        s->unfinished += !job->refused && job->end_ms == ST_UNSET;
        s->preemptions += (uint64_t)job->preemptions;
        s->preempted_jobs += job->preemptions > 0;
        if (job->start_ms != ST_UNSET)
            wait[waits++] = job->start_ms - submit_ms;
        if (job->state == ST_JOB_DONE || job->state == ST_JOB_TIMEOUT)
            end[ends++] = job->end_ms - submit_ms;
    }
    st_spread_of(wait, waits, &s->queueing);
    st_spread_of(end, ends, &s->completion);
}

static void count_accounts(const st_trace_run *run, st_run_stats *s)
{
    ST_CLEANUP(st_freep) double *ratios = st_xcalloc(run->accounts.n + 1, sizeof(*ratios));
    size_t n = 0;
    double lost = 0;

    s->worst = -1;
    for (size_t i = 0; i < run->accounts.n; i++) {
        double ratio = st_run_ratio(run, (int32_t)i);

        lost += (double)run->accounts.v[i].lost;
        if (isnan(ratio))
            continue;
        if (n == 0 || ratio < s->worst_ratio) {
            s->worst = (int32_t)i;
            s->worst_ratio = ratio;
        }
        ratios[n++] = ratio;
    }
    s->jain = st_jain(ratios, n);
    s->lost_gpu_hours = lost / GPU_HOUR;
}

/* Free beside a queue, while jobs come. */
static void count_idle(const st_trace_run *run, st_run_stats *s)
{
    double offered = 0;

    for (size_t i = 0; i < run->samples.n; i++) {
        const st_run_sample *sample = &run->samples.v[i];

        if (sample->at_ms > run->last_submit_ms)
            break;
        offered += (double)sample->capacity_m;
        for (int c = 0; c < ST_IDLE_COUNT; c++)
            s->idle[c] += (double)sample->idle_m[c];
    }
    for (int c = 0; c < ST_IDLE_COUNT; c++) {
        s->idle[c] = offered > 0 ? s->idle[c] / offered : 0;
        s->idle_all += s->idle[c];
    }
}

void st_run_stats_of(const st_trace_run *run, st_run_stats *ret)
{
    st_run_stats s = {0};
    double capacity = (double)run->capacity, stranded = 0, offered = 0;

    count_jobs(run, &s);
    count_accounts(run, &s);
    count_idle(run, &s);
    s.allocated_gpu_hours = (double)run->allocated / GPU_HOUR;
    if (capacity > 0) {
        double rate = capacity / (double)run->end_ms;

        s.allocation = (double)run->allocated / capacity;
        s.utilisation = s.allocation - s.lost_gpu_hours * GPU_HOUR / capacity;
        if (run->last_submit_ms > 0)
            s.allocation_arriving =
                (double)run->allocated_till_then / (rate * (double)run->last_submit_ms);
    }
    for (size_t i = 0; i < run->samples.n; i++) {
        stranded += (double)run->samples.v[i].stranded_m;
        offered += (double)run->samples.v[i].capacity_m;
    }
    s.stranded = offered > 0 ? stranded / offered : 0;
    s.decisions_per_s = run->seconds > 0 ? (double)run->decisions / run->seconds : 0;
    *ret = s;
}
