/*
 * Quoting for messages (base/quote.h). Bytes above 0x7f pass: the texts we
 * quote were checked to be UTF-8 when they were read. Characters that deceive (base/utf8.h) do not.
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

/* A character of several bytes that deceives, as its number; *ret_skip: bytes behind its first. 0: it is none. */
static size_t quote_deceiver(char out[16], const char *s, size_t *ret_skip)
{
    uint32_t code;
    size_t len = (unsigned char)*s < 0x80 ? 0 : st_utf8_get(s, strnlen(s, 4), &code);

    if (len == 0 || !st_utf8_deceives(code))
        return 0;
    *ret_skip = len - 1;
    return (size_t)snprintf(out, 16, "\\u{%04X}", (unsigned)code);
}

const char *st_quote(char buf[ST_QUOTE_MAX], const char *s)
{
    size_t n = 0;
    const char *tail = "\"";

    ST_ASSERT(s);
    buf[n++] = '"';
    for (; *s; s++) {
        char piece[16];
        size_t skip = 0, len = quote_deceiver(piece, s, &skip);

        if (len == 0)
            len = quote_byte(piece, (unsigned char)*s);

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
        s += skip;
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

        for (size_t i = 0; i < good;) {
            uint32_t code;
            size_t len = st_utf8_get(s + i, good - i, &code);

            if (len > 1 && st_utf8_deceives(code))
                st_strbuf_add(out, REPLACEMENT);
            for (size_t k = 0; k < len && !(len > 1 && st_utf8_deceives(code)); k++)
                escape_byte(out, s[i + k]);
            i += len;
        }
        s += good;
        left -= good;
        if (left > 0) {
            st_strbuf_add(out, REPLACEMENT);
            s++;
            left--;
        }
    }
}

/* What a spreadsheet would take for a formula; a number is none, nor is a dash for "nothing here". */
static bool is_formula(const char *s)
{
    size_t n;

    if (!*s || !strchr("=+-@\t\r", *s))
        return false;
    if (*s != '+' && *s != '-')
        return true;
    if (strcmp(s, "-") == 0)
        return false;
    s++;
    n = strspn(s, "0123456789");
    s += n;
    if (*s == '.')
        s += 1 + strspn(s + 1, "0123456789");
    return n == 0 || *s != '\0';
}

void st_quote_csv(st_strbuf *out, const char *s)
{
    if (*s && !strpbrk(s, ",\"\r\n") && !is_formula(s)) {
        st_strbuf_add(out, s);
        return;
    }
    st_strbuf_add(out, is_formula(s) ? "\"'" : "\"");
    for (; *s; s++) {
        if (*s == '"')
            st_strbuf_addc(out, '"');
        st_strbuf_addc(out, *s);
    }
    st_strbuf_addc(out, '"');
}
