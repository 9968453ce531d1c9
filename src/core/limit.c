/* A job's time limit is changed: longer as far as the limits of its accounts and the promises made to
 * others allow, shorter down to what it has run already. Who may ask for which is the caller's
 * business. */
#include <inttypes.h>

#include "base/num.h"
#include "core/book.h"
#include "core/reserve.h"

/* Whether a plan is on a node of the job: beside its GPUs there is CPU and RAM to count on. */
static bool plans_on(const st_reservation *r, const st_job *job)
{
    for (int t = 0; t < job->tasks; t++)
        for (int u = 0; u < r->ntasks; u++)
            if (r->plan[u].node == job->grants[t].node)
                return true;
    return false;
}

/* The first moment from which somebody was promised the place of the job, with its old limit; those
 * whose start would not come later do not mind. */
static int64_t promised_ms(const st_core *core, const st_job *job, int64_t old_end, int64_t new_end)
{
    int64_t first = ST_TIME_NEVER;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        if (r->job != job->id && (r->by & ST_BY_LIMITS) && r->at_ms >= old_end &&
            r->at_ms < new_end && plans_on(r, job))
            first = ST_MIN(first, r->at_ms);
    }
    return first;
}

static int check_accounts(const st_core *core, const st_job *job, st_err *err)
{
    st_limit_over over;
    char asked[32], bound[32];
    if (st_admit_job_limits(core->fleet, core->tree, job, job->type, &over, 1) == 0 &&
        st_admit_user_limits(core->fleet, core->tree, job, job->type, !job->grants, &over, 1) == 0)
        return 0;
    st_fmt_duration(bound, ST_MAX(over.bound - over.used, 0));
    if (job->limit_ms == ST_TIME_NEVER)
        return st_fail(err, ST_ELIMIT,
                       "job %s: its account allows at most %s, it cannot go on for ever", job->name,
                       bound);
    st_fmt_duration(asked, job->limit_ms);
    return st_fail(err, ST_ELIMIT,
                   "job %s: a time limit of %s is beyond what its account allows%s: %s", job->name,
                   asked, over.per_user ? " its user" : "", bound);
}

static int check_promises(const st_core *core, const st_job *job, int64_t new_ms, st_err *err)
{
    if (!st_job_on_devices(job) || new_ms <= job->limit_ms)
        return 0;
    int64_t old_end = st_job_end_ms(job, core->now);
    if (old_end == ST_TIME_NEVER)
        return 0; /* nobody was promised what has no end */
    int64_t more = new_ms == ST_TIME_NEVER ? ST_TIME_NEVER : old_end + (new_ms - job->limit_ms);
    int64_t at_ms = promised_ms(core, job, old_end, more);
    if (at_ms == ST_TIME_NEVER)
        return 0;
    char room[32];
    st_fmt_duration(room, at_ms - old_end);
    return st_fail(
        err, ST_ESTATE,
        "job %s: its place was promised to somebody who waits; at most %s more can be given",
        job->name, room);
}

/* Who was left alone because it ends before a booking begins must not stay. */
static int check_bookings(const st_core *core, const st_job *job, int64_t new_ms, st_err *err)
{
    if (core->nopen == 0 || !st_job_on_devices(job) || new_ms <= job->limit_ms ||
        job->class == ST_CLASS_BOOKED)
        return 0;
    for (int t = 0; t < job->tasks; t++)
        if (core->fleet->nodes.v[job->grants[t].node]->fence & job->grants[t].devs)
            return st_fail(err, ST_ESTATE, "job %s: its GPUs are booked behind it", job->name);
    return 0;
}

int st_core_set_limit(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    st_job *job = st_core_find(core, ev->u.limit.id);
    int64_t new_ms = ev->u.limit.limit_ms;
    if (!job)
        return st_fail(err, ST_ENOENT, "job %" PRIu64 " does not exist or has ended",
                       ev->u.limit.id);
    if (new_ms != ST_TIME_NEVER && (new_ms < 1 || new_ms > ST_LIMIT_MAX_MS))
        return st_fail(err, ST_ERANGE, "job %s: its time limit must be 1 ms to 10 years",
                       job->name);
    if (job->stopping && job->after != ST_JOB_PENDING)
        return st_fail(err, ST_ESTATE, "job %s: it was told to stop and will not run again",
                       job->name);
    int64_t ran_ms = st_job_ran_ms(job, core->now);
    if (new_ms <= ran_ms) {
        char ran[32];
        st_fmt_duration(ran, ran_ms);
        return st_fail(err, ST_ESTATE, "job %s: it has run for %s already; cancel it to end it now",
                       job->name, ran);
    }
    int rc = check_promises(core, job, new_ms, err);
    if (rc == 0)
        rc = check_bookings(core, job, new_ms, err);
    if (rc < 0)
        return rc;
    /* Users are charged with the limit while a job is placed or has a plan. */
    bool charged = (st_job_on_devices(job) || job->held) && job->class != ST_CLASS_BOOKED;
    int64_t old_ms = job->limit_ms;
    if (charged)
        st_admit_user_charge(core->fleet, core->tree, job, job->type, -1);
    job->limit_ms = new_ms;
    if (new_ms > old_ms)
        rc = check_accounts(core, job, err);
    if (rc < 0)
        job->limit_ms = old_ms;
    if (charged)
        st_admit_user_charge(core->fleet, core->tree, job, job->type, 1);
    if (rc < 0)
        return rc;
    if (job->state == ST_JOB_RUNNING)
        st_core_expect(core, job);
    if (core->bookings.n > 0)
        st_core_changed(core, ST_CHANGED_FLOORS); /* it may be in the way of one */
    st_core_retime(core, job);
    st_core_due(core, job);
    return 0;
}
