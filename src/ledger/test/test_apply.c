/* What the ledger refuses, that a refused entry leaves no trace, and what saving keeps. */
#include "base/hash.h"
#include "base/rng.h"
#include "base/testing.h"
#include "ledger/test/books.h"

#define PRICES "prices: base\ngpu: {\"*\": {reserved: 2, burst: 3}}\ncpu: 0.01\n"

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    books_prices(l, OCT_1, PRICES);
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

/* Refused with this code and these words, and nothing has changed. */
static void refused(st_ledger *l, st_entry e, int code, const char *says)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0}, after = {0};
    st_err err = {0};
    st_ledger_save(l, &before);
    assert_fails(st_ledger_apply(l, &e, &err), code, says);
    st_ledger_save(l, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, before.n);
}

static st_entry priced(st_ledger *l, int64_t hours)
{
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + hours * HOUR);
    st_err err = {0};
    e.cpu = 7 * HOUR;
    assert_ok(st_ledger_price(l, &e, &err));
    return e;
}

static void order_is_kept(void **state)
{
    st_ledger *l = *state;
    st_entry e = priced(l, 1);
    e.seq++;
    refused(l, e, ST_ESTATE, "entry 3 of \"ml\" comes where 2 must");
    e.seq--;
    books_put(l, &e);
    refused(l, e, ST_ESTATE, "entry 2 of \"ml\" comes where 3 must");
    e.seq = 3;
    e.at_ms = OCT_1;
    refused(l, e, ST_ESTATE, "before the last one's");
    assert_int_equal(st_ledger_seq(l, "ml"), 2);
    assert_int_equal(st_ledger_seq(l, "none"), -1);
}

static void every_number_of_a_line_is_checked(void **state)
{
    st_ledger *l = *state;
    st_entry e = priced(l, 1);
    assert_int_equal(e.nlines, 2);
    for (int i = 0; i < e.nlines; i++) {
        st_line *n = &e.lines[i];
        int64_t *parts[] = {&n->quantity, &n->rate,   &n->factor_bp,
                            &n->carry_in, &n->amount, &n->carry};
        for (size_t k = 0; k < ST_ARRAY_LEN(parts); k++) {
            ++*parts[k];
            refused(l, e, ST_ECORRUPT, "does not follow from usage, prices and terms");
            --*parts[k];
        }
    }
    e.nlines = 1;
    refused(l, e, ST_ECORRUPT, "line 2");
    e.nlines = 0;
    refused(l, e, ST_ECORRUPT, "line 1");
    e.nlines = 2;
    e.share++;
    refused(l, e, ST_ECORRUPT, "line 1");
}

