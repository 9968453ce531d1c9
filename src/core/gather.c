/* Reservations: blocked jobs at the head of the order get a start in the future, and others
 * may use what they gather only if they are gone by then.
 *
 * A reservation says: by at_ms enough running jobs will have ended (or, for a guaranteed
 * claimant, will have lost their protection) for `plan`. It is made anew in every pass, once by
 * the limits of the running jobs and, where that is sooner, once by how long such jobs really
 * run. Whoever is let in meanwhile must suit both: by its forecast it ends before either, or it
 * leaves room for the plan.
 *
 * Forecasts may be wrong. The start by forecasts moves back when somebody outlives his; the
 * start by limits is a promise. Who is let in on a forecast and stays to its limit may move it
 * back, but not beyond what it first was and `overstay`: a promise is kept with the job while
 * it waits, and whose limit is later is not let in on a forecast. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/state.h"

void st_core_gather_clear(st_core *core)
{
    for (size_t i = 0; i < core->resv.n; i++)
        free(core->resv.v[i].plan);
    st_vec_clear(&core->resv);
}

static const st_job *resv_job(const st_core *core, const st_resv *r)
{
    return st_core_find(core, r->job);
}

/* Put a reservation's plan into a view of one node. */
static void add_plan(st_core *core, const st_resv *r, const st_node *node, st_view *view)
{
    const st_job *job = resv_job(core, r);
    for (int t = 0; job && t < r->ntasks; t++)
        if (r->plan[t].node == node->id)
            st_whatif_put(core, node, job, &r->plan[t], view);
}

static bool touches(const st_resv *r, int32_t node)
{
    for (int t = 0; t < r->ntasks; t++)
        if (r->plan[t].node == node)
            return true;
    return false;
}

size_t st_core_gatherers(const st_core *core)
{
    size_t n = 0;
    for (size_t i = 0; i < core->resv.n; i++)
        n += !core->resv.v[i].also && !core->resv.v[i].moves;
    return n;
}

void st_core_gathered(const st_core *core, st_gathered_list *ret)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        int64_t by_ms = r->by & ST_BY_LIMITS ? r->at_ms : ST_TIME_NEVER;
        if (r->moves)
            continue;
        if (r->also)
            ret->v[ret->n - 1].at_ms = ST_MIN(ret->v[ret->n - 1].at_ms, r->at_ms);
        else
            st_vec_push(ret, (st_gathered){r->job, r->at_ms, by_ms, r->type, r->sure, r->claims});
    }
}

/* ---- making one ------------------------------------------------------------------------ */

/* A gathering on its way, by one basis; it sees the plans of those ahead by the same. */
typedef struct gathering {
    st_core *core;
    unsigned by;
} gathering;

static int by_time(const void *pa, const void *pb)
{
    const st_release *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}

/* When the job will be off its devices at the latest, as far as the asker is concerned. */
static int64_t release_ms(const st_core *core, const st_job *job, unsigned by, bool claims)
{
    int64_t out = core->policy.notice_ms + core->policy.grace_ms;
    int64_t at = st_job_end_ms(job, core->now);
    if (by == ST_BY_FORECAST)
        at = ST_MIN(at, job->expect_ms);
    if (job->state == ST_JOB_CHECKPOINTING)
        at = ST_MIN(at, job->deadline_ms);
    else if (job->state == ST_JOB_NOTIFIED)
        at = ST_MIN(at, job->deadline_ms + core->policy.grace_ms);
    else if (claims && job->class == ST_CLASS_BURSTABLE)
        at = ST_MIN(at, st_core_protected_until(core, job) + out);
    return at;
}

int64_t st_core_release_ms(const st_core *core, const st_job *job)
{
    return release_ms(core, job, ST_BY_LIMITS, false);
}

static const st_view *planned_view(void *ctx, const st_node *node)
{
    const gathering *g = ctx;
    st_core *core = g->core;
    bool planned = false;
    for (size_t i = 0; i < core->resv.n && !planned; i++)
        planned = (core->resv.v[i].by & g->by) && touches(&core->resv.v[i], node->id);
    if (!planned)
        return st_whatif_view(core, node);
    /* Edited in place, and rebuilt the next time it is asked for. */
    core->whatif.stamp[node->id] = 0;
    st_view *view = st_whatif_edit(core, node);
    for (size_t i = 0; i < core->resv.n; i++)
        if (core->resv.v[i].by & g->by)
            add_plan(core, &core->resv.v[i], node, view);
    return view;
}

