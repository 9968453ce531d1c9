/* Across nodes: the tightest level a gang fits, and the nodes it takes there. */
#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "place/placer.h"

st_placer *st_placer_new(const st_fleet *fleet, const st_tree *tree)
{
    st_placer *placer = st_xcalloc(1, sizeof *placer);
    placer->fleet = fleet;
    placer->tree = tree;
    placer->waste = st_waste_new();
    placer->shape_at = st_idmap_new();
    return placer;
}

st_typical *st_placer_typical(st_placer *placer)
{
    return &placer->typical;
}

void st_placer_free(st_placer *placer)
{
    if (!placer)
        return;
    st_vec_free(&placer->work);
    st_vec_free(&placer->sums);
    for (size_t i = 0; i < placer->shapes.n; i++)
        st_rooms_free(placer->shapes.v[i]);
    st_vec_free(&placer->shapes);
    st_idmap_free(placer->shape_at);
    st_rooms_free(placer->once);
    st_rooms_free(placer->blank);
    st_vec_free(&placer->filled);
    st_kinds_done(&placer->kinds);
    st_prices_done(&placer->prices);
    st_waste_free(placer->waste);
    free(placer);
}

const st_view *st_ask_view(const st_ask *ask, const st_node *node)
{
    return ask->view ? ask->view(ask->ctx, node) : &node->view;
}

/* What the node costs this job; the rooms must be reckoned. */
static int64_t score(const st_placer *placer, const st_ask *ask, const st_rooms *rooms, int32_t id)
{
    const st_node *node = placer->fleet->nodes.v[id];
    bool away = ask->prefer && !ask->prefer[id];
    bool stranger = !ask->plain && st_is_large(ask->job, node) &&
                    st_has_stranger(node, st_all_devs(node), ask->job->account);
    return rooms->cost[id] + (stranger ? ST_COST_STRANGER : 0) + (away ? ST_COST_AWAY : 0);
}

static void consider(st_placer *placer, const st_ask *ask, const st_rooms *rooms, int32_t id)
{
    if (rooms->room[id] <= 0)
        return;
    int32_t room = ST_MIN(rooms->room[id], ask->job->tasks);
    st_vec_push(&placer->work, (st_cand){id, room, score(placer, ask, rooms, id),
                                         st_all_devs(placer->fleet->nodes.v[id]), 0});
}

/* The domain of `level` with the smallest room that suffices, or -1. */
static int32_t best_domain(const st_rooms *rooms, st_topo level, int want)
{
    int32_t best = -1;
    const int64_t *sums = rooms->sums[level].v;
    for (size_t i = 0; i < rooms->sums[level].n; i++)
        if (sums[i] >= want && (best < 0 || sums[i] < sums[best]))
            best = (int32_t)i;
    return best;
}

static int by_room(const void *pa, const void *pb)
{
    const st_cand *a = pa, *b = pb;
    if (a->room != b->room)
        return a->room > b->room ? -1 : 1;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Take `want` tasks from cands[0..n): the roomiest nodes whole, the rest where it fits
 * tightest. Returns the tasks written. */
static int fill_nodes(st_placer *placer, const st_ask *ask, st_cand *cands, size_t n, int want,
                      st_grant *ret)
{
    qsort(cands, n, sizeof *cands, by_room);
    int done = 0;
    size_t i = 0;
    for (; i < n && done < want && cands[i].room < want - done; i++)
        done += st_place_devices(placer, ask, &cands[i], cands[i].room, ret + done);
    if (done == want || i == n)
        return done;
    size_t best = i;
    for (size_t k = i; k < n && cands[k].room >= want - done; k++)
        if (cands[k].room < cands[best].room ||
            (cands[k].room == cands[best].room && cands[k].score < cands[best].score))
            best = k;
    return done + st_place_devices(placer, ask, &cands[best], want - done, ret + done);
}

typedef struct group {
    size_t from, to;
    int64_t room;
} group;

static int by_domain(const void *pa, const void *pb)
{
    const st_cand *a = pa, *b = pb;
    if (a->domain != b->domain)
        return a->domain < b->domain ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Fill inside a run of candidates, level by level downwards: the fewest domains of `level`
 * (largest first, the last one the tightest that suffices), then the same inside each. */
static int fill(st_placer *placer, const st_ask *ask, st_topo level, st_cand *cands, size_t n,
                int want, st_grant *ret)
{
    if (level >= ST_TOPO_NODE)
        return fill_nodes(placer, ask, cands, n, want, ret);
    for (size_t i = 0; i < n; i++)
        cands[i].domain = placer->fleet->nodes.v[cands[i].node]->place[level];
    qsort(cands, n, sizeof *cands, by_domain);
    ST_VEC(group) groups = {0};
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || cands[i].domain != cands[i - 1].domain)
            st_vec_push(&groups, (group){i, i, 0});
        groups.v[groups.n - 1].to = i + 1;
        groups.v[groups.n - 1].room += cands[i].room;
    }

    int done = 0;
    while (done < want && groups.n > 0) {
        size_t best = 0;
        for (size_t g = 1; g < groups.n; g++) {
            int64_t a = groups.v[g].room, b = groups.v[best].room;
            bool enough = a >= want - done, had = b >= want - done;
            if (enough ? !had || a < b : !had && a > b)
                best = g;
        }
        group g = groups.v[best];
        st_vec_remove(&groups, best);
        done += fill(placer, ask, (st_topo)(level + 1), cands + g.from, g.to - g.from, want - done,
                     ret + done);
    }
    st_vec_free(&groups);
    return done;
}

