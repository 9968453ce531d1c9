/*
 * What a node shows to a placement: three kinds of residents, two moments, and the rules by
 * which a device may be shared.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "model/fleet.h"

#define VRAM 80000

/* One node "n" of four GPUs, 64 CPU and 1000 MiB; accounts a, a/a1, b. */
typedef struct world {
    st_fleet *fleet;
    st_tree *tree;
    st_node *node;
    int32_t a, a1, b;
} world;

static int32_t account(world *w, const char *name, const char *parent)
{
    st_err err = {0};
    int32_t id;
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    assert_ok(st_tree_set(w->tree, &spec, &id, &err));
    return id;
}

static void begin(world *w)
{
    st_err err = {0};
    int32_t id;
    w->fleet = st_fleet_new();
    w->tree = st_tree_new();
    assert_ok(st_fleet_add_type(w->fleet, "h100", VRAM, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 0xf, 2500, &err));
    st_node_spec spec = {.name = "n", .ndevs = 4, .cpu_m = 64000, .ram_mib = 1000};
    assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
    w->node = w->fleet->nodes.v[id];
    w->a = account(w, "a", NULL);
    w->a1 = account(w, "a1", "a");
    w->b = account(w, "b", NULL);
}

static void end(world *w)
{
    st_fleet_free(w->fleet);
    st_tree_free(w->tree);
}

/* A job of one task with its grant. */
typedef struct one {
    st_job job;
    st_grant grant;
} one;

static void make(one *o, int32_t account_id, st_level level, st_job_state state)
{
    memset(o, 0, sizeof *o);
    o->job = (st_job){.account = account_id, .tasks = 1, .state = state, .pool = -1};
    o->job.shape = (st_shape){.types = 1, .level = level, .gpus = 1, .cpu_m = 1000, .ram_mib = 100};
    o->job.grants = &o->grant;
    o->grant = (st_grant){.devs = 1, .mig_start = -1};
}

static void share(one *o, int64_t share_m)
{
    o->job.shape.share_m = share_m;
    o->job.shape.cpu_m = o->job.shape.ram_mib = 0;
}

static void put(world *w, one *o)
{
    st_node_add(w->fleet, w->tree, &o->job, 0);
}

static st_view look(const world *w, st_when when)
{
    st_view view;
    st_view_build(w->fleet, w->tree, w->node, when, &view);
    st_view outline;
    st_view_outline(w->node, when, &outline);
    assert_int_equal(outline.free, view.free);
    assert_int_equal(outline.cpu_free_m, view.cpu_free_m);
    assert_int_equal(outline.ram_free_mib, view.ram_free_mib);
    return view;
}

static int room(const world *w, const one *o, const st_dev *dev)
{
    return st_dev_room(w->fleet, w->tree, w->node, &o->job, dev);
}

static void test_an_empty_node(void **state)
{
    (void)state;
    world w;
    begin(&w);
    for (int when = ST_WHEN_EITHER; when <= ST_WHEN_ANY; when++) {
        st_view v = look(&w, (st_when)when);
        assert_int_equal(v.cpu_free_m, 64000);
        assert_int_equal(v.ram_free_mib, 1000);
        for (int d = 0; d < ST_DEVS_MAX; d++) {
            assert_int_equal(v.dev[d].mode, ST_DEV_FREE);
            assert_int_equal(v.dev[d].owner, ST_OWNER_NONE);
        }
    }
    assert_int_equal(w.node->view.cpu_free_m, 64000);
    assert_int_equal(w.node->view.ram_free_mib, 1000);
    end(&w);
}

/* Two on devices of their own: look() compares the outline with the view. */
static void test_outline_of_two(void **state)
{
    (void)state;
    world w;
    one a, b;
    begin(&w);
    make(&a, 1, ST_LEVEL_WHOLE, ST_JOB_RUNNING);
    make(&b, 1, ST_LEVEL_WHOLE, ST_JOB_NOTIFIED);
    b.grant.devs = 2;
    put(&w, &a);
    put(&w, &b);
    assert_int_equal(look(&w, ST_WHEN_EITHER).free & 3, 0);
    assert_int_equal(look(&w, ST_WHEN_NEXT).free & 3, 2);
    assert_int_equal(look(&w, ST_WHEN_EMPTY).free & 3, 3);
    end(&w);
}

