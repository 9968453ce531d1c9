/* The order of GPU types: what a task adds to the waste, and what a type is worth to others. */
#include "base/rng.h"
#include "place/placer.h"
#include "place/test/world.h"

enum { FIRST = 1, SECOND = 2, BOTH = 3 }; /* types a job allows */

static int32_t node(world *w, const char *name, int32_t type, int ndevs, int64_t cpu_m)
{
    return add(w, (st_node_spec){.name = name, .type = type, .ndevs = ndevs, .cpu_m = cpu_m});
}

/* One task of so many whole GPUs asks; `n` like it were submitted before. */
static void asks(world *w, uint32_t types, int gpus, int64_t cpu_m, int n)
{
    gang(w, 1, gpus);
    w->job.shape.types = types;
    w->job.shape.cpu_m = cpu_m;
    for (int i = 0; i < n; i++)
        st_typical_learn(st_placer_typical(w->placer), &w->job);
}

/* The type it should try first of both. */
static int32_t first(world *w)
{
    int32_t types[] = {0, 1};
    st_place_sort_types(w->placer, &w->job, types, 2);
    assert_int_equal(types[0] + types[1], 1);
    return types[0];
}

static void test_nothing_learned(void **state)
{
    (void)state;
    world w;
    begin(&w);
    node(&w, "a", 0, 8, 0);
    node(&w, "b", 1, 4, 0);
    asks(&w, BOTH, 1, 0, ST_TYPICAL_FIRST - 1);
    assert_int_equal(first(&w), 0);
    end(&w);
}

static void test_who_can_choose_leaves_the_scarce_type(void **state)
{
    (void)state;
    world w;
    begin(&w);
    node(&w, "a", 0, 4, 0);
    node(&w, "b", 1, 4, 0);
    asks(&w, BOTH, 1, 0, 64);
    assert_int_equal(first(&w), 0); /* nobody insists: as they are */
    assert_int_equal(st_prices_now(w.placer)[0], 0);
    assert_int_equal(st_prices_now(w.placer)[1], 0);
    asks(&w, FIRST, 1, 0, 64);
    asks(&w, BOTH, 1, 0, 0);
    assert_int_equal(first(&w), 1);
    assert_true(st_prices_now(w.placer)[0] > 0);
    assert_int_equal(st_prices_now(w.placer)[1], 0); /* the cheapest costs nothing */
    asks(&w, SECOND, 1, 0, 256);
    asks(&w, BOTH, 1, 0, 0);
    assert_int_equal(first(&w), 0); /* now the other one is */
    end(&w);
}

/* A price asks for a GPU's worth at a GPU, so it outweighs waste by its size only. */
static void test_scarce_is_better_than_none(void **state)
{
    (void)state;
    world w;
    begin(&w);
    node(&w, "a", 0, 4, 0);
    int32_t b = node(&w, "b", 1, 4, 0);
    asks(&w, FIRST, 1, 0, 64);
    asks(&w, BOTH, 1, 0, 64);
    assert_int_equal(first(&w), 1);
    occupy(&w, b, 0xf, ST_LEVEL_WHOLE);
    assert_int_equal(first(&w), 0);
    end(&w);
}

static void test_gangs_need_room_for_all(void **state)
{
    (void)state;
    world w;
    begin(&w);
    node(&w, "a", 0, 4, 0);
    node(&w, "b", 1, 2, 0);
    asks(&w, FIRST, 1, 0, 64);
    asks(&w, BOTH, 1, 0, 64);
    assert_int_equal(first(&w), 1);
    w.job.tasks = 3;
    assert_int_equal(first(&w), 0);
    end(&w);
}

static void test_cpu_beside_the_gpus(void **state)
{
    (void)state;
    world w;
    begin(&w);
    node(&w, "tight", 0, 4, 40000);
    node(&w, "rich", 1, 4, 160000);
    asks(&w, BOTH, 1, 10000, 64);
    assert_int_equal(first(&w), 0);
    asks(&w, BOTH, 1, 30000, 0);
    assert_int_equal(first(&w), 1);
    end(&w);
}

