/* The job's tables and arithmetic. */
#include "model/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "model/types.h"

static const char *const state_names[] = {
#define X(id, name, about) [id] = name,
    ST_JOB_STATE_TABLE(X)
#undef X
};
static const char *const yield_names[] = {
#define X(id, name, about) [id] = name,
    ST_YIELD_TABLE(X)
#undef X
};
static const char *const class_names[] = {"none", "guaranteed", "burstable", "booked"};

#define BIT(s) (1u << (s))
#define ENDS   (BIT(ST_JOB_DONE) | BIT(ST_JOB_FAILED) | BIT(ST_JOB_TIMEOUT) | BIT(ST_JOB_CANCELLED))

/* Row: from; bits: where it may go. A lost node sends any placed job back to PENDING. */
static const unsigned moves[ST_JOB_STATE_COUNT] = {
    [ST_JOB_PENDING] = /* it may turn out to have ended before it came back here */
    BIT(ST_JOB_RUNNING) | ENDS,
    [ST_JOB_RUNNING] = BIT(ST_JOB_NOTIFIED) | BIT(ST_JOB_STOPPING) | BIT(ST_JOB_PENDING) | ENDS,
    [ST_JOB_NOTIFIED] = BIT(ST_JOB_RUNNING) | BIT(ST_JOB_CHECKPOINTING) | BIT(ST_JOB_STOPPING) |
                        BIT(ST_JOB_PENDING) | ENDS,
    [ST_JOB_CHECKPOINTING] = BIT(ST_JOB_PAUSED) | BIT(ST_JOB_STOPPING) | BIT(ST_JOB_PENDING) | ENDS,
    [ST_JOB_PAUSED] = BIT(ST_JOB_RUNNING) | BIT(ST_JOB_PENDING) | BIT(ST_JOB_FAILED) |
                      BIT(ST_JOB_CANCELLED) | BIT(ST_JOB_TIMEOUT), /* it fails with its node */
    [ST_JOB_STOPPING] = BIT(ST_JOB_PENDING) | ENDS,
};

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *st_job_state_name(st_job_state state)
{
    ST_ASSERT(state < ST_JOB_STATE_COUNT);
    return state_names[state];
}

const char *st_class_name(st_class class)
{
    ST_ASSERT(class < ST_CLASS_COUNT);
    return class_names[class];
}

const char *st_yield_name(st_yield yield)
{
    ST_ASSERT(yield < ST_YIELD_COUNT);
    return yield_names[yield];
}

const char *st_after_name(st_after_how how)
{
    static const char *const names[] = {
#define X(id, name, about) [id] = name,
        ST_AFTER_TABLE(X)
#undef X
    };
    ST_ASSERT(how < ST_AFTER_COUNT);
    return names[how];
}

const char *st_need_name(uint32_t needs)
{
    int bit = __builtin_ctz(needs);

    return bit < ST_NEED_WAY_SHIFT ? st_allow_name((st_allow)bit)
                                   : st_yield_name((st_yield)(bit - ST_NEED_WAY_SHIFT));
}

int st_job_state_parse(const char *name)
{
    return find(state_names, ST_JOB_STATE_COUNT, name);
}

bool st_job_may_move(st_job_state from, st_job_state to)
{
    ST_ASSERT(from < ST_JOB_STATE_COUNT && to < ST_JOB_STATE_COUNT);
    return moves[from] & BIT(to);
}

void st_job_move(st_job *job, st_job_state to)
{
    ST_ASSERT(st_job_may_move(job->state, to));
    job->state = to;
}

void st_job_free(st_job *job)
{
    if (!job)
        return;
    free(job->name);
    free(job->grants);
    free(job->to);
    free(job->afters);
    free(job);
}

bool st_job_on_devices(const st_job *job)
{
    return job->state == ST_JOB_RUNNING || st_job_leaving(job);
}

bool st_job_leaving(const st_job *job)
{
    return job->state == ST_JOB_NOTIFIED || job->state == ST_JOB_CHECKPOINTING ||
           job->state == ST_JOB_STOPPING;
}

bool st_job_ended(const st_job *job)
{
    return BIT(job->state) & ENDS;
}

int64_t st_shape_gpu_m(const st_shape *shape)
{
    if (shape->gpus == 0)
        return 0;
    switch (shape->level) {
    case ST_LEVEL_WHOLE:
        return (int64_t)shape->gpus * ST_WHOLE_M;
    case ST_LEVEL_MIG:
        return st_mig_charge_m(shape->profile);
    default:
        return shape->share_m;
    }
}

int64_t st_job_gpu_m(const st_job *job)
{
    return st_shape_gpu_m(&job->shape) * job->tasks;
}

int64_t st_job_cpu_m(const st_job *job)
{
    return job->shape.cpu_m * job->tasks;
}

int64_t st_job_ram_mib(const st_job *job)
{
    return job->shape.ram_mib * job->tasks;
}

int64_t st_job_unsaved_ms(const st_job *job, int64_t now)
{
    if (job->state == ST_JOB_STOPPING)
        now = ST_MIN(now, ST_MAX(job->stop_ms, job->mark_ms));
    return st_job_on_devices(job) ? now - job->mark_ms : job->kept_ms;
}

int64_t st_job_ran_ms(const st_job *job, int64_t now)
{
    return job->saved_ms + st_job_unsaved_ms(job, now);
}

int64_t st_job_served_ms(const st_job *job, int64_t now)
{
    return job->served_ms + (st_job_on_devices(job) ? now - job->start_ms : 0);
}

int64_t st_job_end_ms(const st_job *job, int64_t now)
{
    if (job->state == ST_JOB_STOPPING)
        return ST_TIME_NEVER;
    int64_t end_ms = job->end_by_ms ? job->end_by_ms : ST_TIME_NEVER;
    if (job->limit_ms == ST_TIME_NEVER)
        return end_ms;
    int64_t from = st_job_on_devices(job) ? job->mark_ms : now - job->kept_ms;
    return ST_MIN(end_ms, from + ST_MAX(job->limit_ms - job->saved_ms, 0));
}
