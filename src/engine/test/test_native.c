/*
 * The native engine by itself, with a clock of the test's own: lists and revisions, how gangs end,
 * leases, stale stays and epochs, and the mux.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/testing.h"
#include "engine/native.h"

#define LEASE INT64_C(60000)
#define EPOCH 3

typedef struct world {
    int64_t now;
    st_engine *engine;
    st_fleet *fleet;
    ST_VEC(st_report) reports;
    int changed[4];
    int64_t tenant; /* of the next orders */
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
    ((world *)ctx)->changed[node]++;
}

static void heard(void *ctx, const st_report *report)
{
    world *w = ctx;

    st_vec_push(&w->reports, *report);
}

static void tell_node(world *w, int32_t id, const char *fault)
{
    const st_engine_node said = {.node = w->fleet->nodes.v[id],
                                 .doc = "{\"address\":\"a\",\"gpu\":{\"uuids\":[\"U0\",\"U1\"]}}",
                                 .fault = fault};

    w->engine->ops->node(w->engine, &said);
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    const st_native_options options = {
        .clock = now_of, .name = name_of, .changed = changed, .ctx = w, .lease_ms = LEASE};
    st_err err = {0};

    w->now = 1000000;
    w->fleet = st_fleet_new();
    assert_ok(st_fleet_add_type(w->fleet, "h100", 81920, ST_BOARD_H100_80, &err));
    assert_ok(st_fleet_add_pool(w->fleet, "p", 15, 2000, &err));
    for (int i = 0; i < 3; i++) {
        char name[4];
        const st_node_spec spec = {.name = name, .ndevs = 8, .cpu_m = 1000, .ram_mib = 1000};
        int32_t id;

        snprintf(name, sizeof name, "n%d", i);
        assert_ok(st_fleet_add_node(w->fleet, &spec, &id, &err));
    }
    w->engine = st_engine_native_new(&options);
    w->engine->report = heard;
    w->engine->ctx = w;
    st_engine_lead(w->engine, EPOCH);
    for (int i = 0; i < 3; i++)
        tell_node(w, i, NULL);
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

/* ---- orders and statuses in few words ----------------------------------------------------------- */

static void order_to(st_engine *engine, world *w, st_engine_order_kind kind, uint64_t job, int stay,
                     int tasks)
{
    st_grant grants[4];
    const st_job spec = {.id = job,
                         .tasks = tasks,
                         .shape = {.level = ST_LEVEL_WHOLE, .gpus = 2},
                         .yield = job >= 50 ? ST_YIELD_PAUSE : ST_YIELD_CHECKPOINT,
                         .state = ST_JOB_RUNNING,
                         .start_ms = w->now,
                         .mark_ms = w->now,
                         .limit_ms = ST_TIME_NEVER};
    const st_engine_order o = {.kind = kind,
                               .job = job,
                               .stay = stay,
                               .at_ms = w->now,
                               .until_ms = kind == ST_ENG_CHECKPOINT ? w->now + 5000 : 0,
                               .account = "lab",
                               .tenant = w->tenant,
                               .domain = job == 9 ? "institute" : NULL,
                               .untrusted = job == 9,
                               .doc = "{\"command\":[\"x\"]}",
                               .spec = &spec,
                               .grants = grants,
                               .ngrants = tasks,
                               .fleet = w->fleet};

    for (int t = 0; t < tasks; t++)
        grants[t] = (st_grant){.node = t, .devs = 3, .mig_start = -1};
    engine->ops->order(engine, &o);
}

static void order(world *w, st_engine_order_kind kind, uint64_t job, int stay, int tasks)
{
    order_to(w->engine, w, kind, job, stay, tasks);
}

static uint64_t revision(world *w, int node)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    json_t *root;
    uint64_t r;

    assert_true(st_native_desired(w->engine, node, NULL, 0, &out));
    root = json_loads(st_strbuf_str(&out), 0, NULL);
    assert_non_null(root);
    r = (uint64_t)json_integer_value(json_object_get(root, "revision"));
    json_decref(root);
    return r;
}

static bool lists(world *w, int node, const char *text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    assert_true(st_native_desired(w->engine, node, NULL, 0, &out));
    return strstr(st_strbuf_str(&out), text);
}

static void expect_want(world *w, int node, const char *want)
{
    char text[48];

    snprintf(text, sizeof text, "\"want\":\"%s\"", want);
    assert_true(lists(w, node, text));
}

