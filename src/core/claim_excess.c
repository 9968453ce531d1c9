/* What is certain of a claim before anybody is lined up (claim.c).
 *
 * A job whose floor is used up, but not by guaranteed ones, claims as an owner, and everything its accounts hold
 * must then be within their floors. How much they would hold too much is known: at least so much must go from inside
 * each of them. Where those who may go hold less, there is no choice of victims that will do. Where the bound
 * allows less, every choice breaks the bound. Most such claims end that way, and would line up every borrower of the
 * fleet to find out. */
#include "core/claim.h"

/* What those of an account and below hold who may be displaced, as far as each is asked by himself. */
static int64_t displaceable_m(const st_claim_ctx *c, int32_t within)
{
    const st_yielders *y = &c->core->yielders;
    int64_t sum_m = 0;
    for (size_t a = 0, first = 0; first < y->all.n; first = y->count[a++]) {
        if (y->count[a] == first || !st_tree_within(c->core->tree, (int32_t)a, within))
            continue;
        st_parting p = st_claim_part_from(c, (int32_t)a, NULL);
        st_claim_whom whom = st_claim_may_displace_of(c, &p);
        for (size_t i = first; whom != ST_CLAIM_NOBODY && i < y->count[a]; i++)
            if (whom == ST_CLAIM_ALL || st_claim_may_displace(c, &p, y->all.v[i]))
                sum_m += st_job_gpu_m(y->all.v[i]);
    }
    return sum_m;
}

bool st_claim_excess_decides(st_claim_ctx *c, st_claim *ret)
{
    if (c->full < 0 || c->told || !c->guaranteed || c->home || c->spare)
        return false;
    const st_core *core = c->core;
    int64_t bound_m = core->policy.bound_m * c->need.gpu_m / 1000;
    int64_t now = st_core_moment(core), most_m = 0;
    int64_t free_ms = ST_MIN(c->job->queued_ms, now) + core->policy.patience_ms;
    for (int32_t i = c->job->account; i != ST_ROOT && i != c->within;
         i = st_tree_account(core->tree, i)->parent) {
        int64_t excess_m = st_admit_excess_m(core->tree, i, &c->need);
        if (excess_m > 0 && displaceable_m(c, i) < excess_m) {
            ret->result = ST_CLAIM_NONE;
            return true;
        }
        most_m = ST_MAX(most_m, excess_m);
    }
    if (most_m <= bound_m || now >= free_ms || ST_BROKEN(BOUND))
        return false;
    ret->result = ST_CLAIM_BOUND;
    ret->enough = true;
    ret->evict_m = most_m;
    ret->bound_m = bound_m;
    ret->until_ms = free_ms;
    return true;
}
