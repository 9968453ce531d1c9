/*
 * The way out: what becomes of a job that must yield, step by step, and of the one it yields
 * to.
 */
#include "core/test/world.h"

enum { VICTIM = 1, CLAIMANT = 2 };

#define NOTICE (30 * SEC)
#define GRACE  (120 * SEC)
#define CLAIM  (100 * SEC) /* when the claimant comes */

static st_policy quick(void)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = NOTICE;
    policy.grace_ms = GRACE;
    policy.min_run_ms = 0;
    policy.cooldown_ms = 0;
    policy.pause_limit_ms = 1000 * SEC;
    policy.rebalance = 0; /* nobody looks for others every minute */
    return policy;
}

/* One GPU, borrowed by the victim from 0 on; at CLAIM the owner asks for it. */
static void begin_claim_with(world *w, const st_policy *policy, st_yield yield, int64_t limit_ms)
{
    begin(w, policy, 1, 1);
    account(w, "lend", ST_UNSET);
    account(w, "own", 1000);
    st_event ev = job_event(VICTIM, "lend");
    ev.u.job.yield = yield;
    ev.u.job.limit_ms = limit_ms;
    ev.u.job.shape.ram_mib = 600;
    step(w, &ev);
    in_state(w, VICTIM, ST_JOB_RUNNING);
    assert_int_equal(job_of(w, VICTIM)->class, ST_CLASS_BURSTABLE);
    w->now = CLAIM;
    submit(w, CLAIMANT, "own");
}

static void begin_claim(world *w, st_yield yield)
{
    st_policy policy = quick();
    begin_claim_with(w, &policy, yield, ST_TIME_NEVER);
    in_state(w, VICTIM, ST_JOB_NOTIFIED);
}

static int64_t lost(const world *w, const char *name)
{
    const st_tree *tree = st_core_tree(w->core);
    return st_tree_account(tree, st_tree_find(tree, name))->lost;
}

/* The decision: the claimant's place is held, the victim is told until when. */
static void test_notice(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    const st_effect *hold = effect(&w, ST_FX_HOLD, CLAIMANT);
    const st_effect *notify = effect(&w, ST_FX_NOTIFY, VICTIM);
    assert_non_null(hold);
    assert_non_null(notify);
    assert_int_equal(hold->ngrants, 1);
    assert_int_equal(w.fx.grants.v[hold->grants_at].devs, 1);
    assert_int_equal(notify->other, CLAIMANT);
    assert_int_equal(notify->until_ms, CLAIM + NOTICE);
    assert_int_equal(notify->state, ST_JOB_NOTIFIED);
    const st_job *v = job_of(&w, VICTIM), *c = job_of(&w, CLAIMANT);
    assert_int_equal(v->claimant, CLAIMANT);
    assert_true(c->held);
    assert_int_equal(c->state, ST_JOB_PENDING);
    assert_int_equal(c->class, ST_CLASS_GUARANTEED);
    assert_int_equal(st_core_next_timer(w.core), CLAIM + NOTICE);

    /* Nothing more happens before the notice is over. */
    tick(&w, CLAIM + NOTICE - 1);
    assert_int_equal(w.fx.list.n, 0);
    in_state(&w, VICTIM, ST_JOB_NOTIFIED);
    tick(&w, CLAIM + NOTICE);
    const st_effect *save = effect(&w, ST_FX_CHECKPOINT, VICTIM);
    assert_non_null(save);
    assert_int_equal(save->until_ms, CLAIM + NOTICE + GRACE);
    assert_int_equal(save->other, CLAIMANT);
    in_state(&w, VICTIM, ST_JOB_CHECKPOINTING);
    assert_int_equal(st_core_next_timer(w.core), CLAIM + NOTICE + GRACE);
    end(&w);
}

/* What is freed goes to the claimant; nobody else gets at it, before or after. */
static void test_the_place_is_held(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    submit(&w, 3, "lend");
    in_state(&w, 3, ST_JOB_PENDING);
    tick(&w, CLAIM + NOTICE);
    w.now += SEC;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    in_state(&w, VICTIM, ST_JOB_PENDING);
    in_state(&w, 3, ST_JOB_PENDING);
    end(&w);
}

