/*
 * Machines that join (doc/dev/agent-protocol.md, doc/decisions/0021): join tokens, registrations, and an owner's
 * leave to join again.
 *
 *   join NUMBER   {"pool", "uses", "new_types"}: what a join token is good for
 *   node NAME     {"machine", "key", "agent"}: who it is, the key that is bound to it, what it said of itself;
 *                 "token": of a node that joined before there were keys, until it binds one;
 *                 "rejoin": an owner lets a machine take the name with a new key
 *
 * Invariants:
 *  1 Only who has the bound key, or a join token where no key is bound and an owner has said so, changes a node.
 *  2 A join token that is used up or of another pool learns and changes nothing; a use is counted in the
 *    transaction that makes it good.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

/* ---- join tokens ------------------------------------------------------------------------------- */

static int run_join(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_join *c = (st_cmd_join *)cmd;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    char name[24], q[ST_QUOTE_MAX];
    int r;

    if (c->pool && st_fleet_pool(fleet, c->pool) < 0)
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(q, c->pool));
    /* For one pool, whatever comes to be the first later. */
    for (size_t i = 0; !c->pool && i < fleet->pools.n; i++)
        if (st_pool_there(&fleet->pools.v[i]))
            c->pool = c->first = st_xstrdup(fleet->pools.v[i].name);
    r = c->make(tx, cmd, err);
    if (r < 0)
        return r;
    snprintf(name, sizeof name, "%" PRId64, c->token.id);
    return st_document_write(tx, "join", name,
                             json_pack("{s:s,s:I,s:b}", "pool", c->pool ? c->pool : "", "uses",
                                       (json_int_t)c->uses, "new_types", c->new_types),
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

/* What a join token is good for. */
typedef struct pass {
    json_t *doc;
    char name[24];
    int32_t pool;
} pass;

/* Looks only: the use is counted when nothing can be refused any more. */
static int show_pass(st_tx *tx, const st_cmd_register *c, pass *ret, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int r;

    snprintf(ret->name, sizeof ret->name, "%" PRId64, c->who.token);
    ret->doc = st_document_json(tx->ctl->store, "join", ret->name, &r, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    const char *pool = json_string_value(json_object_get(ret->doc, "pool"));

    if (json_integer_value(json_object_get(ret->doc, "uses")) <= 0)
        return st_fail(err, ST_EPERM, "this join token is used up; an owner can make another");
    ret->pool = pool && pool[0] ? st_fleet_pool(fleet, pool) : 0;
    if (ret->pool < 0 || fleet->pools.n == 0 || !st_pool_there(&fleet->pools.v[ret->pool]))
        return st_fail(err, ST_ENOENT, "there is no pool to join; an owner can make one");
    return st_pool_takes(tx->ctl, ret->pool, ST_NODES_AGENTS, err);
}

static int count_pass(st_tx *tx, const pass *p, st_err *err)
{
    json_int_t uses = json_integer_value(json_object_get(p->doc, "uses"));

    json_object_set_new(p->doc, "uses", json_integer(uses - 1));
    return st_document_write(tx, "join", p->name, json_incref(p->doc), err);
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

/* A node that the core does not know; its GPU type first, if that is new and the token allows it. */
static int make_node(st_tx *tx, st_cmd_register *c, const pass *p, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_event type = {.kind = ST_EV_TYPE}, node = {.kind = ST_EV_NODE};
    int r = 0;

    if (c->type && st_fleet_type(fleet, c->type) < 0) {
        if (!json_is_true(json_object_get(p->doc, "new_types")))
            return st_fail(err, ST_ESTATE,
                           "GPU type %s is not known here; an owner can add it (`stint type add "
                           "%s`), or make a join token with --new-types",
                           c->type, c->type);
        type.u.type.name = c->type;
        type.u.type.vram_mib = c->vram_mib;
        type.u.type.board = c->board;
        r = st_tx_apply(tx, &type, err);
    }
    c->node.pool = p->pool;
    c->node.type = c->type ? st_fleet_type(fleet, c->type) : -1;
    node.u.node = c->node;
    if (r == 0)
        r = st_tx_apply(tx, &node, err);
    c->created = r == 0;
    return r;
}

/* Whether a join token makes this node the caller's: it is new, or an owner lets it be taken. */
static int check_join(const st_cmd_register *c, const st_fleet *fleet, const json_t *row,
                      int32_t id, const pass *p, st_err *err)
{
    if (!c->key)
        return st_fail(err, ST_EINVAL,
                       "a machine joins with a key of its own; this agent is too old");
    if (id >= 0 && !row)
        return st_fail(err, ST_EEXIST,
                       "node %s was announced by an owner and is simulated; choose another name",
                       c->node.name);
    if (row && !json_is_true(json_object_get(row, "rejoin")))
        return st_fail(err, ST_EEXIST,
                       "a node of the name %s has joined, with another key; choose another name, "
                       "or have an owner run `stint node rejoin %s`",
                       c->node.name, c->node.name);
    if (row && id >= 0 && fleet->nodes.v[id]->pool != p->pool)
        return st_fail(err, ST_EPERM, "this join token is for another pool than node %s is in",
                       c->node.name);
    return 0;
}

/* Whether a node that was let in by its key, or by a token of the time before keys, means itself. */
static int check_node(const st_cmd_register *c, const json_t *row, int32_t id, st_err *err)
{
    const char *machine = json_string_value(json_object_get(row, "machine"));
    const char *key = json_string_value(json_object_get(row, "key"));

    if (strcmp(c->who.user, c->node.name) != 0)
        return st_fail(err, ST_EPERM, "this is node %s, and not %s", c->who.user, c->node.name);
    if (!row || id < 0)
        return st_fail(err, ST_EPERM, "node %s is not known here any more; it needs a join token",
                       c->node.name);
    if (key && (!c->key || strcmp(key, c->key) != 0))
        return st_fail(err, ST_EPERM, "another key is bound to node %s", c->node.name);
    if (!machine || strcmp(machine, c->machine) != 0)
        return st_fail(err, ST_EEXIST,
                       "another machine is registered as node %s; give this one another name, or "
                       "have an owner run `stint node rejoin %s`",
                       c->node.name, c->node.name);
    return 0;
}

/* Of the time before keys; bound to a key, the node needs it no more. */
int st_node_drop_token(st_tx *tx, int64_t *ret_revoked, int64_t token, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_store *store = tx->ctl->store;
    st_token_row row;

    if (token <= 0 || st_store_token_get(store, token, arena, &row, err) < 0 ||
        row.revoked_ms != ST_STORE_NEVER)
        return 0;
    *ret_revoked = token;
    return st_tx_fault(tx, st_store_token_revoke(store, token, tx->now, err), err);
}

/* What is kept of it from now on; nothing is written where nothing is new. */
static int keep_node(st_tx *tx, st_cmd_register *c, const json_t *row, st_err *err)
{
    json_t *said = json_loads(c->doc, 0, NULL);
    int64_t token = json_integer_value(json_object_get(row, "token"));
    bool same = row && !json_is_true(json_object_get(row, "rejoin")) &&
                json_equal(said, json_object_get(row, "agent")) &&
                (!c->key || json_object_get(row, "key"));
    json_t *next;
    int r = 0;

    if (same) {
        json_decref(said);
        return 0;
    }
    next = json_pack("{s:s,s:o}", "machine", c->machine, "agent", said);
    if (c->key) {
        json_object_set_new(next, "key", json_string(c->key));
        c->at_ms = tx->now;
        r = st_node_drop_token(tx, &c->revoked, token, err);
    } else {
        json_object_set_new(next, "token", json_integer(token));
    }
    if (r < 0) {
        json_decref(next);
        return r;
    }
    r = st_document_write(tx, "node", c->node.name, next, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, c->created ? "node.join" : "node.rejoin", "", c->node.name,
                        NULL, err);
    return r;
}

/* Whether the agent says that it can test its node. */
static bool says_tests(const st_cmd_register *c)
{
    json_t *said = json_loads(c->doc, 0, NULL);
    bool tests = json_is_string(json_object_get(json_object_get(said, "labels"), "tests"));

    json_decref(said);
    return tests;
}

static int take(st_tx *tx, st_cmd_register *c, const json_t *row, const pass *p, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int32_t id = st_fleet_node(fleet, c->node.name);
    bool joins = c->who.role == ST_ROLE_JOIN;
    int r = joins ? check_join(c, fleet, row, id, p, err) : check_node(c, row, id, err);

    if (r < 0)
        return r;
    if (id >= 0)
        compare(fleet, fleet->nodes.v[id], c);
    if (c->refusal[0]) {
        r = joins ? 0 : st_node_fail(tx, id, c->refusal, err);
        return r < 0 ? r : st_tx_audit(tx, &c->who, "node.refuse", "", c->node.name, NULL, err);
    }
    if (id < 0)
        r = make_node(tx, c, p, err);
    if (r == 0 && joins)
        r = count_pass(tx, p, err);
    if (r == 0)
        r = keep_node(tx, c, row, err);
    if (r < 0)
        return r;
    c->id = st_fleet_node(fleet, c->node.name);
    r = st_node_has_agent(tx, c->id, says_tests(c), err);
    if (r == 0)
        r = st_node_know_labels(tx, c->id, err);
    if (r < 0)
        return r;
    snprintf(c->pool, sizeof c->pool, "%s", fleet->pools.v[fleet->nodes.v[c->id]->pool].name);
    return 0;
}

static int run_register(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_register *c = (st_cmd_register *)cmd;
    pass p = {0};
    json_t *row = NULL;
    int r = st_tx_open(tx, err);

    if (r == 0 && c->who.role == ST_ROLE_JOIN)
        r = st_restoring_check(tx->ctl, err);
    if (r == 0 && c->who.role == ST_ROLE_JOIN)
        r = show_pass(tx, c, &p, err);
    if (r == 0) {
        row = st_document_json(tx->ctl->store, "node", c->node.name, &r, err);
        st_tx_fault(tx, r, err);
    }
    if (r == 0)
        r = take(tx, c, row, &p, err);
    json_decref(row);
    json_decref(p.doc);
    return r;
}

static void publish_register(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_register *c = (const st_cmd_register *)cmd;

    if (c->refusal[0])
        return;
    if (c->revoked > 0)
        st_directory_revoke(ctl->dir, c->revoked, c->at_ms);
    st_control_tell_node(ctl, c->id);
}

void st_cmd_register_init(st_cmd_register *cmd)
{
    cmd->cmd.lane = ST_LANE_AGENTS;
    cmd->cmd.calm = true; /* who is known may say what it has; who is new or has changed waits */
    cmd->cmd.run = run_register;
    cmd->cmd.publish = publish_register;
}

/* ---- an owner's leave ---------------------------------------------------------------------------- */

/* The key is bound no more; who comes next with a join token of the pool is the node. */
static int run_rejoin(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_rejoin *c = (st_cmd_rejoin *)cmd;
    char q[ST_QUOTE_MAX];
    int r = st_tx_open(tx, err);
    json_t *row = r == 0 ? st_document_json(tx->ctl->store, "node", c->node, &r, err) : NULL;

    if (r < 0)
        return st_tx_fault(tx, r, err);
    c->id = st_fleet_node(st_core_fleet(tx->ctl->core), c->node);
    if (!row || c->id < 0) {
        json_decref(row);
        return st_fail(err, ST_ENOENT, "there is no node %s with an agent", st_quote(q, c->node));
    }
    r = st_node_drop_token(tx, &c->revoked, json_integer_value(json_object_get(row, "token")), err);
    c->at_ms = tx->now;
    json_object_del(row, "key");
    json_object_del(row, "token");
    json_object_set_new(row, "rejoin", json_true());
    if (r == 0)
        r = st_document_write(tx, "node", c->node, json_incref(row), err);
    json_decref(row);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "node.rejoin-allow", "", c->node, NULL, err);
    return r;
}

static void publish_rejoin(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_rejoin *c = (const st_cmd_rejoin *)cmd;

    if (c->revoked > 0)
        st_directory_revoke(ctl->dir, c->revoked, c->at_ms);
    st_control_tell_node(ctl, c->id);
}

void st_cmd_rejoin_init(st_cmd_rejoin *cmd)
{
    cmd->cmd.run = run_rejoin;
    cmd->cmd.publish = publish_rejoin;
}
