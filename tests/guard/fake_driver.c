/* libcuda.so.1 for tests of the guard: the entries that matter, on the device model of tests/guard/model.h.
 * FAKE_DEVICE names the model's file, FAKE_TASK the number of the task for the model's books. Kernels: "copy" takes
 * 1 ns for 3 KB, "fma" 5 ns a round. Nothing here knows of the guard. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "guard/cuda.h"
#include "model.h"

#define EXPORT  __attribute__((visibility("default")))
#define CHUNK   (UINT64_C(32) << 20) /* what a pool takes at a time */
#define STREAMS 64
#define SIZES   65536

static model *dev;
static int task, me = -1, my_pid;
static bool capture;
static unsigned captured_ns;
static uint64_t ends[STREAMS]; /* of the last work in each stream; 0 is the default one */
static int nstream = 2;
static uint64_t pool_used, pool_kept;
static uint64_t graph_ns[256];
static int ngraph = 1;
static struct {
    uint64_t key, bytes;
    int pool;
} sizes[SIZES];
static uint64_t next_ptr = UINT64_C(0x700000000000);
static _Atomic int size_lock;

typedef struct event {
    uint64_t at_ns;
} event;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t then)
{
    for (uint64_t now = now_ns(); now < then; now = now_ns()) {
        struct timespec t = {.tv_sec = (time_t)((then - now) / 1000000000u),
                             .tv_nsec = (long)((then - now) % 1000000000u)};

        nanosleep(&t, NULL);
    }
}

/* Of the hardware, which does not die with a process: a lock whose owner is gone is free. */
static void lock_model(void)
{
    int was = 0, mine = getpid(), wait = 10;

    while (!atomic_compare_exchange_weak(&dev->lock, &was, mine)) {
        if (was && kill(was, 0) != 0 && atomic_compare_exchange_strong(&dev->lock, &was, mine))
            return;
        was = 0;
        usleep((useconds_t)wait);
        wait = wait < 4000 ? wait * 2 : wait;
    }
}

static void unlock_model(void)
{
    atomic_store(&dev->lock, 0);
}

