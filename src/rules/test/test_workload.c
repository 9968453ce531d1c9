/*
 * Sizes, workload types and arrays, from a document to the documents that come out; each of those
 * must be one that st_spec_submit takes.
 */
#include <jansson.h>

#include "base/mem.h"
#include "base/testing.h"
#include "rules/rules.h"
#include "rules/test/jobs.h"
#include "rules/values.h"
#include "spec/spec.h"

static st_rules_who ann = {.account = "vision", .user = "ann", .role = "member"};

static int any_type(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                    st_err *err)
{
    (void)ctx, (void)doc, (void)node, (void)err;
    *ret = 0;
    return 0;
}

static size_t one_type(void *ctx)
{
    (void)ctx;
    return 1;
}

static st_board some_board(void *ctx, int32_t type)
{
    (void)ctx, (void)type;
    return ST_BOARD_H200_141;
}

static void check_job(const char *text)
{
    const st_spec_names names = {NULL, any_type, any_type, one_type, some_board};
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_job_spec spec;
    st_err err = {0};

    assert_ok(st_doc_parse("job.json", text, strlen(text), &doc, &err));
    assert_ok(st_spec_submit(doc, st_doc_root(doc), &names, &spec, &err));
}

static json_t *apply(st_rules *rules, const char *job)
{
    json_t *jobs = NULL;
    st_err err = {0};

    assert_ok(rules_apply(rules, &ann, job, strlen(job), &jobs, &err));
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        ST_CLEANUP(st_freep) char *text = st_rules_text(json_array_get(jobs, i));

        check_job(text);
    }
    return jobs;
}

/* The only document that comes out, without its estimate. */
static void becomes(st_rules *rules, const char *job, const char *want)
{
    ST_CLEANUP(st_json_drop) json_t *jobs = apply(rules, job);
    ST_CLEANUP(st_freep) char *text = NULL;

    assert_int_equal(json_array_size(jobs), 1);
    json_object_del(json_array_get(jobs, 0), "estimate");
    text = st_rules_text(json_array_get(jobs, 0));
    assert_string_equal(text, want);
}

static void refused(st_rules *rules, const char *job, int code, const char *text)
{
    json_t *jobs = NULL;
    st_err err = {0};

    assert_fails(rules_apply(rules, &ann, job, strlen(job), &jobs, &err), code, text);
    assert_null(jobs);
}

static size_t two_l40s(void *ctx, st_rules_type ret[ST_TYPES_MAX])
{
    (void)ctx;
    ret[0] = (st_rules_type){.name = "l40s", .vram_mib = 48 * 1024, .node_gpus = 2};
    return 1;
}

static const st_rules_options l40s_only = {.types = two_l40s};

static void test_sizes(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_rules_freep) st_rules *plain = st_rules_new(&l40s_only);

    (void)state;
    becomes(rules, "{\"gpus\":1}", "{\"gpus\":1}");
    becomes(rules, "{\"size\":\"small\"}",
            "{\"size\":\"small\",\"level\":\"mig\",\"profile\":\"1g\",\"cpu\":1,\"ram\":\"8Gi\"}");
    becomes(rules, "{\"size\":\"large\",\"cpu\":4}",
            "{\"size\":\"large\",\"cpu\":4,\"gpus\":8,\"ram\":\"512Gi\"}");
    /* Who says how much of a GPU is wanted is not put into a slice. */
    becomes(rules, "{\"size\":\"small\",\"gpus\":2}",
            "{\"size\":\"small\",\"gpus\":2,\"cpu\":1,\"ram\":\"8Gi\"}");
    becomes(rules, "{\"size\":\"large\",\"profile\":\"2g\"}",
            "{\"size\":\"large\",\"profile\":\"2g\",\"cpu\":64,\"ram\":\"512Gi\"}");
    /* No MIG in the fleet: a share for those who may, else a GPU. */
    becomes(plain, "{\"size\":\"small\"}",
            "{\"size\":\"small\",\"gpus\":1,\"cpu\":8,\"ram\":\"64Gi\"}");
    ann.trusted = true;
    becomes(plain, "{\"size\":\"small\"}",
            "{\"size\":\"small\",\"level\":\"mps\",\"share\":0.125,\"cpu\":1,\"ram\":\"8Gi\"}");
    ann.trusted = false;
    refused(rules, "{\"size\":\"huge\"}", ST_ENOENT, "there is no size \"huge\"");
    refused(rules, "{\"size\":3}", ST_EINVAL, "the name of a size is wanted");
}

