/* Jobs that are tried again when they fail (core/flow.h).
 *
 * A try begins anew: with its whole time limit, and with nothing of what it had saved for preemption. Between tries it
 * waits as before its window, twice as long each time. It has not ended meanwhile: those who wait for it wait for the
 * last try. What counts as failing is that its tasks ended with another status than 0 and, where it is asked for, that
 * its limit struck; never that it was cancelled or that its window closed. */
#include "core/flow.h"
#include "core/shadow.h"

int st_retry_check(const st_core *core, const st_job_spec *spec, st_err *err)
{
    const st_retries *r = &spec->retry;
    (void)core;
    if (r->times == 0 && r->wait_ms == 0 && r->most_ms == 0 && !r->timeout)
        return 0;
    if (r->times < 0 || r->times > ST_RETRY_MAX)
        return st_fail(err, ST_ERANGE, "job %s: it can be tried again 0 to %d times", spec->name,
                       ST_RETRY_MAX);
    if (r->times == 0)
        return st_fail(err, ST_EINVAL,
                       "job %s: it says when to try again, but not how often (--retries)",
                       spec->name);
    if (r->wait_ms < ST_RETRY_WAIT_MIN_MS || r->wait_ms > r->most_ms ||
        r->most_ms > ST_RETRY_WAIT_MAX_MS)
        return st_fail(err, ST_ERANGE,
                       "job %s: it must wait at least 1s before a retry, and at most 7 days",
                       spec->name);
    if (spec->hard)
        return st_fail(err, ST_EINVAL,
                       "job %s: a promised deadline leaves no time for retries; give one of them",
                       spec->name);
    return 0;
}

static int64_t wait_ms(const st_job *job)
{
    int64_t ms = job->retry.wait_ms;
    for (int i = 0; i < job->tries && ms < job->retry.most_ms; i++)
        ms *= 2;
    return ST_MIN(ms, job->retry.most_ms);
}

bool st_retry_may(const st_core *core, const st_job *job, st_job_state state)
{
    if ((job->tries >= job->retry.times && !(ST_BROKEN(RETRY) && job->retry.times > 0)) ||
        job->fault > 0)
        return false;
    if (state == ST_JOB_TIMEOUT && !job->retry.timeout)
        return false;
    /* Behind its window it could not start any more. */
    return !job->end_by_ms || core->now + wait_ms(job) < job->close_ms;
}

void st_core_retry(st_core *core, st_job *job, bool there, st_effects *fx)
{
    job->claimant = 0;
    job->again = true;
    st_core_forget_move(core, job);
    if (!there || !st_core_stop(core, job, ST_JOB_PENDING, false, fx))
        st_core_retry_now(core, job, fx);
}

void st_core_retry_now(st_core *core, st_job *job, st_effects *fx)
{
    if (job->held)
        st_core_unhold(core, job, fx);
    if (st_job_on_devices(job))
        st_core_release(core, job, false);
    if (job->state != ST_JOB_PENDING)
        st_job_move(job, ST_JOB_PENDING);
    job->stopping = job->first = job->again = false;
    job->saved_ms = job->kept_ms = 0;
    job->deadline_ms = 0;
    job->begin_ms = core->now + wait_ms(job);
    job->tries++;
    job->barred |= ST_BAR_BEGIN;
    job->queued_ms = core->now;
    st_shadow_ended(core, job, ST_JOB_CANCELLED);
    st_shadow_join(core, job);
    st_array_note(core, job, fx);
    st_core_due(core, job);
    st_core_changed(core, ST_CHANGED_STANDING | ST_CHANGED_WAITING | ST_CHANGED_ROUND);
    st_effect e = st_fx_of(core, ST_FX_RETRY, job);
    e.until_ms = job->begin_ms;
    e.ordered = true;
    st_fx(core, fx, e, NULL, 0);
}
