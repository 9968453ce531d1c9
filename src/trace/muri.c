/*
 * The trace of jobs of Muri: num_gpu, submit_time and duration in ms, job_id for a name; and its
 * description of the cluster, one row of switches x nodes x GPUs.
 */
#include <stdio.h>

#include "base/num.h"
#include "trace/read.h"

#define NODES_MAX 100000

/* The cluster the trace was made for, where none is given. */
#define NODES_DEFAULT 8
#define GPUS_DEFAULT  8
#define CPUS_DEFAULT  92
#define RAM_DEFAULT   350 /* GiB */

static int read_nodes(st_trace *trace, st_csv *csv, st_err *err)
{
    static const char *const headings[] = {"num_switch", "num_node_p_switch", "num_gpu_p_node",
                                           "num_cpu_p_node", "mem_p_node"};
    static const int64_t most[] = {NODES_MAX, NODES_MAX, ST_DEVS_MAX, 100000, 1000000};
    int64_t x[] = {1, NODES_DEFAULT, GPUS_DEFAULT, CPUS_DEFAULT, RAM_DEFAULT};
    int column[ST_ARRAY_LEN(headings)], r = 0;

    for (size_t i = 0; csv && r == 0 && i < ST_ARRAY_LEN(headings); i++)
        r = st_csv_need(csv, headings[i], &column[i], err);
    if (csv && r == 0) {
        r = st_csv_next(csv, err);
        if (r == 0)
            return st_csv_fail(csv, err, ST_EPARSE,
                               "the row that describes the cluster is missing");
    }
    for (size_t i = 0; csv && r >= 0 && i < ST_ARRAY_LEN(headings); i++)
        r = st_csv_i64(csv, column[i], 1, most[i], &x[i], err);
    if (r < 0)
        return r;
    if (x[0] * x[1] > NODES_MAX)
        return st_csv_fail(csv, err, ST_ERANGE, "more than %d nodes", NODES_MAX);
    st_vec_push(&trace->types, (st_trace_type){"v100", 32 * 1024, ST_BOARD_NONE});
    for (int64_t n = 0; n < x[0] * x[1]; n++)
        st_trace_add_node(
            trace, "node",
            &(st_node_spec){.ndevs = (int)x[2], .cpu_m = x[3] * 1000, .ram_mib = x[4] * 1024});
    return 0;
}

static int read_job(st_trace *trace, const st_csv *csv, const int column[3], int name, st_err *err)
{
    int size = trace->nodes.v[0].ndevs, r;
    int64_t gpus, submit_ms, run_ms;
    st_trace_job job = {.user = "all", .limit_ms = ST_TIME_NEVER, .yield = ST_YIELD_CHECKPOINT};
    char text[ST_NAME_MAX];

    r = st_csv_i64(csv, column[0], 1, (int64_t)size * ST_TASKS_MAX, &gpus, err);
    if (r == 0)
        r = st_csv_i64(csv, column[1], 0, ST_DURATION_MAX_MS, &submit_ms, err);
    if (r == 0)
        r = st_csv_i64(csv, column[2], 1, ST_DURATION_MAX_MS, &run_ms, err);
    if (r < 0)
        return r;
    st_trace_split(&job, gpus, size);
    if (name >= 0)
        snprintf(text, sizeof(text), "job-%.100s", st_csv_text(csv, name));
    else
        snprintf(text, sizeof(text), "job-%zu", trace->jobs.n);
    job.name = st_arena_strdup(trace->arena, text);
    job.submit_ms = submit_ms;
    job.run_ms = run_ms;
    return st_trace_add_job(trace, csv, &job, err);
}

int st_trace_read_muri(st_csv *jobs, st_csv *nodes, st_trace **ret, st_err *err)
{
    static const char *const headings[] = {"num_gpu", "submit_time", "duration"};
    ST_CLEANUP(st_trace_freep) st_trace *trace = st_trace_new("muri");
    int column[ST_ARRAY_LEN(headings)], r = read_nodes(trace, nodes, err);

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(headings); i++)
        r = st_csv_need(jobs, headings[i], &column[i], err);
    if (r < 0)
        return r;
    st_trace_add_account(trace, "all");
    while ((r = st_csv_next(jobs, err)) > 0) {
        r = read_job(trace, jobs, column, st_csv_find(jobs, "job_id"), err);
        if (r < 0)
            return r;
    }
    if (r < 0)
        return r;
    st_trace_sort(trace);
    *ret = ST_TAKE(trace);
    return 0;
}
