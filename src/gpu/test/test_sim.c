/* The sim driver: profiles, MIG geometry, load, faults, control files, determinism. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/testing.h"
#include "gpu/sim.h"

static st_gpu *open_sim(const char *profile, const char *node, const char *control)
{
    st_gpu_sim_options o = {.profile = profile, .node = node, .seed = 7, .control = control};
    st_gpu *g = NULL;
    st_err err;
    assert_ok(st_gpu_sim_open(&o, &g, &err));
    return g;
}

static int64_t metric(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_metric m)
{
    st_gpu_sample s;
    st_err err;
    assert_ok(st_gpu_sample_get(g, gpu, gi, now_ms, &s, &err));
    if (!st_gpu_has(&s, m))
        fail_msg("%s is absent", st_gpu_metric_name(m));
    return s.v[m];
}

static bool absent(st_gpu *g, int gpu, int gi, st_gpu_metric m)
{
    st_gpu_sample s;
    st_err err;
    assert_ok(st_gpu_sample_get(g, gpu, gi, 0, &s, &err));
    return !st_gpu_has(&s, m);
}

static void test_profiles(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "empty"},
        {"h100", "TYPExCOUNT"},
        {"h100x0", "1 to 16"},
        {"h100x17", "1 to 16"},
        {"x8", "TYPExCOUNT"},
        {"h1000x8", "no GPU type \"h1000\""},
        {"t4x1,mig", "no MIG"},
        {"h100x8,fast", "\"fast\""},
        {"h100x9+h100x8", "at most 16"},
        {"h100x-1", "TYPExCOUNT"},
    };
    st_gpu_inventory inv;
    st_gpu *g = NULL;
    st_err err;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        st_gpu_sim_options o = {.profile = bad[i].text};
        assert_true(st_gpu_sim_open(&o, &g, &err) < 0);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("%s: %s", bad[i].text, err.msg);
        assert_null(g);
    }
    g = open_sim("a100-80x4,mig+l40sx2", "n1", NULL);
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    assert_int_equal(inv.n, 6);
    assert_string_equal(inv.gpu[3].type, "a100-80");
    assert_true(inv.gpu[3].mig_on);
    assert_int_equal(inv.gpu[3].peer[0], 4); /* twelve links to three others */
    assert_string_equal(inv.gpu[4].type, "l40s");
    assert_false(inv.gpu[4].mig_capable);
    assert_int_equal(inv.gpu[4].links, 0);
    st_gpu_free(g);
    g = open_sim("h100x8", "n1", NULL);
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    assert_int_equal(inv.gpu[0].links_switch, 18);
    assert_int_equal(inv.gpu[7].numa, 1);
    st_gpu_free(g);
    g = open_sim("h100x8,pcie", "n1", NULL);
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    assert_int_equal(inv.gpu[0].links, 0);
    st_gpu_free(g);
}

static void test_nodes_differ_and_repeat(void **state)
{
    st_gpu *a = open_sim("h100x2", "a", NULL), *b = open_sim("h100x2", "b", NULL);
    st_gpu *again = open_sim("h100x2", "a", NULL);
    st_gpu_inventory x, y, z;
    st_gpu_sample s, t;
    st_gpu_load load = {.pid = 5, .mem_mib = 100, .busy_m = 700};
    st_err err;

    (void)state;
    assert_ok(st_gpu_inventory_get(a, &x, &err));
    assert_ok(st_gpu_inventory_get(b, &y, &err));
    assert_ok(st_gpu_inventory_get(again, &z, &err));
    assert_string_not_equal(x.gpu[0].uuid, x.gpu[1].uuid);
    assert_string_not_equal(x.gpu[0].uuid, y.gpu[0].uuid);
    assert_string_equal(x.gpu[0].uuid, z.gpu[0].uuid);
    assert_ok(st_gpu_sim_load(a, 0, ST_GPU_WHOLE, 1, &load, 1000, &err));
    assert_ok(st_gpu_sim_load(again, 0, ST_GPU_WHOLE, 1, &load, 1000, &err));
    /* Looking more often changes nothing. */
    for (int64_t now = 1000; now < 50000; now += 333)
        assert_ok(st_gpu_sample_get(a, 0, ST_GPU_WHOLE, now, &s, &err));
    assert_ok(st_gpu_sample_get(a, 0, ST_GPU_WHOLE, 50000, &s, &err));
    assert_ok(st_gpu_sample_get(again, 0, ST_GPU_WHOLE, 50000, &t, &err));
    assert_memory_equal(&s, &t, sizeof(s));
    st_gpu_free(a);
    st_gpu_free(b);
    st_gpu_free(again);
}

