/*
 * The checkers, shown what is broken: a sound machine is built, one thing in it or in its effects
 * is changed by hand, and the sentence must name it. That the rules of the scheduler cannot be
 * broken unnoticed over a run is the business of stint-mutants (doc/dev/testing.md).
 */
#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/testing.h"
#include "check/check.h"
#include "share/divide.h"

typedef struct world {
    st_core *core;
    st_watch *watch;
    st_effects fx; /* of the last step */
    st_event last; /* its event */
} world;

/* The state belongs to the core; here it is altered behind its back. */
static void *ours(const void *theirs)
{
    return (void *)(uintptr_t)theirs;
}

static st_job *job_of(const world *w, uint64_t id)
{
    assert_non_null(st_core_job(w->core, id));
    return ours(st_core_job(w->core, id));
}

static st_node *node_of(const world *w, size_t i)
{
    return ours(st_core_fleet(w->core)->nodes.v[i]);
}

static st_account *account_of(const world *w, const char *name)
{
    const st_tree *tree = st_core_tree(w->core);
    return ours(tree->accounts.v[st_tree_find(tree, name)]);
}

static int watch_last(world *w, st_err *err)
{
    const st_event *events[] = {&w->last};
    return st_watch_step(w->watch, w->core, events, 1, &w->fx, err);
}

/* A step whose effects the watch has not seen. */
static void step(world *w, const st_event *ev, int64_t now)
{
    st_err err = {0};
    w->last = *ev;
    st_effects_clear(&w->fx);
    assert_ok(st_core_step(w->core, ev, now, &w->fx, &err));
}

static void play(world *w, const st_event *ev, int64_t now)
{
    st_err err = {0};
    step(w, ev, now);
    assert_ok(st_check(w->core, &err));
    assert_ok(watch_last(w, &err));
    assert_ok(st_watch_waiting(w->watch, w->core, 1, 0, &err));
}

