/*
 * The entries behind a line of a bill.
 */
#ifndef ST_CLI_BILL_EXPLAIN_H
#define ST_CLI_BILL_EXPLAIN_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/client.h"

/* Asks for all of them and prints a table, CSV or JSON. `path` is that of the entries, up to and with "?" or "&". */
int st_bill_explain(st_cli *cli, st_client *client, const char *path, const json_t *line,
                    const char *format, st_err *err);

/* "node01:0-7 node02:0-3,6": where an entry's tasks were. Of a large gang the first few, unless all are wanted. */
void st_bill_grants(const json_t *entry, bool all, st_strbuf *out);

#endif
