/* The strict reader of proof/strict.h. */
#include "proof/strict.h"

#include <string.h>

#include "base/utf8.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool st_strict_is(st_strict *s, const char *text)
{
    size_t n = strlen(text);

    if (s->bad || (size_t)(s->end - s->at) < n || memcmp(s->at, text, n) != 0)
        return false;
    s->at += n;
    return true;
}

void st_strict_text(st_strict *s, const char *text)
{
    if (!st_strict_is(s, text))
        s->bad = true;
}

int64_t st_strict_i64(st_strict *s)
{
    bool minus = st_strict_is(s, "-");
    const char *first = s->at;
    uint64_t v = 0, most = (uint64_t)INT64_MAX + minus;

    while (!s->bad && s->at < s->end && *s->at >= '0' && *s->at <= '9') {
        unsigned digit = (unsigned)(*s->at - '0');

        if (v > (most - digit) / 10)
            s->bad = true;
        else
            v = v * 10 + digit;
        s->at++;
    }
    if (s->at == first || (*first == '0' && (s->at - first > 1 || minus)))
        s->bad = true;
    if (s->bad)
        return 0;
    return minus ? (int64_t)(0 - v) : (int64_t)v;
}

int64_t st_strict_count(st_strict *s)
{
    int64_t v = st_strict_i64(s);

    if (v < 0)
        s->bad = true;
    return s->bad ? 0 : v;
}

bool st_strict_bool(st_strict *s)
{
    if (st_strict_is(s, "true"))
        return true;
    st_strict_text(s, "false");
    return false;
}

/* What stands behind a backslash. Only what must be escaped is, so \u is a control character. */
static char escaped(st_strict *s)
{
    char c = s->at < s->end ? *s->at++ : '\0';
    int code;

    if (c == '"' || c == '\\')
        return c;
    if (c != 'u' || s->end - s->at < 4 || s->at[0] != '0' || s->at[1] != '0' ||
        hex_digit(s->at[2]) < 0 || hex_digit(s->at[3]) < 0) {
        s->bad = true;
        return '\0';
    }
    code = hex_digit(s->at[2]) * 16 + hex_digit(s->at[3]);
    s->at += 4;
    if (code == 0 || (code >= 0x20 && code != 0x7f))
        s->bad = true;
    return (char)code;
}

void st_strict_str(st_strict *s, char *ret, size_t cap)
{
    size_t n = 0;

    ret[0] = '\0';
    st_strict_text(s, "\"");
    while (!s->bad && !st_strict_is(s, "\"")) {
        char c = s->at < s->end ? *s->at++ : '\0';

        if ((unsigned char)c < 0x20 || c == 0x7f || n + 1 >= cap)
            s->bad = true;
        else if (c == '\\')
            c = escaped(s);
        ret[n] = s->bad ? '\0' : c;
        n += !s->bad;
    }
    ret[n] = '\0';
    if (st_utf8_valid(ret, n) != n)
        s->bad = true;
    if (s->bad)
        ret[0] = '\0';
}

void st_strict_hex(st_strict *s, unsigned char *ret, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = s->bad || s->end - s->at < 2 ? -1 : hex_digit(s->at[0]);
        int low = high < 0 ? -1 : hex_digit(s->at[1]);

        s->bad = low < 0;
        ret[i] = s->bad ? 0 : (unsigned char)(high * 16 + low);
        s->at += s->bad ? 0 : 2;
    }
}

bool st_strict_done(const st_strict *s)
{
    return !s->bad && s->at == s->end;
}

void st_hex_write(const unsigned char *bytes, size_t n, st_strbuf *out)
{
    for (size_t i = 0; i < n; i++)
        st_strbuf_addf(out, "%02x", bytes[i]);
}
