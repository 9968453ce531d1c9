/* The nvml driver's inventory: what each GPU is and where it sits. */
#include "gpu/nvml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "gpu/nodes.h"
#include "gpu/product.h"

enum { LINK_TO_GPU = 0, LINK_TO_SWITCH = 2 };

typedef int number_fn(nv_dev, uint32_t *);

/* One of the questions that have a number for an answer. */
static int ask(number_fn *call, nv_dev dev)
{
    uint32_t value;
    return call && call(dev, &value) == NVML_OK ? (int)value : ST_GPU_UNKNOWN;
}

static void read_identity(st_nvml *n, nv_gpu *gpu, st_gpu_info *info)
{
    nv_lib *lib = &n->lib;
    nv_memory memory = {.version = NV_VERSION(nv_memory, 2)};
    nv_pci pci = {0};
    int major = 0, minor = 0;

    if (NV(lib, uuid, gpu->dev, info->uuid, sizeof(info->uuid)) != NVML_OK)
        info->uuid[0] = '\0';
    if (NV(lib, name, gpu->dev, info->name, sizeof(info->name)) != NVML_OK)
        info->name[0] = '\0';
    if (NV(lib, serial, gpu->dev, info->serial, sizeof(info->serial)) != NVML_OK)
        info->serial[0] = '\0';
    if (NV(lib, pci, gpu->dev, &pci) == NVML_OK)
        snprintf(info->bus_id, sizeof(info->bus_id), "%.31s", pci.bus_id);
    info->vram_mib = ST_GPU_UNKNOWN;
    if (NV(lib, memory, gpu->dev, &memory) == NVML_OK)
        info->vram_mib = (int64_t)(memory.total >> 20);
    if (NV(lib, capability, gpu->dev, &major, &minor) == NVML_OK)
        info->cc = 10 * major + minor;
    else
        info->cc = ST_GPU_UNKNOWN;
    info->minor = gpu->minor;
    if (gpu->minor >= 0)
        snprintf(info->node, sizeof(info->node), "/dev/nvidia%d", gpu->minor);
    info->board = gpu->board;
    const st_gpu_product *product = st_gpu_product_guess(info->name, info->vram_mib);
    if (product)
        snprintf(info->type, sizeof(info->type), "%s", product->type);
}

static void read_state(st_nvml *n, nv_gpu *gpu, st_gpu_info *info)
{
    nv_lib *lib = &n->lib;
    uint32_t now, pending;

    if (NV(lib, mig_get, gpu->dev, &now, &pending) == NVML_OK) {
        info->mig_capable = true;
        info->mig_on = now == 1;
        info->mig_pending = pending == 1;
    }
    if (NV(lib, get_mode, gpu->dev, &info->mode) != NVML_OK)
        info->mode = ST_GPU_UNKNOWN;
    info->pcie_gen = ask(lib->pcie_gen, gpu->dev);
    info->pcie_gen_max = ask(lib->pcie_gen_max, gpu->dev);
    info->pcie_width = ask(lib->pcie_width, gpu->dev);
    info->pcie_width_max = ask(lib->pcie_width_max, gpu->dev);
    info->power_limit_mw = ask(lib->power_limit, gpu->dev);
}

int st_nvml_links(st_nvml *n, nv_dev dev)
{
    int total = 0;

    for (uint32_t link = 0; link < ST_GPU_LINKS_MAX; link++) {
        int up = 0;
        total += NV(&n->lib, link_state, dev, link, &up) == NVML_OK && up;
    }
    return total;
}

static void read_links(st_nvml *n, nv_gpu *gpu, const st_gpu_inventory *inv, st_gpu_info *info)
{
    for (uint32_t link = 0; link < ST_GPU_LINKS_MAX; link++) {
        int up = 0, kind = -1;
        nv_pci pci = {0};
        if (NV(&n->lib, link_state, gpu->dev, link, &up) != NVML_OK || !up)
            continue;
        info->links++;
        if (NV(&n->lib, link_kind, gpu->dev, link, &kind) == NVML_OK && kind == LINK_TO_SWITCH)
            info->links_switch++;
        if (kind != LINK_TO_GPU || NV(&n->lib, link_pci, gpu->dev, link, &pci) != NVML_OK)
            continue;
        for (int i = 0; i < inv->n; i++)
            if (strncasecmp(inv->gpu[i].bus_id, pci.bus_id, sizeof(pci.bus_id)) == 0)
                info->peer[i]++;
    }
}

static void read_distances(st_nvml *n, int at, st_gpu_info *info)
{
    memset(info->ancestor, -1, sizeof(info->ancestor));
    for (int i = 0; i < n->base.n; i++) {
        int level;
        if (i == at)
            info->ancestor[i] = 0;
        else if (NV(&n->lib, ancestor, n->gpu[at].dev, n->gpu[i].dev, &level) == NVML_OK)
            info->ancestor[i] = (int8_t)level;
    }
}

int st_nvml_inventory(st_gpu *g, st_gpu_inventory *ret, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    st_gpu_inventory inv = {.n = g->n, .nodes = {"/dev/nvidiactl", "/dev/nvidia-uvm"}};

    (void)err;
    if (NV(&n->lib, driver_version, inv.driver, sizeof(inv.driver)) != NVML_OK)
        inv.driver[0] = '\0';
    if (NV(&n->lib, cuda_version, &inv.cuda) != NVML_OK)
        inv.cuda = ST_GPU_UNKNOWN;
    for (int i = 0; i < g->n; i++) {
        st_gpu_info *info = &inv.gpu[i];
        uint32_t minor;
        info->index = i;
        info->lost = NV(&n->lib, minor, n->gpu[i].dev, &minor) == NVML_LOST;
        read_identity(n, &n->gpu[i], info);
        read_state(n, &n->gpu[i], info);
        st_gpu_sysfs_place(n->sys, info);
    }
    for (int i = 0; i < g->n; i++) {
        read_links(n, &n->gpu[i], &inv, &inv.gpu[i]);
        read_distances(n, i, &inv.gpu[i]);
    }
    *ret = inv;
    return 0;
}
