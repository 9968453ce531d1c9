/*
 * Fragmentation-aware choice of a node: the one that leaves most of the typical workload
 * placeable. doc/dev/placement.md has the measure, what it was compared with, and the numbers.
 *
 * The typical workload is learned: every arrival is counted in its class (what it asks for),
 * counts are halved now and then, and at most ST_FRAG_CLASSES classes are remembered. Nothing is
 * configured and nothing is known in advance.
 *
 *     int32_t cls = st_frag_learn(f, &ask);          // once per arrival
 *     if (st_frag_choose(f, cls, &spot))
 *         st_frag_take(f, &ask, &spot);              // st_frag_give when it leaves
 *
 * The measure of a node, in milli-GPU, is what it has free and typical arrivals cannot use:
 *   fit       for each class, GPUs too full for it, or all of them where its CPU or its number of
 *             whole GPUs is not there; averaged over the classes allowed on the type;
 *   balance   free GPUs which the free CPU beside them will not carry, averaged over the
 *             CPU per GPU that arrivals ask for.
 * A choice costs the increase of that measure, in whole steps of ST_FRAG_STEP_M, and the price of
 * the GPU type: how much more contested it is than others the arrival might use. The cheapest
 * node wins, the lower id among equals.
 *
 * For core's placer: one st_frag beside the fleet, a node per st_node (same index) with its type
 * as st_fleet numbers it, st_frag_set from the fleet's log of changes, st_frag_learn at submit.
 * A task that needs one node asks st_frag_choose where st_place_gang would take the fullest; a
 * gang asks per task. Everything is integers or plain +-*: the same events give the same choices.
 */
#ifndef ST_PLACE_FRAG_H
#define ST_PLACE_FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define ST_FRAG_CLASSES   512
#define ST_FRAG_TYPES_MAX 64
#define ST_FRAG_GPUS_MAX  16
#define ST_FRAG_STEP_M    50
#define ST_FRAG_CPU_MAX   (INT32_C(1) << 30)

typedef struct st_frag st_frag;

typedef struct st_frag_ask {
    int64_t ram_mib;
    int32_t cpu_m;
    int32_t gpus;   /* 0: CPU only */
    int32_t gpu_m;  /* of each: 1000, or less for a part of one GPU; 0 without GPUs */
    uint64_t types; /* bit t: GPU type t will do; of no meaning without GPUs */
} st_frag_ask;

typedef struct st_frag_spot {
    int32_t node;
    uint16_t devs; /* bit i: GPU i of the node */
} st_frag_spot;

st_frag *st_frag_new(void);
void st_frag_free(st_frag *f);
ST_DEFINE_FREEP(st_frag, st_frag_free)

/* Adds an empty node and returns its id: 0, 1, 2, ... */
int32_t st_frag_add(st_frag *f, int32_t type, int32_t cpu_m, int64_t ram_mib, int32_t gpus);

/* Says what is free on a node; free_m has one entry per GPU. */
void st_frag_set(st_frag *f, int32_t node, int32_t cpu_m, int64_t ram_mib, const int16_t *free_m);

/* Counts an arrival and returns its class, good until the next call. */
int32_t st_frag_learn(st_frag *f, const st_frag_ask *ask);

/* The best node and GPUs for one of the class; false when none has room. */
bool st_frag_choose(st_frag *f, int32_t cls, st_frag_spot *ret);

void st_frag_take(st_frag *f, const st_frag_ask *ask, const st_frag_spot *spot);
void st_frag_give(st_frag *f, const st_frag_ask *ask, const st_frag_spot *spot);

/* The measure of a node as of now, in milli-GPU. */
int64_t st_frag_measure(const st_frag *f, int32_t node);

#endif
