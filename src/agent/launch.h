/*
 * From a task on the list to what src/run takes: command, environment, place in the gang, devices,
 * the tenant's user id and storage.
 */
#ifndef ST_AGENT_LAUNCH_H
#define ST_AGENT_LAUNCH_H

#include "agent/exec.h"
#include "base/arena.h"
#include "model/volume.h"

/* Everything in *ret is the arena's or the list's. */
int st_launch_spec(st_arena *arena, const st_task *t, const st_launch *launch, int64_t now_ms,
                   st_run_spec *ret, st_err *err);

/* What the account and its domain have here from the time when they were known by their names. */
int st_launch_adopt(const st_order *order, const char *dir, st_err *err);

/* Whether the node's pool permits the job what its document asks of the node itself. stintd places by
 * that; an agent does not rely on it. */
int st_launch_allowed(const st_order *order, st_err *err);

/* The CPU it may use; 0: not said. */
int64_t st_launch_cpu_m(const st_order *order);

/* The folder that a job came with, to be made from what its submit brought. */
typedef struct st_folder {
    const char *dir;             /* of volumes */
    const char *space, *brought; /* folders in it (model/volume.h) */
    const char *job, *tree;
    int64_t uid, gid; /* whose it will be */
} st_folder;

/* In a worker: it may take long. Nothing to do where it is there. */
int st_folder_make(const st_folder *folder, st_err *err);

/* The volumes of a job and their groups, behind what is mounted already; `dir` NULL: the node has none. */
int st_launch_volumes(st_arena *arena, const json_t *job, const char *dir, st_run_spec *spec,
                      st_err *err);

/* The id of a task for src/run. */
void st_launch_id(const st_task *t, char ret[ST_RUN_ID_MAX]);

#endif
