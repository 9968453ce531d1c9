/*
 * Fuzzes the readers of traces. The first byte says which: 'p' Philly, 'm' Muri, 'o' openb,
 * anything else jobs of one's own; a line "---" parts the first table from the second. Whatever is
 * not refused with one sentence that names the place can be played for a while and adds up.
 */
#include <string.h>

#include "base/doc.h"
#include "fuzz.h"
#include "trace/read.h"

#define PLAYED_MS   (INT64_C(3600) * 1000)
#define NODES_TRIED 2000
#define JOBS_TRIED  200

static const char world[] =
    "fleet: [{count: 3, gpu: h100, gpus: 8, rack: \"r%d\", rack_size: 2}, {gpu: v100, gpus: 4}]\n"
    "accounts: [{name: a, guarantee: {gpu: 8}}, {name: b, parent: a}, {name: c}]\n";

static const st_philly_take take = {.divide = 3, .to_s = INT64_MAX, .floors = true};

static int read_trace(char format, st_csv *jobs, st_csv *nodes, st_trace **ret, st_err *err)
{
    ST_CLEANUP(st_doc_freep) st_doc *doc = NULL;
    st_policy policy;

    if (format == 'p' && nodes)
        return st_trace_read_philly(jobs, nodes, &take, ret, err);
    if (format == 'o' && nodes)
        return st_trace_read_openb(jobs, nodes, ret, err);
    if (format == 'm')
        return st_trace_read_muri(jobs, nodes, ret, err);
    ST_ASSERT(st_doc_parse("world.yaml", world, strlen(world), &doc, err) == 0);
    return st_trace_read_csv(jobs, doc, &policy, ret, err);
}

static void check_sentence(const st_err *err)
{
    ST_ASSERT(err->code > 0);
    ST_ASSERT(strncmp(err->msg, "in.csv:", 7) == 0 || strncmp(err->msg, "nodes.csv:", 10) == 0);
    ST_ASSERT(strchr(err->msg, '\n') == NULL);
}

static void play(const st_trace *trace)
{
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    st_run_options o = {.policy = st_policy_default(), .until_ms = PLAYED_MS};
    st_err err = {0};
    int64_t held = 0;

    if (trace->nodes.n > NODES_TRIED || trace->jobs.n > JOBS_TRIED)
        return;
    if (st_trace_play(trace, &o, &run, &err) < 0) {
        ST_ASSERT(run == NULL && err.code > 0 && err.code != ST_EINTERNAL);
        return;
    }
    for (size_t i = 0; i < run->accounts.n; i++)
        held += run->accounts.v[i].held;
    ST_ASSERT(held == run->allocated);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ST_CLEANUP(st_csv_freep) st_csv *jobs = NULL;
    ST_CLEANUP(st_csv_freep) st_csv *nodes = NULL;
    ST_CLEANUP(st_trace_freep) st_trace *trace = NULL;
    const char *text = (const char *)data + 1, *cut;
    st_err err = {0};

    if (size < 2)
        return 0;
    size--;
    cut = memmem(text, size, "\n---\n", 5);
    if (st_csv_parse("in.csv", text, cut ? (size_t)(cut - text) : size, &jobs, &err) < 0)
        return 0; /* fuzz_csv looks at those */
    if (cut &&
        st_csv_parse("nodes.csv", cut + 5, size - (size_t)(cut + 5 - text), &nodes, &err) < 0)
        return 0;
    if (read_trace((char)data[0], jobs, nodes, &trace, &err) < 0) {
        ST_ASSERT(trace == NULL);
        check_sentence(&err);
        return 0;
    }
    for (size_t i = 1; i < trace->jobs.n; i++)
        ST_ASSERT(trace->jobs.v[i - 1].submit_ms <= trace->jobs.v[i].submit_ms);
    play(trace);
    return 0;
}
