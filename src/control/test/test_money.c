/*
 * Metering and the books in the loop, with a real store: what a job costs, days and months that end, prices that change,
 * telemetry, pieces, caps, floors.
 */
#include <stdlib.h>
#include <string.h>

#include "control/test/money.h"

static int begin_at_noon(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = ST_TIME_NEVER;
    make_fleet(w);
    return 0;
}

/* ---- usage ---------------------------------------------------------------------------------------- */

static void a_job_is_metered_and_paid(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{\"workload\":\"training\"}");
    let_pass(w, 10 * S);
    assert_int_equal(total_of(w, "team", NULL), 8333); /* still running: as if it ended now */
    end_job(w, id, 0);
    assert_int_equal(total_of(w, "team", NULL), 8333);
    assert_int_equal(total_of(w, "", NULL), 8333);
    read_book(w, "team", &book);
    const st_entry *e = nth(&book, ST_ENTRY_USAGE, 0);
    assert_non_null(e);
    assert_int_equal(e->to_ms - e->from_ms, 10 * S);
    assert_int_equal(e->share, 1000 * 10 * S);
    assert_int_equal(e->cut, ST_CUT_ENDED);
    assert_string_equal(e->gpu, "h100");
    assert_string_equal(e->user, "ann");
    assert_string_equal(e->workload, "training");
    assert_int_equal(e->ngrants, 1);
    assert_string_equal(e->grants[0].node, "n1");
    assert_int_equal(paid(e), 8333);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    forget(&book);
    expect_sound(w);
}

/* Without prices usage is booked all the same. */
static void metering_needs_no_prices(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 1);
    assert_int_equal(paid(nth(&book, ST_ENTRY_USAGE, 0)), 0);
    forget(&book);
    assert_int_equal(total_of(w, "team", NULL), 0);
    expect_sound(w);
}

/* What an agent says of the end counts: the time until that was heard is nobody's. */
static void the_true_end(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    end_job(w, id, w->now - 20 * S);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->share, 1000 * 40 * S);
    forget(&book);
    expect_sound(w);
}

/* So does what it says of the start: what it took to make the tasks ready is nobody's. A restart in between forgets it until
 * the agent says it again. */
static void the_true_start(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");
    st_report report = {
        .kind = ST_REPORT_STARTED, .job = id, .stay = 1, .started_ms = w->now + 5 * S};

    let_pass(w, 10 * S);
    st_control_report(w->ctl, &report);
    nudge(w);
    restart(w);
    nudge(w);
    st_control_report(w->ctl, &report);
    report.started_ms += S; /* what is said first counts */
    st_control_report(w->ctl, &report);
    report.stay = 2; /* of no stay that is */
    st_control_report(w->ctl, &report);
    nudge(w);
    let_pass(w, 50 * S);
    end_job(w, id, w->now - 20 * S);
    read_book(w, "team", &book);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->share, 1000 * 35 * S);
    forget(&book);
    expect_sound(w);
    restart(w);
    expect_sound(w);
}

/* From noon over midnight, the end of October and on: each piece begins where the last one ended, at the very
 * instant, although nobody was awake then. */
static void days_and_months_end(void **state)
{
    world *w = *state;
    const int64_t nov = OCT_1 + 31 * DAY;
    int64_t from;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    from = w->now;
    let_pass(w, nov + 6 * H - w->now);
    restart(w);
    nudge(w);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 32);
    for (int i = 0; i < 32; i++) {
        const st_entry *e = nth(&book, ST_ENTRY_USAGE, i);

        assert_int_equal(e->piece, i + 1);
        assert_int_equal(e->from_ms, i == 0 ? from : OCT_1 + i * DAY);
        assert_int_equal(e->to_ms, i == 31 ? nov + 6 * H : OCT_1 + (i + 1) * DAY);
    }
    const st_entry *close = nth(&book, ST_ENTRY_CLOSE, 0);
    assert_non_null(close);
    assert_string_equal(close->period, "2026-10");
    assert_int_equal(close->to_ms, nov);
    assert_int_equal(count(&book, ST_ENTRY_CLOSE), 1);
    forget(&book);
    /* 6 hours at 3 dollars. */
    assert_int_equal(total_of(w, "team", NULL), 18000000);
    assert_int_equal(total_of(w, "team", "2026-11"), 18000000);
    assert_int_equal(total_of(w, "team", "2026-10"), (nov - from) * 3000000 / H);
    expect_sound(w);
}

