/*
 * Whose turn it is: standings by both bases, weights, exactness, and the orders built on them.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"
#include "share/life.h"
#include "share/share.h"

#define ONE 1000 /* a whole share, in milli */
#define BIG INT64_C(4000000000000)

/* 100 GPUs (60 of type 0, 40 of type 1), 1000 CPU, 10000 MiB; accounts x and y. */
typedef struct world {
    st_tree *tree;
    st_account *x, *y;
} world;

static st_account *put(world *w, const char *name)
{
    st_err err = {0};
    int32_t id;
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    assert_ok(st_tree_set(w->tree, &spec, &id, &err));
    return st_tree_account(w->tree, id);
}

static void begin(world *w)
{
    w->tree = st_tree_new();
    w->tree->capacity = (st_use){100000, 1000000, 10000, {60000, 40000}};
    w->x = put(w, "x");
    w->y = put(w, "y");
}

static void end(world *w)
{
    st_tree_free(w->tree);
}

static void hold(st_account *a, int64_t t0_m, int64_t t1_m, int64_t cpu_m, int64_t ram_mib)
{
    a->next = (st_use){t0_m + t1_m, cpu_m, ram_mib, {t0_m, t1_m}};
    st_account_reckon(a);
}

/* Floors are written by hand here. */
static void reckon(const world *w)
{
    st_account_reckon(w->x);
    st_account_reckon(w->y);
}

static int64_t borrowed(const world *w)
{
    reckon(w);
    return st_share_borrowed_m(w->tree, w->x->id);
}

static int64_t share(const world *w, const st_account *a, st_share_counts counts)
{
    reckon(w);
    return st_standing_share_m(st_share_standing(w->tree, a->id, counts, NULL));
}

/* The largest of the three shares counts. */
static void test_dominant(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), 0);
    hold(w.x, 10000, 0, 50000, 100);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), ONE / 10); /* GPU 10 %, CPU 5 %, RAM 1 % */
    hold(w.x, 10000, 0, 500000, 100);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), ONE / 2);
    hold(w.x, 10000, 0, 500000, 9000);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), ONE / 10 * 9);
    /* Without a floor everything is borrowed. */
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 10 * 9);
    end(&w);
}

static void test_borrowed_is_above_the_floor(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.x->floor.gpu_m = 8000;
    hold(w.x, 5000, 2000, 0, 0);
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), 0);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), ONE / 100 * 7);
    assert_int_equal(borrowed(&w), 0);
    hold(w.x, 5000, 5000, 0, 0);
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 100 * 2);
    assert_int_equal(borrowed(&w), 2000);

    /* A typed floor that stands empty is still its own: what it holds elsewhere is borrowed. */
    w.x->floor.gpu_m = ST_UNSET;
    w.x->floor.type_m[0] = 8000;
    hold(w.x, 3000, 1000, 0, 0);
    assert_int_equal(borrowed(&w), 1000);
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 100);
    w.x->floor.gpu_m = 10000; /* 2 beyond the typed ones, of any type */
    assert_int_equal(borrowed(&w), 0);
    hold(w.x, 3000, 2500, 0, 0);
    assert_int_equal(borrowed(&w), 500);
    end(&w);
}

/* CPU and RAM: above their own floor; without one, what guaranteed jobs use comes with their
 * GPUs. */
static void test_borrowed_sides(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.x->floor.gpu_m = 50000;
    hold(w.x, 1000, 0, 300000, 0);
    w.x->guaranteed.cpu_m = 200000;
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 10);
    w.x->floor.cpu_m = 250000;
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 20);
    w.x->floor.cpu_m = 300000;
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), 0);
    hold(w.x, 1000, 0, 300000, 500);
    w.x->guaranteed.ram_mib = 400;
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 100);
    /* Without any guarantee there is nothing that comes with it. */
    w.x->floor.gpu_m = w.x->floor.cpu_m = ST_UNSET;
    assert_int_equal(share(&w, w.x, ST_COUNTS_BORROWED), ONE / 10 * 3);
    end(&w);
}

