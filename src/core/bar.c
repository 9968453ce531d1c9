/* A job is barred: it may not run until it is told otherwise. Why is the caller's business; stintd does it
 * when a spend cap leaves no room.
 *
 * One that waits loses its plan and its turn. One that runs has its notice, then leaves as one that yields
 * does (yield.c): it saves, is paused, waits again or ends, as it was submitted. It yields to nobody, so that is
 * no preemption: nothing is credited, and it does not rest afterwards. One that is leaving already goes on
 * leaving. Lifted in time, it stays where it is, if nobody counts on its place yet; if somebody does, or it is
 * saving, it can be lifted when it has left. While it leaves its part of the floor is others' to have: where
 * one of them has it, it borrows. */
#include <inttypes.h>

#include "core/state.h"

/* Whether it leaves, or has left, by order alone, or for its own booking, which ends or begins. */
bool st_job_ordered(const st_job *job)
{
    return (job->barred && job->claimant == 0) ||
           (job->booking && job->claimant == (job->booking | ST_BOOKING_BIT)) ||
           (job->hold && job->claimant == (job->hold | ST_BOOKING_BIT));
}

static int lift(st_core *core, st_job *job, st_effects *fx, st_err *err)
{
    bool leaves = st_job_ordered(job) && st_job_leaving(job) && !job->stopping;
    st_class was = job->class;
    if (job->barred != ST_BAR_ORDER) { /* its window keeps it out all the same */
        job->barred &= (uint16_t)~ST_BAR_ORDER;
        return 0;
    }
    if (leaves && (job->state != ST_JOB_NOTIFIED || !st_core_stay(core, job)))
        return st_fail(err, ST_ESTATE,
                       "job %s is leaving its devices: it may run again when it has left",
                       job->name);
    job->barred = 0;
    if (leaves)
        st_fx(core, fx, st_fx_of(core, ST_FX_SPARE, job), NULL, 0);
    if (leaves && job->class != was)
        st_fx(core, fx, st_fx_of(core, ST_FX_CLASS, job), NULL, 0);
    return 0;
}

int st_core_bar(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job = st_core_find(core, ev->u.bar.id);
    int64_t notice_ms = ev->u.bar.notice_ms;
    if (!job)
        return st_fail(err, ST_ENOENT, "job %" PRIu64 " does not exist or has ended", ev->u.bar.id);
    if (notice_ms < 0 || notice_ms > ST_LIMIT_MAX_MS)
        return st_fail(err, ST_ERANGE, "job %s: its notice must be 0 ms to 10 years", job->name);
    if (((job->barred & ST_BAR_ORDER) != 0) == ev->u.bar.on)
        return 0;
    if (!ev->u.bar.on) {
        int rc = lift(core, job, fx, err);
        if (rc == 0)
            st_core_changed(core, ST_CHANGED_STANDING);
        return rc;
    }
    st_core_changed(core, ST_CHANGED_STANDING);
    job->barred |= ST_BAR_ORDER;
    if (job->held)
        st_core_unhold(core, job, fx);
    if (job->state == ST_JOB_RUNNING)
        st_core_order_out(core, job, notice_ms, fx);
    return 0;
}
