/* Pieces of stays that later entries of a bill are about, for the verifier (bill/check.h).
 *
 * A correction says what caps had paid of a piece, a credit for lost work what the lost time was charged. Where the
 * piece is in the file, both must be what its entries give. Like billprice.c this is a second reading of doc/reference/bill-format.md and shares
 * nothing with lost.c. */
#ifndef ST_BILL_CHECK_PIECE_H
#define ST_BILL_CHECK_PIECE_H

#include "ledger/ledger.h"

/* Of one account's book. */
typedef struct st_billpieces st_billpieces;

st_billpieces *st_billpieces_new(void);
void st_billpieces_free(st_billpieces *p);

/* First round: an entry is about the entry `seq`, which is looked at closely in the second. */
void st_billpieces_name(st_billpieces *p, int64_t seq);
/* Second round: each entry, in order. ST_ECORRUPT: it does not follow from those before it. */
int st_billpieces_check(st_billpieces *p, const st_entry *e, st_err *err);

#endif
