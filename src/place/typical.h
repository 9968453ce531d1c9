/* The typical workload, learned from what is submitted, and what a choice wastes of it.
 *
 * Every accepted job counts in the class of its tasks, as often as a task has GPUs. Counts are halved now and then, a new
 * class replaces the lightest and inherits its count (so what is frequent is never crowded out),
 * and the heaviest classes at a few moments make the target. Between those moments the target
 * stands still, and one that would hardly differ from the last is not taken: whatever was
 * reckoned with it stays good.
 *
 * All of it is plain numbers, and all of it is saved with the core: a core that was loaded must
 * choose as the one that was saved. */
#ifndef ST_PLACE_TYPICAL_H
#define ST_PLACE_TYPICAL_H

#include "model/fleet.h"

#define ST_TYPICAL_SEEN   128   /* classes that are counted */
#define ST_TYPICAL_TARGET 48    /* classes the target has at most */
#define ST_TYPICAL_FIRST  16    /* arrivals until there is a target */
#define ST_TYPICAL_HALVE  16384 /* arrivals after which counts are halved */

typedef struct st_kind {
    uint32_t types; /* GPU types that will do */
    st_level level;
    int32_t gpus;
    st_mig profile;  /* at MIG */
    int64_t share_m; /* at MPS and TIME */
    int64_t cpu_m, ram_mib;
    int64_t weight;
} st_kind;

typedef struct st_typical {
    int64_t arrivals, next; /* jobs so far; when the target is looked at again */
    int32_t nseen, ntarget;
    st_kind seen[ST_TYPICAL_SEEN];
    st_kind target[ST_TYPICAL_TARGET]; /* heaviest first */
    uint64_t epoch;                    /* counts targets; not saved */
} st_typical;

/* What a task of the class asks for, in milli-GPU; at least 1. */
int64_t st_kind_gpu_m(const st_kind *kind);

/* Count one accepted job; true when the target is another one now. */
bool st_typical_learn(st_typical *typical, const st_job *job);

#endif
