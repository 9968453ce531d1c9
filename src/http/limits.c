/*
 * Token buckets. A bucket holds thousandths of a call and is brought up to
 * date when it is looked at, so that a key costs nothing while it is silent.
 *
 * Invariant: slot[i] is under its key in the map; a slot in use has running > 0
 * or was used since the last sweep.
 */
#include "http/limits.h"

#include <pthread.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

#define IDLE_MS 10000

typedef struct slot {
    uint64_t key;
    int64_t milli;     /* tokens left, in thousandths */
    int64_t filled_ms; /* when that was so; -1: no call with a rate has come yet */
    int64_t seen_ms;
    int running;
} slot;

struct st_http_limits {
    pthread_mutex_t lock;
    st_idmap *index;
    ST_VEC(slot) slots;
};

st_http_limits *st_limits_new(void)
{
    st_http_limits *limits = st_xcalloc(1, sizeof(*limits));

    pthread_mutex_init(&limits->lock, NULL);
    limits->index = st_idmap_new();
    return limits;
}

void st_limits_free(st_http_limits *limits)
{
    if (!limits)
        return;
    st_idmap_free(limits->index);
    st_vec_free(&limits->slots);
    pthread_mutex_destroy(&limits->lock);
    free(limits);
}

static slot *find_slot(st_http_limits *limits, uint64_t key)
{
    int64_t at;

    return st_idmap_get(limits->index, key, &at) ? &limits->slots.v[at] : NULL;
}

static slot *need_slot(st_http_limits *limits, uint64_t key, int64_t now_ms)
{
    slot *s = find_slot(limits, key);

    if (s)
        return s;
    st_idmap_put(limits->index, key, (int64_t)limits->slots.n);
    st_vec_push(&limits->slots, (slot){.key = key, .filled_ms = -1, .seen_ms = now_ms});
    return &limits->slots.v[limits->slots.n - 1];
}

/* Calls without a rate leave the bucket alone: they neither drain it nor stop its filling. */
static void fill(slot *s, int rate_per_s, int64_t now_ms)
{
    int64_t full = (int64_t)rate_per_s * 2 * 1000;

    if (s->filled_ms < 0) {
        s->milli = full;
        s->filled_ms = now_ms;
    } else if (now_ms > s->filled_ms) {
        int64_t elapsed_ms = ST_MIN(now_ms - s->filled_ms, IDLE_MS);

        s->milli = ST_MIN(s->milli + elapsed_ms * rate_per_s, full);
        s->filled_ms = now_ms;
    }
}

st_limit_result st_limits_enter(st_http_limits *limits, uint64_t key, int rate_per_s,
                                int running_max, int64_t now_ms, int64_t *ret_wait_ms)
{
    st_limit_result result = ST_LIMIT_PASS;
    slot *s;

    pthread_mutex_lock(&limits->lock);
    s = need_slot(limits, key, now_ms);
    if (rate_per_s >= 0)
        fill(s, rate_per_s, now_ms);
    s->seen_ms = ST_MAX(now_ms, s->seen_ms);
    if (running_max >= 0 && s->running >= running_max) {
        result = ST_LIMIT_RUNNING;
    } else if (rate_per_s >= 0 && s->milli < 1000) {
        result = ST_LIMIT_RATE;
        *ret_wait_ms = rate_per_s > 0 ? (1000 - s->milli + rate_per_s - 1) / rate_per_s : 60000;
    } else {
        s->running++;
        if (rate_per_s >= 0)
            s->milli -= 1000;
    }
    pthread_mutex_unlock(&limits->lock);
    return result;
}

void st_limits_leave(st_http_limits *limits, uint64_t key)
{
    slot *s;

    pthread_mutex_lock(&limits->lock);
    s = find_slot(limits, key);
    ST_ASSERT(s && s->running > 0);
    s->running--;
    pthread_mutex_unlock(&limits->lock);
}

void st_limits_sweep(st_http_limits *limits, int64_t now_ms)
{
    pthread_mutex_lock(&limits->lock);
    for (size_t i = 0; i < limits->slots.n;) {
        slot *s = &limits->slots.v[i];

        if (s->running > 0 || now_ms - s->seen_ms < IDLE_MS) {
            i++;
            continue;
        }
        st_idmap_del(limits->index, s->key);
        *s = limits->slots.v[limits->slots.n - 1];
        limits->slots.n--;
        if (i < limits->slots.n)
            st_idmap_put(limits->index, s->key, (int64_t)i);
    }
    pthread_mutex_unlock(&limits->lock);
}
