/*
 * Bookings on their way in and out. Private to src/api.
 */
#ifndef ST_API_BOOKINGS_H
#define ST_API_BOOKINGS_H

#include <jansson.h>

#include "api/ask.h"
#include "calendar/tz.h"
#include "control/bookings.h"

/* What was agreed about it, and what is or would be due for cancelling it; and how far its nodes are, where no core is
 * asked. NULL: nothing. */
typedef struct st_booking_money {
    const st_agreed_price *price;
    const int64_t *fee;
    const char *ready, *reason;
} st_booking_money;

/* A record as everybody sees it who may. `core` is NULL, or where its state is looked up; `as` is NULL, or the zone its
 * times are shown in instead of its own. */
void st_booking_json(st_api *api, const st_core *core, const json_t *record, const st_tz *as,
                     const st_booking_money *money, st_strbuf *out);

/* What its GPUs are divided into; null: they are whole. `b` is NULL for one that is over, or is no more than asked for. */
void st_booking_out_parts(const st_booking *b, const json_t *record, st_strbuf *out);

/* Records of an account and those below it, from the store: those that end after from_ms and begin before to_ms, in order
 * of their starts. `names` are those that are looked at, NULL all. */
typedef struct st_booking_name {
    char text[ST_ID_TEXT];
} st_booking_name;
typedef ST_VEC(st_booking_name) st_booking_names;
int st_booking_records(st_api *api, const char *account, const st_booking_names *names,
                       int64_t from_ms, int64_t to_ms, json_t *ret, st_err *err);

#endif
