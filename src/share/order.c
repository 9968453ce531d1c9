/* Standings and the orders built on them. */
#include "share/share.h"

#include "base/macros.h"
#include "base/mutant.h"
#include "share/life.h"

/* Three factors of at most this size multiply without overflow. */
#define FACTOR_MAX INT64_C(4000000000000)

/* Which of two shares is larger; a share of nothing there is is larger than any. */
static st_standing larger(st_standing a, int64_t amount, int64_t capacity)
{
    if (amount <= 0)
        return a;
    capacity = ST_MAX(capacity, 0);
    while (amount > FACTOR_MAX || capacity > FACTOR_MAX) {
        amount /= 2;
        capacity /= 2;
    }
    if ((st_i128)amount * a.capacity > (st_i128)a.amount * capacity) {
        a.amount = amount;
        a.capacity = capacity;
    }
    return a;
}

int64_t st_standing_share_m(st_standing standing)
{
    if (standing.capacity == 0)
        return INT64_MAX;
    return (standing.amount * 1000 + standing.capacity / 2) / standing.capacity;
}

/* GPU above the floor: typed floors that stand empty are still the account's own, so what it
 * holds elsewhere is borrowed. */
static int64_t borrowed_gpu_m(const st_account *a, const st_use *use)
{
    int64_t sum = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        sum += ST_MAX(use->type_m[t], ST_MAX(a->floor.type_m[t], 0));
    return ST_MAX(sum - a->floor_gpu_m, 0);
}

/* The same of what it will hold, and more. */
static int64_t borrowed_next_m(const st_account *a, const st_use *more)
{
    int64_t sum = a->taken_m - a->floor_gpu_m;
    for (int t = 0; more && t < ST_TYPES_MAX; t++)
        if (more->type_m[t] != 0)
            sum += st_account_beyond_m(a, t, more->type_m[t]) - st_account_beyond_m(a, t, 0);
    return ST_MAX(sum, 0);
}

int64_t st_share_borrowed_m(const st_tree *tree, int32_t account)
{
    return borrowed_next_m(st_tree_account(tree, account), NULL);
}

int64_t st_share_inside_m(const st_tree *tree, int32_t account)
{
    const st_account *a = st_tree_account(tree, account);
    return st_quota_has_gpu(&a->floor) ? a->now.gpu_m - borrowed_gpu_m(a, &a->now)
                                       : ST_MIN(a->guaranteed.gpu_m, a->now.gpu_m);
}

bool st_share_over_cpu(const st_tree *tree, int32_t account)
{
    const st_account *a = st_tree_account(tree, account);
    return a->floor.cpu_m != ST_UNSET && a->next.cpu_m > a->floor.cpu_m;
}

bool st_share_over_ram(const st_tree *tree, int32_t account)
{
    const st_account *a = st_tree_account(tree, account);
    return a->floor.ram_mib != ST_UNSET && a->next.ram_mib > a->floor.ram_mib;
}

/* CPU or RAM above the floor; without a floor of its own, what its guaranteed jobs use comes
 * with their GPUs. */
static int64_t borrowed_side(const st_account *a, int64_t floor, int64_t use, int64_t guaranteed)
{
    if (floor != ST_UNSET)
        return use - floor;
    return st_quota_has_gpu(&a->floor) ? use - guaranteed : use;
}

st_standing st_share_standing(const st_tree *tree, int32_t account, st_share_counts counts,
                              const st_use *more)
{
    const st_account *a = st_tree_account(tree, account);
    int64_t gpu = a->next.gpu_m + (more ? more->gpu_m : 0);
    int64_t cpu = a->next.cpu_m + (more ? more->cpu_m : 0);
    int64_t ram = a->next.ram_mib + (more ? more->ram_mib : 0);
    if (counts == ST_COUNTS_BORROWED) {
        gpu = borrowed_next_m(a, more);
        cpu = borrowed_side(a, a->floor.cpu_m, cpu, a->guaranteed.cpu_m);
        ram = borrowed_side(a, a->floor.ram_mib, ram, a->guaranteed.ram_mib);
    }
    st_standing ret = {0, 1, a->weight_m};
    ret = larger(ret, gpu, tree->capacity.gpu_m);
    ret = larger(ret, cpu, tree->capacity.cpu_m);
    return larger(ret, ram, tree->capacity.ram_mib);
}

int st_standing_cmp(st_standing a, st_standing b)
{
    if (a.weight_m == 0 || b.weight_m == 0)
        return (a.weight_m == 0) - (b.weight_m == 0);
    st_i128 x = (st_i128)a.amount * b.capacity * b.weight_m;
    st_i128 y = (st_i128)b.amount * a.capacity * a.weight_m;
    return (x > y) - (x < y);
}

bool st_share_guaranteed_before(const st_tree *tree, int32_t a, int32_t b)
{
    const st_account *x = st_tree_account(tree, a), *y = st_tree_account(tree, b);
    int64_t fx = ST_MAX(x->floor_gpu_m, 1), fy = ST_MAX(y->floor_gpu_m, 1);
    st_i128 ux = (st_i128)x->guaranteed.gpu_m * fy, uy = (st_i128)y->guaranteed.gpu_m * fx;
    return ux != uy ? ux < uy : a < b;
}

