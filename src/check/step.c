/*
 * A step, effect by effect.
 *
 * The watch holds every job as the effects describe it. Each effect must follow from what was
 * there before it, and after the last one the jobs so described must be the jobs of the core:
 * an engine that only ever hears effects then knows everything. What it adds to check/check.c:
 *
 *   - devices are left only for a reason, and not before notice and grace are over;
 *   - what is held for a job is what it starts on;
 *   - no stay begins, and no devices are given up, before agents have said that what they were told
 *     to run is gone;
 *   - a start respects trust, ceilings and limits (growth.c);
 *   - whoever must yield may be made to (claim.c).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static bool asked_for(const st_step *step, st_event_kind kind, uint64_t id)
{
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        uint64_t named = kind == ST_EV_FINISH || kind == ST_EV_LATE ? ev->u.finish.id
                         : kind == ST_EV_GONE                       ? ev->u.gone.id
                                                                    : ev->u.id;
        if (ev->kind == kind && named == id)
            return true;
    }
    return false;
}

static void set_grants(const st_step *step, st_track *t, const st_effect *e)
{
    free(t->job.grants);
    t->job.grants = st_xcalloc((size_t)t->job.tasks, sizeof(st_grant));
    memcpy(t->job.grants, &step->fx->grants.v[e->grants_at],
           (size_t)t->job.tasks * sizeof(st_grant));
}

/* A node may fail and return in one moment, so the effects are asked, not the node. */
static bool lost_a_node(const st_step *step, const st_track *t)
{
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        bool gpu = e->kind == ST_FX_GPU;
        if ((e->kind != ST_FX_NODE && !gpu) || e->node_state != ST_NODE_FAILED)
            continue;
        for (int k = 0; t->job.grants && k < t->job.tasks; k++)
            if (t->job.grants[k].node == e->node &&
                (!gpu || (t->job.grants[k].devs >> e->other & 1)))
                return true;
    }
    return false;
}

static void off_devices(const st_step *step, st_track *t, st_job_state state)
{
    if (st_room_is_now(&t->job))
        t->ran_ms += step->now - t->started_ms;
    bool own = t->job.booking && t->job.claimant == (t->job.booking | ST_BOOKING_BIT);
    if (t->job.claimant && !own && !t->job.stopping && !lost_a_node(step, t)) {
        int64_t cooldown_ms = st_core_policy(step->core)->cooldown_ms;
        if (t->displaced_ms >= 0 && step->now < t->displaced_ms + cooldown_ms && !t->moves)
            t->rest_ms = step->now + cooldown_ms;
        t->displaced_ms = step->now;
    }
    t->job.state = state;
    t->job.stopping = false;
    t->job.class = ST_CLASS_NONE;
    t->job.claimant = 0;
    t->ordered_ms = 0;
    t->job.queued_ms = step->now;
    if (state == ST_JOB_PAUSED)
        return;
    free(t->job.grants);
    t->job.grants = NULL;
    t->job.type = -1;
}

/* ---- one effect --------------------------------------------------------------------- */

static int wrong(const st_effect *e, const st_track *t, st_err *err)
{
    return BAD("effects: %s for job %" PRIu64 ", which is %s%s", st_effect_name(e->kind), e->job,
               st_job_state_name(t->job.state), t->job.held ? " and held" : "");
}

static int whole_gang(const st_effect *e, const st_track *t, st_err *err)
{
    if (e->ngrants == t->job.tasks)
        return 0;
    return BAD("gang: %s for job %" PRIu64 " with %d grants for %d tasks", st_effect_name(e->kind),
               e->job, e->ngrants, t->job.tasks);
}

static int trust_ok(const st_step *step, const st_track *t, st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    if (t->job.shape.gpus == 0 || t->job.shape.level <= ST_LEVEL_MIG ||
        !st_room_untrusted(tree, t->job.account))
        return 0;
    return BAD("trust: job %" PRIu64 " of untrusted account %s is given a GPU at level %s",
               t->job.id, tree->accounts.v[t->job.account]->name,
               st_level_name(t->job.shape.level));
}

