/*
 * The part of NVIDIA's CUDA driver library that stint-cuda calls, in declarations of our own, and its
 * loading at run time. Nothing of NVIDIA is needed to build.
 *
 * Every symbol is optional: CU() answers CU_MISSING for one the driver lacks. Layouts are those of
 * CUDA 12.8 to 13 on 64-bit Linux and are asserted below.
 */
#ifndef ST_GPU_CUDA_LIB_H
#define ST_GPU_CUDA_LIB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef struct cu_ctx *cu_context;
typedef struct cu_mod *cu_module;
typedef struct cu_fn *cu_function;
typedef uint64_t cu_ptr;

enum {
    CU_OK = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_MISSING = -1, /* ours: the library has no such function */
};

/* States of a process, as the driver numbers them; and one that it does not know. */
enum { CU_RUNNING = 0, CU_LOCKED = 1, CU_CHECKPOINTED = 2, CU_FAILED = 3, CU_GONE = 4 };

typedef struct cu_uuid {
    unsigned char bytes[16];
} cu_uuid;

typedef struct cu_lock_args {
    uint32_t timeout_ms, reserved0;
    uint64_t reserved1[7];
} cu_lock_args;

typedef struct cu_none_args {
    uint64_t reserved[8];
} cu_none_args;

typedef struct cu_pair {
    cu_uuid from, to;
} cu_pair;

typedef struct cu_restore_args {
    cu_pair *pairs;
    uint32_t npairs;
    char reserved[44];
    uint64_t reserved1;
} cu_restore_args;

_Static_assert(sizeof(cu_lock_args) == 64, "CUcheckpointLockArgs");
_Static_assert(sizeof(cu_none_args) == 64, "CUcheckpointCheckpointArgs, CUcheckpointUnlockArgs");
_Static_assert(sizeof(cu_restore_args) == 64, "CUcheckpointRestoreArgs");
_Static_assert(offsetof(cu_restore_args, reserved1) == 56, "CUcheckpointRestoreArgs");

/* X(name, symbol, parameters) */
#define CU_SYMBOLS(X)                                                                             \
    X(init, cuInit, (unsigned))                                                                   \
    X(version, cuDriverGetVersion, (int *))                                                       \
    X(error_text, cuGetErrorString, (int, const char **))                                         \
    X(error_name, cuGetErrorName, (int, const char **))                                           \
    X(lock, cuCheckpointProcessLock, (int, cu_lock_args *))                                       \
    X(checkpoint, cuCheckpointProcessCheckpoint, (int, cu_none_args *))                           \
    X(restore, cuCheckpointProcessRestore, (int, cu_restore_args *))                              \
    X(unlock, cuCheckpointProcessUnlock, (int, cu_none_args *))                                   \
    X(state, cuCheckpointProcessGetState, (int, int *))                                           \
    X(count, cuDeviceGetCount, (int *))                                                           \
    X(device, cuDeviceGet, (int *, int))                                                          \
    X(retain, cuDevicePrimaryCtxRetain, (cu_context *, int))                                      \
    X(release, cuDevicePrimaryCtxRelease_v2, (int))                                               \
    X(current, cuCtxSetCurrent, (cu_context))                                                     \
    X(sync, cuCtxSynchronize, (void))                                                             \
    X(load, cuModuleLoadData, (cu_module *, const void *))                                        \
    X(function, cuModuleGetFunction, (cu_function *, cu_module, const char *))                    \
    X(launch, cuLaunchKernel,                                                                     \
      (cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, \
       void **, void **))                                                                         \
    X(memory, cuMemGetInfo_v2, (size_t *, size_t *))                                              \
    X(alloc, cuMemAlloc_v2, (cu_ptr *, size_t))                                                   \
    X(free, cuMemFree_v2, (cu_ptr))                                                               \
    X(fill, cuMemsetD32_v2, (cu_ptr, unsigned, size_t))                                           \
    X(read, cuMemcpyDtoH_v2, (void *, cu_ptr, size_t))                                            \
    X(host_alloc, cuMemAllocHost_v2, (void **, size_t))                                           \
    X(host_free, cuMemFreeHost, (void *))                                                         \
    X(copy_in, cuMemcpyHtoDAsync_v2, (cu_ptr, const void *, size_t, void *))                      \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void *, cu_ptr, size_t, void *))                           \
    X(copy, cuMemcpyDtoDAsync_v2, (cu_ptr, cu_ptr, size_t, void *))                               \
    X(peer_can, cuDeviceCanAccessPeer, (int *, int, int))                                         \
    X(peer_open, cuCtxEnablePeerAccess, (cu_context, unsigned))                                   \
    X(peer_copy, cuMemcpyPeerAsync, (cu_ptr, cu_context, cu_ptr, cu_context, size_t, void *))

typedef struct cu_lib {
    void *handle;
#define X(name, symbol, params) int(*name) params;
    CU_SYMBOLS(X)
#undef X
} cu_lib;

/* Calls a symbol that may be missing. */
#define CU(lib, name, ...) ((lib)->name ? (lib)->name(__VA_ARGS__) : CU_MISSING)

/* Loads the library, NULL: libcuda.so.1, and initialises it. -ST_EDOWN says what is missing. */
int st_cuda_load(const char *path, cu_lib *ret, st_err *err);

/* Fails with the driver's words for a result, behind "WHAT: ". */
int st_cuda_fail(const cu_lib *lib, const char *what, int result, st_err *err);

#endif
