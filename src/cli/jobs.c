/*
 * Looking at one job: show, array, why; and what all verbs about jobs share.
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
        st_strbuf_addf(out, "%s%s", sep, st_view_text(grant, "node"));
        if (json_array_size(json_object_get(grant, "gpus")) > 0)
            st_strbuf_addc(out, ':');
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
    {"Grace", "spec.grace", ST_VIEW_TEXT, NULL},
    {"On fault", "spec.on_fault", ST_VIEW_TEXT, NULL},
    {"Workload", "spec.workload", ST_VIEW_TEXT, NULL},
    {"Estimate", "spec.estimate", ST_VIEW_TEXT, NULL},
    {"Command", NULL, ST_VIEW_FN, add_command},
    {"Image", "spec.image", ST_VIEW_TEXT, NULL},
    {"Environment", "spec.env", ST_VIEW_WORDS, NULL},
    {"Exit status", "exit_code", ST_VIEW_NUM, NULL},
    {"Reason", "reason", ST_VIEW_TEXT, NULL},
    {"On hold by", "on_hold", ST_VIEW_TEXT, NULL},
    {"Retries", "spec.retries", ST_VIEW_NUM, NULL},
    {"Retries used", "retries_used", ST_VIEW_NUM, NULL},
    {"Retry at", "retry_at", ST_VIEW_TIME, NULL},
    {"Comment", "spec.comment", ST_VIEW_TEXT, NULL},
    {"Labels", "spec.labels", ST_VIEW_WORDS, NULL},
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
    if (r == 0 && near && f.format == ST_CLI_TABLE)
        st_job_use(cli, client, argv[1]);
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

typedef struct array_flags {
    st_cli_format format;
    const char *throttle;
} array_flags;

const st_cli_row st_cli_array_options[] = {
    {"throttle", 0, ST_CLI_STRING, offsetof(array_flags, throttle), "N|none",
     "change how many of its jobs run at a time; those that run go on", 0, 0},
    {"output", 'o', ST_CLI_OUTPUT, offsetof(array_flags, format), "table|json",
     "output format (default: table)", 0, 0},
    {0},
};

static int set_throttle(st_client *client, const char *path, const char *text, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    json_t *doc = NULL;
    int64_t n;
    int r;

    st_strbuf_add(&body, "{\"throttle\":null}");
    if (strcmp(text, "none") != 0) {
        if (st_parse_i64(text, 1, INT32_MAX, &n, err) < 0)
            return st_fail_prefix(err, "option --throttle: ");
        st_strbuf_clear(&body);
        st_strbuf_addf(&body, "{\"throttle\":%lld}", (long long)n);
    }
    r = st_client_json(client,
                       &(st_request){.method = "PATCH", .path = path, .body = st_strbuf_str(&body)},
                       &doc, &response, err);
    json_decref(doc);
    return r;
}

int st_cli_array(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    array_flags f = {0};
    int r = st_cli_read(argc, argv, st_cli_array_options, &f, 1, 1, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    st_strbuf_add(&path, "/v1/arrays/");
    st_url_add(&path, argv[1]);
    if (f.throttle)
        r = set_throttle(client, st_strbuf_str(&path), f.throttle, err);
    return r < 0 ? r : st_view_one(cli, client, f.format, st_strbuf_str(&path), array_columns, err);
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

/* How its deadline stands, and how likely a soft one is met. */
static void print_deadline(st_cli *cli, const json_t *doc)
{
    const char *state = st_view_text(doc, "deadline");
    int64_t by = st_view_time(doc, "deadline_by");
    char in[ST_FMT_MAX];

    if (!*state || by < 0)
        return;
    st_fmt_age(in, by - st_cli_wall_ms());
    fprintf(cli->out, "Its deadline in %s is %s.", in,
            strcmp(state, "at_risk") == 0 ? "at risk" : state);
    if (st_view_at(doc, "deadline_odds_percent"))
        fprintf(cli->out, " If it runs to its limit, it is met in about %lld of 100 cases.",
                (long long)json_integer_value(st_view_at(doc, "deadline_odds_percent")));
    fprintf(cli->out, "\n");
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
    print_deadline(cli, doc);
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
