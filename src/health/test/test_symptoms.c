/* Symptoms: each by what it takes and not by less, over when it is, and nothing from what was not measured. */
#include <string.h>

#include "base/macros.h"
#include "base/testing.h"
#include "health/symptoms.h"

#define GPUS   4
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)

static const st_symptom_look sound = {.links = 18, .width = 16, .width_max = 16};
static const st_symptom_look blind = {.links = ST_DIAG_UNKNOWN,
                                      .corrected = ST_DIAG_UNKNOWN,
                                      .uncorrected = ST_DIAG_UNKNOWN,
                                      .remap_pending = ST_DIAG_UNKNOWN,
                                      .width = ST_DIAG_UNKNOWN,
                                      .width_max = ST_DIAG_UNKNOWN,
                                      .throttle = ST_DIAG_UNKNOWN};

typedef struct world {
    st_symptoms s;
    st_symptom_look gpu[GPUS];
    int64_t now, memory;
    st_finding found;
    char text[ST_DIAG_TEXT];
} world;

static void begin(world *w)
{
    st_symptom_rules rules;
    st_err err;

    assert_ok(st_symptom_rules_read(NULL, &rules, &err));
    *w = (world){.now = SECOND, .memory = 50};
    st_symptoms_init(&w->s, &rules);
    for (int d = 0; d < GPUS; d++)
        w->gpu[d] = sound;
}

/* Every second for so long; whether something is said in the end. */
static bool lasts(world *w, int64_t ms)
{
    for (int64_t until = w->now + ms; w->now <= until; w->now += SECOND)
        st_symptoms_see(&w->s, w->gpu, GPUS, w->memory, w->now);
    return st_symptoms_worst(&w->s, GPUS, w->now, &w->found, w->text);
}

/* X(field, value that is wrong, value that is right again, kind) */
#define LASTING(X)                            \
    X(links, 17, 18, ST_FAULT_LINK)           \
    X(width, 8, 16, ST_FAULT_PCIE)            \
    X(remap_pending, 1, 0, ST_FAULT_WEAR)     \
    X(throttle, 0x40, 0x4 | 1, ST_FAULT_HEAT) \
    X(throttle, 0x80, 0x20, ST_FAULT_HEAT)

static void lasting(void **state)
{
    world w;

    (void)state;
#define X(field, bad, good, fault)                            \
    begin(&w);                                                \
    w.s.rules.link_changes = 99;                              \
    assert_false(lasts(&w, 2 * MINUTE));                      \
    w.gpu[2].field = bad;                                     \
    assert_false(lasts(&w, 50 * SECOND));                     \
    w.gpu[2].field = good; /* for a moment: it begins anew */ \
    assert_false(lasts(&w, SECOND));                          \
    w.gpu[2].field = bad;                                     \
    assert_false(lasts(&w, 50 * SECOND));                     \
    w.gpu[2] = blind; /* what is not seen goes on */          \
    assert_true(lasts(&w, 15 * SECOND));                      \
    assert_int_equal(w.found.kind, fault);                    \
    assert_int_equal(w.found.gpu, 2);                         \
    w.gpu[2] = sound;                                         \
    w.gpu[2].field = good;                                    \
    assert_false(lasts(&w, SECOND));
    LASTING(X)
#undef X
}

static void host_memory(void **state)
{
    world w;

    (void)state;
    begin(&w);
    w.memory = 1;
    assert_false(lasts(&w, 30 * SECOND));
    assert_true(lasts(&w, MINUTE));
    assert_string_equal(w.text, "only 1% of the node's memory are free");
    assert_int_equal(w.found.kind, ST_FAULT_MEMORY);
    assert_int_equal(w.found.gpu, -1);
    w.memory = 2;
    assert_false(lasts(&w, SECOND));
}

static void flapping(void **state)
{
    world w;

    (void)state;
    begin(&w);
    for (int i = 0; i < 3; i++) {
        assert_false(lasts(&w, 5 * MINUTE));
        w.gpu[1].links = i % 2 ? 18 : 17;
        assert_false(i < 2 && lasts(&w, SECOND));
        if (i == 0) {
            w.gpu[1].links = 17;
            assert_false(lasts(&w, 30 * SECOND));
            w.gpu[1].links = 18;
        }
    }
    assert_true(lasts(&w, SECOND));
    assert_int_equal(w.found.kind, ST_FAULT_LINK);
    assert_non_null(strstr(w.text, "went up and down 3 times"));
    /* It ends an hour after the last change, or a little later. */
    w.gpu[1].links = 18;
    assert_true(lasts(&w, 20 * MINUTE));
    assert_false(lasts(&w, 100 * MINUTE));
}

static void errors(void **state)
{
    world w;

    (void)state;
    begin(&w);
    /* A few every minute for a day are none, nor is what was there before. */
    w.gpu[3].corrected = 500000;
    for (int i = 0; i < 24 * 60; i++) {
        w.gpu[3].corrected += 10;
        assert_false(lasts(&w, MINUTE - SECOND));
    }
    w.gpu[3].corrected += 1000;
    assert_true(lasts(&w, SECOND));
    assert_int_equal(w.found.kind, ST_FAULT_WEAR);
    assert_false(lasts(&w, 130 * MINUTE));
    w.gpu[3].corrected = 7; /* the driver was loaded again */
    assert_false(lasts(&w, SECOND));
    w.gpu[0].uncorrected = 1;
    assert_true(lasts(&w, SECOND));
    assert_string_equal(w.text, "GPU 0: 1 memory errors could not be corrected lately");
}

static void thresholds(void **state)
{
    st_symptom_rules r, was;
    st_err err;

    (void)state;
    assert_ok(st_symptom_rules_read("", &r, &err));
    assert_int_equal(r.lasts_ms, 60000);
    assert_ok(st_symptom_rules_read("lasts_ms=5,link_changes=9", &r, &err));
    assert_int_equal(r.lasts_ms, 5);
    assert_int_equal(r.link_changes, 9);
    assert_int_equal(r.corrected, 1000);
    was = r;
    assert_fails(st_symptom_rules_read("lasts_ms", &r, &err), ST_EINVAL, "NAME=N");
    assert_fails(st_symptom_rules_read("warp=1", &r, &err), ST_EINVAL, "no threshold");
    assert_true(st_symptom_rules_read("lasts_ms=-1", &r, &err) < 0);
    assert_true(st_symptom_rules_read("memory_percent=91", &r, &err) < 0);
    assert_memory_equal(&r, &was, sizeof r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lasting), cmocka_unit_test(host_memory), cmocka_unit_test(flapping),
        cmocka_unit_test(errors),  cmocka_unit_test(thresholds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
