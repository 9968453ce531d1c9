/*
 * book and checkpoints: entries about usage and money in the order they were made, and what was
 * signed about them.
 *
 * Invariants: 1. n has no gaps, and within an account seq has none. 2. Entries are never changed
 * or removed.
 *
 * Books are long, and whoever reads one does something with each entry. So they are read in pages, each in a read
 * transaction of its own that is over before the first of its entries is looked at: a transaction that stays open keeps
 * everything that is committed meanwhile in the write-ahead log. By 2. the pages together are what one transaction would
 * have seen.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "store/sql.h"

#define PAGE_ROWS 1000

int st_store_book_last(st_store *store, int64_t *ret_n, st_err *err)
{
    return st_sql_number(store, ST_SQL_BOOK_LAST, ret_n, err);
}

/* That n follows the last one is the caller's to know: asking each time costs more than writing.
 * A gap is found by whoever reads. */
int st_store_book_append(st_store *store, const st_book_row *row, st_err *err)
{
    int r = st_sql_one_row(store, ST_SQL_BOOK_APPEND, row, err);

    if (r <= 0)
        return r;
    return st_fail(err, ST_ESTATE,
                   "entry %lld (number %lld in the book of account \"%s\") is there already",
                   (long long)row->n, (long long)row->seq, row->account);
}

/* A page of entries, kept. */
typedef struct book_page {
    st_arena *arena;
    ST_VEC(st_book_row) rows;
} book_page;

static int keep_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    book_page *page = ctx;
    st_book_row row;
    int r = st_shape_read(&st_shape_book, cols, n, &row, err);

    if (r < 0)
        return r;
    st_shape_keep(&st_shape_book, &row, page->arena);
    st_vec_push(&page->rows, row);
    return 0;
}

/* What is read: all books in the order of n, or the account's. */
typedef struct book_ask {
    const char *account; /* NULL: all */
    int64_t next, to;
    st_book_fn fn;
    void *ctx;
} book_ask;

static int read_page(st_store *store, const book_ask *ask, book_page *page, st_err *err)
{
    st_arena_reset(page->arena);
    st_vec_clear(&page->rows);
    if (ask->account)
        return st_sql_query(store, ST_SQL_BOOK_OF,
                            ST_PARAMS(st_val_text(ask->account), st_val_i64(ask->next),
                                      st_val_i64(ask->to), st_val_i64(PAGE_ROWS)),
                            keep_row, page, err);
    return st_sql_query(
        store, ST_SQL_BOOK_READ,
        ST_PARAMS(st_val_i64(ask->next), st_val_i64(ask->to), st_val_i64(PAGE_ROWS)), keep_row,
        page, err);
}

/* 1: fn wants no more. */
static int show_page(book_ask *ask, const book_page *page, st_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < page->rows.n; i++) {
        const st_book_row *row = &page->rows.v[i];
        int64_t at = ask->account ? row->seq : row->n;

        if (at != ask->next)
            return st_fail(err, ST_ECORRUPT,
                           "the book%s%s has entry %lld where %lld must come; entries are missing, "
                           "restore the last backup",
                           ask->account ? " of account " : "", ask->account ? row->account : "",
                           (long long)at, (long long)ask->next);
        ask->next = at + 1;
        r = ask->fn(ask->ctx, row, err);
    }
    return r;
}

static int read_pages(st_store *store, book_ask *ask, st_err *err)
{
    book_page page = {.arena = st_arena_new()};
    int r;

    do {
        r = read_page(store, ask, &page, err);
        if (r == 0)
            r = show_page(ask, &page, err);
    } while (r == 0 && page.rows.n == PAGE_ROWS && ask->next <= ask->to);
    st_vec_free(&page.rows);
    st_arena_free(page.arena);
    return r < 0 ? r : 0;
}

int st_store_book_read(st_store *store, int64_t from, int64_t to, st_book_fn fn, void *ctx,
                       st_err *err)
{
    book_ask ask = {.next = from, .to = to, .fn = fn, .ctx = ctx};

    return read_pages(store, &ask, err);
}

int st_store_book_of(st_store *store, const char *account, int64_t from, int64_t to, st_book_fn fn,
                     void *ctx, st_err *err)
{
    book_ask ask = {.account = account, .next = from, .to = to, .fn = fn, .ctx = ctx};

    return read_pages(store, &ask, err);
}

typedef struct job_ctx {
    st_book_fn fn;
    void *ctx;
} job_ctx;

static int job_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const job_ctx *j = ctx;
    st_book_row row;
    int r = st_shape_read(&st_shape_book, cols, n, &row, err);

    return r < 0 ? r : j->fn(j->ctx, &row, err);
}

int st_store_book_of_job(st_store *store, const char *job, st_book_fn fn, void *ctx, st_err *err)
{
    job_ctx j = {.fn = fn, .ctx = ctx};

    return st_sql_query(store, ST_SQL_BOOK_OF_JOB, ST_PARAMS(st_val_text(job)), job_row, &j, err);
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
