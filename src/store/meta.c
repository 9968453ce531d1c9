/*
 * meta: small facts about the store, by key.
 */
#include <string.h>

#include "store/sql.h"

typedef struct meta_ctx {
    st_arena *a;
    const char *value;
} meta_ctx;

static int meta_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    meta_ctx *m = ctx;

    if (n != 1 || cols[0].kind != ST_VAL_TEXT || memchr(cols[0].p, '\0', cols[0].n))
        return st_fail(err, ST_ECORRUPT,
                       "table meta: a value is not text; the store is damaged, restore the last "
                       "backup");
    m->value = st_arena_strndup(m->a, cols[0].p, cols[0].n);
    return 0;
}

int st_store_meta_get(st_store *store, const char *key, st_arena *a, const char **ret, st_err *err)
{
    meta_ctx m = {.a = a};
    int r = st_sql_query(store, ST_SQL_META_GET, ST_PARAMS(st_val_text(key)), meta_row, &m, err);

    if (r < 0)
        return r;
    if (!m.value)
        return st_fail(err, ST_ENOENT, "the store has no %s", key);
    *ret = m.value;
    return 0;
}

int st_store_meta_swap(st_store *store, const char *key, const char *was, const char *value,
                       st_err *err)
{
    int r = was ? st_sql_one(store, ST_SQL_META_SWAP,
                             ST_PARAMS(st_val_text(key), st_val_text(was), st_val_text(value)), err)
                : st_sql_one(store, ST_SQL_META_NEW,
                             ST_PARAMS(st_val_text(key), st_val_text(value)), err);

    if (r > 0)
        r = st_fail(err, ST_ESTATE, "%s is not what it was any more: somebody else has changed it",
                    key);
    return r;
}

int st_store_meta_put(st_store *store, const char *key, const char *value, st_err *err)
{
    return st_sql_run(store, ST_SQL_META_PUT, ST_PARAMS(st_val_text(key), st_val_text(value)), NULL,
                      err);
}
