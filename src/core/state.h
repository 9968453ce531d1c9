/* Private to core: the state, and the steps its files share.
 *
 *   events.c    what each event changes
 *   submit.c    what a job must satisfy to be accepted
 *   limit.c     when a job may have more or less time
 *   pools.c     when a pool may allow other things
 *   moves.c     the only functions that give, hold or take away devices; they keep residents,
 *               quota counters and effects in step
 *   yield.c     the way out: notified -> checkpointing -> paused or requeued; deadlines
 *   stop.c      what is told to be gone and not known to be
 *   after.c, hold.c, array.c, retry.c   jobs that no pass looks at for now; flow.h has their parts
 *   due.c       who is due when
 *   borrowers.c who is outside its floor, and where that may change
 *   classes.c   capacity, floors, guaranteed or burstable
 *   queue.c     whose turn it is
 *   turn.c      what one job can do with its turn
 *   pass.c      one scheduling pass; the step
 *   yielders.c  who could be displaced, and who is leaving
 *   standings.c where accounts stand, kept for claims
 *   claim.c     reclaim and rebalance: whom to displace; claim_right.c: who may be; claim_line.c: in
 *               what order; claim_hope.c, claim_excess.c: when it need not be asked
 *   defrag.c    who moves so that another can land
 *   reserve.c    reservations of blocked jobs; reserve.h has its parts
 *   backfill.c  what others may use of what is reserved
 *   whatif.c    views of nodes with some jobs thought away
 *   explain.c   the reasons
 *   expect.c    how long jobs should run, learned from those that ended
 *   estimate.c  when waiting jobs should start
 *   book.c      bookings; book.h has its parts
 *   nodes.c     the life of a node; gpus.c: of one of its GPUs; drain.c: its deadline; incidents.c: what is wrong with
 *               nodes, and the breaker
 *   save.c      to bytes and back */
#ifndef ST_CORE_STATE_H
#define ST_CORE_STATE_H

#include "admit/admit.h"
#include "base/macros.h"
#include "base/mutant.h"
#include "calendar/slots.h"
#include "core/core.h"
#include "forecast/forecast.h"
#include "place/place.h"
#include "share/life.h"
#include "share/share.h"

/* What a reserved start goes by: declared limits, which are kept, or how long jobs really run,
 * which may be wrong. A job has one of each where they differ. */
typedef enum st_reserve_by { ST_BY_LIMITS = 1, ST_BY_FORECAST = 2 } st_reserve_by;

/* A blocked job's reserved start: by `at_ms` enough will have ended for `plan`. */
typedef struct st_reservation {
    uint64_t job;
    int64_t at_ms;
    unsigned by;        /* bits of st_reserve_by */
    bool also;          /* the entry before is of the same job */
    bool moves;         /* not blocked: it is on the move, and this is where to */
    int64_t promise_ms; /* by limits: others may not make it later */
    bool guaranteed;    /* made when guaranteed work had its turn */
    bool claims;        /* it counts on displacing others, so it moves with the time */
    int32_t type;
    int ntasks;
    st_grant *plan;
    uint64_t print;  /* of the plan; derived */
    uint64_t number; /* of the plan and its start; derived */
} st_reservation;

/* One task of a reservation's plan, in the list of its node. */
typedef struct st_plan_link {
    int32_t resv, task;
    int32_t next; /* of the same node, + 1; 0 none */
} st_plan_link;

/* Somebody on a node, and when he goes. */
typedef struct st_leaver {
    int64_t at_ms;
    st_job *job;
    const st_grant *grant;
} st_leaver;

typedef ST_VEC(st_leaver) st_leavers;

/* Which nodes were looked at; starting over is free. */
typedef struct st_marks {
    uint64_t *tick; /* by node */
    size_t n;
    uint64_t now;
} st_marks;

typedef struct st_profile st_profile;
typedef struct st_kept st_kept;

/* Views of nodes as they would be; nodes not touched look as they are. */
typedef struct st_whatif {
    st_view *views;
    uint32_t *stamp;
    ST_VEC(int32_t) touched; /* nodes that look different */
    ST_VEC(int32_t) later;   /* nodes to be rebuilt when somebody looks; stamped `due` */
    uint32_t *due;
    uint16_t *could;   /* scratch: GPUs a node could have free, then whether that makes room */
    uint32_t *outline; /* stamped: of the node's view there is only an outline yet */
    size_t n;
    uint32_t gen;
    st_when when;
    st_view none; /* nothing is free */
} st_whatif;