/* A job has the time to save that it asked for, within the policy's limit; more is refused. */
static void test_own_grace(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    st_policy policy = quick();
    policy.grace_limit_ms = 5 * GRACE;
    begin_claim_with(&w, &policy, ST_YIELD_CHECKPOINT, ST_TIME_NEVER);
    st_event ev = job_event(3, "lend");
    ev.u.job.grace_ms = 5 * GRACE + 1;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ELIMIT,
                 "asks for 10m1ms to save its work; the most is 10m");
    ev.u.job.grace_ms = -1;
    assert_fails(st_core_step(w.core, &ev, w.now, &w.fx, &err), ST_ERANGE, "grace is negative");
    end(&w);

    static const int64_t asked[] = {5 * GRACE, 1 * SEC};
    for (size_t i = 0; i < ST_ARRAY_LEN(asked); i++) {
        begin(&w, &policy, 1, 1);
        account(&w, "lend", ST_UNSET);
        account(&w, "own", 1000);
        ev = job_event(VICTIM, "lend");
        ev.u.job.yield = ST_YIELD_CHECKPOINT;
        ev.u.job.grace_ms = asked[i];
        step(&w, &ev);
        w.now = CLAIM;
        submit(&w, CLAIMANT, "own");
        tick(&w, CLAIM + NOTICE);
        assert_int_equal(effect(&w, ST_FX_CHECKPOINT, VICTIM)->until_ms, CLAIM + NOTICE + asked[i]);
        end(&w);
    }
}

/* The victim is told once more, and has `ms` to save. */
static void told_again(world *w, uint64_t claimant, int64_t ms)
{
    submit(w, claimant, "own");
    in_state(w, VICTIM, ST_JOB_NOTIFIED);
    tick(w, w->now + NOTICE);
    in_state(w, VICTIM, ST_JOB_CHECKPOINTING);
    assert_int_equal(job_of(w, VICTIM)->deadline_ms - w->now, ms);
}

/* What a pause took is known of the job, and of others with GPUs of the type by what they have to move. */
static void test_measured_pause(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    policy.grace_limit_ms = 10 * GRACE;
    begin_claim_with(&w, &policy, ST_YIELD_PAUSE, ST_TIME_NEVER);
    tick(&w, CLAIM + NOTICE);
    assert_int_equal(job_of(&w, VICTIM)->deadline_ms, CLAIM + NOTICE + GRACE);
    tick(&w, CLAIM + NOTICE + GRACE); /* not there in time: it starts again, and needs more */
    in_state(&w, VICTIM, ST_JOB_PENDING);
    tell(&w, ST_EV_FINISH, CLAIMANT);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    const int64_t half_more = GRACE + GRACE / 2;
    told_again(&w, 3, half_more + half_more / 4);
    w.now += half_more;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    in_state(&w, VICTIM, ST_JOB_PAUSED);
    tell(&w, ST_EV_FINISH, 3);
    tell(&w, ST_EV_FINISH, VICTIM);

    /* Another one on the same type, which asked for nothing; after a restart too. */
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_err err = {0};
    st_core_save(w.core, &saved);
    st_core_free(ST_TAKE(w.core));
    assert_ok(st_core_load(saved.s, saved.n, &w.core, &err));
    st_event ev = job_event(VICTIM + 10, "lend");
    ev.u.job.yield = ST_YIELD_PAUSE;
    step(&w, &ev);
    submit(&w, 5, "own");
    tick(&w, w.now + NOTICE);
    int64_t has_ms = job_of(&w, VICTIM + 10)->deadline_ms - w.now;
    assert_true(has_ms >= half_more + half_more / 4 && has_ms < half_more * 2);
    end(&w);
}

static void test_checkpoint_in_time(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    tick(&w, CLAIM + NOTICE);
    w.now = 140 * SEC;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 0);
    assert_non_null(effect(&w, ST_FX_START, CLAIMANT));
    const st_job *v = job_of(&w, VICTIM);
    assert_int_equal(v->state, ST_JOB_PENDING);
    assert_int_equal(v->saved_ms, 140 * SEC);
    assert_int_equal(v->preemptions, 1);
    assert_int_equal(v->preempted_ms, 140 * SEC);
    assert_null(v->grants);
    assert_false(job_of(&w, CLAIMANT)->held);
    assert_int_equal(lost(&w, "lend"), 0);

    /* It comes back with its progress. */
    w.now = 200 * SEC;
    tell(&w, ST_EV_FINISH, CLAIMANT);
    assert_non_null(effect(&w, ST_FX_START, VICTIM));
    assert_int_equal(st_job_ran_ms(job_of(&w, VICTIM), 210 * SEC), 150 * SEC);
    end(&w);
}

