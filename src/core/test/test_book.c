/*
 * Bookings: what is confirmed is there, whoever was on it before.
 */
#include "core/test/booked.h"

/* From the quote to the end, with others on the devices before, in between and behind. */
static void test_life(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    submit_gpus(&w, FIRST, "a", 4, ST_TIME_NEVER);
    submit_gpus(&w, SECOND, "a", 4, ST_TIME_NEVER);
    book(&w, 7, "b", 1, 4, 2 * HOUR, 4 * HOUR);
    assert_int_equal(booking(&w, 7)->state, ST_BOOKING_CONFIRMED);
    assert_int_equal(st_core_next_timer(w.core), 2 * HOUR - LEAD);
    run_reloaded(&w);
    submit_inside(&w, INSIDE, "b", 4, 7);
    in_state(&w, INSIDE, ST_JOB_PENDING);
    run_until(&w, 2 * HOUR - LEAD - 1);
    in_state(&w, FIRST, ST_JOB_RUNNING);
    in_state(&w, SECOND, ST_JOB_RUNNING);
    run_until(&w, 2 * HOUR - LEAD);
    assert_int_equal(booking(&w, 7)->state, ST_BOOKING_PREPARING);
    int told = (job_of(&w, FIRST)->state == ST_JOB_NOTIFIED) +
               (job_of(&w, SECOND)->state == ST_JOB_NOTIFIED);
    assert_int_equal(told, 1);
    run_reloaded(&w);
    run_until(&w, 2 * HOUR - 1);
    in_state(&w, INSIDE, ST_JOB_PENDING);
    run_until(&w, 2 * HOUR);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, INSIDE)->class, ST_CLASS_BOOKED);
    assert_int_equal(booking(&w, 7)->state, ST_BOOKING_ACTIVE);
    run_reloaded(&w);
    run_until(&w, 4 * HOUR - NOTICE - 1);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    run_until(&w, 4 * HOUR - 1);
    in_state(&w, INSIDE, ST_JOB_NOTIFIED); /* nothing ends before the end */
    assert_int_equal(job_of(&w, INSIDE)->deadline_ms, 4 * HOUR);
    run_until(&w, 4 * HOUR);
    run_until(&w, 4 * HOUR + 1);
    assert_null(st_core_booking(w.core, 7));
    assert_int_equal(job_of(&w, INSIDE)->booking, 0); /* a job like others */
    assert_int_equal(st_core_fleet(w.core)->nodes.v[0]->fence, 0);
    assert_int_equal(st_core_fleet(w.core)->nodes.v[1]->fence, 0);
    end(&w);
}

/* Booked from an hour on; three borrowers are told when it closes, each with what it needs to save. */
static void test_tells_by_need(void **state)
{
    (void)state;
    world w;
    const int64_t LIMIT = 600 * SEC;
    st_policy policy = quick();
    policy.grace_limit_ms = LIMIT;
    begin(&w, &policy, 1, 4);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    static const struct {
        st_yield yield;
        int64_t grace_ms, saves_ms;
    } jobs[] = {
        {ST_YIELD_CHECKPOINT, LIMIT, LIMIT},
        {ST_YIELD_CHECKPOINT, 0, GRACE},
        {ST_YIELD_PAUSE, 10 * SEC, 10 * SEC},
        {ST_YIELD_REQUEUE, LIMIT, 0},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(jobs); i++) {
        st_event ev = job_event(i + 1, "a");
        ev.u.job.yield = jobs[i].yield;
        ev.u.job.grace_ms = jobs[i].grace_ms;
        step(&w, &ev);
        in_state(&w, i + 1, ST_JOB_RUNNING);
    }
    book(&w, 7, "b", 1, 4, HOUR, 2 * HOUR);
    int64_t close = HOUR - NOTICE - LIMIT - STOP;
    assert_int_equal(booking(&w, 7)->close_ms, close);
    run_reloaded(&w);
    run_until(&w, close - 1);
    for (size_t i = 0; i < ST_ARRAY_LEN(jobs); i++)
        in_state(&w, i + 1, ST_JOB_RUNNING);
    run_until(&w, close);
    for (size_t i = 0; i < ST_ARRAY_LEN(jobs); i++) {
        in_state(&w, i + 1, ST_JOB_NOTIFIED);
        assert_int_equal(job_of(&w, i + 1)->deadline_ms, HOUR - STOP - jobs[i].saves_ms);
    }
    run_reloaded(&w);
    run_until(&w, HOUR - STOP - LIMIT);
    in_state(&w, 1, ST_JOB_CHECKPOINTING);
    run_until(&w, HOUR - STOP - GRACE);
    in_state(&w, 2, ST_JOB_CHECKPOINTING);
    in_state(&w, 3, ST_JOB_NOTIFIED);
    run_until(&w, HOUR - STOP - 1);
    in_state(&w, 1, ST_JOB_CHECKPOINTING); /* none has said that it is done */
    in_state(&w, 3, ST_JOB_CHECKPOINTING);
    in_state(&w, 4, ST_JOB_NOTIFIED);
    run_until(&w, HOUR - STOP);
    for (size_t i = 0; i < ST_ARRAY_LEN(jobs); i++)
        in_state(&w, i + 1, ST_JOB_PENDING);
    end(&w);
}

