/*
 * Tests of nodes: which level is asked for, what GPU types must reach, and what was found.
 *
 * kept as documents:
 *   node-level NAME   {"level": "short"}: what the next test of the node is to be; no row: quick
 *   node-tests NAME   [{"at", "test", "level", "passed", "results": […]}, …]: what was found, the newest last
 *   test-limits TYPE  {"pcie-in": 45000, …}: what a site has changed of the limits of a GPU type
 *
 * 1 A level that was asked for stays until a test of at least that level was passed. Neither an agent that is started again
 *   nor a program that broke ends it, and what a long test has found is not forgiven for a quick one.
 * 2 A test above quick needs GPUs without jobs: a node that serves is in `testing` for it, and its agent waits for its last job.
 * 3 What a node says of its test is read field by field. What no test says is not kept.
 */
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"
#include "health/health.h"

#define KEPT     10 /* tests of a node: so many quick ones, and so many others */
#define ROWS_MAX (ST_DIAG_COUNT * (ST_DEVS_MAX + 1))
#define TEXT_MAX 200

/* ---- levels --------------------------------------------------------------------------------- */

static st_test_level level_of(st_store *store, const char *node)
{
    st_err err;
    int r;
    json_t *row = st_document_json(store, "node-level", node, &r, &err);
    int level = st_test_level_parse(json_string_value(json_object_get(row, "level")));

    json_decref(row);
    return level > 0 ? (st_test_level)level : ST_TEST_QUICK;
}

/* GPUs that are out and wait for no test: what is wrong with one of them says nothing of the others. */
static json_t *without(const st_node *node)
{
    json_t *list = json_array();

    for (int d = 0; d < node->ndevs; d++) {
        st_node_state state = st_gpu_state(node, d);

        if ((node->out >> d & 1) && state != ST_NODE_TESTING && state != ST_NODE_SUSPECT)
            json_array_append_new(list, json_integer(d));
    }
    return list;
}

char *st_trial_orders(st_control *ctl, const st_node *node)
{
    st_test_level level = level_of(ctl->store, node->name);
    const char *type = node->type >= 0 ? st_core_fleet(ctl->core)->types.v[node->type].name : NULL;
    st_err err;
    int r = 0;
    json_t *limits = type ? st_document_json(ctl->store, "test-limits", type, &r, &err) : NULL;
    json_t *orders =
        json_pack("{s:s,s:s}", "level", st_test_level_name(level), "type", type ? type : "");

    if (limits)
        json_object_set(orders, "limits", limits);
    if (node->out)
        json_object_set_new(orders, "without", without(node));
    char *text = json_dumps(orders, JSON_COMPACT);
    json_decref(limits);
    json_decref(orders);
    return text;
}

/* What its agent says that it can make; quick, if it says no more. */
static st_test_level most_of(st_tx *tx, const char *node, int *ret_r, st_err *err)
{
    json_t *row = st_document_json(tx->ctl->store, "node", node, ret_r, err);
    const json_t *labels = json_object_get(json_object_get(row, "agent"), "labels");
    int level = st_test_level_parse(json_string_value(json_object_get(labels, "tests")));

    json_decref(row);
    return level > 0 ? (st_test_level)level : ST_TEST_QUICK;
}

static int set_level(st_tx *tx, const st_cmd_trial *c, const st_node *node, st_err *err)
{
    int r = 0;
    st_test_level most = most_of(tx, node->name, &r, err);

    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (node->failed_test && c->level < level_of(tx->ctl->store, node->name))
        return 0;
    if (c->level == ST_TEST_QUICK)
        return st_document_erase(tx, "node-level", node->name, err);
    if (c->level > most)
        return st_fail(err, ST_ESTATE, "the agent of node %s makes %s tests at most: update it",
                       node->name, st_test_level_name(most));
    return st_document_write(tx, "node-level", node->name,
                             json_pack("{s:s}", "level", st_test_level_name(c->level)), err);
}

static int run_trial(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_trial *c = (st_cmd_trial *)cmd;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_event event = {.kind = ST_EV_TEST};
    const st_node *node;
    char q[ST_QUOTE_MAX];
    int r = st_tx_open(tx, err);

    event.u.tested.node = st_fleet_node(fleet, c->node);
    if (r == 0 && event.u.tested.node < 0)
        r = st_fail(err, ST_ENOENT, "there is no node %s", st_quote(q, c->node));
    if (r < 0)
        return r;
    node = fleet->nodes.v[event.u.tested.node];
    r = node->tests ? set_level(tx, c, node, err) : 0;
    /* It takes no new jobs until it has passed, and those that are there go on. */
    if (c->level > ST_TEST_QUICK &&
        (node->state == ST_NODE_READY || node->state == ST_NODE_SUSPECT)) {
        int32_t id = event.u.tested.node;

        event = (st_event){.kind = ST_EV_NODE_STATE};
        event.u.node_state.node = id;
        event.u.node_state.state = ST_NODE_TESTING;
        event.u.node_state.force = c->force;
        event.u.node_state.by = c->who.user;
        event.u.node_state.reason = "a test was asked for";
    }
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    return r == 0 ? st_tx_audit(tx, &c->who, "node.test", "", c->node, st_test_level_name(c->level),
                                err)
                  : r;
}

