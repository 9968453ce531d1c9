/*
 * A sign of life on standard error while something is waited for: shown only on a terminal and
 * only once two seconds have gone by, and wiped away at the end.
 */
#ifndef ST_CLI_SPINNER_H
#define ST_CLI_SPINNER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct st_spinner {
    FILE *out;
    bool terminal, shown;
    int64_t begin_ms, last_ms;
    int turn;
    char what[120];
} st_spinner;

void st_spinner_begin(st_spinner *s, FILE *out, const char *what);
/* To be called every now and then; `what` NULL: as before. */
void st_spinner_turn(st_spinner *s, const char *what);
/* Takes it off the screen, for now or for good; serves ST_CLEANUP. */
void st_spinner_done(st_spinner *s);

/* Milliseconds of a clock that only goes forward, and of the one on the wall. */
int64_t st_cli_clock_ms(void);
int64_t st_cli_wall_ms(void);

#endif
