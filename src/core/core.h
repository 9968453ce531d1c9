/* The core: one deterministic state machine over accounts, nodes and jobs.
 *
 *     st_core_step(core, event, now) -> effects
 *
 * Everything that happens comes in as an event; everything that must be done or told comes
 * out as an effect. No clock, no I/O, no randomness: stintd, the simulator, the tests and
 * what-if questions run these same functions, and the same events give the same effects.
 *
 * Invariants (checked after every step by check/check.c):
 *  1 No device, node CPU or node RAM is given out beyond what it has; MIG layouts are legal.
 *  2 A gang has all its grants or none.
 *  3 At every ancestor use <= max; the guaranteed set is sound (admit/admit.h).
 *  4 A guaranteed job is never displaced for another account.
 *  5 Victims of one claim are burstable, past their minimum run time and cooldown, minimal as
 *    a set, and together at most `bound` times the claimant's GPUs.
 *  6 What is freed for a claimant goes to the claimant.
 *  7 After a step nobody waits who could start, except for capacity that is held or reserved
 *    for somebody named in the reasons; or, with a policy that bounds the search, behind so many
 *    others.
 *  8 Repeating a step with nothing new changes nothing.
 *  9 No two stays of one job overlap in what agents were told and have not said to be gone; nor are
 *    devices given out that such a stay has.
 *
 * Place in the law: base <- model <- {admit, share, place, forecast} <- core. */
#ifndef ST_CORE_CORE_H
#define ST_CORE_CORE_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "model/booking.h"
#include "model/fleet.h"
#include "model/policy.h"
#include "model/tree.h"

typedef struct st_core st_core;

/* ---- events ------------------------------------------------------------------------- */

#define ST_EVENT_TABLE(X)                                                                         \
    X(ST_EV_TIMER, "timer")                   /* time passed, nothing else */                     \
    X(ST_EV_TYPE, "type")                     /* a GPU type: u.type */                            \
    X(ST_EV_POOL, "pool")                     /* a pool: u.pool */                                \
    X(ST_EV_NODE, "node")                     /* a node joins: u.node */                          \
    X(ST_EV_NODE_STATE, "node_state")         /* it fails, drains, returns, goes: u.node_state */ \
    X(ST_EV_ACCOUNT, "account")               /* an account is made or changed: u.account */      \
    X(ST_EV_SUBMIT, "submit")                 /* u.job */                                         \
    X(ST_EV_FINISH, "finish")                 /* a job ended by itself: u.finish */               \
    X(ST_EV_CANCEL, "cancel")                 /* u.id */                                          \
    X(ST_EV_CHECKPOINTED, "checkpointed")     /* a job saved its progress: u.id */                \
    X(ST_EV_PRIORITY, "priority")             /* u.priority */                                    \
    X(ST_EV_POLICY, "policy")                 /* other knobs from now on: u.policy */             \
    X(ST_EV_TOLD, "told")                     /* a start was estimated: u.told */                 \
    X(ST_EV_POOL_CHANGE, "pool_change")       /* a pool allows other things: u.pool */            \
    X(ST_EV_UNSTARTED, "unstarted")           /* its node could not start it: u.id */             \
    X(ST_EV_POOL_REMOVE, "pool_remove")       /* a pool without nodes goes: u.pool.name */        \
    X(ST_EV_ACCOUNT_REMOVE, "account_remove") /* an empty account goes: u.account.name */         \
    X(ST_EV_AGENT, "agent")                   /* a node has an agent from now on: u.node_state */ \
    X(ST_EV_GONE, "gone")                     /* nothing of a stopping job is left: u.gone */     \
    X(ST_EV_LATE,                                                                                 \
      "late") /* of a job that waits again: its last stay had ended by itself: u.finish */        \
    X(ST_EV_LIMIT, "limit")               /* a job's time limit: u.limit */                       \
    X(ST_EV_BAR, "bar")                   /* a job may not run, or may again: u.bar */            \
    X(ST_EV_BRANCH, "branch")             /* an old state goes on: u.branch */                    \
    X(ST_EV_ABSENT, "absent")             /* nothing of a job is where it should be: u.id */      \
    X(ST_EV_BOOK, "book")                 /* bookings are made, all or none: u.book */            \
    X(ST_EV_BOOK_CONFIRM, "book_confirm") /* one that was quoted, or its series: u.booking */     \
    X(ST_EV_BOOK_CANCEL, "book_cancel")   /* u.booking */                                         \
    X(ST_EV_BOOK_CHANGE, "book_change")   /* another window, or size: u.rebook */                 \
    X(ST_EV_TEST, "test")                 /* a node is to be tested: u.tested.node */             \
    X(ST_EV_TESTED, "tested")             /* what a test has found: u.tested */                   \
    X(ST_EV_LABELS, "labels")             /* a node has other labels: u.labels */                 \
    X(ST_EV_INCIDENT, "incident")         /* somebody has looked at a breaker: u.id */            \
    X(ST_EV_HOLD, "hold")                 /* a job is held back, or released: u.hold */           \
    X(ST_EV_ARRAY, "array")               /* an array has another throttle: u.array */