/* All events of a moment come before its pass, so nodes and accounts are now as they were then. */
static int nodes_ready(const st_step *step, const st_effect *e, st_err *err)
{
    for (int i = 0; i < e->ngrants; i++) {
        const st_grant *g = &step->fx->grants.v[e->grants_at + (size_t)i];
        const st_node *node = st_core_fleet(step->core)->nodes.v[g->node];
        const st_track *t = st_watch_find(step->watch, e->job);
        if (e->kind != ST_FX_RESUME && t &&
            !st_check_picked(st_core_fleet(step->core), node, &t->job))
            return BAD("nodes: %s for job %" PRIu64 " on node %s, which it does not allow",
                       st_effect_name(e->kind), e->job, node->name);
        if (node->state != ST_NODE_READY)
            return BAD("drained: %s for job %" PRIu64 " on node %s, which is %s",
                       st_effect_name(e->kind), e->job, node->name,
                       st_node_state_name(node->state));
        if (node->out & g->devs)
            return BAD("GPU: %s for job %" PRIu64 " on GPUs %#x of node %s, of which %#x are out",
                       st_effect_name(e->kind), e->job, (unsigned)g->devs, node->name,
                       (unsigned)node->out);
    }
    return 0;
}

/* A plan keeps what it was made with, wherever it starts; what comes new may borrow only with a
 * weight. */
static int may_borrow(const st_step *step, const st_track *t, const st_effect *e, st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    if (t->job.held || t->held_before || e->class != ST_CLASS_BURSTABLE)
        return 0;
    for (int32_t a = t->job.account; a > ST_ROOT; a = tree->accounts.v[a]->parent)
        if (tree->accounts.v[a]->weight_m == 0)
            return BAD("weight: job %" PRIu64 " borrows, and account %s has weight 0", e->job,
                       tree->accounts.v[a]->name);
    const st_job *live = st_core_job(step->core, e->job);
    const st_grant *place;
    if (step->now < t->rest_ms && live && !(st_core_has_home(live, &place) && place))
        return BAD("cooldown: job %" PRIu64
                   " was displaced again too soon and borrows before %" PRId64,
                   e->job, t->rest_ms);
    return 0;
}

/* Whether the job may be given, or promised, what the effect says. */
static int may_have(const st_step *step, const st_track *t, const st_effect *e, st_err *err)
{
    int rc = whole_gang(e, t, err);
    if (rc == 0)
        rc = nodes_ready(step, e, err);
    if (rc == 0)
        rc = trust_ok(step, t, err);
    if (rc == 0)
        rc = may_borrow(step, t, e, err);
    return rc;
}

static bool has_agent(const st_step *step, const st_effect *e)
{
    for (int i = 0; i < e->ngrants; i++)
        if (st_core_fleet(step->core)
                ->nodes.v[step->fx->grants.v[e->grants_at + (size_t)i].node]
                ->agent)
            return true;
    return false;
}

static int on_start(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    st_job_state from = e->kind == ST_FX_START ? ST_JOB_PENDING : ST_JOB_PAUSED;
    if (t->job.state != from || t->job.stopping)
        return wrong(e, t, err);
    if (t->told && e->kind == ST_FX_START)
        return BAD("stays: job %" PRIu64
                   " starts, and its agents have not said that its last stay is over",
                   e->job);
    int rc = may_have(step, t, e, err);
    if (rc < 0)
        return rc;
    t->told = has_agent(step, e);
    const st_grant *given = &step->fx->grants.v[e->grants_at];
    for (int i = 0; t->job.held && i < t->job.tasks; i++)
        if (given[i].node != t->job.grants[i].node || given[i].devs != t->job.grants[i].devs ||
            given[i].mig_start != t->job.grants[i].mig_start)
            return BAD("hold: job %" PRIu64 " does not start on what was held for it", e->job);
    set_grants(step, t, e);
    t->job.state = ST_JOB_RUNNING;
    t->job.held = false;
    t->job.type = (int32_t)e->type;
    t->job.class = e->class;
    t->started_ms = step->now;
    t->started = true;
    step->watch->counts.starts++;
    return 0;
}

static int on_hold(const st_step *step, st_track *t, const st_effect *e, size_t at, st_err *err)
{
    if ((t->job.state != ST_JOB_PENDING && t->job.state != ST_JOB_PAUSED) || t->job.held)
        return wrong(e, t, err);
    int rc = may_have(step, t, e, err);
    if (rc == 0)
        rc = st_watch_claim(step, at, err);
    if (rc < 0)
        return rc;
    set_grants(step, t, e);
    t->job.held = true;
    t->job.class = e->class;
    if (t->job.shape.gpus > 0)
        t->job.type = st_core_fleet(step->core)->nodes.v[t->job.grants[0].node]->type;
    return 0;
}

