/*
 * `stint ps`: lists of jobs, with the columns that are asked for.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "cli/job_choice.h"
#include "cli/pages.h"

#define LIMIT_MAX     1000000
#define LIMIT_USUAL   200
#define COLUMNS_MAX   30
#define COLUMN_LENGTH 32

static void put_deadline(const json_t *job, st_strbuf *out)
{
    static const st_view_column by = {"DEADLINE", "deadline.by", ST_VIEW_TIME, NULL};

    if (!st_view_at(job, "deadline"))
        return;
    st_view_cell(job, &by, false, 0, out);
    st_strbuf_addf(out, " %s", st_view_text(job, "deadline.state"));
}

/* Those of a plain `ps` come first; then those for tables in which a job has one; then those that must be asked for. */
static const struct ps_column {
    st_view_column column;
    enum { USUAL, WHERE_ANY, ASKED } shown;
    const char *any; /* of WHERE_ANY: the field that a job must have */
} ps_columns[] = {
    {{"ID", "id", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"NAME", "name", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"ACCOUNT", "account", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"USER", "user", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"STATE", "state", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"CLASS", "class", ST_VIEW_TEXT, NULL}, USUAL, NULL},
    {{"GPUS", "gpus", ST_VIEW_NUM, NULL}, USUAL, NULL},
    {{"AGE", "submitted", ST_VIEW_AGE, NULL}, USUAL, NULL},
    {{"TOOK", NULL, ST_VIEW_FN, st_job_took}, USUAL, NULL},
    {{"WHERE", NULL, ST_VIEW_FN, st_job_where}, USUAL, NULL},
    {{"DEADLINE", NULL, ST_VIEW_FN, put_deadline}, WHERE_ANY, "deadline"},
    {{"PRIORITY CLASS", "priority_class", ST_VIEW_TEXT, NULL}, WHERE_ANY, "priority_class"},
    {{"ON HOLD", "on_hold", ST_VIEW_TEXT, NULL}, WHERE_ANY, "on_hold"},
    {{"RETRY AT", "retry_at", ST_VIEW_TIME, NULL}, WHERE_ANY, "retry_at"},
    {{"RETRIES", "retries_used", ST_VIEW_NUM, NULL}, ASKED, NULL},
    {{"PRIORITY", "priority", ST_VIEW_NUM, NULL}, ASKED, NULL},
    {{"SUBMITTED", "submitted", ST_VIEW_TIME, NULL}, ASKED, NULL},
    {{"STARTED", "started", ST_VIEW_TIME, NULL}, ASKED, NULL},
    {{"ENDED", "ended", ST_VIEW_TIME, NULL}, ASKED, NULL},
    {{"EXIT", "exit_code", ST_VIEW_NUM, NULL}, ASKED, NULL},
    {{"REASON", "reason", ST_VIEW_TEXT, NULL}, ASKED, NULL},
    {{"TYPE", "placement.type", ST_VIEW_TEXT, NULL}, ASKED, NULL},
    {{"TASKS", "spec.tasks", ST_VIEW_NUM, NULL}, ASKED, NULL},
    {{"LIMIT", "limit_seconds", ST_VIEW_SECONDS, NULL}, ASKED, NULL},
    {{"PREEMPTIONS", "preemptions", ST_VIEW_NUM, NULL}, ASKED, NULL},
    {{"IMAGE", "spec.image", ST_VIEW_TEXT, NULL}, ASKED, NULL},
    {{"LABELS", "spec.labels", ST_VIEW_WORDS, NULL}, ASKED, NULL},
    {{"COMMENT", "spec.comment", ST_VIEW_TEXT, NULL}, ASKED, NULL},
    {{"ARRAY", "array", ST_VIEW_TEXT, NULL}, ASKED, NULL},
    {{"INDEX", "spec.array.index", ST_VIEW_NUM, NULL}, ASKED, NULL},
};
#define NAMES                                                                                      \
    "id, name, account, user, state, class, gpus, age, took, where, deadline, priority_class, "    \
    "on_hold, retry_at, retries, priority, submitted, started, ended, exit, reason, type, tasks, " \
    "limit, preemptions, image, labels, comment, array, index"

typedef struct ps_flags {
    st_cli *cli;
    st_client *client;
    st_cli_format format;
    bool all, watch;
    st_job_choice choice;
    const char *columns;
    int64_t limit;
    st_view_column
        shown[COLUMNS_MAX + 1]; /* those of --columns; without a heading: it is not given */
} ps_flags;

