/*
 * Looking at jobs and changing them: ps, show, why, cancel, priority, limit.
 */
#include "cli/jobs.h"

#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"
#include "cli/spinner.h"

#define NEAR_MAX 200 /* jobs looked through for one that might be meant */

void st_job_path(st_strbuf *out, const char *id, const char *tail)
{
    st_strbuf_add(out, "/v1/jobs/");
    st_url_add(out, id);
    st_strbuf_add(out, tail);
}

bool st_job_over(const char *state)
{
    static const char *const words[] = {"done", "failed", "timeout", "cancelled"};

    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++)
        if (strcmp(state, words[i]) == 0)
            return true;
    return false;
}

int st_job_status(const json_t *job)
{
    const json_t *code = st_view_at(job, "exit_code");
    const char *state = st_view_text(job, "state");

    if (strcmp(state, "timeout") == 0)
        return 124;
    if (strcmp(state, "cancelled") == 0)
        return 130;
    if (code)
        return (int)(json_integer_value(code) & 255);
    return strcmp(state, "done") == 0 ? 0 : 1;
}

int st_job_near(st_client *client, const char *id, int r, st_err *err)
{
    const char *ids[NEAR_MAX + 1] = {NULL}, *nearest = NULL, *named = NULL;
    char said[sizeof err->msg];
    json_t *doc = NULL, *job;
    bool exact = false; /* it is there: something else of it is missing */
    st_err quiet;
    size_t i;

    if (r != -ST_ENOENT || st_client_get(client, "/v1/jobs?limit=200", &doc, &quiet) < 0)
        return r;
    json_array_foreach(json_object_get(doc, "jobs"), i, job)
    {
        if (i == NEAR_MAX)
            break;
        ids[i] = st_view_text(job, "id");
        exact = exact || strcmp(ids[i], id) == 0;
        if (!named && strcmp(st_view_text(job, "name"), id) == 0)
            named = ids[i];
    }
    nearest = named ? named : st_suggest(id, ids);
    snprintf(said, sizeof said, "%s", err->msg);
    if (exact)
        ;
    else if (named)
        st_fail(err, ST_ENOENT, "%s (the newest of that name is %s)", said, named);
    else if (nearest)
        st_fail(err, ST_ENOENT, "%s (did you mean %s?)", said, nearest);
    else
        st_fail(err, ST_ENOENT, "%s (`stint ps -a` lists those there are)", said);
    json_decref(doc);
    return r;
}

/* ---- columns -------------------------------------------------------------------------------- */

/* [0,1,2,5] becomes 0-2,5. */
static void add_devices(const json_t *list, st_strbuf *out)
{
    size_t n = json_array_size(list);
    const char *sep = "";

    for (size_t i = 0, to; i < n; i = to + 1) {
        json_int_t first = json_integer_value(json_array_get(list, i));

        for (to = i; to + 1 < n && json_integer_value(json_array_get(list, to + 1)) ==
                                       first + (json_int_t)(to + 1 - i);)
            to++;
        st_strbuf_addf(out, "%s%lld", sep, (long long)first);
        if (to > i)
            st_strbuf_addf(out, "-%lld", (long long)first + (long long)(to - i));
        sep = ",";
    }
}

void st_job_where(const json_t *job, st_strbuf *out)
{
    const char *sep = "";
    json_t *grant;
    size_t i;

    json_array_foreach(st_view_at(job, "placement.grants"), i, grant)
    {
        st_strbuf_addf(out, "%s%s:", sep, st_view_text(grant, "node"));
        add_devices(json_object_get(grant, "gpus"), out);
        if (st_view_at(grant, "mig_start"))
            st_strbuf_addf(out, "@%lld",
                           (long long)json_integer_value(st_view_at(grant, "mig_start")));
        sep = " ";
    }
}

void st_job_took(const json_t *job, st_strbuf *out)
{
    int64_t since = st_view_time(job, "running_since");
    char buf[ST_FMT_MAX];

    if (!st_view_at(job, "run_seconds"))
        return;
    st_fmt_age(buf, st_view_milli(job, "run_seconds") +
                        (since < 0 ? 0 : ST_MAX(st_cli_wall_ms() - since, 0)));
    st_strbuf_add(out, buf);
}

