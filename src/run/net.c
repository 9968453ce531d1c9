/* One network namespace per tenant; see the header. */
#include "run/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/os.h"

#ifndef NSFS_MAGIC
#define NSFS_MAGIC 0x6e736673
#endif

static bool is_namespace(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

/* In a child, since a process has one network namespace: makes it, brings loopback up, and pins
 * it to the file. Only system calls, for our parent may have threads. Returns errno or 0. */
static int make_namespace(const char *path)
{
    struct ifreq request = {.ifr_name = "lo"};

    if (unshare(CLONE_NEWNET) != 0)
        return errno;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        return errno;
    return mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL) == 0 ? 0 : errno;
}

/* Two tasks of one tenant may start at once: the second finds what the first has made. The lock goes
 * with the descriptor. */
int st_net_lock(const char *state_dir, st_err *err)
{
    char dir[PATH_MAX], path[PATH_MAX];
    int r, fd;

    if ((r = st_os_path(dir, err, "%s/net", state_dir)) != 0 ||
        (r = st_os_path(path, err, "%s/.lock", dir)) != 0 ||
        (r = st_os_mkdirs(dir, 0711, err)) != 0)
        return r;
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        r = st_fail(err, ST_EIO, "cannot lock %s: %s", path, strerror(errno));
        st_os_closep(&fd);
        return r;
    }
    return fd;
}

int st_net_make(const char *state_dir, const char *name, char ret[PATH_MAX], st_err *err)
{
    char path[PATH_MAX];
    int status = 0;
    int r = st_os_path(path, err, "%s/net/%s", state_dir, name);

    if (r)
        return r;
    if (!is_namespace(path)) {
        int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
            return st_fail(err, ST_EIO, "cannot create %s: %s", path, strerror(errno));
        close(fd);
        pid_t pid = fork();

        if (pid == 0)
            _exit(make_namespace(path));
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            return st_fail(err, ST_EIO, "cannot make a network namespace for tenant %s: %s", name,
                           WIFEXITED(status) && status ? strerror(WEXITSTATUS(status))
                                                       : "the helper died");
    }
    memcpy(ret, path, sizeof(path));
    return 0;
}

int st_net_tenant(const char *state_dir, const char *tenant, char ret[PATH_MAX], st_err *err)
{
    ST_CLEANUP(st_os_closep) int lock = st_net_lock(state_dir, err);

    return lock < 0 ? lock : st_net_make(state_dir, tenant, ret, err);
}

bool st_net_there(const char *state_dir, const char *name)
{
    char path[PATH_MAX];

    return st_os_path(path, NULL, "%s/net/%s", state_dir, name) == 0 && is_namespace(path);
}

void st_net_forget(const char *state_dir, const char *tenant)
{
    char path[PATH_MAX];

    if (st_os_path(path, NULL, "%s/net/%s", state_dir, tenant) != 0)
        return;
    (void)umount2(path, MNT_DETACH);
    (void)unlink(path);
}
