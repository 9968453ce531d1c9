/* Which nodes will do: terms, their bounds, and what meets them. */
#include "base/testing.h"
#include "model/fleet.h"
#include "model/pick.h"

static void add(st_strbuf *pick, const char *term, bool node)
{
    st_err err = {0};
    assert_ok(st_pick_add(pick, term, node, &err));
    assert_true(st_pick_ok(st_strbuf_str(pick)));
}

static void test_terms(void **state)
{
    (void)state;
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0}, said = {0};
    add(&pick, "driver=550", false);
    add(&pick, "storage!=hdd", false);
    add(&pick, "node07", true);
    add(&pick, "driver=550", false); /* the same twice */
    assert_string_equal(st_strbuf_str(&pick), "!storage=hdd\n-node07\ndriver=550\n");
    st_pick_say(st_strbuf_str(&pick), &said);
    assert_string_equal(st_strbuf_str(&said), "driver=550, storage!=hdd, not node07");
    const char *text = st_strbuf_str(&pick);
    assert_true(st_pick_meets(text, "node08", "driver=550.54\n"));
    assert_true(st_pick_meets(text, "node08", "driver=550\nstorage=nvme\n"));
    assert_false(st_pick_meets(text, "node07", "driver=550\n"));
    assert_true(st_pick_meets(text, "node070", "driver=550\n"));
    assert_false(st_pick_meets(text, "node08", "driver=5501\n"));
    assert_false(st_pick_meets(text, "node08", "driver=550\nstorage=hdd\n"));
    assert_false(st_pick_meets(text, "node08", NULL));
    assert_true(st_pick_meets(NULL, "node08", NULL));
    assert_true(st_pick_meets("!driver=550\n", "n", NULL));
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",       "driver", "=550", "driver=", "driver!=", "a b=c",  "!=x", "a=b\nc",
        "a==b c", "-node",  "!a=b", "$(id)=x", "a=`id`",   "a=\x1b", "-a=b"};
    static const char *const texts[] = {"a=b",  "b=1\na=1\n", "a=1\na=1\n",   "\n",
                                        "a=\n", "!driver\n",  "-\n",          "=b\n",
                                        "!=\n", "a b=c\n",    "- two words\n"};
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0};
    st_err err;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        assert_fails(st_pick_add(&pick, bad[i], false, &err), ST_EINVAL, "NAME=VALUE");
        assert_int_equal(pick.n, 0);
    }
    assert_fails(st_pick_add(&pick, "two words", true, &err), ST_EINVAL, "no name of a node");
    for (size_t i = 0; i < ST_ARRAY_LEN(texts); i++)
        assert_false(st_pick_ok(texts[i]));
    assert_true(st_pick_ok(""));
    for (int i = 0; i < ST_PICK_TERMS; i++) {
        char term[32];
        snprintf(term, sizeof term, "k%d=v", i);
        add(&pick, term, false);
    }
    assert_fails(st_pick_add(&pick, "one=more", false, &err), ST_ELIMIT, "at most 32");
    assert_true(pick.n <= ST_PICK_TEXT_MAX);
}

/* Numbers follow from texts, come back, and are forgotten when nobody uses them. */
static void test_fleet(void **state)
{
    (void)state;
    st_fleet *fleet = st_fleet_new();
    st_node node = {.name = (char[]){"n"}, .labels = (char[]){"a=1\n"}};
    uint64_t one = st_fleet_pick(fleet, "a=1\n"), two = st_fleet_pick(fleet, "a=2\n");
    assert_true(one != 0 && two != 0 && one != two);
    assert_true(st_fleet_pick(fleet, "a=1\n") == one);
    assert_int_equal(fleet->picks.n, 2);
    assert_true(st_fleet_picks(fleet, one, &node) && st_fleet_picks(fleet, 0, &node));
    assert_false(st_fleet_picks(fleet, two, &node));
    assert_false(st_fleet_pick_as(fleet, one, "a=3\n"));
    assert_false(st_fleet_pick_as(fleet, 0, "a=3\n"));
    st_fleet_use_pick(fleet, two);
    st_fleet_sweep_picks(fleet);
    assert_int_equal(fleet->picks.n, 1);
    assert_null(st_fleet_picked_text(fleet, one));
    assert_false(st_fleet_picks(fleet, one, &node)); /* of one that is gone: nothing */
    assert_string_equal(st_fleet_picked_text(fleet, two), "a=2\n");
    st_fleet_sweep_picks(fleet);
    assert_int_equal(fleet->picks.n, 0);
    st_fleet_free(fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_fleet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
