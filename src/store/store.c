/*
 * Opening and closing connections, and transactions (store/store.h).
 *
 * Invariant: inside a transaction the first failure of
 * the driver sets `broken`, and from then on nothing runs until it is rolled back: SQLite may have
 * ended the transaction by itself, and the next statement would be committed alone.
 */
#include "store/store.h"

#include <string.h>

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
    return store;
}

static int start(st_store *store, st_err *err)
{
    int r = store->driver->open(store->path, &store->options, &store->db, err);

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
    free(store->path);
    free(store->vfs);
    free(store);
}

void st_store_beside(const st_store *store, const char *name, st_strbuf *out)
{
    store->driver->beside(store->path, name, out);
}

int64_t st_store_bytes(const st_store *store)
{
    return store->driver->bytes(store->db);
}

/* ---- stores that are not open -------------------------------------------------------------- */

/* What is not a store at all has no files either; who opens it hears why. */
static const st_driver *driver_of(const char *where, const char **ret_path)
{
    const st_driver *driver = &st_sqlite_driver;

    *ret_path = where;
    (void)find_driver(where, &driver, ret_path, NULL);
    return driver;
}

void st_store_beside_of(const char *where, const char *name, st_strbuf *out)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    driver->beside(path, name, out);
}

bool st_store_is_file(const char *where, const char *file)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    return driver->is_file(path, file);
}

bool st_store_is_written(const char *where)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    return driver->is_written(path);
}

int st_store_stage(const char *where, const char *backup, st_strbuf *ret_staged, st_err *err)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    if (!driver->stage)
        return st_fail(err, ST_ESTATE, "this store is restored by the tools of its database");
    return driver->stage(path, backup, ret_staged, err);
}

int st_store_replace(const char *where, const char *staged, const char *when, st_strbuf *ret_aside,
                     st_err *err)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    st_strbuf_addf(ret_aside, "%s.before-%s", path, when);
    return driver->replace(path, staged, st_strbuf_str(ret_aside), err);
}

void st_store_unstage(const char *where, const char *staged)
{
    const char *path;
    const st_driver *driver = driver_of(where, &path);

    if (driver->unstage)
        driver->unstage(staged);
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
