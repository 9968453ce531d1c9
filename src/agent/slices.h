/*
 * What MIG slices did, for rollups and for the page: each slice that a running task holds is sampled as
 * an instance of its own, beside the GPUs.
 */
#ifndef ST_AGENT_SLICES_H
#define ST_AGENT_SLICES_H

#include "agent/plan.h"
#include "gpu/gpu.h"

/* One slice at its last sample. */
typedef struct st_slice {
    st_task_key key; /* who holds it */
    int gpu;
    st_gpu_instance instance;
    st_gpu_sample sample; /* nothing in it: the driver does not measure instances */
} st_slice;

typedef ST_VEC(st_slice) st_slices;

/* Those of the running tasks, sampled now; what was in *ret is replaced. */
void st_slices_sample(st_gpu *gpu, const st_task *tasks, size_t n, int64_t now_ms, st_slices *ret);

/* NULL: it holds none on that GPU, or it could not be found. */
const st_slice *st_slices_find(const st_slices *slices, const st_task_key *key, int gpu);

/* What counts for a slice: its own measures (`own` NULL: there are none), and of traffic and energy,
 * where only the whole GPU has them, the part of its compute slices. What is neither is absent. Pure. */
void st_slice_view(const st_gpu_sample *whole, const st_gpu_sample *own, st_mig profile,
                   st_gpu_sample *ret);

#endif
