/*
 * Inside the nvml driver: the part of NVIDIA's management library that we call, in declarations of
 * our own, and its loading at run time. Nothing of NVIDIA is needed to build.
 *
 * Every symbol is optional: an older driver that lacks one answers NVML_FUNCTION_MISSING through
 * NV(), and the caller does without. Layouts are those of NVML 11 and later on 64-bit Linux and are
 * asserted below.
 */
#ifndef ST_GPU_NVML_LIB_H
#define ST_GPU_NVML_LIB_H

#include <stdint.h>

#include "base/err.h"

typedef struct nv_device *nv_dev;
typedef struct nv_gpu_instance *nv_gi;
typedef struct nv_compute_instance *nv_ci;
typedef struct nv_event_set *nv_events;
typedef struct nv_gpm_sample *nv_gpm;

/* Results. */
enum {
    NVML_OK = 0,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_TOO_SMALL = 7,
    NVML_TIMED_OUT = 10,
    NVML_FUNCTION_MISSING = 13,
    NVML_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_IN_USE = 19,
    NVML_NO_RESOURCES = 23,
};

typedef struct nv_pci {
    char legacy[16];
    uint32_t domain, bus, device, id, subsystem;
    char bus_id[32];
} nv_pci;

typedef struct nv_memory {
    uint32_t version;
    uint64_t total, reserved, free, used;
} nv_memory;

typedef struct nv_utilization {
    uint32_t gpu, memory;
} nv_utilization;

typedef struct nv_process {
    uint32_t pid;
    uint64_t memory;
    uint32_t gi, ci;
} nv_process;

typedef struct nv_process_sample {
    uint32_t pid;
    uint64_t at_us;
    uint32_t sm, memory, encoder, decoder;
} nv_process_sample;

typedef union nv_value {
    double d;
    uint32_t u32;
    uint64_t u64;
    int64_t i64;
    int32_t i32;
    uint16_t u16;
} nv_value;

enum { NV_DOUBLE, NV_U32, NV_ULONG, NV_U64, NV_I64, NV_I32, NV_U16 };

typedef struct nv_field {
    uint32_t id, scope;
    int64_t at_us, latency_us;
    int32_t type, result;
    nv_value value;
} nv_field;

typedef struct nv_gpm_metric {
    uint32_t id;
    int32_t result;
    double value;
    const char *names[3];
} nv_gpm_metric;

#define NV_GPM_ROOM 400 /* newer libraries know more metrics; what they might write must fit */
typedef struct nv_gpm_get {
    uint32_t version, n;
    nv_gpm first, second;
    nv_gpm_metric metric[NV_GPM_ROOM];
} nv_gpm_get;

typedef struct nv_gpm_support {
    uint32_t version, supported;
} nv_gpm_support;

typedef struct nv_event {
    nv_dev device;
    uint64_t type, data;
    uint32_t gi, ci;
} nv_event;

typedef struct nv_placement {
    uint32_t start, size;
} nv_placement;

typedef struct nv_gi_profile {
    uint32_t version, id, p2p, slices, instances, sms, copy, decoders, encoders, jpeg, ofa;
    uint64_t memory_mib;
    char name[96];
} nv_gi_profile;

typedef struct nv_gi_info {
    nv_dev device;
    uint32_t id, profile_id;
    nv_placement place;
} nv_gi_info;

typedef struct nv_ci_profile {
    uint32_t id, slices, instances, sms, copy, decoders, encoders, jpeg, ofa;
} nv_ci_profile;

_Static_assert(sizeof(nv_pci) == 68, "layout");
_Static_assert(sizeof(nv_memory) == 40, "layout");
_Static_assert(sizeof(nv_process) == 24, "layout");
_Static_assert(sizeof(nv_process_sample) == 32, "layout");
_Static_assert(sizeof(nv_field) == 40, "layout");
_Static_assert(sizeof(nv_gpm_metric) == 40, "layout");
_Static_assert(sizeof(nv_event) == 32, "layout");
_Static_assert(sizeof(nv_gi_profile) == 152, "layout");
_Static_assert(sizeof(nv_gi_info) == 24, "layout");

/* Versioned structures carry their size and version. */
#define NV_VERSION(type, version) ((uint32_t)sizeof(type) | (uint32_t)(version) << 24)

