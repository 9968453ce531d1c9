/* The job: a gang of identical tasks, its shape, its state and its grants.
 *
 * States and their legal moves exist once, in ST_JOB_STATE_TABLE and st_job_may_move(). A job
 * owns devices exactly while it is RUNNING, NOTIFIED, CHECKPOINTING or STOPPING; a PAUSED job keeps
 * only its RAM, where its device memory now lives. */
#ifndef ST_MODEL_JOB_H
#define ST_MODEL_JOB_H

#include "model/mig.h"
#include "model/types.h"

/* X(id, name, what the job does in it) */
#define ST_JOB_STATE_TABLE(X)                                                             \
    X(ST_JOB_PENDING, "pending", "waits in the queue")                                    \
    X(ST_JOB_RUNNING, "running", "holds its devices and runs")                            \
    X(ST_JOB_NOTIFIED, "notified", "was warned that it will be preempted; it still runs") \
    X(ST_JOB_CHECKPOINTING, "checkpointing", "saves its work before it is preempted")     \
    X(ST_JOB_PAUSED, "paused", "is kept in host memory, off its GPUs")                    \
    X(ST_JOB_DONE, "done", "ended with exit status 0")                                    \
    X(ST_JOB_FAILED, "failed", "ended with another exit status, or could not be started") \
    X(ST_JOB_TIMEOUT, "timeout", "was ended at its time limit, or by its --end-by")       \
    X(ST_JOB_CANCELLED, "cancelled", "was cancelled")                                     \
    X(ST_JOB_STOPPING, "stopping", "was told to stop; its nodes have not confirmed that it is gone")
typedef enum st_job_state {
#define X(id, name, about) id,
    ST_JOB_STATE_TABLE(X)
#undef X
        ST_JOB_STATE_COUNT
} st_job_state;

/* Guaranteed: inside the floor at every ancestor. Burstable: on borrowed capacity. Booked: inside a booking. */
typedef enum st_class {
    ST_CLASS_NONE,
    ST_CLASS_GUARANTEED,
    ST_CLASS_BURSTABLE,
    ST_CLASS_BOOKED,
    ST_CLASS_COUNT
} st_class;

/* What becomes of the job when it must yield, gentlest first. X(id, name, what happens) */
#define ST_YIELD_TABLE(X)                                                                     \
    X(ST_YIELD_CHECKPOINT, "checkpoint", "the job is asked to save, and restarts from there") \
    X(ST_YIELD_PAUSE, "pause",                                                                \
      "the job moves to host memory as it is, and resumes on the same node")                  \
    X(ST_YIELD_REQUEUE, "requeue", "the job restarts from its last checkpoint")               \
    X(ST_YIELD_CANCEL, "cancel", "the job ends")
typedef enum st_yield {
#define X(id, name, about) id,
    ST_YIELD_TABLE(X)
#undef X
        ST_YIELD_COUNT
} st_yield;

/* What a job may need of a pool, as bits: permissions (st_allow) from below, and above them the ways to yield that not
 * every engine has. A job goes where its own is: it is not made to yield in a worse way than it asked for. */
#define ST_NEED_WAY_SHIFT 16
#define ST_NEED_WAYS      (((1u << ST_YIELD_CHECKPOINT) | (1u << ST_YIELD_PAUSE)) << ST_NEED_WAY_SHIFT)
static inline uint32_t st_way_needed(st_yield yield)
{
    return (1u << yield << ST_NEED_WAY_SHIFT) & ST_NEED_WAYS;
}
/* The word for the lowest bit of `needs`. */
const char *st_need_name(uint32_t needs);

/* What one task asks of one node. */
typedef struct st_shape {
    uint32_t types; /* bit t set: GPU type t will do; never 0 for a job with GPUs */
    st_level level;
    int gpus;         /* per task: whole GPUs at WHOLE, 0 or 1 otherwise */
    st_mig profile;   /* at MIG */
    int64_t share_m;  /* of one GPU, at MPS and TIME */
    int64_t vram_mib; /* per GPU; 0: all of it, or the share's part */
    int64_t cpu_m;    /* per task */
    int64_t ram_mib;  /* per task */
    uint32_t needs;   /* only pools that give all of this will do */
    uint64_t nodes;   /* only nodes of this pick of the fleet (st_fleet_pick); 0: any */
} st_shape;

typedef struct st_grant {
    int32_t node;
    uint16_t devs;    /* bit d set: device d of the node */
    int8_t mig_start; /* first memory slice at MIG, -1 otherwise */
} st_grant;

/* How a job is thought away: as if it had ended, or as if it had to yield, in which case one
 * that pauses stays in its nodes' memory. */
typedef enum st_out { ST_OUT_NOT, ST_OUT_ENDED, ST_OUT_YIELDED } st_out;

