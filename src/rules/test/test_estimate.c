/*
 * Estimates of memory, worked by hand, and the smallest thing they fit.
 */
#include <jansson.h>
#include <string.h>

#include "base/testing.h"
#include "rules/fit.h"
#include "rules/values.h"

static const st_rules_options no_options = {0}; /* a100-40 a100-80 h100 h200 l40s v100 */

static st_model model(const char *text)
{
    st_model m = {0};
    st_err err = {0};

    assert_ok(st_model_parse(text, &m, &err));
    return m;
}

static void test_models(void **state)
{
    static const char *const bad[] = {"",     "llama", "b",   "13",     "0b",     "13g",
                                      "1e3b", "x7b",   "8xb", "99999t", "0.0001m"};
    st_model m;
    st_err err = {0};

    (void)state;
    assert_int_equal(model("13b").params, INT64_C(13000000000));
    assert_int_equal(model("0.5B").params, 500000000);
    assert_int_equal(model("350m").params, 350000000);
    assert_int_equal(model("1.5t").params, INT64_C(1500000000000));
    assert_int_equal(model("8x7b").params, INT64_C(56000000000));
    assert_int_equal(model("meta/llama-3.1-70b-instruct").params, INT64_C(70000000000));
    /* Rows of the table are met exactly: 8b is 32 layers of 4096, keys of 1024. */
    assert_int_equal(model("8b").kv_values, 32 * 1024);
    assert_int_equal(model("8b").all_values, 32 * 4096);
    assert_int_equal(model("70b").kv_values, 80 * 1024);
    assert_int_equal(model("405b").all_values, 126 * 16384);
    /* 13b is 5/6 of the way from 8b (32768) to 14b (49152): 32768 + 16384 * 5 / 6 = 46421. */
    assert_int_equal(model("13b").kv_values, 46421);
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++)
        assert_fails(st_model_parse(bad[i], &m, &err), ST_EINVAL, "does not say how large");
}

static void test_inference(void **state)
{
    const st_estimate_rules usual = st_estimate_default();
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    st_model m = model("13b");
    st_estimate_need need;

    (void)state;
    /* Weights 13e9 × 2 = 26e9 bytes / 2^20 = 24795.5 -> 24796 MiB.
     * KV cache 2 × 46421 × 2 bytes = 185684 per token; × 8192 = 1521123328 bytes -> 1451 MiB.
     * 26247, and 10 % rounded up is 2625: 28872. On one GPU 1024 more: 29896. */
    need = st_need_inference(&usual, &m, ST_DTYPE_FP16, 8192, 1, false, &why);
    assert_int_equal(need.split_mib, 28872);
    assert_int_equal(st_need_each(&need, 1), 29896);
    assert_int_equal(st_need_each(&need, 2), 14436 + 1024);
    assert_string_equal(st_strbuf_str(&why),
                        "13 billion parameters × 2 bytes = 24.2 GiB; KV cache 8192 tokens × 1 "
                        "sequence × 181 KiB = 1.4 GiB; with 10 % for workspace 28.2 GiB, and 1 "
                        "GiB per GPU for the runtime");

    /* 70b at int4: 70e9 × 4.5 / 8 = 39.375e9 bytes -> 37551 MiB.
     * 2 × 81920 × 2 = 327680 bytes = 320 KiB per token; × 4096 × 16 = 20480 MiB.
     * 58031 + 5804 = 63835. */
    m = model("70b");
    need = st_need_inference(&usual, &m, ST_DTYPE_INT4, 4096, 16, false, &why);
    assert_int_equal(need.split_mib, 63835);

    /* 8b at fp32, all heads: 32e9 bytes -> 30518 MiB; 2 × 131072 × 4 = 1 MiB per token;
     * × 1000 = 1000 MiB. 31518 + 3152 = 34670. */
    m = model("8b");
    need = st_need_inference(&usual, &m, ST_DTYPE_FP32, 1000, 1, true, &why);
    assert_int_equal(need.split_mib, 34670);
}

static void test_finetune(void **state)
{
    const st_estimate_rules usual = st_estimate_default();
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    st_model m = model("8b");
    st_estimate_need need;

    (void)state;
    /* 8e9 × 16 = 128e9 bytes -> 122071 MiB; activations 131072 × 8 = 1 MiB per token × 2048.
     * 124119 + 12412 = 136531. */
    need = st_need_finetune(&usual, &m, ST_DTYPE_BF16, ST_METHOD_FULL, 2048, &why);
    assert_int_equal(need.split_mib, 136531);
    /* Weights 16e9 bytes -> 15259 MiB; adapters 80e6 × 16 = 1.28e9 -> 1221 MiB; 2048 MiB.
     * 18528 + 1853 = 20381. */
    need = st_need_finetune(&usual, &m, ST_DTYPE_BF16, ST_METHOD_LORA, 2048, &why);
    assert_int_equal(need.split_mib, 20381);
    /* 8e9 × 4.5 / 8 = 4.5e9 -> 4292 MiB; 1221; 2048. 7561 + 757 = 8318; the dtype is int4. */
    need = st_need_finetune(&usual, &m, ST_DTYPE_FP32, ST_METHOD_QLORA, 2048, &why);
    assert_int_equal(need.split_mib, 8318);
}

