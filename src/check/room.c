/*
 * Occupancy and fit, the slow way. See check_room.h.
 */
#include "check/room.h"

#include <stdlib.h>

#include "base/mem.h"

bool st_room_is_now(const st_job *job)
{
    return job->state == ST_JOB_RUNNING || job->state == ST_JOB_NOTIFIED ||
           job->state == ST_JOB_CHECKPOINTING || job->state == ST_JOB_STOPPING;
}

bool st_room_is_next(const st_job *job)
{
    return job->state == ST_JOB_RUNNING || job->held;
}

bool st_room_untrusted(const st_tree *tree, int32_t account)
{
    bool untrusted = false;
    for (; account > ST_ROOT; account = tree->accounts.v[account]->parent)
        untrusted |= tree->accounts.v[account]->trust == ST_TRUST_UNTRUSTED;
    return untrusted;
}

int32_t st_room_domain(const st_tree *tree, int32_t account)
{
    while (account > ST_ROOT && !tree->accounts.v[account]->own_domain &&
           tree->accounts.v[account]->parent > ST_ROOT)
        account = tree->accounts.v[account]->parent;
    return account;
}

int64_t st_room_vram_mib(const st_fleet *fleet, const st_job *job, int32_t type)
{
    if (job->shape.vram_mib > 0)
        return job->shape.vram_mib;
    return fleet->types.v[type].vram_mib * job->shape.share_m / 1000;
}

static int32_t same_or_mixed(int32_t have, int32_t more)
{
    return have == -1 || have == more ? more : -2;
}

static void sit_down(const st_room *room, st_room_dev *dev, const st_job *job,
                     const st_grant *grant)
{
    const st_shape *shape = &job->shape;
    if (dev->tasks == 0)
        dev->first = job->id;
    dev->last = job->id;
    dev->tasks++;
    dev->levels |= 1u << shape->level;
    dev->latency_critical |= job->latency_critical;
    dev->account = same_or_mixed(dev->account, job->account);
    dev->domain = same_or_mixed(dev->domain, st_room_domain(room->tree, job->account));
    if (shape->level == ST_LEVEL_MIG) {
        bool legal = st_mig_start_legal(shape->profile, grant->mig_start);
        unsigned mask = legal ? st_mig_mask(shape->profile, grant->mig_start) : 0;
        dev->mig_bad |= !legal || (dev->mig_mask & mask) != 0;
        dev->mig_mask |= mask;
        dev->mig_compute += st_mig_compute(shape->profile);
    } else if (shape->level == ST_LEVEL_MPS || shape->level == ST_LEVEL_TIME) {
        dev->share_m += shape->share_m;
        dev->vram_mib +=
            st_room_vram_mib(room->fleet, job, room->fleet->nodes.v[grant->node]->type);
    }
}

/* CPU and RAM of both moments, kept apart until all are seated. */
typedef struct host_use {
    int64_t cpu_m[2], ram_mib[2];
    int64_t in_cpu_m[2], in_ram_mib[2]; /* of it, behind a fence */
} host_use;

static void seat_job(st_room *room, const st_job *job, st_when when, host_use *hosts)
{
    bool there[2] = {st_room_is_now(job), st_room_is_next(job)};
    bool pauses = st_job_leaving(job) && job->yield == ST_YIELD_PAUSE;
    bool memory = job->state == ST_JOB_PAUSED || pauses;
    bool seated = when == ST_WHEN_NOW    ? there[0]
                  : when == ST_WHEN_NEXT ? there[1]
                                         : there[0] || there[1];
    for (int t = 0; t < job->tasks; t++) {
        const st_grant *grant = &job->grants[t];
        for (int d = 0; seated && d < ST_DEVS_MAX; d++)
            if (grant->devs >> d & 1)
                sit_down(room, &room->nodes[grant->node].dev[d], job, grant);
        for (int m = 0; m < 2; m++) {
            hosts[grant->node].cpu_m[m] += there[m] ? job->shape.cpu_m : 0;
            hosts[grant->node].ram_mib[m] += there[m] || memory ? job->shape.ram_mib : 0;
            if (!(room->fleet->nodes.v[grant->node]->fence & grant->devs))
                continue;
            hosts[grant->node].in_cpu_m[m] += there[m] ? job->shape.cpu_m : 0;
            hosts[grant->node].in_ram_mib[m] += there[m] || memory ? job->shape.ram_mib : 0;
        }
    }
}

