/* What a job sees of its GPU: info [MIB...] | info first
 * Prints the time of its first instruction, its devices, whether they compute and how fast, and for
 * each size whether so much memory could be allocated (it is freed again). One `key=value` to a line.
 * With `first` the time alone. */
#include "work.h"

__global__ void add_up(unsigned long long *sum, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        atomicAdd(sum, (unsigned long long)i);
}

static void show(int device)
{
    cudaDeviceProp p;
    size_t left = 0, all = 0;

    check(cudaGetDeviceProperties(&p, device), "cudaGetDeviceProperties");
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
    printf("name=%s\nmemory_mib=%zu\nfree_mib=%zu\nsms=%d\n", p.name, all >> 20, left >> 20,
           p.multiProcessorCount);
}

static void compute(void)
{
    const unsigned n = 1000000;
    unsigned long long *sum, got = 0, want = (unsigned long long)n * (n - 1) / 2;

    check(cudaMalloc(&sum, sizeof *sum), "cudaMalloc");
    check(cudaMemset(sum, 0, sizeof *sum), "cudaMemset");
    add_up<<<(n + 255) / 256, 256>>>(sum, n);
    check(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost), "the kernel");
    check(cudaFree(sum), "cudaFree");
    printf("compute=%s\n", got == want ? "ok" : "wrong");
}

/* More blocks than any GPU runs at once: how long they take says how many SMs they had. */
__global__ void multiply(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 2.0f;

    for (int i = 0; i < rounds; i++) {
        a = a * b + c;
        d = d * b + a;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + d;
}

static void speed(void)
{
    const int blocks = 132 * 64;
    double best = 1e9;
    float *out;

    check(cudaMalloc(&out, (size_t)blocks * 256 * sizeof *out), "cudaMalloc");
    for (int i = 0; i < 5; i++) {
        double began = seconds();

        multiply<<<blocks, 256>>>(out, 1 << 14);
        check(cudaDeviceSynchronize(), "the kernel");
        best = seconds() - began < best ? seconds() - began : best;
    }
    check(cudaFree(out), "cudaFree");
    printf("work_ms=%.2f\n", best * 1e3);
}

static void try_size(size_t mib)
{
    void *p = NULL;
    cudaError_t e = cudaMalloc(&p, mib << 20);

    if (e == cudaSuccess)
        e = cudaMemset(p, 0, mib << 20);
    if (e == cudaSuccess)
        e = cudaDeviceSynchronize();
    printf("alloc_%zu=%s\n", mib, e == cudaSuccess ? "ok" : cudaGetErrorName(e));
    fflush(stdout);
    cudaGetLastError();
    if (p)
        cudaFree(p);
}

int main(int argc, char **argv)
{
    int n = 0;

    printf("first_ns=%lld\n", (long long)wall_ns());
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "first"))
        return 0;
    check(cudaGetDeviceCount(&n), "cudaGetDeviceCount");
    printf("devices=%d\n", n);
    for (int i = 0; i < n; i++)
        show(i);
    compute();
    speed();
    for (int i = 1; i < argc; i++)
        try_size((size_t)atol(argv[i]));
    printf("ready_ns=%lld\n", (long long)wall_ns());
    return 0;
}
