/*
 * The answer of an HTTP/1 server that nobody trusts, read as it comes: its head, and its body without the framing.
 *
 * What two readers could take for two things is refused: a length said twice, a length beside chunks, folded lines, names
 * with odd characters, bytes that are no text in a head. Everything is bounded.
 */
#ifndef ST_HTTP_UPSTREAM_H
#define ST_HTTP_UPSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define ST_UPSTREAM_HEAD_MAX    32768
#define ST_UPSTREAM_HEADERS_MAX 100

typedef struct st_upstream_header {
    char *name, *value;
} st_upstream_header;

typedef enum st_upstream_state {
    ST_UPSTREAM_HEAD,
    ST_UPSTREAM_LENGTH, /* a body of so many bytes */
    ST_UPSTREAM_CHUNK,  /* the line before a chunk */
    ST_UPSTREAM_DATA,   /* inside one */
    ST_UPSTREAM_AFTER,  /* the line end behind one */
    ST_UPSTREAM_TRAILER,
    ST_UPSTREAM_CLOSE, /* a body up to the end of the connection */
    ST_UPSTREAM_DONE,
    ST_UPSTREAM_OTHER, /* 101: what follows is another protocol */
} st_upstream_state;

typedef struct st_upstream {
    bool head_only;  /* the request was HEAD: no body comes, whatever the head says */
    bool may_switch; /* 101 is taken */
    st_upstream_state state;
    int status; /* 0: not known yet */
    ST_VEC(st_upstream_header) headers;
    int64_t length; /* of the body; -1: it is not said */
    int64_t left;
    int early; /* answers 1xx before it */
    st_strbuf line;
} st_upstream;

void st_upstream_done(st_upstream *u);
/* Reads some; *ret_used are the bytes it took, `body` gets what belongs to the body. ST_EPARSE: it makes no sense. All are taken
 * unless the state is DONE or OTHER. */
int st_upstream_feed(st_upstream *u, const char *bytes, size_t n, size_t *ret_used, st_strbuf *body,
                     st_err *err);
/* The connection has ended: ST_EPARSE where something is missing. */
int st_upstream_end(st_upstream *u, st_err *err);
/* A header, whatever the case of its letters; NULL: there is none. */
const char *st_upstream_header_of(const st_upstream *u, const char *name);

#endif
