/*
 * Small helpers over system calls: paths, whole files, JSON records, programs.
 */
#ifndef ST_RUN_OS_H
#define ST_RUN_OS_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* For ST_CLEANUP: closes a descriptor unless it is negative, drops a JSON value. */
void st_os_closep(int *fd);
void st_os_jsonp(json_t **value);

int64_t st_os_now_ms(void); /* UTC */
int64_t st_os_now_us(void);
int64_t st_os_mono_ms(void); /* for waiting; goes on while the machine sleeps */
void st_os_sleep_ms(int64_t ms);

/* What tells this boot of the machine from all others. */
#define ST_OS_BOOT_MAX 40
const char *st_os_boot_id(char ret[ST_OS_BOOT_MAX]);

/* Joins with printf rules; fails when the path does not fit. */
int st_os_path(char ret[PATH_MAX], st_err *err, const char *fmt, ...) ST_PRINTF(3, 4);

/* Writes all of it to a new file beside `path` and renames: readers see the old file or the new
 * one. */
int st_os_write(const char *path, const char *text, size_t n, mode_t mode, st_err *err);
int st_os_write_json(const char *path, const json_t *value, st_err *err);

/* Brings a file to the disk, so that it is there after the machine has crashed. */
int st_os_sync(const char *path, st_err *err);

/* Reads a JSON object; ST_ENOENT if the file is not there, ST_ECORRUPT if it is no object. */
int st_os_read_json(const char *path, json_t **ret, st_err *err);

/* The first bytes of a (virtual) file, NUL-terminated; -1 if it cannot be read. */
ssize_t st_os_peek(const char *path, char *buf, size_t cap);

/* Writes to a control file; -1 with errno on failure. */
int st_os_poke(const char *path, const char *text);

/* Makes a folder and those above it. */
int st_os_mkdirs(const char *path, mode_t mode, st_err *err);

/* Removes a folder and what is in it, following no links and crossing no mounts. */
int st_os_remove_tree(const char *path, st_err *err);

/* Runs a program without a shell, with a bare environment, and waits; everything it says on
 * stderr and stdout goes to `said` (cut at its size). Returns its exit status, 128+signal, or -1
 * with errno if it could not be started. */
int st_os_run(const char *const argv[], char *said, size_t cap);

/* A program that is asked something: `input` on its stdin, what it says on both streams in `said`
 * (cut at its size). `before` runs in the child just before it becomes the program; what it returns
 * other than 0 is the exit status instead. */
typedef struct st_os_call {
    const char *const *argv; /* argv[0] is a path */
    const char *const *env;  /* all of it */
    const char *input;       /* NULL: nothing */
    int64_t timeout_ms;      /* then it is killed */
    int (*before)(const void *ctx);
    const void *ctx;
} st_os_call;

/* As st_os_run; -1 with ETIMEDOUT when it had to be killed. Children it leaves may live on and keep
 * its streams. */
int st_os_ask(const st_os_call *call, char *said, size_t cap);

/* "/usr/sbin/NAME" or wherever in the usual folders a program is; false if nowhere. */
bool st_os_which(const char *name, char ret[PATH_MAX]);

/* When a process began, in clock ticks since boot: with its pid, a name that is never reused.
 * 0 if there is no such process. */
uint64_t st_os_birth(pid_t pid);

#endif
