/* What a month will have cost at its end, from its whole days: an interval that holds eight times in ten where days are
 * alike and do not depend on each other. Integers only: the same numbers give the same answer everywhere. */
#include "ledger/month_end.h"

#define DAY_MS       INT64_C(86400000)
#define OBSERVED_MIN INT64_C(600000) /* less is not looked at */

/* Student's t, one-sided 90 %, in thousandths, by degrees of freedom. */
static int64_t t_of(int freedom)
{
    static const int16_t table[] = {0,    3078, 1886, 1638, 1533, 1476, 1440, 1415,
                                    1397, 1383, 1372, 1363, 1356, 1350, 1345, 1341};
    if (freedom < (int)ST_ARRAY_LEN(table))
        return table[freedom];
    return freedom < 30 ? 1333 : 1310;
}

static st_i128 root_of(st_i128 n)
{
    st_i128 lo = 0, hi = (st_i128)1 << 63;
    while (lo < hi) {
        st_i128 mid = (lo + hi + 1) / 2;
        if (mid <= n / mid)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static int64_t fit(st_i128 n)
{
    return (int64_t)ST_MAX(ST_MIN(n, (st_i128)ST_AMOUNT_MAX), -(st_i128)ST_AMOUNT_MAX);
}

/* The rest costs the days' mean; its variance is that of the days left, and of the mean itself. */
static void from_days(const st_month_so_far *s, st_month_end *ret)
{
    st_i128 sum = 0, squares = 0, n = s->ndays, left = s->left_ms;
    for (int i = 0; i < s->ndays; i++)
        sum += s->days[i];
    st_i128 mean = sum / n;
    for (int i = 0; i < s->ndays; i++) {
        /* In hundredths of a dollar squares of any day fit. */
        st_i128 off = (s->days[i] - mean) / 10000;
        squares += off * off;
    }
    st_i128 variance = squares / (n - 1);
    /* left/DAY x (1 + left/DAY/n), in thousandths. */
    st_i128 days_m = left * 1000 / DAY_MS;
    st_i128 spread_m = days_m + days_m * days_m / (n * 1000);
    st_i128 half = root_of(variance * spread_m) * t_of(s->ndays - 1) * 10000 / 31623;
    st_i128 expected = s->spent + mean * left / DAY_MS;
    *ret = (st_month_end){.from = ST_MONTH_DAYS,
                          .chance_percent = 80,
                          .expected = fit(expected),
                          .low = fit(expected - half),
                          .high = fit(expected + half)};
}

/* As fast as so far; that it may be twice as much is a rule of thumb and no chance is known. */
static void from_so_far(const st_month_so_far *s, st_month_end *ret)
{
    st_i128 rest = ST_MAX((st_i128)s->spent, 0) * s->left_ms / s->observed_ms;
    *ret = (st_month_end){.from = ST_MONTH_SO_FAR,
                          .expected = fit(s->spent + rest),
                          .low = s->spent,
                          .high = fit(s->spent + 2 * rest)};
}

void st_month_end_of(const st_month_so_far *s, st_month_end *ret)
{
    int64_t certain = fit((st_i128)s->spent + s->to_come);
    *ret = (st_month_end){.from = ST_MONTH_UNKNOWN};
    if (s->ndays >= ST_MONTH_DAYS_MIN)
        from_days(s, ret);
    else if (s->observed_ms >= OBSERVED_MIN)
        from_so_far(s, ret);
    else
        return;
    /* Floors that stand are paid whatever happens, and nothing is charged beyond a cap. */
    ret->low = ST_MAX(ret->low, certain);
    ret->expected = ST_MAX(ret->expected, certain);
    ret->high = ST_MAX(ret->high, ret->expected);
    if (s->cap != ST_UNSET) {
        int64_t most = ST_MAX(s->cap, s->spent);
        ret->low = ST_MIN(ret->low, most);
        ret->expected = ST_MIN(ret->expected, most);
        ret->high = ST_MIN(ret->high, most);
    }
}
