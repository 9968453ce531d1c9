/* What the fleet carries: against adding up anew at every moment. */
#include "base/rng.h"
#include "base/testing.h"
#include "calendar/promises.h"

#define GPU INT64_C(1000)

static void set(st_tree *tree, const char *name, const char *parent, int64_t gpu, int64_t typed)
{
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    spec.guarantee.gpu_m = gpu;
    spec.guarantee.type_m[0] = typed;
    st_err err = {0};
    assert_ok(st_tree_set(tree, &spec, NULL, &err));
}

static st_carrier carrier(const st_tree *tree, int64_t gpus)
{
    st_carrier c = {.tree = tree, .types = 2, .share_m = 1000, .account_share_m = 1000};
    c.capacity.gpu_m = gpus * GPU;
    c.capacity.type_m[0] = gpus * GPU;
    c.capacity.cpu_m = c.capacity.ram_mib = 1000000;
    return c;
}

static st_booked row(const st_tree *tree, const char *account, int64_t from, int64_t to,
                     int64_t gpus)
{
    return (st_booked){.account = st_tree_find(tree, account),
                       .type = 0,
                       .from_ms = from,
                       .to_ms = to,
                       .gpu_m = gpus * GPU};
}

/* A booking uses its account's guarantee first, then what nobody was promised. */
static void test_own_first(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    set(tree, "a", NULL, 8 * GPU, ST_UNSET);
    set(tree, "b", NULL, 8 * GPU, ST_UNSET);
    st_carrier c = carrier(tree, 20);
    st_booked_vec list = {0};
    st_vec_push(&list, row(tree, "a", 100, 200, 8));
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_NOT);
    list.v[0].gpu_m = 12 * GPU;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_NOT);
    list.v[0].gpu_m = 13 * GPU;
    st_tight t = st_promises_check(&c, &list, 0, 1000);
    assert_int_equal(t.why, ST_TIGHT_FLOORS);
    assert_int_equal(t.at_ms, 100);
    assert_int_equal(t.need, 21 * GPU);
    assert_int_equal(st_promises_check(&c, &list, 200, 300).why, ST_TIGHT_NOT);
    list.v[0].gpu_m = 12 * GPU;
    c.reserve_m[0] = GPU;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_FLOORS);
    c.reserve_m[0] = 0;
    c.share_m = 500;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_SHARE);
    c.share_m = 1000;
    c.account_share_m = 500;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_ACCOUNT_SHARE);
    st_vec_free(&list);
    st_tree_free(tree);
}

/* What would be guaranteed beside what is booked. */
static void test_change(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    set(tree, "a", NULL, 8 * GPU, ST_UNSET);
    st_carrier c = carrier(tree, 20);
    st_booked_vec list = {0};
    st_vec_push(&list, row(tree, "a", 100, 200, 12));
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = "new";
    spec.guarantee.gpu_m = 8 * GPU;
    c.spec = &spec;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_NOT);
    spec.guarantee.gpu_m = 9 * GPU;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_FLOORS);
    spec.name = "a";
    spec.guarantee.gpu_m = 20 * GPU;
    assert_int_equal(st_promises_check(&c, &list, 0, 1000).why, ST_TIGHT_NOT);
    st_vec_free(&list);
    st_tree_free(tree);
}

static void test_left(void **state)
{
    (void)state;
    st_tree *tree = st_tree_new();
    set(tree, "org", NULL, 16 * GPU, 8 * GPU);
    set(tree, "team", "org", 8 * GPU, ST_UNSET);
    set(tree, "rest", "org", 4 * GPU, ST_UNSET);
    set(tree, "none", "org", ST_UNSET, ST_UNSET);
    st_booked_vec list = {0};
    st_quota left[5];
    st_vec_push(&list, row(tree, "team", 0, 1, 10)); /* 2 beyond its own */
    st_promises_left(tree, 2, &list, left);
    assert_int_equal(left[st_tree_find(tree, "team")].gpu_m, 0);
    assert_int_equal(left[st_tree_find(tree, "rest")].gpu_m, 4 * GPU);
    assert_int_equal(left[st_tree_find(tree, "org")].gpu_m, 6 * GPU);
    assert_int_equal(left[st_tree_find(tree, "org")].type_m[0], 0);
    assert_int_equal(left[st_tree_find(tree, "none")].gpu_m, ST_UNSET);
    st_vec_free(&list);
    st_tree_free(tree);
}

/* ---- against the slow way ------------------------------------------------------------------ */

static int64_t booked_at(const st_booked_vec *list, int32_t account, int64_t at)
{
    int64_t sum = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].account == account && list->v[i].from_ms <= at && at < list->v[i].to_ms)
            sum += list->v[i].gpu_m;
    return sum;
}

static int64_t need_at(const st_tree *tree, const st_booked_vec *list, int32_t account, int64_t at)
{
    const st_account *a = st_tree_account(tree, account);
    int64_t below = booked_at(list, account, at);
    for (size_t i = 0; i < a->children.n; i++)
        below += need_at(tree, list, a->children.v[i], at);
    return account == ST_ROOT || a->guarantee.gpu_m < below ? below : a->guarantee.gpu_m;
}

static void test_random(void **state)
{
    (void)state;
    st_rng rng;
    st_rng_seed(&rng, 16);
    int tights = 0;
    for (int round = 0; round < 300; round++) {
        st_tree *tree = st_tree_new();
        static const char *const names[] = {"a", "b", "aa", "ab", "ba"};
        static const char *const parents[] = {NULL, NULL, "a", "a", "b"};
        for (int i = 0; i < 5; i++) {
            int64_t gpus = (int64_t)st_rng_below(&rng, i < 2 ? 9 : 4);
            set(tree, names[i], parents[i], i < 2 ? (8 + gpus) * GPU : gpus * GPU, ST_UNSET);
        }
        st_carrier c = carrier(tree, 22 + (int64_t)st_rng_below(&rng, 16));
        c.share_m = c.account_share_m = 100000; /* more than there is */
        st_booked_vec list = {0};
        for (uint64_t n = st_rng_below(&rng, 12); n > 0; n--) {
            int64_t from = (int64_t)st_rng_below(&rng, 40);
            st_vec_push(&list, row(tree, names[st_rng_below(&rng, 5)], from,
                                   from + 1 + (int64_t)st_rng_below(&rng, 20),
                                   1 + (int64_t)st_rng_below(&rng, 8)));
        }
        int64_t first = -1;
        for (int64_t at = 5; at < 50 && first < 0; at++) {
            bool any = false;
            for (size_t i = 0; i < list.n; i++)
                any |= list.v[i].from_ms <= at && at < list.v[i].to_ms;
            if (any && need_at(tree, &list, ST_ROOT, at) > c.capacity.gpu_m)
                first = at;
        }
        st_tight t = st_promises_check(&c, &list, 5, 50);
        assert_int_equal(t.why, first < 0 ? ST_TIGHT_NOT : ST_TIGHT_FLOORS);
        if (first >= 0)
            assert_int_equal(t.at_ms, first);
        tights += first >= 0;
        st_vec_free(&list);
        st_tree_free(tree);
    }
    assert_true(tights > 30 && tights < 270); /* both were seen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_first),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
