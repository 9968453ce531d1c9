/*
 * What a month will have cost at its end (ledger/month_end.h), and what each of its days has cost. Of a month that is closed it
 * is what it has cost.
 */
#include <string.h>

#include "api/bills.h"
#include "ledger/month_end.h"

#define DAY_MS   INT64_C(86400000)
#define DAYS_MAX 40

typedef struct day {
    char name[ST_UTC_MAX];
    bool whole;
    int64_t share, amount;
} day;

typedef struct series {
    day days[DAYS_MAX];
    int n;
    st_month_so_far so_far;
    int64_t costs[DAYS_MAX]; /* of those that are whole */
} series;

static int first_row(void *ctx, const st_book_row *row, st_err *err)
{
    int64_t *at = ctx;

    (void)err;
    *at = row->at_ms;
    return 1;
}

/* All days from the beginning, of the month or of the account, until now or the end: days on which nothing was used cost nothing. */
static void fill_days(const st_bill_call *c, const st_sums_by *sums, int64_t from, series *s)
{
    const st_period *p = &c->bill->period;
    int64_t now = ST_MIN(c->now, p->to_ms);

    for (int64_t at = from / DAY_MS * DAY_MS; at < now && s->n < DAYS_MAX; at += DAY_MS) {
        day *d = &s->days[s->n++];
        int64_t i;

        d->whole = at >= from && at + DAY_MS <= now;
        st_utc(d->name, at);
        d->name[10] = '\0';
        if (st_map_get(sums->at, d->name, &i)) {
            d->share = sums->rows.v[i].share;
            d->amount = sums->rows.v[i].amount;
        }
        if (d->whole)
            s->costs[s->so_far.ndays++] = d->amount;
    }
    s->so_far.days = s->costs;
    s->so_far.spent = c->bill->total;
    s->so_far.to_come = c->state.reserved + c->state.booked;
    s->so_far.cap = c->state.cap;
    s->so_far.left_ms = ST_MAX(p->to_ms - c->now, 0);
    s->so_far.observed_ms = now - from;
}

static void write_days(const series *s, st_strbuf *out)
{
    st_out_raw(out, "days", "[");
    for (int i = 0; i < s->n; i++) {
        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "day", s->days[i].name);
        st_out_raw(out, "whole", s->days[i].whole ? "true" : "false");
        st_out_milli(out, "gpu_hours", s->days[i].share / 3600000);
        st_out_money(out, "cost", s->days[i].amount);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

static void write_forecast(const st_bill_call *c, const series *s, st_strbuf *out)
{
    static const char *const bases[] = {
        [ST_MONTH_UNKNOWN] = "nothing", [ST_MONTH_SO_FAR] = "so far", [ST_MONTH_DAYS] = "days"};
    const bool closed = c->bill->closed;
    st_month_end end;

    st_month_end_of(&s->so_far, &end);
    if (closed)
        end = (st_month_end){.expected = c->bill->total,
                             .low = c->bill->total,
                             .high = c->bill->total,
                             .chance_percent = 100};
    const bool known = closed || end.from != ST_MONTH_UNKNOWN;
    st_strbuf_addc(out, '{');
    st_out_text(out, "account", c->account);
    st_out_text(out, "period", c->bill->period.name);
    st_out_time(out, "to", c->bill->period.to_ms);
    st_out_raw(out, "closed", closed ? "true" : "false");
    st_out_money(out, "spent", c->bill->total);
    st_out_money_if(out, "expected", known, end.expected);
    st_out_money_if(out, "low", known, end.low);
    st_out_money_if(out, "high", known, end.high);
    if (end.chance_percent > 0)
        st_out_int(out, "chance_percent", end.chance_percent);
    else
        st_out_raw(out, "chance_percent", "null");
    st_out_text(out, "from", closed ? "the bill" : bases[end.from]);
    write_days(s, out);
    st_strbuf_addc(out, '}');
}

static void finish(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    series s = {0};
    st_sums_by sums;
    int64_t began = 0;
    st_err err = {0};
    int r;

    st_sums_init(&sums);
    r = st_bill_sums(c, reader, "day", &sums, &err);
    if (r == 0)
        r = st_store_book_of(reader, c->book, 1, 1, first_row, &began, &err);
    if (r == 0) {
        fill_days(c, &sums, ST_MAX(began, c->bill->period.from_ms), &s);
        write_forecast(c, &s, &out);
        st_call_reply_buf(c->call, 200, NULL, &out);
    } else {
        st_call_fail(c->call, &err);
    }
    st_sums_done(&sums);
}

void st_api_forecast(st_call *call, void *ctx)
{
    st_bill_call *c = st_bill_call_new(ctx, call, "day", finish);

    if (!c)
        return;
    c->running = c->budget = true;
    c->leaves = false;
    st_bill_call_post(c);
}
