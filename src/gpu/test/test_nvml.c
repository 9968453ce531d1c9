/* The nvml driver against a library that answers like a node with two H200, less some symbols. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "gpu/gpu.h"
#include "gpu/test/fake_nvml.h"

/* NVML's results. */
enum { NOT_SUPPORTED = 3, NO_PERMISSION = 4, LOST = 15, RESET_REQUIRED = 16, IN_USE = 19 };

typedef struct fixture {
    void *handle;
    const fake_nvml *fake;
    char root[64]; /* stands for /proc and /sys */
    st_gpu *g;
} fixture;

static void write_file(const char *root, const char *path, const char *text)
{
    char full[256];
    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(full, 0755);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int open_driver(fixture *f, st_err *err)
{
    st_gpu_nvml_options o = {.library = getenv("STINT_FAKE_NVML"), .proc = f->root, .sys = f->root};
    st_gpu_free(f->g);
    f->g = NULL;
    return st_gpu_nvml_open(&o, &f->g, err);
}

static int set_up(void **state)
{
    fixture *f = st_xcalloc(1, sizeof(*f));
    const fake_nvml *(*control)(void);
    st_err err;

    assert_non_null(getenv("STINT_FAKE_NVML"));
    f->handle = dlopen(getenv("STINT_FAKE_NVML"), RTLD_NOW);
    assert_non_null(f->handle);
    void *p = dlsym(f->handle, "fake_nvml_control");
    assert_non_null(p);
    memcpy(&control, &p, sizeof(p));
    f->fake = control();
    f->fake->reset();
    snprintf(f->root, sizeof(f->root), "/tmp/stint-gpu-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    write_file(f->root, "driver/nvidia-caps/mig-minors",
               "config 1\nmonitor 2\ngpu4/gi5/access 588\ngpu4/gi5/ci0/access 589\n"
               "gpu4/gi1/access 552\ngpu4/gi1/ci0/access 553\n");
    write_file(f->root, "bus/pci/devices/0000:1a:00.0/numa_node", "1\n");
    write_file(f->root, "bus/pci/devices/0000:1a:00.0/local_cpulist", "32-63,96-127\n");
    write_file(f->root, "bus/pci/devices/0000:1b:00.0/numa_node", "-1\n");
    assert_ok(open_driver(f, &err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];

    st_gpu_free(f->g);
    assert_int_equal(f->fake->samples(), 0);
    dlclose(f->handle);
    snprintf(command, sizeof(command), "rm -rf %s", f->root);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void test_opening_fails_with_a_reason(void **state)
{
    fixture *f = *state;
    st_gpu_nvml_options none = {.library = "/nowhere/libnvidia-ml.so.1"};
    st_gpu *g = NULL;
    st_err err;

    assert_fails(st_gpu_nvml_open(&none, &g, &err), ST_EDOWN, "no NVIDIA driver: /nowhere/");
    assert_null(g);
    f->fake->set("nvmlInit_v2", 9);
    assert_fails(open_driver(f, &err), ST_EDOWN, "does not start: Some error (9)");
    f->fake->set("nvmlInit_v2", 0);
    f->fake->set("nvmlDeviceGetCount_v2", NO_PERMISSION);
    assert_fails(open_driver(f, &err), ST_EPERM, "counting GPUs");
}

static void test_inventory(void **state)
{
    fixture *f = *state;
    st_gpu_inventory inv;
    st_err err;

    assert_string_equal(st_gpu_driver(f->g), "nvml");
    assert_int_equal(f->g->n, 2);
    assert_ok(st_gpu_inventory_get(f->g, &inv, &err));
    assert_string_equal(inv.driver, "580.1.2");
    assert_int_equal(inv.cuda, 13000);
    const st_gpu_info *a = &inv.gpu[0], *b = &inv.gpu[1];
    assert_string_equal(a->uuid, "GPU-0");
    assert_string_equal(a->type, "h200");
    assert_int_equal(a->board, ST_BOARD_H200_141);
    assert_int_equal(a->vram_mib, 143771);
    assert_int_equal(a->cc, 90);
    assert_int_equal(a->minor, 4);
    assert_string_equal(a->node, "/dev/nvidia4");
    assert_true(a->mig_capable && !a->mig_on && !a->lost);
    assert_int_equal(a->pcie_gen, 5);
    /* Where it sits comes from sysfs. */
    assert_int_equal(a->numa, 1);
    assert_string_equal(a->cpus, "32-63,96-127");
    assert_int_equal(b->numa, ST_GPU_UNKNOWN);
    assert_string_equal(b->cpus, "");
    /* Four links are up, one goes to a switch. */
    assert_int_equal(a->links, 4);
    assert_int_equal(a->links_switch, 1);
    assert_int_equal(a->peer[1], 3);
    assert_int_equal(a->peer[0], 0);
    assert_int_equal(a->ancestor[0], 0);
    assert_int_equal(a->ancestor[1], 30);
    assert_int_equal(a->ancestor[2], ST_GPU_UNKNOWN);
    /* Symbols that this library lacks. */
    assert_string_equal(a->serial, "");
    assert_int_equal(a->pcie_width, ST_GPU_UNKNOWN);
    assert_int_equal(a->power_limit_mw, ST_GPU_UNKNOWN);

    f->fake->set("nvmlDeviceGetMinorNumber", LOST);
    f->fake->set("nvmlDeviceGetMigMode", NOT_SUPPORTED);
    assert_ok(st_gpu_inventory_get(f->g, &inv, &err));
    assert_true(inv.gpu[0].lost);
    assert_false(inv.gpu[0].mig_capable);
}

static void assert_metric(const st_gpu_sample *s, st_gpu_metric m, int64_t want)
{
    if (!st_gpu_has(s, m))
        fail_msg("%s is absent", st_gpu_metric_name(m));
    assert_int_equal(s->v[m], want);
}

static void test_sample(void **state)
{
    fixture *f = *state;
    st_gpu_sample s;
    st_err err;

    f->fake->process(11, 2000, UINT32_MAX);
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 1000, &s, &err));
    assert_metric(&s, ST_GPU_GPU_UTIL, 87);
    assert_metric(&s, ST_GPU_FB_TOTAL, 143771);
    assert_metric(&s, ST_GPU_FB_USED, 2000);
    assert_metric(&s, ST_GPU_FB_RESERVED, 615);
    assert_metric(&s, ST_GPU_POWER, 412345); /* the instant one before the average */
    assert_metric(&s, ST_GPU_ENERGY, 5000000000);
    assert_metric(&s, ST_GPU_THROTTLE, 4); /* by the symbol's old name */
    assert_metric(&s, ST_GPU_RECOVERY, 2);
    assert_metric(&s, ST_GPU_REMAP_UNC, 2);
    assert_metric(&s, ST_GPU_REMAP_PENDING, 1);
    /* Absent: not supported, no such symbol, nobody waits for events, no second reading yet. */
    assert_false(st_gpu_has(&s, ST_GPU_MEM_TEMP));
    assert_false(st_gpu_has(&s, ST_GPU_SM_CLOCK));
    assert_false(st_gpu_has(&s, ST_GPU_ECC_DBE_VOL));
    assert_false(st_gpu_has(&s, ST_GPU_XID));
    assert_false(st_gpu_has(&s, ST_GPU_SM_ACTIVE));

    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 1050, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_SM_ACTIVE)); /* too soon */
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 1100, &s, &err));
    assert_metric(&s, ST_GPU_SM_ACTIVE, 125000);
    assert_metric(&s, ST_GPU_PCIE_TX, 13107200);
    assert_false(st_gpu_has(&s, ST_GPU_TENSOR_ACTIVE)); /* its own result says no */
    assert_false(st_gpu_has(&s, ST_GPU_NVLINK_RX));     /* not a number */
}

