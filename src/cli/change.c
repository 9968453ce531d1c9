/*
 * Changing jobs: cancel, priority, limit; by id, whole arrays, or all that options choose.
 */
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "cli/job_choice.h"
#include "cli/pages.h"
#include "cli/spinner.h"

#define MANY_MAX  1000000
#define SHOWN_MAX 5 /* of the jobs that options have chosen, when a person is asked */

typedef struct change_flags {
    st_cli_format format;
    bool only, yes, dry_run;
    st_job_choice choice;
} change_flags;

#define CHOICE_ROWS                                                                      \
    ST_JOB_CHOICE_ROWS(change_flags),                                                    \
        {"dry-run",   0,                                                                 \
         ST_CLI_FLAG, offsetof(change_flags, dry_run),                                   \
         NULL,        "change nothing; list the jobs that the options choose",           \
         0,           0},                                                                \
        {"yes",       'y',                                                               \
         ST_CLI_FLAG, offsetof(change_flags, yes),                                       \
         NULL,        "do not ask before jobs that the options choose are changed",      \
         0,           0},                                                                \
    {                                                                                    \
        "output", 'o', ST_CLI_LISTING, offsetof(change_flags, format), "table|json|csv", \
            "output format (default: table)", 0, 0                                       \
    }

const st_cli_row st_cli_cancel_options[] = {
    {"only", 0, ST_CLI_FLAG, offsetof(change_flags, only), NULL,
     "cancel only the first job of an array", 0, 0},
    CHOICE_ROWS,
    {0},
};

const st_cli_row st_cli_priority_options[] = {
    {"only", 0, ST_CLI_FLAG, offsetof(change_flags, only), NULL,
     "change only the first job of an array", 0, 0},
    CHOICE_ROWS,
    {0},
};

const st_cli_row st_cli_hold_options[] = {
    {"only", 0, ST_CLI_FLAG, offsetof(change_flags, only), NULL, "only the first job of an array",
     0, 0},
    CHOICE_ROWS,
    {0},
};

/* ---- one ------------------------------------------------------------------------------------ */

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
        else if (key && strcmp(key, "hold") == 0)
            fprintf(cli->out, "%s",
                    strcmp(st_view_text(job, "on_hold"), "") == 0 ? ", released" : ", on hold");
        else if (key)
            fprintf(cli->out, ", priority %lld", (long long)st_view_milli(job, "priority") / 1000);
        fprintf(cli->out, "\n");
    }
    json_decref(job);
    return 0;
}

/* A word; or, of what can be a number, that. */
static void add_body(st_strbuf *body, const char *key, const char *value, bool numeric)
{
    int64_t number;

    st_strbuf_addf(body, "{\"%s\":", key);
    if (numeric && st_parse_i64(value, INT32_MIN, INT32_MAX, &number, NULL) == 0)
        st_strbuf_addf(body, "%lld", (long long)number);
    else
        st_quote_json(body, value);
    st_strbuf_addc(body, '}');
}

int st_cli_limit(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    struct {
        st_cli_format format;
    } f = {0};
    int r = st_cli_read(argc, argv, st_cli_job_options, &f, 2, 2, NULL, err);

    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    if (r < 0)
        return r;
    add_body(&body, "limit", argv[2], false);
    return change(cli, client, (st_request){.method = "PATCH", .body = st_strbuf_str(&body)},
                  argv[1], "limit", f.format, err);
}

/* ---- several -------------------------------------------------------------------------------- */

/* What is done to each of them. All are tried; what failed is told for each, and the first failure decides the
 * status. */
typedef struct deed {
    st_cli *cli;
    st_client *client;
    const change_flags *f;
    st_request request;
    const char *key; /* what is changed; NULL: they are cancelled */
    const char *does;
    int64_t done, failed;
    int status;
} deed;

static void told(deed *d, int r, const st_err *err)
{
    if (r == 0) {
        d->done++;
        return;
    }
    d->failed++;
    fprintf(d->cli->errors, "stint: %s\n", err->msg);
    d->status = d->status ? d->status : st_err_exit(r);
}