static void test_load(void **state)
{
    st_gpu *g = open_sim("h100x2", "n", NULL);
    st_gpu_load big = {.pid = 100, .mem_mib = 60000, .busy_m = 900};
    st_gpu_load more = {.pid = 101, .mem_mib = 30000, .busy_m = 500, .mps = true};
    st_gpu_proc list[4];
    size_t n;
    st_err err;

    (void)state;
    const int64_t t = INT64_C(1700000000000);
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_ENERGY), 0);
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_GPU_UTIL), 0);
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_THROTTLE), 1);
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 1, &big, t, &err));
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_FB_USED), 60000);
    assert_in_range(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_GPU_UTIL), 85, 95);
    assert_fails(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 2, &more, t, &err), ST_ELIMIT,
                 "30000 MiB wanted, 21047 free");
    more.mem_mib = 21047;
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 2, &more, t, &err));
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t, ST_GPU_FB_FREE), 0);
    assert_ok(st_gpu_procs(g, 0, list, 4, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(list[1].pid, 101);
    assert_true(list[1].mps);
    /* All busy: 700 W for ten seconds are 7000 J. */
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t + 10000, ST_GPU_ENERGY), 7000000);
    assert_true(metric(g, 0, ST_GPU_WHOLE, t + 10000, ST_GPU_TEMP) < 50);
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 1, NULL, t + 10000, &err));
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 2, NULL, t + 10000, &err));
    /* Idle again: 70 W on top of what was. */
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t + 20000, ST_GPU_ENERGY), 7700000);
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, t + 20000, ST_GPU_FB_USED), 0);
    assert_int_equal(metric(g, 1, ST_GPU_WHOLE, t + 20000, ST_GPU_GPU_UTIL), 0);
    assert_ok(st_gpu_sim_load(g, 1, ST_GPU_WHOLE, 1, &big, t + 20000, &err));
    assert_int_equal(metric(g, 1, ST_GPU_WHOLE, t + 600000, ST_GPU_TEMP), 66);
    st_gpu_free(g);
}

static void test_absent(void **state)
{
    st_gpu *h = open_sim("h100x1", "n", NULL), *a = open_sim("a100-40x1,mig", "n", NULL);
    st_gpu *v = open_sim("v100-16x1", "n", NULL);
    st_gpu_instance made;
    st_err err;

    (void)state;
    assert_false(absent(h, 0, ST_GPU_WHOLE, ST_GPU_SM_ACTIVE));
    assert_true(absent(h, 0, ST_GPU_WHOLE, ST_GPU_NVLINK_TX)); /* alone: no link */
    assert_true(absent(a, 0, ST_GPU_WHOLE, ST_GPU_SM_ACTIVE)); /* before Hopper */
    assert_true(absent(a, 0, ST_GPU_WHOLE, ST_GPU_GPU_UTIL));  /* under MIG */
    assert_false(absent(a, 0, ST_GPU_WHOLE, ST_GPU_REMAP_UNC));
    assert_ok(st_gpu_mig_create(a, 0, ST_MIG_1G, 6, &made, &err));
    assert_true(absent(a, 0, ST_GPU_WHOLE, ST_GPU_REMAP_UNC)); /* with live instances */
    assert_false(absent(a, 0, made.gi, ST_GPU_FB_USED));
    assert_true(absent(a, 0, made.gi, ST_GPU_POWER));
    assert_true(absent(v, 0, ST_GPU_WHOLE, ST_GPU_REMAP_UNC));
    assert_true(absent(v, 0, ST_GPU_WHOLE, ST_GPU_MEM_TEMP));
    st_gpu_free(h);
    st_gpu_free(a);
    st_gpu_free(v);
}

