/*
 * The sim driver's telemetry: what runs on a GPU, as numbers.
 *
 * Busy is a share in milli; everything else is derived from it by plain rules that keep the
 * relations real GPUs show: occupancy below activity, power between idle and limit, temperature
 * following power, clocks down when nothing runs. A little noise, from seed and second, keeps
 * graphs honest; a GPU that does nothing has none.
 */
#include <string.h>

#include "base/hash.h"
#include "gpu/sim_state.h"

#define TEMP_HALF_MS     16384 /* half the way to the new temperature */
#define THROTTLE_IDLE    0x1
#define THROTTLE_THERMAL (0x8 | 0x40) /* hardware slowdown, thermal */
#define WORDS_PER_MIB    INT64_C(262144)

/* ---- what runs -------------------------------------------------------------------------- */

/* Busy of an instance, or of the GPU; instances count by their compute slices. */
static int busy_of(const sim_gpu *gpu, int gi)
{
    int sum = 0;

    for (size_t i = 0; i < gpu->loads.n; i++) {
        const sim_load *l = &gpu->loads.v[i];
        if (gi != ST_GPU_WHOLE && l->gi != gi)
            continue;
        int at = gi == ST_GPU_WHOLE ? st_sim_find(gpu, l->gi) : -1;
        sum += at < 0 ? l->what.busy_m
                      : l->what.busy_m * st_mig_compute(gpu->instance[at].profile) / ST_MIG_COMPUTE;
    }
    return sum > 0 && gpu->busy_m > 0 ? (int)gpu->busy_m : ST_MIN(sum, 1000);
}

static int64_t used_mib(const sim_gpu *gpu, int gi)
{
    int64_t sum = 0;

    for (size_t i = 0; i < gpu->loads.n; i++)
        if (gi == ST_GPU_WHOLE || gpu->loads.v[i].gi == gi)
            sum += gpu->loads.v[i].what.mem_mib;
    return sum;
}

static int64_t total_mib(const sim_gpu *gpu, int gi)
{
    if (gi == ST_GPU_WHOLE)
        return gpu->product->vram_mib;
    return st_mig_vram_mib(gpu->product->board, gpu->instance[st_sim_find(gpu, gi)].profile);
}

static int64_t kept_mib(int gi)
{
    return gi == ST_GPU_WHOLE ? SIM_RESERVED_MIB : 0;
}

static int64_t power_mw(const sim_gpu *gpu)
{
    int64_t most = gpu->product->most_w, idle = gpu->product->idle_w;
    int64_t busy = busy_of(gpu, ST_GPU_WHOLE);

    return 1000 * idle + (most - idle) * busy / (gpu->thermal ? 2 : 1);
}

static int64_t energy_uj(const sim_gpu *gpu, int64_t now_ms)
{
    int64_t past_ms = ST_MAX(now_ms - gpu->since_ms, 0);
    return gpu->energy_uj + power_mw(gpu) * past_ms;
}

/* Half the distance to where it tends every TEMP_HALF_MS, in straight lines between. */
static int64_t temp_m(const sim_gpu *gpu, int64_t now_ms)
{
    int64_t past_ms = ST_MAX(now_ms - gpu->since_ms, 0);
    int64_t aim = gpu->thermal ? 92000 : 30000 + 40 * busy_of(gpu, ST_GPU_WHOLE);
    int64_t halvings = past_ms / TEMP_HALF_MS, rest = past_ms % TEMP_HALF_MS;
    int64_t off = halvings > 30 ? 0 : (gpu->temp_m - aim) / (INT64_C(1) << halvings);

    return aim + off - off * rest / (2 * TEMP_HALF_MS);
}

void st_sim_see(st_gpu_sim *s, int64_t now_ms)
{
    for (int i = 0; s->now_ms == ST_UNSET && i < s->base.n; i++)
        s->gpu[i].since_ms = now_ms;
    s->now_ms = ST_MAX(s->now_ms, now_ms);
}

