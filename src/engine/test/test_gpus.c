/*
 * What agents say of single GPUs, and what the native engine makes of it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/testing.h"
#include "engine/native.h"

#define EPOCH 3

typedef struct world {
    int64_t now;
    st_engine *engine;
    st_fleet *fleet;
    ST_VEC(st_report) reports;
} world;

static int64_t now_of(void *ctx)
{
    return ((world *)ctx)->now;
}

static void name_of(void *ctx, uint64_t job, char ret[ST_NATIVE_NAME])
{
    (void)ctx;
    snprintf(ret, ST_NATIVE_NAME, "j%" PRIu64, job);
}

static void changed(void *ctx, int32_t node)
{
    (void)ctx;
    (void)node;
}

static void heard(void *ctx, const st_report *report)
{
    st_vec_push(&((world *)ctx)->reports, *report);
}

static void tell_node(world *w)
{
    const st_engine_node said = {.node = w->fleet->nodes.v[0], .doc = "{\"address\":\"a\"}"};

    w->engine->ops->node(w->engine, &said);
}

static void begin(world *w)
{
    const st_native_options options = {
        .clock = now_of, .name = name_of, .changed = changed, .ctx = w, .lease_ms = 60000};
    const st_node_spec spec = {.name = "n0", .ndevs = 8, .cpu_m = 1000, .ram_mib = 1000};
    st_err err = {0};

    *w = (world){.now = 1000000, .fleet = st_fleet_new()};
    assert_ok(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 15, 2000, &err));
    assert_ok(st_fleet_add_node(w->fleet, &spec, NULL, &err));
    w->engine = st_engine_native_new(&options);
    w->engine->report = heard;
    w->engine->ctx = w;
    st_engine_lead(w->engine, EPOCH);
    tell_node(w);
}

static void say(world *w, st_agent_status *status, size_t reports)
{
    st_agent_answer answer = {0};
    st_err err = {0};

    assert_ok(st_native_status(w->engine, "n0", status, &answer, &err));
    assert_int_equal(w->reports.n, reports);
    status->revision = answer.revision;
}

/* One GPU, and none that the node has not; until it is well nothing more is said, and nothing of what a person took out. */
static void a_sick_gpu_is_told_alone(void **state)
{
    st_agent_status status = {.epoch = EPOCH, .sick_gpus = 1u << 2 | 1u << 12};
    world w;

    (void)state;
    begin(&w);
    status.gpus[2] = (st_agent_gpu){{.kind = ST_FAULT_XID, .gpu = 2, .code = 46}, "XID 46"};
    status.gpus[12] = status.gpus[2];
    say(&w, &status, 1);
    assert_int_equal(w.reports.v[0].kind, ST_REPORT_NODE);
    assert_int_equal(w.reports.v[0].part, 3);
    assert_int_equal(w.reports.v[0].node_state, ST_NODE_FAILED);
    assert_int_equal(w.reports.v[0].finding.code, 46);
    assert_string_equal(w.reports.v[0].reason, "XID 46");
    st_node_set_gpu(w.fleet, NULL, w.fleet->nodes.v[0], 2, ST_NODE_FAILED);
    w.fleet->nodes.v[0]->gpus[2].found.kind = ST_FAULT_XID;
    tell_node(&w);
    say(&w, &status, 1);
    status.sick_gpus = 0;
    say(&w, &status, 2);
    assert_int_equal(w.reports.v[1].part, 3);
    assert_int_equal(w.reports.v[1].node_state, ST_NODE_READY);
    w.fleet->nodes.v[0]->gpus[2].found.kind = ST_FAULT_NONE;
    tell_node(&w);
    say(&w, &status, 2);
    w.engine->ops->free(w.engine);
    st_fleet_free(w.fleet);
    st_vec_free(&w.reports);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sick_gpu_is_told_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
