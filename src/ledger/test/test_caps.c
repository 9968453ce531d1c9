/* Caps: what is held, what floors need, what is credited, what is refused and with which numbers. */
#include "base/testing.h"
#include "ledger/test/books.h"

static const char *const types[] = {"h100", "a100"};

static int setup(void **state)
{
    st_ledger *l = books_new();
    books_account(l, "org", "");
    books_account(l, "ml", "org");
    books_account(l, "vfx", "org");
    books_prices(l, OCT_1,
                 "prices: base\n"
                 "gpu:\n"
                 "  h100: {reserved: 2, burst: 3, on_demand: 5, time: 50%}\n"
                 "  \"*\": {reserved: 1, burst: 1.50}\n"
                 "cpu: 0.01\ntopology: {rack: 10%}\n"
                 "pieces: {render: {frames: 0.50}}\n");
    *state = l;
    return 0;
}

static int teardown(void **state)
{
    st_ledger_free(*state);
    return 0;
}

static st_worst worst(const char *account, int64_t gpu_m, int64_t hours)
{
    return (st_worst){.account = account,
                      .gpus = types,
                      .ngpus = 2,
                      .gpu_m = gpu_m,
                      .limit_ms = hours * HOUR,
                      .at_ms = OCT_1};
}

static void hold(st_ledger *l, const char *account, const char *job, int64_t amount, int64_t at_ms)
{
    books_put(l, &(st_entry){.kind = ST_ENTRY_HOLD,
                             .at_ms = at_ms,
                             .account = account,
                             .job = job,
                             .amount = amount});
}

static void no_cap_no_hold(void **state)
{
    st_ledger *l = *state;
    st_worst w = worst("ml", 8000, 100);
    int64_t amount = 0;
    st_err err = {0};
    w.limit_ms = ST_TIME_NEVER;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, ST_UNSET);
    w.account = "nobody";
    assert_fails(st_ledger_admit(l, &w, &amount, &err), ST_ENOENT, "nobody");
}

/* The dearest: 8 h100 x 5 h x $3.00 = $120.00, in one rack 10% more, and 64 cores x 5 h x $0.01 = $3.20;
 * with the slack for remainders: 10 x 16 micro-dollars. On demand only once a plan can make it so. */
static void the_worst_case_is_held(void **state)
{
    st_ledger *l = *state;
    st_worst w = worst("ml", 8000, 5);
    int64_t amount = 0;
    st_err err = {0};
    books_plan(l, OCT_1, "account: org\ncap: 1000\n");
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 120 * DOLLARS + 160);
    w.topo = ST_TOPO_RACK;
    w.cpu_m = 64000;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 135200000 + 160);
    w = worst("ml", 8000, 5);
    w.level = ST_LEVEL_TIME;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 60 * DOLLARS + 160);
    books_plan(l, OCT_1, "account: ml\nburst: 4\n");
    w.level = ST_LEVEL_WHOLE;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 200 * DOLLARS + 160);
    /* A price that is announced counts: the job may still run then. */
    books_prices(l, OCT_1,
                 "prices: later\nfrom: 2026-12-01\n"
                 "gpu: {\"*\": {reserved: 1, burst: 6, on_demand: 7}}\n");
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 280 * DOLLARS + 160);
    w.account = "vfx";
    w.workload = "train";
    w.pieces = 1000;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 240 * DOLLARS + 160);
    w.limit_ms = ST_TIME_NEVER;
    /* Without an end, an hour and the grace: $48.00 x 7 / 6. */
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 56 * DOLLARS + 160);
    books_plan(l, OCT_1 + 1, "account: org\ncap: 1000\nhold: 2h\ngrace: 0s\n");
    w.at_ms = OCT_1 + 1;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 96 * DOLLARS + 160);
    books_plan(l, OCT_1 + 2, "account: org\ncap: 1000\nat_cap: warn\n");
    w.at_ms = OCT_1 + 2;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, ST_UNSET);
}

