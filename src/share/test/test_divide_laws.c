/*
 * What must hold for every tree st_share_divide is given: random trees, checked
 * against the rules themselves and not against a second implementation.
 */
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/testing.h"
#include "share/divide.h"

#define TREES     4000
#define NODES_MAX 40
#define LARGE     100000

typedef struct forest {
    st_divide_in in[NODES_MAX];
    st_divide_out out[NODES_MAX];
    char names[NODES_MAX][16];
    double want[NODES_MAX];
    int n;
    double capacity, left;
    int64_t left_whole;
    st_share_counts counts;
} forest;

static const double eps = 1e-9;

static double amount(st_rng *r, int64_t hi)
{
    double x = (double)st_rng_range(r, 0, hi);

    return st_rng_chance(r, 1, 3) ? x + st_rng_unit(r) : x;
}

static bool has_children(const forest *f, int i)
{
    for (int k = 0; k < f->n; k++)
        if (f->in[k].parent == i)
            return true;
    return false;
}

/* What the issue calls demand up to max, summed up the tree; parents precede their children. */
static void compute_wants(forest *f)
{
    for (int i = f->n - 1; i >= 0; i--) {
        const st_divide_in *a = &f->in[i];
        double want = 0;

        for (int k = i + 1; k < f->n; k++)
            if (f->in[k].parent == i)
                want += f->want[k];
        if (!has_children(f, i))
            want = a->demand;
        want = fmin(want, a->max);
        f->want[i] = a->weight > 0 ? want : fmin(want, a->guarantee);
    }
}

/* Guarantees of children stay within the parent's, as the parsers see to. */
static void draw_forest(st_rng *r, forest *f)
{
    double spare[NODES_MAX];

    f->n = (int)st_rng_range(r, 1, NODES_MAX);
    f->capacity = amount(r, 100);
    f->counts = st_rng_chance(r, 1, 2) ? ST_COUNTS_TOTAL : ST_COUNTS_BORROWED;
    for (int i = 0; i < f->n; i++) {
        st_divide_in *a = &f->in[i];

        snprintf(f->names[i], sizeof(f->names[i]), "%c%d", 'a' + (int)st_rng_below(r, 26), i);
        a->name = f->names[i];
        a->parent = (int)st_rng_range(r, -1, ST_MIN(i - 1, 6));
        a->weight = st_rng_chance(r, 1, 8) ? 0 : (double)st_rng_range(r, 1, 6) / 2;
        a->priority = st_rng_chance(r, 1, 4) ? (int)st_rng_range(r, -2, 2) : 0;
        a->demand = amount(r, 30);
        a->guarantee = st_rng_chance(r, 1, 2) ? amount(r, 15) : 0;
        if (a->parent >= 0) {
            a->guarantee = fmin(a->guarantee, spare[a->parent]);
            spare[a->parent] -= a->guarantee;
        }
        spare[i] = a->guarantee;
        a->max = st_rng_chance(r, 1, 3) ? a->guarantee + amount(r, 10) : INFINITY;
    }
    compute_wants(f);
}

static double amount_of(const forest *f, int parent)
{
    return parent < 0 ? f->capacity : f->out[parent].share;
}

/* Conservation: children add up to the parent, in shares and in wholes. */
static void check_sums(const forest *f, int parent)
{
    double given = 0, wanted = 0;
    int64_t wholes = 0;
    int children = 0;

    for (int i = 0; i < f->n; i++) {
        if (f->in[i].parent != parent)
            continue;
        children++;
        given += f->out[i].share;
        wanted += f->want[i];
        wholes += f->out[i].whole;
        assert_true(f->out[i].share >= 0);
        assert_true(f->out[i].share <= f->want[i] + eps);
        assert_true(fabs((double)f->out[i].whole - f->out[i].share) < 1);
    }
    if (children == 0)
        return;
    /* Nothing is idle that a child may take, and no more than there is was given. */
    assert_true(fabs(given - fmin(amount_of(f, parent), wanted)) < eps * 100);
    if (parent >= 0) {
        assert_true(fabs(given - f->out[parent].share) < eps * 100);
        assert_int_equal(wholes, f->out[parent].whole);
    } else {
        assert_int_equal(wholes, (int64_t)floor(given + eps));
        assert_true(fabs(given + f->left - f->capacity) < eps * 100);
        assert_int_equal(wholes + f->left_whole, (int64_t)floor(f->capacity + eps));
    }
}

