/* Floors: guarantees as far as the capacity that is there covers them.
 *
 * Where the top accounts' guarantees add up to more than there is, every guarantee in the tree
 * is scaled by capacity / sum and rounded down: the same tree and capacity give the same
 * floors, whoever asks and in whatever order nodes failed. A type is scaled by its own
 * factor, and an account's typed floors never exceed its total. */
#include <string.h>

#include "admit/admit.h"
#include "base/macros.h"
#include "base/mutant.h"

typedef struct ratio {
    int64_t num, den; /* num < den; den 0: no scaling */
} ratio;

static int64_t scale(int64_t v, ratio r)
{
    if (v <= 0 || r.den == 0)
        return v;
    return (int64_t)((st_i128)v * r.num / r.den);
}

static ratio ratio_of(int64_t capacity, int64_t sum)
{
    return sum > capacity && !ST_BROKEN(FLOORS) ? (ratio){ST_MAX(capacity, 0), sum} : (ratio){0, 0};
}

/* Σ over the top accounts of one dimension's guarantees. */
static int64_t top_sum(const st_tree *tree, int64_t (*value)(const st_quota *))
{
    const st_account *root = st_tree_account(tree, ST_ROOT);
    int64_t sum = 0;
    for (size_t i = 0; i < root->children.n; i++) {
        int64_t v = value(&st_tree_account(tree, root->children.v[i])->guarantee);
        sum += ST_MAX(v, 0);
    }
    return sum;
}

static int64_t cpu_of(const st_quota *q)
{
    return q->cpu_m;
}

static int64_t ram_of(const st_quota *q)
{
    return q->ram_mib;
}

/* Accounts come after their parents, so one backward sweep visits children first. */
void st_admit_needs(st_tree *tree)
{
    for (size_t i = tree->accounts.n; i-- > 0;) {
        st_account *a = tree->accounts.v[i];
        st_use own = a->sure;
        memset(a->below_m, 0, sizeof a->below_m);
        a->below_sum_m = own.gpu_m;
        for (size_t c = 0; c < a->children.n; c++) {
            const st_account *child = st_tree_account(tree, a->children.v[c]);
            a->below_sum_m += child->need_sum_m - child->sure.gpu_m;
            for (int t = 0; t < ST_TYPES_MAX; t++) {
                own.type_m[t] -= child->sure.type_m[t];
                a->below_m[t] += ST_MAX(ST_MAX(child->floor.type_m[t], 0), child->below_m[t]);
            }
        }
        a->typed_sum_m = 0;
        for (int t = 0; t < ST_TYPES_MAX; t++) {
            a->below_m[t] += own.type_m[t];
            a->typed_sum_m += ST_MAX(ST_MAX(a->floor.type_m[t], 0), a->below_m[t]);
        }
        a->need_sum_m = ST_MAX(ST_MAX(a->below_sum_m, a->typed_sum_m), st_quota_gpu_m(&a->floor));
    }
}

static st_quota floor_of(const st_quota *guarantee, ratio gpu, ratio cpu, ratio ram,
                         const ratio *types)
{
    st_quota floor = *guarantee;
    floor.gpu_m = scale(guarantee->gpu_m, gpu);
    floor.cpu_m = scale(guarantee->cpu_m, cpu);
    floor.ram_mib = scale(guarantee->ram_mib, ram);
    int64_t typed = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        floor.type_m[t] = scale(guarantee->type_m[t], types[t]);
        typed += ST_MAX(floor.type_m[t], 0);
    }
    int64_t total = scale(st_quota_gpu_m(guarantee), gpu);
    ratio fit = ratio_of(total, typed);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        floor.type_m[t] = scale(floor.type_m[t], fit);
    return floor;
}

bool st_admit_floors(st_tree *tree)
{
    /* With floors at the full guarantee and nobody guaranteed yet, the root's need is what
     * was promised of each type by name. */
    bool changed = false;
    st_use none = {0};
    ST_VEC(st_use) sure = {0};
    ST_VEC(st_quota) before = {0};
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        st_vec_push(&sure, a->sure);
        st_vec_push(&before, a->floor);
        a->sure = none;
        a->floor = a->guarantee;
    }
    st_admit_needs(tree);
    ratio types[ST_TYPES_MAX];
    for (int t = 0; t < ST_TYPES_MAX; t++)
        types[t] = ratio_of(tree->capacity.type_m[t], tree->accounts.v[ST_ROOT]->below_m[t]);
    ratio gpu = ratio_of(tree->capacity.gpu_m, top_sum(tree, st_quota_gpu_m));
    ratio cpu = ratio_of(tree->capacity.cpu_m, top_sum(tree, cpu_of));
    ratio ram = ratio_of(tree->capacity.ram_mib, top_sum(tree, ram_of));

    tree->shrunk = false;
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        a->sure = sure.v[i];
        a->floor = floor_of(&a->guarantee, gpu, cpu, ram, types);
        changed |= memcmp(&a->floor, &before.v[i], sizeof a->floor) != 0;
        tree->shrunk |= memcmp(&a->floor, &a->guarantee, sizeof a->floor) != 0;
    }
    st_admit_needs(tree);
    st_vec_free(&sure);
    st_vec_free(&before);
    return changed;
}
