/*
 * stintd's time: a moment that was believed, plus a clock that does not jump.
 *
 * A wall clock that is near (ten seconds) is followed, by at most one part in two hundred: that is drift. One that is
 * further away is not: time goes on with the steady clock alone until the owner accepts the wall clock.
 *
 * At a start on the same run of the machine, its uptime says how much time has passed since the last one: a wall clock that
 * says the same, to ten seconds and a thousandth of the pause, is believed, another is not. After a reboot there is no such
 * witness: the wall clock is believed up to `limit` after the last moment in the store; else time goes on from there.
 *
 * Invariants: 1. It never goes back. 2. Between two readings it moves by what the steady clock did, give or take
 * half a percent of at most ten seconds in all: a jump of the wall clock makes no time and loses none, nor does one between
 * two starts without a reboot. 3. It never begins before a moment it was told (the last one in the store), and unless accepted
 * not more than `limit` after it where the machine has been rebooted since.
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

#define ST_STEADY_NEAR_US INT64_C(10000000)

void st_steady_init(st_steady *s, int64_t wall, int64_t mono);
/* At a start: the last moment in the store. At least this, and at most `limit` more, from now on. */
void st_steady_go_on(st_steady *s, int64_t last, int64_t limit);
/* The same where uptime is a witness: it is the steady clock, and was so much behind our time. */
void st_steady_resume(st_steady *s, int64_t last, int64_t ahead);
/* The wall clock is too far away to be followed. */
bool st_steady_doubts(const st_steady *s);
/* The owner says that the wall clock is right. It cannot go back: false, and nothing changes, when it is behind. */
bool st_steady_accept(st_steady *s);
/* The time, from readings of both clocks; *ret_jump is how far the wall clock has jumped since the last reading, 0
 * mostly. */
int64_t st_steady_read(st_steady *s, int64_t wall, int64_t mono, int64_t *ret_jump);

/* Which run of the machine this is, hexadecimal; "": nobody says. The kernel's word, or the service manager's
 * (STINT_BOOT_ID) where its file is out of sight, as in our unit. */
#define ST_CLOCK_BOOT 64
void st_boot_read(const char *path, char ret[ST_CLOCK_BOOT]);

/* The real one, for any thread. */
typedef struct st_clock st_clock;

st_clock *st_clock_new(void (*jumped)(void *ctx, int64_t jump_ms), void *ctx);
void st_clock_free(st_clock *clock);
/* `boot` is which run of the machine `ahead_ms` was taken in (st_clock_mark_ms). */
void st_clock_go_on(st_clock *clock, int64_t last_ms, int64_t limit_ms, const char *boot,
                    int64_t ahead_ms);
/* Our time less the machine's uptime, and which run of it that is; false: the system does not say. */
bool st_clock_mark_ms(st_clock *clock, const char **ret_boot, int64_t *ret_ahead_ms);
int64_t st_clock_ms(st_clock *clock);
/* How far the wall clock is ahead; *ret_doubted: it is not followed. */
int64_t st_clock_off_ms(st_clock *clock, bool *ret_doubted);
bool st_clock_accept(st_clock *clock);

#endif
