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
    bool on;
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
    bool is;
    int status = NVML_OK, r = mig_state(n, gpu, &is, err);

    if (r < 0 || is == on)
        return r;
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

nv_dev st_nvml_mig_device(st_nvml *n, int gpu, int gi)
{
    uint32_t most = 0, id;
    nv_dev found;

    if (NV(&n->lib, mig_most, n->gpu[gpu].dev, &most) != NVML_OK)
        return NULL;
    for (uint32_t i = 0; i < most; i++)
        if (NV(&n->lib, mig_device, n->gpu[gpu].dev, i, &found) == NVML_OK &&
            NV(&n->lib, mig_gi, found, &id) == NVML_OK && id == (uint32_t)gi)
            return found;
    return NULL;
}

/* The compute instances of a GPU instance; more than one is never ours. */
static uint32_t list_compute(st_nvml *n, nv_gi gi, nv_ci list[LIST_ROOM])
{
    uint32_t total = 0;

    for (uint32_t p = 0; p < NV_PROFILE_MAX && total < LIST_ROOM; p++) {
        nv_ci_profile profile;
        nv_ci some[LIST_ROOM];
        uint32_t count = LIST_ROOM;
        if (NV(&n->lib, ci_profile, gi, p, 0, &profile) != NVML_OK ||
            NV(&n->lib, ci_list, gi, profile.id, some, &count) != NVML_OK)
            continue;
        for (uint32_t i = 0; i < count && total < LIST_ROOM; i++)
            list[total++] = some[i];
    }
    return total;
}

static void describe(st_nvml *n, int gpu, nv_gi gi, const nv_gi_info *info, st_gpu_instance *ret)
{
    nv_gpu *own = &n->gpu[gpu];
    nv_ci compute[LIST_ROOM];
    nv_ci_info ci;
    nv_dev dev;

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
    uint32_t count = list_compute(n, gi, compute);
    if (count == 1 && NV(&n->lib, ci_info, compute[0], &ci) == NVML_OK)
        ret->ci = (int)ci.id;
    else if (count > 1)
        ret->profile = ST_GPU_UNKNOWN;
    if ((dev = st_nvml_mig_device(n, gpu, ret->gi)))
        NV(&n->lib, uuid, dev, ret->uuid, sizeof(ret->uuid));
    st_gpu_cap_nodes(n->proc, own->minor, ret);
}

int st_nvml_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    st_gpu_instances out = {0};
    bool on;
    int r = mig_state(n, gpu, &on, err);

    if (r < 0)
        return r;
    if (on)
        read_profiles(n, own);
    for (uint32_t p = 0; on && p < NV_PROFILE_MAX; p++) {
        nv_gi list[LIST_ROOM];
        nv_gi_info info;
        uint32_t count = LIST_ROOM;
        if (own->profile[p].id == NV_NONE ||
            NV(&n->lib, gi_list, own->dev, own->profile[p].id, list, &count) != NVML_OK)
            continue;
        for (uint32_t i = 0; i < count && out.n < ST_GPU_INSTANCES_MAX; i++)
            if (NV(&n->lib, gi_info, list[i], &info) == NVML_OK)
                describe(n, gpu, list[i], &info, &out.v[out.n++]);
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
    describe(n, gpu, gi, &info, ret);
    return 0;
}

int st_nvml_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_ci compute[LIST_ROOM];
    nv_gi handle;
    char what[64];
    int r = need_on(n, gpu, err);

    if (r < 0)
        return r;
    snprintf(what, sizeof(what), "removing MIG instance %d", gi);
    if ((r = NV(&n->lib, gi_by_id, n->gpu[gpu].dev, (uint32_t)gi, &handle)) != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    uint32_t count = list_compute(n, handle, compute);
    for (uint32_t i = 0; i < count; i++)
        if ((r = NV(&n->lib, ci_destroy, compute[i])) != NVML_OK)
            return st_nvml_fail(&n->lib, gpu, what, r, err);
    if ((r = NV(&n->lib, gi_destroy, handle)) != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, what, r, err);
    if (gi >= 0 && gi < NV_GI_ID_MAX)
        st_nvml_rates_done(n, &n->gpu[gpu].instance[gi]);
    return 0;
}
