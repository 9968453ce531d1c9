/*
 * The driver's entry points that the guard answers for: what hands out memory, starts work, waits for work or
 * looks entry points up. One row each: exported name, the name that cuGetProcAddress knows, the version from which
 * that name means this entry, and 1 for the twin whose default stream is the thread's own.
 *
 * GUARD_WORK rows also have their parameters, so that the wrapper is made from the row: work that goes to a stream.
 */
#ifndef GUARD_ENTRIES_H
#define GUARD_ENTRIES_H

/* clang-format off */
/* Copies and fills: X(export, base, version, twin, parameters, arguments, stream). */
#define GUARD_WORK(X)                                                                              \
    X(cuMemcpy, cuMemcpy, 4000, 0, (CUdeviceptr a, CUdeviceptr b, size_t n), (a, b, n), NULL)      \
    X(cuMemcpy_ptds, cuMemcpy, 7000, 1, (CUdeviceptr a, CUdeviceptr b, size_t n), (a, b, n), NULL) \
    X(cuMemcpyAsync, cuMemcpyAsync, 4000, 0, (CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyAsync_ptsz, cuMemcpyAsync, 7000, 1, (CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020, 0, (CUdeviceptr a, CUdeviceptr b, size_t n), (a, b, n), NULL) \
    X(cuMemcpyDtoD_v2_ptds, cuMemcpyDtoD, 7000, 1, (CUdeviceptr a, CUdeviceptr b, size_t n), (a, b, n), NULL) \
    X(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020, 0, (CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyDtoDAsync, 7000, 1, (CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020, 0, (CUdeviceptr a, const void *b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyHtoDAsync_v2_ptsz, cuMemcpyHtoDAsync, 7000, 1, (CUdeviceptr a, const void *b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020, 0, (void *a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpyDtoHAsync_v2_ptsz, cuMemcpyDtoHAsync, 7000, 1, (void *a, CUdeviceptr b, size_t n, CUstream s), (a, b, n, s), s) \
    X(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020, 0, (const void *c, CUstream s), (c, s), s)        \
    X(cuMemcpy2DAsync_v2_ptsz, cuMemcpy2DAsync, 7000, 1, (const void *c, CUstream s), (c, s), s)   \
    X(cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020, 0, (const void *c, CUstream s), (c, s), s)        \
    X(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DAsync, 7000, 1, (const void *c, CUstream s), (c, s), s)   \
    X(cuMemsetD8Async, cuMemsetD8Async, 3020, 0, (CUdeviceptr a, unsigned char v, size_t n, CUstream s), (a, v, n, s), s) \
    X(cuMemsetD8Async_ptsz, cuMemsetD8Async, 7000, 1, (CUdeviceptr a, unsigned char v, size_t n, CUstream s), (a, v, n, s), s) \
    X(cuMemsetD16Async, cuMemsetD16Async, 3020, 0, (CUdeviceptr a, unsigned short v, size_t n, CUstream s), (a, v, n, s), s) \
    X(cuMemsetD16Async_ptsz, cuMemsetD16Async, 7000, 1, (CUdeviceptr a, unsigned short v, size_t n, CUstream s), (a, v, n, s), s) \
    X(cuMemsetD32Async, cuMemsetD32Async, 3020, 0, (CUdeviceptr a, unsigned v, size_t n, CUstream s), (a, v, n, s), s) \
    X(cuMemsetD32Async_ptsz, cuMemsetD32Async, 7000, 1, (CUdeviceptr a, unsigned v, size_t n, CUstream s), (a, v, n, s), s)

/* X(export, base, version, twin): the wrapper is written out. */
#define GUARD_CALLS(X)                                                                             \
    X(cuInit, cuInit, 2000, 0)                                                                     \
    X(cuGetProcAddress, cuGetProcAddress, 11030, 0)                                                \
    X(cuGetProcAddress_v2, cuGetProcAddress, 12000, 0)                                             \
    X(cuGetExportTable, cuGetExportTable, 3000, 0)                                                 \
    X(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020, 0)                                              \
    X(cuMemGetInfo_v2, cuMemGetInfo, 3020, 0)                                                      \
    X(cuCtxCreate_v2, cuCtxCreate, 3020, 0)                                                        \
    X(cuCtxCreate_v3, cuCtxCreate, 11040, 0)                                                       \
    X(cuCtxCreate_v4, cuCtxCreate, 12050, 0)                                                       \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, 0)                                 \
    X(cuMemAlloc_v2, cuMemAlloc, 3020, 0)                                                          \
    X(cuMemAllocPitch_v2, cuMemAllocPitch, 3020, 0)                                                \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000, 0)                                               \
    X(cuMemFree_v2, cuMemFree, 3020, 0)                                                            \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020, 0)                                                  \
    X(cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, 1)                                             \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, 0)                                  \
    X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, 1)                             \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, 0)                                                    \
    X(cuMemFreeAsync_ptsz, cuMemFreeAsync, 11020, 1)                                               \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020, 0)                                                  \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, 0)                                                \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, 0)                                                  \
    X(cuMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle, 11020, 0)            \
    X(cuMemCreate, cuMemCreate, 10020, 0)                                                          \
    X(cuMemRelease, cuMemRelease, 10020, 0)                                                        \
    X(cuMemMap, cuMemMap, 10020, 0)                                                                \
    X(cuMemUnmap, cuMemUnmap, 10020, 0)                                                            \
    X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, 0)                          \
    X(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle, 10020, 0)                    \
    X(cuMulticastCreate, cuMulticastCreate, 12010, 0)                                              \
    X(cuArrayCreate_v2, cuArrayCreate, 3020, 0)                                                    \
    X(cuArray3DCreate_v2, cuArray3DCreate, 3020, 0)                                                \
    X(cuArrayDestroy, cuArrayDestroy, 2000, 0)                                                     \
    X(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, 0)                                     \
    X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, 0)                                   \
    X(cuIpcOpenMemHandle, cuIpcOpenMemHandle, 4010, 0)                                             \
    X(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000, 0)                                         \
    X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, 0)                                           \
    X(cuImportExternalMemory, cuImportExternalMemory, 10000, 0)                                    \
    X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, 0)                                  \
    X(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, 0)                                    \
    X(cuGraphAddNode, cuGraphAddNode, 12020, 0)                                                    \
    X(cuGraphAddNode_v2, cuGraphAddNode, 12030, 0)                                                 \
    X(cuGraphInstantiate, cuGraphInstantiate, 10000, 0)                                            \
    X(cuGraphInstantiate_v2, cuGraphInstantiate, 11000, 0)                                         \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, 0)                          \
    X(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000, 0)                        \
    X(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams, 12000, 1)                   \
    X(cuGraphDestroy, cuGraphDestroy, 10000, 0)                                                    \
    X(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, 0)                                        \
    X(cuLaunch, cuLaunch, 2000, 0)                                                                 \
    X(cuLaunchGrid, cuLaunchGrid, 2000, 0)                                                         \
    X(cuLaunchGridAsync, cuLaunchGridAsync, 2000, 0)                                               \
    X(cuLaunchKernel, cuLaunchKernel, 4000, 0)                                                     \
    X(cuLaunchKernel_ptsz, cuLaunchKernel, 7000, 1)                                                \
    X(cuLaunchKernelEx, cuLaunchKernelEx, 11060, 0)                                                \
    X(cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 11060, 1)                                           \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, 0)                               \
    X(cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 9000, 1)                          \
    X(cuLaunchCooperativeKernelMultiDevice, cuLaunchCooperativeKernelMultiDevice, 9000, 0)         \
    X(cuGraphLaunch, cuGraphLaunch, 10000, 0)                                                      \
    X(cuGraphLaunch_ptsz, cuGraphLaunch, 10000, 1)                                                 \
    X(cuStreamBeginCapture, cuStreamBeginCapture, 10000, 0)                                        \
    X(cuStreamBeginCapture_ptsz, cuStreamBeginCapture, 10000, 1)                                   \
    X(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, 0)                                     \
    X(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture, 10010, 1)                                \
    X(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030, 0)                          \
    X(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph, 12030, 1)                     \
    X(cuStreamEndCapture, cuStreamEndCapture, 10000, 0)                                            \
    X(cuStreamEndCapture_ptsz, cuStreamEndCapture, 10000, 1)                                       \
    X(cuStreamSynchronize, cuStreamSynchronize, 2000, 0)                                           \
    X(cuStreamSynchronize_ptsz, cuStreamSynchronize, 7000, 1)                                      \
    X(cuEventSynchronize, cuEventSynchronize, 2000, 0)                                             \
    X(cuCtxSynchronize, cuCtxSynchronize, 2000, 0)                                                 \
    X(cuCtxSynchronize_v2, cuCtxSynchronize, 13000, 0)                                             \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, 0)                                                      \
    X(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoH, 7000, 1)                                                 \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, 0)                                                      \
    X(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoD, 7000, 1)

