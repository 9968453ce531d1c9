/*
 * The ledger of check_quota.h: sums over jobs, and the rules of admit/admit.h applied to the
 * whole tree at once.
 */
#include "check/quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

int64_t st_tally_gpu_m(const st_job *job)
{
    const st_shape *shape = &job->shape;
    if (shape->gpus == 0)
        return 0;
    if (shape->level == ST_LEVEL_WHOLE)
        return INT64_C(1000) * shape->gpus * job->tasks;
    if (shape->level == ST_LEVEL_MIG) {
        int64_t compute = 1000 * st_mig_compute(shape->profile) / ST_MIG_COMPUTE;
        int64_t memory = 1000 * st_mig_memory(shape->profile) / ST_MIG_MEMORY;
        return ST_MAX(compute, memory) * job->tasks;
    }
    return shape->share_m * job->tasks;
}

void st_tally_add(st_use *use, const st_job *job, int32_t type)
{
    int64_t gpu_m = st_tally_gpu_m(job);
    use->gpu_m += gpu_m;
    use->cpu_m += job->shape.cpu_m * job->tasks;
    use->ram_mib += job->shape.ram_mib * job->tasks;
    if (gpu_m > 0)
        use->type_m[type] += gpu_m;
}

void st_tally_add_guaranteed(st_tally *tally, const st_job *job, int32_t type)
{
    if (job->shape.gpus > 0)
        tally->rows[job->account].own_guaranteed_m[type] += st_tally_gpu_m(job);
    for (int32_t a = job->account; a >= 0; a = tally->tree->accounts.v[a]->parent)
        st_tally_add(&tally->rows[a].guaranteed, job, type);
}

static void add_job(st_tally *tally, const st_job *job)
{
    if (job->class == ST_CLASS_BOOKED)
        return; /* what is booked counts for the booking */
    for (int32_t a = job->account; a >= 0; a = tally->tree->accounts.v[a]->parent) {
        if (st_room_is_now(job))
            st_tally_add(&tally->rows[a].now, job, job->type);
        if (st_room_is_next(job))
            st_tally_add(&tally->rows[a].next, job, job->type);
    }
    if (st_room_is_next(job) && job->class == ST_CLASS_GUARANTEED)
        st_tally_add_guaranteed(tally, job, job->type);
}

/* Ready nodes count whole, draining ones for what is still in use there, failed ones not. */
static void measure(st_tally *tally, const st_job_list *jobs, const uint8_t *out)
{
    st_use *cap = &tally->capacity;
    st_room room;
    st_room_build(&room, tally->fleet, tally->tree, jobs, out, ST_WHEN_NOW);
    /* What is fenced is a booking's, whoever is there. */
    for (size_t i = 0; i < room.n; i++) {
        const st_node *node = tally->fleet->nodes.v[i];
        bool whole = node->state == ST_NODE_READY;
        if (st_node_away(node))
            continue;
        cap->cpu_m += (whole ? node->cpu_m : room.nodes[i].cpu_m) - node->fence_cpu_m;
        cap->ram_mib += (whole ? node->ram_mib : room.nodes[i].ram_mib) - node->fence_ram_mib;
        for (int d = 0; d < node->ndevs; d++) {
            st_node_state alone = st_gpu_state(node, d);
            bool closed = !whole || alone != ST_NODE_READY;
            bool lost = alone == ST_NODE_FAILED;
            if ((node->fence >> d & 1) || lost || (closed && room.nodes[i].dev[d].tasks == 0))
                continue;
            cap->gpu_m += 1000;
            cap->type_m[node->type] += 1000;
        }
    }
    st_room_done(&room);
}

void st_tally_build(st_tally *tally, const st_fleet *fleet, const st_tree *tree,
                    const st_job_list *jobs, const uint8_t *out)
{
    *tally = (st_tally){.fleet = fleet, .tree = tree};
    tally->rows = st_xcalloc(tree->accounts.n, sizeof *tally->rows);
    for (size_t i = 0; i < jobs->n; i++)
        if (!(out && out[i]))
            add_job(tally, jobs->v[i]);
    measure(tally, jobs, out);
}

void st_tally_done(st_tally *tally)
{
    free(tally->rows);
    *tally = (st_tally){0};
}

/* ---- guarantees --------------------------------------------------------------------- */

static int64_t at_least_0(int64_t v)
{
    return ST_MAX(v, 0);
}

/* need[t] of an account as admit/admit.h defines it, with the floors given. */
static int64_t need_m(const st_tally *tally, const st_quota *floors, int32_t account, int type,
                      bool with_jobs)
{
    const st_account *a = tally->tree->accounts.v[account];
    int64_t below = with_jobs ? tally->rows[account].own_guaranteed_m[type] : 0;
    for (size_t c = 0; c < a->children.n; c++)
        below += need_m(tally, floors, a->children.v[c], type, with_jobs);
    return ST_MAX(at_least_0(floors[account].type_m[type]), below);
}

