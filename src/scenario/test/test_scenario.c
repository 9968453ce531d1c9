/*
 * st_scenario_new: what it understands, and what it refuses, on which line and
 * with which suggestion.
 */
#include "base/testing.h"
#include "scenario/scenario.h"

static int read_text(const char *text, st_doc **ret_doc, st_scenario **ret, st_err *err)
{
    int r = st_doc_parse("s.yaml", text, strlen(text), ret_doc, err);

    return r < 0 ? r : st_scenario_new(*ret_doc, ret, err);
}

#define READ(text)                                       \
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;         \
    ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL; \
    st_err err = {0};                                    \
                                                         \
    (void)state;                                         \
    assert_ok(read_text(text, &doc, &s, &err))

static void test_defaults(void **state)
{
    READ("fleet: [{gpu: h100}]\n"
         "accounts: [{name: a}]\n"
         "timeline: [{do: [submit: {job: j, account: a}]}]\n");
    assert_string_equal(s->name, "s.yaml");
    assert_int_equal(s->nodes.n, 1);
    assert_string_equal(s->nodes.v[0].spec.name, "n1");
    assert_int_equal(s->nodes.v[0].spec.ndevs, 8);
    assert_int_equal(s->nodes.v[0].spec.cpu_m, 128000);
    assert_int_equal(s->types.n, 1);
    assert_int_equal(s->types.v[0].doc.board, ST_BOARD_H100_80);
    assert_int_equal(s->pools.n, 1);
    assert_int_equal(s->pools.v[0].doc.levels, 15);
    assert_int_equal(s->pools.v[0].doc.oversub_m, 2000);
    assert_int_equal(s->policy.notice_ms, 30000);
    assert_int_equal(s->jobs.v[0].spec.id, 1);
    assert_int_equal(s->jobs.v[0].spec.shape.gpus, 1);
    assert_string_equal(s->jobs.v[0].spec.user, "a");
    assert_int_equal(s->jobs.v[0].spec.yield, ST_YIELD_REQUEUE);
    assert_true(s->jobs.v[0].spec.limit_ms == ST_TIME_NEVER);
    assert_int_equal(s->entries.v[0].at_ms, 0);
    assert_false(s->asserts);
}

static void test_policy(void **state)
{
    READ("policy: {notice: 1m, reclaim_bound: 1.5, reservations: 7, rebalance: false, basis: "
         "total}\n"
         "fleet: [{gpu: h100}]\naccounts: []\ntimeline: [{}]\n");
    assert_int_equal(s->policy.notice_ms, 60000);
    assert_int_equal(s->policy.grace_ms, 120000);
    assert_int_equal(s->policy.bound_m, 1500);
    assert_int_equal(s->policy.reservations, 7);
    assert_int_equal(s->policy.rebalance, 0);
    assert_int_equal(s->policy.counts, 1);
}

/* Five hundred nodes in racks of 16 and blocks of 8 racks, in one line. */
static void test_rows(void **state)
{
    READ("fleet:\n"
         "- {count: 500, gpu: h100, rack: r, rack_size: 16, block: \"b%d\", block_size: 8, zone: "
         "z}\n"
         "- {name: x, cpu: 4, ram: 8}\n"
         "- {count: 2, gpu: l40s, gpus: 4, nvlink_domain: nv, nvlink_nodes: 2}\n"
         "accounts: []\ntimeline: [{}]\n");
    assert_int_equal(s->nodes.n, 503);
    assert_string_equal(s->nodes.v[15].spec.rack, "r1");
    assert_string_equal(s->nodes.v[16].spec.rack, "r2");
    assert_string_equal(s->nodes.v[127].spec.block, "b1");
    assert_string_equal(s->nodes.v[128].spec.block, "b2");
    assert_string_equal(s->nodes.v[499].spec.name, "n500");
    assert_string_equal(s->nodes.v[499].spec.rack, "r32");
    assert_string_equal(s->nodes.v[499].spec.block, "b4");
    assert_string_equal(s->nodes.v[499].spec.zone, "z");
    assert_string_equal(s->nodes.v[500].spec.name, "x");
    assert_int_equal(s->nodes.v[500].spec.ndevs, 0);
    assert_int_equal(s->nodes.v[500].spec.ram_mib, 8192);
    assert_null(s->nodes.v[500].spec.rack);
    assert_string_equal(s->nodes.v[501].spec.name, "n502");
    assert_string_equal(s->nodes.v[502].spec.nvlink_domain, "nv1");
}

