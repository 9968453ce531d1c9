/*
 * Staying with a job: logs, and the wait for its end (`run`, `submit --wait`).
 *
 * News comes by the event stream; once in a while the job is asked for itself, so that a stream
 * that is cut off, or a stintd that is started again, is only a pause.
 */
#include <signal.h>
#include <string.h>

#include "cli/attach.h"
#include "cli/job_log.h"
#include "cli/spinner.h"

#define ASK_MS     1000
#define STEP_MS    200
#define LOST_TRIES 60   /* seconds without an answer until we give up */
#define JOIN_MS    5000 /* for a task that runs to be joined, until its output is read instead */

typedef struct follower {
    st_cli *cli;
    st_client *client;
    const char *id;
    st_events *events;
    bool logs, asked;
    bool joins;      /* the task, while it runs */
    bool told_end;   /* of it, by the task itself */
    int64_t join_ms; /* when that was first tried, of this start; 0: it was not */
    st_attach_to join;
    int lost;
    st_job_log log; /* of the first task */
    char state[24];
    st_spinner spinner;
} follower;

static int get_job(const follower *f, json_t **ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_job_path(&path, f->id, "");
    return st_client_get(f->client, st_strbuf_str(&path), ret, err);
}

static void tell_state(follower *f, const json_t *job)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf where = {0};
    const char *state = st_view_text(job, "state");

    if (strcmp(state, f->state) == 0)
        return;
    snprintf(f->state, sizeof f->state, "%s", state);
    st_spinner_done(&f->spinner);
    fprintf(f->cli->errors, "job %s ", f->id);
    if (strcmp(state, "failed") == 0) {
        fprintf(f->cli->errors, "failed with status %d%s%s\n", st_job_status(job),
                st_view_text(job, "reason")[0] ? ": " : "", st_view_text(job, "reason"));
    } else if (strcmp(state, "timeout") == 0) {
        fprintf(f->cli->errors, "ended at its time limit\n");
    } else {
        if (!st_job_over(state))
            st_job_where(job, &where);
        fprintf(f->cli->errors, "is %s%s%s%s\n", state, where.n ? " on " : "",
                st_strbuf_str(&where),
                strcmp(state, "pending") == 0 ? " (`stint why` says why)" : "");
    }
    fflush(f->cli->errors);
}

/* What a log lacks is no reason to stop following the job. */
static void tell_log(follower *f)
{
    int64_t bytes;
    st_err quiet;

    if (!f->logs || strcmp(f->state, "pending") == 0 || f->state[0] == '\0')
        return;
    st_spinner_done(&f->spinner);
    (void)st_job_log_next(f->cli, f->client, &f->log, &bytes, &quiet);
}

/* The output goes on where it stopped when we were joined to the task. */
static void read_on(follower *f)
{
    f->joins = false;
    f->logs = true;
    if (f->join.joined) {
        f->log.stay = f->join.stay;
        f->log.offset = f->join.from;
    }
}

/* 1: it was left; 0: go on. A task that was joined to its end has nothing more to say. */
static int join(follower *f)
{
    st_err why = {0};
    int r;

    if (!f->joins || strcmp(f->state, "pending") == 0 || st_job_over(f->state))
        return 0;
    if (f->join_ms == 0)
        f->join_ms = st_cli_clock_ms();
    st_spinner_done(&f->spinner);
    r = st_attach_join(&f->join, &why);
    if (f->join.left) {
        fprintf(f->cli->errors, "\njob %s goes on; `stint attach %s` joins it again\n", f->id,
                f->id);
        return 1;
    }
    if (f->join.joined)
        f->told_end = r >= 0;
    if (r >= 0) { /* it may start again */
        f->join.from = 0;
        f->join.joined = false;
        f->join_ms = 0;
    } else if (st_cli_clock_ms() - f->join_ms > JOIN_MS && !f->join.joined && !f->told_end) {
        fprintf(f->cli->errors, "stint: %s; its output follows\n", why.msg);
        read_on(f);
    }
    return 0;
}