/* A quote says how many GPUs borrowers would leave, and how many of them are its account's own. */
static void test_displaces(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    st_book_quote q;
    const st_window window = {HOUR, 2 * HOUR};
    begin_two(&w);
    submit_gpus(&w, FIRST, "a", 4, ST_TIME_NEVER);
    submit_gpus(&w, SECOND, "b", 3, ST_TIME_NEVER);
    submit_gpus(&w, 3, "b", 1, HOUR / 2); /* it will have ended */
    st_booking_spec spec = book_event(7, "a", 2, 4, &window, 1).u.book.spec;
    assert_ok(st_core_quote(w.core, &spec, &window, 1, &q, &err));
    assert_int_equal(q.why, ST_BOOK_OK);
    assert_int_equal(q.displaces_m, 7000);
    assert_int_equal(q.displaces_own_m, 4000);
    end(&w);
}

/* What is idle is lent, and given back. */
static void test_lent(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    book(&w, 7, "b", 1, 4, HOUR, 4 * HOUR);
    run_until(&w, HOUR);
    submit_gpus(&w, FIRST, "a", 4, ST_TIME_NEVER);
    submit_gpus(&w, SECOND, "a", 4, ST_TIME_NEVER);
    in_state(&w, FIRST, ST_JOB_RUNNING);
    in_state(&w, SECOND, ST_JOB_RUNNING); /* on what b has and does not use */
    w.now += 60 * SEC;
    submit_inside(&w, INSIDE, "b", 4, 7);
    assert_true(job_of(&w, INSIDE)->held);
    in_state(&w, FIRST, ST_JOB_RUNNING);
    in_state(&w, SECOND, ST_JOB_NOTIFIED);
    run_until(&w, w.now + NOTICE);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    in_state(&w, SECOND, ST_JOB_PENDING);
    tell(&w, ST_EV_FINISH, INSIDE);
    in_state(&w, SECOND, ST_JOB_RUNNING);
    end(&w);
}

/* A job of the account goes in by itself; a stranger borrows. */
static void test_by_itself(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    submit_gpus(&w, FIRST, "a", 4, ST_TIME_NEVER);
    book(&w, 7, "b", 1, 4, HOUR, 4 * HOUR);
    run_until(&w, HOUR);
    submit_gpus(&w, SECOND, "b", 4, ST_TIME_NEVER);
    assert_int_equal(job_of(&w, SECOND)->class, ST_CLASS_BOOKED);
    end(&w);
}