/* A job thought away as a victim: one that pauses stays in memory. */
static void leave_memory(const st_fleet *fleet, const st_job *job, host_use *hosts)
{
    for (int t = 0; job->yield == ST_YIELD_PAUSE && t < job->tasks; t++)
        for (int m = 0; m < 2; m++) {
            hosts[job->grants[t].node].ram_mib[m] += job->shape.ram_mib;
            if (fleet->nodes.v[job->grants[t].node]->fence & job->grants[t].devs)
                hosts[job->grants[t].node].in_ram_mib[m] += job->shape.ram_mib;
        }
}

/* What is fenced and not in use is in use all the same. */
static void fence(const st_node *node, st_room_node *used, host_use *h)
{
    for (int d = 0; d < node->ndevs; d++)
        used->dev[d].fenced = (node->fence | node->out) >> d & 1;
    for (int m = 0; node->fence && m < 2; m++) {
        h->cpu_m[m] += ST_MAX(node->fence_cpu_m - h->in_cpu_m[m], 0);
        h->ram_mib[m] += ST_MAX(node->fence_ram_mib - h->in_ram_mib[m], 0);
    }
}

static void build(st_room *room, const st_fleet *fleet, const st_tree *tree,
                  const st_job_list *jobs, const uint8_t *out, st_when when, bool fences)
{
    *room = (st_room){.fleet = fleet, .tree = tree, .n = fleet->nodes.n};
    room->nodes = st_xcalloc(room->n + 1, sizeof *room->nodes);
    for (size_t i = 0; i < room->n; i++)
        for (int d = 0; d < ST_DEVS_MAX; d++)
            room->nodes[i].dev[d].account = room->nodes[i].dev[d].domain = -1;
    ST_CLEANUP(st_freep) host_use *hosts = st_xcalloc(room->n + 1, sizeof *hosts);
    for (size_t i = 0; when != ST_WHEN_EMPTY && i < jobs->n; i++)
        if (jobs->v[i]->grants && out && out[i])
            leave_memory(fleet, jobs->v[i], hosts);
        else if (jobs->v[i]->grants)
            seat_job(room, jobs->v[i], when, hosts);
    for (size_t i = 0; i < room->n; i++) {
        host_use *h = &hosts[i];
        if (fences && when != ST_WHEN_EMPTY)
            fence(fleet->nodes.v[i], &room->nodes[i], h);
        int first = when == ST_WHEN_NEXT, last = when != ST_WHEN_NOW;
        room->nodes[i].cpu_m = ST_MAX(h->cpu_m[first], h->cpu_m[last]);
        room->nodes[i].ram_mib = ST_MAX(h->ram_mib[first], h->ram_mib[last]);
    }
}

void st_room_build(st_room *room, const st_fleet *fleet, const st_tree *tree,
                   const st_job_list *jobs, const uint8_t *out, st_when when)
{
    build(room, fleet, tree, jobs, out, when, true);
}

void st_room_bare(st_room *room, const st_fleet *fleet, const st_tree *tree,
                  const st_job_list *jobs, const uint8_t *out, st_when when)
{
    build(room, fleet, tree, jobs, out, when, false);
}

void st_room_done(st_room *room)
{
    free(room->nodes);
    *room = (st_room){0};
}

/* The most instances of a profile that a carved GPU can still take from a start on, by trying. */
static int mig_more(unsigned mask, int compute, st_mig profile, int from)
{
    int best = 0;
    if (compute + st_mig_compute(profile) > ST_MIG_COMPUTE)
        return 0;
    for (int s = from; s < ST_MIG_MEMORY; s++) {
        if (!st_mig_start_legal(profile, s) || (mask & st_mig_mask(profile, s)))
            continue;
        int n = 1 + mig_more(mask | st_mig_mask(profile, s), compute + st_mig_compute(profile),
                             profile, s + 1);
        best = ST_MAX(best, n);
    }
    return best;
}

