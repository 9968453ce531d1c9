/* Inside one node: how many tasks it can take, and which devices they get. */
#include "place/placer.h"

#include <limits.h>

#include "base/macros.h"
#include "base/mutant.h"

uint16_t st_all_devs(const st_node *node)
{
    return (uint16_t)((1u << node->ndevs) - 1);
}

uint16_t st_nvlink_devs(const st_node *node, int32_t domain)
{
    uint16_t devs = 0;
    for (int d = 0; d < node->ndevs; d++)
        devs |= (uint16_t)((node->nvlink[d] == domain) << d);
    return devs;
}

int64_t st_free_m(const st_view *view)
{
    int64_t sum = (int64_t)ST_WHOLE_M * __builtin_popcount(view->free);
    for (unsigned devs = view->shared; devs; devs &= devs - 1) {
        const st_dev *dev = &view->dev[__builtin_ctz(devs)];
        sum +=
            dev->mode == ST_DEV_MIG
                ? ST_WHOLE_M * (ST_MIG_MEMORY - __builtin_popcount(dev->mig_mask)) / ST_MIG_MEMORY
                : ST_MAX(ST_WHOLE_M - dev->used_m, 0);
    }
    return sum;
}

bool st_place_allowed(const st_placer *placer, const st_node *node, const st_job *job, int32_t type)
{
    if (job->pool >= 0 && node->pool != job->pool && !ST_BROKEN(POOL))
        return false;
    if (node->state == ST_NODE_REMOVED)
        return false;
    const st_pool *pool = &placer->fleet->pools.v[node->pool];
    if ((job->shape.needs & ~st_pool_gives(&pool->rules)) && !ST_BROKEN(ALLOW))
        return false;
    if (!st_fleet_picks(placer->fleet, job->shape.nodes, node))
        return false;
    if (job->shape.gpus == 0)
        return true;
    bool level = (pool->levels >> job->shape.level & 1) || ST_BROKEN(LEVEL);
    return node->type == type && level;
}

static int gpu_room(const st_placer *placer, const st_node *node, const st_job *job,
                    const st_view *view, uint16_t devs)
{
    if (job->shape.level == ST_LEVEL_WHOLE)
        return __builtin_popcount(view->free & devs) / job->shape.gpus;
    int n = 0;
    for (unsigned open = devs & (view->free | view->shared); open; open &= open - 1) {
        const st_dev *dev = &view->dev[__builtin_ctz(open)];
        n += st_dev_room(placer->fleet, placer->tree, node, job, dev);
    }
    return n / job->shape.gpus;
}

int st_place_room(const st_placer *placer, const st_node *node, const st_job *job,
                  const st_view *view, uint16_t devs)
{
    int64_t n = job->tasks;
    int64_t ram_mib = st_task_ram_mib(job);
    if (job->shape.cpu_m > 0 && !ST_BROKEN(CPU))
        n = ST_MIN(n, view->cpu_free_m / job->shape.cpu_m);
    if (ram_mib > 0 && !ST_BROKEN(RAM))
        n = ST_MIN(n, view->ram_free_mib / ram_mib);
    if (n > 0 && job->shape.gpus > 0)
        n = ST_MIN(n, gpu_room(placer, node, job, view, devs));
    return (int)ST_MAX(n, 0);
}

static uint16_t linked_free(const st_node *node, const st_view *view, int32_t domain, uint16_t devs)
{
    return st_nvlink_devs(node, domain) & view->free & devs;
}

/* Whole GPUs: inside the NVLink domain with least to spare, for a large job rather one without a
 * large job of somebody else; if no domain has enough, from the emptiest. */
static uint16_t pick_whole(const st_node *node, const st_job *job, const st_view *view,
                           uint16_t devs)
{
    uint16_t got = 0;
    bool large = st_is_large(job, node);
    for (int want = job->shape.gpus; want > 0;) {
        uint16_t best = 0;
        int least = INT_MAX;
        for (int d = 0; d < node->ndevs; d++) {
            uint16_t open = linked_free(node, view, node->nvlink[d], devs & (uint16_t)~got);
            int n = __builtin_popcount(open);
            if (n == 0 || (d > 0 && node->nvlink[d] == node->nvlink[d - 1]))
                continue;
            uint16_t all = st_nvlink_devs(node, node->nvlink[d]);
            int cost = n >= want ? 2 * n : 1000 - 2 * n;
            cost += large && st_has_stranger(node, all, job->account);
            if (cost < least) {
                least = cost;
                best = open;
            }
        }
        ST_ASSERT(best != 0);
        for (; best != 0 && want > 0; best &= (uint16_t)(best - 1), want--)
            got |= (uint16_t)(best & -best);
    }
    return got;
}

/* A slice or share: the fullest device that still has room, a fresh one last. */
static int pick_shared(const st_placer *placer, const st_node *node, const st_job *job,
                       const st_view *view, uint16_t devs)
{
    int best = -1, best_fill = -1;
    for (int d = 0; d < node->ndevs; d++) {
        const st_dev *dev = &view->dev[d];
        if (!(devs >> d & 1) || st_dev_room(placer->fleet, placer->tree, node, job, dev) < 1)
            continue;
        int fill = dev->mode == ST_DEV_FREE  ? 0
                   : dev->mode == ST_DEV_MIG ? 1 + __builtin_popcount(dev->mig_mask)
                                             : 1 + dev->used_m;
        if (fill > best_fill) {
            best = d;
            best_fill = fill;
        }
    }
    ST_ASSERT(best >= 0);
    return best;
}

/* One slice or share, where it wastes least; before anything is learned, on the fullest. */
static st_grant pick_part(st_placer *placer, const st_cand *cand, const st_job *job,
                          const st_view *view)
{
    const st_node *node = placer->fleet->nodes.v[cand->node];
    st_grant grant = {.node = node->id, .mig_start = -1};
    int d;
    if (st_waste_ready(placer->waste, &placer->typical)) {
        st_spot spot = {placer->fleet, placer->tree, node, view, cand->devs};
        d = st_waste_pick(placer->waste, &spot, job, &grant.mig_start);
    } else {
        d = pick_shared(placer, node, job, view, cand->devs);
        if (job->shape.level == ST_LEVEL_MIG)
            grant.mig_start = (int8_t)st_mig_best_start(
                view->dev[d].mig_mask, view->dev[d].mig_compute, job->shape.profile);
    }
    ST_ASSERT(d >= 0);
    grant.devs = (uint16_t)(1u << d);
    return grant;
}

int st_place_devices(st_placer *placer, const st_ask *ask, const st_cand *cand, int n,
                     st_grant *ret)
{
    const st_node *node = placer->fleet->nodes.v[cand->node];
    const st_job *job = ask->job;
    st_view view = *st_ask_view(ask, node);
    n = ST_MIN(n, cand->room);
    for (int i = 0; i < n; i++) {
        st_grant grant = {.node = node->id, .mig_start = -1};
        if (job->shape.gpus == 0) {
            grant.devs = 0;
        } else if (job->shape.level == ST_LEVEL_WHOLE) {
            grant.devs = pick_whole(node, job, &view, cand->devs);
        } else {
            grant = pick_part(placer, cand, job, &view);
        }
        int rc = st_view_add(placer->fleet, placer->tree, node, job, &grant, &view);
        ST_ASSERT(rc == 0);
        ret[i] = grant;
    }
    return n;
}