static st_event job_event(uint64_t id, const char *account, st_level level)
{
    st_event ev = {.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = id,
                             .name = "job",
                             .account = account,
                             .user = "ann",
                             .pool = -1,
                             .tasks = 1,
                             .shape = {.level = level, .gpus = 1, .cpu_m = 1000, .ram_mib = 100},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    if (level == ST_LEVEL_MIG)
        ev.u.job.shape.profile = ST_MIG_1G;
    if (level == ST_LEVEL_MPS || level == ST_LEVEL_TIME)
        ev.u.job.shape.share_m = 250;
    return ev;
}

static void add_account(world *w, const char *name, int64_t guarantee_m)
{
    st_event ev = {.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = name;
    ev.u.account.guarantee.gpu_m = guarantee_m;
    play(w, &ev, 0);
}

/* Two nodes with two GPUs each in different racks; "owner" is guaranteed two GPUs, "guest" and
 * "other" nothing. */
static void begin(world *w)
{
    st_policy policy = st_policy_default();
    policy.min_run_ms = policy.cooldown_ms = 0;
    *w = (world){.core = st_core_new(&policy)};
    w->watch = st_watch_new(w->core);
    st_event ev = {.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    ev.u.type.board = ST_BOARD_H100_80;
    play(w, &ev, 0);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "p";
    ev.u.pool.levels = 0xf;
    ev.u.pool.oversub_m = 2000;
    play(w, &ev, 0);
    ev.u.pool.name = "q";
    play(w, &ev, 0);
    const char *const names[] = {"n0", "n1"};
    for (int i = 0; i < 2; i++) {
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){
            .name = names[i], .ndevs = 2, .cpu_m = 8000, .ram_mib = 1000, .rack = names[i]};
        play(w, &ev, 0);
    }
    add_account(w, "owner", 2000);
    add_account(w, "guest", ST_UNSET);
    add_account(w, "other", ST_UNSET);
}

static void end(world *w)
{
    st_effects_done(&w->fx);
    st_watch_free(w->watch);
    st_core_free(w->core);
}

static void submit(world *w, uint64_t id, const char *account, st_level level)
{
    st_event ev = job_event(id, account, level);
    play(w, &ev, 0);
}

/* ---- states ------------------------------------------------------------------------- */

static void mask_too_wide(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->grants[0].devs = 0x8;
}

static void no_such_node(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->grants[0].node = 7;
}

static void one_gpu_twice(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    submit(w, 2, "guest", ST_LEVEL_WHOLE);
    job_of(w, 2)->grants[0] = job_of(w, 1)->grants[0];
}

static void a_gpu_short(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->grants[0].devs = 0;
}

static void wrong_pool(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->pool = 1;
}

static void on_a_failed_node(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    node_of(w, (size_t)job_of(w, 1)->grants[0].node)->state = ST_NODE_FAILED;
}

static void forbidden_level(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_TIME);
    st_pool *pools = st_core_fleet(w->core)->pools.v;
    pools[0].levels = 1u << ST_LEVEL_WHOLE;
}

static void wrong_type(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->shape.types = 2;
}

static void too_far_apart(world *w)
{
    st_event ev = job_event(1, "guest", ST_LEVEL_WHOLE);
    ev.u.job.tasks = 4;
    play(w, &ev, 0);
    job_of(w, 1)->topo = ST_TOPO_RACK;
    job_of(w, 1)->topo_required = true;
}

static void pending_and_placed(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->state = ST_JOB_PENDING;
    job_of(w, 1)->class = ST_CLASS_NONE;
}

static void running_without_class(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->class = ST_CLASS_NONE;
}

static void over_and_listed(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->state = ST_JOB_DONE;
}

static void leaving_for_nobody(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->state = ST_JOB_NOTIFIED;
}

static void past_its_deadline(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->state = ST_JOB_NOTIFIED;
    job_of(w, 1)->claimant = 9;
    job_of(w, 1)->deadline_ms = 0;
}

static void guaranteed_and_leaving(world *w)
{
    submit(w, 1, "owner", ST_LEVEL_WHOLE);
    job_of(w, 1)->state = ST_JOB_NOTIFIED;
    job_of(w, 1)->claimant = 9;
    job_of(w, 1)->deadline_ms = 1000;
}

static void too_much_cpu(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->shape.cpu_m = 9000;
}

static void too_much_ram(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->shape.ram_mib = 1001;
}

static void mps_across_domains(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_MPS);
    submit(w, 2, "guest", ST_LEVEL_MPS);
    job_of(w, 2)->account = account_of(w, "other")->id;
}

static void critical_beside_a_stranger(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_TIME);
    submit(w, 2, "other", ST_LEVEL_TIME);
    job_of(w, 2)->latency_critical = true;
}

static void sliced_too_thin(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_TIME);
    job_of(w, 1)->shape.share_m = 2001;
}

static void vram_overdrawn(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_TIME);
    job_of(w, 1)->shape.vram_mib = 81921;
}

static void slices_overlap(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_MIG);
    submit(w, 2, "guest", ST_LEVEL_MIG);
    job_of(w, 2)->grants[0].mig_start = job_of(w, 1)->grants[0].mig_start;
}

static void slice_at_no_start(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_MIG);
    job_of(w, 1)->grants[0].mig_start = 7;
}

static void two_levels_on_a_gpu(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_TIME);
    submit(w, 2, "guest", ST_LEVEL_TIME);
    job_of(w, 2)->shape.level = ST_LEVEL_MPS;
}

static void view_drifted(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    node_of(w, 0)->view.ram_free_mib--;
}

static void view_misses_a_gpu(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    const st_grant *g = &job_of(w, 1)->grants[0];
    node_of(w, (size_t)g->node)->view.dev[__builtin_ctz(g->devs)].mode = ST_DEV_FREE;
}

static void counter_drifted(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    account_of(w, "guest")->now.gpu_m += 1;
}

static void floor_too_high(world *w)
{
    account_of(w, "owner")->floor.gpu_m = 3000;
}

static void capacity_invented(world *w)
{
    st_tree *tree = ours(st_core_tree(w->core));
    tree->capacity.gpu_m += 1000;
}

