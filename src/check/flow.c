/*
 * What keeps jobs waiting besides room (core/flow.h), from outside: others that are not over, holds, throttles of
 * arrays, and the pause before another try. By what was submitted, by events and by the effects that said how jobs ended.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static st_watch_array *find_array(const st_watch *watch, uint64_t id)
{
    for (size_t i = 0; i < watch->arrays.n; i++)
        if (watch->arrays.v[i].id == id)
            return &watch->arrays.v[i];
    return NULL;
}

/* What an array's throttle is by the events of this step; `was` where they say nothing. */
static int throttle_said(const st_step *step, uint64_t id, int was)
{
    for (size_t i = 0; i < step->nevents; i++)
        if (step->events[i]->kind == ST_EV_ARRAY && step->events[i]->u.array.id == id)
            was = step->events[i]->u.array.throttle;
    return was;
}

void st_watch_flow_add(const st_step *step, st_track *t, const st_job_spec *spec)
{
    st_watch *w = step->watch;
    t->job.keeps = spec->keeps;
    t->job.held_by = spec->held_by;
    t->job.array = spec->array;
    t->job.retry = spec->retry;
    t->job.nafters = spec->nafters;
    if (spec->nafters > 0) {
        t->job.afters = st_xcalloc((size_t)spec->nafters, sizeof *t->job.afters);
        memcpy(t->job.afters, spec->afters, (size_t)spec->nafters * sizeof *t->job.afters);
    }
    if (!spec->array)
        return;
    st_watch_array *a = find_array(w, spec->array);
    if (!a) {
        st_vec_push(&w->arrays, (st_watch_array){.id = spec->array, .throttle = spec->throttle});
        a = &w->arrays.v[w->arrays.n - 1];
        a->throttle = throttle_said(step, a->id, a->throttle);
    }
    a->live++;
}

void st_watch_flow_hear(const st_step *step, st_track *t)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if (ev->kind != ST_EV_HOLD || ev->u.hold.id != t->job.id)
            continue;
        t->job.held_by = !ev->u.hold.on                   ? 0
                         : ev->u.hold.by > t->job.held_by ? ev->u.hold.by
                                                          : t->job.held_by;
    }
}

void st_watch_flow_begin(const st_step *step)
{
    for (size_t i = 0; i < step->watch->arrays.n; i++) {
        st_watch_array *a = &step->watch->arrays.v[i];
        a->throttle = throttle_said(step, a->id, a->throttle);
    }
}

/* ---- what has ended ------------------------------------------------------------------------ */

static bool comes_true(st_after_how how, bool well)
{
    return how == ST_AFTER_ANY || (how == ST_AFTER_OK && well) || (how == ST_AFTER_FAIL && !well);
}

static void cross_off(const st_step *step, uint64_t id, bool array, bool well)
{
    for (size_t i = 0; i < step->watch->tracks.n; i++) {
        st_track *t = step->watch->tracks.v[i];
        int kept = 0;
        if (t->job.never)
            continue; /* for good */
        for (int k = 0; k < t->job.nafters; k++) {
            const st_await a = t->job.afters[k];
            bool it = a.id == id && a.array == array;
            if (it && comes_true(a.how, well))
                continue;
            if (it && !t->job.never) {
                t->job.never = id;
                t->never_ms = step->now;
            }
            t->job.afters[kept++] = a;
        }
        t->job.nafters = kept;
    }
}

/* An array of which all were to be done, and one was not. */
static void spoil(const st_step *step, uint64_t array)
{
    for (size_t i = 0; i < step->watch->tracks.n; i++) {
        st_track *t = step->watch->tracks.v[i];
        for (int k = 0; k < t->job.nafters; k++) {
            const st_await *a = &t->job.afters[k];
            if (!a->array || a->id != array || a->how != ST_AFTER_OK || t->job.never)
                continue;
            t->job.never = array;
            t->never_ms = step->now;
        }
    }
}

void st_watch_flow_ended(const st_step *step, uint64_t id, uint64_t array, st_job_state state)
{
    st_watch *w = step->watch;
    st_watch_array *a = array ? find_array(w, array) : NULL;
    cross_off(step, id, false, state == ST_JOB_DONE);
    if (!a)
        return;
    if (state != ST_JOB_DONE) {
        a->spoilt = true;
        spoil(step, array);
    }
    if (--a->live > 0)
        return;
    bool well = !a->spoilt;
    *a = w->arrays.v[w->arrays.n - 1];
    w->arrays.n--;
    cross_off(step, array, true, well);
}

bool st_watch_never(const st_track *t, const st_effect *e)
{
    return t->job.state == ST_JOB_PENDING && t->job.never && e->never == t->job.never &&
           !t->job.keeps;
}

/* ---- another try --------------------------------------------------------------------------- */

static int64_t pause_ms(const st_job *job)
{
    int64_t ms = job->retry.wait_ms;
    for (int i = 0; i < job->tries; i++)
        ms = ms * 2 < job->retry.most_ms ? ms * 2 : job->retry.most_ms;
    return ms;
}

static bool times_out(const st_step *step, const st_track *t)
{
    int64_t limit_ms = ST_MIN(t->job.limit_ms, t->limit_before_ms);
    return t->job.retry.timeout && st_room_is_now(&t->job) && limit_ms != ST_TIME_NEVER &&
           t->ran_ms + step->now - t->started_ms >= limit_ms;
}

