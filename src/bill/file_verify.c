/* Verifying a bill file (bill/file.h): reading it, its checksums, hashes and signatures. Whether the money is
 * right is billcheck's.
 *
 * Checksums come first and over the whole file, so that damage is named where it is and not where it leads to. Of
 * what somebody has altered and summed up anew, arithmetic is looked at before hashes: it can often name the entry,
 * hashes only the range. */
#include "bill/file.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"
#include "bill/check.h"
#include "bill/file_format.h"
#include "bill/file_kept.h"
#include "proof/strict.h"

#define SIZE_MOST (INT64_C(1) << 60)       /* of a book */
#define TIME_MOST INT64_C(253402300800000) /* the year 10000 */

typedef struct verifier {
    const char *data, *end;
    const char *at; /* where the next line begins */
    st_strict s;    /* in the current one, up to its checksum */
    const char *line_from;
    st_verdict *v;
    st_arena *arena; /* for one entry */
    st_billcheck *check;

    st_billhead head;
    st_checkpoint checkpoint;
    int64_t books, entries;

    /* The range being read. */
    st_head book;
    int64_t from, to, index, book_line;
    st_hashes path, proof, leaves;
    st_billkept_list *kept; /* NULL: nothing is kept */
} verifier;

/* ---- lines ------------------------------------------------------------------------------------ */

/* Names in a message come from the file: no control characters, so that it stays one harmless line. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

/* Ends with a verdict: what is wrong, in the current line. */
static int wrong(verifier *r, const char *what)
{
    st_verdict *v = r->v;

    v->good = false;
    if (v->line > 0 && v->seq > 0)
        snprintf(v->what, sizeof(v->what), "line %lld, entry %lld of \"%s\": %s",
                 (long long)v->line, (long long)v->seq, v->account, what);
    else if (v->line > 0)
        snprintf(v->what, sizeof(v->what), "line %lld: %s", (long long)v->line, what);
    else
        snprintf(v->what, sizeof(v->what), "%s", what);
    make_plain(v->what);
    return -ST_ECORRUPT;
}

static int wrong_err(verifier *r, const st_err *err)
{
    return wrong(r, err->msg);
}

/* Goes to the next line, which is there and whole (check_sums has seen to it). False: there is none. */
static bool next_line(verifier *r)
{
    const char *newline;

    if (r->at == r->end)
        return false;
    newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
    ST_ASSERT(newline && newline - r->at >= ST_BILLSUM_TAIL);
    r->line_from = r->at;
    r->s = (st_strict){.at = r->at, .end = newline - ST_BILLSUM_TAIL};
    r->at = newline + 1;
    r->v->line++;
    r->v->seq = 0;
    return true;
}

/* Whether the next line begins like this. */
static bool next_is(const verifier *r, const char *text)
{
    size_t n = strlen(text);

    return (size_t)(r->end - r->at) >= n && memcmp(r->at, text, n) == 0;
}

static void rewind_to(verifier *r, const char *at, int64_t lines_before)
{
    r->at = at;
    r->v->line = lines_before;
}

static int check_sums(verifier *r)
{
    unsigned char sum[ST_BILLSUM] = {0}, written[ST_BILLSUM];

    if (r->at == r->end)
        return wrong(r, "the file is empty");
    while (r->at < r->end) {
        const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
        const char *from = r->at, *tail;
        st_strict s;

        r->v->line++;
        if (!newline)
            return wrong(r, "the line is cut off");
        r->at = newline + 1;
        if (newline - from < ST_BILLSUM_TAIL)
            return wrong(r, "altered: it does not end in a checksum");
        tail = newline - ST_BILLSUM_TAIL;
        s = (st_strict){.at = tail, .end = newline};
        st_strict_text(&s, ",\"sum\":\"");
        st_strict_hex(&s, written, ST_BILLSUM);
        st_strict_text(&s, "\"}");
        if (!st_strict_done(&s))
            return wrong(r, "altered: it does not end in a checksum");
        st_billsum(sum, from, (size_t)(tail - from), sum);
        if (memcmp(sum, written, ST_BILLSUM) != 0)
            return wrong(r, "altered, or a line is missing or moved: its checksum does not fit");
    }
    rewind_to(r, r->data, 0);
    return 0;
}

/* ---- fields ------------------------------------------------------------------------------------ */

static int64_t get_i64(verifier *r, const char *key)
{
    st_strict_text(&r->s, ",\"");
    st_strict_text(&r->s, key);
    st_strict_text(&r->s, "\":");
    return st_strict_i64(&r->s);
}

