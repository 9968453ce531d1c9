/*
 * Price books, and the months that are closed: what the cluster's own book says to everybody.
 *
 * A price book is shown as people write it, so that what was read can be changed and published again.
 */
#include <stdlib.h>
#include <string.h>

#include "api/state.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "bill/bill.h"
#include "billing/money.h"
#include "control/control.h"

/* ---- a price book ---------------------------------------------------------------------------------- */

static void out_dollars(st_strbuf *out, const char *key, int64_t udollars)
{
    char buf[ST_MONEY_MAX];

    st_out_text(out, key, st_money(buf, udollars));
}

static void out_percent(st_strbuf *out, const char *key, int64_t bp)
{
    char ratio[ST_RATIO_MAX], text[ST_RATIO_MAX + 1];

    snprintf(text, sizeof text, "%s%%", st_ratio(ratio, bp, 100, 2));
    st_out_text(out, key, text);
}

/* ,"name":{ */
static void out_map(st_strbuf *out, const char *key)
{
    st_out_raw(out, key, "{");
}

static void out_rates(st_strbuf *out, const st_price_book *book, const st_rates *row)
{
    out_map(out, row->gpu);
    for (int c = ST_PAY_RESERVED; c <= ST_PAY_BOOKED; c++)
        out_dollars(out, st_component_name((st_component)c), row->rate[c]);
    if (book->booking.there)
        out_dollars(out, "booking", row->rate[ST_PAY_WINDOW]);
    for (int l = 0; l < ST_LEVEL_COUNT; l++)
        out_percent(out, st_level_name((st_level)l), row->level_bp[l]);
    st_strbuf_addc(out, '}');
}

static void out_steps(st_strbuf *out, const char *key, const st_steps *s)
{
    out_map(out, key);
    for (int i = 0; i < s->n; i++) {
        char ms[ST_FMT_MAX];

        out_percent(out, st_fmt_duration(ms, s->v[i].ms), s->v[i].bp);
    }
    st_strbuf_addc(out, '}');
}

static void out_booking(st_strbuf *out, const st_booking_prices *b)
{
    if (!b->there)
        return;
    out_map(out, "booking");
    out_steps(out, "term", &b->term);
    out_steps(out, "lead", &b->lead);
    out_steps(out, "cancel", &b->cancel);
    out_percent(out, "lent", b->lent_bp);
    st_strbuf_addc(out, '}');
}

static void out_book(st_strbuf *out, const st_price_book *book)
{
    st_out_text(out, "prices", book->name);
    st_out_time(out, "from", book->from_ms);
    out_map(out, "gpu");
    for (int i = 0; i < book->nrates; i++)
        out_rates(out, book, &book->rates[i]);
    st_strbuf_addc(out, '}');
    out_dollars(out, "cpu", book->cpu);
    out_dollars(out, "ram", book->ram);
    out_dollars(out, "energy", book->energy);
    out_map(out, "topology");
    for (int t = ST_TOPO_NONE + 1; t < ST_TOPO_COUNT; t++)
        out_percent(out, st_topo_name((st_topo)t), book->topo_bp[t]);
    st_strbuf_addc(out, '}');
    out_percent(out, "idle", book->idle_bp);
    out_map(out, "credit");
    out_percent(out, "lost", book->lost_bp);
    out_percent(out, "fault", book->fault_bp);
    st_strbuf_addc(out, '}');
    out_map(out, "pieces");
    for (int i = 0; i < book->nunits; i++) {
        out_map(out, book->units[i].workload);
        out_dollars(out, st_component_name(book->units[i].by), book->units[i].rate);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, '}');
    if (book->nclasses > 0) {
        out_map(out, "classes");
        for (int i = 0; i < book->nclasses; i++)
            out_percent(out, book->classes[i].name, book->classes[i].bp);
        st_strbuf_addc(out, '}');
    }
    out_booking(out, &book->booking);
}

/* ---- the cluster's book ------------------------------------------------------------------------------ */

typedef struct cluster_list {
    st_entry_kind kind;
    st_arena *arena;
    ST_VEC(st_price_book) books;
    st_strbuf out;
    int n;
} cluster_list;