static void test_accounts(void **state)
{
    READ("fleet: [{gpu: h100}]\n"
         "accounts:\n"
         "- name: org\n"
         "  guarantee: {gpu: 4, h100: 2, ram: 64}\n"
         "  children: [{name: kid, weight: 0, priority: -2, trust: untrusted, trust_domain: own}]\n"
         "- {name: flat, parent: org, limits: {job: {run: 1h}, user: {share: 0.5}}, min_run: 0s}\n"
         "timeline: [{do: [account: {name: org, guarantee: {gpu: none}}]}]\n");
    assert_int_equal(s->accounts.n, 3);
    assert_int_equal(s->accounts.v[0]->guarantee.gpu_m, 4000);
    assert_int_equal(s->accounts.v[0]->guarantee.type_m[0], 2000);
    assert_int_equal(s->accounts.v[0]->guarantee.ram_mib, 65536);
    assert_true(s->accounts.v[0]->guarantee.cpu_m == ST_KEEP);
    assert_string_equal(s->accounts.v[1]->parent, "org");
    assert_int_equal(s->accounts.v[1]->weight_m, 0);
    assert_int_equal(s->accounts.v[1]->priority, -2);
    assert_int_equal(s->accounts.v[1]->trust, ST_TRUST_UNTRUSTED);
    assert_int_equal(s->accounts.v[1]->own_domain, 1);
    assert_int_equal(s->accounts.v[2]->job_limits.run_ms, 3600000);
    assert_int_equal(s->accounts.v[2]->user_limits.share_m, 500);
    assert_int_equal(s->accounts.v[2]->min_run_ms, 0);
    assert_int_equal(s->actions.v[0].account->guarantee.gpu_m, ST_UNSET);
}

static void test_streams(void **state)
{
    READ("fleet: [{gpu: h100}]\naccounts: [{name: a}]\n"
         "timeline:\n"
         "- at: 10s\n"
         "  do:\n"
         "  - submit: {job: \"x%d\", account: a, count: 3, every: 5s}\n"
         "  - submit: {job: y, account: a, count: 2}\n"
         "  - submit: {job: \"z%d\", account: a, count: 2, every: 7s}\n"
         "- {after: 1m, expect: [{job: x3, state: running}, {job: y2, state: running}]}\n");
    assert_int_equal(s->jobs.n, 7);
    assert_int_equal(s->actions.n, 4); /* x1, y1, y2, z1 */
    assert_int_equal(s->arrivals.n, 3);
    assert_int_equal(s->arrivals.v[0].at_ms, 15000);
    assert_int_equal(s->arrivals.v[1].at_ms, 17000);
    assert_int_equal(s->arrivals.v[2].at_ms, 20000);
    assert_int_equal(s->entries.v[1].at_ms, 70000);
    assert_true(s->asserts);
}

static void test_wants(void **state)
{
    READ("fleet: [{count: 2, gpu: h100}]\naccounts: [{name: a}]\n"
         "timeline:\n"
         "- do: [submit: {job: j, account: a}, submit: {job: k, account: a, profile: 3g.40gb}]\n"
         "  expect:\n"
         "  - {job: j, nodes: [n2, n1], devices: {n2: [1, 0], n1: 3}, mig_start: [4, 0], until: "
         "never}\n"
         "  - {job: j, reasons: [max, held], reasons_exact: [held, max]}\n"
         "  - {account: a, use: {gpu: 1.50, ram: 64, h100: 2}, lost_gpu_hours: 0}\n"
         "  - {running: [k, j], victims: [k, j], evictions: 3}\n");
    const char *want[] = {"n1, n2", "n1: 3, n2: 0 1", "0, 4", "never", "max",  "held", "max, held",
                          "1.5",    "64Gi",           "2",    "0",     "j, k", "k, j", "3"};

    assert_int_equal(s->expects.n, ST_ARRAY_LEN(want));
    for (size_t i = 0; i < ST_ARRAY_LEN(want); i++)
        assert_string_equal(s->expects.v[i].want, want[i]);
    assert_int_equal(s->jobs.v[1].spec.shape.level, ST_LEVEL_MIG);
    assert_int_equal(s->jobs.v[1].spec.shape.types, 1);
}