/* 300 frames x $0.50 = $150.00, whatever the time. */
static void pieces_are_held_by_number(void **state)
{
    st_ledger *l = *state;
    st_worst w = worst("ml", 8000, 500);
    int64_t amount = 0;
    st_err err = {0};
    books_plan(l, OCT_1, "account: org\ncap: 1000\n");
    assert_fails(st_ledger_admit(l, &w, &amount, &err), ST_EQUOTA, "$12000.00");
    w.workload = "render";
    w.pieces = 300;
    assert_ok(st_ledger_admit(l, &w, &amount, &err));
    assert_int_equal(amount, 150 * DOLLARS + 10 * (20 + 16)); /* 500 h are 20 days */
}

/* A floor of 1 h100 from 1 October on costs 744 x $2.00 = $1,488.00 by the end of the month. Under a cap of
 * $2,000.00 a job may cost $512.00. After half the month, $744.00 are posted and $744.00 to come: the same. */
static void floors_to_come_are_kept(void **state)
{
    st_ledger *l = *state;
    st_budget_state b;
    st_err err = {0};
    books_plan(l, OCT_1, "account: org\ncap: 2000\n");
    assert_ok(st_ledger_admit_floor(l, "ml", "h100", 1000, OCT_1, NULL, &err));
    assert_fails(st_ledger_admit_floor(l, "ml", "h100", 1500, OCT_1, NULL, &err), ST_EQUOTA,
                 "$2232.00");
    books_put(
        l,
        &(st_entry){
            .kind = ST_ENTRY_FLOOR, .at_ms = OCT_1, .account = "ml", .gpu = "h100", .gpu_m = 1000});
    assert_ok(st_ledger_budget(l, "org", OCT_1, &b, &err));
    assert_int_equal(b.reserved, 1488 * DOLLARS);
    assert_int_equal(b.left, 512 * DOLLARS);
    st_entry e = {.kind = ST_ENTRY_HOLD, .at_ms = OCT_1, .account = "vfx", .job = "1", .seq = 2};
    e.amount = 512 * DOLLARS + 1;
    assert_fails(st_ledger_apply(l, &e, &err), ST_EQUOTA, "$1488.00 needed for floors");
    hold(l, "vfx", "1", 512 * DOLLARS, OCT_1);

    st_entry half = books_reserve("ml", "h100", 1000, OCT_1, OCT_1 + 372 * HOUR);
    books_post(l, &half);
    assert_int_equal(half.nlines, 1);
    assert_ok(st_ledger_budget(l, "org", half.to_ms, &b, &err));
    assert_int_equal(b.spent, 744 * DOLLARS);
    assert_int_equal(b.reserved, 744 * DOLLARS);
    assert_int_equal(b.held, 512 * DOLLARS);
    assert_int_equal(b.left, 0);
    /* The floor goes: what it would have cost is free. */
    books_put(l, &(st_entry){.kind = ST_ENTRY_FLOOR,
                             .at_ms = half.to_ms,
                             .account = "ml",
                             .gpu = "h100",
                             .gpu_m = 0});
    assert_ok(st_ledger_budget(l, "org", half.to_ms, &b, &err));
    assert_int_equal(b.left, 744 * DOLLARS);
    assert_int_equal(b.warned, 0); /* $744 of $2000 */
}

/* $60.00 held, $30.00 of it spent, then the month ends: November begins with $30.00 held. */
static void holds_go_on_into_the_next_month(void **state)
{
    st_ledger *l = *state;
    st_budget_state b;
    st_err err = {0};
    books_plan(l, OCT_1, "account: org\ncap: 100\n");
    hold(l, "ml", "1", 60 * DOLLARS, OCT_1);
    st_entry first = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, NOV_1 - 10 * HOUR, NOV_1);
    first.cut = ST_CUT_GOES_ON;
    books_post(l, &first);
    books_close(l, &(st_period){"2026-11", NOV_1, DEC_1});
    assert_ok(st_ledger_budget(l, "org", NOV_1, &b, &err));
    assert_int_equal(b.spent, 0);
    assert_int_equal(b.held, 30 * DOLLARS);
    st_entry e = {.kind = ST_ENTRY_HOLD, .at_ms = NOV_1, .account = "vfx", .job = "2"};
    e.seq = st_ledger_seq(l, "vfx") + 1;
    e.amount = 70 * DOLLARS + 1;
    assert_fails(st_ledger_apply(l, &e, &err), ST_EQUOTA, "$30.00 on hold");
    hold(l, "vfx", "2", 70 * DOLLARS, NOV_1);
    /* 20 h at $3.00 are $60.00, but only $30.00 are left of the hold. */
    st_entry rest = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, NOV_1, NOV_1 + 20 * HOUR);
    rest.piece = 2;
    books_post(l, &rest);
    assert_int_equal(rest.lines[1].what, ST_PAY_CAP);
    assert_int_equal(rest.lines[1].amount, -30 * DOLLARS);
    assert_int_equal(books_total(l, "org", NULL), 30 * DOLLARS);
}

