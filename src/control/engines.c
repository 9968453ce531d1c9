/*
 * Pools and the engines they name (engine/engine.h): who may carry out what is placed there, which ways to yield that leaves,
 * and how nodes come into them.
 *
 * What an engine lacks stands in the core's pool, because the core places by it. It is written with every change of the
 * pool, and after a start where the engine of today lacks something else than the one that wrote it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "control/restore.h"
#include "control/state.h"

static const st_engine *engine_of(const st_control *ctl, int32_t pool, bool agent)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);

    return st_engine_of(ctl->options.engine, fleet->pools.v[pool].rules.engine, agent);
}

static bool has_pool(const st_control *ctl, int32_t pool)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);

    return pool >= 0 && (size_t)pool < fleet->pools.n && st_pool_there(&fleet->pools.v[pool]);
}

/* ---- pools ------------------------------------------------------------------------------------- */

/* Nodes do not change hands: what runs there is known to one engine only. */
static int check_hands(const st_control *ctl, const st_event *event, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(ctl->core);
    int pool = event->u.pool.name ? st_fleet_pool(fleet, event->u.pool.name) : -1;
    const char *next = event->u.pool.rules.engine;

    for (size_t i = 0; pool >= 0 && i < fleet->nodes.n; i++) {
        const st_node *node = fleet->nodes.v[i];

        if (node->pool == pool && node->state != ST_NODE_REMOVED &&
            st_engine_of(ctl->options.engine, next, node->agent) !=
                engine_of(ctl, pool, node->agent))
            return st_fail(err, ST_ESTATE,
                           "pool %s: node %s belongs to another engine; remove its nodes first, or "
                           "make another pool",
                           event->u.pool.name, node->name);
    }
    return 0;
}

int st_pool_engine(const st_control *ctl, st_event *event, st_err *err)
{
    const st_engine *engine = ctl->options.engine, *own;
    st_pool_rules *rules = &event->u.pool.rules;
    char q[ST_QUOTE_MAX];
    int r;

    if (!engine)
        return 0;
    r = check_hands(ctl, event, err);
    if (r < 0)
        return r;
    rules->lacks = 0;
    if (!rules->engine[0])
        return 0;
    own = st_engine_named(engine, rules->engine);
    if (!own)
        return st_fail(err, ST_ENOENT, "this stintd has no engine %s", st_quote(q, rules->engine));
    rules->lacks = own->ops->lacks;
    return 0;
}

/* ---- nodes -------------------------------------------------------------------------------------- */

int st_pool_takes(const st_control *ctl, int32_t pool, st_engine_nodes nodes, st_err *err)
{
    const st_engine *own;
    const char *name;

    if (!ctl->options.engine || !has_pool(ctl, pool))
        return 0; /* the core will say so */
    own = engine_of(ctl, pool, nodes == ST_NODES_AGENTS);
    name = st_core_fleet(ctl->core)->pools.v[pool].name;
    if (!own)
        return st_fail(err, ST_ESTATE, "pool %s is for an engine that this stintd has not", name);
    if (own->ops->nodes == nodes)
        return 0;
    switch (own->ops->nodes) {
    case ST_NODES_AGENTS:
        return st_fail(err, ST_ESTATE,
                       "nodes of pool %s are not announced: their agents register them, with a "
                       "token from /v1/admin/join-tokens",
                       name);
    case ST_NODES_FOUND:
        return st_fail(err, ST_ESTATE, "nodes of pool %s are found by its engine, %s", name,
                       own->ops->name);
    case ST_NODES_ANNOUNCED:
        break;
    }
    return st_fail(err, ST_ESTATE, "nodes of pool %s are announced by owners and have no agents",
                   name);
}

static int check_found(const st_control *ctl, const st_report *rep, int pool, st_err *err)
{
    const st_found *f = rep->found;
    const st_fleet *fleet = st_core_fleet(ctl->core);
    char q[ST_QUOTE_MAX];
    int r;

    if (pool < 0)
        return st_fail(err, ST_ENOENT, "there is no pool %s", st_quote(q, f->pool));
    r = st_pool_takes(ctl, pool, ST_NODES_FOUND, err);
    if (r < 0)
        return r;
    if (rep->engine && strcmp(engine_of(ctl, pool, false)->ops->name, rep->engine) != 0)
        return st_fail(err, ST_EPERM, "pool %s belongs to another engine", f->pool);
    if (f->type[0] && st_fleet_type(fleet, f->type) < 0)
        return st_fail(err, ST_ENOENT, "GPU type %s is not known here; add it (`stint type add`)",
                       st_quote(q, f->type));
    return 0;
}

