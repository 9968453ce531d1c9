/*
 * Two engines as one (engine/engine.h): what is placed goes to the engine of its node; everything
 * else goes to both, and the one that does not know the job has nothing to do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "engine/engine.h"

typedef struct mux {
    st_engine base;
    st_engine *sim, *native;
    st_idmap *agents; /* nodes that have one; of the loop alone */
} mux;

/* Engines report through us, so that whoever made us says where to once. */
static void forward(void *ctx, const st_report *report)
{
    mux *m = ctx;

    m->base.report(m->base.ctx, report);
}

static void on_lead(st_engine *engine, int64_t epoch)
{
    mux *m = (mux *)engine;

    m->base.epoch = m->sim->epoch = epoch;
    st_engine_lead(m->native, epoch);
}

static void on_restored(st_engine *engine, st_lead lead, const uint64_t *adopted, size_t n)
{
    mux *m = (mux *)engine;

    m->native->ops->restored(m->native, lead, adopted, n);
}

static void on_told(st_engine *engine, st_told *ret)
{
    mux *m = (mux *)engine;

    m->native->ops->told(m->native, ret);
}

static void on_place(st_engine *engine, int64_t branch, int64_t position)
{
    mux *m = (mux *)engine;

    m->native->ops->place(m->native, branch, position);
}

static void on_order(st_engine *engine, const st_engine_order *o)
{
    mux *m = (mux *)engine;
    int agents = 0;

    for (int t = 0; t < o->ngrants; t++)
        agents += st_idmap_get(m->agents, (uint64_t)o->grants[t].node, NULL);
    if (o->ngrants == 0) {
        m->sim->ops->order(m->sim, o);
        m->native->ops->order(m->native, o);
    } else if (agents == 0) {
        m->sim->ops->order(m->sim, o);
    } else if (agents == o->ngrants) {
        m->native->ops->order(m->native, o);
    } else {
        st_report r = {.kind = ST_REPORT_ENDED, .job = o->job, .stay = o->stay, .exit_code = 126};

        snprintf(r.reason, sizeof r.reason,
                 "its tasks were placed on simulated and on real nodes; give each a pool");
        forward(m, &r);
    }
}

static void on_node(st_engine *engine, const st_engine_node *node)
{
    mux *m = (mux *)engine;

    if (node->doc)
        st_idmap_put(m->agents, (uint64_t)node->node->id, 1);
    m->native->ops->node(m->native, node);
}

static void on_tick(st_engine *engine, int64_t now)
{
    mux *m = (mux *)engine;

    m->sim->ops->tick(m->sim, now);
    m->native->ops->tick(m->native, now);
}

static int64_t on_next(st_engine *engine)
{
    mux *m = (mux *)engine;
    int64_t a = m->sim->ops->next_ms(m->sim), b = m->native->ops->next_ms(m->native);

    return ST_MIN(a, b);
}

static int on_logs(st_engine *engine, const st_log_ask *ask, st_strbuf *ret, int64_t *ret_next,
                   st_err *err)
{
    mux *m = (mux *)engine;
    int r = m->native->ops->logs(m->native, ask, ret, ret_next, err);
    st_err unknown = {0}; /* a simulated job or none: the words of the other are about this one */

    if (r == -ST_ENOENT && m->sim->ops->logs(m->sim, ask, ret, ret_next, &unknown) == 0)
        return 0;
    return r;
}

static void on_free(st_engine *engine)
{
    mux *m = (mux *)engine;

    m->sim->ops->free(m->sim);
    m->native->ops->free(m->native);
    st_idmap_free(m->agents);
    free(m);
}

st_engine *st_engine_mux_new(st_engine *sim, st_engine *native)
{
    static const st_engine_ops ops = {
        .name = "auto",
        .lead = on_lead,
        .order = on_order,
        .tick = on_tick,
        .next_ms = on_next,
        .node = on_node,
        .logs = on_logs,
        .place = on_place,
        .restored = on_restored,
        .told = on_told,
        .free = on_free,
    };
    mux *m = st_xcalloc(1, sizeof *m);

    m->base.ops = &ops;
    m->sim = sim;
    m->native = native;
    m->agents = st_idmap_new();
    sim->report = native->report = forward;
    sim->ctx = native->ctx = m;
    return &m->base;
}
