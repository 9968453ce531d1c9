/*
 * The lists of openb, played in time: nodes (cpu_milli, memory_mib, gpu, model) and pods with
 * creation_time, scheduled_time and deletion_time in seconds. A pod needed what it had between the
 * last two; one that never was scheduled tells nothing about that, and is dropped.
 */
#include <inttypes.h>
#include <string.h>

#include "base/quote.h"
#include "trace/read.h"

#define VRAM_MIB    (16 * 1024) /* of a model nobody knows */
#define CPU_MAX_M   (1 << 30)
#define RAM_MAX_MIB (INT64_C(1) << 40)

static const st_trace_type known_types[] = {
    {"P100", 16 * 1024, ST_BOARD_NONE},    {"T4", 16 * 1024, ST_BOARD_NONE},
    {"V100M16", 16 * 1024, ST_BOARD_NONE}, {"V100M32", 32 * 1024, ST_BOARD_NONE},
    {"A10", 24 * 1024, ST_BOARD_NONE},
};

static int find_type(const st_trace *trace, const char *name, size_t len)
{
    for (size_t t = 0; t < trace->types.n; t++)
        if (strlen(trace->types.v[t].name) == len &&
            strncmp(trace->types.v[t].name, name, len) == 0)
            return (int)t;
    return -1;
}

