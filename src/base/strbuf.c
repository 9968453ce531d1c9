/*
 * The growing string of base/strbuf.h.
 *
 * Invariant: s is NULL and cap 0, or n < cap and s[n] is NUL.
 */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

void st_strbuf_reserve(st_strbuf *b, size_t more)
{
    size_t need;

    ST_ASSERT(b->n < SIZE_MAX / 4 && more < SIZE_MAX / 4);
    need = b->n + more + 1;
    if (need <= b->cap)
        return;
    b->cap = ST_MAX(ST_MAX(need, b->cap * 2), (size_t)64);
    b->s = st_xrealloc(b->s, b->cap);
}

void st_strbuf_add(st_strbuf *b, const char *str)
{
    st_strbuf_addn(b, str, strlen(str));
}

void st_strbuf_addn(st_strbuf *b, const char *s, size_t n)
{
    st_strbuf_reserve(b, n);
    if (n > 0)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = '\0';
}

void st_strbuf_addc(st_strbuf *b, char c)
{
    st_strbuf_addn(b, &c, 1);
}

void st_strbuf_addf(st_strbuf *b, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    ST_ASSERT(n >= 0);

    st_strbuf_reserve(b, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(b->s + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void st_strbuf_clear(st_strbuf *b)
{
    b->n = 0;
    if (b->s)
        b->s[0] = '\0';
}

void st_strbuf_done(st_strbuf *b)
{
    free(b->s);
    *b = (st_strbuf){0};
}

const char *st_strbuf_str(const st_strbuf *b)
{
    return b->s ? b->s : "";
}

char *st_strbuf_take(st_strbuf *b)
{
    char *s = b->s ? b->s : st_xstrdup("");

    *b = (st_strbuf){0};
    return s;
}
