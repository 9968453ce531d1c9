/*
 * Machines that join: join tokens, registrations, and why an engine took a node out.
 *
 * Kept as things of the store, beside the core's node of the same name:
 *   join NUMBER        {"pool", "uses"}: what a join token is good for
 *   node NAME          {"machine", "token", "agent"}: who it is, its token, what it said of itself
 *   node-fault NAME    {"reason", "was"}: an engine declared it failed; its state before
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

/* Writes a thing over whatever version there is. */
static int put(st_tx *tx, const char *kind, const char *name, json_t *doc, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_freep) char *text = json_dumps(doc, JSON_COMPACT);
    st_thing_row row = {0}, old = {0};
    int r = st_tx_open(tx, err);

    json_decref(doc);
    if (r < 0)
        return r;
    r = st_store_thing_get(tx->ctl->store, kind, name, arena, &old, err);
    if (r == 0 || r == -ST_ENOENT) {
        row = (st_thing_row){.kind = kind,
                             .name = name,
                             .version = r == 0 ? old.version : 0,
                             .at_ms = tx->now,
                             .doc = text};
        r = st_store_thing_put(tx->ctl->store, &row, err);
    }
    return st_tx_fault(tx, r, err);
}

/* The document of a thing; NULL when there is none, or (*ret_r) when it cannot be read. */
static json_t *get(st_store *store, const char *kind, const char *name, int *ret_r, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_thing_row row = {0};
    int r = st_store_thing_get(store, kind, name, arena, &row, err);

    *ret_r = r == -ST_ENOENT ? 0 : r;
    return r == 0 ? json_loads(row.doc, 0, NULL) : NULL;
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
    json_t *row = get(ctl->store, "node", node->name, &r, &err);
    json_t *fault = r == 0 ? get(ctl->store, "node-fault", node->name, &r, &err) : NULL;
    char *doc = row ? json_dumps(json_object_get(row, "agent"), JSON_COMPACT) : NULL;
    const char *reason = json_string_value(json_object_get(fault, "reason"));
    const st_engine_node said = {.node = node,
                                 .pool = &st_core_fleet(ctl->core)->pools.v[node->pool],
                                 .doc = doc,
                                 .fault = reason};

    if (r < 0)
        st_control_say(ctl, "event=node_unread node=%s reason=\"%s\"", node->name, err.msg);
    engine->ops->node(engine, &said);
    free(doc);
    json_decref(row);
    json_decref(fault);
}

void st_control_tell_nodes(st_control *ctl)
{
    for (size_t i = 0; i < st_core_fleet(ctl->core)->nodes.n; i++)
        st_control_tell_node(ctl, (int32_t)i);
}

/* ---- faults ------------------------------------------------------------------------------------ */

int st_node_unfault(st_tx *tx, int32_t id, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_thing_row row;
    int r;

    if (id < 0 || (size_t)id >= fleet->nodes.n)
        return 0; /* the core will say so */
    r = st_tx_open(tx, err);
    if (r == 0)
        r = st_store_thing_get(tx->ctl->store, "node-fault", fleet->nodes.v[id]->name, arena, &row,
                               err);
    if (r == 0)
        r = st_store_thing_delete(tx->ctl->store, row.kind, row.name, row.version, err);
    return r == -ST_ENOENT ? 0 : st_tx_fault(tx, r, err);
}

static int set_state(st_tx *tx, int32_t id, st_node_state state, st_err *err)
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

int st_node_fail(st_tx *tx, int32_t id, const char *reason, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    const char *was = st_node_state_name(node->state);
    int r;

    if (node->state == ST_NODE_FAILED)
        return 0;
    r = put(tx, "node-fault", node->name, json_pack("{s:s,s:s}", "reason", reason, "was", was),
            err);
    if (r == 0)
        r = set_state(tx, id, ST_NODE_FAILED, err);
    if (r == 0)
        st_control_say(tx->ctl, "event=node_failed node=%s reason=\"%s\"", node->name, reason);
    return r;
}

/* Back to what it was: a node that was draining goes on draining. */
int st_node_heal(st_tx *tx, int32_t id, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    int r, was;

    if (node->state != ST_NODE_FAILED)
        return 0;
    json_t *fault = get(tx->ctl->store, "node-fault", node->name, &r, err);
    if (!fault)
        return r; /* a person took it out */
    was = state_named(json_string_value(json_object_get(fault, "was")));
    json_decref(fault);
    r = st_node_unfault(tx, id, err);
    if (r == 0)
        r = set_state(tx, id, (st_node_state)was, err);
    if (r == 0)
        st_control_say(tx->ctl, "event=node_back node=%s", node->name);
    return r;
}

