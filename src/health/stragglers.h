/* A gang's straggler: the rank for which the others wait. Where ranks go step by step together, those that are done early wait
 * inside a kernel: their GPU is busy, and few of its SMs have work. The one that is late waits less than its peers. If its GPU
 * is busy less as well, something keeps its program from the GPU; if not, the GPU takes longer for the same work. Pure. */
#ifndef ST_HEALTH_STRAGGLERS_H
#define ST_HEALTH_STRAGGLERS_H

#include <stdbool.h>
#include <stdint.h>

/* What the GPUs of one rank did lately, in ms x GPUs; below 0: not measured. */
typedef struct st_rank_use {
    int64_t seen, busy, sm;
} st_rank_use;

typedef struct st_straggler {
    int rank;
    bool device; /* its GPU takes longer; otherwise something else holds its program up */
    int64_t busy_m,
        waits_m; /* of what was seen, in thousandths: a kernel ran; and few SMs had work */
    int64_t others_busy_m, others_waits_m; /* the same of the middle one of the gang */
} st_straggler;

#define ST_STRAGGLER_RANKS 3     /* at least */
#define ST_STRAGGLER_SEEN  20000 /* ms x GPUs of each, at least */

/* False: there is none, or there are several: then the work is uneven, and no rank is to blame. */
bool st_straggler_find(const st_rank_use *ranks, int n, st_straggler *ret);

#endif
