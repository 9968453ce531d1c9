/* A job whose latency matters: victim SECONDS [bandwidth|compute]...
 * One launch after the other, each waited for; prints p50, p99 and the worst of each kind.
 *   bandwidth  copies within 256 MB of device memory (128 MB to the other 128 MB)
 *   compute    multiply-adds on fewer SMs than a 3g slice has, about half a millisecond */
#include "work.h"

#include <algorithm>
#include <vector>

#define BYTES  ((size_t)256 << 20)
#define BLOCKS 56
#define ROUNDS (1 << 18)
#define WARM   200

__global__ void copy(float4 *to, const float4 *from, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

__global__ void multiply(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 2.0f;

    for (int i = 0; i < rounds; i++) {
        a = a * b + c;
        d = d * b + a;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + d;
}

static void launch(bool bandwidth, char *memory)
{
    if (bandwidth)
        copy<<<2048, 256>>>((float4 *)memory, (float4 *)(memory + BYTES / 2),
                            BYTES / 2 / sizeof(float4));
    else
        multiply<<<BLOCKS, 256>>>((float *)memory, ROUNDS);
    check(cudaDeviceSynchronize(), "a launch");
}

static void measure(const char *kind, double length, char *memory)
{
    bool bandwidth = !strcmp(kind, "bandwidth");
    std::vector<double> us;

    for (int i = 0; i < WARM; i++)
        launch(bandwidth, memory);
    for (double end = seconds() + length; seconds() < end;) {
        int64_t began = ns_of(CLOCK_MONOTONIC);

        launch(bandwidth, memory);
        us.push_back((ns_of(CLOCK_MONOTONIC) - began) / 1e3);
    }
    std::sort(us.begin(), us.end());
    printf("%s n=%zu p50_us=%.1f p99_us=%.1f max_us=%.1f\n", kind, us.size(), us[us.size() / 2],
           us[us.size() * 99 / 100], us.back());
    fflush(stdout);
}

int main(int argc, char **argv)
{
    char *memory;

    if (argc < 3)
        return 2;
    check(cudaMalloc(&memory, BYTES), "cudaMalloc");
    check(cudaMemset(memory, 1, BYTES), "cudaMemset");
    for (int i = 2; i < argc; i++)
        measure(argv[i], atof(argv[1]), memory);
    return 0;
}
