/*
 * What this process's pointers and handles stand for, so that a free gives back what the allocation took. Open
 * addressing with tombstones; grown by half-full. Its lock is held for a few memory accesses, never over a call.
 */
#include <stdlib.h>

#include "guard/guard.h"

#define FIRST 1024
#define FREE  0xff
#define GONE  0xfe

typedef struct table {
    guard_entry *v;
    size_t room, used; /* used: tombstones as well */
    _Atomic uint32_t lock;
} table;

static table *the_table(void)
{
    static table t;

    return &t;
}

static size_t place(const table *t, int set, uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)set << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h >> 20) & (t->room - 1);
}

static guard_entry *find(table *t, int set, uint64_t key)
{
    for (size_t i = t->room ? place(t, set, key) : 0; t->room; i = (i + 1) & (t->room - 1)) {
        if (t->v[i].set == FREE)
            return NULL;
        if (t->v[i].set == set && t->v[i].key == key)
            return &t->v[i];
    }
    return NULL;
}

static void insert(table *t, guard_entry e)
{
    size_t i = place(t, e.set, e.key);

    while (t->v[i].set != FREE)
        i = (i + 1) & (t->room - 1);
    t->v[i] = e;
    t->used++;
}

static bool grow(table *t)
{
    table next = {.room = FIRST};
    size_t live = 0;

    for (size_t i = 0; i < t->room; i++)
        live += t->v[i].set < GONE;
    while (next.room <
           live * 4) /* tombstones go; who allocates and frees for ever does not grow it */
        next.room *= 2;
    next.v = malloc(next.room * sizeof *next.v);
    if (!next.v)
        return false;
    for (size_t i = 0; i < next.room; i++)
        next.v[i].set = FREE;
    for (size_t i = 0; i < t->room; i++)
        if (t->v[i].set < GONE)
            insert(&next, t->v[i]);
    free(t->v);
    t->v = next.v;
    t->room = next.room;
    t->used = next.used;
    return true;
}

bool guard_table_put(guard_entry e)
{
    table *t = the_table();
    bool ok;

    guard_lock(&t->lock);
    ok = t->used * 2 < t->room || grow(t);
    if (ok)
        insert(t, e);
    guard_unlock(&t->lock);
    return ok;
}

bool guard_table_take(int set, uint64_t key, guard_entry *ret)
{
    table *t = the_table();
    guard_entry *e;

    guard_lock(&t->lock);
    e = find(t, set, key);
    if (e) {
        *ret = *e;
        e->set = GONE;
    }
    guard_unlock(&t->lock);
    return e != NULL;
}

bool guard_table_change(int set, uint64_t key, int refs, int64_t bytes, guard_entry *ret)
{
    table *t = the_table();
    guard_entry *e;

    guard_lock(&t->lock);
    e = find(t, set, key);
    if (e) {
        e->refs = (int16_t)(e->refs + refs);
        e->bytes += (uint64_t)bytes;
        *ret = *e;
    }
    guard_unlock(&t->lock);
    return e != NULL;
}

bool guard_table_next(int set, size_t *at, guard_entry *ret)
{
    table *t = the_table();
    bool found = false;

    guard_lock(&t->lock);
    for (; *at < t->room && !found; (*at)++)
        if (t->v[*at].set == set) {
            *ret = t->v[*at];
            found = true;
        }
    guard_unlock(&t->lock);
    return found;
}

/* In a child just forked: another thread may have had the lock, and the entries are the parent's. */
void guard_table_forget(void)
{
    table *t = the_table();

    t->v = NULL;
    t->room = t->used = 0;
    atomic_store(&t->lock, 0);
}
