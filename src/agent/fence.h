/*
 * The end of a lease, kept by something that outlives the agent: a small process per node folder
 * that watches the file with the lease and, when that has run out, kills the node's tasks. The
 * living agent is a second faster; this is for one that is dead while its tasks run on. The agent
 * replaces it when it dies; and when both are dead, supervisors end their tasks themselves a second
 * later (run/shim.c).
 */
#ifndef ST_AGENT_FENCE_H
#define ST_AGENT_FENCE_H

#include <limits.h>

#include "base/err.h"
#include "run/run.h"

#define ST_FENCE_REASON ST_RUN_LEASE_REASON

/* The lease in DIR/lease. */
void st_lease_path(const char *dir, char ret[PATH_MAX]);
int st_lease_save(const char *dir, const st_run_lease *lease, st_err *err);
st_run_lease st_lease_load(const char *dir);

/* Starts the process for a folder unless it is there. */
int st_fence_ensure(const char *dir, st_err *err);

/* The agent of the folder ends and leaves no task behind: nobody need watch. */
void st_fence_rest(const char *dir);

/* That process; returns its exit status when there is nothing left to watch. */
int st_fence_main(const char *dir);

#endif
