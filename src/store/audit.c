/*
 * audit: who did what, each row sealed by a hash over itself and the row before it.
 *
 *   hash = BLAKE2b-256(hash before || seq || at_ms || actor || account || source || verb || target
 *                      || detail)
 *
 * with numbers as 8 bytes, lowest first, and texts as their length in 8 bytes and then themselves.
 * The hash before row 1 is all zeros. meta has the head, "SEQ HEX", which is where the next row is
 * hung: rows cut off the end are missed there, and a row hung behind them does not close the gap.
 */
#include <endian.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "store/list.h"

#define HEAD_KEY "audit_head"

typedef struct head {
    int64_t seq;
    unsigned char hash[ST_AUDIT_HASH];
} head;

static void hash_number(crypto_generichash_state *s, int64_t v)
{
    uint64_t le = htole64((uint64_t)v);

    crypto_generichash_update(s, (const unsigned char *)&le, sizeof(le));
}

static void hash_text(crypto_generichash_state *s, const char *text)
{
    size_t n = strlen(text);

    hash_number(s, (int64_t)n);
    crypto_generichash_update(s, (const unsigned char *)text, n);
}

static void chain(const head *before, const st_audit_row *row, unsigned char *ret)
{
    crypto_generichash_state s;

    crypto_generichash_init(&s, NULL, 0, ST_AUDIT_HASH);
    crypto_generichash_update(&s, before->hash, ST_AUDIT_HASH);
    hash_number(&s, before->seq + 1);
    hash_number(&s, row->at_ms);
    hash_text(&s, row->actor);
    hash_text(&s, row->account);
    hash_text(&s, row->source);
    hash_text(&s, row->verb);
    hash_text(&s, row->target);
    hash_text(&s, row->detail);
    crypto_generichash_final(&s, ret, ST_AUDIT_HASH);
}

/* ---- the head --------------------------------------------------------------------------- */

static int read_head(st_store *store, head *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *a = st_arena_new();
    const char *text, *hex;
    char *end;
    size_t n;
    int r = st_store_meta_get(store, HEAD_KEY, a, &text, err);

    memset(ret, 0, sizeof(*ret));
    if (r == -ST_ENOENT)
        return 0;
    if (r < 0)
        return r;
    ret->seq = strtoll(text, &end, 10);
    hex = *end == ' ' ? end + 1 : end;
    if (ret->seq < 1 || ret->seq == INT64_MAX || strlen(hex) != 2 * (size_t)ST_AUDIT_HASH ||
        sodium_hex2bin(ret->hash, sizeof(ret->hash), hex, strlen(hex), NULL, &n, NULL) != 0 ||
        n != sizeof(ret->hash))
        return st_fail(err, ST_ECORRUPT,
                       "the head of the audit log is unreadable; the store is damaged, restore the "
                       "last backup");
    return 0;
}

static int write_head(st_store *store, const head *h, st_err *err)
{
    char text[24 + 2 * ST_AUDIT_HASH + 1];
    int n = snprintf(text, sizeof(text), "%lld ", (long long)h->seq);

    sodium_bin2hex(text + n, sizeof(text) - (size_t)n, h->hash, ST_AUDIT_HASH);
    return st_store_meta_put(store, HEAD_KEY, text, err);
}

/* ---- appending -------------------------------------------------------------------------- */

static int append(st_store *store, const st_audit_row *given, int64_t *ret_seq, st_err *err)
{
    st_audit_row row = *given;
    head before, now;
    int r = read_head(store, &before, err);

    if (r < 0)
        return r;
    now.seq = row.seq = before.seq + 1;
    chain(&before, &row, now.hash);
    row.hash = (st_bytes){.p = now.hash, .n = sizeof(now.hash)};
    r = st_sql_one_row(store, ST_SQL_AUDIT_APPEND, &row, err);
    if (r < 0)
        return r;
    if (r > 0)
        return st_fail(err, ST_ECORRUPT,
                       "the audit log has a row %lld behind its end; the store is damaged, restore "
                       "the last backup",
                       (long long)row.seq);
    r = write_head(store, &now, err);
    if (r == 0 && ret_seq)
        *ret_seq = row.seq;
    return r;
}

int st_store_audit_append(st_store *store, const st_audit_row *row, int64_t *ret_seq, st_err *err)
{
    bool own = false;
    int r = st_sql_may_write(store, err);

    if (r == 0)
        r = st_sql_begin(store, &own, err);
    return r < 0 ? r : st_sql_end(store, own, append(store, row, ret_seq, err), err);
}

/* ---- verifying -------------------------------------------------------------------------- */

