/*
 * What tasks have written, as files: DIR/JOB/STAY.TASK/BASE, all of them numbers, so that no name
 * from outside ever becomes a path. BASE is the offset of a file's first byte in what the task
 * wrote; a task has a few files, the oldest goes when they get too large together.
 *
 * Offsets are the task's own, from 0, whatever is kept: a client that asks for more from where it
 * stopped is right even if the files have moved on. What is missing in between, because it was
 * dropped here, on the node, or when the disk was full, is told as one line where it would be.
 *
 * DIR/JOB/STAY.TASK/times says when what came, to the second, or coarser where that is long ago.
 *
 * DIR/JOB/account says whose a job is. Where a job's log had to make room DIR/JOB/pruned is left of it.
 *
 * Files are 0600, directories 0700. Nothing is synced: a log is worth less than the time of a
 * disk.
 */
#ifndef ST_ENGINE_LOGS_H
#define ST_ENGINE_LOGS_H

#include "engine/engine.h"

typedef struct st_logs st_logs;

#define ST_LOG_CHUNK_MAX ((size_t)1 << 20) /* of one append */

/* How much accounts may have, and who has been given what. */
typedef struct st_logs_rules {
    void *ctx;
    int32_t (*number)(void *ctx, const char *account); /* of who pays, for good; 0: all together */
    int64_t (*left)(void *ctx, int32_t number);        /* bytes */
    void (*count)(void *ctx, int32_t number, int64_t bytes); /* more, or less */
    int32_t (*org)(void *ctx, const char *account); /* who makes room for whom: those of the same */
} st_logs_rules;

/* task_bytes: what is kept of one task at most. The directory is made when it is first needed; what is there is
 * looked at now. */
st_logs *st_logs_new(const char *dir, int64_t task_bytes);
void st_logs_free(st_logs *logs);

/* From now on it goes by these: what is there is counted, and where an account has no room for more, the oldest
 * logs of its organisation go; where all together have none, the oldest of the organisation that has most. */
void st_logs_rule(st_logs *logs, const st_logs_rules *rules);

/* Whose the job is must be known before the first append: a word that the rules understand, also after a restart, and that is
 * never another account's. */
bool st_logs_knows(st_logs *logs, uint64_t job);
void st_logs_begin(st_logs *logs, uint64_t job, const char *account);

/* Adds n bytes that begin at `offset`. What is there already is not written again; *ret_next is
 * where the writer goes on, *ret_dropped how many of these bytes were lost: the disk is full, or the
 * account has no room and nothing else to give up. */
int st_logs_append(st_logs *logs, uint64_t job, int stay, int task, int64_t offset,
                   const char *bytes, size_t n, int64_t *ret_next, size_t *ret_dropped,
                   st_err *err);

int st_logs_read(st_logs *logs, const st_log_ask *ask, st_log_got *ret, st_err *err);

/* Removes jobs of which nothing was written since; counts them. */
int64_t st_logs_prune(st_logs *logs, int64_t before_ms);

typedef struct st_logs_stats {
    int64_t jobs, bytes;
    uint64_t pruned; /* jobs, to make room or because they were old */
} st_logs_stats;
void st_logs_stats_get(st_logs *logs, st_logs_stats *ret);

#endif
