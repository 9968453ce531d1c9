/* Whom to displace for a claimant.
 *
 * Two claims, one machinery. A guaranteed claimant takes back what others borrowed: victims
 * are burstable, in branches of the tree that hold more than their floor of something the claimant
 * asks for; of its own account
 * only those of lower priority, for a team does not displace itself (unless it wants its order
 * kept by force: policy `swap`). A borrowing claimant takes from its own account likewise (policy
 * `urgent`), and
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
#include "core/claim.h"

#include <stdlib.h>

#include "base/mem.h"
#include "core/minimal.h"
#include "core/shadow.h"

#define SMALL_LINE 64 /* candidates, up to which other sets than the fair one are looked for */

/* ---- what-if --------------------------------------------------------------------------- */

void st_claim_charge(const st_claim_ctx *c, const st_job *victim, int sign)
{
    st_need need = st_need_of(victim, victim->type);
    st_admit_charge(c->core->tree, victim->account, &need, ST_NEXT, sign);
}

static void take(void *ctx, int i)
{
    st_claim_ctx *c = ctx;
    c->cands.v[i]->out = ST_OUT_YIELDED;
    st_whatif_note(c->core, c->cands.v[i]);
    st_claim_charge(c, c->cands.v[i], -1);
}

static void put_back(void *ctx, int i)
{
    st_claim_ctx *c = ctx;
    c->cands.v[i]->out = ST_OUT_NOT;
    st_whatif_note(c->core, c->cands.v[i]);
    st_claim_charge(c, c->cands.v[i], 1);
}

/* Whether every account of the claimant is within its floor that it takes from others for. Who takes only
 * from inside an account leaves it as full as it was. */
static bool within_floors(const st_claim_ctx *c)
{
    if (c->full < 0)
        return true;
    int32_t full = st_admit_full(c->core->tree, c->job->account, &c->need, false);
    return full < 0 || (c->within >= 0 && st_tree_within(c->core->tree, c->within, full));
}

/* Whether the claimant is within what its account may hold. The more are gone, the more so. */
static bool within_bounds(const st_claim_ctx *c)
{
    return st_admit_over(c->core->tree, c->job->account, &c->need, ST_NEXT, false, NULL, 0) == 0 &&
           within_floors(c);
}

static bool fits(void *ctx)
{
    st_claim_ctx *c = ctx;
    if (!c->bounds && !within_bounds(c))
        return false;
    st_whatif_rebuild(c->core, c->ask.rooms);
    if (c->home)
        return st_shadow_fits(c->core, c->job, st_whatif_view, c->core);
    return st_place_fits(c->core->placer, &c->ask);
}

/* Those who are leaving already make room too: nobody goes for what they will free. */
static void think_leaving_away(st_claim_ctx *c)
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

/* ---- the choice ------------------------------------------------------------------------ */

static int64_t evicted_m(const st_claim_ctx *c, const int *victims, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += st_job_gpu_m(c->cands.v[victims[i]]);
    return sum;
}

/* A candidate, by what counts against it, and its place in the line. */
typedef struct sized {
    int64_t cost;
    int at;
} sized;

static int by_size(const void *pa, const void *pb)
{
    const sized *a = pa, *b = pb;
    return a->cost != b->cost ? (a->cost < b->cost ? -1 : 1) : a->at - b->at;
}

/* What it holds; for a gang that fills, in milli of what its nodes would have free without it. */
static int64_t cost_of(const st_claim_ctx *c, const st_job *victim)
{
    int64_t gpu_m = st_job_gpu_m(victim);
    if (!c->fills || gpu_m == 0)
        return gpu_m;
    return gpu_m * 1000 / (gpu_m + st_claim_beside_free_m(c, victim));
}

/* The line with small ones first. */
static void small_first(const st_claim_ctx *c, int *ret)
{
    size_t n = c->line.n;
    ST_CLEANUP(st_freep) sized *list = st_xcalloc(n, sizeof *list);
    for (size_t i = 0; i < n; i++)
        list[i] = (sized){cost_of(c, c->cands.v[c->line.v[i]]), (int)i};
    qsort(list, n, sizeof *list, by_size);
    for (size_t i = 0; i < n; i++)
        ret[i] = c->line.v[list[i].at];
}

