/*
 * Dividing a capacity over a tree (share/divide.h): demands are summed from the
 * leaves up, amounts handed from the top down, then rounded from the top down.
 *
 * Invariants:
 *   1. Siblings are always walked in the order of their names, so the order of
 *      the input cannot reach the result, not even through rounding.
 *   2. want = min(demand, max, capacity), for weight 0 also min(guarantee); an
 *      inner account demands what its children want. No share exceeds want.
 *   3. A level hands out min(its amount, the sum of its wants): nothing stays
 *      idle that a child may take.
 */
#include "share/divide.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "share/fill.h"

/* The accounts in the order (depth, parent, name): each one's children lie side by side. */
typedef struct node {
    const st_divide_in *in;
    int index; /* in the caller's arrays */
    int first, count;
    double want, base, share;
    int64_t whole;
} node;

typedef struct tree {
    node *nodes;
    int n, top; /* the first `top` nodes have no parent */
    st_share_counts counts;
    double capacity;
    st_fill_item *items; /* scratch, one per node */
    int *picked;         /* scratch: the node behind each item */
} tree;

typedef struct order_row {
    int parent, index;
    const char *name;
} order_row;

static int by_parent_and_name(const void *a, const void *b)
{
    const order_row *x = a, *y = b;
    int c;

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    c = strcmp(x->name, y->name);
    return c != 0 ? c : (x->index > y->index) - (x->index < y->index);
}

static void check_input(const st_divide_in *in, int n)
{
    for (int i = 0; i < n; i++) {
        ST_ASSERT(in[i].parent >= -1 && in[i].parent < n);
        ST_ASSERT(in[i].guarantee >= 0 && isfinite(in[i].guarantee));
        ST_ASSERT(in[i].max >= 0 && in[i].demand >= 0);
        ST_ASSERT(in[i].weight == 0 ||
                  (in[i].weight >= ST_DIVIDE_WEIGHT_MIN && in[i].weight <= ST_DIVIDE_WEIGHT_MAX));
    }
}

/* Lays the tree out level by level. */
static void tree_layout(tree *t, const st_divide_in *in, int n)
{
    ST_CLEANUP(st_freep) order_row *rows = st_xcalloc((size_t)n, sizeof(*rows));
    ST_CLEANUP(st_freep) int *first = st_xcalloc((size_t)n + 1, sizeof(*first));
    ST_CLEANUP(st_freep) int *count = st_xcalloc((size_t)n + 1, sizeof(*count));
    int done;

    for (int i = 0; i < n; i++)
        rows[i] = (order_row){in[i].parent, i, in[i].name ? in[i].name : ""};
    qsort(rows, (size_t)n, sizeof(*rows), by_parent_and_name);
    for (int r = n - 1; r >= 0; r--) {
        first[rows[r].parent + 1] = r;
        count[rows[r].parent + 1]++;
    }

    done = t->top = count[0];
    for (int i = 0; i < done; i++)
        t->nodes[i].index = rows[i].index;
    for (int i = 0; i < done; i++) {
        node *nd = &t->nodes[i];

        nd->in = &in[nd->index];
        nd->first = done;
        nd->count = count[nd->index + 1];
        for (int k = 0; k < nd->count; k++)
            t->nodes[done++].index = rows[first[nd->index + 1] + k].index;
    }
    ST_ASSERT(done == n); /* else the parents form a cycle */
}

static void sum_wants(tree *t)
{
    for (int i = t->n - 1; i >= 0; i--) {
        node *nd = &t->nodes[i];
        st_sum below = {0};

        for (int k = 0; k < nd->count; k++)
            st_sum_add(&below, t->nodes[nd->first + k].want);
        nd->want = nd->count > 0 ? st_sum_get(&below) : nd->in->demand;
        nd->want = ST_MIN(nd->want, ST_MIN(nd->in->max, t->capacity));
        if (nd->in->weight == 0)
            nd->want = ST_MIN(nd->want, nd->in->guarantee);
    }
}

/* Rule 1: sets base, and share to it; returns what remains of the amount. */
static double give_guarantees(tree *t, double amount, int first, int count)
{
    st_sum bases = {0};
    int n = 0;

    for (int i = first; i < first + count; i++) {
        node *nd = &t->nodes[i];

        nd->base = nd->share = ST_MIN(nd->in->guarantee, nd->want);
        st_sum_add(&bases, nd->base);
        if (nd->base > 0) {
            t->items[n] = (st_fill_item){.hi = nd->base, .weight = nd->in->guarantee};
            t->picked[n++] = i;
        }
    }
    if (st_sum_get(&bases) <= amount)
        return amount - st_sum_get(&bases);
    st_fill(amount, t->items, n);
    for (int k = 0; k < n; k++)
        t->nodes[t->picked[k]].share = t->items[k].x;
    return 0;
}

