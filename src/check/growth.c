/*
 * Ceilings and limits per user, over a step.
 *
 * An admin may set one below what is in use, so the rule is not "use <= bound" but: nobody's use
 * grows past it, use after <= max(bound, use before).
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "check/watch.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

static int grown(const char *what, const st_account *a, int64_t before, int64_t after,
                 int64_t bound, st_err *err)
{
    if (bound == ST_UNSET || after <= ST_MAX(bound, before))
        return 0;
    return BAD("max: account %s uses %" PRId64 " %s, its max is %" PRId64, a->name, after, what,
               bound);
}

static int check_max(const st_account *a, const st_tally *before, const st_tally *after,
                     st_err *err)
{
    static const char *const what[] = {"milli-GPU", "milli-CPU", "MiB"};
    const int64_t bounds[] = {a->max.gpu_m, a->max.cpu_m, a->max.ram_mib};
    int rc = 0;
    for (int d = 0; rc == 0 && d < ST_NDIMS; d++)
        rc = grown(what[d], a, st_tally_used(before, a->id, (st_dim)d, -1),
                   st_tally_used(after, a->id, (st_dim)d, -1), bounds[d], err);
    for (int t = 0; rc == 0 && t < ST_TYPES_MAX; t++)
        rc = grown("milli-GPU of one type", a, st_tally_used(before, a->id, ST_GPU, t),
                   st_tally_used(after, a->id, ST_GPU, t), a->max.type_m[t], err);
    return rc;
}

/* Of every user, at one account: what its jobs hold. */
static int64_t *user_sums(const st_step *step, const st_job_list *jobs)
{
    const st_tree *tree = st_core_tree(step->core);
    size_t n = tree->users.n * ST_LIMIT_COUNT;
    int64_t *sums = st_xcalloc(tree->accounts.n * n + 1, sizeof *sums);
    for (size_t a = 0; a < tree->accounts.n; a++)
        for (size_t i = 0; i < n; i++)
            if (st_tally_bound(&tree->accounts.v[a]->user_limits,
                               (st_limit_kind)(i % ST_LIMIT_COUNT)) != ST_UNSET)
                sums[a * n + i] = st_tally_user(st_core_fleet(step->core), tree, jobs, NULL, NULL,
                                                (int32_t)a, (int32_t)(i / ST_LIMIT_COUNT),
                                                (st_limit_kind)(i % ST_LIMIT_COUNT));
    return sums;
}

static int check_users(const st_step *step, const int64_t *before, const int64_t *after,
                       st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    size_t n = tree->users.n * ST_LIMIT_COUNT;
    for (size_t i = 0; i < tree->accounts.n * n; i++) {
        const st_account *a = tree->accounts.v[i / n];
        st_limit_kind kind = (st_limit_kind)(i % ST_LIMIT_COUNT);
        int64_t bound = st_tally_bound(&a->user_limits, kind);
        if (bound != ST_UNSET && after[i] > ST_MAX(bound, before[i]))
            return BAD("user limit: user %s holds %s %" PRId64 " in account %s, at most %" PRId64,
                       tree->users.v[i % n / ST_LIMIT_COUNT], st_limit_name(kind), after[i],
                       a->name, bound);
    }
    return 0;
}

void st_growth_take(const st_step *step, st_growth *ret)
{
    st_job_list jobs = st_watch_jobs(step->watch);
    st_tally_build(&ret->tally, st_core_fleet(step->core), st_core_tree(step->core), &jobs, NULL);
    ret->users = user_sums(step, &jobs);
    st_vec_free(&jobs);
}

void st_growth_done(st_growth *growth)
{
    st_tally_done(&growth->tally);
    free(growth->users);
    growth->users = NULL;
}

int st_growth_check(const st_step *step, const st_growth *before, const st_growth *after,
                    st_err *err)
{
    const st_tree *tree = st_core_tree(step->core);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < tree->accounts.n; i++)
        rc = check_max(tree->accounts.v[i], &before->tally, &after->tally, err);
    return rc < 0 ? rc : check_users(step, before->users, after->users, err);
}
