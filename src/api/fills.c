/*
 * How full volumes are (api/volumes.h). A count goes through the whole tree, so it is kept for a while: the longer it took, the
 * longer. What tasks write meanwhile is seen at the next count; agents count as well, and end those who go beyond.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/volumes.h"
#include "base/mem.h"
#include "base/vec.h"

#define KEEP_MS 10000
#define PART    20 /* of the time is spent counting one */
#define KEPT    1024

typedef struct fill {
    char id[ST_VOLUME_ID_MAX];
    st_beneath_use use;
    int64_t until_ms;
} fill;

struct st_fills {
    pthread_mutex_t lock;
    ST_VEC(fill) v;
};

st_fills *st_fills_new(void)
{
    st_fills *f = st_xcalloc(1, sizeof *f);

    ST_ASSERT(pthread_mutex_init(&f->lock, NULL) == 0);
    return f;
}

void st_fills_free(st_fills *f)
{
    if (!f)
        return;
    st_vec_free(&f->v);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* With the lock held. */
static fill *find(st_fills *f, const char *id)
{
    for (size_t i = 0; i < f->v.n; i++)
        if (strcmp(f->v.v[i].id, id) == 0)
            return &f->v.v[i];
    return NULL;
}

static int64_t ticks_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Whose count is the oldest makes room. */
static void keep(st_fills *f, const char *id, const st_beneath_use *use, int64_t until_ms)
{
    fill *at;

    pthread_mutex_lock(&f->lock);
    at = find(f, id);
    if (!at && f->v.n < KEPT) {
        st_vec_push(&f->v, (fill){.until_ms = 0});
        at = &f->v.v[f->v.n - 1];
    }
    for (size_t i = 0; !at && i < f->v.n; i++)
        if (i == 0 || f->v.v[i].until_ms < at->until_ms)
            at = &f->v.v[i];
    memcpy(at->id, id, sizeof at->id);
    at->use = *use;
    at->until_ms = until_ms;
    pthread_mutex_unlock(&f->lock);
}

int st_fills_get(st_fills *f, const char *id, int root, int64_t now_ms, st_beneath_use *ret,
                 st_err *err)
{
    int64_t began = ticks_ms(), took;
    st_beneath_use use;
    const fill *at;
    int r;

    pthread_mutex_lock(&f->lock);
    at = find(f, id);
    if (at && now_ms < at->until_ms) {
        *ret = at->use;
        pthread_mutex_unlock(&f->lock);
        return 0;
    }
    pthread_mutex_unlock(&f->lock);
    r = st_beneath_count(root, INT64_C(1) << 40, &use, err);
    if (r < 0)
        return r;
    took = ticks_ms() - began;
    keep(f, id, &use, now_ms + ST_MAX(KEEP_MS, took * PART));
    *ret = use;
    return 0;
}

void st_fills_add(st_fills *f, const char *id, int64_t bytes, int64_t files)
{
    fill *at;

    pthread_mutex_lock(&f->lock);
    at = find(f, id);
    if (at) {
        at->use.bytes = ST_MAX(at->use.bytes + bytes, 0);
        at->use.files = ST_MAX(at->use.files + files, 0);
    }
    pthread_mutex_unlock(&f->lock);
}