typedef ST_VEC(st_job *) st_job_vec;

typedef ST_VEC(uint64_t) st_id_heap;
typedef struct st_array st_array;

/* Who waits for a job or an array, as a list for each (after.c). */
typedef struct st_waiter {
    uint64_t job;
    int64_t next; /* the next row of the list; -1: none */
} st_waiter;

typedef struct st_waiters {
    st_idmap *first;
    ST_VEC(st_waiter) rows;
    size_t live; /* as many as live jobs wait for; other rows mean nothing any more */
} st_waiters;

/* A standing, as long as it is of this generation (standings.c). */
typedef struct st_noted {
    uint64_t generation;
    st_standing standing;
} st_noted;

/* Where accounts stand, and where they would without one of those who could be displaced, as long as nothing is
 * charged. */
typedef struct st_standings {
    uint64_t print, generation;
    uint64_t of;   /* the borrowers' version, */
    int64_t at_ms; /* and the moment of their order, which time alone may change (policy `swap`) */
    ST_VEC(st_noted) accounts;
    ST_VEC(st_noted) without; /* by who goes and the depth of the account */
} st_standings;

/* Who could be displaced, kept from claim to claim until somebody moves (yielders.c). */
typedef struct st_yielders {
    uint64_t version;
    int64_t now;
    st_job_vec all; /* running borrowers by account, each account's in the order they would go */
    /* Those past their protection, from borrowers and from owners; and when the first ends. */
    st_job_vec open[2];
    int64_t until_ms[2];
    st_job_vec sorted;
    size_t *count;     /* by account: where its part of `all` ends */
    size_t *ends[2];   /* the same for `open` */
    int64_t *held_m;   /* by account and type: what those of `all` hold who are in it or below */
    size_t *in_branch; /* by account: how many of `all` these are */
    /* By type: those of `all` who are on it, or on none; and what they hold, every amount once, least first. */
    struct {
        st_job_vec jobs;
        size_t *ends; /* by account: where its part ends */
        ST_VEC(int64_t) sizes_m;
        bool known;
    } on[ST_TYPES_MAX];
    /* Nodes that those who leave give up, as they will be, while the fleet's log stands where it
     * did. */
    ST_VEC(int32_t) left;
    st_view *views;
    uint64_t seen;
} st_yielders;

/* What claims of whole GPUs on one type could make free at most (claim_hope.c). */
typedef struct st_hope {
    int32_t type;
    int64_t most_m;                 /* without those who hold more */
    int32_t nodes[ST_DEVS_MAX + 1]; /* how many could have so many GPUs free */
} st_hope;

/* Good while the borrowers are these and the fleet's log stands there. */
typedef struct st_hopes {
    uint64_t version, seen;
    int64_t now;
    ST_VEC(st_hope) list;
} st_hopes;

/* Borrowers that failed at one account (borrowers.c). */
typedef struct st_borrowers {
    st_job_vec list; /* in no particular order */
    bool loose;      /* its floor, or one below, has room it had not when they were looked at */
} st_borrowers;

/* A moment at which something may be due for a job. */
typedef struct st_due_row {
    int64_t at_ms;
    uint64_t job;
} st_due_row;

/* A gang that lost a node, and whether it was guaranteed. */
typedef struct st_restart {
    uint64_t job;
    int priority;
    bool guaranteed;
} st_restart;

/* A claim that came to nothing, under the key it is remembered by (turn.c). */
typedef struct st_refusal {
    uint64_t key;
    int64_t how;
} st_refusal;

/* By type: how often its nodes had changed, + 1, when a shape was found to fit nowhere on it; 0: it was not
 * (misfit.c). */
typedef struct st_nowhere {
    uint64_t changes[ST_TYPES_MAX];
    int64_t lacks[ST_TYPES_MAX]; /* so many tasks more would have to fit, at least */
} st_nowhere;

/* A shape that only reservations keep out, at least so many tasks of it: how often the nodes of its type had changed,
 * + 1, and where the fleet's log stood (misfit.c). */
typedef struct st_walled {
    uint64_t changes, at;
    int64_t lacks;
} st_walled;

/* The nodes of a type that have changed lately, and what they have free (misfit.c). */
typedef struct st_news {
    /* Of its changes: how many there were before the last round, after it, and when they were looked through. Two
     * rounds, for who had its turn early in the last one has not seen what came of it. */
    uint64_t from, mid, to;
    uint64_t from_at, mid_at; /* where that is in the fleet's log */
    /* By GPUs of a task: how many the nodes have room for that changed. [0]: of tasks that share GPUs, or INT32_MAX. */
    int32_t room[ST_DEVS_MAX + 1];
} st_news;

