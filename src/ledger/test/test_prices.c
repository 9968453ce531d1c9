/* Price books and plans as documents: the examples of doc/reference/prices.md, and what is wrong with others. */
#include "base/mem.h"
#include "base/testing.h"
#include "ledger/price.h"
#include "ledger/test/books.h"

static const char book_example[] =
    "prices: 2026-q4\n"
    "from: 2026-10-01T00:00:00Z\n"
    "gpu:\n"
    "  h100: {reserved: 1.80, burst: 2.20, on_demand: 3.10, mig: 110%, mps: 90%, time: 60%}\n"
    "  a100: {reserved: 0.95, guaranteed: 0.05, burst: 1.25, booked: 0.90}\n"
    "  \"*\": {reserved: 1.00, burst: 1.50}\n"
    "cpu: 0.012\n"
    "ram: 0.0015\n"
    "energy: 0.18\n"
    "topology: {rack: 5%, nvlink: 12.5%}\n"
    "idle: 20%\n"
    "credit: {lost: 80%, fault: 100%}\n"
    "pieces:\n"
    "  render: {frames: 0.004}\n"
    "  transcode: {minutes: 0.010001}\n";

static const char plan_example[] = "account: ml\n"
                                   "from: 2026-11-01\n"
                                   "chargeback: true\n"
                                   "discount: 12.5%\n"
                                   "burst: 64\n"
                                   "cap: 250000\n"
                                   "budget: 200000.50\n"
                                   "warn: [50%, 80%, 95.25%]\n";

static st_price_book *read_book(const char *text)
{
    st_price_book *b = st_xcalloc(1, sizeof *b);
    st_err err = {0};
    assert_ok(st_price_book_read("prices.yaml", text, strlen(text), OCT_1, b, &err));
    return b;
}

static void a_book_is_read(void **state)
{
    ST_CLEANUP(st_freep) st_price_book *b = read_book(book_example);
    (void)state;
    assert_string_equal(b->name, "2026-q4");
    assert_int_equal(b->from_ms, OCT_1);
    assert_int_equal(b->nrates, 3);
    const st_rates *r = st_price_rates(b, "h100");
    assert_int_equal(r->rate[ST_PAY_RESERVED], 1800000);
    assert_int_equal(r->rate[ST_PAY_GUARANTEED], 0);
    assert_int_equal(r->rate[ST_PAY_ON_DEMAND], 3100000);
    assert_int_equal(r->level_bp[ST_LEVEL_WHOLE], 10000);
    assert_int_equal(r->level_bp[ST_LEVEL_MIG], 11000);
    r = st_price_rates(b, "a100");
    assert_int_equal(r->rate[ST_PAY_ON_DEMAND], 1250000); /* burst, where nothing is said */
    assert_int_equal(r->rate[ST_PAY_BOOKED], 900000);
    assert_string_equal(st_price_rates(b, "b300")->gpu, "*");
    assert_int_equal(b->cpu, 12000);
    assert_int_equal(b->topo_bp[ST_TOPO_NVLINK], 1250);
    assert_int_equal(b->topo_bp[ST_TOPO_ZONE], 0);
    assert_int_equal(b->idle_bp, 2000);
    assert_int_equal(b->lost_bp, 8000);
    assert_int_equal(st_price_unit(b, "render")->rate, 4000);
    assert_int_equal(st_price_unit(b, "transcode")->rate, 10001);
    assert_int_equal(st_price_unit(b, "transcode")->by, ST_PAY_MINUTES);
    assert_null(st_price_unit(b, "train"));
}