static void test_sample_when_things_fail(void **state)
{
    fixture *f = *state;
    st_gpu_sample s;
    st_err err;

    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 0, &s, &err));
    f->fake->set("nvmlDeviceGetFieldValues", 999);
    f->fake->set("nvmlDeviceGetUtilizationRates", 999);
    f->fake->set("nvmlGpmSampleGet", 999);
    f->fake->set("nvmlDeviceGetRemappedRows", NOT_SUPPORTED);
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 1000, &s, &err));
    assert_metric(&s, ST_GPU_POWER, 300000); /* the other way to ask */
    assert_metric(&s, ST_GPU_REMAP_COR, 1);  /* read a second ago, good for ten */
    assert_false(st_gpu_has(&s, ST_GPU_GPU_UTIL));
    assert_false(st_gpu_has(&s, ST_GPU_GR_ACTIVE));
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 10000, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_REMAP_COR));
    f->fake->set("nvmlDeviceGetRemappedRows", 0);
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 10500, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_REMAP_COR));
    st_gpu_fresh(f->g, 0);
    st_gpu_fresh(f->g, 99);
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 10600, &s, &err));
    assert_metric(&s, ST_GPU_REMAP_COR, 1);
    /* A failed reading of counters is no base for the next. */
    f->fake->set("nvmlGpmSampleGet", 0);
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 11000, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_GR_ACTIVE));
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 12000, &s, &err));
    assert_true(st_gpu_has(&s, ST_GPU_GR_ACTIVE));

    f->fake->set("nvmlDeviceGetMemoryInfo_v2", LOST);
    assert_fails(st_gpu_sample_get(f->g, 1, ST_GPU_WHOLE, 1, &s, &err), ST_EDOWN,
                 "GPU 1: reading it: GPU is lost");
    assert_fails(st_gpu_sample_get(f->g, 2, ST_GPU_WHOLE, 1, &s, &err), ST_ENOENT, "no GPU 2");
}