/* What an account must be able to deliver over all types, leaving its own floor aside. */
static int64_t need_below_m(const st_tally *tally, const st_quota *floors, int32_t account)
{
    const st_account *a = tally->tree->accounts.v[account];
    int64_t typed = 0, below = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        typed += need_m(tally, floors, account, t, true);
        below += tally->rows[account].own_guaranteed_m[t];
    }
    for (size_t c = 0; c < a->children.n; c++) {
        int32_t child = a->children.v[c];
        below += ST_MAX(st_tally_promised_m(&floors[child]), need_below_m(tally, floors, child));
    }
    return ST_MAX(typed, below);
}

bool st_tally_promises_gpu(const st_quota *q)
{
    bool any = q->gpu_m != ST_UNSET;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        any |= q->type_m[t] != ST_UNSET;
    return any;
}

int64_t st_tally_promised_m(const st_quota *q)
{
    if (q->gpu_m != ST_UNSET)
        return q->gpu_m;
    int64_t sum = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        sum += at_least_0(q->type_m[t]);
    return sum;
}

static bool side_sound(const st_tally *tally, int32_t account, st_dim dim, char *why, size_t size)
{
    const st_account *a = tally->tree->accounts.v[account];
    const st_use *guaranteed = &tally->rows[account].guaranteed;
    int64_t used = dim == ST_CPU ? guaranteed->cpu_m : guaranteed->ram_mib;
    int64_t bound = dim == ST_CPU ? a->floor.cpu_m : a->floor.ram_mib;
    if (account == ST_ROOT)
        bound = dim == ST_CPU ? tally->capacity.cpu_m : tally->capacity.ram_mib;
    if (bound == ST_UNSET || used <= bound)
        return true;
    snprintf(why, size, "account %s: guaranteed %s %" PRId64 " is above its floor %" PRId64,
             a->name, st_dim_name(dim), used, bound);
    return false;
}

static bool gpu_sound(const st_tally *tally, int32_t account, const st_quota *floors, char *why,
                      size_t size)
{
    const st_account *a = tally->tree->accounts.v[account];
    if (tally->rows[account].guaranteed.gpu_m == 0)
        return true;
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        int64_t need = need_m(tally, floors, account, t, true);
        if (account == ST_ROOT && need > tally->capacity.type_m[t]) {
            snprintf(why, size,
                     "the fleet: %" PRId64 " milli-GPU of type %d guaranteed or promised, "
                     "%" PRId64 " are there",
                     need, t, tally->capacity.type_m[t]);
            return false;
        }
    }
    int64_t sum = need_below_m(tally, floors, account);
    int64_t bound =
        account == ST_ROOT ? tally->capacity.gpu_m : st_tally_promised_m(&floors[account]);
    if ((account != ST_ROOT && !st_tally_promises_gpu(&floors[account])) || sum <= bound)
        return true;
    snprintf(why, size,
             "account %s: %" PRId64 " milli-GPU guaranteed or promised below it, its floor is "
             "%" PRId64,
             a->name, sum, bound);
    return false;
}

static st_quota *copy_floors(const st_tree *tree)
{
    st_quota *floors = st_xcalloc(tree->accounts.n, sizeof *floors);
    for (size_t i = 0; i < tree->accounts.n; i++)
        floors[i] = tree->accounts.v[i]->floor;
    return floors;
}

bool st_tally_sound(const st_tally *tally, char *why, size_t size)
{
    ST_CLEANUP(st_freep) st_quota *floors = copy_floors(tally->tree);
    for (size_t i = 0; i < tally->tree->accounts.n; i++) {
        int32_t a = (int32_t)i;
        if (!side_sound(tally, a, ST_CPU, why, size) || !side_sound(tally, a, ST_RAM, why, size) ||
            !gpu_sound(tally, a, floors, why, size))
            return false;
    }
    return true;
}

bool st_tally_guaranteed_ok(const st_tally *tally, const st_job_list *jobs, const uint8_t *out,
                            const st_job *job, int32_t type)
{
    bool backed = false;
    for (int32_t a = job->account; a > ST_ROOT; a = tally->tree->accounts.v[a]->parent) {
        const st_quota *floor = &tally->tree->accounts.v[a]->floor;
        backed |= job->shape.gpus > 0 ? st_tally_promises_gpu(floor) : floor->cpu_m != ST_UNSET;
    }
    if (!backed)
        return false;
    char why[200];
    st_tally more;
    st_tally_build(&more, tally->fleet, tally->tree, jobs, out);
    st_tally_add_guaranteed(&more, job, type);
    bool ok = st_tally_sound(&more, why, sizeof why);
    st_tally_done(&more);
    return ok;
}

