/*
 * `stint wait`: until jobs and arrays have ended. Nothing but their ends is told, so it stands well in scripts.
 *
 * Jobs are asked for in turns; with many of them a turn takes longer, so that a wait for a thousand jobs is no more
 * work for stintd than one for ten. A stintd that is started again is only a pause.
 */
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/jobs.h"
#include "cli/spinner.h"

#define STEP_MS       200
#define ASK_MS        1000 /* between two turns, at least */
#define ASK_EACH_MS   50   /* and for each job that is asked for */
#define LOST_MAX_MS   60000
#define STATUS_LATE   124
#define STATUS_SIGNAL 130

typedef struct wait_flags {
    bool any, quiet;
    const char *timeout;
} wait_flags;

const st_cli_row st_cli_wait_options[] = {
    {"any", 0, ST_CLI_FLAG, offsetof(wait_flags, any), NULL,
     "end as soon as one of them has ended, with its status", 0, 0},
    {"timeout", 't', ST_CLI_STRING, offsetof(wait_flags, timeout), "DURATION",
     "give up after this time, with status 124", 0, 0},
    {"quiet", 'q', ST_CLI_FLAG, offsetof(wait_flags, quiet), NULL, "print nothing", 0, 0},
    {0},
};

typedef struct waited {
    const char *id;
    bool array, over;
    int status;
} waited;

typedef struct waiter {
    st_cli *cli;
    st_client *client;
    const wait_flags *f;
    ST_VEC(waited) jobs;
    size_t left;
    int64_t lost_since; /* 0: stintd answers */
    int status;         /* of the first, in their order, that did not end well */
} waiter;

static int64_t in_state(const json_t *array, const char *state)
{
    char key[40];

    snprintf(key, sizeof key, "states.%s", state);
    return st_view_milli(array, key) / 1000;
}

/* An array has ended when all its jobs have; its status is 0 when all are done. */
static bool array_over(const json_t *doc, int *ret_status)
{
    int64_t jobs = st_view_milli(doc, "jobs") / 1000, done = in_state(doc, "done");
    int64_t late = in_state(doc, "timeout"), cancelled = in_state(doc, "cancelled");
    int64_t failed = in_state(doc, "failed");

    *ret_status = done == jobs ? 0 : failed > 0 ? 1 : late > 0 ? 124 : 130;
    return done + late + cancelled + failed == jobs;
}

static void tell(const waiter *w, const waited *one, const json_t *doc)
{
    const char *state = one->array ? (one->status ? "over" : "done") : st_view_text(doc, "state");

    if (w->f->quiet)
        return;
    fprintf(w->cli->out, "%s %s (%s) is %s", one->array ? "array" : "job", one->id,
            st_view_text(doc, "name"), state);
    if (one->array && one->status)
        fprintf(w->cli->out, ": %lld of %lld jobs are done", (long long)in_state(doc, "done"),
                (long long)st_view_milli(doc, "jobs") / 1000);
    else if (one->status)
        fprintf(w->cli->out, ", status %d%s%s", one->status,
                st_view_text(doc, "reason")[0] ? ": " : "", st_view_text(doc, "reason"));
    fprintf(w->cli->out, "\n");
    fflush(w->cli->out);
}

/* 0, or a failure that is not worth waiting for. */
static int ask(waiter *w, waited *one, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *doc = NULL;
    int r;

    if (one->array) {
        st_strbuf_add(&path, "/v1/arrays/");
        st_url_add(&path, one->id);
    } else {
        st_job_path(&path, one->id, "");
    }
    r = st_client_get(w->client, st_strbuf_str(&path), &doc, err);
    if (r == -ST_EDOWN) {
        if (w->lost_since == 0 && !w->f->quiet)
            fprintf(w->cli->errors, "stint: %s (trying again)\n", err->msg);
        w->lost_since = w->lost_since ? w->lost_since : st_cli_clock_ms();
        return st_cli_clock_ms() - w->lost_since > LOST_MAX_MS ? r : 0;
    }
    if (r < 0)
        return one->array ? r : st_job_near(w->client, one->id, r, err);
    w->lost_since = 0;
    one->over =
        one->array ? array_over(doc, &one->status) : st_job_over(st_view_text(doc, "state"));
    if (one->over) {
        if (!one->array)
            one->status = st_job_status(doc);
        tell(w, one, doc);
        w->left--;
    }
    json_decref(doc);
    return 0;
}