/* Its tasks have ended, and not well. */
static bool fails_now(const st_step *step, const st_track *t)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if ((ev->kind == ST_EV_FINISH || ev->kind == ST_EV_LATE) && ev->u.finish.id == t->job.id &&
            ev->u.finish.failed && !ev->u.finish.final)
            return true;
    }
    return false;
}

bool st_watch_again(const st_step *step, const st_track *t)
{
    return t->job.tries < t->job.retry.times && (fails_now(step, t) || times_out(step, t));
}

int st_watch_last_try(const st_step *step, const st_track *t, st_job_state state, st_err *err)
{
    bool fails = state == ST_JOB_FAILED ? fails_now(step, t) : times_out(step, t);
    if (!fails || t->job.tries >= t->job.retry.times || t->job.end_by_ms || t->job.stopping)
        return 0;
    return BAD("retry: job %" PRIu64 " is over after %d of %d retries", t->job.id, t->job.tries,
               t->job.retry.times);
}

int st_watch_retry(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    if (t->job.tries >= t->job.retry.times)
        return BAD("retry: job %" PRIu64 " is tried again after %d of %d retries", e->job,
                   t->job.tries, t->job.retry.times);
    if (!t->job.again && !fails_now(step, t) && !times_out(step, t))
        return BAD("retry: job %" PRIu64 " is tried again and has not failed", e->job);
    if (e->until_ms != step->now + pause_ms(&t->job))
        return BAD("retry: job %" PRIu64 " is tried again at %" PRId64 ", it is %" PRId64
                   " and its pause is %" PRId64,
                   e->job, e->until_ms, step->now, pause_ms(&t->job));
    t->job.again = false;
    t->job.tries++;
    t->job.begin_ms = e->until_ms;
    return 0;
}

/* ---- after a step -------------------------------------------------------------------------- */

int st_watch_flow(const st_core *core, const st_track *t, const st_job *job, st_err *err)
{
    bool on = st_room_is_now(job) || job->held;
    int bits = (t->job.nafters > 0 ? ST_BAR_AFTER : 0) | (t->job.held_by > 0 ? ST_BAR_HOLD : 0);
    if (on && t->job.nafters > 0)
        return BAD("after: job %" PRIu64 " has devices, and waits for %s %" PRIu64, job->id,
                   t->job.afters[0].array ? "array" : "job", t->job.afters[0].id);
    if ((job->barred ^ bits) & ST_BAR_AFTER)
        return BAD("after: job %" PRIu64 " is %skept waiting, by what has ended it is not so",
                   job->id, job->barred & ST_BAR_AFTER ? "" : "not ");
    if (on && t->job.held_by > 0 && job->state == ST_JOB_PENDING)
        return BAD("on hold: job %" PRIu64 " has a plan", job->id);
    if (((job->barred ^ bits) & ST_BAR_HOLD) || job->held_by != t->job.held_by)
        return BAD("on hold: job %" PRIu64 " is held by %d, by its events by %d", job->id,
                   job->held_by, t->job.held_by);
    if (t->job.never && !t->job.keeps && t->never_ms < st_core_now(core))
        return BAD("never: job %" PRIu64 " waits for %" PRIu64 ", which ended otherwise", job->id,
                   t->job.never);
    if ((job->barred & ST_BAR_IDLE) && job->state != ST_JOB_PENDING)
        return BAD("idle: job %" PRIu64 " is %s and idle", job->id, st_job_state_name(job->state));
    if (job->tries != t->job.tries)
        return BAD("retry: job %" PRIu64 " has been tried again %d times, by its effects %d",
                   job->id, job->tries, t->job.tries);
    return 0;
}

static int check_array(const st_step *step, st_watch_array *a, bool changed, st_err *err)
{
    int turns = 0, there = 0;
    uint64_t kept_out = 0;
    for (size_t i = 0; i < step->watch->tracks.n; i++) {
        const st_job *job = st_core_job(step->core, step->watch->tracks.v[i]->job.id);
        if (!job || step->watch->tracks.v[i]->job.array != a->id)
            continue;
        bool turn = !(job->barred & ST_BAR_THROTTLE);
        bool waits = job->state == ST_JOB_PENDING && !job->held;
        turns += turn;
        there += !waits;
        if (!turn && !(job->barred & (ST_BAR_AFTER | ST_BAR_HOLD | ST_BAR_BEGIN)))
            kept_out = job->id;
    }
    /* Who is there when the throttle changes keeps its turn, even if it has to leave in the same step. */
    int most = changed ? (there > a->there ? there : a->there) : a->turns;
    a->turns = turns;
    a->there = there;
    if (a->throttle > 0 && turns > a->throttle && turns > most)
        return BAD("throttle: %d jobs of array %" PRIu64 " have a turn, %d may", turns, a->id,
                   a->throttle);
    if (kept_out && (a->throttle == 0 || turns < a->throttle))
        return BAD("throttle: job %" PRIu64 " has no turn, %d of array %" PRIu64
                   " have one and %d may",
                   kept_out, turns, a->id, a->throttle);
    return 0;
}

int st_watch_arrays(const st_step *step, st_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < step->watch->arrays.n; i++) {
        st_watch_array *a = &step->watch->arrays.v[i];
        bool changed = throttle_said(step, a->id, -1) >= 0;
        rc = check_array(step, a, changed, err);
    }
    return rc;
}