/* Nodes of one NVLink domain with room on its devices, into `work`; returns their room. */
static int64_t collect_nvlink(st_placer *placer, const st_ask *ask, const st_rooms *rooms,
                              size_t id)
{
    const st_domain *dom = &placer->fleet->domains[ST_TOPO_NVLINK].v[id];
    int64_t room = 0;
    st_vec_clear(&placer->work);
    for (size_t i = 0; i < dom->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[dom->nodes.v[i]];
        if (rooms->room[node->id] <= 0)
            continue;
        uint16_t devs = st_nvlink_devs(node, (int32_t)id);
        int r = st_place_room(placer, node, ask->job, st_ask_view(ask, node), devs);
        room += r;
        if (r > 0)
            st_vec_push(&placer->work,
                        (st_cand){node->id, r, score(placer, ask, rooms, node->id), devs, 0});
    }
    return room;
}

static bool nvlink_has_stranger(const st_placer *placer, const st_job *job, size_t id)
{
    const st_domain *dom = &placer->fleet->domains[ST_TOPO_NVLINK].v[id];
    for (size_t i = 0; i < dom->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[dom->nodes.v[i]];
        if (st_is_large(job, node) &&
            st_has_stranger(node, st_nvlink_devs(node, (int32_t)id), job->account))
            return true;
    }
    return false;
}

/* One NVLink domain, which may be part of a node or span several: the one with least to spare,
 * for a large job rather one without a large job of somebody else. */
static bool place_nvlink(st_placer *placer, const st_ask *ask, st_rooms *rooms, st_grant *ret)
{
    int64_t least = INT64_MAX;
    size_t n = placer->fleet->domains[ST_TOPO_NVLINK].n, best = n;
    if (ret)
        st_rooms_reckon(placer, rooms, ask);
    for (size_t k = 0; k < n; k++) {
        int64_t room = collect_nvlink(placer, ask, rooms, k);
        if (room < ask->job->tasks || 2 * room >= least)
            continue;
        int64_t cost = 2 * room + (ret && !ask->plain && nvlink_has_stranger(placer, ask->job, k));
        if (cost < least) {
            least = cost;
            best = k;
        }
    }
    if (best == n)
        return false;
    if (ret) {
        collect_nvlink(placer, ask, rooms, best);
        int got = fill_nodes(placer, ask, placer->work.v, placer->work.n, ask->job->tasks, ret);
        ST_ASSERT(got == ask->job->tasks);
    }
    return true;
}

/* Whether any node could take the whole gang by itself; spares gangs the search. */
static bool may_fit_node(const st_job *job)
{
    return job->shape.level != ST_LEVEL_WHOLE || job->tasks * job->shape.gpus <= ST_DEVS_MAX;
}

static bool fits_one_node(const st_ask *ask, const st_rooms *rooms)
{
    if (!may_fit_node(ask->job))
        return false;
    if (ask->job->tasks == 1)
        return rooms->total > 0;
    for (size_t i = 0; i < rooms->n; i++)
        if (rooms->room[i] >= ask->job->tasks)
            return true;
    return false;
}

/* The node that takes the whole gang at the least cost, or -1. */
static int32_t best_node(st_placer *placer, const st_ask *ask, st_rooms *rooms)
{
    int32_t best = -1;
    int64_t least = INT64_MAX;
    if (!may_fit_node(ask->job))
        return -1;
    st_rooms_reckon(placer, rooms, ask);
    for (size_t b = 0; b * ST_BLOCK < rooms->n; b++) {
        if (rooms->low[b] == ST_COST_NONE || rooms->low[b] >= least)
            continue;
        size_t end = ST_MIN((b + 1) * ST_BLOCK, rooms->n);
        for (size_t i = b * ST_BLOCK; i < end; i++) {
            if (rooms->cost[i] >= least || rooms->room[i] < ask->job->tasks)
                continue;
            int64_t cost = score(placer, ask, rooms, (int32_t)i);
            if (cost < least) {
                least = cost;
                best = (int32_t)i;
            }
        }
    }
    return best;
}

