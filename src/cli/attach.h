/*
 * Being joined to a job's own terminal or streams, for `stint attach` and `stint run -it`.
 */
#ifndef ST_CLI_ATTACH_H
#define ST_CLI_ATTACH_H

#include "cli/shell.h"

typedef struct st_attach_to {
    st_cli *cli;
    st_client *client;
    const char *id; /* of the job */
    int64_t task;
    bool read_only;
    int64_t
        from; /* byte of the output to begin at; below 0: so many before its end. At the end: where it stopped */

    bool joined;  /* given: it was */
    int64_t stay; /* and to which start of the job */
    bool left;    /* by ~. or a signal */
} st_attach_to;

/* Until the task ends: its exit status. ST_EDOWN: it was left, or the connection ended first. */
int st_attach_join(st_attach_to *to, st_err *err);

#endif
