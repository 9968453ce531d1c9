/*
 * `stint sim trace`: reads a trace (trace/read.h), plays it through the scheduler
 * (trace/trace.h) and tells what became of everybody. doc/reference/traces.md describes all of it.
 */
#include "cli/sim_trace.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/quote.h"
#include "cli/policy.h"
#include "cli/progress.h"
#include "report/html.h"
#include "report/report.h"
#include "trace/read.h"

#define MICRO INT64_C(1000000)

/* The options as they were written. */
typedef struct asked {
    st_cli_format output;
    const char *format, *nodes, *jobs, *world;
    const char *policy, *declare, *scale_time, *save_cost, *restore_cost, *quota, *from, *to;
    const char *sample, *until, *tell;
    const char *csv_jobs, *csv_samples, *html;
    const char *bookings, *bookings_as, *lead;
    int64_t divide;
    bool compare;
} asked;

/* ---- values ---------------------------------------------------------------------------------------- */

/* A decimal with up to six decimals, in millionths. */
static int parse_micro(const char *s, int64_t *ret, st_err *err)
{
    size_t whole = strcspn(s, "."), decimals = s[whole] ? strlen(s + whole + 1) : 0;
    char q[ST_QUOTE_MAX], digits[32];
    int64_t x;

    if (whole == 0 || whole > 4 || decimals > 6 || (s[whole] && decimals == 0) ||
        strspn(s, "0123456789.") != strlen(s) || strchr(s + whole + (s[whole] != '\0'), '.'))
        return st_fail(err, ST_EPARSE, "%s is not a factor, as in 1.0533", st_quote(q, s));
    snprintf(digits, sizeof(digits), "%.*s%s%.*s", (int)whole, s, s[whole] ? s + whole + 1 : "",
             (int)(6 - decimals), "000000");
    if (st_parse_i64(digits, 1, INT64_MAX, &x, err) < 0)
        return st_fail(err, ST_ERANGE, "the factor %s is not above 0", st_quote(q, s));
    *ret = x;
    return 0;
}

/* 30s, or 200ms/GiB. */
static int parse_cost(const char *name, const char *s, int64_t *fixed_ms, int64_t *per_gib_ms,
                      st_err *err)
{
    size_t len = s ? strlen(s) : 0, tail = strlen("/GiB");
    bool per_gib = len > tail && strcmp(s + len - tail, "/GiB") == 0;
    ST_CLEANUP(st_freep) char *text = NULL;
    int r;

    if (!s)
        return 0;
    text = st_xstrndup(s, per_gib ? len - tail : len);
    r = st_parse_duration_ms(text, per_gib ? per_gib_ms : fixed_ms, err);
    return r < 0 ? st_fail_prefix(err, "option --%s: ", name) : 0;
}

static int apply_declare(st_trace *trace, const char *s, st_err *err)
{
    int64_t micro = MICRO;
    int r = 0;

    if (!s)
        return 0;
    if (strcmp(s, "none") == 0)
        micro = 0;
    else if (strcmp(s, "exact") != 0)
        r = parse_micro(s, &micro, err);
    if (r < 0)
        return st_fail_prefix(err, "option --declare is exact, none or a factor: ");
    st_trace_declare(trace, micro);
    return 0;
}

/* What is done to the jobs after reading. */
static int shape_jobs(st_trace *trace, const asked *a, st_err *err)
{
    int64_t micro;

    if (a->scale_time) {
        if (parse_micro(a->scale_time, &micro, err) < 0)
            return st_fail_prefix(err, "option --scale-time: ");
        st_trace_scale(trace, micro);
    }
    return apply_declare(trace, a->declare, err);
}

/* The names in a file, one a line. */
static int read_names(const char *path, st_map *ret, st_err *err)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;

    if (!f)
        return st_fail(err, errno == ENOENT ? ST_ENOENT : ST_EIO,
                       "option --bookings is a share such as 20%%, or a file with names of jobs; "
                       "cannot read %s: %s",
                       path, strerror(errno));
    while (getline(&line, &size, f) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line)
            st_map_put(ret, line, 1);
    }
    free(line);
    fclose(f);
    return 0;
}

