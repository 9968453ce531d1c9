/*
 * Reading and writing moments (calendar/calendar.h).
 */
#include "calendar/calendar.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/quote.h"

#define YEAR_MIN 1970
#define YEAR_MAX 9998

/* What a text says, before a zone is asked. */
typedef struct said {
    int64_t local_s;
    int32_t ms;
    bool is_instant; /* local_s is UTC */
} said;

/* ---- reading -------------------------------------------------------------------------------- */

/* Exactly n digits; -1 otherwise. */
static int digits(const char **p, int n)
{
    int v = 0;

    for (int i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return -1;
        v = v * 10 + (**p - '0');
    }
    return v;
}

static bool take(const char **p, char want)
{
    if (**p != want)
        return false;
    (*p)++;
    return true;
}

static bool read_date(const char **p, int64_t *day)
{
    st_date d;

    d.year = digits(p, 4);
    if (d.year < 0 || !take(p, '-') || (d.month = digits(p, 2)) < 0 || !take(p, '-') ||
        (d.day = digits(p, 2)) < 0 || !st_date_is_valid(&d) || d.year < YEAR_MIN ||
        d.year > YEAR_MAX)
        return false;
    *day = st_date_to_day(&d);
    return true;
}

/* hh:mm[:ss[.fraction]] */
static bool read_time(const char **p, int64_t *s, int32_t *ms)
{
    int hour = digits(p, 2), minute, second = 0;

    if (hour < 0 || hour > 23 || !take(p, ':') || (minute = digits(p, 2)) < 0 || minute > 59)
        return false;
    if (take(p, ':')) {
        if ((second = digits(p, 2)) < 0 || second > 59)
            return false;
        if (take(p, '.')) {
            int32_t unit = 100;
            const char *first = *p;

            for (; **p >= '0' && **p <= '9' && *p - first < 9; (*p)++, unit /= 10)
                *ms += (**p - '0') * unit;
            if (*p == first)
                return false;
        }
    }
    *s = hour * 3600 + minute * 60 + second;
    return true;
}

/* Z or ±hh:mm; nothing is no offset. */
static bool read_offset(const char **p, said *ret)
{
    if (!**p)
        return true;
    ret->is_instant = true;
    if (take(p, 'Z') || take(p, 'z'))
        return true;
    int sign = take(p, '-') ? -1 : take(p, '+') ? 1 : 0;
    int hour = sign ? digits(p, 2) : -1, minute;

    if (hour < 0 || hour > 23 || !take(p, ':') || (minute = digits(p, 2)) < 0 || minute > 59)
        return false;
    ret->local_s -= (int64_t)sign * (hour * 3600 + minute * 60);
    return true;
}

/* today, tomorrow or a weekday. */
static bool read_word(const char **p, int64_t today, int64_t *day)
{
    size_t n = strcspn(*p, " ");
    int64_t plus = -1;

    if (n == 5 && strncasecmp(*p, "today", n) == 0)
        plus = 0;
    else if (n == 8 && strncasecmp(*p, "tomorrow", n) == 0)
        plus = 1;
    for (int64_t d = 1; d <= 7 && plus < 0; d++) {
        const char *name = st_weekday_name(st_day_weekday(today + d));

        if (strlen(name) == n && strncasecmp(*p, name, n) == 0)
            plus = d;
    }
    if (plus < 0)
        return false;
    *p += n;
    *day = today + plus;
    return true;
}

static int not_a_moment(const char *text, st_err *err)
{
    char q[ST_QUOTE_MAX];

    return st_fail(
        err, ST_EPARSE,
        "%s is not a time; write 2026-12-01 09:00, 2026-12-01T09:00:00Z, tomorrow 09:00, "
        "now or +2h",
        st_quote(q, text));
}

static int64_t floor_s(int64_t ms)
{
    return ms / 1000 - (ms % 1000 < 0);
}

static int read_all(const char *text, const st_tz *tz, int64_t now_ms, said *ret, st_err *err)
{
    int64_t now_s = floor_s(now_ms), day, ahead_ms = 0, time_s = 0;
    int64_t today = st_day_of(now_s + st_tz_at(tz, now_s).offset_s);
    const char *p = text;
    said s = {0};

    if (strcasecmp(text, "now") == 0 || text[0] == '+') {
        int r = text[0] == '+' ? st_parse_duration_ms(text + 1, &ahead_ms, err) : 0;

        s.is_instant = true;
        s.local_s = floor_s(now_ms + ahead_ms);
        s.ms = (int32_t)(now_ms + ahead_ms - s.local_s * 1000);
        if (r == 0)
            *ret = s;
        return r;
    }
    bool is_date = *p >= '0' && *p <= '9';

    if (is_date ? !read_date(&p, &day) : !read_word(&p, today, &day))
        return not_a_moment(text, err);
    if (*p) {
        bool apart = take(&p, ' ') || (is_date && (take(&p, 'T') || take(&p, 't')));

        if (!apart || !read_time(&p, &time_s, &s.ms))
            return not_a_moment(text, err);
    }
    s.local_s = day * ST_DAY_S + time_s;
    if (!read_offset(&p, &s) || *p)
        return not_a_moment(text, err);
    *ret = s;
    return 0;
}

