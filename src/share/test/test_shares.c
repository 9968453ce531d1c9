/*
 * st_shares_new: what it understands, what it refuses and on which line. The
 * answers themselves are the business of src/share/test and tests/shares.
 */
#include <math.h>

#include "base/testing.h"
#include "share/shares.h"

static int ask(const char *text, st_doc **ret_doc, st_shares **ret, st_err *err)
{
    int r = st_doc_parse("q.yaml", text, strlen(text), ret_doc, err);

    return r < 0 ? r : st_shares_new(*ret_doc, ret, err);
}

static void test_reads(void **state)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_shares_freep) st_shares *s = NULL;
    st_err err = {0};

    (void)state;
    assert_ok(ask("capacity: {gpu: 8, cpu: 64, ram: 100}\n"
                  "basis: total\n"
                  "accounts:\n"
                  "- {name: t, parent: org, weight: 0.5, priority: -3, max: {gpu: 6.5},\n"
                  "   demand: {gpu: 5, cpu: 2}}\n"
                  "- {name: org, guarantee: {gpu: 4}}\n",
                  &doc, &s, &err));
    ST_ASSERT(s);
    assert_int_equal(s->counts, ST_COUNTS_TOTAL);
    assert_int_equal(s->naccounts, 2);
    assert_int_equal(s->nresources, 3);
    assert_string_equal(s->accounts[0].name, "t");
    assert_int_equal(s->accounts[0].parent, 1);
    assert_int_equal(s->accounts[0].depth, 2);
    assert_false(s->accounts[0].inner);
    assert_int_equal(s->accounts[1].parent, -1);
    assert_int_equal(s->accounts[1].depth, 1);
    assert_true(s->accounts[1].inner);
    assert_true(s->resources[0].in[0].max == 6.5);
    assert_true(s->resources[0].in[0].weight == 0.5);
    assert_int_equal(s->resources[0].in[0].priority, -3);
    assert_true(isinf(s->resources[0].in[1].max));
    assert_true(s->resources[0].in[1].guarantee == 4);
    assert_true(s->resources[0].in[1].weight == 1);
    assert_true(s->resources[0].out[0].share == 5);
    assert_int_equal(s->resources[0].out[1].whole, 5);
    assert_true(s->resources[0].left == 3);
    assert_true(s->resources[1].mentioned);
    assert_true(s->resources[1].left == 62);
    assert_false(s->resources[2].mentioned);
}

typedef struct refusal {
    const char *text, *message;
} refusal;

static const refusal refusals[] = {
    {"capacity: {gpu: 1}\naccounts: [{name: a, parent: b}]\n", "q.yaml:2: account \"a\": there is"},
    {"capacity: {gpu: 1}\naccounts:\n- {name: a}\n- {name: a}\n", "q.yaml:4: account \"a\""},
    {"capacity: {gpu: 1}\naccounts:\n- {name: a, parent: b}\n- {name: b, parent: a}\n",
     "q.yaml:3: accounts form a cycle: \"a\", child of \"b\", child of \"a\""},
    /* An account that hangs below a cycle is not part of it. */
    {"capacity: {gpu: 1}\naccounts:\n- {name: x, parent: a}\n- {name: a, parent: a}\n",
     "q.yaml:4: accounts form a cycle: \"a\", child of \"a\""},
    /* Long cycles are counted, not listed. */
    {"capacity: {gpu: 1}\naccounts: [{name: a, parent: b}, {name: b, parent: c},\n"
     "{name: c, parent: d}, {name: d, parent: e}, {name: e, parent: f},\n"
     "{name: f, parent: g}, {name: g, parent: a}]\n",
     "child of \"e\", child of 2 more and then \"a\""},
    {"capacity: {gpu: 1}\naccounts:\n- {name: a, guarantee: {gpu: 2}, max: {gpu: 1.5}}\n",
     "q.yaml:3: account \"a\": its guarantee of 2 gpu is above its max of 1.5"},
    {"capacity: {gpu: 1}\naccounts:\n- {name: a, demand: {gpu: 2}}\n- {name: b, parent: a}\n",
     "q.yaml:3: account \"a\" has children"},
    {"capacity: {gpu: 1}\naccounts:\n- {name: a, demand: {gpu: 1e13}}\n",
     "q.yaml:3: key \"gpu\": \"1e13\" is out of range"},
    {"capacity: {gpu: .inf}\naccounts: []\n", "q.yaml:1: key \"gpu\": \".inf\" is not a number"},
    {"capacity: {gpu: 1.}\naccounts: []\n", "\"1.\" is not a number"},
    {"capacity: {gpu: 1e}\naccounts: []\n", "\"1e\" is not a number"},
    {"capacity: {gpu: +1}\naccounts: []\n", "\"+1\" is not a number"},
    {"capacity: {gpu: 1 2}\naccounts: []\n", "\"1 2\" is not a number"},
    {"capacity: {\"\": 1}\naccounts: []\n", "q.yaml:1: a name must not be empty"},
    {"capacity: 7\naccounts: []\n", "q.yaml:1: key \"capacity\": expected a map"},
    {"capacity: {gpu: 1}\nbasis: both\naccounts: []\n", "q.yaml:2: the basis is"},
};

static void test_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(refusals); i++) {
        ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
        ST_CLEANUP(st_shares_freep) st_shares *s = NULL;
        st_err err = {0};

        assert_true(ask(refusals[i].text, &doc, &s, &err) < 0);
        if (!strstr(err.msg, refusals[i].message))
            fail_msg("\"%s\" does not say \"%s\"", err.msg, refusals[i].message);
        assert_int_equal(st_err_exit(err.code), 2);
        assert_null(s);
    }
}

/* 0.1 + 0.2 is a little more than 0.3 in binary; a person would not say so. */
static void test_decimal_sums(void **state)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    ST_CLEANUP(st_shares_freep) st_shares *s = NULL;
    st_err err = {0};

    (void)state;
    assert_ok(ask("capacity: {gpu: 1}\n"
                  "accounts:\n"
                  "- {name: p, guarantee: {gpu: 0.3}}\n"
                  "- {name: a, parent: p, guarantee: {gpu: 0.1}, demand: {gpu: 1}}\n"
                  "- {name: b, parent: p, guarantee: {gpu: 0.2}, demand: {gpu: 1}}\n",
                  &doc, &s, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_decimal_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
