/* The driver table's front: arguments are checked here, once for all drivers. */
#include "gpu/gpu.h"

#include <string.h>

static int check(const st_gpu *g, int gpu, st_err *err)
{
    if (gpu < 0 || gpu >= g->n)
        return st_fail(err, ST_ENOENT, "there is no GPU %d; this node has %d", gpu, g->n);
    return 0;
}

void st_gpu_free(st_gpu *g)
{
    if (g)
        g->ops->free(g);
}

const char *st_gpu_driver(const st_gpu *g)
{
    return g->ops->name;
}

int st_gpu_inventory_get(st_gpu *g, st_gpu_inventory *ret, st_err *err)
{
    return g->ops->inventory(g, ret, err);
}

int st_gpu_sample_get(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->sample(g, gpu, gi, now_ms, ret, err);
}

void st_gpu_fresh(st_gpu *g, int gpu)
{
    if (g->ops->fresh && check(g, gpu, NULL) == 0)
        g->ops->fresh(g, gpu);
}

int st_gpu_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->procs(g, gpu, buf, room, ret_n, err);
}

int st_gpu_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err)
{
    ST_ASSERT(timeout_ms >= 0);
    return g->ops->wait(g, timeout_ms, ret, err);
}

int st_gpu_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->set_mode(g, gpu, mode, err);
}

int st_gpu_mig_mode(st_gpu *g, int gpu, bool on, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->mig_mode(g, gpu, on, err);
}

int st_gpu_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->mig_profiles(g, gpu, ret, err);
}

int st_gpu_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->mig_list(g, gpu, ret, err);
}

int st_gpu_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                      st_err *err)
{
    ST_ASSERT(profile < ST_MIG_COUNT);
    int r = check(g, gpu, err);
    if (r < 0)
        return r;
    if (start < 0 || start >= ST_MIG_MEMORY)
        return st_fail(err, ST_ERANGE, "GPU %d: a MIG slice begins at 0 to %d, not at %d", gpu,
                       ST_MIG_MEMORY - 1, start);
    return g->ops->mig_create(g, gpu, profile, start, ret, err);
}

int st_gpu_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err)
{
    int r = check(g, gpu, err);
    return r < 0 ? r : g->ops->mig_destroy(g, gpu, gi, err);
}

const char *st_gpu_event_name(st_gpu_event_kind kind)
{
    static const char *const names[ST_GPU_EVENT_COUNT] = {
#define X(id, name) [id] = name,
        ST_GPU_EVENT_TABLE(X)
#undef X
    };
    ST_ASSERT(kind < ST_GPU_EVENT_COUNT);
    return names[kind];
}

int st_gpu_mps_facts(const st_gpu_inventory *inv, int gpu, st_gpu_mps *ret, st_err *err)
{
    ST_ASSERT(gpu >= 0 && gpu < inv->n);
    const st_gpu_info *info = &inv->gpu[gpu];

    if (info->cc < 70)
        return st_fail(err, ST_EDOWN,
                       "GPU %d: MPS keeps clients apart from compute capability 7.0 on; a %s has "
                       "%d.%d",
                       gpu, info->name, info->cc / 10, info->cc % 10);
    if (info->mode == ST_GPU_MODE_PROHIBITED)
        return st_fail(err, ST_ESTATE, "GPU %d: its compute mode prohibits any process", gpu);
    *ret = (st_gpu_mps){
        .clients = ST_MPS_CLIENTS_MAX,
        .memory_limit = inv->cuda >= 11050,
        .partitions = inv->cuda >= 13010 && info->cc >= 80,
    };
    return 0;
}
