/*
 * One state, held against invariants 1 to 3 of core/core.h.
 *
 *   jobs      each job is in a state its fields agree with, and a gang is whole
 *   nodes     nothing is given out twice, in both moments, and all of it is accounted for
 *   accounts  capacity, floors, guaranteed use, and the counters kept for them
 *
 * Ceilings, limits and trust are rules for a start, since an admin may tighten them under jobs
 * that run: the watch keeps those (step.c).
 */
#include "check/check.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "check/quota.h"
#include "check/room.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

/* ---- jobs --------------------------------------------------------------------------- */

static int check_grant(const st_fleet *fleet, const st_job *job, int t, st_err *err)
{
    const st_grant *g = &job->grants[t];
    if (g->node < 0 || (size_t)g->node >= fleet->nodes.n)
        return BAD("gang: job %" PRIu64 " task %d has no node", job->id, t);
    const st_node *node = fleet->nodes.v[g->node];
    if (g->devs >> node->ndevs)
        return BAD("capacity: job %" PRIu64 " has GPU mask %#x on node %s with %d GPUs", job->id,
                   (unsigned)g->devs, node->name, node->ndevs);
    if (job->state == ST_JOB_PAUSED && !job->held)
        return 0;
    if (__builtin_popcount(g->devs) != job->shape.gpus)
        return BAD("gang: job %" PRIu64 " task %d has %d GPUs, it asked for %d", job->id, t,
                   __builtin_popcount(g->devs), job->shape.gpus);
    if (job->pool >= 0 && node->pool != job->pool)
        return BAD("pool: job %" PRIu64 " of pool %d is on node %s", job->id, job->pool,
                   node->name);
    if (job->shape.needs & ~st_pool_gives(&fleet->pools.v[node->pool].rules))
        return BAD("permission: job %" PRIu64 " needs %#x, the pool of node %s gives %#x", job->id,
                   job->shape.needs, node->name, st_pool_gives(&fleet->pools.v[node->pool].rules));
    if (st_node_away(node) && job->state != ST_JOB_STOPPING)
        return BAD("failed node: job %" PRIu64 " (%s) is on node %s, which failed", job->id,
                   st_job_state_name(job->state), node->name);
    for (int d = 0; d < node->ndevs; d++) {
        st_node_state alone = g->devs >> d & 1 ? st_gpu_state(node, d) : ST_NODE_READY;
        if (alone == ST_NODE_FAILED && job->state != ST_JOB_STOPPING)
            return BAD("failed GPU: job %" PRIu64 " (%s) is on GPU %d of node %s, which is %s",
                       job->id, st_job_state_name(job->state), d, node->name,
                       st_node_state_name(alone));
        if (alone != ST_NODE_READY && job->held)
            return BAD("hold: job %" PRIu64 " is promised GPU %d of node %s, which is %s", job->id,
                       d, node->name, st_node_state_name(alone));
    }
    if (job->held && node->state != ST_NODE_READY)
        return BAD("hold: job %" PRIu64 " is promised node %s, which takes nobody", job->id,
                   node->name);
    if (job->shape.gpus == 0)
        return 0;
    if (node->type != job->type)
        return BAD("gang: job %" PRIu64 " is of GPU type %d, node %s has type %d", job->id,
                   job->type, node->name, node->type);
    if (!(fleet->pools.v[node->pool].levels >> job->shape.level & 1))
        return BAD("isolation: job %" PRIu64 " is at level %s on node %s, whose pool forbids it",
                   job->id, st_level_name(job->shape.level), node->name);
    if (job->shape.level == ST_LEVEL_MIG && fleet->types.v[node->type].board == ST_BOARD_NONE)
        return BAD("MIG: job %" PRIu64 " has a slice on node %s, which cannot be carved", job->id,
                   node->name);
    return 0;
}

