/* Guarantees and ceilings: the checks and the counters. */
#include "admit/admit.h"

#include <string.h>

#include "base/macros.h"
#include "base/mutant.h"

st_need st_need_of(const st_job *job, int32_t type)
{
    return (st_need){job->shape.gpus > 0 ? type : -1, st_job_gpu_m(job), st_job_cpu_m(job),
                     st_job_ram_mib(job)};
}

static int64_t need_m(const st_account *a, int type)
{
    return ST_MAX(ST_MAX(a->floor.type_m[type], 0), a->below_m[type]);
}

static bool fits_bound(int64_t bound, int64_t used, int64_t asked)
{
    return bound == ST_UNSET || asked == 0 || used + asked <= bound;
}

bool st_admit_guaranteed(const st_tree *tree, int32_t account, const st_need *need,
                         int32_t *ret_account)
{
    bool backed = false;
    int64_t more = need->gpu_m, more_sum = need->gpu_m; /* what the child's needs grow by */
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        bool root = i == ST_ROOT;
        int64_t cpu = root ? tree->capacity.cpu_m : a->floor.cpu_m;
        int64_t ram = root ? tree->capacity.ram_mib : a->floor.ram_mib;
        bool ok = fits_bound(cpu, a->guaranteed.cpu_m, need->cpu_m) &&
                  fits_bound(ram, a->guaranteed.ram_mib, need->ram_mib);
        if (need->gpu_m > 0) {
            int64_t old = need_m(a, need->type);
            int64_t new = ST_MAX(old, a->below_m[need->type] + more);
            more = new - old;
            int64_t sum = ST_MAX(a->below_sum_m + more_sum, a->typed_sum_m + more);
            more_sum = ST_MAX(sum - a->need_sum_m, 0);
            if (root) {
                ok &= new <= tree->capacity.type_m[need->type] && sum <= tree->capacity.gpu_m;
            } else if (st_quota_has_gpu(&a->floor)) {
                backed = true;
                ok &= sum <= a->floor_gpu_m;
            }
        } else {
            backed |= !root && a->floor.cpu_m != ST_UNSET;
        }
        if (!ok && !ST_BROKEN(SURE)) {
            if (ret_account)
                *ret_account = i;
            return false;
        }
    }
    if (!backed && ret_account)
        *ret_account = account;
    return backed;
}

int64_t st_admit_excess_m(const st_tree *tree, int32_t account, const st_need *need)
{
    const st_account *a = st_tree_account(tree, account);
    if (need->gpu_m == 0 || !st_quota_has_gpu(&a->floor))
        return 0;
    return ST_MAX(st_account_beyond_m(a, need->type, need->gpu_m), 0);
}

int32_t st_admit_full(const st_tree *tree, int32_t account, const st_need *need, bool nearest)
{
    for (int32_t i = account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        bool gpu = need->gpu_m > 0 && st_quota_has_gpu(&a->floor);
        if ((gpu && st_admit_excess_m(tree, i, need) > 0) ||
            !fits_bound(a->floor.cpu_m, a->next.cpu_m, need->cpu_m) ||
            !fits_bound(a->floor.ram_mib, a->next.ram_mib, need->ram_mib))
            return ST_BROKEN(INSIDE) ? -1 : i;
        if (nearest && (gpu || (need->gpu_m == 0 && a->floor.cpu_m != ST_UNSET)))
            return -1;
    }
    return -1;
}

typedef struct over_list {
    st_over *v;
    int max, n;
} over_list;

static void check(over_list *list, int32_t account, st_dim dim, int32_t type, int64_t bound,
                  int64_t used, int64_t asked)
{
    if (fits_bound(bound, used, asked))
        return;
    if (list->n < list->max)
        list->v[list->n] = (st_over){account, dim, type, used, asked, bound};
    list->n++;
}

int st_admit_over(const st_tree *tree, int32_t account, const st_need *need, unsigned moments,
                  bool alone, st_over *ret, int max)
{
    over_list list = {ret, max, 0};
    for (int32_t i = account; i != ST_ROOT; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        st_use used = {0};
        if (!alone) {
            static const st_use zero;
            const st_use *x = moments & ST_NOW ? &a->now : &zero;
            const st_use *y = moments & ST_NEXT ? &a->next : &zero;
            used.gpu_m = ST_MAX(x->gpu_m, y->gpu_m);
            used.cpu_m = ST_MAX(x->cpu_m, y->cpu_m);
            used.ram_mib = ST_MAX(x->ram_mib, y->ram_mib);
            if (need->type >= 0)
                used.type_m[need->type] = ST_MAX(x->type_m[need->type], y->type_m[need->type]);
        }
        check(&list, i, ST_GPU, -1, a->max.gpu_m, used.gpu_m, need->gpu_m);
        if (need->type >= 0)
            check(&list, i, ST_GPU, need->type, a->max.type_m[need->type], used.type_m[need->type],
                  need->gpu_m);
        check(&list, i, ST_CPU, -1, a->max.cpu_m, used.cpu_m, need->cpu_m);
        check(&list, i, ST_RAM, -1, a->max.ram_mib, used.ram_mib, need->ram_mib);
    }
    return list.n;
}

