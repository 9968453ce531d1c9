/*
 * Ways into a job: a command, a port in its network. Private to src/api.
 *
 * A tunnel is the permission of one caller to go to one task; it is noted in the audit log when it begins and when it
 * ends. A line is one connection through it. The agent of the node is told of a line with its next list and dials back;
 * then the two sockets are joined (tunnel/tunnel.h). Agents are never called.
 *
 *   waiting   the client's call is deferred, or somebody in here waits; the agent has not dialed
 *   dialed    the agent has, and that connection becomes a socket; then the client's does
 *   joined    bytes go both ways
 *
 * Invariants:
 *  1 Everything is in memory: with stintd all tunnels end.
 *  2 A line is dialed once, by the node that it is for.
 *  3 Whoever takes a line off the list of those that wait answers its caller, once.
 *  4 A tunnel ends with its caller's token, with its task's stay, or when its caller ends it; its lines end with it. One
 *    that watches a task outlives that by some seconds: what the task wrote last and how it ended is still under way.
 */
#ifndef ST_API_TUNNELS_H
#define ST_API_TUNNELS_H

#include "api/state.h"

#define ST_TUNNEL_ID 40 /* with the NUL */

/* X(id, word, how many lines, verb in the audit log) */
#define ST_TUNNEL_TABLE(X)                             \
    X(ST_TUNNEL_EXEC, "exec", 1, "job.exec")           \
    X(ST_TUNNEL_FORWARD, "forward", 64, "job.forward") \
    X(ST_TUNNEL_ATTACH, "attach", 1, "job.attach")
typedef enum st_tunnel_kind {
#define X(id, word, lines, verb) id,
    ST_TUNNEL_TABLE(X)
#undef X
        ST_TUNNEL_KIND_COUNT
} st_tunnel_kind;
extern const char *const st_tunnel_words[], *const st_tunnel_verbs[];

/* A task as agents know it. */
typedef struct st_tunnel_place {
    uint64_t job;
    int stay, task;
    int32_t node;
} st_tunnel_place;

/* Where a task is, if it can be entered now: ST_ESTATE or ST_ENOENT with the reason. `state` is the job's, in words. */
int st_tunnel_place_of(st_api *api, uint64_t job, int task, const char *state, st_tunnel_place *ret,
                       st_err *err);

typedef struct st_tunnel_spec {
    st_tunnel_kind kind;
    st_tunnel_place place;
    st_caller caller;
    char account[ST_NAME_MAX + 1]; /* the job's */
    const char *order;             /* what else the agent is told: ,"key":value… */
} st_tunnel_spec;

int st_tunnels_new(st_api *api, st_tunnels **ret, st_err *err);
/* Refuses what waits and what comes; before the servers stop. */
void st_tunnels_close(st_tunnels *all);
void st_tunnels_free(st_tunnels *all); /* after the servers */

/* Begins; ST_EALLOWANCE. */
int st_tunnel_begin(st_tunnels *all, const st_tunnel_spec *spec, char ret[ST_TUNNEL_ID],
                    st_err *err);
/* The caller's, or, of an admin, of a job that it sees: ends it. ST_ENOENT. */
int st_tunnel_end(st_tunnels *all, st_api *api, const st_call *call, const char *id, st_err *err);
/* Those that the caller may end, as rows of a list. */
void st_tunnels_list(st_tunnels *all, const st_call *call, st_strbuf *out);
/* The call, whose client asks for an upgrade, becomes a line. Answers it, now or later. */
void st_tunnel_line(st_tunnels *all, st_call *call, const char *id);

/* For others in here: a connection to a port of a task, as the node's agent makes it. `fn` is called once, from any thread:
 * with a socket that does not block, which is its to close, or with -1 and why. idle_ms: a connection on which nothing moved
 * for that long ends; 0: never. Whether the caller may is not asked: that is whose who calls this. */
typedef void st_tunnel_dialed(void *ctx, int fd, const st_err *err);
void st_tunnel_dial(st_tunnels *all, const st_tunnel_place *place, int port, int64_t idle_ms,
                    st_tunnel_dialed *fn, void *ctx);

/* ---- for agents ---------------------------------------------------------------------------- */

/* Appends the orders for a node that it was not told lately, a list in JSON; false: there are none. */
bool st_tunnels_orders(st_tunnels *all, int32_t node, st_strbuf *out);
/* The agent of the node dials a line, or says why it does not. Answers the call. */
void st_tunnels_dialed(st_tunnels *all, st_call *call, int32_t node, const char *id,
                       const char *refused);

/* About once a second: ends what has to end. */
void st_tunnels_check(st_tunnels *all);
/* Whether anybody has a connection into the job just now. */
bool st_tunnels_uses(st_tunnels *all, uint64_t job);
/* For metrics: tunnels, joined lines. */
void st_tunnels_count(st_tunnels *all, int64_t ret[2]);

#endif
