/*
 * The bounded log: rotation at line ends, reading from any offset, long lines, a full disk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/log.h"
#include "run/os.h"

typedef struct fixture {
    char dir[128], prefix[160];
    st_log log;
} fixture;

static int open_log(void **state)
{
    static fixture f;
    st_err err = {0};

    snprintf(f.dir, sizeof(f.dir), "/tmp/stint-log-test-%d", (int)getpid());
    snprintf(f.prefix, sizeof(f.prefix), "%s/out", f.dir);
    *state = &f;
    return st_os_mkdirs(f.dir, 0700, &err);
}

static int close_log(void **state)
{
    fixture *f = *state;

    st_log_done(&f->log);
    (void)umount2(f->dir, MNT_DETACH);
    return st_os_remove_tree(f->dir, NULL);
}

static size_t read_at(const fixture *f, int64_t offset, char *buf, size_t cap, int64_t *first,
                      int64_t *end)
{
    size_t n = 0;
    st_err err = {0};

    assert_ok(st_log_read(f->dir, "out", offset, buf, cap - 1, &n, first, end, &err));
    buf[n] = '\0';
    return n;
}

static void small_output_is_one_file(void **state)
{
    fixture *f = *state;
    char buf[64];
    int64_t first, end;
    st_err err = {0};

    assert_ok(st_log_init(&f->log, f->prefix, 1 << 20, &err));
    assert_int_equal(read_at(f, 0, buf, sizeof(buf), &first, &end), 0);
    assert_int_equal(end, 0);
    st_log_add(&f->log, "hello\n", 6);
    st_log_add(&f->log, "wor", 3);
    assert_int_equal(read_at(f, 0, buf, sizeof(buf), &first, &end), 9);
    assert_string_equal(buf, "hello\nwor");
    assert_int_equal(read_at(f, 6, buf, sizeof(buf), &first, &end), 3);
    assert_int_equal(first, 6);
    assert_int_equal(end, 9);
    assert_int_equal(read_at(f, 9, buf, sizeof(buf), &first, &end), 0);
    assert_int_equal(first, 9);
    assert_int_equal(read_at(f, 5000, buf, sizeof(buf), &first, &end), 0); /* beyond the end */
    assert_int_equal(first, 9);
}

static void rotation_keeps_the_newest_in_whole_lines(void **state)
{
    fixture *f = *state;
    static char buf[16384];
    char line[32];
    int64_t first, end, total = 0;
    st_err err = {0};

    assert_ok(st_log_init(&f->log, f->prefix, 4000, &err)); /* files of 1000 bytes */
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(line, sizeof(line), "line number %d\n", i);

        /* In odd pieces, as pipes give them. */
        st_log_add(&f->log, line, (size_t)n / 2);
        st_log_add(&f->log, line + n / 2, (size_t)n - (size_t)n / 2);
        total += n;
    }
    size_t n = read_at(f, 0, buf, sizeof(buf), &first, &end);

    assert_int_equal(end, total);
    assert_int_equal(first + (int64_t)n, total);
    assert_true(n >= 3000 && n <= 4000 + 4 * 32);
    assert_int_equal(strncmp(buf, "line number ", 12), 0); /* begins with a whole line */
    assert_non_null(strstr(buf, "line number 999\n"));
    int at = atoi(buf + 12);

    for (const char *p = buf; *p; p = strchr(p, '\n') + 1, at++)
        assert_int_equal(atoi(p + 12), at); /* none missing, none twice */
    assert_int_equal(at, 1000);
}

static void a_reader_follows_across_files(void **state)
{
    fixture *f = *state;
    char line[32], buf[64];
    int64_t first, end, at = 0;
    st_err err = {0};

    assert_ok(st_log_init(&f->log, f->prefix, 400, &err));
    for (int i = 0; i < 200; i++) {
        int n = snprintf(line, sizeof(line), "number %d\n", i);

        st_log_add(&f->log, line, (size_t)n);
        assert_int_equal(read_at(f, at, buf, sizeof(buf), &first, &end), n);
        assert_string_equal(buf, line);
        at = first + n;
    }
}

static void a_line_without_end_is_bounded(void **state)
{
    fixture *f = *state;
    static char block[50000];
    int64_t first, end;
    char buf[16];
    struct stat st;
    st_err err = {0};

    memset(block, 'x', sizeof(block));
    assert_ok(st_log_init(&f->log, f->prefix, 4 * 1000, &err));
    for (int i = 0; i < 40; i++)
        st_log_add(&f->log, block, sizeof(block));
    read_at(f, 0, buf, sizeof(buf), &first, &end);
    assert_int_equal(end, 40 * 50000);
    int64_t kept = 0;

    for (int i = 0; i < f->log.nfile; i++) {
        char path[PATH_MAX];

        snprintf(path, sizeof(path), "%s.%" PRId64, f->prefix, f->log.firsts[i]);
        assert_int_equal(stat(path, &st), 0);
        kept += st.st_size;
    }
    assert_true(kept <= 4 * (1000 + ST_LOG_LINE_MAX));
    assert_int_equal(f->log.lost, 0);
}

static void a_full_disk_drops_and_says_so(void **state)
{
    fixture *f = *state;
    static char block[1000], buf[256 << 10];
    char ballast[PATH_MAX];
    int64_t first, end;
    st_err err = {0};

    if (mount("tmpfs", f->dir, "tmpfs", 0, "size=128k") != 0) {
        printf("SKIP: a small file system cannot be mounted without root\n");
        skip();
    }
    snprintf(ballast, sizeof(ballast), "%s/ballast", f->dir);
    static char heavy[64 << 10];

    assert_ok(st_os_write(ballast, heavy, sizeof(heavy), 0600, &err));
    memset(block, 'y', sizeof(block) - 1);
    block[sizeof(block) - 1] = '\n';
    assert_ok(st_log_init(&f->log, f->prefix, 1 << 20, &err));
    for (int i = 0; i < 200; i++)
        st_log_add(&f->log, block, sizeof(block));
    int64_t lost = f->log.lost;

    assert_true(lost > 100000 && lost < 200000);
    assert_int_equal(unlink(ballast), 0);
    st_log_add(&f->log, "back again\n", 11);
    size_t n = read_at(f, 0, buf, sizeof(buf), &first, &end);
    char want[128];

    snprintf(want, sizeof(want),
             "[stint: %" PRId64 " bytes of output lost, disk full]\nback again\n", lost);
    assert_string_equal(buf + n - strlen(want), want);
    assert_int_equal(buf[n - strlen(want) - 1], '\n'); /* on a line of its own */
    assert_int_equal(f->log.lost, lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(small_output_is_one_file, open_log, close_log),
        cmocka_unit_test_setup_teardown(rotation_keeps_the_newest_in_whole_lines, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(a_reader_follows_across_files, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_line_without_end_is_bounded, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_full_disk_drops_and_says_so, open_log, close_log),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