static void put_deadline(const json_t *job, st_strbuf *out)
{
    static const st_view_column by = {"DEADLINE", "deadline.by", ST_VIEW_TIME, NULL};

    if (!st_view_at(job, "deadline"))
        return;
    st_view_cell(job, &by, false, 0, out);
    st_strbuf_addf(out, " %s", st_view_text(job, "deadline.state"));
}

/* The last ones, from OPTIONAL on, are for tables in which a job has one. */
static const st_view_column ps_columns[] = {
    {"ID", "id", ST_VIEW_TEXT, NULL},
    {"NAME", "name", ST_VIEW_TEXT, NULL},
    {"ACCOUNT", "account", ST_VIEW_TEXT, NULL},
    {"USER", "user", ST_VIEW_TEXT, NULL},
    {"STATE", "state", ST_VIEW_TEXT, NULL},
    {"CLASS", "class", ST_VIEW_TEXT, NULL},
    {"GPUS", "gpus", ST_VIEW_NUM, NULL},
    {"AGE", "submitted", ST_VIEW_AGE, NULL},
    {"TOOK", NULL, ST_VIEW_FN, st_job_took},
    {"WHERE", NULL, ST_VIEW_FN, st_job_where},
    {"DEADLINE", NULL, ST_VIEW_FN, put_deadline},
    {"PRIORITY CLASS", "priority_class", ST_VIEW_TEXT, NULL},
    {0},
};
#define PS_COLUMNS ST_ARRAY_LEN(ps_columns)
static const char *const optional[] = {"deadline", "priority_class"};
#define OPTIONAL (PS_COLUMNS - 1 - ST_ARRAY_LEN(optional))

static void put_ps(st_cli *cli, st_cli_format format, const json_t *jobs)
{
    st_view_column columns[PS_COLUMNS] = {0};
    size_t n = OPTIONAL, i;
    const json_t *job;

    memcpy(columns, ps_columns, n * sizeof columns[0]);
    for (size_t k = 0; k < ST_ARRAY_LEN(optional); k++) {
        bool any = format == ST_CLI_CSV; /* whose columns are always the same */

        json_array_foreach(jobs, i, job) any = any || st_view_at(job, optional[k]);
        if (any)
            columns[n++] = ps_columns[OPTIONAL + k];
    }
    st_view_rows(cli, format, jobs, columns);
}

/* ---- ps ---------------------------------------------------------------------------------------- */

typedef struct ps_flags {
    st_cli *cli;
    st_client *client;
    st_cli_format format;
    bool all, watch;
    const char *user, *account, *name;
    st_cli_words states;
    int64_t limit;
} ps_flags;

