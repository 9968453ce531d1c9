/*
 * What a database has to do for the store: open, prepare, run, one transaction at a time, check
 * itself, copy itself. sqlite.c is one such driver; everything above this table is the same for all.
 *
 * Statements are written for all drivers: parameters are $1, $2, …, types are BIGINT and TEXT, and
 * where the words differ the text has @blob (bytes), @key (a BIGINT that is the primary key) and the
 * builder uses position().
 */
#ifndef ST_STORE_DRIVER_H
#define ST_STORE_DRIVER_H

#include "base/strbuf.h"
#include "store/store.h"

#define ST_STORE_COLUMNS_MAX 32 /* in one row */
#define ST_STORE_PARAMS_MAX  64 /* in one statement */

#define ST_STORE_LATER INT64_C(-1) /* how many rows were changed is known at the commit */

typedef enum st_val_kind {
    ST_VAL_NULL,
    ST_VAL_I64,
    ST_VAL_TEXT,
    ST_VAL_BLOB,
} st_val_kind;

typedef struct st_val {
    st_val_kind kind;
    int64_t i64;
    const void *p; /* text or bytes; text is followed by a NUL that n does not count */
    size_t n;
} st_val;

/* 0 to go on, 1 to stop, negative to fail. The values are good until it returns. */
typedef int (*st_row_fn)(void *ctx, const st_val *cols, size_t n, st_err *err);

typedef struct st_db st_db;     /* a connection */
typedef struct st_stmt st_stmt; /* a prepared statement of one */

typedef struct st_driver {
    const char *name; /* what `where` begins with, before a colon */
    const char *blob_type, *key_type;
    const char *position; /* function (text, part): where the part begins, from 1; 0 if nowhere */

    /* A writer holds whatever keeps other writers out until it is closed. */
    int (*open)(const char *path, const st_store_options *o, st_db **ret, st_err *err);
    void (*close)(st_db *db); /* after its statements have been finished; accepts NULL */
    int (*exec)(st_db *db, const char *sql, st_err *err);
    int (*prepare)(st_db *db, const char *sql, st_stmt **ret, st_err *err);
    void (*finish)(st_stmt *stmt); /* accepts NULL */
    /* fn may be NULL when no rows are expected; ret_changed (rows changed) may be NULL. */
    int (*run)(st_stmt *stmt, const st_val *params, size_t n, st_row_fn fn, void *ctx,
               int64_t *ret_changed, st_err *err);
    /* A statement that must change `expect` rows, inside a transaction. A driver that sends statements in batches answers
     * ST_STORE_LATER instead of how many it changed; if the number turns out to be another, commit fails with ST_ESTATE. */
    int (*write)(st_stmt *stmt, const st_val *params, size_t n, int64_t expect,
                 int64_t *ret_changed, st_err *err);
    int (*begin)(st_db *db, bool write, st_err *err);
    int (*commit)(st_db *db, st_err *err); /* rolls back if it fails */
    void (*rollback)(st_db *db);
    int (*check)(st_db *db, st_finding_fn fn, void *ctx, st_err *err);
    /* Writes the file anew, so that it holds nothing of what was replaced or deleted. */
    int (*scrub)(st_db *db, st_err *err);
    /* Copies what the connection can read now to a new file, which is on the disk afterwards. NULL: it has tools of its
     * own for that. */
    int (*backup)(st_db *db, const char *path, st_err *err);
    int64_t (*bytes)(const st_db *db); /* it takes up; -1: not known */
    /* Where a file of the site stands that belongs to the store. */
    void (*beside)(const char *path, const char *name, st_strbuf *out);
    /* Whether the store is that file; whether somebody writes it at the moment. */
    bool (*is_file)(const char *path, const char *file);
    bool (*is_written)(const char *path);
    /* A backup in the store's place, in two steps; between them it is a store of its own that can be checked. NULL: as
     * above. */
    int (*stage)(const char *path, const char *backup, st_strbuf *ret_staged, st_err *err);
    int (*replace)(const char *path, const char *staged, const char *aside, st_err *err);
    void (*unstage)(const char *staged);
} st_driver;

extern const st_driver st_sqlite_driver;

#endif