static int check_placed(const st_core *core, const st_job *job, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    for (int t = 0; t < job->tasks; t++) {
        int rc = check_grant(fleet, job, t, err);
        if (rc < 0)
            return rc;
    }
    if (job->state == ST_JOB_PAUSED && !job->held)
        return 0;
    if (job->shape.gpus > 0 && job->shape.types && !(job->shape.types >> job->type & 1))
        return BAD("type: job %" PRIu64 " runs on GPU type %d, which it did not allow", job->id,
                   job->type);
    if (!st_room_together(fleet, job, job->grants))
        return BAD("topology: job %" PRIu64 " requires one %s and is not inside one", job->id,
                   st_topo_name(job->topo));
    return 0;
}

static int check_fields(const st_core *core, const st_job *job, st_err *err)
{
    const char *state = st_job_state_name(job->state);
    bool on = st_room_is_now(job);
    bool leaving = on && job->state != ST_JOB_RUNNING;
    bool waits = job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED;
    if (!on && !waits)
        return BAD("state: job %" PRIu64 " is %s and still in the list", job->id, state);
    if (job->held && !waits)
        return BAD("state: job %" PRIu64 " is %s and held", job->id, state);
    bool placed = on || job->held || job->state == ST_JOB_PAUSED;
    if (placed != (job->grants != NULL))
        return BAD("state: job %" PRIu64 " is %s%s and has %s grants", job->id, state,
                   job->held ? ", held," : "", job->grants ? "" : "no");
    if ((on || job->held) != (job->class != ST_CLASS_NONE))
        return BAD("state: job %" PRIu64 " is %s%s and of class %s", job->id, state,
                   job->held ? ", held," : "", st_class_name(job->class));
    bool stopping = job->state == ST_JOB_STOPPING;
    if (stopping && (!job->stopping || job->stop_ms > st_core_now(core)))
        return BAD("state: job %" PRIu64 " is %s since %" PRId64 ", it is %" PRId64, job->id, state,
                   job->stop_ms, st_core_now(core));
    if (job->barred && job->state == ST_JOB_RUNNING)
        return BAD("bar: job %" PRIu64 " runs and is barred", job->id);
    bool must = job->claimant != 0 || job->barred; /* for somebody, or by order */
    if (!stopping && (leaving ? !must : job->claimant != 0))
        return BAD("state: job %" PRIu64 " is %s and its claimant is %" PRIu64, job->id, state,
                   job->claimant);
    if (leaving && job->deadline_ms <= st_core_now(core))
        return BAD("state: job %" PRIu64 " is %s at %" PRId64 ", past its deadline %" PRId64,
                   job->id, state, st_core_now(core), job->deadline_ms);
    if (leaving && !stopping && job->claimant && job->class == ST_CLASS_GUARANTEED)
        return BAD("reclaim: job %" PRIu64 " must yield and is guaranteed", job->id);
    if (job->shape.gpus > 0 && (on || job->held) &&
        (job->type < 0 || (size_t)job->type >= st_core_fleet(core)->types.n))
        return BAD("state: job %" PRIu64 " is %s on GPU type %d", job->id, state, job->type);
    if (on && job->start_ms > st_core_now(core))
        return BAD("state: job %" PRIu64 " started at %" PRId64 ", it is %" PRId64, job->id,
                   job->start_ms, st_core_now(core));
    return 0;
}

