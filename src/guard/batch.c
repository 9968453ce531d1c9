/*
 * Work in flight, in batches between two events of the driver: how much there is, when it is done, how long it took.
 *
 * Alone, a batch is a millisecond of launches, its time is read when it is long done, and nobody waits. In company a
 * batch is a turn (guard/turn.c): closed when it is as long as a turn, waited for, its time charged. Beside a
 * latency task two batches of half the bound may be in flight, or one launch where that alone is longer.
 */
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "guard/guard.h"

#define US       UINT64_C(1000)
#define MS       UINT64_C(1000000)
#define ALONE_NS MS
#define LOOK_NS  MS
#define SPARSE   (50 * US) /* launches further apart are measured one by one */
#define SEEN_NS  (500 * US)
#define SPIN_NS  (60 * US)
#define SHORT_NS (20 * US)
#define LONG_NS  MS
#define MANY     4096

typedef CUresult event_create_fn(CUevent *, unsigned);
typedef CUresult event_record_fn(CUevent, CUstream);
typedef CUresult event_query_fn(CUevent);
typedef CUresult event_elapsed_fn(float *, CUevent, CUevent);
typedef CUresult mode_fn(int *);

/* What the guard itself asks must not break a graph that is being captured. */
static int relax(void)
{
    mode_fn *exchange = GUARD_REAL(mode_fn *, cuThreadExchangeStreamCaptureMode);
    int mode = CU_CAPTURE_RELAXED;

    return exchange && exchange(&mode) == CUDA_SUCCESS ? mode : -1;
}

static void restore(int mode)
{
    mode_fn *exchange = GUARD_REAL(mode_fn *, cuThreadExchangeStreamCaptureMode);

    if (mode >= 0 && exchange)
        exchange(&mode);
}

static uint64_t budget(const guard_device *d)
{
    if (d->patient)
        return d->limit->bound_us * US / 2;
    return d->has_turn ? d->limit->quantum_us * US : ALONE_NS;
}

static bool record(CUevent *event, CUstream stream)
{
    event_create_fn *create = GUARD_REAL(event_create_fn *, cuEventCreate);
    event_record_fn *rec = GUARD_REAL(event_record_fn *, cuEventRecord);

    if (!create || !rec || (!*event && create(event, 0) != CUDA_SUCCESS))
        return false;
    return rec(*event, stream) == CUDA_SUCCESS;
}

static guard_batch *current(guard_device *d)
{
    return &d->ring[d->head];
}

static void open_batch(guard_device *d, CUstream stream, uint64_t now)
{
    guard_batch *b = current(d);

    if (d->open)
        return;
    b->nstream = b->launches = 0;
    b->opened_ns = now;
    d->open = record(&b->first, stream);
}

static void close_batch(guard_device *d)
{
    guard_batch *b = current(d);

    if (!d->open)
        return;
    for (int i = 0; i < b->nstream; i++)
        if (!b->recorded[i])
            b->recorded[i] = record(&b->last[i], b->stream[i]);
    d->open = false;
    if (b->nstream == 0)
        return;
    d->head = (d->head + 1) % GUARD_PENDING;
    d->pending++;
}

static bool done(const guard_batch *b)
{
    event_query_fn *query = GUARD_REAL(event_query_fn *, cuEventQuery);

    for (int i = 0; i < b->nstream; i++)
        if (b->recorded[i] && query && query(b->last[i]) == CUDA_ERROR_NOT_READY)
            return false;
    return true;
}

/* The oldest batch, which is done: its time. */
static uint64_t reap(guard_device *d)
{
    guard_batch *b = &d->ring[(d->head - d->pending + 2 * GUARD_PENDING) % GUARD_PENDING];
    event_elapsed_fn *elapsed = GUARD_REAL(event_elapsed_fn *, cuEventElapsedTime);
    float most = 0;
    uint64_t ns;

    for (int i = 0; i < b->nstream; i++) {
        float ms = 0;

        if (b->recorded[i] && elapsed && elapsed(&ms, b->first, b->last[i]) == CUDA_SUCCESS &&
            ms > most)
            most = ms;
    }
    d->pending--;
    ns = (uint64_t)((double)most * 1e6);
    guard_count(d, GUARD_COUNT_GPU_NS, ns);
    guard_spend(d, ns);
    if (b->launches > 0)
        d->each_ns = (d->each_ns + ns / (uint64_t)b->launches + 1) / (d->each_ns ? 2 : 1);
    if (d->patient && ns > d->limit->bound_us * US)
        guard_count(d, GUARD_COUNT_LONG, 1);
    return ns;
}

static guard_batch *oldest(guard_device *d)
{
    return &d->ring[(d->head - d->pending + 2 * GUARD_PENDING) % GUARD_PENDING];
}

