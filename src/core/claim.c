/* Whom to displace for a claimant.
 *
 * Two claims, one machinery. A guaranteed claimant takes back what others borrowed: victims
 * are burstable, in branches of the tree that hold more than their floor; of its own account
 * only those of lower priority, for a team does not displace itself (unless it wants its order
 * kept by force: policy `swap`). A borrowing claimant
 * (policy `rebalance`) takes from those who borrowed more: where the two branches part, its
 * own with the claimant in it must stand strictly below the victim's as it is, and the victim's
 * without the victim strictly above its own as it is (or have the lower priority). So each
 * exchange raises the lower of the two and lowers the higher: whatever is started on what is
 * left over, no victim can take it back, and nothing flaps.
 *
 * Those who may be displaced by themselves are lined up worst first: down the tree the lowest
 * priority and the highest standing, re-reckoned after each; in an account the lowest priority,
 * then (with `swap`) the last in its order, then the newest. What is chosen from the line must
 * then hold up as a whole, one after the other. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/alone.h"
#include "reclaim/reclaim.h"

typedef struct claim_ctx {
    st_core *core;
    const st_job *job;
    int32_t type;
    bool sure;
    bool home;  /* it wants its home place back and nothing else (alone.h) */
    bool spare; /* ... or any place, but of nobody who has the right to one too */
    st_need need;
    st_standing bare[ST_DEPTH_MAX + 1]; /* by depth: its branches as they are */
    st_standing mine[ST_DEPTH_MAX + 1]; /* and with the claimant in them */
    ST_VEC(st_job *) cands;
    ST_VEC(int) line; /* indices into cands, worst first */
    bool hopeless;    /* with all of them gone it would not fit */
    st_ask ask;
} claim_ctx;

/* ---- what-if --------------------------------------------------------------------------- */

static void charge(claim_ctx *c, const st_job *victim, int sign)
{
    st_need need = st_need_of(victim, victim->type);
    st_admit_charge(c->core->tree, victim->account, &need, ST_NEXT, sign);
}

static void take(void *ctx, int i)
{
    claim_ctx *c = ctx;
    c->cands.v[i]->out = ST_OUT_YIELDED;
    st_whatif_note(c->core, c->cands.v[i]);
    charge(c, c->cands.v[i], -1);
}

static void put_back(void *ctx, int i)
{
    claim_ctx *c = ctx;
    c->cands.v[i]->out = ST_OUT_NOT;
    st_whatif_note(c->core, c->cands.v[i]);
    charge(c, c->cands.v[i], 1);
}

static bool fits(void *ctx)
{
    claim_ctx *c = ctx;
    if (st_admit_over(c->core->tree, c->job->account, &c->need, ST_NEXT, false, NULL, 0) > 0)
        return false;
    st_whatif_settle(c->core, c->ask.rooms);
    if (c->home)
        return st_alone_fits(c->core, c->job, st_whatif_view, c->core);
    return st_place_fits(c->core->placer, &c->ask);
}

/* ---- who may be displaced -------------------------------------------------------------- */

/* Taken before anybody is thought away: who is put back later must not have helped. */
static void set_standings(claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    st_use more = {c->need.gpu_m, c->need.cpu_m, c->need.ram_mib, {0}};
    if (c->type >= 0)
        more.type_m[c->type] = c->need.gpu_m;
    st_share_basis basis = (st_share_basis)c->core->policy.basis;
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        int depth = st_tree_account(tree, i)->depth;
        c->bare[depth] = st_share_standing(tree, i, basis, NULL);
        c->mine[depth] = st_share_standing(tree, i, basis, &more);
    }
}

/* Where the claimant's branch and an account's part, and what holds for all of the account's
 * jobs alike; good while nobody is thought away or back. `known`, per account and from zeros,
 * remembers the comparisons of branches that many accounts are in. */
typedef struct parting {
    int32_t account, mine, theirs;
    bool apart; /* neither is above the other */
    int cmp;    /* the claimant's branch, with it, against theirs; < 0: it stands lower */
} parting;

