/* Terms: what plans above mean, said in each account's own book. */
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/test/books.h"

#define PRICES                                                                                 \
    "prices: list\ngpu: {\"*\": {reserved: 2, guaranteed: 0, burst: 3, on_demand: 4, booked: " \
    "1}}\n"

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "team", "org");
    books_account(l, "project", "team");
    books_account(l, "other", "");
    books_prices(l, OCT_1, PRICES);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

static int64_t discount(const st_ledger *l, const char *account, int64_t at_ms)
{
    const st_terms *terms = st_ledger_terms(l, account, at_ms);
    return terms ? terms->discount_bp : ST_UNSET;
}

/* $3.00 an hour with 20% off is $2.40, by the plan of org; a plan of the team's own from the 10th on makes it half. */
static void terms_are_handed_down(void **state)
{
    st_ledger *l = *state;
    int64_t tenth = OCT_1 + 9 * DAY;
    books_plan(l, OCT_1, "account: org\ndiscount: 20%\nchargeback: true\ncap: 1000\n");
    books_plan(l, OCT_1 + 1, "account: team\ndiscount: 50%\nfrom: 2026-10-10\n");
    assert_int_equal(discount(l, "org", tenth), 2000);
    assert_int_equal(discount(l, "project", OCT_1), 2000);
    assert_true(st_ledger_terms(l, "project", OCT_1)->chargeback);
    assert_int_equal(discount(l, "project", tenth - 1), 2000);
    assert_int_equal(discount(l, "project", tenth), 5000);
    assert_false(st_ledger_terms(l, "project", tenth)->chargeback);
    assert_null(st_ledger_terms(l, "other", tenth));
    assert_int_equal(st_ledger_seq(l, "org"), 4);     /* account, child, plan, terms */
    assert_int_equal(st_ledger_seq(l, "team"), 5);    /* account, child, terms, plan, terms */
    assert_int_equal(st_ledger_seq(l, "project"), 3); /* account, terms, terms */
    assert_int_equal(st_ledger_seq(l, "other"), 1);
    st_entry e = books_usage("project", "1", "h100", 1000, ST_BASIS_BURST, tenth - HOUR, tenth);
    books_post(l, &e);
    assert_int_equal(books_total(l, "org", NULL), 2400000);
    e = books_usage("project", "2", "h100", 1000, ST_BASIS_BURST, tenth, tenth + HOUR);
    books_post(l, &e);
    assert_int_equal(books_total(l, "org", NULL), 3900000);
    e = books_usage("project", "3", "h100", 1000, ST_BASIS_BURST, tenth - 1, tenth + 1);
    e.at_ms = tenth + HOUR;
    st_err err = {0};
    assert_fails(st_ledger_price(l, &e, &err), ST_ESTATE, "prices change between");
}

/* org has announced 30% for the 20th. Then the team gets a plan of its own from the 10th on: below it the 20th changes
 * nothing any more, and that is written where the 30% stood. */
static void what_was_announced_above_may_not_come(void **state)
{
    st_ledger *l = *state;
    int64_t tenth = OCT_1 + 9 * DAY, twentieth = OCT_1 + 19 * DAY;
    books_plan(l, OCT_1, "account: org\ndiscount: 30%\nfrom: 2026-10-20\n");
    assert_int_equal(discount(l, "project", twentieth), 3000);
    assert_null(st_ledger_terms(l, "project", tenth));
    books_plan(l, OCT_1, "account: team\ndiscount: 10%\nfrom: 2026-10-10\n");
    assert_int_equal(discount(l, "project", tenth), 1000);
    assert_int_equal(discount(l, "project", twentieth), 1000);
    assert_int_equal(discount(l, "org", twentieth), 3000);
    assert_int_equal(st_ledger_seq(l, "project"), 4); /* account, the 20th, the 10th, the 20th */
}

static void new_accounts_have_terms(void **state)
{
    st_ledger *l = *state;
    int64_t later = OCT_1 + DAY;
    books_plan(l, OCT_1, "account: \"\"\ndiscount: 5%\ncap: 99\n");
    books_plan(l, OCT_1, "account: org\ndiscount: 15%\nfrom: 2026-10-10\n");
    assert_int_equal(st_ledger_seq(l, ""), 1);            /* prices: everybody reads this book */
    assert_int_equal(st_ledger_seq(l, ST_BOOK_FLEET), 3); /* org, other, the plan */
    books_new_account(l, later, "new", "project");
    assert_int_equal(st_ledger_terms(l, "new", later)->from_ms, later);
    assert_int_equal(discount(l, "new", later), 500);
    assert_int_equal(discount(l, "new", OCT_1 + 9 * DAY), 1500);
    assert_null(st_ledger_terms(l, "new", later - 1));
    assert_int_equal(discount(l, "other", OCT_1 + 9 * DAY), 500);
}

static st_entry plan_of(const st_ledger *l, const char *doc)
{
    return (st_entry){.kind = ST_ENTRY_PLAN,
                      .at_ms = OCT_1,
                      .account = "team",
                      .seq = st_ledger_seq(l, "team") + 1,
                      .doc = doc};
}