void st_sim_catch_up(sim_gpu *gpu, int64_t now_ms)
{
    int64_t temp = temp_m(gpu, now_ms);

    gpu->energy_uj = energy_uj(gpu, now_ms);
    gpu->temp_m = temp;
    gpu->since_ms = ST_MAX(gpu->since_ms, now_ms);
}

/* ---- being told ------------------------------------------------------------------------- */

static int check_device(const st_gpu_sim *s, int gpu, int gi, st_err *err)
{
    const sim_gpu *own = &s->gpu[gpu];
    int r = st_sim_lost(s, gpu, err);

    if (r < 0)
        return r;
    if (gi != ST_GPU_WHOLE && st_sim_find(own, gi) < 0)
        return st_fail(err, ST_ENOENT, "GPU %d has no MIG instance %d", gpu, gi);
    return 0;
}

static int64_t *residue_of(sim_gpu *gpu, int gi)
{
    for (size_t i = 0; i < gpu->residue.n; i++)
        if (gpu->residue.v[i].gi == gi)
            return &gpu->residue.v[i].words;
    st_vec_push(&gpu->residue, (sim_residue){.gi = gi});
    return &gpu->residue.v[gpu->residue.n - 1].words;
}

static int set_load(st_gpu_sim *s, int gpu, int gi, uint64_t job, const st_gpu_load *load,
                    st_err *err)
{
    sim_gpu *own = &s->gpu[gpu];
    size_t at = 0;

    while (at < own->loads.n && (own->loads.v[at].job != job || own->loads.v[at].gi != gi))
        at++;
    if (!load) {
        if (at < own->loads.n) {
            *residue_of(own, gi) += own->loads.v[at].what.mem_mib * WORDS_PER_MIB;
            st_vec_remove(&own->loads, at);
        }
        return 0;
    }
    if (gi == ST_GPU_WHOLE && own->mig)
        return st_fail(err, ST_ESTATE, "GPU %d: MIG is on, so nothing runs outside instances", gpu);
    int64_t before = at < own->loads.n ? own->loads.v[at].what.mem_mib : 0;
    int64_t free = total_mib(own, gi) - kept_mib(gi) - used_mib(own, gi) + before;
    if (load->mem_mib > free)
        return st_fail(err, ST_ELIMIT, "GPU %d: out of memory: %lld MiB wanted, %lld free", gpu,
                       (long long)load->mem_mib, (long long)free);
    sim_load what = {.job = job, .gi = gi, .what = *load};
    if (at < own->loads.n)
        own->loads.v[at] = what;
    else
        st_vec_push(&own->loads, what);
    return 0;
}

