/*
 * The numbers behind a refusal, and corners of a placement.
 */
#include "place/test/world.h"

/* Six tasks of one GPU, 10 CPU and 10 MiB, inside one rack.
 *
 *   r1 n0  4 GPUs, CPU for 2            now 2   empty 2   two more but for CPU
 *      n1  a 3g on one GPU, RAM for 2   now 2   empty 2   one more but for RAM
 *   r2 n2  draining                     now 0   empty 4
 *      n3  0.3 of one GPU shared        now 3   empty 4
 *
 * Free GPU on ready nodes: 4 + (3 + 1/2) + (3 + 0.7). */
static void test_explain(void **state)
{
    (void)state;
    world w;
    begin(&w);
    const struct {
        const char *name, *rack;
        int64_t cpu_m, ram_mib;
    } nodes[] = {
        {"n0", "r1", 20, 1000}, {"n1", "r1", 1000, 20}, {"n2", "r2", 0, 0}, {"n3", "r2", 0, 0}};
    for (size_t i = 0; i < ST_ARRAY_LEN(nodes); i++)
        add(&w, (st_node_spec){.name = nodes[i].name,
                               .ndevs = 4,
                               .cpu_m = nodes[i].cpu_m,
                               .ram_mib = nodes[i].ram_mib,
                               .rack = nodes[i].rack});
    occupy(&w, 1, 0x8, ST_LEVEL_MIG);
    occupy(&w, 3, 0x1, ST_LEVEL_TIME);
    set_state(&w, 2, ST_NODE_DRAINING);
    gang(&w, 6, 1);
    w.job.shape.cpu_m = w.job.shape.ram_mib = 10;
    wish(&w, ST_TOPO_RACK, true);
    assert_false(place(&w));
    st_ask ask = ask_of(&w);
    st_place_why why;
    st_place_explain(w.placer, &ask, &why);
    assert_int_equal(why.fit_now, 7);
    assert_int_equal(why.fit_domain, 4);
    assert_int_equal(why.fit_ready, 8);
    assert_int_equal(why.fit_ever, 12);
    assert_int_equal(why.domain_ever, 8);
    assert_int_equal(why.fit_gpu - why.fit_gpu_cpu, 2);
    assert_int_equal(why.fit_gpu - why.fit_gpu_ram, 1);
    assert_int_equal(why.gpu_free_m, 11200);
    wish(&w, ST_TOPO_RACK, false); /* a wish has no domain to stay in */
    st_place_explain(w.placer, &ask, &why);
    assert_int_equal(why.fit_domain, 7);
    assert_int_equal(why.domain_ever, 12);
    wish(&w, ST_TOPO_NODE, true);
    st_place_explain(w.placer, &ask, &why);
    assert_int_equal(why.fit_domain, 3);
    assert_int_equal(why.domain_ever, 4);
    end(&w);
}

static void test_explain_nvlink(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add(&w, (st_node_spec){.name = "n0", .ndevs = 8, .nvlink_size = 4});
    occupy(&w, 0, 0x31, ST_LEVEL_WHOLE); /* 3 and 2 are left */
    gang(&w, 5, 1);
    wish(&w, ST_TOPO_NVLINK, true);
    st_ask ask = ask_of(&w);
    st_place_why why;
    st_place_explain(w.placer, &ask, &why);
    assert_int_equal(why.fit_now, 5);
    assert_int_equal(why.fit_domain, 3);
    assert_int_equal(why.domain_ever, 4);
    assert_int_equal(why.gpu_free_m, 5000);
    end(&w);
}

/* Paths are identities: block "b/c" of zone "a" is not block "c" of zone "a/b". */
static void test_slashes_in_names(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add(&w, (st_node_spec){.name = "n0", .ndevs = 4, .zone = "a", .block = "b/c"});
    add(&w, (st_node_spec){.name = "n1", .ndevs = 4, .zone = "a/b", .block = "c"});
    gang(&w, 8, 1);
    wish(&w, ST_TOPO_BLOCK, true);
    assert_false(place(&w));
    end(&w);
}

/* Nor is a domain of that name inside a node one that spans nodes. */
static void test_nvlink_names(void **state)
{
    (void)state;
    world w;
    begin(&w);
    add(&w, (st_node_spec){.name = "n0", .ndevs = 4});
    add(&w, (st_node_spec){.name = "n1", .ndevs = 4, .nvlink_domain = "n0#0"});
    gang(&w, 8, 1);
    wish(&w, ST_TOPO_NVLINK, true);
    assert_false(place(&w));
    end(&w);
}

/* Any number of small tasks may have been paused on one node. */
static void test_pinned_crowd(void **state)
{
    (void)state;
    enum { CROWD = 1000 };
    static st_grant had[CROWD], ret[CROWD];
    world w;
    begin(&w);
    add_in(&w, "n0", 0, NULL, NULL);
    gang(&w, 1, 0);
    w.job.tasks = CROWD;
    w.job.shape.cpu_m = 1000;
    w.job.state = ST_JOB_PAUSED;
    w.job.grants = had;
    st_ask ask = ask_of(&w);
    assert_true(st_place_fits(w.placer, &ask));
    assert_true(st_place_gang(w.placer, &ask, ret));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain),          cmocka_unit_test(test_explain_nvlink),
        cmocka_unit_test(test_slashes_in_names), cmocka_unit_test(test_nvlink_names),
        cmocka_unit_test(test_pinned_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
