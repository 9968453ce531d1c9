/*
 * What a payer owes for a month, from its bill and the books (billing/invoices.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "billing/billing.h"
#include "billing/invoices.h"

void st_drafts_done(st_drafts *drafts)
{
    for (size_t i = 0; i < drafts->n; i++) {
        st_draft *d = &drafts->v[i];

        free(d->account);
        free(d->book);
        json_decref(d->lines);
        for (size_t k = 0; k < d->books.n; k++) {
            free(d->books.v[k].name);
            st_vec_free(&d->books.v[k].terms);
        }
        for (size_t k = 0; k < d->corrections.n; k++)
            json_decref(d->corrections.v[k].lines);
        st_vec_free(&d->books);
        st_vec_free(&d->corrections);
    }
    st_vec_free(drafts);
}

/* ---- what the bill says --------------------------------------------------------------------------- */

typedef struct payers {
    const char *const *v;
    size_t n;
} payers;

static bool is_payer(const payers *p, const char *book)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i], book) == 0)
            return true;
    return false;
}

/* Whether nobody between pays for it. */
static bool pays_for(const st_ledger *l, const payers *p, const char *payer, const char *book)
{
    while (book && strcmp(book, payer) != 0 && !is_payer(p, book))
        book = st_ledger_parent(l, book);
    return book && strcmp(book, payer) == 0;
}

/* Whether anything of the month, or what corrects earlier ones, may be owed: chargeback was agreed at some time. */
static bool owes(const st_ledger *l, const char *book)
{
    const st_terms *t;
    size_t n = st_ledger_terms_list(l, book, &t);

    for (size_t i = 0; i < n; i++)
        if (t[i].chargeback)
            return true;
    return false;
}

/* What one unit costs; a bill's line may have several. */
static const char *rate_of(const st_bill_line *line, st_strbuf *out)
{
    char money[ST_MONEY_MAX], percent[ST_RATIO_MAX];

    if (*st_component_unit(line->what) && (line->rate == ST_UNSET || line->factor_bp == ST_UNSET))
        st_strbuf_add(out, "several");
    else if (*st_component_unit(line->what))
        st_strbuf_add(out, st_money(money, line->rate));
    if (out->n > 0 && line->rate != ST_UNSET && line->factor_bp != ST_UNSET &&
        line->factor_bp != ST_BP)
        st_strbuf_addf(out, " x %s%%", st_ratio(percent, line->factor_bp, 100, 2));
    return st_strbuf_str(out);
}

static void add_line(st_draft *d, const st_bill_line *line)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf rate = {0};
    const char *unit = st_component_unit(line->what);
    char money[ST_MONEY_MAX], quantity[ST_RATIO_MAX];

    if (line->owed == 0)
        return;
    /* Of one that is owed in part, the quantity is not that of the amount. */
    if (line->owed != line->amount)
        unit = "";
    json_array_append_new(
        d->lines,
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:s}", "account", line->account, "for",
                  st_component_name(line->what), "gpu", line->gpu, "level",
                  *line->gpu ? st_level_name(line->level) : "", "quantity",
                  *unit ? st_ratio(quantity, line->quantity, st_component_per(line->what), 3) : "",
                  "unit", unit, "rate", rate_of(line, &rate), "amount_udollars",
                  (json_int_t)line->owed, "amount", st_money(money, line->owed)));
    d->amount += line->owed;
}

static void take_bill(const st_ledger *l, const payers *p, const st_bill *bill, st_draft *d)
{
    for (size_t i = 0; i < bill->uses.n; i++) {
        const st_bill_use *u = &bill->uses.v[i];

        if (pays_for(l, p, d->book, u->account) && owes(l, u->account)) {
            st_draft_book b = {.name = st_xstrdup(u->account),
                               .from = u->first_seq,
                               .to = u->first_seq > 0 ? u->last_seq : u->first_seq - 1};
            const st_terms *t;
            size_t n = st_ledger_terms_list(l, u->account, &t);

            for (size_t k = 0; k < n; k++)
                st_vec_push(&b.terms, t[k]);
            st_vec_push(&d->books, b);
        }
    }
    for (size_t i = 0; i < bill->lines.n; i++) {
        const st_bill_line *line = &bill->lines.v[i];

        if (pays_for(l, p, d->book, line->account))
            add_line(d, line);
    }
}

static char *name_of(const st_control *ctl, int32_t id)
{
    const st_account *a = st_tree_account(st_core_tree(ctl->core), id);
    char filed[ST_NAME_MAX + 40];

    if (!a->gone)
        return st_xstrdup(a->name);
    snprintf(filed, sizeof filed, ST_GONE_NAME, a->name, (long long)a->serial);
    return st_xstrdup(filed);
}

static int collect_one(st_tx *tx, const payers *p, const char *book, int32_t id, const char *period,
                       st_drafts *ret, st_err *err)
{
    const st_ledger *l = tx->ctl->billing->ledger;
    st_bill bill = {0};
    int r = st_ledger_bill(l, book, period, &bill, err);

    if (r < 0)
        return r;
    if (!bill.closed)
        r = st_fail(err, ST_ESTATE, "%s is still open: an invoice is for a month that is closed",
                    bill.period.name);
    if (r == 0) {
        st_draft d = {.account = name_of(tx->ctl, id),
                      .book = st_xstrdup(book),
                      .period = bill.period,
                      .lines = json_array()};

        take_bill(l, p, &bill, &d);
        st_vec_push(ret, d);
    }
    st_bill_done(&bill);
    return r;
}