/* Think releases [from, to) away, or back in. */
static void think(gathering *g, const st_release *list, size_t from, size_t to, bool out,
                  st_rooms *rooms)
{
    st_core *core = g->core;
    for (size_t i = from; i < to; i++)
        list[i].job->out = out ? ST_OUT_ENDED : ST_OUT_NOT;
    for (size_t i = from; i < to; i++) {
        const st_job *job = list[i].job;
        st_whatif_touch(core, job, NULL);
        for (int t = 0; rooms && t < job->tasks; t++) {
            const st_node *node = core->fleet->nodes.v[job->grants[t].node];
            if (t == 0 || job->grants[t - 1].node != node->id)
                st_rooms_set(core->placer, rooms, node, planned_view(g, node));
        }
    }
}

static void shift(gathering *g, const st_release *list, size_t have, size_t want, st_rooms *rooms)
{
    if (want > have)
        think(g, list, have, want, true, rooms);
    else
        think(g, list, want, have, false, rooms);
}

/* Set the rooms of all nodes of reservations to their planned view, or back. */
static void plan_rooms(gathering *g, st_rooms *rooms, bool planned)
{
    st_core *core = g->core;
    for (size_t i = 0; rooms && i < core->resv.n; i++) {
        if (!(core->resv.v[i].by & g->by))
            continue;
        for (int t = 0; t < core->resv.v[i].ntasks; t++) {
            const st_node *node = core->fleet->nodes.v[core->resv.v[i].plan[t].node];
            st_rooms_set(core->placer, rooms, node, planned ? planned_view(g, node) : &node->view);
        }
    }
}

/* The fewest releases, in order of time, after which the job fits; n + 1 when not even all
 * are enough. Leaves that many thought away. */
static size_t fewest(gathering *g, const st_ask *ask, const st_release *list, size_t n)
{
    st_core *core = g->core;
    /* Near ones first: what is needed is often little of what is there. */
    size_t have = 0, lo = 0, hi = 0;
    while (!st_place_fits(core->placer, ask)) {
        if (have == n)
            return n + 1;
        lo = have + 1;
        hi = ST_MIN(2 * have + 1, n);
        shift(g, list, have, hi, ask->rooms);
        have = hi;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        shift(g, list, have, mid, ask->rooms);
        have = mid;
        if (st_place_fits(core->placer, ask))
            hi = mid;
        else
            lo = mid + 1;
    }
    shift(g, list, have, hi, ask->rooms);
    return hi;
}

/* Everybody's release, in order; those by forecasts only where they differ from limits. */
static const st_releases *releases(st_core *core, unsigned by, bool claims)
{
    st_releases *r = &core->releases[2 * (by == ST_BY_FORECAST) + claims];
    if (r->version == core->version && r->now == core->now)
        return r;
    r->version = core->version;
    r->now = core->now;
    r->sooner = false;
    st_vec_clear(&r->list);
    for (size_t i = 0; i < core->placed.n; i++) {
        st_job *job = core->placed.v[i];
        int64_t at_ms = release_ms(core, job, by, claims);
        if (by == ST_BY_FORECAST)
            r->sooner |= at_ms < release_ms(core, job, ST_BY_LIMITS, claims);
        if (at_ms != ST_TIME_NEVER)
            st_vec_push(&r->list, (st_release){at_ms, job});
    }
    if (r->list.n > 1 && (by == ST_BY_LIMITS || r->sooner))
        qsort(r->list.v, r->list.n, sizeof *r->list.v, by_time);
    return r;
}

/* Gather by one basis; r says for whom. False when there will never be room. */
static bool gather_by(st_core *core, const st_job *job, unsigned by, st_resv *r)
{
    gathering g = {core, by};
    const st_release *list = releases(core, by, r->claims)->list.v;
    size_t all = releases(core, by, r->claims)->list.n;
    st_whatif_begin(core, ST_WHEN_EITHER);
    st_ask ask = {.job = job, .type = r->type, .view = planned_view, .ctx = &g};
    ask.rooms = st_rooms_of(core->placer, job, r->type);
    plan_rooms(&g, ask.rooms, true);
    size_t n = fewest(&g, &ask, list, all);
    if (n <= all) {
        r->by = by;
        r->at_ms = n == 0 ? core->now : ST_MAX(list[n - 1].at_ms, core->now);
        r->plan = st_xcalloc((size_t)job->tasks, sizeof *r->plan);
        bool ok = st_place_gang(core->placer, &ask, r->plan);
        ST_ASSERT(ok);
    }
    shift(&g, list, ST_MIN(n, all), 0, ask.rooms);
    plan_rooms(&g, ask.rooms, false);
    return r->plan;
}

