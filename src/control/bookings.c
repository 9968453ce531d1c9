/*
 * Making, confirming, changing and cancelling bookings (control/bookings.h).
 *
 * 1. The number of a booking is given out once: the last one is in the store.
 * 2. Whoever may not see a booking is told what is told of one that was never there.
 */
#include "control/bookings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/quote.h"
#include "billing/billing.h"
#include "billing/money.h"
#include "control/state.h"
#include "model/labels.h"

/* ---- records -------------------------------------------------------------------------------- */

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

static void set_window(json_t *doc, int64_t from_ms, int64_t to_ms)
{
    json_object_set_new(doc, "from", json_integer(from_ms));
    json_object_set_new(doc, "to", json_integer(to_ms));
}

/* As it was written, for when the zone's data change. */
static void set_wall(json_t *doc, const st_wall *wall)
{
    json_t *said = json_object();

    if (wall->from_s != ST_WALL_NONE)
        json_object_set_new(said, "from", json_integer(wall->from_s));
    if (wall->to_s != ST_WALL_NONE)
        json_object_set_new(said, "to", json_integer(wall->to_s));
    json_object_set_new(doc, "wall", said);
}

bool st_booking_wall(const json_t *doc, st_wall *ret)
{
    const json_t *said = json_object_get(doc, "wall"), *from = json_object_get(said, "from"),
                 *to = json_object_get(said, "to");

    ret->from_s = json_is_integer(from) ? json_integer_value(from) : ST_WALL_NONE;
    ret->to_s = json_is_integer(to) ? json_integer_value(to) : ST_WALL_NONE;
    return ret->from_s != ST_WALL_NONE;
}

int st_booking_put(st_tx *tx, uint64_t id, json_t *doc, st_err *err)
{
    char name[ST_ID_TEXT];

    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    json_object_set_new(doc, "version", json_integer(st_version_next(tx)));
    json_object_set_new(doc, "changed", json_integer(tx->now));
    return st_document_write(tx, ST_BOOKING_KIND, name, json_incref(doc), err);
}

json_t *st_booking_record(const st_tx *tx, uint64_t id, int *ret_r, st_err *err)
{
    char name[ST_ID_TEXT];

    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    return st_document_json(tx->ctl->store, ST_BOOKING_KIND, name, ret_r, err);
}

static json_t *labels_json(const char *labels)
{
    char name[ST_LABEL_MAX + 1], value[ST_LABEL_MAX + 1];
    json_t *map = json_object();
    size_t at = 0;

    while (st_labels_next(labels, &at, name, value))
        json_object_set_new(map, name, json_string(value));
    return map;
}

void st_booking_put_parts(json_t *doc, st_board board, const st_parts *parts)
{
    char share[ST_FMT_MAX];

    if (parts->level == ST_LEVEL_WHOLE)
        return;
    json_object_set_new(doc, "level", json_string(st_level_name(parts->level)));
    if (parts->level == ST_LEVEL_MIG) {
        json_object_set_new(doc, "profile", json_string(st_mig_name(board, parts->profile)));
    } else {
        st_fmt_milli(share, parts->share_m);
        json_object_set_new(doc, "share", json_string(share));
    }
    json_object_set_new(doc, "parts", json_integer(parts->n));
}

