/*
 * What tasks did with their devices: samples of every GPU, once a second, added up per grant.
 *
 * Held time is what the clock says; everything else is counted only over spans that were sampled
 * (`seen_gpu_ms`), so that a gap in which nobody looked is not taken for idleness. What a device does
 * not measure stays unknown: its bit in `has` is not set.
 */
#ifndef ST_AGENT_TELEMETRY_H
#define ST_AGENT_TELEMETRY_H

#include "base/strbuf.h"
#include "gpu/gpu.h"
#include "model/used.h"

typedef struct st_rollup {
    st_used sum;
    int64_t rest[ST_USED_COUNT]; /* below one unit, carried on */
    int64_t at_ms;               /* counted up to here; 0: from its start */
} st_rollup;

#define ST_GAP_MS 5000 /* two samples further apart have a gap between them */

/* Adds one device over the time between two samples of it. `share_m` is the part of it, of 1000,
 * that counts for what is not measured by grant: traffic and energy. */
void st_rollup_add(st_rollup *r, const st_gpu_sample *prev, const st_gpu_sample *now, int share_m);
/* The memory in use on all devices of the grant, at one moment. */
void st_rollup_memory(st_rollup *r, int64_t mib);
void st_used_json(const st_used *used, st_strbuf *out);

#endif