/* Guarantees of others, other bookings, shape and time keep a booking out; so does one for them. */
static void test_refused(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 2, 4);
    account(&w, "own", 4000);
    account(&w, "b", ST_UNSET);
    assert_int_equal(cannot_book(&w, 7, "b", 2, 4, HOUR, 2 * HOUR), ST_EOVER);
    assert_int_equal(cannot_book(&w, 7, "b", 1, 5, HOUR, 2 * HOUR), ST_EOVER);
    assert_int_equal(cannot_book(&w, 7, "nobody", 1, 4, HOUR, 2 * HOUR), ST_ENOENT);
    assert_int_equal(cannot_book(&w, 7, "b", 1, 4, 2 * HOUR, HOUR), ST_ERANGE);
    assert_int_equal(cannot_book(&w, 7, "b", 1, 4, -1, HOUR), ST_EINVAL);
    assert_int_equal(cannot_book(&w, 7, "b", 1, 4, INT64_MAX - 1, INT64_MAX), ST_ERANGE);
    assert_int_equal(cannot_book(&w, 0, "b", 1, 4, HOUR, 2 * HOUR), ST_EINVAL);
    assert_int_equal(cannot_book(&w, 7, "b", 0, 4, HOUR, 2 * HOUR), ST_ERANGE);
    book(&w, 7, "b", 1, 4, HOUR, 2 * HOUR);
    assert_int_equal(cannot_book(&w, 7, "b", 1, 4, 3 * HOUR, 4 * HOUR), ST_EEXIST);
    assert_int_equal(cannot_book(&w, 8, "b", 1, 1, HOUR, 2 * HOUR), ST_EOVER);
    book(&w, 8, "own", 1, 4, HOUR, 2 * HOUR); /* its own guarantee, on the other node */
    st_event ev = account_event("more", 1000);
    assert_int_equal(refused(&w, &ev), ST_EOVER);
    ev = state_event(0, ST_NODE_DRAINING);
    assert_int_equal(refused(&w, &ev), ST_ESTATE);
    ev.u.node_state.force = true;
    step(&w, &ev);
    ev = event(ST_EV_ACCOUNT_REMOVE);
    ev.u.account.name = "b";
    assert_int_equal(refused(&w, &ev), ST_ESTATE);
    end(&w);
}

/* All or nothing; a quote lapses. */
static void test_series(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    book(&w, 50, "a", 2, 4, 5 * HOUR, 6 * HOUR);
    st_window windows[] = {{HOUR, 2 * HOUR}, {3 * HOUR, 4 * HOUR}, {5 * HOUR, 6 * HOUR}};
    st_event ev = book_event(10, "b", 1, 4, windows, 3);
    ev.u.book.confirm = false;
    assert_int_equal(refused(&w, &ev), ST_EOVER);
    st_book_quote quotes[3];
    st_err err = {0};
    assert_ok(st_core_quote(w.core, &ev.u.book.spec, windows, 3, quotes, &err));
    assert_int_equal(quotes[0].why, ST_BOOK_OK);
    assert_int_equal(quotes[1].why, ST_BOOK_OK);
    assert_int_equal(quotes[2].why, ST_BOOK_PLACE);
    assert_true(quotes[2].later_ms > 6 * HOUR && quotes[2].later_ms < 7 * HOUR);
    windows[2] = (st_window){7 * HOUR, 8 * HOUR};
    step(&w, &ev);
    assert_int_equal(st_core_nbookings(w.core), 4);
    tick(&w, 600 * SEC);
    assert_int_equal(st_core_nbookings(w.core), 1);
    w.now += SEC;
    step(&w, &ev);
    st_event yes = event(ST_EV_BOOK_CONFIRM);
    yes.u.booking.id = 10;
    yes.u.booking.series = true;
    step(&w, &yes);
    assert_int_equal(booking(&w, 12)->state, ST_BOOKING_CONFIRMED);
    assert_int_equal(refused(&w, &yes), ST_ESTATE);
    st_event no = event(ST_EV_BOOK_CANCEL);
    no.u.booking.id = 11;
    step(&w, &no);
    assert_int_equal(refused(&w, &no), ST_ENOENT);
    no.u.booking = yes.u.booking;
    step(&w, &no);
    assert_int_equal(st_core_nbookings(w.core), 1);
    end(&w);
}

/* The plan makes way for guaranteed work, and moves when its node fails. */
static void test_moves(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 3, 4);
    account(&w, "own", 4000);
    account(&w, "b", ST_UNSET);
    book(&w, 7, "b", 1, 4, 10 * HOUR, 20 * HOUR);
    int32_t at = booking(&w, 7)->plan[0].node;
    submit_gpus(&w, FIRST, "own", 4, ST_TIME_NEVER);
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_GUARANTEED);
    assert_int_not_equal(booking(&w, 7)->plan[0].node, job_of(&w, FIRST)->grants[0].node);
    at = booking(&w, 7)->plan[0].node;
    set_node(&w, at, ST_NODE_FAILED);
    assert_int_not_equal(booking(&w, 7)->plan[0].node, at);
    assert_false(st_booking_degraded(booking(&w, 7)));
    int32_t next = booking(&w, 7)->plan[0].node;
    w.now += SEC;
    set_node(&w, next, ST_NODE_FAILED);
    assert_true(st_booking_degraded(booking(&w, 7)));
    run_reloaded(&w);
    w.now += SEC;
    set_node(&w, at, ST_NODE_READY);
    assert_false(st_booking_degraded(booking(&w, 7)));
    end(&w);
}

