/*
 * `stint series`: what was, bucket by bucket. The server's answer has a list for each figure; a table has a row for each
 * bucket. What is not known is a dash.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "cli/view.h"

typedef struct series_flags {
    st_cli_format format;
    const char *account, *job, *node, *gpu, *since, *until, *step;
} series_flags;

#define ROW(name, letter, field, value, about)                                         \
    {                                                                                  \
        name, letter, ST_CLI_STRING, offsetof(series_flags, field), value, about, 0, 0 \
    }

const st_cli_row st_cli_series_options[] = {
    ROW("account", 'A', account, "NAME", "account with those below it (default: yours)"),
    ROW("job", 'j', job, "ID", "job"),
    ROW("node", 0, node, "NAME", "node (owners)"),
    ROW("gpu", 0, gpu, "NODE:N", "GPU of a node (owners)"),
    ROW("since", 0, since, "TIME",
        "start: 2026-11-15T08:30:00Z, or 2h for two hours ago (default: 2h)"),
    ROW("until", 0, until, "TIME", "end, in the same forms (default: now)"),
    ROW("step", 0, step, "WIDTH",
        "width of a bucket: 1m, 10m, 1h or a multiple (default: by the time asked for)"),
    {"output", 'o', ST_CLI_LISTING, offsetof(series_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

static void add_percent(const json_t *row, const char *key, st_strbuf *out)
{
    const json_t *v = st_view_at(row, key);

    if (v)
        st_strbuf_addf(out, "%.0f%%", json_number_value(v) * 100);
    else
        st_strbuf_addc(out, '-');
}

static void add_busy(const json_t *row, st_strbuf *out)
{
    add_percent(row, "utilisation", out);
}

static void add_share(const json_t *row, st_strbuf *out)
{
    add_percent(row, "share", out);
}

static void add_failed(const json_t *row, st_strbuf *out)
{
    add_percent(row, "failed", out);
}

static void add_cost(const json_t *row, st_strbuf *out)
{
    const json_t *v = st_view_at(row, "month_cost_udollars");

    if (v)
        st_strbuf_addf(out, "$%.2f", (double)json_integer_value(v) / 1e6);
    else
        st_strbuf_addc(out, '-');
}

static const st_view_column account_columns[] = {
    {"FROM", "at", ST_VIEW_TIME, NULL},
    {"HELD", "gpus_held", ST_VIEW_NUM, NULL},
    {"FLOOR", "gpus_floor", ST_VIEW_NUM, NULL},
    {"RUNNING", "jobs_running", ST_VIEW_NUM, NULL},
    {"WAITING", "jobs_waiting", ST_VIEW_NUM, NULL},
    {"ASKED", "gpus_waiting", ST_VIEW_NUM, NULL},
    {"SHARE", NULL, ST_VIEW_FN, add_share},
    {"BUSY", NULL, ST_VIEW_FN, add_busy},
    {"MONTH", NULL, ST_VIEW_FN, add_cost},
    {0},
};
static const st_view_column job_columns[] = {
    {"FROM", "at", ST_VIEW_TIME, NULL},
    {"HELD", "gpus_held", ST_VIEW_NUM, NULL},
    {"BUSY", NULL, ST_VIEW_FN, add_busy},
    {"WATTS", "gpu_power_watts", ST_VIEW_NUM, NULL},
    {"MEMORY", "gpu_memory_mib", ST_VIEW_MIB, NULL},
    {0},
};
static const st_view_column node_columns[] = {
    {"FROM", "at", ST_VIEW_TIME, NULL},
    {"HELD", "gpus_held", ST_VIEW_NUM, NULL},
    {"BUSY", NULL, ST_VIEW_FN, add_busy},
    {"WATTS", "gpu_power_watts", ST_VIEW_NUM, NULL},
    {"MEMORY", "gpu_memory_mib", ST_VIEW_MIB, NULL},
    {"FAILED", NULL, ST_VIEW_FN, add_failed},
    {0},
};

/* A row for each bucket: {"at": …, figure: value, …}. */
static json_t *rows_of(const json_t *answer)
{
    const json_t *figures = json_object_get(answer, "figures"), *list;
    json_t *rows = json_array();
    int64_t from = st_view_time(answer, "since"), until = st_view_time(answer, "until");
    int64_t step = st_view_milli(answer, "step_seconds");
    const char *name;

    for (int64_t at = from; step > 0 && at >= 0 && at < until; at += step) {
        json_t *row = json_object();
        char text[ST_FMT_MAX + 16];
        time_t s = (time_t)(at / 1000);
        struct tm tm;

        gmtime_r(&s, &tm);
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        json_object_set_new(row, "at", json_string(text));
        json_object_foreach((json_t *)(uintptr_t)figures, name, list)
            json_object_set(row, name, json_array_get(list, (size_t)((at - from) / step)));
        json_array_append_new(rows, row);
    }
    return rows;
}

static int read_what(const series_flags *f, const char **ret_of, const char **ret_name,
                     const st_view_column **ret_columns, st_err *err)
{
    const struct {
        const char *of, *name;
        const st_view_column *columns;
    } kinds[] = {{"account", f->account, account_columns},
                 {"job", f->job, job_columns},
                 {"node", f->node, node_columns},
                 {"gpu", f->gpu, node_columns}};
    int n = 0;

    *ret_of = "account";
    *ret_name = NULL;
    *ret_columns = account_columns;
    for (size_t i = 0; i < ST_ARRAY_LEN(kinds); i++)
        if (kinds[i].name) {
            *ret_of = kinds[i].of;
            *ret_name = kinds[i].name;
            *ret_columns = kinds[i].columns;
            n++;
        }
    if (n > 1)
        return st_fail(err, ST_EINVAL, "choose one of --account, --job, --node and --gpu");
    return 0;
}

int st_cli_series(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_response response = {0};
    series_flags f = {.since = "2h"};
    const st_view_column *columns;
    const char *of, *name;
    json_t *answer = NULL, *rows;
    int r = st_cli_read(argc, argv, st_cli_series_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = read_what(&f, &of, &name, &columns, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&path, "/v1/series?of=%s", of);
    st_url_query(&path, "name", name);
    st_url_query(&path, "since", f.since);
    st_url_query(&path, "until", f.until);
    st_url_query(&path, "step", f.step);
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &answer, &response,
                       err);
    if (r == 0 && f.format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else if (r == 0) {
        rows = rows_of(answer);
        st_view_rows(cli, f.format, rows, columns);
        json_decref(rows);
    }
    st_response_done(&response);
    json_decref(answer);
    return r;
}
