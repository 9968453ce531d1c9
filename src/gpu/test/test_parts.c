/* The parts both drivers share: products, device files, names of metrics, Prometheus text, MPS. */
#include "base/testing.h"
#include "gpu/export.h"
#include "gpu/nodes.h"
#include "gpu/product.h"

static void test_products(void **state)
{
    static const struct {
        const char *name;
        int64_t mib;
        const char *type;
        st_board board;
    } rows[] = {
        {"NVIDIA H200", 143771, "h200", ST_BOARD_H200_141},
        {"NVIDIA H200 NVL", 143771, "h200", ST_BOARD_H200_141},
        {"NVIDIA GH200 480GB", 97871, "gh200", ST_BOARD_NONE},
        {"NVIDIA H100 80GB HBM3", 81559, "h100", ST_BOARD_H100_80},
        {"NVIDIA H100 PCIe", 81559, "h100", ST_BOARD_H100_80},
        {"NVIDIA H100 NVL", 95830, "h100-94", ST_BOARD_NONE},
        {"NVIDIA A100-SXM4-80GB", 81920, "a100-80", ST_BOARD_A100_80},
        {"NVIDIA A100-PCIE-40GB", 40960, "a100-40", ST_BOARD_A100_40},
        {"Tesla T4", 15360, "t4", ST_BOARD_NONE},
    };
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        const st_gpu_product *p = st_gpu_product_guess(rows[i].name, rows[i].mib);
        assert_non_null(p);
        assert_string_equal(p->type, rows[i].type);
        assert_int_equal(p->board, rows[i].board);
    }
    assert_null(st_gpu_product_guess("NVIDIA H200", 100000)); /* a board we have not seen */
    assert_null(st_gpu_product_guess("GeForce", 8192));
    for (size_t i = 0; st_gpu_product_at(i); i++) {
        const st_gpu_product *p = st_gpu_product_at(i);
        assert_ptr_equal(st_gpu_product_find(p->type), p);
        assert_ptr_equal(st_gpu_product_guess(p->name, p->vram_mib), p);
    }
    assert_null(st_gpu_product_find("h1000"));
}

static void test_capability_minors(void **state)
{
    const char *text = "config 1\nmonitor 2\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
                       "gpu10/gi1/access 1362\ngpu0/gi11/access 102\ngpu0/gi2/access 21x\n"
                       "gpu0/gi3/ci0/access 31";
    (void)state;
    assert_int_equal(st_gpu_cap_minor(text, 0, 1, ST_GPU_UNKNOWN), 12);
    assert_int_equal(st_gpu_cap_minor(text, 0, 1, 0), 13);
    assert_int_equal(st_gpu_cap_minor(text, 10, 1, ST_GPU_UNKNOWN), 1362);
    assert_int_equal(st_gpu_cap_minor(text, 0, 11, ST_GPU_UNKNOWN), 102);
    assert_int_equal(st_gpu_cap_minor(text, 0, 3, 0), 31);
    assert_int_equal(st_gpu_cap_minor(text, 0, 2, ST_GPU_UNKNOWN), ST_GPU_UNKNOWN);
    assert_int_equal(st_gpu_cap_minor(text, 1, 1, ST_GPU_UNKNOWN), ST_GPU_UNKNOWN);
    assert_int_equal(st_gpu_cap_minor(text, 0, 1, 1), ST_GPU_UNKNOWN);
    assert_int_equal(st_gpu_cap_minor("", 0, 1, 0), ST_GPU_UNKNOWN);
}

static void test_metric_names(void **state)
{
    (void)state;
    for (int a = 0; a < ST_GPU_METRIC_COUNT; a++) {
        const char *name = st_gpu_metric_name((st_gpu_metric)a);
        const char *type = st_gpu_metric_type((st_gpu_metric)a);
        assert_int_equal(strncmp(name, "DCGM_FI_", 8), 0);
        assert_true(strcmp(type, "gauge") == 0 || strcmp(type, "counter") == 0);
        for (int b = 0; b < a; b++)
            assert_string_not_equal(name, st_gpu_metric_name((st_gpu_metric)b));
    }
    assert_string_equal(st_gpu_metric_name(ST_GPU_FB_USED), "DCGM_FI_DEV_FB_USED");
    assert_string_equal(st_gpu_metric_name(ST_GPU_SM_ACTIVE), "DCGM_FI_PROF_SM_ACTIVE");
}

