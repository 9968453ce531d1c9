/* Building and reading the tree of accounts, and the checks a change to it must pass. */
#include "model/tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/num.h"

void st_quota_clear(st_quota *quota)
{
    quota->gpu_m = quota->cpu_m = quota->ram_mib = ST_UNSET;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        quota->type_m[t] = ST_UNSET;
}

void st_limits_clear(st_limits *limits)
{
    *limits = (st_limits){ST_UNSET, ST_UNSET, ST_UNSET, ST_UNSET};
}

void st_book_limits_clear(st_book_limits *limits)
{
    *limits = (st_book_limits){ST_UNSET, ST_UNSET, ST_UNSET, ST_UNSET};
}

void st_account_spec_init(st_account_spec *spec)
{
    *spec = (st_account_spec){.weight_m = 1000, .min_run_ms = ST_UNSET};
    st_quota_clear(&spec->guarantee);
    st_quota_clear(&spec->max);
    st_limits_clear(&spec->job_limits);
    st_limits_clear(&spec->user_limits);
    st_book_limits_clear(&spec->book_limits);
}

bool st_quota_has_gpu(const st_quota *quota)
{
    if (quota->gpu_m != ST_UNSET)
        return true;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        if (quota->type_m[t] != ST_UNSET)
            return true;
    return false;
}

static int64_t typed_sum_m(const st_quota *quota)
{
    int64_t sum = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        sum += ST_MAX(quota->type_m[t], 0);
    return sum;
}

int64_t st_quota_gpu_m(const st_quota *quota)
{
    return quota->gpu_m != ST_UNSET ? quota->gpu_m : typed_sum_m(quota);
}

static st_account *account_new(int32_t id, int32_t parent, const char *name)
{
    st_account *a = st_xcalloc(1, sizeof *a);
    a->id = id;
    a->serial = id;
    a->parent = parent;
    a->name = st_xstrdup(name);
    a->weight_m = 1000;
    a->min_run_ms = ST_UNSET;
    st_quota_clear(&a->guarantee);
    st_quota_clear(&a->max);
    st_quota_clear(&a->floor);
    st_limits_clear(&a->job_limits);
    st_limits_clear(&a->user_limits);
    st_book_limits_clear(&a->book_limits);
    return a;
}

st_tree *st_tree_new(void)
{
    st_tree *tree = st_xcalloc(1, sizeof *tree);
    tree->ids = st_map_new();
    tree->had = st_map_new();
    tree->user_ids = st_map_new();
    tree->user_slots = st_idmap_new();
    tree->usage_slots = st_idmap_new();
    st_vec_push(&tree->accounts, account_new(ST_ROOT, -1, "cluster"));
    st_map_put(tree->ids, "cluster", ST_ROOT);
    return tree;
}

void st_tree_free(st_tree *tree)
{
    if (!tree)
        return;
    for (size_t i = 0; i < tree->accounts.n; i++) {
        st_account *a = tree->accounts.v[i];
        free(a->name);
        st_vec_free(&a->children);
        free(a);
    }
    st_vec_free(&tree->accounts);
    st_vec_free(&tree->promised);
    for (size_t i = 0; i < tree->users.n; i++)
        free(tree->users.v[i]);
    st_vec_free(&tree->users);
    st_map_free(tree->ids);
    st_map_free(tree->had);
    st_map_free(tree->user_ids);
    st_vec_free(&tree->user_use);
    st_vec_free(&tree->usage);
    st_idmap_free(tree->user_slots);
    st_idmap_free(tree->usage_slots);
    free(tree);
}

const st_quota *st_tree_promise(const st_tree *tree, int32_t account)
{
    return (size_t)account < tree->promised.n ? &tree->promised.v[account]
                                              : &tree->accounts.v[account]->guarantee;
}

void st_account_reckon(st_account *a)
{
    a->floor_gpu_m = st_quota_gpu_m(&a->floor);
    a->taken_m = 0;
    for (int t = 0; t < ST_TYPES_MAX; t++)
        a->taken_m += ST_MAX(a->next.type_m[t], ST_MAX(a->floor.type_m[t], 0));
}

