/*
 * A client of a service and its replica, once the replica has said that it speaks WebSocket from here on: the two sockets are
 * joined (tunnel/tunnel.h), and what goes through is theirs. Private to src/api.
 *
 * What the client hears of the replica's words is that it is a WebSocket, and three headers of the handshake. A replica that
 * says 101 to something else has not answered.
 */
#ifndef ST_API_JOINT_H
#define ST_API_JOINT_H

#include "api/tunnels.h"
#include "http/onward.h"

#define ST_WEBSOCKET "websocket"

typedef struct st_joint st_joint;

typedef struct st_joint_spec {
    st_call *call; /* deferred; taken, as the next is */
    const st_upstream *up;
    int fd;            /* to the replica; it does not block */
    const char *early; /* what came behind the head; copied */
    size_t n;
    int64_t idle_ms;
    void (*over)(void *ctx); /* once, from any thread; the joint is no more after it */
    void *ctx;
} st_joint_spec;

/* NULL: the answer is none, the call is answered with that, and `over` is not called. */
st_joint *st_joint_new(st_tunnels *all, const st_joint_spec *spec);
/* Answers the call with 101. */
void st_joint_begin(st_joint *joint);
/* Ends it, soon; NULL: nothing. */
void st_joint_cut(st_joint *joint);

#endif