/* Who counts when: device, CPU and RAM, for each kind of resident and each moment. */
static void test_kinds_and_moments(void **state)
{
    (void)state;
    const struct {
        st_job_state state;
        bool held;
        bool now, next, ram_now, ram_next;
    } rows[] = {
        {ST_JOB_RUNNING, false, true, true, true, true},
        {ST_JOB_NOTIFIED, false, true, false, true, false},
        {ST_JOB_CHECKPOINTING, false, true, false, true, false},
        {ST_JOB_PENDING, true, false, true, false, true},
        /* Paused: off the GPU, its memory stays; with a plan, the GPU comes back. */
        {ST_JOB_PAUSED, false, false, false, true, true},
        {ST_JOB_PAUSED, true, false, true, true, true},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        world w;
        one o;
        begin(&w);
        make(&o, w.a, ST_LEVEL_WHOLE, rows[i].state);
        o.job.held = rows[i].held;
        put(&w, &o);
        bool taken[] = {[ST_WHEN_EITHER] = rows[i].now || rows[i].next,
                        [ST_WHEN_NOW] = rows[i].now,
                        [ST_WHEN_NEXT] = rows[i].next,
                        [ST_WHEN_EMPTY] = false,
                        [ST_WHEN_ANY] = rows[i].now || rows[i].next};
        bool ram[] = {[ST_WHEN_EITHER] = rows[i].ram_now || rows[i].ram_next,
                      [ST_WHEN_NOW] = rows[i].ram_now,
                      [ST_WHEN_NEXT] = rows[i].ram_next,
                      [ST_WHEN_EMPTY] = false,
                      [ST_WHEN_ANY] = rows[i].ram_now || rows[i].ram_next};
        for (int when = ST_WHEN_EITHER; when <= ST_WHEN_ANY; when++) {
            st_view v = look(&w, (st_when)when);
            assert_int_equal(v.dev[0].mode, taken[when] ? ST_DEV_WHOLE : ST_DEV_FREE);
            assert_int_equal(v.dev[1].mode, ST_DEV_FREE);
            assert_int_equal(v.cpu_free_m, taken[when] ? 63000 : 64000);
            assert_int_equal(v.ram_free_mib, ram[when] ? 900 : 1000);
        }
        /* The node's own view is the one for everybody. */
        assert_int_equal(w.node->view.dev[0].mode, taken[ST_WHEN_EITHER] ? ST_DEV_WHOLE : 0);
        /* Thought away, it is not there at all. */
        o.job.out = true;
        st_view v = look(&w, ST_WHEN_EITHER);
        assert_int_equal(v.dev[0].mode, ST_DEV_FREE);
        assert_int_equal(v.ram_free_mib, 1000);
        o.job.out = false;
        st_node_remove(w.fleet, w.tree, &o.job, 0);
        assert_int_equal(w.node->view.dev[0].mode, ST_DEV_FREE);
        assert_int_equal(w.node->view.cpu_free_m, 64000);
        assert_int_equal(w.node->residents.n, 0);
        end(&w);
    }
}

/* A leaving job and the plan that follows it share the place; CPU and RAM are the larger of
 * the two moments, not the sum. */
static void test_either_is_the_larger(void **state)
{
    (void)state;
    world w;
    one leaving, plan;
    begin(&w);
    make(&leaving, w.a, ST_LEVEL_WHOLE, ST_JOB_NOTIFIED);
    leaving.job.shape.cpu_m = 40000;
    leaving.job.shape.ram_mib = 200;
    make(&plan, w.b, ST_LEVEL_WHOLE, ST_JOB_PENDING);
    plan.job.held = true;
    plan.grant.devs = 0x3;
    plan.job.shape.gpus = 2;
    plan.job.shape.cpu_m = 30000;
    plan.job.shape.ram_mib = 700;
    put(&w, &leaving);
    put(&w, &plan);
    st_view v = look(&w, ST_WHEN_EITHER);
    assert_int_equal(v.cpu_free_m, 24000);
    assert_int_equal(v.ram_free_mib, 300);
    assert_int_equal(v.dev[0].mode, ST_DEV_WHOLE);
    assert_int_equal(v.dev[1].mode, ST_DEV_WHOLE);
    assert_int_equal(v.dev[2].mode, ST_DEV_FREE);
    v = look(&w, ST_WHEN_NOW);
    assert_int_equal(v.dev[1].mode, ST_DEV_FREE);
    assert_int_equal(v.cpu_free_m, 24000);
    assert_int_equal(v.ram_free_mib, 800);
    v = look(&w, ST_WHEN_NEXT);
    assert_int_equal(v.cpu_free_m, 34000);
    assert_int_equal(v.ram_free_mib, 300);
    v = look(&w, ST_WHEN_ANY); /* nobody knows which comes first */
    assert_int_equal(v.cpu_free_m, -6000);
    assert_int_equal(v.ram_free_mib, 100);
    end(&w);
}

