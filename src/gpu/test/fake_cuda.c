/*
 * A library that answers like CUDA's driver, for tests without one. What it knows is in the folder
 * FAKE_CUDA_DIR, so that several processes see the same:
 *
 *   p.PID    the state of a process, a digit; one without a file is running
 *   fail     lines "WHAT PID RESULT": that call for that process (0: any) fails so
 *   delay    milliseconds that a checkpoint or restore takes
 *   slow     milliseconds that a context takes
 *   log      what was called, a line each
 *   device   the memory of the one device there is; `mib` MiB (8) of zeros of each process if it is not there
 *   stuck    there: what is written to the device does not stick
 *   bad.N    of device N: words that a pattern loses
 *   sum.N    of device N: values that a product or a sum gets wrong
 *   hang.N   there: device N comes to no end
 * `fail` has kernels and copies too, "WHAT N RESULT" for device N - 1 (0: any).
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "gpu/cuda_lib.h"

#define X(name, symbol, params) int symbol params;
CU_SYMBOLS(X)
#undef X

#define ILLEGAL_STATE 401
#define DEVICE_MIB    8
#define KEPT          ((size_t)1 << 20) /* for the driver: cannot be had */
#define SMALLEST      ((size_t)1 << 20)

static unsigned char *memory;
static size_t size, taken, held, big;
static int users, current; /* contexts; the device of the one in use */
static char contexts[16];
static unsigned char small[1 << 16]; /* for what is too small to matter */
static const char ctx;

static FILE *open_file(const char *name, const char *mode)
{
    const char *dir = getenv("FAKE_CUDA_DIR");
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", dir ? dir : "/nonexistent", name);
    return fopen(path, mode);
}

static void note(const char *what, int pid)
{
    FILE *f = open_file("log", "a");

    if (!f)
        return;
    fprintf(f, "%s %d\n", what, pid);
    fclose(f);
}

static int fails(const char *what, int pid)
{
    FILE *f = open_file("fail", "r");
    char word[32];
    int who, result, found = 0;

    while (f && !found && fscanf(f, "%31s %d %d", word, &who, &result) == 3)
        if (strcmp(word, what) == 0 && (who == 0 || who == pid))
            found = result;
    if (f)
        fclose(f);
    return found;
}

static int number_in(const char *name, int otherwise)
{
    FILE *f = open_file(name, "r");
    int n;

    if (!f)
        return otherwise;
    if (fscanf(f, "%d", &n) != 1)
        n = otherwise;
    fclose(f);
    return n;
}

static void pause_for(const char *name)
{
    int ms = number_in(name, 0);
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&pause, NULL);
}

static int state_of(int pid)
{
    char name[32];

    snprintf(name, sizeof name, "p.%d", pid);
    return number_in(name, CU_RUNNING);
}

static int move(const char *what, int pid, int from, int to)
{
    int bad = fails(what, pid);
    char name[32];
    FILE *f;

    if (bad)
        return bad;
    if (state_of(pid) != from)
        return ILLEGAL_STATE;
    note(what, pid);
    if (to == CU_CHECKPOINTED || from == CU_CHECKPOINTED)
        pause_for("delay");
    snprintf(name, sizeof name, "p.%d", pid);
    f = open_file(name, "w");
    if (!f)
        return 999;
    fprintf(f, "%d\n", to);
    fclose(f);
    return CU_OK;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return fails("init", 0);
}

int cuDriverGetVersion(int *ret)
{
    *ret = 13000;
    return CU_OK;
}

int cuGetErrorString(int error, const char **ret)
{
    *ret =
        error == ILLEGAL_STATE ? "the operation cannot be performed in the present state" : "bad";
    return CU_OK;
}

int cuGetErrorName(int error, const char **ret)
{
    *ret = error == ILLEGAL_STATE ? "CUDA_ERROR_ILLEGAL_STATE" : "CUDA_ERROR_OTHER";
    return CU_OK;
}

/* ---- processes ------------------------------------------------------------------------------ */

int cuCheckpointProcessLock(int pid, cu_lock_args *args)
{
    return args->timeout_ms > 0 ? move("lock", pid, CU_RUNNING, CU_LOCKED) : 1;
}

int cuCheckpointProcessCheckpoint(int pid, cu_none_args *args)
{
    (void)args;
    return move("checkpoint", pid, CU_LOCKED, CU_CHECKPOINTED);
}