typedef enum st_event_kind {
#define X(id, name) id,
    ST_EVENT_TABLE(X)
#undef X
        ST_EV_COUNT
} st_event_kind;

#define ST_REASON_MAX \
    (4 * ST_NAME_MAX) /* bytes of why a node is in a state: what a log and a save can read again */

/* On whose word a node is in a state. */
typedef enum st_node_how {
    ST_HOW_SAID,   /* somebody's: it is so from now on */
    ST_HOW_FAULT,  /* an engine's, until it takes that back */
    ST_HOW_HEALED, /* it takes it back: the node is what it was */
    ST_HOW_RECALLED, /* what was noted elsewhere: a word; with `force` a fault, and `state` is what it was before */
    ST_HOW_COUNT
} st_node_how;

/* How long it takes until what is told to stop is gone, as far as anybody can count on it. */
#define ST_STOP_MS INT64_C(60000)

typedef struct st_job_spec {
    uint64_t id;      /* unique, chosen by the caller, never 0 */
    const char *name; /* for people; need not be unique */
    const char *account, *user;
    int32_t pool; /* -1: any */
    int tasks;
    st_shape shape; /* types 0: any GPU type of the fleet */
    st_topo topo;
    bool topo_required;
    bool latency_critical;
    int priority;
    int64_t limit_ms; /* ST_TIME_NEVER: none */
    st_yield yield;
    int64_t grace_ms;  /* what it needs to save when it must yield; 0: the policy's grace */
    uint64_t booking;  /* it runs inside that one; 0: none */
    uint64_t series;   /* it runs inside bookings of this one, one after the other; 0: none */
    const char *slot;  /* the same, by the name that those bookings have; NULL: none */
    int64_t begin_ms;  /* not before; 0: at once */
    int64_t end_by_ms; /* over by then; 0: whenever */
    int64_t by_ms;     /* its deadline; 0: none */
    bool hard;         /* admitted only with a place in the calendar */
    uint64_t hold; /* hard: the number of the booking that is kept for it, chosen by the caller */
    bool meek;     /* preempts nobody of its own account, and nobody while it borrows */
    bool fails;    /* it fails with its node, and is not started again */
    const char *nodes;      /* which will do (model/pick.h); NULL: any */
    const st_await *afters; /* what it waits for, none of it over yet */
    int nafters;
    bool keeps;     /* it is not cancelled when one of them ends otherwise */
    int held_by;    /* it is on hold from the beginning; 0: it is not */
    uint64_t array; /* that it is a part of, which is the id of the first of its jobs; 0: none */
    int throttle; /* how many of the array may run at a time; the first one's word; 0: any number */
    st_retries retry;
    const char *reader; /* the account of whoever reads a refusal; NULL: may know everything */
    const char *priority_class; /* for those who reckon what it costs; the core does not know it */
} st_job_spec;