/* An id is an array's where there is one of that id. */
static int add(waiter *w, const char *id, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    waited one = {.id = id};
    json_t *doc = NULL;
    int r;

    st_strbuf_add(&path, "/v1/arrays/");
    st_url_add(&path, id);
    r = st_client_get(w->client, st_strbuf_str(&path), &doc, err);
    json_decref(doc);
    if (r < 0 && r != -ST_ENOENT)
        return r;
    one.array = r == 0;
    st_vec_push(&w->jobs, one);
    w->left++;
    return 0;
}

/* 1: the wait is over, w->status says how; 0: not yet. */
static int turn(waiter *w, st_err *err)
{
    for (size_t i = 0; i < w->jobs.n; i++) {
        waited *one = &w->jobs.v[i];
        int r;

        if (one->over)
            continue;
        r = ask(w, one, err);
        if (r < 0)
            return r;
        if (one->over && w->f->any) {
            w->status = one->status;
            return 1;
        }
    }
    if (w->left > 0)
        return 0;
    for (size_t i = 0; i < w->jobs.n && w->status == 0; i++)
        w->status = w->jobs.v[i].status;
    return 1;
}

/* Until the next turn; STATUS_LATE and STATUS_SIGNAL end the wait. */
static int pause_until(const waiter *w, int64_t late_ms, st_spinner *spinner)
{
    int64_t until = st_cli_clock_ms() + ST_MAX((int64_t)ASK_MS, (int64_t)w->left * ASK_EACH_MS);
    char text[60];

    snprintf(text, sizeof text, "%zu not over yet", w->left);
    while (st_cli_clock_ms() < until) {
        if (late_ms >= 0 && st_cli_clock_ms() >= late_ms)
            return STATUS_LATE;
        if (!w->f->quiet)
            st_spinner_turn(spinner, text);
        if (st_signals_wait(STEP_MS))
            return STATUS_SIGNAL;
    }
    return 0;
}

static int wait_all(waiter *w, int64_t late_ms, st_err *err)
{
    ST_CLEANUP(st_spinner_done) st_spinner spinner = {0};
    int r;

    st_signals_block();
    st_spinner_begin(&spinner, w->cli->errors, "");
    for (;;) {
        r = turn(w, err);
        if (r != 0)
            return r < 0 ? r : w->status;
        r = pause_until(w, late_ms, &spinner);
        if (r == STATUS_LATE && !w->f->quiet)
            fprintf(w->cli->errors, "stint: %zu not over after %s\n", w->left, w->f->timeout);
        if (r != 0)
            return r;
    }
}

int st_cli_wait(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    wait_flags f = {0};
    waiter w = {.cli = cli, .f = &f};
    int64_t timeout_ms = -1, began = st_cli_clock_ms();
    int n, r = st_cli_read(argc, argv, st_cli_wait_options, &f, 1, INT32_MAX, &n, err);

    if (r == 0 && f.timeout && st_parse_duration_ms(f.timeout, &timeout_ms, err) < 0)
        r = st_fail_prefix(err, "--timeout: ");
    if (r == 0)
        r = st_client_open(cli->errors, &client, err);
    w.client = client;
    for (int i = 1; r == 0 && i <= n; i++)
        r = add(&w, argv[i], err);
    if (r == 0)
        r = wait_all(&w, timeout_ms < 0 ? -1 : began + timeout_ms, err);
    st_vec_free(&w.jobs);
    return r;
}
