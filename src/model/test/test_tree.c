/*
 * The tree of accounts: what may be written, what is refused, what is inherited.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "model/tree.h"

typedef struct world {
    st_tree *tree;
    st_account_spec spec;
} world;

static void begin(world *w)
{
    w->tree = st_tree_new();
    st_account_spec_init(&w->spec);
}

static void end(world *w)
{
    st_tree_free(w->tree);
}

static st_account_spec named(const char *name, const char *parent)
{
    st_account_spec spec;
    st_account_spec_init(&spec);
    spec.name = name;
    spec.parent = parent;
    return spec;
}

static int32_t put(world *w, const st_account_spec *spec)
{
    st_err err = {0};
    int32_t id = -1;
    assert_ok(st_tree_set(w->tree, spec, &id, &err));
    return id;
}

static int32_t put_gpu(world *w, const char *name, const char *parent, int64_t gpu_m)
{
    st_account_spec spec = named(name, parent);
    spec.guarantee.gpu_m = gpu_m;
    return put(w, &spec);
}

static int32_t put_typed(world *w, const char *name, const char *parent, int type, int64_t gpu_m)
{
    st_account_spec spec = named(name, parent);
    spec.guarantee.type_m[type] = gpu_m;
    return put(w, &spec);
}

/* Refused with that code and text, and nothing of it is there. */
static void refused(world *w, const st_account_spec *spec, int code, const char *text)
{
    st_err err = {0};
    size_t n = w->tree->accounts.n;
    int32_t id = 77, old = st_tree_find(w->tree, spec->name);
    st_account before = {0};
    if (old >= 0)
        before = *st_tree_account(w->tree, old);
    assert_fails(st_tree_set(w->tree, spec, &id, &err), code, text);
    assert_int_equal(id, 77);
    assert_int_equal(w->tree->accounts.n, n);
    assert_int_equal(st_tree_find(w->tree, spec->name), old);
    if (old >= 0)
        assert_memory_equal(&before, st_tree_account(w->tree, old), sizeof before);
}

static void test_create_and_change(void **state)
{
    (void)state;
    world w;
    begin(&w);
    assert_int_equal(st_tree_find(w.tree, "cluster"), ST_ROOT);
    assert_int_equal(st_tree_find(w.tree, "org"), -1);
    st_account_spec spec = named("org", NULL);
    spec.guarantee.gpu_m = 8000;
    spec.weight_m = 3000;
    int32_t org = put(&w, &spec);
    int32_t team = put_gpu(&w, "team", "org", 2000);
    assert_int_equal(org, st_tree_find(w.tree, "org"));
    const st_account *a = st_tree_account(w.tree, org), *b = st_tree_account(w.tree, team);
    assert_int_equal(a->depth, 1);
    assert_int_equal(a->parent, ST_ROOT);
    assert_int_equal(b->depth, 2);
    assert_int_equal(b->parent, org);
    assert_int_equal(a->children.n, 1);
    assert_int_equal(a->children.v[0], team);
    assert_int_equal(a->weight_m, 3000);
    assert_int_equal(b->weight_m, 1000);

    /* A change is the whole account written again: what is not named is not kept. */
    spec = named("org", NULL);
    spec.guarantee.gpu_m = 4000;
    assert_int_equal(put(&w, &spec), org);
    assert_int_equal(a->guarantee.gpu_m, 4000);
    assert_int_equal(a->weight_m, 1000);
    assert_int_equal(a->children.n, 1);
    assert_int_equal(w.tree->accounts.n, 3);
    end(&w);
}

static void test_names(void **state)
{
    (void)state;
    world w;
    begin(&w);
    char longest[ST_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[ST_NAME_MAX + 1] = 0;
    const char *const bad[] = {"", "a b", "a\tb", "a\n", "\x01", "del\x7f", longest};
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        assert_false(st_name_ok(bad[i]));
        st_account_spec spec = named(bad[i], NULL);
        refused(&w, &spec, ST_EINVAL, "name");
    }
    longest[ST_NAME_MAX] = 0;
    assert_true(st_name_ok(longest));
    assert_true(st_name_ok("Größe/ß-1_2.3"));
    put_gpu(&w, longest, NULL, 0);
    st_account_spec spec = named("cluster", NULL);
    refused(&w, &spec, ST_EINVAL, "cluster");
    spec = named("a", "nobody");
    refused(&w, &spec, ST_ENOENT, "nobody");
    end(&w);
}