/* A hold of $15.00. 4 h x $3.00 = $12.00 are spent, then 1 h more, and the job is preempted and all 5 h are lost:
 * $3.00 - $15.00 = -$12.00. The hold is whole again, so the second try costs its $15.00 and not $3.00. */
static void lost_work_refills_the_hold(void **state)
{
    st_ledger *l = *state;
    books_plan(l, OCT_1, "account: org\ncap: 100\n");
    hold(l, "ml", "1", 15 * DOLLARS, OCT_1);
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 4 * HOUR);
    e.cut = ST_CUT_GOES_ON;
    books_post(l, &e);
    const st_entry first = e;
    assert_int_equal(st_ledger_held(l, "ml", "1"), 3 * DOLLARS);
    e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, e.to_ms, e.to_ms + HOUR);
    e.piece = 2;
    e.cut = ST_CUT_PREEMPTED;
    books_post(l, &e);
    books_lose_at(l, &first, NULL, OCT_1, first.share, e.to_ms);
    books_lose(l, &e, NULL, e.from_ms, e.share);
    assert_int_equal(books_total(l, "ml", NULL), 0);
    assert_int_equal(st_ledger_held(l, "ml", "1"), 15 * DOLLARS);
    e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, e.to_ms, e.to_ms + 6 * HOUR);
    e.stay = 2;
    books_post(l, &e);
    assert_int_equal(books_total(l, "ml", NULL), 15 * DOLLARS);
    assert_int_equal(st_ledger_held(l, "ml", "1"), 0);
    assert_int_equal(st_ledger_held(l, "ml", "2"), ST_UNSET);
}

/* A hold of $6.00 and 4 h x $3.00: $6.00 are beyond the cap. All is lost: $6.00 come back, not $12.00. And of another
 * that had been charged $12.00, of which $6.00 were beyond: that it really ended after an hour gives back $3.00 of its own,
 * since of $9.00 the cap had paid $6.00. */
static void what_a_cap_paid_does_not_come_back(void **state)
{
    st_ledger *l = *state;
    books_plan(l, OCT_1, "account: org\ncap: 12\n");
    hold(l, "ml", "1", 6 * DOLLARS, OCT_1);
    hold(l, "ml", "2", 6 * DOLLARS, OCT_1);
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 4 * HOUR);
    e.cut = ST_CUT_FAULT;
    books_post(l, &e);
    assert_int_equal(books_total(l, "ml", NULL), 6 * DOLLARS);
    books_lose(l, &e, NULL, OCT_1, e.share);
    assert_int_equal(books_total(l, "ml", NULL), 0);
    e = books_usage("ml", "2", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 4 * HOUR);
    books_post(l, &e);
    st_entry fix = e;
    fix.kind = ST_ENTRY_FIX;
    fix.fixes = e.seq;
    fix.ngrants = 0;
    fix.from_ms = OCT_1 + HOUR;
    fix.gpu_m = fix.seen = fix.busy = fix.energy_mj = 0;
    fix.share = fix.held = -3 * HOUR * 1000;
    fix.capped = 6 * DOLLARS;
    books_post(l, &fix);
    assert_int_equal(books_total(l, "ml", NULL), 3 * DOLLARS);
}

