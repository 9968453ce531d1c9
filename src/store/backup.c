/*
 * Copying a store while others write (st_store_backup): into a fresh folder beside PATH, to the disk, then linked to its name,
 * so that PATH is the whole copy or not there, and nothing is ever replaced or followed. And writing the store anew in its
 * place (st_store_scrub).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/impl.h"

/* So that the new name is on the disk as well. */
static int sync_folder(const char *path, st_err *err)
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

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;

    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int copy(st_store *reader, const char *tmp, const char *path, st_err *err)
{
    /* Pins the moment: without it every write elsewhere would begin the copy anew. */
    int r = st_store_begin(reader, err);

    if (r == 0)
        r = reader->driver->backup(reader->db, tmp, err);
    st_store_rollback(reader);
    if (r < 0)
        return r;
    if (link(tmp, path) < 0)
        return st_fail(err, errno == EEXIST ? ST_EEXIST : ST_EIO, "cannot name the copy %s: %s",
                       path, strerror(errno));
    return sync_folder(path, err);
}

/* A folder that nobody else can have prepared. */
static int make_folder(const char *path, st_strbuf *ret, st_err *err)
{
    const char *slash = strrchr(path, '/');

    st_strbuf_addf(ret, "%.*s.stint-backup-XXXXXX", slash ? (int)(slash + 1 - path) : 0, path);
    if (!mkdtemp(ret->s))
        return st_fail(err, errno == ENOSPC || errno == EDQUOT ? ST_EFULL : ST_ESTATE,
                       "no backup can be written beside %s: %s", path, strerror(errno));
    return 0;
}

int st_store_backup(const st_store *store, const char *path, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf dir = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf tmp = {0};
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    int r;

    if (same_file(store->path, path))
        return st_fail(err, ST_EINVAL, "%s is the store itself; name another file", path);
    r = make_folder(path, &dir, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&tmp, "%s/copy", dir.s);
    r = st_store_open_reader(store, &reader, err);
    if (r == 0)
        r = copy(reader, st_strbuf_str(&tmp), path, err);
    unlink(st_strbuf_str(&tmp));
    rmdir(dir.s);
    return r;
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

int st_store_replace(const char *path, const char *with, const char *aside, st_err *err)
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
        r = move(with, path, "", err);
    if (r == 0)
        r = sync_folder(path, err);
    close(fd);
    return r;
}

int st_store_scrub(st_store *store, st_err *err)
{
    ST_ASSERT(!st_store_in_transaction(store));
    return store->driver->scrub(store->db, err);
}
