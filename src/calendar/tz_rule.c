/*
 * Reading a footer's rule and asking it (calendar/tz_rule.h).
 */
#include "calendar/tz_rule.h"

#include <string.h>

#include "base/quote.h"
#include "calendar/calendar.h"

#define HOUR_S       3600
#define YEARS        4 /* that are looked at around an instant: a change may be a week outside its year */
#define CHANGES      (2 * YEARS)
#define TIME_H_MAX   167
#define OFFSET_H_MAX 24
#define FAR_S        INT64_C(1000000000000) /* 30,000 years: outside them a rule has no changes */

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct cursor {
    const char *p;
    bool bad;
} cursor;

static bool take(cursor *c, char want)
{
    if (c->bad || *c->p != want)
        return false;
    c->p++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int32_t number(cursor *c, int32_t lo, int32_t hi)
{
    int32_t n = 0;

    if (!is_digit(*c->p))
        c->bad = true;
    for (int i = 0; !c->bad && is_digit(*c->p); i++) {
        n = n * 10 + (*c->p++ - '0');
        c->bad = i >= 3;
    }
    if (n < lo || n > hi)
        c->bad = true;
    return c->bad ? lo : n;
}

/* [+-]hh[:mm[:ss]] */
static int32_t seconds(cursor *c, int32_t hours_max)
{
    bool minus = take(c, '-');

    if (!minus)
        take(c, '+');
    int32_t s = number(c, 0, hours_max) * HOUR_S;

    if (take(c, ':')) {
        s += number(c, 0, 59) * 60;
        if (take(c, ':'))
            s += number(c, 0, 59);
    }
    return minus ? -s : s;
}

static void abbreviation(cursor *c, char abbr[ST_TZ_ABBR_MAX])
{
    bool quoted = take(c, '<');
    size_t n = 0;

    while (quoted ? is_letter(*c->p) || is_digit(*c->p) || *c->p == '+' || *c->p == '-'
                  : is_letter(*c->p)) {
        if (n + 1 >= ST_TZ_ABBR_MAX)
            break;
        abbr[n++] = *c->p++;
    }
    abbr[n] = '\0';
    if (n < 3 || (quoted && !take(c, '>')))
        c->bad = true;
}

static void day(cursor *c, st_tz_day *d)
{
    if (take(c, 'M')) {
        d->kind = ST_TZ_DAY_MONTH;
        d->month = number(c, 1, 12);
        c->bad |= !take(c, '.');
        d->week = number(c, 1, 5);
        c->bad |= !take(c, '.');
        d->weekday = number(c, 0, 6);
    } else if (take(c, 'J')) {
        d->kind = ST_TZ_DAY_JULIAN;
        d->day = number(c, 1, 365);
    } else {
        d->kind = ST_TZ_DAY_ZERO;
        d->day = number(c, 0, 365);
    }
    d->time_s = take(c, '/') ? seconds(c, TIME_H_MAX) : 2 * HOUR_S;
}

int st_tz_rule_parse(const char *text, st_tz_rule *ret, st_err *err)
{
    cursor c = {.p = text};
    st_tz_rule rule = {0};
    char q[ST_QUOTE_MAX];

    abbreviation(&c, rule.std.abbr);
    rule.std.offset_s = -seconds(&c, OFFSET_H_MAX); /* POSIX counts west */
    if (!c.bad && *c.p) {
        rule.has_dst = rule.dst.dst = true;
        abbreviation(&c, rule.dst.abbr);
        rule.dst.offset_s = rule.std.offset_s + HOUR_S;
        if (!c.bad && *c.p != ',')
            rule.dst.offset_s = -seconds(&c, OFFSET_H_MAX);
        c.bad |= !take(&c, ',');
        day(&c, &rule.start);
        c.bad |= !take(&c, ',');
        day(&c, &rule.end);
    }
    if (c.bad || *c.p)
        return st_fail(err, ST_EPARSE, "%s is no rule of a time zone", st_quote(q, text));
    *ret = rule;
    return 0;
}

/* ---- asking --------------------------------------------------------------------------------- */

static int64_t day_in(const st_tz_day *d, int32_t year)
{
    st_date first = {year, d->kind == ST_TZ_DAY_MONTH ? d->month : 1, 1};
    int64_t day = st_date_to_day(&first);

    switch (d->kind) {
    case ST_TZ_DAY_JULIAN:
        return day + d->day - 1 + (d->day >= 60 && st_date_is_leap(year));
    case ST_TZ_DAY_ZERO:
        return day + d->day;
    case ST_TZ_DAY_MONTH:
        break;
    }
    int32_t sunday_based = (st_day_weekday(day) + 1) % 7;
    int32_t in_month = (d->weekday - sunday_based + 7) % 7 + 7 * (d->week - 1);

    if (in_month >= st_date_month_days(year, d->month)) /* week 5 is the last */
        in_month -= 7;
    return day + in_month;
}

typedef struct change {
    int64_t at_s;
    const st_tz_type *to;
} change;

/* The changes of the years around an instant, in order; of two at the same instant the later year's is last, so that a
 * rule which begins where it ended the year before never ends. */
static void changes_around(const st_tz_rule *rule, int64_t utc_s, change out[CHANGES])
{
    int64_t near_s = ST_MAX(-FAR_S, ST_MIN(utc_s, FAR_S));
    int32_t year = st_date_of_day(st_day_of(near_s)).year - 2;
    int n = 0;

    for (int i = 0; i < YEARS; i++, year++) {
        change start = {day_in(&rule->start, year) * ST_DAY_S + rule->start.time_s -
                            rule->std.offset_s,
                        &rule->dst};
        change end = {day_in(&rule->end, year) * ST_DAY_S + rule->end.time_s - rule->dst.offset_s,
                      &rule->std};

        out[n++] = start.at_s < end.at_s ? start : end;
        out[n++] = start.at_s < end.at_s ? end : start;
    }
    for (int i = 1; i < n; i++) { /* years may overlap by days */
        change c = out[i];
        int j = i;

        for (; j > 0 && out[j - 1].at_s > c.at_s; j--)
            out[j] = out[j - 1];
        out[j] = c;
    }
}

const st_tz_type *st_tz_rule_at(const st_tz_rule *rule, int64_t utc_s)
{
    const st_tz_type *type = &rule->std;
    change around[CHANGES];

    if (!rule->has_dst)
        return type;
    changes_around(rule, utc_s, around);
    for (int i = 0; i < CHANGES && around[i].at_s <= utc_s; i++)
        type = around[i].to;
    return type;
}

bool st_tz_rule_next(const st_tz_rule *rule, int64_t after_s, int64_t *ret_s)
{
    change around[CHANGES];

    if (!rule->has_dst)
        return false;
    changes_around(rule, after_s, around);
    for (int i = 0; i < CHANGES; i++)
        if (around[i].at_s > after_s) {
            *ret_s = around[i].at_s;
            return true;
        }
    return false;
}
