/* Gangs that bring more into use than they take (policy `fill`).
 *
 * With demand above supply, what stays idle is mostly too little for any of those who wait: they are gangs, and each
 * lacks a few nodes. So a gang that has waited for `reclaim_patience` may displace borrowers of other accounts,
 * whatever their accounts hold, if
 *
 *   1 all of them keep their progress: they checkpoint, and have a grace to do so;
 *   2 they hold no more together than the part `fill` of what the gang asks for: the rest was idle;
 *   3 no account among theirs has a higher priority than the gang's where they part;
 *   4 protections hold as between other borrowers.
 *
 * Each such claim brings more into use, and exchanges between borrowers no less, for as long as they are held to what
 * they take (st_claim_exchange_ms): so nothing goes round and round among them. Those displaced are smaller than the gang
 * and find a place sooner. */
#include "core/claim.h"

#define IDLE_PART 64 /* of so many GPUs of the type one must be idle, or little is to be gained */

/* The most that may go for it. */
int64_t st_claim_fill_m(const st_claim_ctx *c)
{
    int64_t most_m = ST_BROKEN(FILL) ? ST_WHOLE_M : c->core->policy.fill_m;
    return c->need.gpu_m * most_m / 1000;
}

int64_t st_core_fill_ms(const st_core *core, const st_job *job)
{
    const st_policy *policy = &core->policy;
    if (policy->fill_m == 0 || !policy->rebalance || policy->grace_ms == 0 || job->tasks < 2 ||
        job->shape.gpus == 0 || job->shape.level != ST_LEVEL_WHOLE ||
        job->state != ST_JOB_PENDING || job->meek)
        return ST_TIME_NEVER;
    /* Never in the moment in which it was displaced, or two could take turns in it for ever. */
    int64_t since_ms = ST_MIN(job->queued_ms, st_core_moment(core));
    return since_ms + ST_MAX(policy->patience_ms, 1);
}

bool st_core_may_fill(const st_core *core, const st_job *job)
{
    return st_core_fill_ms(core, job) <= st_core_moment(core);
}

bool st_claim_fills_from(const st_claim_ctx *c, const st_parting *p, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    return p->apart && victim->yield == ST_YIELD_CHECKPOINT &&
           st_job_gpu_m(victim) <= st_claim_fill_m(c) &&
           st_tree_account(tree, p->mine)->priority >= st_tree_account(tree, p->theirs)->priority;
}

/* Whether hardly anything of the type is idle, or that, with all that may go, is less than it asks for. */
bool st_claim_cannot_fill(const st_claim_ctx *c)
{
    const st_core *core = c->core;
    int64_t free_m = st_place_free_m(core->placer, c->type);
    int64_t sum_m = st_claim_fill_m(c) + free_m;
    if (free_m * IDLE_PART < core->tree->capacity.type_m[c->type])
        return true;
    for (size_t i = 0; i < core->leaving.n; i++)
        if (core->leaving.v[i]->type == c->type)
            sum_m += st_job_gpu_m(core->leaving.v[i]);
    return sum_m < c->need.gpu_m;
}

int64_t st_claim_beside_free_m(const st_claim_ctx *c, const st_job *victim)
{
    int64_t sum_m = 0;
    for (int t = 0; t < victim->tasks; t++) {
        const st_node *node = c->core->fleet->nodes.v[victim->grants[t].node];
        if (t == 0 || victim->grants[t - 1].node != node->id)
            sum_m += (int64_t)__builtin_popcount(node->view.free) * ST_WHOLE_M;
    }
    return sum_m;
}
