/*
 * A bar on standard error for what takes long: shown only on a terminal and only once two seconds
 * have gone by, redrawn a few times a second, and wiped away at the end.
 *
 *     ST_CLEANUP(st_progress_done) st_progress bar;
 *     st_progress_begin(&bar, cli->errors, "playing");
 *     options.progress = st_progress_show;
 *     options.ctx = &bar;
 */
#ifndef ST_CLI_PROGRESS_H
#define ST_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct st_progress {
    FILE *out;
    const char *what;
    bool terminal, shown;
    int64_t begin_ms, last_ms;
} st_progress;

void st_progress_begin(st_progress *bar, FILE *out, const char *what);

/* `ctx` is the bar; `done_m` is how much is done, of 1000. */
void st_progress_show(void *ctx, int done_m);
void st_progress_done(st_progress *bar);

#endif
