/* Names of the enums in usage records, each its own. */
#include "base/testing.h"
#include "model/record.h"

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < ST_BASIS_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(st_basis_name((st_basis)k), st_basis_name((st_basis)i));
    for (int i = 0; i < ST_CUT_COUNT; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(st_cut_name((st_cut)k), st_cut_name((st_cut)i));
    assert_string_equal(st_basis_name(ST_BASIS_ON_DEMAND), "on_demand");
    assert_string_equal(st_cut_name(ST_CUT_FAULT), "fault");
    assert_string_equal(st_record_name(ST_REC_RESERVE), "reserve");
}

static void test_blame(void **state)
{
    (void)state;
    assert_true(st_cut_blameless(ST_CUT_PREEMPTED) && st_cut_blameless(ST_CUT_FAULT));
    assert_false(st_cut_blameless(ST_CUT_ENDED) || st_cut_blameless(ST_CUT_GOES_ON));
}

static void test_same(void **state)
{
    (void)state;
    st_grant one[] = {{1, 2, -1}}, other[] = {{1, 2, 0}};
    st_record a = {.kind = ST_REC_GRANT, .tasks = 1, .grants = one}, b = a;
    assert_true(st_record_same(&a, &b));
    b.grants = other;
    assert_false(st_record_same(&a, &b));
    b.grants = NULL;
    assert_false(st_record_same(&a, &b));
    b = a;
    b.overhead = 1;
    assert_false(st_record_same(&a, &b));
    b = a;
    b.lost = 1;
    assert_false(st_record_same(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
