/*
 * What `stint top` shows: gathered from the server, written as lines of text.
 */
#ifndef ST_CLI_TOP_H
#define ST_CLI_TOP_H

#include "cli/cli.h"
#include "cli/client.h"

typedef struct st_top {
    json_t *who, *accounts, *running, *waiting, *pools;
    int skip; /* rows that were scrolled past, of sections that do not fit */
} st_top;

void st_top_done(st_top *top);

/* Asks the server for everything; `top` keeps what it had when that fails. */
int st_top_fetch(st_client *client, st_top *top, st_err *err);

/* Writes it in at most `rows` lines of `columns` characters; 0: as many as it takes. */
void st_top_write(const st_top *top, FILE *out, int rows, int columns);

/* Rows {"account": …, "held": …} from the text of /metrics; the caller's. */
json_t *st_top_accounts(const char *metrics);

/* The screen, until q. */
int st_top_screen(st_client *client, st_top *top, st_err *err);

#endif
