/* Windows of bookings held against what was agreed, for the verifier (bill/check.h). Written from the rules in
 * doc/reference/bill-format.md, apart from the ledger's own. */
#ifndef ST_BILL_CHECK_BOOKING_H
#define ST_BILL_CHECK_BOOKING_H

#include "ledger/ledger.h"

typedef struct st_billbookings st_billbookings;

/* The price book in force at a moment; NULL: none. */
typedef const st_price_book *st_book_at_fn(const void *ctx, int64_t ms);

void st_billbookings_free(st_billbookings *b);

/* A BOOKING or WINDOW entry; others are none of its business. *b is made when it is needed. month_ms: it is of the bill's
 * own month, which begins then, and the windows of that are in the file; ST_UNSET: it is from before. */
int st_billbookings_check(st_billbookings **b, const st_entry *e, int64_t month_ms,
                          st_book_at_fn *book, const void *ctx, st_err *err);

#endif
