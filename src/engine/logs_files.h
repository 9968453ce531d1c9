/*
 * What the files of logs are, for those who write them (logs.c), read them (logs_read.c) and keep when they came
 * (logs_times.c). Private to src/engine.
 */
#ifndef ST_ENGINE_LOGS_FILES_H
#define ST_ENGINE_LOGS_FILES_H

#include <pthread.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/logs.h"
#include "engine/shelf.h"

struct st_logs {
    char *dir;
    int64_t task_bytes;
    pthread_mutex_t lock; /* all that follows, and the files */
    st_shelf *shelf;
    st_logs_rules rules; /* functions NULL: none */
    uint64_t pruned;
};

/* A file with the bytes from base up to end of what a task wrote. */
typedef struct st_log_segment {
    int64_t base, end;
} st_log_segment;

typedef ST_VEC(st_log_segment) st_log_segments;

/* Of a task's directory, and of a file beside a job's. */
void st_log_path(const st_logs *logs, uint64_t job, int stay, int task, st_strbuf *out);
void st_log_job_path(const st_logs *logs, uint64_t job, const char *file, st_strbuf *out);

/* The segments of a task in order; none when there is no such directory. */
void st_log_segments_list(const char *path, st_log_segments *ret);

/* From errno. */
int st_log_io_fail(st_err *err, const char *path);

/* When what came: DIR/JOB/STAY.TASK/times, of 64 KiB at most. */

/* The bytes from `offset` on came at `ms`. By how many bytes the file grew. Without it the whole log is taken to have
 * come just now, no worse. */
int64_t st_log_times_add(const char *path, int64_t offset, int64_t ms);
/* Where what came at `ms` or later begins: 0 where that is not known, INT64_MAX where nothing came. */
int64_t st_log_times_find(const char *path, int64_t ms);

#endif