static int say(world *w, int node, const st_agent_task *task, uint64_t seen, st_err *err)
{
    const st_agent_status status = {
        .epoch = EPOCH, .revision = seen, .tasks = task, .n = task ? 1 : 0, .now_ms = w->now};
    st_agent_answer answer;
    char name[4];

    snprintf(name, sizeof name, "n%d", node);
    return st_native_status(w->engine, name, &status, &answer, err);
}

static void task_is(world *w, int node, uint64_t job, int stay, st_task_state state, int code)
{
    const st_agent_task task = {
        .job = job, .stay = stay, .task = node, .state = state, .exit_code = code};
    st_err err = {0};

    assert_ok(say(w, node, &task, 0, &err));
}

static void expect_reports(const world *w, size_t n)
{
    if (w->reports.n != n)
        fail_msg("%zu reports, not %zu", w->reports.n, n);
}

/* ---- lists --------------------------------------------------------------------------------------- */

static void a_change_is_a_revision_of_those_it_concerns(void **state)
{
    world *w = *state;
    uint64_t r0 = revision(w, 0), r2 = revision(w, 2);
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    assert_true(r0 >> 32 == EPOCH);
    assert_false(st_native_desired(w->engine, 0, NULL, r0, &out));
    order(w, ST_ENG_RUN, 1, 1, 2);
    assert_true(revision(w, 0) > r0);
    assert_int_equal(revision(w, 2), r2);
    assert_int_equal(w->changed[0], 1);
    assert_int_equal(w->changed[2], 0);
    /* The same again changes nothing. */
    r0 = revision(w, 0);
    order(w, ST_ENG_RUN, 1, 1, 2);
    assert_int_equal(revision(w, 0), r0);
    order(w, ST_ENG_NOTIFY, 1, 1, 0);
    expect_want(w, 1, "notify");
    order(w, ST_ENG_SPARE, 1, 1, 0);
    expect_want(w, 1, "run");
    /* An order for a stay that is over has no effect. */
    r0 = revision(w, 0);
    order(w, ST_ENG_CHECKPOINT, 1, 7, 0);
    assert_int_equal(revision(w, 0), r0);
    order(w, ST_ENG_STOP, 1, 1, 0);
    assert_true(st_native_desired(w->engine, 0, NULL, r0, &out));
    assert_null(strstr(st_strbuf_str(&out), "\"job\""));
    /* The node may still bring the last lines, another may not. */
    assert_true(st_native_had(w->engine, "n0", 1, 1, 0));
    assert_false(st_native_had(w->engine, "n0", 1, 1, 1));
    assert_false(st_native_had(w->engine, "n2", 1, 1, 0));
}

static void a_gang_on_several_nodes_has_its_accounts_segment(void **state)
{
    world *w = *state;
    static const char hosts[] = "\"segment\":41,\"world_size\":2,\"hosts\":["
                                "{\"node\":\"n0\",\"address\":\"a\",\"inside\":\"10.0.0.1\"},"
                                "{\"node\":\"n1\",\"address\":\"a\",\"inside\":\"10.0.0.2\"}]";

    w->tenant = 41;
    order(w, ST_ENG_RUN, 1, 1, 1);
    assert_false(lists(w, 0, "segment"));
    order(w, ST_ENG_RUN, 2, 1, 2);
    assert_true(lists(w, 1, hosts));
    assert_false(lists(w, 2, "segment")); /* who has no task of it */
    w->tenant = 0xffffff;                 /* a number that no segment can have */
    order(w, ST_ENG_RUN, 3, 1, 2);
    assert_false(lists(w, 1, "\"segment\":16777215"));
}

static void used_is(world *w, st_task_state state, int64_t held, int64_t in_ms)
{
    const st_agent_task task = {.job = 1,
                                .stay = 1,
                                .task = 0,
                                .state = state,
                                .used = {.has = 1u << ST_USED_HELD, .v = {held}}};
    st_err err = {0};

    w->now += in_ms;
    assert_ok(say(w, 0, &task, 0, &err));
}