static void a_price_changes_in_between(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    let_pass(w, H);
    publish(w, "prices: second\ngpu: {\"*\": {reserved: 1, burst: 6}}\n");
    let_pass(w, H);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 2);
    const st_entry *a = nth(&book, ST_ENTRY_USAGE, 0), *b = nth(&book, ST_ENTRY_USAGE, 1);
    assert_int_equal(a->to_ms, b->from_ms);
    assert_int_equal(a->lines[0].rate, 3000000);
    assert_int_equal(b->lines[0].rate, 6000000);
    assert_int_equal(a->to_ms - a->from_ms, H + 1); /* from the next millisecond on */
    forget(&book);
    expect_sound(w);
}

static void the_past_keeps_its_price(void **state)
{
    world *w = *state;
    st_cmd_prices *cmd = calloc(1, sizeof *cmd);
    st_err err = {0};

    cmd->who = owner;
    assert_ok(st_price_book_read("prices", PRICES, strlen(PRICES), w->now - H, &cmd->book, &err));
    st_cmd_prices_init(cmd);
    assert_fails(do_cmd(w, &cmd->cmd, &err), ST_EINVAL, "in the past");
    free(cmd);
}

/* ---- telemetry --------------------------------------------------------------------------------------- */

static void used(world *w, uint64_t id, int64_t seen_ms, int64_t busy_ms, bool last)
{
    st_report r = {.kind = ST_REPORT_USED, .job = id, .stay = 1, .last = last};

    r.used.has = 1u << ST_USED_SEEN | 1u << ST_USED_BUSY | 1u << ST_USED_HELD;
    r.used.v[ST_USED_SEEN] = r.used.v[ST_USED_HELD] = seen_ms;
    r.used.v[ST_USED_BUSY] = busy_ms;
    st_control_report(w->ctl, &r);
    nudge(w);
}

static void telemetry_counts_once(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id = start_job(w, "{}");

    let_pass(w, 60 * S);
    used(w, id, 30 * S, 10 * S, false);
    used(w, id, 60 * S, 20 * S, false);
    used(w, id, 30 * S, 10 * S, false); /* out of order */
    assert_int_equal(busy_of(w, "team"), 1000 * 20 * S);
    restart(w); /* and forgotten or not: no interval has ended with it */
    used(w, id, 60 * S, 20 * S, false);
    let_pass(w, DAY / 2 - 60 * S); /* a day ends */
    nudge(w);
    restart(w);
    let_pass(w, 20 * S);
    used(w, id, 80 * S, 30 * S, false);
    let_pass(w, 20 * S);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 2);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 0)->busy, 1000 * 20 * S);
    assert_int_equal(nth(&book, ST_ENTRY_USAGE, 1)->busy, 1000 * 10 * S);
    forget(&book);
    /* What comes behind the end is a correction, once. */
    used(w, id, 90 * S, 35 * S, true);
    used(w, id, 90 * S, 35 * S, true);
    restart(w);
    used(w, id, 90 * S, 35 * S, true);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_FIX), 1);
    assert_int_equal(nth(&book, ST_ENTRY_FIX, 0)->fixes, nth(&book, ST_ENTRY_USAGE, 1)->seq);
    assert_int_equal(nth(&book, ST_ENTRY_FIX, 0)->busy, 1000 * 5 * S);
    forget(&book);
    expect_sound(w);
}

static uint64_t submit_as(world *w, const char *account, int gpus, st_yield yield)
{
    st_submit_item item = {.spec = {.name = "j",
                                    .account = account,
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .yield = yield,
                                    .limit_ms = 10 * H,
                                    .shape = {.gpus = gpus, .types = 1, .cpu_m = 1000}},
                           .doc = "{}"};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    st_err err = {0};

    st_cmd_submit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    return item.id;
}

/* A job yields by pausing and goes on later: its agent goes on counting in the same stay, and what it saw is in the
 * time in which it saw it. */
