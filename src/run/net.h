/*
 * One network namespace per tenant on this node, shared by its tasks here: they reach each other
 * over loopback, nobody else. It lives as a bind mount in the state directory, so that it stays
 * between tasks. What joins it with the tenant's others on other nodes is segment.h. Private to run.
 */
#ifndef ST_RUN_NET_H
#define ST_RUN_NET_H

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"

/* Makes it if it is not there; its path. */
int st_net_tenant(const char *state_dir, const char *tenant, char ret[PATH_MAX], st_err *err);

/* The lock of all networks of the folder: a descriptor, and with it it goes. */
int st_net_lock(const char *state_dir, st_err *err);
/* As st_net_tenant, for who has the lock. */
int st_net_make(const char *state_dir, const char *name, char ret[PATH_MAX], st_err *err);
bool st_net_there(const char *state_dir, const char *name);

/* Lets it go; it ends with its last task. */
void st_net_forget(const char *state_dir, const char *tenant);

#endif