int32_t st_tree_find(const st_tree *tree, const char *name)
{
    int64_t id;
    return st_map_get(tree->ids, name, &id) ? (int32_t)id : -1;
}

int32_t st_tree_user(st_tree *tree, const char *name)
{
    int64_t id;
    if (st_map_get(tree->user_ids, name, &id))
        return (int32_t)id;
    id = (int64_t)tree->users.n;
    st_vec_push(&tree->users, st_xstrdup(name));
    st_map_put(tree->user_ids, name, id);
    return (int32_t)id;
}

uint64_t st_user_key(int32_t account, int32_t user)
{
    return (uint64_t)(uint32_t)account << 32 | (uint32_t)user;
}

bool st_name_ok(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n > ST_NAME_MAX)
        return false;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return false;
    return true;
}

/* One dimension of a quota: its name and how its numbers print. */
typedef struct dim_row {
    const char *name;
    bool milli;
} dim_row;

static void amounts(const dim_row *d, char a[32], int64_t x, char b[32], int64_t y)
{
    if (d->milli) {
        st_fmt_milli(a, x);
        st_fmt_milli(b, y);
    } else {
        st_fmt_mib(a, x);
        st_fmt_mib(b, y);
    }
}

static int over_parent(st_err *err, const dim_row *d, const char *who, const char *parent,
                       int64_t sum, int64_t bound)
{
    char need[32], have[32];
    amounts(d, need, sum, have, bound);
    return st_fail(err, ST_EQUOTA, "account %s: %s guarantees %s %s; its children would need %s",
                   who, parent, have, d->name, need);
}

static int over(st_err *err, const dim_row *d, const char *what, const char *who, int64_t have,
                const char *whose, int64_t bound)
{
    char a[32], b[32];
    amounts(d, a, have, b, bound);
    return st_fail(err, ST_EQUOTA, "account %s: %s %s %s is above %s %s", who, what, d->name, a,
                   whose, b);
}

static int64_t pick(const st_quota *q, int dim, int type)
{
    return type >= 0       ? q->type_m[type]
           : dim == ST_GPU ? (st_quota_has_gpu(q) ? st_quota_gpu_m(q) : ST_UNSET)
           : dim == ST_CPU ? q->cpu_m
                           : q->ram_mib;
}

/* Σ of the guarantees of `parent`'s children in one dimension, with `self` as in `spec`;
 * self -1: a child that is not there yet. */
static int64_t sum_children(const st_tree *tree, const st_account *parent, int32_t self,
                            const st_account_spec *spec, int dim, int type)
{
    int64_t sum = self == -1 ? ST_MAX(pick(&spec->guarantee, dim, type), 0) : 0;
    for (size_t i = 0; i < parent->children.n; i++) {
        int32_t id = parent->children.v[i];
        const st_quota *g = id == self ? &spec->guarantee : &st_tree_account(tree, id)->guarantee;
        sum += ST_MAX(pick(g, dim, type), 0);
    }
    return sum;
}

static int check_dim(const st_tree *tree, const st_account *self, const st_account *parent,
                     const st_account_spec *spec, const dim_row *d, int dim, int type, st_err *err)
{
    int64_t g = pick(&spec->guarantee, dim, type);
    int64_t max = type < 0 && dim == ST_GPU ? spec->max.gpu_m : pick(&spec->max, dim, type);
    if (max != ST_UNSET && g > max)
        return over(err, d, "guarantee", spec->name, g, "its max", max);
    if (self) {
        int64_t below = sum_children(tree, self, self->id, spec, dim, type);
        if (below > ST_MAX(g, 0) && !(type >= 0 && g == ST_UNSET))
            return over(err, d, "the children's sum of guarantee", spec->name, below,
                        "the guarantee", ST_MAX(g, 0));
    }
    if (parent->id == ST_ROOT)
        return 0;
    int64_t floor = pick(&parent->guarantee, dim, type);
    if (type >= 0 && floor == ST_UNSET)
        return 0; /* a typed floor inside the parent's untyped one: the total decides */
    int64_t sum = sum_children(tree, parent, self ? self->id : -1, spec, dim, type);
    if (sum > ST_MAX(floor, 0))
        return over_parent(err, d, spec->name, parent->name, sum, ST_MAX(floor, 0));
    return 0;
}