static int on_unhold(st_track *t, const st_effect *e, st_err *err)
{
    if (!t->job.held)
        return wrong(e, t, err);
    t->job.held = false;
    t->job.class = ST_CLASS_NONE;
    if (t->job.state == ST_JOB_PENDING) {
        free(t->job.grants);
        t->job.grants = NULL;
        t->job.type = -1;
    }
    return 0;
}

static int on_notify(const st_step *step, st_track *t, const st_effect *e, size_t at, st_err *err)
{
    bool sooner = t->job.state == ST_JOB_NOTIFIED &&
                  (t->ordered_ms == 0 || e->until_ms < t->ordered_ms) &&
                  e->other == t->job.claimant && st_watch_drains(step, t);
    if (sooner) { /* told again, for its node needs it gone before that */
        t->ordered_ms = ST_MAX(e->until_ms, 1);
        return 0;
    }
    if (t->job.state != ST_JOB_RUNNING)
        return wrong(e, t, err);
    int rc = 0;
    if (e->other & ST_BOOKING_BIT)
        rc = st_watch_booking_victim(step, t, e, err);
    else if (e->other || !(asked_for(step, ST_EV_BAR, e->job) || st_watch_closes(step, t) ||
                           st_watch_drains(step, t)))
        rc = st_watch_victim(step, at, err);
    if (rc < 0)
        return rc;
    t->ordered_ms = e->other && !e->ordered ? 0 : ST_MAX(e->until_ms, 1);
    t->moves = e->moves != 0;
    t->job.state = ST_JOB_NOTIFIED;
    t->job.claimant = e->other;
    t->notified_ms = step->now;
    t->save_by_ms = 0;
    t->saved = false;
    step->watch->counts.preemptions++;
    return 0;
}

static int notice_over(const st_step *step, const st_track *t, const char *what, st_err *err)
{
    const st_policy *policy = st_core_policy(step->core);
    int64_t had = step->now - t->notified_ms;
    if (t->ordered_ms > step->now)
        return BAD("notice: job %" PRIu64 " %s at %" PRId64 ", it was given until %" PRId64,
                   t->job.id, what, step->now, t->ordered_ms);
    if (had < policy->notice_ms && !t->ordered_ms)
        return BAD("notice: job %" PRIu64 " %s after %" PRId64 " ms, the notice is %" PRId64,
                   t->job.id, what, had, policy->notice_ms);
    bool saves = t->job.yield == ST_YIELD_CHECKPOINT ||
                 (t->job.yield == ST_YIELD_PAUSE && !st_watch_empties(step, t));
    if (st_watch_drained(step, t))
        return 0; /* the deadline of its node is kept whatever the grace is */
    bool saved = t->saved || asked_for(step, ST_EV_CHECKPOINTED, t->job.id);
    int64_t grace_ms = st_watch_grace_ms(step->core, t);
    if (!saves || saved || strcmp(what, "is told to save") == 0)
        return 0;
    had = t->job.state == ST_JOB_CHECKPOINTING ? step->now - t->checkpoint_ms : 0;
    if (had < grace_ms)
        return BAD("grace: job %" PRIu64 " %s after %" PRId64
                   " ms and has not saved, the grace is %" PRId64,
                   t->job.id, what, had, grace_ms);
    return 0;
}

static int on_checkpoint(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    if (t->job.state != ST_JOB_NOTIFIED)
        return wrong(e, t, err);
    int rc = notice_over(step, t, "is told to save", err);
    if (rc == 0)
        rc = st_watch_saving(step, t, e, err);
    t->job.state = ST_JOB_CHECKPOINTING;
    t->checkpoint_ms = step->now;
    /* A node of it drains, or did when the step began, and may be given back in this very step. */
    bool sooner = e->until_ms < step->now + st_core_policy(step->core)->grace_ms;
    t->save_by_ms = sooner && st_watch_drains(step, t) ? e->until_ms : 0;
    t->saved = asked_for(step, ST_EV_CHECKPOINTED, e->job); /* said in the same moment */
    return rc;
}

