/* For the tests of this folder: a ledger under way, entries made with few words. */
#ifndef ST_LEDGER_TEST_BOOKS_H
#define ST_LEDGER_TEST_BOOKS_H

#include "ledger/ledger.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)

/* Moments, UTC. */
#define OCT_1   INT64_C(1790812800000) /* 2026-10-01T00:00:00Z */
#define NOV_1   INT64_C(1793491200000) /* 2026-11-01T00:00:00Z */
#define DEC_1   INT64_C(1796083200000) /* 2026-12-01T00:00:00Z */
#define DOLLARS INT64_C(1000000)

/* A ledger with October 2026 (UTC) open. */
st_ledger *books_new(void);
/* Its entries in both books, and its terms; since OCT_1, or a moment. */
void books_account(st_ledger *l, const char *name, const char *parent);
void books_new_account(st_ledger *l, int64_t at_ms, const char *name, const char *parent);
/* Documents as people write them, good from at_ms unless they say otherwise. */
void books_prices(st_ledger *l, int64_t at_ms, const char *text);
void books_plan(st_ledger *l, int64_t at_ms, const char *text);
void books_put_plan(st_ledger *l, int64_t at_ms, const st_price_plan *plan);

/* Prices it, writes it, reads it, and applies what was read. Fails the test if anything does. */
void books_post(st_ledger *l, st_entry *e);
/* The work of a usage entry from a moment on is lost, by its own `cut`; at another moment than it ended, with _at (then
 * it is preempted). `sum`, which may be NULL, is what the books say about the entry afterwards. */
void books_lose(st_ledger *l, const st_entry *usage, st_piece_sum *sum, int64_t from_ms,
                int64_t lost);
void books_lose_at(st_ledger *l, const st_entry *usage, st_piece_sum *sum, int64_t from_ms,
                   int64_t lost, int64_t at_ms);
/* The same, unpriced. */
void books_put(st_ledger *l, st_entry *e);
/* Closes all books and opens the next period. */
void books_close(st_ledger *l, const st_period *next);

/* An hour, or so many, of a whole gang from the given moment on: share and held are gpu_m x the time. */
st_entry books_usage(const char *account, const char *job, const char *gpu, int64_t gpu_m,
                     st_basis basis, int64_t from_ms, int64_t to_ms);
st_entry books_reserve(const char *account, const char *gpu, int64_t gpu_m, int64_t from_ms,
                       int64_t to_ms);

/* What the bill says; 0 where it has no such line. */
int64_t books_total(const st_ledger *l, const char *account, const char *period);
int64_t books_amount(const st_ledger *l, const char *account, const char *period,
                     st_component what);
int64_t books_quantity(const st_ledger *l, const char *account, const char *period,
                       st_component what);

#endif
