/* When nodes have room (reserve.h).
 *
 * A profile is per shape, what it goes by (limits or forecasts) and whether it counts on claims. It follows the fleet's log, so it
 * costs what has changed; what moves many releases at once (a policy, an account's minimum run)
 * counts `retimed` up and starts it over. Invariant: at_ms of a node is what st_profile_count says
 * of it, at any time. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/reserve.h"

#define PROFILES_BYTES ((size_t)64 << 20)
#define PROFILES_LEAST 16

bool st_profile_serves(const st_job *job)
{
    bool nvlink = job->topo == ST_TOPO_NVLINK && job->topo_required;
    bool whole = job->shape.level == ST_LEVEL_WHOLE && job->shape.gpus > 0;
    return job->state == ST_JOB_PENDING && !nvlink && (whole || job->tasks == 1);
}

/* ---- one node ---------------------------------------------------------------------------- */

/* In order of time; *ret_all_run: everybody on the node runs, *ret_held: somebody is to come. */
static void list_leavers(const st_core *core, const st_profile *p, const st_node *node,
                         st_leavers *ret, bool *ret_all_run, bool *ret_held)
{
    st_vec_clear(ret);
    *ret_all_run = true;
    *ret_held = false;
    for (size_t i = 0; i < node->residents.n; i++) {
        st_job *job = node->residents.v[i].job;
        *ret_all_run &= job->state == ST_JOB_RUNNING;
        *ret_held |= job->held;
        if (!st_job_on_devices(job))
            continue;
        st_leaver l = {st_reserve_release_ms(core, job, p->by, p->claims), job,
                       &job->grants[node->residents.v[i].task]};
        if (l.at_ms == ST_TIME_NEVER)
            continue;
        l.at_ms = ST_MAX(l.at_ms, 1);
        size_t at = ret->n;
        st_vec_push(ret, l);
        for (; at > 0 && ret->v[at - 1].at_ms > l.at_ms; at--)
            ret->v[at] = ret->v[at - 1];
        ret->v[at] = l;
    }
}

/* Where GPUs are given out whole and everybody stays until he ends, a view is a mask and two sums. */
static bool countable(const st_core *core, const st_profile *p, const st_node *node, bool all_run,
                      bool planned)
{
    if (!all_run || node->fence || node->out || node->view.shared ||
        p->like.shape.level != ST_LEVEL_WHOLE)
        return false;
    for (const st_plan_link *l = planned ? st_reserve_link(core, node->id, NULL) : NULL; l;
         l = st_reserve_link(core, node->id, l)) {
        const st_job *job = st_core_find(core, core->resv.v[l->resv].job);
        if (job && job->shape.gpus > 0 && job->shape.level != ST_LEVEL_WHOLE)
            return false;
    }
    return true;
}

/* The plans of that kind on a node, taken out of such a view; as st_whatif_put does. */
static void take_plans(const st_core *core, const st_profile *p, const st_node *node, st_view *view)
{
    for (const st_plan_link *l = st_reserve_link(core, node->id, NULL); l;
         l = st_reserve_link(core, node->id, l)) {
        const st_reservation *r = &core->resv.v[l->resv];
        const st_job *job = r->by & p->by ? st_core_find(core, r->job) : NULL;
        if (!job)
            continue;
        view->free &= (uint16_t)~r->plan[l->task].devs;
        view->cpu_free_m = ST_MAX(view->cpu_free_m - job->shape.cpu_m, 0);
        view->ram_free_mib = ST_MAX(view->ram_free_mib - st_task_ram_mib(job), 0);
    }
}

static int room_of(const st_core *core, const st_profile *p, const st_node *node,
                   const st_view *view)
{
    if (p->like.shape.gpus > 0 && view->free == 0 && view->shared == 0)
        return 0;
    return st_place_room(core->placer, node, &p->like, view, (uint16_t)((1u << node->ndevs) - 1));
}

/* Room grows to `room` at a moment. */
static int open_slots(const st_profile *p, int have, int room, int64_t at_ms, int64_t *ret)
{
    for (; have < ST_MIN(room, p->per); have++)
        ret[have] = at_ms;
    return have;
}

