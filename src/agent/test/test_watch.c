/*
 * What tasks hold of a shared GPU: sums over their processes, and where tolerance ends.
 */
#include "agent/watch.h"
#include "base/macros.h"
#include "base/testing.h"

static const st_gpu_proc procs[] = {
    {.pid = 10, .mem_mib = 1000},
    {.pid = 11, .mem_mib = 500},
    {.pid = 20, .mem_mib = 70000},
    {.pid = 12, .mem_mib = ST_GPU_UNKNOWN},
    {.pid = 11, .mem_mib = 520, .mps = true},
};

static int64_t sum(const int64_t *pids, size_t n)
{
    return st_watch_sum(procs, ST_ARRAY_LEN(procs), pids, n);
}

static void processes_of_a_task_count_together(void **state)
{
    (void)state;
    assert_int_equal(sum((int64_t[]){10, 11, 99}, 3), 1520);
    assert_int_equal(sum((int64_t[]){20}, 1), 70000);
}

static void what_the_driver_does_not_tell_counts_as_nothing(void **state)
{
    (void)state;
    assert_int_equal(sum((int64_t[]){12}, 1), 0);
    assert_int_equal(sum(NULL, 0), 0);
}

static void a_context_is_tolerated_and_no_more(void **state)
{
    (void)state;
    assert_false(st_watch_above(0, 0));
    assert_false(st_watch_above(1024 + ST_WATCH_CONTEXT_MIB, 1024));
    assert_true(st_watch_above(1024 + ST_WATCH_CONTEXT_MIB + 1, 1024));
}

static void a_process_has_a_number_in_its_container(void **state)
{
    (void)state;
    assert_int_equal(st_watch_inside("Name:\tx\nNSpid:\t4711\t12\t3\nNSpgid:\t9\n"), 3);
    assert_int_equal(st_watch_inside("Name:\tx\nNSpid:\t4711\nNSpgid:\t9\n"), 4711);
    assert_int_equal(st_watch_inside("Name:\tx\n"), -1);
    assert_int_equal(st_watch_inside(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_a_number_in_its_container),
        cmocka_unit_test(processes_of_a_task_count_together),
        cmocka_unit_test(what_the_driver_does_not_tell_counts_as_nothing),
        cmocka_unit_test(a_context_is_tolerated_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
