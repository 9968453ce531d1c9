/*
 * For the tests of bookings: a policy with short times, bookings written in a line, and time that goes from
 * timer to timer.
 */
#ifndef ST_CORE_TEST_BOOKED_H
#define ST_CORE_TEST_BOOKED_H

#include "core/test/world.h"

enum { FIRST = 1, SECOND = 2, INSIDE = 3, LENT = 4 };

#define HOUR   (3600 * SEC)
#define NOTICE (30 * SEC)
#define GRACE  (120 * SEC)
#define STOP   (60 * SEC)
#define LEAD   (NOTICE + GRACE + STOP)

static inline st_policy quick(void)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = NOTICE;
    policy.grace_ms = GRACE;
    policy.min_run_ms = 0;
    policy.rebalance = 0;
    policy.booking_share_m = policy.booking_account_share_m = 1000;
    return policy;
}

static inline st_event book_event(uint64_t id, const char *account, int tasks, int gpus,
                                  const st_window *windows, int n)
{
    st_event ev = event(ST_EV_BOOK);
    ev.u.book.spec = (st_booking_spec){.id = id,
                                       .series = n > 1 ? id : 0,
                                       .name = "slot",
                                       .account = account,
                                       .user = "ann",
                                       .pool = -1,
                                       .tasks = tasks,
                                       .gpus = gpus,
                                       .no_show_ms = ST_TIME_NEVER};
    ev.u.book.windows = windows;
    ev.u.book.nwindows = n;
    ev.u.book.hold_ms = 600 * SEC;
    ev.u.book.confirm = true;
    return ev;
}

static inline void book(world *w, uint64_t id, const char *account, int tasks, int gpus,
                        int64_t from, int64_t to)
{
    st_window window = {from, to};
    st_event ev = book_event(id, account, tasks, gpus, &window, 1);
    step(w, &ev);
}

static inline int refused(world *w, const st_event *ev)
{
    st_err err = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf before = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf after = {0};
    st_core_save(w->core, &before);
    st_effects_clear(&w->fx);
    int rc = st_core_apply(w->core, ev, w->now, &w->fx, &err);
    st_core_save(w->core, &after);
    if (rc < 0) { /* nothing has changed */
        assert_int_equal(before.n, after.n);
        assert_memory_equal(before.s, after.s, before.n);
        assert_int_equal(w->fx.list.n, 0);
    }
    return -rc;
}

static inline int cannot_book(world *w, uint64_t id, const char *account, int tasks, int gpus,
                              int64_t from, int64_t to)
{
    st_window window = {from, to};
    st_event ev = book_event(id, account, tasks, gpus, &window, 1);
    return refused(w, &ev);
}

static inline const st_booking *booking(const world *w, uint64_t id)
{
    const st_booking *b = st_core_booking(w->core, id);
    assert_non_null(b);
    return b;
}

/* Goes from timer to timer. */
static inline void run_until(world *w, int64_t to)
{
    while (st_core_next_timer(w->core) <= to)
        tick(w, ST_MAX(st_core_next_timer(w->core), w->now));
    tick(w, to);
}

/* The same world from its save. */
static inline void reload(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_err err = {0};
    st_core_save(w->core, &data);
    st_core_free(ST_TAKE(w->core));
    assert_ok(st_core_load(data.s, data.n, &w->core, &err));
}

static inline void run_reloaded(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    st_err err = {0};
    st_core_save(w->core, &data);
    st_core_free(ST_TAKE(w->core));
    assert_ok(st_core_load(data.s, data.n, &w->core, &err));
    st_core_save(w->core, &again);
    assert_int_equal(data.n, again.n);
    assert_memory_equal(data.s, again.s, data.n);
}

/* Two nodes of 4; a lends, b books. */
static inline void begin_two(world *w)
{
    st_policy policy = quick();
    begin(w, &policy, 2, 4);
    account(w, "a", ST_UNSET);
    account(w, "b", ST_UNSET);
}

static inline void submit_gpus(world *w, uint64_t id, const char *account, int gpus,
                               int64_t limit_ms)
{
    st_event ev = job_event(id, account);
    ev.u.job.shape.gpus = gpus;
    ev.u.job.limit_ms = limit_ms;
    step(w, &ev);
}

static inline void submit_inside(world *w, uint64_t id, const char *account, int gpus, uint64_t in)
{
    st_event ev = job_event(id, account);
    ev.u.job.shape.gpus = gpus;
    ev.u.job.booking = in;
    step(w, &ev);
}

#endif
