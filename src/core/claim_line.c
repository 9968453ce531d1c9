/* Who may be displaced, lined up worst first (claim.c).
 *
 * A claim may look at every borrower of the fleet, so what holds for all jobs of an account is asked
 * once for the account, and the children of an account stand in a heap: who is taken out of the line's
 * front changes the standing of his own branches and of no others. */
#include <stdlib.h>

#include "base/mem.h"
#include "core/claim.h"
#include "core/shadow.h"

/* ---- who may go ------------------------------------------------------------------------ */

/* Of an account's candidates those who may be displaced by themselves. */
static void add_fit_ones(st_claim_ctx *c, const st_parting *p, st_job *const *jobs, size_t n)
{
    st_claim_whom whom = st_claim_may_displace_of(c, p);
    bool narrow = c->home || c->within >= 0;
    c->asked += narrow ? 0 : n;
    if (whom == ST_CLAIM_NOBODY && !narrow)
        return;
    for (size_t i = 0; i < n; i++) {
        if (narrow && !st_claim_concerns(c, jobs[i]))
            continue;
        c->asked += narrow;
        if (whom == ST_CLAIM_ALL || st_claim_may_displace(c, p, jobs[i]))
            st_vec_push(&c->cands, jobs[i]);
    }
}

/* Borrowers by account, from whom candidates are taken. */
typedef struct source {
    const st_job_vec *from;
    const size_t *ends; /* by account: where its part ends */
} source;

/* Those of an account, of the branch where it parts from the claimant's. */
static void add_account(st_claim_ctx *c, const source *s, int32_t account, st_parting p)
{
    size_t first = account > 0 ? s->ends[account - 1] : 0;
    p.account = account;
    if (s->ends[account] > first)
        add_fit_ones(c, &p, s->from->v + first, s->ends[account] - first);
}

static void add_branch(st_claim_ctx *c, const source *s, int32_t account, const st_parting *p)
{
    const st_account *a = st_tree_account(c->core->tree, account);
    add_account(c, s, account, *p);
    for (size_t i = 0; i < a->children.n; i++)
        if (c->core->yielders.in_branch[a->children.v[i]] > 0)
            add_branch(c, s, a->children.v[i], p);
}

/* What a borrower may take from: its own account, and branches that part from its own and stand higher there. All of a
 * branch is asked or nothing of it. */
static void collect_branches(st_claim_ctx *c, const source *s)
{
    const st_tree *tree = c->core->tree;
    add_account(c, s, c->job->account, st_claim_part_from(c, c->job->account, NULL));
    for (int32_t i = c->job->account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *up = st_tree_account(tree, st_tree_account(tree, i)->parent);
        for (size_t k = 0; k < up->children.n; k++) {
            int32_t branch = up->children.v[k];
            if (branch == i || c->core->yielders.in_branch[branch] == 0)
                continue;
            st_parting p = st_claim_part_from(c, branch, NULL);
            if (st_claim_may_displace_of(c, &p) != ST_CLAIM_NOBODY)
                add_branch(c, s, branch, &p);
        }
    }
    c->asked = (int64_t)s->from->n; /* whoever is not in such a branch is answered for by it */
}

/* Running borrowers past their protection, or all of them, who may be displaced by themselves; each account's
 * together. */
static void collect(st_claim_ctx *c, bool ignore_protection)
{
    const st_yielders *y = &c->core->yielders;
    size_t accounts = c->core->tree->accounts.n;
    const st_job_vec *from = ignore_protection ? &y->all : &y->open[c->guaranteed];
    const size_t *ends = ignore_protection ? y->count : y->ends[c->guaranteed];
    if (!c->guaranteed && !c->home && c->within < 0) {
        collect_branches(c, &(source){from, ends});
        return;
    }
    ST_CLEANUP(st_freep) int8_t *known = st_xcalloc(accounts, sizeof *known);
    c->asked = 0;
    for (size_t a = 0, first = 0; first < from->n; first = ends[a++]) {
        bool outside = c->within >= 0 && !st_tree_within(c->core->tree, (int32_t)a, c->within);
        if (ends[a] == first || outside)
            continue;
        st_parting p = st_claim_part_from(c, (int32_t)a, known);
        add_fit_ones(c, &p, from->v + first, ends[a] - first);
    }
}

/* ---- the line -------------------------------------------------------------------------- */

typedef struct branch {
    int first, last; /* its own candidates; taken from the front */
    int left;        /* candidates left in it and below */
    int32_t *heap;   /* children who have any, the one who goes first in front */
    int nheap;
    st_standing standing;
    bool parted; /* where it parts from the claimant is known */
    st_parting parting;
} branch;

typedef struct branches {
    const st_tree *tree;
    branch *v; /* by account */
    int32_t *heaps;
} branches;

/* Whether a child's candidates go before another's. */
static bool goes_first(const branches *b, int32_t x, int32_t y)
{
    int p = st_tree_account(b->tree, x)->priority, q = st_tree_account(b->tree, y)->priority;
    if (p != q)
        return p < q;
    int cmp = st_standing_cmp(b->v[x].standing, b->v[y].standing);
    return cmp != 0 ? cmp > 0 : x > y;
}

