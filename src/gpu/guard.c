/*
 * Calls of a driver by a thread that may hang (gpu/guard.h).
 *
 * Invariant: one call at a time. A call is the thread's while it runs; its owner takes it back when it is done, or
 * leaves it to the thread when the time is over.
 */
#include "gpu/guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

/* X(id, what it does, whether it changes something) */
#define CALLS(X)                              \
    X(CALL_OPEN, "opening", true)             \
    X(CALL_INVENTORY, "inventory", false)     \
    X(CALL_SAMPLE, "sample", false)           \
    X(CALL_FRESH, "fresh sample", false)      \
    X(CALL_PROCS, "list of processes", false) \
    X(CALL_WAIT, "events", false)             \
    X(CALL_MODE, "compute mode", true)        \
    X(CALL_MIG_MODE, "MIG mode", true)        \
    X(CALL_PROFILES, "MIG profiles", false)   \
    X(CALL_LIST, "list of slices", false)     \
    X(CALL_CREATE, "new slice", true)         \
    X(CALL_DESTROY, "end of a slice", true)
typedef enum call_kind {
#define X(id, what, changes) id,
    CALLS(X)
#undef X
} call_kind;

static const struct {
    const char *what;
    bool changes;
} calls[] = {
#define X(id, what, changes) {what, changes},
    CALLS(X)
#undef X
};

typedef struct call {
    call_kind kind;
    int gpu; /* -1: of none in particular */
    int a, b;
    int64_t now_ms;
    size_t room, n;
    st_gpu_open_fn open;
    const void *ctx;

    int r;
    st_err err;
    st_gpu *opened;
    st_gpu_proc *procs; /* owned */
    union {
        st_gpu_inventory inventory;
        st_gpu_sample sample;
        st_gpu_event event;
        st_gpu_profile profiles[ST_MIG_COUNT];
        st_gpu_instances list;
        st_gpu_instance made;
    } ret;
} call;

typedef struct guard {
    st_gpu base;
    st_gpu_ops ops; /* base.ops: with the driver's name */
    st_gpu_limits limits;

    pthread_mutex_t lock;
    pthread_cond_t todo, done;
    st_gpu *inner; /* the thread's, once it is open */
    call *now;     /* under way, or done and not taken; NULL: nothing is */
    bool taken;    /* the thread has it */
    bool over;     /* it is done */
    bool given_up; /* nobody waits for it */
    bool leaving;  /* the thread is to end */
    bool hung;     /* it was given up and has not come back */
} guard;

static void free_call(call *c)
{
    free(c->procs);
    free(c);
}

/* ---- the thread ------------------------------------------------------------------------------- */

static void make(guard *g, call *c)
{
    st_gpu *in = g->inner;

    switch (c->kind) {
    case CALL_OPEN:
        c->r = c->open(c->ctx, &c->opened, &c->err);
        break;
    case CALL_INVENTORY:
        c->r = in->ops->inventory(in, &c->ret.inventory, &c->err);
        break;
    case CALL_SAMPLE:
        c->r = in->ops->sample(in, c->gpu, c->a, c->now_ms, &c->ret.sample, &c->err);
        break;
    case CALL_FRESH:
        if (in->ops->fresh)
            in->ops->fresh(in, c->gpu);
        break;
    case CALL_PROCS:
        c->r = in->ops->procs(in, c->gpu, c->procs, c->room, &c->n, &c->err);
        break;
    case CALL_WAIT:
        c->r = in->ops->wait(in, c->a, &c->ret.event, &c->err);
        break;
    case CALL_MODE:
        c->r = in->ops->set_mode(in, c->gpu, (st_gpu_mode)c->a, &c->err);
        break;
    case CALL_MIG_MODE:
        c->r = in->ops->mig_mode(in, c->gpu, c->a != 0, &c->err);
        break;
    case CALL_PROFILES:
        c->r = in->ops->mig_profiles(in, c->gpu, c->ret.profiles, &c->err);
        break;
    case CALL_LIST:
        c->r = in->ops->mig_list(in, c->gpu, &c->ret.list, &c->err);
        break;
    case CALL_CREATE:
        c->r = in->ops->mig_create(in, c->gpu, (st_mig)c->a, c->b, &c->ret.made, &c->err);
        break;
    case CALL_DESTROY:
        c->r = in->ops->mig_destroy(in, c->gpu, c->a, &c->err);
        break;
    }
}

static void free_guard(guard *g)
{
    st_gpu_free(g->inner);
    if (g->now)
        free_call(g->now);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->todo);
    pthread_cond_destroy(&g->done);
    free(g);
}

