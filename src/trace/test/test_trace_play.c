/*
 * Playing traces: runs worked out by hand, with what preemptions cost, and what must hold of any.
 */
#include "base/rng.h"
#include "base/testing.h"
#include "trace/queue.h"
#include "trace/read.h"
#include "trace/trace.h"

#define S INT64_C(1000)

/* `nodes` nodes of eight GPUs, an owner of all of them and a borrower without a guarantee. */
static st_trace *world(int nodes)
{
    st_trace *trace = st_trace_new("test");

    st_vec_push(&trace->types, (st_trace_type){"h100", 80 * 1024, ST_BOARD_H100_80});
    for (int n = 0; n < nodes; n++)
        st_trace_add_node(trace, "n",
                          &(st_node_spec){.ndevs = 8, .cpu_m = 64000, .ram_mib = 1 << 20});
    st_trace_add_account(trace, "owner")->guarantee.gpu_m = nodes * 8000;
    st_trace_add_account(trace, "borrower");
    return trace;
}

enum { OWNER, BORROWER };

static void add(st_trace *trace, int account, int gpus, int64_t submit_ms, int64_t run_ms,
                st_yield yield)
{
    st_trace_job job = {.name = account == OWNER ? "o" : "b",
                        .account = account,
                        .user = "u",
                        .submit_ms = submit_ms,
                        .run_ms = run_ms,
                        .limit_ms = ST_TIME_NEVER,
                        .yield = yield};

    st_trace_split(&job, gpus, 8);
    st_vec_push(&trace->jobs, job);
}

static st_run_options options(void)
{
    st_run_options o = {.policy = st_policy_default(), .sample_ms = S, .until_ms = ST_TIME_NEVER};

    o.policy.notice_ms = 10 * S;
    o.policy.grace_ms = 60 * S;
    o.policy.min_run_ms = o.policy.cooldown_ms = 0;
    return o;
}

/* Time on devices is progress or loss, and all of it is in the integrals. */
static void check_sums(const st_trace_run *run)
{
    int64_t held = 0, by_account = 0;

    for (size_t i = 0; i < run->jobs.n; i++) {
        const st_run_job *job = &run->jobs.v[i];

        held += job->held_ms * st_trace_job_gpu_m(&run->trace->jobs.v[i]);
        if (job->state == ST_JOB_DONE)
            assert_int_equal(job->held_ms, run->trace->jobs.v[i].run_ms + job->lost_ms);
    }
    for (size_t i = 0; i < run->accounts.n; i++)
        by_account += run->accounts.v[i].held;
    assert_int_equal(held, run->allocated);
    assert_int_equal(by_account, run->allocated);
}

/* The borrower runs 100 s from 0 on all eight GPUs; at 20 s the owner comes for 30 s. */
static st_trace_run *preempt(st_trace *trace, st_yield yield, const st_run_options *o)
{
    st_trace_run *run = NULL;
    st_err err = {0};

    add(trace, BORROWER, 8, 0, 100 * S, yield);
    add(trace, OWNER, 8, 20 * S, 30 * S, yield);
    assert_ok(st_trace_play(trace, o, &run, &err));
    check_sums(run);
    assert_int_equal(run->jobs.v[0].preemptions, 1);
    assert_int_equal(run->accounts.v[BORROWER].preemptions, 1);
    assert_int_equal(run->jobs.v[0].start_ms, 0);
    assert_int_equal(run->jobs.v[0].state, ST_JOB_DONE);
    return run;
}

