/*
 * A wall clock that jumps, for tests: loaded before a program (LD_PRELOAD), it adds the milliseconds in the file
 * FAKECLOCK to CLOCK_REALTIME, as they are when it is asked. Other clocks are left alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset_ms(void)
{
    const char *path = getenv("FAKECLOCK");
    FILE *f = path ? fopen(path, "re") : NULL;
    long long ms = 0;

    if (f && fscanf(f, "%lld", &ms) != 1)
        ms = 0;
    if (f)
        fclose(f);
    return ms;
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long r = syscall(SYS_clock_gettime, clock, ret);

    if (r == 0 && clock == CLOCK_REALTIME) {
        long long ns = ret->tv_nsec + offset_ms() % 1000 * 1000000;

        ret->tv_sec += offset_ms() / 1000 + ns / 1000000000;
        ret->tv_nsec = ns % 1000000000;
        if (ret->tv_nsec < 0) {
            ret->tv_nsec += 1000000000;
            ret->tv_sec--;
        }
    }
    return (int)r;
}

int gettimeofday(struct timeval *ret, void *zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    ret->tv_sec = t.tv_sec;
    ret->tv_usec = t.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}
