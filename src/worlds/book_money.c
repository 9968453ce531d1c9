/*
 * What bookings cost in random worlds: agreements when they are confirmed, changes, fees, what is not delivered, windows at every cut,
 * and what others pay for GPUs that are lent. The same rules as src/billing has for a control loop, told to the ledger
 * of a world. Who borrows what is drawn and not looked up: the ledger knows no devices.
 */
#include "worlds/book_money.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"

#define MINUTE INT64_C(60000)
#define NAME   24

void st_fuzz_book_prices(st_rng *rng, st_price_book *b)
{
    static const int64_t lengths[] = {MINUTE, 5 * MINUTE, 20 * MINUTE, 60 * MINUTE};
    st_steps *tables[] = {&b->booking.term, &b->booking.lead, &b->booking.cancel};
    if (!st_rng_chance(rng, 3, 4))
        return;
    b->booking.there = true;
    for (size_t k = 0; k < ST_ARRAY_LEN(tables); k++)
        for (size_t i = 0; i < ST_ARRAY_LEN(lengths); i++)
            if (st_rng_chance(rng, 1, 2))
                tables[k]->v[tables[k]->n++] =
                    (st_price_step){lengths[i], st_rng_range(rng, 0, ST_BP)};
    for (int i = 0; i < b->nrates; i++)
        b->rates[i].rate[ST_PAY_WINDOW] = st_rng_range(rng, 0, 5000000);
    if (st_rng_chance(rng, 2, 3))
        b->booking.lent_bp = st_rng_range(rng, 1, ST_BP);
}

/* ---- agreements ------------------------------------------------------------------------------- */

static int64_t gpu_m_of(const st_booking *b)
{
    return (int64_t)b->tasks * b->gpus * ST_WHOLE_M;
}

/* Without a place, as far as a world says. */
static int64_t short_of(const st_booking *b)
{
    int64_t short_m = 0;
    if (b->state != ST_BOOKING_ACTIVE || b->over)
        return 0;
    for (int t = 0; t < b->tasks; t++)
        short_m += b->plan[t].node < 0 ? (int64_t)b->gpus * ST_WHOLE_M : 0;
    return short_m;
}

static int agree(const st_fuzz_book_ctx *x, const st_booking *b, const char *name, st_err *err)
{
    const st_core *core = x->core;
    st_window_price price;
    st_entry e = {.kind = ST_ENTRY_BOOKING,
                  .at_ms = x->now,
                  .account = st_core_tree(core)->accounts.v[b->account]->name,
                  .booking = name,
                  .gpu = st_core_fleet(core)->types.v[b->type].name,
                  .gpu_m = gpu_m_of(b),
                  .from_ms = ST_MAX(b->from_ms, x->now),
                  .to_ms = b->to_ms};
    st_ledger_window_price(x->l, e.account, e.gpu, e.gpu_m, e.from_ms, e.to_ms, x->now, &price);
    if (!price.priced || e.to_ms <= e.from_ms)
        return 0;
    st_ledger_agree(x->l, &e);
    return x->post(x->ctx, &e, err);
}

/* Charges it up to now, with what `next` gives up, and writes that; an empty `next` agrees nothing. */
static int settle(const st_fuzz_book_ctx *x, const st_agreed *was, st_entry *next, st_err *err)
{
    st_agreed left;
    st_entry window;
    int r = 0;
    if (st_ledger_window(x->l, was, next->gpu_m > 0 ? next : NULL, x->now, &window)) {
        window.account = next->account;
        window.booking = next->booking;
        window.gpu = next->gpu;
        r = x->post(x->ctx, &window, err);
    }
    if (r < 0 || next->gpu_m == 0 || !st_ledger_booking(x->l, next->account, next->booking, &left))
        return r;
    st_ledger_agree(x->l, next);
    return x->post(x->ctx, next, err);
}

