/* What the workloads of tests/gpu share: clocks, and failing with a reason. */
#ifndef WORK_H
#define WORK_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

static inline int64_t ns_of(clockid_t clock)
{
    timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static inline int64_t wall_ns(void)
{
    return ns_of(CLOCK_REALTIME);
}

static inline double seconds(void)
{
    return ns_of(CLOCK_MONOTONIC) / 1e9;
}

static inline void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    printf("failed: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

#endif
