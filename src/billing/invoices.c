/*
 * Issuing: numbers, dates, taxes, and the documents as they stay (billing/invoices.h).
 */
#include "billing/invoices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"
#include "bill/invoice.h"
#include "billing/billing.h"

#define DAY_MS   INT64_C(86400000)
#define DUE_DAYS 30 /* where nobody says otherwise */
#define KEY_MAX  (ST_NAME_MAX + 64)

typedef struct issue {
    st_tx *tx;
    st_cmd_invoices *cmd;
    st_arena *arena;
    json_t *issuer, *payer; /* of the draft */
    const st_draft *draft;
} issue;

/* ---- the store --------------------------------------------------------------------------------------- */

/* NULL: there is none. */
static int get_meta(const issue *is, const char *key, const char **ret, st_err *err)
{
    st_err none;
    int r = st_store_meta_get(is->tx->ctl->store, key, is->arena, ret, &none);

    if (r == -ST_ENOENT) {
        *ret = NULL;
        return 0;
    }
    if (r < 0)
        *err = none;
    return st_tx_fault(is->tx, r, err);
}

static int get_number(const issue *is, const char *key, int64_t *ret, st_err *err)
{
    const char *text = NULL;
    int r = get_meta(is, key, &text, err);

    *ret = text ? strtoll(text, NULL, 10) : 0;
    return r;
}

static int put_number(const issue *is, const char *key, int64_t n, st_err *err)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, n);
    return st_tx_fault(is->tx, st_store_meta_put(is->tx->ctl->store, key, text, err), err);
}

/* NULL: there is no such document. */
static int get_document(const issue *is, const char *kind, const char *name, json_t **ret,
                        st_err *err)
{
    st_document_row row;
    st_err none;
    int r = st_store_document_get(is->tx->ctl->store, kind, name, is->arena, &row, &none);

    *ret = NULL;
    if (r == -ST_ENOENT)
        return 0;
    if (r == 0 && !(*ret = json_loads(row.doc, 0, NULL)))
        r = st_fail(&none, ST_ECORRUPT, "%s %s is damaged", kind, name);
    if (r < 0)
        *err = none;
    return st_tx_fault(is->tx, r, err);
}

static void of_key(char ret[KEY_MAX], const char *book, const char *period)
{
    snprintf(ret, KEY_MAX, "invoice_of %s %s", book, period);
}

static void credited_key(char ret[KEY_MAX], const char *number)
{
    snprintf(ret, KEY_MAX, "invoice_credited %s", number);
}

/* ---- a document ---------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));

    return text ? text : "";
}

static int next_number(const issue *is, char ret[ST_NAME_MAX + 1], st_err *err)
{
    const char *series = text_of(is->issuer, "series");
    char key[KEY_MAX], branch[24] = "";
    int64_t n = 0;
    int r;

    /* What was given out behind the backup of a restore is not known here: numbers since then name the restore. */
    if (is->tx->ctl->restoring.branch > 0)
        snprintf(branch, sizeof branch, "R%" PRId64 "-", is->tx->ctl->restoring.branch);
    snprintf(key, sizeof key, "invoice_last %s%s%s", series, branch[0] ? " " : "", branch);
    r = get_number(is, key, &n, err);
    if (r == 0)
        r = put_number(is, key, n + 1, err);
    snprintf(ret, ST_NAME_MAX + 1, "%.32s-%s%06" PRId64, series, branch, n + 1);
    return r;
}

/* Names and rates: of the payer's details, or of the invoice that is credited. */
static void take_taxes(const json_t *taxes, st_payable *p)
{
    const json_t *row;
    size_t i;

    json_array_foreach(taxes, i, row)
    {
        if (p->ntaxes == ST_TAXES_MAX)
            break;
        st_tax *t = &p->taxes[p->ntaxes++];
        snprintf(t->name, sizeof t->name, "%s", text_of(row, "name"));
        t->rate_bp = json_integer_value(json_object_get(row, "rate_bp"));
    }
}

static json_t *taxes_json(const st_payable *p)
{
    json_t *list = json_array();
    char rate[ST_RATIO_MAX], cents[ST_CENTS_MAX];

    for (int i = 0; i < p->ntaxes; i++)
        json_array_append_new(list,
                              json_pack("{s:s,s:I,s:s,s:I,s:s}", "name", p->taxes[i].name,
                                        "rate_bp", (json_int_t)p->taxes[i].rate_bp, "rate_percent",
                                        st_ratio(rate, p->taxes[i].rate_bp, 100, 2), "cents",
                                        (json_int_t)p->taxes[i].cents, "amount",
                                        st_cents_text(cents, p->taxes[i].cents)));
    return list;
}

