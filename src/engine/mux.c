/*
 * Several engines as one (engine/engine.h): what is placed goes to the engine of its node; everything
 * else goes to all, and those that do not know the job have nothing to do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "engine/engine.h"

#define NOBODY (-1) /* the engine that a pool names is not there */

struct mux;

typedef struct mux_part {
    struct mux *mux;
    st_engine *engine;
} mux_part;

typedef struct mux {
    st_engine base;
    mux_part *parts;
    size_t n;
    st_idmap *owners; /* parts by node; of the loop alone */
} mux;

/* Engines report through us, so that whoever made us says where to once. */
static void forward(void *ctx, const st_report *report)
{
    const mux_part *part = ctx;
    st_report r = *report;

    r.engine = part->engine->ops->name;
    part->mux->base.report(part->mux->base.ctx, &r);
}

static void on_lead(st_engine *engine, int64_t epoch)
{
    const mux *m = (const mux *)engine;

    for (size_t i = 0; i < m->n; i++)
        st_engine_lead(m->parts[i].engine, epoch);
}

/* Calls an operation of every part `e` that has it. */
#define EACH(m, e, op, ...)                                                   \
    for (size_t i_ = 0; i_ < (m)->n; i_++)                                    \
        for (st_engine *e = (m)->parts[i_].engine; e && e->ops->op; e = NULL) \
    e->ops->op(__VA_ARGS__)

static void on_complete(st_engine *engine)
{
    EACH((mux *)engine, e, complete, e);
}

static void on_restored(st_engine *engine, st_lead lead, const uint64_t *adopted, size_t n)
{
    EACH((mux *)engine, e, restored, e, lead, adopted, n);
}

static void on_told(st_engine *engine, st_told *ret)
{
    EACH((mux *)engine, e, told, e, ret);
}

static void on_measures(st_engine *engine, st_measures *ret)
{
    EACH((mux *)engine, e, measures, e, ret);
}

static bool on_used(st_engine *engine, uint64_t job, st_used *ret)
{
    const mux *m = (const mux *)engine;
    bool known = false;

    for (size_t i = 0; i < m->n && !known; i++)
        known = m->parts[i].engine->ops->used &&
                m->parts[i].engine->ops->used(m->parts[i].engine, job, ret);
    return known;
}

static bool on_ranks(st_engine *engine, uint64_t job, st_rank_fn *fn, void *ctx)
{
    const mux *m = (const mux *)engine;
    bool known = false;

    for (size_t i = 0; i < m->n && !known; i++)
        known = m->parts[i].engine->ops->ranks &&
                m->parts[i].engine->ops->ranks(m->parts[i].engine, job, fn, ctx);
    return known;
}

static void on_place(st_engine *engine, int64_t branch, int64_t position)
{
    EACH((mux *)engine, e, place, e, branch, position);
}

static void on_tick(st_engine *engine, int64_t now)
{
    EACH((mux *)engine, e, tick, e, now);
}

/* ---- whose -------------------------------------------------------------------------------------- */

static const st_engine *on_part(const st_engine *engine, size_t i)
{
    const mux *m = (const mux *)engine;

    return i < m->n ? m->parts[i].engine : NULL;
}

static int64_t part_of(const mux *m, const char *name, bool agent)
{
    const st_engine *engine = st_engine_of(&m->base, name, agent);

    for (size_t i = 0; i < m->n; i++)
        if (m->parts[i].engine == engine)
            return (int64_t)i;
    return NOBODY;
}

/* A node that was another engine's is gone for that one. */
static void leave(const mux *m, int64_t part, const st_engine_node *said)
{
    st_engine *engine = m->parts[part].engine;
    st_node gone = *said->node;
    st_engine_node last = *said;

    gone.state = ST_NODE_REMOVED;
    last.node = &gone;
    if (engine->ops->node)
        engine->ops->node(engine, &last);
}

static void fail_node(const mux *m, const st_engine_node *said)
{
    st_report r = {.kind = ST_REPORT_NODE, .node = said->node->id, .node_state = ST_NODE_FAILED};

    if (said->node->state == ST_NODE_FAILED || said->node->state == ST_NODE_REMOVED)
        return;
    snprintf(r.reason, sizeof r.reason, "its pool is for the engine %s, which this stintd has not",
             said->pool->rules.engine);
    m->base.report(m->base.ctx, &r);
}