/* A GPU that one resident carves now and another slices then is nobody else's meanwhile. */
static void test_modes_that_clash(void **state)
{
    (void)state;
    world w;
    one leaving, plan, probe;
    begin(&w);
    make(&leaving, w.a, ST_LEVEL_MIG, ST_JOB_NOTIFIED);
    leaving.job.shape.profile = ST_MIG_1G;
    leaving.grant.mig_start = 6;
    make(&plan, w.a, ST_LEVEL_TIME, ST_JOB_PENDING);
    share(&plan, 100);
    plan.job.held = true;
    put(&w, &leaving);
    put(&w, &plan);
    assert_int_equal(w.node->view.dev[0].mode, ST_DEV_WHOLE);
    make(&probe, w.a, ST_LEVEL_TIME, ST_JOB_PENDING);
    share(&probe, 100);
    assert_int_equal(room(&w, &probe, &w.node->view.dev[0]), 0);
    make(&probe, w.a, ST_LEVEL_MIG, ST_JOB_PENDING);
    assert_int_equal(room(&w, &probe, &w.node->view.dev[0]), 0);
    end(&w);
}

static void test_paused_ram(void **state)
{
    (void)state;
    world w;
    one paused, other;
    begin(&w);
    make(&paused, w.a, ST_LEVEL_WHOLE, ST_JOB_PAUSED);
    paused.job.shape.ram_mib = 950;
    put(&w, &paused);
    /* Its own RAM is there already; another's would have to come beside it. */
    assert_int_equal(st_task_ram_mib(&paused.job), 0);
    st_view v = w.node->view;
    assert_int_equal(v.ram_free_mib, 50);
    assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &paused.job, &paused.grant, &v), 0);
    assert_int_equal(v.ram_free_mib, 50);
    v = w.node->view;
    make(&other, w.a, ST_LEVEL_WHOLE, ST_JOB_PENDING);
    assert_int_equal(st_task_ram_mib(&other.job), 100);
    assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &other.job, &other.grant, &v), -1);
    other.job.shape.ram_mib = 50;
    assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &other.job, &other.grant, &v), 0);
    end(&w);
}

/* MPS stays inside one trust domain and one GPU; a second level on the device is refused. */
static void test_mps(void **state)
{
    (void)state;
    world w;
    one first, probe;
    begin(&w);
    make(&first, w.a, ST_LEVEL_MPS, ST_JOB_RUNNING);
    share(&first, 300);
    put(&w, &first);
    const st_dev *dev = &w.node->view.dev[0];
    assert_int_equal(dev->mode, ST_DEV_MPS);
    assert_int_equal(dev->used_m, 300);
    assert_int_equal(dev->vram_mib, VRAM * 3 / 10);
    assert_int_equal(dev->owner, w.a);

    make(&probe, w.a, ST_LEVEL_MPS, ST_JOB_PENDING);
    share(&probe, 100);
    assert_int_equal(room(&w, &probe, dev), 7);
    probe.job.account = w.a1; /* the same domain */
    assert_int_equal(room(&w, &probe, dev), 7);
    probe.job.account = w.b; /* another one */
    assert_int_equal(room(&w, &probe, dev), 0);
    assert_int_equal(room(&w, &probe, &w.node->view.dev[1]), 10);
    probe.job.shape.level = ST_LEVEL_TIME;
    probe.job.account = w.a;
    assert_int_equal(room(&w, &probe, dev), 0);
    probe.job.shape.level = ST_LEVEL_WHOLE;
    assert_int_equal(room(&w, &probe, dev), 0);
    assert_int_equal(room(&w, &probe, &w.node->view.dev[1]), 1);

    /* VRAM may run out before the share does; and so may the clients. */
    probe.job.shape.level = ST_LEVEL_MPS;
    probe.job.shape.vram_mib = VRAM * 3 / 10;
    assert_int_equal(room(&w, &probe, dev), 2);
    probe.job.shape.vram_mib = 1;
    probe.job.shape.share_m = 1;
    assert_int_equal(room(&w, &probe, dev), ST_MPS_CLIENTS_MAX - 1);
    end(&w);
}