static void test_depth(void **state)
{
    (void)state;
    world w;
    begin(&w);
    static const char *const names[] = {"l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9"};
    assert_int_equal(ST_DEPTH_MAX, 8);
    for (int i = 0; i < 8; i++) {
        st_account_spec spec = named(names[i], i == 0 ? NULL : names[i - 1]);
        assert_int_equal(st_tree_account(w.tree, put(&w, &spec))->depth, i + 1);
    }
    st_account_spec spec = named("l9", "l8");
    refused(&w, &spec, ST_ELIMIT, "level 9");
    end(&w);
}

/* A parent cannot be changed, so there is no way to write a cycle. */
static void test_no_cycle(void **state)
{
    (void)state;
    world w;
    begin(&w);
    put_gpu(&w, "a", NULL, ST_UNSET);
    put_gpu(&w, "b", "a", ST_UNSET);
    put_gpu(&w, "c", "b", ST_UNSET);
    st_account_spec spec = named("a", "c");
    refused(&w, &spec, ST_ESTATE, "cannot be changed");
    spec = named("a", "a");
    refused(&w, &spec, ST_ESTATE, "cannot be changed");
    spec = named("c", "a");
    refused(&w, &spec, ST_ESTATE, "its parent is b");
    spec = named("c", NULL);
    refused(&w, &spec, ST_ESTATE, "its parent is b");
    spec = named("new", "new");
    refused(&w, &spec, ST_ENOENT, "new");
    end(&w);
}

static void test_sum_of_guarantees(void **state)
{
    (void)state;
    world w;
    begin(&w);
    put_gpu(&w, "org", NULL, 8000);
    put_gpu(&w, "a", "org", 5000);
    st_account_spec spec = named("b", "org");
    spec.guarantee.gpu_m = 3001;
    refused(&w, &spec, ST_EQUOTA, "8.001");
    spec.guarantee.gpu_m = 3000;
    put(&w, &spec);
    spec.guarantee.gpu_m = 3001; /* a change is checked like a beginning */
    refused(&w, &spec, ST_EQUOTA, "8.001");
    spec = named("org", NULL);
    spec.guarantee.gpu_m = 7999; /* and the parent may not sink below its children */
    refused(&w, &spec, ST_EQUOTA, "the children's sum");
    spec.guarantee.gpu_m = ST_UNSET;
    refused(&w, &spec, ST_EQUOTA, "the children's sum");
    /* Nothing bounds those at the top: the fleet may shrink and grow. */
    put_gpu(&w, "other", NULL, ST_QTY_MAX);
    end(&w);
}

static void test_sum_of_cpu_and_ram(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec org = named("org", NULL);
    org.guarantee.cpu_m = 64000;
    org.guarantee.ram_mib = 1000;
    put(&w, &org);
    st_account_spec spec = named("a", "org");
    spec.guarantee.cpu_m = 64001;
    refused(&w, &spec, ST_EQUOTA, "would need 64.001");
    spec.guarantee.cpu_m = 64000;
    spec.guarantee.ram_mib = 1001;
    refused(&w, &spec, ST_EQUOTA, "ram");
    spec.guarantee.ram_mib = 1000;
    put(&w, &spec);
    spec = named("b", "org");
    spec.guarantee.cpu_m = 1;
    refused(&w, &spec, ST_EQUOTA, "cpu");
    spec.guarantee.cpu_m = 0;
    put(&w, &spec);
    org.guarantee.ram_mib = 999;
    refused(&w, &org, ST_EQUOTA, "ram");
    end(&w);
}

/* A child of a parent that was promised nothing can be promised nothing either. */
static void test_nothing_from_nothing(void **state)
{
    (void)state;
    world w;
    begin(&w);
    put_gpu(&w, "org", NULL, ST_UNSET);
    st_account_spec spec = named("a", "org");
    spec.guarantee.gpu_m = 1;
    refused(&w, &spec, ST_EQUOTA, "would need");
    spec = named("a", "org");
    spec.guarantee.type_m[3] = 1;
    refused(&w, &spec, ST_EQUOTA, "would need");
    spec = named("a", "org");
    spec.guarantee.gpu_m = 0;
    put(&w, &spec);
    end(&w);
}

