/*
 * idem: which request came with which idempotency key, and what was answered.
 */
#include "base/mem.h"
#include "store/sql.h"

int st_store_idem_get(st_store *store, const char *owner, const char *key, st_arena *a,
                      st_idem_row *ret, st_err *err)
{
    st_idem_row row;
    int r = st_sql_get(store, ST_SQL_IDEM_GET, ST_PARAMS(st_val_text(owner), st_val_text(key)), a,
                       &row, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "the key %s has not been used", key);
    *ret = row;
    return 0;
}

int st_store_idem_put(st_store *store, const st_idem_row *row, st_err *err)
{
    int r = st_sql_one_row(store, ST_SQL_IDEM_PUT, row, err);

    if (r > 0)
        r = st_fail(err, ST_EEXIST, "the key %s has been used", row->key);
    return r;
}

int st_store_idem_more(st_store *store, const char *owner, const char *key, const char *answer,
                       st_err *err)
{
    int r = st_sql_one(store, ST_SQL_IDEM_MORE,
                       ST_PARAMS(st_val_text(owner), st_val_text(key), st_val_text(answer)), err);

    if (r > 0)
        r = st_fail(err, ST_ENOENT, "the key is not in the store");
    return r;
}

int st_store_idem_drop(st_store *store, const char *owner, const char *key, st_err *err)
{
    int64_t n;

    return st_sql_run(store, ST_SQL_IDEM_DROP, ST_PARAMS(st_val_text(owner), st_val_text(key)), &n,
                      err);
}

int st_store_idem_expire(st_store *store, int64_t before_ms, int64_t *ret_n, st_err *err)
{
    int64_t n;
    int r = st_sql_run(store, ST_SQL_IDEM_EXPIRE, ST_PARAMS(st_val_i64(before_ms)), &n, err);

    if (r == 0 && ret_n)
        *ret_n = n;
    return r;
}

typedef struct owners_ctx {
    st_idem_owner_fn fn;
    void *ctx;
} owners_ctx;

static int owner_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const owners_ctx *o = ctx;

    if (n != 2 || cols[0].kind != ST_VAL_TEXT || cols[1].kind != ST_VAL_I64)
        return st_fail(err, ST_ECORRUPT,
                       "an idempotency key has no owner; the store is damaged, restore the last "
                       "backup");
    ST_CLEANUP(st_freep) char *owner = st_xstrndup(cols[0].p, cols[0].n);
    return o->fn(o->ctx, owner, cols[1].i64, err);
}

int st_store_idem_owners(st_store *store, st_idem_owner_fn fn, void *ctx, st_err *err)
{
    owners_ctx o = {fn, ctx};

    return st_sql_query(store, ST_SQL_IDEM_OWNERS, ST_NO_PARAMS, owner_row, &o, err);
}
