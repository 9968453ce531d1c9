/*
 * Labels of nodes: what their agents say, and what owners have added. Bookings require them (core/book.h).
 *
 *   node-labels NAME  {LABEL: VALUE, …}: what owners have added
 *
 * 1 What a machine says of itself holds: an owner adds labels and replaces none of the machine's. So a driver that a booking
 *   requires is one that an agent has found.
 * 2 A machine may lose a label whatever is booked on it; an owner takes one away by force only.
 */
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/state.h"
#include "model/labels.h"

/* Those of a map that can be labels; an agent may say more about itself. */
static void lay(const json_t *map, st_strbuf *out)
{
    const char *name;
    json_t *value;
    st_err ignored;

    json_object_foreach((json_t *)(uintptr_t)map, name, value)
    {
        const char *word = json_string_value(value);

        if (word && st_label_word(name) && st_label_word(word))
            st_labels_set(out, name, word, &ignored);
    }
}

/* What its agent says: its labels, and the driver of its GPUs. */
static json_t *said_by_agent(st_tx *tx, const char *name, int *ret_r, st_err *err)
{
    json_t *row = st_document_json(tx->ctl->store, "node", name, ret_r, err);
    json_t *agent = json_object_get(row, "agent"), *map = json_object();
    const char *driver = json_string_value(json_object_get(agent, "driver"));

    json_object_update(map, json_object_get(agent, "labels"));
    if (driver && driver[0])
        json_object_set_new(map, "driver", json_string(driver));
    json_decref(row);
    return map;
}

static int apply(st_tx *tx, int32_t id, const char *text, bool force, st_err *err)
{
    const st_node *node = st_core_fleet(tx->ctl->core)->nodes.v[id];
    st_event event = {.kind = ST_EV_LABELS};

    if (strcmp(node->labels ? node->labels : "", text) == 0)
        return 0;
    event.u.labels.node = id;
    event.u.labels.text = text;
    event.u.labels.force = force;
    return st_tx_apply(tx, &event, err);
}

int st_node_know_labels(st_tx *tx, int32_t id, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *name = st_core_fleet(tx->ctl->core)->nodes.v[id]->name;
    st_err ignored;
    int r;
    json_t *ours, *agent;

    if (st_restoring_check(tx->ctl, &ignored) < 0)
        return 0; /* the core has no part in anything yet; they are looked at once it has */
    ours = st_document_json(tx->ctl->store, "node-labels", name, &r, err);
    if (r < 0)
        return st_tx_fault(tx, r, err);
    agent = said_by_agent(tx, name, &r, err);
    lay(ours, &text);
    lay(agent, &text);
    json_decref(ours);
    json_decref(agent);
    return r < 0 ? st_tx_fault(tx, r, err) : apply(tx, id, st_strbuf_str(&text), true, err);
}

/* ---- an owner's ------------------------------------------------------------------------------ */

/* What is added to, or taken from, those of owners; every name and value in its bounds. */
static int change(json_t *ours, const json_t *agent, const st_cmd_labels *c, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bounds = {0};
    const char *name;
    const json_t *value;
    int r = 0;

    json_object_foreach((json_t *)(uintptr_t)c->set, name, value)
    {
        const char *word = json_string_value(value);

        r = r == 0 ? st_labels_set(&bounds, name, word ? word : "", err) : r;
        if (r == 0 && json_object_get(agent, name))
            r = st_fail(err, ST_ESTATE,
                        "node %s says itself that its %s is %.63s, and that is what holds", c->node,
                        name, json_string_value(json_object_get(agent, name)));
        if (r == 0)
            json_object_set(ours, name, (json_t *)(uintptr_t)value);
    }
    for (size_t i = 0; r == 0 && i < json_array_size(c->remove); i++) {
        char q[ST_QUOTE_MAX];

        name = json_string_value(json_array_get(c->remove, i));
        if (!name || json_object_del(ours, name) < 0)
            r = st_fail(err, ST_ENOENT, "node %s was given no label %s", c->node,
                        st_quote(q, name ? name : ""));
    }
    return r;
}

/* All of them together, in their bounds. */
static int add_up(const json_t *ours, const json_t *agent, st_strbuf *text, st_err *err)
{
    const char *name;
    json_t *value;
    int r = 0;

    lay(agent, text);
    json_object_foreach((json_t *)(uintptr_t)ours, name, value)
    {
        if (r == 0 && !json_object_get(agent, name))
            r = st_labels_set(text, name, json_string_value(value), err);
    }
    return r;
}

static int run_labels(st_tx *tx, st_cmd *cmd, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_cmd_labels *c = (st_cmd_labels *)cmd;
    int32_t id = st_fleet_node(st_core_fleet(tx->ctl->core), c->node);
    char q[ST_QUOTE_MAX];
    json_t *ours, *agent;
    int r = st_tx_open(tx, err);

    if (r < 0)
        return r;
    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no node %s", st_quote(q, c->node));
    ours = st_document_json(tx->ctl->store, "node-labels", c->node, &r, err);
    agent = said_by_agent(tx, c->node, &r, err);
    if (r < 0) {
        st_tx_fault(tx, r, err);
    } else {
        ours = ours ? ours : json_object();
        r = change(ours, agent, c, err);
    }
    if (r == 0)
        r = add_up(ours, agent, &text, err);
    if (r == 0)
        r = apply(tx, id, st_strbuf_str(&text), c->force, err);
    if (r == 0)
        r = st_document_write(tx, "node-labels", c->node, json_incref(ours), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "node.labels", "", c->node, NULL, err);
    json_decref(ours);
    json_decref(agent);
    return r;
}

void st_cmd_labels_init(st_cmd_labels *cmd)
{
    cmd->cmd.run = run_labels;
}
