/*
 * Page checksums as a SQLite VFS (store/sums.h).
 *
 * Invariants: 1. Every page in the main file was written through put_sum(), or never written at all
 * (SQLite may leave a hole for a page that has always been free; it reads as zeros). 2. A read of a
 * page either has the right sum, is all zeros, or fails with SQLITE_IOERR_DATA. 3. Reads of another
 * size than a page are the file's header, which SQLite looks at before it reads page 1 as a whole.
 *
 * The file's memory is a sums_file followed by the file of the VFS below.
 */
#include "store/sums.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define HEADER_MAX 100 /* bytes SQLite reads before it knows the size of a page */

struct st_page_sums {
    sqlite3_vfs vfs;
    char name[40];
};

typedef struct sums_file {
    sqlite3_file base;
    bool has_sums; /* the main database, not its log */
    unsigned char page[ST_SUMS_PAGE];
} sums_file;

static sqlite3_file *below(sqlite3_file *f)
{
    return (sqlite3_file *)(void *)((char *)f + sizeof(sums_file));
}

static sqlite3_vfs *vfs_below(sqlite3_vfs *v)
{
    return v->pAppData;
}

/* ---- pages ------------------------------------------------------------------------------ */

static uint64_t page_sum(const unsigned char *page, sqlite3_int64 at)
{
    return htole64(st_hash_bytes(page, ST_SUMS_PAGE - ST_SUMS_RESERVE, (uint64_t)at));
}

static void put_sum(unsigned char *page, sqlite3_int64 at)
{
    uint64_t sum = page_sum(page, at);

    memcpy(page + ST_SUMS_PAGE - ST_SUMS_RESERVE, &sum, ST_SUMS_RESERVE);
}

static bool sum_is_right(const unsigned char *page, sqlite3_int64 at)
{
    uint64_t sum = page_sum(page, at);

    if (memcmp(page + ST_SUMS_PAGE - ST_SUMS_RESERVE, &sum, ST_SUMS_RESERVE) == 0)
        return true;
    return page[0] == 0 && memcmp(page, page + 1, ST_SUMS_PAGE - 1) == 0;
}

static int sums_read(sqlite3_file *f, void *buf, int n, sqlite3_int64 at)
{
    const sums_file *file = (const sums_file *)f;
    int rc = below(f)->pMethods->xRead(below(f), buf, n, at);

    if (rc != SQLITE_OK || !file->has_sums || at + n <= HEADER_MAX)
        return rc;
    if (n != ST_SUMS_PAGE || at % ST_SUMS_PAGE != 0)
        return SQLITE_IOERR_DATA;
    return sum_is_right(buf, at) ? SQLITE_OK : SQLITE_IOERR_DATA;
}

static int sums_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at)
{
    sums_file *file = (sums_file *)f;

    if (file->has_sums) {
        if (n != ST_SUMS_PAGE || at % ST_SUMS_PAGE != 0)
            return SQLITE_IOERR_DATA;
        memcpy(file->page, buf, ST_SUMS_PAGE);
        put_sum(file->page, at);
        buf = file->page;
    }
    return below(f)->pMethods->xWrite(below(f), buf, n, at);
}

/* ---- everything else goes through --------------------------------------------------------- */

static int sums_close(sqlite3_file *f)
{
    return below(f)->pMethods->xClose(below(f));
}

static int sums_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return below(f)->pMethods->xTruncate(below(f), size);
}

static int sums_sync(sqlite3_file *f, int flags)
{
    return below(f)->pMethods->xSync(below(f), flags);
}

static int sums_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return below(f)->pMethods->xFileSize(below(f), ret);
}

static int sums_lock(sqlite3_file *f, int level)
{
    return below(f)->pMethods->xLock(below(f), level);
}

static int sums_unlock(sqlite3_file *f, int level)
{
    return below(f)->pMethods->xUnlock(below(f), level);
}

static int sums_reserved(sqlite3_file *f, int *ret)
{
    return below(f)->pMethods->xCheckReservedLock(below(f), ret);
}

static int sums_control(sqlite3_file *f, int op, void *arg)
{
    return below(f)->pMethods->xFileControl(below(f), op, arg);
}

static int sums_sector(sqlite3_file *f)
{
    return below(f)->pMethods->xSectorSize(below(f));
}

static int sums_traits(sqlite3_file *f)
{
    return below(f)->pMethods->xDeviceCharacteristics(below(f));
}