static void do_each(deed *d, const json_t *jobs)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner = {0};
    const json_t *job;
    st_err err;
    size_t i;

    st_spinner_begin(&spinner, d->cli->errors, "changing jobs");
    json_array_foreach(jobs, i, job)
    {
        st_spinner_turn(&spinner, NULL);
        told(d,
             change(d->cli, d->client, d->request, st_view_text(job, "id"), d->key, d->f->format,
                    &err),
             &err);
    }
}

/* The pieces of an array that are not over; an array goes by the id of its first job. */
static int list_pieces(const deed *d, const char *id, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    const st_job_choice c = {.array = id};

    st_job_choice_path(&c, false, "id", MANY_MAX, &path);
    return st_pages_get(d->cli->errors, d->client, st_strbuf_str(&path), "jobs", MANY_MAX, ret,
                        err);
}

/* 1: there is no such array. */
static int cancel_array(const deed *d, const char *id, st_err *err)
{
    ST_CLEANUP(st_response_done) st_response response = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc;
    int r;

    st_strbuf_add(&path, "/v1/arrays/");
    st_url_add(&path, id);
    r = st_client_json(d->client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                       &doc, &response, err);
    if (r < 0)
        return r == -ST_ENOENT ? 1 : r;
    if (d->f->format == ST_CLI_JSON)
        st_view_raw(d->cli, &response);
    else
        fprintf(d->cli->out, "array %s (%s): %lld of %lld jobs cancelled\n", id,
                st_view_text(doc, "name"), (long long)st_view_milli(doc, "cancelled") / 1000,
                (long long)st_view_milli(doc, "jobs") / 1000);
    json_decref(doc);
    return 0;
}

/* 1: there is no such array, or nothing of it is left. */
static int change_array(deed *d, const char *id, st_err *err)
{
    json_t *doc = NULL;
    int r = list_pieces(d, id, &doc, err);

    if (r == 0 && json_array_size(st_view_at(doc, "jobs")) == 0)
        r = 1;
    if (r == 0)
        do_each(d, st_view_at(doc, "jobs"));
    json_decref(doc);
    return r;
}

static void do_named(deed *d, const char *id)
{
    st_err err;
    int r = 1;

    if (!d->f->only)
        r = d->key ? change_array(d, id, &err) : cancel_array(d, id, &err);
    if (r == 0 && d->key)
        return; /* told for each */
    if (r == 1)
        r = change(d->cli, d->client, d->request, id, d->key, d->f->format, &err);
    told(d, r, &err);
}

static void list_chosen(const deed *d, const json_t *jobs, bool all)
{
    static const st_view_column columns[] = {
        {"ID", "id", ST_VIEW_TEXT, NULL},           {"NAME", "name", ST_VIEW_TEXT, NULL},
        {"ACCOUNT", "account", ST_VIEW_TEXT, NULL}, {"USER", "user", ST_VIEW_TEXT, NULL},
        {"STATE", "state", ST_VIEW_TEXT, NULL},     {0},
    };
    size_t n = json_array_size(jobs);

    if (all) {
        st_view_rows(d->cli, d->f->format, jobs, columns);
        return;
    }
    for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
        const json_t *job = json_array_get(jobs, i);

        fprintf(d->cli->errors, "  %s  %s (%s, %s)\n", st_view_text(job, "id"),
                st_view_text(job, "name"), st_view_text(job, "account"),
                st_view_text(job, "state"));
    }
    if (n > SHOWN_MAX)
        fprintf(d->cli->errors, "  and %zu more (--dry-run lists them)\n", n - SHOWN_MAX);
}

