/*
 * Looking at a whole store (st_control_check): the core against the tables beside it, usage against the books, every
 * book's chain, every checkpoint, and the ledger against what the books add up to.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "billing/billing.h"
#include "control/state.h"

#define SAME_MAX 20 /* findings of one kind */

/* A signature that holds. */
typedef struct point {
    int64_t n;
    st_hash root;
    int depth;
} point;

typedef struct check {
    st_finding_fn fn;
    void *ctx;
    int64_t n;

    ST_VEC(char *) played; /* what playing the log gave, without what only the ledger knows */
    size_t next;
    int64_t differ;

    const st_billing *b;
    st_ledger *ledger; /* folded from the start */
    st_books books;
    st_keys keys;
    bool has_keys;
    ST_VEC(point) points;
    size_t point;
} check;

static void found(check *c, const char *fmt, ...) ST_PRINTF(2, 3);

static void found(check *c, const char *fmt, ...)
{
    char sentence[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    c->n++;
    c->fn(c->ctx, sentence);
}

/* ---- usage ---------------------------------------------------------------------------------------------- */

static bool is_usage(st_entry_kind kind)
{
    return kind == ST_ENTRY_USAGE || kind == ST_ENTRY_RESERVE || kind == ST_ENTRY_FIX ||
           kind == ST_ENTRY_LOST || kind == ST_ENTRY_FLEET;
}

/* The part of an entry that is the meter's. */
static char *plain(const st_entry *from)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_entry e = *from;

    e.seq = e.at_ms = e.fixes = 0;
    e.capped = e.charged = e.credited = e.amount = 0;
    e.nlines = 0;
    e.workload = e.priority_class = e.name = e.labels = e.booking = NULL;
    st_entry_write(&e, &out);
    return st_strbuf_take(&out);
}

static void see_row(void *ctx, st_control *ctl)
{
    check *c = ctx;
    const st_billing *b = ctl->billing;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();

    for (size_t i = 0; i < b->records.n; i++) {
        const st_record *rec = &b->records.v[i];
        st_entry e;

        if (rec->kind != ST_REC_FLEET && rec->account <= ST_ROOT)
            continue;
        st_entry_of(ctl, rec, NULL, arena, &e);
        st_vec_push(&c->played, plain(&e));
    }
}

static void compare(check *c, const st_book_row *row, const st_entry *e)
{
    ST_CLEANUP(st_freep) char *have = NULL;

    if (row->n <= c->b->snap_n || !is_usage(e->kind))
        return;
    if (e->kind == ST_ENTRY_LOST && e->reason)
        return; /* follows from a correction, not from the meter */
    have = plain(e);
    if (c->next >= c->played.n)
        found(c, "books: entry %" PRId64 " (%s) is not what the log gives: it gives nothing there",
              row->n, st_entry_kind_name(e->kind));
    else if (strcmp(have, c->played.v[c->next]) != 0 && ++c->differ <= SAME_MAX)
        found(c, "books: entry %" PRId64 " says %.250s where the log gives %.250s", row->n, have,
              c->played.v[c->next]);
    c->next++;
}

/* ---- books ------------------------------------------------------------------------------------------------ */

