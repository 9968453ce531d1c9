/*
 * What the effects of the core mean for the jobs of a trace (trace/play.h): who makes progress
 * from when on, when it will be through, what a preemption costs it, and who holds how much.
 *
 *   start, resume   restoring first where it comes back with progress, then progress
 *   checkpoint      no progress any more; saved after the time that takes
 *   spare           it never stopped, as it is spared before it saves
 *   pause           off the devices with all its progress
 *   requeue         off the devices with what is saved; the rest is lost
 */
#include "trace/play.h"

/* ---- integrals ---------------------------------------------------------------------------- */

void st_player_integrate(st_player *p)
{
    p->run->allocated += p->allocated_m * (p->now - p->at_ms);
    p->run->capacity += p->capacity_m * (p->now - p->at_ms);
    p->at_ms = p->now;
}

void st_player_integrate_account(st_player *p, int32_t account)
{
    st_player_account *a = &p->accounts[account];

    p->run->accounts.v[account].held += a->held_m * (p->now - a->at_ms);
    a->at_ms = p->now;
}

/* The job takes its GPUs, or gives them back. */
static void hold(st_player *p, size_t i, int sign)
{
    const st_trace_job *job = &p->trace->jobs.v[i];
    int64_t gpu_m = sign * st_trace_job_gpu_m(job);

    st_player_integrate(p);
    st_player_integrate_account(p, job->account);
    p->allocated_m += gpu_m;
    p->accounts[job->account].held_m += gpu_m;
    p->running += sign;
    p->waiting -= sign;
    p->waiting_m -= gpu_m;
}

/* ---- costs ---------------------------------------------------------------------------------- */

/* Memory one GPU of the job holds, in MiB. */
static int64_t memory_mib(const st_player *p, size_t i)
{
    const st_shape *shape = &p->trace->jobs.v[i].shape;
    const st_trace_type *type;

    if (shape->gpus == 0 || p->jobs[i].type < 0)
        return 0;
    type = &p->trace->types.v[p->jobs[i].type];
    if (shape->level == ST_LEVEL_MIG)
        return st_mig_vram_mib(type->board, shape->profile);
    if (shape->vram_mib > 0)
        return shape->vram_mib;
    return shape->level == ST_LEVEL_WHOLE ? type->vram_mib
                                          : type->vram_mib * shape->share_m / ST_WHOLE_M;
}

static int64_t cost_ms(const st_player *p, size_t i, int64_t fixed_ms, int64_t per_gib_ms)
{
    return fixed_ms + (int64_t)((st_i128)per_gib_ms * memory_mib(p, i) / 1024);
}

/* ---- progress ------------------------------------------------------------------------------- */

/* Ends the stay on devices: its progress is added to what is kept, the rest of the time is lost. */
static void end_stay(st_player *p, size_t i)
{
    st_player_job *j = &p->jobs[i];
    int64_t stop_ms = j->phase == ST_PLAYER_SAVING ? j->stop_ms : p->now;
    int64_t progress = ST_MAX(stop_ms - j->since_ms, 0);

    if (j->phase == ST_PLAYER_WAITING)
        return;
    j->kept_ms += progress;
    p->run->jobs.v[i].lost_ms += p->now - j->begin_ms - progress;
    p->run->jobs.v[i].held_ms += p->now - j->begin_ms;
    j->phase = ST_PLAYER_WAITING;
    j->generation++;
    hold(p, i, -1);
}

static void start(st_player *p, size_t i, const st_effect *fx)
{
    const st_trace_job *job = &p->trace->jobs.v[i];
    const st_run_cost *cost = &p->options->cost;
    st_player_job *j = &p->jobs[i];
    st_run_job *out = &p->run->jobs.v[i];

    if (fx->kind == ST_FX_START)
        j->type = (int32_t)fx->type;
    j->phase = ST_PLAYER_RUNNING;
    j->generation++;
    j->begin_ms = j->since_ms = p->now;
    if (j->kept_ms > 0)
        j->since_ms += cost_ms(p, i, cost->restore_ms, cost->restore_ms_per_gib);
    if (st_player_is_fenced(p, i) &&
        p->now < job->submit_ms) { /* kept for it, and idle until then */
        p->run->plans.fenced_gpu_hours +=
            (double)st_trace_job_gpu_m(job) * (double)(job->submit_ms - p->now) / 3.6e9;
        j->since_ms = job->submit_ms;
    }
    if (out->start_ms == ST_UNSET)
        out->start_ms = ST_MAX(p->now, st_player_is_fenced(p, i) ? job->submit_ms : 0);
    st_player_came_true(p, i);
    hold(p, i, 1);
    if (job->run_ms != ST_TIME_NEVER)
        st_due_push(&p->queue, (st_due){.at_ms = j->since_ms + job->run_ms - j->kept_ms,
                                        .kind = ST_DUE_FINISH,
                                        .generation = j->generation,
                                        .job = i});
}

