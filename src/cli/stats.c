/*
 * `stint stats`: what jobs do with their GPUs, and what they have cost so far. Sums come from the server; watched, the rates are those
 * of the time since the last look.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/jobs.h"

#define JOBS_MAX 64

typedef struct stats_flags {
    st_cli_format format;
    bool watch;
} stats_flags;

const st_cli_row st_cli_stats_options[] = {
    {"watch", 'w', ST_CLI_FLAG, offsetof(stats_flags, watch), NULL,
     "show it again and again; rates are then those since the last look", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(stats_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

typedef struct stats {
    st_cli *cli;
    st_client *client;
    const stats_flags *f;
    char **ids;
    int n;
    json_t *before[JOBS_MAX]; /* what was said last; NULL */
} stats;

static int64_t sum(const json_t *doc, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(doc, "sums"), key));
}

/* Rates over the time since the last look, where something was measured in it; else what the server says of all of it. */
static void refresh(json_t *doc, const json_t *before)
{
    static const struct {
        const char *key, *sum;
        double times;
    } rates[] = {{"busy", "busy_gpu_ms", 1},
                 {"sm", "sm_gpu_ms", 1},
                 {"watts", "energy_mj", 1},
                 {"memory_mib", "mem_mib_s", 1000},
                 {"celsius", "heat_c_s", 1000}};
    int64_t seen = sum(doc, "seen_gpu_ms") - sum(before, "seen_gpu_ms");
    json_t *gpu = json_object_get(doc, "gpu");

    if (!before || seen <= 0)
        return;
    for (size_t i = 0; i < ST_ARRAY_LEN(rates); i++)
        if (json_is_number(json_object_get(gpu, rates[i].key)))
            json_object_set_new(
                gpu, rates[i].key,
                json_real((double)(sum(doc, rates[i].sum) - sum(before, rates[i].sum)) *
                          rates[i].times / (double)seen));
}

static void add_percent(const json_t *row, const char *key, st_strbuf *out)
{
    const json_t *v = st_view_at(row, key);

    if (json_is_number(v))
        st_strbuf_addf(out, "%.0f %%", json_number_value(v) * 100);
}

static void add_busy(const json_t *row, st_strbuf *out)
{
    add_percent(row, "gpu.busy", out);
}

static void add_sm(const json_t *row, st_strbuf *out)
{
    add_percent(row, "gpu.sm", out);
}

static void add_whole(const json_t *row, const char *key, const char *unit, st_strbuf *out)
{
    const json_t *v = st_view_at(row, key);

    if (json_is_number(v))
        st_strbuf_addf(out, "%.0f%s", json_number_value(v), unit);
}

static void add_watts(const json_t *row, st_strbuf *out)
{
    add_whole(row, "gpu.watts", " W", out);
}

static void add_heat(const json_t *row, st_strbuf *out)
{
    add_whole(row, "gpu.celsius", " C", out);
}

static void add_gib(const json_t *row, const char *key, st_strbuf *out)
{
    const json_t *v = st_view_at(row, key);

    if (json_is_number(v))
        st_strbuf_addf(out, "%.1f GiB", json_number_value(v) / 1024);
}

static void add_memory(const json_t *row, st_strbuf *out)
{
    add_gib(row, "gpu.memory_mib", out);
}

static void add_peak(const json_t *row, st_strbuf *out)
{
    add_gib(row, "memory.peak_mib", out);
}

static void add_asked(const json_t *row, st_strbuf *out)
{
    add_gib(row, "memory.asked_mib", out);
}

static void add_estimated(const json_t *row, st_strbuf *out)
{
    add_gib(row, "memory.estimated_mib", out);
}

static const st_view_column columns[] = {
    {"JOB", "job", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"BUSY", NULL, ST_VIEW_FN, add_busy},
    {"SM", NULL, ST_VIEW_FN, add_sm},
    {"MEMORY", NULL, ST_VIEW_FN, add_memory},
    {"PEAK", NULL, ST_VIEW_FN, add_peak},
    {"ASKED", NULL, ST_VIEW_FN, add_asked},
    {"POWER", NULL, ST_VIEW_FN, add_watts},
    {"HEAT", NULL, ST_VIEW_FN, add_heat},
    {"COST", "cost", ST_VIEW_NUM, NULL},
    {0},
};

static int fetch(st_client *client, const char *id, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_job_path(&path, id, "/use");
    return st_client_get(client, st_strbuf_str(&path), ret, err);
}

static void print_suggestions(st_cli *cli, const json_t *rows)
{
    const json_t *row, *text, *late;
    size_t i, k;

    json_array_foreach(rows, i, row)
    {
        late = json_object_get(row, "straggler");
        if (json_is_object(late))
            fprintf(cli->out, "%s: the others wait for task %lld on %s: %s\n",
                    st_view_text(row, "job"),
                    (long long)json_integer_value(json_object_get(late, "task")),
                    st_view_text(late, "node"), st_view_text(late, "reason"));
        json_array_foreach(json_object_get(row, "suggestions"), k, text)
            fprintf(cli->out, "%s: %s\n", st_view_text(row, "job"), json_string_value(text));
    }
}

static int show(void *ctx, st_err *err)
{
    stats *s = ctx;
    json_t *rows = json_array();
    int r = 0;

    for (int i = 0; r == 0 && i < s->n; i++) {
        json_t *doc = NULL;

        r = fetch(s->client, s->ids[i], &doc, err);
        if (r < 0) {
            r = st_job_near(s->client, s->ids[i], r, err);
            break;
        }
        json_array_append_new(rows, json_deep_copy(doc));
        refresh(json_array_get(rows, (size_t)i), s->before[i]);
        json_decref(s->before[i]);
        s->before[i] = doc;
    }
    if (r == 0 && s->f->format == ST_CLI_JSON) {
        json_dumpf(rows, s->cli->out, JSON_COMPACT);
        fputc('\n', s->cli->out);
    } else if (r == 0) {
        st_view_rows(s->cli, s->f->format, rows, columns);
        if (s->f->format == ST_CLI_TABLE)
            print_suggestions(s->cli, rows);
    }
    json_decref(rows);
    return r;
}

int st_cli_stats(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    stats_flags f = {0};
    stats s = {.cli = cli, .f = &f, .ids = argv + 1};
    int r = st_cli_read(argc, argv, st_cli_stats_options, &f, 1, JOBS_MAX, &s.n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    s.client = client;
    if (r == 0)
        r = st_view_watch(cli, f.watch, show, &s, err);
    for (int i = 0; i < s.n; i++)
        json_decref(s.before[i]);
    return r;
}

/* ---- beside a job's facts ----------------------------------------------------------------------- */

void st_job_use(st_cli *cli, st_client *client, const char *id)
{
    static const st_view_column facts[] = {
        {"Cost so far", "cost", ST_VIEW_TEXT, NULL},
        {"GPU busy", NULL, ST_VIEW_FN, add_busy},
        {"GPU memory asked", NULL, ST_VIEW_FN, add_asked},
        {"GPU memory estimated", NULL, ST_VIEW_FN, add_estimated},
        {"GPU memory used", NULL, ST_VIEW_FN, add_peak},
        {0},
    };
    json_t *doc = NULL, *rows;
    st_err ignored;

    if (fetch(client, id, &doc, &ignored) < 0)
        return;
    st_view_facts(cli, doc, facts);
    rows = json_pack("[O]", doc);
    print_suggestions(cli, rows);
    json_decref(rows);
    json_decref(doc);
}
