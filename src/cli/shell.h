/*
 * This terminal, or what stands in its place, joined to a command in a job: keys go there as they are typed, what it writes
 * comes here, and its exit status is ours.
 */
#ifndef ST_CLI_SHELL_H
#define ST_CLI_SHELL_H

#include "cli/tunnel.h"

/* Rows and columns of the terminal on standard output; 24 and 80 where there is none. */
void st_shell_size(int *ret_rows, int *ret_cols);

/* Until the command ends: its exit status, 128 and the signal that ended it, or a failure. `raw`: it has a terminal of its
 * own. ST_EDOWN: the connection ended first. */
int st_shell_join(st_cli *cli, st_dial *d, bool raw, st_err *err);

#endif