/* What was promised by name below an account, with `self` as in `spec`: per type the larger
 * of its own entry and its children's, added up. */
static void add_named(const st_tree *tree, const st_account *a, const st_account *self,
                      const st_account *parent, const st_account_spec *spec, int64_t *ret_m)
{
    int64_t below[ST_TYPES_MAX] = {0};
    const st_quota *own = a == self ? &spec->guarantee : &a->guarantee;
    for (size_t i = 0; i < a->children.n; i++)
        add_named(tree, st_tree_account(tree, a->children.v[i]), self, parent, spec, below);
    if (a == parent && !self) /* the account that is about to be made */
        for (int t = 0; t < ST_TYPES_MAX; t++)
            below[t] += ST_MAX(spec->guarantee.type_m[t], 0);
    for (int t = 0; t < ST_TYPES_MAX; t++)
        ret_m[t] += ST_MAX(below[t], own->type_m[t]);
}

/* Promises by name must fit the totals all the way up, or they could not be kept. */
static int check_named(const st_tree *tree, const st_account *self, const st_account *parent,
                       const st_account_spec *spec, st_err *err)
{
    if (typed_sum_m(&spec->guarantee) == 0 && !self)
        return 0;
    for (const st_account *a = self ? self : parent; a->id != ST_ROOT;
         a = st_tree_account(tree, a->parent)) {
        const st_quota *own = a == self ? &spec->guarantee : &a->guarantee;
        int64_t named[ST_TYPES_MAX] = {0}, sum = 0;
        add_named(tree, a, self, parent, spec, named);
        for (int t = 0; t < ST_TYPES_MAX; t++)
            sum += named[t];
        if (sum > st_quota_gpu_m(own)) {
            dim_row d = {"gpu by type", true};
            return over(err, &d, "with it what is guaranteed by name in", spec->name, sum, a->name,
                        st_quota_gpu_m(own));
        }
    }
    return 0;
}

static int check_range(const st_account_spec *spec, st_err *err)
{
    const st_quota *const quotas[] = {&spec->guarantee, &spec->max};
    for (size_t i = 0; i < ST_ARRAY_LEN(quotas); i++) {
        const st_quota *q = quotas[i];
        int64_t lo = ST_MIN(ST_MIN(q->gpu_m, q->cpu_m), q->ram_mib);
        int64_t hi = ST_MAX(ST_MAX(q->gpu_m, q->cpu_m), q->ram_mib);
        for (int t = 0; t < ST_TYPES_MAX; t++) {
            lo = ST_MIN(lo, q->type_m[t]);
            hi = ST_MAX(hi, q->type_m[t]);
        }
        if (lo < ST_UNSET || hi > ST_QTY_MAX)
            return st_fail(err, ST_ERANGE, "account %s: a %s is out of range", spec->name,
                           i == 0 ? "guarantee" : "max");
    }
    const st_limits *const limits[] = {&spec->job_limits, &spec->user_limits};
    for (size_t i = 0; i < ST_ARRAY_LEN(limits); i++) {
        const st_limits *l = limits[i];
        const int64_t all[] = {l->gpu_m, l->vram_mib, l->share_m, l->run_ms};
        for (size_t k = 0; k < ST_ARRAY_LEN(all); k++)
            if (all[k] < ST_UNSET || all[k] > ST_QTY_MAX)
                return st_fail(err, ST_ERANGE, "account %s: a limit per %s is out of range",
                               spec->name, i == 0 ? "job" : "user");
    }
#define X(id, field, key, kind)                                                                \
    if (spec->book_limits.field < ST_UNSET || spec->book_limits.field > ST_QTY_MAX)            \
        return st_fail(err, ST_ERANGE, "account %s: its limit %s on bookings is out of range", \
                       spec->name, key);
    ST_BOOK_LIMIT_TABLE(X)
#undef X
    if (spec->min_run_ms < ST_UNSET || spec->min_run_ms > ST_QTY_MAX)
        return st_fail(err, ST_ERANGE, "account %s: its minimum run time is out of range",
                       spec->name);
    if (spec->trust > ST_TRUST_UNTRUSTED)
        return st_fail(err, ST_EINVAL, "account %s: its trust is unknown", spec->name);
    if (spec->priority < -ST_PRIO_MAX || spec->priority > ST_PRIO_MAX)
        return st_fail(err, ST_ERANGE, "account %s: its priority must be within ±%d", spec->name,
                       ST_PRIO_MAX);
    return 0;
}

