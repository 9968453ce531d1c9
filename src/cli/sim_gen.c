/*
 * `stint sim gen`: makes a fleet and a workload (gen/gen.h), tells in numbers what it made, and
 * writes both where it is told to.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/table.h"
#include "cli/trace_files.h"
#include "gen/gen.h"

#define HOUR_MS   INT64_C(3600000)
#define TEAMS_MAX 20 /* rows of the table; the rest is summed up */

/* What a set of jobs comes to. */
typedef struct sum {
    int64_t jobs, gpu_m;
    st_i128 work;     /* milli-GPU x ms */
    int64_t declared; /* jobs with a limit, and Σ of limit / run of these in per cent */
    int64_t over_pct;
    int64_t run_ms;
} sum;

static void add(sum *s, const st_trace_job *j)
{
    int64_t gpu_m = st_trace_job_gpu_m(j);

    s->jobs++;
    s->gpu_m += gpu_m;
    s->run_ms += j->run_ms;
    s->work += (st_i128)gpu_m * j->run_ms;
    if (j->limit_ms != ST_TIME_NEVER) {
        s->declared++;
        s->over_pct += j->limit_ms / (j->run_ms / 100 + 1);
    }
}

static void add_sum(sum *s, const sum *other)
{
    s->jobs += other->jobs;
    s->gpu_m += other->gpu_m;
    s->work += other->work;
    s->declared += other->declared;
    s->over_pct += other->over_pct;
    s->run_ms += other->run_ms;
}

static int64_t gpu_hours(const sum *s)
{
    return (int64_t)(s->work / 1000 / HOUR_MS);
}

/* a / b in tenths of a per cent; 0 where there is nothing to compare with. */
static int64_t per_mille(st_i128 a, st_i128 b)
{
    return b > 0 ? (int64_t)((a * 1000 + b / 2) / b) : 0;
}

static void cell_tenths(st_table *t, int64_t tenths)
{
    st_table_cell(t, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
}

/* ---- the tables --------------------------------------------------------------------- */

static void print_kind(st_table *t, const char *name, const sum *s, const sum *all)
{
    int64_t jobs = ST_MAX(s->jobs, 1);

    st_table_cell(t, "%s", name);
    st_table_cell(t, "%" PRId64, s->jobs);
    cell_tenths(t, per_mille(s->jobs, all->jobs));
    cell_tenths(t, s->gpu_m / 100 / jobs);
    st_table_cell(t, "%" PRId64 ":%02" PRId64, s->run_ms / jobs / HOUR_MS,
                  s->run_ms / jobs / 60000 % 60);
    if (s->declared > 0)
        cell_tenths(t, s->over_pct / 10 / s->declared);
    else
        st_table_cell(t, "-");
    st_table_cell(t, "%" PRId64, gpu_hours(s));
    cell_tenths(t, per_mille(s->work, all->work));
}

static void print_kinds(const st_trace *trace, FILE *out, sum *ret_all)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    sum kinds[ST_GEN_KIND_COUNT] = {0}, all = {0};

    for (size_t i = 0; i < trace->jobs.n; i++)
        add(&kinds[st_gen_kind_of(&trace->jobs.v[i])], &trace->jobs.v[i]);
    for (int k = 0; k < ST_GEN_KIND_COUNT; k++)
        add_sum(&all, &kinds[k]);
    st_table_column(&t, "KIND", false);
    st_table_column(&t, "JOBS", true);
    st_table_column(&t, "%", true);
    st_table_column(&t, "GPUS EACH", true);
    st_table_column(&t, "H:MM EACH", true);
    st_table_column(&t, "LIMIT/RUN", true);
    st_table_column(&t, "GPU-HOURS", true);
    st_table_column(&t, "%", true);
    for (int k = 0; k < ST_GEN_KIND_COUNT; k++)
        print_kind(&t, st_gen_kind_name((st_gen_kind)k), &kinds[k], &all);
    print_kind(&t, "all", &all, &all);
    st_table_print(&t, out);
    *ret_all = all;
}

static void print_team(st_table *t, const char *name, const char *org, int64_t guarantee_m,
                       const sum *s, const sum *all, int64_t window_ms)
{
    char gpu[ST_FMT_MAX];

    st_table_cell(t, "%s", name);
    st_table_cell(t, "%s", org);
    st_table_cell(t, "%s", st_fmt_milli(gpu, guarantee_m));
    st_table_cell(t, "%" PRId64, s->jobs);
    st_table_cell(t, "%" PRId64, gpu_hours(s));
    cell_tenths(t, per_mille(s->work, all->work));
    if (guarantee_m > 0)
        cell_tenths(t, per_mille(s->work, (st_i128)guarantee_m * window_ms));
    else
        st_table_cell(t, "-");
}

