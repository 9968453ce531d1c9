/*
 * UTF-8 checking and encoding (base/utf8.h).
 */
#include "base/utf8.h"

#include <stdbool.h>

#include "base/macros.h"

static bool is_scalar_value(uint32_t code)
{
    return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

/* The length of the one valid character at p, 0 if there is none within n bytes. */
static size_t char_len(const unsigned char *p, size_t n)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code;
    size_t len;

    if (p[0] < 0x80)
        return 1;
    len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC0 || p[0] > 0xF7 || len > n)
        return 0;
    code = p[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3Fu);
    }
    return code >= smallest[len] && is_scalar_value(code) ? len : 0;
}

size_t st_utf8_valid(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t i = 0;

    while (i < n) {
        size_t len = char_len(p + i, n - i);

        if (len == 0)
            break;
        i += len;
    }
    return i;
}

size_t st_utf8_put(char out[4], uint32_t code)
{
    ST_ASSERT(is_scalar_value(code));
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}
