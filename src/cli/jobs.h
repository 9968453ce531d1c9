/*
 * What the verbs about jobs share.
 */
#ifndef ST_CLI_JOBS_H
#define ST_CLI_JOBS_H

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/view.h"

/* "/v1/jobs/ID" and a tail, "/why"; the caller frees nothing but the buffer. */
void st_job_path(st_strbuf *out, const char *id, const char *tail);

/* Where r is "there is no such job": adds which one might be meant, by id or by name. Returns r. */
int st_job_near(st_client *client, const char *id, int r, st_err *err);

/* "node07:0-3, node08:0-7"; nothing when it is nowhere. */
void st_job_where(const json_t *job, st_strbuf *out);
/* How long it has run, or ran; nothing before it starts. */
void st_job_took(const json_t *job, st_strbuf *out);

/* Whether the state is one that does not change any more. */
bool st_job_over(const char *state);

/* The exit status that tells how a job ended: its own; 124 when its time was up, 130 when it was
 * cancelled. */
int st_job_status(const json_t *job);

/* Stays with a job until it is over: tells its states and, if asked, what it writes. The result is
 * st_job_status(), or a failure. The first Ctrl-C asks, the second cancels; Ctrl-\ leaves. */
int st_job_follow(st_cli *cli, st_client *client, const char *id, bool logs, st_err *err);
/* The same, joined to its first task while that runs. */
int st_job_follow_joined(st_cli *cli, st_client *client, const char *id, st_err *err);

/* What it used and cost, below its facts; nothing where that is not known. */
void st_job_use(st_cli *cli, st_client *client, const char *id);

/* What would become of a job, after its name: an answer of what-if or of a dry run. */
void st_job_outlook(st_cli *cli, const char *what, const json_t *answer);

#endif