static void a_pause_is_metered(void **state)
{
    world *w = *state;
    st_event policy = {.kind = ST_EV_POLICY, .u.policy = st_policy_default()};
    uint64_t id, own;
    seen book;

    policy.u.policy.min_run_ms = policy.u.policy.notice_ms = 0;
    policy.u.policy.pause_limit_ms = 24 * H;
    make_event(w, policy);
    make_account(w, "own", "", "{name: own, guarantee: {gpu: 8}}");
    id = submit_as(w, "team", 8, ST_YIELD_PAUSE);
    let_pass(w, 60 * S);
    used(w, id, 8 * 60 * S, 8 * 20 * S, false);
    own = submit_as(w, "own", 8, ST_YIELD_REQUEUE);
    st_control_report(w->ctl, &(st_report){.kind = ST_REPORT_CHECKPOINTED, .job = id, .stay = 1});
    nudge(w);
    let_pass(w, 600 * S);
    end_job(w, own, 0);
    nudge(w);
    restart(w);
    let_pass(w, 60 * S);
    used(w, id, 8 * 120 * S, 8 * 70 * S, false);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_USAGE), 2);
    const st_entry *first = nth(&book, ST_ENTRY_USAGE, 0), *second = nth(&book, ST_ENTRY_USAGE, 1);
    assert_int_equal(first->to_ms - first->from_ms, 60 * S);
    assert_int_equal(second->from_ms - first->to_ms, 600 * S);
    assert_int_equal(first->stay, 1);
    assert_int_equal(second->stay, 2);
    assert_int_equal(first->busy, 8 * 1000 * 20 * S);
    assert_int_equal(second->busy, 8 * 1000 * 50 * S);
    assert_int_equal(count(&book, ST_ENTRY_FIX), 0);
    forget(&book);
    expect_sound(w);
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

static void frames_are_paid_by_piece(void **state)
{
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES "pieces: {render: {frames: 0.05}}\n");
    id = start_job(w,
                   "{\"workload\":\"render\",\"array\":{\"index\":0,\"count\":2,\"frames\":[1,20],"
                   "\"step\":2}}");
    let_pass(w, H);
    end_job(w, id, 0);
    read_book(w, "team", &book);
    assert_int_equal(count(&book, ST_ENTRY_PIECES), 1);
    assert_int_equal(nth(&book, ST_ENTRY_PIECES, 0)->pieces, 10);
    assert_int_equal(paid(nth(&book, ST_ENTRY_PIECES, 0)), 500000);
    forget(&book);
    assert_int_equal(total_of(w, "team", NULL), 500000);
    expect_sound(w);
}

/* ---- caps ------------------------------------------------------------------------------------------------ */

static int ask_budget(st_tx *tx, void *ctx, st_err *err)
{
    return st_tx_budget(tx, "team", ctx, err);
}

/* A job of an hour costs 3 dollars at most; two of them do not fit under a cap of 5. */
static void a_cap_is_kept_at_the_door(void **state)
{
    world *w = *state;
    st_budget_state budget;
    uint64_t id, next;
    st_err err = {0};

    w->limit_ms = H;
    publish(w, PRICES);
    assert_ok(set_plan(w, "account: team\ncap: 5\n", &err));
    nudge(w);
    id = start_job(w, "{}");
    assert_fails(submit(w, NULL, "{}", &next, &err), ST_EBUDGET, "team");
    assert_ok(in_loop(w, ask_budget, &budget, &err));
    assert_in_range(budget.held, 3000000, 3001000); /* and what rounding might add */
    restart(w);                                     /* a hold survives that */
    assert_fails(submit(w, NULL, "{}", &next, &err), ST_EBUDGET, "team");
    let_pass(w, 600 * S);
    end_job(w, id, 0);
    assert_ok(in_loop(w, ask_budget, &budget, &err));
    assert_int_equal(budget.held, 0);
    assert_int_equal(budget.spent, 500000);
    start_job(w, "{}");
    /* A lower cap must wait for the next month. */
    assert_int_equal(set_plan(w, "account: team\ncap: 0.1\n", &err), -ST_EBUDGET);
    expect_sound(w);
}

