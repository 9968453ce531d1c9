/*
 * Lua's patterns with a bound on the work (rules/pattern.h).
 *
 * An item is one thing that matches one byte (a letter, ., %a, [set]) with what follows it
 * (*, +, -, ?), or one of ( ) %b %f %1 $. match() walks items from left to right, and calls
 * itself where it may have to come back: at repeats and captures.
 */
#include "rules/pattern.h"

#include <ctype.h>
#include <string.h>

#define DEPTH_MAX 200

static ptrdiff_t match(st_pattern *m, size_t s, size_t p);

static ptrdiff_t fault(st_pattern *m, const char *what)
{
    m->fault = what;
    return ST_PATTERN_FAULT;
}

static bool step(st_pattern *m)
{
    return --m->steps >= 0;
}

static unsigned char at(const char *s, size_t i)
{
    return (unsigned char)s[i];
}

/* The end of the one-byte item at p, or a negative number. */
static ptrdiff_t item_end(st_pattern *m, size_t p)
{
    char c = m->p[p++];

    if (c == '%') {
        if (p >= m->np)
            return fault(m, "malformed pattern (ends with '%')");
        return (ptrdiff_t)p + 1;
    }
    if (c != '[')
        return (ptrdiff_t)p;
    if (p < m->np && m->p[p] == '^')
        p++;
    do { /* the first ] is a member */
        if (p >= m->np)
            return fault(m, "malformed pattern (missing ']')");
        if (m->p[p++] == '%')
            p++;
        if (!step(m))
            return ST_PATTERN_STEPS;
    } while (p >= m->np || m->p[p] != ']');
    return (ptrdiff_t)p + 1;
}

static bool in_class(unsigned char c, unsigned char class)
{
    bool in;

    switch (tolower(class)) {
    case 'a':
        in = isalpha(c) != 0;
        break;
    case 'c':
        in = iscntrl(c) != 0;
        break;
    case 'd':
        in = isdigit(c) != 0;
        break;
    case 'g':
        in = isgraph(c) != 0;
        break;
    case 'l':
        in = islower(c) != 0;
        break;
    case 'p':
        in = ispunct(c) != 0;
        break;
    case 's':
        in = isspace(c) != 0;
        break;
    case 'u':
        in = isupper(c) != 0;
        break;
    case 'w':
        in = isalnum(c) != 0;
        break;
    case 'x':
        in = isxdigit(c) != 0;
        break;
    default:
        return class == c;
    }
    return isupper(class) ? !in : in;
}

/* The set is [p, end) with its brackets. */
static bool in_set(st_pattern *m, unsigned char c, size_t p, size_t end)
{
    bool negated = m->p[p + 1] == '^';
    size_t i = p + 1 + negated, close = end - 1;

    m->steps -= (int64_t)(end - p);
    while (i < close) {
        if (m->p[i] == '%') {
            if (in_class(c, at(m->p, i + 1)))
                return !negated;
            i += 2;
        } else if (i + 2 < close && m->p[i + 1] == '-') {
            if (at(m->p, i) <= c && c <= at(m->p, i + 2))
                return !negated;
            i += 3;
        } else {
            if (at(m->p, i) == c)
                return !negated;
            i++;
        }
    }
    return negated;
}

/* Whether byte c is what the item [p, end) matches. */
static bool item_has(st_pattern *m, unsigned char c, size_t p, size_t end)
{
    switch (m->p[p]) {
    case '.':
        return true;
    case '%':
        return in_class(c, at(m->p, p + 1));
    case '[':
        return in_set(m, c, p, end);
    default:
        return at(m->p, p) == c;
    }
}

static bool item_at(st_pattern *m, size_t s, size_t p, size_t end)
{
    return s < m->ns && item_has(m, at(m->s, s), p, end);
}

/* item* or item+ once its first is there: as many as there are, then fewer. */
static ptrdiff_t match_most(st_pattern *m, size_t s, size_t p, size_t end)
{
    size_t n = 0;

    while (item_at(m, s + n, p, end)) {
        if (!step(m))
            return ST_PATTERN_STEPS;
        n++;
    }
    for (;; n--) {
        ptrdiff_t r = match(m, s + n, end + 1);

        if (r != ST_PATTERN_NONE || n == 0)
            return r;
    }
}

static ptrdiff_t match_fewest(st_pattern *m, size_t s, size_t p, size_t end)
{
    for (;; s++) {
        ptrdiff_t r = match(m, s, end + 1);

        if (r != ST_PATTERN_NONE || !item_at(m, s, p, end))
            return r;
    }
}

static ptrdiff_t capture_open(st_pattern *m, size_t s, size_t p, ptrdiff_t what)
{
    ptrdiff_t r;

    if (m->ncaptures == ST_CAPTURES_MAX)
        return fault(m, "too many captures");
    m->captures[m->ncaptures++] = (st_capture){.at = s, .len = what};
    r = match(m, s, p);
    if (r == ST_PATTERN_NONE)
        m->ncaptures--;
    return r;
}

static ptrdiff_t capture_close(st_pattern *m, size_t s, size_t p)
{
    int i = m->ncaptures - 1;
    ptrdiff_t r;

    while (i >= 0 && m->captures[i].len != ST_CAPTURE_OPEN)
        i--;
    if (i < 0)
        return fault(m, "invalid pattern capture");
    m->captures[i].len = (ptrdiff_t)(s - m->captures[i].at);
    r = match(m, s, p);
    if (r == ST_PATTERN_NONE)
        m->captures[i].len = ST_CAPTURE_OPEN;
    return r;
}

