/*
 * `stint top`: gathering and writing (cli/top.h); the screen is in top_screen.c.
 */
#include "cli/top.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cli/jobs.h"
#include "cli/spinner.h"
#include "cli/table.h"
#include "cli/view.h"

#define JOBS "limit=1000"

void st_top_done(st_top *top)
{
    json_decref(top->who);
    json_decref(top->accounts);
    json_decref(top->running);
    json_decref(top->waiting);
    json_decref(top->pools);
    *top = (st_top){0};
}

/* ---- gathering ---------------------------------------------------------------------------------- */

static json_t *account_row(json_t *rows, const char *name)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i,
                       row) if (strcmp(st_view_text(row, "account"), name) == 0) return row;
    row = json_pack("{s:s}", "account", name);
    if (row)
        json_array_append_new(rows, row);
    return row;
}

/* stint_account_gpus_held{account="vision",parent="acme"} 52; more labels may follow the first. */
static void read_sample(json_t *rows, const char *line, const char *family, const char *key)
{
    char name[256], number[ST_FMT_MAX];
    const char *close = memmem(line, strcspn(line, "\n"), "} ", 2);
    json_t *row;
    int64_t n;

    if (strncmp(line, family, strlen(family)) != 0 || !close)
        return;
    if (sscanf(line + strlen(family), "{account=\"%255[^\"]\"", name) != 1 ||
        sscanf(close, "} %31s", number) != 1 || st_parse_milli(number, 0, INT64_MAX, &n, NULL) < 0)
        return;
    row = account_row(rows, name);
    if (row)
        json_object_set_new(row, key,
                            n % 1000 ? json_real((double)n / 1000) : json_integer(n / 1000));
}

json_t *st_top_accounts(const char *metrics)
{
    json_t *rows = json_array();

    for (const char *line = metrics; *line;) {
        const char *end = strchr(line, '\n');

        read_sample(rows, line, "stint_account_gpus_held", "held");
        read_sample(rows, line, "stint_account_gpus_guaranteed", "inside");
        read_sample(rows, line, "stint_account_gpus_floor", "floor");
        line = end ? end + 1 : line + strlen(line);
    }
    return rows;
}

static int fetch_accounts(st_client *client, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    int r = st_client_call(client, &(st_request){.path = "/metrics"}, &response, err);

    if (r == 0)
        *ret = st_top_accounts(st_strbuf_str(&response.body));
    return r;
}