/* What keeps a job from running whatever room there is. */
typedef enum st_bar {
    ST_BAR_ORDER = 1, /* somebody said so, and will say when it is over (core/bar.c) */
    ST_BAR_BEGIN = 2, /* its window has not begun (core/window.c) */
    ST_BAR_END = 4,   /* its window ends, or has ended */
    ST_BAR_SLOT = 8,  /* its slot has no window left */
    ST_BAR_NODE =
        16, /* a node it is on drains, and its time is up (core/drain.c); gone with its devices */
    ST_BAR_AFTER = 32,     /* it waits for other jobs (core/after.c) */
    ST_BAR_HOLD = 64,      /* somebody holds it back until it is released (core/hold.c) */
    ST_BAR_THROTTLE = 128, /* as many of its array as may are before it (core/array.c) */
    ST_BAR_ALL = 255,
    ST_BAR_SINCE_22 = 31,
    ST_BAR_SINCE_15 = 15
} st_bar;
#define ST_BAR_WINDOW (ST_BAR_BEGIN | ST_BAR_END | ST_BAR_SLOT)
/* For as long as nothing happens that concerns it: no pass looks at it. */
#define ST_BAR_IDLE (ST_BAR_AFTER | ST_BAR_HOLD | ST_BAR_THROTTLE)

/* How a job must end for one that waits for it. X(id, name, what of it comes true) */
#define ST_AFTER_TABLE(X)                                  \
    X(ST_AFTER_ANY, "any", "it is over, however it ended") \
    X(ST_AFTER_OK, "ok", "it is done")                     \
    X(ST_AFTER_FAIL, "fail", "it is over and ended otherwise")
typedef enum st_after_how {
#define X(id, name, about) id,
    ST_AFTER_TABLE(X)
#undef X
        ST_AFTER_COUNT
} st_after_how;

/* What a job waits for: another one, or a whole array, which is over when its last job is, and done when all are. */
typedef struct st_await {
    uint64_t id;
    st_after_how how;
    bool array;
} st_await;
#define ST_AFTER_MAX 64 /* for one job */

/* Whether a job that fails is tried again, and when: after `wait_ms`, then twice as long each time, up to `most_ms`. */
typedef struct st_retries {
    int times; /* at most; 0: never */
    int64_t wait_ms, most_ms;
    bool timeout; /* also when its time limit has ended it */
} st_retries;
#define ST_RETRY_MAX         100
#define ST_RETRY_WAIT_MIN_MS INT64_C(1000)
#define ST_RETRY_WAIT_MAX_MS (INT64_C(7) * 86400 * 1000)