/* %bxy: from an x to the y that balances it; the end or NONE. */
static ptrdiff_t balance(st_pattern *m, size_t s, size_t p)
{
    char open, close;
    int64_t depth = 1;

    if (p + 1 >= m->np)
        return fault(m, "malformed pattern (missing arguments to '%b')");
    open = m->p[p];
    close = m->p[p + 1];
    if (s >= m->ns || m->s[s] != open)
        return ST_PATTERN_NONE;
    for (s++; s < m->ns; s++) {
        if (!step(m))
            return ST_PATTERN_STEPS;
        if (m->s[s] == close) {
            if (--depth == 0)
                return (ptrdiff_t)s + 1;
        } else if (m->s[s] == open) {
            depth++;
        }
    }
    return ST_PATTERN_NONE;
}

/* %1 to %9: the bytes of that capture again; the end or NONE. */
static ptrdiff_t again(st_pattern *m, size_t s, unsigned char digit)
{
    int i = digit - '1';
    size_t n;

    if (i < 0 || i >= m->ncaptures || m->captures[i].len == ST_CAPTURE_OPEN)
        return fault(m, "invalid capture index in pattern");
    if (m->captures[i].len == ST_CAPTURE_POSITION)
        return ST_PATTERN_NONE; /* a position has no bytes, not even none */
    n = (size_t)m->captures[i].len;
    m->steps -= (int64_t)n;
    if (m->ns - s < n || memcmp(m->s + m->captures[i].at, m->s + s, n) != 0)
        return ST_PATTERN_NONE;
    return (ptrdiff_t)(s + n);
}

/* %f[set] at p, which is behind the f: NONE, or the pattern's byte to go on with. */
static ptrdiff_t frontier(st_pattern *m, size_t s, size_t p)
{
    unsigned char before = s == 0 ? 0 : at(m->s, s - 1), here = s < m->ns ? at(m->s, s) : 0;
    ptrdiff_t end;

    if (p >= m->np || m->p[p] != '[')
        return fault(m, "missing '[' after '%f' in pattern");
    end = item_end(m, p);
    if (end < 0)
        return end;
    if (in_set(m, before, p, (size_t)end) || !in_set(m, here, p, (size_t)end))
        return ST_PATTERN_NONE;
    return end;
}

/* An item that may be repeated. *s and *p move on when the match goes on behind it; then 0 is
 * returned, otherwise what the match came to: its end plus one, or a negative number. */
static ptrdiff_t match_item(st_pattern *m, size_t *s, size_t *p)
{
    ptrdiff_t r, end = item_end(m, *p);
    char suffix = end >= 0 && (size_t)end < m->np ? m->p[end] : '\0';

    if (end < 0)
        return end;
    if (suffix == '-') {
        r = match_fewest(m, *s, *p, (size_t)end);
        return r < 0 ? r : r + 1;
    }
    if (suffix == '*') {
        r = match_most(m, *s, *p, (size_t)end);
        return r < 0 ? r : r + 1;
    }
    if (!item_at(m, *s, *p, (size_t)end)) {
        if (suffix != '?')
            return ST_PATTERN_NONE;
        *p = (size_t)end + 1;
        return 0;
    }
    if (suffix == '+') {
        r = match_most(m, *s + 1, *p, (size_t)end);
        return r < 0 ? r : r + 1;
    }
    if (suffix == '?') {
        r = match(m, *s + 1, (size_t)end + 1);
        if (r != ST_PATTERN_NONE)
            return r < 0 ? r : r + 1;
        *p = (size_t)end + 1;
        return 0;
    }
    ++*s;
    *p = (size_t)end;
    return 0;
}

/* %b, %f, %1; otherwise as match_item. */
static ptrdiff_t match_escape(st_pattern *m, size_t *s, size_t *p)
{
    unsigned char c = *p + 1 < m->np ? at(m->p, *p + 1) : 0;
    ptrdiff_t r;

    if (c == 'b') {
        r = balance(m, *s, *p + 2);
        if (r >= 0) {
            *s = (size_t)r;
            *p += 4;
        }
    } else if (c == 'f') {
        r = frontier(m, *s, *p + 2);
        if (r >= 0)
            *p = (size_t)r;
    } else if (isdigit(c)) {
        r = again(m, *s, c);
        if (r >= 0) {
            *s = (size_t)r;
            *p += 2;
        }
    } else {
        return match_item(m, s, p);
    }
    return r < 0 ? r : 0;
}

static ptrdiff_t match_from(st_pattern *m, size_t s, size_t p)
{
    while (p < m->np) {
        ptrdiff_t r;

        if (!step(m))
            return ST_PATTERN_STEPS;
        if (m->p[p] == '(') {
            bool position = p + 1 < m->np && m->p[p + 1] == ')';

            return position ? capture_open(m, s, p + 2, ST_CAPTURE_POSITION)
                            : capture_open(m, s, p + 1, ST_CAPTURE_OPEN);
        }
        if (m->p[p] == ')')
            return capture_close(m, s, p + 1);
        if (m->p[p] == '$' && p + 1 == m->np)
            return s == m->ns ? (ptrdiff_t)s : ST_PATTERN_NONE;
        r = m->p[p] == '%' ? match_escape(m, &s, &p) : match_item(m, &s, &p);
        if (r != 0)
            return r < 0 ? r : r - 1;
    }
    return (ptrdiff_t)s;
}

static ptrdiff_t match(st_pattern *m, size_t s, size_t p)
{
    ptrdiff_t r;

    if (m->depth == DEPTH_MAX)
        return fault(m, "pattern too complex");
    m->depth++;
    r = match_from(m, s, p);
    m->depth--;
    return r;
}

ptrdiff_t st_pattern_at(st_pattern *m, size_t s, size_t from)
{
    m->ncaptures = 0;
    m->depth = 0;
    return match(m, s, from);
}
