/*
 * Bookings as commands, and what is kept of them.
 *
 * The core decides and knows those that are not over. Beside it every booking has a record: who made it, in which zone
 * and series it was written, and, when it is over, how it ended. A quote that nobody confirmed leaves none.
 */
#ifndef ST_CONTROL_BOOKINGS_H
#define ST_CONTROL_BOOKINGS_H

#include <jansson.h>

#include "calendar/recur.h"
#include "control/control.h"
#include "ledger/ledger.h"
#include "zones/zones.h"

#define ST_BOOKING_KIND "booking" /* of the records */
/* An organisation's, by name: kind ST_BOOKING_OF and its number, documents without content. Stores in which they are whole
 * have 1 as ST_BOOKINGS_INDEXED in their meta. */
#define ST_BOOKING_OF       "booking-of %d"
#define ST_BOOKING_OF_MAX   32
#define ST_BOOKINGS_INDEXED "bookings_indexed"
#define ST_LAST_BOOKING     "last_booking" /* meta: the last number that was given out */
#define ST_BOOKING_HOLD_MS  (INT64_C(10) * 60 * 1000)
#define ST_BOOKING_SAID     640                       /* a sentence about one */
#define ST_PREPARE_MS       (INT64_C(30) * 60 * 1000) /* before its start an image is prepared */
#define ST_BOOKINGS_ORG     2000                      /* that an organisation may have ahead */

/* One window, or a series: all of it or nothing. */
typedef struct st_cmd_book {
    st_cmd cmd;
    st_identity who;
    st_booking_spec spec; /* without numbers */
    st_window *windows;
    const st_wall *walls; /* one of each window; NULL: they were written as instants */
    size_t n;
    bool confirm;              /* at once; else it is held as a quote */
    const char *image;         /* its nodes are to have it when it begins; NULL: none */
    const char *zone, *tzdata; /* in which it was written, and by which data */
    const char *repeat;        /* JSON; NULL: it does not repeat */
    uint64_t id;               /* given: the first one's */
    int64_t held_ms;           /* given: until when a quote is held, which may be short */
} st_cmd_book;

void st_cmd_book_init(st_cmd_book *cmd);

/* The record of what the core keeps for the deadline of a job, under the number it was given. */
int st_booking_kept(st_tx *tx, uint64_t id, const char *user, st_err *err);

/* A window that began while it was on its way begins now. */
#define ST_BOOKING_LATE_MS INT64_C(30000)
void st_windows_now(st_window *windows, size_t n, int64_t now_ms);

/* What is done to a booking that is there. */
typedef struct st_cmd_booking {
    st_cmd cmd;
    st_identity who;
    uint64_t id;
    const char *name;       /* as it was asked for */
    bool series;            /* all that is left of its series */
    int64_t from_ms, to_ms; /* of a change; ST_TIME_NEVER: as it was */
    st_wall wall;           /* of a change: as its times were written */
    const char *zone;       /* of a change: the zone they were written in; NULL: none */
    int tasks;              /* 0: as it was */
    bool dry_run;           /* of a cancellation: only what would be due */
    json_t *record;         /* given, as it is kept afterwards; the caller's */
    bool priced, due;       /* given: whether `price` and `fee` are there */
    st_agreed_price price;  /* given, as it is agreed afterwards */
    const char *ready;      /* given, with why it is not; NULL: it is over */
    char reason[ST_BOOKING_SAID];
    int64_t fee; /* given: for cancelling it now, or all that is cancelled with it */
    /* NULL, or whether the edit may be made of this version. */
    int (*may)(struct st_cmd_booking *cmd, int64_t version, st_err *err);
} st_cmd_booking;

/* What its GPUs are divided into, in the words of a submit: nothing, where they are whole. */
void st_booking_put_parts(json_t *doc, st_board board, const st_parts *parts);

/* How far the nodes of one that is not over are, and why they are not (booking_ready.c). */
const char *st_booking_ready(const st_core *core, const st_booking *b, const json_t *record,
                             st_strbuf *reason);

void st_cmd_booking_confirm(st_cmd_booking *cmd);
void st_cmd_booking_cancel(st_cmd_booking *cmd);
void st_cmd_booking_change(st_cmd_booking *cmd);

/* New zone data (control/zone_moves.c): every booking that was written by the clock and has not begun goes to when the
 * clock shows that time now. One that cannot go there stays where it was, which is told. */
typedef struct st_zone_move {
    uint64_t id;
    st_window was, to;
    char account[ST_NAME_MAX + 2];
    char said[ST_BOOKING_SAID]; /* for its owner; "": nothing is new */
    bool moved;
} st_zone_move;

typedef struct st_cmd_zones {
    st_cmd cmd;
    st_zones *zones;
    /* The loop's: bookings that are to be looked at, those that are to go, and how far it is with them. */
    ST_VEC(uint64_t) ids;
    ST_VEC(st_zone_move) moves;
    size_t at;
    int stage;
    size_t moved, stayed; /* given */
} st_cmd_zones;

void st_cmd_zones_init(st_cmd_zones *cmd);
void st_cmd_zones_done(st_cmd_zones *cmd);

#endif
