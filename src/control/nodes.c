/*
 * What is kept of nodes beside the core: who they are, what is wrong with what they say, and their past. Their state, and
 * who decided it, is the core's alone (core/nodes.c).
 *
 * kept as documents of the store, beside the core's node of the same name:
 *   node NAME          {"machine", "key", "agent"}: who it is, what it said of itself (control/register.c)
 *   node-history NAME  [{"at", "state", "by", "reason"}, …]: what became of it, the newest last
 *   version "node NAME"  when it was last edited, or its state changed (state/versions.c)
 *   node-labels NAME  what owners have added to its labels (control/labels.c)
 *   node-flags NAME    {"two-voices": {"reason", "since", "last", "times", "boot"}, …}: see model/said.h
 * A node without a row of its own was announced by a person and has no agent. Stores of before have node-fault and
 * node-word as well, which the core is told at the next start.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

static st_node_state state_named(const char *word)
{
    for (int s = 0; word && s < ST_NODE_STATE_COUNT; s++)
        if (strcmp(st_node_state_name((st_node_state)s), word) == 0)
            return (st_node_state)s;
    return ST_NODE_READY;
}

/* ---- telling the engine ----------------------------------------------------------------------- */

void st_control_tell_node(st_control *ctl, int32_t id)
{
    st_engine *engine = ctl->options.engine;
    const st_node *node = st_core_fleet(ctl->core)->nodes.v[id];
    st_err err;
    int r;

    if (!engine || !engine->ops->node)
        return;
    json_t *row = st_document_json(ctl->store, "node", node->name, &r, &err);
    json_t *flags =
        r == 0 ? st_document_json(ctl->store, "node-flags", node->name, &r, &err) : NULL;
    const json_t *two = json_object_get(flags, st_flag_name(ST_FLAG_VOICES));
    char *doc = row ? json_dumps(json_object_get(row, "agent"), JSON_COMPACT) : NULL;
    char *trial = st_trial_orders(ctl, node);
    const st_engine_node said = {.node = node,
                                 .pool = &st_core_fleet(ctl->core)->pools.v[node->pool],
                                 .doc = doc,
                                 .trial = trial,
                                 .fault = node->fault.by ? node->fault.reason : NULL,
                                 .key = json_string_value(json_object_get(row, "key")),
                                 .frozen = json_string_value(json_object_get(two, "boot"))};

    if (r < 0)
        st_control_say(ctl, "event=node_unread node=%s reason=\"%s\"", node->name, err.msg);
    engine->ops->node(engine, &said);
    free(doc);
    free(trial);
    json_decref(row);
    json_decref(flags);
}

void st_control_tell_nodes(st_control *ctl)
{
    for (size_t i = 0; i < st_core_fleet(ctl->core)->nodes.n; i++)
        if (st_core_fleet(ctl->core)->nodes.v[i]->state != ST_NODE_REMOVED)
            st_control_tell_node(ctl, (int32_t)i);
}

/* What runs there is gone when its agent says so from now on; the core needs to hear that once. */
int st_node_has_agent(st_tx *tx, int32_t id, bool tests, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    st_event event = {.kind = ST_EV_AGENT};

    if (node->agent && node->tests == tests)
        return 0;
    event.u.node_state.node = id;
    event.u.node_state.tests = tests;
    return st_tx_apply(tx, &event, err);
}

typedef ST_VEC(char *) name_list;

static int list_name(void *ctx, const st_document_row *row, st_err *err)
{
    name_list *list = ctx;

    (void)err;
    st_vec_push(list, st_xstrdup(row->name));
    return 0;
}

/* One note of the time before the core had them. */
static int recall_one(st_tx *tx, const char *kind, const char *name, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_event event = {.kind = ST_EV_NODE_STATE};
    int r;
    json_t *doc = st_document_json(tx->ctl->store, kind, name, &r, err);
    const char *by = json_string_value(json_object_get(doc, "by"));

    event.u.node_state.node = st_fleet_node(fleet, name);
    event.u.node_state.how = ST_HOW_RECALLED;
    event.u.node_state.force = strcmp(kind, "node-fault") == 0;
    event.u.node_state.state = state_named(json_string_value(json_object_get(doc, "was")));
    event.u.node_state.by = by ? by : "stintd";
    event.u.node_state.reason = json_string_value(json_object_get(doc, "reason"));
    event.u.node_state.since_ms = json_integer_value(json_object_get(doc, "since"));
    if (r == 0 && doc && event.u.node_state.node >= 0)
        r = st_tx_apply(tx, &event, err);
    json_decref(doc);
    return r == 0 ? st_document_erase(tx, kind, name, err) : r;
}

static int recall(st_tx *tx, const char *kind, st_err *err)
{
    name_list names = {0};
    int r = st_store_documents(tx->ctl->store, kind, list_name, &names, err);

    for (size_t i = 0; i < names.n; i++) {
        r = r == 0 ? recall_one(tx, kind, names.v[i], err) : r;
        free(names.v[i]);
    }
    st_vec_free(&names);
    return r;
}