static void the_canonical_form_comes_back(void **state)
{
    ST_CLEANUP(st_freep) st_price_book *b = read_book(book_example);
    ST_CLEANUP(st_freep) st_price_book *c = st_xcalloc(1, sizeof *c);
    ST_CLEANUP(st_strbuf_done) st_strbuf once = {0}, twice = {0};
    st_price_plan p, q;
    st_err err = {0};
    (void)state;
    st_price_book_write(b, &once);
    /* `now` means nothing to what is written: a book may be read long after it began. */
    assert_ok(st_price_book_read("b.json", once.s, once.n, DEC_1, c, &err));
    st_price_book_write(c, &twice);
    assert_string_equal(once.s, twice.s);
    assert_memory_equal(b, c, sizeof *b);
    st_strbuf_clear(&once);
    st_strbuf_clear(&twice);
    assert_ok(st_price_plan_read("plan.yaml", plan_example, strlen(plan_example), OCT_1, &p, &err));
    assert_int_equal(p.from_ms, NOV_1);
    assert_true(p.chargeback);
    assert_int_equal(p.discount_bp, 1250);
    assert_int_equal(p.burst_m, 64000);
    assert_int_equal(p.cap_udollars, 250000 * DOLLARS);
    assert_int_equal(p.budget_udollars, 200000500000);
    assert_int_equal(p.nwarn, 3);
    assert_int_equal(p.warn_bp[2], 9525);
    st_price_plan_write(&p, &once);
    assert_ok(st_price_plan_read("p.json", once.s, once.n, DEC_1, &q, &err));
    st_price_plan_write(&q, &twice);
    assert_string_equal(once.s, twice.s);
    assert_string_equal(once.s, "{\"account\":\"ml\",\"from_ms\":1793491200000,\"chargeback\":true,"
                                "\"discount_bp\":1250,\"burst_m\":64000,\"cap\":250000000000,"
                                "\"warn_bp\":[5000,8000,9525],\"budget\":200000500000}");
}

static void what_is_not_given(void **state)
{
    ST_CLEANUP(st_freep)
    st_price_book *b = read_book("prices: b\ngpu: {\"*\": {reserved: 1, burst: 2}}\n");
    static const char text[] = "account: \"\"\ncap: none\nburst: none\n";
    st_price_plan p;
    st_err err = {0};
    (void)state;
    assert_int_equal(b->from_ms, OCT_1); /* now */
    assert_int_equal(b->lost_bp, ST_BP);
    assert_int_equal(b->fault_bp, ST_BP);
    assert_int_equal(b->idle_bp, 0);
    assert_ok(st_price_plan_read("p", text, strlen(text), OCT_1, &p, &err));
    assert_string_equal(p.account, "");
    assert_false(p.chargeback);
    assert_int_equal(p.cap_udollars, ST_UNSET);
    assert_int_equal(p.burst_m, ST_UNSET);
    assert_int_equal(p.nwarn, 3);
}

static void bad_books_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } bad[] = {
        {"prices: b\ngpus: {}\n", "p:2: unknown key \"gpus\"", ST_EINVAL},
        {"prices: b\n", "gpu", ST_EINVAL},
        {"prices: b\ngpu: {h100: {reserved: 1, burst: 2}}\n", "no \"*\"", ST_EINVAL},
        {"prices: b\ngpu: {\"*\": {reserved: 1}}\n", "burst", ST_EINVAL},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2, brust: 2}}\n", "brust", ST_EINVAL},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: -2}}\n", "not an amount in dollars",
         ST_EPARSE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 0.1234567}}\n", "six decimals", ST_EPARSE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 1000001}}\n", "more than 1000000 dollars",
         ST_ERANGE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 99999999999999999999}}\n", "dollars",
         ST_EPARSE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2, mig: 1.234%}}\n", "two decimals",
         ST_EPARSE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2, mig: 10001%}}\n", "more than 10000%",
         ST_ERANGE},
        {"prices: b\nfrom: 2026-09-30\ngpu: {\"*\": {reserved: 1, burst: 2}}\n", "in the past",
         ST_EINVAL},
        {"prices: b\nfrom: 2027-02-29\ngpu: {\"*\": {reserved: 1, burst: 2}}\n",
         "not a moment such as", ST_EPARSE},
        {"prices: b\nfrom: 2026-10-01T24:00:00Z\ngpu: {\"*\": {reserved: 1, burst: 2}}\n",
         "not a moment such as", ST_EPARSE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2}}\ntopology: {none: 5%}\n", "none",
         ST_EINVAL},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2}}\ncredit: {lost: 101%}\n",
         "more than 100%", ST_ERANGE},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2}}\npieces: {r: {frames: 1, minutes: 2}}\n",
         "frames or one for minutes", ST_EINVAL},
        {"prices: b\ngpu: {\"*\": {reserved: 1, burst: 2}}\npieces: {r: {}}\n",
         "frames or one for minutes", ST_EINVAL},
        {"prices: \"a b\"\ngpu: {\"*\": {reserved: 1, burst: 2}}\n", "cannot be a name", ST_EINVAL},
    };
    ST_CLEANUP(st_freep) st_price_book *b = st_xcalloc(1, sizeof *b);
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        st_err err = {0};
        assert_fails(st_price_book_read("p", bad[i].text, strlen(bad[i].text), OCT_1, b, &err),
                     bad[i].code, bad[i].says);
    }
}