bool st_share_burst_before(const st_tree *tree, int32_t a, int32_t b, st_share_counts counts)
{
    const st_account *x = st_tree_account(tree, a), *y = st_tree_account(tree, b);
    if (x->priority != y->priority)
        return x->priority > y->priority;
    int c = st_standing_cmp(st_share_standing(tree, a, counts, NULL),
                            st_share_standing(tree, b, counts, NULL));
    if (c == 0)
        c = st_standing_cmp(st_share_standing(tree, a, ST_COUNTS_TOTAL, NULL),
                            st_share_standing(tree, b, ST_COUNTS_TOTAL, NULL));
    return c != 0 ? c < 0 : a < b;
}

static int64_t times(int64_t a, int64_t b)
{
    st_i128 p = (st_i128)a * b;
    return p > INT64_MAX ? INT64_MAX : (int64_t)p;
}

#define CLASS (INT64_C(1) << 40) /* a class in a turn's key; below it the GPUs */

/* What one more end costs, in GPU time, as a power of four: learned prices are not finer than
 * that, and who is ahead by a class is not behind again after a moment. */
static int64_t class_of(const st_tree *tree, const st_job *job)
{
    st_account *a = st_tree_account(tree, job->account);
    int64_t cost = times(st_life_price_ms(a, job->stage), ST_MAX(st_job_gpu_m(job), 1));
    return (63 - __builtin_clzll((uint64_t)cost)) / 2;
}

/* The integer part of the square root, by Newton's steps from above. */
static int64_t root(int64_t n)
{
    int64_t x = INT64_C(1) << (64 - __builtin_clzll((uint64_t)n | 1) + 1) / 2, next = x;
    do {
        x = next;
        next = (x + n / x) / 2;
    } while (next < x);
    return x;
}

/* How much a job's time weighs: its GPUs to the power of 3/4, x 32. In full, a gang would go
 * behind everything that is small, although it needs many places at once and is the costliest to
 * put off: what it leaves behind is used in pieces. */
static int64_t bulk(const st_job *job)
{
    int64_t gpu_m = ST_MAX(st_job_gpu_m(job), 1);
    return root(gpu_m * root(gpu_m << 20));
}

static int64_t left(const st_job *job, int64_t now)
{
    if (job->limit_ms == ST_TIME_NEVER)
        return INT64_MAX;
    return times(ST_MAX(job->limit_ms - st_job_ran_ms(job, now), 0), bulk(job));
}

st_turn st_turn_of(const st_tree *tree, const st_policy *policy, st_job *job, int64_t now)
{
    st_turn turn = {.job = job, .priority = job->priority};
    turn.usage = st_usage_read(tree, job->account, job->user, now, policy->half_life_ms);
    if (policy->order == ST_ORDER_SHORTEST)
        turn.key = left(job, now);
    else if (policy->order == ST_ORDER_ATTAINED)
        turn.key = class_of(tree, job) * CLASS + ST_MIN(st_job_gpu_m(job), CLASS - 1);
    return turn;
}

bool st_order_swaps(const st_tree *tree, const st_policy *policy, const st_job *waiting,
                    const st_job *running, int64_t now)
{
    bool keeps = running->yield == ST_YIELD_CHECKPOINT || running->yield == ST_YIELD_PAUSE;
    if (!policy->swap || policy->order == ST_ORDER_AGE || !keeps)
        return false;
    if (waiting->priority != running->priority)
        return waiting->priority > running->priority;
    if (ST_BROKEN(SWAP))
        return true;
    if (policy->order == ST_ORDER_ATTAINED)
        return class_of(tree, waiting) < class_of(tree, running);
    int64_t cost = times(policy->notice_ms + policy->grace_ms, bulk(running));
    return left(waiting, now) < left(running, now) - cost;
}

int64_t st_order_swap_rank(const st_tree *tree, const st_policy *policy, const st_job *waiting,
                           int64_t now)
{
    if (!policy->swap || policy->order == ST_ORDER_AGE)
        return 0;
    return policy->order == ST_ORDER_ATTAINED ? class_of(tree, waiting) : left(waiting, now);
}

int64_t st_order_next_stage_ms(const st_policy *policy, const st_job *running, int64_t now)
{
    int64_t end_ms = st_stage_end_ms(st_stage_of(st_job_served_ms(running, now)));
    if (policy->order != ST_ORDER_ATTAINED || end_ms == ST_TIME_NEVER)
        return ST_TIME_NEVER;
    return now + end_ms - st_job_served_ms(running, now);
}

static int64_t by_ms(const st_job *job)
{
    return job->by_ms ? job->by_ms : ST_TIME_NEVER;
}

int st_turn_cmp(const void *pa, const void *pb)
{
    const st_turn *a = pa, *b = pb;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    int64_t a_by = by_ms(a->job), b_by = by_ms(b->job);
    if (a_by != b_by)
        return a_by < b_by ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->usage != b->usage)
        return a->usage < b->usage ? -1 : 1;
    if (a->job->submit_ms != b->job->submit_ms)
        return a->job->submit_ms < b->job->submit_ms ? -1 : 1;
    return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}
