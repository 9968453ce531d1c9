/* The state to bytes and back.
 *
 * One description serves both directions (core/codec.h). Only what cannot be derived is
 * stored: residents, quota counters and user sums are rebuilt from the jobs, which makes every
 * reload a test of the bookkeeping. The last eight bytes are a hash over all the others. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "core/book.h"
#include "core/flow.h"
#include "core/queue.h"
#include "core/save_health.h"
#include "core/shadow.h"
#include "model/codec.h"

#define MAGIC  UINT64_C(0x33766173544e5453) /* "STNTsav3": the format (model/codec.h) follows */
#define MAGIC2 UINT64_C(0x32766173544e5453) /* "STNTsav2": format 0 */
#define SEED   7

static void io_use(codec *c, st_use *u)
{
    io_i64(c, &u->gpu_m);
    io_i64(c, &u->cpu_m);
    io_i64(c, &u->ram_mib);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        io_i64(c, &u->type_m[t]);
}

static void io_fleet(codec *c, st_fleet *f)
{
    size_t n = io_count(c, f->types.n, ST_TYPES_MAX);
    IO_GROW(c, &f->types, n);
    for (size_t i = 0; i < n; i++) {
        io_str(c, &f->types.v[i].name);
        io_i64(c, &f->types.v[i].vram_mib);
        IO_IN(c, f->types.v[i].board, 0, ST_BOARD_COUNT - 1);
    }
    n = io_count(c, f->pools.n, ST_POOLS_MAX);
    IO_GROW(c, &f->pools, n);
    for (size_t i = 0; i < n; i++) {
        io_str(c, &f->pools.v[i].name);
        IO_IN(c, f->pools.v[i].levels, 0, UINT32_MAX);
        IO_IN(c, f->pools.v[i].oversub_m, 1000, 4000);
        io_pool_rules(c, &f->pools.v[i].rules);
    }
    for (int l = 0; l < ST_TOPO_COUNT; l++) {
        n = io_count(c, f->domains[l].n, (size_t)ST_NODES_MAX * ST_DEVS_MAX);
        if (!c->out && n > c->n)
            c->bad = true;
        IO_GROW(c, &f->domains[l], c->bad ? 0 : n);
        for (size_t i = 0; i < f->domains[l].n; i++) {
            io_str(c, &f->domains[l].v[i].name);
            if (c->out)
                continue;
            st_strbuf key = {0};
            st_strbuf_addf(&key, "%s/%s", st_topo_name((st_topo)l), f->domains[l].v[i].name);
            st_map_put(f->domain_ids, st_strbuf_str(&key), (int64_t)i);
            st_strbuf_done(&key);
        }
    }
}

static int64_t last_of(size_t n)
{
    return (int64_t)n - 1;
}

static void io_node(codec *c, st_fleet *f, st_node *node)
{
    io_str(c, &node->name);
    IO_IN(c, node->pool, 0, last_of(f->pools.n));
    IO_IN(c, node->type, -1, last_of(f->types.n));
    IO_IN(c, node->ndevs, 0, node->type < 0 ? 0 : ST_DEVS_MAX);
    IO_IN(c, node->cpu_m, 0, ST_QTY_MAX);
    IO_IN(c, node->ram_mib, 0, ST_QTY_MAX);
    IO_IN(c, node->state, 0, ST_NODE_STATE_COUNT - 1);
    IO_IN(c, node->home, 0, ST_PLACES_MAX - 1);
    if (c->format >= 4)
        IO_BOOL(c, node->agent);
    if (c->format >= 19)
        st_save_life(c, node);
    if (c->format >= 20)
        io_labels(c, &node->labels);
    if (!c->out)
        node->place[ST_TOPO_NONE] = -1;
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        IO_IN(c, node->place[l], -1, last_of(f->domains[l].n));
    for (int d = 0; d < node->ndevs; d++)
        IO_IN(c, node->nvlink[d], 0, last_of(f->domains[ST_TOPO_NVLINK].n));
}

/* What adding the node would have set up. */
static void index_node(st_fleet *f, st_node *node)
{
    if (node->state == ST_NODE_REMOVED)
        return;
    st_map_put(f->node_ids, node->name, node->id);
    for (int l = ST_TOPO_ZONE; l <= ST_TOPO_RACK; l++)
        if (node->place[l] >= 0)
            st_vec_push(&f->domains[l].v[node->place[l]].nodes, node->id);
    for (int d = 0; d < node->ndevs; d++)
        if (d == 0 || node->nvlink[d] != node->nvlink[d - 1])
            st_vec_push(&f->domains[ST_TOPO_NVLINK].v[node->nvlink[d]].nodes, node->id);
}

