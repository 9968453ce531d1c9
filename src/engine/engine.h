/*
 * Engines carry decisions out. The core says what should run where; an engine makes it so and
 * reports what became of it.
 *
 * Orders are state, not messages: the same order may come twice, and an order for a stay that is
 * over is without effect. A stay is one time of a job on devices, counted per job (`stay`), so a
 * late report about an earlier one can be told apart. `epoch` grows with every start of stintd as
 * the one that decides; an engine refuses orders of an older one.
 *
 * Orders come from the control loop only, after the commit; `tick` as well. Reports may come from
 * any thread.
 */
#ifndef ST_ENGINE_ENGINE_H
#define ST_ENGINE_ENGINE_H

#include "base/vec.h"
#include "core/core.h"
#include "model/proof.h"
#include "model/said.h"
#include "model/used.h"
#include "neighbour/neighbour.h"

typedef struct st_engine st_engine;

#define ST_ENG_TABLE(X)                                                               \
    X(ST_ENG_RUN, "run")               /* these tasks on these devices */             \
    X(ST_ENG_NOTIFY, "notify")         /* must yield by until_ms */                   \
    X(ST_ENG_SPARE, "spare")           /* need not after all */                       \
    X(ST_ENG_CHECKPOINT, "checkpoint") /* save now, by until_ms */                    \
    X(ST_ENG_PAUSE, "pause")           /* off the devices, kept in host memory */     \
    X(ST_ENG_RESUME, "resume")         /* back on these devices */                    \
    X(ST_ENG_LIMIT, "limit")           /* its time limit is another one */            \
    X(ST_ENG_HALT, "halt")             /* off the devices and away: say when it is */ \
    X(ST_ENG_STOP, "stop")             /* the same, and nobody wants to know */
typedef enum st_engine_order_kind {
#define X(id, word) id,
    ST_ENG_TABLE(X)
#undef X
        ST_ENG_COUNT
} st_engine_order_kind;

typedef struct st_engine_order {
    st_engine_order_kind kind;
    uint64_t job;
    int stay;
    int64_t at_ms, until_ms;
    int64_t ran_ms;                /* run time it has behind it at at_ms */
    const char *account;           /* whose */
    const char *user;              /* who in it */
    bool untrusted;                /* it, or one above it: it shares no GPU at level mps */
    const char *domain;            /* the account its trust domain is named after; NULL: its own */
    int64_t tenant, domain_tenant; /* their serials, which nodes go by (st_account.serial) */
    bool named, domain_named;      /* from before there were serials: nodes may know the name */
    const char *doc;               /* the job's document, JSON */
    const char *image;             /* what its image means on the nodes, JSON; of ST_ENG_RUN */
    const char *volumes;           /* likewise its volumes, a list; "" or NULL: it has none */
    const st_job *spec;            /* as the core has it */
    const st_grant *grants;
    int ngrants;
    const st_fleet *fleet;
} st_engine_order;

#define ST_REPORT_TABLE(X)                                                                        \
    X(ST_REPORT_STARTED, "started")           /* all its tasks have begun; may come twice */      \
    X(ST_REPORT_ENDED, "ended")               /* all its tasks are over */                        \
    X(ST_REPORT_CHECKPOINTED, "checkpointed") /* its work is saved */                             \
    X(ST_REPORT_UNSTARTED, "unstarted")       /* for its node's reasons */                        \
    X(ST_REPORT_GONE, "gone")                 /* after ST_ENG_HALT */                             \
    X(ST_REPORT_LATE, "late")                 /* a task of an earlier stay had ended by itself */ \
    X(ST_REPORT_NODE, "node")                 /* node is in `node_state` */                       \
    X(ST_REPORT_FOUND, "found")               /* a node that nobody has announced */              \
    X(ST_REPORT_USED, "used")                 /* what one task has used so far */                 \
    X(ST_REPORT_FLAG, "flag")                 /* something is wrong with what a node says */      \
    X(ST_REPORT_NEIGHBOUR, "neighbour")       /* who slows whom on a shared GPU */                \
    X(ST_REPORT_TESTED, "tested")             /* what a test of a node has found */               \
    X(ST_REPORT_IMAGE, "image")               /* a node has an image ready, or cannot have it */
