/*
 * Credits by a person: given with a reason, taken back by naming them, and where the site wants that only by two owners.
 *
 * Invariants: 1. A credit is taken back once: which were is in the store's meta, written with the entry. 2. What needs a second
 * owner is not posted before one who is somebody else has asked for the very same.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "billing/billing.h"

#define KIND "credit"

/* ---- what a credit is measured by --------------------------------------------------------------- */

static void add_own(void *ctx, const st_entry *e)
{
    int64_t *sum = ctx;

    for (int i = 0; i < e->nlines; i++)
        *sum += e->lines[i].amount;
}

/* What the account, without those below it, was charged in all, less what it was credited; what runs counts. */
static int owed_by(st_tx *tx, const st_cmd_credit *c, const char *book, int64_t *ret, st_err *err)
{
    int64_t balance, running = 0;
    int r = st_ledger_balance(tx->ctl->billing->ledger, book, &balance, err);

    if (r == 0)
        r = st_tx_open_own(tx, c->account, add_own, &running, err);
    *ret = running - balance;
    return r;
}

static int check_size(st_tx *tx, const st_cmd_credit *c, const char *book, st_err *err)
{
    char given[ST_MONEY_MAX], had[ST_MONEY_MAX];
    int64_t owed;
    int r = owed_by(tx, c, book, &owed, err);

    if (r < 0 || c->confirmed || c->amount_udollars <= owed)
        return r;
    return st_fail(err, ST_ESTATE,
                   "a credit of %s is more than account %s was charged, which is %s after the "
                   "credits it has; if that is meant, confirm it (`confirm`, or --yes)",
                   st_money(given, c->amount_udollars), c->account, st_money(had, ST_MAX(owed, 0)));
}

/* ---- taking one back ------------------------------------------------------------------------------ */

typedef struct found {
    st_arena *arena;
    st_entry e;
    bool there;
} found;

static int find_row(void *ctx, const st_book_row *row, st_err *err)
{
    found *f = ctx;
    const char *data = st_arena_strdup(f->arena, row->data);

    f->there = true;
    return st_entry_read(data, strlen(data), f->arena, &f->e, err);
}

static void reversed_key(const char *book, int64_t seq, st_strbuf *out)
{
    st_strbuf_addf(out, "credit_reversed %s %" PRId64, book, seq);
}

/* Makes amount and entry of a reversal. */
static int find_credit(st_tx *tx, st_cmd_credit *c, const char *book, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    found f = {.arena = arena};
    const char *by;
    st_err none;
    int r = st_store_book_of(tx->ctl->store, book, c->reverse, c->reverse, find_row, &f, err);

    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (!f.there || f.e.kind != ST_ENTRY_CREDIT || f.e.amount <= 0)
        return st_fail(err, ST_ENOENT, "entry %" PRId64 " of account %s is no credit", c->reverse,
                       c->account);
    reversed_key(book, c->reverse, &key);
    r = st_store_meta_get(tx->ctl->store, key.s, arena, &by, &none);
    if (r == 0)
        return st_fail(err, ST_ESTATE,
                       "credit %" PRId64 " of account %s was taken back by entry %s", c->reverse,
                       c->account, by);
    c->amount_udollars = -f.e.amount;
    c->fixes = c->reverse;
    return r == -ST_ENOENT ? 0 : st_tx_fault(tx, r, &none);
}

static int note_reversed(st_tx *tx, const st_cmd_credit *c, const char *book, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    char seq[32];

    reversed_key(book, c->reverse, &key);
    snprintf(seq, sizeof seq, "%" PRId64, c->seq);
    return st_tx_fault(tx, st_store_meta_put(tx->ctl->store, key.s, seq, err), err);
}

/* ---- two owners ------------------------------------------------------------------------------------- */

/* The same account, amount, entry and reason have the same name. */
static void pending_name(const st_cmd_credit *c, char ret[17])
{
    uint64_t h = st_hash_str(1, c->account);

    h = st_hash_u64(h, (uint64_t)c->amount_udollars);
    h = st_hash_u64(h, (uint64_t)c->fixes);
    h = st_hash_str(h, c->reason);
    snprintf(ret, 17, "%016" PRIx64, h);
}

