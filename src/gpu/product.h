/*
 * GPU products we know: what the vendor calls them, what we call them, and what the simulation
 * needs to look like one.
 */
#ifndef ST_GPU_PRODUCT_H
#define ST_GPU_PRODUCT_H

#include <stddef.h>

#include "model/mig.h"

typedef struct st_gpu_product {
    const char *type;  /* h100 */
    const char *name;  /* as the vendor's driver says it */
    const char *match; /* part of such a name; the first row whose memory fits as well wins */
    int64_t vram_mib;
    st_board board; /* NONE: no MIG, or a geometry we have no table of */
    int cc, links;
    int pcie_gen;
    int idle_w, most_w;
    int sm_mhz, mem_mhz;
    bool gpm; /* ratios of SM, tensor and memory activity are measured */
} st_gpu_product;

/* By our name ("h100"); NULL when unknown. */
const st_gpu_product *st_gpu_product_find(const char *type);

/* By the driver's name and memory; NULL when it is none of ours. */
const st_gpu_product *st_gpu_product_guess(const char *name, int64_t vram_mib);

/* The i-th of the table, NULL behind the last. */
const st_gpu_product *st_gpu_product_at(size_t i);

#endif
