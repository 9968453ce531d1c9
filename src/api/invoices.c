/*
 * Invoices and credit notes: listed, shown, printed, issued (billing/invoices.h).
 */
#include <stdlib.h>
#include <string.h>

#include "api/ask.h"
#include "api/invoice_page.h"
#include "api/work.h"
#include "base/mem.h"
#include "base/quote.h"
#include "billing/invoices.h"
#include "control/control.h"
#include "spec/fields.h"

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

/* ---- who may see one ------------------------------------------------------------------------------- */

typedef struct wanted {
    json_t *list;                   /* documents as they are kept */
    char account[ST_NAME_MAX + 32]; /* "": of all */
    char number[ST_NAME_MAX + 1];   /* "": a list is wanted */
    const char *format;
} wanted;

static void wanted_free(void *owner)
{
    wanted *w = owner;

    json_decref(w->list);
    free(w);
}

/* By the book: whoever has the account's name today may be somebody else. */
static bool sees(const st_question *q, const st_core *core, const json_t *doc, int32_t within)
{
    int32_t id = st_tx_book_account(q->tx, text(doc, "book"));

    return id < 0 ? st_question_owner(q) && within <= ST_ROOT
                  : st_tree_within(st_core_tree(core), id, within);
}

static int add_doc(void *ctx, const st_document_row *row, st_err *err)
{
    json_t *doc = json_loads(row->doc, 0, NULL);

    (void)err;
    if (doc)
        json_array_append_new(ctx, doc);
    return 0;
}

static int read_docs(st_question *q, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    wanted *w = q->owner;
    st_store *reader = st_api_reader(q->api, err);
    st_document_row row;
    int r;

    if (!reader)
        return -err->code;
    if (w->number[0]) {
        r = st_store_document_get(reader, ST_INVOICE, w->number, arena, &row, err);
        if (r == 0)
            r = add_doc(w->list, &row, err);
        else if (r == -ST_ENOENT)
            r = 0; /* as if it were somebody else's */
    } else {
        r = st_store_documents(reader, ST_INVOICE, add_doc, w->list, err);
    }
    st_api_reader_back(q->api, reader);
    return r < 0 ? r : st_question_read(q, err);
}

/* ---- a list ----------------------------------------------------------------------------------------- */

static int64_t credited(const json_t *list, const char *number)
{
    const json_t *doc;
    int64_t cents = 0;
    size_t i;

    json_array_foreach(list, i, doc)
    {
        if (strcmp(text(doc, "refers_to"), number) == 0)
            cents -= json_integer_value(json_object_get(doc, "total_cents"));
    }
    return cents;
}

static json_t *summary(const json_t *list, const json_t *doc)
{
    static const char *const keys[] = {"number", "kind", "refers_to", "account",     "period",
                                       "issued", "due",  "currency",  "total_cents", "total"};
    json_t *row = json_object();

    for (size_t i = 0; i < ST_ARRAY_LEN(keys); i++)
        json_object_set(row, keys[i], json_object_get(doc, keys[i]));
    json_object_set_new(row, "credited_cents", json_integer(credited(list, text(doc, "number"))));
    return row;
}

static int fill_list(st_question *q, st_core *core, st_err *err)
{
    const wanted *w = q->owner;
    int32_t within = st_question_root(q, core);
    json_t *rows, *doc;
    size_t i;
    char *out;

    if (w->account[0]) {
        int r = st_question_account(q, core, w->account, &within, err);

        if (r < 0)
            return r;
    }
    rows = json_array();
    json_array_foreach(w->list, i, doc)
    {
        if (within >= 0 && sees(q, core, doc, within))
            json_array_append_new(rows, summary(w->list, doc));
    }
    rows = json_pack("{s:o}", "invoices", rows);
    out = json_dumps(rows, JSON_COMPACT);
    st_strbuf_add(&q->out, out);
    free(out);
    json_decref(rows);
    return 0;
}

/* ---- one --------------------------------------------------------------------------------------------- */

static int fill_one(st_question *q, st_core *core, st_err *err)
{
    const wanted *w = q->owner;
    json_t *doc = json_array_get(w->list, 0);
    int32_t within = st_question_root(q, core);
    char quoted[ST_QUOTE_MAX], *out;

    if (!doc || within < 0 || !sees(q, core, doc, within))
        return st_fail(err, ST_ENOENT, "there is no invoice %s", st_quote(quoted, w->number));
    json_object_del(doc, "book");
    if (strcmp(w->format, "html") == 0) {
        q->type = "text/html; charset=utf-8";
        st_invoice_html(doc, &q->out);
    } else if (strcmp(w->format, "csv") == 0) {
        q->type = "text/csv";
        st_invoice_csv(doc, &q->out);
    } else {
        out = json_dumps(doc, JSON_COMPACT);
        st_strbuf_add(&q->out, out);
        free(out);
    }
    return 0;
}

