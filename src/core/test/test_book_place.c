/*
 * Where bookings are: whose place they may take, and who may sit where one will be.
 */
#include "core/test/booked.h"

/* The pool of node n0 comes to allow no whole GPUs. */
static st_event no_whole_event(void)
{
    st_event ev = pool_event("p", 0xf & ~(1u << ST_LEVEL_WHOLE));
    ev.kind = ST_EV_POOL_CHANGE;
    return ev;
}

static void begin_pools(world *w)
{
    st_policy policy = quick();
    begin(w, &policy, 1, 4);
    st_event ev = pool_event("q", 0xf);
    step(w, &ev);
    ev = node_event("n1", 4);
    ev.u.node.pool = 1;
    step(w, &ev);
    account(w, "b", ST_UNSET);
}

/* Bookings are of whole GPUs: where a pool gives out none any more they move, or the change is refused. */
static void test_pool_without_whole(void **state)
{
    (void)state;
    world w;
    st_event change = no_whole_event();
    begin_pools(&w);
    book(&w, 7, "b", 1, 4, 2 * HOUR, 4 * HOUR);
    assert_int_equal(booking(&w, 7)->plan[0].node, 0);
    book(&w, 8, "b", 1, 4, 2 * HOUR, 4 * HOUR);
    assert_int_equal(refused(&w, &change), ST_ESTATE);
    assert_int_equal(booking(&w, 7)->plan[0].node, 0);
    st_event no = event(ST_EV_BOOK_CANCEL);
    no.u.booking.id = 8;
    step(&w, &no);
    step(&w, &change);
    assert_int_equal(booking(&w, 7)->plan[0].node, 1);
    submit_inside(&w, INSIDE, "b", 4, 7);
    run_until(&w, 2 * HOUR);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    end(&w);
}

/* By force the change is made, the booking says that it is degraded, and it is whole again when there is a place. */
static void test_pool_by_force(void **state)
{
    (void)state;
    world w;
    st_event change = no_whole_event(), no = event(ST_EV_BOOK_CANCEL);
    begin_pools(&w);
    book(&w, 7, "b", 1, 4, 2 * HOUR, 4 * HOUR);
    book(&w, 8, "b", 1, 4, 2 * HOUR, 4 * HOUR);
    change.u.pool.force = true;
    step(&w, &change);
    assert_true(st_booking_degraded(booking(&w, 7)));
    assert_false(st_booking_degraded(booking(&w, 8)));
    no.u.booking.id = 8;
    step(&w, &no);
    assert_false(st_booking_degraded(booking(&w, 7)));
    assert_int_equal(booking(&w, 7)->plan[0].node, 1);
    end(&w);
}

/* A job without GPUs stays on a node by its right. What it uses of the CPU is in no plan, however many GPUs are
 * free. */
static void test_plans_count_cpu(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 0, 0);
    st_event ev = node_event("n0", 2);
    step(&w, &ev);
    ev = account_event("a", ST_UNSET);
    ev.u.account.guarantee.cpu_m = 4000;
    step(&w, &ev);
    account(&w, "b", ST_UNSET);
    ev = job_event(FIRST, "a");
    ev.u.job.shape.gpus = 0;
    ev.u.job.shape.cpu_m = 125;
    step(&w, &ev);
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_GUARANTEED);
    ev = node_event("n1", 3);
    step(&w, &ev);
    st_window window = {2 * HOUR, 4 * HOUR};
    ev = book_event(7, "b", 2, 1, &window, 1);
    ev.u.book.spec.topo = ST_TOPO_NVLINK; /* the tightest place of all */
    step(&w, &ev);
    const st_grant *plan = booking(&w, 7)->plan;
    assert_false(plan[0].node == 0 && plan[1].node == 0);
    account(&w, "c", 1000); /* floors are looked at anew */
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_GUARANTEED);
    end(&w);
}

/* Whose account must not borrow waits for the place that is held for it, though another is free until a booking
 * begins there. */
static void test_held_not_elsewhere(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 2, 2);
    st_event ev = node_event("n2", 1);
    step(&w, &ev);
    account(&w, "a", ST_UNSET);
    ev = account_event("own", 1000);
    ev.u.account.weight_m = 0;
    step(&w, &ev);
    submit_gpus(&w, 20, "a", 2, ST_TIME_NEVER);
    submit_gpus(&w, 21, "a", 2, ST_TIME_NEVER);
    submit(&w, 22, "a");
    book(&w, 7, "a", 2, 2, HOUR, 2 * HOUR);
    w.now = SEC;
    submit(&w, FIRST, "own");
    assert_true(job_of(&w, FIRST)->held);
    assert_int_equal(job_of(&w, FIRST)->grants[0].node, 2);
    tell(&w, ST_EV_FINISH, 20);
    assert_true(job_of(&w, FIRST)->held);
    run_until(&w, w.now + NOTICE + GRACE);
    in_state(&w, FIRST, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_GUARANTEED);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_without_whole),
        cmocka_unit_test(test_pool_by_force),
        cmocka_unit_test(test_plans_count_cpu),
        cmocka_unit_test(test_held_not_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
