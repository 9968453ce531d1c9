/*
 * Where a gang lands: by hand, one rule at a time.
 */
#include "place/test/world.h"

static void test_whole_or_not_at_all(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n0 = add_in(&w, "n0", 4, NULL, NULL), n1 = add_in(&w, "n1", 4, NULL, NULL);
    gang(&w, 2, 4);
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, n0), 0xf);
    assert_int_equal(devs_on(&w, n1), 0xf);
    gang(&w, 3, 4);
    assert_false(place(&w));
    gang(&w, 1, 5);
    assert_false(place(&w));
    occupy(&w, n0, 0x2, ST_LEVEL_WHOLE);
    gang(&w, 2, 4);
    assert_false(place(&w));
    gang(&w, 7, 1);
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, n0), 0xd);
    assert_int_equal(devs_on(&w, n1), 0xf);
    gang(&w, 3, 2); /* 3 + 4 free GPUs: one is left over on n0, two tasks go to n1 */
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, n0), 1);
    assert_int_equal(tasks_on(&w, n1), 2);
    end(&w);
}

static void test_the_tightest_level(void **state)
{
    (void)state;
    const struct {
        int tasks, nodes, racks, blocks;
    } rows[] = {{1, 1, 1, 1}, {4, 1, 1, 1},  {5, 2, 1, 1},  {8, 2, 1, 1},
                {9, 3, 2, 1}, {16, 4, 2, 1}, {17, 5, 3, 2}, {24, 6, 3, 2}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        world w;
        begin(&w);
        build_racks(&w);
        gang(&w, rows[i].tasks, 1);
        assert_true(place(&w));
        assert_int_equal(spread(&w, ST_TOPO_NODE), rows[i].nodes);
        assert_int_equal(spread(&w, ST_TOPO_RACK), rows[i].racks);
        assert_int_equal(spread(&w, ST_TOPO_BLOCK), rows[i].blocks);
        gang(&w, 25, 1);
        assert_false(place(&w));
        end(&w);
    }
}

/* Of two racks that do, the one with less to spare; of two blocks likewise. */
static void test_least_to_spare(void **state)
{
    (void)state;
    world w;
    begin(&w);
    build_racks(&w);
    occupy(&w, 0, 0x1, ST_LEVEL_WHOLE); /* r1 has 7 left, r2 8, r3 6 */
    occupy(&w, 4, 0x3, ST_LEVEL_WHOLE);
    gang(&w, 6, 1);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 4) + tasks_on(&w, 5), 6);
    gang(&w, 7, 1);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 0) + tasks_on(&w, 1), 7);
    gang(&w, 8, 1);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 2) + tasks_on(&w, 3), 8);
    end(&w);
}

/* Rooms 4, 4, 2, 2, 3: the roomiest whole, the rest where it fits tightest. */
static void test_fewest_nodes(void **state)
{
    (void)state;
    const struct {
        int tasks;
        int on[5];
    } rows[] = {
        {5, {4, 0, 1, 0, 0}}, {6, {4, 0, 2, 0, 0}},  {7, {4, 0, 0, 0, 3}},
        {8, {4, 4, 0, 0, 0}}, {10, {4, 4, 2, 0, 0}}, {15, {4, 4, 2, 2, 3}},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        world w;
        begin(&w);
        static const int devs[] = {4, 4, 2, 2, 3};
        static const char *const names[] = {"n0", "n1", "n2", "n3", "n4"};
        for (int n = 0; n < 5; n++)
            add_in(&w, names[n], devs[n], NULL, NULL);
        gang(&w, rows[i].tasks, 1);
        assert_true(place(&w));
        for (int n = 0; n < 5; n++)
            if (tasks_on(&w, n) != rows[i].on[n])
                fail_msg("%d tasks: %d on n%d, wanted %d", rows[i].tasks, tasks_on(&w, n), n,
                         rows[i].on[n]);
        end(&w);
    }
}

/* Blocks with room for 6 (in two racks), 5 and 3: eight take two blocks, the second the
 * smallest that suffices. */
static void test_fewest_blocks(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add_in(&w, "n0", 3, "b1", "r1");
    add_in(&w, "n1", 3, "b1", "r2");
    add_in(&w, "n2", 5, "b2", "r1"); /* another rack than b1's r1 */
    add_in(&w, "n3", 3, "b3", "r1");
    gang(&w, 8, 1);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 0) + tasks_on(&w, 1), 6);
    assert_int_equal(tasks_on(&w, 2), 0);
    assert_int_equal(tasks_on(&w, 3), 2);
    gang(&w, 10, 1);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 2), 4);
    assert_int_equal(tasks_on(&w, 3), 0);
    end(&w);
}

