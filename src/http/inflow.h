/*
 * Bodies that are handed on as they come, as fast as whoever reads them takes them (ST_ROUTE_FLOW).
 *
 * Invariants:
 *  1 ST_INFLOW_BYTES of a body are held at most: while they are, the client's connection is suspended.
 *  2 A client that is slower than ST_INFLOW_RATE, beyond the time that every body has, is cut. Time in which nobody takes what
 *    it has sent does not count.
 *  3 What nobody reads any more is dropped, so that the client gets to read its answer, which cannot be sent before: for
 *    ST_INFLOW_DROP bytes or ST_INFLOW_LAST_MS, and then it is cut.
 */
#ifndef ST_HTTP_INFLOW_H
#define ST_HTTP_INFLOW_H

#include "http/http.h"

#define ST_INFLOW_BYTES   65536
#define ST_INFLOW_RATE    16384 /* bytes a second */
#define ST_INFLOW_DROP    (1 << 20)
#define ST_INFLOW_LAST_MS 5000

typedef struct st_inflow st_inflow;

typedef enum st_inflow_state {
    ST_INFLOW_MORE,   /* more is to come */
    ST_INFLOW_ENDED,  /* that is all */
    ST_INFLOW_BROKEN, /* the client is gone, and all of it never comes */
} st_inflow_state;

/* The body of a call that is deferred, in the handler of a route with ST_ROUTE_FLOW; NULL: it has none. */
st_inflow *st_call_inflow(st_call *call);
/* `more` is called in a thread of the server when there is something to take, or the state is another; it must not call back. */
void st_inflow_to(st_inflow *in, void (*more)(void *ctx), void *ctx);
/* How many bytes it has; -1: that is not said. */
int64_t st_inflow_length(const st_inflow *in);
/* Up to max bytes, and what comes behind them. */
size_t st_inflow_take(st_inflow *in, char *buf, size_t max, st_inflow_state *ret);
/* Now and then: whether a client that is held up is still there. */
bool st_inflow_check(st_inflow *in);
/* No more of it is wanted. Must come; `more` is not called afterwards. */
void st_inflow_close(st_inflow *in);

/* ---- for call.c -------------------------------------------------------------------------- */

typedef enum st_inflow_put_how {
    ST_INFLOW_TAKEN,
    ST_INFLOW_FULL,    /* the connection is suspended, and the rest comes again */
    ST_INFLOW_DROPPED, /* nobody wants it */
    ST_INFLOW_CUT,     /* nor so much of it */
} st_inflow_put_how;

/* *ret_n: how many of these it took. */
st_inflow_put_how st_inflow_put(st_inflow *in, const char *bytes, size_t n, size_t *ret_n);
void st_inflow_end(st_inflow *in, st_inflow_state how);
void st_inflow_unref(st_inflow *in);

#endif
