/*
 * The owner's report of a month: where the GPUs were, by type, pool and cause, and what that is worth; which reservations nobody
 * used and which floor would have cost least; who held most that was not busy.
 *
 * The books say where the devices of a type were (`fleet` entries); pools and causes are the meter's (billing/fleet_marks.c). What is
 * in the books and in no pool is from before pools were counted, and is told as such: rows always add up to the books.
 * Worth: GPU time at the price of a reservation of its type, in the price book of its time.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bills.h"
#include "api/fleet_floors.h"
#include "api/state.h"
#include "base/mem.h"

#define TOP 20

enum { GRANTED, IDLE, UNHEALTHY, OVERHEAD, PLACES };
static const char *const place_names[PLACES] = {"granted", "idle", "unhealthy", "overhead"};

typedef struct of_type {
    char name[ST_NAME_MAX + 1];
    int64_t at[PLACES], worth[PLACES];
    int64_t dealt[PLACES]; /* of `at`, in rows so far */
} of_type;

typedef struct cost_row {
    const of_type *type;
    char pool[ST_NAME_MAX + 1]; /* "": not known */
    int place;
    const char *cause;
    int64_t at, worth;
} cost_row;

typedef struct holder {
    char *account, *user;
    int64_t share, seen, busy, amount;
} holder;

/* A floor that was not all used. */
typedef struct floor_row {
    const st_idle_floor *idle;
    st_floor_use use;
    st_floor_advice advice;
} floor_row;

typedef struct report {
    const st_bill_call *c;
    st_ledger *ledger;
    st_arena *arena;
    ST_VEC(of_type) types;
    ST_VEC(cost_row) rows;
    ST_VEC(holder) holders;
    st_map *holder_ids;
    floor_row floors[TOP];
    int nfloors;
} report;

static void report_done(report *r)
{
    for (size_t i = 0; i < r->holders.n; i++) {
        free(r->holders.v[i].account);
        free(r->holders.v[i].user);
    }
    for (int i = 0; i < r->nfloors; i++)
        st_floor_use_done(&r->floors[i].use);
    st_vec_free(&r->holders);
    st_vec_free(&r->types);
    st_vec_free(&r->rows);
    st_map_free(r->holder_ids);
    st_ledger_free(r->ledger);
}

static int64_t rate_of(const st_ledger *l, const char *gpu, int64_t at_ms, st_component what)
{
    const st_price_book *book = st_ledger_book(l, at_ms);
    int64_t rate = 0;

    for (int i = 0; book && i < book->nrates; i++) {
        if (strcmp(book->rates[i].gpu, gpu) == 0)
            return book->rates[i].rate[what];
        if (strcmp(book->rates[i].gpu, "*") == 0)
            rate = book->rates[i].rate[what];
    }
    return rate;
}

/* ---- where devices were ------------------------------------------------------------------------------ */

static of_type *type_of(report *r, const char *name)
{
    for (size_t i = 0; i < r->types.n; i++)
        if (strcmp(r->types.v[i].name, name) == 0)
            return &r->types.v[i];
    of_type t = {0};
    snprintf(t.name, sizeof t.name, "%s", name);
    st_vec_push(&r->types, t);
    return &r->types.v[r->types.n - 1];
}

static void add_type(report *r, const char *gpu, int64_t at_ms, const int64_t at[PLACES])
{
    of_type *t = type_of(r, gpu);
    int64_t rate = rate_of(r->ledger, gpu, at_ms, ST_PAY_RESERVED);

    for (int p = 0; p < PLACES; p++) {
        t->at[p] += at[p];
        t->worth[p] += (int64_t)((st_i128)at[p] * rate / st_component_per(ST_PAY_RESERVED));
    }
}

