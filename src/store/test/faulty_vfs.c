/*
 * The faulty VFS (faulty_vfs.h). Only files that hold data are tracked: the database and its
 * write-ahead log. The shared memory beside them is the system's and is dropped by a power loss.
 */

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "store/test/faulty_vfs.h"

typedef struct change {
    sqlite3_int64 at;
    void *data; /* NULL: the file was cut at `at` */
    size_t n;
} change;

/* What is known of a path: its bytes when last synced and what was done since. */
typedef struct tracked {
    char *path;
    st_strbuf synced;
    ST_VEC(change) since;
} tracked;

struct faulty_vfs {
    sqlite3_vfs vfs;
    fault_kind kind;
    int left;
    bool hit, off; /* off: the power is gone */
    ST_VEC(tracked *) files;
};

typedef struct faulty_file {
    sqlite3_file base;
    faulty_vfs *v;
    tracked *t; /* NULL for what is not tracked */
} faulty_file;

static sqlite3_file *below(sqlite3_file *f)
{
    return (sqlite3_file *)(void *)((char *)f + sizeof(faulty_file));
}

static sqlite3_vfs *vfs_below(sqlite3_vfs *v)
{
    return ((faulty_vfs *)(void *)v)->vfs.pAppData;
}

/* ---- what is on the disk ---------------------------------------------------------------- */

static void read_whole(const char *path, st_strbuf *out)
{
    char buf[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    st_strbuf_clear(out);
    while (fd >= 0 && (n = read(fd, buf, sizeof(buf))) > 0)
        st_strbuf_addn(out, buf, (size_t)n);
    if (fd >= 0)
        close(fd);
}

static void forget(tracked *t)
{
    for (size_t i = 0; i < t->since.n; i++)
        free(t->since.v[i].data);
    st_vec_clear(&t->since);
}

static void sync_file(tracked *t)
{
    forget(t);
    read_whole(t->path, &t->synced);
}

static tracked *track(faulty_vfs *v, const char *path)
{
    tracked *t;

    for (size_t i = 0; i < v->files.n; i++)
        if (strcmp(v->files.v[i]->path, path) == 0)
            return v->files.v[i];
    t = st_xcalloc(1, sizeof(*t));
    t->path = st_xstrdup(path);
    sync_file(t);
    st_vec_push(&v->files, t);
    return t;
}

static void note(tracked *t, sqlite3_int64 at, const void *data, size_t n)
{
    change c = {.at = at, .n = n};

    if (data) {
        c.data = st_xmalloc(n + 1);
        memcpy(c.data, data, n);
    }
    st_vec_push(&t->since, c);
}

static void restore(tracked *t, power_loss how)
{
    int fd = open(t->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && ftruncate(fd, 0) == 0 &&
              pwrite(fd, st_strbuf_str(&t->synced), t->synced.n, 0) == (ssize_t)t->synced.n;

    for (size_t i = 0; ok && how != LOSE_ALL && i < t->since.n; i++) {
        const change *c = &t->since.v[i];

        if (how == LOSE_SOME && i % 3 == 1)
            continue;
        if (c->data)
            ok = pwrite(fd, c->data, c->n, c->at) == (ssize_t)c->n;
        else
            ok = ftruncate(fd, c->at) == 0;
    }
    ST_ASSERT(ok);
    close(fd);
    sync_file(t);
}

/* ---- faults ----------------------------------------------------------------------------- */

static bool is_write_fault(fault_kind k)
{
    return k == FAULT_WRITE_IO || k == FAULT_WRITE_SHORT || k == FAULT_WRITE_FULL ||
           k == FAULT_READ_ONLY || k == FAULT_POWER_WRITE;
}

/* Counts down; true when the fault happens now. */
static bool strikes(faulty_vfs *v, bool write)
{
    if (v->kind == FAULT_NONE || is_write_fault(v->kind) != write)
        return false;
    if (v->hit)
        return v->kind == FAULT_READ_ONLY;
    if (--v->left > 0)
        return false;
    v->hit = true;
    v->off = v->kind == FAULT_POWER_WRITE || v->kind == FAULT_POWER_SYNC;
    return true;
}

static int faulty_read(sqlite3_file *f, void *buf, int n, sqlite3_int64 at)
{
    return ((faulty_file *)f)->v->off ? SQLITE_IOERR_READ
                                      : below(f)->pMethods->xRead(below(f), buf, n, at);
}

static int do_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at)
{
    tracked *t = ((faulty_file *)f)->t;

    if (t)
        note(t, at, buf, (size_t)n);
    return below(f)->pMethods->xWrite(below(f), buf, n, at);
}

static int faulty_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at)
{
    faulty_vfs *v = ((faulty_file *)f)->v;

    if (v->off)
        return SQLITE_IOERR_WRITE;
    if (!strikes(v, true))
        return do_write(f, buf, n, at);
    switch (v->kind) {
    case FAULT_WRITE_SHORT:
        do_write(f, buf, n / 2, at);
        return SQLITE_FULL;
    case FAULT_WRITE_FULL:
        return SQLITE_FULL;
    case FAULT_READ_ONLY:
        return SQLITE_READONLY;
    default:
        return SQLITE_IOERR_WRITE;
    }
}

