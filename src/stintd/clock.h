/*
 * stintd's time: the wall clock at its start plus a clock that does not jump, steered towards the wall clock
 * by at most one part in two hundred.
 *
 * Invariants: 1. It never goes back. 2. Between two readings it moves by what the steady clock did, give or take
 * half a percent: a jump of the wall clock makes no time and loses none. 3. It never begins before a moment it was
 * told (the last one in the store).
 */
#ifndef ST_STINTD_CLOCK_H
#define ST_STINTD_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The pure part: all in microseconds. */
typedef struct st_steady {
    int64_t at, mono; /* the time it was, and the steady clock then */
    int64_t off;      /* the wall clock ahead of it, when last looked at */
    int64_t unspent;  /* steady time that steering has not used yet */
} st_steady;

void st_steady_init(st_steady *s, int64_t wall, int64_t mono);
/* At least this from now on. */
void st_steady_not_before(st_steady *s, int64_t at);
/* The time, from readings of both clocks; *ret_jump is how far the wall clock has jumped since the last reading, 0
 * mostly. */
int64_t st_steady_read(st_steady *s, int64_t wall, int64_t mono, int64_t *ret_jump);

/* The real one, for any thread. */
typedef struct st_clock st_clock;

st_clock *st_clock_new(void (*jumped)(void *ctx, int64_t jump_ms), void *ctx);
void st_clock_free(st_clock *clock);
void st_clock_not_before(st_clock *clock, int64_t ms);
int64_t st_clock_ms(st_clock *clock);

#endif