void st_control_fault(st_control *ctl, const char *node, st_strbuf *out)
{
    st_err err;
    int r;
    json_t *fault = get(ctl->store, "node-fault", node, &r, &err);
    const char *reason = json_string_value(json_object_get(fault, "reason"));

    if (reason)
        st_strbuf_add(out, reason);
    json_decref(fault);
}

/* ---- join tokens ------------------------------------------------------------------------------- */

static int run_join(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_join *c = (st_cmd_join *)cmd;
    char name[24], q[ST_QUOTE_MAX];
    int r;

    if (c->pool && st_fleet_pool(st_core_fleet(tx->ctl->core), c->pool) < 0)
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(q, c->pool));
    r = c->make(tx, cmd, err);
    if (r < 0)
        return r;
    snprintf(name, sizeof name, "%" PRId64, c->token.id);
    return put(tx, "join", name,
               json_pack("{s:s,s:I}", "pool", c->pool ? c->pool : "", "uses", (json_int_t)c->uses),
               err);
}

void st_cmd_join_init(st_cmd_join *cmd)
{
    cmd->token.role = ST_ROLE_JOIN;
    cmd->token.account = "";
    cmd->token.user = "join";
    st_cmd_token_make(&cmd->token);
    cmd->make = cmd->token.cmd.run;
    cmd->token.cmd.run = run_join;
}

/* ---- registrations ----------------------------------------------------------------------------- */

