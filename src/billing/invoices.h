/*
 * Invoices: documents with a number that ask for money of a closed month, or give some back (a credit note).
 *
 * Whoever has billing details (a document of kind ST_BILL_TO, by book) is a payer: of its own account and all below it, as
 * far as none of these is a payer itself. What a payer owes is found out beside the loop, since a closed month does not change
 * (st_invoice_collect, then st_invoice_corrections); the command gives numbers and writes.
 *
 * Invariants:
 *  1 Numbers of a series are 1, 2, 3 … without a gap, and none is given twice: they are given in the transaction that writes the
 *    document, and a document is never changed or removed.
 *  2 A payer has at most one invoice for a month, with the credit notes of that month's corrections, all in one transaction.
 *  3 What a credit note gives back is not given back by the invoice as well; credit notes of an invoice are at most its lines.
 */
#ifndef ST_BILLING_INVOICES_H
#define ST_BILLING_INVOICES_H

#include <jansson.h>

#include "billing/money.h"

#define ST_ISSUER  "issuer"  /* kind and name of the issuer's details */
#define ST_BILL_TO "bill_to" /* kind of a payer's details; the name is its book */
#define ST_INVOICE "invoice" /* kind of what was issued; the name is its number */

/* Corrections of one earlier month that were posted in this one. */
typedef struct st_correction {
    char period[8];
    json_t *lines;
    int64_t amount;
} st_correction;

typedef struct st_draft_book {
    char *name;
    int64_t from, to;       /* entries of the month; to < from: none */
    ST_VEC(st_terms) terms; /* what was agreed for which time */
} st_draft_book;

typedef struct st_draft {
    char *account, *book; /* as it is called now; its book */
    st_period period;
    json_t *lines;
    int64_t amount;
    ST_VEC(st_draft_book) books;
    ST_VEC(st_correction) corrections; /* by period */
} st_draft;
typedef ST_VEC(st_draft) st_drafts;

/* What payers owe for a closed month: all of them, or the one whose account is named. ST_ESTATE: the month is open. */
int st_invoice_collect(st_tx *tx, const char *const *payers, size_t n, const char *account,
                       const char *period, st_drafts *ret, st_err *err);
/* Which of that corrects earlier months. In any thread, with a reader. */
int st_invoice_corrections(st_store *reader, st_draft *draft, st_err *err);
void st_drafts_done(st_drafts *drafts);

typedef struct st_cmd_invoices {
    st_cmd cmd;
    st_identity who;
    st_drafts drafts;
    json_t *documents; /* given: a list; `new` tells those that were issued now */
} st_cmd_invoices;

void st_cmd_invoices_init(st_cmd_invoices *cmd);

#endif