void st_cmd_trial_init(st_cmd_trial *cmd)
{
    cmd->cmd.run = run_trial;
}

/* ---- limits --------------------------------------------------------------------------------- */

/* Each limit by its word; null: as it was. */
static int change_limits(json_t *doc, const json_t *set, st_err *err)
{
    st_diag_limits bounds = {0};
    const char *word;
    const json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)set, word, value)
    {
        if (r == 0 && !json_is_integer(value) && !json_is_null(value))
            r = st_fail(err, ST_EINVAL, "%.40s: a limit is a whole number, or null", word);
        if (r == 0)
            r = st_limit_set(&bounds, word, json_integer_value(value), err);
        if (r == 0 && json_is_null(value))
            json_object_del(doc, word);
        else if (r == 0)
            json_object_set(doc, word, (json_t *)(uintptr_t)value);
    }
    return r;
}

static int run_limits(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_limits *c = (st_cmd_limits *)cmd;
    ST_CLEANUP(st_freep) char *detail = json_dumps(c->set, JSON_COMPACT);
    char q[ST_QUOTE_MAX];
    int r = st_tx_open(tx, err);
    json_t *doc;

    if (r < 0)
        return r;
    if (st_fleet_type(st_core_fleet(tx->ctl->core), c->type) < 0)
        return st_fail(err, ST_ENOENT, "there is no GPU type %s", st_quote(q, c->type));
    doc = st_document_json(tx->ctl->store, "test-limits", c->type, &r, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    doc = doc ? doc : json_object();
    r = change_limits(doc, c->set, err);
    if (r < 0) {
        json_decref(doc);
        return r;
    }
    r = st_document_write(tx, "test-limits", c->type, doc, err);
    return r == 0 ? st_tx_audit(tx, &c->who, "limits.set", "", c->type, detail, err) : r;
}

/* Agents have them with the next test. */
void st_cmd_limits_init(st_cmd_limits *cmd)
{
    cmd->cmd.run = run_limits;
}

/* ---- what was found ------------------------------------------------------------------------- */

static bool whole_number(const json_t *row, const char *key, json_t *into)
{
    const json_t *v = json_object_get(row, key);

    if (!json_is_integer(v))
        return false;
    json_object_set(into, key, (json_t *)(uintptr_t)v);
    return true;
}

static json_t *result_of(const json_t *row)
{
    const char *check = json_string_value(json_object_get(row, "check"));
    const char *verdict = json_string_value(json_object_get(row, "verdict"));
    const json_t *gpu = json_object_get(row, "gpu");
    int64_t at = json_integer_value(gpu);
    int diag = st_diag_parse(check), v = ST_VERDICT_SKIP;
    json_t *ret;

    while (verdict && v <= ST_VERDICT_FAIL &&
           strcmp(st_diag_verdict_name((st_diag_verdict)v), verdict) != 0)
        v++;
    if (diag < 0 || !verdict || v > ST_VERDICT_FAIL ||
        (gpu && (!json_is_integer(gpu) || at < 0 || at >= ST_DEVS_MAX)))
        return NULL;
    ret = json_pack("{s:s,s:s}", "check", st_diag_name((st_diag)diag), "verdict", verdict);
    whole_number(row, "gpu", ret);
    if (v != ST_VERDICT_SKIP && whole_number(row, "value", ret) &&
        whole_number(row, "limit", ret) && st_diag_unit((st_diag)diag)[0])
        json_object_set_new(ret, "unit", json_string(st_diag_unit((st_diag)diag)));
    return ret;
}

static void put_text(json_t *entry, const char *key, const json_t *said)
{
    char text[TEXT_MAX];

    if (!json_string_value(said))
        return;
    st_said_text(json_string_value(said), text, sizeof text);
    if (text[0])
        json_object_set_new(entry, key, json_string(text));
}

json_t *st_trial_entry(const json_t *said)
{
    static const char *const numbers[] = {"version", "ms"};
    int level = st_test_level_parse(json_string_value(json_object_get(said, "level")));
    const json_t *rows = json_object_get(said, "results");
    json_t *entry = json_object(), *kept = json_array();

    json_object_set_new(entry, "level",
                        json_string(st_test_level_name((st_test_level)ST_MAX(level, 0))));
    for (size_t i = 0; i < ST_ARRAY_LEN(numbers); i++)
        if (json_integer_value(json_object_get(said, numbers[i])) >= 0)
            whole_number(said, numbers[i], entry);
    put_text(entry, "reason", json_object_get(said, "reason"));
    put_text(entry, "with", json_object_get(said, "with"));
    for (size_t i = 0; i < json_array_size(rows) && json_array_size(kept) < ROWS_MAX; i++) {
        json_t *row = result_of(json_array_get(rows, i));

        if (row)
            json_array_append_new(kept, row);
    }
    json_object_set_new(entry, "results", kept);
    return entry;
}

/* So that quick tests, of which there are many, do not push out the others. */
static bool quick(const json_t *entry)
{
    const char *level = json_string_value(json_object_get(entry, "level"));

    return st_test_level_parse(level) <= ST_TEST_QUICK;
}

static void forget_oldest(json_t *list, bool of_quick)
{
    size_t n = 0;

    for (size_t i = json_array_size(list); i-- > 0;)
        if (quick(json_array_get(list, i)) == of_quick && ++n > KEPT)
            json_array_remove(list, i);
}

static int keep(st_tx *tx, const char *node, json_t *entry, st_err *err)
{
    int r;
    json_t *list = st_document_json(tx->ctl->store, "node-tests", node, &r, err);

    if (r < 0) {
        json_decref(entry);
        return st_tx_fault(tx, r, err);
    }
    list = json_is_array(list) ? list : json_array();
    forget_oldest(list, quick(entry)); /* one that lied of its length, or was of before */
    json_array_append_new(list, entry);
    forget_oldest(list, quick(entry));
    return st_document_write(tx, "node-tests", node, list, err);
}

/* A quick test is no answer to somebody who asked for a long one: that says nothing of the node. */
static void compare(st_test_level asked, st_test_level made, st_event *event, char text[TEXT_MAX])
{
    if (made >= asked)
        return;
    snprintf(text, TEXT_MAX, "its agent made a %s test, and a %s one was asked for",
             st_test_level_name(made), st_test_level_name(asked));
    event->u.tested.passed = false;
    event->u.tested.reason = text;
    event->u.tested.finding = (st_finding){.kind = ST_FAULT_CHECKER, .gpu = -1};
}

int st_node_tested(st_tx *tx, const st_report *rep, const char *doc, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[rep->node];
    st_event event = {.kind = ST_EV_TESTED};
    char text[TEXT_MAX];
    json_t *said, *entry;
    int r;

    if (node->test != rep->test || node->tested == rep->test)
        return 0; /* it was told before */
    r = st_tx_open(tx, err);
    if (r < 0)
        return r;
    said = doc ? json_loads(doc, 0, NULL) : NULL;
    entry = st_trial_entry(said);
    json_decref(said);
    event.u.tested.node = rep->node;
    event.u.tested.test = rep->test;
    event.u.tested.passed = rep->done;
    event.u.tested.reason = rep->reason;
    event.u.tested.finding = rep->finding;
    event.u.tested.without = rep->without;
    st_test_level asked = level_of(tx->ctl->store, node->name);
    int made = st_test_level_parse(json_string_value(json_object_get(entry, "level")));
    compare(asked, (st_test_level)made, &event, text);
    bool broke =
        !event.u.tested.passed && st_fault_weighs(event.u.tested.finding.kind) == ST_FAULT_NOTED;
    if (event.u.tested.passed && asked > ST_TEST_QUICK)
        r = st_document_erase(tx, "node-level", node->name, err);
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0) {
        json_decref(entry);
        return r;
    }
    bool passed = event.u.tested.passed;
    st_control_say(tx->ctl, "event=node_tested node=%s test=%lld level=%s passed=%s reason=\"%s\"",
                   node->name, (long long)rep->test, st_test_level_name((st_test_level)made),
                   passed ? "true" : "false", event.u.tested.reason);
    json_object_set_new(entry, "at", json_integer(tx->now));
    json_object_set_new(entry, "test", json_integer(rep->test));
    json_object_set_new(entry, "passed", json_boolean(passed));
    if (broke)
        json_object_set_new(entry, "broken", json_true());
    if (!passed)
        json_object_set_new(entry, "reason", json_string(event.u.tested.reason));
    return keep(tx, node->name, entry, err);
}
