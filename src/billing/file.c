/*
 * A bill's file (bill/file.h): what it is about is fixed in the loop, a checkpoint is signed over it, and the
 * entries are read from the store by whoever asked.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"

struct st_bill_ask {
    st_bill bill;
    char currency[16], zone[64];
    st_checkpoint point;
    st_keys keys;
    st_head *heads; /* of all books, for the path to the root */
    size_t nheads;
    ST_VEC(char *) own; /* it and all below it; of those above nothing is shown */
};

/* ---- in the loop -------------------------------------------------------------------------------------- */

static int current_point(st_tx *tx, st_checkpoint *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_checkpoint_row row;
    int r = st_money_sign(tx, true, err);

    if (r == 0)
        r = st_tx_fault(tx, st_store_checkpoint_last(tx->ctl->store, arena, &row, err), err);
    return r < 0 ? r : st_checkpoint_read(row.data, strlen(row.data), ret, err);
}

/* Books of accounts that are gone are on the bill too, and one that several had is on it once. */
static void list_accounts(st_bill_ask *ask, const st_control *ctl, int32_t root)
{
    const st_tree *tree = st_core_tree(ctl->core);
    char buf[ST_NAME_MAX + 1];

    for (size_t i = 1; i < tree->accounts.n; i++) {
        int32_t up = (int32_t)i;

        while (up > ST_ROOT && up != root)
            up = tree->accounts.v[up]->parent;
        if (up != root)
            continue;
        const char *book = st_book_name(ctl, (int32_t)i, buf);
        if (st_book_account(ctl, book) == (int32_t)i)
            st_vec_push(&ask->own, st_xstrdup(book));
    }
}

int st_tx_bill_ask(st_tx *tx, const char *account, const char *period, st_bill_ask **ret,
                   st_err *err)
{
    ST_CLEANUP(st_bill_ask_freep) st_bill_ask *ask = st_xcalloc(1, sizeof *ask);
    st_billing *b = tx->ctl->billing;
    char book[ST_NAME_MAX + 1];
    int r = st_ledger_bill(b->ledger, st_book_of(tx->ctl, account, book), period, &ask->bill, err);

    if (r == 0)
        r = current_point(tx, &ask->point, err);
    if (r < 0)
        return r;
    strncpy(ask->currency, st_control_currency(tx->ctl), sizeof ask->currency - 1);
    strncpy(ask->zone, st_zone_name(b->zone), sizeof ask->zone - 1);
    ask->keys = b->keys;
    ask->nheads = st_books_heads(&b->books, &b->keys, &ask->heads);
    list_accounts(ask, tx->ctl, st_account_known(tx->ctl, account));
    *ret = ST_TAKE(ask);
    return 0;
}

const st_bill *st_bill_ask_bill(const st_bill_ask *ask)
{
    return &ask->bill;
}

void st_bill_ask_free(st_bill_ask *ask)
{
    if (!ask)
        return;
    st_bill_done(&ask->bill);
    for (size_t i = 0; i < ask->own.n; i++)
        free(ask->own.v[i]);
    st_vec_free(&ask->own);
    free(ask->heads);
    sodium_memzero(&ask->keys, sizeof ask->keys);
    free(ask);
}

/* ---- outside ------------------------------------------------------------------------------------------- */

/* One book on its way into the file. */
typedef struct book {
    st_hashes leaves;
    ST_VEC(st_bill_mark) marks;
    int64_t began_ms;
    st_arena *arena;
} book;

/* Most are not: they are not worth reading. */
static bool is_mark(const char *data)
{
    const char *at = strstr(data, "\"kind\":\"");

    for (int kind = 0; at && kind < ST_ENTRY_COUNT; kind++) {
        const char *word = st_entry_kind_name((st_entry_kind)kind);
        size_t n = strlen(word);

        if (st_bill_marks((st_entry_kind)kind) && strncmp(at + 8, word, n) == 0 && at[8 + n] == '"')
            return true;
    }
    return false;
}

static int learn_row(void *ctx, const st_book_row *row, st_err *err)
{
    book *b = ctx;
    size_t len = strlen(row->data);
    st_entry e;
    st_hash leaf;
    int r = 0;

    st_proof_leaf(row->data, len, &leaf);
    st_vec_push(&b->leaves, leaf);
    if (row->seq == 1)
        b->began_ms = row->at_ms;
    if (!is_mark(row->data))
        return 0;
    st_arena_reset(b->arena);
    r = st_entry_read(row->data, len, b->arena, &e, err);
    if (r == 0)
        st_vec_push(&b->marks, (st_bill_mark){row->seq, e.kind, e.to_ms});
    return r;
}

