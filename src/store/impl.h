/*
 * What an st_store is made of; for store.c, sql.c, schema.c and tests of this folder.
 */
#ifndef ST_STORE_IMPL_H
#define ST_STORE_IMPL_H

#include "store/sql.h"

struct st_store {
    const st_driver *driver;
    st_db *db;
    char *path, *vfs;
    st_store_options options; /* vfs points to the copy above */
    bool in_transaction;
    int broken;  /* the code of a failure inside the open transaction */
    bool missed; /* a statement in it changed another number of rows than it must */
    st_stmt *statements[ST_SQL_COUNT];
};

/* As st_store_open, with a driver that need not be in the list; a path of its own kind. */
int st_store_open_with(const st_driver *driver, const char *path, const st_store_options *o,
                       st_store **ret, st_err *err);

/* A step of the schema's history: never changed once released, only added to. */
typedef struct st_migration {
    int64_t version;          /* 1, 2, 3, … */
    const char *const *steps; /* NULL at the end */
} st_migration;

extern const st_migration *const st_migrations;
extern const size_t st_nmigrations;

/* Brings the schema up to the last of the list. A store that is newer is refused. */
int st_schema_migrate(st_store *store, const st_migration *list, size_t n, st_err *err);
/* For those who do not migrate: the schema must be the last of the list. */
int st_schema_require(st_store *store, const st_migration *list, size_t n, st_err *err);

#endif