/* X(short name, symbol, parameters) */
#define NV_SYMBOLS(X)                                                                         \
    X(init, nvmlInit_v2, (void))                                                              \
    X(shutdown, nvmlShutdown, (void))                                                         \
    X(driver_version, nvmlSystemGetDriverVersion, (char *, uint32_t))                         \
    X(cuda_version, nvmlSystemGetCudaDriverVersion_v2, (int *))                               \
    X(count, nvmlDeviceGetCount_v2, (uint32_t *))                                             \
    X(by_index, nvmlDeviceGetHandleByIndex_v2, (uint32_t, nv_dev *))                          \
    X(name, nvmlDeviceGetName, (nv_dev, char *, uint32_t))                                    \
    X(uuid, nvmlDeviceGetUUID, (nv_dev, char *, uint32_t))                                    \
    X(serial, nvmlDeviceGetSerial, (nv_dev, char *, uint32_t))                                \
    X(minor, nvmlDeviceGetMinorNumber, (nv_dev, uint32_t *))                                  \
    X(pci, nvmlDeviceGetPciInfo_v3, (nv_dev, nv_pci *))                                       \
    X(memory, nvmlDeviceGetMemoryInfo_v2, (nv_dev, nv_memory *))                              \
    X(capability, nvmlDeviceGetCudaComputeCapability, (nv_dev, int *, int *))                 \
    X(get_mode, nvmlDeviceGetComputeMode, (nv_dev, int *))                                    \
    X(set_mode, nvmlDeviceSetComputeMode, (nv_dev, int))                                      \
    X(pcie_gen, nvmlDeviceGetCurrPcieLinkGeneration, (nv_dev, uint32_t *))                    \
    X(pcie_gen_max, nvmlDeviceGetMaxPcieLinkGeneration, (nv_dev, uint32_t *))                 \
    X(pcie_width, nvmlDeviceGetCurrPcieLinkWidth, (nv_dev, uint32_t *))                       \
    X(pcie_width_max, nvmlDeviceGetMaxPcieLinkWidth, (nv_dev, uint32_t *))                    \
    X(link_state, nvmlDeviceGetNvLinkState, (nv_dev, uint32_t, int *))                        \
    X(link_pci, nvmlDeviceGetNvLinkRemotePciInfo_v2, (nv_dev, uint32_t, nv_pci *))            \
    X(link_kind, nvmlDeviceGetNvLinkRemoteDeviceType, (nv_dev, uint32_t, int *))              \
    X(ancestor, nvmlDeviceGetTopologyCommonAncestor, (nv_dev, nv_dev, int *))                 \
    X(utilization, nvmlDeviceGetUtilizationRates, (nv_dev, nv_utilization *))                 \
    X(temperature, nvmlDeviceGetTemperature, (nv_dev, int, uint32_t *))                       \
    X(power, nvmlDeviceGetPowerUsage, (nv_dev, uint32_t *))                                   \
    X(power_limit, nvmlDeviceGetEnforcedPowerLimit, (nv_dev, uint32_t *))                     \
    X(energy, nvmlDeviceGetTotalEnergyConsumption, (nv_dev, uint64_t *))                      \
    X(clock, nvmlDeviceGetClockInfo, (nv_dev, int, uint32_t *))                               \
    X(throttle, nvmlDeviceGetCurrentClocksEventReasons, (nv_dev, uint64_t *))                 \
    X(throttle_old, nvmlDeviceGetCurrentClocksThrottleReasons, (nv_dev, uint64_t *))          \
    X(ecc, nvmlDeviceGetTotalEccErrors, (nv_dev, int, int, uint64_t *))                       \
    X(remapped, nvmlDeviceGetRemappedRows,                                                    \
      (nv_dev, uint32_t *, uint32_t *, uint32_t *, uint32_t *))                               \
    X(replay, nvmlDeviceGetPcieReplayCounter, (nv_dev, uint32_t *))                           \
    X(fields, nvmlDeviceGetFieldValues, (nv_dev, int, nv_field *))                            \
    X(processes, nvmlDeviceGetComputeRunningProcesses_v3, (nv_dev, uint32_t *, nv_process *)) \
    X(mps_processes, nvmlDeviceGetMPSComputeRunningProcesses_v3,                              \
      (nv_dev, uint32_t *, nv_process *))                                                     \
    X(process_samples, nvmlDeviceGetProcessUtilization,                                       \
      (nv_dev, nv_process_sample *, uint32_t *, uint64_t))                                    \
    X(gpm_support, nvmlGpmQueryDeviceSupport, (nv_dev, nv_gpm_support *))                     \
    X(gpm_alloc, nvmlGpmSampleAlloc, (nv_gpm *))                                              \
    X(gpm_free, nvmlGpmSampleFree, (nv_gpm))                                                  \
    X(gpm_take, nvmlGpmSampleGet, (nv_dev, nv_gpm))                                           \
    X(gpm_take_mig, nvmlGpmMigSampleGet, (nv_dev, uint32_t, nv_gpm))                          \
    X(gpm_metrics, nvmlGpmMetricsGet, (nv_gpm_get *))                                         \
    X(events_new, nvmlEventSetCreate, (nv_events *))                                          \
    X(events_free, nvmlEventSetFree, (nv_events))                                             \
    X(events_wait, nvmlEventSetWait_v2, (nv_events, nv_event *, uint32_t))                    \
    X(events_known, nvmlDeviceGetSupportedEventTypes, (nv_dev, uint64_t *))                   \
    X(events_add, nvmlDeviceRegisterEvents, (nv_dev, uint64_t, nv_events))                    \
    X(mig_get, nvmlDeviceGetMigMode, (nv_dev, uint32_t *, uint32_t *))                        \
    X(mig_set, nvmlDeviceSetMigMode, (nv_dev, uint32_t, int *))                               \
    X(mig_most, nvmlDeviceGetMaxMigDeviceCount, (nv_dev, uint32_t *))                         \
    X(mig_device, nvmlDeviceGetMigDeviceHandleByIndex, (nv_dev, uint32_t, nv_dev *))          \
    X(mig_gi, nvmlDeviceGetGpuInstanceId, (nv_dev, uint32_t *))                               \
    X(mig_ci, nvmlDeviceGetComputeInstanceId, (nv_dev, uint32_t *))                           \
    X(gi_profile, nvmlDeviceGetGpuInstanceProfileInfoV, (nv_dev, uint32_t, nv_gi_profile *))  \
    X(gi_places, nvmlDeviceGetGpuInstancePossiblePlacements_v2,                               \
      (nv_dev, uint32_t, nv_placement *, uint32_t *))                                         \
    X(gi_left, nvmlDeviceGetGpuInstanceRemainingCapacity, (nv_dev, uint32_t, uint32_t *))     \
    X(gi_create, nvmlDeviceCreateGpuInstanceWithPlacement,                                    \
      (nv_dev, uint32_t, const nv_placement *, nv_gi *))                                      \
    X(gi_destroy, nvmlGpuInstanceDestroy, (nv_gi))                                            \
    X(gi_list, nvmlDeviceGetGpuInstances, (nv_dev, uint32_t, nv_gi *, uint32_t *))            \
    X(gi_by_id, nvmlDeviceGetGpuInstanceById, (nv_dev, uint32_t, nv_gi *))                    \
    X(gi_info, nvmlGpuInstanceGetInfo, (nv_gi, nv_gi_info *))                                 \
    X(ci_profile, nvmlGpuInstanceGetComputeInstanceProfileInfo,                               \
      (nv_gi, uint32_t, uint32_t, nv_ci_profile *))                                           \
    X(ci_create, nvmlGpuInstanceCreateComputeInstance, (nv_gi, uint32_t, nv_ci *))            \
    X(ci_destroy, nvmlComputeInstanceDestroy, (nv_ci))                                        \
    X(ci_by_id, nvmlGpuInstanceGetComputeInstanceById, (nv_gi, uint32_t, nv_ci *))

typedef const char *nv_error_text_fn(int);

typedef struct nv_lib {
    void *handle;
    nv_error_text_fn *text;
#define X(name, symbol, params) int(*name) params;
    NV_SYMBOLS(X)
#undef X
} nv_lib;

/* Calls a symbol that may be missing. */
#define NV(lib, name, ...) ((lib)->name ? (lib)->name(__VA_ARGS__) : NVML_FUNCTION_MISSING)

/* Loads and initialises. -ST_EDOWN names the file and what is wrong. */
int st_nvml_load(const char *path, nv_lib *lib, st_err *err);
void st_nvml_unload(nv_lib *lib);

/* Fails with the library's words for a result, behind "GPU 3: WHAT: ". In use and no room become
 * -ST_ESTATE, no permission -ST_EPERM, not found -ST_ENOENT, all else -ST_EDOWN. */
int st_nvml_fail(const nv_lib *lib, int gpu, const char *what, int result, st_err *err);

#endif