static int64_t dev_tasks(const st_room *room, const st_node *node, const st_job *job,
                         const st_room_dev *dev)
{
    const st_shape *shape = &job->shape;
    if (dev->fenced)
        return 0;
    if (dev->tasks > 0 && dev->levels != 1u << shape->level)
        return 0;
    if (shape->level == ST_LEVEL_WHOLE)
        return dev->tasks == 0;
    if (shape->level == ST_LEVEL_MIG)
        return mig_more(dev->mig_mask, dev->mig_compute, shape->profile, 0);
    int64_t top_m = 1000;
    if (shape->level == ST_LEVEL_TIME)
        top_m = room->fleet->pools.v[node->pool].oversub_m;
    else if (dev->tasks > 0 && dev->domain != st_room_domain(room->tree, job->account))
        return 0;
    if (dev->tasks > 0 && (dev->latency_critical || job->latency_critical) &&
        dev->account != job->account)
        return 0;
    int64_t vram = st_room_vram_mib(room->fleet, job, node->type), n = 0;
    while (dev->share_m + (n + 1) * shape->share_m <= top_m &&
           dev->vram_mib + (n + 1) * vram <= room->fleet->types.v[node->type].vram_mib &&
           dev->tasks + n + 1 <= ST_MPS_CLIENTS_MAX)
        n++;
    return n;
}

int64_t st_room_tasks(const st_room *room, const st_node *node, const st_job *job, uint16_t devs)
{
    const st_room_node *used = &room->nodes[node->id];
    int64_t ram_mib = job->state == ST_JOB_PAUSED ? 0 : job->shape.ram_mib;
    int64_t gpus = 0, n = 0;
    for (int d = 0; job->shape.gpus > 0 && d < node->ndevs; d++)
        if (devs >> d & 1)
            gpus += dev_tasks(room, node, job, &used->dev[d]);
    /* Beside those who leave for a booking there may be less than nothing: for who asks for none that is enough. */
    while (n < job->tasks &&
           (job->shape.cpu_m == 0 || used->cpu_m + (n + 1) * job->shape.cpu_m <= node->cpu_m) &&
           (ram_mib == 0 || used->ram_mib + (n + 1) * ram_mib <= node->ram_mib) &&
           (job->shape.gpus == 0 || (n + 1) * job->shape.gpus <= gpus))
        n++;
    return n;
}

static bool may_serve(const st_fleet *fleet, const st_node *node, const st_job *job, int32_t type,
                      bool ever)
{
    if (node->state == ST_NODE_REMOVED || (!ever && node->state != ST_NODE_READY))
        return false;
    if (job->pool >= 0 && job->pool != node->pool)
        return false;
    if (job->shape.needs & ~st_pool_gives(&fleet->pools.v[node->pool].rules))
        return false;
    if (!st_check_picked(fleet, node, job))
        return false;
    return job->shape.gpus == 0 ||
           (node->type == type && (fleet->pools.v[node->pool].levels >> job->shape.level & 1));
}

static uint16_t all_devs(const st_node *node)
{
    return (uint16_t)((1u << node->ndevs) - 1);
}

static uint16_t nvlink_devs(const st_node *node, int32_t domain)
{
    uint16_t devs = 0;
    for (int d = 0; d < node->ndevs; d++)
        if (node->nvlink[d] == domain)
            devs |= (uint16_t)(1u << d);
    return devs;
}