static void save(st_player *p, size_t i)
{
    const st_run_cost *cost = &p->options->cost;
    st_player_job *j = &p->jobs[i];

    j->phase = ST_PLAYER_SAVING;
    j->stop_ms = p->now;
    j->generation++;
    st_due_push(&p->queue,
                (st_due){.at_ms = p->now + cost_ms(p, i, cost->save_ms, cost->save_ms_per_gib),
                         .kind = ST_DUE_SAVED,
                         .generation = j->generation,
                         .job = i});
}

void st_player_saved(st_player *p, size_t i)
{
    st_player_job *j = &p->jobs[i];

    /* One that pauses keeps its progress in memory; only what is stored survives a new start. */
    if (p->trace->jobs.v[i].yield == ST_YIELD_CHECKPOINT)
        j->saved_ms = j->kept_ms + ST_MAX(j->stop_ms - j->since_ms, 0);
}

static void count_preemption(st_player *p, size_t i)
{
    p->run->jobs.v[i].preemptions++;
    p->run->accounts.v[p->trace->jobs.v[i].account].preemptions++;
    p->run->decisions++;
}

static void requeue(st_player *p, size_t i)
{
    st_player_job *j = &p->jobs[i];

    if (j->phase != ST_PLAYER_WAITING)
        count_preemption(p, i); /* else it was paused, and is counted already */
    end_stay(p, i);
    p->run->jobs.v[i].lost_ms += j->kept_ms - j->saved_ms;
    j->kept_ms = j->saved_ms;
}

static void end(st_player *p, size_t i, const st_effect *fx)
{
    const st_trace_job *job = &p->trace->jobs.v[i];
    st_run_job *out = &p->run->jobs.v[i];

    if (fx->state == ST_JOB_CANCELLED && fx->other != 0)
        count_preemption(p, i); /* its way to yield is to end */
    end_stay(p, i);
    if (fx->state != ST_JOB_DONE)
        out->lost_ms += p->jobs[i].kept_ms;
    out->end_ms = p->now;
    p->waiting--;
    p->waiting_m -= st_trace_job_gpu_m(job);
    p->accounts[job->account].demand_m -= st_trace_job_gpu_m(job);
    p->ended++;
}

void st_player_queued(st_player *p, size_t i)
{
    const st_trace_job *job = &p->trace->jobs.v[i];

    p->waiting++;
    p->waiting_m += st_trace_job_gpu_m(job);
    p->accounts[job->account].demand_m += st_trace_job_gpu_m(job);
}

/* ---- effects -------------------------------------------------------------------------------- */

static void follow_one(st_player *p, const st_effect *fx)
{
    size_t i = (size_t)fx->job - 1;

    p->run->jobs.v[i].state = fx->state;
    switch (fx->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
        p->run->decisions++;
        start(p, i, fx);
        break;
    case ST_FX_CHECKPOINT:
        save(p, i);
        break;
    case ST_FX_PAUSE:
        count_preemption(p, i);
        end_stay(p, i);
        break;
    case ST_FX_REQUEUE:
    case ST_FX_RETRY:
        requeue(p, i);
        break;
    case ST_FX_END:
        end(p, i, fx);
        break;
    case ST_FX_QUEUED:
    case ST_FX_CLASS:
    case ST_FX_HOLD:
    case ST_FX_UNHOLD:
    case ST_FX_NOTIFY:
    case ST_FX_SPARE:
    case ST_FX_FLOOR:
    case ST_FX_NODE:
    case ST_FX_GPU:
    case ST_FX_STOP:
    case ST_FX_BOOKING:
    case ST_FX_INCIDENT:
    case ST_FX_DRAIN:
    case ST_FX_COUNT:
        break;
    }
}

void st_player_follow(st_player *p)
{
    for (; p->followed < p->fx.list.n; p->followed++)
        if (p->fx.list.v[p->followed].job > 0)
            follow_one(p, &p->fx.list.v[p->followed]);
}
