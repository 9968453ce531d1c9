/*
 * Bookings as they are shown: lists, one, the calendar, and the feed for calendar programs.
 *
 * Who reads sees its own account's and those below it. Of everybody else's nothing is here at all: that a window cannot be
 * had is what a quote says.
 */
#include <stdlib.h>
#include <string.h>

#include "api/bookings.h"
#include "base/mem.h"
#include "base/quote.h"
#include "billing/money.h"
#include "calendar/calendar.h"
#include "calendar/ics.h"
#include "ledger/text.h"
#include "zones/zones.h"

#define RANGE_DAYS_MAX 3660
#define DAY_MS         (INT64_C(86400) * 1000)
#define FEED_PAST_MS   (90 * DAY_MS)

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

static int64_t number(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(doc, key));
}

/* ---- records -------------------------------------------------------------------------------- */

typedef struct reading {
    st_api *api;
    const char *account;
    int64_t from_ms, to_ms;
    ST_VEC(json_t *) found;
} reading;

/* Whose it is goes by the account's number: another one may have the name now. */
static int look(void *ctx, const st_document_row *row, st_err *err)
{
    reading *rd = ctx;
    json_t *doc = json_loads(row->doc, 0, NULL);

    (void)err;
    if (doc && st_directory_within(rd->api->dir, text(doc, "account"), rd->account) &&
        st_directory_serial(rd->api->dir, text(doc, "account")) == number(doc, "serial") &&
        number(doc, "from") < rd->to_ms && number(doc, "to") > rd->from_ms)
        st_vec_push(&rd->found, doc);
    else
        json_decref(doc);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t d = number(x, "from") - number(y, "from");

    if (d == 0)
        d = number(x, "id") - number(y, "id");
    return d < 0 ? -1 : d > 0;
}

static int take_name(void *ctx, const st_document_row *row, st_err *err)
{
    st_booking_name name;

    (void)err;
    snprintf(name.text, sizeof name.text, "%s", row->name);
    st_vec_push((st_booking_names *)ctx, name);
    return 0;
}

/* All of an organisation's by the index; false where there is none, or for the cluster, whose all of them are. */
static bool from_index(st_api *api, const char *account, st_store *reader, st_booking_names *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    int32_t org = account[0] ? st_directory_org(api->dir, account) : 0;
    char kind[ST_BOOKING_OF_MAX];
    const char *had;
    st_err ignored;

    snprintf(kind, sizeof kind, ST_BOOKING_OF, org);
    return org > 0 && st_store_meta_get(reader, ST_BOOKINGS_INDEXED, arena, &had, &ignored) == 0 &&
           strcmp(had, "1") == 0 && st_store_documents(reader, kind, take_name, ret, &ignored) == 0;
}

int st_booking_records(st_api *api, const char *account, const st_booking_names *names,
                       int64_t from_ms, int64_t to_ms, json_t *ret, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    reading rd = {.api = api, .account = account, .from_ms = from_ms, .to_ms = to_ms};
    st_store *reader = st_api_reader(api, err);
    st_document_row row;
    int r = 0;

    st_booking_names mine = {0};

    if (!reader)
        return -err->code;
    if (!names && from_index(api, account, reader, &mine))
        names = &mine;
    for (size_t i = 0; names && r == 0 && i < names->n; i++) {
        st_arena_reset(arena);
        r = st_store_document_get(reader, ST_BOOKING_KIND, names->v[i].text, arena, &row, err);
        r = r == 0 ? look(&rd, &row, err) : r == -ST_ENOENT ? 0 : r; /* as if it were another's */
    }
    if (!names)
        r = st_store_documents(reader, ST_BOOKING_KIND, look, &rd, err);
    st_api_reader_back(api, reader);
    st_vec_free(&mine);
    if (rd.found.n > 0)
        qsort(rd.found.v, rd.found.n, sizeof *rd.found.v, by_start);
    for (size_t i = 0; i < rd.found.n; i++)
        json_array_append_new(ret, rd.found.v[i]);
    st_vec_free(&rd.found);
    return r;
}

/* ---- one ------------------------------------------------------------------------------------ */

static void out_moment(st_strbuf *out, const char *key, const st_tz *tz, int64_t ms)
{
    char at[ST_WHEN_MAX];

    if (ms <= 0 || ms == ST_TIME_NEVER)
        st_out_raw(out, key, "null");
    else
        st_out_text(out, key, st_when_rfc3339(at, tz, ms));
}