/* Who is inside its floor and borrows, because it sits where a booking will be that has no other place, is
 * guaranteed as soon as there is one; its own floor has nothing to do with that. */
static void makes_way_later(bool reloaded)
{
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 2, 4);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    account(&w, "own", 1000);
    account(&w, "other", 1000);
    account(&w, "third", 1000);
    submit_gpus(&w, FIRST, "other", 1, ST_TIME_NEVER);
    submit_gpus(&w, SECOND, "third", 1, ST_TIME_NEVER);
    submit_gpus(&w, LENT, "a", 2, ST_TIME_NEVER);
    book(&w, 7, "b", 1, 4, 10 * HOUR, 20 * HOUR);
    int32_t at = booking(&w, 7)->plan[0].node;
    submit_gpus(&w, INSIDE, "own", 1, ST_TIME_NEVER);
    assert_int_equal(job_of(&w, INSIDE)->grants[0].node, at);
    assert_int_equal(job_of(&w, INSIDE)->class, ST_CLASS_BURSTABLE);
    w.now += SEC;
    tell(&w, ST_EV_FINISH, SECOND); /* it is looked at again, in vain */
    assert_int_equal(job_of(&w, INSIDE)->class, ST_CLASS_BURSTABLE);
    if (reloaded)
        run_reloaded(&w);
    w.now += SEC;
    tell(&w, ST_EV_FINISH, FIRST);
    assert_int_equal(job_of(&w, INSIDE)->class, ST_CLASS_GUARANTEED);
    assert_int_not_equal(booking(&w, 7)->plan[0].node, at);
    end(&w);
}

static void test_makes_way_later(void **state)
{
    (void)state;
    makes_way_later(false);
    makes_way_later(true);
}

static void test_extend(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    book(&w, 7, "b", 2, 4, HOUR, 2 * HOUR);
    run_until(&w, HOUR);
    submit_inside(&w, INSIDE, "b", 4, 7);
    run_until(&w, 2 * HOUR - NOTICE);
    in_state(&w, INSIDE, ST_JOB_NOTIFIED);
    st_event ev = event(ST_EV_BOOK_CHANGE);
    ev.u.rebook.id = 7;
    ev.u.rebook.from_ms = HOUR;
    ev.u.rebook.to_ms = 3 * HOUR;
    ev.u.rebook.tasks = 2;
    step(&w, &ev);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, INSIDE)->class, ST_CLASS_BOOKED);
    w.now += SEC;
    book(&w, 8, "a", 2, 4, 4 * HOUR, 5 * HOUR);
    ev.u.rebook.to_ms = 4 * HOUR;
    assert_int_equal(refused(&w, &ev), ST_EOVER);
    ev.u.rebook.to_ms = w.now;
    assert_int_equal(refused(&w, &ev), ST_ERANGE);
    end(&w);
}

/* Others leave for it already, and it has not begun: its end stays behind its beginning. */
static void test_end_before_beginning(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    book(&w, 7, "b", 2, 4, HOUR, 2 * HOUR);
    run_until(&w, booking(&w, 7)->close_ms + SEC);
    assert_true(booking(&w, 7)->open && w.now < HOUR);
    st_event ev = event(ST_EV_BOOK_CHANGE);
    ev.u.rebook.id = 7;
    ev.u.rebook.from_ms = HOUR;
    ev.u.rebook.to_ms = HOUR - SEC;
    ev.u.rebook.tasks = 2;
    assert_int_equal(refused(&w, &ev), ST_ERANGE);
    ev.u.rebook.to_ms = HOUR;
    assert_int_equal(refused(&w, &ev), ST_ERANGE);
    assert_int_equal(booking(&w, 7)->to_ms, 2 * HOUR);
    end(&w);
}

