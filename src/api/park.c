/*
 * Waiting calls (api/park.h).
 *
 * Invariant: all entries are on the list until they have answered. Whoever looks at one has marked
 * it busy under the lock, and alone may take it off; a wake that meets a busy one sets `again`, so
 * that none is lost.
 */
#include "api/park.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define SWEEP_MS 250

struct st_park {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool runs, closed;
    st_parked *all;
    st_idmap *by_key; /* key -> the first under it */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void link_in(st_park *park, st_parked *p)
{
    int64_t first = 0;

    p->prev = NULL;
    p->next = park->all;
    if (p->next)
        p->next->prev = p;
    park->all = p;
    st_idmap_get(park->by_key, p->key, &first);
    p->same = (st_parked *)(intptr_t)first;
    st_idmap_put(park->by_key, p->key, (int64_t)(intptr_t)p);
}

static void take_out(st_park *park, st_parked *p)
{
    int64_t first = 0;
    st_parked *at;

    if (p->prev)
        p->prev->next = p->next;
    else
        park->all = p->next;
    if (p->next)
        p->next->prev = p->prev;
    st_idmap_get(park->by_key, p->key, &first);
    at = (st_parked *)(intptr_t)first;
    if (at == p && !p->same) {
        st_idmap_del(park->by_key, p->key);
    } else if (at == p) {
        st_idmap_put(park->by_key, p->key, (int64_t)(intptr_t)p->same);
    } else {
        while (at->same != p)
            at = at->same;
        at->same = p->same;
    }
}

/* Looks at an entry that we have marked busy. The lock is held, and released meanwhile. */
static void look(st_park *park, st_parked *p)
{
    bool done;

    do {
        bool late = p->late || park->closed;

        p->again = false;
        pthread_mutex_unlock(&park->lock);
        done = p->look(p, late);
        pthread_mutex_lock(&park->lock);
        ST_ASSERT(done || !late);
    } while (!done && (p->again || p->late || park->closed));
    p->busy = false;
    if (done) {
        take_out(park, p);
        free(p);
    }
}

typedef ST_VEC(st_parked *) entries;

static void gather(st_parked *p, entries *ret)
{
    if (p->busy) {
        p->again = true;
        return;
    }
    p->busy = true;
    st_vec_push(ret, p);
}

static void look_at(st_park *park, entries *list)
{
    for (size_t i = 0; i < list->n; i++)
        look(park, list->v[i]);
    st_vec_free(list);
}

static void *sweep(void *arg)
{
    st_park *park = arg;
    struct timespec until;

    pthread_mutex_lock(&park->lock);
    while (!park->closed) {
        int64_t now = now_ms();
        entries due = {0};

        for (st_parked *p = park->all; p; p = p->next) {
            p->late |= p->until_ms <= now;
            if (p->late || p->often)
                gather(p, &due);
        }
        look_at(park, &due);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (long)SWEEP_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!park->all && !park->closed)
            pthread_cond_wait(&park->wake, &park->lock);
        if (!park->closed)
            pthread_cond_timedwait(&park->wake, &park->lock, &until);
    }
    pthread_mutex_unlock(&park->lock);
    return NULL;
}

void st_park_add(st_park *park, st_parked *p)
{
    bool first;

    p->until_ms = now_ms() + p->wait_ms;
    p->busy = true;
    pthread_mutex_lock(&park->lock);
    first = !park->all;
    link_in(park, p);
    look(park, p);
    if (first)
        pthread_cond_signal(&park->wake);
    pthread_mutex_unlock(&park->lock);
}

void st_park_wake(st_park *park, uint64_t key, bool late)
{
    entries found = {0};
    int64_t first = 0;

    pthread_mutex_lock(&park->lock);
    st_idmap_get(park->by_key, key, &first);
    for (st_parked *p = (st_parked *)(intptr_t)first; p; p = p->same) {
        p->late |= late;
        gather(p, &found);
    }
    look_at(park, &found);
    pthread_mutex_unlock(&park->lock);
}

st_park *st_park_new(void)
{
    st_park *park = st_xcalloc(1, sizeof *park);
    pthread_condattr_t attr;

    park->by_key = st_idmap_new();
    ST_ASSERT(pthread_mutex_init(&park->lock, NULL) == 0);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    ST_ASSERT(pthread_cond_init(&park->wake, &attr) == 0);
    pthread_condattr_destroy(&attr);
    park->runs = pthread_create(&park->thread, NULL, sweep, park) == 0;
    ST_ASSERT(park->runs);
    return park;
}

void st_park_close(st_park *park)
{
    entries all = {0};

    pthread_mutex_lock(&park->lock);
    park->closed = true;
    pthread_cond_signal(&park->wake);
    for (st_parked *p = park->all; p; p = p->next)
        gather(p, &all);
    look_at(park, &all);
    pthread_mutex_unlock(&park->lock);
    if (park->runs)
        pthread_join(park->thread, NULL);
    park->runs = false;
}

void st_park_free(st_park *park)
{
    if (!park)
        return;
    st_park_close(park);
    ST_ASSERT(!park->all);
    st_idmap_free(park->by_key);
    pthread_cond_destroy(&park->wake);
    pthread_mutex_destroy(&park->lock);
    free(park);
}
