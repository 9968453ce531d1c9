/* From a slow victim to a cure: who is told what, in which order, and who is left alone. */
#include "base/macros.h"
#include "base/testing.h"
#include "neighbour/test/world.h"

#define LONG INT64_C(100000000)

typedef struct seen {
    int count[ST_NB_KIND_COUNT];
    st_nb_note last[ST_NB_KIND_COUNT];
} seen;

/* Until a note of that kind, or for so long; true: there was one. Nobody but victim and suspect ever has an order. */
static bool until(world *w, seen *s, st_nb_kind kind, int64_t ms)
{
    int64_t end = w->now_ms + ms;
    int before = s->count[kind];

    while (w->now_ms < end && s->count[kind] == before) {
        st_nb_note v[16];
        size_t n;

        world_tick(w);
        n = st_nb_notes(w->nb, v, ST_ARRAY_LEN(v));
        for (size_t i = 0; i < n; i++) {
            s->count[v[i].kind]++;
            s->last[v[i].kind] = v[i];
        }
        assert_int_equal(st_nb_order_of(w->nb, 3).cap_pm, 0);
        assert_false(st_nb_order_of(w->nb, 3).protect);
        assert_int_equal(st_nb_order_of(w->nb, 1).cap_pm, 0);
    }
    return s->count[kind] > before;
}

static void begin(world *w, double factor, double eased)
{
    world_init(w, 7);
    w->rate = 500;
    w->sigma = 0.15;
    world_add(w, (world_task){.id = 3, .to_ms = LONG, .factor = 1, .eased = 1, .part = 0.3});
    for (int i = 0; i < 400; i++)
        world_tick(w);
    world_add(w, (world_task){.id = 2,
                              .from_ms = w->now_ms,
                              .to_ms = LONG,
                              .factor = factor,
                              .eased = eased,
                              .part = 0.5});
}

static void test_cure(void **state)
{
    world w;
    seen s = {0};

    (void)state;
    begin(&w, 2, 1.05);
    assert_true(until(&w, &s, ST_NB_SUSPECTED, 10000));
    assert_int_equal(s.last[ST_NB_SUSPECTED].victim, 1);
    assert_int_equal(s.last[ST_NB_SUSPECTED].suspect, 2);
    assert_true(st_nb_order_of(w.nb, 2).cap_pm > 0); /* paused */
    assert_true(until(&w, &s, ST_NB_CONFIRMED, 10000));
    assert_int_equal(s.count[ST_NB_PARDONED], 0);
    assert_true(until(&w, &s, ST_NB_VERIFIED, 5000));
    assert_int_equal(s.last[ST_NB_VERIFIED].rung, ST_NB_PROTECT);
    assert_true(st_nb_order_of(w.nb, 1).protect);
    assert_int_equal(st_nb_order_of(w.nb, 2).cap_pm, 0);
    /* Its end is the end of the action. */
    w.task[1].to_ms = w.now_ms;
    assert_true(until(&w, &s, ST_NB_REVERTED, 1000));
    assert_false(st_nb_order_of(w.nb, 1).protect);
    world_done(&w);
}

static void test_hold(void **state)
{
    world w;
    seen s = {0};
    int64_t first, second;

    (void)state;
    begin(&w, 2, 1);
    assert_true(until(&w, &s, ST_NB_VERIFIED, 20000));
    first = w.now_ms;
    assert_true(until(&w, &s, ST_NB_REVERTED, 2 * st_nb_defaults.hold_ms));
    assert_true(w.now_ms - first >= st_nb_defaults.hold_ms);
    /* Still needed: it is known, so it is found although it has not grown, and kept for twice as long. */
    assert_true(until(&w, &s, ST_NB_VERIFIED, 60000));
    second = w.now_ms;
    assert_true(until(&w, &s, ST_NB_REVERTED, 4 * st_nb_defaults.hold_ms));
    assert_true(w.now_ms - second >= 2 * st_nb_defaults.hold_ms);
    /* Not needed any more: nothing happens. */
    w.task[1].factor = 1;
    assert_false(until(&w, &s, ST_NB_ACTED, 600000));
    world_done(&w);
}

static void test_ladder(void **state)
{
    world w;
    seen s = {0};

    (void)state;
    begin(&w, 2, 2); /* protection does not help, nor does a cap */
    assert_true(until(&w, &s, ST_NB_ACTED, 20000));
    assert_int_equal(s.last[ST_NB_ACTED].rung, ST_NB_PROTECT);
    assert_true(until(&w, &s, ST_NB_REVERTED, 20000));
    assert_int_equal(s.last[ST_NB_ACTED].rung, ST_NB_CAP);
    assert_false(st_nb_order_of(w.nb, 1).protect);
    assert_int_equal(st_nb_order_of(w.nb, 2).cap_pm, 250);
    assert_true(until(&w, &s, ST_NB_REVERTED, 20000));
    assert_int_equal(s.last[ST_NB_ACTED].rung, ST_NB_MOVE);
    assert_int_equal(st_nb_order_of(w.nb, 2).cap_pm, 0);
    /* Said once; the pair is left alone for a while. */
    assert_false(until(&w, &s, ST_NB_ACTED, st_nb_defaults.pardon_ms / 2));
    assert_int_equal(s.count[ST_NB_INCIDENT], 0);
    world_done(&w);
}

