/* Jobs that somebody holds back until they are released (core/flow.h).
 *
 * Only one that waits can be held back: what runs is not stopped by it. Who holds it has a strength, which is the
 * caller's business; it is released by somebody as strong, or stronger. It keeps no place meanwhile, neither in the
 * queue nor on nodes, and when it is released it waits as if it had just come. */
#include <inttypes.h>

#include "core/flow.h"

static int release(st_core *core, st_job *job, int by, st_err *err)
{
    if (job->held_by == 0)
        return st_fail(err, ST_ESTATE, "job %s is not on hold", job->name);
    if (by < job->held_by)
        return st_fail(err, ST_EPERM, "job %s is held by an admin: ask them to release it",
                       job->name);
    job->held_by = 0;
    st_idle_clear(core, job, ST_BAR_HOLD);
    st_array_note(core, job, NULL);
    return 0;
}

int st_core_hold_job(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job = st_core_find(core, ev->u.hold.id);
    if (!job)
        return st_fail(err, ST_ENOENT, "job %" PRIu64 " does not exist or has ended",
                       ev->u.hold.id);
    if (ev->u.hold.by < 1)
        return st_fail(err, ST_ERANGE, "job %s: nobody is weaker than nobody", job->name);
    if (!ev->u.hold.on)
        return release(core, job, ev->u.hold.by, err);
    if (job->state != ST_JOB_PENDING)
        return st_fail(
            err, ST_ESTATE,
            "job %s is %s; only a job that waits can be put on hold (cancel it to end it)",
            job->name, st_job_state_name(job->state));
    if (job->hold)
        return st_fail(
            err, ST_ESTATE,
            "job %s has a promised deadline and cannot be put on hold; cancel it instead",
            job->name);
    job->held_by = ST_MAX(job->held_by, ev->u.hold.by);
    if (ST_BROKEN(ON_HOLD))
        return 0;
    st_idle_set(core, job, ST_BAR_HOLD, fx);
    st_array_note(core, job, fx);
    return 0;
}
