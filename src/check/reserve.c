/*
 * What is reserved by limits is a promise: forecasts may be wrong, but whoever is let in on one
 * must not make the first in line wait beyond what the limits of those before it allow, and
 * `overstay` in all.
 *
 * The core says when that is (st_core_reserved). It must not move back further in a step in which
 * nothing happened but that jobs came, ended, or started behind the first in line: in its own
 * account, of its own user, queued later, with no higher priority and no better right.
 *
 * Nor may anybody have been ahead of it for a moment. When jobs end, another may come inside its
 * floor or below a ceiling and take the head of the line; those behind are then let in by that
 * one's start, and may put it over its floor again.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool ordinary(const st_step *step)
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
    return true;
}

/* Whether its deadline lets it go first: who has none comes last. */
static bool due_sooner(const st_job *job, const st_job *ahead)
{
    return job->by_ms && (!ahead->by_ms || job->by_ms < ahead->by_ms);
}

/* Behind the first in line, whatever else changes but the floor. */
static bool behind(const st_job *job, const st_job *ahead)
{
    return !due_sooner(job, ahead) && job->account == ahead->account && job->user == ahead->user &&
           job->priority <= ahead->priority && job->queued_ms >= ahead->queued_ms &&
           job->id >= ahead->id;
}

/* Whether it started before borrowers get their turn: inside its floor, or because it would be running on
 * its own nodes, wherever it found a place instead (core/shadow.h). */
static bool by_right(const st_step *step, const st_effect *start)
{
    const st_job *job = st_core_job(step->core, start->job);
    const st_grant *home = NULL;
    return start->class == ST_CLASS_GUARANTEED || (job && st_core_has_home(job, &home) && home);
}

/* Whether it has come true as planned, when all had left who were to leave for it. If others made the room,
 * it came before somebody may have counted on it, by its right. */
static bool as_planned(const st_step *step, const st_track *started)
{
    st_job_list jobs = st_watch_jobs(step->watch);
    bool alone = true;
    for (size_t i = 0; i < jobs.n; i++)
        alone &= jobs.v[i]->claimant != started->job.id;
    for (size_t i = 0; i < step->fx->list.n; i++)
        alone &= step->fx->list.v[i].kind != ST_FX_SPARE;
    st_vec_free(&jobs);
    return started->held_before && alone;
}

static bool all_behind(const st_step *step, const st_reserved *first)
{
    const st_track *ahead = st_watch_find(step->watch, first->job);
    if (!ahead || st_core_policy(step->core)->order != ST_ORDER_AGE)
        return false;
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        const st_track *t = st_watch_find(step->watch, e->job);
        if (e->kind != ST_FX_START || (t && as_planned(step, t)))
            continue;
        /* Who started and ended in one step is no longer known. */
        if (!t || !behind(&t->job, &ahead->job) || (by_right(step, e) && !first->guaranteed))
            return false;
    }
    return true;
}

/* What a waiting job may do on one type while those in `out` are not there. */
typedef struct rights {
    bool may, guaranteed;
} rights;

static rights rights_of(const st_tally *tally, const st_job_list *jobs, const uint8_t *out,
                        const st_job *job, int32_t type)
{
    rights r = {.may = st_tally_max_ok(tally, job, type, ST_NOW | ST_NEXT) &&
                       st_tally_limits_ok(tally->fleet, tally->tree, jobs, out, job, type, false)};
    r.guaranteed = r.may && st_tally_guaranteed_ok(tally, jobs, out, job, type);
    return r;
}

/* Whether the starts of this step took from somebody who waits the right to a turn ahead of the
 * first in line. */
static bool overtaken(const st_step *step, const st_reserved *first)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    const st_tree *tree = st_core_tree(step->core);
    const st_job *ahead = &st_watch_find(step->watch, first->job)->job;
    st_job_list jobs = st_watch_jobs(step->watch);
    uint8_t *out = st_xcalloc(jobs.n + 1, 1);
    for (size_t i = 0; i < jobs.n; i++)
        for (size_t k = 0; k < step->fx->list.n; k++)
            out[i] |=
                step->fx->list.v[k].kind == ST_FX_START && step->fx->list.v[k].job == jobs.v[i]->id;
    st_tally without, with;
    st_tally_build(&without, fleet, tree, &jobs, out);
    st_tally_build(&with, fleet, tree, &jobs, NULL);
    bool any = false;
    for (size_t i = 0; i < jobs.n && !any; i++) {
        const st_job *job = jobs.v[i];
        bool waits = job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED;
        if (!waits || job->held || job->barred || job->id == first->job ||
            (first->guaranteed && behind(job, ahead)))
            continue;
        for (int32_t t = -1; t < (int32_t)fleet->types.n && !any; t++) {
            if (t < 0 ? job->shape.gpus > 0 : !(job->shape.types >> t & 1))
                continue;
            rights had = rights_of(&without, &jobs, out, job, t);
            rights has = rights_of(&with, &jobs, NULL, job, t);
            any = had.may != has.may || had.guaranteed != has.guaranteed;
        }
    }
    st_tally_done(&without);
    st_tally_done(&with);
    st_vec_free(&jobs);
    free(out);
    return any;
}

int st_watch_reserved(const st_step *step, st_err *err)
{
    if (st_core_resumes(step->core)) {
        step->watch->first = (st_reserved){0}; /* the pass is not over, and nobody first yet */
        return 0;
    }
    st_reserved_list list = {0};
    st_core_reserved(step->core, &list);
    st_reserved before = step->watch->first, now = {0};
    if (list.n > 0)
        now = list.v[0];
    st_vec_free(&list);
    step->watch->first = now;
    bool same = now.job != 0 && now.job == before.job && now.type == before.type &&
                now.guaranteed == before.guaranteed && !now.claims && !before.claims;
    int64_t overstay_ms = st_core_policy(step->core)->overstay_ms,
            *by_ms = &step->watch->first_by_ms;
    int64_t promise_ms = now.by_ms == ST_TIME_NEVER ? now.by_ms : now.by_ms + overstay_ms;
    int64_t allowed_ms = ST_MAX(before.by_ms, *by_ms);
    *by_ms = same ? ST_MIN(*by_ms, promise_ms) : promise_ms;
    if (!same || now.by_ms <= allowed_ms || !ordinary(step) || !all_behind(step, &now) ||
        overtaken(step, &now))
        return 0;
    return BAD("promise: by the limits of those before it job %" PRIu64 " was to start by %" PRId64
               ", and now by %" PRId64,
               now.job, allowed_ms, now.by_ms);
}
