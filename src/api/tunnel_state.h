/*
 * The inside of tunnels, for the files that make them. Private to api/tunnels.c and api/tunnel_lines.c.
 */
#ifndef ST_API_TUNNEL_STATE_H
#define ST_API_TUNNEL_STATE_H

#include "api/tunnels.h"
#include "tunnel/tunnel.h"

#define ST_TUNNEL_PROTOCOL "stint-tunnel"

typedef struct tunnel {
    char id[ST_TUNNEL_ID];
    uint64_t group; /* of its lines, in the relay */
    st_tunnel_spec spec;
    char *order;
    int64_t made_ms, left_ms; /* left: when its last line ended */
    int64_t over_ms;          /* when its task was first seen to be over; 0: it is not */
    int64_t moved[2];
    int lines, refs; /* refs: its lines, and the list */
    bool used, over;
    const char *why; /* it ended */
} tunnel;

typedef struct line {
    st_tunnels *all;
    tunnel *of; /* NULL: somebody's in here */
    char id[ST_TUNNEL_ID];
    st_tunnel_place place;
    char *order; /* of one without a tunnel */
    int64_t made_ms, told_ms, idle_ms;
    st_call *call; /* the client's, deferred; NULL: */
    st_tunnel_dialed *fn;
    void *ctx;
    st_upgrade *agent;
    st_strbuf early;
    const char *why; /* it is over, for the audit log */
} line;

struct st_tunnels {
    st_api *api;
    st_relay *relay;
    pthread_mutex_t lock;
    bool closed;
    uint64_t groups;
    ST_VEC(tunnel *) tunnels;
    ST_VEC(line *) waiting;
};

extern const int st_tunnel_lines[]; /* how many a kind has at a time */

int64_t st_tunnels_now(void);
void st_tunnels_id(char kind, char ret[ST_TUNNEL_ID]);

/* tunnels.c; with the lock held: ends it, and its lines. */
void st_tunnel_stop(st_tunnels *all, tunnel *t, const char *why);
/* With the lock held: true when it is nobody's any more, and to be freed without it. */
bool st_tunnel_let_go(tunnel *t);
/* Without the lock. */
void st_tunnel_done(st_tunnels *all, tunnel *t);

/* tunnel_lines.c: takes the line and has its node told. */
void st_tline_put(st_tunnels *all, line *l);
/* Refuses those that have waited too long, or whose tunnel is over. */
void st_tlines_refuse_late(st_tunnels *all);

#endif