static int cluster_row(void *ctx, const st_book_row *row, st_err *err)
{
    cluster_list *l = ctx;
    st_price_book book;
    st_entry e;
    int r;

    st_arena_reset(l->arena);
    r = st_entry_read(row->data, strlen(row->data), l->arena, &e, err);
    if (r < 0 || e.kind != l->kind)
        return r;
    if (e.kind == ST_ENTRY_PRICES) {
        r = st_price_book_read("book", e.doc, strlen(e.doc), 0, &book, err);
        if (r == 0)
            st_vec_push(&l->books, book);
        return r;
    }
    st_strbuf_add(&l->out, l->n++ > 0 ? ",{" : "{");
    st_out_text(&l->out, "period", e.period);
    st_out_time(&l->out, "from", e.from_ms);
    st_out_time(&l->out, "to", e.to_ms);
    st_strbuf_addc(&l->out, '}');
    return 0;
}

/* The one that counts now is the last that has begun, whenever it was published. */
static void out_books(cluster_list *l, int64_t now)
{
    size_t in_force = l->books.n;

    for (size_t i = 0; i < l->books.n; i++)
        if (l->books.v[i].from_ms <= now &&
            (in_force == l->books.n || l->books.v[i].from_ms > l->books.v[in_force].from_ms))
            in_force = i;
    for (size_t i = 0; i < l->books.n; i++) {
        st_strbuf_add(&l->out, i > 0 ? ",{" : "{");
        st_out_raw(&l->out, "in_force", i == in_force ? "true" : "false");
        out_book(&l->out, &l->books.v[i]);
        st_strbuf_addc(&l->out, '}');
    }
}

static void list_cluster(st_api *api, st_call *call, st_entry_kind kind, const char *key)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    cluster_list l = {.kind = kind, .arena = arena};
    st_err err = {0};
    st_store *reader = st_api_reader(api, &err);
    int r = -1;

    st_api_stamp_now(api, call);
    st_strbuf_addf(&l.out, "{\"%s\":[", key);
    if (reader)
        r = st_store_book_of(reader, "", 1, INT64_MAX, cluster_row, &l, &err);
    st_api_reader_back(api, reader);
    if (r < 0) {
        st_call_fail(call, &err);
    } else {
        out_books(&l, st_control_now(api->control));
        st_strbuf_add(&l.out, "]}");
        st_call_reply_buf(call, 200, NULL, &l.out);
    }
    st_vec_free(&l.books);
    st_strbuf_done(&l.out);
}

void st_api_prices_list(st_call *call, void *ctx)
{
    list_cluster(ctx, call, ST_ENTRY_PRICES, "prices");
}

void st_api_bills_list(st_call *call, void *ctx)
{
    list_cluster(ctx, call, ST_ENTRY_CLOSE, "months");
}

/* ---- publishing --------------------------------------------------------------------------------------- */

typedef struct price_change {
    st_cmd_prices prices;
    st_call *call;
} price_change;

static void prices_done(st_cmd *cmd, const st_err *err)
{
    price_change *c = (price_change *)cmd;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "name", c->prices.book.name);
        st_out_time(&out, "from", c->prices.book.from_ms);
        st_out_int(&out, "entry", c->prices.seq);
        st_strbuf_addc(&out, '}');
        st_call_reply_buf(c->call, 201, NULL, &out);
    }
    free(c);
}

void st_api_prices_check(st_call *call, void *ctx)
{
    const st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_price_book book;
    st_err err = {0};
    size_t len;
    const char *body = st_call_body(call, &len);

    if (st_price_book_read("body", body, len, api->options.clock(api->options.ctx), &book, &err) <
        0) {
        st_call_fail(call, &err);
        return;
    }
    st_strbuf_addc(&out, '{');
    out_book(&out, &book);
    st_strbuf_addc(&out, '}');
    st_call_reply_buf(call, 200, NULL, &out);
}

void st_api_prices_publish(st_call *call, void *ctx)
{
    st_api *api = ctx;
    price_change *c = st_xcalloc(1, sizeof *c);
    int64_t now = api->options.clock(api->options.ctx);
    st_err err = {0};
    size_t len;
    const char *body = st_call_body(call, &len);

    c->call = call;
    c->prices.who = *st_api_who(call);
    if (st_price_book_read("body", body, len, now, &c->prices.book, &err) < 0) {
        st_call_fail(call, &err);
        free(c);
        return;
    }
    c->prices.now = c->prices.book.from_ms == now; /* or a moment later, when it is its turn */
    st_cmd_prices_init(&c->prices);
    c->prices.cmd.done = prices_done;
    st_call_defer(call);
    st_api_post(api, call, &c->prices.cmd);
}
