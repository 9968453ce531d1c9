/*
 * Sums of books that are kept from question to question: what the entries of one account's book in one month add up to, by
 * user, job and so on. A question reads only the entries that came since the last one.
 *
 * Invariants:
 *  1 A kept sum is what the entries [from, upto] of its book add up to. Entries never change, and everything added up
 *    is a sum of integers, so a question about an earlier moment takes the entries behind it off again.
 *  2 At most ST_USAGES_ROWS rows are kept in all, but for books that somebody is looking at: those that were asked for longest
 *    ago go first. A book with more rows is added up each time.
 *
 * Private to src/api.
 */
#ifndef ST_API_USAGES_H
#define ST_API_USAGES_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "ledger/ledger.h"
#include "store/store.h"

#define ST_USAGES_ROWS ((size_t)1 << 18)

typedef struct st_sums_row {
    const char *key;
    int64_t entries; /* that are in it; 0: it is not there */
    int64_t share, held, seen, busy, energy_mj, lost, amount;
    int64_t jobs; /* that began */
} st_sums_row;

/* Rows by key, in the order they came. */
typedef struct st_sums_by {
    st_map *at;
    ST_VEC(st_sums_row) rows;
    st_arena *texts;
} st_sums_by;

void st_sums_init(st_sums_by *u);
void st_sums_done(st_sums_by *u);
/* The row of a key; made if it is new. */
st_sums_row *st_sums_row_of(st_sums_by *u, const char *key);
void st_sums_row_add(st_sums_row *to, const st_sums_row *row);
/* By what something is added up: a word (account, user, job, name, label, cost-center, gpu, level, day), of `label` the one whose values
 * are meant, and of which entries: those of jobs that have the label NAME=VALUE. NULL: all. */
#define ST_SUMS_SEP '\x01' /* in no label */
void st_sums_key(const char *by, const char *label, const char *where, st_strbuf *out);
bool st_sums_is(const char *by, const char *word);
/* What an entry adds, times `sign`, 1 or -1. `by` is a word, or what st_sums_key has made. */
void st_sums_add(st_sums_by *u, const char *by, const st_entry *e, int sign);

typedef struct st_usages st_usages;
typedef struct st_usages_book st_usages_book;

st_usages *st_usages_new(size_t rows_max);
void st_usages_free(st_usages *k);

/* The entries [from, to] of a book that count in `period`. */
typedef struct st_usages_ask {
    const char *by, *period, *book;
    int64_t from, to;
} st_usages_ask;

/* Adds them up, and keeps nothing. */
int st_usages_fold(st_store *reader, const st_usages_ask *ask, st_sums_by *into, st_err *err);

/* Brings the sums of a book up to `to` and lends them; nobody else has them meanwhile. `ahead` is given, negative, what is in
 * them beyond `to`. */
int st_usages_lend(st_usages *k, st_store *reader, const st_usages_ask *ask, st_sums_by *ahead,
                   st_usages_book **ret, st_err *err);
const st_sums_by *st_usages_sums(const st_usages_book *b);
/* Others may have it again; its texts are good until st_usages_back. */
void st_usages_unlock(st_usages_book *b);
void st_usages_back(st_usages *k, st_usages_book *b);

#endif
