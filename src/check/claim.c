/*
 * Who had to yield to whom: invariants 4 and 5 of core/core.h, at the moment of the decision.
 *
 * A claim shows as a HOLD for the claimant and a NOTIFY for each victim behind it; where the
 * NOTIFY says that the job only moves, the rules of move.c apply instead. The tracks
 * then still show the fleet as the core saw it, so "put one victim back" is tried on a fleet
 * built from scratch without the other victims.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static int64_t min_run_ms(const st_core *core, int32_t account)
{
    const st_tree *tree = st_core_tree(core);
    for (int32_t a = account; a >= 0; a = tree->accounts.v[a]->parent)
        if (tree->accounts.v[a]->min_run_ms != ST_UNSET)
            return tree->accounts.v[a]->min_run_ms;
    return st_core_policy(core)->min_run_ms;
}

int st_watch_victim(const st_step *step, size_t at, st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    const st_policy *policy = st_core_policy(step->core);
    const st_track *t = st_watch_find(step->watch, e->job);
    const st_track *claimant = st_watch_find(step->watch, e->other);
    if (!claimant || !claimant->job.held)
        return BAD("reclaim: job %" PRIu64 " must yield to job %" PRIu64
                   ", for which nothing is held",
                   e->job, e->other);
    if (e->moves) {
        int rc = st_watch_mover(step, t, err);
        if (rc < 0)
            return rc;
    }
    if (claimant->job.class == ST_CLASS_BOOKED)
        return st_watch_lent_victim(step, t, claimant, err);
    if (t->job.class == ST_CLASS_GUARANTEED)
        return BAD("reclaim: guaranteed job %" PRIu64 " must yield to job %" PRIu64, e->job,
                   e->other);
    bool stayed = t->started_ms < step->now; /* not lost with a node and started anew */
    if (t->class_before == ST_CLASS_GUARANTEED && !step->promises_moved && !t->lifted && stayed)
        return BAD("reclaim: job %" PRIu64 " was guaranteed before the step and must yield to job "
                   "%" PRIu64 " although no floor changed",
                   e->job, e->other);
    int64_t ran = step->now - t->started_ms, must = min_run_ms(step->core, t->job.account);
    if (ran < must)
        return BAD("minimum run time: job %" PRIu64 " must yield after %" PRId64
                   " ms, it was promised %" PRId64,
                   e->job, ran, must);
    const st_job *live = st_core_job(step->core, e->other);
    const st_grant *place;
    bool owner = claimant->job.class == ST_CLASS_GUARANTEED ||
                 (live && st_core_has_home(live, &place) && place);
    if (!owner && t->displaced_ms >= 0 && step->now - t->displaced_ms < policy->cooldown_ms)
        return BAD("cooldown: job %" PRIu64 " was displaced %" PRId64
                   " ms ago and must yield again, the cooldown is %" PRId64,
                   e->job, step->now - t->displaced_ms, policy->cooldown_ms);
    if (e->until_ms < step->now + policy->notice_ms)
        return BAD("notice: job %" PRIu64 " is given %" PRId64 " ms, the notice is %" PRId64,
                   e->job, e->until_ms - step->now, policy->notice_ms);
    return 0;
}

/* Mark who yields to the claimant of the HOLD at `at`; returns their milli-GPU, and how many of
 * them only move. */
static int64_t mark_victims(const st_step *step, size_t at, const st_job_list *jobs, uint8_t *out,
                            int *ret_moves)
{
    uint64_t claimant = step->fx->list.v[at].job;
    int64_t sum = 0;
    *ret_moves = 0;
    for (size_t i = at + 1; i < step->fx->list.n; i++) {
        const st_effect *e = &step->fx->list.v[i];
        if ((e->kind == ST_FX_HOLD || e->kind == ST_FX_UNHOLD) && e->job == claimant)
            break;
        if (e->kind != ST_FX_NOTIFY || e->other != claimant)
            continue;
        for (size_t k = 0; k < jobs->n; k++) {
            if (jobs->v[k]->id != e->job)
                continue;
            out[k] = 1;
            *ret_moves += e->moves != 0;
            sum += st_tally_gpu_m(jobs->v[k]);
        }
    }
    return sum;
}

/* Whether there is room for the gang in one very place. */
static bool fits_at(const st_room *room, const st_fleet *fleet, const st_job *job,
                    const st_grant *at)
{
    for (int t = 0; t < job->tasks; t++) {
        uint16_t devs = 0;
        int64_t tasks = 0;
        for (int u = 0; u < job->tasks; u++) {
            if (at[u].node != at[t].node)
                continue;
            devs |= at[u].devs;
            tasks++;
        }
        if (st_room_tasks(room, fleet->nodes.v[at[t].node], job, devs) < tasks)
            return false;
    }
    return true;
}

