/*
 * The nvml driver's telemetry. Whatever the library does not answer is left out of the sample.
 *
 * Ratios come from GPM, which compares two reads of hardware counters at least 100 ms apart; the
 * older read is kept per GPU and per instance. Under MIG only memory and GPM exist per instance,
 * and the whole GPU has no utilisation of its own.
 *
 * Calls cost CPU, measured on an H200: the energy counter 2.2 ms, GPM 0.9 ms, most others 0.1 to
 * 1 ms when not served from the library's own cache. What changes rarely (error counts, the power
 * limit) or can wait (energy) is read every ten seconds and after an event, and repeated in between.
 */
#include "gpu/nvml.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

#define GPM_GAP_MS 100
#define SLOW_MS    10000
#define MIB        (1 << 20)

/* NVML's enumerations. */
enum { SENSOR_GPU = 0, CLOCK_SM = 1, CLOCK_MEM = 2 };
enum { FIELD_MEMORY_TEMP = 82, FIELD_POWER_INSTANT = 186, FIELD_RECOVERY = 230 };
enum { ECC_CORRECTED = 0, ECC_UNCORRECTED = 1, ECC_VOLATILE = 0, ECC_AGGREGATE = 1 };

typedef struct gpm_row {
    uint32_t id;
    st_gpu_metric metric;
    double factor;
    bool link; /* only where there are NVLinks */
} gpm_row;

/* Percent becomes parts per million, MiB/s becomes B/s. */
static const gpm_row gpm_rows[] = {
    {1, ST_GPU_GR_ACTIVE, 1e4, false},    {2, ST_GPU_SM_ACTIVE, 1e4, false},
    {3, ST_GPU_SM_OCCUPANCY, 1e4, false}, {5, ST_GPU_TENSOR_ACTIVE, 1e4, false},
    {10, ST_GPU_DRAM_ACTIVE, 1e4, false}, {20, ST_GPU_PCIE_TX, MIB, false},
    {21, ST_GPU_PCIE_RX, MIB, false},     {60, ST_GPU_NVLINK_RX, MIB, true},
    {61, ST_GPU_NVLINK_TX, MIB, true},
};

void st_nvml_rates_done(st_nvml *n, nv_rates *rates)
{
    if (rates->last)
        NV(&n->lib, gpm_free, rates->last);
    if (rates->next)
        NV(&n->lib, gpm_free, rates->next);
    *rates = (nv_rates){0};
}

/* Reads the counters into rates->next. */
static bool take_counters(st_nvml *n, nv_dev dev, int gi, nv_rates *rates)
{
    nv_lib *lib = &n->lib;

    if ((!rates->last && NV(lib, gpm_alloc, &rates->last) != NVML_OK) ||
        (!rates->next && NV(lib, gpm_alloc, &rates->next) != NVML_OK))
        return false;
    return (gi == ST_GPU_WHOLE ? NV(lib, gpm_take, dev, rates->next)
                               : NV(lib, gpm_take_mig, dev, (uint32_t)gi, rates->next)) == NVML_OK;
}

static void compare_counters(st_nvml *n, const nv_gpu *gpu, const nv_rates *rates, st_gpu_sample *s)
{
    ST_CLEANUP(st_freep) nv_gpm_get *get = st_xcalloc(1, sizeof(*get));
    const gpm_row *asked[ST_ARRAY_LEN(gpm_rows)];

    get->version = 1;
    get->first = rates->last;
    get->second = rates->next;
    for (size_t i = 0; i < ST_ARRAY_LEN(gpm_rows); i++) {
        if (gpm_rows[i].link && !gpu->linked)
            continue;
        asked[get->n] = &gpm_rows[i];
        get->metric[get->n++].id = gpm_rows[i].id;
    }
    if (NV(&n->lib, gpm_metrics, get) != NVML_OK)
        return;
    for (uint32_t i = 0; i < get->n; i++) {
        double value = get->metric[i].value * asked[i]->factor;
        /* Also refuses what is not a number. */
        if (get->metric[i].result == NVML_OK && value >= 0 && value < 1e18)
            st_gpu_put(s, asked[i]->metric, (int64_t)(value + 0.5));
    }
}

static void read_rates(st_nvml *n, nv_gpu *gpu, int gi, int64_t now_ms, st_gpu_sample *s)
{
    nv_rates *rates = gi == ST_GPU_WHOLE ? &gpu->whole : &gpu->instance[gi];

    if (!gpu->gpm)
        return;
    if (rates->have && now_ms >= rates->at_ms && now_ms - rates->at_ms < GPM_GAP_MS)
        return; /* too soon: the older read stays */
    if (!take_counters(n, gpu->dev, gi, rates)) {
        st_nvml_rates_done(n, rates);
        return;
    }
    if (rates->have)
        compare_counters(n, gpu, rates, s);
    nv_gpm swap = rates->last;
    rates->last = rates->next;
    rates->next = swap;
    rates->have = true;
    rates->at_ms = now_ms;
}

