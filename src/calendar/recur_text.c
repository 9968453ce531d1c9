/*
 * Days of a series as people write them (calendar/recur.h).
 */
#include "calendar/recur.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/quote.h"
#include "calendar/calendar.h"

/* A weekday by its name or its first letters, three at least; -1 otherwise. */
static int weekday_of(const char *s, size_t n)
{
    for (int d = 0; d < 7 && n >= 3; d++)
        if (n <= strlen(st_weekday_name(d)) && strncasecmp(st_weekday_name(d), s, n) == 0)
            return d;
    return -1;
}

int st_recur_weekdays(const char *text, uint32_t *ret, st_err *err)
{
    uint32_t days = 0;
    char q[ST_QUOTE_MAX];

    for (const char *p = text;;) {
        size_t n = strcspn(p, ",");
        int day = weekday_of(p, n);

        if (n == 8 && strncasecmp(p, "weekdays", n) == 0)
            days |= 0x1f;
        else if (n == 7 && strncasecmp(p, "weekend", n) == 0)
            days |= 0x60;
        else if (day >= 0)
            days |= 1u << day;
        else
            return st_fail(err, ST_EPARSE,
                           "%s is not a list of weekdays, for example mon,wed or weekdays",
                           st_quote(q, text));
        if (!p[n])
            break;
        p += n + 1;
    }
    *ret = days;
    return 0;
}

int st_recur_monthly(const char *text, st_recur *ret, st_err *err)
{
    static const char *const nth[] = {"1st", "2nd", "3rd", "4th", "5th"};
    size_t n = strcspn(text, " ");
    int64_t day;
    st_err ignored;
    char q[ST_QUOTE_MAX];

    ret->monthday = ret->nth = ret->weekday = 0;
    if (st_parse_i64(text, 1, 31, &day, &ignored) == 0) {
        ret->monthday = (int32_t)day;
        return 0;
    }
    if (strcmp(text, "last") == 0) {
        ret->monthday = -1;
        return 0;
    }
    if (text[n] == ' ') {
        ret->weekday = weekday_of(text + n + 1, strlen(text + n + 1));
        for (int i = 0; i < 5; i++)
            if (n == 3 && strncmp(text, nth[i], n) == 0)
                ret->nth = i + 1;
        if (n == 4 && strncmp(text, "last", n) == 0)
            ret->nth = -1;
    }
    if (ret->nth != 0 && ret->weekday >= 0)
        return 0;
    ret->nth = ret->weekday = 0;
    return st_fail(err, ST_EPARSE,
                   "%s is not a day of a month, for example 15, last, 2nd tuesday or last friday",
                   st_quote(q, text));
}
