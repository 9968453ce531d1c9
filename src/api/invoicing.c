/*
 * Who issues invoices and to whom: names, addresses, taxes. Both are documents of the site's that only owners change; what was
 * issued keeps what they said then.
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "bill/invoice.h"
#include "billing/invoices.h"
#include "control/control.h"
#include "spec/fields.h"

#define TEXT_MAX    200
#define ADDRESS_MAX 6
#define SERIES_MAX  16
#define DAYS_MAX    365

typedef struct details {
    const char *name, *tax_id, *email, *series, *payment, *reference;
    const st_doc_node *address, *taxes;
    int due_days;
} details;

#define LINE(key_, field, need)                                                                  \
    {                                                                                            \
        .key = (key_), .kind = ST_F_LINE, .offset = offsetof(details, field), .required = (need) \
    }
#define NODE(key_, field, need)                                                                  \
    {                                                                                            \
        .key = (key_), .kind = ST_F_NODE, .offset = offsetof(details, field), .required = (need) \
    }
#define DAYS                                                                                       \
    {                                                                                              \
        .key = "due_days", .kind = ST_F_INT, .offset = offsetof(details, due_days), .hi = DAYS_MAX \
    }

static const st_field issuer_rows[] = {
    LINE("name", name, true),
    NODE("address", address, true),
    LINE("tax_id", tax_id, false),
    LINE("email", email, false),
    LINE("series", series, false),
    LINE("payment", payment, false),
    DAYS,
    {0},
};
static const st_field payer_rows[] = {
    LINE("name", name, true),
    NODE("address", address, true),
    LINE("tax_id", tax_id, false),
    LINE("email", email, false),
    LINE("reference", reference, false),
    NODE("taxes", taxes, false),
    DAYS,
    {0},
};

/* ---- reading -------------------------------------------------------------------------------------- */

static int put_text(json_t *doc, const char *key, const char *text, st_err *err)
{
    if (!text)
        return 0;
    if (!text[0] || strlen(text) > TEXT_MAX)
        return st_fail(err, ST_ERANGE, "%s has 1 to %d bytes", key, TEXT_MAX);
    json_object_set_new(doc, key, json_string(text));
    return 0;
}

static int read_address(const st_doc *from, const st_doc_node *node, json_t *doc, st_err *err)
{
    json_t *list = json_array();
    int r = 0;

    json_object_set_new(doc, "address", list);
    for (const st_doc_node *at = NULL; r == 0 && (at = st_field_each(node, at));) {
        const char *line;

        r = st_field_line(from, at, &line, err);
        if (r == 0 && (!line[0] || strlen(line) > TEXT_MAX || json_array_size(list) == ADDRESS_MAX))
            r = st_doc_fail(from, at, err, ST_ERANGE,
                            "an address has at most %d lines, of 1 to %d bytes", ADDRESS_MAX,
                            TEXT_MAX);
        if (r == 0)
            json_array_append_new(list, json_string(line));
    }
    if (r == 0 && json_array_size(list) == 0)
        r = st_doc_fail(from, node, err, ST_ERANGE, "an address has a line at least");
    return r;
}

static bool tax_name_ok(const char *name)
{
    return name[0] && strlen(name) <= ST_TAX_NAME_MAX && st_text_honest(name);
}

/* {VAT: 19, City: 0.5} */
static int read_taxes(const st_doc *from, const st_doc_node *node, json_t *doc, st_err *err)
{
    json_t *list = json_array();
    char q[ST_QUOTE_MAX];
    int r = node ? st_doc_expect(from, node, ST_DOC_MAP, err) : 0;

    json_object_set_new(doc, "taxes", list);
    for (const st_doc_node *at = node && r == 0 ? node->child : NULL; r == 0 && at; at = at->next) {
        int64_t milli = 0;

        if (json_array_size(list) == ST_TAXES_MAX)
            r = st_doc_fail(from, at, err, ST_ERANGE, "an account has at most %d taxes",
                            ST_TAXES_MAX);
        else if (!tax_name_ok(at->key))
            r = st_doc_fail(from, at, err, ST_EINVAL, "%s cannot be the name of a tax",
                            st_quote(q, at->key));
        else
            r = st_doc_milli(from, at, 0, INT64_C(10) * ST_TAX_RATE_MAX, &milli, err);
        if (r == 0 && milli % 10 != 0)
            r = st_doc_fail(from, at, err, ST_ERANGE,
                            "the rate of a tax is in percent, with up to two decimals");
        if (r == 0)
            json_array_append_new(
                list, json_pack("{s:s,s:I}", "name", at->key, "rate_bp", (json_int_t)(milli / 10)));
    }
    return r;
}

