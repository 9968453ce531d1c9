/*
 * What the files of the supervisor share (run/shim.h). Private to run/shim.c and run/shim_start.c.
 */
#ifndef ST_RUN_SHIM_STATE_H
#define ST_RUN_SHIM_STATE_H

#include <sys/types.h>

#include "run/attach.h"
#include "run/log.h"
#include "run/state.h"

#define ST_SHIM_CHUNK 65536

/* What the timer is for. */
typedef enum { FOR_START, FOR_LIMIT, FOR_GRACE, FOR_KILL } timer_use;

typedef struct st_shim {
    const char *dir;
    st_plan plan;
    st_cg cg;
    st_run_task task; /* the record in the making */
    int signals, timer;
    int lease;            /* a timer: the end of the node's lease, or when to look for it */
    int64_t lease_end_ms; /* as last read; 0: none was */
    int64_t limit_ms;   /* when its time is up, by the boot clock, if that is not moved; 0: never */
    int image;          /* keeps the unpacked image where it is */
    int out, err, word; /* read ends: stdout or a terminal, stderr, stint-init */
    int console;        /* where the runtime sends the terminal */
    int in;             /* the write end of its input, until that is the watchers' */
    st_attach *attach;  /* who watches; NULL: nobody can */
    pid_t runtime;      /* while it works */
    bool ended;
    bool over_time;
    bool start_late;
    bool live_due; /* live.json could not be written */
    timer_use use;
    st_log log_out, log_err;
    char buf[ST_SHIM_CHUNK];
} st_shim;

/* shim_start.c: what the job needs is mounted and read, and the runtime begins to make the container. */
int st_shim_start(st_shim *s, st_err *err);

#endif
