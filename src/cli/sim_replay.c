/*
 * `stint sim replay`: what a stintd recorded, played again under other rules (replay/replay.h).
 */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/cli.h"
#include "cli/policy.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/trace_files.h"
#include "gen/gen.h"
#include "replay/replay.h"
#include "trace/read.h"

#define PRICES_MAX ((size_t)1 << 20)

typedef struct asked {
    st_cli_format output;
    const char *store, *backup, *from, *to, *policy, *accounts, *fleet, *prices, *anonymous;
} asked;

/* ---- figures for people ------------------------------------------------------------------------------- */

static void moment(int64_t ms, char buf[32])
{
    time_t s = (time_t)(ms / 1000);
    struct tm tm;

    if (!gmtime_r(&s, &tm) || strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        snprintf(buf, 32, "?");
}

/* Seconds are enough for a mean. */
static const char *duration(char buf[ST_FMT_MAX], double ms)
{
    return st_fmt_duration(buf, ms < 1000 ? (int64_t)ms : (int64_t)(ms / 1000) * 1000);
}

static void dollars(char buf[32], int64_t udollars)
{
    int64_t cents = (udollars + (udollars < 0 ? -5000 : 5000)) / 10000;

    snprintf(buf, 32, "%s$%" PRId64 ".%02" PRId64, cents < 0 ? "-" : "",
             cents < 0 ? -cents / 100 : cents / 100, cents < 0 ? -cents % 100 : cents % 100);
}

static double share(const st_rerun_figures *f)
{
    return f->capacity_gpu_hours > 0 ? f->allocated_gpu_hours / f->capacity_gpu_hours : 0;
}

/* X(label, what is written of the side) */
static void print_sides(const st_rerun *run, FILE *out)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    char a[ST_FMT_MAX], money[32];

    st_table_column(&t, "", false);
    st_table_column(&t, "WAS", true);
    st_table_column(&t, "WOULD BE", true);
#define ROW(label, ...)                            \
    st_table_cell(&t, "%s", label);                \
    for (int s = 0; s < ST_SIDES; s++) {           \
        const st_rerun_figures *f = &run->side[s]; \
        __VA_ARGS__;                               \
    }
    ROW("jobs started", st_table_cell(&t, "%" PRIu64, f->started))
    ROW("jobs ended", st_table_cell(&t, "%" PRIu64, f->ended))
    ROW("jobs refused", st_table_cell(&t, "%" PRIu64, f->refused))
    ROW("wait, mean", st_table_cell(&t, "%s", duration(a, f->wait.mean)))
    ROW("wait, p50", st_table_cell(&t, "%s", duration(a, (double)f->wait.p50)))
    ROW("wait, p99", st_table_cell(&t, "%s", duration(a, (double)f->wait.p99)))
    ROW("utilisation", st_table_cell(&t, "%.1f%%", 100 * share(f)))
    ROW("preemptions", st_table_cell(&t, "%" PRIu64, f->preemptions))
    ROW("lost GPU-hours", st_table_cell(&t, "%.2f", f->lost_gpu_hours))
    ROW("fairness", st_table_cell(&t, "%.3f", f->jain))
    ROW("bills", dollars(money, f->bill_udollars); st_table_cell(&t, "%s", money))
#undef ROW
    st_table_print(&t, out);
}

static const char *verdict(const st_rerun_account *a)
{
    return a->verdict > 0 ? "better" : a->verdict < 0 ? "worse" : "same";
}

static void print_accounts(const st_rerun *run, FILE *out)
{
    static const char *const headings[] = {"JOBS",   "WAIT",  "WOULD", "TURNAROUND", "WOULD",
                                           "SOONER", "LATER", "BILL",  "WOULD",      "OFF"};
    ST_CLEANUP(st_table_done) st_table t = {0};
    char a[ST_FMT_MAX], money[32];

    st_table_column(&t, "ACCOUNT", false);
    for (size_t i = 0; i < ST_ARRAY_LEN(headings); i++)
        st_table_column(&t, headings[i], i + 1 < ST_ARRAY_LEN(headings));
    for (size_t i = 0; i < run->accounts.n; i++) {
        const st_rerun_account *acc = &run->accounts.v[i];

        st_table_cell(&t, "%s", acc->name);
        st_table_cell(&t, "%" PRIu64, acc->jobs);
        for (int s = 0; s < ST_SIDES; s++)
            st_table_cell(&t, "%s", duration(a, acc->side[s].wait_ms));
        for (int s = 0; s < ST_SIDES; s++)
            st_table_cell(&t, "%s", duration(a, acc->side[s].turn_ms));
        st_table_cell(&t, "%" PRIu64, acc->sooner);
        st_table_cell(&t, "%" PRIu64, acc->later);
        for (int s = 0; s < ST_SIDES; s++) {
            dollars(money, acc->side[s].bill_udollars);
            st_table_cell(&t, "%s", money);
        }
        st_table_cell(&t, "%s", verdict(acc));
    }
    st_table_print(&t, out);
}

