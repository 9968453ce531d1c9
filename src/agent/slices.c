/*
 * Samples of MIG slices (agent/slices.h).
 */
#include "agent/slices.h"

static bool find(st_gpu *gpu, int d, const st_task_place *place, st_gpu_instance *ret)
{
    st_gpu_instances now;
    st_err err;

    if (st_gpu_mig_list(gpu, d, &now, &err) < 0)
        return false;
    for (int i = 0; i < now.n; i++)
        if (now.v[i].profile == place->mig_profile && now.v[i].start == place->mig_start) {
            *ret = now.v[i];
            return true;
        }
    return false;
}

void st_slices_sample(st_gpu *gpu, const st_task *tasks, size_t n, int64_t now_ms, st_slices *ret)
{
    st_err err;

    ret->n = 0;
    for (size_t i = 0; gpu && i < n; i++) {
        const st_task *t = &tasks[i];

        if (t->phase != ST_PHASE_RUNNING || t->place.mig_profile < 0)
            continue;
        for (int d = 0; d < gpu->n; d++) {
            st_slice s = {.key = t->key, .gpu = d};

            if (!(t->place.devs >> d & 1) || !find(gpu, d, &t->place, &s.instance))
                continue;
            if (st_gpu_sample_get(gpu, d, s.instance.gi, now_ms, &s.sample, &err) < 0)
                s.sample = (st_gpu_sample){.at_ms = now_ms};
            st_vec_push(ret, s);
        }
    }
}

const st_slice *st_slices_find(const st_slices *slices, const st_task_key *key, int gpu)
{
    for (size_t i = 0; i < slices->n; i++)
        if (slices->v[i].gpu == gpu && st_key_same(&slices->v[i].key, key))
            return &slices->v[i];
    return NULL;
}

void st_slice_view(const st_gpu_sample *whole, const st_gpu_sample *own, st_mig profile,
                   st_gpu_sample *ret)
{
    static const st_gpu_metric shared[] = {ST_GPU_PCIE_TX, ST_GPU_PCIE_RX, ST_GPU_NVLINK_TX,
                                           ST_GPU_NVLINK_RX, ST_GPU_ENERGY};
    st_gpu_sample s = own ? *own : (st_gpu_sample){0};

    s.at_ms = whole->at_ms;
    for (size_t i = 0; i < ST_ARRAY_LEN(shared); i++)
        if (!st_gpu_has(&s, shared[i]) && st_gpu_has(whole, shared[i]))
            st_gpu_put(&s, shared[i],
                       whole->v[shared[i]] / ST_MIG_COMPUTE * st_mig_compute(profile) +
                           whole->v[shared[i]] % ST_MIG_COMPUTE * st_mig_compute(profile) /
                               ST_MIG_COMPUTE);
    *ret = s;
}
