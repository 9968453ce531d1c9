/*
 * The same jobs under plain rules, to compare with: every account alone on nodes of its own, or all
 * in one queue on all nodes; first come, first served, and nobody is ever displaced. This is a
 * simulator of its own that shares no line with the scheduler.
 */
#ifndef ST_TRACE_PRIVATE_H
#define ST_TRACE_PRIVATE_H

#include "trace/stats.h"
#include "trace/trace.h"

/* X(id, name, private, backfill). Strict: a job that does not fit holds up all behind it.
 * Backfill: whoever fits starts, in the order they came; nothing is kept for those ahead. */
#define ST_PRIVATE_TABLE(X)                                \
    X(ST_PRIVATE_FIFO, "private_fifo", true, false)        \
    X(ST_PRIVATE_BACKFILL, "private_backfill", true, true) \
    X(ST_SHARED_FIFO, "shared_fifo", false, false)         \
    X(ST_SHARED_BACKFILL, "shared_backfill", false, true)
typedef enum st_private_kind {
#define X(id, name, private, backfill) id,
    ST_PRIVATE_TABLE(X)
#undef X
        ST_PRIVATE_COUNT
} st_private_kind;

typedef struct st_private {
    ST_VEC(int64_t) start_ms; /* per job of the trace; ST_UNSET: it could never fit */
    ST_VEC(int64_t) end_ms;
    uint64_t misfits; /* jobs too large for the nodes */
    st_spread queueing, completion;
    double allocation, allocation_arriving; /* of the nodes, to the end and to the last submit */
} st_private;

const char *st_private_name(st_private_kind kind);

/* Only jobs of whole GPUs; others, and ones that never end, are left out as misfits. */
void st_private_play(const st_trace *trace, st_private_kind kind, st_private *ret);
void st_private_done(st_private *p);

/* Who was later in the run than there. */
typedef struct st_private_diff {
    uint64_t compared, later;
    int64_t worst_ms; /* by how much at most */
    size_t worst;     /* which job that was; good where later > 0 */
    int64_t late_ms;  /* Σ over the later ones */
} st_private_diff;

void st_private_compare(const st_trace_run *run, const st_private *p, st_private_diff *ret);

#endif
