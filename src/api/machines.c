/*
 * What owners do about machines: let one join again under a node's name, remove nodes, and pools without any.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"

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
