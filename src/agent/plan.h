/*
 * What a node should run, what it does run, and the step from one to the other. Pure: no clock,
 * files or sockets, so that every situation the protocol knows (doc/dev/agent-protocol.md) is a test.
 *
 * All times are by the boot clock, which does not jump; what people and stintd see is made from it where
 * it is shown. What a plan costs grows with the number of tasks, not with its square.
 *
 * Invariants of a plan:
 *  1 (job, stay, task) is started at most once; again only after it left checkpointed.
 *  2 A device is given to a new task when nobody who was on it is left and its memory was read and
 *    is zero. The same tenant's next task need not wait for the latter, and inherits the question.
 *    Tasks that share it by their level, or hold other slices of it, do not mind each other; at level
 *    mps only those of one trust domain share.
 *  3 What is not on the list ends: its signal, a grace, then all of it is killed.
 *  4 Without a lease nothing is started, and what runs is killed unless the terms say keep.
 *  5 The record of an ended task stays while it is on the list; its absence is the receipt.
 */
#ifndef ST_AGENT_PLAN_H
#define ST_AGENT_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/cpus.h"
#include "agent/telemetry.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/mig.h"
#include "model/types.h"

#define ST_JOB_NAME_MAX    32
#define ST_TASK_REASON_MAX 160

/* ---- what should be ----------------------------------------------------------------------- */

#define ST_DO_TABLE(X)                \
    X(ST_DO_RUN, "run")               \
    X(ST_DO_NOTIFY, "notify")         \
    X(ST_DO_CHECKPOINT, "checkpoint") \
    X(ST_DO_PAUSE, "pause")           \
    X(ST_DO_STOP, "stop")
typedef enum st_do {
#define X(id, word) id,
    ST_DO_TABLE(X)
#undef X
} st_do;

/* The devices of one task. */
typedef struct st_task_place {
    uint16_t devs; /* bit per GPU index */
    st_level level;
    int mig_profile; /* st_mig, or -1 */
    int mig_start;
    char domain[64];  /* who may share a GPU with it at level mps */
    int64_t share_m;  /* of one GPU, at mps and time */
    int64_t vram_mib; /* of one GPU, at mps and time; 0: the share's part */
} st_task_place;

typedef struct st_task_key {
    char job[ST_JOB_NAME_MAX];
    int stay, task;
} st_task_key;

/* One task on the list. */
typedef struct st_order {
    st_task_key key;
    st_do want;
    bool over;
    int64_t until_ms;    /* by the boot clock; 0: none */
    int64_t deadline_ms; /* by the boot clock; 0: none */
    st_task_place place;
    char tenant[64];   /* as on disk: see agent/launch.h */
    int signal;        /* what tells it to save or to stop */
    int notify_signal; /* 0: it did not ask to be told */
    const json_t *job; /* of the list: everything else, for whoever starts it */
    uint32_t allow;    /* what the node's pool permits (st_allow): see st_launch_allowed */
    int local_rank;
} st_order;

/* Where in which history something stands: what stintd had committed when it said it. A history that was restored from a
 * backup by an owner has a higher branch than the one it replaces; of one branch, positions only grow. */
typedef struct st_history {
    int64_t branch, position;
} st_history;

typedef struct st_agent_list {
    int64_t epoch;
    st_history at;
    uint64_t revision;
    uint32_t allow;     /* permissions of the node's pool, as bits of st_allow */
    int64_t node_tasks; /* how many tasks it may have at once; 0: not said */
    json_t *root;       /* owned; the orders point into it */
    ST_VEC(st_order) orders;
} st_agent_list;

/* `boards` has the geometry of each GPU; skew_ms is stintd's clock less the boot clock. */
int st_list_read(json_t *root, const st_board boards[ST_DEVS_MAX], int64_t skew_ms,
                 st_agent_list *ret, st_err *err);
void st_agent_list_done(st_agent_list *list);

/* "TERM", "SIGTERM" or a number from 1 to 64; -1 when it is none. */
int st_signal_parse(const char *word);

/* ---- what is ---------------------------------------------------------------------------------- */

#define ST_PHASE_TABLE(X)                                                               \
    X(ST_PHASE_NOTED, "noted") /* written down; whether it was started is to be seen */ \
    X(ST_PHASE_STARTING, "starting")                                                    \
    X(ST_PHASE_RUNNING, "running")                                                      \
    X(ST_PHASE_PAUSED, "paused")                                                        \
    X(ST_PHASE_ENDED, "ended")         /* its end is known */                           \
    X(ST_PHASE_UNSTARTED, "unstarted") /* it could not be started */
