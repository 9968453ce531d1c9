/*
 * A node's turn, with an executor that does as it is told by the test.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/host.h"
#include "base/testing.h"

static int dies_at_once(st_exec *e, st_task *t, const char *reason, int64_t now, st_err *err)
{
    (void)e;
    (void)t;
    (void)reason;
    (void)now;
    (void)err;
    return 0;
}

static bool has_ended(st_exec *e, st_task *t, int64_t now)
{
    (void)e;
    st_task_end(t, now, 0, SIGKILL, NULL);
    return true;
}

static const st_exec_ops ops = {.name = "test", .kill = dies_at_once, .look = has_ended};

/* Whoever sees an end first tells it, and has the last lines brought: also the one who brought it about. */
static void an_end_that_a_kill_sees_is_told(void **state)
{
    st_process process = {.poll = NULL};
    st_exec exec = {.ops = &ops};
    st_host *h = st_host_new(&process, "n1", "/nonexistent");
    st_task t = {.key = {.job = "j1", .stay = 1}, .phase = ST_PHASE_RUNNING};

    (void)state;
    h->exec = &exec;
    h->log_ms = INT64_MAX;
    st_host_kill(h, &t, "it is not wanted", 7);
    assert_int_equal(t.phase, ST_PHASE_ENDED);
    assert_true(h->dirty);
    assert_true(h->changed);
    assert_true(t.now.output);
    assert_int_equal(h->log_ms, 0);
    h->exec = NULL;
    st_host_free(h);
}

/* What follows first, and how much. */
static void follows(const st_task *tasks, size_t n, st_act_kind kind, const char *job)
{
    st_view view = {.tasks = tasks, .n = n, .scrub = ST_SCRUB_ALWAYS};
    st_acts acts = {0};

    st_plan(&view, 1000000, &acts);
    assert_int_equal(acts.n, 1);
    assert_int_equal(acts.v[0].kind, kind);
    assert_string_equal(acts.v[0].key.job, job);
    st_vec_free(&acts);
}

/* Nobody knows which devices strays were on: all of them must be gone, and memory is read by one at a time. */
static void strays_go_together(void **state)
{
    st_task t[] = {
        {.key = {.job = "a", .stay = 1}, .phase = ST_PHASE_ENDED},
        {.key = {.job = "b", .stay = 1}, .phase = ST_PHASE_RUNNING},
    };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        t[i].stray = true;
        t[i].place = (st_task_place){.devs = 3, .mig_profile = -1};
    }
    t[0].gone = true;
    follows(t, 2, ST_ACT_KILL, "b");
    t[1].phase = ST_PHASE_ENDED;
    follows(t, 2, ST_ACT_VERIFY, "b");
    t[1].gone = true;
    follows(t, 2, ST_ACT_SCRUB, "a");
    t[0].clean = true;
    follows(t, 2, ST_ACT_SCRUB, "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strays_go_together),
        cmocka_unit_test(an_end_that_a_kill_sees_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
