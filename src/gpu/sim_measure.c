/*
 * What a test would measure on simulated GPUs, in the words of `stint-cuda measure` (gpu/measure.h): what such a product
 * reaches, less what its faults take from it.
 */
#include <string.h>

#include "gpu/measure.h"
#include "gpu/sim_state.h"

/* MB/s, GFLOP/s. Of a product without a row: what its links and clocks suggest. */
static const struct {
    const char *type;
    int64_t memory, product, all_reduce;
} reached[] = {
    {"gh200", 3500000, 700000, 0},        {"h200", 4300000, 790000, 478000},
    {"h100", 2900000, 690000, 478000},    {"a100-80", 1700000, 270000, 235000},
    {"a100-40", 1300000, 270000, 235000},
};

static int64_t pcie_of(const sim_gpu *gpu)
{
    static const int64_t by_gen[] = {0, 3000, 6000, 13000, 26000, 55000};
    int64_t lanes = gpu->lanes > 0 ? gpu->lanes : 16;

    return by_gen[gpu->product->pcie_gen] * lanes / 16;
}

static int64_t row_of(const sim_gpu *gpu, int which)
{
    const st_gpu_product *p = gpu->product;

    for (size_t i = 0; i < ST_ARRAY_LEN(reached); i++)
        if (strcmp(reached[i].type, p->type) == 0)
            return which == 0   ? reached[i].memory
                   : which == 1 ? reached[i].product
                                : reached[i].all_reduce;
    return which == 0 ? p->mem_mhz * INT64_C(300) : which == 1 ? p->sm_mhz * INT64_C(60) : 0;
}

/* Faults are in percent of what it would reach; 0: none. */
static int64_t slowed(int64_t value, int64_t percent)
{
    return percent > 0 ? value * percent / 100 : value;
}

static void measure(const st_gpu_sim *s, int at, st_test_depth depth, st_test_figure *ret)
{
    const sim_gpu *gpu = &s->gpu[at];
    int64_t link = gpu->linked ? 22000 * ST_MAX(gpu->product->links - gpu->links_down, 0)
                               : pcie_of(gpu) * 8 / 10;

    ret->v[ST_MEASURE_WORKS] = !gpu->lost && !gpu->hangs;
    if (!ret->v[ST_MEASURE_WORKS])
        return;
    ret->v[ST_MEASURE_PCIE_IN] = ret->v[ST_MEASURE_PCIE_OUT] = slowed(pcie_of(gpu), gpu->slow_pcie);
    ret->v[ST_MEASURE_MEMORY_SPEED] = slowed(row_of(gpu, 0), gpu->slow_memory);
    ret->v[ST_MEASURE_PATTERN_SHARE] = 95;
    ret->v[ST_MEASURE_PATTERN] = gpu->bad_words;
    if (s->base.n > 1)
        ret->v[ST_MEASURE_PEER] = slowed(link, gpu->slow_peer);
    if (depth < ST_DEPTH_LONG)
        return;
    ret->v[ST_MEASURE_PRODUCT_SPEED] =
        slowed(row_of(gpu, 1), gpu->slow_compute) / (gpu->thermal ? 3 : 1);
    ret->v[ST_MEASURE_PRODUCT] = gpu->bad_products;
}

/* As slow as the slowest link. */
static int64_t all_reduce(const st_gpu_sim *s)
{
    int64_t least = INT64_MAX;

    for (int i = 0; i < s->base.n; i++) {
        const sim_gpu *gpu = &s->gpu[i];
        int64_t most = gpu->linked ? row_of(gpu, 2) : pcie_of(gpu) / 2;

        if (gpu->lost || gpu->hangs)
            return ST_UNMEASURED;
        if (gpu->linked && gpu->links_down > 0)
            most = most * (gpu->product->links - gpu->links_down) / gpu->product->links;
        least = ST_MIN(least, slowed(most, gpu->slow_peer));
    }
    return least;
}

int st_gpu_sim_measure(st_gpu *g, st_test_depth depth, st_strbuf *out, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    st_test_figures all = {.with = "simulated", .n = g->n, .nccl = true, .blas = true};
    int64_t broken = 0;

    st_test_figures_none(&all);
    pthread_mutex_lock(&s->lock);
    int r = st_sim_control_read(s, err);
    for (int i = 0; r == 0 && i < g->n; i++) {
        measure(s, i, depth, &all.gpu[i]);
        broken = ST_MAX(broken, s->gpu[i].broken);
    }
    if (r == 0 && g->n > 1) {
        all.all_reduce = all_reduce(s);
        all.sums = all.all_reduce == ST_UNMEASURED ? ST_UNMEASURED : 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (r == 0 && broken > 0)
        st_strbuf_addf(out, "{\"ok\":false,\"exit\":%lld,\"error\":\"it broke\"}",
                       (long long)broken);
    else if (r == 0)
        st_test_figures_json(&all, out);
    return r;
}