typedef struct st_event {
    st_event_kind kind;
    union {
        struct {
            const char *name;
            int64_t vram_mib;
            st_board board;
        } type;
        struct {
            const char *name;
            uint32_t levels;
            int64_t oversub_m;
            st_pool_rules rules;
            bool force; /* of a change: although bookings lose their place */
        } pool;
        st_node_spec node;
        struct {
            int32_t node;
            st_node_state state;
            bool force; /* although bookings lose their place */
            st_node_how how;
            const char *by, *reason; /* NULL: nobody, none */
            int64_t since_ms;        /* of RECALLED */
            bool tests;              /* of ST_EV_AGENT: it can test the node */
            st_finding finding;      /* of FAULT; its words are `reason` */
            int64_t by_ms;      /* of DRAINING, said: when its jobs must be off it; 0 whenever */
            st_drain_then then; /* ... and what becomes of them */
            int part;           /* d + 1: its GPU d alone; 0: the node */
        } node_state;
        struct {
            int32_t node;
            int64_t test; /* its number */
            bool passed;
            const char *reason; /* why not */
            st_finding finding; /* likewise; its words are `reason` */
            uint16_t without;   /* GPUs that were left out of it */
        } tested;
        struct {
            int32_t node;
            const char *text; /* all of them (model/labels.h); NULL: none */
            bool force;       /* although bookings lose their place */
        } labels;
        st_account_spec account;
        st_job_spec job;
        struct {
            uint64_t id;
            bool failed;
            bool final; /* failed in a way that is not tried again */
        } finish;
        uint64_t id;
        struct {
            uint64_t id;
            bool done; /* it had ended by itself, and well, before it was told to stop */
        } gone;
        struct {
            uint64_t id;
            int priority;
        } priority;
        struct {
            uint64_t id;
            int64_t limit_ms; /* ST_TIME_NEVER: none */
        } limit;
        struct {
            uint64_t id;
            bool on;
            int by; /* how strong whoever says so is; what one holds nobody weaker releases */
        } hold;
        struct {
            uint64_t id;
            int throttle; /* 0: any number */
        } array;
        struct {
            uint64_t id;
            bool on;
            int64_t notice_ms; /* what it has from now on before it must leave its devices */
        } bar;
        st_policy policy;
        struct {
            uint64_t id;
            int64_t start_ms;
        } told;
        /* What may have been given out in a future that is lost, and is not given out again. */
        struct {
            uint64_t job;   /* the last job whose stays are concerned */
            int stay;       /* stays of such jobs */
            int64_t serial; /* serials of accounts */
        } branch;
        struct {
            st_booking_spec spec;
            const st_window *windows; /* a booking each, with the numbers that follow the first's */
            int nwindows;
            int64_t hold_ms; /* how long it is held for whoever asked */
            bool confirm;    /* at once */
        } book;
        struct {
            uint64_t id;
            bool series; /* all of the series that has this number */
        } booking;
        struct {
            uint64_t id;
            int64_t from_ms, to_ms;
            int tasks;
            int parts;          /* divided: so many, which need as many tasks; 0: as it was */
            const char *reader; /* as in st_booking_spec */
        } rebook;
    } u;
} st_event;

/* An event as bytes, for a log that is played again. Decoding reads one event at *at and moves
 * it on; texts go into the arena; damaged bytes are refused. */
void st_event_encode(const st_event *event, st_strbuf *out);
int st_event_decode(const char *data, size_t len, size_t *at, st_arena *arena, st_event *ret,
                    st_err *err);

/* ---- effects ------------------------------------------------------------------------ */

/* X(id, name, what it tells a listener). Of DRAIN `node` is the one that drains, and `until_ms` its deadline. Of END `node` is the one that failed under it. Of INCIDENT `other` is its number, of GPU its place on the node. Of BOOKING `other` is its number, `until_ms` when that state should end, and
 * the grants are its plan. */
