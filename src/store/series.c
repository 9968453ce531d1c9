/*
 * series: figures over time, a blob for each part of each bucket. Nothing else in the store follows from them: one that is
 * lost is a gap in a chart.
 */
#include "store/sql.h"

int st_store_series_put(st_store *store, const st_series_blob *blob, st_err *err)
{
    return st_sql_run_row(store, ST_SQL_SERIES_PUT, blob, NULL, err);
}

typedef struct blob_ctx {
    st_series_blob_fn fn;
    void *ctx;
} blob_ctx;

static int blob_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const blob_ctx *b = ctx;
    st_series_blob blob;
    int r = st_shape_read(&st_shape_series, cols, n, &blob, err);

    return r < 0 ? r : b->fn(b->ctx, &blob, err);
}

int st_store_series_read(st_store *store, const st_series_blob *of, int64_t from_ms, int64_t to_ms,
                         st_series_blob_fn fn, void *ctx, st_err *err)
{
    blob_ctx b = {.fn = fn, .ctx = ctx};

    return st_sql_query(store, ST_SQL_SERIES_READ,
                        ST_PARAMS(st_val_i64(of->width_ms), st_val_i64(of->kind),
                                  st_val_i64(of->part), st_val_i64(from_ms), st_val_i64(to_ms)),
                        blob_row, &b, err);
}

static int number_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    int64_t *ret = ctx;

    (void)err;
    ST_ASSERT(n == 1);
    *ret = cols[0].i64;
    return 0;
}

int st_store_series_parts(st_store *store, int64_t width_ms, int64_t kind, int64_t *ret,
                          st_err *err)
{
    *ret = 0;
    return st_sql_query(store, ST_SQL_SERIES_PARTS,
                        ST_PARAMS(st_val_i64(width_ms), st_val_i64(kind)), number_row, ret, err);
}

int st_store_series_next_width(st_store *store, int64_t above_ms, int64_t *ret_ms, st_err *err)
{
    *ret_ms = 0;
    return st_sql_query(store, ST_SQL_SERIES_WIDTH, ST_PARAMS(st_val_i64(above_ms)), number_row,
                        ret_ms, err);
}

static int span_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    int64_t *ret = ctx;

    (void)err;
    ST_ASSERT(n == 2);
    ret[0] = cols[0].i64;
    ret[1] = cols[1].i64;
    return 0;
}

int st_store_series_span(st_store *store, const st_series_blob *of, int64_t *ret_first_ms,
                         int64_t *ret_last_ms, st_err *err)
{
    int64_t span[2] = {-1, -1};
    int r = st_sql_query(
        store, ST_SQL_SERIES_SPAN,
        ST_PARAMS(st_val_i64(of->width_ms), st_val_i64(of->kind), st_val_i64(of->part)), span_row,
        span, err);

    if (r < 0)
        return r;
    *ret_first_ms = span[0];
    *ret_last_ms = span[1];
    return 0;
}

int st_store_series_prune(st_store *store, const st_series_blob *of, int64_t before_ms, st_err *err)
{
    return st_sql_run(store, ST_SQL_SERIES_PRUNE,
                      ST_PARAMS(st_val_i64(of->width_ms), st_val_i64(of->kind),
                                st_val_i64(of->part), st_val_i64(before_ms)),
                      NULL, err);
}
