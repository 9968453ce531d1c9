/*
 * What is measured of a GPU, one row each: our id, the name Prometheus users know from DCGM, how
 * it behaves, the scale and a sentence.
 *
 * A sample is an array of integers and a mask of those that are there: a metric that the hardware,
 * the driver or the moment does not give is ABSENT, which is not zero. A value divided by its
 * row's scale has the unit in the sentence.
 *
 * A row is exported as gauge or counter; the names are what dcgm-exporter writes, so that existing
 * dashboards and alerts work unchanged.
 */
#ifndef ST_GPU_METRICS_H
#define ST_GPU_METRICS_H

#include <stdbool.h>
#include <stdint.h>

/* X(id, exported name, Prometheus type, scale, help) */
#define ST_GPU_METRIC_TABLE(X)                                                                     \
    X(GPU_UTIL, "DCGM_FI_DEV_GPU_UTIL", "gauge", 1, "Time with a kernel running, in %.")           \
    X(MEM_COPY_UTIL, "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", 1, "Time memory was used, in %.")       \
    X(GR_ACTIVE, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", 1000000,                                \
      "Ratio of time the compute engine was active.")                                              \
    X(SM_ACTIVE, "DCGM_FI_PROF_SM_ACTIVE", "gauge", 1000000,                                       \
      "Ratio of cycles an SM had a warp, averaged over SMs.")                                      \
    X(SM_OCCUPANCY, "DCGM_FI_PROF_SM_OCCUPANCY", "gauge", 1000000,                                 \
      "Ratio of warps resident to the most there could be.")                                       \
    X(TENSOR_ACTIVE, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", 1000000,                          \
      "Ratio of cycles a tensor pipe was active.")                                                 \
    X(DRAM_ACTIVE, "DCGM_FI_PROF_DRAM_ACTIVE", "gauge", 1000000,                                   \
      "Ratio of cycles device memory was sending or receiving.")                                   \
    X(PCIE_TX, "DCGM_FI_PROF_PCIE_TX_BYTES", "gauge", 1, "PCIe, from the GPU, in B/s.")            \
    X(PCIE_RX, "DCGM_FI_PROF_PCIE_RX_BYTES", "gauge", 1, "PCIe, to the GPU, in B/s.")              \
    X(NVLINK_TX, "DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", 1, "NVLink, from the GPU, in B/s.")      \
    X(NVLINK_RX, "DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", 1, "NVLink, to the GPU, in B/s.")        \
    X(FB_TOTAL, "DCGM_FI_DEV_FB_TOTAL", "gauge", 1, "Device memory, in MiB.")                      \
    X(FB_USED, "DCGM_FI_DEV_FB_USED", "gauge", 1, "Device memory in use, in MiB.")                 \
    X(FB_FREE, "DCGM_FI_DEV_FB_FREE", "gauge", 1, "Device memory free, in MiB.")                   \
    X(FB_RESERVED, "DCGM_FI_DEV_FB_RESERVED", "gauge", 1, "Device memory kept back, in MiB.")      \
    X(POWER, "DCGM_FI_DEV_POWER_USAGE", "gauge", 1000, "Power draw, in W.")                        \
    X(POWER_LIMIT, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "gauge", 1000, "Power limit, in W.")        \
    X(ENERGY, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", 1,                                \
      "Energy since the driver was loaded, in mJ.")                                                \
    X(TEMP, "DCGM_FI_DEV_GPU_TEMP", "gauge", 1, "Temperature of the GPU, in C.")                   \
    X(MEM_TEMP, "DCGM_FI_DEV_MEMORY_TEMP", "gauge", 1, "Temperature of its memory, in C.")         \
    X(SM_CLOCK, "DCGM_FI_DEV_SM_CLOCK", "gauge", 1, "SM clock, in MHz.")                           \
    X(MEM_CLOCK, "DCGM_FI_DEV_MEM_CLOCK", "gauge", 1, "Memory clock, in MHz.")                     \
    X(THROTTLE, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", 1,                                  \
      "Why clocks are low, as bits: 1 idle, 4 power cap, 8 slowdown, 32 and 64 thermal.")          \
    X(ECC_SBE_VOL, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", 1,                                  \
      "Corrected memory errors since the driver was loaded.")                                      \
    X(ECC_DBE_VOL, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", 1,                                  \
      "Uncorrected memory errors since the driver was loaded.")                                    \
    X(ECC_SBE_AGG, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", 1,                                  \
      "Corrected memory errors in the life of the GPU.")                                           \
    X(ECC_DBE_AGG, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", 1,                                  \
      "Uncorrected memory errors in the life of the GPU.")                                         \
    X(REMAP_COR, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", 1,                            \
      "Memory rows replaced after corrected errors.")                                              \
    X(REMAP_UNC, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", 1,                          \
      "Memory rows replaced after uncorrected errors.")                                            \
    X(REMAP_PENDING, "DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", 1,                                  \
      "1 when a replacement of rows waits for a reset.")                                           \
    X(REMAP_FAILURE, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", 1,                                  \
      "1 when a replacement of rows failed.")                                                      \
    X(PCIE_REPLAY, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", 1, "PCIe retries.")               \
    X(RECOVERY, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "gauge", 1,                                 \
      "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain peers, 4 drain and reset.") \
    X(XID, "DCGM_FI_DEV_XID_ERRORS", "gauge", 1, "The last XID error; 0 when there was none.")

typedef enum st_gpu_metric {
#define X(id, name, type, scale, help) ST_GPU_##id,
    ST_GPU_METRIC_TABLE(X)
#undef X
        ST_GPU_METRIC_COUNT
} st_gpu_metric;

typedef struct st_gpu_sample {
    int64_t at_ms;
    uint64_t has; /* bit m set: v[m] was measured */
    int64_t v[ST_GPU_METRIC_COUNT];
} st_gpu_sample;

_Static_assert(ST_GPU_METRIC_COUNT <= 64, "the mask of a sample has 64 bits");

static inline bool st_gpu_has(const st_gpu_sample *s, st_gpu_metric m)
{
    return s->has >> m & 1;
}

static inline void st_gpu_put(st_gpu_sample *s, st_gpu_metric m, int64_t value)
{
    s->has |= UINT64_C(1) << m;
    s->v[m] = value;
}

/* Of one row. The name is the exported one. */
const char *st_gpu_metric_name(st_gpu_metric m);
const char *st_gpu_metric_type(st_gpu_metric m);
const char *st_gpu_metric_help(st_gpu_metric m);
int64_t st_gpu_metric_scale(st_gpu_metric m);

#endif
