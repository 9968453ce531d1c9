/* Giving, holding and taking away: the only functions that touch residents and quota counters
 * of a job, so that nodes, accounts and job state always tell the same story.
 *
 *               residents      now   next  (guaranteed with next, if guaranteed)
 *   running     yes             x     x
 *   leaving     yes             x           (stopping is leaving too)
 *   held        plan                  x
 *   paused      memory only
 *
 * User limits and decayed usage follow: a user is charged while a job is running, leaving or
 * held; usage counts while it is on devices. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/shadow.h"

static void charge(st_core *core, const st_job *job, unsigned moments, int sign)
{
    if (job->class == ST_CLASS_BOOKED)
        return; /* what is booked counts for the booking */
    st_need need = st_need_of(job, job->type);
    if (!(moments & ST_NEXT) || job->class != ST_CLASS_GUARANTEED)
        moments &= ~(unsigned)ST_GUARANTEED;
    st_admit_charge(core->tree, job->account, &need, moments, sign);
    core->loosened += sign < 0;
    if ((moments & ST_GUARANTEED) && sign < 0)
        st_core_loosen(core, job->account);
}

static void charge_user(st_core *core, const st_job *job, int sign)
{
    if (job->class == ST_CLASS_BOOKED)
        return;
    st_admit_user_charge(core->fleet, core->tree, job, job->type, sign);
}

static void note_usage(st_core *core, const st_job *job, int sign)
{
    st_usage_note(core->tree, job->account, job->user, core->now, core->policy.half_life_ms,
                  sign * st_job_gpu_m(job));
}

static void add_to_nodes(st_core *core, st_job *job)
{
    for (int t = 0; t < job->tasks; t++)
        st_node_add(core->fleet, core->tree, job, t);
}

static void remove_from_nodes(st_core *core, st_job *job)
{
    for (int t = 0; t < job->tasks; t++)
        st_node_remove(core->fleet, core->tree, job, t);
}

void st_core_refresh(st_core *core, const st_job *job)
{
    for (int t = 0; t < job->tasks; t++)
        if (t == 0 || job->grants[t].node != job->grants[t - 1].node)
            st_node_refresh(core->fleet, core->tree, core->fleet->nodes.v[job->grants[t].node]);
}

/* Freed room: shapes that found no place may find one now; on a draining node it is capacity
 * that is gone for good. */
static void note_freed(st_core *core, const st_job *job)
{
    st_core_changed(core,
                    ST_CHANGED_ROOM | (job->class == ST_CLASS_GUARANTEED ? ST_CHANGED_CLASSES : 0));
    for (int t = 0; t < job->tasks; t++)
        if (core->fleet->nodes.v[job->grants[t].node]->state != ST_NODE_READY ||
            core->fleet->nodes.v[job->grants[t].node]->out)
            st_core_changed(core, ST_CHANGED_FLOORS);
}

void st_core_forget_grants(st_core *core, st_job *job)
{
    ST_ASSERT(job->grants);
    note_freed(core, job);
    remove_from_nodes(core, job);
    free(job->grants);
    job->grants = NULL;
    job->type = -1;
}

/* A rest that is over is none; one that is not goes on, wherever the job is in the meantime. */
static void end_rest(const st_core *core, st_job *job)
{
    if (!st_core_rests(core, job))
        job->rest_ms = 0;
}

/* A number that no agent can have heard of, in whatever past. */
static int next_stay(const st_core *core, const st_job *job)
{
    int last = job->id <= core->past_job ? ST_MAX(job->stay, core->past_stay) : job->stay;

    return ST_MIN(last, ST_STAY_MAX) + 1;
}

/* From here on the job runs; grants, type and class are set, residents are in place. */
static void go(st_core *core, st_job *job, st_effects *fx)
{
    bool resumed = job->state == ST_JOB_PAUSED;
    if (!resumed)
        job->stay = next_stay(core, job);
    job->times++;
    st_job_move(job, ST_JOB_RUNNING);
    job->start_ms = core->now;
    job->mark_ms = core->now - job->kept_ms;
    job->kept_ms = 0;
    job->deadline_ms = 0;
    job->promise_ms = ST_TIME_NEVER;
    end_rest(core, job);
    st_core_place(core, job, true);
    st_core_changed(core, ST_CHANGED_STANDING);
    st_core_expect(core, job);
    st_core_came_true(core, job);
    st_core_due(core, job);
    note_usage(core, job, 1);
    st_core_refresh(core, job);
    st_effect e = st_fx_of(core, resumed ? ST_FX_RESUME : ST_FX_START, job);
    e.type = job->type;
    st_fx(core, fx, e, job->grants, job->tasks);
}

