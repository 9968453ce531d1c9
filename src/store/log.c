/*
 * log and snap: what the core was told, and what it was when it was last saved.
 *
 * Invariants: 1. Log rows have no gaps. 2. Every row behind the oldest snapshot is there,
 * so that a start is possible from each.
 */
#include "store/sql.h"

int st_store_log_last(st_store *store, int64_t *ret_seq, st_err *err)
{
    int64_t log = 0, snap = 0;
    int r = st_sql_number(store, ST_SQL_LOG_LAST, &log, err);

    if (r == 0)
        r = st_sql_number(store, ST_SQL_SNAP_LAST, &snap, err);
    if (r < 0)
        return r;
    *ret_seq = ST_MAX(log, snap);
    return 0;
}

/* One statement, which is its own condition: whoever else has written a row meanwhile makes it change nothing. */
int st_store_log_append(st_store *store, const st_log_row *row, st_err *err)
{
    int64_t last = 0;
    int r = st_sql_one_row(store, ST_SQL_LOG_APPEND, row, err);

    if (r <= 0)
        return r;
    r = st_store_log_last(store, &last, err);
    return r < 0 ? r
                 : st_fail(err, ST_ESTATE, "log row %lld does not follow the last one, %lld",
                           (long long)row->seq, (long long)last);
}

typedef struct log_ctx {
    st_log_fn fn;
    void *ctx;
    int64_t next; /* the seq that must come, 0 before the first */
} log_ctx;

static int log_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    log_ctx *l = ctx;
    st_log_row row;
    int r = st_shape_read(&st_shape_log, cols, n, &row, err);

    if (r < 0)
        return r;
    if (l->next && row.seq != l->next)
        return st_fail(err, ST_ECORRUPT,
                       "the log has row %lld where %lld must come; rows are missing, restore the "
                       "last backup",
                       (long long)row.seq, (long long)l->next);
    l->next = row.seq + 1;
    return l->fn(l->ctx, &row, err);
}

int st_store_log_read(st_store *store, int64_t from, st_log_fn fn, void *ctx, st_err *err)
{
    log_ctx l = {.fn = fn, .ctx = ctx};

    return st_sql_query(store, ST_SQL_LOG_READ, ST_PARAMS(st_val_i64(from)), log_row, &l, err);
}

int st_store_log_prune(st_store *store, int64_t limit, int64_t *ret_n, st_err *err)
{
    int64_t needed = 0, first = 0, n = 0;
    int r = st_sql_number(store, ST_SQL_SNAP_FIRST, &needed, err);

    if (r == 0)
        r = st_sql_number(store, ST_SQL_LOG_FIRST, &first, err);
    if (r == 0 && first > 0 && first <= needed)
        r = st_sql_run(store, ST_SQL_LOG_PRUNE,
                       ST_PARAMS(st_val_i64(ST_MIN(needed, first - 1 + limit))), &n, err);
    if (r == 0 && ret_n)
        *ret_n = n;
    return r;
}

int st_store_snap_put(st_store *store, const st_snap_row *row, int64_t since_ms, st_err *err)
{
    int r = st_sql_run_row(store, ST_SQL_SNAP_PUT, row, NULL, err);

    if (r == 0)
        r = st_sql_run(store, ST_SQL_SNAP_TRIM, ST_PARAMS(st_val_i64(since_ms)), NULL, err);
    return r;
}

static int one_number(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    (void)err;
    ST_ASSERT(n == 1 && cols[0].kind == ST_VAL_I64);
    *(int64_t *)ctx = cols[0].i64;
    return 0;
}

int st_store_log_reach(st_store *store, int64_t at_ms, st_store_reach *ret, st_err *err)
{
    st_store_reach reach = {0};
    int64_t snap_ms = -1;
    int r = st_sql_number(store, ST_SQL_LOG_FIRST_MS, &reach.first_ms, err);

    if (r == 0)
        r = st_sql_number(store, ST_SQL_SNAP_FIRST_MS, &snap_ms, err);
    if (r == 0)
        r = st_sql_query(store, ST_SQL_SNAP_UPTO_MS, ST_PARAMS(st_val_i64(at_ms)), one_number,
                         &reach.snap_seq, err);
    if (r < 0)
        return r;
    reach.whole = reach.first_ms >= 0;
    reach.first_ms = reach.whole ? reach.first_ms : snap_ms;
    *ret = reach;
    return 0;
}

int st_store_snap_get(st_store *store, int64_t upto, st_arena *a, st_snap_row *ret, st_err *err)
{
    st_snap_row row;
    int r = st_sql_get(store, ST_SQL_SNAP_GET, ST_PARAMS(st_val_i64(upto)), a, &row, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "the store has no snapshot");
    *ret = row;
    return 0;
}