static void test_no_show(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    st_window window = {HOUR, 3 * HOUR};
    st_event ev = book_event(7, "b", 1, 4, &window, 1);
    ev.u.book.spec.no_show_ms = 600 * SEC;
    step(&w, &ev);
    run_until(&w, HOUR + 599 * SEC);
    assert_non_null(st_core_booking(w.core, 7));
    run_until(&w, HOUR + 600 * SEC);
    assert_null(st_core_booking(w.core, 7));
    end(&w);
}

static st_policy little_by_little(void)
{
    st_policy policy = quick();
    policy.reservations = policy.urgent = 0;
    policy.min_run_ms = 100 * HOUR;
    policy.claim_effort = 1;
    return policy;
}

/* Owners look for room, each for another: the pass stops in the middle of the round. */
static void stop_in_between(world *w)
{
    st_err err = {0};
    for (int i = 0; i < 6; i++) {
        st_event ev = job_event((uint64_t)(10 + i), "own");
        ev.u.job.shape.cpu_m = 1000 * (i + 1);
        assert_ok(st_core_apply(w->core, &ev, w->now, &w->fx, &err));
    }
    tick(w, w->now + 1);
    assert_true(st_core_resumes(w->core));
}

static void load_other(const world *w, world *ret)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_err err = {0};
    *ret = (world){.now = w->now};
    st_core_save(w->core, &bytes);
    assert_ok(st_core_load(bytes.s, bytes.n, &ret->core, &err));
}

static void same_save(const world *a, const world *b)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf two = {0};
    st_core_save(a->core, &one);
    st_core_save(b->core, &two);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.s, two.s, one.n);
}

/* While a round is not over somebody comes for a booking: it enters when that is, in a core that was saved in
 * between as well. */
static void test_comes_meanwhile(void **state)
{
    (void)state;
    world w, other;
    st_policy policy = little_by_little();
    begin(&w, &policy, 2, 2);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    account(&w, "own", 2000);
    book(&w, 7, "b", 1, 2, HOUR, 2 * HOUR);
    run_until(&w, HOUR);
    submit(&w, FIRST, "a");
    submit(&w, SECOND, "a");
    stop_in_between(&w);
    submit_inside(&w, INSIDE, "b", 1, 7);
    in_state(&w, INSIDE, ST_JOB_PENDING);
    load_other(&w, &other);
    while (st_core_resumes(w.core) || st_core_resumes(other.core)) {
        tick(&w, w.now + 1);
        tick(&other, other.now + 1);
        assert_int_equal(job_of(&w, INSIDE)->state, job_of(&other, INSIDE)->state);
    }
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    same_save(&w, &other);
    end(&other);
    end(&w);
}

/* Who has waited in the queue before a booking took it has no turn there when it waits for the booking again:
 * a core that was loaded meanwhile knows of none. */
static void test_no_turn_inside(void **state)
{
    (void)state;
    world w, other;
    st_policy policy = little_by_little();
    begin(&w, &policy, 3, 2);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    account(&w, "own", 2000);
    for (uint64_t id = 20; id < 26; id++)
        submit(&w, id, "a");
    w.now = SEC;
    st_event ev = job_event(INSIDE, "b");
    ev.u.job.priority = 5;
    step(&w, &ev);
    in_state(&w, INSIDE, ST_JOB_PENDING);
    book(&w, 7, "b", 1, 2, HOUR, 2 * HOUR);
    run_until(&w, HOUR);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, INSIDE)->booking, 7);
    load_other(&w, &other);
    int32_t node = booking(&w, 7)->plan[0].node;
    world *both[] = {&w, &other};
    for (size_t i = 0; i < ST_ARRAY_LEN(both); i++) {
        set_node(both[i], node, ST_NODE_FAILED);
        in_state(both[i], INSIDE, ST_JOB_PENDING);
        stop_in_between(both[i]);
    }
    same_save(&w, &other);
    end(&other);
    end(&w);
}

/* A booking without a place begins, and the round in which the one on its only place is no longer guaranteed is
 * stopped: it has its place before anybody looked for room, and the same moment again changes nothing. */