static void test_one_after_the_other(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(2);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();
    st_err err = {0};

    (void)state;
    add(trace, OWNER, 16, 0, 100 * S, ST_YIELD_REQUEUE);      /* both nodes */
    add(trace, OWNER, 12, 10 * S, 50 * S, ST_YIELD_REQUEUE);  /* 3 x 4: after it */
    add(trace, OWNER, 4, 200 * S, 10 * S, ST_YIELD_REQUEUE);  /* at once */
    add(trace, OWNER, 24, 205 * S, 10 * S, ST_YIELD_REQUEUE); /* never */
    assert_ok(st_trace_play(trace, &o, &run, &err));
    check_sums(run);
    assert_int_equal(run->jobs.v[0].end_ms, 100 * S);
    assert_int_equal(run->jobs.v[1].start_ms, 100 * S);
    assert_int_equal(run->jobs.v[1].end_ms, 150 * S);
    assert_int_equal(run->jobs.v[2].start_ms, 200 * S);
    assert_true(run->jobs.v[3].refused);
    assert_int_equal(run->refused, 1);
    assert_non_null(strstr(run->refused_why, "tasks fit, even"));
    assert_int_equal(run->end_ms, 210 * S);
    assert_int_equal(run->capacity, 16000 * 210 * S);
    /* 16 x 100 + 12 x 50 + 4 x 10 GPU-seconds; 5 s of the last before the last submit. */
    assert_int_equal(run->allocated, 1000 * (1600 + 600 + 40) * S);
    assert_int_equal(run->last_submit_ms, 205 * S);
    assert_int_equal(run->allocated_till_then, 1000 * (1600 + 600 + 20) * S);
    assert_int_equal(run->decisions, 4);
}

/* The slowest hour is one in which something was decided, the last one too. */
static void test_the_slowest_hour(void **state)
{
    st_run_options o = options();
    st_err err = {0};

    (void)state;
    for (int64_t hour = 0; hour <= 5; hour += 5) {
        ST_CLEANUP(st_trace_freep) st_trace *trace = world(2);
        ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;

        add(trace, OWNER, 4, hour * 3600 * S, 10 * S, ST_YIELD_REQUEUE);
        assert_ok(st_trace_play(trace, &o, &run, &err));
        assert_int_equal(run->decisions, 1);
        assert_int_equal(run->slowest_hour, hour);
        assert_true(run->slowest_per_s > 0);
    }
    ST_CLEANUP(st_trace_freep) st_trace *none = world(2);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    assert_ok(st_trace_play(none, &o, &run, &err));
    assert_int_equal(run->slowest_hour, -1);
}

/* Warned at 20, it goes on till 30, saves till 35. The owner has 35 to 65. It comes back at 65,
 * restores till 72, and has 70 s to go: 142. */
static void test_checkpoint(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.cost = (st_run_cost){.save_ms = 5 * S, .restore_ms = 7 * S};
    run = preempt(trace, ST_YIELD_CHECKPOINT, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 35 * S);
    assert_int_equal(run->jobs.v[1].end_ms, 65 * S);
    assert_int_equal(run->jobs.v[0].end_ms, 142 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 12 * S);
    assert_int_equal(run->accounts.v[BORROWER].lost, 8000 * 12 * S);
    assert_int_equal(run->decisions, 4);
    /* The owner was entitled to all from 20 to 65 and had it from 35; the borrower the rest. */
    assert_int_equal(run->accounts.v[OWNER].held, 8000 * 30 * S);
    assert_int_equal(run->accounts.v[OWNER].entitled, 8000 * 45 * S);
    assert_int_equal(run->accounts.v[BORROWER].held, 8000 * 112 * S);
    assert_int_equal(run->accounts.v[BORROWER].entitled, 8000 * 97 * S);
    assert_int_equal(run->samples.n, 143);
    assert_int_equal(run->samples.v[19].waiting, 0);
    assert_int_equal(run->samples.v[20].waiting, 1); /* at 20 s the owner waits */
    assert_int_equal(run->samples.v[20].waiting_m, 8000);
    assert_int_equal(run->samples.v[20].running, 1);
    assert_int_equal(run->held_m.v[40 * 2 + OWNER], 8000);
    assert_int_equal(run->entitled_m.v[40 * 2 + BORROWER], 0);
}

/* The same where the costs are for its 80 GiB: 60 and 90 ms for each. */
static void test_checkpoint_by_memory(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.cost = (st_run_cost){.save_ms_per_gib = 60, .restore_ms_per_gib = 90};
    run = preempt(trace, ST_YIELD_CHECKPOINT, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 30 * S + 4800);
    assert_int_equal(run->jobs.v[0].lost_ms, 4800 + 7200);
}