static void test_mixed_owners(void **state)
{
    (void)state;
    world w;
    one x, y;
    begin(&w);
    make(&x, w.a, ST_LEVEL_MPS, ST_JOB_RUNNING);
    make(&y, w.a1, ST_LEVEL_MPS, ST_JOB_RUNNING);
    share(&x, 100);
    share(&y, 200);
    put(&w, &x);
    put(&w, &y);
    assert_int_equal(w.node->view.dev[0].owner, ST_OWNER_MIXED);
    assert_int_equal(w.node->view.dev[0].domain, w.a);
    assert_int_equal(w.node->view.dev[0].clients, 2);
    assert_int_equal(w.node->view.dev[0].used_m, 300);
    y.job.account = w.b; /* as a plan from elsewhere would */
    st_node_refresh(w.fleet, w.tree, w.node);
    assert_int_equal(w.node->view.dev[0].domain, ST_OWNER_MIXED);
    end(&w);
}

/* Latency-critical work shares a device with its own account only, whoever came first. */
static void test_latency_critical(void **state)
{
    (void)state;
    world w;
    one first, probe;
    begin(&w);
    make(&first, w.a, ST_LEVEL_TIME, ST_JOB_RUNNING);
    share(&first, 500);
    put(&w, &first);
    const st_dev *dev = &w.node->view.dev[0];
    make(&probe, w.b, ST_LEVEL_TIME, ST_JOB_PENDING);
    share(&probe, 500);
    assert_int_equal(room(&w, &probe, dev), 1); /* half a GPU's memory each */
    probe.job.latency_critical = true;
    assert_int_equal(room(&w, &probe, dev), 0);
    probe.job.account = w.a;
    assert_int_equal(room(&w, &probe, dev), 1);
    probe.job.latency_critical = false;
    first.job.latency_critical = true;
    st_node_refresh(w.fleet, w.tree, w.node);
    assert_true(dev->latency_critical);
    assert_int_equal(room(&w, &probe, dev), 1);
    probe.job.account = w.b;
    assert_int_equal(room(&w, &probe, dev), 0);
    probe.job.account = w.a1; /* not even a child */
    assert_int_equal(room(&w, &probe, dev), 0);
    assert_int_equal(room(&w, &probe, &w.node->view.dev[1]), 2); /* a free one is fine */
    end(&w);
}

/* Time-slicing goes to the pool's factor, MPS to one GPU; memory is never given out twice. */
static void test_oversubscription(void **state)
{
    (void)state;
    world w;
    one probe;
    begin(&w);
    make(&probe, w.a, ST_LEVEL_TIME, ST_JOB_PENDING);
    share(&probe, 400);
    probe.job.shape.vram_mib = 1000;
    const st_dev *fresh = &w.node->view.dev[3];
    assert_int_equal(room(&w, &probe, fresh), 6); /* 2500 / 400 */
    probe.job.shape.vram_mib = 0;
    assert_int_equal(room(&w, &probe, fresh), 2); /* 0.4 of the memory each */
    probe.job.shape.vram_mib = VRAM;
    assert_int_equal(room(&w, &probe, fresh), 1);
    probe.job.shape.level = ST_LEVEL_MPS;
    probe.job.shape.vram_mib = 1000;
    assert_int_equal(room(&w, &probe, fresh), 2); /* 1000 / 400 */

    one used;
    make(&used, w.b, ST_LEVEL_TIME, ST_JOB_RUNNING);
    share(&used, 1000);
    used.job.shape.vram_mib = 10;
    put(&w, &used);
    probe.job.shape.level = ST_LEVEL_TIME;
    assert_int_equal(room(&w, &probe, &w.node->view.dev[0]), 3); /* 1500 / 400 */
    end(&w);
}

