/*
 * Addresses to listen on: whether one may be without TLS, and the one for agents alone. Private to src/stintd.
 */
#ifndef ST_STINTD_LISTEN_H
#define ST_STINTD_LISTEN_H

#include "api/api.h"
#include "stintd/stintd.h"

typedef void st_listen_log(void *ctx, const char *line);

/* Fails where tokens would go over a network in the clear and nobody has said that they may. `where` may be NULL. */
int st_listen_secure(const st_config *c, const char *where, st_listen_log *log, st_err *err);
/* For agents, next to the API's port or where the configuration says. */
int st_listen_agents(const st_config *c, st_api *api, int port, st_listen_log *log, st_err *err);

#endif
