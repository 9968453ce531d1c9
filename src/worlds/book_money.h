/* Private to worlds: what bookings cost in the ledger of a random world. */
#ifndef ST_WORLDS_BOOK_MONEY_H
#define ST_WORLDS_BOOK_MONEY_H

#include "base/rng.h"
#include "core/core.h"
#include "ledger/ledger.h"

typedef struct st_fuzz_book_ctx {
    const st_core *core; /* NULL where it is not asked */
    const st_ledger *l;
    int64_t now;
    /* Prices it where it has a price, takes it in, and has it audited. */
    int (*post)(void *ctx, st_entry *e, st_err *err);
    /* Whether this booking was not looked at before; once. */
    bool (*fresh)(void *ctx, uint64_t id);
    void *ctx;
} st_fuzz_book_ctx;

/* A part of a price book: often one for bookings. Its rates are there. */
void st_fuzz_book_prices(st_rng *rng, st_price_book *b);
/* What a step did to bookings. */
int st_fuzz_book_follow(const st_fuzz_book_ctx *x, const st_effects *fx, st_err *err);
/* All that is booked is charged up to now. */
int st_fuzz_book_cut(const st_fuzz_book_ctx *x, st_err *err);
/* Right behind an entry of a job: some of it was on booked GPUs. */
int st_fuzz_book_lend(const st_fuzz_book_ctx *x, const st_entry *of, st_rng *rng, st_err *err);

#endif