/* Jobs that were known ahead: a share of the GPU time, or those in a file. */
static int plan_jobs(st_trace *trace, const asked *a, const st_run_options *o, st_err *err)
{
    size_t len = a->bookings ? strlen(a->bookings) : 0;
    char q[ST_QUOTE_MAX], number[16];
    uint64_t n = 0;
    int r = 0;

    if (len == 0)
        return 0;
    if (a->bookings[len - 1] == '%') {
        int64_t percent;

        snprintf(number, sizeof(number), "%.*s", (int)ST_MIN(len - 1, sizeof(number) - 1),
                 a->bookings);
        if (st_parse_i64(number, 1, 100, &percent, err) < 0)
            return st_fail(err, ST_ERANGE, "option --bookings: %s is not a share from 1%% to 100%%",
                           st_quote(q, a->bookings));
        n = st_trace_plan_share(trace, percent * 10, o->lead_ms);
    } else {
        st_map *names = st_map_new();

        r = read_names(a->bookings, names, err);
        if (r == 0)
            n = st_trace_plan_named(trace, names, o->lead_ms);
        st_map_free(names);
    }
    if (r == 0 && n == 0)
        r = st_fail(err, ST_EINVAL,
                    "option --bookings: no job of the trace can be booked: it must ask for whole "
                    "GPUs of one type, have an end, and come after the lead time");
    return r;
}

static int read_planned(const asked *a, st_run_options *o, st_err *err)
{
    static const char *const names[] = {
#define X(id, name, what) [id] = name,
        ST_PLANNED_TABLE(X)
#undef X
    };
    char q[ST_QUOTE_MAX];

    o->lead_ms = INT64_C(86400000);
    if (a->lead && st_parse_duration_ms(a->lead, &o->lead_ms, err) < 0)
        return st_fail_prefix(err, "option --bookings-lead: ");
    for (int i = 0; a->bookings_as && i < ST_PLANNED_COUNT; i++) {
        if (strcmp(a->bookings_as, names[i]) != 0)
            continue;
        o->planned = (st_planned)i;
        return 0;
    }
    if (a->bookings_as)
        return st_fail(err, ST_EINVAL, "option --bookings-as: it is booked, fenced or jobs, not %s",
                       st_quote(q, a->bookings_as));
    return 0;
}

/* ---- formats --------------------------------------------------------------------------------------- */

typedef struct inputs {
    st_csv *jobs, *nodes;
    st_doc *world;
} inputs;

static void inputs_done(inputs *in)
{
    st_csv_free(in->jobs);
    st_csv_free(in->nodes);
    st_doc_free(in->world);
}

static int read_muri(const asked *a, inputs *in, st_policy *policy, st_trace **ret, st_err *err)
{
    (void)a, (void)policy;
    return st_trace_read_muri(in->jobs, in->nodes, ret, err);
}

static int read_philly(const asked *a, inputs *in, st_policy *policy, st_trace **ret, st_err *err)
{
    st_philly_take take = {.divide = a->divide, .to_s = INT64_MAX, .floors = true};
    char q[ST_QUOTE_MAX];

    (void)policy;
    if (a->quota && strcmp(a->quota, "floors") != 0 && strcmp(a->quota, "none") != 0)
        return st_fail(err, ST_EINVAL, "option --quota: it is floors or none, not %s",
                       st_quote(q, a->quota));
    take.floors = !a->quota || strcmp(a->quota, "floors") == 0;
    if (a->from && st_parse_moment(a->from, &take.from_s, err) < 0)
        return st_fail_prefix(err, "option --from: ");
    if (a->to && st_parse_moment(a->to, &take.to_s, err) < 0)
        return st_fail_prefix(err, "option --to: ");
    return st_trace_read_philly(in->jobs, in->nodes, &take, ret, err);
}

static int read_openb(const asked *a, inputs *in, st_policy *policy, st_trace **ret, st_err *err)
{
    (void)a, (void)policy;
    return st_trace_read_openb(in->jobs, in->nodes, ret, err);
}

static int read_csv(const asked *a, inputs *in, st_policy *policy, st_trace **ret, st_err *err)
{
    (void)a;
    return st_trace_read_csv(in->jobs, in->world, policy, ret, err);
}

typedef int read_fn(const asked *a, inputs *in, st_policy *policy, st_trace **ret, st_err *err);

typedef enum { NO, MAY, MUST } need_kind;

static const struct format {
    const char *name;
    need_kind nodes, world;
    read_fn *read;
    bool philly; /* has --divide, --from, --to and --quota */
} formats[] = {
    {"openb", MUST, NO, read_openb, false},
    {"muri", MAY, NO, read_muri, false},
    {"philly", MUST, NO, read_philly, true},
    {"csv", NO, MUST, read_csv, false},
};

static int check_file(const struct format *f, const char *option, need_kind need, const char *path,
                      st_err *err)
{
    if (need == MUST && !path)
        return st_fail(err, ST_EINVAL, "sim trace: --format %s needs --%s FILE", f->name, option);
    if (need == NO && path)
        return st_fail(err, ST_EINVAL, "sim trace: --format %s takes no --%s", f->name, option);
    return 0;
}