static void test_best_fit(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t big = add_in(&w, "big", 8, NULL, NULL), mid = add_in(&w, "mid", 8, NULL, NULL);
    int32_t small = add_in(&w, "small", 8, NULL, NULL);
    occupy(&w, mid, 0x0f, ST_LEVEL_WHOLE);
    occupy(&w, small, 0x3f, ST_LEVEL_WHOLE);
    const struct {
        int gpus;
        int32_t want;
    } rows[] = {{1, small}, {2, small}, {3, mid}, {4, mid}, {5, big}, {8, big}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        gang(&w, 1, rows[i].gpus);
        assert_true(place(&w));
        assert_int_equal(w.ret[0].node, rows[i].want);
    }
    end(&w);
}

/* A slice or share goes where one is open already; a fresh GPU is the last resort. */
static void test_shares_fill_open_devices(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t empty = add_in(&w, "empty", 1, NULL, NULL), open = add_in(&w, "open", 4, NULL, NULL);
    occupy(&w, open, 0x4, ST_LEVEL_MPS);
    gang(&w, 2, 1);
    w.job.shape.level = ST_LEVEL_MPS;
    w.job.shape.share_m = 300;
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, open), 0x4);
    w.job.tasks = 3; /* two fit beside the first, the third opens another */
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, open), 3);
    assert_int_equal(__builtin_popcount(devs_on(&w, open)), 2);
    occupy(&w, open, 0x1, ST_LEVEL_MIG); /* a 3g at slices 4-7 */
    gang(&w, 1, 1);
    w.job.shape.level = ST_LEVEL_MIG;
    w.job.shape.profile = ST_MIG_4G;
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, open), 0x1);
    assert_int_equal(w.ret[0].mig_start, 0);
    w.job.tasks = 2;
    w.job.shape.profile = ST_MIG_3G;
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, open), 2);
    w.job.shape.profile = ST_MIG_7G;
    w.job.tasks = 4;
    assert_false(place(&w)); /* two on the open node are in use: 2 + 1 are left */
    w.job.tasks = 3;
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, empty), 1);
    end(&w);
}

/* Slices of one gang are carved legally beside each other. */
static void test_slices_do_not_overlap(void **state)
{
    (void)state;
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        const int most[ST_MIG_COUNT] = {7, 4, 3, 2, 1, 1};
        world w;
        begin(&w);
        add_in(&w, "n", 2, NULL, NULL);
        gang(&w, 2 * most[p], 1);
        w.job.shape.level = ST_LEVEL_MIG;
        w.job.shape.profile = (st_mig)p;
        assert_true(place(&w));
        uint8_t mask[2] = {0};
        for (int t = 0; t < w.job.tasks; t++) {
            int d = w.ret[t].devs == 1 ? 0 : 1;
            assert_true(st_mig_start_legal((st_mig)p, w.ret[t].mig_start));
            uint8_t bits = st_mig_mask((st_mig)p, w.ret[t].mig_start);
            assert_int_equal(mask[d] & bits, 0);
            mask[d] |= bits;
        }
        w.job.tasks++;
        assert_false(place(&w));
        end(&w);
    }
}

static void test_nvlink_inside_a_node(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n = add(&w, (st_node_spec){.name = "n", .ndevs = 8, .nvlink_size = 4});
    occupy(&w, n, 0x1, ST_LEVEL_WHOLE); /* 3 and 4 GPUs are left in its two domains */
    gang(&w, 1, 4);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0xf0);
    gang(&w, 1, 5);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_false(place(&w));
    wish(&w, ST_TOPO_NVLINK, false);
    assert_true(place(&w));
    gang(&w, 1, 3); /* least to spare */
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0x0e);
    gang(&w, 2, 2);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, n), 0xf0);
    gang(&w, 2, 3);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_false(place(&w));
    /* Without a wish a task still stays inside a domain where it can. */
    gang(&w, 1, 2);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs & 0xf0, 0);
    gang(&w, 1, 4);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0xf0);
    end(&w);
}

