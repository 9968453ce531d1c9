/*
 * Filling st_err and looking codes up in the one table (base/err.h).
 *
 * Invariants: 1. err->msg is always NUL-terminated. 2. err->code is a code of
 * the table. 3. what is returned is -err->code.
 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct err_row {
    const char *name;
    int http;
    int cli;
} err_row;

static const err_row err_rows[] = {{"ok", 200, 0},
#define ERR_ROW(name, string, http, cli, remedy) {string, http, cli},
                                   ST_ERR_TABLE(ERR_ROW)
#undef ERR_ROW
};

static const err_row *err_lookup(int code)
{
    /* Widened first: -INT_MIN does not exist. */
    long long c = code;

    if (c < 0)
        c = -c;
    if (c >= (long long)ST_ARRAY_LEN(err_rows))
        c = ST_EINTERNAL;
    return &err_rows[c];
}

/* buf holds a message cut at its capacity: drop the last few bytes back to a character boundary
 * and say that something is missing. */
static void mark_cut(char *buf, size_t cap)
{
    size_t n = cap - 1 - 3;

    while (n > 0 && ((unsigned char)buf[n] & 0xC0) == 0x80)
        n--;
    memcpy(buf + n, "...", 4);
}

int st_fail(st_err *err, int code, const char *fmt, ...)
{
    char msg[sizeof(err->msg)];
    va_list ap;
    int n;

    ST_ASSERT(code > 0 && code < (int)ST_ARRAY_LEN(err_rows));
    ST_ASSERT(fmt);
    if (!err)
        return -code;

    va_start(ap, fmt);
    n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n < 0)
        msg[0] = '\0';
    else if ((size_t)n >= sizeof(msg))
        mark_cut(msg, sizeof(msg));
    memcpy(err->msg, msg, strlen(msg) + 1);
    err->code = code;
    return -code;
}

int st_fail_prefix(st_err *err, const char *fmt, ...)
{
    char msg[sizeof(err->msg)];
    va_list ap;
    size_t used, rest;
    int n;

    ST_ASSERT(fmt);
    if (!err)
        return -ST_EINTERNAL;
    ST_ASSERT(err->code > 0 && err->code < (int)ST_ARRAY_LEN(err_rows));

    va_start(ap, fmt);
    n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n < 0)
        return -err->code;

    used = ST_MIN((size_t)n, sizeof(msg) - 1);
    rest = strlen(err->msg);
    if ((size_t)n + rest < sizeof(msg)) {
        memcpy(msg + used, err->msg, rest + 1);
    } else {
        memcpy(msg + used, err->msg, ST_MIN(rest, sizeof(msg) - 1 - used));
        msg[sizeof(msg) - 1] = '\0';
        mark_cut(msg, sizeof(msg));
    }
    memcpy(err->msg, msg, strlen(msg) + 1);
    return -err->code;
}

const char *st_err_name(int code)
{
    return err_lookup(code)->name;
}

int st_err_exit(int code)
{
    return err_lookup(code)->cli;
}

int st_err_http(int code)
{
    return err_lookup(code)->http;
}
