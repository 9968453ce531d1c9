/*
 * The report of report/report.h.
 */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define GPU_HOUR (1000.0 * 3600 * 1000) /* in milli-GPU x ms */

/* ---- JSON ---------------------------------------------------------------------------------------- */

/* Six decimals are more than any figure is worth. */
static json_t *real(double x)
{
    return isfinite(x) ? json_real(round(x * 1e6) / 1e6) : json_null();
}

static json_t *count(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *seconds(int64_t ms)
{
    return ms == ST_UNSET ? json_null() : real((double)ms / 1000);
}

static json_t *spread_json(const st_spread *s)
{
    json_t *o = json_object();

    json_object_set_new(o, "jobs", count(s->n));
    json_object_set_new(o, "mean", real(s->mean / 1000));
    json_object_set_new(o, "p50", seconds(s->p50));
    json_object_set_new(o, "p90", seconds(s->p90));
    json_object_set_new(o, "p99", seconds(s->p99));
    json_object_set_new(o, "max", seconds(s->max));
    return o;
}

static json_t *trace_json(const st_trace *trace)
{
    json_t *o = json_object();
    int64_t gpus = 0;

    for (size_t i = 0; i < trace->nodes.n; i++)
        gpus += trace->nodes.v[i].ndevs;
    json_object_set_new(o, "name", json_string(trace->name));
    json_object_set_new(o, "nodes", count(trace->nodes.n));
    json_object_set_new(o, "gpus", json_integer(gpus));
    json_object_set_new(o, "accounts", count(trace->accounts.n));
    json_object_set_new(o, "jobs", count(trace->jobs.n));
    json_object_set_new(o, "dropped", count(trace->dropped));
    if (trace->dropped > 0)
        json_object_set_new(o, "dropped_why", json_string(trace->dropped_why));
    return o;
}

static json_t *jobs_json(const st_trace_run *run, const st_run_stats *s)
{
    json_t *o = json_object();

    json_object_set_new(o, "done", count(s->done));
    json_object_set_new(o, "timeout", count(s->timeout));
    json_object_set_new(o, "cancelled", count(s->cancelled));
    json_object_set_new(o, "unfinished", count(s->unfinished));
    json_object_set_new(o, "refused", count(s->refused));
    if (run->refused > 0)
        json_object_set_new(o, "refused_why", json_string(run->refused_why));
    return o;
}

static json_t *accounts_json(const st_trace_run *run)
{
    json_t *list = json_array();

    for (size_t i = 0; i < run->accounts.n; i++) {
        const st_run_account *a = &run->accounts.v[i];
        json_t *o = json_object();

        json_object_set_new(o, "name", json_string(run->trace->accounts.v[i].name));
        json_object_set_new(o, "jobs", count(a->jobs));
        json_object_set_new(o, "held_gpu_hours", real((double)a->held / GPU_HOUR));
        json_object_set_new(o, "entitled_gpu_hours", real((double)a->entitled / GPU_HOUR));
        json_object_set_new(o, "held_of_entitled", real(st_run_ratio(run, (int32_t)i)));
        json_object_set_new(o, "lost_gpu_hours", real((double)a->lost / GPU_HOUR));
        json_object_set_new(o, "preemptions", count(a->preemptions));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *refs_json(const st_trace_run *run, const st_private *refs)
{
    json_t *list = json_array();

    for (int k = 0; k < ST_PRIVATE_COUNT; k++) {
        st_private_diff diff;
        json_t *o = json_object();

        st_private_compare(run, &refs[k], &diff);
        json_object_set_new(o, "name", json_string(st_private_name((st_private_kind)k)));
        json_object_set_new(o, "misfits", count(refs[k].misfits));
        json_object_set_new(o, "queueing_s", spread_json(&refs[k].queueing));
        json_object_set_new(o, "completion_s", spread_json(&refs[k].completion));
        json_object_set_new(o, "allocation", real(refs[k].allocation));
        json_object_set_new(o, "allocation_arriving", real(refs[k].allocation_arriving));
        json_object_set_new(o, "compared", count(diff.compared));
        json_object_set_new(o, "later", count(diff.later));
        json_object_set_new(o, "worst_s", seconds(diff.worst_ms));
        if (diff.later > 0)
            json_object_set_new(o, "worst_job", json_string(run->trace->jobs.v[diff.worst].name));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *idle_json(const st_run_stats *s)
{
    json_t *o = json_object();

    json_object_set_new(o, "all", real(s->idle_all));
    for (int c = 0; c < ST_IDLE_COUNT; c++)
        json_object_set_new(o, st_idle_name((st_idle)c), real(s->idle[c]));
    return o;
}

static json_t *told_json(const st_trace_run *run)
{
    json_t *o = json_object();
    st_told_stats s;

    st_run_told_stats(run, &s);
    json_object_set_new(o, "told", count(s.told));
    json_object_set_new(o, "early", count(s.early));
    json_object_set_new(o, "with_interval", count(s.with_interval));
    json_object_set_new(o, "before_it", count(s.below));
    json_object_set_new(o, "after_it", count(s.above));
    json_object_set_new(o, "error_p50_s", seconds(s.error_ms));
    json_object_set_new(o, "error_p90_s", seconds(s.error_p90_ms));
    json_object_set_new(o, "error_of_wait_p50", real(s.part));
    return o;
}

static json_t *plans_json(const st_trace_plans *p)
{
    json_t *o = json_object();

    json_object_set_new(o, "jobs", count(p->planned));
    json_object_set_new(o, "made", count(p->made));
    json_object_set_new(o, "refused", count(p->refused));
    json_object_set_new(o, "on_time", count(p->on_time));
    json_object_set_new(o, "completion_mean_s", real(p->planned_s));
    json_object_set_new(o, "rest_completion_mean_s", real(p->rest_s));
    json_object_set_new(o, "fenced_gpu_hours", real(p->fenced_gpu_hours));
    return o;
}

json_t *st_run_json(const st_trace_run *run, const st_run_stats *s, const st_private *refs)
{
    json_t *o = json_object();
    char hash[32];

    snprintf(hash, sizeof(hash), "%016" PRIx64, run->hash);
    json_object_set_new(o, "trace", trace_json(run->trace));
    json_object_set_new(o, "jobs", jobs_json(run, s));
    json_object_set_new(o, "end_s", seconds(run->end_ms));
    json_object_set_new(o, "last_submit_s", seconds(run->last_submit_ms));
    json_object_set_new(o, "queueing_s", spread_json(&s->queueing));
    json_object_set_new(o, "completion_s", spread_json(&s->completion));
    if (run->plans.planned > 0)
        json_object_set_new(o, "planned", plans_json(&run->plans));
    json_object_set_new(o, "allocation", real(s->allocation));
    json_object_set_new(o, "allocation_arriving", real(s->allocation_arriving));
    json_object_set_new(o, "utilisation", real(s->utilisation));
    json_object_set_new(o, "allocated_gpu_hours", real(s->allocated_gpu_hours));
    json_object_set_new(o, "stranded", real(s->stranded));
    json_object_set_new(o, "idle_beside_queue", idle_json(s));
    json_object_set_new(o, "preemptions", count(s->preemptions));
    json_object_set_new(o, "preempted_jobs", count(s->preempted_jobs));
    json_object_set_new(o, "lost_gpu_hours", real(s->lost_gpu_hours));
    json_object_set_new(o, "jain", real(s->jain));
    json_object_set_new(o, "worst_account",
                        s->worst < 0 ? json_null()
                                     : json_string(run->trace->accounts.v[s->worst].name));
    json_object_set_new(o, "worst_held_of_entitled",
                        s->worst < 0 ? json_null() : real(s->worst_ratio));
    json_object_set_new(o, "accounts", accounts_json(run));
    if (refs)
        json_object_set_new(o, "references", refs_json(run, refs));
    if (run->told.n > 0)
        json_object_set_new(o, "estimates", told_json(run));
    json_object_set_new(o, "decisions", count(run->decisions));
    json_object_set_new(o, "core_seconds", real(run->seconds));
    json_object_set_new(o, "decisions_per_s", real(s->decisions_per_s));
    json_object_set_new(o, "slowest_hour",
                        run->slowest_hour < 0 ? json_null() : json_integer(run->slowest_hour));
    json_object_set_new(o, "slowest_hour_decisions_per_s", real(run->slowest_per_s));
    json_object_set_new(o, "peak_memory_kib", count(run->peak_kib));
    json_object_set_new(o, "hash", json_string(hash));
    return o;
}

/* ---- CSV ----------------------------------------------------------------------------------------- */

/* A text as a field, in quotes where it needs them. */
static void add_text(st_strbuf *out, const char *s)
{
    if (!strpbrk(s, ",\"\r\n")) {
        st_strbuf_add(out, s);
        return;
    }
    st_strbuf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            st_strbuf_addc(out, '"');
        st_strbuf_addc(out, *s);
    }
    st_strbuf_addc(out, '"');
}

/* ",12.5"; nothing where there is no such moment. Milliseconds as seconds, or milli-GPU as GPU. */
static void add_milli(st_strbuf *out, int64_t milli)
{
    char buf[ST_FMT_MAX];

    st_strbuf_addc(out, ',');
    if (milli != ST_UNSET && milli != ST_TIME_NEVER)
        st_strbuf_add(out, st_fmt_milli(buf, milli));
}

void st_run_csv_jobs(const st_trace_run *run, const st_private *refs, st_strbuf *out)
{
    const st_trace *trace = run->trace;

    st_strbuf_add(out, "name,account,gpus,submit,run,limit,start,end,state,preemptions,held,lost");
    for (int k = 0; refs && k < ST_PRIVATE_COUNT; k++)
        st_strbuf_addf(out, ",%s", st_private_name((st_private_kind)k));
    st_strbuf_addc(out, '\n');
    for (size_t i = 0; i < run->jobs.n; i++) {
        const st_trace_job *job = &trace->jobs.v[i];
        const st_run_job *got = &run->jobs.v[i];

        add_text(out, job->name);
        st_strbuf_addc(out, ',');
        add_text(out, trace->accounts.v[job->account].name);
        add_milli(out, st_trace_job_gpu_m(job));
        add_milli(out, job->submit_ms);
        add_milli(out, job->run_ms);
        add_milli(out, job->limit_ms);
        add_milli(out, got->start_ms);
        add_milli(out, got->end_ms);
        st_strbuf_addf(out, ",%s,%" PRId32,
                       got->refused ? "refused" : st_job_state_name(got->state), got->preemptions);
        add_milli(out, got->held_ms);
        add_milli(out, got->lost_ms);
        for (int k = 0; refs && k < ST_PRIVATE_COUNT; k++)
            add_milli(out, refs[k].end_ms.v[i]);
        st_strbuf_addc(out, '\n');
    }
}

void st_run_csv_samples(const st_trace_run *run, st_strbuf *out)
{
    size_t n = run->accounts.n;

    st_strbuf_add(out, "at,capacity,allocated,stranded,waiting,waiting_gpus,running");
    for (int c = 0; c < ST_IDLE_COUNT; c++)
        st_strbuf_addf(out, ",idle %s", st_idle_name((st_idle)c));
    for (size_t a = 0; a < n; a++)
        for (int entitled = 0; entitled < 2; entitled++) {
            ST_CLEANUP(st_strbuf_done) st_strbuf heading = {0};

            st_strbuf_addf(&heading, "%s %s", entitled ? "entitled" : "held",
                           run->trace->accounts.v[a].name);
            st_strbuf_addc(out, ',');
            add_text(out, st_strbuf_str(&heading));
        }
    for (size_t i = 0; i < run->samples.n; i++) {
        const st_run_sample *s = &run->samples.v[i];
        char buf[ST_FMT_MAX];

        st_strbuf_addf(out, "\n%s", st_fmt_milli(buf, s->at_ms));
        add_milli(out, s->capacity_m);
        add_milli(out, s->allocated_m);
        add_milli(out, s->stranded_m);
        st_strbuf_addf(out, ",%" PRId64, s->waiting);
        add_milli(out, s->waiting_m);
        st_strbuf_addf(out, ",%" PRId64, s->running);
        for (int c = 0; c < ST_IDLE_COUNT; c++)
            add_milli(out, s->idle_m[c]);
        for (size_t a = 0; a < n; a++) {
            add_milli(out, run->held_m.v[i * n + a]);
            add_milli(out, run->entitled_m.v[i * n + a]);
        }
    }
    st_strbuf_addc(out, '\n');
}
