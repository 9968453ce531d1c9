/*
 * A set as one blob (series/series.h).
 *
 * One byte: 'P' plain or 'Z' packed with zstd, which is taken where it is shorter; other units have other letters. Then, as numbers of seven bits a byte:
 * how many rows; their ids, each less the one before; and for each column that any row has, from 1, its number, which
 * rows have it (0: all; 1: a bit each follows), and the values in the column's units, zigzag. A 0 ends the columns.
 * Values of one column stand together because they are alike.
 */
#include <string.h>
#include <zstd.h>

#include "base/mem.h"
#include "series/units.h"

#define LEVEL     3
#define ROWS_MAX  65536
#define PLAIN_MAX ((size_t)8 << 20)

enum { ALL_HAVE, SOME_HAVE };

static void put(st_strbuf *out, uint64_t v)
{
    char b[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        b[n++] = (char)(v | 0x80);
    b[n++] = (char)v;
    st_strbuf_addn(out, b, n);
}

static uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void put_column(st_series_kind kind, const st_series_set *set, int c, st_strbuf *out)
{
    int64_t unit = st_series_unit(kind, (st_series_column)c);
    size_t have = 0, n = set->rows.n;
    const st_series_row *rows = set->rows.v;

    for (size_t i = 0; i < n; i++)
        have += rows[i].has >> c & 1;
    if (have == 0)
        return;
    put(out, (uint64_t)c + 1);
    put(out, have == n ? ALL_HAVE : SOME_HAVE);
    for (size_t i = 0; have < n && i < n; i += 8) {
        unsigned bits = 0;

        for (size_t k = i; k < n && k < i + 8; k++)
            bits |= (rows[k].has >> c & 1) << (k - i);
        st_strbuf_addc(out, (char)bits);
    }
    for (size_t i = 0; i < n; i++)
        if (rows[i].has >> c & 1) {
            ST_ASSERT(rows[i].v[c] % unit == 0);
            put(out, zigzag(rows[i].v[c] / unit));
        }
}

void st_series_encode(st_series_kind kind, const st_series_set *set, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf plain = {0};
    uint64_t before = 0;
    size_t room, n;

    ST_ASSERT(set->rows.n <= ROWS_MAX);
    put(&plain, set->rows.n);
    for (size_t i = 0; i < set->rows.n; i++) {
        ST_ASSERT(i == 0 || set->rows.v[i].id > before);
        put(&plain, set->rows.v[i].id - before);
        before = set->rows.v[i].id;
    }
    for (int c = 0; c < ST_SERIES_COLUMNS; c++)
        put_column(kind, set, c, &plain);
    put(&plain, 0);
    room = ZSTD_compressBound(plain.n);
    ST_CLEANUP(st_freep) char *packed = st_xmalloc(room);
    n = ZSTD_compress(packed, room, plain.s, plain.n, LEVEL);
    if (ZSTD_isError(n) || n >= plain.n) {
        st_strbuf_addc(out, 'P');
        st_strbuf_addn(out, plain.s, plain.n);
    } else {
        st_strbuf_addc(out, 'Z');
        st_strbuf_addn(out, packed, n);
    }
}

/* ---- back --------------------------------------------------------------------------------------- */

typedef struct reader {
    const unsigned char *p;
    size_t n, at;
    bool bad; /* everything reads as 0 from here on */
} reader;

static uint64_t get(reader *r)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && r->at < r->n; shift += 7) {
        unsigned char b = r->p[r->at++];

        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
    r->bad = true;
    return 0;
}

static void get_ids(reader *r, st_series_set *ret)
{
    uint64_t n = get(r), id = 0;

    if (n > ROWS_MAX || n > r->n)
        r->bad = true;
    for (uint64_t i = 0; i < n && !r->bad; i++) {
        uint64_t step = get(r);

        if ((i > 0 && step == 0) || __builtin_add_overflow(id, step, &id))
            r->bad = true;
        st_vec_push(&ret->rows, (st_series_row){.id = id});
    }
}

static void get_column(reader *r, st_series_kind kind, uint64_t c, st_series_set *ret)
{
    uint64_t how = get(r);
    size_t bytes = how == SOME_HAVE ? (ret->rows.n + 7) / 8 : 0;
    const unsigned char *bits = r->p + r->at;
    int64_t unit;

    if (c >= ST_SERIES_COLUMNS || how > SOME_HAVE || bytes > r->n - r->at) {
        r->bad = true;
        return;
    }
    unit = st_series_unit(kind, (st_series_column)c);
    r->at += bytes;
    for (size_t i = 0; i < ret->rows.n && !r->bad; i++) {
        st_series_row *row = &ret->rows.v[i];

        if (how == SOME_HAVE && !(bits[i / 8] >> (i % 8) & 1))
            continue;
        if (__builtin_mul_overflow(unzigzag(get(r)), unit, &row->v[c]))
            r->bad = true;
        row->has |= 1u << c;
    }
}

static bool get_plain(reader *r, st_series_kind kind, st_series_set *ret)
{
    uint64_t last = 0, c;

    get_ids(r, ret);
    while (!r->bad && (c = get(r)) > 0) {
        if (c <= last) {
            r->bad = true;
            break;
        }
        last = c;
        get_column(r, kind, c - 1, ret);
    }
    return !r->bad && r->at == r->n;
}

int st_series_decode(st_series_kind kind, const void *data, size_t n, st_series_set *ret,
                     st_err *err)
{
    const unsigned char *p = data;
    ST_CLEANUP(st_freep) char *plain = NULL;
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};
    reader r = {.p = p + 1, .n = n > 0 ? n - 1 : 0};
    bool good = n > 0 && (p[0] == 'P' || p[0] == 'Z');

    if (good && p[0] == 'Z') {
        unsigned long long size = ZSTD_getFrameContentSize(r.p, r.n);

        good = size != ZSTD_CONTENTSIZE_UNKNOWN && size != ZSTD_CONTENTSIZE_ERROR && size > 0 &&
               size <= PLAIN_MAX;
        plain = good ? st_xmalloc((size_t)size) : NULL;
        good = good && ZSTD_decompress(plain, (size_t)size, r.p, r.n) == size;
        r = (reader){.p = (const unsigned char *)plain, .n = good ? (size_t)size : 0};
    }
    if (!good || !get_plain(&r, kind, &set))
        return st_fail(err, ST_ECORRUPT,
                       "a bucket of %s figures is damaged (%zu bytes); the figures of its time are "
                       "lost, nothing else is",
                       st_series_kind_word(kind), n);
    *ret = set;
    set = (st_series_set){0};
    return 0;
}
