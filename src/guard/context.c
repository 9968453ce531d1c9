/*
 * The beginning of CUDA in a process, its contexts, and how much memory there is said to be.
 */
#include "guard/guard.h"

GUARD_CALL(cuInit, unsigned flags)
{
    typedef CUresult fn(unsigned);
    fn *real = GUARD_REAL(fn *, cuInit);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    return guard_begin() ? real(flags) : CUDA_ERROR_OPERATING_SYSTEM;
}

/* A process pays for its first context on a device, until it ends: what the driver keeps for it does not all go
 * with the context. */
static CUresult pay(CUdevice device)
{
    guard_device *d = guard_device_of(device);
    bool ok;

    if (!d)
        return guard_begin() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
    if (guard_mine(d, GUARD_CONTEXT) > 0)
        return CUDA_SUCCESS;
    ok = guard_charge(d, GUARD_CONTEXT, d->limit->context_bytes);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

typedef CUresult create2_fn(CUcontext *, unsigned, CUdevice);
typedef CUresult create3_fn(CUcontext *, void *, int, unsigned, CUdevice);
typedef CUresult create4_fn(CUcontext *, void *, unsigned, CUdevice);
typedef CUresult retain_fn(CUcontext *, CUdevice);

GUARD_CALL(cuCtxCreate_v2, CUcontext *ret, unsigned flags, CUdevice device)
{
    create2_fn *real = GUARD_REAL(create2_fn *, cuCtxCreate_v2);
    CUresult r = real ? pay(device) : CUDA_ERROR_NOT_INITIALIZED;

    return r != CUDA_SUCCESS ? r : real(ret, flags, device);
}

GUARD_CALL(cuCtxCreate_v3, CUcontext *ret, void *params, int n, unsigned flags, CUdevice device)
{
    create3_fn *real = GUARD_REAL(create3_fn *, cuCtxCreate_v3);
    CUresult r = real ? pay(device) : CUDA_ERROR_NOT_INITIALIZED;

    return r != CUDA_SUCCESS ? r : real(ret, params, n, flags, device);
}

GUARD_CALL(cuCtxCreate_v4, CUcontext *ret, void *params, unsigned flags, CUdevice device)
{
    create4_fn *real = GUARD_REAL(create4_fn *, cuCtxCreate_v4);
    CUresult r = real ? pay(device) : CUDA_ERROR_NOT_INITIALIZED;

    return r != CUDA_SUCCESS ? r : real(ret, params, flags, device);
}

GUARD_CALL(cuDevicePrimaryCtxRetain, CUcontext *ret, CUdevice device)
{
    retain_fn *real = GUARD_REAL(retain_fn *, cuDevicePrimaryCtxRetain);
    CUresult r = real ? pay(device) : CUDA_ERROR_NOT_INITIALIZED;

    return r != CUDA_SUCCESS ? r : real(ret, device);
}

/* ---- how much there is ---- */

GUARD_CALL(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
    typedef CUresult fn(size_t *, size_t *);
    fn *real = GUARD_REAL(fn *, cuMemGetInfo_v2);
    guard_device *d = guard_device_now();
    CUresult r = real ? real(ret_free, ret_total) : CUDA_ERROR_NOT_INITIALIZED;
    uint64_t held, left;

    if (r != CUDA_SUCCESS || !d || !ret_free || !ret_total)
        return r;
    held = guard_held(d);
    left = held < d->limit->vram_bytes ? d->limit->vram_bytes - held : 0;
    if (d->limit->vram_bytes < *ret_total)
        *ret_total = d->limit->vram_bytes;
    if (left < *ret_free)
        *ret_free = left;
    return r;
}

GUARD_CALL(cuDeviceTotalMem_v2, size_t *ret, CUdevice device)
{
    typedef CUresult fn(size_t *, CUdevice);
    fn *real = GUARD_REAL(fn *, cuDeviceTotalMem_v2);
    guard_device *d = guard_device_of(device);
    CUresult r = real ? real(ret, device) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS && ret && d && d->limit->vram_bytes < *ret)
        *ret = d->limit->vram_bytes;
    return r;
}

/* ---- forms of before CUDA 3.2 ---- */

#define REFUSE(name, base, version, twin) \
    GUARD_CALL(name, void)                \
    {                                     \
        return CUDA_ERROR_NOT_SUPPORTED;  \
    }

GUARD_REFUSED(REFUSE)
