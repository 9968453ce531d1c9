/*
 * Samples as Prometheus text (version 0.0.4) under the names of gpu/metrics.h, with the labels
 * dcgm-exporter writes and, where a grant holds the device, who holds it.
 */
#ifndef ST_GPU_EXPORT_H
#define ST_GPU_EXPORT_H

#include "base/strbuf.h"
#include "gpu/gpu.h"

/* One device: a GPU, or an instance of it. A label that is NULL or "" is left out. */
typedef struct st_gpu_export_row {
    const st_gpu_info *gpu;
    const st_gpu_instance *instance; /* NULL: the whole GPU */
    const char *host;
    const char *tenant, *job, *grant;
    const st_gpu_sample *sample;
} st_gpu_export_row;

/* Appends every metric that at least one row has. */
void st_gpu_export(const st_gpu_export_row *rows, size_t n, st_strbuf *out);

/* Appends a metric's value as a decimal in its unit. */
void st_gpu_export_value(st_gpu_metric m, int64_t value, st_strbuf *out);

#endif