/* ---- asking the zone ------------------------------------------------------------------------ */

static int not_one_moment(const said *s, const st_tz *tz, const st_tz_moment *m, st_err *err)
{
    char a[ST_WHEN_MAX], b[ST_WHEN_MAX], wall[ST_WHEN_MAX + 16];
    int64_t jump = m->second_s;

    snprintf(wall, sizeof wall, "%s %02d:%02d", st_when_day(a, st_day_of(s->local_s)),
             (int)((uint64_t)s->local_s / 3600 % 24), (int)((uint64_t)s->local_s / 60 % 60));
    if (m->kind == ST_TZ_TWICE)
        return st_fail(err, ST_EINVAL, "%s happens twice in %s; write %s or %s", wall,
                       st_tz_name(tz), st_when_rfc3339(a, tz, m->first_s * 1000),
                       st_when_rfc3339(b, tz, m->second_s * 1000));
    return st_fail(err, ST_EINVAL, "%s does not exist in %s: clocks jump to %s; write %s or %s",
                   wall, st_tz_name(tz), st_when_text(a, tz, jump * 1000),
                   st_when_rfc3339(b, tz, jump * 1000),
                   st_when_rfc3339((char[ST_WHEN_MAX]){0}, tz, m->first_s * 1000));
}

int st_when_parse(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_ms, st_err *err)
{
    said s;
    int r = read_all(text, tz, now_ms, &s, err);

    if (r < 0)
        return r;
    if (!s.is_instant) {
        st_tz_moment m = st_tz_resolve(tz, s.local_s);

        if (m.kind != ST_TZ_ONCE)
            return not_one_moment(&s, tz, &m, err);
        s.local_s = m.first_s;
    }
    *ret_ms = s.local_s * 1000 + s.ms;
    return 0;
}

int st_when_local(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_local_s,
                  st_err *err)
{
    said s;
    int r = read_all(text, tz, now_ms, &s, err);

    if (r < 0)
        return r;
    *ret_local_s = s.is_instant ? s.local_s + st_tz_at(tz, s.local_s).offset_s : s.local_s;
    return 0;
}

bool st_when_on_clock(const char *text, const st_tz *tz, int64_t now_ms, int64_t *ret_local_s)
{
    said s;
    st_err ignored;

    if (read_all(text, tz, now_ms, &s, &ignored) < 0 || s.is_instant)
        return false;
    *ret_local_s = s.local_s;
    return true;
}

int st_when_date(const char *text, int64_t *ret_day, st_err *err)
{
    const char *p = text;
    int64_t day;
    char q[ST_QUOTE_MAX];

    if (!read_date(&p, &day) || *p)
        return st_fail(err, ST_EPARSE, "%s is not a date such as 2026-12-01", st_quote(q, text));
    *ret_day = day;
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

const char *st_when_day(char buf[ST_WHEN_MAX], int64_t day)
{
    st_date d = st_date_of_day(day);

    snprintf(buf, ST_WHEN_MAX, "%04d-%02d-%02d", d.year, d.month, d.day);
    return buf;
}

const char *st_when_text(char buf[ST_WHEN_MAX], const st_tz *tz, int64_t ms)
{
    st_tz_type type = st_tz_at(tz, floor_s(ms));
    int64_t local = floor_s(ms) + type.offset_s, day = st_day_of(local);
    int64_t of_day = local - day * ST_DAY_S;
    st_date d = st_date_of_day(day);

    snprintf(buf, ST_WHEN_MAX, "%04d-%02d-%02d %02d:%02d %s", d.year, d.month, d.day,
             (int)(of_day / 3600), (int)(of_day / 60 % 60), type.abbr);
    return buf;
}

const char *st_when_rfc3339(char buf[ST_WHEN_MAX], const st_tz *tz, int64_t ms)
{
    int32_t offset =
        st_tz_at(tz, floor_s(ms)).offset_s / 60 * 60; /* RFC 3339 has no seconds there */
    int64_t local = floor_s(ms) + offset, day = st_day_of(local), of_day = local - day * ST_DAY_S;
    int32_t east = offset < 0 ? -offset : offset;
    st_date d = st_date_of_day(day);
    int n = snprintf(buf, ST_WHEN_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", d.year, d.month, d.day,
                     (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));

    if (offset == 0)
        snprintf(buf + n, ST_WHEN_MAX - (size_t)n, "Z");
    else
        snprintf(buf + n, ST_WHEN_MAX - (size_t)n, "%c%02d:%02d", offset < 0 ? '-' : '+',
                 east / 3600, east / 60 % 60);
    return buf;
}