static void test_export(void **state)
{
    st_gpu_info gpu = {
        .index = 1, .minor = 4, .uuid = "GPU-1", .name = "A \"B\"\\\n", .board = ST_BOARD_H100_80};
    st_gpu_instance slice = {.gi = 9, .profile = ST_MIG_3G};
    st_gpu_sample a = {0}, b = {0};
    const st_gpu_export_row rows[] = {
        {.gpu = &gpu, .host = "n1", .sample = &a},
        {.gpu = &gpu,
         .instance = &slice,
         .host = "n1",
         .tenant = "physics",
         .job = "j-7",
         .grant = "g-9",
         .sample = &b},
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    (void)state;
    st_gpu_put(&a, ST_GPU_POWER, 412050);
    st_gpu_put(&b, ST_GPU_SM_ACTIVE, 7);
    st_gpu_put(&b, ST_GPU_FB_USED, 0); /* zero is there, absent is not */
    st_gpu_export(rows, 2, &out);
    assert_string_equal(
        out.s,
        "# HELP DCGM_FI_PROF_SM_ACTIVE Ratio of cycles an SM had a warp, averaged over SMs.\n"
        "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\n"
        "DCGM_FI_PROF_SM_ACTIVE{gpu=\"1\",UUID=\"GPU-1\",device=\"nvidia4\",modelName=\"A \\\"B\\\""
        "\\\\\\n\",GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"9\",Hostname=\"n1\",tenant=\"physics\","
        "job=\"j-7\",grant=\"g-9\"} 0.000007\n"
        "# HELP DCGM_FI_DEV_FB_USED Device memory in use, in MiB.\n"
        "# TYPE DCGM_FI_DEV_FB_USED gauge\n"
        "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-1\",device=\"nvidia4\",modelName=\"A \\\"B\\\""
        "\\\\\\n\",GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"9\",Hostname=\"n1\",tenant=\"physics\","
        "job=\"j-7\",grant=\"g-9\"} 0\n"
        "# HELP DCGM_FI_DEV_POWER_USAGE Power draw, in W.\n"
        "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n"
        "DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-1\",device=\"nvidia4\",modelName=\"A "
        "\\\"B\\\""
        "\\\\\\n\",Hostname=\"n1\"} 412.05\n");
    st_strbuf_clear(&out);
    st_gpu_export(rows, 0, &out);
    assert_int_equal(out.n, 0);
    st_gpu_export_value(ST_GPU_POWER, -50, &out);
    assert_string_equal(out.s, "-0.05");
}

static void test_mps(void **state)
{
    st_gpu_inventory inv = {.n = 1, .cuda = 13000, .gpu = {{.cc = 90, .name = "H"}}};
    st_gpu_mps mps;
    st_err err;

    (void)state;
    assert_ok(st_gpu_mps_facts(&inv, 0, &mps, &err));
    assert_int_equal(mps.clients, ST_MPS_CLIENTS_MAX);
    assert_true(mps.memory_limit && !mps.partitions);
    inv.cuda = 13010;
    assert_ok(st_gpu_mps_facts(&inv, 0, &mps, &err));
    assert_true(mps.partitions);
    inv.gpu[0].mode = ST_GPU_MODE_PROHIBITED;
    assert_fails(st_gpu_mps_facts(&inv, 0, &mps, &err), ST_ESTATE, "prohibits");
    inv.gpu[0].cc = 61;
    assert_fails(st_gpu_mps_facts(&inv, 0, &mps, &err), ST_EDOWN, "a H has 6.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),     cmocka_unit_test(test_capability_minors),
        cmocka_unit_test(test_metric_names), cmocka_unit_test(test_export),
        cmocka_unit_test(test_mps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