/* October has 30.5 days left: a GPU's floor costs 732 dollars. What is handed down costs nothing more. */
static void floors_pass_caps(void **state)
{
    world *w = *state;
    st_err err = {0};

    publish(w, PRICES);
    make_account(w, "org", "", "{name: org, guarantee: {gpu: 1}}");
    assert_ok(set_plan(w, "account: org\ncap: 1000\n", &err));
    nudge(w);
    assert_fails(put_account(w, false, "org", "", "{guarantee: {gpu: 2}}", &err), ST_EBUDGET,
                 "org");
    make_account(w, "inner", "org", "{name: inner, guarantee: {gpu: 1}}");
    assert_ok(put_account(w, false, "inner", "org", "{guarantee: {gpu: 0}}", &err));
    assert_ok(set_plan(w, "account: org\ncap: 2000\n", &err));
    nudge(w);
    assert_ok(put_account(w, false, "org", "", "{guarantee: {gpu: 2}}", &err));
    assert_ok(set_plan(w, "account: \"\"\ncap: 2000\n", &err));
    nudge(w);
    assert_int_equal(put_account(w, true, "new", "", "{name: new, guarantee: {gpu: 1}}", &err),
                     -ST_EBUDGET);
    expect_sound(w);
}

/* A month is closed in the zone it was opened in; the next one ends where the new zone says. */
static void a_zone_is_changed(void **state)
{
    static const char *const zones[] = {"Europe/Berlin", "America/New_York", "UTC"};
    world *w = *state;
    seen book;
    uint64_t id;

    publish(w, PRICES);
    id = start_job(w, "{}");
    for (size_t i = 0; i < ST_ARRAY_LEN(zones); i++) {
        w->billing.zone = zones[i];
        restart(w);
        let_pass(w, 31 * DAY);
        nudge(w);
    }
    end_job(w, id, 0);
    read_book(w, "team", &book);
    /* November began in UTC, December in Berlin (the 30th, 23:00), January in New York. */
    assert_int_equal(count(&book, ST_ENTRY_CLOSE), 3);
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 0)->to_ms, OCT_1 + 31 * DAY);
    assert_string_equal(nth(&book, ST_ENTRY_CLOSE, 1)->period, "2026-11");
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 1)->to_ms, OCT_1 + 61 * DAY - H);
    assert_string_equal(nth(&book, ST_ENTRY_CLOSE, 2)->period, "2026-12");
    assert_int_equal(nth(&book, ST_ENTRY_CLOSE, 2)->to_ms, OCT_1 + 92 * DAY + 5 * H);
    forget(&book);
    restart(w);
    expect_sound(w);
}

/* ---- a name that is used again ------------------------------------------------------------------- */

static void remove_account(world *w, const char *name)
{
    st_cmd_account cmd = {.who = owner, .name = name};
    st_err err = {0};

    st_cmd_account_remove(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    st_vec_free(&cmd.revoked);
}

/* The second account of a name has nothing of the first: no cost, no plan, no cap. Both are in the books. */
static void a_name_used_again(void **state)
{
    world *w = *state;
    char old[64], book[64];
    int64_t first, second, cost;
    st_directory *dir = st_control_directory(w->ctl);
    st_err err = {0};
    uint64_t id;
    seen s;

    w->limit_ms = 2 * H;
    make_account(w, "elsewhere", "", "{name: elsewhere}");
    publish(w, PRICES);
    assert_ok(set_plan(w, "account: team\ncap: 7\n", &err));
    first = st_directory_serial(dir, "team");
    id = start_job(w, "{}");
    let_pass(w, H);
    end_job(w, id, 0);
    cost = total_of(w, "team", NULL);
    assert_true(cost > 0);
    remove_account(w, "team");

    /* Also below another account than before. */
    make_account(w, "team", "elsewhere", "{name: team, parent: elsewhere}");
    second = st_directory_serial(dir, "team");
    assert_true(second > first);
    assert_int_equal(total_of(w, "team", NULL), 0);
    assert_int_equal(total_of(w, "elsewhere", NULL), 0);
    snprintf(old, sizeof old, ST_GONE_NAME, "team", (long long)first);
    assert_int_equal(total_of(w, old, NULL), cost);
    w->limit_ms = DAY;
    id = start_job(w, "{}"); /* no cap holds it up */
    let_pass(w, 2 * H);
    restart(w);
    end_job(w, id, 0);
    assert_int_equal(total_of(w, "team", NULL), 2 * cost);
    assert_int_equal(total_of(w, "elsewhere", NULL), 2 * cost);
    assert_int_equal(total_of(w, old, NULL), cost);
    assert_int_equal(total_of(w, "", NULL), 3 * cost);
    assert_fails(set_plan(w, "account: nobody\ncap: 7\n", &err), ST_ENOENT, "no account");
    assert_ok(set_plan(w, "account: team\ncap: 5000\n", &err));

    snprintf(book, sizeof book, "team~%lld", (long long)second);
    read_book(w, book, &s);
    assert_int_equal(s.list.v[0].kind, ST_ENTRY_ACCOUNT);
    assert_int_equal(count(&s, ST_ENTRY_USAGE), 1);
    assert_int_equal(count(&s, ST_ENTRY_PLAN), 1);
    forget(&s);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_USAGE), 1);
    forget(&s);
    /* A book's name is nobody's to take. */
    assert_fails(put_account(w, true, "team~99", "", "{name: team~99}", &err), ST_EEXIST,
                 "cannot be used");
    expect_sound(w);
}

