/* What is to come (core/timeline.h): the record, and how a job that is not in it fares. */
#include "core/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/timeline_state.h"

/* ---- recording --------------------------------------------------------------------------- */

static st_timeline_node look(const st_core *core, int32_t id)
{
    const st_view *v = &core->fleet->nodes.v[id]->view;
    return (st_timeline_node){id, v->free, v->cpu_free_m, v->ram_free_mib};
}

void st_timeline_begin(st_timeline *tl, const st_core *core)
{
    if (!tl)
        return;
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        st_vec_push(&tl->begin, look(core, (int32_t)i));
    for (size_t i = 0; i < core->tree->accounts.n; i++)
        st_vec_push(&tl->used, core->tree->accounts.v[i]->now);
    st_timeline_at(tl, core->now);
}

void st_timeline_at(st_timeline *tl, int64_t at_ms)
{
    if (tl)
        st_vec_push(&tl->moments, (st_timeline_moment){at_ms, (uint32_t)tl->steps.n});
}

void st_timeline_was(st_timeline *tl, int64_t at_ms)
{
    if (tl)
        tl->moments.v[tl->moments.n - 1].at_ms = at_ms;
}

static void add_step(st_timeline *tl, const st_core *core, const st_job *job, int32_t type,
                     const int32_t *nodes, size_t n, st_timeline_step step)
{
    step.account = job->account;
    step.need = st_need_of(job, type);
    step.nodes = (uint32_t)tl->nodes.n;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || nodes[i] != nodes[i - 1])
            st_vec_push(&tl->nodes, look(core, nodes[i]));
    step.nnodes = (uint32_t)tl->nodes.n - step.nodes;
    st_vec_push(&tl->steps, step);
}

void st_timeline_started(st_timeline *tl, const st_core *core, const st_job *job, size_t rank)
{
    if (!tl)
        return;
    int32_t *nodes = st_xcalloc((size_t)job->tasks, sizeof *nodes);
    for (int t = 0; t < job->tasks; t++)
        nodes[t] = job->grants[t].node;
    add_step(tl, core, job, job->type, nodes, (size_t)job->tasks,
             (st_timeline_step){.rank = (uint32_t)rank, .on = true});
    free(nodes);
}

void st_timeline_ended(st_timeline *tl, const st_core *core, const st_job *shape, int32_t type,
                       const int32_t *nodes, size_t n)
{
    if (tl)
        add_step(tl, core, shape, type, nodes, n, (st_timeline_step){0});
}

void st_timeline_free(st_timeline *tl)
{
    if (!tl)
        return;
    st_vec_free(&tl->list);
    st_idmap_free(tl->by_job);
    st_vec_free(&tl->order);
    st_vec_free(&tl->begin);
    st_vec_free(&tl->used);
    st_vec_free(&tl->moments);
    st_vec_free(&tl->steps);
    st_vec_free(&tl->nodes);
    free(tl);
}

const st_estimates *st_timeline_list(const st_timeline *tl)
{
    return &tl->list;
}

bool st_timeline_find(const st_timeline *tl, uint64_t job, st_estimate *ret)
{
    int64_t at;
    if (!st_idmap_get(tl->by_job, job, &at))
        return false;
    *ret = tl->list.v[at];
    return true;
}

/* ---- one job more ------------------------------------------------------------------------ */

/* The job on its way through the play, as one GPU type would have it. */
typedef struct probe {
    const st_timeline *tl;
    const st_core *core;
    const st_job *job;
    int32_t type;
    st_need need;
    size_t rank;
    int32_t *room;               /* tasks that each node could take */
    int64_t *in;                 /* and each domain, where it must be in one */
    int64_t all;                 /* and all nodes */
    int64_t enough;              /* domains that could take all tasks */
    st_use up[ST_DEPTH_MAX + 1]; /* used by its account and those above it */
} probe;

