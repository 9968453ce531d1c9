/*
 * Memory in the order of a stream. A pool takes memory in large pieces and keeps what is freed, so it is charged by what
 * the driver says it has reserved, not by what was asked of it. Where that turns out to be more than the grant, pools
 * are made to let go of what they keep, and the allocation is undone.
 */
#include "guard/guard.h"

typedef CUresult async_fn(CUdeviceptr *, size_t, CUstream);
typedef CUresult from_fn(CUdeviceptr *, size_t, CUpool, CUstream);
typedef CUresult free_fn(CUdeviceptr, CUstream);
typedef CUresult attribute_fn(CUpool, int, void *);
typedef CUresult trim_fn(CUpool, size_t);
typedef CUresult sync_fn(CUstream);

static uint64_t reserved(CUpool pool)
{
    attribute_fn *get = GUARD_REAL(attribute_fn *, cuMemPoolGetAttribute);
    uint64_t bytes = 0;

    return get && get(pool, CU_POOL_RESERVED, &bytes) == CUDA_SUCCESS ? bytes : 0;
}

/* All pools of a device that this process has seen; `trim` makes them let go first. */
static uint64_t all_reserved(const guard_device *d, bool trim)
{
    trim_fn *cut = GUARD_REAL(trim_fn *, cuMemPoolTrimTo);
    uint64_t sum = 0;
    guard_entry e;

    for (size_t i = 0; guard_table_next(GUARD_SET_POOL, &i, &e);) {
        if (&guard.dev[e.device] != d)
            continue;
        if (trim && cut)
            cut((CUpool)(uintptr_t)e.key, 0);
        sum += reserved((CUpool)(uintptr_t)e.key);
    }
    return sum;
}

static void note_pool(const guard_device *d, CUpool pool)
{
    guard_entry e = {.key = (uintptr_t)pool, .device = (int)(d - guard.dev), .set = GUARD_SET_POOL};

    if (pool && !guard_table_change(GUARD_SET_POOL, e.key, 0, 0, &(guard_entry){0}))
        guard_table_put(e);
}

static CUpool current_pool(CUdevice device)
{
    typedef CUresult fn(CUpool *, CUdevice);
    fn *get = GUARD_REAL(fn *, cuDeviceGetMemPool);
    CUpool pool = NULL;

    return get && get(&pool, device) == CUDA_SUCCESS ? pool : NULL;
}

static CUdevice device_now(void)
{
    typedef CUresult fn(CUdevice *);
    fn *get = GUARD_REAL(fn *, cuCtxGetDevice);
    CUdevice device = 0;

    return get && get(&device) == CUDA_SUCCESS ? device : -1;
}

/* Before: room for what is asked, after what could be let go. */
static bool room(guard_device *d, size_t bytes)
{
    for (int round = 0; round < 2; round++) {
        bool fits = guard_charge_set(d, GUARD_POOL, all_reserved(d, round == 1));
        uint64_t held = guard_held(d), kept = all_reserved(d, false);
        uint64_t left = held < d->limit->vram_bytes ? d->limit->vram_bytes - held : 0;

        /* What the pool keeps may serve; if it does not, the look afterwards finds out. */
        if (fits && (bytes <= left || bytes <= left + kept))
            return true;
    }
    guard_count(d, GUARD_COUNT_REFUSED, 1);
    return false;
}

