/*
 * Private to check: what the watch remembers (check/check.h), and how its files share the work.
 *
 *   track.c   jobs as their effects describe them
 *   step.c    the effects of a step, one after the other, against what they may follow
 *   growth.c  ceilings and limits per user, before and after a step
 *   claim.c   who had to yield to whom, and whether that was right
 *   move.c    who had to move for whom, and whether that was right
 *   order.c   whether a borrower took only from those who had borrowed more
 *   book.c    bookings
 *   wait.c    who waits, and whether the reasons are true
 *   turn.c    priorities and ageing inside an account
 *   window.c  windows of jobs
 *   flow.c    jobs that wait for others, holds, throttles, retries
 *   node.c    nodes that come into service
 *   drain.c   nodes that drain by a time
 *   incident.c  what takes nodes out of service, and when that is over
 */
#ifndef ST_CHECK_WATCH_H
#define ST_CHECK_WATCH_H

#include "check/check.h"
#include "check/quota.h"
#include "check/room.h"

/* A job as the effects so far describe it. */
typedef struct st_track {
    st_job job; /* without a name; the grants are the track's own */
    int64_t started_ms;
    bool started; /* it has been on devices */
    int64_t notified_ms, checkpoint_ms;
    int64_t
        save_by_ms; /* since it was told to save, its node was to be left by then; 0: whenever */
    int64_t displaced_ms;    /* when it last left for somebody; -1 never */
    int64_t rest_ms;         /* it was displaced again too soon, and borrows nothing before */
    int64_t ran_ms;          /* on devices, before this stay */
    int64_t line_ms;         /* since when it has waited for room alone */
    int64_t limit_before_ms; /* its limit when the step began: it may strike before it is changed */
    bool moves;              /* it leaves only to go on elsewhere */
    int64_t
        ordered_ms; /* it was barred and leaves for nobody, at this moment at the earliest; 0: not */
    bool lifted;    /* in this step it was let stay, and somebody may have its part of the floor */
    bool saved;     /* it reported a checkpoint since it was told to save */
    st_class class_before; /* when the step began */
    bool held_before;      /* likewise */
    bool harmed;           /* something happened that its deadline was not promised against */
    int64_t never_ms;      /* since when what it waits for can never come true (job.never) */
    bool told;             /* agents were told to run it, and have not said that it is gone */
} st_track;

/* A node that a judged fault took out of service. */
typedef struct st_watch_taken {
    int32_t node, pool;
    st_cause cause;
    int64_t at_ms;
} st_watch_taken;

/* When a node had to be left, as the last step ended; 0: whenever. */
typedef struct st_watch_drain {
    int64_t by_ms;
    st_drain_then then;
} st_watch_drain;

/* An array with jobs that are not over. */
typedef struct st_watch_array {
    uint64_t id;
    int throttle, live;
    bool spoilt; /* one of it has not ended well */
    int turns;   /* how many had one when the last step ended */
    int there;   /* ... and how many of those did not wait */
} st_watch_array;

struct st_watch {
    ST_VEC(st_track *) tracks; /* live jobs by id */
    st_use capacity;           /* when the last step ended */
    ST_VEC(st_quota) floors;
    ST_VEC(int32_t) homes;          /* by node: whose home it is */
    ST_VEC(uint8_t) unproven;       /* by node: it needs a test before it takes jobs */
    ST_VEC(uint16_t) gpus_unproven; /* by node: likewise, GPUs that were out alone */
    ST_VEC(bool) served;            /* by node: it took jobs when the last step ended */
    ST_VEC(st_watch_taken) taken;
    ST_VEC(st_watch_array) arrays;
    ST_VEC(st_watch_drain) drains; /* by node */
    bool resumed;                  /* the last step ended in the middle of a round */
    st_reserved first;             /* for whom capacity was reserved first, after the last step */
    int64_t first_by_ms;           /* and when it was to start at the latest, since it is first */
    int64_t due_ms;                /* when the core wanted to be called next, after the last step */
    st_watch_counts counts;
};

/* One step while it is looked at. */
typedef struct st_step {
    st_watch *watch;
    const st_core *core;
    const st_event *const *events;
    size_t nevents;
    const st_effects *fx;
    int64_t now;
    bool promises_moved; /* floors or capacity are not what they were */
} st_step;

st_track *st_watch_find(const st_watch *watch, uint64_t id);
void st_watch_add(const st_step *step, uint64_t id); /* as it was submitted in this step */
void st_watch_drop(st_watch *watch, uint64_t id);

/* The tracks as a list of jobs; the caller frees it. */
st_job_list st_watch_jobs(const st_watch *watch);

/* Effect `at` is a HOLD that has not been applied yet: are its victims right? */
int st_watch_claim(const st_step *step, size_t at, st_err *err);

/* Effect `at` is a NOTIFY that has not been applied yet: may this job be displaced? */
int st_watch_victim(const st_step *step, size_t at, st_err *err);

