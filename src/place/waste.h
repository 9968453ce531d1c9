/* Private to place: what a choice wastes.
 *
 * The waste of a node is the GPU it has free and the typical workload cannot use, in milli-GPU
 * (doc/dev/placement.md): half of what typical tasks do not fit, and all of what the CPU and RAM
 * beside the free GPUs will not carry. A task costs what it adds. Levels do not mix on a GPU, so
 * each GPU offers what its mode allows: a free one everything, a shared one its rest to shares of
 * its level, a carved one the slices its geometry still holds. */
#ifndef ST_PLACE_WASTE_H
#define ST_PLACE_WASTE_H

#include "place/typical.h"

typedef struct st_waste st_waste;

st_waste *st_waste_new(void);
void st_waste_free(st_waste *waste);

/* Bring the tables up to date with the target; false while there is none. */
bool st_waste_ready(st_waste *waste, const st_typical *typical);

/* A node as it stands, and what may be used of it. */
typedef struct st_spot {
    const st_fleet *fleet;
    const st_tree *tree;
    const st_node *node;
    const st_view *view;
    uint16_t devs;
} st_spot;

/* What one task of the job would add to the waste of the node, in milli-GPU; it must fit. */
int64_t st_waste_cost(st_waste *waste, const st_spot *spot, const st_job *job);

/* The GPU for one slice or share that costs least, the fuller among equals; at MIG also where
 * on it. -1 when none has room. */
int st_waste_pick(st_waste *waste, const st_spot *spot, const st_job *job, int8_t *ret_mig_start);

#endif
