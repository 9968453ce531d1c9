/* A loop like training, whose result is one number: train MIB STEPS
 * Two halves of a large state are computed from each other, integers and floats in a fixed order,
 * so that any disturbed word changes the hash at the end. A value on the host takes part, so that
 * the host's side of a pause is tried as well. Prints a line every 50 steps. */
#include "work.h"

__device__ uint64_t mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    return x;
}

__global__ void begin(uint64_t *state, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        state[i] = mix(i + 1);
}

/* One word of the next state from two of the last, with some floating point on the way. */
__global__ void step(uint64_t *to, const uint64_t *from, size_t n, size_t shift, uint64_t salt)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        uint64_t a = from[i], b = from[i + shift < n ? i + shift : i + shift - n];
        float w = (float)(uint32_t)a * 2.3283064e-10f, g = (float)(uint32_t)b * 2.3283064e-10f;

        for (int k = 0; k < 8; k++)
            w = fmaf(w, 0.97f, g * 0.03125f);
        to[i] = mix(a + (b << 1) + salt) ^ __float_as_uint(w);
    }
}

/* Additions of integers give the same sum in any order. */
__global__ void add_up(const uint64_t *state, size_t n, unsigned long long *sum)
{
    unsigned long long mine = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        mine += mix(state[i] + i);
    atomicAdd(sum, mine);
}

static unsigned long long hash_of(const uint64_t *state, size_t n)
{
    unsigned long long *sum, got = 0;

    check(cudaMalloc(&sum, sizeof *sum), "cudaMalloc");
    check(cudaMemset(sum, 0, sizeof *sum), "cudaMemset");
    add_up<<<4096, 256>>>(state, n, sum);
    check(cudaMemcpy(&got, sum, sizeof got, cudaMemcpyDeviceToHost), "hash");
    check(cudaFree(sum), "cudaFree");
    return got;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    size_t bytes = (size_t)atol(argv[1]) << 20, n = bytes / 2 / sizeof(uint64_t);
    int steps = atoi(argv[2]);
    uint64_t *state, host = 1;

    check(cudaMalloc(&state, bytes), "cudaMalloc");
    begin<<<4096, 256>>>(state, 2 * n);
    check(cudaDeviceSynchronize(), "start");
    for (int i = 0; i < steps; i++) {
        uint64_t *from = state + (i & 1 ? n : 0), *to = state + (i & 1 ? 0 : n);

        host = host * 6364136223846793005u + 1442695040888963407u;
        step<<<4096, 256>>>(to, from, n, (size_t)(host >> 20) % n, host);
        check(cudaDeviceSynchronize(), "a step");
        if (i % 50 == 0) {
            printf("step=%d ns=%lld\n", i, (long long)wall_ns());
            fflush(stdout);
        }
    }
    printf("hash=%016llx\n", hash_of(state, 2 * n) ^ (unsigned long long)host);
    return 0;
}