/* Whether the job may end like this, by itself or by its limit or by somebody's wish. */
static int may_end(const st_step *step, const st_track *t, const st_effect *e, st_job_state state,
                   st_err *err)
{
    bool on = st_room_is_now(&t->job);
    int64_t ran = t->ran_ms + (on ? step->now - t->started_ms : 0);
    bool with_its_node = t->job.fails && lost_a_node(step, t);
    if ((state == ST_JOB_FAILED && !with_its_node) || state == ST_JOB_TIMEOUT) {
        int rc = st_watch_last_try(step, t, state, err);
        if (rc < 0)
            return rc;
    }
    if (state == ST_JOB_CANCELLED && e->never)
        return st_watch_never(t, e) ? 0 : wrong(e, t, err);
    if (state == ST_JOB_DONE || state == ST_JOB_FAILED) {
        if (t->job.state == ST_JOB_PENDING && t->started && asked_for(step, ST_EV_LATE, e->job))
            return 0;
        if (!(state == ST_JOB_FAILED && with_its_node) &&
            (!on || !asked_for(step, ST_EV_FINISH, e->job)))
            return wrong(e, t, err);
    } else if (state == ST_JOB_TIMEOUT) {
        bool by = t->job.end_by_ms && t->job.end_by_ms <= step->now;
        if (!by && (!on || ran < ST_MIN(t->job.limit_ms, t->limit_before_ms)))
            return BAD("limit: job %" PRIu64 " times out after %" PRId64 " ms of %" PRId64, e->job,
                       ran, t->job.limit_ms);
    } else if (state == ST_JOB_CANCELLED && !asked_for(step, ST_EV_CANCEL, e->job)) {
        if ((!t->job.claimant && !t->ordered_ms) || t->job.yield != ST_YIELD_CANCEL)
            return wrong(e, t, err);
        return notice_over(step, t, "is ended", err);
    }
    return 0;
}

/* Whether it may be sent back to the queue: it lost a node, or its notice is over. */
static int may_leave(const st_step *step, const st_track *t, const st_effect *e, st_err *err)
{
    if (lost_a_node(step, t) || t->job.state == ST_JOB_PAUSED ||
        asked_for(step, ST_EV_UNSTARTED, e->job))
        return 0;
    if (t->job.state == ST_JOB_RUNNING)
        return BAD("reclaim: job %" PRIu64 " is off its devices without notice", e->job);
    return notice_over(step, t, "is off its devices", err);
}

/* Whether agents have said that what they were told to run is gone: with the job's end, or after it was
 * told to stop. Of a gang the first failure is no such word. */
static int gone(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    bool ended = asked_for(step, ST_EV_FINISH, e->job) &&
                 (e->state == ST_JOB_DONE || t->job.tasks == 1 || !t->told);
    if (t->told && !asked_for(step, ST_EV_GONE, e->job) && !ended)
        return BAD("stays: %s for job %" PRIu64
                   ", and its agents have not said that its stay is over",
                   st_effect_name(e->kind), e->job);
    t->told = false;
    return 0;
}

/* Why it stops is why it would leave. */
static int on_stop(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    bool paused = t->job.state == ST_JOB_PAUSED;
    int rc = 0;
    if ((!st_room_is_now(&t->job) && !paused) || t->job.held || !t->told)
        return wrong(e, t, err);
    if (e->after == ST_JOB_CANCELLED || e->after == ST_JOB_TIMEOUT || e->after == ST_JOB_FAILED)
        rc = may_end(step, t, e, (st_job_state)e->after, err);
    else if (e->after == ST_JOB_PENDING && st_watch_again(step, t))
        t->job.again = true;
    else if (e->after == ST_JOB_PENDING)
        rc = t->job.fails && lost_a_node(step, t) && !st_watch_fails(step, e->job)
                 ? BAD("on_fault: job %" PRIu64 " waits again, and should have failed", e->job)
                 : may_leave(step, t, e, err);
    else
        rc = wrong(e, t, err);
    bool own = t->job.booking && e->other == (t->job.booking | ST_BOOKING_BIT);
    if (t->job.claimant && e->other && !own && !t->job.stopping && !lost_a_node(step, t))
        t->displaced_ms = step->now;
    t->job.stopping = true;
    t->job.after = (st_job_state)e->after;
    t->job.claimant = e->other;
    if (!paused)
        t->job.state = ST_JOB_STOPPING;
    return rc;
}