static parting part_from(const claim_ctx *c, int32_t account, int8_t *known)
{
    const st_tree *tree = c->core->tree;
    parting p = {.account = account};
    int32_t meet = st_tree_meet(tree, c->job->account, account, &p.mine, &p.theirs);
    p.apart = p.mine != meet && p.theirs != meet;
    if (c->sure || !p.apart)
        return p;
    const st_account *a = st_tree_account(tree, p.mine), *b = st_tree_account(tree, p.theirs);
    st_share_basis basis = (st_share_basis)c->core->policy.basis;
    if (a->priority != b->priority)
        return p;
    if (known && known[p.theirs]) {
        p.cmp = known[p.theirs] - 2;
        return p;
    }
    p.cmp = st_standing_cmp(c->mine[a->depth], st_share_standing(tree, p.theirs, basis, NULL));
    if (known)
        known[p.theirs] = (int8_t)(p.cmp + 2);
    return p;
}

static bool may_reclaim(const claim_ctx *c, const parting *p, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    if (victim->account == c->job->account)
        return victim->priority < c->job->priority ||
               st_order_swaps(tree, &c->core->policy, c->job, victim, c->core->now);
    if (st_share_borrowed_m(tree, p->theirs) > 0)
        return true;
    /* Inside its floor, but on a type that was promised to the claimant by name. */
    const st_account *a = st_tree_account(tree, p->theirs);
    const st_account *b = st_tree_account(tree, p->mine);
    return c->type >= 0 && b->floor.type_m[c->type] > 0 && victim->type == c->type &&
           a->next.type_m[c->type] > ST_MAX(a->floor.type_m[c->type], 0);
}

static bool may_rebalance(const claim_ctx *c, const parting *p, const st_job *victim)
{
    const st_tree *tree = c->core->tree;
    if (victim->account == c->job->account)
        return st_order_swaps(tree, &c->core->policy, c->job, victim, c->core->now);
    if (!p->apart || !c->core->policy.rebalance)
        return false;
    const st_account *a = st_tree_account(tree, p->mine), *b = st_tree_account(tree, p->theirs);
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (ST_BROKEN(STRICT))
        return true;
    if (p->cmp >= 0)
        return false;
    st_use less = {-st_job_gpu_m(victim), -st_job_cpu_m(victim), -st_job_ram_mib(victim), {0}};
    if (victim->type >= 0)
        less.type_m[victim->type] = less.gpu_m;
    st_share_basis basis = (st_share_basis)c->core->policy.basis;
    return st_standing_cmp(c->bare[a->depth], st_share_standing(tree, p->theirs, basis, &less)) < 0;
}

/* Whether anybody at all stands high enough for a borrower to take from: where its path and
 * a sibling's part, at some level. Spares most claims the line. */
static bool may_rebalance_any(const claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    st_share_basis basis = (st_share_basis)c->core->policy.basis;
    if (c->core->policy.swap && st_tree_account(tree, c->job->account)->next.gpu_m > 0)
        return true;
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        const st_account *parent = st_tree_account(tree, a->parent);
        for (size_t k = 0; k < parent->children.n; k++) {
            const st_account *b = st_tree_account(tree, parent->children.v[k]);
            if (b == a || b->next.cpu_m + b->next.gpu_m == 0 || b->priority > a->priority)
                continue;
            if (b->priority < a->priority ||
                st_standing_cmp(c->mine[a->depth], st_share_standing(tree, b->id, basis, NULL)) < 0)
                return true;
        }
    }
    return ST_BROKEN(STRICT);
}

static bool may_displace(const claim_ctx *c, const parting *p, const st_job *victim)
{
    if (c->spare)
        return victim->shade ? !st_alone_stands(victim) : c->home;
    if (c->home)
        return true; /* who sits there without being at home */
    /* Whoever has a right to a place would only come back. */
    return c->sure ? may_reclaim(c, p, victim)
                   : !st_alone_stands(victim) && may_rebalance(c, p, victim);
}

