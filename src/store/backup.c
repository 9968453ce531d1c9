/*
 * Copying a store while others write (st_store_backup): to PATH.tmp, to the disk, then renamed, so
 * that PATH is the copy before or the whole new one. And writing it anew in its place (st_store_scrub).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
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
    if (rename(tmp, path) < 0)
        return st_fail(err, ST_EIO, "cannot rename %s to %s: %s", tmp, path, strerror(errno));
    return sync_folder(path, err);
}

int st_store_backup(const st_store *store, const char *path, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf tmp = {0};
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    int r;

    if (same_file(store->path, path))
        return st_fail(err, ST_EINVAL, "%s is the store itself; name another file", path);
    st_strbuf_addf(&tmp, "%s.tmp", path);
    if (unlink(st_strbuf_str(&tmp)) < 0 && errno != ENOENT)
        return st_fail(err, ST_EIO, "cannot remove %s: %s", st_strbuf_str(&tmp), strerror(errno));
    r = st_store_open_reader(store, &reader, err);
    if (r == 0)
        r = copy(reader, st_strbuf_str(&tmp), path, err);
    if (r < 0)
        unlink(st_strbuf_str(&tmp));
    return r;
}

int st_store_scrub(st_store *store, st_err *err)
{
    ST_ASSERT(!st_store_in_transaction(store));
    return store->driver->scrub(store->db, err);
}