/* Put the grants in place of what the job had (a paused job's memory), owned by the job now. */
static void adopt(st_core *core, st_job *job, int32_t type, st_class class, st_grant *take_grants,
                  st_effects *fx)
{
    if (class == ST_CLASS_GUARANTEED && !st_book_make_way(core, job, take_grants, fx))
        class = ST_CLASS_BURSTABLE; /* it may have to leave for a booking */
    if (job->grants)
        st_core_forget_grants(core, job);
    job->grants = take_grants;
    job->type = type;
    job->class = class;
    job->demoted = false;
    if (class == ST_CLASS_BURSTABLE)
        st_core_list_fresh(core, job);
    if (ST_BROKEN(GANG) && job->tasks > 1)
        job->grants[job->tasks - 1] = job->grants[0];
}

void st_core_start(st_core *core, st_job *job, int32_t type, st_class class, st_grant *take_grants,
                   st_effects *fx)
{
    ST_ASSERT(!job->held);
    adopt(core, job, type, class, take_grants, fx);
    charge(core, job, ST_NOW | ST_NEXT | ST_GUARANTEED, 1);
    charge_user(core, job, 1);
    add_to_nodes(core, job);
    go(core, job, fx);
}

void st_core_hold(st_core *core, st_job *job, int32_t type, st_class class, st_grant *take_grants,
                  st_effects *fx)
{
    ST_ASSERT(!job->held);
    adopt(core, job, type, class, take_grants, fx);
    job->held = true;
    core->nheld++;
    charge(core, job, ST_NEXT | ST_GUARANTEED, 1);
    charge_user(core, job, 1);
    add_to_nodes(core, job);
    st_fx(core, fx, st_fx_of(core, ST_FX_HOLD, job), job->grants, job->tasks);
}

/* Give the plan up; whoever was to leave for it still is. */
static void drop_plan(st_core *core, st_job *job, st_effects *fx)
{
    ST_ASSERT(job->held);
    note_freed(core, job);
    charge(core, job, ST_NEXT | ST_GUARANTEED, -1);
    charge_user(core, job, -1);
    job->held = false;
    core->nheld--;
    job->class = ST_CLASS_NONE;
    st_core_unlist(core, job);
    if (job->state == ST_JOB_PAUSED)
        st_core_refresh(core, job);
    else
        st_core_forget_grants(core, job);
    st_fx(core, fx, st_fx_of(core, ST_FX_UNHOLD, job), NULL, 0);
}

/* Those who were only told to leave may stay, as far as there is room and quota for them. */
static void spare_victims(st_core *core, const st_job *job, st_effects *fx)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *victim = core->jobs.v[i];
        if (victim->claimant != job->id || victim->state != ST_JOB_NOTIFIED)
            continue;
        if (victim->barred) /* it must go all the same */
            continue;
        if (st_core_stay(core, victim))
            st_fx(core, fx, st_fx_of(core, ST_FX_SPARE, victim), NULL, 0);
    }
}

/* It ends later than when its plan was made. */
static void keep_clear(st_core *core, st_job *job, st_effects *fx)
{
    if (job->class != ST_CLASS_GUARANTEED || st_book_make_way(core, job, job->grants, fx))
        return;
    st_need need = st_need_of(job, job->type);
    st_admit_charge(core->tree, job->account, &need, ST_GUARANTEED, -1);
    core->loosened++;
    job->class = ST_CLASS_BURSTABLE;
    st_core_list_fresh(core, job);
}

/* Others may have made the room: then those who were only told to leave need not. */
void st_core_start_held(st_core *core, st_job *job, st_effects *fx)
{
    ST_ASSERT(job->held);
    job->held = false;
    core->nheld--;
    charge(core, job, ST_NOW, 1);
    keep_clear(core, job, fx);
    go(core, job, fx);
    for (size_t i = 0; i < core->leaving.n; i++) {
        if (core->leaving.v[i]->claimant != job->id)
            continue;
        spare_victims(core, job, fx);
        break;
    }
}

void st_core_unhold(st_core *core, st_job *job, st_effects *fx)
{
    drop_plan(core, job, fx);
    spare_victims(core, job, fx);
}

void st_core_start_elsewhere(st_core *core, st_job *job, st_grant *take_grants, st_effects *fx)
{
    int32_t type = job->type;
    st_class class = job->shadow ? ST_CLASS_BURSTABLE : job->class; /* away from home */
    drop_plan(core, job, fx);
    st_core_start(core, job, type, class, take_grants, fx);
    spare_victims(core, job, fx); /* only now: the job's own share of quota comes first */
}

void st_core_leave(st_core *core, st_job *job, st_job_state state, uint64_t claimant)
{
    charge(core, job, ST_NEXT | ST_GUARANTEED, -1);
    if (job->class == ST_CLASS_GUARANTEED)
        st_core_changed(core, ST_CHANGED_CLASSES);
    st_job_move(job, state);
    st_core_leaves(core, job);
    st_core_changed(core, ST_CHANGED_STANDING);
    job->claimant = claimant;
    st_core_refresh(core, job);
}

