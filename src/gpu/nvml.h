/*
 * Inside the nvml driver: its object, shared by its files.
 *
 * Handles of GPUs are taken once and stay valid; those of instances are looked up by id each time,
 * since ids outlive nothing.
 */
#ifndef ST_GPU_NVML_H
#define ST_GPU_NVML_H

#include "gpu/gpu.h"
#include "gpu/nvml_lib.h"

#define NV_GI_ID_MAX   16   /* ids of GPU instances are below */
#define NV_PROFILE_MAX 0x20 /* indices of GPU instance profiles are below */
#define NV_NONE        UINT32_MAX

/* The last counters of a GPU or an instance, which the next are compared with. */
typedef struct nv_rates {
    nv_gpm last, next;
    int64_t at_ms;
    bool have; /* `last` was taken */
} nv_rates;

typedef struct nv_gpu {
    nv_dev dev;
    int minor;
    st_board board;
    bool gpm;
    bool linked; /* NVLinks are up */
    nv_rates whole, instance[NV_GI_ID_MAX];
    _Atomic int64_t xid; /* the last one seen, 0 for none; written by the waiting thread */
    uint64_t procs_at_us;
    nv_dev mig[NV_GI_ID_MAX]; /* handles of instances as last found; checked before use */
    st_gpu_sample slow;       /* what changes rarely, as last read */
    _Atomic bool slow_stale;  /* an event said that it changed, or it was never read */

    bool profiles_read;
    nv_gi_profile profile[NV_PROFILE_MAX]; /* id NV_NONE: not on this GPU */
} nv_gpu;

typedef struct st_nvml {
    st_gpu base;
    nv_lib lib;
    char *sys;
    char *minors;                 /* of capabilities; see gpu/nodes.h */
    nv_events events;             /* NULL until the first wait */
    bool events_tried;            /* and in vain if there is still no set */
    _Atomic uint64_t events_mask; /* what GPUs registered for; 0 until there is a set */
    nv_gpu gpu[ST_DEVS_MAX];
} st_nvml;

static inline st_nvml *st_nvml_of(st_gpu *g)
{
    return (st_nvml *)g;
}

int st_nvml_inventory(st_gpu *g, st_gpu_inventory *ret, st_err *err);
int st_nvml_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err);
int st_nvml_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err);
int st_nvml_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err);
int st_nvml_mig_mode(st_gpu *g, int gpu, bool on, st_err *err);
int st_nvml_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err);
int st_nvml_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err);
int st_nvml_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                       st_err *err);
int st_nvml_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err);

/* How many NVLinks are up. */
int st_nvml_links(st_nvml *n, nv_dev dev);

/* Whether anything runs on a GPU. */
bool st_nvml_in_use(st_nvml *n, int gpu);

/* The MIG device (a handle that answers like a small GPU) of an instance; NULL when none. */
nv_dev st_nvml_mig_device(st_nvml *n, int gpu, int gi);

/* Forgets counters: the next sample starts anew. */
void st_nvml_rates_done(st_nvml *n, nv_rates *rates);

#endif
