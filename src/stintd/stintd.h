/*
 * stintd as a whole: store, control loop, engine, API, addresses. main.c gives it a configuration
 * and waits for signals.
 */
#ifndef ST_STINTD_STINTD_H
#define ST_STINTD_STINTD_H

#include "api/api.h"
#include "stintd/config.h"

typedef struct st_serve st_serve;

int st_serve_new(const st_config *config, st_serve **ret, st_err *err);
/* Begins to decide and to listen. *ret_port is where, for port 0. */
int st_serve_start(st_serve *serve, int *ret_port, st_err *err);
/* Who reads the configuration again, into one that was initialized; without it nothing is read. */
typedef int st_config_reader(void *ctx, st_config *ret, st_err *err);
void st_serve_reader(st_serve *serve, st_config_reader *reader, void *ctx);
/* Reads it, and says in the log what came of it. */
void st_serve_reload(st_serve *serve);
/* Stops accepting, lets calls finish, writes a snapshot, closes. */
void st_serve_stop(st_serve *serve);
void st_serve_free(st_serve *serve);

st_control *st_serve_control(st_serve *serve);

/* Posts a command and waits for it; only before or beside requests, never from the loop. */
int st_serve_do(st_serve *serve, st_cmd *cmd, st_err *err);

/* sample.c: an organisation with teams, a simulated fleet and some jobs, in a store without
 * accounts; tokens go to `dir`/tokens, readable by the owner alone. True: it was made now. */
int st_sample_make(st_serve *serve, const char *dir, bool *ret_made, st_err *err);
/* Tells a newcomer where it is, who they may be, and what to try; `stint` is the path of the command line. */
void st_sample_tell(const char *dir, const char *url, const char *stint, bool made);

#endif
