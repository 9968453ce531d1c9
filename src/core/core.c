/* The machine's frame: its state, its step, and how it is read. */
#include "core/core.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/flow.h"
#include "core/shadow.h"

st_core *st_core_new(const st_policy *policy)
{
    st_core *core = st_xcalloc(1, sizeof *core);
    core->policy = policy ? *policy : st_policy_default();
    core->tree = st_tree_new();
    core->fleet = st_fleet_new();
    core->placer = st_placer_new(core->fleet, core->tree);
    core->forecast = st_forecast_new();
    core->by_id = st_idmap_new();
    core->waiters.first = st_idmap_new();
    core->array_ids = st_idmap_new();
    core->slots = st_slots_new();
    core->calendar_ms = ST_TIME_NEVER;
    core->nodes_ms = core->incidents_ms = ST_TIME_NEVER;
    core->misfits = st_idmap_new();
    core->possible = st_idmap_new();
    core->numbers = st_idmap_new();
    core->walled = st_idmap_new();
    core->numbering = 1;
    core->wake_ms = core->due_ms = core->exchange_ms = core->age_ms = ST_TIME_NEVER;
    core->round_wake_ms = ST_TIME_NEVER;
    core->lowest = ST_PRIO_MAX;
    for (int d = 0; d < ST_DEVS_MAX; d++)
        core->whatif.none.dev[d].mode = ST_DEV_WHOLE;
    core->version = 1;
    st_core_changed(core, ST_CHANGED_FLOORS);
    return core;
}

void st_core_free(st_core *core)
{
    if (!core)
        return;
    st_core_reserve_done(core);
    for (size_t i = 0; i < core->shadows.n; i++)
        st_shadow_free(core->shadows.v[i]);
    st_vec_free(&core->shadows);
    for (size_t i = 0; i < core->jobs.n; i++)
        st_job_free(core->jobs.v[i]);
    st_vec_free(&core->jobs);
    st_core_free_ended(core);
    st_vec_free(&core->ended);
    st_vec_free(&core->placed);
    st_vec_free(&core->off);
    st_vec_free(&core->idle);
    st_after_done(core);
    st_arrays_done(core);
    st_vec_free(&core->due);
    st_core_yielders_done(core);
    st_vec_free(&core->restart);
    st_vec_free(&core->fresh);
    st_idmap_free(core->by_id);
    st_idmap_free(core->misfits);
    st_vec_free(&core->refusals);
    st_core_borrowers_done(core);
    for (size_t i = 0; i < core->bookings.n; i++)
        st_booking_free(core->bookings.v[i]);
    for (size_t i = 0; i < core->incidents.n; i++)
        st_incident_free(core->incidents.v[i]);
    st_vec_free(&core->incidents);
    st_vec_free(&core->bookings);
    st_vec_free(&core->opened);
    st_slots_free(core->slots);
    st_idmap_free(core->possible);
    st_idmap_free(core->numbers);
    st_idmap_free(core->walled);
    st_vec_free(&core->walls);
    st_vec_free(&core->nowhere);
    st_forecast_free(core->forecast);
    st_placer_free(core->placer);
    st_fleet_free(core->fleet);
    st_tree_free(core->tree);
    free(core->prefer);
    free(core->tops);
    st_vec_free(&core->bound);
    free(core->whatif.views);
    free(core->whatif.stamp);
    free(core->whatif.outline);
    free(core->whatif.could);
    st_vec_free(&core->whatif.later);
    free(core->whatif.due);
    st_vec_free(&core->whatif.touched);
    free(core);
}

void st_core_changed(st_core *core, unsigned what)
{
    core->freed |= (what & ST_CHANGED_ROOM) != 0;
    core->floors_dirty |= (what & ST_CHANGED_FLOORS) != 0;
    core->class_dirty |= (what & ST_CHANGED_CLASSES) != 0;
    core->version += (what & ST_CHANGED_YIELDERS) != 0;
    core->stirred |= (what & ST_CHANGED_ORDER) != 0;
    core->settled &= (what & ST_CHANGED_WAITING) == 0;
    core->heard |= (what & ST_CHANGED_ROUND) != 0;
}

st_job *st_core_find(const st_core *core, uint64_t id)
{
    int64_t p;
    return st_idmap_get(core->by_id, id, &p) ? (st_job *)(intptr_t)p : NULL;
}

