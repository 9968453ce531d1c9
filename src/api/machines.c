/*
 * What owners do about machines: let one join again under a node's name, label nodes, remove them, and pools without any.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/quote.h"

typedef struct act {
    st_cmd_rejoin rejoin; /* first */
    st_call *call;
    char name[ST_NAME_MAX + 2]; /* one too long for a name is still none */
} act;

static void act_done(st_cmd *cmd, const st_err *err)
{
    act *a = (act *)cmd;
    st_strbuf out = {0};

    if (err) {
        st_call_fail(a->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", a->name);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(a->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    free(a);
}

void st_api_node_rejoin(st_call *call, void *ctx)
{
    st_api *api = ctx;
    act *a = st_xcalloc(1, sizeof *a);

    a->call = call;
    strncpy(a->name, st_call_param(call, "name"), ST_NAME_MAX + 1);
    a->rejoin.who = *st_api_who(call);
    a->rejoin.node = a->name;
    st_cmd_rejoin_init(&a->rejoin);
    a->rejoin.cmd.done = act_done;
    st_call_defer(call);
    st_api_post(api, call, &a->rejoin.cmd);
}

/* ---- removing ------------------------------------------------------------------------------------ */

typedef struct removal {
    st_cmd_remove cmd; /* first */
    st_call *call;
    char name[ST_NAME_MAX + 2];
    const char *kind;
    int (*run)(st_tx *tx, st_cmd *cmd, st_err *err); /* what control gave */
} removal;

static int run_if(st_tx *tx, st_cmd *cmd, st_err *err)
{
    removal *c = (removal *)cmd;
    int r = st_api_condition_of(tx, c->call, c->kind, c->name, c->name, err);

    return r < 0 ? r : c->run(tx, cmd, err);
}

static void removed(st_cmd *cmd, const st_err *err)
{
    removal *c = (removal *)cmd;

    if (err)
        st_call_fail(c->call, err);
    else
        st_call_reply_empty(c->call, 204);
    free(c);
}

static void remove_it(st_api *api, st_call *call, const char *kind,
                      void (*init)(st_cmd_remove *cmd), bool force)
{
    removal *c = st_xcalloc(1, sizeof *c);

    c->call = call;
    strncpy(c->name, st_call_param(call, "name"), ST_NAME_MAX + 1);
    c->cmd.who = *st_api_who(call);
    c->cmd.name = c->name;
    c->cmd.force = force;
    init(&c->cmd);
    c->kind = kind;
    c->run = c->cmd.cmd.run;
    c->cmd.cmd.run = run_if;
    c->cmd.cmd.done = removed;
    st_call_defer(call);
    st_api_post(api, call, &c->cmd.cmd);
}

void st_api_node_remove(st_call *call, void *ctx)
{
    remove_it(ctx, call, "node", st_cmd_node_remove, st_call_query_bool(call, "force", false));
}

void st_api_pool_remove(st_call *call, void *ctx)
{
    remove_it(ctx, call, "pool", st_cmd_pool_remove, false);
}

/* ---- labels -------------------------------------------------------------------------------------- */

typedef struct relabel {
    st_cmd_labels cmd; /* first */
    st_call *call;
    json_t *doc;
    char name[ST_NAME_MAX + 2];
    int (*run)(st_tx *tx, st_cmd *cmd, st_err *err); /* what control gave */
} relabel;

static void relabelled(st_cmd *cmd, const st_err *err)
{
    relabel *c = (relabel *)cmd;
    st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->name);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    json_decref(c->doc);
    free(c);
}

static int relabel_if(st_tx *tx, st_cmd *cmd, st_err *err)
{
    relabel *c = (relabel *)cmd;
    int r;

    if (st_fleet_node(st_core_fleet(st_tx_core(tx)), c->name) < 0)
        return c->run(tx, cmd, err); /* which says so */
    r = st_api_condition_of(tx, c->call, "node", c->name, c->name, err);

    return r < 0 ? r : c->run(tx, cmd, err);
}

static int read_relabel(relabel *c, st_err *err)
{
    const char *key, *name;
    const json_t *value;
    json_t *each;
    size_t i;
    int r = st_call_json(c->call, &c->doc, err);

    if (r == 0 && !json_is_object(c->doc))
        return st_fail(err, ST_EINVAL, "labels are changed by an object with set, remove, or both");
    json_object_foreach(c->doc, key, value)
    {
        char q[ST_QUOTE_MAX];
        bool set = strcmp(key, "set") == 0, remove = strcmp(key, "remove") == 0;

        if (!set && !remove)
            return st_fail(err, ST_EINVAL, "unknown key %s; labels have set and remove",
                           st_quote(q, key));
        if (set ? !json_is_object(value) : !json_is_array(value))
            return st_fail(err, ST_EINVAL, "%s is %s", key,
                           set ? "a map of names and values" : "a list of names");
    }
    if (r < 0)
        return r;
    c->cmd.set = json_object_get(c->doc, "set");
    c->cmd.remove = json_object_get(c->doc, "remove");
    json_object_foreach((json_t *)(uintptr_t)c->cmd.set, name, each)
    {
        if (!json_is_string(each))
            return st_fail(err, ST_EINVAL, "set: the value of a label is a text");
    }
    json_array_foreach(c->cmd.remove, i, each)
    {
        if (!json_is_string(each))
            return st_fail(err, ST_EINVAL, "remove: number %zu is not a name", i + 1);
    }
    if (json_object_size(c->cmd.set) == 0 && json_array_size(c->cmd.remove) == 0)
        return st_fail(err, ST_EINVAL, "nothing is to be changed: give set or remove");
    return 0;
}

void st_api_node_labels(st_call *call, void *ctx)
{
    relabel *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->call = call;
    strncpy(c->name, st_call_param(call, "name"), ST_NAME_MAX + 1);
    c->cmd.who = *st_api_who(call);
    c->cmd.node = c->name;
    c->cmd.force = st_call_query_bool(call, "force", false);
    st_cmd_labels_init(&c->cmd);
    c->run = c->cmd.cmd.run;
    c->cmd.cmd.run = relabel_if;
    c->cmd.cmd.done = relabelled;
    if (read_relabel(c, &err) < 0) {
        relabelled(&c->cmd.cmd, &err);
        return;
    }
    st_call_defer(call);
    st_api_post(ctx, call, &c->cmd.cmd);
}
