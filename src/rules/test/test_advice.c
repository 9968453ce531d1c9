/* What is said about the next submit (rules/advice.h). */
#include <string.h>

#include "base/strbuf.h"
#include "base/testing.h"
#include "rules/advice.h"

static void hear(void *ctx, const char *sentence)
{
    st_strbuf_addf(ctx, "%s\n", sentence);
}

static const char *said(st_strbuf *out, st_advice_use use)
{
    st_strbuf_clear(out);
    st_advice(&use, hear, out);
    return st_strbuf_str(out);
}

#define H100  .asked_mib = 81920, .whole_mib = 81920, .seen_ms = 60000, .busy_ms = 50000
#define EIGHT .gpus = 8, .asked_mib = 8 * 81920, .whole_mib = 81920, .seen_ms = 60000

static void test_memory(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    assert_string_equal(said(&out, (st_advice_use){.gpus = 1, H100, .peak_mib = 17 * 1024}),
                        "it used at most 17.0 GiB of 80.0 GiB of GPU memory: a MIG slice with 21.0 "
                        "GiB would hold it, or a share (--share 0.3)\n");
    assert_string_equal(said(&out, (st_advice_use){.gpus = 1, H100, .peak_mib = 60 * 1024}), "");
    assert_string_equal(
        said(&out, (st_advice_use){.gpus = 1, H100, .peak_mib = 81000}),
        "it filled its GPU memory (79.1 GiB of 80.0 GiB): ask for more next time\n");
    assert_string_equal(
        said(&out, (st_advice_use){EIGHT, .busy_ms = -1, .peak_mib = 100 * 1024}),
        "a task used at most 100.0 GiB of 640.0 GiB of GPU memory: 2 GPUs would hold it\n");
    assert_string_equal(said(&out, (st_advice_use){EIGHT, .busy_ms = -1, .peak_mib = 500 * 1024}),
                        "");
}

static void test_busy(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    assert_string_equal(
        said(&out, (st_advice_use){EIGHT, .busy_ms = 7200, .peak_mib = -1}),
        "its GPUs were busy 12 % of the time: see whether it waits for its data, or "
        "take fewer\n");
    assert_string_equal(said(&out, (st_advice_use){EIGHT, .busy_ms = 12000, .peak_mib = -1}), "");
}

/* What is not known is not guessed at. */
static void test_unknown(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    assert_string_equal(
        said(&out,
             (st_advice_use){
                 .gpus = 1, .asked_mib = 81920, .seen_ms = 1000, .peak_mib = 10, .busy_ms = 0}),
        "");
    assert_string_equal(
        said(&out, (st_advice_use){.gpus = 1, .seen_ms = 60000, .peak_mib = 10, .busy_ms = -1}),
        "");
    assert_string_equal(
        said(&out,
             (st_advice_use){
                 .gpus = 1, .asked_mib = 81920, .seen_ms = 60000, .peak_mib = 1024, .busy_ms = -1}),
        "it used at most 1.0 GiB of 80.0 GiB of GPU memory: a MIG slice with 3.0 "
        "GiB would hold it\n");
    assert_string_equal(said(&out, (st_advice_use){0}), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
