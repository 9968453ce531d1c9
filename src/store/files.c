/*
 * The files of a SQLite store (store/files.h).
 */
#include "store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define PART 65536

int st_files_sync_folder(const char *path, st_err *err)
{
    char *copy = st_xstrdup(path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;

    if (fd < 0 || fsync(fd) < 0)
        r = st_fail(err, ST_EIO, "cannot bring the folder of %s to the disk: %s", path,
                    strerror(errno));
    if (fd >= 0)
        close(fd);
    free(copy);
    return r;
}

int64_t st_files_bytes(const char *path)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf log = {0};
    struct stat st;
    int64_t n;

    if (stat(path, &st) < 0)
        return -1;
    n = st.st_size;
    st_strbuf_addf(&log, "%s-wal", path);
    return stat(st_strbuf_str(&log), &st) == 0 ? n + st.st_size : n;
}

void st_files_beside(const char *path, const char *name, st_strbuf *out)
{
    const char *slash = strrchr(path, '/');

    st_strbuf_addf(out, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
}

bool st_files_same(const char *path, const char *file)
{
    struct stat x, y;

    return stat(path, &x) == 0 && stat(file, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Whoever writes a store has a log beside it. */
bool st_files_written(const char *path)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf wal = {0};
    struct stat st;

    st_strbuf_addf(&wal, "%s-wal", path);
    return stat(st_strbuf_str(&wal), &st) == 0;
}

/* ---- a backup in the store's place ------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
    static char part[PART];
    ssize_t n;

    while ((n = read(from, part, sizeof part)) > 0)
        for (ssize_t at = 0, w; at < n; at += w)
            if ((w = write(to, part + at, (size_t)(n - at))) < 0)
                return -1;
    return n < 0 ? -1 : fsync(to);
}

static int copy_file(const char *from, const char *to, st_err *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, r = 0;

    if (in < 0)
        return st_fail(err, errno == ENOENT ? ST_ENOENT : ST_EIO, "%s: cannot be read: %s", from,
                       strerror(errno));
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0 || copy_bytes(in, out) < 0)
        r = st_fail(err, errno == ENOSPC ? ST_EFULL : ST_EIO, "%s: cannot be written: %s", to,
                    strerror(errno));
    if (out >= 0)
        close(out);
    close(in);
    return r;
}

/* A copy of a running stintd's file has only half of what it knew. */
static int check_whole(const char *backup, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf wal = {0};
    struct stat st;

    st_strbuf_addf(&wal, "%s-wal", backup);
    if (stat(st_strbuf_str(&wal), &st) == 0 && st.st_size > 0)
        return st_fail(err, ST_EINVAL,
                       "%s has a write-ahead log beside it, so it is no backup; make one with "
                       "`stint admin backup`",
                       backup);
    return 0;
}

void st_files_unstage(const char *staged)
{
    static const char *const tails[] = {"", "-wal", "-shm", ".lock"};
    ST_CLEANUP(st_strbuf_done) st_strbuf name = {0};

    for (size_t i = 0; i < ST_ARRAY_LEN(tails); i++) {
        st_strbuf_clear(&name);
        st_strbuf_addf(&name, "%s%s", staged, tails[i]);
        unlink(st_strbuf_str(&name));
    }
}

int st_files_stage(const char *path, const char *backup, st_strbuf *ret_staged, st_err *err)
{
    int r;

    st_strbuf_addf(ret_staged, "%s.restoring", path);
    st_files_unstage(st_strbuf_str(ret_staged));
    r = check_whole(backup, err);
    return r < 0 ? r : copy_file(backup, st_strbuf_str(ret_staged), err);
}

static int move(const char *from, const char *to, const char *tail, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf a = {0}, b = {0};

    st_strbuf_addf(&a, "%s%s", from, tail);
    st_strbuf_addf(&b, "%s%s", to, tail);
    if (rename(st_strbuf_str(&a), st_strbuf_str(&b)) < 0 && errno != ENOENT)
        return st_fail(err, ST_EIO, "cannot move %s to %s: %s", st_strbuf_str(&a),
                       st_strbuf_str(&b), strerror(errno));
    return 0;
}

int st_files_replace(const char *path, const char *staged, const char *aside, st_err *err)
{
    int fd = -1, r = st_lock_take(path, &fd, err);

    if (r < 0)
        return r;
    if (link(path, aside) < 0 && errno != ENOENT)
        r = st_fail(err, errno == EEXIST ? ST_EEXIST : ST_EIO, "cannot name the old store %s: %s",
                    aside, strerror(errno));
    /* Its log first: it would be taken for the other's. */
    if (r == 0)
        r = move(path, aside, "-wal", err);
    if (r == 0)
        r = move(path, aside, "-shm", err);
    if (r == 0)
        r = move(staged, path, "", err);
    if (r == 0)
        r = st_files_sync_folder(path, err);
    close(fd);
    return r;
}