/* How many tasks of a shared shape one empty GPU takes. */
static int64_t per_gpu(const st_job *job)
{
    const st_shape *s = &job->shape;
    if (s->level == ST_LEVEL_MIG)
        return st_mig_room(0, 0, s->profile);
    return s->share_m > 0 ? ST_MAX(ST_WHOLE_M / s->share_m, 1) : 1;
}

static int32_t room_of(const probe *p, const st_timeline_node *n)
{
    const st_node *node = p->core->fleet->nodes.v[n->node];
    const st_shape *s = &p->job->shape;
    if (node->state != ST_NODE_READY || (p->job->pool >= 0 && node->pool != p->job->pool) ||
        (s->gpus > 0 && node->type != p->type) ||
        !(p->core->fleet->pools.v[node->pool].levels >> s->level & 1))
        return 0;
    int64_t room = p->job->tasks, free = __builtin_popcount(n->free);
    if (s->gpus > 0)
        room = ST_MIN(room, s->level == ST_LEVEL_WHOLE ? free / s->gpus : free * per_gpu(p->job));
    if (s->cpu_m > 0)
        room = ST_MIN(room, n->cpu_free_m / s->cpu_m);
    if (s->ram_mib > 0)
        room = ST_MIN(room, n->ram_free_mib / s->ram_mib);
    return (int32_t)ST_MAX(room, 0);
}

/* The domain that all tasks must share; -1: the node is in none. */
static int32_t domain_of(const probe *p, int32_t id)
{
    const st_node *node = p->core->fleet->nodes.v[id];
    if (p->job->topo == ST_TOPO_NODE)
        return id;
    if (p->job->topo == ST_TOPO_NVLINK)
        return node->ndevs > 0 ? node->nvlink[0] : -1;
    return node->place[p->job->topo];
}

static size_t ndomains(const probe *p)
{
    return p->job->topo == ST_TOPO_NODE ? p->core->fleet->nodes.n
                                        : p->core->fleet->domains[p->job->topo].n;
}

static void set_node(probe *p, const st_timeline_node *n)
{
    if ((size_t)n->node >= p->core->fleet->nodes.n)
        return;
    int32_t was = p->room[n->node], is = room_of(p, n);
    if (was == is)
        return;
    p->room[n->node] = is;
    p->all += is - was;
    int32_t domain = p->in ? domain_of(p, n->node) : -1;
    if (domain < 0)
        return;
    p->enough -= p->in[domain] >= p->job->tasks;
    p->in[domain] += is - was;
    p->enough += p->in[domain] >= p->job->tasks;
}

static bool lets_in(const st_quota *max, const st_use *used, const st_need *need)
{
    if (max->gpu_m != ST_UNSET && need->gpu_m > 0 && used->gpu_m + need->gpu_m > max->gpu_m)
        return false;
    if (max->cpu_m != ST_UNSET && need->cpu_m > 0 && used->cpu_m + need->cpu_m > max->cpu_m)
        return false;
    if (max->ram_mib != ST_UNSET && need->ram_mib > 0 &&
        used->ram_mib + need->ram_mib > max->ram_mib)
        return false;
    return need->type < 0 || max->type_m[need->type] == ST_UNSET ||
           used->type_m[need->type] + need->gpu_m <= max->type_m[need->type];
}

static bool may_start(const probe *p)
{
    if (p->in ? p->enough == 0 : p->all < p->job->tasks)
        return false;
    const st_tree *tree = p->core->tree;
    int d = 0;
    for (int32_t a = p->job->account; a >= 0; a = st_tree_account(tree, a)->parent, d++)
        if (!lets_in(&st_tree_account(tree, a)->max, &p->up[d], &p->need))
            return false;
    return true;
}

static void take_step(probe *p, const st_timeline_step *s)
{
    const st_tree *tree = p->core->tree;
    for (uint32_t i = 0; i < s->nnodes; i++)
        set_node(p, &p->tl->nodes.v[s->nodes + i]);
    int d = 0, sign = s->on ? 1 : -1;
    for (int32_t a = p->job->account; a >= 0; a = st_tree_account(tree, a)->parent, d++) {
        if (!st_tree_within(tree, s->account, a))
            continue;
        p->up[d].gpu_m += sign * s->need.gpu_m;
        p->up[d].cpu_m += sign * s->need.cpu_m;
        p->up[d].ram_mib += sign * s->need.ram_mib;
        if (s->need.type >= 0)
            p->up[d].type_m[s->need.type] += sign * s->need.gpu_m;
    }
}