static void test_with_more_on_top(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.x->floor.type_m[0] = 4000;
    hold(w.x, 3000, 0, 0, 0);
    st_use more = {2000, 0, 0, {2000}};
    assert_int_equal(st_standing_share_m(st_share_standing(w.tree, 1, ST_COUNTS_BORROWED, &more)),
                     ONE / 100);
    more = (st_use){2000, 0, 0, {0, 2000}};
    assert_int_equal(st_standing_share_m(st_share_standing(w.tree, 1, ST_COUNTS_BORROWED, &more)),
                     ONE / 100 * 2);
    assert_int_equal(st_standing_share_m(st_share_standing(w.tree, 1, ST_COUNTS_TOTAL, &more)),
                     ONE / 100 * 5);
    more = (st_use){0, 900000, 0, {0}};
    assert_int_equal(st_standing_share_m(st_share_standing(w.tree, 1, ST_COUNTS_TOTAL, &more)),
                     ONE / 10 * 9);
    assert_int_equal(w.x->next.gpu_m, 3000); /* nothing was written */
    assert_int_equal(w.x->next.cpu_m, 0);
    end(&w);
}

/* Holding something of which there is nothing left is as high as one can stand. */
static void test_no_capacity(void **state)
{
    (void)state;
    world w;
    begin(&w);
    w.tree->capacity = (st_use){0};
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), 0);
    hold(w.x, 1, 0, 0, 0);
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), INT64_MAX);
    hold(w.x, 0, 0, ST_QTY_MAX, 0);
    w.tree->capacity.cpu_m = 1;
    assert_int_equal(share(&w, w.x, ST_COUNTS_TOTAL), ST_QTY_MAX * 1000);
    end(&w);
}

static void test_cmp(void **state)
{
    (void)state;
    const struct {
        st_standing a, b;
        int want;
    } rows[] = {
        {{0, 1, 1000}, {0, 1, 1000}, 0},
        {{0, 1, 1000}, {0, 7, 9000}, 0},
        {{1, 9, 1000}, {2, 9, 1000}, -1},
        {{2, 9, 2000}, {1, 9, 1000}, 0},
        {{2, 9, 2001}, {1, 9, 1000}, -1},
        {{2, 9, 1999}, {1, 9, 1000}, 1},
        {{1, 3, 1000}, {1, 2, 1000}, -1},
        /* Half a GPU of three at weight 1, two of three at weight 4: level, without rounding. */
        {{500, 3000, 1000}, {2000, 3000, 4000}, 0},
        {{1, 3, 1000}, {333333333333, 1000000000000, 1000}, 1},
        /* Something of nothing is more than any share. */
        {{1, 0, 1000}, {BIG, 1, 1000}, 1},
        {{1, 0, 1000}, {2, 0, 5000}, 0},
        /* Weight 0 stands above everybody, and level with its like. */
        {{0, 1, 0}, {BIG, 1, 1}, 1},
        {{BIG, 1, 1}, {0, 1, 0}, -1},
        {{5, 9, 0}, {9, 9, 0}, 0},
        /* Products near 10^37: a double would call these level, 64 bits would wrap. */
        {{BIG, BIG, ST_QTY_MAX}, {BIG, BIG, ST_QTY_MAX}, 0},
        {{BIG, BIG, ST_QTY_MAX}, {BIG - 1, BIG, ST_QTY_MAX}, 1},
        {{BIG, BIG, ST_QTY_MAX}, {BIG, BIG, ST_QTY_MAX - 1}, -1},
        {{BIG - 1, BIG, ST_QTY_MAX - 1}, {BIG, BIG, ST_QTY_MAX}, 1},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        int c = st_standing_cmp(rows[i].a, rows[i].b), d = st_standing_cmp(rows[i].b, rows[i].a);
        if ((c > 0) - (c < 0) != rows[i].want || (d > 0) - (d < 0) != -rows[i].want)
            fail_msg("row %d: %d and %d, wanted %d", (int)i, c, d, rows[i].want);
    }
}

