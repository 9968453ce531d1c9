/*
 * Counting /data (agent/data.c) by real workers: what is too much is refused, what was tidied up is not, and an agent
 * that reads an answer late does not make its tenants wait for that.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/host.h"
#include "base/mem.h"
#include "base/testing.h"

#define LATE_MS     1500
#define PATIENCE_MS 60000
#define TENANT      "t.7"

typedef struct bench {
    st_agent_conf conf;
    st_process process;
    st_exec exec;
    st_host *host;
    char dir[32];
} bench;

static const st_exec_ops real = {.name = "none", .real = true};

static void run(const bench *b, const char *command)
{
    char line[256];

    snprintf(line, sizeof line, "cd %s && %s", b->dir, command);
    assert_int_equal(system(line), 0);
}

static int open_bench(void **state)
{
    bench *b = calloc(1, sizeof *b);

    snprintf(b->dir, sizeof b->dir, "/tmp/stint-data-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    b->conf.data_mib = 1;
    b->process.conf = &b->conf;
    b->process.poll = st_poll_new();
    b->process.workers = st_workers_new(b->process.poll);
    b->exec.ops = &real;
    b->host = st_host_new(&b->process, "n1", b->dir);
    b->host->exec = &b->exec;
    run(b, "mkdir -p storage/" TENANT " && head -c 3000000 /dev/zero >storage/" TENANT "/big");
    st_host_data_open(b->host);
    *state = b;
    return 0;
}

static int close_bench(void **state)
{
    bench *b = *state;

    run(b, "rm -rf storage");
    rmdir(b->dir);
    b->host->exec = NULL;
    st_host_free(b->host);
    st_workers_free(b->process.workers);
    st_poll_free(b->process.poll);
    free(b);
    return 0;
}

/* Until the count that is under way has been heard. */
static void hear(bench *b)
{
    int64_t until = st_boot_ms() + PATIENCE_MS;

    while (b->host->counting[0] && st_boot_ms() < until) {
        st_poll_wait(b->process.poll, 100);
        (void)st_workers_turn(b->process.workers);
    }
    assert_string_equal(b->host->counting, "");
}

static void a_late_ear_makes_nobody_wait(void **state)
{
    const struct timespec late = {.tv_sec = LATE_MS / 1000, .tv_nsec = LATE_MS % 1000 * 1000000};
    bench *b = *state;
    st_host *h = b->host;
    const char *over = NULL;

    if (h->data_held)
        skip();
    assert_false(st_host_data_known(h, TENANT, &over));
    assert_string_equal(h->counting, TENANT);
    nanosleep(&late, NULL); /* the acting thread has other things to do */
    hear(b);
    assert_true(st_host_data_known(h, TENANT, &over));
    assert_non_null(strstr(over, "/data on this node holds"));
    assert_true(h->data.v[0].next_ms - st_boot_ms() <= ST_STORAGE_PAUSE_OVER_MS);

    run(b, "rm storage/" TENANT "/big");
    st_host_data(h, h->data.v[0].next_ms - 1);
    assert_string_equal(h->counting, ""); /* not before its time */
    h->data_ms = 0;
    st_host_data(h, h->data.v[0].next_ms);
    assert_string_equal(h->counting, TENANT);
    nanosleep(&late, NULL);
    hear(b);
    assert_true(st_host_data_known(h, TENANT, &over));
    assert_string_equal(over, "");
    assert_true(h->data.v[0].next_ms - st_boot_ms() < LATE_MS * 20);
}

static void who_was_never_counted_comes_first(void **state)
{
    bench *b = *state;
    st_host *h = b->host;
    const char *over = NULL;

    if (h->data_held)
        skip();
    run(b, "mkdir storage/t.8");
    assert_false(st_host_data_known(h, TENANT, &over));
    hear(b);
    assert_true(st_host_data_known(h, TENANT, &over));
    h->data.v[0].next_ms = 1; /* long due */
    assert_false(st_host_data_known(h, "t.8", &over));
    assert_string_equal(h->counting, "t.8");
    hear(b);
    assert_true(st_host_data_known(h, "t.8", &over));
    assert_string_equal(over, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_late_ear_makes_nobody_wait, open_bench, close_bench),
        cmocka_unit_test_setup_teardown(who_was_never_counted_comes_first, open_bench, close_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