static int check_jobs(const st_core *core, const st_job_list *jobs, st_err *err)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const st_job *job = jobs->v[i];
        if (i > 0 && jobs->v[i - 1]->id >= job->id)
            return BAD("state: jobs %" PRIu64 " and %" PRIu64 " are out of order",
                       jobs->v[i - 1]->id, job->id);
        if (st_tree_account(st_core_tree(core), job->account)->gone)
            return BAD("account: job %" PRIu64 " is of an account that is gone", job->id);
        int rc = check_fields(core, job, err);
        if (rc == 0 && job->grants)
            rc = check_placed(core, job, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- nodes -------------------------------------------------------------------------- */

static int check_shared(const st_fleet *fleet, const st_node *node, int d, const st_room_dev *dev,
                        const char *when, st_err *err)
{
    bool mps = dev->levels == 1u << ST_LEVEL_MPS;
    int64_t top_m = mps ? 1000 : fleet->pools.v[node->pool].oversub_m;
    if (dev->share_m > top_m)
        return BAD("%s: node %s GPU %d (%s): shares of %" PRId64 " milli, at most %" PRId64,
                   mps ? "MPS" : "time-slicing", node->name, d, when, dev->share_m, top_m);
    if (dev->tasks > ST_MPS_CLIENTS_MAX)
        return BAD("clients: node %s GPU %d (%s): %d tasks", node->name, d, when, dev->tasks);
    if (dev->vram_mib > fleet->types.v[node->type].vram_mib)
        return BAD("VRAM: node %s GPU %d (%s): %" PRId64 " MiB of %" PRId64, node->name, d, when,
                   dev->vram_mib, fleet->types.v[node->type].vram_mib);
    if (mps && dev->domain == -2)
        return BAD("trust: node %s GPU %d (%s): jobs %" PRIu64 " and %" PRIu64
                   " of different trust domains share it by MPS",
                   node->name, d, when, dev->first, dev->last);
    if (dev->latency_critical && dev->account == -2)
        return BAD("latency: node %s GPU %d (%s): a latency-critical job shares it with another "
                   "account's (jobs %" PRIu64 " to %" PRIu64 ")",
                   node->name, d, when, dev->first, dev->last);
    return 0;
}

static int check_dev(const st_fleet *fleet, const st_node *node, int d, const st_room_dev *dev,
                     const char *when, st_err *err)
{
    if (dev->tasks == 0)
        return 0;
    if (__builtin_popcount(dev->levels) > 1)
        return BAD("mode: node %s GPU %d (%s) is used at several isolation levels (jobs %" PRIu64
                   " and %" PRIu64 ")",
                   node->name, d, when, dev->first, dev->last);
    if (dev->levels == 1u << ST_LEVEL_WHOLE && dev->tasks > 1)
        return BAD("capacity: node %s GPU %d (%s) is given whole to jobs %" PRIu64 " and %" PRIu64,
                   node->name, d, when, dev->first, dev->last);
    if (dev->levels == 1u << ST_LEVEL_MIG && (dev->mig_bad || dev->mig_compute > ST_MIG_COMPUTE))
        return BAD("MIG: node %s GPU %d (%s): the layout is illegal (jobs %" PRIu64 " and %" PRIu64
                   ", %d compute slices)",
                   node->name, d, when, dev->first, dev->last, dev->mig_compute);
    if (dev->levels & (1u << ST_LEVEL_MPS | 1u << ST_LEVEL_TIME))
        return check_shared(fleet, node, d, dev, when, err);
    return 0;
}

/* milli-GPU a device gives out, physically: time-sliced shares beyond one GPU are one GPU. */
static int64_t footprint_m(const st_room_dev *dev)
{
    if (dev->levels & 1u << ST_LEVEL_WHOLE)
        return 1000;
    if (dev->levels & 1u << ST_LEVEL_MIG)
        return 1000 * __builtin_popcount(dev->mig_mask) / ST_MIG_MEMORY;
    return ST_MIN(dev->share_m, 1000);
}

static int check_moment(const st_core *core, const st_job_list *jobs, st_when when, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    const char *name = when == ST_WHEN_NOW ? "now" : "once the holds come true";
    int64_t given = 0, idle = 0, unhealthy = 0, all = 0;
    st_room room;
    int rc = 0;
    st_room_bare(&room, fleet, st_core_tree(core), jobs, NULL, when);
    for (size_t i = 0; rc == 0 && i < room.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        const st_room_node *used = &room.nodes[i];
        if (used->cpu_m > node->cpu_m)
            rc = BAD("CPU: node %s (%s): %" PRId64 " milli-CPU given of %" PRId64, node->name, name,
                     used->cpu_m, node->cpu_m);
        else if (used->ram_mib > node->ram_mib)
            rc = BAD("RAM: node %s (%s): %" PRId64 " MiB given of %" PRId64, node->name, name,
                     used->ram_mib, node->ram_mib);
        for (int d = 0; rc == 0 && d < node->ndevs && node->state != ST_NODE_REMOVED; d++) {
            rc = check_dev(fleet, node, d, &used->dev[d], name, err);
            given += footprint_m(&used->dev[d]);
            if (node->state == ST_NODE_FAILED) /* only those who stop are there (check_grant) */
                unhealthy += 1000 - footprint_m(&used->dev[d]);
            else
                idle += 1000 - footprint_m(&used->dev[d]);
            all += 1000;
        }
    }
    if (rc == 0 && given + idle + unhealthy != all)
        rc = BAD("conservation (%s): %" PRId64 " given + %" PRId64 " idle + %" PRId64
                 " unhealthy is not %" PRId64 " milli-GPU",
                 name, given, idle, unhealthy, all);
    st_room_done(&room);
    return rc;
}

/* What the node's own view must say of a device that is used as in `mine`. */
static bool view_agrees(const st_room_dev *mine, const st_dev *dev)
{
    if (mine->fenced)
        return dev->mode == ST_DEV_WHOLE;
    if ((dev->mode == ST_DEV_FREE) != (mine->tasks == 0))
        return false;
    if (dev->mode == ST_DEV_MIG)
        return mine->levels == 1u << ST_LEVEL_MIG && dev->mig_mask == mine->mig_mask &&
               dev->mig_compute == ST_MIN(mine->mig_compute, ST_MIG_COMPUTE);
    if (dev->mode == ST_DEV_MPS || dev->mode == ST_DEV_TIME)
        return mine->levels == 1u << (dev->mode == ST_DEV_MPS ? ST_LEVEL_MPS : ST_LEVEL_TIME) &&
               dev->used_m == mine->share_m && dev->vram_mib == mine->vram_mib &&
               dev->clients == mine->tasks && dev->latency_critical == mine->latency_critical &&
               (dev->owner == ST_OWNER_MIXED ? -2 : dev->owner) == mine->account &&
               (dev->domain == ST_OWNER_MIXED ? -2 : dev->domain) == mine->domain;
    return true;
}

static int check_views(const st_core *core, const st_job_list *jobs, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(core);
    st_room room;
    int rc = 0;
    st_room_build(&room, fleet, st_core_tree(core), jobs, NULL, ST_WHEN_EITHER);
    for (size_t i = 0; rc == 0 && i < room.n; i++) {
        const st_node *node = fleet->nodes.v[i];
        const st_room_node *used = &room.nodes[i];
        if (node->view.cpu_free_m != node->cpu_m - used->cpu_m ||
            node->view.ram_free_mib != node->ram_mib - used->ram_mib)
            rc = BAD("view: node %s thinks %" PRId64 " milli-CPU and %" PRId64
                     " MiB are free, its jobs leave %" PRId64 " and %" PRId64,
                     node->name, node->view.cpu_free_m, node->view.ram_free_mib,
                     node->cpu_m - used->cpu_m, node->ram_mib - used->ram_mib);
        for (int d = 0; rc == 0 && d < node->ndevs; d++)
            if (!view_agrees(&used->dev[d], &node->view.dev[d]))
                rc = BAD("view: node %s thinks GPU %d is in mode %d, its jobs say levels %#x, %d "
                         "tasks",
                         node->name, d, node->view.dev[d].mode, used->dev[d].levels,
                         used->dev[d].tasks);
    }
    st_room_done(&room);
    return rc;
}

/* ---- accounts ----------------------------------------------------------------------- */

static int check_counter(const st_account *a, const char *which, const st_use *kept,
                         const st_use *mine, st_err *err)
{
    bool types = memcmp(kept->type_m, mine->type_m, sizeof kept->type_m) == 0;
    if (kept->gpu_m == mine->gpu_m && kept->cpu_m == mine->cpu_m &&
        kept->ram_mib == mine->ram_mib && types)
        return 0;
    return BAD("counters: account %s %s: kept %" PRId64 " milli-GPU, %" PRId64
               " milli-CPU, %" PRId64 " MiB, its jobs say %" PRId64 ", %" PRId64 ", %" PRId64 "%s",
               a->name, which, kept->gpu_m, kept->cpu_m, kept->ram_mib, mine->gpu_m, mine->cpu_m,
               mine->ram_mib, types ? "" : " and the types differ");
}

static int check_floors(const st_tally *tally, st_err *err)
{
    const st_tree *tree = tally->tree;
    if (memcmp(&tally->capacity, &tree->capacity, sizeof tally->capacity) != 0)
        return BAD("capacity: the fleet has %" PRId64 " milli-GPU, %" PRId64 " milli-CPU, %" PRId64
                   " MiB, the core counts %" PRId64 ", %" PRId64 ", %" PRId64,
                   tally->capacity.gpu_m, tally->capacity.cpu_m, tally->capacity.ram_mib,
                   tree->capacity.gpu_m, tree->capacity.cpu_m, tree->capacity.ram_mib);
    char why[200];
    if (!st_tally_floors_ok(tally, why, sizeof why))
        return BAD("floors: %s", why);
    if (st_tally_named(tree))
        return 0;
    ST_CLEANUP(st_freep) st_quota *floors = st_xcalloc(tree->accounts.n, sizeof *floors);
    st_tally_floors(tally, floors);
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        if (memcmp(&floors[i], &a->floor, sizeof floors[i]) != 0)
            return BAD("floors: account %s: gpu %" PRId64 " cpu %" PRId64 " ram %" PRId64
                       " kept, the capacity gives gpu %" PRId64 " cpu %" PRId64 " ram %" PRId64,
                       a->name, a->floor.gpu_m, a->floor.cpu_m, a->floor.ram_mib, floors[i].gpu_m,
                       floors[i].cpu_m, floors[i].ram_mib);
    }
    return 0;
}