static int put_new(st_tx *tx, const st_cmd_book *c, size_t i, uint64_t series, st_err *err)
{
    const st_fleet *fleet = st_core_fleet(tx->ctl->core);
    const st_tree *tree = st_core_tree(tx->ctl->core);
    const st_booking_spec *s = &c->spec;
    int64_t serial = st_tree_account(tree, st_tree_find(tree, s->account))->serial;
    json_t *doc = json_pack(
        "{s:I,s:I,s:s,s:I,s:s,s:s,s:s,s:i,s:i,s:s,s:b,s:s,s:s,s:I}", "id", (json_int_t)(c->id + i),
        "series", (json_int_t)series, "account", s->account, "serial", (json_int_t)serial, "user",
        s->user, "name", s->name, "type", fleet->types.v[s->type].name, "tasks", s->tasks, "gpus",
        s->gpus, "topology", st_topo_name(s->topo), "topology_required", s->topo_required, "zone",
        c->zone, "tzdata", c->tzdata, "made", (json_int_t)tx->now);
    char name[ST_ID_TEXT];
    int r;

    json_object_set_new(doc, "pool",
                        s->pool >= 0 ? json_string(fleet->pools.v[s->pool].name) : json_null());
    json_object_set_new(doc, "no_show_ms",
                        json_integer(s->no_show_ms == ST_TIME_NEVER ? -1 : s->no_show_ms));
    json_object_set_new(doc, "state", json_string(c->confirm ? "confirmed" : "quoted"));
    if (c->repeat)
        json_object_set_new(doc, "repeat", json_loads(c->repeat, 0, NULL));
    if (c->walls)
        set_wall(doc, &c->walls[i]);
    if (s->require && s->require[0])
        json_object_set_new(doc, "require", labels_json(s->require));
    if (s->dedicated)
        json_object_set_new(doc, "dedicated", json_true());
    st_booking_put_parts(doc, fleet->types.v[s->type].board, &s->parts);
    if (c->image)
        json_object_set_new(doc, "image", json_string(c->image));
    set_window(doc, c->windows[i].from_ms, c->windows[i].to_ms);
    r = st_booking_put(tx, c->id + i, doc, err);
    json_decref(doc);
    st_control_name(tx->ctl, ST_BOOKING_ID, c->id + i, name);
    return r < 0 ? r : st_booking_index_put(tx, s->account, name, err);
}

static int note_last(st_tx *tx, uint64_t last, st_err *err)
{
    char text[32];

    tx->ctl->last_booking = last;
    snprintf(text, sizeof text, "%" PRIu64, last);
    return st_tx_fault(tx, st_store_meta_put(tx->ctl->store, ST_LAST_BOOKING, text, err), err);
}

int st_booking_kept(st_tx *tx, uint64_t id, const char *user, st_err *err)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);
    const st_tree *tree = st_core_tree(tx->ctl->core);
    st_window window = {0};
    st_cmd_book c = {.windows = &window, .n = 1, .confirm = true, .zone = "UTC", .tzdata = ""};
    int r = note_last(tx, id, err);

    if (r < 0 || !b)
        return r;
    window = (st_window){b->from_ms, b->to_ms};
    c.id = id;
    c.spec = (st_booking_spec){.id = id,
                               .name = b->name,
                               .account = st_tree_account(tree, b->account)->name,
                               .user = user,
                               .pool = b->pool,
                               .type = b->type,
                               .tasks = b->tasks,
                               .gpus = b->gpus,
                               .topo = b->topo,
                               .topo_required = b->topo_required,
                               .no_show_ms = b->no_show_ms};
    return put_new(tx, &c, 0, 0, err);
}

/* What is kept for a deadline has lost its place, or found another. */
static void follow_kept(st_tx *tx, const st_effect *fx)
{
    const st_booking *b = st_core_booking(tx->ctl->core, fx->other);
    st_live *live = b && b->job ? st_control_live(tx->ctl, b->job) : NULL;
    bool at_risk = fx->value & ST_BOOKING_DEGRADED;

    if (!live || live->at_risk == at_risk)
        return;
    st_live_deadline(live, live->by_ms, live->hard, at_risk);
    st_control_touch(tx->ctl, live);
}

