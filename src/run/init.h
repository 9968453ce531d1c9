/*
 * What stint-init, the first process inside a container, tells stint-shim outside, on descriptor
 * 3, a socket: fixed-size words, one a message. One byte comes back, once: go.
 */
#ifndef ST_RUN_INIT_H
#define ST_RUN_INIT_H

#include <stdint.h>

enum { ST_INIT_FD = 3 };

/* The job's own variables, NAME=value and a NUL each: a file beside its secrets, for the disk has none of them. */
#define ST_INIT_ENV      ".environment"
#define ST_INIT_ENV_PATH "/run/stint/secrets/" ST_INIT_ENV

enum {
    ST_INIT_STARTED = 1, /* the job's command is about to be executed */
    ST_INIT_NO_EXEC,     /* value: errno of execvp */
    ST_INIT_EXITED,      /* value: the wait status of the job's command */
    ST_INIT_READY,       /* before all others: it waits to be let go */
};

typedef struct st_init_word {
    int32_t kind;
    int32_t value;
    int64_t time_us; /* UTC */
    int64_t boot_ms; /* by a clock that does not jump */
} st_init_word;

#endif
