/* Money, moments and ratios as text, exactly; and a field of CSV. */
#ifndef ST_LEDGER_TEXT_H
#define ST_LEDGER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/macros.h"
#include "base/strbuf.h"

#define ST_MONEY_MAX 32

/* Exactly: 12.50, 0.000001, -3.00; two decimals at least, six at most. */
const char *st_money(char buf[ST_MONEY_MAX], int64_t udollars);
/* The same backwards: dollars with up to six decimals, with or without a sign. */
int st_money_parse(const char *text, int64_t *ret_udollars, st_err *err);
/* 2026-10-01T12:30:00Z; parts of a second are cut off. */
#define ST_UTC_MAX 32
const char *st_utc(char buf[ST_UTC_MAX], int64_t ms);
/* n / d with `places` decimals, rounded half away from zero, without zeros at its end. d > 0. */
#define ST_RATIO_MAX 72
const char *st_ratio(char buf[ST_RATIO_MAX], st_i128 n, int64_t d, int places);

/* One field of RFC 4180, quoted where it must be; NULL is an empty one. */
void st_csv_field(st_strbuf *out, const char *text, bool first);

#endif
