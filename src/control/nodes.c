/*
 * What is kept of nodes beside the core: why an engine took one out, and what is wrong with what it says.
 *
 * kept as documents of the store, beside the core's node of the same name:
 *   node NAME          {"machine", "key", "agent"}: who it is, what it said of itself (control/register.c)
 *   node-fault NAME    {"reason", "was"}: an engine declared it failed; its state before
 *   node-word NAME     {"by", "reason", "since"}: who took it out, a person or stintd, why and when
 *   version "node NAME"  when it was last edited, or its state changed (state/versions.c)
 *   node-flags NAME    {"two-voices": {"reason", "since", "last", "times", "boot"}, …}: see model/said.h
 * A node without a row of its own was announced by a person and has no agent.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

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
    json_t *fault =
        r == 0 ? st_document_json(ctl->store, "node-fault", node->name, &r, &err) : NULL;
    json_t *flags =
        r == 0 ? st_document_json(ctl->store, "node-flags", node->name, &r, &err) : NULL;
    const json_t *two = json_object_get(flags, st_flag_name(ST_FLAG_VOICES));
    char *doc = row ? json_dumps(json_object_get(row, "agent"), JSON_COMPACT) : NULL;
    const st_engine_node said = {.node = node,
                                 .pool = &st_core_fleet(ctl->core)->pools.v[node->pool],
                                 .doc = doc,
                                 .fault = json_string_value(json_object_get(fault, "reason")),
                                 .key = json_string_value(json_object_get(row, "key")),
                                 .frozen = json_string_value(json_object_get(two, "boot"))};

    if (r < 0)
        st_control_say(ctl, "event=node_unread node=%s reason=\"%s\"", node->name, err.msg);
    engine->ops->node(engine, &said);
    free(doc);
    json_decref(row);
    json_decref(fault);
    json_decref(flags);
}

void st_control_tell_nodes(st_control *ctl)
{
    for (size_t i = 0; i < st_core_fleet(ctl->core)->nodes.n; i++)
        if (st_core_fleet(ctl->core)->nodes.v[i]->state != ST_NODE_REMOVED)
            st_control_tell_node(ctl, (int32_t)i);
}

/* What runs there is gone when its agent says so from now on; the core needs to hear that once. */
int st_node_has_agent(st_tx *tx, int32_t id, st_err *err)
{
    st_event event = {.kind = ST_EV_AGENT};

    if (st_core_fleet(tx->ctl->core)->nodes.v[id]->agent)
        return 0;
    event.u.node_state.node = id;
    return st_tx_apply(tx, &event, err);
}

/* Nodes of a store from before the core was told. */
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
            r = st_node_has_agent(tx, (int32_t)i, err);
        json_decref(row);
    }
    return r;
}

