/*
 * This terminal, or what stands in its place, joined to a command in a job: keys go there as they are typed, what it writes
 * comes here, and its exit status is ours.
 */
#ifndef ST_CLI_SHELL_H
#define ST_CLI_SHELL_H

#include "cli/tunnel.h"

/* Rows and columns of the terminal on standard output; 24 and 80 where there is none. */
void st_shell_size(int *ret_rows, int *ret_cols);

typedef struct st_shell {
    st_cli *cli;
    st_dial *d;
    bool raw;      /* what is there has a terminal of its own */
    bool attached; /* it is a job, which goes on when it is left */
    bool mute;     /* nothing is sent there: a signal leaves */
    int64_t got;   /* how much it has written */
    bool left;     /* by ~. or a signal */
} st_shell;

/* Until what is there ends: its exit status, 128 and the signal that ended it, or a failure. ST_EDOWN: it was left, or the
 * connection ended first. */
int st_shell_join(st_shell *shell, st_err *err);

#endif
