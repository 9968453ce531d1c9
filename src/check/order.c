/*
 * A preemption strictly improves the order: the rule against flapping.
 *
 * A guaranteed claimant takes from its own account only those of lower priority. With `swap`
 * anybody takes those of its account who are far behind in its order. A borrower takes where its
 * branch of the tree and the victim's part: its own, with the claimant in it, must stand strictly
 * below the victim's, and the victim's, without the victim, strictly above its own, unless its
 * own has the higher priority, or the claimant is a gang that brings more into use than it takes. Not one victim further: of those taken from one
 * branch, the last must still have been taken from above. So each exchange raises the lower of
 * the two and lowers the higher, and whoever had to yield cannot take it back.
 *
 * Standings are kept as exact fractions here: a rounded tie is no improvement.
 */
#include <inttypes.h>
#include <math.h>

#include "base/macros.h"
#include "base/mem.h"
#include "check/watch.h"
#include "share/divide.h"
#include "share/life.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)

/* A dominant share over a weight; den 0: above everything. */
typedef struct fraction {
    st_i128 num, den;
} fraction;

static bool below(fraction a, fraction b)
{
    if (a.den == 0 || b.den == 0)
        return a.den != 0;
    return a.num * b.den < b.num * a.den;
}

static fraction share_of(int64_t amount, int64_t capacity)
{
    return amount <= 0 ? (fraction){0, 1} : (fraction){amount, ST_MAX(capacity, 0)};
}

static bool is_inside(const st_tree *tree, int32_t account, int32_t branch)
{
    for (int32_t a = account; a >= 0; a = tree->accounts.v[a]->parent)
        if (a == branch)
            return true;
    return false;
}

/* What a branch holds once all holds have come true, those set in `out` left out. */
static st_use held_by(const st_tree *tree, const st_job_list *jobs, const uint8_t *out,
                      int32_t branch)
{
    st_use use = {0};
    for (size_t i = 0; i < jobs->n; i++) {
        const st_job *job = jobs->v[i];
        if (!out[i] && st_room_is_next(job) && job->class != ST_CLASS_BOOKED &&
            is_inside(tree, job->account, branch))
            st_tally_add(&use, job, job->type);
    }
    return use;
}

/* Of that, what is guaranteed. The class of a plan may change without an effect, so plans are
 * counted in favour of whoever is accused: with `plans` all of them, otherwise none. */
static st_use guaranteed_of(const st_tree *tree, const st_job_list *jobs, int32_t branch,
                            bool plans)
{
    st_use use = {0};
    for (size_t i = 0; i < jobs->n; i++) {
        const st_job *job = jobs->v[i];
        bool counts = job->held ? plans : st_room_is_next(job) && job->class == ST_CLASS_GUARANTEED;
        if (counts && is_inside(tree, job->account, branch))
            st_tally_add(&use, job, job->type);
    }
    return use;
}

static int64_t side_above(const st_account *a, int64_t floor, int64_t use, int64_t guaranteed)
{
    if (floor != ST_UNSET)
        return use - floor;
    return st_tally_promises_gpu(&a->floor) ? use - guaranteed : use;
}

static int64_t gpu_above(const st_account *a, const st_use *use)
{
    int64_t sum = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        sum += ST_MAX(use->type_m[t], ST_MAX(a->floor.type_m[t], 0));
    return sum - st_tally_promised_m(&a->floor);
}

static fraction standing(const st_core *core, int32_t branch, const st_use *use,
                         const st_use *guaranteed)
{
    const st_tree *tree = st_core_tree(core);
    const st_account *a = tree->accounts.v[branch];
    const st_use *cap = &tree->capacity;
    bool total = st_core_policy(core)->counts == ST_COUNTS_TOTAL;
    int64_t gpu = total ? use->gpu_m : gpu_above(a, use);
    int64_t cpu = total ? use->cpu_m : side_above(a, a->floor.cpu_m, use->cpu_m, guaranteed->cpu_m);
    int64_t ram =
        total ? use->ram_mib : side_above(a, a->floor.ram_mib, use->ram_mib, guaranteed->ram_mib);
    fraction f = share_of(gpu, cap->gpu_m);
    if (below(f, share_of(cpu, cap->cpu_m)))
        f = share_of(cpu, cap->cpu_m);
    if (below(f, share_of(ram, cap->ram_mib)))
        f = share_of(ram, cap->ram_mib);
    f.den *= a->weight_m;
    return f;
}