static void set_money(json_t *doc, const char *key, int64_t udollars)
{
    char name[64], text[ST_MONEY_MAX];

    snprintf(name, sizeof name, "%s_udollars", key);
    json_object_set_new(doc, name, json_integer(udollars));
    json_object_set_new(doc, key, json_string(st_money(text, udollars)));
}

static void set_cents(json_t *doc, const char *key, int64_t cents)
{
    char name[64], text[ST_CENTS_MAX];

    snprintf(name, sizeof name, "%s_cents", key);
    json_object_set_new(doc, name, json_integer(cents));
    json_object_set_new(doc, key, json_string(st_cents_text(text, cents)));
}

static void set_time(json_t *doc, const char *key, int64_t ms, int chars)
{
    char utc[ST_UTC_MAX], text[ST_UTC_MAX];

    snprintf(text, sizeof text, "%.*s", chars, st_utc(utc, ms));
    json_object_set_new(doc, key, json_string(text));
}

static int64_t due_days(const issue *is)
{
    const json_t *of_payer = json_object_get(is->payer, "due_days"),
                 *of_issuer = json_object_get(is->issuer, "due_days");

    return of_payer    ? json_integer_value(of_payer)
           : of_issuer ? json_integer_value(of_issuer)
                       : DUE_DAYS;
}

typedef struct paper {
    const char *kind;               /* invoice, credit_note */
    const char *refers_to, *period; /* NULL: to none; of the draft */
    json_t *lines;                  /* taken */
    const json_t *taxes;
    int64_t amount;
} paper;

static json_t *paper_json(const issue *is, const paper *p, const st_payable *pay,
                          const char *number)
{
    const st_draft *d = is->draft;
    json_t *doc = json_pack("{s:s,s:s,s:s?,s:s,s:s,s:s}", "number", number, "kind", p->kind,
                            "refers_to", p->refers_to, "account", d->account, "book", d->book,
                            "period", p->period ? p->period : d->period.name);

    json_object_set_new(doc, "posted", json_string(d->period.name));
    if (!p->period) { /* of a note for an earlier month its invoice has them */
        set_time(doc, "from", d->period.from_ms, 20);
        set_time(doc, "to", d->period.to_ms, 20);
    }
    set_time(doc, "issued", is->tx->now, 10);
    set_time(doc, "due", is->tx->now + due_days(is) * DAY_MS, 10);
    json_object_set_new(doc, "currency", json_string(st_control_currency(is->tx->ctl)));
    json_object_set(doc, "issuer", is->issuer);
    json_object_set(doc, "bill_to", is->payer);
    json_object_set_new(doc, "lines", p->lines);
    set_money(doc, "sum", pay->lines_udollars);
    set_money(doc, "rounding", pay->rounding_udollars);
    set_cents(doc, "net", pay->net_cents);
    json_object_set_new(doc, "taxes", taxes_json(pay));
    set_cents(doc, "total", pay->total_cents);
    return doc;
}

/* Writes it down and adds it to the answer, which has another reference. */
static int put_paper(const issue *is, const paper *p, char ret_number[ST_NAME_MAX + 1], st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf detail = {0};
    st_payable pay = {.lines_udollars = p->amount};
    char *text;
    json_t *doc;
    int r;

    take_taxes(p->taxes, &pay);
    /* Rates were checked when they were set, and no sum of lines is too large: it is damage, and nothing of this is written. */
    r = st_tx_fault(is->tx, st_payable_reckon(&pay, err), err);
    if (r == 0)
        r = next_number(is, ret_number, err);
    if (r < 0) {
        json_decref(p->lines);
        return r;
    }
    doc = paper_json(is, p, &pay, ret_number);
    text = json_dumps(doc, JSON_COMPACT);
    ST_ASSERT(text);
    const st_document_row row = {
        .kind = ST_INVOICE, .name = ret_number, .at_ms = is->tx->now, .doc = text};
    r = st_tx_fault(is->tx, st_store_document_put(is->tx->ctl->store, &row, err), err);
    st_strbuf_addf(&detail, "{\"total_cents\":%" PRId64 ",\"period\":\"%s\"}", pay.total_cents,
                   is->draft->period.name);
    if (r == 0)
        r = st_tx_audit(is->tx, &is->cmd->who, "invoice.issue", is->draft->account, ret_number,
                        st_strbuf_str(&detail), err);
    json_object_set_new(doc, "new", json_true());
    json_array_append_new(is->cmd->documents, doc);
    free(text);
    return r;
}

/* ---- a payer's month ----------------------------------------------------------------------------------- */

static json_t *own_line(const char *account, const char *what, int64_t amount)
{
    char money[ST_MONEY_MAX];

    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:s}", "account", account, "for", what,
                     "gpu", "", "level", "", "quantity", "", "unit", "", "rate", "",
                     "amount_udollars", (json_int_t)amount, "amount", st_money(money, amount));
}

