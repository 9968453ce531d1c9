/*
 * The file with the end of a node's lease: what is read while it is written over, files of earlier versions, and a disk
 * without room for another one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/testing.h"
#include "run/os.h"
#include "run/run.h"

#define BOOT "0c8c5f4e-boot"

static void test_read(void **state)
{
    st_run_lease l = st_run_lease_read(BOOT " 1200 kill 0021\n", BOOT);

    (void)state;
    assert_int_equal(l.end_ms, 1200);
    assert_false(l.keep);
    l = st_run_lease_read(BOOT " 1200 keep 0021\n", BOOT);
    assert_true(l.keep);
    l = st_run_lease_read(BOOT " 1200 kill\n", BOOT); /* of an earlier version */
    assert_int_equal(l.end_ms, 1200);
    l = st_run_lease_read(BOOT " 0 kill 0\n", BOOT);
    assert_int_equal(l.end_ms, 0);
    l = st_run_lease_read(BOOT " 1200 kill 0021\n", "another");
    assert_int_equal(l.end_ms, 0);
}

/* Every mix of the beginning of one and the end of the next is either of them, or none. */
static void test_torn(void **state)
{
    const char *old = BOOT " 1299999 kill 9999921\n", *fresh = BOOT " 1300001 kill 1000031\n";
    char text[64];

    (void)state;
    for (size_t n = 0; n <= strlen(old); n++) {
        snprintf(text, sizeof(text), "%.*s%s", (int)n, fresh, old + n);
        int64_t end = st_run_lease_read(text, BOOT).end_ms;

        if (end != 0 && end != 1299999 && end != 1300001)
            fail_msg("\"%s\" was read as %" PRId64, text, end);
    }
    assert_int_equal(st_run_lease_read(BOOT " 1200 kill 00211\n", BOOT).end_ms, 0);
    assert_int_equal(st_run_lease_read(BOOT " 1200 kill 002\n", BOOT).end_ms, 0);
}

static void test_full(void **state)
{
    char dir[64], path[96], more[96], *block = calloc(1, 1 << 20);
    st_run_lease l = {.end_ms = 99999};
    st_err err = {0};

    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/stint-lease-test-%d", (int)getpid());
    snprintf(path, sizeof(path), "%s/lease", dir);
    snprintf(more, sizeof(more), "%s/more", dir);
    assert_int_equal(st_os_mkdirs(dir, 0700, &err), 0);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=64k") != 0) {
        free(block);
        rmdir(dir);
        skip();
    }
    assert_int_equal(st_run_lease_save(path, &l, &err), 0);
    FILE *f = fopen(more, "w");

    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    (void)!fwrite(block, 1, 1 << 20, f);
    fclose(f);
    free(block);
    assert_int_equal(st_os_write(more, "x", 1, 0600, &err), -ST_EFULL);
    for (l.end_ms = 99998; l.end_ms < 100002; l.end_ms++) {
        l.keep = !l.keep;
        assert_int_equal(st_run_lease_save(path, &l, &err), 0);
        assert_int_equal(st_run_lease_load(path).end_ms, l.end_ms);
        assert_int_equal(st_run_lease_load(path).keep, l.keep);
    }
    l.end_ms = 7; /* shorter */
    assert_int_equal(st_run_lease_save(path, &l, &err), 0);
    assert_int_equal(st_run_lease_load(path).end_ms, 7);
    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_full),
    };

    return cmocka_run_group_tests_name("run_lease", tests, NULL, NULL);
}
