/*
 * st_play_run: time, the player's own records, and that every difference is
 * told. What the scheduler decides is the business of tests/scenarios.
 */
#include <jansson.h>

#include "base/testing.h"
#include "scenario/scenario.h"

typedef struct stage {
    st_doc *doc;
    st_scenario *s;
    st_play *play;
    st_err err;
} stage;

static int stage_play(stage *g, const char *text, const st_play_options *options)
{
    int r = st_doc_parse("s.yaml", text, strlen(text), &g->doc, &g->err);

    if (r == 0)
        r = st_scenario_new(g->doc, &g->s, &g->err);
    return r < 0 ? r : st_play_run(g->s, options, &g->play, &g->err);
}

static void stage_done(stage *g)
{
    st_play_free(g->play);
    st_scenario_free(g->s);
    st_doc_free(g->doc);
}

#define PLAY(text)                        \
    ST_CLEANUP(stage_done) stage g = {0}; \
                                          \
    (void)state;                          \
    if (stage_play(&g, text, NULL) < 0)   \
    fail_msg("%s", g.err.msg)

#define ONE_GPU "fleet: [{gpu: h100, gpus: 1}]\naccounts: [{name: a}]\n"

static void test_run_time(void **state)
{
    PLAY(ONE_GPU "timeline:\n"
                 "- do:\n"
                 "  - submit: {job: x, account: a, run: 1h}\n"
                 "  - submit: {job: y, account: a, run: 30m}\n");
    assert_int_equal(g.play->jobs[0].state, ST_JOB_DONE);
    assert_int_equal(g.play->jobs[0].ended_ms, 3600000);
    assert_int_equal(g.play->jobs[1].started_ms, 3600000);
    assert_int_equal(g.play->jobs[1].ended_ms, 5400000);
    assert_int_equal(g.play->now, 5400000);
    assert_int_equal(g.play->diffs.n, 0);
    assert_null(st_core_job(g.play->core, 1));
}

static void test_until(void **state)
{
    PLAY(ONE_GPU "until: 10m\ntimeline: [{do: [submit: {job: x, account: a, run: 1h}]}]\n");
    assert_int_equal(g.play->now, 600000);
    assert_int_equal(g.play->jobs[0].state, ST_JOB_RUNNING);
}

/* An engine answers after checkpoint_time; too late is too late. */
static void test_checkpoint_time(void **state)
{
    PLAY("policy: {notice: 10s, grace: 1m, min_run: 0s}\n"
         "fleet: [{gpu: h100, gpus: 2}]\n"
         "accounts: [{name: owner, guarantee: {gpu: 2}}, {name: guest}]\n"
         "timeline:\n"
         "- do:\n"
         "  - submit: {job: quick, account: guest, on_preempt: checkpoint, checkpoint_time: 20s}\n"
         "  - submit: {job: slow, account: guest, on_preempt: checkpoint, checkpoint_time: 2m}\n"
         "- at: 1h\n"
         "  do: [submit: {job: o, account: owner, gpus: 2, run: 1h}]\n");
    assert_int_equal(g.play->jobs[0].saved_ms, 3630000);
    assert_int_equal(g.play->jobs[0].lost_gpu_ms, 0);
    assert_int_equal(g.play->jobs[1].saved_ms, 0);
    assert_int_equal(g.play->jobs[1].lost_gpu_ms, INT64_C(3670000) * 1000);
    assert_int_equal(g.play->jobs[2].started_ms, 3670000);
    assert_int_equal(g.play->evictions, 2);
    assert_int_equal(g.play->evicted_m, 2000);
}

static void test_every_difference(void **state)
{
    PLAY(ONE_GPU "timeline:\n"
                 "- do:\n"
                 "  - submit: {job: x, account: a}\n"
                 "  - submit: {job: y, account: a}\n"
                 "  expect:\n"
                 "  - {job: x, state: pending, class: burstable}\n"
                 "  - {job: y, state: running}\n"
                 "- at: 1m\n"
                 "  do:\n"
                 "  - finish: y\n"
                 "  - refuse: {cancel: x}\n"
                 "  - refuse: {submit: {account: a, gpus: 2}, code: quota}\n"
                 "  expect:\n"
                 "  - {free_gpus: 0}\n");
    static const struct {
        int line;
        const char *text;
    } want[] = {
        {8, "job x: state: expected pending, found running"},
        {9, "job y: state: expected running, found pending: "},
        {12, "finish was refused: job y is pending"},
        {13, "cancel: expected to be refused, was accepted"},
        {14, "submit: expected to be refused with quota, found invalid"},
    };

    /* x was cancelled, so y runs on the one GPU and free_gpus holds. */
    assert_int_equal(g.play->diffs.n, ST_ARRAY_LEN(want));
    for (size_t i = 0; i < ST_ARRAY_LEN(want); i++) {
        assert_int_equal(g.play->diffs.v[i].line, want[i].line);
        assert_non_null(strstr(g.play->diffs.v[i].text, want[i].text));
    }
    assert_int_equal(g.play->looked, 6);
    assert_int_equal(g.play->broken, 0);
}

