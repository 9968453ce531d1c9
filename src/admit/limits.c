/* Limits on one job, and on all running jobs of one user, at every ancestor that sets any. */
#include "admit/admit.h"
#include "base/macros.h"

const char *st_limit_name(st_limit_kind kind)
{
    static const char *const names[] = {"gpu", "vram", "share", "run time"};
    ST_ASSERT(kind < ST_LIMIT_COUNT);
    return names[kind];
}

typedef struct amounts {
    int64_t v[ST_LIMIT_COUNT];
} amounts;

static int64_t vram_mib(const st_fleet *fleet, const st_job *job, int32_t type)
{
    const st_shape *shape = &job->shape;
    if (shape->gpus == 0 || type < 0)
        return 0;
    const st_gpu_type *t = &fleet->types.v[type];
    switch (shape->level) {
    case ST_LEVEL_WHOLE:
        return t->vram_mib * shape->gpus * job->tasks;
    case ST_LEVEL_MIG:
        return st_mig_vram_mib(t->board, shape->profile) * job->tasks;
    default:
        return st_share_vram_mib(fleet, shape, type) * job->tasks;
    }
}

static amounts amounts_of(const st_fleet *fleet, const st_job *job, int32_t type)
{
    bool shared = job->shape.gpus > 0 &&
                  (job->shape.level == ST_LEVEL_MPS || job->shape.level == ST_LEVEL_TIME);
    return (amounts){{
        [ST_LIMIT_GPU] = st_job_gpu_m(job),
        [ST_LIMIT_VRAM] = vram_mib(fleet, job, type),
        [ST_LIMIT_SHARE] = shared ? job->shape.share_m * job->tasks : 0,
        [ST_LIMIT_RUN] = job->limit_ms,
    }};
}

static amounts bounds_of(const st_limits *l)
{
    return (amounts){{l->gpu_m, l->vram_mib, l->share_m, l->run_ms}};
}

static amounts used_of(const st_user_use *u)
{
    return (amounts){{u->gpu_m, u->vram_mib, u->share_m, u->run_ms}};
}

static void collect(st_limit_over *ret, int max, int *n, int32_t account, bool per_user,
                    const amounts *used, const amounts *asked, const amounts *bound)
{
    for (int k = 0; k < ST_LIMIT_COUNT; k++) {
        if (bound->v[k] == ST_UNSET || asked->v[k] == 0)
            continue;
        if (asked->v[k] <= bound->v[k] - used->v[k])
            continue;
        if (*n < max)
            ret[*n] = (st_limit_over){account,    per_user,    (st_limit_kind)k,
                                      used->v[k], asked->v[k], bound->v[k]};
        (*n)++;
    }
}

int st_admit_job_limits(const st_fleet *fleet, const st_tree *tree, const st_job *job, int32_t type,
                        st_limit_over *ret, int max)
{
    amounts asked = amounts_of(fleet, job, type), none = {0};
    int n = 0;
    for (int32_t i = job->account; i >= 0; i = st_tree_account(tree, i)->parent) {
        amounts bound = bounds_of(&st_tree_account(tree, i)->job_limits);
        collect(ret, max, &n, i, false, &none, &asked, &bound);
    }
    return n;
}

int st_admit_user_limits(const st_fleet *fleet, const st_tree *tree, const st_job *job,
                         int32_t type, bool alone, st_limit_over *ret, int max)
{
    amounts asked = amounts_of(fleet, job, type);
    int n = 0;
    for (int32_t i = job->account; i >= 0; i = st_tree_account(tree, i)->parent) {
        amounts bound = bounds_of(&st_tree_account(tree, i)->user_limits), used = {0};
        int64_t slot;
        if (!alone && st_idmap_get(tree->user_slots, st_user_key(i, job->user), &slot))
            used = used_of(&tree->user_use.v[slot]);
        collect(ret, max, &n, i, true, &used, &asked, &bound);
    }
    return n;
}

void st_admit_user_charge(const st_fleet *fleet, st_tree *tree, const st_job *job, int32_t type,
                          int sign)
{
    amounts asked = amounts_of(fleet, job, type);
    if (asked.v[ST_LIMIT_RUN] == ST_TIME_NEVER)
        asked.v[ST_LIMIT_RUN] = 0; /* a bounded account admits no such job; nothing to sum */
    for (int32_t i = job->account; i >= 0; i = st_tree_account(tree, i)->parent) {
        int64_t slot;
        if (!st_idmap_get(tree->user_slots, st_user_key(i, job->user), &slot)) {
            slot = (int64_t)tree->user_use.n;
            st_vec_push(&tree->user_use, (st_user_use){0});
            st_idmap_put(tree->user_slots, st_user_key(i, job->user), slot);
        }
        st_user_use *u = &tree->user_use.v[slot];
        u->gpu_m += sign * asked.v[ST_LIMIT_GPU];
        u->vram_mib += sign * asked.v[ST_LIMIT_VRAM];
        u->share_m += sign * asked.v[ST_LIMIT_SHARE];
        u->run_ms += sign * asked.v[ST_LIMIT_RUN];
        ST_ASSERT(u->gpu_m >= 0 && u->vram_mib >= 0 && u->share_m >= 0 && u->run_ms >= 0);
    }
}