static void test_mended_before_a_stop(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    policy.swap = 1;
    policy.claim_effort = 1;
    begin(&w, &policy, 2, 2);
    account(&w, "a", ST_UNSET);
    account(&w, "own", 2000);
    submit_gpus(&w, FIRST, "own", 2, ST_TIME_NEVER);
    book(&w, 7, "own", 1, 2, HOUR, 2 * HOUR); /* in place of its guarantee */
    set_node(&w, booking(&w, 7)->plan[0].node, ST_NODE_FAILED);
    for (int i = 0; i < 4; i++) { /* they look for room, each for another */
        st_event ev = job_event((uint64_t)(10 + i), "a");
        ev.u.job.shape.cpu_m = 1000 * (i + 1);
        step(&w, &ev);
    }
    run_until(&w, HOUR - LEAD - 1);
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_GUARANTEED);
    assert_true(st_booking_degraded(booking(&w, 7)));
    tick(&w, HOUR - LEAD);
    assert_int_equal(job_of(&w, FIRST)->class, ST_CLASS_BURSTABLE);
    assert_true(st_core_resumes(w.core));
    assert_false(st_booking_degraded(booking(&w, 7)));
    tick(&w, w.now);
    assert_int_equal(w.fx.list.n, 0);
    end(&w);
}

/* Who has been told to leave may be let stay, and is guaranteed then: no booking is moved to its place. */
static void test_not_where_one_may_stay(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 2, 2);
    account(&w, "b", ST_UNSET);
    account(&w, "own", 1000);
    book(&w, 7, "b", 1, 2, 10 * HOUR, 20 * HOUR);
    submit(&w, FIRST, "own");
    assert_int_not_equal(job_of(&w, FIRST)->grants[0].node, booking(&w, 7)->plan[0].node);
    st_event bar = event(ST_EV_BAR);
    bar.u.bar.id = FIRST;
    bar.u.bar.on = true;
    bar.u.bar.notice_ms = NOTICE;
    step(&w, &bar);
    in_state(&w, FIRST, ST_JOB_NOTIFIED);
    st_event drain = state_event(booking(&w, 7)->plan[0].node, ST_NODE_DRAINING);
    assert_int_equal(refused(&w, &drain), ST_ESTATE);
    run_until(&w, NOTICE + GRACE + STOP); /* it is gone */
    step(&w, &drain);
    assert_false(st_booking_degraded(booking(&w, 7)));
    end(&w);
}

/* A job that may not borrow, and that only a booking keeps out, is told no start. */
static void test_no_promise_behind_a_booking(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 1, 1);
    st_event ev = pool_event("q", 0xf);
    step(&w, &ev);
    ev = node_event("n1", 1); /* carries the floor, and the job may not go there */
    ev.u.node.pool = 1;
    step(&w, &ev);
    account(&w, "b", ST_UNSET);
    ev = account_event("own", ST_UNSET);
    ev.u.account.guarantee.cpu_m = 1000;
    ev.u.account.weight_m = 0;
    step(&w, &ev);
    st_window window = {10 * HOUR, 20 * HOUR};
    ev = book_event(7, "b", 1, 1, &window, 1);
    ev.u.book.spec.pool = 0;
    step(&w, &ev);
    ev = job_event(FIRST, "own");
    ev.u.job.pool = 0;
    ev.u.job.shape.gpus = 0;
    ev.u.job.shape.cpu_m = 500;
    step(&w, &ev);
    in_state(&w, FIRST, ST_JOB_PENDING);
    st_reserved_list list = {0};
    st_core_reserved(w.core, &list);
    assert_int_equal(list.n, 0);
    st_vec_free(&list);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_tells_by_need),
        cmocka_unit_test(test_displaces),
        cmocka_unit_test(test_lent),
        cmocka_unit_test(test_by_itself),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_extend),
        cmocka_unit_test(test_end_before_beginning),
        cmocka_unit_test(test_no_show),
        cmocka_unit_test(test_makes_way_later),
        cmocka_unit_test(test_comes_meanwhile),
        cmocka_unit_test(test_mended_before_a_stop),
        cmocka_unit_test(test_no_turn_inside),
        cmocka_unit_test(test_not_where_one_may_stay),
        cmocka_unit_test(test_no_promise_behind_a_booking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
