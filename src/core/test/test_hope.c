/*
 * What is known without a look at everybody: claims that cannot come to anything (claim_hope.c), at their edges, and
 * that a cancel of who waits, and a submit of who has to, is nobody else's business.
 */
#include "core/state.h"
#include "core/test/world.h"

#define PATIENCE (1000 * SEC)

static st_policy plain(void)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = policy.grace_ms = policy.min_run_ms = policy.cooldown_ms = 0;
    policy.rebalance = policy.urgent = policy.defrag = 0;
    policy.bound_m = 2000;
    policy.patience_ms = PATIENCE;
    return policy;
}

static void gang(world *w, uint64_t id, const char *account, int tasks, int gpus)
{
    st_event ev = job_event(id, account);
    ev.u.job.tasks = tasks;
    ev.u.job.shape.gpus = gpus;
    step(w, &ev);
}

/* Two nodes of four GPUs, on each a borrower of three; one GPU of each is free. */
static void begin_lent(world *w, int64_t own_m)
{
    st_policy policy = plain();
    begin(w, &policy, 2, 4);
    account(w, "lend", ST_UNSET);
    account(w, "own", own_m);
    gang(w, 1, "lend", 1, 3);
    gang(w, 2, "lend", 1, 3);
    assert_int_not_equal(job_of(w, 1)->grants[0].node, job_of(w, 2)->grants[0].node);
    w->now += SEC;
}

/* With all of them gone there is just enough, what is free counted with it. */
static void test_just_enough(void **state)
{
    (void)state;
    world w;
    begin_lent(&w, 8000);
    gang(&w, 3, "own", 2, 4);
    in_state(&w, 3, ST_JOB_RUNNING);
    in_state(&w, 1, ST_JOB_PENDING);
    in_state(&w, 2, ST_JOB_PENDING);
    end(&w);
}

/* Who leaves already makes room as well: what the first claim leaves of it is the second one's. */
static void test_with_who_leaves(void **state)
{
    (void)state;
    world w;
    st_policy policy = plain();
    policy.notice_ms = 100 * SEC;
    begin(&w, &policy, 1, 4);
    account(&w, "lend", ST_UNSET);
    account(&w, "own", 4000);
    gang(&w, 1, "lend", 1, 4);
    w.now += SEC;
    gang(&w, 2, "own", 1, 2);
    in_state(&w, 1, ST_JOB_NOTIFIED);
    gang(&w, 3, "own", 1, 2);
    assert_true(job_of(&w, 2)->held && job_of(&w, 3)->held);
    end(&w);
}

/* A node that takes nobody counts for nothing: where its borrower is the last one, there is nobody to claim from. */
static void test_too_little(void **state)
{
    (void)state;
    world w;
    begin_lent(&w, 8000);
    set_node(&w, 1, ST_NODE_DRAINING);
    gang(&w, 3, "own", 2, 2);
    in_state(&w, 3, ST_JOB_RUNNING); /* both on one node, for which one goes */
    gang(&w, 4, "own", 1, 1);
    in_state(&w, 4, ST_JOB_PENDING);
    assert_int_equal(job_of(&w, 4)->held, false);
    end(&w);
}

/* A borrower of just what the bound allows goes at once; of one GPU more, when the claim is no longer held to it. */
static void test_the_bound(void **state)
{
    (void)state;
    for (int more = 0; more <= 1; more++) {
        world w;
        st_policy policy = plain();
        begin(&w, &policy, 1, 2 + more);
        account(&w, "lend", ST_UNSET);
        account(&w, "own", 1000);
        gang(&w, 1, "lend", 1, 2 + more);
        w.now += SEC;
        gang(&w, 2, "own", 1, 1);
        in_state(&w, 2, more ? ST_JOB_PENDING : ST_JOB_RUNNING);
        if (more) {
            assert_true(st_core_next_timer(w.core) <= w.now + PATIENCE);
            tick(&w, w.now + PATIENCE - 1);
            in_state(&w, 2, ST_JOB_PENDING);
            tick(&w, w.now + 1);
            in_state(&w, 2, ST_JOB_RUNNING);
        }
        end(&w);
    }
}