typedef enum st_agent_phase {
#define X(id, word) id,
    ST_PHASE_TABLE(X)
#undef X
        ST_PHASE_COUNT
} st_agent_phase;

/* What is being done to a task that leaves its devices and stays, or comes back (agent/steps.h). */
#define ST_STEP_TABLE(X)                                                         \
    X(ST_STEP_NONE, "none")                                                      \
    X(ST_STEP_SAVE, "save")     /* what it has on devices goes to host memory */ \
    X(ST_STEP_FREEZE, "freeze") /* its processes come to a halt */               \
    X(ST_STEP_UNDO, "undo")     /* it cannot be: all goes back as it was */      \
    X(ST_STEP_LOAD, "load")     /* it goes on: back from host memory */
typedef enum st_agent_step {
#define X(id, word) id,
    ST_STEP_TABLE(X)
#undef X
        ST_STEP_COUNT
} st_agent_step;

/* X(field, what happened to it), remembered across restarts. */
#define ST_MARK_TABLE(X)                                                        \
    X(notified)                                                                 \
    X(asked)    /* told to save */                                              \
    X(saved)    /* it left by itself, with 0, after it was asked */             \
    X(stopped)  /* told to stop */                                              \
    X(killed)   /* by us */                                                     \
    X(fenced)   /* killed because the lease had ended */                        \
    X(refused)  /* it could not be paused */                                    \
    X(gone)     /* nobody of it is left on its devices */                       \
    X(scanning) /* their memory is being read */                                \
    X(clean)    /* and nothing in their memory that was its own */              \
    X(told)     /* stintd has heard all of it */                                \
    X(fault)    /* it ended, or could not be started, for the node's reasons */ \
    X(full)     /* or for what its account has in /data */                      \
    X(stray)    /* it was found here, and nobody knew of it */

#define ST_TASK_PIDS 32

typedef struct st_task_pid {
    int pid;
    uint64_t birth; /* with the pid, a name that is never used again */
} st_task_pid;

/* What an agent knows of a task only as long as it lives itself. */
typedef struct st_task_now {
    uint64_t kept;    /* a hash of what the journal has of it; 0: nothing */
    bool listed;      /* it is on the list */
    uint64_t telling; /* the first report that had all there is to say of it; 0: none has */
    bool working; /* it is about to be started or removed, and nothing follows from what is there */
    int worker;   /* who does that; 0: nobody yet */
    int around;   /* looks in a row at which the guard did not know a process of it */
    int64_t kill_ms; /* when it was last killed, as it may have to be again */
    int64_t
        part_ms; /* boot clock: when a worker began to take it off its MPS server; 0: none did */
    bool parted; /* it has done so */
    int64_t look_ms;   /* boot clock: when to look at it, even if nobody says that it has changed */
    int folder, logs;  /* watches of its folders (agent/notice.h); 0: none */
    bool output;       /* it may have written something that was not handed over */
    int64_t began_ms;  /* boot clock: when its start began */
    int64_t remove_ms; /* boot clock: not before, after it could not be removed */
    int64_t deadline_ms; /* boot clock: what it is held to; 0: not known */
} st_task_now;

typedef struct st_task {
    st_task_key key;
    int attempt; /* from 0; grows when a saved task starts again under the same stay */
    st_agent_phase phase;
    st_task_place place;
    int signal, notify_signal;
    char tenant[64];
    int64_t cpu_m; /* what it may use; 0: it is not pinned */
    st_pin pin;    /* where; what it has until it is gone */
#define X(field) bool field;
    ST_MARK_TABLE(X)
#undef X
    int64_t stop_ms; /* when it was told to stop */
    int owed;        /* a signal it could not take yet, for it was starting; 0: none */
    int64_t started_ms, ended_ms;
    int exit_code, exit_signal;
    char reason[ST_TASK_REASON_MAX];

    int64_t log_sent;    /* bytes of its output stintd has */
    int64_t log_before;  /* bytes its earlier attempts wrote */
    bool log_done;       /* all of it was sent, or nobody wants it */
    int64_t unlisted_ms; /* when it was first seen off the list; 0: it is on it */

    st_rollup used;
    st_scrub scrub;

    /* Of a pause, written down before anything is done. */
    st_agent_step step;
    int tries;            /* of this step */
    int64_t step_ms;      /* when it began */
    uint16_t paused_devs; /* what it was on */
    int64_t paused_mib;   /* of device memory that are in host memory now */
    int64_t ram_limit;    /* bytes: its limit before it was raised; 0: it was not */
    int npids;            /* processes that were taken off */
    st_task_pid pid[ST_TASK_PIDS];

    /* Of the simulated executor. */
    int64_t sim_left_ms;  /* it would run this long from sim_since_ms */
    int64_t sim_since_ms; /* 0: it does not run */
    int sim_exit;
    int64_t sim_save_ms;
    int64_t sim_run_ms; /* the same without its time limit */
    int sim_status;

    /* Of this process, last: it is not written down. */
    st_task_now now;
} st_task;

