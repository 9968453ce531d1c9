/*
 * Booking: quotes, and what is done to bookings. The times of a document are read here, in its zone; the core sees
 * instants.
 */
#include "api/bookings.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "billing/money.h"
#include "calendar/calendar.h"
#include "ledger/text.h"
#include "spec/windows.h"
#include "zones/zones.h"

#define NAME_DEFAULT "booking"

typedef struct booking_fields {
    st_job_fields asks;
    st_window_fields when;
    const char *name;
    const st_doc_node *require;
    int64_t no_show_ms;
    bool confirm, dedicated;
    const char *image;
} booking_fields;

#define OF(field) offsetof(booking_fields, field)
static const st_field booking_rows[] = {
    {.key = "account", .kind = ST_F_TEXT, .offset = OF(asks.account)},
    {.key = "name", .kind = ST_F_NAME, .offset = OF(name)},
    {.key = "type", .kind = ST_F_NODE, .offset = OF(asks.type), .required = true},
    {.key = "gpus", .kind = ST_F_INT, .offset = OF(asks.gpus), .lo = 1, .hi = ST_TASKS_MAX},
    {.key = "level", .kind = ST_F_WORD, .offset = OF(asks.level), .words = st_level_words},
    {.key = "profile", .kind = ST_F_TEXT, .offset = OF(asks.profile)},
    {.key = "share", .kind = ST_F_MILLI, .offset = OF(asks.share_m), .lo = 1, .hi = ST_WHOLE_M},
    {.key = "tasks", .kind = ST_F_INT, .offset = OF(asks.tasks), .lo = 1, .hi = ST_TASKS_MAX},
    {.key = "pool", .kind = ST_F_NODE, .offset = OF(asks.pool)},
    {.key = "topology", .kind = ST_F_NODE, .offset = OF(asks.topology)},
    {.key = "no_show", .kind = ST_F_DURATION, .offset = OF(no_show_ms), .none = true},
    {.key = "require", .kind = ST_F_NODE, .offset = OF(require)},
    {.key = "image", .kind = ST_F_LINE, .offset = OF(image)},
    {.key = "dedicated", .kind = ST_F_BOOL, .offset = OF(dedicated)},
    {.key = "confirm", .kind = ST_F_BOOL, .offset = OF(confirm)},
    ST_WINDOW_ROWS(booking_fields, when),
    {0},
};
#undef OF

/* One document, and what the loop or a question needs of it. */
typedef struct booking {
    st_cmd_book book;
    st_api *api;
    st_call *call;
    st_doc *doc;
    const st_tz *tz;
    char tzdata[ST_ZONES_VERSION_MAX];
    char *repeat;
    st_strbuf require;
    st_occurrences when;
    ST_VEC(st_window) windows;
    ST_VEC(st_wall) walls;
} booking;