/* Where it is, once that does not move any more. */
static void out_nodes(const st_core *core, const st_booking *b, st_strbuf *out)
{
    const st_fleet *fleet = st_core_fleet(core);
    bool fixed = b && (b->state == ST_BOOKING_PREPARING || b->state == ST_BOOKING_ACTIVE);
    int32_t last = -1;
    bool first = true;

    st_strbuf_add(out, ",\"nodes\":[");
    for (int t = 0; fixed && b->plan && t < b->tasks; t++) {
        if (b->plan[t].node < 0 || b->plan[t].node == last)
            continue;
        last = b->plan[t].node;
        st_strbuf_add(out, first ? "" : ",");
        st_quote_json(out, fleet->nodes.v[last]->name);
        first = false;
    }
    st_strbuf_addc(out, ']');
}

/* The discounts that were agreed are one: what a change keeps is their product. */
static void out_price(const st_agreed_price *p, st_strbuf *out)
{
    char agreed[ST_RATIO_MAX], plan[ST_RATIO_MAX];

    st_out_raw(out, "price", "{");
    st_out_money(out, "amount", p->amount);
    st_out_money(out, "gpu_hour", p->rate);
    st_strbuf_addf(out, ",\"discounts\":{\"agreed\":\"%s%%\",\"plan\":\"%s%%\"}}",
                   st_ratio(agreed, ST_BP - p->keep_bp, 100, 2),
                   st_ratio(plan, p->plan_bp, 100, 2));
}

static void out_booking_money(const st_booking_money *money, st_strbuf *out)
{
    if (money->price)
        out_price(money->price, out);
    else
        st_out_raw(out, "price", "null");
    st_out_money_if(out, "cancel_fee", money->fee != NULL, money->fee ? *money->fee : 0);
}

/* What new zone data did to it: where it was before; or where the clock has it, if it could not go there. */
static void out_zone_change(const json_t *record, const st_tz *tz, st_strbuf *out)
{
    const json_t *c = json_object_get(record, "zone_change");

    if (!c) {
        st_out_raw(out, "zone_change", "null");
        return;
    }
    st_strbuf_addf(out, ",\"zone_change\":{\"moved\":%s",
                   json_is_true(json_object_get(c, "moved")) ? "true" : "false");
    out_moment(out, "from", tz, number(c, "from"));
    out_moment(out, "to", tz, number(c, "to"));
    st_out_time(out, "at", number(c, "at"));
    st_out_text(out, "tzdata", text(c, "tzdata"));
    st_out_text(out, "text", text(c, "text"));
    st_strbuf_addc(out, '}');
}

void st_booking_out_parts(const st_booking *b, const json_t *record, st_strbuf *out)
{
    const char *const keys[] = {"profile", "share"};

    st_out_text(out, "level", text(record, "level")[0] ? text(record, "level") : "whole");
    for (size_t i = 0; i < ST_ARRAY_LEN(keys); i++)
        if (text(record, keys[i])[0])
            st_out_text(out, keys[i], text(record, keys[i]));
        else
            st_out_raw(out, keys[i], "null");
    if (json_object_get(record, "parts"))
        st_out_int(out, "parts", b ? b->parts.n : number(record, "parts"));
    else
        st_out_raw(out, "parts", "null");
}

/* What its nodes must have, and how far they are. */
static void out_config(const st_core *core, const st_booking *b, const json_t *record,
                       const st_booking_money *money, st_strbuf *out)
{
    const json_t *require = json_object_get(record, "require");
    ST_CLEANUP(st_freep) char *said = json_dumps(require, JSON_COMPACT);
    ST_CLEANUP(st_strbuf_done) st_strbuf reason = {0};
    const char *ready = b ? st_booking_ready(core, b, record, &reason) : money->ready;

    if (!b && ready)
        st_strbuf_add(&reason, money->reason);

    st_out_raw(out, "require", said ? said : "{}");
    st_out_raw(out, "dedicated",
               json_is_true(json_object_get(record, "dedicated")) ? "true" : "false");
    st_booking_out_parts(b, record, out);
    if (text(record, "image")[0])
        st_out_text(out, "image", text(record, "image"));
    else
        st_out_raw(out, "image", "null");
    if (ready)
        st_out_text(out, "ready", ready);
    else
        st_out_raw(out, "ready", "null");
    if (reason.n > 0)
        st_out_text(out, "reason", st_strbuf_str(&reason));
    else
        st_out_raw(out, "reason", "null");
}

