/* Defragmentation: who moves so that a job can land that only scatter keeps waiting.
 *
 * When a waiting job finds no place and may displace nobody, but would fit if some running jobs
 * stood elsewhere, those are told to leave as in a claim, and their old places are held for it.
 * decisions/0013 has the rules; invariants of a set of moves:
 *
 *   1 Movers keep their progress (they checkpoint), are past their protection, and burstable: a
 *     guaranteed job is left alone.
 *   2 The set is minimal: put any one back and the job no longer fits.
 *   3 All of them have a place elsewhere, together and beside the job, on what is free already.
 *     It is kept free for them until they have left, and they are tried first when they do.
 *   4 The GPU time the job gains is more than what moving costs.
 *   5 One set at a time, and a job that was displaced itself moves nobody: so it ends. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/minimal.h"
#include "core/reserve.h"
#include "core/turn.h"

#define MOVERS_MAX 16

typedef struct defrag_ctx {
    st_core *core;
    const st_job *job;
    ST_VEC(st_job *) cands; /* cheapest to move first */
    st_ask ask;
} defrag_ctx;

/* ---- who could move ---------------------------------------------------------------------- */

static bool movable(const st_core *core, const st_job *job, const st_job *mover)
{
    return mover != job && mover->state == ST_JOB_RUNNING && mover->yield == ST_YIELD_CHECKPOINT &&
           st_core_grace_ms(core, mover) > 0 && mover->class == ST_CLASS_BURSTABLE &&
           mover->shape.gpus > 0;
}

/* What is free of a shared GPU, in milli-GPU as jobs are charged for it; never too little. */
static int64_t rest_m(const st_core *core, const st_node *node, const st_dev *dev)
{
    if (dev->mode == ST_DEV_MIG) /* a 1g slice counts a seventh and takes an eighth */
        return (int64_t)ST_WHOLE_M * (ST_MIG_MEMORY - __builtin_popcount(dev->mig_mask)) /
               ST_MIG_COMPUTE;
    int64_t top_m = ST_WHOLE_M;
    if (dev->mode == ST_DEV_TIME)
        top_m = core->fleet->pools.v[node->pool].oversub_m;
    return ST_MAX(top_m - dev->used_m, 0);
}

static int64_t free_m(const st_core *core, const st_node *node)
{
    const st_view *view = &node->view;
    int64_t sum = (int64_t)ST_WHOLE_M * __builtin_popcount(view->free);
    for (unsigned devs = view->shared; devs; devs &= devs - 1)
        sum += rest_m(core, node, &view->dev[__builtin_ctz(devs)]);
    return sum;
}

/* Only who stands beside something free is worth moving: emptying a full node frees no more than
 * it takes elsewhere. */
static bool beside_free(const st_core *core, const st_job *mover)
{
    for (int t = 0; t < mover->tasks; t++)
        if (free_m(core, core->fleet->nodes.v[mover->grants[t].node]) > 0)
            return true;
    return false;
}

static int by_cost(const void *pa, const void *pb)
{
    const st_job *a = *(st_job *const *)pa, *b = *(st_job *const *)pb;
    int64_t x = st_job_gpu_m(a), y = st_job_gpu_m(b);
    if (x != y)
        return x < y ? -1 : 1;
    return a->id > b->id ? -1 : a->id < b->id;
}

/* The candidates; *ret_until_ms: when the next one loses its protection. */
static void collect(defrag_ctx *d, int64_t *ret_until_ms)
{
    st_core *core = d->core;
    *ret_until_ms = ST_TIME_NEVER;
    for (size_t i = 0; i < core->placed.n; i++) {
        st_job *mover = core->placed.v[i];
        if (!movable(core, d->job, mover) || !beside_free(core, mover))
            continue;
        int64_t until = st_core_protected_in_round(core, mover, false);
        if (until > st_core_moment(core))
            *ret_until_ms = ST_MIN(*ret_until_ms, until);
        else
            st_vec_push(&d->cands, mover);
    }
    if (d->cands.n > 1)
        qsort(d->cands.v, d->cands.n, sizeof *d->cands.v, by_cost);
}

/* Whether that much GPU of the type is free at all: if not, it is not scatter that is in the way,
 * for who moves needs as much elsewhere as it leaves. */