static void guaranteed_beyond_the_floor(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    job_of(w, 1)->class = ST_CLASS_GUARANTEED;
    const char *const names[] = {"guest", "cluster"};
    for (size_t i = 0; i < 2; i++) {
        st_account *a = account_of(w, names[i]);
        a->guaranteed = a->now;
    }
    account_of(w, "guest")->guarantee.gpu_m = account_of(w, "guest")->floor.gpu_m = 0;
}

static const struct {
    void (*spoil)(world *w);
    const char *text;
} states[] = {
    {mask_too_wide, "capacity: job 1 has GPU mask 0x8"},
    {no_such_node, "gang: job 1 task 0 has no node"},
    {one_gpu_twice, "is given whole to jobs 1 and 2"},
    {a_gpu_short, "gang: job 1 task 0 has 0 GPUs, it asked for 1"},
    {wrong_pool, "pool: job 1 of pool 1"},
    {on_a_failed_node, "failed node: job 1"},
    {forbidden_level, "isolation: job 1 is at level time"},
    {wrong_type, "type: job 1"},
    {too_far_apart, "topology: job 1 requires one rack"},
    {pending_and_placed, "state: job 1 is pending and has  grants"},
    {running_without_class, "state: job 1 is running and of class none"},
    {over_and_listed, "state: job 1 is done and still in the list"},
    {leaving_for_nobody, "its claimant is 0"},
    {past_its_deadline, "past its deadline"},
    {guaranteed_and_leaving, "reclaim: job 1 must yield and is guaranteed"},
    {too_much_cpu, "CPU: node"},
    {too_much_ram, "RAM: node"},
    {mps_across_domains, "trust: node"},
    {critical_beside_a_stranger, "latency: node"},
    {sliced_too_thin, "time-slicing: node"},
    {vram_overdrawn, "VRAM: node"},
    {slices_overlap, "the layout is illegal"},
    {slice_at_no_start, "the layout is illegal"},
    {two_levels_on_a_gpu, "mode: node"},
    {view_drifted, "view: node n0"},
    {view_misses_a_gpu, "view: node"},
    {counter_drifted, "counters: account guest now"},
    {floor_too_high, "floors: account owner"},
    {capacity_invented, "capacity: the fleet has 4000 milli-GPU"},
    {guaranteed_beyond_the_floor, "guarantees: account guest"},
};

static void test_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(states); i++) {
        world w;
        st_err err = {0};
        begin(&w);
        assert_ok(st_check(w.core, &err));
        states[i].spoil(&w);
        assert_fails(st_check(w.core, &err), ST_EINTERNAL, states[i].text);
        end(&w);
    }
}

/* ---- effects ------------------------------------------------------------------------ */

static st_effect *effect(world *w, st_effect_kind kind)
{
    for (size_t i = 0; i < w->fx.list.n; i++)
        if (w->fx.list.v[i].kind == kind)
            return &w->fx.list.v[i];
    fail_msg("no effect %s", st_effect_name(kind));
    return NULL;
}

static void start(world *w)
{
    st_event ev = job_event(1, "guest", ST_LEVEL_WHOLE);
    step(w, &ev, 10);
}

static void start_untold(world *w)
{
    start(w);
    w->fx.list.n--;
}

static void start_of_half_a_gang(world *w)
{
    start(w);
    effect(w, ST_FX_START)->ngrants = 0;
}

static void start_misdated(world *w)
{
    start(w);
    effect(w, ST_FX_START)->at_ms = 9;
}

static void start_elsewhere(world *w)
{
    start(w);
    w->fx.grants.v[0].devs ^= 3;
}

static void start_of_a_stranger(world *w)
{
    start(w);
    effect(w, ST_FX_START)->job = 2;
}

static void start_on_a_draining_node(world *w)
{
    start(w);
    node_of(w, (size_t)w->fx.grants.v[0].node)->state = ST_NODE_DRAINING;
}

static void start_without_weight(world *w)
{
    start(w);
    account_of(w, "guest")->weight_m = 0;
}

static void start_of_the_untrusted(world *w)
{
    st_event ev = job_event(1, "guest", ST_LEVEL_MPS);
    step(w, &ev, 10);
    account_of(w, "guest")->trust = ST_TRUST_UNTRUSTED;
}

