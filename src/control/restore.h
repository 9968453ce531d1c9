/*
 * A store that was restored from a backup, while agents and people may know what came after it (doc/decisions/0030).
 *
 *   waiting    `stintd --restore` has put the store in its place. Its time stands still at its last moment, nothing is
 *              decided and nothing is changed but tokens. Agents are heard and told nothing; their leases hold. An owner
 *              looks at what would become of what they have, and accepts that.
 *   accepted   Agents are told their lists with what was adopted alone. Whatever else they have ends.
 *   none       Nothing is left that the store does not know: jobs that nobody has wait again, and time goes on.
 *
 * Invariants:
 *  1 Agents follow such a store only behind an owner's word: until then no list is served.
 *  2 No number that may have been given out behind the backup is given out again: of epochs, jobs, stays, accounts,
 *    tokens and bookings. See st_restore_floor.
 *  3 No job starts before each agent has said that nothing of a lost history is left there, or its lease is over.
 *  4 Each step is one transaction. Ended anywhere, the next start goes on from the last one.
 */
#ifndef ST_CONTROL_RESTORE_H
#define ST_CONTROL_RESTORE_H

#include "control/control.h"
#include "state/state.h"

/* ---- numbers ------------------------------------------------------------------------------------ */

/* What counters of a history that is lost can have come to at a moment, if each grows by less than this on average since
 * 2026, which stintd sees to for jobs (submit.c) and nobody can reach for the others: a job a millisecond, a start of stintd a
 * second, a token or a booking in a tenth of a second, an account in ten. */
typedef enum st_restore_kind {
    ST_FLOOR_JOBS,
    ST_FLOOR_EPOCHS,
    ST_FLOOR_TOKENS,
    ST_FLOOR_ACCOUNTS,
    ST_FLOOR_BOOKINGS
} st_restore_kind;
int64_t st_restore_floor(st_restore_kind kind, int64_t at_ms);
/* Likewise stays of one job, which has at most one in ten seconds: `known` and what may have been since. */
int st_restore_stay(int known, int64_t since_ms, int64_t now_ms);

/* ---- what is to become of what is there ----------------------------------------------------------- */

#define ST_FATE_TABLE(X)                                                            \
    X(ST_FATE_ADOPTED, "adopted")     /* goes on as it is */                        \
    X(ST_FATE_OVER, "over")           /* it ended by itself: that counts */         \
    X(ST_FATE_ENDED, "ended")         /* it is there, and will be ended */          \
    X(ST_FATE_FORGOTTEN, "forgotten") /* it is over, and nobody asks for it here */ \
    X(ST_FATE_AGAIN, "again")         /* of a job: it waits again */                \
    X(ST_FATE_STOPS, "stops")         /* of a job that was about to leave: it has */
typedef enum st_fate {
#define X(id, word) id,
    ST_FATE_TABLE(X)
#undef X
} st_fate;

typedef struct st_plan_task {
    st_told_task told;
    st_fate fate;
    const char *why; /* static text; NULL: it is as it should be */
} st_plan_task;

typedef struct st_plan_job {
    uint64_t id;
    st_fate fate;
    const char *why;
} st_plan_job;

typedef struct st_restore_plan {
    ST_VEC(st_plan_task) tasks; /* as they were told */
    ST_VEC(st_plan_job) jobs;   /* that should be somewhere */
    size_t waiting;             /* jobs that wait in the store */
    int stay;                   /* the highest of a job in the store that was told or is known */
    char digest[33];            /* of what becomes of whom */
} st_restore_plan;

/* A function of what the core has and what agents said. */
void st_restore_plan_make(const st_core *core, const st_told *told, st_restore_plan *ret);
void st_restore_plan_done(st_restore_plan *plan);
const char *st_fate_name(st_fate fate);

/* ---- the owner's commands --------------------------------------------------------------------------- */

/* How it stands, for whoever shows it. */
typedef struct st_restore_view {
    st_restore_state state;
    const char *from;  /* where the store came from, as it was said */
    int64_t marked_ms; /* when it was put in its place */
    int64_t last_ms;   /* the last moment it knows of */
    int64_t position;  /* the last row of its log */
    int64_t tokens;    /* that are good by what it knows */
    const st_core *core;
    const st_told *told;
    const st_restore_plan *plan; /* with `told`, unless the state is none */
} st_restore_view;

typedef struct st_cmd_restore st_cmd_restore;

struct st_cmd_restore {
    st_cmd cmd;
    st_identity who;
    const char *accept; /* the digest of the plan that was looked at; NULL: only looks */
    /* In the loop's thread, when nothing has been refused. */
    void (*show)(st_cmd_restore *cmd, const st_restore_view *view);
    st_strbuf out; /* for `show` */
};

void st_cmd_restore_init(st_cmd_restore *cmd);

/* ---- marking a store ------------------------------------------------------------------------------- */

/* Of a store that nobody has open: from its next start on it waits for an owner. `from` is said to people. Writes a few
 * sentences about what is in it. */
int st_control_mark_restored(const char *store, const char *from, int64_t now_ms, st_strbuf *out,
                             st_err *err);
/* From any thread. */
st_restore_state st_control_restore_state(const st_control *ctl);

#endif
