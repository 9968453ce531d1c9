/* Cents and taxes (bill/invoice.h). */
#include "bill/invoice.h"

#include <stdio.h>

#include "base/macros.h"

/* n / d, half away from zero; d > 0. */
static st_i128 rounded(st_i128 n, st_i128 d)
{
    return n < 0 ? -((-n + d / 2) / d) : (n + d / 2) / d;
}

int64_t st_cents(int64_t udollars)
{
    return (int64_t)rounded(udollars, ST_CENT);
}

int st_payable_reckon(st_payable *p, st_err *err)
{
    st_payable is = *p;
    st_i128 total;

    is.net_cents = st_cents(p->lines_udollars);
    is.rounding_udollars = (int64_t)((st_i128)is.net_cents * ST_CENT - p->lines_udollars);
    total = is.net_cents;
    for (int i = 0; i < is.ntaxes; i++) {
        st_tax *t = &is.taxes[i];

        if (t->rate_bp < 0 || t->rate_bp > ST_TAX_RATE_MAX)
            return st_fail(err, ST_ERANGE, "tax %s: a rate is from 0 to 100 percent", t->name);
        t->cents = (int64_t)rounded((st_i128)is.net_cents * t->rate_bp, ST_TAX_RATE_MAX);
        total += t->cents;
    }
    if (total > ST_PAYABLE_MAX || total < -ST_PAYABLE_MAX)
        return st_fail(err, ST_ERANGE, "the total is more than an invoice can have");
    is.total_cents = (int64_t)total;
    *p = is;
    return 0;
}

const char *st_cents_text(char buf[ST_CENTS_MAX], int64_t cents)
{
    uint64_t u = cents < 0 ? 0 - (uint64_t)cents : (uint64_t)cents;

    snprintf(buf, ST_CENTS_MAX, "%s%llu.%02u", cents < 0 ? "-" : "", (unsigned long long)(u / 100),
             (unsigned)(u % 100));
    return buf;
}
