/*
 * Zones of a scenario: moments as a clock shows them, bookings by that clock, and clocks that change their rules.
 *
 *     start: 2027-03-27 00:00            what 0s is, in UTC
 *     zones: {berlin: "CET-1CEST,M3.5.0,M10.5.0/3"}
 *     timeline:
 *       - at: 2027-03-27 20:00
 *         zone: berlin
 *         do:
 *           - book: {booking: night, …, zone: berlin, from: 2027-03-27 22:00, for: 8h, repeat: {every: day, count: 3}}
 *           - clocks: {berlin: CET-1}
 *
 * A zone is a rule, as at the end of a file of the time zone database: a scenario reads no files, so it plays the same
 * everywhere. Where clocks change, each booking that was made in the zone and has not begun goes to where its clock time is
 * now, as in stintd (control/zone_moves.c).
 */
#include <string.h>

#include "base/quote.h"
#include "calendar/calendar.h"
#include "scenario/play.h"
#include "scenario/read.h"

int st_scn_read_zones(st_scenario *s, const st_doc_node *map, const st_doc_node *start, st_err *err)
{
    ST_CLEANUP(st_tz_freep) st_tz *utc = st_tz_utc();
    int r = map ? st_doc_expect(s->doc, map, ST_DOC_MAP, err) : 0;

    if (r == 0 && start)
        r = st_doc_expect(s->doc, start, ST_DOC_SCALAR, err);
    if (r == 0 && start) {
        st_err why = {0};

        if (st_when_parse(start->value, utc, 0, &s->start_ms, &why) < 0)
            r = st_doc_fail(s->doc, start, err, why.code, "%s", why.msg);
    }
    for (const st_doc_node *n = map ? map->child : NULL; r == 0 && n; n = n->next) {
        st_tz *tz = NULL;

        r = st_scn_read_clock(s, n, &tz, err);
        if (r == 0)
            st_vec_push(&s->zones, tz);
    }
    return r;
}

int st_scn_read_clock(const st_scenario *s, const st_doc_node *n, st_tz **ret, st_err *err)
{
    st_err why = {0};
    int r = st_doc_expect(s->doc, n, ST_DOC_SCALAR, err);

    if (r == 0 && st_tz_of_rule(n->key, n->value, ret, &why) < 0)
        r = st_doc_fail(s->doc, n, err, why.code, "%s", why.msg);
    return r;
}

int st_scn_find_zone(const st_scenario *s, const st_doc_node *at, const char *name, int *ret,
                     st_err *err)
{
    char q[ST_QUOTE_MAX];

    for (size_t i = 0; i < s->zones.n; i++)
        if (strcmp(st_tz_name(s->zones.v[i]), name) == 0) {
            *ret = (int)i;
            return 0;
        }
    return st_doc_fail(s->doc, at, err, ST_ENOENT, "there is no zone %s in zones",
                       st_quote(q, name));
}

int st_scn_read_moment(const st_scenario *s, const st_doc_node *node, const char *zone,
                       int64_t *ret_ms, st_err *err)
{
    st_err why = {0};
    int64_t at_ms;
    int z = 0, r = st_doc_expect(s->doc, node, ST_DOC_SCALAR, err);

    if (r == 0)
        r = st_scn_find_zone(s, node, zone, &z, err);
    if (r == 0 && st_when_parse(node->value, s->zones.v[z], s->start_ms, &at_ms, &why) < 0)
        r = st_doc_fail(s->doc, node, err, why.code, "%s", why.msg);
    if (r == 0 && at_ms < s->start_ms)
        r = st_doc_fail(s->doc, node, err, ST_ERANGE, "this is before the scenario's start");
    if (r == 0)
        *ret_ms = at_ms - s->start_ms;
    return r;
}

int st_scn_read_clocks(st_scenario *s, const st_doc_node *map, const st_scn_action *base,
                       st_err *err)
{
    int r = st_doc_expect(s->doc, map, ST_DOC_MAP, err);

    for (const st_doc_node *n = map->child; r == 0 && n; n = n->next) {
        st_scn_action action = *base;
        st_tz *tz = NULL;

        r = st_scn_find_zone(s, n, n->key, &action.zone, err);
        if (r == 0)
            r = st_scn_read_clock(s, n, &tz, err);
        if (r < 0)
            return r;
        st_vec_push(&s->clocks, tz);
        action.clock = tz;
        st_vec_push(&s->actions, action);
    }
    return r;
}

/* ---- playing ---------------------------------------------------------------------------- */

/* Whether it was there to move, and did. */
static bool move(st_play *play, const st_scn_book *book, int i, const st_tz *clock, bool later)
{
    const st_booking *b = st_core_booking(play->core, book->id + (uint64_t)i);
    st_event ev = {.kind = ST_EV_BOOK_CHANGE};
    st_window w;
    st_err why;

    if (!b || b->over || b->open || b->state != ST_BOOKING_CONFIRMED || b->from_ms <= play->now)
        return false;
    w = (st_window){b->from_ms + play->s->start_ms, b->to_ms + play->s->start_ms};
    st_wall_resolve(&book->walls[i], clock, &w.from_ms, &w.to_ms);
    w.from_ms -= play->s->start_ms;
    w.to_ms -= play->s->start_ms;
    if ((w.from_ms == b->from_ms && w.to_ms == b->to_ms) || (w.from_ms > b->from_ms) != later)
        return false;
    ev.u.rebook.id = b->id;
    ev.u.rebook.from_ms = w.from_ms;
    ev.u.rebook.to_ms = w.to_ms;
    ev.u.rebook.tasks = b->tasks;
    return st_play_apply(play, &ev, &why) == 0;
}

/* Those that go later from the last on, the others from the first; what had no room is tried once more. */
void st_play_clocks(st_play *play, const st_scn_action *a)
{
    for (int round = 0; round < 2; round++) {
        for (size_t k = play->s->actions.n; k-- > 0;) {
            const st_scn_book *book = play->s->actions.v[k].book;

            for (int i = book && book->walls && book->zone == a->zone ? book->n : 0; i-- > 0;)
                move(play, book, i, a->clock, true);
        }
        for (size_t k = 0; k < play->s->actions.n; k++) {
            const st_scn_book *book = play->s->actions.v[k].book;

            for (int i = 0; book && book->walls && book->zone == a->zone && i < book->n; i++)
                move(play, book, i, a->clock, false);
        }
    }
}