int cuCheckpointProcessRestore(int pid, cu_restore_args *args)
{
    if (args->npairs > 0)
        note("map", args->pairs[0].to.bytes[15]);
    return move("restore", pid, CU_CHECKPOINTED, CU_LOCKED);
}

int cuCheckpointProcessUnlock(int pid, cu_none_args *args)
{
    (void)args;
    return move("unlock", pid, CU_LOCKED, CU_RUNNING);
}

int cuCheckpointProcessGetState(int pid, int *ret)
{
    int bad = fails("state", pid);

    *ret = state_of(pid);
    return bad;
}

/* ---- the device ----------------------------------------------------------------------------- */

int cuDeviceGetCount(int *ret)
{
    *ret = number_in("devices", 1);
    return CU_OK;
}

int cuDeviceGet(int *ret, int at)
{
    *ret = at;
    return CU_OK;
}

int cuDevicePrimaryCtxRetain(cu_context *ret, int device)
{
    int bad = fails("context", device + 1);
    FILE *f = bad ? NULL : open_file("device", "r+");
    struct stat st;

    note("context", device);
    pause_for("slow");
    if (bad)
        return bad;
    users++;
    memcpy(ret, &(const void *){&contexts[device]}, sizeof *ret);
    current = device;
    if (memory) {
        if (f)
            fclose(f);
        return CU_OK;
    }
    if (f && fstat(fileno(f), &st) == 0) {
        size = (size_t)st.st_size;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
    } else {
        size = (size_t)number_in("mib", DEVICE_MIB) << 20;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (f)
        fclose(f);
    return memory == MAP_FAILED ? 999 : CU_OK;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    if (--users > 0)
        return CU_OK;
    if (held != 0) /* what was taken must be given back */
        abort();
    munmap(memory, size);
    memory = NULL;
    taken = big = 0;
    return CU_OK;
}

int cuCtxSetCurrent(cu_context context)
{
    if (context)
        current = (int)((const char *)context - contexts);
    return context ? CU_OK : 999;
}

static int of_device(const char *what)
{
    char name[32];

    snprintf(name, sizeof name, "%s.%d", what, current);
    return number_in(name, 0);
}

int cuCtxSynchronize(void)
{
    while (of_device("hang"))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return fails("sync", current + 1);
}

int cuModuleLoadData(cu_module *ret, const void *text)
{
    memcpy(ret, &(const void *){&ctx}, sizeof *ret);
    return strstr(text, ".visible .entry ") ? CU_OK : 999;
}

/* A function is its own name. */
static const char *const kernels[] = {"count", "put", "check", "differ", "add", "product"};

int cuModuleGetFunction(cu_function *ret, cu_module module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i], name) == 0)
            memcpy(ret, &(const void *){&kernels[i]}, sizeof *ret);
    return CU_OK;
}

/* A device pointer is the address of our own memory. */
static void *at(cu_ptr p)
{
    return (void *)(uintptr_t)p;
}

#define ARG(type, i) (*(type *)args[i])

static uint32_t pattern(uint32_t i, void **args)
{
    uint32_t h = (i + ARG(uint32_t, 2)) * 0x9E3779B1;

    return ((h ^ h >> 15) & ARG(uint32_t, 3)) | ARG(uint32_t, 4);
}

static void do_count(void **args)
{
    const uint32_t *words = at(ARG(cu_ptr, 0));
    uint64_t found = 0;

    for (uint64_t i = 0; i < ARG(uint64_t, 1) * 4; i++)
        found += words[i] != 0;
    *(uint64_t *)at(ARG(cu_ptr, 2)) += found;
}

static void do_put(void **args)
{
    uint32_t *words = at(ARG(cu_ptr, 0));
    int bad = of_device("bad");

    for (uint64_t i = 0; i < ARG(uint64_t, 1); i++)
        words[i] = pattern((uint32_t)i, args);
    for (int i = 0; i < bad; i++)
        words[i] ^= 1;
}

static void do_check(void **args)
{
    const uint32_t *words = at(ARG(cu_ptr, 0));

    for (uint64_t i = 0; i < ARG(uint64_t, 1); i++)
        *(uint64_t *)at(ARG(cu_ptr, 5)) += words[i] != pattern((uint32_t)i, args);
}

static void do_differ(void **args)
{
    const uint32_t *a = at(ARG(cu_ptr, 0)), *b = at(ARG(cu_ptr, 1));

    for (uint64_t i = 0; i < ARG(uint64_t, 2); i++)
        *(uint64_t *)at(ARG(cu_ptr, 3)) += a[i] != b[i];
}