static void booking_free(void *arg)
{
    booking *b = arg;

    st_doc_free(b->doc);
    free(b->repeat);
    st_strbuf_done(&b->require);
    st_vec_free(&b->when);
    st_vec_free(&b->windows);
    st_vec_free(&b->walls);
    free(b);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Slices or shares, one for each task, on as many GPUs as have room for them. */
static int divide(const st_spec_names *names, const booking_fields *f, const st_job_spec *job,
                  st_booking_spec *spec, st_err *err)
{
    st_board board = names->board(names->ctx, spec->type);

    spec->parts = (st_parts){.level = job->shape.level,
                             .profile = job->shape.profile,
                             .share_m = job->shape.share_m,
                             .n = ST_MAX(f->asks.tasks, 1)};
    spec->gpus = 1;
    spec->tasks = st_parts_gpus(board, &spec->parts);
    if (spec->tasks > ST_TASKS_MAX)
        return st_fail(err, ST_ERANGE, "%d of them need %d GPUs; one booking has at most %d",
                       spec->parts.n, spec->tasks, ST_TASKS_MAX);
    return spec->tasks > 0
               ? 0
               : st_fail(err, ST_EINVAL, "GPUs of this type cannot be divided like this");
}

/* Without `tasks` the GPUs are all there are: more than a node has are whole nodes. */
static int split(const st_api *api, const booking_fields *f, st_booking_spec *spec, st_err *err)
{
    st_directory_gpu types[ST_TYPES_MAX];
    size_t n = st_directory_types(api->dir, types);
    int most = (size_t)spec->type < n ? types[spec->type].node_gpus : 0;

    spec->tasks = f->asks.tasks > 0 ? f->asks.tasks : 1;
    spec->gpus = f->asks.gpus;
    if (f->asks.tasks > 0 || f->asks.gpus <= most)
        return f->asks.gpus <= most || most == 0
                   ? 0
                   : st_fail(err, ST_EINVAL, "no node has %d GPUs of this type; the largest has %d",
                             f->asks.gpus, most);
    if (most == 0 || f->asks.gpus % most != 0)
        return st_fail(
            err, ST_EINVAL,
            "%d GPUs are not whole nodes of %d; say how many each task has (tasks, gpus)",
            f->asks.gpus, most);
    spec->tasks = f->asks.gpus / most;
    spec->gpus = most;
    return 0;
}

/* Members book as themselves, for their own account. */
static int address(const booking *b, const char *account, st_err *err)
{
    const st_identity *who = &b->book.who;
    char q[ST_QUOTE_MAX];

    if (!account[0])
        return st_fail(err, ST_EINVAL, "which account is the booking for? (account)");
    if (!st_directory_within(b->api->dir, account, who->account))
        return st_fail(err, ST_ENOENT, "there is no account %s", st_quote(q, account));
    if (who->role == ST_ROLE_MEMBER && strcmp(account, who->account) != 0)
        return st_fail(err, ST_EPERM, "your token books for account %s, not for %s", who->account,
                       st_quote(q, account));
    return 0;
}

/* One of the catalogue: what lies in a tenant's storage is on no node yet. */
static int check_image(const booking *b, const char *image, st_err *err)
{
    st_image_ref ref;
    int r = st_spec_image(image, &ref, err);

    if (r == 0 && ref.kind != ST_IMAGE_REF_NAME)
        r = st_fail(err, ST_EINVAL,
                    "a booking prepares images of the catalogue (stint image list), not %.100s",
                    image);
    return r < 0 ? r
                 : st_images_admit(st_control_images(b->api->control), b->book.spec.account, image,
                                   ST_LEVEL_WHOLE, err);
}

static int read_spec(booking *b, const booking_fields *f, st_err *err)
{
    const st_spec_names names = st_directory_names(b->api->dir);
    st_booking_spec *s = &b->book.spec;
    st_job_fields asks = f->asks;
    st_job_spec job = {0};
    bool none = false;
    char q[ST_QUOTE_MAX];
    int r;

    bool parts = asks.level > 0 || asks.profile || asks.share_m > 0;

    if (!parts && asks.gpus < 0)
        return st_fail(err, ST_EINVAL, "how many GPUs? (gpus)");
    asks.tasks = ST_MAX(asks.tasks, 1);
    if (!parts || asks.gpus < 0)
        asks.gpus = 1; /* how many there are is looked at in `split` */
    r = st_spec_job(b->doc, st_doc_root(b->doc), &asks, &names, &job, &none, err);
    if (r < 0)
        return r;
    if (job.shape.types == 0 || (job.shape.types & (job.shape.types - 1)) != 0)
        return st_doc_fail(b->doc, f->asks.type, err, ST_EINVAL, "a booking is of one GPU type");
    s->type = __builtin_ctz(job.shape.types);
    s->pool = job.pool;
    s->topo = job.topo;
    s->topo_required = job.topo_required;
    s->account = f->asks.account ? f->asks.account : b->book.who.account;
    s->user = b->book.who.user;
    s->reader = b->book.who.account[0] ? b->book.who.account : NULL;
    s->name = f->name;
    s->no_show_ms = f->no_show_ms < 0 ? ST_TIME_NEVER : f->no_show_ms;
    s->dedicated = f->dedicated;
    b->book.image = f->image;
    r = address(b, s->account, err);
    if (r == 0 && f->require)
        r = st_spec_node_labels(b->doc, f->require, &b->require, err);
    s->require = b->require.n > 0 ? st_strbuf_str(&b->require) : NULL;
    if (r == 0 && f->image)
        r = check_image(b, f->image, err);
    if (r < 0)
        return r;
    if (none)
        return st_fail(err, ST_EINVAL, "GPUs of this type have no slice %s",
                       st_quote(q, f->asks.profile));
    return parts ? divide(&names, f, &job, s, err) : split(b->api, f, s, err);
}

static int read_windows(booking *b, const booking_fields *f, st_err *err)
{
    int64_t now = b->api->options.clock(b->api->options.ctx);
    int r = st_zones_get(b->api->zones, f->when.zone, &b->tz, err);

    if (r == 0)
        r = st_spec_windows(b->doc, &f->when, b->tz, now, &b->when, err);
    for (size_t i = 0; r == 0 && i < b->when.n; i++) {
        st_vec_push(&b->windows, (st_window){b->when.v[i].from_ms, b->when.v[i].to_ms});
        st_vec_push(&b->walls, b->when.v[i].wall);
    }
    if (r == 0 && f->when.repeat) {
        ST_CLEANUP(st_strbuf_done) st_strbuf json = {0};

        st_spec_json(f->when.repeat, &json);
        b->repeat = st_strbuf_take(&json);
    }
    return r;
}

static int read_booking(booking *b, st_err *err)
{
    booking_fields f = {.asks = ST_JOB_FIELDS_INIT,
                        .when = ST_WINDOW_FIELDS_INIT,
                        .name = NAME_DEFAULT,
                        .no_show_ms = -1};
    int r = st_call_doc(b->call, &b->doc, err);

    f.asks.tasks = 0;
    if (r == 0)
        r = st_doc_expect(b->doc, st_doc_root(b->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(b->doc, st_doc_root(b->doc), booking_rows, &f, err);
    if (r == 0)
        r = read_spec(b, &f, err);
    if (r == 0)
        r = read_windows(b, &f, err);
    if (r < 0)
        return r;
    st_zones_version(b->api->zones, b->tzdata);
    b->book.windows = b->windows.v;
    b->book.walls = b->walls.v;
    b->book.n = b->windows.n;
    b->book.confirm = f.confirm;
    b->book.zone = st_tz_name(b->tz);
    b->book.tzdata = b->tzdata;
    b->book.repeat = b->repeat;
    return 0;
}

/* ---- a dry run ------------------------------------------------------------------------------ */

static void out_moment(st_strbuf *out, const char *key, const st_tz *tz, int64_t ms)
{
    char at[ST_WHEN_MAX];

    if (ms == ST_TIME_NEVER || ms <= 0)
        st_out_raw(out, key, "null");
    else
        st_out_text(out, key, st_when_rfc3339(at, tz, ms));
}

/* What it would cost if it were confirmed now; null: the price book has no price for bookings. */
static void out_price(st_question *q, const booking *b, size_t i)
{
    const st_booking_spec *s = &b->book.spec;
    st_strbuf *out = &q->out;
    char ratio[ST_RATIO_MAX];
    st_window_price p;

    st_tx_window_price(q->tx, s->account, s->type, (int64_t)s->tasks * s->gpus * ST_WHOLE_M,
                       &b->windows.v[i], &p);
    if (!p.priced) {
        st_out_raw(out, "price", "null");
        return;
    }
    const struct {
        const char *key;
        int64_t bp;
    } off[] = {{"term", p.term_bp}, {"lead", p.lead_bp}, {"plan", p.plan_bp}};
    st_out_raw(out, "price", "{");
    st_out_money(out, "amount", p.amount);
    st_out_money(out, "gpu_hour", p.rate);
    st_strbuf_add(out, ",\"discounts\":{");
    for (size_t k = 0; k < ST_ARRAY_LEN(off); k++)
        st_strbuf_addf(out, "%s\"%s\":\"%s%%\"", k > 0 ? "," : "", off[k].key,
                       st_ratio(ratio, off[k].bp, 100, 2));
    st_strbuf_add(out, "}}");
}

static void out_parts(const st_booking_spec *s, const st_fleet *fleet, st_strbuf *out)
{
    json_t *words = json_object();

    st_booking_put_parts(words, fleet->types.v[s->type].board, &s->parts);
    st_booking_out_parts(NULL, words, out);
    json_decref(words);
}

/* What others have booked or are guaranteed is no more than a moment and what else would fit; amounts are the owner's. */
static void quote_json(st_question *q, const st_core *core, const booking *b, size_t i,
                       const st_book_quote *quote)
{
    const st_fleet *fleet = st_core_fleet(core);
    st_strbuf *out = &q->out;
    /* Of those that have nothing to do with what is there. */
    static const char *const never[] = {
#define X(id, name, about) [id] = about,
        ST_BOOK_TABLE(X)
#undef X
    };
    bool fits = quote->why == ST_BOOK_OK, first = true;
    char over[ST_BOOK_OVER_TEXT];

    st_strbuf_add(out, i > 0 ? ",{" : "{");
    out_moment(out, "from", b->tz, b->windows.v[i].from_ms);
    out_moment(out, "to", b->tz, b->windows.v[i].to_ms);
    st_out_raw(out, "shifted", b->when.v[i].shifted ? "true" : "false");
    st_out_raw(out, "fits", fits ? "true" : "false");
    if (!fits) {
        st_out_text(out, "why", st_book_why_name(quote->why));
        if (quote->why == ST_BOOK_QUOTA)
            st_out_text(
                out, "detail",
                st_core_book_over_text(core, &quote->over, st_question_root(q, core), over));
        else if (quote->why < ST_BOOK_QUOTA)
            st_out_text(out, "detail", never[quote->why]);
        out_moment(out, "not_available_from", b->tz,
                   quote->why <= ST_BOOK_QUOTA ? ST_TIME_NEVER : quote->at_ms);
        out_moment(out, "earlier", b->tz, quote->earlier_ms);
        out_moment(out, "later", b->tz, quote->later_ms);
        st_out_int(out, "fewer_gpus", (int64_t)quote->fewer * b->book.spec.gpus);
        st_strbuf_add(out, ",\"other_types\":[");
        for (size_t t = 0; t < fleet->types.n; t++) {
            if (!(quote->types >> t & 1) || (int32_t)t == b->book.spec.type)
                continue;
            st_strbuf_add(out, first ? "" : ",");
            st_quote_json(out, fleet->types.v[t].name);
            first = false;
        }
        st_strbuf_add(out, "]");
    } else {
        st_out_milli(out, "displaces_own_gpus", quote->displaces_own_m);
    }
    if (st_question_owner(q)) {
        st_out_milli(out, "needed_gpus", quote->need_m);
        st_out_milli(out, "free_gpus", quote->have_m);
        st_out_milli(out, "displaces_gpus", quote->displaces_m);
    }
    out_price(q, b, i);
    st_strbuf_add(out, "}");
}

static int fill_quote(st_question *q, st_core *core, st_err *err)
{
    booking *b = q->owner;
    ST_CLEANUP(st_freep) st_book_quote *quotes = st_xcalloc(b->windows.n, sizeof *quotes);
    bool fits = true;
    int r;

    st_windows_now(b->windows.v, b->windows.n, st_core_now(core));
    r = st_core_quote(core, &b->book.spec, b->windows.v, b->windows.n, quotes, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < b->windows.n; i++)
        fits = fits && quotes[i].why == ST_BOOK_OK;
    if (fits) /* what a cap would refuse is refused here */
        r = st_money_may_book(q->tx, &b->book.spec, b->windows.v, b->windows.n, b->book.who.account,
                              err);
    if (r < 0)
        return r;
    st_strbuf_addf(&q->out, "{\"fits\":%s", fits ? "true" : "false");
    st_out_text(&q->out, "account", b->book.spec.account);
    st_out_text(&q->out, "type", st_core_fleet(core)->types.v[b->book.spec.type].name);
    st_out_int(&q->out, "tasks", b->book.spec.tasks);
    st_out_int(&q->out, "gpus", b->book.spec.gpus);
    out_parts(&b->book.spec, st_core_fleet(core), &q->out);
    st_out_text(&q->out, "zone", b->book.zone);
    st_out_text(&q->out, "tzdata", b->tzdata);
    st_strbuf_add(&q->out, ",\"windows\":[");
    for (size_t i = 0; i < b->windows.n; i++)
        quote_json(q, core, b, i, &quotes[i]);
    st_strbuf_add(&q->out, "]}");
    return 0;
}

/* ---- making --------------------------------------------------------------------------------- */

static void made(st_cmd *cmd, const st_err *err)
{
    booking *b = (booking *)cmd;
    st_strbuf out = {0};
    char id[ST_ID_TEXT];

    if (err) {
        st_call_fail(b->call, err);
        booking_free(b);
        return;
    }
    st_control_name(b->api->control, ST_BOOKING_ID, b->book.id, id);
    st_strbuf_addc(&out, '{');
    st_out_text(&out, "id", id);
    st_out_text(&out, "state", b->book.confirm ? "confirmed" : "quoted");
    if (b->book.confirm)
        st_out_raw(&out, "held_until", "null");
    else
        st_out_time(&out, "held_until", b->book.held_ms);
    st_strbuf_add(&out, ",\"bookings\":[");
    for (size_t i = 0; i < b->windows.n; i++) {
        st_control_name(b->api->control, ST_BOOKING_ID, b->book.id + i, id);
        st_strbuf_add(&out, i > 0 ? ",{" : "{");
        st_out_text(&out, "id", id);
        out_moment(&out, "from", b->tz, b->windows.v[i].from_ms);
        out_moment(&out, "to", b->tz, b->windows.v[i].to_ms);
        st_strbuf_addc(&out, '}');
    }
    st_strbuf_add(&out, "]}");
    st_call_reply_buf(b->call, 201, NULL, &out);
    st_strbuf_done(&out);
    booking_free(b);
}

void st_api_bookings_make(st_call *call, void *ctx)
{
    booking *b = st_xcalloc(1, sizeof *b);
    st_err err = {0};

    b->api = ctx;
    b->call = call;
    b->book.who = *st_api_who(call);
    if (read_booking(b, &err) < 0) {
        st_call_fail(call, &err);
        booking_free(b);
        return;
    }
    if (st_call_query_bool(call, "dry_run", false)) {
        st_question *q = st_question_new(b->api, call, fill_quote, "", 0);

        q->how = ST_READ_ALONE;
        q->owner = b;
        q->drop = booking_free;
        st_question_post(q);
        return;
    }
    st_cmd_book_init(&b->book);
    b->book.cmd.done = made;
    st_call_defer(call);
    st_api_post(b->api, call, &b->book.cmd);
}

/* ---- what is there -------------------------------------------------------------------------- */

typedef struct change {
    st_cmd_booking put;
    st_api *api;
    st_call *call;
    st_doc *doc;
} change;

static void changed(st_cmd *cmd, const st_err *err)
{
    change *c = (change *)cmd;
    st_strbuf out = {0};

    if (err) {
        st_call_fail(c->call, err);
    } else {
        const st_booking_money money = {.price = c->put.priced ? &c->put.price : NULL,
                                        .fee = c->put.due ? &c->put.fee : NULL,
                                        .ready = c->put.ready,
                                        .reason = c->put.reason};

        st_booking_json(c->api, NULL, c->put.record, NULL, &money, &out);
        st_api_set_version(c->call, json_integer_value(json_object_get(c->put.record, "version")));
        st_call_reply_buf(c->call, 200, NULL, &out);
    }
    st_strbuf_done(&out);
    json_decref(c->put.record);
    st_doc_free(c->doc);
    free(c);
}

static int may_edit(st_cmd_booking *cmd, int64_t version, st_err *err)
{
    const change *c = (const change *)cmd;
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)version);
    return st_api_condition(c->call, text, true, "booking", cmd->name, err);
}

static change *change_new(st_call *call, st_api *api)
{
    change *c = st_xcalloc(1, sizeof *c);

    c->api = api;
    c->call = call;
    c->put.who = *st_api_who(call);
    c->put.name = st_call_param(call, "id");
    c->put.from_ms = c->put.to_ms = ST_TIME_NEVER;
    c->put.wall = (st_wall){ST_WALL_NONE, ST_WALL_NONE};
    c->put.may = may_edit;
    if (!st_control_named(api->control, ST_BOOKING_ID, c->put.name, &c->put.id))
        c->put.id = 0; /* which none has */
    return c;
}

static void change_post(change *c)
{
    c->put.cmd.done = changed;
    st_call_defer(c->call);
    st_api_post(c->api, c->call, &c->put.cmd);
}

void st_api_booking_confirm(st_call *call, void *ctx)
{
    change *c = change_new(call, ctx);

    st_cmd_booking_confirm(&c->put);
    change_post(c);
}

void st_api_booking_cancel(st_call *call, void *ctx)
{
    change *c = change_new(call, ctx);

    c->put.series = st_call_query_bool(call, "series", false);
    c->put.dry_run = st_call_query_bool(call, "dry_run", false);
    st_cmd_booking_cancel(&c->put);
    change_post(c);
}

typedef struct change_fields {
    const char *from, *to, *zone;
    int tasks;
} change_fields;

static const st_field change_rows[] = {
    {.key = "from", .kind = ST_F_LINE, .offset = offsetof(change_fields, from)},
    {.key = "to", .kind = ST_F_LINE, .offset = offsetof(change_fields, to)},
    {.key = "zone", .kind = ST_F_LINE, .offset = offsetof(change_fields, zone)},
    {.key = "tasks",
     .kind = ST_F_INT,
     .offset = offsetof(change_fields, tasks),
     .lo = 1,
     .hi = ST_TASKS_MAX},
    {0},
};

static int read_change(change *c, st_err *err)
{
    change_fields f = {.zone = "UTC"};
    int64_t now = c->api->options.clock(c->api->options.ctx);
    const st_tz *tz = NULL;
    int r = st_call_doc(c->call, &c->doc, err);

    if (r == 0)
        r = st_doc_expect(c->doc, st_doc_root(c->doc), ST_DOC_MAP, err);
    if (r == 0)
        r = st_fields_read(c->doc, st_doc_root(c->doc), change_rows, &f, err);
    if (r == 0 && !f.from && !f.to && f.tasks == 0)
        r = st_fail(err, ST_EINVAL, "nothing is to be changed: give from, to or tasks");
    if (r == 0)
        r = st_zones_get(c->api->zones, f.zone, &tz, err);
    if (r == 0 && f.from)
        r = st_when_parse(f.from, tz, now, &c->put.from_ms, err);
    if (r == 0 && f.to)
        r = st_when_parse(f.to, tz, now, &c->put.to_ms, err);
    if (r == 0 && f.from && f.to && c->put.to_ms <= c->put.from_ms)
        r = st_fail(err, ST_EINVAL, "the end is not after the start");
    c->put.tasks = f.tasks;
    if (r < 0)
        return r;
    c->put.zone = st_tz_name(tz);
    if (f.from)
        st_when_on_clock(f.from, tz, now, &c->put.wall.from_s);
    if (f.to)
        st_when_on_clock(f.to, tz, now, &c->put.wall.to_s);
    return 0;
}

void st_api_booking_change(st_call *call, void *ctx)
{
    change *c = change_new(call, ctx);
    st_err err = {0};

    st_cmd_booking_change(&c->put);
    if (read_change(c, &err) == 0) {
        change_post(c);
        return;
    }
    st_call_fail(call, &err);
    st_doc_free(c->doc);
    free(c);
}