/* Those that the options choose, of the ones that are not over. */
static int do_chosen(deed *d, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    char question[80];
    json_t *doc = NULL;
    const json_t *jobs;
    int r;

    st_job_choice_path(&d->f->choice, false, "id,name,account,user,state", MANY_MAX, &path);
    r = st_pages_get(d->cli->errors, d->client, st_strbuf_str(&path), "jobs", MANY_MAX, &doc, err);
    if (r < 0)
        return r;
    jobs = st_view_at(doc, "jobs");
    snprintf(question, sizeof question, "%s %zu job%s?", d->does, json_array_size(jobs),
             json_array_size(jobs) == 1 ? "" : "s");
    if (d->f->dry_run) {
        list_chosen(d, jobs, true);
    } else if (json_array_size(jobs) == 0) {
        r = st_fail(err, ST_ENOENT, "no job that has not ended is chosen by these options");
    } else {
        if (!d->f->yes) {
            list_chosen(d, jobs, false);
            r = st_cli_agree(d->cli, question, "look at the jobs with --dry-run", err);
        }
        if (r == 0)
            do_each(d, jobs);
    }
    json_decref(doc);
    return r;
}

/* Ids, or options that choose; not both, so that nobody cancels more than was meant. */
static int do_all(deed *d, int n, char **ids, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    bool chosen = st_job_chosen(&d->f->choice);
    int r = 0;

    if (chosen && n > 0)
        r = st_fail(err, ST_EINVAL, "give ids, or options that choose jobs, not both");
    else if (!chosen && n == 0)
        r = st_fail(err, ST_EINVAL,
                    "give the id of a job, or options that choose jobs (--name, "
                    "--user, --account, --state)");
    else if (!chosen && d->f->dry_run)
        r = st_fail(err, ST_EINVAL, "--dry-run is for options that choose jobs");
    if (r == 0)
        r = st_client_open(d->cli->errors, &client, err);
    if (r < 0)
        return r;
    d->client = client;
    if (chosen) {
        r = do_chosen(d, err);
        if (r == 0 && d->done + d->failed > 1 && d->f->format == ST_CLI_TABLE)
            fprintf(d->cli->errors, "%lld of %lld changed\n", (long long)d->done,
                    (long long)(d->done + d->failed));
    }
    for (int i = 0; i < n; i++)
        do_named(d, ids[i]);
    return r < 0 ? r : d->status;
}

int st_cli_cancel(st_cli *cli, int argc, char **argv, st_err *err)
{
    change_flags f = {0};
    deed d = {.cli = cli, .f = &f, .request = {.method = "DELETE"}, .does = "Cancel"};
    int n, r = st_cli_read(argc, argv, st_cli_cancel_options, &f, 0, INT32_MAX, &n, err);

    return r < 0 ? r : do_all(&d, n, argv + 1, err);
}

static int hold(st_cli *cli, int argc, char **argv, const char *body, const char *does, st_err *err)
{
    change_flags f = {0};
    deed d = {.cli = cli,
              .f = &f,
              .key = "hold",
              .request = {.method = "PATCH", .body = body},
              .does = does};
    int n, r = st_cli_read(argc, argv, st_cli_hold_options, &f, 0, INT32_MAX, &n, err);

    return r < 0 ? r : do_all(&d, n, argv + 1, err);
}

int st_cli_hold(st_cli *cli, int argc, char **argv, st_err *err)
{
    return hold(cli, argc, argv, "{\"hold\":true}", "Hold", err);
}

int st_cli_release(st_cli *cli, int argc, char **argv, st_err *err)
{
    return hold(cli, argc, argv, "{\"hold\":false}", "Release", err);
}

int st_cli_priority(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    change_flags f = {0};
    deed d = {.cli = cli, .f = &f, .key = "priority", .does = "Change the priority of"};
    int n, r = st_cli_read(argc, argv, st_cli_priority_options, &f, 1, INT32_MAX, &n, err);

    if (r < 0)
        return r;
    if (n == 1 && !st_job_chosen(&f.choice))
        return st_fail(err, ST_EINVAL, "priority: an argument is missing: ID PRIORITY");
    add_body(&body, "priority", argv[n], true);
    d.request = (st_request){.method = "PATCH", .body = st_strbuf_str(&body)};
    return do_all(&d, n - 1, argv + 1, err);
}
