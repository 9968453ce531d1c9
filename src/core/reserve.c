/* Reservations: blocked jobs at the head of the order get a start in the future, and others
 * may use what they reserve only if they are gone by then.
 *
 * A reservation says: by at_ms enough running jobs will have ended (or, for a guaranteed
 * claimant, will have lost their protection) for `plan`. It is made anew in every pass, once by
 * the limits of the running jobs and, where that is another, once by how long such jobs really
 * run. Whoever is let in meanwhile must suit both: by its forecast it ends before either, or it
 * leaves room for the plan.
 *
 * Forecasts may be wrong. The start by forecasts moves back when somebody outlives his; the
 * start by limits is a promise. Who is let in on a forecast and stays to its limit may move it
 * back, but not beyond what it first was and `overstay`: a promise is kept with the job while
 * it waits, and whose limit is later is not let in on a forecast.
 *
 * Plans are also listed by node: reservations come and go at the end of the list only, so each
 * node's list grows and shrinks at its front. */
#include "core/reserve.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* ---- the list ---------------------------------------------------------------------------- */

static void cover(st_core *core)
{
    size_t n = core->fleet->nodes.n;
    if (core->nlink_at >= n)
        return;
    core->link_at = st_xreallocarray(core->link_at, n, sizeof *core->link_at);
    memset(core->link_at + core->nlink_at, 0, (n - core->nlink_at) * sizeof *core->link_at);
    core->nlink_at = n;
}

/* What a plan is, as a number. */
static uint64_t print_of(const st_grant *plan, int n)
{
    uint64_t h = 7;
    for (int t = 0; t < n; t++)
        h = st_hash_u64(h, (uint64_t)(uint32_t)plan[t].node << 24 | (uint64_t)plan[t].devs << 8 |
                               (uint8_t)plan[t].mig_start);
    return h;
}

/* What is left beside it: its plan, and who is gone by its start. */
static uint64_t number_of(const st_reservation *r)
{
    return st_hash_u64(st_hash_u64(st_hash_u64(r->job, r->print), (uint64_t)r->at_ms), r->by);
}

static void link_plan(st_core *core, size_t at)
{
    st_reservation *r = &core->resv.v[at];
    cover(core);
    r->print = print_of(r->plan, r->ntasks);
    r->number = number_of(r);
    core->nreservers += !r->also && !r->moves;
    for (int t = 0; t < r->ntasks; t++) {
        int32_t *first = &core->link_at[r->plan[t].node];
        st_vec_push(&core->links, (st_plan_link){(int32_t)at, t, *first});
        *first = (int32_t)core->links.n;
    }
}

void st_reserve_push(st_core *core, st_reservation resv)
{
    st_vec_push(&core->resv, resv);
    link_plan(core, core->resv.n - 1);
}

st_reservation st_reserve_pop(st_core *core)
{
    st_reservation r = st_vec_pop(&core->resv);
    core->nreservers -= !r.also && !r.moves;
    for (int t = r.ntasks; t-- > 0;) {
        st_plan_link link = st_vec_pop(&core->links);
        core->link_at[r.plan[t].node] = link.next;
    }
    return r;
}

void st_core_reserve_clear(st_core *core)
{
    while (core->resv.n > 0) {
        st_reservation r = st_reserve_pop(core);
        free(r.plan);
    }
}

void st_core_reserve_index(st_core *core)
{
    ST_ASSERT(core->links.n == 0);
    for (size_t i = 0; i < core->resv.n; i++)
        link_plan(core, i);
}

void st_core_reserve_done(st_core *core)
{
    for (size_t i = 0; i < core->resv.n; i++) /* a load that failed has not linked them */
        free(core->resv.v[i].plan);
    st_vec_free(&core->resv);
    st_vec_free(&core->links);
    free(core->link_at);
    for (size_t i = 0; i < core->profiles.n; i++)
        st_profile_free(core->profiles.v[i]);
    st_vec_free(&core->profiles);
    for (size_t i = 0; i < core->kept.n; i++)
        st_kept_free(core->kept.v[i]);
    st_vec_free(&core->kept);
    st_vec_free(&core->leavers);
    free(core->marks.tick);
}

