/*
 * Bodies as JSON: bounded depth before the parser recurses, no key twice, no
 * NUL, valid UTF-8, and messages that name the line.
 */
#include <string.h>

#include "base/quote.h"
#include "base/utf8.h"
#include "http/http.h"

/* The line on which containers nest deeper than allowed; 0: nowhere. Text in quotes is skipped;
 * whether it is JSON at all is for the parser to say. */
static int too_deep_at(const char *text, size_t len)
{
    int depth = 0, line = 1;
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '\n')
            line++;
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            if (++depth > ST_JSON_DEPTH_MAX)
                return line;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return 0;
}

static int line_of(const char *text, size_t at)
{
    int line = 1;

    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

int st_json_parse(const char *name, const char *text, size_t len, json_t **ret, st_err *err)
{
    char quoted[ST_QUOTE_MAX];
    json_error_t fault;
    size_t valid = st_utf8_valid(text, len);
    json_t *value;
    int line;

    if (len == 0)
        return st_fail(err, ST_EPARSE, "%s:1: empty, but JSON is wanted", name);
    if (valid < len)
        return st_fail(err, ST_EPARSE, "%s:%d: not valid UTF-8", name, line_of(text, valid));
    line = too_deep_at(text, len);
    if (line > 0)
        return st_fail(err, ST_EPARSE, "%s:%d: nested deeper than %d", name, line,
                       ST_JSON_DEPTH_MAX);
    value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &fault);
    if (!value) {
        /* The parser's text may quote bytes of the body. */
        st_quote(quoted, fault.text);
        return st_fail(err, ST_EPARSE, "%s:%d: not JSON: %s", name, ST_MAX(fault.line, 1), quoted);
    }
    *ret = value;
    return 0;
}