/* Saving would take longer than the grace: stopped at 30, thrown out at 90 with nothing saved; the
 * owner has 90 to 120, then all of it again. */
static void test_grace_too_short(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.cost = (st_run_cost){.save_ms = 90 * S, .restore_ms = 7 * S};
    run = preempt(trace, ST_YIELD_CHECKPOINT, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 90 * S);
    assert_int_equal(run->jobs.v[0].end_ms, 220 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 90 * S);
}

/* Nothing to save: it goes at 30 and begins again at 60. */
static void test_requeue(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.cost = (st_run_cost){.save_ms = 5 * S, .restore_ms = 7 * S};
    run = preempt(trace, ST_YIELD_REQUEUE, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 30 * S);
    assert_int_equal(run->jobs.v[0].end_ms, 160 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 30 * S);
}

/* In memory instead of on disk, at the same cost. */
static void test_pause(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.cost = (st_run_cost){.save_ms = 5 * S, .restore_ms = 7 * S};
    run = preempt(trace, ST_YIELD_PAUSE, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 35 * S);
    assert_int_equal(run->jobs.v[0].end_ms, 142 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 12 * S);
}

/* Paused for longer than the limit, it gives up its memory and with it the 30 s it had: it waits
 * from 35 till 65, but at 45 all is lost. */
static void test_pause_too_long(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.policy.pause_limit_ms = 10 * S;
    o.cost = (st_run_cost){.save_ms = 5 * S, .restore_ms = 7 * S};
    run = preempt(trace, ST_YIELD_PAUSE, &o);
    assert_int_equal(run->jobs.v[0].end_ms, 165 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 35 * S);
}

/* No notice, no cost: all at one moment. */
static void test_free_of_cost(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();

    (void)state;
    o.policy.notice_ms = 0;
    run = preempt(trace, ST_YIELD_CHECKPOINT, &o);
    assert_int_equal(run->jobs.v[1].start_ms, 20 * S);
    assert_int_equal(run->jobs.v[0].end_ms, 130 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 0);
}

static void test_limits(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();
    st_err err = {0};

    (void)state;
    add(trace, OWNER, 8, 0, 100 * S, ST_YIELD_REQUEUE);
    st_trace_declare(trace, 500000); /* half of what it needs */
    assert_ok(st_trace_play(trace, &o, &run, &err));
    assert_int_equal(run->jobs.v[0].state, ST_JOB_TIMEOUT);
    assert_int_equal(run->jobs.v[0].end_ms, 50 * S);
    assert_int_equal(run->jobs.v[0].lost_ms, 50 * S);
    st_trace_run_freep(&run);
    /* One that declares exactly what it needs is through in time, preempted or not. */
    st_trace_declare(trace, 1000000);
    add(trace, BORROWER, 8, 0, 1, ST_YIELD_REQUEUE);
    o.cost = (st_run_cost){.save_ms = 5 * S, .restore_ms = 7 * S};
    assert_ok(st_trace_play(trace, &o, &run, &err));
    assert_int_equal(run->jobs.v[0].state, ST_JOB_DONE);
    st_trace_run_freep(&run);
    trace->jobs.n = 0;
    add(trace, BORROWER, 8, 0, 100 * S, ST_YIELD_CHECKPOINT);
    add(trace, OWNER, 8, 20 * S, 30 * S, ST_YIELD_CHECKPOINT);
    st_trace_declare(trace, 1000000);
    assert_ok(st_trace_play(trace, &o, &run, &err));
    assert_int_equal(run->jobs.v[0].state, ST_JOB_DONE);
    assert_int_equal(run->jobs.v[0].end_ms, 142 * S);
}

