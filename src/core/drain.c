/* A node that drains by a given time: its jobs are told at once when that is, go on meanwhile, and are told to leave so
 * early that notice and grace are over by then.
 *
 * Each leaves as it was submitted, gentlest way first: it saves and waits again, is paused, waits again from its last
 * checkpoint, or ends. Where the node must be empty (ST_DRAIN_REQUEUE) nobody is paused in its memory. They yield to
 * nobody, so that is no preemption: they do not rest afterwards. What they lose is the operator's doing, as with a node
 * that fails.
 *
 * 1 Who was told to go has ST_BAR_NODE as long as it has its devices, and is not let stay on them.
 * 2 By the deadline nobody is on the devices of the node but those whose agents have not said that they are gone.
 * 3 A node that is given back, or another deadline, lets those stay who need not go any more and have not begun to save. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/book.h"

static const st_node *node_at(const st_core *core, const st_job *job, int task)
{
    return core->fleet->nodes.v[job->grants[task].node];
}

static bool tells(const st_node *node)
{
    return node->drain_ms > 0 && node->drain_then != ST_DRAIN_WAIT;
}

bool st_drain_leaves(const st_core *core, const st_job *job)
{
    return st_drain_by_ms(core, job) != ST_TIME_NEVER;
}

int64_t st_drain_by_ms(const st_core *core, const st_job *job)
{
    int64_t by_ms = ST_TIME_NEVER;
    for (int t = 0; job->grants && t < job->tasks; t++)
        if (node_at(core, job, t)->drain_told)
            by_ms = ST_MIN(by_ms, node_at(core, job, t)->drain_ms);
    return by_ms;
}

bool st_drain_empties(const st_core *core, const st_job *job)
{
    for (int t = 0; job->grants && t < job->tasks; t++)
        if (node_at(core, job, t)->drain_told &&
            node_at(core, job, t)->drain_then == ST_DRAIN_REQUEUE)
            return true;
    return false;
}

/* ---- telling them to go ---------------------------------------------------------------------- */

/* It has been told to go already: now it is sooner. */
static void hurry(st_core *core, st_job *job, int64_t by_ms, st_effects *fx)
{
    if (job->deadline_ms <= by_ms)
        return;
    job->deadline_ms = by_ms;
    st_core_retime(core, job);
    st_core_due(core, job);
    if (job->state != ST_JOB_NOTIFIED)
        return;
    st_effect e = st_fx_of(core, ST_FX_NOTIFY, job);
    e.other = job->claimant;
    e.until_ms = by_ms;
    e.ordered = job->claimant == 0;
    st_fx(core, fx, e, NULL, 0);
}

static void tell_off(st_core *core, st_job *job, st_effects *fx)
{
    int64_t by_ms = ST_MAX(st_drain_by_ms(core, job), core->now);
    if (by_ms == ST_TIME_NEVER)
        return; /* it was to move there, and has nothing there yet */
    bool saves = job->yield == ST_YIELD_CHECKPOINT ||
                 (job->yield == ST_YIELD_PAUSE && !st_drain_empties(core, job));
    int64_t until_ms = saves ? ST_MAX(by_ms - st_core_grace_ms(core, job), core->now) : by_ms;
    if (job->state == ST_JOB_PAUSED && st_drain_empties(core, job)) {
        if (job->held)
            st_core_unhold(core, job, fx);
        st_core_requeue(core, job, fx);
        return;
    }
    if (!st_job_on_devices(job) || job->stopping)
        return;
    job->barred |= ST_BAR_NODE;
    if (job->state == ST_JOB_RUNNING)
        st_core_order_out(core, job, until_ms - core->now, fx);
    else
        hurry(core, job, job->state == ST_JOB_NOTIFIED ? until_ms : by_ms, fx);
}

int64_t st_drain_due_ms(const st_core *core, const st_node *node)
{
    if (node->state != ST_NODE_DRAINING || !tells(node) || node->drain_told || ST_BROKEN(DRAIN_BY))
        return ST_TIME_NEVER;
    return ST_MAX(node->drain_ms - core->policy.notice_ms - st_core_longest_grace_ms(core), 0);
}

void st_drain_expire(st_core *core, st_node *node, st_effects *fx)
{
    if (st_drain_due_ms(core, node) > core->now)
        return;
    node->drain_told = true;
    st_core_changed(core, ST_CHANGED_STANDING);
    st_due_jobs ids = {0};
    st_node_who(node, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        st_job *job = st_core_find(core, ids.v[i]);
        if (job)
            tell_off(core, job, fx);
    }
    st_vec_free(&ids);
}

/* ---- another deadline ------------------------------------------------------------------------ */

/* It need not go for a node any more. */
static void let_stay(st_core *core, st_job *job, st_effects *fx)
{
    st_class was = job->class;
    if (!(job->barred & ST_BAR_NODE) || st_drain_leaves(core, job))
        return;
    if (job->barred != ST_BAR_NODE || job->claimant != 0) { /* it must go all the same */
        job->barred &= (uint16_t)~ST_BAR_NODE;
        return;
    }
    if (job->state != ST_JOB_NOTIFIED || job->stopping || !st_core_stay(core, job))
        return;
    job->barred = 0;
    st_fx(core, fx, st_fx_of(core, ST_FX_SPARE, job), NULL, 0);
    if (job->class != was)
        st_fx(core, fx, st_fx_of(core, ST_FX_CLASS, job), NULL, 0);
}

static void announce(st_core *core, const st_node *node, const st_job *job, st_effects *fx)
{
    bool there = st_job_on_devices(job) ||
                 (job->state == ST_JOB_PAUSED && node->drain_then == ST_DRAIN_REQUEUE);
    if (!there || job->stopping)
        return;
    st_effect e = st_fx_of(core, ST_FX_DRAIN, job);
    e.node = node->id;
    e.until_ms = node->drain_ms;
    e.then = node->drain_then;
    st_fx(core, fx, e, NULL, 0);
}

void st_drain_set(st_core *core, st_node *node, int64_t by_ms, st_drain_then then, st_effects *fx)
{
    bool told = node->drain_told;
    if (node->drain_ms == by_ms && node->drain_then == then)
        return;
    node->drain_ms = by_ms;
    node->drain_then = then;
    node->drain_told = false;
    if (told)
        st_core_changed(core, ST_CHANGED_STANDING);
    st_due_jobs ids = {0};
    st_node_who(node, &ids);
    for (size_t i = 0; i < ids.n; i++) {
        st_job *job = st_core_find(core, ids.v[i]);
        if (job && told)
            let_stay(core, job, fx);
        if (job && tells(node))
            announce(core, node, job, fx);
    }
    st_vec_free(&ids);
    st_core_nodes_set_due(core);
}
