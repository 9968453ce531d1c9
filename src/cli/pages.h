/*
 * Lists that the service gives out page by page.
 */
#ifndef ST_CLI_PAGES_H
#define ST_CLI_PAGES_H

#include <jansson.h>

#include "cli/client.h"

/* The list `key` under that path, page by page, until there are `limit` rows. Its `next` stays where there are more.
 * `errors`, or NULL: where people see that it takes a while. */
int st_pages_get(FILE *errors, st_client *client, const char *path, const char *key, int64_t limit,
                 json_t **ret, st_err *err);

#endif
