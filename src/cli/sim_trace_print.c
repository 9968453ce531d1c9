/*
 * The tables of `stint sim trace`.
 */
#include <inttypes.h>
#include <math.h>

#include "base/num.h"
#include "cli/sim_trace.h"
#include "cli/table.h"

#define GPU_HOUR       (1000.0 * 3600 * 1000) /* in milli-GPU x ms */
#define ACCOUNTS_SHOWN 40

static void print_what(FILE *out, const st_trace_run *run, const st_run_stats *s)
{
    const st_trace *trace = run->trace;
    int64_t gpus = 0;

    for (size_t i = 0; i < trace->nodes.n; i++)
        gpus += trace->nodes.v[i].ndevs;
    fprintf(out, "%s: %zu jobs of %zu accounts on %zu nodes with %" PRId64 " GPUs\n", trace->name,
            trace->jobs.n, trace->accounts.n, trace->nodes.n, gpus);
    if (trace->dropped > 0)
        fprintf(out, "%" PRIu64 " rows make no job; the first because %s\n", trace->dropped,
                trace->dropped_why);
    if (run->refused > 0)
        fprintf(out, "%" PRIu64 " jobs were refused; the first: %s\n", run->refused,
                run->refused_why);
    fprintf(out,
            "%" PRIu64 " done, %" PRIu64 " timed out, %" PRIu64 " cancelled, %" PRIu64
            " not finished, in %.1f days\n\n",
            s->done, s->timeout, s->cancelled, s->unfinished, (double)run->end_ms / 86400e3);
}

static void spread_row(st_table *t, const char *name, const st_spread *s)
{
    st_table_cell(t, "%s", name);
    st_table_cell(t, "%.0f", s->mean / 1000);
    st_table_cell(t, "%.0f", (double)s->p50 / 1000);
    st_table_cell(t, "%.0f", (double)s->p90 / 1000);
    st_table_cell(t, "%.0f", (double)s->p99 / 1000);
    st_table_cell(t, "%.0f", (double)s->max / 1000);
}

static void print_times(FILE *out, const st_run_stats *s)
{
    ST_CLEANUP(st_table_done) st_table t = {0};

    st_table_column(&t, "SECONDS", false);
    st_table_column(&t, "MEAN", true);
    st_table_column(&t, "P50", true);
    st_table_column(&t, "P90", true);
    st_table_column(&t, "P99", true);
    st_table_column(&t, "MAX", true);
    spread_row(&t, "waiting", &s->queueing);
    spread_row(&t, "completion", &s->completion);
    st_table_print(&t, out);
}

static void print_plans(FILE *out, const st_trace_plans *p)
{
    fprintf(out,
            "planned        %" PRIu64 " jobs, %" PRIu64 " kept a place ahead, %" PRIu64
            " could not, %" PRIu64 " started on time; mean completion %.0f s, of the rest %.0f s\n",
            p->planned, p->made, p->refused, p->on_time, p->planned_s, p->rest_s);
    if (p->refused > 0)
        fprintf(out, "               the first that could not: %s\n", p->why);
    if (p->fenced_gpu_hours > 0)
        fprintf(out, "               %.0f GPU-hours stood idle until they came\n",
                p->fenced_gpu_hours);
}

static void print_told(FILE *out, const st_trace_run *run)
{
    st_told_stats s;
    char off[ST_FMT_MAX], p90[ST_FMT_MAX];

    st_run_told_stats(run, &s);
    fprintf(out,
            "estimates      %" PRIu64
            " starts, %.1f %% later than said, off by %s in the median (%.2f of the "
            "wait), %s at p90\n",
            s.told, 100.0 * (double)s.early / (double)ST_MAX(s.told, 1),
            st_fmt_duration(off, s.error_ms), s.part, st_fmt_duration(p90, s.error_p90_ms));
    fprintf(out,
            "               %" PRIu64
            " with an interval: %.1f %% in it, %.1f %% before, %.1f %% after\n",
            s.with_interval,
            100.0 * (double)(s.with_interval - s.below - s.above) /
                (double)ST_MAX(s.with_interval, 1),
            100.0 * (double)s.below / (double)ST_MAX(s.with_interval, 1),
            100.0 * (double)s.above / (double)ST_MAX(s.with_interval, 1));
}

static void print_idle(FILE *out, const st_run_stats *s)
{
    fprintf(out, "idle           %.1f %% of the GPUs were free while waiting jobs asked for them",
            100 * s->idle_all);
    for (int c = 0, n = 0; c < ST_IDLE_COUNT; c++)
        if (s->idle[c] >= 0.0005)
            fprintf(out, "%s%s %.1f", n++ > 0 ? ", " : ": ", st_idle_name((st_idle)c),
                    100 * s->idle[c]);
    fputc('\n', out);
}

