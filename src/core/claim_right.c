/* Who may be displaced by a claim (claim.c has the rules in words). */
#include "core/claim.h"

#include "core/shadow.h"

/* Taken before anybody is thought away: who is put back later must not have helped. */
void st_claim_set_standings(st_claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    st_use more = {c->need.gpu_m, c->need.cpu_m, c->need.ram_mib, {0}};
    if (c->type >= 0)
        more.type_m[c->type] = c->need.gpu_m;
    st_share_counts counts = (st_share_counts)c->core->policy.counts;
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        int depth = st_tree_account(tree, i)->depth;
        c->bare[depth] = st_standings_of(c->core, i);
        c->mine[depth] = st_share_standing(tree, i, counts, &more);
    }
}

st_parting st_claim_part_from(const st_claim_ctx *c, int32_t account, int8_t *known)
{
    const st_tree *tree = c->core->tree;
    st_parting p = {.account = account};
    int32_t meet = st_tree_meet(tree, c->job->account, account, &p.mine, &p.theirs);
    p.apart = p.mine != meet && p.theirs != meet;
    if (c->guaranteed || !p.apart)
        return p;
    const st_account *a = st_tree_account(tree, p.mine), *b = st_tree_account(tree, p.theirs);
    if (a->priority != b->priority)
        return p;
    if (known && known[p.theirs]) {
        p.cmp = known[p.theirs] - 2;
        return p;
    }
    p.cmp = st_standing_cmp(c->mine[a->depth], st_standings_of(c->core, p.theirs));
    if (known)
        known[p.theirs] = (int8_t)(p.cmp + 2);
    return p;
}

/* Whether the victim would give CPU or RAM that its branch has too much of. What comes with GPUs
 * inside a floor is inside it too where nothing was promised by itself. */
static bool lends_side(const st_claim_ctx *c, int32_t branch, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    bool bare = victim->shape.gpus == 0;
    const st_account *a = st_tree_account(tree, branch);
    if (c->need.cpu_m > 0 && victim->shape.cpu_m > 0 &&
        (a->floor.cpu_m == ST_UNSET ? bare : st_share_over_cpu(tree, branch)))
        return true;
    return c->need.ram_mib > 0 && victim->shape.ram_mib > 0 &&
           (a->floor.ram_mib == ST_UNSET ? bare : st_share_over_ram(tree, branch));
}

/* Its class has no right to preempt, but for what its account is guaranteed. */
static bool is_meek(const st_claim_ctx *c)
{
    return c->job->meek && !ST_BROKEN(MEEK);
}

static bool may_reclaim(const st_claim_ctx *c, const st_parting *p, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    if (ST_BROKEN(RECLAIM))
        return false;
    if (victim->account == c->job->account && is_meek(c))
        return false;
    if (victim->account == c->job->account)
        return victim->priority < c->job->priority ||
               st_order_swaps(tree, &c->core->policy, c->job, victim, st_core_moment(c->core));
    if (st_share_borrowed_m(tree, p->theirs) > 0 || lends_side(c, p->theirs, victim))
        return true;
    /* Inside its floor, but on a type that was promised to the claimant by name. */
    const st_account *a = st_tree_account(tree, p->theirs);
    const st_account *b = st_tree_account(tree, p->mine);
    return c->type >= 0 && b->floor.type_m[c->type] > 0 && victim->type == c->type &&
           a->next.type_m[c->type] > ST_MAX(a->floor.type_m[c->type], 0);
}

static bool may_rebalance(const st_claim_ctx *c, const st_parting *p, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    if (is_meek(c))
        return false;
    if (c->fills)
        return st_claim_fills_from(c, p, victim);
    if (victim->account == c->job->account)
        return (c->core->policy.urgent && victim->priority < c->job->priority) ||
               st_order_swaps(tree, &c->core->policy, c->job, victim, st_core_moment(c->core));
    if (!p->apart || !c->core->policy.rebalance || c->own)
        return false;
    const st_account *a = st_tree_account(tree, p->mine), *b = st_tree_account(tree, p->theirs);
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (ST_BROKEN(STRICT))
        return true;
    if (p->cmp >= 0)
        return false;
    return st_standing_cmp(c->bare[a->depth], st_standings_without(c->core, p->theirs, victim)) < 0;
}

