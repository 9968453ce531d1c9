/*
 * Workers: what they say is heard, and whoever hangs, dies or is no longer wanted ends in its time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/worker.h"
#include "base/testing.h"

#define PATIENCE_MS 60000

typedef struct heard {
    int times, r;
    char msg[640], job[ST_JOB_NAME_MAX];
} heard;

static void worked(void *ctx, const st_task_key *key, int r, const st_err *err)
{
    heard *h = ctx;

    h->times++;
    h->r = r;
    snprintf(h->msg, sizeof h->msg, "%s", err->msg);
    snprintf(h->job, sizeof h->job, "%s", key->job);
}

static int says_well(void *ctx, st_err *err)
{
    (void)err;
    return strcmp(ctx, "as it was") == 0 ? 0 : -ST_EINVAL;
}

static int says_ill(void *ctx, st_err *err)
{
    (void)ctx;
    return st_fail(err, ST_EFULL, "no room");
}

static int hangs(void *ctx, st_err *err)
{
    (void)ctx;
    (void)err;
    signal(SIGTERM, SIG_IGN);
    while (pause() < 0)
        ;
    return 0;
}

static int dies(void *ctx, st_err *err)
{
    (void)ctx;
    (void)err;
    raise(SIGKILL);
    return 0;
}

/* Nothing of the agent is open in it. */
static int looks_around(void *ctx, st_err *err)
{
    return fcntl(*(int *)ctx, F_GETFD) < 0 && errno == EBADF
               ? 0
               : st_fail(err, ST_EINTERNAL, "descriptor %d is open", *(int *)ctx);
}

typedef struct bench {
    st_poll *poll;
    st_workers *workers;
    heard heard;
} bench;

static void begin(bench *b, const char *what, st_work_fn fn, void *ctx, int64_t limit_ms,
                  bool aside, int *ret_id)
{
    st_agent_work w = {.what = what,
                       .limit_ms = limit_ms,
                       .aside = aside,
                       .fn = fn,
                       .ctx = ctx,
                       .done = worked,
                       .done_ctx = &b->heard,
                       .key = {.job = "j1"}};
    st_err err = {0};

    b->heard = (heard){0};
    assert_ok(st_worker_start(b->workers, &w, ret_id, &err));
}

static void finish(bench *b)
{
    int64_t until = st_boot_ms() + PATIENCE_MS;

    while (b->heard.times == 0 && st_boot_ms() < until) {
        int64_t next = st_workers_turn(b->workers);

        if (b->heard.times == 0)
            st_poll_wait(b->poll, (int)ST_MIN(ST_MAX(next - st_boot_ms(), 0), 1000));
    }
    assert_int_equal(b->heard.times, 1);
    assert_string_equal(b->heard.job, "j1");
}

static int open_bench(void **state)
{
    bench *b = calloc(1, sizeof *b);

    b->poll = st_poll_new();
    b->workers = st_workers_new(b->poll);
    *state = b;
    return 0;
}

static int close_bench(void **state)
{
    bench *b = *state;

    st_workers_free(b->workers);
    st_poll_free(b->poll);
    free(b);
    return 0;
}

static void what_they_say_is_heard(void **state)
{
    bench *b = *state;
    char text[] = "as it was";
    int id, fd = open("/dev/null", O_RDONLY);

    begin(b, "a start", says_well, text, PATIENCE_MS, false, &id);
    snprintf(text, sizeof text, "changed"); /* it has a copy */
    finish(b);
    assert_int_equal(b->heard.r, 0);
    begin(b, "a start", says_ill, NULL, PATIENCE_MS, false, &id);
    finish(b);
    assert_int_equal(b->heard.r, -ST_EFULL);
    assert_string_equal(b->heard.msg, "no room");
    begin(b, "a start", looks_around, &fd, PATIENCE_MS, false, &id);
    finish(b);
    assert_string_equal(b->heard.msg, "");
    close(fd);
}

static void who_hangs_is_ended(void **state)
{
    bench *b = *state;
    int id;

    begin(b, "its start", hangs, NULL, 100, false, &id);
    assert_int_equal(st_workers_busy(b->workers, PATIENCE_MS), 1);
    finish(b);
    assert_int_equal(b->heard.r, -ST_EDOWN);
    assert_string_equal(b->heard.msg, "its start did not come to an end in its time");
    assert_int_equal(st_workers_busy(b->workers, PATIENCE_MS), 0);
    begin(b, "its start", hangs, NULL, PATIENCE_MS, false, &id);
    st_worker_kill(b->workers, id); /* nobody wants it any more */
    finish(b);
    assert_int_equal(b->heard.r, -ST_EDOWN);
    begin(b, "a removal", dies, NULL, PATIENCE_MS, false, &id);
    finish(b);
    assert_string_equal(b->heard.msg, "a removal was killed by somebody");
}

static void who_is_aside_holds_nobody_up(void **state)
{
    bench *b = *state;
    int id, other;

    begin(b, "counting", hangs, NULL, PATIENCE_MS, true, &id);
    assert_int_equal(st_workers_busy(b->workers, PATIENCE_MS), 0);
    begin(b, "its start", hangs, NULL, PATIENCE_MS, false, &other);
    assert_int_equal(st_workers_busy(b->workers, PATIENCE_MS), 1);
    assert_int_equal(st_workers_busy(b->workers, -1), 0); /* none is so young */
    st_worker_kill(b->workers, other);
    finish(b);
    /* Those that are left end with who had them. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_they_say_is_heard, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(who_hangs_is_ended, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(who_is_aside_holds_nobody_up, open_bench, close_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