/* A node that takes no jobs offers nothing to anybody. */
static void test_drained_nodes_do_not_count(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t a = node(&w, "a", 0, 16, 0);
    node(&w, "a2", 0, 1, 0);
    node(&w, "b", 1, 4, 0);
    asks(&w, FIRST, 1, 0, 64);
    asks(&w, BOTH, 1, 0, 64);
    int64_t before = st_prices_now(w.placer)[0]; /* a half insists on 17 of 21 */
    set_state(&w, a, ST_NODE_DRAINING);
    assert_true(st_prices_now(w.placer)[0] > before); /* on 1 of 5 */
    set_state(&w, a, ST_NODE_READY);
    assert_int_equal(st_prices_now(w.placer)[0], before);
    end(&w);
}

/* Prices that followed the fleet are those of one who sees it for the first time. */
static void test_follows_the_fleet(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        st_rng dice;
        st_rng_seed(&dice, seed);
        world w;
        begin(&w);
        for (int step = 0; step < 24; step++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", step);
            if (w.fleet->nodes.n < 8)
                node(&w, name, (int32_t)st_rng_below(&dice, 2), 4, 0);
            int32_t n = (int32_t)st_rng_below(&dice, w.fleet->nodes.n);
            uint16_t free = w.fleet->nodes.v[n]->view.free;
            if (free && st_rng_chance(&dice, 2, 3))
                occupy(&w, n, free & -free, (st_level)st_rng_below(&dice, ST_LEVEL_COUNT));
            else
                set_state(&w, n, st_rng_chance(&dice, 1, 2) ? ST_NODE_DRAINING : ST_NODE_READY);
            asks(&w, 1 + (uint32_t)st_rng_below(&dice, 3), 1, 0, 1 + (int)st_rng_below(&dice, 9));
            st_placer *fresh = st_placer_new(w.fleet, w.tree);
            *st_placer_typical(fresh) = *st_placer_typical(w.placer);
            assert_memory_equal(st_prices_now(w.placer), st_prices_now(fresh),
                                sizeof w.placer->prices.price);
            assert_memory_equal(w.placer->prices.free_m, fresh->prices.free_m,
                                sizeof fresh->prices.free_m);
            st_placer_free(fresh);
        }
        end(&w);
    }
}

/* However odd the counts, a price is between nothing and eight GPUs for one. */
static void test_prices_have_bounds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        st_rng dice;
        st_rng_seed(&dice, seed);
        world w;
        begin(&w);
        for (int i = 0; i < 6; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            node(&w, name, (int32_t)st_rng_below(&dice, 2), 1 + (int)st_rng_below(&dice, 16), 0);
        }
        st_typical *t = st_placer_typical(w.placer);
        for (t->nseen = 0; t->nseen < ST_TYPICAL_SEEN; t->nseen++)
            t->seen[t->nseen] = (st_kind){.types = 1 + (uint32_t)st_rng_below(&dice, 3),
                                          .level = ST_LEVEL_WHOLE,
                                          .gpus = 1 + (int32_t)st_rng_below(&dice, 16),
                                          .weight = st_rng_chance(&dice, 1, 2) ? INT32_MAX : 0};
        const int64_t *price = st_prices_now(w.placer);
        assert_int_equal(ST_MIN(price[0], price[1]), 0);
        assert_in_range(ST_MAX(price[0], price[1]), 0, 8 * 1024);
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_learned),
        cmocka_unit_test(test_who_can_choose_leaves_the_scarce_type),
        cmocka_unit_test(test_scarce_is_better_than_none),
        cmocka_unit_test(test_gangs_need_room_for_all),
        cmocka_unit_test(test_cpu_beside_the_gpus),
        cmocka_unit_test(test_drained_nodes_do_not_count),
        cmocka_unit_test(test_follows_the_fleet),
        cmocka_unit_test(test_prices_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
