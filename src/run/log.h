/*
 * A bounded log of one output stream: a few files, each named by the stream offset of its first
 * byte ("out.0", "out.16777301", …), the oldest removed as new ones come. Files end at line ends
 * unless a line is longer than ST_LOG_LINE_MAX. When the disk is full, bytes are dropped and
 * counted, and a line says so as soon as there is room again; the writer never waits.
 */
#ifndef ST_RUN_LOG_H
#define ST_RUN_LOG_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ST_LOG_LINE_MAX 65536
#define ST_LOG_FILES    4

/* A disk with less than this left counts as full for output: a part of it, and at most so much. */
#define ST_LOG_DISK_PART 16
#define ST_LOG_DISK_MAX  (UINT64_C(8) << 20)

typedef struct st_log {
    char prefix[PATH_MAX]; /* ".../logs/out" */
    int fd;                /* -1: to be opened */
    int64_t file_max;      /* when a file is full */
    int64_t start, size;   /* of the file being written */
    int64_t firsts[ST_LOG_FILES];
    int nfile;
    int64_t lost, lost_told; /* bytes dropped, and how many of them the log admits */
    bool mid_line;           /* the last byte written was not a line end */
} st_log;

/* `bytes` is what all files together may hold. Opens nothing. */
int st_log_init(st_log *log, const char *prefix, int64_t bytes, st_err *err);
void st_log_done(st_log *log);

/* The end of what is kept, as an offset of the stream. */
int64_t st_log_end(const st_log *log);

/* Cannot fail: what cannot be written is counted as lost. */
void st_log_add(st_log *log, const char *bytes, size_t n);

/* Reads from the files of a log; ret_first is where what was read begins, ret_end the end. */
int st_log_read(const char *dir, const char *stream, int64_t offset, char *buf, size_t cap,
                size_t *ret_n, int64_t *ret_first, int64_t *ret_end, st_err *err);

#endif