/* Whether displacing it could help: who wants its home place looks at those nodes only. */
static bool concerns(const claim_ctx *c, const st_job *victim)
{
    const st_grant *home = c->home ? c->job->shade->job.grants : NULL;
    for (int t = 0; home && t < c->job->tasks; t++)
        for (int u = 0; u < victim->tasks; u++)
            if (home[t].node == victim->grants[u].node)
                return true;
    return !home;
}

/* Those who are leaving already make room too: nobody goes for what they will free. */
static void think_leaving_away(claim_ctx *c)
{
    st_core *core = c->core;
    st_yielders *y = &core->yielders;
    if (y->seen != st_fleet_changes(core->fleet) || !y->views) {
        y->seen = st_fleet_changes(core->fleet);
        for (size_t i = 0; i < core->leaving.n; i++)
            st_whatif_touch(core, core->leaving.v[i], c->ask.rooms);
        size_t n = core->whatif.touched.n;
        st_vec_clear(&y->left);
        y->views = st_xreallocarray(y->views, n + 1, sizeof *y->views);
        for (size_t i = 0; i < n; i++) {
            st_vec_push(&y->left, core->whatif.touched.v[i]);
            y->views[i] = core->whatif.views[core->whatif.touched.v[i]];
        }
        return;
    }
    for (size_t i = 0; i < y->left.n; i++)
        st_whatif_set(core, core->fleet->nodes.v[y->left.v[i]], &y->views[i], c->ask.rooms);
}

/* Burstable jobs past their protection, or all; by account. */
static void collect(claim_ctx *c, bool ignore_protection)
{
    const st_yielders *y = &c->core->yielders;
    const st_job_vec *from = ignore_protection ? &y->all : &y->open;
    for (size_t i = 0; i < from->n; i++)
        if (from->v[i] != c->job && concerns(c, from->v[i]))
            st_vec_push(&c->cands, from->v[i]);
}

/* ---- the line -------------------------------------------------------------------------- */

typedef struct branch {
    int first, last; /* its own candidates; taken from the front */
    int left;        /* candidates left in it and below */
    st_standing standing;
} branch;

/* The child whose candidates go first; -1 when the account's own do. */
static int32_t worst_child(const st_tree *tree, const branch *branches, const st_account *a)
{
    int32_t worst = -1;
    for (size_t i = 0; i < a->children.n; i++) {
        int32_t id = a->children.v[i];
        if (branches[id].left == 0)
            continue;
        if (worst >= 0) {
            int p = st_tree_account(tree, id)->priority;
            int q = st_tree_account(tree, worst)->priority;
            int c = st_standing_cmp(branches[id].standing, branches[worst].standing);
            if (p != q ? p > q : c < 0 || (c == 0 && id < worst))
                continue;
        }
        worst = id;
    }
    return worst;
}

/* One candidate less; the standing of its account, and of all above, is new. */
static void reckon(claim_ctx *c, branch *branches, int32_t account)
{
    for (int32_t i = account; i >= 0; i = st_tree_account(c->core->tree, i)->parent) {
        branches[i].left--;
        branches[i].standing =
            st_share_standing(c->core->tree, i, (st_share_basis)c->core->policy.basis, NULL);
    }
}

/* Indices of those who may be displaced by themselves; they stay by account. */
static int fit_ones(const claim_ctx *c, int *ret)
{
    int n = 0;
    parting p = {.account = -1};
    ST_CLEANUP(st_freep) int8_t *known = st_xcalloc(c->core->tree->accounts.n, sizeof *known);
    for (size_t i = 0; i < c->cands.n; i++) {
        if (c->cands.v[i]->account != p.account)
            p = part_from(c, c->cands.v[i]->account, known);
        if (may_displace(c, &p, c->cands.v[i]))
            ret[n++] = (int)i;
    }
    return n;
}