/* The moment at which it would be let in: after those who end, and those whose turn is before its own. */
static int64_t go_through(probe *p, int64_t before_ms)
{
    const st_timeline *tl = p->tl;
    for (size_t m = 0; m < tl->moments.n && tl->moments.v[m].at_ms < before_ms; m++) {
        size_t i = tl->moments.v[m].steps;
        size_t end = m + 1 < tl->moments.n ? tl->moments.v[m + 1].steps : tl->steps.n;
        while (i < end && (!tl->steps.v[i].on || tl->steps.v[i].rank < p->rank))
            take_step(p, &tl->steps.v[i++]);
        if (may_start(p))
            return tl->moments.v[m].at_ms;
        while (i < end)
            take_step(p, &tl->steps.v[i++]);
    }
    return before_ms;
}

static int64_t start_with(const st_timeline *tl, const st_core *core, const st_job *job,
                          int32_t type, size_t rank, int64_t before_ms)
{
    probe p = {.tl = tl, .core = core, .job = job, .type = type, .rank = rank};
    p.need = st_need_of(job, type);
    p.room = st_xcalloc(core->fleet->nodes.n + 1, sizeof *p.room);
    if (job->topo_required && job->topo != ST_TOPO_NONE)
        p.in = st_xcalloc(ndomains(&p) + 1, sizeof *p.in);
    int d = 0;
    for (int32_t a = job->account; a >= 0; a = st_tree_account(core->tree, a)->parent, d++)
        if ((size_t)a < tl->used.n)
            p.up[d] = tl->used.v[a];
    for (size_t i = 0; i < tl->begin.n; i++)
        set_node(&p, &tl->begin.v[i]);
    int64_t at = go_through(&p, before_ms);
    free(p.room);
    free(p.in);
    return at;
}

/* How many have their turn before it. Whose account is another one's stands before or behind all of that. */
static size_t rank_of(const st_timeline *tl, const st_core *core, st_job *job)
{
    st_phase phase = st_queue_phase(core, job);
    size_t i = phase == ST_PHASE_GUARANTEED ? 0 : tl->nguaranteed;
    size_t end = phase == ST_PHASE_GUARANTEED ? tl->nguaranteed : tl->order.n, rank = i;
    uint8_t *before = st_xcalloc(core->tree->accounts.n + 1, 1); /* 0 not known, 1 no, 2 yes */
    for (; i < end; i++) {
        const st_timeline_rank *r = &tl->order.v[i];
        st_job *other =
            (size_t)r->account < core->tree->accounts.n ? st_core_find(core, r->job) : NULL;
        if (!other || other == job)
            continue;
        bool own = r->account == job->account;
        if (own || before[r->account] == 0)
            before[r->account] = st_queue_before(core, phase, other, job) ? 2 : 1;
        if (before[r->account] == 2)
            rank = i + 1;
    }
    free(before);
    return rank;
}

void st_timeline_probe(const st_timeline *tl, st_core *core, uint64_t id, st_estimate *ret)
{
    st_job *job = st_core_find(core, id);
    int64_t at = ST_TIME_NEVER;
    if (job) {
        size_t rank = rank_of(tl, core, job);
        bool zero = st_core_weight_zero(core, job->account, NULL);
        ST_EACH_TYPE (core, job, t)
            if (!zero || st_core_is_guaranteed(core, job, t))
                at = start_with(tl, core, job, t, rank, at);
    }
    if (job && at != ST_TIME_NEVER)
        at = ST_MAX(at, st_window_open_ms(core, job));
    *ret = st_core_with_margin(core, id, at == ST_TIME_NEVER ? at : ST_MAX(at, core->now));
}
