/*
 * A string that grows. Begin with {0}; s is NUL-terminated after the first
 * add. st_strbuf_done frees it and also serves ST_CLEANUP(st_strbuf_done).
 */
#ifndef ST_BASE_STRBUF_H
#define ST_BASE_STRBUF_H

#include "base/macros.h"

typedef struct st_strbuf {
    char *s;
    size_t n, cap;
} st_strbuf;

void st_strbuf_add(st_strbuf *b, const char *str);
void st_strbuf_addn(st_strbuf *b, const char *s, size_t n);
void st_strbuf_addc(st_strbuf *b, char c);
void st_strbuf_addf(st_strbuf *b, const char *fmt, ...) ST_PRINTF(2, 3);

/* Makes room for so many more bytes and one for the NUL. */
void st_strbuf_reserve(st_strbuf *b, size_t more);

/* For who adds very many small pieces: where the next bytes go, of which there may be up to `most`; and how many there
 * are now. */
static inline char *st_strbuf_room(st_strbuf *b, size_t most)
{
    if (b->cap - b->n <= most)
        st_strbuf_reserve(b, most);
    return b->s + b->n;
}

static inline void st_strbuf_grew(st_strbuf *b, size_t n)
{
    b->n += n;
    b->s[b->n] = '\0';
}

/* Empties it but keeps the memory. */
void st_strbuf_clear(st_strbuf *b);
void st_strbuf_done(st_strbuf *b);

/* The text, "" while nothing was added; good until the next change. */
const char *st_strbuf_str(const st_strbuf *b);

/* Hands the text to the caller, who frees it; the buffer is empty afterwards. */
char *st_strbuf_take(st_strbuf *b);

#endif