static void test_processes(void **state)
{
    fixture *f = *state;
    st_gpu_proc list[2];
    size_t n;
    st_err err;

    f->fake->process(11, 2000, UINT32_MAX);
    f->fake->process(12, 30, 5);
    assert_ok(st_gpu_procs(f->g, 0, list, 2, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].pid, 11);
    assert_int_equal(list[0].mem_mib, 2000);
    assert_int_equal(list[0].sm, 70); /* the newest */
    assert_int_equal(list[0].gi, ST_GPU_UNKNOWN);
    assert_int_equal(list[1].sm, ST_GPU_UNKNOWN);
    assert_int_equal(list[1].gi, 5);
    assert_ok(st_gpu_procs(f->g, 0, list, 1, &n, &err));
    assert_int_equal(n, 2);                       /* there are more than fit */
    assert_int_equal(list[0].sm, ST_GPU_UNKNOWN); /* nothing new since */
}

static void test_events(void **state)
{
    fixture *f = *state;
    st_gpu_event e;
    st_gpu_sample s;
    st_err err;

    assert_int_equal(st_gpu_wait(f->g, 1, &e, &err), 0);
    f->fake->event(0x8, 79);
    f->fake->event(0x8000, 0);
    f->fake->event(0x1, 0); /* none of ours */
    assert_int_equal(st_gpu_wait(f->g, 1, &e, &err), 1);
    assert_int_equal(e.kind, ST_GPU_EVENT_XID);
    assert_int_equal(e.gpu, 1);
    assert_int_equal(e.gi, ST_GPU_WHOLE);
    assert_int_equal(e.value, 79);
    assert_int_equal(st_gpu_wait(f->g, 1, &e, &err), 1);
    assert_int_equal(e.kind, ST_GPU_EVENT_RECOVERY);
    assert_int_equal(e.value, 2);
    assert_int_equal(st_gpu_wait(f->g, 1, &e, &err), 0);
    assert_ok(st_gpu_sample_get(f->g, 1, ST_GPU_WHOLE, 1, &s, &err));
    assert_metric(&s, ST_GPU_XID, 79);
    f->fake->set("nvmlEventSetWait_v2", LOST);
    assert_int_equal(st_gpu_wait(f->g, 1, &e, &err), 1);
    assert_int_equal(e.kind, ST_GPU_EVENT_LOST);
    assert_int_equal(e.gpu, ST_GPU_UNKNOWN);
}

static void test_events_refused(void **state)
{
    fixture *f = *state;
    st_gpu_event e;
    st_err err;

    f->fake->set("nvmlDeviceRegisterEvents", NO_PERMISSION);
    assert_fails(st_gpu_wait(f->g, 1, &e, &err), ST_EPERM, "registering for events");
    assert_fails(st_gpu_wait(f->g, 1, &e, &err), ST_EDOWN, "poll the samples");
}

