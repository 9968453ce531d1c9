/*
 * The fleet at a past moment, from snapshots and the log: the core as it was then, and what it decided shortly before.
 *
 * A player has one core that goes forward. A later moment is played from where it stands; an earlier one from the nearest
 * state there is: a mark it made on its way, or a snapshot of the store. doc/decisions/0039 says why it is made so.
 *
 * Invariants:
 *  1 It only reads the store, and never holds up the writer: one connection for reading, a few seconds at a time.
 *  2 A call plays for ST_PAST_SLICE_MS at most, and what it has played is kept, so the same question asked again comes
 *    to its end.
 *  3 Marks and what is told have bounds (ST_PAST_MARK_BYTES, ST_PAST_MOVES); a mark is never made while a pass is owed.
 *
 * One thread at a time.
 */
#ifndef ST_CONTROL_PAST_H
#define ST_CONTROL_PAST_H

#include "core/core.h"
#include "store/store.h"

#define ST_PAST_SLICE_MS   2000
#define ST_PAST_MARKS      32
#define ST_PAST_MARK_BYTES (INT64_C(128) << 20)
#define ST_PAST_MOVES      200000

typedef struct st_past st_past;

/* How long a call plays at most: ST_PAST_SLICE_MS; below 0, for tests: as few rows as can be. */
st_past *st_past_new(int64_t slice_ms);
void st_past_free(st_past *past);

/* A job that something was decided about, as it was when that began to be told. */
typedef struct st_past_job {
    uint64_t id;
    int32_t account, user;
    int64_t gpu_m;
    char *name;
} st_past_job;

/* One decision: an effect of the core. */
typedef struct st_past_move {
    int64_t at_ms, seq; /* seq: the row of the log */
    st_effect_kind kind;
    int64_t job, other; /* which of the view's jobs; -1: none that is known */
    int32_t node;       /* of NODE; -1 */
    st_job_state state; /* of the job afterwards */
    int64_t value;      /* st_effect.value */
} st_past_move;

/* Good until the next call. */
typedef struct st_past_view {
    const st_core *core;
    int64_t told_ms; /* moves are complete from there on */
    bool exact;      /* false: this version decides otherwise than the one that wrote the log */
    const st_past_move *moves;
    size_t nmoves;
    const st_past_job *jobs;
} st_past_view;

/* From when on moments can be asked for; `*ret_whole`: from the first one there ever was. ST_ENOENT: there is none yet. */
int st_past_first(st_store *reader, int64_t *ret_ms, bool *ret_whole, st_err *err);

/* The state behind the last row of the log that is not later than at_ms, and what was decided in the `told_ms` before.
 * ST_EDOWN: it takes longer, ask again; ST_ERANGE: the log does not reach back so far. */
int st_past_at(st_past *past, st_store *reader, int64_t at_ms, int64_t told_ms, st_past_view *ret,
               st_err *err);

#endif