/* Whether evicting so much instead is worth leaving the fair order. Beyond what was asked any saving
 * is. Within, an owner spares others a third at least: who borrowed most goes first, but not an
 * eight-GPU job where four GPUs would do. Who fills takes as little as it can. */
static bool is_better(const st_claim_ctx *c, int64_t fair_m, int64_t other_m)
{
    if (c->fills)
        return other_m < fair_m;
    return fair_m > c->need.gpu_m ? other_m < fair_m : c->guaranteed && 3 * other_m <= 2 * fair_m;
}

static int64_t smallest_m(const st_claim_ctx *c)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < c->line.n; i++)
        least = ST_MIN(least, st_job_gpu_m(c->cands.v[c->line.v[i]]));
    return least;
}

/* Of many who could go the smallest one whose node then has the GPUs, if that spares others much: looking
 * for several would cost too much. */
static int choose_one(st_claim_ctx *c, int *victims, int k)
{
    const st_fleet *fleet = c->core->fleet;
    int64_t least = INT64_MAX;
    int one = -1;
    for (size_t i = 0; c->job->tasks == 1 && i < c->line.n; i++) {
        const st_job *job = c->cands.v[c->line.v[i]];
        int64_t gpu_m = st_job_gpu_m(job);
        if (gpu_m >= least || c->job->shape.level != ST_LEVEL_WHOLE)
            continue;
        uint16_t devs = fleet->nodes.v[job->grants[0].node]->view.free;
        for (int t = 0; t < job->tasks && job->grants[t].node == job->grants[0].node; t++)
            devs |= job->grants[t].devs;
        if (__builtin_popcount(devs) < c->job->shape.gpus)
            continue;
        least = gpu_m;
        one = c->line.v[i];
    }
    if (one < 0 || !is_better(c, evicted_m(c, victims, k), least))
        return k;
    for (int i = 0; i < k; i++)
        put_back(c, victims[i]);
    take(c, one);
    if (fits(c)) {
        victims[0] = one;
        return 1;
    }
    put_back(c, one);
    for (int i = 0; i < k; i++)
        take(c, victims[i]);
    return k;
}

/* Of an order those who may make room; where room is not all that lacks, everybody. Who makes none
 * would not be chosen: he goes back, whoever else is gone. */
static int leave_useful(const st_claim_ctx *c, int *order, int n)
{
    int m = 0;
    for (int i = 0; i < n; i++)
        if (!c->bounds || c->home || c->useful[order[i]])
            order[m++] = order[i];
    return m;
}

/* Take the victims in the fair order; if that evicts much, see whether small ones first evict less.
 * Leaves the chosen ones out; returns how many, -1 for none. */
static int choose(st_claim_ctx *c, int *victims)
{
    int n = (int)c->line.n;
    st_reclaim_ops ops = {c, take, put_back, fits};
    ST_CLEANUP(st_freep) int *order = st_xcalloc((size_t)n + 1, sizeof *order);
    for (int i = 0; i < n; i++)
        order[i] = c->line.v[i];
    int k = st_reclaim_minimal(&ops, order, leave_useful(c, order, n), victims);
    if (k <= 0 || !is_better(c, evicted_m(c, victims, k), smallest_m(c)))
        return k;
    if (!c->fills && evicted_m(c, victims, k) <= c->need.gpu_m && n > SMALL_LINE)
        return choose_one(c, victims, k);

    ST_CLEANUP(st_freep) int *other = st_xcalloc((size_t)n, sizeof *other);
    for (int i = 0; i < k; i++)
        put_back(c, victims[i]);
    small_first(c, order);
    int m = st_reclaim_minimal(&ops, order, leave_useful(c, order, n), other);
    ST_ASSERT(m >= 0);
    if (is_better(c, evicted_m(c, victims, k), evicted_m(c, other, m))) {
        for (int i = 0; i < m; i++)
            victims[i] = other[i];
        k = m;
    } else {
        for (int i = 0; i < m; i++)
            put_back(c, other[i]);
        for (int i = 0; i < k; i++)
            take(c, victims[i]);
    }
    return k;
}