static int faulty_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    faulty_file *file = (faulty_file *)f;

    if (file->v->off)
        return SQLITE_IOERR_TRUNCATE;
    if (file->t)
        note(file->t, size, NULL, 0);
    return below(f)->pMethods->xTruncate(below(f), size);
}

static int faulty_sync(sqlite3_file *f, int flags)
{
    faulty_file *file = (faulty_file *)f;
    (void)flags;

    if (file->v->off || strikes(file->v, false))
        return SQLITE_IOERR_FSYNC;
    /* The real disk need not be waited for. */
    if (file->t)
        sync_file(file->t);
    return SQLITE_OK;
}

/* ---- the rest goes through -------------------------------------------------------------- */

static int faulty_close(sqlite3_file *f)
{
    return below(f)->pMethods->xClose(below(f));
}

static int faulty_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return below(f)->pMethods->xFileSize(below(f), ret);
}

static int faulty_lock(sqlite3_file *f, int level)
{
    return below(f)->pMethods->xLock(below(f), level);
}

static int faulty_unlock(sqlite3_file *f, int level)
{
    return below(f)->pMethods->xUnlock(below(f), level);
}

static int faulty_reserved(sqlite3_file *f, int *ret)
{
    return below(f)->pMethods->xCheckReservedLock(below(f), ret);
}

static int faulty_control(sqlite3_file *f, int op, void *arg)
{
    return below(f)->pMethods->xFileControl(below(f), op, arg);
}

static int faulty_sector(sqlite3_file *f)
{
    return below(f)->pMethods->xSectorSize(below(f));
}

/* No promises: this disk may tear a write. */
static int faulty_traits(sqlite3_file *f)
{
    (void)f;
    return 0;
}

static int faulty_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **ret)
{
    return below(f)->pMethods->xShmMap(below(f), region, size, extend, ret);
}

static int faulty_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return below(f)->pMethods->xShmLock(below(f), offset, n, flags);
}

static void faulty_shm_barrier(sqlite3_file *f)
{
    below(f)->pMethods->xShmBarrier(below(f));
}

static int faulty_shm_unmap(sqlite3_file *f, int drop)
{
    return below(f)->pMethods->xShmUnmap(below(f), drop);
}

static const sqlite3_io_methods faulty_methods = {
    2,
    faulty_close,
    faulty_read,
    faulty_write,
    faulty_truncate,
    faulty_sync,
    faulty_size,
    faulty_lock,
    faulty_unlock,
    faulty_reserved,
    faulty_control,
    faulty_sector,
    faulty_traits,
    faulty_shm_map,
    faulty_shm_lock,
    faulty_shm_barrier,
    faulty_shm_unmap,
    NULL,
    NULL,
};

