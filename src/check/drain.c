/*
 * Nodes that drain by a time (core/drain.c), from outside: by what was said of the node and by the clock.
 */
#include <inttypes.h>

#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static const st_node *node_of(const st_core *core, const st_job *job, int task)
{
    return st_core_fleet(core)->nodes.v[job->grants[task].node];
}

static bool has_deadline(const st_node *node)
{
    return node->state == ST_NODE_DRAINING && node->drain_ms > 0 &&
           node->drain_then != ST_DRAIN_WAIT;
}

static st_watch_drain drain_of(const st_node *node)
{
    return has_deadline(node) ? (st_watch_drain){node->drain_ms, node->drain_then}
                              : (st_watch_drain){0};
}

void st_watch_note_drains(const st_step *step)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    st_watch *w = step->watch;
    st_vec_clear(&w->drains);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        st_vec_push(&w->drains, drain_of(fleet->nodes.v[i]));
    for (size_t i = 0; i < w->tracks.n; i++) {
        st_track *t = w->tracks.v[i];
        for (int k = 0; t->job.state == ST_JOB_CHECKPOINTING && k < t->job.tasks; k++) {
            int64_t by_ms = w->drains.v[t->job.grants[k].node].by_ms;
            if (by_ms > 0)
                t->save_by_ms = ST_MIN(t->save_by_ms ? t->save_by_ms : by_ms, by_ms);
        }
    }
}

/* Whether one of its nodes drains and needs it gone within `ahead_ms`: as it is now, or as it was when the step began,
 * for what is due comes before what is said. */
static bool within(const st_step *step, const st_track *t, int64_t ahead_ms, bool emptied)
{
    for (int i = 0; t->job.grants && i < t->job.tasks; i++) {
        const st_node *node = node_of(step->core, &t->job, i);
        st_watch_drain d[2] = {drain_of(node)};
        if ((size_t)node->id < step->watch->drains.n)
            d[1] = step->watch->drains.v[node->id];
        for (int k = 0; k < 2; k++)
            if (d[k].by_ms > 0 && d[k].by_ms - ahead_ms <= step->now &&
                (!emptied || d[k].then == ST_DRAIN_REQUEUE))
                return true;
    }
    return false;
}

static int64_t ahead_ms(const st_step *step)
{
    const st_policy *p = st_core_policy(step->core);
    return p->notice_ms + st_watch_longest_ms(step->core);
}

bool st_watch_drains(const st_step *step, const st_track *t)
{
    return within(step, t, ahead_ms(step), false);
}

bool st_watch_drained(const st_step *step, const st_track *t)
{
    return (t->save_by_ms > 0 && t->save_by_ms <= step->now) || within(step, t, 0, false);
}

/* It was told when notice and grace may have been longer: that it was is enough. Who leaves for somebody else is told
 * nothing more. */
bool st_watch_empties(const st_step *step, const st_track *t)
{
    return within(step, t, t->ordered_ms > 0 ? ST_TIME_NEVER / 2 : ahead_ms(step), true);
}

int st_watch_told_drain(const st_step *step, const st_effect *e, st_err *err)
{
    const st_track *t = st_watch_find(step->watch, e->job);
    const st_fleet *fleet = st_core_fleet(step->core);
    if (!t || e->node < 0 || (size_t)e->node >= fleet->nodes.n)
        return BAD("effects: drain for job %" PRIu64 ", which is not there", e->job);
    for (int i = 0; t->job.grants && i < t->job.tasks; i++)
        if (t->job.grants[i].node == e->node)
            return 0;
    return BAD("effects: job %" PRIu64 " is told that node %s drains, and is not on it", e->job,
               fleet->nodes.v[e->node]->name);
}

int st_check_drains(const st_core *core, const st_job_list *jobs, st_err *err)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const st_job *job = jobs->v[i];
        bool paused = job->state == ST_JOB_PAUSED;
        if (!job->grants || job->stopping || (!st_room_is_now(job) && !paused))
            continue;
        for (int t = 0; t < job->tasks; t++) {
            const st_node *node = node_of(core, job, t);
            if (!has_deadline(node) || node->drain_ms > st_core_now(core) ||
                (paused && node->drain_then == ST_DRAIN_PAUSE))
                continue;
            return BAD("drain: job %" PRIu64 " is %s on node %s at %" PRId64
                       ", it was to be off it by %" PRId64,
                       job->id, st_job_state_name(job->state), node->name, st_core_now(core),
                       node->drain_ms);
        }
    }
    return 0;
}