static int check_quota(const st_tree *tree, const st_account *self, const st_account *parent,
                       const st_account_spec *spec, st_err *err)
{
    if (spec->guarantee.gpu_m != ST_UNSET && typed_sum_m(&spec->guarantee) > spec->guarantee.gpu_m)
        return st_fail(err, ST_EQUOTA,
                       "account %s: the typed guarantees add up to more than its gpu guarantee",
                       spec->name);
    for (int dim = 0; dim < ST_NDIMS; dim++) {
        dim_row d = {.name = st_dim_name((st_dim)dim), .milli = dim != ST_RAM};
        int rc = check_dim(tree, self, parent, spec, &d, dim, -1, err);
        if (rc < 0)
            return rc;
    }
    for (int t = 0; t < ST_TYPES_MAX; t++) {
        dim_row d = {.name = "gpu of one type", .milli = true};
        int rc = check_dim(tree, self, parent, spec, &d, ST_GPU, t, err);
        if (rc < 0)
            return rc;
    }
    return check_named(tree, self, parent, spec, err);
}

static void assign(st_account *a, const st_account_spec *spec)
{
    a->guarantee = spec->guarantee;
    a->max = spec->max;
    a->weight_m = spec->weight_m;
    a->priority = spec->priority;
    a->job_limits = spec->job_limits;
    a->user_limits = spec->user_limits;
    a->book_limits = spec->book_limits;
    a->trust = spec->trust;
    a->own_domain = spec->own_domain;
    a->min_run_ms = spec->min_run_ms;
}

int st_tree_check(const st_tree *tree, const st_account_spec *spec, st_err *err)
{
    if (!st_name_ok(spec->name))
        return st_fail(err, ST_EINVAL,
                       "an account's name must be 1 to %d bytes without spaces or control "
                       "characters",
                       ST_NAME_MAX);
    int32_t parent_id = spec->parent ? st_tree_find(tree, spec->parent) : ST_ROOT;
    if (parent_id < 0)
        return st_fail(err, ST_ENOENT, "account %s: its parent %s does not exist", spec->name,
                       spec->parent);
    if (spec->weight_m < 0 || spec->weight_m > ST_QTY_MAX)
        return st_fail(err, ST_ERANGE, "account %s: weight is out of range", spec->name);
    int32_t id = st_tree_find(tree, spec->name);
    if (id == ST_ROOT)
        return st_fail(err, ST_EINVAL, "the account name \"cluster\" is the whole fleet's own");
    const st_account *parent = st_tree_account(tree, parent_id);
    const st_account *self = id < 0 ? NULL : st_tree_account(tree, id);
    if (self && self->parent != parent_id)
        return st_fail(err, ST_ESTATE, "account %s: its parent is %s and cannot be changed to %s",
                       spec->name, st_tree_account(tree, self->parent)->name, parent->name);
    if (parent->depth + 1 > ST_DEPTH_MAX)
        return st_fail(err, ST_ELIMIT, "account %s: it would be level %d, at most %d are allowed",
                       spec->name, parent->depth + 1, ST_DEPTH_MAX);
    if (!self && tree->accounts.n - tree->ngone >= ST_ACCOUNTS_MAX)
        return st_fail(err, ST_ELIMIT, "account %s: there are %d accounts already", spec->name,
                       ST_ACCOUNTS_MAX);
    if (!self && tree->accounts.n >= ST_PLACES_MAX)
        return st_fail(err, ST_ELIMIT,
                       "account %s: %d accounts were made, and the records of removed ones stay",
                       spec->name, ST_PLACES_MAX);
    int rc = check_range(spec, err);
    if (rc == 0)
        rc = check_quota(tree, self, parent, spec, err);
    return rc;
}

