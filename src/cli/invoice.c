/*
 * `stint invoice`, and what owners set for it: who issues invoices, to whom, and the trial balance.
 */
#include <errno.h>
#include <string.h>

#include "base/file.h"
#include "base/quote.h"
#include "cli/admin_doc.h"
#include "cli/view.h"

#define FILE_MAX (1u << 20)

typedef struct invoice_flags {
    st_cli_format format;
    const char *kind, *account, *save;
    bool remove;
} invoice_flags;

#define OUTPUT(words, kind)                                          \
    {                                                                \
        "output", 'o', kind, offsetof(invoice_flags, format), words, \
            "output format (default: table)", 0, 0                   \
    }
#define ACCOUNT(about)                                                                          \
    {                                                                                           \
        "account", 'a', ST_CLI_STRING, offsetof(invoice_flags, account), "ACCOUNT", about, 0, 0 \
    }

static const st_cli_row list_options[] = {ACCOUNT("account, with all below it (default: yours)"),
                                          OUTPUT("table|json|csv", ST_CLI_LISTING),
                                          {0}};
static const st_cli_row issue_options[] = {
    ACCOUNT("only this account's (default: of all that have billing details)"),
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0}};
static const st_cli_row show_options[] = {
    {"output", 'o', ST_CLI_STRING, offsetof(invoice_flags, kind), "table|json|csv|html",
     "output format (default: table); print html for a PDF", 0, 0},
    {"save", 's', ST_CLI_STRING, offsetof(invoice_flags, save), "FILE",
     "write to this file (default: standard output)", 0, 0},
    {0},
};
const st_cli_row st_cli_issuer_options[] = {OUTPUT("table|json", ST_CLI_OUTPUT), {0}};
const st_cli_row st_cli_billing_options[] = {
    {"remove", 0, ST_CLI_FLAG, offsetof(invoice_flags, remove), NULL,
     "remove the details: the account gets no more invoices", 0, 0},
    OUTPUT("table|json", ST_CLI_OUTPUT),
    {0},
};
const st_cli_row st_cli_trial_options[] = {OUTPUT("table|json|csv", ST_CLI_LISTING), {0}};

static int begin(st_cli *cli, int argc, char **argv, const st_cli_row *options, int min, int max,
                 invoice_flags *f, st_client **client, int *ret_n, st_err *err)
{
    int r = st_cli_read(argc, argv, options, f, min, max, ret_n, err);

    return r < 0 ? r : st_client_open(cli->errors, client, err);
}

/* ---- lists ------------------------------------------------------------------------------------------ */

static void put_kind(const json_t *row, st_strbuf *out)
{
    st_strbuf_add(out, strcmp(st_view_text(row, "kind"), "credit_note") == 0 ? "credit note"
                                                                             : "invoice");
}

static const st_view_column invoice_columns[] = {
    {"NUMBER", "number", ST_VIEW_TEXT, NULL},
    {"KIND", "kind", ST_VIEW_FN, put_kind},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
    {"MONTH", "period", ST_VIEW_TEXT, NULL},
    {"ISSUED", "issued", ST_VIEW_TEXT, NULL},
    {"DUE", "due", ST_VIEW_TEXT, NULL},
    {"TOTAL", "total", ST_VIEW_NUM, NULL},
    {"REFERS TO", "refers_to", ST_VIEW_TEXT, NULL},
    {0},
};

static int invoice_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    invoice_flags f = {0};
    int n, r = begin(cli, argc, argv, list_options, 0, 0, &f, &client, &n, err);

    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/invoices");
    if (f.account) {
        st_strbuf_add(&path, "?account=");
        st_url_add(&path, f.account);
    }
    r = st_view_list(cli, client, f.format, st_strbuf_str(&path), "invoices", invoice_columns, err);
    return r < 0 && f.account ? st_admin_near(client, "accounts", f.account, r, err) : r;
}

static int invoice_issue(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_body_done) st_body body = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    char key[ST_KEY_MAX];
    invoice_flags f = {0};
    json_t *doc = NULL;
    int n, r = begin(cli, argc, argv, issue_options, 1, 1, &f, &client, &n, err);

    if (r < 0)
        return r;
    st_body_put(&body, "period", argv[1]);
    st_body_put(&body, "account", f.account);
    st_client_key(key);
    r = st_client_json(
        client,
        &(st_request){
            .method = "POST", .path = "/v1/invoices", .body = st_body_end(&body), .key = key},
        &doc, &response, err);
    if (r < 0)
        return r;
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else if (json_array_size(json_object_get(doc, "invoices")) == 0)
        fprintf(cli->out,
                "nobody owes anything for %s: an invoice needs billing details and a plan "
                "with chargeback\n",
                argv[1]);
    else
        st_view_rows(cli, f.format, json_object_get(doc, "invoices"), invoice_columns);
    json_decref(doc);
    return 0;
}

/* ---- one --------------------------------------------------------------------------------------------- */

