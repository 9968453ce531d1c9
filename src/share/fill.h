/*
 * The two computations under st_share_divide: pouring an amount over items
 * until it is used up (water-filling), and rounding to whole units (largest
 * remainder). Private to src/share.
 */
#ifndef ST_SHARE_FILL_H
#define ST_SHARE_FILL_H

#include <stdint.h>

#include "base/macros.h"

/* x rises with the common level L as offset + L * weight, but stays within lo and hi. */
typedef struct st_fill_item {
    double lo, hi;
    double offset; /* lo <= hi, offset <= lo */
    double weight; /* > 0 */
    double x;      /* the result */
} st_fill_item;

/* Finds the level at which the x add up to amount. All x are lo when the amount is below the sum
 * of lo, and all are hi when it is above the sum of hi. */
void st_fill(double amount, st_fill_item *items, int n);

/* A sum whose error does not grow with the number of terms. */
typedef struct st_sum {
    double sum, lost;
} st_sum;

void st_sum_add(st_sum *s, double x);
double st_sum_get(const st_sum *s);

/* How far from a whole number a share of this total may be through rounding alone. */
double st_whole_slack(double total);

/* Splits `total` whole units like the shares, which add up to less than 1 more or less: each gets
 * its share rounded down, the units left over go to the largest remainders, of equal remainders to
 * the first. */
void st_wholes(int64_t total, const double *shares, int n, double slack, int64_t *ret);

#endif