typedef struct refusal {
    const char *text, *message;
} refusal;

#define FLEET     "fleet: [{gpu: h100}]\n"
#define BASE      FLEET "accounts: [{name: team}]\n"
#define DO(x)     BASE "timeline:\n- do:\n  - " x "\n"
#define SUB(x)    DO("submit: {job: j, account: team, " x "}")
#define EXPECT(x) BASE "timeline:\n- do: [submit: {job: j, account: team}]\n  expect: [" x "]\n"

static const refusal refusals[] = {
    {"fleet: []\naccounts: []\ntimeline: [{}]\n", "s.yaml:1: the fleet has no nodes"},
    {FLEET "timeline: [{}]\n", "s.yaml:1: key \"accounts\" is missing"},
    {FLEET "acounts: []\n", "s.yaml:2: unknown key \"acounts\" (did you mean \"accounts\"?)"},
    {FLEET "policy: {notise: 1}\n", "s.yaml:1"},
    {BASE "policy: {notise: 1}\ntimeline: [{}]\n",
     "s.yaml:3: unknown key \"notise\" (did you mean \"notice\"?)"},
    {BASE "policy: {notice: 2d}\ntimeline: [{}]\n",
     "s.yaml:3: key \"notice\": \"2d\" is out of range"},
    {BASE "policy: {basis: all}\ntimeline: [{}]\n",
     "s.yaml:3: \"all\" is none of borrowed or total"},
    {"fleet: [{gpu: h10}]\naccounts: []\ntimeline: [{}]\n",
     "s.yaml:1: there is no GPU type \"h10\""},
    {"fleet: [{gpus: 4}]\naccounts: []\ntimeline: [{}]\n", "s.yaml:1: gpus needs a gpu"},
    {"fleet: [{gpu: h100, rack: \"r%d\"}]\naccounts: []\ntimeline: [{}]\n",
     "rack counts, so it needs a rack_size"},
    {"fleet: [{gpu: h100, rack_size: 2}]\naccounts: []\ntimeline: [{}]\n",
     "rack_size is given without a rack"},
    {"fleet: [{name: x, gpu: h100}, {name: x, gpu: h100}]\naccounts: []\ntimeline: [{}]\n",
     "there is a node \"x\" already"},
    {"fleet: [{gpu: h100, count: 262145}]\naccounts: []\ntimeline: [{}]\n", "out of range"},
    {FLEET "accounts: [{name: a}, {name: a}]\ntimeline: [{}]\n",
     "s.yaml:2: there is an account \"a\" already"},
    {FLEET "accounts: [{name: a, guarantee: {gpus: 4}}]\ntimeline: [{}]\n",
     "s.yaml:2: there is no GPU type \"gpus\""},
    {FLEET "accounts: [{name: a, children: [{name: b, parent: c}]}]\ntimeline: [{}]\n",
     "names another parent"},
    {BASE "timeline: [{at: 2m}, {at: 1m}]\n", "s.yaml:3: the timeline goes back, from 2m to 1m"},
    {BASE "timeline: [{at: 2m, after: 1m}]\n", "either at or after"},
    {DO("sumbit: {}"), "s.yaml:5: unknown key \"sumbit\" (did you mean \"submit\"?)"},
    {DO("{finish: j, fail: j}"), "one item does one thing"},
    {DO("finish: j"), "s.yaml:5: there is no job \"j\""},
    {DO("node: {break: n1}"), "unknown key \"break\""},
    {DO("node: {fail: n2}"), "there is no node \"n2\" (did you mean \"n1\"?)"},
    {DO("refuse: {code: quota}"), "nothing is done here"},
    {DO("refuse: {cancel: x, code: qouta}"), "\"qouta\" is none of"},
    {DO("account: {name: x, children: []}"), "children"},
    {DO("submit: {account: team}"), "key \"job\" is missing"},
    {DO("submit: {job: j, account: teem}"),
     "there is no account \"teem\" (did you mean \"team\"?)"},
    {SUB("gpu: 4"), "s.yaml:5: unknown key \"gpu\" (did you mean \"gpus\"?)"},
    {SUB("share: 0.5"), "a share needs a level"},
    {SUB("level: mps"), "level mps needs a share, for example 0.25"},
    {SUB("level: mig"), "level mig needs a profile, for example 1g"},
    {SUB("level: mig, profile: 5g"), "\"5g\" is no MIG profile"},
    {SUB("profile: 3g, gpus: 2"), "each mig task gets one slice; for 2 of them use tasks: 2"},
    {SUB("level: hole"), "\"hole\" is none of whole, mig, mps or time (did you mean \"whole\"?)"},
    {SUB("topology: {require: rack, prefer: rack}"), "topology is either"},
    {SUB("priority: urgent"), "\"urgent\" is none of low, normal or high"},
    {SUB("type: []"), "the list of types is empty"},
    {SUB("every: 5m"), "every needs a count"},
    {SUB("tasks: 0"), "out of range"},
    {EXPECT("{job: j}"), "nothing is expected here"},
    {EXPECT("{job: j, stat: running}"), "unknown key \"stat\" (did you mean \"state\"?)"},
    {EXPECT("{job: j, state: runing}"), "\"runing\" is none of"},
    {EXPECT("{job: k, state: running}"), "there is no job \"k\""},
    {EXPECT("{job: j, reasons: [busy]}"), "\"busy\" is none of"},
    {EXPECT("{job: j, reason: {used: 1}}"), "key \"code\" is missing"},
    {EXPECT("{job: j, reason: {code: max, dim: vram}}"), "\"vram\" is none of gpu, cpu or ram"},
    {EXPECT("{node: n9, state: ready}"), "there is no node \"n9\""},
    {EXPECT("{account: x, borrowed: 1}"), "there is no account \"x\""},
    {EXPECT("{runing: []}"), "unknown key \"runing\" (did you mean \"running\"?)"},
    {EXPECT("{job: j, devices: [16]}"), "out of range"},
    {"types: {h100: {mig: h100}}\n" BASE "timeline: [{}]\n", "s.yaml:1: key \"vram\" is missing"},
    {"types: {x: {vram: 8, mig: h100}}\n" BASE "timeline: [{}]\n",
     "\"h100\" is none of none, a100-40"},
    {"pools: {p: {levels: [hole]}}\n" BASE "timeline: [{}]\n", "\"hole\" is none of"},
    {"pools: {p: {oversubscribe: 5}}\n" BASE "timeline: [{}]\n", "out of range"},
    {"just text\n", "s.yaml:1: expected a map, found a single value"},
    {BASE "timeline:\n- do: [submit: {job: j, account: team}, submit: {job: j, account: team}]\n",
     "there is a job \"j\" already"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(refusals); i++) {
        ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
        ST_CLEANUP(st_scenario_freep) st_scenario *s = NULL;
        st_err err = {0};

        if (read_text(refusals[i].text, &doc, &s, &err) == 0)
            fail_msg("accepted: %s", refusals[i].text);
        if (!strstr(err.msg, refusals[i].message))
            fail_msg("%s\nsays \"%s\",\nnot \"%s\"", refusals[i].text, err.msg,
                     refusals[i].message);
        assert_null(s);
    }
}

/* Inside a refusal things need not exist. */
static void test_refuse(void **state)
{
    READ("fleet: [{gpu: h100}]\naccounts: [{name: a}]\n"
         "timeline:\n"
         "- do:\n"
         "  - refuse: {submit: {account: nobody, gpus: 99}, code: quota, match: \"99\"}\n"
         "  - refuse: {cancel: [x, y]}\n"
         "  - refuse: {node: {drain: z}, code: not_found}\n");
    assert_int_equal(s->actions.n, 4);
    assert_true(s->actions.v[0].refuse);
    assert_int_equal(s->actions.v[0].code, ST_EQUOTA);
    assert_string_equal(s->actions.v[0].match, "99");
    assert_int_equal(s->actions.v[1].job, -1);
    assert_int_equal(s->actions.v[1].code, 0);
    assert_int_equal(s->actions.v[3].node, -1);
    assert_int_equal(s->actions.v[3].code, ST_ENOENT);
    assert_true(s->asserts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_policy),
        cmocka_unit_test(test_rows),     cmocka_unit_test(test_accounts),
        cmocka_unit_test(test_streams),  cmocka_unit_test(test_wants),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_refuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
