/*
 * A chain of blocks with a cursor. Blocks before the cursor are full enough,
 * the one at the cursor is being filled, those after it are empty leftovers of
 * an earlier round.
 *
 * Invariants: 1. used <= cap in every block. 2. blocks after `cur` have used
 * 0. 3. `used` of the arena is the sum over its blocks.
 */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define ARENA_ALIGN     ((size_t)16)
#define ARENA_BLOCK_MIN ((size_t)16 * 1024)
#define ARENA_BLOCK_MAX ((size_t)1024 * 1024)

typedef struct arena_block {
    struct arena_block *next;
    size_t cap;
    size_t used;
    _Alignas(16) unsigned char data[];
} arena_block;

struct st_arena {
    arena_block *first;
    arena_block *cur;
    size_t next_cap; /* size of the next ordinary block; doubles up to ARENA_BLOCK_MAX */
    size_t used;
};

st_arena *st_arena_new(void)
{
    st_arena *a = st_xcalloc(1, sizeof(*a));

    a->next_cap = ARENA_BLOCK_MIN;
    return a;
}

void st_arena_free(st_arena *a)
{
    if (!a)
        return;
    for (arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

/* Makes a->cur a block with room for size bytes. */
static void arena_advance(st_arena *a, size_t size)
{
    arena_block *b;
    size_t cap;

    while (a->cur && a->cur->next) {
        a->cur = a->cur->next;
        ST_ASSERT(a->cur->used == 0);
        if (a->cur->cap >= size)
            return;
    }

    cap = ST_MAX(a->next_cap, size);
    ST_ASSERT(cap <= SIZE_MAX - sizeof(*b));
    b = st_xmalloc(sizeof(*b) + cap);
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
    if (a->cur)
        a->cur->next = b;
    else
        a->first = b;
    a->cur = b;
    a->next_cap = ST_MIN(a->next_cap * 2, ARENA_BLOCK_MAX);
}

void *st_arena_alloc(st_arena *a, size_t size)
{
    void *p;

    ST_ASSERT(a);
    ST_ASSERT(size <= SIZE_MAX / 2);
    size = (ST_MAX(size, (size_t)1) + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
    if (!a->cur || a->cur->cap - a->cur->used < size)
        arena_advance(a, size);

    p = a->cur->data + a->cur->used;
    a->cur->used += size;
    a->used += size;
    ST_ASSERT(a->cur->used <= a->cur->cap);
    memset(p, 0, size);
    return p;
}

void *st_arena_calloc(st_arena *a, size_t n, size_t size)
{
    size_t total;

    ST_ASSERT(!__builtin_mul_overflow(n, size, &total));
    return st_arena_alloc(a, total);
}

char *st_arena_strdup(st_arena *a, const char *s)
{
    return st_arena_strndup(a, s, strlen(s));
}

char *st_arena_strndup(st_arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = st_arena_alloc(a, len + 1);

    memcpy(copy, s, len);
    return copy;
}

void st_arena_reset(st_arena *a)
{
    ST_ASSERT(a);
    for (arena_block *b = a->first; b; b = b->next)
        b->used = 0;
    a->cur = a->first;
    a->used = 0;
}