/* Grace over, nothing saved: off it goes, and what is lost is written down at every account. */
static void test_checkpoint_missed(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    tick(&w, CLAIM + NOTICE);
    tick(&w, CLAIM + NOTICE + GRACE);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 250 * SEC);
    assert_int_equal(lost(&w, "lend"), 1000 * 250 * SEC);
    assert_int_equal(lost(&w, "cluster"), 1000 * 250 * SEC);
    assert_int_equal(lost(&w, "own"), 0);
    assert_int_equal(job_of(&w, VICTIM)->saved_ms, 0);
    assert_int_equal(job_of(&w, VICTIM)->preemptions, 1);
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    end(&w);
}

/* A checkpoint during the notice does not end the stay, but what came before it is safe. */
static void test_checkpoint_during_notice(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_REQUEUE);
    w.now = 120 * SEC;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    in_state(&w, VICTIM, ST_JOB_NOTIFIED);
    assert_int_equal(job_of(&w, VICTIM)->deadline_ms, CLAIM + NOTICE);
    tick(&w, CLAIM + NOTICE);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 10 * SEC);
    assert_int_equal(job_of(&w, VICTIM)->saved_ms, 120 * SEC);
    end(&w);
}

/* Requeue has nothing to wait for once the notice is over. */
static void test_requeue(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_REQUEUE);
    tick(&w, CLAIM + NOTICE);
    assert_null(effect(&w, ST_FX_CHECKPOINT, VICTIM));
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 130 * SEC);
    in_state(&w, VICTIM, ST_JOB_PENDING);
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    end(&w);
}

static void test_cancel(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CANCEL);
    tick(&w, CLAIM + NOTICE);
    const st_effect *over = effect(&w, ST_FX_END, VICTIM);
    assert_non_null(over);
    assert_int_equal(over->state, ST_JOB_CANCELLED);
    assert_null(st_core_job(w.core, VICTIM));
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    assert_int_equal(lost(&w, "lend"), 1000 * 130 * SEC);
    end(&w);
}

/* The effect names what was lost, as it does for a requeue. */
static void test_cancel_tells_the_loss(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CANCEL);
    tick(&w, CLAIM + NOTICE);
    const st_effect *over = effect(&w, ST_FX_END, VICTIM);
    assert_non_null(over);
    assert_int_equal(over->value, 1000 * 130 * SEC);
    end(&w);
}

static void begin_paused(world *w)
{
    begin_claim(w, ST_YIELD_PAUSE);
    tick(w, CLAIM + NOTICE);
    in_state(w, VICTIM, ST_JOB_CHECKPOINTING);
    w->now = 140 * SEC;
    tell(w, ST_EV_CHECKPOINTED, VICTIM);
    in_state(w, VICTIM, ST_JOB_PAUSED);
    in_state(w, CLAIMANT, ST_JOB_RUNNING);
}

static void test_pause_and_resume(void **state)
{
    (void)state;
    world w;
    begin_paused(&w);
    const st_effect *pause = effect(&w, ST_FX_PAUSE, VICTIM);
    assert_non_null(pause);
    assert_int_equal(pause->other, CLAIMANT);
    const st_job *v = job_of(&w, VICTIM);
    assert_int_equal(v->kept_ms, 140 * SEC);
    assert_int_equal(v->saved_ms, 0);
    assert_int_equal(v->deadline_ms, 1140 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 180 * SEC); /* the next minute, first */
    /* Its memory is still taken: 600 of 1000. */
    st_event ev = job_event(7, "lend");
    ev.u.job.shape = (st_shape){.level = ST_LEVEL_WHOLE, .cpu_m = 1000, .ram_mib = 401};
    step(&w, &ev);
    in_state(&w, 7, ST_JOB_PENDING);

    w.now = 200 * SEC;
    tell(&w, ST_EV_FINISH, CLAIMANT);
    const st_effect *resume = effect(&w, ST_FX_RESUME, VICTIM);
    assert_non_null(resume);
    assert_int_equal(resume->ngrants, 1);
    assert_null(effect(&w, ST_FX_START, VICTIM));
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    assert_int_equal(v->kept_ms, 0);
    assert_int_equal(st_job_ran_ms(v, 210 * SEC), 150 * SEC);
    assert_int_equal(st_job_unsaved_ms(v, 210 * SEC), 150 * SEC); /* nothing was saved */
    assert_int_equal(lost(&w, "lend"), 0);
    end(&w);
}

