/* Heads of the log of checkpoints in files and from stintd, for `bill checkpoints`, `bill verify` and `bill witness`. */
#ifndef ST_CLI_BILL_HEAD_H
#define ST_CLI_BILL_HEAD_H

#include "cli/cli.h"
#include "cli/client.h"
#include "proof/headfile.h"

int st_cli_read_head(const char *path, st_headfile *ret, st_err *err);
/* As it is now, with what witnesses signed and all proofs; also from `old`, which may be NULL. Nothing is checked. */
int st_cli_fetch_head(st_client *client, const st_log_head *old, st_headfile *ret, st_err *err);
int st_cli_save_head(st_cli *cli, const char *path, const st_headfile *f, st_err *err);
void st_cli_print_head(st_cli *cli, const st_headfile *f, bool json, bool against, bool trusted);

#endif
