/*
 * What NVML says inside a task, nvidia-smi with it: the grant as the device's memory, and the task's own processes.
 */
#include <string.h>

#include "guard/guard.h"

#define NVML_SUCCESS   0
#define NVML_UNKNOWN   999
#define NVML_INVALID   2
#define NVML_TOO_SMALL 7
#define UUID_TEXT      96

typedef struct memory {
    unsigned long long total, free, used;
} memory;

typedef struct memory2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory2;

typedef struct process1 {
    unsigned pid;
    unsigned long long bytes;
} process1;

typedef struct process2 {
    unsigned pid;
    unsigned long long bytes;
    unsigned gi, ci;
} process2;

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* GPU-8f6e…: 32 digits with dashes between. */
static bool same_uuid(const char *text, const uint8_t uuid[GUARD_UUID])
{
    int n = 0;

    for (const char *p = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text; *p && n < 32; p++) {
        int v = hex(*p);

        if (v < 0)
            continue;
        if ((n % 2 ? uuid[n / 2] & 15 : uuid[n / 2] >> 4) != v)
            return false;
        n++;
    }
    return n == 32;
}

/* NVML knows devices by handle: by UUID, or the only one. */
static guard_device *device_of(void *handle)
{
    typedef int fn(void *, char *, unsigned);
    fn *get = GUARD_REAL(fn *, nvmlDeviceGetUUID);
    char text[UUID_TEXT] = "";

    if (!guard_begin())
        return NULL;
    if (get && get(handle, text, sizeof text) == NVML_SUCCESS)
        for (uint32_t i = 0; i < guard.grant->ndev; i++)
            if (same_uuid(text, guard.grant->dev[i].uuid))
                return guard_map(&guard.dev[i]) ? &guard.dev[i] : NULL;
    return guard.grant->ndev == 1 && guard_map(&guard.dev[0]) ? &guard.dev[0] : NULL;
}

static void shrink(guard_device *d, unsigned long long *total, unsigned long long *left,
                   unsigned long long *used)
{
    uint64_t held = guard_held(d), most = d->limit->vram_bytes;

    if (most < *total)
        *total = most;
    *used = held < *total ? held : *total;
    if (*total - *used < *left)
        *left = *total - *used;
}

GUARD_CALL(nvmlDeviceGetMemoryInfo, void *handle, memory *m)
{
    typedef int fn(void *, memory *);
    fn *real = GUARD_REAL(fn *, nvmlDeviceGetMemoryInfo);
    int r = real ? real(handle, m) : NVML_UNKNOWN;
    guard_device *d = r == NVML_SUCCESS ? device_of(handle) : NULL;

    if (d)
        shrink(d, &m->total, &m->free, &m->used);
    return r;
}

GUARD_CALL(nvmlDeviceGetMemoryInfo_v2, void *handle, memory2 *m)
{
    typedef int fn(void *, memory2 *);
    fn *real = GUARD_REAL(fn *, nvmlDeviceGetMemoryInfo_v2);
    int r = real ? real(handle, m) : NVML_UNKNOWN;
    guard_device *d = r == NVML_SUCCESS ? device_of(handle) : NULL;

    if (d) {
        shrink(d, &m->total, &m->free, &m->used);
        m->reserved = 0;
    }
    return r;
}

static uint64_t bytes_of(const guard_proc *p)
{
    uint64_t sum = 0;

    for (int k = 0; k < GUARD_KIND_COUNT; k++)
        sum += atomic_load(&p->bytes[k]);
    return sum;
}

/* Processes of this task, as it counts them; those of neighbours are nobody's business. */
static int list(guard_device *d, unsigned *n, void *rows, bool wide)
{
    unsigned room = *n, found = 0;

    for (uint32_t i = 0; i < atomic_load(&d->usage->nproc) && i < GUARD_PROCS; i++) {
        const guard_proc *p = &d->usage->proc[i];
        uint64_t bytes = bytes_of(p);

        if (bytes == 0 || !guard_proc_lives(p))
            continue;
        if (found < room && rows && wide)
            ((process2 *)rows)[found] = (process2){
                .pid = atomic_load(&p->pid), .bytes = bytes, .gi = UINT32_MAX, .ci = UINT32_MAX};
        else if (found < room && rows)
            ((process1 *)rows)[found] = (process1){.pid = atomic_load(&p->pid), .bytes = bytes};
        found++;
    }
    *n = found;
    return found <= room ? NVML_SUCCESS : NVML_TOO_SMALL;
}

#define PROCESSES(name, wide)                               \
    GUARD_CALL(name, void *handle, unsigned *n, void *rows) \
    {                                                       \
        guard_device *d = device_of(handle);                \
                                                            \
        if (!n)                                             \
            return NVML_INVALID;                            \
        return d ? list(d, n, rows, wide) : NVML_UNKNOWN;   \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses, false)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, true)
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, true)
