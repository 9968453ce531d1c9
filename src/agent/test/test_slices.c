/*
 * Slices of a GPU: each is sampled as itself, and what only the whole GPU counts is divided.
 */
#include "agent/slices.h"
#include "agent/telemetry.h"
#include "base/testing.h"
#include "gpu/sim.h"

static st_task holder(const char *job, st_mig profile, int start)
{
    st_task t = {.key = {.stay = 1},
                 .phase = ST_PHASE_RUNNING,
                 .place = {.devs = 1, .level = ST_LEVEL_MIG, .mig_start = start}};

    snprintf(t.key.job, sizeof t.key.job, "%s", job);
    t.place.mig_profile = (int)profile;
    return t;
}

static void each_is_sampled_as_itself(void **state)
{
    const st_gpu_sim_options options = {.profile = "h100x1", .node = "n", .seed = 1};
    const st_gpu_load busy = {.pid = 1, .mem_mib = 1000, .busy_m = 900};
    st_task tasks[] = {holder("busy", ST_MIG_3G, 0), holder("idle", ST_MIG_3G, 4),
                       holder("gone", ST_MIG_1G, 6)};
    ST_CLEANUP(st_gpu_freep) st_gpu *gpu = NULL;
    st_gpu_instance first, second;
    st_slices slices = {0};
    const st_slice *s;
    st_err err = {0};

    (void)state;
    assert_ok(st_gpu_sim_open(&options, &gpu, &err));
    assert_ok(st_gpu_mig_mode(gpu, 0, true, &err));
    assert_ok(st_gpu_mig_create(gpu, 0, ST_MIG_3G, 0, &first, &err));
    assert_ok(st_gpu_mig_create(gpu, 0, ST_MIG_3G, 4, &second, &err));
    assert_ok(st_gpu_sim_load(gpu, 0, first.gi, 7, &busy, 1000, &err));
    st_slices_sample(gpu, tasks, ST_ARRAY_LEN(tasks), 2000, &slices);
    assert_int_equal(slices.n, 2);
    s = st_slices_find(&slices, &tasks[0].key, 0);
    assert_non_null(s);
    assert_int_equal(s->instance.gi, first.gi);
    assert_true(s->sample.v[ST_GPU_GR_ACTIVE] > 800000);
    assert_int_equal(s->sample.v[ST_GPU_FB_USED], 1000);
    s = st_slices_find(&slices, &tasks[1].key, 0);
    assert_non_null(s);
    assert_true(st_gpu_has(&s->sample, ST_GPU_GR_ACTIVE)); /* measured, and nothing */
    assert_int_equal(s->sample.v[ST_GPU_GR_ACTIVE], 0);
    assert_int_equal(s->sample.v[ST_GPU_FB_USED], 0);
    assert_null(st_slices_find(&slices, &tasks[2].key, 0));
    tasks[0].phase = ST_PHASE_ENDED;
    st_slices_sample(gpu, tasks, ST_ARRAY_LEN(tasks), 3000, &slices);
    assert_int_equal(slices.n, 1);
    st_vec_free(&slices);
}

static void what_the_gpu_counts_is_divided(void **state)
{
    st_gpu_sample whole = {.at_ms = 5000}, own = {.at_ms = 5000}, seen;

    (void)state;
    st_gpu_put(&whole, ST_GPU_ENERGY, 701);
    st_gpu_put(&whole, ST_GPU_PCIE_TX, 7000);
    st_gpu_put(&whole, ST_GPU_GR_ACTIVE, 990000);
    st_gpu_put(&whole, ST_GPU_FB_USED, 70000);
    st_gpu_put(&own, ST_GPU_GR_ACTIVE, 100000);
    st_gpu_put(&own, ST_GPU_PCIE_TX, 10);
    st_slice_view(&whole, &own, ST_MIG_3G, &seen);
    assert_int_equal(seen.v[ST_GPU_GR_ACTIVE], 100000);
    assert_int_equal(seen.v[ST_GPU_PCIE_TX], 10);
    assert_int_equal(seen.v[ST_GPU_ENERGY], 300);
    assert_false(st_gpu_has(&seen, ST_GPU_FB_USED)); /* the neighbours' is not its own */
    st_slice_view(&whole, NULL, ST_MIG_1G, &seen);
    assert_int_equal(seen.at_ms, 5000);
    assert_false(st_gpu_has(&seen, ST_GPU_GR_ACTIVE));
    assert_int_equal(seen.v[ST_GPU_PCIE_TX], 1000);
    assert_int_equal(seen.v[ST_GPU_ENERGY], 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_sampled_as_itself),
        cmocka_unit_test(what_the_gpu_counts_is_divided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