static void impossible_entries(void **state)
{
    st_ledger *l = *state;
    st_entry good = priced(l, 1), e = good;
    static const st_entry_grant grant = {"n1", 1, -1, 2};
    st_err err = {0};
    e.share = -1;
    refused(l, e, ST_EINVAL, "impossible values");
    e = good;
    e.seen = -2;
    refused(l, e, ST_EINVAL, "impossible values");
    e = good;
    e.job = NULL;
    refused(l, e, ST_EINVAL, "impossible values");
    e = good;
    e.level = ST_LEVEL_COUNT;
    refused(l, e, ST_EINVAL, "impossible values");
    e = good;
    e.grants = &grant;
    e.ngrants = 1; /* two tasks of one */
    refused(l, e, ST_EINVAL, "impossible values");
    e = good;
    e.to_ms = e.at_ms + 1;
    refused(l, e, ST_EINVAL, "no interval of the past");
    e = good;
    e.from_ms = OCT_1 - 1;
    refused(l, e, ST_ESTATE, "not within 2026-10");
    e = good;
    e.account = "";
    e.seq = 2;
    refused(l, e, ST_EINVAL, "has no place in the book \"\"");
    e.account = "nobody";
    refused(l, e, ST_ENOENT, "no account \"nobody\"");
    e = good;
    e.kind = ST_ENTRY_FIX;
    refused(l, e, ST_EINVAL, "corrects none before it");
    e.fixes = e.seq;
    refused(l, e, ST_EINVAL, "corrects none before it");
    e.fixes = 1;
    e.share = INT64_MIN;
    assert_fails(st_ledger_price(l, &e, &err), ST_EINVAL, "impossible values");
    e = (st_entry){.kind = ST_ENTRY_CREDIT, .seq = 2, .at_ms = OCT_1, .account = "ml", .amount = 5};
    e.by = "root";
    refused(l, e, ST_EINVAL, "impossible values"); /* no reason */
    e.reason = "r";
    e.amount = 0;
    refused(l, e, ST_EINVAL, "impossible values");
    e.amount = -5; /* takes back a credit, and names none */
    refused(l, e, ST_EINVAL, "impossible values");
    e = (st_entry){.kind = ST_ENTRY_RELEASE, .seq = 2, .at_ms = OCT_1, .account = "ml", .job = "1"};
    refused(l, e, ST_ENOENT, "holds nothing");
    e = (st_entry){
        .kind = ST_ENTRY_CHILD, .seq = 2, .at_ms = OCT_1, .account = "ml", .child = "#x"};
    refused(l, e, ST_EINVAL, "cannot be the name");
    e.child = "ml";
    refused(l, e, ST_EEXIST, "already");
    e.child = "x";
    e.account = "";
    refused(l, e, ST_EINVAL, "has no place in the book \"\""); /* which everybody reads */
    e.account = "y";
    e.seq = 1;
    refused(l, e, ST_ENOENT, "no account \"y\"");
    e.kind = ST_ENTRY_ACCOUNT; /* nobody has named it */
    refused(l, e, ST_ENOENT, "no account \"y\"");
    e.account = "ml";
    e.seq = 2;
    refused(l, e, ST_EEXIST, "already");
}

static void the_fleet_has_a_book(void **state)
{
    st_ledger *l = *state;
    st_entry e = {.kind = ST_ENTRY_FLEET, .seq = 2, .at_ms = OCT_1, .account = ST_BOOK_FLEET};
    e.gpu = "h100";
    e.from_ms = OCT_1 - 1000;
    e.to_ms = OCT_1;
    e.total = 10;
    e.granted = 4;
    e.idle = 3;
    e.unhealthy = 2;
    refused(l, e, ST_EINVAL, "its parts are not the whole");
    e.overhead = 1;
    books_put(l, &e);
    assert_int_equal(st_ledger_seq(l, ST_BOOK_FLEET), 2);
    e.seq = 3;
    e.kind = ST_ENTRY_PRICES;
    refused(l, e, ST_EINVAL, "has no place in the book \"#fleet\"");
}

static st_entry with_doc(st_entry_kind kind, const char *account, int64_t seq, int64_t at,
                         const char *doc)
{
    return (st_entry){.kind = kind, .seq = seq, .at_ms = at, .account = account, .doc = doc};
}

static void the_past_keeps_its_prices(void **state)
{
    st_ledger *l = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf doc = {0};
    st_price_book book = *st_ledger_book(l, OCT_1);
    st_price_plan plan = {.grace_ms = ST_CAP_GRACE_MS,
                          .hold_ms = ST_CAP_HOLD_MS,
                          .account = "ml",
                          .from_ms = OCT_1,
                          .cap_udollars = ST_UNSET};
    st_price_book_write(&book, &doc);
    refused(l, with_doc(ST_ENTRY_PRICES, "", 2, OCT_1, doc.s), ST_EEXIST,
            "already starts at 2026-");
    refused(l, with_doc(ST_ENTRY_PRICES, "", 2, OCT_1 + 1, doc.s), ST_EINVAL, "keeps its price");
    refused(l,
            with_doc(ST_ENTRY_PRICES, "", 2, OCT_1,
                     "{\"prices\":\"b\",\"gpu\":{\"*\":{\"reserved\":1,\"burst\":2}}}"),
            ST_EINVAL, "canonical");
    refused(l, with_doc(ST_ENTRY_PRICES, "ml", 2, OCT_1, doc.s), ST_EINVAL, "no place");
    st_strbuf_clear(&doc);
    st_price_plan_write(&plan, &doc);
    refused(l, with_doc(ST_ENTRY_PLAN, "ml", 2, OCT_1 + 1, doc.s), ST_EINVAL, "keeps its price");
    refused(l, with_doc(ST_ENTRY_PLAN, "org", 3, OCT_1, doc.s), ST_EINVAL, "in the book of");
    st_entry e = with_doc(ST_ENTRY_PLAN, "ml", 2, OCT_1, doc.s);
    books_put(l, &e);
    refused(l, with_doc(ST_ENTRY_PLAN, "ml", 3, OCT_1, doc.s), ST_EEXIST, "already has a plan");
}