#define ST_EFFECT_TABLE(X)                                                                         \
    X(ST_FX_QUEUED, "queued", "the job was accepted")                                              \
    X(ST_FX_START, "start", "the job starts; grants says where")                                   \
    X(ST_FX_RESUME, "resume", "a paused job continues")                                            \
    X(ST_FX_CLASS, "class", "a running job became guaranteed or burstable")                        \
    X(ST_FX_HOLD, "hold", "devices are held for the job while others are preempted for it")        \
    X(ST_FX_UNHOLD, "unhold", "they are no longer held")                                           \
    X(ST_FX_NOTIFY, "notify", "the job will be preempted; until says when at the latest")          \
    X(ST_FX_SPARE, "spare", "the job will not be preempted after all")                             \
    X(ST_FX_CHECKPOINT, "checkpoint", "the job must save now; until says when at the latest")      \
    X(ST_FX_PAUSE, "pause", "the job left its GPUs and is kept in host memory")                    \
    X(ST_FX_REQUEUE, "requeue", "the job left its devices and waits again")                        \
    X(ST_FX_END, "end", "the job is over; state says how")                                         \
    X(ST_FX_FLOOR, "floor", "the floor of an account changed because nodes came or went")          \
    X(ST_FX_NODE, "node", "the state of a node changed")                                           \
    X(ST_FX_STOP, "stop", "the job was told to stop; its devices are free once its nodes confirm") \
    X(ST_FX_BOOKING, "booking", "a booking has another state or place")                            \
    X(ST_FX_INCIDENT, "incident",                                                                  \
      "something is wrong with nodes, and state says what is new of it; or a node reported "       \
      "something that cannot be true; or requests of a job there became slow and no neighbour "    \
      "explains it")                                                                               \
    X(ST_FX_DRAIN, "drain", "a node the job is on drains; until says when the job must be off it") \
    X(ST_FX_RETRY, "retry", "the job failed and is tried again; until says when at the earliest")  \
    X(ST_FX_GPU, "gpu", "one GPU of a node went out of service, or is back")
typedef enum st_effect_kind {
#define X(id, name, about) id,
    ST_EFFECT_TABLE(X)
#undef X
        ST_FX_COUNT
} st_effect_kind;

typedef struct st_effect {
    st_effect_kind kind;
    int64_t at_ms;
    uint64_t job;          /* 0 when it is about an account or a node */
    uint64_t other;        /* the claimant a victim yields to */
    int32_t account, node; /* -1 none */
    st_job_state state;    /* of the job afterwards */
    st_class class;
    int64_t until_ms;
    union {                    /* by kind: */
        int64_t type;          /* START, RESUME: of its GPUs; -1 none */
        int64_t lost_gpu_ms;   /* REQUEUE, END: milli-GPU times ms */
        int64_t floor_m;       /* FLOOR: milli-GPU */
        int64_t node_state;    /* NODE, GPU: st_node_state */
        int64_t after;         /* STOP: the st_job_state that follows */
        int64_t moves;         /* NOTIFY: 1: it has a place to go to */
        int64_t booking_state; /* BOOKING: st_booking_state, with ST_BOOKING_DEGRADED */
        int64_t news;          /* INCIDENT: st_incident_news */
        int64_t then;          /* DRAIN: st_drain_then */
        int64_t value;         /* whichever it is, for those who compare effects */
    };
    int64_t
        unsaved_ms; /* time on devices since its last checkpoint: PAUSE keeps it, REQUEUE and END lose it */
    bool ordered; /* the job leaves because it is barred, and for nobody else */
    int stay;     /* of the job: how often it has started */
    int times;    /* ... and has been on devices */
    uint64_t
        never; /* of END: what it waited for ended otherwise, and it is cancelled for that; 0: not so */
    size_t grants_at; /* where its grants begin in st_effects.grants */
    int ngrants;
} st_effect;

typedef struct st_effects {
    ST_VEC(st_effect) list;
    ST_VEC(st_grant) grants;
} st_effects;

void st_effects_clear(st_effects *fx);
void st_effects_done(st_effects *fx);
const char *st_effect_name(st_effect_kind kind);
const char *st_event_name(st_event_kind kind);

/* ---- deadlines ---------------------------------------------------------------------- */

/* X(id, name, what it means) */
#define ST_DEADLINE_TABLE(X)                                                      \
    X(ST_DEADLINE_NONE, "none", "it has no deadline")                             \
    X(ST_DEADLINE_OPEN, "open", "it may be met; nothing is kept for it")          \
    X(ST_DEADLINE_PROMISED, "promised", "a place in the calendar is kept for it") \
    X(ST_DEADLINE_AT_RISK, "at_risk", "as things are it will or may not be met")  \
    X(ST_DEADLINE_MET, "met", "the job was done by then")                         \
    X(ST_DEADLINE_MISSED, "missed", "the job was not done by then")
typedef enum st_deadline {
#define X(id, name, about) id,
    ST_DEADLINE_TABLE(X)
#undef X
        ST_DEADLINE_COUNT
} st_deadline;

const char *st_deadline_name(st_deadline state);

/* ---- reasons ------------------------------------------------------------------------ */

