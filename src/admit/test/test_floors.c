/*
 * Floors: full while the capacity covers the guarantees, shrunk in proportion when it does
 * not, the same for everybody who asks.
 */
#include "admit/admit.h"
#include "base/macros.h"
#include "base/rng.h"
#include "base/testing.h"

#define A 0
#define B 1

typedef struct row {
    const char *name, *parent;
    int64_t gpu_m, a_m, b_m, cpu_m, ram_mib;
} row;

#define NO ST_UNSET

static void put(st_tree *tree, const row *r)
{
    st_err err = {0};
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = r->name;
    spec.parent = r->parent;
    spec.guarantee.gpu_m = r->gpu_m;
    spec.guarantee.type_m[A] = r->a_m;
    spec.guarantee.type_m[B] = r->b_m;
    spec.guarantee.cpu_m = r->cpu_m;
    spec.guarantee.ram_mib = r->ram_mib;
    assert_ok(st_tree_set(tree, &spec, NULL, &err));
}

static void capacity(st_tree *tree, int64_t a_m, int64_t b_m, int64_t cpu_m, int64_t ram_mib)
{
    tree->capacity = (st_use){a_m + b_m, cpu_m, ram_mib, {a_m, b_m}};
}

static const st_quota *floor_of(const st_tree *tree, const char *name)
{
    return &st_tree_account(tree, st_tree_find(tree, name))->floor;
}

static void test_full_while_covered(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, 6000, 2000, NO, 1000, 10});
    put(tree, &(row){"y", NULL, NO, NO, 4000, NO, NO});
    put(tree, &(row){"z", NULL, NO, NO, NO, NO, NO});
    capacity(tree, 6000, 4000, 1000, 10);
    assert_true(st_admit_floors(tree));
    assert_false(tree->shrunk);
    for (size_t i = 1; i < tree->accounts.n; i++)
        assert_memory_equal(&tree->accounts.v[i]->floor, &tree->accounts.v[i]->guarantee,
                            sizeof(st_quota));
    assert_false(st_admit_floors(tree)); /* nothing changed since */
    capacity(tree, 60000, 40000, 10000, 100);
    assert_false(st_admit_floors(tree)); /* more capacity promises no more */
    assert_false(tree->shrunk);
    st_tree_free(tree);
}

/* 12 promised, 8 there: two thirds each, rounded down, at every level. */
static void test_in_proportion(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, 8000, NO, NO, NO, NO});
    put(tree, &(row){"x1", "x", 5000, NO, NO, NO, NO});
    put(tree, &(row){"x2", "x", 1000, NO, NO, NO, NO});
    put(tree, &(row){"y", NULL, 4000, NO, NO, NO, NO});
    capacity(tree, 8000, 0, 0, 0);
    assert_true(st_admit_floors(tree));
    assert_true(tree->shrunk);
    assert_int_equal(floor_of(tree, "x")->gpu_m, 5333);
    assert_int_equal(floor_of(tree, "x1")->gpu_m, 3333);
    assert_int_equal(floor_of(tree, "x2")->gpu_m, 666);
    assert_int_equal(floor_of(tree, "y")->gpu_m, 2666);
    assert_int_equal(floor_of(tree, "x")->type_m[A], ST_UNSET); /* what was not given stays so */
    assert_int_equal(st_tree_account(tree, 1)->guarantee.gpu_m, 8000);

    capacity(tree, 0, 0, 0, 0);
    assert_true(st_admit_floors(tree));
    assert_int_equal(floor_of(tree, "x")->gpu_m, 0);
    capacity(tree, 12000, 0, 0, 0); /* and back again, without a trace */
    assert_true(st_admit_floors(tree));
    assert_false(tree->shrunk);
    assert_int_equal(floor_of(tree, "x1")->gpu_m, 5000);
    st_tree_free(tree);
}

