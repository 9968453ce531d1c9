/*
 * The invariants of the ledger (ledger/ledger.h), checked from outside.
 *
 * The audit reads what is written into the books and keeps sums of its own:
 *
 *   - an entry reads back from its bytes as it was written;
 *   - the usage of each stay joins without gap and overlap, none is there twice, and corrections name what they
 *     correct;
 *   - of each account and component, Σ quantity x rate x factor is what was charged and what is carried, in 128 bits;
 *   - the sum over all accounts is 0; the bill of an account is its own postings and its children's bills, also of
 *     months that were closed;
 *   - of each job, what is credited (lost work, beyond a cap) is at most what it was charged; of a piece that is lost
 *     as a whole, what is credited is all that it was charged, times the percentage that it says;
 *   - nothing is charged beyond a cap, and nothing is held that does not fit under it; what is over holds nothing;
 *   - what the fleet's entries say was granted is what the accounts' say;
 *   - windows of bookings join, cost what they are, are credited what was missing and have the fee of what is given up; no
 *     window is below 0, and bookers have no more of what borrowers pay than the share of the book (money_book.c);
 *   - playing all bytes again gives the same ledger and the same bills, bit by bit.
 */
#ifndef ST_CHECK_MONEY_H
#define ST_CHECK_MONEY_H

#include "ledger/ledger.h"

typedef struct st_money_audit st_money_audit;

st_money_audit *st_money_audit_new(void);
void st_money_audit_free(st_money_audit *a);
ST_DEFINE_FREEP(st_money_audit, st_money_audit_free)

/* The ledger is in this period from here on. */
void st_money_audit_period(st_money_audit *a, const st_period *period);
/* The ledger has just taken this entry in. */
int st_money_audit_entry(st_money_audit *a, const st_entry *e, st_err *err);
/* Where the piece of a stay is in the account's book; 0: nowhere. */
int64_t st_money_audit_piece(const st_money_audit *a, const char *account, const char *job,
                             int stay, int piece);

/* Sums, holds and bills as they are now. */
int st_money_audit_check(const st_money_audit *a, const st_ledger *l, int64_t now, st_err *err);
/* After a cut: what was granted of a type, and all there was. `told` is what the meter says. */
int st_money_audit_fleet(const st_money_audit *a, const char *gpu, const st_record *told,
                         st_err *err);
/* Plays the books again. */
int st_money_audit_replay(const st_money_audit *a, const st_ledger *l, st_err *err);

#endif
