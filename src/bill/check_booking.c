/* Windows of bookings held against what was agreed (bill/check_booking.h). */
#include "bill/check_booking.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

typedef struct said {
    st_entry last; /* the agreement; its texts are not kept */
    char gpu[ST_NAME_MAX + 1];
    int64_t posted_ms;     /* up to here, as far as the file shows */
    int64_t gone, gone_at; /* given up by the window just before, and when */
} said;

struct st_billbookings {
    st_map *at; /* by booking, into `list` */
    ST_VEC(said) list;
};

static st_billbookings *new_list(void)
{
    st_billbookings *b = st_xcalloc(1, sizeof(*b));

    b->at = st_map_new();
    return b;
}

void st_billbookings_free(st_billbookings *b)
{
    if (!b)
        return;
    st_map_free(b->at);
    st_vec_free(&b->list);
    free(b);
}

static said *find(const st_billbookings *b, const char *name)
{
    int64_t at;

    return st_map_get(b->at, name, &at) ? &b->list.v[at] : NULL;
}

/* ---- prices -------------------------------------------------------------------------------------- */

static int64_t rate_in(const st_price_book *book, const char *gpu)
{
    int64_t others = 0;

    for (int i = 0; book && i < book->nrates; i++) {
        if (strcmp(book->rates[i].gpu, gpu) == 0)
            return book->rates[i].rate[ST_PAY_WINDOW];
        if (strcmp(book->rates[i].gpu, "*") == 0)
            others = book->rates[i].rate[ST_PAY_WINDOW];
    }
    return others;
}

static int64_t off(const st_steps *table, int64_t ms)
{
    int64_t bp = 0;

    for (int i = 0; i < table->n; i++)
        if (table->v[i].ms <= ms)
            bp = table->v[i].bp;
    return bp;
}

/* Both discounts, in hundredths of a percent, rounded half up. */
static int64_t left_in(const st_price_book *book, const st_entry *e, int64_t agreed_ms)
{
    int64_t a, b;

    if (!book)
        return ST_BP;
    a = ST_BP - off(&book->booking.term, e->to_ms - e->from_ms);
    b = ST_BP - off(&book->booking.lead, e->from_ms - agreed_ms);
    return (a * b + ST_BP / 2) / ST_BP;
}

static int64_t due_bp(const st_price_book *book, int64_t before_ms)
{
    for (int i = 0; book && i < book->booking.cancel.n; i++)
        if (ST_MAX(before_ms, 0) < book->booking.cancel.v[i].ms)
            return book->booking.cancel.v[i].bp;
    return 0;
}

/* ---- agreements ---------------------------------------------------------------------------------- */

/* GPU time of `e` that lies behind `at`, and what of it is in `other` too. */
static st_i128 ahead(const st_entry *e, int64_t at)
{
    int64_t ms = e->to_ms - ST_MAX(e->from_ms, at);

    return ms > 0 ? (st_i128)e->gpu_m * ms : 0;
}

static st_i128 shared(const st_entry *e, const st_entry *other, int64_t at)
{
    int64_t from = ST_MAX(ST_MAX(e->from_ms, other->from_ms), at);
    int64_t ms = ST_MIN(e->to_ms, other->to_ms) - from;

    return ms > 0 ? (st_i128)ST_MIN(e->gpu_m, other->gpu_m) * ms : 0;
}

static bool dearer(const st_entry *a, const st_entry *b, const char *gpu, st_book_at_fn *book,
                   const void *ctx)
{
    return (st_i128)rate_in(book(ctx, a->agreed_ms - 1), gpu) * a->keep_bp >
           (st_i128)rate_in(book(ctx, b->agreed_ms - 1), gpu) * b->keep_bp;
}

static int check_price(const said *was, const st_entry *e, st_book_at_fn *book, const void *ctx,
                       st_err *err)
{
    st_entry must = {.agreed_ms = e->at_ms};

    if (was && ahead(e, e->at_ms) <= shared(&was->last, e, e->at_ms))
        must.agreed_ms = was->last.agreed_ms;
    must.keep_bp = left_in(book(ctx, must.agreed_ms - 1), e, must.agreed_ms);
    if (was && (e->from_ms == e->to_ms || !dearer(&must, &was->last, e->gpu, book, ctx))) {
        must.agreed_ms = was->last.agreed_ms;
        must.keep_bp = was->last.keep_bp;
    }
    if (e->agreed_ms == must.agreed_ms && e->keep_bp == must.keep_bp)
        return 0;
    return st_fail(err, ST_ECORRUPT,
                   "booking %s has the price of %lld with a factor of %lld, but that of %lld with "
                   "%lld is its own",
                   e->booking, (long long)e->agreed_ms, (long long)e->keep_bp,
                   (long long)must.agreed_ms, (long long)must.keep_bp);
}

