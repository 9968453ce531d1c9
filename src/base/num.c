/*
 * Strict readers and writers of base/num.h.
 *
 * Every reader works on one primitive, scan_milli, which reads an unsigned
 * decimal into thousandths; the rest is units. Products are formed in 128 bits
 * and compared with a limit before they are narrowed.
 */
#include "base/num.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/quote.h"

#define MIB_BYTES (INT64_C(1) << 20)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

typedef enum { SCAN_OK, SCAN_NOT_A_NUMBER, SCAN_TOO_FINE, SCAN_TOO_LARGE } scan_result;

/* Reads DIGITS[.DIGITS] at *p in thousandths and moves *p behind it. */
static scan_result scan_milli(const char **p, int64_t *ret)
{
    const char *s = *p;
    int64_t milli = 0;
    int64_t place = 100;

    if (!is_digit(*s))
        return SCAN_NOT_A_NUMBER;
    for (; is_digit(*s); s++)
        if (__builtin_mul_overflow(milli, 10, &milli) ||
            __builtin_add_overflow(milli, (*s - '0') * 1000, &milli))
            return SCAN_TOO_LARGE;
    if (*s == '.') {
        s++;
        if (!is_digit(*s))
            return SCAN_NOT_A_NUMBER;
        for (; is_digit(*s); s++, place /= 10) {
            if (place == 0)
                return SCAN_TOO_FINE;
            if (__builtin_add_overflow(milli, (*s - '0') * place, &milli))
                return SCAN_TOO_LARGE;
        }
    }
    *p = s;
    *ret = milli;
    return SCAN_OK;
}

int st_parse_i64(const char *s, int64_t lo, int64_t hi, int64_t *ret, st_err *err)
{
    char q[ST_QUOTE_MAX];
    bool negative, too_large = false;
    const char *p = s;
    int64_t n = 0;

    ST_ASSERT(s && ret && lo <= hi);
    negative = *p == '-';
    p += negative;
    if (!is_digit(*p))
        return st_fail(err, ST_EPARSE, "%s is not a whole number", st_quote(q, s));
    /* Built up below zero, where INT64_MIN has room. */
    for (; is_digit(*p); p++)
        too_large = too_large || __builtin_mul_overflow(n, 10, &n) ||
                    __builtin_sub_overflow(n, *p - '0', &n);
    if (*p)
        return st_fail(err, ST_EPARSE, "%s is not a whole number", st_quote(q, s));
    if (!negative)
        too_large = too_large || __builtin_sub_overflow(0, n, &n);
    if (too_large || n < lo || n > hi)
        return st_fail(err, ST_ERANGE, "%s is out of range: it must be from %lld to %lld",
                       st_quote(q, s), (long long)lo, (long long)hi);
    *ret = n;
    return 0;
}

int st_parse_milli(const char *s, int64_t lo, int64_t hi, int64_t *ret, st_err *err)
{
    char q[ST_QUOTE_MAX], lo_text[ST_FMT_MAX], hi_text[ST_FMT_MAX];
    const char *p = s;
    scan_result scanned;
    bool negative;
    int64_t n = 0;

    ST_ASSERT(s && ret && lo <= hi);
    negative = *p == '-';
    p += negative;
    scanned = scan_milli(&p, &n);
    if (scanned == SCAN_TOO_FINE)
        return st_fail(err, ST_EPARSE, "%s has more than three decimals", st_quote(q, s));
    if (scanned == SCAN_NOT_A_NUMBER || (scanned == SCAN_OK && *p))
        return st_fail(err, ST_EPARSE, "%s is not a number", st_quote(q, s));
    if (negative)
        n = -n;
    if (scanned == SCAN_TOO_LARGE || n < lo || n > hi)
        return st_fail(err, ST_ERANGE, "%s is out of range: it must be from %s to %s",
                       st_quote(q, s), st_fmt_milli(lo_text, lo), st_fmt_milli(hi_text, hi));
    *ret = n;
    return 0;
}

typedef struct unit {
    const char *name;
    int64_t size;
} unit;

/* From large to small: also the order in which they must come, and in which they are written. */
static const unit duration_units[] = {
    {"w", INT64_C(7) * 86400 * 1000}, {"d", INT64_C(86400) * 1000}, {"h", INT64_C(3600) * 1000},
    {"m", INT64_C(60) * 1000},        {"s", INT64_C(1000)},         {"ms", INT64_C(1)},
};