static void put_invoice(st_cli *cli, const json_t *doc)
{
    static const st_view_column facts[] = {
        {"Number", "number", ST_VIEW_TEXT, NULL},
        {"Kind", "kind", ST_VIEW_FN, put_kind},
        {"Refers to", "refers_to", ST_VIEW_TEXT, NULL},
        {"Account", "account", ST_VIEW_TEXT, NULL},
        {"Month", "period", ST_VIEW_TEXT, NULL},
        {"Issued", "issued", ST_VIEW_TEXT, NULL},
        {"Due", "due", ST_VIEW_TEXT, NULL},
        {"From", "issuer.name", ST_VIEW_TEXT, NULL},
        {"To", "bill_to.name", ST_VIEW_TEXT, NULL},
        {0},
    };
    static const st_view_column lines[] = {
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"FOR", "for", ST_VIEW_TEXT, NULL},
        {"GPU", "gpu", ST_VIEW_TEXT, NULL},
        {"LEVEL", "level", ST_VIEW_TEXT, NULL},
        {"QUANTITY", "quantity", ST_VIEW_NUM, NULL},
        {"UNIT", "unit", ST_VIEW_TEXT, NULL},
        {"RATE", "rate", ST_VIEW_NUM, NULL},
        {"AMOUNT", "amount", ST_VIEW_NUM, NULL},
        {0},
    };
    static const st_view_column sums[] = {
        {"Sum of the lines", "sum", ST_VIEW_TEXT, NULL},
        {"Rounding to cents", "rounding", ST_VIEW_TEXT, NULL},
        {"Net", "net", ST_VIEW_TEXT, NULL},
        {0},
    };
    static const st_view_column total[] = {
        {"Total", "total", ST_VIEW_TEXT, NULL}, {"Currency", "currency", ST_VIEW_TEXT, NULL}, {0}};
    json_t *tax;
    size_t i;

    st_view_facts(cli, doc, facts);
    fputc('\n', cli->out);
    st_view_rows(cli, ST_CLI_TABLE, json_object_get(doc, "lines"), lines);
    fputc('\n', cli->out);
    st_view_facts(cli, doc, sums);
    json_array_foreach(json_object_get(doc, "taxes"), i, tax)
        fprintf(cli->out, "%s, %s%% of net: %s\n", st_view_text(tax, "name"),
                st_view_text(tax, "rate_percent"), st_view_text(tax, "amount"));
    st_view_facts(cli, doc, total);
}

static int write_out(st_cli *cli, const char *save, const st_strbuf *text, st_err *err)
{
    FILE *file = save ? fopen(save, "we") : cli->out;
    bool ok = file && fwrite(text->s, 1, text->n, file) == text->n;

    if (save && file)
        ok = fclose(file) == 0 && ok;
    if (save && !ok)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", save, strerror(errno));
    if (save)
        fprintf(cli->errors, "the invoice is in %s\n", save);
    return 0;
}

static int invoice_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    invoice_flags f = {.kind = "table"};
    char q[ST_QUOTE_MAX];
    json_t *doc = NULL;
    int n, r = begin(cli, argc, argv, show_options, 1, 1, &f, &client, &n, err);

    if (r < 0)
        return r;
    st_admin_path(&path, "invoices", argv[1]);
    if (strcmp(f.kind, "table") == 0) {
        if (f.save)
            return st_fail(err, ST_EINVAL, "%s: --save wants -o html, csv or json", argv[0]);
        r = st_client_get(client, st_strbuf_str(&path), &doc, err);
        if (r == 0)
            put_invoice(cli, doc);
        json_decref(doc);
        return r;
    }
    if (strcmp(f.kind, "json") != 0 && strcmp(f.kind, "csv") != 0 && strcmp(f.kind, "html") != 0)
        return st_fail(err, ST_EINVAL, "%s: there is no format %s", argv[0], st_quote(q, f.kind));
    st_strbuf_addf(&path, "?format=%s", f.kind);
    r = st_client_call(client, &(st_request){.path = st_strbuf_str(&path)}, &response, err);
    return r < 0 ? r : write_out(cli, f.save, &response.body, err);
}

const st_cli_verb st_cli_invoice_verbs[] = {
    {"list", "List invoices and credit notes", "[OPTION...]", .fn = invoice_list,
     .options = list_options, .example = "  stint invoice list\n"},
    {"show", "Show or print an invoice", "[OPTION...] NUMBER",
     "An invoice never changes. Open the html page in a browser and print it for a PDF.\n",
     .fn = invoice_show, .options = show_options,
     .example = "  stint invoice show INV-000012 -o html --save invoice.html\n"},
    {"issue", "Issue the invoices of a closed month (owners)", "[OPTION...] MONTH",
     "Every account with billing details gets one, for itself and the accounts below it that have\n"
     "none. Corrections of earlier months become credit notes that refer to their invoices. An\n"
     "account gets one invoice a month: issuing again shows it.\n",
     .fn = invoice_issue, .options = issue_options, .example = "  stint invoice issue 2026-10\n"},
    {0},
};

