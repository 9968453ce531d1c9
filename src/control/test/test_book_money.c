/*
 * Bookings in the books: what a window costs, who is inside and beyond it, changes, the end of a month, a start in the middle,
 * caps, and what is not delivered.
 */
#include <string.h>

#include "control/bookings.h"
#include "control/test/purse.h"

/* Two dollars a GPU-hour of a window, four of burst. Half is due of what is given up less than a day before. */
#define DEAR                                              \
    "prices: dear\n"                                      \
    "gpu: {\"*\": {reserved: 1, burst: 4, booking: 2}}\n" \
    "booking: {cancel: {24h: 50%}}\n"
#define DOLLAR INT64_C(1000000)

static int set_up(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = 6 * H;
    make_fleet(w);
    publish(w, DEAR);
    return 0;
}

static int book(world *w, int gpus, int64_t from, int64_t to, uint64_t *ret, st_err *err)
{
    st_window window = {from, to};
    st_cmd_book cmd = {.who = owner,
                       .spec = {.name = "launch",
                                .account = "team",
                                .user = "ann",
                                .pool = -1,
                                .tasks = gpus,
                                .gpus = 1,
                                .no_show_ms = ST_TIME_NEVER},
                       .windows = &window,
                       .n = 1,
                       .confirm = true,
                       .zone = "UTC",
                       .tzdata = "test"};
    st_cmd_book_init(&cmd);
    int r = do_cmd(w, &cmd.cmd, err);
    *ret = cmd.id;
    return r;
}

static int change(world *w, uint64_t id, int64_t to, bool cancel, st_err *err)
{
    st_cmd_booking cmd = {
        .who = owner, .id = id, .name = "it", .from_ms = ST_TIME_NEVER, .to_ms = to};
    if (cancel)
        st_cmd_booking_cancel(&cmd);
    else
        st_cmd_booking_change(&cmd);
    int r = do_cmd(w, &cmd.cmd, err);
    json_decref(cmd.record);
    return r;
}

static uint64_t submit_in(world *w, uint64_t booking, int64_t limit_ms)
{
    st_submit_item item = {.spec = {.name = "train",
                                    .account = "team",
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = limit_ms,
                                    .booking = booking,
                                    .shape = {.gpus = 1, .types = 1, .cpu_m = 1000}},
                           .doc = "{}"};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    st_err err = {0};

    st_cmd_submit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    return item.id;
}

static void pass_to(world *w, int64_t ms)
{
    let_pass(w, ms - w->now);
    nudge(w);
}

static int64_t sum_of(world *w, st_component what)
{
    seen s;
    int64_t sum = 0;
    read_book(w, "team", &s);
    for (size_t i = 0; i < s.list.n; i++)
        for (int k = 0; k < s.list.v[i].nlines; k++)
            if (s.list.v[i].lines[k].what == what)
                sum += s.list.v[i].lines[k].amount;
    forget(&s);
    return sum;
}

/* The whole window, at one price, whether anybody is inside; who is inside pays no GPU time. */
static void a_window_costs_what_was_agreed(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0, job;
    int64_t from = NOON + 2 * H;
    seen s;

    assert_ok(book(w, 4, from, from + 4 * H, &id, &err));
    assert_int_equal(total_of(w, "team", NULL), 0);
    pass_to(w, from + 1);
    job = submit_in(w, id, 2 * H);
    pass_to(w, from + H + 1);
    end_job(w, job, 0);
    assert_int_equal(total_of(w, "team", NULL) / 10000, 800); /* what is open counts */
    publish(w, "prices: later\ngpu: {\"*\": {reserved: 1, burst: 40, booking: 20}}\n");
    pass_to(w, from + 3 * H);
    restart(w);
    pass_to(w, from + 5 * H);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 32 * DOLLAR);
    assert_int_equal(sum_of(w, ST_PAY_BURST), 0);
    assert_int_equal(total_of(w, "team", NULL), 32 * DOLLAR);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_BOOKING), 1);
    assert_true(nth(&s, ST_ENTRY_BOOKING, 0)->booking[0] == ST_BOOKING_ID);
    assert_int_equal(nth(&s, ST_ENTRY_USAGE, 0)->basis, ST_BASIS_BOOKED);
    assert_string_equal(nth(&s, ST_ENTRY_USAGE, 0)->booking, nth(&s, ST_ENTRY_BOOKING, 0)->booking);
    forget(&s);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* Behind the end of the window those inside borrow. */