/* Only the dimension that is short shrinks. */
static void test_cpu_and_ram(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, 4000, NO, NO, 30000, 300});
    put(tree, &(row){"y", NULL, NO, NO, NO, 10000, 100});
    capacity(tree, 8000, 0, 20000, 400);
    assert_true(st_admit_floors(tree));
    assert_true(tree->shrunk);
    assert_int_equal(floor_of(tree, "x")->gpu_m, 4000);
    assert_int_equal(floor_of(tree, "x")->cpu_m, 15000);
    assert_int_equal(floor_of(tree, "y")->cpu_m, 5000);
    assert_int_equal(floor_of(tree, "x")->ram_mib, 300);
    assert_int_equal(floor_of(tree, "y")->ram_mib, 100);
    assert_int_equal(floor_of(tree, "y")->gpu_m, ST_UNSET);
    capacity(tree, 8000, 0, 40000, 100);
    assert_true(st_admit_floors(tree));
    assert_int_equal(floor_of(tree, "x")->cpu_m, 30000);
    assert_int_equal(floor_of(tree, "x")->ram_mib, 75);
    assert_int_equal(floor_of(tree, "y")->ram_mib, 25);
    st_tree_free(tree);
}

/* A type that lost nodes is shared out by its own factor; the other type is left alone. */
static void test_typed(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, NO, 6000, 2000, NO, NO});
    put(tree, &(row){"y", NULL, NO, 3000, NO, NO, NO});
    capacity(tree, 3000, 20000, 0, 0);
    assert_true(st_admit_floors(tree));
    assert_true(tree->shrunk);
    assert_int_equal(floor_of(tree, "x")->type_m[A], 2000);
    assert_int_equal(floor_of(tree, "y")->type_m[A], 1000);
    assert_int_equal(floor_of(tree, "x")->type_m[B], 2000);
    st_tree_free(tree);
}

/* Typed entries follow when the total shrinks below their sum. */
static void test_typed_within_total(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, 8000, 4000, 4000, NO, NO});
    put(tree, &(row){"y", NULL, 8000, NO, NO, NO, NO});
    capacity(tree, 4000, 4000, 0, 0);
    assert_true(st_admit_floors(tree));
    assert_int_equal(floor_of(tree, "x")->gpu_m, 4000);
    assert_int_equal(floor_of(tree, "y")->gpu_m, 4000);
    assert_int_equal(floor_of(tree, "x")->type_m[A], 2000);
    assert_int_equal(floor_of(tree, "x")->type_m[B], 2000);
    st_tree_free(tree);
}

/* x has 8: 4 of A by name, and 4 of B by name in x1. Half the fleet is gone, so x has 4: 2 of
 * A and 2 of B. Were A left at 4, x's floor of 4 would have to deliver 6, and nobody in x
 * could be guaranteed at all. */
static void test_typed_shrinks_with_the_total(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, 8000, 4000, NO, NO, NO});
    put(tree, &(row){"x1", "x", NO, NO, 4000, NO, NO});
    put(tree, &(row){"y", NULL, 8000, NO, NO, NO, NO});
    capacity(tree, 4000, 4000, 0, 0);
    assert_true(st_admit_floors(tree));
    const st_account *x = st_tree_account(tree, st_tree_find(tree, "x"));
    assert_int_equal(x->floor.gpu_m, 4000);
    assert_true(x->need_sum_m <= 4000);
    st_need a = {A, 1000, 0, 0}, b = {B, 1000, 0, 0};
    assert_true(st_admit_guaranteed(tree, x->id, &a, NULL));
    assert_true(st_admit_guaranteed(tree, st_tree_find(tree, "x1"), &b, NULL));
    st_tree_free(tree);
}

/* p was promised 4 A and nothing else; three of them failed. Its child cannot keep more than
 * the one that is left. */
static void test_untyped_child_of_typed(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"p", NULL, NO, 4000, NO, NO, NO});
    put(tree, &(row){"c", "p", 4000, NO, NO, NO, NO});
    capacity(tree, 1000, 9000, 0, 0);
    assert_true(st_admit_floors(tree));
    assert_int_equal(st_quota_gpu_m(floor_of(tree, "p")), 1000);
    assert_true(floor_of(tree, "c")->gpu_m <= 1000);
    st_tree_free(tree);
}

