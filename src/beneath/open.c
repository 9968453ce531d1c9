/*
 * Opening, making and renaming beneath a root (beneath/beneath.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "beneath/beneath.h"

#define RESOLVE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)
#define TRIES   8 /* the kernel asks for another one when something was moved meanwhile */

int st_beneath_path(const char *said, char ret[ST_BENEATH_PATH_MAX], st_err *err)
{
    size_t len = strlen(said), n = 0;
    char path[ST_BENEATH_PATH_MAX], q[ST_QUOTE_MAX];

    if (st_utf8_valid(said, len) != len)
        return st_fail(err, ST_EINVAL, "the path is not valid UTF-8");
    for (size_t i = 0, part; i < len; i += part + 1) {
        part = strcspn(said + i, "/");
        for (size_t k = 0; k < part; k++)
            if ((unsigned char)said[i + k] < 0x20 || said[i + k] == 0x7f)
                return st_fail(err, ST_EINVAL, "the path %s has a control character",
                               st_quote(q, said));
        if (part == 2 && memcmp(said + i, "..", 2) == 0)
            return st_fail(err, ST_EINVAL, "the path %s must not have \"..\"", st_quote(q, said));
        if (part == 0 || (part == 1 && said[i] == '.'))
            continue;
        if (part >= ST_BENEATH_NAME_MAX || n + part + 2 > sizeof path)
            return st_fail(err, ST_ELIMIT,
                           "the path %s is too long: at most 255 bytes a name, %d in all",
                           st_quote(q, said), ST_BENEATH_PATH_MAX - 1);
        if (n > 0)
            path[n++] = '/';
        memcpy(path + n, said + i, part);
        n += part;
    }
    if (n == 0)
        path[n++] = '.';
    path[n] = '\0';
    memcpy(ret, path, n + 1);
    return 0;
}

static int open_at(int root, const char *path, uint64_t flags, uint64_t mode)
{
    const struct open_how how = {
        .flags = flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, .mode = mode, .resolve = RESOLVE};
    int fd = -1;

    for (int i = 0; i < TRIES && fd < 0 && (i == 0 || errno == EAGAIN || errno == EINTR); i++)
        fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd;
}

static int fault(const char *path, st_err *err)
{
    char q[ST_QUOTE_MAX];

    st_quote(q, path);
    switch (errno) {
    case ENOENT:
        return st_fail(err, ST_ENOENT, "there is no file %s", q);
    case ENOTDIR:
        return st_fail(err, ST_ESTATE, "%s lies in something that is no folder", q);
    case EISDIR:
        return st_fail(err, ST_ESTATE, "%s is a folder", q);
    case EEXIST:
        return st_fail(err, ST_EEXIST, "%s is there already", q);
    case ELOOP:
    case EXDEV:
        return st_fail(err, ST_EPERM, "%s leads over a symbolic link; links are not followed", q);
    case EACCES:
    case EPERM:
        return st_fail(err, ST_EPERM,
                       "%s is private to whoever made it; its job can open it to the group with "
                       "chmod g+rwX",
                       q);
    case ENXIO: /* a FIFO that nobody reads, a socket */
        return st_fail(err, ST_EPERM, "%s is neither a file nor a folder", q);
    case ENAMETOOLONG:
        return st_fail(err, ST_ELIMIT, "%s is too long a name", q);
    case ENOSPC:
    case EDQUOT:
        return st_fail(err, ST_EFULL, "the disk of the volumes is full");
    default:
        return st_fail(err, ST_EIO, "%s: %s", q, strerror(errno));
    }
}

int st_beneath_root(const char *dir, int *ret_fd, st_err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return st_fail(err, ST_EIO, "%s: %s", dir, strerror(errno));
    *ret_fd = fd;
    return 0;
}

/* A file or folder, or it is closed again. */
static int taken(int fd, const char *path, int *ret_fd, struct stat *ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    struct stat s;

    if (fd < 0)
        return fault(path, err);
    if (fstat(fd, &s) != 0 || !(S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) {
        close(fd);
        return st_fail(err, ST_EPERM, "%s is neither a file nor a folder", st_quote(q, path));
    }
    *ret_fd = fd;
    *ret = s;
    return 0;
}

int st_beneath_open(int root, const char *path, int *ret_fd, struct stat *ret, st_err *err)
{
    return taken(open_at(root, path, O_RDONLY | O_NONBLOCK, 0), path, ret_fd, ret, err);
}

int st_beneath_folders(int root, const char *path, st_err *err)
{
    int at = open_at(root, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    char name[ST_BENEATH_NAME_MAX];

    if (at < 0)
        return fault(path, err);
    for (size_t part; r == 0 && *path; path += part + (path[part] == '/')) {
        int next;

        part = strcspn(path, "/");
        memcpy(name, path, part);
        name[part] = '\0';
        if (strcmp(name, ".") != 0 && mkdirat(at, name, 0770) != 0 && errno != EEXIST)
            r = fault(name, err);
        next = r == 0 ? open_at(at, name, O_RDONLY | O_DIRECTORY, 0) : -1;
        if (r == 0 && next < 0)
            r = fault(name, err);
        close(at);
        at = next;
    }
    if (at >= 0)
        close(at);
    return r;
}

/* The folder that a path lies in, and its last name. */
static int parent_of(int root, const char *path, int *ret_fd, const char **ret_name, st_err *err)
{
    const char *slash = strrchr(path, '/');
    char up[ST_BENEATH_PATH_MAX] = ".";
    int fd;

    if (strcmp(path, ".") == 0)
        return st_fail(err, ST_EINVAL, "name a file, not the whole folder");
    if (slash) {
        memcpy(up, path, (size_t)(slash - path));
        up[slash - path] = '\0';
    }
    fd = open_at(root, up, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fault(up, err);
    *ret_fd = fd;
    *ret_name = slash ? slash + 1 : path;
    return 0;
}

int st_beneath_create(int root, const char *path, int *ret_fd, struct stat *ret, st_err *err)
{
    const char *slash = strrchr(path, '/');
    int r = 0;

    if (slash) {
        char up[ST_BENEATH_PATH_MAX];

        memcpy(up, path, (size_t)(slash - path));
        up[slash - path] = '\0';
        r = st_beneath_folders(root, up, err);
    }
    if (r < 0)
        return r;
    return taken(open_at(root, path, O_RDWR | O_CREAT | O_NONBLOCK, 0660), path, ret_fd, ret, err);
}

int st_beneath_rename(int root, const char *from, const char *to, st_err *err)
{
    const char *from_name, *to_name;
    int a = -1, b = -1, r = parent_of(root, from, &a, &from_name, err);

    if (r == 0)
        r = parent_of(root, to, &b, &to_name, err);
    if (r == 0 && renameat(a, from_name, b, to_name) != 0)
        r = fault(to, err);
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    return r;
}

int st_beneath_unlink(int root, const char *path, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const char *name;
    int fd = -1, r = parent_of(root, path, &fd, &name, err);

    if (r < 0)
        return r;
    if (unlinkat(fd, name, 0) != 0 && (errno != EISDIR || unlinkat(fd, name, AT_REMOVEDIR) != 0))
        r = errno == ENOTEMPTY
                ? st_fail(err, ST_ESTATE, "folder %s is not empty", st_quote(q, path))
                : fault(path, err);
    close(fd);
    return r;
}
