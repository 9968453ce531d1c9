/* The booking: so many tasks of whole GPUs over a window, and where they will be.
 *
 * A booking's plan names its devices from the moment it is quoted. It may move until the booking closes: from
 * `close_ms` on those who are on its devices leave, and from `from_ms` to `to_ms` they are its own. */
#ifndef ST_MODEL_BOOKING_H
#define ST_MODEL_BOOKING_H

#include "model/job.h"

/* X(id, name, what it means). The last three are told once and not kept. */
#define ST_BOOKING_STATE_TABLE(X)                                                              \
    X(ST_BOOKING_QUOTED, "quoted", "is held for whoever asked, and lapses if nobody confirms") \
    X(ST_BOOKING_CONFIRMED, "confirmed", "will be there")                                      \
    X(ST_BOOKING_PREPARING, "preparing", "is about to begin; others leave its GPUs")           \
    X(ST_BOOKING_ACTIVE, "active", "has its GPUs")                                             \
    X(ST_BOOKING_ENDED, "ended", "reached the end of its window")                              \
    X(ST_BOOKING_CANCELLED, "cancelled", "was cancelled, or lapsed")                           \
    X(ST_BOOKING_NO_SHOW, "no_show", "was released because nobody came")
typedef enum st_booking_state {
#define X(id, name, about) id,
    ST_BOOKING_STATE_TABLE(X)
#undef X
        ST_BOOKING_STATE_COUNT
} st_booking_state;

/* A half-open stretch of time. */
typedef struct st_window {
    int64_t from_ms, to_ms;
} st_window;

/* What the GPUs are divided into for the jobs inside: slices or shares of one size. Whole GPUs are not divided. */
typedef struct st_parts {
    st_level level;
    st_mig profile;  /* at MIG */
    int64_t share_m; /* of one GPU, at MPS and TIME */
    int n;           /* how many were asked for; 0 at WHOLE */
} st_parts;

/* How many of that size one GPU of the board has room for; 0: it cannot be divided so. */
int st_parts_per_gpu(st_board board, const st_parts *parts);
/* How many GPUs all of them need; 0: these cannot be divided so. */
int st_parts_gpus(st_board board, const st_parts *parts);

/* What is asked for, whenever it is. */
typedef struct st_booking_spec {
    uint64_t id;     /* unique, chosen by the caller, never 0; a series has those that follow too */
    uint64_t series; /* the first of its series; 0: it stands alone */
    const char *name;
    const char *account, *user;
    int32_t pool; /* -1: any */
    int32_t type;
    int tasks, gpus; /* tasks with so many whole GPUs each */
    st_topo topo;
    bool topo_required;
    int64_t cpu_m, ram_mib; /* per task; 0: an even part of its node */
    int64_t no_show_ms;  /* released if nobody came so long after the start; ST_TIME_NEVER: never */
    const char *require; /* labels of its nodes (model/labels.h); NULL: none */
    bool dedicated;      /* whole nodes, and nobody else on them */
    st_parts parts;      /* divided: as many tasks of one GPU as these need */
    const char *reader;  /* the account of whoever reads a refusal; NULL: may know everything */
} st_booking_spec;

typedef struct st_booking {
    uint64_t id, series;
    uint64_t
        job; /* it is kept for the deadline of that one, and nobody else runs inside; 0: for none */
    char *name;
    int32_t account, user, pool, type;
    int tasks, gpus;
    st_topo topo;
    bool topo_required;
    int64_t cpu_m, ram_mib;
    char *require; /* NULL: none */
    bool
        dedicated; /* its tasks have whole nodes with all of their CPU and RAM, and nothing is lent */
    st_parts parts; /* where its pools divide GPUs so; its tasks then have one GPU each */
    int64_t no_show_ms;
    int64_t from_ms, to_ms;
    int64_t close_ms; /* others are told to leave */
    int64_t clear_ms; /* those inside have left */
    int64_t made_ms;
    int64_t hold_ms; /* quoted: until when */
    st_booking_state state;
    bool moved; /* it had to move after it closed: those there had no time to leave before */
    bool open;  /* nobody else may come to its devices */
    bool told;  /* those inside know that it ends */
    bool used;  /* somebody came */
    bool over;  /* its window has ended; some have not left yet */
    int64_t all_cpu_m, all_ram_mib; /* of its plan; derived */
    uint32_t needs; /* of the job it is kept for: what its pool must allow; derived */
    uint64_t nodes; /* ... and which nodes it allows */
    st_grant *plan; /* one for each task; node -1: it has no place, and one is being looked for */
} st_booking;

/* Whether some of its tasks have no place. */
bool st_booking_degraded(const st_booking *booking);
const char *st_booking_state_name(st_booking_state state);
void st_booking_free(st_booking *booking);

/* Bookings among those for whom a job yields: their numbers are not those of jobs. */
#define ST_BOOKING_BIT (UINT64_C(1) << 63)

#endif
