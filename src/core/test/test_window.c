/*
 * Windows of jobs: not before they begin, told in time before they end, and from slot to slot.
 */
#include "core/test/booked.h"
#include "core/timeline.h"

static void begin_one(world *w)
{
    st_policy policy = st_policy_default();
    policy.notice_ms = NOTICE;
    policy.grace_ms = GRACE;
    policy.min_run_ms = 0;
    policy.booking_share_m = policy.booking_account_share_m = 1000;
    begin(w, &policy, 1, 4);
    account(w, "a", ST_UNSET);
    account(w, "b", ST_UNSET);
}

static st_event windowed(uint64_t id, int64_t begin_ms, int64_t end_by_ms)
{
    st_event ev = job_event(id, "a");
    ev.u.job.limit_ms = ST_TIME_NEVER;
    ev.u.job.begin_ms = begin_ms;
    ev.u.job.end_by_ms = end_by_ms;
    return ev;
}

static st_job_state state_of(const world *w, uint64_t id)
{
    const st_job *job = st_core_job(w->core, id);
    assert_non_null(job);
    return job->state;
}

static int submit_fails(world *w, const st_event *ev, const char *says)
{
    st_err err = {0};
    st_effects_clear(&w->fx);
    int rc = st_core_apply(w->core, ev, w->now, &w->fx, &err);
    assert_true(rc < 0);
    assert_non_null(strstr(err.msg, says));
    assert_null(st_core_job(w->core, ev->u.job.id));
    return -rc;
}

static void test_begin(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = windowed(1, HOUR, 0);
    step(&w, &ev);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    st_reasons why = {0};
    st_err err = {0};
    assert_ok(st_core_explain(w.core, 1, &why, &err));
    assert_int_equal(why.n, 1);
    assert_int_equal(why.v[0].code, ST_WHY_WINDOW);
    assert_int_equal(why.v[0].until_ms, HOUR);
    st_vec_free(&why);
    st_timeline *tl;
    st_estimate e;
    assert_ok(st_core_timeline(w.core, &tl, &err));
    st_timeline_probe(tl, w.core, 1, &e);
    st_timeline_free(tl);
    assert_int_equal(e.start_ms, HOUR);
    run_until(&w, HOUR - 1);
    reload(&w);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    run_until(&w, HOUR);
    assert_int_equal(state_of(&w, 1), ST_JOB_RUNNING);
    assert_int_equal(st_core_job(w.core, 1)->start_ms, HOUR);
    end(&w);
}

/* It has its notice and its grace inside the window, and is over at its end; one that waits is, too. */
static void test_end_by(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = windowed(1, 0, HOUR);
    ev.u.job.yield = ST_YIELD_CHECKPOINT;
    ev.u.job.shape.gpus = 4;
    step(&w, &ev);
    assert_int_equal(state_of(&w, 1), ST_JOB_RUNNING);
    st_event other = windowed(2, 0, HOUR);
    other.u.job.shape.gpus = 4;
    step(&w, &other);
    assert_int_equal(state_of(&w, 2), ST_JOB_PENDING);
    run_until(&w, HOUR - NOTICE - GRACE - 1);
    assert_int_equal(state_of(&w, 1), ST_JOB_RUNNING);
    reload(&w);
    run_until(&w, HOUR - NOTICE - GRACE);
    assert_int_equal(state_of(&w, 1), ST_JOB_NOTIFIED);
    run_until(&w, HOUR - GRACE);
    assert_int_equal(state_of(&w, 1), ST_JOB_CHECKPOINTING);
    w.now = HOUR - GRACE + SEC;
    st_event saved = event(ST_EV_CHECKPOINTED);
    saved.u.id = 1;
    step(&w, &saved);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    assert_int_equal(st_core_job(w.core, 1)->preemptions, 0);
    assert_int_equal(state_of(&w, 2), ST_JOB_PENDING); /* too late to begin */
    run_until(&w, HOUR - 1);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    run_until(&w, HOUR);
    assert_null(st_core_job(w.core, 1));
    assert_null(st_core_job(w.core, 2));
    end(&w);
}