static int fleet_entry(void *ctx, const st_book_row *row, st_err *err)
{
    report *r = ctx;
    st_entry e;
    int rc;

    if (strcmp(row->period, r->c->bill->period.name) != 0)
        return 0;
    st_arena_reset(r->arena);
    rc = st_entry_read(row->data, strlen(row->data), r->arena, &e, err);
    if (rc == 0 && e.kind == ST_ENTRY_FLEET)
        add_type(r, e.gpu, e.from_ms,
                 (const int64_t[PLACES]){e.granted, e.idle, e.unhealthy, e.overhead});
    return rc;
}

static int place_of(int where)
{
    int p = 0;

    while (p < PLACES - 1 && strcmp(place_names[p], st_where_place((st_where)where)) != 0)
        p++;
    return p;
}

/* The worth of a place is dealt out with its hours, so that it adds up as well. */
static void add_row(report *r, of_type *t, const char *pool, int place, const char *cause,
                    int64_t at)
{
    cost_row row = {.type = t, .place = place, .cause = cause, .at = at};
    st_i128 whole = t->at[place], before = t->dealt[place];

    if (at == 0)
        return;
    t->dealt[place] += at;
    if (whole != 0)
        row.worth =
            (int64_t)(t->worth[place] * (before + at) / whole - t->worth[place] * before / whole);
    snprintf(row.pool, sizeof row.pool, "%s", pool);
    st_vec_push(&r->rows, row);
}

static int64_t sum_of(const st_fleet_part *p)
{
    st_i128 sum = 0;

    for (int w = 0; w < ST_WHERE_COUNT; w++)
        sum += p->at[w];
    return (int64_t)ST_MIN(sum, (st_i128)INT64_MAX);
}

/* The part at the beginning of the month. One that had more then belongs to a meter that is gone: this one began later. */
static const st_fleet_part *before(const st_fleet_now *begin, const st_fleet_part *p)
{
    for (size_t i = 0; i < begin->parts.n; i++)
        if (strcmp(begin->parts.v[i].type, p->type) == 0 &&
            strcmp(begin->parts.v[i].pool, p->pool) == 0)
            return sum_of(&begin->parts.v[i]) <= sum_of(p) ? &begin->parts.v[i] : NULL;
    return NULL;
}

static void add_parts(report *r, const st_fleet_now *end, const st_fleet_now *begin)
{
    for (size_t i = 0; i < end->parts.n; i++) {
        const st_fleet_part *p = &end->parts.v[i], *was = before(begin, p);

        for (int w = 0; w < ST_WHERE_COUNT; w++)
            add_row(r, type_of(r, p->type), p->pool, place_of(w), st_where_cause((st_where)w),
                    p->at[w] - (was ? was->at[w] : 0));
    }
    for (size_t i = 0; i < r->types.n; i++)
        for (int p = 0; p < PLACES; p++)
            add_row(r, &r->types.v[i], "", p, "unknown",
                    r->types.v[i].at[p] - r->types.v[i].dealt[p]);
}

static int read_devices(report *r, st_store *reader, st_err *err)
{
    const st_period *p = &r->c->bill->period;
    const bool closed = r->c->bill->closed;
    st_fleet_now begin = {0}, end = {0};
    int rc = st_store_book_of(reader, ST_BOOK_FLEET, 1, INT64_MAX, fleet_entry, r, err);

    for (size_t i = 0; !closed && i < r->c->where.open.n; i++) {
        const st_fleet_part *o = &r->c->where.open.v[i];

        add_type(r, o->type, r->c->now,
                 (const int64_t[PLACES]){o->at[ST_WHERE_GRANTED], o->at[ST_WHERE_IDLE],
                                         o->at[ST_WHERE_FAILED], o->at[ST_WHERE_ENDED]});
    }
    for (size_t i = 0; i < r->c->where.parts.n; i++)
        type_of(r, r->c->where.parts.v[i].type); /* all are there before rows point to them */
    if (rc >= 0)
        rc = st_fleet_mark_read(reader, p->from_ms, &begin, err);
    if (rc >= 0 && closed)
        rc = st_fleet_mark_read(reader, p->to_ms, &end, err);
    for (size_t i = 0; i < end.parts.n; i++)
        type_of(r, end.parts.v[i].type);
    if (rc >= 0)
        add_parts(r, closed ? &end : &r->c->where, &begin);
    st_vec_free(&begin.parts);
    st_vec_free(&end.parts);
    return rc < 0 ? rc : 0;
}

