/*
 * Growable arrays of any type:
 *
 *     ST_VEC(int) ids = {0};
 *     st_vec_push(&ids, 7);
 *     for (size_t i = 0; i < ids.n; i++) use(ids.v[i]);
 *     st_vec_free(&ids);
 *
 * To pass one between functions, name it: typedef ST_VEC(st_job *) job_vec;
 * The macros evaluate their vec and index arguments more than once, the item
 * exactly once. An item expression must not change the same vector. Pointers
 * into v are good until the next push, insert or reserve.
 */
#ifndef ST_BASE_VEC_H
#define ST_BASE_VEC_H

#include "base/macros.h"

#define ST_VEC(T)      \
    struct {           \
        T *v;          \
        size_t n, cap; \
    }

/* The untyped halves of the macros; each returns the array's new address. */
void *st_vec_grow_(void *v, size_t *cap, size_t need, size_t item_size);
void *st_vec_open_(void *v, size_t n, size_t *cap, size_t at, size_t item_size);
void *st_vec_trim_(void *v, size_t n, size_t *cap, size_t item_size);
void st_vec_close_(void *v, size_t *n, size_t at, size_t item_size);

/* Makes room for at least `need` items in all. */
#define st_vec_reserve(vec, need) \
    ((void)((vec)->v = st_vec_grow_((vec)->v, &(vec)->cap, (need), sizeof(*(vec)->v))))

/* Appends; the item may be a compound literal with commas in it. */
#define st_vec_push(vec, ...)               \
    do {                                    \
        st_vec_reserve(vec, (vec)->n + 1);  \
        (vec)->v[(vec)->n] = (__VA_ARGS__); \
        (vec)->n++;                         \
    } while (0)

/* Removes the last item and yields it. */
#define st_vec_pop(vec)          \
    __extension__({              \
        ST_ASSERT((vec)->n > 0); \
        (vec)->n--;              \
        (vec)->v[(vec)->n];      \
    })

/* Puts an item at index i (0 <= i <= n) and moves the ones behind it up. */
#define st_vec_insert(vec, i, ...)                                                                \
    do {                                                                                          \
        (vec)->v = st_vec_open_((vec)->v, (vec)->n, &(vec)->cap, (size_t)(i), sizeof(*(vec)->v)); \
        (vec)->v[i] = (__VA_ARGS__);                                                              \
        (vec)->n++; /* last: i may well be vec->n */                                              \
    } while (0)

/* Removes item i and keeps the order of the rest. */
#define st_vec_remove(vec, i) st_vec_close_((vec)->v, &(vec)->n, (size_t)(i), sizeof(*(vec)->v))

/* Forgets the items but keeps the memory. */
#define st_vec_clear(vec) ((void)((vec)->n = 0))

/* Gives back what it has beyond its items, for one that is kept and does not grow any more. */
#define st_vec_trim(vec) \
    ((void)((vec)->v = st_vec_trim_((vec)->v, (vec)->n, &(vec)->cap, sizeof(*(vec)->v))))

#define st_vec_free(vec)           \
    do {                           \
        free((vec)->v);            \
        (vec)->v = NULL;           \
        (vec)->n = (vec)->cap = 0; \
    } while (0)

#endif
