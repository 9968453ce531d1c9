/* Bookings that have a price: what was agreed, and what of their windows is posted.
 *
 * A BOOKING entry says what is booked from then on, and at which price: that of the price book in force when it was agreed,
 * with discounts for length and lead time, for all of its window. WINDOW entries charge the window, from its beginning
 * on without gap or overlap, whether anybody is inside or not. What a change takes away is given up: the WINDOW entry right
 * before it, of the same moment, has the fee. So nobody gets out of a fee by moving, shrinking or cancelling, or back
 * to a lower price by changing something. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ledger/state.h"

#define KEY (ST_NAME_MAX + 16)

static void key_of(char key[KEY], int account, const char *id)
{
    snprintf(key, KEY, "%d %s", account, id);
}

ledger_booking *st_ledger_find_booking(const st_ledger *l, int account, const char *id)
{
    char key[KEY];
    int64_t at;
    if (l->bookings.n == 0 || strlen(id) > ST_NAME_MAX)
        return NULL;
    key_of(key, account, id);
    return st_map_get(l->booking_ids, key, &at) ? &l->bookings.v[at] : NULL;
}

void st_ledger_add_booking(st_ledger *l, const ledger_booking *b)
{
    char key[KEY];
    key_of(key, b->account, b->id);
    st_map_put(l->booking_ids, key, (int64_t)l->bookings.n);
    st_vec_push(&l->bookings, *b);
    l->nshort += b->short_m > 0;
}

static void drop(st_ledger *l, ledger_booking *b)
{
    char key[KEY];
    int64_t at = b - l->bookings.v;
    l->nshort -= b->short_m > 0;
    key_of(key, b->account, b->id);
    st_map_del(l->booking_ids, key);
    free(b->id);
    ledger_booking last = st_vec_pop(&l->bookings);
    if ((size_t)at < l->bookings.n) {
        *b = last;
        key_of(key, last.account, last.id);
        st_map_put(l->booking_ids, key, at);
    }
}

size_t st_ledger_nbookings(const st_ledger *l)
{
    return l->bookings.n;
}

size_t st_ledger_nshort(const st_ledger *l)
{
    return l->nshort;
}

static st_agreed agreed_of(const st_ledger *l, const ledger_booking *b)
{
    return (st_agreed){.account = l->accounts.v[b->account]->name,
                       .booking = b->id,
                       .gpu = l->gpus.v[b->gpu],
                       .gpu_m = b->gpu_m,
                       .from_ms = b->from_ms,
                       .to_ms = b->to_ms,
                       .agreed_ms = b->agreed_ms,
                       .keep_bp = b->keep_bp,
                       .short_m = b->short_m,
                       .until_ms = b->until_ms,
                       .lent = b->lent,
                       .paid = b->paid};
}

void st_ledger_booking_at(const st_ledger *l, size_t i, st_agreed *ret)
{
    ST_ASSERT(i < l->bookings.n);
    *ret = agreed_of(l, &l->bookings.v[i]);
}

bool st_ledger_booking(const st_ledger *l, const char *account, const char *booking, st_agreed *ret)
{
    int id = st_ledger_id(l, account);
    const ledger_booking *b = id < 0 ? NULL : st_ledger_find_booking(l, id, booking);
    if (b)
        *ret = agreed_of(l, b);
    return b != NULL;
}

/* ---- prices ------------------------------------------------------------------------------------- */

/* The book whose prices are agreed at a moment: what begins in the same millisecond may be in its book before or behind. */
static const st_price_book *book_of(const st_ledger *l, int64_t agreed_ms)
{
    const st_price_book *b = st_ledger_book(l, agreed_ms - 1);
    return b ? b : &st_price_free;
}

static int64_t rate_of(const st_price_book *b, const char *gpu)
{
    const st_rates *r = st_price_rates(b, gpu);
    return r ? r->rate[ST_PAY_WINDOW] : 0;
}

static int64_t keep_of(const st_price_book *b, int64_t from_ms, int64_t to_ms, int64_t agreed_ms)
{
    const int64_t keep[] = {ST_BP - st_steps_reached(&b->booking.term, to_ms - from_ms),
                            ST_BP - st_steps_reached(&b->booking.lead, from_ms - agreed_ms)};
    return st_price_factor(keep, 2);
}

