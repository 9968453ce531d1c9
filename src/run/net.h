/*
 * One network namespace per tenant on this node, shared by its tasks here: they reach each other
 * over loopback, nobody else. It lives as a bind mount in the state directory, so that it stays
 * between tasks. Joining nodes is not done here. Private to run.
 */
#ifndef ST_RUN_NET_H
#define ST_RUN_NET_H

#include <limits.h>

#include "base/err.h"

/* Makes it if it is not there; its path. */
int st_net_tenant(const char *state_dir, const char *tenant, char ret[PATH_MAX], st_err *err);

/* Lets it go; it ends with its last task. */
void st_net_forget(const char *state_dir, const char *tenant);

#endif
