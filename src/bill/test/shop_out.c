/* What leaves the shop: bill files and exports, for tests. */
#include <string.h>

#include "base/mem.h"
#include "bill/test/shop.h"

/* ---- which entries ----------------------------------------------------------------------------------- */

typedef ST_VEC(st_bill_mark) marks;

static void find_marks(const shop_book *b, marks *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();

    for (size_t i = 0; i < b->entries.n; i++) {
        st_entry e;

        st_arena_reset(arena);
        ST_ASSERT(st_entry_read(b->entries.v[i], strlen(b->entries.v[i]), arena, &e, NULL) == 0 ||
                  strstr(b->entries.v[i], "\"lines\""));
        if (strstr(b->entries.v[i], "\"lines\""))
            continue; /* tests put wrong numbers there */
        if (st_bill_marks(e.kind))
            st_vec_push(ret, (st_bill_mark){e.seq, e.kind, e.to_ms});
    }
}

static void find_ranges(const shop *s, const shop_book *b, const st_bill *bill, st_bill_ranges *ret)
{
    marks m = {0};

    find_marks(b, &m);
    if (shop_within(s, b->account, bill->account) || *b->account == '\0')
        st_billfile_ranges(bill, b->account, (int64_t)b->entries.n, m.v, m.n, ret);
    st_vec_free(&m);
}

/* ---- bill files --------------------------------------------------------------------------------------- */

typedef struct writer {
    shop *s;
    st_head *heads;
    st_checkpoint checkpoint;
    st_billfile *f;
    st_strbuf *out;
} writer;

static int by_account(const void *a, const void *b)
{
    const st_head *x = a, *y = b;

    return strcmp(x->account, y->account);
}

static void make_heads(writer *w)
{
    shop *s = w->s;

    w->heads = st_xcalloc(s->books.n, sizeof(*w->heads));
    for (size_t i = 0; i < s->books.n; i++) {
        const shop_book *b = s->books.v[i];
        st_head *h = &w->heads[i];
        st_peaks p = {0};

        memcpy(h->account, b->account, strlen(b->account) + 1);
        h->size = (int64_t)b->entries.n;
        for (size_t k = 0; k < b->leaves.n; k++) {
            st_peaks_add(&p, &b->leaves.v[k]);
            st_proof_chain(&h->chain, &b->leaves.v[k]);
        }
        st_peaks_root(&p, &h->root);
        st_head_salt(h, s->secret);
    }
    qsort(w->heads, s->books.n, sizeof(*w->heads), by_account);
}

static void write_range(writer *w, size_t head, int64_t from, int64_t to)
{
    const shop_book *b = shop_find(w->s, w->heads[head].account);
    st_hashes path = {0}, proof = {0};
    st_billfile_book book = {
        .head = &w->heads[head], .path = &path, .from = from, .to = to, .proof = &proof};
    st_err err;

    st_checkpoint_path(&w->checkpoint, w->heads, w->s->books.n, head, w->s->secret, &path,
                       &book.index);
    ST_ASSERT(st_proof_make(b->leaves.v, (int64_t)b->leaves.n, from, to, &proof, &err) == 0);
    st_billfile_add_book(w->f, &book, w->out);
    for (int64_t i = from; i < to; i++)
        st_billfile_add_entry(w->f, b->entries.v[i], strlen(b->entries.v[i]), w->out);
    st_vec_free(&path);
    st_vec_free(&proof);
}

static void write_books(writer *w, const st_bill *bill)
{
    for (size_t i = 0; i < w->s->books.n; i++) {
        st_bill_ranges ranges = {0};

        find_ranges(w->s, shop_find(w->s, w->heads[i].account), bill, &ranges);
        for (size_t k = 0; k < ranges.n; k++)
            write_range(w, i, ranges.v[k].from, ranges.v[k].to);
        st_vec_free(&ranges);
    }
}

void shop_bill(shop *s, const char *account, const char *period, st_strbuf *out)
{
    writer w = {.s = s, .out = out};
    st_bill bill;
    st_err err;

    ST_ASSERT(st_ledger_bill(s->ledger, account, period, &bill, &err) == 0);
    make_heads(&w);
    w.checkpoint = (st_checkpoint){.cluster = "corner shop", .at_ms = s->at_ms + 1};
    st_checkpoint_make(&w.checkpoint, w.heads, s->books.n, s->secret);
    st_checkpoint_sign(&w.checkpoint, s->key);
    w.f = st_billfile_new(
        &(st_billfile_made){
            .bill = &bill, .currency = "USD", .zone = "UTC", .checkpoint = &w.checkpoint},
        out);
    write_books(&w, &bill);
    st_billfile_end(w.f, s->key, out);
    st_bill_done(&bill);
    free(w.heads);
}

/* ---- exports -------------------------------------------------------------------------------------------- */

st_export_about shop_about(const shop *s)
{
    return (st_export_about){.cluster = "corner shop",
                             .currency = "USD",
                             .zone = "UTC",
                             .made_ms = s->at_ms,
                             .key = s->public};
}

void shop_entries(shop *s, const char *account, const char *period, shop_fn *fn, void *ctx)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_bill bill;
    st_err err;

    ST_ASSERT(st_ledger_bill(s->ledger, account, period, &bill, &err) == 0);
    for (size_t i = 0; i < bill.uses.n; i++) {
        const shop_book *b = shop_find(s, bill.uses.v[i].account);
        st_bill_ranges ranges = {0};

        find_ranges(s, b, &bill, &ranges); /* the last is the period */
        for (int64_t k = ranges.v[ranges.n - 1].from; k < ranges.v[ranges.n - 1].to; k++) {
            st_entry e;

            st_arena_reset(arena);
            ST_ASSERT(st_entry_read(b->entries.v[k], strlen(b->entries.v[k]), arena, &e, &err) ==
                      0);
            fn(ctx, &e);
        }
        st_vec_free(&ranges);
    }
    st_bill_done(&bill);
}

static void learn(void *ctx, const st_entry *e)
{
    st_focus_learn(ctx, e);
}

typedef struct focus_out {
    st_focus *f;
    st_strbuf *out;
} focus_out;

static void write_rows(void *ctx, const st_entry *e)
{
    focus_out *o = ctx;

    st_focus_rows(o->f, e, o->out);
}

void shop_focus(shop *s, const char *account, const char *period, st_strbuf *out)
{
    st_export_about about = shop_about(s);
    ST_CLEANUP(st_focus_freep) st_focus *f = NULL;
    st_bill bill;
    st_err err;

    ST_ASSERT(st_ledger_bill(s->ledger, account, period, &bill, &err) == 0);
    f = st_focus_new(&(st_focus_about){.about = &about,
                                       .ledger = s->ledger,
                                       .account = account,
                                       .period = bill.period,
                                       .closed = bill.closed,
                                       .chargeback = bill.chargeback});
    for (size_t i = 0; i < bill.uses.n; i++)
        st_focus_account(f, bill.uses.v[i].account, shop_find(s, bill.uses.v[i].account)->parent);
    shop_entries(s, account, period, learn, f);
    st_focus_head(out);
    shop_entries(s, account, period, write_rows, &(focus_out){f, out});
    st_bill_done(&bill);
}
