/*
 * The allocating functions of base/mem.h. A size of 0 is rounded up to 1, so
 * that NULL always means "nothing there" and never "an empty thing".
 */
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static _Noreturn void out_of_memory(size_t n, size_t size)
{
    fprintf(stderr, "stint: out of memory (%zu x %zu bytes asked)\n", n, size);
    abort();
}

void *st_xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);

    if (!p)
        out_of_memory(1, size);
    return p;
}

void *st_xcalloc(size_t n, size_t size)
{
    size_t total;
    void *p;

    if (__builtin_mul_overflow(n, size, &total))
        out_of_memory(n, size);
    p = calloc(1, total ? total : 1);
    if (!p)
        out_of_memory(n, size);
    return p;
}

void *st_xrealloc(void *p, size_t size)
{
    p = realloc(p, size ? size : 1);
    if (!p)
        out_of_memory(1, size);
    return p;
}

void *st_xreallocarray(void *p, size_t n, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(n, size, &total))
        out_of_memory(n, size);
    return st_xrealloc(p, total);
}

char *st_xstrdup(const char *s)
{
    return st_xstrndup(s, strlen(s));
}

char *st_xstrndup(const char *s, size_t n)
{
    size_t len;
    char *copy;

    ST_ASSERT(s);
    len = strnlen(s, n);
    copy = st_xmalloc(len + 1);
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

void st_freep(void *p)
{
    void *target;

    /* memcpy, not *(void **)p: p may point at a pointer of any type. */
    memcpy(&target, p, sizeof(target));
    free(target);
    target = NULL;
    memcpy(p, &target, sizeof(target));
}

int st_mem_no_core(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_CORE, &limit) < 0)
        return -1;
    limit.rlim_max = ST_MIN(limit.rlim_max, ST_NO_CORE);
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_CORE, &limit);
}