static void test_burst_order(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t x = w.x->id, y = w.y->id;
    assert_true(st_share_burst_before(w.tree, x, y, ST_COUNTS_BORROWED)); /* level: by id */
    assert_false(st_share_burst_before(w.tree, y, x, ST_COUNTS_BORROWED));
    hold(w.x, 2000, 0, 0, 0);
    assert_true(st_share_burst_before(w.tree, y, x, ST_COUNTS_BORROWED));
    w.x->weight_m = 3000;
    hold(w.y, 1000, 0, 0, 0);
    assert_true(st_share_burst_before(w.tree, x, y, ST_COUNTS_BORROWED)); /* 2/3 before 1 */
    w.y->priority = 1;
    assert_true(st_share_burst_before(w.tree, y, x, ST_COUNTS_BORROWED));
    assert_false(st_share_burst_before(w.tree, x, y, ST_COUNTS_BORROWED));
    w.y->priority = 0;
    w.x->weight_m = 0;
    assert_true(st_share_burst_before(w.tree, y, x, ST_COUNTS_BORROWED));

    /* The bases differ for one that holds much and borrows nothing. */
    w.x->weight_m = 1000;
    w.x->floor.gpu_m = 9000;
    reckon(&w);
    hold(w.x, 9000, 0, 0, 0);
    assert_true(st_share_burst_before(w.tree, x, y, ST_COUNTS_BORROWED));
    assert_true(st_share_burst_before(w.tree, y, x, ST_COUNTS_TOTAL));
    /* Level in what they borrow: who holds less in all goes first. */
    hold(w.x, 10000, 0, 0, 0);
    assert_true(st_share_burst_before(w.tree, y, x, ST_COUNTS_BORROWED));
    end(&w);
}

/* Guaranteed work: who has used least of its floor. */
static void test_guaranteed_order(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t x = w.x->id, y = w.y->id;
    w.x->floor.gpu_m = 8000;
    w.y->floor.gpu_m = 4000;
    reckon(&w);
    assert_true(st_share_guaranteed_before(w.tree, x, y));
    w.x->guaranteed.gpu_m = 3000;
    w.y->guaranteed.gpu_m = 1000;
    assert_true(st_share_guaranteed_before(w.tree, y, x)); /* 1/4 before 3/8 */
    w.y->guaranteed.gpu_m = 1500;
    assert_true(st_share_guaranteed_before(w.tree, x, y)); /* level: by id */
    assert_false(st_share_guaranteed_before(w.tree, y, x));
    w.y->guaranteed.gpu_m = 1501;
    assert_true(st_share_guaranteed_before(w.tree, x, y));
    /* Numbers whose products need more than 64 bits. */
    w.x->floor.gpu_m = w.y->floor.gpu_m = ST_QTY_MAX;
    reckon(&w);
    w.x->guaranteed.gpu_m = ST_QTY_MAX;
    w.y->guaranteed.gpu_m = ST_QTY_MAX - 1;
    assert_true(st_share_guaranteed_before(w.tree, y, x));
    end(&w);
}

/* Inside an account: priority, then the user's usage, then age, then id. */
static void test_turns(void **state)
{
    (void)state;
    st_job jobs[] = {
        {.id = 7, .priority = 5, .submit_ms = 90}, {.id = 1, .priority = 0, .submit_ms = 50},
        {.id = 2, .priority = 0, .submit_ms = 10}, {.id = 3, .priority = 0, .submit_ms = 20},
        {.id = 9, .priority = 0, .submit_ms = 20}, {.id = 4, .priority = -1, .submit_ms = 1},
    };
    const int64_t usage[] = {INT64_MAX, 0, 8, 8, 8, 0};
    enum { N = ST_ARRAY_LEN(jobs) };
    st_rng r;
    st_rng_seed(&r, 3);
    for (int round = 0; round < 200; round++) {
        st_turn turns[N];
        for (int i = 0; i < N; i++)
            turns[i] = (st_turn){&jobs[i], jobs[i].priority, usage[i], 0};
        for (int i = N - 1; i > 0; i--) {
            int k = (int)st_rng_below(&r, (uint64_t)i + 1);
            st_turn t = turns[i];
            turns[i] = turns[k];
            turns[k] = t;
        }
        qsort(turns, N, sizeof *turns, st_turn_cmp);
        for (int i = 0; i < N; i++)
            assert_ptr_equal(turns[i].job, &jobs[i]);
        assert_int_equal(st_turn_cmp(&turns[0], &turns[0]), 0);
    }
}

#define HOUR INT64_C(3600000)

static st_job whole(const world *w, int gpus, int64_t limit_ms)
{
    return (st_job){.account = w->x->id,
                    .tasks = 1,
                    .shape = {.gpus = gpus},
                    .limit_ms = limit_ms,
                    .yield = ST_YIELD_CHECKPOINT,
                    .state = ST_JOB_PENDING};
}

static bool before(const world *w, const st_policy *policy, st_job *a, st_job *b)
{
    st_turn x = st_turn_of(w->tree, policy, a, 0), y = st_turn_of(w->tree, policy, b, 0);
    return st_turn_cmp(&x, &y) < 0;
}