static void bad_plans_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
        int code;
    } bad[] = {
        {"account: ml\ncaps: 5\n", "p:2: unknown key \"caps\"", ST_EINVAL},
        {"account: ml\ndiscount: 100.01%\n", "more than 100%", ST_ERANGE},
        {"account: ml\nwarn: [80%, 50%]\n", "above the one before", ST_EINVAL},
        {"account: ml\nwarn: [0%]\n", "above 0%", ST_EINVAL},
        {"account: ml\nwarn: [1,2,3,4,5]\n", "more than 4 thresholds", ST_ELIMIT},
        {"account: ml\nwarn: 80%\n", "", ST_EINVAL},
        {"account: ml\nchargeback: maybe\n", "", ST_EPARSE},
        {"account: ml\ncap: 1e5\n", "not an amount in dollars", ST_EPARSE},
        {"account: ml\nfrom: 2026-09-30T23:59:59Z\n", "in the past", ST_EINVAL},
    };
    st_price_plan p;
    (void)state;
    for (size_t i = 0; i < ST_ARRAY_LEN(bad); i++) {
        st_err err = {0};
        assert_fails(st_price_plan_read("p", bad[i].text, strlen(bad[i].text), OCT_1, &p, &err),
                     bad[i].code, bad[i].says);
    }
}

static void the_nearest_plan_above_applies(void **state)
{
    ST_CLEANUP(st_ledger_freep) st_ledger *l = books_new();
    (void)state;
    books_account(l, "org", "");
    books_account(l, "team", "org");
    books_account(l, "project", "team");
    assert_null(st_ledger_plan(l, "project", OCT_1));
    books_plan(l, OCT_1, "account: \"\"\ndiscount: 1%\n");
    books_plan(l, OCT_1, "account: team\ndiscount: 2%\nfrom: 2026-10-10\n");
    books_plan(l, OCT_1, "account: org\ndiscount: 3%\n");
    assert_int_equal(st_ledger_plan(l, "project", OCT_1)->discount_bp, 300);
    assert_int_equal(st_ledger_plan(l, "project", OCT_1 + 9 * DAY)->discount_bp, 200);
    assert_int_equal(st_ledger_plan(l, "org", OCT_1 + 9 * DAY)->discount_bp, 300);
    assert_int_equal(st_ledger_plan(l, "", OCT_1)->discount_bp, 100);
    assert_null(st_ledger_plan(l, "", OCT_1 - 1));
    assert_int_equal(st_ledger_next_change(l, OCT_1), OCT_1 + 9 * DAY);
    assert_true(st_ledger_next_change(l, OCT_1 + 9 * DAY) == ST_TIME_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_book_is_read),        cmocka_unit_test(the_canonical_form_comes_back),
        cmocka_unit_test(what_is_not_given),     cmocka_unit_test(bad_books_are_refused),
        cmocka_unit_test(bad_plans_are_refused), cmocka_unit_test(the_nearest_plan_above_applies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