/* What is guaranteed at the moment is not touched, and the needs follow the new floors. */
static void test_use_is_kept(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    put(tree, &(row){"x", NULL, NO, 4000, NO, NO, NO});
    capacity(tree, 4000, 0, 0, 0);
    st_admit_floors(tree);
    st_need need = {A, 3000, 0, 0};
    st_admit_charge(tree, 1, &need, ST_NOW | ST_NEXT | ST_GUARANTEED, 1);
    assert_int_equal(tree->accounts.v[ST_ROOT]->need_sum_m, 4000);
    capacity(tree, 2000, 0, 0, 0);
    st_admit_floors(tree);
    assert_int_equal(floor_of(tree, "x")->type_m[A], 2000);
    assert_int_equal(st_tree_account(tree, 1)->guaranteed.gpu_m, 3000);
    assert_int_equal(st_tree_account(tree, 1)->need_sum_m, 3000);
    assert_int_equal(tree->accounts.v[ST_ROOT]->below_m[A], 3000);
    st_need more = {A, 1, 0, 0};
    assert_false(st_admit_guaranteed(tree, 1, &more, NULL));
    st_tree_free(tree);
}

/* ---- random trees -------------------------------------------------------------------- */

#define ACCOUNTS 12

static const char *const names[ACCOUNTS] = {"a", "b", "c", "d", "e", "f",
                                            "g", "h", "i", "j", "k", "l"};

/* Whether the guarantees as they stand can be kept at all: at every account the types promised
 * by name, in it and below, add up to no more than its total. */
static bool keepable(const st_tree *tree)
{
    int64_t need[ACCOUNTS + 1][2] = {0};
    for (size_t i = tree->accounts.n; i-- > 1;) {
        const st_account *a = tree->accounts.v[i];
        for (int t = A; t <= B; t++) {
            need[i][t] = ST_MAX(need[i][t], a->guarantee.type_m[t]);
            need[a->parent][t] += need[i][t];
        }
        if (st_quota_has_gpu(&a->guarantee) &&
            need[i][A] + need[i][B] > st_quota_gpu_m(&a->guarantee))
            return false;
    }
    return true;
}

/* Accounts that st_tree_set takes and that can be kept; *ret_bad: one was taken that cannot. */
static int draw_rows(st_rng *r, row *rows, bool *ret_bad)
{
    st_tree *tree = st_tree_new();
    int n = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        row x = {names[i], NULL, NO, NO, NO, NO, NO};
        if (n > 0 && st_rng_chance(r, 2, 3))
            x.parent = rows[st_rng_below(r, (uint64_t)n)].name;
        if (st_rng_chance(r, 2, 3))
            x.gpu_m = st_rng_range(r, 0, 9000);
        if (st_rng_chance(r, 1, 2))
            x.a_m = st_rng_range(r, 0, 4000);
        if (st_rng_chance(r, 1, 2))
            x.b_m = st_rng_range(r, 0, 4000);
        if (st_rng_chance(r, 1, 2))
            x.cpu_m = st_rng_range(r, 0, 9000);
        if (st_rng_chance(r, 1, 2))
            x.ram_mib = st_rng_range(r, 0, 900);
        st_account_spec spec;
        st_account_spec_init(&spec);
        spec.name = x.name;
        spec.parent = x.parent;
        spec.guarantee.gpu_m = x.gpu_m;
        spec.guarantee.type_m[A] = x.a_m;
        spec.guarantee.type_m[B] = x.b_m;
        spec.guarantee.cpu_m = x.cpu_m;
        spec.guarantee.ram_mib = x.ram_mib;
        if (st_tree_set(tree, &spec, NULL, NULL) < 0)
            continue;
        if (!keepable(tree)) {
            *ret_bad = true;
            break;
        }
        rows[n++] = x;
    }
    st_tree_free(tree);
    return n;
}

/* What was accepted can be kept when nothing has failed. */
static void test_promises_can_be_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        st_rng r;
        row rows[ACCOUNTS];
        bool bad = false;
        st_rng_seed(&r, seed);
        draw_rows(&r, rows, &bad);
        if (bad)
            fail_msg("seed %d: typed guarantees below an account pass its total", (int)seed);
    }
}

/* Whether the row's parent stands already. */
static bool ready(const st_tree *tree, const row *r)
{
    return !r->parent || st_tree_find(tree, r->parent) >= 0;
}

