/*
 * The nvml driver's MIG: mode, profiles, instances.
 *
 * An instance of ours is a GPU instance and one compute instance that fills it; if the second
 * cannot be made, the first is taken back. What the driver offers is asked of the driver; our own
 * geometry only names the profiles.
 */
#include "gpu/nvml.h"

#include <stdio.h>
#include <string.h>

#include "gpu/nodes.h"

#define LIST_ROOM 64

/* NVML's index of each of our profiles, and of the compute instance that fills it. */
static const struct {
    uint32_t gi, ci;
} index_of[ST_MIG_COUNT] = {
    [ST_MIG_1G] = {0, 0}, [ST_MIG_1G2] = {9, 0}, [ST_MIG_2G] = {1, 1},
    [ST_MIG_3G] = {2, 2}, [ST_MIG_4G] = {3, 3},  [ST_MIG_7G] = {4, 4},
};

/* The driver's table does not change; it is read once, when MIG is on. */
static void read_profiles(st_nvml *n, nv_gpu *gpu)
{
    if (gpu->profiles_read)
        return;
    for (uint32_t i = 0; i < NV_PROFILE_MAX; i++) {
        gpu->profile[i] = (nv_gi_profile){.version = NV_VERSION(nv_gi_profile, 2)};
        if (NV(&n->lib, gi_profile, gpu->dev, i, &gpu->profile[i]) == NVML_OK)
            gpu->profiles_read = true;
        else
            gpu->profile[i].id = NV_NONE;
    }
}

/* Whether MIG is on; refused where it cannot be. */
static int mig_state(st_nvml *n, int gpu, bool *ret_on, st_err *err)
{
    uint32_t now, pending;
    int r = NV(&n->lib, mig_get, n->gpu[gpu].dev, &now, &pending);

    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, "MIG", r, err);
    if (n->gpu[gpu].board == ST_BOARD_NONE)
        return st_fail(err, ST_EDOWN, "GPU %d: its MIG slices have sizes we have no table of", gpu);
    *ret_on = now == 1;
    return 0;
}

static int need_on(st_nvml *n, int gpu, st_err *err)
{
    bool on = false;
    int r = mig_state(n, gpu, &on, err);

    if (r < 0)
        return r;
    if (!on)
        return st_fail(err, ST_ESTATE, "GPU %d: MIG is off", gpu);
    read_profiles(n, &n->gpu[gpu]);
    return 0;
}

int st_nvml_mig_mode(st_gpu *g, int gpu, bool on, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    const char *what = on ? "turning MIG on" : "turning MIG off";
    bool is = false;
    int status = NVML_OK, r = mig_state(n, gpu, &is, err);

    if (r < 0 || is == on)
        return r;
    /* The driver has been seen to agree although a process was running. */
    if (st_nvml_in_use(n, gpu))
        return st_nvml_fail(&n->lib, gpu, what, NVML_IN_USE, err);
    if ((r = NV(&n->lib, mig_set, n->gpu[gpu].dev, on, &status)) != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    if (status == NVML_RESET_REQUIRED)
        return st_fail(err, ST_ESTATE, "GPU %d: %s waits for a reset of the GPU", gpu, what);
    if (status != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, status, err);
    for (int i = 0; i < NV_GI_ID_MAX; i++)
        st_nvml_rates_done(n, &n->gpu[gpu].instance[i]);
    st_nvml_rates_done(n, &n->gpu[gpu].whole);
    return 0;
}

int st_nvml_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    int r = need_on(n, gpu, err);

    if (r < 0)
        return r;
    for (int p = 0; p < ST_MIG_COUNT; p++) {
        const nv_gi_profile *known = &own->profile[index_of[p].gi];
        nv_placement places[LIST_ROOM] = {0};
        uint32_t count = 0, left = 0;

        ret[p] = (st_gpu_profile){0};
        if (known->id == NV_NONE)
            continue;
        ret[p].offered = true;
        ret[p].vram_mib = (int64_t)known->memory_mib;
        ret[p].sms = (int)known->sms;
        ret[p].most = (int)known->instances;
        ret[p].left = ST_GPU_UNKNOWN;
        if (NV(&n->lib, gi_left, own->dev, known->id, &left) == NVML_OK)
            ret[p].left = (int)left;
        if (NV(&n->lib, gi_places, own->dev, known->id, NULL, &count) != NVML_OK ||
            count > LIST_ROOM ||
            NV(&n->lib, gi_places, own->dev, known->id, places, &count) != NVML_OK)
            continue;
        for (uint32_t i = 0; i < count; i++)
            if (places[i].start < ST_MIG_MEMORY)
                ret[p].starts |= (uint8_t)(1u << places[i].start);
    }
    return 0;
}