void st_core_gather(st_core *core, const st_job *job, int32_t type, bool sure, bool claims)
{
    st_resv r = {
        .job = job->id, .sure = sure, .claims = claims, .type = type, .ntasks = job->tasks};
    st_resv limits = r, forecast = r;
    bool twice = core->policy.forecast && releases(core, ST_BY_FORECAST, claims)->sooner;
    bool first = gather_by(core, job, ST_BY_LIMITS, &limits);
    if (first) {
        limits.by |= twice ? 0 : ST_BY_FORECAST;
        limits.promise_ms = ST_MIN(job->promise_ms, limits.at_ms + core->policy.overstay_ms);
        st_vec_push(&core->resv, limits);
    }
    if (twice && gather_by(core, job, ST_BY_FORECAST, &forecast)) {
        forecast.also = first;
        st_vec_push(&core->resv, forecast);
    }
}

void st_core_promise(st_core *core)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if ((r->by & ST_BY_LIMITS) && !r->moves)
            st_core_find(core, r->job)->promise_ms = r->promise_ms;
    }
}

void st_core_gather_place(st_core *core, const st_job *mover)
{
    st_resv r = {.job = mover->id,
                 .at_ms = ST_MAX(st_core_release_ms(core, mover), core->now),
                 .by = ST_BY_LIMITS | ST_BY_FORECAST,
                 .sure = mover->class == ST_CLASS_GUARANTEED,
                 .claims = true,
                 .moves = true,
                 .type = mover->type,
                 .ntasks = mover->tasks};
    for (int t = 0; t < mover->tasks; t++)
        if (core->fleet->nodes.v[mover->to[t].node]->state != ST_NODE_READY)
            return;
    r.promise_ms = r.at_ms;
    r.plan = st_xcalloc((size_t)mover->tasks, sizeof *r.plan);
    memcpy(r.plan, mover->to, (size_t)mover->tasks * sizeof *r.plan);
    st_vec_push(&core->resv, r);
}

/* ---- respecting them ------------------------------------------------------------------- */

/* When a job that starts now ends: by its limit, and by what is known of such jobs. */
typedef struct ends {
    int64_t limit_ms, forecast_ms;
} ends;

typedef struct backfill_ctx {
    st_core *core;
    const st_job *job;
    ends ends;
} backfill_ctx;

/* The node at the reservation's start: what has ended is gone, the plan is in. */
static void view_then(st_core *core, const st_resv *r, const st_node *node, st_view *ret)
{
    for (size_t i = 0; i < node->residents.n; i++) {
        st_job *job = node->residents.v[i].job;
        unsigned by = r->by & ST_BY_LIMITS ? ST_BY_LIMITS : ST_BY_FORECAST;
        bool ended = st_job_on_devices(job) && release_ms(core, job, by, false) <= r->at_ms;
        if (job->out == ST_OUT_NOT && ended)
            job->out = ST_OUT_ENDED;
    }
    st_view_build(core->fleet, core->tree, node, ST_WHEN_EITHER, ret);
    for (size_t i = 0; i < node->residents.n; i++)
        if (node->residents.v[i].job->out == ST_OUT_ENDED)
            node->residents.v[i].job->out = ST_OUT_NOT;
    add_plan(core, r, node, ret);
}

/* What is free in both views. Slices and shares may still collide; the grants are tried in
 * the later view before they count. */
static void meet(const st_node *node, st_view *view, const st_view *then)
{
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        st_dev *a = &view->dev[d];
        const st_dev *b = &then->dev[d];
        if (b->mode == ST_DEV_FREE)
            continue;
        if (a->mode == ST_DEV_FREE)
            *a = *b;
        else if (a->mode != b->mode)
            a->mode = ST_DEV_WHOLE;
        else {
            a->mig_mask |= b->mig_mask;
            a->mig_compute = ST_MAX(a->mig_compute, b->mig_compute);
            a->used_m = ST_MAX(a->used_m, b->used_m);
            a->vram_mib = ST_MAX(a->vram_mib, b->vram_mib);
            a->clients = ST_MAX(a->clients, b->clients);
            a->latency_critical |= b->latency_critical;
            if (a->owner != b->owner)
                a->owner = ST_OWNER_MIXED;
            if (a->domain != b->domain)
                a->domain = ST_OWNER_MIXED;
        }
    }
    view->cpu_free_m = ST_MIN(view->cpu_free_m, then->cpu_free_m);
    view->ram_free_mib = ST_MIN(view->ram_free_mib, then->ram_free_mib);
    st_view_seal(node, view);
}

/* Whom the blocked job may displace once it can use the place need not keep out of it: a borrower
 * of its own account that it is ahead of (policy `swap`). */
static bool gives_way(const st_core *core, const st_resv *r, const st_job *job)
{
    const st_job *ahead = core->policy.swap && !r->sure && !r->moves ? resv_job(core, r) : NULL;
    return ahead && ahead->account == job->account &&
           st_order_swaps(core->tree, &core->policy, ahead, job, core->now);
}