static void io_nodes(codec *c, st_fleet *f)
{
    size_t n = io_count(c, f->nodes.n, ST_NODES_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out) {
            st_vec_push(&f->nodes, st_xcalloc(1, sizeof(st_node)));
            f->nodes.v[i]->id = (int32_t)i;
        }
        io_node(c, f, f->nodes.v[i]);
        if (!c->out && !c->bad)
            index_node(f, f->nodes.v[i]);
    }
}

static void io_account(codec *c, st_account *a, size_t i)
{
    io_str(c, &a->name);
    IO_IN(c, a->parent, i == 0 ? -1 : 0, last_of(i));
    if (!c->out)
        a->serial = (int64_t)i;
    if (c->format >= 3) {
        IO_IN(c, a->serial, (int64_t)i, INT64_MAX);
        IO_BOOL(c, a->gone);
    }
    IO_IN(c, a->depth, 0, ST_DEPTH_MAX);
    io_quota(c, &a->guarantee);
    io_quota(c, &a->max);
    io_quota(c, &a->floor);
    IO_IN(c, a->weight_m, 0, ST_QTY_MAX);
    IO_IN(c, a->priority, INT32_MIN, INT32_MAX);
    io_limits(c, &a->job_limits);
    io_limits(c, &a->user_limits);
    io_book_limits(c, &a->book_limits);
    IO_IN(c, a->trust, 0, ST_TRUST_UNTRUSTED);
    IO_BOOL(c, a->own_domain);
    io_i64(c, &a->min_run_ms);
    io_i64(c, &a->lost);
    for (int s = 0; s < ST_STAGES; s++) {
        IO_IN(c, a->life.ended[s], 0, INT32_MAX);
        IO_IN(c, a->life.outlived[s], 0, INT32_MAX);
    }
}

static void io_tree(codec *c, st_tree *tree)
{
    size_t n = io_count(c, tree->accounts.n, ST_PLACES_MAX);
    if (n == 0)
        c->bad = true;
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out && i == 0)
            free(ST_TAKE(tree->accounts.v[0]->name));
        else if (!c->out)
            st_vec_push(&tree->accounts, st_xcalloc(1, sizeof(st_account)));
        st_account *a = tree->accounts.v[i];
        if (!c->out)
            a->id = (int32_t)i;
        io_account(c, a, i);
        if (c->out || c->bad || i == 0)
            continue;
        a->again = st_map_get(tree->had, a->name, NULL);
        st_map_put(tree->had, a->name, a->id);
        tree->ngone += a->gone;
        if (a->gone)
            continue;
        st_map_put(tree->ids, a->name, a->id);
        st_vec_push(&tree->accounts.v[a->parent]->children, a->id);
    }
    if (!c->out)
        tree->serials = tree->named = last_of(n); /* before formats were counted */
    if (c->format >= 3) {
        IO_IN(c, tree->serials, last_of(n), INT64_MAX);
        IO_IN(c, tree->named, 0, tree->serials);
    }
    n = io_count(c, tree->users.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&tree->users, NULL);
        io_str(c, &tree->users.v[i]);
        if (!c->out)
            st_map_put(tree->user_ids, tree->users.v[i], (int64_t)i);
    }
    n = io_count(c, tree->usage.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&tree->usage, (st_usage){0});
        st_usage *u = &tree->usage.v[i];
        IO_IN(c, u->account, 0, last_of(tree->accounts.n));
        IO_IN(c, u->user, 0, last_of(tree->users.n));
        io_i64(c, &u->rate_m);
        io_i64(c, &u->used);
        io_i64(c, &u->at_ms);
        if (!c->out)
            st_idmap_put(tree->usage_slots, st_user_key(u->account, u->user), (int64_t)i);
    }
    io_use(c, &tree->capacity);
    IO_BOOL(c, tree->shrunk);
}

