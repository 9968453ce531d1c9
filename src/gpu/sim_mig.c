/* The sim driver's MIG, by the geometry of model/mig.h. */
#include <stdio.h>
#include <string.h>

#include "gpu/sim_state.h"

/* Capability numbers as the real driver counts them: 15 GPU instances to a GPU, each with itself
 * and 8 compute instances; the first two are config and monitor. */
#define CAPS_FIRST  3
#define CAPS_PER_GI 9
#define GI_PER_GPU  15

/* Ids by profile, as seen on hardware: 7g 0, 4g and 3g from 1, two memory slices from 3, 1g from 7. */
static const int first_id[ST_MIG_COUNT] = {
    [ST_MIG_1G] = 7, [ST_MIG_1G2] = 3, [ST_MIG_2G] = 3,
    [ST_MIG_3G] = 1, [ST_MIG_4G] = 1,  [ST_MIG_7G] = 0,
};

/* SMs of each profile: Ampere's and Hopper's. */
static const int sms[2][ST_MIG_COUNT] = {
    {14, 14, 28, 42, 56, 98},
    {16, 26, 32, 60, 64, 132},
};

static int check(const st_gpu_sim *s, int gpu, bool on, st_err *err)
{
    const sim_gpu *own = &s->gpu[gpu];
    int r = st_sim_lost(s, gpu, err);

    if (r < 0)
        return r;
    if (own->product->board == ST_BOARD_NONE)
        return st_fail(err, ST_EDOWN, "GPU %d: a %s has no MIG", gpu, own->product->name);
    if (on && !own->mig)
        return st_fail(err, ST_ESTATE, "GPU %d: MIG is off", gpu);
    return 0;
}

static void occupied(const sim_gpu *gpu, uint8_t *mask, int *compute)
{
    *mask = 0;
    *compute = 0;
    for (int i = 0; i < gpu->n; i++) {
        *mask |= st_mig_mask(gpu->instance[i].profile, gpu->instance[i].start);
        *compute += st_mig_compute(gpu->instance[i].profile);
    }
}

int st_sim_find(const sim_gpu *gpu, int gi)
{
    for (int i = 0; i < gpu->n; i++)
        if (gpu->instance[i].gi == gi)
            return i;
    return -1;
}

int st_sim_mig_mode(st_gpu *g, int gpu, bool on, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    sim_gpu *own = &s->gpu[gpu];

    pthread_mutex_lock(&s->lock);
    int r = check(s, gpu, false, err);
    if (r == 0 && own->mig != on) {
        if (own->loads.n > 0 || own->n > 0)
            r = st_fail(err, ST_ESTATE, "GPU %d: turning MIG %s: in use", gpu, on ? "on" : "off");
        else
            own->mig = on;
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

int st_sim_mig_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    const sim_gpu *own = &s->gpu[gpu];
    uint8_t mask;
    int compute;

    pthread_mutex_lock(&s->lock);
    int r = check(s, gpu, true, err);
    occupied(own, &mask, &compute);
    for (int i = 0; r == 0 && i < ST_MIG_COUNT; i++) {
        st_mig p = (st_mig)i;
        ret[i] = (st_gpu_profile){
            .offered = true,
            .vram_mib = st_mig_vram_mib(own->product->board, p),
            .sms = sms[own->product->cc >= 90][i],
            .most = st_mig_room(0, 0, p),
            .left = st_mig_room(mask, compute, p),
        };
        for (int k = 0; k < ST_MIG_MEMORY; k++)
            if (st_mig_start_legal(p, k))
                ret[i].starts |= (uint8_t)(1u << k);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void describe(const st_gpu_sim *s, int gpu, const sim_instance *i, st_gpu_instance *ret)
{
    *ret = (st_gpu_instance){
        .gi = i->gi,
        .profile = (int)i->profile,
        .start = i->start,
        .size = st_mig_memory(i->profile),
        .vram_mib = st_mig_vram_mib(s->gpu[gpu].product->board, i->profile),
        .gi_minor = CAPS_FIRST + (gpu * GI_PER_GPU + i->gi) * CAPS_PER_GI,
    };
    ret->ci_minor = ret->gi_minor + 1;
    snprintf(ret->node[0], sizeof(ret->node[0]), "/dev/nvidia-caps/nvidia-cap%d", ret->gi_minor);
    snprintf(ret->node[1], sizeof(ret->node[1]), "/dev/nvidia-caps/nvidia-cap%d", ret->ci_minor);
    st_sim_uuid(s, "MIG", (uint64_t)gpu + 1000, i->serial, ret->uuid);
}

int st_sim_mig_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    const sim_gpu *own = &s->gpu[gpu];

    pthread_mutex_lock(&s->lock);
    int r = check(s, gpu, false, err);
    if (r == 0) {
        *ret = (st_gpu_instances){.n = own->n};
        for (int i = 0; i < own->n; i++)
            describe(s, gpu, &own->instance[i], &ret->v[i]);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* Puts one in its place; the list is in order of start. */
static const sim_instance *insert(sim_gpu *gpu, st_mig profile, int start)
{
    int gi = first_id[profile], at = gpu->n;

    while (st_sim_find(gpu, gi) >= 0)
        gi++;
    for (; at > 0 && gpu->instance[at - 1].start > start; at--)
        gpu->instance[at] = gpu->instance[at - 1];
    gpu->instance[at] =
        (sim_instance){.gi = gi, .start = start, .profile = profile, .serial = ++gpu->made};
    gpu->n++;
    return &gpu->instance[at];
}

int st_sim_mig_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                      st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    sim_gpu *own = &s->gpu[gpu];
    uint8_t mask;
    int compute;

    pthread_mutex_lock(&s->lock);
    int r = check(s, gpu, true, err);
    occupied(own, &mask, &compute);
    if (r == 0) {
        const char *name = st_mig_name(own->product->board, profile);
        if (!st_mig_start_legal(profile, start))
            r = st_fail(err, ST_EINVAL, "GPU %d: %s cannot begin at %d", gpu, name, start);
        else if (st_mig_overlaps(mask, profile, start) ||
                 compute + st_mig_compute(profile) > ST_MIG_COMPUTE)
            r = st_fail(err, ST_ESTATE, "GPU %d: no room for %s at %d", gpu, name, start);
    }
    if (r == 0)
        describe(s, gpu, insert(own, profile, start), ret);
    pthread_mutex_unlock(&s->lock);
    return r;
}

int st_sim_mig_destroy(st_gpu *g, int gpu, int gi, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    sim_gpu *own = &s->gpu[gpu];

    pthread_mutex_lock(&s->lock);
    int r = check(s, gpu, true, err), at = st_sim_find(own, gi);
    if (r == 0 && at < 0)
        r = st_fail(err, ST_ENOENT, "GPU %d has no MIG instance %d", gpu, gi);
    for (size_t i = 0; r == 0 && i < own->loads.n; i++)
        if (own->loads.v[i].gi == gi)
            r = st_fail(err, ST_ESTATE, "GPU %d: removing MIG instance %d: in use", gpu, gi);
    if (r == 0) {
        own->n--;
        memmove(&own->instance[at], &own->instance[at + 1],
                (size_t)(own->n - at) * sizeof(own->instance[0]));
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}