static void agents_done(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

void st_control_know_agents(st_control *ctl)
{
    st_cmd *cmd;

    if (!ctl->options.engine || !ctl->options.engine->ops->node)
        return;
    cmd = st_xcalloc(1, sizeof *cmd);
    cmd->lane = ST_LANE_AGENTS;
    cmd->run = run_agents;
    cmd->done = agents_done;
    if (!st_control_post(ctl, cmd))
        free(cmd);
}

/* ---- faults ------------------------------------------------------------------------------------ */

/* What it was flagged with is over when it is ready again by somebody's word. */
int st_node_unfault(st_tx *tx, int32_t id, bool ready, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int r;

    if (id < 0 || (size_t)id >= fleet->nodes.n)
        return 0; /* the core will say so */
    r = st_document_erase(tx, "node-fault", fleet->nodes.v[id]->name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-word", fleet->nodes.v[id]->name, err);
    if (r == 0 && ready)
        r = st_document_erase(tx, "node-flags", fleet->nodes.v[id]->name, err);
    return r;
}

int st_node_say(st_tx *tx, int32_t id, const char *by, const char *reason, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_node_word word = {.node = id, .since_ms = tx->now};

    if (id < 0 || (size_t)id >= fleet->nodes.n)
        return 0; /* the core will say so */
    snprintf(word.by, sizeof word.by, "%s", by);
    snprintf(word.reason, sizeof word.reason, "%s", reason ? reason : "");
    st_vec_push(&tx->ctl->words, word);
    return st_document_write(tx, "node-word", fleet->nodes.v[id]->name,
                             json_pack("{s:s,s:s,s:I}", "by", word.by, "reason", word.reason,
                                       "since", (json_int_t)word.since_ms),
                             err);
}

bool st_node_word_of(st_store *store, const char *node, st_node_word *ret)
{
    st_err err;
    int r;
    json_t *word = st_document_json(store, "node-word", node, &r, &err);
    const char *by = json_string_value(json_object_get(word, "by"));
    const char *reason = json_string_value(json_object_get(word, "reason"));

    *ret = (st_node_word){.since_ms = json_integer_value(json_object_get(word, "since"))};
    snprintf(ret->by, sizeof ret->by, "%s", by ? by : "");
    snprintf(ret->reason, sizeof ret->reason, "%s", reason ? reason : "");
    json_decref(word);
    return by != NULL;
}

int st_node_set(st_tx *tx, int32_t id, st_node_state state, st_err *err)
{
    st_event event = {.kind = ST_EV_NODE_STATE};

    event.u.node_state.node = id;
    event.u.node_state.state = state;
    return st_tx_apply(tx, &event, err);
}

static int state_named(const char *word)
{
    for (int s = 0; word && s < ST_NODE_STATE_COUNT; s++)
        if (strcmp(st_node_state_name((st_node_state)s), word) == 0)
            return s;
    return ST_NODE_READY;
}

/* Failed, or held: it takes nothing new and what runs goes on. What it was before that is kept until it
 * is healed, however often it goes from one to the other. */
static int declare(st_tx *tx, int32_t id, st_node_state state, const char *reason, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    int r;
    json_t *fault = st_document_json(tx->ctl->store, "node-fault", node->name, &r, err);
    const char *before = json_string_value(json_object_get(fault, "was"));

    r = st_document_write(tx, "node-fault", node->name,
                          json_pack("{s:s,s:s}", "reason", reason, "was",
                                    before ? before : st_node_state_name(node->state)),
                          err);
    json_decref(fault);
    if (r == 0)
        r = st_node_say(tx, id, "stintd", reason, err);
    if (r == 0)
        r = st_node_set(tx, id, state, err);
    if (r == 0)
        st_control_say(tx->ctl, "event=node_%s node=%s reason=\"%s\"",
                       state == ST_NODE_FAILED ? "failed" : "held", node->name, reason);
    return r;
}

int st_node_fail(st_tx *tx, int32_t id, const char *reason, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];

    return node->state == ST_NODE_FAILED ? 0 : declare(tx, id, ST_NODE_FAILED, reason, err);
}

int st_node_report(st_tx *tx, const st_report *rep, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[rep->node];

    if (rep->node_state == ST_NODE_READY)
        return st_node_heal(tx, rep->node, err);
    if (rep->node_state == ST_NODE_FAILED)
        return st_node_fail(tx, rep->node, rep->reason, err);
    return node->state == ST_NODE_READY ? declare(tx, rep->node, ST_NODE_DRAINING, rep->reason, err)
                                        : 0;
}

/* Back to what it was: a node that was draining goes on draining. */
int st_node_heal(st_tx *tx, int32_t id, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    int r, was;

    if (node->state == ST_NODE_READY)
        return 0;
    json_t *fault = st_document_json(tx->ctl->store, "node-fault", node->name, &r, err);
    if (!fault)
        return r; /* a person took it out */
    was = state_named(json_string_value(json_object_get(fault, "was")));
    json_decref(fault);
    r = st_node_unfault(tx, id, false, err);
    if (r == 0)
        r = st_node_set(tx, id, (st_node_state)was, err);
    if (r == 0)
        st_control_say(tx->ctl, "event=node_back node=%s", node->name);
    return r;
}

void st_node_fault(st_store *store, const char *node, st_strbuf *out)
{
    st_err err;
    int r;
    json_t *fault = st_document_json(store, "node-fault", node, &r, &err);
    const char *reason = json_string_value(json_object_get(fault, "reason"));

    if (reason)
        st_strbuf_add(out, reason);
    json_decref(fault);
}

/* ---- flags ------------------------------------------------------------------------------------- */

/* Two voices: who is there stays, nobody new is placed there. */
static int freeze(st_tx *tx, int32_t id, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];

    return node->state == ST_NODE_READY ? st_node_set(tx, id, ST_NODE_DRAINING, err) : 0;
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
