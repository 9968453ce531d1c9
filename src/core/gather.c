/* Reservations: blocked jobs at the head of the order get a start in the future, and others
 * may use what they gather only if they are gone by then.
 *
 * A reservation says: by at_ms enough running jobs will have reached their time limits (or,
 * for a guaranteed claimant, will have lost their protection) for `plan`. It is made anew in
 * every pass. Its start never moves back: whoever is let in meanwhile either ends before it,
 * or leaves room for the plan. */
#include <stdlib.h>

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

/* Put a reservation's plan into a view of one node; where it does not go (a device is still
 * in other use), the device is taken all the same. */
static void add_plan(st_core *core, const st_resv *r, const st_node *node, st_view *view)
{
    const st_job *job = resv_job(core, r);
    if (!job)
        return;
    for (int t = 0; t < r->ntasks; t++) {
        if (r->plan[t].node != node->id)
            continue;
        if (st_view_add(core->fleet, core->tree, node, job, &r->plan[t], view) == 0)
            continue;
        for (int d = 0; d < node->ndevs; d++)
            if (r->plan[t].devs >> d & 1)
                view->dev[d].mode = ST_DEV_WHOLE;
        view->cpu_free_m = ST_MAX(view->cpu_free_m - job->shape.cpu_m, 0);
        view->ram_free_mib = ST_MAX(view->ram_free_mib - st_task_ram_mib(job), 0);
        st_view_seal(node, view);
    }
}

static bool touches(const st_resv *r, int32_t node)
{
    for (int t = 0; t < r->ntasks; t++)
        if (r->plan[t].node == node)
            return true;
    return false;
}

/* ---- making one ------------------------------------------------------------------------ */

typedef struct release {
    int64_t at_ms;
    st_job *job;
} release;

static int by_time(const void *pa, const void *pb)
{
    const release *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}

/* When the job will be off its devices at the latest, as far as the asker is concerned. */
static int64_t release_ms(const st_core *core, const st_job *job, bool claims)
{
    int64_t out = core->policy.notice_ms + core->policy.grace_ms;
    int64_t at = st_job_end_ms(job, core->now);
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
    return release_ms(core, job, false);
}

static const st_view *planned_view(void *ctx, const st_node *node)
{
    st_core *core = ctx;
    bool planned = false;
    for (size_t i = 0; i < core->resv.n && !planned; i++)
        planned = touches(&core->resv.v[i], node->id);
    if (!planned)
        return st_whatif_view(core, node);
    /* Edited in place, and rebuilt the next time it is asked for. */
    core->whatif.stamp[node->id] = 0;
    st_view *view = st_whatif_edit(core, node);
    for (size_t i = 0; i < core->resv.n; i++)
        add_plan(core, &core->resv.v[i], node, view);
    return view;
}

/* Think releases [from, to) away, or back in. */
static void think(st_core *core, const release *list, size_t from, size_t to, bool out,
                  st_rooms *rooms)
{
    for (size_t i = from; i < to; i++)
        list[i].job->out = out ? ST_OUT_ENDED : ST_OUT_NOT;
    for (size_t i = from; i < to; i++) {
        const st_job *job = list[i].job;
        st_whatif_touch(core, job, NULL);
        for (int t = 0; rooms && t < job->tasks; t++) {
            const st_node *node = core->fleet->nodes.v[job->grants[t].node];
            if (t == 0 || job->grants[t - 1].node != node->id)
                st_rooms_set(core->placer, rooms, node, planned_view(core, node));
        }
    }
}

static void shift(st_core *core, const release *list, size_t have, size_t want, st_rooms *rooms)
{
    if (want > have)
        think(core, list, have, want, true, rooms);
    else
        think(core, list, want, have, false, rooms);
}

/* Set the rooms of all nodes of reservations to their planned view, or back. */
static void plan_rooms(st_core *core, st_rooms *rooms, bool planned)
{
    for (size_t i = 0; rooms && i < core->resv.n; i++) {
        for (int t = 0; t < core->resv.v[i].ntasks; t++) {
            const st_node *node = core->fleet->nodes.v[core->resv.v[i].plan[t].node];
            st_rooms_set(core->placer, rooms, node,
                         planned ? planned_view(core, node) : &node->view);
        }
    }
}

/* The fewest releases, in order of time, after which the job fits; n + 1 when not even all
 * are enough. Leaves that many thought away. */
static size_t fewest(st_core *core, const st_ask *ask, const release *list, size_t n)
{
    /* Near ones first: what is needed is often little of what is there. */
    size_t have = 0, lo = 0, hi = 0;
    while (!st_place_fits(core->placer, ask)) {
        if (have == n)
            return n + 1;
        lo = have + 1;
        hi = ST_MIN(2 * have + 1, n);
        shift(core, list, have, hi, ask->rooms);
        have = hi;
    }
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        shift(core, list, have, mid, ask->rooms);
        have = mid;
        if (st_place_fits(core->placer, ask))
            hi = mid;
        else
            lo = mid + 1;
    }
    shift(core, list, have, hi, ask->rooms);
    return hi;
}