static st_entry close_of(const st_ledger *l, const char *account)
{
    return (st_entry){.kind = ST_ENTRY_CLOSE,
                      .seq = st_ledger_seq(l, account) + 1,
                      .at_ms = NOV_1,
                      .account = account,
                      .period = "2026-10",
                      .zone = "UTC",
                      .from_ms = OCT_1,
                      .to_ms = NOV_1};
}

static void closing(void **state)
{
    st_ledger *l = *state;
    st_bill bill;
    st_err err = {0};
    st_entry use = priced(l, 10), e;
    books_put(l, &use);
    e = close_of(l, "ml");
    e.at_ms = NOV_1 - 1;
    refused(l, e, ST_ESTATE, "not over or not open");
    e = close_of(l, "ml");
    e.period = "2026-11";
    refused(l, e, ST_ESTATE, "not over or not open");
    refused(l, close_of(l, ""), ST_ESTATE, "before the book of org is");
    e = close_of(l, "ml");
    books_put(l, &e);
    refused(l, close_of(l, "ml"), ST_ESTATE, "is closed for 2026-10");
    refused(l, close_of(l, ""), ST_ESTATE, "before the book of org is");
    e = close_of(l, "org");
    books_put(l, &e);
    e = close_of(l, "");
    books_put(l, &e);
    e.seq++;
    refused(l, e, ST_ESTATE, "no period is open");
    assert_fails(st_ledger_bill(l, "ml", "2026-11", &bill, &err), ST_ENOENT, "2026-11");
    st_ledger_set_period(l, &(st_period){"2026-11", NOV_1, DEC_1});
    assert_ok(st_ledger_bill(l, "ml", "2026-10", &bill, &err));
    assert_true(bill.closed);
    assert_int_equal(bill.total, 30 * DOLLARS + 70); /* 7 mCPU for 1 h at $0.01: 70 */
    assert_int_equal(bill.uses.v[0].first_seq, 1);
    assert_int_equal(bill.uses.v[0].last_seq, 3); /* the close included */
    st_bill_done(&bill);
    assert_ok(st_ledger_bill(l, "ml", NULL, &bill, &err));
    assert_false(bill.closed);
    assert_int_equal(bill.lines.n, 0);
    assert_int_equal(bill.uses.v[0].first_seq, 0);
    st_bill_done(&bill);
    /* An account of November has no bill for October. */
    books_new_account(l, NOV_1, "new", "");
    assert_fails(st_ledger_bill(l, "new", "2026-10", &bill, &err), ST_ENOENT, "younger");
    assert_fails(st_ledger_bill(l, "nobody", NULL, &bill, &err), ST_ENOENT, "nobody");
}

/* Both sides: what ml owes is what revenue has. */
static void money_has_two_sides(void **state)
{
    st_ledger *l = *state;
    int64_t has;
    st_err err = {0};
    st_entry e = priced(l, 10);
    assert_true(e.contra); /* it is written beside the lines, not only reckoned */
    books_put(l, &e);
    assert_ok(st_ledger_balance(l, "ml", &has, &err));
    assert_int_equal(has, -30000070);
    assert_ok(st_ledger_balance(l, "#burst", &has, &err));
    assert_int_equal(has, 30000000);
    assert_ok(st_ledger_balance(l, "#cpu", &has, &err));
    assert_int_equal(has, 70);
    assert_fails(st_ledger_balance(l, "#brust", &has, &err), ST_ENOENT, "brust");
    assert_true(st_ledger_sum(l) == 0);
}

