/* What each event changes. Every handler checks first and changes afterwards, so a refused
 * event leaves no trace. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/flow.h"
#include "core/shadow.h"

static int need_job(const st_core *core, uint64_t id, st_job **ret, st_err *err)
{
    *ret = st_core_find(core, id);
    if (!*ret)
        return st_fail(err, ST_ENOENT, "job %" PRIu64 " does not exist or has ended", id);
    return 0;
}

static int on_type(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    return st_fleet_add_type(core->fleet, ev->u.type.name, ev->u.type.vram_mib, ev->u.type.board,
                             err);
}

static int on_pool(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    int rc = st_fleet_add_pool(core->fleet, ev->u.pool.name, ev->u.pool.levels,
                               ev->u.pool.oversub_m, err);
    if (rc < 0)
        return rc;
    int32_t pool = st_fleet_pool(core->fleet, ev->u.pool.name);
    rc = st_fleet_set_rules(core->fleet, pool, &ev->u.pool.rules, err);
    if (rc < 0)
        st_fleet_remove_pool(core->fleet, pool); /* as if it had not been */
    return rc;
}

static int on_node(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    int32_t id;
    int rc = st_fleet_add_node(core->fleet, &ev->u.node, &id, err);
    if (rc < 0)
        return rc;
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_effect e = st_fx_of(core, ST_FX_NODE, NULL);
    e.node = id;
    e.node_state = ST_NODE_READY;
    st_fx(core, fx, e, NULL, 0);
    return 0;
}

/* Whom a tenant may share a GPU with cannot change under jobs that do. */
static int check_trust(const st_core *core, const st_account_spec *spec, st_err *err)
{
    int32_t id = spec->name ? st_tree_find(core->tree, spec->name) : -1;
    if (id < 0)
        return 0;
    const st_account *a = st_tree_account(core->tree, id);
    if (a->trust == spec->trust && a->own_domain == spec->own_domain)
        return 0;
    for (size_t i = 0; i < core->jobs.n; i++) {
        const st_job *job = core->jobs.v[i];
        bool fenced = job->shape.level == ST_LEVEL_WHOLE || job->shape.level == ST_LEVEL_MIG;
        if (!fenced && st_tree_within(core->tree, job->account, id))
            return st_fail(err, ST_ESTATE,
                           "account %s: its trust cannot change while job %s shares a GPU or "
                           "waits to; cancel such jobs first",
                           spec->name, job->name);
    }
    return 0;
}

static int on_account(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    int rc = check_trust(core, &ev->u.account, err);
    if (rc == 0)
        rc = st_book_check_account(core, &ev->u.account, err);
    if (rc == 0)
        rc = st_tree_set(core->tree, &ev->u.account, NULL, err);
    if (rc < 0)
        return rc;
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_core_retime_all(core);
    return 0;
}

/* It must be empty; what it has used and lost stays in the records of those above. */
static int on_account_remove(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    const char *name = ev->u.account.name;
    int32_t id = name ? st_tree_find(core->tree, name) : -1;
    if (id < 0)
        return st_fail(err, ST_ENOENT, "account %s does not exist", name ? name : "(none)");
    for (size_t i = 0; i < core->jobs.n; i++)
        if (core->jobs.v[i]->account == id && !ST_BROKEN(REMOVE))
            return st_fail(
                err, ST_ESTATE,
                "account %s: job %s is %s; cancel its jobs, or wait until they have ended", name,
                core->jobs.v[i]->name, st_job_state_name(core->jobs.v[i]->state));
    for (size_t i = 0; i < core->bookings.n; i++)
        if (core->bookings.v[i]->account == id)
            return st_fail(err, ST_ESTATE, "account %s: booking %s is %s; cancel it first", name,
                           core->bookings.v[i]->name,
                           st_booking_state_name(core->bookings.v[i]->state));
    int rc = st_tree_remove(core->tree, id, err);
    if (rc < 0)
        return rc;
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_core_retime_all(core);
    return 0;
}

static int on_submit(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    return st_core_submit(core, &ev->u.job, fx, err);
}

static int on_finish(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.finish.id, &job, err);
    if (rc < 0)
        return rc;
    if (!st_job_on_devices(job))
        return st_fail(err, ST_ESTATE, "job %s is %s and cannot finish", job->name,
                       st_job_state_name(job->state));
    /* Of a gang the first failure is told, and the others are still there. */
    bool there = ev->u.finish.failed && job->tasks > 1;
    if (there && job->stopping)
        return 0; /* which it brought about */
    if (job->stopping)
        job->claimant = 0; /* it ended by itself */
    st_core_learn(core, job);
    bool again = ev->u.finish.failed && !ev->u.finish.final &&
                 (!job->stopping || job->after == ST_JOB_PENDING);
    if (again && st_retry_may(core, job, ST_JOB_FAILED))
        st_core_retry(core, job, there, fx);
    else if (there)
        st_core_end(core, job, ST_JOB_FAILED, fx);
    else
        st_core_end_now(core, job, ev->u.finish.failed ? ST_JOB_FAILED : ST_JOB_DONE, fx);
    return 0;
}