static bool binds(const st_core *core, const st_resv *r, const st_job *job, const ends *e)
{
    bool late = e->forecast_ms > r->at_ms;
    if ((r->by & ST_BY_LIMITS) && !ST_BROKEN(OVERSTAY))
        late |= e->limit_ms > ST_MAX(r->at_ms, r->promise_ms);
    return late && r->job != job->id && !gives_way(core, r, job) && !ST_BROKEN(STARVE);
}

static ends ends_of(const st_core *core, const st_job *job)
{
    int64_t limit_ms = st_job_end_ms(job, core->now);
    ends e = {limit_ms, limit_ms};
    for (size_t i = 0; i < core->resv.n; i++) {
        if (core->policy.forecast && limit_ms > core->resv.v[i].at_ms) {
            e.forecast_ms = st_core_safe_end_ms(core, st_core_find(core, job->id));
            break;
        }
    }
    return e;
}

static const st_view *backfill_view(void *ctx, const st_node *node)
{
    const backfill_ctx *b = ctx;
    st_core *core = b->core;
    st_view *edit = NULL;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if (!binds(core, r, b->job, &b->ends) || !touches(r, node->id))
            continue;
        if (!edit) {
            core->whatif.stamp[node->id] = 0;
            edit = st_whatif_edit(core, node);
        }
        st_view then;
        view_then(core, r, node, &then);
        meet(node, edit, &then);
    }
    return edit ? edit : &node->view;
}

static int collides(st_core *core, const st_job *job, const ends *e, const st_grant *grants)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if (!binds(core, r, job, e))
            continue;
        for (int t = 0; t < job->tasks; t++) {
            if (!touches(r, grants[t].node))
                continue;
            const st_node *node = core->fleet->nodes.v[grants[t].node];
            st_view then;
            view_then(core, r, node, &then);
            for (int u = 0; u < job->tasks; u++)
                if (grants[u].node == node->id &&
                    st_view_add(core->fleet, core->tree, node, job, &grants[u], &then) < 0)
                    return (int)i;
        }
    }
    return -1;
}

int st_core_collides(st_core *core, const st_job *job, int64_t end_ms, const st_grant *grants)
{
    return collides(core, job, &(ends){end_ms, end_ms}, grants);
}

/* The first reservation that binds, or -1. */
static int first_bound(const st_core *core, const st_job *job, const ends *e)
{
    for (size_t i = 0; i < core->resv.n; i++)
        if (binds(core, &core->resv.v[i], job, e))
            return (int)i;
    return -1;
}

uint64_t st_core_bound_by(const st_core *core, const st_job *job)
{
    uint64_t number = 0;
    ends e = ends_of(core, job);
    for (size_t i = 0; i < core->resv.n; i++)
        if (binds(core, &core->resv.v[i], job, &e))
            number = st_hash_u64(number, i + 1);
    return number;
}

/* Set the rooms of nodes in binding reservations to what both moments leave, or back. */
static void bind_rooms(const backfill_ctx *b, st_rooms *rooms, bool on)
{
    st_core *core = b->core;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        bool bound = binds(core, r, b->job, &b->ends);
        for (int t = 0; bound && t < r->ntasks; t++) {
            const st_node *node = core->fleet->nodes.v[r->plan[t].node];
            if (t > 0 && r->plan[t - 1].node == node->id)
                continue;
            union {
                const backfill_ctx *from;
                void *to;
            } ctx = {.from = b};
            st_rooms_set(core->placer, rooms, node, on ? backfill_view(ctx.to, node) : &node->view);
        }
    }
}

bool st_core_backfill(st_core *core, const st_job *job, int32_t type, const uint8_t *prefer,
                      st_grant *ret, int *ret_blocker)
{
    *ret_blocker = -1;
    backfill_ctx ctx = {core, job, ends_of(core, job)};
    st_ask ask = {.job = job, .type = type, .prefer = prefer};
    int bound = first_bound(core, job, &ctx.ends);
    if (bound < 0)
        return ret ? st_place_gang(core->placer, &ask, ret) : st_place_fits(core->placer, &ask);
    if (!st_place_fits(core->placer, &ask))
        return false;

    st_whatif_begin(core, ST_WHEN_EITHER);
    ask.view = backfill_view;
    ask.ctx = &ctx;
    if (job->state != ST_JOB_PAUSED) {
        ask.rooms = st_rooms_of(core->placer, job, type);
        bind_rooms(&ctx, ask.rooms, true);
    }
    st_grant *grants = ret ? ret : st_xcalloc((size_t)job->tasks, sizeof *grants);
    bool ok = st_place_gang(core->placer, &ask, grants);
    if (ask.rooms)
        bind_rooms(&ctx, ask.rooms, false);
    int blocker = ok ? collides(core, job, &ctx.ends, grants) : bound;
    if (!ret)
        free(grants);
    *ret_blocker = blocker;
    return blocker < 0;
}
