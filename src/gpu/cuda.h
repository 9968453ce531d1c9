/*
 * What stint-cuda does: CUDA processes of others out of device memory and back, and device memory read
 * and cleared. A program of its own, for a CUDA context in the agent would sit on the GPU for good,
 * and because these calls take seconds. Private to src/gpu.
 *
 * Both ways are idempotent: they look at each process first and do what is missing, so what was cut
 * short is simply done again.
 */
#ifndef ST_GPU_CUDA_H
#define ST_GPU_CUDA_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "gpu/cuda_lib.h"

#define ST_CUDA_PIDS_MAX 256

typedef struct st_cuda_pids {
    int pid[ST_CUDA_PIDS_MAX];
    int n;
} st_cuda_pids;

/* GPUs that are others now than when the process was taken off. */
typedef struct st_cuda_map {
    cu_pair pair[16];
    int n;
} st_cuda_map;

/* Adds OLD=NEW; UUIDs as GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx. */
int st_cuda_map_add(st_cuda_map *map, const char *text, st_err *err);

const char *st_cuda_state_name(int state);

/* {"pid": 7, "state": "running"}, … of all, or of those there are. */
int st_cuda_states(const cu_lib *lib, const st_cuda_pids *pids, st_strbuf *out, st_err *err);

/* Locks all, then takes all off their devices. If one will not, all go on as before; *ret_undone is
 * whether that worked. */
int st_cuda_pause(const cu_lib *lib, const st_cuda_pids *pids, int lock_ms, bool *ret_undone,
                  st_err *err);
/* Back onto devices, all of them before the first goes on. */
int st_cuda_resume(const cu_lib *lib, const st_cuda_pids *pids, const st_cuda_map *map,
                   st_err *err);

typedef struct st_cuda_scan {
    uint64_t total, bytes; /* of the devices; read */
    uint64_t left;         /* free, and yet nobody could have it */
    uint64_t found;        /* words of 4 bytes that were not zero */
    bool overwritten;
    int devices;
} st_cuda_scan;

/* All devices that CUDA_VISIBLE_DEVICES shows. An error: it is not known to be clean. */
int st_cuda_scan_all(const cu_lib *lib, st_cuda_scan *ret, st_err *err);

#endif
