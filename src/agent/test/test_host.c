/*
 * A node's turn, with an executor that does as it is told by the test.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define OUTPUT INT64_C(1000000)

/* A task's output is so long, and all of it is there. */
static int long_output(st_exec *e, const st_task *t, int64_t offset, char *buf, size_t cap,
                       st_run_piece *ret, st_err *err)
{
    size_t n = (size_t)ST_MIN(OUTPUT - offset, (int64_t)cap);

    (void)e;
    (void)t;
    (void)err;
    memset(buf, 'x', n);
    *ret = (st_run_piece){.offset = offset, .end = OUTPUT, .n = n};
    return 0;
}

/* The next piece of a task that left the list so long ago, of which `sent` bytes were brought. */
static void brings(int64_t left_ms, int64_t sent, const char *path)
{
    static const st_exec_ops wordy = {.name = "test", .log = long_output};
    st_lines_conf lines = {.url = "http://127.0.0.1:1"};
    st_process process = {0};
    st_exec exec = {.ops = &wordy};
    st_host *h = st_host_new(&process, "n1", "/nonexistent");
    st_task t = {.key = {.job = "j1", .stay = 1}, .phase = ST_PHASE_ENDED, .started_ms = 1};
    st_err err = {0};

    assert_ok(st_lines_new(&lines, &process.lines, &err));
    h->exec = &exec;
    h->now_ms = 10 * ST_LOG_WAIT_MS;
    t.unlisted_ms = h->now_ms - left_ms;
    t.log_sent = sent;
    st_journal_add(&h->journal, &t);
    h->mail.chunk = 1000;
    st_host_logs(h);
    assert_int_equal(h->mail.piece_state, ST_PIECE_READY);
    assert_int_equal(h->mail.piece.n, 1000);
    assert_string_equal(h->mail.piece_path, path);
    h->exec = NULL;
    st_host_free(h);
    st_lines_free(process.lines);
}

/* A log that is still not brought after minutes is cut: the offset of its last lines says how much is missing. */
static void a_log_that_is_cut_says_where_it_goes_on(void **state)
{
    (void)state;
    brings(1000, 500, "/v1/agent/logs/j1/1/0?offset=500");
    brings(ST_LOG_WAIT_MS / 2, 500, "/v1/agent/logs/j1/1/0?offset=999000");
    brings(ST_LOG_WAIT_MS / 2, OUTPUT - 1000, "/v1/agent/logs/j1/1/0?offset=999000");
}

/* What follows first, and how much. */
static void follows(const st_task *tasks, size_t n, st_act_kind kind, const char *job)
{
    st_agent_view view = {.tasks = tasks, .n = n, .scrub = ST_SCRUB_ALWAYS};
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
        cmocka_unit_test(a_log_that_is_cut_says_where_it_goes_on),
        cmocka_unit_test(an_end_that_a_kill_sees_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