static int on_gone(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.gone.id, &job, err);
    if (rc < 0)
        return rc;
    if (!job->stopping)
        return st_fail(err, ST_ESTATE, "job %s is %s and was not told to stop", job->name,
                       st_job_state_name(job->state));
    st_core_gone(core, job, ev->u.gone.done, fx);
    return 0;
}

static int on_cancel(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.id, &job, err);
    if (rc < 0)
        return rc;
    bool quietly = st_core_parts_quietly(core, job);
    st_core_end(core, job, ST_JOB_CANCELLED, fx);
    core->parted |= quietly;
    if (!quietly)
        st_core_changed(core, ST_CHANGED_WAITING);
    return 0;
}

static int on_checkpointed(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.id, &job, err);
    if (rc < 0)
        return rc;
    if (!st_job_on_devices(job) || job->stopping)
        return st_fail(err, ST_ESTATE, "job %s is %s and has nothing to save", job->name,
                       st_job_state_name(job->state));
    st_core_checkpointed(core, job, fx);
    return 0;
}

/* For the node's reasons, so it waits again as it did before; what it lost is nothing. */
static int on_unstarted(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.id, &job, err);

    if (rc < 0)
        return rc;
    if (!st_job_on_devices(job) || job->stopping)
        return st_fail(err, ST_ESTATE, "job %s is %s and is not being started", job->name,
                       st_job_state_name(job->state));
    job->claimant = 0; /* it leaves because it never ran, whoever it was to leave for */
    st_core_requeue(core, job, fx);
    return 0;
}

/* A state of the past goes on, and what was given out since is not known: it is not given out again. */
static int on_branch(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx, (void)err;
    core->past_job = ST_MAX(core->past_job, ev->u.branch.job);
    core->past_stay = ST_MAX(core->past_stay, ev->u.branch.stay);
    core->tree->serials = ST_MAX(core->tree->serials, ev->u.branch.serial);
    return 0;
}

/* Every agent was asked, and nobody has it; so there is nobody to wait for. What it did since its last save is lost. */
static int on_absent(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.id, &job, err);

    if (rc < 0)
        return rc;
    if (job->stopping) {
        st_core_gone(core, job, false, fx);
        return 0;
    }
    if (!st_job_on_devices(job) && job->state != ST_JOB_PAUSED)
        return st_fail(err, ST_ESTATE, "job %s is %s and should be nowhere", job->name,
                       st_job_state_name(job->state));
    st_core_restart(core, job);
    st_core_requeue_now(core, job, fx);
    return 0;
}

/* It waits again because nobody had heard of it, and was over: that counts as long as no other stay has begun, which is for
 * the caller to know. */
static int on_late(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    st_job *job;
    int rc = need_job(core, ev->u.finish.id, &job, err);
    if (rc < 0)
        return rc;
    if (job->state != ST_JOB_PENDING || job->stay == 0)
        return st_fail(err, ST_ESTATE, "job %s is %s and does not wait for another stay", job->name,
                       st_job_state_name(job->state));
    if (ev->u.finish.failed && !ev->u.finish.final && st_retry_may(core, job, ST_JOB_FAILED))
        st_core_retry_now(core, job, fx);
    else
        st_core_end_now(core, job, ev->u.finish.failed ? ST_JOB_FAILED : ST_JOB_DONE, fx);
    return 0;
}

static int on_priority(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    st_job *job;
    int rc = need_job(core, ev->u.priority.id, &job, err);
    if (rc < 0)
        return rc;
    if (ev->u.priority.priority < -ST_PRIO_MAX || ev->u.priority.priority > ST_PRIO_MAX)
        return st_fail(err, ST_ERANGE, "job %s: priority is out of range", job->name);
    job->priority = ev->u.priority.priority;
    core->lowest = ST_MIN(core->lowest, job->priority);
    st_shadow_priority(core, job);
    st_core_changed(core, ST_CHANGED_STANDING);
    return 0;
}

static int on_told(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    st_job *job;
    int rc = need_job(core, ev->u.told.id, &job, err);
    if (rc < 0)
        return rc;
    if (job->state != ST_JOB_PENDING && job->state != ST_JOB_PAUSED)
        return st_fail(err, ST_ESTATE, "job %s is %s and waits for no start", job->name,
                       st_job_state_name(job->state));
    if (ev->u.told.start_ms < 0 || ev->u.told.start_ms == ST_TIME_NEVER)
        return st_fail(err, ST_ERANGE, "job %s: an estimated start must be a moment, not %" PRId64,
                       job->name, ev->u.told.start_ms);
    job->told_ms = ST_MAX(ev->u.told.start_ms, core->now);
    job->told_at_ms = core->now;
    return 0;
}

static int on_timer(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)core, (void)ev, (void)fx, (void)err;
    return 0; /* what is due has been seen to already */
}