static void what_tasks_used_is_told_now_and_then_and_at_the_end(void **state)
{
    world *w = *state;
    const st_agent_task past = {.job = 1,
                                .stay = 1,
                                .state = ST_TASK_EXITED,
                                .used = {.has = 1u << ST_USED_HELD, .v = {36000}},
                                .scrub = {.result = ST_SCRUB_CLEAN, .bytes = 4096}};
    const st_agent_status status = {.epoch = EPOCH, .now_ms = w->now, .past = &past, .npast = 1};
    st_agent_answer answer;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 1);
    used_is(w, ST_TASK_RUNNING, 1000, 1000);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_USED);
    assert_int_equal(w->reports.v[0].used.v[ST_USED_HELD], 1000);
    assert_false(w->reports.v[0].last);
    used_is(w, ST_TASK_RUNNING, 6000, 5000);
    used_is(w, ST_TASK_RUNNING, 30000, 24000);
    expect_reports(w, 1);
    used_is(w, ST_TASK_RUNNING, 31000, 1000);
    expect_reports(w, 2);
    /* Its last numbers go ahead of the end of its job. */
    used_is(w, ST_TASK_EXITED, 35000, 1000);
    expect_reports(w, 4);
    assert_int_equal(w->reports.v[2].kind, ST_REPORT_USED);
    assert_true(w->reports.v[2].last);
    assert_int_equal(w->reports.v[3].kind, ST_REPORT_ENDED);
    used_is(w, ST_TASK_EXITED, 35000, 1000); /* nothing new */
    expect_reports(w, 4);
    /* Off the list: from the node that had it, and from no other. */
    order(w, ST_ENG_STOP, 1, 1, 0);
    assert_ok(st_native_status(w->engine, "n1", &status, &answer, &err));
    expect_reports(w, 4);
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 5);
    assert_int_equal(w->reports.v[4].used.v[ST_USED_HELD], 36000);
    assert_int_equal(w->reports.v[4].scrub.result, ST_SCRUB_CLEAN);
}

static void the_list_names_the_trust_domain(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 9, 1, 1);
    assert_true(lists(w, 0, "\"account\":\"lab\",\"domain\":\"institute\""));
    assert_true(lists(w, 0, "\"untrusted\":true"));
    order(w, ST_ENG_STOP, 9, 1, 0);
    order(w, ST_ENG_RUN, 1, 1, 1);
    assert_true(lists(w, 0, "\"domain\":\"lab\""));
    assert_false(lists(w, 0, "untrusted"));
}

static void a_job_that_pauses_is_told_to_pause(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 50, 1, 1);
    task_is(w, 0, 50, 1, ST_TASK_RUNNING, 0);
    order(w, ST_ENG_CHECKPOINT, 50, 1, 0);
    expect_want(w, 0, "pause");
    task_is(w, 0, 50, 1, ST_TASK_PAUSED, 0);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_CHECKPOINTED);
    order(w, ST_ENG_PAUSE, 50, 1, 0);
    expect_want(w, 0, "pause");
    task_is(w, 0, 50, 1, ST_TASK_PAUSED, 0);
    expect_reports(w, 1);
    order(w, ST_ENG_RESUME, 50, 1, 1);
    expect_want(w, 0, "run");
    task_is(w, 0, 50, 1, ST_TASK_PAUSED, 0);
    task_is(w, 0, 50, 1, ST_TASK_RUNNING, 0);
    expect_reports(w, 1);
    /* What died while it was paused has failed once it is to go on. */
    order(w, ST_ENG_PAUSE, 50, 1, 0);
    task_is(w, 0, 50, 1, ST_TASK_EXITED, 7);
    expect_reports(w, 1);
    order(w, ST_ENG_RESUME, 50, 1, 1);
    task_is(w, 0, 50, 1, ST_TASK_EXITED, 7);
    expect_reports(w, 2);
    assert_int_equal(w->reports.v[1].exit_code, 7);
}

/* ---- gangs ---------------------------------------------------------------------------------------- */

static void all_must_have_ended_well(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 1, 1, 2);
    task_is(w, 0, 1, 1, ST_TASK_RUNNING, 0);
    task_is(w, 0, 1, 1, ST_TASK_EXITED, 0);
    expect_reports(w, 0);
    task_is(w, 1, 1, 1, ST_TASK_EXITED, 0);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_ENDED);
    assert_int_equal(w->reports.v[0].exit_code, 0);
    /* Said again until the receipt. */
    w->now += 1000;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 1);
    w->now += 2000;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 2);
    order(w, ST_ENG_STOP, 1, 1, 0);
    w->now += 5000;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 2);
}