int st_tree_set(st_tree *tree, const st_account_spec *spec, int32_t *ret_id, st_err *err)
{
    int rc = st_tree_check(tree, spec, err);
    if (rc < 0)
        return rc;
    int32_t parent_id = spec->parent ? st_tree_find(tree, spec->parent) : ST_ROOT;
    int32_t id = st_tree_find(tree, spec->name);
    st_account *parent = st_tree_account(tree, parent_id);
    st_account *self = id < 0 ? NULL : st_tree_account(tree, id);
    if (!self) {
        id = (int32_t)tree->accounts.n;
        self = account_new(id, parent_id, spec->name);
        self->depth = parent->depth + 1;
        self->serial = ++tree->serials;
        if (spec->named)
            tree->named = self->serial;
        st_vec_push(&tree->accounts, self);
        st_map_put(tree->ids, spec->name, id);
        self->again = st_map_get(tree->had, spec->name, NULL);
        st_map_put(tree->had, spec->name, id);
        st_vec_push(&parent->children, id);
    }
    assign(self, spec);
    tree->print = st_hash_u64(tree->print, tree->accounts.n);
    tree->floored++;
    if (ret_id)
        *ret_id = id;
    return 0;
}

int st_tree_remove(st_tree *tree, int32_t id, st_err *err)
{
    st_account *a = st_tree_account(tree, id);

    if (id == ST_ROOT)
        return st_fail(err, ST_EINVAL, "the cluster itself cannot be removed");
    if (a->gone)
        return st_fail(err, ST_ENOENT, "account %s does not exist", a->name);
    if (a->children.n > 0)
        return st_fail(err, ST_ESTATE, "account %s has %zu accounts below it; remove those first",
                       a->name, a->children.n);
    st_account *parent = st_tree_account(tree, a->parent);
    for (size_t i = 0; i < parent->children.n; i++)
        if (parent->children.v[i] == id) {
            st_vec_remove(&parent->children, i);
            break;
        }
    st_map_del(tree->ids, a->name);
    st_account_spec nothing;
    st_account_spec_init(&nothing);
    assign(a, &nothing);
    a->gone = true;
    tree->ngone++;
    return 0;
}

bool st_tree_untrusted(const st_tree *tree, int32_t account)
{
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent) {
        const st_account *a = st_tree_account(tree, i);

        if (a->trust == ST_TRUST_UNTRUSTED)
            return true;
        if (a->trust == ST_TRUST_TRUSTED && ST_BROKEN(ABSORBING))
            return false;
    }
    return false;
}

int32_t st_tree_domain(const st_tree *tree, int32_t account)
{
    int32_t i = account;
    for (;;) {
        const st_account *a = st_tree_account(tree, i);
        if (a->own_domain || a->depth <= 1)
            return i;
        i = a->parent;
    }
}

int64_t st_tree_min_run_ms(const st_tree *tree, int32_t account, int64_t otherwise)
{
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent)
        if (st_tree_account(tree, i)->min_run_ms != ST_UNSET)
            return st_tree_account(tree, i)->min_run_ms;
    return otherwise;
}

bool st_tree_within(const st_tree *tree, int32_t account, int32_t above)
{
    for (int32_t i = account; i >= 0; i = st_tree_account(tree, i)->parent)
        if (i == above)
            return true;
    return false;
}

int32_t st_tree_meet(const st_tree *tree, int32_t a, int32_t b, int32_t *ret_a, int32_t *ret_b)
{
    int32_t ca = a, cb = b;
    while (a != b) {
        const st_account *x = st_tree_account(tree, a), *y = st_tree_account(tree, b);
        if (x->depth >= y->depth) {
            ca = a;
            a = x->parent;
        }
        if (y->depth >= x->depth) {
            cb = b;
            b = y->parent;
        }
    }
    *ret_a = ca;
    *ret_b = cb;
    return a;
}