/* One MIG device: a compute instance in a GPU instance. */
typedef struct mig_device {
    nv_dev dev;
    uint32_t gi, ci;
} mig_device;

static int list_devices(st_nvml *n, int gpu, mig_device list[LIST_ROOM])
{
    uint32_t most = 0;
    int total = 0;

    if (NV(&n->lib, mig_most, n->gpu[gpu].dev, &most) != NVML_OK)
        return 0;
    for (uint32_t i = 0; i < most && total < LIST_ROOM; i++) {
        mig_device d;
        if (NV(&n->lib, mig_device, n->gpu[gpu].dev, i, &d.dev) == NVML_OK &&
            NV(&n->lib, mig_gi, d.dev, &d.gi) == NVML_OK &&
            NV(&n->lib, mig_ci, d.dev, &d.ci) == NVML_OK)
            list[total++] = d;
    }
    return total;
}

nv_dev st_nvml_mig_device(st_nvml *n, int gpu, int gi)
{
    ST_ASSERT(gi >= 0 && gi < NV_GI_ID_MAX);
    nv_gpu *own = &n->gpu[gpu];
    mig_device list[LIST_ROOM];
    uint32_t id;

    if (own->mig[gi] && NV(&n->lib, mig_gi, own->mig[gi], &id) == NVML_OK && id == (uint32_t)gi)
        return own->mig[gi];
    memset(own->mig, 0, sizeof(own->mig));
    int count = list_devices(n, gpu, list);
    for (int i = 0; i < count; i++)
        if (list[i].gi < NV_GI_ID_MAX)
            own->mig[list[i].gi] = list[i].dev;
    return own->mig[gi];
}

static void describe(st_nvml *n, int gpu, const nv_gi_info *info, const mig_device *devices,
                     int count, st_gpu_instance *ret)
{
    nv_gpu *own = &n->gpu[gpu];
    int mine = 0;

    *ret = (st_gpu_instance){
        .gi = (int)info->id,
        .ci = ST_GPU_UNKNOWN,
        .profile = ST_GPU_UNKNOWN,
        .start = (int)info->place.start,
        .size = (int)info->place.size,
        .vram_mib = ST_GPU_UNKNOWN,
    };
    for (uint32_t p = 0; p < NV_PROFILE_MAX; p++)
        if (own->profile[p].id == info->profile_id)
            ret->vram_mib = (int64_t)own->profile[p].memory_mib;
    for (int p = 0; p < ST_MIG_COUNT; p++)
        if (own->profile[index_of[p].gi].id == info->profile_id)
            ret->profile = p;
    for (int i = 0; i < count; i++) {
        if (devices[i].gi != info->id)
            continue;
        mine++;
        ret->ci = (int)devices[i].ci;
        if (NV(&n->lib, uuid, devices[i].dev, ret->uuid, sizeof(ret->uuid)) != NVML_OK)
            ret->uuid[0] = '\0';
    }
    if (mine > 1) /* cut up further: never ours */
        ret->profile = ST_GPU_UNKNOWN;
    st_gpu_cap_nodes(n->minors, own->minor, ret);
}

