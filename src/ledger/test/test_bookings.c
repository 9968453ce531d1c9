/* Bookings that have a price: windows, discounts, changes, fees, what is not delivered, caps. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/price.h"
#include "ledger/test/books.h"

#define GPU_HOUR INT64_C(3600000000)
#define M        INT64_C(1000)

#define PRICES                                                           \
    "prices: p1\n"                                                       \
    "gpu: {h100: {reserved: 1, burst: 3, on_demand: 4, booking: 2}, "    \
    "\"*\": {reserved: 1, guaranteed: 0.5, burst: 3, on_demand: 4}}\n"   \
    "booking: {price: 75%, term: {24h: 10%, 7d: 20%}, lead: {2d: 10%}, " \
    "cancel: {1h: 100%, 24h: 50%, 72h: 25%}}\n"

static st_ledger *begin(void)
{
    st_ledger *l = books_new();
    books_prices(l, OCT_1, PRICES);
    books_account(l, "ml", "");
    return l;
}

static st_entry booking(const char *id, int64_t gpus, int64_t at, int64_t from, int64_t to)
{
    return (st_entry){.kind = ST_ENTRY_BOOKING,
                      .at_ms = at,
                      .account = "ml",
                      .booking = id,
                      .gpu = "h100",
                      .gpu_m = gpus * M,
                      .from_ms = from,
                      .to_ms = to};
}

static void agree(st_ledger *l, st_entry e)
{
    st_ledger_agree(l, &e);
    books_put(l, &e);
}

/* The window up to now, with what `next` gives up; whether there was anything. */
static bool window(st_ledger *l, const char *id, int64_t at, const st_entry *next)
{
    st_agreed was;
    st_entry e;
    assert_true(st_ledger_booking(l, "ml", id, &was));
    if (!st_ledger_window(l, &was, next, at, &e))
        return false;
    books_post(l, &e);
    return true;
}

static void change(st_ledger *l, st_entry next)
{
    window(l, next.booking, next.at_ms, &next);
    agree(l, next);
}

static int64_t amount(const st_ledger *l, st_component what)
{
    return books_amount(l, "ml", NULL, what);
}

/* ---- windows ------------------------------------------------------------------------------------- */

static void a_window_is_charged_whole_at_its_price(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    st_agreed a;
    int64_t from = OCT_1 + 10 * HOUR;

    agree(l, booking("b1", 4, OCT_1 + HOUR, from, from + 6 * HOUR));
    assert_true(window(l, "b1", from + 2 * HOUR, NULL));
    assert_false(window(l, "b1", from + 2 * HOUR, NULL));
    assert_true(window(l, "b1", from + 9 * HOUR, NULL));
    assert_false(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_WINDOW), 24 * GPU_HOUR);
    assert_int_equal(amount(l, ST_PAY_WINDOW), 48 * DOLLARS);
    assert_true(st_ledger_sum(l) == 0);
}

static void discounts_are_of_length_and_lead(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    st_window_price p;
    int64_t at = OCT_1 + HOUR;

    st_ledger_window_price(l, "ml", "h100", M, at + HOUR, at + 2 * HOUR, at, &p);
    assert_true(p.priced && p.keep_bp == ST_BP && p.amount == 2 * DOLLARS);
    st_ledger_window_price(l, "ml", "h100", M, at + 2 * DAY, at + 3 * DAY, at, &p);
    assert_true(p.term_bp == 1000 && p.lead_bp == 1000 && p.keep_bp == 8100);
    assert_int_equal(p.amount, 24 * 2 * DOLLARS * 81 / 100);
    /* a type without a price of its own: 75% of on demand */
    st_ledger_window_price(l, "ml", "a100", M, at, at + HOUR, at, &p);
    assert_int_equal(p.amount, 3 * DOLLARS);

    agree(l, booking("b1", 1, at, at + 2 * DAY, at + 3 * DAY));
    window(l, "b1", at + 3 * DAY, NULL);
    assert_int_equal(amount(l, ST_PAY_WINDOW), 24 * 2 * DOLLARS * 81 / 100);
}

static void the_price_is_that_of_the_agreement(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR;

    agree(l, booking("b1", 1, OCT_1 + HOUR, from, from + 4 * HOUR));
    window(l, "b1", from + HOUR, NULL); /* all intervals end where prices change */
    books_prices(l, from + HOUR, "prices: p2\ngpu: {\"*\": {reserved: 1, burst: 3, booking: 9}}\n");
    window(l, "b1", from + 2 * HOUR, NULL);
    window(l, "b1", from + 4 * HOUR, NULL);
    assert_int_equal(amount(l, ST_PAY_WINDOW), 8 * DOLLARS);
}

