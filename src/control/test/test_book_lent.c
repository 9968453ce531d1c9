/*
 * Booked GPUs that stand idle and are used by others: what the booker has of what they pay, over a start in the middle, the end
 * of the booking, a node that fails, and work that is lost to the booker's own job.
 */
#include <string.h>

#include "control/bookings.h"
#include "control/test/money.h"

/* Two dollars a GPU-hour of a window, four of burst, of which a quarter is the booker's. */
#define SHARED(share)                                     \
    "prices: shared\n"                                    \
    "gpu: {\"*\": {reserved: 1, burst: 4, booking: 2}}\n" \
    "credit: {lost: 100%, fault: 100%}\n"                 \
    "booking: {cancel: {24h: 50%}, lent: " share "}\n"
#define DOLLAR INT64_C(1000000)
#define FROM   (NOON + 2 * H)

/* Team has booked four of the eight GPUs for four hours; lab has the other four, so what it submits next borrows. */
static void begin_lending(world *w, const char *prices, uint64_t *ret_booking);

static int set_up(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = 20 * H;
    make_fleet(w);
    make_account(w, "lab", "", "{name: lab}");
    return 0;
}

static uint64_t submit_for(world *w, const char *account, int gpus, uint64_t booking)
{
    st_submit_item item = {.spec = {.name = "train",
                                    .account = account,
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = 10 * H,
                                    .booking = booking,
                                    .yield = ST_YIELD_REQUEUE,
                                    .shape = {.gpus = gpus, .types = 1, .cpu_m = 1000}},
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

static void begin_lending(world *w, const char *prices, uint64_t *ret_booking)
{
    st_window window = {FROM, FROM + 4 * H};
    st_cmd_book cmd = {.who = owner,
                       .spec = {.name = "launch",
                                .account = "team",
                                .user = "ann",
                                .pool = -1,
                                .tasks = 4,
                                .gpus = 1,
                                .no_show_ms = ST_TIME_NEVER},
                       .windows = &window,
                       .n = 1,
                       .confirm = true,
                       .zone = "UTC",
                       .tzdata = "test"};
    st_err err = {0};

    publish(w, prices);
    st_cmd_book_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    *ret_booking = cmd.id;
    pass_to(w, FROM);
    submit_for(w, "lab", 4, 0);
}

static int64_t sum_of(world *w, const char *account, st_component what)
{
    seen s;
    int64_t sum = 0;

    read_book(w, account, &s);
    for (size_t i = 0; i < s.list.n; i++)
        for (int k = 0; k < s.list.v[i].nlines; k++)
            if (s.list.v[i].lines[k].what == what)
                sum += s.list.v[i].lines[k].amount;
    forget(&s);
    return sum;
}

static void expect_right(world *w)
{
    expect_file(w, "team", NULL);
    expect_file(w, "lab", NULL);
    expect_file(w, "", NULL);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* An hour of four GPUs costs lab 16 dollars; four of them are team's. */
static void the_booker_has_its_share(void **state)
{
    world *w = *state;
    uint64_t id, job;
    seen s;

    begin_lending(w, SHARED("25%"), &id);
    pass_to(w, FROM + H);
    job = submit_for(w, "lab", 4, 0);
    pass_to(w, FROM + H + H / 2);
    restart(w);
    pass_to(w, FROM + 2 * H);
    end_job(w, job, 0);
    pass_to(w, FROM + 5 * H);
    assert_int_equal(sum_of(w, "team", ST_PAY_WINDOW), 32 * DOLLAR);
    assert_int_equal(sum_of(w, "team", ST_PAY_LENT), -4 * DOLLAR);
    assert_int_equal(total_of(w, "team", NULL), 28 * DOLLAR);
    read_book(w, ST_BOOK_FLEET, &s);
    assert_int_equal(count(&s, ST_ENTRY_LENT), 1);
    assert_int_equal(nth(&s, ST_ENTRY_LENT, 0)->charged, 16 * DOLLAR);
    forget(&s);
    expect_right(w);
}

/* Who stays when the booking ends has borrowed up to there; the price of more than the window is not the booker's. */
static void only_up_to_its_end_and_its_price(void **state)
{
    world *w = *state;
    uint64_t id;

    begin_lending(w, SHARED("100%"), &id);
    submit_for(w, "lab", 4, 0);
    pass_to(w, FROM + 7 * H);
    restart(w);
    pass_to(w, FROM + 9 * H);
    assert_int_equal(sum_of(w, "team", ST_PAY_LENT), -32 * DOLLAR);
    assert_int_equal(total_of(w, "team", NULL), 0);
    expect_right(w);
}

/* Its own job sends the borrower away, whose work is lost and credited: nobody has paid for it. */
static void what_is_credited_is_not_shared(void **state)
{
    world *w = *state;
    uint64_t id, job;
    seen s;
    int64_t paid = 0;

    begin_lending(w, SHARED("50%"), &id);
    job = submit_for(w, "lab", 4, 0);
    pass_to(w, FROM + H);
    submit_for(w, "team", 4, id);
    for (int i = 1; i <= 40 && st_core_job(w->ctl->core, job) &&
                    st_job_on_devices(st_core_job(w->ctl->core, job));
         i++)
        pass_to(w, FROM + H + i * 30 * S);
    pass_to(w, FROM + 5 * H);
    assert_true(sum_of(w, "lab", ST_PAY_LOST) < 0);
    read_book(w, ST_BOOK_FLEET, &s);
    for (int i = 0; i < count(&s, ST_ENTRY_LENT); i++)
        paid += nth(&s, ST_ENTRY_LENT, i)->charged;
    forget(&s);
    assert_true(paid >= 0 && paid <= 16 * DOLLAR + sum_of(w, "lab", ST_PAY_LOST) + DOLLAR);
    assert_true(-sum_of(w, "team", ST_PAY_LENT) * 2 <= paid);
    expect_right(w);
}

/* Without a share in the price book, and in one that has no price for bookings, nothing is shared and nothing is written. */
static void no_share_no_credit(void **state)
{
    world *w = *state;
    uint64_t id;
    seen s;

    begin_lending(w, "prices: none\ngpu: {\"*\": {reserved: 1, burst: 4}}\n", &id);
    submit_for(w, "lab", 4, 0);
    pass_to(w, FROM + 6 * H);
    read_book(w, ST_BOOK_FLEET, &s);
    assert_int_equal(count(&s, ST_ENTRY_LENT), 0);
    forget(&s);
    assert_int_equal(total_of(w, "team", NULL), 0);
    expect_right(w);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, end)
    const struct CMUnitTest tests[] = {
        CASE(the_booker_has_its_share),
        CASE(only_up_to_its_end_and_its_price),
        CASE(what_is_credited_is_not_shared),
        CASE(no_share_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
