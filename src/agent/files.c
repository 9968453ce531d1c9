/*
 * Files and clocks (agent/files.h).
 */
#include "agent/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_MAX (64u << 20)

int st_dir_make(const char *path, st_err *err)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof part)
        return st_fail(err, ST_EINVAL, "%s: no name of a folder", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return st_fail(err, ST_EIO, "%s: cannot be made: %s", part, strerror(errno));
    }
    return 0;
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t k = write(fd, text, n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -1;
        text += k;
        n -= (size_t)k;
    }
    return 0;
}

static void sync_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

int st_file_replace(const char *dir, const char *name, const char *text, size_t n, bool sync,
                    st_err *err)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    int fd, r;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path ||
        snprintf(fresh, sizeof fresh, "%s/.%s.new", dir, name) >= (int)sizeof fresh)
        return st_fail(err, ST_EINVAL, "%s/%s: the name is too long", dir, name);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", fresh, strerror(errno));
    r = write_all(fd, text, n);
    if (r == 0 && sync)
        r = fsync(fd);
    if (close(fd) != 0 || r != 0 || rename(fresh, path) != 0) {
        r = st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
        unlink(fresh);
        return r;
    }
    if (sync)
        sync_dir(dir);
    return 0;
}

int st_file_append(const char *dir, const char *name, int64_t at, const char *text, size_t n,
                   bool sync, st_err *err)
{
    char path[PATH_MAX];
    int fd, r;

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return st_fail(err, ST_EINVAL, "%s/%s: the name is too long", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
    r = ftruncate(fd, (off_t)at);
    if (r == 0)
        r = write_all(fd, text, n);
    if (r == 0 && sync)
        r = fdatasync(fd);
    if (r != 0) {
        r = st_fail(err, ST_EIO, "%s: cannot be written: %s", path, strerror(errno));
        if (ftruncate(fd, (off_t)at) != 0)
            st_fail_prefix(err, "and not cut back: ");
    }
    close(fd);
    if (r == 0 && sync && at == 0)
        sync_dir(dir);
    return r;
}

int st_file_whole(const char *dir, const char *name, st_strbuf *ret, st_err *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
        return st_fail(err, ST_EINVAL, "%s/%s: the name is too long", dir, name);
    if (access(path, F_OK) != 0)
        return st_fail(err, ST_ENOENT, "%s: there is none", path);
    return st_file_read(path, FILE_MAX, ret, err);
}

int st_file_load(const char *dir, const char *name, st_strbuf *ret, st_err *err)
{
    int r = st_file_whole(dir, name, ret, err);

    while (r == 0 && ret->n > 0 && strchr(" \t\r\n", ret->s[ret->n - 1]))
        ret->s[--ret->n] = '\0';
    return r;
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void st_boot_id(char ret[64])
{
    ST_CLEANUP(st_strbuf_done) st_strbuf id = {0};

    if (st_file_load("/proc/sys/kernel/random", "boot_id", &id, NULL) < 0)
        st_strbuf_clear(&id);
    snprintf(ret, 64, "%s", st_strbuf_str(&id));
}

int64_t st_wall_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

int64_t st_boot_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}
