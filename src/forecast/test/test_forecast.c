/* Who is asked, what is answered, and who is forgotten. */
#include <stdio.h>

#include "base/testing.h"
#include "forecast/forecast.h"

#define MIN_MS INT64_C(60000)

static st_job job_of(int32_t account, int32_t user, const char *name, int64_t limit_ms)
{
    union {
        const char *from;
        char *to;
    } same = {.from = name};
    return (st_job){.name = same.to,
                    .account = account,
                    .user = user,
                    .tasks = 1,
                    .limit_ms = limit_ms,
                    .shape = {.gpus = 1}};
}

static void teach(st_forecast *f, const st_job *job, int64_t ran_ms, int times)
{
    for (int i = 0; i < times; i++)
        st_forecast_ended(f, job, ran_ms);
}

static void assert_stem(const char *name, const char *stem)
{
    char buf[64];
    snprintf(buf, sizeof buf, "%.*s", (int)st_forecast_stem(name), name);
    assert_string_equal(buf, stem);
}

static void test_stems(void **state)
{
    (void)state;
    assert_stem("train", "train");
    assert_stem("train3", "train");
    assert_stem("train-0012", "train");
    assert_stem("train-3.2", "train");
    assert_stem("resnet50-17", "resnet50");
    assert_stem("2024", "2024");
    assert_stem("-7", "-7");
}

static void test_unknown(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_job job = job_of(1, 1, "a-1", 60 * MIN_MS);
    assert_false(st_forecast_run(f, &job, 0).known);
    teach(f, &job, 10 * MIN_MS, ST_FORECAST_SEEN - 1);
    st_guess g = st_forecast_run(f, &job, 0);
    assert_false(g.known);
    assert_int_equal(g.p90_ms, 60 * MIN_MS); /* the limit is all there is */
    st_job endless = job_of(1, 1, "a-1", ST_TIME_NEVER);
    assert_int_equal(st_forecast_run(f, &endless, 0).p90_ms, ST_TIME_NEVER);
    st_forecast_free(f);
}

/* 10 min are 2343 ticks, in the bucket from 2048 to 2560 ticks: 524,288 ms to 655,360 ms. */
static void test_same_kind(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_job job = job_of(1, 1, "a-1", 60 * MIN_MS), next = job_of(1, 1, "a-2", 60 * MIN_MS);
    teach(f, &job, 10 * MIN_MS, 5);
    st_guess g = st_forecast_run(f, &next, 0);
    assert_true(g.known);
    assert_int_equal(g.p50_ms, (524288 + 655360) / 2);
    assert_int_equal(g.p90_ms, 655360);
    /* Past the middle of its bucket the edge is what is left, past the edge nobody knows. */
    assert_int_equal(st_forecast_run(f, &next, 10 * MIN_MS).p50_ms, 655360);
    /* By then its user's jobs have used less than 192 of 1024 parts of their limits. */
    assert_int_equal(st_forecast_run(f, &next, 655360).p90_ms, 60 * MIN_MS * 192 / 1024);
    assert_false(st_forecast_run(f, &next, 60 * MIN_MS * 192 / 1024).known);
    /* Never above the limit. */
    st_job brief = job_of(1, 1, "a-3", 9 * MIN_MS);
    assert_int_equal(st_forecast_run(f, &brief, 0).p90_ms, 9 * MIN_MS);
    st_forecast_free(f);
}

/* Nine short ones and five long: who has outlived the short ones is one of the long. */
static void test_outlived(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_job job = job_of(1, 1, "a", ST_TIME_NEVER);
    teach(f, &job, 10 * MIN_MS, 9);
    teach(f, &job, 100 * MIN_MS, 5);
    int64_t long_ms = st_sketch_low(st_sketch_bucket(100 * MIN_MS / 256) + 1) * 256;
    assert_int_equal(st_forecast_run(f, &job, 0).p50_ms, (524288 + 655360) / 2);
    assert_int_equal(st_forecast_run(f, &job, 0).p90_ms, long_ms);
    assert_true(st_forecast_run(f, &job, 11 * MIN_MS).p50_ms > 90 * MIN_MS);
    assert_false(st_forecast_run(f, &job, 200 * MIN_MS).known);
    st_forecast_free(f);
}

/* A user's other jobs are judged by the part of their limit that his jobs use: a quarter is
 * 256 of 1024, in the bucket from 256 to 320. */
static void test_wider_kinds(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_job job = job_of(1, 1, "a", 40 * MIN_MS);
    teach(f, &job, 10 * MIN_MS, 5);
    st_job other = job_of(1, 1, "b", 400 * MIN_MS);
    assert_int_equal(st_forecast_run(f, &other, 0).p90_ms, 400 * MIN_MS * 320 / 1024);
    assert_int_equal(st_forecast_run(f, &other, 0).p50_ms, 400 * MIN_MS * 288 / 1024);
    st_job colleague = job_of(1, 2, "a", 80 * MIN_MS);
    assert_int_equal(st_forecast_run(f, &colleague, 0).p90_ms, 80 * MIN_MS * 320 / 1024);
    st_job stranger = job_of(2, 3, "a", 80 * MIN_MS);
    assert_int_equal(st_forecast_run(f, &stranger, 0).p90_ms, 80 * MIN_MS * 320 / 1024);
    /* Without a limit by run times alone. */
    st_job endless = job_of(2, 3, "a", ST_TIME_NEVER);
    assert_int_equal(st_forecast_run(f, &endless, 0).p90_ms, 655360);
    /* Other GPUs are another kind: these five long ones change nothing for one GPU. */
    st_job wide = job;
    wide.tasks = 8;
    teach(f, &wide, 30 * MIN_MS, 20);
    assert_int_equal(st_forecast_run(f, &job, 0).p90_ms, 655360);
    st_forecast_free(f);
}