/* X(code, name, whether it alone keeps the job from starting, what it means, what the user can do).
 * What the fields of an st_reason hold, by code: max, user_limit: used, asked and bound of `dim` or `type` at
 * account. over_floor: used and bound of account. gpus_busy, cpu, ram, nodes_down: asked tasks, used: those that
 * fit. topology: inside one domain of `dim`. held, reserved, reclaim_reserved: `other`. reclaim_bound: `used` GPUs
 * for `asked`. moves: `used` jobs with `bound` milli-GPU. no_nodes: of asked tasks `bound` fit; dim: pool + 1.
 * nodes: asked and used as there, bound: its pick, dim: GPUs of a task. stopping: `asked` jobs; used 1: itself. lookahead:
 * `bound` stand before it. window: dim is the st_bar. booking: used 1: it has not begun. after, never: `other` is one of
 * `asked`, an array where used is 1; dim: st_after_how. on_hold: used: how strong whoever holds it is. throttle: bound.
 * retry: used tries of `bound`. until_ms where it is a matter of time. */
#define ST_REASON_TABLE(X)                                                                         \
    X(ST_WHY_MAX, "max", true, "the account would hold more than its max",                         \
      "wait until one of its jobs ends, or ask an admin for a higher max")                         \
    X(ST_WHY_USER_LIMIT, "user_limit", true,                                                       \
      "you would hold more in this account than one user may",                                     \
      "wait until one of your jobs ends, or ask an admin for a higher limit")                      \
    X(ST_WHY_WEIGHT_ZERO, "weight_zero", true,                                                     \
      "the job exceeds the guarantee, and the account may not borrow (weight 0)",                  \
      "wait until a job of the account ends, or ask an admin for a weight")                        \
    X(ST_WHY_OVER_FLOOR, "over_floor", false, "the guarantee is used up, so the job must borrow",  \
      "wait for idle GPUs, or ask for fewer GPUs")                                                 \
    X(ST_WHY_GPUS_BUSY, "gpus_busy", true, "too few GPUs are free",                                \
      "wait, ask for fewer GPUs, or allow more GPU types (--type)")                                \
    X(ST_WHY_FRAGMENTED, "fragmented", true, "enough GPUs are free, but not in this shape",        \
      "use more tasks with fewer GPUs each")                                                       \
    X(ST_WHY_TOPOLOGY, "topology", true,                                                           \
      "the tasks fit, but not inside one domain of the required level",                            \
      "prefer the level instead of requiring it (--topology prefer:rack)")                         \
    X(ST_WHY_CPU, "cpu", true, "GPUs are free, but not enough CPUs beside them",                   \
      "ask for fewer CPUs per task (--cpu)")                                                       \
    X(ST_WHY_RAM, "ram", true, "GPUs are free, but not enough RAM beside them",                    \
      "ask for less RAM per task (--ram)")                                                         \
    X(ST_WHY_NODES_DOWN, "nodes_down", true, "only nodes that are down or draining could take it", \
      "wait, or ask the operator when the nodes return")                                           \
    X(ST_WHY_HELD, "held", true,                                                                   \
      "the GPUs it needs are held for another job, for which others are being preempted", "wait")  \
    X(ST_WHY_RESERVED, "reserved", true, "the GPUs it needs are reserved for a job ahead of it",   \
      "set a shorter --limit: a job that ends before the reservation begins may start now")        \
    X(ST_WHY_LOOKAHEAD, "lookahead", true,                                                         \
      "too many blocked jobs are ahead of it (policy lookahead)",                                  \
      "wait, or raise its priority inside your account")                                           \
    X(ST_WHY_UNSEEN, "unseen", true, "the scheduler is still looking at jobs ahead of it",         \
      "wait a moment: the next pass looks at it")                                                  \
    X(ST_WHY_COOLDOWN, "cooldown", true,                                                           \
      "it was preempted twice within the cooldown and may not borrow for now",                     \
      "wait until the stated time")                                                                \
    X(ST_WHY_PINNED, "pinned", true,                                                               \
      "it is paused in the memory of its nodes, whose GPUs are busy",                              \
      "wait: after pause_limit it restarts elsewhere")                                             \
    X(ST_WHY_YIELDING, "yielding", true, "other jobs are being preempted for it",                  \
      "wait until the stated time")                                                                \
    X(ST_WHY_RECLAIM_PROTECTED, "reclaim_protected", false,                                        \
      "jobs could be preempted for it, but have not run for min_run yet",                          \
      "wait until the stated time")                                                                \
    X(ST_WHY_RECLAIM_BOUND, "reclaim_bound", false,                                                \
      "it would preempt more GPUs than the policy reclaim_bound allows",                           \
      "wait: the bound is lifted after reclaim_patience")                                          \
    X(ST_WHY_RECLAIM_RESERVED, "reclaim_reserved", false,                                          \
      "what could be preempted for it is reserved for a job ahead of it", "wait")                  \
    X(ST_WHY_RECLAIM_NONE, "reclaim_none", false,                                                  \
      "preempting every job it may preempt would not free enough GPUs",                            \
      "wait, or ask for fewer GPUs")                                                               \
    X(ST_WHY_MOVES, "moves", false,                                                                \
      "moving running jobs would make a place for it, but the policy defrag is off",               \
      "ask the operator to consider defrag")                                                       \
    X(ST_WHY_NO_NODES, "no_nodes", true, "no node of this GPU type and pool could ever take it",   \
      "allow another GPU type (--type) or pool (--pool)")                                          \
    X(ST_WHY_STOPPING, "stopping", true,                                                           \
      "it, or a job preempted for it, has not left its devices yet",                               \
      "wait, at most until the lease of the nodes ends")                                           \
    X(ST_WHY_CAP, "cap", true, "a spend cap leaves no room for it",                                \
      "wait for the next month, or ask an admin for a higher cap")                                 \
    X(ST_WHY_BOOKED, "booked", true, "the GPUs it could use are booked",                           \
      "wait until the stated time, or set a --limit that ends before it")                          \
    X(ST_WHY_BOOKING, "booking", true, "its booking has no room for it now",                       \
      "wait until the booking begins, or until another job inside it ends")                        \
    X(ST_WHY_WINDOW, "window", true, "the window in which it may run is not open",                 \
      "wait until the stated time; cancel it where no window is left")                             \
    X(ST_WHY_MEEK, "no_preempt", false,                                                            \
      "its priority class has no right to preempt; with one it would start",                       \
      "wait, or submit it in a class that preempts (--class)")                                     \
    X(ST_WHY_NODES, "nodes", true, "too few of the nodes it allows have room",                     \
      "wait, or allow other nodes (--node-label, --exclude-node)")                                 \
    X(ST_WHY_AFTER, "after", true, "it waits for other jobs to end",                               \
      "wait for the named job, or cancel this one")                                                \
    X(ST_WHY_NEVER, "never", true,                                                                 \
      "a job that it waits for did not end as it must, so this one can never start",               \
      "cancel it, and submit it again if you still want it")                                       \
    X(ST_WHY_ON_HOLD, "on_hold", true, "it is on hold",                                            \
      "release it (`stint release`); what an admin holds only an admin releases")                  \
    X(ST_WHY_THROTTLE, "throttle", true, "enough jobs of its array are running or ahead of it",    \
      "wait, or raise the throttle (`stint array ID --throttle N`)")                               \
    X(ST_WHY_RETRY, "retry", true, "it failed and waits before it is tried again",                 \
      "wait until the stated time, or cancel it")