/* Nodes of a store from before the core was told, and what was noted of them. */
static int run_agents(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int r = 0;

    (void)cmd;
    for (size_t i = 0; r == 0 && i < fleet->nodes.n; i++) {
        if (fleet->nodes.v[i]->agent || fleet->nodes.v[i]->state == ST_NODE_REMOVED)
            continue;
        json_t *row = st_document_json(tx->ctl->store, "node", fleet->nodes.v[i]->name, &r, err);

        if (row)
            r = st_node_has_agent(tx, (int32_t)i, false, err);
        json_decref(row);
    }
    if (r == 0)
        r = st_bookings_index(tx, err);
    if (r == 0)
        r = recall(tx, "node-word", err);
    for (size_t i = 0; r == 0 && i < fleet->nodes.n; i++)
        if (fleet->nodes.v[i]->state != ST_NODE_REMOVED)
            r = st_node_know_labels(tx, (int32_t)i, err);
    return r == 0 ? recall(tx, "node-fault", err) : r;
}

static void agents_done(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

void st_control_know_agents(st_control *ctl)
{
    st_cmd *cmd;

    cmd = st_xcalloc(1, sizeof *cmd);
    cmd->lane = ST_LANE_AGENTS;
    cmd->run = run_agents;
    cmd->done = agents_done;
    if (!st_control_post(ctl, cmd))
        free(cmd);
}

/* ---- faults ------------------------------------------------------------------------------------ */

/* What it was flagged with is over when it is ready again by somebody's word. */
int st_node_unflag(st_tx *tx, int32_t id, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);

    if (id < 0 || (size_t)id >= fleet->nodes.n)
        return 0; /* the core will say so */
    return st_document_erase(tx, "node-flags", fleet->nodes.v[id]->name, err);
}

/* `part` as in the event. */
static int decide(st_tx *tx, int32_t id, int part, st_node_how how, st_node_state state,
                  const char *reason, const st_finding *finding, st_err *err)
{
    st_event event = {.kind = ST_EV_NODE_STATE};

    event.u.node_state.part = part;
    event.u.node_state.node = id;
    event.u.node_state.how = how;
    event.u.node_state.state = state;
    event.u.node_state.by = "stintd";
    event.u.node_state.reason = reason;
    event.u.node_state.finding = *finding;
    return st_tx_apply(tx, &event, err);
}

/* What is decided is the core's; what came of it is said once. */
static int told(st_tx *tx, int32_t id, st_node_how how, st_node_state state, const char *reason,
                const st_finding *finding, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    st_node_state was = node->state;
    int r = decide(tx, id, 0, how, state, reason, finding, err);

    if (r == 0 && node->state != was && how == ST_HOW_HEALED)
        st_control_say(tx->ctl, "event=node_back node=%s", node->name);
    else if (r == 0 && node->state != was)
        st_control_say(tx->ctl, "event=node_%s node=%s reason=\"%s\"",
                       node->state == ST_NODE_FAILED    ? "failed"
                       : node->state == ST_NODE_SUSPECT ? "suspect"
                                                        : "held",
                       node->name, reason);
    return r;
}

static int told_gpu(st_tx *tx, const st_report *rep, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[rep->node];
    int gpu = rep->part - 1;
    st_node_state was = st_gpu_state(node, gpu);
    st_node_how how = rep->node_state == ST_NODE_READY ? ST_HOW_HEALED : ST_HOW_FAULT;
    int r = decide(tx, rep->node, rep->part, how, rep->node_state, rep->reason, &rep->finding, err);

    if (r == 0 && st_gpu_state(node, gpu) != was)
        st_control_say(tx->ctl, "event=gpu_%s node=%s gpu=%d reason=\"%s\"",
                       how == ST_HOW_HEALED ? "back" : st_node_state_name(st_gpu_state(node, gpu)),
                       node->name, gpu, rep->reason);
    return r;
}

int st_node_fail(st_tx *tx, int32_t id, const char *reason, st_err *err)
{
    static const st_finding none = {.gpu = -1};

    return told(tx, id, ST_HOW_FAULT, ST_NODE_FAILED, reason, &none, err);
}

int st_node_report(st_tx *tx, const st_report *rep, st_err *err)
{
    bool well = rep->node_state == ST_NODE_READY;
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[rep->node];

    if (rep->part > node->ndevs)
        return 0;
    /* Said again every few seconds, as long as the node is held. */
    if (!well && st_core_holds(tx->ctl->core, rep->node, rep->finding.kind))
        return 0;
    if (rep->part > 0)
        return told_gpu(tx, rep, err);
    return told(tx, rep->node, well ? ST_HOW_HEALED : ST_HOW_FAULT, rep->node_state, rep->reason,
                &rep->finding, err);
}