void st_booking_json(st_api *api, const st_core *core, const json_t *record, const st_tz *as,
                     const st_booking_money *money, st_strbuf *out)
{
    const st_booking *b = core ? st_core_booking(core, (uint64_t)number(record, "id")) : NULL;
    const st_tz *tz = as;
    char id[ST_ID_TEXT];
    st_err err;

    if (!as && st_zones_get(api->zones, text(record, "zone"), &tz, &err) < 0)
        ST_ASSERT(st_zones_get(api->zones, "UTC", &tz, &err) == 0); /* the database has lost it */
    st_control_name(api->control, ST_BOOKING_ID, (uint64_t)number(record, "id"), id);
    st_strbuf_addc(out, '{');
    st_out_text(out, "id", id);
    st_out_text(out, "name", text(record, "name"));
    st_out_text(out, "account", text(record, "account"));
    st_out_text(out, "user", text(record, "user"));
    st_out_text(out, "state", b ? st_booking_state_name(b->state) : text(record, "state"));
    st_out_raw(out, "degraded", b && st_booking_degraded(b) ? "true" : "false");
    out_moment(out, "from", tz, b ? b->from_ms : number(record, "from"));
    out_moment(out, "to", tz, b ? b->to_ms : number(record, "to"));
    st_out_text(out, "zone", text(record, "zone"));
    st_out_text(out, "tzdata", text(record, "tzdata"));
    out_zone_change(record, tz, out);
    st_out_text(out, "type", text(record, "type"));
    st_out_int(out, "tasks", b ? b->tasks : number(record, "tasks"));
    st_out_int(out, "gpus", number(record, "gpus"));
    if (text(record, "pool")[0])
        st_out_text(out, "pool", text(record, "pool"));
    else
        st_out_raw(out, "pool", "null");
    st_out_text(out, "topology", text(record, "topology"));
    out_config(core, b, record, money, out);
    if (number(record, "series") != 0) {
        st_control_name(api->control, ST_BOOKING_ID, (uint64_t)number(record, "series"), id);
        st_out_text(out, "series", id);
    } else {
        st_out_raw(out, "series", "null");
    }
    if (b && b->state == ST_BOOKING_QUOTED)
        st_out_time(out, "held_until", b->hold_ms);
    else
        st_out_raw(out, "held_until", "null");
    st_out_time(out, "made", number(record, "made"));
    st_out_time(out, "changed", number(record, "changed"));
    if (json_object_get(record, "ended"))
        st_out_time(out, "ended", number(record, "ended"));
    else
        st_out_raw(out, "ended", "null");
    if (core)
        out_nodes(core, b, out);
    else
        st_strbuf_add(out, ",\"nodes\":[]");
    out_booking_money(money, out);
    st_strbuf_addc(out, '}');
}

/* One of a list, with what is agreed about it at this moment. */
static void add_record(st_question *q, const st_core *core, const json_t *record, const st_tz *as)
{
    st_booking_money money = {0};
    st_agreed_price price;

    if (st_tx_agreed_price(q->tx, (uint64_t)number(record, "id"), &price))
        money = (st_booking_money){.price = &price, .fee = &price.fee};
    st_booking_json(q->api, core, record, as, &money, &q->out);
}

/* ---- questions ------------------------------------------------------------------------------ */

typedef struct wanted {
    json_t *records;
    char account[ST_NAME_MAX + 2];
    char name[64]; /* "": a list */
    st_booking_names names;
    int64_t from_ms, to_ms;
    bool all;        /* those that are over as well */
    uint64_t behind; /* a page: the last booking of the one before; 0: it is the first */
    int64_t limit;   /* 0: all of them */
    bool calendar;
    const st_tz *tz;
} wanted;

static void wanted_free(void *arg)
{
    wanted *w = arg;

    json_decref(w->records);
    st_vec_free(&w->names);
    free(w);
}

static bool is_over(const json_t *record)
{
    return json_object_get(record, "ended") != NULL;
}

/* Where the page begins: behind a booking that the caller sees. */
static int page_start(const wanted *w, size_t *ret, st_err *err)
{
    const json_t *record;
    size_t i;

    *ret = 0;
    if (w->behind == 0)
        return 0;
    json_array_foreach(w->records, i, record)
    {
        if ((uint64_t)number(record, "id") != w->behind)
            continue;
        *ret = i + 1;
        return 0;
    }
    return st_fail(err, ST_EINVAL, "invalid cursor; list again without it");
}

