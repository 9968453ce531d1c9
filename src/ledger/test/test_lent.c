/* What others pay for booked GPUs that stand idle: the booker's share, its bound, and what is refused. */
#include <string.h>

#include "base/testing.h"
#include "ledger/test/books.h"

#define GPU_HOUR INT64_C(3600000000)
#define FROM     (OCT_1 + 10 * HOUR)

/* A window costs two dollars a GPU-hour, borrowing three. */
#define PRICES(share)                                                   \
    "prices: p1\n"                                                      \
    "gpu: {\"*\": {reserved: 1, burst: 3, on_demand: 4, booking: 2}}\n" \
    "credit: {lost: 100%, fault: 100%}\nbooking: {cancel: {24h: 50%}, lent: " share "}\n"

/* ml has booked four GPUs for six hours; lab is somebody else, kid is below ml. */
static st_ledger *begin(const char *prices)
{
    st_ledger *l = books_new();
    st_entry e = {.kind = ST_ENTRY_BOOKING,
                  .at_ms = OCT_1 + HOUR,
                  .account = "ml",
                  .booking = "b1",
                  .gpu = "h100",
                  .gpu_m = 4000,
                  .from_ms = FROM,
                  .to_ms = FROM + 6 * HOUR};
    books_prices(l, OCT_1, prices);
    books_account(l, "ml", "");
    books_account(l, "kid", "ml");
    books_account(l, "lab", "");
    st_ledger_agree(l, &e);
    books_put(l, &e);
    return l;
}

static st_entry use(st_ledger *l, const char *account, int gpus, int64_t from, int64_t to)
{
    st_entry e = books_usage(account, "j1", "h100", gpus * INT64_C(1000), ST_BASIS_BURST, from, to);
    e.cut = ST_CUT_PREEMPTED;
    books_post(l, &e);
    return e;
}

static st_entry lent(const st_entry *of, int64_t share, int64_t charged)
{
    return (st_entry){.kind = ST_ENTRY_LENT,
                      .at_ms = of->at_ms,
                      .account = ST_BOOK_FLEET,
                      .child = "ml",
                      .booking = "b1",
                      .job = of->job,
                      .stay = 1,
                      .piece = 1,
                      .from_ms = of->from_ms,
                      .to_ms = of->to_ms,
                      .share = share,
                      .charged = charged};
}

static st_entry window(st_ledger *l, int64_t at)
{
    st_agreed was;
    st_entry e;
    assert_true(st_ledger_booking(l, "ml", "b1", &was));
    assert_true(st_ledger_window(l, &was, NULL, at, &e));
    books_post(l, &e);
    return e;
}

static int64_t income(const st_ledger *l)
{
    return -books_amount(l, "ml", NULL, ST_PAY_LENT);
}

static void restart(st_ledger **l)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0};
    st_err err = {0};
    st_ledger_save(*l, &one);
    st_ledger_free(*l);
    assert_ok(st_ledger_load(one.s, one.n, l, &err));
}

/* ---- shared ---------------------------------------------------------------------------------------- */