/* ---- plans by node ----------------------------------------------------------------------- */

const st_plan_link *st_reserve_link(const st_core *core, int32_t node, const st_plan_link *after)
{
    int32_t at = 0;
    if (after)
        at = after->next;
    else if ((size_t)node < core->nlink_at)
        at = core->link_at[node];
    return at > 0 ? &core->links.v[at - 1] : NULL;
}

bool st_reserve_planned(const st_core *core, unsigned by, int32_t node)
{
    for (const st_plan_link *l = st_reserve_link(core, node, NULL); l;
         l = st_reserve_link(core, node, l))
        if (core->resv.v[l->resv].by & by)
            return true;
    return false;
}

void st_reserve_add_plans(st_core *core, unsigned by, const st_node *node, st_view *view)
{
    for (const st_plan_link *l = st_reserve_link(core, node->id, NULL); l;
         l = st_reserve_link(core, node->id, l)) {
        const st_reservation *r = &core->resv.v[l->resv];
        const st_job *job = r->by & by ? st_core_find(core, r->job) : NULL;
        if (job)
            st_whatif_put(core, node, job, &r->plan[l->task], view);
    }
}

uint64_t st_reserve_ahead(const st_core *core, unsigned by)
{
    uint64_t number = 0;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        if (r->by & by)
            number = st_hash_u64(st_hash_u64(number, r->job), r->print);
    }
    return number;
}

uint64_t st_reserve_ahead_at(const st_core *core, unsigned by, int32_t node)
{
    uint64_t number = 0;
    for (const st_plan_link *l = st_reserve_link(core, node, NULL); l;
         l = st_reserve_link(core, node, l)) {
        const st_reservation *r = &core->resv.v[l->resv];
        if (r->by & by)
            number = st_hash_u64(st_hash_u64(number, r->job),
                                 r->plan[l->task].devs |
                                     (uint64_t)(uint8_t)r->plan[l->task].mig_start << 16);
    }
    return number;
}

void st_marks_begin(st_core *core)
{
    st_marks *m = &core->marks;
    size_t n = core->fleet->nodes.n;
    if (m->n < n) {
        m->tick = st_xreallocarray(m->tick, n, sizeof *m->tick);
        memset(m->tick + m->n, 0, (n - m->n) * sizeof *m->tick);
        m->n = n;
    }
    m->now++;
}

bool st_marks_first(st_core *core, int32_t node)
{
    st_marks *m = &core->marks;
    bool first = m->tick[node] != m->now;
    m->tick[node] = m->now;
    return first;
}

/* ---- when they leave --------------------------------------------------------------------- */

int64_t st_reserve_release_ms(const st_core *core, const st_job *job, unsigned by, bool claims)
{
    int64_t out = core->policy.notice_ms + st_core_grace_ms(core, job);
    int64_t at = st_job_end_ms(job, core->now);
    if (by == ST_BY_FORECAST)
        at = ST_MIN(at, job->expect_ms);
    if (job->state == ST_JOB_CHECKPOINTING || job->state == ST_JOB_STOPPING)
        at = ST_MIN(at, job->deadline_ms);
    else if (job->state == ST_JOB_NOTIFIED)
        at = ST_MIN(at, job->deadline_ms + st_core_grace_ms(core, job));
    else if (claims && job->class == ST_CLASS_BURSTABLE)
        at = ST_MIN(at, st_core_protected_until(core, job, true) + out);
    return at;
}

int64_t st_core_release_ms(const st_core *core, const st_job *job)
{
    return st_reserve_release_ms(core, job, ST_BY_LIMITS, false);
}

