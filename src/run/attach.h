/*
 * Who is joined to a job's own terminal or streams (`stint attach`). Private to run: the supervisor has one of these, and the
 * node's agent connects to the socket that it leaves in the task's folder.
 *
 * Each watcher follows the log of the task from a byte of its own, so what it gets is what `stint logs` has, and one that
 * reads slowly holds up nobody and costs a piece of memory at most. One that has everything is given what is new at once.
 * Frames go both ways (tunnel/frame.h): output and the exit status to a watcher; input, sizes and signals from one that may
 * write.
 *
 * Invariants:
 *  1 A job never waits for who watches it. Its end is written down before they are told of it.
 *  2 Of what goes to a watcher, and of what is typed, ST_ATTACH_HELD bytes and a frame are held at most; of watchers there are
 *    ST_ATTACH_MAX, and ST_ATTACH_KEPT of these are for those who may write: a crowd that only watches locks nobody out.
 *  3 Nothing that a watcher sends which may not write reaches the job: it ends that watcher.
 */
#ifndef ST_RUN_ATTACH_H
#define ST_RUN_ATTACH_H

#include <sys/types.h>

#include "run/log.h"

#define ST_ATTACH      "attach" /* the socket */
#define ST_ATTACH_MAX  64
#define ST_ATTACH_KEPT 8
#define ST_ATTACH_HELD 65536

/* What an agent says first. */
typedef struct st_attach_ask {
    int64_t
        from; /* byte of the output to begin at; below 0: so many before its end, from a line's beginning */
    int64_t may_write;
} st_attach_ask;

typedef struct st_attach st_attach;

typedef struct st_attach_job {
    const char *dir;   /* of the task */
    const st_log *log; /* of its output */
    void (*signal)(void *ctx, int sig);
    void *ctx;
} st_attach_job;

/* NULL: the node has no descriptors left; the job runs all the same. */
st_attach *st_attach_new(const st_attach_job *job);
void st_attach_free(st_attach *a);

/* Readable when there is something to do: st_attach_turn. */
int st_attach_fd(const st_attach *a);
void st_attach_turn(st_attach *a);
/* Where what is typed goes; taken. `terminal`: it is a terminal's other end. */
void st_attach_input(st_attach *a, int fd, bool terminal);
/* These bytes have been added to the log, whose end was at `at` before. */
void st_attach_output(st_attach *a, int64_t at, const char *bytes, size_t n);
/* It has ended: who watches hears the rest of the output and how, for so long at most. */
void st_attach_end(st_attach *a, int status, int signal, int timeout_ms);

#endif