static void test_mig_mode(void **state)
{
    fixture *f = *state;
    st_gpu_inventory inv;
    st_gpu_profile profiles[ST_MIG_COUNT];
    st_gpu_instance made;
    st_err err;

    assert_fails(st_gpu_mig_profiles(f->g, 0, profiles, &err), ST_ESTATE, "MIG is off");
    assert_fails(st_gpu_mig_create(f->g, 0, ST_MIG_1G, 0, &made, &err), ST_ESTATE, "MIG is off");
    f->fake->set("activation", RESET_REQUIRED);
    assert_fails(st_gpu_mig_mode(f->g, 0, true, &err), ST_ESTATE, "waits for a reset");
    f->fake->set("activation", IN_USE);
    assert_fails(st_gpu_mig_mode(f->g, 0, true, &err), ST_ESTATE, "In use");
    f->fake->set("activation", 0);
    f->fake->process(11, 1, UINT32_MAX);
    assert_fails(st_gpu_mig_mode(f->g, 0, true, &err), ST_ESTATE, "In use");
    assert_ok(st_gpu_mig_mode(f->g, 1, true, &err));
    assert_ok(st_gpu_inventory_get(f->g, &inv, &err));
    assert_true(inv.gpu[1].mig_on && !inv.gpu[0].mig_on);
    assert_ok(st_gpu_mig_profiles(f->g, 1, profiles, &err));
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        assert_true(profiles[p].offered);
        assert_int_equal(profiles[p].vram_mib, st_mig_vram_mib(ST_BOARD_H200_141, (st_mig)p));
        for (int s = 0; s < ST_MIG_MEMORY; s++)
            assert_int_equal(profiles[p].starts >> s & 1, st_mig_start_legal((st_mig)p, s));
        assert_int_equal(profiles[p].left, ST_GPU_UNKNOWN); /* a symbol that is not there */
    }
    f->fake->set("nvmlDeviceGetMigMode", NOT_SUPPORTED);
    assert_fails(st_gpu_mig_mode(f->g, 1, false, &err), ST_EDOWN, "MIG: Not Supported");
}

static void test_mig_instances(void **state)
{
    fixture *f = *state;
    st_gpu_instances list;
    st_gpu_instance made;
    st_gpu_sample s;
    st_err err;

    assert_ok(st_gpu_mig_mode(f->g, 0, true, &err));
    assert_ok(st_gpu_mig_create(f->g, 0, ST_MIG_3G, 4, &made, &err));
    assert_int_equal(made.gi, 5);
    assert_int_equal(made.ci, 0);
    assert_int_equal(made.vram_mib, 71424);
    assert_string_equal(made.uuid, "MIG-0-5");
    assert_string_equal(made.node[0], "/dev/nvidia-caps/nvidia-cap588");
    assert_string_equal(made.node[1], "/dev/nvidia-caps/nvidia-cap589");
    assert_fails(st_gpu_mig_create(f->g, 0, ST_MIG_1G, 5, &made, &err), ST_ESTATE,
                 "making 1g.18gb at 5");
    assert_fails(st_gpu_mig_create(f->g, 0, ST_MIG_1G, 8, &made, &err), ST_ERANGE, "0 to 7");
    /* A GPU instance that cannot be filled is taken back. */
    f->fake->set("nvmlGpuInstanceCreateComputeInstance", 999);
    assert_fails(st_gpu_mig_create(f->g, 0, ST_MIG_4G, 0, &made, &err), ST_EDOWN, "4g.71gb");
    f->fake->set("nvmlGpuInstanceCreateComputeInstance", 0);
    assert_ok(st_gpu_mig_list(f->g, 0, &list, &err));
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].profile, ST_MIG_3G);

    assert_ok(st_gpu_sample_get(f->g, 0, 5, 0, &s, &err));
    assert_metric(&s, ST_GPU_FB_TOTAL, 71424);
    assert_false(st_gpu_has(&s, ST_GPU_POWER));
    assert_ok(st_gpu_sample_get(f->g, 0, 5, 500, &s, &err));
    assert_metric(&s, ST_GPU_SM_ACTIVE, 125000);
    assert_fails(st_gpu_sample_get(f->g, 0, 6, 500, &s, &err), ST_ENOENT, "no MIG instance 6");
    assert_ok(st_gpu_sample_get(f->g, 0, ST_GPU_WHOLE, 500, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_GPU_UTIL));

    /* Recreated under the same id: the old counters are forgotten. */
    assert_ok(st_gpu_mig_destroy(f->g, 0, 5, &err));
    assert_fails(st_gpu_sample_get(f->g, 0, 5, 600, &s, &err), ST_ENOENT, "no MIG instance 5");
    assert_ok(st_gpu_mig_create(f->g, 0, ST_MIG_3G, 4, &made, &err));
    assert_ok(st_gpu_sample_get(f->g, 0, 5, 1000, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_SM_ACTIVE));
    assert_fails(st_gpu_mig_destroy(f->g, 0, 1, &err), ST_ENOENT, "removing MIG instance 1");
    /* The same when somebody else removed it. */
    fixture other = {.fake = f->fake};
    memcpy(other.root, f->root, sizeof(other.root));
    assert_ok(open_driver(&other, &err));
    assert_ok(st_gpu_mig_destroy(other.g, 0, 5, &err));
    st_gpu_free(other.g);
    assert_ok(st_gpu_mig_create(f->g, 0, ST_MIG_3G, 4, &made, &err));
    assert_ok(st_gpu_sample_get(f->g, 0, 5, 2000, &s, &err));
    assert_false(st_gpu_has(&s, ST_GPU_SM_ACTIVE));
}

