/*
 * The client's side of a connection that becomes something else: an HTTP request that is answered with 101, and bytes
 * both ways from then on, with TLS or without (the server's side: http/http.h). Used by agents and by `stint`.
 *
 * A connection belongs to one thread at a time. Nothing is read ahead of what the caller takes but what came with the
 * answer.
 */
#ifndef ST_DIAL_DIAL_H
#define ST_DIAL_DIAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"

typedef struct st_dial st_dial;

typedef struct st_dial_to {
    const char *url;      /* http://…, https://… or unix:PATH */
    const char *ca;       /* NULL: those of the system */
    const char *target;   /* path with its query */
    const char *bearer;   /* NULL: none */
    const char *protocol; /* that it is to become; NULL: none, any answer will do */
    const char *program;  /* who asks, as in User-Agent */
    int timeout_ms;       /* for the answer */
} st_dial_to;

/* Where the server answers with something else, *ret_status and `ret_body` have it, and err a sentence; 0: there was no
 * answer. Without a protocol it is always so, and 2xx is 0. */
int st_dial_open(const st_dial_to *to, st_dial **ret, long *ret_status, st_strbuf *ret_body,
                 st_err *err);
void st_dial_close(st_dial *d);
ST_DEFINE_FREEP(st_dial, st_dial_close)

/* To be polled: for reading after st_dial_recv said "nothing now", for writing after st_dial_send did. */
int st_dial_fd(const st_dial *d);
/* Bytes; 0: the other side has ended; -1: nothing now; -2: it is broken. */
ssize_t st_dial_recv(st_dial *d, char *buf, size_t n);
ssize_t st_dial_send(st_dial *d, const char *buf, size_t n);
/* Nothing more comes from here: told to the other side where that is possible; whether it was. */
bool st_dial_finish(st_dial *d);

/* Hands bytes from the socket `fd`, which does not block, to the connection and back, until both sides have ended, one is
 * broken, or `stop` (a descriptor, -1: none) can be read. */
void st_dial_pump(st_dial *d, int fd, int stop);

#endif
