/*
 * A library that answers like NVIDIA's on a node with two H200, for tests without one. It lacks
 * some symbols for good (serial numbers, clocks, ECC, PCIe width), says NOT
 * SUPPORTED to others (compute mode, utilisation under MIG), and fails on demand. As long as the file that
 * FAKE_NVML_HANG names has the name of a symbol in it, calls of that do not return.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvml_lib.h"
#include "gpu/test/fake_nvml.h"

#define X(name, symbol, params) int symbol params;
NV_SYMBOLS(X)
#undef X
const char *nvmlErrorString(int result);

#define GPUS      2
#define INSTANCES 7
#define MIB       UINT64_C(1048576)

struct nv_device {
    int index; /* of the GPU */
    int slot;  /* of its instance, -1 for the GPU */
};
struct nv_compute_instance {
    int gpu, slot;
};
struct nv_gpu_instance {
    int gpu, slot;
    int used, filled, profile; /* profile: NVML's index */
    uint32_t id, start, size;
    struct nv_compute_instance compute;
    struct nv_device device;
};
struct nv_gpm_sample {
    int used;
    uint32_t at;
};
struct nv_event_set {
    int used;
};

static struct {
    struct {
        const char *symbol;
        int result;
    } forced[16];
    struct nv_device gpu[GPUS];
    struct nv_gpu_instance instance[GPUS][INSTANCES];
    int mig[GPUS];
    nv_process process[4];
    uint32_t nprocess;
    nv_event event[4];
    int nevent;
    struct nv_gpm_sample sample[64];
    uint32_t tick;
    struct nv_event_set set;
} fake;

static const struct {
    uint32_t index, id, slices, most, sms, mib, size, starts;
} profiles[] = {
    {0, 19, 1, 7, 16, 16384, 1, 0x7f},  {1, 14, 2, 3, 32, 33280, 2, 0x15},
    {2, 9, 3, 2, 60, 71424, 4, 0x11},   {3, 5, 4, 1, 64, 71424, 4, 0x01},
    {4, 0, 7, 1, 132, 143360, 8, 0x01}, {7, 20, 1, 1, 16, 16384, 1, 0x7f},
    {9, 15, 1, 4, 26, 33280, 2, 0x55},
};

static void hang(const char *symbol)
{
    const char *path = getenv("FAKE_NVML_HANG");
    char word[64] = "";
    FILE *f;

    while (path && (f = fopen(path, "re"))) {
        int n = fscanf(f, "%63s", word);

        fclose(f);
        if (n != 1 || strcmp(word, symbol) != 0)
            return;
        usleep(10000);
    }
}

static int forced(const char *symbol)
{
    hang(symbol);
    for (int i = 0; i < 16; i++)
        if (fake.forced[i].symbol && strcmp(fake.forced[i].symbol, symbol) == 0)
            return fake.forced[i].result;
    return 0;
}

#define OBEY()                        \
    do {                              \
        int obey_ = forced(__func__); \
        if (obey_)                    \
            return obey_;             \
    } while (0)

/* ---- control ---------------------------------------------------------------------------- */

static void control_set(const char *symbol, int result)
{
    for (int i = 0; i < 16; i++) {
        if (fake.forced[i].symbol && strcmp(fake.forced[i].symbol, symbol) != 0)
            continue;
        fake.forced[i].symbol = symbol;
        fake.forced[i].result = result;
        return;
    }
}

__attribute__((constructor)) static void control_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    for (int g = 0; g < GPUS; g++)
        fake.gpu[g] = (struct nv_device){g, -1};
}

static void control_process(uint32_t pid, uint64_t mib, uint32_t gi)
{
    fake.process[fake.nprocess++] = (nv_process){pid, mib * MIB, gi, gi == UINT32_MAX ? gi : 0};
}

static void control_event(uint64_t type, uint64_t data)
{
    fake.event[fake.nevent++] = (nv_event){&fake.gpu[1], type, data, UINT32_MAX, UINT32_MAX};
}

