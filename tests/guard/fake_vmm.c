/* Memory by handle for tests/guard/fake_driver.c, on top of its plain memory. */
#include <stddef.h>
#include <stdint.h>

#include "guard/cuda.h"

#define EXPORT __attribute__((visibility("default")))

CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr ptr);

/* By handle: gone with the last reference, and a mapping is one. */
static struct {
    CUhandle handle;
    int refs;
} handles[1024];
static struct {
    CUdeviceptr ptr;
    size_t bytes;
    CUhandle handle;
} maps[1024];

static void refer(CUhandle h, int by)
{
    for (int i = 0; i < 1024; i++) {
        if (handles[i].handle != h)
            continue;
        handles[i].refs += by;
        if (handles[i].refs == 0) {
            cuMemFree_v2(h);
            handles[i].handle = 0;
        }
        return;
    }
}

EXPORT CUresult cuMemCreate(CUhandle *ret, size_t bytes, const cu_alloc_prop *p,
                            unsigned long long f)
{
    (void)f;
    (void)p;
    if (cuMemAlloc_v2(ret, bytes) != 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < 1024; i++)
        if (!handles[i].handle) {
            handles[i].handle = *ret;
            handles[i].refs = 1;
            return 0;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemRelease(CUhandle h)
{
    refer(h, -1);
    return 0;
}

EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUhandle h,
                         unsigned long long f)
{
    (void)offset;
    (void)f;
    for (int i = 0; i < 1024; i++)
        if (!maps[i].handle) {
            maps[i].ptr = ptr;
            maps[i].bytes = bytes;
            maps[i].handle = h;
            refer(h, 1);
            return 0;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
    for (int i = 0; i < 1024; i++)
        if (maps[i].handle && maps[i].ptr >= ptr && maps[i].ptr < ptr + bytes) {
            refer(maps[i].handle, -1);
            maps[i].handle = 0;
        }
    return 0;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUhandle *ret, void *addr)
{
    for (int i = 0; i < 1024; i++)
        if (maps[i].handle && maps[i].ptr == (uintptr_t)addr) {
            *ret = maps[i].handle;
            refer(*ret, 1);
            return 0;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
