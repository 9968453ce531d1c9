/*
 * A disk that runs full: from when a node is on hold, until when, and what is set aside. Needs root, for a tmpfs.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host.h"
#include "base/testing.h"

#define MIB (1 << 20)

static const st_exec_ops real_ops = {.name = "test", .real = true};

/* So much is taken by others. */
static void take(const st_host *h, off_t bytes)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.4000s/others", h->dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(bytes > 0 ? posix_fallocate(fd, 0, bytes) : 0, 0);
    close(fd);
}

/* What a task that ends frees does not bring starts that have no room. */
static void a_little_room_is_not_enough(void **state)
{
    char dir[] = "/tmp/stint-disk-XXXXXX";
    st_exec exec = {.ops = &real_ops};
    st_host h = {.name = "t", .exec = &exec};
    int64_t boot = 0;

    (void)state;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip();
    assert_non_null(mkdtemp(dir));
    assert_int_equal(mount("tmpfs", dir, "tmpfs", 0, "size=64m"), 0);
    snprintf(h.dir, sizeof h.dir, "%s", dir);
    st_host_disk(&h, boot += 2000);
    assert_true(h.reserved && !h.full[0]);
    take(&h, 62 * MIB + MIB / 2); /* less than a 64th is left */
    st_host_disk(&h, boot += 2000);
    assert_true(h.full[0]);
    assert_true(st_host_disk_give(&h));
    take(&h, 61 * MIB); /* three are free */
    st_host_disk(&h, boot += 2000);
    assert_true(h.full[0] && !h.reserved);
    take(&h, 56 * MIB); /* room for what tasks write, for records, and for the reserve */
    st_host_disk(&h, boot += 2000);
    assert_true(!h.full[0] && h.reserved);
    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_little_room_is_not_enough)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
