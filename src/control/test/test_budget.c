/*
 * Warnings about budgets: each threshold once a month, told to whoever watches the account, and not again after a start.
 */
#include <string.h>

#include "control/notices.h"
#include "control/test/money.h"

/* Four dollars an hour of burst, of eight that are planned: 50% after one hour, 100% after two. */
#define DEAR "prices: dear\ngpu: {\"*\": {reserved: 1, burst: 4}}\n"
#define PLAN "account: team\nbudget: 8\nwarn: [50%, 100%]\n"

static int set_up(void **state)
{
    world *w;
    st_err err = {0};

    begin_at(state, NOON);
    w = *state;
    w->limit_ms = ST_TIME_NEVER;
    make_fleet(w);
    publish(w, DEAR);
    assert_ok(set_plan(w, PLAN, &err));
    return 0;
}

static void spend_an_hour(world *w)
{
    uint64_t id = start_job(w, "{}");

    let_pass(w, H);
    end_job(w, id, 0);
}

static void each_threshold_once(void **state)
{
    world *w = *state;

    spend_an_hour(w);
    assert_int_equal(w->warnings, 1);
    assert_string_equal(w->warned_account, "team");
    assert_int_equal(w->warned.threshold_bp, 5000);
    assert_int_equal(w->warned.of_udollars, 8000000);
    assert_int_equal(w->warned.spent_udollars, 4000000);
    assert_false(w->warned.of_cap);
    nudge(w);
    assert_int_equal(w->warnings, 1);
    spend_an_hour(w);
    assert_int_equal(w->warnings, 2);
    assert_int_equal(w->warned.threshold_bp, 10000);
    spend_an_hour(w);
    assert_int_equal(w->warnings, 2);
}

static void not_again_after_a_start(void **state)
{
    world *w = *state;

    spend_an_hour(w);
    assert_int_equal(w->warnings, 1);
    restart(w);
    nudge(w);
    spend_an_hour(w);
    assert_int_equal(w->warnings, 2);
    assert_int_equal(w->warned.threshold_bp, 10000);
}

/* ---- what notices were told (control/notices_budget.c) ------------------------------------------ */

static int begin_notices(st_tx *tx, void *ctx, st_err *err)
{
    (void)ctx;
    return st_notices_again(tx, NULL, err);
}

static int set_up_notices(void **state)
{
    world *w;
    st_err err = {0};

    set_up(state);
    w = *state;
    w->notices = true;
    assert_ok(in_loop(w, begin_notices, NULL, &err));
    return 0;
}

static void told_is_not_told_again(void **state)
{
    world *w = *state;

    spend_an_hour(w);
    nudge(w);
    assert_int_equal(w->warnings, 1);
    restart(w);
    nudge(w);
    nudge(w);
    assert_int_equal(w->warnings, 1);
    spend_an_hour(w);
    assert_int_equal(w->warnings, 2);
    assert_int_equal(w->warned.threshold_bp, 10000);
}

/* The process ends between the commit that passed a threshold and the next one, which would have had its row. */
static void swallowed_is_told(void **state)
{
    world *w = *state;

    w->notices = false;
    spend_an_hour(w);
    assert_int_equal(w->warnings, 1);
    w->notices = true;
    restart(w);
    nudge(w);
    assert_int_equal(w->warnings, 2);
    assert_int_equal(w->warned.threshold_bp, 5000);
    restart(w);
    nudge(w);
    assert_int_equal(w->warnings, 2);
}

/* A store from before it was kept: what had been passed counts as told. */
static void kept_from_the_first_start(void **state)
{
    world *w = *state;
    st_err err = {0};

    spend_an_hour(w);
    restart(w);
    w->notices = true;
    assert_ok(in_loop(w, begin_notices, NULL, &err));
    restart(w);
    nudge(w);
    assert_int_equal(w->warnings, 1);
}

static void again_in_the_next_month(void **state)
{
    world *w = *state;

    spend_an_hour(w);
    let_pass(w, 31 * DAY);
    nudge(w);
    assert_int_equal(w->warnings, 1);
    spend_an_hour(w);
    assert_int_equal(w->warnings, 2);
    assert_int_equal(w->warned.threshold_bp, 5000);
}

/* A plan with other thresholds begins anew; what is passed already is told as it comes into force. */
static void another_plan_has_its_own(void **state)
{
    world *w = *state;
    st_err err = {0};

    spend_an_hour(w);
    assert_ok(set_plan(w, "account: team\ncap: 10\nwarn: [10%, 30%, 90%]\n", &err));
    nudge(w);
    assert_int_equal(w->warnings, 3);
    assert_int_equal(w->warned.threshold_bp, 3000);
    assert_true(w->warned.of_cap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_threshold_once, set_up, end),
        cmocka_unit_test_setup_teardown(not_again_after_a_start, set_up, end),
        cmocka_unit_test_setup_teardown(told_is_not_told_again, set_up_notices, end),
        cmocka_unit_test_setup_teardown(swallowed_is_told, set_up_notices, end),
        cmocka_unit_test_setup_teardown(kept_from_the_first_start, set_up, end),
        cmocka_unit_test_setup_teardown(again_in_the_next_month, set_up, end),
        cmocka_unit_test_setup_teardown(another_plan_has_its_own, set_up, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