/* The place a claim is bound to: that of a job whose floor carries it only at home. */
static const st_grant *bound_to(const st_step *step, const st_effect *hold)
{
    const st_job *job = st_core_job(step->core, hold->job);
    const st_grant *place;
    if (!job || hold->class != ST_CLASS_GUARANTEED || !st_core_has_home(job, &place))
        return NULL;
    return &step->fx->grants.v[hold->grants_at];
}

static bool feasible(const st_step *step, const st_job_list *jobs, const uint8_t *out,
                     const st_job *claimant, int32_t type, const st_grant *at)
{
    const st_fleet *fleet = st_core_fleet(step->core);
    const st_tree *tree = st_core_tree(step->core);
    st_room room;
    st_tally tally;
    st_room_build(&room, fleet, tree, jobs, out, ST_WHEN_NEXT);
    st_tally_build(&tally, fleet, tree, jobs, out);
    bool ok =
        (at ? fits_at(&room, fleet, claimant, at) : st_room_fits(&room, claimant, type, false)) &&
        st_tally_max_ok(&tally, claimant, type, ST_NEXT);
    st_room_done(&room);
    st_tally_done(&tally);
    return ok;
}

/* With `swap`: whether the job displaces jobs of its own account alone. */
static bool only_own(const st_step *step, const st_job *claimant, const st_job_list *jobs,
                     const uint8_t *out)
{
    bool own = st_core_policy(step->core)->swap;
    for (size_t i = 0; i < jobs->n; i++)
        own = own && (!out[i] || jobs->v[i]->account == claimant->account);
    return own;
}

/* What may have to yield to the job: a borrower that has not waited long takes no more than it
 * asks for, unless the order is kept by force. */
static int64_t bound_of(const st_step *step, const st_job *job, bool guaranteed)
{
    const st_policy *p = st_core_policy(step->core);
    bool fresh = !guaranteed && !p->swap && !p->as_if_alone &&
                 step->now - job->queued_ms < ST_EXCHANGE_PATIENCE * p->patience_ms;
    return (fresh ? ST_WHOLE_M : p->bound_m) * st_tally_gpu_m(job) / ST_WHOLE_M;
}

int st_watch_claim(const st_step *step, size_t at, st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    const st_track *t = st_watch_find(step->watch, e->job);
    const st_fleet *fleet = st_core_fleet(step->core);
    int32_t type = -1;
    if (e->class == ST_CLASS_BOOKED)
        return 0; /* book.c */
    if (t->job.shape.gpus > 0)
        type = fleet->nodes.v[step->fx->grants.v[e->grants_at].node]->type;

    ST_CLEANUP(st_freep) const st_job **list = NULL;
    st_job_list jobs = st_watch_jobs(step->watch);
    list = jobs.v;
    ST_CLEANUP(st_freep) uint8_t *out = st_xcalloc(jobs.n + 1, 1);
    int moves;
    int64_t evicted = mark_victims(step, at, &jobs, out, &moves);
    int64_t bound = bound_of(step, &t->job, e->class == ST_CLASS_GUARANTEED);
    bool waited = (e->class == ST_CLASS_GUARANTEED || only_own(step, &t->job, &jobs, out)) &&
                  step->now - t->job.queued_ms >= st_core_policy(step->core)->patience_ms;
    if (moves == 0 && evicted > bound && !waited)
        return BAD("bound: %" PRId64 " milli-GPU must yield to job %" PRIu64
                   ", which asks for %" PRId64 "; at most %" PRId64 " may",
                   evicted, e->job, st_tally_gpu_m(&t->job), bound);
    int rc = moves > 0 ? st_watch_moves(step, at, &jobs, out, err)
                       : st_watch_order(step, at, &jobs, out, err);
    if (rc < 0)
        return rc;
    const st_grant *home = bound_to(step, e);
    if (!feasible(step, &jobs, out, &t->job, type, home))
        return BAD("hold: job %" PRIu64 " would not fit even without its victims", e->job);
    for (size_t i = 0; i < jobs.n; i++) {
        if (!out[i])
            continue;
        out[i] = 0;
        bool vague = home && t->job.shape.level != ST_LEVEL_WHOLE; /* parts can shift */
        bool owed = moves == 0 && e->class == ST_CLASS_GUARANTEED &&
                    st_watch_beyond(step, at, &jobs, out, NULL); /* its own excess, with others' */
        if (!vague && !owed && feasible(step, &jobs, out, &t->job, type, home))
            return BAD("minimal: job %" PRIu64 " must yield to job %" PRIu64
                       ", which would fit beside it",
                       jobs.v[i]->id, e->job);
        out[i] = 1;
    }
    return 0;
}
