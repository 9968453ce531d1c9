/*
 * The native engine: jobs run on nodes that have an agent. The engine keeps, for each node, the
 * list of tasks that should be there (the desired state), takes in what agents say is there, and
 * tells the control loop what became of jobs and nodes. doc/dev/agent-protocol.md has both sides.
 *
 * Invariants:
 *  1 A node's list is a function of the orders of the control loop; `revision` grows with every
 *    change of it, across restarts as well (its upper half is the epoch).
 *  2 A job's end is reported again and again until the order to stop it comes: that is the receipt.
 *    Agents likewise report an exit until the task is no longer on their list.
 *  3 A node is declared failed only when its lease ran out, its agent says it is sick, or it came
 *    back with other devices; and what the engine had declared failed it takes back, once nothing
 *    runs there that should not.
 *
 * All functions may be called from any thread.
 */
#ifndef ST_ENGINE_NATIVE_H
#define ST_ENGINE_NATIVE_H

#include "engine/engine.h"

typedef struct st_logs st_logs;

#define ST_NATIVE_NAME 16 /* bytes of a job's public name */

typedef struct st_native_options {
    int64_t (*clock)(void *ctx); /* ms since the epoch, UTC */
    /* What people call a job. */
    void (*name)(void *ctx, uint64_t job, char ret[ST_NATIVE_NAME]);
    /* Writes a job's document as its node needs it, and what goes with it; NULL: it is written as it is. Called with the
     * engine's lock held, so it must not call back. */
    void (*dress)(void *ctx, const char *account, const char *user, const char *doc,
                  st_strbuf *out);
    /* A node's list has changed: whoever waits for that should ask. Outside all locks. */
    void (*changed)(void *ctx, int32_t node);
    void *ctx;
    int64_t lease_ms; /* silence after which a node is lost; 0 is 60 s */
    bool keep;        /* tasks outlive their lease, see the protocol */
    st_logs *logs;    /* borrowed; NULL: there are none */
} st_native_options;

st_engine *st_engine_native_new(const st_native_options *options);

/* ---- what an agent says ---------------------------------------------------------------- */

/* X(id, word, whether something of it is on the node) */
#define ST_TASK_TABLE(X)                          \
    X(ST_TASK_NONE, "none", false)                \
    X(ST_TASK_STARTING, "starting", true)         \
    X(ST_TASK_RUNNING, "running", true)           \
    X(ST_TASK_CHECKPOINTED, "checkpointed", true) \
    X(ST_TASK_PAUSED, "paused", true)             \
    X(ST_TASK_EXITED, "exited", false)            \
    X(ST_TASK_UNSTARTED, "failed-to-start", false)
typedef enum st_task_state {
#define X(id, word, there) id,
    ST_TASK_TABLE(X)
#undef X
        ST_TASK_STATE_COUNT
} st_task_state;

int st_task_state_parse(const char *word); /* -1: none of them */

typedef struct st_agent_task {
    uint64_t job; /* 0: a job this stintd cannot know */
    int stay, task;
    st_task_state state;
    int exit_code,
        signal; /* of ST_TASK_EXITED; signal 0: none; the code of ST_TASK_UNSTARTED too, 0: none */
    int64_t started_ms; /* when its command began, by the agent's clock; 0: not said */
    int64_t ended_ms;   /* by the agent's clock; 0: not said */
    const char *reason; /* NULL: none */
    bool odd;           /* it ended as no process can; what is here was made of that */
    bool node_fault;    /* it failed for the node's reasons, not the job's */
    bool data_full;     /* or for what its account has in /data there */
    bool stopped;       /* its agent had told it to end, or killed it */
    st_used used;       /* so far, over this stay */
    st_scrub scrub;
} st_agent_task;

/* What the watch on neighbours of a node found or did. */
typedef struct st_agent_note {
    int64_t no;    /* grows: one that was taken is not taken again */
    int64_t at_ms; /* by the agent's clock */
    st_nb_kind kind;
    st_nb_rung rung;
    int gpu, ratio_pct;
    struct {
        uint64_t job; /* 0: nobody */
        int stay, task;
    } victim, suspect;
} st_agent_note;

/* One that it was told to have ready. */
typedef struct st_agent_image {
    const char *key; /* its digest, or its path */
    bool ready;
    const char *reason; /* NULL: none */
} st_agent_image;