/* Entries on their way into the file: read a second time, because proofs come before them and a book is long. */
typedef struct copy {
    st_billfile *file;
    const st_bill_sink *sink;
} copy;

static int flush(const st_bill_sink *sink, st_err *err)
{
    return sink->flush ? sink->flush(sink->ctx, err) : 0;
}

static int copy_row(void *ctx, const st_book_row *row, st_err *err)
{
    const copy *c = ctx;

    st_billfile_add_entry(c->file, row->data, strlen(row->data), c->sink->out);
    return flush(c->sink, err);
}

static int write_range(const book *b, st_store *reader, copy *c, const st_billfile_book *at,
                       st_bill_range part, st_err *err)
{
    st_billfile_book said = *at;
    st_hashes proof = {0};
    int r = st_proof_make(b->leaves.v, at->head->size, part.from, part.to, &proof, err);

    if (r == 0) {
        said.from = part.from;
        said.to = part.to;
        said.proof = &proof;
        st_billfile_add_book(c->file, &said, c->sink->out);
        r = flush(c->sink, err);
    }
    st_vec_free(&proof);
    if (r == 0 && part.to > part.from)
        r = st_store_book_of(reader, at->head->account, part.from + 1, part.to, copy_row, c, err);
    return r;
}

static int write_book(const st_bill_source *src, st_store *reader, const char *account, copy *c,
                      st_err *err)
{
    book b = {0};
    st_billfile_book at = {0};
    st_bill_ranges ranges = {0};
    st_hashes path = {0};
    size_t i = 0;
    int r;

    while (i < src->nheads && strcmp(src->heads[i].account, account) != 0)
        i++;
    if (i == src->nheads)
        return 0;
    at.head = &src->heads[i];
    b.arena = st_arena_new();
    r = st_store_book_of(reader, account, 1, at.head->size, learn_row, &b, err);
    if (r == 0 && (int64_t)b.leaves.n != at.head->size)
        r = st_fail(err, ST_ECORRUPT, "the book of account \"%s\" ends before it should", account);
    /* An account that is younger than the period has no part in it. */
    if (r == 0 && (!account[0] || b.began_ms < src->bill->period.to_ms)) {
        st_checkpoint_path(src->point, src->heads, src->nheads, i, src->secret, &path, &at.index);
        at.path = &path;
        st_billfile_ranges(src->bill, account, at.head->size, b.marks.v, b.marks.n, &ranges);
    }
    for (size_t k = 0; r == 0 && k < ranges.n; k++)
        r = write_range(&b, reader, c, &at, ranges.v[k], err);
    st_vec_free(&path);
    st_vec_free(&ranges);
    st_vec_free(&b.leaves);
    st_vec_free(&b.marks);
    st_arena_free(b.arena);
    return r;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int st_bill_write(const st_bill_source *src, st_store *reader, const st_bill_sink *sink,
                  st_err *err)
{
    const st_billfile_made made = {
        .bill = src->bill, .currency = src->currency, .zone = src->zone, .checkpoint = src->point};
    copy c = {.file = st_billfile_new(&made, sink->out), .sink = sink};
    ST_VEC(const char *) books = {0};
    int r = 0;

    st_vec_push(&books, "");
    for (size_t i = 0; i < src->nown; i++)
        st_vec_push(&books, src->own[i]);
    qsort(books.v, books.n, sizeof *books.v, by_name);
    for (size_t i = 0; r == 0 && i < books.n; i++)
        r = write_book(src, reader, books.v[i], &c, err);
    st_billfile_end(c.file, src->key, sink->out);
    st_vec_free(&books);
    return r;
}

int st_bill_ask_write(const st_bill_ask *ask, st_store *reader, const st_bill_sink *sink,
                      st_err *err)
{
    const st_bill_source src = {.bill = &ask->bill,
                                .currency = ask->currency,
                                .zone = ask->zone,
                                .point = &ask->point,
                                .heads = ask->heads,
                                .nheads = ask->nheads,
                                .secret = ask->keys.secret,
                                .key = ask->keys.key,
                                .own = ask->own.v,
                                .nown = ask->own.n};

    return st_bill_write(&src, reader, sink, err);
}
