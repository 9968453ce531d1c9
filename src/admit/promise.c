/* What a change of one account's guarantee would do to the floors of everybody, for a given capacity.
 *
 * Floors are set twice on a copy of the accounts, without the change and with it; a floor that comes out lower,
 * and what the account itself is promised beyond its floor, is what the fleet cannot carry. */
#include <stdlib.h>
#include <string.h>

#include "admit/admit.h"
#include "base/macros.h"
#include "base/mem.h"

typedef struct copy {
    st_tree tree;
    st_account *rows;
    int32_t added_to; /* the parent of the account that is new; -1: none is */
} copy;

/* The accounts with their quotas, and room for one more. Children are the originals' own lists. */
static void copy_init(copy *c, const st_tree *tree, const st_use *capacity)
{
    *c = (copy){.added_to = -1};
    c->rows = st_xcalloc(tree->accounts.n + 1, sizeof *c->rows);
    c->tree.capacity = *capacity;
    for (size_t i = 0; i < tree->accounts.n; i++) {
        c->rows[i] = *tree->accounts.v[i];
        st_vec_push(&c->tree.accounts, &c->rows[i]);
    }
}

static void copy_add(copy *c, int32_t parent)
{
    int32_t id = (int32_t)c->tree.accounts.n;
    st_account *above = &c->rows[parent], *a = &c->rows[id];
    const int32_t *old = above->children.v;
    size_t n = above->children.n;

    *a = (st_account){.id = id, .parent = parent, .depth = above->depth + 1};
    st_quota_clear(&a->guarantee);
    st_vec_push(&c->tree.accounts, a);
    memset(&above->children, 0, sizeof above->children);
    for (size_t i = 0; i < n; i++)
        st_vec_push(&above->children, old[i]);
    st_vec_push(&above->children, id);
    c->added_to = parent;
}

static void copy_done(copy *c)
{
    if (c->added_to >= 0)
        st_vec_free(&c->rows[c->added_to].children);
    st_vec_free(&c->tree.accounts);
    free(c->rows);
}

/* Who asks for more is short of what it does not get; who asks for less loses nothing that it wants. */
static void note(st_floor_cut_vec *ret, const st_floor_cut *cut, int64_t was)
{
    bool short_of = cut->promised > was && cut->after < cut->promised;
    bool shrinks = cut->promised == was && cut->after < cut->before;

    if (short_of || shrinks)
        st_vec_push(ret,
                    ((st_floor_cut){cut->account, cut->dim, cut->type, ST_MAX(cut->promised, 0),
                                    ST_MAX(cut->before, 0), ST_MAX(cut->after, 0)}));
}

/* Guarantees over all types say what their typed entries say, where there is nothing else. */
static int64_t total_m(const st_quota *q)
{
    return st_quota_has_gpu(q) ? st_quota_gpu_m(q) : ST_UNSET;
}

/* `was` is what it was promised, which only the account that changes is not any more. */
static void compare(const st_account *a, const st_quota *was, const st_quota *before,
                    st_floor_cut_vec *ret)
{
    const st_quota *g = &a->guarantee, *floor = &a->floor;

    note(ret, &(st_floor_cut){a->id, ST_GPU, -1, total_m(g), total_m(before), total_m(floor)},
         total_m(was));
    for (int t = 0; t < ST_TYPES_MAX; t++)
        note(ret,
             &(st_floor_cut){a->id, ST_GPU, t, g->type_m[t], before->type_m[t], floor->type_m[t]},
             was->type_m[t]);
    note(ret, &(st_floor_cut){a->id, ST_CPU, -1, g->cpu_m, before->cpu_m, floor->cpu_m},
         was->cpu_m);
    note(ret, &(st_floor_cut){a->id, ST_RAM, -1, g->ram_mib, before->ram_mib, floor->ram_mib},
         was->ram_mib);
}

/* Everything that is guaranteed, as the fleet would have to deliver it. */
static void add_up(st_tree *tree, st_use *ret)
{
    const st_account *root = tree->accounts.v[ST_ROOT];

    for (size_t i = 0; i < tree->accounts.n; i++) {
        memset(&tree->accounts.v[i]->guaranteed, 0, sizeof tree->accounts.v[i]->guaranteed);
        tree->accounts.v[i]->floor = tree->accounts.v[i]->guarantee;
    }
    st_admit_needs(tree);
    *ret = (st_use){.gpu_m = ST_MAX(root->below_sum_m, root->typed_sum_m)};
    memcpy(ret->type_m, root->below_m, sizeof ret->type_m);
    for (size_t i = 0; i < root->children.n; i++) {
        const st_quota *g = &st_tree_account(tree, root->children.v[i])->guarantee;

        ret->cpu_m += ST_MAX(g->cpu_m, 0);
        ret->ram_mib += ST_MAX(g->ram_mib, 0);
    }
}

void st_admit_cuts(const st_tree *tree, const st_use *capacity, const st_account_spec *spec,
                   st_floor_cut_vec *ret, st_use *ret_promised)
{
    int32_t id = st_tree_find(tree, spec->name);
    ST_VEC(st_quota) before = {0};
    st_quota was;
    copy c;

    st_vec_clear(ret);
    copy_init(&c, tree, capacity);
    if (id < 0) {
        id = (int32_t)tree->accounts.n;
        copy_add(&c, spec->parent ? st_tree_find(tree, spec->parent) : ST_ROOT);
    }
    was = c.rows[id].guarantee;
    st_admit_floors(&c.tree);
    for (size_t i = 0; i < c.tree.accounts.n; i++)
        st_vec_push(&before, c.rows[i].floor);
    c.rows[id].guarantee = spec->guarantee;
    st_admit_floors(&c.tree);
    for (size_t i = ST_ROOT + 1; i < c.tree.accounts.n; i++)
        compare(&c.rows[i], (int32_t)i == id ? &was : &c.rows[i].guarantee, &before.v[i], ret);
    if (ret_promised)
        add_up(&c.tree, ret_promised);
    st_vec_free(&before);
    copy_done(&c);
}
