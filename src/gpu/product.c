/* The table of GPU products. A row per memory size: MIG geometry and price depend on it. */
#include "gpu/product.h"

#include <string.h>

#include "base/macros.h"

#define A40  ST_BOARD_A100_40
#define A80  ST_BOARD_A100_80
#define H80  ST_BOARD_H100_80
#define H141 ST_BOARD_H200_141
#define NONE ST_BOARD_NONE

/* Boards whose slices have other sizes than those in model/mig.h (GH200, H100 with 94 GB) are NONE:
 * whole GPUs work, MIG is refused. */
static const st_gpu_product products[] = {
    /* type, name, match, MiB, board, cc, links, PCIe, idle W, most W, MHz, GPM */
    {"gh200", "NVIDIA GH200 480GB", "GH200", 97871, NONE, 90, 18, 5, 90, 900, 1980, 2619, true},
    {"h200", "NVIDIA H200", "H200", 143771, H141, 90, 18, 5, 75, 700, 1980, 3201, true},
    {"h100", "NVIDIA H100 80GB HBM3", "H100", 81559, H80, 90, 18, 5, 70, 700, 1980, 2619, true},
    {"h100-94", "NVIDIA H100 NVL", "H100", 95830, NONE, 90, 12, 5, 65, 400, 1785, 2619, true},
    {"a100-80", "NVIDIA A100-SXM4-80GB", "A100", 81920, A80, 80, 12, 4, 55, 400, 1410, 1593, false},
    {"a100-40", "NVIDIA A100-SXM4-40GB", "A100", 40960, A40, 80, 12, 4, 50, 400, 1410, 1215, false},
    {"l40s", "NVIDIA L40S", "L40S", 46068, NONE, 89, 0, 4, 35, 350, 2520, 9001, false},
    {"v100-32", "Tesla V100-SXM2-32GB", "V100", 32768, NONE, 70, 6, 3, 40, 300, 1530, 877, false},
    {"v100-16", "Tesla V100-SXM2-16GB", "V100", 16384, NONE, 70, 6, 3, 40, 300, 1530, 877, false},
    {"t4", "Tesla T4", "T4", 15360, NONE, 75, 0, 3, 10, 70, 1590, 5001, false},
};

const st_gpu_product *st_gpu_product_find(const char *type)
{
    for (size_t i = 0; i < ST_ARRAY_LEN(products); i++)
        if (strcmp(products[i].type, type) == 0)
            return &products[i];
    return NULL;
}

const st_gpu_product *st_gpu_product_guess(const char *name, int64_t vram_mib)
{
    /* Drivers differ by what they keep back, boards of one name by a fifth or more. */
    for (size_t i = 0; i < ST_ARRAY_LEN(products); i++) {
        int64_t off = vram_mib - products[i].vram_mib;
        if (strstr(name, products[i].match) && (off < 0 ? -off : off) <= products[i].vram_mib / 20)
            return &products[i];
    }
    return NULL;
}

const st_gpu_product *st_gpu_product_at(size_t i)
{
    return i < ST_ARRAY_LEN(products) ? &products[i] : NULL;
}