static void the_first_failure_wins(void **state)
{
    world *w = *state;
    const st_agent_task second = {
        .job = 1, .stay = 1, .task = 1, .state = ST_TASK_EXITED, .signal = 15};
    uint64_t r1;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 2);
    r1 = revision(w, 1);
    task_is(w, 0, 1, 1, ST_TASK_EXITED, 9);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].exit_code, 9);
    assert_string_equal(w->reports.v[0].reason, "task 0 on n0 exited with 9");
    assert_true(revision(w, 1) > r1);
    expect_want(w, 1, "stop");
    assert_ok(say(w, 1, &second, 0, &err));
    expect_reports(w, 1);
    /* What was wanted before it failed does not matter any more. */
    order(w, ST_ENG_NOTIFY, 1, 1, 0);
    expect_want(w, 1, "stop");
}

static void what_cannot_start_or_vanishes_fails(void **state)
{
    world *w = *state;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 1);
    task_is(w, 0, 1, 1, ST_TASK_UNSTARTED, 0);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].exit_code, 126);
    order(w, ST_ENG_STOP, 1, 1, 0);
    order(w, ST_ENG_RUN, 2, 1, 1);
    assert_ok(say(w, 0, NULL, 0, &err)); /* not started yet */
    expect_reports(w, 1);
    task_is(w, 0, 2, 1, ST_TASK_RUNNING, 0);
    assert_ok(say(w, 0, NULL, 0, &err));
    expect_reports(w, 2);
    assert_non_null(strstr(w->reports.v[1].reason, "no longer knows"));
}

static void who_was_told_to_leave_does_not_fail(void **state)
{
    world *w = *state;

    order(w, ST_ENG_RUN, 1, 1, 2);
    task_is(w, 0, 1, 1, ST_TASK_RUNNING, 0);
    task_is(w, 1, 1, 1, ST_TASK_RUNNING, 0);
    order(w, ST_ENG_CHECKPOINT, 1, 1, 0);
    task_is(w, 0, 1, 1, ST_TASK_EXITED, 143);
    task_is(w, 1, 1, 1, ST_TASK_CHECKPOINTED, 0);
    expect_reports(w, 0); /* the core takes it away when its time is up */
    order(w, ST_ENG_STOP, 1, 1, 0);
    order(w, ST_ENG_RUN, 1, 2, 2);
    order(w, ST_ENG_CHECKPOINT, 1, 2, 0);
    task_is(w, 0, 1, 2, ST_TASK_CHECKPOINTED, 0);
    expect_reports(w, 0);
    task_is(w, 1, 1, 2, ST_TASK_CHECKPOINTED, 0);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_CHECKPOINTED);
    assert_int_equal(w->reports.v[0].stay, 2);
}

static void old_stays_and_new_epochs(void **state)
{
    world *w = *state;
    const st_agent_status newer = {.epoch = EPOCH + 1};
    st_agent_answer answer;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 2, 1);
    task_is(w, 0, 1, 1, ST_TASK_EXITED, 5);
    task_is(w, 0, 1, 3, ST_TASK_EXITED, 5);
    task_is(w, 0, 99, 1, ST_TASK_EXITED, 5);
    expect_reports(w, 0);
    assert_fails(st_native_status(w->engine, "n0", &newer, &answer, &err), ST_ESTATE, "epoch 4");
    assert_fails(st_native_status(w->engine, "zz", &(st_agent_status){0}, &answer, &err), ST_ENOENT,
                 "zz");
}

static void ends_have_their_true_time(void **state)
{
    world *w = *state;
    int64_t begun = w->now;
    st_agent_task task = {.job = 1, .stay = 1, .state = ST_TASK_EXITED};
    /* The agent's clock is an hour ahead. */
    st_agent_status status = {.epoch = EPOCH, .tasks = &task, .n = 1};
    st_agent_answer answer;
    st_err err = {0};

    for (int i = 0; i < 3; i++) {
        const int64_t ago[] = {20000, 90000, -5000}; /* the last two cannot be */

        w->now = begun;
        order(w, ST_ENG_RUN, 1, i + 1, 1);
        w->now += 50000;
        task.stay = i + 1;
        status.now_ms = w->now + 3600000;
        task.ended_ms = status.now_ms - ago[i];
        assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
        expect_reports(w, (size_t)i + 1);
        assert_int_equal(w->reports.v[i].ended_ms, i == 0 ? w->now - 20000 : w->now);
        order(w, ST_ENG_STOP, 1, i + 1, 0);
    }
}

