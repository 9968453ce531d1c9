/*
 * Sharing without harm: with `as_if_alone`, and preemption that costs nothing, no job of any
 * account ends later than it would on nodes of its account's own.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "core/test/world.h"

#define JOBS     120
#define ACCOUNTS 3
#define GPUS     4 /* per node */

static const char *const names[ACCOUNTS] = {"a", "b", "c"};
static const int homes[ACCOUNTS] = {2, 1, 1}; /* nodes */

typedef struct load {
    int account, tasks, gpus;
    int64_t submit_ms, run_ms;
} load;

typedef struct play {
    world w;
    const load *jobs;
    int only;                        /* account, or -1: everybody */
    int64_t left[JOBS], since[JOBS]; /* run time to go; when this stay began */
    bool on[JOBS], over[JOBS];
    int64_t end[JOBS];
} play;

static void make_jobs(st_rng *rng, load *ret)
{
    int64_t at = 0;
    for (int i = 0; i < JOBS; i++) {
        load *l = &ret[i];
        at += st_rng_range(rng, 0, 60) * SEC;
        l->account = (int)st_rng_range(rng, 0, ACCOUNTS - 1);
        l->gpus = 1 << st_rng_range(rng, 0, 2);
        l->tasks = l->gpus == GPUS && homes[l->account] > 1 && st_rng_chance(rng, 1, 3) ? 2 : 1;
        l->submit_ms = at;
        l->run_ms = st_rng_range(rng, 1, 400) * SEC;
    }
}

static void play_begin(play *p, const load *jobs, int only, bool as_if_alone)
{
    st_policy policy = st_policy_default();
    policy.as_if_alone = as_if_alone;
    policy.min_run_ms = policy.cooldown_ms = policy.notice_ms = 0;
    policy.reservations = 0;
    policy.bound_m = 1000000;
    policy.learn = 0; /* private nodes are filled by the plain rule, on paper too */
    *p = (play){.jobs = jobs, .only = only};
    int nodes = 0;
    for (int a = 0; a < ACCOUNTS; a++)
        nodes += only < 0 || only == a ? homes[a] : 0;
    begin(&p->w, &policy, nodes, GPUS);
    for (int a = 0; a < ACCOUNTS; a++)
        if (only < 0 || only == a)
            account(&p->w, names[a], homes[a] * GPUS * 1000);
    for (int i = 0; i < JOBS; i++)
        p->left[i] = jobs[i].run_ms;
}

/* What the engine would do: note starts, and save at once whoever is told to. */
static void obey(play *p)
{
    st_err err = {0};
    for (size_t i = 0; i < p->w.fx.list.n; i++) {
        st_effect e = p->w.fx.list.v[i];
        if (e.job == 0)
            continue;
        size_t j = (size_t)e.job - 1;
        if (e.kind == ST_FX_START) {
            p->on[j] = true;
            p->since[j] = p->w.now;
        } else if (e.kind == ST_FX_CHECKPOINT) {
            p->left[j] -= p->w.now - p->since[j];
            p->on[j] = false;
            st_event ev = id_event(ST_EV_CHECKPOINTED, e.job);
            assert_ok(st_core_apply(p->w.core, &ev, p->w.now, &p->w.fx, &err));
            st_core_pass(p->w.core, p->w.now, &p->w.fx);
        }
    }
}

static void finish_and_submit(play *p)
{
    st_err err = {0};
    for (int i = 0; i < JOBS; i++) {
        if (!p->on[i] || p->since[i] + p->left[i] > p->w.now)
            continue;
        st_event ev = id_event(ST_EV_FINISH, (uint64_t)i + 1);
        assert_ok(st_core_apply(p->w.core, &ev, p->w.now, &p->w.fx, &err));
        p->on[i] = false;
        p->over[i] = true;
        p->end[i] = p->w.now;
    }
    for (int i = 0; i < JOBS; i++) {
        const load *l = &p->jobs[i];
        if (l->submit_ms != p->w.now || (p->only >= 0 && l->account != p->only))
            continue;
        st_event ev = job_event((uint64_t)i + 1, names[l->account]);
        ev.u.job.tasks = l->tasks;
        ev.u.job.shape.gpus = l->gpus;
        ev.u.job.yield = ST_YIELD_CHECKPOINT;
        assert_ok(st_core_apply(p->w.core, &ev, p->w.now, &p->w.fx, &err));
    }
}

static int64_t next_moment(const play *p)
{
    int64_t next = st_core_next_timer(p->w.core);
    for (int i = 0; i < JOBS; i++) {
        if (p->jobs[i].submit_ms > p->w.now)
            next = ST_MIN(next, p->jobs[i].submit_ms);
        if (p->on[i])
            next = ST_MIN(next, p->since[i] + p->left[i]);
    }
    return next;
}