/* Nobody resumes it in time: it starts again elsewhere, from nothing. */
static void test_pause_limit(void **state)
{
    (void)state;
    world w;
    begin_paused(&w);
    tick(&w, 1140 * SEC - 1);
    assert_int_equal(w.fx.list.n, 0);
    tick(&w, 1140 * SEC);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 140 * SEC);
    const st_job *v = job_of(&w, VICTIM);
    assert_int_equal(v->state, ST_JOB_PENDING);
    assert_int_equal(v->kept_ms, 0);
    assert_int_equal(v->saved_ms, 0);
    assert_null(v->grants);
    assert_int_equal(st_core_fleet(w.core)->nodes.v[0]->view.ram_free_mib, 1000);
    assert_int_equal(lost(&w, "lend"), 1000 * 140 * SEC);
    end(&w);
}

static void test_pause_missed(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_PAUSE);
    tick(&w, CLAIM + NOTICE);
    tick(&w, CLAIM + NOTICE + GRACE);
    assert_null(effect(&w, ST_FX_PAUSE, VICTIM));
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 250 * SEC);
    end(&w);
}

/* The memory goes with the node. */
static void test_paused_node_fails(void **state)
{
    (void)state;
    world w;
    begin_paused(&w);
    set_node(&w, 0, ST_NODE_FAILED);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, VICTIM);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 140 * SEC);
    in_state(&w, VICTIM, ST_JOB_PENDING);
    in_state(&w, CLAIMANT, ST_JOB_PENDING);
    end(&w);
}

static void test_paused_is_cancelled(void **state)
{
    (void)state;
    world w;
    begin_paused(&w);
    tell(&w, ST_EV_CANCEL, VICTIM);
    assert_int_equal(effect(&w, ST_FX_END, VICTIM)->state, ST_JOB_CANCELLED);
    assert_null(st_core_job(w.core, VICTIM));
    assert_int_equal(st_core_fleet(w.core)->nodes.v[0]->view.ram_free_mib, 1000);
    end(&w);
}

/* Without notice and grace, everything happens in the step that decides. */
static void test_at_once(void **state)
{
    (void)state;
    const st_yield yields[] = {ST_YIELD_CHECKPOINT, ST_YIELD_PAUSE, ST_YIELD_REQUEUE,
                               ST_YIELD_CANCEL};
    for (size_t i = 0; i < ST_ARRAY_LEN(yields); i++) {
        st_policy policy = quick();
        policy.notice_ms = policy.grace_ms = 0;
        world w;
        begin_claim_with(&w, &policy, yields[i], ST_TIME_NEVER);
        in_state(&w, CLAIMANT, ST_JOB_RUNNING);
        assert_non_null(effect(&w, ST_FX_NOTIFY, VICTIM));
        if (yields[i] == ST_YIELD_CANCEL)
            assert_null(st_core_job(w.core, VICTIM));
        else
            in_state(&w, VICTIM, ST_JOB_PENDING);
        assert_int_equal(lost(&w, "lend"), 1000 * CLAIM);
        end(&w);
    }
}

static void test_claimant_cancelled_spares(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    w.now = CLAIM + NOTICE - 1;
    tell(&w, ST_EV_CANCEL, CLAIMANT);
    assert_non_null(effect(&w, ST_FX_UNHOLD, CLAIMANT));
    assert_non_null(effect(&w, ST_FX_SPARE, VICTIM));
    const st_job *v = job_of(&w, VICTIM);
    assert_int_equal(v->state, ST_JOB_RUNNING);
    assert_int_equal(v->claimant, 0);
    assert_int_equal(v->preemptions, 0);
    assert_int_equal(v->preempted_ms, -1);
    assert_int_equal(v->start_ms, 0);
    assert_int_equal(st_core_next_timer(w.core), ST_TIME_NEVER);
    tick(&w, CLAIM + NOTICE + GRACE);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    assert_int_equal(st_job_ran_ms(v, w.now), w.now);
    end(&w);
}

/* Who has begun to save itself goes on to leave, and may come straight back. */
static void test_claimant_cancelled_too_late(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    tick(&w, CLAIM + NOTICE);
    tell(&w, ST_EV_CANCEL, CLAIMANT);
    assert_null(effect(&w, ST_FX_SPARE, VICTIM));
    in_state(&w, VICTIM, ST_JOB_CHECKPOINTING);
    w.now += SEC;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    assert_non_null(effect(&w, ST_FX_REQUEUE, VICTIM));
    assert_non_null(effect(&w, ST_FX_START, VICTIM));
    assert_int_equal(st_job_ran_ms(job_of(&w, VICTIM), w.now), w.now);
    end(&w);
}

