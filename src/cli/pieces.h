/*
 * One job of an array by its index: jdgq378mt_3 is the job with index 3 of the array jdgq378mt, wherever a job is named.
 */
#ifndef ST_CLI_PIECES_H
#define ST_CLI_PIECES_H

#include "cli/client.h"

/* Where the path names a job in that way: 1, and the path with the job's own id. 0: it does not. */
int st_piece_path(st_client *client, const char *path, st_strbuf *ret, st_err *err);

#endif