/* ---- who held what ------------------------------------------------------------------------------------- */

static holder *holder_of(report *r, const st_entry *e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf key = {0};
    const char *user = e->user ? e->user : "";
    int64_t at;

    st_strbuf_addf(&key, "%s\n%s", e->account, user);
    if (!st_map_get(r->holder_ids, st_strbuf_str(&key), &at)) {
        at = (int64_t)r->holders.n;
        st_map_put(r->holder_ids, st_strbuf_str(&key), at);
        st_vec_push(&r->holders, ((holder){st_xstrdup(e->account), st_xstrdup(user), 0, 0, 0, 0}));
    }
    return &r->holders.v[at];
}

/* An account uses the floor of the nearest above that has one. */
static floor_row *floor_of(report *r, const char *book)
{
    for (; book && *book; book = st_ledger_parent(r->ledger, book))
        for (int i = 0; i < r->nfloors; i++)
            if (strcmp(r->floors[i].idle->account, book) == 0)
                return &r->floors[i];
    return NULL;
}

static void see_use(report *r, const st_entry *e)
{
    holder *h;

    if (e->kind != ST_ENTRY_USAGE && e->kind != ST_ENTRY_FIX)
        return;
    h = holder_of(r, e);
    h->share += e->share;
    h->seen += e->seen == ST_UNKNOWN ? 0 : e->seen;
    h->busy += e->busy == ST_UNKNOWN ? 0 : e->busy;
    for (int i = 0; i < e->nlines; i++)
        h->amount += e->lines[i].amount;
    floor_row *f =
        e->kind == ST_ENTRY_USAGE && e->gpu && (e->basis == ST_BASIS_GUARANTEED || e->inside > 0)
            ? floor_of(r, e->account)
            : NULL;
    if (f)
        st_floor_use_add(&f->use, e, rate_of(r->ledger, e->gpu, e->from_ms, ST_PAY_BURST));
}

static int use_entry(void *ctx, const st_book_row *row, st_err *err)
{
    report *r = ctx;
    st_entry e;
    int rc;

    if (strcmp(row->period, r->c->bill->period.name) != 0 || !row->job[0])
        return 0;
    st_arena_reset(r->arena);
    rc = st_entry_read(row->data, strlen(row->data), r->arena, &e, err);
    if (rc == 0)
        see_use(r, &e);
    return rc;
}

static int read_use(report *r, st_store *reader, st_err *err)
{
    const st_bill *bill = r->c->bill;
    int64_t end = ST_MIN(r->c->now, bill->period.to_ms);
    int rc = 0;

    for (size_t i = 0; i < r->c->idle.n && r->nfloors < TOP; i++)
        r->floors[r->nfloors++].idle = &r->c->idle.v[i];
    for (size_t i = 0; rc >= 0 && i < bill->uses.n; i++) {
        const st_bill_use *u = &bill->uses.v[i];

        if (u->first_seq > 0 && u->account[0])
            rc = st_store_book_of(reader, u->account, u->first_seq, u->last_seq, use_entry, r, err);
    }
    for (size_t i = 0; i < r->c->open.n; i++)
        see_use(r, &r->c->open.v[i]);
    for (int i = 0; i < r->nfloors; i++) {
        const st_idle_floor *f = r->floors[i].idle;
        /* What all of the floor cost; the list has the unused part. */
        int64_t cost = f->unused > 0 ? (int64_t)((st_i128)f->cost * f->reserved / f->unused) : 0;

        st_floor_advise(&r->floors[i].use, f->reserved, cost, bill->period.from_ms, end,
                        &r->floors[i].advice);
    }
    return rc < 0 ? rc : 0;
}

static int64_t wasted(const holder *h)
{
    return ST_MAX(h->seen - h->busy, 0);
}

