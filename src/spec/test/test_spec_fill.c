/*
 * What pools say of a job: permissions, bounds, and what it gets that it did not ask for.
 */
#include "base/testing.h"
#include "spec/spec.h"

typedef struct world {
    st_fleet *fleet;
    st_job_spec job;
} world;

static void pool(world *w, const char *name, uint32_t allow)
{
    st_pool_rules rules = {.allow = allow};
    int32_t at = (int32_t)w->fleet->pools.n;
    st_err err = {0};

    assert_ok(st_fleet_add_pool(w->fleet, name, ST_POOL_LEVELS, 2000, &err));
    assert_ok(st_fleet_set_rules(w->fleet, at, &rules, &err));
}

static void node(world *w, const char *name, int32_t at, int gpus, int64_t cpu_m, int64_t ram_mib)
{
    st_node_spec spec = {.name = name,
                         .pool = at,
                         .type = gpus > 0 ? 0 : -1,
                         .ndevs = gpus,
                         .cpu_m = cpu_m,
                         .ram_mib = ram_mib};
    st_err err = {0};
    int32_t id;

    assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
}

/* Pool a gives both permissions and has nodes with 8 and 4 GPUs, b gives none and has no GPUs. */
static void begin(world *w)
{
    st_err err = {0};

    *w = (world){.fleet = st_fleet_new()};
    assert_ok(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err));
    pool(w, "a", 3);
    pool(w, "b", 0);
    node(w, "a1", 0, 8, 128000, 1024000);
    node(w, "a2", 0, 4, 30000, 512000);
    node(w, "b1", 1, 0, 4000, 8000);
    w->job = (st_job_spec){.name = "j", .pool = -1, .tasks = 1, .shape = {.gpus = 1, .needs = 1}};
}

static void fills(world *w, int64_t cpu_m, int64_t ram_mib)
{
    st_job_spec job = w->job;
    st_err err = {0};

    assert_ok(st_spec_fill(w->fleet, &job, &err));
    assert_int_equal(job.shape.cpu_m, cpu_m);
    assert_int_equal(job.shape.ram_mib, ram_mib);
}

static void test_even_parts(void **state)
{
    world w;

    (void)state;
    begin(&w);
    fills(&w, 7000, 64000); /* of 30/4 CPUs the whole ones; half of 128000 MiB */
    w.job.shape.gpus = 4;
    fills(&w, 30000, 256000);
    w.job.shape.gpus = 1;
    w.job.shape.level = ST_LEVEL_MPS;
    w.job.shape.share_m = 100;
    fills(&w, 750, 6400);
    w.job.shape.cpu_m = 500;
    w.job.shape.ram_mib = 77;
    fills(&w, 500, 77);
    w.job.shape = (st_shape){.gpus = 0, .needs = 0};
    fills(&w, 1000, 1000); /* in pool b, half of its 8000 MiB for 4 CPUs */
    w.job.pool = 0;
    fills(&w, 1000, 4000);
    w.job.shape.cpu_m = 10000;
    fills(&w, 10000, 40000);
    st_fleet_free(w.fleet);
}

static void test_said_by_the_pool(void **state)
{
    const st_pool_rules rules = {.allow = 3,
                                 .gpu_cpu_m = 2500,
                                 .gpu_ram_mib = 1000,
                                 .task_cpu_m = 200,
                                 .cpu_ram_mib = 500,
                                 .node_tasks = 64};
    world w;
    st_err err = {0};

    (void)state;
    begin(&w);
    assert_ok(st_fleet_set_rules(w.fleet, 0, &rules, &err));
    fills(&w, 2000, 1000);
    w.job.shape.gpus = 2;
    fills(&w, 5000, 2000);
    w.job.shape = (st_shape){.gpus = 0, .needs = 1};
    fills(&w, 2000, 100); /* one in 64 of 128 CPUs is the least */
    w.job.shape.cpu_m = 1;
    w.job.shape.ram_mib = 5;
    fills(&w, 2000, 5);
    st_fleet_free(w.fleet);
}

static void test_refused(void **state)
{
    const st_pool_rules few = {.job_tasks = 4}, network = {.allow = 1u << ST_ALLOW_HOST_NETWORK};
    const st_pool_rules image = {.allow = 1u << ST_ALLOW_HOST_IMAGE};
    world w;
    st_err err = {0};

    (void)state;
    begin(&w);
    w.job.pool = 1;
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_EINVAL,
                 "names no image, so it runs on the node's own files, which is not allowed in pool "
                 "b; name an image, or ask an owner for `stint pool set b --allow host-image`");
    w.job.shape.needs = 2;
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_EINVAL, "the node's own network");
    w.job.pool = -1;
    w.job.tasks = 1025;
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_ELIMIT, "pool a allows 1024 in a job");
    w.job.shape.needs = 0;
    w.job.tasks = 5;
    assert_ok(st_fleet_set_rules(w.fleet, 1, &few, &err));
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_ELIMIT, "pool b allows 4 in a job");
    w.job.pool = 0;
    assert_ok(st_spec_fill(w.fleet, &w.job, &err));

    /* Each in one pool, and both in none. */
    assert_ok(st_fleet_set_rules(w.fleet, 0, &image, &err));
    assert_ok(st_fleet_set_rules(w.fleet, 1, &network, &err));
    w.job.pool = -1;
    w.job.shape.needs = 3;
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_EINVAL, "no pool allows");
    w.job.pool = 7;
    assert_fails(st_spec_fill(w.fleet, &w.job, &err), ST_ENOENT, "pool");
    st_fleet_free(w.fleet);
}

static void test_needs(void **state)
{
    static const struct {
        const char *image, *network;
        uint32_t needs;
    } rows[] = {{NULL, NULL, 1},        {"", NULL, 1},     {"host", NULL, 1},
                {"ubuntu", NULL, 0},    {NULL, "host", 3}, {"ubuntu", "host", 2},
                {"ubuntu", "tenant", 0}};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(st_allow_needed(rows[i].image, rows[i].network, false), rows[i].needs);
    assert_int_equal(st_allow_needed("ubuntu", "tenant", true), 1u << ST_ALLOW_RDMA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even_parts),
        cmocka_unit_test(test_said_by_the_pool),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
