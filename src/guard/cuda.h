/*
 * Declarations of our own for what the guard needs of CUDA's driver interface: no header of NVIDIA is needed
 * to build. Handles are opaque pointers; sizes and offsets are those of CUDA 11 to 13 on 64-bit machines.
 */
#ifndef GUARD_CUDA_H
#define GUARD_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUhandle; /* of cuMemCreate */
typedef void *CUcontext, *CUstream, *CUevent, *CUfunction, *CUarray, *CUmipmap, *CUpool, *CUgraph,
    *CUnode, *CUexec, *CUextmem;

#define CUDA_SUCCESS                0
#define CUDA_ERROR_INVALID_VALUE    1
#define CUDA_ERROR_OUT_OF_MEMORY    2
#define CUDA_ERROR_NOT_INITIALIZED  3
#define CUDA_ERROR_OPERATING_SYSTEM 304
#define CUDA_ERROR_NOT_FOUND        500
#define CUDA_ERROR_NOT_READY        600
#define CUDA_ERROR_NOT_SUPPORTED    801
#define CU_STREAM_PER_THREAD        ((CUstream)2)
#define CU_CAPTURE_RELAXED          2
#define CU_PROC_PER_THREAD          2 /* a flag of cuGetProcAddress */
#define CU_POOL_RESERVED            5 /* an attribute of a pool */
#define CU_GRAPH_RESERVED           2 /* an attribute of a device's graph memory */
#define CU_NODE_MEM_ALLOC           10
#define CU_LOCATION_DEVICE          1
#define CU_ARRAY_NO_MEMORY          0xc0 /* sparse, or mapped later */
#define CU_ARRAY_LAYERED            0x01
#define CU_ARRAY_CUBE               0x04

typedef struct cu_ipc_handle {
    char bytes[64];
} cu_ipc_handle;

typedef struct cu_array2d {
    size_t width, height;
    int format;
    unsigned channels;
} cu_array2d;

typedef struct cu_array3d {
    size_t width, height, depth;
    int format;
    unsigned channels, flags;
} cu_array3d;

typedef struct cu_location {
    int type, id;
} cu_location;

typedef struct cu_alloc_prop {
    int type, handles;
    cu_location location;
} cu_alloc_prop; /* and more that is not looked at */

typedef struct cu_pool_props {
    int type, handles;
    cu_location location;
    void *security;
    size_t max_size;
    unsigned char reserved[56];
} cu_pool_props;

typedef struct cu_alloc_node {
    cu_pool_props pool;
    const void *access;
    size_t naccess, bytes;
    CUdeviceptr ptr;
} cu_alloc_node;

typedef struct cu_node_params {
    int type, reserved[3];
    cu_alloc_node alloc; /* one of many, when `type` says so */
} cu_node_params;

typedef struct cu_launch_config {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    const void *attrs;
    unsigned nattr;
} cu_launch_config;

typedef struct cu_launch_params {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void **params;
} cu_launch_params;

typedef struct cu_external_desc {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned long long size;
} cu_external_desc;

typedef struct cu_uuid {
    unsigned char bytes[16];
} cu_uuid;

#endif