static void count_masks(st_core *core, const st_profile *p, const st_node *node, bool planned,
                        const st_leavers *list, int64_t *ret)
{
    st_view now, then; /* but for their devices, which nobody looks at */
    now.free = node->view.free;
    now.shared = then.shared = 0;
    now.cpu_free_m = node->view.cpu_free_m;
    now.ram_free_mib = node->view.ram_free_mib;
    int have = 0;
    int64_t at_ms = 0;
    for (size_t i = 0;; at_ms = list->v[i].at_ms) {
        for (; i < list->n && at_ms > 0 && list->v[i].at_ms == at_ms; i++) {
            const st_shape *s = &list->v[i].job->shape;
            now.free |= list->v[i].grant->devs;
            now.cpu_free_m += s->cpu_m;
            now.ram_free_mib += s->ram_mib;
        }
        then.free = now.free;
        then.cpu_free_m = now.cpu_free_m;
        then.ram_free_mib = now.ram_free_mib;
        if (planned)
            take_plans(core, p, node, &then);
        have = open_slots(p, have, room_of(core, p, node, &then), at_ms, ret);
        if (i == list->n || have == p->per)
            return;
    }
}

/* Holds come true one by one as others leave, and room must only grow: `held`, they count from the beginning. */
static void count_views(st_core *core, const st_profile *p, const st_node *node, bool planned,
                        bool held, const st_leavers *list, int64_t *ret)
{
    st_view view = node->view;
    int have = 0;
    int64_t at_ms = 0;
    size_t i = 0;
    for (;; at_ms = list->v[i].at_ms) {
        for (; i < list->n && at_ms > 0 && list->v[i].at_ms == at_ms; i++)
            list->v[i].job->out = ST_OUT_ENDED;
        if (i > 0 || held)
            st_view_build(core->fleet, core->tree, node, ST_WHEN_ANY, &view);
        if (planned)
            st_reserve_add_plans(core, p->by, node, &view);
        have = open_slots(p, have, room_of(core, p, node, &view), at_ms, ret);
        if (i == list->n || have == p->per)
            break;
    }
    while (i-- > 0)
        list->v[i].job->out = ST_OUT_NOT;
}

void st_profile_count(st_core *core, const st_profile *p, const st_node *node, bool planned,
                      int64_t *ret)
{
    for (int s = 0; s < p->per; s++)
        ret[s] = ST_TIME_NEVER;
    bool takes = node->state == ST_NODE_READY || ST_BROKEN(DRAIN);
    if (!takes || !st_place_allowed(core->placer, node, &p->like, p->type))
        return;
    bool all_run, held;
    list_leavers(core, p, node, &core->leavers, &all_run, &held);
    if (countable(core, p, node, all_run, planned))
        count_masks(core, p, node, planned, &core->leavers, ret);
    else
        count_views(core, p, node, planned, held, &core->leavers, ret);
}

/* ---- all of them ------------------------------------------------------------------------- */

static void count_one(st_core *core, st_profile *p, size_t id)
{
    int64_t *at_ms = p->at_ms + id * (size_t)p->per;
    st_profile_count(core, p, core->fleet->nodes.v[id], false, at_ms);
    uint64_t bit = UINT64_C(1) << (id % 64);
    if (at_ms[0] == ST_TIME_NEVER)
        p->some[id / 64] &= ~bit;
    else
        p->some[id / 64] |= bit;
}

static void count_all(st_core *core, st_profile *p)
{
    p->n = core->fleet->nodes.n;
    p->at_ms = st_xreallocarray(p->at_ms, p->n * (size_t)p->per + 1, sizeof *p->at_ms);
    p->some = st_xreallocarray(p->some, p->n / 64 + 1, sizeof *p->some);
    memset(p->some, 0, (p->n / 64 + 1) * sizeof *p->some);
    for (size_t i = 0; i < p->n; i++)
        count_one(core, p, i);
}

