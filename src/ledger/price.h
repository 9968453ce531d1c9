/* What an entry costs, given a price book, a plan and carries; nothing of the ledger's state.
 *
 * Every amount is bounded so that sums stay far from the ends of int64_t: a line by ST_AMOUNT_MAX,
 * everything that is added up by st_sum_ok. */
#ifndef ST_LEDGER_PRICE_H
#define ST_LEDGER_PRICE_H

#include "ledger/ledger.h"

/* Makes amount and carry from the rest. ST_ERANGE: a rate, factor or carry out of range, or the
 * amount is. */
int st_line_reckon(st_line *line, st_err *err);
int64_t st_line_divisor(st_component c);

/* The row of a GPU type, or that of "*"; NULL where there is neither. */
const st_rates *st_price_rates(const st_price_book *book, const char *gpu);
/* What jobs of the class pay of the price; NULL is no class. */
int64_t st_price_class_bp(const st_price_book *book, const char *name);
/* Factors multiply: whether what is charged stays within what a line can count. */
bool st_price_factors_fit(const st_price_book *book);
/* NULL: jobs of this workload type pay by time. */
const st_unit_price *st_price_unit(const st_price_book *book, const char *workload);
st_component st_basis_component(st_basis basis);

/* How much of what was charged for lost work is credited, in hundredths of a percent; and of a LOST entry how much
 * that is in all, rounded down. */
int64_t st_price_back_bp(const st_price_book *book, st_cut cut);
int64_t st_price_back(const st_price_book *book, const st_entry *lost);

/* bp factors multiplied, rounded half up. */
int64_t st_price_factor(const int64_t *bp, int n);

/* Adds a line to the entry: reckons it with the carry of its component. */
int st_price_add(st_entry *e, const int64_t *carry, st_line line, st_err *err);

/* Of discounts: the last step that is reached. Of fees: the first that lies above. 0: none. */
int64_t st_steps_reached(const st_steps *s, int64_t ms);
int64_t st_steps_above(const st_steps *s, int64_t ms);

/* The book of a fleet without prices: everything is counted and costs nothing. */
extern const st_price_book st_price_free;

/* 2026-10-01 or 2026-10-01T12:30:00Z, from 1970 on. */
bool st_price_moment(const char *s, int64_t *ret);

/* An unsigned decimal with up to `places` places, as an integer of the last one. */
bool st_price_decimal(const char *s, size_t n, int places, int64_t *ret);

#endif