static int control_samples(void)
{
    int used = 0;
    for (int i = 0; i < 64; i++)
        used += fake.sample[i].used;
    return used;
}

const fake_nvml *fake_nvml_control(void)
{
    static const fake_nvml control = {
        control_set, control_reset, control_process, control_event, control_samples,
    };
    return &control;
}

/* ---- inventory -------------------------------------------------------------------------- */

const char *nvmlErrorString(int result)
{
    return result == NVML_NOT_SUPPORTED ? "Not Supported"
           : result == NVML_IN_USE      ? "In use by another client"
           : result == NVML_LOST        ? "GPU is lost"
                                        : "Some error";
}

int nvmlInit_v2(void)
{
    OBEY();
    return 0;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *to, uint32_t size)
{
    snprintf(to, size, "580.1.2");
    return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *to)
{
    *to = 13000;
    return 0;
}

int nvmlDeviceGetCount_v2(uint32_t *to)
{
    OBEY();
    *to = GPUS;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, nv_dev *to)
{
    *to = &fake.gpu[index];
    return 0;
}

int nvmlDeviceGetName(nv_dev dev, char *to, uint32_t size)
{
    (void)dev;
    snprintf(to, size, "NVIDIA H200");
    return 0;
}

int nvmlDeviceGetUUID(nv_dev dev, char *to, uint32_t size)
{
    if (size < 96) /* as the real one */
        return NVML_TOO_SMALL;
    if (dev->slot < 0)
        snprintf(to, size, "GPU-%d", dev->index);
    else
        snprintf(to, size, "MIG-%d-%u", dev->index, fake.instance[dev->index][dev->slot].id);
    return 0;
}

int nvmlDeviceGetMinorNumber(nv_dev dev, uint32_t *to)
{
    OBEY();
    *to = (uint32_t)dev->index + 4; /* a container need not begin with 0 */
    return 0;
}

int nvmlDeviceGetPciInfo_v3(nv_dev dev, nv_pci *to)
{
    snprintf(to->bus_id, sizeof(to->bus_id), "00000000:%02X:00.0", 0x1A + dev->index);
    return 0;
}

int nvmlDeviceGetMemoryInfo_v2(nv_dev dev, nv_memory *to)
{
    OBEY();
    if (to->version != NV_VERSION(nv_memory, 2))
        return NVML_INVALID_ARGUMENT;
    uint64_t used = 0;
    for (uint32_t i = 0; i < fake.nprocess; i++)
        used += fake.process[i].memory;
    uint64_t total = dev->slot < 0 ? 143771 * MIB : 71424 * MIB;
    *to = (nv_memory){to->version, total, 615 * MIB, total - 615 * MIB - used, used};
    return 0;
}

int nvmlDeviceGetCudaComputeCapability(nv_dev dev, int *major, int *minor)
{
    (void)dev;
    *major = 9;
    *minor = 0;
    return 0;
}

int nvmlDeviceGetComputeMode(nv_dev dev, int *to)
{
    (void)dev;
    *to = 0;
    return 0;
}