/* On the nodes it is on already, and inside one NVLink domain of theirs where that is not -1. */
static bool fits_there(const st_room *room, const st_job *job, int32_t type, bool ever,
                       int32_t domain)
{
    for (size_t i = 0; i < room->n; i++) {
        const st_node *node = room->fleet->nodes.v[i];
        uint16_t devs = domain < 0 ? all_devs(node) : nvlink_devs(node, domain);
        int want = 0;
        for (int t = 0; t < job->tasks; t++)
            want += job->grants[t].node == node->id;
        if (want > 0 && (!may_serve(room->fleet, node, job, type, ever) ||
                         st_room_tasks(room, node, job, devs) < want))
            return false;
    }
    return true;
}

static bool fits_pinned(const st_room *room, const st_job *job, int32_t type, bool ever)
{
    if (!job->topo_required || job->topo != ST_TOPO_NVLINK || job->shape.gpus == 0)
        return fits_there(room, job, type, ever, -1);
    for (size_t k = 0; k < room->fleet->domains[ST_TOPO_NVLINK].n; k++)
        if (fits_there(room, job, type, ever, (int32_t)k))
            return true;
    return false;
}

static bool fits_nvlink(const st_room *room, const st_job *job, int32_t type, bool ever)
{
    for (size_t k = 0; k < room->fleet->domains[ST_TOPO_NVLINK].n; k++) {
        int64_t sum = 0;
        for (size_t i = 0; i < room->n; i++) {
            const st_node *node = room->fleet->nodes.v[i];
            uint16_t devs = nvlink_devs(node, (int32_t)k);
            if (devs && may_serve(room->fleet, node, job, type, ever))
                sum += st_room_tasks(room, node, job, devs);
        }
        if (sum >= job->tasks)
            return true;
    }
    return false;
}

/* Whether two nodes stand in one domain of a level; a node is always with itself. */
static bool side_by_side(const st_node *a, const st_node *b, int level)
{
    return a == b ||
           (level < ST_TOPO_NODE && a->place[level] >= 0 && a->place[level] == b->place[level]);
}

bool st_room_fits(const st_room *room, const st_job *job, int32_t type, bool ever)
{
    if (job->state == ST_JOB_PAUSED)
        return fits_pinned(room, job, type, ever);
    st_topo wanted = job->topo_required ? job->topo : ST_TOPO_NONE;
    if (wanted == ST_TOPO_NVLINK)
        return fits_nvlink(room, job, type, ever);

    ST_CLEANUP(st_freep) int64_t *tasks = st_xcalloc(room->n + 1, sizeof *tasks);
    int64_t all = 0;
    for (size_t i = 0; i < room->n; i++) {
        const st_node *node = room->fleet->nodes.v[i];
        if (may_serve(room->fleet, node, job, type, ever))
            all += tasks[i] = st_room_tasks(room, node, job, all_devs(node));
    }
    if (wanted == ST_TOPO_NONE || all < job->tasks)
        return all >= job->tasks;
    for (size_t i = 0; i < room->n; i++) {
        for (int level = wanted; level <= ST_TOPO_NODE; level++) {
            int64_t sum = 0;
            for (size_t k = 0; k < room->n; k++)
                if (side_by_side(room->fleet->nodes.v[i], room->fleet->nodes.v[k], level))
                    sum += tasks[k];
            if (sum >= job->tasks)
                return true;
        }
    }
    return false;
}

bool st_room_together(const st_fleet *fleet, const st_job *job, const st_grant *grants)
{
    if (!job->topo_required || job->topo == ST_TOPO_NONE)
        return true;
    if (job->topo == ST_TOPO_NVLINK) {
        int32_t domain = -1;
        for (int t = 0; t < job->tasks; t++)
            for (int d = 0; d < ST_DEVS_MAX; d++)
                if (grants[t].devs >> d & 1)
                    domain = same_or_mixed(domain, fleet->nodes.v[grants[t].node]->nvlink[d]);
        return domain != -2;
    }
    for (int level = job->topo; level <= ST_TOPO_NODE; level++) {
        bool same = true;
        for (int t = 1; t < job->tasks; t++)
            same &=
                side_by_side(fleet->nodes.v[grants[0].node], fleet->nodes.v[grants[t].node], level);
        if (same)
            return true;
    }
    return false;
}
