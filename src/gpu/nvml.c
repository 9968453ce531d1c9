/* The nvml driver: opening, closing, and its table. */
#include "gpu/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/nodes.h"
#include "gpu/product.h"

static void nvml_free(st_gpu *g)
{
    st_nvml *n = st_nvml_of(g);

    for (int i = 0; i < ST_DEVS_MAX; i++) {
        st_nvml_rates_done(n, &n->gpu[i].whole);
        for (int k = 0; k < NV_GI_ID_MAX; k++)
            st_nvml_rates_done(n, &n->gpu[i].instance[k]);
    }
    if (n->events)
        NV(&n->lib, events_free, n->events);
    st_nvml_unload(&n->lib);
    free(n->minors);
    free(n->sys);
    free(n);
}

static void nvml_fresh(st_gpu *g, int gpu)
{
    st_nvml_of(g)->gpu[gpu].slow_stale = true;
}

static int nvml_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    int r = NV(&n->lib, set_mode, n->gpu[gpu].dev, (int)mode);
    return r == NVML_OK ? 0 : st_nvml_fail(&n->lib, gpu, "setting its compute mode", r, err);
}

static const st_gpu_ops nvml_ops = {
    .name = "nvml",
    .free = nvml_free,
    .inventory = st_nvml_inventory,
    .sample = st_nvml_sample,
    .fresh = nvml_fresh,
    .procs = st_nvml_procs,
    .wait = st_nvml_wait,
    .set_mode = nvml_set_mode,
    .mig_mode = st_nvml_mig_mode,
    .mig_profiles = st_nvml_mig_profiles,
    .mig_list = st_nvml_mig_list,
    .mig_create = st_nvml_mig_create,
    .mig_destroy = st_nvml_mig_destroy,
};

static int open_gpu(st_nvml *n, int i, st_err *err)
{
    nv_gpu *gpu = &n->gpu[i];
    nv_gpm_support support = {.version = 1};
    nv_memory memory = {.version = NV_VERSION(nv_memory, 2)};
    uint32_t minor;
    char name[96] = "";
    int r = NV(&n->lib, by_index, (uint32_t)i, &gpu->dev);

    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, i, "opening it", r, err);
    gpu->slow_stale = true;
    gpu->linked = st_nvml_links(n, gpu->dev) > 0;
    gpu->minor = NV(&n->lib, minor, gpu->dev, &minor) == NVML_OK ? (int)minor : ST_GPU_UNKNOWN;
    gpu->gpm = NV(&n->lib, gpm_support, gpu->dev, &support) == NVML_OK && support.supported;
    if (NV(&n->lib, name, gpu->dev, name, sizeof(name)) == NVML_OK &&
        NV(&n->lib, memory, gpu->dev, &memory) == NVML_OK) {
        const st_gpu_product *product = st_gpu_product_guess(name, (int64_t)(memory.total >> 20));
        gpu->board = product ? product->board : ST_BOARD_NONE;
    }
    return 0;
}

int st_gpu_nvml_open(const st_gpu_nvml_options *options, st_gpu **ret, st_err *err)
{
    static const st_gpu_nvml_options defaults = {0};
    const st_gpu_nvml_options *o = options ? options : &defaults;
    ST_CLEANUP(st_gpu_freep) st_gpu *g = NULL;
    uint32_t count = 0;
    int r;

    st_nvml *n = st_xcalloc(1, sizeof(*n));
    g = &n->base;
    n->base.ops = &nvml_ops;
    n->minors = st_gpu_cap_minors(o->proc ? o->proc : "/proc");
    n->sys = st_xstrdup(o->sys ? o->sys : "/sys");
    if ((r = st_nvml_load(o->library ? o->library : "libnvidia-ml.so.1", &n->lib, err)) < 0)
        return r;
    if ((r = NV(&n->lib, count, &count)) != NVML_OK)
        return st_nvml_fail(&n->lib, 0, "counting GPUs", r, err);
    if (count > ST_DEVS_MAX)
        return st_fail(err, ST_ELIMIT, "this node has %u GPUs; at most %d are supported", count,
                       ST_DEVS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if ((r = open_gpu(n, (int)i, err)) < 0)
            return r;
    n->base.n = (int)count;
    *ret = ST_TAKE(g);
    return 0;
}
