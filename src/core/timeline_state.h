/* Private to core: how a play is recorded, by estimate.c, and read, by timeline.c. */
#ifndef ST_CORE_TIMELINE_STATE_H
#define ST_CORE_TIMELINE_STATE_H

#include "core/queue.h"
#include "core/timeline.h"

/* A node as it is from some step on; of its GPUs those that are empty. */
typedef struct st_timeline_node {
    int32_t node;
    uint16_t free;
    int64_t cpu_free_m, ram_free_mib;
} st_timeline_node;

/* One job starts or ends. */
typedef struct st_timeline_step {
    uint32_t rank; /* of one who waited; 0 with `on` false, or of a plan that came true */
    bool on;
    int32_t account;
    st_need need;
    uint32_t nodes, nnodes; /* in st_timeline.nodes: how they are afterwards */
} st_timeline_step;

/* What happens at one time: first those who end, then those who start, in the order of their turns. */
typedef struct st_timeline_moment {
    int64_t at_ms;
    uint32_t steps;
} st_timeline_moment;

typedef struct st_timeline_rank {
    uint64_t job;
    int32_t account;
} st_timeline_rank;

struct st_timeline {
    st_estimates list;
    st_idmap *by_job; /* into `list` */
    ST_VEC(st_timeline_rank) order;
    size_t nguaranteed; /* so many of them had their turn inside their floors */
    /* At the beginning. */
    ST_VEC(st_timeline_node) begin;
    ST_VEC(st_use) used; /* by account */
    /* And from then on; what a moment has begins where the one before ends. */
    ST_VEC(st_timeline_moment) moments;
    ST_VEC(st_timeline_step) steps;
    ST_VEC(st_timeline_node) nodes;
};

/* For whom it is recorded: NULL is fine everywhere. */
void st_timeline_begin(st_timeline *tl, const st_core *core);
void st_timeline_at(st_timeline *tl, int64_t at_ms);
void st_timeline_was(st_timeline *tl, int64_t at_ms); /* the last moment, more exactly */
/* The job has its grants; or had them until just now, on these nodes. */
void st_timeline_started(st_timeline *tl, const st_core *core, const st_job *job, size_t rank);
void st_timeline_ended(st_timeline *tl, const st_core *core, const st_job *shape, int32_t type,
                       const int32_t *nodes, size_t n);

/* estimate.c: a start with how wrong such estimates were. */
st_estimate st_core_with_margin(const st_core *core, uint64_t job, int64_t start_ms);

#endif
