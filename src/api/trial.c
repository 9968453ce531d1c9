/*
 * The trial balance of a month: what every account of the books was debited and credited, so that a finance system can take it
 * over. Both sides come from the store as it is: the account whose book an entry is in, and the one that stands beside each line
 * (`contra`). What invoices did is in it too: they move what was used from the account to what it owes, with tax and rounding.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bills.h"
#include "base/mem.h"
#include "bill/invoice.h"
#include "billing/invoices.h"
#include "control/control.h"

typedef struct side {
    char *name;
    const char *kind; /* usage, revenue, receivable, tax, rounding */
    st_i128 debit, credit;
} side;

typedef struct trial {
    const char *period;
    st_arena *arena;
    st_map *ids;
    ST_VEC(side) sides;
} trial;

static void trial_done(trial *t)
{
    for (size_t i = 0; i < t->sides.n; i++)
        free(t->sides.v[i].name);
    st_vec_free(&t->sides);
    st_map_free(t->ids);
}

/* Below 0 it is the other side. */
static void post(trial *t, const char *name, const char *kind, int64_t debit)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    int64_t at;

    st_strbuf_addf(&key, "%s %s", kind, name);
    if (!st_map_get(t->ids, st_strbuf_str(&key), &at)) {
        at = (int64_t)t->sides.n;
        st_map_put(t->ids, st_strbuf_str(&key), at);
        st_vec_push(&t->sides, (side){.name = st_xstrdup(name), .kind = kind});
    }
    if (debit >= 0)
        t->sides.v[at].debit += debit;
    else
        t->sides.v[at].credit -= debit;
}

static int see_entry(void *ctx, const st_book_row *row, st_err *err)
{
    trial *t = ctx;
    char contra[64];
    st_entry e;
    int r;

    if (strcmp(row->period, t->period) != 0 || !strstr(row->data, "\"lines\":"))
        return 0;
    st_arena_reset(t->arena);
    r = st_entry_read(row->data, strlen(row->data), t->arena, &e, err);
    for (int i = 0; r == 0 && i < e.nlines; i++) {
        snprintf(contra, sizeof contra, "#%s", st_component_name(e.lines[i].what));
        post(t, e.account, "usage", e.lines[i].amount);
        post(t, contra, "revenue", -e.lines[i].amount);
    }
    return r;
}

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

static int64_t number(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

static int see_invoice(void *ctx, const st_document_row *row, st_err *err)
{
    trial *t = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL), *tax;
    size_t i;

    (void)err;
    if (strcmp(text(doc, "posted"), t->period) == 0) {
        post(t, text(doc, "book"), "receivable", number(doc, "total_cents") * ST_CENT);
        post(t, text(doc, "book"), "invoiced", -number(doc, "sum_udollars"));
        post(t, "#rounding", "rounding", -number(doc, "rounding_udollars"));
        json_array_foreach(json_object_get(doc, "taxes"), i, tax)
            post(t, text(tax, "name"), "tax", -number(tax, "cents") * ST_CENT);
    }
    json_decref(doc);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const side *x = a, *y = b;
    int c = strcmp(x->kind, y->kind);

    return c ? c : strcmp(x->name, y->name);
}

static const char *money(char buf[ST_MONEY_MAX], st_i128 udollars)
{
    return st_money(buf, (int64_t)ST_MIN(udollars, (st_i128)INT64_MAX));
}

static void put_json(const st_bill_call *c, const trial *t, st_strbuf *out)
{
    st_i128 debit = 0, credit = 0;

    st_strbuf_addc(out, '{');
    st_out_text(out, "period", t->period);
    st_out_raw(out, "closed", c->bill->closed ? "true" : "false");
    st_out_text(out, "currency", st_control_currency(c->api->control));
    st_out_raw(out, "rows", "[");
    for (size_t i = 0; i < t->sides.n; i++) {
        const side *s = &t->sides.v[i];

        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "kind", s->kind);
        st_out_text(out, "account", s->name);
        st_out_money(out, "debit", (int64_t)s->debit);
        st_out_money(out, "credit", (int64_t)s->credit);
        st_strbuf_addc(out, '}');
        debit += s->debit;
        credit += s->credit;
    }
    st_strbuf_addc(out, ']');
    st_out_money(out, "debit", (int64_t)debit);
    st_out_money(out, "credit", (int64_t)credit);
    st_out_raw(out, "balanced", debit == credit ? "true" : "false");
    st_strbuf_addc(out, '}');
}

static void put_csv(const st_bill_call *c, const trial *t, st_strbuf *out)
{
    char debit[ST_MONEY_MAX], credit[ST_MONEY_MAX];

    st_strbuf_add(out, "period,kind,account,debit,credit,currency\r\n");
    for (size_t i = 0; i < t->sides.n; i++) {
        const side *s = &t->sides.v[i];

        st_csv_field(out, t->period, true);
        st_csv_field(out, s->kind, false);
        st_csv_field(out, s->name, false);
        st_csv_field(out, money(debit, s->debit), false);
        st_csv_field(out, money(credit, s->credit), false);
        st_csv_field(out, st_control_currency(c->api->control), false);
        st_strbuf_add(out, "\r\n");
    }
}

static void finish_trial(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    trial t = {.period = c->bill->period.name, .arena = arena, .ids = st_map_new()};
    const bool csv = strcmp(c->format, "csv") == 0;
    st_err err = {0};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < c->bill->uses.n; i++) {
        const st_bill_use *u = &c->bill->uses.v[i];

        if (u->first_seq > 0)
            r = st_store_book_of(reader, u->account, u->first_seq, u->last_seq, see_entry, &t,
                                 &err);
    }
    if (r >= 0)
        r = st_store_documents(reader, ST_INVOICE, see_invoice, &t, &err);
    if (t.sides.n > 0)
        qsort(t.sides.v, t.sides.n, sizeof *t.sides.v, by_name);
    if (r < 0) {
        st_call_fail(c->call, &err);
    } else {
        if (csv)
            put_csv(c, &t, &out);
        else
            put_json(c, &t, &out);
        st_call_reply_buf(c->call, 200, csv ? "text/csv" : NULL, &out);
    }
    trial_done(&t);
}

/* Of all accounts, so it is for those who stand above all. */
void st_api_trial_balance(st_call *call, void *ctx)
{
    const char *format = st_call_query(call, "format");
    st_bill_call *c;
    st_err err;

    if (st_api_who(call)->account[0]) {
        st_fail(
            &err, ST_EPERM,
            "the trial balance is of all accounts: it is for owners and auditors of the cluster");
        st_call_fail(call, &err);
        return;
    }
    c = st_bill_call_new(ctx, call, format ? format : "json", finish_trial);
    if (c)
        st_bill_call_post(c);
}