const st_cli_row st_cli_ps_options[] = {
    {"all", 'a', ST_CLI_FLAG, offsetof(ps_flags, all), NULL, "include jobs that have ended", 0, 0},
    {"user", 'u', ST_CLI_STRING, offsetof(ps_flags, user), "USER", "jobs of this user", 0, 0},
    {"account", 'A', ST_CLI_STRING, offsetof(ps_flags, account), "ACCOUNT",
     "jobs of this account and those below it", 0, 0},
    {"state", 's', ST_CLI_MANY, offsetof(ps_flags, states),
     "pending|running|notified|checkpointing|paused|stopping|done|failed|timeout|cancelled",
     "jobs in this state; repeatable", 0, 0},
    {"name", 'n', ST_CLI_STRING, offsetof(ps_flags, name), "TEXT", "jobs whose name contains this",
     0, 0},
    {"limit", 'l', ST_CLI_I64, offsetof(ps_flags, limit), "N", "number of rows (default: 200)", 1,
     1000},
    {"watch", 'w', ST_CLI_FLAG, offsetof(ps_flags, watch), NULL,
     "repeat every two seconds until Ctrl-C", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(ps_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

static void add_query(st_strbuf *path, const char *key, const char *value)
{
    if (!value)
        return;
    st_strbuf_addf(path, "&%s=", key);
    st_url_add(path, value);
}

/* A page looks at so many jobs and no more: further ones until there are as many rows as wanted. */
static int add_pages(const ps_flags *f, const st_strbuf *path, json_t *doc, st_err *err)
{
    json_t *rows = json_object_get(doc, "jobs");
    int r = 0;

    while (r == 0 && json_object_get(doc, "next") && (int64_t)json_array_size(rows) < f->limit) {
        ST_CLEANUP(st_response_done) st_response response = {0};
        ST_CLEANUP(st_strbuf_done) st_strbuf more = {0};
        json_t *page = NULL;

        st_strbuf_add(&more, st_strbuf_str(path));
        add_query(&more, "cursor", st_view_text(doc, "next"));
        r = st_client_json(f->client, &(st_request){.path = st_strbuf_str(&more)}, &page, &response,
                           err);
        if (r < 0)
            break;
        json_array_extend(rows, json_object_get(page, "jobs"));
        if (json_object_get(page, "next"))
            json_object_set(doc, "next", json_object_get(page, "next"));
        else
            json_object_del(doc, "next");
        json_decref(page);
    }
    return r;
}

static int show_ps(void *ctx, st_err *err)
{
    static const char *const live[] = {"pending",       "running", "notified",
                                       "checkpointing", "paused",  "stopping"};
    ps_flags *f = ctx;
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc;
    int r;

    st_strbuf_addf(&path, "/v1/jobs?limit=%lld", (long long)f->limit);
    add_query(&path, "user", f->user);
    add_query(&path, "account", f->account);
    add_query(&path, "name", f->name);
    for (int i = 0; i < f->states.n; i++)
        add_query(&path, "state", f->states.v[i]);
    for (size_t i = 0; !f->all && f->states.n == 0 && i < ST_ARRAY_LEN(live); i++)
        add_query(&path, "state", live[i]);
    r = st_client_json(f->client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response,
                       err);
    if (r < 0)
        return r;
    if (f->format == ST_CLI_JSON)
        st_view_raw(f->cli, &response);
    else
        r = add_pages(f, &path, doc, err);
    if (r == 0 && f->format != ST_CLI_JSON)
        put_ps(f->cli, f->format, st_view_at(doc, "jobs"));
    if (r == 0 && f->format != ST_CLI_JSON && st_view_at(doc, "next"))
        fprintf(f->cli->errors, "There are more; --limit shows up to 1000.\n");
    json_decref(doc);
    return r;
}

int st_cli_ps(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ps_flags f = {.cli = cli, .limit = 200};
    int r = st_cli_read(argc, argv, st_cli_ps_options, &f, 0, 0, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    f.client = client;
    return r < 0 ? r : st_view_watch(cli, f.watch, show_ps, &f, err);
}

/* ---- one job ------------------------------------------------------------------------------------ */

typedef struct job_flags {
    st_cli_format format;
} job_flags;

const st_cli_row st_cli_job_options[] = {
    {"output", 'o', ST_CLI_LISTING, offsetof(job_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

/* As it would be typed into a shell. */
static void add_command(const json_t *job, st_strbuf *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%^";
    json_t *word;
    size_t i;

    json_array_foreach(st_view_at(job, "spec.command"), i, word)
    {
        const char *text = json_string_value(word);

        st_strbuf_add(out, i > 0 ? " " : "");
        if (text && *text && strspn(text, plain) == strlen(text)) {
            st_strbuf_add(out, text);
            continue;
        }
        st_strbuf_addc(out, '\'');
        for (; text && *text; text++) {
            if (*text == '\'')
                st_strbuf_add(out, "'\\''");
            else
                st_strbuf_addc(out, *text);
        }
        st_strbuf_addc(out, '\'');
    }
}

static const st_view_column job_columns[] = {
    {"Job", "id", ST_VIEW_TEXT, NULL},
    {"Name", "name", ST_VIEW_TEXT, NULL},
    {"Account", "account", ST_VIEW_TEXT, NULL},
    {"User", "user", ST_VIEW_TEXT, NULL},
    {"State", "state", ST_VIEW_TEXT, NULL},
    {"Class", "class", ST_VIEW_TEXT, NULL},
    {"Priority", "priority", ST_VIEW_NUM, NULL},
    {"Priority class", "priority_class", ST_VIEW_TEXT, NULL},
    {"GPUs", "gpus", ST_VIEW_NUM, NULL},
    {"Tasks", "spec.tasks", ST_VIEW_NUM, NULL},
    {"Type", "placement.type", ST_VIEW_TEXT, NULL},
    {"Where", NULL, ST_VIEW_FN, st_job_where},
    {"Submitted", "submitted", ST_VIEW_TIME, NULL},
    {"Started", "started", ST_VIEW_TIME, NULL},
    {"Ended", "ended", ST_VIEW_TIME, NULL},
    {"Took", NULL, ST_VIEW_FN, st_job_took},
    {"Limit", "spec.limit", ST_VIEW_TEXT, NULL},
    {"Limit now", "limit_seconds", ST_VIEW_SECONDS, NULL},
    {"Deadline", "deadline.by", ST_VIEW_TIME, NULL},
    {"Deadline state", "deadline.state", ST_VIEW_TEXT, NULL},
    {"On preempt", "spec.on_preempt", ST_VIEW_TEXT, NULL},
    {"Workload", "spec.workload", ST_VIEW_TEXT, NULL},
    {"Estimate", "spec.estimate", ST_VIEW_TEXT, NULL},
    {"Command", NULL, ST_VIEW_FN, add_command},
    {"Image", "spec.image", ST_VIEW_TEXT, NULL},
    {"Environment", "spec.env", ST_VIEW_WORDS, NULL},
    {"Exit status", "exit_code", ST_VIEW_NUM, NULL},
    {"Reason", "reason", ST_VIEW_TEXT, NULL},
    {"Preemptions", "preemptions", ST_VIEW_NUM, NULL},
    {"GPU time lost", "lost_gpu_seconds", ST_VIEW_SECONDS, NULL},
    {0},
};

/* Shows the one thing that is named, from a path that ends with its name. */
static int show_one(st_cli *cli, int argc, char **argv, const char *folder,
                    const st_view_column *columns, bool near, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    job_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_job_options, &f, 1, 1, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_add(&path, folder);
    st_url_add(&path, argv[1]);
    r = st_view_one(cli, client, f.format, st_strbuf_str(&path), columns, err);
    return r < 0 && near ? st_job_near(client, argv[1], r, err) : r;
}

int st_cli_show(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show_one(cli, argc, argv, "/v1/jobs/", job_columns, true, err);
}

static const st_view_column array_columns[] = {
    {"Array", "array", ST_VIEW_TEXT, NULL},
    {"Name", "name", ST_VIEW_TEXT, NULL},
    {"Jobs", "jobs", ST_VIEW_NUM, NULL},
    {"Done", "states.done", ST_VIEW_NUM, NULL},
    {"Running", "states.running", ST_VIEW_NUM, NULL},
    {"Pending", "states.pending", ST_VIEW_NUM, NULL},
    {"Failed", "states.failed", ST_VIEW_NUM, NULL},
    {"Timed out", "states.timeout", ST_VIEW_NUM, NULL},
    {"Cancelled", "states.cancelled", ST_VIEW_NUM, NULL},
    {"Frames", "frames", ST_VIEW_NUM, NULL},
    {"Frames done", "frames_done", ST_VIEW_NUM, NULL},
    {0},
};

int st_cli_array(st_cli *cli, int argc, char **argv, st_err *err)
{
    return show_one(cli, argc, argv, "/v1/arrays/", array_columns, false, err);
}

static void print_estimate(st_cli *cli, const json_t *doc)
{
    int64_t now = st_cli_wall_ms(), start = st_view_time(doc, "start_estimate");
    int64_t from = st_view_time(doc, "start_earliest"), to = st_view_time(doc, "start_latest");
    char in[ST_FMT_MAX], a[ST_FMT_MAX], b[ST_FMT_MAX];

    if (start < 0)
        return;
    st_fmt_age(in, start - now);
    fprintf(cli->out, "It should start in %s", in);
    if (from >= 0 && to >= 0) {
        st_fmt_age(a, from - now);
        st_fmt_age(b, to - now);
        fprintf(cli->out, ", between %s and %s (8 in 10 past estimates fell in such a range)", a,
                b);
    }
    fprintf(cli->out, ".\n");
}

/* Its class, the priorities of that, and whether it preempts. */
static void print_class(st_cli *cli, const json_t *doc)
{
    const json_t *class = st_view_at(doc, "priority_class");

    if (!class)
        return;
    fprintf(cli->out, "Its class is %s: ", st_view_text(class, "name"));
    if (st_view_at(class, "lowest"))
        fprintf(cli->out, "priorities %lld to %lld, ",
                (long long)json_integer_value(st_view_at(class, "lowest")),
                (long long)json_integer_value(st_view_at(class, "highest")));
    fprintf(cli->out, "the job has %lld and %s.\n",
            (long long)json_integer_value(st_view_at(class, "priority")),
            json_is_true(st_view_at(class, "preempt"))
                ? "may preempt"
                : "preempts only for what its account is guaranteed");
}

static void print_why(st_cli *cli, const json_t *doc)
{
    const char *state = st_view_text(doc, "state");
    char in[ST_FMT_MAX];
    json_t *reason;
    size_t i;

    fprintf(cli->out, "Job %s is %s.\n", st_view_text(doc, "job"), state);
    print_class(cli, doc);
    json_array_foreach(st_view_at(doc, "reasons"), i, reason)
    {
        int64_t until = st_view_time(reason, "until");

        fprintf(cli->out, "  %c %s", json_is_true(st_view_at(reason, "blocks")) ? '*' : ' ',
                st_view_text(reason, "text"));
        if (until >= 0) {
            st_fmt_age(in, until - st_cli_wall_ms());
            fprintf(cli->out, " (for %s)", in);
        }
        fprintf(cli->out, "\n");
    }
    if (i > 0)
        fprintf(cli->out, "* blocks the start; the rest explains.\n");
    print_estimate(cli, doc);
}

/* Of one that is over nothing is asked any more: how it ended is all there is to say. */
static int print_end(st_cli *cli, st_client *client, const char *id, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc;
    int r;

    st_job_path(&path, id, "");
    r = st_client_get(client, st_strbuf_str(&path), &doc, err);
    if (r < 0)
        return r;
    fprintf(cli->out, "Job %s is over: %s.\n", st_view_text(doc, "id"), st_view_text(doc, "state"));
    if (st_view_text(doc, "reason")[0])
        fprintf(cli->out, "    %s\n", st_view_text(doc, "reason"));
    json_decref(doc);
    return 0;
}

int st_cli_why(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    ST_CLEANUP(st_response_done) st_response response = {0};
    static const st_view_column columns[] = {
        {"CODE", "code", ST_VIEW_TEXT, NULL},
        {"BLOCKS", "blocks", ST_VIEW_TEXT, NULL},
        {"TEXT", "text", ST_VIEW_TEXT, NULL},
        {"UNTIL", "until", ST_VIEW_TIME, NULL},
        {0},
    };
    job_flags f = {0};
    json_t *doc;
    int r = st_cli_read(argc, argv, st_cli_job_options, &f, 1, 1, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_job_path(&path, argv[1], "/why");
    r = st_client_json(client, &(st_request){.path = st_strbuf_str(&path)}, &doc, &response, err);
    if (r < 0)
        return st_job_near(client, argv[1], r, err);
    if (f.format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else if (f.format == ST_CLI_CSV)
        st_view_rows(cli, f.format, st_view_at(doc, "reasons"), columns);
    else if (strcmp(st_view_text(doc, "state"), "over") == 0)
        r = print_end(cli, client, argv[1], err);
    else
        print_why(cli, doc);
    json_decref(doc);
    return r;
}

/* ---- changing ------------------------------------------------------------------------------------ */

/* Does the request for one job and says what it is now, with what was changed. */
static int change(st_cli *cli, st_client *client, st_request request, const char *id,
                  const char *key, st_cli_format format, st_err *err)
{
    char buf[ST_FMT_MAX];
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *job;
    int r;

    st_job_path(&path, id, "");
    request.path = st_strbuf_str(&path);
    r = st_client_json(client, &request, &job, &response, err);
    if (r < 0)
        return st_job_near(client, id, r, err);
    if (format == ST_CLI_JSON) {
        st_view_raw(cli, &response);
    } else {
        const char *state = st_view_text(job, "state");
        bool ending = !request.body && strcmp(state, "stopping") == 0;

        fprintf(cli->out, "job %s (%s) is %s", st_view_text(job, "id"), st_view_text(job, "name"),
                ending ? "cancelled, and over when its nodes have ended it" : state);
        if (key && strcmp(key, "limit") == 0)
            fprintf(cli->out, ", time limit %s",
                    json_is_null(json_object_get(job, "limit_seconds"))
                        ? "none"
                        : st_fmt_duration(buf, st_view_milli(job, "limit_seconds")));
        else if (key)
            fprintf(cli->out, ", priority %lld", (long long)st_view_milli(job, "priority") / 1000);
        fprintf(cli->out, "\n");
    }
    json_decref(job);
    return 0;
}

typedef struct cancel_flags {
    st_cli_format format;
    bool only;
} cancel_flags;

const st_cli_row st_cli_cancel_options[] = {
    {"only", 0, ST_CLI_FLAG, offsetof(cancel_flags, only), NULL,
     "cancel only the first job of an array", 0, 0},
    {"output", 'o', ST_CLI_LISTING, offsetof(cancel_flags, format), "table|json|csv",
     "output format (default: table)", 0, 0},
    {0},
};

/* An array goes by the id of its first job. 1: it is none. */
static int cancel_array(st_cli *cli, st_client *client, const char *id, st_cli_format format,
                        st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc;
    int r;

    st_strbuf_add(&path, "/v1/arrays/");
    st_url_add(&path, id);
    r = st_client_json(client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                       &doc, &response, err);
    if (r == -ST_ENOENT)
        return 1;
    if (r < 0)
        return r;
    if (format == ST_CLI_JSON)
        st_view_raw(cli, &response);
    else
        fprintf(cli->out, "array %s (%s): %lld of %lld jobs cancelled\n", id,
                st_view_text(doc, "name"), (long long)st_view_milli(doc, "cancelled") / 1000,
                (long long)st_view_milli(doc, "jobs") / 1000);
    json_decref(doc);
    return 0;
}

/* All are tried; what failed is told for each, and the first failure decides the status. */
int st_cli_cancel(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    cancel_flags f = {0};
    int n, status = 0;
    int r = st_cli_read(argc, argv, st_cli_cancel_options, &f, 1, INT32_MAX, &n, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    for (int i = 1; r == 0 && i <= n; i++) {
        int e = f.only ? 1 : cancel_array(cli, client, argv[i], f.format, err);

        if (e == 1)
            e = change(cli, client, (st_request){.method = "DELETE"}, argv[i], NULL, f.format, err);
        if (e < 0 && n == 1)
            return e;
        if (e < 0) {
            fprintf(cli->errors, "stint: %s\n", err->msg);
            status = status ? status : st_err_exit(e);
        }
    }
    return r < 0 ? r : status;
}

/* A PATCH of one field of a job. */
static int change_field(st_cli *cli, int argc, char **argv, const char *key, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    job_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_job_options, &f, 2, 2, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_addf(&body, "{\"%s\":", key);
    st_quote_json(&body, argv[2]);
    st_strbuf_addc(&body, '}');
    return change(cli, client, (st_request){.method = "PATCH", .body = st_strbuf_str(&body)},
                  argv[1], key, f.format, err);
}

int st_cli_priority(st_cli *cli, int argc, char **argv, st_err *err)
{
    return change_field(cli, argc, argv, "priority", err);
}

int st_cli_limit(st_cli *cli, int argc, char **argv, st_err *err)
{
    return change_field(cli, argc, argv, "limit", err);
}
