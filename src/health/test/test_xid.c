/* What XIDs ask for, by the catalogue and by a site. */
#include "base/macros.h"
#include "base/testing.h"
#include "health/health.h"

static void test_catalogue(void **state)
{
    static const struct {
        int xid;
        st_xid_action action;
    } rows[] = {
        {0, ST_XID_UNKNOWN},   {13, ST_XID_RESTART}, {31, ST_XID_RESTART},   {43, ST_XID_LOG},
        {45, ST_XID_FOLLOW},   {48, ST_XID_RESET},   {54, ST_XID_INSPECT},   {63, ST_XID_LOG},
        {64, ST_XID_RESET},    {74, ST_XID_RESET},   {79, ST_XID_REBOOT},    {94, ST_XID_RESTART},
        {95, ST_XID_RESET},    {119, ST_XID_RESET},  {145, ST_XID_FOLLOW},   {158, ST_XID_RESET},
        {159, ST_XID_UNKNOWN}, {-1, ST_XID_UNKNOWN}, {1000, ST_XID_UNKNOWN},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (st_xid_of(NULL, rows[i].xid) != rows[i].action)
            fail_msg("XID %d: %s", rows[i].xid, st_xid_action_name(st_xid_of(NULL, rows[i].xid)));
}

/* What programs cause, or what only informs, takes no GPU out of service. */
static void test_fatal(void **state)
{
    int fatal = 0;

    (void)state;
    for (int xid = 0; xid <= ST_XID_MAX; xid++)
        fatal += st_xid_fatal(st_xid_of(NULL, xid));
    assert_int_equal(fatal,
                     18); /* 46 48 54 62 64 74 79 95 109 110 119 120 136 140 143 155 156 158 */
    assert_false(st_xid_fatal(ST_XID_RESTART));
    assert_false(st_xid_fatal(ST_XID_FOLLOW));
    assert_true(st_xid_fatal(ST_XID_INSPECT));
}

static void test_site(void **state)
{
    st_xid_rules rules = {0};
    st_err err;

    (void)state;
    assert_ok(st_xid_rules_read("63=reset,31=log", &rules, &err));
    assert_int_equal(st_xid_of(&rules, 63), ST_XID_RESET);
    assert_int_equal(st_xid_of(&rules, 31), ST_XID_LOG);
    assert_int_equal(st_xid_of(&rules, 79), ST_XID_REBOOT);
    assert_ok(st_xid_rules_read("", &rules, &err));
    assert_int_equal(st_xid_of(&rules, 63), ST_XID_RESET);
    /* All of it, or nothing. */
    assert_fails(st_xid_rules_read("79=log,45=burn", &rules, &err), ST_EPARSE, "burn");
    assert_int_equal(st_xid_of(&rules, 79), ST_XID_REBOOT);
    assert_fails(st_xid_rules_read("1000=log", &rules, &err), ST_ERANGE, "1000");
    assert_fails(st_xid_rules_read("79", &rules, &err), ST_EPARSE, "XID=ACTION");
    assert_fails(st_xid_rules_read("79=log,", &rules, &err), ST_EPARSE, "comma");
    assert_fails(st_xid_rules_read(",79=log", &rules, &err), ST_EPARSE, "commas");
    assert_fails(st_xid_rules_read("79=unknown", &rules, &err), ST_EPARSE, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalogue),
        cmocka_unit_test(test_fatal),
        cmocka_unit_test(test_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