static int put_pending(st_tx *tx, const st_cmd_credit *c, const char *name, int64_t version,
                       st_err *err)
{
    json_t *doc = json_pack("{s:s,s:I,s:I,s:s,s:s,s:I}", "account", c->account, "amount_udollars",
                            (json_int_t)c->amount_udollars, "entry", (json_int_t)c->fixes, "reason",
                            c->reason, "by", c->who.user, "at_ms", (json_int_t)tx->now);
    char *text = json_dumps(doc, JSON_COMPACT);
    const st_document_row row = {
        .kind = KIND, .name = name, .version = version, .at_ms = tx->now, .doc = text};
    int r = st_tx_open(tx, err);

    ST_ASSERT(text);
    if (r == 0)
        r = st_tx_fault(tx, st_store_document_put(tx->ctl->store, &row, err), err);
    if (r == 0)
        r = st_tx_audit(tx, &c->who, "credit.propose", c->account, c->account, text, err);
    free(text);
    json_decref(doc);
    return r;
}

/* Whether somebody else has asked for it: then it may be given. */
static int second_owner(st_tx *tx, st_cmd_credit *c, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    char name[17];
    st_document_row had = {0};
    st_err none;
    const char *by;
    json_t *doc;
    bool other, stale;
    int r;

    pending_name(c, name);
    r = st_store_document_get(tx->ctl->store, KIND, name, arena, &had, &none);
    if (r == -ST_ENOENT) {
        c->pending = true;
        return put_pending(tx, c, name, 0, err);
    }
    if (r < 0) {
        *err = none;
        return st_tx_fault(tx, r, err);
    }
    doc = json_loads(had.doc, 0, NULL);
    by = json_string_value(json_object_get(doc, "by"));
    other = by && strcmp(by, c->who.user) != 0;
    json_decref(doc);
    stale = had.at_ms + ST_CREDIT_PENDING_MS < tx->now;
    c->pending = !other || stale;
    if (c->pending)
        return stale ? put_pending(tx, c, name, had.version, err) : 0;
    r = st_tx_open(tx, err);
    return r < 0
               ? r
               : st_tx_fault(tx,
                             st_store_document_delete(tx->ctl->store, KIND, name, had.version, err),
                             err);
}

/* ---- the command ------------------------------------------------------------------------------------ */

/* Tenants read their books: who of the cluster gave it is in the audit log alone. */
static int give(st_tx *tx, st_cmd_credit *c, const char *book, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf detail = {0};
    st_entry e = {.kind = ST_ENTRY_CREDIT,
                  .account = book,
                  .amount = c->amount_udollars,
                  .fixes = c->fixes,
                  .reason = c->reason,
                  .by = "owner"};
    int r = st_money_post(tx, &e, err);

    if (r < 0)
        return r;
    c->seq = e.seq;
    if (c->reverse > 0)
        r = note_reversed(tx, c, book, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&detail, "{\"amount_udollars\":%" PRId64 ",\"entry\":%" PRId64 ",\"reason\":",
                   c->amount_udollars, e.seq);
    st_quote_json(&detail, c->reason);
    st_strbuf_addc(&detail, '}');
    return st_tx_audit(tx, &c->who, c->reverse > 0 ? "credit.reverse" : "credit.give", c->account,
                       c->account, st_strbuf_str(&detail), err);
}

static int run_credit(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_credit *c = (st_cmd_credit *)cmd;
    const st_billing_options *o = &tx->ctl->options.billing;
    int32_t id = st_account_known(tx->ctl, c->account);
    char buf[ST_NAME_MAX + 1], q[ST_QUOTE_MAX];
    const char *book;
    int r = 0;

    if (id < 0)
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, c->account));
    if (id == ST_ROOT)
        return st_fail(err, ST_EINVAL, "a credit is given to an account");
    book = st_book_of(tx->ctl, c->account, buf);
    if (c->fixes > st_ledger_seq(tx->ctl->billing->ledger, book))
        return st_fail(err, ST_ENOENT, "account %s has no entry %" PRId64, c->account, c->fixes);
    r = c->reverse > 0 ? find_credit(tx, c, book, err) : check_size(tx, c, book, err);
    if (r == 0 && o->credit_second && llabs(c->amount_udollars) > o->credit_alone_udollars)
        r = second_owner(tx, c, err);
    return r < 0 || c->pending ? r : give(tx, c, book, err);
}

void st_cmd_credit_init(st_cmd_credit *cmd)
{
    cmd->cmd.run = run_credit;
}
