/*
 * Tunnels into tasks of this node (api/tunnels.h has the other side): stintd names one with its answers to the voice, and
 * a thread of its own goes to the task, dials stintd, and hands bytes back and forth until one side ends. A thread touches
 * nothing of a node but its folder of tasks and its key, so that no tunnel holds up anything else.
 *
 * Invariants:
 *  1 Where a task cannot be reached, or nothing is really run here, stintd is told why.
 *  2 There are ST_WAYS_MAX at most; stintd tells of others again.
 *  3 They end with the agent.
 */
#ifndef ST_AGENT_TUNNEL_H
#define ST_AGENT_TUNNEL_H

#include "base/err.h"
#include "base/macros.h"

#define ST_WAYS_MAX 512

typedef struct st_ways st_ways;
struct st_host;

st_ways *st_ways_new(void);
/* Ends all, and waits for them. */
void st_ways_free(st_ways *ways);
ST_DEFINE_FREEP(st_ways, st_ways_free)

/* How the answer to a voice begins that asks for a list and gets tunnels. */
#define ST_WAYS_ANSWER "{\"tunnels\":"

/* Begins those that the answer names. On the voice's thread. */
void st_ways_take(st_ways *ways, struct st_host *h, const char *text, size_t n);

#endif
