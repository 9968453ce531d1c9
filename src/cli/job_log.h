/*
 * The output of tasks, read bit by bit: where one is in it, over restarts of the job, and how it is printed.
 */
#ifndef ST_CLI_JOB_LOG_H
#define ST_CLI_JOB_LOG_H

#include "cli/jobs.h"

typedef struct st_job_log {
    const char *id;
    int64_t task;
    int64_t stay,
        offset; /* where to go on: the start of the job, counted from 1 (0: the last), and the byte */
    int64_t tail;      /* of the first question: lines from the end, 0: all */
    const char *since; /* and from when on; NULL: from the first byte */
    bool prefix;       /* each line begins with the task's number, and is written whole */
    int64_t newest;    /* the last start that has written anything */
    bool asked;
    st_strbuf line; /* with a prefix: what has no end yet */
} st_job_log;

void st_job_log_done(st_job_log *log);

/* Asks for what is next and writes it. Where the job has started again and the start before has nothing more, it goes on
 * with the next start and says so on `errors`. *ret_bytes: how much came. -ST_ENOENT: nothing has been written yet. */
int st_job_log_next(st_cli *cli, st_client *client, st_job_log *log, int64_t *ret_bytes,
                    st_err *err);

/* With a prefix: writes what has no end yet, as a line. */
void st_job_log_flush(st_cli *cli, st_job_log *log);

/* Of a job that is over: reads on until nothing more comes. A node sends what was written last after it has said that
 * the task ended. Ctrl-C ends it. */
void st_job_log_drain(st_cli *cli, st_client *client, st_job_log *logs, int64_t n,
                      const char *state);

#endif
