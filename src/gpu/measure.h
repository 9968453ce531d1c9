/*
 * What a test has measured on GPUs, as `stint-cuda measure` says it and the simulated driver does too: one JSON object,
 *
 *     {"ok":true,"ms":…,"with":"…","nccl":…,"blas":…,"all-reduce":…,"sums":…,"gpus":[{"gpu":0,"pcie-in":55000,…},…]}
 *
 * The words are those of checks (health/health.h); who reads them passes over what it does not know. What was not measured
 * is not there.
 */
#ifndef ST_GPU_MEASURE_H
#define ST_GPU_MEASURE_H

#include "base/strbuf.h"
#include "gpu/gpu.h"

/* X(id, word) */
#define ST_MEASURE_TABLE(X)                      \
    X(ST_MEASURE_WORKS, "works")                 \
    X(ST_MEASURE_PCIE_IN, "pcie-in")             \
    X(ST_MEASURE_PCIE_OUT, "pcie-out")           \
    X(ST_MEASURE_MEMORY_SPEED, "memory-speed")   \
    X(ST_MEASURE_PATTERN_SHARE, "pattern-share") \
    X(ST_MEASURE_PATTERN, "pattern")             \
    X(ST_MEASURE_PEER, "peer")                   \
    X(ST_MEASURE_PRODUCT_SPEED, "product-speed") \
    X(ST_MEASURE_PRODUCT, "product")
typedef enum st_measure_kind {
#define X(id, word) id,
    ST_MEASURE_TABLE(X)
#undef X
        ST_MEASURE_COUNT
} st_measure_kind;

#define ST_UNMEASURED (-1)

/* How much is done: copies, links and memory; matrix products too; the same for long. */
typedef enum st_test_depth { ST_DEPTH_SHORT = 1, ST_DEPTH_LONG, ST_DEPTH_BURN } st_test_depth;

typedef struct st_test_figure {
    int64_t v[ST_MEASURE_COUNT];
    char error[160]; /* why it does not work; "": it does */
} st_test_figure;

typedef struct st_test_figures {
    const char *with; /* the libraries that were used */
    bool nccl, blas;
    int64_t all_reduce, sums; /* MB/s of the bus; values that were wrong */
    int n;
    st_test_figure gpu[ST_DEVS_MAX];
} st_test_figures;

/* Nothing is measured; n stays. */
void st_test_figures_none(st_test_figures *m);
void st_test_figures_json(const st_test_figures *m, st_strbuf *out);

/* Of simulated GPUs; a control file is read first. */
int st_gpu_sim_measure(st_gpu *g, st_test_depth depth, st_strbuf *out, st_err *err);

#endif