/* A serial is one account's for ever; one that is gone has no name, nobody below and nothing promised. */
static int check_serials(const st_tree *tree, st_err *err)
{
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        if (a->serial <= tree->accounts.v[i - 1]->serial || a->serial > tree->serials)
            return BAD("serial: account %s has %" PRId64 ", the one before %" PRId64
                       ", the last given is %" PRId64,
                       a->name, a->serial, tree->accounts.v[i - 1]->serial, tree->serials);
        int32_t found = st_tree_find(tree, a->name);
        if (a->gone ? found == a->id || a->children.n > 0 || st_quota_has_gpu(&a->guarantee)
                    : found != a->id)
            return BAD("serial: account %s is %s, its name finds %d", a->name,
                       a->gone ? "gone" : "there", found);
    }
    return 0;
}

static int check_accounts(const st_core *core, const st_job_list *jobs, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    char why[300];
    st_tally tally;
    st_tally_build(&tally, st_core_fleet(core), tree, jobs, NULL);
    int rc = check_serials(tree, err);
    /* A round in pieces has the floors it began with: what left a draining node since counts when it is over. */
    bool whole = !st_core_resumes(core);
    if (rc == 0 && whole)
        rc = check_floors(&tally, err);
    for (size_t i = 0; rc == 0 && i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        rc = check_counter(a, "now", &a->now, &tally.rows[i].now, err);
        if (rc == 0)
            rc = check_counter(a, "next", &a->next, &tally.rows[i].next, err);
        if (rc == 0)
            rc = check_counter(a, "guaranteed", &a->guaranteed, &tally.rows[i].guaranteed, err);
    }
    if (rc == 0 && whole && !st_tally_sound(&tally, why, sizeof why))
        rc = BAD("guarantees: %s", why);
    st_tally_done(&tally);
    return rc;
}

