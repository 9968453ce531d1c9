/* A bill as a page for people and printers: one file, nothing from outside, no script.
 *
 * All that comes from outside goes through put_text. Amounts have all six decimals, the last four in small print, so that
 * they line up and add up. */
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "bill/bill.h"
#include "bill/style.h"
#include "proof/strict.h"

#define BAR_W     240
#define IDLE_ROWS 10

/* The account's name, or what the cluster is called. */
static void put_account(st_strbuf *out, const char *account)
{
    st_quote_html(out, *account ? account : "the whole cluster");
}

/* Digits in groups of three. */
static void put_grouped(st_strbuf *out, uint64_t v)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            st_strbuf_addc(out, ',');
        st_strbuf_addc(out, digits[i]);
    }
}

static void put_money(st_strbuf *out, int64_t udollars)
{
    uint64_t u = udollars < 0 ? 0 - (uint64_t)udollars : (uint64_t)udollars;
    unsigned rest = (unsigned)(u % 1000000);

    if (udollars < 0)
        st_strbuf_add(out, "&minus;");
    put_grouped(out, u / 1000000);
    st_strbuf_addf(out, ".%02u<small>%04u</small>", rest / 10000, rest % 10000);
}

/* n / d with three decimals, rounded half away from zero. */
static void put_decimal(st_strbuf *out, int64_t n, int64_t d)
{
    st_u128 u = n < 0 ? (st_u128)0 - (st_u128)n : (st_u128)n;
    uint64_t thousandths = (uint64_t)((u * 2000 + (st_u128)d) / ((st_u128)d * 2));

    if (n < 0)
        st_strbuf_add(out, "&minus;");
    put_grouped(out, thousandths / 1000);
    st_strbuf_addf(out, ".%03u", (unsigned)(thousandths % 1000));
}

static void put_quantity(st_strbuf *out, st_component what, int64_t quantity)
{
    if (!*st_component_unit(what))
        return;
    put_decimal(out, quantity, st_component_per(what));
    st_strbuf_addf(out, "&nbsp;%s", st_component_unit(what));
}

static void put_hours(st_strbuf *out, int64_t mgpu_ms)
{
    put_decimal(out, mgpu_ms, st_component_per(ST_PAY_BURST));
}

static void put_component(st_strbuf *out, st_component what)
{
    for (const char *c = st_component_name(what); *c; c++)
        st_strbuf_addc(out, *c == '_' ? ' ' : *c);
}