/* Teams stand in the trace from large to small, behind the organisations. */
static void print_teams(const st_trace *trace, FILE *out, const sum *all, int64_t window_ms)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    ST_CLEANUP(st_freep) sum *teams = st_xcalloc(trace->accounts.n, sizeof(*teams));
    sum rest = {0};
    int64_t rest_m = 0;
    int rows = 0, others = 0;

    for (size_t i = 0; i < trace->jobs.n; i++)
        add(&teams[trace->jobs.v[i].account], &trace->jobs.v[i]);
    st_table_column(&t, "TEAM", false);
    st_table_column(&t, "OF", false);
    st_table_column(&t, "GUARANTEE", true);
    st_table_column(&t, "JOBS", true);
    st_table_column(&t, "GPU-HOURS", true);
    st_table_column(&t, "%", true);
    st_table_column(&t, "% OF GUARANTEE", true);
    for (size_t i = 0; i < trace->accounts.n; i++) {
        const st_account_spec *a = &trace->accounts.v[i];

        if (!a->parent)
            continue;
        if (rows < TEAMS_MAX) {
            print_team(&t, a->name, a->parent, a->guarantee.gpu_m, &teams[i], all, window_ms);
            rows++;
            continue;
        }
        add_sum(&rest, &teams[i]);
        rest_m += a->guarantee.gpu_m;
        others++;
    }
    if (others > 0) {
        char name[32];

        snprintf(name, sizeof(name), "(%d more)", others);
        print_team(&t, name, "", rest_m, &rest, all, window_ms);
    }
    st_table_print(&t, out);
}

static void print_summary(const st_trace *trace, const st_gen_options *o, FILE *out)
{
    int64_t gpus = 0, promised_m = 0, window_ms = o->days * 24 * HOUR_MS, load;
    int64_t by_type[ST_TYPES_MAX] = {0};
    sum all;

    for (size_t i = 0; i < trace->nodes.n; i++) {
        by_type[trace->nodes.v[i].type] += trace->nodes.v[i].ndevs;
        gpus += trace->nodes.v[i].ndevs;
    }
    for (size_t i = 0; i < trace->accounts.n; i++)
        promised_m += trace->accounts.v[i].parent ? trace->accounts.v[i].guarantee.gpu_m : 0;
    fprintf(out, "%" PRId64 " GPUs in %zu nodes:", gpus, trace->nodes.n);
    for (size_t i = 0; i < trace->types.n; i++)
        fprintf(out, "%s %" PRId64 " %s", i > 0 ? "," : "", by_type[i], trace->types.v[i].name);
    fprintf(out, "\n%" PRId64 " teams, promised %" PRId64 " GPUs, %" PRId64 "%% of the fleet\n\n",
            o->teams, promised_m / 1000, promised_m / 10 / gpus);
    print_kinds(trace, out, &all);
    putc('\n', out);
    print_teams(trace, out, &all, window_ms);
    load = per_mille(all.work, (st_i128)gpus * 1000 * window_ms);
    fprintf(out, "\nOffered load: %" PRId64 ".%" PRId64 "%% of the fleet over %" PRId64 " days.\n",
            load / 10, load % 10, o->days);
}

/* ---- the files ---------------------------------------------------------------------- */

int st_cli_sim_gen(st_cli *cli, int argc, char **argv, st_err *err)
{
    st_gen_options o = st_gen_options_default();
    int64_t seed = (int64_t)o.seed;
    const char *dir = NULL;
    const st_cli_opt opts[] = {
        {"gpus", 0, ST_CLI_I64, &o.gpus, 8, ST_GEN_GPUS_MAX},
        {"teams", 0, ST_CLI_I64, &o.teams, 1, ST_GEN_TEAMS_MAX},
        {"users", 0, ST_CLI_I64, &o.users, 1, ST_GEN_USERS_MAX},
        {"jobs", 0, ST_CLI_I64, &o.jobs, 1, ST_GEN_JOBS_MAX},
        {"seed", 0, ST_CLI_I64, &seed, 0, INT64_MAX},
        {"days", 0, ST_CLI_I64, &o.days, 1, ST_GEN_DAYS_MAX},
        {"load", 0, ST_CLI_I64, &o.load_pct, 1, ST_GEN_LOAD_MAX},
        {"dir", 'd', ST_CLI_STRING, &dir, 0, 0},
        {0},
    };
    ST_CLEANUP(st_trace_freep) st_trace *trace = NULL;
    int n, r = st_cli_options(argc, argv, opts, 0, 0, &n, err);

    if (r < 0)
        return r;
    o.seed = (uint64_t)seed;
    r = st_gen_trace(&o, &trace, err);
    if (r < 0)
        return r;
    print_summary(trace, &o, cli->out);
    if (!dir)
        return 0;
    putc('\n', cli->out);
    return st_trace_files_write(dir, trace, st_gen_write_world, cli->out, err);
}
