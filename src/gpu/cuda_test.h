/*
 * What tests do on one device: kernels of our own, and counts of what they found. Each call works on the device whose context
 * is in use (st_cuda_test_use). Private to src/gpu.
 */
#ifndef ST_GPU_CUDA_TEST_H
#define ST_GPU_CUDA_TEST_H

#include <stdbool.h>

#include "gpu/cuda_lib.h"
#include "gpu/measure.h"

typedef struct cu_test {
    const cu_lib *lib;
    int device;
    cu_context context;
    cu_function put, check, differ, add, product;
    cu_ptr counter;
    int result; /* of what failed, as the driver says it */
} cu_test;

typedef struct cu_pattern {
    uint32_t seed, mask, bits; /* see cuda_kernels.c */
} cu_pattern;

int st_cuda_test_open(const cu_lib *lib, int at, cu_test *ret, st_err *err);
void st_cuda_test_close(cu_test *t);
int st_cuda_test_use(cu_test *t, st_err *err);
/* Until all that was begun is done. */
int st_cuda_test_wait(cu_test *t, st_err *err);
/* Keeps a result that is none of success, and fails with its words. */
int st_cuda_test_result(cu_test *t, const char *what, int result, st_err *err);

int st_cuda_put(cu_test *t, cu_ptr at, uint64_t words, cu_pattern p, st_err *err);
int st_cuda_check(cu_test *t, cu_ptr at, uint64_t words, cu_pattern p, st_err *err);
int st_cuda_differ(cu_test *t, cu_ptr a, cu_ptr b, uint64_t words, st_err *err);
int st_cuda_add(cu_test *t, cu_ptr to, cu_ptr from, uint64_t floats, st_err *err);
int st_cuda_product(cu_test *t, cu_ptr a, cu_ptr b, cu_ptr c, uint32_t n, st_err *err);

/* What check and differ find between the two. */
int st_cuda_count_begin(cu_test *t, st_err *err);
int st_cuda_count_end(cu_test *t, uint64_t *ret, st_err *err);

/* The tests of one device (cuda_device.c); what was measured before a failure is in *ret. */
int st_cuda_measure_memory(cu_test *t, st_test_figure *ret, st_err *err);
/* Matrix products for so long; *ret_blas: by cuBLAS. */
int st_cuda_measure_products(cu_test *t, int64_t ms, st_test_figure *ret, bool *ret_blas,
                             st_err *err);
/* Copies between devices, and sums over all (cuda_links.c). */
int st_cuda_measure_links(cu_test *t, int n, st_test_figures *ret, st_err *err);

int64_t st_cuda_now_us(void);

/* Whether a result of the driver speaks of the device, and not of how it was called or of who else is there. */
bool st_cuda_blames_device(int result);

/* `stint-cuda measure` (cuda_measure.c): all devices that are shown, each in a process of its own. */
typedef struct st_cuda_measure {
    const char *library; /* NULL: libcuda.so.1 */
    st_test_depth depth;
    int64_t seconds; /* of products; 0: as the depth has it */
    int64_t hang_ms; /* for one device; 0: as the depth has it */
} st_cuda_measure;
int st_cuda_measure_all(const st_cuda_measure *how, st_test_figures *ret, char with[128],
                        st_err *err);

#endif
