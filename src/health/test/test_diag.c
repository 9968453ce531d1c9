/* Diagnoses: a sound node passes, and each fault fails its own row and no other. */
#include "base/macros.h"
#include "base/testing.h"
#include "health/health.h"

#define GPUS    4
#define OF_NODE 2  /* quick checks of a node, */
#define OF_GPU  10 /* and of a GPU */

static const st_diag_gpu sound = {.answers = true,
                                  .pcie_width = 16,
                                  .pcie_width_max = 16,
                                  .pcie_replays = 3,
                                  .links = 18,
                                  .throttle = 1};

typedef struct seen {
    int rows, skipped;
    st_diag_row failed[8 * ST_DIAG_COUNT];
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
    const st_diag_limits limits = st_diag_limits_of(NULL);

    *s = (seen){0};
    return st_diag_judge(&facts, &limits, rules, see, s);
}

static void test_sound(void **state)
{
    const st_diag_gpu gpu[GPUS] = {sound, sound, sound, sound};
    seen s;

    (void)state;
    assert_int_equal(diagnose(gpu, GPUS, true, NULL, &s), 0);
    assert_int_equal(s.rows, OF_NODE + GPUS * OF_GPU);
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
    assert_int_equal(s.skipped, GPUS * (OF_GPU - 1));
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
    const st_diag_limits limits = st_diag_limits_of(NULL);

    s = (seen){0};
    assert_int_equal(st_diag_judge(&none, &limits, NULL, see, &s), 0);
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

/* ---- what is measured ------------------------------------------------------------------- */

typedef struct measured {
    st_diag_gpu gpu[8];
    st_diag_facts facts;
    st_diag_limits limits;
} measured;

/* Eight linked H200 that reach what they should. */
static void soundly(measured *m)
{
    *m = (measured){.limits = st_diag_limits_of("h200"),
                    .facts = {.level = ST_TEST_BURN,
                              .joined = 8,
                              .n = 8,
                              .driver = true,
                              .nccl = true,
                              .blas = true}};
    st_diag_unmeasured(m->facts.measured);
    m->facts.measured[ST_DIAG_ALL_REDUCE] = 475000;
    m->facts.measured[ST_DIAG_SUMS] = 0;
    for (int d = 0; d < 8; d++) {
        int64_t *v = m->gpu[d].measured;

        m->gpu[d] = sound;
        m->gpu[d].type = "h200";
        st_diag_unmeasured(v);
        v[ST_DIAG_WORKS] = 1;
        v[ST_DIAG_PCIE_IN] = v[ST_DIAG_PCIE_OUT] = 55000;
        v[ST_DIAG_MEMORY_SPEED] = 4300000;
        v[ST_DIAG_PATTERN_SHARE] = 95;
        v[ST_DIAG_PATTERN] = v[ST_DIAG_PRODUCT] = 0;
        v[ST_DIAG_PEER] = 390000;
        v[ST_DIAG_PRODUCT_SPEED] = 790000;
        v[ST_DIAG_TEMPERATURE] = 70;
        v[ST_DIAG_POWER] = 690;
        v[ST_DIAG_CLOCK] = 1700;
    }
}

static int judged(measured *m, seen *s)
{
    m->facts.gpu = m->gpu;
    *s = (seen){0};
    return st_diag_judge(&m->facts, &m->limits, NULL, see, s);
}

/* X(what is measured of GPU 5, a value that fails, the row that says so) */
#define BAD(X)                                          \
    X(ST_DIAG_WORKS, 0, ST_DIAG_WORKS)                  \
    X(ST_DIAG_PATTERN_SHARE, 89, ST_DIAG_PATTERN_SHARE) \
    X(ST_DIAG_PATTERN, 1, ST_DIAG_PATTERN)              \
    X(ST_DIAG_PRODUCT, 1, ST_DIAG_PRODUCT)              \
    X(ST_DIAG_TEMPERATURE, 91, ST_DIAG_TEMPERATURE)     \
    X(ST_DIAG_PCIE_IN, 49000, ST_DIAG_SIBLINGS)         \
    X(ST_DIAG_PCIE_OUT, 49000, ST_DIAG_SIBLINGS)        \
    X(ST_DIAG_MEMORY_SPEED, 3826999, ST_DIAG_SIBLINGS)  \
    X(ST_DIAG_PEER, 340000, ST_DIAG_SIBLINGS)           \
    X(ST_DIAG_PRODUCT_SPEED, 700000, ST_DIAG_SIBLINGS)

static void test_measured(void **state)
{
    measured m;
    seen s;

    (void)state;
    soundly(&m);
    assert_int_equal(judged(&m, &s), 0);
    assert_int_equal(s.skipped, 8); /* dcgmi was not asked */
#define X(what, bad, row)                    \
    soundly(&m);                             \
    m.gpu[5].measured[what] = bad;           \
    assert_int_equal(judged(&m, &s), 1);     \
    assert_int_equal(s.failed[0].diag, row); \
    assert_int_equal(s.failed[0].gpu, 5);
    BAD(X)
#undef X
    /* One that is a tenth slower than its siblings fails, a little less does not. */
    soundly(&m);
    m.gpu[5].measured[ST_DIAG_MEMORY_SPEED] = 3870000;
    assert_int_equal(judged(&m, &s), 0);
    /* All alike and all slow: no sibling tells, the limit of the type does. */
    for (int d = 0; d < 8; d++)
        m.gpu[d].measured[ST_DIAG_MEMORY_SPEED] = 3400000;
    assert_int_equal(judged(&m, &s), 8);
    assert_int_equal(s.failed[0].diag, ST_DIAG_MEMORY_SPEED);
}

/* Figures that are published of something else are no limits here. */
static void test_compared(void **state)
{
    char text[ST_DIAG_TEXT];
    measured m;
    seen s;

    (void)state;
    soundly(&m);
    m.facts.measured[ST_DIAG_ALL_REDUCE] = 400000;
    assert_int_equal(judged(&m, &s), 1);
    st_diag_say(&s.failed[0], text);
    assert_string_equal(text, "sums over its GPUs are slow (400000 MB/s, limit 431000)");
    m.facts.nccl = false;
    assert_int_equal(judged(&m, &s), 0);
    m.facts.measured[ST_DIAG_ALL_REDUCE] = 0; /* it never ended */
    assert_int_equal(judged(&m, &s), 1);
    m.facts.measured[ST_DIAG_ALL_REDUCE] = 400000;
    m.facts.nccl = true;
    m.facts.n = m.facts.joined = 4;
    assert_int_equal(judged(&m, &s), 0);
    soundly(&m);
    m.facts.blas = false;
    for (int d = 0; d < 8; d++)
        m.gpu[d].measured[ST_DIAG_PRODUCT_SPEED] = 30000;
    assert_int_equal(judged(&m, &s), 0);
    /* Of another type: none of its siblings. */
    m.gpu[7].type = "l40s";
    m.gpu[7].measured[ST_DIAG_PRODUCT_SPEED] = 1000;
    assert_int_equal(judged(&m, &s), 0);
    /* Levels are what they are called: a short test makes no products. */
    soundly(&m);
    m.facts.level = ST_TEST_SHORT;
    m.gpu[1].measured[ST_DIAG_PRODUCT] = 7;
    assert_int_equal(judged(&m, &s), 0);
    m.facts.level = ST_TEST_LONG;
    assert_int_equal(judged(&m, &s), 1);
}

static void test_limits(void **state)
{
    st_diag_limits l = st_diag_limits_of("h200"), was = l;
    st_err err;

    (void)state;
    assert_int_equal(l.pcie_in, 48000);
    assert_int_equal(st_diag_limits_of("gh9000").pcie_in, 0);
    assert_fails(st_limit_set(&l, "warp", 1, &err), ST_EINVAL, "warp");
    assert_fails(st_limit_set(&l, "pattern-share", 100, &err), ST_ERANGE, "0 to 99 %");
    assert_fails(st_limit_set(&l, "peer", -1, &err), ST_ERANGE, "not -1");
    assert_memory_equal(&l, &was, sizeof l);
    for (int i = 0; st_limit_row_at(i); i++) {
        const st_limit_row *row = st_limit_row_at(i);

        assert_ok(st_limit_set(&l, row->word, row->most, &err));
        assert_int_equal(st_limit_get(&l, i), row->most);
    }
    assert_int_equal(l.siblings, 100);
    assert_int_equal(st_test_level_parse("burn"), ST_TEST_BURN);
    assert_int_equal(st_test_level_parse("Burn"), -1);
    assert_int_equal(st_diag_parse("all-reduce"), ST_DIAG_ALL_REDUCE);
    assert_int_equal(st_diag_parse(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_node),
        cmocka_unit_test(test_site),     cmocka_unit_test(test_measured),
        cmocka_unit_test(test_compared), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
