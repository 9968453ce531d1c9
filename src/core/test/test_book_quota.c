/*
 * What accounts and pools let be booked: lengths, lead times, windows at one moment, GPU-hours ahead; parts of a pool.
 */
#include "core/test/booked.h"

static void limit(world *w, const char *name, const char *parent, st_book_limits limits)
{
    st_event ev = account_event(name, ST_UNSET);
    ev.u.account.parent = parent;
    ev.u.account.book_limits = limits;
    step(w, &ev);
}

#define NONE                                   \
    (st_book_limits)                           \
    {                                          \
        ST_UNSET, ST_UNSET, ST_UNSET, ST_UNSET \
    }

static st_book_limits with(st_book_limit kind, int64_t bound)
{
    st_book_limits l = NONE;
    int64_t *of[] = {[ST_BOOK_LIMIT_LENGTH] = &l.length_ms,
                     [ST_BOOK_LIMIT_LEAD] = &l.lead_ms,
                     [ST_BOOK_LIMIT_CONCURRENT] = &l.concurrent,
                     [ST_BOOK_LIMIT_HOURS] = &l.hours_m};
    *of[kind] = bound;
    return l;
}

/* Refused, with that in the sentence for whoever stands at `reader`. */
static void says(world *w, const st_event *ev, const char *reader, const char *text)
{
    st_event asked = *ev;
    st_err err = {0};
    if (ev->kind == ST_EV_BOOK)
        asked.u.book.spec.reader = reader;
    else
        asked.u.rebook.reader = reader;
    assert_fails(st_core_apply(w->core, &asked, w->now, &w->fx, &err), ST_ELIMIT, text);
}

/* Each limit, at its edge and one beyond it. */
static void test_edges(void **state)
{
    (void)state;
    static const struct {
        st_book_limit kind;
        int64_t bound, from, to;
        int gpus;
        const char *said;
    } rows[] = {
        {ST_BOOK_LIMIT_LENGTH, 2 * HOUR, HOUR, 3 * HOUR, 1,
         "account b may book windows of up to 2h; this one has 2h1ms"},
        {ST_BOOK_LIMIT_LEAD, 2 * HOUR, 2 * HOUR, 3 * HOUR, 1, "account b may book up to 2h ahead"},
        {ST_BOOK_LIMIT_HOURS, 4000, HOUR, 2 * HOUR, 4,
         "account b may have 4 GPU-hours booked ahead; with this window it would have 4.00"},
        {ST_BOOK_LIMIT_CONCURRENT, 0, HOUR, HOUR, 1,
         "account b may have 0 bookings at one time; with this window it would have 1"},
    };
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        world w;
        begin_two(&w);
        limit(&w, "b", NULL, with(rows[i].kind, rows[i].bound));
        if (rows[i].to > rows[i].from) {
            book(&w, 7, "b", 1, rows[i].gpus, rows[i].from, rows[i].to);
            st_event no = event(ST_EV_BOOK_CANCEL);
            no.u.booking.id = 7;
            step(&w, &no);
        }
        int64_t more = rows[i].kind == ST_BOOK_LIMIT_LEAD ? 1 : 0;
        st_window window = {rows[i].from + more, rows[i].to + 1};
        st_event ev = book_event(8, "b", 1, rows[i].gpus, &window, 1);
        assert_int_equal(refused(&w, &ev), ST_ELIMIT);
        says(&w, &ev, NULL, rows[i].said);
        run_reloaded(&w);
        assert_int_equal(refused(&w, &ev), ST_ELIMIT);
        end(&w);
    }
}

/* Those of an account above hold for all below it together; whoever may not see it learns no amounts. */
static void test_inherited(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    limit(&w, "org", NULL, with(ST_BOOK_LIMIT_HOURS, 4000));
    limit(&w, "x", "org", NONE);
    limit(&w, "y", "org", with(ST_BOOK_LIMIT_HOURS, 100000));
    book(&w, 7, "x", 1, 3, HOUR, 2 * HOUR);
    st_window window = {5 * HOUR, 6 * HOUR};
    st_event ev = book_event(8, "y", 1, 2, &window, 1);
    says(&w, &ev, "org",
         "account org may have 4 GPU-hours booked ahead; with this window it would have 5");
    says(&w, &ev, "y", "an account above yours would have more GPU-hours booked ahead than it may");
    assert_int_equal(cannot_book(&w, 8, "y", 1, 2, 5 * HOUR, 6 * HOUR), ST_ELIMIT);
    book(&w, 8, "y", 1, 1, 5 * HOUR, 6 * HOUR);
    book(&w, 9, "b", 1, 4, 5 * HOUR, 6 * HOUR); /* beside it */
    end(&w);
}