int st_booking_follow(st_tx *tx, const st_effect *fx, st_err *err)
{
    st_booking_state state = (st_booking_state)(fx->booking_state % ST_BOOKING_DEGRADED);
    char name[ST_ID_TEXT];
    json_t *doc;
    int r;

    if (state < ST_BOOKING_ENDED) { /* the core knows */
        follow_kept(tx, fx);
        return 0;
    }
    doc = st_booking_record(tx, fx->other, &r, err);
    if (!doc)
        return st_tx_fault(tx, r, err);
    st_control_name(tx->ctl, ST_BOOKING_ID, fx->other, name);
    if (strcmp(text(doc, "state"), "quoted") == 0) {
        r = st_document_erase(tx, ST_BOOKING_KIND, name, err);
        if (r == 0)
            r = st_booking_index_erase(tx, text(doc, "account"), name, err);
    } else {
        json_object_set_new(doc, "state", json_string(st_booking_state_name(state)));
        json_object_set_new(doc, "ended", json_integer(fx->at_ms));
        r = st_booking_put(tx, fx->other, doc, err);
    }
    json_decref(doc);
    return r;
}

int st_booking_admit(const st_tx *tx, const st_job_spec *spec, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    const st_booking *b = st_core_booking(tx->ctl->core, spec->booking);
    int32_t account = st_tree_find(tree, spec->account);
    char name[ST_ID_TEXT];

    if (b && account >= 0 && st_tree_within(tree, account, b->account))
        return 0;
    if (spec->booking >> 40 != 0)
        return st_fail(err, ST_ENOENT, "there is no such booking, or it is over");
    st_control_name(tx->ctl, ST_BOOKING_ID, spec->booking, name);
    return st_fail(err, ST_ENOENT, "there is no booking %s, or it is over", name);
}

int st_bookings_load(st_control *ctl, st_err *err)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    const char *last = NULL;
    int r = st_store_meta_get(ctl->store, ST_LAST_BOOKING, arena, &last, err);

    ctl->last_booking = r == 0 ? strtoull(last, NULL, 10) : 0;
    return r == -ST_ENOENT ? 0 : r == 0 ? st_prepare_load(ctl, err) : r;
}

/* ---- making --------------------------------------------------------------------------------- */

/* What is ahead is looked at in every pass: nobody fills it. */
static int check_room(const st_tx *tx, const st_cmd_book *c, st_err *err)
{
    const st_core *core = tx->ctl->core;
    const st_tree *tree = st_core_tree(core);
    int32_t org = st_organisation(tree, st_tree_find(tree, c->spec.account));
    size_t n = c->n;

    for (size_t i = 0; i < st_core_nbookings(core); i++)
        n += st_organisation(tree, st_core_booking_at(core, i)->account) == org;
    if (n > ST_BOOKINGS_ORG)
        return st_fail(err, ST_ELIMIT,
                       "your organisation would have %zu bookings ahead; it may have %d", n,
                       ST_BOOKINGS_ORG);
    return 0;
}

static int audit(st_tx *tx, const st_identity *who, const char *verb, const char *account,
                 uint64_t id, const char *detail, st_err *err)
{
    char name[ST_ID_TEXT];

    st_control_name(tx->ctl, ST_BOOKING_ID, id, name);
    return st_tx_audit(tx, who, verb, account, name, detail, err);
}

void st_windows_now(st_window *windows, size_t n, int64_t now_ms)
{
    for (size_t i = 0; i < n; i++)
        if (windows[i].from_ms < now_ms && windows[i].from_ms >= now_ms - ST_BOOKING_LATE_MS &&
            windows[i].to_ms > now_ms)
            windows[i].from_ms = now_ms;
}