void st_ledger_window_price(const st_ledger *l, const char *account, const char *gpu, int64_t gpu_m,
                            int64_t from_ms, int64_t to_ms, int64_t at_ms, st_window_price *ret)
{
    const st_price_book *b = book_of(l, at_ms);
    int id = st_ledger_id(l, account);
    int64_t left = id < 0 ? ST_BP : st_ledger_keep_at(l, id, at_ms);
    *ret = (st_window_price){.priced = b->booking.there,
                             .rate = rate_of(b, gpu),
                             .term_bp = st_steps_reached(&b->booking.term, to_ms - from_ms),
                             .lead_bp = st_steps_reached(&b->booking.lead, from_ms - at_ms),
                             .plan_bp = ST_BP - left,
                             .keep_bp = keep_of(b, from_ms, to_ms, at_ms)};
    const int64_t factors[] = {ret->keep_bp, left};
    ret->amount = st_ledger_cost_up(ST_PAY_WINDOW, (st_i128)gpu_m * ST_MAX(to_ms - from_ms, 0),
                                    ret->rate, st_price_factor(factors, 2));
}

int64_t st_ledger_bookings_cost(const st_ledger *l, int above, int64_t from_ms, int64_t to_ms)
{
    st_i128 cost = 0;
    for (size_t i = 0; i < l->bookings.n; i++) {
        const ledger_booking *b = &l->bookings.v[i];
        int64_t from = ST_MAX(b->until_ms, from_ms), to = ST_MIN(b->to_ms, to_ms);
        if (from >= to || !st_ledger_within(l, b->account, above))
            continue;
        const int64_t factors[] = {b->keep_bp, st_ledger_keep_at(l, b->account, from)};
        cost += st_ledger_cost_up(ST_PAY_WINDOW, (st_i128)b->gpu_m * (to - from),
                                  rate_of(book_of(l, b->agreed_ms), l->gpus.v[b->gpu]),
                                  st_price_factor(factors, 2));
    }
    return cost > ST_AMOUNT_MAX ? ST_AMOUNT_MAX : (int64_t)cost;
}

/* ---- changes ------------------------------------------------------------------------------------ */

/* What of the booking, as it was, lies ahead and is not in what it becomes; and what that adds. More than can be
 * counted is INT64_MAX. */
static int64_t given_up(const st_agreed *was, int64_t gpu_m, int64_t from_ms, int64_t to_ms,
                        int64_t at_ms, bool *ret_adds)
{
    int64_t ahead = ST_MAX(was->from_ms, at_ms), from = ST_MAX(ahead, from_ms);
    int64_t both = ST_MAX(ST_MIN(was->to_ms, to_ms) - from, 0);
    st_i128 had = (st_i128)was->gpu_m * ST_MAX(was->to_ms - ahead, 0);
    st_i128 has = (st_i128)gpu_m * ST_MAX(to_ms - ST_MAX(from_ms, at_ms), 0);
    st_i128 stays = (st_i128)ST_MIN(was->gpu_m, gpu_m) * both;
    *ret_adds = has > stays;
    return had - stays > INT64_MAX ? INT64_MAX : (int64_t)(had - stays);
}

static int64_t fee_bp(const st_ledger *l, const st_agreed *was, int64_t at_ms)
{
    return st_steps_above(&book_of(l, was->agreed_ms)->booking.cancel,
                          ST_MAX(was->from_ms - at_ms, 0));
}

void st_ledger_agree(const st_ledger *l, st_entry *e)
{
    st_agreed was;
    bool adds;
    int64_t agreed_ms = e->at_ms;
    if (st_ledger_booking(l, e->account, e->booking, &was)) {
        given_up(&was, e->gpu_m, e->from_ms, e->to_ms, e->at_ms, &adds);
        agreed_ms = adds ? e->at_ms : was.agreed_ms;
        if (e->to_ms == e->from_ms) /* nothing is left of it */
            agreed_ms = ST_UNSET;
    } else {
        was = (st_agreed){.keep_bp = ST_UNSET};
    }
    if (agreed_ms != ST_UNSET) {
        const st_price_book *b = book_of(l, agreed_ms);
        e->agreed_ms = agreed_ms;
        e->keep_bp = keep_of(b, e->from_ms, e->to_ms, agreed_ms);
        if (was.keep_bp == ST_UNSET ||
            (st_i128)rate_of(b, e->gpu) * e->keep_bp >
                (st_i128)rate_of(book_of(l, was.agreed_ms), e->gpu) * was.keep_bp)
            return;
    }
    e->agreed_ms = was.agreed_ms;
    e->keep_bp = was.keep_bp;
}