static void get_str(verifier *r, const char *key, char *ret, size_t cap)
{
    st_strict_text(&r->s, ",\"");
    st_strict_text(&r->s, key);
    st_strict_text(&r->s, "\":");
    st_strict_str(&r->s, ret, cap);
}

static bool get_bool(verifier *r, const char *key)
{
    st_strict_text(&r->s, ",\"");
    st_strict_text(&r->s, key);
    st_strict_text(&r->s, "\":");
    return st_strict_bool(&r->s);
}

static void get_hex(verifier *r, const char *key, unsigned char *ret, size_t n)
{
    st_strict_text(&r->s, ",\"");
    st_strict_text(&r->s, key);
    st_strict_text(&r->s, "\":\"");
    st_strict_hex(&r->s, ret, n);
    st_strict_text(&r->s, "\"");
}

static void get_hashes(verifier *r, const char *key, st_hashes *ret)
{
    st_vec_clear(ret);
    st_strict_text(&r->s, ",\"");
    st_strict_text(&r->s, key);
    st_strict_text(&r->s, "\":[");
    if (st_strict_is(&r->s, "]"))
        return;
    do {
        st_hash h;

        st_strict_text(&r->s, "\"");
        st_strict_hex(&r->s, h.b, ST_HASH);
        st_strict_text(&r->s, "\"");
        st_vec_push(ret, h);
    } while (st_strict_is(&r->s, ","));
    st_strict_text(&r->s, "]");
}

/* ---- head and checkpoint ----------------------------------------------------------------------- */

static bool is_moment(int64_t ms)
{
    return ms >= 0 && ms <= TIME_MOST;
}

static int read_head(verifier *r)
{
    st_billhead *h = &r->head;

    next_line(r);
    st_strict_text(&r->s, "{\"bill\":1");
    get_str(r, "account", h->account, sizeof(h->account));
    get_str(r, "period", h->period.name, sizeof(h->period.name));
    h->period.from_ms = get_i64(r, "from");
    h->period.to_ms = get_i64(r, "to");
    get_str(r, "zone", h->zone, sizeof(h->zone));
    get_str(r, "currency", h->currency, sizeof(h->currency));
    h->closed = get_bool(r, "closed");
    h->chargeback = get_bool(r, "chargeback");
    h->total = get_i64(r, "total");
    h->lines = get_i64(r, "lines");
    h->uses = get_i64(r, "uses");
    if (!st_strict_done(&r->s))
        return wrong(r, "not the head of a bill, or of a version that this program does not know");
    if (!is_moment(h->period.from_ms) || !is_moment(h->period.to_ms) ||
        h->period.from_ms >= h->period.to_ms)
        return wrong(r, "the period is no interval");
    snprintf(r->v->account, sizeof(r->v->account), "%s", h->account);
    snprintf(r->v->period, sizeof(r->v->period), "%s", h->period.name);
    r->v->total = h->total;
    return 0;
}

static int read_checkpoint(verifier *r, const unsigned char key[32])
{
    st_checkpoint *c = &r->checkpoint;
    st_err err = {0};

    if (!next_line(r))
        return wrong(r, "the checkpoint is missing behind it");
    st_strict_text(&r->s, "{\"checkpoint\":");
    if (r->s.bad)
        return wrong(r, "a checkpoint must stand here");
    if (st_checkpoint_read(r->s.at, (size_t)(r->s.end - r->s.at), c, &err) < 0)
        return wrong_err(r, &err);
    memcpy(r->v->key, c->key, sizeof(c->key));
    if (!st_checkpoint_valid(c))
        return wrong(r, "the checkpoint is not what was signed: its signature does not fit");
    if (key && memcmp(key, c->key, sizeof(c->key)) != 0)
        return wrong(r, "the checkpoint is signed by a key that is not the one you trust");
    return 0;
}

/* ---- books -------------------------------------------------------------------------------------- */

