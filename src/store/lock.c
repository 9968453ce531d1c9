/*
 * One writer per store: a lock on the file PATH.lock, which says who holds it. The system lets go of
 * the lock when its holder ends, however that happens; the file stays, since removing it would let
 * two hold two different files of that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "store/files.h"

static long holder(int fd)
{
    char text[32] = "";
    long pid;

    if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    pid = strtol(text, NULL, 10);
    return pid > 0 ? pid : 0;
}

static int refuse(const char *path, int fd, st_err *err)
{
    long pid = holder(fd);

    if (pid)
        return st_fail(err, ST_ESTATE, "store %s is in use by process %ld; stop it first", path,
                       pid);
    return st_fail(err, ST_ESTATE, "store %s is in use by another process; stop it first", path);
}

static int take(int fd, const char *path, st_err *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[32];
    int n;

    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno == EAGAIN || errno == EACCES)
            return refuse(path, fd, err);
        return st_fail(err, ST_EIO, "cannot lock %s.lock: %s", path, strerror(errno));
    }
    /* Who it is is a courtesy: on a full disk the lock holds without it. */
    n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        errno = 0;
    return 0;
}

int st_lock_take(const char *path, int *ret_fd, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};
    int fd, r;

    st_strbuf_addf(&name, "%s.lock", path);
    fd = open(st_strbuf_str(&name), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        return st_fail(err, errno == ENOSPC || errno == EDQUOT ? ST_EFULL : ST_EIO,
                       "cannot open %s: %s", st_strbuf_str(&name), strerror(errno));
    r = take(fd, path, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}