static void the_booker_has_the_share_of_the_book(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("25%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), e = lent(&u, 4 * GPU_HOUR, st_entry_paid(&u));

    assert_int_equal(st_entry_paid(&u), 12 * DOLLARS);
    books_put(l, &e);
    restart(&l);
    e = window(l, FROM + 2 * HOUR);
    assert_int_equal(e.lent, 4 * GPU_HOUR);
    assert_int_equal(e.paid, 12 * DOLLARS);
    assert_int_equal(income(l), 3 * DOLLARS);
    e = window(l, FROM + 6 * HOUR); /* once */
    assert_int_equal(e.lent + e.paid, 0);
    assert_int_equal(income(l), 3 * DOLLARS);
    assert_int_equal(books_total(l, "lab", NULL),
                     12 * DOLLARS); /* the borrower pays what it pays */
    assert_int_equal(books_total(l, "ml", NULL), 48 * DOLLARS - 3 * DOLLARS);
}

/* All of what others pay is more than the window costs: the rest is not the booker's. */
static void nobody_earns_more_than_the_window_costs(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("100%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), e = lent(&u, 4 * GPU_HOUR, st_entry_paid(&u));

    books_put(l, &e);
    window(l, FROM + HOUR);
    assert_int_equal(income(l), 8 * DOLLARS);
    assert_int_equal(books_total(l, "ml", NULL), 0); /* and not less */
}

/* A window that is charged before what was lent in it is known leaves the rest to the next one. */
static void what_does_not_fit_waits_for_the_next_window(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u, e;

    window(l, FROM + 3 * HOUR);
    u = use(l, "lab", 4, FROM, FROM + 4 * HOUR);
    e = lent(&u, 16 * GPU_HOUR, st_entry_paid(&u));
    books_put(l, &e);
    e = window(l, FROM + 5 * HOUR);
    assert_int_equal(e.lent, 8 * GPU_HOUR);
    assert_int_equal(e.paid, 24 * DOLLARS);
    e = window(l, FROM + 6 * HOUR);
    assert_int_equal(e.lent, 4 * GPU_HOUR);
    assert_int_equal(income(l), 18 * DOLLARS);
}

static void what_is_given_back_is_taken_off(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), e = lent(&u, 4 * GPU_HOUR, st_entry_paid(&u));

    books_put(l, &e);
    books_lose_at(l, &u, NULL, FROM + HOUR / 2, 2 * GPU_HOUR, FROM + HOUR);
    e = lent(&u, 0, -6 * DOLLARS);
    e.at_ms = FROM + HOUR;
    books_put(l, &e);
    window(l, FROM + 2 * HOUR);
    assert_int_equal(income(l), 3 * DOLLARS);
}

/* More was taken back than came: that waits, and nobody is charged for it. */
static void less_than_nothing_waits(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), e = lent(&u, 4 * GPU_HOUR, st_entry_paid(&u));

    books_put(l, &e);
    window(l, FROM + HOUR);
    assert_int_equal(income(l), 6 * DOLLARS);
    books_lose_at(l, &u, NULL, FROM, 4 * GPU_HOUR, FROM + HOUR);
    e = lent(&u, 0, -12 * DOLLARS);
    books_put(l, &e);
    restart(&l);
    e = window(l, FROM + 2 * HOUR);
    assert_int_equal(e.lent + e.paid, 0);
    assert_int_equal(income(l), 6 * DOLLARS);
    u = books_usage("lab", "j2", "h100", 4000, ST_BASIS_BURST, FROM + 2 * HOUR, FROM + 4 * HOUR);
    books_post(l, &u);
    e = lent(&u, 8 * GPU_HOUR, st_entry_paid(&u));
    books_put(l, &e);
    e = window(l, FROM + 5 * HOUR);
    assert_int_equal(e.paid, 12 * DOLLARS); /* of 24 */
}

/* What a cap paid for the borrower nobody has paid. */
static void a_cap_pays_nobody(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u;

    books_plan(l, FROM - HOUR, "account: lab\ncap: 5\n");
    u = use(l, "lab", 4, FROM, FROM + HOUR);
    assert_int_equal(st_entry_paid(&u), 5 * DOLLARS);
}

/* ---- refused --------------------------------------------------------------------------------------- */

static void refuse(st_ledger *l, st_entry e)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0}, after = {0};
    st_err err = {0};
    e.seq = ST_MAX(st_ledger_seq(l, e.account), 0) + 1;
    st_ledger_save(l, &before);
    assert_true(st_ledger_apply(l, &e, &err) < 0);
    st_ledger_save(l, &after);
    assert_true(before.n == after.n && memcmp(before.s, after.s, before.n) == 0);
}

static void more_than_was_used_and_paid_is_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), good = lent(&u, 4 * GPU_HOUR, 12 * DOLLARS);
    st_entry e;