/* ---- two owners ------------------------------------------------------------------------------------------ */

/* Whether it was given; else it waits for another. */
static bool ask_credit(world *w, const char *user, int64_t amount)
{
    st_cmd_credit cmd = {.who = owner,
                         .confirmed = true,
                         .account = "team",
                         .reason = "a lost month",
                         .amount_udollars = amount};
    st_err err = {0};

    snprintf(cmd.who.user, sizeof cmd.who.user, "%s", user);
    st_cmd_credit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    return !cmd.pending;
}

/* What one asks for another must ask for as well, the same, within a week, also over a start; and each time anew. */
static void large_credits_need_two(void **state)
{
    const int64_t much = 5000000;
    world *w = *state;

    publish(w, PRICES);
    w->billing.credit_second = true;
    w->billing.credit_alone_udollars = much - 1;
    restart(w);
    assert_true(ask_credit(w, "ada", much - 1));
    assert_false(ask_credit(w, "ada", much));
    assert_false(ask_credit(w, "ada", much));
    assert_false(ask_credit(w, "bob", much + 1));
    restart(w);
    let_pass(w, 7 * DAY + 1000);
    assert_false(ask_credit(w, "bob", much)); /* ada's is too old: it is bob's now */
    let_pass(w, DAY);
    assert_true(ask_credit(w, "ada", much));
    assert_false(ask_credit(w, "bob", much)); /* it was given, and this is another */
    assert_int_equal(total_of(w, "team", NULL), -2 * much + 1);
    expect_sound(w);
}

/* Plans and prices that are said within one millisecond all count, the last one in the end. */
static void twice_in_a_millisecond(void **state)
{
    world *w = *state;
    st_err err = {0};

    for (int i = 0; i < 3; i++) {
        publish(w, "prices: same\ngpu: {\"*\": {reserved: 1, burst: 3}}\n");
        let_pass(w, -10); /* what publishing lets pass */
        assert_ok(set_plan(w, "account: team\ncap: 20\n", &err));
        let_pass(w, -10);
    }
    let_pass(w, 100);
    nudge(w);
    expect_sound(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_at_noon, end)
    const struct CMUnitTest tests[] = {
        TEST(a_name_used_again),
        TEST(a_job_is_metered_and_paid),
        TEST(metering_needs_no_prices),
        TEST(the_true_start),
        TEST(the_true_end),
        TEST(days_and_months_end),
        TEST(a_price_changes_in_between),
        TEST(the_past_keeps_its_price),
        TEST(telemetry_counts_once),
        TEST(a_pause_is_metered),
        TEST(frames_are_paid_by_piece),
        TEST(a_cap_is_kept_at_the_door),
        TEST(floors_pass_caps),
        TEST(a_zone_is_changed),
        TEST(large_credits_need_two),
        TEST(twice_in_a_millisecond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