static int add_type(st_trace *trace, const st_csv *csv, const char *name, int *ret, st_err *err)
{
    st_trace_type type = {.vram_mib = VRAM_MIB, .board = ST_BOARD_NONE};
    char q[ST_QUOTE_MAX];

    if (!st_name_ok(name))
        return st_csv_fail(csv, err, ST_EPARSE, "model: %s cannot be the name of a GPU type",
                           st_quote(q, name));
    if (trace->types.n == ST_TYPES_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d models", ST_TYPES_MAX);
    for (size_t i = 0; i < ST_ARRAY_LEN(known_types); i++)
        if (strcmp(known_types[i].name, name) == 0)
            type = known_types[i];
    type.name = st_arena_strdup(trace->arena, name);
    *ret = (int)trace->types.n;
    st_vec_push(&trace->types, type);
    return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------------- */

static int read_node(st_trace *trace, const st_csv *csv, const int column[4], st_err *err)
{
    const char *model = st_csv_text(csv, column[3]);
    st_node_spec node = {.type = -1};
    int64_t gpus;
    int type = -1, r;

    r = st_csv_i64(csv, column[0], 0, CPU_MAX_M, &node.cpu_m, err);
    if (r == 0)
        r = st_csv_i64(csv, column[1], 0, RAM_MAX_MIB, &node.ram_mib, err);
    if (r == 0)
        r = st_csv_i64(csv, column[2], 0, ST_DEVS_MAX, &gpus, err);
    if (r == 0 && gpus > 0)
        type = find_type(trace, model, strlen(model));
    if (r == 0 && gpus > 0 && type < 0)
        r = add_type(trace, csv, model, &type, err);
    if (r < 0)
        return r;
    if (trace->nodes.n == ST_NODES_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d nodes", ST_NODES_MAX);
    node.ndevs = (int)gpus;
    node.type = type;
    st_trace_add_node(trace, "node-", &node);
    return 0;
}

static int read_nodes(st_trace *trace, st_csv *csv, st_err *err)
{
    static const char *const headings[] = {"cpu_milli", "memory_mib", "gpu", "model"};
    int column[ST_ARRAY_LEN(headings)], r = 0;

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(headings); i++)
        r = st_csv_need(csv, headings[i], &column[i], err);
    if (r < 0)
        return r;
    while ((r = st_csv_next(csv, err)) > 0) {
        r = read_node(trace, csv, column, err);
        if (r < 0)
            return r;
    }
    if (r == 0 && trace->types.n == 0)
        return st_csv_fail(csv, err, ST_EINVAL, "the nodes have no GPUs");
    return r;
}

/* ---- pods ------------------------------------------------------------------------------------------ */

/* X(id, heading). The first four are needed in any list, the times to play it. */
#define POD_TABLE(X)               \
    X(CPU, "cpu_milli")            \
    X(RAM, "memory_mib")           \
    X(GPUS, "num_gpu")             \
    X(GPU_M, "gpu_milli")          \
    X(CREATED, "creation_time")    \
    X(SCHEDULED, "scheduled_time") \
    X(DELETED, "deletion_time")
enum {
#define X(id, heading) POD_##id,
    POD_TABLE(X)
#undef X
        POD_COUNT
};
static const char *const pod_headings[] = {
#define X(id, heading) heading,
    POD_TABLE(X)
#undef X
};

typedef struct pods {
    st_trace *trace;
    st_csv *csv;
    int column[POD_COUNT], name, spec;
} pods;

/* Models the fleet does not have do no harm beside one it has. */
static bool read_types(const pods *p, uint32_t *ret)
{
    const char *s = st_csv_text(p->csv, p->spec);
    bool any = *s == '\0';

    *ret = 0;
    while (*s) {
        size_t len = strcspn(s, "|");
        int type = find_type(p->trace, s, len);

        if (type >= 0) {
            *ret |= 1u << type;
            any = true;
        }
        s += len + (s[len] == '|');
    }
    return any;
}

static int read_shape(const pods *p, st_trace_job *job, st_err *err)
{
    int64_t gpus, gpu_m;
    int r = st_csv_i64(p->csv, p->column[POD_CPU], 0, CPU_MAX_M, &job->shape.cpu_m, err);

    if (r == 0)
        r = st_csv_i64(p->csv, p->column[POD_RAM], 0, RAM_MAX_MIB, &job->shape.ram_mib, err);
    if (r == 0)
        r = st_csv_i64(p->csv, p->column[POD_GPUS], 0, ST_DEVS_MAX, &gpus, err);
    if (r == 0)
        r = st_csv_i64(p->csv, p->column[POD_GPU_M], 0, ST_WHOLE_M, &gpu_m, err);
    if (r < 0)
        return r;
    if ((gpus == 0) != (gpu_m == 0))
        return st_csv_fail(p->csv, err, ST_EPARSE,
                           "num_gpu is %" PRId64 ", but gpu_milli is %" PRId64, gpus, gpu_m);
    job->shape.gpus = (int)gpus;
    if (gpus == 1 && gpu_m < ST_WHOLE_M) {
        job->shape.level = ST_LEVEL_MPS;
        job->shape.share_m = gpu_m;
    }
    return 0;
}

static int read_pod(const pods *p, st_err *err)
{
    const char *name = st_csv_text(p->csv, p->name);
    st_trace_job job = {.tasks = 1, .user = "all", .limit_ms = ST_TIME_NEVER};
    int64_t created, scheduled = 0, deleted;
    int r = read_shape(p, &job, err);

    if (r == 0)
        r = st_csv_i64(p->csv, p->column[POD_CREATED], 0, INT64_C(1) << 40, &created, err);
    if (r == 0)
        r = st_csv_i64(p->csv, p->column[POD_DELETED], 0, INT64_C(1) << 40, &deleted, err);
    if (r < 0)
        return r;
    if (!*st_csv_text(p->csv, p->column[POD_SCHEDULED])) {
        st_trace_drop(p->trace, "pod %.100s was never scheduled", name);
        return 0;
    }
    r = st_csv_i64(p->csv, p->column[POD_SCHEDULED], 0, INT64_C(1) << 40, &scheduled, err);
    if (r < 0)
        return r;
    if (deleted <= scheduled || scheduled < created)
        st_trace_drop(p->trace, "pod %.100s was deleted before it ran", name);
    else if (job.shape.gpus == 0 && job.shape.cpu_m == 0)
        st_trace_drop(p->trace, "pod %.100s asks for nothing", name);
    else if (!st_name_ok(name))
        st_trace_drop(p->trace, "a pod has no usable name");
    else if (!read_types(p, &job.shape.types))
        st_trace_drop(p->trace, "pod %.100s wants models the nodes do not have", name);
    else {
        job.name = st_arena_strdup(p->trace->arena, name);
        job.submit_ms = created * 1000;
        job.run_ms = (deleted - scheduled) * 1000;
        job.yield = ST_YIELD_REQUEUE;
        return st_trace_add_job(p->trace, p->csv, &job, err);
    }
    return 0;
}

static int read_pods(st_trace *trace, st_csv *csv, st_err *err)
{
    pods p = {.trace = trace, .csv = csv, .spec = st_csv_find(csv, "gpu_spec")};
    int r = st_csv_need(csv, "name", &p.name, err);

    if (r == 0 && (st_csv_find(csv, "creation_time") < 0 || st_csv_find(csv, "deletion_time") < 0))
        return st_csv_fail(
            csv, err, ST_EINVAL,
            "this list has no times, so it cannot be played; the multigpu lists have "
            "none, the others do (stint sim fragmentation needs no times)");
    for (int i = 0; r == 0 && i < POD_COUNT; i++)
        r = st_csv_need(csv, pod_headings[i], &p.column[i], err);
    if (r < 0)
        return r;
    while ((r = st_csv_next(csv, err)) > 0) {
        r = read_pod(&p, err);
        if (r < 0)
            return r;
    }
    return r;
}

int st_trace_read_openb(st_csv *jobs, st_csv *nodes, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = st_trace_new("openb");
    int r = read_nodes(trace, nodes, err);

    if (r == 0)
        r = read_pods(trace, jobs, err);
    if (r < 0)
        return r;
    st_trace_add_account(trace, "all");
    st_trace_sort(trace);
    *ret = ST_TAKE(trace);
    return 0;
}