static void io_grants(codec *c, const st_core *core, st_grant **grants, int n)
{
    if (!c->out)
        *grants = st_xcalloc((size_t)n, sizeof **grants);
    for (int t = 0; t < n && !c->bad; t++) {
        st_grant *g = &(*grants)[t];
        IO_IN(c, g->node, 0, last_of(core->fleet->nodes.n));
        IO_IN(c, g->devs, 0, UINT16_MAX);
        IO_IN(c, g->mig_start, -1, ST_MIG_MEMORY - 1);
    }
}

static void io_job(codec *c, const st_core *core, st_job *j)
{
    io_u64(c, &j->id);
    io_str(c, &j->name);
    IO_IN(c, j->account, 1, last_of(core->tree->accounts.n));
    IO_IN(c, j->user, 0, last_of(core->tree->users.n));
    IO_IN(c, j->pool, -1, last_of(core->fleet->pools.n));
    IO_IN(c, j->tasks, 1, ST_TASKS_MAX);
    io_shape(c, &j->shape);
    IO_IN(c, j->topo, 0, ST_TOPO_COUNT - 1);
    IO_BOOL(c, j->topo_required);
    IO_BOOL(c, j->latency_critical);
    IO_IN(c, j->priority, -ST_PRIO_MAX, ST_PRIO_MAX);
    io_i64(c, &j->limit_ms);
    IO_IN(c, j->yield, 0, ST_YIELD_COUNT - 1);
    IO_IN(c, j->state, 0, ST_JOB_STATE_COUNT - 1);
    c->bad |= st_job_ended(j);
    IO_IN(c, j->class, 0, ST_CLASS_COUNT - 1);
    IO_IN(c, j->type, -1, last_of(core->fleet->types.n));
    IO_BOOL(c, j->held);
    io_u64(c, &j->claimant);
    io_i64(c, &j->submit_ms);
    io_i64(c, &j->queued_ms);
    io_i64(c, &j->start_ms);
    io_i64(c, &j->deadline_ms);
    int64_t saved_ms = ST_BROKEN(SAVE) ? 0 : j->saved_ms;
    io_i64(c, &saved_ms);
    if (!c->out)
        j->saved_ms = saved_ms;
    io_i64(c, &j->served_ms);
    io_i64(c, &j->mark_ms);
    io_i64(c, &j->kept_ms);
    io_i64(c, &j->preempted_ms);
    IO_IN(c, j->preemptions, 0, INT32_MAX);
    IO_IN(c, j->stage, 0, ST_STAGES - 1);
    io_i64(c, &j->expect_ms);
    io_i64(c, &j->promise_ms);
    IO_BOOL(c, j->beyond);
    if (c->format >= 5) {
        io_i64(c, &j->rest_ms);
        IO_BOOL(c, j->demoted);
        bool joined = j->joined == core->round;
        if (core->unfinished)
            IO_BOOL(c, joined);
        if (!c->out)
            j->joined = core->unfinished && joined;
        if (core->unfinished && joined && c->format >= 12) {
            IO_IN(c, j->turn.priority, INT32_MIN, INT32_MAX);
            io_i64(c, &j->turn.usage);
            io_i64(c, &j->turn.key);
        }
        for (int p = 0; core->unfinished && p < 2; p++) {
            bool looked = j->looked[p] == core->round;
            bool later = looked && j->later[p];
            IO_BOOL(c, looked);
            IO_BOOL(c, later);
            if (c->out)
                continue;
            j->looked[p] = looked;
            j->later[p] = later;
        }
    }
    io_i64(c, &j->told_ms);
    io_i64(c, &j->told_at_ms);
    if (c->format >= 4) {
        IO_IN(c, j->stay, 0, INT32_MAX);
        IO_BOOL(c, j->stopping);
        IO_IN(c, j->after, 0, ST_JOB_STATE_COUNT - 1);
        IO_BOOL(c, j->first);
        io_i64(c, &j->stop_ms);
    }
    if (!c->out)
        j->times = j->stay;
    if (c->format >= 7)
        IO_IN(c, j->times, c->format < 10 ? j->stay : 0, INT32_MAX);
    if (c->format >= 9)
        IO_IN(c, j->barred, 0,
              c->format >= 24   ? ST_BAR_ALL
              : c->format >= 22 ? ST_BAR_SINCE_22
              : c->format >= 15 ? ST_BAR_SINCE_15
                                : ST_BAR_ORDER);
    if (c->format >= 14)
        io_u64(c, &j->booking);
    if (c->format >= 15) {
        io_u64(c, &j->series);
        io_i64(c, &j->begin_ms);
        io_i64(c, &j->end_by_ms);
        io_i64(c, &j->close_ms);
    }
    if (c->format >= 16) {
        io_i64(c, &j->by_ms);
        io_u64(c, &j->hold);
    }
    if (c->format >= 18)
        IO_BOOL(c, j->meek);
    if (c->format >= 21) {
        IO_BOOL(c, j->fails);
        IO_IN(c, j->fault, 0, (int64_t)core->fleet->nodes.n);
    }
    if (c->format >= 24)
        st_save_flow(c, core, j);
    st_save_grace(c, core, j);
    st_save_pick(c, core->fleet, j);
    c->bad |= j->class == ST_CLASS_BOOKED && j->booking == 0;
    c->bad |= (j->state == ST_JOB_STOPPING && !j->stopping) ||
              (j->stopping && j->state != ST_JOB_STOPPING && j->state != ST_JOB_PAUSED);
    bool placed = j->grants != NULL;
    IO_BOOL(c, placed);
    if (placed != (j->held || j->state != ST_JOB_PENDING))
        c->bad = true;
    if (placed && !c->bad)
        io_grants(c, core, &j->grants, j->tasks);
    bool moves = j->to != NULL;
    IO_BOOL(c, moves);
    if (moves && !st_job_leaving(j))
        c->bad = true;
    if (moves && !c->bad)
        io_grants(c, core, &j->to, j->tasks);
}