static void test_guarantee_within_max(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.guarantee.gpu_m = 2000;
    spec.max.gpu_m = 1999;
    refused(&w, &spec, ST_EQUOTA, "above its max 1.999");
    spec.max.gpu_m = 2000;
    put(&w, &spec);
    spec = named("b", NULL);
    spec.guarantee.cpu_m = 2;
    spec.max.cpu_m = 1;
    refused(&w, &spec, ST_EQUOTA, "cpu");
    spec = named("b", NULL);
    spec.guarantee.ram_mib = 2;
    spec.max.ram_mib = 1;
    refused(&w, &spec, ST_EQUOTA, "ram");
    spec = named("b", NULL);
    spec.guarantee.type_m[2] = 2000;
    spec.max.type_m[2] = 1000;
    refused(&w, &spec, ST_EQUOTA, "max");
    /* Typed guarantees count against a max over all types. */
    spec = named("b", NULL);
    spec.guarantee.type_m[0] = spec.guarantee.type_m[1] = 1000;
    spec.max.gpu_m = 1500;
    refused(&w, &spec, ST_EQUOTA, "max");
    spec.max.gpu_m = 2000;
    put(&w, &spec);
    /* A ceiling of one type says nothing about the others. */
    spec = named("c", NULL);
    spec.guarantee.gpu_m = 5000;
    spec.max.type_m[0] = 1000;
    put(&w, &spec);
    end(&w);
}

static void test_typed_and_total(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec org = named("org", NULL);
    org.guarantee.gpu_m = 8000;
    org.guarantee.type_m[0] = 5000;
    org.guarantee.type_m[1] = 3001;
    refused(&w, &org, ST_EQUOTA, "add up to more");
    org.guarantee.type_m[1] = 1000;
    put(&w, &org);
    assert_int_equal(st_quota_gpu_m(&st_tree_account(w.tree, 1)->guarantee), 8000);

    put_typed(&w, "a", "org", 0, 5000);
    st_account_spec spec = named("b", "org");
    spec.guarantee.type_m[0] = 1;
    refused(&w, &spec, ST_EQUOTA, "gpu of one type"); /* total would do, the type would not */
    spec = named("b", "org");
    spec.guarantee.type_m[2] = 3001;
    refused(&w, &spec, ST_EQUOTA, "8.001"); /* a type org did not name: the total decides */
    put_typed(&w, "b", "org", 2, 2000);     /* beside 5 and 1 that org names itself */
    spec = named("c", "org");
    spec.guarantee.gpu_m = 1001;
    refused(&w, &spec, ST_EQUOTA, "8.001");
    spec.guarantee.gpu_m = 1000;
    put(&w, &spec);

    /* Only typed entries: their sum is the total. */
    st_quota q;
    st_quota_clear(&q);
    assert_false(st_quota_has_gpu(&q));
    assert_int_equal(st_quota_gpu_m(&q), 0);
    q.type_m[1] = 300;
    q.type_m[7] = 40;
    assert_true(st_quota_has_gpu(&q));
    assert_int_equal(st_quota_gpu_m(&q), 340);
    q.gpu_m = 0;
    assert_int_equal(st_quota_gpu_m(&q), 0);
    end(&w);
}

/* Promises by name add up with those the account names itself: 4 A of its own and 4 B below
 * do not fit into 4, at whatever depth they are made. */
static void test_typed_promises_below(void **state)
{
    (void)state;
    world w;
    begin(&w);
    put_typed(&w, "p", NULL, 0, 4000);
    st_account_spec spec = named("c", "p");
    spec.guarantee.type_m[1] = 4000;
    refused(&w, &spec, ST_EQUOTA, "guarantee");
    put_gpu(&w, "mid", "p", 4000); /* fine as long as it means type 0 */
    spec = named("leaf", "mid");
    spec.guarantee.type_m[1] = 4000;
    refused(&w, &spec, ST_EQUOTA, "guarantee");
    put_typed(&w, "leaf", "mid", 0, 4000);
    /* From the other side: the parent's own names come after the child's. */
    put_gpu(&w, "q", NULL, 4000);
    put_typed(&w, "d", "q", 1, 4000);
    spec = named("q", NULL);
    spec.guarantee.gpu_m = 4000;
    spec.guarantee.type_m[0] = 1;
    refused(&w, &spec, ST_EQUOTA, "guarantee");
    end(&w);
}

static void test_ranges(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.guarantee.gpu_m = ST_QTY_MAX + 1;
    refused(&w, &spec, ST_ERANGE, "out of range");
    spec = named("a", NULL);
    spec.max.ram_mib = ST_QTY_MAX + 1;
    refused(&w, &spec, ST_ERANGE, "out of range");
    spec = named("a", NULL);
    spec.max.type_m[15] = ST_QTY_MAX + 1;
    refused(&w, &spec, ST_ERANGE, "out of range");
    spec = named("a", NULL);
    spec.weight_m = -1;
    refused(&w, &spec, ST_ERANGE, "weight");
    spec.weight_m = ST_QTY_MAX + 1;
    refused(&w, &spec, ST_ERANGE, "weight");
    spec.weight_m = 0;
    put(&w, &spec);
    end(&w);
}

