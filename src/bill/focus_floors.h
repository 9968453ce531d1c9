/* How much of each floor was used on each day, for labels of reserved capacity.
 *
 * Use inside a floor takes from the account's own floor of the GPU type, then from its floor of any type, then in
 * the same way from those above it; the accounts furthest down come first. Use that is called guaranteed fits
 * into the floors at every moment, so adding up by day loses nothing. */
#ifndef ST_BILL_FOCUS_FLOORS_H
#define ST_BILL_FOCUS_FLOORS_H

#include "ledger/ledger.h"

typedef struct st_floors st_floors;

st_floors *st_floors_new(void);
void st_floors_free(st_floors *f);
void st_floors_account(st_floors *f, const char *account, const char *parent);
void st_floors_learn(st_floors *f, const st_entry *e);

/* Of a RESERVE entry, how much of its share was used. Entries must come in the order they were learned in. */
int64_t st_floors_used(st_floors *f, const st_entry *e);
/* Whose floor a use of this type lies in: the account or one above it that has one, and of which type ("*" any).
 * NULL: none that was learned. */
const char *st_floors_of(const st_floors *f, const char *account, const char *gpu,
                         const char **ret_gpu);

#endif