static int set_size(st_rules *rules, const char *account, const char *name, const char *text,
                    st_err *err)
{
    ST_CLEANUP(st_json_drop) json_t *doc = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(doc);
    return st_sizes_set(st_rules_sizes(rules), account, name, doc, 0, err);
}

static void test_own_sizes(void **state)
{
    static const char *const chain[] = {"vision", "research", NULL};
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_json_drop) json_t *list = NULL;
    st_sizes *sizes = st_rules_sizes(rules);
    st_err err = {0};

    (void)state;
    assert_ok(set_size(rules, "", "gold", "{\"gpus\":4,\"type\":\"h200\",\"about\":\"x\"}", &err));
    becomes(rules, "{\"size\":\"gold\"}", "{\"size\":\"gold\",\"gpus\":4,\"type\":\"h200\"}");
    /* The nearest wins; other accounts' are not there. */
    assert_ok(set_size(rules, "vision", "gold", "{\"gpus\":2}", &err));
    assert_ok(set_size(rules, "research", "gold", "{\"gpus\":3}", &err));
    assert_ok(set_size(rules, "other", "theirs", "{\"gpus\":3}", &err));
    assert_ok(set_size(rules, "vision", "small", "{\"share\":0.1,\"level\":\"time\"}", &err));
    becomes(rules, "{\"size\":\"gold\"}", "{\"size\":\"gold\",\"gpus\":2}");
    becomes(rules, "{\"size\":\"small\"}", "{\"size\":\"small\",\"share\":0.1,\"level\":\"time\"}");
    refused(rules, "{\"size\":\"theirs\"}", ST_ENOENT, "there is no size \"theirs\"");
    list = st_sizes_list(sizes, chain);
    assert_int_equal(json_array_size(list), 4); /* gold large medium small */
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "account")),
                        "vision");
    assert_true(json_is_true(json_object_get(json_array_get(list, 1), "builtin")));
    assert_true(json_is_false(json_object_get(json_array_get(list, 3), "builtin")));
    assert_ok(st_sizes_remove(sizes, "vision", "gold", &err));
    json_decref(list);
    list = st_sizes_list(sizes, chain);
    assert_string_equal(json_string_value(json_object_get(json_array_get(list, 0), "account")),
                        "research");
    becomes(rules, "{\"size\":\"gold\"}", "{\"size\":\"gold\",\"gpus\":4,\"type\":\"h200\"}");
    assert_ok(st_sizes_remove(sizes, "vision", "small", &err));
    assert_fails(st_sizes_remove(sizes, "vision", "small", &err), ST_ESTATE, "is built in");
    assert_fails(st_sizes_remove(sizes, "vision", "gold", &err), ST_ENOENT, "no size \"gold\"");
}

static void test_bad_sizes(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    st_err err = {0};

    (void)state;
    assert_fails(set_size(rules, "", "a b", "{}", &err), ST_EINVAL, "cannot be the name of a size");
    assert_fails(set_size(rules, "", "x", "[]", &err), ST_EINVAL, "size x: a size is a map");
    assert_fails(set_size(rules, "", "x", "{\"gpu\":1}", &err), ST_EINVAL,
                 "size x: a size has no key \"gpu\" (did you mean \"gpus\"?)");
    assert_fails(set_size(rules, "", "x", "{\"command\":[\"a\"]}", &err), ST_EINVAL, "no key");
    assert_fails(set_size(rules, "", "x", "{\"gpus\":-1}", &err), ST_ERANGE, "size x: ");
    assert_fails(set_size(rules, "", "x", "{\"share\":0.5}", &err), ST_EINVAL,
                 "size x: a share needs a level");
    assert_fails(set_size(rules, "", "x", "{\"type\":\"h300\"}", &err), ST_ENOENT,
                 "size x: there is no GPU type \"h300\"");
    assert_fails(set_size(rules, "", "x", "{\"about\":1}", &err), ST_EINVAL, "a line of text");
    refused(rules, "{\"size\":\"x\"}", ST_ENOENT, "there is no size");
}