static void harvest(guard_device *d)
{
    while (d->pending > 0 && done(oldest(d)))
        reap(d);
}

/* Sleeps until shortly before work should be done, then looks without pause for a moment, then sleeps again. To yield the
 * processor instead would hand it to everybody else on a busy node, for milliseconds. */
static void pause_for(uint64_t waited, uint64_t expect)
{
    uint64_t left = expect > waited ? expect - waited : 0;
    struct timespec t = {.tv_nsec = (long)(left > SPIN_NS ? left - SPIN_NS / 2 : SHORT_NS)};
    int slack;

    if (left <= SPIN_NS && waited < expect + SPIN_NS) {
        for (int i = 0; i < 32; i++)
            __builtin_ia32_pause();
        return;
    }
    if (t.tv_nsec > (long)LONG_NS)
        t.tv_nsec = (long)LONG_NS;
    slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
    nanosleep(&t, NULL);
    if (slack > 0)
        prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
}

/* Waits for the oldest; shows that we are alive as long as the device is at work for us. */
static uint64_t finish_oldest(guard_device *d)
{
    guard_batch *b = oldest(d);
    uint64_t began = guard_now(), now = began, expect = d->each_ns * (uint64_t)b->launches;

    while (!done(b)) {
        now = guard_now();
        if (d->has_turn) {
            atomic_store_explicit(&d->turn->seen_ns, now, memory_order_relaxed);
            atomic_store_explicit(&d->usage->held_ns, now, memory_order_relaxed);
        }
        pause_for(now - began, expect);
    }
    return reap(d);
}

static void finish_all(guard_device *d)
{
    uint64_t used = 0;

    close_batch(d);
    while (d->pending > 0)
        used += finish_oldest(d);
    if (d->has_turn)
        guard_turn_pass(d, used);
}

/* Events belong to a context; another one gets its own. */
static void follow_context(guard_device *d)
{
    typedef CUresult fn(CUcontext *);
    fn *get = GUARD_REAL(fn *, cuCtxGetCurrent);
    CUcontext now = NULL;

    if (!get || get(&now) != CUDA_SUCCESS || now == d->context)
        return;
    if (d->context)
        finish_all(d);
    memset(d->ring, 0, sizeof d->ring);
    d->head = d->pending = 0;
    d->open = false;
    d->context = now;
}

static bool full(const guard_device *d, uint64_t now)
{
    const guard_batch *b = &d->ring[d->head];
    uint64_t most = budget(d);

    return d->open && b->launches > 0 &&
           (d->each_ns == 0 || (uint64_t)b->launches * d->each_ns + d->each_ns > most ||
            now - b->opened_ns > most || b->launches >= MANY);
}

/* Batches that may be in flight beside a latency task, besides the one that is about to begin: as many as end before it is
 * back, where it keeps a rhythm; else one of half the bound. */
static int most_pending(guard_device *d)
{
    uint64_t room = d->each_ns ? guard_room(d, guard_now()) / d->each_ns : 0;

    if (room > 0)
        return room < GUARD_PENDING - 1 ? (int)room - 1 : GUARD_PENDING - 2;
    return d->each_ns > budget(d) || d->each_ns == 0 ? 0 : 1;
}

static void keep_little(guard_device *d)
{
    if (most_pending(d) == 0 || d->each_ns > budget(d))
        close_batch(d);
    while (d->pending > most_pending(d)) {
        harvest(d);
        if (d->pending > most_pending(d))
            finish_oldest(d);
    }
}

/* Under the device's lock: returns when the next launch may go. True: keep the lock over the launch. */
static bool admit(guard_device *d, CUstream stream, uint64_t now)
{
    const guard_limit *l = d->limit;
    bool turns = l->level == GUARD_LEVEL_TIME && !guard_is_latency(d) &&
                 (guard_most(d) || guard_in_company(d, now));

    if (d->has_turn && (!turns || full(d, now)))
        finish_all(d);
    if (!turns && full(d, now) && d->pending < GUARD_PENDING - 1)
        close_batch(d);
    if (!turns && guard_most(d)) { /* level mps has no turns, and yet may have a limit on time */
        while (d->pending > 0)
            finish_oldest(d);
        guard_wait_until_allowed(d);
    }
    /* Who may get company at any moment has little in flight, and yet never waits for an idle device. */
    while (d->nnear > 0 && !turns && d->pending > 1)
        finish_oldest(d);
    if (d->patient && !turns)
        keep_little(d);
    if (d->patient)
        guard_yield_to_latency(d);
    if (turns && !d->has_turn) {
        finish_all(d); /* what was begun before there was company */
        guard_turn_wait(d);
    }
    harvest(d);
    open_batch(d, stream, guard_now());
    return turns || d->patient;
}

