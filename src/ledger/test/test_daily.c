/* Costs by day: what is usual, for accounts and users, over saves and old days. */
#include <stdio.h>
#include <string.h>

#include "base/testing.h"
#include "ledger/test/books.h"

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    books_account(l, "vfx", "org");
    books_prices(l, OCT_1, "prices: p\ngpu: {\"*\": {reserved: 2.00, burst: 3.00}}\n");
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

typedef struct want {
    const char *account, *user;
    st_daily_cost got;
    bool found;
} want;

static void look(void *ctx, const st_daily_cost *d)
{
    want *w = ctx;
    if (strcmp(d->account, w->account) == 0 && strcmp(d->user, w->user) == 0) {
        w->got = *d;
        w->found = true;
    }
}

static want ask(const st_ledger *l, int64_t now, const char *account, const char *user)
{
    want w = {.account = account, .user = user};
    st_ledger_daily_costs(l, now, 14, look, &w);
    return w;
}

/* So many GPUs for an hour of a day, at $3.00. */
static void spend(st_ledger *l, const char *account, int day, int gpus)
{
    static int jobs;
    char job[16];
    int64_t from = OCT_1 + day * DAY;
    snprintf(job, sizeof job, "%d", ++jobs);
    st_entry e = books_usage(account, job, "h100", gpus * 1000, ST_BASIS_BURST, from, from + HOUR);
    books_post(l, &e);
}

static void usual_is_the_median(void **state)
{
    st_ledger *l = *state;
    const int gpus[] = {2, 3, 40, 1, 0, 2};
    for (int day = 0; day < 6; day++)
        if (gpus[day])
            spend(l, "ml", day, gpus[day]);
    spend(l, "ml", 6, 50);
    want w = ask(l, OCT_1 + 6 * DAY + 2 * HOUR, "ml", "ada");
    assert_true(w.found);
    assert_int_equal(w.got.days, 5); /* a day without cost is no usual day */
    assert_int_equal(w.got.usual, 6 * DOLLARS);
    assert_int_equal(w.got.today, 150 * DOLLARS);
    /* Those above have all below them. */
    spend(l, "vfx", 6, 1);
    assert_int_equal(ask(l, OCT_1 + 6 * DAY + 2 * HOUR, "org", "").got.today, 153 * DOLLARS);
    assert_int_equal(ask(l, OCT_1 + 6 * DAY + 2 * HOUR, "ml", "").got.today, 150 * DOLLARS);
    /* Another day: nothing yet, and today was one of the usual ones. */
    w = ask(l, OCT_1 + 7 * DAY, "ml", "ada");
    assert_int_equal(w.got.today, 0);
    assert_int_equal(w.got.days, 6);
    /* A leap of a year: there is no usual day. */
    assert_int_equal(ask(l, OCT_1 + 400 * DAY, "ml", "ada").got.days, 0);
}

static void credits_by_hand_do_not_count(void **state)
{
    st_ledger *l = *state;
    st_entry e = {.kind = ST_ENTRY_CREDIT,
                  .at_ms = OCT_1 + HOUR,
                  .account = "ml",
                  .amount = 5 * DOLLARS,
                  .reason = "r",
                  .by = "o"};
    books_post(l, &e);
    assert_false(ask(l, OCT_1 + HOUR, "ml", "").found);
}

/* Saved and loaded it goes on the same way, over more days than are kept. */
static void saved_and_loaded(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    for (int day = 0; day < 30; day++) {
        spend(l, day % 2 ? "ml" : "vfx", day, 1 + day % 3);
        ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0}, again = {0};
        ST_CLEANUP(st_ledger_freep) st_ledger *twin = NULL;
        st_ledger_save(l, &bytes);
        assert_ok(st_ledger_load(bytes.s, bytes.n, &twin, &err));
        st_ledger_save(twin, &again);
        assert_int_equal(bytes.n, again.n);
        want a = ask(l, OCT_1 + (day + 1) * DAY, "org", ""),
             b = ask(twin, OCT_1 + (day + 1) * DAY, "org", "");
        assert_int_equal(a.got.usual, b.got.usual);
        assert_int_equal(a.got.days, b.got.days);
        assert_int_equal(a.got.days, ST_MIN(day + 1, 14));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(usual_is_the_median),
        TEST(credits_by_hand_do_not_count),
        TEST(saved_and_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