static int run_book(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_book *c = (st_cmd_book *)cmd;
    st_control *ctl = tx->ctl;
    st_event event = {.kind = ST_EV_BOOK};
    uint64_t series = c->n > 1 ? ctl->last_booking + 1 : 0;
    char last[32], detail[64];
    int r = st_tx_within(tx, c->spec.account, c->who.account) ? st_tx_open(tx, err)
                                                              : st_no_account(c->spec.account, err);

    if (r == 0)
        r = check_room(tx, c, err);
    st_windows_now(c->windows, c->n, tx->now);
    if (r == 0)
        r = st_money_may_book(tx, &c->spec, c->windows, c->n, c->who.account, err);
    event.u.book.spec = c->spec;
    event.u.book.spec.id = ctl->last_booking + 1;
    event.u.book.spec.series = series;
    event.u.book.windows = c->windows;
    event.u.book.nwindows = (int)c->n;
    event.u.book.hold_ms = ST_BOOKING_HOLD_MS;
    event.u.book.confirm = c->confirm;
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    c->id = ctl->last_booking + 1;
    c->held_ms = st_core_booking(ctl->core, c->id)->hold_ms;
    ctl->last_booking += c->n;
    snprintf(last, sizeof last, "%" PRIu64, ctl->last_booking);
    r = st_tx_fault(tx, st_store_meta_put(ctl->store, ST_LAST_BOOKING, last, err), err);
    for (size_t i = 0; r == 0 && i < c->n; i++)
        r = put_new(tx, c, i, series, err);
    for (size_t i = 0; c->image && i < c->n; i++)
        st_vec_push(&ctl->imaged, c->id + i);
    for (size_t i = 0; r == 0 && c->confirm && i < c->n; i++)
        r = st_money_booked(tx, c->id + i, err);
    snprintf(detail, sizeof detail, "{\"windows\":%zu}", c->n);
    return r < 0 ? r
                 : audit(tx, &c->who, c->confirm ? "booking.create" : "booking.quote",
                         c->spec.account, c->id, detail, err);
}

void st_cmd_book_init(st_cmd_book *cmd)
{
    cmd->cmd.run = run_book;
}

/* ---- what is there -------------------------------------------------------------------------- */

static int none(const st_cmd_booking *c, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_ENOENT, "there is no booking %s", st_quote(q, c->name));
}

/* The record, if `who` may change the booking. Members change their own. */
static int find(st_tx *tx, st_cmd_booking *c, st_err *err)
{
    const st_tree *tree = st_core_tree(tx->ctl->core);
    int r = st_tx_open(tx, err);
    int32_t account;

    json_decref(c->record);
    c->record = r == 0 ? st_booking_record(tx, c->id, &r, err) : NULL;
    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (!c->record)
        return none(c, err);
    account = st_tree_find(tree, text(c->record, "account"));
    if (account < 0 ||
        st_tree_account(tree, account)->serial !=
            json_integer_value(json_object_get(c->record, "serial")) ||
        !st_tx_within(tx, text(c->record, "account"), c->who.account))
        return none(c, err);
    if (c->who.role == ST_ROLE_MEMBER && (strcmp(text(c->record, "user"), c->who.user) != 0 ||
                                          strcmp(text(c->record, "account"), c->who.account) != 0))
        return st_fail(err, ST_EPERM, "booking %s is not yours; ask an admin of %s", c->name,
                       text(c->record, "account"));
    if (c->may)
        r = c->may(c, json_integer_value(json_object_get(c->record, "version")), err);
    if (r == 0 && !st_core_booking(tx->ctl->core, c->id))
        r = st_fail(err, ST_ESTATE, "booking %s is over (%s)", c->name, text(c->record, "state"));
    return r;
}

/* The records of a series' bookings that the core still has, or of the one. The command's own is the one it is answered
 * with. */
static int put_state(st_tx *tx, st_cmd_booking *c, const char *state, st_err *err)
{
    uint64_t series = (uint64_t)json_integer_value(json_object_get(c->record, "series"));
    int r = 0;

    for (size_t i = 0; r == 0 && i < st_core_nbookings(tx->ctl->core); i++) {
        const st_booking *b = st_core_booking_at(tx->ctl->core, i);
        json_t *doc;

        if (b->id != c->id && (series == 0 || b->series != series))
            continue;
        doc = st_booking_record(tx, b->id, &r, err);
        if (!doc)
            continue;
        json_object_set_new(doc, "state", json_string(state));
        r = st_booking_put(tx, b->id, doc, err);
        if (b->id == c->id) {
            json_decref(c->record);
            c->record = json_incref(doc);
        }
        json_decref(doc);
        if (r == 0)
            r = st_money_booked(tx, b->id, err);
    }
    return r;
}

