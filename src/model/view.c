/* Who is on a node, and what that leaves for a placement: see fleet.h for the three kinds of
 * residents and the two moments a view must suit. */
#include "model/fleet.h"

#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"

int64_t st_share_vram_mib(const st_fleet *fleet, const st_shape *shape, int32_t type)
{
    if (shape->vram_mib > 0)
        return shape->vram_mib;
    return fleet->types.v[type].vram_mib * shape->share_m / ST_WHOLE_M;
}

static void own(st_dev *dev, const st_tree *tree, const st_job *job)
{
    bool fenced = job->shape.level == ST_LEVEL_WHOLE || job->shape.level == ST_LEVEL_MIG;
    int32_t domain = fenced ? ST_OWNER_NONE : st_tree_domain(tree, job->account);
    if (dev->clients == 0) {
        dev->owner = job->account;
        dev->domain = domain;
    } else {
        if (dev->owner != job->account)
            dev->owner = ST_OWNER_MIXED;
        if (dev->domain != domain)
            dev->domain = ST_OWNER_MIXED;
    }
    dev->latency_critical |= job->latency_critical;
    if (dev->clients < UINT8_MAX)
        dev->clients++;
}

/* Mark what a grant takes. Two residents of different moments may claim the same device in
 * different ways; such a device is simply taken. */
static void mark(const st_fleet *fleet, const st_tree *tree, const st_node *node, const st_job *job,
                 const st_grant *grant, st_view *view)
{
    static const st_dev_mode mode_of[] = {[ST_LEVEL_WHOLE] = ST_DEV_WHOLE,
                                          [ST_LEVEL_MIG] = ST_DEV_MIG,
                                          [ST_LEVEL_MPS] = ST_DEV_MPS,
                                          [ST_LEVEL_TIME] = ST_DEV_TIME};
    for (unsigned devs = grant->devs; devs; devs &= devs - 1) {
        st_dev *dev = &view->dev[__builtin_ctz(devs)];
        st_dev_mode mode = mode_of[job->shape.level];
        own(dev, tree, job);
        if (dev->mode != ST_DEV_FREE && dev->mode != mode)
            mode = ST_DEV_WHOLE;
        dev->mode = (uint8_t)mode;
        if (mode == ST_DEV_MIG) {
            dev->mig_mask |= st_mig_mask(job->shape.profile, grant->mig_start);
            int compute = dev->mig_compute + st_mig_compute(job->shape.profile);
            dev->mig_compute = (uint8_t)ST_MIN(compute, ST_MIG_COMPUTE);
        } else if (mode == ST_DEV_MPS || mode == ST_DEV_TIME) {
            dev->used_m += (int32_t)job->shape.share_m;
            dev->vram_mib += st_share_vram_mib(fleet, &job->shape, node->type);
        }
    }
}

void st_view_seal(const st_node *node, st_view *view)
{
    view->free = view->shared = 0;
    for (int d = 0; d < node->ndevs; d++) {
        bool free = view->dev[d].mode == ST_DEV_FREE;
        bool shared = !free && view->dev[d].mode != ST_DEV_WHOLE;
        view->free |= (uint16_t)(free << d);
        view->shared |= (uint16_t)(shared << d);
    }
}

/* What is used of a node's CPU and RAM: now, once the holds have come true, and at most in between. */
typedef struct used {
    int64_t cpu_now, cpu_next, cpu_any, ram_now, ram_next, ram_any;
} used;

/* The same by those outside a fence, and inside. */
typedef struct both {
    used out, in;
} both;

/* Counts a resident; whether its devices are taken. */
static bool count_in(const st_job *job, st_when when, used *u)
{
    bool pauses = job->yield == ST_YIELD_PAUSE;
    if (job->out == ST_OUT_ENDED || (job->out && !pauses))
        return false;
    if (job->state == ST_JOB_RUNNING && !job->out) { /* most of them: there at any moment */
        u->cpu_now += job->shape.cpu_m;
        u->cpu_next += job->shape.cpu_m;
        u->cpu_any += job->shape.cpu_m;
        u->ram_now += job->shape.ram_mib;
        u->ram_next += job->shape.ram_mib;
        u->ram_any += job->shape.ram_mib;
        return true;
    }
    bool now = st_job_on_devices(job) && !job->out;
    bool held = job->held && !ST_BROKEN(HOLD);
    bool next = (held || job->state == ST_JOB_RUNNING) && !job->out;
    /* Its memory stays, or is about to. */
    bool paused = job->state == ST_JOB_PAUSED && !ST_BROKEN(PAUSED_RAM);
    bool ram = paused || job->out || (st_job_leaving(job) && pauses);
    if (now)
        u->cpu_now += job->shape.cpu_m;
    if (next)
        u->cpu_next += job->shape.cpu_m;
    if (now || next)
        u->cpu_any += job->shape.cpu_m;
    if (now || ram)
        u->ram_now += job->shape.ram_mib;
    if (next || ram)
        u->ram_next += job->shape.ram_mib;
    if (now || next || ram)
        u->ram_any += job->shape.ram_mib;
    return (when != ST_WHEN_NEXT && now) || (when != ST_WHEN_NOW && next);
}

