/*
 * The last moment in a store: no transaction lies before it, whichever of its tables knows it. Restored from a backup, and started with
 * a clock that is behind. And the moments of commands and questions: none is before it was asked for.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "control/follower.h"
#include "control/test/money.h"

static int begin_day(void **state)
{
    return begin_at(state, NOON);
}

/* The agent says once more what it has said: a row of the log in which no event is. */
static void say_again(world *w, uint64_t job)
{
    const st_report used = {
        .kind = ST_REPORT_USED,
        .job = job,
        .stay = 1,
        .last = true,
        .used = {.has = 1u << ST_USED_HELD | 1u << ST_USED_BUSY, .v = {900, 0, 500}}};

    st_control_report(w->ctl, &used);
    nudge(w);
}

/* One job is over and another runs; the log's last row is later than the core's last event. */
static uint64_t run_two(world *w)
{
    st_event agent = {.kind = ST_EV_AGENT};
    uint64_t over, runs;

    make_fleet(w);
    make_event(w, agent); /* so nobody has its jobs unless somebody says so */
    over = start_job(w, "{}");
    runs = start_job(w, "{}");
    say_again(w, over);
    let_pass(w, 5 * S);
    end_job(w, over, 0);
    let_pass(w, 17);
    say_again(w, over);
    return runs;
}

static int see_row(void *ctx, const st_log_row *row, st_err *err)
{
    int64_t *last = ctx;

    (void)err;
    assert_true(row->at_ms >= *last);
    *last = row->at_ms;
    return 0;
}

static int see_act(void *ctx, const st_audit_row *row, st_err *err)
{
    int64_t *next = ctx;

    (void)err;
    assert_true(row->at_ms <= *next);
    *next = row->at_ms;
    return 0;
}

/* Each table by itself goes on in time; the loop must have stopped. Returns the moment of the last row of the log. */
static int64_t expect_order(world *w)
{
    const st_audit_filter all = {0};
    int64_t last = 0, next = INT64_MAX;
    st_err err = {0};

    assert_ok(st_store_log_read(st_control_store(w->ctl), 1, see_row, &last, &err));
    assert_ok(st_store_audit_list(st_control_store(w->ctl), &all, see_act, &next, &err));
    return last;
}

static void act(world *w)
{
    st_cmd_note note = {
        .who = owner, .verb = "test.act", .account = "", .target = "", .detail = NULL};
    st_err err = {0};

    st_cmd_note_init(&note);
    assert_ok(do_cmd(w, &note.cmd, &err));
}

/* A branch begins at the last row of the log, also where that row tells the core nothing: what ran has run up to there, and the
 * books take it. */
static void restored_behind_a_row_without_events(void **state)
{
    world *w = *state;
    int64_t began = w->now, last;
    const st_entry *e;
    st_err err = {0};
    seen s;

    run_two(w);
    close_control(w);
    last = w->now;
    let_pass(w, 60 * S);
    assert_ok(mark_restored(w, w->now, &err));
    assert_ok(open_control(w, &err));
    assert_int_equal(st_control_last_ms(w->ctl), last);
    accept_plan(w);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_USAGE), 2);
    e = nth(&s, ST_ENTRY_USAGE, 1);
    assert_int_equal(e->from_ms, began);
    assert_int_equal(e->to_ms, last);
    assert_int_equal(e->at_ms, last);
    forget(&s);
    expect_sound(w);
    expect_order(w);
    assert_int_equal(w->refused, 0);
}

/* So does one behind a row of the audit log that is the last thing anybody wrote. */
static void restored_behind_an_act(void **state)
{
    world *w = *state;
    st_err err = {0};

    run_two(w);
    let_pass(w, 3 * S);
    act(w);
    close_control(w);
    assert_ok(mark_restored(w, w->now, &err));
    assert_ok(open_control(w, &err));
    assert_int_equal(st_control_last_ms(w->ctl), w->now);
    accept_plan(w);
    expect_sound(w);
    assert_int_equal(expect_order(w), w->now);
}

/* `stintd --restore` says so at once, not the start behind it. */
static void a_clock_behind_the_last_row_is_refused(void **state)
{
    world *w = *state;
    st_err err = {0};

    run_two(w);
    close_control(w);
    assert_fails(mark_restored(w, w->now - 5, &err), ST_ESTATE,
                 "behind the last moment in the backup");
    assert_ok(mark_restored(w, w->now, &err));
    assert_ok(open_control(w, &err));
    let_pass(w, 3 * S);
    accept_plan(w);
    let_pass(w, 3 * S);
    act(w);
    close_control(w);
    assert_fails(mark_restored(w, w->now - 5, &err), ST_ESTATE,
                 "behind the last moment in the backup");
    assert_ok(open_control(w, &err));
}

typedef struct numbers {
    uint64_t job;
    int64_t token, account;
} numbers;

/* Of a job, a token and an account that are new. */
static numbers take_numbers(world *w, const char *name)
{
    st_cmd_token token = {.who = owner,
                          .account = "team",
                          .user = "ann",
                          .label = "",
                          .role = ST_ROLE_MEMBER,
                          .expires_ms = ST_STORE_NEVER};
    char doc[40];
    numbers ret = {.job = start_job(w, "{}")};
    st_err err = {0};

    st_cmd_token_make(&token);
    assert_ok(do_cmd(w, &token.cmd, &err));
    ret.token = token.id;
    snprintf(doc, sizeof doc, "{name: %s}", name);
    make_account(w, name, "", doc);
    ret.account = st_directory_serial(st_control_directory(w->ctl), name);
    return ret;
}

