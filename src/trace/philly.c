/*
 * The trace of Philly: jobs with timestamp (UTC), duration in seconds, num_gpus and the virtual
 * cluster; and how many nodes of eight GPUs each cluster has. A cluster becomes an account.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/quote.h"
#include "trace/read.h"

#define NODE_GPUS    8
#define NODE_CPU_M   64000
#define NODE_RAM_MIB (512 * 1024)
#define NODES_MAX    10000

typedef struct reader {
    st_trace *trace;
    st_map *clusters; /* name -> account */
    const st_philly_take *take;
} reader;

static void reader_done(reader *r)
{
    st_map_free(r->clusters);
}

static int read_cluster(reader *rd, const st_csv *csv, int name_column, int nodes_column,
                        st_err *err)
{
    const char *name = st_csv_text(csv, name_column);
    st_account_spec *account;
    char q[ST_QUOTE_MAX], prefix[64];
    int64_t nodes;
    int r = st_csv_i64(csv, nodes_column, 1, NODES_MAX, &nodes, err);

    if (r < 0)
        return r;
    if (!st_name_ok(name))
        return st_csv_fail(csv, err, ST_EPARSE, "%s cannot be the name of an account",
                           st_quote(q, name));
    if (st_map_get(rd->clusters, name, NULL))
        return st_csv_fail(csv, err, ST_EPARSE, "the cluster %s stands twice", st_quote(q, name));
    nodes = (nodes + rd->take->divide - 1) / rd->take->divide;
    st_map_put(rd->clusters, name, (int64_t)rd->trace->accounts.n);
    account = st_trace_add_account(rd->trace, name);
    st_vec_push(&rd->trace->own_m, nodes * NODE_GPUS * ST_WHOLE_M);
    if (rd->take->floors)
        account->guarantee.gpu_m = nodes * NODE_GPUS * ST_WHOLE_M;
    snprintf(prefix, sizeof(prefix), "%.30s-", name);
    for (int64_t n = 0; n < nodes; n++)
        st_trace_add_node(
            rd->trace, prefix,
            &(st_node_spec){.ndevs = NODE_GPUS, .cpu_m = NODE_CPU_M, .ram_mib = NODE_RAM_MIB});
    return 0;
}

static int read_clusters(reader *rd, st_csv *csv, st_err *err)
{
    int name, nodes, r;

    r = st_csv_need(csv, "vc", &name, err);
    if (r == 0)
        r = st_csv_need(csv, "node num", &nodes, err);
    if (r < 0)
        return r;
    while ((r = st_csv_next(csv, err)) > 0) {
        r = read_cluster(rd, csv, name, nodes, err);
        if (r < 0)
            return r;
    }
    if (r == 0 && rd->trace->accounts.n == 0)
        return st_csv_fail(csv, err, ST_EINVAL, "there are no clusters");
    return r;
}

static int read_job(reader *rd, const st_csv *csv, const int column[4], size_t row, st_err *err)
{
    st_trace *trace = rd->trace;
    st_trace_job job = {.limit_ms = ST_TIME_NEVER, .yield = ST_YIELD_CHECKPOINT};
    const char *cluster = st_csv_text(csv, column[3]);
    char q[ST_QUOTE_MAX], name[32];
    int64_t came_s, gpus, account;
    st_err why = {0};
    int r;

    if (st_parse_moment(st_csv_text(csv, column[0]), &came_s, &why) < 0)
        return st_csv_fail(csv, err, why.code, "timestamp: %s", why.msg);
    r = st_csv_seconds_ms(csv, column[1], "duration", &job.run_ms, err);
    if (r == 0)
        r = st_csv_i64(csv, column[2], 1, (int64_t)NODE_GPUS * ST_TASKS_MAX, &gpus, err);
    if (r < 0)
        return r;
    if (came_s < rd->take->from_s || came_s >= rd->take->to_s)
        return 0;
    if (!st_map_get(rd->clusters, cluster, &account)) {
        st_trace_drop(trace, "the cluster %s has no nodes", st_quote(q, cluster));
        return 0;
    }
    if (gpus > (int64_t)trace->nodes.n * NODE_GPUS) {
        st_trace_drop(trace, "%" PRId64 " GPUs are more than there are", gpus);
        return 0;
    }
    snprintf(name, sizeof(name), "job-%zu", row);
    job.name = st_arena_strdup(trace->arena, name);
    job.account = (int32_t)account;
    job.user = trace->accounts.v[account].name;
    job.run_ms = ST_MAX(job.run_ms, 1);
    job.submit_ms = came_s * 1000;
    st_trace_split(&job, gpus, NODE_GPUS);
    return st_trace_add_job(trace, csv, &job, err);
}

static int read_jobs(reader *rd, st_csv *csv, st_err *err)
{
    static const char *const headings[] = {"timestamp", "duration", "num_gpus", "cluster"};
    int column[ST_ARRAY_LEN(headings)], r = 0;

    for (size_t i = 0; r == 0 && i < ST_ARRAY_LEN(headings); i++)
        r = st_csv_need(csv, headings[i], &column[i], err);
    if (r < 0)
        return r;
    for (size_t row = 1; (r = st_csv_next(csv, err)) > 0; row++) {
        r = read_job(rd, csv, column, row, err);
        if (r < 0)
            return r;
    }
    return r;
}

int st_trace_read_philly(st_csv *jobs, st_csv *clusters, const st_philly_take *take, st_trace **ret,
                         st_err *err)
{
    ST_CLEANUP(st_trace_freep) st_trace *trace = st_trace_new("philly");
    ST_CLEANUP(reader_done) reader rd = {.trace = trace, .clusters = st_map_new(), .take = take};
    int r;

    ST_ASSERT(take->divide >= 1);
    st_vec_push(&trace->types, (st_trace_type){"p40", 24 * 1024, ST_BOARD_NONE});
    r = read_clusters(&rd, clusters, err);
    if (r == 0)
        r = read_jobs(&rd, jobs, err);
    if (r < 0)
        return r;
    st_trace_sort(trace);
    /* Time 0 is where the jobs were asked from, or the first of them. */
    trace->epoch_s = trace->jobs.n > 0 ? trace->jobs.v[0].submit_ms / 1000 : 0;
    if (take->from_s > 0)
        trace->epoch_s = take->from_s;
    for (size_t i = 0; i < trace->jobs.n; i++)
        trace->jobs.v[i].submit_ms -= trace->epoch_s * 1000;
    *ret = ST_TAKE(trace);
    return 0;
}
