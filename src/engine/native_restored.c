/*
 * Agents that may know more than the store (engine.h, control/restore.h).
 *
 * While the lead is not full, what they say is kept and nothing follows from it: no job ends, no node fails. Their
 * leases hold, so that work goes on while a person looks. Nothing that they said is acknowledged, so they say it again.
 */
#include "engine/native_state.h"

void st_native_hear_restored(native *e, native_node *node, const st_agent_status *status)
{
    bool first = !node->told;

    node->told = true;
    node->told_epoch = ST_MAX(node->told_epoch, status->epoch);
    node->told_revision = status->revision;
    st_vec_clear(&node->said);
    for (size_t i = 0; i < status->n; i++) {
        const st_agent_task *t = &status->tasks[i];
        bool ended = t->state == ST_TASK_EXITED;

        st_vec_push(&node->said,
                    (st_told_task){.node = node->id,
                                   .job = t->job,
                                   .stay = t->stay,
                                   .task = t->task,
                                   .there = st_native_there(t->state),
                                   .by_itself = !t->stopped && !t->odd && !t->node_fault &&
                                                !(status->sick && (t->exit_code || t->signal)),
                                   .well = ended && t->exit_code == 0 && t->signal == 0});
    }
    if (first && e->lead == ST_LEAD_CLEAR)
        st_native_touch(e, node); /* it may have its list now */
}

static bool is_known(const native *e, const st_told_task *t)
{
    const native_job *job = st_native_job_of(e, t->job);

    return job && job->adopted && job->stay == t->stay && t->task >= 0 && t->task < job->tasks &&
           job->task[t->task].grant.node == t->node;
}

/* It goes by the list it was given, and has nothing else. */
static bool is_clear(const native *e, const native_node *node)
{
    if (e->lead != ST_LEAD_CLEAR || !node->told || node->told_revision != node->revision)
        return false;
    for (size_t i = 0; i < node->said.n; i++)
        if (node->said.v[i].there && !is_known(e, &node->said.v[i]))
            return false;
    return true;
}

void st_native_on_told(st_engine *engine, st_told *ret)
{
    native *e = (native *)engine;
    int64_t now = e->opt.clock(e->opt.ctx);

    st_native_lock(e);
    for (size_t i = 0; i < e->nodes.n; i++) {
        const native_node *node = e->nodes.v[i];

        if (node->removed)
            continue;
        st_vec_push(&ret->nodes, (st_told_node){.node = node->id,
                                                .heard = node->told,
                                                .clear = is_clear(e, node),
                                                .over = now >= node->lease_ms,
                                                .left_ms = ST_MAX(node->lease_ms - now, 0),
                                                .epoch = node->told_epoch});
        for (size_t t = 0; t < node->said.n; t++)
            st_vec_push(&ret->tasks, node->said.v[t]);
    }
    st_native_unlock(e);
}

void st_native_on_restored(st_engine *engine, st_lead lead, const uint64_t *adopted, size_t n)
{
    native *e = (native *)engine;

    st_native_lock(e);
    e->lead = lead;
    for (size_t i = 0; i < e->jobs.n; i++)
        e->jobs.v[i]->adopted = false;
    for (size_t i = 0; i < n; i++) {
        native_job *job = st_native_job_of(e, adopted[i]);

        if (job)
            job->adopted = true;
    }
    for (size_t i = 0; i < e->nodes.n; i++)
        if (!e->nodes.v[i]->removed)
            st_native_touch(e, e->nodes.v[i]);
    st_native_unlock(e);
}

bool st_native_leads(st_engine *engine)
{
    native *e = (native *)engine;
    bool leads;

    st_native_lock(e);
    leads = e->lead == ST_LEAD_FULL;
    st_native_unlock(e);
    return leads;
}