static void test_mig(void **state)
{
    st_gpu *g = open_sim("h200x2", "n", NULL);
    st_gpu_instance a, b, c;
    st_gpu_instances list;
    st_gpu_profile profiles[ST_MIG_COUNT];
    st_gpu_load load = {.pid = 1, .mem_mib = 16384, .busy_m = 1000};
    st_err err;

    (void)state;
    assert_fails(st_gpu_mig_create(g, 1, ST_MIG_1G, 0, &a, &err), ST_ESTATE, "MIG is off");
    assert_ok(st_gpu_sim_load(g, 1, ST_GPU_WHOLE, 1, &load, 0, &err));
    assert_fails(st_gpu_mig_mode(g, 1, true, &err), ST_ESTATE, "in use");
    assert_ok(st_gpu_sim_load(g, 1, ST_GPU_WHOLE, 1, NULL, 0, &err));
    assert_ok(st_gpu_mig_mode(g, 1, true, &err));
    assert_ok(st_gpu_mig_create(g, 1, ST_MIG_3G, 4, &a, &err));
    assert_ok(st_gpu_mig_create(g, 1, ST_MIG_1G, 0, &b, &err));
    assert_fails(st_gpu_mig_create(g, 1, ST_MIG_3G, 0, &c, &err), ST_ESTATE,
                 "no room for 3g.71gb at 0");
    assert_fails(st_gpu_mig_create(g, 1, ST_MIG_2G, 1, &c, &err), ST_EINVAL, "cannot begin at 1");
    /* The second GPU's first 1g: 3 + (15 + 7) * 9. */
    assert_int_equal(b.gi, 7);
    assert_int_equal(b.gi_minor, 201);
    assert_string_equal(b.node[1], "/dev/nvidia-caps/nvidia-cap202");
    assert_ok(st_gpu_mig_profiles(g, 1, profiles, &err));
    assert_int_equal(profiles[ST_MIG_1G].left, 3);
    assert_int_equal(profiles[ST_MIG_2G].left, 1);
    assert_int_equal(profiles[ST_MIG_4G].left, 0);
    assert_ok(st_gpu_mig_list(g, 1, &list, &err));
    assert_int_equal(list.n, 2);
    assert_int_equal(list.v[0].start, 0); /* by start */
    assert_string_equal(list.v[1].uuid, a.uuid);

    /* In use, memory of its own, a seventh of the GPU's activity. */
    assert_fails(st_gpu_sim_load(g, 1, ST_GPU_WHOLE, 1, &load, 0, &err), ST_ESTATE, "MIG is on");
    assert_ok(st_gpu_sim_load(g, 1, b.gi, 1, &load, 0, &err));
    assert_int_equal(metric(g, 1, b.gi, 0, ST_GPU_FB_FREE), 0);
    assert_int_equal(metric(g, 1, a.gi, 0, ST_GPU_FB_FREE), 71424);
    assert_in_range(metric(g, 1, b.gi, 0, ST_GPU_SM_ACTIVE), 880000, 920000);
    assert_in_range(metric(g, 1, ST_GPU_WHOLE, 0, ST_GPU_SM_ACTIVE), 120000, 135000);
    assert_int_equal(metric(g, 1, a.gi, 0, ST_GPU_SM_ACTIVE), 0);
    assert_fails(st_gpu_mig_destroy(g, 1, b.gi, &err), ST_ESTATE, "in use");
    assert_ok(st_gpu_sim_load(g, 1, b.gi, 1, NULL, 0, &err));
    assert_ok(st_gpu_mig_destroy(g, 1, b.gi, &err));
    assert_ok(st_gpu_mig_create(g, 1, ST_MIG_1G, 0, &c, &err));
    assert_int_equal(c.gi, b.gi);
    assert_string_not_equal(c.uuid, b.uuid);
    assert_fails(st_gpu_mig_mode(g, 1, false, &err), ST_ESTATE, "in use");
    st_gpu_free(g);
}

