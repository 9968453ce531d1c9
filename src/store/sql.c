/*
 * Runs the statements of the table in store/sql.h.
 */
#include "store/sql.h"

#include <string.h>

#include "store/impl.h"

typedef struct sql_row {
    const st_row_shape *shape;
    const char *params;
    const char *text;
} sql_row;

static const sql_row sql_rows[] = {
#define SQL_ROW(id, shape, params, text) {shape, params, text},
    ST_SQL_TABLE(SQL_ROW)
#undef SQL_ROW
};

st_val st_val_text(const char *s)
{
    ST_ASSERT(s);
    return (st_val){.kind = ST_VAL_TEXT, .p = s, .n = strlen(s)};
}

/* Our own mistake if not: the caller's parameters are those of the table. */
static void check_params(const sql_row *row, const st_val *params, size_t n)
{
    static const char letters[] = {
        [ST_VAL_NULL] = '0', [ST_VAL_I64] = 'i', [ST_VAL_TEXT] = 't', [ST_VAL_BLOB] = 'b'};

    if (row->params[0] == '*') {
        ST_ASSERT(n == row->shape->n);
        return;
    }
    ST_ASSERT(n == strlen(row->params));
    for (size_t i = 0; i < n; i++)
        ST_ASSERT(letters[params[i].kind] == row->params[i]);
}

/* A failure of the database ends the transaction; what a callback had to say about a row does not. */
static int note(st_store *store, int r)
{
    bool database = r == -ST_EIO || r == -ST_EFULL || r == -ST_ECORRUPT || r == -ST_EINTERNAL;

    if (database && store->in_transaction && !store->broken)
        store->broken = -r;
    return r;
}

static int refuse_broken(const st_store *store, st_err *err)
{
    return st_fail(err, store->broken,
                   "store %s: this transaction has failed; it must be rolled back", store->path);
}

static int prepared(st_store *store, st_sql_id id, st_stmt **ret, st_err *err)
{
    const sql_row *row = &sql_rows[id];

    if (!store->statements[id]) {
        ST_CLEANUP(st_strbuf_done) st_strbuf sql = {0};
        int r;

        st_shape_expand(store->driver, row->shape, row->text, &sql);
        r = store->driver->prepare(store->db, st_strbuf_str(&sql), &store->statements[id], err);
        if (r < 0)
            return r;
    }
    *ret = store->statements[id];
    return 0;
}

/* A write alone would be kept whatever becomes of what belongs to it, and no other process could be fenced off. */
int st_sql_may_write(const st_store *store, st_err *err)
{
    if (store->in_transaction || store->options.loose)
        return 0;
    return st_fail(err, ST_EINTERNAL, "store %s: a write outside of a transaction", store->path);
}

static int execute(st_store *store, st_sql_id id, const st_val *params, size_t n, st_row_fn fn,
                   void *ctx, int64_t *ret_changed, st_err *err)
{
    st_stmt *stmt;
    int r;

    if (store->broken)
        return refuse_broken(store, err);
    check_params(&sql_rows[id], params, n);
    r = prepared(store, id, &stmt, err);
    if (r == 0)
        r = store->driver->run(stmt, params, n, fn, ctx, ret_changed, err);
    return note(store, r);
}

int st_sql_run(st_store *store, st_sql_id id, const st_val *params, size_t n, int64_t *ret_changed,
               st_err *err)
{
    int r = st_sql_may_write(store, err);

    return r < 0 ? r : execute(store, id, params, n, NULL, NULL, ret_changed, err);
}

int st_sql_run_row(st_store *store, st_sql_id id, const void *row, int64_t *ret_changed,
                   st_err *err)
{
    const st_row_shape *shape = sql_rows[id].shape;
    st_val params[ST_STORE_COLUMNS_MAX];

    ST_ASSERT(shape && shape->n <= ST_ARRAY_LEN(params));
    st_shape_params(shape, row, params);
    return st_sql_run(store, id, params, shape->n, ret_changed, err);
}

int st_sql_one(st_store *store, st_sql_id id, const st_val *params, size_t n, st_err *err)
{
    int64_t changed = 0;
    st_stmt *stmt;
    int r = store->broken ? refuse_broken(store, err) : st_sql_may_write(store, err);

    if (r < 0)
        return r;
    check_params(&sql_rows[id], params, n);
    r = prepared(store, id, &stmt, err);
    if (r == 0)
        r = store->driver->write(stmt, params, n, 1, &changed, err);
    if (r < 0)
        return note(store, r);
    if (changed == 1 || changed == ST_STORE_LATER)
        return 0;
    store->missed = store->in_transaction;
    return 1;
}

int st_sql_one_row(st_store *store, st_sql_id id, const void *row, st_err *err)
{
    const st_row_shape *shape = sql_rows[id].shape;
    st_val params[ST_STORE_COLUMNS_MAX];

    ST_ASSERT(shape && shape->n <= ST_ARRAY_LEN(params));
    st_shape_params(shape, row, params);
    return st_sql_one(store, id, params, shape->n, err);
}

int st_sql_query(st_store *store, st_sql_id id, const st_val *params, size_t n, st_row_fn fn,
                 void *ctx, st_err *err)
{
    return execute(store, id, params, n, fn, ctx, NULL, err);
}

typedef struct get_ctx {
    const st_row_shape *shape;
    st_arena *a;
    void *ret;
    int found;
} get_ctx;

static int get_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    get_ctx *g = ctx;
    int r = st_shape_read(g->shape, cols, n, g->ret, err);

    if (r < 0)
        return r;
    st_shape_keep(g->shape, g->ret, g->a);
    g->found = 1;
    return 1;
}

int st_sql_get(st_store *store, st_sql_id id, const st_val *params, size_t n, st_arena *a,
               void *ret, st_err *err)
{
    get_ctx g = {.shape = sql_rows[id].shape, .a = a, .ret = ret};
    int r = execute(store, id, params, n, get_row, &g, NULL, err);

    return r < 0 ? r : g.found;
}

static int number_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    int64_t *ret = ctx;

    if (n != 1 || cols[0].kind != ST_VAL_I64)
        return st_fail(err, ST_ECORRUPT,
                       "a number of the store is none; it is damaged, restore the last backup");
    *ret = cols[0].i64;
    return 0;
}

int st_sql_number(st_store *store, st_sql_id id, int64_t *ret, st_err *err)
{
    return execute(store, id, ST_NO_PARAMS, number_row, ret, NULL, err);
}

int st_sql_prepare(st_store *store, const char *sql, st_stmt **ret, st_err *err)
{
    if (store->broken)
        return refuse_broken(store, err);
    return note(store, store->driver->prepare(store->db, sql, ret, err));
}

int st_sql_query_built(st_store *store, st_stmt *stmt, const st_val *params, size_t n, st_row_fn fn,
                       void *ctx, st_err *err)
{
    if (store->broken)
        return refuse_broken(store, err);
    return note(store, store->driver->run(stmt, params, n, fn, ctx, NULL, err));
}

void st_sql_finish(st_store *store, st_stmt *stmt)
{
    store->driver->finish(stmt);
}

const char *st_sql_position(const st_store *store)
{
    return store->driver->position;
}

int st_sql_begin(st_store *store, bool *ret_own, st_err *err)
{
    int r;

    *ret_own = false;
    if (store->in_transaction)
        return 0;
    r = st_store_begin(store, err);
    *ret_own = r == 0;
    return r;
}

int st_sql_end(st_store *store, bool own, int r, st_err *err)
{
    return own ? st_store_end(store, r, err) : r;
}
