/*
 * The timeline: estimates read from it are those of a play of their own, and a job that is thought of is told the start
 * that a play with it gives.
 */
#include "base/rng.h"
#include "core/test/world.h"
#include "core/timeline.h"

#define HOUR (3600 * SEC)
#define JOBS 60

static const char *const names[] = {"a", "b", "c"};

static st_event random_job(st_rng *r, uint64_t id)
{
    st_event ev = job_event(id, names[st_rng_below(r, 3)]);

    ev.u.job.shape.gpus = 1 << st_rng_below(r, 4);
    if (ev.u.job.shape.gpus == 8)
        ev.u.job.tasks = (int)st_rng_range(r, 1, 3);
    ev.u.job.limit_ms = st_rng_range(r, 1, 50) * HOUR / 10;
    ev.u.job.priority = (int)st_rng_below(r, 3);
    if (st_rng_below(r, 5) == 0 && ev.u.job.tasks > 1) {
        ev.u.job.topo = ST_TOPO_RACK;
        ev.u.job.topo_required = true;
    }
    return ev;
}

static void fill(world *w, st_rng *r)
{
    st_policy policy = st_policy_default();

    policy.reservations = 0;
    begin(w, &policy, 0, 8);
    for (int i = 0; i < 6; i++) {
        char name[8], rack[8];
        st_event node = node_event(name, 8);

        snprintf(name, sizeof name, "m%d", i);
        snprintf(rack, sizeof rack, "r%d", i / 3);
        node.u.node.rack = rack;
        step(w, &node);
    }
    for (int i = 0; i < 3; i++) {
        st_event ev = account_event(names[i], i == 0 ? 8000 : ST_UNSET);

        if (i == 2)
            ev.u.account.max.gpu_m = 16000;
        step(w, &ev);
    }
    for (uint64_t id = 1; id <= JOBS; id++) {
        st_event ev = random_job(r, id);
        st_err err = {0};

        st_core_step(w->core, &ev, w->now, &w->fx, &err);
    }
}

static int64_t in_list(const st_estimates *list, uint64_t id)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].job == id)
            return list->v[i].start_ms;
    return -1;
}

/* A play with the job, and a look at the play without it. */
static void test_probe_is_a_play(void **state)
{
    (void)state;
    int compared = 0;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        world w;
        st_rng r;
        st_err err = {0};
        ST_CLEANUP(st_timeline_freep) st_timeline *before = NULL;
        ST_CLEANUP(st_timeline_freep) st_timeline *with = NULL;
        st_estimate probed;

        st_rng_seed(&r, seed);
        fill(&w, &r);
        assert_ok(st_core_timeline(w.core, &before, &err));
        st_event ev = random_job(&r, 1000);
        if (st_core_step(w.core, &ev, w.now, &w.fx, &err) == 0 &&
            st_core_job(w.core, 1000)->state == ST_JOB_PENDING &&
            !st_core_job(w.core, 1000)->held) {
            assert_ok(st_core_timeline(w.core, &with, &err));
            st_timeline_probe(before, w.core, 1000, &probed);
            int64_t want = in_list(st_timeline_list(with), 1000);
            if (probed.start_ms != want)
                fail_msg("seed %d: probed %lld, played %lld", (int)seed, (long long)probed.start_ms,
                         (long long)want);
            compared++;
        }
        end(&w);
    }
    assert_true(compared > 40);
}

static void test_find(void **state)
{
    (void)state;
    world w;
    st_rng r;
    st_err err = {0};
    ST_CLEANUP(st_timeline_freep) st_timeline *tl = NULL;
    st_estimates list = {0};
    st_estimate e;

    st_rng_seed(&r, 7);
    fill(&w, &r);
    assert_ok(st_core_timeline(w.core, &tl, &err));
    assert_ok(st_core_estimate(w.core, &list, &err));
    assert_true(list.n > 0);
    assert_int_equal(list.n, st_timeline_list(tl)->n);
    for (size_t i = 0; i < list.n; i++) {
        assert_true(st_timeline_find(tl, list.v[i].job, &e));
        assert_int_equal(e.start_ms, list.v[i].start_ms);
    }
    assert_false(st_timeline_find(tl, 99999, &e));
    st_vec_free(&list);
    end(&w);
}

/* What can never be: above a max, of an account that borrows nothing, in a domain that is too small. */
static void test_never(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    ST_CLEANUP(st_timeline_freep) st_timeline *tl = NULL;
    st_estimate e;

    begin(&w, NULL, 1, 8);
    account(&w, "a", ST_UNSET);
    st_event forever = job_event(1, "a");
    forever.u.job.shape.gpus = 8;
    forever.u.job.limit_ms = ST_TIME_NEVER;
    step(&w, &forever);
    assert_ok(st_core_timeline(w.core, &tl, &err));
    st_event next = job_event(2, "a");
    step(&w, &next);
    st_timeline_probe(tl, w.core, 2, &e);
    assert_int_equal(e.start_ms, ST_TIME_NEVER);
    st_timeline_probe(tl, w.core, 12345, &e); /* nobody */
    assert_int_equal(e.start_ms, ST_TIME_NEVER);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_probe_is_a_play),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_never),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
