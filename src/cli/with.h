/*
 * The folder that a job comes with (`stint submit --with DIR`).
 */
#ifndef ST_CLI_WITH_H
#define ST_CLI_WITH_H

#include "cli/cli.h"
#include "cli/client.h"

/* Brings what stintd does not have yet of the folder, for an account; *ret_digest is what the job says as `with`. */
int st_with_bring(st_cli *cli, st_client *client, const char *account, const char *dir,
                  char ret_digest[65], st_err *err);

#endif
