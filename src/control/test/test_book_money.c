/*
 * Bookings in the books: what a window costs, who is inside and beyond it, changes, the end of a month, a start in the middle,
 * caps, and what is not delivered; whoever is killed in the middle, and a backup with one open.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/bookings.h"
#include "control/test/money.h"

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

/* An extension that loses the discount for lead time makes all of it dearer, and that must fit as well. */
static void a_cap_refuses_a_change_at_its_new_price(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t from = NOON + 48 * H;

    publish(w, "prices: early\ngpu: {\"*\": {reserved: 1, burst: 4, booking: 2}}\n"
               "booking: {lead: {24h: 50%}}\n");
    assert_ok(book(w, 4, from, from + 4 * H, &id, &err)); /* 16 dollars; 34 as it would become */
    assert_ok(set_plan(w, "account: team\ncap: 20\n", &err));
    pass_to(w, from - 10 * H);
    assert_int_equal(change(w, id, from + 4 * H + H / 4, false, &err), -ST_EBUDGET);
    assert_ok(set_plan(w, "account: team\ncap: 34\n", &err));
    assert_ok(change(w, id, from + 4 * H + H / 4, false, &err));
    pass_to(w, from + 5 * H);
    assert_int_equal(total_of(w, "team", NULL), 34 * DOLLAR);
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

/* Not even shortly before it begins, when only its end can be changed. */
static void no_end_before_its_beginning(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;
    int64_t from = NOON + 2 * H;

    assert_ok(book(w, 4, from, from + 4 * H, &id, &err));
    assert_int_equal(change(w, id, from - H, false, &err), -ST_ERANGE);
    pass_to(w, from - 2 * S);
    assert_int_equal(change(w, id, from - S, false, &err), -ST_ERANGE);
    assert_int_equal(change(w, id, from, false, &err), -ST_ERANGE);
    pass_to(w, from + 5 * H);
    assert_int_equal(total_of(w, "team", NULL), 32 * DOLLAR);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* ---- killed ------------------------------------------------------------------------------------------ */

/* What whoever is killed leaves to those who go on. */
typedef struct left {
    uint64_t booking, job;
    int64_t now;
} left;

#define STEPS 8

/* Somebody is inside, a node fails for an hour, and the last half hour is given up. */
static void play(world *w, left *l, int step)
{
    int64_t from = NOON + 2 * H;
    st_event node = {.kind = ST_EV_NODE_STATE};
    st_err err = {0};

    node.u.node_state.state = step == 4 ? ST_NODE_FAILED : ST_NODE_READY;
    if (step == 0)
        assert_ok(book(w, 4, from, from + 4 * H, &l->booking, &err));
    if (step == 1) {
        pass_to(w, from + 1);
        l->job = submit_in(w, l->booking, 2 * H);
    }
    if (step == 2)
        pass_to(w, from + H / 2);
    if (step == 3) {
        pass_to(w, from + H);
        end_job(w, l->job, 0);
    }
    if (step == 5)
        pass_to(w, from + 2 * H);
    if (step == 4 || step == 5)
        make_event(w, node);
    if (step == 6) {
        pass_to(w, from + 3 * H);
        assert_ok(change(w, l->booking, from + 7 * H / 2, false, &err));
    }
    if (step == 7)
        pass_to(w, from + 5 * H);
}

/* Another process plays the first steps, and is killed as it is. */
static void play_and_die(world *w, left *l, int steps)
{
    pid_t pid;
    int status = 0;
    st_err err = {0};

    close_control(w);
    pid = fork();
    if (pid == 0) {
        if (open_control(w, &err) < 0)
            _exit(1);
        for (int i = 0; i < steps; i++)
            play(w, l, i);
        l->now = w->now;
        if (w->refused == 0)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    __atomic_store_n(&w->now, l->now, __ATOMIC_RELAXED);
    assert_ok(open_control(w, &err));
}

/* Windows of the book's bookings lie one behind the other, from the beginning of the first to the end of the last. */
static void expect_joined(world *w, int64_t from, int64_t to)
{
    seen s;
    const st_entry *e;

    read_book(w, "team", &s);
    for (int i = 0; (e = nth(&s, ST_ENTRY_WINDOW, i)); i++) {
        if (e->share == 0)
            continue;
        assert_int_equal(e->from_ms, from);
        from = e->to_ms;
    }
    assert_int_equal(from, to);
    forget(&s);
}

/* Killed behind any step, the bill is that of nobody being killed. */
static void killed_in_the_middle(void **state)
{
    world *w = *state;
    int64_t from = NOON + 2 * H;
    left *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_true(l != MAP_FAILED);
    for (int killed = 0; killed <= STEPS; killed++) {
        if (killed > 0) {
            end(state);
            set_up(state);
            w = *state;
            play_and_die(w, l, killed);
        }
        for (int i = killed; i < STEPS; i++)
            play(w, l, i);
        assert_int_equal(sum_of(w, ST_PAY_WINDOW), 28 * DOLLAR);
        assert_int_equal(sum_of(w, ST_PAY_SHORT), -8 * DOLLAR);
        assert_int_equal(sum_of(w, ST_PAY_CANCEL), 2 * DOLLAR);
        assert_int_equal(sum_of(w, ST_PAY_BURST), 0);
        assert_int_equal(total_of(w, "team", NULL), 22 * DOLLAR);
        expect_joined(w, from, from + 7 * H / 2);
        expect_file(w, "team", NULL);
        assert_int_equal(w->refused, 0);
        expect_sound(w);
    }
    munmap(l, sizeof *l);
}

/* ---- restored ---------------------------------------------------------------------------------------- */

/* A booking is open in the backup. What came behind it is void: a window that was charged, a fee, another booking. The window is
 * charged once, at its price, and the numbers of the other do not come back. */
static void restored_at(world *w, int64_t at)
{
    st_err err = {0};
    uint64_t id = 0, late = 0, next = 0, job;
    int64_t from = NOON + 2 * H;
    seen s;

    assert_ok(book(w, 4, from, from + 4 * H, &id, &err));
    pass_to(w, from + 1);
    job = submit_in(w, id, 2 * H);
    pass_to(w, from + H / 2);
    end_job(w, job, 0);
    assert_ok(st_store_backup(st_control_store(w->ctl), w->place.second, &err));
    pass_to(w, from + H);
    assert_ok(change(w, id, from + 2 * H, false, &err));
    assert_ok(book(w, 1, from + 40 * H, from + 41 * H, &late, &err));
    pass_to(w, at);
    assert_true(sum_of(w, ST_PAY_CANCEL) > 0 && sum_of(w, ST_PAY_WINDOW) > 0);
    restore_backup(w);
    assert_int_equal(sum_of(w, ST_PAY_CANCEL), 0);
    assert_ok(book(w, 1, at + 40 * H, at + 41 * H, &next, &err));
    assert_true(next > late);
    nudge(w);
    expect_file(w, "team", NULL);
    pass_to(w, from + 9 * H);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 32 * DOLLAR);
    assert_int_equal(total_of(w, "team", NULL), 32 * DOLLAR);
    expect_joined(w, from, from + 4 * H);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_BOOKING), 2);
    forget(&s);
    expect_file(w, "team", NULL);
    expect_file(w, "", NULL);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

static void restored_while_it_is_open(void **state)
{
    restored_at(*state, NOON + 4 * H);
}

static void restored_when_it_is_over(void **state)
{
    restored_at(*state, NOON + 8 * H);
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

/* No price for bookings is no way around prices: who is inside pays as one who borrows. */
static void without_a_price_jobs_pay(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0, job;
    int64_t from = NOON + 2 * H;

    publish(w, "prices: none\ngpu: {\"*\": {reserved: 1, burst: 4}}\n");
    assert_ok(book(w, 1, from, from + 4 * H, &id, &err));
    pass_to(w, from + 1);
    job = submit_in(w, id, 2 * H);
    pass_to(w, from + H + 1);
    restart(w);
    end_job(w, job, 0);
    assert_int_equal(sum_of(w, ST_PAY_BURST), 4 * DOLLAR);
    assert_int_equal(sum_of(w, ST_PAY_WINDOW), 0);
    assert_int_equal(w->refused, 0);
    expect_sound(w);
}

/* Nor is a deadline, though room is kept for it. */
static void a_deadline_is_not_free(void **state)
{
    world *w = *state;
    st_submit_item item = {.spec = {.name = "paper",
                                    .account = "team",
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = H,
                                    .by_ms = NOON + 2 * H,
                                    .hard = true,
                                    .shape = {.gpus = 1, .types = 1, .cpu_m = 1000}},
                           .doc = "{}"};
    st_cmd_submit cmd = {.who = owner, .items = &item, .n = 1};
    st_err err = {0};
    seen s;

    st_cmd_submit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    for (int i = 1; i < 12 && st_core_job(w->ctl->core, item.id); i++)
        pass_to(w, NOON + i * H / 4);
    read_book(w, "team", &s);
    assert_true(count(&s, ST_ENTRY_USAGE) > 0);
    for (int i = 0; i < count(&s, ST_ENTRY_USAGE); i++)
        assert_int_equal(nth(&s, ST_ENTRY_USAGE, i)->basis, ST_BASIS_BURST);
    forget(&s);
    assert_true(total_of(w, "team", NULL) > 3900000);
    assert_int_equal(w->refused, 0);
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
        CASE(a_cap_refuses_a_change_at_its_new_price),
        CASE(what_is_not_delivered_is_credited),
        CASE(no_end_before_its_beginning),
        CASE(killed_in_the_middle),
        CASE(restored_while_it_is_open),
        CASE(restored_when_it_is_over),
        CASE(old_prices_charge_nothing),
        CASE(without_a_price_jobs_pay),
        CASE(a_deadline_is_not_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
