/*
 * `stint bill`: a month of an account as a table with numbered lines, and the other formats, which are the server's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "cli/admin_doc.h"
#include "cli/bill_explain.h"
#include "cli/table.h"
#include "cli/view.h"

typedef struct bill_flags {
    const char *account, *format, *save;
    int64_t explain; /* 0: not asked */
} bill_flags;

const st_cli_row st_cli_bill_options[] = {
    {"account", 'a', ST_CLI_STRING, offsetof(bill_flags, account), "ACCOUNT",
     "account, with all below it (default: yours)", 0, 0},
    {"explain", 'e', ST_CLI_I64, offsetof(bill_flags, explain), "LINE",
     "show the intervals and grants of a line", 1, INT64_MAX},
    {"output", 'o', ST_CLI_STRING, offsetof(bill_flags, format), "table|json|csv|html|focus|file",
     "output format (default: table); file can be verified offline (`stint bill verify`)", 0, 0},
    {"save", 's', ST_CLI_STRING, offsetof(bill_flags, save), "FILE",
     "write to this file (default: standard output)", 0, 0},
    {0},
};

/* "/v1/bills/open?account=..." */
static void bill_path(st_strbuf *out, const char *month, const char *tail, const char *account)
{
    st_strbuf_add(out, "/v1/bills/");
    st_url_add(out, month);
    st_strbuf_addf(out, "%s?", tail);
    if (account) {
        st_strbuf_add(out, "account=");
        st_url_add(out, account);
        st_strbuf_addc(out, '&');
    }
}

/* ---- a bill as a table --------------------------------------------------------------------------- */

static int64_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

/* Quantity in priced units, to thousandths. */
static void put_quantity(st_table *t, const json_t *line)
{
    char buf[ST_RATIO_MAX];
    int64_t per = number(line, "quantity_per_unit");
    const char *unit = st_view_text(line, "unit");

    if (!*unit || per < 1) {
        st_table_cell(t, "-");
        st_table_cell(t, "-");
        return;
    }
    st_table_cell(t, "%s", st_ratio(buf, number(line, "quantity"), per, 3));
    st_table_cell(t, "%s", unit);
}

static void put_rate(st_table *t, const json_t *line)
{
    char buf[ST_MONEY_MAX], factor[ST_RATIO_MAX];
    const json_t *rate = st_view_at(line, "rate_udollars"), *bp = st_view_at(line, "factor_bp");

    if (!rate || !bp) {
        st_table_cell(t, *st_view_text(line, "unit") ? "several" : "-");
        return;
    }
    st_money(buf, json_integer_value(rate));
    if (json_integer_value(bp) == ST_BP)
        st_table_cell(t, "%s", buf);
    else
        st_table_cell(t, "%s x %s%%", buf, st_ratio(factor, json_integer_value(bp), 100, 2));
}

static void put_lines(st_cli *cli, const json_t *bill)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    static const struct {
        const char *heading;
        bool right;
    } columns[] = {{"#", true},     {"ACCOUNT", false}, {"FOR", false},
                   {"GPU", false},  {"LEVEL", false},   {"QUANTITY", true},
                   {"UNIT", false}, {"RATE", true},     {"AMOUNT", true}};
    json_t *line;
    size_t i;

    for (size_t c = 0; c < ST_ARRAY_LEN(columns); c++)
        st_table_column(&t, columns[c].heading, columns[c].right);
    json_array_foreach(json_object_get(bill, "lines"), i, line)
    {
        const char *gpu = st_view_text(line, "gpu"), *level = st_view_text(line, "level");

        st_table_cell(&t, "%zu", i + 1);
        st_table_cell(&t, "%s", st_view_text(line, "account"));
        st_table_cell(&t, "%s", st_view_text(line, "component"));
        st_table_cell(&t, "%s", *gpu ? gpu : "-");
        st_table_cell(&t, "%s", *level ? level : "-");
        put_quantity(&t, line);
        put_rate(&t, line);
        st_table_cell(&t, "%s", st_view_text(line, "amount"));
    }
    st_table_print_fitted(&t, cli->out, st_table_terminal_width(cli->out));
}

static void put_hours(st_table *t, const json_t *row, const char *key)
{
    char buf[ST_RATIO_MAX];

    st_table_cell(t, "%s", st_ratio(buf, number(row, key), st_component_per(ST_PAY_BURST), 2));
}

