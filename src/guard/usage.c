/*
 * Memory of all processes of a task on one device. Each process has its record and writes no other; the sum over all
 * of them is compared with the grant under the book's lock. The lock is the index of who has it, so that a process
 * that was killed with it is found out and the lock taken from it. Every number is one store: whoever dies, what is
 * left is true; records of the dead count as nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/guard.h"

#define WAIT_NS  UINT64_C(5000000) /* then a look whether the owner lives */
#define WAIT_MAX UINT64_C(80000000)

/* A process that has ended and was not waited for yet is dead as well. */
bool guard_proc_lives(const guard_proc *p)
{
    char path[32], text[512], *at;
    uint32_t pid = atomic_load(&p->pid);
    uint64_t was = atomic_load(&p->born);
    int fd, field = 2;
    ssize_t n;

    if (pid == 0)
        return false;
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno != ENOENT && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    if (!at || n <= 0)
        return false;
    if (at[1] == ' ' && (at[2] == 'Z' || at[2] == 'X'))
        return false;
    for (; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return was == 0 || !at || strtoull(at, NULL, 10) == was;
}

static void lock_usage(guard_device *d)
{
    uint32_t mine = (uint32_t)d->me + 1, was = 0;
    uint64_t wait = WAIT_NS;

    /* Each waits longer than before: a thousand that look every few milliseconds keep the owner from its work. */
    while (!atomic_compare_exchange_strong(&d->usage->lock, &was, mine)) {
        uint32_t owner = was;

        guard_futex_wait(&d->usage->lock, owner, wait);
        wait = wait < WAIT_MAX ? wait * 2 : wait;
        if (atomic_load(&d->usage->lock) == owner &&
            (owner > GUARD_PROCS || !guard_proc_lives(&d->usage->proc[owner - 1])) &&
            atomic_compare_exchange_strong(&d->usage->lock, &owner, mine))
            return;
        was = 0;
    }
}

static void unlock_usage(guard_device *d)
{
    uint32_t mine = (uint32_t)d->me + 1;

    atomic_compare_exchange_strong(&d->usage->lock, &mine, 0);
    guard_futex_wake(&d->usage->lock, 1);
}

static uint64_t of_process(const guard_proc *p)
{
    uint64_t sum = 0;

    for (int k = 0; k < GUARD_KIND_COUNT; k++)
        sum += atomic_load_explicit(&p->bytes[k], memory_order_relaxed);
    return sum;
}

static uint64_t sum_all(guard_device *d)
{
    uint32_t n = atomic_load(&d->usage->nproc);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n && i < GUARD_PROCS; i++)
        if (atomic_load_explicit(&d->usage->proc[i].pid, memory_order_relaxed))
            sum += of_process(&d->usage->proc[i]);
    return sum;
}

/* Under the lock: what the dead held is given back. */
static void bury(guard_device *d)
{
    uint32_t n = atomic_load(&d->usage->nproc);

    for (uint32_t i = 0; i < n && i < GUARD_PROCS; i++) {
        guard_proc *p = &d->usage->proc[i];

        if (!atomic_load(&p->pid) || guard_proc_lives(p))
            continue;
        for (int k = 0; k < GUARD_KIND_COUNT; k++)
            atomic_store(&p->bytes[k], 0);
        atomic_store(&p->pid, 0);
    }
}

bool guard_charge(guard_device *d, guard_kind kind, uint64_t bytes)
{
    _Atomic uint64_t *at = &d->usage->proc[d->me].bytes[kind];
    uint64_t most = d->limit->vram_bytes;
    bool fits;

    if (bytes == 0)
        return true;
    lock_usage(d);
    fits = bytes <= most && sum_all(d) <= most - bytes;
    if (!fits) {
        bury(d);
        fits = bytes <= most && sum_all(d) <= most - bytes;
    }
    if (fits)
        atomic_store(at, atomic_load(at) + bytes);
    unlock_usage(d);
    if (!fits)
        guard_count(d, GUARD_COUNT_REFUSED, 1);
    return fits;
}

void guard_uncharge(guard_device *d, guard_kind kind, uint64_t bytes)
{
    _Atomic uint64_t *at = d->me >= 0 ? &d->usage->proc[d->me].bytes[kind] : NULL;

    if (!at || bytes == 0)
        return;
    lock_usage(d);
    atomic_store(at, atomic_load(at) > bytes ? atomic_load(at) - bytes : 0);
    unlock_usage(d);
}

bool guard_charge_set(guard_device *d, guard_kind kind, uint64_t bytes)
{
    bool fits;

    lock_usage(d);
    atomic_store(&d->usage->proc[d->me].bytes[kind], bytes);
    fits = sum_all(d) <= d->limit->vram_bytes;
    if (!fits) {
        bury(d);
        fits = sum_all(d) <= d->limit->vram_bytes;
    }
    unlock_usage(d);
    return fits;
}

uint64_t guard_held(guard_device *d)
{
    uint64_t sum;

    lock_usage(d);
    bury(d);
    sum = sum_all(d);
    unlock_usage(d);
    return sum;
}

uint64_t guard_mine(guard_device *d, guard_kind kind)
{
    return atomic_load(&d->usage->proc[d->me].bytes[kind]);
}

void guard_count(guard_device *d, guard_counter what, uint64_t n)
{
    atomic_fetch_add_explicit(&d->usage->count[what], n, memory_order_relaxed);
}
