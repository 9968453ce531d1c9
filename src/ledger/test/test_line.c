/* Components and the arithmetic of lines. */
#include "base/testing.h"
#include "ledger/price.h"

static void names_go_both_ways(void **state)
{
    (void)state;
    for (int c = 0; c < ST_PAY_COUNT; c++)
        assert_int_equal(st_component_parse(st_component_name((st_component)c)), c);
    assert_int_equal(st_component_parse("bursts"), -1);
    assert_string_equal(st_component_unit(ST_PAY_RAM), "GiB-hour");
    assert_int_equal(st_component_per(ST_PAY_RAM), 1024 * INT64_C(3600000));
}

static void a_remainder_is_carried(void **state)
{
    st_err err = {0};
    (void)state;
    /* One milli-GPU for one millisecond at $2: 2,000,000 x 10,000 / (3.6e9 x 10,000) = 0.000555... */
    st_line line = {.what = ST_PAY_BURST, .quantity = 1, .rate = 2000000, .factor_bp = ST_BP};
    assert_ok(st_line_reckon(&line, &err));
    assert_int_equal(line.amount, 0);
    assert_int_equal(line.carry, INT64_C(20000000000));
    assert_true(st_line_valid(&line));
    /* 1799 more and it is 20,000,000,000 x 1800 = 36,000,000,000,000: exactly one. */
    int64_t amount = 0;
    for (int i = 0; i < 1799; i++) {
        line.carry_in = line.carry;
        assert_ok(st_line_reckon(&line, &err));
        amount += line.amount;
    }
    assert_int_equal(amount, 1);
    assert_int_equal(line.carry, 0);
}

static void negative_ones_carry_upwards(void **state)
{
    st_err err = {0};
    (void)state;
    st_line line = {.what = ST_PAY_BURST, .quantity = -1, .rate = 2000000, .factor_bp = ST_BP};
    assert_ok(st_line_reckon(&line, &err));
    assert_int_equal(line.amount, -1);
    assert_int_equal(line.carry, INT64_C(36000000000000) - INT64_C(20000000000));
    /* And back again: nothing is left. */
    line.quantity = 1;
    line.carry_in = line.carry;
    assert_ok(st_line_reckon(&line, &err));
    assert_int_equal(line.amount, 1);
    assert_int_equal(line.carry, 0);
}

static void a_changed_line_does_not_hold(void **state)
{
    st_err err = {0};
    (void)state;
    st_line good = {.what = ST_PAY_CPU, .quantity = 12345678901, .rate = 40000, .factor_bp = 8500};
    good.carry_in = 77;
    assert_ok(st_line_reckon(&good, &err));
    assert_true(st_line_valid(&good));
    int64_t *parts[] = {&good.quantity, &good.rate,   &good.factor_bp,
                        &good.carry_in, &good.amount, &good.carry};
    for (size_t i = 0; i < ST_ARRAY_LEN(parts); i++) {
        ++*parts[i];
        assert_false(st_line_valid(&good));
        --*parts[i];
    }
    good.what = ST_PAY_RAM;
    assert_false(st_line_valid(&good));
}

static void what_cannot_be_counted_is_refused(void **state)
{
    st_err err = {0};
    (void)state;
    st_line line = {.what = ST_PAY_ADJUST, .quantity = INT64_MAX, .rate = ST_RATE_MAX};
    line.factor_bp = ST_FACTOR_MAX;
    assert_fails(st_line_reckon(&line, &err), ST_ERANGE, "more than can be counted");
    line.quantity = INT64_MIN;
    assert_fails(st_line_reckon(&line, &err), ST_ERANGE, "more than can be counted");
    line.rate = ST_RATE_MAX + 1;
    assert_fails(st_line_reckon(&line, &err), ST_ERANGE, "rate, factor or carry");
    line = (st_line){.what = ST_PAY_CAP, .rate = 1, .factor_bp = ST_BP, .carry_in = ST_BP};
    assert_fails(st_line_reckon(&line, &err), ST_ERANGE, "rate, factor or carry");
    line.carry_in = -1;
    assert_false(st_line_valid(&line));
}

static void factors_round_half_up(void **state)
{
    (void)state;
    assert_int_equal(st_price_factor((const int64_t[]){8000, 8500}, 2), 6800);
    assert_int_equal(st_price_factor((const int64_t[]){1, 5000}, 2), 1);
    assert_int_equal(st_price_factor((const int64_t[]){1, 4999}, 2), 0);
    assert_int_equal(st_price_factor((const int64_t[]){1000000, 110000, 10000, 10000}, 4),
                     11000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(a_remainder_is_carried),
        cmocka_unit_test(negative_ones_carry_upwards),
        cmocka_unit_test(a_changed_line_does_not_hold),
        cmocka_unit_test(what_cannot_be_counted_is_refused),
        cmocka_unit_test(factors_round_half_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