static void test_victim_ends_by_itself(void **state)
{
    (void)state;
    world w;
    begin_claim(&w, ST_YIELD_CHECKPOINT);
    w.now = CLAIM + 5 * SEC;
    tell(&w, ST_EV_FINISH, VICTIM);
    assert_int_equal(effect(&w, ST_FX_END, VICTIM)->state, ST_JOB_DONE);
    assert_non_null(effect(&w, ST_FX_START, CLAIMANT));
    assert_int_equal(lost(&w, "lend"), 0);
    end(&w);
}

/* A time limit that strikes on the way out is a timeout like any other. */
static void test_limit_during_notice(void **state)
{
    (void)state;
    st_policy policy = quick();
    world w;
    begin_claim_with(&w, &policy, ST_YIELD_CHECKPOINT, 110 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 110 * SEC);
    tick(&w, 110 * SEC);
    assert_int_equal(effect(&w, ST_FX_END, VICTIM)->state, ST_JOB_TIMEOUT);
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    end(&w);
}

/* The minimum run time puts the claim off, and the core asks to be woken when it is over. A cooldown does
 * not: who is displaced again so soon stays away instead. */
static void test_protection(void **state)
{
    (void)state;
    st_policy policy = quick();
    policy.min_run_ms = 300 * SEC;
    policy.cooldown_ms = 5000 * SEC;
    world w;
    begin_claim_with(&w, &policy, ST_YIELD_REQUEUE, ST_TIME_NEVER);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    assert_false(job_of(&w, CLAIMANT)->held);
    assert_int_equal(st_core_protected_until(w.core, job_of(&w, VICTIM), true), 300 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 300 * SEC);
    tick(&w, 300 * SEC - 1);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    tick(&w, 300 * SEC);
    in_state(&w, VICTIM, ST_JOB_NOTIFIED);
    tick(&w, 330 * SEC); /* out, and the claimant in */
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    w.now = 400 * SEC;
    tell(&w, ST_EV_FINISH, CLAIMANT);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    w.now = 1000 * SEC; /* past its minimum run time, not past its cooldown */
    submit(&w, 3, "own");
    in_state(&w, VICTIM, ST_JOB_NOTIFIED);
    tick(&w, 1030 * SEC);
    in_state(&w, 3, ST_JOB_RUNNING);
    w.now = 1100 * SEC;
    tell(&w, ST_EV_FINISH, 3);
    in_state(&w, VICTIM, ST_JOB_PENDING);
    tick(&w, 6030 * SEC);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    end(&w);
}

/* A plan that was given up owes nothing to those who left for it: the second plan waits for
 * its own victim, however early the first one's is gone. */
static void test_second_plan_waits_for_its_own(void **state)
{
    (void)state;
    st_policy policy = quick();
    world w;
    begin(&w, &policy, 2, 1);
    account(&w, "lend", ST_UNSET);
    account(&w, "own", 1000);
    for (uint64_t id = 1; id <= 2; id++) {
        st_event ev = job_event(id, "lend");
        ev.u.job.yield = ST_YIELD_CHECKPOINT;
        step(&w, &ev);
        w.now += SEC;
    }
    w.now = CLAIM;
    submit(&w, 3, "own");
    assert_true(job_of(&w, 3)->held);
    uint64_t first = job_of(&w, 1)->state == ST_JOB_NOTIFIED ? 1 : 2, second = 3 - first;
    tick(&w, CLAIM + NOTICE);
    in_state(&w, first, ST_JOB_CHECKPOINTING);
    set_node(&w, job_of(&w, first)->grants[0].node, ST_NODE_DRAINING);
    in_state(&w, second, ST_JOB_NOTIFIED); /* the claim goes on with the other node */
    assert_true(job_of(&w, 3)->held);
    w.now += SEC;
    tell(&w, ST_EV_CHECKPOINTED, first);
    in_state(&w, second, ST_JOB_NOTIFIED);
    in_state(&w, 3, ST_JOB_PENDING);
    tick(&w, w.now + NOTICE);
    tell(&w, ST_EV_CHECKPOINTED, second);
    in_state(&w, 3, ST_JOB_RUNNING);
    end(&w);
}