const st_cli_row st_cli_ps_options[] = {
    {"all", 'a', ST_CLI_FLAG, offsetof(ps_flags, all), NULL, "include jobs that have ended", 0, 0},
    ST_JOB_CHOICE_ROWS(ps_flags),
    {"array", 0, ST_CLI_STRING, offsetof(ps_flags, choice.array), "ID", "jobs of this array", 0, 0},
    {"since", 0, ST_CLI_STRING, offsetof(ps_flags, choice.since), "TIME",
     "jobs, ended too, not over by then: 2026-11-15T08:30:00Z, or 2h for 2 h ago", 0, 0},
    {"until", 0, ST_CLI_STRING, offsetof(ps_flags, choice.until), "TIME",
     "jobs, ended too, submitted by then, in the same forms", 0, 0},
    {"columns", 'c', ST_CLI_STRING, offsetof(ps_flags, columns), "NAME,...",
     "columns of the table, in this order", 0, 0},
    {"limit", 'l', ST_CLI_I64, offsetof(ps_flags, limit), "N", "number of rows (default: 200)", 1,
     LIMIT_MAX},
    {"watch", 'w', ST_CLI_FLAG, offsetof(ps_flags, watch), NULL,
     "repeat every two seconds until Ctrl-C", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(ps_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

/* PRIORITY CLASS goes by priority_class. */
static void name_of(const char *heading, char ret[COLUMN_LENGTH])
{
    size_t i = 0;

    for (; heading[i] && i + 1 < COLUMN_LENGTH; i++)
        ret[i] = (char)(heading[i] == ' '                        ? '_'
                        : heading[i] >= 'A' && heading[i] <= 'Z' ? heading[i] - 'A' + 'a'
                                                                 : heading[i]);
    ret[i] = '\0';
}

static const st_view_column *column_named(const char *word, st_err *err)
{
    char names[ST_ARRAY_LEN(ps_columns)][COLUMN_LENGTH];
    const char *list[ST_ARRAY_LEN(ps_columns) + 1] = {NULL}, *nearest;
    char q[ST_QUOTE_MAX];

    for (size_t i = 0; i < ST_ARRAY_LEN(ps_columns); i++) {
        name_of(ps_columns[i].column.heading, names[i]);
        if (strcmp(names[i], word) == 0)
            return &ps_columns[i].column;
        list[i] = names[i];
    }
    nearest = st_suggest(word, list);
    if (nearest)
        st_fail(err, ST_EINVAL, "--columns: there is no column %s (did you mean %s?)",
                st_quote(q, word), nearest);
    else
        st_fail(err, ST_EINVAL, "--columns: there is no column %s; those there are: " NAMES,
                st_quote(q, word));
    return NULL;
}

static int read_columns(ps_flags *f, st_err *err)
{
    ST_CLEANUP(st_freep) char *words = st_xstrdup(f->columns ? f->columns : "");
    char *rest = words;
    size_t n = 0;

    for (const char *word; f->columns && (word = strsep(&rest, ","));) {
        const st_view_column *c = column_named(word, err);

        if (!c)
            return -err->code;
        if (n == COLUMNS_MAX)
            return st_fail(err, ST_EINVAL, "--columns: at most %d columns", COLUMNS_MAX);
        f->shown[n++] = *c;
    }
    return 0;
}

static void put_ps(const ps_flags *f, const json_t *jobs)
{
    st_view_column columns[ST_ARRAY_LEN(ps_columns) + 1] = {0};
    const json_t *job;
    size_t n = 0, i;

    for (size_t k = 0; k < ST_ARRAY_LEN(ps_columns); k++) {
        const struct ps_column *c = &ps_columns[k];
        bool any = c->shown == USUAL || /* CSV always has the same columns */
                   (c->shown == WHERE_ANY && f->format == ST_CLI_CSV);

        if (c->shown == WHERE_ANY)
            json_array_foreach(jobs, i, job) any = any || st_view_at(job, c->any);
        if (any)
            columns[n++] = c->column;
    }
    st_view_rows(f->cli, f->format, jobs, f->columns ? f->shown : columns);
}

static int show_ps(void *ctx, st_err *err)
{
    ps_flags *f = ctx;
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    bool past = f->all || f->choice.since || f->choice.until;
    json_t *doc = NULL;
    int r;

    st_job_choice_path(&f->choice, past, NULL, f->limit, &path);
    if (f->format == ST_CLI_JSON && f->limit <= ST_JOB_PAGE_MAX) { /* as the server sends it */
        r = st_client_call(f->client, &(st_request){.path = st_strbuf_str(&path)}, &response, err);
        if (r == 0)
            st_view_raw(f->cli, &response);
        return r;
    }
    r = st_pages_get(f->cli->errors, f->client, st_strbuf_str(&path), "jobs", f->limit, &doc, err);
    if (r < 0)
        return r;
    if (f->format == ST_CLI_JSON) {
        json_dumpf(doc, f->cli->out, JSON_COMPACT);
        fputc('\n', f->cli->out);
    } else {
        put_ps(f, st_view_at(doc, "jobs"));
    }
    if (f->format != ST_CLI_JSON && st_view_at(doc, "next"))
        fprintf(f->cli->errors, "There are more; --limit shows up to %d.\n", LIMIT_MAX);
    json_decref(doc);
    return 0;
}

int st_cli_ps(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ps_flags f = {.cli = cli, .limit = LIMIT_USUAL};
    int r = st_cli_read(argc, argv, st_cli_ps_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = read_columns(&f, err);
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    f.client = client;
    return r < 0 ? r : st_view_watch(cli, f.watch, show_ps, &f, err);
}
