/*
 * UTF-8 checking and encoding (base/utf8.h).
 */
#include "base/utf8.h"

#include <string.h>

#include "base/macros.h"

static bool is_scalar_value(uint32_t code)
{
    return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
}

/* The length of the one valid character at p, 0 if there is none within n bytes. */
static size_t char_at(const unsigned char *p, size_t n, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t code;
    size_t len;

    *ret = p[0];
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
    *ret = code;
    return code >= smallest[len] && is_scalar_value(code) ? len : 0;
}

size_t st_utf8_valid(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t i = 0;
    uint32_t code;

    while (i < n) {
        size_t len = char_at(p + i, n - i, &code);

        if (len == 0)
            break;
        i += len;
    }
    return i;
}

size_t st_utf8_get(const char *s, size_t n, uint32_t *ret)
{
    return n > 0 ? char_at((const unsigned char *)s, n, ret) : 0;
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

bool st_utf8_deceives(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},       {0x7f, 0x9f},       /* controls */
        {0xad, 0xad},       {0x61c, 0x61c},     /* soft hyphen; Arabic letter mark */
        {0x115f, 0x1160},   {0x17b4, 0x17b5},   /* fillers and vowels without a form */
        {0x180b, 0x180f},   {0x200b, 0x200f},   /* no width; marks of direction */
        {0x2028, 0x202e},   {0x2060, 0x206f},   /* line ends; embeddings, overrides, isolates */
        {0x3164, 0x3164},   {0xfeff, 0xfeff},   /* a filler; byte order mark */
        {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   /* a filler; annotations */
        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, /* of shorthand and music */
        {0xe0000, 0xe0fff},                     /* tags */
    };

    for (size_t i = 0; i < ST_ARRAY_LEN(ranges); i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

bool st_text_honest(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t left = strlen(s);
    uint32_t code;

    while (left > 0) {
        size_t len = char_at(p, left, &code);

        if (len == 0 || st_utf8_deceives(code))
            return false;
        p += len;
        left -= len;
    }
    return true;
}

void st_text_tame(char *s)
{
    size_t left = strlen(s);
    char *to = s;
    uint32_t code;

    while (left > 0) {
        size_t len = char_at((const unsigned char *)s, left, &code);
        bool bad = len == 0 || st_utf8_deceives(code);

        len = ST_MAX(len, (size_t)1);
        if (bad)
            *to = '?';
        else
            memmove(to, s, len);
        to += bad ? 1 : len;
        s += len;
        left -= len;
    }
    *to = '\0';
}
