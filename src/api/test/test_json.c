/*
 * Pieces of answers: commas, times, amounts, money; and which fields of a job are asked for.
 */
#include "api/state.h"
#include "base/testing.h"

static void pieces_join(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    st_strbuf_addc(&out, '{');
    st_out_int(&out, "n", INT64_MIN);
    st_out_text(&out, "text", "a \"b\"\n");
    st_out_raw(&out, "list", "[");
    st_strbuf_addc(&out, ']');
    st_out_milli(&out, "gpus", 1500);
    st_out_milli(&out, "share", 125);
    st_strbuf_addc(&out, '}');
    assert_string_equal(st_strbuf_str(&out),
                        "{\"n\":-9223372036854775808,\"text\":\"a \\\"b\\\"\\u000a\","
                        "\"list\":[],\"gpus\":1.5,\"share\":0.125}");
}

static void no_time_is_null(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    st_strbuf_addc(&out, '{');
    st_out_time(&out, "a", ST_TIME_NEVER);
    st_out_time(&out, "b", -1);
    st_out_time(&out, "c", 0);
    st_out_time(&out, "d", INT64_C(1793445010007));
    assert_string_equal(st_strbuf_str(&out),
                        "{\"a\":null,\"b\":null,\"c\":\"1970-01-01T00:00:00.000Z\","
                        "\"d\":\"2026-10-31T11:10:10.007Z\"");
}

static void money_is_exact(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    st_strbuf_addc(&out, '{');
    st_out_money(&out, "cost", 1500000);
    st_out_money(&out, "back", -1);
    st_out_money_if(&out, "left", true, -1);
    st_out_money_if(&out, "cap", false, 0);
    assert_string_equal(st_strbuf_str(&out),
                        "{\"cost_udollars\":1500000,\"cost\":\"1.50\",\"back_udollars\":-1,"
                        "\"back\":\"-0.000001\",\"left_udollars\":-1,\"left\":\"-0.000001\","
                        "\"cap_udollars\":null,\"cap\":null");
}

static void fields_by_name(void **state)
{
    uint32_t one = 0, two = 0, both = 0, kept = 7;
    st_err err;

    (void)state;
    assert_ok(st_api_job_fields_read("id", &one, &err));
    assert_ok(st_api_job_fields_read("state", &two, &err));
    assert_ok(st_api_job_fields_read("state,id,state", &both, &err));
    assert_true(one != 0 && two != 0 && (one & two) == 0);
    assert_int_equal(both, one | two);
    assert_fails(st_api_job_fields_read("id,stat", &kept, &err), ST_EINVAL,
                 "no field \"stat\" (did you mean state?)");
    assert_fails(st_api_job_fields_read("", &kept, &err), ST_EINVAL, "no field \"\"");
    assert_fails(st_api_job_fields_read("id,", &kept, &err), ST_EINVAL, "no field \"\"");
    /* A word that is longer than any name is cut, and is none either. */
    assert_fails(st_api_job_fields_read("statestatestatestatestatestatestatestate", &kept, &err),
                 ST_EINVAL, "no field");
    assert_int_equal(kept, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_join),
        cmocka_unit_test(no_time_is_null),
        cmocka_unit_test(money_is_exact),
        cmocka_unit_test(fields_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