/* Forms for 32-bit addresses of CUDA before 3.2: refused, so that nothing goes around the count. */
#define GUARD_REFUSED(X)                                                                           \
    X(cuMemAlloc, cuMemAlloc, 2000, 0)                                                             \
    X(cuMemAllocPitch, cuMemAllocPitch, 2000, 0)                                                   \
    X(cuMemFree, cuMemFree, 2000, 0)                                                               \
    X(cuMemGetInfo, cuMemGetInfo, 2000, 0)                                                         \
    X(cuDeviceTotalMem, cuDeviceTotalMem, 2000, 0)                                                 \
    X(cuArrayCreate, cuArrayCreate, 2000, 0)                                                       \
    X(cuArray3DCreate, cuArray3DCreate, 2000, 0)                                                   \
    X(cuCtxCreate, cuCtxCreate, 2000, 0)

/* A second name in cuGetProcAddress for an entry above. */
#define GUARD_ALSO(X)                                                                              \
    X(cuGraphInstantiateWithFlags, cuGraphInstantiate, 12000, 0)

/* NVML, by dlsym only. */
#define GUARD_NVML(X)                                                                              \
    X(nvmlDeviceGetMemoryInfo)                                                                     \
    X(nvmlDeviceGetMemoryInfo_v2)                                                                  \
    X(nvmlDeviceGetComputeRunningProcesses)                                                        \
    X(nvmlDeviceGetComputeRunningProcesses_v2)                                                     \
    X(nvmlDeviceGetComputeRunningProcesses_v3)

/* Of the driver's, for the guard's own use. */
#define GUARD_HELPERS(X)                                                                           \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxGetDevice)                                                                              \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetMemPool)                                                                          \
    X(cuDeviceGetGraphMemAttribute)                                                                \
    X(cuMemPoolGetAttribute)                                                                       \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuEventElapsedTime)                                                                          \
    X(cuEventDestroy_v2)                                                                           \
    X(cuStreamQuery)                                                                               \
    X(cuStreamIsCapturing)                                                                         \
    X(cuThreadExchangeStreamCaptureMode)
/* clang-format on */

#endif