static int faulty_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                       int *ret_flags)
{
    faulty_vfs *v = (faulty_vfs *)(void *)vfs;
    faulty_file *file = (faulty_file *)f;
    int rc;

    memset(file, 0, sizeof(*file));
    if (v->off)
        return SQLITE_CANTOPEN;
    if (flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL))
        file->t = track(v, name);
    rc = vfs_below(vfs)->xOpen(vfs_below(vfs), name, below(f), flags, ret_flags);
    if (rc != SQLITE_OK)
        return rc;
    file->v = v;
    file->base.pMethods = &faulty_methods;
    return SQLITE_OK;
}

static int faulty_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    faulty_vfs *v = (faulty_vfs *)(void *)vfs;
    int rc;

    if (v->off)
        return SQLITE_IOERR_DELETE;
    rc = vfs_below(vfs)->xDelete(vfs_below(vfs), name, sync_dir);
    for (size_t i = 0; rc == SQLITE_OK && i < v->files.n; i++)
        if (strcmp(v->files.v[i]->path, name) == 0)
            sync_file(v->files.v[i]);
    return rc;
}

static int faulty_access(sqlite3_vfs *v, const char *name, int flags, int *ret)
{
    return vfs_below(v)->xAccess(vfs_below(v), name, flags, ret);
}

static int faulty_full_path(sqlite3_vfs *v, const char *name, int n, char *ret)
{
    return vfs_below(v)->xFullPathname(vfs_below(v), name, n, ret);
}

static int faulty_random(sqlite3_vfs *v, int n, char *ret)
{
    return vfs_below(v)->xRandomness(vfs_below(v), n, ret);
}

static int faulty_sleep(sqlite3_vfs *v, int us)
{
    return vfs_below(v)->xSleep(vfs_below(v), us);
}

static int faulty_last_error(sqlite3_vfs *v, int n, char *ret)
{
    (void)v, (void)n, (void)ret;
    return 0;
}

static int faulty_time(sqlite3_vfs *v, sqlite3_int64 *ret)
{
    return vfs_below(v)->xCurrentTimeInt64(vfs_below(v), ret);
}

faulty_vfs *faulty_new(const char *name)
{
    faulty_vfs *v = st_xcalloc(1, sizeof(*v));
    sqlite3_vfs *under = sqlite3_vfs_find(NULL);

    v->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(faulty_file) + under->szOsFile,
        .mxPathname = under->mxPathname,
        .zName = name,
        .pAppData = under,
        .xOpen = faulty_open,
        .xDelete = faulty_delete,
        .xAccess = faulty_access,
        .xFullPathname = faulty_full_path,
        .xRandomness = faulty_random,
        .xSleep = faulty_sleep,
        .xGetLastError = faulty_last_error,
        .xCurrentTimeInt64 = faulty_time,
    };
    ST_ASSERT(sqlite3_vfs_register(&v->vfs, 0) == SQLITE_OK);
    return v;
}

void faulty_free(faulty_vfs *v)
{
    sqlite3_vfs_unregister(&v->vfs);
    for (size_t i = 0; i < v->files.n; i++) {
        forget(v->files.v[i]);
        st_vec_free(&v->files.v[i]->since);
        st_strbuf_done(&v->files.v[i]->synced);
        free(v->files.v[i]->path);
        free(v->files.v[i]);
    }
    st_vec_free(&v->files);
    free(v);
}

void faulty_arm(faulty_vfs *v, fault_kind kind, int nth)
{
    v->kind = kind;
    v->left = nth;
    v->hit = false;
}

bool faulty_hit(const faulty_vfs *v)
{
    return v->hit;
}

void faulty_power_on(faulty_vfs *v, power_loss how)
{
    for (size_t i = 0; i < v->files.n; i++) {
        ST_CLEANUP(st_strbuf_done) st_strbuf shm = {0};

        restore(v->files.v[i], how);
        st_strbuf_addf(&shm, "%s-shm", v->files.v[i]->path);
        unlink(st_strbuf_str(&shm));
    }
    v->off = false;
    faulty_arm(v, FAULT_NONE, 0);
}

void faulty_sync_all(faulty_vfs *v)
{
    for (size_t i = 0; i < v->files.n; i++)
        sync_file(v->files.v[i]);
}