/* Any layout into any other: what is asked for is there, what was there and is asked for stays. */
static void test_reconcile_at_random(void **state)
{
    st_gpu *g = open_sim("a100-80x1,mig", "n", NULL);
    st_gpu_reconciled before = {0}, after;
    st_rng rng;
    st_err err;

    (void)state;
    st_rng_seed(&rng, 11);
    for (int round = 0; round < 500; round++) {
        st_gpu_slot slots[ST_GPU_INSTANCES_MAX];
        uint8_t mask = 0;
        int n = 0, compute = 0, common = 0;
        for (int tries = 0; tries < 12 && n < 7; tries++) {
            st_mig p = (st_mig)st_rng_below(&rng, ST_MIG_COUNT);
            int start = (int)st_rng_below(&rng, ST_MIG_MEMORY);
            if (!st_mig_start_legal(p, start) || st_mig_overlaps(mask, p, start) ||
                compute + st_mig_compute(p) > ST_MIG_COMPUTE)
                continue;
            mask |= st_mig_mask(p, start);
            compute += st_mig_compute(p);
            slots[n++] = (st_gpu_slot){p, start};
        }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < before.now.n; k++)
                common += before.now.v[k].profile == (int)slots[i].profile &&
                          before.now.v[k].start == slots[i].start;
        assert_ok(st_gpu_mig_reconcile(g, 0, slots, n, &after, &err));
        assert_int_equal(after.kept, common);
        assert_int_equal(after.made, n - common);
        assert_int_equal(after.removed, before.now.n - common);
        assert_int_equal(after.now.n, n);
        for (int i = 0; i < n; i++)
            assert_int_equal(after.now.v[after.at[i]].profile, slots[i].profile);
        before = after;
    }
    const st_gpu_slot bad[] = {{ST_MIG_4G, 0}, {ST_MIG_1G, 2}};
    assert_fails(st_gpu_mig_reconcile(g, 0, bad, 2, &after, &err), ST_EINVAL, "overlap at 2");
    const st_gpu_slot odd[] = {{ST_MIG_4G, 4}};
    assert_fails(st_gpu_mig_reconcile(g, 0, odd, 1, &after, &err), ST_EINVAL, "cannot begin at 4");
    st_gpu_free(g);
}

static void next_event(st_gpu *g, st_gpu_event_kind kind, int gpu, int64_t value)
{
    st_gpu_event e;
    st_err err;

    assert_int_equal(st_gpu_wait(g, 0, &e, &err), 1);
    assert_string_equal(st_gpu_event_name(e.kind), st_gpu_event_name(kind));
    assert_int_equal(e.gpu, gpu);
    assert_int_equal(e.value, value);
}

static void no_event(st_gpu *g)
{
    st_gpu_event e;
    st_err err;
    assert_int_equal(st_gpu_wait(g, 0, &e, &err), 0);
}

static void test_faults(void **state)
{
    st_gpu *g = open_sim("h100x4", "n", NULL);
    st_gpu_load load = {.mem_mib = 10, .busy_m = 1000};
    st_gpu_inventory inv;
    st_gpu_sample s;
    st_err err;

    (void)state;
    no_event(g);
    assert_ok(st_gpu_sim_fault(g, 2, ST_GPU_FAULT_XID, 94, &err));
    next_event(g, ST_GPU_EVENT_XID, 2, 94);
    assert_int_equal(metric(g, 2, ST_GPU_WHOLE, 0, ST_GPU_XID), 94);
    assert_int_equal(metric(g, 1, ST_GPU_WHOLE, 0, ST_GPU_XID), 0);
    assert_ok(st_gpu_sim_fault(g, 1, ST_GPU_FAULT_ECC_UNCORRECTED, 3, &err));
    next_event(g, ST_GPU_EVENT_ECC, 1, 0);
    next_event(g, ST_GPU_EVENT_XID, 1, 48);
    assert_int_equal(metric(g, 1, ST_GPU_WHOLE, 0, ST_GPU_ECC_DBE_VOL), 3);

    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 1, &load, 0, &err));
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_THERMAL, 1, &err));
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, 0, ST_GPU_SM_CLOCK), 660);
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, 0, ST_GPU_THROTTLE), 0x48);
    assert_true(metric(g, 0, ST_GPU_WHOLE, 300000, ST_GPU_TEMP) > 90);
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_THERMAL, 0, &err));
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, 300000, ST_GPU_SM_CLOCK), 1980);
    assert_true(metric(g, 0, ST_GPU_WHOLE, 900000, ST_GPU_TEMP) == 70);
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_MEMORY, 70000, &err));
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, 900000, ST_GPU_FB_USED), 70000);
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_MEMORY, 9000000, &err)); /* all there is */
    assert_int_equal(metric(g, 0, ST_GPU_WHOLE, 900000, ST_GPU_FB_FREE), 0);
    assert_ok(st_gpu_sim_fault(g, 1, ST_GPU_FAULT_MEMORY, 70000, &err)); /* by nobody */
    assert_int_equal(metric(g, 1, ST_GPU_WHOLE, 900000, ST_GPU_FB_USED), 0);

    assert_ok(st_gpu_sim_fault(g, 3, ST_GPU_FAULT_LOST, 0, &err));
    next_event(g, ST_GPU_EVENT_XID, 3, 79);
    next_event(g, ST_GPU_EVENT_LOST, 3, 0);
    assert_fails(st_gpu_sample_get(g, 3, ST_GPU_WHOLE, 0, &s, &err), ST_EDOWN, "GPU 3 is lost");
    assert_fails(st_gpu_sim_load(g, 3, ST_GPU_WHOLE, 1, &load, 0, &err), ST_EDOWN, "lost");
    assert_fails(st_gpu_mig_mode(g, 3, true, &err), ST_EDOWN, "lost");
    assert_ok(st_gpu_inventory_get(g, &inv, &err));
    assert_true(inv.gpu[3].lost);
    assert_ok(st_gpu_sim_fault(g, 3, ST_GPU_FAULT_HEAL, 0, &err));
    assert_ok(st_gpu_sample_get(g, 3, ST_GPU_WHOLE, 0, &s, &err));

    assert_ok(st_gpu_sim_fault(g, 2, ST_GPU_FAULT_REMAP_PENDING, 0, &err));
    next_event(g, ST_GPU_EVENT_REMAP, 2, 0);
    assert_int_equal(metric(g, 2, ST_GPU_WHOLE, 0, ST_GPU_REMAP_PENDING), 1);
    assert_ok(st_gpu_sim_fault(g, 2, ST_GPU_FAULT_HEAL, 0, &err));
    assert_int_equal(metric(g, 2, ST_GPU_WHOLE, 0, ST_GPU_REMAP_PENDING), 0);
    assert_int_equal(metric(g, 2, ST_GPU_WHOLE, 0, ST_GPU_REMAP_UNC), 1);
    assert_fails(st_gpu_sim_fault(g, 2, ST_GPU_FAULT_XID, 0, &err), ST_ERANGE, "xid takes 1");
    assert_fails(st_gpu_sim_fault(g, 4, ST_GPU_FAULT_LOST, 0, &err), ST_ENOENT, "no GPU 4");
    st_gpu_free(g);
}