static void print_table(const st_rerun *run, FILE *out)
{
    char from[32], to[32], differ[32];

    moment(run->from_ms, from);
    moment(run->to_ms, to);
    moment(run->differ_ms, differ);
    fprintf(out, "%" PRIu64 " jobs from %s to %s UTC, %" PRId64 " rows of the log.\n", run->jobs,
            from, to, run->rows);
    if (run->parted)
        fprintf(out,
                "Version %s decided otherwise than this one from row %" PRId64
                " on: WAS is what this version decides.\n",
                run->written_by, run->parted);
    if (run->same)
        fputs("Every decision is the same.\n\n", out);
    else
        fprintf(out, "The first decision that differs is at %s.\n\n", differ);
    print_sides(run, out);
    if (run->accounts.n > 0) {
        putc('\n', out);
        print_accounts(run, out);
    }
    fprintf(out,
            "\n%" PRIu64 " jobs would end sooner, %" PRIu64 " later, %" PRIu64
            " at the same time.\n",
            run->sooner, run->later, run->alike);
}

/* ---- and for programs ----------------------------------------------------------------------------------- */

static json_t *figures_json(const st_rerun_figures *f)
{
    return json_pack("{s:I, s:I, s:I, s:{s:f, s:I, s:I, s:I}, s:f, s:f, s:f, s:I, s:f, s:f, s:I}",
                     "started", (json_int_t)f->started, "ended", (json_int_t)f->ended, "refused",
                     (json_int_t)f->refused, "wait_ms", "mean", f->wait.mean, "p50",
                     (json_int_t)f->wait.p50, "p99", (json_int_t)f->wait.p99, "max",
                     (json_int_t)f->wait.max, "utilisation", share(f), "allocated_gpu_hours",
                     f->allocated_gpu_hours, "capacity_gpu_hours", f->capacity_gpu_hours,
                     "preemptions", (json_int_t)f->preemptions, "lost_gpu_hours", f->lost_gpu_hours,
                     "fairness", f->jain, "bill_udollars", (json_int_t)f->bill_udollars);
}

static json_t *share_json(const st_rerun_share *s)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "wait_ms", s->wait_ms, "turnaround_ms",
                     s->turn_ms, "gpu_hours", s->gpu_hours, "lost_gpu_hours", s->lost_gpu_hours,
                     "preemptions", (json_int_t)s->preemptions, "refused", (json_int_t)s->refused,
                     "bill_udollars", (json_int_t)s->bill_udollars);
}

