/*
 * Deliveries of notices, brought out by a thread of its own (control/notices.h has what they are, courier/courier.h one attempt).
 *
 * Those of one notice go out in order, one at a time: while its receiver does not take one, the others behind it wait. The next attempt
 * comes after a pause that doubles, up to an hour; after `keep_ms` a delivery is given up. Organisations take turns and have at most
 * eight attempts at a time, an account two, so whoever has a thousand notices for a receiver that never answers holds up nobody else's.
 * What came of an attempt goes to the control loop, many in one command, and is never waited for.
 */
#ifndef ST_STINTD_DELIVER_H
#define ST_STINTD_DELIVER_H

#include "control/notices.h"
#include "courier/courier.h"

typedef struct st_deliverer st_deliverer;

typedef struct st_deliver_options {
    st_control *control;
    const st_courier *courier;
    int64_t retry_ms; /* the first pause */
    int64_t keep_ms;  /* after which one is given up */
} st_deliver_options;

st_deliverer *st_deliverer_new(const st_deliver_options *options);
/* Begins with what the store has. */
int st_deliverer_start(st_deliverer *d, st_err *err);
/* While the control loop runs; what is handed over afterwards is left to the next start. */
void st_deliverer_stop(st_deliverer *d);
void st_deliverer_free(st_deliverer *d);
/* From the loop's thread. Copies. */
void st_deliverer_take(st_deliverer *d, const st_outgoing *o);

#endif
