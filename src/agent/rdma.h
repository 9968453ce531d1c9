/*
 * RDMA devices of the node, for tasks that ask for them in a pool that permits it.
 *
 * A card does what its queues say without the kernel: no wall of ours is between tasks that have its device and whatever is
 * on that fabric. That is why it is a permission of the pool; partitions of the fabric are the site's.
 */
#ifndef ST_AGENT_RDMA_H
#define ST_AGENT_RDMA_H

#include "base/arena.h"
#include "run/run.h"

#define ST_RDMA_DIR "/dev/infiniband"

/* How many devices there are for tasks. */
int st_rdma_count(void);

/* Adds them to a task, and lets it lock memory; a node without any is at fault. */
int st_rdma_add(st_arena *arena, st_run_spec *spec, st_err *err);

#endif
