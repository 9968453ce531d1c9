/*
 * The outlook (control/outlook.h).
 */
#include "control/outlook.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "control/feed.h"
#include "control/state.h"

#define NICE     10
#define CHEAP_US INT64_C(5000)
#define REST     4 /* times as long as making one took, before the next */
#define TELL_MS  INT64_C(60000)
#define TOLD_MAX 256 /* in one transaction */

struct st_outlook {
    int refs; /* atomic */
    int64_t position, made_us;
    st_timeline *tl;
};

/* The thread and what it shares, under `lock`. */
struct st_outlooks {
    pthread_mutex_t lock;
    pthread_cond_t wanted, made;
    st_outlook *last;
    int64_t want;    /* a position that somebody asked about */
    uint64_t n;      /* how many were made, or could not be */
    int64_t made_ms; /* when the last one was, by the monotonic clock */
    bool stopping;
    pthread_t thread;
};

static int64_t monotonic_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What this thread has cost: a busy machine makes nothing dear. */
static int64_t worked_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void after(int64_t ms, struct timespec *ret)
{
    clock_gettime(CLOCK_MONOTONIC, ret);
    ret->tv_sec += ms / 1000;
    ret->tv_nsec += ms % 1000 * 1000000;
    if (ret->tv_nsec >= 1000000000) {
        ret->tv_sec++;
        ret->tv_nsec -= 1000000000;
    }
}

