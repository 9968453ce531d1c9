/*
 * One MPS control daemon: a process of the vendor's that lets tasks of one trust domain use one GPU at
 * the same time, with limits. Everything about it is in its folder, so that whoever comes later finds it:
 *
 *   daemon.json   which GPU, for whom, and its process: pid, when that began, in which boot
 *   shm/          a tmpfs: /dev/shm of the daemon and of its clients; the daemon's sockets are in shm/mps
 *   log/          what it writes
 *
 * The daemon lives in the node's pid namespace, for it knows clients by their pids there, and in a
 * mount namespace of its own, in which shm/ is /dev/shm. So its sockets have one short path for all,
 * whatever the rights of the folders above.
 *
 * Invariants:
 *   1. It sees one GPU, which its clients call device 0, and nothing of our environment.
 *   2. Limits are set by the server, and are in force when they have been read back.
 *   3. A process is ours by the folder in its environment, which it was started with; a pid alone
 *      is never believed.
 */
#ifndef ST_RUN_MPS_H
#define ST_RUN_MPS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define ST_MPS_PIPE      "/dev/shm/mps" /* CUDA_MPS_PIPE_DIRECTORY, for the daemon and for clients */
#define ST_MPS_PIDS_MAX  256
#define ST_MPS_NAME_MAX  64
#define ST_MPS_SHM_MIB   16384 /* of the shared /dev/shm, at most */
#define ST_MPS_START_MS  10000 /* for a server to come up */
#define ST_MPS_ANSWER_MS 3000

typedef struct st_mps {
    const char *control; /* path of nvidia-cuda-mps-control */
    const char *dir;     /* absolute; the daemon's own */
} st_mps;

/* Per client process. */
typedef struct st_mps_limits {
    int percent;     /* of the threads, 1 to 100 */
    int64_t mem_mib; /* of the GPU's memory */
} st_mps_limits;

/* Whom it serves. */
typedef struct st_mps_record {
    int gpu;
    char uuid[96];
    char domain[ST_MPS_NAME_MAX];
    int64_t uid; /* of all its clients: a server has clients of one user */
    int64_t pid; /* 0: it has not been seen yet */
    uint64_t birth;
    char boot[40];
} st_mps_record;

/* The vendor's program: `given`, or where it usually is. */
int st_mps_find(const char *given, char ret[PATH_MAX], st_err *err);

/* Makes the folder and says whom it is for, before anything else is done. */
int st_mps_note(const char *dir, const st_mps_record *record, st_err *err);
int st_mps_read(const char *dir, st_mps_record *ret, st_err *err);

/* Starts the daemon and a server with these limits; returns when both are there. */
int st_mps_start(const st_mps *m, const st_mps_limits *limits, st_err *err);

/* Starts a daemon without a server, asks it something and ends it: does MPS work here at all? */
int st_mps_try(const st_mps *m, const char *uuid, st_err *err);

/* For clients that connect from now on; fails unless the server says the same afterwards. */
int st_mps_limit(const st_mps *m, const st_mps_limits *limits, st_err *err);

/* The daemon is the process that was started. */
bool st_mps_alive(const char *dir);

/* Takes those of these pids that are its clients off the GPU, so that they can be killed without harm to
 * the others; how many there were. */
int st_mps_part(const st_mps *m, const int64_t *pids, size_t n, int *ret_parted, st_err *err);

/* Ends the daemon and its servers: asks, then kills. The folder remains, without its tmpfs. */
int st_mps_stop(const st_mps *m, st_err *err);
int st_mps_remove(const char *dir, st_err *err);

/* ---- what it answers; pure -------------------------------------------------------------------- */

/* A number in each line; others are left out. How many there are. */
size_t st_mps_pids(const char *text, int64_t *buf, size_t room);

/* "50.0": thousandths of a percent. */
int st_mps_percent(const char *text, int64_t *ret, st_err *err);

/* Whether an answer ("4096M", "4G") is this many MiB; drivers show whole GiB, rounded down. */
int st_mps_memory_is(const char *text, int64_t mib, bool *ret, st_err *err);

#endif
