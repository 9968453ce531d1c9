/*
 * Reading what an MPS daemon answers, and its folder. The daemon itself is tried by tests/agent_mps.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/testing.h"
#include "run/mps.h"
#include "run/os.h"

static void pids_are_numbers_on_lines(void **state)
{
    int64_t v[3] = {0};

    (void)state;
    assert_int_equal(st_mps_pids("", v, 3), 0);
    assert_int_equal(st_mps_pids("4711\n12 \r\n", v, 3), 2);
    assert_int_equal(v[0], 4711);
    assert_int_equal(v[1], 12);
    assert_int_equal(st_mps_pids("5\n6\n7\n8\n", v, 3), 4); /* more than there is room for */
    assert_int_equal(v[2], 7);
    /* Sentences, init, and what no pid can be. */
    assert_int_equal(st_mps_pids("Server not found\n1\n0\n-5\n99999999999999999999\n12a\n", v, 3),
                     0);
}

static void a_percentage_is_exact(void **state)
{
    st_err err = {0};
    int64_t m = 0;

    (void)state;
    assert_ok(st_mps_percent("50.0\n", &m, &err));
    assert_int_equal(m, 50000);
    assert_ok(st_mps_percent(" 33.333%", &m, &err));
    assert_int_equal(m, 33333);
    assert_ok(st_mps_percent("100", &m, &err));
    assert_int_equal(m, 100000);
    assert_fails(st_mps_percent("Server 12 is not there", &m, &err), ST_EDOWN, "not there");
    assert_fails(st_mps_percent("", &m, &err), ST_EDOWN, "percentage");
    assert_fails(st_mps_percent("101", &m, &err), ST_EDOWN, "101");
    assert_fails(st_mps_percent("50 of them", &m, &err), ST_EDOWN, "of them");
    assert_int_equal(m, 100000);
}

static void memory_limits_are_compared_as_they_are_shown(void **state)
{
    static const struct {
        const char *text;
        int64_t mib;
        bool same;
    } rows[] = {
        {"8192M\n", 8192, true},  {"8191M", 8192, false},     {"8G", 8192, true},
        {"8G", 8200, true},       {"8G", 9216, false},        {"8G", 8191, false},
        {"0M", 8192, false},      {"8589934592", 8192, true}, {"8388608K", 8192, true},
        {"8192MB\n", 8192, true}, {"1M", 8192, false},        {"4.5G", 4608, true},
    };
    st_err err = {0};
    bool same;

    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        assert_ok(st_mps_memory_is(rows[i].text, rows[i].mib, &same, &err));
        if (same != rows[i].same)
            fail_msg("%s is taken for %d MiB: %d", rows[i].text, (int)rows[i].mib, same);
    }
    assert_fails(st_mps_memory_is("no limit", 1, &same, &err), ST_EDOWN, "no limit");
    assert_fails(st_mps_memory_is("", 1, &same, &err), ST_EDOWN, "memory limit");
    assert_fails(st_mps_memory_is("8Q", 1, &same, &err), ST_EDOWN, "8Q");
    assert_fails(st_mps_memory_is("99999999999999999999M", 1, &same, &err), ST_EDOWN, "999");
}

static void a_folder_says_whom_it_is_for(void **state)
{
    char top[] = "/tmp/stint-mps-XXXXXX", dir[64];
    st_mps_record a = {.gpu = 3, .uuid = "GPU-1", .domain = "acme", .uid = 700001, .pid = 1}, b;
    st_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(top));
    snprintf(dir, sizeof dir, "%s/mps/3-acme", top);
    assert_fails(st_mps_read(dir, &b, &err), ST_ENOENT, "daemon.json");
    assert_ok(st_mps_note(dir, &a, &err));
    assert_ok(st_mps_read(dir, &b, &err));
    assert_int_equal(b.gpu, 3);
    assert_string_equal(b.uuid, "GPU-1");
    assert_string_equal(b.domain, "acme");
    assert_int_equal(b.uid, 700001);
    assert_int_equal(b.pid, 0); /* nobody has been started */
    assert_false(st_mps_alive(dir));
    /* Nothing to stop is stopped. */
    assert_ok(st_mps_stop(&(st_mps){.dir = dir}, &err));
    assert_ok(st_mps_remove(top, &err));
    assert_true(access(top, F_OK) != 0);
}

static void a_program_must_be_one(void **state)
{
    char path[PATH_MAX];
    st_err err = {0};

    (void)state;
    assert_fails(st_mps_find("/no/such/program", path, &err), ST_ENOENT, "/no/such/program");
    assert_fails(st_mps_find("sh", path, &err), ST_ENOENT, "whole path");
    assert_ok(st_mps_find("/bin/sh", path, &err));
    assert_string_equal(path, "/bin/sh");
}

/* ---- asking a program ------------------------------------------------------------------------ */

static int ask(const char *script, const char *input, int64_t timeout_ms, char *said, size_t cap)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    const char *env[] = {"ONLY=this", NULL};

    return st_os_ask(
        &(st_os_call){.argv = argv, .env = env, .input = input, .timeout_ms = timeout_ms}, said,
        cap);
}

static int refuse(const void *ctx)
{
    (void)ctx;
    return 9;
}

static void a_program_is_asked(void **state)
{
    const char *argv[] = {"/bin/true", NULL}, *env[] = {NULL};
    char said[64];

    (void)state;
    assert_int_equal(ask("read x; echo got $x $ONLY $HOME; exit 3", "hello\n", 5000, said, 64), 3);
    assert_string_equal(said, "got hello this\n");
    assert_int_equal(ask("exit 0", "not read\n", 5000, said, 64), 0);
    assert_int_equal(ask("kill -9 $$", NULL, 5000, said, 64), 128 + 9);
    assert_int_equal(ask("yes | head -c 100000", NULL, 5000, said, 8), 0);
    assert_int_equal(strlen(said), 7); /* cut, and nobody was held up */
    /* One that stays behind with its streams does not keep us. */
    assert_int_equal(ask("echo up; sleep 5 & exit 0", NULL, 4000, said, 64), 0);
    assert_string_equal(said, "up\n");
    assert_int_equal(ask("sleep 10", NULL, 50, said, 64), -1);
    assert_int_equal(
        st_os_ask(&(st_os_call){.argv = argv, .env = env, .timeout_ms = 5000, .before = refuse},
                  said, sizeof said),
        9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pids_are_numbers_on_lines),
        cmocka_unit_test(a_percentage_is_exact),
        cmocka_unit_test(memory_limits_are_compared_as_they_are_shown),
        cmocka_unit_test(a_folder_says_whom_it_is_for),
        cmocka_unit_test(a_program_must_be_one),
        cmocka_unit_test(a_program_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