static bool capturing(CUstream stream)
{
    typedef CUresult fn(CUstream, int *);
    fn *is = GUARD_REAL(fn *, cuStreamIsCapturing);
    int status = 0;

    if (atomic_load_explicit(&guard.captures, memory_order_relaxed) <= 0)
        return false;
    return !is || is(stream, &status) != CUDA_SUCCESS || status != 0;
}

guard_pass guard_enter(CUstream stream, bool twin, guard_counter what)
{
    guard_pass p = {.stream = stream || !twin ? stream : CU_STREAM_PER_THREAD, .twin = twin};
    guard_device *d = guard_device_now();
    uint64_t now;
    int mode;

    if (!d || capturing(p.stream))
        return p;
    guard_count(d, what, 1);
    mode = atomic_load(&guard.captures) > 0 ? relax() : -1;
    guard_lock(&d->lock);
    now = guard_now();
    if (now - d->looked_ns > LOOK_NS)
        guard_look_around(d, now);
    if (now - atomic_load_explicit(&d->turn->seen_ns, memory_order_relaxed) > SEEN_NS)
        atomic_store_explicit(&d->turn->seen_ns, now, memory_order_relaxed);
    guard_burst_begin(d, now);
    if (guard_is_latency(d)) { /* no events: they would be in its way */
        if (d->has_turn)       /* it has become one in the middle of a turn */
            finish_all(d);
        guard_show_active(d, true, now);
        guard_unlock(&d->lock);
        restore(mode);
        return p;
    }
    follow_context(d);
    d->gap_ns = (d->gap_ns * 7 + (now - d->launched_ns < MS ? now - d->launched_ns : MS)) / 8;
    d->launched_ns = now;
    p.locked = admit(d, p.stream, now);
    if (!p.locked)
        guard_unlock(&d->lock);
    p.d = d;
    restore(mode);
    return p;
}

/* Notes that the batch has work in this stream; more streams than a batch has room for make it end here. */
static void note_stream(guard_device *d, const guard_pass *p)
{
    guard_batch *b = current(d);
    int i = 0;

    while (i < b->nstream && b->stream[i] != p->stream)
        i++;
    if (i == b->nstream) {
        b->stream[i] = p->stream;
        b->nstream++;
    }
    b->recorded[i] = false;
    b->launches++;
    /* A thread's own stream cannot be named by another thread. */
    if (p->stream == CU_STREAM_PER_THREAD)
        b->recorded[i] = record(&b->last[i], p->stream);
}

void guard_leave(const guard_pass *p, CUresult r)
{
    guard_device *d = p->d;
    int mode;

    if (!d)
        return;
    mode = atomic_load(&guard.captures) > 0 ? relax() : -1;
    if (!p->locked)
        guard_lock(&d->lock);
    if (r == CUDA_SUCCESS && d->open) {
        note_stream(d, p);
        if (current(d)->nstream == GUARD_STREAMS || (d->gap_ns > SPARSE && !d->has_turn)) {
            if (d->pending < GUARD_PENDING - 1)
                close_batch(d);
            else if (current(d)->nstream == GUARD_STREAMS) {
                finish_oldest(d);
                close_batch(d);
            }
        }
    }
    guard_unlock(&d->lock);
    restore(mode);
}

/* Nothing of ours is left on the device. */
static bool idle(guard_device *d)
{
    typedef CUresult fn(CUstream);
    fn *query = GUARD_REAL(fn *, cuStreamQuery);
    const guard_batch *b = current(d);

    if (d->pending > 0)
        return false;
    for (int i = 0; d->open && i < b->nstream; i++)
        if (!query || query(b->stream[i]) != CUDA_SUCCESS)
            return false;
    return true;
}

/* ---- calls that wait -------------------------------------------------------------------------------- */

void guard_before_wait(void)
{
    guard_device *d = guard_device_now();

    if (!d || guard_is_latency(d) || atomic_load(&guard.captures) > 0)
        return;
    guard_lock(&d->lock);
    if (d->has_turn && full(d, guard_now()))
        finish_all(d); /* shows that we are alive, which the driver's own wait does not */
    else if (d->has_turn)
        ;
    else if (d->open && d->pending < GUARD_PENDING - 1)
        close_batch(d);
    guard_unlock(&d->lock);
}

void guard_after_wait(void)
{
    guard_device *d = guard_device_now();
    uint64_t now;

    if (!d || atomic_load(&guard.captures) > 0)
        return;
    guard_lock(&d->lock);
    harvest(d);
    if (d->has_turn && idle(d))
        finish_all(d);
    now = guard_now();
    if (guard_is_latency(d) || atomic_load_explicit(&d->turn->active_ns, memory_order_relaxed))
        guard_show_active(d, false, now);
    guard_burst_end(d, now);
    guard_unlock(&d->lock);
}
