/* Private to check: bookings in the books, for the audit of the ledger (check/money.h). */
#ifndef ST_CHECK_MONEY_BOOK_H
#define ST_CHECK_MONEY_BOOK_H

#include "ledger/ledger.h"

typedef struct st_book_audit st_book_audit;

st_book_audit *st_book_audit_new(void);
void st_book_audit_free(st_book_audit *a);
/* An entry as it was read back; those that are not about bookings and prices are none of its business. */
int st_book_audit_entry(st_book_audit *a, const st_entry *e, st_err *err);

#endif