static int most_wasted(const void *a, const void *b)
{
    const holder *x = a, *y = b;
    int c;

    if (wasted(x) != wasted(y))
        return wasted(x) > wasted(y) ? -1 : 1;
    c = strcmp(x->account, y->account);
    return c ? c : strcmp(x->user, y->user);
}

/* ---- as JSON ------------------------------------------------------------------------------------------- */

static void out_hours(st_strbuf *out, const char *key, int64_t mgpu_ms)
{
    char buf[ST_RATIO_MAX], name[64];

    snprintf(name, sizeof name, "%s_gpu_hours", key);
    st_out_raw(out, name, st_ratio(buf, mgpu_ms, st_component_per(ST_PAY_BURST), 3));
}

static void out_at(st_strbuf *out, int64_t at, int64_t worth)
{
    char buf[ST_RATIO_MAX];

    st_out_raw(out, "gpu_hours", st_ratio(buf, at, st_component_per(ST_PAY_BURST), 3));
    st_out_int(out, "mgpu_ms", at);
    st_out_money(out, "worth", worth);
}

static void out_devices(const report *r, st_strbuf *out)
{
    int64_t at[PLACES] = {0}, worth[PLACES] = {0}, rows = 0, all = 0, unused = 0;

    for (size_t i = 0; i < r->types.n; i++)
        for (int p = 0; p < PLACES; p++) {
            at[p] += r->types.v[i].at[p];
            worth[p] += r->types.v[i].worth[p];
            all += r->types.v[i].at[p];
        }
    for (size_t i = 0; i < r->c->idle.n; i++)
        unused += r->c->idle.v[i].unused;
    st_out_raw(out, "places", "[");
    for (int p = 0; p < PLACES; p++) {
        st_strbuf_add(out, p > 0 ? ",{" : "{");
        st_out_text(out, "place", place_names[p]);
        out_at(out, at[p], worth[p]);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
    st_out_raw(out, "rows", "[");
    for (size_t i = 0; i < r->rows.n; i++) {
        const cost_row *row = &r->rows.v[i];

        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "type", row->type->name);
        if (row->pool[0])
            st_out_text(out, "pool", row->pool);
        else
            st_out_raw(out, "pool", "null");
        st_out_text(out, "place", place_names[row->place]);
        st_out_text(out, "cause", row->cause);
        out_at(out, row->at, row->worth);
        st_strbuf_addc(out, '}');
        rows += row->at;
    }
    st_strbuf_addc(out, ']');
    out_hours(out, "capacity", all);
    st_out_int(out, "capacity_mgpu_ms", all);
    st_out_raw(out, "conserved", rows == all ? "true" : "false");
    out_hours(out, "reserved_unused", unused);
}

