/*
 * JSON (RFC 8259), strictly. Written here because neither library fits:
 * libyaml refuses surrogate pairs (\uD83D\uDE00), tabs before the first brace
 * and keys that are long or apart from their colon, and accepts much that is
 * not JSON; jansson does not say on which line a value stands. See
 * doc/decisions/0003-documents.md.
 *
 * A state machine over the builder's stack, so nothing recurses.
 */
#include "base/doc_build.h"

#include <string.h>

#include "base/quote.h"
#include "base/strbuf.h"
#include "base/utf8.h"

typedef enum {
    WANT_VALUE,
    WANT_VALUE_OR_CLOSE, /* after [ */
    WANT_KEY,
    WANT_KEY_OR_CLOSE, /* after { */
    WANT_COLON,
    WANT_COMMA_OR_CLOSE,
    WANT_END,
} json_state;

typedef struct json {
    st_doc_build *b;
    const char *p;
    const char *end;
    int line;
    st_strbuf text; /* the string being read, unescaped */
} json;

static int fail_here(const json *j, const char *wanted, st_err *err)
{
    char q[ST_QUOTE_MAX], found[2] = {0};

    if (j->p >= j->end)
        return st_doc_build_fail(j->b, j->line, err, ST_EPARSE,
                                 "the text ends too early: expected %s", wanted);
    found[0] = *j->p;
    return st_doc_build_fail(j->b, j->line, err, ST_EPARSE, "expected %s, found %s", wanted,
                             (unsigned char)*j->p < 0x80 ? st_quote(q, found)
                                                         : "a character outside ASCII");
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(json *j)
{
    for (; j->p < j->end && is_blank(*j->p); j->p++)
        j->line += *j->p == '\n';
}

/* Four hexadecimal digits at j->p, -1 if they are not there. */
static int32_t scan_hex4(json *j)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    int32_t code = 0;

    if (j->end - j->p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char *d = j->p[i] ? strchr(digits, j->p[i]) : NULL;

        if (!d)
            return -1;
        code = code * 16 + (int32_t)((d - digits) % 16);
    }
    j->p += 4;
    return code;
}

/* Behind \u: one escape, or two that make up one character. */
static int scan_unicode(json *j, st_err *err)
{
    char utf8[4];
    int32_t code = scan_hex4(j);

    if (code < 0)
        return fail_here(j, "four hexadecimal digits after \\u", err);
    if (code >= 0xD800 && code <= 0xDBFF) {
        int32_t low = -1;

        if (j->end - j->p >= 2 && memcmp(j->p, "\\u", 2) == 0) {
            j->p += 2;
            low = scan_hex4(j);
        }
        if (low < 0xDC00 || low > 0xDFFF)
            return st_doc_build_fail(j->b, j->line, err, ST_EPARSE,
                                     "\\u%04X is half of a surrogate pair without the other half",
                                     (unsigned)code);
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
        return st_doc_build_fail(j->b, j->line, err, ST_EPARSE,
                                 "\\u%04X is half of a surrogate pair without the other half",
                                 (unsigned)code);
    }
    st_strbuf_addn(&j->text, utf8, st_utf8_put(utf8, (uint32_t)code));
    return 0;
}

static int scan_escape(json *j, st_err *err)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (j->p < j->end && *j->p == 'u') {
        j->p++;
        return scan_unicode(j, err);
    }
    found = j->p < j->end && *j->p ? strchr(from, *j->p) : NULL;
    if (!found)
        return fail_here(j, "one of \" \\ / b f n r t u after a backslash", err);
    st_strbuf_addc(&j->text, to[found - from]);
    j->p++;
    return 0;
}

/* A string into j->text; j->p is at its opening quote. */
static int scan_string(json *j, st_err *err)
{
    st_strbuf_clear(&j->text);
    j->p++;
    for (;;) {
        const char *start = j->p;
        int r;

        while (j->p < j->end && *j->p != '"' && *j->p != '\\' && (unsigned char)*j->p >= 0x20)
            j->p++;
        st_strbuf_addn(&j->text, start, (size_t)(j->p - start));
        if (j->p >= j->end)
            return fail_here(j, "a closing quote", err);
        if (*j->p == '"')
            break;
        if (*j->p != '\\')
            return fail_here(j, "a closing quote or an escape", err);
        j->p++;
        r = scan_escape(j, err);
        if (r < 0)
            return r;
    }
    j->p++;
    return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* The end of the number at p, NULL if there is none: -? (0 | [1-9][0-9]*) (.[0-9]+)? exponent? */
static const char *number_end(const char *p, const char *end)
{
    const char *digits;

    p += p < end && *p == '-';
    digits = p;
    p = skip_digits(p, end);
    if (p == digits || (*digits == '0' && p - digits > 1))
        return NULL;
    if (p < end && *p == '.') {
        digits = ++p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        digits = p;
        p = skip_digits(p, end);
        if (p == digits)
            return NULL;
    }
    return p;
}

/* The end of a number, true, false or null at p, NULL if there is none. */
static const char *literal_end(const char *p, const char *end)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < ST_ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);

        if ((size_t)(end - p) >= len && memcmp(p, words[i], len) == 0)
            return p + len;
    }
    return number_end(p, end);
}