/* ---- cancels ----------------------------------------------------------------------------- */

/* One GPU with an owner's job on it, others wait: with `reserved` the first of them is reserved for. */
static void begin_queue(world *w, int64_t reserved)
{
    st_policy policy = plain();
    policy.reservations = reserved;
    begin(w, &policy, 1, 1);
    account(w, "own", 1000);
    for (uint64_t id = 1; id <= 4; id++) {
        st_event ev = job_event(id, "own");
        ev.u.job.limit_ms = 100 * SEC;
        step(w, &ev);
    }
    w->now += SEC;
    tick(w, w->now);
}

/* After it the state is what a full pass makes of it. */
static void assert_at_rest(world *w)
{
    st_strbuf first = {0}, second = {0};
    st_core_save(w->core, &first);
    tick(w, w->now);
    assert_int_equal(w->fx.list.n, 0);
    st_core_save(w->core, &second);
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.s, second.s, first.n);
    st_strbuf_done(&first);
    st_strbuf_done(&second);
}

static void test_a_cancel_changes_nothing_for_others(void **state)
{
    (void)state;
    world w;
    begin_queue(&w, 1);
    tell(&w, ST_EV_CANCEL, 3);
    assert_int_equal(w.fx.list.n, 1);
    assert_non_null(effect(&w, ST_FX_END, 3));
    assert_at_rest(&w);
    tell(&w, ST_EV_FINISH, 1);
    in_state(&w, 2, ST_JOB_RUNNING);
    end(&w);
}

static void test_a_cancel_of_who_is_reserved_for(void **state)
{
    (void)state;
    world w;
    begin_queue(&w, 1);
    tell(&w, ST_EV_CANCEL, 2);
    st_reserved_list list = {0};
    st_core_reserved(w.core, &list);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].job, 3);
    st_vec_free(&list);
    assert_at_rest(&w);
    end(&w);
}

/* A cancel and a submit of one moment: the one who comes finds the queue without the other. */
static void test_a_cancel_and_a_submit(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin_queue(&w, 1);
    st_event cancel = id_event(ST_EV_CANCEL, 4), ev = job_event(5, "own");
    st_effects_clear(&w.fx);
    assert_ok(st_core_apply(w.core, &cancel, w.now, &w.fx, &err));
    assert_ok(st_core_apply(w.core, &ev, w.now, &w.fx, &err));
    cancel = id_event(ST_EV_CANCEL, 5);
    assert_ok(st_core_apply(w.core, &cancel, w.now, &w.fx, &err));
    st_core_settle(w.core, w.now, &w.fx);
    assert_at_rest(&w);
    in_state(&w, 3, ST_JOB_PENDING);
    end(&w);
}

/* ---- submits ----------------------------------------------------------------------------- */

static st_core *twin_of(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_core *twin = NULL;
    st_err err = {0};

    st_core_save(w->core, &saved);
    assert_ok(st_core_load(saved.s, saved.n, &twin, &err));
    return twin;
}

/* An owner waits until a borrower's protection is over, and is reserved for until then. Who comes behind it and can do nothing
 * has no pass, and who can has one: both leave what a full pass makes of it. */