static int on_requeue(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    int rc = 0;
    bool paused = t->job.state == ST_JOB_PAUSED;
    if (t->job.state == ST_JOB_PENDING || t->job.held)
        return wrong(e, t, err);
    if (e->kind == ST_FX_PAUSE && (t->job.state != ST_JOB_CHECKPOINTING || !t->saved))
        return wrong(e, t, err);
    if (e->kind == ST_FX_REQUEUE && t->job.stopping && t->job.after != ST_JOB_PENDING)
        return wrong(e, t, err);
    if (e->kind == ST_FX_REQUEUE)
        rc = gone(step, t, e, err);
    if (rc == 0 && !t->job.stopping && !paused)
        rc = may_leave(step, t, e, err);
    if (asked_for(step, ST_EV_UNSTARTED, e->job))
        t->job.claimant = 0; /* it leaves for nobody */
    if (e->kind == ST_FX_PAUSE)
        t->job.pause_ms = step->now - t->checkpoint_ms;
    off_devices(step, t, e->kind == ST_FX_PAUSE ? ST_JOB_PAUSED : ST_JOB_PENDING);
    return rc;
}

/* Its tasks have failed, or its limit has ended them, and that was not the last try. */
static int on_retry(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    int rc = t->job.stopping && t->job.after != ST_JOB_PENDING ? wrong(e, t, err)
                                                               : st_watch_retry(step, t, e, err);
    if (rc == 0 && st_room_is_now(&t->job))
        rc = gone(step, t, e, err);
    t->job.held = false;
    t->job.claimant = 0; /* it leaves for nobody */
    off_devices(step, t, ST_JOB_PENDING);
    t->ran_ms = 0;
    return rc;
}

static int on_end(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    int rc = 0;
    if (t->job.held)
        return wrong(e, t, err);
    if (!t->job.stopping)
        rc = may_end(step, t, e, e->state, err);
    else if (e->state != t->job.after && e->state != ST_JOB_DONE && e->state != ST_JOB_FAILED)
        rc = wrong(e, t, err);
    if (rc == 0)
        rc = gone(step, t, e, err);
    uint64_t array = t->job.array;
    st_watch_drop(step->watch, e->job);
    st_watch_flow_ended(step, e->job, array, e->state);
    return rc;
}

static int on_class(const st_step *step, st_track *t, const st_effect *e, st_err *err)
{
    if (!st_room_is_now(&t->job))
        return wrong(e, t, err);
    bool longer = false; /* with another limit it may be in the way of a booking */
    for (size_t i = 0; i < step->nevents; i++)
        longer |= step->events[i]->kind == ST_EV_LIMIT && step->events[i]->u.limit.id == e->job;
    if (e->class == ST_CLASS_BURSTABLE && !step->promises_moved && !longer && !t->lifted)
        return BAD("class: job %" PRIu64 " is no longer guaranteed although no floor changed",
                   e->job);
    t->job.class = e->class;
    return 0;
}

static int on_effect(const st_step *step, size_t at, st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    if (e->at_ms != step->now)
        return BAD("effects: %s is dated %" PRId64 ", it is %" PRId64, st_effect_name(e->kind),
                   e->at_ms, step->now);
    if (e->kind == ST_FX_DRAIN)
        return st_watch_told_drain(step, e, err);
    if (e->kind == ST_FX_FLOOR || e->kind == ST_FX_NODE || e->kind == ST_FX_BOOKING ||
        e->kind == ST_FX_INCIDENT || e->kind == ST_FX_GPU)
        return 0;
    st_track *t = st_watch_find(step->watch, e->job);
    if ((t == NULL) != (e->kind == ST_FX_QUEUED))
        return BAD("effects: %s for job %" PRIu64 ", which is %s", st_effect_name(e->kind), e->job,
                   t ? "there already" : "not there");
    switch (e->kind) {
    case ST_FX_QUEUED:
        st_watch_add(step, e->job);
        return 0;
    case ST_FX_START:
    case ST_FX_RESUME:
        return on_start(step, t, e, err);
    case ST_FX_CLASS:
        return on_class(step, t, e, err);
    case ST_FX_HOLD:
        return on_hold(step, t, e, at, err);
    case ST_FX_UNHOLD:
        return on_unhold(t, e, err);
    case ST_FX_NOTIFY:
        return on_notify(step, t, e, at, err);
    case ST_FX_SPARE:
        if (t->job.state != ST_JOB_NOTIFIED)
            return wrong(e, t, err);
        t->job.state = ST_JOB_RUNNING;
        t->job.claimant = 0;
        t->lifted = t->ordered_ms != 0;
        t->ordered_ms = 0;
        return 0;
    case ST_FX_CHECKPOINT:
        return on_checkpoint(step, t, e, err);
    case ST_FX_STOP:
        return on_stop(step, t, e, err);
    case ST_FX_PAUSE:
    case ST_FX_REQUEUE:
        return on_requeue(step, t, e, err);
    case ST_FX_RETRY:
        return on_retry(step, t, e, err);
    case ST_FX_END:
        return on_end(step, t, e, err);
    default:
        return BAD("effects: kind %d is unknown", (int)e->kind);
    }
}

