/*
 * A submit in a scenario: one job, or a stream of equal ones.
 */
#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "scenario/read.h"
#include "spec/flow.h"

#define CHECKPOINT_DEFAULT_MS 10000

typedef struct job_fields {
    st_job_fields asks;
    const char *job;
    int count;
    int64_t every_ms, run_ms, checkpoint_ms, stop_ms;
    const st_doc_node *needs, *booking;
    int64_t begin_ms, end_by_ms, by_ms;
    bool hard, array;
    const char *slot;
    st_flow_fields flow;
    const st_doc_node *node_labels, *exclude_nodes;
} job_fields;

static const st_field job_rows[] = {
    {.key = "job", .kind = ST_F_NAME, .offset = offsetof(job_fields, job)},
    {.key = "count",
     .kind = ST_F_INT,
     .offset = offsetof(job_fields, count),
     .lo = 1,
     .hi = ST_SCN_JOBS_MAX},
    {.key = "every", .kind = ST_F_DURATION, .offset = offsetof(job_fields, every_ms)},
    {.key = "run", .kind = ST_F_DURATION, .offset = offsetof(job_fields, run_ms)},
    {.key = "checkpoint_time",
     .kind = ST_F_DURATION,
     .offset = offsetof(job_fields, checkpoint_ms)},
    {.key = "stop_time", .kind = ST_F_DURATION, .offset = offsetof(job_fields, stop_ms)},
    {.key = "needs", .kind = ST_F_NODE, .offset = offsetof(job_fields, needs)},
    {.key = "booking", .kind = ST_F_NODE, .offset = offsetof(job_fields, booking)},
    {.key = "slot", .kind = ST_F_TEXT, .offset = offsetof(job_fields, slot)},
    {.key = "begin", .kind = ST_F_DURATION, .offset = offsetof(job_fields, begin_ms)},
    {.key = "end_by", .kind = ST_F_DURATION, .offset = offsetof(job_fields, end_by_ms)},
    {.key = "by", .kind = ST_F_DURATION, .offset = offsetof(job_fields, by_ms)},
    {.key = "hard", .kind = ST_F_BOOL, .offset = offsetof(job_fields, hard)},
    {.key = "array", .kind = ST_F_BOOL, .offset = offsetof(job_fields, array)},
    ST_FLOW_ROWS(job_fields, flow),
    {.key = "node_labels", .kind = ST_F_NODE, .offset = offsetof(job_fields, node_labels)},
    {.key = "exclude_nodes", .kind = ST_F_NODE, .offset = offsetof(job_fields, exclude_nodes)},
    ST_JOB_ROWS(job_fields, asks),
    {0},
};

/* Where no type has the profile the job is refused as it is submitted, like anything else that can
 * never run. */
static void refuse_profile(st_scenario *s, const char *profile, st_scn_job *job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf why = {0};
    char q[ST_QUOTE_MAX];

    st_strbuf_addf(&why, "job %s: none of the GPU types it may use has a MIG profile %s",
                   job->spec.name, st_quote(q, profile));
    job->impossible = st_arena_strdup(s->arena, st_strbuf_str(&why));
}

static int read_names(st_scenario *s, const st_doc_node *map, bool refuse, const job_fields *f,
                      st_scn_job *job, st_err *err)
{
    const st_doc_node *account;
    int r = st_doc_need(s->doc, map, "account", &account, err);

    if (r < 0)
        return r;
    r = st_scn_find_account(s, account, &job->spec.account, err);

    /* A refusal may be about the account itself. */
    if (r < 0 && !refuse)
        return r;
    job->spec.account = f->asks.account;
    job->spec.user = f->asks.user ? f->asks.user : f->asks.account;
    job->spec.name = f->job ? f->job : "refused";
    if (!f->job && !refuse)
        return st_doc_fail(s->doc, map, err, ST_EINVAL, "key \"job\" is missing");
    return f->job ? st_scn_check_pattern(s, st_doc_get(map, "job"), f->job, err) : 0;
}

/* What it waits for: jobs of before, or all of an array by the name of its first one. */
static int read_afters(st_scenario *s, const st_doc_node *list, st_job_spec *spec, st_err *err)
{
    st_await *afters = st_arena_alloc(s->arena, ST_AFTER_MAX * sizeof *afters);
    int n = 0;

    for (const st_doc_node *at = NULL; list && (at = st_field_each(list, at));) {
        st_after_doc a;
        int64_t job = 0;
        int r = st_spec_after(s->doc, at, &a, err);

        if (r == 0)
            r = st_scn_find_job(s, a.job, &job, err);
        if (r < 0)
            return r;
        const st_job_spec *named = &s->jobs.v[job].spec;
        afters[n++] = (st_await){
            .id = named->id, .how = a.how, .array = named->array == named->id && !a.only};
    }
    spec->afters = n > 0 ? afters : NULL;
    spec->nafters = n;
    return 0;
}

int st_scn_read_job(st_scenario *s, const st_doc_node *map, bool refuse, st_scn_job *ret,
                    int *ret_count, int64_t *ret_every_ms, st_err *err)
{
    const st_spec_names names = st_scn_spec_names(s);
    job_fields f = {
        .asks = ST_JOB_FIELDS_INIT,
        .count = 1,
        .every_ms = ST_UNSET,
        .run_ms = ST_TIME_NEVER,
        .checkpoint_ms = CHECKPOINT_DEFAULT_MS,
        .stop_ms = ST_TIME_NEVER,
    };
    ST_CLEANUP(st_strbuf_done) st_strbuf pick = {0};
    bool none = false;
    st_scn_job job = {.line = map->line, .spec.pool = -1};
    int r = st_fields_read(s->doc, map, job_rows, &f, err);

    if (r == 0)
        r = read_names(s, map, refuse, &f, &job, err);
    if (r == 0)
        r = st_spec_job(s->doc, map, &f.asks, &names, &job.spec, &none, err);
    if (r == 0)
        r = st_spec_allow(s->doc, f.needs, &job.spec.shape.needs, err);
    if (r == 0)
        r = st_spec_pick(s->doc, f.node_labels, f.exclude_nodes, &pick, err);
    if (r == 0 && pick.n > 0)
        job.spec.nodes = st_arena_strdup(s->arena, st_strbuf_str(&pick));
    if (r == 0 && none)
        refuse_profile(s, f.asks.profile, &job);
    if (r == 0 && f.every_ms != ST_UNSET && f.count == 1)
        r = st_doc_fail(s->doc, map, err, ST_EINVAL, "every needs a count above 1");
    if (r == 0 && f.booking) {
        int64_t id = 0;

        r = st_scn_find_booking(s, f.booking, &id, err);
        job.spec.booking = (uint64_t)id;
    }
    if (r == 0)
        r = st_spec_flow(s->doc, map, &f.flow, &job.spec, err);
    if (r == 0)
        r = read_afters(s, f.flow.after, &job.spec, err);
    if (r < 0)
        return r;
    job.array = f.array || f.flow.throttle > 0;
    job.spec.slot = f.slot;
    job.spec.begin_ms = f.begin_ms;
    job.spec.end_by_ms = f.end_by_ms;
    job.spec.by_ms = f.by_ms;
    job.spec.hard = f.hard;
    job.run_ms = f.run_ms;
    job.checkpoint_ms = f.checkpoint_ms;
    job.stop_ms = f.stop_ms;
    *ret = job;
    *ret_count = f.count;
    *ret_every_ms = f.every_ms;
    return 0;
}
