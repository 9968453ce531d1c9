/* Inside one node: how many tasks it can take, and which devices they get. */
#include "place/placer.h"

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

bool st_place_allowed(const st_placer *placer, const st_node *node, const st_job *job, int32_t type)
{
    if (job->pool >= 0 && node->pool != job->pool && !ST_BROKEN(POOL))
        return false;
    if (job->shape.gpus == 0)
        return true;
    const st_pool *pool = &placer->fleet->pools.v[node->pool];
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

/* Whole GPUs: inside the NVLink domain with least to spare, else from the emptiest. */
static uint16_t pick_whole(const st_node *node, const st_view *view, uint16_t devs, int want)
{
    uint16_t got = 0;
    while (want > 0) {
        int32_t best = -1;
        int best_n = 0;
        for (int d = 0; d < node->ndevs; d++) {
            int n = 0;
            for (int e = 0; e < node->ndevs; e++)
                n += node->nvlink[e] == node->nvlink[d] && view->dev[e].mode == ST_DEV_FREE &&
                     (devs & ~got) >> e & 1;
            bool better = n >= want ? best_n < want || n < best_n : n > best_n;
            if (n > 0 && (best < 0 || better)) {
                best = node->nvlink[d];
                best_n = n;
            }
        }
        ST_ASSERT(best >= 0);
        for (int d = 0; d < node->ndevs && want > 0; d++) {
            if (node->nvlink[d] == best && view->dev[d].mode == ST_DEV_FREE &&
                (devs & ~got) >> d & 1) {
                got |= (uint16_t)(1u << d);
                want--;
            }
        }
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

static int8_t mig_start(st_placer *placer, const st_dev *dev, st_mig profile)
{
    uint8_t *known = &placer->mig_start[dev->mig_mask][dev->mig_compute][profile];
    if (*known == 0)
        *known = (uint8_t)(st_mig_best_start(dev->mig_mask, dev->mig_compute, profile) + 2);
    return (int8_t)(*known - 2);
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
            grant.devs = pick_whole(node, &view, cand->devs, job->shape.gpus);
        } else {
            int d = pick_shared(placer, node, job, &view, cand->devs);
            grant.devs = (uint16_t)(1u << d);
            if (job->shape.level == ST_LEVEL_MIG)
                grant.mig_start = mig_start(placer, &view.dev[d], job->shape.profile);
        }
        int rc = st_view_add(placer->fleet, placer->tree, node, job, &grant, &view);
        ST_ASSERT(rc == 0);
        ret[i] = grant;
    }
    return n;
}
