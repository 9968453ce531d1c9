/* The way out of a job that must yield, and everything else that happens at a deadline.
 *
 *   running --notify--> notified --notice over--> checkpointing --saved, or grace over-->
 *     checkpoint   requeued, with its progress if it was saved in time
 *     pause        paused, all of it kept in memory; requeued if it did not get there in time
 *   and straight from notified, since there is nothing to wait for:
 *     requeue      requeued from its last checkpoint
 *     cancel       ended
 * Where nodes have agents, "requeued" and "ended" have a step before them: stopping (stop.c). */
#include <stdlib.h>

#include "core/book.h"
#include "core/flow.h"
#include "core/shadow.h"

int64_t st_job_due_ms(const st_job *job)
{
    int64_t due = ST_TIME_NEVER;
    if (st_job_leaving(job) || job->state == ST_JOB_PAUSED)
        due = job->deadline_ms;
    if (st_job_on_devices(job))
        due = ST_MIN(due, st_job_end_ms(job, 0));
    if (job->state == ST_JOB_RUNNING)
        due = ST_MIN(due, job->expect_ms);
    else if (job->rest_ms > 0 && !st_job_on_devices(job))
        due = ST_MIN(due, job->rest_ms);
    return ST_MIN(due, st_window_due_ms(job));
}

/* Record what the job loses when it goes now, and return it in milli-GPU x ms. */
static int64_t lose(st_core *core, const st_job *job)
{
    int64_t lost = st_job_gpu_m(job) * st_job_unsaved_ms(job, core->now);
    for (int32_t i = job->account; i >= 0; i = st_tree_account(core->tree, i)->parent)
        st_tree_account(core->tree, i)->lost += lost;
    return lost;
}

/* Then what it loses is the node's doing. */
static bool lost_node(const st_core *core, const st_job *job)
{
    for (int t = 0; job->grants && t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[job->grants[t].node];
        if (node->state == ST_NODE_FAILED)
            return true;
        for (unsigned devs = node->out & job->grants[t].devs; devs; devs &= devs - 1)
            if (st_gpu_state(node, __builtin_ctz(devs)) == ST_NODE_FAILED)
                return true;
    }
    return false;
}

/* It leaves by its own wish, or its account's, and not for a node that drains: what it loses is then its own. */
static bool own_doing(const st_job *job)
{
    return st_job_ordered(job) && job->barred != ST_BAR_NODE;
}

void st_core_requeue_now(st_core *core, st_job *job, st_effects *fx)
{
    if (job->again) {
        st_core_retry_now(core, job, fx);
        return;
    }
    int64_t unsaved_ms = st_job_unsaved_ms(job, core->now), lost = lose(core, job);
    uint64_t claimant = job->claimant;
    bool ordered = own_doing(job) && !lost_node(core, job);
    if (job->held)
        st_core_unhold(core, job, fx);
    if (st_job_on_devices(job))
        st_core_release(core, job, false);
    else
        st_core_forget_grants(core, job); /* paused */
    st_job_move(job, ST_JOB_PENDING);
    job->stopping = job->first = false;
    job->queued_ms = core->now;
    job->kept_ms = 0;
    job->deadline_ms = 0;
    st_core_due(core, job);
    st_effect e = st_fx_of(core, ST_FX_REQUEUE, job);
    e.other = claimant;
    e.lost_gpu_ms = lost;
    e.unsaved_ms = unsaved_ms;
    e.ordered = ordered;
    st_fx(core, fx, e, NULL, 0);
}

void st_core_requeue(st_core *core, st_job *job, st_effects *fx)
{
    if (!st_core_stop(core, job, ST_JOB_PENDING, false, fx))
        st_core_requeue_now(core, job, fx);
}

/* `loses`: through no fault of its own, so what was not saved is lost. */
static void end(st_core *core, st_job *job, st_job_state state, bool loses, st_effects *fx)
{
    int64_t unsaved_ms = loses ? st_job_unsaved_ms(job, core->now) : 0;
    int64_t lost = loses ? lose(core, job) : 0;
    uint64_t claimant = job->yield == ST_YIELD_CANCEL && unsaved_ms > 0 ? job->claimant : 0;
    bool ordered = loses && own_doing(job), waited = job->barred & ST_BAR_AFTER;
    st_shadow_ended(core, job, state);
    if (job->held)
        st_core_unhold(core, job, fx);
    if (st_job_on_devices(job))
        st_core_release(core, job, false);
    else if (job->grants)
        st_core_forget_grants(core, job);
    st_job_move(job, state);
    st_effect e = st_fx_of(core, ST_FX_END, job);
    e.other = claimant;
    e.lost_gpu_ms = lost;
    e.unsaved_ms = unsaved_ms;
    e.ordered = ordered;
    e.node = state == ST_JOB_FAILED ? job->fault - 1 : -1;
    e.never = state == ST_JOB_CANCELLED && !job->keeps && waited ? job->never : 0;
    st_fx(core, fx, e, NULL, 0);
    st_core_drop_job(core, job);
    st_after_leave(core, job);
    st_after_ended(core, job->id, false, state);
    st_array_leave(core, job, state);
}