/* It must leave for a booking: is it in the way of one that is about to begin, or inside one that ends? */
int st_watch_booking_victim(const st_step *step, const st_track *t, const st_effect *e,
                            st_err *err);

/* What a job has to save at least, the most that any may have, and whether it saves at all; a CHECKPOINT, and a NOTIFY for a
 * booking, by these. */
int64_t st_watch_grace_ms(const st_core *core, const st_track *t);
int64_t st_watch_longest_ms(const st_core *core);
bool st_watch_saves(const st_track *t);
int st_watch_saving(const st_step *step, const st_track *t, const st_effect *e, st_err *err);
int st_watch_in_time(const st_step *step, const st_track *t, const st_effect *e,
                     const st_booking *b, st_err *err);

/* Windows of jobs: whether the job is told in this step that its own ends, and whether it keeps to it. */
bool st_watch_closes(const st_step *step, const st_track *t);
/* And deadlines. */
void st_watch_harm(const st_step *step, st_track *t);
int st_watch_window(const st_core *core, const st_track *t, const st_job *job, st_err *err);

/* Jobs that wait for others, holds, throttles, retries: what is submitted, what is said, what ends. */
void st_watch_flow_add(const st_step *step, st_track *t, const st_job_spec *spec);
void st_watch_flow_hear(const st_step *step, st_track *t);
void st_watch_flow_begin(const st_step *step);
void st_watch_flow_ended(const st_step *step, uint64_t id, uint64_t array, st_job_state state);
/* Whether it may be cancelled since what it waits for can never come true. */
bool st_watch_never(const st_track *t, const st_effect *e);
/* Whether it has failed in this step and is to be tried again; a RETRY; an end, which must be its last. */
bool st_watch_again(const st_step *step, const st_track *t);
int st_watch_retry(const st_step *step, st_track *t, const st_effect *e, st_err *err);
int st_watch_last_try(const st_step *step, const st_track *t, st_job_state state, st_err *err);
int st_watch_flow(const st_core *core, const st_track *t, const st_job *job, st_err *err);
int st_watch_arrays(const st_step *step, st_err *err);

/* It must give lent devices back to a job inside their booking: does it have any? */
int st_watch_lent_victim(const st_step *step, const st_track *t, const st_track *claimant,
                         st_err *err);

/* The HOLD at `at` is a claim, and these jobs (`out` set) yield to it: does that improve the
 * order? `jobs` is everybody, as before the claim. */
int st_watch_order(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                   st_err *err);

/* Likewise, of a guaranteed claimant: whether, with those in `out` gone, it takes from outside an account
 * that would hold more than its floor with it. ret_account, which may be NULL: that one. */
bool st_watch_beyond(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                     int32_t *ret_account);

/* After all effects: does the first in line still start as soon as it was promised? */
int st_watch_reserved(const st_step *step, st_err *err);

/* After all effects: did nobody start before one of its account that had its turn? */
int st_watch_turns(const st_step *step, st_err *err);

/* A job that is told to move: may it be? */
int st_watch_mover(const st_step *step, const st_track *mover, st_err *err);

/* The HOLD at `at` has these jobs (`out` set) move: have they somewhere to go, and can it be
 * worth it? */
int st_watch_moves(const st_step *step, size_t at, const st_job_list *jobs, const uint8_t *out,
                   st_err *err);

/* What was booked in this step is within the limits of accounts and pools. */
int st_watch_book_quota(const st_step *step, st_err *err);

/* Does every node that comes into service have its test? */
int st_watch_nodes(const st_step *step, st_err *err);

/* Nodes that drain by a time (drain.c): has the job to leave one, is that time over, must it be out of its memory too? */
bool st_watch_drains(const st_step *step, const st_track *t);
bool st_watch_drained(const st_step *step, const st_track *t);
bool st_watch_empties(const st_step *step, const st_track *t);
void st_watch_note_drains(const st_step *step); /* when the step is over */
int st_watch_told_drain(const st_step *step, const st_effect *e, st_err *err);
/* In one state: is nobody on a node whose time is over? */
int st_check_drains(const st_core *core, const st_job_list *jobs, st_err *err);

/* Was no node taken out of service that a breaker should have kept? And, in one state, is every incident over that should be? */
int st_watch_incidents(const st_step *step, st_err *err);
int st_check_incidents(const st_core *core, st_err *err);

/* The rules of bookings, in one state (book.c). */
int st_check_bookings(const st_core *core, const st_job_list *jobs, st_err *err);

/* What accounts and users hold at one end of a step. */
typedef struct st_growth {
    st_tally tally;
    int64_t *users; /* by account, user, kind of limit */
} st_growth;

void st_growth_take(const st_step *step, st_growth *ret);
void st_growth_done(st_growth *growth);
int st_growth_check(const st_step *step, const st_growth *before, const st_growth *after,
                    st_err *err);

/* Whether it is told in this step that it fails: its node may have been lost after it was told to go for another reason. */
bool st_watch_fails(const st_step *step, uint64_t job);

#endif