/* What has passed is not ahead: hours come back as windows are used up, and with what is cancelled. */
static void test_hours_come_back(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    limit(&w, "b", NULL, with(ST_BOOK_LIMIT_HOURS, 4000));
    book(&w, 7, "b", 1, 4, HOUR, 2 * HOUR);
    assert_int_equal(cannot_book(&w, 8, "b", 1, 2, 5 * HOUR, 6 * HOUR), ST_ELIMIT);
    run_until(&w, HOUR + HOUR / 2 - 1);
    assert_int_equal(cannot_book(&w, 8, "b", 1, 2, 5 * HOUR, 6 * HOUR), ST_ELIMIT);
    run_until(&w, HOUR + HOUR / 2);
    book(&w, 8, "b", 1, 2, 5 * HOUR, 6 * HOUR);
    end(&w);
}

/* Windows that touch are not at one moment; all windows of a series count, in a quote as well. */
static void test_concurrent(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    limit(&w, "b", NULL, with(ST_BOOK_LIMIT_CONCURRENT, 2));
    book(&w, 7, "b", 1, 1, HOUR, 3 * HOUR);
    book(&w, 8, "b", 1, 1, 2 * HOUR, 4 * HOUR);
    assert_int_equal(cannot_book(&w, 9, "b", 1, 1, 2 * HOUR, 3 * HOUR), ST_ELIMIT);
    book(&w, 9, "b", 1, 1, 3 * HOUR, 4 * HOUR);
    st_window windows[] = {{10 * HOUR, 12 * HOUR}, {10 * HOUR, 12 * HOUR}, {11 * HOUR, 13 * HOUR}};
    st_event ev = book_event(20, "b", 1, 1, windows, 3);
    assert_int_equal(refused(&w, &ev), ST_ELIMIT);
    st_book_quote quotes[3];
    st_err err = {0};
    assert_ok(st_core_quote(w.core, &ev.u.book.spec, windows, 3, quotes, &err));
    assert_int_equal(quotes[1].why, ST_BOOK_OK);
    assert_int_equal(quotes[2].why, ST_BOOK_QUOTA);
    assert_int_equal(quotes[2].over.would, 3);
    windows[2] = (st_window){12 * HOUR, 13 * HOUR};
    step(&w, &ev);
    end(&w);
}

/* A change is held to them like what is new; what is there stays when they are lowered. */
static void test_changes(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    limit(&w, "b", NULL, with(ST_BOOK_LIMIT_LENGTH, 2 * HOUR));
    book(&w, 7, "b", 1, 2, HOUR, 2 * HOUR);
    st_event ev = event(ST_EV_BOOK_CHANGE);
    ev.u.rebook.id = 7;
    ev.u.rebook.from_ms = HOUR;
    ev.u.rebook.to_ms = 4 * HOUR;
    ev.u.rebook.tasks = 1;
    assert_int_equal(refused(&w, &ev), ST_ELIMIT);
    run_until(&w, HOUR);
    assert_int_equal(booking(&w, 7)->state, ST_BOOKING_ACTIVE);
    assert_int_equal(refused(&w, &ev), ST_ELIMIT);
    ev.u.rebook.to_ms = 3 * HOUR;
    step(&w, &ev);
    limit(&w, "b", NULL, with(ST_BOOK_LIMIT_LENGTH, HOUR / 2));
    assert_int_equal(booking(&w, 7)->to_ms, 3 * HOUR);
    ev.u.rebook.to_ms = 2 * HOUR; /* less of it is always to be had */
    step(&w, &ev);
    end(&w);
}

