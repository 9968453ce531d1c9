/*
 * The readers of traces, one file per format. Each takes tables that are open (trace/csv.h), so that
 * tests and fuzzers can hand them text, and fails with FILE:LINE: and one sentence. Rows that make
 * no job for a reason of the trace itself (a cluster nobody knows) are counted in `dropped`.
 * doc/reference/traces.md describes the columns.
 */
#ifndef ST_TRACE_READ_H
#define ST_TRACE_READ_H

#include "base/doc.h"
#include "trace/csv.h"
#include "trace/trace.h"

#define ST_TRACE_JOBS_MAX 10000000

/* What is taken of a Philly trace. */
typedef struct st_philly_take {
    int64_t divide;       /* each cluster keeps 1/divide of its nodes, rounded up */
    int64_t from_s, to_s; /* jobs that came from then on, before then; seconds since 1970 */
    bool floors;          /* a cluster's nodes are its guarantee */
} st_philly_take;

/* 400 jobs of 8 nodes; `nodes` may be NULL. */
int st_trace_read_muri(st_csv *jobs, st_csv *nodes, st_trace **ret, st_err *err);
int st_trace_read_philly(st_csv *jobs, st_csv *clusters, const st_philly_take *take, st_trace **ret,
                         st_err *err);
int st_trace_read_openb(st_csv *pods, st_csv *nodes, st_trace **ret, st_err *err);

/* Jobs of one's own, in the fleet and with the accounts of a scenario document. */
int st_trace_read_csv(st_csv *jobs, const st_doc *world, st_policy *ret_policy, st_trace **ret,
                      st_err *err);

/* 2017-10-01 or 2017-10-01 07:01:55, UTC, as seconds since 1970. */
int st_parse_moment(const char *s, int64_t *ret, st_err *err);

/* ---- for the readers themselves ------------------------------------------------------------ */

/* How a job of so many GPUs stands on nodes of `size`: in one task where it fits one node, else
 * in equal tasks as large as possible: of nodes of eight, 16 are two whole ones and 12 twice six. */
void st_trace_split(st_trace_job *job, int64_t gpus, int size);

/* A node with the next number, and an account, whose spec may then be filled further. */
void st_trace_add_node(st_trace *trace, const char *prefix, const st_node_spec *like);
st_account_spec *st_trace_add_account(st_trace *trace, const char *name);

/* Fails when there is no room for another job. */
int st_trace_add_job(st_trace *trace, const st_csv *csv, const st_trace_job *job, st_err *err);

/* A duration in seconds with up to three decimals, in ms. */
int st_csv_seconds_ms(const st_csv *csv, int column, const char *heading, int64_t *ret,
                      st_err *err);

#endif