/* The children of the lowest common ancestor on either side; false where one account stands
 * above the other. */
static bool part(const st_tree *tree, int32_t a, int32_t b, int32_t *ret_a, int32_t *ret_b)
{
    if (is_inside(tree, a, b) || is_inside(tree, b, a))
        return false;
    while (!is_inside(tree, b, tree->accounts.v[a]->parent))
        a = tree->accounts.v[a]->parent;
    while (tree->accounts.v[b]->parent != tree->accounts.v[a]->parent)
        b = tree->accounts.v[b]->parent;
    *ret_a = a;
    *ret_b = b;
    return true;
}

typedef struct claim {
    const st_step *step;
    const st_tree *tree;
    const st_job *job;
    int32_t type;
    const st_job_list *jobs;
    const uint8_t *out;
} claim;

/* `victim` as the last to be taken from its branch: the others of that branch are gone. */
static bool last_is_above(const claim *c, size_t victim, int32_t mine, int32_t theirs)
{
    const st_core *core = c->step->core;
    st_use use, guaranteed = guaranteed_of(c->tree, c->jobs, mine, true);
    ST_CLEANUP(st_freep) uint8_t *gone = st_xcalloc(c->jobs->n + 1, 1);
    use = held_by(c->tree, c->jobs, gone, mine);
    fraction bare = standing(core, mine, &use, &guaranteed);
    st_tally_add(&use, c->job, c->type);
    fraction full = standing(core, mine, &use, &guaranteed);

    for (size_t i = 0; i < c->jobs->n; i++)
        gone[i] = c->out[i] && is_inside(c->tree, c->jobs->v[i]->account, theirs);
    guaranteed = guaranteed_of(c->tree, c->jobs, theirs, false);
    use = held_by(c->tree, c->jobs, gone, theirs);
    fraction without = standing(core, theirs, &use, &guaranteed);
    gone[victim] = 0;
    use = held_by(c->tree, c->jobs, gone, theirs);
    fraction with = standing(core, theirs, &use, &guaranteed);
    return below(full, with) && below(bare, without);
}

/* Whether one of the victims of the branch can have been the last. */
static bool any_last(const claim *c, int32_t mine, int32_t theirs)
{
    for (size_t i = 0; i < c->jobs->n; i++)
        if (c->out[i] && is_inside(c->tree, c->jobs->v[i]->account, theirs) &&
            last_is_above(c, i, mine, theirs))
            return true;
    return false;
}

/* Whether the claimant brings more into use than it takes, of jobs that keep their progress (policy `fill`). Floors and
 * accounts have no say in that. */
static bool fills(const claim *c)
{
    const st_policy *p = st_core_policy(c->step->core);
    int64_t waited = c->step->now - c->job->queued_ms, taken_m = 0;
    if (!p->rebalance || p->grace_ms == 0 || c->job->tasks < 2 ||
        waited < ST_MAX(p->patience_ms, 1))
        return false;
    for (size_t i = 0; i < c->jobs->n; i++) {
        if (!c->out[i])
            continue;
        taken_m += st_tally_gpu_m(c->jobs->v[i]);
        if (c->jobs->v[i]->yield != ST_YIELD_CHECKPOINT)
            return false;
    }
    return taken_m * ST_WHOLE_M <= p->fill_m * st_tally_gpu_m(c->job);
}