/* Accounts made in another order, capacity lost in other steps: the same floors by name. */
static void test_order_does_not_matter(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        st_rng r;
        row rows[ACCOUNTS];
        st_rng_seed(&r, seed);
        bool bad = false;
        int n = draw_rows(&r, rows, &bad);
        int64_t a = st_rng_range(&r, 0, 12000), b = st_rng_range(&r, 0, 12000);
        int64_t cpu = st_rng_range(&r, 0, 20000), ram = st_rng_range(&r, 0, 2000);
        st_tree *x = st_tree_new(), *y = st_tree_new();
        for (int i = 0; i < n; i++)
            put(x, &rows[i]);
        capacity(x, a, b, cpu, ram);
        st_admit_floors(x);

        capacity(y, 12000, 12000, 20000, 2000);
        bool made[ACCOUNTS] = {0};
        for (int left = n; left > 0;) {
            int i = (int)st_rng_below(&r, (uint64_t)n);
            if (made[i] || !ready(y, &rows[i]))
                continue;
            put(y, &rows[i]);
            st_admit_floors(y);
            made[i] = true;
            left--;
        }
        capacity(y, a, 12000, cpu, 2000);
        st_admit_floors(y);
        capacity(y, a / 2, b, cpu, ram / 2);
        st_admit_floors(y);
        capacity(y, a, b, cpu, ram);
        st_admit_floors(y);
        assert_int_equal(x->shrunk, y->shrunk);
        for (int i = 0; i < n; i++)
            assert_memory_equal(floor_of(x, rows[i].name), floor_of(y, rows[i].name),
                                sizeof(st_quota));
        st_tree_free(x);
        st_tree_free(y);
    }
}

static int64_t above(int64_t v)
{
    return ST_MAX(v, 0);
}

/* Floors are within guarantees, children's within the parent's, all of them within capacity. */
static void test_floors_are_coverable(void **state)
{
    (void)state;
    int shrunk = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        st_rng r;
        row rows[ACCOUNTS];
        st_rng_seed(&r, seed + 1000);
        bool bad = false;
        int n = draw_rows(&r, rows, &bad);
        st_tree *tree = st_tree_new();
        for (int i = 0; i < n; i++)
            put(tree, &rows[i]);
        capacity(tree, st_rng_range(&r, 0, 9000), st_rng_range(&r, 0, 9000),
                 st_rng_range(&r, 0, 9000), st_rng_range(&r, 0, 900));
        st_admit_floors(tree);
        shrunk += tree->shrunk;
        for (size_t i = 0; i < tree->accounts.n; i++) {
            const st_account *a = tree->accounts.v[i];
            int64_t gpu = 0, cpu = 0, ram = 0;
            for (size_t c = 0; c < a->children.n; c++) {
                const st_quota *f = &st_tree_account(tree, a->children.v[c])->floor;
                gpu += st_quota_gpu_m(f);
                cpu += above(f->cpu_m);
                ram += above(f->ram_mib);
            }
            bool root = i == ST_ROOT;
            int64_t top = root ? tree->capacity.gpu_m : st_quota_gpu_m(&a->floor);
            assert_true(gpu <= top);
            assert_true(a->need_sum_m <= top);
            assert_true(cpu <= (root ? tree->capacity.cpu_m : above(a->floor.cpu_m)));
            assert_true(ram <= (root ? tree->capacity.ram_mib : above(a->floor.ram_mib)));
            if (root) {
                assert_true(a->below_m[A] <= tree->capacity.type_m[A]);
                assert_true(a->below_m[B] <= tree->capacity.type_m[B]);
                continue;
            }
            assert_true(a->floor.gpu_m <= a->guarantee.gpu_m);
            assert_true(a->floor.type_m[A] <= a->guarantee.type_m[A]);
            assert_true(a->floor.type_m[B] <= a->guarantee.type_m[B]);
        }
        st_tree_free(tree);
    }
    assert_true(shrunk > 50 && shrunk < 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_while_covered),
        cmocka_unit_test(test_in_proportion),
        cmocka_unit_test(test_cpu_and_ram),
        cmocka_unit_test(test_typed),
        cmocka_unit_test(test_typed_within_total),
        cmocka_unit_test(test_typed_shrinks_with_the_total),
        cmocka_unit_test(test_untyped_child_of_typed),
        cmocka_unit_test(test_use_is_kept),
        cmocka_unit_test(test_promises_can_be_kept),
        cmocka_unit_test(test_order_does_not_matter),
        cmocka_unit_test(test_floors_are_coverable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