/* ---- its past ----------------------------------------------------------------------------------- */

#define HISTORY_MAX 100

/* At the end of a list of which the last ones are kept. */
static int append(st_tx *tx, const char *kind, const char *name, json_t *entry, size_t most,
                  st_err *err)
{
    int r;
    json_t *list = st_document_json(tx->ctl->store, kind, name, &r, err);

    if (r < 0) {
        json_decref(entry);
        return st_tx_fault(tx, r, err);
    }
    list = json_is_array(list) ? list : json_array();
    json_array_append_new(list, entry);
    while (json_array_size(list) > most)
        json_array_remove(list, 0);
    return st_document_write(tx, kind, name, list, err);
}

int st_node_follow(st_tx *tx, const st_effect *fx, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[fx->node];
    bool gpu = fx->kind == ST_FX_GPU;
    st_node_state is = gpu ? st_gpu_state(node, (int)fx->other) : node->state;
    const st_node_note *note = fx->node_state != (int64_t)is ? NULL
                               : !gpu                        ? st_node_note_of(node)
                               : node->out >> fx->other & 1  ? &node->gpus[fx->other].note
                                                             : NULL;
    json_t *entry;

    if (fx->node_state == ST_NODE_REMOVED)
        return 0;
    entry = json_pack("{s:I,s:s}", "at", (json_int_t)fx->at_ms, "state",
                      st_node_state_name((st_node_state)fx->node_state));
    if (gpu)
        json_object_set_new(entry, "gpu", json_integer((json_int_t)fx->other));
    if (note && note->by && fx->node_state != ST_NODE_READY) {
        json_object_set_new(entry, "by", json_string(note->by));
        json_object_set_new(entry, "reason", json_string(note->reason));
    }
    return append(tx, "node-history", node->name, entry, HISTORY_MAX, err);
}

/* ---- flags ------------------------------------------------------------------------------------- */

/* Two voices: who is there stays, nobody new is placed there. */
static int freeze(st_tx *tx, int32_t id, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];

    return node->state == ST_NODE_READY
               ? decide(tx, id, 0, ST_HOW_SAID, ST_NODE_DRAINING, "two agents speak for it",
                        &(st_finding){.gpu = -1}, err)
               : 0;
}

int st_node_flag(st_tx *tx, const st_report *rep, bool *ret_new, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[rep->node];
    const char *word = st_flag_name(rep->flag);
    int r = st_tx_open(tx, err);
    json_t *flags =
        r == 0 ? st_document_json(tx->ctl->store, "node-flags", node->name, &r, err) : NULL;
    json_t *flag;

    if (r < 0)
        return st_tx_fault(tx, r, err);
    flags = flags ? flags : json_object();
    flag = json_object_get(flags, word);
    *ret_new = !flag;
    if (!flag) {
        flag =
            json_pack("{s:s,s:I,s:I,s:i,s:s}", "reason", rep->reason, "since", (json_int_t)tx->now,
                      "last", (json_int_t)tx->now, "times", 0, "boot", rep->boot);
        json_object_set_new(flags, word, flag);
    }
    json_object_set_new(flag, "last", json_integer(tx->now));
    json_object_set_new(flag, "times",
                        json_integer(json_integer_value(json_object_get(flag, "times")) + 1));
    r = st_document_write(tx, "node-flags", node->name, flags, err);
    if (r == 0 && rep->flag == ST_FLAG_VOICES)
        r = freeze(tx, rep->node, err);
    if (r == 0 && *ret_new)
        st_control_say(tx->ctl, "event=incident node=%s flag=%s reason=\"%s\"", node->name, word,
                       rep->reason);
    return r;
}

void st_node_flags(st_store *store, const char *node, st_flag_fn fn, void *ctx)
{
    st_err err;
    int r;
    json_t *flags = st_document_json(store, "node-flags", node, &r, &err);

    for (int f = 0; f < ST_FLAG_COUNT; f++) {
        const json_t *flag = json_object_get(flags, st_flag_name((st_flag)f));

        if (flag)
            fn(ctx, (st_flag)f, json_string_value(json_object_get(flag, "reason")),
               json_integer_value(json_object_get(flag, "since")),
               json_integer_value(json_object_get(flag, "last")));
    }
    json_decref(flags);
}

/* A prefix of its key, for people to compare; "" without one. */
void st_node_key(st_store *store, const char *node, char ret[ST_KEY_TEXT], bool *ret_rejoin)
{
    st_err err;
    int r;
    json_t *row = st_document_json(store, "node", node, &r, &err);
    const char *key = json_string_value(json_object_get(row, "key"));

    snprintf(ret, ST_KEY_TEXT, "%s", key ? key : "");
    *ret_rejoin = json_is_true(json_object_get(row, "rejoin"));
    json_decref(row);
}