static void check_point(check *c, int64_t n)
{
    st_checkpoint again = {0};
    st_head *heads;

    for (; c->point < c->points.n && c->points.v[c->point].n == n; c->point++) {
        const point *p = &c->points.v[c->point];

        if (!c->has_keys)
            continue;
        size_t nheads = st_books_heads(&c->books, &c->keys, &heads);
        st_checkpoint_make(&again, heads, nheads, c->keys.secret);
        free(heads);
        if (again.depth != p->depth || memcmp(again.root.b, p->root.b, ST_HASH) != 0)
            found(c,
                  "books: what was signed up to entry %" PRId64 " is not what the books say; an "
                  "entry before it was changed, or another key was in use",
                  n);
    }
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static int check_entry(void *ctx, const st_book_row *row, st_err *err)
{
    check *c = ctx;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    size_t len = strlen(row->data);
    st_hash chain;
    st_entry e;
    st_err why = {0};
    bool good = st_entry_read(row->data, len, arena, &e, &why) == 0;

    (void)err;
    st_books_add(&c->books, row->account, row->at_ms, row->data, len, &chain);
    if (row->chain.n != ST_HASH || memcmp(chain.b, row->chain.p, ST_HASH) != 0) {
        found(c,
              "books: entry %" PRId64 " (number %" PRId64
              " of account \"%s\") was changed: its hash "
              "is not that of its contents",
              row->n, row->seq, row->account);
        return 1; /* all that follow differ as well */
    }
    if (good &&
        (!same_text(e.account, row->account) || e.seq != row->seq || e.at_ms != row->at_ms ||
         !same_text(e.job, row->job) || !same_text(st_ledger_period(c->ledger)->name, row->period)))
        good = st_fail(&why, ST_ECORRUPT, "its row says something else than its contents") == 0;
    if (good)
        good = st_billing_apply(c->b, c->ledger, &e, &why) == 0;
    if (!good) {
        found(c, "books: entry %" PRId64 " (number %" PRId64 " of account \"%s\"): %s", row->n,
              row->seq, row->account, why.msg);
        return 1;
    }
    compare(c, row, &e);
    check_point(c, row->n);
    return 0;
}

static int load_point(void *ctx, const st_checkpoint_row *row, st_err *err)
{
    check *c = ctx;
    st_checkpoint p;
    st_err why = {0};

    (void)err;
    if (st_checkpoint_read(row->data, strlen(row->data), &p, &why) < 0 || p.at_ms != row->at_ms)
        found(c, "books: the checkpoint after entry %" PRId64 " is damaged", row->n);
    else if (!st_checkpoint_valid(&p))
        found(c, "books: the signature after entry %" PRId64 " does not hold", row->n);
    else if (c->has_keys && memcmp(p.key, c->keys.key + 32, sizeof p.key) != 0)
        found(c, "books: what follows entry %" PRId64 " is signed with another key", row->n);
    else
        st_vec_push(&c->points, (point){row->n, p.root, p.depth});
    return 0;
}

/* The ledger as it is used is the snapshot's and what came behind; it must be what all entries give. */
static void check_ledger(check *c, const st_control *ctl)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf now = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};

    if (!ctl->billing->ledger)
        return; /* loading ended before it, and was told */
    st_ledger_save(ctl->billing->ledger, &now);
    st_ledger_save(c->ledger, &again);
    if (now.n != again.n || memcmp(now.s, again.s, now.n) != 0)
        found(c, "books: the snapshot's ledger is not what the books add up to");
    if (st_ledger_sum(c->ledger) != 0)
        found(c, "books: what all accounts have does not add up to nothing");
}

static int check_books(check *c, const st_control *ctl, st_err *err)
{
    st_store *store = ctl->store;
    int64_t before = c->n, last = 0;
    int r = st_billing_first(ctl->billing, store, &c->ledger, err);

    if (r == 0)
        r = st_store_checkpoints(store, 1, load_point, c, err);
    if (r == 0)
        r = st_store_book_read(store, 1, INT64_MAX, check_entry, c, err);
    if (r == 0)
        r = st_store_book_last(store, &last, err);
    if (r < 0 || c->n > before)
        return r;
    if (c->next != c->played.n)
        found(c, "books: the log gives %zu records of usage since the snapshot, the books have %zu",
              c->played.n, c->next);
    if (c->point < c->points.n)
        found(c, "books: entries up to %" PRId64 " were signed, there are %" PRId64,
              c->points.v[c->points.n - 1].n, last);
    check_ledger(c, ctl);
    return 0;
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static void open_keys(check *c, const st_store *store, const char *given)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_err err = {0};

    st_keys_path(store, given, &path);
    c->has_keys = st_keys_read(st_strbuf_str(&path), &c->keys, &err) == 0;
    if (!c->has_keys)
        found(c, "books: %s", err.msg);
}

int st_control_check(st_store *store, const char *key, st_finding_fn fn, void *ctx, int64_t *ret_n,
                     st_err *err)
{
    ST_CLEANUP(st_control_free_copyp) st_control *ctl = NULL;
    check c = {.fn = fn, .ctx = ctx};
    st_err why = {0};
    int r = st_control_open_copy(store, &ctl, &why);

    (void)err;
    st_books_init(&c.books);
    if (r == 0) {
        ctl->billing->witness = see_row;
        ctl->billing->witness_ctx = &c;
        c.b = ctl->billing;
        r = st_control_load(ctl, &why);
    }
    if (r < 0)
        found(&c, "%s", why.msg);
    /* A store in which metering has not begun has no books to look at. */
    if (ctl && ctl->billing && (r < 0 || ctl->billing->meter)) {
        open_keys(&c, store, key);
        if (ctl->billing->zones.n > 0 && check_books(&c, ctl, &why) < 0)
            found(&c, "%s", why.msg);
    }
    for (size_t i = 0; i < c.played.n; i++)
        free(c.played.v[i]);
    st_vec_free(&c.played);
    st_vec_free(&c.points);
    st_books_done(&c.books);
    st_ledger_free(c.ledger);
    *ret_n += c.n;
    return 0;
}