static void line_up(claim_ctx *c)
{
    const st_tree *tree = c->core->tree;
    int *fit = st_xcalloc(c->cands.n + 1, sizeof *fit);
    int n = fit_ones(c, fit);
    c->hopeless = !c->home && !st_core_yield_enough(c->core, c->job, c->type, c->cands.v, fit, n);
    if (n == 0 || c->hopeless) {
        free(fit);
        return;
    }
    branch *branches = st_xcalloc(tree->accounts.n, sizeof *branches);
    for (int i = 0; i < n; i++) {
        branch *b = &branches[c->cands.v[fit[i]]->account];
        if (b->last == 0)
            b->first = i;
        b->last = i + 1;
    }
    for (size_t a = tree->accounts.n; a-- > 0;) {
        branches[a].left += branches[a].last - branches[a].first;
        if (branches[a].left == 0)
            continue;
        branches[a].standing =
            st_share_standing(tree, (int32_t)a, (st_share_basis)c->core->policy.basis, NULL);
        if (a != ST_ROOT)
            branches[tree->accounts.v[a]->parent].left += branches[a].left;
    }

    while (branches[ST_ROOT].left > 0) {
        int32_t at = ST_ROOT, next;
        while ((next = worst_child(tree, branches, st_tree_account(tree, at))) >= 0)
            at = next;
        branch *b = &branches[at];
        /* Children first; then the account's own, wherever candidates remain. */
        ST_ASSERT(b->first < b->last);
        int i = fit[b->first++];
        st_vec_push(&c->line, i);
        charge(c, c->cands.v[i], -1);
        reckon(c, branches, at);
    }
    for (size_t i = 0; i < c->line.n; i++)
        charge(c, c->cands.v[c->line.v[i]], 1);
    free(branches);
    free(fit);
}

/* ---- the choice ------------------------------------------------------------------------ */

static int64_t evicted_m(const claim_ctx *c, const int *victims, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += st_job_gpu_m(c->cands.v[victims[i]]);
    return sum;
}

/* A candidate's size and its place in the line. */
typedef struct sized {
    int64_t gpu_m;
    int at;
} sized;

static int by_size(const void *pa, const void *pb)
{
    const sized *a = pa, *b = pb;
    return a->gpu_m != b->gpu_m ? (a->gpu_m < b->gpu_m ? -1 : 1) : a->at - b->at;
}

/* The line with small ones first. */
static void small_first(const claim_ctx *c, int *ret)
{
    size_t n = c->line.n;
    ST_CLEANUP(st_freep) sized *list = st_xcalloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = (sized){st_job_gpu_m(c->cands.v[c->line.v[i]]), (int)i};
    qsort(list, n, sizeof *list, by_size);
    for (size_t i = 0; i < n; i++)
        ret[i] = c->line.v[list[i].at];
}

/* Take the victims in the fair order; if that evicts more than was asked, see whether small
 * ones first evict less. Leaves the chosen ones out; returns how many, -1 for none. */
static int choose(claim_ctx *c, int *victims)
{
    int n = (int)c->line.n;
    st_reclaim_ops ops = {c, take, put_back, fits};
    int k = st_reclaim_minimal(&ops, c->line.v, n, victims);
    if (k < 0 || evicted_m(c, victims, k) <= c->need.gpu_m)
        return k;

    int *order = st_xcalloc((size_t)n, sizeof *order),
        *other = st_xcalloc((size_t)n, sizeof *other);
    for (int i = 0; i < k; i++)
        put_back(c, victims[i]);
    small_first(c, order);
    int m = st_reclaim_minimal(&ops, order, n, other);
    ST_ASSERT(m >= 0);
    if (evicted_m(c, other, m) < evicted_m(c, victims, k)) {
        for (int i = 0; i < m; i++)
            victims[i] = other[i];
        k = m;
    } else {
        for (int i = 0; i < m; i++)
            put_back(c, other[i]);
        for (int i = 0; i < k; i++)
            take(c, victims[i]);
    }
    free(order);
    free(other);
    return k;
}

