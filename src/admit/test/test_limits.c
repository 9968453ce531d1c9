/*
 * Limits per job and per user, at every ancestor that sets any.
 */
#include "admit/admit.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"

#define NO ST_UNSET

/* Types 0 (80000 MiB, can be carved) and 1 (40000 MiB); org over team; users 0 and 1. */
typedef struct world {
    st_fleet *fleet;
    st_tree *tree;
    int32_t org, team;
} world;

static int32_t put(world *w, const char *name, const char *parent, st_limits job, st_limits user)
{
    st_err err = {0};
    int32_t id = -1;
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.job_limits = job;
    spec.user_limits = user;
    assert_ok(st_tree_set(w->tree, &spec, &id, &err));
    return id;
}

static const st_limits none = {NO, NO, NO, NO};

static void begin(world *w)
{
    st_err err = {0};
    w->fleet = st_fleet_new();
    w->tree = st_tree_new();
    assert_ok(st_fleet_add_type(w->fleet, "h100", 80000, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_type(w->fleet, "l40", 40000, ST_BOARD_NONE, &err));
    w->org = put(w, "org", NULL, none, none);
    w->team = put(w, "team", "org", none, none);
}

static void end(world *w)
{
    st_fleet_free(w->fleet);
    st_tree_free(w->tree);
}

static void limit(world *w, const char *name, st_limits job, st_limits user)
{
    put(w, name, strcmp(name, "team") == 0 ? "org" : NULL, job, user);
}

static st_job job_of(const world *w, st_level level, int tasks)
{
    return (st_job){.account = w->team,
                    .tasks = tasks,
                    .limit_ms = 1000,
                    .shape = {.types = 1, .level = level, .gpus = 1, .share_m = 250}};
}

static int job_over(const world *w, const st_job *job, int32_t type, st_limit_over *ret)
{
    return st_admit_job_limits(w->fleet, w->tree, job, type, ret, ret ? 8 : 0);
}

static int user_over(const world *w, const st_job *job, int32_t type, bool alone,
                     st_limit_over *ret)
{
    return st_admit_user_limits(w->fleet, w->tree, job, type, alone, ret, ret ? 8 : 0);
}

/* How much of each kind a job counts for, by level and type; the bounds one below say it. */
static void test_amounts(void **state)
{
    (void)state;
    world w;
    begin(&w);
    const struct {
        st_level level;
        int tasks, gpus, profile;
        int64_t share_m, vram_mib;
        int32_t type;
        int64_t want[ST_LIMIT_COUNT];
    } rows[] = {
        {ST_LEVEL_WHOLE, 2, 4, 0, 0, 0, 0, {8000, 640000, 0, 1000}},
        {ST_LEVEL_WHOLE, 2, 4, 0, 0, 0, 1, {8000, 320000, 0, 1000}},
        {ST_LEVEL_WHOLE, 2, 0, 0, 0, 0, -1, {0, 0, 0, 1000}},
        {ST_LEVEL_MIG, 3, 1, ST_MIG_3G, 0, 0, 0, {1500, 121344, 0, 1000}},
        {ST_LEVEL_MPS, 3, 1, 0, 250, 0, 0, {750, 60000, 750, 1000}},
        {ST_LEVEL_MPS, 3, 1, 0, 250, 0, 1, {750, 30000, 750, 1000}},
        {ST_LEVEL_TIME, 2, 1, 0, 500, 7000, 0, {1000, 14000, 1000, 1000}},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_job job = job_of(&w, rows[i].level, rows[i].tasks);
        job.shape.gpus = rows[i].gpus;
        job.shape.profile = (st_mig)rows[i].profile;
        job.shape.share_m = rows[i].share_m;
        job.shape.vram_mib = rows[i].vram_mib;
        const int64_t *v = rows[i].want;
        st_limits exact = {v[0], v[1], v[2], v[3]};
        limit(&w, "team", exact, exact);
        assert_int_equal(job_over(&w, &job, rows[i].type, NULL), 0);
        assert_int_equal(user_over(&w, &job, rows[i].type, true, NULL), 0);
        int kinds = 0;
        for (int k = 0; k < ST_LIMIT_COUNT; k++)
            kinds += v[k] > 0;
        st_limits tight = {v[0] - (v[0] > 0), v[1] - (v[1] > 0), v[2] - (v[2] > 0), v[3] - 1};
        limit(&w, "team", tight, none);
        st_limit_over over[8];
        assert_int_equal(job_over(&w, &job, rows[i].type, over), kinds);
        for (int k = 0; k < kinds; k++) {
            assert_int_equal(over[k].account, w.team);
            assert_false(over[k].per_user);
            assert_int_equal(over[k].asked, v[over[k].kind]);
            assert_int_equal(over[k].bound, v[over[k].kind] - 1);
            assert_int_equal(over[k].used, 0);
        }
    }
    end(&w);
}

static void test_every_ancestor(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_job job = job_of(&w, ST_LEVEL_WHOLE, 4);
    limit(&w, "org", (st_limits){3000, NO, NO, NO}, (st_limits){3500, NO, NO, 999});
    limit(&w, "team", (st_limits){3999, NO, NO, NO}, none);
    st_limit_over over[8];
    assert_int_equal(job_over(&w, &job, 0, over), 2);
    assert_int_equal(over[0].account, w.team);
    assert_int_equal(over[1].account, w.org);
    assert_int_equal(over[1].bound, 3000);
    assert_int_equal(user_over(&w, &job, 0, true, over), 2);
    assert_true(over[0].per_user);
    assert_int_equal(over[0].account, w.org);
    assert_int_equal(over[0].kind, ST_LIMIT_GPU);
    assert_int_equal(over[1].kind, ST_LIMIT_RUN);
    /* The count is complete where the array is not. */
    assert_int_equal(st_admit_job_limits(w.fleet, w.tree, &job, 0, over, 1), 2);
    end(&w);
}

/* A job without a time limit asks for all the time there is; where run time is bounded it is
 * over the bound, elsewhere it counts for nothing. */
static void test_services(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_job job = job_of(&w, ST_LEVEL_WHOLE, 1);
    job.limit_ms = ST_TIME_NEVER;
    assert_int_equal(job_over(&w, &job, 0, NULL), 0);
    st_admit_user_charge(w.fleet, w.tree, &job, 0, 1);
    st_job second = job_of(&w, ST_LEVEL_WHOLE, 1);
    limit(&w, "org", none, (st_limits){NO, NO, NO, 1000});
    assert_int_equal(user_over(&w, &second, 0, false, NULL), 0);
    st_limit_over over[8];
    assert_int_equal(user_over(&w, &job, 0, false, over), 1);
    assert_int_equal(over[0].kind, ST_LIMIT_RUN);
    assert_int_equal(over[0].asked, ST_TIME_NEVER);
    limit(&w, "org", (st_limits){NO, NO, NO, ST_QTY_MAX}, none);
    assert_int_equal(job_over(&w, &job, 0, NULL), 1);
    st_admit_user_charge(w.fleet, w.tree, &job, 0, -1);
    end(&w);
}

/* What one user holds in an account and below counts there; other users and sibling accounts
 * do not. */
static void test_users_apart(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t sister = put(&w, "sister", "org", none, none);
    limit(&w, "org", none, (st_limits){5000, NO, NO, NO});
    limit(&w, "team", none, (st_limits){3000, NO, NO, NO});
    st_job mine = job_of(&w, ST_LEVEL_WHOLE, 2), hers = mine, next = mine;
    hers.user = 1;
    st_job there = mine;
    there.account = sister;
    next.tasks = 1;
    st_admit_user_charge(w.fleet, w.tree, &mine, 0, 1);  /* team 2, org 2 */
    st_admit_user_charge(w.fleet, w.tree, &hers, 0, 1);  /* somebody else */
    st_admit_user_charge(w.fleet, w.tree, &there, 0, 1); /* org 4 */
    assert_int_equal(user_over(&w, &next, 0, false, NULL), 0);
    st_admit_user_charge(w.fleet, w.tree, &next, 0, 1); /* team 3, org 5 */
    st_limit_over over[8];
    assert_int_equal(user_over(&w, &next, 0, false, over), 2);
    assert_int_equal(over[0].account, w.team);
    assert_int_equal(over[0].used, 3000);
    assert_int_equal(over[0].asked, 1000);
    assert_int_equal(over[0].bound, 3000);
    assert_int_equal(over[1].account, w.org);
    assert_int_equal(over[1].used, 5000);
    next.user = 1;
    assert_int_equal(user_over(&w, &next, 0, false, NULL), 0);
    next.user = 0;
    assert_int_equal(user_over(&w, &next, 0, true, NULL), 0); /* alone, it could */
    end(&w);
}

/* Charged and uncharged in any order, nothing remains. */
static void test_charge_is_symmetric(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_rng r;
    st_rng_seed(&r, 5);
    struct {
        st_job job;
        int32_t type;
    } in[30];
    int n = 0;
    int64_t gpu[2] = {0};
    for (int k = 0; k < 3000 || n > 0; k++) {
        bool out = n == 30 || (n > 0 && (k >= 3000 || st_rng_chance(&r, 1, 2)));
        int i = out ? (int)st_rng_below(&r, (uint64_t)n) : n++;
        if (!out) {
            in[i].job =
                job_of(&w, (st_level)st_rng_below(&r, ST_LEVEL_COUNT), (int)st_rng_range(&r, 1, 5));
            in[i].job.user = (int32_t)st_rng_below(&r, 2);
            in[i].job.account = st_rng_chance(&r, 1, 3) ? w.org : w.team;
            in[i].job.limit_ms = st_rng_chance(&r, 1, 5) ? ST_TIME_NEVER : st_rng_range(&r, 1, 99);
            in[i].type = in[i].job.shape.level == ST_LEVEL_MIG ? 0 : (int32_t)st_rng_below(&r, 2);
        }
        int sign = out ? -1 : 1;
        gpu[in[i].job.user] += sign * st_job_gpu_m(&in[i].job);
        st_admit_user_charge(w.fleet, w.tree, &in[i].job, in[i].type, sign);
        if (out)
            in[i] = in[--n];
        /* At the top the sum over everything is known. */
        limit(&w, "org", none, (st_limits){0, NO, NO, NO});
        for (int u = 0; u < 2; u++) {
            st_job probe = job_of(&w, ST_LEVEL_WHOLE, 1);
            probe.account = w.org;
            probe.user = u;
            st_limit_over over;
            assert_int_equal(user_over(&w, &probe, 0, false, &over), 1);
            assert_int_equal(over.used, gpu[u]);
        }
    }
    for (size_t i = 0; i < w.tree->user_use.n; i++) {
        st_user_use zero = {0};
        assert_memory_equal(&w.tree->user_use.v[i], &zero, sizeof zero);
    }
    end(&w);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(st_limit_name(ST_LIMIT_GPU), "gpu");
    assert_string_equal(st_limit_name(ST_LIMIT_RUN), "run time");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_every_ancestor),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_users_apart),
        cmocka_unit_test(test_charge_is_symmetric),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
