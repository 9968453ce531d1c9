/* Floors: guarantees as far as the capacity that is there covers them.
 *
 * Where the top accounts' guarantees add up to more than there is, every guarantee in the tree
 * is scaled by capacity / sum and rounded down: the same tree and capacity give the same
 * floors, whoever asks and in whatever order nodes failed. A type that is short is scaled by a
 * factor of its own first. Afterwards floors can be delivered: an account's covers what was
 * promised below it, by type and in all. */
#include <string.h>

#include "admit/admit.h"
#include "base/hash.h"
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
        int64_t v = value(st_tree_promise(tree, root->children.v[i]));
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
    tree->floored++;
    for (size_t i = tree->accounts.n; i-- > 0;) {
        st_account *a = tree->accounts.v[i];
        st_use own = a->guaranteed;
        memset(a->below_m, 0, sizeof a->below_m);
        a->below_sum_m = own.gpu_m;
        for (size_t c = 0; c < a->children.n; c++) {
            const st_account *child = st_tree_account(tree, a->children.v[c]);
            a->below_sum_m += child->need_sum_m - child->guaranteed.gpu_m;
            for (int t = 0; t < ST_TYPES_MAX; t++) {
                own.type_m[t] -= child->guaranteed.type_m[t];
                a->below_m[t] += ST_MAX(ST_MAX(child->floor.type_m[t], 0), child->below_m[t]);
            }
        }
        a->typed_sum_m = 0;
        for (int t = 0; t < ST_TYPES_MAX; t++) {
            a->below_m[t] += own.type_m[t];
            a->typed_sum_m += ST_MAX(ST_MAX(a->floor.type_m[t], 0), a->below_m[t]);
        }
        st_account_reckon(a);
        a->need_sum_m = ST_MAX(ST_MAX(a->below_sum_m, a->typed_sum_m), a->floor_gpu_m);
    }
}

/* Scale the GPU entries of everything below an account: typed ones, and totals if wanted. */
static void scale_below(st_tree *tree, int32_t above, ratio r, bool itself, bool totals)
{
    for (size_t i = (size_t)above; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        if (!st_tree_within(tree, a->id, above) || (a->id == above && !itself))
            continue;
        for (int t = 0; t < ST_TYPES_MAX; t++)
            a->floor.type_m[t] = scale(a->floor.type_m[t], r);
        if (totals)
            a->floor.gpu_m = scale(a->floor.gpu_m, r);
    }
    st_admit_needs(tree);
}

/* A type that is short shrinks wherever it was promised by name. */
static void fit_types(st_tree *tree)
{
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        ratio r = ratio_of(tree->capacity.type_m[t], tree->accounts.v[ST_ROOT]->below_m[t]);
        for (size_t i = 0; i < tree->accounts.n; i++) {
            st_quota *floor = &tree->accounts.v[i]->floor;
            floor->type_m[t] = scale(floor->type_m[t], r);
        }
    }
    st_admit_needs(tree);
}

/* From the top down, so that what is below an account fits into what is left of it. */
static void fit_totals(st_tree *tree)
{
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        if (i != ST_ROOT && !st_quota_has_gpu(&a->floor))
            continue; /* passes through: nothing was promised below it either */
        int64_t have = i == ST_ROOT ? tree->capacity.gpu_m : st_quota_gpu_m(&a->floor);
        ratio typed = ratio_of(have, a->typed_sum_m);
        if (typed.den)
            scale_below(tree, a->id, typed, true, false);
        int64_t sum = 0;
        for (size_t c = 0; c < a->children.n; c++)
            sum += st_quota_gpu_m(&st_tree_account(tree, a->children.v[c])->floor);
        ratio all = ratio_of(have, sum);
        if (all.den)
            scale_below(tree, a->id, all, false, true);
    }
}

static void fit_sides(st_tree *tree)
{
    ratio cpu = ratio_of(tree->capacity.cpu_m, top_sum(tree, cpu_of));
    ratio ram = ratio_of(tree->capacity.ram_mib, top_sum(tree, ram_of));
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_quota *floor = &tree->accounts.v[i]->floor;
        floor->cpu_m = scale(floor->cpu_m, cpu);
        floor->ram_mib = scale(floor->ram_mib, ram);
    }
}

bool st_admit_floors(st_tree *tree)
{
    /* Begin with the full guarantees and nobody guaranteed yet. */
    tree->print = st_hash_u64(tree->print, tree->accounts.n);
    bool changed = false;
    st_use none = {0};
    ST_VEC(st_use) guaranteed = {0};
    ST_VEC(st_quota) before = {0};
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        st_vec_push(&guaranteed, a->guaranteed);
        st_vec_push(&before, a->floor);
        a->guaranteed = none;
        a->floor = *st_tree_promise(tree, a->id);
    }
    st_admit_needs(tree);
    fit_types(tree);
    fit_totals(tree);
    fit_sides(tree);

    tree->shrunk = false;
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        a->guaranteed = guaranteed.v[i];
        changed |= memcmp(&a->floor, &before.v[i], sizeof a->floor) != 0;
        tree->shrunk |= memcmp(&a->floor, st_tree_promise(tree, a->id), sizeof a->floor) != 0;
    }
    st_admit_needs(tree);
    st_vec_free(&guaranteed);
    st_vec_free(&before);
    return changed;
}
