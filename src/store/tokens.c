/*
 * tokens: who may come in, as hashes.
 */
#include "store/sql.h"

int st_store_token_insert(st_store *store, const st_token_row *row, st_err *err)
{
    int r = st_sql_one_row(store, ST_SQL_TOKEN_INSERT, row, err);

    if (r > 0)
        r = st_fail(err, ST_EEXIST, "token %lld, or one with its hash, is there already",
                    (long long)row->id);
    return r;
}

static int mark(st_store *store, st_sql_id sql, int64_t id, int64_t at_ms, st_err *err)
{
    int r = st_sql_one(store, sql, ST_PARAMS(st_val_i64(id), st_val_i64(at_ms)), err);

    if (r > 0)
        r = st_fail(err, ST_ENOENT, "there is no such token as %lld", (long long)id);
    return r;
}

int st_store_token_revoke(st_store *store, int64_t id, int64_t at_ms, st_err *err)
{
    return mark(store, ST_SQL_TOKEN_REVOKE, id, at_ms, err);
}

int st_store_token_used(st_store *store, int64_t id, int64_t at_ms, st_err *err)
{
    return mark(store, ST_SQL_TOKEN_USED, id, at_ms, err);
}

int st_store_token_remove(st_store *store, int64_t id, st_err *err)
{
    int r = st_sql_one(store, ST_SQL_TOKEN_REMOVE, ST_PARAMS(st_val_i64(id)), err);

    if (r > 0)
        r = st_fail(err, ST_ENOENT, "there is no such token");
    return r;
}

int st_store_tokens_refile(st_store *store, const char *from, const char *to, int64_t until_ms,
                           st_err *err)
{
    return st_sql_run(store, ST_SQL_TOKENS_REFILE,
                      ST_PARAMS(st_val_text(from), st_val_text(to), st_val_i64(until_ms)), NULL,
                      err);
}

static int found(int r, const st_token_row *row, st_token_row *ret, st_err *err)
{
    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "there is no such token");
    *ret = *row;
    return 0;
}

int st_store_token_get(st_store *store, int64_t id, st_arena *a, st_token_row *ret, st_err *err)
{
    st_token_row row;
    int r = st_sql_get(store, ST_SQL_TOKEN_GET, ST_PARAMS(st_val_i64(id)), a, &row, err);

    return found(r, &row, ret, err);
}

typedef struct token_ctx {
    st_token_fn fn;
    void *ctx;
} token_ctx;

static int token_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const token_ctx *t = ctx;
    st_token_row row;
    int r = st_shape_read(&st_shape_token, cols, n, &row, err);

    return r < 0 ? r : t->fn(t->ctx, &row, err);
}

int st_store_tokens(st_store *store, st_token_fn fn, void *ctx, st_err *err)
{
    token_ctx t = {.fn = fn, .ctx = ctx};

    return st_sql_query(store, ST_SQL_TOKENS, ST_NO_PARAMS, token_row, &t, err);
}
