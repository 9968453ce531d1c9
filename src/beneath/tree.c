/*
 * Whole trees: counted and removed (beneath/beneath.h). A tenant may nest folders as deep as it likes: beyond DEPTH a count gives
 * up on them, and a removal brings them up first, so that neither needs more descriptors than that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "beneath/beneath.h"

#define DEPTH  64
#define BLOCKS 512 /* bytes of st_blocks */

typedef struct walker {
    int root;
    dev_t dev;
    int64_t max;
    st_beneath_use use;
    int failed;    /* errno of the first thing that could not be removed */
    int64_t moved; /* folders that were brought up */
} walker;

static int enter(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
}

/* Takes the descriptor. NULL: it cannot be read. */
static DIR *read_dir(int fd)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void count(walker *w, int fd, int depth)
{
    DIR *dir = depth < DEPTH ? read_dir(fd) : NULL;
    const struct dirent *d;

    if (!dir) {
        if (depth >= DEPTH)
            close(fd);
        w->use.unread++;
        return;
    }
    while (w->use.files <= w->max && (d = readdir(dir)) != NULL) {
        struct stat s;

        if (is_dots(d->d_name) || fstatat(dirfd(dir), d->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        w->use.files++;
        w->use.bytes += S_ISDIR(s.st_mode) ? s.st_blocks * BLOCKS
                                           : s.st_blocks * BLOCKS / (int64_t)ST_MAX(s.st_nlink, 1);
        if (S_ISDIR(s.st_mode) && s.st_dev == w->dev)
            count(w, enter(dirfd(dir), d->d_name), depth + 1);
    }
    closedir(dir);
}

int st_beneath_count(int root, int64_t max, st_beneath_use *ret, st_err *err)
{
    walker w = {.root = root, .max = max};
    struct stat s;

    if (fstat(root, &s) != 0)
        return st_fail(err, ST_EIO, "the folder cannot be read: %s", strerror(errno));
    w.dev = s.st_dev;
    count(&w, enter(root, "."), 0);
    if (w.use.files > max)
        return st_fail(err, ST_ELIMIT, "it has more than %lld files", (long long)max);
    *ret = w.use;
    return 0;
}

static void clear(walker *w, int fd, int depth);

static void drop(walker *w, int at, const char *name, int depth)
{
    struct stat s;
    char up[40];

    if (unlinkat(at, name, 0) == 0 || errno == ENOENT)
        return;
    if (fstatat(at, name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(s.st_mode)) {
        w->failed = w->failed ? w->failed : EPERM;
        return;
    }
    if (unlinkat(at, name, AT_REMOVEDIR) == 0)
        return;
    if (depth >= DEPTH) {
        snprintf(up, sizeof up, ".up-%lld", (long long)w->moved++);
        if (renameat(at, name, w->root, up) == 0)
            return; /* whoever reads the root again finds it */
    } else {
        clear(w, enter(at, name), depth + 1);
        if (unlinkat(at, name, AT_REMOVEDIR) == 0)
            return;
    }
    w->failed = w->failed ? w->failed : errno;
}

static void clear(walker *w, int fd, int depth)
{
    DIR *dir = read_dir(fd);
    const struct dirent *d;

    while (dir && (d = readdir(dir)) != NULL)
        if (!is_dots(d->d_name))
            drop(w, dirfd(dir), d->d_name, depth);
    if (dir)
        closedir(dir);
}

int st_beneath_remove(int root, const char *name, st_err *err)
{
    walker w = {.root = enter(root, name)};
    int64_t before;

    if (w.root < 0)
        return errno == ENOENT
                   ? 0
                   : st_fail(err, ST_EIO, "%s: cannot be removed: %s", name, strerror(errno));
    do {
        before = w.moved;
        w.failed = 0;
        clear(&w, enter(w.root, "."), 0);
    } while (w.moved > before);
    close(w.root);
    if (unlinkat(root, name, AT_REMOVEDIR) != 0)
        return st_fail(err, ST_EIO, "%s: cannot be removed: %s", name,
                       strerror(w.failed ? w.failed : errno));
    return 0;
}