/* ---- before and after --------------------------------------------------------------- */

static int same_job(const st_core *core, st_track *t, st_err *err)
{
    const st_job *job = st_core_job(core, t->job.id);
    if (!job)
        return BAD("effects: job %" PRIu64 " is gone and no effect said so", t->job.id);
    if (job->state != t->job.state || job->held != t->job.held || job->stopping != t->job.stopping)
        return BAD("effects: job %" PRIu64 " is %s%s, by its effects it is %s%s", job->id,
                   st_job_state_name(job->state), job->held ? " and held" : "",
                   st_job_state_name(t->job.state), t->job.held ? " and held" : "");
    if (!job->held && job->class != t->job.class)
        return BAD("effects: job %" PRIu64 " is %s, by its effects it is %s", job->id,
                   st_class_name(job->class), st_class_name(t->job.class));
    t->job.booking = job->booking;
    t->job.class = job->class; /* of a plan it is not told; st_check sees whether floors carry it */
    if ((job->barred ^ t->job.barred) & ST_BAR_ORDER)
        return BAD("effects: job %" PRIu64 " is %sbarred, by its events it is not so", job->id,
                   job->barred ? "" : "not ");
    int rc = st_watch_window(core, t, job, err);
    if (rc == 0)
        rc = st_watch_flow(core, t, job, err);
    if (rc < 0)
        return rc;
    t->job.barred = job->barred; /* by its window as the clock says */
    if (job->priority != t->job.priority)
        return BAD("effects: job %" PRIu64 " has priority %d, by its events %d", job->id,
                   job->priority, t->job.priority);
    if (job->claimant != t->job.claimant || job->type != t->job.type)
        return BAD("effects: job %" PRIu64 " yields to %" PRIu64 " on type %d, by its effects to "
                   "%" PRIu64 " on %d",
                   job->id, job->claimant, job->type, t->job.claimant, t->job.type);
    for (int i = 0; job->grants && t->job.grants && i < job->tasks; i++)
        if (job->grants[i].node != t->job.grants[i].node ||
            job->grants[i].devs != t->job.grants[i].devs ||
            job->grants[i].mig_start != t->job.grants[i].mig_start)
            return BAD("effects: job %" PRIu64 " is not where its effects put it", job->id);
    if (st_room_is_now(job) && !job->stopping && job->limit_ms != ST_TIME_NEVER &&
        st_core_now(core) - t->started_ms >= job->limit_ms)
        return BAD("limit: job %" PRIu64 " runs for %" PRId64 " ms, its limit is %" PRId64, job->id,
                   st_core_now(core) - t->started_ms, job->limit_ms);
    return 0;
}

static int same_jobs(const st_step *step, st_err *err)
{
    const st_watch *w = step->watch;
    for (size_t i = 0; i < w->tracks.n; i++) {
        int rc = same_job(step->core, w->tracks.v[i], err);
        if (rc < 0)
            return rc;
    }
    if (st_core_njobs(step->core) != w->tracks.n)
        return BAD("effects: %zu jobs are there, by the effects %zu", st_core_njobs(step->core),
                   w->tracks.n);
    return 0;
}

/* What the events say about a job that was there already. */
static void hear(const st_step *step, st_track *t)
{
    t->saved |= asked_for(step, ST_EV_CHECKPOINTED, t->job.id);
    t->limit_before_ms = t->job.limit_ms;
    st_watch_harm(step, t);
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        if (ev->kind == ST_EV_PRIORITY && ev->u.priority.id == t->job.id)
            t->job.priority = ev->u.priority.priority;
        if (ev->kind == ST_EV_LIMIT && ev->u.limit.id == t->job.id)
            t->job.limit_ms = ev->u.limit.limit_ms;
        if (ev->kind == ST_EV_BAR && ev->u.bar.id == t->job.id)
            t->job.barred = (uint16_t)((t->job.barred & ~(unsigned)ST_BAR_ORDER) | ev->u.bar.on);
    }
    st_watch_flow_hear(step, t);
}

