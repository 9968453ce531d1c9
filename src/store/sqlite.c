/*
 * The SQLite driver (store/driver.h): write-ahead log, one fsync per commit, page sums.
 *
 * Invariants: 1. A commit that returned 0 is on the disk (unless opened otherwise). 2. After a
 * failed begin or commit no transaction is open. 3. A statement is reset, and its parameters
 * unbound, before run returns, so that no read transaction stays open by accident.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "store/driver.h"
#include "store/files.h"
#include "store/sums.h"

#define BUSY_MS          5000
#define CHECKPOINT_PAGES 4000 /* of the log, 16 MiB: rarely enough not to be felt */
#define BACKUP_PAGES     512  /* copied at a time */

struct st_db {
    sqlite3 *handle;
    st_page_sums *sums;
    char *path;
    st_store_options options;
    int lock_fd; /* -1 for readers */
};

struct st_stmt {
    st_db *db;
    sqlite3_stmt *handle;
    int nparams;
    bool busy;
    /* Where $1, $2, … are: SQLite numbers them as it meets them. */
    int index[ST_STORE_PARAMS_MAX];
};

/* ---- errors ----------------------------------------------------------------------------- */

static bool disk_is_full(sqlite3 *h)
{
    int e = sqlite3_system_errno(h);

    return e == ENOSPC || e == EDQUOT;
}

static int code_of(sqlite3 *h, int rc)
{
    switch (rc) {
    case SQLITE_IOERR_DATA: /* a page sum is wrong */
    case SQLITE_IOERR_CORRUPTFS:
        return ST_ECORRUPT;
    default:
        break;
    }
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ST_EFULL;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return disk_is_full(h) ? ST_EFULL : ST_EIO;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return ST_EIO;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return ST_ESTATE;
    case SQLITE_CONSTRAINT:
        return ST_EEXIST;
    case SQLITE_TOOBIG:
        return ST_ERANGE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    /* Our statements are right, the tests prepare them all: the tables are not. */
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
    case SQLITE_MISMATCH:
        return ST_ECORRUPT;
    default:
        return ST_EINTERNAL;
    }
}

/* Everything that goes wrong in SQLite ends here. */
static int fail(const st_db *db, int rc, st_err *err)
{
    sqlite3 *h = db->handle;
    const char *why = sqlite3_errmsg(h);
    int e = sqlite3_system_errno(h);
    int code = code_of(h, rc);

    switch (code) {
    case ST_EFULL:
        return st_fail(err, code, "store %s: the disk is full; nothing of this change was kept",
                       db->path);
    case ST_ECORRUPT:
        return st_fail(err, code,
                       "store %s is damaged (%s); stop stintd, keep the file for a look, and "
                       "restore the last backup",
                       db->path, rc == SQLITE_IOERR_DATA ? "the checksum of a page is wrong" : why);
    case ST_ESTATE:
        return st_fail(err, code, "store %s is busy: another connection holds it (%s)", db->path,
                       why);
    case ST_EIO:
        if ((rc & 0xff) == SQLITE_READONLY)
            return st_fail(err, code, "store %s is read-only; nothing was written", db->path);
        return st_fail(err, code, "store %s: %s%s%s", db->path, why, e ? ": " : "",
                       e ? strerror(e) : "");
    default:
        return st_fail(err, code, "store %s: %s (SQLite %d)", db->path, why, rc);
    }
}

/* ---- opening ---------------------------------------------------------------------------- */

static void sqlite_close(st_db *db)
{
    if (!db)
        return;
    /* All statements are finished, so that this closes. */
    ST_ASSERT(sqlite3_close(db->handle) == SQLITE_OK);
    st_sums_free(db->sums);
    /* Last, so that the next writer finds everything closed. */
    if (db->lock_fd >= 0)
        close(db->lock_fd);
    free(db->path);
    free(db);
}

static int sqlite_exec(st_db *db, const char *sql, st_err *err)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? 0 : fail(db, rc, err);
}

/* A new file is made here, because SQLite would let the umask decide who may read it. */
static int make_file(const char *path, st_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0)
        return st_fail(err, errno == ENOSPC || errno == EDQUOT ? ST_EFULL : ST_EIO,
                       "cannot open the store %s: %s", path, strerror(errno));
    close(fd);
    return 0;
}