static int read_memory(st_nvml *n, int gpu, nv_dev dev, st_gpu_sample *s, st_err *err)
{
    nv_memory memory = {.version = NV_VERSION(nv_memory, 2)};
    int r = NV(&n->lib, memory, dev, &memory);

    if (r == NVML_LOST)
        return st_nvml_fail(&n->lib, gpu, "reading it", r, err);
    if (r != NVML_OK)
        return 0;
    st_gpu_put(s, ST_GPU_FB_TOTAL, (int64_t)(memory.total >> 20));
    st_gpu_put(s, ST_GPU_FB_USED, (int64_t)(memory.used >> 20));
    st_gpu_put(s, ST_GPU_FB_FREE, (int64_t)(memory.free >> 20));
    st_gpu_put(s, ST_GPU_FB_RESERVED, (int64_t)(memory.reserved >> 20));
    return 0;
}

static bool field_value(const nv_field *f, int64_t *ret)
{
    if (f->result != NVML_OK)
        return false;
    switch (f->type) {
    case NV_U32:
        *ret = f->value.u32;
        return true;
    case NV_ULONG:
    case NV_U64:
        *ret = (int64_t)f->value.u64;
        return true;
    case NV_I64:
        *ret = f->value.i64;
        return true;
    case NV_I32:
        *ret = f->value.i32;
        return true;
    case NV_U16:
        *ret = f->value.u16;
        return true;
    default:
        return false;
    }
}

static void read_fields(st_nvml *n, nv_dev dev, st_gpu_sample *s)
{
    static const struct {
        uint32_t id;
        st_gpu_metric metric;
    } rows[] = {
        {FIELD_MEMORY_TEMP, ST_GPU_MEM_TEMP},
        {FIELD_POWER_INSTANT, ST_GPU_POWER},
        {FIELD_RECOVERY, ST_GPU_RECOVERY},
    };
    nv_field fields[ST_ARRAY_LEN(rows)] = {0};
    int64_t value;

    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        fields[i].id = rows[i].id;
    if (NV(&n->lib, fields, dev, (int)ST_ARRAY_LEN(rows), fields) != NVML_OK)
        return;
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++)
        if (field_value(&fields[i], &value))
            st_gpu_put(s, rows[i].metric, value);
}