/* Whether its account has a borrower of lower priority. */
static bool may_urge(const st_claim_ctx *c)
{
    st_core *core = c->core;
    if (!core->policy.urgent || c->job->priority <= core->lowest || is_meek(c))
        return false;
    st_core_refresh_yielders(core);
    const st_job *first = st_core_first_yielder(core, c->job->account);
    return first && first->priority < c->job->priority;
}

/* Whether anybody at all stands high enough for a borrower to take from: where its path and
 * a sibling's part, at some level. Spares most claims the line. */
bool st_claim_may_rebalance_any(const st_claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    if (is_meek(c))
        return false;
    if (may_urge(c) || c->own)
        return may_urge(c);
    if (c->core->policy.swap && st_tree_account(tree, c->job->account)->next.gpu_m > 0)
        return true;
    if (!c->core->policy.rebalance)
        return false;
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        const st_account *parent = st_tree_account(tree, a->parent);
        for (size_t k = 0; k < parent->children.n; k++) {
            const st_account *b = st_tree_account(tree, parent->children.v[k]);
            if (b == a || b->next.cpu_m + b->next.gpu_m == 0 || b->priority > a->priority)
                continue;
            if (b->priority < a->priority ||
                st_standing_cmp(c->mine[a->depth], st_standings_of(c->core, b->id)) < 0)
                return true;
        }
    }
    return ST_BROKEN(STRICT);
}

st_claim_whom st_claim_may_displace_of(const st_claim_ctx *c, const st_parting *p)
{
    const st_tree *tree = c->core->tree;
    if (c->spare || c->home || p->account == c->job->account)
        return ST_CLAIM_SOME;
    if (c->guaranteed)
        return st_share_borrowed_m(tree, p->theirs) > 0 && !ST_BROKEN(RECLAIM) ? ST_CLAIM_ALL
                                                                               : ST_CLAIM_SOME;
    if (!p->apart || !c->core->policy.rebalance || c->own)
        return ST_CLAIM_NOBODY;
    int mine = st_tree_account(tree, p->mine)->priority;
    int theirs = st_tree_account(tree, p->theirs)->priority;
    bool lower = mine != theirs ? mine < theirs : p->cmp >= 0 && !c->fills && !ST_BROKEN(STRICT);
    return lower ? ST_CLAIM_NOBODY : ST_CLAIM_SOME;
}

bool st_claim_may_displace(const st_claim_ctx *c, const st_parting *p, const st_job *victim)
{
    if (c->spare)
        return victim->shadow ? !st_shadow_stands(victim) : c->home;
    if (c->home)
        return true; /* who sits there without being at home */
    /* Whoever has a right to a place would only come back. */
    return c->guaranteed ? may_reclaim(c, p, victim)
                         : !st_shadow_stands(victim) && may_rebalance(c, p, victim);
}

/* Whether the victim is part of what uses the floor up. */
bool st_claim_is_excess(const st_claim_ctx *c, const st_job *victim)
{
    return c->full >= 0 && st_tree_within(c->core->tree, victim->account, c->full);
}

/* Whether displacing it could help: who wants its home place looks at those nodes only. */
bool st_claim_concerns(const st_claim_ctx *c, const st_job *victim)
{
    if (c->within >= 0 && !st_tree_within(c->core->tree, victim->account, c->within))
        return false;
    const st_grant *home = c->home ? c->job->shadow->job.grants : NULL;
    for (int t = 0; home && t < c->job->tasks; t++)
        for (int u = 0; u < victim->tasks; u++)
            if (home[t].node == victim->grants[u].node)
                return true;
    return !home;
}