/* Whether the chosen ones may all be displaced, one after the other. */
static bool may_displace_all(claim_ctx *c, const int *victims, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        charge(c, c->cands.v[victims[i]], 1);
    for (int i = 0; i < n; i++) {
        parting p = part_from(c, c->cands.v[victims[i]]->account, NULL);
        ok = ok && may_displace(c, &p, c->cands.v[victims[i]]);
        charge(c, c->cands.v[victims[i]], -1);
    }
    return ok;
}

/* Set the rooms back to what everybody sees. */
static void restore(claim_ctx *c)
{
    const st_core *core = c->core;
    for (size_t i = 0; c->ask.rooms && i < core->whatif.touched.n; i++) {
        const st_node *node = core->fleet->nodes.v[core->whatif.touched.v[i]];
        st_rooms_set(core->placer, c->ask.rooms, node, &node->view);
    }
}

/* When the claim is no longer held to the bound. That spares a large borrower for a small owner,
 * but not for ever: a floor that could be kept out by the size of what sits on it would be none.
 * Nor does a large gang of an account stand above the account's own order. */
static int64_t unbound_ms(const claim_ctx *c, const int *victims, int n)
{
    bool own = c->core->policy.swap;
    for (int i = 0; i < n; i++)
        own = own && c->cands.v[victims[i]]->account == c->job->account;
    bool owner = c->sure && (c->home || !c->job->shade);
    return owner || own ? c->job->queued_ms + c->core->policy.patience_ms : ST_TIME_NEVER;
}

/* When a borrower may displace more than it takes. A large gang that yields to a small job leaves
 * the rest idle and is the last to find such a place again; an exchange that only makes things fairer
 * waits with that, longer than an owner keeps to the bound. */
static int64_t exchange_ms(const claim_ctx *c)
{
    if (c->sure || st_core_claims_at_once(c->core) || ST_BROKEN(EXCHANGE))
        return 0;
    return c->job->queued_ms + ST_EXCHANGE_PATIENCE * c->core->policy.patience_ms;
}

/* Where the claimant would go; false where that is gathered for somebody else. */
static bool make_plan(claim_ctx *c, st_claim *ret)
{
    if (c->home) {
        ret->plan = st_alone_place(c->job);
        return true;
    }
    ret->plan = st_xcalloc((size_t)c->job->tasks, sizeof *ret->plan);
    st_whatif_settle(c->core, c->ask.rooms);
    bool ok = st_place_gang(c->core->placer, &c->ask, ret->plan);
    ST_ASSERT(ok);
    return st_core_collides(c->core, c->job, ST_TIME_NEVER, ret->plan) < 0;
}

/* Line up who may go, protected ones too if wanted. */
static void muster(claim_ctx *c, bool ignore_protection)
{
    st_vec_clear(&c->cands);
    st_vec_clear(&c->line);
    collect(c, ignore_protection);
    line_up(c);
    c->core->effort -= (int64_t)c->cands.n + (int64_t)c->line.n;
}

/* Choose from the line. */
static void attempt(claim_ctx *c, st_claim *ret)
{
    if (c->hopeless || (c->line.n == 0 && !c->sure)) {
        ret->result = ST_CLAIM_NONE; /* nobody to take from, or not enough */
        return;
    }
    int *victims = st_xcalloc(c->line.n + 1, sizeof *victims);
    st_whatif_begin(c->core, ST_WHEN_NEXT);
    if (c->job->state != ST_JOB_PAUSED && !c->home)
        c->ask.rooms = st_rooms_of(c->core->placer, c->job, c->type);
    think_leaving_away(c);
    int k = choose(c, victims);
    if (k < 0) {
        ret->result = ST_CLAIM_NONE;
        free(victims);
        restore(c);
        return;
    }
    ret->enough = true;
    ret->evict_m = evicted_m(c, victims, k);
    int64_t bound_m = c->core->policy.bound_m * c->need.gpu_m / 1000;
    int64_t free_ms = unbound_ms(c, victims, k);
    if (c->core->now < exchange_ms(c)) {
        free_ms = ret->evict_m <= bound_m ? exchange_ms(c) : ST_TIME_NEVER;
        bound_m = c->need.gpu_m;
    }
    ret->bound_m = bound_m;
    /* A borrower need not claim what comes free by itself; and nobody claims past those for
     * whom the place is gathered. */
    if ((k == 0 && !c->sure) || !may_displace_all(c, victims, k) || !make_plan(c, ret)) {
        ret->result = ST_CLAIM_NONE;
    } else if (ret->evict_m > bound_m && c->core->now < free_ms && !ST_BROKEN(BOUND)) {
        ret->result = ST_CLAIM_BOUND;
        ret->until_ms = free_ms;
    } else {
        ret->result = ST_CLAIM_OK;
        for (int i = 0; i < k; i++)
            st_vec_push(&ret->victims, c->cands.v[victims[i]]);
    }
    for (int i = 0; i < k; i++)
        put_back(c, victims[i]);
    free(victims);
    restore(c);
}

