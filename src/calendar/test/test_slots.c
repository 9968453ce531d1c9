/* Slots by node. */
#include "base/testing.h"
#include "calendar/slots.h"

static void add(st_slots *s, int32_t node, uint64_t booking, int64_t from, int64_t to,
                uint16_t devs, int64_t cpu_m)
{
    st_slots_add(s, node,
                 (st_slot){.booking = booking,
                           .close_ms = from - 10,
                           .from_ms = from,
                           .clear_ms = to,
                           .devs = devs,
                           .cpu_m = cpu_m,
                           .ram_mib = 2 * cpu_m});
}

static void test_overlap(void **state)
{
    (void)state;
    st_slots *s = st_slots_new();
    assert_int_equal(st_slots_in(s, 7, 0, 100, 0).devs, 0); /* never heard of */
    add(s, 3, 2, 200, 300, 0xf0, 4);
    add(s, 3, 1, 100, 200, 0x0f, 2);
    assert_int_equal(st_slots_in(s, 3, 0, 100, 0).devs, 0); /* windows are half open */
    assert_int_equal(st_slots_in(s, 3, 300, 400, 0).devs, 0);
    assert_int_equal(st_slots_in(s, 3, 199, 200, 0).devs, 0x0f);
    assert_int_equal(st_slots_in(s, 3, 150, 250, 0).devs, 0xff);
    assert_int_equal(st_slots_in(s, 3, 150, 250, 2).devs, 0x0f);
    assert_int_equal(st_slots_of(s, 3)->v[0].booking, 1); /* in order of time */
    st_slots_remove(s, 3, 1);
    st_slots_remove(s, 9, 1);
    assert_int_equal(st_slots_in(s, 3, 150, 250, 0).devs, 0xf0);
    st_slots_remove(s, 3, 2);
    assert_null(st_slots_of(s, 3));
    st_slots_free(s);
}

static void test_cpu(void **state)
{
    (void)state;
    st_slots *s = st_slots_new();
    add(s, 0, 1, 100, 200, 1, 5);
    add(s, 0, 2, 150, 250, 2, 7);
    add(s, 0, 3, 200, 300, 4, 11);
    assert_int_equal(st_slots_in(s, 0, 100, 150, 0).cpu_m, 5);
    assert_int_equal(st_slots_in(s, 0, 100, 300, 0).cpu_m, 18); /* 2 and 3 at a time */
    assert_int_equal(st_slots_in(s, 0, 100, 300, 3).cpu_m, 12);
    assert_int_equal(st_slots_in(s, 0, 160, 170, 0).ram_mib, 24);
    st_slots_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlap), cmocka_unit_test(test_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
