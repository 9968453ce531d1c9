/*
 * What nodes say, within what is possible (model/said.h).
 */
#include <string.h>

#include "base/rng.h"
#include "base/testing.h"
#include "model/said.h"

/* Eight H100s for ten seconds. */
static const st_bounds eight = {
    .devs = 8, .time_ms = 10000, .watts = 700, .part_m = 1000, .vram_mib = 81920};

static st_used said(st_used_kind kind, int64_t v)
{
    st_used u = {.has = 1u << kind};

    u.v[kind] = v;
    return u;
}

static int64_t after(st_used_kind kind, int64_t v, uint32_t *ret_bad)
{
    st_used u = said(kind, v);

    *ret_bad = st_said_used(&eight, NULL, &u);
    return u.v[kind];
}

static void what_is_possible_passes(void **state)
{
    st_used u = {.has = (1u << ST_USED_COUNT) - 1,
                 .v = {80000, 79000, 70000, 60000, 50000, 1000000, 2000000, 55000000, 600000}};
    const st_used before = u;

    (void)state;
    assert_int_equal(st_said_used(&eight, NULL, &u), 0);
    assert_true(st_used_same(&u, &before));
    /* A sample too many is cut and not told. */
    u.v[ST_USED_HELD] = 81000;
    assert_int_equal(st_said_used(&eight, NULL, &u), 0);
    assert_int_equal(u.v[ST_USED_HELD], 80000);
}

static void what_is_not_is_cut_and_told(void **state)
{
    uint32_t bad;

    (void)state;
    assert_int_equal(after(ST_USED_ENERGY, INT64_C(45000000000000), &bad), 56000000);
    assert_int_equal(bad, 1u << ST_USED_ENERGY);
    assert_int_equal(after(ST_USED_ENERGY, INT64_MAX, &bad), 56000000);
    assert_int_equal(bad, 1u << ST_USED_ENERGY);
    assert_int_equal(after(ST_USED_HELD, INT64_C(1) << 40, &bad), 80000);
    assert_int_equal(bad, 1u << ST_USED_HELD);
    assert_int_equal(after(ST_USED_SEEN, INT64_C(1) << 40, &bad), 80000);
    assert_int_equal(after(ST_USED_BUSY, INT64_C(1) << 40, &bad), 80000);
    assert_int_equal(after(ST_USED_MEM_PEAK, INT64_C(1) << 40, &bad), 8 * 81920);
    assert_int_equal(bad, 1u << ST_USED_MEM_PEAK);
    assert_int_equal(after(ST_USED_ENERGY, -5, &bad), 0);
    assert_int_equal(bad, 1u << ST_USED_ENERGY);
    assert_int_equal(after(ST_USED_HELD, INT64_MIN, &bad), 0);
    assert_int_equal(bad, 1u << ST_USED_HELD);
}

static void a_slice_has_its_part_of_the_board(void **state)
{
    st_bounds slice = eight;
    st_used u = said(ST_USED_ENERGY, 7000000);

    (void)state;
    slice.devs = 1;
    slice.part_m = 143;
    assert_int_equal(st_said_used(&slice, NULL, &u), 1u << ST_USED_ENERGY);
    assert_int_equal(u.v[ST_USED_ENERGY], 1001000);
}

static void counters_never_fall(void **state)
{
    const st_used before = {.has = 3, .v = {80000, 70000}};
    st_bounds later = eight;
    st_used u = said(ST_USED_HELD, 79000);

    (void)state;
    later.time_ms = 20000;
    assert_int_equal(st_said_used(&later, &before, &u), 0);
    assert_int_equal(u.v[ST_USED_HELD], 80000);
    assert_int_equal(u.v[ST_USED_SEEN], 70000);
    later.time_ms = 200000;
    u = said(ST_USED_HELD, 1600000);
    assert_int_equal(st_said_used(&later, &before, &u), 0);
    st_used much = u;
    u = said(ST_USED_HELD, 5);
    assert_int_equal(st_said_used(&later, &much, &u), 1u << ST_USED_HELD);
    assert_int_equal(u.v[ST_USED_HELD], 1600000);
}