#define TRY(change)   \
    do {              \
        e = good;     \
        change;       \
        refuse(l, e); \
    } while (0)
    TRY(e.share++);
    TRY(e.charged++);
    TRY(e.share = -1);
    TRY(e.charged = -1);
    TRY(e.booking = "b2");
    TRY(e.child = "lab");
    TRY(e.child = "nobody");
    TRY(e.at_ms++);
    TRY(e.account = "ml");
    e = lent(&u, 3 * GPU_HOUR, 9 * DOLLARS);
    books_put(l, &e);
    refuse(l, good); /* of the rest there is less */
    books_lose_at(l, &u, NULL, FROM + HOUR / 2, 2 * GPU_HOUR, FROM + HOUR);
    refuse(l, lent(&u, GPU_HOUR, 0)); /* what is credited is not used */
    window(l, FROM + HOUR);
    refuse(l, lent(&u, GPU_HOUR, 3 * DOLLARS)); /* it does not follow what was charged */
}

static void nobody_lends_to_itself(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u = use(l, "ml", 4, FROM, FROM + HOUR);

    refuse(l, lent(&u, 4 * GPU_HOUR, 12 * DOLLARS));
    u = books_usage("kid", "j2", "h100", 4000, ST_BASIS_BURST, FROM + HOUR, FROM + 2 * HOUR);
    books_post(l, &u);
    refuse(l, lent(&u, 4 * GPU_HOUR, 12 * DOLLARS));
    u = books_usage("lab", "j3", "a100", 4000, ST_BASIS_BURST, FROM + HOUR, FROM + 2 * HOUR);
    books_post(l, &u);
    refuse(l, lent(&u, 4 * GPU_HOUR, 12 * DOLLARS)); /* another GPU type */
}

/* Who is only shown a bill pays nothing, so whoever pays real money has no share of it. */
static void what_is_only_shown_is_not_shared_out(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u, e;

    books_plan(l, FROM - HOUR, "account: ml\nchargeback: true\n");
    u = use(l, "lab", 4, FROM, FROM + HOUR);
    assert_false(st_ledger_may_share(l, &u, "ml"));
    refuse(l, lent(&u, 4 * GPU_HOUR, 1));
    e = lent(&u, 4 * GPU_HOUR, 0);
    books_put(l, &e);
    window(l, FROM + HOUR);
    assert_int_equal(income(l), 0);
}

static void forged_windows_are_refused(void **state)
{
    (void)state;
    ST_CLEANUP(st_ledger_freep) st_ledger *l = begin(PRICES("50%"));
    st_entry u = use(l, "lab", 4, FROM, FROM + HOUR), good = lent(&u, 4 * GPU_HOUR, 12 * DOLLARS);
    st_entry e;
    st_agreed was;
    st_err err = {0};

    books_put(l, &good);
    assert_true(st_ledger_booking(l, "ml", "b1", &was));
    assert_true(st_ledger_window(l, &was, NULL, FROM + HOUR, &good));
    assert_ok(st_ledger_price(l, &good, &err));
    TRY(e.lent--);
    TRY(e.paid++);
    TRY(e.paid = 0);
    TRY(e.lines[1].amount--);
    assert_ok(st_ledger_apply(l, &good, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_booker_has_the_share_of_the_book),
        cmocka_unit_test(nobody_earns_more_than_the_window_costs),
        cmocka_unit_test(what_does_not_fit_waits_for_the_next_window),
        cmocka_unit_test(what_is_given_back_is_taken_off),
        cmocka_unit_test(less_than_nothing_waits),
        cmocka_unit_test(a_cap_pays_nobody),
        cmocka_unit_test(more_than_was_used_and_paid_is_refused),
        cmocka_unit_test(nobody_lends_to_itself),
        cmocka_unit_test(what_is_only_shown_is_not_shared_out),
        cmocka_unit_test(forged_windows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
