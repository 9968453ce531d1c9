/*
 * What a guarantee would cut: nothing while the capacity carries it, else every floor that comes out lower and
 * what the account itself is short of.
 */
#include "admit/admit.h"
#include "base/testing.h"

#define A  0
#define B  1
#define NO ST_UNSET

static st_account_spec spec_of(const char *name, const char *parent, int64_t gpu_m, int64_t a_m)
{
    st_account_spec spec;

    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.guarantee.gpu_m = gpu_m;
    spec.guarantee.type_m[A] = a_m;
    return spec;
}

static void put(st_tree *tree, const char *name, const char *parent, int64_t gpu_m, int64_t a_m)
{
    st_account_spec spec = spec_of(name, parent, gpu_m, a_m);
    st_err err = {0};

    assert_ok(st_tree_set(tree, &spec, NULL, &err));
}

static const st_floor_cut *cut_of(const st_tree *tree, const st_floor_cut_vec *cuts,
                                  const char *name, int32_t type)
{
    int32_t id = st_tree_find(tree, name);

    for (size_t i = 0; i < cuts->n; i++)
        if (cuts->v[i].account == (id < 0 ? (int32_t)tree->accounts.n : id) &&
            cuts->v[i].type == type)
            return &cuts->v[i];
    return NULL;
}

/* 144 GPUs: 96 of type A, 48 of type B. */
static st_tree *make(void)
{
    st_tree *tree = st_tree_new();

    put(tree, "acme", NULL, 96000, NO);
    put(tree, "vision", "acme", 48000, NO);
    tree->capacity = (st_use){144000, 1000, 1000, {96000, 48000}};
    st_admit_floors(tree);
    return tree;
}

static void test_what_fits_cuts_nothing(void **state)
{
    st_tree *tree = make();
    st_account_spec spec = spec_of("lab", NULL, 48000, NO);
    st_floor_cut_vec cuts = {0};
    st_use promised;

    (void)state;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(cuts.n, 0);
    assert_int_equal(promised.gpu_m, 144000);
    spec = spec_of("acme", NULL, 144000, NO); /* one that is there */
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(cuts.n, 0);
    assert_int_equal(promised.gpu_m, 144000);
    st_vec_free(&cuts);
    st_tree_free(tree);
}

static void test_everybody_pays(void **state)
{
    st_tree *tree = make();
    st_account_spec spec = spec_of("lab", NULL, 500000, NO);
    st_floor_cut_vec cuts = {0};
    st_use promised;
    const st_floor_cut *cut;

    (void)state;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(promised.gpu_m, 596000);
    assert_int_equal(cuts.n, 3);
    cut = cut_of(tree, &cuts, "vision", -1);
    assert_non_null(cut);
    assert_int_equal(cut->before, 48000);
    assert_int_equal(cut->after, 48000 * INT64_C(144) / 596);
    cut = cut_of(tree, &cuts, "lab", -1);
    assert_non_null(cut);
    assert_int_equal(cut->promised, 500000);
    assert_int_equal(cut->before, 0);
    assert_int_equal(cut->after, 500000 * INT64_C(144) / 596);
    /* The tree itself is as it was. */
    assert_int_equal(tree->accounts.n, 3);
    assert_int_equal(tree->accounts.v[ST_ROOT]->children.n, 1);
    assert_int_equal(tree->accounts.v[1]->floor.gpu_m, 96000);
    st_vec_free(&cuts);
    st_tree_free(tree);
}

static void test_a_type_that_is_short(void **state)
{
    st_tree *tree = make();
    st_account_spec spec = spec_of("vision", "acme", 48000, NO);
    st_floor_cut_vec cuts = {0};
    const st_floor_cut *cut;
    st_use promised;

    (void)state;
    spec.guarantee.type_m[B] = 48000;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(cuts.n, 0); /* all there are */
    put(tree, "lab", NULL, 16000, NO);
    spec = spec_of("lab", NULL, 24000, NO);
    spec.guarantee.type_m[B] = 24000;
    tree->accounts.v[2]->guarantee.type_m[B] = 48000;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(promised.type_m[B], 72000);
    cut = cut_of(tree, &cuts, "vision", B);
    assert_non_null(cut);
    assert_int_equal(cut->after, 32000);
    cut = cut_of(tree, &cuts, "lab", B);
    assert_non_null(cut);
    assert_int_equal(cut->after, 16000);
    st_vec_free(&cuts);
    st_tree_free(tree);
}

/* Whoever lowers a guarantee, or raises something else, is not held to what others have overdrawn. */
static void test_less_is_never_a_cut(void **state)
{
    st_tree *tree = make();
    st_account_spec spec = spec_of("vision", "acme", 40000, NO);
    st_floor_cut_vec cuts = {0};

    (void)state;
    put(tree, "greedy", NULL, 500000, NO);
    st_admit_floors(tree);
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, NULL);
    assert_int_equal(cuts.n, 0);
    spec = spec_of("greedy", NULL, 48000, NO);
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, NULL);
    assert_int_equal(cuts.n, 0);
    spec = spec_of("greedy", NULL, 501000, NO);
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, NULL);
    assert_int_equal(cuts.n, 3);
    st_vec_free(&cuts);
    st_tree_free(tree);
}

static void test_cpu_and_ram(void **state)
{
    st_tree *tree = make();
    st_account_spec spec = spec_of("lab", NULL, NO, NO);
    st_floor_cut_vec cuts = {0};
    st_use promised;

    (void)state;
    spec.guarantee.cpu_m = 1000;
    spec.guarantee.ram_mib = 1000;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(cuts.n, 0);
    spec.guarantee.ram_mib = 1001;
    st_admit_cuts(tree, &tree->capacity, &spec, &cuts, &promised);
    assert_int_equal(cuts.n, 1);
    assert_int_equal(cuts.v[0].dim, ST_RAM);
    assert_int_equal(cuts.v[0].after, 1000);
    assert_int_equal(promised.ram_mib, 1001);
    st_vec_free(&cuts);
    st_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_fits_cuts_nothing),
        cmocka_unit_test(test_everybody_pays),
        cmocka_unit_test(test_a_type_that_is_short),
        cmocka_unit_test(test_less_is_never_a_cut),
        cmocka_unit_test(test_cpu_and_ram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
