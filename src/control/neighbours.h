/*
 * Who slowed whom on a shared GPU, as stintd keeps it: a case is a job whose requests became slow, the neighbour that was found to
 * be the cause, and what was done (doc/dev/neighbour.md). Agents find and act; here it is kept, told to both sides and shown.
 *
 * Invariants
 *  1 Each side is told about itself: no name, number or figure of the other is in what is written for it.
 *  2 A case is between two jobs that shared a GPU on the node that says so (engine/native_notes.c).
 *  3 There are ST_CASES_MAX at most; those that were heard of longest ago make room.
 */
#ifndef ST_CONTROL_NEIGHBOURS_H
#define ST_CONTROL_NEIGHBOURS_H

#include "neighbour/neighbour.h"
#include "state/command.h"

#define ST_CASE_KIND "neighbour" /* of the store's small documents */
#define ST_CASES_MAX 2000
#define ST_CASE_TEXT 320

/* X(id, name, what it means) */
#define ST_CASE_TABLE(X)                                                             \
    X(ST_CASE_CONFIRMED, "confirmed", "the neighbour that slows it was found")       \
    X(ST_CASE_ACTING, "acting", "an action is being tried")                          \
    X(ST_CASE_HELD, "held", "an action helps and is kept for a while")               \
    X(ST_CASE_UNSOLVED, "unsolved", "nothing that can be done on this GPU helps")    \
    X(ST_CASE_OVER, "over", "one of the two has left, or the action was taken back") \
    X(ST_CASE_UNEXPLAINED, "unexplained",                                            \
      "no neighbour explains it: the host, the GPU or the job itself")
typedef enum st_case_state {
#define X(id, name, about) id,
    ST_CASE_TABLE(X)
#undef X
        ST_CASE_STATE_COUNT
} st_case_state;

typedef enum st_case_side { ST_SIDE_VICTIM, ST_SIDE_SUSPECT } st_case_side;

typedef struct st_case_job {
    uint64_t job;   /* 0: nobody, of the suspect of ST_CASE_UNEXPLAINED */
    int64_t serial; /* its account's */
    char account[ST_NAME_MAX + 1], name[ST_NAME_MAX + 1];
} st_case_job;

typedef struct st_case {
    st_case_job side[2]; /* by st_case_side */
    char node[ST_NAME_MAX + 1];
    int gpu;
    st_case_state state;
    st_nb_rung action;         /* of HELD, and of ACTING */
    int before_pct, now_pct;   /* p99 of the victim over its usual value; now 0: not known */
    int64_t since_ms, last_ms; /* when it was found, and last heard of */
    int64_t times;             /* how often these two were found */
} st_case;

const char *st_case_state_name(st_case_state state);
int st_case_state_parse(const char *name); /* -1: none of them */

/* A document of the store; false: it is damaged. */
bool st_case_read(const char *doc, st_case *ret);
/* One sentence for one side. */
void st_case_text(const st_case *c, st_case_side side, char ret[ST_CASE_TEXT]);

/* A report of an agent, in the loop; *ret_told: both sides, as far as they run, are to hear of *ret. */
int st_case_take(st_tx *tx, const st_report *rep, st_case *ret, bool *ret_told, st_err *err);
/* After the commit. */
void st_case_tell(st_control *ctl, const st_case *c);

#endif