/* Half a cure is kept, with a wish for the rest; and what is known is no incident. */
static void test_eased(void **state)
{
    world w;
    seen s = {0};

    (void)state;
    begin(&w, 6, 2.5);
    assert_true(until(&w, &s, ST_NB_VERIFIED, 20000));
    assert_int_equal(s.last[ST_NB_VERIFIED].rung, ST_NB_PROTECT);
    assert_in_range(s.last[ST_NB_VERIFIED].ratio_pct, 200, 300);
    assert_int_equal(s.last[ST_NB_ACTED].rung, ST_NB_MOVE);
    assert_false(until(&w, &s, ST_NB_REVERTED, st_nb_defaults.hold_ms / 2));
    assert_true(st_nb_order_of(w.nb, 1).protect);
    assert_int_equal(s.count[ST_NB_INCIDENT], 0);
    world_done(&w);
}

static void test_innocent(void **state)
{
    world w;
    seen s = {0};

    (void)state;
    begin(&w, 1, 1);
    assert_false(until(&w, &s, ST_NB_SUSPECTED, 120000));
    /* The host becomes slow just when somebody comes: suspected, paused for a moment, let go. */
    world_add(
        &w, (world_task){
                .id = 4, .from_ms = w.now_ms, .to_ms = LONG, .factor = 1, .eased = 1, .part = 0.5});
    w.host = 2;
    assert_true(until(&w, &s, ST_NB_PARDONED, 20000));
    assert_int_equal(s.last[ST_NB_PARDONED].suspect, 4);
    assert_int_equal(st_nb_order_of(w.nb, 4).cap_pm, 0);
    assert_true(until(&w, &s, ST_NB_INCIDENT, 120000));
    assert_int_equal(s.last[ST_NB_INCIDENT].suspect, 0);
    assert_int_equal(s.count[ST_NB_ACTED], 0);
    world_done(&w);
}

static void test_no_neighbour(void **state)
{
    world w;
    seen s = {0};

    (void)state;
    begin(&w, 1, 1);
    assert_false(until(&w, &s, ST_NB_SUSPECTED, 120000));
    w.host = 1.8;
    assert_true(until(&w, &s, ST_NB_INCIDENT, 60000));
    assert_int_equal(s.count[ST_NB_SUSPECTED], 0);
    assert_in_range(s.last[ST_NB_INCIDENT].ratio_pct, 150, 220);
    /* It is the usual thing from then on. */
    assert_false(until(&w, &s, ST_NB_INCIDENT, 2 * st_nb_defaults.incident_ms));
    world_done(&w);
}

static void test_times(void **state)
{
    (void)state;
    for (int i = 1; i < ST_NB_TIMES; i++)
        assert_true(st_nb_time_least(i) > st_nb_time_least(i - 1));
}

static void test_thresholds(void **state)
{
    static const char *const bad[] = {
        "ratio_pct",      "ratio_pct=", "ratio=150",       "ratio_pct=1",      "ratio_pct=1001",
        "slow=6",         "of=3",       "window_ms=60000", "hold_max_ms=1000", "=5",
        "ratio_pct=150;", ",",          "ratio_pct=1x",    "slow=4,,of=5"};
    st_nb_policy p = {0};
    st_err err;

    (void)state;
    assert_int_equal(st_nb_policy_read("", &p, &err), 0);
    assert_memory_equal(&p, &st_nb_defaults, sizeof p);
    assert_int_equal(st_nb_policy_read("slow=6,of=7,ratio_pct=150", &p, &err), 0);
    assert_int_equal(p.slow, 6);
    assert_int_equal(p.of, 7);
    assert_int_equal(p.ratio_pct, 150);
    assert_int_equal(p.hold_ms, st_nb_defaults.hold_ms);
    p.ratio_pct = 7;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        if (st_nb_policy_read(bad[i], &p, &err) >= 0 || err.msg[0] == '\0')
            fail_msg("%s is taken", bad[i]);
    assert_int_equal(p.ratio_pct, 7);
}

static void test_words(void **state)
{
    (void)state;
    for (int k = 0; k < ST_NB_KIND_COUNT; k++)
        assert_int_equal(st_nb_kind_parse(st_nb_kind_name((st_nb_kind)k)), k);
    for (int r = 0; r < ST_NB_RUNG_COUNT; r++)
        assert_int_equal(st_nb_rung_parse(st_nb_rung_name((st_nb_rung)r)), r);
    assert_int_equal(st_nb_kind_parse("nonsense"), -1);
    assert_int_equal(st_nb_rung_parse(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cure),     cmocka_unit_test(test_hold),
        cmocka_unit_test(test_ladder),   cmocka_unit_test(test_eased),
        cmocka_unit_test(test_innocent), cmocka_unit_test(test_no_neighbour),
        cmocka_unit_test(test_times),    cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
