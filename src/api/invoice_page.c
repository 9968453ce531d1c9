/*
 * An invoice on paper: one file, nothing from outside, no script. All texts go through st_quote_html or st_csv_field, since
 * names and addresses are what somebody typed.
 */
#include "api/invoice_page.h"

#include <string.h>

#include "base/quote.h"
#include "bill/bill.h"

static const char style[] =
    "@page{size:A4;margin:18mm 16mm 20mm;@bottom-right{content:counter(page) ' / ' counter(pages);"
    "font:9px sans-serif;color:#4b5563}@bottom-left{content:var(--number);font:9px sans-serif;"
    "color:#4b5563}}"
    "*{box-sizing:border-box}p{margin:0}"
    "body{margin:0;color:#111827;background:#f3f4f6;"
    "font:13px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}"
    "main{max-width:860px;margin:24px auto;padding:40px 44px;background:#fff}"
    "header{display:flex;justify-content:space-between;gap:32px}"
    "h1{margin:0 0 4px;font-size:26px}h2{margin:0 0 4px;font-size:11px;font-weight:600;"
    "color:#4b5563;text-transform:uppercase;letter-spacing:.05em}"
    ".who{overflow-wrap:anywhere;max-width:60%}.right{text-align:right;white-space:nowrap}"
    ".parties{display:grid;grid-template-columns:1fr 1fr;gap:32px;margin:28px 0}"
    ".parties div{overflow-wrap:anywhere}"
    "table{width:100%;border-collapse:collapse}th{font-weight:500;text-align:left;color:#4b5563;"
    "font-size:11px}th,td{padding:5px 8px;border-bottom:1px solid #e5e7eb;vertical-align:top}"
    "th:first-child,td:first-child{padding-left:0;overflow-wrap:anywhere}"
    "th:last-child,td:last-child{padding-right:0}thead th{border-bottom:1px solid #6b7280}"
    ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".sums{width:60%;margin:18px 0 0 auto;break-inside:avoid}.sums tr:last-child td{"
    "border-top:2px solid #111827;border-bottom:0;font-weight:650;font-size:16px}"
    ".note{margin-top:24px;color:#4b5563;overflow-wrap:anywhere;break-inside:avoid}"
    "@media print{body{background:#fff;font-size:11px}main{max-width:none;margin:0;padding:0}"
    "tr,header,.parties{break-inside:avoid}thead{display:table-header-group}}";

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

static bool is_credit(const json_t *invoice)
{
    return strcmp(text(invoice, "kind"), "credit_note") == 0;
}

/* ---- the page ------------------------------------------------------------------------------------- */

/* Numbers as they are, with a minus sign that is one. */
static void put_number(st_strbuf *out, const char *s)
{
    if (*s == '-')
        st_strbuf_add(out, "&minus;");
    st_quote_html(out, *s == '-' ? s + 1 : s);
}

/* Words of ours have underscores where people have blanks. */
static void put_words(st_strbuf *out, const char *s)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf plain = {0};

    for (; *s; s++)
        st_strbuf_addc(&plain, *s == '_' ? ' ' : *s);
    st_quote_html(out, st_strbuf_str(&plain));
}

static void put_line_of(st_strbuf *out, const char *label, const char *value)
{
    if (!*value)
        return;
    st_strbuf_addf(out, "<p>%s", label);
    st_quote_html(out, value);
    st_strbuf_add(out, "</p>");
}

static void put_party(st_strbuf *out, const char *heading, const json_t *party)
{
    const json_t *line;
    size_t i;

    st_strbuf_addf(out, "<div><h2>%s</h2><p><b>", heading);
    st_quote_html(out, text(party, "name"));
    st_strbuf_add(out, "</b></p>");
    json_array_foreach(json_object_get(party, "address"), i, line)
        put_line_of(out, "", json_string_value(line));
    put_line_of(out, "Tax id ", text(party, "tax_id"));
    put_line_of(out, "", text(party, "email"));
    put_line_of(out, "Your reference: ", text(party, "reference"));
    st_strbuf_add(out, "</div>");
}

static void put_head(const json_t *invoice, st_strbuf *out)
{
    const char *kind = is_credit(invoice) ? "Credit note" : "Invoice",
               *number = text(invoice, "number");

    st_strbuf_addf(out, "<!doctype html><html lang=en><meta charset=utf-8><title>%s ", kind);
    st_quote_html(out, number);
    /* A number is letters, digits and a dash. */
    st_strbuf_addf(out,
                   "</title><style>:root{--number:'%s %s'}%s</style><main><header><div class=who>",
                   kind, number, style);
    st_strbuf_addf(out, "<h1>%s ", kind);
    st_quote_html(out, number);
    st_strbuf_add(out, "</h1>");
    put_line_of(out, "refers to invoice ", text(invoice, "refers_to"));
    put_line_of(out, "account ", text(invoice, "account"));
    st_strbuf_add(out, "</div><div class=right>");
    put_line_of(out, "Issued ", text(invoice, "issued"));
    if (!is_credit(invoice))
        put_line_of(out, "<b>Due</b> ", text(invoice, "due"));
    put_line_of(out, "Month ", text(invoice, "period"));
    if (!*text(invoice, "refers_to")) {
        st_strbuf_addf(out, "<p>%.10s to %.10s UTC</p>", text(invoice, "from"),
                       text(invoice, "to"));
    }
    st_strbuf_add(out, "</div></header><div class=parties>");
    put_party(out, "From", json_object_get(invoice, "issuer"));
    put_party(out, "To", json_object_get(invoice, "bill_to"));
    st_strbuf_add(out, "</div>");
}