static void ask(st_api *api, st_call *call, const char *number, const char *account)
{
    wanted *w = st_xcalloc(1, sizeof *w);
    const char *format = st_call_query(call, "format");
    st_question *q = st_question_new(api, call, number ? fill_one : fill_list, "", 0);

    w->list = json_array();
    w->format = format ? format : "json";
    snprintf(w->number, sizeof w->number, "%s", number ? number : "");
    snprintf(w->account, sizeof w->account, "%s", account ? account : "");
    q->owner = w;
    q->drop = wanted_free;
    q->ask = read_docs;
    st_question_post(q);
}

void st_api_invoices_list(st_call *call, void *ctx)
{
    ask(ctx, call, NULL, st_call_query(call, "account"));
}

void st_api_invoice_get(st_call *call, void *ctx)
{
    ask(ctx, call, st_call_param(call, "number"), NULL);
}

/* ---- issuing ------------------------------------------------------------------------------------------ */

typedef struct issuing {
    st_cmd_invoices put;
    st_api *api;
    st_call *call;
    char period[8], *account; /* NULL: all payers */
    ST_VEC(char *) payers;
} issuing;

static void issuing_free(issuing *c)
{
    for (size_t i = 0; i < c->payers.n; i++)
        free(c->payers.v[i]);
    st_vec_free(&c->payers);
    st_drafts_done(&c->put.drafts);
    json_decref(c->put.documents);
    free(c->account);
    free(c);
}

static void issued(st_cmd *cmd, const st_err *err)
{
    issuing *c = (issuing *)cmd;
    json_t *doc;
    size_t i;

    if (err) {
        st_call_fail(c->call, err);
    } else {
        json_array_foreach(c->put.documents, i, doc) json_object_del(doc, "book");
        st_call_reply_json(c->call, 201, json_pack("{s:O}", "invoices", c->put.documents));
    }
    issuing_free(c);
}

static int add_payer(void *ctx, const st_document_row *row, st_err *err)
{
    issuing *c = ctx;

    (void)err;
    st_vec_push(&c->payers, st_xstrdup(row->name));
    return 0;
}

static int collect(void *ctx, st_tx *tx, st_err *err)
{
    issuing *c = ctx;

    return st_invoice_collect(tx, (const char *const *)c->payers.v, c->payers.n, c->account,
                              c->period, &c->put.drafts, err);
}

/* A closed month stays as it is, so what is found here is still so in the loop. */
static void prepare(void *arg)
{
    issuing *c = arg;
    st_err err = {0};
    int64_t position;
    st_store *reader = st_api_reader(c->api, &err);
    int r = reader ? st_store_documents(reader, ST_BILL_TO, add_payer, c, &err) : -err.code;

    if (r >= 0)
        r = st_control_read(c->api->control, ST_READ_SHARED, 0, collect, c, &position, &err);
    for (size_t i = 0; r >= 0 && i < c->put.drafts.n; i++)
        r = st_invoice_corrections(reader, &c->put.drafts.v[i], &err);
    st_api_reader_back(c->api, reader);
    if (r < 0)
        issued(&c->put.cmd, &err);
    else
        st_api_post(c->api, c->call, &c->put.cmd);
}

typedef struct issue_fields {
    const char *period, *account;
} issue_fields;

static const st_field issue_rows[] = {
    {.key = "period",
     .kind = ST_F_LINE,
     .offset = offsetof(issue_fields, period),
     .required = true},
    {.key = "account", .kind = ST_F_LINE, .offset = offsetof(issue_fields, account)},
    {0},
};

static int read_issue(issuing *c, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    issue_fields f = {0};
    char q[ST_QUOTE_MAX];
    int r = st_call_doc(c->call, &doc, err);

    if (r == 0)
        r = st_doc_expect(doc, st_doc_root(doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(doc, st_doc_root(doc), issue_rows, &f, err);
    if (r == 0 && strlen(f.period) != sizeof c->period - 1)
        r = st_fail(err, ST_EINVAL, "a month is written 2026-10, not %s", st_quote(q, f.period));
    if (r < 0)
        return r;
    snprintf(c->period, sizeof c->period, "%s", f.period);
    c->account = f.account ? st_xstrdup(f.account) : NULL;
    return 0;
}

void st_api_invoices_issue(st_call *call, void *ctx)
{
    issuing *c = st_xcalloc(1, sizeof *c);
    st_err err = {0};

    c->api = ctx;
    c->call = call;
    c->put.who = *st_api_who(call);
    st_cmd_invoices_init(&c->put);
    c->put.cmd.done = issued;
    if (read_issue(c, &err) < 0) {
        st_call_fail(call, &err);
        issuing_free(c);
        return;
    }
    st_call_defer(call);
    if (st_work_run(c->api->work, prepare, c))
        return;
    st_fail(&err, ST_EDOWN, "many bills are being written just now; try again in a moment");
    issued(&c->put.cmd, &err);
}
