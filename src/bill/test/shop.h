/* For tests: a shop with its books. Everything that is posted is kept as bytes, as a store would, so that bill files
 * and exports can be made of it. One seed makes one shop. */
#ifndef ST_BILL_TEST_SHOP_H
#define ST_BILL_TEST_SHOP_H

#include "base/rng.h"
#include "bill/bill.h"
#include "bill/file.h"
#include "ledger/ledger.h"
#include "proof/proof.h"

typedef struct shop_book {
    const char *account, *parent;
    ST_VEC(const char *) entries;
    st_hashes leaves;
} shop_book;

typedef struct shop {
    st_ledger *ledger;
    st_arena *texts;
    ST_VEC(shop_book *) books;
    st_rng rng, book_rng;
    int64_t at_ms;
    int jobs, bookings;
    unsigned char secret[32], key[64], public[32];
} shop;

/* Accounts, prices, plans; October 2026 is open. */
void shop_init(shop *s, uint64_t seed);
void shop_done(shop *s);
/* Random usage of everybody for so many days. */
void shop_days(shop *s, int days);
/* Closes the month and opens the next. */
void shop_close(shop *s);
/* A price book from the next moment on, a plan, a credit, a correction of an earlier entry. */
void shop_prices(shop *s, const char *text);
void shop_plan(shop *s, const char *text);
void shop_credit(shop *s, const char *account, int64_t udollars, const char *reason);
void shop_fix(shop *s, const char *account, int64_t seq);

/* The bill file; period NULL is the open one. */
void shop_bill(shop *s, const char *account, const char *period, st_strbuf *out);
/* The entries that are in it, one after another. */
typedef void shop_fn(void *ctx, const st_entry *e);
void shop_entries(shop *s, const char *account, const char *period, shop_fn *fn, void *ctx);
void shop_focus(shop *s, const char *account, const char *period, st_strbuf *out);
shop_book *shop_find(const shop *s, const char *account);
/* Of an account and all below it. */
bool shop_within(const shop *s, const char *account, const char *above);
st_export_about shop_about(const shop *s);

#endif