static int find_format(const asked *a, const struct format **ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    const struct format *f = NULL;
    int r;

    if (!a->format)
        return st_fail(err, ST_EINVAL,
                       "sim trace: --format is missing: openb, muri, philly or csv");
    for (size_t i = 0; i < ST_ARRAY_LEN(formats); i++)
        if (strcmp(formats[i].name, a->format) == 0)
            f = &formats[i];
    if (!f)
        return st_fail(err, ST_EINVAL, "option --format: it is openb, muri, philly or csv, not %s",
                       st_quote(q, a->format));
    r = check_file(f, "jobs", MUST, a->jobs, err);
    if (r == 0)
        r = check_file(f, "nodes", f->nodes, a->nodes, err);
    if (r == 0)
        r = check_file(f, "world", f->world, a->world, err);
    if (r == 0 && !f->philly && (a->from || a->to || a->quota || a->divide != 1))
        return st_fail(err, ST_EINVAL,
                       "sim trace: --divide, --from, --to and --quota are for --format philly");
    *ret = f;
    return r;
}

/* A document beyond the reader's limits is bad input, not a quota of the caller's. */
static int load_world(const char *path, st_doc **ret, st_err *err)
{
    int r = st_doc_load(path, ret, err);

    return r == -ST_ELIMIT ? st_fail(err, ST_ERANGE, "%s", err->msg) : r;
}

static int read_trace(const asked *a, st_policy *policy, st_trace **ret, st_err *err)
{
    ST_CLEANUP(inputs_done) inputs in = {0};
    ST_CLEANUP(st_trace_freep) st_trace *trace = NULL;
    const struct format *f = NULL;
    int r = find_format(a, &f, err);

    if (r == 0)
        r = st_csv_load(a->jobs, &in.jobs, err);
    if (r == 0 && a->nodes)
        r = st_csv_load(a->nodes, &in.nodes, err);
    if (r == 0 && a->world)
        r = load_world(a->world, &in.world, err);
    if (r == 0)
        r = f->read(a, &in, policy, &trace, err);
    if (r == 0)
        r = shape_jobs(trace, a, err);
    if (r < 0)
        return r;
    if (trace->jobs.n == 0)
        return st_fail(err, ST_EINVAL, "%s: there are no jobs to play%s%s", a->jobs,
                       trace->dropped > 0 ? "; the first was left out because " : "",
                       trace->dropped > 0 ? trace->dropped_why : "");
    *ret = ST_TAKE(trace);
    return 0;
}

/* ---- results --------------------------------------------------------------------------------------- */

static int write_file(const char *path, const st_strbuf *text, st_err *err)
{
    FILE *f = fopen(path, "w");
    int failed;

    if (!f)
        return st_fail(err, ST_EIO, "cannot write %s: %s", path, strerror(errno));
    fwrite(st_strbuf_str(text), 1, text->n, f);
    failed = ferror(f);
    if (fclose(f) != 0 || failed)
        return st_fail(err, ST_EIO, "cannot write %s: %s", path, strerror(errno));
    return 0;
}

static int write_files(const asked *a, const st_trace_run *run, const st_private *refs, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    int r = 0;

    if (a->csv_jobs) {
        st_run_csv_jobs(run, refs, &text);
        r = write_file(a->csv_jobs, &text, err);
    }
    if (r == 0 && a->csv_samples) {
        st_strbuf_clear(&text);
        st_run_csv_samples(run, &text);
        r = write_file(a->csv_samples, &text, err);
    }
    if (r == 0 && a->html) {
        st_strbuf_clear(&text);
        st_trace_html(run, &text);
        r = write_file(a->html, &text, err);
    }
    return r;
}

