/*
 * What happens at caps: jobs without an end hold money by the hour, a cap stops them after a notice, or only warns, and what was
 * stopped goes on when there is room again.
 */
#include <string.h>

#include "control/test/money.h"

#define M    (60 * S)
#define DEAR "prices: dear\ngpu: {\"*\": {reserved: 1, burst: 4}}\n"

static int set_up(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = ST_TIME_NEVER;
    make_fleet(w);
    publish(w, DEAR);
    return 0;
}

static void plan(world *w, const char *text)
{
    st_err err = {0};

    assert_ok(set_plan(w, text, &err));
    nudge(w);
}

/* Time goes by with somebody looking every minute. */
static void go_on(world *w, int64_t ms)
{
    for (; ms > 0; ms -= M) {
        let_pass(w, M);
        nudge(w);
    }
}

typedef struct look {
    uint64_t id;
    bool there, barred;
    st_job_state state;
    int64_t held, deadline_ms;
    int preemptions;
} look;

static int look_in(st_tx *tx, void *ctx, st_err *err)
{
    look *l = ctx;
    const st_job *job = st_core_job(st_tx_core(tx), l->id);
    char name[ST_ID_TEXT];

    (void)err;
    l->there = job != NULL;
    if (!job)
        return 0;
    l->barred = job->barred;
    l->state = job->state;
    l->deadline_ms = job->deadline_ms;
    l->preemptions = job->preemptions;
    st_control_id_text(tx->ctl, l->id, name);
    l->held = st_ledger_held(st_tx_ledger(tx), "team", name);
    return 0;
}

static look at(world *w, uint64_t id)
{
    look l = {.id = id};
    st_err err = {0};

    assert_ok(in_loop(w, look_in, &l, &err));
    return l;
}

/* An hour and the grace at 4 dollars: 4.67, and a little for remainders. */
static void held_by_the_hour_and_renewed(void **state)
{
    world *w = *state;
    seen s;

    plan(w, "account: team\ncap: 100\n");
    uint64_t id = start_job(w, "{}");
    look l = at(w, id);
    assert_in_range(l.held, 4666666, 4668000);
    go_on(w, 20 * M);
    assert_int_equal(at(w, id).held, l.held);
    go_on(w, 15 * M); /* less than half an hour and the grace are left */
    assert_in_range(at(w, id).held, 4666666 + 2000000, 4668000 + 2334000);
    go_on(w, 6 * H);
    l = at(w, id);
    assert_int_equal(l.state, ST_JOB_RUNNING);
    assert_true(l.held > 26 * 1000000);
    read_book(w, "team", &s);
    assert_in_range(count(&s, ST_ENTRY_HOLD), 10, 15);
    assert_int_equal(count(&s, ST_ENTRY_HOLD), count(&s, ST_ENTRY_RELEASE) + 1);
    forget(&s);
    end_job(w, id, 0);
    assert_string_equal(w->capped, "");
    expect_sound(w);
}

/* Ten dollars are two and a half hours. It is told in time, and not a micro-dollar is for nothing. */
static void stopped_when_there_is_no_room(void **state)
{
    world *w = *state;
    seen s;

    plan(w, "account: team\ncap: 10\n");
    uint64_t id = start_job(w, "{}");
    go_on(w, H);
    assert_string_equal(w->capped, "");
    go_on(w, 45 * M);
    assert_string_equal(w->capped, "stops ");
    look l = at(w, id);
    assert_true(l.barred);
    go_on(w, H);
    l = at(w, id);
    assert_true(l.there && l.barred);
    assert_int_equal(l.state, ST_JOB_PENDING);
    assert_int_equal(l.held, ST_UNSET); /* it is others' to spend */
    assert_int_equal(l.preemptions, 0);
    assert_in_range(total_of(w, "team", NULL), 5000000, 10000000);
    read_book(w, "team", &s);
    assert_int_equal(count(&s, ST_ENTRY_LOST), 0); /* its account's doing */
    for (size_t i = 0; i < s.list.n; i++)
        for (int k = 0; k < s.list.v[i].nlines; k++)
            assert_int_not_equal(s.list.v[i].lines[k].what, ST_PAY_CAP);
    forget(&s);
    /* A start does not forget it, and a new month lets it go on. */
    restart(w);
    nudge(w);
    assert_true(at(w, id).barred);
    let_pass(w, 31 * DAY);
    nudge(w);
    nudge(w);
    l = at(w, id);
    assert_false(l.barred);
    assert_int_equal(l.state, ST_JOB_RUNNING);
    assert_true(l.held > 0);
    assert_non_null(strstr(w->capped, "lifted "));
    expect_sound(w);
}

