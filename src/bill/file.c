/* Writing a bill as a file that proves itself (bill/file.h). What is written is what the verifier checks;
 * nothing is computed here but checksums. */
#include "bill/file.h"

#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "bill/file_format.h"
#include "proof/strict.h"

struct st_billfile {
    const st_bill *bill;
    unsigned char sum[ST_BILLSUM];    /* of the last line */
    crypto_generichash_state content; /* all bytes so far */
    int64_t books, entries;
};

void st_billsum(const unsigned char before[ST_BILLSUM], const char *bytes, size_t len,
                unsigned char ret[ST_BILLSUM])
{
    static const unsigned char tag = ST_BILL_TAG_LINE;
    crypto_generichash_state state;
    st_hash h;

    crypto_generichash_init(&state, NULL, 0, ST_HASH);
    crypto_generichash_update(&state, &tag, 1);
    crypto_generichash_update(&state, before, ST_BILLSUM);
    crypto_generichash_update(&state, (const unsigned char *)bytes, len);
    crypto_generichash_final(&state, h.b, ST_HASH);
    memcpy(ret, h.b, ST_BILLSUM);
}

/* Ends the line that begins at `from` of out. */
static void end_line(st_billfile *f, st_strbuf *out, size_t from)
{
    st_billsum(f->sum, out->s + from, out->n - from, f->sum);
    st_strbuf_add(out, ",\"sum\":\"");
    st_hex_write(f->sum, ST_BILLSUM, out);
    st_strbuf_add(out, "\"}\n");
    crypto_generichash_update(&f->content, (const unsigned char *)out->s + from, out->n - from);
}

static void add_i64(st_strbuf *out, const char *key, int64_t v)
{
    st_strbuf_addf(out, ",\"%s\":%lld", key, (long long)v);
}

static void add_str(st_strbuf *out, const char *key, const char *text)
{
    st_strbuf_addf(out, ",\"%s\":", key);
    st_quote_json(out, text);
}

static void add_hex(st_strbuf *out, const char *key, const unsigned char *bytes, size_t n)
{
    st_strbuf_addf(out, ",\"%s\":\"", key);
    st_hex_write(bytes, n, out);
    st_strbuf_addc(out, '"');
}

static void add_hashes(st_strbuf *out, const char *key, const st_hashes *hashes)
{
    st_strbuf_addf(out, ",\"%s\":[", key);
    for (size_t i = 0; i < hashes->n; i++) {
        st_strbuf_add(out, i > 0 ? ",\"" : "\"");
        st_hex_write(hashes->v[i].b, ST_HASH, out);
        st_strbuf_addc(out, '"');
    }
    st_strbuf_addc(out, ']');
}

st_billfile *st_billfile_new(const st_billfile_made *made, st_strbuf *out)
{
    static const unsigned char tag = ST_BILL_TAG_FILE;
    const st_bill *bill = made->bill;
    st_billfile *f = st_xcalloc(1, sizeof(*f));
    size_t from = out->n;

    f->bill = bill;
    crypto_generichash_init(&f->content, NULL, 0, ST_HASH);
    crypto_generichash_update(&f->content, &tag, 1);

    st_strbuf_add(out, "{\"bill\":1");
    add_str(out, "account", bill->account);
    add_str(out, "period", bill->period.name);
    add_i64(out, "from", bill->period.from_ms);
    add_i64(out, "to", bill->period.to_ms);
    add_str(out, "zone", made->zone);
    add_str(out, "currency", made->currency);
    st_strbuf_addf(out, ",\"closed\":%s", bill->closed ? "true" : "false");
    st_strbuf_addf(out, ",\"chargeback\":%s", bill->chargeback ? "true" : "false");
    add_i64(out, "total", bill->total);
    add_i64(out, "lines", (int64_t)bill->lines.n);
    add_i64(out, "uses", (int64_t)bill->uses.n);
    end_line(f, out, from);

    from = out->n;
    st_strbuf_add(out, "{\"checkpoint\":");
    st_checkpoint_write(made->checkpoint, out);
    end_line(f, out, from);
    return f;
}

void st_billfile_add_book(st_billfile *f, const st_billfile_book *book, st_strbuf *out)
{
    const st_head *h = book->head;
    size_t from = out->n;

    st_strbuf_add(out, "{\"book\":");
    st_quote_json(out, h->account);
    add_i64(out, "size", h->size);
    add_hex(out, "root", h->root.b, ST_HASH);
    add_hex(out, "chain", h->chain.b, ST_HASH);
    add_hex(out, "salt", h->salt, sizeof(h->salt));
    add_i64(out, "index", book->index);
    add_hashes(out, "path", book->path);
    add_i64(out, "from", book->from);
    add_i64(out, "to", book->to);
    add_hashes(out, "proof", book->proof);
    end_line(f, out, from);
    f->books++;
}