void st_core_retime(st_core *core, const st_job *job)
{
    st_core_changed(core, ST_CHANGED_STANDING);
    for (int t = 0; st_job_on_devices(job) && t < job->tasks; t++)
        if (t == 0 || job->grants[t].node != job->grants[t - 1].node)
            st_node_touch(core->fleet, core->fleet->nodes.v[job->grants[t].node]);
}

void st_core_retime_all(st_core *core)
{
    st_core_changed(core, ST_CHANGED_STANDING);
    core->retimed++;
}

/* ---- making one -------------------------------------------------------------------------- */

static bool reserve_by(st_core *core, const st_job *job, unsigned by, st_reservation *r)
{
    r->by = by;
    bool ok = st_profile_serves(job) ? st_reserve_kept(core, job, r)
                                     : st_reserve_slowly(core, job, false, r);
    if (ok)
        r->at_ms = ST_MAX(r->at_ms, core->now);
    return ok;
}

void st_core_reserve(st_core *core, const st_job *job, int32_t type, bool guaranteed, bool claims)
{
    st_reservation r = {.job = job->id,
                        .guaranteed = guaranteed,
                        .claims = claims,
                        .type = type,
                        .ntasks = job->tasks};
    st_reservation limits = r, forecast = r;
    bool first = reserve_by(core, job, ST_BY_LIMITS, &limits);
    bool second = core->policy.forecast && reserve_by(core, job, ST_BY_FORECAST, &forecast);
    if (first)
        limits.promise_ms = ST_MIN(job->promise_ms, limits.at_ms + core->policy.overstay_ms);
    bool same = first && second && forecast.at_ms == limits.at_ms &&
                print_of(forecast.plan, job->tasks) == print_of(limits.plan, job->tasks);
    if (same || !core->policy.forecast)
        limits.by |= ST_BY_FORECAST;
    if (same) {
        free(forecast.plan);
        second = false;
    }
    if (first)
        st_reserve_push(core, limits);
    if (second) {
        forecast.also = first;
        st_reserve_push(core, forecast);
    }
}

void st_core_reserve_place(st_core *core, const st_job *mover)
{
    st_reservation r = {.job = mover->id,
                        .at_ms = ST_MAX(st_core_release_ms(core, mover), core->now),
                        .by = ST_BY_LIMITS | ST_BY_FORECAST,
                        .guaranteed = mover->class == ST_CLASS_GUARANTEED,
                        .claims = true,
                        .moves = true,
                        .type = mover->type,
                        .ntasks = mover->tasks};
    for (int t = 0; t < mover->tasks; t++)
        if (core->fleet->nodes.v[mover->to[t].node]->state != ST_NODE_READY ||
            (core->fleet->nodes.v[mover->to[t].node]->out & mover->to[t].devs))
            return;
    r.promise_ms = r.at_ms;
    r.plan = st_xcalloc((size_t)mover->tasks, sizeof *r.plan);
    memcpy(r.plan, mover->to, (size_t)mover->tasks * sizeof *r.plan);
    st_reserve_push(core, r);
}

/* ---- reading them ------------------------------------------------------------------------ */

void st_core_promise(st_core *core)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        if ((r->by & ST_BY_LIMITS) && !r->moves)
            st_core_find(core, r->job)->promise_ms = r->promise_ms;
    }
}

size_t st_core_reservers(const st_core *core)
{
    return core->nreservers;
}

void st_core_reserved(const st_core *core, st_reserved_list *ret)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        int64_t by_ms = r->by & ST_BY_LIMITS ? r->at_ms : ST_TIME_NEVER;
        if (r->moves)
            continue;
        if (r->also)
            ret->v[ret->n - 1].at_ms = ST_MIN(ret->v[ret->n - 1].at_ms, r->at_ms);
        else
            st_vec_push(ret,
                        (st_reserved){r->job, r->at_ms, by_ms, r->type, r->guaranteed, r->claims});
    }
}
