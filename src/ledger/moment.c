/* Moments as people write them in price books and plans. */
#include <string.h>

#include "ledger/price.h"

/* Days since 1970-01-01 of a date of the Gregorian calendar; years from March on, leap days last. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;
    int64_t in400 = y % 400, day = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return y / 400 * 146097 + in400 * 365 + in400 / 4 - in400 / 100 + day - 719468;
}

static int month_days(int y, int m)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[m - 1] + (m == 2 && y % 4 == 0 && (y % 100 != 0 || y % 400 == 0));
}

/* Two to four digits at p. */
static int digits(const char *p, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return -1;
        v = v * 10 + p[i] - '0';
    }
    return v;
}

/* 2026-10-01, 2026-10-01T12:30:00Z, or as answers write it, 2026-10-01T12:30:00.000Z. */
bool st_price_moment(const char *s, int64_t *ret)
{
    size_t n = strlen(s);
    int h = 0, min = 0, sec = 0, ms = 0;
    if ((n != 10 && n != 20 && n != 24) || s[4] != '-' || s[7] != '-')
        return false;
    int y = digits(s, 4), m = digits(s + 5, 2), d = digits(s + 8, 2);
    if (n > 10) {
        if (s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[n - 1] != 'Z' ||
            (n == 24 && s[19] != '.'))
            return false;
        ms = n == 24 ? digits(s + 20, 3) : 0;
        h = digits(s + 11, 2), min = digits(s + 14, 2), sec = digits(s + 17, 2);
    }
    if (y < 1970 || m < 1 || m > 12 || d < 1 || d > month_days(y, m) || h < 0 || h > 23 ||
        min < 0 || min > 59 || sec < 0 || sec > 59 || ms < 0)
        return false;
    *ret = (((days_of(y, m, d) * 24 + h) * 60 + min) * 60 + sec) * 1000 + ms;
    return true;
}