typedef enum st_report_kind {
#define X(id, word) id,
    ST_REPORT_TABLE(X)
#undef X
        ST_REPORT_COUNT
} st_report_kind;

/* A node as an engine has found it. Which it may be is in its pool, by name, and that pool is one of the engine's own. */
typedef struct st_found {
    char name[ST_NAME_MAX + 1], pool[ST_NAME_MAX + 1], type[ST_NAME_MAX + 1]; /* type "": no GPUs */
    int ndevs;
    int64_t cpu_m, ram_mib;
    char zone[ST_NAME_MAX + 1], block[ST_NAME_MAX + 1], rack[ST_NAME_MAX + 1]; /* "": none */
} st_found;

typedef struct st_report {
    st_report_kind kind;
    const char *engine; /* by name, which lives as long as the program; NULL: the only one */
    uint64_t job;
    int stay;
    int exit_code; /* of ST_REPORT_ENDED: 0 is success */
    bool
        done; /* of ST_REPORT_GONE: all its tasks had ended well; of TESTED: it passed; of IMAGE: it is ready */
    int64_t test; /* of ST_REPORT_TESTED: its number */
    const char *
        doc; /* of ST_REPORT_TESTED: results, JSON; of IMAGE: its digest, or its path; valid during the call; NULL: none */
    int64_t started_ms; /* of ST_REPORT_STARTED: when the last of its tasks began */
    int64_t ended_ms;   /* of ST_REPORT_ENDED and GONE: when it really ended; 0: not known */
    char reason[240];   /* in words, may be "" */
    bool data_full;     /* of ST_REPORT_ENDED: for what its account has in /data on a node */
    int32_t node;
    st_node_state node_state;
    int part;              /* of ST_REPORT_NODE: d + 1, its GPU d alone; 0: the node */
    uint16_t without;      /* of ST_REPORT_TESTED: GPUs that were left out of it */
    st_finding finding;    /* of ST_REPORT_NODE and TESTED: what is wrong; `reason` has its words */
    const st_found *found; /* of ST_REPORT_FOUND; valid during the call */
    st_flag flag;          /* of ST_REPORT_FLAG, with the reason above */
    char boot[ST_BOOT_TEXT]; /* of ST_FLAG_VOICES: who is believed from now on */

    /* Of ST_REPORT_USED: cumulative over the stay. At most every ST_USED_EVERY_MS per task, when it
     * has left (`last`), and again when its devices were scrubbed; the numbers of a later one are
     * never lower. It may come after the job's end, and twice. */
    int task;
    bool last;
    st_used used;
    st_scrub scrub;

    /* Of ST_REPORT_NEIGHBOUR, once: `job` is the one that is slow. */
    struct {
        st_nb_kind kind;
        st_nb_rung rung;
        uint64_t suspect; /* 0: none, of ST_NB_INCIDENT */
        int gpu, ratio_pct;
        int64_t at_ms;
    } neighbour;
} st_report;

#define ST_USED_EVERY_MS INT64_C(30000)

typedef void st_rank_fn(void *ctx, int task, int32_t node, const st_used *lately);

/* A node as an engine needs to know it. */
typedef struct st_engine_node {
    const st_node *node;
    const st_pool *pool; /* it belongs to */
    const char *doc;     /* what its agent said of it, JSON; NULL: a person announced it */
    const char *trial;   /* of the test that is to be made: level, GPU type, limits, JSON */
    const char *fault;   /* why an engine had it declared failed; NULL: none did */
    const char *key;     /* the public key that is bound to it; NULL: none yet */
    const char *frozen;  /* the voice that was believed when a second one spoke; NULL: none did */
} st_engine_node;