/* Where the id stands, or would. */
static size_t position(const st_core *core, uint64_t id)
{
    size_t lo = 0, hi = core->jobs.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (core->jobs.v[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void st_core_add_job(st_core *core, st_job *job)
{
    size_t at = position(core, job->id);
    st_vec_insert(&core->jobs, at, job);
    core->lowest = ST_MIN(core->lowest, job->priority);
    job->slot = (int32_t)core->off.n;
    st_vec_push(&core->off, job);
    st_idmap_put(core->by_id, job->id, (int64_t)(intptr_t)job);
}

/* Takes the job out of the list it is in; the last one fills the gap. */
static void unslot(const st_job *job, st_job_vec *list)
{
    ST_ASSERT((size_t)job->slot < list->n && list->v[job->slot] == job);
    st_job *last = list->v[--list->n];
    last->slot = job->slot;
    list->v[last->slot] = last;
}

static void slot(st_job *job, st_job_vec *list)
{
    job->slot = (int32_t)list->n;
    st_vec_push(list, job);
}

void st_core_place(st_core *core, st_job *job, bool on)
{
    ST_ASSERT(!job->idle);
    unslot(job, on ? &core->off : &core->placed);
    slot(job, on ? &core->placed : &core->off);
}

void st_core_put_aside(st_core *core, st_job *job)
{
    bool idle = job->barred & ST_BAR_IDLE;
    if (idle == job->idle)
        return;
    unslot(job, idle ? &core->off : &core->idle);
    slot(job, idle ? &core->idle : &core->off);
    job->idle = idle;
}

void st_core_free_ended(st_core *core)
{
    for (size_t i = 0; i < core->ended.n; i++)
        st_job_free(core->ended.v[i]);
    st_vec_clear(&core->ended);
}

void st_core_drop_job(st_core *core, st_job *job)
{
    size_t at = position(core, job->id);
    unslot(job, job->idle ? &core->idle : &core->off);
    ST_ASSERT(at < core->jobs.n && core->jobs.v[at] == job);
    st_vec_remove(&core->jobs, at);
    st_idmap_del(core->by_id, job->id);
    st_vec_push(&core->ended, job); /* who is in the middle of a line may still come by it */
}

int64_t st_core_next_timer(const st_core *core)
{
    int64_t nodes_ms = ST_MIN(core->nodes_ms, core->incidents_ms);
    int64_t jobs_ms = ST_MIN(core->due_ms, st_after_due_ms(core));
    return ST_MIN(ST_MIN(core->wake_ms, jobs_ms), ST_MIN(core->calendar_ms, nodes_ms));
}

/* Since when it runs and was displaced counts up to a moment. */
static int64_t protected_ms(const st_core *core, const st_job *job, bool from_owner, int64_t moment)
{
    int64_t run = ST_MIN(job->start_ms, moment) +
                  st_tree_min_run_ms(core->tree, job->account, core->policy.min_run_ms);
    int64_t cool = ST_MIN(job->preempted_ms, moment) + core->policy.cooldown_ms;
    if (job->preempted_ms < 0 || from_owner)
        cool = 0;
    if (ST_BROKEN(MIN_RUN))
        run = 0;
    if (ST_BROKEN(COOLDOWN))
        cool = 0;
    return ST_MAX(run, cool);
}

int64_t st_core_protected_until(const st_core *core, const st_job *job, bool from_owner)
{
    return protected_ms(core, job, from_owner, INT64_MAX);
}

int64_t st_core_protected_in_round(const st_core *core, const st_job *job, bool from_owner)
{
    return protected_ms(core, job, from_owner, st_core_moment(core));
}

bool st_core_resumes(const st_core *core)
{
    return core->unfinished;
}

int st_core_thorough(const st_core *core, st_core **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_core_save(core, &saved);
    int rc = st_core_load(saved.s, saved.n, ret, err);
    if (rc == 0)
        (*ret)->policy.claim_effort = INT64_MAX / 2;
    return rc;
}

uint64_t st_core_hash(const st_core *core)
{
    return core->hash;
}

const st_policy *st_core_policy(const st_core *core)
{
    return &core->policy;
}

const st_tree *st_core_tree(const st_core *core)
{
    return core->tree;
}

const st_fleet *st_core_fleet(const st_core *core)
{
    return core->fleet;
}

int64_t st_core_now(const st_core *core)
{
    return core->now;
}

const st_job *st_core_job(const st_core *core, uint64_t id)
{
    return st_core_find(core, id);
}

size_t st_core_njobs(const st_core *core)
{
    return core->jobs.n;
}

const st_job *st_core_job_at(const st_core *core, size_t i)
{
    ST_ASSERT(i < core->jobs.n);
    return core->jobs.v[i];
}

void st_core_recall_stay(st_core *core, uint64_t id, int stay, int times)
{
    st_job *job = st_core_find(core, id);

    if (!job)
        return;
    if (stay > job->stay) {
        job->stay = stay;
        job->times = ST_MAX(job->times, stay);
    }
    job->times = ST_MAX(job->times, times);
}
