/*
 * Percent-decoding and small parsers of header values. Pure functions on text
 * from outside: whatever comes in, the answer is yes, no or a piece of it.
 */
#include "http/text.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool st_text_decode(char *s, bool plus)
{
    char *out = s;

    for (const char *in = s; *in; in++) {
        unsigned char c = (unsigned char)*in;

        if (c == '%') {
            int high = hex(in[1]);
            int low = high < 0 ? -1 : hex(in[2]);

            if (low < 0)
                return false;
            c = (unsigned char)(high << 4 | low);
            in += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f)
            return false;
        *out++ = (char)c;
    }
    *out = '\0';
    return st_utf8_valid(s, (size_t)(out - s)) == (size_t)(out - s);
}

bool st_text_is_type(const char *value, const char *want)
{
    size_t n = strlen(want);

    while (*value == ' ')
        value++;
    if (strncasecmp(value, want, n) != 0)
        return false;
    value += n;
    return *value == '\0' || *value == ';' || *value == ' ';
}

bool st_text_is_json(const char *value)
{
    size_t n = strcspn(value, "; ");

    return st_text_is_type(value, "application/json") ||
           (n > 5 && strncasecmp(value + n - 5, "+json", 5) == 0);
}

/* One row of an Accept header, n bytes: the type, "*" for the subtype, or "*" for both. */
static bool row_accepts(const char *row, size_t n, const char *type)
{
    size_t name = strcspn(row, ";, \t");
    size_t slash = strcspn(type, "/");
    const char *weight;

    name = name < n ? name : n;
    weight = memmem(row, n, "q=0", 3);
    if (weight && strspn(weight + 3, ".0") == strcspn(weight + 3, ",; "))
        return false;
    if (name == 3 && memcmp(row, "*/*", 3) == 0)
        return true;
    if (name == slash + 2 && row[slash + 1] == '*')
        return strncasecmp(row, type, slash + 1) == 0;
    return name == strcspn(type, ";") && strncasecmp(row, type, name) == 0;
}

bool st_text_accepts(const char *accept, const char *type)
{
    for (const char *at = accept; *at;) {
        size_t n;

        at += strspn(at, " \t,");
        n = strcspn(at, ",");
        if (n > 0 && row_accepts(at, n, type))
            return true;
        at += n;
    }
    return false;
}

const char *st_text_bearer(const char *authorization)
{
    if (strncasecmp(authorization, "Bearer", 6) != 0 || authorization[6] != ' ')
        return NULL;
    authorization += 6;
    while (*authorization == ' ')
        authorization++;
    return *authorization ? authorization : NULL;
}