static int read_book(verifier *r)
{
    st_head before = r->book, *h = &r->book;
    int64_t before_to = r->to;
    int order;

    next_line(r);
    r->book_line = r->v->line;
    *h = (st_head){0};
    st_strict_text(&r->s, "{\"book\":");
    st_strict_str(&r->s, h->account, sizeof(h->account));
    h->size = get_i64(r, "size");
    get_hex(r, "root", h->root.b, ST_HASH);
    get_hex(r, "chain", h->chain.b, ST_HASH);
    get_hex(r, "salt", h->salt, sizeof(h->salt));
    r->index = get_i64(r, "index");
    get_hashes(r, "path", &r->path);
    r->from = get_i64(r, "from");
    r->to = get_i64(r, "to");
    get_hashes(r, "proof", &r->proof);
    if (!st_strict_done(&r->s))
        return wrong(r, "not a book");
    snprintf(r->v->account, sizeof(r->v->account), "%s", h->account);
    if (r->from < 0 || r->from > r->to || r->to > h->size || h->size > SIZE_MOST)
        return wrong(r, "the book has no such entries");
    order = r->books > 0 ? strcmp(before.account, h->account) : -1;
    if (order > 0)
        return wrong(r, "the books are not in order of account");
    if (order == 0 && (before.size != h->size || r->from < before_to))
        return wrong(r, "entries of the same book are there twice");
    r->books++;
    return 0;
}

static int read_entry(verifier *r, int64_t seq, st_entry *ret)
{
    st_err err = {0};
    st_hash leaf;
    size_t len;

    if (!next_is(r, "{\"entry\":")) {
        r->v->seq = seq;
        return wrong(r, "the entry is missing");
    }
    next_line(r);
    r->v->seq = seq;
    st_strict_text(&r->s, "{\"entry\":");
    len = (size_t)(r->s.end - r->s.at);
    st_arena_reset(r->arena);
    if (st_entry_read(r->s.at, len, r->arena, ret, &err) < 0)
        return wrong_err(r, &err);
    if (ret->seq != seq || strcmp(ret->account, r->book.account) != 0)
        return wrong(r, "this entry is of another place or another account's book");
    if (!is_moment(ret->at_ms) || !is_moment(ret->from_ms) || !is_moment(ret->to_ms))
        return wrong(r, "its moments are outside of all time");
    st_proof_leaf(r->s.at, len, &leaf);
    st_vec_push(&r->leaves, leaf);
    r->entries++;
    return 0;
}

/* That the entries of the range are in the book and the book is in the checkpoint. */
static int prove_range(verifier *r)
{
    st_err err = {0};
    st_hash root, chain = {0};

    r->v->line = r->book_line;
    r->v->seq = 0;
    if (st_proof_root(r->book.size, r->from, r->to, r->leaves.v, r->proof.v, r->proof.n, &root,
                      &err) < 0)
        return wrong_err(r, &err);
    if (memcmp(&root, &r->book.root, sizeof(root)) != 0) {
        snprintf(err.msg, sizeof(err.msg),
                 "entries %lld to %lld of \"%s\" that follow are not those of the book",
                 (long long)r->from + 1, (long long)r->to, r->book.account);
        return wrong_err(r, &err);
    }
    for (size_t i = 0; r->from == 0 && r->to == r->book.size && i < r->leaves.n; i++)
        st_proof_chain(&chain, &r->leaves.v[i]);
    if (r->from == 0 && r->to == r->book.size && memcmp(&chain, &r->book.chain, sizeof(chain)) != 0)
        return wrong(r, "the entries of this book do not make its chain");
    if (!st_checkpoint_has(&r->checkpoint, &r->book, r->index, r->path.v, r->path.n))
        return wrong(r, "this book is not in what the checkpoint has signed");
    return 0;
}

static void keep_range(const verifier *r)
{
    st_billkept k = {.head = r->book, .from = r->from, .to = r->to};

    for (size_t i = 0; i < r->leaves.n; i++)
        st_vec_push(&k.leaves, r->leaves.v[i]);
    for (size_t i = 0; i < r->proof.n; i++)
        st_vec_push(&k.proof, r->proof.v[i]);
    st_vec_push(&r->kept->list, k);
}

static st_billrange range_of(const verifier *r)
{
    return (st_billrange){
        .account = r->book.account, .from = r->from, .to = r->to, .size = r->book.size};
}

/* One round over all books: the first learns, the second checks. */
static int read_books(verifier *r, bool learn)
{
    st_err err = {0};
    st_entry e;

    r->books = r->entries = 0;
    while (next_is(r, "{\"book\":")) {
        st_billrange range;

        if (read_book(r) < 0)
            return -ST_ECORRUPT;
        range = range_of(r);
        if ((learn ? st_billcheck_learn_range : st_billcheck_range)(r->check, &range, &err) < 0)
            return wrong_err(r, &err);
        st_vec_clear(&r->leaves);
        for (int64_t seq = r->from + 1; seq <= r->to; seq++) {
            if (read_entry(r, seq, &e) < 0)
                return -ST_ECORRUPT;
            if ((learn ? st_billcheck_learn : st_billcheck_entry)(r->check, &e, &err) < 0)
                return wrong_err(r, &err);
        }
        if (learn)
            continue;
        if (st_billcheck_range_end(r->check, &err) < 0) {
            r->v->line = r->book_line;
            r->v->seq = 0;
            return wrong_err(r, &err);
        }
        int64_t line = r->v->line;

        if (prove_range(r) < 0)
            return -ST_ECORRUPT;
        r->v->line = line;
        if (r->kept)
            keep_range(r);
    }
    return 0;
}