/* Whatever was numbered behind the backup keeps its number for itself, also over another start. */
static void numbers_do_not_come_back(void **state)
{
    world *w = *state;
    st_err err = {0};
    numbers lost, next;

    run_two(w);
    assert_ok(st_store_backup(st_control_store(w->ctl), w->place.second, &err));
    let_pass(w, 60 * S);
    lost = take_numbers(w, "lost");
    restore_backup(w);
    restart(w);
    let_pass(w, S); /* as many jobs as milliseconds are numbered */
    next = take_numbers(w, "next");
    assert_true(next.job > lost.job);
    assert_true(next.token > lost.token);
    assert_true(next.account > lost.account);
    expect_sound(w);
}

/* A start with a clock that is behind goes on from the last row, of the log or of the audit log. */
static void started_with_a_clock_that_is_behind(void **state)
{
    world *w = *state;
    int64_t last;
    uint64_t runs = run_two(w);

    last = w->now;
    let_pass(w, -15);
    restart(w);
    assert_int_equal(st_control_last_ms(w->ctl), last);
    end_job(w, runs, 0);
    let_pass(w, 5 * S);
    act(w);
    last = w->now;
    let_pass(w, -4 * S);
    restart(w);
    assert_int_equal(st_control_last_ms(w->ctl), last);
    act(w);
    expect_sound(w);
    expect_order(w);
}

/* ---- before it was asked for ---------------------------------------------------------------------------- */

#define ASKED 40

typedef struct asked {
    st_cmd cmd;
    int64_t asked_ms;
} asked;

static struct {
    pthread_t looks;
    int n, done, early;
    asked v[ASKED];
} asks;

static int see_moment(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)err;
    asks.early += tx->now < ((asked *)cmd)->asked_ms;
    return 0;
}

static void count_done(st_cmd *cmd, const st_err *err)
{
    (void)cmd;
    (void)err;
    __atomic_add_fetch(&asks.done, 1, __ATOMIC_RELEASE);
}

/* The loop has read the clock; before it does anything else time goes on, and somebody asks. */
static void ask_late(world *w)
{
    asked *a;

    if (pthread_equal(pthread_self(), asks.looks) || asks.n == ASKED)
        return;
    let_pass(w, 3);
    a = &asks.v[asks.n++];
    *a = (asked){.cmd = {.run = see_moment, .done = count_done}, .asked_ms = w->now};
    assert_true(st_control_post(w->ctl, &a->cmd));
}

static void nothing_is_dated_before_it_was_asked(void **state)
{
    world *w = *state;

    asks.looks = pthread_self();
    __atomic_store_n(&w->when_read, ask_late, __ATOMIC_RELEASE);
    nudge(w);
    while (__atomic_load_n(&asks.done, __ATOMIC_ACQUIRE) < ASKED)
        sched_yield();
    __atomic_store_n(&w->when_read, NULL, __ATOMIC_RELEASE);
    assert_int_equal(asks.early, 0);
    expect_sound(w);
}

static int see_rate(st_tx *tx, void *ctx, st_err *err)
{
    st_window_price price;
    int64_t now = st_tx_now(tx);

    (void)err;
    st_ledger_window_price(st_tx_ledger(tx), "team", "h100", 1000, now + H, now + 2 * H, now,
                           &price);
    *(int64_t *)ctx = price.priced ? price.rate / 1000000 : 0;
    return 0;
}

static int read_rate(void *ctx, st_tx *tx, st_err *err)
{
    return see_rate(tx, ctx, err);
}

/* Prices and plans from now on are in force for whoever asks behind the answer, though the clock has not moved. */
static void what_is_said_is_so(void **state)
{
    world *w = *state;
    st_err err = {0};

    make_fleet(w);
    for (int i = 1; i < 5; i++) {
        int64_t in_loop_rate = 0, read = 0;
        char text[100];

        snprintf(text, sizeof text,
                 "prices: b%d\ngpu: {\"*\": {reserved: 1, burst: 3, booking: %d}}\n", i, i * 3600);
        publish(w, text);
        let_pass(w, -10); /* what publishing lets pass */
        assert_ok(st_control_read(w->ctl, ST_READ_SHARED, 0, read_rate, &read, NULL, &err));
        assert_ok(in_loop(w, see_rate, &in_loop_rate, &err));
        assert_int_equal(read, in_loop_rate);
        assert_int_equal(read, i * 3600);
    }
    expect_sound(w);
}

/* However much is said within a moment, time stays near the clock. */
static void time_stays_near_the_clock(void **state)
{
    world *w = *state;
    st_err err = {0};

    make_account(w, "team", "", "{name: team}");
    for (int i = 0; i < 200; i++) {
        assert_ok(set_plan(w, "account: team\ncap: 20\n", &err));
        let_pass(w, -10); /* what it lets pass */
    }
    assert_in_range(st_control_now(w->ctl), w->now + 1, w->now + 100);
    let_pass(w, S);
    assert_int_equal(st_control_now(w->ctl), w->now);
    expect_sound(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(restored_behind_a_row_without_events, begin_day, end),
        cmocka_unit_test_setup_teardown(restored_behind_an_act, begin_day, end),
        cmocka_unit_test_setup_teardown(a_clock_behind_the_last_row_is_refused, begin_day, end),
        cmocka_unit_test_setup_teardown(numbers_do_not_come_back, begin_day, end),
        cmocka_unit_test_setup_teardown(started_with_a_clock_that_is_behind, begin_day, end),
        cmocka_unit_test_setup_teardown(nothing_is_dated_before_it_was_asked, begin_day, end),
        cmocka_unit_test_setup_teardown(what_is_said_is_so, begin_day, end),
        cmocka_unit_test_setup_teardown(time_stays_near_the_clock, begin_day, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
