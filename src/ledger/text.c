/* Numbers and moments as text. */
#include "ledger/text.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "ledger/price.h"

const char *st_money(char buf[ST_MONEY_MAX], int64_t udollars)
{
    uint64_t u = udollars < 0 ? 0 - (uint64_t)udollars : (uint64_t)udollars;
    int n = snprintf(buf, ST_MONEY_MAX, "%s%llu.%06llu", udollars < 0 ? "-" : "",
                     (unsigned long long)(u / 1000000), (unsigned long long)(u % 1000000));

    for (int most = 4; most > 0 && buf[n - 1] == '0'; most--)
        buf[--n] = '\0';
    return buf;
}

/* The date of a day since 1970-01-01, in the Gregorian calendar; years begin in March, so that leap days
 * come last. */
static void date_of(int64_t day, int64_t *ret_y, int64_t *ret_m, int64_t *ret_d)
{
    int64_t z = day + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    *ret_d = of_year - (153 * month + 2) / 5 + 1;
    *ret_m = month < 10 ? month + 3 : month - 9;
    *ret_y = year + era * 400 + (*ret_m <= 2);
}

int st_money_parse(const char *text, int64_t *ret_udollars, st_err *err)
{
    bool minus = text[0] == '-';
    const char *digits = text + (minus || text[0] == '+');
    int64_t v;

    if (!st_price_decimal(digits, strlen(digits), 6, &v) || v > ST_AMOUNT_MAX)
        return st_fail(err, ST_EINVAL, "%.40s is not an amount in dollars, such as 12.50", text);
    *ret_udollars = minus ? -v : v;
    return 0;
}

const char *st_utc(char buf[ST_UTC_MAX], int64_t ms)
{
    /* From the year 0 to 9999: what is outside was never a moment of ours. */
    int64_t lo = INT64_C(-62167219200), hi = INT64_C(253402300799), y, m, d;
    int64_t s = ms / 1000 - (ms % 1000 < 0), day, of_day;

    s = ST_MAX(lo, ST_MIN(s, hi));
    day = s / 86400 - (s % 86400 < 0);
    of_day = s - day * 86400;
    date_of(day, &y, &m, &d);
    /* The remainders are for the compiler, which cannot know how wide the numbers are. */
    snprintf(buf, ST_UTC_MAX, "%04u-%02u-%02uT%02u:%02u:%02uZ", (unsigned)y % 10000,
             (unsigned)m % 100, (unsigned)d % 100, (unsigned)(of_day / 3600) % 100,
             (unsigned)(of_day / 60 % 60) % 100, (unsigned)(of_day % 60) % 100);
    return buf;
}

const char *st_ratio(char buf[ST_RATIO_MAX], st_i128 n, int64_t d, int places)
{
    bool minus = n < 0;
    st_u128 u = minus ? (st_u128)0 - (st_u128)n : (st_u128)n, whole;
    char digits[24];
    int ndigits = 0, at = 0;

    ST_ASSERT(d > 0 && places >= 0 && places < (int)sizeof(digits));
    whole = u / (st_u128)d;
    u %= (st_u128)d;
    for (; ndigits < places; ndigits++) {
        u *= 10;
        digits[ndigits] = (char)(u / (st_u128)d);
        u %= (st_u128)d;
    }
    if (u * 2 >= (st_u128)d) { /* one up, from the last digit on */
        int i = ndigits - 1;

        while (i >= 0 && digits[i] == 9)
            digits[i--] = 0;
        if (i >= 0)
            digits[i]++;
        else
            whole++;
    }
    while (ndigits > 0 && digits[ndigits - 1] == 0)
        ndigits--;
    if (minus && (whole > 0 || ndigits > 0))
        buf[at++] = '-';
    /* A whole part beyond 64 bits has no use here; the largest quotient is 2^127 / 1. */
    if (whole > UINT64_MAX)
        at += snprintf(buf + at, (size_t)(ST_RATIO_MAX - at), "%llu%019llu",
                       (unsigned long long)(whole / 10000000000000000000U),
                       (unsigned long long)(whole % 10000000000000000000U));
    else
        at += snprintf(buf + at, (size_t)(ST_RATIO_MAX - at), "%llu", (unsigned long long)whole);
    if (ndigits > 0)
        buf[at++] = '.';
    for (int i = 0; i < ndigits; i++)
        buf[at++] = (char)('0' + digits[i]);
    buf[at] = '\0';
    return buf;
}

void st_csv_field(st_strbuf *out, const char *text, bool first)
{
    if (!first)
        st_strbuf_addc(out, ',');
    if (text)
        st_quote_csv(out, text);
}
