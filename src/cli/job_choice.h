/*
 * Which jobs: the options that `ps`, `cancel` and `priority` choose by, and lists of any length, fetched page by page.
 */
#ifndef ST_CLI_JOB_CHOICE_H
#define ST_CLI_JOB_CHOICE_H

#include "cli/jobs.h"

typedef struct st_job_choice {
    const char *user, *account, *name, *array, *since, *until;
    st_cli_words states, labels;
} st_job_choice;

#define ST_JOB_PAGE_MAX 1000 /* rows that the server gives at once */

#define ST_JOB_STATES \
    "pending|running|notified|checkpointing|paused|stopping|done|failed|timeout|cancelled"

/* For a table of options whose struct has an st_job_choice `choice`. */
#define ST_JOB_CHOICE_ROWS(type)                                                                  \
    {"user", 'u', ST_CLI_STRING, offsetof(type, choice.user), "USER", "jobs of this user", 0, 0}, \
        {"account",                                                                               \
         'A',                                                                                     \
         ST_CLI_STRING,                                                                           \
         offsetof(type, choice.account),                                                          \
         "ACCOUNT",                                                                               \
         "jobs of this account and those below it",                                               \
         0,                                                                                       \
         0},                                                                                      \
        {"label",                                                                                 \
         'L',                                                                                     \
         ST_CLI_MANY,                                                                             \
         offsetof(type, choice.labels),                                                           \
         "NAME=VALUE",                                                                            \
         "jobs with this label; repeatable: jobs with all of them",                               \
         0,                                                                                       \
         0},                                                                                      \
        {"state",                                                                                 \
         's',                                                                                     \
         ST_CLI_MANY,                                                                             \
         offsetof(type, choice.states),                                                           \
         ST_JOB_STATES,                                                                           \
         "jobs in this state; repeatable",                                                        \
         0,                                                                                       \
         0},                                                                                      \
    {                                                                                             \
        "name", 'n', ST_CLI_STRING, offsetof(type, choice.name), "TEXT",                          \
            "jobs whose name contains this", 0, 0                                                 \
    }

/* Whether anything is chosen at all. */
bool st_job_chosen(const st_job_choice *c);

/* The path of a list: of what is not over unless states are chosen or `all`; `fields` NULL is every field. */
void st_job_choice_path(const st_job_choice *c, bool all, const char *fields, int64_t limit,
                        st_strbuf *out);

#endif