/* Who is inside a fence uses what is fenced. */
static bool count_at(const st_node *node, const st_resident *r, st_when when, both *b)
{
    bool in = node->fence && (node->fence & r->job->grants[r->task].devs);
    return count_in(r->job, when, in ? &b->in : &b->out);
}

static bool is_fenced(const st_node *node, st_when when)
{
    return node->fence && !node->ajar && when != ST_WHEN_EMPTY;
}

/* Devices that nobody may have, whoever is there. */
static unsigned shut(const st_node *node, st_when when)
{
    unsigned out = when == ST_WHEN_EMPTY || ST_BROKEN(GPU_OUT) ? 0 : node->out;
    return out | (is_fenced(node, when) ? node->fence : 0);
}

static used sum_of(const st_node *node, st_when when, const both *b)
{
    int64_t cpu = is_fenced(node, when) ? node->fence_cpu_m : 0;
    int64_t ram = is_fenced(node, when) ? node->fence_ram_mib : 0;
    return (used){
        .cpu_now = b->out.cpu_now + ST_MAX(b->in.cpu_now, cpu),
        .cpu_next = b->out.cpu_next + ST_MAX(b->in.cpu_next, cpu),
        .cpu_any = b->out.cpu_any + ST_MAX(b->in.cpu_any, cpu),
        .ram_now = b->out.ram_now + ST_MAX(b->in.ram_now, ram),
        .ram_next = b->out.ram_next + ST_MAX(b->in.ram_next, ram),
        .ram_any = b->out.ram_any + ST_MAX(b->in.ram_any, ram),
    };
}

static void leave_free(const st_node *node, st_when when, const both *b, st_view *ret)
{
    const used sum = sum_of(node, when, b), *u = &sum;
    int64_t cpu = when == ST_WHEN_NOW    ? u->cpu_now
                  : when == ST_WHEN_NEXT ? u->cpu_next
                  : when == ST_WHEN_ANY  ? u->cpu_any
                                         : ST_MAX(u->cpu_now, u->cpu_next);
    int64_t ram = when == ST_WHEN_NOW    ? u->ram_now
                  : when == ST_WHEN_NEXT ? u->ram_next
                  : when == ST_WHEN_ANY  ? u->ram_any
                                         : ST_MAX(u->ram_now, u->ram_next);
    ret->cpu_free_m = node->cpu_m - cpu;
    ret->ram_free_mib = node->ram_mib - ram;
}

void st_view_build(const st_fleet *fleet, const st_tree *tree, const st_node *node, st_when when,
                   st_view *ret)
{
    static const st_dev unused = {.owner = ST_OWNER_NONE, .domain = ST_OWNER_NONE};
    for (int d = 0; d < ST_DEVS_MAX; d++)
        ret->dev[d] = unused;
    both u = {0};
    size_t n = when == ST_WHEN_EMPTY ? 0 : node->residents.n;
    for (size_t i = 0; i < n; i++) {
        const st_job *job = node->residents.v[i].job;
        if (count_at(node, &node->residents.v[i], when, &u))
            mark(fleet, tree, node, job, &job->grants[node->residents.v[i].task], ret);
    }
    for (unsigned devs = shut(node, when); devs; devs &= devs - 1)
        ret->dev[__builtin_ctz(devs)].mode = ST_DEV_WHOLE;
    leave_free(node, when, &u, ret);
    st_view_seal(node, ret);
}

void st_view_outline(const st_node *node, st_when when, st_view *ret)
{
    unsigned taken = shut(node, when);
    both u = {0};
    size_t n = when == ST_WHEN_EMPTY ? 0 : node->residents.n;
    for (size_t i = 0; i < n; i++) {
        const st_job *job = node->residents.v[i].job;
        if (count_at(node, &node->residents.v[i], when, &u))
            taken |= job->grants[node->residents.v[i].task].devs;
    }
    leave_free(node, when, &u, ret);
    ret->free = (uint16_t)(((1u << node->ndevs) - 1) & ~taken);
    ret->shared = 0;
}

/* The older half of a long log goes: whoever has kept up with it is not made to count everything anew. */
static void note_change(st_fleet *fleet, const st_node *node)
{
    if (fleet->changes.n > 8 * fleet->nodes.n + 1024) {
        size_t old = fleet->changes.n / 2;
        fleet->changes.n -= old;
        fleet->changes_from += old;
        memmove(fleet->changes.v, fleet->changes.v + old,
                fleet->changes.n * sizeof *fleet->changes.v);
    }
    st_vec_push(&fleet->changes, ((st_node_change){node->id, node->type}));
    fleet->changed[node->type + 1]++;
}

void st_node_refresh(st_fleet *fleet, const st_tree *tree, st_node *node)
{
    st_view_build(fleet, tree, node, ST_WHEN_EITHER, &node->view);
    note_change(fleet, node);
}

void st_node_touch(st_fleet *fleet, const st_node *node)
{
    note_change(fleet, node);
}

void st_node_set_state(st_fleet *fleet, st_node *node, st_node_state state)
{
    node->state = state;
    note_change(fleet, node);
}

