/*
 * The audit of bookings in the books: a part of check/money.h.
 *
 * What was agreed is kept as the books say it. Of every window: it begins where the one before ended and ends with its moment
 * or the booking; it is charged all GPU time of that, credited what was missing, at the same price; the fee is that of the
 * agreed book; and what others paid is there once. No window is below nothing, and of all that was lent nobody has
 * more than was paid.
 */
#include "check/money_book.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define BAD(...) st_fail(err, ST_EINTERNAL, __VA_ARGS__)
#define KEY      (2 * ST_NAME_MAX + 2)

typedef struct kept {
    int64_t gpu_m, from_ms, to_ms, short_m, agreed_ms, done_ms;
    st_i128 lent, paid; /* by LENT entries, less what windows took over */
} kept;

struct st_book_audit {
    st_map *at;
    ST_VEC(kept) list;
    ST_VEC(st_price_book *) books; /* in the order they came */
    st_i128 paid, income;          /* by all borrowers for what was lent; of all bookers */
};

st_book_audit *st_book_audit_new(void)
{
    st_book_audit *a = st_xcalloc(1, sizeof *a);
    a->at = st_map_new();
    return a;
}

void st_book_audit_free(st_book_audit *a)
{
    if (!a)
        return;
    st_map_free(a->at);
    st_vec_free(&a->list);
    for (size_t i = 0; i < a->books.n; i++)
        free(a->books.v[i]);
    st_vec_free(&a->books);
    free(a);
}

static kept *find(const st_book_audit *a, const char *account, const char *booking)
{
    char key[KEY];
    int64_t at;
    snprintf(key, sizeof key, "%s %s", account, booking);
    return st_map_get(a->at, key, &at) ? &a->list.v[at] : NULL;
}

static const st_price_book *book_at(const st_book_audit *a, int64_t ms)
{
    const st_price_book *found = NULL;
    for (size_t i = 0; i < a->books.n; i++)
        if (a->books.v[i]->from_ms <= ms && (!found || a->books.v[i]->from_ms > found->from_ms))
            found = a->books.v[i];
    return found;
}

static int on_prices(st_book_audit *a, const st_entry *e, st_err *err)
{
    st_price_book *b = st_xcalloc(1, sizeof *b);
    st_vec_push(&a->books, b);
    return st_price_book_read("prices", e->doc, strlen(e->doc), e->at_ms, b, err);
}

static int on_booking(st_book_audit *a, const st_entry *e, st_err *err)
{
    kept *k = find(a, e->account, e->booking);
    if (k && k->from_ms < e->at_ms && k->done_ms != e->at_ms && k->done_ms < k->to_ms)
        return BAD("bookings: %s of %s is changed at %" PRId64 " and charged up to %" PRId64,
                   e->booking, e->account, e->at_ms, k->done_ms);
    if (!k) {
        char key[KEY];
        snprintf(key, sizeof key, "%s %s", e->account, e->booking);
        st_map_put(a->at, key, (int64_t)a->list.n);
        st_vec_push(&a->list, (kept){.done_ms = e->from_ms});
        k = &a->list.v[a->list.n - 1];
    }
    if (k->done_ms <= k->from_ms || k->from_ms == 0)
        k->done_ms = e->from_ms;
    k->gpu_m = e->gpu_m;
    k->from_ms = e->from_ms;
    k->to_ms = e->to_ms;
    k->short_m = e->short_m;
    k->agreed_ms = e->agreed_ms;
    return 0;
}

static int on_lent(st_book_audit *a, const st_entry *e, st_err *err)
{
    kept *k = find(a, e->child, e->booking);
    if (!k)
        return BAD("bookings: %s of %s has lent something and was not agreed", e->booking,
                   e->child);
    k->lent += e->share;
    k->paid += e->charged;
    a->paid += ST_MAX(e->charged, 0);
    return 0;
}

static int64_t line_of(const st_entry *e, st_component what, const st_line **ret)
{
    static const st_line none;
    *ret = &none;
    for (int i = 0; i < e->nlines; i++)
        if (e->lines[i].what == what)
            *ret = &e->lines[i];
    return (*ret)->amount;
}