/* ---- homes (policy as_if_alone) --------------------------------------------------------- */

static int check_nodes_home(const st_core *core, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    const st_fleet *fleet = st_core_fleet(core);
    ST_CLEANUP(st_freep) int64_t *sum_m = st_xcalloc(tree->accounts.n, sizeof *sum_m);
    for (size_t i = 0; i < fleet->nodes.n; i++)
        sum_m[fleet->nodes.v[i]->home] += fleet->nodes.v[i]->ndevs * ST_WHOLE_M;
    for (size_t i = 1; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        if (sum_m[i] > ST_MAX(a->floor.gpu_m, 0))
            return BAD("home: account %s is at home on %" PRId64
                       " milli-GPU, its floor is %" PRId64,
                       a->name, sum_m[i], a->floor.gpu_m);
    }
    return 0;
}

/* One job's home place: on nodes of its account, and where the job sits if it is guaranteed. */
static int check_home(const st_core *core, const st_job *job, const st_grant *place, st_err *err)
{
    const st_tree *tree = st_core_tree(core);
    bool there = place && job->grants;
    for (int t = 0; place && t < job->tasks; t++) {
        const st_node *node = st_core_fleet(core)->nodes.v[place[t].node];
        int32_t a = job->account;
        while (a > 0 && a != node->home)
            a = tree->accounts.v[a]->parent;
        if (a == 0)
            return BAD("home: job %" PRIu64 " would stand on node %s, which is not its account's",
                       job->id, node->name);
        there =
            there && place[t].node == job->grants[t].node && place[t].devs == job->grants[t].devs;
    }
    /* Who leaves has the class it had: nobody asks for its home any more. */
    if (job->class == ST_CLASS_GUARANTEED && !there && !job->stopping && !st_job_leaving(job))
        return BAD("home: job %" PRIu64 " is guaranteed and not in its home place", job->id);
    return 0;
}