static void begin(void)
{
    const char *path = getenv("FAKE_DEVICE"), *number = getenv("FAKE_TASK");
    int fd;

    if (dev && my_pid == getpid())
        return;
    if (!dev) {
        fd = path ? open(path, O_RDWR) : -1;
        dev = fd >= 0 ? mmap(NULL, sizeof *dev, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;
        if (!dev || dev == MAP_FAILED || dev->magic != MODEL_MAGIC) {
            fprintf(stderr, "fake_driver: no device at %s\n", path ? path : "FAKE_DEVICE");
            abort();
        }
        close(fd);
    }
    my_pid = getpid();
    me = -1;
    task = number ? atoi(number) : 0;
}

/* `full`: those of processes that are gone are given back. */
static uint64_t used(int of, bool full)
{
    uint64_t sum = 0;

    for (int i = 0; i < MODEL_PROCS; i++) {
        if (dev->proc[i].pid && i != me && full && kill(dev->proc[i].pid, 0) != 0)
            dev->proc[i].pid = 0, dev->proc[i].bytes = 0;
        if (dev->proc[i].pid && (of < 0 || dev->proc[i].task == of))
            sum += dev->proc[i].bytes;
    }
    return sum;
}

static bool take(uint64_t bytes)
{
    bool ok;

    lock_model();
    for (int i = 0; me < 0 && i < MODEL_PROCS; i++)
        if (dev->proc[i].pid == 0 || kill(dev->proc[i].pid, 0) != 0) {
            dev->proc[i].pid = my_pid;
            dev->proc[i].task = task;
            dev->proc[i].bytes = 0;
            me = i;
        }
    ok = me >= 0 && used(-1, false) + bytes <= dev->total;
    if (me >= 0 && (!ok || dev->calls++ % 64 == 0))
        ok = used(-1, true) + bytes <= dev->total;
    if (ok)
        dev->proc[me].bytes += bytes;
    if (ok && used(task, false) > dev->peak[task] && used(task, true) > dev->peak[task])
        dev->peak[task] = used(task, false);
    unlock_model();
    return ok;
}

static void give(uint64_t bytes)
{
    lock_model();
    if (me >= 0)
        dev->proc[me].bytes -= bytes;
    unlock_model();
}

static void lock_sizes(void)
{
    while (atomic_exchange(&size_lock, 1))
        usleep(1);
}

static uint64_t remember(uint64_t bytes, int pool)
{
    uint64_t key = 0;

    lock_sizes();
    for (int i = 0; i < SIZES && !key; i++)
        if (!sizes[i].key) {
            key = next_ptr;
            next_ptr += (bytes + 4095) / 4096 * 4096;
            sizes[i].key = key;
            sizes[i].bytes = bytes;
            sizes[i].pool = pool;
        }
    atomic_store(&size_lock, 0);
    return key;
}

static bool forget(uint64_t key, uint64_t *bytes, int *pool)
{
    bool found = false;

    lock_sizes();
    for (int i = 0; i < SIZES && !found; i++)
        if (key && sizes[i].key == key) {
            *bytes = sizes[i].bytes;
            *pool = sizes[i].pool;
            sizes[i].key = 0;
            found = true;
        }
    atomic_store(&size_lock, 0);
    return found;
}

/* ---- the beginning ---- */

EXPORT CUresult cuInit(unsigned flags)
{
    (void)flags;
    begin();
    return 0;
}

EXPORT CUresult cuDeviceGetCount(int *n)
{
    *n = 1;
    return 0;
}

EXPORT CUresult cuDeviceGet(CUdevice *d, int i)
{
    *d = i;
    return i == 0 ? 0 : 101;
}

EXPORT CUresult cuDeviceGetUuid(cu_uuid *u, CUdevice d)
{
    const char *text = getenv("NVIDIA_VISIBLE_DEVICES"), *digits = "0123456789abcdef";
    int n = 0;

    memset(u, 0x5a, sizeof *u);
    u->bytes[15] = (unsigned char)d;
    for (const char *p = text && strncmp(text, "GPU-", 4) == 0 ? text + 4 : ""; *p && n < 32; p++)
        if (strchr(digits, *p)) {
            u->bytes[n / 2] = (unsigned char)(u->bytes[n / 2] << 4 | (strchr(digits, *p) - digits));
            n++;
        }
    return 0;
}

static CUresult context(CUcontext *ret)
{
    begin();
    if (me < 0 && !take(dev->context_bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret = &dev;
    return 0;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice d)
{
    (void)d;
    return context(ret);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice d)
{
    (void)flags;
    (void)d;
    return context(ret);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext c);
EXPORT CUresult cuCtxSetCurrent(CUcontext c)
{
    (void)c;
    return 0;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *c)
{
    *c = &dev;
    return 0;
}

/* A thread without a context, as CUDA's runtime has it before its first call that needs one. */
static bool no_context;

EXPORT void fake_context(int there)
{
    no_context = !there;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *d)
{
    *d = 0;
    return no_context ? 201 : 0; /* invalid context */
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice d)
{
    (void)d;
    begin();
    *bytes = dev->total;
    return 0;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    lock_model();
    *total = dev->total;
    *left = dev->total - used(-1, true);
    unlock_model();
    return 0;
}

/* ---- memory ---- */

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes)
{
    if (!take(bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret = remember(bytes, 0);
    return 0;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
    (void)flags;
    return cuMemAlloc_v2(ret, bytes);
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t w, size_t h, unsigned e)
{
    (void)e;
    *pitch = (w + 511) / 512 * 512;
    return cuMemAlloc_v2(ret, *pitch * h);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr)
{
    uint64_t bytes;
    int pool;

    if (ptr == 0)
        return 0;
    if (!forget(ptr, &bytes, &pool))
        return CUDA_ERROR_INVALID_VALUE;
    give(bytes);
    return 0;
}

static CUresult object(void **ret, uint64_t bytes)
{
    CUdeviceptr p;

    if (cuMemAlloc_v2(&p, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret = (void *)(uintptr_t)p;
    return 0;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *ret, const cu_array2d *a)
{
    return object(ret, a->width * (a->height ? a->height : 1) * 4 * a->channels);
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *ret, const cu_array3d *a)
{
    return object(ret, a->width * (a->height ? a->height : 1) * (a->depth ? a->depth : 1) * 4);
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmap *ret, const cu_array3d *a, unsigned levels)
{
    (void)levels;
    return object(ret, a->width * (a->height ? a->height : 1) * 5);
}

EXPORT CUresult cuArrayDestroy(CUarray a)
{
    return cuMemFree_v2((uintptr_t)a);
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmap a)
{
    return cuMemFree_v2((uintptr_t)a);
}

EXPORT CUresult cuImportExternalMemory(CUextmem *ret, const cu_external_desc *d)
{
    return object(ret, d->size);
}

EXPORT CUresult cuDestroyExternalMemory(CUextmem m)
{
    return cuMemFree_v2((uintptr_t)m);
}

/* One pool, which takes pieces of 32 MiB and keeps them until it is trimmed. */
EXPORT CUresult cuDeviceGetMemPool(CUpool *ret, CUdevice d)
{
    (void)d;
    *ret = &pool_kept;
    return 0;
}

EXPORT CUresult cuMemPoolGetAttribute(CUpool p, int what, void *value)
{
    (void)p;
    *(uint64_t *)value = what == CU_POOL_RESERVED ? pool_kept : 0;
    return 0;
}

EXPORT CUresult cuMemPoolTrimTo(CUpool p, size_t keep)
{
    uint64_t want = (pool_used + CHUNK - 1) / CHUNK * CHUNK;

    (void)p;
    want = want > keep ? want : keep;
    if (pool_kept > want) {
        give(pool_kept - want);
        pool_kept = want;
    }
    return 0;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream s)
{
    uint64_t more = 0;

    (void)s;
    if (pool_used + bytes > pool_kept)
        more = (pool_used + bytes - pool_kept + CHUNK - 1) / CHUNK * CHUNK;
    if (more && !take(more))
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool_kept += more;
    pool_used += bytes;
    *ret = remember(bytes, 1);
    return 0;
}

EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUpool p, CUstream s)
{
    (void)p;
    return cuMemAllocAsync(ret, bytes, s);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream s)
{
    uint64_t bytes;
    int pool;

    (void)s;
    if (!forget(ptr, &bytes, &pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (pool)
        pool_used -= bytes;
    else
        give(bytes);
    return 0;
}

/* ---- work ---- */

static int stream_of(CUstream s)
{
    return (int)((uintptr_t)s % STREAMS);
}

static void run(CUstream s, uint64_t ns)
{
    uint64_t start, waits;

    if (capture) {
        captured_ns += (unsigned)ns;
        return;
    }
    lock_model();
    start = now_ns() + 2000;
    waits = dev->busy_until_ns > start ? (dev->busy_until_ns - start) / MODEL_STEP_NS : 0;
    dev->queued[task][waits < MODEL_QUEUED ? waits : MODEL_QUEUED - 1]++;
    start = start > dev->busy_until_ns ? start : dev->busy_until_ns;
    if (dev->last_pid && dev->last_pid != my_pid)
        start += dev->switch_ns;
    dev->last_pid = my_pid;
    dev->busy_until_ns = start + ns;
    dev->work_ns[task] += ns;
    dev->calls++;
    ends[stream_of(s)] = start + ns;
    unlock_model();
}

EXPORT CUresult cuModuleLoadData(void **m, const void *image);
EXPORT CUresult cuModuleLoadData(void **m, const void *image)
{
    (void)image;
    *m = &dev;
    return 0;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *f, void *m, const char *name);
EXPORT CUresult cuModuleGetFunction(CUfunction *f, void *m, const char *name)
{
    (void)m;
    *f = (CUfunction)(uintptr_t)(strcmp(name, "copy") == 0 ? 1 : 2);
    return 0;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned a, unsigned b, unsigned c, unsigned d,
                               unsigned e, unsigned g, unsigned h, CUstream s, void **params,
                               void **extra)
{
    uint64_t ns = 1000;

    (void)a, (void)b, (void)c, (void)d, (void)e, (void)g, (void)h, (void)extra;
    if (params && f == (CUfunction)1)
        ns = *(uint64_t *)params[2] * 16 / 3000;
    else if (params && f == (CUfunction)2)
        ns = *(uint64_t *)params[1] * 5;
    run(s, ns);
    return 0;
}

EXPORT CUresult cuLaunchKernelEx(const cu_launch_config *c, CUfunction f, void **params,
                                 void **extra)
{
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, c->stream, params, extra);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned a, unsigned b, unsigned c,
                                          unsigned d, unsigned e, unsigned g, unsigned h,
                                          CUstream s, void **params)
{
    return cuLaunchKernel(f, a, b, c, d, e, g, h, s, params, NULL);
}

EXPORT CUresult cuStreamCreate(CUstream *s, unsigned flags);
EXPORT CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
    (void)flags;
    nstream++;
    *s = (CUstream)(uintptr_t)(nstream % STREAMS);
    return 0;
}

EXPORT CUresult cuStreamSynchronize(CUstream s)
{
    sleep_until(ends[stream_of(s)]);
    return 0;
}

EXPORT CUresult cuStreamQuery(CUstream s)
{
    return now_ns() >= ends[stream_of(s)] ? 0 : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    for (int i = 0; i < STREAMS; i++)
        sleep_until(ends[i]);
    return 0;
}

EXPORT CUresult cuEventCreate(CUevent *e, unsigned flags)
{
    (void)flags;
    *e = calloc(1, sizeof(event));
    return *e ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuEventRecord(CUevent e, CUstream s)
{
    uint64_t now = now_ns(), end = ends[stream_of(s)];

    ((event *)e)->at_ns = end > now ? end : now;
    /* Work that another process has before ours delays what comes next. */
    lock_model();
    if (end <= now && dev->last_pid != my_pid && dev->busy_until_ns > now)
        ((event *)e)->at_ns = dev->busy_until_ns + dev->switch_ns;
    unlock_model();
    return 0;
}

EXPORT CUresult cuEventQuery(CUevent e)
{
    return now_ns() >= ((event *)e)->at_ns ? 0 : CUDA_ERROR_NOT_READY;
}

EXPORT CUresult cuEventSynchronize(CUevent e)
{
    sleep_until(((event *)e)->at_ns);
    return 0;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    *ms = (float)((double)(((event *)b)->at_ns - ((event *)a)->at_ns) / 1e6);
    return 0;
}

/* ---- graphs ---- */

EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, int mode)
{
    (void)s;
    (void)mode;
    capture = true;
    captured_ns = 0;
    return 0;
}

EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
    (void)s;
    capture = false;
    graph_ns[ngraph % 256] = captured_ns;
    *g = (CUgraph)(uintptr_t)(ngraph++ % 256);
    return 0;
}

EXPORT CUresult cuStreamIsCapturing(CUstream s, int *status)
{
    (void)s;
    *status = capture;
    return 0;
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUexec *e, CUgraph g, unsigned long long flags)
{
    (void)flags;
    *e = g;
    return 0;
}

EXPORT CUresult cuGraphLaunch(CUexec e, CUstream s)
{
    run(s, graph_ns[(uintptr_t)e % 256]);
    return 0;
}

/* ---- looking up: the newest form by the rules of the names ---- */

static void *named(const char *symbol, const char *suffix, bool twin)
{
    static const char *const twins[] = {"_ptsz", "_ptds"};
    char name[128];
    void *found = NULL;
    Dl_info here;
    static void *self;

    if (!self && dladdr((void *)named, &here))
        self = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (int i = 0; twin && i < 2 && !found; i++) {
        snprintf(name, sizeof name, "%s%s%s", symbol, suffix, twins[i]);
        found = dlsym(self, name);
    }
    snprintf(name, sizeof name, "%s%s", symbol, suffix);
    return found ? found : dlsym(self, name);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
                                    int *status)
{
    void *found = NULL;

    if (version >= 3020)
        found = named(symbol, "_v2", flags & CU_PROC_PER_THREAD);
    if (!found)
        found = named(symbol, "", flags & CU_PROC_PER_THREAD);
    *pfn = found;
    if (status)
        *status = found ? 0 : 1;
    return found ? 0 : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}
