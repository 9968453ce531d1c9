/*
 * The output of tasks (cli/job_log.h).
 */
#include "cli/job_log.h"

#include <signal.h>
#include <string.h>

#include "base/mem.h"
#include "cli/spinner.h"

/* How long nothing must have come of a job that is over until its log counts as read. What has had its time may write
 * while it is told to stop. */
#define QUIET_MS      400
#define QUIET_STOP_MS 3000
#define DRAIN_MAX_MS  60000
#define STEP_MS       100

void st_job_log_done(st_job_log *log)
{
    st_strbuf_done(&log->line);
}

static void write_line(const st_cli *cli, const st_job_log *log, const char *text, size_t n)
{
    fprintf(cli->out, "[%lld] ", (long long)log->task);
    fwrite(text, 1, n, cli->out);
}

/* Lines of several tasks are not mixed: what has no end waits for it. `last`: it will not come. */
static void write_lines(const st_cli *cli, st_job_log *log, const st_strbuf *text, bool last)
{
    const char *at;
    size_t from = 0;

    st_strbuf_addn(&log->line, st_strbuf_str(text), text->n);
    while ((at = memchr(st_strbuf_str(&log->line) + from, '\n', log->line.n - from))) {
        size_t end = (size_t)(at - st_strbuf_str(&log->line)) + 1;

        write_line(cli, log, st_strbuf_str(&log->line) + from, end - from);
        from = end;
    }
    if (last && from < log->line.n) {
        write_line(cli, log, st_strbuf_str(&log->line) + from, log->line.n - from);
        fputc('\n', cli->out);
        from = log->line.n;
    }
    if (from > 0) {
        ST_CLEANUP(st_strbuf_done) st_strbuf rest = {0};

        st_strbuf_addn(&rest, st_strbuf_str(&log->line) + from, log->line.n - from);
        st_strbuf_clear(&log->line);
        st_strbuf_addn(&log->line, st_strbuf_str(&rest), rest.n);
    }
}

static void write_text(const st_cli *cli, st_job_log *log, const st_strbuf *text, bool last)
{
    if (log->prefix)
        write_lines(cli, log, text, last);
    else
        fwrite(st_strbuf_str(text), 1, text->n, cli->out);
    fflush(cli->out);
}

void st_job_log_flush(st_cli *cli, st_job_log *log)
{
    const st_strbuf none = {0};

    write_text(cli, log, &none, true);
}

static int ask(st_client *client, st_job_log *log, st_response *ret, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    int r;

    st_job_path(&path, log->id, "/logs");
    st_strbuf_addf(&path, "?task=%lld&offset=%lld", (long long)log->task, (long long)log->offset);
    if (log->stay > 0)
        st_strbuf_addf(&path, "&stay=%lld", (long long)log->stay);
    if (!log->asked && log->tail > 0)
        st_strbuf_addf(&path, "&tail=%lld", (long long)log->tail);
    if (!log->asked && log->since) {
        st_strbuf_add(&path, "&since=");
        st_url_add(&path, log->since);
    }
    r = st_client_call(client, &(st_request){.path = st_strbuf_str(&path)}, ret, err);
    if (r < 0)
        return r;
    log->asked = true;
    log->offset = ret->log.next > 0 ? ret->log.next : log->offset + (int64_t)ret->body.n;
    log->stay = ret->log.stay > 0 ? ret->log.stay : log->stay;
    log->newest = ST_MAX(log->newest, ret->log.newest);
    return 0;
}

/* Onto the next start that has written something. */
static void go_on(st_cli *cli, st_job_log *log)
{
    st_job_log_flush(cli, log);
    log->stay++;
    log->offset = 0;
    if (log->stay == log->newest && (!log->prefix || log->task == 0))
        fprintf(cli->errors, "job %s started again: this is start %lld\n", log->id,
                (long long)log->stay);
}

int st_job_log_next(st_cli *cli, st_client *client, st_job_log *log, int64_t *ret_bytes,
                    st_err *err)
{
    *ret_bytes = 0;
    for (;;) {
        ST_CLEANUP(st_response_done) st_response response = {0};
        int r = ask(client, log, &response, err);

        /* A start in between need not have written anything. */
        if (r < 0 && (r != -ST_ENOENT || log->stay >= log->newest))
            return r;
        if (r == 0 && response.body.n > 0) {
            write_text(cli, log, &response.body, false);
            *ret_bytes = (int64_t)response.body.n;
            return 0;
        }
        if (log->stay == 0 || log->stay >= log->newest)
            return 0;
        go_on(cli, log);
    }
}

void st_job_log_drain(st_cli *cli, st_client *client, st_job_log *logs, int64_t n,
                      const char *state)
{
    bool stopped = strcmp(state, "timeout") == 0 || strcmp(state, "cancelled") == 0;
    int64_t began = st_cli_clock_ms(), news = began, quiet = stopped ? QUIET_STOP_MS : QUIET_MS;
    bool left = false;

    while (!left && st_cli_clock_ms() - news < quiet && st_cli_clock_ms() - began < DRAIN_MAX_MS) {
        for (int64_t i = 0; i < n; i++) {
            st_err ignored;
            int64_t bytes;

            if (st_job_log_next(cli, client, &logs[i], &bytes, &ignored) == 0 && bytes > 0)
                news = st_cli_clock_ms();
        }
        left = st_signals_wait(STEP_MS) != 0;
    }
    for (int64_t i = 0; i < n; i++)
        st_job_log_flush(cli, &logs[i]);
}
