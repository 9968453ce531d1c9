/*
 * Counting runs, and the plain references: figures worked out by hand.
 */
#include <math.h>

#include "base/testing.h"
#include "report/report.h"
#include "trace/private.h"
#include "trace/read.h"
#include "trace/stats.h"

#define S INT64_C(1000)

static void test_spread(void **state)
{
    int64_t few[] = {5, 1, 3, 2, 4}, many[100], one[] = {7};
    st_spread s;

    (void)state;
    st_spread_of(few, 5, &s);
    assert_int_equal(s.n, 5);
    assert_true(s.mean == 3);
    assert_int_equal(s.p50, 3);
    assert_int_equal(s.p90, 5);
    assert_int_equal(s.p99, 5);
    assert_int_equal(s.max, 5);
    for (int i = 0; i < 100; i++)
        many[i] = 100 - i;
    st_spread_of(many, 100, &s);
    assert_int_equal(s.p50, 50);
    assert_int_equal(s.p90, 90);
    assert_int_equal(s.p99, 99);
    st_spread_of(one, 1, &s);
    assert_int_equal(s.p50, 7);
    assert_int_equal(s.p99, 7);
    st_spread_of(NULL, 0, &s);
    assert_int_equal(s.n, 0);
    assert_int_equal(s.max, 0);
}

static void test_jain(void **state)
{
    const double alike[] = {0.5, 0.5, 0.5}, one[] = {1, 0}, some[] = {1, 2, 3};

    (void)state;
    assert_true(fabs(st_jain(alike, 3) - 1) < 1e-12);
    assert_true(fabs(st_jain(one, 2) - 0.5) < 1e-12);
    assert_true(fabs(st_jain(some, 3) - 36.0 / 42) < 1e-12);
    assert_true(st_jain(NULL, 0) == 1);
}

/* Two accounts with a node of eight each. */
static st_trace *two_nodes(void)
{
    st_trace *trace = st_trace_new("test");

    st_vec_push(&trace->types, (st_trace_type){"h100", 80 * 1024, ST_BOARD_H100_80});
    for (int i = 0; i < 2; i++) {
        st_trace_add_node(trace, "n", &(st_node_spec){.ndevs = 8, .cpu_m = 64000});
        st_trace_add_account(trace, i == 0 ? "a" : "b")->guarantee.gpu_m = 8000;
    }
    return trace;
}

static void add(st_trace *trace, int account, int gpus, int64_t submit_ms, int64_t run_ms)
{
    st_trace_job job = {.name = "j",
                        .account = account,
                        .user = "u",
                        .submit_ms = submit_ms,
                        .run_ms = run_ms,
                        .limit_ms = ST_TIME_NEVER};

    st_trace_split(&job, gpus, 8);
    st_vec_push(&trace->jobs, job);
}

static void test_stats(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = two_nodes();
    st_trace_run *run = calloc(1, sizeof(*run));
    st_run_stats s;

    (void)state;
    add(trace, 0, 8, 0, 10 * S);
    add(trace, 0, 8, 0, 10 * S);
    add(trace, 1, 8, 50 * S, 10 * S);
    run->trace = trace;
    run->end_ms = 100 * S;
    run->last_submit_ms = 50 * S;
    run->capacity = 16000 * 100 * S;
    run->allocated = 16000 * 60 * S;
    run->allocated_till_then = 16000 * 40 * S;
    run->decisions = 10;
    run->seconds = 0.5;
    st_vec_push(&run->jobs, (st_run_job){.state = ST_JOB_DONE, .start_ms = 0, .end_ms = 10 * S});
    st_vec_push(&run->jobs, (st_run_job){.state = ST_JOB_TIMEOUT,
                                         .start_ms = 20 * S,
                                         .end_ms = 40 * S,
                                         .preemptions = 2});
    st_vec_push(&run->jobs, (st_run_job){.state = ST_JOB_CANCELLED,
                                         .start_ms = ST_UNSET,
                                         .end_ms = ST_UNSET,
                                         .refused = true});
    st_vec_push(&run->accounts, (st_run_account){.held = 30, .entitled = 40});
    st_vec_push(&run->accounts,
                (st_run_account){.held = 3, .entitled = 12, .lost = 16000 * 10 * S});
    st_run_stats_of(run, &s);
    assert_int_equal(s.done, 1);
    assert_int_equal(s.timeout, 1);
    assert_int_equal(s.refused, 1);
    assert_int_equal(s.cancelled, 0);
    assert_int_equal(s.unfinished, 0);
    assert_int_equal(s.queueing.n, 2);
    assert_true(s.queueing.mean == 10000);
    assert_int_equal(s.completion.max, 40 * S);
    assert_true(s.completion.mean == 25000);
    assert_true(fabs(s.allocation - 0.6) < 1e-12);
    assert_true(fabs(s.allocation_arriving - 0.8) < 1e-12);
    assert_true(fabs(s.utilisation - 0.5) < 1e-12);
    assert_int_equal(s.preemptions, 2);
    assert_int_equal(s.preempted_jobs, 1);
    assert_int_equal(s.worst, 1);
    assert_true(s.worst_ratio == 0.25);
    assert_true(fabs(s.jain - 1.0 / (2 * (0.5625 + 0.0625))) < 1e-12);
    assert_true(s.decisions_per_s == 20);
    st_trace_run_free(run);
}