static void test_inference(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_rules_freep) st_rules *plain = st_rules_new(&l40s_only);
    ST_CLEANUP(st_json_drop) json_t *jobs = NULL;

    (void)state;
    becomes(rules,
            "{\"workload\":\"inference\",\"model\":\"13b\",\"dtype\":\"fp16\",\"context\":\"8k\","
            "\"type\":[\"h200\",\"h100\"]}",
            "{\"workload\":\"inference\",\"model\":\"13b\",\"dtype\":\"fp16\",\"context\":\"8k\","
            "\"type\":[\"h200\",\"h100\"],\"level\":\"mig\",\"profile\":\"1g+\",\"cpu\":2,"
            "\"ram\":\"16Gi\"}");
    jobs = apply(rules, "{\"workload\":\"inference\",\"model\":\"13b\",\"context\":8192,"
                        "\"gpus\":1}");
    assert_non_null(strstr(json_string_value(json_object_get(json_array_get(jobs, 0), "estimate")),
                           "13 billion parameters × 2 bytes = 24.2 GiB"));
    becomes(plain, "{\"workload\":\"inference\",\"model\":\"30b\"}",
            "{\"workload\":\"inference\",\"model\":\"30b\",\"gpus\":2,\"type\":[\"l40s\"],"
            "\"cpu\":16,\"ram\":\"128Gi\"}");
    /* 7e9 × 4.5 / 8 bytes -> 3756 MiB; 7b is 4/5 from 3b (28672) to 8b (32768): 31948 × 4 bytes
     * × 4096 tokens -> 500 MiB; 4256 + 426 + 1024 = 5706, and an eighth of an l40s is 6144. */
    ann.trusted = true;
    becomes(plain, "{\"workload\":\"inference\",\"model\":\"7b\",\"dtype\":\"int4\"}",
            "{\"workload\":\"inference\",\"model\":\"7b\",\"dtype\":\"int4\",\"level\":\"mps\","
            "\"share\":0.125,\"vram\":\"5706Mi\",\"type\":[\"l40s\"],\"cpu\":1,\"ram\":\"8Gi\"}");
    ann.trusted = false;
    refused(plain, "{\"workload\":\"inference\",\"model\":\"70b\"}", ST_EINVAL,
            "this does not fit: 70 billion parameters × 2 bytes = 130.4 GiB");
    refused(rules, "{\"workload\":\"inference\",\"model\":\"big\"}", ST_EINVAL, "how large");
    refused(rules, "{\"workload\":\"inference\",\"model\":\"7b\",\"dtype\":\"fp15\"}", ST_EINVAL,
            "dtype: \"fp15\" is none of fp32");
    refused(rules, "{\"workload\":\"inference\",\"model\":\"7b\",\"context\":\"8q\"}", ST_EPARSE,
            "context: ");
    refused(rules, "{\"workload\":\"inference\",\"model\":\"7b\",\"concurrency\":0}", ST_ERANGE,
            "concurrency: ");
    refused(rules, "{\"workload\":\"inference\",\"frames\":\"1-2\"}", ST_EINVAL,
            "frames means nothing to workload inference; it is for render, video");
    refused(rules, "{\"model\":\"7b\"}", ST_EINVAL,
            "model needs a workload that it belongs to: inference, finetune, training");
    refused(rules, "{\"workload\":\"inferrence\"}", ST_EINVAL, "did you mean \"inference\"?");
}

static void test_training(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);

    (void)state;
    /* 136531 + 1024 = 137555 MiB (see test_estimate): h200 alone has that in one GPU (143360),
     * two h100 would be 162304. */
    becomes(rules, "{\"workload\":\"finetune\",\"model\":\"8b\",\"method\":\"full\"}",
            "{\"workload\":\"finetune\",\"model\":\"8b\",\"method\":\"full\",\"gpus\":1,"
            "\"type\":[\"h200\"],\"cpu\":8,\"ram\":\"64Gi\",\"on_preempt\":\"checkpoint\"}");
    /* 70e9 × 16 bytes = 1068116 MiB and 5120 of activations, with 10 % 1180560: more than the
     * 8 × 142336 of an h200 node, so two nodes. */
    becomes(rules,
            "{\"workload\":\"finetune\",\"model\":\"70b\",\"method\":\"full\",\"type\":\"h200\","
            "\"context\":1024}",
            "{\"workload\":\"finetune\",\"model\":\"70b\",\"method\":\"full\",\"type\":\"h200\","
            "\"context\":1024,\"gpus\":8,\"tasks\":2,\"cpu\":64,\"ram\":\"512Gi\","
            "\"topology\":{\"prefer\":\"block\"},\"on_preempt\":\"checkpoint\"}");
    becomes(rules, "{\"workload\":\"training\",\"gpus\":8,\"tasks\":4}",
            "{\"workload\":\"training\",\"gpus\":8,\"tasks\":4,\"topology\":{\"prefer\":\"block\"},"
            "\"on_preempt\":\"checkpoint\"}");
    becomes(rules, "{\"workload\":\"training\",\"on_preempt\":\"cancel\"}",
            "{\"workload\":\"training\",\"on_preempt\":\"cancel\"}");
    /* People have other words for some. */
    refused(rules, "{\"workload\":\"rendering\"}", ST_EINVAL, "workload render needs frames");
    refused(rules, "{\"workload\":\"fine-tuning\"}", ST_EINVAL, "workload finetune needs a model");
    refused(rules, "{\"workload\":\"finetune\"}", ST_EINVAL, "workload finetune needs a model");
}

