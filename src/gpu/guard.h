/*
 * A driver that may hang, behind a table that does not: every call is made by a thread of its own and given up after a
 * while. As long as a call hangs, all others are refused at once with -ST_EDOWN and its name; when it comes back, the
 * driver is as good as before. What a call that was given up brings is thrown away.
 *
 * The caller waits for one limit at most, whatever the driver does. There is one caller at a time: a second would be
 * told that the first one's call hangs.
 */
#ifndef ST_GPU_GUARD_H
#define ST_GPU_GUARD_H

#include "gpu/gpu.h"

typedef struct st_gpu_limits {
    int64_t read_ms;   /* for what only looks */
    int64_t change_ms; /* for what changes something: MIG, modes; opening */
} st_gpu_limits;

typedef int (*st_gpu_open_fn)(const void *ctx, st_gpu **ret, st_err *err);

/* Opens a driver by `open` and stands before it. `ctx` is needed as long as that takes. */
int st_gpu_guard_open(st_gpu_open_fn open, const void *ctx, const st_gpu_limits *limits,
                      st_gpu **ret, st_err *err);

#define ST_GPU_HANGS \
    "the GPU driver does not answer" /* how the message of a call that was given up begins */

/* What hangs ("sample of GPU 3"), "" when nothing does; of any driver. */
void st_gpu_hangs(const st_gpu *g, char ret[64]);

#endif
