/* What dcgmi says in its versions, and what is none of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/dcgm.h"
#include "base/macros.h"
#include "base/testing.h"

#define DIAG(name, tests) \
    "{\"" name "\":{\"test_categories\":[" tests "]},\"metadata\":{\"version\":\"4.2.3\"}}"

static int read_it(const char *text, st_dcgm *ret, st_err *err)
{
    return st_dcgm_read(text, strlen(text), 4, ret, err);
}

static void versions(void **state)
{
    st_err err;
    st_dcgm d;

    (void)state;
    /* By lists of numbers, as before 4.0. */
    assert_ok(
        read_it("starting\n" DIAG(
                    "DCGM GPU Diagnostic",
                    "{\"category\":\"Hardware\",\"tests\":[{\"name\":\"GPU Memory\",\"results\":["
                    "{\"gpu_ids\":\"0,1,3\",\"status\":\"PASS\"},"
                    "{\"gpu_ids\":\"2\",\"status\":\"FAIL\",\"warnings\":\"bad\"}]}]}"),
                &d, &err));
    assert_int_equal(d.made[0] + d.made[1] + d.made[2] + d.made[3], 4);
    assert_int_equal(d.failed[2], 1);
    assert_string_equal(d.first[2], "GPU Memory");
    assert_int_equal(d.failed[0] + d.failed[1] + d.failed[3], 0);
    /* By entities. A setting fails on all GPUs and is no fault of theirs; a warning is no failure. */
    assert_ok(read_it(
        DIAG("DCGM Diagnostic",
             "{\"category\":\"Deployment\",\"tests\":[{\"name\":\"software\",\"results\":["
             "{\"entity_group\":\"GPU\",\"entity_id\":0,\"status\":\"Fail\",\"warnings\":[{"
             "\"warning\":"
             "\"Persistence mode is off\",\"error_category\":8}]}]}]},"
             "{\"category\":\"Stress\",\"tests\":[{\"name\":\"targeted_power\",\"results\":["
             "{\"entity_group\":\"GPU\",\"entity_id\":0,\"status\":\"Pass\"},"
             "{\"entity_group\":\"GPU\",\"entity_id\":1,\"status\":\"Warn\"},"
             "{\"entity_group\":\"GPU\",\"entity_id\":3,\"status\":\"Skip\"},"
             "{\"entity_group\":\"CPU\",\"entity_id\":1,\"status\":\"Pass\"}],"
             "\"test_summary\":{\"status\":\"Fail\"}}]}"),
        &d, &err));
    assert_string_equal(d.version, "4.2.3");
    assert_string_equal(d.setting, "software: Persistence mode is off");
    assert_int_equal(d.failed[0] + d.failed[1] + d.failed[3], 0);
    assert_int_equal(d.made[0], 1);
    assert_int_equal(d.made[3], 0);
    /* Tests without categories. */
    assert_ok(read_it(
        "{\"DCGM Diagnostic\":{\"tests\":[{\"name\":\"pcie\",\"results\":[{\"gpu_id\":\"1\","
        "\"status\":\"Fail\"},{\"gpu_id\":\"1\",\"status\":\"Fail\"}]}]}}",
        &d, &err));
    assert_int_equal(d.failed[1], 2);
}

static void is_none(void **state)
{
    static const char *const rows[] = {
        "",
        "dcgmi: command not found",
        "Error: unable to connect to host engine",
        "{",
        "[]",
        "{}",
        "{\"DCGM Diagnostic\":7}",
        "{\"DCGM Diagnostic\":{\"test_categories\":{}}}",
        DIAG("DCGM Diagnostic", "null,7,[],{\"tests\":\"x\"},{\"tests\":[1,{\"results\":[1,{}]}]}"),
        /* GPUs that the node has not. */
        DIAG("DCGM Diagnostic",
             "{\"category\":\"Hardware\",\"tests\":[{\"name\":\"x\",\"results\":[{\"gpu_ids\":"
             "\"99,-1,4,4294967296,zero\",\"status\":\"Fail\"}]}]}"),
        /* All of it skipped. */
        DIAG("DCGM Diagnostic", "{\"tests\":[{\"results\":[{\"gpu_id\":0,\"status\":\"Skip\"}]}]}"),
        "{\"DCGM Diagnostic\":{\"runtime_error\":\"no "
        "engine\",\"tests\":[{\"results\":[{\"gpu_id\":0,"
        "\"status\":\"Fail\"}]}]}}",
    };
    char *huge = malloc(ST_DCGM_MAX + 2);
    st_err err;
    st_dcgm d;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        assert_int_equal(read_it(rows[i], &d, &err), -ST_EDOWN);
    memset(huge, '[', ST_DCGM_MAX + 1);
    huge[0] = '{';
    assert_fails(st_dcgm_read(huge, ST_DCGM_MAX + 1, 4, &d, &err), ST_EDOWN,
                 "more than can be read");
    assert_int_equal(st_dcgm_read(huge, ST_DCGM_MAX, 4, &d, &err), -ST_EDOWN);
    free(huge);
}

/* Names of others are no lines of ours. */
static void tamed(void **state)
{
    st_err err;
    st_dcgm d;

    (void)state;
    assert_ok(read_it(
        "{\"DCGM Diagnostic\":{\"tests\":[{\"name\":\"a\\nevent=node_ready\\u001b[2J"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"results\":[{"
        "\"gpu_id\":0,\"status\":\"fail\"}]}]}}",
        &d, &err));
    assert_true(strlen(d.first[0]) < sizeof d.first[0]);
    assert_null(strpbrk(d.first[0], "\n\x1b"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(versions), cmocka_unit_test(is_none),
                                       cmocka_unit_test(tamed)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