typedef enum st_why {
#define X(id, name, blocks, means, remedy) id,
    ST_REASON_TABLE(X)
#undef X
        ST_WHY_COUNT
} st_why;

typedef struct st_reason {
    st_why code;
    int32_t account, type; /* -1 none */
    int dim;               /* st_dim, st_limit_kind or st_topo, by code */
    int64_t used, asked, bound;
    uint64_t other;
    int64_t until_ms;
} st_reason;

typedef ST_VEC(st_reason) st_reasons;

const char *st_reason_name(st_why code);
bool st_reason_blocks(st_why code);
/* One sentence for a person who stands at the account `reader` (ST_ROOT: may know everything).
 * Names and amounts of accounts that are not below it are left out. */
void st_reason_text(const st_core *core, const st_reason *reason, int32_t reader, st_strbuf *out);

/* ---- the machine -------------------------------------------------------------------- */

st_core *st_core_new(const st_policy *policy);
void st_core_free(st_core *core);

/* Apply one event, expire what is due, and schedule. On failure nothing changed. */
int st_core_step(st_core *core, const st_event *event, int64_t now, st_effects *fx, st_err *err);

/* The two halves, for callers that apply several events of one moment before scheduling. */
int st_core_apply(st_core *core, const st_event *event, int64_t now, st_effects *fx, st_err *err);
void st_core_pass(st_core *core, int64_t now, st_effects *fx);
/* The same outcome as a pass, with less work where only submits came since the last one. */
void st_core_settle(st_core *core, int64_t now, st_effects *fx);