int st_top_fetch(st_client *client, st_top *top, st_err *err)
{
    ST_CLEANUP(st_top_done) st_top t = {0};
    int r = st_client_get(client, "/v1/whoami", &t.who, err);

    if (r == 0)
        r = fetch_accounts(client, &t.accounts, err);
    if (r == 0)
        r = st_client_get(client, "/v1/pools", &t.pools, err);
    if (r == 0)
        r = st_client_get(client,
                          "/v1/jobs?" JOBS
                          "&state=running&state=notified&state=checkpointing&state=paused"
                          "&state=stopping",
                          &t.running, err);
    if (r == 0)
        r = st_client_get(client, "/v1/jobs?" JOBS "&state=pending", &t.waiting, err);
    if (r == 0) {
        st_top old = *top;

        *top = t;
        top->skip = old.skip;
        t = old;
    }
    return r;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static const st_view_column account_columns[] = {
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
    {"FLOOR", "floor", ST_VIEW_NUM, NULL},
    {"HELD", "held", ST_VIEW_NUM, NULL},
    {"INSIDE", "inside", ST_VIEW_NUM, NULL},
    {0},
};
static const st_view_column running_columns[] = {
    {"RUNNING", "id", ST_VIEW_TEXT, NULL},       {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},  {"USER", "user", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_TEXT, NULL},      {"CLASS", "class", ST_VIEW_TEXT, NULL},
    {"GPUS", "gpus", ST_VIEW_NUM, NULL},         {"TOOK", NULL, ST_VIEW_FN, st_job_took},
    {"LIMIT", "spec.limit", ST_VIEW_TEXT, NULL}, {0},
};
static const st_view_column waiting_columns[] = {
    {"WAITING", "id", ST_VIEW_TEXT, NULL},       {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},  {"USER", "user", ST_VIEW_TEXT, NULL},
    {"PRIORITY", "priority", ST_VIEW_NUM, NULL}, {"GPUS", "gpus", ST_VIEW_NUM, NULL},
    {"WAITS", "submitted", ST_VIEW_AGE, NULL},   {0},
};

typedef struct section {
    const json_t *rows;
    const st_view_column *columns;
    int need, lines; /* with the heading; what it gets */
} section;

/* Every section gets what it needs up to an equal part; what one leaves the others share. */
static void divide(section *s, int n, int rows)
{
    bool more = true;

    for (int i = 0; i < n; i++)
        s[i].lines = 0;
    while (more) {
        more = false;
        for (int i = 0; i < n; i++) {
            if (rows > 0 && s[i].lines < s[i].need) {
                s[i].lines++;
                rows--;
                more = true;
            }
        }
    }
}

/* What does not fit is said; those who scroll have come `skip` rows further, to the last at most. */
static void write_section(const section *s, FILE *out, int columns, int skip)
{
    ST_CLEANUP(st_table_done) st_table t = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf cell = {0};
    int64_t now = st_cli_wall_ms();
    size_t all = json_array_size(s->rows), i;
    bool cut = s->lines < s->need;
    size_t show = s->lines > (cut ? 2 : 1) ? (size_t)s->lines - (cut ? 2 : 1) : 0;
    size_t from = cut ? ST_MIN((size_t)skip, all - show) : 0;
    json_t *row;

    if (s->lines == 0)
        return;
    for (const st_view_column *c = s->columns; c->heading; c++)
        st_table_column(&t, c->heading, c->kind == ST_VIEW_NUM || c->kind == ST_VIEW_AGE);
    json_array_foreach(s->rows, i, row)
    {
        if (i < from)
            continue;
        if (i == from + show)
            break;
        for (const st_view_column *c = s->columns; c->heading; c++) {
            st_strbuf_clear(&cell);
            st_view_cell(row, c, false, now, &cell);
            st_table_cell(&t, "%s", st_strbuf_str(&cell));
        }
    }
    st_table_print_fitted(&t, out, columns);
    if (cut && s->lines > 1)
        fprintf(out, "  %zu of %zu shown; %zu more (up and down scroll)\n", show, all, all - show);
}

static void write_head(const st_top *top, FILE *out, int columns)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf line = {0};
    const char *account = st_view_text(top->who, "account");
    int64_t gpus = 0, ready = 0, held = 0;
    char a[ST_FMT_MAX], b[ST_FMT_MAX], c[ST_FMT_MAX];
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(top->pools, "pools"), i, row)
    {
        gpus += st_view_milli(row, "gpus");
        ready += st_view_milli(row, "gpus_ready");
    }
    json_array_foreach(st_view_at(top->running, "jobs"), i, row) held += st_view_milli(row, "gpus");
    st_strbuf_addf(&line,
                   "stint: %s of %s   %s of %s GPUs ready, %s with these jobs   "
                   "%zu%s running, %zu%s waiting",
                   st_view_text(top->who, "user"), *account ? account : "the cluster",
                   st_fmt_milli(a, ready), st_fmt_milli(b, gpus), st_fmt_milli(c, held),
                   json_array_size(st_view_at(top->running, "jobs")),
                   st_view_at(top->running, "next") ? " and more" : "",
                   json_array_size(st_view_at(top->waiting, "jobs")),
                   st_view_at(top->waiting, "next") ? " and more" : "");
    fprintf(out, "%.*s\n", columns > 0 ? columns : (int)line.n, st_strbuf_str(&line));
}

void st_top_write(const st_top *top, FILE *out, int rows, int columns)
{
    section s[] = {
        {top->accounts, account_columns, 0, 0},
        {st_view_at(top->running, "jobs"), running_columns, 0, 0},
        {st_view_at(top->waiting, "jobs"), waiting_columns, 0, 0},
    };
    int n = (int)ST_ARRAY_LEN(s), room = rows > 0 ? rows - 1 - n : INT32_MAX;

    for (int i = 0; i < n; i++)
        s[i].need = (int)json_array_size(s[i].rows) + 1;
    divide(s, n, room);
    write_head(top, out, columns);
    for (int i = 0; i < n; i++) {
        fputc('\n', out);
        write_section(&s[i], out, columns, top->skip);
    }
}

/* ---- the verb ------------------------------------------------------------------------------------ */

typedef struct top_flags {
    bool once;
} top_flags;

const st_cli_row st_cli_top_options[] = {
    {"once", '1', ST_CLI_FLAG, offsetof(top_flags, once), NULL, "print once and exit", 0, 0},
    {0},
};

int st_cli_top(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_top_done) st_top top = {0};
    top_flags f = {0};
    int fd, r = st_cli_read(argc, argv, st_cli_top_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r == 0)
        r = st_top_fetch(client, &top, err);
    if (r < 0)
        return r;
    fd = fileno(cli->out);
    if (!f.once && fd >= 0 && isatty(fd) && isatty(STDIN_FILENO))
        return st_top_screen(client, &top, err);
    st_top_write(&top, cli->out, 0, st_table_terminal_width(cli->out));
    return 0;
}
