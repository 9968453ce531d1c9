/*
 * Memory by handle (cuMemCreate): charged to the device it is made on, not to the current one, and given back when the
 * last handle is released and the last mapping is gone. Programs release the handle while it is mapped.
 */
#include "guard/guard.h"

typedef CUresult create_fn(CUhandle *, size_t, const cu_alloc_prop *, unsigned long long);
typedef CUresult release_fn(CUhandle);
typedef CUresult map_fn(CUdeviceptr, size_t, size_t, CUhandle, unsigned long long);
typedef CUresult unmap_fn(CUdeviceptr, size_t);
typedef CUresult retain_fn(CUhandle *, void *);
typedef CUresult import_fn(CUhandle *, void *, int);

static void let_go(CUhandle handle)
{
    guard_entry e;

    if (!guard_table_change(GUARD_SET_HANDLE, handle, -1, 0, &e) || e.refs > 0)
        return;
    if (guard_table_take(GUARD_SET_HANDLE, handle, &e))
        guard_uncharge(&guard.dev[e.device], GUARD_VMM, e.bytes);
}

GUARD_CALL(cuMemCreate, CUhandle *ret, size_t bytes, const cu_alloc_prop *prop,
           unsigned long long flags)
{
    create_fn *real = GUARD_REAL(create_fn *, cuMemCreate);
    guard_device *d;
    CUresult r;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !prop || prop->location.type != CU_LOCATION_DEVICE) /* the host's memory */
        return guard_begin() ? real(ret, bytes, prop, flags) : CUDA_ERROR_OPERATING_SYSTEM;
    d = guard_device_of(prop->location.id);
    if (!d)
        return guard_begin() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
    if (!guard_charge(d, GUARD_VMM, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = real(ret, bytes, prop, flags);
    if (r != CUDA_SUCCESS)
        guard_uncharge(d, GUARD_VMM, bytes);
    else
        guard_table_put((guard_entry){.key = *ret,
                                      .bytes = bytes,
                                      .device = (int)(d - guard.dev),
                                      .refs = 1,
                                      .kind = GUARD_VMM,
                                      .set = GUARD_SET_HANDLE});
    return r;
}

GUARD_CALL(cuMemRelease, CUhandle handle)
{
    release_fn *real = GUARD_REAL(release_fn *, cuMemRelease);
    CUresult r = real ? real(handle) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS)
        let_go(handle);
    return r;
}

GUARD_CALL(cuMemMap, CUdeviceptr ptr, size_t bytes, size_t offset, CUhandle handle,
           unsigned long long flags)
{
    map_fn *real = GUARD_REAL(map_fn *, cuMemMap);
    CUresult r = real ? real(ptr, bytes, offset, handle, flags) : CUDA_ERROR_NOT_INITIALIZED;
    guard_entry e;

    if (r == CUDA_SUCCESS && guard_table_change(GUARD_SET_HANDLE, handle, 1, 0, &e))
        guard_table_put((guard_entry){
            .key = ptr, .bytes = bytes, .aux = handle, .device = e.device, .set = GUARD_SET_MAP});
    return r;
}

/* May be several mappings that lie side by side. */
GUARD_CALL(cuMemUnmap, CUdeviceptr ptr, size_t bytes)
{
    unmap_fn *real = GUARD_REAL(unmap_fn *, cuMemUnmap);
    CUresult r = real ? real(ptr, bytes) : CUDA_ERROR_NOT_INITIALIZED;
    uint64_t at = ptr, end = ptr + bytes;
    guard_entry e;

    while (r == CUDA_SUCCESS && at < end && guard_table_take(GUARD_SET_MAP, at, &e)) {
        let_go(e.aux);
        at += e.bytes ? e.bytes : 1;
    }
    /* Where one that nobody counts lies between, look at all. */
    for (size_t i = 0; r == CUDA_SUCCESS && at < end && guard_table_next(GUARD_SET_MAP, &i, &e);)
        if (e.key >= at && e.key < end && guard_table_take(GUARD_SET_MAP, e.key, &e))
            let_go(e.aux);
    return r;
}

GUARD_CALL(cuMemRetainAllocationHandle, CUhandle *ret, void *addr)
{
    retain_fn *real = GUARD_REAL(retain_fn *, cuMemRetainAllocationHandle);
    CUresult r = real ? real(ret, addr) : CUDA_ERROR_NOT_INITIALIZED;
    guard_entry e;

    if (r == CUDA_SUCCESS)
        guard_table_change(GUARD_SET_HANDLE, *ret, 1, 0, &e);
    return r;
}

/* Made, and counted, by another process. */
GUARD_CALL(cuMemImportFromShareableHandle, CUhandle *ret, void *os, int type)
{
    import_fn *real = GUARD_REAL(import_fn *, cuMemImportFromShareableHandle);

    if (!guard_begin())
        return CUDA_ERROR_OPERATING_SYSTEM;
    return real ? real(ret, os, type) : CUDA_ERROR_NOT_INITIALIZED;
}

/* An address for memory of several devices; it has none of its own. */
GUARD_CALL(cuMulticastCreate, CUhandle *ret, const void *prop)
{
    typedef CUresult fn(CUhandle *, const void *);
    fn *real = GUARD_REAL(fn *, cuMulticastCreate);

    if (!guard_begin())
        return CUDA_ERROR_OPERATING_SYSTEM;
    return real ? real(ret, prop) : CUDA_ERROR_NOT_INITIALIZED;
}