/* How much of its word an engine may give to agents. A store that was restored from a backup may know less than they
 * do (control/restore.h): it listens first, then has them end what it does not know, and only then decides. */
#define ST_LEAD_TABLE(X)                                                                   \
    X(ST_LEAD_FULL, "full")                                                                \
    X(ST_LEAD_LISTEN, "listen") /* agents are heard and told nothing; their leases hold */ \
    X(ST_LEAD_CLEAR, "clear")   /* their lists have what was adopted, and nothing else */
typedef enum st_lead {
#define X(id, word) id,
    ST_LEAD_TABLE(X)
#undef X
} st_lead;

/* What agents said since a lead that is not full began. */
typedef struct st_told_task {
    int32_t node;
    uint64_t job; /* 0: a name that is none of ours */
    int stay, task;
    bool there;     /* something of it is on the node */
    bool by_itself; /* if not: nobody had told it to end */
    bool well;      /* and it ended well */
} st_told_task;

typedef struct st_told_node {
    int32_t node;
    bool heard;      /* since the start */
    bool clear;      /* on its last list, with nothing that is not on it */
    bool over;       /* its lease is, by our reckoning */
    int64_t left_ms; /* of its lease */
    int64_t epoch;   /* the highest it has heard of */
} st_told_node;

typedef struct st_told {
    ST_VEC(st_told_node) nodes;
    ST_VEC(st_told_task) tasks; /* by node */
} st_told;

static inline void st_told_done(st_told *told)
{
    st_vec_free(&told->nodes);
    st_vec_free(&told->tasks);
}

/* What a task has written. Of `offset`, `since_ms` and `tail` the one counts that leaves least. */
typedef struct st_log_ask {
    uint64_t job;
    int stay; /* 0: the last that has written anything */
    int task;
    int64_t offset;   /* from this byte on */
    int64_t since_ms; /* what came then or later; 0: at any time */
    int64_t tail;     /* so many lines at the end, and of those `max` bytes; 0: all */
    size_t max;       /* bytes at most */
    int64_t now;
} st_log_ask;

typedef struct st_log_got {
    st_strbuf text;
    int64_t next; /* the offset behind it: where to go on */
    int stay;     /* whose it is; 0: not known */
    int newest;   /* the last stay that has written anything; 0: not known */
} st_log_got;

static inline void st_log_got_done(st_log_got *got)
{
    st_strbuf_done(&got->text);
}

/* What one task used since it was last asked for (ST_USED_TABLE; of what is no sum, the newest). */
typedef struct st_measure {
    uint64_t job;
    int64_t tenant; /* the serial of its account */
    int32_t node;
    uint16_t devs;
    st_used used;
} st_measure;

typedef struct st_measures {
    ST_VEC(st_measure) list;
} st_measures;

/* How nodes come to an engine. */
typedef enum st_engine_nodes {
    ST_NODES_ANNOUNCED, /* people announce them */
    ST_NODES_AGENTS,    /* agents register them with stintd */
    ST_NODES_FOUND,     /* it finds them (ST_REPORT_FOUND) */
} st_engine_nodes;