int st_nvml_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    st_gpu_instances out = {0};
    mig_device devices[LIST_ROOM];
    bool on = false;
    int ndevices = 0, r = mig_state(n, gpu, &on, err);

    if (r < 0)
        return r;
    if (on) {
        read_profiles(n, own);
        ndevices = list_devices(n, gpu, devices);
    }
    for (uint32_t p = 0; on && p < NV_PROFILE_MAX; p++) {
        nv_gi list[LIST_ROOM];
        nv_gi_info info;
        uint32_t count = LIST_ROOM;
        if (own->profile[p].id == NV_NONE ||
            NV(&n->lib, gi_list, own->dev, own->profile[p].id, list, &count) != NVML_OK)
            continue;
        for (uint32_t i = 0; i < count && out.n < ST_GPU_INSTANCES_MAX; i++)
            if (NV(&n->lib, gi_info, list[i], &info) == NVML_OK)
                describe(n, gpu, &info, devices, ndevices, &out.v[out.n++]);
    }
    *ret = out;
    return 0;
}

/* Fills a new GPU instance with a compute instance. */
static int fill(st_nvml *n, nv_gi gi, st_mig profile)
{
    nv_ci_profile compute;
    nv_ci ci;
    int r = NV(&n->lib, ci_profile, gi, index_of[profile].ci, 0, &compute);
    return r == NVML_OK ? NV(&n->lib, ci_create, gi, compute.id, &ci) : r;
}

int st_nvml_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                       st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    const nv_placement place = {(uint32_t)start, (uint32_t)st_mig_memory(profile)};
    mig_device devices[LIST_ROOM];
    char what[80];
    nv_gi gi;
    nv_gi_info info;
    int r = need_on(n, gpu, err);

    if (r < 0)
        return r;
    snprintf(what, sizeof(what), "making %s at %d", st_mig_name(own->board, profile), start);
    if (own->profile[index_of[profile].gi].id == NV_NONE)
        return st_nvml_fail(&n->lib, gpu, what, NVML_NOT_SUPPORTED, err);
    r = NV(&n->lib, gi_create, own->dev, own->profile[index_of[profile].gi].id, &place, &gi);
    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    if ((r = fill(n, gi, profile)) != NVML_OK || (r = NV(&n->lib, gi_info, gi, &info)) != NVML_OK) {
        NV(&n->lib, gi_destroy, gi);
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    }
    /* An id is used again; the counters of its former owner must not be compared with. */
    if (info.id < NV_GI_ID_MAX)
        st_nvml_rates_done(n, &own->instance[info.id]);
    int count = list_devices(n, gpu, devices);
    describe(n, gpu, &info, devices, count, ret);
    return 0;
}

int st_nvml_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    mig_device devices[LIST_ROOM];
    nv_gi handle;
    nv_ci compute;
    char what[64];
    int r = need_on(n, gpu, err);

    if (r < 0)
        return r;
    snprintf(what, sizeof(what), "removing MIG instance %d", gi);
    if ((r = NV(&n->lib, gi_by_id, n->gpu[gpu].dev, (uint32_t)gi, &handle)) != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    int count = list_devices(n, gpu, devices);
    for (int i = 0; i < count; i++) {
        if (devices[i].gi != (uint32_t)gi)
            continue;
        if ((r = NV(&n->lib, ci_by_id, handle, devices[i].ci, &compute)) != NVML_OK ||
            (r = NV(&n->lib, ci_destroy, compute)) != NVML_OK)
            return st_nvml_fail(&n->lib, gpu, what, r, err);
    }
    if ((r = NV(&n->lib, gi_destroy, handle)) != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    if (gi >= 0 && gi < NV_GI_ID_MAX)
        st_nvml_rates_done(n, &n->gpu[gpu].instance[gi]);
    return 0;
}