/* What is kept for a hard deadline is booked. */
static void test_deadline(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin_two(&w);
    limit(&w, "b", NULL, with(ST_BOOK_LIMIT_LENGTH, HOUR));
    st_event ev = job_event(FIRST, "b");
    ev.u.job.limit_ms = 2 * HOUR;
    ev.u.job.by_ms = 9 * HOUR;
    ev.u.job.hard = true;
    ev.u.job.hold = 30;
    assert_fails(st_core_apply(w.core, &ev, w.now, &w.fx, &err), ST_ELIMIT,
                 "no place in the calendar can be kept for it: account b may book windows");
    ev.u.job.limit_ms = HOUR / 2;
    step(&w, &ev);
    end(&w);
}

static void rule_pool(world *w, const char *name, int64_t share_m, int64_t horizon_ms)
{
    st_event ev = pool_event(name, 0xf);
    ev.kind = ST_EV_POOL_CHANGE;
    ev.u.pool.rules.book_share_m = share_m;
    ev.u.pool.rules.book_horizon_ms = horizon_ms;
    step(w, &ev);
}

/* Two pools with a node of 4 each. */
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

static st_event in_pool(uint64_t id, int32_t pool, int gpus, const st_window *window)
{
    st_event ev = book_event(id, "b", 1, gpus, window, 1);
    ev.u.book.spec.pool = pool;
    return ev;
}

static void test_pool_share(void **state)
{
    (void)state;
    world w;
    st_window window = {HOUR, 2 * HOUR}, later = {5 * HOUR, 6 * HOUR};
    begin_pools(&w);
    rule_pool(&w, "p", 500, 0);
    st_event ev = in_pool(7, 0, 3, &window);
    says(&w, &ev, "b", "bookings may have 50 % of the GPUs of pool p at one time");
    ev = in_pool(7, 0, 2, &window);
    step(&w, &ev);
    run_reloaded(&w);
    ev = in_pool(8, 0, 1, &window);
    assert_int_equal(refused(&w, &ev), ST_ELIMIT);
    ev = in_pool(8, 0, 2, &later);
    step(&w, &ev);
    book(&w, 9, "b", 1, 3, HOUR, 2 * HOUR); /* in the other pool */
    assert_int_equal(booking(&w, 9)->plan[0].node, 1);
    ev = book_event(10, "b", 1, 2, &window, 1); /* there is room in p only beyond its share */
    assert_int_equal(refused(&w, &ev), ST_ELIMIT);
    /* What a fault takes is given back wherever there is a place. */
    set_node(&w, 1, ST_NODE_FAILED);
    assert_true(st_booking_degraded(booking(&w, 9)));
    ev = event(ST_EV_BOOK_CANCEL);
    ev.u.booking.id = 7;
    step(&w, &ev);
    tick(&w, w.now + SEC);
    assert_false(st_booking_degraded(booking(&w, 9)));
    assert_int_equal(booking(&w, 9)->plan[0].node, 0);
    end(&w);
}

static void test_pool_horizon(void **state)
{
    (void)state;
    world w;
    st_window window = {3 * HOUR, 4 * HOUR};
    begin_pools(&w);
    rule_pool(&w, "p", 0, 2 * HOUR);
    st_event ev = in_pool(7, 0, 1, &window);
    says(&w, &ev, "b", "pool p can be booked up to 2h ahead; this window begins in 3h");
    book(&w, 7, "b", 1, 4, 3 * HOUR, 4 * HOUR);
    assert_int_equal(booking(&w, 7)->plan[0].node, 1);
    run_until(&w, HOUR);
    ev = in_pool(8, 0, 1, &window);
    step(&w, &ev);
    end(&w);
}

/* An account from before there were such limits has none. */
static void test_ranges(void **state)
{
    (void)state;
    world w;
    begin_two(&w);
    st_event ev = account_event("b", ST_UNSET);
    ev.u.account.book_limits.hours_m = ST_QTY_MAX + 1;
    assert_int_equal(refused(&w, &ev), ST_ERANGE);
    ev.u.account.book_limits.hours_m = -2;
    assert_int_equal(refused(&w, &ev), ST_ERANGE);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),           cmocka_unit_test(test_inherited),
        cmocka_unit_test(test_hours_come_back), cmocka_unit_test(test_concurrent),
        cmocka_unit_test(test_changes),         cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_pool_share),      cmocka_unit_test(test_pool_horizon),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