/* Without expectations a refusal is an answer. */
static void test_question(void **state)
{
    PLAY(ONE_GPU "timeline: [{do: [submit: {job: x, account: a, gpus: 2}]}]\n");
    assert_int_equal(g.play->diffs.n, 0);
    assert_true(g.play->jobs[0].refused);
    assert_non_null(strstr(g.play->jobs[0].refusal, "the largest has 1"));
}

/* Keys that are not given stay as they were, and `none` takes one away. */
static void test_account_change(void **state)
{
    PLAY("fleet: [{gpu: h100}]\n"
         "accounts: [{name: a, guarantee: {gpu: 4, cpu: 8}, max: {gpu: 6}, weight: 3, min_run: "
         "1m}]\n"
         "timeline: [{do: [account: {name: a, guarantee: {cpu: none}, max: {gpu: 8}}]}]\n");
    const st_tree *tree = st_core_tree(g.play->core);
    const st_account *a = st_tree_account(tree, st_tree_find(tree, "a"));

    assert_int_equal(a->guarantee.gpu_m, 4000);
    assert_int_equal(a->guarantee.cpu_m, ST_UNSET);
    assert_int_equal(a->max.gpu_m, 8000);
    assert_int_equal(a->weight_m, 3000);
    assert_int_equal(a->min_run_ms, 60000);
}

static void test_bad_setup(void **state)
{
    ST_CLEANUP(stage_done) stage g = {0};
    st_err err;

    (void)state;
    assert_int_equal(stage_play(&g,
                                "fleet: [{gpu: h100}]\n"
                                "accounts:\n"
                                "- {name: a, guarantee: {gpu: 4}}\n"
                                "- {name: b, parent: a, guarantee: {gpu: 5}}\n"
                                "timeline: [{}]\n",
                                NULL),
                     -ST_EINVAL);
    err = g.err;
    assert_non_null(strstr(err.msg, "s.yaml:4: account b: "));
}

static const char *const busy =
    "policy: {min_run: 0s}\n"
    "fleet: [{count: 3, gpu: h100}]\n"
    "accounts: [{name: o, guarantee: {gpu: 8}}, {name: p}, {name: q}]\n"
    "timeline:\n"
    "- do:\n"
    "  - submit: {job: \"p%d\", count: 30, every: 3m, account: p, gpus: 2, run: 50m, on_preempt: "
    "pause}\n"
    "  - submit: {job: \"q%d\", count: 30, every: 5m, account: q, gpus: 3, run: 70m}\n"
    "- {at: 40m, do: [submit: {job: o, account: o, gpus: 8, run: 1h}, node: {drain: n1}]}\n"
    "- {at: 60m, do: [node: {fail: n2}]}\n"
    "- {at: 80m, do: [node: {return: [n1, n2]}]}\n";

/* The same scenario gives the same effects, also when the core is saved and loaded between. */
static void test_repeatable(void **state)
{
    const st_play_options reload = {.reload = true};
    ST_CLEANUP(stage_done) stage a = {0}, b = {0}, c = {0};
    json_t *x, *y;

    (void)state;
    assert_int_equal(stage_play(&a, busy, NULL), 0);
    assert_int_equal(stage_play(&b, busy, NULL), 0);
    assert_int_equal(stage_play(&c, busy, &reload), 0);
    assert_true(a.play->events.n > 100);
    assert_true(st_core_hash(a.play->core) == st_core_hash(b.play->core));
    assert_true(st_core_hash(a.play->core) == st_core_hash(c.play->core));
    x = st_play_json(a.play);
    y = st_play_json(c.play);
    assert_true(json_equal(x, y));
    assert_int_equal(json_array_size(json_object_get(x, "effects")), a.play->events.n);
    json_decref(x);
    json_decref(y);
}

static void test_words(void **state)
{
    PLAY(ONE_GPU "timeline:\n"
                 "- do: [submit: {job: x, account: a}, submit: {job: y, account: a}]\n"
                 "  expect: [{running: [x]}]\n");
    ST_CLEANUP(st_strbuf_done) st_strbuf what = {0}, where = {0}, why = {0};

    st_play_what(g.play, &g.play->events.v[2], &what, &where);
    assert_string_equal(what.s, "started, burstable");
    assert_string_equal(where.s, "n1:0");
    st_play_why(g.play, 1, &why);
    assert_non_null(strstr(why.s, "h100"));
    st_strbuf_clear(&why);
    st_play_why(g.play, 0, &why);
    assert_string_equal(st_strbuf_str(&why), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_time),        cmocka_unit_test(test_until),
        cmocka_unit_test(test_checkpoint_time), cmocka_unit_test(test_every_difference),
        cmocka_unit_test(test_question),        cmocka_unit_test(test_account_change),
        cmocka_unit_test(test_bad_setup),       cmocka_unit_test(test_repeatable),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
