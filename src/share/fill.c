/*
 * Water-filling and largest remainder (share/fill.h).
 *
 * The sum of all x as a function of the level is continuous, never falls and is
 * straight between breakpoints (the levels at which some x leaves lo or reaches
 * hi). So: sort the breakpoints, find by bisection the two that enclose the
 * answer, and solve the one linear equation between them. Nothing is iterated
 * to a tolerance, and sums are taken afresh at each probe rather than updated,
 * so no rounding error is carried along.
 */
#include "share/fill.h"

#include <math.h>
#include <stdbool.h>

#include "base/mem.h"

void st_sum_add(st_sum *s, double x)
{
    double t = s->sum + x;

    if (fabs(s->sum) >= fabs(x))
        s->lost += (s->sum - t) + x;
    else
        s->lost += (x - t) + s->sum;
    s->sum = t;
}

double st_sum_get(const st_sum *s)
{
    return s->sum + s->lost;
}

static double level_lo(const st_fill_item *it)
{
    return (it->lo - it->offset) / it->weight;
}

static double level_hi(const st_fill_item *it)
{
    return (it->hi - it->offset) / it->weight;
}

static double item_at(const st_fill_item *it, double level)
{
    return ST_MAX(it->lo, ST_MIN(it->hi, it->offset + level * it->weight));
}

static double total_at(const st_fill_item *items, int n, double level)
{
    st_sum total = {0};

    for (int i = 0; i < n; i++)
        st_sum_add(&total, item_at(&items[i], level));
    return st_sum_get(&total);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The last breakpoint at which no more than amount is taken. */
static double breakpoint_below(double amount, const st_fill_item *items, int n)
{
    ST_CLEANUP(st_freep) double *points = st_xcalloc(2 * (size_t)n, sizeof(*points));
    int below = 0, above = 2 * n;

    for (int i = 0; i < n; i++) {
        points[2 * i] = level_lo(&items[i]);
        points[2 * i + 1] = level_hi(&items[i]);
    }
    qsort(points, 2 * (size_t)n, sizeof(*points), by_value);
    while (above - below > 1) {
        int mid = below + (above - below) / 2;

        if (total_at(items, n, points[mid]) <= amount)
            below = mid;
        else
            above = mid;
    }
    return points[below];
}

void st_fill(double amount, st_fill_item *items, int n)
{
    double level;
    st_sum fixed = {0}, weights = {0}, lo = {0}, hi = {0};

    for (int i = 0; i < n; i++) {
        ST_ASSERT(items[i].weight > 0 && items[i].lo <= items[i].hi);
        ST_ASSERT(items[i].offset <= items[i].lo);
        st_sum_add(&lo, items[i].lo);
        st_sum_add(&hi, items[i].hi);
    }
    if (amount <= st_sum_get(&lo) || amount >= st_sum_get(&hi)) {
        for (int i = 0; i < n; i++)
            items[i].x = amount >= st_sum_get(&hi) ? items[i].hi : items[i].lo;
        return;
    }

    level = breakpoint_below(amount, items, n);
    for (int i = 0; i < n; i++) {
        st_fill_item *it = &items[i];

        if (level_hi(it) <= level) {
            st_sum_add(&fixed, it->hi);
        } else if (level_lo(it) > level) {
            st_sum_add(&fixed, it->lo);
        } else {
            st_sum_add(&fixed, it->offset);
            st_sum_add(&weights, it->weight);
        }
    }
    if (st_sum_get(&weights) > 0)
        level = ST_MAX(level, (amount - st_sum_get(&fixed)) / st_sum_get(&weights));
    for (int i = 0; i < n; i++)
        items[i].x = item_at(&items[i], level);
}

double st_whole_slack(double total)
{
    /* A few dozen roundings of the total, and never so much that a whole could be off by one. */
    return ST_MIN(0.25, ST_MAX(1e-9, total * 1e-14));
}

typedef struct remainder_row {
    double rest;
    int i;
} remainder_row;

static int by_remainder(const void *a, const void *b)
{
    const remainder_row *x = a, *y = b;

    if (x->rest != y->rest)
        return x->rest > y->rest ? -1 : 1;
    return (x->i > y->i) - (x->i < y->i);
}

static int by_index(const void *a, const void *b)
{
    const remainder_row *x = a, *y = b;

    return (x->i > y->i) - (x->i < y->i);
}

/* Of the sorted rows, those around the cut at `at` that differ only by rounding are put into the
 * order of their index, which is the order of names. */
static void break_ties(remainder_row *rows, int n, int at, double slack)
{
    int from = at, to = at;

    if (at <= 0 || at >= n)
        return;
    while (to < n && rows[to - 1].rest - rows[to].rest <= slack)
        to++;
    while (from > 0 && from < to && rows[from - 1].rest - rows[from].rest <= slack)
        from--;
    qsort(rows + from, (size_t)(to - from), sizeof(*rows), by_index);
}

void st_wholes(int64_t total, const double *shares, int n, double slack, int64_t *ret)
{
    ST_CLEANUP(st_freep) remainder_row *rows = st_xcalloc((size_t)n, sizeof(*rows));
    int64_t over = total;
    bool missing;

    for (int i = 0; i < n; i++) {
        ret[i] = (int64_t)floor(shares[i]);
        rows[i] = (remainder_row){shares[i] - (double)ret[i], i};
        over -= ret[i];
    }
    /* A tie broken one level up can leave a unit less than the children's floors; then the last
     * of the smallest remainders goes without. */
    missing = over < 0;
    ST_ASSERT(over <= n && over >= -n);
    qsort(rows, (size_t)n, sizeof(*rows), by_remainder);
    break_ties(rows, n, (int)(missing ? n + over : over), slack);
    for (int k = missing ? n + (int)over : 0; k < (missing ? n : (int)over); k++)
        ret[rows[k].i] += missing ? -1 : 1;
}