static void beyond_the_window_is_burst(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0, job;
    int64_t from = NOON + 2 * H;

    assert_ok(book(w, 1, from, from + H, &id, &err));
    pass_to(w, from);
    job = submit_in(w, id, 3 * H);
    pass_to(w, from + H - 1);
    assert_int_equal(sum_of(w, ST_PAY_BURST), 0);
    pass_to(w, from + H);
    pass_to(w, from + H + 30 * S);
    end_job(w, job, 0);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 2 * DOLLAR);
    assert_int_equal(sum_of(w, ST_PAY_BURST), 4 * DOLLAR * 30 / 3600);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

static void giving_up_has_a_fee(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t from = NOON + 10 * H;

    assert_ok(book(w, 2, from, from + 4 * H, &id, &err));
    let_pass(w, 1000);
    assert_ok(change(w, id, 0, true, &err));
    assert_int_equal(sum_of(w, ST_PAY_CANCEL), 8 * DOLLAR);
    assert_int_equal(total_of(w, "team", NULL), 8 * DOLLAR);

    /* In the middle: what was had is paid, of the rest the half. */
    assert_ok(book(w, 2, from, from + 4 * H, &id, &err));
    pass_to(w, from + H);
    assert_ok(change(w, id, from + 2 * H, false, &err));
    assert_ok(change(w, id, from + 2 * H, false, &err)); /* by nothing: nothing is due */
    pass_to(w, from + 3 * H);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 8 * DOLLAR);
    assert_int_equal(sum_of(w, ST_PAY_CANCEL), 12 * DOLLAR);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

static void over_the_end_of_a_month(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t nov = OCT_1 + 31 * DAY;

    assert_ok(book(w, 1, nov - 30 * H, nov + 2 * H, &id, &err));
    pass_to(w, nov - 20 * H);
    restart(w);
    pass_to(w, nov + 10 * H);
    assert_int_equal(total_of(w, "team", "2026-10"), 60 * DOLLAR);
    assert_int_equal(total_of(w, "team", NULL), 4 * DOLLAR);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

static void a_cap_refuses_what_does_not_fit(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t from = NOON + 2 * H;

    assert_ok(set_plan(w, "account: team\ncap: 20\n", &err));
    assert_int_equal(book(w, 4, from, from + 3 * H, &id, &err), -ST_EBUDGET);
    assert_ok(book(w, 4, from, from + 2 * H, &id, &err));
    assert_int_equal(book(w, 4, from + 40 * DAY, from + 40 * DAY + 3 * H, &id, &err), -ST_EBUDGET);
    assert_ok(book(w, 4, from + 40 * DAY, from + 40 * DAY + 2 * H, &id, &err));
    assert_int_equal(change(w, id, from + 40 * DAY + 3 * H, false, &err), -ST_EBUDGET);
    pass_to(w, from + 3 * H);
    assert_int_equal(total_of(w, "team", NULL), 16 * DOLLAR);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* A node that fails takes four GPUs of the booking with it for an hour. */
static void what_is_not_delivered_is_credited(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t from = NOON + 2 * H;
    st_event fails = {.kind = ST_EV_NODE_STATE};

    assert_ok(book(w, 4, from, from + 4 * H, &id, &err));
    pass_to(w, from + H);
    fails.u.node_state.node = 0;
    fails.u.node_state.state = ST_NODE_FAILED;
    make_event(w, fails);
    pass_to(w, from + 2 * H);
    restart(w);
    fails.u.node_state.state = ST_NODE_READY;
    make_event(w, fails);
    pass_to(w, from + 5 * H);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 32 * DOLLAR);
    assert_int_equal(sum_of(w, ST_PAY_SHORT), -8 * DOLLAR);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* Prices of before have none for bookings, and nothing is written or charged. */
static void old_prices_charge_nothing(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    seen s;

    publish(w, PRICES);
    assert_ok(book(w, 4, NOON + 2 * H, NOON + 4 * H, &id, &err));
    publish(w, DEAR); /* too late for that one */
    pass_to(w, NOON + 5 * H);
    assert_int_equal(total_of(w, "team", NULL), 0);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_BOOKING) + count(&s, ST_ENTRY_WINDOW), 0);
    forget(&s);
    expect_sound(w);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, end)
    const struct CMUnitTest tests[] = {
        CASE(a_window_costs_what_was_agreed),
        CASE(beyond_the_window_is_burst),
        CASE(giving_up_has_a_fee),
        CASE(over_the_end_of_a_month),
        CASE(a_cap_refuses_what_does_not_fit),
        CASE(what_is_not_delivered_is_credited),
        CASE(old_prices_charge_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
