/* Needs of accounts with bookings, kept up while these come and go in time; see promises.h. */
#include "calendar/promises.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/mem.h"
#include "base/mutant.h"

/* Dimensions: GPU types, then CPU and RAM; GPUs in all are kept beside them. */
#define DIMS (ST_TYPES_MAX + 2)
#define CPU  ST_TYPES_MAX
#define RAM  (ST_TYPES_MAX + 1)

typedef struct row {
    int32_t parent;
    int64_t own[DIMS]; /* guarantees, 0 where none */
    int64_t own_all;
    int64_t below[DIMS];  /* booked by it, and the needs of those below */
    int64_t booked[DIMS]; /* by it and those below */
    int64_t below_all, typed_all, need_all, booked_all;
} row;

typedef struct needs {
    row *rows;
    size_t n;
    int types;
} needs;

static int64_t need_of(const row *r, int dim)
{
    return ST_MAX(r->own[dim], r->below[dim]);
}

static int64_t need_all(const row *r)
{
    return ST_MAX(r->own_all, ST_MAX(r->below_all, r->typed_all));
}

static void set_own(row *r, const st_quota *q)
{
    for (int t = 0; t < ST_TYPES_MAX; t++)
        r->own[t] = ST_MAX(q->type_m[t], 0);
    r->own[CPU] = ST_MAX(q->cpu_m, 0);
    r->own[RAM] = ST_MAX(q->ram_mib, 0);
    r->own_all = st_quota_gpu_m(q);
}

/* Accounts come after their parents: backwards, children are first. */
static void add_up(needs *n, const st_tree *tree)
{
    for (size_t i = n->n; i-- > 0;) {
        row *r = &n->rows[i];
        if (i < tree->accounts.n && tree->accounts.v[i]->gone)
            continue;
        r->typed_all = 0;
        for (int t = 0; t < n->types; t++)
            r->typed_all += need_of(r, t);
        r->need_all = need_all(r);
        if (r->parent < 0)
            continue;
        row *up = &n->rows[r->parent];
        for (int d = 0; d < DIMS; d++)
            up->below[d] += need_of(r, d);
        up->below_all += r->need_all;
    }
}

static void needs_init(needs *n, const st_tree *tree, int types, const st_account_spec *spec)
{
    int32_t changed = spec ? st_tree_find(tree, spec->name) : -1;
    bool added = spec && changed < 0;
    *n = (needs){.n = tree->accounts.n + added, .types = types};
    n->rows = st_xcalloc(n->n, sizeof *n->rows);
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_account *a = tree->accounts.v[i];
        n->rows[i].parent = a->parent;
        if (i != ST_ROOT && !a->gone)
            set_own(&n->rows[i], (int32_t)i == changed ? &spec->guarantee : &a->guarantee);
    }
    if (added) {
        row *r = &n->rows[tree->accounts.n];
        r->parent = spec->parent ? st_tree_find(tree, spec->parent) : ST_ROOT;
        set_own(r, &spec->guarantee);
    }
    add_up(n, tree);
}

/* One dimension of one account and of those above it. */
static void move(needs *n, int32_t account, int dim, int64_t by)
{
    int64_t more = by;
    for (int32_t i = account; i >= 0; i = n->rows[i].parent) {
        row *r = &n->rows[i];
        int64_t old = need_of(r, dim);
        r->booked[dim] += by;
        r->below[dim] += more;
        more = need_of(r, dim) - old;
        if (dim < n->types)
            r->typed_all += more;
    }
}

static void apply(needs *n, const st_booked *b, int sign)
{
    move(n, b->account, b->type, sign * b->gpu_m);
    move(n, b->account, CPU, sign * b->cpu_m);
    move(n, b->account, RAM, sign * b->ram_mib);
    int64_t more = sign * b->gpu_m;
    for (int32_t i = b->account; i >= 0; i = n->rows[i].parent) {
        row *r = &n->rows[i];
        r->booked_all += sign * b->gpu_m;
        r->below_all += more;
        int64_t old = r->need_all;
        r->need_all = need_all(r);
        more = r->need_all - old;
    }
}

/* ---- at every moment ---------------------------------------------------------------------- */

typedef struct edge {
    int64_t at_ms;
    const st_booked *booked;
    int sign;
} edge;

/* Who ends goes before who begins. */
static int by_time(const void *pa, const void *pb)
{
    const edge *a = pa, *b = pb;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    if (a->sign != b->sign)
        return a->sign < b->sign ? -1 : 1;
    return a->booked < b->booked ? -1 : a->booked > b->booked;
}

