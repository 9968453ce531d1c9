/* What is to be paid of a bill: micro-dollars to cents, and taxes on top.
 *
 * Invariants: 1. The lines' sum + rounding = net, exactly; the rounding is at most half a cent. 2. net + Σ taxes = total.
 * 3. What is given back is rounded as what is charged: the sums of -x are those of x, with the other sign.
 *
 * Pure. billing/invoices.c issues invoices, api/invoice_page.c shows them. */
#ifndef ST_BILL_INVOICE_H
#define ST_BILL_INVOICE_H

#include <stdint.h>

#include "base/err.h"

#define ST_CENT         INT64_C(10000) /* micro-dollars */
#define ST_TAXES_MAX    4
#define ST_TAX_RATE_MAX 10000 /* hundredths of a percent: all of it */
#define ST_TAX_NAME_MAX 60
#define ST_PAYABLE_MAX  (INT64_C(1) << 53) /* cents; what JSON readers keep exactly */

typedef struct st_tax {
    char name[ST_TAX_NAME_MAX + 1];
    int64_t rate_bp; /* hundredths of a percent of the net amount, never of other taxes */
    int64_t cents;   /* given */
} st_tax;

typedef struct st_payable {
    int64_t lines_udollars;    /* what the lines add up to */
    int64_t rounding_udollars; /* to whole cents */
    int64_t net_cents, total_cents;
    st_tax taxes[ST_TAXES_MAX];
    int ntaxes;
} st_payable;

/* Half a cent is rounded away from zero. */
int64_t st_cents(int64_t udollars);
/* Fills in everything from lines_udollars and the taxes' rates; ST_ERANGE: a rate that is none, or more money than can be
 * counted. */
int st_payable_reckon(st_payable *p, st_err *err);

/* 1234 is 12.34. */
#define ST_CENTS_MAX 32
const char *st_cents_text(char buf[ST_CENTS_MAX], int64_t cents);

#endif
