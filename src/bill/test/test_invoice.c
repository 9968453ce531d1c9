/* Cents and taxes: exact sums, both signs, the ends. */
#include "base/rng.h"
#include "base/testing.h"
#include "bill/invoice.h"

static void halves_go_away_from_zero(void **state)
{
    static const struct {
        int64_t udollars, cents;
    } rows[] = {{0, 0},
                {4999, 0},
                {5000, 1},
                {-4999, 0},
                {-5000, -1},
                {14999, 1},
                {15000, 2},
                {-15000, -2},
                {1234567, 123},
                {INT64_MAX, 922337203685478},
                {-INT64_MAX, -922337203685478}};

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(st_cents(rows[i].udollars), rows[i].cents);
}

static st_payable two_taxes(int64_t udollars)
{
    return (st_payable){
        .lines_udollars = udollars,
        .taxes = {{.name = "VAT", .rate_bp = 1900}, {.name = "City", .rate_bp = 825}},
        .ntaxes = 2};
}

static void a_bill_by_hand(void **state)
{
    st_payable p = two_taxes(123456789); /* 123.456789 */
    st_err err = {0};
    char buf[ST_CENTS_MAX];

    (void)state;
    assert_ok(st_payable_reckon(&p, &err));
    assert_int_equal(p.net_cents, 12346);
    assert_int_equal(p.rounding_udollars, 3211);
    assert_int_equal(p.taxes[0].cents, 2346); /* 23.4574 */
    assert_int_equal(p.taxes[1].cents, 1019); /* 10.18545 */
    assert_int_equal(p.total_cents, 15711);
    assert_string_equal(st_cents_text(buf, p.total_cents), "157.11");
    assert_string_equal(st_cents_text(buf, -5), "-0.05");
}

static void sums_hold_for_any_amount(void **state)
{
    st_rng rng;
    st_err err = {0};

    (void)state;
    st_rng_seed(&rng, 8);
    for (int i = 0; i < 100000; i++) {
        int64_t v = (int64_t)(st_rng_u64(&rng) >> (2 + st_rng_below(&rng, 60)));
        st_payable p = two_taxes(v), back = two_taxes(-v);
        int64_t taxes = 0;

        p.taxes[0].rate_bp = back.taxes[0].rate_bp = (int64_t)st_rng_below(&rng, 10001);
        assert_ok(st_payable_reckon(&p, &err));
        assert_ok(st_payable_reckon(&back, &err));
        for (int t = 0; t < p.ntaxes; t++)
            taxes += p.taxes[t].cents;
        assert_int_equal(p.lines_udollars + p.rounding_udollars, p.net_cents * ST_CENT);
        assert_in_range(p.rounding_udollars + ST_CENT / 2, 0, ST_CENT);
        assert_int_equal(p.total_cents, p.net_cents + taxes);
        assert_int_equal(back.total_cents, -p.total_cents);
        assert_int_equal(back.taxes[0].cents, -p.taxes[0].cents);
    }
}

static void what_is_none_is_refused(void **state)
{
    st_payable p = two_taxes(100);
    st_err err = {0};

    (void)state;
    p.taxes[1].rate_bp = -1;
    assert_fails(st_payable_reckon(&p, &err), ST_ERANGE, "City");
    p.taxes[1].rate_bp = 10001;
    assert_fails(st_payable_reckon(&p, &err), ST_ERANGE, "0 to 100 percent");
    assert_int_equal(p.net_cents, 0); /* untouched */
    p = (st_payable){
        .lines_udollars = INT64_MAX,
        .ntaxes = 4,
        .taxes = {{.rate_bp = 10000}, {.rate_bp = 10000}, {.rate_bp = 10000}, {.rate_bp = 10000}}};
    assert_ok(st_payable_reckon(&p, &err));
    assert_int_equal(p.total_cents, INT64_C(922337203685478) * 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_go_away_from_zero),
        cmocka_unit_test(a_bill_by_hand),
        cmocka_unit_test(sums_hold_for_any_amount),
        cmocka_unit_test(what_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