/* ---- floors ------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;

/* v x num / den, rounded down, where den is larger; v itself otherwise. */
static int64_t shrink(int64_t v, int64_t num, int64_t den)
{
    if (v <= 0 || den <= num)
        return v;
    return (int64_t)((wide)v * at_least_0(num) / den);
}

/* Whether a floor lies between nothing and its guarantee, entry by entry. */
static bool within(const st_quota *floor, const st_quota *guarantee)
{
    bool ok = floor->gpu_m <= guarantee->gpu_m && floor->cpu_m <= guarantee->cpu_m &&
              floor->ram_mib <= guarantee->ram_mib;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        ok &= floor->type_m[t] <= guarantee->type_m[t] &&
              (floor->type_m[t] == ST_UNSET) == (guarantee->type_m[t] == ST_UNSET);
    return ok;
}

bool st_tally_floors_ok(const st_tally *tally, char *why, size_t size)
{
    const st_tree *tree = tally->tree;
    ST_CLEANUP(st_freep) st_quota *floors = copy_floors(tree);
    ST_CLEANUP(st_freep) st_tally_row *none = st_xcalloc(tree->accounts.n, sizeof *none);
    st_tally idle = *tally;
    idle.rows = none; /* with nobody running, the floors must still be deliverable */
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        int64_t need = need_below_m(&idle, floors, a->id);
        int64_t have = i == ST_ROOT ? tally->capacity.gpu_m : st_tally_promised_m(&floors[i]);
        bool bound = i == ST_ROOT || st_tally_promises_gpu(&floors[i]);
        bool ok = within(&floors[i], st_tree_promise(tree, a->id)) && (!bound || need <= have);
        for (int t = 0; i == ST_ROOT && t < ST_TYPES_MAX; t++)
            ok &= need_m(&idle, floors, ST_ROOT, t, false) <= tally->capacity.type_m[t];
        if (ok)
            continue;
        snprintf(why, size, "account %s: its floor cannot be delivered: %" PRId64 " of %" PRId64,
                 a->name, need, have);
        return false;
    }
    return true;
}

bool st_tally_named(const st_tree *tree)
{
    for (size_t i = 0; i < tree->accounts.n; i++)
        for (int t = 0; t < ST_TYPES_MAX; t++)
            if (tree->accounts.v[i]->guarantee.type_m[t] != ST_UNSET)
                return true;
    return false;
}

void st_tally_floors(const st_tally *tally, st_quota *ret)
{
    const st_tree *tree = tally->tree;
    const st_use *cap = &tally->capacity;
    int64_t gpu = 0, cpu = 0, ram = 0, typed[ST_TYPES_MAX];
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        const st_quota *promise = st_tree_promise(tree, a->id);
        ret[i] = *promise;
        if (a->parent != ST_ROOT)
            continue;
        gpu += st_tally_promised_m(promise);
        cpu += at_least_0(promise->cpu_m);
        ram += at_least_0(promise->ram_mib);
    }
    for (int t = 0; t < ST_TYPES_MAX; t++)
        typed[t] = need_m(tally, ret, ST_ROOT, t, false);
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_quota *f = &ret[i];
        int64_t total = shrink(st_tally_promised_m(f), cap->gpu_m, gpu), sum = 0;
        f->gpu_m = shrink(f->gpu_m, cap->gpu_m, gpu);
        f->cpu_m = shrink(f->cpu_m, cap->cpu_m, cpu);
        f->ram_mib = shrink(f->ram_mib, cap->ram_mib, ram);
        for (int t = 0; t < ST_TYPES_MAX; t++) {
            f->type_m[t] = shrink(f->type_m[t], cap->type_m[t], typed[t]);
            sum += at_least_0(f->type_m[t]);
        }
        for (int t = 0; t < ST_TYPES_MAX; t++)
            f->type_m[t] = shrink(f->type_m[t], total, sum);
    }
}

/* ---- ceilings ----------------------------------------------------------------------- */

static int64_t of_use(const st_use *use, st_dim dim, int32_t type)
{
    return dim == ST_CPU   ? use->cpu_m
           : dim == ST_RAM ? use->ram_mib
           : type >= 0     ? use->type_m[type]
                           : use->gpu_m;
}

int64_t st_tally_used(const st_tally *tally, int32_t account, st_dim dim, int32_t type)
{
    const st_tally_row *row = &tally->rows[account];
    return ST_MAX(of_use(&row->now, dim, type), of_use(&row->next, dim, type));
}