static bool enough_free(const st_core *core, int32_t type, int64_t asked_m)
{
    for (size_t i = 0; asked_m > 0 && i < core->fleet->nodes.n; i++) {
        const st_node *node = core->fleet->nodes.v[i];
        if (node->type == type && node->state == ST_NODE_READY)
            asked_m -= free_m(core, node);
    }
    return asked_m <= 0;
}

/* ---- what-if ----------------------------------------------------------------------------- */

static void take(void *ctx, int i)
{
    defrag_ctx *d = ctx;
    d->cands.v[i]->out = ST_OUT_YIELDED;
    st_whatif_note(d->core, d->cands.v[i]);
}

static void put_back(void *ctx, int i)
{
    defrag_ctx *d = ctx;
    d->cands.v[i]->out = ST_OUT_NOT;
    st_whatif_note(d->core, d->cands.v[i]);
}

static bool fits(void *ctx)
{
    defrag_ctx *d = ctx;
    st_whatif_rebuild(d->core, d->ask.rooms);
    return st_place_fits(d->core->placer, &d->ask);
}

static void restore(st_core *core, st_rooms *rooms)
{
    for (size_t i = 0; i < core->whatif.touched.n; i++) {
        const st_node *node = core->fleet->nodes.v[core->whatif.touched.v[i]];
        st_rooms_set(core->placer, rooms, node, &node->view);
    }
}

/* The smallest set after which the job fits, and where it would go; false when there is none. */
static bool choose(defrag_ctx *d, st_claim *ret)
{
    st_core *core = d->core;
    int n = (int)d->cands.n;
    ST_CLEANUP(st_freep) int *order = st_xcalloc((size_t)n + 1, sizeof *order);
    ST_CLEANUP(st_freep) int *movers = st_xcalloc((size_t)n + 1, sizeof *movers);
    for (int i = 0; i < n; i++)
        order[i] = i;
    st_whatif_begin(core, ST_WHEN_NEXT);
    d->ask.rooms = st_rooms_of(core->placer, d->job, d->ask.type);
    for (size_t i = 0; i < core->placed.n; i++)
        if (st_job_leaving(core->placed.v[i]))
            st_whatif_note(core, core->placed.v[i]);
    st_reclaim_ops ops = {d, take, put_back, fits};
    int k = st_reclaim_minimal(&ops, order, n, movers);
    bool ok = k > 0 && k <= MOVERS_MAX;
    if (ok) {
        ret->plan = st_xcalloc((size_t)d->job->tasks, sizeof *ret->plan);
        st_whatif_rebuild(core, d->ask.rooms);
        bool placed = st_place_gang(core->placer, &d->ask, ret->plan);
        ST_ASSERT(placed);
        for (int i = 0; i < k; i++)
            st_vec_push(&ret->victims, d->cands.v[movers[i]]);
    }
    for (int i = 0; i < k; i++)
        put_back(d, movers[i]);
    restore(core, d->ask.rooms);
    return ok && st_core_collides(core, d->job, ST_TIME_NEVER, ret->plan) < 0;
}

/* ---- somewhere to go --------------------------------------------------------------------- */

/* Put grants into the what-if views. */
static void add_grants(st_core *core, const st_job *job, const st_grant *grants)
{
    for (int t = 0; t < job->tasks; t++) {
        const st_node *node = core->fleet->nodes.v[grants[t].node];
        st_whatif_put(core, node, job, &grants[t], st_whatif_edit(core, node));
    }
}

/* A place for the mover in the what-if views, of which it becomes part; NULL: none. */
static st_grant *find_place(st_core *core, const st_job *mover)
{
    st_ask ask = {.job = mover, .type = mover->type, .view = st_whatif_view, .ctx = core};
    ask.rooms = st_rooms_of(core->placer, mover, mover->type);
    for (size_t i = 0; i < core->whatif.touched.n; i++) {
        const st_node *node = core->fleet->nodes.v[core->whatif.touched.v[i]];
        st_rooms_set(core->placer, ask.rooms, node, &core->whatif.views[node->id]);
    }
    st_grant *to = st_xcalloc((size_t)mover->tasks, sizeof *to);
    bool ok = st_place_gang(core->placer, &ask, to);
    restore(core, ask.rooms);
    if (ST_BROKEN(MOVER_PLACE)) {
        memcpy(to, mover->grants, (size_t)mover->tasks * sizeof *to);
        return to;
    }
    if (!ok || st_core_collides(core, mover, ST_TIME_NEVER, to) >= 0) {
        free(to);
        return NULL;
    }
    add_grants(core, mover, to);
    return to;
}

