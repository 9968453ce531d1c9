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
#include "engine/logs_files.h"

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
    ST_CLEANUP(st_log_got_done) st_log_got got = {.next = -1};
    st_err err = {0};

    assert_ok(st_logs_read(w->logs, &ask, &got, &err));
    assert_string_equal(st_strbuf_str(&got.text), text);
    assert_int_equal(got.next, next);
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
    ST_CLEANUP(st_log_got_done) st_log_got got = {0};
    st_err err = {0};

    add(w, 2, 0, "two");
    add(w, 10, 0, "ten");
    expect(w, 0, 0, "ten", 3);
    expect(w, 2, 0, "two", 3);
    assert_fails(st_logs_read(w->logs, &other, &got, &err), ST_ENOENT, "task 4");
}

#define LOST "there was no room for them, or their node could not bring them"

static void a_gap_is_told(void **state)
{
    world *w = *state;

    add(w, 1, 0, "abc");
    assert_int_equal(add(w, 1, 10, "klm\n"), 14);
    expect(w, 1, 0, "abc\n[7 bytes are not kept: " LOST "]\nklm\n", 14);
    expect(w, 1, 5, "[5 bytes are not kept: " LOST "]\nklm\n", 14);
    expect(w, 1, 11, "lm\n", 14);
}

static void the_oldest_goes_first(void **state)
{
    world *w = *state;
    const st_log_ask ask = {.job = 7, .stay = 1, .task = 3, .max = 10000};
    ST_CLEANUP(st_log_got_done) st_log_got got = {0};
    char line[51];
    int64_t at = 0;
    st_err err = {0};

    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "%049d\n", i);
        at = add(w, 1, at, line);
    }
    assert_int_equal(at, 2000);
    assert_ok(st_logs_read(w->logs, &ask, &got, &err));
    assert_int_equal(got.next, 2000);
    assert_true(got.text.n <= 400 + 64);
    assert_non_null(
        strstr(st_strbuf_str(&got.text), "bytes are not kept: newer output took their room]\n"));
    assert_string_equal(st_strbuf_str(&got.text) + got.text.n - 3, "39\n");
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
    expect(w, 1, 0, "abc\n[4 bytes are not kept: " LOST "]\nhij\n", 11);
}

static void what_is_old_is_removed(void **state)
{
    world *w = *state;
    const st_log_ask ask = {.job = 7, .task = 3, .max = 10};
    ST_CLEANUP(st_log_got_done) st_log_got got = {0};
    size_t dropped;
    int64_t next;
    st_err err = {0};

    add(w, 1, 0, "abc");
    assert_int_equal(st_logs_prune(w->logs, 1000), 0);
    assert_int_equal(st_logs_prune(w->logs, INT64_MAX), 1);
    assert_fails(st_logs_read(w->logs, &ask, &got, &err), ST_ENOENT, "task 3");
    assert_fails(st_logs_append(w->logs, 7, 1, 3, -1, "x", 1, &next, &dropped, &err), ST_ERANGE,
                 "from 0 on");
}

/* ---- the end, and what came lately -------------------------------------------------------------- */

static void expect_ask(world *w, st_log_ask ask, const char *text)
{
    ST_CLEANUP(st_log_got_done) st_log_got got = {0};
    st_err err = {0};

    ask.job = 7;
    ask.task = 3;
    ask.max = ask.max ? ask.max : 100000;
    assert_ok(st_logs_read(w->logs, &ask, &got, &err));
    assert_string_equal(st_strbuf_str(&got.text), text);
}

static void the_last_lines(void **state)
{
    world *w = *state;
    int64_t at = add(w, 1, 0, "one\ntwo\n");

    at = add(w, 1, at, "three\n");
    expect_ask(w, (st_log_ask){.tail = 1}, "three\n");
    expect_ask(w, (st_log_ask){.tail = 2}, "two\nthree\n");
    expect_ask(w, (st_log_ask){.tail = 3}, "one\ntwo\nthree\n");
    expect_ask(w, (st_log_ask){.tail = 99}, "one\ntwo\nthree\n");
    expect_ask(w, (st_log_ask){.tail = 3, .offset = 8}, "three\n");
    add(w, 1, at, "half");
    expect_ask(w, (st_log_ask){.tail = 1}, "half");
    expect_ask(w, (st_log_ask){.tail = 2}, "three\nhalf");
    /* Of a line that is longer than what may be read: its end. */
    expect_ask(w, (st_log_ask){.tail = 1, .stay = 1, .max = 2}, "ha");
}

/* Over several segments, and with their first ones gone. */
static void the_last_lines_of_much(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf want = {0};
    int64_t at = 0;
    char line[51];

    for (int i = 0; i < 40; i++) {
        snprintf(line, sizeof line, "%049d\n", i);
        at = add(w, 1, at, line);
        if (i >= 36)
            st_strbuf_add(&want, line);
    }
    expect_ask(w, (st_log_ask){.tail = 4}, st_strbuf_str(&want));
}

