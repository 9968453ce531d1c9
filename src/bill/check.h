/* Whether the entries of a bill file lead to its lines and its total, for the verifier (bill/file.h).
 *
 * The entries are seen twice: first st_billcheck_learn takes in accounts, prices, terms and plans, wherever in the file they
 * are, then st_billcheck_entry reckons every posting again. That is written from the rules in doc/reference/bill-format.md, apart from the
 * ledger's own pricing, so that a mistake in either shows as a difference. Messages do not say where: the verifier knows. */
#ifndef ST_BILL_CHECK_H
#define ST_BILL_CHECK_H

#include "ledger/ledger.h"

typedef struct st_billcheck st_billcheck;

/* What the head of the file says. */
typedef struct st_billhead {
    char account[ST_NAME_MAX + 1];
    st_period period;
    char zone[64], currency[16];
    bool closed, chargeback;
    int64_t total, lines, uses;
} st_billhead;

/* A range of a book: entries seq from + 1 .. to of `size`. */
typedef struct st_billrange {
    const char *account;
    int64_t from, to, size;
} st_billrange;

st_billcheck *st_billcheck_new(const st_billhead *head);
void st_billcheck_free(st_billcheck *c);
ST_DEFINE_FREEP(st_billcheck, st_billcheck_free)

/* First round: each range, and each entry of it. */
int st_billcheck_learn_range(st_billcheck *c, const st_billrange *range, st_err *err);
int st_billcheck_learn(st_billcheck *c, const st_entry *e, st_err *err);
int st_billcheck_learned(st_billcheck *c, st_err *err);

/* Second round: the same again, in the same order. */
int st_billcheck_range(st_billcheck *c, const st_billrange *range, st_err *err);
int st_billcheck_entry(st_billcheck *c, const st_entry *e, st_err *err);
int st_billcheck_range_end(st_billcheck *c, st_err *err);

/* Then lines and uses in their order, and the end. */
int st_billcheck_line(st_billcheck *c, const st_bill_line *line, st_err *err);
int st_billcheck_use(st_billcheck *c, const st_bill_use *use, st_err *err);
int st_billcheck_end(st_billcheck *c, st_err *err);

/* The last restore of the books that may have made another bill for the period void: between which moments that was made. */
bool st_billcheck_voids(const st_billcheck *c, int64_t *ret_from_ms, int64_t *ret_to_ms);

/* Accounts whose entries are counted. */
int64_t st_billcheck_accounts(const st_billcheck *c);
/* Of the total, what is to be paid: by the terms of each entry's own time. */
int64_t st_billcheck_owed(const st_billcheck *c);

#endif
