/*
 * Finding an OCI runtime that works on this node, by having it run a task's own config. Private
 * to run.
 */
#ifndef ST_RUN_RUNTIME_H
#define ST_RUN_RUNTIME_H

#include "run/state.h"

/* In order of preference; NULL-terminated. */
extern const char *const st_runtime_names[];

/* Fills what a handle needs but the runtime; makes the state directory. */
int st_runtime_prepare(const st_run_conf *conf, st_run *ret, st_err *err);

/* Runs a container that does nothing, with all the fences of a real one. */
int st_runtime_try(const st_run *run, const char *path, st_err *err);

#endif
