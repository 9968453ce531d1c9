/*
 * New zone data (control/bookings.h).
 *
 * 1. A move is a change of the booking as its owner could make it: an event in the log that the core may refuse.
 * 2. What is refused leaves the booking as it was.
 * 3. A move costs nothing: where a fee or a higher price would be due, the owner decides.
 * 4. Windows that all go later are taken from the last one on, those that go earlier from the first: a series whose windows
 *    follow on each other does not stand in its own way. What was refused is tried once more behind all others.
 */
#include <stdlib.h>
#include <string.h>

#include "billing/billing.h"
#include "calendar/calendar.h"
#include "control/bookings.h"
#include "control/state.h"

#define PART 32 /* of a turn */

enum { LIST, LOOK, MOVE, AGAIN };

static const char *text(const json_t *doc, const char *key)
{
    const char *s = json_string_value(json_object_get(doc, key));

    return s ? s : "";
}

/* One that the clock decides about, and that has not begun. */
static const st_booking *ahead(const st_tx *tx, uint64_t id)
{
    const st_booking *b = st_core_booking(tx->ctl->core, id);

    return b && !b->over && !b->job && b->state == ST_BOOKING_CONFIRMED && b->from_ms > tx->now
               ? b
               : NULL;
}

static void list(const st_tx *tx, st_cmd_zones *c)
{
    for (size_t i = 0; i < st_core_nbookings(tx->ctl->core); i++) {
        uint64_t id = st_core_booking_at(tx->ctl->core, i)->id;

        if (ahead(tx, id))
            st_vec_push(&c->ids, id);
    }
}

/* Where the zone's data have it now. */
static int look(st_tx *tx, st_cmd_zones *c, uint64_t id, st_err *err)
{
    const st_booking *b = ahead(tx, id);
    st_zone_move move = {.id = id};
    const st_tz *tz;
    st_wall wall;
    st_err ignored;
    int r = 0;
    json_t *doc = b ? st_booking_record(tx, id, &r, err) : NULL;

    if (r < 0)
        return st_tx_fault(tx, r, err);
    if (doc && st_booking_wall(doc, &wall) &&
        st_zones_get(c->zones, text(doc, "zone"), &tz, &ignored) == 0) {
        move.was = move.to = (st_window){b->from_ms, b->to_ms};
        st_wall_resolve(&wall, tz, &move.to.from_ms, &move.to.to_ms);
        if (move.to.from_ms != b->from_ms || move.to.to_ms != b->to_ms)
            st_vec_push(&c->moves, move);
    }
    json_decref(doc);
    return 0;
}

/* Rule 4. */
static int in_order(const void *x, const void *y)
{
    const st_zone_move *a = x, *b = y;
    bool later = a->to.from_ms > a->was.from_ms;
    int64_t d = a->was.from_ms - b->was.from_ms;

    if (later != (b->to.from_ms > b->was.from_ms))
        return later ? -1 : 1;
    if (d == 0)
        return a->id < b->id ? -1 : a->id > b->id;
    return (d < 0) == later ? 1 : -1;
}

/* ---- one ------------------------------------------------------------------------------------ */

static int try_it(st_tx *tx, const st_booking *b, const st_zone_move *m, const char *account,
                  st_err *err)
{
    st_event event = {.kind = ST_EV_BOOK_CHANGE,
                      .u.rebook = {.id = b->id,
                                   .from_ms = m->to.from_ms,
                                   .to_ms = m->to.to_ms,
                                   .tasks = b->tasks,
                                   .reader = account}};
    int r = 0;

    if (b->open)
        return st_fail(err, ST_ESTATE, "it is about to begin");
    if (!st_money_moves_free(tx, b, &m->to))
        return st_fail(err, ST_EBUDGET, "to move it would cost something");
    r = st_money_may_rebook(tx, b, &m->to, b->tasks, account, err);
    return r < 0 ? r : st_tx_apply(tx, &event, err);
}

static void say(const st_tx *tx, st_cmd_zones *c, st_zone_move *m, const json_t *doc,
                const st_err *why)
{
    char old[ST_WHEN_MAX], now[ST_WHEN_MAX], name[ST_ID_TEXT];
    const st_tz *tz = NULL;
    st_err ignored;

    if (st_zones_get(c->zones, text(doc, "zone"), &tz, &ignored) < 0)
        return;
    st_control_name(tx->ctl, ST_BOOKING_ID, m->id, name);
    st_when_rfc3339(old, tz, m->was.from_ms);
    st_when_rfc3339(now, tz, m->to.from_ms);
    snprintf(m->account, sizeof m->account, "%s", text(doc, "account"));
    if (!why)
        snprintf(m->said, sizeof m->said,
                 "the clocks of %s have changed: it moved from %s to %s and keeps its local time",
                 text(doc, "zone"), old, now);
    else
        snprintf(m->said, sizeof m->said,
                 "the clocks of %s have changed: its local time is %s now, but it stays at %s, "
                 "because %.300s; to move it: stint book change %s --from %s",
                 text(doc, "zone"), now, old, why->msg, name, now);
}