static void test_commands(void **state)
{
    st_gpu *g = open_sim("h100x2", "n17", NULL);
    st_err err;

    (void)state;
    assert_ok(st_gpu_sim_command(g, "n17 1 recovery 2", &err));
    next_event(g, ST_GPU_EVENT_RECOVERY, 1, 2);
    assert_ok(st_gpu_sim_command(g, " *  *  xid 31\n", &err));
    next_event(g, ST_GPU_EVENT_XID, 0, 31);
    next_event(g, ST_GPU_EVENT_XID, 1, 31);
    assert_ok(st_gpu_sim_command(g, "n18 9 nonsense", &err)); /* somebody else's */
    assert_ok(st_gpu_sim_command(g, "# a note", &err));
    assert_ok(st_gpu_sim_command(g, "", &err));
    assert_fails(st_gpu_sim_command(g, "n17 1 melt", &err), ST_EPARSE, "\"melt\" is no fault");
    assert_fails(st_gpu_sim_command(g, "n17", &err), ST_EPARSE, "NODE GPU FAULT");
    assert_fails(st_gpu_sim_command(g, "n17 2 lost", &err), ST_ERANGE, "a GPU of node n17");
    assert_fails(st_gpu_sim_command(g, "n17 1 lost 3", &err), ST_EPARSE, "takes no value");
    assert_fails(st_gpu_sim_command(g, "n17 1 xid", &err), ST_EPARSE, "takes a value");
    assert_fails(st_gpu_sim_command(g, "n17 1 xid x", &err), ST_EPARSE, "xid: ");
    no_event(g);
    st_gpu_free(g);
}

