/* What others may use of what is reserved for those ahead (reserve.c): who ends in time uses it
 * all, everybody else what leaves room for the plans. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/reserve.h"

static const st_job *resv_job(const st_core *core, const st_reservation *r)
{
    return st_core_find(core, r->job);
}

/* When a job that starts now ends: by its limit, and by what is known of such jobs. */
typedef struct ends {
    int64_t limit_ms, forecast_ms;
} ends;

typedef struct backfill_ctx {
    st_core *core;
    const st_job *job;
    ends ends;
} backfill_ctx;

/* Whether a node is in the plan, and if so that plan into a view of it. */
static bool touches(const st_core *core, const st_reservation *r, int32_t node)
{
    for (const st_plan_link *l = st_reserve_link(core, node, NULL); l;
         l = st_reserve_link(core, node, l))
        if (&core->resv.v[l->resv] == r)
            return true;
    return false;
}

static void add_plan(st_core *core, const st_reservation *r, const st_node *node, st_view *view)
{
    const st_job *job = resv_job(core, r);
    for (const st_plan_link *l = job ? st_reserve_link(core, node->id, NULL) : NULL; l;
         l = st_reserve_link(core, node->id, l))
        if (&core->resv.v[l->resv] == r)
            st_whatif_put(core, node, job, &r->plan[l->task], view);
}