static int64_t fee_of(const st_price_book *b, int64_t before_ms)
{
    for (int i = 0; b && i < b->booking.cancel.n; i++)
        if (ST_MAX(before_ms, 0) < b->booking.cancel.v[i].ms)
            return b->booking.cancel.v[i].bp;
    return 0;
}

/* Amounts against each other, at the rate and factor of the window's own line. */
static int check_amounts(st_book_audit *a, const st_entry *e, const kept *k, st_err *err)
{
    const st_price_book *b = book_at(a, k->agreed_ms - 1);
    const st_line *window, *fee, *other;
    int64_t charged = line_of(e, ST_PAY_WINDOW, &window), less = line_of(e, ST_PAY_SHORT, &other);
    int64_t income = -line_of(e, ST_PAY_LENT, &other), due = line_of(e, ST_PAY_CANCEL, &fee);
    st_i128 d = (st_i128)st_component_per(ST_PAY_WINDOW) * ST_BP;
    st_i128 price = (st_i128)window->rate * window->factor_bp;
    st_i128 share = b ? (st_i128)e->paid * b->booking.lent_bp / ST_BP : 0;
    if (window->quantity != e->share && e->share > 0 && b && b->booking.there)
        return BAD("bookings: a window of %s is charged for %" PRId64 " and was %" PRId64,
                   e->booking, window->quantity, e->share);
    if (-less != (int64_t)((st_i128)e->missing * price / d))
        return BAD("bookings: %" PRId64 " of %s was missing and is credited %" PRId64, e->missing,
                   e->booking, -less);
    if (income != (int64_t)ST_MIN(share, (st_i128)e->lent * price / d) || charged + less < income)
        return BAD("bookings: %s has %" PRId64 " of %" PRId64
                   " that others paid, and costs %" PRId64,
                   e->booking, income, e->paid, charged + less);
    bool costs = price * e->fee_bp > 2 * (st_i128)ST_BP * ST_BP;
    if (e->fee_bp != (e->removed > 0 ? fee_of(b, k->from_ms - e->at_ms) : 0) || due < 0 ||
        (due > 0 || costs ? fee->quantity != e->removed : false))
        return BAD("bookings: %s gives up %" PRId64 " for a fee of %" PRId64, e->booking,
                   e->removed, due);
    a->income += income;
    return 0;
}

static int on_window(st_book_audit *a, const st_entry *e, st_err *err)
{
    kept *k = find(a, e->account, e->booking);
    if (!k)
        return BAD("bookings: a window of %s, which was not agreed", e->booking);
    int64_t to = ST_MIN(e->at_ms, k->to_ms), from = k->done_ms;
    if (from >= to)
        from = to = e->at_ms;
    if (e->from_ms != from || e->to_ms != to || e->share != k->gpu_m * (to - from) ||
        e->missing != k->short_m * (to - from))
        return BAD("bookings: %s of %s is charged from %" PRId64 " to %" PRId64 ", and %" PRId64
                   " to %" PRId64 " is due",
                   e->booking, e->account, e->from_ms, e->to_ms, from, to);
    if (e->lent < 0 || e->paid < 0 || e->lent > e->share - e->missing ||
        e->lent > ST_MAX(k->lent, 0) || e->paid > ST_MAX(k->paid, 0))
        return BAD("bookings: %s takes over %" PRId64 " for %" PRId64 " that was not lent",
                   e->booking, e->lent, e->paid);
    k->lent -= e->lent;
    k->paid -= e->paid;
    k->done_ms = e->share > 0 ? to : k->done_ms;
    return check_amounts(a, e, k, err);
}

int st_book_audit_entry(st_book_audit *a, const st_entry *e, st_err *err)
{
    int r = 0;
    if (e->kind == ST_ENTRY_PRICES)
        r = on_prices(a, e, err);
    else if (e->kind == ST_ENTRY_BOOKING)
        r = on_booking(a, e, err);
    else if (e->kind == ST_ENTRY_LENT)
        r = on_lent(a, e, err);
    else if (e->kind == ST_ENTRY_WINDOW)
        r = on_window(a, e, err);
    if (r == 0 && a->income > a->paid)
        r = BAD("bookings: more was given to bookers than borrowers paid");
    return r;
}