/* Rule 2 for the accounts in picked, all of one priority; returns what they leave of the rest. */
static double give_surplus(tree *t, double rest, const int *picked, int n)
{
    st_sum bases = {0}, wants = {0};

    for (int k = 0; k < n; k++) {
        node *nd = &t->nodes[picked[k]];

        st_sum_add(&bases, nd->base);
        st_sum_add(&wants, nd->want);
        t->items[k] = (st_fill_item){
            .lo = nd->base,
            .hi = nd->want,
            .offset = t->counts == ST_COUNTS_TOTAL ? 0 : nd->base,
            .weight = nd->in->weight,
        };
    }
    st_fill(rest + st_sum_get(&bases), t->items, n);
    for (int k = 0; k < n; k++)
        t->nodes[picked[k]].share = t->items[k].x;
    return ST_MAX(0.0, rest - (st_sum_get(&wants) - st_sum_get(&bases)));
}

static int by_priority(const void *a, const void *b, void *nodes)
{
    int i = *(const int *)a, k = *(const int *)b;
    int p = ((const node *)nodes)[i].in->priority, q = ((const node *)nodes)[k].in->priority;

    if (p != q)
        return p > q ? -1 : 1;
    return (i > k) - (i < k);
}

/* Divides the amount over the nodes first .. first+count-1, which are siblings. */
static void divide_level(tree *t, double amount, int first, int count)
{
    double rest = give_guarantees(t, amount, first, count);
    int n = 0;

    for (int i = first; i < first + count; i++)
        if (t->nodes[i].want > t->nodes[i].base)
            t->picked[n++] = i;
    qsort_r(t->picked, (size_t)n, sizeof(*t->picked), by_priority, t->nodes);
    for (int from = 0, to; from < n && rest > 0; from = to) {
        int priority = t->nodes[t->picked[from]].in->priority;

        for (to = from + 1; to < n && t->nodes[t->picked[to]].in->priority == priority;)
            to++;
        rest = give_surplus(t, rest, t->picked + from, to - from);
    }
}

static void round_level(tree *t, int64_t total, int first, int count)
{
    ST_CLEANUP(st_freep) double *shares = st_xcalloc((size_t)count, sizeof(*shares));
    ST_CLEANUP(st_freep) int64_t *wholes = st_xcalloc((size_t)count, sizeof(*wholes));

    for (int k = 0; k < count; k++)
        shares[k] = t->nodes[first + k].share;
    st_wholes(total, shares, count, st_whole_slack(t->capacity), wholes);
    for (int k = 0; k < count; k++)
        t->nodes[first + k].whole = wholes[k];
}

static void divide_tree(tree *t, double *ret_given, int64_t *ret_given_whole)
{
    st_sum given = {0};

    sum_wants(t);
    divide_level(t, t->capacity, 0, t->top);
    for (int i = 0; i < t->top; i++)
        st_sum_add(&given, t->nodes[i].share);
    *ret_given = st_sum_get(&given);
    *ret_given_whole = (int64_t)floor(*ret_given + st_whole_slack(t->capacity));
    round_level(t, *ret_given_whole, 0, t->top);
    for (int i = 0; i < t->n; i++) {
        const node *nd = &t->nodes[i];

        if (nd->count == 0)
            continue;
        divide_level(t, nd->share, nd->first, nd->count);
        round_level(t, nd->whole, nd->first, nd->count);
    }
}

static void tree_done(tree *t)
{
    free(t->nodes);
    free(t->items);
    free(t->picked);
}

void st_share_divide(double capacity, st_share_counts counts, const st_divide_in *in, int n,
                     st_divide_out *ret, double *ret_left, int64_t *ret_left_whole)
{
    ST_CLEANUP(tree_done) tree t = {.n = n, .counts = counts, .capacity = capacity};
    double given = 0, slack = st_whole_slack(capacity);
    int64_t given_whole = 0;

    ST_ASSERT(capacity >= 0 && capacity <= ST_DIVIDE_AMOUNT_MAX);
    ST_ASSERT(n >= 0);
    check_input(in, n);
    if (n > 0) {
        t.nodes = st_xcalloc((size_t)n, sizeof(*t.nodes));
        t.items = st_xcalloc((size_t)n, sizeof(*t.items));
        t.picked = st_xcalloc((size_t)n, sizeof(*t.picked));
        tree_layout(&t, in, n);
        divide_tree(&t, &given, &given_whole);
    }
    for (int i = 0; i < n; i++)
        ret[t.nodes[i].index] = (st_divide_out){t.nodes[i].share, t.nodes[i].whole};
    if (ret_left)
        *ret_left = capacity - given > slack ? capacity - given : 0;
    if (ret_left_whole)
        *ret_left_whole = (int64_t)floor(capacity + slack) - given_whole;
}