/* What was opened stays, even if nobody waited for it. */
static void finish(guard *g, call *c)
{
    if (c->kind == CALL_OPEN && c->r == 0)
        g->inner = c->opened;
    g->over = true;
    if (g->given_up) {
        free_call(c);
        g->now = NULL;
        g->hung = g->given_up = g->taken = g->over = false;
    }
    pthread_cond_signal(&g->done);
}

static void *run(void *ctx)
{
    guard *g = ctx;

    pthread_mutex_lock(&g->lock);
    while (!g->leaving) {
        if (!g->now || g->taken) {
            pthread_cond_wait(&g->todo, &g->lock);
            continue;
        }
        call *c = g->now;

        g->taken = true;
        pthread_mutex_unlock(&g->lock);
        make(g, c);
        pthread_mutex_lock(&g->lock);
        finish(g, c);
    }
    pthread_mutex_unlock(&g->lock);
    free_guard(g);
    return NULL;
}

/* ---- who asks --------------------------------------------------------------------------------- */

static void name_of(const call *c, char ret[64])
{
    if (c->gpu >= 0)
        snprintf(ret, 64, "%s of GPU %d", calls[c->kind].what, c->gpu);
    else
        snprintf(ret, 64, "%s", calls[c->kind].what);
}

static int fail_hung(const guard *g, st_err *err)
{
    char what[64];

    name_of(g->now, what);
    return st_fail(err, ST_EDOWN, ST_GPU_HANGS ": %s", what);
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000 * 1000000);
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* Takes the call over. On 0 or more *ret is the caller's, with what it brought; else it is gone. */
static int ask(guard *g, call *c, call **ret, st_err *err)
{
    int64_t ms = (calls[c->kind].changes ? g->limits.change_ms : g->limits.read_ms) +
                 (c->kind == CALL_WAIT ? c->a : 0);
    struct timespec until = in_ms(ms);
    int r = 0, late = 0;

    pthread_mutex_lock(&g->lock);
    if (g->now) {
        r = fail_hung(g, err);
        pthread_mutex_unlock(&g->lock);
        free_call(c);
        return r;
    }
    g->now = c;
    g->taken = g->over = false;
    pthread_cond_signal(&g->todo);
    while (!g->over && late != ETIMEDOUT)
        late = pthread_cond_timedwait(&g->done, &g->lock, &until);
    if (!g->over) {
        g->given_up = g->hung = true;
        r = fail_hung(g, err);
        pthread_mutex_unlock(&g->lock);
        return r;
    }
    g->now = NULL;
    g->taken = g->over = false;
    pthread_mutex_unlock(&g->lock);
    r = c->r;
    if (r < 0) {
        if (err)
            *err = c->err;
        free_call(c);
        return r;
    }
    *ret = c;
    return r;
}

static call *new_call(call_kind kind, int gpu)
{
    call *c = st_xcalloc(1, sizeof *c);

    c->kind = kind;
    c->gpu = gpu;
    return c;
}

/* Of which nothing but its success is wanted. */
static int ask_plain(st_gpu *g, call *c, st_err *err)
{
    call *back;
    int r = ask((guard *)g, c, &back, err);

    if (r >= 0)
        free_call(back);
    return r;
}

/* What it brought goes to `to`. */
static int fetch(st_gpu *g, call *c, void *to, size_t size, st_err *err)
{
    call *back;
    int r = ask((guard *)g, c, &back, err);

    if (r < 0)
        return r;
    memcpy(to, &back->ret, size);
    free_call(back);
    return r;
}

static int guard_inventory(st_gpu *g, st_gpu_inventory *ret, st_err *err)
{
    return fetch(g, new_call(CALL_INVENTORY, -1), ret, sizeof *ret, err);
}

static int guard_sample(st_gpu *g, int gpu, int gi, int64_t now_ms, st_gpu_sample *ret, st_err *err)
{
    call *c = new_call(CALL_SAMPLE, gpu);

    c->a = gi;
    c->now_ms = now_ms;
    return fetch(g, c, ret, sizeof *ret, err);
}

static void guard_fresh(st_gpu *g, int gpu)
{
    (void)ask_plain(g, new_call(CALL_FRESH, gpu), NULL);
}

static int guard_procs(st_gpu *g, int gpu, st_gpu_proc *buf, size_t room, size_t *ret_n,
                       st_err *err)
{
    call *c = new_call(CALL_PROCS, gpu), *back;
    int r;

    c->room = room;
    c->procs = st_xcalloc(room + 1, sizeof *c->procs);
    r = ask((guard *)g, c, &back, err);
    if (r < 0)
        return r;
    memcpy(buf, back->procs, ST_MIN(back->n, room) * sizeof *buf);
    *ret_n = back->n;
    free_call(back);
    return r;
}

