/* The choice among places that fit: what is typical decides, then neighbours; and it never
 * decides whether something fits. */
#include "base/rng.h"
#include "place/test/world.h"

/* `n` jobs of the shape of the one that asks were submitted before. */
static void learn(world *w, int n)
{
    for (int i = 0; i < n; i++)
        st_typical_learn(st_placer_typical(w->placer), &w->job);
}

static void whole(world *w, int gpus, int64_t cpu_m)
{
    gang(w, 1, gpus);
    w->job.shape.cpu_m = cpu_m;
}

static void share(world *w, int64_t share_m)
{
    gang(w, 1, 1);
    w->job.shape.level = ST_LEVEL_MPS;
    w->job.shape.share_m = share_m;
}

static void slice(world *w, st_mig profile)
{
    gang(w, 1, 1);
    w->job.shape.level = ST_LEVEL_MIG;
    w->job.shape.profile = profile;
}

static void test_target_is_learned(void **state)
{
    (void)state;
    world w;
    begin(&w);
    const st_typical *t = st_placer_typical(w.placer);
    whole(&w, 1, 0);
    learn(&w, ST_TYPICAL_FIRST - 1);
    assert_int_equal(t->ntarget, 0);
    learn(&w, 1);
    assert_int_equal(t->ntarget, 1);
    uint64_t epoch = t->epoch;
    learn(&w, 1000);
    assert_int_equal(t->epoch, epoch); /* nothing new */
    whole(&w, 8, 0);
    learn(&w, 4000);
    assert_int_equal(t->ntarget, 2);
    assert_int_equal(t->target[0].gpus, 8); /* the heavier one leads */
    assert_true(t->epoch > epoch);
    end(&w);
}

static void test_rare_classes_do_not_crowd_out(void **state)
{
    (void)state;
    world w;
    begin(&w);
    const st_typical *t = st_placer_typical(w.placer);
    whole(&w, 1, 0);
    learn(&w, 500);
    for (int i = 0; i < 3 * ST_TYPICAL_SEEN; i++) {
        whole(&w, 1, 1000 + i);
        learn(&w, 1);
    }
    assert_int_equal(t->nseen, ST_TYPICAL_SEEN);
    assert_int_equal(t->seen[0].cpu_m, 0);
    assert_int_equal(t->seen[0].weight, 1000);
    whole(&w, 1, 0);
    learn(&w, ST_TYPICAL_HALVE);
    assert_true(t->seen[0].weight < 2 * ST_TYPICAL_HALVE); /* halved once */
    end(&w);
}

/* Two nodes with 4 and 2 free GPUs. Best fit takes the fuller; where tasks of 2 are typical, one
 * GPU of the 4 costs as much, but 1 of 3 costs less. */
static void test_whole_gpus_keep_the_typical_size(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t three = add_in(&w, "three", 4, NULL, NULL), two = add_in(&w, "two", 4, NULL, NULL);
    occupy(&w, three, 0x1, ST_LEVEL_WHOLE);
    occupy(&w, two, 0x3, ST_LEVEL_WHOLE);
    whole(&w, 1, 0);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, two); /* nothing learned: the fullest */
    whole(&w, 2, 0);
    learn(&w, 64);
    whole(&w, 1, 0);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, three); /* two is kept whole */
    end(&w);
}

static void test_cpu_beside_the_gpus(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t tight = add(&w, (st_node_spec){.name = "t", .ndevs = 4, .cpu_m = 40000});
    int32_t rich = add(&w, (st_node_spec){.name = "r", .ndevs = 4, .cpu_m = 160000});
    whole(&w, 1, 10000);
    learn(&w, 64);
    gang(&w, 1, 0);
    w.job.shape.cpu_m = 30000;
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, rich); /* CPU only: where GPUs do not need it */
    whole(&w, 1, 10000);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, tight);
    end(&w);
}

/* Devices with 700 and 500 free; 500 is typical. */
static void test_shares_leave_the_typical_part(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n = add_in(&w, "n", 4, NULL, NULL);
    occupy(&w, n, 0xc, ST_LEVEL_WHOLE);
    occupy(&w, n, 0x1, ST_LEVEL_MPS)->shape.share_m = 300;
    occupy(&w, n, 0x2, ST_LEVEL_MPS)->shape.share_m = 500;
    st_node_refresh(w.fleet, w.tree, w.fleet->nodes.v[n]);
    share(&w, 200);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0x2); /* the fullest */
    share(&w, 500);
    learn(&w, 64);
    share(&w, 200);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0x1);
    end(&w);
}

