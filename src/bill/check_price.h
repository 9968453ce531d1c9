/* What the postings of an entry must be, by the rules in doc/reference/bill-format.md, for the verifier of bills.
 *
 * This is a second reading of those rules on purpose and shares nothing with price.c but the arithmetic of one
 * line: the bill of a ledger that prices wrongly must not verify. */
#ifndef ST_BILL_CHECK_PRICE_H
#define ST_BILL_CHECK_PRICE_H

#include "ledger/ledger.h"

/* Of an account's components, where the last posting left off; -1: not known, because it was before
 * the entries at hand. */
typedef struct st_carries {
    int64_t v[ST_PAY_COUNT];
} st_carries;

/* Whether the lines are those that usage, prices and terms lead to, and go on with the carries, which move on. The cap
 * line is looked at only as far as an entry alone can tell. Book and terms may be NULL: nothing costs
 * anything, no discount. ST_ECORRUPT: which line, and what it must be. */
int st_billprice_check(const st_entry *e, const st_price_book *book, const st_terms *terms,
                       st_carries *carries, st_err *err);

#endif