static void test_mig_reconcile(void **state)
{
    fixture *f = *state;
    const st_gpu_slot first[] = {{ST_MIG_3G, 4}, {ST_MIG_4G, 0}};
    const st_gpu_slot second[] = {{ST_MIG_2G, 0}, {ST_MIG_3G, 4}, {ST_MIG_1G, 2}};
    st_gpu_reconciled done;
    st_err err;

    assert_ok(st_gpu_mig_reconcile(f->g, 0, first, 0, &done, &err)); /* nothing, MIG off: is so */
    assert_fails(st_gpu_mig_reconcile(f->g, 0, first, 1, &done, &err), ST_ESTATE, "MIG is off");
    assert_ok(st_gpu_mig_mode(f->g, 0, true, &err));
    assert_ok(st_gpu_mig_reconcile(f->g, 0, first, 2, &done, &err));
    assert_int_equal(done.made, 2);
    assert_ok(st_gpu_mig_reconcile(f->g, 0, second, 3, &done, &err));
    assert_int_equal(done.kept, 1);
    assert_int_equal(done.removed, 1);
    assert_int_equal(done.made, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(done.now.v[done.at[i]].start, second[i].start);
    /* The 3g has a process in it: it stays, and what would lie on it is not made. */
    const st_gpu_slot third[] = {{ST_MIG_2G, 4}, {ST_MIG_2G, 0}};
    f->fake->process(11, 1, 5);
    assert_ok(st_gpu_mig_reconcile(f->g, 0, third, 2, &done, &err));
    assert_int_equal(done.busy, 1);
    assert_int_equal(done.at[0], -1);
    assert_true(done.at[1] >= 0);
}

/* A GPU instance without a compute instance is nobody's: it is not taken for the wanted one. */
static void test_mig_half_made(void **state)
{
    fixture *f = *state;
    const st_gpu_slot wanted = {ST_MIG_3G, 4};
    st_gpu_instances list;
    st_gpu_instance made;
    st_gpu_reconciled done;
    st_err err;

    assert_ok(st_gpu_mig_mode(f->g, 0, true, &err));
    f->fake->set("nvmlGpuInstanceCreateComputeInstance", 999);
    f->fake->set("nvmlGpuInstanceDestroy", 999);
    assert_fails(st_gpu_mig_create(f->g, 0, ST_MIG_3G, 4, &made, &err), ST_EDOWN, "3g.71gb");
    f->fake->set("nvmlGpuInstanceCreateComputeInstance", 0);
    assert_fails(st_gpu_mig_reconcile(f->g, 0, &wanted, 1, &done, &err), ST_EDOWN, "removing");
    f->fake->set("nvmlGpuInstanceDestroy", 0);
    assert_ok(st_gpu_mig_list(f->g, 0, &list, &err));
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].ci, ST_GPU_UNKNOWN);
    assert_string_equal(list.v[0].uuid, "");
    assert_ok(st_gpu_mig_reconcile(f->g, 0, &wanted, 1, &done, &err));
    assert_int_equal(done.removed, 1);
    assert_int_equal(done.made, 1);
    assert_int_equal(done.now.v[done.at[0]].ci, 0);
}

static void test_compute_mode(void **state)
{
    fixture *f = *state;
    st_err err;

    assert_fails(st_gpu_set_mode(f->g, 0, ST_GPU_MODE_EXCLUSIVE, &err), ST_EDOWN,
                 "compute mode: Not Supported (NVML 3)");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_opening_fails_with_a_reason),
        TEST(test_inventory),
        TEST(test_sample),
        TEST(test_sample_when_things_fail),
        TEST(test_processes),
        TEST(test_events),
        TEST(test_events_refused),
        TEST(test_mig_mode),
        TEST(test_mig_instances),
        TEST(test_mig_reconcile),
        TEST(test_mig_half_made),
        TEST(test_compute_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
