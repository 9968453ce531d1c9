/*
 * The clock (stintd/clock.h).
 */
#include "stintd/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "base/mem.h"

#define SLEW    200
#define DRIFT   1000 /* a clock that nobody steers goes wrong by no more than a part in so many */
#define JUMP_US INT64_C(500000) /* less than that between two readings is drift */

void st_steady_init(st_steady *s, int64_t wall, int64_t mono)
{
    *s = (st_steady){.at = wall, .mono = mono};
}

static void set(st_steady *s, int64_t at)
{
    s->off -= at - s->at;
    s->at = at;
}

void st_steady_go_on(st_steady *s, int64_t last, int64_t limit)
{
    if (s->at < last || s->at - last > limit)
        set(s, last);
}

void st_steady_resume(st_steady *s, int64_t last, int64_t ahead)
{
    int64_t due = ST_MAX(s->mono + ahead, last);
    int64_t slack = ST_STEADY_NEAR_US + (due - last) / DRIFT;

    if (s->at - due > slack || due - s->at > slack)
        set(s, due);
    else if (s->at < last)
        set(s, last);
}

bool st_steady_doubts(const st_steady *s)
{
    return s->off > ST_STEADY_NEAR_US || s->off < -ST_STEADY_NEAR_US;
}

bool st_steady_accept(st_steady *s)
{
    if (s->off < -ST_STEADY_NEAR_US)
        return false;
    if (s->off > 0)
        set(s, s->at + s->off);
    return true;
}

int64_t st_steady_read(st_steady *s, int64_t wall, int64_t mono, int64_t *ret_jump)
{
    int64_t passed = ST_MAX(mono - s->mono, 0), off, most, by;

    s->mono += passed;
    s->at += passed;
    off = wall - s->at;
    *ret_jump = off - s->off > JUMP_US || off - s->off < -JUMP_US ? off - s->off : 0;
    s->unspent += passed;
    most = s->unspent / SLEW;
    s->unspent %= SLEW;
    /* Never more than passed / SLEW of what has passed, so it cannot go back. */
    most = ST_MIN(most, passed);
    by = off > 0 ? ST_MIN(off, most) : -ST_MIN(-off, most);
    s->off = off;
    if (st_steady_doubts(s))
        return s->at;
    s->at += by;
    s->off = off - by;
    return s->at;
}

/* ---- the real one ----------------------------------------------------------------------------- */

struct st_clock {
    pthread_mutex_t lock;
    st_steady steady;
    void (*jumped)(void *ctx, int64_t jump_ms);
    void *ctx;
    char boot[ST_CLOCK_BOOT]; /* which run of the machine this is; "": the system does not say */
};

static int64_t read_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void st_boot_read(const char *path, char ret[ST_CLOCK_BOOT])
{
    const char *told = getenv("STINT_BOOT_ID");
    FILE *f = fopen(path, "re");
    char text[ST_CLOCK_BOOT] = "";
    size_t n = 0;

    if (f && fscanf(f, "%63s", text) != 1)
        text[0] = '\0';
    if (f)
        fclose(f);
    if (!text[0] && told)
        snprintf(text, sizeof text, "%s", told);
    for (const char *at = text; *at; at++)
        if (strchr("0123456789abcdef", *at))
            ret[n++] = *at;
    ret[n] = '\0';
}

st_clock *st_clock_new(void (*jumped)(void *ctx, int64_t jump_ms), void *ctx)
{
    st_clock *clock = st_xcalloc(1, sizeof *clock);

    ST_ASSERT(pthread_mutex_init(&clock->lock, NULL) == 0);
    clock->jumped = jumped;
    clock->ctx = ctx;
    st_boot_read("/proc/sys/kernel/random/boot_id", clock->boot);
    st_steady_init(&clock->steady, read_us(CLOCK_REALTIME), read_us(CLOCK_BOOTTIME));
    return clock;
}

void st_clock_free(st_clock *clock)
{
    if (!clock)
        return;
    pthread_mutex_destroy(&clock->lock);
    free(clock);
}

void st_clock_go_on(st_clock *clock, int64_t last_ms, int64_t limit_ms, const char *boot,
                    int64_t ahead_ms)
{
    pthread_mutex_lock(&clock->lock);
    if (boot[0] && strcmp(boot, clock->boot) == 0)
        st_steady_resume(&clock->steady, last_ms * 1000, ahead_ms * 1000);
    else
        st_steady_go_on(&clock->steady, last_ms * 1000, limit_ms * 1000);
    pthread_mutex_unlock(&clock->lock);
}

bool st_clock_mark_ms(st_clock *clock, const char **ret_boot, int64_t *ret_ahead_ms)
{
    st_clock_ms(clock);
    pthread_mutex_lock(&clock->lock);
    *ret_boot = clock->boot;
    *ret_ahead_ms = (clock->steady.at - clock->steady.mono) / 1000;
    pthread_mutex_unlock(&clock->lock);
    return clock->boot[0] != '\0';
}

int64_t st_clock_off_ms(st_clock *clock, bool *ret_doubted)
{
    int64_t off;

    st_clock_ms(clock);
    pthread_mutex_lock(&clock->lock);
    off = clock->steady.off / 1000;
    *ret_doubted = st_steady_doubts(&clock->steady);
    pthread_mutex_unlock(&clock->lock);
    return off;
}

bool st_clock_accept(st_clock *clock)
{
    bool taken;

    st_clock_ms(clock);
    pthread_mutex_lock(&clock->lock);
    taken = st_steady_accept(&clock->steady);
    pthread_mutex_unlock(&clock->lock);
    return taken;
}

int64_t st_clock_ms(st_clock *clock)
{
    int64_t us, jump;

    pthread_mutex_lock(&clock->lock);
    us = st_steady_read(&clock->steady, read_us(CLOCK_REALTIME), read_us(CLOCK_BOOTTIME), &jump);
    pthread_mutex_unlock(&clock->lock);
    if (jump != 0 && clock->jumped)
        clock->jumped(clock->ctx, jump / 1000);
    return us / 1000;
}