/* When the core next wants a timer event; ST_TIME_NEVER when it is content. */
int64_t st_core_next_timer(const st_core *core);

/* Everything that keeps a waiting job from starting now. Changes nothing. */
int st_core_explain(st_core *core, uint64_t id, st_reasons *ret, st_err *err);

/* When each waiting job should start if everything goes on as it is: jobs run as long as such
 * jobs usually do, or to their limits where that is not known; nobody new comes.
 * ST_TIME_NEVER where it waits for a job without an end. In the order in which they would be
 * looked at; plans that wait for their victims are not among them.
 *
 * Eight in ten jobs with such an estimate started from lo_ms to hi_ms, of the last `seen`; 0:
 * too few to say, and both are start_ms. It knows of estimates that came back as ST_EV_TOLD. */
typedef struct st_estimate {
    uint64_t job;
    int64_t start_ms;
    int64_t lo_ms, hi_ms;
    int seen;
} st_estimate;

typedef ST_VEC(st_estimate) st_estimates;

int st_core_estimate(const st_core *core, st_estimates *ret, st_err *err);

/* Whether an array has jobs that are not over; how many of it may run at a time, 0: any number; and whether one has
 * not ended well. What is not asked for is NULL. */
bool st_core_array(const st_core *core, uint64_t id, int *ret_throttle, bool *ret_spoilt);

/* For whom capacity is reserved, in order, as of the last pass. */
typedef struct st_reserved {
    uint64_t job;
    int64_t at_ms; /* when such jobs usually have made room */
    int64_t by_ms; /* when their limits will have, a promise up to the policy's `overstay`;
                      ST_TIME_NEVER: some have none */
    int32_t type;
    bool guaranteed; /* inside its floor */
    bool claims;     /* it counts on displacing others once their protections end */
} st_reserved;

typedef ST_VEC(st_reserved) st_reserved_list;

void st_core_reserved(const st_core *core, st_reserved_list *ret);

/* For the simulation: whether what is kept from pass to pass is what would be found anew. */
int st_core_audit(st_core *core, st_err *err);

/* Likewise: whether the last pass left something for the next one, a moment later; and a copy that
 * leaves nothing, however much there is to look at. */
bool st_core_resumes(const st_core *core);
int st_core_thorough(const st_core *core, st_core **ret, st_err *err);

/* ---- bookings --------------------------------------------------------------------------- */

#define ST_BOOKING_DEGRADED 256 /* in an effect's booking_state */
#define ST_WINDOWS_MAX      1000

/* X(id, name, what keeps a window from being booked) */
#define ST_BOOK_TABLE(X)                                                                     \
    X(ST_BOOK_OK, "ok", "it fits")                                                           \
    X(ST_BOOK_PAST, "past", "it begins before now")                                          \
    X(ST_BOOK_HORIZON, "horizon", "it begins further ahead than the policy booking_horizon") \
    X(ST_BOOK_LENGTH, "length", "it is empty, or longer than the policy booking_length")     \
    X(ST_BOOK_QUOTA, "quota",                                                                \
      "an account would have more booked than its limits allow, or a pool than its own")     \
    X(ST_BOOK_SHARE, "share", "all bookings would have more than the policy booking_share")  \
    X(ST_BOOK_ACCOUNT, "account_share",                                                      \
      "the organisation would have more than the policy booking_account_share")              \
    X(ST_BOOK_FLOORS, "floors", "guarantees and other bookings leave too little")            \
    X(ST_BOOK_PLACE, "place", "enough GPUs are left, but not in this shape")
typedef enum st_book_why {
#define X(id, name, about) id,
    ST_BOOK_TABLE(X)
#undef X
        ST_BOOK_COUNT
} st_book_why;