static struct st_shadow_job *io_shadow_job(codec *c, st_core *core, struct st_shadow_job *shadow)
{
    if (!c->out)
        shadow = st_xcalloc(1, sizeof *shadow);
    io_job(c, core, &shadow->job);
    io_i64(c, &shadow->run_ms);
    io_i64(c, &shadow->ended_ms);
    if (c->out || c->bad)
        return shadow;
    shadow->key = st_core_shape_key(&shadow->job, -1);
    st_job *job = st_core_find(core, shadow->job.id);
    if (job && shadow->run_ms == ST_TIME_NEVER)
        job->shadow = shadow;
    return shadow;
}

static void io_shadow_cluster(codec *c, st_core *core, st_shadow_cluster *cluster)
{
    IO_IN(c, cluster->account, 1, last_of(core->tree->accounts.n));
    IO_BOOL(c, cluster->dirty);
    size_t n = io_count(c, cluster->waits.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        struct st_shadow_job *shadow = io_shadow_job(c, core, c->out ? cluster->waits.v[i] : NULL);
        c->bad |= shadow->job.grants != NULL;
        if (!c->out)
            st_vec_push(&cluster->waits, shadow);
    }
    n = io_count(c, cluster->stand.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        struct st_shadow_job *shadow = io_shadow_job(c, core, c->out ? cluster->stand.v[i] : NULL);
        c->bad |= shadow->job.grants == NULL;
        if (!c->out)
            st_vec_push(&cluster->stand, shadow);
    }
    if (!c->out)
        st_shadow_list_nodes(core, cluster);
}

static void io_kinds(codec *c, st_kind *kinds, int32_t *n, int64_t max)
{
    IO_IN(c, *n, 0, max);
    for (int i = 0; i < *n && !c->bad; i++) {
        st_kind *k = &kinds[i];
        IO_IN(c, k->types, 0, UINT32_MAX);
        IO_IN(c, k->level, 0, ST_LEVEL_COUNT - 1);
        IO_IN(c, k->gpus, 0, ST_DEVS_MAX);
        IO_IN(c, k->profile, 0, ST_MIG_COUNT - 1);
        IO_IN(c, k->share_m, 0, ST_WHOLE_M);
        IO_IN(c, k->cpu_m, 0, ST_QTY_MAX);
        IO_IN(c, k->ram_mib, 0, ST_QTY_MAX);
        IO_IN(c, k->weight, 0, INT32_MAX);
    }
}

static void io_typical(codec *c, st_typical *t)
{
    IO_IN(c, t->arrivals, 0, INT64_MAX);
    IO_IN(c, t->next, 0, INT64_MAX);
    io_kinds(c, t->seen, &t->nseen, ST_TYPICAL_SEEN);
    io_kinds(c, t->target, &t->ntarget, ST_TYPICAL_TARGET);
}