static void read_activity(st_nvml *n, nv_dev dev, st_gpu_sample *s)
{
    nv_lib *lib = &n->lib;
    nv_utilization busy;
    uint64_t wide;
    uint32_t value;

    if (NV(lib, utilization, dev, &busy) == NVML_OK) {
        st_gpu_put(s, ST_GPU_GPU_UTIL, busy.gpu);
        st_gpu_put(s, ST_GPU_MEM_COPY_UTIL, busy.memory);
    }
    if (!st_gpu_has(s, ST_GPU_POWER) && NV(lib, power, dev, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_POWER, value);
    if (NV(lib, temperature, dev, SENSOR_GPU, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_TEMP, value);
    if (NV(lib, clock, dev, CLOCK_SM, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_SM_CLOCK, value);
    if (NV(lib, clock, dev, CLOCK_MEM, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_MEM_CLOCK, value);
    if (NV(lib, throttle, dev, &wide) == NVML_OK || NV(lib, throttle_old, dev, &wide) == NVML_OK)
        st_gpu_put(s, ST_GPU_THROTTLE, (int64_t)wide);
}

static void read_slow(st_nvml *n, nv_dev dev, st_gpu_sample *s)
{
    static const struct {
        int kind, counter;
        st_gpu_metric metric;
    } ecc[] = {
        {ECC_CORRECTED, ECC_VOLATILE, ST_GPU_ECC_SBE_VOL},
        {ECC_UNCORRECTED, ECC_VOLATILE, ST_GPU_ECC_DBE_VOL},
        {ECC_CORRECTED, ECC_AGGREGATE, ST_GPU_ECC_SBE_AGG},
        {ECC_UNCORRECTED, ECC_AGGREGATE, ST_GPU_ECC_DBE_AGG},
    };
    uint32_t corrected, uncorrected, pending, failed, value;
    uint64_t count;

    for (size_t i = 0; i < ST_ARRAY_LEN(ecc); i++)
        if (NV(&n->lib, ecc, dev, ecc[i].kind, ecc[i].counter, &count) == NVML_OK)
            st_gpu_put(s, ecc[i].metric, (int64_t)count);
    if (NV(&n->lib, remapped, dev, &corrected, &uncorrected, &pending, &failed) == NVML_OK) {
        st_gpu_put(s, ST_GPU_REMAP_COR, corrected);
        st_gpu_put(s, ST_GPU_REMAP_UNC, uncorrected);
        st_gpu_put(s, ST_GPU_REMAP_PENDING, pending != 0);
        st_gpu_put(s, ST_GPU_REMAP_FAILURE, failed != 0);
    }
    if (NV(&n->lib, replay, dev, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_PCIE_REPLAY, value);
    if (NV(&n->lib, power_limit, dev, &value) == NVML_OK)
        st_gpu_put(s, ST_GPU_POWER_LIMIT, value);
    if (NV(&n->lib, energy, dev, &count) == NVML_OK)
        st_gpu_put(s, ST_GPU_ENERGY, (int64_t)count);
}

static void put_slow(st_nvml *n, nv_gpu *gpu, st_gpu_sample *s)
{
    int64_t age_ms = s->at_ms - gpu->slow.at_ms;

    if (gpu->slow_stale || age_ms < 0 || age_ms >= SLOW_MS) {
        gpu->slow_stale = false;
        gpu->slow = (st_gpu_sample){.at_ms = s->at_ms};
        read_slow(n, gpu->dev, &gpu->slow);
    }
    for (int m = 0; m < ST_GPU_METRIC_COUNT; m++)
        if (st_gpu_has(&gpu->slow, (st_gpu_metric)m))
            st_gpu_put(s, (st_gpu_metric)m, gpu->slow.v[m]);
}

int st_nvml_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    nv_dev dev = own->dev;
    st_gpu_sample s = {.at_ms = now_ms};
    int r;

    if (gi != ST_GPU_WHOLE) {
        if (gi < 0 || gi >= NV_GI_ID_MAX || !(dev = st_nvml_mig_device(n, gpu, gi)))
            return st_fail(err, ST_ENOENT, "GPU %d has no MIG instance %d", gpu, gi);
    }
    if ((r = read_memory(n, gpu, dev, &s, err)) < 0)
        return r;
    read_rates(n, own, gi, now_ms, &s);
    if (gi == ST_GPU_WHOLE) {
        read_fields(n, dev, &s);
        read_activity(n, dev, &s);
        put_slow(n, own, &s);
        if (n->events_mask & 0x8)
            st_gpu_put(&s, ST_GPU_XID, own->xid);
    }
    *ret = s;
    return 0;
}

/* ---- processes -------------------------------------------------------------------------- */

typedef ST_VEC(nv_process_sample) sample_vec;

static void read_process_samples(st_nvml *n, nv_gpu *gpu, sample_vec *list)
{
    uint32_t count = 0;

    if (NV(&n->lib, process_samples, gpu->dev, NULL, &count, gpu->procs_at_us) != NVML_TOO_SMALL ||
        count == 0)
        return;
    count += 16; /* some may come in between */
    st_vec_reserve(list, count);
    if (NV(&n->lib, process_samples, gpu->dev, list->v, &count, gpu->procs_at_us) == NVML_OK)
        list->n = count;
    for (size_t i = 0; i < list->n; i++)
        gpu->procs_at_us = ST_MAX(gpu->procs_at_us, list->v[i].at_us);
}

static int newest_sm(const sample_vec *list, uint32_t pid)
{
    uint64_t at_us = 0;
    int sm = ST_GPU_UNKNOWN;

    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i].pid != pid || list->v[i].at_us < at_us)
            continue;
        at_us = list->v[i].at_us;
        sm = (int)list->v[i].sm;
    }
    return sm;
}

typedef int process_fn(nv_dev, uint32_t *, nv_process *);

static int add_processes(nv_gpu *gpu, process_fn *call, bool mps, const sample_vec *busy,
                         st_gpu_proc *buf, size_t room, size_t *total)
{
    ST_VEC(nv_process) list = {0};
    uint32_t count = 0;
    int r = NVML_TOO_SMALL;

    for (int tries = 0; tries < 4 && r == NVML_TOO_SMALL; tries++) {
        count += 16;
        st_vec_reserve(&list, count);
        r = call(gpu->dev, &count, list.v);
    }
    for (uint32_t i = 0; r == NVML_OK && i < count; i++) {
        const nv_process *p = &list.v[i];
        if (*total < room)
            buf[*total] = (st_gpu_proc){
                .pid = p->pid,
                .mem_mib = p->memory == UINT64_MAX ? ST_GPU_UNKNOWN : (int64_t)(p->memory >> 20),
                .sm = newest_sm(busy, p->pid),
                .gi = p->gi == NV_NONE ? ST_GPU_UNKNOWN : (int)p->gi,
                .ci = p->ci == NV_NONE ? ST_GPU_UNKNOWN : (int)p->ci,
                .mps = mps,
            };
        (*total)++;
    }
    st_vec_free(&list);
    return r;
}

bool st_nvml_in_use(st_nvml *n, int gpu)
{
    uint32_t count = 0;
    int r = NV(&n->lib, processes, n->gpu[gpu].dev, &count, NULL);
    return (r == NVML_OK || r == NVML_TOO_SMALL) && count > 0;
}

int st_nvml_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_gpu *own = &n->gpu[gpu];
    sample_vec busy = {0};
    size_t total = 0;
    int r = NVML_FUNCTION_MISSING;

    read_process_samples(n, own, &busy);
    if (n->lib.processes)
        r = add_processes(own, n->lib.processes, false, &busy, buf, room, &total);
    if (n->lib.mps_processes)
        add_processes(own, n->lib.mps_processes, true, &busy, buf, room, &total);
    st_vec_free(&busy);
    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, gpu, "listing its processes", r, err);
    *ret_n = total;
    return 0;
}
