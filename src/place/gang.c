/* Across nodes: the tightest level a gang fits, and the nodes it takes there. */
#include <stdlib.h>

#include "base/macros.h"
#include "base/mem.h"
#include "place/placer.h"

st_placer *st_placer_new(const st_fleet *fleet, const st_tree *tree)
{
    st_placer *placer = st_xcalloc(1, sizeof *placer);
    placer->fleet = fleet;
    placer->tree = tree;
    return placer;
}

void st_placer_free(st_placer *placer)
{
    if (!placer)
        return;
    st_vec_free(&placer->cands);
    st_vec_free(&placer->work);
    st_vec_free(&placer->sums);
    free(placer);
}

const st_view *st_ask_view(const st_ask *ask, const st_node *node)
{
    return ask->view ? ask->view(ask->ctx, node) : &node->view;
}

/* What taking the node costs those who come later: the free GPU it has beyond the need, and
 * a fresh GPU opened for a share. */
static int64_t score(const st_ask *ask, const st_node *node, const st_view *view)
{
    int64_t free_m = 0;
    bool open = false;
    for (int d = 0; d < node->ndevs; d++) {
        const st_dev *dev = &view->dev[d];
        if (dev->mode == ST_DEV_FREE)
            free_m += ST_WHOLE_M;
        else if (dev->mode != ST_DEV_WHOLE)
            open = true;
    }
    int64_t fresh = ask->job->shape.level != ST_LEVEL_WHOLE && !open;
    int64_t away = ask->prefer && !ask->prefer[node->id];
    return (away << 40) + (fresh << 32) + free_m;
}

static void collect(st_placer *placer, const st_ask *ask)
{
    st_vec_clear(&placer->cands);
    for (size_t i = 0; i < placer->fleet->nodes.n; i++) {
        const st_node *node = placer->fleet->nodes.v[i];
        if (!ask->ever && node->state != ST_NODE_READY)
            continue;
        if (!st_place_allowed(placer, node, ask->job, ask->type))
            continue;
        const st_view *view = st_ask_view(ask, node);
        uint16_t all = (uint16_t)((1u << node->ndevs) - 1);
        int room = st_place_room(placer, node, ask->job, view, all);
        if (room > 0)
            st_vec_push(&placer->cands, (st_cand){node->id, room, score(ask, node, view), all});
    }
}