static void test_mig_occupancy(void **state)
{
    (void)state;
    world w;
    one big, small, probe;
    begin(&w);
    make(&big, w.a, ST_LEVEL_MIG, ST_JOB_RUNNING);
    big.job.shape.profile = ST_MIG_3G;
    big.grant.mig_start = 4;
    make(&small, w.b, ST_LEVEL_MIG, ST_JOB_RUNNING);
    small.job.shape.profile = ST_MIG_1G;
    small.grant.mig_start = 0;
    put(&w, &big);
    put(&w, &small);
    const st_dev *dev = &w.node->view.dev[0];
    assert_int_equal(dev->mode, ST_DEV_MIG);
    assert_int_equal(dev->mig_mask, 0xf1);
    assert_int_equal(dev->mig_compute, 4);
    make(&probe, w.b, ST_LEVEL_MIG, ST_JOB_PENDING);
    const int left[ST_MIG_COUNT] = {3, 1, 1, 0, 0, 0};
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        probe.job.shape.profile = (st_mig)p;
        assert_int_equal(room(&w, &probe, dev), left[p]);
    }

    /* A grant is taken only at a legal start on free slices. */
    probe.job.shape.profile = ST_MIG_2G;
    st_view v = w.node->view;
    const int8_t wrong[] = {0, 1, 3, 4, 6, -1};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++) {
        probe.grant.mig_start = wrong[i];
        assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &probe.job, &probe.grant, &v), -1);
        assert_memory_equal(&v, &w.node->view, sizeof v);
    }
    probe.grant.mig_start = 2;
    assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &probe.job, &probe.grant, &v), 0);
    assert_int_equal(v.dev[0].mig_mask, 0xfd);
    assert_int_equal(v.dev[0].mig_compute, 6);
    end(&w);
}

/* What st_view_add refuses, it leaves alone. */
static void test_view_add_refuses(void **state)
{
    (void)state;
    world w;
    one o;
    begin(&w);
    make(&o, w.a, ST_LEVEL_WHOLE, ST_JOB_PENDING);
    const struct {
        int gpus;
        uint16_t devs;
        int64_t cpu_m, ram_mib;
        int want;
    } rows[] = {
        {1, 0x1, 1000, 100, 0},   {4, 0xf, 64000, 1000, 0}, {0, 0x0, 64000, 1000, 0},
        {2, 0x1, 0, 0, -1},       {1, 0x3, 0, 0, -1},       {1, 0x10, 0, 0, -1},
        {1, 0x0, 0, 0, -1},       {1, 0x1, 64001, 0, -1},   {1, 0x1, 0, 1001, -1},
        {5, 0x1f, 1000, 100, -1},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_view v = look(&w, ST_WHEN_EITHER), before = v;
        o.job.shape.gpus = rows[i].gpus;
        o.job.shape.cpu_m = rows[i].cpu_m;
        o.job.shape.ram_mib = rows[i].ram_mib;
        o.grant.devs = rows[i].devs;
        assert_int_equal(st_view_add(w.fleet, w.tree, w.node, &o.job, &o.grant, &v), rows[i].want);
        if (rows[i].want < 0) {
            assert_memory_equal(&v, &before, sizeof v);
            continue;
        }
        assert_int_equal(v.cpu_free_m, 64000 - rows[i].cpu_m);
        assert_int_equal(v.ram_free_mib, 1000 - rows[i].ram_mib);
        for (int d = 0; d < 4; d++)
            assert_int_equal(v.dev[d].mode, rows[i].devs >> d & 1 ? ST_DEV_WHOLE : ST_DEV_FREE);
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_node),
        cmocka_unit_test(test_outline_of_two),
        cmocka_unit_test(test_kinds_and_moments),
        cmocka_unit_test(test_either_is_the_larger),
        cmocka_unit_test(test_modes_that_clash),
        cmocka_unit_test(test_paused_ram),
        cmocka_unit_test(test_mps),
        cmocka_unit_test(test_mixed_owners),
        cmocka_unit_test(test_latency_critical),
        cmocka_unit_test(test_oversubscription),
        cmocka_unit_test(test_mig_occupancy),
        cmocka_unit_test(test_view_add_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