/* Without a hold, what is free is spent: cap $10.00, $4.00 held by another, so $6.00 of $9.00. */
static void a_job_without_a_hold_gets_what_is_free(void **state)
{
    st_ledger *l = *state;
    books_plan(l, OCT_1, "account: org\ncap: 10\n");
    hold(l, "vfx", "2", 4 * DOLLARS, OCT_1);
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    books_post(l, &e);
    assert_int_equal(e.lines[1].amount, -3 * DOLLARS);
    assert_int_equal(books_total(l, "org", NULL), 6 * DOLLARS);
}

/* A lower cap cannot begin at once below what is spent and held; one that was announced comes, and then nothing
 * is charged beyond it, holds or not. */
static void a_cap_may_fall(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    int64_t fall = OCT_1 + 9 * DAY;
    books_plan(l, OCT_1, "account: org\ncap: 100\n");
    books_plan(l, OCT_1, "account: org\ncap: 20\nfrom: 2026-10-10\n");
    hold(l, "ml", "1", 90 * DOLLARS, OCT_1);
    st_entry bad = {.kind = ST_ENTRY_PLAN, .at_ms = OCT_1 + HOUR, .account = "org"};
    bad.seq = st_ledger_seq(l, "org") + 1;
    bad.doc = "{\"account\":\"org\",\"from_ms\":1790816400000,\"chargeback\":false,"
              "\"discount_bp\":0,\"burst_m\":-1,\"cap\":50000000,\"warn_bp\":[],\"budget\":-1}";
    assert_fails(st_ledger_apply(l, &bad, &err), ST_EQUOTA, "has $90.00 spent or on hold");
    st_entry a = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, fall - 5 * HOUR, fall);
    st_entry b = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, fall, fall + 5 * HOUR);
    a.cut = ST_CUT_GOES_ON;
    b.piece = 2;
    books_post(l, &a);
    books_post(l, &b);
    assert_int_equal(a.nlines, 1);                      /* $15.00 */
    assert_int_equal(b.lines[1].amount, -10 * DOLLARS); /* $15.00, of which $5.00 fit */
    assert_int_equal(books_total(l, "org", NULL), 20 * DOLLARS);
}

/* Job 1 was charged 4 h x $3.00 and credited all of it as lost. Since then a cap has fallen below what job 2 holds,
 * and now it turns out that job 1 had ended after an hour: $9.00 were not charged after all, and are not lost. */
static void corrected_under_a_fallen_cap(st_ledger *l, st_entry *ret_again)
{
    int64_t late = OCT_1 + 9 * DAY + HOUR;
    books_plan(l, OCT_1, "account: org\ncap: 100\n");
    books_plan(l, OCT_1, "account: org\ncap: 20\nfrom: 2026-10-10\n");
    hold(l, "vfx", "2", 60 * DOLLARS, OCT_1);
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 4 * HOUR);
    e.cut = ST_CUT_FAULT;
    books_post(l, &e);
    st_piece_sum sum = {0};
    books_lose(l, &e, &sum, OCT_1, e.share);
    assert_int_equal(books_total(l, "ml", NULL), 0);
    st_entry fix = e;
    fix.kind = ST_ENTRY_FIX;
    fix.at_ms = late;
    fix.fixes = e.seq;
    fix.ngrants = 0;
    fix.from_ms = OCT_1 + HOUR;
    fix.gpu_m = fix.seen = fix.busy = fix.energy_mj = 0;
    fix.share = fix.held = -3 * HOUR * 1000;
    books_post(l, &fix);
    assert_int_equal(books_total(l, "ml", NULL), -9 * DOLLARS);
    st_piece_add(&sum, &fix);
    assert_true(st_ledger_lost_again(l, &sum, &fix, ret_again));
    ret_again->at_ms = late;
}

/* What a correction gave back pays for the credit that it takes back, whatever the cap leaves. */
static void a_credit_is_taken_back_under_a_cap(void **state)
{
    st_ledger *l = *state;
    st_entry again;
    corrected_under_a_fallen_cap(l, &again);
    books_post(l, &again);
    assert_int_equal(again.nlines, 1);
    assert_int_equal(again.lines[0].amount, 9 * DOLLARS);
    assert_int_equal(books_total(l, "ml", NULL), 0);
}