/* Where a pass stopped. */
static void io_round(codec *c, st_core *core)
{
    IO_BOOL(c, core->unfinished);
    if (!core->unfinished)
        return;
    IO_BOOL(c, core->heard);
    IO_BOOL(c, core->again);
    IO_BOOL(c, core->exchange);
    io_i64(c, &core->stopped_ms);
    io_i64(c, &core->round_ms);
    io_i64(c, &core->blocked);
    io_i64(c, &core->round_wake_ms);
    if (c->format >= 6) {
        IO_BOOL(c, core->freed);
        size_t n = io_count(c, core->refusals.n, UINT32_MAX);
        for (size_t i = 0; i < n && !c->bad; i++) {
            if (!c->out)
                st_vec_push(&core->refusals, (st_refusal){0});
            io_u64(c, &core->refusals.v[i].key);
            io_i64(c, &core->refusals.v[i].how);
        }
    }
    if (!c->out) {
        core->round = 1;
        core->heard |= c->format < 12; /* it begins anew, since its order is not known */
    }
}

static void io_core(codec *c, st_core *core)
{
    io_policy(c, &core->policy);
    IO_IN(c, core->policy.counts, 0, ST_COUNTS_TOTAL);
    IO_IN(c, core->policy.order, 0, ST_ORDER_COUNT - 1);
    io_i64(c, &core->now);
    io_u64(c, &core->hash);
    io_i64(c, &core->wake_ms);
    IO_BOOL(c, core->floors_dirty);
    IO_BOOL(c, core->class_dirty);
    /* Who was submitted since is not saved: whoever loads this looks at everybody. In the middle of a round
     * it is who has not joined. */
    bool settled = core->unfinished || (core->settled && core->fresh.n == 0);
    IO_BOOL(c, settled);
    if (!c->out)
        core->settled = settled;
    if (c->format >= 5)
        io_round(c, core);
    if (c->format >= 10) {
        io_u64(c, &core->past_job);
        IO_IN(c, core->past_stay, 0, ST_STAY_MAX);
    }
    io_fleet(c, core->fleet);
    io_nodes(c, core->fleet);
    io_tree(c, core->tree);
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        c->bad |= (size_t)core->fleet->nodes.v[i]->home >= core->tree->accounts.n;
    io_typical(c, st_placer_typical(core->placer));
    size_t n = io_count(c, core->jobs.n, UINT32_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        st_job *job = c->out ? core->jobs.v[i] : st_xcalloc(1, sizeof *job);
        io_job(c, core, job);
        if (!c->out)
            st_core_add_job(core, job);
    }
    n = io_count(c, core->shadows.n, ST_ACCOUNTS_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&core->shadows, st_xcalloc(1, sizeof(st_shadow_cluster)));
        io_shadow_cluster(c, core, core->shadows.v[i]);
    }
    n = io_count(c, core->resv.n, ST_RESERVATIONS_MAX);
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&core->resv, (st_reservation){0});
        st_reservation *r = &core->resv.v[i];
        io_u64(c, &r->job);
        io_i64(c, &r->at_ms);
        IO_IN(c, r->by, ST_BY_LIMITS, ST_BY_LIMITS | ST_BY_FORECAST);
        IO_BOOL(c, r->also);
        IO_BOOL(c, r->moves);
        io_i64(c, &r->promise_ms);
        if (r->also && i == 0)
            c->bad = true;
        IO_BOOL(c, r->guaranteed);
        IO_BOOL(c, r->claims);
        IO_IN(c, r->type, -1, last_of(core->fleet->types.n));
        IO_IN(c, r->ntasks, 1, ST_TASKS_MAX);
        if (!c->bad)
            io_grants(c, core, &r->plan, r->ntasks);
    }
    st_save_forecast(c, core->forecast);
    if (c->format >= 2) {
        IO_BOOL(c, core->stirred);
        io_i64(c, &core->exchange_ms);
    } else {
        core->stirred = true;
    }
    if (c->format >= 8)
        io_i64(c, &core->age_ms);
    n = c->format >= 14 ? io_count(c, core->bookings.n, UINT32_MAX) : 0;
    for (size_t i = 0; i < n && !c->bad; i++) {
        if (!c->out)
            st_vec_push(&core->bookings, st_xcalloc(1, sizeof(st_booking)));
        st_save_booking(c, core, core->bookings.v[i]);
        c->bad |= i > 0 && core->bookings.v[i]->id <= core->bookings.v[i - 1]->id;
    }
    if (c->format >= 21)
        st_save_incidents(c, core);
    if (c->format >= 24)
        st_save_arrays(c, core);
    st_save_pauses(c, core);
    for (size_t i = 0; i < core->jobs.n && !c->bad; i++)
        c->bad |= core->jobs.v[i]->booking && !st_book_find(core, core->jobs.v[i]->booking);
}

