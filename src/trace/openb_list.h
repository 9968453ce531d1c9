/*
 * Traces in the format of the openb lists: nodes (cpu_milli, memory_mib, gpu, model) and pods
 * (cpu_milli, memory_mib, num_gpu, gpu_milli and, if there, gpu_spec: models joined by |), and the
 * stream of arrivals that an experiment on fragmentation makes of them.
 */
#ifndef ST_TRACE_OPENB_LIST_H
#define ST_TRACE_OPENB_LIST_H

#include "base/err.h"
#include "base/vec.h"
#include "model/types.h"

#define ST_OPENB_PODS_MAX 10000000

typedef struct st_openb_node {
    int64_t ram_mib;
    int32_t cpu_m, gpus, type;
} st_openb_node;

typedef struct st_openb_ask {
    int64_t ram_mib;
    int32_t cpu_m;
    int32_t gpus;   /* 0: CPU only */
    int32_t gpu_m;  /* of each: 1000, or less for a part of one GPU; 0 without GPUs */
    uint32_t types; /* bit t: model t will do; of no meaning without GPUs */
} st_openb_ask;

typedef struct st_openb_pod {
    st_openb_ask ask;
    int32_t gpu_m; /* as listed; ask.gpu_m is 1000 where whole GPUs are taken */
} st_openb_pod;

typedef struct st_openb {
    char *models[ST_TYPES_MAX];
    int32_t nmodels;
    ST_VEC(st_openb_node) nodes;
    ST_VEC(st_openb_pod) pods;
    int64_t capacity_m; /* GPU of all nodes */
} st_openb;

int st_openb_load(const char *nodes_path, const char *pods_path, st_openb **ret, st_err *err);
void st_openb_free(st_openb *t);
ST_DEFINE_FREEP(st_openb, st_openb_free)

/* Arrivals as indices of pods, and the order of the nodes, of which there are `times` as many as
 * listed: all pods shuffled, then some drawn again until those listed gpu_m add up to 130 %. */
typedef struct st_openb_stream {
    ST_VEC(int32_t) arrivals;
    ST_VEC(int32_t) nodes; /* indices of the list */
} st_openb_stream;

void st_openb_draw(const st_openb *t, uint64_t seed, int32_t times, st_openb_stream *ret);
void st_openb_stream_done(st_openb_stream *s);

#endif