struct st_core {
    st_policy policy;
    st_tree *tree;
    st_fleet *fleet;
    st_placer *placer;
    ST_VEC(st_job *) jobs;  /* live ones, by id */
    ST_VEC(st_job *) ended; /* until the pass is over */
    st_job_vec placed;      /* those on devices, in no particular order */
    uint64_t version;       /* counts changes of who may be displaced, and in what order */
    uint64_t loosened;      /* counts what accounts no longer hold, or will not */
    st_idmap *by_id;
    int lowest;         /* no job has a lower priority than this */
    st_job_vec off;     /* those who are not, likewise; a job's slot is in either */
    st_job_vec idle;    /* or in this: those who wait, and no pass needs to look at (flow.h) */
    st_waiters waiters; /* derived: who waits for whom */
    st_id_heap doomed;  /* derived: who waits for what can never come true, and ends for it */
    size_t ndoomed;     /* derived: how many; some in `doomed` may be over */
    int64_t doomed_ms;  /* when the next of them do */
    ST_VEC(st_array *) arrays;     /* those with jobs that are not over, by id */
    st_idmap *array_ids;           /* derived */
    ST_VEC(uint64_t) arrays_dirty; /* in which somebody may have a turn now */
    bool woken;                    /* in this round somebody was let go who has not had a turn */
    size_t nheld;                  /* of these, with a plan */
    size_t nmoving;                /* of those on devices, with a place to go to */
    int64_t due_ms;                /* no job is due before; exact after a pass */
    ST_VEC(st_due_row) due; /* a heap; what is no longer true is left in it until it comes up */
    int64_t now;
    uint64_t hash;
    uint64_t past_job; /* jobs up to this one may have had stays that are not known here, */
    int past_stay;     /* up to this one */
    int64_t wake_ms;   /* when a protection ends that a claimant waits for */
    bool floors_dirty, class_dirty;
    bool minute;   /* since the last pass a minute has begun */
    bool exchange; /* since the last pass a moment came at which borrowers may displace borrowers */
    bool stirred;  /* somebody came or moved, or was changed, since the last such pass */
    int64_t exchange_ms;         /* when a protection ends that a borrower waits for */
    ST_VEC(st_reservation) resv; /* of the last pass */
    size_t nreservers;           /* derived: for how many jobs */
    ST_VEC(st_plan_link) links;  /* derived: its plans by node; see reserve.c */
    int32_t *link_at;            /* by node: the first, + 1 */
    size_t nlink_at;
    int *tops; /* by account: the highest priority that waits; see queue.c */
    size_t ntops;
    int64_t
        pause_gib_ms[ST_TYPES_MAX]; /* what pauses took for each GiB of a GPU type; 0: not known */
    int64_t age_ms;                 /* when the first of those who wait counts for more */
    uint64_t retimed;               /* counts changes that move when many leave */
    st_forecast *forecast;
    ST_VEC(struct st_shadow_cluster *) shadows; /* see shadow.h */
    ST_VEC(st_borrowers) borrowers;             /* derived; see borrowers.c */

    ST_VEC(st_booking *) bookings; /* by number; see book.h */
    st_slots *slots;               /* derived: their plans by node */
    int64_t calendar_ms;           /* derived: when one of them is due */
    ST_VEC(st_booking *) opened;   /* derived: of them, with devices of their own now, by number */
    size_t nopen;                  /* derived: how many these are */
    int64_t nodes_ms; /* derived: when a node is tested again, or its time to drain is up */
    ST_VEC(st_incident *) incidents; /* by number; see incidents.c */
    uint64_t last_incident;
    int64_t incidents_ms;    /* derived: when one of them is over */
    size_t ndegraded, nover; /* derived */
    size_t nkept;            /* derived: of them, kept for the deadline of a job */

