/*
 * How far each book is: the chain and the tree over its entries, so that what is written next can be hashed and
 * everything can be signed without reading any of it again.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"

#define LEAVES_BITS 63

void st_books_init(st_books *b)
{
    *b = (st_books){.ids = st_map_new()};
}

void st_books_done(st_books *b)
{
    for (size_t i = 0; i < b->heads.n; i++) {
        free(b->heads.v[i].account);
        free(b->heads.v[i].peaks);
    }
    st_vec_free(&b->heads);
    st_map_free(b->ids);
    *b = (st_books){0};
}

st_book_head *st_books_head(st_books *b, const char *account)
{
    int64_t at;

    if (!st_map_get(b->ids, account, &at)) {
        at = (int64_t)b->heads.n;
        st_vec_push(&b->heads, (st_book_head){.account = st_xstrdup(account),
                                              .peaks = st_xcalloc(1, sizeof(st_peaks))});
        st_map_put(b->ids, account, at);
    }
    return &b->heads.v[at];
}

void st_books_add(st_books *b, const char *account, int64_t at_ms, const char *data, size_t len,
                  st_hash *ret_chain)
{
    st_book_head *head = st_books_head(b, account);
    st_hash leaf;

    st_proof_leaf(data, len, &leaf);
    st_proof_chain(&head->chain, &leaf);
    st_peaks_add(head->peaks, &leaf);
    b->n++;
    b->last_ms = ST_MAX(b->last_ms, at_ms);
    *ret_chain = head->chain;
}

size_t st_books_heads(const st_books *b, const st_keys *keys, st_head **ret)
{
    st_head *heads = st_xcalloc(b->heads.n ? b->heads.n : 1, sizeof *heads);

    for (size_t i = 0; i < b->heads.n; i++) {
        const st_book_head *from = &b->heads.v[i];

        strncpy(heads[i].account, from->account, ST_NAME_MAX);
        heads[i].size = from->peaks->size;
        heads[i].chain = from->chain;
        st_peaks_root(from->peaks, &heads[i].root);
        st_head_salt(&heads[i], keys->secret);
    }
    *ret = heads;
    return b->heads.n;
}

void st_books_sign(const st_books *b, const st_keys *keys, const char *cluster, int64_t at_ms,
                   st_checkpoint *ret)
{
    st_head *heads;
    size_t n = st_books_heads(b, keys, &heads);

    *ret = (st_checkpoint){.at_ms = at_ms};
    strncpy(ret->cluster, cluster, sizeof ret->cluster - 1);
    st_checkpoint_make(ret, heads, n, keys->secret);
    st_checkpoint_sign(ret, keys->key);
    free(heads);
}

/* ---- as bytes --------------------------------------------------------------------------------- */

/* NUMBERS, then for each book its name's length, name, size, chain and the peaks its size has. */
static void put(st_strbuf *out, int64_t v)
{
    st_strbuf_addn(out, (const char *)&v, sizeof v);
}

static bool get(const char **at, const char *end, void *ret, size_t n)
{
    if ((size_t)(end - *at) < n)
        return false;
    memcpy(ret, *at, n);
    *at += n;
    return true;
}

void st_books_save(const st_books *b, st_strbuf *out)
{
    put(out, b->n);
    put(out, b->last_ms);
    put(out, b->signed_n);
    put(out, b->signed_ms);
    put(out, (int64_t)b->heads.n);
    for (size_t i = 0; i < b->heads.n; i++) {
        const st_book_head *h = &b->heads.v[i];

        put(out, (int64_t)strlen(h->account));
        st_strbuf_add(out, h->account);
        put(out, h->peaks->size);
        st_strbuf_addn(out, (const char *)h->chain.b, ST_HASH);
        for (int k = 0; k < LEAVES_BITS; k++)
            if (h->peaks->size >> k & 1)
                st_strbuf_addn(out, (const char *)h->peaks->peak[k].b, ST_HASH);
    }
}

static bool load_head(st_books *b, const char **at, const char *end)
{
    char name[ST_NAME_MAX + 1] = "";
    st_book_head *h;
    int64_t len, size;
    bool good = get(at, end, &len, sizeof len) && len >= 0 && len <= ST_NAME_MAX &&
                get(at, end, name, (size_t)len) && get(at, end, &size, sizeof size) && size >= 0;

    if (!good || st_map_get(b->ids, name, &len))
        return false;
    h = st_books_head(b, name);
    h->peaks->size = size;
    good = get(at, end, h->chain.b, ST_HASH);
    for (int k = 0; good && k < LEAVES_BITS; k++)
        if (size >> k & 1)
            good = get(at, end, h->peaks->peak[k].b, ST_HASH);
    return good;
}

int st_books_load(const char *data, size_t len, st_books *ret, st_err *err)
{
    const char *at = data, *end = data + len;
    st_books b;
    int64_t n = 0;
    bool good;

    st_books_init(&b);
    good = get(&at, end, &b.n, sizeof b.n) && get(&at, end, &b.last_ms, sizeof b.last_ms) &&
           get(&at, end, &b.signed_n, sizeof b.signed_n) &&
           get(&at, end, &b.signed_ms, sizeof b.signed_ms) && get(&at, end, &n, sizeof n);
    for (int64_t i = 0; good && i < n; i++)
        good = load_head(&b, &at, end);
    if (!good || at != end) {
        st_books_done(&b);
        return st_fail(err, ST_ECORRUPT, "the snapshot's books are damaged; restore a backup");
    }
    *ret = b;
    return 0;
}