static void test_a_submit_behind_an_owner_who_waits(void **state)
{
    (void)state;
    for (int gpus = 1; gpus <= 2; gpus++) {
        world w;
        st_policy policy = plain();
        st_reserved_list list = {0};
        st_strbuf quick = {0}, full = {0};
        st_effects fx = {0};
        st_err err = {0};

        policy.min_run_ms = 600 * SEC;
        policy.reservations = 2;
        begin(&w, &policy, 2, 2);
        account(&w, "own", 2000);
        account(&w, "other", ST_UNSET);
        gang(&w, 1, "other", 1, 2);
        gang(&w, 2, "other", 1, 1); /* a GPU is left */
        w.now += SEC;
        gang(&w, 3, "own", 1, 2);
        in_state(&w, 3, ST_JOB_PENDING);
        st_core_reserved(w.core, &list);
        assert_int_equal(list.n, 1);
        assert_true(list.v[0].claims);
        st_vec_free(&list);
        w.now += SEC;
        st_core *twin = twin_of(&w);
        st_event ev = job_event(4, "other");
        ev.u.job.shape.gpus = gpus;
        assert_ok(st_core_apply(twin, &ev, w.now, &fx, &err));
        st_core_pass(twin, w.now, &fx);
        step(&w, &ev);
        in_state(&w, 4, gpus == 1 ? ST_JOB_RUNNING : ST_JOB_PENDING);
        assert_int_equal(st_core_hash(twin), st_core_hash(w.core));
        st_core_save(w.core, &quick);
        st_core_save(twin, &full);
        assert_int_equal(quick.n, full.n);
        assert_memory_equal(quick.s, full.s, full.n);
        tick(&w, w.now + 600 * SEC); /* and the owner has what is its own, in the end */
        tick(&w, w.now + 600 * SEC);
        in_state(&w, 3, ST_JOB_RUNNING);
        st_strbuf_done(&quick);
        st_strbuf_done(&full);
        st_effects_done(&fx);
        st_core_free(twin);
        end(&w);
    }
}

/* A borrower takes from a branch that stands higher: what all in it hold counts, at whatever depth, with what is free. */
static void test_from_below(void **state)
{
    (void)state;
    world w;
    st_policy policy = plain();
    policy.rebalance = true;
    begin(&w, &policy, 2, 4);
    account(&w, "rich", ST_UNSET);
    st_event ev = account_event("team", ST_UNSET);
    ev.u.account.parent = "rich";
    step(&w, &ev);
    account(&w, "poor", ST_UNSET);
    gang(&w, 1, "team", 1, 3);
    gang(&w, 2, "team", 1, 3);
    w.now += SEC;
    gang(&w, 3, "poor", 1, 4);
    in_state(&w, 3, ST_JOB_PENDING);
    tick(&w, 120 * SEC); /* borrowers look on the minute */
    in_state(&w, 3, ST_JOB_RUNNING);
    end(&w);
}

/* Where an account would stand without a borrower is kept by its place in line, and that changes with time. */
static void test_standings_of_another_order(void **state)
{
    (void)state;
    world w;
    st_policy policy = plain();
    begin(&w, &policy, 1, 4);
    account(&w, "a", ST_UNSET);
    gang(&w, 1, "a", 1, 1);
    gang(&w, 2, "a", 1, 3);
    st_core_refresh_yielders(w.core);
    st_standings_begin(w.core);
    st_yielders *y = &w.core->yielders;
    st_job *first = y->all.v[0], *second = y->all.v[1];
    st_standing without_first = st_standings_without(w.core, first->account, first);
    st_standing without_second = st_standings_without(w.core, first->account, second);
    assert_int_not_equal(st_standing_cmp(without_first, without_second), 0);
    y->all.v[0] = second; /* as if they had been put in order at a later moment */
    y->all.v[1] = first;
    second->yields = 0;
    first->yields = 1;
    y->now++;
    st_standings_begin(w.core);
    assert_int_equal(
        st_standing_cmp(st_standings_without(w.core, first->account, first), without_first), 0);
    assert_int_equal(
        st_standing_cmp(st_standings_without(w.core, first->account, second), without_second), 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_below),
        cmocka_unit_test(test_just_enough),
        cmocka_unit_test(test_with_who_leaves),
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_the_bound),
        cmocka_unit_test(test_a_cancel_changes_nothing_for_others),
        cmocka_unit_test(test_a_cancel_of_who_is_reserved_for),
        cmocka_unit_test(test_a_cancel_and_a_submit),
        cmocka_unit_test(test_a_submit_behind_an_owner_who_waits),
        cmocka_unit_test(test_standings_of_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