static bool was_said(const json_t *doc, const st_zone_move *m)
{
    const json_t *c = json_object_get(doc, "zone_change");

    return c && !json_is_true(json_object_get(c, "moved")) &&
           json_integer_value(json_object_get(c, "from")) == m->to.from_ms &&
           json_integer_value(json_object_get(c, "to")) == m->to.to_ms;
}

static int keep(st_tx *tx, const st_cmd_zones *c, const st_zone_move *m, json_t *doc, st_err *err)
{
    const st_identity who = {.role = ST_ROLE_OWNER, .user = "stintd", .source = "tzdata"};
    const st_window *told = m->moved ? &m->was : &m->to;
    char tzdata[ST_ZONES_VERSION_MAX], name[ST_ID_TEXT];
    int r;

    st_zones_version(c->zones, tzdata);
    json_object_set_new(doc, "zone_change",
                        json_pack("{s:b,s:I,s:I,s:I,s:s,s:s}", "moved", m->moved, "from",
                                  (json_int_t)told->from_ms, "to", (json_int_t)told->to_ms, "at",
                                  (json_int_t)tx->now, "tzdata", tzdata, "text", m->said));
    if (m->moved) {
        json_object_set_new(doc, "from", json_integer(m->to.from_ms));
        json_object_set_new(doc, "to", json_integer(m->to.to_ms));
        json_object_set_new(doc, "tzdata", json_string(tzdata));
    }
    r = st_booking_put(tx, m->id, doc, err);
    st_control_name(tx->ctl, ST_BOOKING_ID, m->id, name);
    if (r == 0 && m->moved)
        r = st_tx_audit(tx, &who, "booking.change", m->account, name, NULL, err);
    return r;
}

static int move_one(st_tx *tx, st_cmd_zones *c, st_zone_move *m, bool last, st_err *err)
{
    const st_booking *b = m->moved ? NULL : ahead(tx, m->id);
    /* What its owner has changed in between is as the owner wants it. */
    bool same = b && b->from_ms == m->was.from_ms && b->to_ms == m->was.to_ms;
    st_err why = {0};
    int r = 0;
    json_t *doc = same ? st_booking_record(tx, m->id, &r, err) : NULL;

    if (!doc)
        return st_tx_fault(tx, r, err);
    m->moved = try_it(tx, b, m, text(doc, "account"), &why) == 0;
    c->moved += m->moved;
    c->stayed += !m->moved && last;
    if (m->moved || (last && !was_said(doc, m))) {
        say(tx, c, m, doc, m->moved ? NULL : &why);
        r = keep(tx, c, m, doc, err);
    }
    json_decref(doc);
    return r;
}

/* ---- all ------------------------------------------------------------------------------------ */

static void next_stage(st_cmd_zones *c)
{
    c->at = 0;
    c->stage++;
    if (c->stage == MOVE && c->moves.n > 0)
        qsort(c->moves.v, c->moves.n, sizeof *c->moves.v, in_order);
}

static int run(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_zones *c = (st_cmd_zones *)cmd;
    int r = st_tx_open(tx, err);

    if (r == 0 && c->stage == LIST) {
        list(tx, c);
        next_stage(c);
    }
    size_t n = c->stage == LOOK ? c->ids.n : c->moves.n;

    for (size_t end = ST_MIN(n, c->at + PART); r == 0 && c->at < end; c->at++)
        r = c->stage == LOOK ? look(tx, c, c->ids.v[c->at], err)
                             : move_one(tx, c, &c->moves.v[c->at], c->stage == AGAIN, err);
    if (r < 0 || (c->at == n && c->stage == AGAIN))
        return r;
    if (c->at == n)
        next_stage(c);
    return 1;
}

static void publish(st_control *ctl, st_cmd *cmd)
{
    const st_cmd_zones *c = (const st_cmd_zones *)cmd;
    const st_effect none = {.kind = ST_FX_BOOKING, .node = -1, .account = -1};

    if (c->moves.n > 0)
        st_control_say(ctl, "event=zones_changed moved=%zu stayed=%zu", c->moved, c->stayed);
    for (size_t i = 0; ctl->options.listen && i < c->moves.n; i++) {
        const st_zone_move *m = &c->moves.v[i];
        const st_booking *b = st_core_booking(ctl->core, m->id);

        if (!m->said[0] || !b)
            continue;
        const st_notice n = {.seq = ++ctl->notice_seq,
                             .at_ms = st_control_last_ms(ctl),
                             .booking = m->id,
                             .degraded = st_booking_degraded(b),
                             .account = m->account,
                             .kind = st_effect_name(ST_FX_BOOKING),
                             .name = m->account,
                             .state = st_booking_state_name(b->state),
                             .reason = m->said,
                             .fx = &none};
        ctl->options.listen(ctl->options.ctx, &n);
    }
}

void st_cmd_zones_init(st_cmd_zones *cmd)
{
    cmd->cmd.lane = ST_LANE_AGENTS;
    cmd->cmd.run = run;
    cmd->cmd.publish = publish;
}

void st_cmd_zones_done(st_cmd_zones *cmd)
{
    st_vec_free(&cmd->ids);
    st_vec_free(&cmd->moves);
}