/* Go on with what a save brings back, shadows of ended jobs included. */
static void reload(play *p)
{
    st_err err = {0};
    st_strbuf saved = {0};
    st_core *again = NULL;
    st_core_save(p->w.core, &saved);
    assert_ok(st_core_load(saved.s, saved.n, &again, &err));
    st_core_free(p->w.core);
    p->w.core = again;
    st_strbuf_done(&saved);
}

static void play_all(play *p, int64_t *ret_end)
{
    int moments = 0;
    for (int64_t at = 0; at != ST_TIME_NEVER; at = next_moment(p)) {
        p->w.now = ST_MAX(at, p->w.now);
        st_effects_clear(&p->w.fx);
        finish_and_submit(p);
        st_core_pass(p->w.core, p->w.now, &p->w.fx);
        obey(p);
        if (++moments % 16 == 0)
            reload(p);
    }
    for (int i = 0; i < JOBS; i++) {
        if (p->only >= 0 && p->jobs[i].account != p->only)
            continue;
        assert_true(p->over[i]);
        ret_end[i] = p->end[i];
    }
    end(&p->w);
}

/* How many of a seed's jobs end later in the shared pool than alone. */
static int late(uint64_t seed, bool as_if_alone)
{
    st_rng rng;
    st_rng_seed(&rng, seed);
    load jobs[JOBS];
    make_jobs(&rng, jobs);
    int64_t alone[JOBS], shared[JOBS];
    play *p = st_xmalloc(sizeof *p);
    for (int a = 0; a < ACCOUNTS; a++) {
        play_begin(p, jobs, a, false);
        play_all(p, alone);
    }
    play_begin(p, jobs, -1, as_if_alone);
    play_all(p, shared);
    free(p);
    int n = 0;
    for (int i = 0; i < JOBS; i++)
        n += shared[i] > alone[i];
    return n;
}

static void test_nobody_is_late(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        assert_int_equal(late(seed, true), 0);
}

/* The seeds above are hard enough: by the count of GPUs alone some are late. */
static void test_counting_does_not_do(void **state)
{
    (void)state;
    int n = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        n += late(seed, false);
    assert_true(n > 0);
}

static void test_home_place(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.as_if_alone = true;
    world w;
    begin(&w, &policy, 4, 2);
    account(&w, "a", 2000);
    account(&w, "b", 3000); /* one node of two; the odd GPU is not a node */
    const st_fleet *fleet = st_core_fleet(w.core);
    int32_t a = st_tree_find(st_core_tree(w.core), "a"), b = a + 1;
    assert_int_equal(fleet->nodes.v[0]->home, a);
    assert_int_equal(fleet->nodes.v[1]->home, b);
    assert_int_equal(fleet->nodes.v[2]->home, 0);

    submit(&w, 1, "a");
    const st_grant *place;
    assert_true(st_core_has_home(job_of(&w, 1), &place));
    assert_int_equal(place[0].node, 0);
    assert_int_equal(job_of(&w, 1)->class, ST_CLASS_GUARANTEED);

    set_node(&w, 0, ST_NODE_FAILED); /* the home moves, and the job with it */
    assert_int_equal(fleet->nodes.v[0]->home, 0);
    assert_int_equal(fleet->nodes.v[2]->home, a);
    assert_true(st_core_has_home(job_of(&w, 1), &place));
    assert_int_equal(place[0].node, 2);
    in_state(&w, 1, ST_JOB_RUNNING);

    st_event ev = account_event("a", 1000); /* too little for a node: back to counting */
    step(&w, &ev);
    assert_false(st_core_has_home(job_of(&w, 1), &place));
    assert_int_equal(job_of(&w, 1)->class, ST_CLASS_GUARANTEED);
    end(&w);
}

static void test_who_has_no_home(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.as_if_alone = true;
    world w;
    begin(&w, &policy, 3, 2);
    account(&w, "a", 2000);
    st_event ev = account_event("b", 2000); /* may not borrow */
    ev.u.account.weight_m = 0;
    step(&w, &ev);
    submit(&w, 1, "b");
    ev = job_event(2, "a"); /* larger than its home */
    ev.u.job.tasks = 3;
    ev.u.job.shape.gpus = 1;
    step(&w, &ev);
    const st_grant *place;
    assert_false(st_core_has_home(job_of(&w, 1), &place));
    assert_false(st_core_has_home(job_of(&w, 2), &place));
    assert_int_equal(job_of(&w, 1)->class, ST_CLASS_GUARANTEED);
    assert_int_equal(job_of(&w, 2)->class, ST_CLASS_BURSTABLE);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_late),
        cmocka_unit_test(test_counting_does_not_do),
        cmocka_unit_test(test_home_place),
        cmocka_unit_test(test_who_has_no_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