int st_invoice_collect(st_tx *tx, const char *const *list, size_t n, const char *account,
                       const char *period, st_drafts *ret, st_err *err)
{
    const payers p = {list, n};
    int32_t only = account ? st_account_known(tx->ctl, account) : -1;
    bool found = false;
    st_bill month = {0};
    char q[ST_QUOTE_MAX];
    int r = st_ledger_bill(tx->ctl->billing->ledger, "", period, &month, err);

    st_bill_done(&month);
    for (size_t i = 0; r == 0 && i < n; i++) {
        int32_t id = st_book_account(tx->ctl, list[i]);
        st_err young;

        if (id <= ST_ROOT || (account && id != only))
            continue;
        found = true;
        r = collect_one(tx, &p, list[i], id, period, ret, &young);
        if (r == -ST_ENOENT && !account) /* it is younger than the month */
            r = 0;
        else if (r < 0)
            *err = young;
    }
    if (r == 0 && account && !found)
        r = st_fail(err, ST_ENOENT,
                    "account %s has no billing details: set them with `stint admin billing`",
                    st_quote(q, account));
    return r;
}

/* ---- corrections ------------------------------------------------------------------------------------ */

typedef struct fix {
    int64_t fixes, amount;
    st_entry_kind kind;
} fix;

typedef struct fixes {
    int64_t from; /* of the month in this book */
    const st_draft_book *book;
    st_arena *arena;
    ST_VEC(fix) list;
} fixes;

/* By the terms of its own time (st_ledger_owed). */
static bool was_owed(const st_draft_book *b, const st_entry *e)
{
    int64_t at = st_entry_moment(e);
    bool owed = false;

    for (size_t i = 0; i < b->terms.n && b->terms.v[i].from_ms <= at; i++)
        owed = b->terms.v[i].chargeback;
    return owed;
}

/* Most entries correct nothing, and need not be read. */
static int see_entry(void *ctx, const st_book_row *row, st_err *err)
{
    fixes *f = ctx;
    st_entry e;
    fix found = {0};
    int r;

    if (!strstr(row->data, ",\"fixes\":"))
        return 0;
    st_arena_reset(f->arena);
    r = st_entry_read(row->data, strlen(row->data), f->arena, &e, err);
    if (r < 0 || e.fixes < 1 || e.fixes >= f->from || !was_owed(f->book, &e))
        return r;
    found.fixes = e.fixes;
    found.kind = e.kind;
    for (int i = 0; i < e.nlines; i++)
        found.amount += e.lines[i].amount;
    if (found.amount != 0)
        st_vec_push(&f->list, found);
    return 0;
}

static int see_period(void *ctx, const st_book_row *row, st_err *err)
{
    char *period = ctx;

    (void)err;
    snprintf(period, 8, "%s", row->period);
    return 1;
}

static st_correction *correction_of(st_draft *d, const char *period)
{
    size_t i = 0;

    while (i < d->corrections.n && strcmp(d->corrections.v[i].period, period) < 0)
        i++;
    if (i == d->corrections.n || strcmp(d->corrections.v[i].period, period) != 0) {
        st_correction c = {.lines = json_array()};

        snprintf(c.period, sizeof c.period, "%s", period);
        st_vec_insert(&d->corrections, i, c);
    }
    return &d->corrections.v[i];
}

/* All of one kind in one book are a line. */
static void add_fix(st_draft *d, const char *book, const char *period, const fix *f)
{
    st_correction *c = correction_of(d, period);
    const char *kind = st_entry_kind_name(f->kind);
    json_t *line, *mine = NULL;
    char money[ST_MONEY_MAX];
    int64_t amount = f->amount;
    size_t i;

    json_array_foreach(c->lines, i, line)
    {
        if (strcmp(json_string_value(json_object_get(line, "account")), book) == 0 &&
            strcmp(json_string_value(json_object_get(line, "for")), kind) == 0)
            mine = line;
    }
    if (!mine) {
        mine = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s}", "account", book, "for", kind, "gpu", "",
                         "level", "", "quantity", "", "unit", "", "rate", "");
        json_array_append_new(c->lines, mine);
    }
    amount += json_integer_value(json_object_get(mine, "amount_udollars"));
    json_object_set_new(mine, "amount_udollars", json_integer(amount));
    json_object_set_new(mine, "amount", json_string(st_money(money, amount)));
    c->amount += f->amount;
}

int st_invoice_corrections(st_store *reader, st_draft *d, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    int r = 0;

    for (size_t i = 0; r >= 0 && i < d->books.n; i++) {
        const st_draft_book *b = &d->books.v[i];
        fixes f = {.from = b->from, .book = b, .arena = arena};

        if (b->to >= b->from && b->from > 1)
            r = st_store_book_of(reader, b->name, b->from, b->to, see_entry, &f, err);
        for (size_t k = 0; r >= 0 && k < f.list.n; k++) {
            char period[8] = "";

            r = st_store_book_of(reader, b->name, f.list.v[k].fixes, f.list.v[k].fixes, see_period,
                                 period, err);
            if (r >= 0 && period[0])
                add_fix(d, b->name, period, &f.list.v[k]);
        }
        st_vec_free(&f.list);
    }
    return r < 0 ? r : 0;
}
