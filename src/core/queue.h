/* Private to core: whose turn it is. Waiting jobs stand in lanes, one per account, in the
 * order of share/share.h; the next job comes down the tree from whichever child goes first. */
#ifndef ST_CORE_QUEUE_H
#define ST_CORE_QUEUE_H

#include "core/state.h"

/* First those inside their floors, then borrowers. */
typedef enum st_phase { ST_PHASE_GUARANTEED, ST_PHASE_BURST } st_phase;

/* Who waits, and what a round needs to know of him to pass him by. */
typedef struct st_queued {
    st_turn turn;
    int64_t queued_ms;
    int32_t account;
    int32_t number; /* of its shape; -1: not known */
    uint32_t types; /* of GPU, that will do */
    bool inside;    /* it would be inside its floor on one of them */
    bool passed[2]; /* by phase: it could do nothing, and was not asked */
} st_queued;

/* An account's waiting jobs in order, and how many are left in it and below. */
typedef struct st_lane {
    size_t first, next, last;
    size_t left;
    int32_t pick;                /* the child whose turn it is; -1 not known */
    bool known;                  /* its standing is, while nothing starts */
    st_standing standing, total; /* the one of the policy, and of all it holds */
} st_lane;

typedef struct st_queue {
    ST_VEC(st_queued) entries;
    st_lane *lanes;
    bool quiet;         /* a borrower whose shape finds no place can do nothing else either */
    uint64_t numbering; /* of shapes, when it was built */
    uint64_t loosened;  /* how often floors had more room, when that was last looked at */
} st_queue;

/* Everybody who waits; with `in_place` those who were there when the round began. */
void st_queue_build(st_core *core, st_queue *q, bool in_place);
void st_queue_done(st_queue *q);

/* Begin a phase: everybody is in the queue again. */
void st_queue_rewind(const st_core *core, st_queue *q);
/* Take the next job who could do something; NULL at the end. */
st_job *st_queue_next(const st_core *core, st_queue *q, st_phase phase);
/* Something started or was claimed: the order may have changed. */
void st_queue_reorder(st_core *core, st_queue *q, st_phase phase);
/* A round stops in the middle: whoever was passed by has had his turn. */
void st_queue_stop(const st_core *core, st_queue *q);

/* PENDING or PAUSED, and nothing held for it. */
bool st_job_waits(const st_job *job);
/* The first phase in which the job has a turn. */
st_phase st_queue_phase(const st_core *core, const st_job *job);
/* A new job waits too; false when that changes the order of others. */
bool st_queue_joins(st_core *core, const st_job *job);
/* The same for a job that waits no more: false when others count for more or less without it. */
bool st_queue_parts(st_core *core, const st_job *job);
/* Whether a's turn in a phase comes before b's; both wait and have joined. */
bool st_queue_before(const st_core *core, st_phase phase, st_job *a, st_job *b);

#endif
