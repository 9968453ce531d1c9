/*
 * What was told to be gone (engine/native_halt.c): by whose word, and when, with a clock of the test's own.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/testing.h"
#include "engine/native.h"

#define LEASE INT64_C(60000)
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

static void heard(void *ctx, const st_report *report)
{
    world *w = ctx;

    if (report->kind == ST_REPORT_GONE)
        st_vec_push(&w->reports, *report);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    const st_native_options options = {
        .clock = now_of, .name = name_of, .ctx = w, .lease_ms = LEASE};
    st_err err = {0};

    w->now = 1000000;
    w->fleet = st_fleet_new();
    assert_ok(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 15, 2000, &err));
    w->engine = st_engine_native_new(&options);
    w->engine->report = heard;
    w->engine->ctx = w;
    st_engine_lead(w->engine, EPOCH);
    for (int i = 0; i < 2; i++) {
        char name[4];
        const st_node_spec spec = {.name = name, .ndevs = 8, .cpu_m = 1000, .ram_mib = 1000};
        int32_t id;

        snprintf(name, sizeof name, "n%d", i);
        assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
        const st_engine_node said = {.node = w->fleet->nodes.v[id], .doc = "{}"};
        w->engine->ops->node(w->engine, &said);
    }
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    w->engine->ops->free(w->engine);
    st_fleet_free(w->fleet);
    st_vec_free(&w->reports);
    free(w);
    return 0;
}

/* A gang of two, a task per node; orders after the first come without places, as from the loop. */
static void order(world *w, st_engine_order_kind kind, int ngrants)
{
    const st_grant grants[2] = {{.node = 0, .devs = 3, .mig_start = -1},
                                {.node = 1, .devs = 3, .mig_start = -1}};
    const st_job spec = {.id = 7,
                         .tasks = 2,
                         .type = -1,
                         .shape = {.level = ST_LEVEL_WHOLE},
                         .state = ST_JOB_RUNNING,
                         .start_ms = w->now,
                         .mark_ms = w->now,
                         .limit_ms = ST_TIME_NEVER};
    const st_engine_order o = {.kind = kind,
                               .job = 7,
                               .stay = 2,
                               .at_ms = w->now,
                               .account = "lab",
                               .doc = "{}",
                               .spec = &spec,
                               .grants = grants,
                               .ngrants = ngrants,
                               .fleet = w->fleet};

    w->engine->ops->order(w->engine, &o);
}

static uint64_t revision(world *w, int node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    unsigned long long r = 0;

    assert_true(st_native_desired(w->engine, node, NULL, 0, &out));
    const char *at = strstr(st_strbuf_str(&out), "\"revision\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"revision\":%llu", &r), 1);
    return r;
}

static void say(world *w, int node, const st_agent_task *task, uint64_t seen)
{
    const st_agent_status status = {
        .epoch = EPOCH, .revision = seen, .tasks = task, .n = task ? 1 : 0, .now_ms = w->now};
    st_agent_answer answer;
    char name[4];
    st_err err = {0};

    snprintf(name, sizeof name, "n%d", node);
    assert_ok(st_native_status(w->engine, name, &status, &answer, &err));
}

static st_agent_task task_on(int node, st_task_state state)
{
    return (st_agent_task){.job = 7, .stay = 2, .task = node, .state = state};
}

static void gone_when_both_agents_said_so(void **state)
{
    world *w = *state;
    st_agent_task there[2] = {task_on(0, ST_TASK_RUNNING), task_on(1, ST_TASK_RUNNING)};

    order(w, ST_ENG_RUN, 2);
    uint64_t old = revision(w, 0);
    say(w, 0, &there[0], old);
    say(w, 1, &there[1], revision(w, 1));
    order(w, ST_ENG_HALT, 0);
    assert_int_equal(w->reports.n, 0);
    /* Off the list at once, and still there. */
    assert_true(revision(w, 0) > old);
    say(w, 0, &there[0], revision(w, 0));
    say(w, 1, NULL, revision(w, 1));
    assert_int_equal(w->reports.n, 0);
    w->now += 500;
    there[0] = task_on(0, ST_TASK_EXITED);
    there[0].signal = 15;
    there[0].stopped = true;
    there[0].ended_ms = w->now - 100;
    say(w, 0, &there[0], revision(w, 0));
    assert_int_equal(w->reports.n, 1);
    assert_int_equal(w->reports.v[0].stay, 2);
    assert_false(w->reports.v[0].done);
    assert_int_equal(w->reports.v[0].ended_ms, 0); /* of the other nobody said when */
    /* Again until the receipt, and no more after it. */
    w->now += 3000;
    w->engine->ops->tick(w->engine, w->now);
    assert_int_equal(w->reports.n, 2);
    order(w, ST_ENG_STOP, 0);
    w->now += 3000;
    w->engine->ops->tick(w->engine, w->now);
    assert_int_equal(w->reports.n, 2);
}

/* It reads its list a moment later, and may be starting what the older one says. */
static void silence_on_an_older_list_says_nothing(void **state)
{
    world *w = *state;
    const st_agent_task ended = task_on(1, ST_TASK_EXITED);

    order(w, ST_ENG_RUN, 2);
    order(w, ST_ENG_HALT, 0);
    say(w, 0, NULL, revision(w, 0) - 1);
    say(w, 1, &ended, 0);
    assert_int_equal(w->reports.n, 0);
    say(w, 0, NULL, revision(w, 0));
    assert_int_equal(w->reports.n, 1);
    assert_false(w->reports.v[0].done); /* of task 0 nobody said how it ended */
}

static void a_lease_that_is_over_is_an_end(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 2);
    order(w, ST_ENG_HALT, 0);
    w->now += LEASE - 1;
    say(w, 1, NULL, revision(w, 1));
    w->engine->ops->tick(w->engine, w->now);
    assert_int_equal(w->reports.n, 0);
    w->now += 1;
    w->engine->ops->tick(w->engine, w->now + 1000);
    assert_int_equal(w->reports.n, 1);
    assert_int_equal(w->reports.v[0].ended_ms, 0);
}

/* After a start of stintd the order comes with its places, and nothing is put on a list. */
static void halted_across_a_restart(void **state)
{
    world *w = *state;
    const st_agent_task there = task_on(0, ST_TASK_RUNNING);
    uint64_t before = revision(w, 0);

    order(w, ST_ENG_HALT, 2);
    assert_int_equal(revision(w, 0), before);
    say(w, 1, NULL, revision(w, 1));
    say(w, 0, &there, before);
    assert_int_equal(w->reports.n, 0);
    say(w, 0, NULL, before);
    assert_int_equal(w->reports.n, 1);
}

/* Ended by itself, well and everywhere, before anybody told it to stop. */
static void it_was_done_already(void **state)
{
    world *w = *state;
    st_agent_task ended[2] = {task_on(0, ST_TASK_EXITED), task_on(1, ST_TASK_EXITED)};

    order(w, ST_ENG_RUN, 2);
    int64_t begun = w->now;
    order(w, ST_ENG_HALT, 0);
    w->now += 9000;
    for (int t = 0; t < 2; t++) {
        ended[t].ended_ms = begun + 100 * (t + 1);
        say(w, t, &ended[t], 0);
    }
    assert_int_equal(w->reports.n, 1);
    assert_true(w->reports.v[0].done);
    assert_int_equal(w->reports.v[0].ended_ms, begun + 200); /* not when it was heard */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gone_when_both_agents_said_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(silence_on_an_older_list_says_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lease_that_is_over_is_an_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(halted_across_a_restart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_was_done_already, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