void st_core_gather(st_core *core, const st_job *job, int32_t type, bool sure, bool claims)
{
    ST_VEC(release) list = {0};
    for (size_t i = 0; i < core->placed.n; i++) {
        st_job *other = core->placed.v[i];
        int64_t at_ms = release_ms(core, other, claims);
        if (at_ms != ST_TIME_NEVER)
            st_vec_push(&list, (release){at_ms, other});
    }
    if (list.n > 1)
        qsort(list.v, list.n, sizeof *list.v, by_time);

    st_whatif_begin(core, ST_WHEN_EITHER);
    st_ask ask = {.job = job, .type = type, .view = planned_view, .ctx = core};
    ask.rooms = st_rooms_of(core->placer, job, type);
    plan_rooms(core, ask.rooms, true);
    size_t n = fewest(core, &ask, list.v, list.n);
    st_resv r = {
        .job = job->id, .sure = sure, .claims = claims, .type = type, .ntasks = job->tasks};
    if (n <= list.n) {
        r.at_ms = n == 0 ? core->now : ST_MAX(list.v[n - 1].at_ms, core->now);
        r.plan = st_xcalloc((size_t)job->tasks, sizeof *r.plan);
        bool ok = st_place_gang(core->placer, &ask, r.plan);
        ST_ASSERT(ok);
    }
    shift(core, list.v, ST_MIN(n, list.n), 0, ask.rooms);
    plan_rooms(core, ask.rooms, false);
    if (r.plan)
        st_vec_push(&core->resv, r);
    st_vec_free(&list);
}

/* ---- respecting them ------------------------------------------------------------------- */

typedef struct backfill_ctx {
    st_core *core;
    const st_job *job;
    int64_t end_ms;
} backfill_ctx;

/* The node at the reservation's start: what has ended is gone, the plan is in. */
static void view_then(st_core *core, const st_resv *r, const st_node *node, st_view *ret)
{
    for (size_t i = 0; i < node->residents.n; i++) {
        st_job *job = node->residents.v[i].job;
        bool ended = st_job_on_devices(job) && release_ms(core, job, false) <= r->at_ms;
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
    const st_job *ahead = core->policy.swap && !r->sure ? resv_job(core, r) : NULL;
    return ahead && ahead->account == job->account &&
           st_order_swaps(core->tree, &core->policy, ahead, job, core->now);
}

static bool binds(const st_core *core, const st_resv *r, const st_job *job, int64_t end_ms)
{
    return r->job != job->id && end_ms > r->at_ms && !gives_way(core, r, job) && !ST_BROKEN(STARVE);
}

static const st_view *backfill_view(void *ctx, const st_node *node)
{
    const backfill_ctx *b = ctx;
    st_core *core = b->core;
    st_view *edit = NULL;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if (!binds(core, r, b->job, b->end_ms) || !touches(r, node->id))
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

int st_core_collides(st_core *core, const st_job *job, int64_t end_ms, const st_grant *grants)
{
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        if (!binds(core, r, job, end_ms))
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

uint64_t st_core_bound_by(const st_core *core, const st_job *job)
{
    uint64_t bits = 0;
    int64_t end_ms = st_job_end_ms(job, core->now);
    for (size_t i = 0; i < core->resv.n; i++)
        if (binds(core, &core->resv.v[i], job, end_ms))
            bits |= UINT64_C(1) << i;
    return bits;
}

/* Set the rooms of nodes in binding reservations to what both moments leave, or back. */
static void bind_rooms(const backfill_ctx *b, uint64_t bound, st_rooms *rooms, bool on)
{
    st_core *core = b->core;
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_resv *r = &core->resv.v[i];
        for (int t = 0; (bound >> i & 1) && t < r->ntasks; t++) {
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
    backfill_ctx ctx = {core, job, st_job_end_ms(job, core->now)};
    st_ask ask = {.job = job, .type = type, .prefer = prefer};
    uint64_t bound = st_core_bound_by(core, job);
    if (!bound)
        return ret ? st_place_gang(core->placer, &ask, ret) : st_place_fits(core->placer, &ask);
    if (!st_place_fits(core->placer, &ask))
        return false;

    st_whatif_begin(core, ST_WHEN_EITHER);
    ask.view = backfill_view;
    ask.ctx = &ctx;
    if (job->state != ST_JOB_PAUSED) {
        ask.rooms = st_rooms_of(core->placer, job, type);
        bind_rooms(&ctx, bound, ask.rooms, true);
    }
    st_grant *grants = ret ? ret : st_xcalloc((size_t)job->tasks, sizeof *grants);
    bool ok = st_place_gang(core->placer, &ask, grants);
    if (ask.rooms)
        bind_rooms(&ctx, bound, ask.rooms, false);
    int blocker = ok ? st_core_collides(core, job, ctx.end_ms, grants) : __builtin_ctzll(bound);
    if (!ret)
        free(grants);
    *ret_blocker = blocker;
    return blocker < 0;
}
