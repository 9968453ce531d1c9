/* Feeding the meter; see metering.h. */
#include "core/metering.h"

#include <inttypes.h>

#include "base/macros.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

typedef struct feed {
    const st_core *core;
    const st_effects *fx;
    const st_metering_hint *hint;
    st_meter *m;
    st_records *out;
} feed;

static void on_start(const feed *f, const st_effect *e)
{
    const st_job *job = st_core_job(f->core, e->job);
    if (!job) { /* over already, in the same moment; what was kept free for it is free */
        st_meter_hold(f->m, e->job, NULL, 0, NULL, e->at_ms);
        return;
    }
    st_job then = *job;
    then.class = e->class;
    then.stay = e->stay;
    then.times = e->times;
    const st_grant *grants = &f->fx->grants.v[e->grants_at];
    if (e->kind == ST_FX_RESUME)
        st_meter_resume(f->m, st_core_tree(f->core), &then, (int32_t)e->type, grants, e->at_ms,
                        f->out);
    else
        st_meter_start(f->m, st_core_tree(f->core), &then, (int32_t)e->type, grants, e->at_ms,
                       f->out);
}

static int64_t ended_ms(const feed *f, uint64_t job)
{
    return f->hint ? f->hint->ended_ms(f->hint->ctx, job) : ST_UNSET;
}

/* Before its first piece ends. */
static void on_began(const feed *f, const st_effect *e)
{
    int64_t began_ms = f->hint && f->hint->started_ms && e->job
                           ? f->hint->started_ms(f->hint->ctx, e->job)
                           : ST_UNSET;

    if (began_ms != ST_UNSET)
        st_meter_began(f->m, e->job, began_ms, e->at_ms);
}

static void on_leave(const feed *f, const st_effect *e, st_cut why)
{
    if (why != ST_CUT_ENDED && st_meter_failed(f->m, e->job))
        why = ST_CUT_FAULT;
    /* What its own account's doing ended is nobody's loss. */
    st_meter_stop(f->m, e->job, e->at_ms, ended_ms(f, e->job), why, e->ordered ? 0 : e->unsaved_ms,
                  f->out);
}

static void on_hold(const feed *f, const st_effect *e)
{
    const st_job *job = st_core_job(f->core, e->job);
    if (job)
        st_meter_hold(f->m, e->job, &f->fx->grants.v[e->grants_at], e->ngrants, &job->shape,
                      e->at_ms);
}

/* The fleet shows how nodes are now; the effect says how this one was then. */
static void on_node(const feed *f, int32_t id, st_node_state state, int64_t at_ms)
{
    st_node then = *st_core_fleet(f->core)->nodes.v[id];
    then.state = state;
    st_meter_node(f->m, &then, at_ms);
}

static void feed_one(const feed *f, const st_effect *e)
{
    if (e->kind != ST_FX_START && e->kind != ST_FX_RESUME)
        on_began(f, e);
    switch (e->kind) {
    case ST_FX_START:
    case ST_FX_RESUME:
        on_start(f, e);
        break;
    case ST_FX_CLASS:
        st_meter_class(f->m, st_core_tree(f->core), e->job, e->class, e->at_ms, f->out);
        break;
    case ST_FX_PAUSE:
        st_meter_pause(f->m, e->job, e->at_ms, e->unsaved_ms, f->out);
        break;
    case ST_FX_REQUEUE:
        on_leave(f, e, e->ordered ? ST_CUT_ENDED : ST_CUT_PREEMPTED);
        break;
    case ST_FX_RETRY:
        on_leave(f, e, ST_CUT_ENDED);
        break;
    case ST_FX_END:
        /* Who loses something by no doing of its own had to go: for another, or for a node that drains. */
        on_leave(f, e,
                 e->other || e->node >= 0 || (e->unsaved_ms > 0 && !e->ordered) ? ST_CUT_PREEMPTED
                                                                                : ST_CUT_ENDED);
        st_meter_forget(f->m, e->job);
        break;
    case ST_FX_HOLD:
        on_hold(f, e);
        break;
    case ST_FX_UNHOLD:
        st_meter_hold(f->m, e->job, NULL, 0, NULL, e->at_ms);
        break;
    case ST_FX_NODE:
        on_node(f, e->node, (st_node_state)e->node_state, e->at_ms);
        break;
    case ST_FX_GPU:
        st_meter_gpu(f->m, e->node, (int)e->other, (st_node_state)e->node_state, e->at_ms);
        break;
    default:
        break;
    }
}