/* To the minute, as people read it. */
static void put_moment(st_strbuf *out, int64_t ms)
{
    char utc[ST_UTC_MAX];

    st_utc(utc, ms);
    st_strbuf_addf(out, "%.10s&nbsp;%.5s", utc, utc + 11);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

static const char *about_component(st_component c)
{
#define X(id, name, unit, per, what) [id] = what,
    static const char *const texts[] = {ST_COMPONENT_TABLE(X)};
#undef X

    return texts[c];
}

static bool is_credit(st_component c)
{
    return c == ST_PAY_LOST || c == ST_PAY_FAULT || c == ST_PAY_CAP || c == ST_PAY_ADJUST ||
           c == ST_PAY_SHORT || c == ST_PAY_LENT;
}

/* Of floors and bookings one pays for what was reserved, of the rest for what was held. */
static int64_t paid_of(const st_bill_use *u)
{
    return u->reserved + u->burst + u->on_demand + u->booked;
}

static int64_t held_of(const st_bill_use *u)
{
    return u->guaranteed + u->burst + u->on_demand + u->booked;
}

static int percent(int64_t part, int64_t whole)
{
    return whole > 0 ? (int)((st_i128)ST_MAX(part, 0) * 100 / whole) : 0;
}

/* ---- sections --------------------------------------------------------------------------------------- */

static void put_head(const st_bill *bill, const st_export_about *about, st_strbuf *out)
{
    st_strbuf_add(out, "<!doctype html><html lang=en><meta charset=utf-8><title>Bill ");
    st_quote_html(out, bill->account);
    st_strbuf_addf(out, " %s</title><style>%s</style><main><header><div><p class=kind>",
                   bill->period.name, st_export_style);
    st_strbuf_addf(out, "%s %s</p><h1>", bill->closed ? "Final" : "Running",
                   bill->chargeback || bill->charged > 0 ? "bill" : "showback");
    put_account(out, bill->account);
    st_strbuf_addf(out, "</h1><p><b>%s</b> &middot; ", bill->period.name);
    put_moment(out, bill->period.from_ms);
    st_strbuf_add(out, " to ");
    put_moment(out, bill->period.to_ms);
    st_strbuf_add(out, " UTC, a month in ");
    st_quote_html(out, about->zone);
    st_strbuf_add(out, "<br>cluster ");
    st_quote_html(out, about->cluster);
    st_strbuf_add(out, " &middot; made ");
    put_moment(out, about->made_ms);
    if (bill->void_to_ms > 0) {
        st_strbuf_add(out, " UTC<br>restored on ");
        put_moment(out, bill->void_to_ms);
        st_strbuf_add(out, " UTC from a backup of ");
        put_moment(out, bill->void_from_ms);
        st_strbuf_add(out, " UTC: a bill for this month that was made in between is void");
        st_strbuf_add(out, "</p></div><div class=total>");
    } else {
        st_strbuf_add(out, " UTC</p></div><div class=total>");
    }
    st_strbuf_add(out, "<p>Total</p><p class=sum>");
    put_money(out, bill->total);
    st_strbuf_add(out, "</p><p>");
    st_quote_html(out, about->currency);
    if (bill->owed != 0 && bill->owed != bill->total) {
        st_strbuf_add(out, " &middot; to be paid: ");
        put_money(out, bill->owed);
        st_strbuf_add(out, ", the rest is for information</p></div></header>");
    } else if (bill->charged > 0 && bill->shown > 0)
        st_strbuf_addf(out,
                       " &middot; %d account%s to pay, for %d it is for information</p></div>"
                       "</header>",
                       bill->charged, bill->charged == 1 ? " has" : "s have", bill->shown);
    else
        st_strbuf_addf(out, "%s</p></div></header>",
                       bill->chargeback || bill->charged > 0
                           ? ""
                           : " &middot; for information, nothing is owed");
}

static void put_tile(st_strbuf *out, const char *label, int64_t amount)
{
    st_strbuf_addf(out, "<div><p>%s</p><p class=n>", label);
    put_money(out, amount);
    st_strbuf_add(out, "</p></div>");
}

static void put_tiles(const st_bill *bill, st_strbuf *out)
{
    int64_t reserved = 0, used = 0, extra = 0, credit = 0, paid = 0, held = 0;

    for (size_t i = 0; i < bill->lines.n; i++) {
        const st_bill_line *l = &bill->lines.v[i];
        int64_t *to = is_credit(l->what)           ? &credit
                      : l->what == ST_PAY_RESERVED ? &reserved
                      : l->what == ST_PAY_WINDOW   ? &reserved
                      : l->what <= ST_PAY_BOOKED   ? &used
                                                   : &extra;

        *to += l->amount;
    }
    for (size_t i = 0; i < bill->uses.n; i++) {
        paid += paid_of(&bill->uses.v[i]);
        held += held_of(&bill->uses.v[i]);
    }
    st_strbuf_add(out, "<section class=tiles>");
    put_tile(out, "Floors and bookings", reserved);
    put_tile(out, "GPU time", used);
    put_tile(out, "Premiums and other", extra);
    put_tile(out, "Credits", credit);
    st_strbuf_addf(out,
                   "<div><p>Held of what was paid</p><p class=n>%d&nbsp;%%</p></div></section>",
                   percent(held, paid));
}

static void put_components(const st_bill *bill, st_strbuf *out)
{
    st_strbuf_add(out, "<section><h2>By component</h2><table><thead><tr><th>Component<th>What it is"
                       "<th class=n>Quantity<th class=n>Amount</thead><tbody>");
    for (int c = 0; c < ST_PAY_COUNT; c++) {
        int64_t quantity = 0, amount = 0;
        bool any = false;

        for (size_t i = 0; i < bill->lines.n; i++) {
            if ((int)bill->lines.v[i].what != c)
                continue;
            any = true;
            quantity += bill->lines.v[i].quantity;
            amount += bill->lines.v[i].amount;
        }
        if (!any)
            continue;
        st_strbuf_add(out, "<tr><td>");
        put_component(out, (st_component)c);
        st_strbuf_addf(out, "<td class=dim>%s<td class=n>", about_component((st_component)c));
        put_quantity(out, (st_component)c, quantity);
        st_strbuf_add(out, "<td class=n>");
        put_money(out, amount);
    }
    st_strbuf_add(out, "<tfoot><tr><td colspan=3>Total<td class=n>");
    put_money(out, bill->total);
    st_strbuf_add(out, "</tfoot></table></section>");
}

static void put_bar(st_strbuf *out, const char *class, int y, int64_t v, int64_t most)
{
    int w = most > 0 ? (int)((st_i128)ST_MAX(v, 0) * BAR_W / most) : 0;

    st_strbuf_addf(out, "<rect class=%s x=0 y=%d width=%d height=5 rx=1 />", class, y,
                   v > 0 ? ST_MAX(w, 1) : 0);
}

static void put_use(const st_bill_use *u, int64_t most, st_strbuf *out)
{
    int64_t paid = paid_of(u), held = held_of(u);

    st_strbuf_add(out, "<tr><td>");
    put_account(out, u->account);
    st_strbuf_addf(out,
                   "<td><svg width=%d height=19 viewBox=\"0 0 %d 19\" role=img "
                   "aria-label=\"paid, held, used\">",
                   BAR_W, BAR_W);
    put_bar(out, "paid", 0, paid, most);
    put_bar(out, "held", 7, held, most);
    put_bar(out, "used", 14, u->busy, most);
    st_strbuf_add(out, "</svg><td class=n>");
    put_hours(out, paid);
    st_strbuf_add(out, "<td class=n>");
    put_hours(out, held);
    st_strbuf_add(out, "<td class=n>");
    if (u->seen > 0)
        put_hours(out, u->busy);
    else
        st_strbuf_add(out, "<span class=dim>not measured</span>");
    st_strbuf_addf(out, "<td class=n>%d&nbsp;%%<td class=n>", percent(held, paid));
    if (u->seen > 0)
        st_strbuf_addf(out, "%d&nbsp;%%", percent(u->busy, u->seen));
    st_strbuf_addf(out, "<td class=n>%lld", (long long)u->jobs);
}

static void put_uses(const st_bill *bill, st_strbuf *out)
{
    int64_t most = 0;

    for (size_t i = 0; i < bill->uses.n; i++)
        most = ST_MAX(most, ST_MAX(paid_of(&bill->uses.v[i]), held_of(&bill->uses.v[i])));
    if (most == 0)
        return;
    st_strbuf_add(out,
                  "<section><h2>Utilisation, in GPU-hours</h2><table><thead><tr><th>Account<th>"
                  "<span class=key><i class=paid></i>paid</span> "
                  "<span class=key><i class=held></i>held</span> "
                  "<span class=key><i class=used></i>used</span>"
                  "<th class=n>Paid<th class=n>Held<th class=n>Used<th class=n>Held of paid"
                  "<th class=n>Busy when measured<th class=n>Jobs begun</thead><tbody>");
    for (size_t i = 0; i < bill->uses.n; i++)
        if (paid_of(&bill->uses.v[i]) > 0 || held_of(&bill->uses.v[i]) > 0)
            put_use(&bill->uses.v[i], most, out);
    st_strbuf_add(out, "</table></section>");
}

static void put_idle(const st_export_about *about, st_strbuf *out)
{
    const st_idle_floors *idle = about->idle;

    if (!idle || idle->n == 0)
        return;
    st_strbuf_add(out, "<section><h2>Idle reservations that cost most</h2><table><thead><tr>"
                       "<th>Account<th class=n>Reserved, GPU-hours<th class=n>Unused"
                       "<th class=n>Unused<th class=n>What that cost</thead><tbody>");
    for (size_t i = 0; i < idle->n && i < IDLE_ROWS; i++) {
        st_strbuf_add(out, "<tr><td>");
        put_account(out, idle->v[i].account);
        st_strbuf_add(out, "<td class=n>");
        put_hours(out, idle->v[i].reserved);
        st_strbuf_add(out, "<td class=n>");
        put_hours(out, idle->v[i].unused);
        st_strbuf_addf(out, "<td class=n>%d&nbsp;%%<td class=n>",
                       percent(idle->v[i].unused, idle->v[i].reserved));
        put_money(out, idle->v[i].cost);
    }
    st_strbuf_add(out, "</table></section>");
}

static void put_line(const st_bill_line *l, st_strbuf *out)
{
    char buf[ST_RATIO_MAX], rate[ST_MONEY_MAX];

    st_strbuf_add(out, "<tr><td>");
    put_component(out, l->what);
    st_strbuf_add(out, "<td>");
    st_quote_html(out, strcmp(l->gpu, "*") == 0 ? "any" : l->gpu);
    if (*l->gpu && l->what != ST_PAY_RESERVED)
        st_strbuf_addf(out, " <span class=dim>%s</span>", st_level_name(l->level));
    st_strbuf_add(out, "<td class=n>");
    put_quantity(out, l->what, l->quantity);
    st_strbuf_add(out, "<td class=n>");
    if (!*st_component_unit(l->what)) {
        ; /* an amount as it is */
    } else if (l->rate == ST_UNSET || l->factor_bp == ST_UNSET) {
        st_strbuf_add(out, "<span class=dim>several</span>");
    } else {
        st_strbuf_add(out, st_money(rate, l->rate));
        if (l->factor_bp != ST_BP)
            st_strbuf_addf(out, " &times;&nbsp;%s&nbsp;%%", st_ratio(buf, l->factor_bp, 100, 2));
    }
    st_strbuf_addf(out, "<td class=\"n dim\">%lld", (long long)l->entries);
    if (l->first_seq > 0)
        st_strbuf_addf(out, " (%lld&ndash;%lld)", (long long)l->first_seq, (long long)l->last_seq);
    st_strbuf_add(out, "<td class=n>");
    put_money(out, l->amount);
}

/* Lines of one account, from i on; returns where the next begins. */
static size_t put_account_lines(const st_bill *bill, size_t i, bool credits, st_strbuf *out)
{
    const char *account = bill->lines.v[i].account;
    size_t from = i;
    int64_t sum = 0;
    bool any = false;

    for (; i < bill->lines.n && strcmp(bill->lines.v[i].account, account) == 0; i++) {
        any = any || is_credit(bill->lines.v[i].what) == credits;
        sum += is_credit(bill->lines.v[i].what) == credits ? bill->lines.v[i].amount : 0;
    }
    if (!any)
        return i;
    st_strbuf_add(out, "<tbody><tr class=group><th colspan=5>");
    put_account(out, account);
    st_strbuf_add(out, "<th class=n>");
    put_money(out, sum);
    for (; from < i; from++)
        if (is_credit(bill->lines.v[from].what) == credits)
            put_line(&bill->lines.v[from], out);
    return i;
}

static void put_lines(const st_bill *bill, bool credits, st_strbuf *out)
{
    bool any = false;

    for (size_t i = 0; i < bill->lines.n; i++)
        any = any || is_credit(bill->lines.v[i].what) == credits;
    if (!any)
        return;
    st_strbuf_addf(
        out,
        "<section><h2>%s</h2><table class=lines><thead><tr><th>Component<th>GPU"
        "<th class=n>Quantity<th class=n>Rate<th class=n>Entries<th class=n>Amount</thead>",
        credits ? "Credits" : "Charges");
    for (size_t i = 0; i < bill->lines.n;)
        i = put_account_lines(bill, i, credits, out);
    st_strbuf_add(out, "</table></section>");
}

/* A page that names its own key would prove itself to anybody who forges both. */
static void put_foot(const st_bill *bill, const st_export_about *about, st_strbuf *out)
{
    st_strbuf_add(out,
                  "<section class=proof><h2>How to verify this bill</h2><p>This page is for "
                  "reading and proves nothing. The bill itself is a file: it has every entry that "
                  "is added up here, the prices, and signed hashes of the books. Download it and "
                  "run, on any machine and offline:</p><pre>stint bill verify --key KEY FILE</pre>"
                  "<p>KEY is the cluster's public key, from somewhere else than this page: as you "
                  "have kept it since your first bill, or as your provider publishes it.</p>"
                  "<p>Every amount is a whole number of millionths of ");
    st_quote_html(out, about->currency);
    st_strbuf_addf(out,
                   "; remainders are carried from one posting to the next and never lost.%s</p>"
                   "</section></main></html>\n",
                   bill->closed
                       ? ""
                       : " This bill is still running: its numbers are those of the moment "
                         "it was made.");
}

void st_export_bill_html(const st_bill *bill, const st_export_about *about, st_strbuf *out)
{
    put_head(bill, about, out);
    put_tiles(bill, out);
    put_components(bill, out);
    put_uses(bill, out);
    put_idle(about, out);
    put_lines(bill, false, out);
    put_lines(bill, true, out);
    put_foot(bill, about, out);
}