typedef struct st_job {
    /* What a round looks at of everybody who waits, side by side: thirty thousand whole ones are more than a cache
     * holds. */
    uint64_t id;
    int32_t account, user;
    int priority;
    st_job_state state;
    uint64_t booking; /* it runs inside that one, while there is; 0: none */
    uint16_t barred;  /* why it may not run, as bits of st_bar; 0: it may */
    bool held;        /* PENDING or PAUSED with `grants` a plan that waits for victims */
    bool stopping;    /* STOPPING or PAUSED: told to be gone, and not known to be */
    bool beyond;      /* waiting: the last pass did not get to it as a borrower */
    bool later[2]; /* in its last turn it found whom to displace, once protections end; by phase */
    struct st_shadow_job *shadow; /* where it would stand if its account were alone; NULL none */
    int64_t by_ms;                /* its deadline; 0: none */
    int64_t submit_ms;
    int64_t queued_ms;  /* since when it waits; at its last submit, requeue or pause */
    uint64_t looked[2]; /* by phase: the last round in which it had its turn */
    uint64_t joined;    /* the last one that began while it waited */
    struct {
        int priority;
        int64_t usage, key;
    } turn;              /* its place in its account's order, when that round began */
    uint64_t turn_print; /* core's, derived: what its usage there was read from; 0: nothing */
    uint64_t numbered;   /* core's, derived: the numbering under which its shape has, 0: none, */
    int32_t number;      /* this number */
    uint32_t inside; /* core's, derived: types, + 1 each, on which it would be inside its floor, */
    uint64_t inside_print; /* while what that depends on has this print */
    int64_t rest_ms;       /* waiting: it borrows nothing before; 0: it may */
    st_shape shape;
    int tasks;
    int32_t pool; /* -1: any */

    /* As submitted. */
    char *name;
    st_topo topo;
    bool topo_required;
    bool latency_critical;
    bool meek;        /* preempts nobody of its own account, and nobody while it borrows */
    int64_t grace_ms; /* what it needs to save when it must yield; 0: the policy's grace */
    bool fails;       /* it has failed when a node under it has, and is not started again */
    int64_t limit_ms; /* ST_TIME_NEVER: a service, or no limit given */
    st_yield yield;
    uint64_t series;   /* it runs only inside bookings of that one; 0: wherever it may */
    int64_t begin_ms;  /* not before; 0: at once */
    int64_t end_by_ms; /* off its devices and over by then; 0: whenever */
    uint64_t hold;     /* a hard one: the booking that is kept for it */
    int64_t close_ms;  /* when it is told so, with its notice and grace ahead */
    bool keeps; /* it goes on waiting for what can never come true; else it is cancelled then */
    st_retries retry;
    uint64_t array; /* that it is a part of; 0: none */

    /* As it stands. */
    st_class class;
    int32_t type;         /* GPU type it holds, -1 when none */
    st_grant *grants;     /* one per task while placed, held or paused; else NULL */
    uint64_t claimant;    /* while leaving: the job it yields to */
    st_grant *to;         /* while leaving only to go on elsewhere: where; else NULL */
    int64_t start_ms;     /* of this stay on devices */
    int64_t deadline_ms;  /* leaving: when the step ends; paused: when it is requeued */
    int64_t saving_ms;    /* CHECKPOINTING: since when */
    int64_t pause_ms;     /* what its last pause took, or more than that; 0: it had none */
    int64_t saved_ms;     /* run time that survives a requeue */
    int64_t served_ms;    /* time on devices in earlier stays, saved or lost */
    int64_t mark_ms;      /* on devices: run time since then is not saved yet */
    int64_t kept_ms;      /* paused: run time not saved but kept in memory */
    int64_t preempted_ms; /* when it last had to yield; -1 never */
    int64_t expect_ms;    /* running: jobs like it have ended by then; ST_TIME_NEVER unknown */
    int64_t promise_ms;   /* waiting: others may not delay it beyond; ST_TIME_NEVER none */
    bool demoted;         /* running: burstable only since its floor shrank */
    int64_t told_ms;      /* the start that was estimated for it */
    int64_t told_at_ms;   /* and when; -1 never */
    int stay;             /* how often it has started; going on after a pause is the same stay */
    int times;            /* how often it has been on devices: starts, and going on after pauses */
    int32_t fault;        /* it ends because that node, less one, has failed; 0: none has */
    st_job_state after;   /* what becomes of it then: PENDING or an end */
    bool first;           /* and that it goes before others, since it lost a node */
    int64_t stop_ms;      /* when it was told; what it does after that is no work */
    st_await *
        afters; /* what it waits for: those of them that are not over, or ended otherwise; NULL: none */
    int nafters;
    uint64_t never; /* what it waits for and ended otherwise: that one; 0: none has */
    int held_by;    /* how strong whoever holds it back is; 0: nobody does */
    int tries;      /* how often it has been tried again */
    bool again;     /* it is leaving its devices to be tried again */
    int preemptions;
    int stage; /* of its life, as far as noted; see share/life.h */

    /* Derived and scratch; never saved. */
    int32_t slot;                /* where it stands in core's list of placed jobs */
    bool idle;                   /* it is in core's list of those that no pass looks at */
    int32_t listed, listed_slot; /* where it stands among borrowers: list + 1, place in it */
    bool by_right;               /* of reclassing: as good as guaranteed */
    st_out out;                  /* left out of a what-if view */
    int32_t yields;              /* core's: where it stands among those who could be displaced */
    int64_t key; /* with the policy `swap`: its key in the account's order, for claims */
    struct {
        uint64_t version; /* of the forecast that was asked; 0: none */
        int64_t ran_ms, limit_ms, p90_ms;
    } guess; /* how long it will run, for one that waits */
} st_job;

const char *st_job_state_name(st_job_state state);
const char *st_class_name(st_class class);
const char *st_yield_name(st_yield yield);
const char *st_after_name(st_after_how how);
int st_job_state_parse(const char *name);

bool st_job_may_move(st_job_state from, st_job_state to);
void st_job_move(st_job *job, st_job_state to);

void st_job_free(st_job *job);

/* RUNNING, NOTIFIED, CHECKPOINTING or STOPPING. */
bool st_job_on_devices(const st_job *job);
/* NOTIFIED, CHECKPOINTING or STOPPING: still there, already on its way out. */
bool st_job_leaving(const st_job *job);
bool st_job_ended(const st_job *job);

/* What quota counts, for one task and for the gang. */
int64_t st_shape_gpu_m(const st_shape *shape);
int64_t st_job_gpu_m(const st_job *job);
int64_t st_job_cpu_m(const st_job *job);
int64_t st_job_ram_mib(const st_job *job);

/* Run time so far, what of it would be lost, and the moment its limit strikes: of a job on
 * devices, or of one that would start at `now`. */
int64_t st_job_ran_ms(const st_job *job, int64_t now);
int64_t st_job_served_ms(const st_job *job, int64_t now); /* lost time included */
int64_t st_job_unsaved_ms(const st_job *job, int64_t now);
int64_t st_job_end_ms(const st_job *job, int64_t now);

#endif
