/*
 * Names for shells (complete_names.c). Private to complete.c.
 */
#ifndef ST_CLI_COMPLETE_H
#define ST_CLI_COMPLETE_H

#include "cli/cli.h"

int st_cli_complete_names(st_cli *cli, const char *kind, st_err *err);

#endif