static void start_past_a_max(world *w)
{
    start(w);
    account_of(w, "guest")->max.gpu_m = 500;
}

static void start_past_a_user_limit(world *w)
{
    start(w);
    account_of(w, "guest")->user_limits.gpu_m = 500;
}

static void end_unasked(world *w)
{
    submit(w, 1, "guest", ST_LEVEL_WHOLE);
    st_event ev = {.kind = ST_EV_FINISH};
    ev.u.finish.id = 1;
    step(w, &ev, 10);
    w->last = (st_event){.kind = ST_EV_TIMER};
}

static void demoted_for_nothing(world *w)
{
    submit(w, 1, "owner", ST_LEVEL_WHOLE);
    st_event ev = {.kind = ST_EV_TIMER};
    step(w, &ev, 10);
    job_of(w, 1)->class = ST_CLASS_BURSTABLE;
    st_vec_push(&w->fx.list, (st_effect){.kind = ST_FX_CLASS,
                                         .at_ms = 10,
                                         .job = 1,
                                         .account = -1,
                                         .node = -1,
                                         .class = ST_CLASS_BURSTABLE});
}

/* The guest has borrowed all four GPUs; the owner comes back for one of its own. */
static void claim(world *w)
{
    for (uint64_t id = 1; id <= 4; id++)
        submit(w, id, "guest", ST_LEVEL_WHOLE);
    st_event ev = job_event(5, "owner", ST_LEVEL_WHOLE);
    step(w, &ev, 10);
    effect(w, ST_FX_HOLD);
}

static void claim_of_more_than_needed(world *w)
{
    claim(w);
    st_effect more = *effect(w, ST_FX_NOTIFY);
    more.job = more.job == 1 ? 2 : 1;
    st_vec_push(&w->fx.list, more);
}

static void claim_past_the_bound(world *w)
{
    claim(w);
    st_policy *policy = ours(st_core_policy(w->core));
    policy->bound_m = 500;
}

static void claim_of_the_protected(world *w)
{
    claim(w);
    account_of(w, "guest")->min_run_ms = 60000;
}

static void claim_for_nobody(world *w)
{
    claim(w);
    st_effect more = *effect(w, ST_FX_NOTIFY);
    more.job = more.job == 1 ? 2 : 1;
    more.other = 3;
    st_vec_push(&w->fx.list, more);
}

static void claim_with_short_notice(world *w)
{
    claim(w);
    effect(w, ST_FX_NOTIFY)->until_ms = 11;
}

/* The same claim, said to be a borrower's whose one GPU weighs as much as the other's four. */
static void claim_against_the_order(world *w)
{
    claim(w);
    effect(w, ST_FX_HOLD)->class = ST_CLASS_BURSTABLE;
    account_of(w, "owner")->weight_m = 250;
    st_policy *policy = ours(st_core_policy(w->core));
    policy->counts = ST_COUNTS_TOTAL;
}

static void claim_against_a_priority(world *w)
{
    claim(w);
    effect(w, ST_FX_HOLD)->class = ST_CLASS_BURSTABLE;
    account_of(w, "guest")->priority = 1;
}

/* The same claim, said to be a move. */
static void move_to_nowhere(world *w)
{
    claim(w);
    effect(w, ST_FX_NOTIFY)->moves = 1;
}

static void move_for_nothing(world *w)
{
    move_to_nowhere(w);
    st_policy *policy = ours(st_core_policy(w->core));
    policy->defrag_horizon_ms = 0;
}

