/*
 * Accounts that are removed and made again, and those that nobody trusts.
 */
#include "core/test/world.h"

/* Removed, made again: another serial, another place in the list, and the same after a reload. */
static void test_account_remove(void **state)
{
    world w;
    st_err err = {0};
    (void)state;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 1, 8);
    st_event ev = account_event("org", 0);
    step(&w, &ev);
    ev = account_event("team", 0);
    ev.u.account.parent = "org";
    step(&w, &ev);
    const st_tree *tree = st_core_tree(w.core);
    int32_t first = st_tree_find(tree, "team");
    int64_t serial = st_tree_account(tree, first)->serial;
    submit(&w, 10, "team");

    st_event gone = event(ST_EV_ACCOUNT_REMOVE);
    gone.u.account.name = "org";
    assert_fails(st_core_step(w.core, &gone, 1, &w.fx, &err), ST_ESTATE, "1 accounts below it");
    gone.u.account.name = "team";
    assert_fails(st_core_step(w.core, &gone, 1, &w.fx, &err), ST_ESTATE, "job job is running");
    gone.u.account.name = "cluster";
    assert_fails(st_core_step(w.core, &gone, 1, &w.fx, &err), ST_EINVAL, "cannot be removed");
    gone.u.account.name = "nobody";
    assert_fails(st_core_step(w.core, &gone, 1, &w.fx, &err), ST_ENOENT, "does not exist");
    tell(&w, ST_EV_CANCEL, 10);
    gone.u.account.name = "team";
    step(&w, &gone);
    assert_int_equal(st_tree_find(tree, "team"), -1);
    assert_fails(st_core_step(w.core, &gone, 1, &w.fx, &err), ST_ENOENT, "does not exist");
    ev = job_event(11, "team");
    assert_fails(st_core_step(w.core, &ev, 1, &w.fx, &err), ST_ENOENT, "team does not exist");

    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_core *loaded = NULL;
    st_core_save(w.core, &saved);
    assert_ok(st_core_load(saved.s, saved.n, &loaded, &err));
    st_core_free(w.core);
    w.core = loaded;
    tree = st_core_tree(w.core);
    assert_true(st_tree_account(tree, first)->gone);
    assert_int_equal(tree->ngone, 1);
    ev = account_event("team", 0);
    step(&w, &ev);
    int32_t again = st_tree_find(tree, "team");
    assert_true(again > first && st_tree_account(tree, again)->serial > serial);
    end(&w);
}

/* Nothing below an untrusted account is trusted, whatever is written there. */
static void test_untrusted_absorbs(void **state)
{
    world w;
    (void)state;
    st_policy policy = st_policy_default();
    begin(&w, &policy, 1, 8);
    static const struct {
        const char *name, *parent;
        st_trust trust;
        bool untrusted;
    } rows[] = {{"a", NULL, ST_TRUST_UNTRUSTED, true}, {"b", "a", ST_TRUST_TRUSTED, true},
                {"c", "b", ST_TRUST_INHERIT, true},    {"d", "b", ST_TRUST_TRUSTED, true},
                {"e", NULL, ST_TRUST_TRUSTED, false},  {"f", "e", ST_TRUST_UNTRUSTED, true},
                {"g", NULL, ST_TRUST_INHERIT, false}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_event ev = account_event(rows[i].name, 0);
        ev.u.account.parent = rows[i].parent;
        ev.u.account.trust = rows[i].trust;
        step(&w, &ev);
        const st_tree *tree = st_core_tree(w.core);
        assert_int_equal(st_tree_untrusted(tree, st_tree_find(tree, rows[i].name)),
                         rows[i].untrusted);
    }
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_account_remove),
        cmocka_unit_test(test_untrusted_absorbs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