static int sums_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **ret)
{
    return below(f)->pMethods->xShmMap(below(f), region, size, extend, ret);
}

static int sums_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return below(f)->pMethods->xShmLock(below(f), offset, n, flags);
}

static void sums_shm_barrier(sqlite3_file *f)
{
    below(f)->pMethods->xShmBarrier(below(f));
}

static int sums_shm_unmap(sqlite3_file *f, int drop)
{
    return below(f)->pMethods->xShmUnmap(below(f), drop);
}

/* Version 2: shared memory for the write-ahead log, but no mapping, which would get around read. */
static const sqlite3_io_methods sums_methods = {
    .iVersion = 2,
    .xClose = sums_close,
    .xRead = sums_read,
    .xWrite = sums_write,
    .xTruncate = sums_truncate,
    .xSync = sums_sync,
    .xFileSize = sums_size,
    .xLock = sums_lock,
    .xUnlock = sums_unlock,
    .xCheckReservedLock = sums_reserved,
    .xFileControl = sums_control,
    .xSectorSize = sums_sector,
    .xDeviceCharacteristics = sums_traits,
    .xShmMap = sums_shm_map,
    .xShmLock = sums_shm_lock,
    .xShmBarrier = sums_shm_barrier,
    .xShmUnmap = sums_shm_unmap,
};

static int sums_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    sums_file *file = (sums_file *)f;
    int rc;

    memset(file, 0, sizeof(*file));
    rc = vfs_below(v)->xOpen(vfs_below(v), name, below(f), flags, ret_flags);
    if (rc != SQLITE_OK)
        return rc;
    file->has_sums = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    file->base.pMethods = &sums_methods;
    return SQLITE_OK;
}

static int sums_delete(sqlite3_vfs *v, const char *name, int sync_dir)
{
    return vfs_below(v)->xDelete(vfs_below(v), name, sync_dir);
}

static int sums_access(sqlite3_vfs *v, const char *name, int flags, int *ret)
{
    return vfs_below(v)->xAccess(vfs_below(v), name, flags, ret);
}

static int sums_full_path(sqlite3_vfs *v, const char *name, int n, char *ret)
{
    return vfs_below(v)->xFullPathname(vfs_below(v), name, n, ret);
}

static int sums_random(sqlite3_vfs *v, int n, char *ret)
{
    return vfs_below(v)->xRandomness(vfs_below(v), n, ret);
}

static int sums_sleep(sqlite3_vfs *v, int us)
{
    return vfs_below(v)->xSleep(vfs_below(v), us);
}

static int sums_last_error(sqlite3_vfs *v, int n, char *ret)
{
    return vfs_below(v)->xGetLastError(vfs_below(v), n, ret);
}

static int sums_time(sqlite3_vfs *v, sqlite3_int64 *ret)
{
    return vfs_below(v)->xCurrentTimeInt64(vfs_below(v), ret);
}

int st_sums_new(const char *base, st_page_sums **ret, st_err *err)
{
    sqlite3_vfs *under = sqlite3_vfs_find(base);
    st_page_sums *s;

    if (!under || under->iVersion < 2)
        return st_fail(err, ST_EINTERNAL, "there is no SQLite file system %s", base ? base : "");
    s = st_xcalloc(1, sizeof(*s));
    snprintf(s->name, sizeof(s->name), "stint-sums-%p", (void *)s);
    s->vfs = (sqlite3_vfs){
        .iVersion = 2,
        .szOsFile = (int)sizeof(sums_file) + under->szOsFile,
        .mxPathname = under->mxPathname,
        .zName = s->name,
        .pAppData = under,
        .xOpen = sums_open,
        .xDelete = sums_delete,
        .xAccess = sums_access,
        .xFullPathname = sums_full_path,
        .xRandomness = sums_random,
        .xSleep = sums_sleep,
        .xGetLastError = sums_last_error,
        .xCurrentTimeInt64 = sums_time,
    };
    if (sqlite3_vfs_register(&s->vfs, 0) != SQLITE_OK) {
        free(s);
        return st_fail(err, ST_EINTERNAL, "SQLite takes no further file system");
    }
    *ret = s;
    return 0;
}

void st_sums_free(st_page_sums *s)
{
    if (!s)
        return;
    sqlite3_vfs_unregister(&s->vfs);
    free(s);
}

const char *st_sums_name(const st_page_sums *s)
{
    return s->name;
}

int st_sums_reserve(sqlite3 *db)
{
    int n = ST_SUMS_RESERVE;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &n);
}