/* ---- details ------------------------------------------------------------------------------------------ */

static int send_file(st_cli *cli, st_client *client, const invoice_flags *f, const char *path,
                     const char *file, const char *said, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = st_file_read(file, FILE_MAX, &text, err);

    return r < 0 ? r
                 : st_admin_send(cli, client,
                                 &(st_request){.method = "PUT",
                                               .path = path,
                                               .body = st_strbuf_str(&text),
                                               .type = "application/yaml",
                                               .file = file},
                                 f->format, said, err);
}

static void put_taxes(const json_t *row, st_strbuf *out)
{
    const json_t *tax;
    size_t i;
    char buf[ST_FMT_MAX];

    json_array_foreach(json_object_get(row, "taxes"), i, tax)
        st_strbuf_addf(out, "%s%s %s%%", i > 0 ? ", " : "", st_view_text(tax, "name"),
                       st_fmt_milli(buf, 10 * json_integer_value(json_object_get(tax, "rate_bp"))));
    if (json_array_size(json_object_get(row, "taxes")) == 0)
        st_strbuf_addc(out, '-');
}

static const st_view_column issuer_facts[] = {
    {"Name", "name", ST_VIEW_TEXT, NULL},       {"Address", "address", ST_VIEW_WORDS, NULL},
    {"Tax id", "tax_id", ST_VIEW_TEXT, NULL},   {"E-mail", "email", ST_VIEW_TEXT, NULL},
    {"Series", "series", ST_VIEW_TEXT, NULL},   {"Due after, days", "due_days", ST_VIEW_NUM, NULL},
    {"Payment", "payment", ST_VIEW_TEXT, NULL}, {0},
};
static const st_view_column payer_facts[] = {
    {"Name", "name", ST_VIEW_TEXT, NULL},
    {"Address", "address", ST_VIEW_WORDS, NULL},
    {"Tax id", "tax_id", ST_VIEW_TEXT, NULL},
    {"E-mail", "email", ST_VIEW_TEXT, NULL},
    {"Reference", "reference", ST_VIEW_TEXT, NULL},
    {"Due after, days", "due_days", ST_VIEW_NUM, NULL},
    {"Taxes", "taxes", ST_VIEW_FN, put_taxes},
    {0},
};

int st_cli_admin_issuer(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    invoice_flags f = {0};
    int n, r = begin(cli, argc, argv, st_cli_issuer_options, 0, 1, &f, &client, &n, err);

    if (r < 0)
        return r;
    return n > 0 ? send_file(cli, client, &f, "/v1/issuer", argv[1], "the issuer is set", err)
                 : st_view_one(cli, client, f.format, "/v1/issuer", issuer_facts, err);
}

int st_cli_admin_billing(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, said = {0};
    invoice_flags f = {0};
    int n, r = begin(cli, argc, argv, st_cli_billing_options, 1, 2, &f, &client, &n, err);

    if (r < 0)
        return r;
    if (f.remove && n > 1)
        return st_fail(err, ST_EINVAL, "%s: give a file, or --remove", argv[0]);
    st_admin_path(&path, "accounts", argv[1]);
    st_strbuf_add(&path, "/billing");
    st_strbuf_addf(&said, "account %s %s", argv[1],
                   f.remove ? "has no billing details any more" : "has the billing details");
    if (f.remove)
        r = st_admin_send(cli, client,
                          &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                          ST_CLI_TABLE, st_strbuf_str(&said), err);
    else if (n > 1)
        r = send_file(cli, client, &f, st_strbuf_str(&path), argv[2], st_strbuf_str(&said), err);
    else
        r = st_view_one(cli, client, f.format, st_strbuf_str(&path), payer_facts, err);
    return r < 0 ? st_admin_near(client, "accounts", argv[1], r, err) : 0;
}

/* ---- the trial balance -------------------------------------------------------------------------------- */

int st_cli_bill_trial(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"KIND", "kind", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
        {"DEBIT", "debit", ST_VIEW_NUM, NULL},
        {"CREDIT", "credit", ST_VIEW_NUM, NULL},
        {0},
    };
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    invoice_flags f = {0};
    json_t *doc = NULL;
    bool balanced;
    int n, r = begin(cli, argc, argv, st_cli_trial_options, 0, 1, &f, &client, &n, err);

    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/bills/");
    st_url_add(&path, n > 0 ? argv[1] : "open");
    st_strbuf_add(&path, "/trial-balance");
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response, err);
    if (r < 0)
        return r;
    balanced = json_is_true(json_object_get(doc, "balanced"));
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        st_view_rows(cli, f.format, json_object_get(doc, "rows"), columns);
    if (f.format == ST_CLI_TABLE)
        fprintf(cli->out, "\nDebits %s, credits %s %s\n", st_view_text(doc, "debit"),
                st_view_text(doc, "credit"), st_view_text(doc, "currency"));
    json_decref(doc);
    return balanced ? 0 : st_fail(err, ST_ECORRUPT, "debits and credits differ");
}