static void test_nvlink_across_nodes(void **state)
{
    (void)state;
    world w;
    begin(&w);
    static const char *const names[] = {"s0", "s1", "s2"};
    add_in(&w, "lone", 4, NULL, NULL);
    for (int i = 0; i < 3; i++)
        add(&w, (st_node_spec){.name = names[i], .ndevs = 4, .nvlink_domain = "rack-scale"});
    gang(&w, 3, 4);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 0), 0);
    gang(&w, 4, 4);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_false(place(&w));
    wish(&w, ST_TOPO_NVLINK, false);
    assert_true(place(&w));
    gang(&w, 1, 4); /* the domain with least to spare */
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, 0);
    gang(&w, 5, 1);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, 0), 0);
    assert_int_equal(spread(&w, ST_TOPO_NODE), 2);
    end(&w);
}

static void test_required_or_preferred(void **state)
{
    (void)state;
    const struct {
        st_topo topo;
        int most; /* tasks that fit one domain of it */
    } rows[] = {{ST_TOPO_NODE, 4}, {ST_TOPO_RACK, 8}, {ST_TOPO_BLOCK, 16}, {ST_TOPO_ZONE, 24}};
    world w;
    begin(&w);
    build_racks(&w);
    add_in(&w, "far", 4, NULL, NULL);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        gang(&w, rows[i].most, 1);
        wish(&w, rows[i].topo, true);
        assert_true(place(&w));
        assert_int_equal(spread(&w, rows[i].topo), 1);
        gang(&w, rows[i].most + 1, 1);
        wish(&w, rows[i].topo, true);
        assert_false(place(&w));
        wish(&w, rows[i].topo, false);
        assert_true(place(&w));
    }
    gang(&w, 28, 1);
    assert_true(place(&w));
    end(&w);
}

static void test_cpu_and_ram_bind(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t cpu = add(&w, (st_node_spec){.name = "cpu", .ndevs = 8, .cpu_m = 3500});
    int32_t ram = add(&w, (st_node_spec){.name = "ram", .ndevs = 8, .ram_mib = 299});
    gang(&w, 5, 1);
    w.job.shape.cpu_m = 1000;
    w.job.shape.ram_mib = 100;
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, cpu), 3);
    assert_int_equal(tasks_on(&w, ram), 2);
    w.job.tasks = 6;
    assert_false(place(&w));
    /* A gang without GPUs lives on CPU and RAM alone. */
    gang(&w, 3, 0);
    w.job.shape.cpu_m = 1001;
    assert_true(place(&w));
    assert_int_equal(w.ret[0].devs, 0);
    w.job.shape.cpu_m = 500000;
    w.job.tasks = 3;
    assert_false(place(&w));
    w.job.tasks = 2;
    assert_true(place(&w));
    assert_int_equal(tasks_on(&w, ram), 2);
    end(&w);
}

static void test_who_may_serve(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t other_type = add(&w, (st_node_spec){.name = "l40", .ndevs = 4, .type = 1});
    int32_t other_pool = add(&w, (st_node_spec){.name = "q", .ndevs = 4, .pool = 1});
    int32_t plain = add(&w, (st_node_spec){.name = "p", .ndevs = 4});
    const struct {
        int pool, level, type;
        bool allowed[3];
    } rows[] = {
        {-1, ST_LEVEL_WHOLE, 0, {false, true, true}}, {-1, ST_LEVEL_WHOLE, 1, {true, false, false}},
        {0, ST_LEVEL_WHOLE, 0, {false, false, true}}, {1, ST_LEVEL_WHOLE, 0, {false, true, false}},
        {-1, ST_LEVEL_MPS, 0, {false, false, true}},  {1, ST_LEVEL_TIME, 0, {false, false, false}},
        {-1, ST_LEVEL_MIG, 0, {false, false, true}},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        gang(&w, 1, 1);
        w.job.pool = rows[i].pool;
        w.job.shape.level = (st_level)rows[i].level;
        w.job.shape.share_m = 500;
        const int32_t ids[] = {other_type, other_pool, plain};
        int any = 0;
        for (int k = 0; k < 3; k++) {
            assert_int_equal(
                st_place_allowed(w.placer, w.fleet->nodes.v[ids[k]], &w.job, rows[i].type),
                rows[i].allowed[k]);
            any += rows[i].allowed[k];
        }
        st_ask ask = ask_of(&w);
        ask.type = rows[i].type;
        assert_int_equal(place_ask(&w, &ask), any > 0);
    }
    /* Without GPUs only the pool matters. */
    gang(&w, 1, 0);
    w.job.shape.cpu_m = 1;
    assert_true(st_place_allowed(w.placer, w.fleet->nodes.v[other_type], &w.job, -1));
    end(&w);
}

