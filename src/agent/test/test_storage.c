/*
 * What a tenant has in /data: counted as it is on the disk, and where the file system can, kept to its limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/storage.h"
#include "base/testing.h"

#define KIB 1024

static char top[] = "/tmp/stint-storage-XXXXXX";

static int run(const char *command)
{
    char line[1024];

    snprintf(line, sizeof line, "cd %s && (%s)", top, command);
    return system(line);
}

static st_storage count(const char *name)
{
    char path[256];
    st_storage use = {0};
    st_err err = {0};

    snprintf(path, sizeof path, "%s/%s", top, name);
    assert_ok(st_storage_count(path, &use, &err));
    assert_int_equal(chdir("/"), 0);
    return use;
}

static void what_is_there_is_counted(void **state)
{
    st_storage empty, all;
    st_err err = {0};

    (void)state;
    assert_int_equal(run("mkdir -p a other && head -c 1000000 /dev/zero >other/big"), 0);
    empty = count("a");
    assert_int_equal(
        run("cd a && mkdir -p x/y && head -c 1048576 /dev/urandom >x/f && truncate -s 1G x/hole && "
            "ln x/f x/y/again && ln -s / root && ln -s ../other link && mkfifo pipe"),
        0);
    all = count("a");
    /* Two folders, two files, one of them twice, two links, a pipe. Neither holes nor links lead anywhere. */
    assert_int_equal(all.files - empty.files, 8);
    assert_in_range(all.bytes - empty.bytes, 1048576, 1048576 + 64 * KIB);
    assert_int_equal(run("rm -rf a/x"), 0);
    assert_true(count("a").bytes - empty.bytes < 64 * KIB);
    assert_fails(st_storage_count("/nonexistent/storage", &all, &err), ST_EIO, "No such file");
}

/* Deeper than any path may be long. */
static void depth_hides_nothing(void **state)
{
    st_storage use;

    (void)state;
    assert_int_equal(run("mkdir deep && cd deep && python3 -c \"\n"
                         "import os\n"
                         "for i in range(60):\n"
                         "    os.mkdir('d' * 200); os.chdir('d' * 200)\n"
                         "open('f', 'wb').write(b'x' * 1000000)\n\""),
                     0);
    use = count("deep");
    assert_int_equal(use.files, 62);
    assert_true(use.bytes >= 1000000);
}

static void who_is_refused_is_counted_again_soon(void **state)
{
    (void)state;
    assert_int_equal(st_storage_pause(0, false, INT64_MAX / 2), 5000);
    assert_int_equal(st_storage_pause(1000, false, INT64_MAX / 2), 20000);
    assert_int_equal(st_storage_pause(100000, false, INT64_MAX / 2), 600000);
    /* Who has little room is counted before it can be full, for half of the time at most. */
    assert_int_equal(st_storage_pause(30000, false, 1000 * ST_STORAGE_RATE), 600000);
    assert_in_range(st_storage_pause(10000, false, 100 * ST_STORAGE_RATE), 100000, 100100);
    assert_int_equal(st_storage_pause(10000, false, ST_STORAGE_RATE), 15000);
    assert_int_equal(st_storage_pause(40000, false, 0), 40000);
    assert_int_equal(st_storage_pause(100, false, -5), 5000);
    assert_int_equal(st_storage_pause(0, true, 0), 5000);
    assert_int_equal(st_storage_pause(10000, true, 0), 15000);
    assert_int_equal(st_storage_pause(100000, true, 0), 100000);
}

static void limits_and_reasons(void **state)
{
    st_storage limit = st_storage_limit("/tmp", 1024), use = {.bytes = INT64_C(1) << 30};
    char why[160];

    (void)state;
    assert_int_equal(limit.bytes, INT64_C(1) << 30);
    assert_int_equal(limit.files, 65536);
    assert_false(st_storage_over("its account's /data on this node", &use, &limit, why));
    use.bytes++;
    assert_true(st_storage_over("its account's /data on this node", &use, &limit, why));
    assert_string_equal(why, "its account's /data on this node holds 1025Mi, at most 1Gi");
    use = (st_storage){.files = 65537};
    assert_true(st_storage_over("its account's /data on this node", &use, &limit, why));
    assert_string_equal(why, "its account's /data on this node holds 65537 files, at most 65536");
    assert_int_equal(st_storage_limit("/tmp", 1).files, 10000);
    assert_true(st_storage_limit("/tmp", 0).bytes > 0);
}

/* As another user, whom quotas bind: how many KiB could be written, and the error that ended it. */
static int write_as(const char *path, uid_t uid, int kib)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        char block[KIB] = {1};
        int fd;

        if (setgid(uid) != 0 || setuid(uid) != 0)
            _exit(1);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        for (int i = 0; fd >= 0 && i < kib; i++)
            if (write(fd, block, KIB) != KIB || (i % 64 == 0 && fsync(fd) != 0))
                _exit(errno);
        _exit(fd < 0 ? errno : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void the_file_system_keeps_it(void **state)
{
    const st_storage limit = {.bytes = 2 << 20, .files = 50};
    char a[256], b[256], file[512], mount[600];
    st_err err = {0};
    int r;

    (void)state;
    snprintf(a, sizeof a, "%s/disk/a", top);
    snprintf(b, sizeof b, "%s/disk/b", top);
    snprintf(mount, sizeof mount,
             "truncate -s 64M img && mkfs.ext4 -q -O quota,project -E quotatype=prjquota img && "
             "mkdir disk && "
             "mount -o loop,prjquota img disk");
    if (geteuid() != 0 || run(mount) != 0) {
        puts("skipped: ext4 cannot be mounted with prjquota here: needs root and CONFIG_QFMT_V2; "
             "tests/vm/boot has both");
        skip();
    }
    assert_int_equal(run("mkdir -p disk/a/old disk/b && head -c 600000 /dev/zero >disk/a/old/f && "
                         "chown -R 200001 disk/a && chown -R 200002 disk/b"),
                     0);
    assert_true(st_storage_enforced(a));
    assert_ok(st_storage_enforce(a, 200001, &limit, &err));
    assert_ok(st_storage_enforce(b, 200002, &limit, &err));
    assert_ok(st_storage_enforce(a, 200001, &limit, &err)); /* again */
    snprintf(file, sizeof file, "%s/old/more", a);
    r = write_as(file, 200001, 4096); /* what was there before counts */
    assert_int_equal(r, EDQUOT);
    snprintf(file, sizeof file, "%s/f", b);
    assert_int_equal(write_as(file, 200002, 1024), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(run("umount disk"), 0);
}

static int open_top(void **state)
{
    (void)state;
    return mkdtemp(top) && chmod(top, 0711) == 0 ? 0 : -1; /* others look into it */
}

static int close_top(void **state)
{
    (void)state;
    (void)run("umount disk 2>/dev/null");
    return run("cd / && rm -rf \"$OLDPWD\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_counted),
        cmocka_unit_test(depth_hides_nothing),
        cmocka_unit_test(who_is_refused_is_counted_again_soon),
        cmocka_unit_test(limits_and_reasons),
        cmocka_unit_test(the_file_system_keeps_it),
    };

    return cmocka_run_group_tests(tests, open_top, close_top);
}