/* One way of claiming. If it fails, would it be enough if nobody were protected? Then it is worth
 * waking up for: with some of them the choice may be a better one than with all. */
static void try_way(claim_ctx *c, st_claim *ret)
{
    int64_t until_ms = c->core->yielders.until_ms;
    *ret = (st_claim){.until_ms = ST_TIME_NEVER};
    c->ask.rooms = NULL;
    muster(c, false);
    attempt(c, ret);
    if (ret->result != ST_CLAIM_OK && until_ms != ST_TIME_NEVER) {
        st_claim open = {.result = ret->result, .enough = ret->enough};
        size_t had = c->line.n;
        muster(c, true);
        if (c->line.n > had)
            attempt(c, &open);
        if (open.result == ST_CLAIM_OK)
            ret->result = ST_CLAIM_PROTECTED;
        if (open.enough)
            ret->until_ms = ST_MIN(ret->until_ms, until_ms);
        st_claim_done(&open);
    }
    st_vec_free(&c->cands);
    st_vec_free(&c->line);
}

/* A job with a right to its home place need not take it from one who has such a right too and
 * only sits elsewhere: it looks for others to displace, at home, then anywhere. When it cannot
 * yet, *ret_later says so and *ret_until_ms when. */
static bool try_gently(claim_ctx *c, st_claim *ret, bool *ret_later, int64_t *ret_until_ms)
{
    c->spare = true;
    for (int away = 0; away <= 1; away++) {
        c->home = !away;
        try_way(c, ret);
        ret->away = away;
        if (ret->result == ST_CLAIM_OK)
            return true;
        *ret_later |= ret->result == ST_CLAIM_PROTECTED;
        *ret_until_ms = ST_MIN(*ret_until_ms, ret->until_ms);
        st_claim_done(ret);
    }
    c->spare = false;
    c->home = true;
    return false;
}

void st_core_claim(st_core *core, const st_job *job, int32_t type, bool sure, st_claim *ret)
{
    *ret = (st_claim){.until_ms = ST_TIME_NEVER, .result = ST_CLAIM_NONE};
    claim_ctx c = {.core = core, .job = job, .type = type, .sure = sure};
    c.home = sure && job->shade;
    c.need = st_need_of(job, type);
    c.ask = (st_ask){.job = job, .type = type, .view = st_whatif_view, .ctx = core};
    set_standings(&c);
    if (!sure && !may_rebalance_any(&c))
        return;
    st_core_refresh_yielders(core);
    bool later = false;
    int64_t until_ms = ST_TIME_NEVER;
    if (c.home && try_gently(&c, ret, &later, &until_ms))
        return;
    try_way(&c, ret);
    if (ret->result == ST_CLAIM_OK)
        return;
    if (later)
        ret->result = ST_CLAIM_PROTECTED;
    ret->until_ms = ST_MIN(ret->until_ms, until_ms);
}

void st_claim_done(st_claim *claim)
{
    st_vec_free(&claim->victims);
    for (size_t i = 0; i < claim->places.n; i++)
        free(claim->places.v[i]);
    st_vec_free(&claim->places);
    free(claim->plan);
    claim->plan = NULL;
}
