/*
 * Jobs that are moved so that another can land (policy `defrag`): only those who lose nothing by
 * it, only where each has somewhere to go, and only if it can be worth it.
 *
 * That each mover by itself has a place beside the claimant's is necessary, not sufficient; how
 * long the claimant would have waited is not known here, so the gain is bounded from above. Both
 * are decided from scratch.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

int st_watch_mover(const st_step *step, const st_track *mover, st_err *err)
{
    const st_policy *policy = st_core_policy(step->core);
    if (!policy->defrag)
        return BAD("moves: job %" PRIu64 " is moved, and nobody is to be", mover->job.id);
    if (mover->job.yield != ST_YIELD_CHECKPOINT || st_watch_grace_ms(step->core, mover) == 0)
        return BAD("moves: job %" PRIu64 " is moved and would lose its progress", mover->job.id);
    return 0;
}

/* Whether the mover fits beside the claimant's plan once all movers are off their places. */
static bool has_place(const st_step *step, const st_job_list *jobs, const uint8_t *out,
                      const st_job *mover)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    st_room room;
    st_room_build(&room, fleet, st_core_tree(step->core), jobs, out, ST_WHEN_NEXT);
    bool ok = st_room_fits(&room, mover, mover->type, false);
    st_room_done(&room);
    return ok;
}

int st_watch_moves(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                   st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    const st_policy *policy = st_core_policy(step->core);
    const st_job *claimant = &st_watch_find(step->watch, e->job)->job;
    st_job held = *claimant;
    ST_CLEANUP(st_freep) st_grant *plan = st_xcalloc((size_t)held.tasks, sizeof *plan);
    ST_CLEANUP(st_freep) const st_job **with = st_xcalloc(jobs->n + 1, sizeof *with);
    for (int i = 0; i < held.tasks; i++)
        plan[i] = step->fx->grants.v[e->grants_at + (size_t)i];
    held.grants = plan;
    held.held = true;
    held.type = st_core_fleet(step->core)->nodes.v[plan[0].node]->type;
    for (size_t i = 0; i < jobs->n; i++)
        with[i] = jobs->v[i] == claimant ? &held : jobs->v[i];
    st_job_list there = {.v = with, .n = jobs->n};

    int64_t moved_m = 0;
    for (size_t i = 0; i < jobs->n; i++)
        moved_m += out[i] ? st_tally_gpu_m(jobs->v[i]) : 0;
    int64_t cost = moved_m * (policy->notice_ms + policy->grace_ms + policy->defrag_restore_ms);
    int64_t gain = st_tally_gpu_m(claimant) * policy->defrag_horizon_ms;
    if (gain <= cost)
        return BAD("moves: job %" PRIu64 " gains at most %" PRId64
                   " milli-GPU x ms, and moving others for it costs %" PRId64,
                   e->job, gain, cost);
    for (size_t i = 0; i < jobs->n; i++)
        if (out[i] && !has_place(step, &there, out, jobs->v[i]))
            return BAD("moves: job %" PRIu64 " is moved for job %" PRIu64 " and has nowhere to go",
                       jobs->v[i]->id, e->job);
    return 0;
}