int64_t st_tally_now(const st_tally *tally, int32_t account, st_dim dim, int32_t type)
{
    return of_use(&tally->rows[account].now, dim, type);
}

bool st_tally_max_ok(const st_tally *tally, const st_job *job, int32_t type, unsigned moments)
{
    st_use asked = {0};
    st_tally_add(&asked, job, type);
    for (int32_t a = job->account; a > ST_ROOT; a = tally->tree->accounts.v[a]->parent) {
        const st_quota *max = &tally->tree->accounts.v[a]->max;
        const struct {
            st_dim dim;
            int32_t type;
            int64_t bound;
        } rows[] = {{ST_GPU, -1, max->gpu_m},
                    {ST_GPU, type, type >= 0 ? max->type_m[type] : ST_UNSET},
                    {ST_CPU, -1, max->cpu_m},
                    {ST_RAM, -1, max->ram_mib}};
        for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
            int64_t more = of_use(&asked, rows[i].dim, rows[i].type);
            const st_tally_row *row = &tally->rows[a];
            int64_t now = of_use(&row->now, rows[i].dim, rows[i].type);
            int64_t next = of_use(&row->next, rows[i].dim, rows[i].type);
            int64_t used = ST_MAX(moments & ST_NOW ? now : 0, moments & ST_NEXT ? next : 0);
            if (rows[i].bound != ST_UNSET && more > 0 && used + more > rows[i].bound)
                return false;
        }
    }
    return true;
}

/* ---- limits per user ---------------------------------------------------------------- */

int64_t st_tally_limit_of(const st_fleet *fleet, const st_job *job, int32_t type,
                          st_limit_kind kind)
{
    const st_shape *shape = &job->shape;
    bool shared = shape->level == ST_LEVEL_MPS || shape->level == ST_LEVEL_TIME;
    if (kind == ST_LIMIT_RUN)
        return job->limit_ms;
    if (shape->gpus == 0)
        return 0;
    if (kind == ST_LIMIT_GPU)
        return st_tally_gpu_m(job);
    if (kind == ST_LIMIT_SHARE)
        return shared ? shape->share_m * job->tasks : 0;
    if (shared)
        return st_room_vram_mib(fleet, job, type) * job->tasks;
    if (shape->level == ST_LEVEL_MIG)
        return st_mig_vram_mib(fleet->types.v[type].board, shape->profile) * job->tasks;
    return fleet->types.v[type].vram_mib * shape->gpus * job->tasks;
}

int64_t st_tally_bound(const st_limits *limits, st_limit_kind kind)
{
    return kind == ST_LIMIT_GPU     ? limits->gpu_m
           : kind == ST_LIMIT_VRAM  ? limits->vram_mib
           : kind == ST_LIMIT_SHARE ? limits->share_m
                                    : limits->run_ms;
}

static bool is_below(const st_tree *tree, int32_t account, int32_t above)
{
    while (account > above)
        account = tree->accounts.v[account]->parent;
    return account == above;
}

int64_t st_tally_user(const st_fleet *fleet, const st_tree *tree, const st_job_list *jobs,
                      const uint8_t *out, const st_job *but, int32_t account, int32_t user,
                      st_limit_kind kind)
{
    int64_t sum = 0;
    for (size_t i = 0; i < jobs->n; i++) {
        const st_job *job = jobs->v[i];
        if ((out && out[i]) || job == but || job->user != user || job->class == ST_CLASS_BOOKED ||
            !(st_room_is_now(job) || st_room_is_next(job)) ||
            !is_below(tree, job->account, account))
            continue;
        int64_t v = st_tally_limit_of(fleet, job, job->type, kind);
        sum += v == ST_TIME_NEVER ? 0 : v;
    }
    return sum;
}

bool st_tally_limits_ok(const st_fleet *fleet, const st_tree *tree, const st_job_list *jobs,
                        const uint8_t *out, const st_job *job, int32_t type, bool alone)
{
    for (int32_t a = job->account; a >= 0; a = tree->accounts.v[a]->parent) {
        for (int k = 0; k < ST_LIMIT_COUNT; k++) {
            st_limit_kind kind = (st_limit_kind)k;
            int64_t asked = st_tally_limit_of(fleet, job, type, kind);
            int64_t mine = st_tally_bound(&tree->accounts.v[a]->job_limits, kind);
            int64_t bound = st_tally_bound(&tree->accounts.v[a]->user_limits, kind);
            if (asked > 0 && mine != ST_UNSET && asked > mine)
                return false;
            if (asked == 0 || bound == ST_UNSET)
                continue;
            int64_t used =
                alone ? 0 : st_tally_user(fleet, tree, jobs, out, job, a, job->user, kind);
            if (asked > bound - used)
                return false;
        }
    }
    return true;
}