static int follow(const st_fuzz_book_ctx *x, uint64_t id, int32_t account, st_booking_state state,
                  st_err *err)
{
    const st_booking *b = st_core_booking(x->core, id);
    const char *book = st_core_tree(x->core)->accounts.v[account]->name;
    char name[NAME], gpu[ST_NAME_MAX + 1];
    st_agreed was;
    snprintf(name, sizeof name, "%" PRIu64, id);
    if (!st_ledger_booking(x->l, book, name, &was))
        return b && !b->over && b->job == 0 && b->state != ST_BOOKING_QUOTED && x->fresh(x->ctx, id)
                   ? agree(x, b, name, err)
                   : 0;
    snprintf(gpu, sizeof gpu, "%s", was.gpu);
    st_entry next = {.kind = ST_ENTRY_BOOKING,
                     .at_ms = x->now,
                     .account = book,
                     .booking = name,
                     .gpu = gpu,
                     .gpu_m = was.gpu_m,
                     .from_ms = was.from_ms,
                     .to_ms = was.to_ms,
                     .short_m = was.short_m};
    if (b && !b->over) {
        if (was.from_ms >= x->now || b->from_ms > was.from_ms)
            next.from_ms = ST_MAX(b->from_ms, x->now);
        next.to_ms = b->to_ms;
        next.gpu_m = gpu_m_of(b);
        next.short_m = short_of(b);
    } else if (state == ST_BOOKING_CANCELLED || state == ST_BOOKING_NO_SHOW) {
        next.to_ms = ST_MIN(was.to_ms, ST_MAX(was.from_ms, x->now));
    }
    if (next.from_ms == was.from_ms && next.to_ms == was.to_ms && next.gpu_m == was.gpu_m &&
        next.short_m == was.short_m) {
        if (was.to_ms > x->now)
            return 0;
        next.gpu_m = 0;
    }
    return settle(x, &was, &next, err);
}

int st_fuzz_book_follow(const st_fuzz_book_ctx *x, const st_effects *fx, st_err *err)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < fx->list.n; i++) {
        const st_effect *e = &fx->list.v[i];
        if (e->kind == ST_FX_BOOKING && e->account > ST_ROOT)
            r = follow(x, e->other, e->account,
                       (st_booking_state)(e->booking_state % ST_BOOKING_DEGRADED), err);
    }
    return r;
}

int st_fuzz_book_cut(const st_fuzz_book_ctx *x, st_err *err)
{
    int r = 0;
    for (size_t i = st_ledger_nbookings(x->l); r == 0 && i-- > 0;) {
        char name[NAME], account[ST_NAME_MAX + 1];
        st_agreed was;
        st_entry e;
        st_ledger_booking_at(x->l, i, &was);
        if (!st_ledger_window(x->l, &was, NULL, x->now, &e))
            continue;
        snprintf(name, sizeof name, "%s", was.booking);
        snprintf(account, sizeof account, "%s", was.account);
        e.booking = name;
        e.account = account;
        r = x->post(x->ctx, &e, err);
    }
    return r;
}

/* ---- lent ------------------------------------------------------------------------------------ */

static bool is_below(const st_ledger *l, const char *account, const char *above)
{
    for (; account && *account; account = st_ledger_parent(l, account))
        if (strcmp(account, above) == 0)
            return true;
    return false;
}

int st_fuzz_book_lend(const st_fuzz_book_ctx *x, const st_entry *of, st_rng *rng, st_err *err)
{
    bool borrows = of->basis == ST_BASIS_BURST || of->basis == ST_BASIS_ON_DEMAND;
    char name[NAME], account[ST_NAME_MAX + 1];
    size_t n = st_ledger_nbookings(x->l);
    st_agreed was;
    if (n == 0 || !borrows || !of->gpu || !st_rng_chance(rng, 1, 2))
        return 0;
    st_ledger_booking_at(x->l, st_rng_below(rng, n), &was);
    if (is_below(x->l, of->account, was.account) || strcmp(was.gpu, of->gpu) != 0)
        return 0;
    snprintf(name, sizeof name, "%s", was.booking);
    snprintf(account, sizeof account, "%s", was.account);
    int64_t paid = st_entry_paid(of);
    st_entry e = {.kind = ST_ENTRY_LENT,
                  .account = ST_BOOK_FLEET,
                  .child = account,
                  .booking = name,
                  .job = of->job,
                  .stay = of->stay,
                  .piece = of->piece,
                  .from_ms = of->from_ms,
                  .to_ms = of->to_ms};
    if (of->kind == ST_ENTRY_USAGE) {
        e.share = st_rng_range(rng, 0, of->share);
        e.charged = st_ledger_may_share(x->l, of, account) ? st_rng_range(rng, 0, paid) : 0;
    } else {
        e.share = ST_MIN(of->share, 0);
        e.charged = ST_MIN(paid, 0);
    }
    return x->post(x->ctx, &e, err);
}
