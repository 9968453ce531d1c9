/*
 * The store of logs: offsets, repeats, gaps, rotation, a disk that is full.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "engine/logs.h"

typedef struct world {
    char dir[64], logs_dir[96];
    st_logs *logs;
} world;

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);

    strcpy(w->dir, "/tmp/stint-logs-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    snprintf(w->logs_dir, sizeof w->logs_dir, "%s/logs", w->dir);
    w->logs = st_logs_new(w->logs_dir, 400);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    char command[128];

    st_logs_free(w->logs);
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
    free(w);
    return 0;
}

static int64_t add(world *w, int stay, int64_t offset, const char *text)
{
    int64_t next = -1;
    size_t dropped;
    st_err err = {0};

    assert_ok(
        st_logs_append(w->logs, 7, stay, 3, offset, text, strlen(text), &next, &dropped, &err));
    assert_int_equal(dropped, 0);
    return next;
}

static void expect(world *w, int stay, int64_t offset, const char *text, int64_t next)
{
    const st_log_ask ask = {.job = 7, .stay = stay, .task = 3, .offset = offset, .max = 10000};
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0};
    int64_t at = -1;
    st_err err = {0};

    assert_ok(st_logs_read(w->logs, &ask, &got, &at, &err));
    assert_string_equal(st_strbuf_str(&got), text);
    assert_int_equal(at, next);
}

static void what_comes_twice_is_there_once(void **state)
{
    world *w = *state;

    assert_int_equal(add(w, 1, 0, "abc"), 3);
    assert_int_equal(add(w, 1, 0, "abc"), 3);
    assert_int_equal(add(w, 1, 1, "bcdef"), 6);
    assert_int_equal(add(w, 1, 0, "a"), 6);
    expect(w, 1, 0, "abcdef", 6);
    expect(w, 1, 4, "ef", 6);
    expect(w, 1, 6, "", 6);
    expect(w, 1, 99, "", 99);
}

static void the_last_stay_is_read(void **state)
{
    world *w = *state;
    const st_log_ask other = {.job = 7, .task = 4, .max = 10};
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0};
    int64_t next;
    st_err err = {0};

    add(w, 2, 0, "two");
    add(w, 10, 0, "ten");
    expect(w, 0, 0, "ten", 3);
    expect(w, 2, 0, "two", 3);
    assert_fails(st_logs_read(w->logs, &other, &got, &next, &err), ST_ENOENT, "task 4");
}

static void a_gap_is_told(void **state)
{
    world *w = *state;

    add(w, 1, 0, "abc");
    assert_int_equal(add(w, 1, 10, "klm\n"), 14);
    expect(w, 1, 0, "abc\n[7 bytes are not kept]\nklm\n", 14);
    expect(w, 1, 5, "[5 bytes are not kept]\nklm\n", 14);
    expect(w, 1, 11, "lm\n", 14);
}

static void the_oldest_goes_first(void **state)
{
    world *w = *state;
    const st_log_ask ask = {.job = 7, .stay = 1, .task = 3, .max = 10000};
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0};
    char line[51];
    int64_t at = 0, next;
    st_err err = {0};

    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "%049d\n", i);
        at = add(w, 1, at, line);
    }
    assert_int_equal(at, 2000);
    assert_ok(st_logs_read(w->logs, &ask, &got, &next, &err));
    assert_int_equal(next, 2000);
    assert_true(got.n <= 400 + 40);
    assert_non_null(strstr(st_strbuf_str(&got), "bytes are not kept]\n"));
    assert_string_equal(st_strbuf_str(&got) + got.n - 3, "39\n");
}

static void files_are_for_us_alone(void **state)
{
    world *w = *state;
    char path[160];
    struct stat st;

    add(w, 1, 0, "abc");
    snprintf(path, sizeof path, "%s/0000000000000007/1.3/0", w->logs_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    snprintf(path, sizeof path, "%s/0000000000000007", w->logs_dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* A limit on files stands for a full disk: what it does not take is dropped, and told where it
 * would be. */
static void a_full_disk_drops(void **state)
{
    world *w = *state;
    int64_t next = -1;
    size_t dropped = 0;
    st_err err = {0};

    add(w, 1, 0, "abc");
    const struct rlimit none = {3, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    int r = st_logs_append(w->logs, 7, 1, 3, 3, "defg", 4, &next, &dropped, &err);
    setrlimit(RLIMIT_FSIZE, &all);
    assert_int_equal(r, 0);
    assert_int_equal(next, 7);
    assert_int_equal(dropped, 4);
    assert_int_equal(add(w, 1, 7, "hij\n"), 11);
    expect(w, 1, 0, "abc\n[4 bytes are not kept]\nhij\n", 11);
}

static void what_is_old_is_removed(void **state)
{
    world *w = *state;
    const st_log_ask ask = {.job = 7, .task = 3, .max = 10};
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0};
    int64_t next;
    st_err err = {0};

    add(w, 1, 0, "abc");
    assert_int_equal(st_logs_prune(w->logs, 1000), 0);
    assert_int_equal(st_logs_prune(w->logs, INT64_MAX), 1);
    assert_fails(st_logs_read(w->logs, &ask, &got, &next, &err), ST_ENOENT, "task 3");
    assert_fails(st_logs_append(w->logs, 7, 1, 3, -1, "x", 1, &next, &got.n, &err), ST_ERANGE,
                 "from 0 on");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(what_comes_twice_is_there_once), T(the_last_stay_is_read),  T(a_gap_is_told),
        T(the_oldest_goes_first),          T(files_are_for_us_alone), T(a_full_disk_drops),
        T(what_is_old_is_removed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