/* ---- lines, uses, end --------------------------------------------------------------------------- */

static int read_line(verifier *r)
{
    char what[16], gpu[ST_NAME_MAX + 1], level[16];
    st_bill_line l = {.account = r->v->account, .gpu = gpu};
    st_err err = {0};
    int component;

    if (!next_line(r))
        return wrong(r, "a line of the bill is missing behind it");
    st_strict_text(&r->s, "{\"line\":");
    st_strict_str(&r->s, r->v->account, sizeof(r->v->account));
    get_str(r, "what", what, sizeof(what));
    get_str(r, "gpu", gpu, sizeof(gpu));
    get_str(r, "level", level, sizeof(level));
    l.quantity = get_i64(r, "quantity");
    l.amount = get_i64(r, "amount");
    l.rate = get_i64(r, "rate");
    l.factor_bp = get_i64(r, "factor");
    l.entries = get_i64(r, "entries");
    l.first_seq = get_i64(r, "first");
    l.last_seq = get_i64(r, "last");
    component = st_component_parse(what);
    l.level = ST_LEVEL_COUNT;
    for (int i = 0; i < ST_LEVEL_COUNT; i++)
        if (strcmp(level, st_level_name((st_level)i)) == 0)
            l.level = (st_level)i;
    if (!st_strict_done(&r->s) || component < 0 || l.level == ST_LEVEL_COUNT)
        return wrong(r, "not a line of a bill");
    l.what = (st_component)component;
    return st_billcheck_line(r->check, &l, &err) < 0 ? wrong_err(r, &err) : 0;
}

static int read_use(verifier *r)
{
    st_bill_use u = {.account = r->v->account};
    st_err err = {0};

    if (!next_line(r))
        return wrong(r, "the utilisation of an account is missing behind it");
    st_strict_text(&r->s, "{\"use\":");
    st_strict_str(&r->s, r->v->account, sizeof(r->v->account));
    u.first_seq = get_i64(r, "first");
    u.last_seq = get_i64(r, "last");
    u.reserved = get_i64(r, "reserved");
    u.guaranteed = get_i64(r, "guaranteed");
    u.burst = get_i64(r, "burst");
    u.on_demand = get_i64(r, "on_demand");
    u.booked = get_i64(r, "booked");
    u.seen = get_i64(r, "seen");
    u.busy = get_i64(r, "busy");
    u.energy_mj = get_i64(r, "energy");
    u.lost = get_i64(r, "lost");
    u.jobs = get_i64(r, "jobs");
    if (!st_strict_done(&r->s))
        return wrong(r, "not the utilisation of an account");
    return st_billcheck_use(r->check, &u, &err) < 0 ? wrong_err(r, &err) : 0;
}

static int read_lines(verifier *r)
{
    st_err err = {0};

    for (int64_t i = 0; i < r->head.lines; i++)
        if (read_line(r) < 0)
            return -ST_ECORRUPT;
    for (int64_t i = 0; i < r->head.uses; i++)
        if (read_use(r) < 0)
            return -ST_ECORRUPT;
    snprintf(r->v->account, sizeof(r->v->account), "%s", r->head.account);
    if (st_billcheck_end(r->check, &err) < 0) {
        r->v->line = 1;
        return wrong_err(r, &err);
    }
    return 0;
}

