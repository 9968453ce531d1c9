/*
 * The fuzzer's own workings: a seed is a seed, a tape plays without its generator, a failing one
 * becomes shorter and stays failing, and every tape can be said as a scenario.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/testing.h"
#include "scenario/scenario.h"
#include "worlds/worlds.h"

#define STEPS 60

static void test_same_seed(void **state)
{
    (void)state;
    st_fuzz_counts a = {0}, b = {0}, other = {0};
    st_tape tape;
    st_err err = {0};
    assert_ok(st_fuzz_seed(7, STEPS, NULL, NULL, &tape, &a, &err));
    st_tape_done(&tape);
    assert_ok(st_fuzz_seed(7, STEPS, NULL, NULL, &tape, &b, &err));
    st_tape_done(&tape);
    assert_ok(st_fuzz_seed(8, STEPS, NULL, NULL, &tape, &other, &err));
    st_tape_done(&tape);
    assert_true(a.hash == b.hash && a.events == b.events && a.starts == b.starts);
    assert_true(a.hash != other.hash);
    assert_true(a.starts > 0 && a.steps > STEPS / 5);
}

static void test_replay(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        st_tape tape;
        st_err err = {0};
        assert_ok(st_fuzz_seed(seed, STEPS, NULL, NULL, &tape, NULL, &err));
        ST_CLEANUP(st_freep) uint8_t *keep = st_xcalloc(tape.list.n + 1, 1);
        assert_ok(st_fuzz_replay(&tape, NULL, NULL, NULL, &err));
        for (size_t i = 0; i < tape.list.n; i++)
            keep[i] = tape.list.v[i].setup || i % 2 == 0;
        assert_ok(st_fuzz_replay(&tape, keep, NULL, NULL, &err));
        st_tape_done(&tape);
    }
}

/* A job that must have started before it can. */
static bool make_impatient(st_tape *tape)
{
    ST_CLEANUP(st_freep) uint8_t *refused = st_xcalloc(tape->list.n + 1, 1);
    st_err err = {0};
    assert_ok(st_fuzz_replay(tape, NULL, NULL, refused, &err));
    for (size_t i = 0; i < tape->list.n; i++) {
        st_tape_entry *e = &tape->list.v[i];
        if (e->event.kind != ST_EV_SUBMIT || refused[i])
            continue;
        tape->must_start = e->event.u.job.id;
        tape->must_by_ms = 0;
        err = (st_err){0};
        if (st_fuzz_replay(tape, NULL, NULL, NULL, &err) < 0)
            return true;
    }
    tape->must_start = 0;
    return false;
}

static void test_shrink(void **state)
{
    (void)state;
    int shrunk = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        st_tape tape;
        st_err err = {0}, again = {0};
        assert_ok(st_fuzz_seed(seed, STEPS, NULL, NULL, &tape, NULL, &err));
        if (make_impatient(&tape)) {
            size_t before = tape.list.n;
            st_fuzz_replay(&tape, NULL, NULL, NULL, &err);
            st_fuzz_shrink(&tape, 500, &err);
            assert_true(tape.list.n < before);
            assert_true(st_fuzz_replay(&tape, NULL, NULL, NULL, &again) < 0);
            assert_string_equal(again.msg, err.msg);
            assert_memory_equal(again.msg, "starvation", 10);
            shrunk++;
        }
        st_tape_done(&tape);
    }
    assert_true(shrunk > 0);
}

static int load(const st_tape *tape, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    st_doc *doc = NULL;
    st_scenario *s = NULL;
    st_fuzz_yaml(tape, "why", &text);
    int rc = st_doc_parse("fuzz.yaml", text.s, text.n, &doc, err);
    if (rc == 0)
        rc = st_scenario_new(doc, &s, err);
    st_scenario_free(s);
    st_doc_free(doc);
    return rc;
}

static void test_scenarios(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        st_tape tape;
        st_err err = {0};
        assert_ok(st_fuzz_seed(seed, STEPS, NULL, NULL, &tape, NULL, &err));
        assert_ok(load(&tape, &err));
        st_tape_done(&tape);
    }
}

/* A world without nodes is no scenario, but it is a document, and the sentence is about nodes. */
static void test_empty_world(void **state)
{
    (void)state;
    st_tape tape;
    st_err err = {0};
    st_tape_init(&tape, 1);
    assert_fails(load(&tape, &err), ST_EINVAL, "no nodes");
    st_tape_done(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed),   cmocka_unit_test(test_replay),
        cmocka_unit_test(test_shrink),      cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_empty_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
