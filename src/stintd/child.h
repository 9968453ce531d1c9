/*
 * Programs of the site's that stintd runs: with a PATH and nothing else of ours, in a group of their own that is killed at the end, and
 * for so long at most.
 */
#ifndef ST_STINTD_CHILD_H
#define ST_STINTD_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define ST_CHILD_ANSWER_MAX 65536 /* bytes of what it says that are kept */

typedef struct st_child {
    const char *const *argv; /* argv[0]: a path; NULL-terminated */
    const char *home;        /* its HOME; NULL: it has none */
    const char *input;       /* on its standard input; NULL: nothing */
    bool complains;          /* what it says on standard error is heard as well */
    int64_t timeout_ms;
    int64_t file_bytes;      /* no file of it gets longer; 0: any length */
    bool (*ends)(void *ctx); /* asked now and then: it is to end; may be NULL */
    void *ctx;
} st_child;

/* Its status, 128 and the number of a signal that ended it; -1: it was killed, for its time or because it was to end; -2: it could not
 * be started (errno). What it said is appended to *out. */
int st_child_run(const st_child *child, st_strbuf *out);

#endif