static void append(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void test_control(void **state)
{
    char folder[] = "/tmp/stint-gpu-XXXXXX", path[64];
    st_gpu_sim_options none = {.profile = "h100x1", .control = "/nowhere/control"};
    st_gpu *g = NULL;
    st_gpu_event e;
    st_err err;

    (void)state;
    assert_fails(st_gpu_sim_open(&none, &g, &err), ST_EIO, "/nowhere/control");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/control", folder);
    for (int fifo = 0; fifo < 2; fifo++) {
        assert_int_equal(fifo ? mkfifo(path, 0600) : mknod(path, S_IFREG | 0600, 0), 0);
        g = open_sim("h100x2", "a", path);
        st_gpu *other = fifo ? NULL : open_sim("h100x2", "b", path); /* one file for all nodes */
        no_event(g);
        append(path, "a 0 xid 13\nb 1 xid 14\na 1 bad\na 0 xid 8\na 1 xi");
        assert_fails(st_gpu_wait(g, 0, &e, &err), ST_EPARSE, "\"bad\" is no fault");
        next_event(g, ST_GPU_EVENT_XID, 0, 13);
        next_event(g, ST_GPU_EVENT_XID, 0, 8);
        no_event(g);
        append(path, "d 15\n");
        assert_int_equal(st_gpu_wait(g, 2000, &e, &err), 1); /* an end to the line it began */
        assert_int_equal(e.value, 15);
        if (other) /* which skips what is not for it, bad or not */
            next_event(other, ST_GPU_EVENT_XID, 1, 14);
        st_gpu_free(other);
        st_gpu_free(g);
        unlink(path);
    }
    rmdir(folder);
}

static void *fault_from_afar(void *arg)
{
    st_err err;
    usleep(20000);
    assert_ok(st_gpu_sim_fault(arg, 0, ST_GPU_FAULT_XID, 79, &err));
    return NULL;
}

static void test_waiting(void **state)
{
    st_gpu *g = open_sim("h100x1", "n", NULL);
    pthread_t thread;
    st_gpu_event e;
    st_err err;

    (void)state;
    assert_int_equal(st_gpu_wait(g, 5, &e, &err), 0);
    assert_int_equal(pthread_create(&thread, NULL, fault_from_afar, g), 0);
    assert_int_equal(st_gpu_wait(g, 60000, &e, &err), 1);
    pthread_join(thread, NULL);
    assert_int_equal(st_gpu_wait(g, 0, &e, &err), 0);
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_RECOVERY, 1, &err));
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_XID, 31, &err));
    next_event(g, ST_GPU_EVENT_RECOVERY, 0, 1);
    next_event(g, ST_GPU_EVENT_XID, 0, 31); /* one was left */
    assert_int_equal(st_gpu_wait(g, 0, &e, &err), 0);
    st_gpu_free(g);
}

static void test_residue(void **state)
{
    st_gpu_sim_options options = {.profile = "h100x1", .node = "n"};
    const st_gpu_load load = {.pid = 7, .mem_mib = 2, .busy_m = 10};
    int64_t bytes = 0, found = 0;
    st_err err = {0};
    st_gpu *g;

    (void)state;
    assert_ok(st_gpu_sim_open(&options, &g, &err));
    assert_ok(st_gpu_sim_scan(g, 0, ST_GPU_WHOLE, &bytes, &found, &err));
    assert_int_equal(found, 0);
    assert_true(bytes > INT64_C(70) << 30);
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 1, &load, 1000, &err));
    assert_ok(st_gpu_sim_load(g, 0, ST_GPU_WHOLE, 1, NULL, 2000, &err));
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_STUCK, 1, &err));
    assert_fails(st_gpu_sim_scan(g, 0, ST_GPU_WHOLE, &bytes, &found, &err), ST_EIO, "cannot be");
    assert_ok(st_gpu_sim_fault(g, 0, ST_GPU_FAULT_STUCK, 0, &err));
    assert_ok(st_gpu_sim_scan(g, 0, ST_GPU_WHOLE, &bytes, &found, &err));
    assert_int_equal(found, 2 * 262144);
    assert_ok(st_gpu_sim_scan(g, 0, ST_GPU_WHOLE, &bytes, &found, &err));
    assert_int_equal(found, 0);
    assert_fails(st_gpu_sim_scan(g, 1, ST_GPU_WHOLE, &bytes, &found, &err), ST_ENOENT, "no GPU 1");
    assert_fails(st_gpu_sim_scan(g, 0, 3, &bytes, &found, &err), ST_ENOENT, "instance 3");
    st_gpu_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profiles), cmocka_unit_test(test_nodes_differ_and_repeat),
        cmocka_unit_test(test_load),     cmocka_unit_test(test_absent),
        cmocka_unit_test(test_mig),      cmocka_unit_test(test_reconcile_at_random),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_commands),
        cmocka_unit_test(test_control),  cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_residue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
