/*
 * Open addressing with linear probing. Deleting shifts the following entries
 * back instead of leaving tombstones, so lookups never slow down with age.
 *
 * Both maps share one table of (hash, val) slots. st_idmap keeps the id itself
 * in `hash` (mixed only for its position); st_map keeps the string's hash and
 * a copied key.
 *
 * Invariants: 1. cap is a power of two or 0. 2. at most 3/4 of the slots are
 * used. 3. no empty slot lies between an entry's home and its place.
 */
#include "base/map.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define MAP_FIRST_CAP ((size_t)16)

typedef struct slot {
    uint64_t hash; /* st_idmap: the id */
    int64_t val;
    char *key; /* st_idmap: NULL */
    bool used;
} slot;

typedef struct table {
    slot *slots;
    size_t cap;
    size_t n;
} table;

struct st_map {
    table t;
};

struct st_idmap {
    table t;
};

static size_t home_of(const table *t, uint64_t hash)
{
    return (size_t)st_hash_u64(hash, 0) & (t->cap - 1);
}

/* The slot that holds the entry, or the empty one where it would go; key NULL for ids. The table
 * has at least one empty slot. */
static size_t find_slot(const table *t, uint64_t hash, const char *key)
{
    size_t i = home_of(t, hash);

    while (t->slots[i].used) {
        if (t->slots[i].hash == hash && (!key || strcmp(t->slots[i].key, key) == 0))
            break;
        i = (i + 1) & (t->cap - 1);
    }
    return i;
}

static void table_grow(table *t)
{
    table bigger = {.n = t->n};

    if (t->cap > 0 && (t->n + 1) * 4 <= t->cap * 3)
        return;
    bigger.cap = t->cap ? t->cap * 2 : MAP_FIRST_CAP;
    bigger.slots = st_xcalloc(bigger.cap, sizeof(*bigger.slots));
    for (size_t i = 0; i < t->cap; i++) {
        size_t j;

        if (!t->slots[i].used)
            continue;
        for (j = home_of(&bigger, t->slots[i].hash); bigger.slots[j].used;)
            j = (j + 1) & (bigger.cap - 1);
        bigger.slots[j] = t->slots[i];
    }
    free(t->slots);
    *t = bigger;
}

/* Empties slot i and closes the gap: an entry behind it moves back whenever its home does not lie
 * between the gap and its place. */
static void table_remove(table *t, size_t i)
{
    size_t mask = t->cap - 1;
    size_t gap = i;

    for (size_t j = (i + 1) & mask; t->slots[j].used; j = (j + 1) & mask) {
        size_t home = home_of(t, t->slots[j].hash);

        if (((j - home) & mask) >= ((j - gap) & mask)) {
            t->slots[gap] = t->slots[j];
            gap = j;
        }
    }
    t->slots[gap] = (slot){0};
    ST_ASSERT(t->n > 0);
    t->n--;
}

static bool table_get(const table *t, uint64_t hash, const char *key, int64_t *ret)
{
    size_t i;

    if (t->n == 0)
        return false;
    i = find_slot(t, hash, key);
    if (!t->slots[i].used)
        return false;
    if (ret)
        *ret = t->slots[i].val;
    return true;
}

static uint64_t key_hash(const char *key)
{
    ST_ASSERT(key);
    return st_hash_bytes(key, strlen(key), 0);
}

st_map *st_map_new(void)
{
    return st_xcalloc(1, sizeof(st_map));
}

void st_map_free(st_map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->t.cap; i++)
        free(m->t.slots[i].key);
    free(m->t.slots);
    free(m);
}

bool st_map_get(const st_map *m, const char *key, int64_t *ret)
{
    return table_get(&m->t, key_hash(key), key, ret);
}

void st_map_put(st_map *m, const char *key, int64_t val)
{
    uint64_t hash = key_hash(key);
    slot *s;

    table_grow(&m->t);
    s = &m->t.slots[find_slot(&m->t, hash, key)];
    if (!s->used) {
        s->used = true;
        s->key = st_xstrdup(key);
        s->hash = hash;
        m->t.n++;
    }
    s->val = val;
}

bool st_map_del(st_map *m, const char *key)
{
    size_t i;

    if (m->t.n == 0)
        return false;
    i = find_slot(&m->t, key_hash(key), key);
    if (!m->t.slots[i].used)
        return false;
    free(m->t.slots[i].key);
    table_remove(&m->t, i);
    return true;
}

size_t st_map_count(const st_map *m)
{
    return m->t.n;
}

st_idmap *st_idmap_new(void)
{
    return st_xcalloc(1, sizeof(st_idmap));
}

void st_idmap_free(st_idmap *m)
{
    if (!m)
        return;
    free(m->t.slots);
    free(m);
}

bool st_idmap_get(const st_idmap *m, uint64_t key, int64_t *ret)
{
    return table_get(&m->t, key, NULL, ret);
}

void st_idmap_put(st_idmap *m, uint64_t key, int64_t val)
{
    slot *s;

    table_grow(&m->t);
    s = &m->t.slots[find_slot(&m->t, key, NULL)];
    if (!s->used) {
        s->used = true;
        s->hash = key;
        m->t.n++;
    }
    s->val = val;
}

bool st_idmap_del(st_idmap *m, uint64_t key)
{
    size_t i;

    if (m->t.n == 0)
        return false;
    i = find_slot(&m->t, key, NULL);
    if (!m->t.slots[i].used)
        return false;
    table_remove(&m->t, i);
    return true;
}

size_t st_idmap_count(const st_idmap *m)
{
    return m->t.n;
}