/* The oldest goes: of ten thousand kinds 4096 are kept, the last ones and the wide ones. */
static void test_bounded(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_job first = job_of(1, 1, "first", ST_TIME_NEVER);
    teach(f, &first, 10 * MIN_MS, 5);
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "kind%dx", i);
        st_job job = job_of(1, 1, name, ST_TIME_NEVER);
        teach(f, &job, 50 * MIN_MS, 1);
    }
    assert_int_equal(f->known.n, ST_FORECAST_KEYS);
    assert_int_equal(st_idmap_count(f->by_key), ST_FORECAST_KEYS);
    int32_t n = 0;
    for (int32_t at = f->oldest; at >= 0; at = f->known.v[at].newer)
        n++;
    assert_int_equal(n, ST_FORECAST_KEYS);
    /* Its own kind is gone; the account answers. */
    assert_true(st_forecast_run(f, &first, 0).p50_ms > 40 * MIN_MS);
    st_forecast_free(f);
}

/* Told 8 minutes, and it became 4 five times and 16 five times: ratios 512 and 2048. */
static void test_margin(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    st_margin m = st_forecast_margin(f, 8 * MIN_MS);
    assert_int_equal(m.seen, 0);
    assert_int_equal(m.lo_ms, 8 * MIN_MS);
    for (int i = 0; i < 5; i++) {
        st_forecast_waited(f, 8 * MIN_MS, 4 * MIN_MS, i * 10 * MIN_MS);
        st_forecast_waited(f, 8 * MIN_MS, 16 * MIN_MS, i * 10 * MIN_MS);
    }
    m = st_forecast_margin(f, 8 * MIN_MS);
    assert_int_equal(m.seen, 10);
    assert_int_equal(m.lo_ms, 4 * MIN_MS);
    assert_int_equal(m.hi_ms, 8 * MIN_MS * 2560 / 1024);
    /* Estimates for tomorrow are another kind. */
    assert_int_equal(st_forecast_margin(f, 1440 * MIN_MS).seen, 0);
    st_forecast_waited(f, INT64_MAX / 4, INT64_MAX, 0);
    st_forecast_waited(f, 0, INT64_MAX, INT64_MAX);
    st_forecast_free(f);
}

/* An interval that is missed reaches further on that side, and comes back where it holds: never within what was seen. */
static void test_margin_reaches(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    int64_t at = 0;
    for (int i = 0; i < 40; i++, at += 10 * MIN_MS)
        st_forecast_waited(f, 8 * MIN_MS, 8 * MIN_MS, at);
    st_margin held = st_forecast_margin(f, 8 * MIN_MS);
    assert_int_equal(held.lo_ms, 8 * MIN_MS);
    assert_int_equal(held.hi_ms, 8 * MIN_MS * 1280 / 1024);
    for (int i = 0; i < 2;
         i++, at += 10 * MIN_MS) /* one in twenty: the sketch alone has no room for them */
        st_forecast_waited(f, 8 * MIN_MS, 80 * MIN_MS, at);
    st_margin missed = st_forecast_margin(f, 8 * MIN_MS);
    assert_int_equal(missed.lo_ms, held.lo_ms);
    assert_int_equal(missed.hi_ms, held.hi_ms * 1360 / 1000);
    for (int i = 0; i < 9; i++, at += 10 * MIN_MS)
        st_forecast_waited(f, 8 * MIN_MS, 8 * MIN_MS, at);
    assert_int_equal(st_forecast_margin(f, 8 * MIN_MS).hi_ms, held.hi_ms * 1180 / 1000);
    for (int i = 0; i < 60; i++, at += 10 * MIN_MS)
        st_forecast_waited(f, 8 * MIN_MS, 8 * MIN_MS, at);
    assert_int_equal(st_forecast_margin(f, 8 * MIN_MS).hi_ms, held.hi_ms);
    for (int i = 0; i < 200; i++, at += 10 * MIN_MS) /* it has an end */
        st_forecast_waited(f, 8 * MIN_MS, i % 2 ? 0 : INT64_MAX, at);
    missed = st_forecast_margin(f, 8 * MIN_MS);
    assert_true(missed.lo_ms >= 0 && missed.lo_ms < MIN_MS);
    assert_true(missed.hi_ms > 1000 * MIN_MS);
    st_forecast_free(f);
}

/* Twenty that waited together start together: they count as a few, and do not push out what was before. */
static void test_margin_of_a_burst(void **state)
{
    (void)state;
    st_forecast *f = st_forecast_new();
    for (int i = 0; i < 8; i++)
        st_forecast_waited(f, 8 * MIN_MS, 16 * MIN_MS, i * 10 * MIN_MS);
    for (int i = 0; i < 20; i++)
        st_forecast_waited(f, 8 * MIN_MS, 8 * MIN_MS, 90 * MIN_MS + i);
    st_margin m = st_forecast_margin(f, 8 * MIN_MS);
    assert_int_equal(m.seen, 8 + ST_FORECAST_LATELY_MAX);
    assert_int_equal(m.hi_ms, 8 * MIN_MS * 2560 / 1024);
    /* Those of the next minutes count again. */
    st_forecast_waited(f, 8 * MIN_MS, 8 * MIN_MS, 100 * MIN_MS);
    assert_int_equal(st_forecast_margin(f, 8 * MIN_MS).seen, 9 + ST_FORECAST_LATELY_MAX);
    st_forecast_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stems),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_same_kind),
        cmocka_unit_test(test_outlived),
        cmocka_unit_test(test_wider_kinds),
        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_margin_reaches),
        cmocka_unit_test(test_margin_of_a_burst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
