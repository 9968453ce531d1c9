/* Who is late in a gang, and when nobody is. */
#include "base/macros.h"
#include "base/testing.h"
#include "health/stragglers.h"

#define N 8

static void gang(st_rank_use v[N])
{
    for (int i = 0; i < N; i++)
        v[i] = (st_rank_use){.seen = 60000, .busy = 57000 + i * 100, .sm = 33000 - i * 100};
}

static void found(void **state)
{
    st_rank_use v[N];
    st_straggler s;

    (void)state;
    gang(v);
    assert_false(st_straggler_find(v, N, &s));
    /* Its program is held up: its GPU is busy less, and waits for nobody. */
    v[3] = (st_rank_use){.seen = 60000, .busy = 36000, .sm = 33000};
    assert_true(st_straggler_find(v, N, &s));
    assert_int_equal(s.rank, 3);
    assert_false(s.device);
    assert_int_equal(s.busy_m, 600);
    assert_int_equal(s.waits_m, 50);
    assert_in_range(s.others_busy_m, 950, 970);
    assert_in_range(s.others_waits_m, 400, 430);
    /* Its GPU is slow: busy all the time, with work. */
    v[3] = (st_rank_use){.seen = 60000, .busy = 57000, .sm = 55000};
    assert_true(st_straggler_find(v, N, &s));
    assert_true(s.device);
}

static void none(void **state)
{
    st_rank_use v[N];
    st_straggler s;

    (void)state;
    gang(v);
    /* Idle, and waiting as the others do: it is done early, or does less. */
    v[2] = (st_rank_use){.seen = 60000, .busy = 30000, .sm = 5000};
    assert_false(st_straggler_find(v, N, &s));
    /* Two of them: the work is uneven. */
    v[2] = v[5] = (st_rank_use){.seen = 60000, .busy = 36000, .sm = 33000};
    assert_false(st_straggler_find(v, N, &s));
    /* Nobody waits: whoever is slow keeps nobody. */
    for (int i = 0; i < N; i++)
        v[i] = (st_rank_use){.seen = 60000, .busy = 57000, .sm = 55000};
    v[1].busy = v[1].sm = 20000;
    assert_false(st_straggler_find(v, N, &s));
    /* One that was not seen for long, or not measured; and too few. */
    gang(v);
    v[3] = (st_rank_use){.seen = 60000, .busy = 36000, .sm = 33000};
    v[7].seen = ST_STRAGGLER_SEEN - 1;
    assert_false(st_straggler_find(v, N, &s));
    v[7] = (st_rank_use){.seen = 60000, .busy = 57000, .sm = -1};
    assert_false(st_straggler_find(v, N, &s));
    gang(v);
    v[1] = (st_rank_use){.seen = 60000, .busy = 36000, .sm = 33000};
    assert_false(st_straggler_find(v, 2, &s));
    assert_true(st_straggler_find(v, 3, &s));
    assert_false(st_straggler_find(v, 0, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found), cmocka_unit_test(none)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
