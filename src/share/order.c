/* Standings and the orders built on them. */
#include "share/order.h"

#include "base/macros.h"

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
    return ST_MAX(sum - st_quota_gpu_m(&a->floor), 0);
}

int64_t st_share_borrowed_m(const st_tree *tree, int32_t account)
{
    const st_account *a = st_tree_account(tree, account);
    return borrowed_gpu_m(a, &a->next);
}

/* CPU or RAM above the floor; without a floor of its own, what its guaranteed jobs use comes
 * with their GPUs. */
static int64_t borrowed_side(const st_account *a, int64_t floor, int64_t use, int64_t sure)
{
    if (floor != ST_UNSET)
        return use - floor;
    return st_quota_has_gpu(&a->floor) ? use - sure : use;
}

st_standing st_share_standing(const st_tree *tree, int32_t account, st_basis basis,
                              const st_use *more)
{
    const st_account *a = st_tree_account(tree, account);
    st_use use = a->next;
    if (more) {
        use.gpu_m += more->gpu_m;
        use.cpu_m += more->cpu_m;
        use.ram_mib += more->ram_mib;
        for (int t = 0; t < ST_TYPES_MAX; t++)
            use.type_m[t] += more->type_m[t];
    }
    int64_t gpu = use.gpu_m, cpu = use.cpu_m, ram = use.ram_mib;
    if (basis == ST_BASIS_BORROWED) {
        gpu = borrowed_gpu_m(a, &use);
        cpu = borrowed_side(a, a->floor.cpu_m, cpu, a->sure.cpu_m);
        ram = borrowed_side(a, a->floor.ram_mib, ram, a->sure.ram_mib);
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

bool st_share_sure_before(const st_tree *tree, int32_t a, int32_t b)
{
    const st_account *x = st_tree_account(tree, a), *y = st_tree_account(tree, b);
    int64_t fx = ST_MAX(st_quota_gpu_m(&x->floor), 1), fy = ST_MAX(st_quota_gpu_m(&y->floor), 1);
    st_i128 ux = (st_i128)x->sure.gpu_m * fy, uy = (st_i128)y->sure.gpu_m * fx;
    return ux != uy ? ux < uy : a < b;
}

bool st_share_burst_before(const st_tree *tree, int32_t a, int32_t b, st_basis basis)
{
    const st_account *x = st_tree_account(tree, a), *y = st_tree_account(tree, b);
    if (x->priority != y->priority)
        return x->priority > y->priority;
    int c = st_standing_cmp(st_share_standing(tree, a, basis, NULL),
                            st_share_standing(tree, b, basis, NULL));
    if (c == 0)
        c = st_standing_cmp(st_share_standing(tree, a, ST_BASIS_TOTAL, NULL),
                            st_share_standing(tree, b, ST_BASIS_TOTAL, NULL));
    return c != 0 ? c < 0 : a < b;
}

static int64_t times(int64_t a, int64_t b)
{
    st_i128 p = (st_i128)a * b;
    return p > INT64_MAX ? INT64_MAX : (int64_t)p;
}

#define LEVEL_ONE INT64_C(3600000000) /* a GPU-hour, in milli-GPU x ms */

static int64_t had(const st_job *job, int64_t now)
{
    return times(st_job_served_ms(job, now), st_job_gpu_m(job));
}

/* 0 below a GPU-hour, 1 below two, 2 below four, ... */
static int level(int64_t amount)
{
    int n = 0;
    for (; amount >= LEVEL_ONE; amount /= 2)
        n++;
    return n;
}

static int64_t left(const st_job *job, int64_t now)
{
    if (job->limit_ms == ST_TIME_NEVER)
        return INT64_MAX;
    int64_t ms = ST_MAX(job->limit_ms - st_job_ran_ms(job, now), 0);
    return times(ms, ST_MAX(st_job_gpu_m(job), 1));
}

st_turn st_turn_of(const st_tree *tree, const st_policy *policy, st_job *job, int64_t now)
{
    st_turn turn = {.job = job};
    turn.usage = st_usage_read(tree, job->account, job->user, now, policy->half_life_ms);
    if (policy->order == ST_ORDER_SHORTEST)
        turn.key = left(job, now);
    else if (policy->order == ST_ORDER_ATTAINED)
        turn.key = level(had(job, now));
    return turn;
}

bool st_order_swaps(const st_policy *policy, const st_job *waiting, const st_job *running,
                    int64_t now)
{
    bool keeps = running->yield == ST_YIELD_CHECKPOINT || running->yield == ST_YIELD_PAUSE;
    if (!policy->swap || policy->order == ST_ORDER_AGE || !keeps)
        return false;
    if (waiting->priority != running->priority)
        return waiting->priority > running->priority;
    if (policy->order == ST_ORDER_ATTAINED)
        return level(had(waiting, now)) < level(had(running, now));
    return left(waiting, now) < left(running, now) / 5 * 4;
}

int64_t st_order_next_level_ms(const st_policy *policy, const st_job *running, int64_t now)
{
    int64_t gpu_m = st_job_gpu_m(running), amount = had(running, now);
    if (!policy->swap || policy->order != ST_ORDER_ATTAINED || gpu_m == 0 || level(amount) > 40)
        return ST_TIME_NEVER;
    int64_t next = LEVEL_ONE << level(amount);
    return now + (next - amount + gpu_m - 1) / gpu_m;
}

int st_turn_cmp(const void *pa, const void *pb)
{
    const st_turn *a = pa, *b = pb;
    if (a->job->priority != b->job->priority)
        return a->job->priority > b->job->priority ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->usage != b->usage)
        return a->usage < b->usage ? -1 : 1;
    if (a->job->submit_ms != b->job->submit_ms)
        return a->job->submit_ms < b->job->submit_ms ? -1 : 1;
    return a->job->id < b->job->id ? -1 : a->job->id > b->job->id;
}
