/* Which floor would have cost least: by hand. */
#include "api/fleet_floors.h"
#include "base/testing.h"

#define HOUR    INT64_C(3600000)
#define DOLLARS INT64_C(1000000)

static void use(st_floor_use *u, int64_t gpus, int64_t from_h, int64_t to_h)
{
    st_entry e = {.kind = ST_ENTRY_USAGE,
                  .gpu_m = gpus * 1000,
                  .from_ms = from_h * HOUR,
                  .to_ms = to_h * HOUR,
                  .share = gpus * 1000 * (to_h - from_h) * HOUR};

    st_floor_use_add(u, &e, 2 * DOLLARS);
}

/* A floor of 10 GPUs for 10 hours at a dollar each; borrowed, a GPU costs two. */
static st_floor_advice advise(st_floor_use *u)
{
    st_floor_advice a;

    st_floor_advise(u, 10000 * 10 * HOUR, 100 * DOLLARS, 0, 10 * HOUR, &a);
    st_floor_use_done(u);
    return a;
}

static void nobody_used_it(void **state)
{
    st_floor_use u = {0};
    st_floor_advice a = advise(&u);

    (void)state;
    assert_int_equal(a.floor_m, 10000);
    assert_int_equal(a.better_m, 0);
    assert_int_equal(a.saved, 100 * DOLLARS);
}

static void all_of_it_was_used(void **state)
{
    st_floor_use u = {0};

    (void)state;
    use(&u, 10, 0, 10);
    st_floor_advice a = advise(&u);
    assert_int_equal(a.better_m, 10000);
    assert_int_equal(a.saved, 0);
}

/* Three all the time, six more for two hours: these are cheaper borrowed. */
static void peaks_are_borrowed(void **state)
{
    st_floor_use u = {0};

    (void)state;
    use(&u, 3, 0, 10);
    use(&u, 6, 4, 6);
    st_floor_advice a = advise(&u);
    assert_int_equal(a.better_m, 3000);
    assert_int_equal(a.saved, (70 - 6 * 2 * 2) * DOLLARS);
}

/* For eight hours of ten they are cheaper reserved. */
static void long_peaks_are_not(void **state)
{
    st_floor_use u = {0};

    (void)state;
    use(&u, 3, 0, 10);
    use(&u, 6, 1, 9);
    st_floor_advice a = advise(&u);
    assert_int_equal(a.better_m, 9000);
    assert_int_equal(a.saved, 10 * DOLLARS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_used_it),
        cmocka_unit_test(all_of_it_was_used),
        cmocka_unit_test(peaks_are_borrowed),
        cmocka_unit_test(long_peaks_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
