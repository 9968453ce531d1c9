/*
 * A submit as people write it: what its keys become, in units of the core, and what is refused, with the line.
 */
#include "base/testing.h"
#include "spec/spec.h"

static int name_type(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                     st_err *err)
{
    static const char *const names[] = {"h100", NULL};
    const char *name;
    int r = st_doc_str(doc, node, &name, err);

    (void)ctx;
    *ret = 0;
    if (r < 0 || strcmp(name, "h100") == 0)
        return r;
    return st_spec_missing(doc, node, "GPU type", names, err);
}

static int name_pool(void *ctx, const st_doc *doc, const st_doc_node *node, int32_t *ret,
                     st_err *err)
{
    const char *name;

    (void)ctx;
    *ret = 3;
    return st_doc_str(doc, node, &name, err);
}

static size_t name_ntypes(void *ctx)
{
    (void)ctx;
    return 1;
}

static st_board name_board(void *ctx, int32_t type)
{
    (void)ctx;
    (void)type;
    return ST_BOARD_H100_80;
}

static int submit(const char *text, st_job_spec *ret, st_err *err)
{
    static const st_spec_names names = {NULL, name_type, name_pool, name_ntypes, name_board};
    st_doc *doc = NULL;
    int r = st_doc_parse("job.yaml", text, strlen(text), &doc, err);

    if (r == 0)
        r = st_spec_submit(doc, st_doc_root(doc), &names, ret, err);
    st_doc_free(doc);
    return r;
}

static void test_units(void **state)
{
    st_job_spec s = {0};
    st_err err = {0};

    (void)state;
    assert_ok(submit("gpus: 2\ntasks: 4\ntype: h100\npool: x\ncpu: 1.5\nram: 64Gi\nlimit: 1h30m\n",
                     &s, &err));
    assert_int_equal(s.shape.gpus, 2);
    assert_int_equal(s.tasks, 4);
    assert_int_equal(s.shape.types, 1);
    assert_int_equal(s.pool, 3);
    assert_int_equal(s.shape.cpu_m, 1500);
    assert_int_equal(s.shape.ram_mib, 65536);
    assert_int_equal(s.limit_ms, 5400000);
    assert_ok(submit("level: mps\nshare: 0.25\nlimit: 90s\n", &s, &err));
    assert_int_equal(s.shape.level, ST_LEVEL_MPS);
    assert_int_equal(s.limit_ms, 90000);
    assert_ok(submit("level: time\nshare: 0.25\nhard_share: true\ngpu_time: 2h\n", &s, &err));
    assert_ok(submit("gpus: 1\nhard_share: false\n", &s, &err));
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *says;
    } rows[] = {
        {"gpus: 1\ngpuss: 1\n", ST_EINVAL,
         "job.yaml:2: unknown key \"gpuss\" (did you mean \"gpus\"?)"},
        {"gpus: 1\nlimit: 90\n", ST_EPARSE, "job.yaml:2: key \"limit\": 90 needs a unit"},
        {"gpus: 1\nlimit: soon\n", ST_EPARSE, "job.yaml:2: "},
        {"gpus: 1\ntype: a100\n", ST_ENOENT, "there is no GPU type \"a100\""},
        {"gpus: -1\n", ST_ERANGE, "job.yaml:1: "},
        {"tasks: 0\n", ST_ERANGE, "job.yaml:1: "},
        {"gpus: 1\nlevel: shared\n", ST_EINVAL, "job.yaml:2: "},
        {"level: mps\n", ST_EINVAL, "share"},
        {"[1, 2]\n", ST_EINVAL, "job.yaml:1: "},
        {"gpus: 1\ngpu_time: 1h\n", ST_EINVAL, "job.yaml:2: gpu_time is for shared GPUs"},
        {"gpus: 1\nhard_share: true\n", ST_EINVAL, "job.yaml:2: hard_share is for shared GPUs"},
        {"level: mps\nshare: 0.25\ngpu_time: 200ms\n", ST_ERANGE, "gpu_time is less than 1s"},
    };

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_job_spec s = {0};
        st_err err = {0};
        int r = submit(rows[i].text, &s, &err);

        if (r >= 0 || err.code != rows[i].code || !strstr(err.msg, rows[i].says))
            fail_msg("row %zu: code %d, \"%s\"", i, (int)err.code, err.msg);
    }
}

static void test_images(void **state)
{
    st_image_ref ref;
    st_err err = {0};

    (void)state;
    assert_ok(st_spec_image("host", &ref, &err));
    assert_int_equal(ref.kind, ST_IMAGE_REF_HOST);
    assert_ok(st_spec_image("torch", &ref, &err));
    assert_int_equal(ref.kind, ST_IMAGE_REF_NAME);
    assert_string_equal(ref.name, "torch");
    assert_ok(st_spec_image("data:images/mine", &ref, &err));
    assert_int_equal(ref.kind, ST_IMAGE_REF_DATA);
    assert_fails(st_spec_image("pytorch/pytorch:2.4", &ref, &err), ST_EINVAL, "image");
    assert_fails(st_spec_image("data:../theirs", &ref, &err), ST_EINVAL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_images),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