/* Whatever comes in, what goes out is possible, and the gate lets it pass a second time as it is. */
static void whatever_comes_in(void **state)
{
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        st_bounds b = {.devs = (int)st_rng_below(&rng, 17),
                       .time_ms = (int64_t)(st_rng_u64(&rng) >> st_rng_below(&rng, 63)),
                       .watts = (int64_t)st_rng_below(&rng, 2000),
                       .part_m = (int64_t)st_rng_below(&rng, 1001),
                       .vram_mib = (int64_t)(st_rng_u64(&rng) >> st_rng_below(&rng, 63))};
        st_used u = {.has = (uint32_t)st_rng_below(&rng, 1u << ST_USED_COUNT)}, twice;

        b.time_ms = b.time_ms < 0 ? INT64_MAX : b.time_ms;
        b.vram_mib = b.vram_mib < 0 ? INT64_MAX : b.vram_mib;
        for (int k = 0; k < ST_USED_COUNT; k++)
            u.v[k] = (int64_t)(st_rng_u64(&rng) >> st_rng_below(&rng, 64));
        st_said_used(&b, NULL, &u);
        for (int k = 0; k < ST_USED_COUNT; k++)
            if (u.has >> k & 1)
                assert_true(u.v[k] >= 0);
        if (u.has & 1)
            assert_true(u.v[ST_USED_HELD] <= (st_i128)b.devs * b.time_ms);
        if (u.has >> ST_USED_ENERGY & 1)
            assert_true(u.v[ST_USED_ENERGY] <= (st_i128)b.devs * b.time_ms * b.watts);
        twice = u;
        assert_int_equal(st_said_used(&b, NULL, &twice), 0);
        assert_true(st_used_same(&twice, &u));
    }
}

static void ends_are_those_of_processes(void **state)
{
    int code, signal;

    (void)state;
    assert_true(st_said_exit(3, 0, &code, &signal));
    assert_int_equal(code, 3);
    assert_false(st_said_exit(INT64_C(4294967296), 0, &code, &signal));
    assert_int_equal(code, 255);
    assert_false(st_said_exit(0, INT64_C(4294967296), &code, &signal));
    assert_int_equal(signal, 9);
    assert_false(st_said_exit(-1, -1, &code, &signal));
}

static void texts_are_fit_for_a_line(void **state)
{
    char out[32];

    (void)state;
    st_said_text("disk is full", out, sizeof out);
    assert_string_equal(out, "disk is full");
    st_said_text("a\nb\x1b[31m \"q\" \xe2\x80\xae\xff", out, sizeof out);
    assert_string_equal(out, "a?b?[31m 'q' ??");
    st_said_text("0123456789012345678901234567\xc3\xa9\xc3\xa9", out, sizeof out);
    assert_string_equal(out, "0123456789012345678901234567\xc3\xa9");
    assert_true(st_said_word("GPU-1c2e/x:0", 64));
    assert_false(st_said_word("", 64));
    assert_false(st_said_word("a b", 64));
    assert_false(st_said_word("abcde", 4));
}

static void boards_draw_what_they_can(void **state)
{
    (void)state;
    assert_int_equal(st_watts_of("h100"), 700);
    assert_int_equal(st_watts_of("unheard-of"), ST_WATTS_MOST);
    assert_int_equal(st_watts_of(NULL), ST_WATTS_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_possible_passes),
        cmocka_unit_test(what_is_not_is_cut_and_told),
        cmocka_unit_test(a_slice_has_its_part_of_the_board),
        cmocka_unit_test(counters_never_fall),
        cmocka_unit_test(whatever_comes_in),
        cmocka_unit_test(ends_are_those_of_processes),
        cmocka_unit_test(texts_are_fit_for_a_line),
        cmocka_unit_test(boards_draw_what_they_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
