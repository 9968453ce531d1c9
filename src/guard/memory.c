/*
 * Memory: plain and managed allocations, arrays, what comes from elsewhere, contexts; and what a program is told
 * about how much there is.
 *
 * The driver hands out pages of 2 MiB. What is at least one page is charged in whole pages; smaller allocations share
 * pages, and their sum is charged in whole pages.
 */
#include "guard/guard.h"

#define PAGE (UINT64_C(2) << 20)

static uint64_t pages(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* What an allocation adds to the charge, under the device's lock for the sum of small ones. */
static bool charge(guard_device *d, guard_kind kind, uint64_t bytes)
{
    uint64_t more;
    bool ok;

    if (bytes >= PAGE)
        return bytes <= UINT64_MAX - PAGE && guard_charge(d, kind, pages(bytes));
    guard_lock(&d->small_lock);
    bytes = (bytes + 511) / 512 * 512;
    more = pages(d->small + bytes) - pages(d->small);
    ok = guard_charge(d, GUARD_PLAIN, more);
    if (ok)
        d->small += bytes;
    guard_unlock(&d->small_lock);
    return ok;
}

static void uncharge(guard_device *d, guard_kind kind, uint64_t bytes)
{
    uint64_t less;

    if (bytes >= PAGE) {
        guard_uncharge(d, kind, pages(bytes));
        return;
    }
    guard_lock(&d->small_lock);
    bytes = (bytes + 511) / 512 * 512;
    if (bytes > d->small)
        bytes = d->small;
    less = pages(d->small) - pages(d->small - bytes);
    d->small -= bytes;
    guard_uncharge(d, GUARD_PLAIN, less);
    guard_unlock(&d->small_lock);
}

static int index_of(const guard_device *d)
{
    return (int)(d - guard.dev);
}

/* Behind the driver's answer: remembered, or given back. */
static CUresult keep(CUresult r, guard_device *d, guard_kind kind, int set, uint64_t key,
                     uint64_t bytes)
{
    guard_entry e = {.key = key,
                     .bytes = bytes,
                     .device = index_of(d),
                     .kind = (uint8_t)kind,
                     .set = (uint8_t)set};

    if (r != CUDA_SUCCESS)
        uncharge(d, kind, bytes);
    else
        guard_table_put(e);
    return r;
}

static void drop(int set, uint64_t key)
{
    guard_entry e;

    if (guard_table_take(set, key, &e))
        uncharge(&guard.dev[e.device], (guard_kind)e.kind, e.bytes);
}

void guard_uncharge_plain(const guard_entry *e)
{
    uncharge(&guard.dev[e->device], (guard_kind)e->kind, e->bytes);
}

/* Refused where the limits are not there, and where the device is not granted. */
#define GRANTED(d, device)    \
    guard_device *d = device; \
                              \
    if (!d)                   \
    return guard_no_device()

/* ---- plain ---- */

typedef CUresult alloc_fn(CUdeviceptr *, size_t);
typedef CUresult pitch_fn(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
typedef CUresult managed_fn(CUdeviceptr *, size_t, unsigned);
typedef CUresult free_fn(CUdeviceptr);

GUARD_CALL(cuMemAlloc_v2, CUdeviceptr *ret, size_t bytes)
{
    alloc_fn *real = GUARD_REAL(alloc_fn *, cuMemAlloc_v2);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || bytes == 0)
        return real(ret, bytes);
    GRANTED(d, guard_device_now());
    if (!charge(d, GUARD_PLAIN, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, bytes);

    return keep(r, d, GUARD_PLAIN, GUARD_SET_POINTER, r ? 0 : *ret, bytes);
}

/* Rows are as long as the driver likes: charged by the least, then by the pitch it chose. */
GUARD_CALL(cuMemAllocPitch_v2, CUdeviceptr *ret, size_t *pitch, size_t width, size_t height,
           unsigned element)
{
    pitch_fn *real = GUARD_REAL(pitch_fn *, cuMemAllocPitch_v2);
    size_t row = (width + 511) / 512 * 512, bytes;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !pitch || __builtin_mul_overflow(row, height, &bytes) || bytes == 0)
        return real(ret, pitch, width, height, element);
    GRANTED(d, guard_device_now());
    if (!charge(d, GUARD_PLAIN, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, pitch, width, height, element);

    if (r == CUDA_SUCCESS && *pitch * height != bytes) {
        uncharge(d, GUARD_PLAIN, bytes);
        bytes = *pitch * height;
        if (!charge(d, GUARD_PLAIN, bytes)) {
            free_fn *give = GUARD_REAL(free_fn *, cuMemFree_v2);

            if (give)
                give(*ret);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return keep(r, d, GUARD_PLAIN, GUARD_SET_POINTER, r ? 0 : *ret, bytes);
}

/* Counted as if all of it were on the device: where it is changes with every access. */
GUARD_CALL(cuMemAllocManaged, CUdeviceptr *ret, size_t bytes, unsigned flags)
{
    managed_fn *real = GUARD_REAL(managed_fn *, cuMemAllocManaged);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || bytes == 0)
        return real(ret, bytes, flags);
    GRANTED(d, guard_device_now());
    if (!charge(d, GUARD_MANAGED, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, bytes, flags);

    return keep(r, d, GUARD_MANAGED, GUARD_SET_POINTER, r ? 0 : *ret, bytes);
}

/* Freed first: who is told that there is room must find it. A free waits for work on some drivers. */
GUARD_CALL(cuMemFree_v2, CUdeviceptr ptr)
{
    free_fn *real = GUARD_REAL(free_fn *, cuMemFree_v2);
    CUresult r;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    guard_before_wait();
    r = real(ptr);
    guard_after_wait();
    if (r == CUDA_SUCCESS)
        drop(GUARD_SET_POINTER, ptr);
    return r;
}

/* ---- arrays ---- */

static uint64_t element_bytes(int format, unsigned channels)
{
    switch (format) {
    case 0x01:
    case 0x08:
        return channels;
    case 0x02:
    case 0x09:
    case 0x10:
        return 2 * (uint64_t)channels;
    case 0x03:
    case 0x0a:
    case 0x20:
        return 4 * (uint64_t)channels;
    default:
        return 16; /* compressed and planar formats have at most so much */
    }
}

/* Rows of 512 bytes, and a page at least: arrays do not share pages with others. */
static uint64_t array_bytes(size_t w, size_t h, size_t depth, int format, unsigned channels)
{
    uint64_t row = (w * element_bytes(format, channels) + 511) / 512 * 512, all;

    if (__builtin_mul_overflow(row, h ? h : 1, &all) ||
        __builtin_mul_overflow(all, depth ? depth : 1, &all))
        return UINT64_MAX - PAGE;
    return all > PAGE ? all : PAGE;
}

typedef CUresult array2_fn(CUarray *, const cu_array2d *);
typedef CUresult array3_fn(CUarray *, const cu_array3d *);
typedef CUresult mipmap_fn(CUmipmap *, const cu_array3d *, unsigned);
typedef CUresult array_free_fn(CUarray);

GUARD_CALL(cuArrayCreate_v2, CUarray *ret, const cu_array2d *a)
{
    array2_fn *real = GUARD_REAL(array2_fn *, cuArrayCreate_v2);
    uint64_t bytes;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !a)
        return real(ret, a);
    GRANTED(d, guard_device_now());
    bytes = array_bytes(a->width, a->height, 1, a->format, a->channels);
    if (!charge(d, GUARD_ARRAY, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, a);

    return keep(r, d, GUARD_ARRAY, GUARD_SET_ARRAY, r ? 0 : (uintptr_t)*ret, bytes);
}

GUARD_CALL(cuArray3DCreate_v2, CUarray *ret, const cu_array3d *a)
{
    array3_fn *real = GUARD_REAL(array3_fn *, cuArray3DCreate_v2);
    uint64_t bytes;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !a || a->flags & CU_ARRAY_NO_MEMORY)
        return real(ret, a);
    GRANTED(d, guard_device_now());
    bytes = array_bytes(a->width, a->height, a->depth, a->format, a->channels);
    if (!charge(d, GUARD_ARRAY, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, a);

    return keep(r, d, GUARD_ARRAY, GUARD_SET_ARRAY, r ? 0 : (uintptr_t)*ret, bytes);
}

/* All levels below the first are together less than one more of it. */
GUARD_CALL(cuMipmappedArrayCreate, CUmipmap *ret, const cu_array3d *a, unsigned levels)
{
    mipmap_fn *real = GUARD_REAL(mipmap_fn *, cuMipmappedArrayCreate);
    uint64_t bytes;

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !a || a->flags & CU_ARRAY_NO_MEMORY)
        return real(ret, a, levels);
    GRANTED(d, guard_device_now());
    bytes = array_bytes(a->width, a->height, a->depth, a->format, a->channels);
    if (levels > 1 && bytes < UINT64_MAX / 4)
        bytes += a->flags & CU_ARRAY_LAYERED || a->depth == 0 ? bytes / 2 : bytes / 4;
    if (!charge(d, GUARD_ARRAY, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, a, levels);

    return keep(r, d, GUARD_ARRAY, GUARD_SET_ARRAY, r ? 0 : (uintptr_t)*ret, bytes);
}

#define ARRAY_FREE(name)                                          \
    GUARD_CALL(name, CUarray a)                                   \
    {                                                             \
        array_free_fn *real = GUARD_REAL(array_free_fn *, name);  \
        CUresult r = real ? real(a) : CUDA_ERROR_NOT_INITIALIZED; \
                                                                  \
        if (r == CUDA_SUCCESS)                                    \
            drop(GUARD_SET_ARRAY, (uintptr_t)a);                  \
        return r;                                                 \
    }

ARRAY_FREE(cuArrayDestroy)
ARRAY_FREE(cuMipmappedArrayDestroy)

/* ---- from elsewhere ---- */

typedef CUresult ipc_fn(CUdeviceptr *, cu_ipc_handle, unsigned);
typedef CUresult external_fn(CUextmem *, const cu_external_desc *);
typedef CUresult external_free_fn(CUextmem);

/* Memory of another process, which counts it. */
#define IPC_OPEN(name)                                                       \
    GUARD_CALL(name, CUdeviceptr *ret, cu_ipc_handle handle, unsigned flags) \
    {                                                                        \
        ipc_fn *real = GUARD_REAL(ipc_fn *, name);                           \
                                                                             \
        return real ? real(ret, handle, flags) : CUDA_ERROR_NOT_INITIALIZED; \
    }

IPC_OPEN(cuIpcOpenMemHandle)
IPC_OPEN(cuIpcOpenMemHandle_v2)

GUARD_CALL(cuIpcCloseMemHandle, CUdeviceptr ptr)
{
    free_fn *real = GUARD_REAL(free_fn *, cuIpcCloseMemHandle);

    return real ? real(ptr) : CUDA_ERROR_NOT_INITIALIZED;
}

/* Made by another interface (Vulkan, for instance), which nobody counts: counted here. */
GUARD_CALL(cuImportExternalMemory, CUextmem *ret, const cu_external_desc *desc)
{
    external_fn *real = GUARD_REAL(external_fn *, cuImportExternalMemory);

    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret || !desc || desc->size == 0)
        return real(ret, desc);
    GRANTED(d, guard_device_now());
    if (!charge(d, GUARD_EXTERNAL, desc->size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = real(ret, desc);

    return keep(r, d, GUARD_EXTERNAL, GUARD_SET_EXTERNAL, r ? 0 : (uintptr_t)*ret, desc->size);
}

GUARD_CALL(cuDestroyExternalMemory, CUextmem m)
{
    external_free_fn *real = GUARD_REAL(external_free_fn *, cuDestroyExternalMemory);
    CUresult r = real ? real(m) : CUDA_ERROR_NOT_INITIALIZED;

    if (r == CUDA_SUCCESS)
        drop(GUARD_SET_EXTERNAL, (uintptr_t)m);
    return r;
}