/* The domain of `level` with the smallest room that suffices, or -1. */
static int32_t best_domain(st_placer *placer, st_topo level, int want)
{
    size_t n = placer->fleet->domains[level].n;
    st_vec_reserve(&placer->sums, n);
    for (size_t i = 0; i < n; i++)
        placer->sums.v[i] = 0;
    for (size_t i = 0; i < placer->cands.n; i++) {
        int32_t dom = placer->fleet->nodes.v[placer->cands.v[i].node]->place[level];
        if (dom >= 0)
            placer->sums.v[dom] += placer->cands.v[i].room;
    }
    int32_t best = -1;
    for (size_t i = 0; i < n; i++)
        if (placer->sums.v[i] >= want && (best < 0 || placer->sums.v[i] < placer->sums.v[best]))
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

static int by_domain(const void *pa, const void *pb, void *arg)
{
    const st_cand *a = pa, *b = pb;
    const int32_t *domain = arg;
    int32_t da = domain[a->node], db = domain[b->node];
    if (da != db)
        return da < db ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Fill inside a run of candidates, level by level downwards: the fewest domains of `level`
 * (largest first, the last one the tightest that suffices), then the same inside each. */
static int fill(st_placer *placer, const st_ask *ask, st_topo level, st_cand *cands, size_t n,
                int want, st_grant *ret)
{
    if (level >= ST_TOPO_NODE)
        return fill_nodes(placer, ask, cands, n, want, ret);
    int32_t *domain = st_xcalloc(placer->fleet->nodes.n, sizeof *domain);
    for (size_t i = 0; i < n; i++)
        domain[cands[i].node] = placer->fleet->nodes.v[cands[i].node]->place[level];
    qsort_r(cands, n, sizeof *cands, by_domain, domain);
    ST_VEC(group) groups = {0};
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || domain[cands[i].node] != domain[cands[i - 1].node])
            st_vec_push(&groups, (group){i, i, 0});
        groups.v[groups.n - 1].to = i + 1;
        groups.v[groups.n - 1].room += cands[i].room;
    }
    free(domain);

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

/* One NVLink domain, which may be part of a node or span several. */
static bool place_nvlink(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    const st_fleet *fleet = placer->fleet;
    int64_t best_room = INT64_MAX;
    int32_t best = -1;
    for (size_t k = 0; k <= fleet->domains[ST_TOPO_NVLINK].n; k++) {
        /* The last round goes back to the best domain and leaves its nodes in `work`. */
        bool last = k == fleet->domains[ST_TOPO_NVLINK].n;
        if (last && (best < 0 || !ret))
            break;
        size_t id = last ? (size_t)best : k;
        const st_domain *dom = &fleet->domains[ST_TOPO_NVLINK].v[id];
        int64_t room = 0;
        st_vec_clear(&placer->work);
        for (size_t i = 0; i < dom->nodes.n; i++) {
            const st_node *node = fleet->nodes.v[dom->nodes.v[i]];
            if ((!ask->ever && node->state != ST_NODE_READY) ||
                !st_place_allowed(placer, node, ask->job, ask->type))
                continue;
            uint16_t devs = 0;
            for (int d = 0; d < node->ndevs; d++)
                devs |= (uint16_t)((node->nvlink[d] == (int32_t)id) << d);
            const st_view *view = st_ask_view(ask, node);
            int r = st_place_room(placer, node, ask->job, view, devs);
            room += r;
            if (r > 0)
                st_vec_push(&placer->work, (st_cand){node->id, r, score(ask, node, view), devs});
        }
        if (room >= ask->job->tasks && room < best_room) {
            best_room = room;
            best = (int32_t)k;
        }
    }
    if (best < 0)
        return false;
    if (ret) {
        int n = fill_nodes(placer, ask, placer->work.v, placer->work.n, ask->job->tasks, ret);
        ST_ASSERT(n == ask->job->tasks);
    }
    return true;
}

static bool place_one_node(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    const st_cand *best = NULL;
    for (size_t i = 0; i < placer->cands.n; i++) {
        const st_cand *c = &placer->cands.v[i];
        if (c->room >= ask->job->tasks && (!best || c->score < best->score))
            best = c;
    }
    if (best && ret)
        st_place_devices(placer, ask, best, ask->job->tasks, ret);
    return best;
}

static bool place_domain(st_placer *placer, const st_ask *ask, st_topo level, st_grant *ret)
{
    int want = ask->job->tasks;
    int32_t dom = -1;
    if (level != ST_TOPO_NONE) {
        dom = best_domain(placer, level, want);
        if (dom < 0)
            return false;
    }
    if (!ret)
        return true;
    st_vec_clear(&placer->work);
    for (size_t i = 0; i < placer->cands.n; i++) {
        const st_cand *c = &placer->cands.v[i];
        if (dom < 0 || placer->fleet->nodes.v[c->node]->place[level] == dom)
            st_vec_push(&placer->work, *c);
    }
    int n = fill(placer, ask, (st_topo)(level + 1), placer->work.v, placer->work.n, want, ret);
    ST_ASSERT(n == want);
    return true;
}

/* A paused gang is still in its nodes' memory and can only go on there. */
static bool place_pinned(st_placer *placer, const st_ask *ask, st_grant *ret)
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
        uint16_t all = (uint16_t)((1u << node->ndevs) - 1);
        st_cand cand = {node->id, 0, 0, all};
        cand.room = st_place_room(placer, node, job, st_ask_view(ask, node), all);
        if (cand.room < want)
            return false;
        if (!ret)
            continue;
        st_grant got[ST_DEVS_MAX * ST_MPS_CLIENTS_MAX];
        ST_ASSERT(want <= (int)ST_ARRAY_LEN(got));
        st_place_devices(placer, ask, &cand, want, got);
        for (int u = t, k = 0; u < job->tasks; u++)
            if (job->grants[u].node == node->id)
                ret[u] = got[k++];
    }
    return true;
}

static bool place(st_placer *placer, const st_ask *ask, st_grant *ret)
{
    const st_job *job = ask->job;
    if (job->state == ST_JOB_PAUSED)
        return place_pinned(placer, ask, ret);
    if (job->topo == ST_TOPO_NVLINK) {
        if (place_nvlink(placer, ask, ret))
            return true;
        if (job->topo_required)
            return false;
    }
    collect(placer, ask);
    int64_t total = 0;
    for (size_t i = 0; i < placer->cands.n; i++)
        total += placer->cands.v[i].room;
    if (total < job->tasks)
        return false;
    if (place_one_node(placer, ask, ret))
        return true;
    if (job->tasks == 1)
        return false;
    for (int level = ST_TOPO_RACK; level >= ST_TOPO_NONE; level--) {
        if (job->topo_required && level < (int)job->topo)
            return false;
        if (place_domain(placer, ask, (st_topo)level, ret))
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