static void a_plan_has_its_discount(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR;
    st_window_price p;

    books_plan(l, OCT_1 + 1, "account: ml\ndiscount: 25%\n");
    st_ledger_window_price(l, "ml", "h100", M, from, from + 4 * HOUR, OCT_1 + HOUR, &p);
    assert_int_equal(p.amount, 6 * DOLLARS);
    agree(l, booking("b1", 1, OCT_1 + HOUR, from, from + 4 * HOUR));
    change(l, booking("b1", 1, from + 2 * HOUR, from, from + 2 * HOUR));
    assert_int_equal(amount(l, ST_PAY_WINDOW), 3 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_CANCEL), 3 * DOLLARS);
}

static void a_book_without_bookings_agrees_nothing(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = books_new();
    st_err err = {0};
    books_prices(l, OCT_1, "prices: p\ngpu: {\"*\": {reserved: 1, burst: 3}}\n");
    books_account(l, "ml", "");
    st_entry e = booking("b1", 1, OCT_1 + 1, OCT_1 + HOUR, OCT_1 + 2 * HOUR);
    e.seq = st_ledger_seq(l, "ml") + 1;
    st_ledger_agree(l, &e);
    assert_int_equal(st_ledger_apply(l, &e, &err), -ST_ECORRUPT);
}

/* ---- what is not delivered --------------------------------------------------------------------------- */

static void what_is_missing_is_credited_once(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR, to = from + 4 * HOUR;
    st_entry lack = booking("b1", 4, from + HOUR, from, to);

    agree(l, booking("b1", 4, OCT_1 + HOUR, from, to));
    lack.short_m = M;
    change(l, lack);
    assert_int_equal(st_ledger_nshort(l), 1);
    lack.at_ms = from + 3 * HOUR;
    lack.short_m = 0;
    change(l, lack);
    assert_int_equal(st_ledger_nshort(l), 0);
    window(l, "b1", to, NULL);
    assert_int_equal(amount(l, ST_PAY_WINDOW), 32 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_SHORT), -4 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_CANCEL), 0);
}

/* ---- changes --------------------------------------------------------------------------------------- */

static void giving_up_costs_by_the_schedule(void **state)
{
    (void)state;
    static const struct {
        int64_t before, bp;
    } rows[] = {{80 * HOUR, 0},    {72 * HOUR, 0}, {71 * HOUR, 2500},
                {24 * HOUR, 2500}, {HOUR, 5000},   {1, 10000}};
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
        int64_t from = OCT_1 + 10 * DAY;
        agree(l, booking("b1", 1, OCT_1 + 9 * DAY - 60 * HOUR, from, from + 10 * HOUR));
        st_entry none = booking("b1", 1, from - rows[i].before, from, from);
        if (none.at_ms < OCT_1 + 9 * DAY - 60 * HOUR)
            none.at_ms = OCT_1 + 9 * DAY - 60 * HOUR;
        none.reason = "cancelled";
        change(l, none);
        /* agreed 84 hours ahead: 10% off */
        assert_int_equal(amount(l, ST_PAY_CANCEL), 18 * DOLLARS * rows[i].bp / ST_BP);
        assert_int_equal(amount(l, ST_PAY_WINDOW), 0);
        assert_int_equal(st_ledger_nbookings(l), 0);
    }
}

/* Moved away, or shrunk after its start, it pays the same as if it were cancelled. */
static void nobody_moves_out_of_a_fee(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 2 * HOUR, to = from + 10 * HOUR;

    agree(l, booking("b1", 2, OCT_1 + HOUR, from, to));
    change(l, booking("b1", 2, OCT_1 + HOUR + 1, from + 20 * DAY, to + 20 * DAY));
    assert_int_equal(amount(l, ST_PAY_CANCEL), 40 * DOLLARS);

    agree(l, booking("b2", 2, OCT_1 + HOUR + 2, from, to));
    change(l, booking("b2", 2, from + 4 * HOUR, from, from + 4 * HOUR));
    assert_int_equal(amount(l, ST_PAY_WINDOW), 16 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_CANCEL), 40 * DOLLARS + 24 * DOLLARS);
}