/* What a site has measured stands for the rules of thumb. */
static void test_rules(void **state)
{
    const st_estimate_rules ours = {.workspace_percent = 50,
                                    .runtime_mib = 512,
                                    .training_bytes = 12,
                                    .adapters_percent = 2,
                                    .activation_bytes = 0};
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    st_model m = model("13b");
    st_estimate_need need = st_need_inference(&ours, &m, ST_DTYPE_FP16, 8192, 1, false, &why);

    (void)state;
    /* 26247 of weights and cache (above), and half of it rounded up. */
    assert_int_equal(need.split_mib, 26247 + 13124);
    assert_int_equal(st_need_each(&need, 1), 26247 + 13124 + 512);
    assert_non_null(strstr(st_strbuf_str(&why), "with 50 % for workspace"));
    assert_non_null(strstr(st_strbuf_str(&why), "0.5 GiB per GPU"));
    /* 13e9 × 12 = 156e9 bytes -> 148774 MiB. */
    need = st_need_finetune(&ours, &m, ST_DTYPE_BF16, ST_METHOD_FULL, 2048, &why);
    assert_int_equal(need.split_mib, 148774 + 74387);
    /* 24796 of weights, 13e9 × 12 × 2 % = 3.12e9 bytes -> 2976 MiB. */
    need = st_need_finetune(&ours, &m, ST_DTYPE_BF16, ST_METHOD_LORA, 2048, &why);
    assert_int_equal(need.split_mib, 27772 + 13886);
}

static st_fit fit(int64_t split_mib, uint32_t allowed, bool share, int tasks_max)
{
    const st_fit_rules rules = {.share = share, .tasks_max = tasks_max};
    const st_estimate_need need = {.split_mib = split_mib, .runtime_mib = 1024};
    st_kinds kinds;
    st_fit f = {0};

    st_kinds_read(&no_options, &kinds);
    assert_int_equal(kinds.n, 6);
    if (allowed)
        kinds.allowed = allowed;
    if (!st_fit_smallest(&kinds, &need, &rules, &f))
        f.gpus = 0;
    return f;
}

enum { A40 = 1, A80 = 2, H100 = 4, H200 = 8, L40S = 16, V100 = 32 };

static void test_smallest(void **state)
{
    st_fit f;

    (void)state;
    /* 3000 + 1024 fits the smallest slice there is, 4864 MiB on a100-40; others have more. */
    f = fit(3000, 0, false, 1);
    assert_int_equal(f.level, ST_LEVEL_MIG);
    assert_int_equal(f.profile, ST_MIG_1G);
    assert_int_equal(f.types, A40 | A80 | H100 | H200);
    /* 29896: v100 has 32768, h200's 1g+ 33280, a100-80's 3g 40192. */
    f = fit(28872, 0, false, 1);
    assert_int_equal(f.level, ST_LEVEL_WHOLE);
    assert_int_equal(f.best, 5);
    assert_int_equal(f.types, A40 | A80 | H100 | H200 | L40S | V100);
    f = fit(28872, H200 | A80, false, 1);
    assert_int_equal(f.level, ST_LEVEL_MIG);
    assert_int_equal(f.profile, ST_MIG_1G2);
    assert_int_equal(f.types, H200);
    /* Trusted: of an l40s (49152) an eighth is 6144, so 10000 + 1024 are two: 12288. A v100 has
     * 4096 in an eighth: three are 12288 as well, and come behind. */
    f = fit(10000, L40S | V100, true, 1);
    assert_int_equal(f.level, ST_LEVEL_MPS);
    assert_int_equal(f.best, 4);
    assert_int_equal(f.share_m, 250);
    assert_int_equal(f.each_mib, 11024);
    f = fit(10000, L40S | V100, false, 1);
    assert_int_equal(f.level, ST_LEVEL_WHOLE);
    /* Two of one node, and what is divided is divided: 150000 / 2 + 1024 <= 81152. */
    f = fit(150000, A80 | H100, false, 1);
    assert_int_equal(f.gpus, 2);
    assert_int_equal(f.types, A80 | H100);
    assert_int_equal(f.each_mib, 76024);
    /* 8 × 143360 at most. */
    f = fit(8 * (143360 - 1024), 0, false, 1);
    assert_int_equal(f.gpus, 8);
    assert_int_equal(f.types, H200);
    assert_int_equal(fit(8 * (143360 - 1024) + 1, 0, false, 1).gpus, 0);
    f = fit(8 * (143360 - 1024) + 1, H200, false, 4);
    assert_int_equal(f.tasks, 2);
}

static void test_write(void **state)
{
    ST_CLEANUP(st_json_drop) json_t *job = json_pack("{s:i}", "cpu", 3);
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    st_fit f = fit(28872, H200, false, 1);
    st_kinds kinds;
    char *text;

    (void)state;
    st_kinds_read(&no_options, &kinds);
    st_fit_write(&f, &kinds, job);
    st_fit_say(&f, &kinds, &why);
    text = st_rules_text(job);
    /* Two of eight memory slices: 16 of 64 GiB; cpu was said. */
    assert_string_equal(text,
                        "{\"cpu\":3,\"level\":\"mig\",\"profile\":\"1g+\",\"type\":[\"h200\"],"
                        "\"ram\":\"16Gi\"}");
    assert_string_equal(st_strbuf_str(&why), ": a MIG slice 1g.35gb of h200, which has 32.5 GiB");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),   cmocka_unit_test(test_inference),
        cmocka_unit_test(test_rules),    cmocka_unit_test(test_finetune),
        cmocka_unit_test(test_smallest), cmocka_unit_test(test_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
