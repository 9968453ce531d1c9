/*
 * Server-sent events: bytes in, whole events out. Knows nothing of sockets.
 */
#ifndef ST_CLI_SSE_H
#define ST_CLI_SSE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define ST_SSE_LINE_MAX (1u << 20)

typedef struct st_sse_event {
    char *id, *kind, *data; /* never NULL */
} st_sse_event;

typedef struct st_sse {
    st_strbuf line, data, id, kind;
    bool after_cr, has_data;
    ST_VEC(st_sse_event) ready; /* in order of arrival */
} st_sse;

void st_sse_done(st_sse *sse);
void st_sse_event_done(st_sse_event *ev);

/* Fails when a line or an event grows without bound. */
int st_sse_feed(st_sse *sse, const char *bytes, size_t n, st_err *err);

/* The oldest event that is whole; the caller owns it. */
bool st_sse_take(st_sse *sse, st_sse_event *ret);

#endif
