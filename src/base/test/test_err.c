/*
 * Error values: filling, prefixing, cutting, and the table of codes.
 */
#include "base/testing.h"

static void test_fill(void **state)
{
    st_err err = {0};

    (void)state;
    assert_int_equal(st_fail(&err, ST_EQUOTA, "team %s: %d asked", "red", 8), -ST_EQUOTA);
    assert_int_equal(err.code, ST_EQUOTA);
    assert_string_equal(err.msg, "team red: 8 asked");
    assert_int_equal(st_fail(NULL, ST_EIO, "nobody listens"), -ST_EIO);
}

static void test_own_message_as_argument(void **state)
{
    st_err err = {0};

    (void)state;
    st_fail(&err, ST_EINVAL, "inner");
    st_fail(&err, ST_ESTATE, "outer: %s", err.msg);
    assert_string_equal(err.msg, "outer: inner");
    assert_int_equal(err.code, ST_ESTATE);
}

static void test_prefix(void **state)
{
    st_err err = {0};

    (void)state;
    st_fail(&err, ST_ENOENT, "no such pool");
    assert_int_equal(st_fail_prefix(&err, "job %d: ", 7), -ST_ENOENT);
    assert_string_equal(err.msg, "job 7: no such pool");
    assert_int_equal(st_fail_prefix(NULL, "x"), -ST_EINTERNAL);
}

static void test_cut(void **state)
{
    st_err err = {0};
    char text[2000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    st_fail(&err, ST_EINVAL, "%s", text);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
    assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");
    st_fail_prefix(&err, "front: ");
    assert_memory_equal(err.msg, "front: aaa", 10);
    assert_string_equal(err.msg + sizeof(err.msg) - 4, "...");

    /* Two-byte characters, so that the cut falls inside one at one of the two offsets. */
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    for (int shift = 0; shift < 2; shift++) {
        size_t dots;

        st_fail(&err, ST_EINVAL, "%s%s", shift ? "x" : "", text);
        dots = strlen(err.msg) - 3;
        assert_string_equal(err.msg + dots, "...");
        assert_int_equal((unsigned char)err.msg[dots - 1], 0xA9);
    }
}

static void test_table(void **state)
{
    (void)state;
    assert_int_equal(ST_EINVAL, 1);
    assert_int_equal(ST_EINTERNAL, 11);
    assert_int_equal(ST_ECORRUPT, 12);
    assert_string_equal(st_err_name(-ST_ECORRUPT), "corrupt");
    assert_string_equal(st_err_name(ST_OK), "ok");
    assert_string_equal(st_err_name(ST_ENOENT), "not_found");
    assert_string_equal(st_err_name(-ST_ENOENT), "not_found");
    assert_int_equal(st_err_exit(0), 0);
    assert_int_equal(st_err_exit(-ST_EQUOTA), 6);
    assert_int_equal(st_err_exit(ST_EINTERNAL), 70);
    assert_int_equal(st_err_http(ST_EFULL), 507);
    assert_int_equal(st_err_http(12345), 500);
    assert_string_equal(st_err_name(INT32_MIN), "internal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),   cmocka_unit_test(test_own_message_as_argument),
        cmocka_unit_test(test_prefix), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