static void no_change_makes_an_hour_cheaper(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR;
    st_agreed a;

    agree(l, booking("b1", 1, OCT_1 + HOUR, from, from + 4 * HOUR));
    books_prices(l, OCT_1 + 2 * HOUR,
                 "prices: p2\ngpu: {\"*\": {reserved: 1, burst: 3, booking: 1}}\n");
    change(l, booking("b1", 1, OCT_1 + 3 * HOUR, from, from + 4 * HOUR)); /* by nothing */
    change(l, booking("b1", 1, OCT_1 + 4 * HOUR, from, from + 5 * HOUR));
    assert_true(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(a.agreed_ms, OCT_1 + HOUR);
    books_prices(l, OCT_1 + 5 * HOUR,
                 "prices: p3\ngpu: {\"*\": {reserved: 1, burst: 3, booking: 5}}\n");
    change(l, booking("b1", 1, OCT_1 + 6 * HOUR, from, from + 5 * HOUR));
    assert_true(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(a.agreed_ms, OCT_1 + HOUR);
    change(l, booking("b1", 1, OCT_1 + 7 * HOUR, from, from + 6 * HOUR));
    assert_true(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(a.agreed_ms, OCT_1 + 7 * HOUR);
}

/* A term's discount goes with the term. */
static void what_is_shortened_pays_for_its_length(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 5 * DAY;
    st_agreed a;

    agree(l, booking("b1", 1, OCT_1 + HOUR, from, from + 7 * DAY));
    assert_true(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(a.keep_bp, 7200);
    change(l, booking("b1", 1, OCT_1 + 2 * HOUR, from, from + HOUR));
    assert_true(st_ledger_booking(l, "ml", "b1", &a));
    assert_int_equal(a.keep_bp, 9000);
    assert_int_equal(a.agreed_ms, OCT_1 + HOUR);
    assert_int_equal(amount(l, ST_PAY_CANCEL), 0); /* days ahead: nothing is due */
}

/* ---- refused ---------------------------------------------------------------------------------------- */

static void refuse(st_ledger *l, st_entry e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0}, after = {0};
    st_err err = {0};
    if (e.seq == 0)
        e.seq = st_ledger_seq(l, "ml") + 1;
    st_ledger_save(l, &before);
    assert_true(st_ledger_apply(l, &e, &err) < 0);
    st_ledger_save(l, &after);
    assert_true(before.n == after.n && memcmp(before.s, after.s, before.n) == 0);
}

static void forged_entries_are_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR, at = from + 2 * HOUR;
    st_agreed was;
    st_entry good, e;
    st_err err = {0};

    e = booking("b1", 4, OCT_1 + HOUR, from, from + 6 * HOUR);
    st_ledger_agree(l, &e);
    good = e;
#define TRY(change)   \
    do {              \
        e = good;     \
        change;       \
        refuse(l, e); \
    } while (0)
    TRY(e.keep_bp = 5000);
    TRY(e.agreed_ms--);
    TRY(e.to_ms = e.from_ms);
    TRY(e.to_ms = e.from_ms - 1);
    TRY(e.from_ms = OCT_1);
    TRY(e.gpu_m = 0);
    TRY(e.gpu_m = -1);
    TRY(e.short_m = 1);
    TRY(e.to_ms = INT64_MAX);
    books_put(l, &good);

    assert_true(st_ledger_booking(l, "ml", "b1", &was));
    assert_true(st_ledger_window(l, &was, NULL, at, &good));
    assert_ok(st_ledger_price(l, &good, &err));
    TRY(e.lines[0].amount--);
    TRY(e.share -= GPU_HOUR);
    TRY(e.to_ms -= HOUR);
    TRY(e.from_ms += HOUR);
    TRY(e.missing = GPU_HOUR);
    TRY(e.keep_bp = 9000);
    TRY(e.agreed_ms = at);
    TRY(e.removed = 1);
    TRY(e.removed = -1);
    TRY(e.fee_bp = 1);
    TRY(e.booking = "b2");
    TRY(e.gpu = "a100");
    assert_ok(st_ledger_apply(l, &good, &err));
    refuse(l, good); /* twice */

    /* An hour is left out, or comes too early, with all sums made to fit. */
    assert_true(st_ledger_booking(l, "ml", "b1", &was));
    assert_true(st_ledger_window(l, &was, NULL, at + 2 * HOUR, &good));
    assert_ok(st_ledger_price(l, &good, &err));
    for (int k = 0; k < 2; k++) {
        e = good;
        e.from_ms += k == 0 ? HOUR : 0;
        e.to_ms -= k == 0 ? 0 : HOUR;
        e.share -= 4 * GPU_HOUR;
        e.lines[0].quantity -= 4 * GPU_HOUR;
        e.lines[0].amount -= 8 * DOLLARS;
        refuse(l, e);
    }

    /* Given up before it begins, and no fee. */
    agree(l, booking("b9", 1, at, at + 2 * HOUR, at + 4 * HOUR));
    e = booking("b9", 1, at, at + 2 * HOUR, at + 3 * HOUR);
    st_ledger_agree(l, &e);
    refuse(l, e);

    /* Given up without its window, or more than the window says. */
    e = booking("b1", 4, at + 1, from, at + 1);
    st_ledger_agree(l, &e);
    refuse(l, e);
    e = booking("b1", 4, at, from, from + HOUR); /* before what is charged */
    st_ledger_agree(l, &e);
    refuse(l, e);
    e = booking("b1", 4, at, from + HOUR, from + 6 * HOUR);
    st_ledger_agree(l, &e);
    refuse(l, e);
#undef TRY
}

/* ---- months and caps -------------------------------------------------------------------------------- */

static void a_booking_goes_on_in_the_next_month(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = NOV_1 - 2 * HOUR;

    agree(l, booking("b1", 1, NOV_1 - 3 * HOUR, from, from + 5 * HOUR));
    window(l, "b1", NOV_1, NULL);
    books_close(l, &(st_period){"2026-11", NOV_1, DEC_1});
    window(l, "b1", NOV_1 + DAY, NULL);
    assert_int_equal(books_amount(l, "ml", "2026-10", ST_PAY_WINDOW), 4 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_WINDOW), 6 * DOLLARS);
}

static void what_is_booked_counts_under_a_cap(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    const st_period oct = {"2026-10", OCT_1, NOV_1}, nov = {"2026-11", NOV_1, DEC_1};
    int64_t from = OCT_1 + 10 * HOUR;
    st_budget_state s;
    st_err err = {0};

    books_plan(l, OCT_1 + 1, "account: ml\ncap: 100\n");
    agree(l, booking("b1", 4, OCT_1 + HOUR, from, from + 10 * HOUR)); /* $80 */
    assert_ok(st_ledger_budget(l, "ml", OCT_1 + HOUR, &s, &err));
    assert_int_equal(s.booked, 80 * DOLLARS);
    assert_int_equal(s.left, 20 * DOLLARS);
    assert_ok(st_ledger_admit_booking(l, "ml", &oct, 20 * DOLLARS, OCT_1 + HOUR, NULL, &err));
    assert_int_equal(
        st_ledger_admit_booking(l, "ml", &oct, 20 * DOLLARS + 1, OCT_1 + HOUR, NULL, &err),
        -ST_EQUOTA);
    assert_ok(st_ledger_admit_booking(l, "ml", &nov, 100 * DOLLARS, OCT_1 + HOUR, NULL, &err));
    assert_int_equal(
        st_ledger_admit_booking(l, "ml", &nov, 100 * DOLLARS + 1, OCT_1 + HOUR, NULL, &err),
        -ST_EQUOTA);
    window(l, "b1", from + 10 * HOUR, NULL);
    assert_ok(st_ledger_budget(l, "ml", from + 10 * HOUR, &s, &err));
    assert_int_equal(s.booked, 0);
    assert_int_equal(s.left, 20 * DOLLARS);
    assert_int_equal(amount(l, ST_PAY_CAP), 0);
}

/* By team: what was paid for and nobody used. Those below use the booking too. */
static void what_nobody_was_inside_is_told(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin();
    int64_t from = OCT_1 + 10 * HOUR;
    st_idle_floors idle = {0};
    st_err err = {0};

    books_account(l, "team", "ml");
    agree(l, booking("b1", 4, OCT_1 + HOUR, from, from + 4 * HOUR));
    st_entry used = books_usage("team", "1", "h100", 4 * M, ST_BASIS_BOOKED, from, from + HOUR);
    books_post(l, &used);
    assert_int_equal(books_total(l, "team", NULL), 0);
    window(l, "b1", from + 4 * HOUR, NULL);
    assert_ok(st_ledger_idle_bookings(l, "ml", NULL, &idle, &err));
    assert_int_equal(idle.n, 1);
    assert_string_equal(idle.v[0].account, "ml");
    assert_int_equal(idle.v[0].reserved, 16 * GPU_HOUR);
    assert_int_equal(idle.v[0].unused, 12 * GPU_HOUR);
    assert_int_equal(idle.v[0].cost, 24 * DOLLARS);
    st_vec_free(&idle);
    assert_ok(st_ledger_idle_floors(l, "ml", NULL, &idle, &err));
    assert_int_equal(idle.n, 0);
}

/* ---- random --------------------------------------------------------------------------------------------- */

/* What an account with books of its own thinks. */
typedef struct model {
    int64_t gpu_m, from, to, short_m, until; /* gpu_m 0: none */
} model;

static st_ledger *again(st_ledger *l)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_ledger *copy = NULL;
    st_err err = {0};
    st_ledger_save(l, &bytes);
    assert_ok(st_ledger_load(bytes.s, bytes.n, &copy, &err));
    st_ledger_free(l);
    return copy;
}