/* Whether fences are open for the job: it is inside its booking. */
static bool passes(const st_job *job)
{
    return job->class == ST_CLASS_BOOKED;
}

/* Whether the job's grants fit their nodes at a moment, beside whoever is there then. */
static bool fits_beside(const st_core *core, const st_job *job, st_when when)
{
    for (int t = 0; t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[job->grants[t].node];
        if (t > 0 && job->grants[t - 1].node == node->id)
            continue;
        st_view view;
        st_view_build(core->fleet, core->tree, node, when, &view);
        for (int u = 0; u < job->tasks; u++)
            if (job->grants[u].node == node->id &&
                st_view_add(core->fleet, core->tree, node, job, &job->grants[u], &view) < 0)
                return false;
    }
    return true;
}

static bool fits_then(const st_core *core, const st_job *job, st_when when)
{
    if (passes(job))
        st_book_ajar(core, job, job->grants, true);
    bool fits = fits_beside(core, job, when);
    if (passes(job))
        st_book_ajar(core, job, job->grants, false);
    return fits;
}

bool st_core_plan_over(st_core *core, const st_job *job)
{
    st_need need = st_need_of(job, job->type);
    if (job->class == ST_CLASS_BOOKED)
        return false;
    st_admit_charge(core->tree, job->account, &need, ST_NEXT, -1);
    int n = st_admit_over(core->tree, job->account, &need, ST_NEXT, false, NULL, 0);
    st_admit_charge(core->tree, job->account, &need, ST_NEXT, 1);
    return n > 0;
}

bool st_core_ready(const st_core *core, const st_job *job)
{
    ST_ASSERT(job->held);
    return fits_then(core, job, ST_WHEN_NOW);
}

void st_core_forget_move(st_core *core, st_job *job)
{
    core->nmoving -= job->to != NULL;
    free(ST_TAKE(job->to));
}

bool st_core_stay(st_core *core, st_job *job)
{
    ST_ASSERT(job->state == ST_JOB_NOTIFIED);
    if (job->barred == ST_BAR_NODE && st_drain_leaves(core, job))
        return false;
    st_need need = st_need_of(job, job->type);
    if (job->class != ST_CLASS_BOOKED &&
        st_admit_over(core->tree, job->account, &need, ST_NEXT, false, NULL, 0) > 0)
        return false;
    job->out = ST_OUT_ENDED;                        /* what it has must not stand in its own way */
    bool fits = fits_then(core, job, ST_WHEN_NEXT); /* somebody else may count on its place */
    job->out = ST_OUT_NOT;
    if (!fits)
        return false;
    st_job_move(job, ST_JOB_RUNNING);
    st_core_left(core, job);
    st_core_changed(core, ST_CHANGED_STANDING);
    job->claimant = 0;
    st_core_forget_move(core, job);
    job->deadline_ms = 0;
    st_core_expect(core, job); /* while it was leaving nobody looked */
    st_core_due(core, job);
    /* One that was barred may be guaranteed, if nobody has its part of the floor by now. Who is inside a booking
     * needs no floor. */
    if (job->class != ST_CLASS_BOOKED &&
        !(st_shadow_at_home(job) && st_admit_guaranteed(core->tree, job->account, &need, NULL)) &&
        !ST_BROKEN(STAY))
        job->class = ST_CLASS_BURSTABLE;
    charge(core, job, ST_NEXT | ST_GUARANTEED, 1);
    st_core_refresh(core, job);
    if (job->class == ST_CLASS_BURSTABLE)
        st_core_list_fresh(core, job);
    st_core_changed(core, ST_CHANGED_CLASSES);
    return true;
}

/* Off the devices. The caller moves the state afterwards, and with keep_memory the job stays
 * a resident for its RAM. */
void st_core_release(st_core *core, st_job *job, bool keep_memory)
{
    end_rest(core, job);
    ST_ASSERT(st_job_on_devices(job) && core->placed.v[job->slot] == job);
    st_core_place(core, job, false);
    note_freed(core, job);
    bool leaving = st_job_leaving(job);
    if (leaving)
        st_core_left(core, job);
    st_life_note(st_tree_account(core->tree, job->account), job, core->now);
    job->served_ms = st_job_served_ms(job, core->now);
    st_core_changed(core, ST_CHANGED_STANDING);
    charge(core, job, leaving ? ST_NOW : ST_NOW | ST_NEXT | ST_GUARANTEED, -1);
    charge_user(core, job, -1);
    note_usage(core, job, -1);
    job->claimant = 0;
    job->barred &= (uint16_t)~ST_BAR_NODE;
    st_core_forget_move(core, job);
    job->class = ST_CLASS_NONE;
    st_core_unlist(core, job);
    job->deadline_ms = 0;
    if (!keep_memory)
        st_core_forget_grants(core, job);
}
