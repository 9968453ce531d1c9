/*
 * Quoting for messages (base/quote.h). Bytes above 0x7f pass: the texts we
 * quote were checked to be UTF-8 when they were read.
 */
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/utf8.h"

/* Room kept free at the end for: ..." and the NUL. */
#define QUOTE_TAIL 5

static size_t quote_byte(char out[8], unsigned char c)
{
    if (c == '\n' || c == '\t' || c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = c == '\n' ? 'n' : c == '\t' ? 't' : (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7f)
        return (size_t)snprintf(out, 8, "\\x%02X", c);
    out[0] = (char)c;
    return 1;
}

const char *st_quote(char buf[ST_QUOTE_MAX], const char *s)
{
    size_t n = 0;
    const char *tail = "\"";

    ST_ASSERT(s);
    buf[n++] = '"';
    for (; *s; s++) {
        char piece[8];
        size_t len = quote_byte(piece, (unsigned char)*s);

        if (n + len > ST_QUOTE_MAX - QUOTE_TAIL) {
            /* Leave out the whole character, not only the bytes that do not fit. */
            if (((unsigned char)*s & 0xC0) == 0x80) {
                while (((unsigned char)buf[n - 1] & 0xC0) == 0x80)
                    n--;
                n--;
            }
            tail = "...\"";
            break;
        }
        memcpy(buf + n, piece, len);
        n += len;
    }
    memcpy(buf + n, tail, strlen(tail) + 1);
    return buf;
}

void st_quote_json(st_strbuf *out, const char *s)
{
    size_t left = strlen(s);

    st_strbuf_addc(out, '"');
    while (left > 0) {
        size_t good = st_utf8_valid(s, left);

        for (size_t i = 0; i < good; i++) {
            unsigned char c = (unsigned char)s[i];

            if (c == '"' || c == '\\')
                st_strbuf_addc(out, '\\');
            if (c < 0x20 || c == 0x7f)
                st_strbuf_addf(out, "\\u%04x", c);
            else
                st_strbuf_addc(out, (char)c);
        }
        s += good;
        left -= good;
        if (left > 0) {
            st_strbuf_add(out, "\xEF\xBF\xBD");
            s++;
            left--;
        }
    }
    st_strbuf_addc(out, '"');
}

#define REPLACEMENT "\uFFFD"

static void escape_byte(st_strbuf *out, char c)
{
    switch (c) {
    case '<':
        st_strbuf_add(out, "&lt;");
        break;
    case '>':
        st_strbuf_add(out, "&gt;");
        break;
    case '&':
        st_strbuf_add(out, "&amp;");
        break;
    case '"':
        st_strbuf_add(out, "&quot;");
        break;
    case '\'':
        st_strbuf_add(out, "&#39;");
        break;
    default:
        if ((unsigned char)c < ' ' || c == 0x7f)
            st_strbuf_add(out, REPLACEMENT);
        else
            st_strbuf_addc(out, c);
    }
}

void st_quote_html(st_strbuf *out, const char *s)
{
    size_t left = strlen(s);

    while (left > 0) {
        size_t good = st_utf8_valid(s, left);

        for (size_t i = 0; i < good; i++)
            escape_byte(out, s[i]);
        s += good;
        left -= good;
        if (left > 0) {
            st_strbuf_add(out, REPLACEMENT);
            s++;
            left--;
        }
    }
}