/* A page of the records; what follows it is told by its last booking. */
static int fill_page(st_question *q, st_core *core, st_err *err)
{
    wanted *w = q->owner;
    size_t at;
    int64_t n = 0;
    uint64_t last = 0;
    bool more = false;
    char id[ST_ID_TEXT];
    int r = page_start(w, &at, err);

    st_strbuf_add(&q->out, "\"bookings\":[");
    for (; r == 0 && at < json_array_size(w->records) && !more; at++) {
        const json_t *record = json_array_get(w->records, at);

        if (!w->all && is_over(record))
            continue;
        more = w->limit > 0 && n == w->limit;
        if (more)
            break;
        if (n++ > 0)
            st_strbuf_addc(&q->out, ',');
        add_record(q, core, record, w->tz);
        last = (uint64_t)number(record, "id");
    }
    st_strbuf_addc(&q->out, ']');
    if (more) {
        st_control_name(q->api->control, ST_BOOKING_ID, last, id);
        st_out_text(&q->out, "next", id);
    }
    return r;
}

static int fill(st_question *q, st_core *core, st_err *err)
{
    wanted *w = q->owner;
    const json_t *record = json_array_get(w->records, 0);
    char quoted[ST_QUOTE_MAX];
    int r;

    if (w->name[0]) {
        if (!record)
            return st_fail(err, ST_ENOENT, "there is no booking %s", st_quote(quoted, w->name));
        snprintf(q->version, sizeof q->version, "%lld", (long long)number(record, "version"));
        add_record(q, core, record, w->tz);
        return 0;
    }
    st_strbuf_addc(&q->out, '{');
    if (w->calendar) {
        st_out_text(&q->out, "zone", st_tz_name(w->tz));
        out_moment(&q->out, "from", w->tz, w->from_ms);
        out_moment(&q->out, "to", w->tz, w->to_ms);
        st_strbuf_addc(&q->out, ',');
    }
    r = fill_page(q, core, err);
    st_strbuf_addc(&q->out, '}');
    return r;
}

/* What is not over the core knows, so that others' records are not looked through. */
static int fill_names(st_question *q, st_core *core, st_err *err)
{
    wanted *w = q->owner;
    const st_tree *tree = st_core_tree(core);
    int32_t within = w->account[0] ? st_tree_find(tree, w->account) : ST_ROOT;

    (void)err;
    for (size_t i = 0; within >= 0 && i < st_core_nbookings(core); i++) {
        const st_booking *b = st_core_booking_at(core, i);
        st_booking_name name;

        if (!st_tree_within(tree, b->account, within))
            continue;
        st_control_name(q->api->control, ST_BOOKING_ID, b->id, name.text);
        st_vec_push(&w->names, name);
    }
    return 0;
}

static int read_records(st_question *q, st_err *err)
{
    wanted *w = q->owner;
    bool listed = w->name[0] || !w->all;
    int r = 0;

    if (w->name[0]) {
        st_booking_name name = {""};

        snprintf(name.text, sizeof name.text, "%.15s", w->name);
        if (strcmp(name.text, w->name) == 0) /* a longer one is none */
            st_vec_push(&w->names, name);
    } else if (!w->all) {
        q->fill = fill_names;
        r = st_question_read(q, err);
        q->fill = fill;
    }
    if (r == 0)
        r = st_booking_records(q->api, w->account, listed ? &w->names : NULL, w->from_ms, w->to_ms,
                               w->records, err);
    return r < 0 ? r : st_question_read(q, err);
}

static void ask(st_api *api, st_call *call, wanted *w)
{
    st_question *q = st_question_new(api, call, fill, "", 0);

    w->records = json_array();
    q->owner = w;
    q->drop = wanted_free;
    q->ask = read_records;
    st_question_post(q);
}

/* The account of the query if the caller sees it, its own without one; false: answered. */
static bool account_of(st_api *api, st_call *call, wanted *w)
{
    const char *account = st_call_query(call, "account");

    if (!account)
        account = st_api_who(call)->account;
    snprintf(w->account, sizeof w->account, "%s", account);
    if (st_api_sees(api, call, account))
        return true;
    st_api_no_such(call, "account", account);
    free(w);
    return false;
}

void st_api_bookings_list(st_call *call, void *ctx)
{
    wanted *w = st_xcalloc(1, sizeof *w);
    const char *cursor = st_call_query(call, "cursor");

    w->from_ms = INT64_MIN;
    w->to_ms = INT64_MAX;
    w->all = st_call_query_bool(call, "all", false);
    w->limit = st_call_query_int(call, "limit", 0);
    if (cursor && !st_control_named(((st_api *)ctx)->control, ST_BOOKING_ID, cursor, &w->behind))
        w->behind = UINT64_MAX; /* nobody's */
    if (account_of(ctx, call, w))
        ask(ctx, call, w);
}