static int check_borrower(const claim *c, const st_job *victim, st_err *err)
{
    int32_t mine, theirs;
    const st_job *live = st_core_job(c->step->core, victim->id);
    const st_grant *place;
    if (live && st_core_has_home(live, &place) && place && !c->step->promises_moved)
        return BAD("order: job %" PRIu64 " only borrows and displaces job %" PRIu64
                   ", which has a right to a place",
                   c->job->id, victim->id);
    if (!part(c->tree, c->job->account, victim->account, &mine, &theirs))
        return BAD("order: job %" PRIu64 " only borrows and displaces job %" PRIu64
                   " of its own branch",
                   c->job->id, victim->id);
    const st_account *a = c->tree->accounts.v[mine], *b = c->tree->accounts.v[theirs];
    if (a->priority > b->priority)
        return 0;
    if (a->priority < b->priority)
        return BAD("order: job %" PRIu64 " displaces job %" PRIu64
                   ", but account %s has priority %d and %s has %d",
                   c->job->id, victim->id, a->name, a->priority, b->name, b->priority);
    /* Floors that moved in this step moved before or behind the claim; effects do not say. */
    if (c->step->promises_moved || fills(c) || any_last(c, mine, theirs))
        return 0;
    return BAD("order: job %" PRIu64 " displaces job %" PRIu64
               " and account %s would not stand below %s throughout",
               c->job->id, victim->id, a->name, b->name);
}

/* A job's GPUs to the power of 3/4. */
static double bulk(const st_job *job)
{
    double gpu_m = (double)ST_MAX(st_tally_gpu_m(job), 1);
    return sqrt(gpu_m * sqrt(gpu_m));
}

/* The run time one more end costs, expected, when a job goes on from this stage for as many
 * stages as make it cheapest: from the account's counts, as doubles. */
static double price(const st_life *life, int stage)
{
    double alive = 1, spent = 0, best = 0;
    for (int s = stage; s < ST_STAGES; s++) {
        double ended = (double)life->ended[s] + 1, outlived = (double)life->outlived[s] + 1;
        double after = alive * outlived / (ended + outlived);
        spent += (alive + after) / 2 * (double)(ST_STAGE_ONE_MS << ST_MAX(s - 1, 0));
        alive = after;
        if (s == stage || spent / (1 - alive) < best)
            best = spent / (1 - alive);
    }
    return best;
}

/* Inside an account, with `swap`: far ahead in the order, of one that keeps its progress. That
 * may have been lost in the same step all the same; then it is judged by what it had left. Ends
 * in the same step move the prices a little, before the swap or behind it. */
static bool may_swap(const st_step *step, const st_job *waiting, const st_job *running)
{
    const st_policy *policy = st_core_policy(step->core);
    const st_job *w = st_core_job(step->core, waiting->id);
    const st_job *r = st_core_job(step->core, running->id);
    if (!policy->swap || policy->order == ST_ORDER_AGE)
        return false;
    if (waiting->priority != running->priority)
        return waiting->priority > running->priority;
    if (!w || !r)
        return true; /* gone within the step: its times are not known any more */
    if (r->yield != ST_YIELD_CHECKPOINT && r->yield != ST_YIELD_PAUSE)
        return false;
    if (policy->order == ST_ORDER_ATTAINED) {
        const st_life *life = &st_core_tree(step->core)->accounts.v[w->account]->life;
        double mine = price(life, w->stage) * (double)ST_MAX(st_tally_gpu_m(w), 1);
        double other = price(life, r->stage) * (double)ST_MAX(st_tally_gpu_m(r), 1);
        return mine < other * 1.5;
    }
    double ran = (double)st_job_ran_ms(w, step->now);
    if (r->limit_ms == ST_TIME_NEVER)
        return w->limit_ms != ST_TIME_NEVER;
    double swap = (double)(policy->notice_ms + policy->grace_ms);
    double mine = bulk(w) * ((double)w->limit_ms - ran);
    double other = bulk(r) * ((double)(r->limit_ms - r->saved_ms) - swap);
    return w->limit_ms != ST_TIME_NEVER && mine <= other * 1.01; /* they reckon in integers */
}

/* With `as_if_alone`: nobody else has a right to the place that is its own; elsewhere it gives
 * way to those who have such a right too. */