/* Below zero only ST_UNSET means something. */
static void test_negative_quota(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.guarantee.gpu_m = -2;
    refused(&w, &spec, ST_ERANGE, "range");
    spec = named("a", NULL);
    spec.max.cpu_m = -1000;
    refused(&w, &spec, ST_ERANGE, "range");
    spec = named("a", NULL);
    spec.max.type_m[0] = INT64_MIN;
    refused(&w, &spec, ST_ERANGE, "range");
    end(&w);
}

static void test_priority_range(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.priority = ST_PRIO_MAX;
    put(&w, &spec);
    spec.priority = ST_PRIO_MAX + 1;
    refused(&w, &spec, ST_ERANGE, "priority");
    spec.priority = -ST_PRIO_MAX - 1;
    refused(&w, &spec, ST_ERANGE, "priority");
    end(&w);
}

static void set_trust(world *w, const char *name, const char *parent, st_trust trust, bool own)
{
    st_account_spec spec = named(name, parent);
    spec.trust = trust;
    spec.own_domain = own;
    put(w, &spec);
}

/* And distrust absorbs: nothing below it is trusted, whatever is said there. */
static void test_trust_is_inherited(void **state)
{
    (void)state;
    world w;
    begin(&w);
    set_trust(&w, "org", NULL, ST_TRUST_UNTRUSTED, false);
    set_trust(&w, "team", "org", ST_TRUST_INHERIT, false);
    set_trust(&w, "good", "org", ST_TRUST_TRUSTED, false);
    set_trust(&w, "leaf", "good", ST_TRUST_INHERIT, false);
    set_trust(&w, "free", NULL, ST_TRUST_INHERIT, false);
    const struct {
        const char *name;
        bool untrusted;
    } rows[] = {{"org", true},  {"team", true},  {"good", true},
                {"leaf", true}, {"free", false}, {"cluster", false}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(st_tree_untrusted(w.tree, st_tree_find(w.tree, rows[i].name)),
                         rows[i].untrusted);
    end(&w);
}

/* A domain is the account at the top, unless one on the way says it is its own. */
static void test_trust_domains(void **state)
{
    (void)state;
    world w;
    begin(&w);
    set_trust(&w, "org", NULL, ST_TRUST_INHERIT, false);
    set_trust(&w, "team", "org", ST_TRUST_INHERIT, false);
    set_trust(&w, "island", "org", ST_TRUST_INHERIT, true);
    set_trust(&w, "hut", "island", ST_TRUST_INHERIT, false);
    set_trust(&w, "other", NULL, ST_TRUST_INHERIT, false);
    const struct {
        const char *name, *domain;
    } rows[] = {
        {"org", "org"},    {"team", "org"},    {"island", "island"},
        {"hut", "island"}, {"other", "other"},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(st_tree_domain(w.tree, st_tree_find(w.tree, rows[i].name)),
                         st_tree_find(w.tree, rows[i].domain));
    end(&w);
}

static void test_min_run_is_inherited(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("org", NULL);
    put(&w, &spec);
    spec = named("team", "org");
    spec.min_run_ms = 0;
    put(&w, &spec);
    spec = named("leaf", "team");
    put(&w, &spec);
    assert_int_equal(st_tree_min_run_ms(w.tree, st_tree_find(w.tree, "org"), 55), 55);
    assert_int_equal(st_tree_min_run_ms(w.tree, st_tree_find(w.tree, "team"), 55), 0);
    assert_int_equal(st_tree_min_run_ms(w.tree, st_tree_find(w.tree, "leaf"), 55), 0);
    end(&w);
}

static void test_within_and_meet(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t a = put_gpu(&w, "a", NULL, ST_UNSET), b = put_gpu(&w, "b", NULL, ST_UNSET);
    int32_t a1 = put_gpu(&w, "a1", "a", ST_UNSET), a2 = put_gpu(&w, "a2", "a", ST_UNSET);
    int32_t a11 = put_gpu(&w, "a11", "a1", ST_UNSET), a111 = put_gpu(&w, "a111", "a11", ST_UNSET);
    int32_t b1 = put_gpu(&w, "b1", "b", ST_UNSET);
    assert_true(st_tree_within(w.tree, a111, a));
    assert_true(st_tree_within(w.tree, a111, ST_ROOT));
    assert_true(st_tree_within(w.tree, a, a));
    assert_false(st_tree_within(w.tree, a, a111));
    assert_false(st_tree_within(w.tree, a2, a1));
    assert_false(st_tree_within(w.tree, b1, a));

    const struct {
        int32_t x, y, meet, cx, cy;
    } rows[] = {
        {a111, b1, ST_ROOT, a, b}, {b1, a111, ST_ROOT, b, a}, {a111, a2, a, a1, a2},
        {a111, a1, a1, a11, a1},   {a1, a111, a1, a1, a11},   {a1, a1, a1, a1, a1},
        {a, b, ST_ROOT, a, b},     {a111, a, a, a1, a},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        int32_t cx, cy;
        assert_int_equal(st_tree_meet(w.tree, rows[i].x, rows[i].y, &cx, &cy), rows[i].meet);
        assert_int_equal(cx, rows[i].cx);
        assert_int_equal(cy, rows[i].cy);
    }
    end(&w);
}

static void test_users(void **state)
{
    (void)state;
    world w;
    begin(&w);
    int32_t ann = st_tree_user(w.tree, "ann"), bob = st_tree_user(w.tree, "bob");
    assert_int_not_equal(ann, bob);
    assert_int_equal(st_tree_user(w.tree, "ann"), ann);
    assert_string_equal(w.tree->users.v[bob], "bob");
    end(&w);
}

/* What is added to a clock or compared with a sum has a range too. */
static void test_ranges_of_limits(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.min_run_ms = INT64_MAX;
    refused(&w, &spec, ST_ERANGE, "a");
    spec.min_run_ms = -2;
    refused(&w, &spec, ST_ERANGE, "a");
    spec = named("a", NULL);
    spec.user_limits.gpu_m = -2;
    refused(&w, &spec, ST_ERANGE, "a");
    spec = named("a", NULL);
    spec.job_limits.run_ms = INT64_MIN;
    refused(&w, &spec, ST_ERANGE, "a");
    end(&w);
}

/* Absurd typed entries are refused before they are added up. */
static void test_typed_sum_does_not_overflow(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_account_spec spec = named("a", NULL);
    spec.guarantee.type_m[0] = spec.guarantee.type_m[1] = INT64_MAX;
    refused(&w, &spec, ST_ERANGE, "range");
    spec.guarantee.gpu_m = 1000;
    refused(&w, &spec, ST_ERANGE, "range");
    end(&w);
}

/* Whoever makes and removes accounts uses up no room of others; numbers are never given again. */
static void test_removed_ones_do_not_count(void **state)
{
    (void)state;
    world w;
    begin(&w);
    st_err err = {0};
    st_account_spec spec = named("again", NULL);
    for (int i = 0; i < ST_ACCOUNTS_MAX; i++)
        assert_ok(st_tree_remove(w.tree, put(&w, &spec), &err));
    assert_int_equal(w.tree->ngone, ST_ACCOUNTS_MAX);
    int32_t id = put(&w, &spec);
    assert_int_equal(st_tree_account(w.tree, id)->serial, ST_ACCOUNTS_MAX + 1);
    char name[32], parent[32];
    while (w.tree->accounts.n - w.tree->ngone < ST_ACCOUNTS_MAX) {
        size_t n = w.tree->accounts.n;
        snprintf(name, sizeof name, "n%zu", n);
        snprintf(parent, sizeof parent, "n%zu", n / 256 * 256);
        st_account_spec more =
            named(name, n % 256 && st_tree_find(w.tree, parent) >= 0 ? parent : NULL);
        put(&w, &more);
    }
    spec = named("more", NULL);
    refused(&w, &spec, ST_ELIMIT, "there are 65536 accounts already");
    assert_ok(st_tree_remove(w.tree, id, &err));
    put(&w, &spec);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_and_change),
        cmocka_unit_test(test_removed_ones_do_not_count),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_no_cycle),
        cmocka_unit_test(test_sum_of_guarantees),
        cmocka_unit_test(test_sum_of_cpu_and_ram),
        cmocka_unit_test(test_nothing_from_nothing),
        cmocka_unit_test(test_guarantee_within_max),
        cmocka_unit_test(test_typed_and_total),
        cmocka_unit_test(test_typed_promises_below),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_negative_quota),
        cmocka_unit_test(test_priority_range),
        cmocka_unit_test(test_trust_is_inherited),
        cmocka_unit_test(test_trust_domains),
        cmocka_unit_test(test_min_run_is_inherited),
        cmocka_unit_test(test_within_and_meet),
        cmocka_unit_test(test_users),
        cmocka_unit_test(test_ranges_of_limits),
        cmocka_unit_test(test_typed_sum_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