static void print_json(const st_rerun *run, FILE *out)
{
    char hash[2][20];
    json_t *accounts = json_array(), *root;

    for (int s = 0; s < ST_SIDES; s++)
        snprintf(hash[s], sizeof hash[s], "%016" PRIx64, run->side[s].hash);
    for (size_t i = 0; i < run->accounts.n; i++) {
        const st_rerun_account *a = &run->accounts.v[i];

        json_array_append_new(
            accounts,
            json_pack("{s:s, s:s?, s:I, s:o, s:o, s:I, s:I, s:s}", "account", a->name, "parent",
                      a->parent, "jobs", (json_int_t)a->jobs, "was", share_json(&a->side[ST_WAS]),
                      "would", share_json(&a->side[ST_WOULD]), "sooner", (json_int_t)a->sooner,
                      "later", (json_int_t)a->later, "off", verdict(a)));
    }
    root = json_pack("{s:I, s:I, s:I, s:I, s:b, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:o}", "from_ms",
                     (json_int_t)run->from_ms, "to_ms", (json_int_t)run->to_ms, "rows",
                     (json_int_t)run->rows, "jobs", (json_int_t)run->jobs, "same", run->same,
                     "was_hash", hash[ST_WAS], "would_hash", hash[ST_WOULD], "was",
                     figures_json(&run->side[ST_WAS]), "would", figures_json(&run->side[ST_WOULD]),
                     "sooner", (json_int_t)run->sooner, "later", (json_int_t)run->later, "alike",
                     (json_int_t)run->alike, "accounts", accounts);
    if (!run->same)
        json_object_set_new(root, "differ_ms", json_integer(run->differ_ms));
    if (run->parted) {
        json_object_set_new(root, "parted_seq", json_integer(run->parted));
        json_object_set_new(root, "written_by", json_string(run->written_by));
    }
    json_dumpf(root, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    fputc('\n', out);
    json_decref(root);
}

/* ---- the verb ------------------------------------------------------------------------------------------------ */

/* 2026-11-01, "2026-11-01 07:00:00" or 2026-11-01T07:00:00Z. */
static int read_moment(const char *option, const char *text, int64_t *ret, st_err *err)
{
    char copy[32];
    size_t n = strlen(text);
    int64_t s;

    snprintf(copy, sizeof copy, "%s", text);
    if (n == strlen("2026-11-01T07:00:00Z") && copy[10] == 'T' && copy[n - 1] == 'Z') {
        copy[10] = ' ';
        copy[n - 1] = '\0';
    }
    if (st_parse_moment(copy, &s, err) < 0)
        return st_fail_prefix(err, "option --%s: ", option);
    *ret = s * 1000;
    return 0;
}

static int lay_policy(void *ctx, st_policy *policy, st_err *err)
{
    return st_cli_policy(ctx, policy, err);
}

/* A document beyond the reader's limits is bad input, not a quota of the caller's. */
static int load(const char *path, st_doc **ret, st_err *err)
{
    int r = st_doc_load(path, ret, err);

    return r == -ST_ELIMIT ? st_fail(err, ST_ERANGE, "%s", err->msg) : r;
}

static int read_options(int argc, char **argv, asked *a, st_rerun_options *o, st_err *err)
{
    const st_cli_opt opts[] = {
        ST_CLI_OPT_OUTPUT(&a->output),
        {"store", 0, ST_CLI_STRING, &a->store, 0, 0},
        {"backup", 0, ST_CLI_STRING, &a->backup, 0, 0},
        {"from", 0, ST_CLI_STRING, &a->from, 0, 0},
        {"to", 0, ST_CLI_STRING, &a->to, 0, 0},
        {"policy", 0, ST_CLI_STRING, &a->policy, 0, 0},
        {"accounts", 0, ST_CLI_STRING, &a->accounts, 0, 0},
        {"fleet", 0, ST_CLI_STRING, &a->fleet, 0, 0},
        {"prices", 0, ST_CLI_STRING, &a->prices, 0, 0},
        {"anonymous", 0, ST_CLI_STRING, &a->anonymous, 0, 0},
        {0},
    };
    st_policy tried = st_policy_default();
    int n, r = st_cli_options(argc, argv, opts, 0, 0, &n, err);

    if (r < 0)
        return r;
    if (!a->store == !a->backup)
        return st_fail(err, ST_EINVAL, "sim replay: give --store PATH or --backup FILE");
    o->path = a->store ? a->store : a->backup;
    o->backup = a->backup != NULL;
    if (a->from)
        r = read_moment("from", a->from, &o->from_ms, err);
    if (r == 0 && a->to)
        r = read_moment("to", a->to, &o->to_ms, err);
    if (r == 0 && a->from && a->to && o->to_ms <= o->from_ms)
        r = st_fail(err, ST_EINVAL, "option --to: it must be later than --from");
    if (r == 0 && a->policy) {
        r = st_cli_policy(a->policy, &tried, err);
        o->policy = lay_policy;
        o->policy_ctx = (void *)(uintptr_t)a->policy;
    }
    return r;
}

int st_cli_sim_replay(st_cli *cli, int argc, char **argv, st_err *err)
{
    asked a = {.output = ST_CLI_TABLE};
    st_rerun_options o = {.from_ms = ST_UNSET, .to_ms = ST_UNSET};
    ST_CLEANUP(st_strbuf_done) st_strbuf prices = {0};
    ST_CLEANUP(st_doc_freep) st_doc *accounts = NULL;
    ST_CLEANUP(st_doc_freep) st_doc *fleet = NULL;
    ST_CLEANUP(st_rerun_freep) st_rerun *run = NULL;
    ST_CLEANUP(st_progress_done) st_progress bar = {0};
    int r = read_options(argc, argv, &a, &o, err);

    if (r == 0 && a.accounts)
        r = load(a.accounts, &accounts, err);
    if (r == 0 && a.fleet)
        r = load(a.fleet, &fleet, err);
    if (r == 0 && a.prices)
        r = st_file_read(a.prices, PRICES_MAX, &prices, err);
    if (r < 0)
        return r;
    o.accounts = accounts;
    o.fleet = fleet;
    o.prices = a.prices ? st_strbuf_str(&prices) : NULL;
    o.nprices = prices.n;
    st_progress_begin(&bar, cli->errors, "playing");
    o.progress = st_progress_show;
    o.ctx = &bar;
    r = st_rerun_play(&o, &run, err);
    st_progress_done(&bar);
    if (r == 0 && a.anonymous)
        r = st_trace_files_write(a.anonymous, run->trace, st_rerun_write_world, cli->errors, err);
    if (r < 0)
        return r;
    if (a.output == ST_CLI_JSON)
        print_json(run, cli->out);
    else
        print_table(run, cli->out);
    return 0;
}
