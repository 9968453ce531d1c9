/* The units, limits and small enums every module shares.
 *
 * GPU in milli-GPU (1000 = one GPU), CPU in milli-CPU, RAM and VRAM in MiB, time in
 * milliseconds since an epoch of the caller's choice. All integers: two machines that see
 * the same events reach the same state, bit for bit.
 *
 * Every collection has a limit here; what exceeds one is refused, never truncated. */
#ifndef ST_MODEL_TYPES_H
#define ST_MODEL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define ST_TYPES_MAX       16      /* GPU types in one fleet */
#define ST_POOLS_MAX       64      /* pools in one fleet */
#define ST_DEVS_MAX        16      /* GPUs in one node */
#define ST_DEPTH_MAX       8       /* levels of accounts below the cluster */
#define ST_ACCOUNTS_MAX    65536   /* at a time */
#define ST_PLACES_MAX      1048576 /* of accounts in the list, those of removed ones included */
#define ST_NODES_MAX       262144
#define ST_TASKS_MAX       16384                    /* tasks in one gang */
#define ST_STAY_MAX        2000000000               /* stays of one job */
#define ST_ENGINE_NAME     31                       /* bytes in the name of an engine */
#define ST_NAME_MAX        128                      /* bytes in any name */
#define ST_QTY_MAX         (INT64_C(1000000000000)) /* any quantity, in its own unit */
#define ST_PRIO_MAX        1000000                  /* |priority| of a job or account */
#define ST_MPS_CLIENTS_MAX 48
#define ST_TIME_NEVER      INT64_MAX
#define ST_UNSET           (-1) /* a quota that was not given */
#define ST_WHOLE_M         1000 /* one GPU */

/* How a job shares its GPU, strongest fence first. */
#define ST_LEVEL_TABLE(X)      \
    X(ST_LEVEL_WHOLE, "whole") \
    X(ST_LEVEL_MIG, "mig")     \
    X(ST_LEVEL_MPS, "mps")     \
    X(ST_LEVEL_TIME, "time")
typedef enum st_level {
#define X(id, name) id,
    ST_LEVEL_TABLE(X)
#undef X
        ST_LEVEL_COUNT
} st_level;

/* Topology levels, widest first; NONE means "anywhere in the fleet". */
#define ST_TOPO_TABLE(X)      \
    X(ST_TOPO_NONE, "none")   \
    X(ST_TOPO_ZONE, "zone")   \
    X(ST_TOPO_BLOCK, "block") \
    X(ST_TOPO_RACK, "rack")   \
    X(ST_TOPO_NODE, "node")   \
    X(ST_TOPO_NVLINK, "nvlink")
typedef enum st_topo {
#define X(id, name) id,
    ST_TOPO_TABLE(X)
#undef X
        ST_TOPO_COUNT
} st_topo;

/* The resources of dominant-resource fairness. */
#define ST_DIM_TABLE(X) \
    X(ST_GPU, "gpu")    \
    X(ST_CPU, "cpu")    \
    X(ST_RAM, "ram")
typedef enum st_dim {
#define X(id, name) id,
    ST_DIM_TABLE(X)
#undef X
        ST_NDIMS
} st_dim;

const char *st_level_name(st_level level);
const char *st_topo_name(st_topo topo);
const char *st_dim_name(st_dim dim);

/* What a pool may permit beyond running a fenced container. X(id, word, what a job may then do) */
#define ST_ALLOW_TABLE(X)                                                  \
    X(ST_ALLOW_HOST_IMAGE, "host-image", "run on the node's own files")    \
    X(ST_ALLOW_HOST_NETWORK, "host-network", "use the node's own network") \
    X(ST_ALLOW_RDMA, "rdma", "use the node's RDMA devices")
typedef enum st_allow {
#define X(id, word, what) id,
    ST_ALLOW_TABLE(X)
#undef X
        ST_ALLOW_COUNT
} st_allow;

const char *st_allow_name(st_allow allow);
/* The permissions a job with this image and network needs, as bits; NULL: it names none. `rdma`: it asks for that. */
uint32_t st_allow_needed(const char *image, const char *network, bool rdma);

#endif
