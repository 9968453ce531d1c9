/* The table of metrics, row by row. */
#include "gpu/metrics.h"

#include "base/macros.h"

typedef struct st_gpu_metric_row {
    const char *name, *type, *help;
    int64_t scale;
} st_gpu_metric_row;

static const st_gpu_metric_row rows[ST_GPU_METRIC_COUNT] = {
#define X(id, name, type, scale, help) [ST_GPU_##id] = {name, type, help, scale},
    ST_GPU_METRIC_TABLE(X)
#undef X
};

const char *st_gpu_metric_name(st_gpu_metric m)
{
    ST_ASSERT(m < ST_GPU_METRIC_COUNT);
    return rows[m].name;
}

const char *st_gpu_metric_type(st_gpu_metric m)
{
    ST_ASSERT(m < ST_GPU_METRIC_COUNT);
    return rows[m].type;
}

const char *st_gpu_metric_help(st_gpu_metric m)
{
    ST_ASSERT(m < ST_GPU_METRIC_COUNT);
    return rows[m].help;
}

int64_t st_gpu_metric_scale(st_gpu_metric m)
{
    ST_ASSERT(m < ST_GPU_METRIC_COUNT);
    return rows[m].scale;
}
