/* What borrows inside a floor: the floor is paid once. */
#include "base/testing.h"
#include "ledger/test/books.h"

#define GPU_HOUR (1000 * HOUR)

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    books_prices(l, OCT_1, "prices: p\ngpu: {\"*\": {reserved: 2.00, burst: 3.00}}\n");
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

/* A floor of 8 and a gang of 12 for 10 h, 8 of it inside: the floor is paid once, 4 x 10 x $3.00 = $120.00 beside it. A
 * correction takes back its part of both. */
static void floor_paid_once(void **state)
{
    st_ledger *l = *state;
    st_idle_floors idle = {0};
    st_err err = {0};
    st_entry floor = books_reserve("ml", "h100", 8000, OCT_1, OCT_1 + 10 * HOUR);
    st_entry use = books_usage("ml", "1", "h100", 12000, ST_BASIS_BURST, OCT_1, OCT_1 + 10 * HOUR);
    use.inside = use.share / 3 * 2;
    books_post(l, &floor);
    books_post(l, &use);
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_GUARANTEED), 80 * GPU_HOUR);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_GUARANTEED), 0);
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_BURST), 40 * GPU_HOUR);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_BURST), 120 * DOLLARS);
    assert_ok(st_ledger_idle_floors(l, "org", NULL, &idle, &err));
    assert_int_equal(idle.n, 0); /* nothing of the floor is idle on paper */
    st_vec_free(&idle);

    st_entry fix = use;
    fix.kind = ST_ENTRY_FIX;
    fix.fixes = use.seq;
    fix.ngrants = 0;
    fix.from_ms = OCT_1 + 5 * HOUR;
    fix.share = -use.share / 2;
    fix.inside = -use.inside / 2;
    fix.held = -use.held / 2;
    fix.cpu = fix.ram = fix.seen = fix.busy = fix.energy_mj = 0;
    books_post(l, &fix);
    assert_int_equal(books_amount(l, "ml", NULL, ST_PAY_BURST), 60 * DOLLARS);
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_GUARANTEED), 40 * GPU_HOUR);
}

/* What is inside a floor is a part of what borrows, and of nothing else. */
static void inside_is_a_part(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    st_entry use = books_usage("ml", "1", "h100", 2000, ST_BASIS_BURST, OCT_1, OCT_1 + HOUR), e;
    const int64_t wrong[] = {-1, use.share + 1};
    for (size_t i = 0; i < ST_ARRAY_LEN(wrong); i++) {
        e = use;
        e.inside = wrong[i];
        assert_int_equal(st_ledger_price(l, &e, &err), -ST_EINVAL);
    }
    e = use;
    e.inside_idle = 1; /* nobody measured it */
    assert_int_equal(st_ledger_price(l, &e, &err), -ST_EINVAL);
    e = use;
    e.inside = 5;
    e.basis = ST_BASIS_GUARANTEED;
    assert_int_equal(st_ledger_price(l, &e, &err), -ST_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(floor_paid_once, setup, teardown),
        cmocka_unit_test_setup_teardown(inside_is_a_part, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