/* The limit on bookings that one would break. */
typedef struct st_book_over {
    int32_t account;     /* whose limit; -1: the pool's */
    int32_t pool;        /* -1: the account's */
    st_book_limit limit; /* of an account; of a pool, how far ahead or how many at one moment */
    int64_t would, bound;
} st_book_over;

#define ST_BOOK_OVER_TEXT 320
/* One sentence about it for whoever stands at the account `reader`. */
const char *st_core_book_over_text(const st_core *core, const st_book_over *over, int32_t reader,
                                   char ret[ST_BOOK_OVER_TEXT]);

/* Whether one window can be had. */
typedef struct st_book_quote {
    st_book_why why;
    int64_t at_ms;                /* the first moment that is too tight */
    int64_t need_m, have_m;       /* of the GPU type there, for share, account_share and floors */
    st_book_over over;            /* for quota */
    int64_t displaces_m;          /* borrowers on the devices it would have now, */
    int64_t displaces_own_m;      /* and those of its account and below among them */
    int64_t earlier_ms, later_ms; /* other starts for the same length; ST_TIME_NEVER: none found */
    int fewer;                    /* tasks that would fit */
    uint32_t types;               /* bit t set: it would fit on type t */
} st_book_quote;

const char *st_book_why_name(st_book_why why);
/* Each window for itself and beside those before it. Alternatives are looked for where it does not fit. Changes
 * nothing. */
int st_core_quote(st_core *core, const st_booking_spec *spec, const st_window *windows, size_t n,
                  st_book_quote *ret, st_err *err);

/* All bookings that are not over, in order of their numbers. */
size_t st_core_nbookings(const st_core *core);
const st_booking *st_core_booking_at(const st_core *core, size_t i);
/* How the deadline of a job stands that is there. */
st_deadline st_core_deadline(const st_core *core, const st_job *job);
const st_booking *st_core_booking(const st_core *core, uint64_t id); /* NULL: unknown, or over */
/* How long before its start a booking closes, and how long after its end it is clear. */
int64_t st_core_book_lead_ms(const st_core *core);
int64_t st_core_book_tail_ms(const st_core *core);

/* ---- incidents --------------------------------------------------------------------------- */

/* Those that are open, and the last that are over, by number. */
size_t st_core_nincidents(const st_core *core);
const st_incident *st_core_incident_at(const st_core *core, size_t i);
const st_incident *st_core_incident(const st_core *core, uint64_t id); /* NULL: unknown */
st_scope st_core_incident_scope(const st_core *core, const st_incident *incident);
/* Whether saying once more that the node has this fault would change nothing: it is held. */
bool st_core_holds(const st_core *core, int32_t node, st_fault kind);

/* A hash over all effects so far: equal runs have equal hashes. */
uint64_t st_core_hash(const st_core *core);

/* Save everything that matters and nothing derived; loading gives a core that goes on the
 * same way. A damaged save is refused. */
void st_core_save(const st_core *core, st_strbuf *out);
int st_core_load(const char *data, size_t len, st_core **ret, st_err *err);

/* How often a job has started and been on devices, where a save from before that was counted does not
 * know, or has less than was told outside. */
void st_core_recall_stay(st_core *core, uint64_t id, int stay, int times);

/* Reading the state. */
const st_policy *st_core_policy(const st_core *core);
const st_tree *st_core_tree(const st_core *core);
const st_fleet *st_core_fleet(const st_core *core);
int64_t st_core_now(const st_core *core);
const st_job *st_core_job(const st_core *core, uint64_t id); /* NULL: unknown or ended */
/* All live jobs, in order of id. */
size_t st_core_njobs(const st_core *core);
const st_job *st_core_job_at(const st_core *core, size_t i);
/* Whether a running job may not be displaced yet, and until when: by an owner inside its floor, whom
 * no cooldown keeps out, or by a borrower. */
int64_t st_core_protected_until(const st_core *core, const st_job *job, bool from_owner);
/* With policy `as_if_alone`: whether a floor carries the job only in the place it would have if
 * its account were alone, and that place, a grant per task; NULL while it would be waiting. */
bool st_core_has_home(const st_job *job, const st_grant **ret_place);

#endif