static int read_end(verifier *r)
{
    static const unsigned char tag = ST_BILL_TAG_FILE;
    unsigned char key[32] = {0}, signature[crypto_sign_BYTES] = {0};
    crypto_generichash_state state;
    st_hash written = {0}, content;
    int64_t books, entries;
    size_t signed_len;

    if (!next_line(r))
        return wrong(r, "the end of the file is missing behind it");
    st_strict_text(&r->s, "{\"end\":1");
    books = get_i64(r, "books");
    entries = get_i64(r, "entries");
    get_hex(r, "hash", written.b, ST_HASH);
    get_hex(r, "key", key, sizeof(key));
    signed_len = (size_t)(r->s.at - r->line_from);
    get_hex(r, "signature", signature, sizeof(signature));
    if (!st_strict_done(&r->s))
        return wrong(r, "not the end of a bill");
    if (r->at != r->end)
        return wrong(r, "there is more behind the end");
    if (books != r->books || entries != r->entries)
        return wrong(r, "books or entries were added or removed");
    crypto_generichash_init(&state, NULL, 0, ST_HASH);
    crypto_generichash_update(&state, &tag, 1);
    crypto_generichash_update(&state, (const unsigned char *)r->data,
                              (size_t)(r->line_from - r->data));
    crypto_generichash_final(&state, content.b, ST_HASH);
    if (memcmp(&content, &written, sizeof(content)) != 0)
        return wrong(r, "something above was altered and its checksums made anew");
    if (memcmp(key, r->checkpoint.key, sizeof(key)) != 0)
        return wrong(r, "the file is signed by another key than its checkpoint");
    if (crypto_sign_verify_detached(signature, (const unsigned char *)r->line_from, signed_len,
                                    key) != 0)
        return wrong(r, "altered: the signature does not fit");
    return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static void well_done(verifier *r, bool known)
{
    st_verdict *v = r->v;
    const long long accounts = (long long)st_billcheck_accounts(r->check);
    char total[ST_MONEY_MAX], owed[ST_MONEY_MAX], from[ST_UTC_MAX], to[ST_UTC_MAX];
    int64_t from_ms, to_ms;
    size_t n;

    v->owed = st_billcheck_owed(r->check);
    v->good = true;
    v->line = v->seq = 0;
    v->entries = r->entries;
    snprintf(v->account, sizeof(v->account), "%s", r->head.account);
    snprintf(
        v->what, sizeof(v->what),
        "the %s bill of %s%s%s for %s is right: %s %s, of which %s is to be paid. %lld entries of "
        "%lld account%s are in the "
        "books as they were signed%s, none is missing between them, every posting follows from "
        "usage, prices and terms, and lines and total are their sums",
        r->head.closed ? "final" : "running", r->head.account[0] ? "\"" : "all accounts",
        r->head.account, r->head.account[0] ? "\"" : "", r->head.period.name,
        st_money(total, r->head.total), r->head.currency, st_money(owed, v->owed),
        (long long)r->entries, accounts, accounts == 1 ? "" : "s",
        known ? "" : " (by a key that you have not said you trust)");
    n = strlen(v->what);
    if (st_billcheck_voids(r->check, &from_ms, &to_ms))
        snprintf(v->what + n, sizeof(v->what) - n,
                 ". The books were restored on %s from a backup of %s: a bill for this month that "
                 "was made in between is void",
                 st_utc(to, to_ms), st_utc(from, from_ms));
}

static int verify(verifier *r, const unsigned char key[32])
{
    const char *books;
    int64_t lines;
    st_err err = {0};

    if (check_sums(r) < 0 || read_head(r) < 0 || read_checkpoint(r, key) < 0)
        return -ST_ECORRUPT;
    r->check = st_billcheck_new(&r->head);
    books = r->at;
    lines = r->v->line;
    if (read_books(r, true) < 0)
        return -ST_ECORRUPT;
    if (st_billcheck_learned(r->check, &err) < 0) { /* what is missing has no line of its own */
        r->v->line = 1;
        r->v->seq = 0;
        return wrong_err(r, &err);
    }
    rewind_to(r, books, lines);
    if (read_books(r, false) < 0 || read_lines(r) < 0)
        return -ST_ECORRUPT;
    return read_end(r);
}

void st_billfile_read(const char *data, size_t len, const unsigned char key[32], st_verdict *ret,
                      st_billkept_list *kept)
{
    const char *from = data ? data : "";
    verifier r = {.data = from, .at = from, .end = from + (data ? len : 0), .v = ret, .kept = kept};

    *ret = (st_verdict){0};
    r.arena = st_arena_new();
    if (verify(&r, key) == 0)
        well_done(&r, key != NULL);
    if (kept)
        kept->checkpoint = r.checkpoint;
    st_billcheck_free(r.check);
    st_arena_free(r.arena);
    st_vec_free(&r.path);
    st_vec_free(&r.proof);
    st_vec_free(&r.leaves);
}

void st_billkept_done(st_billkept_list *kept)
{
    for (size_t i = 0; i < kept->list.n; i++) {
        st_vec_free(&kept->list.v[i].leaves);
        st_vec_free(&kept->list.v[i].proof);
    }
    st_vec_free(&kept->list);
}

void st_billfile_verify(const char *data, size_t len, const unsigned char key[32], st_verdict *ret)
{
    st_billfile_read(data, len, key, ret, NULL);
}