static void test_slices_keep_what_is_asked_for(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n = add_in(&w, "n", 2, NULL, NULL);
    occupy(&w, n, 0x2, ST_LEVEL_WHOLE);
    slice(&w, ST_MIG_4G);
    learn(&w, 64);
    slice(&w, ST_MIG_1G);
    assert_true(place(&w));
    assert_true(w.ret[0].mig_start >= 4); /* 4g begins at 0 only */
    end(&w);

    /* 3g at 4 is there; 2g is typical: a 1g takes the odd place of the lower half. */
    begin(&w);
    n = add_in(&w, "n", 1, NULL, NULL);
    occupy(&w, n, 0x1, ST_LEVEL_MIG);
    slice(&w, ST_MIG_2G);
    learn(&w, 64);
    slice(&w, ST_MIG_1G);
    assert_true(place(&w));
    assert_true(w.ret[0].mig_start < 4);
    end(&w);
}

/* 2g is all that is asked for: a 1g goes beside the 3g, where it costs one 2g of the two that are
 * left, rather than to a fresh GPU, where it costs one of three. */
static void test_slices_complete_carved_gpus(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t fresh = add_in(&w, "fresh", 1, NULL, NULL),
            carved = add_in(&w, "carved", 1, NULL, NULL);
    occupy(&w, carved, 0x1, ST_LEVEL_MIG);
    slice(&w, ST_MIG_7G);
    learn(&w, 64);
    slice(&w, ST_MIG_1G);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, carved);
    slice(&w, ST_MIG_7G);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, fresh);
    end(&w);
}

static void test_strangers_are_avoided_where_it_costs_nothing(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t a = add_in(&w, "a", 8, NULL, NULL), b = add_in(&w, "b", 8, NULL, NULL);
    st_job *other = occupy(&w, a, 0x0f, ST_LEVEL_WHOLE);
    other->account = ST_ROOT;
    whole(&w, 2, 0);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, a); /* not large: the fuller */
    whole(&w, 4, 0);
    learn(&w, 64);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, b); /* nobody asks for 8, so b is as good */
    other->account = w.job.account;
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, a); /* its own: the fuller */
    other->account = ST_ROOT;
    whole(&w, 8, 0);
    learn(&w, 512);
    whole(&w, 4, 0);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, a); /* b is kept whole for those who ask for 8 */
    end(&w);
}

static void test_strangers_in_an_nvlink_domain(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n = add(&w, (st_node_spec){.name = "n", .ndevs = 16, .nvlink_size = 8});
    occupy(&w, n, 0x000f, ST_LEVEL_WHOLE)->account = ST_ROOT;
    occupy(&w, n, 0x0f00, ST_LEVEL_WHOLE);
    whole(&w, 4, 0);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0xf000); /* both domains have 4 left */
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0xf000);
    end(&w);
}

/* Whatever was learned, places are found for the same jobs. */
static void test_learning_never_decides_what_fits(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 7);
    for (int round = 0; round < 300; round++) {
        world w, plain;
        begin(&w);
        begin(&plain);
        uint64_t seed = st_rng_below(&rng, 1u << 30);
        world *both[] = {&w, &plain};
        bool ok[2];
        for (int k = 0; k < 2; k++) {
            st_rng dice;
            st_rng_seed(&dice, seed);
            for (int i = 0; i < 3; i++) {
                static const char *const names[] = {"a", "b", "c"};
                int32_t n = add_in(both[k], names[i], 4, NULL, NULL);
                for (int d = 0; d < 4; d++)
                    if (st_rng_chance(&dice, 1, 2))
                        occupy(both[k], n, (uint16_t)(1u << d),
                               (st_level)st_rng_below(&dice, ST_LEVEL_COUNT));
            }
            for (int i = 0; i < 40; i++) {
                whole(both[k], 1 + (int)st_rng_below(&dice, 4), 0);
                if (k == 0)
                    learn(both[k], 1);
                share(both[k], 100 + (int64_t)st_rng_below(&dice, 900));
                if (k == 0)
                    learn(both[k], 1);
            }
            if (st_rng_chance(&dice, 1, 2))
                slice(both[k], (st_mig)st_rng_below(&dice, ST_MIG_COUNT));
            else
                whole(both[k], 1 + (int)st_rng_below(&dice, 4), 0);
            both[k]->job.tasks = 1 + (int)st_rng_below(&dice, 6);
            ok[k] = place(both[k]);
        }
        assert_int_equal(ok[0], ok[1]);
        end(&w);
        end(&plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target_is_learned),
        cmocka_unit_test(test_rare_classes_do_not_crowd_out),
        cmocka_unit_test(test_whole_gpus_keep_the_typical_size),
        cmocka_unit_test(test_cpu_beside_the_gpus),
        cmocka_unit_test(test_shares_leave_the_typical_part),
        cmocka_unit_test(test_slices_keep_what_is_asked_for),
        cmocka_unit_test(test_slices_complete_carved_gpus),
        cmocka_unit_test(test_strangers_are_avoided_where_it_costs_nothing),
        cmocka_unit_test(test_strangers_in_an_nvlink_domain),
        cmocka_unit_test(test_learning_never_decides_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
