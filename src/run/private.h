/*
 * What a task is given that no disk of the node may hold: its secrets, and the job's own variables. From the starter to
 * the supervisor it goes through memory (a memfd); there it becomes files on a tmpfs in the supervisor's own mount
 * namespace, which the task sees read-only at /run/stint/secrets and which is gone with both of them. stint-init reads
 * the variables from a file of it before it starts the job.
 */
#ifndef ST_RUN_PRIVATE_H
#define ST_RUN_PRIVATE_H

#include "run/cdi.h"
#include "run/run.h"

#define ST_PRIVATE_DIR "/run/stint/secrets"

/* Writes all of it into a memfd, at its start. */
int st_private_pack(const st_run_spec *spec, const st_cdi_edits *cdi, int *ret_fd, st_err *err);
/* Mounts a tmpfs on `dir` and makes the files of the memfd there, readable by the task's user alone. */
int st_private_mount(int fd, const char *dir, st_err *err);

#endif