/* Whether a node became or ceased to be somebody's home: one that was draining and fails takes no
 * capacity with it, and yet its account is at home elsewhere from then on. */
static bool homes_moved(const st_step *step)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    st_watch *w = step->watch;
    bool moved = false;
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        if (i == w->homes.n)
            st_vec_push(&w->homes, 0);
        moved |= w->homes.v[i] != fleet->nodes.v[i]->home;
        w->homes.v[i] = fleet->nodes.v[i]->home;
    }
    return moved;
}

/* Notes what the step began with; true when floors, capacity or homes moved. */
static bool begin(st_step *step)
{
    st_watch *w = step->watch;
    const st_tree *tree = st_core_tree(step->core);
    for (size_t i = 0; i < w->tracks.n; i++) {
        st_track *t = w->tracks.v[i];
        t->class_before = t->job.class;
        t->lifted = false;
        t->held_before = t->job.held;
        hear(step, t);
    }
    bool moved = w->floors.n != tree->accounts.n ||
                 memcmp(&w->capacity, &tree->capacity, sizeof w->capacity) != 0;
    for (size_t i = 0; !moved && i < tree->accounts.n; i++)
        moved = memcmp(&w->floors.v[i], &tree->accounts.v[i]->floor, sizeof(st_quota)) != 0;
    /* Whether an account has a home of its own depends on those below it, weights included; whom
     * a home carries, on what its pool allows and which labels nodes have. */
    for (size_t i = 0; i < step->nevents; i++) {
        st_event_kind kind = step->events[i]->kind;
        moved |= (kind == ST_EV_ACCOUNT || kind == ST_EV_ACCOUNT_REMOVE ||
                  kind == ST_EV_POOL_CHANGE || kind == ST_EV_LABELS) &&
                 st_core_policy(step->core)->as_if_alone;
    }
    moved |= homes_moved(step);
    w->capacity = tree->capacity;
    st_vec_clear(&w->floors);
    for (size_t i = 0; i < tree->accounts.n; i++)
        st_vec_push(&w->floors, tree->accounts.v[i]->floor);
    return moved;
}

/* Whether somebody may have more after the step than before: everything else gives up, or moves nobody. */
static bool may_grow(const st_effects *fx)
{
    for (size_t i = 0; i < fx->list.n; i++) {
        st_effect_kind kind = fx->list.v[i].kind;
        if (kind == ST_FX_START || kind == ST_FX_RESUME || kind == ST_FX_HOLD ||
            kind == ST_FX_SPARE)
            return true;
    }
    return false;
}

int st_watch_step(st_watch *watch, const st_core *core, const st_event *const *events,
                  size_t nevents, const st_effects *fx, st_err *err)
{
    st_step step = {.watch = watch,
                    .core = core,
                    .events = events,
                    .nevents = nevents,
                    .fx = fx,
                    .now = st_core_now(core)};
    step.promises_moved = begin(&step);
    st_watch_flow_begin(&step);
    st_growth before, after;
    bool grows = may_grow(fx);
    if (grows)
        st_growth_take(&step, &before);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < fx->list.n; i++)
        rc = on_effect(&step, i, err);
    if (rc == 0)
        rc = same_jobs(&step, err);
    if (rc == 0)
        rc = st_watch_arrays(&step, err);
    if (rc == 0)
        rc = st_watch_nodes(&step, err);
    if (rc == 0)
        rc = st_watch_incidents(&step, err);
    if (rc == 0)
        rc = st_watch_reserved(&step, err);
    if (rc == 0)
        rc = st_watch_turns(&step, err);
    if (rc == 0)
        rc = st_watch_book_quota(&step, err);
    watch->due_ms = st_core_next_timer(core);
    st_watch_note_drains(&step);
    if (!grows)
        return rc;
    st_growth_take(&step, &after);
    if (rc == 0)
        rc = st_growth_check(&step, &before, &after, err);
    st_growth_done(&before);
    st_growth_done(&after);
    return rc;
}
