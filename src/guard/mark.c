/*
 * How long requests take, for metrics and for the watch on neighbours (src/neighbour). Three ways to be seen:
 *
 *   bursts   from a launch until the program has waited for it; always counted, nothing to do
 *   marks    the program says where a request begins and ends: stint_guard_mark()
 *   STINT_GUARD_REQUESTS=bursts   a server that cannot be changed: each burst is a request
 *
 * Requests are written into the book of the task's first device.
 */
#include <stdlib.h>
#include <string.h>

#include "guard/guard.h"

static void note(_Atomic uint64_t *times, uint64_t ns)
{
    atomic_fetch_add_explicit(&times[guard_time_step(ns)], 1, memory_order_relaxed);
}

static void note_request(guard_device *d, uint64_t ns)
{
    guard_count(d, GUARD_COUNT_REQUESTS, 1);
    guard_count(d, GUARD_COUNT_REQUEST_NS, ns);
    note(d->usage->request, ns);
}

/* Asked once; the answer is the same for each thread that asks. */
static bool bursts_are_requests(void)
{
    static _Atomic int known; /* 1: no, 2: yes */
    int was = atomic_load_explicit(&known, memory_order_relaxed);

    if (!was) {
        const char *text = getenv("STINT_GUARD_REQUESTS");

        was = text && strcmp(text, "bursts") == 0 ? 2 : 1;
        atomic_store(&known, was);
    }
    return was == 2;
}

void guard_burst_begin(guard_device *d, uint64_t now)
{
    if (!d->burst_ns)
        d->burst_ns = now;
}

void guard_burst_end(guard_device *d, uint64_t now)
{
    uint64_t ns = now - d->burst_ns;

    if (!d->burst_ns)
        return;
    d->burst_ns = 0;
    guard_count(d, GUARD_COUNT_BURSTS, 1);
    note(d->usage->burst, ns);
    if (bursts_are_requests())
        note_request(&guard.dev[0], ns);
}

/* 0 begins a request, and the answer is its mark; the mark ends it. Several may be under way, in any thread. 0 is the
 * answer where there is nothing to write to. */
__attribute__((visibility("default"))) uint64_t stint_guard_mark(uint64_t mark);

uint64_t stint_guard_mark(uint64_t mark)
{
    guard_device *d = &guard.dev[0];
    uint64_t now = guard_now();

    if (!guard_begin() || guard.grant->ndev == 0 || !guard_map(d))
        return 0;
    if (mark == 0)
        return now;
    if (mark < now)
        note_request(d, now - mark);
    return 0;
}