static int64_t part_of(int64_t amount, int64_t milli)
{
    return amount / 1000 * milli + amount % 1000 * milli / 1000;
}

/* The account below the cluster that it belongs to. */
static int32_t top_of(const needs *n, int32_t account)
{
    while (n->rows[account].parent > ST_ROOT)
        account = n->rows[account].parent;
    return account;
}

static bool tight(st_tight *ret, st_tight_why why, st_dim dim, int32_t type, int64_t need,
                  int64_t have)
{
    if (need <= have || ST_BROKEN(BOOK_FLOORS))
        return false;
    *ret = (st_tight){.why = why, .dim = dim, .type = type, .need = need, .have = have};
    return true;
}

/* Whether it is too much after one more has begun. */
static bool is_tight(const st_carrier *c, const needs *n, const st_booked *b, st_tight *ret)
{
    const row *root = &n->rows[ST_ROOT], *top = &n->rows[top_of(n, b->account)];
    int64_t have_m = c->capacity.type_m[b->type], reserve_m = 0;
    for (int t = 0; t < n->types; t++)
        reserve_m += root->booked[t] > 0 ? c->reserve_m[t] : 0;
    return tight(ret, ST_TIGHT_SHARE, ST_GPU, b->type, root->booked[b->type],
                 part_of(have_m, c->share_m)) ||
           tight(ret, ST_TIGHT_ACCOUNT_SHARE, ST_GPU, b->type, top->booked[b->type],
                 part_of(have_m, c->account_share_m)) ||
           tight(ret, ST_TIGHT_FLOORS, ST_GPU, b->type,
                 need_of(root, b->type) + c->reserve_m[b->type], have_m) ||
           tight(ret, ST_TIGHT_FLOORS, ST_GPU, -1, root->need_all + reserve_m, c->capacity.gpu_m) ||
           tight(ret, ST_TIGHT_FLOORS, ST_CPU, -1, need_of(root, CPU), c->capacity.cpu_m) ||
           tight(ret, ST_TIGHT_FLOORS, ST_RAM, -1, need_of(root, RAM), c->capacity.ram_mib);
}

st_tight st_promises_check(const st_carrier *c, const st_booked_vec *booked, int64_t from_ms,
                           int64_t to_ms)
{
    st_tight ret = {.why = ST_TIGHT_NOT};
    ST_VEC(edge) edges = {0};
    needs n;
    for (size_t i = 0; i < booked->n; i++) {
        const st_booked *b = &booked->v[i];
        if (b->to_ms <= from_ms || b->from_ms >= to_ms)
            continue;
        st_vec_push(&edges, (edge){ST_MAX(b->from_ms, from_ms), b, 1});
        st_vec_push(&edges, (edge){b->to_ms, b, -1});
    }
    if (edges.n > 1)
        qsort(edges.v, edges.n, sizeof *edges.v, by_time);
    needs_init(&n, c->tree, c->types, c->spec);
    for (size_t i = 0; i < edges.n && edges.v[i].at_ms < to_ms; i++) {
        apply(&n, edges.v[i].booked, edges.v[i].sign);
        if (edges.v[i].sign > 0 && is_tight(c, &n, edges.v[i].booked, &ret)) {
            ret.at_ms = edges.v[i].at_ms;
            break;
        }
    }
    free(n.rows);
    st_vec_free(&edges);
    return ret;
}

/* ---- what is left ------------------------------------------------------------------------- */

static int64_t left(int64_t guarantee, int64_t need, int64_t booked)
{
    return guarantee == ST_UNSET ? ST_UNSET : ST_MIN(guarantee, ST_MAX(need - booked, 0));
}

void st_promises_left(const st_tree *tree, int types, const st_booked_vec *booked, st_quota *ret)
{
    needs n;
    needs_init(&n, tree, types, NULL);
    for (size_t i = 0; i < booked->n; i++)
        apply(&n, &booked->v[i], 1);
    for (size_t i = 0; i < tree->accounts.n; i++) {
        const st_quota *g = &tree->accounts.v[i]->guarantee;
        const row *r = &n.rows[i];
        ret[i] = *g;
        for (int t = 0; t < types; t++)
            ret[i].type_m[t] = left(g->type_m[t], need_of(r, t), r->booked[t]);
        ret[i].gpu_m = left(g->gpu_m, r->need_all, r->booked_all);
        ret[i].cpu_m = left(g->cpu_m, need_of(r, CPU), r->booked[CPU]);
        ret[i].ram_mib = left(g->ram_mib, need_of(r, RAM), r->booked[RAM]);
    }
    free(n.rows);
}