/* Paid, held, used: side by side, so that what was paid and not used is seen. */
static void put_uses(st_cli *cli, const json_t *bill)
{
    static const char *const keys[] = {"reserved_mgpu_ms",  "guaranteed_mgpu_ms", "burst_mgpu_ms",
                                       "on_demand_mgpu_ms", "seen_mgpu_ms",       "busy_mgpu_ms",
                                       "lost_mgpu_ms"};
    static const char *const headings[] = {"RESERVED", "OF IT HELD", "BURST", "ON DEMAND",
                                           "WATCHED",  "BUSY",       "LOST"};
    ST_CLEANUP(st_table_done) st_table t = {0};
    json_t *use;
    size_t i;

    st_table_column(&t, "GPU HOURS OF", false);
    for (size_t k = 0; k < ST_ARRAY_LEN(headings); k++)
        st_table_column(&t, headings[k], true);
    st_table_column(&t, "JOBS", true);
    json_array_foreach(json_object_get(bill, "uses"), i, use)
    {
        if (!*st_view_text(use, "account"))
            continue; /* the cluster itself uses nothing */
        st_table_cell(&t, "%s", st_view_text(use, "account"));
        for (size_t k = 0; k < ST_ARRAY_LEN(keys); k++)
            put_hours(&t, use, keys[k]);
        st_table_cell(&t, "%lld", (long long)number(use, "jobs"));
    }
    fputc('\n', cli->out);
    st_table_print_fitted(&t, cli->out, st_table_terminal_width(cli->out));
}

#define A_CENT 10000 /* micro-dollars; less is not worth a line */

static void put_idle(st_cli *cli, const json_t *bill)
{
    const json_t *list = json_object_get(bill, "idle_reservations");
    char money[ST_MONEY_MAX], hours[ST_RATIO_MAX];
    json_t *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        if (i == 3 || number(row, "cost_udollars") < A_CENT)
            break;
        fprintf(cli->out, "%s%s: %s for reserved GPU time that was not used (%s GPU hours)\n",
                i == 0 ? "\n" : "", st_view_text(row, "account"),
                st_money(money, number(row, "cost_udollars")),
                st_ratio(hours, number(row, "unused_mgpu_ms"), st_component_per(ST_PAY_BURST), 1));
    }
}

static void put_bill(st_cli *cli, const json_t *bill)
{
    const char *account = st_view_text(bill, "account");
    json_int_t pay = number(bill, "accounts_charged"), told = number(bill, "accounts_shown");

    if (pay > 0 && told > 0)
        fprintf(cli->out,
                "%s, %s%s, mixed: %lld account%s to pay, for %lld it is for information\n\n",
                *account ? account : "All accounts", st_view_text(bill, "period"),
                json_is_true(json_object_get(bill, "closed")) ? "" : " so far", (long long)pay,
                pay == 1 ? " has" : "s have", (long long)told);
    else
        fprintf(cli->out, "%s, %s%s, %s\n\n", *account ? account : "All accounts",
                st_view_text(bill, "period"),
                json_is_true(json_object_get(bill, "closed")) ? "" : " so far",
                pay > 0 || json_is_true(json_object_get(bill, "chargeback"))
                    ? "to be paid"
                    : "for information (showback)");
    if (json_object_get(bill, "restored"))
        fprintf(
            cli->out,
            "Restored on %s from a backup of %s: a bill for this month that\nwas made in between "
            "is void.\n\n",
            st_view_text(bill, "restored.at"), st_view_text(bill, "restored.from"));
    put_lines(cli, bill);
    fprintf(cli->out, "\nTotal %s %s\n", st_view_text(bill, "total"),
            st_view_text(bill, "currency"));
    if (number(bill, "owed_udollars") != 0 &&
        number(bill, "owed_udollars") != number(bill, "total_udollars"))
        fprintf(cli->out, "  to be paid %s; the rest is of times without chargeback\n",
                st_view_text(bill, "owed"));
    put_uses(cli, bill);
    put_idle(cli, bill);
}

/* ---- the verb ---------------------------------------------------------------------------------------- */

