/*
 * What goes through a tunnel to a command: frames, each a kind, a length and so many bytes. Pure. Both sides hold what the
 * other sends to the table below; anything else ends the tunnel.
 */
#ifndef ST_TUNNEL_FRAME_H
#define ST_TUNNEL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define ST_FRAME_MAX  32768 /* bytes in one */
#define ST_FRAME_HEAD 5

/* X(id, number, bytes at most, at least): to the command below 16, from it above. */
#define ST_FRAME_TABLE(X)                                                      \
    X(ST_FRAME_IN, 1, ST_FRAME_MAX, 1)                                         \
    X(ST_FRAME_IN_END, 2, 0, 0)                                                \
    X(ST_FRAME_SIZE, 3, 4, 4)   /* rows and columns, 16 bits each */           \
    X(ST_FRAME_SIGNAL, 4, 1, 1) /* its number */                               \
    X(ST_FRAME_OUT, 17, ST_FRAME_MAX, 1)                                       \
    X(ST_FRAME_ERR, 18, ST_FRAME_MAX, 1)                                       \
    X(ST_FRAME_EXIT, 19, 2, 2)   /* exit status, signal (0: none); the last */ \
    X(ST_FRAME_FAIL, 20, 512, 1) /* it could not be started: a sentence; the last */

typedef enum st_frame_kind {
    ST_FRAME_NONE,
#define X(id, number, most, least) id = number,
    ST_FRAME_TABLE(X)
#undef X
} st_frame_kind;

typedef struct st_frame {
    st_frame_kind kind;
    const unsigned char *bytes;
    size_t n;
} st_frame;

/* Appends one; n is within what its kind may have. */
void st_frame_add(st_strbuf *out, st_frame_kind kind, const void *bytes, size_t n);

/* The first of `text`, with *ret_used bytes: 1. 0: it is not whole yet; -1: it is none, or goes the other way. */
int st_frame_read(const char *text, size_t n, bool from_command, st_frame *ret, size_t *ret_used);

#endif