bool st_ledger_window(const st_ledger *l, const st_agreed *was, const st_entry *next, int64_t at_ms,
                      st_entry *ret)
{
    bool adds;
    int64_t to = ST_MIN(at_ms, was->to_ms);
    st_entry e = {.kind = ST_ENTRY_WINDOW,
                  .at_ms = at_ms,
                  .account = was->account,
                  .booking = was->booking,
                  .gpu = was->gpu,
                  .from_ms = was->until_ms,
                  .to_ms = to,
                  .agreed_ms = was->agreed_ms,
                  .keep_bp = was->keep_bp};
    if (was->until_ms >= to)
        e.from_ms = e.to_ms = at_ms;
    if (__builtin_mul_overflow(was->gpu_m, e.to_ms - e.from_ms, &e.share))
        e.share = INT64_MAX;
    e.missing = was->short_m * (e.to_ms - e.from_ms); /* at most share */
    st_ledger_lent_in(was->lent, was->paid, &e);
    if (next)
        e.removed = given_up(was, next->gpu_m, next->from_ms, next->to_ms, at_ms, &adds);
    if (e.removed > 0)
        e.fee_bp = fee_bp(l, was, at_ms);
    *ret = e;
    return e.share > 0 || e.removed > 0;
}

/* The fee as it is posted when the booking is cancelled at that moment. */
static int64_t fee_of(const st_ledger *l, const st_agreed *a, int id, int64_t at_ms)
{
    const ledger_account *account = l->accounts.v[id];
    const st_entry none = {.gpu_m = a->gpu_m,
                           .from_ms = a->from_ms,
                           .to_ms = ST_MIN(a->to_ms, ST_MAX(a->from_ms, at_ms))};
    int64_t fee = 0;
    st_entry e;
    st_err err;
    if (!st_ledger_window(l, a, &none, at_ms, &e) ||
        st_price_entry(&e, book_of(l, a->agreed_ms),
                       st_ledger_terms_of(account, st_entry_moment(&e)), account->carry, &err) < 0)
        return 0;
    for (int i = 0; i < e.nlines; i++)
        if (e.lines[i].what == ST_PAY_CANCEL)
            fee += e.lines[i].amount;
    return fee;
}

void st_ledger_agreed_price(const st_ledger *l, const st_agreed *a, int64_t at_ms,
                            st_agreed_price *ret)
{
    int id = st_ledger_id(l, a->account);
    int64_t left = id < 0 ? ST_BP : st_ledger_keep_at(l, id, at_ms);
    const int64_t factors[] = {a->keep_bp, left};
    *ret = (st_agreed_price){.rate = rate_of(book_of(l, a->agreed_ms), a->gpu),
                             .keep_bp = a->keep_bp,
                             .plan_bp = ST_BP - left,
                             .fee = id < 0 ? 0 : fee_of(l, a, id, at_ms)};
    ret->amount =
        st_ledger_cost_up(ST_PAY_WINDOW, (st_i128)a->gpu_m * ST_MAX(a->to_ms - a->from_ms, 0),
                          ret->rate, st_price_factor(factors, 2));
}

/* ---- entries ------------------------------------------------------------------------------------ */

static int refuse(const st_entry *e, const char *what, st_err *err)
{
    return st_fail(err, ST_ECORRUPT, "entry %lld of %s: booking %s %s", (long long)e->seq,
                   e->account, e->booking, what);
}

int st_ledger_check_window(const st_ledger *l, const st_entry *e, int id, st_err *err)
{
    const ledger_booking *b = st_ledger_find_booking(l, id, e->booking);
    if (!b)
        return refuse(e, "was not agreed, or is over", err);
    st_agreed was = agreed_of(l, b);
    int64_t to = ST_MIN(e->at_ms, b->to_ms), share;
    bool none = b->until_ms >= to;
    if (strcmp(was.gpu, e->gpu) != 0 || e->agreed_ms != b->agreed_ms || e->keep_bp != b->keep_bp)
        return refuse(e, "has another price than was agreed", err);
    if (e->from_ms != (none ? e->at_ms : b->until_ms) || e->to_ms != (none ? e->at_ms : to))
        return refuse(e, "is posted with a gap or twice", err);
    if (__builtin_mul_overflow(b->gpu_m, e->to_ms - e->from_ms, &share) || share > ST_SUM_MAX)
        return refuse(e, "is more than can be counted", err);
    if (e->share != share || e->missing != b->short_m * (e->to_ms - e->from_ms))
        return refuse(e, "is posted with another size than was agreed", err);
    st_entry must = *e;
    st_ledger_lent_in(b->lent, b->paid, &must);
    if (e->lent != must.lent || e->paid != must.paid)
        return refuse(e, "has lent other time, or for other money", err);
    if (e->removed < 0 || (e->removed == 0 && share == 0) ||
        e->fee_bp != (e->removed > 0 ? fee_bp(l, &was, e->at_ms) : 0))
        return refuse(e, "has a fee that does not follow from what is given up", err);
    return 0;
}