/* A running bill: what is open is priced and added; the ledger stays as it is. */
static void open_intervals_are_added(void **state)
{
    st_ledger *l = *state;
    st_bill bill;
    st_err err = {0};
    st_entry done = priced(l, 2), open, floor;
    books_put(l, &done);
    open = books_usage("ml", "2", "a100", 2000, ST_BASIS_BURST, OCT_1 + HOUR, OCT_1 + 5 * HOUR);
    floor = books_reserve("org", "h100", 1000, OCT_1, OCT_1 + 5 * HOUR);
    assert_ok(st_ledger_price(l, &open, &err));
    assert_ok(st_ledger_price(l, &floor, &err));
    assert_ok(st_ledger_bill(l, "org", NULL, &bill, &err));
    assert_int_equal(bill.lines.n, 2);
    st_bill_add(&bill, &open, false);
    st_bill_add(&bill, &open, false);
    st_bill_add(&bill, &floor, false);
    open.account = "elsewhere";
    st_bill_add(&bill, &open, false);
    assert_int_equal(bill.total, 6 * DOLLARS + 70 + 2 * 24 * DOLLARS + 10 * DOLLARS);
    assert_int_equal(bill.lines.n, 4);
    assert_string_equal(bill.lines.v[0].gpu, "a100"); /* before h100 */
    assert_int_equal(bill.lines.v[0].amount, 48 * DOLLARS);
    assert_string_equal(bill.lines.v[3].account, "org");
    assert_int_equal(bill.uses.v[0].burst, 1000 * 2 * HOUR + 2 * 2000 * 4 * HOUR);
    st_bill_done(&bill);
    assert_int_equal(books_total(l, "org", NULL), 6 * DOLLARS + 70);
}

static void saved_and_damaged(void **state)
{
    st_ledger *l = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_ledger *again = NULL;
    st_err err = {0};
    st_entry e = priced(l, 10);
    st_rng rng;
    books_put(l, &e);
    books_plan(l, e.at_ms, "account: org\ncap: 1000\n");
    books_put(
        l, &(st_entry){
               .kind = ST_ENTRY_HOLD, .at_ms = e.at_ms, .account = "ml", .job = "2", .amount = 5});
    books_close(l, &(st_period){"2026-11", NOV_1, DEC_1});
    st_ledger_save(l, &saved);
    assert_ok(st_ledger_load(saved.s, saved.n, &again, &err));
    assert_int_equal(books_total(again, "ml", "2026-10"), 30000070);
    assert_int_equal(st_ledger_held(again, "ml", "2"), 5);
    st_ledger_free(again);
    st_rng_seed(&rng, 1);
    for (int i = 0; i < 3000; i++) {
        size_t at = st_rng_below(&rng, saved.n);
        char by = (char)(1 + st_rng_below(&rng, 255));
        saved.s[at] ^= by;
        assert_fails(st_ledger_load(saved.s, saved.n, &again, &err), ST_ECORRUPT, "damaged");
        /* With a hash that fits the damage, it is refused or it is a ledger whose money adds up. */
        uint64_t h = st_hash_bytes(saved.s, saved.n - 8, 11);
        char kept[8];
        memcpy(kept, saved.s + saved.n - 8, 8);
        for (int k = 0; k < 8; k++)
            saved.s[saved.n - 8 + (size_t)k] = (char)(h >> (8 * k));
        if (st_ledger_load(saved.s, saved.n, &again, &err) == 0) {
            assert_true(st_ledger_sum(again) == 0);
            st_ledger_free(again);
        }
        memcpy(saved.s + saved.n - 8, kept, 8);
        saved.s[at] ^= by;
    }
    for (size_t n = 0; n < saved.n; n++)
        assert_fails(st_ledger_load(saved.s, n, &again, &err), ST_ECORRUPT, "damaged");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(order_is_kept),
        CASE(every_number_of_a_line_is_checked),
        CASE(impossible_entries),
        CASE(the_fleet_has_a_book),
        CASE(the_past_keeps_its_prices),
        CASE(closing),
        CASE(money_has_two_sides),
        CASE(open_intervals_are_added),
        CASE(saved_and_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