/* A loop that forgets terms, or makes them up, is stopped at once; saved in between, the ledger still knows. */
static void nothing_else_comes_first(void **state)
{
    st_ledger *l = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_ledger *again;
    st_err err = {0};
    st_entry plan =
        plan_of(l, "{\"account\":\"team\",\"from_ms\":1790812800000,\"chargeback\":false,"
                   "\"discount_bp\":100,\"burst_m\":-1,\"cap\":-1,\"warn_bp\":[],"
                   "\"budget\":-1}");
    st_entry terms = {.kind = ST_ENTRY_TERMS, .account = "team", .seq = 3, .at_ms = OCT_1};
    st_entry hold = {.kind = ST_ENTRY_HOLD, .account = "other", .seq = 2, .at_ms = OCT_1};
    hold.job = "1";
    terms.from_ms = OCT_1;
    assert_false(st_ledger_due(l, &(st_entry){0}));
    assert_fails(st_ledger_apply(l, &terms, &err), ST_ESTATE, "no plan has changed its terms");
    books_put(l, &plan);
    st_ledger_save(l, &saved);
    assert_ok(st_ledger_load(saved.s, saved.n, &again, &err));
    assert_fails(st_ledger_apply(again, &hold, &err), ST_ESTATE, "the terms of team must");
    assert_fails(st_ledger_apply(l, &hold, &err), ST_ESTATE, "the terms of team must");
    terms.seq = 4;
    assert_fails(st_ledger_apply(l, &terms, &err), ST_EINVAL, "not those of the plan");
    terms.discount_bp = 100;
    terms.from_ms++;
    assert_fails(st_ledger_apply(l, &terms, &err), ST_EINVAL, "not those of the plan");
    terms.from_ms--;
    terms.at_ms++;
    assert_fails(st_ledger_apply(l, &terms, &err), ST_ESTATE, "as of the same moment");
    terms.at_ms--;
    books_put(l, &terms);
    assert_fails(st_ledger_apply(l, &hold, &err), ST_ESTATE, "the terms of project must");
    assert_true(st_ledger_due(l, &terms));
    assert_string_equal(terms.account, "project");
    terms.at_ms = OCT_1;
    books_put(l, &terms);
    assert_false(st_ledger_due(l, &terms));
    books_put(l, &hold);
    st_ledger_free(again);
    books_put(l,
              &(st_entry){.kind = ST_ENTRY_CHILD, .at_ms = OCT_1, .account = "org", .child = "x"});
    hold.seq = 3;
    hold.job = "2";
    assert_fails(st_ledger_apply(l, &hold, &err), ST_ESTATE, "the first entry of x must");
}

static void random_plan(st_ledger *l, st_rng *rng, int64_t now, const char *account)
{
    st_price_plan p = {.grace_ms = ST_CAP_GRACE_MS,
                       .hold_ms = ST_CAP_HOLD_MS,
                       .from_ms = now + st_rng_range(rng, 0, 25),
                       .chargeback = st_rng_chance(rng, 1, 2),
                       .discount_bp = st_rng_range(rng, 0, 3),
                       .burst_m = ST_UNSET,
                       .cap_udollars = ST_UNSET,
                       .budget_udollars = ST_UNSET};
    const st_price_plan *there = st_ledger_plan(l, account, p.from_ms);
    memcpy(p.account, account, strlen(account) + 1);
    if (!there || there->from_ms != p.from_ms || strcmp(there->account, account) != 0)
        books_put_plan(l, now, &p);
}

static void same_terms(const st_ledger *l, const char *account, int64_t at_ms)
{
    const st_price_plan *p = st_ledger_plan(l, account, at_ms);
    const st_terms *t = st_ledger_terms(l, account, at_ms);
    assert_int_equal(p ? p->discount_bp : 0, t ? t->discount_bp : 0);
    assert_int_equal(p && p->chargeback, t && t->chargeback);
}

/* Random plans, many of them for later: at any moment, everybody's own terms are those of the nearest plan. */
static void terms_are_those_of_the_nearest_plan(void **state)
{
    static const char *const names[] = {"", "org", "team", "project", "other", "late"};
    st_rng rng;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        st_ledger *l = NULL;
        setup((void **)&l);
        st_rng_seed(&rng, seed);
        for (int i = 0; i < 25; i++) {
            int64_t now = OCT_1 + i;
            if (i == 12)
                books_new_account(l, now, "late", "team");
            random_plan(l, &rng, now, names[st_rng_below(&rng, i < 12 ? 5 : 6)]);
            for (int k = 1; k < (i < 12 ? 5 : 6); k++)
                for (int64_t at = now; at < OCT_1 + 30; at++)
                    same_terms(l, names[k], at);
        }
        st_ledger_free(l);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(terms_are_handed_down),
        CASE(what_was_announced_above_may_not_come),
        CASE(new_accounts_have_terms),
        CASE(nothing_else_comes_first),
        CASE(terms_are_those_of_the_nearest_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