/* Whether the chosen ones may all be displaced, one after the other. */
static bool may_displace_all(st_claim_ctx *c, const int *victims, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        st_claim_charge(c, c->cands.v[victims[i]], 1);
    for (int i = 0; i < n; i++) {
        st_parting p = st_claim_part_from(c, c->cands.v[victims[i]]->account, NULL);
        ok = ok && st_claim_may_displace(c, &p, c->cands.v[victims[i]]);
        st_claim_charge(c, c->cands.v[victims[i]], -1);
    }
    return ok;
}

/* Set the rooms back to what everybody sees. */
static void restore(st_claim_ctx *c)
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
static int64_t unbound_ms(const st_claim_ctx *c, const int *victims, int n)
{
    bool own = c->core->policy.swap;
    for (int i = 0; i < n; i++)
        own = own && c->cands.v[victims[i]]->account == c->job->account;
    int64_t since_ms = ST_MIN(c->job->queued_ms, st_core_moment(c->core));
    return own ? since_ms + c->core->policy.patience_ms : st_claim_unbound_ms(c);
}

/* Choose from the line. If that is not enough, those before somebody who stands aside may be of no use, and
 * he of some: then from everybody. So more candidates are never less. */
static int choose_wide(st_claim_ctx *c, int *victims)
{
    int k = choose(c, victims);
    if (k >= 0 || c->aside.n == 0)
        return k;
    for (size_t i = 0; i < c->aside.n; i++)
        st_vec_push(&c->line, c->aside.v[i]);
    st_vec_clear(&c->aside);
    if (c->full >= 0 && c->within != c->full)
        st_claim_excess_first(c);
    return choose(c, victims);
}

/* Where the claimant would go; false where that is reserved for somebody else, ret->blocker. */
static bool make_plan(st_claim_ctx *c, st_claim *ret)
{
    if (c->home) {
        ret->plan = st_shadow_place(c->job);
        return true;
    }
    ret->plan = st_xcalloc((size_t)c->job->tasks, sizeof *ret->plan);
    st_whatif_rebuild(c->core, c->ask.rooms);
    bool ok = st_place_gang(c->core->placer, &c->ask, ret->plan);
    ST_ASSERT(ok);
    ret->blocker = st_core_collides(c->core, c->job, ST_TIME_NEVER, ret->plan);
    return ret->blocker < 0;
}

/* Make ready for thinking jobs away: those who leave are. */
static void begin_choice(st_claim_ctx *c)
{
    st_whatif_begin(c->core, ST_WHEN_NEXT);
    if (c->job->state != ST_JOB_PAUSED && !c->home)
        c->ask.rooms = st_rooms_of(c->core->placer, c->job, c->type);
    think_leaving_away(c);
    c->bounds = within_bounds(c);
}

bool st_claim_fits_as_is(st_claim_ctx *c)
{
    begin_choice(c);
    bool ok = fits(c);
    restore(c);
    return ok;
}

/* How many stand in line, or would where nobody need be put in order. */
static size_t in_line(const st_claim_ctx *c)
{
    return c->idle ? c->cands.n : c->line.n + c->aside.n;
}

