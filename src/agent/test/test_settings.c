/*
 * The settings of simulated GPUs: set as tasks need, or left as they are.
 */
#include <stdio.h>
#include <string.h>

#include "agent/host.h"
#include "base/testing.h"
#include "gpu/sim.h"

typedef struct world {
    st_agent_conf conf;
    st_process process;
    st_host host;
} world;

static void open_world(world *w, const char *profile, const char *settings)
{
    st_gpu_sim_options sim = {.profile = profile, .node = "t"};
    st_err err = {0};

    *w = (world){.conf = {.settings = settings}, .process = {.conf = &w->conf}};
    w->host = (st_host){.process = &w->process, .name = "t", .sim_gpus = true};
    assert_ok(st_gpu_sim_open(&sim, &w->host.gpu, &err));
    assert_ok(st_gpu_inventory_get(w->host.gpu, &w->host.inv, &err));
}

static void close_world(world *w)
{
    st_gpu_free(w->host.gpu);
}

/* As the driver has it now. */
static st_gpu_info info(world *w, int gpu)
{
    st_gpu_inventory inv;
    st_err err = {0};

    assert_ok(st_gpu_inventory_get(w->host.gpu, &inv, &err));
    return inv.gpu[gpu];
}

static const st_task_place whole = {.devs = 1, .mig_profile = -1, .level = ST_LEVEL_WHOLE};
static const st_task_place turns = {.devs = 1, .mig_profile = -1, .level = ST_LEVEL_TIME};
static const st_task_place shared = {.devs = 1, .mig_profile = -1, .level = ST_LEVEL_MPS};

static st_task_place slice(int start)
{
    return (st_task_place){
        .devs = 1, .mig_profile = ST_MIG_3G, .mig_start = start, .level = ST_LEVEL_MIG};
}

static void managed_settings_follow_the_tasks(void **state)
{
    const st_gpu_slot slot = {.profile = ST_MIG_3G, .start = 4};
    st_gpu_reconciled done;
    st_err err = {0};
    world w;

    (void)state;
    open_world(&w, "h100x1", "manage");
    assert_ok(st_settings_suit(&w.host, &shared, &err));
    assert_ok(st_host_set_mode(&w.host, 0, ST_GPU_MODE_EXCLUSIVE, &err));
    assert_int_equal(info(&w, 0).mode, ST_GPU_MODE_EXCLUSIVE);
    assert_ok(st_host_set_mode(&w.host, 0, ST_GPU_MODE_DEFAULT, &err));
    assert_ok(st_host_slices_set(&w.host, 0, &slot, 1, &done, &err));
    assert_int_equal(done.made, 1);
    assert_true(info(&w, 0).mig_on && w.host.inv.gpu[0].mig_on);
    close_world(&w);
}

/* Nothing is changed, and what does not suit is refused as the node's fault. */
static void settings_that_are_left_stay(void **state)
{
    const st_gpu_slot slot = {.profile = ST_MIG_3G, .start = 4};
    const st_task_place asked = slice(4);
    st_gpu_reconciled done;
    st_err err = {0};
    world w;

    (void)state;
    open_world(&w, "h100x1", "leave");
    assert_ok(st_host_set_mode(&w.host, 0, ST_GPU_MODE_EXCLUSIVE, &err));
    assert_int_equal(info(&w, 0).mode, ST_GPU_MODE_DEFAULT);
    assert_int_equal(w.host.inv.gpu[0].mode, ST_GPU_MODE_DEFAULT);
    assert_fails(st_host_mig_mode(&w.host, 0, true, &err), ST_EDOWN, "--settings leave");
    assert_ok(st_host_slices_set(&w.host, 0, &slot, 1, &done, &err));
    assert_int_equal(done.made + done.removed, 0);
    assert_false(info(&w, 0).mig_on);
    assert_ok(st_settings_suit(&w.host, &whole, &err));
    assert_ok(st_settings_suit(&w.host, &turns, &err));
    assert_ok(st_settings_suit(&w.host, &shared, &err));
    assert_fails(st_settings_suit(&w.host, &asked, &err), ST_EDOWN, "MIG of GPU 0 is off");
    assert_true(st_run_node_fault(&err));
    /* Somebody else changes the mode, and the agent is started again. */
    assert_ok(st_gpu_set_mode(w.host.gpu, 0, ST_GPU_MODE_EXCLUSIVE, &err));
    w.host.inv.gpu[0] = info(&w, 0);
    assert_fails(st_settings_suit(&w.host, &turns, &err), ST_EDOWN, "compute mode exclusive");
    assert_ok(st_settings_suit(&w.host, &shared, &err));
    close_world(&w);
}

/* Of slices those are used that exist, and no others are made. */
static void slices_that_exist_are_used(void **state)
{
    const st_gpu_slot slot = {.profile = ST_MIG_3G, .start = 0};
    const st_task_place there = slice(4), missing = slice(0);
    st_gpu_reconciled done;
    st_gpu_instances now;
    st_gpu_instance made;
    st_err err = {0};
    world w;

    (void)state;
    open_world(&w, "h100x1,mig", "leave");
    assert_ok(st_gpu_mig_create(w.host.gpu, 0, ST_MIG_3G, 4, &made, &err));
    assert_ok(st_settings_suit(&w.host, &there, &err));
    assert_fails(st_settings_suit(&w.host, &missing, &err), ST_EDOWN, "no slice 3g.40gb");
    assert_fails(st_settings_suit(&w.host, &whole, &err), ST_EDOWN, "MIG of GPU 0 is on");
    assert_ok(st_host_slices_set(&w.host, 0, &slot, 1, &done, &err)); /* nothing of the sort */
    assert_ok(st_gpu_mig_list(w.host.gpu, 0, &now, &err));
    assert_int_equal(now.n, 1);
    assert_int_equal(now.v[0].start, 4);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(managed_settings_follow_the_tasks),
        cmocka_unit_test(settings_that_are_left_stay),
        cmocka_unit_test(slices_that_exist_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