static void out_floors(const report *r, st_strbuf *out)
{
    st_out_raw(out, "idle_reservations", "[");
    for (int i = 0; i < r->nfloors; i++) {
        const floor_row *f = &r->floors[i];

        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "account", f->idle->account);
        out_hours(out, "reserved", f->idle->reserved);
        out_hours(out, "unused", f->idle->unused);
        st_out_money(out, "cost", f->idle->cost);
        st_out_milli(out, "floor_gpus", f->advice.floor_m);
        st_out_milli(out, "cheapest_floor_gpus", f->advice.better_m);
        st_out_money(out, "saved", f->advice.saved);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

/* Windows of bookings that nobody was inside, by team. */
static void out_bookings(const report *r, st_strbuf *out)
{
    st_out_raw(out, "idle_bookings", "[");
    for (size_t i = 0; i < r->c->booked.n && i < TOP; i++) {
        const st_idle_floor *b = &r->c->booked.v[i];

        st_strbuf_add(out, i > 0 ? ",{" : "{");
        st_out_text(out, "account", b->account);
        out_hours(out, "booked", b->reserved);
        out_hours(out, "unused", b->unused);
        st_out_money(out, "cost", b->cost);
        st_strbuf_addc(out, '}');
    }
    st_strbuf_addc(out, ']');
}

static void out_holders(report *r, st_strbuf *out)
{
    bool any = false;

    if (r->holders.n > 0)
        qsort(r->holders.v, r->holders.n, sizeof *r->holders.v, most_wasted);
    st_out_raw(out, "wasters", "[");
    for (size_t i = 0; i < r->holders.n && i < TOP && wasted(&r->holders.v[i]) > 0; i++) {
        const holder *h = &r->holders.v[i];

        st_strbuf_add(out, any ? ",{" : "{");
        st_out_text(out, "account", h->account);
        st_out_text(out, "user", h->user);
        out_hours(out, "held", h->share);
        out_hours(out, "measured", h->seen);
        out_hours(out, "not_busy", wasted(h));
        st_out_money(out, "cost",
                     h->share > 0 ? (int64_t)((st_i128)h->amount * wasted(h) / h->share) : 0);
        st_strbuf_addc(out, '}');
        any = true;
    }
    st_strbuf_addc(out, ']');
}

typedef struct anomaly_list {
    st_strbuf *out;
    bool any;
} anomaly_list;

static void out_anomaly(void *ctx, const st_anomaly *a)
{
    anomaly_list *l = ctx;

    st_strbuf_add(l->out, l->any ? ",{" : "{");
    st_out_text(l->out, "day", a->day);
    st_out_text(l->out, "account", a->account);
    if (a->user[0])
        st_out_text(l->out, "user", a->user);
    else
        st_out_raw(l->out, "user", "null");
    st_out_money(l->out, "cost", a->cost_udollars);
    st_out_money(l->out, "usual", a->usual_udollars);
    st_strbuf_addc(l->out, '}');
    l->any = true;
}

static void finish_cost(st_bill_call *c, st_store *reader)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    report r = {.c = c, .arena = arena, .holder_ids = st_map_new()};
    st_err err = {0};
    int rc = st_ledger_load(c->ledger.s, c->ledger.n, &r.ledger, &err);

    if (rc == 0)
        rc = read_devices(&r, reader, &err);
    if (rc == 0)
        rc = read_use(&r, reader, &err);
    ST_CLEANUP(st_strbuf_done) st_strbuf anomalies = {0};
    anomaly_list list = {.out = &anomalies};
    if (rc == 0)
        rc = st_anomalies_list(reader, c->bill->period.from_ms, c->bill->period.to_ms, out_anomaly,
                               &list, &err);
    if (rc < 0) {
        st_call_fail(c->call, &err);
    } else {
        st_strbuf_addc(&out, '{');
        st_out_text(&out, "period", c->bill->period.name);
        st_out_time(&out, "from", c->bill->period.from_ms);
        st_out_time(&out, "to", ST_MIN(c->now, c->bill->period.to_ms));
        st_out_raw(&out, "closed", c->bill->closed ? "true" : "false");
        st_out_text(&out, "currency", st_control_currency(c->api->control));
        out_devices(&r, &out);
        out_floors(&r, &out);
        out_bookings(&r, &out);
        out_holders(&r, &out);
        st_out_raw(&out, "anomalies", "[");
        st_strbuf_add(&out, st_strbuf_str(&anomalies));
        st_strbuf_add(&out, "]}");
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    report_done(&r);
}

bool st_api_is_of_cluster(st_call *call)
{
    st_err err;

    if (!st_api_who(call)->account[0])
        return true;
    st_fail(&err, ST_EPERM,
            "the fleet's report is of all accounts: it is for owners and auditors of the cluster");
    st_call_fail(call, &err);
    return false;
}

void st_api_fleet_cost(st_call *call, void *ctx)
{
    st_bill_call *c;

    if (!st_api_is_of_cluster(call))
        return;
    c = st_bill_call_new(ctx, call, "json", finish_cost);
    if (!c)
        return;
    c->floors = c->running = c->prices = c->devices = true;
    st_bill_call_post(c);
}
