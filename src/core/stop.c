/* What is told to be gone and not known to be.
 *
 * On nodes with agents the core's word does not end a stay: the agent's does, or, when that is silent, the
 * end of its lease, which is for the engine to tell (ST_EV_GONE). Until then the job is stopping: its
 * devices are its own, at this moment (moves.c), and it cannot start again anywhere. Only then does
 * it go back to the queue, or end.
 *
 * Nodes without agents are taken at the core's word: simulated ones have nothing left when they are
 * told. */
#include "core/state.h"

static bool awaited(const st_core *core, const st_job *job)
{
    if (ST_BROKEN(GONE) || (!st_job_on_devices(job) && job->state != ST_JOB_PAUSED))
        return false;
    for (int t = 0; t < job->tasks; t++)
        if (core->fleet->nodes.v[job->grants[t].node]->agent)
            return true;
    return false;
}

static void tell(st_core *core, const st_job *job, st_effects *fx)
{
    st_effect e = st_fx_of(core, ST_FX_STOP, job);
    e.state =
        ST_JOB_STOPPING; /* to people: what is paused is not on devices, and leaves all the same */
    e.other = job->claimant;
    e.after = job->after;
    st_fx(core, fx, e, NULL, 0);
}

bool st_core_stop(st_core *core, st_job *job, st_job_state after, bool first, st_effects *fx)
{
    if (job->stopping) {
        bool other = after != ST_JOB_PENDING && job->after != after;
        if (other) {
            job->after = after;
            tell(core, job, fx);
        }
        return true;
    }
    if (!awaited(core, job))
        return false;
    if (job->held)
        st_core_unhold(core, job, fx);
    job->stopping = true;
    job->after = after;
    job->first = first && st_job_on_devices(job);
    job->stop_ms = core->now;
    job->deadline_ms = core->now + ST_STOP_MS;
    if (job->state == ST_JOB_RUNNING)
        st_core_leave(core, job, ST_JOB_STOPPING, job->claimant);
    else if (job->state != ST_JOB_PAUSED)
        st_job_move(job, ST_JOB_STOPPING);
    st_core_retime(core, job);
    st_core_due(core, job);
    tell(core, job, fx);
    return true;
}

void st_core_restart(st_core *core, const st_job *job)
{
    if (st_job_on_devices(job))
        st_vec_push(&core->restart,
                    (st_restart){job->id, job->priority, job->class == ST_CLASS_GUARANTEED});
    for (int t = 0; t < job->tasks; t++)
        st_core_prefer(core, job->grants[t].node);
}

void st_core_gone(st_core *core, st_job *job, bool done, st_effects *fx)
{
    ST_ASSERT(job->stopping);
    if (done && job->state == ST_JOB_STOPPING && (job->after == ST_JOB_PENDING || job->fault > 0)) {
        job->claimant = job->fault = 0;
        st_core_learn(core, job);
        st_core_end_now(core, job, ST_JOB_DONE, fx);
        return;
    }
    if (job->after != ST_JOB_PENDING) {
        st_core_end_now(core, job, job->after, fx);
        return;
    }
    if (job->first)
        st_core_restart(core, job);
    else if (job->to) /* its new place is free: it goes there before anybody has a turn */
        st_vec_push(&core->restart,
                    (st_restart){job->id, job->priority, job->class == ST_CLASS_GUARANTEED});
    st_core_requeue_now(core, job, fx);
}