/* Account a: six GPUs for 100 s, then eight for 50 s; a small one behind them waits for both where
 * nobody is let by, and starts at once where one is. b has nothing to do. */
static void test_private(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = two_nodes();
    st_private p;

    (void)state;
    add(trace, 0, 6, 0, 100 * S);
    add(trace, 0, 8, 1 * S, 50 * S);
    add(trace, 0, 1, 2 * S, 10 * S);
    add(trace, 0, 16, 3 * S, 10 * S); /* too large for one node */
    st_private_play(trace, ST_PRIVATE_FIFO, &p);
    assert_int_equal(p.misfits, 1);
    assert_int_equal(p.end_ms.v[0], 100 * S);
    assert_int_equal(p.end_ms.v[1], 150 * S);
    assert_int_equal(p.end_ms.v[2], 160 * S);
    assert_int_equal(p.end_ms.v[3], ST_UNSET);
    assert_int_equal(p.completion.n, 3);
    assert_true(fabs(p.completion.mean - (100 + 149 + 158) * 1000.0 / 3) < 1e-6);
    /* (600 + 400 + 10) GPU-seconds of 16 x 160, and 6 x 3 of 16 x 3 till the last came. */
    assert_true(fabs(p.allocation - 1010.0 / 2560) < 1e-12);
    assert_true(fabs(p.allocation_arriving - 18.0 / 48) < 1e-12);
    st_private_done(&p);
    st_private_play(trace, ST_PRIVATE_BACKFILL, &p);
    assert_int_equal(p.end_ms.v[1], 150 * S);
    assert_int_equal(p.end_ms.v[2], 12 * S);
    st_private_done(&p);
    /* Together: the second goes to the other node at once; the large one waits for both. */
    st_private_play(trace, ST_SHARED_FIFO, &p);
    assert_int_equal(p.misfits, 0);
    assert_int_equal(p.end_ms.v[1], 51 * S);
    assert_int_equal(p.end_ms.v[2], 12 * S);
    assert_int_equal(p.end_ms.v[3], 110 * S);
    st_private_done(&p);
}

static void test_compare(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = two_nodes();
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf csv = {0};
    st_run_options o = {.policy = st_policy_default(), .until_ms = ST_TIME_NEVER};
    st_private refs[ST_PRIVATE_COUNT];
    st_private_diff diff;
    st_run_stats stats;
    st_err err = {0};
    json_t *json;

    (void)state;
    add(trace, 0, 8, 0, 10 * S);
    add(trace, 0, 8, 0, 20 * S);
    assert_ok(st_trace_play(trace, &o, &run, &err));
    for (int k = 0; k < ST_PRIVATE_COUNT; k++)
        st_private_play(trace, (st_private_kind)k, &refs[k]);
    st_private_compare(run, &refs[ST_PRIVATE_FIFO], &diff); /* there 10 and 30, here 10 and 20 */
    assert_int_equal(diff.compared, 2);
    assert_int_equal(diff.later, 0);
    run->jobs.v[0].end_ms = 13 * S;
    run->jobs.v[1].end_ms = 35 * S;
    st_private_compare(run, &refs[ST_PRIVATE_FIFO], &diff);
    assert_int_equal(diff.later, 2);
    assert_int_equal(diff.worst_ms, 5 * S);
    assert_int_equal(diff.worst, 1);
    assert_int_equal(diff.late_ms, 8 * S);
    /* The report has it, too. */
    st_run_stats_of(run, &stats);
    json = st_run_json(run, &stats, refs);
    assert_int_equal(
        json_integer_value(json_object_get(
            json_array_get(json_object_get(json, "references"), ST_PRIVATE_FIFO), "later")),
        2);
    json_decref(json);
    st_run_csv_jobs(run, refs, &csv);
    assert_non_null(strstr(st_strbuf_str(&csv), "\nj,a,8,0,20,,0,35,done,0,20,0,30,30,20,20\n"));
    for (int k = 0; k < ST_PRIVATE_COUNT; k++)
        st_private_done(&refs[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spread),  cmocka_unit_test(test_jain),
        cmocka_unit_test(test_stats),   cmocka_unit_test(test_private),
        cmocka_unit_test(test_compare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