static void one_world(uint64_t seed)
{
    static const char *const names[] = {"b1", "b2", "b3"};
    st_rng rng;
    st_ledger *l = begin();
    model m[3] = {0};
    int64_t now = OCT_1 + HOUR, share = 0, missing = 0;

    st_rng_seed(&rng, seed);
    books_plan(l, OCT_1 + 1, "account: ml\nchargeback: true\ndiscount: 7.77%\n");
    for (int step = 0; step < 60; step++) {
        int k = (int)st_rng_below(&rng, 3);
        now += 1 + (int64_t)st_rng_below(&rng, 5 * HOUR);
        /* All are charged up to now, as a cut does. */
        for (int i = 0; i < 3; i++) {
            int64_t to = ST_MIN(now, m[i].to);
            if (m[i].gpu_m == 0)
                continue;
            window(l, names[i], now, NULL);
            if (to > m[i].until) {
                share += m[i].gpu_m * (to - m[i].until);
                missing += m[i].short_m * (to - m[i].until);
                m[i].until = to;
            }
            if (m[i].until >= m[i].to)
                m[i].gpu_m = 0;
        }
        int64_t ahead = (int64_t)st_rng_below(&rng, 90 * HOUR);
        int64_t gpus = 1 + (int64_t)st_rng_below(&rng, 8);
        bool begun = m[k].gpu_m > 0 && m[k].from < now;
        st_entry e = booking(names[k], gpus, now, now + ahead,
                             now + ahead + 1 + (int64_t)st_rng_below(&rng, 60 * HOUR));
        if (begun) {
            e.from_ms = m[k].from;
            e.to_ms = now + (int64_t)st_rng_below(&rng, 40 * HOUR);
        }
        if (m[k].gpu_m > 0 && st_rng_below(&rng, 4) == 0)
            e.to_ms = ST_MAX(e.from_ms, now);
        if (begun && st_rng_below(&rng, 2))
            e.short_m = (int64_t)st_rng_below(&rng, (uint64_t)e.gpu_m + 1);
        if (m[k].gpu_m > 0)
            change(l, e);
        else
            agree(l, e);
        m[k] = (model){e.gpu_m, e.from_ms, e.to_ms, e.short_m, begun ? now : e.from_ms};
        if (m[k].until >= m[k].to)
            m[k].gpu_m = 0;
        if (st_rng_below(&rng, 8) == 0)
            l = again(l);
        assert_true(st_ledger_sum(l) == 0);
        assert_int_equal(books_quantity(l, "ml", NULL, ST_PAY_WINDOW), share);
        assert_true(-amount(l, ST_PAY_SHORT) <= amount(l, ST_PAY_WINDOW));
        /* never less than the cheapest price, which is 64.8% less the plan's discount, nor more than the list */
        assert_true(amount(l, ST_PAY_WINDOW) <= (int64_t)((st_i128)share * 2 * DOLLARS / GPU_HOUR));
        assert_true(-amount(l, ST_PAY_SHORT) <=
                    (int64_t)((st_i128)missing * 2 * DOLLARS / GPU_HOUR));
    }
    st_ledger_free(l);
}

static void random_bookings_add_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++)
        one_world(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_charged_whole_at_its_price),
        cmocka_unit_test(discounts_are_of_length_and_lead),
        cmocka_unit_test(the_price_is_that_of_the_agreement),
        cmocka_unit_test(a_plan_has_its_discount),
        cmocka_unit_test(a_book_without_bookings_agrees_nothing),
        cmocka_unit_test(what_is_missing_is_credited_once),
        cmocka_unit_test(giving_up_costs_by_the_schedule),
        cmocka_unit_test(nobody_moves_out_of_a_fee),
        cmocka_unit_test(no_change_makes_an_hour_cheaper),
        cmocka_unit_test(what_is_shortened_pays_for_its_length),
        cmocka_unit_test(forged_entries_are_refused),
        cmocka_unit_test(a_booking_goes_on_in_the_next_month),
        cmocka_unit_test(what_is_booked_counts_under_a_cap),
        cmocka_unit_test(what_nobody_was_inside_is_told),
        cmocka_unit_test(random_bookings_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
