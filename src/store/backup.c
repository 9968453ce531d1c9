/*
 * Copying a store while others write (st_store_backup): into a fresh folder beside PATH, to the disk, then linked to its name,
 * so that PATH is the whole copy or not there, and nothing is ever replaced or followed. And writing the store anew in its
 * place (st_store_scrub).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/files.h"
#include "store/impl.h"

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
    return st_files_sync_folder(path, err);
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

    if (!store->driver->backup)
        return st_fail(err, ST_ESTATE, "this store is copied by the tools of its database");
    if (store->driver->is_file(store->path, path))
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

int st_store_scrub(st_store *store, st_err *err)
{
    ST_ASSERT(!st_store_in_transaction(store));
    return store->driver->scrub(store->db, err);
}