/* The node at the reservation's start: what has ended is gone, the plan is in. */
static void view_then(st_core *core, const st_reservation *r, const st_node *node, st_view *ret)
{
    for (size_t i = 0; i < node->residents.n; i++) {
        st_job *job = node->residents.v[i].job;
        unsigned by = r->by & ST_BY_LIMITS ? ST_BY_LIMITS : ST_BY_FORECAST;
        bool ended =
            st_job_on_devices(job) && st_reserve_release_ms(core, job, by, false) <= r->at_ms;
        if (job->out == ST_OUT_NOT && ended)
            job->out = ST_OUT_ENDED;
    }
    st_view_build(core->fleet, core->tree, node, ST_WHEN_ANY, ret);
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
static bool gives_way(const st_core *core, const st_reservation *r, const st_job *job)
{
    const st_job *ahead =
        core->policy.swap && !r->guaranteed && !r->moves ? resv_job(core, r) : NULL;
    return ahead && ahead->account == job->account &&
           st_order_swaps(core->tree, &core->policy, ahead, job, st_core_moment(core));
}

static bool binds(const st_core *core, const st_reservation *r, const st_job *job, const ends *e)
{
    bool late = e->forecast_ms > r->at_ms;
    if ((r->by & ST_BY_LIMITS) && !ST_BROKEN(OVERSTAY))
        late |= e->limit_ms > ST_MAX(r->at_ms, r->promise_ms);
    return late && r->job != job->id && !gives_way(core, r, job) && !ST_BROKEN(STARVE);
}

static ends ends_of(const st_core *core, st_job *job)
{
    int64_t limit_ms = st_job_end_ms(job, core->now);
    ends e = {limit_ms, limit_ms};
    for (size_t i = 0; i < core->resv.n; i++) {
        if (core->policy.forecast && limit_ms > core->resv.v[i].at_ms) {
            e.forecast_ms = st_core_safe_end_ms(core, job);
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
        const st_reservation *r = &core->resv.v[i];
        if (!binds(core, r, b->job, &b->ends) || !touches(core, r, node->id))
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
        const st_reservation *r = &core->resv.v[i];
        if (!binds(core, r, job, e))
            continue;
        for (int t = 0; t < job->tasks; t++) {
            if (!touches(core, r, grants[t].node))
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

uint64_t st_core_bound_by(const st_core *core, st_job *job, int32_t type)
{
    uint64_t number = 0;
    ends e = ends_of(core, job);
    for (size_t i = 0; i < core->resv.n; i++) {
        const st_reservation *r = &core->resv.v[i];
        bool near = type < 0 || r->type < 0 || r->type == type;
        if (near && binds(core, r, job, &e))
            number = st_hash_u64(number, r->number);
    }
    return number > 0 ? st_hash_u64(number, core->retimed) : 0;
}

/* Whether masks and sums say all there is to say of the node, now and then: GPUs are given out
 * whole, and everybody on it runs. */
static bool countable(const st_core *core, const st_job *job, const st_node *node)
{
    if (node->fence || node->out || node->view.shared ||
        (job->shape.gpus > 0 && job->shape.level != ST_LEVEL_WHOLE))
        return false;
    for (size_t i = 0; i < node->residents.n; i++)
        if (node->residents.v[i].job->state != ST_JOB_RUNNING)
            return false;
    for (const st_plan_link *l = st_reserve_link(core, node->id, NULL); l;
         l = st_reserve_link(core, node->id, l)) {
        const st_job *ahead = resv_job(core, &core->resv.v[l->resv]);
        if (ahead && ahead->shape.gpus > 0 && ahead->shape.level != ST_LEVEL_WHOLE)
            return false;
    }
    return true;
}

/* Such a node at the reservation's start, without its devices; as view_then. */
static void masks_then(const st_core *core, const st_reservation *r, const st_node *node,
                       st_view *ret)
{
    unsigned by = r->by & ST_BY_LIMITS ? ST_BY_LIMITS : ST_BY_FORECAST;
    const st_job *ahead = resv_job(core, r);
    ret->free = node->view.free;
    ret->cpu_free_m = node->view.cpu_free_m;
    ret->ram_free_mib = node->view.ram_free_mib;
    for (size_t i = 0; i < node->residents.n; i++) {
        const st_job *job = node->residents.v[i].job;
        if (st_reserve_release_ms(core, job, by, false) > r->at_ms)
            continue;
        ret->free |= job->grants[node->residents.v[i].task].devs;
        ret->cpu_free_m += job->shape.cpu_m;
        ret->ram_free_mib += job->shape.ram_mib;
    }
    for (const st_plan_link *l = ahead ? st_reserve_link(core, node->id, NULL) : NULL; l;
         l = st_reserve_link(core, node->id, l)) {
        if (&core->resv.v[l->resv] != r)
            continue;
        ret->free &= (uint16_t)~r->plan[l->task].devs;
        ret->cpu_free_m = ST_MAX(ret->cpu_free_m - ahead->shape.cpu_m, 0);
        ret->ram_free_mib = ST_MAX(ret->ram_free_mib - st_task_ram_mib(ahead), 0);
    }
}

/* What all moments leave of such a node, without its devices; as backfill_view. */
static void masks_left(const backfill_ctx *b, const st_node *node, st_view *ret)
{
    const st_core *core = b->core;
    int32_t last = -1;
    ret->free = node->view.free;
    ret->shared = 0;
    ret->cpu_free_m = node->view.cpu_free_m;
    ret->ram_free_mib = node->view.ram_free_mib;
    for (const st_plan_link *l = st_reserve_link(core, node->id, NULL); l;
         l = st_reserve_link(core, node->id, l)) {
        const st_reservation *r = &core->resv.v[l->resv];
        if (l->resv == last || !binds(core, r, b->job, &b->ends))
            continue;
        last = l->resv;
        st_view then;
        masks_then(core, r, node, &then);
        ret->free &= then.free;
        ret->cpu_free_m = ST_MIN(ret->cpu_free_m, then.cpu_free_m);
        ret->ram_free_mib = ST_MIN(ret->ram_free_mib, then.ram_free_mib);
    }
}

static void bind_room(backfill_ctx *b, const st_node *node, st_rooms *rooms)
{
    st_core *core = b->core;
    if (!countable(core, b->job, node)) {
        st_rooms_set(core->placer, rooms, node, backfill_view(b, node));
        return;
    }
    st_view left; /* but for its devices, which nobody looks at */
    masks_left(b, node, &left);
    st_rooms_set(core->placer, rooms, node, &left);
}

/* Whether a plan that binds the job is on the node. */
static bool is_bound(const backfill_ctx *b, const st_node *node)
{
    const st_core *core = b->core;
    for (const st_plan_link *l = st_reserve_link(core, node->id, NULL); l;
         l = st_reserve_link(core, node->id, l))
        if (binds(core, &core->resv.v[l->resv], b->job, &b->ends))
            return true;
    return false;
}

/* Set the rooms of nodes in binding reservations to what all moments leave. Where there is no room now, none is
 * left; and when too little is left for the job, no more need be looked at. */
static void bind_rooms(backfill_ctx *b, st_rooms *rooms)
{
    st_core *core = b->core;
    const st_fleet *fleet = core->fleet;
    st_vec_clear(&core->bound);
    for (size_t i = st_rooms_next(rooms, 0);
         i < fleet->nodes.n && st_rooms_total(rooms) >= b->job->tasks;
         i = st_rooms_next(rooms, i + 1)) {
        const st_node *node = fleet->nodes.v[i];
        if (!is_bound(b, node))
            continue;
        st_vec_push(&core->bound, node->id);
        bind_room(b, node, rooms);
    }
}

/* Set them back. */
static void unbind_rooms(const st_core *core, st_rooms *rooms)
{
    for (size_t i = 0; i < core->bound.n; i++) {
        const st_node *node = core->fleet->nodes.v[core->bound.v[i]];
        st_rooms_set(core->placer, rooms, node, &node->view);
    }
}

bool st_core_backfill(st_core *core, const st_job *job, int32_t type, const uint8_t *prefer,
                      st_grant *ret, st_barrier *ret_barrier)
{
    *ret_barrier = (st_barrier){.blocker = -1};
    backfill_ctx ctx = {core, job, ends_of(core, st_core_find(core, job->id))};
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
        bind_rooms(&ctx, ask.rooms);
    }
    st_grant *grants = ret ? ret : st_xcalloc((size_t)job->tasks, sizeof *grants);
    bool ok = st_place_gang(core->placer, &ask, grants);
    if (!ok && ask.rooms)
        ret_barrier->lacks = ST_MAX(job->tasks - st_rooms_total(ask.rooms), 1);
    if (ask.rooms)
        unbind_rooms(core, ask.rooms);
    ret_barrier->blocker = ok ? collides(core, job, &ctx.ends, grants) : bound;
    if (!ret)
        free(grants);
    return ret_barrier->blocker < 0;
}

int st_core_room_behind(st_core *core, st_job *job, int32_t type, const st_node *node)
{
    int room = st_rooms_at(st_rooms_of(core->placer, job, type), node);
    if (room == 0 || !st_reserve_link(core, node->id, NULL) || !countable(core, job, node))
        return room;
    backfill_ctx ctx = {core, job, ends_of(core, job)};
    st_view left; /* but for its devices, which nobody looks at */
    masks_left(&ctx, node, &left);
    return st_place_room(core->placer, node, job, &left, (uint16_t)((1u << node->ndevs) - 1));
}
