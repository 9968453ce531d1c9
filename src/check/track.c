/*
 * Tracks: every live job as its effects so far describe it. The core's own record of a job is
 * never copied, so that what the effects leave out shows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check/watch.h"

st_watch *st_watch_new(const st_core *core)
{
    ST_ASSERT(st_core_njobs(core) == 0);
    st_watch *watch = st_xcalloc(1, sizeof *watch);
    watch->due_ms = ST_TIME_NEVER;
    return watch;
}

static void track_free(st_track *t)
{
    free(t->job.grants);
    free(t->job.afters);
    free(t);
}

void st_watch_free(st_watch *watch)
{
    if (!watch)
        return;
    for (size_t i = 0; i < watch->tracks.n; i++)
        track_free(watch->tracks.v[i]);
    st_vec_free(&watch->tracks);
    st_vec_free(&watch->floors);
    st_vec_free(&watch->homes);
    st_vec_free(&watch->unproven);
    st_vec_free(&watch->gpus_unproven);
    st_vec_free(&watch->drains);
    st_vec_free(&watch->served);
    st_vec_free(&watch->taken);
    st_vec_free(&watch->drains);
    st_vec_free(&watch->arrays);
    free(watch);
}

static size_t position(const st_watch *watch, uint64_t id)
{
    size_t i = watch->tracks.n;
    while (i > 0 && watch->tracks.v[i - 1]->job.id >= id)
        i--;
    return i;
}

st_track *st_watch_find(const st_watch *watch, uint64_t id)
{
    size_t i = position(watch, id);
    return i < watch->tracks.n && watch->tracks.v[i]->job.id == id ? watch->tracks.v[i] : NULL;
}

st_job_list st_watch_jobs(const st_watch *watch)
{
    st_job_list list = {0};
    st_vec_reserve(&list, watch->tracks.n + 1);
    for (size_t i = 0; i < watch->tracks.n; i++)
        st_vec_push(&list, &watch->tracks.v[i]->job);
    return list;
}

st_watch_counts st_watch_counted(const st_watch *watch)
{
    return watch->counts;
}

/* Under which the fleet has the text; 0: none was said. */
static uint64_t number_of(const st_fleet *fleet, const char *nodes)
{
    for (size_t i = 0; nodes && nodes[0] && i < fleet->picks.n; i++)
        if (strcmp(fleet->picks.v[i].text, nodes) == 0)
            return fleet->picks.v[i].number;
    return 0;
}

/* The job as it was submitted: from the event, since it may be over by the end of the step. */
void st_watch_add(const st_step *step, uint64_t id)
{
    const st_tree *tree = st_core_tree(step->core);
    st_track *t = st_xcalloc(1, sizeof *t);
    t->job = (st_job){.id = id, .type = -1};
    t->started_ms = t->displaced_ms = -1;
    t->line_ms = step->now;
    for (size_t i = 0; i < step->nevents; i++) {
        const st_event *ev = step->events[i];
        const st_job_spec *spec = &ev->u.job;
        int64_t user = -1;
        if (ev->kind == ST_EV_PRIORITY && ev->u.priority.id == id)
            t->job.priority = ev->u.priority.priority;
        if (ev->kind == ST_EV_LIMIT && ev->u.limit.id == id)
            t->job.limit_ms = ev->u.limit.limit_ms;
        if (ev->kind == ST_EV_BAR && ev->u.bar.id == id)
            t->job.barred = ev->u.bar.on ? ST_BAR_ORDER : 0;
        if (ev->kind != ST_EV_SUBMIT || spec->id != id)
            continue;
        st_map_get(tree->user_ids, spec->user, &user);
        t->job.account = st_tree_find(tree, spec->account);
        t->job.user = (int32_t)user;
        t->job.pool = spec->pool;
        t->job.tasks = spec->tasks;
        t->job.shape = spec->shape;
        t->job.shape.nodes = number_of(st_core_fleet(step->core), spec->nodes);
        t->job.topo = spec->topo;
        t->job.topo_required = spec->topo_required;
        t->job.latency_critical = spec->latency_critical;
        t->job.priority = spec->priority;
        t->job.meek = spec->meek;
        t->job.fails = spec->fails;
        t->job.limit_ms = spec->limit_ms;
        t->job.yield = spec->yield;
        t->job.grace_ms = spec->grace_ms;
        t->job.series = spec->series; /* worlds name it by its number */
        t->job.begin_ms = spec->begin_ms;
        t->job.end_by_ms = spec->end_by_ms;
        t->job.by_ms = spec->by_ms;
        t->job.hold = spec->hard ? spec->hold : 0;
        st_watch_flow_add(step, t, spec);
    }
    st_watch_flow_hear(step, t);
    t->limit_before_ms = t->job.limit_ms;
    /* Which of the types it allows are able to serve it at all is the core's to find out. */
    const st_job *job = st_core_job(step->core, id);
    if (job)
        t->job.shape.types = job->shape.types;
    st_watch_harm(step, t);
    size_t at = position(step->watch, id);
    st_vec_insert(&step->watch->tracks, at, t);
}

void st_watch_drop(st_watch *watch, uint64_t id)
{
    size_t at = position(watch, id);
    ST_ASSERT(at < watch->tracks.n && watch->tracks.v[at]->job.id == id);
    track_free(watch->tracks.v[at]);
    st_vec_remove(&watch->tracks, at);
}

bool st_watch_fails(const st_step *step, uint64_t job)
{
    for (size_t i = 0; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if (e->job == job && e->kind == ST_FX_STOP && e->after == ST_JOB_FAILED)
            return true;
    }
    return false;
}
