/*
 * Who carries a task: an OCI container under a supervisor (exec_oci.c), or nobody (exec_sim.c), for
 * machines where no runtime works and for fleets on paper. All times are by the boot clock.
 *
 * An executor holds nothing that its folder or the task's record does not: after a restart of the
 * agent `look` finds out what became of a task.
 */
#ifndef ST_AGENT_EXEC_H
#define ST_AGENT_EXEC_H

#include "agent/agent.h"
#include "agent/notice.h"
#include "agent/plan.h"
#include "agent/storage.h"
#include "base/strbuf.h"
#include "gpu/gpu.h"
#include "run/mps.h"
#include "run/run.h"

typedef struct st_exec st_exec;

/* What a task at level mps has of its daemon. */
typedef struct st_mps_client {
    char shm[PATH_MAX]; /* its /dev/shm, with the daemon's sockets; "": there is no daemon */
    int64_t uid;        /* whom the server serves */
    st_mps_limits limits;
} st_mps_client;

/* The limits of a task that shares a GPU: where its files are (agent/guard.c). */
typedef struct st_guard_client {
    bool latency; /* its latency counts */
    int n;        /* devices; 0: nothing is limited */
    char library[PATH_MAX], root[PATH_MAX];
    int gpu[ST_DEVS_MAX], slot[ST_DEVS_MAX];
} st_guard_client;

/* What a start needs besides the record. */
typedef struct st_launch {
    const st_order *order;
    const char *node;             /* its name */
    const st_gpu_inventory *inv;  /* of the node */
    const st_gpu_instance *slice; /* of a task at level mig; NULL otherwise */
    const st_mps_client *mps;     /* of a task at level mps with a daemon; NULL otherwise */
    const st_guard_client *guard; /* of a task at level mps or time; NULL: none */
    bool sim_gpus;                /* there are no device files */
    const st_storage *data_limit; /* of /data, for the file system to keep; NULL: it does not */
    const char *volumes;          /* where volumes are; NULL: there are none */
    const char *program;          /* of ours, to be seen at ST_TEST_PROGRAM; NULL: none */
    const char *dir;              /* the node's folder */
    int64_t segment_port;         /* of UDP, for networks of tenants that reach other nodes */
} st_launch;

#define ST_TEST_PROGRAM "/run/stint-test"

typedef struct st_exec_ops {
    const char *name;
    bool real; /* what it starts exists */
    void (*free)(st_exec *e);
    /* Sets the phase. In a worker if it is real. */
    int (*start)(st_exec *e, st_task *t, const st_launch *launch, int64_t now_ms, st_err *err);
    int (*signal)(st_exec *e, st_task *t, int signal, int64_t now_ms, st_err *err);
    /* Does not wait: -ST_EDOWN when somebody is left, to whom the same is done again later. */
    int (*kill)(st_exec *e, st_task *t, const char *reason, int64_t now_ms, st_err *err);
    /* All of it stands still, or goes on; the phase is the caller's (agent/pause.h). Fine on what does
     * already; -ST_EDOWN: not yet. */
    int (*pause)(st_exec *e, st_task *t, int64_t now_ms, st_err *err);
    int (*resume)(st_exec *e, st_task *t, int64_t now_ms, st_err *err);
    /* Another end of the time limit of a task that runs, which is held to it ST_LATE_MS later; 0: none. */
    int (*retime)(st_exec *e, st_task *t, int64_t deadline_ms, int64_t now_ms, st_err *err);
    /* Brings a live record up to date; true: something has changed. */
    bool (*look)(st_exec *e, st_task *t, int64_t now_ms);
    /* How many processes are left of an ended task. */
    int (*left)(st_exec *e, const st_task *t, int64_t *ret, st_err *err);
    /* Its processes, as the node numbers them. NULL: it has none. */
    int (*pids)(st_exec *e, const st_task *t, int64_t *buf, size_t room, size_t *ret_n,
                st_err *err);
    int (*remove)(st_exec *e, const st_task *t, st_err *err);
    /* Whether something of it is kept: a start has come so far, or a removal has not. */
    bool (*there)(st_exec *e, const st_task *t);
    /* Has the task's folders watched, and it looked at soon. */
    void (*watch)(st_exec *e, st_notices *notices, st_task *t);
    /* Output from `offset` on, counted over this attempt. */
    int (*log)(st_exec *e, const st_task *t, int64_t offset, char *buf, size_t cap,
               st_run_piece *ret, st_err *err);
    /* Removes what earlier versions left; in a worker. NULL: nothing. */
    int (*tidy)(st_exec *e, st_err *err);
    /* When look should be called next for a live task, if nothing is noticed before. */
    int64_t (*due)(const st_exec *e, const st_task *t, int64_t now_ms);
} st_exec_ops;

struct st_exec {
    const st_exec_ops *ops;
    st_run *run; /* of containers; NULL: there are none */
};

int st_exec_oci_new(const char *dir, const st_agent_conf *agent, st_exec **ret, st_err *err);
st_exec *st_exec_sim_new(void);
void st_exec_free(st_exec *e);
ST_DEFINE_FREEP(st_exec, st_exec_free)

/* How a task that was begun and is not to be found is reported. */
void st_task_lost(st_task *t, int64_t now_ms, const char *reason);
/* It could not be started; `fault`: for the node's reasons, so that the job is tried elsewhere. */
void st_task_unstarted(st_task *t, int64_t now_ms, bool fault, const char *reason);
/* Its end, and whether it counts as saved. */
void st_task_end(st_task *t, int64_t ended_ms, int exit_code, int exit_signal, const char *reason);

#define ST_EXIT_LOST 125
#define ST_LATE_MS   INT64_C(2000) /* after its time limit, for stintd to see to it */

#endif