static void put_lines(const json_t *invoice, st_strbuf *out)
{
    const json_t *line;
    size_t i;

    st_strbuf_add(out,
                  "<table><thead><tr><th>Account<th>For<th>GPU<th class=n>Quantity<th class=n>Rate"
                  "<th class=n>Amount, ");
    st_quote_html(out, text(invoice, "currency"));
    st_strbuf_add(out, "</thead><tbody>");
    json_array_foreach(json_object_get(invoice, "lines"), i, line)
    {
        st_strbuf_add(out, "<tr><td>");
        st_quote_html(out, text(line, "account"));
        st_strbuf_add(out, "<td>");
        put_words(out, text(line, "for"));
        st_strbuf_add(out, "<td>");
        st_quote_html(out, strcmp(text(line, "gpu"), "*") == 0 ? "any" : text(line, "gpu"));
        if (*text(line, "level") && strcmp(text(line, "level"), "whole") != 0)
            st_strbuf_addf(out, " %s", text(line, "level"));
        st_strbuf_add(out, "<td class=n>");
        put_number(out, text(line, "quantity"));
        st_strbuf_addf(out, "%s%s<td class=n>", *text(line, "unit") ? "&nbsp;" : "",
                       text(line, "unit"));
        put_number(out, text(line, "rate"));
        st_strbuf_add(out, "<td class=n>");
        put_number(out, text(line, "amount"));
    }
    st_strbuf_add(out, "</table>");
}

static void put_sum(st_strbuf *out, const char *label, const char *amount)
{
    st_strbuf_add(out, "<tr><td>");
    st_quote_html(out, label);
    st_strbuf_add(out, "<td class=n>");
    put_number(out, amount);
}

static void put_sums(const json_t *invoice, st_strbuf *out)
{
    const json_t *tax;
    char label[160];
    size_t i;

    st_strbuf_add(out, "<table class=sums><tbody>");
    put_sum(out, "Sum of the lines", text(invoice, "sum"));
    put_sum(out, "Rounding to whole cents", text(invoice, "rounding"));
    put_sum(out, "Net", text(invoice, "net"));
    json_array_foreach(json_object_get(invoice, "taxes"), i, tax)
    {
        snprintf(label, sizeof label, "%s, %s %% of net", text(tax, "name"),
                 text(tax, "rate_percent"));
        put_sum(out, label, text(tax, "amount"));
    }
    snprintf(label, sizeof label, "%s, %s", is_credit(invoice) ? "Total credited" : "Total to pay",
             text(invoice, "currency"));
    put_sum(out, label, text(invoice, "total"));
    st_strbuf_add(out, "</table>");
}

void st_invoice_html(const json_t *invoice, st_strbuf *out)
{
    put_head(invoice, out);
    put_lines(invoice, out);
    put_sums(invoice, out);
    st_strbuf_add(out, "<div class=note>");
    if (!is_credit(invoice))
        put_line_of(out, "", text(json_object_get(invoice, "issuer"), "payment"));
    st_strbuf_add(out,
                  "<p>Amounts of lines have up to six decimals and add up exactly; the net amount "
                  "is their sum, rounded half up to a cent. The bill of the month shows every "
                  "interval behind a line.</p></div></main></html>\n");
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static void put_row(const json_t *invoice, const json_t *line, const char *what, const char *amount,
                    st_strbuf *out)
{
    static const char *const head[] = {"number", "kind",   "refers_to", "account",
                                       "period", "issued", "due"};
    static const char *const of_line[] = {"account",  "for",  "gpu", "level",
                                          "quantity", "unit", "rate"};

    for (size_t i = 0; i < ST_ARRAY_LEN(head); i++)
        st_csv_field(out, text(invoice, head[i]), i == 0);
    st_csv_field(out, what, false);
    for (size_t i = 0; i < ST_ARRAY_LEN(of_line); i++)
        st_csv_field(out, line ? text(line, of_line[i]) : NULL, false);
    st_csv_field(out, amount, false);
    st_csv_field(out, text(invoice, "currency"), false);
    st_csv_field(out, text(json_object_get(invoice, "bill_to"), "name"), false);
    st_strbuf_add(out, "\r\n");
}

void st_invoice_csv(const json_t *invoice, st_strbuf *out)
{
    const json_t *row;
    size_t i;

    st_strbuf_add(out,
                  "number,kind,refers_to,account,period,issued,due,row,of_account,for,gpu,level,"
                  "quantity,unit,rate,amount,currency,bill_to\r\n");
    json_array_foreach(json_object_get(invoice, "lines"), i, row)
        put_row(invoice, row, "line", text(row, "amount"), out);
    put_row(invoice, NULL, "rounding", text(invoice, "rounding"), out);
    put_row(invoice, NULL, "net", text(invoice, "net"), out);
    json_array_foreach(json_object_get(invoice, "taxes"), i, row)
    {
        ST_CLEANUP(st_strbuf_done) st_strbuf what = {0};

        st_strbuf_addf(&what, "tax %s %s%%", text(row, "name"), text(row, "rate_percent"));
        put_row(invoice, NULL, st_strbuf_str(&what), text(row, "amount"), out);
    }
    put_row(invoice, NULL, "total", text(invoice, "total"), out);
}