void st_billfile_add_entry(st_billfile *f, const char *bytes, size_t len, st_strbuf *out)
{
    size_t from = out->n;

    st_strbuf_add(out, "{\"entry\":");
    st_strbuf_addn(out, bytes, len);
    end_line(f, out, from);
    f->entries++;
}

static void write_line(st_billfile *f, const st_bill_line *l, st_strbuf *out)
{
    size_t from = out->n;

    st_strbuf_add(out, "{\"line\":");
    st_quote_json(out, l->account);
    add_str(out, "what", st_component_name(l->what));
    add_str(out, "gpu", l->gpu);
    add_str(out, "level", st_level_name(l->level));
    add_i64(out, "quantity", l->quantity);
    add_i64(out, "amount", l->amount);
    add_i64(out, "rate", l->rate);
    add_i64(out, "factor", l->factor_bp);
    add_i64(out, "entries", l->entries);
    add_i64(out, "first", l->first_seq);
    add_i64(out, "last", l->last_seq);
    end_line(f, out, from);
}

static void write_use(st_billfile *f, const st_bill_use *u, st_strbuf *out)
{
    size_t from = out->n;

    st_strbuf_add(out, "{\"use\":");
    st_quote_json(out, u->account);
    add_i64(out, "first", u->first_seq);
    add_i64(out, "last", u->last_seq);
    add_i64(out, "reserved", u->reserved);
    add_i64(out, "guaranteed", u->guaranteed);
    add_i64(out, "burst", u->burst);
    add_i64(out, "on_demand", u->on_demand);
    add_i64(out, "booked", u->booked);
    add_i64(out, "seen", u->seen);
    add_i64(out, "busy", u->busy);
    add_i64(out, "energy", u->energy_mj);
    add_i64(out, "lost", u->lost);
    add_i64(out, "jobs", u->jobs);
    end_line(f, out, from);
}

void st_billfile_end(st_billfile *f, const unsigned char key[64], st_strbuf *out)
{
    unsigned char public[32], signature[crypto_sign_BYTES];
    crypto_generichash_state content;
    st_hash h;
    size_t from;

    for (size_t i = 0; i < f->bill->lines.n; i++)
        write_line(f, &f->bill->lines.v[i], out);
    for (size_t i = 0; i < f->bill->uses.n; i++)
        write_use(f, &f->bill->uses.v[i], out);

    from = out->n;
    content = f->content;
    crypto_generichash_final(&content, h.b, ST_HASH);
    crypto_sign_ed25519_sk_to_pk(public, key);
    st_strbuf_add(out, "{\"end\":1");
    add_i64(out, "books", f->books);
    add_i64(out, "entries", f->entries);
    add_hex(out, "hash", h.b, ST_HASH);
    add_hex(out, "key", public, sizeof(public));
    crypto_sign_detached(signature, NULL, (const unsigned char *)out->s + from, out->n - from, key);
    add_hex(out, "signature", signature, sizeof(signature));
    end_line(f, out, from);
    free(f);
}

/* ---- which entries --------------------------------------------------------------------------------- */

bool st_bill_marks(st_entry_kind kind)
{
    return kind == ST_ENTRY_ACCOUNT || kind == ST_ENTRY_CHILD || kind == ST_ENTRY_TERMS ||
           kind == ST_ENTRY_PLAN || kind == ST_ENTRY_BOOKING || kind == ST_ENTRY_CLOSE;
}

void st_billfile_ranges(const st_bill *bill, const char *account, int64_t size,
                        const st_bill_mark *marks, size_t n, st_bill_ranges *ret)
{
    int64_t from = 0, to = size;

    if (*account == '\0') {
        st_vec_push(ret, (st_bill_range){0, size});
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (marks[i].kind == ST_ENTRY_CLOSE && marks[i].to_ms == bill->period.from_ms)
            from = marks[i].seq - 1;
        if (marks[i].kind == ST_ENTRY_CLOSE && marks[i].to_ms == bill->period.to_ms)
            to = marks[i].seq;
    }
    for (size_t i = 0; i < n; i++)
        if (marks[i].kind != ST_ENTRY_CLOSE && marks[i].seq <= from)
            st_vec_push(ret, (st_bill_range){marks[i].seq - 1, marks[i].seq});
    st_vec_push(ret, (st_bill_range){from, to});
}
