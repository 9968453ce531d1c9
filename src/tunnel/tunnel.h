/*
 * Joining two sockets: whatever comes out of one goes into the other, as slowly as the slower of the two. One thread
 * has all pairs, so that an idle one costs some hundred bytes and no thread.
 *
 * Invariants:
 *  1 Of each direction at most ST_RELAY_BYTES are held here; while they are, nothing more is read.
 *  2 The ends of a pair are closed exactly once, by the thread, and then `over` is called, once.
 *  3 What was read before an end closed is written before the other is closed, as long as that one takes it and
 *    somebody has not cut the pair.
 *  4 Where nothing moved for idle_ms the pair ends.
 */
#ifndef ST_TUNNEL_TUNNEL_H
#define ST_TUNNEL_TUNNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/macros.h"

#define ST_RELAY_BYTES 65536

typedef struct st_relay st_relay;

/* A stream socket that does not block, or what is behind one: then whoever owns it reads, writes and closes it. Answers are
 * bytes; 0: the end; -1: nothing now; -2: it is broken. What was not taken is offered again as it was. */
typedef struct st_relay_end {
    int fd;
    void (*close)(void *owner); /* NULL: close(fd); the others are NULL with it */
    ssize_t (*recv)(void *owner, char *buf, size_t n);
    ssize_t (*send)(void *owner, const char *buf, size_t n);
    void *owner;
    bool whole;        /* its directions cannot be closed one by one */
    const char *early; /* what it has said already; copied */
    size_t n;
} st_relay_end;

typedef enum st_relay_why {
    ST_RELAY_DONE, /* both sides had nothing more to say, or one hung up */
    ST_RELAY_IDLE,
    ST_RELAY_CUT, /* st_relay_cut, or the relay ended */
} st_relay_why;

typedef struct st_relay_rule {
    uint64_t group;  /* to be cut by */
    int64_t idle_ms; /* 0: any time */
    void (*over)(void *ctx, st_relay_why why,
                 const int64_t moved[2]); /* from a to b, from b to a */
    void *ctx;
} st_relay_rule;

int st_relay_new(st_relay **ret, st_err *err);
/* Cuts all pairs and ends the thread. */
void st_relay_free(st_relay *r);
ST_DEFINE_FREEP(st_relay, st_relay_free)

/* From any thread; takes both ends, whatever happens. */
void st_relay_join(st_relay *r, const st_relay_end *a, const st_relay_end *b,
                   const st_relay_rule *rule);
/* From any thread: all pairs of the group end, soon. */
void st_relay_cut(st_relay *r, uint64_t group);
/* How many pairs there are. */
size_t st_relay_count(st_relay *r);

#endif
