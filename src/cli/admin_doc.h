/*
 * Small documents from flags, for the verbs that make or change accounts, tokens and nodes; and
 * the way they are all sent.
 */
#ifndef ST_CLI_ADMIN_DOC_H
#define ST_CLI_ADMIN_DOC_H

#include <stdbool.h>

#include "cli/cli.h"
#include "cli/client.h"

/* A body that is being written: {"key":value,... */
typedef struct st_body {
    st_strbuf text;
} st_body;

void st_body_done(st_body *b);
/* A number as a number, anything else as text; NULL is left out. */
void st_body_put(st_body *b, const char *key, const char *value);
/* gpu=8,ram=64Gi as a map. */
int st_body_pairs(st_body *b, const char *option, const char *key, const char *pairs, st_err *err);
/* whole,mig as a list. */
void st_body_list(st_body *b, const char *key, const char *words);
/* A piece of JSON. */
void st_body_raw(st_body *b, const char *key, const char *json);
/* Closes it. */
const char *st_body_end(st_body *b);
bool st_body_empty(const st_body *b);

/* Sends it and prints the answer's JSON, or `said` and a line end. */
int st_admin_send(st_cli *cli, st_client *client, const st_request *request, st_cli_format format,
                  const char *said, st_err *err);

/* The version of what is at `path`, for a change that is made to that version only: what is not said
 * stays, and nobody's change is lost. */
int st_admin_tag(st_client *client, const char *path, char ret[80], st_err *err);

/* "/v1/nodes/NAME". */
void st_admin_path(st_strbuf *out, const char *folder, const char *name);

/* Where r is "there is no such thing": adds which one of `folder` ("nodes") might be meant.
 * Returns r. */
int st_admin_near(st_client *client, const char *folder, const char *name, int r, st_err *err);

#endif
