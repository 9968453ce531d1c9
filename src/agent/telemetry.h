/*
 * What tasks did with their devices: samples of every GPU, once a second, added up per grant.
 *
 * Held time is what the clock says; everything else is counted only over spans that were sampled
 * (`seen_ms`), so that a gap in which nobody looked is not taken for idleness. What a device does
 * not measure stays unknown: its bit in `has` is not set.
 */
#ifndef ST_AGENT_TELEMETRY_H
#define ST_AGENT_TELEMETRY_H

#include "agent/plan.h"
#include "base/strbuf.h"
#include "gpu/gpu.h"

/* X(id, key in a status, meaning): sums over the devices of a grant. */
#define ST_SUM_TABLE(X)                                                 \
    X(ST_SUM_HELD, "held_gpu_ms") /* devices x time */                  \
    X(ST_SUM_SEEN, "seen_gpu_ms") /* of that, with samples around it */ \
    X(ST_SUM_BUSY, "busy_gpu_ms") /* a kernel was running */            \
    X(ST_SUM_SM, "sm_gpu_ms")     /* SMs had work, averaged over SMs */ \
    X(ST_SUM_DRAM, "dram_gpu_ms") /* device memory was busy */          \
    X(ST_SUM_PCIE, "pcie_bytes")                                        \
    X(ST_SUM_NVLINK, "nvlink_bytes")                                    \
    X(ST_SUM_ENERGY, "energy_mj")                                       \
    X(ST_SUM_MEM_PEAK, "mem_peak_mib") /* the most on all devices at once */
typedef enum st_sum {
#define X(id, key) id,
    ST_SUM_TABLE(X)
#undef X
        ST_SUM_COUNT
} st_sum;

typedef struct st_rollup {
    uint32_t has;
    int64_t v[ST_SUM_COUNT];
    int64_t rest[ST_SUM_COUNT]; /* below one unit, carried on */
} st_rollup;

#define ST_GAP_MS 5000 /* two samples further apart have a gap between them */

/* Adds one device over the time between two samples of it. `share_m` is the part of it, of 1000,
 * that counts for what is not measured by grant: traffic and energy. */
void st_rollup_add(st_rollup *r, const st_gpu_sample *prev, const st_gpu_sample *now, int share_m);
/* The memory in use on all devices of the grant, at one moment. */
void st_rollup_memory(st_rollup *r, int64_t mib);
void st_rollup_json(const st_rollup *r, st_strbuf *out);

#endif