static void what_came_since(void **state)
{
    world *w = *state;
    int64_t past = 1000000, at, size;
    char path[160];

    at = add(w, 1, 0, "old\n");
    snprintf(path, sizeof path, "%s/0000000000000007/1.3", w->logs_dir);
    /* As if the one had come long ago, the next half a second later, the last in the same second. */
    snprintf(path + strlen(path), sizeof path - strlen(path), "/times");
    assert_int_equal(unlink(path), 0);
    *strrchr(path, '/') = '\0';
    assert_int_equal(st_log_times_add(path, 0, past), 24);
    assert_int_equal(st_log_times_add(path, 2, past + 1500), 24);
    assert_int_equal(st_log_times_add(path, 3, past + 1700), 0);
    assert_int_equal(st_log_times_find(path, past), 0);
    assert_int_equal(st_log_times_find(path, past + 1), 2);
    assert_int_equal(st_log_times_find(path, past + 1700), 2);
    assert_int_equal(st_log_times_find(path, past + 1701), INT64_MAX);
    /* A clock that goes back makes nothing older. */
    assert_int_equal(st_log_times_add(path, 3, past - 5000), 0);
    add(w, 1, at, "new\n");
    expect_ask(w, (st_log_ask){.since_ms = 1}, "old\nnew\n");
    expect_ask(w, (st_log_ask){.since_ms = past + 1000}, "d\nnew\n");
    expect_ask(w, (st_log_ask){.since_ms = past + 2000}, "new\n");
    expect_ask(w, (st_log_ask){.since_ms = past + 1000, .tail = 1}, "new\n");
    expect_ask(w, (st_log_ask){.since_ms = INT64_MAX / 2}, "");
    /* A file that is not there, or torn, hides nothing. */
    assert_int_equal(st_log_times_find("/nowhere", past), 0);
    size = 0;
    for (int64_t i = 0; i < 10000; i++) {
        int64_t more = st_log_times_add(path, 100 + i, 2000000000000 + i * 1000);

        size += more;
        assert_true(size <= 65536 && more <= 24);
    }
    for (int64_t i = 200; i < 10000; i += 97) { /* never later than what came then */
        int64_t found = st_log_times_find(path, 2000000000000 + i * 1000);

        assert_true(found <= 100 + i && found > 100 + i - (i < 9600 ? 64 : 1));
    }
    assert_int_equal(st_log_times_find(path, past), 0);
}

/* ---- who makes room ------------------------------------------------------------------------- */

#define ROW 24 /* of when something came */

typedef struct space {
    int64_t used[3], limit[3]; /* of organisation 1 and 2, and [0] of all */
} space;

static int32_t org_of(void *ctx, const char *account)
{
    (void)ctx;
    return account[0] == 'a' ? 1 : account[0] == 'b' ? 2 : 0;
}

static int64_t left(void *ctx, int32_t org)
{
    const space *p = ctx;

    return p->limit[org] - p->used[org];
}

static void spend(void *ctx, int32_t org, int64_t bytes)
{
    space *p = ctx;

    p->used[0] += bytes;
    if (org > 0)
        p->used[org] += bytes;
}

static size_t put_bytes(world *w, uint64_t job, const char *account, size_t n)
{
    static const char bytes[400];
    size_t dropped = 0;
    int64_t next;
    st_err err = {0};

    if (!st_logs_knows(w->logs, job))
        st_logs_begin(w->logs, job, account);
    assert_ok(st_logs_append(w->logs, job, 1, 0, 0, bytes, n, &next, &dropped, &err));
    return dropped;
}

static bool kept(world *w, uint64_t job, const char *why)
{
    const st_log_ask ask = {.job = job, .max = 1000};
    ST_CLEANUP(st_log_got_done) st_log_got got = {0};
    st_err err = {0};
    int r = st_logs_read(w->logs, &ask, &got, &err);

    assert_true(r == 0 || strstr(err.msg, why));
    return r == 0;
}

static void the_oldest_makes_room(void **state)
{
    world *w = *state;
    space p = {.limit = {1000, 500, 5000}};
    const st_logs_rules rules = {
        .ctx = &p, .number = org_of, .left = left, .count = spend, .org = org_of};
    st_logs_stats stats;

    st_logs_rule(w->logs, &rules);
    put_bytes(w, 1, "b", 100);
    put_bytes(w, 2, "a-old", 200);
    put_bytes(w, 3, "a", 200);
    assert_int_equal(p.used[1], 400 + 2 * ROW);
    /* The organisation is at its cap: its own oldest goes, in whatever account; the neighbour's stays. */
    assert_int_equal(put_bytes(w, 4, "a", 200), 0);
    assert_false(kept(w, 2, "was pruned"));
    assert_true(kept(w, 3, "") && kept(w, 1, ""));
    assert_int_equal(p.used[1], 400 + 2 * ROW);
    /* All together are at theirs: the oldest of who has most goes. */
    put_bytes(w, 5, "b", 300);
    assert_int_equal(put_bytes(w, 6, "b", 300), 0);
    assert_false(kept(w, 3, "was pruned"));
    assert_true(kept(w, 1, "") && kept(w, 4, ""));
    /* After a restart it is all counted again, by account. */
    st_logs_free(w->logs);
    w->logs = st_logs_new(w->logs_dir, 400);
    p = (space){.limit = {1000, 500, 5000}};
    st_logs_rule(w->logs, &rules);
    assert_int_equal(p.used[1], 200 + ROW);
    assert_int_equal(p.used[2], 700 + 3 * ROW);
    assert_false(kept(w, 2, "was pruned"));
    /* Who has nothing to give up loses what does not fit. */
    p.limit[1] = 100;
    assert_int_equal(put_bytes(w, 7, "a", 300), 300);
    st_logs_stats_get(w->logs, &stats);
    assert_int_equal(stats.bytes, p.used[0]);
    assert_int_equal(st_logs_prune(w->logs, INT64_MAX), stats.jobs);
    assert_int_equal(p.used[0], 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(what_comes_twice_is_there_once), T(the_last_stay_is_read),  T(a_gap_is_told),
        T(the_oldest_goes_first),          T(files_are_for_us_alone), T(a_full_disk_drops),
        T(what_is_old_is_removed),         T(the_oldest_makes_room),  T(the_last_lines),
        T(the_last_lines_of_much),         T(what_came_since),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
