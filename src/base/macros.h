/*
 * Small macros everything uses: assertions, attributes, ownership.
 *
 * ST_ASSERT is for our own mistakes and stays on in production; bad input gets
 * an st_err, never an assertion.
 */
#ifndef ST_BASE_MACROS_H
#define ST_BASE_MACROS_H

#include <stddef.h>
#include <stdlib.h>

/* For products that are divided again before they are narrowed; ISO C has no name for these. */
__extension__ typedef __int128 st_i128;
__extension__ typedef unsigned __int128 st_u128;

/* Prints "FILE:LINE: FUNC: assertion failed: EXPR" to stderr and aborts. */
_Noreturn void st_assert_fail(const char *file, int line, const char *func, const char *expr);

#define ST_ASSERT(x) ((x) ? (void)0 : st_assert_fail(__FILE__, __LINE__, __func__, #x))

#define ST_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Each side is evaluated once: a clock that is read twice would be compared at one moment and
 * taken at another. */
#define ST_MIN(a, b)         ST_PICK(a, <, b, __COUNTER__)
#define ST_MAX(a, b)         ST_PICK(a, >, b, __COUNTER__)
#define ST_PICK(a, op, b, n) ST_PICK_(a, op, b, n)
#define ST_PICK_(a, op, b, n)                    \
    __extension__({                              \
        __typeof__(1 ? (a) : (b)) st_a##n = (a); \
        __typeof__(1 ? (a) : (b)) st_b##n = (b); \
        st_a##n op st_b##n ? st_a##n : st_b##n;  \
    })

#define ST_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#define ST_CLEANUP(fn)                __attribute__((cleanup(fn)))
#define ST_UNUSED                     __attribute__((unused))

/* Hands a pointer over: yields its value and leaves NULL behind. */
#define ST_TAKE(ptr)                                     \
    __extension__({                                      \
        __typeof__(ptr) *st_take_from_ = &(ptr);         \
        __typeof__(ptr) st_take_value_ = *st_take_from_; \
        *st_take_from_ = NULL;                           \
        st_take_value_;                                  \
    })

/* Defines st_x_freep(st_x **) for ST_CLEANUP from st_x_free(st_x *), which must accept NULL. */
#define ST_DEFINE_FREEP(type, free_fn)                \
    static inline ST_UNUSED void free_fn##p(type **p) \
    {                                                 \
        free_fn(*p);                                  \
        *p = NULL;                                    \
    }

#endif
