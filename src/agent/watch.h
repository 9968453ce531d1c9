/*
 * Whether tasks that share a GPU keep to the memory they were granted. Nothing in the hardware keeps a
 * time-sliced task to its grant, and MPS limits each process for itself; so what the processes of a task hold
 * together is looked at with every sample, and a task above its grant is ended.
 */
#ifndef ST_AGENT_WATCH_H
#define ST_AGENT_WATCH_H

#include "gpu/gpu.h"

/* Beyond its grant, per task and GPU: the driver's own context of its first process. */
#define ST_WATCH_CONTEXT_MIB 640

/* What these pids hold together, in MiB; what the driver does not tell counts as nothing. A process
 * that is listed twice counts once. Pure. */
int64_t st_watch_sum(const st_gpu_proc *procs, size_t n, const int64_t *pids, size_t npids);

/* Whether that is more than the grant and a context. Pure. */
bool st_watch_above(int64_t used_mib, int64_t granted_mib);

/* The number that a process has in its own container, from its /proc/PID/status; -1: there is none. Pure. */
int64_t st_watch_inside(const char *status);

#endif
