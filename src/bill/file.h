/* A bill as a file that proves itself: lines of JSON, each ending in a checksum that covers it and the
 * line before it, so that whatever is altered, moved or missing is found and named. doc/reference/bill-format.md describes every
 * field.
 *
 *   head        account, period, currency, total, how many lines and uses follow
 *   checkpoint
 *   book ...    a head, the path to the checkpoint's root, which entries [from, to) follow, and the hashes that lead
 *               from them to the root of the book. Books in order of account; one may be there several times, with
 *               ranges in order
 *   entry ...   after their book: its bytes
 *   line ...    the lines of the bill, use ... the utilisation
 *   end         how many books and entries there were, the hash of all bytes before, and a signature over that
 *
 * Which entries must be there: all of the cluster's book (prices, closes); of each account of the bill the whole
 * period without a gap, from the close before it (or the beginning) to its own close (or the end of the book), and besides
 * that its account entry, terms, plans and children; of accounts above or beside, nothing: not even their names.
 *
 * Checked: each line's checksum, the signatures, that every entry is in its book as of the checkpoint and none between the
 * first and the last is missing, that its postings follow from usage, prices and terms with carries that join, that lines
 * and totals are the sums of postings. A closed bill goes from close to close, so nothing can be left out of it. */
#ifndef ST_BILL_FILE_H
#define ST_BILL_FILE_H

#include "ledger/ledger.h"
#include "proof/proof.h"

/* Writing. Books in order of account, entries of each right after it; `bytes` are those of the book. */
typedef struct st_billfile st_billfile;

typedef struct st_billfile_made {
    const st_bill *bill;
    const char *currency, *zone;
    const st_checkpoint *checkpoint;
} st_billfile_made;

typedef struct st_billfile_book {
    const st_head *head;
    int64_t index; /* of its leaf in the checkpoint's tree */
    const st_hashes *path;
    int64_t from, to; /* entries that follow: seq from + 1 .. to */
    const st_hashes *proof;
} st_billfile_book;

st_billfile *st_billfile_new(const st_billfile_made *made, st_strbuf *out);
void st_billfile_add_book(st_billfile *f, const st_billfile_book *book, st_strbuf *out);
void st_billfile_add_entry(st_billfile *f, const char *bytes, size_t len, st_strbuf *out);
/* Writes lines, uses and the end, and frees it. */
void st_billfile_end(st_billfile *f, const unsigned char key[64], st_strbuf *out);

/* Which entries of a book belong into a bill, as ranges in order. */
typedef struct st_bill_range {
    int64_t from, to; /* seq from + 1 .. to */
} st_bill_range;
typedef ST_VEC(st_bill_range) st_bill_ranges;

/* Where the ACCOUNT, CHILD, TERMS, PLAN and CLOSE entries of a book are (st_bill_marks says which); others need not
 * be given. */
bool st_bill_marks(st_entry_kind kind);
typedef struct st_bill_mark {
    int64_t seq;
    st_entry_kind kind;
    int64_t to_ms; /* CLOSE */
} st_bill_mark;

/* `account` is the bill's, one below it, or the cluster's (""). */
void st_billfile_ranges(const st_bill *bill, const char *account, int64_t size,
                        const st_bill_mark *marks, size_t n, st_bill_ranges *ret);

/* What a verifier found. */
typedef struct st_verdict {
    bool good;
    char what[800]; /* in words: what is proved, or what is wrong and where */
    int64_t line;   /* of the file, 0: none */
    int64_t seq;    /* of the entry, 0: none */
    char account[ST_NAME_MAX + 1], period[8];
    int64_t entries, total, owed;
    unsigned char key[32]; /* who signed it */
} st_verdict;

/* The whole file. `key` is whose signature is trusted; NULL: whoever signed it, and the verdict says so. A bad
 * file is a verdict, not an error. */
void st_billfile_verify(const char *data, size_t len, const unsigned char key[32], st_verdict *ret);

/* Two files, the older one kept from before: both are verified, and what the older one saw of each book must be how the newer one's
 * begins. Good: it is, in all books that both have, the account's own among them. */
void st_billfile_against(const char *data, size_t len, const char *old, size_t old_len,
                         const unsigned char key[32], st_verdict *ret);

#endif
