/*
 * The job's moves and its arithmetic.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "model/job.h"

/* Row: from; column: to. P pending, R running, N notified, C checkpointing, Z paused, then done,
 * failed, timeout, cancelled; S stopping. */
static const char *const legal[ST_JOB_STATE_COUNT] = {
    /*                         PRNCZdftcS */
    [ST_JOB_PENDING] = "       .x...xxxx.", [ST_JOB_RUNNING] = "       x.x..xxxxx",
    [ST_JOB_NOTIFIED] = "      xx.x.xxxxx", [ST_JOB_CHECKPOINTING] = " x...xxxxxx",
    [ST_JOB_PAUSED] = "        xx....xxx.", [ST_JOB_DONE] = "          ..........",
    [ST_JOB_FAILED] = "        ..........", [ST_JOB_TIMEOUT] = "       ..........",
    [ST_JOB_CANCELLED] = "     ..........", [ST_JOB_STOPPING] = "      x....xxxx.",
};

static void test_moves(void **state)
{
    (void)state;
    for (int from = 0; from < ST_JOB_STATE_COUNT; from++) {
        const char *row = legal[from] + strspn(legal[from], " ");
        assert_int_equal(strlen(row), ST_JOB_STATE_COUNT);
        for (int to = 0; to < ST_JOB_STATE_COUNT; to++) {
            bool want = row[to] == 'x';
            if (st_job_may_move((st_job_state)from, (st_job_state)to) != want)
                fail_msg("%s to %s must be %s", st_job_state_name((st_job_state)from),
                         st_job_state_name((st_job_state)to), want ? "legal" : "illegal");
            st_job job = {.state = (st_job_state)from};
            if (want) {
                st_job_move(&job, (st_job_state)to);
                assert_int_equal(job.state, to);
            }
        }
    }
}

static void test_state_groups(void **state)
{
    (void)state;
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++) {
        st_job job = {.state = (st_job_state)s};
        bool leaving = s == ST_JOB_NOTIFIED || s == ST_JOB_CHECKPOINTING || s == ST_JOB_STOPPING;
        bool ended =
            s == ST_JOB_DONE || s == ST_JOB_FAILED || s == ST_JOB_TIMEOUT || s == ST_JOB_CANCELLED;
        assert_int_equal(st_job_leaving(&job), leaving);
        assert_int_equal(st_job_on_devices(&job), leaving || s == ST_JOB_RUNNING);
        assert_int_equal(st_job_ended(&job), ended);
    }
}

static void test_names(void **state)
{
    (void)state;
    for (int s = 0; s < ST_JOB_STATE_COUNT; s++)
        assert_int_equal(st_job_state_parse(st_job_state_name((st_job_state)s)), s);
    assert_int_equal(st_job_state_parse("Running"), -1);
    assert_int_equal(st_job_state_parse(""), -1);
    assert_string_equal(st_class_name(ST_CLASS_GUARANTEED), "guaranteed");
    assert_string_equal(st_class_name(ST_CLASS_BURSTABLE), "burstable");
}

static void test_amounts(void **state)
{
    (void)state;
    const struct {
        st_shape shape;
        int tasks;
        int64_t gpu_m, cpu_m, ram_mib;
    } rows[] = {
        {{.level = ST_LEVEL_WHOLE, .gpus = 8, .cpu_m = 500, .ram_mib = 7}, 3, 24000, 1500, 21},
        {{.level = ST_LEVEL_WHOLE, .gpus = 0, .cpu_m = 2000}, 4, 0, 8000, 0},
        {{.level = ST_LEVEL_MIG, .gpus = 1, .profile = ST_MIG_4G}, 2, 1142, 0, 0},
        {{.level = ST_LEVEL_MIG, .gpus = 1, .profile = ST_MIG_1G2}, 4, 1000, 0, 0},
        {{.level = ST_LEVEL_MPS, .gpus = 1, .share_m = 333}, 3, 999, 0, 0},
        {{.level = ST_LEVEL_TIME, .gpus = 1, .share_m = 1000, .ram_mib = 9}, 2, 2000, 0, 18},
        /* The largest gang there is does not overflow. */
        {{.level = ST_LEVEL_WHOLE, .gpus = ST_DEVS_MAX, .ram_mib = ST_QTY_MAX / ST_TASKS_MAX},
         ST_TASKS_MAX,
         INT64_C(262144000),
         0,
         ST_QTY_MAX / ST_TASKS_MAX * ST_TASKS_MAX},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_job job = {.shape = rows[i].shape, .tasks = rows[i].tasks};
        assert_int_equal(st_job_gpu_m(&job), rows[i].gpu_m);
        assert_int_equal(st_shape_gpu_m(&job.shape), rows[i].gpu_m / rows[i].tasks);
        assert_int_equal(st_job_cpu_m(&job), rows[i].cpu_m);
        assert_int_equal(st_job_ram_mib(&job), rows[i].ram_mib);
    }
}

/* Saved run time survives; what came since `mark` is at stake; paused, it is kept aside. */
static void test_run_time(void **state)
{
    (void)state;
    st_job job = {.state = ST_JOB_RUNNING, .limit_ms = 10000, .saved_ms = 3000, .mark_ms = 500};
    assert_int_equal(st_job_unsaved_ms(&job, 1200), 700);
    assert_int_equal(st_job_ran_ms(&job, 1200), 3700);
    assert_int_equal(st_job_end_ms(&job, 1200), 7500);
    /* On devices the end is a fixed moment, whoever asks when. */
    assert_int_equal(st_job_end_ms(&job, 99999), 7500);
    job.state = ST_JOB_CHECKPOINTING;
    assert_int_equal(st_job_unsaved_ms(&job, 1200), 700);
    assert_int_equal(st_job_end_ms(&job, 0), 7500);

    job.state = ST_JOB_PAUSED;
    job.kept_ms = 700;
    assert_int_equal(st_job_unsaved_ms(&job, 50000), 700);
    assert_int_equal(st_job_ran_ms(&job, 50000), 3700);
    /* Resumed at 50000 it has 6300 left. */
    assert_int_equal(st_job_end_ms(&job, 50000), 56300);

    job = (st_job){.state = ST_JOB_PENDING, .limit_ms = 10000, .saved_ms = 4000};
    assert_int_equal(st_job_unsaved_ms(&job, 777), 0);
    assert_int_equal(st_job_ran_ms(&job, 777), 4000);
    assert_int_equal(st_job_end_ms(&job, 777), 6777);
}

static void test_limits(void **state)
{
    (void)state;
    st_job job = {.state = ST_JOB_RUNNING, .limit_ms = ST_TIME_NEVER, .mark_ms = 5};
    assert_int_equal(st_job_end_ms(&job, 9), ST_TIME_NEVER);
    job.state = ST_JOB_PENDING;
    assert_int_equal(st_job_end_ms(&job, 9), ST_TIME_NEVER);

    /* Everything used up: the end is at once, not before. */
    job = (st_job){.state = ST_JOB_PENDING, .limit_ms = 1000, .saved_ms = 1000};
    assert_int_equal(st_job_end_ms(&job, 40), 40);
    job.saved_ms = 1500;
    assert_int_equal(st_job_end_ms(&job, 40), 40);
    job.state = ST_JOB_RUNNING;
    job.mark_ms = 40;
    assert_int_equal(st_job_end_ms(&job, 90), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),    cmocka_unit_test(test_state_groups),
        cmocka_unit_test(test_names),    cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_run_time), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