typedef struct verify_ctx {
    head at;
    st_audit_verdict *verdict;
} verify_ctx;

static int bad(st_audit_verdict *v, int64_t seq, const char *why)
{
    v->bad_seq = seq;
    snprintf(v->why, sizeof(v->why), "row %lld %s", (long long)seq, why);
    return 1;
}

static int verify_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    verify_ctx *c = ctx;
    unsigned char hash[ST_AUDIT_HASH];
    st_audit_row row;
    int r = st_shape_read(&st_shape_audit, cols, n, &row, err);

    if (r < 0)
        return r;
    if (row.seq != c->at.seq + 1)
        return row.seq <= 0 ? bad(c->verdict, 1, "is not the first, something is before it")
                            : bad(c->verdict, c->at.seq + 1, "is missing");
    chain(&c->at, &row, hash);
    if (row.hash.n != sizeof(hash) || memcmp(row.hash.p, hash, sizeof(hash)) != 0)
        return bad(c->verdict, row.seq, "was changed: its hash is not that of its contents");
    c->at.seq = row.seq;
    memcpy(c->at.hash, hash, sizeof(hash));
    return 0;
}

static int verify(st_store *store, st_audit_verdict *v, st_err *err)
{
    verify_ctx c = {.verdict = v};
    head end;
    int r = read_head(store, &end, err);

    if (r == 0)
        r = st_sql_query(store, ST_SQL_AUDIT_ALL, ST_NO_PARAMS, verify_row, &c, err);
    if (r < 0)
        return r;
    v->rows = c.at.seq;
    memcpy(v->head, c.at.hash, sizeof(v->head));
    if (v->bad_seq)
        return 0;
    if (c.at.seq < end.seq)
        bad(v, c.at.seq + 1, "is missing at the end");
    else if (c.at.seq > end.seq)
        bad(v, end.seq + 1, "is behind the recorded end");
    else if (memcmp(c.at.hash, end.hash, sizeof(end.hash)) != 0)
        bad(v, c.at.seq, "is not the recorded end");
    return 0;
}

int st_store_audit_verify(st_store *store, st_audit_verdict *ret, st_err *err)
{
    st_audit_verdict v = {0};
    bool own;
    int r = st_sql_begin(store, &own, err);

    if (r < 0)
        return r;
    r = st_sql_end(store, own, verify(store, &v, err), err);
    if (r == 0)
        *ret = v;
    return r;
}

/* ---- listing ---------------------------------------------------------------------------- */

typedef struct list_ctx {
    st_audit_fn fn;
    void *ctx;
} list_ctx;

static int list_row(void *ctx, const st_val *cols, size_t n, st_err *err)
{
    const list_ctx *l = ctx;
    st_audit_row row;
    int r = st_shape_read(&st_shape_audit, cols, n, &row, err);

    return r < 0 ? r : l->fn(l->ctx, &row, err);
}

/* AND the column begins with the word and the mark; `text` keeps the bounds, which differ in their last byte. */
static void where_begins(st_list *l, const char *column, const char *word, char mark,
                         st_strbuf *text)
{
    size_t n = strlen(word) + 1;

    st_strbuf_addf(text, "%s%c%c%s%c", word, mark, '\0', word, mark + 1);
    st_list_where(l, column, " >= ", (st_val){.kind = ST_VAL_TEXT, .p = text->s, .n = n});
    st_list_where(l, column, " < ", (st_val){.kind = ST_VAL_TEXT, .p = text->s + n + 1, .n = n});
}

int st_store_audit_list(st_store *store, const st_audit_filter *f, st_audit_fn fn, void *ctx,
                        st_err *err)
{
    list_ctx c = {.fn = fn, .ctx = ctx};
    ST_CLEANUP(st_list_done) st_list l;
    ST_CLEANUP(st_strbuf_done) st_strbuf from = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf to = {0};

    st_list_init(&l, &st_shape_audit, "seq");
    l.within = f->within;
    l.before = f->before_seq;
    l.limit = f->limit;
    if (f->by)
        where_begins(&l, "actor", f->by, ' ', &from);
    if (f->what && strchr(f->what, '.'))
        st_list_where(&l, "verb", " = ", st_val_text(f->what));
    else if (f->what)
        where_begins(&l, "verb", f->what, '.', &to);
    if (f->since_ms > 0)
        st_list_where(&l, "at_ms", " >= ", st_val_i64(f->since_ms));
    if (f->until_ms > 0)
        st_list_where(&l, "at_ms", " < ", st_val_i64(f->until_ms));
    return st_list_rows(&l, store, list_row, &c, err);
}
