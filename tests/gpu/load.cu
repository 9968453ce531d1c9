/* A load for tests on a GPU: load MODE SECONDS MIB
 *   copy   moves memory    math   multiplies    hold   keeps memory    fault   reads out of bounds
 * Prints its pid first, so that a script can wait for it. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

__global__ void copy(float4 *to, const float4 *from, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        to[i] = from[i];
}

__global__ void math(float *out, int rounds)
{
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 2.0f;
    for (int i = 0; i < rounds; i++) {
        a = a * b + c;
        d = d * b + a;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + d;
}

__global__ void fault(int *p)
{
    p[(size_t)threadIdx.x << 34] = 1;
}

static int check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return 0;
    fprintf(stderr, "load: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const char *mode = argv[1];
    double seconds = atof(argv[2]);
    size_t bytes = (size_t)atol(argv[3]) << 20;
    char *memory;
    check(cudaMalloc(&memory, bytes), "cudaMalloc");
    check(cudaMemset(memory, 1, bytes), "cudaMemset");
    check(cudaDeviceSynchronize(), "start");
    printf("%d\n", (int)getpid());
    fflush(stdout);
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double end = t.tv_sec + t.tv_nsec / 1e9 + seconds;
    do {
        if (!strcmp(mode, "copy"))
            copy<<<2048, 256>>>((float4 *)memory, (float4 *)(memory + bytes / 2),
                                bytes / 2 / sizeof(float4));
        else if (!strcmp(mode, "math"))
            math<<<2048, 256>>>((float *)memory, 1 << 16);
        else if (!strcmp(mode, "fault"))
            fault<<<1, 32>>>((int *)memory);
        else
            usleep(100000);
        check(cudaDeviceSynchronize(), mode);
        clock_gettime(CLOCK_MONOTONIC, &t);
    } while (t.tv_sec + t.tv_nsec / 1e9 < end);
    return 0;
}