static void catch_up(st_core *core, st_profile *p)
{
    const st_fleet *fleet = core->fleet;
    uint64_t last = st_fleet_changes(fleet);
    /* Each node that changed is counted once, however often it did. */
    if (p->n != fleet->nodes.n || p->seen < fleet->changes_from || p->epoch != core->retimed ||
        last - p->seen > 4 * fleet->nodes.n) {
        count_all(core, p);
    } else {
        st_marks_begin(core);
        for (uint64_t i = p->seen; i < last && !ST_BROKEN(PROFILE); i++) {
            st_node_change c = fleet->changes.v[i - fleet->changes_from];
            if ((p->type < 0 || c.type == p->type) && st_marks_first(core, c.node))
                count_one(core, p, (size_t)c.node);
        }
    }
    p->seen = last;
    p->epoch = core->retimed;
}

static uint64_t key_of(const st_core *core, const st_job *job, int32_t type, unsigned by,
                       bool claims, int per)
{
    const st_shape *s = &job->shape;
    bool shared = s->gpus > 0 && (s->level == ST_LEVEL_MPS || s->level == ST_LEVEL_TIME);
    const uint64_t words[] = {
        (uint64_t)type,
        (uint64_t)s->level,
        (uint64_t)s->gpus,
        s->level == ST_LEVEL_MIG ? (uint64_t)s->profile : 0,
        shared ? (uint64_t)s->share_m : 0,
        shared ? (uint64_t)s->vram_mib : 0,
        (uint64_t)s->cpu_m,
        (uint64_t)s->ram_mib,
        (uint64_t)job->pool,
        s->needs,
        s->nodes,
        shared ? (uint64_t)job->account : 0,
        shared ? (uint64_t)st_tree_domain(core->tree, job->account) : 0,
        shared && job->latency_critical,
        (uint64_t)by * 2 + claims,
        (uint64_t)per,
    };
    uint64_t h = 11;
    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        h = st_hash_u64(h, words[i]);
    return h;
}

void st_profiles_forget_picks(st_core *core)
{
    for (size_t i = core->profiles.n; i > 0; i--) {
        st_profile *p = core->profiles.v[i - 1];
        uint64_t nodes = p->like.shape.nodes;
        if (!nodes || st_fleet_picked_text(core->fleet, nodes))
            continue;
        st_profile_free(p);
        st_vec_remove(&core->profiles, i - 1);
    }
}

/* The one that was used longest ago makes way. */
static void make_way(st_core *core, int per)
{
    size_t each = (core->fleet->nodes.n * (size_t)per + 1) * sizeof(int64_t);
    size_t most = ST_MAX(PROFILES_LEAST, PROFILES_BYTES / each);
    while (core->profiles.n >= ST_MIN(most, (size_t)(8 * ST_RESERVATIONS_MAX))) {
        size_t oldest = 0;
        for (size_t i = 1; i < core->profiles.n; i++)
            if (core->profiles.v[i]->used < core->profiles.v[oldest]->used)
                oldest = i;
        st_profile_free(core->profiles.v[oldest]);
        st_vec_remove(&core->profiles, oldest);
    }
}

st_profile *st_profile_of(st_core *core, const st_job *job, int32_t type, unsigned by, bool claims)
{
    int per = job->tasks == 1 ? 1 : ST_MAX(ST_DEVS_MAX / job->shape.gpus, 1);
    uint64_t key = key_of(core, job, type, by, claims, per);
    st_profile *p = NULL;
    for (size_t i = 0; i < core->profiles.n && !p; i++)
        if (core->profiles.v[i]->key == key)
            p = core->profiles.v[i];
    if (!p) {
        make_way(core, per);
        p = st_xcalloc(1, sizeof *p);
        p->key = key;
        p->by = by;
        p->claims = claims;
        p->type = type;
        p->per = per;
        p->like = *job;
        p->like.name = NULL;
        p->like.grants = NULL;
        p->like.tasks = ST_DEVS_MAX;
        st_vec_push(&core->profiles, p);
    }
    catch_up(core, p);
    p->used = ++core->reserve_tick;
    return p;
}

void st_profile_free(st_profile *p)
{
    if (!p)
        return;
    free(p->at_ms);
    free(p->some);
    free(p);
}