static void print_json(FILE *out, const st_trace_run *run, const st_run_stats *stats,
                       const st_private *refs)
{
    json_t *root = st_run_json(run, stats, refs);

    json_dumpf(root, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    fputc('\n', out);
    json_decref(root);
}

static int tell(st_cli *cli, const asked *a, const st_trace_run *run, st_err *err)
{
    st_private refs[ST_PRIVATE_COUNT] = {0};
    const st_private *shown = a->compare ? refs : NULL;
    st_run_stats stats;
    int r;

    for (int k = 0; a->compare && k < ST_PRIVATE_COUNT; k++)
        st_private_play(run->trace, (st_private_kind)k, &refs[k]);
    st_run_stats_of(run, &stats);
    r = write_files(a, run, shown, err);
    if (r == 0 && a->output == ST_CLI_JSON)
        print_json(cli->out, run, &stats, shown);
    else if (r == 0)
        st_cli_print_run(cli->out, run, &stats, shown);
    for (int k = 0; k < ST_PRIVATE_COUNT; k++)
        st_private_done(&refs[k]);
    return r;
}

static int read_options(int argc, char **argv, asked *a, st_err *err)
{
    const st_cli_opt opts[] = {
        ST_CLI_OPT_OUTPUT(&a->output),
        {"format", 0, ST_CLI_STRING, &a->format, 0, 0},
        {"jobs", 0, ST_CLI_STRING, &a->jobs, 0, 0},
        {"nodes", 0, ST_CLI_STRING, &a->nodes, 0, 0},
        {"world", 0, ST_CLI_STRING, &a->world, 0, 0},
        {"policy", 0, ST_CLI_STRING, &a->policy, 0, 0},
        {"declare", 0, ST_CLI_STRING, &a->declare, 0, 0},
        {"scale-time", 0, ST_CLI_STRING, &a->scale_time, 0, 0},
        {"save-cost", 0, ST_CLI_STRING, &a->save_cost, 0, 0},
        {"restore-cost", 0, ST_CLI_STRING, &a->restore_cost, 0, 0},
        {"divide", 0, ST_CLI_I64, &a->divide, 1, 1000},
        {"from", 0, ST_CLI_STRING, &a->from, 0, 0},
        {"to", 0, ST_CLI_STRING, &a->to, 0, 0},
        {"quota", 0, ST_CLI_STRING, &a->quota, 0, 0},
        {"sample", 0, ST_CLI_STRING, &a->sample, 0, 0},
        {"tell", 0, ST_CLI_STRING, &a->tell, 0, 0},
        {"until", 0, ST_CLI_STRING, &a->until, 0, 0},
        {"compare-private", 0, ST_CLI_FLAG, &a->compare, 0, 0},
        {"csv-jobs", 0, ST_CLI_STRING, &a->csv_jobs, 0, 0},
        {"csv-samples", 0, ST_CLI_STRING, &a->csv_samples, 0, 0},
        {"html", 0, ST_CLI_STRING, &a->html, 0, 0},
        {"bookings", 0, ST_CLI_STRING, &a->bookings, 0, 0},
        {"bookings-as", 0, ST_CLI_STRING, &a->bookings_as, 0, 0},
        {"bookings-lead", 0, ST_CLI_STRING, &a->lead, 0, 0},
        {0},
    };
    int n, r = st_cli_options(argc, argv, opts, 0, 1, &n, err);

    if (r == 0 && n == 1 && a->jobs)
        return st_fail(err, ST_EINVAL, "sim trace: the jobs are given twice, as %s and as %s",
                       a->jobs, argv[1]);
    if (r == 0 && n == 1)
        a->jobs = argv[1];
    if (r == 0 && !a->format && a->world)
        a->format = "csv";
    return r;
}

static int read_run_options(const asked *a, st_run_options *o, st_err *err)
{
    int r = parse_cost("save-cost", a->save_cost, &o->cost.save_ms, &o->cost.save_ms_per_gib, err);

    if (r == 0)
        r = parse_cost("restore-cost", a->restore_cost, &o->cost.restore_ms,
                       &o->cost.restore_ms_per_gib, err);
    if (r == 0 && a->sample && st_parse_duration_ms(a->sample, &o->sample_ms, err) < 0)
        r = st_fail_prefix(err, "option --sample: ");
    if (r == 0 && a->tell && st_parse_duration_ms(a->tell, &o->tell_ms, err) < 0)
        r = st_fail_prefix(err, "option --tell: ");
    if (r == 0 && a->until && st_parse_duration_ms(a->until, &o->until_ms, err) < 0)
        r = st_fail_prefix(err, "option --until: ");
    return r;
}

int st_cli_sim_trace(st_cli *cli, int argc, char **argv, st_err *err)
{
    asked a = {.output = ST_CLI_TABLE, .divide = 1};
    st_run_options o = {.policy = st_policy_default(), .until_ms = ST_TIME_NEVER};
    ST_CLEANUP(st_trace_freep) st_trace *trace = NULL;
    ST_CLEANUP(st_trace_run_freep) st_trace_run *run = NULL;
    ST_CLEANUP(st_progress_done) st_progress bar = {0};
    int r = read_options(argc, argv, &a, err);

    if (r == 0)
        r = read_run_options(&a, &o, err);
    if (r == 0)
        r = read_planned(&a, &o, err);
    if (r == 0)
        r = read_trace(&a, &o.policy, &trace, err);
    if (r == 0)
        r = plan_jobs(trace, &a, &o, err);
    if (r == 0 && a.policy)
        r = st_cli_policy(a.policy, &o.policy, err);
    if (r < 0)
        return r;
    st_progress_begin(&bar, cli->errors, "playing");
    o.progress = st_progress_show;
    o.ctx = &bar;
    r = st_trace_play(trace, &o, &run, err);
    st_progress_done(&bar);
    return r < 0 ? r : tell(cli, &a, run, err);
}