int st_gpu_sim_load(st_gpu *g, int gpu, int gi, uint64_t job, const st_gpu_load *load,
                    int64_t now_ms, st_err *err)
{
    ST_ASSERT(!load || (load->mem_mib >= 0 && load->busy_m >= 0 && load->busy_m <= 1000));
    st_gpu_sim *s = st_sim_of(g);
    int r;

    if (gpu < 0 || gpu >= g->n)
        return st_fail(err, ST_ENOENT, "there is no GPU %d; this node has %d", gpu, g->n);
    pthread_mutex_lock(&s->lock);
    st_sim_see(s, now_ms);
    /* What leaves may leave a GPU that is gone. */
    r = load ? check_device(s, gpu, gi, err) : 0;
    if (r == 0) {
        st_sim_catch_up(&s->gpu[gpu], s->now_ms);
        r = set_load(s, gpu, gi, job, load, err);
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

int st_gpu_sim_scan(st_gpu *g, int gpu, int gi, int64_t *ret_bytes, int64_t *ret_found, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    int64_t *words;
    int r;

    if (gpu < 0 || gpu >= g->n)
        return st_fail(err, ST_ENOENT, "there is no GPU %d; this node has %d", gpu, g->n);
    pthread_mutex_lock(&s->lock);
    r = check_device(s, gpu, gi, err);
    if (r == 0) {
        sim_gpu *own = &s->gpu[gpu];

        words = residue_of(own, gi);
        if (*words > 0 && own->stuck) {
            r = st_fail(err, ST_EIO, "GPU %d: %lld words of device memory cannot be cleared", gpu,
                        (long long)*words);
        } else {
            *ret_found = *words;
            *ret_bytes = (total_mib(own, gi) - kept_mib(gi) - used_mib(own, gi)) << 20;
            *words = 0;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- being asked ------------------------------------------------------------------------ */

/* A value moved by up to two percent, the same for everybody who asks in that second. */
static int64_t noisy(const st_gpu_sim *s, int gpu, st_gpu_metric m, int64_t now_ms, int64_t value)
{
    uint64_t h = st_hash_u64(st_hash_u64(s->seed, (uint64_t)(now_ms / 1000)),
                             (uint64_t)gpu * ST_GPU_METRIC_COUNT + m);
    return value + value * ((int64_t)(h % 41) - 20) / 1000;
}

static void put_activity(const st_gpu_sim *s, int gpu, int gi, int64_t now_ms, st_gpu_sample *out)
{
    /* Parts per million of each for a GPU that is all busy; the last rows in B/s. */
    static const struct {
        int64_t full;
        st_gpu_metric metric;
        bool link;
    } rows[] = {
        {980000, ST_GPU_GR_ACTIVE, false},     {900000, ST_GPU_SM_ACTIVE, false},
        {450000, ST_GPU_SM_OCCUPANCY, false},  {400000, ST_GPU_TENSOR_ACTIVE, false},
        {500000, ST_GPU_DRAM_ACTIVE, false},   {600000000, ST_GPU_PCIE_TX, false},
        {2000000000, ST_GPU_PCIE_RX, false},   {80000000000, ST_GPU_NVLINK_TX, true},
        {80000000000, ST_GPU_NVLINK_RX, true},
    };
    const sim_gpu *own = &s->gpu[gpu];
    int64_t busy = busy_of(own, gi);

    for (size_t i = 0; own->product->gpm && i < ST_ARRAY_LEN(rows); i++) {
        int64_t value = rows[i].full / 1000 * busy;
        if (rows[i].link && !own->linked)
            continue;
        if (rows[i].link && own->mig)
            value = 0;
        if (rows[i].metric == ST_GPU_SM_ACTIVE)
            value = value * (1000 - own->waits_m) / 1000;
        st_gpu_put(out, rows[i].metric, noisy(s, gpu, rows[i].metric, now_ms, value));
    }
}

static void put_memory(const sim_gpu *gpu, int gi, st_gpu_sample *out)
{
    int64_t total = total_mib(gpu, gi), used = used_mib(gpu, gi), kept = kept_mib(gi);

    st_gpu_put(out, ST_GPU_FB_TOTAL, total);
    st_gpu_put(out, ST_GPU_FB_USED, used);
    st_gpu_put(out, ST_GPU_FB_RESERVED, kept);
    st_gpu_put(out, ST_GPU_FB_FREE, ST_MAX(total - used - kept, 0));
}

static void put_board(const st_gpu_sim *s, int gpu, int64_t now_ms, st_gpu_sample *out)
{
    const sim_gpu *own = &s->gpu[gpu];
    const st_gpu_product *p = own->product;
    int64_t busy = busy_of(own, ST_GPU_WHOLE), temp = temp_m(own, now_ms) / 1000;

    if (!own->mig) {
        st_gpu_put(out, ST_GPU_GPU_UTIL,
                   ST_MIN(noisy(s, gpu, ST_GPU_GPU_UTIL, now_ms, busy) / 10, 100));
        st_gpu_put(out, ST_GPU_MEM_COPY_UTIL, busy / 25);
    }
    st_gpu_put(out, ST_GPU_POWER, noisy(s, gpu, ST_GPU_POWER, now_ms, power_mw(own)));
    st_gpu_put(out, ST_GPU_POWER_LIMIT, p->most_w * INT64_C(1000));
    st_gpu_put(out, ST_GPU_ENERGY, energy_uj(own, now_ms) / 1000);
    st_gpu_put(out, ST_GPU_TEMP, temp);
    if (p->board != ST_BOARD_NONE) /* stacked memory has a sensor of its own */
        st_gpu_put(out, ST_GPU_MEM_TEMP, temp + 6);
    st_gpu_put(out, ST_GPU_SM_CLOCK, own->thermal ? p->sm_mhz / 3 : busy ? p->sm_mhz : 345);
    st_gpu_put(out, ST_GPU_MEM_CLOCK, p->mem_mhz);
    st_gpu_put(out, ST_GPU_THROTTLE,
               (own->thermal ? THROTTLE_THERMAL : 0) | (busy ? 0 : THROTTLE_IDLE));
}

static void put_faults(const sim_gpu *gpu, st_gpu_sample *out)
{
    st_gpu_put(out, ST_GPU_ECC_SBE_VOL, gpu->sbe - gpu->sbe_before);
    st_gpu_put(out, ST_GPU_ECC_DBE_VOL, gpu->dbe - gpu->dbe_before);
    st_gpu_put(out, ST_GPU_ECC_SBE_AGG, gpu->sbe);
    st_gpu_put(out, ST_GPU_ECC_DBE_AGG, gpu->dbe);
    /* The row remapper does not answer while instances live. */
    if (gpu->product->cc >= 80 && gpu->n == 0) {
        st_gpu_put(out, ST_GPU_REMAP_COR, 0);
        st_gpu_put(out, ST_GPU_REMAP_UNC, gpu->remapped);
        st_gpu_put(out, ST_GPU_REMAP_PENDING, gpu->remap_pending);
        st_gpu_put(out, ST_GPU_REMAP_FAILURE, gpu->remap_failed);
    }
    st_gpu_put(out, ST_GPU_PCIE_REPLAY, gpu->replays);
    if (gpu->product->gpm)
        st_gpu_put(out, ST_GPU_RECOVERY, gpu->recovery);
    st_gpu_put(out, ST_GPU_XID, gpu->xid);
}

int st_sim_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);

    pthread_mutex_lock(&s->lock);
    st_sim_see(s, now_ms);
    int r = check_device(s, gpu, gi, err);
    if (r == 0) {
        *ret = (st_gpu_sample){.at_ms = now_ms};
        put_activity(s, gpu, gi, now_ms, ret);
        put_memory(&s->gpu[gpu], gi, ret);
        if (gi == ST_GPU_WHOLE) {
            put_board(s, gpu, now_ms, ret);
            put_faults(&s->gpu[gpu], ret);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

int st_sim_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err)
{
    st_gpu_sim *s = st_sim_of(g);
    const sim_gpu *own = &s->gpu[gpu];

    pthread_mutex_lock(&s->lock);
    int r =
        st_sim_control_read(s, err); /* who is there is asked of the moment, as of a real driver */
    if (r == 0)
        r = st_sim_lost(s, gpu, err);
    for (size_t i = 0; r == 0 && i < own->loads.n && i < room; i++) {
        const sim_load *l = &own->loads.v[i];
        buf[i] = (st_gpu_proc){
            .pid = l->what.pid,
            .mem_mib = l->what.mem_mib,
            .sm = own->mig ? ST_GPU_UNKNOWN : l->what.busy_m / 10,
            .gi = l->gi,
            .ci = l->gi == ST_GPU_WHOLE ? ST_GPU_UNKNOWN : 0,
            .mps = l->what.mps,
        };
    }
    if (r == 0)
        *ret_n = own->loads.n;
    pthread_mutex_unlock(&s->lock);
    return r;
}