/* Whether all movers have a place elsewhere, the large ones first, beside the job's plan. */
static bool all_find_places(st_core *core, const st_job *job, st_claim *moves)
{
    bool ok = true;
    st_whatif_begin(core, ST_WHEN_EITHER);
    for (size_t i = 0; i < moves->victims.n; i++)
        moves->victims.v[i]->out = ST_OUT_ENDED;
    for (size_t i = 0; i < moves->victims.n; i++)
        st_whatif_touch(core, moves->victims.v[i], NULL);
    add_grants(core, job, moves->plan);
    for (size_t i = 0; i < moves->victims.n; i++)
        st_vec_push(&moves->places, NULL);
    for (size_t i = moves->victims.n; ok && i-- > 0;) {
        moves->places.v[i] = find_place(core, moves->victims.v[i]);
        ok = moves->places.v[i] != NULL;
    }
    for (size_t i = 0; i < moves->victims.n; i++)
        moves->victims.v[i]->out = ST_OUT_NOT;
    return ok;
}

/* ---- worth it ---------------------------------------------------------------------------- */

/* When the job would start if nobody moved; at most `horizon` from now. */
static int64_t start_otherwise(st_core *core, const st_job *job, int32_t type, int64_t horizon_ms)
{
    size_t before = core->resv.n;
    int64_t latest = st_core_moment(core) + horizon_ms, at_ms = latest;
    st_core_reserve(core, job, type, false, false);
    while (core->resv.n > before) {
        st_reservation r = st_reserve_pop(core);
        at_ms = ST_MIN(at_ms, r.at_ms);
        free(r.plan);
    }
    return at_ms;
}

static bool worth_it(st_core *core, const st_job *job, int32_t type, st_claim *moves)
{
    const st_policy *p = &core->policy;
    int64_t out_ms = p->notice_ms + p->grace_ms;
    int64_t saved_ms = start_otherwise(core, job, type, out_ms + p->defrag_horizon_ms) -
                       (st_core_moment(core) + out_ms);
    int64_t moved_m = 0;
    for (size_t i = 0; i < moves->victims.n; i++)
        moved_m += st_job_gpu_m(moves->victims.v[i]);
    moves->evict_m = moved_m;
    /* Below 2^60: a gang has at most 2^28 milli-GPU, times are below 2^32 ms. */
    int64_t gain = st_job_gpu_m(job) * saved_ms;
    return gain > moved_m * (out_ms + p->defrag_restore_ms) || ST_BROKEN(MOVE_GAIN);
}

bool st_core_defrag(st_core *core, const st_job *job, int32_t type, st_claim *ret)
{
    *ret = (st_claim){.until_ms = ST_TIME_NEVER};
    if (job->state != ST_JOB_PENDING || job->shape.gpus == 0 ||
        core->resv.n >= ST_RESERVATIONS_MAX || !enough_free(core, type, st_job_gpu_m(job)) ||
        core->nmoving > 0)
        return false;
    defrag_ctx d = {.core = core, .job = job};
    d.ask = (st_ask){.job = job, .type = type, .view = st_whatif_view, .ctx = core};
    collect(&d, &ret->until_ms);
    core->effort -= (int64_t)d.cands.n;
    bool ok = d.cands.n > 0 && choose(&d, ret) && all_find_places(core, job, ret) &&
              worth_it(core, job, type, ret);
    st_vec_free(&d.cands);
    return ok;
}

/* ---- while they leave -------------------------------------------------------------------- */

void st_core_reserve_movers(st_core *core)
{
    for (size_t i = 0; core->nmoving > 0 && i < core->jobs.n;
         i++) /* by id: the order of `placed` is nobody's */
        if (core->jobs.v[i]->to)
            st_core_reserve_place(core, core->jobs.v[i]);
}
