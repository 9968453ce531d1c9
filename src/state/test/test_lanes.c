/*
 * Lanes of commands: order inside one, turns between them by the time they took.
 */
#include "base/testing.h"
#include "state/lanes.h"

#define ALL UINT64_MAX

static st_cmd *of(st_cmd *cmd, int32_t lane)
{
    *cmd = (st_cmd){.lane = lane};
    return cmd;
}

/* Forty of one organisation and one of another that comes last: it waits for one of them. */
static void one_waits_a_turn(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd many[40], one;

    (void)state;
    for (int i = 0; i < 40; i++)
        assert_true(st_lanes_put(q, of(&many[i], 1)));
    assert_ptr_equal(st_lanes_next(q, ALL, true), &many[0]);
    assert_true(st_lanes_put(q, of(&one, 2))); /* while the first runs */
    st_lanes_took(q, &many[0], 5000);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &one);
    st_lanes_took(q, &one, 10);
    for (int i = 1; i < 40; i++) {
        assert_ptr_equal(st_lanes_next(q, ALL, true), &many[i]);
        st_lanes_took(q, &many[i], 5000);
    }
    assert_null(st_lanes_next(q, ALL, true));
    assert_int_equal(st_lanes_count(q), 0);
    st_lanes_free(q);
}

/* Cheap and dear commands: lanes have the same time, not the same number. */
static void time_is_shared(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd dear[50], cheap[1000];
    int n[3] = {0};

    (void)state;
    for (int i = 0; i < 50; i++)
        st_lanes_put(q, of(&dear[i], 1));
    for (int i = 0; i < 1000; i++)
        st_lanes_put(q, of(&cheap[i], 2));
    for (int64_t us = 0; us < 200000;) {
        st_cmd *cmd = st_lanes_next(q, ALL, true);
        int64_t took = cmd->lane == 1 ? 9980 : 180;

        n[cmd->lane]++;
        us += took;
        st_lanes_took(q, cmd, took);
    }
    assert_in_range(n[1], 9, 12); /* half of 200 ms at 10 ms each */
    assert_in_range(n[2], 450, 550);
    while (st_lanes_next(q, ALL, true))
        ;
    st_lanes_free(q);
}

/* Who was silent has no claim to the time it did not use, nor a debt from long ago. */
static void silence_saves_nothing(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd a, b, again[4];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        st_lanes_put(q, of(&a, 1));
        st_lanes_took(q, st_lanes_next(q, ALL, true), 1000);
    }
    for (int i = 0; i < 4; i++)
        st_lanes_put(q, of(&again[i], 2));
    st_lanes_put(q, of(&b, 1));
    /* 2 is new: it goes first once, then they take turns. */
    assert_ptr_equal(st_lanes_next(q, ALL, true), &again[0]);
    st_lanes_took(q, &again[0], 5000);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &b);
    st_lanes_took(q, &b, 100);
    while (st_lanes_next(q, ALL, true))
        ;
    st_lanes_free(q);
}

static void agents_go_first(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd tenant, agent[2];

    (void)state;
    st_lanes_put(q, of(&tenant, 7));
    for (int i = 0; i < 2; i++)
        st_lanes_put(q, of(&agent[i], ST_LANE_AGENTS));
    assert_ptr_equal(st_lanes_next(q, ALL, true), &agent[0]);
    /* A turn that is old belongs to the others; alone, agents have it all. */
    assert_ptr_equal(st_lanes_next(q, ALL, false), &tenant);
    assert_ptr_equal(st_lanes_next(q, ALL, false), &agent[1]);
    assert_null(st_lanes_next(q, ALL, false));
    st_lanes_free(q);
}

static void what_goes_on_stays_in_front(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd a, b, other;

    (void)state;
    st_lanes_put(q, of(&a, 3));
    st_lanes_put(q, of(&b, 3));
    assert_ptr_equal(st_lanes_next(q, ALL, true), &a);
    st_lanes_put_back(q, &a);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &a);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &b);
    st_lanes_put_back(q, &b);
    st_lanes_put(q, of(&a, 3));
    assert_ptr_equal(st_lanes_next(q, ALL, true), &b);
    /* While b is being worked on nothing of its lane comes between; others do. */
    st_lanes_block(q, &b);
    st_lanes_put(q, of(&other, 4));
    assert_ptr_equal(st_lanes_next(q, ALL, true), &other);
    assert_null(st_lanes_next(q, ALL, true));
    st_lanes_put_back(q, &b);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &b);
    st_lanes_block(q, &b);
    assert_null(st_lanes_next(q, ALL, true));
    st_lanes_give_up(q, &b);
    assert_ptr_equal(st_lanes_next(q, ALL, true), &a);
    st_lanes_free(q);
}

static void a_lane_is_bounded(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd *many = calloc(20000, sizeof *many), other;
    int taken = 0;

    (void)state;
    for (int i = 0; i < 20000; i++)
        taken += st_lanes_put(q, of(&many[i], 1));
    assert_in_range(taken, 1000, 19999);
    assert_true(st_lanes_put(q, of(&other, 2)));
    while (st_lanes_next(q, ALL, true))
        ;
    st_lanes_free(q);
    free(many);
}

/* A turn takes what was there when it read the clock, of agents too; what is put back keeps its number. */
static void none_that_came_later(void **state)
{
    st_lanes *q = st_lanes_new();
    st_cmd early[2], late[3], agent;
    uint64_t last;

    (void)state;
    assert_int_equal(st_lanes_last(q), 0);
    st_lanes_put(q, of(&early[0], 1));
    st_lanes_put(q, of(&early[1], 2));
    last = st_lanes_last(q);
    st_lanes_put(q, of(&late[0], 1));
    st_lanes_put(q, of(&late[1], 3)); /* its lane has had nothing, and would be the next */
    st_lanes_put(q, of(&agent, ST_LANE_AGENTS));
    assert_ptr_equal(st_lanes_next(q, last, true), &early[0]);
    st_lanes_block(q, &early[0]);
    st_lanes_put_back(q, &early[0]);
    st_lanes_put(q, of(&late[2], 2));
    assert_ptr_equal(st_lanes_next(q, last, true), &early[0]);
    st_lanes_took(q, &early[0], 5000);
    assert_ptr_equal(st_lanes_next(q, last, false), &early[1]);
    assert_null(st_lanes_next(q, last, true));
    assert_null(st_lanes_next(q, last, false));
    assert_int_equal(st_lanes_count(q), 4);
    last = st_lanes_last(q);
    assert_ptr_equal(st_lanes_next(q, last, true), &agent);
    for (int i = 0; i < 3; i++)
        assert_non_null(st_lanes_next(q, last, true));
    assert_null(st_lanes_next(q, ALL, true));
    st_lanes_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waits_a_turn),      cmocka_unit_test(time_is_shared),
        cmocka_unit_test(silence_saves_nothing), cmocka_unit_test(agents_go_first),
        cmocka_unit_test(a_lane_is_bounded),     cmocka_unit_test(what_goes_on_stays_in_front),
        cmocka_unit_test(none_that_came_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
