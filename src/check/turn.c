/*
 * Whose turn it is inside an account: the higher priority, and who has waited for the policy's `ageing` counts for a level
 * more, up to whoever waits beside it.
 *
 * From outside the order of a pass is known for certain only where little else happens: nothing is reserved or booked,
 * nobody has to leave, and nothing but ends of jobs frees anything. Then no borrower starts while one that
 * comes before it waits and would fit if the other were not there.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...)     st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define EFFORT_SMALL 16 /* from here down a pass may leave something over */

static bool plain_world(const st_core *core)
{
    const st_policy *p = st_core_policy(core);
    return p->reservations == 0 && p->lookahead == 0 && !p->as_if_alone &&
           p->claim_effort > EFFORT_SMALL && st_core_nbookings(core) == 0;
}

/* Only comings, ends and starts. */
static bool plain_step(const st_step *step)
{
    for (size_t i = 0; i < step->nevents; i++) {
        st_event_kind kind = step->events[i]->kind;
        if (kind != ST_EV_SUBMIT && kind != ST_EV_FINISH && kind != ST_EV_CANCEL &&
            kind != ST_EV_TIMER && kind != ST_EV_TOLD)
            return false;
    }
    for (size_t i = 0; i < step->fx->list.n; i++) {
        st_effect_kind kind = step->fx->list.v[i].kind;
        if (kind != ST_FX_QUEUED && kind != ST_FX_START && kind != ST_FX_END)
            return false;
    }
    return !step->promises_moved;
}

/* It waits, with nothing to keep it out but room. */
static bool in_line(const st_step *step, const st_track *t)
{
    const st_job *live = st_core_job(step->core, t->job.id);
    return t->job.state == ST_JOB_PENDING && !t->job.held && live && live->rest_ms <= step->now &&
           live->barred == 0 && live->booking == 0 && !live->stopping;
}

static bool waited(const st_step *step, const st_track *t)
{
    return in_line(step, t) && t->line_ms < step->now;
}

static bool aged(const st_step *step, int64_t since_ms)
{
    int64_t ageing_ms = st_core_policy(step->core)->ageing_ms;
    return ageing_ms > 0 && since_ms + ageing_ms <= step->now;
}

/* The highest priority that waits in the account all the time. */
static int top_of(const st_step *step, int32_t account)
{
    int top = INT32_MIN;
    for (size_t i = 0; i < step->watch->tracks.n; i++) {
        const st_track *t = step->watch->tracks.v[i];
        if (t->job.account == account && waited(step, t))
            top = ST_MAX(top, t->job.priority);
    }
    return top;
}

/* What it counts for at least. */
static int counts_for(const st_step *step, const st_track *t, int top)
{
    int more = t->job.priority + ST_PRIO_LEVEL;
    return aged(step, t->line_ms) ? ST_MIN(more, top) : t->job.priority;
}

/* Whether one that waits could be where the other one is now: on GPUs of a type, or without any. */
static bool could_instead(const st_step *step, const st_job *job, uint64_t other)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    const st_tree *tree = st_core_tree(step->core);
    st_job_list jobs = st_watch_jobs(step->watch);
    ST_CLEANUP(st_freep) uint8_t *out = st_xcalloc(jobs.n + 1, 1);
    bool could = false;
    st_room room;
    st_tally tally;
    for (size_t i = 0; i < jobs.n; i++)
        out[i] = jobs.v[i]->id == other;
    st_room_build(&room, fleet, tree, &jobs, out, ST_WHEN_EITHER);
    st_tally_build(&tally, fleet, tree, &jobs, out);
    bool shares = job->shape.gpus > 0 && job->shape.level > ST_LEVEL_MIG;
    for (int32_t t = -1; !could && t < (int32_t)fleet->types.n; t++) {
        if (t < 0 ? job->shape.gpus > 0 : !(job->shape.gpus > 0 && (job->shape.types >> t & 1)))
            continue;
        could = st_room_fits(&room, job, t, false) &&
                st_tally_max_ok(&tally, job, t, ST_NOW | ST_NEXT) &&
                st_tally_limits_ok(fleet, tree, &jobs, out, job, t, false);
    }
    st_room_done(&room);
    st_tally_done(&tally);
    st_vec_free(&jobs);
    return could && !(shares && st_room_untrusted(tree, job->account));
}

static int check_start(const st_step *step, const st_track *first, st_err *err)
{
    const st_job *job = &first->job;
    const st_job *live = st_core_job(step->core, job->id);
    int most = job->priority + (live && aged(step, live->queued_ms) ? ST_PRIO_LEVEL : 0);
    int top = top_of(step, job->account);
    for (size_t i = 0; i < step->watch->tracks.n; i++) {
        const st_track *t = step->watch->tracks.v[i];
        if (t->job.account != job->account || !waited(step, t) ||
            counts_for(step, t, top) <= most || !could_instead(step, &t->job, job->id))
            continue;
        return BAD("turn: job %" PRIu64 " (priority %d) starts, and job %" PRIu64
                   " of its account (priority %d, waiting for %" PRId64
                   " ms) comes before it and would fit",
                   job->id, job->priority, t->job.id, t->job.priority, step->now - t->line_ms);
    }
    return 0;
}

static int check_starts(const st_step *step, st_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        bool borrows = e->kind == ST_FX_START && e->class == ST_CLASS_BURSTABLE;
        const st_track *t = borrows ? st_watch_find(step->watch, e->job) : NULL;
        if (t && !t->held_before && t->job.state == ST_JOB_RUNNING)
            rc = check_start(step, t, err);
    }
    return rc;
}

/* Whether somebody may have been kept out for a moment of the step. */
static bool lifts_bars(const st_step *step)
{
    for (size_t i = 0; i < step->nevents; i++) {
        st_event_kind kind = step->events[i]->kind;
        if (kind == ST_EV_HOLD || kind == ST_EV_BAR || kind == ST_EV_ARRAY)
            return true;
    }
    return false;
}

int st_watch_turns(const st_step *step, st_err *err)
{
    st_watch *w = step->watch;
    int rc = 0;
    /* In the middle of a round the order is that of its beginning. */
    bool whole = !w->resumed && !st_core_resumes(step->core);
    w->resumed = st_core_resumes(step->core);
    if (whole && plain_world(step->core) && plain_step(step))
        rc = check_starts(step, err);
    bool lifts = lifts_bars(step);
    for (size_t i = 0; i < w->tracks.n; i++) {
        st_track *t = w->tracks.v[i];
        if (lifts || !in_line(step, t))
            t->line_ms = step->now;
        t->line_ms =
            ST_MAX(t->line_ms, t->job.queued_ms); /* it may have come and gone in the step */
    }
    return rc;
}