/* Somebody it had to end for may be named: then what it loses is his doing. */
void st_core_end_now(st_core *core, st_job *job, st_job_state state, st_effects *fx)
{
    st_account *account = st_tree_account(core->tree, job->account);
    if ((job->stopping && job->claimant) || (job->fault > 0 && state == ST_JOB_FAILED)) {
        end(core, job, state, true, fx);
        return;
    }
    st_life_note(account, job, core->now);
    if (st_job_served_ms(job, core->now) > 0)
        st_life_end(account, job);
    end(core, job, state, false, fx);
}

void st_core_end(st_core *core, st_job *job, st_job_state state, st_effects *fx)
{
    if (!job->stopping || job->after != state) /* else it is ending already, for whom was told */
        job->claimant = 0;
    if (!st_core_stop(core, job, state, false, fx))
        st_core_end_now(core, job, state, fx);
}

/* The last step of yielding; `saved`: it reported its checkpoint in time. */
static void yielded(st_core *core, st_job *job, bool saved, st_effects *fx)
{
    uint64_t claimant = job->claimant;
    if (!st_job_ordered(job)) {
        /* Only an owner displaces a job again so soon. It would be in that owner's way for ever; until it
         * has cooled down it leaves what is others' alone. */
        bool again =
            job->preempted_ms >= 0 && core->now < job->preempted_ms + core->policy.cooldown_ms;
        if (again && !job->to && !ST_BROKEN(REST))
            job->rest_ms = core->now + core->policy.cooldown_ms;
        job->preempted_ms = core->now;
        job->preemptions++;
    }
    if (job->yield == ST_YIELD_CANCEL) {
        if (!st_core_stop(core, job, ST_JOB_CANCELLED, false, fx))
            end(core, job, ST_JOB_CANCELLED, true, fx);
        return;
    }
    bool pauses = job->yield == ST_YIELD_PAUSE;
    if (pauses && job->state == ST_JOB_CHECKPOINTING)
        st_core_paused_in(core, job, core->now - job->saving_ms, saved);
    if (pauses && saved && !st_drain_empties(core, job)) {
        job->kept_ms = st_job_unsaved_ms(job, core->now);
        st_core_release(core, job, true);
        st_job_move(job, ST_JOB_PAUSED);
        job->queued_ms = core->now;
        job->deadline_ms = core->now + core->policy.pause_limit_ms;
        st_core_due(core, job);
        st_core_refresh(core, job);
        st_effect e = st_fx_of(core, ST_FX_PAUSE, job);
        e.other = claimant;
        e.unsaved_ms = job->kept_ms;
        st_fx(core, fx, e, NULL, 0);
        return;
    }
    if (saved && !pauses) {
        job->saved_ms = st_job_ran_ms(job, core->now);
        job->mark_ms = core->now;
    }
    if (st_core_stop(core, job, ST_JOB_PENDING, false, fx))
        return;
    if (job->to) /* its new place is free: it goes there before anybody has a turn */
        st_vec_push(&core->restart,
                    (st_restart){job->id, job->priority, job->class == ST_CLASS_GUARANTEED});
    st_core_requeue_now(core, job, fx);
}

static void after_notice(st_core *core, st_job *job, st_effects *fx)
{
    bool saves = job->yield == ST_YIELD_CHECKPOINT ||
                 (job->yield == ST_YIELD_PAUSE && !st_drain_empties(core, job));
    int64_t by_ms = st_drain_by_ms(core, job); /* whatever the grace is */
    int64_t grace_ms = st_core_grace_ms(core, job);
    if (!saves || grace_ms == 0 || by_ms <= core->now) {
        yielded(core, job, false, fx);
        return;
    }
    st_job_move(job, ST_JOB_CHECKPOINTING);
    job->saving_ms = core->now;
    job->deadline_ms = ST_MIN(core->now + grace_ms, by_ms);
    st_core_retime(core, job);
    st_core_due(core, job);
    st_effect e = st_fx_of(core, ST_FX_CHECKPOINT, job);
    e.other = job->claimant;
    e.until_ms = job->deadline_ms;
    st_fx(core, fx, e, NULL, 0);
}