/* Guarantees: met when they fit; shrunken by one factor when they do not. */
static void check_guarantees(const forest *f, int parent)
{
    double bases = 0, factor = 0;

    for (int i = 0; i < f->n; i++)
        if (f->in[i].parent == parent)
            bases += fmin(f->in[i].guarantee, f->want[i]);
    for (int i = 0; i < f->n; i++) {
        double base = fmin(f->in[i].guarantee, f->want[i]), share = f->out[i].share;

        if (f->in[i].parent != parent)
            continue;
        if (bases <= amount_of(f, parent)) {
            assert_true(share >= base - eps);
        } else {
            assert_true(share <= base + eps);
            if (base > 0)
                factor = fmax(factor, share / f->in[i].guarantee);
        }
    }
    for (int i = 0; bases > amount_of(f, parent) && i < f->n; i++) {
        double base = fmin(f->in[i].guarantee, f->want[i]);

        if (f->in[i].parent == parent)
            assert_true(fabs(f->out[i].share - fmin(base, factor * f->in[i].guarantee)) < 1e-7);
    }
}

/* No envy: an account that wants more has no less, per weight, than a sibling of its priority that
 * borrows, and no sibling of lower priority borrows at all. */
static void check_envy(const forest *f)
{
    for (int i = 0; i < f->n; i++) {
        const st_divide_in *a = &f->in[i];
        double base_i = fmin(a->guarantee, f->want[i]);
        double from_i = f->counts == ST_COUNTS_TOTAL ? 0 : base_i;

        if (a->weight == 0 || f->out[i].share >= f->want[i] - 1e-7)
            continue;
        for (int k = 0; k < f->n; k++) {
            const st_divide_in *b = &f->in[k];
            double base_k = fmin(b->guarantee, f->want[k]);
            double from_k = f->counts == ST_COUNTS_TOTAL ? 0 : base_k;

            if (b->parent != a->parent || f->out[k].share <= base_k + 1e-7)
                continue;
            assert_true(b->weight > 0);
            assert_true(b->priority >= a->priority);
            if (b->priority == a->priority)
                assert_true((f->out[i].share - from_i) / a->weight >=
                            (f->out[k].share - from_k) / b->weight - 1e-7);
        }
    }
}

static void divide(forest *f)
{
    st_share_divide(f->capacity, f->counts, f->in, f->n, f->out, &f->left, &f->left_whole);
}

static void test_laws(void **state)
{
    st_rng r;

    (void)state;
    st_rng_seed(&r, 20240607);
    for (int t = 0; t < TREES; t++) {
        forest f = {0};

        draw_forest(&r, &f);
        divide(&f);
        for (int parent = -1; parent < f.n; parent++) {
            check_sums(&f, parent);
            check_guarantees(&f, parent);
        }
        check_envy(&f);
    }
}

/* The same tree in another order: bit for bit the same result. */
static void test_order(void **state)
{
    st_rng r;

    (void)state;
    st_rng_seed(&r, 7);
    for (int t = 0; t < TREES / 4; t++) {
        forest f = {0}, g;
        int at[NODES_MAX] = {0};

        draw_forest(&r, &f);
        divide(&f);
        g = f;
        for (int i = 0; i < f.n; i++)
            at[i] = i;
        for (int i = f.n - 1; i > 0; i--) {
            int k = (int)st_rng_below(&r, (uint64_t)i + 1), keep = at[i];

            at[i] = at[k];
            at[k] = keep;
        }
        for (int i = 0; i < f.n; i++) {
            g.in[at[i]] = f.in[i];
            if (f.in[i].parent >= 0)
                g.in[at[i]].parent = at[f.in[i].parent];
        }
        divide(&g);
        assert_true(g.left == f.left);
        for (int i = 0; i < f.n; i++) {
            assert_true(g.out[at[i]].share == f.out[i].share);
            assert_int_equal(g.out[at[i]].whole, f.out[i].whole);
        }
    }
}

/* A hundred thousand siblings, and as many in a tree: a quadratic step would show as minutes. */
static void test_large(void **state)
{
    ST_CLEANUP(st_freep) st_divide_in *in = st_xcalloc(LARGE, sizeof(*in));
    ST_CLEANUP(st_freep) st_divide_out *out = st_xcalloc(LARGE, sizeof(*out));
    ST_CLEANUP(st_freep) char *names = st_xcalloc(LARGE, 16);
    st_rng r;

    (void)state;
    st_rng_seed(&r, 3);
    for (int round = 0; round < 2; round++) {
        double sum = 0, left;
        int64_t wholes = 0, left_whole;

        for (int i = 0; i < LARGE; i++) {
            snprintf(names + 16 * i, 16, "n%d", i);
            in[i] = (st_divide_in){.parent = round && i >= 100 ? i / 100 : -1,
                                   .name = names + 16 * i,
                                   .guarantee = round ? 0 : st_rng_unit(&r),
                                   .max = INFINITY,
                                   .demand = 20 * st_rng_unit(&r),
                                   .weight = 1 + st_rng_unit(&r)};
        }
        st_share_divide(500000, ST_COUNTS_BORROWED, in, LARGE, out, &left, &left_whole);
        for (int i = 0; i < LARGE; i++) {
            if (in[i].parent >= 0)
                continue;
            sum += out[i].share;
            wholes += out[i].whole;
        }
        assert_true(fabs(sum + left - 500000) < 1e-5);
        assert_int_equal(wholes + left_whole, 500000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