/* All home places together are a legal occupancy: nobody's place is anybody else's too. */
static int check_homes(const st_core *core, const st_job_list *jobs, st_err *err)
{
    int rc = check_nodes_home(core, err);
    ST_CLEANUP(st_freep) st_job *shadows = st_xcalloc(jobs->n + 1, sizeof *shadows);
    union {
        const st_grant *place;
        st_grant *grants;
    } at;
    st_job_list list = {0};
    for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
        if (!st_core_has_home(jobs->v[i], &at.place))
            continue;
        rc = check_home(core, jobs->v[i], at.place, err);
        if (!at.place)
            continue;
        shadows[i] = *jobs->v[i];
        shadows[i].state = ST_JOB_RUNNING;
        shadows[i].held = false;
        shadows[i].grants = at.grants;
        shadows[i].type = st_core_fleet(core)->nodes.v[at.place[0].node]->type;
        st_vec_push(&list, &shadows[i]);
    }
    if (rc == 0 && list.n > 0)
        rc = check_moment(core, &list, ST_WHEN_NOW, err);
    st_vec_free(&list);
    return rc;
}

int st_check(const st_core *core, st_err *err)
{
    st_job_list jobs = {0};
    for (size_t i = 0; i < st_core_njobs(core); i++)
        st_vec_push(&jobs, st_core_job_at(core, i));
    int rc = check_jobs(core, &jobs, err);
    if (rc == 0)
        rc = check_moment(core, &jobs, ST_WHEN_NOW, err);
    if (rc == 0)
        rc = check_moment(core, &jobs, ST_WHEN_NEXT, err);
    if (rc == 0)
        rc = check_views(core, &jobs, err);
    if (rc == 0)
        rc = check_accounts(core, &jobs, err);
    if (rc == 0)
        rc = check_homes(core, &jobs, err);
    if (rc == 0)
        rc = st_check_bookings(core, &jobs, err);
    if (rc == 0)
        rc = st_check_incidents(core, err);
    if (rc == 0)
        rc = st_check_drains(core, &jobs, err);
    st_vec_free(&jobs);
    return rc;
}
