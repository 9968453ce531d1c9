/*
 * The nvml driver's events. The set is made at the first wait; each GPU registers for those of our
 * kinds that it supports. A GPU that registers for none (a virtual machine may refuse) does not
 * stop the others.
 */
#include "gpu/nvml.h"

typedef struct event_row {
    uint64_t bit;
    st_gpu_event_kind kind;
} event_row;

static const event_row event_rows[] = {
    {0x0002, ST_GPU_EVENT_ECC},          {0x0008, ST_GPU_EVENT_XID},
    {0x0100, ST_GPU_EVENT_MIG},          {0x0400, ST_GPU_EVENT_REMAP},
    {0x0800, ST_GPU_EVENT_REMAP_FAILED}, {0x1000, ST_GPU_EVENT_POISON},
    {0x2000, ST_GPU_EVENT_POISON},       {0x4000, ST_GPU_EVENT_LOST},
    {0x8000, ST_GPU_EVENT_RECOVERY},
};

static uint64_t our_events(void)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < ST_ARRAY_LEN(event_rows); i++)
        bits |= event_rows[i].bit;
    return bits;
}

static int open_events(st_nvml *n, st_err *err)
{
    nv_events set = NULL;
    uint64_t mask = 0;
    int r = NV(&n->lib, events_new, &set), last = NVML_NOT_SUPPORTED;

    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, 0, "making a set of events", r, err);
    for (int i = 0; i < n->base.n; i++) {
        uint64_t known = 0;
        if ((last = NV(&n->lib, events_known, n->gpu[i].dev, &known)) != NVML_OK)
            continue;
        known &= our_events();
        if (known && (last = NV(&n->lib, events_add, n->gpu[i].dev, known, set)) == NVML_OK)
            mask |= known;
    }
    if (!mask) {
        NV(&n->lib, events_free, set);
        return st_nvml_fail(&n->lib, 0, "registering for events", last, err);
    }
    n->events = set;
    n->events_mask = mask;
    return 0;
}

static int64_t recovery_action(st_nvml *n, nv_dev dev)
{
    nv_field field = {.id = 230};
    if (NV(&n->lib, fields, dev, 1, &field) != NVML_OK || field.result != NVML_OK)
        return 0;
    return field.value.u32;
}

/* 1 when the event is one of ours. */
static int translate(st_nvml *n, const nv_event *e, st_gpu_event *ret)
{
    int gpu = 0;

    while (gpu < n->base.n && n->gpu[gpu].dev != e->device)
        gpu++;
    for (size_t i = 0; gpu < n->base.n && i < ST_ARRAY_LEN(event_rows); i++) {
        if (!(e->type & event_rows[i].bit))
            continue;
        *ret = (st_gpu_event){
            .kind = event_rows[i].kind,
            .gpu = gpu,
            .gi = e->gi == NV_NONE ? ST_GPU_WHOLE : (int)e->gi,
        };
        n->gpu[gpu].slow_stale = true;
        if (ret->kind == ST_GPU_EVENT_XID) {
            ret->value = (int64_t)e->data;
            n->gpu[gpu].xid = ret->value;
        } else if (ret->kind == ST_GPU_EVENT_RECOVERY) {
            ret->value = recovery_action(n, e->device);
        }
        return 1;
    }
    return 0;
}

int st_nvml_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err)
{
    st_nvml *n = st_nvml_of(g);
    nv_event e = {0};
    int r;

    if (!n->events && !n->events_tried) {
        n->events_tried = true;
        if ((r = open_events(n, err)) < 0)
            return r;
    }
    if (!n->events)
        return st_fail(err, ST_EDOWN, "NVML gives no events on this node; poll the samples");
    r = NV(&n->lib, events_wait, n->events, &e, (uint32_t)timeout_ms);
    if (r == NVML_TIMED_OUT)
        return 0;
    if (r == NVML_LOST) {
        /* It does not say which; samples tell. */
        *ret = (st_gpu_event){.kind = ST_GPU_EVENT_LOST, .gpu = ST_GPU_UNKNOWN, .gi = ST_GPU_WHOLE};
        return 1;
    }
    if (r != NVML_OK)
        return st_nvml_fail(&n->lib, 0, "waiting for events", r, err);
    return translate(n, &e, ret);
}