/* The path as SQLite's address for a file that does not change: no log, no lock. */
static void still_path(const char *path, st_strbuf *out)
{
    st_strbuf_add(out, "file:");
    for (; *path; path++) {
        bool plain = (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z') ||
                     (*path >= '0' && *path <= '9') || strchr("/._-", *path);

        if (plain)
            st_strbuf_addc(out, *path);
        else
            st_strbuf_addf(out, "%%%02x", (unsigned char)*path);
    }
    st_strbuf_add(out, "?immutable=1");
}

static int open_handle(st_db *db, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf still = {0};
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                (db->options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
    int rc;

    if (db->options.still) {
        still_path(db->path, &still);
        flags |= SQLITE_OPEN_URI;
    }
    rc = sqlite3_open_v2(db->options.still ? st_strbuf_str(&still) : db->path, &db->handle, flags,
                         st_sums_name(db->sums));

    if (!db->handle)
        return st_fail(err, ST_EINTERNAL, "store %s: out of memory", db->path);
    if (rc != SQLITE_OK)
        return fail(db, rc, err);
    sqlite3_busy_timeout(db->handle, db->options.busy_ms > 0 ? db->options.busy_ms : BUSY_MS);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    rc = st_sums_reserve(db->handle);
    return rc == SQLITE_OK ? 0 : fail(db, rc, err);
}

static int first_text(void *ctx, int n, char **values, char **names)
{
    char *ret = ctx;

    (void)names;
    if (n > 0 && values[0])
        snprintf(ret, 16, "%s", values[0]);
    return 0;
}

static int settings(st_db *db, st_err *err)
{
    char sql[300], mode[16] = "";
    int rc, r;

    snprintf(sql, sizeof(sql),
             "PRAGMA page_size = %d; PRAGMA cell_size_check = 1; PRAGMA temp_store = MEMORY; "
             "PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = %d; "
             "PRAGMA journal_size_limit = 67108864; PRAGMA synchronous = %s",
             ST_SUMS_PAGE, CHECKPOINT_PAGES,
             db->options.durable == ST_DURABLE_FULL ? "FULL" : "NORMAL");
    r = sqlite_exec(db, sql, err);
    if (r < 0)
        return r;
    rc = sqlite3_exec(db->handle,
                      db->options.read_only ? "PRAGMA journal_mode" : "PRAGMA journal_mode = WAL",
                      first_text, mode, NULL);
    if (rc != SQLITE_OK)
        return fail(db, rc, err);
    if (!db->options.still && strcmp(mode, "wal") != 0)
        return st_fail(err, ST_EIO, "store %s cannot have a write-ahead log here (mode %s)",
                       db->path, mode);
    return 0;
}

static int sqlite_open(const char *path, const st_store_options *o, st_db **ret, st_err *err)
{
    st_db *db;
    int r = 0, lock = -1;

    if (!o->read_only)
        r = st_lock_take(path, &lock, err);
    if (r == 0 && !o->read_only)
        r = make_file(path, err);
    if (r < 0) {
        if (lock >= 0)
            close(lock);
        return r;
    }
    db = st_xcalloc(1, sizeof(*db));
    db->path = st_xstrdup(path);
    db->options = *o;
    db->lock_fd = lock;
    r = st_sums_new(o->vfs, &db->sums, err);
    if (r == 0)
        r = open_handle(db, err);
    if (r == 0)
        r = settings(db, err);
    if (r < 0) {
        sqlite_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

/* ---- statements ------------------------------------------------------------------------- */

static void sqlite_finish(st_stmt *stmt)
{
    if (!stmt)
        return;
    sqlite3_finalize(stmt->handle);
    free(stmt);
}

static int sqlite_prepare(st_db *db, const char *sql, st_stmt **ret, st_err *err)
{
    st_stmt *stmt = st_xcalloc(1, sizeof(*stmt));
    int rc =
        sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt->handle, NULL);

    if (rc != SQLITE_OK) {
        free(stmt);
        return fail(db, rc, err);
    }
    stmt->db = db;
    stmt->nparams = sqlite3_bind_parameter_count(stmt->handle);
    ST_ASSERT(stmt->nparams <= ST_STORE_PARAMS_MAX);
    for (int i = 0; i < stmt->nparams; i++) {
        char name[16];

        snprintf(name, sizeof(name), "$%d", i + 1);
        stmt->index[i] = sqlite3_bind_parameter_index(stmt->handle, name);
        ST_ASSERT(stmt->index[i] > 0);
    }
    *ret = stmt;
    return 0;
}

static int bind_one(sqlite3_stmt *h, int i, const st_val *v)
{
    /* A NULL pointer would bind NULL, not an empty value. */
    const void *p = v->p ? v->p : "";

    switch (v->kind) {
    case ST_VAL_I64:
        return sqlite3_bind_int64(h, i, v->i64);
    case ST_VAL_TEXT:
        return sqlite3_bind_text64(h, i, p, v->n, SQLITE_STATIC, SQLITE_UTF8);
    case ST_VAL_BLOB:
        return sqlite3_bind_blob64(h, i, p, v->n, SQLITE_STATIC);
    case ST_VAL_NULL:
        break;
    }
    return sqlite3_bind_null(h, i);
}

static int column(const st_db *db, sqlite3_stmt *h, int i, st_val *ret, st_err *err)
{
    switch (sqlite3_column_type(h, i)) {
    case SQLITE_INTEGER:
        *ret = (st_val){.kind = ST_VAL_I64, .i64 = sqlite3_column_int64(h, i)};
        return 0;
    case SQLITE_TEXT:
        *ret = (st_val){.kind = ST_VAL_TEXT, .p = sqlite3_column_text(h, i)};
        break;
    case SQLITE_BLOB:
        *ret = (st_val){.kind = ST_VAL_BLOB, .p = sqlite3_column_blob(h, i)};
        break;
    case SQLITE_NULL:
        *ret = (st_val){.kind = ST_VAL_NULL};
        return 0;
    default:
        return st_fail(err, ST_ECORRUPT,
                       "store %s is damaged (a fraction where none is stored); restore the last "
                       "backup",
                       db->path);
    }
    ret->n = (size_t)sqlite3_column_bytes(h, i);
    if (!ret->p)
        ret->p = "";
    return 0;
}

static int hand_over(st_stmt *stmt, st_row_fn fn, void *ctx, st_err *err)
{
    st_val cols[ST_STORE_COLUMNS_MAX];
    int n = sqlite3_column_count(stmt->handle);

    ST_ASSERT(fn && n <= ST_STORE_COLUMNS_MAX);
    for (int i = 0; i < n; i++) {
        int r = column(stmt->db, stmt->handle, i, &cols[i], err);
        if (r < 0)
            return r;
    }
    return fn(ctx, cols, (size_t)n, err);
}

static int sqlite_run(st_stmt *stmt, const st_val *params, size_t n, st_row_fn fn, void *ctx,
                      int64_t *ret_changed, st_err *err)
{
    int rc = SQLITE_OK, r = 0;

    ST_ASSERT(!stmt->busy && n == (size_t)stmt->nparams);
    stmt->busy = true;
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
        rc = bind_one(stmt->handle, stmt->index[i], &params[i]);
    while (rc == SQLITE_OK) {
        rc = sqlite3_step(stmt->handle);
        if (rc != SQLITE_ROW)
            break;
        r = hand_over(stmt, fn, ctx, err);
        rc = r == 0 ? SQLITE_OK : SQLITE_DONE;
    }
    if (rc != SQLITE_DONE)
        r = fail(stmt->db, rc, err);
    else if (r == 0 && ret_changed)
        *ret_changed = sqlite3_changes64(stmt->db->handle);
    sqlite3_reset(stmt->handle);
    sqlite3_clear_bindings(stmt->handle);
    stmt->busy = false;
    return r < 0 ? r : 0;
}

/* It is known at once. */
static int sqlite_write(st_stmt *stmt, const st_val *params, size_t n, int64_t expect,
                        int64_t *ret_changed, st_err *err)
{
    (void)expect;
    return sqlite_run(stmt, params, n, NULL, NULL, ret_changed, err);
}

/* ---- transactions ----------------------------------------------------------------------- */

static void sqlite_rollback(st_db *db)
{
    /* Some failures have rolled back already. */
    if (!sqlite3_get_autocommit(db->handle))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    ST_ASSERT(sqlite3_get_autocommit(db->handle));
}

static int sqlite_begin(st_db *db, bool write, st_err *err)
{
    /* A reading transaction begins with its first read. */
    int r = sqlite_exec(
        db, write ? "BEGIN IMMEDIATE" : "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", err);

    if (r < 0)
        sqlite_rollback(db);
    return r;
}

static int sqlite_commit(st_db *db, st_err *err)
{
    int r;

    if (sqlite3_get_autocommit(db->handle))
        return st_fail(err, ST_EIO, "store %s: the transaction was rolled back by a failure",
                       db->path);
    r = sqlite_exec(db, "COMMIT", err);
    if (r < 0)
        sqlite_rollback(db);
    return r;
}

/* ---- check and backup ------------------------------------------------------------------- */

typedef struct check_ctx {
    st_finding_fn fn;
    void *ctx;
} check_ctx;

static int check_line(void *ctx, int n, char **values, char **names)
{
    const check_ctx *c = ctx;
    char sentence[300];

    (void)names;
    if (n > 0 && values[0] && strcmp(values[0], "ok") != 0) {
        snprintf(sentence, sizeof(sentence), "structure: %s", values[0]);
        c->fn(c->ctx, sentence);
    }
    return 0;
}

static int sqlite_check(st_db *db, st_finding_fn fn, void *ctx, st_err *err)
{
    check_ctx c = {.fn = fn, .ctx = ctx};
    int rc = sqlite3_exec(db->handle, "PRAGMA integrity_check(100)", check_line, &c, NULL);

    return rc == SQLITE_OK ? 0 : fail(db, rc, err);
}

static int copy_pages(st_db *from, st_db *to, st_err *err)
{
    sqlite3_backup *copy = sqlite3_backup_init(to->handle, "main", from->handle, "main");
    int rc, left = 10000;

    if (!copy)
        return fail(to, sqlite3_extended_errcode(to->handle), err);
    do {
        rc = sqlite3_backup_step(copy, BACKUP_PAGES);
        if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
            sqlite3_sleep(1);
    } while (rc == SQLITE_OK || ((rc == SQLITE_BUSY || rc == SQLITE_LOCKED) && left-- > 0));
    if (rc == SQLITE_DONE)
        rc = SQLITE_OK;
    /* SQLite puts the failure of either side on the copy; finish brings it to the handle. */
    sqlite3_backup_finish(copy);
    if (rc == SQLITE_OK)
        return 0;
    return fail(rc == SQLITE_IOERR_DATA || (rc & 0xff) == SQLITE_CORRUPT ? from : to, rc, err);
}

static int sync_file(const char *path, st_err *err)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int r = 0;

    if (fd < 0 || fsync(fd) < 0)
        r = st_fail(err, ST_EIO, "cannot bring %s to the disk: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

/* The copy needs no journal: it is worth nothing until it is whole, and then it is synced. */
static int sqlite_backup(st_db *db, const char *path, st_err *err)
{
    st_db to = {.options = db->options};
    int r = make_file(path, err);

    if (r < 0)
        return r;
    to.options.read_only = false;
    to.path = st_xstrdup(path);
    r = st_sums_new(db->options.vfs, &to.sums, err);
    if (r == 0)
        r = open_handle(&to, err);
    if (r == 0)
        r = sqlite_exec(&to,
                        "PRAGMA page_size = 4096; PRAGMA synchronous = OFF; "
                        "PRAGMA journal_mode = OFF",
                        err);
    if (r == 0)
        r = copy_pages(db, &to, err);
    sqlite3_close(to.handle);
    st_sums_free(to.sums);
    free(to.path);
    return r < 0 ? r : sync_file(path, err);
}

/* The log as well: it has pages as they were. */
static int sqlite_scrub(st_db *db, st_err *err)
{
    return sqlite_exec(db, "VACUUM; PRAGMA wal_checkpoint(TRUNCATE)", err);
}

static int64_t sqlite_bytes(const st_db *db)
{
    return st_files_bytes(db->path);
}

const st_driver st_sqlite_driver = {
    .name = "sqlite",
    .blob_type = "BLOB",
    .key_type = "INTEGER",
    .position = "instr",
    .open = sqlite_open,
    .close = sqlite_close,
    .exec = sqlite_exec,
    .prepare = sqlite_prepare,
    .finish = sqlite_finish,
    .run = sqlite_run,
    .write = sqlite_write,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .check = sqlite_check,
    .scrub = sqlite_scrub,
    .backup = sqlite_backup,
    .bytes = sqlite_bytes,
    .beside = st_files_beside,
    .is_file = st_files_same,
    .is_written = st_files_written,
    .stage = st_files_stage,
    .replace = st_files_replace,
    .unstage = st_files_unstage,
};