static int take_value(json *j, json_state *state, st_err *err)
{
    const char *start = j->p;
    int r;

    *state = WANT_COMMA_OR_CLOSE;
    if (j->p < j->end && *j->p == '{') {
        *state = WANT_KEY_OR_CLOSE;
        j->p++;
        return st_doc_build_open(j->b, ST_DOC_MAP, j->line, err);
    }
    if (j->p < j->end && *j->p == '[') {
        *state = WANT_VALUE_OR_CLOSE;
        j->p++;
        return st_doc_build_open(j->b, ST_DOC_SEQ, j->line, err);
    }
    if (j->p < j->end && *j->p == '"') {
        r = scan_string(j, err);
        if (r < 0)
            return r;
        return st_doc_build_scalar(j->b, st_strbuf_str(&j->text), j->text.n, true, j->line, err);
    }
    j->p = literal_end(start, j->end);
    if (!j->p) {
        j->p = start;
        return fail_here(j, "a value", err);
    }
    return st_doc_build_scalar(j->b, start, (size_t)(j->p - start), false, j->line, err);
}

static int take_key(json *j, json_state *state, st_err *err)
{
    int r;

    if (j->p >= j->end || *j->p != '"')
        return fail_here(j, "a key in double quotes", err);
    r = scan_string(j, err);
    if (r < 0)
        return r;
    *state = WANT_COLON;
    return st_doc_build_key(j->b, st_strbuf_str(&j->text), j->text.n, j->line, err);
}

static char closing_bracket(const json *j)
{
    return j->b->frames[j->b->depth - 1].node->kind == ST_DOC_MAP ? '}' : ']';
}

static void take_close(json *j, json_state *state)
{
    j->p++;
    st_doc_build_close(j->b);
    *state = WANT_COMMA_OR_CLOSE;
}

static int take_comma_or_close(json *j, json_state *state, st_err *err)
{
    char close = closing_bracket(j);

    if (j->p < j->end && *j->p == close) {
        take_close(j, state);
        return 0;
    }
    if (j->p >= j->end || *j->p != ',')
        return fail_here(j, close == '}' ? "a comma or }" : "a comma or ]", err);
    j->p++;
    *state = close == '}' ? WANT_KEY : WANT_VALUE;
    return 0;
}

static int json_step(json *j, json_state *state, st_err *err)
{
    switch (*state) {
    case WANT_VALUE_OR_CLOSE:
    case WANT_KEY_OR_CLOSE:
        if (j->p < j->end && *j->p == closing_bracket(j)) {
            take_close(j, state);
            return 0;
        }
        return *state == WANT_KEY_OR_CLOSE ? take_key(j, state, err) : take_value(j, state, err);
    case WANT_VALUE:
        return take_value(j, state, err);
    case WANT_KEY:
        return take_key(j, state, err);
    case WANT_COLON:
        if (j->p >= j->end || *j->p != ':')
            return fail_here(j, "a colon after the key", err);
        j->p++;
        *state = WANT_VALUE;
        return 0;
    case WANT_COMMA_OR_CLOSE:
        return take_comma_or_close(j, state, err);
    case WANT_END:
        break;
    }
    if (j->p < j->end)
        return fail_here(j, "nothing more after the document", err);
    return 0;
}

int st_doc_read_json(st_doc_build *b, const char *text, size_t len, st_err *err)
{
    json j = {.b = b, .p = text, .end = text + len, .line = 1};
    json_state state = WANT_VALUE;
    size_t valid = st_utf8_valid(text, len);
    int r = 0;

    if (valid < len)
        return st_doc_build_fail(b, st_doc_line_at(text, valid), err, ST_EPARSE,
                                 "the text is not valid UTF-8");
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        j.p += 3;
    skip_blanks(&j);
    if (j.p == j.end)
        return 0; /* the caller says that it is empty */
    while (r == 0) {
        skip_blanks(&j);
        if (state == WANT_END && j.p == j.end)
            break;
        r = json_step(&j, &state, err);
        if (state == WANT_COMMA_OR_CLOSE && b->depth == 0)
            state = WANT_END;
    }
    st_strbuf_done(&j.text);
    return r;
}