/* Behind the driver's answer. */
static CUresult count_answer(guard_device *d, CUresult r, CUdeviceptr *ret, CUstream stream,
                             bool twin)
{
    free_fn *give =
        twin ? GUARD_REAL(free_fn *, cuMemFreeAsync_ptsz) : GUARD_REAL(free_fn *, cuMemFreeAsync);
    sync_fn *sync = twin ? GUARD_REAL(sync_fn *, cuStreamSynchronize_ptsz)
                         : GUARD_REAL(sync_fn *, cuStreamSynchronize);

    if (r != CUDA_SUCCESS || guard_charge_set(d, GUARD_POOL, all_reserved(d, false)) ||
        guard_charge_set(d, GUARD_POOL, all_reserved(d, true)))
        return r;
    if (give)
        give(*ret, stream);
    if (sync)
        sync(stream);
    guard_charge_set(d, GUARD_POOL, all_reserved(d, true));
    guard_count(d, GUARD_COUNT_REFUSED, 1);
    *ret = 0;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool in_capture(void)
{
    return atomic_load(&guard.captures) > 0;
}

#define ALLOC(name, twin)                                                         \
    GUARD_CALL(name, CUdeviceptr *ret, size_t bytes, CUstream s)                  \
    {                                                                             \
        async_fn *real = GUARD_REAL(async_fn *, name);                            \
        CUdevice device = device_now();                                           \
        guard_device *d = guard_device_of(device);                                \
                                                                                  \
        if (!real)                                                                \
            return CUDA_ERROR_NOT_INITIALIZED;                                    \
        if (!d)                                                                   \
            return guard_no_device();                                             \
        guard.graph_memory = guard.graph_memory || in_capture();                  \
        note_pool(d, current_pool(device));                                       \
        if (!room(d, bytes))                                                      \
            return CUDA_ERROR_OUT_OF_MEMORY;                                      \
        return in_capture() ? real(ret, bytes, s)                                 \
                            : count_answer(d, real(ret, bytes, s), ret, s, twin); \
    }
#define ALLOC_FROM(name, twin)                                                          \
    GUARD_CALL(name, CUdeviceptr *ret, size_t bytes, CUpool pool, CUstream s)           \
    {                                                                                   \
        from_fn *real = GUARD_REAL(from_fn *, name);                                    \
        guard_device *d = guard_device_of(device_now());                                \
        guard_entry e;                                                                  \
                                                                                        \
        if (!real)                                                                      \
            return CUDA_ERROR_NOT_INITIALIZED;                                          \
        if (guard_table_change(GUARD_SET_POOL, (uintptr_t)pool, 0, 0, &e))              \
            d = &guard.dev[e.device];                                                   \
        if (!d)                                                                         \
            return guard_no_device();                                                   \
        guard.graph_memory = guard.graph_memory || in_capture();                        \
        note_pool(d, pool);                                                             \
        if (!room(d, bytes))                                                            \
            return CUDA_ERROR_OUT_OF_MEMORY;                                            \
        return in_capture() ? real(ret, bytes, pool, s)                                 \
                            : count_answer(d, real(ret, bytes, pool, s), ret, s, twin); \
    }
#define FREE(name)                                                                              \
    GUARD_CALL(name, CUdeviceptr ptr, CUstream s)                                               \
    {                                                                                           \
        free_fn *real = GUARD_REAL(free_fn *, name);                                            \
        CUresult r = real ? real(ptr, s) : CUDA_ERROR_NOT_INITIALIZED;                          \
        guard_entry e;                                                                          \
                                                                                                \
        /* Plain memory may be freed in a stream's order, too. */                               \
        if (r == CUDA_SUCCESS && !in_capture() && guard_table_take(GUARD_SET_POINTER, ptr, &e)) \
            guard_uncharge_plain(&e);                                                           \
        return r;                                                                               \
    }

ALLOC(cuMemAllocAsync, false)
ALLOC(cuMemAllocAsync_ptsz, true)
ALLOC_FROM(cuMemAllocFromPoolAsync, false)
ALLOC_FROM(cuMemAllocFromPoolAsync_ptsz, true)
FREE(cuMemFreeAsync)
FREE(cuMemFreeAsync_ptsz)

/* ---- pools ---- */

GUARD_CALL(cuMemPoolCreate, CUpool *ret, const cu_pool_props *props)
{
    typedef CUresult fn(CUpool *, const cu_pool_props *);
    fn *real = GUARD_REAL(fn *, cuMemPoolCreate);
    CUresult r = real ? real(ret, props) : CUDA_ERROR_NOT_INITIALIZED;
    guard_device *d;

    if (r == CUDA_SUCCESS && props && props->location.type == CU_LOCATION_DEVICE &&
        (d = guard_device_of(props->location.id)) != NULL)
        note_pool(d, *ret);
    return r;
}

GUARD_CALL(cuMemPoolDestroy, CUpool pool)
{
    typedef CUresult fn(CUpool);
    fn *real = GUARD_REAL(fn *, cuMemPoolDestroy);
    CUresult r = real ? real(pool) : CUDA_ERROR_NOT_INITIALIZED;
    guard_entry e;

    if (r == CUDA_SUCCESS && guard_table_take(GUARD_SET_POOL, (uintptr_t)pool, &e))
        guard_charge_set(&guard.dev[e.device], GUARD_POOL,
                         all_reserved(&guard.dev[e.device], false));
    return r;
}

GUARD_CALL(cuMemPoolTrimTo, CUpool pool, size_t keep)
{
    trim_fn *real = GUARD_REAL(trim_fn *, cuMemPoolTrimTo);
    CUresult r = real ? real(pool, keep) : CUDA_ERROR_NOT_INITIALIZED;
    guard_entry e;

    if (r == CUDA_SUCCESS && guard_table_change(GUARD_SET_POOL, (uintptr_t)pool, 0, 0, &e))
        guard_charge_set(&guard.dev[e.device], GUARD_POOL,
                         all_reserved(&guard.dev[e.device], false));
    return r;
}

/* Memory of another process, which counts it. */
GUARD_CALL(cuMemPoolImportFromShareableHandle, CUpool *ret, void *handle, int type,
           unsigned long long flags)
{
    typedef CUresult fn(CUpool *, void *, int, unsigned long long);
    fn *real = GUARD_REAL(fn *, cuMemPoolImportFromShareableHandle);

    if (!guard_begin())
        return CUDA_ERROR_OPERATING_SYSTEM;
    return real ? real(ret, handle, type, flags) : CUDA_ERROR_NOT_INITIALIZED;
}