static void test_notebook(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);

    (void)state;
    becomes(rules, "{\"workload\":\"notebook\"}",
            "{\"workload\":\"notebook\",\"level\":\"mig\",\"profile\":\"1g\",\"cpu\":1,"
            "\"ram\":\"8Gi\",\"on_preempt\":\"requeue\",\"limit\":\"8h\"}");
    becomes(rules, "{\"workload\":\"notebook\",\"gpus\":1,\"limit\":\"1h\"}",
            "{\"workload\":\"notebook\",\"gpus\":1,\"limit\":\"1h\",\"on_preempt\":\"pause\"}");
    becomes(rules, "{\"workload\":\"notebook\",\"level\":\"time\",\"share\":0.5}",
            "{\"workload\":\"notebook\",\"level\":\"time\",\"share\":0.5,\"on_preempt\":\"pause\","
            "\"limit\":\"8h\"}");
    becomes(rules, "{\"workload\":\"batch\"}", "{\"workload\":\"batch\"}");
}

static const char *env(const json_t *jobs, size_t i, const char *key)
{
    return json_string_value(json_object_get(json_object_get(json_array_get(jobs, i), "env"), key));
}

static void test_render(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_json_drop)
    json_t *jobs = apply(rules, "{\"name\":\"film\",\"workload\":\"render\",\"frames\":"
                                "\"1-10,300-310x2\",\"chunk\":4,\"env\":{\"A\":\"b\"}}");
    ST_CLEANUP(st_freep) char *text = st_rules_text(json_array_get(jobs, 3));

    (void)state;
    assert_int_equal(json_array_size(jobs), 5); /* 1-4 5-8 9-10 300-306 308-310 */
    assert_string_equal(env(jobs, 2, "STINT_FRAME_START"), "9");
    assert_string_equal(env(jobs, 2, "STINT_FRAME_END"), "10");
    assert_string_equal(
        text,
        "{\"workload\":\"render\",\"frames\":\"1-10,300-310x2\",\"chunk\":4,"
        "\"env\":{\"A\":\"b\",\"STINT_FRAME_START\":\"300\",\"STINT_FRAME_END\":\"306\","
        "\"STINT_FRAME_STEP\":\"2\",\"STINT_CHUNK\":\"3\",\"STINT_CHUNKS\":\"5\"},"
        "\"name\":\"film.3\",\"array\":{\"index\":3,\"count\":5,\"frames\":[300,306],\"step\":2}}");
    refused(rules, "{\"workload\":\"render\"}", ST_EINVAL, "render needs frames");
    refused(rules, "{\"workload\":\"render\",\"frames\":[1]}", ST_EINVAL, "frames: a list like");
    refused(rules, "{\"workload\":\"render\",\"frames\":\"1-20000\"}", ST_ERANGE, "20000 jobs");
    refused(rules, "{\"workload\":\"render\",\"frames\":\"1-9\",\"chunk\":0}", ST_ERANGE,
            "chunk: ");
    refused(rules, "{\"workload\":\"render\",\"frames\":\"1-9\",\"env\":3}", ST_EINVAL, "env: ");
    refused(rules, "{\"workload\":\"render\",\"frames\":\"1-9\",\"array\":\"1-2\"}", ST_EINVAL,
            "leave array out");
}