static void print_figures(FILE *out, const st_trace_run *run, const st_run_stats *s)
{
    fprintf(out,
            "\nallocated      %.1f %% of the GPUs until the last job came, %.1f %% to the end\n",
            100 * s->allocation_arriving, 100 * s->allocation);
    fprintf(out, "utilised       %.1f %% to the end; %.1f of %.1f GPU-hours were lost\n",
            100 * s->utilisation, s->lost_gpu_hours, s->allocated_gpu_hours);
    fprintf(out, "stranded       %.1f %% of the GPUs were free and of no use to a typical job\n",
            100 * s->stranded);
    print_idle(out, s);
    if (run->plans.planned > 0)
        print_plans(out, &run->plans);
    if (run->told.n > 0)
        print_told(out, run);
    fprintf(out, "preemptions    %" PRIu64 ", of %" PRIu64 " jobs\n", s->preemptions,
            s->preempted_jobs);
    fprintf(out, "fairness       %.3f (Jain, of held to entitled)", s->jain);
    if (s->worst >= 0)
        fprintf(out, "; least: %s with %.2f", run->trace->accounts.v[s->worst].name,
                s->worst_ratio);
    fprintf(out,
            "\ndecisions      %" PRIu64 " in %.2f s, %.0f per second; %.0f MiB at most\n"
            "hash           %016" PRIx64 "\n",
            run->decisions, run->seconds, s->decisions_per_s, (double)run->peak_kib / 1024,
            run->hash);
}

static void print_accounts(FILE *out, const st_trace_run *run)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    size_t shown = ST_MIN(run->accounts.n, ACCOUNTS_SHOWN);

    st_table_column(&t, "ACCOUNT", false);
    st_table_column(&t, "JOBS", true);
    st_table_column(&t, "HELD GPUh", true);
    st_table_column(&t, "ENTITLED GPUh", true);
    st_table_column(&t, "RATIO", true);
    st_table_column(&t, "MEAN WAIT s", true);
    st_table_column(&t, "PREEMPTIONS", true);
    st_table_column(&t, "LOST GPUh", true);
    for (size_t i = 0; i < shown; i++) {
        const st_run_account *a = &run->accounts.v[i];
        double ratio = st_run_ratio(run, (int32_t)i);

        st_table_cell(&t, "%s", run->trace->accounts.v[i].name);
        st_table_cell(&t, "%" PRIu64, a->jobs);
        st_table_cell(&t, "%.0f", (double)a->held / GPU_HOUR);
        st_table_cell(&t, "%.0f", (double)a->entitled / GPU_HOUR);
        if (isnan(ratio))
            st_table_cell(&t, "-");
        else
            st_table_cell(&t, "%.2f", ratio);
        st_table_cell(&t, "%.0f",
                      a->jobs > 0 ? (double)a->late_ms_sum / 1000 / (double)a->jobs : 0.0);
        st_table_cell(&t, "%" PRIu64, a->preemptions);
        st_table_cell(&t, "%.1f", (double)a->lost / GPU_HOUR);
    }
    fputc('\n', out);
    st_table_print(&t, out);
    if (shown < run->accounts.n)
        fprintf(out, "... and %zu more (-o json has them all)\n", run->accounts.n - shown);
}

static void print_refs(FILE *out, const st_trace_run *run, const st_run_stats *s,
                       const st_private *refs)
{
    ST_CLEANUP(st_table_done) st_table t = {0};

    st_table_column(&t, "COMPARED WITH", false);
    st_table_column(&t, "COMPLETION s", true);
    st_table_column(&t, "WAITING s", true);
    st_table_column(&t, "ALLOCATED %", true);
    st_table_column(&t, "TOO LARGE", true);
    st_table_column(&t, "LATER HERE", true);
    st_table_column(&t, "%", true);
    st_table_column(&t, "AT WORST min", true);
    for (int k = 0; k < ST_PRIVATE_COUNT; k++) {
        st_private_diff diff;

        st_private_compare(run, &refs[k], &diff);
        st_table_cell(&t, "%s", st_private_name((st_private_kind)k));
        st_table_cell(&t, "%.0f", refs[k].completion.mean / 1000);
        st_table_cell(&t, "%.0f", refs[k].queueing.mean / 1000);
        st_table_cell(&t, "%.1f", 100 * refs[k].allocation_arriving);
        st_table_cell(&t, "%" PRIu64, refs[k].misfits);
        st_table_cell(&t, "%" PRIu64, diff.later);
        st_table_cell(&t, "%.2f",
                      diff.compared > 0 ? 100.0 * (double)diff.later / (double)diff.compared : 0.0);
        st_table_cell(&t, "%.0f", (double)diff.worst_ms / 60000);
    }
    st_table_cell(&t, "this run");
    st_table_cell(&t, "%.0f", s->completion.mean / 1000);
    st_table_cell(&t, "%.0f", s->queueing.mean / 1000);
    st_table_cell(&t, "%.1f", 100 * s->allocation_arriving);
    st_table_cell(&t, "%" PRIu64, s->refused);
    for (int i = 0; i < 3; i++)
        st_table_cell(&t, "-");
    fputc('\n', out);
    st_table_print(&t, out);
}

void st_cli_print_run(FILE *out, const st_trace_run *run, const st_run_stats *stats,
                      const st_private *refs)
{
    print_what(out, run, stats);
    print_times(out, stats);
    print_figures(out, run, stats);
    print_accounts(out, run);
    if (refs)
        print_refs(out, run, stats, refs);
}