static void do_add(void **args)
{
    float *to = at(ARG(cu_ptr, 0)), *from = at(ARG(cu_ptr, 1));

    for (uint64_t i = 0; i < ARG(uint64_t, 2); i++)
        to[i] += from[i];
    to[0] += (float)of_device("sum");
}

/* The first row is a product; all of them would take long. */
static void do_product(void **args)
{
    const float *a = at(ARG(cu_ptr, 0)), *b = at(ARG(cu_ptr, 1));
    float *c = at(ARG(cu_ptr, 2));
    uint32_t n = ARG(uint32_t, 3);
    static int times;
    int bad = times++ > 0 ? of_device("sum") : 0;

    memset(c, 0, (size_t)n * n * sizeof *c);
    for (uint32_t k = 0; k < n; k++) {
        float sum = 0;

        for (uint32_t i = 0; i < n; i++)
            sum += a[i] * b[(size_t)i * n + k];
        c[k] = k < (uint32_t)bad ? -sum : sum;
    }
}

int cuLaunchKernel(cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
    static void (*const does[])(void **) = {do_count,  do_put, do_check,
                                            do_differ, do_add, do_product};
    size_t which = (size_t)((const char *const *)(const void *)f - kernels);
    int bad = fails(kernels[which], current + 1);

    (void)shared, (void)stream, (void)extra;
    if (gx == 0 || gy == 0 || gz != 1 || bx == 0 || by != 1 || bz != 1)
        return 1;
    if (bad)
        return bad;
    does[which](args);
    return fails("launch", 0);
}

int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    *left = size - taken;
    *total = size;
    return CU_OK;
}

int cuMemAlloc_v2(cu_ptr *ret, size_t bytes)
{
    if (bytes < SMALLEST) {
        *ret = (cu_ptr)(uintptr_t)small;
        held++;
        return bytes <= sizeof small ? CU_OK : CU_OUT_OF_MEMORY;
    }
    if (taken + bytes + KEPT > size)
        return CU_OUT_OF_MEMORY;
    *ret = (cu_ptr)(uintptr_t)(memory + taken);
    taken += bytes;
    held++;
    big++;
    return CU_OK;
}

int cuMemFree_v2(cu_ptr p)
{
    held--;
    if (at(p) != (void *)small && --big == 0)
        taken = 0;
    return CU_OK;
}

int cuMemsetD32_v2(cu_ptr p, unsigned value, size_t words)
{
    uint32_t *to = at(p);
    bool ours = (void *)to == (void *)small;

    note("fill", (int)(words >> 18));
    if (!ours && number_in("stuck", 0))
        return CU_OK;
    for (size_t i = 0; i < words; i++)
        to[i] = value;
    return CU_OK;
}

int cuMemcpyDtoH_v2(void *to, cu_ptr from, size_t bytes)
{
    memcpy(to, at(from), bytes);
    return CU_OK;
}

/* ---- copies --------------------------------------------------------------------------------- */

int cuMemAllocHost_v2(void **ret, size_t bytes)
{
    *ret = malloc(bytes);
    return *ret ? CU_OK : CU_OUT_OF_MEMORY;
}

int cuMemFreeHost(void *p)
{
    free(p);
    return CU_OK;
}

int cuMemcpyHtoDAsync_v2(cu_ptr to, const void *from, size_t n, void *stream)
{
    (void)stream;
    memcpy(at(to), from, n);
    return fails("copy", current + 1);
}

int cuMemcpyDtoHAsync_v2(void *to, cu_ptr from, size_t n, void *stream)
{
    (void)stream;
    memcpy(to, at(from), n);
    return CU_OK;
}

int cuMemcpyDtoDAsync_v2(cu_ptr to, cu_ptr from, size_t n, void *stream)
{
    (void)stream;
    memmove(at(to), at(from), n);
    return CU_OK;
}

int cuDeviceCanAccessPeer(int *ret, int device, int peer)
{
    *ret = device != peer;
    return CU_OK;
}

int cuCtxEnablePeerAccess(cu_context context, unsigned flags)
{
    (void)flags;
    return context ? CU_OK : 999;
}

int cuMemcpyPeerAsync(cu_ptr to, cu_context to_ctx, cu_ptr from, cu_context from_ctx, size_t n,
                      void *stream)
{
    (void)stream;
    if (!to_ctx || !from_ctx)
        return 999;
    memmove(at(to), at(from), n);
    return fails("peer", current + 1);
}