/* Who has not saved by then ends all the same. */
static void test_ends_unsaved(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = windowed(1, 0, HOUR);
    ev.u.job.yield = ST_YIELD_CHECKPOINT;
    step(&w, &ev);
    run_until(&w, HOUR - 1);
    assert_int_equal(state_of(&w, 1), ST_JOB_CHECKPOINTING);
    st_effects_clear(&w.fx);
    tick(&w, HOUR);
    assert_null(st_core_job(w.core, 1));
    end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = windowed(1, 2 * HOUR, HOUR);
    assert_int_equal(submit_fails(&w, &ev, "ends before it begins"), ST_EINVAL);
    ev = windowed(1, HOUR, HOUR + NOTICE + GRACE);
    assert_int_equal(submit_fails(&w, &ev, "no time to run"), ST_EINVAL);
    ev = windowed(1, INT64_MAX / 2, 0);
    assert_int_equal(submit_fails(&w, &ev, "within 10 years"), ST_ERANGE);
    ev = windowed(1, 0, 0);
    ev.u.job.slot = "nights";
    assert_int_equal(submit_fails(&w, &ev, "no series of bookings \"nights\""), ST_ENOENT);
    ev.u.job.slot = NULL;
    ev.u.job.series = 77;
    assert_int_equal(submit_fails(&w, &ev, "no series of bookings"), ST_ENOENT);
    end(&w);
}

static void book_nights(world *w, uint64_t id, const char *account, int gpus)
{
    st_window windows[] = {{HOUR, 2 * HOUR}, {3 * HOUR, 4 * HOUR}, {5 * HOUR, 6 * HOUR}};
    st_event ev = event(ST_EV_BOOK);
    ev.u.book.spec = (st_booking_spec){.id = id,
                                       .series = id,
                                       .name = "nights",
                                       .account = account,
                                       .user = "ann",
                                       .pool = -1,
                                       .tasks = 1,
                                       .gpus = gpus,
                                       .no_show_ms = ST_TIME_NEVER};
    ev.u.book.windows = windows;
    ev.u.book.nwindows = 3;
    ev.u.book.hold_ms = 600 * SEC;
    ev.u.book.confirm = true;
    step(w, &ev);
}

/* It runs in one window after the other and nowhere else, and says so when none is left. */
static void test_slot(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    book_nights(&w, 10, "a", 2);
    st_event ev = windowed(1, 0, 0);
    ev.u.job.slot = "nights";
    ev.u.job.yield = ST_YIELD_CHECKPOINT;
    ev.u.job.shape.gpus = 2;
    step(&w, &ev);
    assert_int_equal(st_core_job(w.core, 1)->booking, 10);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING); /* though two GPUs are free */
    run_until(&w, HOUR);
    assert_int_equal(state_of(&w, 1), ST_JOB_RUNNING);
    assert_int_equal(st_core_job(w.core, 1)->class, ST_CLASS_BOOKED);
    run_until(&w, 2 * HOUR - 1);
    assert_int_equal(state_of(&w, 1), ST_JOB_NOTIFIED);
    run_until(&w, 2 * HOUR);
    assert_int_equal(state_of(&w, 1), ST_JOB_CHECKPOINTING);
    w.now += SEC;
    st_event saved = event(ST_EV_CHECKPOINTED);
    saved.u.id = 1;
    step(&w, &saved);
    assert_int_equal(st_core_job(w.core, 1)->booking, 11);
    reload(&w);
    run_until(&w, 3 * HOUR - 1);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    run_until(&w, 3 * HOUR);
    assert_int_equal(state_of(&w, 1), ST_JOB_RUNNING);
    assert_true(st_core_job(w.core, 1)->saved_ms > 0);
    st_event no = event(ST_EV_BOOK_CANCEL);
    no.u.booking.id = 12;
    step(&w, &no);
    run_until(&w, 5 * HOUR);
    assert_int_equal(state_of(&w, 1), ST_JOB_PENDING);
    assert_int_equal(st_core_job(w.core, 1)->barred, ST_BAR_SLOT);
    st_reasons why = {0};
    st_err err = {0};
    assert_ok(st_core_explain(w.core, 1, &why, &err));
    assert_int_equal(why.v[0].code, ST_WHY_WINDOW);
    assert_int_equal(why.v[0].until_ms, ST_TIME_NEVER);
    st_vec_free(&why);
    end(&w);
}

static void test_slot_of_others(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    book_nights(&w, 10, "b", 2);
    st_event ev = windowed(1, 0, 0);
    ev.u.job.slot = "nights";
    assert_int_equal(submit_fails(&w, &ev, "no series of bookings"), ST_ENOENT);
    ev.u.job.slot = NULL;
    ev.u.job.series = 11;
    assert_int_equal(submit_fails(&w, &ev, "no series of bookings"), ST_ENOENT);
    book_nights(&w, 20, "a", 1);
    book_nights(&w, 30, "a", 1);
    ev.u.job.series = 0;
    ev.u.job.slot = "nights";
    assert_int_equal(submit_fails(&w, &ev, "more than one series"), ST_EINVAL);
    ev.u.job.slot = NULL;
    ev.u.job.series = 22;
    step(&w, &ev);
    assert_int_equal(st_core_job(w.core, 1)->booking, 20);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begin),        cmocka_unit_test(test_end_by),
        cmocka_unit_test(test_ends_unsaved), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_slot),         cmocka_unit_test(test_slot_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
