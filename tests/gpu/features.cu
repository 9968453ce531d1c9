/* What a CUDA program may use beside a guard, one feature each, by the runtime: guard_features FEATURE [BEYOND_MIB]
 *
 * Prints result=ok where the feature works, and refused=1 where an allocation of BEYOND_MIB of that kind is refused as out of memory.
 * Built twice: with the runtime linked statically and as a library; and with a default stream for each thread. */
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define N (1 << 20)

static void need(bool ok, const char *what)
{
    if (ok)
        return;
    printf("result=%s:%s\n", what, cudaGetErrorName(cudaGetLastError()));
    exit(1);
}

__global__ void add(int *v, int by)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        v[i] += by;
}

__global__ void together(int *v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    v[i] = 1;
    cooperative_groups::this_grid().sync();
    if (i == 0)
        for (unsigned k = 1; k < gridDim.x * blockDim.x; k++)
            v[0] += v[k];
}

static int *fresh(void)
{
    int *v;
    need(cudaMalloc(&v, N * sizeof *v) == cudaSuccess && cudaMemset(v, 0, N * sizeof *v) == cudaSuccess, "malloc");
    return v;
}

static int first(const int *v)
{
    int got = -1;
    need(cudaMemcpy(&got, v, sizeof got, cudaMemcpyDefault) == cudaSuccess, "copy");
    return got;
}

static bool is_full(cudaError_t r)
{
    cudaGetLastError();
    return r == cudaErrorMemoryAllocation;
}

static bool plain(size_t beyond)
{
    int *v = fresh();
    add<<<N / 256, 256>>>(v, 3);
    need(cudaDeviceSynchronize() == cudaSuccess && first(v) == 3, "kernel");
    void *p;
    return is_full(cudaMalloc(&p, beyond));
}

static bool pitched(size_t beyond)
{
    void *p;
    size_t pitch;
    need(cudaMallocPitch(&p, &pitch, 1000, 1000) == cudaSuccess && pitch >= 1000, "pitch");
    return is_full(cudaMallocPitch(&p, &pitch, 1 << 20, beyond >> 20));
}

static bool cooperative(size_t)
{
    int *v = fresh();
    void *args[] = {&v};
    need(cudaLaunchCooperativeKernel((void *)together, 64, 64, args, 0, 0) == cudaSuccess, "launch");
    need(cudaDeviceSynchronize() == cudaSuccess && first(v) == 64 * 64, "sum");
    return true;
}

static bool streams(size_t)
{
    cudaStream_t s[8];
    int *v = fresh();
    for (int i = 0; i < 8; i++)
        need(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking) == cudaSuccess, "stream");
    for (int i = 0; i < 8; i++) {
        add<<<N / 256, 256, 0, s[i]>>>(v, 1);
        need(cudaStreamSynchronize(s[i]) == cudaSuccess, "wait");
    }
    need(first(v) == 8, "sum");
    return true;
}

static bool threads(size_t)
{
    std::thread t[8];
    int *v[8], got = 0;
    for (int i = 0; i < 8; i++)
        v[i] = fresh();
    for (int i = 0; i < 8; i++)
        t[i] = std::thread([&v, i] {
            for (int k = 0; k < 100; k++)
                add<<<N / 256, 256>>>(v[i], 1);
            cudaStreamSynchronize(0);
        });
    for (int i = 0; i < 8; i++)
        t[i].join();
    for (int i = 0; i < 8; i++)
        got += first(v[i]);
    need(got == 800, "sum");
    return true;
}

static unsigned long long pool_mib(void)
{
    unsigned long long bytes = 0;
    cudaMemPool_t p;
    need(cudaDeviceGetDefaultMemPool(&p, 0) == cudaSuccess, "default pool");
    need(cudaMemPoolGetAttribute(p, cudaMemPoolAttrReservedMemCurrent, &bytes) == cudaSuccess, "reserved");
    return bytes >> 20;
}

static bool pool(size_t beyond)
{
    int *v;
    unsigned long long before = pool_mib();
    cudaError_t r = cudaMallocAsync(&v, N * sizeof *v, 0);
    printf("reserved_before_mib=%llu reserved_mib=%llu\n", before, pool_mib());
    need(r == cudaSuccess, "async");
    need(cudaMemsetAsync(v, 0, N * sizeof *v, 0) == cudaSuccess, "set");
    add<<<N / 256, 256>>>(v, 2);
    need(cudaDeviceSynchronize() == cudaSuccess && first(v) == 2 && cudaFreeAsync(v, 0) == cudaSuccess, "kernel");
    void *p;
    return is_full(cudaMallocAsync(&p, beyond, 0));
}