static void test_video(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_json_drop) json_t *a = NULL, *b = NULL, *c = NULL;

    (void)state;
    /* 90 s at 24 are 2160 frames; chunks of 10 s are 240. */
    a = apply(rules, "{\"workload\":\"video\",\"duration\":\"90s\"}");
    assert_int_equal(json_array_size(a), 9);
    assert_string_equal(env(a, 8, "STINT_FRAME_START"), "1920");
    assert_string_equal(env(a, 8, "STINT_FRAME_END"), "2159");
    /* 1 s at 23.976 is 23.976 frames, so 24. */
    b = apply(rules, "{\"workload\":\"video\",\"duration\":\"1s\",\"fps\":23.976,\"chunk\":12}");
    assert_int_equal(json_array_size(b), 2);
    assert_string_equal(env(b, 1, "STINT_FRAME_END"), "23");
    c = apply(rules, "{\"workload\":\"video\",\"frames\":\"0-99\",\"chunk\":\"2s\",\"fps\":25}");
    assert_int_equal(json_array_size(c), 2);
    refused(rules, "{\"workload\":\"video\",\"frames\":\"1\",\"duration\":\"1s\"}", ST_EINVAL,
            "one of them");
    refused(rules, "{\"workload\":\"video\",\"duration\":\"0s\"}", ST_ERANGE, "0 frames");
    refused(rules, "{\"workload\":\"video\",\"duration\":\"900w\",\"fps\":1000}", ST_ERANGE,
            "frames; from 1");
}

static void test_arrays(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_json_drop) json_t *a = apply(rules, "{\"array\":{\"count\":3}}");
    ST_CLEANUP(st_json_drop) json_t *b = apply(rules, "{\"name\":\"x\",\"array\":\"5-9x2\"}");
    ST_CLEANUP(st_freep) char *text = st_rules_text(json_array_get(b, 1));

    (void)state;
    assert_int_equal(json_array_size(a), 3);
    assert_string_equal(env(a, 0, "STINT_ARRAY_INDEX"), "0");
    assert_string_equal(text, "{\"env\":{\"STINT_ARRAY_INDEX\":\"7\",\"STINT_ARRAY_COUNT\":\"3\"},"
                              "\"name\":\"x.7\",\"array\":{\"index\":7,\"count\":3}}");
    refused(rules, "{\"array\":{\"count\":0}}", ST_ERANGE, "array: count: ");
    refused(rules, "{\"array\":{\"count\":10001}}", ST_ERANGE, "array: count: ");
    refused(rules, "{\"array\":\"0-10000\"}", ST_ERANGE, "array: ");
    refused(rules, "{\"array\":{}}", ST_EINVAL, "is wanted");
    refused(rules, "{\"array\":7}", ST_EINVAL, "is wanted");
    refused(rules, "{\"array\":{\"index\":1,\"count\":2}}", ST_EINVAL, "given by the service");
}

/* What pieces have in common is there once, also where a document tries to write a piece's own names. */
static void test_pieces_share(void **state)
{
    ST_CLEANUP(st_rules_freep) st_rules *rules = st_rules_new(NULL);
    ST_CLEANUP(st_rules_jobs_done) st_rules_jobs jobs = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf job = {0};
    ST_CLEANUP(st_json_drop) json_t *whole = NULL;
    st_err err = {0};

    (void)state;
    st_strbuf_add(&job, "{\"array\":{\"count\":10000},\"name\":\"a\\\"b\",\"env\":{"
                        "\"STINT_ARRAY_INDEX\":\"666\",\"BIG\":\"");
    for (int i = 0; i < 20000; i++)
        st_strbuf_addc(&job, 'x');
    st_strbuf_add(&job, "\"}}");
    assert_ok(st_rules_apply_text(rules, &ann, st_strbuf_str(&job), job.n, &jobs, &err));
    assert_int_equal(jobs.pieces.n, 10000);
    assert_true(strlen(jobs.head) > 20000);
    for (size_t i = 0; i < jobs.pieces.n; i++)
        assert_true(strlen(jobs.pieces.v[i].tail) < 200);
    whole = apply(rules, st_strbuf_str(&job));
    assert_string_equal(env(whole, 9999, "STINT_ARRAY_INDEX"), "9999");
    assert_string_equal(jobs.pieces.v[9999].name, "a\"b.9999");
    assert_string_equal(json_string_value(json_object_get(json_array_get(whole, 9999), "name")),
                        "a\"b.9999");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_own_sizes),
        cmocka_unit_test(test_bad_sizes), cmocka_unit_test(test_inference),
        cmocka_unit_test(test_training),  cmocka_unit_test(test_notebook),
        cmocka_unit_test(test_render),    cmocka_unit_test(test_video),
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_pieces_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
