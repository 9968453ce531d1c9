/* What each kind of fault asks for. */
#include "base/testing.h"
#include "health/health.h"

static void asks(st_fault kind, int64_t code, st_remedy want)
{
    const st_finding f = {.kind = kind, .gpu = 1, .code = code};
    if (st_remedy_of(&f) != want)
        fail_msg("%s %lld asks for %s, wanted %s", st_fault_name(kind), (long long)code,
                 st_remedy_name(st_remedy_of(&f)), st_remedy_name(want));
}

static void test_asks(void **state)
{
    (void)state;
    asks(ST_FAULT_XID, 79, ST_REMEDY_REBOOT);
    asks(ST_FAULT_XID, 95, ST_REMEDY_RESET);
    asks(ST_FAULT_XID, 54, ST_REMEDY_INSPECT);
    asks(ST_FAULT_XID, 63, ST_REMEDY_RESET); /* said by a site: the catalogue only logs it */
    asks(ST_FAULT_RECOVERY, 2, ST_REMEDY_REBOOT);
    asks(ST_FAULT_RECOVERY, 99, ST_REMEDY_INSPECT);
    asks(ST_FAULT_GPU, 0, ST_REMEDY_REBOOT);
    asks(ST_FAULT_SILENT, 0, ST_REMEDY_NONE);
    asks(ST_FAULT_DISK, 0, ST_REMEDY_NONE);
    assert_string_equal(st_remedy_about(ST_REMEDY_RESET), "the GPU is reset");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_asks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