void st_node_set_gpu(st_fleet *fleet, const st_tree *tree, st_node *node, int gpu,
                     st_node_state state)
{
    ST_ASSERT(gpu >= 0 && gpu < node->ndevs);
    if (!node->gpus && state == ST_NODE_READY)
        return;
    if (!node->gpus)
        node->gpus = st_xcalloc((size_t)node->ndevs, sizeof *node->gpus);
    st_gpu_out *g = &node->gpus[gpu];
    g->state = state;
    if (state == ST_NODE_READY) {
        st_node_note_set(&g->note, NULL, NULL, 0);
        g->found = (st_finding){.gpu = -1};
        g->worn = g->unproven = false;
    }
    unsigned bit = 1u << gpu;
    node->out = (uint16_t)(state == ST_NODE_READY ? node->out & ~bit : node->out | bit);
    st_node_refresh(fleet, tree, node);
}

void st_node_add(st_fleet *fleet, const st_tree *tree, st_job *job, int32_t task)
{
    st_node *node = fleet->nodes.v[job->grants[task].node];
    st_vec_push(&node->residents, (st_resident){job, task});
    fleet->latency_critical += job->latency_critical;
    st_node_refresh(fleet, tree, node);
}

void st_node_remove(st_fleet *fleet, const st_tree *tree, st_job *job, int32_t task)
{
    st_node *node = fleet->nodes.v[job->grants[task].node];
    size_t i = 0;
    while (i < node->residents.n &&
           (node->residents.v[i].job != job || node->residents.v[i].task != task))
        i++;
    ST_ASSERT(i < node->residents.n);
    st_vec_remove(&node->residents, i);
    fleet->latency_critical -= job->latency_critical;
    st_node_refresh(fleet, tree, node);
}

int st_dev_room(const st_fleet *fleet, const st_tree *tree, const st_node *node, const st_job *job,
                const st_dev *dev)
{
    const st_shape *shape = &job->shape;
    bool fresh = dev->mode == ST_DEV_FREE;
    if (shape->level == ST_LEVEL_WHOLE)
        return fresh;
    if (shape->level == ST_LEVEL_MIG) {
        if (!fresh && dev->mode != ST_DEV_MIG)
            return 0;
        return st_mig_room(dev->mig_mask, dev->mig_compute, shape->profile);
    }
    bool mps = shape->level == ST_LEVEL_MPS;
    if (!fresh && dev->mode != (mps ? ST_DEV_MPS : ST_DEV_TIME))
        return 0;
    bool stranger = mps && !fresh && dev->domain != st_tree_domain(tree, job->account);
    if (stranger && !ST_BROKEN(TRUST))
        return 0;
    bool unknown = !fresh && dev->owner != job->account;
    if (unknown && (dev->latency_critical || job->latency_critical) && !ST_BROKEN(LATENCY))
        return 0;
    int64_t top_m = mps ? ST_WHOLE_M : fleet->pools.v[node->pool].oversub_m;
    if (!mps && ST_BROKEN(OVERSUB))
        top_m = 10 * ST_WHOLE_M;
    int64_t n = (top_m - dev->used_m) / shape->share_m;
    int64_t vram = st_share_vram_mib(fleet, shape, node->type);
    if (vram > 0 && !ST_BROKEN(VRAM))
        n = ST_MIN(n, (fleet->types.v[node->type].vram_mib - dev->vram_mib) / vram);
    n = ST_MIN(n, ST_MPS_CLIENTS_MAX - dev->clients);
    return (int)ST_MAX(n, 0);
}

int64_t st_task_ram_mib(const st_job *job)
{
    return job->state == ST_JOB_PAUSED ? 0 : job->shape.ram_mib;
}

int st_view_add(const st_fleet *fleet, const st_tree *tree, const st_node *node, const st_job *job,
                const st_grant *grant, st_view *view)
{
    int n = 0;
    for (int d = 0; d < ST_DEVS_MAX; d++) {
        if (!(grant->devs >> d & 1))
            continue;
        const st_dev *dev = &view->dev[d];
        if (d >= node->ndevs || st_dev_room(fleet, tree, node, job, dev) < 1)
            return -1;
        if (job->shape.level == ST_LEVEL_MIG &&
            (!st_mig_start_legal(job->shape.profile, grant->mig_start) ||
             st_mig_overlaps(dev->mig_mask, job->shape.profile, grant->mig_start)))
            return -1;
        n++;
    }
    int64_t ram_mib = st_task_ram_mib(job);
    /* Less than nothing is left while some are leaving for a booking: who asks for none does not mind. */
    bool cpu = job->shape.cpu_m == 0 || view->cpu_free_m >= job->shape.cpu_m || ST_BROKEN(CPU);
    bool ram = ram_mib == 0 || view->ram_free_mib >= ram_mib || ST_BROKEN(RAM);
    if (n != job->shape.gpus || !cpu || !ram)
        return -1;
    view->cpu_free_m -= job->shape.cpu_m;
    view->ram_free_mib -= ram_mib;
    mark(fleet, tree, node, job, grant, view);
    st_view_seal(node, view);
    return 0;
}