void st_api_booking_get(st_call *call, void *ctx)
{
    wanted *w = st_xcalloc(1, sizeof *w);

    w->from_ms = INT64_MIN;
    w->to_ms = INT64_MAX;
    snprintf(w->account, sizeof w->account, "%s", st_api_who(call)->account);
    snprintf(w->name, sizeof w->name, "%s", st_call_param(call, "id"));
    ask(ctx, call, w);
}

static int read_range(st_api *api, st_call *call, wanted *w, st_err *err)
{
    const char *zone = st_call_query(call, "zone"), *from = st_call_query(call, "from"),
               *to = st_call_query(call, "to");
    int64_t now = api->options.clock(api->options.ctx);
    int r = st_zones_get(api->zones, zone ? zone : "UTC", &w->tz, err);

    if (r == 0)
        r = st_when_parse(from ? from : "today", w->tz, now, &w->from_ms, err);
    w->to_ms = w->from_ms + 7 * DAY_MS;
    if (r == 0 && to)
        r = st_when_parse(to, w->tz, now, &w->to_ms, err);
    if (r == 0 && w->to_ms <= w->from_ms)
        r = st_fail(err, ST_EINVAL, "the calendar's end is not after its start");
    if (r == 0 && w->to_ms - w->from_ms > RANGE_DAYS_MAX * DAY_MS)
        r = st_fail(err, ST_ERANGE, "a calendar shows at most ten years");
    return r;
}

void st_api_calendar(st_call *call, void *ctx)
{
    wanted *w = st_xcalloc(1, sizeof *w);
    st_err err = {0};

    w->calendar = w->all = true;
    if (read_range(ctx, call, w, &err) < 0) {
        st_call_fail(call, &err);
        free(w);
    } else if (account_of(ctx, call, w)) {
        ask(ctx, call, w);
    }
}

/* ---- the feed ------------------------------------------------------------------------------- */

static void add_event(st_api *api, const json_t *record, st_strbuf *out)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf uid = {0}, summary = {0}, about = {0};
    const char *state = text(record, "state");
    char id[ST_ID_TEXT];
    int64_t gpus = number(record, "tasks") * number(record, "gpus");

    st_control_name(api->control, ST_BOOKING_ID, (uint64_t)number(record, "id"), id);
    st_strbuf_addf(&uid, "%s@stint", id);
    st_strbuf_addf(&summary, "%s: %lld × %s", text(record, "name"), (long long)gpus,
                   text(record, "type"));
    st_strbuf_addf(&about, "Booking %s of account %s, made by %s. State: %s.", id,
                   text(record, "account"), text(record, "user"), state);
    st_ics_event_add(out, &(st_ics_event){
                              .uid = st_strbuf_str(&uid),
                              .summary = st_strbuf_str(&summary),
                              .description = st_strbuf_str(&about),
                              .from_ms = number(record, "from"),
                              .to_ms = number(record, "to"),
                              .stamp_ms = number(record, "changed"),
                              .status = strcmp(state, "quoted") == 0      ? ST_ICS_TENTATIVE
                                        : strcmp(state, "cancelled") == 0 ? ST_ICS_CANCELLED
                                                                          : ST_ICS_CONFIRMED,
                          });
}

/* The address has the secret, so it opens the feed and nothing else; logs have no queries. */
static void feed_now(st_call *call, void *ctx)
{
    st_api *api = ctx;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const char *token = st_call_query(call, "token");
    int64_t now = api->options.clock(api->options.ctx);
    json_t *records = json_array();
    const json_t *record;
    st_identity who = {0};
    st_err err = {0};
    size_t i;
    int r = token ? st_directory_token(api->dir, token, now, &who, &err)
                  : st_fail(&err, ST_EAUTH, "the address of a feed ends in ?token=TOKEN");

    if (r == 0 && who.role != ST_ROLE_FEED)
        r = st_fail(
            &err, ST_EAUTH,
            "a calendar's address takes a token of its own; make one with `stint calendar feed`");
    if (r == -ST_EAUTH)
        st_control_refused(api->control, st_call_peer(call)->address);
    if (r == 0)
        r = st_booking_records(api, who.account, NULL, now - FEED_PAST_MS, INT64_MAX, records,
                               &err);
    if (r == 0) {
        st_ics_begin(&out, who.account[0] ? who.account : "stint");
        json_array_foreach(records, i, record) add_event(api, record, &out);
        st_ics_end(&out);
        st_call_set_header(call, "Cache-Control", "private, no-store");
        st_call_reply_buf(call, 200, "text/calendar; charset=utf-8", &out);
    } else {
        st_call_fail(call, &err);
    }
    json_decref(records);
}

void st_api_calendar_feed(st_call *call, void *ctx)
{
    st_api_aside(ctx, call, feed_now);
}