    /* Scratch. */
    ST_VEC(st_restart) restart; /* gangs that just lost a node: tried first */
    uint8_t *prefer;
    size_t nprefer;
    st_idmap *misfits; /* shapes that found no place in this pass */
    /* The same from round to round: shapes by number, and those that only reservations keep out. */
    ST_VEC(st_nowhere) nowhere;
    st_news news[ST_TYPES_MAX];
    st_idmap *numbers;
    st_idmap *walled; /* by key: where it stands in */
    ST_VEC(st_walled) walls;
    uint64_t numbering;
    /* The claims among them. They are kept while a round is interrupted: who has the turn next must find
     * what it would have found without that. */
    ST_VEC(st_refusal) refusals;
    st_idmap *possible; /* shapes that fit the fleet when it is empty */
    /* Looking for whom to displace may take more than one pass (pass.c). */
    int64_t effort;        /* candidates claims may still look at in this one */
    bool stopped;          /* this pass has come to a job for which nothing is left */
    bool unfinished;       /* the last one had, in the middle of a round; the next goes on there */
    int64_t stopped_ms;    /* when */
    bool heard;            /* something happened since */
    bool again;            /* the round has changed something */
    int64_t blocked;       /* how many lacked room in it, of those the policy `lookahead` counts */
    uint64_t round;        /* counts them */
    int64_t round_ms;      /* when the first of those began that belong together */
    int64_t round_wake_ms; /* when to wake, as far as the last one has come */
    int64_t late_ms;       /* so long after that this piece of it comes; 0 outside of a pass */
    bool parted;  /* somebody who waited has been cancelled, which changed nothing for others */
    bool settled; /* the last pass left nothing to do, but for those in `fresh` */
    ST_VEC(uint64_t) fresh; /* jobs submitted since, or since the round began that is not over */
    st_job_vec leaving;     /* derived: notified or checkpointing */
    st_yielders yielders;
    st_standings standings;
    st_hopes hopes;
    ST_VEC(st_profile *) profiles;
    ST_VEC(st_kept *) kept; /* reserved starts; reserve.h */
    st_leavers leavers;
    uint64_t reserve_tick;
    st_marks marks;        /* nodes that were looked at */
    bool freed;            /* something was freed: misfits may fit */
    ST_VEC(int32_t) bound; /* nodes a backfill sees with less room than they have */
    st_whatif whatif;
};

/* effects.c */
void st_fx(st_core *core, st_effects *fx, st_effect effect, const st_grant *grants, int n);
st_effect st_fx_of(const st_core *core, st_effect_kind kind, const st_job *job);

/* core.c */
st_job *st_core_find(const st_core *core, uint64_t id);
void st_core_add_job(st_core *core, st_job *job);
/* Its memory stays until the pass is over. */
void st_core_drop_job(st_core *core, st_job *job);
void st_core_free_ended(st_core *core);
void st_core_place(st_core *core, st_job *job, bool on); /* between `placed` and `off` */
void st_core_put_aside(st_core *core, st_job *job); /* between `off` and `idle`, as its bars say */

/* What has changed. Everything that is kept from pass to pass is given up by these words and by nothing else. */
typedef enum st_change {
    ST_CHANGED_ROOM = 1,     /* something is free: shapes that found no place may find one */
    ST_CHANGED_FLOORS = 2,   /* capacity, or what is promised of it */
    ST_CHANGED_CLASSES = 4,  /* who may be guaranteed */
    ST_CHANGED_YIELDERS = 8, /* who may be displaced, or in what order */
    ST_CHANGED_ORDER = 16,   /* borrowers may displace each other: they look on the next minute */
    ST_CHANGED_WAITING = 32, /* somebody who waits may have something to do */
    ST_CHANGED_ROUND = 64,   /* a round that was interrupted does not go on where it stopped */
    ST_CHANGED_STANDING = ST_CHANGED_YIELDERS | ST_CHANGED_ORDER, /* somebody came, went or moved */
} st_change;
void st_core_changed(st_core *core, unsigned what); /* bits of st_change */

/* submit.c */
#define ST_LIMIT_MAX_MS (INT64_C(10) * 366 * 86400 * 1000) /* a job's time limit */
int st_core_submit(st_core *core, const st_job_spec *spec, st_effects *fx, st_err *err);
/* Whether the job would fit empty nodes of the type; ret_most, which may be NULL, is told how many
 * of its tasks would when it does not. */
bool st_core_possible(st_core *core, const st_job *job, int32_t type, int64_t *ret_most);

/* limit.c */
int st_core_set_limit(st_core *core, const st_event *ev, st_effects *fx, st_err *err);