void st_outlook_unref(st_outlook *outlook)
{
    if (!outlook || __atomic_sub_fetch(&outlook->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    st_timeline_free(outlook->tl);
    free(outlook);
}

static st_outlook *ref(st_outlook *outlook)
{
    if (outlook)
        __atomic_add_fetch(&outlook->refs, 1, __ATOMIC_RELAXED);
    return outlook;
}

int st_outlook_of(const st_core *core, st_outlook **ret, st_err *err)
{
    st_outlook *outlook = st_xcalloc(1, sizeof *outlook);
    int r = st_core_timeline(core, &outlook->tl, err);

    outlook->refs = 1;
    if (r < 0)
        st_outlook_unref(outlook);
    else
        *ret = outlook;
    return r;
}

const st_timeline *st_outlook_timeline(const st_outlook *outlook)
{
    return outlook->tl;
}

bool st_outlook_is_cheap(const st_outlook *outlook)
{
    return outlook->made_us < CHEAP_US;
}

/* ---- telling ------------------------------------------------------------------------------- */

typedef struct tell {
    st_cmd cmd;
    st_outlook *outlook;
} tell;

/* Each job once for a wait. */
static int run_tell(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_estimates *list = st_timeline_list(((tell *)cmd)->outlook->tl);
    int n = 0;

    for (size_t i = 0; i < list->n && n < TOLD_MAX; i++) {
        const st_estimate *e = &list->v[i];
        const st_job *job = st_core_job(st_tx_core(tx), e->job);
        st_event told = {.kind = ST_EV_TOLD};

        if (!job || job->state != ST_JOB_PENDING || job->told_at_ms >= 0 ||
            e->start_ms == ST_TIME_NEVER)
            continue;
        told.u.told.id = e->job;
        told.u.told.start_ms = ST_MAX(e->start_ms, st_tx_now(tx));
        if (st_tx_apply(tx, &told, err) == 0)
            n++;
    }
    return 0;
}

static void done_tell(st_cmd *cmd, const st_err *err)
{
    tell *t = (tell *)cmd;

    (void)err; /* the next one is as good */
    st_outlook_unref(t->outlook);
    free(t);
}

static void tell_all(st_control *ctl, st_outlook *outlook)
{
    tell *t;

    if (st_timeline_list(outlook->tl)->n == 0)
        return;
    t = st_xcalloc(1, sizeof *t);
    t->cmd.run = run_tell;
    t->cmd.done = done_tell;
    t->outlook = ref(outlook);
    if (!st_control_post(ctl, &t->cmd))
        done_tell(&t->cmd, NULL);
}

/* ---- making ---------------------------------------------------------------------------------- */

static int copy_core(void *ctx, st_tx *tx, st_err *err)
{
    (void)err;
    st_core_save(st_tx_core(tx), ctx);
    return 0;
}

static st_outlook *make(st_control *ctl)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_outlook *outlook = st_xcalloc(1, sizeof *outlook);
    st_core *copy = NULL;
    int64_t began = worked_us();
    st_err err = {0};
    int r = st_control_read(ctl, ST_READ_SHARED, 0, copy_core, &saved, &outlook->position, &err);

    if (r == 0)
        r = st_core_load(st_strbuf_str(&saved), saved.n, &copy, &err);
    if (r == 0)
        r = st_core_timeline(copy, &outlook->tl, &err);
    st_core_free(copy);
    outlook->refs = 1;
    outlook->made_us = worked_us() - began;
    if (r < 0) {
        st_outlook_unref(outlook);
        return NULL;
    }
    return outlook;
}

static bool is_wanted(const st_outlooks *o)
{
    return o->want >= 0 && (!o->last || o->last->position < o->want);
}

/* Waits until one is wanted and due, or it is time to tell. False: it is over. */
static bool wait_for_work(st_outlooks *o, int64_t tell_ms)
{
    struct timespec until;
    bool go;

    pthread_mutex_lock(&o->lock);
    for (;;) {
        int64_t now = monotonic_us() / 1000, due = tell_ms;

        if (is_wanted(o))
            due = ST_MIN(due, o->made_ms + (o->last && !st_outlook_is_cheap(o->last)
                                                ? o->last->made_us / 1000 * REST
                                                : 0));
        if (o->stopping || due <= now)
            break;
        after(due - now, &until);
        pthread_cond_timedwait(&o->wanted, &o->lock, &until);
    }
    go = !o->stopping;
    pthread_mutex_unlock(&o->lock);
    return go;
}

static void publish(st_outlooks *o, st_outlook *outlook)
{
    st_outlook *old = NULL;

    pthread_mutex_lock(&o->lock);
    if (outlook) {
        old = o->last;
        o->last = outlook;
    }
    o->want = -1;
    o->n++;
    o->made_ms = monotonic_us() / 1000;
    pthread_cond_broadcast(&o->made);
    pthread_mutex_unlock(&o->lock);
    st_outlook_unref(old);
}

static void *look_ahead(void *arg)
{
    st_control *ctl = arg;
    st_outlooks *o = ctl->outlooks;
    int64_t every = ctl->options.tell_ms ? ctl->options.tell_ms : TELL_MS;
    int64_t tell_ms = monotonic_us() / 1000 + every, told = -1;

    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICE);
    while (wait_for_work(o, tell_ms)) {
        bool telling = monotonic_us() / 1000 >= tell_ms;
        st_outlook *outlook;

        if (telling)
            tell_ms = monotonic_us() / 1000 + every;
        if (telling && told == st_control_position(ctl))
            continue; /* nothing has happened, and all were told */
        outlook = make(ctl);
        publish(o, ref(outlook));
        if (telling && outlook) {
            /* The next row may be its own or anybody's: it looks once more and finds that all were told. */
            told = outlook->position;
            tell_all(ctl, outlook);
        }
        st_outlook_unref(outlook);
    }
    return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

st_outlook *st_control_outlook(st_control *ctl, int64_t position)
{
    st_outlooks *o = ctl->outlooks;
    struct timespec until;
    st_outlook *ret;
    int late = 0;

    if (!o)
        return NULL;
    after(ST_OUTLOOK_WAIT_MS, &until);
    pthread_mutex_lock(&o->lock);
    if (!o->last || o->last->position < position) {
        uint64_t n = o->n;

        o->want = ST_MAX(o->want, position);
        pthread_cond_signal(&o->wanted);
        /* One that is being made may be of an older state: the next is not. */
        while (!o->stopping && late != ETIMEDOUT && o->n < n + 2 &&
               (!o->last || (st_outlook_is_cheap(o->last) && o->last->position < position))) {
            o->want = ST_MAX(o->want, position);
            late = pthread_cond_timedwait(&o->made, &o->lock, &until);
            pthread_cond_signal(&o->wanted);
        }
    }
    ret = ref(o->last);
    pthread_mutex_unlock(&o->lock);
    return ret;
}

int st_outlooks_start(st_control *ctl, st_err *err)
{
    st_outlooks *o = st_xcalloc(1, sizeof *o);
    pthread_condattr_t clock;

    o->want = 0; /* one is there before anybody asks */
    ST_ASSERT(pthread_mutex_init(&o->lock, NULL) == 0);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&o->wanted, &clock) == 0);
    ST_ASSERT(pthread_cond_init(&o->made, &clock) == 0);
    pthread_condattr_destroy(&clock);
    ctl->outlooks = o;
    if (pthread_create(&o->thread, NULL, look_ahead, ctl) == 0)
        return 0;
    o->stopping = true;
    return st_fail(err, ST_EINTERNAL, "the thread for estimates cannot be started");
}

void st_outlooks_stop(st_control *ctl)
{
    st_outlooks *o = ctl->outlooks;
    bool runs;

    if (!o)
        return;
    pthread_mutex_lock(&o->lock);
    runs = !o->stopping;
    o->stopping = true;
    pthread_cond_broadcast(&o->wanted);
    pthread_cond_broadcast(&o->made);
    pthread_mutex_unlock(&o->lock);
    if (runs)
        pthread_join(o->thread, NULL);
}

void st_outlooks_free(st_control *ctl)
{
    st_outlooks *o = ctl->outlooks;

    if (!o)
        return;
    st_outlooks_stop(ctl);
    st_outlook_unref(o->last);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->wanted);
    pthread_cond_destroy(&o->made);
    free(o);
    ctl->outlooks = NULL;
}
