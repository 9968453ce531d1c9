/*
 * Clock, locks and waits by futex, so that nothing of a threads library is needed.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guard/guard.h"

#define NS_PER_S UINT64_C(1000000000)

uint64_t guard_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Shared, not private: the word may be in a file that several processes have mapped. A page that is mapped
 * read-only can be waited on as well. */
void guard_futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    int was = errno;

    syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
    errno = was;
}

void guard_futex_wake(_Atomic uint32_t *word, int most)
{
    int was = errno;

    syscall(SYS_futex, word, FUTEX_WAKE, most, NULL, NULL, 0);
    errno = was;
}

/* 0 free, 1 taken, 2 taken and waited for. */
void guard_lock(_Atomic uint32_t *lock)
{
    uint32_t was = 0;

    if (atomic_compare_exchange_strong(lock, &was, 1))
        return;
    while (atomic_exchange(lock, 2) != 0)
        guard_futex_wait(lock, 2, NS_PER_S);
}

void guard_unlock(_Atomic uint32_t *lock)
{
    if (atomic_exchange(lock, 0) == 2)
        guard_futex_wake(lock, 1);
}

/* One write, so that lines of several processes do not mix; the program's streams are left alone. */
void guard_say(const char *text, const char *what)
{
    char line[512] = "stint-guard: ";
    size_t n = strlen(line);

    for (const char *p = text; *p && n < sizeof line - 2; p++)
        line[n++] = *p;
    for (const char *p = what ? what : ""; *p && n < sizeof line - 2; p++)
        line[n++] = *p;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, n) < 0)
        return;
}