static int explain(st_cli *cli, st_client *client, const char *month, const bill_flags *f,
                   st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0}, entries = {0};
    json_t *bill = NULL, *line;
    size_t n;
    int r;

    bill_path(&path, month, "", f->account);
    r = st_client_get(client, st_strbuf_str(&path), &bill, err);
    if (r < 0)
        return r;
    n = json_array_size(json_object_get(bill, "lines"));
    line = json_array_get(json_object_get(bill, "lines"), (size_t)f->explain - 1);
    if (!line)
        r = st_fail(err, ST_ENOENT, "the bill has %zu lines; there is no line %lld", n,
                    (long long)f->explain);
    if (line) {
        bill_path(&entries, month, "/entries", st_view_text(line, "account"));
        r = st_bill_explain(cli, client, st_strbuf_str(&entries), line, f->format, err);
    }
    json_decref(bill);
    return r;
}

static int write_out(st_cli *cli, const bill_flags *f, const st_strbuf *text, st_err *err)
{
    FILE *file = f->save ? fopen(f->save, "we") : cli->out;
    bool ok = file && fwrite(text->s, 1, text->n, file) == text->n;

    if (f->save && file)
        ok = fclose(file) == 0 && ok;
    if (f->save && !ok)
        return st_fail(err, ST_EIO, "%s: cannot be written: %s", f->save, strerror(errno));
    if (f->save)
        fprintf(cli->errors, "the bill is in %s\n", f->save);
    return 0;
}

static bool known_format(const char *format)
{
    static const char *const formats[] = {"table", "json", "csv", "html", "focus", "file"};

    for (size_t i = 0; i < ST_ARRAY_LEN(formats); i++)
        if (strcmp(formats[i], format) == 0)
            return true;
    return false;
}

static int check_flags(const char *verb, const bill_flags *f, st_err *err)
{
    const bool text = strcmp(f->format, "table") == 0 || strcmp(f->format, "json") == 0 ||
                      strcmp(f->format, "csv") == 0;
    char q[ST_QUOTE_MAX];

    if (!known_format(f->format))
        return st_fail(err, ST_EINVAL, "%s: there is no format %s", verb, st_quote(q, f->format));
    if (f->explain > 0 && (!text || f->save))
        return st_fail(err, ST_EINVAL,
                       "%s: --explain prints a table, or with -o json or csv, to standard output",
                       verb);
    if (f->save && strcmp(f->format, "table") == 0)
        return st_fail(err, ST_EINVAL,
                       "%s: --save wants a format for files: -o file, html, csv, focus or json",
                       verb);
    return 0;
}

static int show(st_cli *cli, st_client *client, const char *month, const bill_flags *f, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    json_t *bill = NULL;
    int r;

    bill_path(&path, month, "", f->account);
    if (strcmp(f->format, "table") == 0) {
        r = st_client_get(client, st_strbuf_str(&path), &bill, err);
        if (r == 0)
            put_bill(cli, bill);
        json_decref(bill);
        return r;
    }
    st_strbuf_addf(&path, "format=%s", f->format);
    r = st_client_call(client, &(st_request){.path = st_strbuf_str(&path)}, &response, err);
    return r < 0 ? r : write_out(cli, f, &response.body, err);
}

int st_cli_bill(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    bill_flags f = {.format = "table"};
    int n, r = st_cli_read(argc, argv, st_cli_bill_options, &f, 0, 1, &n, err);

    if (r == 0)
        r = check_flags(argv[0], &f, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    const char *month = n > 0 ? argv[1] : "open";
    r = f.explain > 0 ? explain(cli, client, month, &f, err) : show(cli, client, month, &f, err);
    return r < 0 && f.account ? st_admin_near(client, "accounts", f.account, r, err) : r;
}

int st_cli_bill_list(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_view_column columns[] = {
        {"MONTH", "period", ST_VIEW_TEXT, NULL},
        {"FROM", "from", ST_VIEW_TEXT, NULL},
        {"TO", "to", ST_VIEW_TEXT, NULL},
        {0},
    };
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    return r < 0 ? r : st_view_list(cli, client, ST_CLI_TABLE, "/v1/bills", "months", columns, err);
}

int st_cli_bill_key(st_cli *cli, int argc, char **argv, st_err *err)
{
    static const st_cli_row no_options[] = {{0}};
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    json_t *doc = NULL;
    int none = 0, r = st_cli_read(argc, argv, no_options, &none, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_client_get(client, "/v1/billing", &doc, err);
    if (r == 0)
        fprintf(cli->out, "%s\n", st_view_text(doc, "key"));
    json_decref(doc);
    return r;
}