static void on_node(st_engine *engine, const st_engine_node *said)
{
    const mux *m = (const mux *)engine;
    const char *name = said->pool ? said->pool->rules.engine : "";
    int64_t part = part_of(m, name, said->doc != NULL), was = NOBODY;

    if (st_idmap_get(m->owners, (uint64_t)said->node->id, &was) && was != NOBODY && was != part)
        leave(m, was, said);
    if (said->node->state == ST_NODE_REMOVED)
        st_idmap_del(m->owners, (uint64_t)said->node->id);
    else
        st_idmap_put(m->owners, (uint64_t)said->node->id, part);
    if (part == NOBODY)
        fail_node(m, said);
    else if (m->parts[part].engine->ops->node)
        m->parts[part].engine->ops->node(m->parts[part].engine, said);
}

/* ---- orders --------------------------------------------------------------------------------------- */

/* Nobody was told of the node: a simulated fleet has no agents that anybody would wait for. */
static int64_t owner_of(const mux *m, int32_t node)
{
    int64_t part;

    return st_idmap_get(m->owners, (uint64_t)node, &part) ? part : part_of(m, "", false);
}

static void refuse(const mux *m, const st_engine_order *o, const char *why)
{
    st_report r = {.kind = ST_REPORT_ENDED, .job = o->job, .stay = o->stay, .exit_code = 126};

    if (o->kind != ST_ENG_RUN && o->kind != ST_ENG_RESUME)
        return; /* it is over already */
    snprintf(r.reason, sizeof r.reason, "%s", why);
    m->base.report(m->base.ctx, &r);
}

static void on_order(st_engine *engine, const st_engine_order *o)
{
    const mux *m = (const mux *)engine;
    int64_t part;

    if (o->ngrants == 0) {
        EACH(m, e, order, e, o);
        return;
    }
    part = owner_of(m, o->grants[0].node);
    for (int t = 1; t < o->ngrants; t++) {
        if (owner_of(m, o->grants[t].node) != part) {
            refuse(m, o, "its tasks were placed on nodes of several engines; name a pool");
            return;
        }
    }
    if (part == NOBODY || !m->parts[part].engine->ops->order)
        refuse(m, o, "the engine of its nodes is not there, or runs nothing");
    else
        m->parts[part].engine->ops->order(m->parts[part].engine, o);
}

static void on_images(st_engine *engine, int32_t node, const char *list)
{
    const mux *m = (const mux *)engine;
    int64_t part = owner_of(m, node);

    if (part != NOBODY && m->parts[part].engine->ops->images)
        m->parts[part].engine->ops->images(m->parts[part].engine, node, list);
}

static int64_t on_next(st_engine *engine)
{
    const mux *m = (const mux *)engine;
    int64_t next = ST_TIME_NEVER;

    for (size_t i = 0; i < m->n; i++)
        if (m->parts[i].engine->ops->next_ms)
            next = ST_MIN(next, m->parts[i].engine->ops->next_ms(m->parts[i].engine));
    return next;
}

/* Whoever knows the job; where nobody does, in the words of who keeps most, which is asked first. */
static int on_logs(st_engine *engine, const st_log_ask *ask, st_log_got *ret, st_err *err)
{
    const mux *m = (const mux *)engine;
    int r = 0;

    for (size_t i = 0; i < m->n; i++) {
        st_engine *part = m->parts[i].engine;
        st_err why = {0};
        int one = part->ops->logs ? part->ops->logs(part, ask, ret, &why) : -ST_ENOENT;

        if (one == 0)
            return 0;
        if (why.code && (r == 0 || r == -ST_ENOENT) && (r == 0 || one != -ST_ENOENT)) {
            r = one;
            if (err)
                *err = why;
        }
    }
    return r < 0 ? r : st_fail(err, ST_ENOENT, "there is no log of this job");
}

static void on_free(st_engine *engine)
{
    mux *m = (mux *)engine;

    EACH(m, e, free, e);
    st_idmap_free(m->owners);
    free(m->parts);
    free(m);
}

st_engine *st_engine_mux_new(st_engine *const *parts, size_t n)
{
    static const st_engine_ops ops = {
        .name = "auto",
        .lead = on_lead,
        .order = on_order,
        .complete = on_complete,
        .tick = on_tick,
        .next_ms = on_next,
        .node = on_node,
        .images = on_images,
        .logs = on_logs,
        .place = on_place,
        .restored = on_restored,
        .told = on_told,
        .measures = on_measures,
        .used = on_used,
        .ranks = on_ranks,
        .part = on_part,
        .free = on_free,
    };
    mux *m = st_xcalloc(1, sizeof *m);

    ST_ASSERT(n > 0);
    m->base.ops = &ops;
    m->parts = st_xcalloc(n, sizeof *m->parts);
    m->n = n;
    m->owners = st_idmap_new();
    for (size_t i = 0; i < n; i++) {
        m->parts[i] = (mux_part){m, parts[i]};
        parts[i]->report = forward;
        parts[i]->ctx = &m->parts[i];
    }
    return &m->base;
}