/* What the join token is good for: the pool, and one use less. */
static int use_join(st_tx *tx, st_cmd_register *c, int32_t *ret_pool, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    char name[24];
    int r;

    snprintf(name, sizeof name, "%" PRId64, c->who.token);
    json_t *doc = get(tx->ctl->store, "join", name, &r, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    json_int_t uses = json_integer_value(json_object_get(doc, "uses"));
    const char *pool = json_string_value(json_object_get(doc, "pool"));
    int at = pool && pool[0] ? st_fleet_pool(fleet, pool) : 0;

    if (uses <= 0) {
        r = st_fail(err, ST_EPERM, "this join token is used up; an owner can make another");
    } else if (at < 0 || fleet->pools.n == 0) {
        r = st_fail(err, ST_ENOENT, "there is no pool to join; an owner can make one");
    } else {
        json_object_set_new(doc, "uses", json_integer(uses - 1));
        r = put(tx, "join", name, json_incref(doc), err);
        *ret_pool = at;
    }
    json_decref(doc);
    return r;
}

/* What cannot change under a node that the core has; a sentence in c->refusal if it did. */
static void compare(const st_fleet *fleet, const st_node *node, st_cmd_register *c)
{
    const char *had = node->type >= 0 ? fleet->types.v[node->type].name : "no";
    const char *has = c->type ? c->type : "no";
    int64_t slack_mib = node->ram_mib / 50; /* kernels differ in what they keep for themselves */

    if (node->ndevs != c->node.ndevs || strcmp(had, has) != 0)
        snprintf(c->refusal, sizeof c->refusal,
                 "node %s joined with %d %s GPUs and has %d %s GPUs now; the devices of a node "
                 "cannot change yet: bring them back, or join it under another name",
                 node->name, node->ndevs, had, c->node.ndevs, has);
    else if (c->node.cpu_m < node->cpu_m || c->node.ram_mib < node->ram_mib - slack_mib)
        snprintf(c->refusal, sizeof c->refusal,
                 "node %s joined with %" PRId64 " CPUs and %" PRId64 " MiB of RAM and has %" PRId64
                 " and %" PRId64 " now; a node cannot shrink yet: repair it, or join it under "
                 "another name",
                 node->name, node->cpu_m / 1000, node->ram_mib, c->node.cpu_m / 1000,
                 c->node.ram_mib);
}

/* A node that the core does not know: its GPU type first, if that is new as well. */
static int make_node(st_tx *tx, st_cmd_register *c, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_event type = {.kind = ST_EV_TYPE}, node = {.kind = ST_EV_NODE};
    int r;

    if (c->who.role != ST_ROLE_JOIN)
        return st_fail(err, ST_EPERM, "node %s is not known here any more; it needs a join token",
                       c->node.name);
    r = use_join(tx, c, &c->node.pool, err);
    if (r == 0 && c->type && st_fleet_type(fleet, c->type) < 0) {
        type.u.type.name = c->type;
        type.u.type.vram_mib = c->vram_mib;
        type.u.type.board = c->board;
        r = st_tx_apply(tx, &type, err);
    }
    c->node.type = c->type ? st_fleet_type(fleet, c->type) : -1;
    node.u.node = c->node;
    if (r == 0)
        r = st_tx_apply(tx, &node, err);
    c->created = r == 0;
    return r;
}

/* A token of its own, in place of the one it had. */
static int give_token(st_tx *tx, st_cmd_register *c, int64_t old, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_control *ctl = tx->ctl;
    st_token_row row;
    int r = 0;

    if (old > 0 && st_store_token_get(ctl->store, old, arena, &row, err) == 0 &&
        row.revoked_ms == ST_STORE_NEVER) {
        r = st_store_token_revoke(ctl->store, old, tx->now, err);
        c->revoked = old;
        c->at_ms = tx->now;
    }
    c->token = ++ctl->last_token;
    row = (st_token_row){.id = c->token,
                         .hash = {c->hash, sizeof c->hash},
                         .account = "",
                         .user_name = c->node.name,
                         .role = st_role_words[ST_ROLE_NODE],
                         .label = "agent",
                         .created_ms = tx->now,
                         .expires_ms = ST_STORE_NEVER,
                         .revoked_ms = ST_STORE_NEVER,
                         .last_used_ms = ST_STORE_NEVER};
    if (r == 0)
        r = st_store_token_insert(ctl->store, &row, err);
    c->issued = r == 0;
    return st_tx_fault(tx, r, err);
}

static int check_machine(const st_cmd_register *c, const json_t *row, bool known, st_err *err)
{
    const char *machine = json_string_value(json_object_get(row, "machine"));

    if (c->who.role == ST_ROLE_NODE && strcmp(c->who.user, c->node.name) != 0)
        return st_fail(err, ST_EPERM, "this token is that of node %s, not of %s", c->who.user,
                       c->node.name);
    if (known && !row)
        return st_fail(err, ST_EEXIST,
                       "node %s was announced by an owner and is simulated; choose another name",
                       c->node.name);
    if (row && (!machine || strcmp(machine, c->machine) != 0))
        return st_fail(err, ST_EEXIST,
                       "another machine is registered as node %s; give this one another name, or "
                       "join the other one again",
                       c->node.name);
    return 0;
}

static int run_register(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_register *c = (st_cmd_register *)cmd;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int32_t id = st_fleet_node(fleet, c->node.name);
    int r = st_tx_open(tx, err);
    json_t *row = r == 0 ? get(tx->ctl->store, "node", c->node.name, &r, err) : NULL;
    int64_t token = json_integer_value(json_object_get(row, "token"));

    if (r < 0)
        return st_tx_fault(tx, r, err);
    r = check_machine(c, row, id >= 0, err);
    json_decref(row);
    if (r < 0)
        return r;
    if (id >= 0)
        compare(fleet, fleet->nodes.v[id], c);
    if (c->refusal[0]) {
        r = st_node_fail(tx, id, c->refusal, err);
        return r < 0 ? r : st_tx_audit(tx, &c->who, "node.refuse", "", c->node.name, NULL, err);
    }
    if (id < 0)
        r = make_node(tx, c, err);
    if (r == 0 && c->who.role == ST_ROLE_JOIN)
        r = give_token(tx, c, token, err);
    if (r < 0)
        return r;
    c->id = st_fleet_node(fleet, c->node.name);
    strncpy(c->pool, fleet->pools.v[fleet->nodes.v[c->id]->pool].name, sizeof c->pool - 1);
    r = put(tx, "node", c->node.name,
            json_pack("{s:s,s:I,s:o}", "machine", c->machine, "token",
                      (json_int_t)(c->issued ? c->token : token), "agent",
                      json_loads(c->doc, 0, NULL)),
            err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, c->created ? "node.join" : "node.rejoin", "", c->node.name,
                        NULL, err);
    return r;
}

static void publish_register(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_register *c = (const st_cmd_register *)cmd;
    const st_token_row row = {.id = c->token,
                              .hash = {c->hash, sizeof c->hash},
                              .account = "",
                              .user_name = c->node.name,
                              .role = st_role_words[ST_ROLE_NODE],
                              .expires_ms = ST_STORE_NEVER,
                              .revoked_ms = ST_STORE_NEVER};

    if (c->refusal[0])
        return;
    if (c->revoked > 0)
        st_directory_revoke(ctl->dir, c->revoked, c->at_ms);
    if (c->issued)
        st_directory_put_token(ctl->dir, &row);
    st_control_tell_node(ctl, c->id);
}

void st_cmd_register_init(st_cmd_register *cmd)
{
    st_token_make(cmd->text, cmd->hash);
    cmd->cmd.run = run_register;
    cmd->cmd.publish = publish_register;
}
