/* The audit of the ledger notices what is wrong in books, one thing at a time. */
#include <string.h>

#include "base/testing.h"
#include "check/money.h"

/* A GPU-hour at one dollar: 3600 GPU-seconds are 1,000,000 micro-dollars. */
#define SECOND INT64_C(1000000) /* a GPU for a second, milli-GPU x ms */

static st_entry account(const char *name)
{
    return (st_entry){.kind = ST_ENTRY_ACCOUNT, .account = name, .seq = 1};
}

/* Seconds [from, to) of job 1 with a GPU: 277 7/9 micro-dollars each. */
static st_entry usage(int64_t seq, int piece, int64_t from, int64_t to)
{
    const int64_t d = st_component_per(ST_PAY_BURST) * ST_BP;
    st_i128 before = (st_i128)from * SECOND * 1000000 * ST_BP % d;
    st_i128 now = (st_i128)(to - from) * SECOND * 1000000 * ST_BP + before;
    st_entry e = {.kind = ST_ENTRY_USAGE,
                  .account = "a",
                  .seq = seq,
                  .at_ms = 1000 * to,
                  .from_ms = 1000 * from,
                  .to_ms = 1000 * to,
                  .job = "1",
                  .stay = 1,
                  .piece = piece,
                  .gpu = "h100",
                  .basis = ST_BASIS_BURST,
                  .tasks = 1,
                  .gpu_m = 1000,
                  .share = (to - from) * SECOND,
                  .held = (to - from) * SECOND,
                  .seen = ST_UNKNOWN,
                  .busy = ST_UNKNOWN,
                  .energy_mj = ST_UNKNOWN,
                  .nlines = 1};
    e.lines[0] = (st_line){.what = ST_PAY_BURST,
                           .quantity = e.share,
                           .rate = 1000000,
                           .factor_bp = ST_BP,
                           .carry_in = (int64_t)before,
                           .amount = (int64_t)(now / d),
                           .carry = (int64_t)(now % d)};
    return e;
}

static st_money_audit *begin(void)
{
    st_money_audit *a = st_money_audit_new();
    st_entry e = {.kind = ST_ENTRY_CHILD, .account = ST_BOOK_FLEET, .seq = 1, .child = "a"};
    st_err err = {0};
    st_money_audit_period(a, &(st_period){"2026-10", 0, 1000000});
    assert_ok(st_money_audit_entry(a, &e, &err));
    e = account("a");
    assert_ok(st_money_audit_entry(a, &e, &err));
    e = usage(2, 1, 0, 7);
    assert_ok(st_money_audit_entry(a, &e, &err));
    return a;
}

static void refuses(st_entry e, const char *why)
{
    ST_CLEANUP(st_money_audit_freep) st_money_audit *a = begin();
    st_err err = {0};
    assert_fails(st_money_audit_entry(a, &e, &err), ST_EINTERNAL, why);
}

static void good_books_pass(void **state)
{
    ST_CLEANUP(st_money_audit_freep) st_money_audit *a = begin();
    st_entry e = usage(3, 2, 7, 12);
    st_err err = {0};
    (void)state;
    assert_ok(st_money_audit_entry(a, &e, &err));
    assert_int_equal(st_money_audit_piece(a, "a", "1", 1, 2), 3);
    assert_int_equal(st_money_audit_piece(a, "a", "1", 1, 3), 0);
    assert_int_equal(st_money_audit_piece(a, "b", "1", 1, 1), 0);
}

static void stays_join(void **state)
{
    (void)state;
    refuses(usage(3, 2, 8, 12), "piece 2");
    refuses(usage(3, 2, 6, 12), "piece 2");
    refuses(usage(3, 1, 0, 7), "piece 1");
    refuses(usage(3, 3, 7, 12), "piece 3");
    refuses(usage(4, 2, 7, 12), "comes where 3 must");
}

static void remainders_are_not_lost(void **state)
{
    st_entry e = usage(3, 2, 7, 12);
    (void)state;
    e.lines[0].amount--;
    refuses(e, "burst is not what was used");
    e = usage(3, 2, 7, 12);
    e.lines[0].carry -= e.lines[0].carry_in;
    e.lines[0].carry_in = 0;
    refuses(e, "burst is not what was used");
}

static void corrections_name_a_piece(void **state)
{
    st_entry e = usage(3, 1, 6, 7);
    (void)state;
    e.kind = ST_ENTRY_FIX;
    e.seen = e.busy = e.energy_mj = 0;
    e.fixes = 1;
    refuses(e, "corrects 1");
    e.fixes = 2;
    e.piece = 2;
    refuses(e, "corrects 2");
}

static void holds_and_fleet(void **state)
{
    st_entry e = {.kind = ST_ENTRY_RELEASE, .account = "a", .seq = 3, .job = "9"};
    (void)state;
    refuses(e, "holds nothing");
    e = (st_entry){.kind = ST_ENTRY_FLEET,
                   .account = ST_BOOK_FLEET,
                   .seq = 2,
                   .to_ms = 5,
                   .gpu = "h100",
                   .total = 10,
                   .granted = 9};
    refuses(e, "not all somewhere");
}

static void caps_hold(void **state)
{
    static const char doc[] =
        "{\"account\":\"a\",\"from_ms\":0,\"chargeback\":false,\"discount_bp\":0,\"burst_m\":-1,"
        "\"cap\":2000,\"warn_bp\":[],\"budget\":-1}";
    ST_CLEANUP(st_money_audit_freep) st_money_audit *a = begin();
    st_entry plan = {.kind = ST_ENTRY_PLAN, .account = "a", .seq = 3, .doc = doc};
    st_entry e = usage(4, 2, 7, 8); /* 2222 in all */
    st_err err = {0};
    (void)state;
    assert_ok(st_money_audit_entry(a, &plan, &err));
    assert_fails(st_money_audit_entry(a, &e, &err), ST_EINTERNAL, "has a cap of 2000");
}

/* Books that are right, and a ledger that has none of it. */
static void the_ledger_must_agree(void **state)
{
    ST_CLEANUP(st_money_audit_freep) st_money_audit *a = begin();
    ST_CLEANUP(st_ledger_freep) st_ledger *l = st_ledger_new();
    st_record told = {.total = 0};
    st_err err = {0};
    (void)state;
    st_ledger_set_period(l, &(st_period){"2026-10", 0, 1000000});
    assert_fails(st_money_audit_check(a, l, 0, &err), ST_EINTERNAL, "the books say 1944 and 0");
    assert_fails(st_money_audit_replay(a, l, &err), ST_ECORRUPT, "replay");
    assert_fails(st_money_audit_fleet(a, "h100", &told, &err), ST_EINTERNAL, "more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_books_pass),         cmocka_unit_test(stays_join),
        cmocka_unit_test(remainders_are_not_lost), cmocka_unit_test(corrections_name_a_piece),
        cmocka_unit_test(holds_and_fleet),         cmocka_unit_test(caps_hold),
        cmocka_unit_test(the_ledger_must_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