static bool array(size_t beyond)
{
    cudaChannelFormatDesc d = cudaCreateChannelDesc<float4>();
    cudaArray_t a;
    need(cudaMallocArray(&a, &d, 1024, 1024) == cudaSuccess, "array");
    need(cudaMalloc3DArray(&a, &d, make_cudaExtent(64, 64, 64)) == cudaSuccess, "array of three");
    need(cudaSuccess == cudaGetLastError(), "arrays");
    return is_full(cudaMalloc3DArray(&a, &d, make_cudaExtent(1024, 1024, beyond >> 24)));
}

static bool managed(size_t beyond)
{
    int *v;
    cudaError_t r = cudaMallocManaged(&v, N * sizeof *v);
    if (r != cudaSuccess)
        return is_full(r); /* refused altogether */
    memset(v, 0, N * sizeof *v);
    add<<<N / 256, 256>>>(v, 5);
    need(cudaDeviceSynchronize() == cudaSuccess && v[0] == 5, "kernel");
    void *p;
    return is_full(cudaMallocManaged(&p, beyond));
}

static bool graph(size_t)
{
    int *v = fresh();
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t x;
    need(cudaStreamCreate(&s) == cudaSuccess && cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal) == cudaSuccess, "capture");
    for (int i = 0; i < 5; i++)
        add<<<N / 256, 256, 0, s>>>(v, 1);
    need(cudaStreamEndCapture(s, &g) == cudaSuccess && cudaGraphInstantiate(&x, g, 0) == cudaSuccess, "graph");
    for (int i = 0; i < 10; i++)
        need(cudaGraphLaunch(x, s) == cudaSuccess, "launch");
    need(cudaStreamSynchronize(s) == cudaSuccess && first(v) == 50, "sum");
    return true;
}

template <typename T> static T entry(const char *name)
{
    void *fn = NULL;
    cudaDriverEntryPointQueryResult how;
    need(cudaGetDriverEntryPointByVersion(name, &fn, 12000, cudaEnableDefault, &how) == cudaSuccess && fn, name);
    return (T)fn;
}

static bool vmm(size_t beyond)
{
    auto create = entry<CUresult (*)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)>("cuMemCreate");
    auto release = entry<CUresult (*)(CUmemGenericAllocationHandle)>("cuMemRelease");
    CUmemAllocationProp p = {};
    CUmemGenericAllocationHandle h;
    fresh();
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    need(create(&h, (size_t)64 << 20, &p, 0) == CUDA_SUCCESS && release(h) == CUDA_SUCCESS, "create");
    return create(&h, beyond, &p, 0) == CUDA_ERROR_OUT_OF_MEMORY;
}

/* A child opens what its parent has: before the fork nobody has touched the driver. */
static bool ipc(size_t)
{
    int to[2], status = 1;
    cudaIpcMemHandle_t h;
    if (pipe(to) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        int *v, got = 0;
        bool ok = read(to[0], &h, sizeof h) == sizeof h &&
                  cudaIpcOpenMemHandle((void **)&v, h, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess &&
                  cudaMemcpy(&got, v, sizeof got, cudaMemcpyDefault) == cudaSuccess && got == 7;
        _exit(!ok);
    }
    int *v = fresh();
    add<<<N / 256, 256>>>(v, 7);
    need(cudaDeviceSynchronize() == cudaSuccess && cudaIpcGetMemHandle(&h, v) == cudaSuccess, "handle");
    need(write(to[1], &h, sizeof h) == sizeof h, "pipe");
    waitpid(child, &status, 0);
    need(status == 0, "child");
    return true;
}

static const struct {
    const char *name;
    bool (*fn)(size_t beyond);
} features[] = {{"plain", plain},     {"pitched", pitched}, {"cooperative", cooperative}, {"streams", streams},
                {"threads", threads}, {"pool", pool},       {"array", array},             {"managed", managed},
                {"graph", graph},     {"vmm", vmm},         {"ipc", ipc}};

int main(int argc, char **argv)
{
    size_t beyond = (size_t)(argc > 2 ? atoi(argv[2]) : 4096) << 20;
    for (auto &f : features)
        if (argc > 1 && strcmp(argv[1], f.name) == 0) {
            bool refused = f.fn(beyond);
            printf("result=ok refused=%d\n", refused);
            return 0;
        }
    fprintf(stderr, "usage: guard_features FEATURE [BEYOND_MIB]\n");
    return 2;
}