/* The time left counts, and GPUs less than in full: twice the GPUs are like 1.68 times the time. */
static void test_shortest_first(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_policy policy = st_policy_default();
    policy.order = ST_ORDER_SHORTEST;
    st_job one = whole(&w, 1, 168 * HOUR), two = whole(&w, 2, 100 * HOUR);
    assert_true(before(&w, &policy, &one, &two));
    one.limit_ms = 169 * HOUR;
    assert_true(before(&w, &policy, &two, &one));
    one.saved_ms = 2 * HOUR;
    assert_true(before(&w, &policy, &one, &two));
    st_job open = whole(&w, 1, ST_TIME_NEVER), none = whole(&w, 0, 1000 * HOUR);
    assert_true(before(&w, &policy, &two, &open));
    assert_true(before(&w, &policy, &none, &open));
    /* The largest gang there is, for as long as may be asked for. */
    st_job huge = whole(&w, ST_DEVS_MAX, 720 * HOUR);
    huge.tasks = ST_TASKS_MAX;
    assert_true(before(&w, &policy, &one, &huge));
    huge.saved_ms = HOUR;
    st_job huger = huge;
    huger.saved_ms = 0;
    assert_true(before(&w, &policy, &huge, &huger));
    end(&w);
}

/* Only for more than the swap itself may take, and only from who keeps its progress. */
static void test_swaps_that_pay(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_policy policy = st_policy_default();
    policy.order = ST_ORDER_SHORTEST;
    policy.swap = true;
    int64_t cost = policy.notice_ms + policy.grace_ms;
    st_job run = whole(&w, 4, 10 * HOUR), wait = whole(&w, 4, 10 * HOUR - cost);
    assert_false(st_order_swaps(w.tree, &policy, &wait, &run, 0));
    wait.limit_ms--;
    assert_true(st_order_swaps(w.tree, &policy, &wait, &run, 0));
    assert_false(st_order_swaps(w.tree, &policy, &run, &wait, 0));
    run.yield = ST_YIELD_REQUEUE;
    assert_false(st_order_swaps(w.tree, &policy, &wait, &run, 0));
    run.yield = ST_YIELD_PAUSE;
    assert_true(st_order_swaps(w.tree, &policy, &wait, &run, 0));
    run.priority = 1;
    assert_false(st_order_swaps(w.tree, &policy, &wait, &run, 0));
    assert_true(st_order_swaps(w.tree, &policy, &run, &wait, 0));
    policy.swap = false;
    assert_false(st_order_swaps(w.tree, &policy, &run, &wait, 0));
    end(&w);
}

/* Without declared times the account's own past decides. */
static void test_learned(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_policy policy = st_policy_default();
    policy.order = ST_ORDER_ATTAINED;
    policy.swap = true;
    st_job fresh = whole(&w, 4, ST_TIME_NEVER), old = fresh, gang = fresh;
    old.stage = st_stage_of(8 * HOUR);
    gang.tasks = 2;
    assert_true(before(&w, &policy, &fresh, &old)); /* nothing known: least first */
    assert_true(st_order_swaps(w.tree, &policy, &fresh, &old, 0));
    assert_false(st_order_swaps(w.tree, &policy, &old, &fresh, 0));
    assert_true(before(&w, &policy, &fresh, &gang)); /* in a class the smaller one */
    assert_false(st_order_swaps(w.tree, &policy, &gang, &fresh, 0));

    /* Here they all run for nine hours: who is nearly through goes first. */
    for (int i = 0; i < 100; i++) {
        st_job job = {.served_ms = 9 * HOUR};
        st_life_note(w.x, &job, 0);
        st_life_end(w.x, &job);
    }
    assert_true(before(&w, &policy, &old, &fresh));
    assert_false(st_order_swaps(w.tree, &policy, &fresh, &old, 0));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dominant),       cmocka_unit_test(test_borrowed_is_above_the_floor),
        cmocka_unit_test(test_borrowed_sides), cmocka_unit_test(test_with_more_on_top),
        cmocka_unit_test(test_no_capacity),    cmocka_unit_test(test_cmp),
        cmocka_unit_test(test_burst_order),    cmocka_unit_test(test_guaranteed_order),
        cmocka_unit_test(test_turns),          cmocka_unit_test(test_shortest_first),
        cmocka_unit_test(test_swaps_that_pay), cmocka_unit_test(test_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