/* bar.c */
int st_core_bar(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
bool st_job_ordered(const st_job *job);

/* window.c */
/* Whether a job may have the window it asks for, and its fields. */
int st_window_check(const st_core *core, const st_job_spec *spec, int32_t account, st_err *err);
void st_window_set(const st_core *core, const st_job_spec *spec, st_job *job);
/* When something happens because of it; ST_TIME_NEVER nothing. */
int64_t st_window_due_ms(const st_job *job);
void st_window_expire(st_core *core, st_job *job, st_effects *fx);
/* When the job may run at all; ST_TIME_NEVER: that is not known. */
int64_t st_window_open_ms(const st_core *core, const st_job *job);
/* It waits for the next booking of its slot, or for none. */
void st_window_next(const st_core *core, st_job *job);

/* deadline.c */
int st_deadline_check(const st_core *core, const st_job_spec *spec, st_err *err);
/* The last word: a place in the calendar for a hard one; and, when the job is there, tell of it. */
int st_deadline_admit(st_core *core, const st_job_spec *spec, st_job *job, st_err *err);
void st_deadline_keep(st_core *core, const st_job *job, st_effects *fx);
/* Jobs turn to the bookings that are kept for them, and those go whose jobs are gone; whether there were any. */
bool st_deadline_run(st_core *core, st_effects *fx);

/* pools.c */
void st_core_forget_possible(st_core *core); /* shapes may fit the fleet no more, or again */
int st_core_pool_change(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_pool_remove(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_node_remove(st_core *core, st_node *node, bool force, st_effects *fx, st_err *err);

/* nodes.c */
int st_core_node_state(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_node_agent(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_node_labels(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_node_test(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
int st_core_node_tested(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
void st_core_nodes_set_due(st_core *core);
void st_core_nodes_expire(st_core *core, st_effects *fx);
/* Its plans go; with `lost` so does everybody who has any of these GPUs. 0: of the whole node. */
void st_core_node_part(st_core *core, const st_node *node, uint16_t devs, bool lost,
                       st_effects *fx);
/* A test of the node is due now; or so much later, unless one is due before. */
void st_core_node_ask(st_core *core, st_node *node, st_effects *fx);
void st_core_node_again(st_core *core, st_node *node, int64_t in_ms);

/* gpus.c */
int st_core_gpu_said(st_core *core, st_node *node, const st_event *ev, st_effects *fx, st_err *err);
/* What a test that was passed means for GPUs that wait for one; `without` were not in it. */
void st_gpus_passed(st_core *core, st_node *node, uint16_t without, st_effects *fx);
/* Nobody can test the node any more. */
void st_gpus_untested(st_core *core, st_node *node, st_effects *fx);
/* Whether one of its GPUs waits for a test. */
bool st_gpus_wait(const st_node *node);
/* Whether one of its GPUs is out for such a fault. */
bool st_gpus_have(const st_node *node, st_fault kind);

/* drain.c */
void st_drain_set(st_core *core, st_node *node, int64_t by_ms, st_drain_then then, st_effects *fx);
/* When those on the node are told to go; ST_TIME_NEVER: they are not, or have been. */
int64_t st_drain_due_ms(const st_core *core, const st_node *node);
void st_drain_expire(st_core *core, st_node *node, st_effects *fx);
/* Whether the job was told to go from a node; by when it must be off all of them; and whether out of their memory too. */
bool st_drain_leaves(const st_core *core, const st_job *job);
int64_t st_drain_by_ms(const st_core *core, const st_job *job);
bool st_drain_empties(const st_core *core, const st_job *job);

/* incidents.c */
/* What was found is noted, and whether it may take the node out of service. One of kind NONE may, and is not noted.
 * `soft`: it would only take nothing new, which nobody holds back. */
bool st_incident_fault(st_core *core, const st_node *node, const st_finding *finding, bool soft,
                       st_effects *fx);
/* It serves again, or somebody has decided that it does not come back. */
void st_incident_back(st_core *core, const st_node *node, st_effects *fx);
int st_core_incident_reset(st_core *core, const st_event *ev, st_effects *fx, st_err *err);
void st_incidents_expire(st_core *core, st_effects *fx);
void st_incidents_set_due(st_core *core);
/* The same hardware fault, again after so many repairs: it is not to come back by itself. */
bool st_incident_again(st_core *core, st_node *node, const st_finding *finding);

/* moves.c */
void st_core_start(st_core *core, st_job *job, int32_t type, st_class class, st_grant *take_grants,
                   st_effects *fx);
void st_core_hold(st_core *core, st_job *job, int32_t type, st_class class, st_grant *take_grants,
                  st_effects *fx);
void st_core_start_held(st_core *core, st_job *job, st_effects *fx);
void st_core_unhold(st_core *core, st_job *job, st_effects *fx);
/* A held job starts at another place than planned; its victims are spared. */
void st_core_start_elsewhere(st_core *core, st_job *job, st_grant *take_grants, st_effects *fx);
/* Its place to go to, if it had one, is no longer kept. */
void st_core_forget_move(st_core *core, st_job *job);
/* To NOTIFIED or STOPPING: what it has is free at the later moment. */
void st_core_leave(st_core *core, st_job *job, st_job_state state, uint64_t claimant);
bool st_core_stay(st_core *core, st_job *job);
/* Whether a plan would break a ceiling even when everybody has left who is to leave. */
bool st_core_plan_over(st_core *core, const st_job *job);
/* Whether everybody a plan waits for has left. */
bool st_core_ready(const st_core *core, const st_job *job);
void st_core_release(st_core *core, st_job *job, bool keep_memory);
void st_core_forget_grants(st_core *core, st_job *job);
/* Give the residents of a job's nodes a fresh look. */
void st_core_refresh(st_core *core, const st_job *job);

/* pass.c */
/* The moment of the round, in however many passes: what is decided in it is decided then, by what
 * was true then, and who started or left in it did so at that moment. */
static inline int64_t st_core_moment(const st_core *core)
{
    return core->now - core->late_ms;
}
/* From when on a gang may displace by what it brings into use (claim_fill.c); ST_TIME_NEVER: not by that. And whether
 * it may now. */
int64_t st_core_fill_ms(const st_core *core, const st_job *job);
bool st_core_may_fill(const st_core *core, const st_job *job);
/* The same as st_core_protected_until, at the moment of the round. */
int64_t st_core_protected_in_round(const st_core *core, const st_job *job, bool from_owner);
void st_core_advance(st_core *core, int64_t now);
/* Whether the job can end without a pass for those it leaves behind. */
bool st_core_parts_quietly(st_core *core, const st_job *job);
void st_core_prefer(st_core *core, int32_t node); /* for gangs that lost another one */

/* grace.c: what a job has to save when it must yield, and the most that any may have. */
int64_t st_core_grace_ms(const st_core *core, const st_job *job);
int64_t st_core_longest_grace_ms(const st_core *core);
/* Whether it saves at all. */
bool st_core_saves(const st_job *job);
/* A pause took so long; `done`: it came to its end. */
void st_core_paused_in(st_core *core, st_job *job, int64_t took_ms, bool done);
int st_core_check_grace(const st_core *core, const st_job_spec *spec, st_err *err);

/* yield.c */
/* With a place to go to it is only moved. */
void st_core_notify(st_core *core, st_job *victim, const st_job *claimant, st_grant *take_to,
                    st_effects *fx);
void st_core_order_out(st_core *core, st_job *job, int64_t notice_ms, st_effects *fx);
void st_core_tell_off(st_core *core, st_job *job, uint64_t booking, int64_t deadline_ms,
                      st_effects *fx);
void st_core_checkpointed(st_core *core, st_job *job, st_effects *fx);
/* Both wait, as stopping, for the word of the job's agents that it is gone, if it has any. */
void st_core_requeue(st_core *core, st_job *job, st_effects *fx);
void st_core_end(st_core *core, st_job *job, st_job_state state, st_effects *fx);
/* The same when it is known to be gone. */
void st_core_requeue_now(st_core *core, st_job *job, st_effects *fx);
void st_core_end_now(st_core *core, st_job *job, st_job_state state, st_effects *fx);
void st_core_expire(st_core *core, st_effects *fx);
int64_t st_job_due_ms(const st_job *job);

/* stop.c; ST_STOP_MS is in core.h */
/* Told to be gone, if there is somebody who will say when it is; `after`: PENDING or an end. False: it is gone as
 * soon as it is told. */
bool st_core_stop(st_core *core, st_job *job, st_job_state after, bool first, st_effects *fx);
void st_core_gone(st_core *core, st_job *job, bool done, st_effects *fx);
/* A gang that lost a node goes first, to what it has left of its places. */
void st_core_restart(st_core *core, const st_job *job);

/* due.c */
void st_core_due(st_core *core, const st_job *job); /* its next deadline may be sooner now */
void st_core_set_due(st_core *core);                /* make due_ms exact */
/* Takes the jobs that are due by now, in order of time and id. */
typedef ST_VEC(uint64_t) st_due_jobs;
void st_core_take_due(st_core *core, st_due_jobs *ret);
/* Likewise those who have something of a node, each once, by id: residents are in the order in which they came, which a
 * save does not have. */
void st_node_who(const st_node *node, st_due_jobs *ret);

/* borrowers.c */
void st_core_list_fresh(st_core *core, st_job *job);
void st_core_list_at(st_core *core, st_job *job, int32_t account);
void st_core_unlist(st_core *core, st_job *job);
void st_core_loosen(st_core *core, int32_t account); /* a guaranteed job of it left */
/* Takes those out who may be inside their floors now. */
void st_core_take_borrowers(st_core *core, st_job_vec *ret);
void st_core_borrowers_done(st_core *core);

/* classes.c */
void st_core_reclass(st_core *core, st_effects *fx);

/* yielders.c */
void st_core_leaves(st_core *core, st_job *job);
void st_core_left(st_core *core, const st_job *job); /* or stays after all */
void st_core_refresh_yielders(st_core *core);
/* The running borrower of an account that would go first; NULL none. As of the last refresh. */
const st_job *st_core_first_yielder(const st_core *core, int32_t account);
/* Whether a job could possibly fit if some of the jobs, and all who leave, were gone: false is
 * certain, and cheap to say. If so, ret_useful[n] says for whom it is possible that his place makes room:
 * again what is false is certain. */
bool st_core_yield_enough(st_core *core, const st_job *job, int32_t type, st_job *const *jobs,
                          size_t n, uint8_t *ret_useful);
/* Those of all who could be displaced who are on a type, or on none. */
const st_job_vec *st_core_yielders_on(st_core *core, int32_t type);
/* And of these, those of one account. */
st_job *const *st_core_yielders_of(st_core *core, int32_t type, int32_t account, size_t *ret_n);
/* The most that any of them holds, and no more than `most_m`; -1 nobody does. */
int64_t st_core_yielders_size_m(st_core *core, int32_t type, int64_t most_m);
void st_core_yielders_done(st_core *core);

/* standings.c */
/* Nobody is thought away: what is asked from now on is kept for as long as that is so. */
void st_standings_begin(st_core *core);
/* Where an account stands as things are thought to be, and where it would without a job of it. */
st_standing st_standings_of(st_core *core, int32_t account);
st_standing st_standings_without(st_core *core, int32_t account, const st_job *job);
void st_standings_done(st_core *core);

/* claim.c */
typedef enum st_claim_result {
    ST_CLAIM_OK,
    ST_CLAIM_NONE,      /* displacing everyone it may would not be enough */
    ST_CLAIM_PROTECTED, /* enough, once protections end */
    ST_CLAIM_BOUND,     /* too much for what it asks */
    ST_CLAIM_RESERVED,  /* enough, but the place is reserved for somebody ahead */
    ST_CLAIM_BOOKED,    /* enough, but the place is booked */
} st_claim_result;

typedef struct st_claim {
    st_claim_result result;
    bool away;        /* OK, in another place than its home (shadow.h): it will borrow */
    int32_t blocker;  /* RESERVED: the reservation */
    bool enough;      /* displacing all it may would make room, whatever else forbids it */
    int64_t evict_m;  /* BOUND: what would have to go */
    int64_t bound_m;  /* ... and what may */
    int64_t until_ms; /* when to try again: PROTECTED and BOUND; ST_TIME_NEVER none */
    ST_VEC(st_job *) victims;
    ST_VEC(st_grant *) places; /* where each goes, if they are moved */
    st_grant *plan;
} st_claim;

/* Find victims for a job; changes nothing. `told`: with the numbers for a reason; without, a claim that is sure to
 * fail may be cut short. */
typedef enum st_claim_by {
    ST_CLAIM_BORROWER,
    ST_CLAIM_OWNER, /* inside its floor */
    ST_CLAIM_OWN,   /* a borrower, of its own account alone */
} st_claim_by;
void st_core_claim(st_core *core, const st_job *job, int32_t type, st_claim_by by, bool told,
                   st_claim *ret);
void st_claim_done(st_claim *claim);

/* defrag.c: find jobs whose move lets the job land, with its plan and, in evict_m, what they
 * hold; changes nothing. until_ms: when more may move. */
bool st_core_defrag(st_core *core, const st_job *job, int32_t type, st_claim *ret);
/* Keep places free for those who are on the move. */
void st_core_reserve_movers(st_core *core);

/* reserve.c */
#define ST_RESERVATIONS_MAX 128
void st_core_reserve(st_core *core, const st_job *job, int32_t type, bool guaranteed, bool claims);
void st_core_reserve_clear(st_core *core);
/* Keep free where a job on the move goes to. */
void st_core_reserve_place(st_core *core, const st_job *mover);
/* Why a job may not use what is free. */
typedef struct st_barrier {
    int blocker;   /* the first reservation it is free for; -1: it is not free */
    int64_t lacks; /* at least so many tasks find no place beside what is reserved; 0: not known */
} st_barrier;
/* Place a job on what is free and not reserved beyond its end; NULL grants: only ask. */
bool st_core_backfill(st_core *core, const st_job *job, int32_t type, const uint8_t *prefer,
                      st_grant *ret, st_barrier *ret_barrier);
/* How many of its tasks find a place on a node, at most. */
int st_core_room_behind(st_core *core, st_job *job, int32_t type, const st_node *node);
/* When a job on devices will be off them at the latest, as far as is known. */
int64_t st_core_release_ms(const st_core *core, const st_job *job);
/* Must be called when that has changed while the job stays where it is: its limit, its deadline, its
 * class, or what is expected of it. */
void st_core_retime(st_core *core, const st_job *job);
/* The same for everybody. */
void st_core_retime_all(st_core *core);
void st_core_reserve_index(st_core *core); /* the reservations were set from outside */
void st_core_reserve_done(st_core *core);
/* The first reservation the grants would get in the way of until `end_ms`, or -1. */
int st_core_collides(st_core *core, const st_job *job, int64_t end_ms, const st_grant *grants);
/* Which reservations a job would have to respect, as a number that is 0 for none: two jobs of
 * one shape with the same number fare the same. */
uint64_t st_core_bound_by(const st_core *core, st_job *job, int32_t type);
/* Keep what the reservations of a pass promise with their jobs. */
void st_core_promise(st_core *core);
/* For how many jobs something is reserved. */
size_t st_core_reservers(const st_core *core);

/* expect.c */
/* Set when a running job should be done. */
void st_core_expect(const st_core *core, st_job *job);
/* When it should be done, at the most likely and with some certainty, at its limit at the
 * latest: of a job on devices, or of one that would start now. */
int64_t st_core_likely_end_ms(const st_core *core, const st_job *job);
int64_t st_core_safe_end_ms(const st_core *core, st_job *job);
/* It is about to end by itself, or by its limit. */
void st_core_learn(st_core *core, const st_job *job);
/* It starts: was it told when? */
void st_core_came_true(st_core *core, st_job *job);

/* whatif.c */
void st_whatif_begin(st_core *core, st_when when);
/* Rebuild the views of a job's nodes after its `out` changed, and their rooms if given. */
void st_whatif_touch(st_core *core, const st_job *job, st_rooms *rooms);
/* The same in two steps: note the nodes of several jobs, then rebuild each once. */
void st_whatif_note(st_core *core, const st_job *job);
void st_whatif_rebuild(st_core *core, st_rooms *rooms);
/* Set one node's view, and its room if given. */
void st_whatif_set(st_core *core, const st_node *node, const st_view *view, st_rooms *rooms);
st_view *st_whatif_edit(st_core *core, const st_node *node);
/* Put a grant into a view; where it does not go (a device is still in other use), the device is
 * taken all the same. */
void st_whatif_put(st_core *core, const st_node *node, const st_job *job, const st_grant *grant,
                   st_view *view);
const st_view *st_whatif_view(void *core, const st_node *node);

/* turn.c; more in turn.h and queue.h */
bool st_core_is_guaranteed(const st_core *core, const st_job *job, int32_t type);
uint64_t st_core_shape_key(const st_job *job, int32_t type);
/* The GPU types the job allows, one after the other; a job without GPUs has one round with type -1. */
#define ST_TYPE_FIRST (-2)
#define ST_TYPE_END   (-3)
int32_t st_core_next_type(const st_core *core, const st_job *job, int32_t after);
#define ST_EACH_TYPE(core, job, t)                                                  \
    for (int32_t t = st_core_next_type(core, job, ST_TYPE_FIRST); t != ST_TYPE_END; \
         t = st_core_next_type(core, job, t))
bool st_core_weight_zero(const st_core *core, int32_t account, int32_t *ret_account);
bool st_core_rests(const st_core *core, const st_job *job);
bool st_core_may_rebalance(const st_core *core, const st_job *job);
/* Whether borrowers claim whenever they can, and not on the minute only. */
bool st_core_claims_at_once(const st_core *core);

#endif