/* Of a gang, when the last of its tasks began, by our clock; each start once, and never before the order. */
static void starts_have_their_true_time(void **state)
{
    world *w = *state;
    st_agent_task task[2] = {{.job = 1, .stay = 1, .task = 0, .state = ST_TASK_RUNNING},
                             {.job = 1, .stay = 1, .task = 1, .state = ST_TASK_STARTING}};
    st_agent_status status = {.epoch = EPOCH, .tasks = task, .n = 1};
    st_agent_answer answer;
    int64_t begun = w->now;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 2);
    w->now += 5000;
    status.now_ms = w->now + 3600000; /* the agent's clock is an hour ahead */
    task[0].started_ms = status.now_ms - 2000;
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 0);
    status.tasks = &task[1];
    assert_ok(st_native_status(w->engine, "n1", &status, &answer, &err));
    expect_reports(w, 0);
    task[1].state = ST_TASK_RUNNING;
    task[1].started_ms = status.now_ms - 9000; /* before it was ordered: as it was ordered */
    assert_ok(st_native_status(w->engine, "n1", &status, &answer, &err));
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_STARTED);
    assert_int_equal(w->reports.v[0].stay, 1);
    assert_int_equal(w->reports.v[0].started_ms, begun + 3000);
    assert_ok(st_native_status(w->engine, "n1", &status, &answer, &err));
    expect_reports(w, 1);
}

/* Sent while the network was cut, and heard when it was mended: the delay is not the clock's. */
static void a_late_status_has_the_true_end(void **state)
{
    world *w = *state;
    st_agent_task task = {.job = 1, .stay = 1, .state = ST_TASK_RUNNING};
    st_agent_status status = {.epoch = EPOCH, .tasks = &task, .n = 1};
    st_agent_answer answer;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 1);
    for (int i = 0; i < 20; i++) {
        w->now += 5000;
        status.now_ms = w->now - 100 - i % 3;
        assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    }
    w->now += 9000;
    status.now_ms = w->now - 7000;
    task.state = ST_TASK_EXITED;
    task.ended_ms = w->now - 8000;
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].ended_ms, w->now - 8000 + 100);
}

/* ---- leases ---------------------------------------------------------------------------------------- */

static void silence_is_a_loss_at_the_leases_end(void **state)
{
    world *w = *state;
    st_agent_answer terms;
    st_err err = {0};

    st_native_terms(w->engine, &terms);
    assert_true(terms.lease_ms < LEASE); /* the agent is done before we begin */
    w->now += LEASE - 1;
    assert_ok(say(w, 1, NULL, 0, &err));
    assert_ok(say(w, 2, NULL, 0, &err));
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 0);
    w->now += 1001;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].node, 0);
    assert_int_equal(w->reports.v[0].node_state, ST_NODE_FAILED);
    /* Until it is heard. */
    w->now += 3000;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 2);
    w->fleet->nodes.v[0]->state = ST_NODE_FAILED;
    tell_node(w, 0, "silent");
    w->now += 3000;
    w->engine->ops->tick(w->engine, w->now);
    expect_reports(w, 2);
}

static void a_node_comes_back_when_it_is_clean(void **state)
{
    world *w = *state;
    const st_agent_task old = {.job = 9, .stay = 1, .state = ST_TASK_RUNNING};
    st_err err = {0};

    w->fleet->nodes.v[0]->state = ST_NODE_FAILED;
    tell_node(w, 0, "silent");
    assert_ok(say(w, 0, &old, revision(w, 0), &err)); /* has something it should not */
    assert_ok(say(w, 0, NULL, 0, &err));              /* has not read its list */
    expect_reports(w, 0);
    assert_ok(say(w, 0, NULL, revision(w, 0), &err));
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].node_state, ST_NODE_READY);
    /* One that a person took out stays out. */
    w->fleet->nodes.v[1]->state = ST_NODE_FAILED;
    tell_node(w, 1, NULL);
    assert_ok(say(w, 1, NULL, revision(w, 1), &err));
    expect_reports(w, 1);
}

