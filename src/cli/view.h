/*
 * What the server's JSON looks like to people: tables with a row per column, lists of facts, times
 * as ages, numbers with their units. One table of columns serves tables, CSV and lists of facts.
 */
#ifndef ST_CLI_VIEW_H
#define ST_CLI_VIEW_H

#include <jansson.h>
#include <stdint.h>

#include "base/num.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/client.h"

typedef enum st_view_kind {
    ST_VIEW_TEXT, /* as it is; null and "" become - */
    ST_VIEW_NUM,  /* to the right */
    ST_VIEW_AGE,  /* how long ago; CSV has the moment */
    ST_VIEW_TIME, /* the moment, in local time */
    ST_VIEW_MIB,  /* memory */
    ST_VIEW_SECONDS,
    ST_VIEW_WORDS, /* a list, or the pairs of a map */
    ST_VIEW_FN,
} st_view_kind;

typedef struct st_view_column {
    const char *heading, *key; /* key: "a.b" is b inside a */
    st_view_kind kind;
    void (*fn)(const json_t *row, st_strbuf *out);
} st_view_column;

/* Prints the rows of a list: as a table, or CSV. Columns end with one without a heading. */
void st_view_rows(st_cli *cli, st_cli_format format, const json_t *rows,
                  const st_view_column *columns);
/* One thing, a line per fact. CSV and tables look the same here. */
void st_view_facts(st_cli *cli, const json_t *thing, const st_view_column *columns);

/* Whatever a column makes of it. */
void st_view_cell(const json_t *row, const st_view_column *c, bool raw, int64_t now_ms,
                  st_strbuf *out);

/* ---- pieces -------------------------------------------------------------------------------- */

/* The value under "a.b"; NULL when it is not there or null. */
const json_t *st_view_at(const json_t *thing, const char *key);
/* "" when it is not there. */
const char *st_view_text(const json_t *thing, const char *key);
/* Thousandths; 0 when it is not there. */
int64_t st_view_milli(const json_t *thing, const char *key);
/* Milliseconds since the epoch; -1 when it is not there. */
int64_t st_view_time(const json_t *thing, const char *key);

/* "2026-11-15T08:04:20.229Z"; false: it is not of that form. */
bool st_time_parse(const char *text, int64_t *ret_ms);

/* A duration people can take in: its two largest units, 1h30m, 2d4h, 45s. */
void st_fmt_age(char buf[ST_FMT_MAX], int64_t ms);

/* ---- what most verbs do ---------------------------------------------------------------------- */

/* Asks for `path` and prints: the server's JSON, or the rows under `list`. */
int st_view_list(st_cli *cli, st_client *client, st_cli_format format, const char *path,
                 const char *list, const st_view_column *columns, st_err *err);
/* The same for one thing. */
int st_view_one(st_cli *cli, st_client *client, st_cli_format format, const char *path,
                const st_view_column *columns, st_err *err);
/* The server's answer, untouched. */
void st_view_raw(st_cli *cli, const st_response *response);

/* Calls show again and again, on a clean screen where there is one, until Ctrl-C or it fails;
 * once when watch is false. */
typedef int st_view_fn(void *ctx, st_err *err);
int st_view_watch(st_cli *cli, bool watch, st_view_fn *show, void *ctx, st_err *err);

/* Asks a person for a yes. Without a terminal: fails with what to do instead, and that --yes is there. */
int st_cli_agree(const st_cli *cli, const char *question, const char *instead, st_err *err);

/* What users hold and have used lately: `usage --recent`. */
int st_cli_recent(st_cli *cli, st_client *client, st_cli_format format, const char *account,
                  bool watch, st_err *err);

/* Waits that long for one of the signals SIGINT, SIGTERM, SIGQUIT, SIGHUP, which
 * st_signals_block() must have blocked; 0: none came. */
void st_signals_block(void);
int st_signals_wait(int timeout_ms);

#endif