/* Gives back what an earlier month was corrected by, up to what its invoice asked for; *ret is what the note has. */
static int credit_one(const issue *is, const st_correction *c, const json_t *invoice, int64_t *ret,
                      char ret_number[ST_NAME_MAX + 1], st_err *err)
{
    const char *number = text_of(invoice, "number");
    char key[KEY_MAX];
    int64_t credited = 0, left, give;
    paper note = {.kind = "credit_note",
                  .refers_to = number,
                  .period = c->period,
                  .taxes = json_object_get(invoice, "taxes")};
    int r;

    credited_key(key, number);
    r = get_number(is, key, &credited, err);
    left = json_integer_value(json_object_get(invoice, "sum_udollars")) - credited;
    give = ST_MIN(-c->amount, left);
    if (r < 0 || give <= 0)
        return r;
    note.amount = -give;
    note.lines = json_deep_copy(c->lines);
    if (give < -c->amount) /* the rest stays on this month's invoice */
        json_array_append_new(note.lines,
                              own_line(is->draft->book, "beyond_the_invoice", -c->amount - give));
    r = put_paper(is, &note, ret_number, err);
    if (r == 0)
        r = put_number(is, key, credited + give, err);
    *ret = give;
    return r;
}

static int credit(const issue *is, const st_correction *c, json_t *lines, int64_t *amount,
                  st_err *err)
{
    char key[KEY_MAX], number[ST_NAME_MAX + 1], what[ST_NAME_MAX + 32];
    const char *of;
    json_t *invoice = NULL;
    int64_t given = 0;
    int r = 0;

    if (c->amount >= 0)
        return 0;
    of_key(key, is->draft->book, c->period);
    r = get_meta(is, key, &of, err);
    if (r == 0 && of)
        r = get_document(is, ST_INVOICE, of, &invoice, err);
    if (r == 0 && invoice)
        r = credit_one(is, c, invoice, &given, number, err);
    if (r == 0 && given > 0) {
        snprintf(what, sizeof what, "credited_by %s", number);
        json_array_append_new(lines, own_line(is->draft->book, what, given));
        *amount += given;
    }
    json_decref(invoice);
    return r;
}

static int issue_new(issue *is, const char *key, st_err *err)
{
    const st_draft *d = is->draft;
    json_t *lines = json_deep_copy(d->lines);
    int64_t amount = d->amount;
    char number[ST_NAME_MAX + 1];
    int r = 0;

    for (size_t i = 0; r == 0 && i < d->corrections.n; i++)
        r = credit(is, &d->corrections.v[i], lines, &amount, err);
    if (r < 0 || json_array_size(lines) == 0) {
        json_decref(lines);
        return r;
    }
    r = put_paper(is,
                  &(paper){.kind = amount < 0 ? "credit_note" : "invoice",
                           .lines = lines,
                           .taxes = json_object_get(is->payer, "taxes"),
                           .amount = amount},
                  number, err);
    return r < 0
               ? r
               : st_tx_fault(is->tx, st_store_meta_put(is->tx->ctl->store, key, number, err), err);
}

static int issue_draft(issue *is, st_err *err)
{
    char key[KEY_MAX];
    const char *had = NULL;
    json_t *doc = NULL;
    int r;

    of_key(key, is->draft->book, is->draft->period.name);
    r = get_meta(is, key, &had, err);
    if (r == 0 && had) {
        r = get_document(is, ST_INVOICE, had, &doc, err);
        if (doc) {
            json_object_set_new(doc, "new", json_false());
            json_array_append_new(is->cmd->documents, doc);
        }
        return r;
    }
    if (r == 0)
        r = get_document(is, ST_BILL_TO, is->draft->book, &is->payer, err);
    if (r == 0 && is->payer) /* whose details are gone by now pays nothing */
        r = issue_new(is, key, err);
    json_decref(is->payer);
    is->payer = NULL;
    return r;
}

static int run_invoices(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_invoices *c = (st_cmd_invoices *)cmd;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    issue is = {.tx = tx, .cmd = c, .arena = arena};
    int r = st_tx_open(tx, err);

    json_decref(c->documents);
    c->documents = json_array();
    if (r == 0)
        r = get_document(&is, ST_ISSUER, ST_ISSUER, &is.issuer, err);
    if (r == 0 && !is.issuer)
        r = st_fail(err, ST_ESTATE,
                    "nobody issues invoices here yet: set the issuer with `stint admin issuer`");
    for (size_t i = 0; r == 0 && i < c->drafts.n; i++) {
        is.draft = &c->drafts.v[i];
        r = issue_draft(&is, err);
    }
    json_decref(is.issuer);
    return r;
}

void st_cmd_invoices_init(st_cmd_invoices *cmd)
{
    cmd->cmd.run = run_invoices;
}
