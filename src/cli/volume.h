/*
 * Volumes for the verbs that move files: where one is, and addresses of what is in it.
 */
#ifndef ST_CLI_VOLUME_H
#define ST_CLI_VOLUME_H

#include "cli/cli.h"
#include "cli/client.h"

/* The account that is given, or the caller's own. The caller's to free. */
int st_volume_account(st_client *client, const char *given, char **ret, st_err *err);
/* "/v1/accounts/ACCOUNT/volumes[/NAME]". */
void st_volume_route(st_strbuf *out, const char *account, const char *name);

#endif