static int check_change(const said *was, const st_entry *e, int64_t month_ms, st_err *err)
{
    st_i128 gone = ahead(&was->last, e->at_ms) - shared(&was->last, e, e->at_ms);
    bool begun = was->last.from_ms < e->at_ms;

    if (begun && ST_MAX(was->posted_ms, month_ms) != e->at_ms)
        return st_fail(err, ST_ECORRUPT, "booking %s is changed before its time is charged",
                       e->booking);

    if (strcmp(was->gpu, e->gpu) != 0 ||
        (begun ? e->from_ms != was->last.from_ms || e->to_ms < e->at_ms : e->from_ms < e->at_ms))
        return st_fail(err, ST_ECORRUPT, "booking %s is changed in what is past", e->booking);
    if (gone != (was->gone_at == e->at_ms ? was->gone : 0))
        return st_fail(err, ST_ECORRUPT, "booking %s gives up time that no window before it has",
                       e->booking);
    return 0;
}

static int check_agreed(st_billbookings *b, const st_entry *e, int64_t month_ms,
                        st_book_at_fn *book, const void *ctx, st_err *err)
{
    said *was = find(b, e->booking);
    int r = 0;

    if (was && was->posted_ms >= was->last.to_ms)
        was = NULL; /* it was over: nothing more can be agreed, but another may be */
    if (e->gpu_m < 1 || e->gpu_m > ST_QTY_MAX || e->to_ms < e->from_ms || e->from_ms < 0 ||
        e->short_m < 0 || e->short_m > e->gpu_m || strlen(e->gpu) > ST_NAME_MAX)
        return st_fail(err, ST_ECORRUPT, "booking %s cannot be", e->booking);
    if (was && month_ms != ST_UNSET)
        r = check_change(was, e, month_ms, err);
    else if (!was && (e->from_ms < e->at_ms || e->to_ms == e->from_ms || e->short_m > 0))
        r = st_fail(err, ST_ECORRUPT, "booking %s begins in the past, or is none", e->booking);
    if (r == 0)
        r = check_price(was, e, book, ctx, err);
    if (r < 0)
        return r;
    was = find(b, e->booking);
    if (!was) {
        st_map_put(b->at, e->booking, (int64_t)b->list.n);
        st_vec_push(&b->list, (said){0});
        was = &b->list.v[b->list.n - 1];
        was->posted_ms = e->from_ms;
    }
    if (was->posted_ms <= was->last.from_ms || was->posted_ms >= was->last.to_ms)
        was->posted_ms = e->from_ms;
    was->last = *e;
    was->gone = 0;
    memcpy(was->gpu, e->gpu, strlen(e->gpu) + 1);
    return 0;
}

/* ---- windows ------------------------------------------------------------------------------------- */

static int check_window(st_billbookings *b, const st_entry *e, int64_t month_ms,
                        st_book_at_fn *book, const void *ctx, st_err *err)
{
    said *was = find(b, e->booking);
    int64_t from, to, share;

    if (!was)
        return st_fail(err, ST_ECORRUPT, "booking %s was not agreed", e->booking);
    if (strcmp(was->gpu, e->gpu) != 0 || e->agreed_ms != was->last.agreed_ms ||
        e->keep_bp != was->last.keep_bp)
        return st_fail(err, ST_ECORRUPT, "booking %s has another price than was agreed",
                       e->booking);
    from = ST_MAX(was->posted_ms, was->last.from_ms < month_ms ? month_ms : was->posted_ms);
    to = ST_MIN(e->at_ms, was->last.to_ms);
    if (from >= to)
        from = to = e->at_ms;
    if (e->from_ms != from || e->to_ms != to)
        return st_fail(err, ST_ECORRUPT,
                       "booking %s is charged from %lld to %lld, but from %lld to %lld is due",
                       e->booking, (long long)e->from_ms, (long long)e->to_ms, (long long)from,
                       (long long)to);
    if (__builtin_mul_overflow(was->last.gpu_m, to - from, &share) || e->share != share ||
        e->missing != was->last.short_m * (to - from))
        return st_fail(err, ST_ECORRUPT, "booking %s is charged for other GPU time than was agreed",
                       e->booking);
    if (e->lent < 0 || e->paid < 0 || e->lent > share - e->missing || !e->lent != !e->paid)
        return st_fail(err, ST_ECORRUPT, "booking %s has lent GPU time that it did not have",
                       e->booking);
    if (e->removed < 0 || (e->removed == 0 && share == 0) ||
        e->fee_bp != (e->removed > 0
                          ? due_bp(book(ctx, e->agreed_ms - 1), was->last.from_ms - e->at_ms)
                          : 0))
        return st_fail(err, ST_ECORRUPT, "booking %s has a fee that its price book does not give",
                       e->booking);
    was->posted_ms = share > 0 ? to : was->posted_ms;
    was->gone = e->removed;
    was->gone_at = e->at_ms;
    return 0;
}

int st_billbookings_check(st_billbookings **b, const st_entry *e, int64_t month_ms,
                          st_book_at_fn *book, const void *ctx, st_err *err)
{
    if (e->kind != ST_ENTRY_BOOKING && e->kind != ST_ENTRY_WINDOW)
        return 0;
    if (!*b)
        *b = new_list();
    if (e->kind == ST_ENTRY_BOOKING)
        return check_agreed(*b, e, month_ms, book, ctx, err);
    return check_window(*b, e, month_ms, book, ctx, err);
}
