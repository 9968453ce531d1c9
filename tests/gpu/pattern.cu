/* What is left in device memory: pattern fill MIB | pattern scan MIB
 *   fill   writes a pattern everywhere, says `filled`, and stays until it is killed
 *   scan   allocates that much, writes nothing, and counts the words that are not zero */
#include "work.h"

__global__ void fill(uint64_t *words, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        words[i] = 0xdeadbeefcafe0000u | (i & 0xffff);
}

__global__ void count(const uint64_t *words, size_t n, unsigned long long *found)
{
    unsigned long long mine = 0;

    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        mine += words[i] != 0;
    if (mine)
        atomicAdd(found, mine);
}

int main(int argc, char **argv)
{
    uint64_t *words;
    unsigned long long *found, n = 0;

    if (argc != 3)
        return 2;
    size_t bytes = (size_t)atol(argv[2]) << 20;
    check(cudaMalloc(&words, bytes), "cudaMalloc");
    if (!strcmp(argv[1], "fill")) {
        fill<<<4096, 256>>>(words, bytes / 8);
        check(cudaDeviceSynchronize(), "fill");
        printf("filled mib=%zu\n", bytes >> 20);
        fflush(stdout);
        for (;;)
            pause();
    }
    check(cudaMalloc(&found, sizeof *found), "cudaMalloc");
    check(cudaMemset(found, 0, sizeof *found), "cudaMemset");
    check(cudaDeviceSynchronize(), "start");
    double began = seconds();
    count<<<4096, 256>>>(words, bytes / 8, found);
    check(cudaMemcpy(&n, found, sizeof n, cudaMemcpyDeviceToHost), "scan");
    printf("scanned mib=%zu nonzero=%llu ms=%.1f\n", bytes >> 20, n, (seconds() - began) * 1e3);
    return 0;
}
