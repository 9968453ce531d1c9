/*
 * Opening and closing connections, and transactions (store/store.h).
 *
 * Invariants: 1. lock_fd is held by the one writer. 2. Inside a transaction the first failure of
 * the driver sets `broken`, and from then on nothing runs until it is rolled back: SQLite may have
 * ended the transaction by itself, and the next statement would be committed alone.
 */
#include "store/store.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "store/impl.h"

static const st_driver *const drivers[] = {&st_sqlite_driver};

/* The driver that `where` names and what follows the name; a plain path is SQLite's. */
static int find_driver(const char *where, const st_driver **ret, const char **ret_path, st_err *err)
{
    static const char postgres[] = "postgres";

    for (size_t i = 0; i < ST_ARRAY_LEN(drivers); i++) {
        size_t n = strlen(drivers[i]->name);

        if (strncmp(where, drivers[i]->name, n) == 0 && where[n] == ':') {
            *ret = drivers[i];
            *ret_path = where + n + 1;
            return 0;
        }
    }
    if (strncmp(where, postgres, sizeof(postgres) - 1) == 0 && strchr(where, ':'))
        return st_fail(err, ST_EINVAL,
                       "store %s: PostgreSQL is not in this build; give a path or sqlite:PATH",
                       where);
    *ret = &st_sqlite_driver;
    *ret_path = where;
    return 0;
}

static st_store *new_store(const st_driver *driver, const char *path, const st_store_options *o)
{
    st_store *store = st_xcalloc(1, sizeof(*store));

    store->driver = driver;
    store->path = st_xstrdup(path);
    store->options = *o;
    if (o->vfs)
        store->options.vfs = store->vfs = st_xstrdup(o->vfs);
    store->lock_fd = -1;
    return store;
}

static int start(st_store *store, st_err *err)
{
    int r = 0;

    if (!store->options.read_only)
        r = st_lock_take(store->path, &store->lock_fd, err);
    if (r == 0)
        r = store->driver->open(store->path, &store->options, &store->db, err);
    if (r < 0)
        return r;
    return store->options.read_only ? st_schema_require(store, st_migrations, st_nmigrations, err)
                                    : st_schema_migrate(store, st_migrations, st_nmigrations, err);
}

int st_store_open_with(const st_driver *driver, const char *path, const st_store_options *o,
                       st_store **ret, st_err *err)
{
    st_store *store = new_store(driver, path, o);
    int r = start(store, err);

    if (r < 0) {
        st_store_close(store);
        return r;
    }
    *ret = store;
    return 0;
}

int st_store_open(const char *where, const st_store_options *o, st_store **ret, st_err *err)
{
    static const st_store_options usual = {0};
    const st_driver *driver = NULL;
    const char *path = NULL;
    int r = find_driver(where, &driver, &path, err);

    if (r < 0)
        return r;
    if (path[0] == '\0' || path[0] == ':')
        return st_fail(err, ST_EINVAL, "store \"%s\": a path is wanted", where);
    return st_store_open_with(driver, path, o ? o : &usual, ret, err);
}

int st_store_open_reader(const st_store *store, st_store **ret, st_err *err)
{
    st_store_options o = store->options;

    o.read_only = true;
    return st_store_open_with(store->driver, store->path, &o, ret, err);
}

void st_store_close(st_store *store)
{
    if (!store)
        return;
    if (store->db)
        st_store_rollback(store);
    for (size_t i = 0; i < ST_ARRAY_LEN(store->statements); i++)
        store->driver->finish(store->statements[i]);
    store->driver->close(store->db);
    /* Last, so that the next writer finds everything closed. */
    if (store->lock_fd >= 0)
        close(store->lock_fd);
    free(store->path);
    free(store->vfs);
    free(store);
}

const char *st_store_path(const st_store *store)
{
    return store->path;
}

int64_t st_store_bytes(const st_store *store)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf log = {0};
    struct stat st;
    int64_t n;

    if (stat(store->path, &st) < 0)
        return -1;
    n = st.st_size;
    st_strbuf_addf(&log, "%s-wal", store->path);
    return stat(st_strbuf_str(&log), &st) == 0 ? n + st.st_size : n;
}

/* ---- transactions ----------------------------------------------------------------------- */

int st_store_begin(st_store *store, st_err *err)
{
    int r;

    ST_ASSERT(!store->in_transaction);
    r = store->driver->begin(store->db, !store->options.read_only, err);
    if (r < 0)
        return r;
    store->in_transaction = true;
    store->broken = 0;
    store->missed = false;
    return 0;
}

int st_store_commit(st_store *store, st_err *err)
{
    int broken = store->broken;

    ST_ASSERT(store->in_transaction);
    if (broken) {
        st_store_rollback(store);
        return st_fail(err, broken, "store %s: the transaction had failed and was rolled back",
                       store->path);
    }
    if (store->missed) {
        st_store_rollback(store);
        return st_fail(err, ST_ESTATE,
                       "store %s: a row was not as it must be, so nothing of the transaction was "
                       "kept",
                       store->path);
    }
    store->in_transaction = false;
    return store->driver->commit(store->db, err);
}

void st_store_rollback(st_store *store)
{
    store->driver->rollback(store->db);
    store->in_transaction = false;
    store->broken = 0;
    store->missed = false;
}

int st_store_end(st_store *store, int r, st_err *err)
{
    if (r == 0)
        return st_store_commit(store, err);
    st_store_rollback(store);
    return r;
}

bool st_store_in_transaction(const st_store *store)
{
    return store->in_transaction;
}