static void test_nodes_that_are_down(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add_in(&w, "n0", 4, NULL, NULL);
    add_in(&w, "n1", 4, NULL, NULL);
    add_in(&w, "n2", 4, NULL, NULL);
    set_state(&w, 0, ST_NODE_DRAINING);
    set_state(&w, 2, ST_NODE_FAILED);
    gang(&w, 2, 4);
    assert_false(place(&w));
    gang(&w, 1, 4);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, 1);
    gang(&w, 3, 4);
    st_ask ask = ask_of(&w);
    ask.ever = true;
    assert_true(place_ask(&w, &ask));
    set_state(&w, 0, ST_NODE_READY);
    set_state(&w, 2, ST_NODE_READY);
    assert_true(place(&w));
    end(&w);
}

/* A paused gang goes on where its memory is, or not at all. */
static void test_pinned(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t n0 = add_in(&w, "n0", 4, NULL, NULL), n1 = add_in(&w, "n1", 4, NULL, NULL);
    add_in(&w, "n2", 4, NULL, NULL);
    gang(&w, 3, 2);
    st_grant had[] = {{n0, 0x3, -1}, {n1, 0x3, -1}, {n0, 0xc, -1}};
    w.job.state = ST_JOB_PAUSED;
    w.job.grants = had;
    w.job.shape.ram_mib = 1000000; /* it is there already */
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, n0);
    assert_int_equal(w.ret[1].node, n1);
    assert_int_equal(w.ret[2].node, n0);
    assert_int_equal(devs_on(&w, n0), 0xf);
    /* Other devices of the same node will do. */
    occupy(&w, n1, 0x3, ST_LEVEL_WHOLE);
    assert_true(place(&w));
    assert_int_equal(devs_on(&w, n1), 0xc);
    occupy(&w, n1, 0x4, ST_LEVEL_WHOLE);
    assert_false(place(&w)); /* although n2 stands empty */
    w.job.state = ST_JOB_PENDING;
    w.job.shape.ram_mib = 0;
    assert_true(place(&w));
    end(&w);
}

static void test_prefer(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add_in(&w, "n0", 2, NULL, NULL);
    add_in(&w, "n1", 4, NULL, NULL);
    add_in(&w, "n2", 4, NULL, NULL);
    gang(&w, 1, 2);
    assert_true(place(&w));
    assert_int_equal(w.ret[0].node, 0);
    w.prefer[2] = 1;
    st_ask ask = ask_of(&w);
    ask.prefer = w.prefer;
    assert_true(place_ask(&w, &ask));
    assert_int_equal(w.ret[0].node, 2); /* although n0 fits tighter */
    gang(&w, 1, 4);
    assert_true(place_ask(&w, &ask));
    assert_int_equal(w.ret[0].node, 2);
    occupy(&w, 2, 0x1, ST_LEVEL_WHOLE); /* a wish, not a condition */
    assert_true(place_ask(&w, &ask));
    assert_int_equal(w.ret[0].node, 1);
    end(&w);
}

static const st_view *as_if_empty(void *ctx, const st_node *node)
{
    st_view *view = ctx;
    *view = (st_view){.cpu_free_m = node->cpu_m, .ram_free_mib = node->ram_mib};
    st_view_seal(node, view);
    return view;
}

static void test_other_views(void **state)
{
    (void)state;
    world w;
    st_view scratch;
    begin(&w);
    add_in(&w, "n0", 4, NULL, NULL);
    occupy(&w, 0, 0xf, ST_LEVEL_WHOLE);
    gang(&w, 4, 1);
    assert_false(place(&w));
    st_ask ask = ask_of(&w);
    ask.view = as_if_empty;
    ask.ctx = &scratch;
    assert_true(place_ask(&w, &ask));
    assert_false(place(&w));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_or_not_at_all),
        cmocka_unit_test(test_the_tightest_level),
        cmocka_unit_test(test_least_to_spare),
        cmocka_unit_test(test_fewest_nodes),
        cmocka_unit_test(test_fewest_blocks),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_shares_fill_open_devices),
        cmocka_unit_test(test_slices_do_not_overlap),
        cmocka_unit_test(test_nvlink_inside_a_node),
        cmocka_unit_test(test_nvlink_across_nodes),
        cmocka_unit_test(test_required_or_preferred),
        cmocka_unit_test(test_cpu_and_ram_bind),
        cmocka_unit_test(test_who_may_serve),
        cmocka_unit_test(test_nodes_that_are_down),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_prefer),
        cmocka_unit_test(test_other_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