/* It takes nothing new, and that is all. */
static void a_held_node_keeps_what_runs(void **state)
{
    world *w = *state;
    const st_agent_task task = {.job = 1, .stay = 1, .state = ST_TASK_RUNNING};
    st_agent_status status = {
        .epoch = EPOCH, .held = true, .reason = "its disk is full", .tasks = &task, .n = 1};
    st_agent_answer answer;
    st_err err = {0};

    order(w, ST_ENG_RUN, 1, 1, 1);
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 1);
    assert_int_equal(w->reports.v[0].kind, ST_REPORT_NODE);
    assert_int_equal(w->reports.v[0].node_state, ST_NODE_DRAINING);
    assert_string_equal(w->reports.v[0].reason, "its disk is full");
}

/* For the node's reasons: back to the queue, and not for ever. */
static void what_a_node_cannot_start_is_tried_elsewhere(void **state)
{
    world *w = *state;
    st_err err = {0};

    for (int stay = 1; stay <= 4; stay++) {
        const st_agent_task task = {.job = 7,
                                    .stay = stay,
                                    .state = ST_TASK_UNSTARTED,
                                    .node_fault = true,
                                    .reason = "no space left"};

        order(w, ST_ENG_RUN, 7, stay, 1);
        assert_ok(say(w, 0, &task, 0, &err));
        expect_reports(w, (size_t)stay);
        assert_int_equal(w->reports.v[stay - 1].kind,
                         stay < 4 ? ST_REPORT_UNSTARTED : ST_REPORT_ENDED);
        order(w, ST_ENG_STOP, 7, stay, 0);
    }
    assert_int_equal(w->reports.v[3].exit_code, 126);
    assert_non_null(strstr(w->reports.v[3].reason, "no space left"));
}

static void a_sick_node_says_so(void **state)
{
    world *w = *state;
    st_agent_status status = {.epoch = EPOCH, .sick = true, .reason = "XID 79"};
    st_agent_answer answer;
    st_err err = {0};

    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 1);
    assert_string_equal(w->reports.v[0].reason, "XID 79");
    /* What dies there does not fail its job; nor does what is not named. */
    order(w, ST_ENG_RUN, 1, 1, 1);
    task_is(w, 0, 1, 1, ST_TASK_RUNNING, 0);
    status.tasks = &(st_agent_task){.job = 1, .stay = 1, .state = ST_TASK_EXITED, .signal = 9};
    status.n = 1;
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    status.n = 0;
    assert_ok(st_native_status(w->engine, "n0", &status, &answer, &err));
    expect_reports(w, 1);
}

/* ---- the mux ---------------------------------------------------------------------------------------- */

static void each_node_has_its_engine(void **state)
{
    world *w = *state;
    const st_native_options options = {
        .clock = now_of, .name = name_of, .changed = changed, .ctx = w};
    st_engine *native = st_engine_native_new(&options), *mux, *own = w->engine;
    st_engine *const parts[] = {native, st_engine_sim_new()};
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    mux = st_engine_mux_new(parts, 2);
    mux->report = heard;
    mux->ctx = w;
    st_engine_lead(mux, 8);
    w->engine = mux;
    tell_node(w, 0, NULL); /* n0 has an agent, n1 has not */
    w->engine = own;
    order_to(mux, w, ST_ENG_RUN, 1, 1, 1);
    assert_true(st_native_desired(native, 0, NULL, 0, &out));
    assert_non_null(strstr(st_strbuf_str(&out), "\"job\":\"j1\""));
    order_to(mux, w, ST_ENG_RUN, 2, 1, 2); /* on either */
    expect_reports(w, 1);
    assert_non_null(strstr(w->reports.v[0].reason, "name a pool"));
    mux->ops->free(mux);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_change_is_a_revision_of_those_it_concerns),
        T(a_gang_on_several_nodes_has_its_accounts_segment),
        T(what_tasks_used_is_told_now_and_then_and_at_the_end),
        T(the_list_names_the_trust_domain),
        T(a_job_that_pauses_is_told_to_pause),
        T(all_must_have_ended_well),
        T(the_first_failure_wins),
        T(what_cannot_start_or_vanishes_fails),
        T(who_was_told_to_leave_does_not_fail),
        T(old_stays_and_new_epochs),
        T(starts_have_their_true_time),
        T(ends_have_their_true_time),
        T(a_late_status_has_the_true_end),
        T(silence_is_a_loss_at_the_leases_end),
        T(a_node_comes_back_when_it_is_clean),
        T(a_sick_node_says_so),
        T(a_held_node_keeps_what_runs),
        T(what_a_node_cannot_start_is_tried_elsewhere),
        T(each_node_has_its_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