static void test_until(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(1);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();
    st_err err = {0};

    (void)state;
    o.until_ms = 50 * S;
    add(trace, OWNER, 8, 0, ST_TIME_NEVER, ST_YIELD_REQUEUE); /* a service */
    add(trace, OWNER, 8, 60 * S, 10 * S, ST_YIELD_REQUEUE);
    assert_ok(st_trace_play(trace, &o, &run, &err));
    assert_int_equal(run->end_ms, 50 * S);
    assert_int_equal(run->jobs.v[0].state, ST_JOB_RUNNING);
    assert_int_equal(run->jobs.v[0].end_ms, ST_UNSET);
    assert_int_equal(run->allocated, 8000 * 50 * S);
    assert_int_equal(run->allocated_till_then, run->allocated);
    st_trace_run_freep(&run);
    /* Without an end it comes to rest when nothing more can happen. */
    o.until_ms = ST_TIME_NEVER;
    assert_ok(st_trace_play(trace, &o, &run, &err));
    assert_int_equal(run->jobs.v[1].state, ST_JOB_PENDING);
    assert_int_equal(run->jobs.v[1].start_ms, ST_UNSET);
}

static void test_too_long(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(64);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = options();
    st_err err = {0};

    (void)state;
    o.sample_ms = 0;
    add(trace, OWNER, 8, 0, INT64_C(10000000000000), ST_YIELD_REQUEUE);
    assert_fails(st_trace_play(trace, &o, &run, &err), ST_ERANGE, "too long");
    assert_null(run);
}

/* A few hundred jobs of all kinds: everything adds up, and twice is the same. */
static void test_twice(void **state)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = world(4);
    ST_CLEANUP(st_trace_run_freep) st_trace_run *a = NULL;
    ST_CLEANUP(st_trace_run_freep) st_trace_run *b = NULL;
    st_run_options o = options();
    st_err err = {0};
    st_rng rng;

    (void)state;
    st_rng_seed(&rng, 7);
    for (int i = 0; i < 400; i++)
        add(trace, (int)st_rng_below(&rng, 2), 1 << st_rng_below(&rng, 5),
            (int64_t)st_rng_below(&rng, 20000) * S, (1 + (int64_t)st_rng_below(&rng, 600)) * S,
            (st_yield)st_rng_below(&rng, 3));
    st_trace_sort(trace);
    o.cost = (st_run_cost){.save_ms = 3 * S, .restore_ms_per_gib = 20};
    o.sample_ms = 0;
    assert_ok(st_trace_play(trace, &o, &a, &err));
    assert_ok(st_trace_play(trace, &o, &b, &err));
    check_sums(a);
    assert_true(a->hash == b->hash);
    assert_memory_equal(a->jobs.v, b->jobs.v, a->jobs.n * sizeof(*a->jobs.v));
    assert_true(a->accounts.v[BORROWER].preemptions > 0);
    for (size_t i = 0; i < a->jobs.n; i++)
        assert_int_equal(a->jobs.v[i].state, ST_JOB_DONE);
    o.policy.order = ST_ORDER_SHORTEST;
    st_trace_declare(trace, 1000000);
    st_trace_run_freep(&b);
    assert_ok(st_trace_play(trace, &o, &b, &err));
    assert_true(a->hash != b->hash);
}

static void test_queue(void **state)
{
    st_due_queue q = {0};
    st_due last = {.at_ms = -1};
    st_rng rng;

    (void)state;
    assert_null(st_due_first(&q));
    st_rng_seed(&rng, 1);
    for (size_t i = 0; i < 1000; i++)
        st_due_push(&q, (st_due){.at_ms = (int64_t)st_rng_below(&rng, 50),
                                 .kind = (st_due_kind)st_rng_below(&rng, 2),
                                 .job = i});
    for (int i = 0; i < 1000; i++) {
        st_due due = *st_due_first(&q), popped = st_due_pop(&q);

        assert_true(due.job == popped.job);
        assert_true(due.at_ms > last.at_ms ||
                    (due.at_ms == last.at_ms &&
                     (due.kind > last.kind || (due.kind == last.kind && due.job > last.job))));
        last = due;
    }
    assert_null(st_due_first(&q));
    st_due_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_the_slowest_hour),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_checkpoint_by_memory),
        cmocka_unit_test(test_grace_too_short),
        cmocka_unit_test(test_requeue),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_too_long),
        cmocka_unit_test(test_free_of_cost),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_until),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_twice),
        cmocka_unit_test(test_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
