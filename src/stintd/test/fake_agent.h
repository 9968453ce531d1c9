/*
 * An agent that runs nothing: it speaks the protocol of doc/dev/agent-protocol.md over HTTP and does
 * what it is told, on paper. Tests drive it step by step; nothing happens by itself. And a stintd
 * in this process for it to speak to.
 */
#ifndef ST_STINTD_TEST_FAKE_AGENT_H
#define ST_STINTD_TEST_FAKE_AGENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "control/control.h"
#include "model/proof.h"
#include "stintd/stintd.h"

/* ---- HTTP ------------------------------------------------------------------------------ */

typedef struct fake_line {
    int port;
    int fd; /* -1: not connected */
} fake_line;

/* Sends a request and leaves the answer for fake_hear. body NULL: none. */
void fake_say(fake_line *line, const char *method, const char *path, const char *token,
              const char *body);
/* Waits for the answer; its status, or 0 when nothing came in time. *ret_json (may be NULL) is the
 * body, NULL when it is not JSON; *ret_text, if not NULL, is the body as it is. */
int fake_hear(fake_line *line, int wait_ms, json_t **ret_json, st_strbuf *ret_text);
/* Whether an answer has begun to come. */
bool fake_heard(const fake_line *line, int wait_ms);
void fake_hang_up(fake_line *line);
/* One request on a connection of its own. */
int fake_ask(int port, const char *method, const char *path, const char *token, const char *body,
             json_t **ret_json);

/* ---- the agent ---------------------------------------------------------------------------- */

typedef struct fake_task {
    char job[32];
    int stay, task;
    const char *state;
    int exit_code, signal;
    int64_t ended_ms;
    bool listed;
} fake_task;

typedef struct fake_agent {
    char name[64], machine[64];
    unsigned char secret[ST_SECRET_BYTES];
    char key[ST_KEY_TEXT], boot[ST_BOOT_TEXT], session[ST_SESSION_TEXT];
    uint64_t n; /* messages of the session */
    char gpu[32];
    int gpus;
    st_strbuf proof;
    bool moved; /* its session may be over: it registers again before it speaks */
    fake_line status, poll;
    int64_t epoch;
    int64_t revision;
    char state[16]; /* of its node, as last told */
    json_t *desired;
    ST_VEC(fake_task) tasks;
    const char *health;
} fake_agent;

fake_agent *fake_new(int port, const char *name, const char *machine);
void fake_free(fake_agent *a);
/* Forgets connections, as if cut off or restarted; `port` is where stintd is now. */
void fake_move(fake_agent *a, int port);

/* A new key, as of another machine; a new voice, as after a start of the agent. */
void fake_new_key(fake_agent *a);
void fake_new_boot(fake_agent *a);
/* The proof of its next message, good until the next call. */
const char *fake_proof(fake_agent *a, const char *method, const char *path, const char *body);
/* One request of the agent on a connection of its own. */
int fake_ask_as(fake_agent *a, const char *method, const char *path, const char *body,
                json_t **ret_json);
/* token: a join token, or NULL for its key alone; the answer's status. */
int fake_register(fake_agent *a, const char *token, const char *gpu, int gpus);
/* Asks for the list and waits; true: it was new, and was obeyed. */
bool fake_poll(fake_agent *a, int wait_s);
void fake_poll_say(fake_agent *a, int wait_s);
bool fake_poll_hear(fake_agent *a);
/* Says what it has; the answer's status. */
int fake_status(fake_agent *a);
/* Status, list, status: everything it can know and has done about it. */
void fake_turn(fake_agent *a);

fake_task *fake_task_of(fake_agent *a, const char *job, int task); /* NULL: it has none */
void fake_exit(fake_agent *a, const char *job, int task, int code);
const char *fake_want(const fake_agent *a, const char *job); /* "": not on the list */

/* ---- stintd --------------------------------------------------------------------------------- */

typedef struct fake_world {
    char dir[64];
    st_config config;
    st_serve *serve;
    int port;
    char owner[ST_TOKEN_TEXT];
} fake_world;

void fake_world_init(fake_world *w);
void fake_world_start(fake_world *w);
void fake_world_stop(fake_world *w);
void fake_world_done(fake_world *w); /* and its directory */
/* Asks as the owner; the status is checked, the answer returned. */
json_t *fake_owner(fake_world *w, const char *method, const char *path, const char *body, int want);
/* A join token for so many machines. */
void fake_join_token(fake_world *w, int uses, char ret[ST_TOKEN_TEXT]);
/* Submits, returns the id. */
void fake_submit(fake_world *w, const char *doc, char ret[32]);
/* Waits until the job is in the state. */
void fake_job_is(fake_world *w, const char *job, const char *state);
void fake_node_is(fake_world *w, const char *node, const char *state);

#endif