/* One GPU that cannot be used. */
typedef struct st_agent_gpu {
    st_finding finding;
    const char *reason; /* NULL: none */
} st_agent_gpu;

#define ST_AGENT_TRIAL  1024
#define ST_AGENT_IMAGES 64 /* in a status */
#define ST_AGENT_NOTES  64 /* likewise */

/* Everything the agent has: a task it does not name is not there. */
typedef struct st_agent_status {
    int64_t epoch; /* the highest it has heard of */
    int64_t branch,
        position; /* where its list stood in which history (st_engine_ops.place); 0: not said */
    uint64_t revision; /* of the list it goes by */
    int64_t now_ms;    /* by its clock, when it wrote this; 0: not said */
    bool sick;         /* the node cannot be used */
    bool held;         /* it takes nothing new; what runs there goes on */
    const char *reason;
    st_finding finding; /* of sick and held: what is wrong, without words */
    uint16_t sick_gpus; /* these cannot be used, and the node can */
    st_agent_gpu gpus[ST_DEVS_MAX];
    const st_agent_task *tasks;
    size_t n;
    const st_agent_task *past; /* over and off the list: only what they used counts */
    size_t npast;
    const st_agent_note *notes; /* by number */
    size_t nnotes;
    struct {
        int64_t no; /* 0: it has nothing to say of a test */
        bool passed;
        const char *reason, *doc; /* NULL: none */
        st_finding finding;       /* likewise, of one that failed */
        uint16_t without;         /* GPUs that were left out of it */
    } test;
    const st_agent_image *images;
    size_t nimages;
    size_t bytes; /* how long it was */
    bool waiting; /* its voice is not believed: answer it, take nothing */
} st_agent_status;

typedef struct st_agent_answer {
    int64_t epoch;
    uint64_t revision;
    int64_t now_ms;
    int64_t lease_ms; /* from the moment the agent sent its status */
    bool keep;
    bool taken;                 /* what was said counts */
    int64_t test;               /* the test that is to be made, by number; 0 none */
    char trial[ST_AGENT_TRIAL]; /* what is said of it, JSON; "": nothing */
    st_node_state state;
} st_agent_answer;

/* ST_ENOENT: no such node is registered; ST_ESTATE: somebody newer decides, this one must not. */
int st_native_status(st_engine *native, const char *node, const st_agent_status *status,
                     st_agent_answer *ret, st_err *err);
/* The same terms without a status, for whoever registers. */
void st_native_terms(st_engine *native, st_agent_answer *ret);

/* ---- who an agent is (engine/voices.h) ------------------------------------------------------ */

/* The key that is bound to a node; false: none is, or there is no such node. */
bool st_native_key(st_engine *native, const char *node, unsigned char ret[ST_KEY_BYTES]);
/* A voice of the node has proved itself over a fresh challenge: its messages have this session from now on. */
void st_native_open(st_engine *native, const char *node, const char *boot, const char *session);
/* A message with a good signature; ST_EAUTH when it is not to be taken. *ret_waiting: it is to be answered only. */
int st_native_hear(st_engine *native, const st_proof *proof, bool *ret_waiting, st_err *err);

/* ---- what an agent is told --------------------------------------------------------------- */

/* The node's number, -1 when it has no agent. */
int32_t st_native_node(st_engine *native, const char *name);
/* Writes the node's list unless `have` is its revision; false: it is, or this voice of the node gets none (`boot`
 * NULL: a node without a key). */
bool st_native_desired(st_engine *native, int32_t node, const char *boot, uint64_t have,
                       st_strbuf *out);
/* Where a task of a job is just now, for whoever wants to speak with it. */
typedef struct st_native_seat {
    int tasks; /* of the job */
    int32_t node;
    char node_name[ST_NAME_MAX + 1];
    int stay;
    st_task_state state;
} st_native_seat;
/* False: agents have no such job. A task that it does not have is on node -1. */
bool st_native_seat_of(st_engine *native, uint64_t job, int task, st_native_seat *ret);
/* Secrets have changed: nodes with jobs that name some are told their lists again. */
void st_native_refresh(st_engine *native);
/* Whether agents are told anything: not yet, while a restored store is looked at. */
bool st_native_leads(st_engine *native);
/* Whether the node has or lately had this task, and so may write its log. */
bool st_native_had(st_engine *native, const char *node, uint64_t job, int stay, int task);

#endif