/* 1: the job is to be left; 0: go on. */
static int on_signal(follower *f, int sig)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    st_response response = {0};
    st_err why;

    st_spinner_done(&f->spinner);
    if (sig != SIGINT) {
        fprintf(f->cli->errors, "job %s goes on; `stint cancel %s` ends it\n", f->id, f->id);
        return 1;
    }
    if (!f->asked) {
        f->asked = true;
        fprintf(f->cli->errors, "Ctrl-C again cancels job %s; Ctrl-\\ leaves it running.\n", f->id);
        return 0;
    }
    st_job_path(&path, f->id, "");
    if (st_client_call(f->client, &(st_request){.method = "DELETE", .path = st_strbuf_str(&path)},
                       &response, &why) < 0)
        fprintf(f->cli->errors, "stint: %s\n", why.msg);
    st_response_done(&response);
    return 0;
}

static void open_events(follower *f)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};

    st_events_free(f->events);
    st_strbuf_add(&path, "/v1/events?job=");
    st_url_add(&path, f->id);
    f->events = st_events_open(f->client, st_strbuf_str(&path), NULL);
}

/* Waits for news, a signal, or until it is time to ask anyway. 1: leave. */
static int wait_news(follower *f)
{
    int64_t until = st_cli_clock_ms() + ASK_MS;
    char text[100];

    snprintf(text, sizeof text, "job %s is %s", f->id, f->state);
    do {
        st_sse_event ev = {0};
        st_err quiet = {0};
        int sig, r = f->events ? st_events_next(f->events, STEP_MS, &ev, &quiet) : 0;

        st_sse_event_done(&ev);
        if (r < 0) {
            st_events_free(f->events);
            f->events = NULL;
        }
        sig = st_signals_wait(f->events ? 0 : STEP_MS);
        if (sig && on_signal(f, sig))
            return 1;
        if (sig || r > 0)
            return 0;
        st_spinner_turn(&f->spinner, text);
    } while (st_cli_clock_ms() < until);
    return 0;
}

/* Asks how the job is. 0: go on; 1: it is over; or a failure that is not worth waiting for. */
static int look(follower *f, int *ret_status, st_err *err)
{
    json_t *job;
    int over, r = get_job(f, &job, err);

    if (r == -ST_EDOWN && f->lost++ < LOST_TRIES) {
        if (f->lost == 1) {
            st_spinner_done(&f->spinner);
            fprintf(f->cli->errors, "stint: %s (trying again)\n", err->msg);
        }
        return 0;
    }
    if (r < 0)
        return r;
    f->lost = 0;
    tell_state(f, job);
    over = st_job_over(f->state);
    if (over && f->joins && !f->told_end)
        read_on(f);
    if (join(f)) {
        json_decref(job);
        *ret_status = 0;
        return 1;
    }
    tell_log(f);
    if (over && f->logs && f->log.asked)
        st_job_log_drain(f->cli, f->client, &f->log, 1, f->state);
    *ret_status = st_job_status(job);
    json_decref(job);
    if (!over && !f->events)
        open_events(f);
    return over;
}

static int follow(follower *f, st_err *err)
{
    int status = 0, r;

    st_signals_block();
    st_spinner_begin(&f->spinner, f->cli->errors, "");
    open_events(f);
    while ((r = look(f, &status, err)) == 0 && !wait_news(f))
        ;
    st_spinner_done(&f->spinner);
    st_events_free(f->events);
    st_job_log_done(&f->log);
    return r < 0 ? r : r == 0 ? 0 : status;
}

int st_job_follow(st_cli *cli, st_client *client, const char *id, bool logs, st_err *err)
{
    follower f = {.cli = cli, .client = client, .id = id, .logs = logs, .log = {.id = id}};

    return follow(&f, err);
}

int st_job_follow_joined(st_cli *cli, st_client *client, const char *id, st_err *err)
{
    follower f = {.cli = cli,
                  .client = client,
                  .id = id,
                  .joins = true,
                  .join = {.cli = cli, .client = client, .id = id},
                  .log = {.id = id}};

    return follow(&f, err);
}