/* Choose from the line. */
static void attempt(st_claim_ctx *c, st_claim *ret)
{
    if (c->idle) {
        ret->result = ST_CLAIM_NONE; /* a borrower need not claim what comes free by itself */
        ret->enough = true;
        return;
    }
    if (c->hopeless || (c->line.n == 0 && !c->guaranteed)) {
        ret->result = ST_CLAIM_NONE; /* nobody to take from, or not enough */
        return;
    }
    int *victims = st_xcalloc(c->line.n + c->aside.n + 1, sizeof *victims);
    begin_choice(c);
    int k = choose_wide(c, victims);
    if (k < 0) {
        ret->result = ST_CLAIM_NONE;
        free(victims);
        restore(c);
        return;
    }
    ret->enough = true;
    ret->evict_m = evicted_m(c, victims, k);
    int64_t bound_m = c->core->policy.bound_m * c->need.gpu_m / 1000;
    int64_t free_ms = unbound_ms(c, victims, k), now = st_core_moment(c->core);
    if (now < st_claim_exchange_ms(c)) {
        free_ms = ret->evict_m <= bound_m ? st_claim_exchange_ms(c) : ST_TIME_NEVER;
        bound_m = c->need.gpu_m;
    }
    if (c->fills) {
        bound_m = st_claim_fill_m(c);
        free_ms = ST_TIME_NEVER;
    }
    ret->bound_m = bound_m;
    /* A borrower need not claim what comes free by itself; and nobody claims past those for
     * whom the place is reserved. */
    if ((k == 0 && !c->guaranteed) || !may_displace_all(c, victims, k)) {
        ret->result = ST_CLAIM_NONE;
    } else if (!make_plan(c, ret)) {
        ret->result = ST_CLAIM_RESERVED;
    } else if (ret->evict_m > bound_m && now < free_ms && !ST_BROKEN(BOUND)) {
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

/* Whether borrowers look again by then anyway: somebody was found to wait for that, and all that comes of it for
 * another is the same moment. */
static bool is_awaited(const st_claim_ctx *c, int64_t at_ms)
{
    return !c->guaranteed && !c->told && !st_core_claims_at_once(c->core) &&
           c->core->exchange_ms <= at_ms;
}

/* One way of claiming. If it fails, would it be enough if nobody were protected? Then it is worth
 * waking up for: with some of them the choice may be a better one than with all. */
static void try_way(st_claim_ctx *c, st_claim *ret)
{
    int64_t until_ms = c->core->yielders.until_ms[c->guaranteed];
    *ret = (st_claim){.until_ms = ST_TIME_NEVER};
    if (st_claim_excess_decides(c, ret) || st_claim_bound_decides(c, ret))
        return;
    bool opens = until_ms != ST_TIME_NEVER && !is_awaited(c, until_ms);
    if (st_claim_lacks_victims(c) || st_claim_lacks_places(c)) {
        ret->result = ST_CLAIM_NONE;
        st_claim_skip_muster(c, opens);
        return;
    }
    c->ask.rooms = NULL;
    st_claim_muster(c, false);
    size_t had = in_line(c);
    attempt(c, ret);
    if (ret->result != ST_CLAIM_OK && opens) {
        st_claim open = {.result = ret->result, .enough = ret->enough};
        st_claim_muster(c, true);
        if (in_line(c) > had)
            attempt(c, &open);
        if (open.result == ST_CLAIM_OK)
            ret->result = ST_CLAIM_PROTECTED;
        else if (ret->result == ST_CLAIM_NONE && open.result != ST_CLAIM_NONE) {
            ret->result = open.result;
            ret->evict_m = open.evict_m;
            ret->bound_m = open.bound_m;
            ret->blocker = open.blocker;
            ret->until_ms = ST_MIN(ret->until_ms, open.until_ms);
        }
        if (open.enough)
            ret->until_ms = ST_MIN(ret->until_ms, until_ms);
        st_claim_done(&open);
    }
    st_vec_free(&c->cands);
    st_vec_free(&c->line);
    st_vec_free(&c->aside);
    free(c->useful);
    c->useful = NULL;
}

/* A job with a right to its home place need not take it from one who has such a right too and
 * only sits elsewhere: it looks for others to displace, at home, then anywhere. When it cannot
 * yet, *ret_later says so and *ret_until_ms when. */
static bool try_gently(st_claim_ctx *c, st_claim *ret, bool *ret_later, int64_t *ret_until_ms)
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

/* Whether a claim takes from outside an account. */
static bool takes_outside(const st_claim_ctx *c, const st_claim *claim, int32_t account)
{
    for (size_t i = 0; i < claim->victims.n; i++)
        if (!st_tree_within(c->core->tree, claim->victims.v[i]->account, account))
            return true;
    return false;
}

/* The same from more of the tree; what comes of it, or what came of less, is in ret. */
static void try_wider(st_claim_ctx *c, st_claim *ret)
{
    int32_t narrow = c->within;
    int32_t above = st_tree_account(c->core->tree, narrow)->parent;
    st_claim wide;
    c->within = st_admit_full(c->core->tree, above, &c->need, false);
    try_way(c, &wide);
    int64_t until_ms = ST_MIN(ret->until_ms, wide.until_ms);
    if (wide.result == ST_CLAIM_NONE ||
        (wide.result == ST_CLAIM_OK && !takes_outside(c, &wide, narrow))) {
        st_claim_done(&wide);
    } else {
        st_claim_done(ret);
        *ret = wide;
    }
    ret->until_ms = until_ms;
}

/* A claim of a job whose floor is used up, but not by guaranteed ones: from what uses it up, else from
 * what uses the next floor up, else from others, each time as far as everything stays within the floors
 * below. */
static void try_excess(st_claim_ctx *c, st_claim *ret)
{
    c->within = c->full;
    try_way(c, ret);
    while (ret->result != ST_CLAIM_OK && ret->result != ST_CLAIM_RESERVED && c->within >= 0)
        try_wider(c, ret);
}

/* A borrower's claim: where the order gives it nothing, it may still bring more into use than it takes. Why it waits
 * is told by the order. */
static void try_borrower(st_claim_ctx *c, bool exchanges, st_claim *ret)
{
    int64_t fill_ms = c->own ? ST_TIME_NEVER : st_core_fill_ms(c->core, c->job);
    if (exchanges)
        try_way(c, ret);
    if (ret->result == ST_CLAIM_OK || fill_ms == ST_TIME_NEVER)
        return;
    if (fill_ms > st_core_moment(c->core)) {
        ret->until_ms = ST_MIN(ret->until_ms, fill_ms);
        return;
    }
    if (st_claim_cannot_fill(c))
        return;
    st_claim fill;
    c->fills = true;
    try_way(c, &fill);
    c->fills = false;
    if (fill.result != ST_CLAIM_OK) {
        ret->until_ms = ST_MIN(ret->until_ms, fill.until_ms);
        st_claim_done(&fill);
        return;
    }
    st_claim_done(ret);
    *ret = fill;
}

/* An owner's, from its home place or from what is above floors. */
static void try_owner(st_claim_ctx *c, st_claim *ret)
{
    bool later = false;
    int64_t until_ms = ST_TIME_NEVER;
    if (c->home && try_gently(c, ret, &later, &until_ms))
        return;
    if (!c->job->shadow)
        c->full = st_admit_full(c->core->tree, c->job->account, &c->need, false);
    if (c->full >= 0)
        try_excess(c, ret);
    else
        try_way(c, ret);
    if (ret->result == ST_CLAIM_OK)
        return;
    if (later)
        ret->result = ST_CLAIM_PROTECTED;
    ret->until_ms = ST_MIN(ret->until_ms, until_ms);
}

void st_core_claim(st_core *core, const st_job *job, int32_t type, st_claim_by by, bool told,
                   st_claim *ret)
{
    bool guaranteed = by == ST_CLAIM_OWNER;
    *ret = (st_claim){.until_ms = ST_TIME_NEVER, .result = ST_CLAIM_NONE};
    st_claim_ctx c = {.core = core,
                      .job = job,
                      .type = type,
                      .guaranteed = guaranteed,
                      .own = by == ST_CLAIM_OWN,
                      .told = told,
                      .full = -1,
                      .within = -1};
    c.home = guaranteed && job->shadow;
    c.need = st_need_of(job, type);
    c.ask = (st_ask){.job = job, .type = type, .view = st_whatif_view, .ctx = core};
    st_standings_begin(core);
    st_claim_set_standings(&c);
    bool exchanges = guaranteed || st_claim_may_rebalance_any(&c);
    if (!exchanges && (c.own || st_core_fill_ms(core, job) == ST_TIME_NEVER))
        return; /* before all borrowers are put in order */
    st_core_refresh_yielders(core);
    st_standings_begin(core); /* of them */
    if (!st_claim_has_hope(&c))
        return;
    if (guaranteed)
        try_owner(&c, ret);
    else
        try_borrower(&c, exchanges, ret);
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