/* Let the child in a place of the heap sink to where it belongs. */
static void sink(const branches *b, branch *at, int i)
{
    int32_t id = at->heap[i];
    for (int k; (k = 2 * i + 1) < at->nheap; i = k) {
        if (k + 1 < at->nheap && goes_first(b, at->heap[k + 1], at->heap[k]))
            k++;
        if (!goes_first(b, at->heap[k], id))
            break;
        at->heap[i] = at->heap[k];
    }
    at->heap[i] = id;
}

static void reckon(const st_claim_ctx *c, branches *b, int32_t account)
{
    b->v[account].standing =
        st_share_standing(b->tree, account, (st_share_counts)c->core->policy.counts, NULL);
}

static void open_branches(const st_claim_ctx *c, branches *b)
{
    size_t n = b->tree->accounts.n, used = 0;
    b->v = st_xcalloc(n, sizeof *b->v);
    b->heaps = st_xcalloc(n, sizeof *b->heaps);
    for (size_t i = 0; i < c->cands.n; i++) {
        branch *own = &b->v[c->cands.v[i]->account];
        if (own->last == 0)
            own->first = (int)i;
        own->last = (int)i + 1;
    }
    for (size_t a = n; a-- > 0;) {
        branch *at = &b->v[a];
        at->left += at->last - at->first;
        if (at->left == 0)
            continue;
        reckon(c, b, (int32_t)a);
        if (a != ST_ROOT)
            b->v[b->tree->accounts.v[a]->parent].left += at->left;
        const st_account *account = b->tree->accounts.v[a];
        at->heap = b->heaps + used;
        for (size_t i = 0; i < account->children.n; i++)
            if (b->v[account->children.v[i]].left > 0)
                at->heap[at->nheap++] = account->children.v[i];
        used += (size_t)at->nheap;
        for (int i = at->nheap / 2; i-- > 0;)
            sink(b, at, i);
    }
}

/* One candidate of an account less: its standing, and that of all above, is new. */
static void leave(const st_claim_ctx *c, branches *b, int32_t account)
{
    for (int32_t i = account; i >= 0; i = st_tree_account(b->tree, i)->parent) {
        branch *at = &b->v[i];
        if (i != account) { /* it came from the front */
            if (b->v[at->heap[0]].left == 0)
                at->heap[0] = at->heap[--at->nheap];
            if (at->nheap > 0)
                sink(b, at, 0);
        }
        if (--at->left > 0 && i != ST_ROOT)
            reckon(c, b, i);
    }
}

/* Put a candidate into the line; one that its branch no longer lends when those before it are gone stands
 * aside. */
static void join(st_claim_ctx *c, branches *b, int i)
{
    const st_job *job = c->cands.v[i];
    if (c->guaranteed && !c->home && !c->spare) {
        branch *own = &b->v[job->account];
        if (!own->parted)
            own->parting = st_claim_part_from(c, job->account, NULL);
        own->parted = true;
        if (!st_claim_may_displace(c, &own->parting, job)) {
            st_vec_push(&c->aside, i);
            return;
        }
    }
    st_vec_push(&c->line, i);
    st_claim_charge(c, job, -1);
}

void st_claim_excess_first(st_claim_ctx *c)
{
    ST_CLEANUP(st_freep) int *order = st_xcalloc(c->line.n + 1, sizeof *order);
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < c->line.n; i++)
            if (st_claim_is_excess(c, c->cands.v[c->line.v[i]]) == (pass == 0))
                order[n++] = c->line.v[i];
    for (size_t i = 0; i < n; i++)
        c->line.v[i] = order[i];
}

static void line_up(st_claim_ctx *c)
{
    branches b = {.tree = c->core->tree};
    open_branches(c, &b);
    while (b.v[ST_ROOT].left > 0) {
        int32_t at = ST_ROOT;
        while (b.v[at].nheap > 0) /* children first */
            at = b.v[at].heap[0];
        ST_ASSERT(b.v[at].first < b.v[at].last);
        join(c, &b, b.v[at].first++);
        leave(c, &b, at);
    }
    for (size_t i = 0; i < c->line.n; i++)
        st_claim_charge(c, c->cands.v[c->line.v[i]], 1);
    if (c->full >= 0 && c->within != c->full)
        st_claim_excess_first(c);
    free(b.v);
    free(b.heaps);
}

void st_claim_muster(st_claim_ctx *c, bool ignore_protection)
{
    size_t had = c->cands.n;
    st_vec_clear(&c->cands);
    collect(c, ignore_protection);
    if (ignore_protection && c->cands.n == had) { /* nobody more: the line stands */
        c->core->effort -= c->asked + (int64_t)(c->idle ? c->cands.n : c->line.n);
        return;
    }
    st_vec_clear(&c->line);
    st_vec_clear(&c->aside);
    c->useful = st_xreallocarray(c->useful, c->cands.n + 1, sizeof *c->useful);
    c->hopeless = !c->home && !st_core_yield_enough(c->core, c->job, c->type, c->cands.v,
                                                    c->cands.n, c->useful);
    c->idle =
        c->cands.n > 0 && !c->hopeless && !c->guaranteed && !c->told && st_claim_fits_as_is(c);
    if (c->cands.n > 0 && !c->hopeless && !c->idle)
        line_up(c);
    c->core->effort -= c->asked + (int64_t)(c->idle ? c->cands.n : c->line.n);
}

void st_claim_skip_muster(st_claim_ctx *c, bool both)
{
    const st_yielders *y = &c->core->yielders;
    c->core->effort -= (int64_t)y->open[c->guaranteed].n + (both ? (int64_t)y->all.n : 0);
}
