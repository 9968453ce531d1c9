/*
 * The arithmetic under st_share_divide, at the edges a tree seldom reaches.
 */
#include <math.h>

#include "base/testing.h"
#include "share/fill.h"

static void fill(double amount, int n, st_fill_item *items, const double *want)
{
    st_fill(amount, items, n);
    for (int i = 0; i < n; i++)
        if (fabs(items[i].x - want[i]) > 1e-12)
            fail_msg("amount %g: item %d gets %.15g, wanted %.15g", amount, i, items[i].x, want[i]);
}

/* Two items that rise in turn: the first from 0 to 2 by level 2, the second, which holds 5, from
 * level 5 to 7. Between 2 and 5 the sum stands still at 7. */
static void test_steps(void **state)
{
    st_fill_item items[] = {{.lo = 0, .hi = 2, .offset = 0, .weight = 1},
                            {.lo = 5, .hi = 7, .offset = 0, .weight = 1}};

    (void)state;
    fill(4, 2, items, (double[]){0, 5}); /* below the sum of lo */
    fill(5, 2, items, (double[]){0, 5});
    fill(6, 2, items, (double[]){1, 5});
    fill(7, 2, items, (double[]){2, 5});
    fill(8.5, 2, items, (double[]){2, 6.5});
    fill(9, 2, items, (double[]){2, 7});
    fill(99, 2, items, (double[]){2, 7}); /* above the sum of hi */
}

static void test_nothing_to_fill(void **state)
{
    st_fill_item full = {.lo = 3, .hi = 3, .offset = 3, .weight = 2};

    (void)state;
    st_fill(5, NULL, 0);
    fill(5, 1, &full, (double[]){3});
    fill(1, 1, &full, (double[]){3});
}

/* One amount beside a million millionths: added one by one in a double the small ones would
 * be lost. */
static void test_sum(void **state)
{
    st_sum s = {0};

    (void)state;
    st_sum_add(&s, 1e16);
    for (int i = 0; i < 1000; i++)
        st_sum_add(&s, 1);
    st_sum_add(&s, -1e16);
    assert_true(st_sum_get(&s) == 1000);
}

static void wholes(int64_t total, int n, const double *shares, const int64_t *want)
{
    int64_t got[8];

    st_wholes(total, shares, n, 1e-9, got);
    for (int i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%d gets %d, wanted %d", i, (int)got[i], (int)want[i]);
}

static void test_wholes(void **state)
{
    (void)state;
    wholes(3, 3, (double[]){0.2, 1.7, 1.1}, (int64_t[]){0, 2, 1});
    /* Equal but for rounding: the first, although the second is larger by a hair. */
    wholes(1, 3, (double[]){0.5 - 1e-13, 0.5, 0}, (int64_t[]){1, 0, 0});
    wholes(2, 4, (double[]){0.3, 0.5 - 1e-13, 0.5, 0.7}, (int64_t[]){0, 1, 0, 1});
    /* A tie that the cut does not touch stays as it is. */
    wholes(2, 3, (double[]){0.8, 0.8 + 1e-13, 0.4}, (int64_t[]){1, 1, 0});
    /* A share a hair below 3 is 3. */
    wholes(4, 3, (double[]){3 - 1e-13, 0.6, 0.4}, (int64_t[]){3, 1, 0});
}

/* The parent lost a unit in a tie of its own; the last of the children goes without. */
static void test_wholes_missing(void **state)
{
    (void)state;
    wholes(5, 2, (double[]){3, 3}, (int64_t[]){3, 2});
    wholes(5, 3, (double[]){3, 3, 0.5}, (int64_t[]){3, 2, 0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_nothing_to_fill),
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_wholes),
        cmocka_unit_test(test_wholes_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