/* Its notice is the plan's grace. */
static void the_grace_is_the_plans(void **state)
{
    world *w = *state;

    uint64_t id = start_job(w, "{}");
    plan(w, "account: team\ncap: 3\ngrace: 25m\n");
    look l = at(w, id);
    assert_string_equal(w->capped, "stops ");
    assert_int_equal(l.state, ST_JOB_NOTIFIED);
    assert_in_range(l.deadline_ms, w->now + 25 * M - S, w->now + 25 * M);
}

/* It ran before there was a cap: it gets a hold, or its notice; it does not run for free. */
static void a_cap_under_what_runs(void **state)
{
    world *w = *state;

    uint64_t id = start_job(w, "{}");
    go_on(w, 30 * M);
    plan(w, "account: team\ncap: 100\n");
    look l = at(w, id);
    assert_in_range(l.held, 4666666, 4668000); /* what it ran for is posted: plans are moments */
    assert_false(l.barred);
    end_job(w, id, 0);
    expect_sound(w);
}

static void a_cap_that_is_too_low_for_what_runs(void **state)
{
    world *w = *state;

    uint64_t id = start_job(w, "{}");
    go_on(w, 30 * M);
    plan(w, "account: team\ncap: 5\n");
    assert_string_equal(w->capped, "stops ");
    assert_true(at(w, id).barred);
    /* A higher one in time: it stays. */
    plan(w, "account: team\ncap: 50\n");
    look l = at(w, id);
    assert_false(l.barred);
    assert_int_equal(l.state, ST_JOB_RUNNING);
    assert_string_equal(w->capped, "stops lifted ");
    go_on(w, 4 * H);
    assert_int_equal(at(w, id).state, ST_JOB_RUNNING);
    end_job(w, id, 0);
    expect_sound(w);
}

static void one_that_only_warns(void **state)
{
    world *w = *state;

    plan(w, "account: team\ncap: 8\nat_cap: warn\n");
    uint64_t id = start_job(w, "{}");
    assert_int_equal(at(w, id).held, ST_UNSET);
    go_on(w, 3 * H);
    assert_string_equal(w->capped, "reached ");
    assert_int_equal(at(w, id).state, ST_JOB_RUNNING);
    end_job(w, id, 0);
    assert_in_range(total_of(w, "team", NULL), 11999000, 12001000); /* all of it */
    expect_sound(w);
}

/* A day's limit could cost 96 dollars. A cap of 20 that stops takes it, by the hour. */
static void stop_admits_by_the_hour(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id = 0;

    w->limit_ms = DAY;
    plan(w, "account: team\ncap: 20\n");
    assert_fails(submit(w, NULL, "{}", &id, &err), ST_EBUDGET, "could cost $96.00");
    plan(w, "account: team\ncap: 20\nat_cap: stop\n");
    id = start_job(w, "{}");
    assert_in_range(at(w, id).held, 4666666, 4668000);
    go_on(w, 2 * H);
    /* Lowered below what is spent: at once. */
    plan(w, "account: team\ncap: 7\nat_cap: stop\n");
    assert_non_null(strstr(w->capped, "stops "));
    assert_non_null(strstr(w->capped, "reached "));
    go_on(w, H);
    assert_int_equal(at(w, id).state, ST_JOB_PENDING);
    assert_in_range(total_of(w, "team", NULL), 7999000, 8001000 + 700000);
    expect_sound(w);
}

/* Those that wait do not start on money that is not there. */
static void what_waits_does_not_start(void **state)
{
    world *w = *state;

    uint64_t first = start_job(w, "{}"), second;
    for (int i = 1; i < 8; i++)
        start_job(w, "{}");
    second = start_job(w, "{}"); /* the node has eight GPUs */
    assert_int_equal(at(w, second).state, ST_JOB_PENDING);
    plan(w, "account: team\ncap: 1\n");
    assert_true(at(w, first).barred && at(w, second).barred);
    assert_non_null(strstr(w->capped, "waits "));
    end_job(w, first, 0);
    assert_int_equal(at(w, second).state, ST_JOB_PENDING);
    plan(w, "account: team\ncap: none\n");
    nudge(w);
    assert_int_equal(at(w, second).state, ST_JOB_RUNNING);
    expect_sound(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(held_by_the_hour_and_renewed, set_up, end),
        cmocka_unit_test_setup_teardown(stopped_when_there_is_no_room, set_up, end),
        cmocka_unit_test_setup_teardown(the_grace_is_the_plans, set_up, end),
        cmocka_unit_test_setup_teardown(a_cap_under_what_runs, set_up, end),
        cmocka_unit_test_setup_teardown(a_cap_that_is_too_low_for_what_runs, set_up, end),
        cmocka_unit_test_setup_teardown(one_that_only_warns, set_up, end),
        cmocka_unit_test_setup_teardown(stop_admits_by_the_hour, set_up, end),
        cmocka_unit_test_setup_teardown(what_waits_does_not_start, set_up, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
