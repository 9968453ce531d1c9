/*
 * book and checkpoints: entries about usage and money in the order they were made, and what was
 * signed about them.
 *
 * Invariants: 1. n has no gaps, and within an account seq has none. 2. Entries are never changed
 * or removed.
 */
#include "store/sql.h"

int st_store_book_last(st_store *store, int64_t *ret_n, st_err *err)
{
    return st_sql_number(store, ST_SQL_BOOK_LAST, ret_n, err);
}

/* That n follows the last one is the caller's to know: asking each time costs more than writing.
 * A gap is found by whoever reads. */
int st_store_book_append(st_store *store, const st_book_row *row, st_err *err)
{
    int64_t changed;
    int r = st_sql_run_row(store, ST_SQL_BOOK_APPEND, row, &changed, err);

    if (r < 0 || changed == 1)
        return r;
    return st_fail(err, ST_ESTATE,
                   "entry %lld (number %lld in the book of account \"%s\") is there already",
                   (long long)row->n, (long long)row->seq, row->account);
}

typedef struct book_ctx {
    st_book_fn fn;
    void *ctx;
    bool by_seq, any;
    int64_t next; /* what must come, 0 before the first */
} book_ctx;

static int book_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    book_ctx *b = ctx;
    st_book_row row;
    int r = st_shape_read(&st_shape_book, cols, n, &row, err);

    if (r < 0)
        return r;
    int64_t at = b->by_seq ? row.seq : row.n;
    if (!b->any && b->next && at != b->next)
        return st_fail(err, ST_ECORRUPT,
                       "the book%s%s has entry %lld where %lld must come; entries are missing, "
                       "restore the last backup",
                       b->by_seq ? " of account " : "", b->by_seq ? row.account : "", (long long)at,
                       (long long)b->next);
    b->next = at + 1;
    return b->fn(b->ctx, &row, err);
}

int st_store_book_read(st_store *store, int64_t from, int64_t to, st_book_fn fn, void *ctx,
                       st_err *err)
{
    book_ctx b = {.fn = fn, .ctx = ctx, .next = from};

    return st_sql_query(store, ST_SQL_BOOK_READ, ST_PARAMS(st_val_i64(from), st_val_i64(to)),
                        book_row, &b, err);
}

int st_store_book_of(st_store *store, const char *account, int64_t from, int64_t to, st_book_fn fn,
                     void *ctx, st_err *err)
{
    book_ctx b = {.fn = fn, .ctx = ctx, .by_seq = true, .next = from};

    return st_sql_query(store, ST_SQL_BOOK_OF,
                        ST_PARAMS(st_val_text(account), st_val_i64(from), st_val_i64(to)), book_row,
                        &b, err);
}

int st_store_book_of_job(st_store *store, const char *job, st_book_fn fn, void *ctx, st_err *err)
{
    book_ctx b = {.fn = fn, .ctx = ctx, .any = true};

    return st_sql_query(store, ST_SQL_BOOK_OF_JOB, ST_PARAMS(st_val_text(job)), book_row, &b, err);
}

/* ---- checkpoints -------------------------------------------------------------------------- */

int st_store_checkpoint_put(st_store *store, const st_checkpoint_row *row, st_err *err)
{
    return st_sql_run_row(store, ST_SQL_CHECKPOINT_PUT, row, NULL, err);
}

int st_store_checkpoint_last(st_store *store, st_arena *a, st_checkpoint_row *ret, st_err *err)
{
    st_checkpoint_row row;
    int r = st_sql_get(store, ST_SQL_CHECKPOINT_LAST, ST_NO_PARAMS, a, &row, err);

    if (r < 0)
        return r;
    if (r == 0)
        return st_fail(err, ST_ENOENT, "nothing was signed yet");
    *ret = row;
    return 0;
}

typedef struct checkpoint_ctx {
    st_checkpoint_fn fn;
    void *ctx;
} checkpoint_ctx;

static int checkpoint_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const checkpoint_ctx *c = ctx;
    st_checkpoint_row row;
    int r = st_shape_read(&st_shape_checkpoint, cols, n, &row, err);

    return r < 0 ? r : c->fn(c->ctx, &row, err);
}

int st_store_checkpoints(st_store *store, int64_t from, st_checkpoint_fn fn, void *ctx, st_err *err)
{
    checkpoint_ctx c = {.fn = fn, .ctx = ctx};

    return st_sql_query(store, ST_SQL_CHECKPOINTS, ST_PARAMS(st_val_i64(from)), checkpoint_row, &c,
                        err);
}