/* Finds the unit at *p among those from index first on and moves *p behind it. */
static const unit *scan_duration_unit(const char **p, size_t first)
{
    size_t len = strspn(*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    for (size_t i = first; i < ST_ARRAY_LEN(duration_units); i++) {
        if (strlen(duration_units[i].name) == len &&
            strncmp(*p, duration_units[i].name, len) == 0) {
            *p += len;
            return &duration_units[i];
        }
    }
    return NULL;
}

static int fail_duration(const char *s, scan_result why, st_err *err)
{
    char q[ST_QUOTE_MAX];

    st_quote(q, s);
    switch (why) {
    case SCAN_TOO_LARGE:
        return st_fail(err, ST_ERANGE, "%s is out of range: a duration is at most 1000 years", q);
    case SCAN_TOO_FINE:
        return st_fail(err, ST_EPARSE, "%s is finer than a millisecond or has too many decimals",
                       q);
    default:
        return st_fail(err, ST_EPARSE, "%s is not a duration such as 90s, 2h, 1h30m, 1d or 500ms",
                       q);
    }
}

/* One who writes 90 may mean seconds, minutes or days: none of them is taken for granted. */
static int fail_unit(const char *s, st_err *err)
{
    return st_fail(err, ST_EPARSE, "%.20s needs a unit: %.20ss, %.20sm, %.20sh or %.20sd", s, s, s,
                   s, s);
}

int st_parse_duration_ms(const char *s, int64_t *ret, st_err *err)
{
    const char *p = s;
    size_t next_unit = 0;
    st_i128 total = 0;

    ST_ASSERT(s && ret);
    do {
        const unit *u;
        scan_result scanned;
        int64_t milli = 0;

        scanned = scan_milli(&p, &milli);
        if (scanned != SCAN_OK)
            return fail_duration(s, scanned, err);
        if (*p == '\0' && next_unit == 0 && milli > 0)
            return fail_unit(s, err);
        if (*p == '\0' && next_unit == 0) /* nothing is nothing in every unit */
            u = &duration_units[4];
        else
            u = scan_duration_unit(&p, next_unit);
        if (!u)
            return fail_duration(s, SCAN_NOT_A_NUMBER, err);
        next_unit = (size_t)(u - duration_units) + 1;
        if ((st_i128)milli * u->size % 1000 != 0)
            return fail_duration(s, SCAN_TOO_FINE, err);
        total += (st_i128)milli * u->size / 1000;
        if (total > ST_DURATION_MAX_MS)
            return fail_duration(s, SCAN_TOO_LARGE, err);
    } while (*p);
    *ret = (int64_t)total;
    return 0;
}

static const unit memory_units[] = {
    {"", INT64_C(1) << 30},   {"Ki", INT64_C(1) << 10}, {"Mi", INT64_C(1) << 20},
    {"Gi", INT64_C(1) << 30}, {"Ti", INT64_C(1) << 40}, {"Pi", INT64_C(1) << 50},
    {"k", INT64_C(1000)},     {"K", INT64_C(1000)},     {"M", INT64_C(1000000)},
    {"G", 1000000000},        {"T", 1000000000000},     {"P", 1000000000000000},
};

static const unit *find_memory_unit(const char *s)
{
    size_t len = strlen(s);

    if (len > 1 && s[len - 1] == 'B')
        len--;
    for (size_t i = 0; i < ST_ARRAY_LEN(memory_units); i++)
        if (strlen(memory_units[i].name) == len && strncmp(s, memory_units[i].name, len) == 0)
            return &memory_units[i];
    return NULL;
}

int st_parse_mib(const char *s, int64_t *ret, st_err *err)
{
    const st_i128 divisor = (st_i128)MIB_BYTES * 1000;
    char q[ST_QUOTE_MAX];
    const char *p = s;
    scan_result scanned;
    const unit *u = NULL;
    int64_t milli = 0;
    st_i128 mib = 0;

    ST_ASSERT(s && ret);
    scanned = scan_milli(&p, &milli);
    if (scanned == SCAN_OK)
        u = find_memory_unit(p);
    if (u)
        mib = ((st_i128)milli * u->size + divisor - 1) / divisor;
    if (scanned == SCAN_TOO_LARGE || mib > ST_MIB_MAX)
        return st_fail(err, ST_ERANGE, "%s is out of range: memory is at most 1024Pi",
                       st_quote(q, s));
    if (scanned == SCAN_TOO_FINE)
        return st_fail(err, ST_EPARSE, "%s has more than three decimals", st_quote(q, s));
    if (!u)
        return st_fail(err, ST_EPARSE,
                       "%s is not an amount of memory such as 64Gi, 512Mi or 64 (GiB)",
                       st_quote(q, s));
    *ret = (int64_t)mib;
    return 0;
}

/* |n|, also for INT64_MIN. */
static uint64_t magnitude(int64_t n)
{
    return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

const char *st_fmt_milli(char buf[ST_FMT_MAX], int64_t milli)
{
    uint64_t n = magnitude(milli);
    int len;

    len = snprintf(buf, ST_FMT_MAX, "%s%llu.%03u", milli < 0 ? "-" : "",
                   (unsigned long long)(n / 1000), (unsigned)(n % 1000));
    while (buf[len - 1] == '0')
        buf[--len] = '\0';
    if (buf[len - 1] == '.')
        buf[--len] = '\0';
    return buf;
}

const char *st_fmt_duration(char buf[ST_FMT_MAX], int64_t ms)
{
    uint64_t left = magnitude(ms);
    size_t len = 0;

    if (ms == 0) {
        memcpy(buf, "0s", 3);
        return buf;
    }
    if (ms < 0)
        buf[len++] = '-';
    /* From days on: "9d" reads better than "1w2d". */
    for (size_t i = 1; i < ST_ARRAY_LEN(duration_units); i++) {
        uint64_t size = (uint64_t)duration_units[i].size;

        if (left >= size)
            len += (size_t)snprintf(buf + len, ST_FMT_MAX - len, "%llu%s",
                                    (unsigned long long)(left / size), duration_units[i].name);
        left %= size;
    }
    ST_ASSERT(len < ST_FMT_MAX);
    return buf;
}

const char *st_fmt_mib(char buf[ST_FMT_MAX], int64_t mib)
{
    static const char *const names[] = {"Mi", "Gi", "Ti", "Pi"};
    uint64_t n = magnitude(mib);
    size_t i = 0;

    if (n == 0) {
        memcpy(buf, "0", 2);
        return buf;
    }
    while (i + 1 < ST_ARRAY_LEN(names) && n % 1024 == 0) {
        n /= 1024;
        i++;
    }
    snprintf(buf, ST_FMT_MAX, "%s%llu%s", mib < 0 ? "-" : "", (unsigned long long)n, names[i]);
    return buf;
}