int nvmlDeviceSetComputeMode(nv_dev dev, int mode)
{
    (void)dev;
    (void)mode;
    return NVML_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrPcieLinkGeneration(nv_dev dev, uint32_t *to)
{
    (void)dev;
    *to = 5;
    return 0;
}

int nvmlDeviceGetNvLinkState(nv_dev dev, uint32_t link, int *up)
{
    (void)dev;
    *up = link < 4;
    return link < 6 ? 0 : NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nv_dev dev, uint32_t link, nv_pci *to)
{
    (void)link;
    return nvmlDeviceGetPciInfo_v3(&fake.gpu[1 - dev->index], to);
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nv_dev dev, uint32_t link, int *kind)
{
    (void)dev;
    *kind = link == 3 ? 2 : 0;
    return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(nv_dev a, nv_dev b, int *to)
{
    (void)a;
    (void)b;
    *to = 30;
    return 0;
}

/* ---- telemetry -------------------------------------------------------------------------- */

int nvmlDeviceGetUtilizationRates(nv_dev dev, nv_utilization *to)
{
    OBEY();
    *to = (nv_utilization){87, 40};
    return fake.mig[dev->index] ? NVML_NOT_SUPPORTED : 0;
}

int nvmlDeviceGetTemperature(nv_dev dev, int sensor, uint32_t *to)
{
    (void)dev;
    (void)sensor;
    OBEY();
    *to = 41;
    return 0;
}

int nvmlDeviceGetPowerUsage(nv_dev dev, uint32_t *to)
{
    (void)dev;
    *to = 300000;
    return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(nv_dev dev, uint64_t *to)
{
    (void)dev;
    *to = UINT64_C(5000000000);
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nv_dev dev, uint64_t *to)
{
    (void)dev;
    *to = 4;
    return 0;
}

int nvmlDeviceGetRemappedRows(nv_dev dev, uint32_t *a, uint32_t *b, uint32_t *c, uint32_t *d)
{
    OBEY();
    (void)dev;
    *a = 1;
    *b = 2;
    *c = getenv("FAKE_NVML_HANG") ? 0 : 1; /* a node that is to serve has none that wait */
    *d = 0;
    return 0;
}

int nvmlDeviceGetFieldValues(nv_dev dev, int n, nv_field *fields)
{
    OBEY();
    (void)dev;
    for (int i = 0; i < n; i++) {
        fields[i].type = NV_U32;
        fields[i].result = fields[i].id == 82 ? NVML_NOT_SUPPORTED : 0;
        fields[i].value.u32 = fields[i].id == 186 ? 412345 : 2;
        if (fields[i].id == 230 && getenv("FAKE_NVML_HANG")) /* in no need of recovery */
            fields[i].value.u32 = 0;
    }
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nv_dev dev, uint32_t *n, nv_process *to)
{
    uint32_t room = *n, have = dev->index == 0 ? fake.nprocess : 0;
    *n = have;
    if (room < have)
        return NVML_TOO_SMALL;
    for (uint32_t i = 0; i < have; i++)
        to[i] = fake.process[i];
    return 0;
}

int nvmlDeviceGetProcessUtilization(nv_dev dev, nv_process_sample *to, uint32_t *n, uint64_t since)
{
    static const nv_process_sample all[] = {{.pid = 11, .at_us = 100, .sm = 10},
                                            {.pid = 11, .at_us = 200, .sm = 70}};
    (void)dev;
    if (since >= 200)
        return NVML_NOT_FOUND;
    if (!to || *n < 2) {
        *n = 2;
        return NVML_TOO_SMALL;
    }
    memcpy(to, all, sizeof(all));
    *n = 2;
    return 0;
}

int nvmlGpmQueryDeviceSupport(nv_dev dev, nv_gpm_support *to)
{
    OBEY();
    (void)dev;
    to->supported = to->version == 1;
    return 0;
}

int nvmlGpmSampleAlloc(nv_gpm *to)
{
    for (int i = 0; i < 64; i++) {
        if (fake.sample[i].used)
            continue;
        fake.sample[i].used = 1;
        *to = &fake.sample[i];
        return 0;
    }
    return NVML_NO_RESOURCES;
}

int nvmlGpmSampleFree(nv_gpm sample)
{
    sample->used = 0;
    return 0;
}

int nvmlGpmSampleGet(nv_dev dev, nv_gpm sample)
{
    OBEY();
    (void)dev;
    sample->at = ++fake.tick;
    return 0;
}

int nvmlGpmMigSampleGet(nv_dev dev, uint32_t gi, nv_gpm sample)
{
    OBEY();
    (void)dev;
    (void)gi;
    sample->at = ++fake.tick;
    return 0;
}

int nvmlGpmMetricsGet(nv_gpm_get *get)
{
    OBEY();
    if (get->version != 1 || get->first->at >= get->second->at)
        return NVML_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < get->n; i++) {
        get->metric[i].result = get->metric[i].id == 5 ? NVML_NOT_SUPPORTED : 0;
        get->metric[i].value = get->metric[i].id == 60 ? 0.0 / 0.0 : 12.5;
    }
    return 0;
}

/* ---- events ----------------------------------------------------------------------------- */

int nvmlEventSetCreate(nv_events *to)
{
    OBEY();
    *to = &fake.set;
    return 0;
}

int nvmlEventSetFree(nv_events set)
{
    (void)set;
    return 0;
}

int nvmlDeviceGetSupportedEventTypes(nv_dev dev, uint64_t *to)
{
    (void)dev;
    *to = 0x8 | 0x1 | 0x8000;
    return 0;
}

int nvmlDeviceRegisterEvents(nv_dev dev, uint64_t types, nv_events set)
{
    OBEY();
    (void)set;
    /* The first GPU refuses; a GPU refuses what it does not know. */
    return dev->index == 0 || types & ~UINT64_C(0x8009) ? NVML_NOT_SUPPORTED : 0;
}

int nvmlEventSetWait_v2(nv_events set, nv_event *to, uint32_t ms)
{
    OBEY();
    (void)set;
    (void)ms;
    if (fake.nevent == 0)
        return NVML_TIMED_OUT;
    *to = fake.event[0];
    memmove(fake.event, fake.event + 1, sizeof(fake.event[0]) * (size_t)--fake.nevent);
    return 0;
}

/* ---- MIG -------------------------------------------------------------------------------- */

int nvmlDeviceGetMigMode(nv_dev dev, uint32_t *now, uint32_t *pending)
{
    OBEY();
    *now = *pending = (uint32_t)fake.mig[dev->index];
    return 0;
}

int nvmlDeviceSetMigMode(nv_dev dev, uint32_t on, int *status)
{
    OBEY();
    *status = forced("activation");
    if (*status == 0)
        fake.mig[dev->index] = (int)on;
    return 0;
}

int nvmlDeviceGetMaxMigDeviceCount(nv_dev dev, uint32_t *to)
{
    (void)dev;
    *to = 7;
    return 0;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nv_dev dev, uint32_t index, nv_dev *to)
{
    struct nv_gpu_instance *i = &fake.instance[dev->index][index];
    if (!i->used || !i->filled)
        return NVML_NOT_FOUND;
    *to = &i->device;
    return 0;
}

int nvmlDeviceGetGpuInstanceId(nv_dev dev, uint32_t *to)
{
    if (dev->slot < 0 || !fake.instance[dev->index][dev->slot].filled)
        return NVML_NOT_FOUND;
    *to = fake.instance[dev->index][dev->slot].id;
    return 0;
}

int nvmlDeviceGetComputeInstanceId(nv_dev dev, uint32_t *to)
{
    (void)dev;
    *to = 0;
    return 0;
}

static int profile_by(uint32_t index, uint32_t id)
{
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
        if (profiles[i].index == index || profiles[i].id == id)
            return (int)i;
    return -1;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(nv_dev dev, uint32_t index, nv_gi_profile *to)
{
    int p = profile_by(index, UINT32_MAX);
    if (!fake.mig[dev->index] || p < 0)
        return NVML_NOT_SUPPORTED;
    if (to->version != NV_VERSION(nv_gi_profile, 2))
        return NVML_INVALID_ARGUMENT;
    to->id = profiles[p].id;
    to->slices = profiles[p].slices;
    to->instances = profiles[p].most;
    to->sms = profiles[p].sms;
    to->memory_mib = profiles[p].mib;
    return 0;
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(nv_dev dev, uint32_t id, nv_placement *to,
                                                  uint32_t *n)
{
    int p = profile_by(UINT32_MAX, id);
    (void)dev;
    *n = 0;
    for (uint32_t s = 0; s < 8; s++) {
        if (!(profiles[p].starts >> s & 1))
            continue;
        if (to)
            to[*n] = (nv_placement){s, profiles[p].size};
        (*n)++;
    }
    return 0;
}

static uint32_t taken(int gpu)
{
    uint32_t mask = 0;
    for (int i = 0; i < INSTANCES; i++)
        if (fake.instance[gpu][i].used)
            mask |= ((1u << fake.instance[gpu][i].size) - 1) << fake.instance[gpu][i].start;
    return mask;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(nv_dev dev, uint32_t id, const nv_placement *place,
                                             nv_gi *to)
{
    OBEY();
    int p = profile_by(UINT32_MAX, id), slot = 0;
    uint32_t mask = ((1u << place->size) - 1) << place->start;
    if (!(profiles[p].starts >> place->start & 1) || place->size != profiles[p].size)
        return NVML_INVALID_ARGUMENT;
    if (mask & taken(dev->index))
        return NVML_NO_RESOURCES;
    while (fake.instance[dev->index][slot].used)
        slot++;
    fake.instance[dev->index][slot] = (struct nv_gpu_instance){
        .gpu = dev->index,
        .slot = slot,
        .used = 1,
        .profile = p,
        .id = 1 + place->start,
        .start = place->start,
        .size = place->size,
        .compute = {dev->index, slot},
        .device = {dev->index, slot},
    };
    *to = &fake.instance[dev->index][slot];
    return 0;
}

static int lives_in(const struct nv_gpu_instance *gi)
{
    for (uint32_t i = 0; i < fake.nprocess; i++)
        if (fake.process[i].gi == gi->id)
            return 1;
    return 0;
}

int nvmlGpuInstanceDestroy(nv_gi gi)
{
    OBEY();
    if (gi->filled || lives_in(gi))
        return NVML_IN_USE;
    gi->used = 0;
    return 0;
}

int nvmlDeviceGetGpuInstances(nv_dev dev, uint32_t id, nv_gi *to, uint32_t *n)
{
    *n = 0;
    for (int i = 0; i < INSTANCES; i++) {
        struct nv_gpu_instance *gi = &fake.instance[dev->index][i];
        if (gi->used && profiles[gi->profile].id == id)
            to[(*n)++] = gi;
    }
    return 0;
}

int nvmlDeviceGetGpuInstanceById(nv_dev dev, uint32_t id, nv_gi *to)
{
    for (int i = 0; i < INSTANCES; i++) {
        *to = &fake.instance[dev->index][i];
        if ((*to)->used && (*to)->id == id)
            return 0;
    }
    return NVML_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(nv_gi gi, nv_gi_info *to)
{
    *to = (nv_gi_info){&fake.gpu[gi->gpu], gi->id, profiles[gi->profile].id, {gi->start, gi->size}};
    return 0;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(nv_gi gi, uint32_t index, uint32_t engine,
                                                 nv_ci_profile *to)
{
    (void)gi;
    (void)engine;
    *to = (nv_ci_profile){.id = index};
    return 0;
}

int nvmlGpuInstanceCreateComputeInstance(nv_gi gi, uint32_t id, nv_ci *to)
{
    OBEY();
    uint32_t whole[] = {0, 1, 2, 3, 4, 0, 0, 0, 0, 0};
    if (id != whole[profiles[gi->profile].index])
        return NVML_INVALID_ARGUMENT;
    gi->filled = 1;
    *to = &gi->compute;
    return 0;
}

int nvmlGpuInstanceGetComputeInstanceById(nv_gi gi, uint32_t id, nv_ci *to)
{
    (void)id;
    *to = &gi->compute;
    return gi->filled ? 0 : NVML_NOT_FOUND;
}

int nvmlComputeInstanceDestroy(nv_ci ci)
{
    struct nv_gpu_instance *gi = &fake.instance[ci->gpu][ci->slot];
    if (lives_in(gi))
        return NVML_IN_USE;
    gi->filled = 0;
    return 0;
}