/* A driver. Functions may be NULL where there is nothing to do. */
typedef struct st_engine_ops {
    const char *name; /* as pools name it; at most ST_ENGINE_NAME bytes */
    uint32_t
        lacks; /* bit y set: it has not the way y (st_yield) to yield; of those in ST_NEED_WAYS */
    st_engine_nodes nodes;
    bool
        gone; /* of nodes it has found: it says when a halted job is gone (ST_REPORT_GONE), and devices wait for that */
    /* This stintd decides from now on; before anything else. NULL: only the field is set. */
    void (*lead)(st_engine *engine, int64_t epoch);
    void (*order)(st_engine *engine, const st_engine_order *order);
    /* From the control loop only: every node and every order that holds has been given since `lead`. What it finds beyond
     * them is a stranger and may be removed; before that it may be a job that has not been named yet. */
    void (*complete)(st_engine *engine);
    /* What is due; and when something will be (ST_TIME_NEVER: nothing). */
    void (*tick)(st_engine *engine, int64_t now);
    int64_t (*next_ms)(st_engine *engine);
    /* From the control loop only: all nodes after a start, before any order, and each one that is
     * new or whose state or pool has changed, after the commit. */
    void (*node)(st_engine *engine, const st_engine_node *node);
    /* From the control loop only: all images that the node is to have ready and keep, a JSON list of what orders say of an
     * image. NULL: nothing needs to be prepared on its nodes. */
    void (*images)(st_engine *engine, int32_t node, const char *list);
    /* Appends what there is and says where to go on; ST_ENOENT when there is no log at all. */
    int (*logs)(st_engine *engine, const st_log_ask *ask, st_log_got *ret, st_err *err);
    /* From the control loop only: where in which history what it is told stands. `branch` is the epoch in which this
     * history left another one, which is void since; 0: none did. `position` is what was committed last. */
    void (*place)(st_engine *engine, int64_t branch, int64_t position);
    /* From the control loop only. How much it may say from now on; `adopted` are jobs that stay as they are (of
     * ST_LEAD_CLEAR). NULL: it has no agents. */
    void (*restored)(st_engine *engine, st_lead lead, const uint64_t *adopted, size_t n);
    /* Appends what agents said. */
    void (*told)(st_engine *engine, st_told *ret);
    /* From any thread, one at a time: appends what its tasks used since the last call. The first call begins it. */
    void (*measures)(st_engine *engine, st_measures *ret);
    /* From any thread: what the tasks of a job that is on devices have used in this stay, as last said; adds to *ret. False: it
     * knows of no such job. */
    bool (*used)(st_engine *engine, uint64_t job, st_used *ret);
    /* Likewise of each task lately, in the last minutes; `fn` is called under its lock. */
    bool (*ranks)(st_engine *engine, uint64_t job, st_rank_fn *fn, void *ctx);
    /* The engines it is made of, from 0; NULL behind the last. Without the function it is one. */
    const st_engine *(*part)(const st_engine *engine, size_t i);
    void (*free)(st_engine *engine);
} st_engine_ops;

/* What every engine begins with. */
struct st_engine {
    const st_engine_ops *ops;
    void (*report)(void *ctx, const st_report *report);
    void *ctx;
    int64_t epoch; /* set by st_engine_lead, before any order */
};

static inline void st_engine_lead(st_engine *engine, int64_t epoch)
{
    engine->epoch = epoch;
    if (engine->ops->lead)
        engine->ops->lead(engine, epoch);
}

/* The engine inside this process: jobs last as long as their document says (`sim: {run: 90s}`), or
 * a while that follows from their id, and write a few lines. */
st_engine *st_engine_sim_new(void);

/* Several engines as one; owns them. What is placed goes to the engine of its node. A node whose engine is not there is
 * reported as failed, and so is a gang that was placed on nodes of several. Asked for logs, the first is asked first. */
st_engine *st_engine_mux_new(st_engine *const *parts, size_t n);

/* Who of `engine`, which may be several, has the name; NULL: nobody. */
const st_engine *st_engine_named(const st_engine *engine, const char *name);
/* Whose the nodes of a pool are: who the pool names. Where it names nobody, nodes with an agent belong to the first
 * engine that agents register with, all others to the first whose nodes are announced, or to the only one. NULL: the
 * engine is not there. */
const st_engine *st_engine_of(const st_engine *engine, const char *name, bool agent);
/* Whether nodes come to one of them in this way. */
bool st_engine_has(const st_engine *engine, st_engine_nodes nodes);

#endif