void st_core_save(const st_core *core, st_strbuf *out)
{
    /* Writing goes through the description that reading needs, which is why it takes the
     * state as changeable; it changes none of it, nor writes what is there already: several may save
     * at once. */
    union {
        const st_core *from;
        st_core *to;
    } same = {.from = core};
    size_t start = out->n;
    codec c = {.out = out, .format = ST_CODEC_FORMAT};
    uint64_t magic = MAGIC;
    io_u64(&c, &magic);
    IO_IN(&c, c.format, 1, ST_CODEC_FORMAT);
    io_core(&c, same.to);
    uint64_t hash = st_hash_bytes(out->s + start, out->n - start, SEED);
    io_u64(&c, &hash);
}

/* Set residents and counters from the jobs. */
static void rebuild(st_core *core)
{
    for (size_t i = 0; i < core->jobs.n; i++) {
        st_job *job = core->jobs.v[i];
        if (st_job_on_devices(job))
            st_core_place(core, job, true);
        if (st_job_leaving(job))
            st_core_leaves(core, job);
        bool waits =
            st_job_waits(job) || (job->booking && job->state == ST_JOB_PENDING && !job->barred);
        if (core->unfinished && waits && job->joined != core->round)
            st_vec_push(&core->fresh, job->id);
        st_core_put_aside(core, job);
        st_after_join(core, job);
        st_array_join(core, job);
        core->nheld += job->held;
        if (job->class == ST_CLASS_BURSTABLE)
            st_core_list_fresh(core, job);
        core->nmoving += job->to != NULL;
        st_core_due(core, job);
        for (int t = 0; job->grants && t < job->tasks; t++) {
            st_vec_push(&core->fleet->nodes.v[job->grants[t].node]->residents,
                        (st_resident){job, t});
            core->fleet->latency_critical += job->latency_critical;
        }
        bool now = st_job_on_devices(job), next = job->held || job->state == ST_JOB_RUNNING;
        if ((!now && !next) || job->class == ST_CLASS_BOOKED)
            continue;
        st_need need = st_need_of(job, job->type);
        unsigned moments = (now ? ST_NOW : 0u) | (next ? ST_NEXT : 0u) |
                           (next && job->class == ST_CLASS_GUARANTEED ? ST_GUARANTEED : 0u);
        st_admit_charge(core->tree, job->account, &need, moments, 1);
        st_admit_user_charge(core->fleet, core->tree, job, job->type, 1);
    }
    st_admit_needs(core->tree);
    st_core_set_due(core);
    st_core_nodes_set_due(core);
    st_incidents_set_due(core);
    st_core_reserve_index(core);
    st_book_rebuild(core);
    for (size_t i = 0; i < core->fleet->nodes.n; i++)
        st_node_refresh(core->fleet, core->tree, core->fleet->nodes.v[i]);
}

int st_core_load(const char *data, size_t len, st_core **ret, st_err *err)
{
    codec c = {.in = data, .n = len};
    uint64_t magic, hash;
    io_u64(&c, &magic);
    if (magic == MAGIC)
        IO_IN(&c, c.format, 1, ST_CODEC_FORMAT);
    if (c.bad || (magic != MAGIC && magic != MAGIC2))
        return st_fail(err, ST_EPARSE, "this is not a saved state");
    codec tail = {.in = data, .n = len, .at = len >= 16 ? len - 8 : len};
    io_u64(&tail, &hash);
    if (tail.bad || hash != st_hash_bytes(data, len - 8, SEED))
        return st_fail(err, ST_EPARSE, "the saved state is damaged: its checksum does not match");
    c.n -= 8;
    st_core *core = st_core_new(NULL);
    io_core(&c, core);
    if (c.bad || c.at != c.n) {
        st_core_free(core);
        return st_fail(err, ST_EPARSE, "the saved state is damaged near byte %zu", c.at);
    }
    rebuild(core);
    *ret = core;
    return 0;
}
