/*
 * The untyped halves of the macros in base/vec.h.
 *
 * Invariant: n <= cap, and v has room for cap items (NULL when cap is 0).
 */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define VEC_FIRST_CAP 8

void *st_vec_grow_(void *v, size_t *cap, size_t need, size_t item_size)
{
    size_t new_cap;

    if (need <= *cap)
        return v;
    new_cap = *cap <= SIZE_MAX / 2 ? *cap * 2 : need;
    new_cap = ST_MAX(ST_MAX(new_cap, need), (size_t)VEC_FIRST_CAP);
    v = st_xreallocarray(v, new_cap, item_size);
    *cap = new_cap;
    return v;
}

void *st_vec_open_(void *v, size_t n, size_t *cap, size_t at, size_t item_size)
{
    char *items;

    ST_ASSERT(at <= n);
    items = st_vec_grow_(v, cap, n + 1, item_size);
    memmove(items + (at + 1) * item_size, items + at * item_size, (n - at) * item_size);
    return items;
}

void *st_vec_trim_(void *v, size_t n, size_t *cap, size_t item_size)
{
    if (n == *cap)
        return v;
    *cap = n;
    if (n > 0)
        return st_xreallocarray(v, n, item_size);
    free(v);
    return NULL;
}

void st_vec_close_(void *v, size_t *n, size_t at, size_t item_size)
{
    char *items = v;

    ST_ASSERT(at < *n);
    memmove(items + at * item_size, items + (at + 1) * item_size, (*n - at - 1) * item_size);
    (*n)--;
}
