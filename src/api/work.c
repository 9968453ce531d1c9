/*
 * Threads for what takes long (api/work.h).
 */
#include "api/work.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"

typedef struct errand {
    st_work *work;
    void (*fn)(void *arg);
    void *arg;
    struct errand *next;
} errand;

struct st_work {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int running, threads_max;
    int waiting, waiting_max;
    int nice;
    errand *first, **last; /* those that wait */
};

st_work *st_work_new(int threads_max, int waiting_max, int nice)
{
    st_work *w = st_xcalloc(1, sizeof *w);

    w->threads_max = threads_max;
    w->waiting_max = waiting_max;
    w->nice = nice;
    w->last = &w->first;
    ST_ASSERT(pthread_mutex_init(&w->lock, NULL) == 0);
    ST_ASSERT(pthread_cond_init(&w->idle, NULL) == 0);
    return w;
}

void st_work_free(st_work *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    while (w->running > 0)
        pthread_cond_wait(&w->idle, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* The next that waits; NULL: there is none, and this thread is over. */
static errand *next_of(st_work *w)
{
    errand *e;

    pthread_mutex_lock(&w->lock);
    e = w->first;
    if (e) {
        w->first = e->next;
        w->last = w->first ? w->last : &w->first;
        w->waiting--;
    } else if (--w->running == 0) {
        pthread_cond_broadcast(&w->idle);
    }
    pthread_mutex_unlock(&w->lock);
    return e;
}

static void *work(void *arg)
{
    errand *e = arg;
    st_work *w = e->work;

    if (w->nice)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + w->nice);
    for (; e; e = next_of(w)) {
        e->fn(e->arg);
        free(e);
    }
    return NULL;
}

/* With the lock held. */
static bool wait_in_line(st_work *w, errand *e)
{
    if (w->waiting == w->waiting_max)
        return false;
    *w->last = e;
    w->last = &e->next;
    w->waiting++;
    return true;
}

bool st_work_run(st_work *w, void (*fn)(void *arg), void *arg)
{
    errand *e = st_xmalloc(sizeof *e);
    pthread_t thread;
    bool ok;

    *e = (errand){.work = w, .fn = fn, .arg = arg};
    pthread_mutex_lock(&w->lock);
    if (w->running == w->threads_max) {
        ok = wait_in_line(w, e);
    } else {
        ok = pthread_create(&thread, NULL, work, e) == 0;
        if (ok)
            pthread_detach(thread);
        w->running += ok;
    }
    pthread_mutex_unlock(&w->lock);
    if (!ok)
        free(e);
    return ok;
}
