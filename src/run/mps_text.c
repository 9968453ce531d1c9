/*
 * Reading what the MPS control daemon answers (run/mps.h). Pure. It answers people: a number on a line, a
 * size with a unit, or a sentence about what is wrong, and its exit status says nothing.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/quote.h"
#include "run/mps.h"

#define PID_LIMIT (INT64_C(1) << 22)

size_t st_mps_pids(const char *text, int64_t *buf, size_t room)
{
    size_t n = 0;

    while (*text) {
        size_t len = strcspn(text, "\n"), digits = strspn(text, "0123456789");
        size_t blank = strspn(text + digits, " \t\r");
        int64_t pid = digits > 0 && digits <= 9 ? strtoll(text, NULL, 10) : 0;

        if (digits + blank == len && pid > 1 && pid <= PID_LIMIT) {
            if (n < room)
                buf[n] = pid;
            n++;
        }
        text += len + (text[len] == '\n');
    }
    return n;
}

static int no_answer(const char *text, const char *what, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(err, ST_EDOWN, "the MPS daemon was asked for %s and answered %s", what,
                   st_quote(q, text));
}

/* A decimal with up to three places that count; *ret_end is behind it. */
static bool decimal(const char *text, int64_t *ret_m, const char **ret_end)
{
    int64_t whole = 0, part = 0, scale = 100;
    const char *p = text;

    while (isdigit((unsigned char)*p) && p - text < 15)
        whole = whole * 10 + (*p++ - '0');
    if (p == text || isdigit((unsigned char)*p))
        return false;
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++) {
            part += (*p - '0') * scale;
            scale /= 10;
        }
    *ret_m = whole * 1000 + part;
    *ret_end = p;
    return true;
}

/* Nothing but blanks and, at most, more lines. */
static bool over(const char *p)
{
    return p[strspn(p, " \t\r")] == '\0' || p[strspn(p, " \t\r")] == '\n';
}

int st_mps_percent(const char *text, int64_t *ret, st_err *err)
{
    const char *end;
    int64_t m;

    text += strspn(text, " \t\r\n");
    if (!decimal(text, &m, &end))
        return no_answer(text, "a percentage", err);
    end += *end == '%';
    if (!over(end) || m > 100000)
        return no_answer(text, "a percentage", err);
    *ret = m;
    return 0;
}

int st_mps_memory_is(const char *text, int64_t mib, bool *ret, st_err *err)
{
    const char *end;
    int64_t m;
    char unit;

    text += strspn(text, " \t\r\n");
    if (!decimal(text, &m, &end))
        return no_answer(text, "a memory limit", err);
    unit = (char)toupper((unsigned char)*end);
    end += unit == 'G' || unit == 'M' || unit == 'K';
    end += toupper((unsigned char)*end) == 'B';
    if (!over(end))
        return no_answer(text, "a memory limit", err);
    if (unit == 'G')
        *ret = m % 1000 == 0 ? mib / 1024 == m / 1000 : mib * 1000 / 1024 == m;
    else if (unit == 'M')
        *ret = mib * 1000 == m;
    else if (unit == 'K')
        *ret = mib * 1024 == m / 1000;
    else
        *ret = mib == m / 1000 >> 20; /* bytes */
    return 0;
}