void st_core_notify(st_core *core, st_job *victim, const st_job *claimant, st_grant *take_to,
                    st_effects *fx)
{
    st_core_leave(core, victim, ST_JOB_NOTIFIED, claimant->id);
    victim->to = take_to;
    core->nmoving += take_to != NULL;
    victim->deadline_ms = core->now + core->policy.notice_ms;
    st_core_due(core, victim);
    st_effect e = st_fx_of(core, ST_FX_NOTIFY, victim);
    e.other = claimant->id;
    e.until_ms = victim->deadline_ms;
    e.moves = take_to != NULL;
    st_fx(core, fx, e, NULL, 0);
    if (core->policy.notice_ms == 0 || ST_BROKEN(NOTICE))
        after_notice(core, victim, fx);
}

/* It leaves for nobody: its account may not have it run. */
void st_core_order_out(st_core *core, st_job *job, int64_t notice_ms, st_effects *fx)
{
    st_core_leave(core, job, ST_JOB_NOTIFIED, 0);
    job->deadline_ms = core->now + notice_ms;
    st_core_due(core, job);
    st_effect e = st_fx_of(core, ST_FX_NOTIFY, job);
    e.until_ms = job->deadline_ms;
    e.ordered = true;
    st_fx(core, fx, e, NULL, 0);
    if (notice_ms == 0)
        after_notice(core, job, fx);
}

/* It leaves for a booking: that of others, or its own, which ends. */
void st_core_tell_off(st_core *core, st_job *job, uint64_t booking, int64_t deadline_ms,
                      st_effects *fx)
{
    st_core_leave(core, job, ST_JOB_NOTIFIED, booking);
    job->deadline_ms = deadline_ms;
    st_core_due(core, job);
    st_effect e = st_fx_of(core, ST_FX_NOTIFY, job);
    e.other = booking;
    e.until_ms = job->deadline_ms;
    e.ordered = st_job_ordered(job);
    st_fx(core, fx, e, NULL, 0);
    if (deadline_ms <= core->now)
        after_notice(core, job, fx);
}

void st_core_checkpointed(st_core *core, st_job *job, st_effects *fx)
{
    if (job->state == ST_JOB_CHECKPOINTING) {
        if (st_job_end_ms(job, core->now) > core->now) /* else its limit struck first */
            yielded(core, job, true, fx);
        return;
    }
    job->saved_ms = st_job_ran_ms(job, core->now);
    job->mark_ms = core->now;
    st_core_due(core, job);
}

static void expire(st_core *core, st_job *job, st_effects *fx)
{
    if (job->rest_ms > 0 && job->rest_ms <= core->now) {
        job->rest_ms = 0;
        if (st_job_due_ms(job) > core->now)
            return;
    }
    if (st_window_due_ms(job) <= core->now) {
        uint64_t id = job->id;
        st_window_expire(core, job, fx);
        job = st_core_find(core, id);
        if (!job || st_job_due_ms(job) > core->now)
            return;
    }
    if (st_job_on_devices(job) && st_job_end_ms(job, core->now) <= core->now) {
        if (job->end_by_ms == 0 || job->end_by_ms > core->now)
            st_core_learn(core, job);
        if (!job->stopping && st_retry_may(core, job, ST_JOB_TIMEOUT))
            st_core_retry(core, job, true, fx);
        else
            st_core_end(core, job, ST_JOB_TIMEOUT, fx);
    } else if (job->state == ST_JOB_RUNNING) {
        st_core_expect(core, job); /* it outlived what was expected */
        st_core_retime(core, job);
    } else if (job->state == ST_JOB_NOTIFIED)
        after_notice(core, job, fx);
    else if (job->state == ST_JOB_CHECKPOINTING)
        yielded(core, job, false, fx);
    else if (job->stopping) { /* longer than it should take; there is nothing to do but wait */
        job->deadline_ms = core->now + ST_STOP_MS;
        st_core_retime(core, job);
    } else if (job->state == ST_JOB_PAUSED && !job->held)
        st_core_requeue(core, job, fx);
    else if (job->state == ST_JOB_PAUSED)
        job->deadline_ms = core->now + ST_MAX(core->policy.pause_limit_ms, 1000); /* on its way */
}

static void expire_jobs(st_core *core, st_effects *fx)
{
    if (core->due_ms > core->now)
        return;
    st_core_changed(core, ST_CHANGED_WAITING | ST_CHANGED_ROUND);
    st_due_jobs list = {0};
    st_core_take_due(core, &list);
    for (size_t i = 0; i < list.n; i++) {
        /* An earlier one may have changed this one: a spared victim is no longer due. */
        st_job *job = st_core_find(core, list.v[i]);
        if (job && st_job_due_ms(job) <= core->now)
            expire(core, job, fx);
        job = st_core_find(core, list.v[i]);
        if (job)
            st_core_due(core, job);
    }
    st_vec_free(&list);
}

void st_core_expire(st_core *core, st_effects *fx)
{
    expire_jobs(core, fx);
    st_core_nodes_expire(core, fx);
    st_incidents_expire(core, fx);
    st_book_expire(core, fx);
    st_after_expire(core, fx);
    st_arrays_run(core);
}
