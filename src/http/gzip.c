/*
 * Answers in fewer bytes, for callers that say they take them (Accept-Encoding: gzip).
 */
#include "http/gzip.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/mem.h"

#define LEVEL     1  /* lists of one kind of row shrink to a tenth all the same */
#define GZIP_BITS 16 /* zlib: a gzip head, not its own */

bool st_gzip_taken(const char *header)
{
    for (const char *at = header; at && *at;) {
        size_t n = strcspn(at, ",");
        const char *word = at + strspn(at, " \t");
        const char *q = memchr(at, ';', n);
        size_t len = (size_t)((q ? q : at + n) - word);

        while (len > 0 && (word[len - 1] == ' ' || word[len - 1] == '\t'))
            len--;
        if (len == 4 && strncasecmp(word, "gzip", 4) == 0) {
            /* ";q=0", with any number of zeros behind the point, is a no. */
            const char *v = q ? memchr(q, '=', (size_t)(at + n - q)) : NULL;

            return !v || strtod(v + 1, NULL) > 0;
        }
        at += n + (at[n] == ',');
    }
    return false;
}

char *st_gzip(const char *text, size_t len, size_t *ret_len)
{
    z_stream z = {0};
    char *out;
    int r;

    if (len > UINT32_MAX / 2 ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, MAX_WBITS + GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    union {
        const char *given;
        Bytef *wanted; /* zlib does not write to it */
    } in = {.given = text};
    size_t room = deflateBound(&z, (uLong)len);

    out = st_xmalloc(room);
    z.next_in = in.wanted;
    z.avail_in = (uInt)len;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    r = deflate(&z, Z_FINISH);
    *ret_len = z.total_out;
    deflateEnd(&z);
    if (r == Z_STREAM_END && *ret_len < len)
        return out;
    free(out);
    return NULL;
}