static int put_series(json_t *doc, const char *series, st_err *err)
{
    char q[ST_QUOTE_MAX];

    if (!series)
        series = "INV";
    if (!series[0] || strlen(series) > SERIES_MAX ||
        strspn(series, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != strlen(series))
        return st_fail(err, ST_EINVAL,
                       "a series is up to %d capital letters and digits, for example INV; not %s",
                       SERIES_MAX, st_quote(q, series));
    json_object_set_new(doc, "series", json_string(series));
    return 0;
}

static int read_details(const st_call *call, bool issuer, json_t *ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *from = NULL;
    details d = {.due_days = -1};
    int r = st_call_doc(call, &from, err);

    if (r == 0)
        r = st_doc_expect(from, st_doc_root(from), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(from, st_doc_root(from), issuer ? issuer_rows : payer_rows, &d, err);
    if (r == 0)
        r = put_text(ret, "name", d.name, err);
    if (r == 0)
        r = read_address(from, d.address, ret, err);
    if (r == 0)
        r = put_text(ret, "tax_id", d.tax_id, err);
    if (r == 0)
        r = put_text(ret, "email", d.email, err);
    if (r == 0)
        r = put_text(ret, "payment", d.payment, err);
    if (r == 0)
        r = put_text(ret, "reference", d.reference, err);
    if (r == 0 && d.due_days >= 0)
        json_object_set_new(ret, "due_days", json_integer(d.due_days));
    if (r == 0)
        r = issuer ? put_series(ret, d.series, err) : read_taxes(from, d.taxes, ret, err);
    return r;
}

/* ---- changing ---------------------------------------------------------------------------------------- */

/* An account that has the name of one that is gone has a book of its own, and so details of its own. */
static int find_book(st_tx *tx, st_document_change *c, st_err *err)
{
    const st_core *core = st_tx_core(tx);
    char buf[ST_NAME_MAX + 1], q[ST_QUOTE_MAX];

    if (st_tree_find(st_core_tree(core), c->name) <= ST_ROOT)
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, c->name));
    free(c->kept);
    c->kept = st_xstrdup(st_tx_book(tx, c->name, buf));
    if (!c->text && st_tx_version(tx, ST_BILL_TO, c->kept) == 0)
        return st_fail(err, ST_ENOENT, "account %s has no billing details", c->name);
    return 0;
}

static void put(st_api *api, st_call *call, bool issuer)
{
    st_document_change *c = st_document_change_new(call, api, issuer ? ST_ISSUER : ST_BILL_TO);
    st_err err = {0};
    int r;

    c->doc = json_object();
    r = read_details(call, issuer, c->doc, &err);
    if (r == 0)
        c->text = json_dumps(c->doc, JSON_COMPACT);
    if (issuer) {
        snprintf(c->name, sizeof c->name, "%s", ST_ISSUER);
    } else {
        snprintf(c->account, sizeof c->account, "%s", c->name);
        c->before = find_book;
    }
    c->kept = st_xstrdup(c->name);
    st_document_change_post(c, r, &err);
}

void st_api_issuer_put(st_call *call, void *ctx)
{
    put(ctx, call, true);
}

void st_api_bill_to_put(st_call *call, void *ctx)
{
    put(ctx, call, false);
}

void st_api_bill_to_remove(st_call *call, void *ctx)
{
    st_document_change *c = st_document_change_new(call, ctx, ST_BILL_TO);

    snprintf(c->account, sizeof c->account, "%s", c->name);
    c->before = find_book;
    c->kept = st_xstrdup(c->name);
    st_document_change_post(c, 0, NULL);
}

/* ---- showing ------------------------------------------------------------------------------------------ */

/* Leaves the name under which it is kept in q->out. */
static int find_kept(st_question *q, st_core *core, st_err *err)
{
    char buf[ST_NAME_MAX + 1];
    int32_t id;
    int r = st_question_account(q, core, q->name, &id, err);

    if (r == 0)
        st_strbuf_add(&q->out, st_tx_book(q->tx, q->name, buf));
    return r;
}

static int get_details(st_question *q, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf kept = {0};
    const bool issuer = !q->name[0];
    st_document_row row = {0};
    st_store *reader;
    char text[ST_QUOTE_MAX];
    int r = issuer ? 0 : st_question_read(q, err);

    if (r < 0)
        return r;
    st_strbuf_add(&kept, issuer ? ST_ISSUER : st_strbuf_str(&q->out));
    st_strbuf_done(&q->out);
    q->out = (st_strbuf){0};
    reader = st_api_reader(q->api, err);
    if (!reader)
        return -err->code;
    r = st_store_document_get(reader, issuer ? ST_ISSUER : ST_BILL_TO, st_strbuf_str(&kept), arena,
                              &row, err);
    st_api_reader_back(q->api, reader);
    if (r == -ST_ENOENT)
        return issuer ? st_fail(err, ST_ENOENT, "there is no issuer of invoices yet")
                      : st_fail(err, ST_ENOENT, "account %s has no billing details",
                                st_quote(text, q->name));
    if (r == 0) {
        st_strbuf_add(&q->out, row.doc);
        snprintf(q->version, sizeof q->version, "%lld", (long long)row.at_ms);
    }
    return r;
}

static void get(st_api *api, st_call *call, const char *name)
{
    st_question *q = st_question_new(api, call, find_kept, name, 0);

    q->ask = get_details;
    st_question_post(q);
}

void st_api_issuer_get(st_call *call, void *ctx)
{
    get(ctx, call, "");
}

void st_api_bill_to_get(st_call *call, void *ctx)
{
    get(ctx, call, st_call_param(call, "name"));
}