static int guard_wait(st_gpu *g, int timeout_ms, st_gpu_event *ret, st_err *err)
{
    call *c = new_call(CALL_WAIT, -1);

    c->a = timeout_ms;
    return fetch(g, c, ret, sizeof *ret, err);
}

static int guard_set_mode(st_gpu *g, int gpu, st_gpu_mode mode, st_err *err)
{
    call *c = new_call(CALL_MODE, gpu);

    c->a = (int)mode;
    return ask_plain(g, c, err);
}

static int guard_mig_mode(st_gpu *g, int gpu, bool on, st_err *err)
{
    call *c = new_call(CALL_MIG_MODE, gpu);

    c->a = on;
    return ask_plain(g, c, err);
}

static int guard_profiles(st_gpu *g, int gpu, st_gpu_profile ret[ST_MIG_COUNT], st_err *err)
{
    return fetch(g, new_call(CALL_PROFILES, gpu), ret, ST_MIG_COUNT * sizeof *ret, err);
}

static int guard_list(st_gpu *g, int gpu, st_gpu_instances *ret, st_err *err)
{
    return fetch(g, new_call(CALL_LIST, gpu), ret, sizeof *ret, err);
}

static int guard_create(st_gpu *g, int gpu, st_mig profile, int start, st_gpu_instance *ret,
                        st_err *err)
{
    call *c = new_call(CALL_CREATE, gpu);

    c->a = (int)profile;
    c->b = start;
    return fetch(g, c, ret, sizeof *ret, err);
}

static int guard_destroy(st_gpu *g, int gpu, int gi, st_err *err)
{
    call *c = new_call(CALL_DESTROY, gpu);

    c->a = gi;
    return ask_plain(g, c, err);
}

/* The thread ends it, now or when it comes back. */
static void guard_free(st_gpu *base)
{
    guard *g = (guard *)base;

    pthread_mutex_lock(&g->lock);
    g->leaving = true;
    pthread_cond_signal(&g->todo);
    pthread_mutex_unlock(&g->lock);
}

static const st_gpu_ops guard_ops = {
    .free = guard_free,
    .inventory = guard_inventory,
    .sample = guard_sample,
    .fresh = guard_fresh,
    .procs = guard_procs,
    .wait = guard_wait,
    .set_mode = guard_set_mode,
    .mig_mode = guard_mig_mode,
    .mig_profiles = guard_profiles,
    .mig_list = guard_list,
    .mig_create = guard_create,
    .mig_destroy = guard_destroy,
};

/* ---- life ------------------------------------------------------------------------------------- */

static int start_thread(guard *g, st_err *err)
{
    pthread_attr_t detached;
    pthread_t thread;
    int r;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    r = pthread_create(&thread, &detached, run, g);
    pthread_attr_destroy(&detached);
    return r == 0 ? 0 : st_fail(err, ST_EINTERNAL, "a thread cannot be started: %s", strerror(r));
}

int st_gpu_guard_open(st_gpu_open_fn open, const void *ctx, const st_gpu_limits *limits,
                      st_gpu **ret, st_err *err)
{
    guard *g = st_xcalloc(1, sizeof *g);
    call *c = new_call(CALL_OPEN, -1);
    pthread_condattr_t steady;
    int r;

    g->limits = *limits;
    ST_ASSERT(pthread_mutex_init(&g->lock, NULL) == 0);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&g->todo, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&g->done, &steady) == 0);
    pthread_condattr_destroy(&steady);
    r = start_thread(g, err);
    if (r < 0) {
        free_call(c);
        free_guard(g);
        return r;
    }
    c->open = open;
    c->ctx = ctx;
    r = ask_plain(&g->base, c, err);
    if (r < 0) {
        guard_free(&g->base);
        return r;
    }
    g->ops = guard_ops;
    g->ops.name = g->inner->ops->name;
    g->base = (st_gpu){.ops = &g->ops, .n = g->inner->n};
    *ret = &g->base;
    return 0;
}

void st_gpu_hangs(const st_gpu *base, char ret[64])
{
    guard *g = (guard *)(uintptr_t)base;

    ret[0] = '\0';
    if (!base || base->ops->free != guard_free)
        return;
    pthread_mutex_lock(&g->lock);
    if (g->hung)
        name_of(g->now, ret);
    pthread_mutex_unlock(&g->lock);
}