static inline bool st_task_live(const st_task *t)
{
    return t->phase < ST_PHASE_ENDED;
}

bool st_key_same(const st_task_key *a, const st_task_key *b);
uint64_t st_key_hash(const st_task_key *key);

/* Slices that are carved, by GPU: bit `start` of mig[gpu][profile]. */
typedef struct st_carved {
    uint8_t at[ST_DEVS_MAX][ST_MIG_COUNT];
} st_carved;

/* When memory is read before a device goes on. */
#define ST_SCRUB_POLICY_TABLE(X)                                                \
    X(ST_SCRUB_TENANT, "tenant") /* unless the same tenant's next task waits */ \
    X(ST_SCRUB_ALWAYS, "always")                                                \
    X(ST_SCRUB_NEVER, "never")
typedef enum st_scrub_policy {
#define X(id, word) id,
    ST_SCRUB_POLICY_TABLE(X)
#undef X
} st_scrub_policy;

int st_scrub_policy_parse(const char *word); /* -1: none of them */

typedef struct st_agent_view {
    const st_agent_list *list; /* NULL: none was heard yet, so nothing follows from it */
    const st_task *tasks;
    size_t n;
    st_carved carved;
    bool uncarved; /* nobody can tell what is carved: nothing is */
    bool can_pause;
    st_scrub_policy scrub;
    bool lease_over; /* and the terms say kill */
    int64_t stop_grace_ms;
} st_agent_view;

/* ---- what follows ---------------------------------------------------------------------------- */

/* X(id, name): in the order they are to be carried out. */
#define ST_ACT_TABLE(X)                                                            \
    X(ST_ACT_KILL, "kill") /* all of it, now */                                    \
    X(ST_ACT_STOP, "stop") /* its signal; a kill follows when the grace is over */ \
    X(ST_ACT_NOTIFY, "notify")                                                     \
    X(ST_ACT_CHECKPOINT, "checkpoint") /* its signal, once */                      \
    X(ST_ACT_PAUSE, "pause")                                                       \
    X(ST_ACT_RESUME, "resume")                                                     \
    X(ST_ACT_VERIFY, "verify") /* that nobody of it is left */                     \
    X(ST_ACT_SCRUB, "scrub")   /* and nothing in memory */                         \
    X(ST_ACT_REMOVE, "remove") /* forget it */                                     \
    X(ST_ACT_CARVE, "carve")   /* make the slices of a GPU those of `carve` */     \
    X(ST_ACT_START, "start")
typedef enum st_act_kind {
#define X(id, name) id,
    ST_ACT_TABLE(X)
#undef X
} st_act_kind;

typedef struct st_act {
    st_act_kind kind;
    st_task_key key;       /* all but carve */
    const st_order *order; /* start, resume */
    int gpu;               /* carve */
    uint8_t carve[ST_MIG_COUNT];
    const char *reason; /* kill; static text, NULL: as before */
    bool fence;         /* kill: because the lease is over */
    bool scan;          /* scrub: memory is to be read; otherwise nobody else gets it */
} st_act;

typedef ST_VEC(st_act) st_acts;

const char *st_act_name(st_act_kind kind);

/* Appends what is to be done now, in order. */
void st_plan(const st_agent_view *view, int64_t now_ms, st_acts *ret);

/* Whether an order of this epoch may be followed. */
bool st_epoch_ok(int64_t highest, int64_t epoch);
/* Whether what stands there may follow what stands at `last`; if not, it is of an older copy of the store. */
bool st_history_ok(const st_history *last, const st_history *at);

/* To be heard, after it left the list: its output, what it used. When half of it is over only the end of
 * its output is brought, and what is missing is said. */
#define ST_LOG_WAIT_MS   INT64_C(600000)
#define ST_STRAY_REASON  "its agent had lost its record of it, so it was ended"
#define ST_SAVE_SLACK_MS INT64_C(1000) /* after until_ms, before it is killed */
#define ST_KILL_AGAIN_MS INT64_C(500)  /* what has not died of a kill by then is killed again */

#endif