/* Caps may have less room than when it was quoted. */
static int may_confirm(st_tx *tx, const st_cmd_booking *c, st_err *err)
{
    uint64_t series = (uint64_t)json_integer_value(json_object_get(c->record, "series"));
    const st_booking *b = st_core_booking(tx->ctl->core, c->id);
    st_booking_spec spec = {
        .account = text(c->record, "account"), .type = b->type, .tasks = b->tasks, .gpus = b->gpus};
    ST_VEC(st_window) windows = {0};
    int r;

    for (size_t i = 0; i < st_core_nbookings(tx->ctl->core); i++) {
        const st_booking *one = st_core_booking_at(tx->ctl->core, i);

        if (one->id == c->id || (series != 0 && one->series == series))
            st_vec_push(&windows, ((st_window){one->from_ms, one->to_ms}));
    }
    r = st_money_may_book(tx, &spec, windows.v, windows.n, c->who.account, err);
    st_vec_free(&windows);
    return r;
}

static void note_price(st_tx *tx, st_cmd_booking *c)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf reason = {0};

    c->ready =
        st_booking_ready(tx->ctl->core, st_core_booking(tx->ctl->core, c->id), c->record, &reason);
    snprintf(c->reason, sizeof c->reason, "%s", st_strbuf_str(&reason));
    c->priced = c->due = st_tx_agreed_price(tx, c->id, &c->price);
    c->fee = c->priced ? c->price.fee : 0;
}

static int run_confirm(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_booking *c = (st_cmd_booking *)cmd;
    st_event event = {.kind = ST_EV_BOOK_CONFIRM};
    int r = find(tx, c, err);

    if (r < 0)
        return r;
    if (st_core_booking(tx->ctl->core, c->id)->state != ST_BOOKING_QUOTED)
        return st_fail(err, ST_ESTATE, "booking %s was confirmed before", c->name);
    r = may_confirm(tx, c, err);
    if (r < 0)
        return r;
    event.u.booking.id = c->id;
    event.u.booking.series = json_integer_value(json_object_get(c->record, "series")) != 0;
    if (event.u.booking.series)
        event.u.booking.id = (uint64_t)json_integer_value(json_object_get(c->record, "series"));
    r = st_tx_apply(tx, &event, err);
    if (r == 0)
        r = put_state(tx, c, "confirmed", err);
    note_price(tx, c);
    if (r == 0)
        r = audit(tx, &c->who, "booking.confirm", text(c->record, "account"), c->id, NULL, err);
    return r;
}

/* What is due for all that is cancelled now. */
static void note_due(st_tx *tx, st_cmd_booking *c, uint64_t series)
{
    st_agreed_price price;

    note_price(tx, c);
    for (size_t i = 0; c->series && i < st_core_nbookings(tx->ctl->core); i++) {
        const st_booking *b = st_core_booking_at(tx->ctl->core, i);

        if (b->series != series || b->id == c->id || !st_tx_agreed_price(tx, b->id, &price))
            continue;
        c->due = true;
        c->fee = ST_MIN(c->fee + price.fee, ST_AMOUNT_MAX);
    }
}

static int run_cancel(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_booking *c = (st_cmd_booking *)cmd;
    st_event event = {.kind = ST_EV_BOOK_CANCEL};
    uint64_t series;
    int r = find(tx, c, err);

    if (r < 0)
        return r;
    if (st_core_booking(tx->ctl->core, c->id)->job)
        return st_fail(err, ST_ESTATE,
                       "booking %s is kept for the deadline of a job and goes with it; cancel the "
                       "job",
                       c->name);
    series = (uint64_t)json_integer_value(json_object_get(c->record, "series"));
    if (c->series && series == 0)
        return st_fail(err, ST_EINVAL, "booking %s is not of a series", c->name);
    note_due(tx, c, series);
    if (c->dry_run)
        return 0;
    c->priced = false; /* nothing is agreed any more */
    c->ready = NULL;
    event.u.booking.id = c->series ? series : c->id;
    event.u.booking.series = c->series;
    r = st_tx_apply(tx, &event, err);
    if (r == 0)
        r = audit(tx, &c->who, "booking.cancel", text(c->record, "account"), c->id,
                  c->series ? "{\"series\":true}" : NULL, err);
    json_object_set_new(c->record, "state", json_string("cancelled")); /* as it will be kept */
    return r;
}