static const char *or_none(const char *text)
{
    return text[0] ? text : NULL;
}

/* Refused in words for the log: nobody waits for an answer, and the engine will find it again. */
int st_node_found(st_tx *tx, const st_report *rep, st_err *err)
{
    const st_found *f = rep->found;
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    int pool = st_fleet_pool(fleet, f->pool);
    st_event event = {.kind = ST_EV_NODE};
    st_err why = {0};
    int r;

    if (st_fleet_node(fleet, f->name) >= 0)
        return 0; /* known */
    r = check_found(tx->ctl, rep, pool, &why);
    event.u.node = (st_node_spec){.name = f->name,
                                  .pool = pool,
                                  .type = f->type[0] ? st_fleet_type(fleet, f->type) : -1,
                                  .ndevs = f->ndevs,
                                  .cpu_m = f->cpu_m,
                                  .ram_mib = f->ram_mib,
                                  .zone = or_none(f->zone),
                                  .block = or_none(f->block),
                                  .rack = or_none(f->rack)};
    if (r == 0)
        r = st_tx_apply(tx, &event, &why);
    if (r < 0) {
        st_control_say(tx->ctl, "event=node_not_taken node=%s reason=\"%s\"", f->name, why.msg);
        return tx->broken ? st_fail(err, why.code, "%s", why.msg) : 0;
    }
    const int32_t id = st_fleet_node(fleet, f->name);
    const st_engine *own = engine_of(tx->ctl, pool, false);
    st_identity who = {.role = ST_ROLE_OWNER, .source = "engine"};

    snprintf(who.user, sizeof who.user, "%s", own->ops->name);
    if (own->ops->gone)
        r = st_node_has_agent(tx, id, false, err);
    return r < 0 ? r : st_tx_audit(tx, &who, "node.create", "", f->name, NULL, err);
}

/* ---- after a start -------------------------------------------------------------------------------- */

/* A change that the core does not take leaves the pool as it was: a job there counts on what is gone. */
static int run_follow(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);

    (void)cmd;
    for (size_t i = 0; i < fleet->pools.n && !tx->broken; i++) {
        const st_pool *pool = &fleet->pools.v[i];
        st_event event = {.kind = ST_EV_POOL_CHANGE};
        const st_engine *own = NULL;
        st_err why = {0};

        if (st_pool_there(pool) && pool->rules.engine[0])
            own = st_engine_named(tx->ctl->options.engine, pool->rules.engine);
        if (!own || own->ops->lacks == pool->rules.lacks)
            continue;
        event.u.pool.name = pool->name;
        event.u.pool.levels = pool->levels;
        event.u.pool.oversub_m = pool->oversub_m;
        event.u.pool.rules = pool->rules;
        event.u.pool.rules.lacks = own->ops->lacks;
        if (st_tx_apply(tx, &event, &why) < 0)
            st_control_say(tx->ctl, "event=pool_keeps_ways pool=%s reason=\"%s\"", pool->name,
                           why.msg);
    }
    return tx->broken ? st_fail(err, tx->fault.code, "%s", tx->fault.msg) : 0;
}

static void follow_done(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

void st_control_follow_engines(st_control *ctl)
{
    st_cmd *cmd;

    if (!ctl->options.engine)
        return;
    cmd = st_xcalloc(1, sizeof *cmd);
    cmd->lane = ST_LANE_AGENTS;
    cmd->run = run_follow;
    cmd->done = follow_done;
    if (!st_control_post(ctl, cmd))
        free(cmd);
}

void st_control_complete(const st_control *ctl)
{
    st_engine *engine = ctl->options.engine;

    if (engine && engine->ops->complete && ctl->restoring.state == ST_RESTORE_NONE)
        engine->ops->complete(engine);
}
