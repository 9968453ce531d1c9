/* The quick diagnosis: a sound node passes, and each fault fails its own row and no other. */
#include "base/macros.h"
#include "base/testing.h"
#include "health/health.h"

#define GPUS 4

static const st_diag_gpu sound = {.answers = true,
                                  .pcie_width = 16,
                                  .pcie_width_max = 16,
                                  .pcie_replays = 3,
                                  .links = 18,
                                  .throttle = 1};

typedef struct seen {
    int rows, skipped;
    st_diag_row failed[GPUS * ST_DIAG_COUNT];
    int n;
} seen;

static void see(void *ctx, const st_diag_row *row)
{
    seen *s = ctx;

    s->rows++;
    s->skipped += row->verdict == ST_VERDICT_SKIP;
    if (row->verdict == ST_VERDICT_FAIL)
        s->failed[s->n++] = *row;
}

static int diagnose(const st_diag_gpu *gpu, int n, bool driver, const st_xid_rules *rules, seen *s)
{
    const st_diag_facts facts = {.joined = GPUS, .n = n, .driver = driver, .gpu = gpu};
    const st_diag_limits limits = st_diag_limits_default();

    *s = (seen){0};
    return st_diag_quick(&facts, &limits, rules, see, s);
}

static void test_sound(void **state)
{
    const st_diag_gpu gpu[GPUS] = {sound, sound, sound, sound};
    seen s;

    (void)state;
    assert_int_equal(diagnose(gpu, GPUS, true, NULL, &s), 0);
    assert_int_equal(s.rows, ST_DIAG_OF_NODE + GPUS * (ST_DIAG_COUNT - ST_DIAG_OF_NODE));
    assert_int_equal(s.skipped, 0);
}

/* X(field, value that fails, value that just passes, the row) */
#define FAULTS(X)                                       \
    X(xid, 79, 31, ST_DIAG_XID)                         \
    X(xid, 48, 45, ST_DIAG_XID)                         \
    X(recovery, 1, 0, ST_DIAG_RECOVERY)                 \
    X(ecc_uncorrected, 1, 0, ST_DIAG_ECC)               \
    X(remap_pending, 1, 0, ST_DIAG_REMAP_PENDING)       \
    X(remap_failed, 1, 0, ST_DIAG_REMAP_FAILED)         \
    X(pcie_width, 8, 16, ST_DIAG_PCIE_WIDTH)            \
    X(pcie_replays, 81, 80, ST_DIAG_PCIE_REPLAY)        \
    X(links, 17, 18, ST_DIAG_NVLINK)                    \
    X(throttle, 0x40, 0x4 | 0x20 | 1, ST_DIAG_THROTTLE) \
    X(throttle, 0x80, 0, ST_DIAG_THROTTLE)              \
    X(answers, false, true, ST_DIAG_ANSWERS)

static void test_faults(void **state)
{
    (void)state;
#define X(field, bad, good, row)                                  \
    {                                                             \
        st_diag_gpu gpu[GPUS] = {sound, sound, sound, sound};     \
        seen s;                                                   \
        gpu[2].field = bad;                                       \
        assert_int_equal(diagnose(gpu, GPUS, true, NULL, &s), 1); \
        assert_int_equal(s.failed[0].diag, row);                  \
        assert_int_equal(s.failed[0].gpu, 2);                     \
        gpu[2].field = good;                                      \
        assert_int_equal(diagnose(gpu, GPUS, true, NULL, &s), 0); \
    }
    FAULTS(X)
#undef X
}

/* What cannot be measured is neither good nor bad. */
static void test_unknown(void **state)
{
    const st_diag_gpu bare = {.answers = true,
                              .xid = ST_DIAG_UNKNOWN,
                              .recovery = ST_DIAG_UNKNOWN,
                              .ecc_uncorrected = ST_DIAG_UNKNOWN,
                              .remap_pending = ST_DIAG_UNKNOWN,
                              .remap_failed = ST_DIAG_UNKNOWN,
                              .pcie_width = ST_DIAG_UNKNOWN,
                              .pcie_width_max = ST_DIAG_UNKNOWN,
                              .pcie_replays = ST_DIAG_UNKNOWN,
                              .links = ST_DIAG_UNKNOWN,
                              .throttle = ST_DIAG_UNKNOWN};
    const st_diag_gpu gpu[GPUS] = {bare, bare, bare, bare};
    seen s;

    (void)state;
    assert_int_equal(diagnose(gpu, GPUS, true, NULL, &s), 0);
    assert_int_equal(s.skipped, GPUS * (ST_DIAG_COUNT - ST_DIAG_OF_NODE - 1));
}

static void test_node(void **state)
{
    const st_diag_gpu gpu[GPUS] = {sound, sound, sound, sound};
    char text[ST_DIAG_TEXT];
    seen s;

    (void)state;
    assert_int_equal(diagnose(gpu, GPUS - 1, true, NULL, &s), 1);
    assert_int_equal(s.failed[0].diag, ST_DIAG_INVENTORY);
    st_diag_say(&s.failed[0], text);
    assert_string_equal(text, "GPUs are missing (3, limit 4)");
    assert_int_equal(diagnose(gpu, 0, false, NULL, &s), 1);
    assert_int_equal(s.failed[0].diag, ST_DIAG_DRIVER);
    /* A node without GPUs needs no driver. */
    const st_diag_facts none = {0};
    const st_diag_limits limits = st_diag_limits_default();

    s = (seen){0};
    assert_int_equal(st_diag_quick(&none, &limits, NULL, see, &s), 0);
}

static void test_site(void **state)
{
    st_diag_gpu gpu[GPUS] = {sound, sound, sound, sound};
    st_xid_rules rules = {0};
    char text[ST_DIAG_TEXT];
    st_err err;
    seen s;

    (void)state;
    gpu[1].xid = 63;
    assert_int_equal(diagnose(gpu, GPUS, true, &rules, &s), 0);
    assert_ok(st_xid_rules_read("63=reset", &rules, &err));
    assert_int_equal(diagnose(gpu, GPUS, true, &rules, &s), 1);
    st_diag_say(&s.failed[0], text);
    assert_string_equal(text, "GPU 1: an XID took it out of service (63, limit 0)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound), cmocka_unit_test(test_faults), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_node),  cmocka_unit_test(test_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
