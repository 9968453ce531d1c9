/*
 * Nodes and pools that go for good. Their names are free afterwards and nothing is left for who takes them: no key,
 * no fault, no flag, no word of why it was out, no join token.
 */
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"

static int forget_node(st_tx *tx, const char *name, int64_t *ret_revoked, st_err *err)
{
    int r;
    json_t *row = st_document_json(tx->ctl->store, "node", name, &r, err);
    int64_t token = json_integer_value(json_object_get(row, "token"));

    json_decref(row);
    if (r == 0)
        r = st_node_drop_token(tx, ret_revoked, token, err);
    if (r == 0)
        r = st_document_erase(tx, "node", name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-history", name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-flags", name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-tests", name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-level", name, err);
    if (r == 0)
        r = st_document_erase(tx, "node-labels", name, err);
    return r;
}

/* A failed node may still run what it was given until its lease is over: whoever removes it says that he knows. */
static int run_node(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_remove *c = (st_cmd_remove *)cmd;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    st_event event = {.kind = ST_EV_NODE_STATE};
    char q[ST_QUOTE_MAX];
    int r = st_tx_open(tx, err);

    c->id = st_fleet_node(fleet, c->name);
    if (r == 0 && c->id < 0)
        return st_fail(err, ST_ENOENT, "there is no node %s", st_quote(q, c->name));
    if (r == 0 && fleet->nodes.v[c->id]->state == ST_NODE_FAILED && !c->force)
        return st_fail(err, ST_ESTATE,
                       "node %s has failed, and what it ran may live until its lease is over; if "
                       "the machine is off, remove the node with --force",
                       c->name);
    event.u.node_state.node = c->id;
    event.u.node_state.state = ST_NODE_REMOVED;
    event.u.node_state.force = c->force; /* although a booking loses its place */
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    c->at_ms = tx->now;
    if (r == 0)
        r = forget_node(tx, c->name, &c->revoked, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "node.remove", "", c->name, NULL, err);
    return r;
}

static void publish_node(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_remove *c = (const st_cmd_remove *)cmd;

    if (c->revoked > 0)
        st_directory_revoke(ctl->dir, c->revoked, c->at_ms);
}

void st_cmd_node_remove(st_cmd_remove *cmd)
{
    cmd->cmd.run = run_node;
    cmd->cmd.publish = publish_node;
}

typedef struct join_list {
    const char *pool;
    ST_VEC(char *) names;
} join_list;

static int note_join(void *ctx, const st_document_row *row, st_err *err)
{
    join_list *l = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL);
    const char *pool = json_string_value(json_object_get(doc, "pool"));

    (void)err;
    if (pool && strcmp(pool, l->pool) == 0)
        st_vec_push(&l->names, st_xstrdup(row->name));
    json_decref(doc);
    return 0;
}

/* A token for the pool is none for another one of the name. */
static int forget_joins(st_tx *tx, const char *pool, st_err *err)
{
    join_list l = {.pool = pool};
    int r = st_tx_fault(tx, st_store_documents(tx->ctl->store, "join", note_join, &l, err), err);

    for (size_t i = 0; i < l.names.n; i++) {
        if (r == 0)
            r = st_document_erase(tx, "join", l.names.v[i], err);
        free(l.names.v[i]);
    }
    st_vec_free(&l.names);
    return r;
}

static int run_pool(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_remove *c = (st_cmd_remove *)cmd;
    st_event event = {.kind = ST_EV_POOL_REMOVE};
    int r = st_tx_open(tx, err);

    event.u.pool.name = c->name;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r == 0)
        r = forget_joins(tx, c->name, err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "pool.remove", "", c->name, NULL, err);
    return r;
}

void st_cmd_pool_remove(st_cmd_remove *cmd)
{
    cmd->cmd.run = run_pool;
}
