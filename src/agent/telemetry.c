/*
 * Rollups (agent/telemetry.h). Pure.
 */
#include "agent/telemetry.h"

#include <inttypes.h>

/* Adds amount / per without losing what is below a unit. */
static void add(st_rollup *r, st_used_kind sum, int64_t amount, int64_t per)
{
    int64_t all = amount + r->rest[sum];

    r->sum.v[sum] += all / per;
    r->rest[sum] = all % per;
    r->sum.has |= 1u << sum;
}

void st_rollup_memory(st_rollup *r, int64_t mib)
{
    r->sum.v[ST_USED_MEM_PEAK] = ST_MAX(r->sum.v[ST_USED_MEM_PEAK], mib);
    r->sum.has |= 1u << ST_USED_MEM_PEAK;
}

static void add_ratio(st_rollup *r, st_used_kind sum, const st_gpu_sample *s, st_gpu_metric m,
                      int64_t full, int64_t dt)
{
    if (st_gpu_has(s, m))
        add(r, sum, s->v[m] * dt, full);
}

static void add_bytes(st_rollup *r, st_used_kind sum, const st_gpu_sample *s, st_gpu_metric tx,
                      st_gpu_metric rx, int64_t dt, int share_m)
{
    if (st_gpu_has(s, tx) && st_gpu_has(s, rx))
        add(r, sum, (s->v[tx] + s->v[rx]) / 1000 * dt * share_m, 1000);
}

void st_rollup_add(st_rollup *r, const st_gpu_sample *prev, const st_gpu_sample *now, int share_m)
{
    int64_t dt = now->at_ms - prev->at_ms;

    if (dt <= 0)
        return;
    add(r, ST_USED_HELD, dt, 1);
    if (dt > ST_GAP_MS)
        return;
    add(r, ST_USED_SEEN, dt, 1);
    if (st_gpu_has(now, ST_GPU_GR_ACTIVE))
        add_ratio(r, ST_USED_BUSY, now, ST_GPU_GR_ACTIVE, 1000000, dt);
    else
        add_ratio(r, ST_USED_BUSY, now, ST_GPU_GPU_UTIL, 100, dt);
    add_ratio(r, ST_USED_SM, now, ST_GPU_SM_ACTIVE, 1000000, dt);
    add_ratio(r, ST_USED_DRAM, now, ST_GPU_DRAM_ACTIVE, 1000000, dt);
    if (st_gpu_has(now, ST_GPU_FB_USED))
        add(r, ST_USED_MEM, now->v[ST_GPU_FB_USED] * dt * share_m, 1000000);
    if (st_gpu_has(now, ST_GPU_TEMP))
        add(r, ST_USED_HEAT, ST_MAX(now->v[ST_GPU_TEMP], 0) * dt, 1000);
    add_bytes(r, ST_USED_PCIE, now, ST_GPU_PCIE_TX, ST_GPU_PCIE_RX, dt, share_m);
    add_bytes(r, ST_USED_NVLINK, now, ST_GPU_NVLINK_TX, ST_GPU_NVLINK_RX, dt, share_m);
    /* A counter that went back was reset; what it counted in between is not known. */
    if (st_gpu_has(prev, ST_GPU_ENERGY) && st_gpu_has(now, ST_GPU_ENERGY) &&
        now->v[ST_GPU_ENERGY] >= prev->v[ST_GPU_ENERGY])
        add(r, ST_USED_ENERGY, (now->v[ST_GPU_ENERGY] - prev->v[ST_GPU_ENERGY]) * share_m, 1000);
}

void st_used_json(const st_used *used, st_strbuf *out)
{
    const char *sep = "";

    st_strbuf_addc(out, '{');
    for (int k = 0; k < ST_USED_COUNT; k++) {
        if (!(used->has >> k & 1))
            continue;
        st_strbuf_addf(out, "%s\"%s\":%" PRId64, sep, st_used_key((st_used_kind)k), used->v[k]);
        sep = ",";
    }
    st_strbuf_addc(out, '}');
}