static bool may_go_home(const st_step *step, const st_effect *hold, uint64_t victim)
{
    const st_job *job = st_core_job(step->core, hold->job);
    const st_job *other = st_core_job(step->core, victim);
    const st_grant *mine, *theirs;
    if (!job || !st_core_has_home(job, &mine) || !mine)
        return false;
    if (hold->class == ST_CLASS_GUARANTEED || !other)
        return true;
    return st_core_has_home(other, &theirs) && !theirs;
}

/* Whether a branch would hold more than it was promised of something the job asks for. */
static bool is_over(const claim *c, int32_t branch)
{
    const st_account *a = c->tree->accounts.v[branch];
    st_use use = held_by(c->tree, c->jobs, c->out, branch);
    st_tally_add(&use, c->job, c->type);
    return (c->job->shape.gpus > 0 && st_tally_promises_gpu(&a->floor) && gpu_above(a, &use) > 0) ||
           (c->job->shape.cpu_m > 0 && a->floor.cpu_m != ST_UNSET && use.cpu_m > a->floor.cpu_m) ||
           (c->job->shape.ram_mib > 0 && a->floor.ram_mib != ST_UNSET &&
            use.ram_mib > a->floor.ram_mib);
}

static claim claim_of(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out)
{
    const st_effect *e = &step->fx->list.v[at];
    claim c = {.step = step,
               .tree = st_core_tree(step->core),
               .job = &st_watch_find(step->watch, e->job)->job,
               .type = -1,
               .jobs = jobs,
               .out = out};
    if (c.job->shape.gpus > 0)
        c.type = st_core_fleet(step->core)->nodes.v[step->fx->grants.v[e->grants_at].node]->type;
    return c;
}

bool st_watch_beyond(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                     int32_t *ret_account)
{
    claim c = claim_of(step, at, jobs, out);
    for (int32_t a = c.job->account; a > ST_ROOT; a = c.tree->accounts.v[a]->parent) {
        bool outside = false;
        for (size_t i = 0; i < jobs->n; i++)
            outside |= out[i] && !is_inside(c.tree, jobs->v[i]->account, a);
        if (!outside || !is_over(&c, a))
            continue;
        if (ret_account)
            *ret_account = a;
        return true;
    }
    return false;
}

/* An owner takes from others only while everything its branch holds stays within the floor. */
static int check_owner(const claim *c, size_t at, st_err *err)
{
    const st_job *live = st_core_job(c->step->core, c->job->id);
    const st_grant *place;
    int32_t account;
    if (c->step->promises_moved || (live && st_core_has_home(live, &place)) ||
        !st_watch_beyond(c->step, at, c->jobs, c->out, &account))
        return 0;
    return BAD("floor: job %" PRIu64
               " displaces others, and account %s holds more than its floor with it",
               c->job->id, c->tree->accounts.v[account]->name);
}

int st_watch_order(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                   st_err *err)
{
    const st_effect *e = &step->fx->list.v[at];
    claim c = claim_of(step, at, jobs, out);
    const st_job *job = c.job;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < jobs->n; i++) {
        const st_job *victim = jobs->v[i];
        if (!out[i])
            continue;
        if (may_go_home(step, e, victim->id))
            continue;
        if (job->meek && (victim->account == job->account || e->class == ST_CLASS_BURSTABLE))
            rc = BAD("order: job %" PRIu64 " displaces job %" PRIu64 " and has no right to preempt",
                     job->id, victim->id);
        if (rc < 0 || (victim->account == job->account && may_swap(step, job, victim)))
            continue;
        if (victim->account == job->account && victim->priority < job->priority &&
            st_core_policy(step->core)->urgent)
            continue;
        if (victim->account == job->account && victim->priority >= job->priority)
            rc = BAD("order: job %" PRIu64 " of priority %d displaces job %" PRIu64
                     " of priority %d in its own account",
                     job->id, job->priority, victim->id, victim->priority);
        else if (e->class == ST_CLASS_BURSTABLE)
            rc = check_borrower(&c, victim, err);
    }
    return rc == 0 && e->class == ST_CLASS_GUARANTEED ? check_owner(&c, at, err) : rc;
}