static void add(st_use *use, const st_need *need, int sign)
{
    if (sign < 0 && ST_BROKEN(BOOKS))
        sign = -2;
    use->gpu_m += sign * need->gpu_m;
    use->cpu_m += sign * need->cpu_m;
    use->ram_mib += sign * need->ram_mib;
    if (need->type >= 0)
        use->type_m[need->type] += sign * need->gpu_m;
    ST_ASSERT(use->gpu_m >= 0 && use->cpu_m >= 0 && use->ram_mib >= 0);
}

static void add_next(st_account *a, const st_need *need, int sign)
{
    int64_t held_m = need->type >= 0 ? a->next.type_m[need->type] : 0;
    add(&a->next, need, sign);
    if (need->type < 0)
        return;
    int64_t floor_m = ST_MAX(a->floor.type_m[need->type], 0);
    a->taken_m += ST_MAX(a->next.type_m[need->type], floor_m) - ST_MAX(held_m, floor_m);
}

/* Charges may come in any order, and who goes leaves nothing behind. */
static uint64_t print_of(int32_t account, const st_need *need, unsigned moments)
{
    uint64_t where = (uint64_t)(account + 1) * UINT64_C(0x9e3779b97f4a7c15) +
                     (uint64_t)moments * UINT64_C(0xd1b54a32d192ed03);
    uint64_t type = (uint64_t)(need->type + 2) * UINT64_C(0x8cb92ba72f3d8dd7);
    uint64_t what = (uint64_t)need->gpu_m * (type ^ type >> 29) +
                    (uint64_t)need->cpu_m * UINT64_C(0xaaaaaaaaaaaaaaab) +
                    (uint64_t)need->ram_mib * UINT64_C(0xbf58476d1ce4e5b9);
    return (where ^ where >> 32) * what;
}

/* Amounts as a number, so that equal sums of amounts are equal sums of numbers. */
static uint64_t number_of(int32_t type, int64_t gpu_m, int64_t sum_m, int64_t cpu_m,
                          int64_t ram_mib)
{
    uint64_t of_type = (uint64_t)(type + 2) * UINT64_C(0x8cb92ba72f3d8dd7);
    return (uint64_t)gpu_m * ((of_type ^ of_type >> 29) | 1) +
           (uint64_t)sum_m * UINT64_C(0xd6e8feb86659fd93) +
           (uint64_t)cpu_m * UINT64_C(0xaaaaaaaaaaaaaaab) +
           (uint64_t)ram_mib * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Where a floor names no CPU or RAM, what its guaranteed jobs use of them does not matter. */
static uint64_t need_number(const st_account *a, const st_need *need, int sign, int64_t more,
                            int64_t more_sum)
{
    return number_of(need->type, more, more_sum,
                     a->floor.cpu_m != ST_UNSET ? sign * need->cpu_m : 0,
                     a->floor.ram_mib != ST_UNSET ? sign * need->ram_mib : 0);
}

/* Of a capacity that is hardly used it does not matter to a small gang how much of it is. */
static uint64_t side_print(int64_t capacity, int64_t used, int64_t asked)
{
    int64_t much = capacity / 8;
    return capacity - used < much || asked > much ? (uint64_t)used : 0;
}

uint64_t st_admit_inside_print(const st_tree *tree, int32_t account, const st_need *need)
{
    const st_account *root = st_tree_account(tree, ST_ROOT);
    uint64_t print = tree->floored;
    bool near =
        true; /* up to the first floor it matters what is held: st_admit_full with `nearest` */
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);
        print = print * UINT64_C(0x9e3779b97f4a7c15) + a->need_print;
        if (near && i != ST_ROOT)
            print = print * UINT64_C(0x9e3779b97f4a7c15) + a->next_print;
        near &= need->gpu_m == 0 || !st_quota_has_gpu(&a->floor);
    }
    uint64_t cpu = side_print(tree->capacity.cpu_m, root->guaranteed.cpu_m, need->cpu_m);
    uint64_t ram = side_print(tree->capacity.ram_mib, root->guaranteed.ram_mib, need->ram_mib);
    return print + number_of(-1, 0, 0, (int64_t)cpu, (int64_t)ram);
}

void st_admit_charge(st_tree *tree, int32_t account, const st_need *need, unsigned moments,
                     int sign)
{
    tree->print += (uint64_t)sign * print_of(account, need, moments);
    int64_t more = need->gpu_m * sign, more_sum = more;
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent) {
        st_account *a = st_tree_account(tree, i);
        if (moments & ST_NOW)
            add(&a->now, need, sign);
        if (moments & ST_NEXT) {
            add_next(a, need, sign);
            a->next_print +=
                (uint64_t)sign * number_of(need->type, need->gpu_m, 0, need->cpu_m, need->ram_mib);
        }
        if (!(moments & ST_GUARANTEED))
            continue;
        add(&a->guaranteed, need, sign);
        a->need_print +=
            need_number(a, need, sign, need->type < 0 ? 0 : more, need->type < 0 ? 0 : more_sum);
        if (need->type < 0)
            continue;
        int64_t old = need_m(a, need->type);
        a->below_m[need->type] += more;
        more = need_m(a, need->type) - old;
        a->typed_sum_m += more;
        a->below_sum_m += more_sum;
        int64_t sum = ST_MAX(a->below_sum_m, a->typed_sum_m);
        sum = ST_MAX(sum, a->floor_gpu_m);
        more_sum = sum - a->need_sum_m;
        a->need_sum_m = sum;
    }
}
