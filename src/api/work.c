/*
 * Threads for what takes long (api/work.h).
 */
#include "api/work.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

struct st_work {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    int running, max;
};

typedef struct errand {
    st_work *work;
    void (*fn)(void *arg);
    void *arg;
} errand;

st_work *st_work_new(int threads_max)
{
    st_work *w = st_xcalloc(1, sizeof *w);

    w->max = threads_max;
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

static void leave(st_work *w)
{
    pthread_mutex_lock(&w->lock);
    if (--w->running == 0)
        pthread_cond_broadcast(&w->idle);
    pthread_mutex_unlock(&w->lock);
}

static void *work(void *arg)
{
    errand e = *(errand *)arg;

    free(arg);
    e.fn(e.arg);
    leave(e.work);
    return NULL;
}

bool st_work_run(st_work *w, void (*fn)(void *arg), void *arg)
{
    errand *e;
    pthread_t thread;
    bool ok;

    pthread_mutex_lock(&w->lock);
    ok = w->running < w->max;
    w->running += ok;
    pthread_mutex_unlock(&w->lock);
    if (!ok)
        return false;
    e = st_xmalloc(sizeof *e);
    *e = (errand){w, fn, arg};
    if (pthread_create(&thread, NULL, work, e) != 0) {
        free(e);
        leave(w);
        return false;
    }
    pthread_detach(thread);
    return true;
}