void st_core_meter(const st_core *core, const st_effects *fx, size_t from, int64_t now,
                   const st_metering_hint *hint, st_meter *m, st_records *out)
{
    feed f = {core, fx, hint, m, out};
    const st_effect *floor = NULL;
    st_meter_pools(m, st_core_fleet(core));
    for (size_t i = from; i < fx->list.n; i++) {
        feed_one(&f, &fx->list.v[i]);
        if (fx->list.v[i].kind == ST_FX_FLOOR)
            floor = &fx->list.v[i];
    }
    if (floor) /* the tree has all of them */
        st_meter_floors(m, st_core_tree(core), floor->at_ms, out);
    /* All nodes have had their effects, unless the caller began in the middle. */
    for (size_t i = st_meter_nodes(m); i < st_core_fleet(core)->nodes.n; i++)
        st_meter_node(m, st_core_fleet(core)->nodes.v[i], now);
    st_meter_advance(m, now);
}

static void seed_node(st_meter *m, const st_node *node, int64_t now)
{
    st_meter_node(m, node, now);
    for (int d = 0; node->out && d < node->ndevs; d++)
        st_meter_gpu(m, node->id, d, st_gpu_state(node, d), now);
}

void st_core_meter_seed(const st_core *core, st_meter *m, int64_t now, st_records *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        seed_node(m, fleet->nodes.v[i], now);
    st_meter_floors(m, st_core_tree(core), now, out);
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);
        if (st_job_on_devices(job))
            st_meter_start(m, st_core_tree(core), job, job->type, job->grants, now, out);
        else if (job->held)
            st_meter_hold(m, job->id, job->grants, job->tasks, &job->shape, now);
    }
}

/* ---- comparing ---------------------------------------------------------------------------- */

static int check_job(const st_meter *m, const st_job *job, st_err *err)
{
    int tasks = 0;
    const st_grant *grants = st_meter_grants(m, job->id, &tasks);
    if (!st_job_on_devices(job))
        return grants ? BAD("meter: job %" PRIu64 " is %s and is metered", job->id,
                            st_job_state_name(job->state))
                      : 0;
    if (!grants || tasks != job->tasks)
        return BAD("meter: job %" PRIu64 " is %s and %d of its %d tasks are metered", job->id,
                   st_job_state_name(job->state), tasks, job->tasks);
    for (int t = 0; t < tasks; t++)
        if (grants[t].node != job->grants[t].node || grants[t].devs != job->grants[t].devs ||
            grants[t].mig_start != job->grants[t].mig_start)
            return BAD("meter: job %" PRIu64 " task %d is on node %d devices %#x, metered on node "
                       "%d devices %#x",
                       job->id, t, job->grants[t].node, job->grants[t].devs, grants[t].node,
                       grants[t].devs);
    return 0;
}

static int check_gpus(const st_node *node, const st_meter *m, st_err *err)
{
    for (int d = 0; d < node->ndevs; d++)
        if (st_meter_gpu_state(m, node->id, d) != st_gpu_state(node, d) &&
            node->state != ST_NODE_REMOVED)
            return BAD("meter: GPU %d of node %s is %s, metered as %s", d, node->name,
                       st_node_state_name(st_gpu_state(node, d)),
                       st_node_state_name(st_meter_gpu_state(m, node->id, d)));
    return 0;
}

int st_core_meter_check(const st_core *core, const st_meter *m, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    if (st_meter_nodes(m) != fleet->nodes.n)
        return BAD("meter: %zu nodes are metered, there are %zu", st_meter_nodes(m),
                   fleet->nodes.n);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        if (st_meter_node_state(m, (int32_t)i) != fleet->nodes.v[i]->state)
            return BAD("meter: node %s is %s, metered as %s", fleet->nodes.v[i]->name,
                       st_node_state_name(fleet->nodes.v[i]->state),
                       st_node_state_name(st_meter_node_state(m, (int32_t)i)));
    for (size_t i = 0; i < fleet->nodes.n; i++) {
        int rc = check_gpus(fleet->nodes.v[i], m, err);
        if (rc < 0)
            return rc;
    }
    size_t on = 0;
    for (size_t i = 0; i < st_core_njobs(core); i++) {
        const st_job *job = st_core_job_at(core, i);
        int rc = check_job(m, job, err);
        if (rc < 0)
            return rc;
        on += st_job_on_devices(job);
    }
    if (on != st_meter_stays(m))
        return BAD("meter: %zu jobs are on devices, %zu are metered", on, st_meter_stays(m));
    return 0;
}
