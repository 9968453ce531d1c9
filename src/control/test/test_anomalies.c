/*
 * Unusual days: from how many days on something is usual, what is several times that, what is too little to be told, and that
 * each is told once.
 */
#include "control/test/money.h"

/* Four dollars an hour of the one GPU that a job has. */
#define DEAR   "prices: dear\ngpu: {\"*\": {reserved: 1, burst: 4}}\n"
#define DOLLAR INT64_C(1000000)
#define M      (60 * S)

static int set_up(void **state)
{
    world *w;

    begin_at(state, NOON);
    w = *state;
    w->billing.anomaly =
        (st_anomaly_options){.times = 5, .floor_udollars = 10 * DOLLAR, .days = 14};
    w->limit_ms = ST_TIME_NEVER;
    restart(w);
    make_fleet(w);
    publish(w, DEAR);
    return 0;
}

static void go_on(world *w, int64_t ms)
{
    for (; ms > 0; ms -= M) {
        let_pass(w, M);
        nudge(w);
    }
}

/* From noon to noon: a job of so long. */
static void day_of(world *w, int64_t ms)
{
    uint64_t id = start_job(w, "{}");

    go_on(w, ms);
    end_job(w, id, 0);
    let_pass(w, DAY - ms);
    nudge(w);
}

/* The account and its user: each has a usual day of four dollars. */
static void five_times_is_unusual(void **state)
{
    world *w = *state;
    uint64_t id;

    for (int i = 0; i < 3; i++)
        day_of(w, H);
    id = start_job(w, "{}");
    go_on(w, 5 * H - 5 * M);
    assert_int_equal(w->unusual, 0);
    go_on(w, 10 * M);
    assert_int_equal(w->unusual, 2);
    go_on(w, H);
    restart(w);
    go_on(w, H);
    assert_int_equal(w->unusual, 2); /* once a day, whatever happens */
    end_job(w, id, 0);
    expect_sound(w);
}

static void two_days_are_no_habit(void **state)
{
    world *w = *state;

    day_of(w, H);
    day_of(w, H);
    day_of(w, 9 * H);
    assert_int_equal(w->unusual, 0);
    day_of(w, 9 * H); /* three are: four, four and thirty-six dollars, so four is usual */
    assert_int_equal(w->unusual, 2);
}

static void little_is_nobodys_business(void **state)
{
    world *w = *state;

    for (int i = 0; i < 3; i++)
        day_of(w, 10 * M);
    day_of(w, 2 * H); /* twelve times, and eight dollars */
    assert_int_equal(w->unusual, 0);
    day_of(w, 3 * H);
    assert_int_equal(w->unusual, 2);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, end)
    const struct CMUnitTest tests[] = {
        CASE(five_times_is_unusual),
        CASE(two_days_are_no_habit),
        CASE(little_is_nobodys_business),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