/* Books from before that was so have the cap pay for it. They are read; anything else is not. */
static void a_credit_that_was_kept_under_a_cap(void **state)
{
    st_ledger *l = *state;
    st_err err = {0};
    st_entry again;
    corrected_under_a_fallen_cap(l, &again);
    assert_ok(st_ledger_price(l, &again, &err));
    again.lines[again.nlines++] = (st_line){.what = ST_PAY_CAP,
                                            .quantity = -8 * DOLLARS,
                                            .rate = 1,
                                            .factor_bp = ST_BP,
                                            .amount = -8 * DOLLARS};
    again.seq = st_ledger_seq(l, "ml") + 1;
    assert_fails(st_ledger_apply(l, &again, &err), ST_ECORRUPT, "line 2 does not follow");
    again.lines[1].quantity = again.lines[1].amount = -9 * DOLLARS;
    books_put(l, &again);
    assert_int_equal(books_total(l, "ml", NULL), -9 * DOLLARS);
}

/* Whoever stands below a cap is told that there is one, and neither whose nor how much. */
static void caps_above_have_no_name(void **state)
{
    st_ledger *l = *state;
    st_worst w = worst("ml", 8000, 5);
    int64_t amount = 0;
    st_err err = {0};
    books_plan(l, OCT_1, "account: org\ncap: 77\n");
    w.reader = "org";
    assert_fails(st_ledger_admit(l, &w, &amount, &err), ST_EQUOTA, "the cap of org is $77.00");
    w.reader = "ml";
    assert_fails(st_ledger_admit(l, &w, &amount, &err), ST_EQUOTA, "an account above yours");
    assert_null(strstr(err.msg, "org"));
    assert_null(strstr(err.msg, "77"));
    assert_fails(st_ledger_admit_floor(l, "ml", "h100", 1000, OCT_1, "ml", &err), ST_EQUOTA,
                 "an account above yours");
    w.reader = "nobody";
    assert_fails(st_ledger_admit(l, &w, &amount, &err), ST_EQUOTA, "an account above yours");
}

static void thresholds_are_of_the_budget(void **state)
{
    st_ledger *l = *state;
    st_budget_state b;
    st_err err = {0};
    books_plan(l, OCT_1, "account: ml\nbudget: 20\nwarn: [50%, 100%, 150%]\n");
    st_entry e = books_usage("ml", "1", "h100", 1000, ST_BASIS_BURST, OCT_1, OCT_1 + 3 * HOUR);
    books_post(l, &e); /* $9 of $20 */
    assert_ok(st_ledger_budget(l, "ml", e.to_ms, &b, &err));
    assert_int_equal(b.warned, 0);
    assert_int_equal(b.cap, ST_UNSET);
    assert_int_equal(b.left, ST_UNSET);
    e = books_usage("ml", "2", "h100", 1000, ST_BASIS_BURST, e.to_ms, e.to_ms + 4 * HOUR);
    books_post(l, &e); /* $21 */
    assert_ok(st_ledger_budget(l, "ml", e.to_ms, &b, &err));
    assert_int_equal(b.warned, 2);
    assert_ok(st_ledger_budget(l, "vfx", e.to_ms, &b, &err));
    assert_int_equal(b.budget, ST_UNSET);
    assert_fails(st_ledger_budget(l, "x", e.to_ms, &b, &err), ST_ENOENT, "x");
}

int main(void)
{
#define CAP(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CAP(no_cap_no_hold),
        CAP(the_worst_case_is_held),
        CAP(pieces_are_held_by_number),
        CAP(floors_to_come_are_kept),
        CAP(holds_go_on_into_the_next_month),
        CAP(lost_work_refills_the_hold),
        CAP(what_a_cap_paid_does_not_come_back),
        CAP(a_job_without_a_hold_gets_what_is_free),
        CAP(a_cap_may_fall),
        CAP(a_credit_is_taken_back_under_a_cap),
        CAP(a_credit_that_was_kept_under_a_cap),
        CAP(caps_above_have_no_name),
        CAP(thresholds_are_of_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