/* What its owner has changed last is what holds. Times of another zone than its own are instants. */
static void change_wall(json_t *doc, const st_cmd_booking *c)
{
    bool own = c->zone && strcmp(c->zone, text(doc, "zone")) == 0;
    st_wall wall;

    st_booking_wall(doc, &wall);
    if (c->from_ms != ST_TIME_NEVER)
        wall.from_s = own ? c->wall.from_s : ST_WALL_NONE;
    if (c->to_ms != ST_TIME_NEVER)
        wall.to_s = own ? c->wall.to_s : ST_WALL_NONE;
    set_wall(doc, &wall);
    if (c->from_ms != ST_TIME_NEVER || c->to_ms != ST_TIME_NEVER)
        json_object_del(doc, "zone_change");
}

static int run_change(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_booking *c = (st_cmd_booking *)cmd;
    st_event event = {.kind = ST_EV_BOOK_CHANGE};
    const st_booking *b;
    int r = find(tx, c, err);

    if (r < 0)
        return r;
    b = st_core_booking(tx->ctl->core, c->id);
    event.u.rebook.id = c->id;
    event.u.rebook.from_ms = c->from_ms == ST_TIME_NEVER ? b->from_ms : c->from_ms;
    event.u.rebook.to_ms = c->to_ms == ST_TIME_NEVER ? b->to_ms : c->to_ms;
    event.u.rebook.tasks = c->tasks > 0 ? c->tasks : b->tasks;
    if (c->tasks > 0 && b->parts.level != ST_LEVEL_WHOLE) {
        const st_gpu_type *type = &st_core_fleet(tx->ctl->core)->types.v[b->type];
        st_parts parts = b->parts;

        parts.n = event.u.rebook.parts = c->tasks;
        event.u.rebook.tasks = st_parts_gpus(type->board, &parts);
    }
    event.u.rebook.reader = c->who.account[0] ? c->who.account : NULL;
    /* Here and not in the core, which has to play what is in logs. */
    if (event.u.rebook.to_ms <= event.u.rebook.from_ms)
        return st_fail(err, ST_ERANGE, "booking %s: its end must be behind its beginning", c->name);
    r = st_money_may_rebook(tx, b, &(st_window){event.u.rebook.from_ms, event.u.rebook.to_ms},
                            event.u.rebook.tasks, c->who.account, err);
    if (r == 0)
        r = st_tx_apply(tx, &event, err);
    if (r < 0)
        return r;
    note_price(tx, c);
    set_window(c->record, event.u.rebook.from_ms, event.u.rebook.to_ms);
    change_wall(c->record, c);
    json_object_set_new(c->record, "tasks", json_integer(event.u.rebook.tasks));
    if (event.u.rebook.parts > 0)
        json_object_set_new(c->record, "parts", json_integer(event.u.rebook.parts));
    r = st_booking_put(tx, c->id, c->record, err);
    return r < 0
               ? r
               : audit(tx, &c->who, "booking.change", text(c->record, "account"), c->id, NULL, err);
}

void st_cmd_booking_confirm(st_cmd_booking *cmd)
{
    cmd->cmd.run = run_confirm;
}

void st_cmd_booking_cancel(st_cmd_booking *cmd)
{
    cmd->cmd.run = run_cancel;
}

void st_cmd_booking_change(st_cmd_booking *cmd)
{
    cmd->cmd.run = run_change;
}
