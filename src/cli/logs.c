/*
 * `stint logs`: the output of one task or of all, what there is or, with -f, until the job ends, over its restarts.
 *
 * The exit status is 0 however the job ended: it is the log that was asked for.
 */
#include <string.h>

#include "base/mem.h"
#include "cli/job_log.h"
#include "cli/spinner.h"

#define ASK_MS      1000
#define ASK_EACH_MS 20                 /* and for each task: a wide job is asked for less often */
#define LOST_TRIES  60                 /* turns without an answer until we give up */
#define MUCH        ((int64_t)1 << 20) /* an answer of so many bytes is not the last */
#define TASK_MAX    1000000
#define TAIL_MAX    1000000000

typedef struct logs_flags {
    bool follow, all;
    int64_t task, tail, start;
    const char *since;
} logs_flags;

const st_cli_row st_cli_logs_options[] = {
    {"follow", 'f', ST_CLI_FLAG, offsetof(logs_flags, follow), NULL,
     "follow the output, over restarts, until the job ends or Ctrl-C", 0, 0},
    {"task", 't', ST_CLI_I64, offsetof(logs_flags, task), "N", "task number (default: 0)", 0,
     TASK_MAX},
    {"all", 'a', ST_CLI_FLAG, offsetof(logs_flags, all), NULL,
     "all tasks; each line begins with the task's number", 0, 0},
    {"tail", 'n', ST_CLI_I64, offsetof(logs_flags, tail), "N",
     "begin with the last N lines of each task, 4 MiB at most", 1, TAIL_MAX},
    {"since", 0, ST_CLI_STRING, offsetof(logs_flags, since), "TIME",
     "begin with what was written then: 2026-11-15T08:30:00Z, or 2h for two hours ago", 0, 0},
    {"start", 0, ST_CLI_I64, offsetof(logs_flags, start), "N",
     "output of this start of the job, counted from 1 (default: the last)", 1, INT32_MAX},
    {0},
};

typedef struct reading {
    st_cli *cli;
    st_client *client;
    const char *id;
    const logs_flags *f;
    st_job_log *logs; /* a task each */
    int64_t n;
    char state[24];
    bool over;
} reading;

static void reading_done(reading *r)
{
    for (int64_t i = 0; i < r->n; i++)
        st_job_log_done(&r->logs[i]);
    free(r->logs);
}

static int look(reading *r, int64_t *ret_tasks, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf path = {0};
    json_t *job = NULL;
    int e;

    st_job_path(&path, r->id, "");
    e = st_client_get(r->client, st_strbuf_str(&path), &job, err);
    if (e < 0)
        return e;
    snprintf(r->state, sizeof r->state, "%s", st_view_text(job, "state"));
    r->over = st_job_over(r->state);
    *ret_tasks = ST_MAX(st_view_milli(job, "spec.tasks") / 1000, 1);
    json_decref(job);
    return 0;
}

static void begin(reading *r, int64_t tasks)
{
    r->n = r->f->all ? tasks : 1;
    r->logs = st_xcalloc((size_t)r->n, sizeof *r->logs);
    for (int64_t i = 0; i < r->n; i++)
        r->logs[i] = (st_job_log){.id = r->id,
                                  .task = r->f->all ? i : r->f->task,
                                  .prefix = r->f->all,
                                  .stay = r->f->start,
                                  .tail = r->f->tail,
                                  .since = r->f->since};
}

/* What there is of every task. A task that has not written anything is no failure if another one has. */
static int read_all(reading *r, bool *ret_any, st_err *err)
{
    int first = 0;

    for (int64_t i = 0; i < r->n; i++) {
        st_err why = {0};
        int64_t bytes;
        int e;

        do {
            e = st_job_log_next(r->cli, r->client, &r->logs[i], &bytes, &why);
            *ret_any = *ret_any || e == 0;
        } while (e == 0 && bytes >= MUCH);
        if (e < 0 && e != -ST_ENOENT) {
            *err = why;
            return e;
        }
        if (e < 0 && first == 0) {
            first = e;
            *err = why;
        }
    }
    return *ret_any ? 0 : first;
}

static int follow(reading *r, st_err *err)
{
    int64_t tasks = 0, lost = 0;
    bool any = false;
    int e;

    st_signals_block();
    for (;;) {
        e = look(r, &tasks, err);
        if (e == 0)
            e = read_all(r, &any, err);
        if (e == -ST_EDOWN && lost++ < LOST_TRIES) {
            if (lost == 1)
                fprintf(r->cli->errors, "stint: %s (trying again)\n", err->msg);
            r->over = false;
        } else if (e < 0 && (e != -ST_ENOENT || r->over)) {
            return e;
        } else {
            lost = 0;
        }
        if (r->over)
            st_job_log_drain(r->cli, r->client, r->logs, r->n, r->state);
        if (r->over || st_signals_wait((int)(ASK_MS + r->n * ASK_EACH_MS)))
            return 0;
    }
}

/* Not followed, a line without an end is written as well. */
static int print(reading *r, st_err *err)
{
    bool any = false;
    int e = read_all(r, &any, err);

    for (int64_t i = 0; i < r->n; i++)
        st_job_log_flush(r->cli, &r->logs[i]);
    return e;
}

int st_cli_logs(st_cli *cli, int argc, char **argv, st_err *err)
{
    ST_CLEANUP(st_client_freep) st_client *client = NULL;
    ST_CLEANUP(reading_done) reading r = {.cli = cli};
    logs_flags f = {0};
    int64_t tasks = 1;
    int e = st_cli_read(argc, argv, st_cli_logs_options, &f, 1, 1, NULL, err);

    if (e == 0 && f.all && f.task > 0)
        e = st_fail(err, ST_EINVAL, "give --all or --task, not both");
    if (e == 0)
        e = st_client_open(cli->errors, &client, err);
    if (e < 0)
        return e;
    r.client = client;
    r.id = argv[1];
    r.f = &f;
    e = f.all ? look(&r, &tasks, err) : 0;
    if (e == 0) {
        begin(&r, tasks);
        e = f.follow ? follow(&r, err) : print(&r, err);
    }
    return e < 0 ? st_job_near(client, argv[1], e, err) : 0;
}
