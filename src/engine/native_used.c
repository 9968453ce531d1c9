/*
 * What agents say their tasks used, handed on to the control loop (ST_REPORT_USED).
 *
 * A status has it every few seconds; a report goes out twice a minute per task, and when a task has
 * left, before the report that its job has ended. An agent repeats what it says of a task that is
 * off its list until that was answered.
 *
 * Every figure passes the gate of model/said.h first: nothing that cannot be is handed on.
 */
#include <stdio.h>

#include "engine/native_state.h"

static bool left(const st_agent_task *said)
{
    return said->state != ST_TASK_STARTING && said->state != ST_TASK_RUNNING;
}

/* Memory that a driver keeps back is the agent's to count or not: a part of it is forgiven. */
#define VRAM_MORE 16

void st_native_bounds(const native_job *job, int task, int64_t now, st_bounds *ret)
{
    bool slice = job->shape.level == ST_LEVEL_MIG;

    *ret = (st_bounds){.devs = __builtin_popcount(job->task[task].grant.devs),
                       .time_ms = job->ran_ms + ST_MAX(now - job->at_ms, 0),
                       .watts = job->watts,
                       .part_m = ST_WHOLE_M,
                       .vram_mib = job->vram_mib + job->vram_mib / VRAM_MORE};
    if (slice)
        ret->part_m =
            (ST_WHOLE_M * st_mig_compute(job->shape.profile) + ST_MIG_COMPUTE - 1) / ST_MIG_COMPUTE;
}

static void tell(native *e, const st_agent_task *said, const st_used *used, bool last)
{
    const st_report r = {.kind = ST_REPORT_USED,
                         .job = said->job,
                         .stay = said->stay,
                         .task = said->task,
                         .last = last,
                         .used = *used,
                         .scrub = said->scrub};

    st_vec_push(&e->reports, r);
}

/* The gate. What was said before is never taken back. */
static void bound(native *e, native_node *node, const st_agent_task *said, const st_bounds *b,
                  const st_used *before, st_used *ret, int64_t now)
{
    char job[ST_NATIVE_NAME] = "", why[200];
    uint32_t bad;

    *ret = said->used;
    bad = st_said_used(b, before, ret);
    if (bad == 0)
        return;
    st_used_kind kind = (st_used_kind)__builtin_ctz(bad);
    e->opt.name(e->opt.ctx, said->job, job);
    snprintf(why, sizeof why,
             "it said %s %lld of task %d of %s, which had %d GPUs for %lld s: %lld was taken",
             st_used_key(kind), (long long)said->used.v[kind], said->task, job, b->devs,
             (long long)(b->time_ms / 1000), (long long)ret->v[kind]);
    st_native_flag(e, node, ST_FLAG_FIGURES, why, now);
}

/* ---- figures over time ---------------------------------------------------------------------------- */

#define MEASURES_MAX 131072 /* between two askers; more are forgotten */

/* What is more than `before`. A task that began before this engine did says all it ever used: that is no measure of
 * this time. */
static void measure(native *e, const native_node *node, const st_measure *of, const st_used *before,
                    const st_used *now)
{
    st_measure m = *of;
    int64_t held = now->has >> ST_USED_HELD & 1 ? now->v[ST_USED_HELD] : 0;
    int devs = ST_MAX(__builtin_popcount(of->devs), 1);

    if (!e->measured || (before->has == 0 && held > 2 * ST_USED_EVERY_MS * devs) ||
        e->measures.n >= MEASURES_MAX)
        return;
    m.node = node->id;
    m.used.has = now->has;
    for (int k = 0; k < ST_USED_COUNT; k++)
        if (now->has >> k & 1)
            m.used.v[k] = k == ST_USED_MEM_PEAK ? now->v[k] : now->v[k] - before->v[k];
    st_vec_push(&e->measures, m);
}

void st_native_on_measures(st_engine *engine, st_measures *ret)
{
    native *e = (native *)engine;

    st_native_lock(e);
    e->measured = true;
    for (size_t i = 0; i < e->measures.n; i++)
        st_vec_push(&ret->list, e->measures.v[i]);
    st_vec_clear(&e->measures);
    st_native_unlock(e);
}

bool st_native_on_used(st_engine *engine, uint64_t job, st_used *ret)
{
    native *e = (native *)engine;
    const native_job *j;

    st_native_lock(e);
    j = st_native_job_of(e, job);
    for (int t = 0; j && t < j->tasks; t++)
        st_used_add(ret, &j->task[t].used);
    st_native_unlock(e);
    return j != NULL;
}

#define STRETCH_MS INT64_C(300000) /* what is used lately is of one to two of them */

static void move_on(native_task *task, int64_t now)
{
    if (now < task->next_ms + STRETCH_MS)
        return;
    task->from = task->next;
    task->next = task->used;
    task->next_ms = now;
}

bool st_native_on_ranks(st_engine *engine, uint64_t job, st_rank_fn *fn, void *ctx)
{
    native *e = (native *)engine;
    const native_job *j;

    st_native_lock(e);
    j = st_native_job_of(e, job);
    for (int t = 0; j && t < j->tasks; t++) {
        const native_task *task = &j->task[t];
        st_used lately = {.has = task->used.has};

        for (int k = 0; k < ST_USED_COUNT; k++)
            lately.v[k] = ST_MAX(task->used.v[k] - task->from.v[k], 0);
        fn(ctx, t, task->grant.node, &lately);
    }
    st_native_unlock(e);
    return j != NULL;
}

static void listed(native *e, native_node *node, const native_job *job, const st_agent_task *said,
                   int64_t now)
{
    native_task *task = &job->task[said->task];
    bool last = left(said);
    st_bounds b;
    st_used used;

    if (said->used.has == 0 && said->scrub.result == ST_SCRUB_PENDING)
        return;
    st_native_bounds(job, said->task, now, &b);
    bound(e, node, said, &b, &task->used, &used, now);
    if (st_used_same(&used, &task->used) && said->scrub.result == task->scrub && last == task->left)
        return;
    if (!last && task->used_ms > 0 && now < task->used_ms + ST_USED_EVERY_MS)
        return;
    measure(e, node, &(st_measure){.job = job->id, .tenant = job->tenant, .devs = task->grant.devs},
            &task->used, &used);
    move_on(task, now);
    task->used = used;
    task->scrub = said->scrub.result;
    task->used_ms = now;
    task->left = last;
    tell(e, said, &used, last);
}

void st_native_used(native *e, native_node *node, const st_agent_status *status, int64_t now)
{
    for (size_t i = 0; i < status->n; i++) {
        const st_agent_task *said = &status->tasks[i];
        native_job *job = st_native_meant(e, node, said);

        if (job)
            listed(e, node, job, said, now);
    }
    for (size_t i = 0; i < status->npast; i++) {
        const st_agent_task *said = &status->past[i];
        native_past *past = st_native_was(node, said->job, said->stay, said->task);
        st_used used;

        if (!past)
            continue;
        bound(e, node, said, &past->bounds, &past->used, &used, now);
        measure(e, node,
                &(st_measure){.job = past->job, .tenant = past->tenant, .devs = past->devs},
                &past->used, &used);
        past->used = used;
        tell(e, said, &used, true);
    }
}