static bool place_one_node(st_placer *placer, const st_ask *ask, st_rooms *rooms, st_grant *ret)
{
    if (!ret)
        return fits_one_node(ask, rooms);
    int32_t id = best_node(placer, ask, rooms);
    if (id < 0)
        return false;
    st_cand cand = {id, ask->job->tasks, 0, st_all_devs(placer->fleet->nodes.v[id]), 0};
    st_place_devices(placer, ask, &cand, ask->job->tasks, ret);
    return true;
}

static bool place_domain(st_placer *placer, const st_ask *ask, st_rooms *rooms, st_topo level,
                         st_grant *ret)
{
    int want = ask->job->tasks;
    int32_t dom = -1;
    if (level != ST_TOPO_NONE) {
        dom = best_domain(rooms, level, want);
        if (dom < 0)
            return false;
    }
    if (!ret)
        return true;
    st_rooms_reckon(placer, rooms, ask);
    st_vec_clear(&placer->work);
    if (dom >= 0) {
        const st_domain *d = &placer->fleet->domains[level].v[dom];
        for (size_t i = 0; i < d->nodes.n; i++)
            consider(placer, ask, rooms, d->nodes.v[i]);
    } else {
        for (size_t i = 0; i < rooms->n; i++)
            consider(placer, ask, rooms, (int32_t)i);
    }
    int n = fill(placer, ask, (st_topo)(level + 1), placer->work.v, placer->work.n, want, ret);
    ST_ASSERT(n == want);
    return true;
}

/* A paused gang is still in its nodes' memory and can only go on there; with a domain, on
 * that NVLink domain's devices. */
static bool place_on_own_nodes(st_placer *placer, const st_ask *ask, int32_t domain, st_grant *ret)
{
    const st_job *job = ask->job;
    for (int t = 0; t < job->tasks; t++) {
        bool first = true;
        int want = 0;
        for (int u = 0; u < job->tasks; u++) {
            if (job->grants[u].node != job->grants[t].node)
                continue;
            first &= u >= t;
            want++;
        }
        if (!first)
            continue;
        const st_node *node = placer->fleet->nodes.v[job->grants[t].node];
        if ((!ask->ever && node->state != ST_NODE_READY) ||
            !st_place_allowed(placer, node, job, ask->type))
            return false;
        st_cand cand = {node->id, 0, 0, st_all_devs(node), 0};
        if (domain >= 0)
            cand.devs = st_nvlink_devs(node, domain);
        cand.room = st_place_room(placer, node, job, st_ask_view(ask, node), cand.devs);
        if (cand.room < want)
            return false;
        if (!ret)
            continue;
        st_grant *got = st_xcalloc((size_t)want, sizeof *got);
        st_place_devices(placer, ask, &cand, want, got);
        for (int u = t, k = 0; u < job->tasks; u++)
            if (job->grants[u].node == node->id)
                ret[u] = got[k++];
        free(got);
    }
    return true;
}

static bool place_pinned(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    const st_job *job = ask->job;
    const st_node *node = placer->fleet->nodes.v[job->grants[0].node];
    bool nvlink = job->topo == ST_TOPO_NVLINK && job->topo_required && job->shape.gpus > 0;
    for (int d = 0; d < (nvlink ? node->ndevs : 1); d++) {
        int32_t domain = nvlink ? node->nvlink[d] : -1;
        if (place_on_own_nodes(placer, ask, domain, NULL))
            return !ret || place_on_own_nodes(placer, ask, domain, ret);
    }
    return false;
}

static bool place(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    const st_job *job = ask->job;
    bool required = job->topo_required && !ST_BROKEN(TOPOLOGY);
    if (job->state == ST_JOB_PAUSED)
        return place_pinned(placer, ask, ret);
    st_rooms *rooms = st_rooms_for(placer, ask);
    if (rooms->total < job->tasks)
        return false;
    if (!ret && !required)
        return true; /* somewhere, in whatever domains */
    if (job->topo == ST_TOPO_NVLINK) {
        if (place_nvlink(placer, ask, rooms, ret))
            return true;
        if (required)
            return false;
    }
    if (place_one_node(placer, ask, rooms, ret))
        return true;
    if (job->tasks == 1)
        return false;
    for (int level = ST_TOPO_RACK; level >= ST_TOPO_NONE; level--) {
        if (required && level < (int)job->topo)
            return false;
        if (place_domain(placer, ask, rooms, (st_topo)level, ret))
            return true;
    }
    return false;
}

bool st_place_gang(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    ST_ASSERT(ret && ask->job->tasks > 0);
    return place(placer, ask, ret);
}

bool st_place_fits(st_placer *placer, const st_ask *ask)
{
    return place(placer, ask, NULL);
}