static int on_policy(st_core *core, const st_event *ev, st_effects *fx, st_err *err)
{
    (void)fx;
    const st_policy *p = &ev->u.policy;
#define X(field, key, kind, def, lo, hi, what)                                                     \
    if (p->field < (lo) || p->field > (hi))                                                        \
        return st_fail(err, ST_ERANGE,                                                             \
                       "policy %s: %" PRId64 " is outside %" PRId64 " to %" PRId64, key, p->field, \
                       (int64_t)(lo), (int64_t)(hi));
    ST_POLICY_TABLE(X)
#undef X
    if (p->order < 0 || p->order >= ST_ORDER_COUNT || p->counts < 0 || p->counts > ST_COUNTS_TOTAL)
        return st_fail(err, ST_EINVAL, "policy: order or basis is unknown");
    if (p->as_if_alone && core->bookings.n > 0)
        return st_fail(err, ST_ESTATE, "policy as_if_alone: there are bookings; cancel them first");
    core->policy = *p;
    st_core_nodes_set_due(
        core); /* notice and grace say when those on a node that drains are told */
    st_core_changed(core, ST_CHANGED_FLOORS | ST_CHANGED_ROOM);
    st_core_retime_all(core);
    return 0;
}

typedef int handler(st_core *core, const st_event *ev, st_effects *fx, st_err *err);

static handler *const handlers[ST_EV_COUNT] = {
    [ST_EV_TIMER] = on_timer,
    [ST_EV_TYPE] = on_type,
    [ST_EV_POOL] = on_pool,
    [ST_EV_NODE] = on_node,
    [ST_EV_NODE_STATE] = st_core_node_state,
    [ST_EV_ACCOUNT] = on_account,
    [ST_EV_SUBMIT] = on_submit,
    [ST_EV_FINISH] = on_finish,
    [ST_EV_CANCEL] = on_cancel,
    [ST_EV_CHECKPOINTED] = on_checkpointed,
    [ST_EV_PRIORITY] = on_priority,
    [ST_EV_POLICY] = on_policy,
    [ST_EV_TOLD] = on_told,
    [ST_EV_POOL_CHANGE] = st_core_pool_change,
    [ST_EV_UNSTARTED] = on_unstarted,
    [ST_EV_POOL_REMOVE] = st_core_pool_remove,
    [ST_EV_ACCOUNT_REMOVE] = on_account_remove,
    [ST_EV_AGENT] = st_core_node_agent,
    [ST_EV_TEST] = st_core_node_test,
    [ST_EV_TESTED] = st_core_node_tested,
    [ST_EV_LABELS] = st_core_node_labels,
    [ST_EV_INCIDENT] = st_core_incident_reset,
    [ST_EV_GONE] = on_gone,
    [ST_EV_LATE] = on_late,
    [ST_EV_LIMIT] = st_core_set_limit,
    [ST_EV_BAR] = st_core_bar,
    [ST_EV_BRANCH] = on_branch,
    [ST_EV_HOLD] = st_core_hold_job,
    [ST_EV_ARRAY] = st_core_throttle,
    [ST_EV_ABSENT] = on_absent,
    [ST_EV_BOOK] = st_core_book,
    [ST_EV_BOOK_CONFIRM] = st_core_book_confirm,
    [ST_EV_BOOK_CANCEL] = st_core_book_cancel,
    [ST_EV_BOOK_CHANGE] = st_core_book_change,
};

int st_core_apply(st_core *core, const st_event *event, int64_t now, st_effects *fx, st_err *err)
{
    ST_ASSERT(event->kind < ST_EV_COUNT);
    /* A clock that steps back must not make time run twice. The event comes before what is
     * due at the same moment: a job that finished in time did not time out. */
    int64_t before = core->now;
    bool exchange = core->exchange, minute = core->minute;
    st_core_advance(core, now);
    int rc = handlers[event->kind](core, event, fx, err);
    if (rc < 0) {
        core->now = before;
        core->exchange = exchange;
        core->minute = minute;
        return rc;
    }
    /* Whatever was told may let a borrower who waits displace another, who came in between above all:
     * the next minute has something to look at. */
    bool idle = event->kind == ST_EV_SUBMIT && st_core_find(core, event->u.job.id)->barred;
    bool stirs = event->kind != ST_EV_TOLD && event->kind != ST_EV_TIMER && !idle;
    core->exchange |= stirs && core->minute && !core->unfinished;
    bool quietly = event->kind == ST_EV_CANCEL && core->settled;
    if (stirs)
        st_core_changed(core, ST_CHANGED_ORDER);
    if (idle)
        ; /* no pass needs to look at it, nor at anybody because of it */
    else if (event->kind == ST_EV_SUBMIT)
        st_vec_push(&core->fresh, event->u.job.id);
    else if (event->kind != ST_EV_TOLD && !quietly)
        st_core_changed(core, ST_CHANGED_WAITING | (stirs ? ST_CHANGED_ROUND : 0));
    st_core_expire(core, fx);
    return 0;
}