/* A save that is reported late, and after the limit: there is nothing to come back for. */
static void test_saved_after_the_limit(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin_claim_with(&w, &policy, ST_YIELD_PAUSE, CLAIM + NOTICE + 10 * SEC);
    tick(&w, CLAIM + NOTICE);
    in_state(&w, VICTIM, ST_JOB_CHECKPOINTING);
    w.now = CLAIM + NOTICE + 10 * SEC;
    tell(&w, ST_EV_CHECKPOINTED, VICTIM);
    const st_effect *over = effect(&w, ST_FX_END, VICTIM);
    assert_non_null(over);
    assert_int_equal(over->state, ST_JOB_TIMEOUT);
    in_state(&w, CLAIMANT, ST_JOB_RUNNING);
    end(&w);
}

/* Only a job of its own team, too large for the floor, keeps the second one out: that claims as an owner, but
 * on the minute, with the borrowers. The core wakes when it looks, not when the protection ends, and says so
 * however often it is asked. */
static void test_excess_on_the_minute(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    policy.min_run_ms = CLAIM;
    begin(&w, &policy, 1, 2);
    account(&w, "team", 1000);
    st_event ev = account_event("left", ST_UNSET);
    ev.u.account.parent = "team";
    step(&w, &ev);
    ev.u.account.name = "right";
    step(&w, &ev);
    ev = job_event(VICTIM, "left");
    ev.u.job.shape.gpus = 2;
    step(&w, &ev);
    assert_int_equal(job_of(&w, VICTIM)->class, ST_CLASS_BURSTABLE);
    w.now = 5 * SEC;
    submit(&w, CLAIMANT, "right");
    tick(&w, 60 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 120 * SEC);
    tick(&w, 60 * SEC);
    assert_int_equal(st_core_next_timer(w.core), 120 * SEC);
    tick(&w, CLAIM);
    assert_int_equal(w.fx.list.n, 0);
    tick(&w, 120 * SEC);
    assert_non_null(effect(&w, ST_FX_NOTIFY, VICTIM));
    end(&w);
}

/* Displaced twice by an owner, a job borrows nothing for a while; that it ran inside a floor of its own in between
 * does not end that. */
static void test_rest_outlives_a_start(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    policy.notice_ms = policy.grace_ms = 0;
    policy.cooldown_ms = 1000 * SEC;
    policy.urgent = 0;
    begin(&w, &policy, 1, 1);
    account(&w, "lend", ST_UNSET);
    account(&w, "own", 1000);
    submit(&w, VICTIM, "lend");
    for (uint64_t owner = 2; owner <= 3; owner++) {
        w.now += 10 * SEC;
        in_state(&w, VICTIM, ST_JOB_RUNNING);
        submit(&w, owner, "own");
        in_state(&w, VICTIM, ST_JOB_PENDING);
        w.now += 10 * SEC;
        tell(&w, ST_EV_FINISH, owner);
    }
    in_state(&w, VICTIM, ST_JOB_PENDING);
    account(&w, "own", ST_UNSET);
    account(&w, "lend", 1000);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    account(&w, "lend", ST_UNSET);
    w.now += 10 * SEC;
    tell(&w, ST_EV_UNSTARTED, VICTIM);
    in_state(&w, VICTIM, ST_JOB_PENDING);
    tick(&w, 30 * SEC + 1000 * SEC);
    in_state(&w, VICTIM, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notice),
        cmocka_unit_test(test_the_place_is_held),
        cmocka_unit_test(test_own_grace),
        cmocka_unit_test(test_measured_pause),
        cmocka_unit_test(test_checkpoint_in_time),
        cmocka_unit_test(test_checkpoint_missed),
        cmocka_unit_test(test_checkpoint_during_notice),
        cmocka_unit_test(test_requeue),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_tells_the_loss),
        cmocka_unit_test(test_pause_and_resume),
        cmocka_unit_test(test_pause_limit),
        cmocka_unit_test(test_pause_missed),
        cmocka_unit_test(test_paused_node_fails),
        cmocka_unit_test(test_paused_is_cancelled),
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_claimant_cancelled_spares),
        cmocka_unit_test(test_claimant_cancelled_too_late),
        cmocka_unit_test(test_victim_ends_by_itself),
        cmocka_unit_test(test_limit_during_notice),
        cmocka_unit_test(test_saved_after_the_limit),
        cmocka_unit_test(test_protection),
        cmocka_unit_test(test_second_plan_waits_for_its_own),
        cmocka_unit_test(test_excess_on_the_minute),
        cmocka_unit_test(test_rest_outlives_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