static const struct {
    void (*spoil)(world *w);
    const char *text;
} effects[] = {
    {start_untold, "effects: job 1 is running, by its effects it is pending"},
    {start_of_half_a_gang, "gang: start for job 1 with 0 grants for 1 tasks"},
    {start_misdated, "effects: start is dated 9, it is 10"},
    {start_elsewhere, "is not where its effects put it"},
    {start_of_a_stranger, "effects: start for job 2, which is not there"},
    {start_on_a_draining_node, "drained: start for job 1"},
    {start_without_weight, "weight: job 1 borrows"},
    {start_of_the_untrusted, "trust: job 1 of untrusted account guest"},
    {start_past_a_max, "max: account guest uses 1000 milli-GPU, its max is 500"},
    {start_past_a_user_limit, "user limit: user ann holds gpu 1000"},
    {end_unasked, "effects: end for job 1"},
    {demoted_for_nothing, "class: job 1 is no longer guaranteed"},
    {claim_of_more_than_needed, "minimal: job"},
    {claim_past_the_bound, "bound: 1000 milli-GPU must yield to job 5"},
    {claim_of_the_protected, "minimum run time: job"},
    {claim_for_nobody, "for which nothing is held"},
    {claim_with_short_notice, "notice: job"},
    {claim_against_the_order, "order: job 5 displaces"},
    {claim_against_a_priority, "account owner has priority 0 and guest has 1"},
    {move_to_nowhere, "is moved for job 5 and has nowhere to go"},
    {move_for_nothing, "moves: job 5 gains at most 0 milli-GPU"},
};

static void test_effects(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(effects); i++) {
        world w;
        st_err err = {0};
        begin(&w);
        effects[i].spoil(&w);
        assert_fails(watch_last(&w, &err), ST_EINTERNAL, effects[i].text);
        end(&w);
    }
}

static void test_a_sound_claim(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin(&w);
    claim(&w);
    assert_ok(watch_last(&w, &err));
    st_watch_counts seen = st_watch_counted(w.watch);
    assert_int_equal(seen.starts, 4);
    assert_int_equal(seen.preemptions, 1);
    end(&w);
}

/* ---- those who wait ----------------------------------------------------------------- */

static void test_waiting(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin(&w);
    for (uint64_t id = 1; id <= 5; id++)
        submit(&w, id, "guest", ST_LEVEL_WHOLE);
    assert_ok(st_watch_waiting(w.watch, w.core, 1, 0, &err));
    /* A GPU the core does not know of. */
    node_of(&w, 0)->nvlink[2] = node_of(&w, 0)->nvlink[0];
    node_of(&w, 0)->ndevs = 3;
    assert_fails(st_watch_waiting(w.watch, w.core, 1, 0, &err), ST_EINTERNAL,
                 "work conservation: job 5 (1 tasks, whole) could start");
    end(&w);
}

/* A start that was promised by limits moves back: as if somebody let in had none. */
static void test_reserved(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin(&w);
    ((st_policy *)ours(st_core_policy(w.core)))->overstay_ms = 1000;
    for (uint64_t id = 1; id <= 2; id++) {
        st_event ev = job_event(id, "guest", ST_LEVEL_WHOLE);
        ev.u.job.tasks = 4;
        ev.u.job.limit_ms = 60000;
        play(&w, &ev, 0);
    }
    st_event timer = {.kind = ST_EV_TIMER};
    job_of(&w, 1)->limit_ms += 1000;
    for (int32_t n = 0; n < 2; n++)
        st_node_touch(ours(st_core_fleet(w.core)), node_of(&w, n));
    step(&w, &timer, 1);
    assert_ok(watch_last(&w, &err));
    job_of(&w, 1)->limit_ms += 1;
    for (int32_t n = 0; n < 2; n++)
        st_node_touch(ours(st_core_fleet(w.core)), node_of(&w, n));
    step(&w, &timer, 2);
    assert_fails(watch_last(&w, &err), ST_EINTERNAL,
                 "promise: by the limits of those before it job 2 was to start by 61000, and now "
                 "by 61001");
    end(&w);
}

static void test_could_ever(void **state)
{
    (void)state;
    world w;
    begin(&w);
    submit(&w, 1, "guest", ST_LEVEL_WHOLE);
    st_job *job = job_of(&w, 1);
    assert_true(st_check_could_ever(w.core, job));
    job->shape.gpus = 3;
    assert_false(st_check_could_ever(w.core, job));
    job->shape.gpus = 1;
    account_of(&w, "guest")->max.gpu_m = 999;
    assert_false(st_check_could_ever(w.core, job));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),        cmocka_unit_test(test_effects),
        cmocka_unit_test(test_a_sound_claim), cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_reserved),      cmocka_unit_test(test_could_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
