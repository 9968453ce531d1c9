/*
 * A task's folder in the state directory, STATE/tasks/NAME/, and the records in it:
 *
 *   task.json    the plan: what the supervisor must know; written before it is started
 *   lock         flock held by the supervisor from before its start until it has cleaned up
 *   live.json    while it runs: its processes and when it began
 *   kill.json    somebody asked for its end, and why
 *   told.json    what its signal meant: to save, or to stop
 *   deadline.json  another end of its time limit
 *   exit.json    how it ended; written once, last
 *   reserve      room for exit.json when the disk is full
 *   attach       a socket of the supervisor, for who watches (run/attach.h)
 *   bundle/, logs/out.N, logs/err.N, runtime.log, init.pid
 */
#ifndef ST_RUN_STATE_H
#define ST_RUN_STATE_H

#include "run/cgroup.h"
#include "run/run.h"

struct st_run {
    char state_dir[PATH_MAX / 2];
    char cgroup_root[128];
    char runtime[PATH_MAX / 2];
    char shim[PATH_MAX / 2], init[PATH_MAX / 2];
    char lease[PATH_MAX / 2]; /* "": there is none */
    st_cg cg;
    int64_t images_bytes, image_ms; /* see run.h */
};

/* An OCI image that is to become the root; root "": there is none. */
typedef struct st_plan_image {
    char root[PATH_MAX], path[PATH_MAX], digest[80];
    char tenant[ST_RUN_NAME_MAX]; /* whose storage it lies in; "": the site's */
    char images[PATH_MAX];        /* the cache */
    int64_t max_bytes, timeout_ms;
} st_plan_image;

/* What the supervisor needs. */
typedef struct st_plan {
    char id[ST_RUN_ID_MAX], name[ST_RUN_ID_MAX];
    char tenant[ST_RUN_NAME_MAX];
    char runtime[PATH_MAX / 2], runtime_root[PATH_MAX];
    char cgroup[256];
    char lease[PATH_MAX / 2]; /* the file with the end of the node's lease; "": there is none */
    char lower[PATH_MAX];     /* folders of an overlay to mount as the root; "": none */
    st_plan_image image;
    int64_t root_uid; /* the host's id of root inside, if it has a user namespace; else 0 */
    int64_t cpu_m;    /* its limit in thousandths of a CPU; 0: none */
    int64_t asked_ms, time_limit_ms, grace_ms, log_bytes;
    int signal;
    bool merge_output;
    bool terminal, input; /* as in st_run_spec */
} st_plan;

/* The container's name: the id with / as dots. */
void st_state_name(const char *id, char ret[ST_RUN_ID_MAX]);

/* Fails if the id could not be one. */
int st_state_dir(const st_run *run, const char *id, char ret[PATH_MAX], st_err *err);

int st_plan_write(const char *dir, const st_plan *plan, st_err *err);
int st_plan_read(const char *dir, st_plan *ret, st_err *err);

int st_live_write(const char *dir, const st_run_task *task, st_err *err);
int st_exit_write(const char *dir, const st_run_task *task, st_err *err);

/* Sets room on the disk aside for the exit record; gives it back (0 if there was any). */
int st_reserve_take(const char *dir, st_err *err);
int st_reserve_give(const char *dir);

/* The reason somebody asked for its end; false if nobody has. */
bool st_kill_read(const char *dir, char ret[ST_RUN_TEXT_MAX]);
int st_kill_write(const char *dir, const char *reason, st_err *err);

int st_told_write(const char *dir, st_run_told told, st_err *err);

/* Another end of its time limit, by the boot clock; 0: none for now. False if nobody has set one. */
bool st_deadline_read(const char *dir, int64_t *ret);
int st_deadline_write(const char *dir, int64_t deadline_ms, st_err *err);

/* All that the records say; state and exit as in run.h. */
int st_state_read(const st_run *run, const char *dir, st_run_task *ret, st_err *err);

/* Is there a supervisor? */
bool st_state_locked(const char *dir);

#endif
