/*
 * What tasks used, as it is handed on for figures over time (engine/native_used.c): what is new, once, with a clock of the
 * test's own.
 */
#include <stdlib.h>

#include "base/testing.h"
#include "engine/native.h"

#define EPOCH 3

typedef struct world {
    int64_t now;
    st_engine *engine;
    st_fleet *fleet;
} world;

static int64_t now_of(void *ctx)
{
    return ((world *)ctx)->now;
}

static void name_of(void *ctx, uint64_t job, char ret[ST_NATIVE_NAME])
{
    (void)ctx;
    snprintf(ret, ST_NATIVE_NAME, "j%d", (int)job);
}

static void heard(void *ctx, const st_report *report)
{
    (void)ctx;
    (void)report;
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    const st_native_options options = {
        .clock = now_of, .name = name_of, .ctx = w, .lease_ms = 60000};
    const st_node_spec spec = {.name = "n0", .ndevs = 8, .cpu_m = 1000, .ram_mib = 1000};
    int32_t id;
    st_err err = {0};

    w->now = 1000000;
    w->fleet = st_fleet_new();
    assert_ok(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 15, 2000, &err));
    w->engine = st_engine_native_new(&options);
    w->engine->report = heard;
    w->engine->ctx = w;
    st_engine_lead(w->engine, EPOCH);
    assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
    const st_engine_node said = {.node = w->fleet->nodes.v[id], .doc = "{}"};
    w->engine->ops->node(w->engine, &said);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    w->engine->ops->free(w->engine);
    st_fleet_free(w->fleet);
    free(w);
    return 0;
}

/* A task on GPUs 0 and 1. */
static void order(world *w, st_engine_order_kind kind, int stay)
{
    const st_grant grant = {.node = 0, .devs = 3, .mig_start = -1};
    const st_job spec = {.id = 7,
                         .tasks = 1,
                         .type = -1,
                         .shape = {.level = ST_LEVEL_WHOLE},
                         .state = ST_JOB_RUNNING,
                         .start_ms = w->now,
                         .mark_ms = w->now,
                         .limit_ms = ST_TIME_NEVER};
    const st_engine_order o = {.kind = kind,
                               .job = 7,
                               .stay = stay,
                               .at_ms = w->now,
                               .account = "lab",
                               .tenant = 5,
                               .doc = "{}",
                               .spec = &spec,
                               .grants = &grant,
                               .ngrants = kind == ST_ENG_RUN,
                               .fleet = w->fleet};

    w->engine->ops->order(w->engine, &o);
}

static void say(world *w, int stay, st_task_state state, int64_t held, bool past)
{
    const st_agent_task task = {
        .job = 7, .stay = stay, .state = state, .used = {.has = 1u << ST_USED_HELD, .v = {held}}};
    const st_agent_status status = {.epoch = EPOCH,
                                    .tasks = past ? NULL : &task,
                                    .n = !past,
                                    .past = past ? &task : NULL,
                                    .npast = past,
                                    .now_ms = w->now};
    st_agent_answer answer;
    st_err err = {0};

    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
}

/* The sum of what is handed on now. */
static int64_t held(world *w, size_t want)
{
    st_measures m = {0};
    int64_t sum = 0;

    w->engine->ops->measures(w->engine, &m);
    assert_int_equal(m.list.n, want);
    for (size_t i = 0; i < m.list.n; i++) {
        assert_int_equal(m.list.v[i].job, 7);
        assert_int_equal(m.list.v[i].tenant, 5);
        assert_int_equal(m.list.v[i].node, 0);
        assert_int_equal(m.list.v[i].devs, 3);
        sum += m.list.v[i].used.v[ST_USED_HELD];
    }
    st_vec_free(&m.list);
    return sum;
}

static void what_is_new_is_handed_on_once(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 1);
    assert_int_equal(held(w, 0), 0);
    w->now += 1000;
    say(w, 1, ST_TASK_RUNNING, 2000, false);
    w->now += 30000;
    say(w, 1, ST_TASK_RUNNING, 62000, false);
    assert_int_equal(held(w, 2), 62000);
    w->now += 4000;
    say(w, 1, ST_TASK_EXITED, 68000, false);
    order(w, ST_ENG_STOP, 1);
    say(w, 1, ST_TASK_EXITED, 70000, true); /* the last moment comes when it is off the list */
    assert_int_equal(held(w, 2), 8000);
    assert_int_equal(held(w, 0), 0);
}

/* Nobody knows how much of it is of now: it is counted from there on. */
static void what_ran_before_is_not_of_now(void **state)
{
    world *w = *state;

    assert_int_equal(held(w, 0), 0);
    order(w, ST_ENG_RUN, 2);
    w->now += 7200000;
    say(w, 2, ST_TASK_RUNNING, 14000000, false);
    assert_int_equal(held(w, 0), 0);
    w->now += 31000;
    say(w, 2, ST_TASK_RUNNING, 14062000, false);
    assert_int_equal(held(w, 1), 62000);
}

static void nothing_is_kept_for_nobody(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 1);
    w->now += 1000;
    say(w, 1, ST_TASK_RUNNING, 2000, false);
    assert_int_equal(held(w, 0), 0); /* the first who asks begins it */
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_new_is_handed_on_once),
        T(what_ran_before_is_not_of_now),
        T(nothing_is_kept_for_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
