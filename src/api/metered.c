/*
 * What was used in a month, added up by account, user, GPU type, level or job: from the same entries the bill is made
 * of, so that the two cannot differ.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bills.h"
#include "base/num.h"

#define ROWS_MAX 1000

typedef struct sum_row {
    char *key;
    int64_t share, held, seen, busy, energy_mj, lost, amount;
    int64_t jobs; /* that began */
} sum_row;

typedef struct sums {
    const st_bill_call *c;
    const char *by;
    st_map *at;
    ST_VEC(sum_row) rows;
    st_arena *arena; /* of the entry at hand */
} sums;

static const char *key_of(const sums *s, const st_entry *e)
{
    const char *none = e->kind == ST_ENTRY_CREDIT ? "(credit)" : "(floor)";

    if (strcmp(s->by, "user") == 0)
        return e->user ? e->user : none;
    if (strcmp(s->by, "job") == 0)
        return e->job ? e->job : none;
    if (strcmp(s->by, "gpu") == 0)
        return e->gpu ? e->gpu : "(none)";
    if (strcmp(s->by, "level") == 0)
        return e->gpu ? st_level_name(e->level) : "(none)";
    return e->account;
}

static sum_row *row_of(sums *s, const char *key)
{
    int64_t at;

    if (st_map_get(s->at, key, &at))
        return &s->rows.v[at];
    st_map_put(s->at, key, (int64_t)s->rows.n);
    st_vec_push(&s->rows, ((sum_row){.key = st_arena_strdup(s->c->arena, key)}));
    return &s->rows.v[s->rows.n - 1];
}

static void add(sums *s, const st_entry *e)
{
    sum_row *row;

    if (e->kind != ST_ENTRY_USAGE && e->kind != ST_ENTRY_FIX && e->kind != ST_ENTRY_LOST &&
        e->nlines == 0)
        return;
    row = row_of(s, key_of(s, e));
    for (int i = 0; i < e->nlines; i++)
        row->amount += e->lines[i].amount;
    row->lost += e->kind == ST_ENTRY_LOST ? e->lost : 0;
    if (e->kind != ST_ENTRY_USAGE && e->kind != ST_ENTRY_FIX)
        return;
    row->share += e->share;
    row->held += e->held;
    if (e->seen != ST_UNKNOWN || e->kind == ST_ENTRY_FIX) {
        row->seen += e->seen;
        row->busy += e->busy;
    }
    if (e->energy_mj != ST_UNKNOWN || e->kind == ST_ENTRY_FIX)
        row->energy_mj += e->energy_mj;
    row->jobs += e->kind == ST_ENTRY_USAGE && e->stay == 1 && e->piece == 1;
}

static int add_row(void *ctx, const st_book_row *row, st_err *err)
{
    sums *s = ctx;
    st_entry e;
    int r;

    if (strcmp(row->period, s->c->bill->period.name) != 0)
        return 0;
    st_arena_reset(s->arena);
    r = st_entry_read(row->data, strlen(row->data), s->arena, &e, err);
    if (r == 0)
        add(s, &e);
    return r;
}

static int larger_first(const void *a, const void *b)
{
    const sum_row *x = a, *y = b;

    if (x->share != y->share)
        return x->share < y->share ? 1 : -1;
    if (x->amount != y->amount)
        return x->amount < y->amount ? 1 : -1;
    return strcmp(x->key, y->key);
}

/* GPU time in hours, thousandths of one. */
static void out_hours(st_strbuf *out, const char *key, int64_t mgpu_ms)
{
    st_out_milli(out, key, mgpu_ms / 3600000);
}

static void write_row(const sum_row *row, st_strbuf *out)
{
    char buf[ST_MONEY_MAX];

    st_strbuf_addc(out, '{');
    st_out_text(out, "key", row->key);
    out_hours(out, "gpu_hours", row->share);
    out_hours(out, "held_gpu_hours", row->held);
    out_hours(out, "seen_gpu_hours", row->seen);
    out_hours(out, "busy_gpu_hours", row->busy);
    out_hours(out, "lost_gpu_hours", row->lost);
    st_out_milli(out, "energy_kwh", row->energy_mj / 3600000);
    st_out_int(out, "jobs", row->jobs);
    st_out_int(out, "gpu_mgpu_ms", row->share);
    st_out_int(out, "cost_udollars", row->amount);
    st_out_text(out, "cost", st_money(buf, row->amount));
    st_strbuf_addc(out, '}');
}

static void write_all(sums *s, st_strbuf *out)
{
    st_strbuf_addc(out, '{');
    st_out_text(out, "account", s->c->account);
    st_out_text(out, "period", s->c->bill->period.name);
    st_out_time(out, "from", s->c->bill->period.from_ms);
    st_out_time(out, "to", s->c->bill->period.to_ms);
    st_out_text(out, "by", s->by);
    st_out_int(out, "rows_in_all", (int64_t)s->rows.n);
    st_out_raw(out, "rows", "[");
    for (size_t i = 0; i < s->rows.n && i < ROWS_MAX; i++) {
        st_strbuf_add(out, i > 0 ? "," : "");
        write_row(&s->rows.v[i], out);
    }
    st_strbuf_add(out, "]}");
}

static void finish(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_map_freep) st_map *at = st_map_new();
    sums s = {.c = c, .by = c->format, .at = at, .arena = arena};
    st_err err = {0};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < c->bill->uses.n; i++) {
        const char *account = c->bill->uses.v[i].account;
        int64_t from, to;

        st_bill_span(c->bill, account, &from, &to);
        if (to >= from)
            r = st_store_book_of(reader, account, from, to, add_row, &s, &err);
    }
    for (size_t i = 0; i < c->open.n; i++)
        add(&s, &c->open.v[i]);
    if (r < 0) {
        st_call_fail(c->call, &err);
    } else {
        if (s.rows.n > 0)
            qsort(s.rows.v, s.rows.n, sizeof *s.rows.v, larger_first);
        write_all(&s, &out);
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_vec_free(&s.rows);
}

void st_api_metered(st_call *call, void *ctx)
{
    const char *by = st_call_query(call, "by");
    st_bill_call *c = st_bill_call_new(ctx, call, by ? by : "user", finish);

    if (!c)
        return;
    c->running = true;
    c->leaves = false; /* its format is what it is added up by */
    st_bill_call_post(c);
}