void st_ledger_window_posted(st_ledger *l, const st_entry *e, int id)
{
    ledger_booking *b = st_ledger_find_booking(l, id, e->booking);
    b->until_ms = e->share > 0 ? e->to_ms : b->until_ms;
    b->removed = e->removed;
    b->removed_at = e->at_ms;
    b->lent -= e->lent;
    b->paid -= e->paid;
    if (b->until_ms >= b->to_ms)
        drop(l, b);
}

static int check_new(const st_ledger *l, const st_entry *e, st_err *err)
{
    int64_t share;
    if (!book_of(l, e->at_ms)->booking.there)
        return refuse(e, "has no price", err);
    if (e->from_ms < e->at_ms || e->to_ms <= e->from_ms || e->short_m > 0 || e->reason)
        return refuse(e, "begins in the past, ends before it begins, or lacks what it has not got",
                      err);
    if (__builtin_mul_overflow(e->gpu_m, e->to_ms - e->from_ms, &share) || share > ST_SUM_MAX)
        return refuse(e, "is more than can be counted", err);
    return 0;
}

/* What has begun keeps its beginning, and its end is not before what is posted, or now. */
static int check_change(const ledger_booking *b, const st_agreed *was, const st_entry *e,
                        st_err *err)
{
    bool adds;
    int64_t share, removed = given_up(was, e->gpu_m, e->from_ms, e->to_ms, e->at_ms, &adds);
    bool begun = b->from_ms < e->at_ms;
    int64_t paid = b->removed_at == e->at_ms ? b->removed : 0;
    if (strcmp(was->gpu, e->gpu) != 0)
        return refuse(e, "changes its GPU type", err);
    if (begun ? e->from_ms != b->from_ms || b->until_ms != e->at_ms || e->to_ms < e->at_ms
              : e->from_ms < e->at_ms)
        return refuse(e, "is changed in the past", err);
    if (removed != paid)
        return refuse(e, "gives up other time than was posted", err);
    if (__builtin_mul_overflow(e->gpu_m, e->to_ms - e->from_ms, &share) || share > ST_SUM_MAX)
        return refuse(e, "is more than can be counted", err);
    return 0;
}

int st_ledger_apply_booking(st_ledger *l, const st_entry *e, int id, st_err *err)
{
    ledger_booking *b = st_ledger_find_booking(l, id, e->booking);
    st_agreed was = b ? agreed_of(l, b) : (st_agreed){0};
    st_entry must = *e;
    int r = b ? check_change(b, &was, e, err) : check_new(l, e, err);
    if (r < 0)
        return r;
    st_ledger_agree(l, &must);
    if (must.agreed_ms != e->agreed_ms || must.keep_bp != e->keep_bp)
        return refuse(e, "has another price than that of its moment", err);
    if (!b) {
        const ledger_booking fresh = {.account = id,
                                      .gpu = st_ledger_add_gpu(l, e->gpu),
                                      .id = st_xstrdup(e->booking),
                                      .until_ms = e->from_ms};
        st_ledger_add_booking(l, &fresh);
        b = &l->bookings.v[l->bookings.n - 1];
    }
    if (b->until_ms == b->from_ms)
        b->until_ms = e->from_ms;
    b->gpu_m = e->gpu_m;
    b->from_ms = e->from_ms;
    b->to_ms = e->to_ms;
    b->agreed_ms = e->agreed_ms;
    b->keep_bp = e->keep_bp;
    l->nshort += (size_t)(e->short_m > 0) - (size_t)(b->short_m > 0);
    b->short_m = e->short_m;
    b->removed = 0;
    if (b->until_ms >= b->to_ms)
        drop(l, b);
    return 0;
}
