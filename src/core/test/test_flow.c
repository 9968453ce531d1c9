/*
 * Jobs that wait for others, holds, throttles and retries (core/flow.h): what scenarios do not show.
 */
#include "core/flow.h"
#include "core/test/world.h"

#define CHAIN 100000

static void begin_one(world *w)
{
    begin(w, NULL, 1, 4);
    account(w, "a", ST_UNSET);
}

static st_event after_event(uint64_t id, const st_await *afters, int n)
{
    st_event ev = job_event(id, "a");
    ev.u.job.afters = afters;
    ev.u.job.nafters = n;
    return ev;
}

static st_event array_event(uint64_t id, uint64_t array, int throttle)
{
    st_event ev = job_event(id, "a");
    ev.u.job.array = array;
    ev.u.job.throttle = throttle;
    return ev;
}

static void refused(world *w, const st_event *ev, int code, const char *says)
{
    st_err err = {0};
    st_effects_clear(&w->fx);
    assert_fails(st_core_step(w->core, ev, w->now, &w->fx, &err), code, says);
    assert_int_equal(w->fx.list.n, 0);
}

static void fail_job(world *w, uint64_t id)
{
    st_event ev = id_event(ST_EV_FINISH, id);
    ev.u.finish.failed = true;
    step(w, &ev);
}

static void same_when_loaded(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0}, two = {0};
    st_core *copy;
    st_err err = {0};
    st_core_save(w->core, &one);
    assert_ok(st_core_load(one.s, one.n, &copy, &err));
    st_core_save(copy, &two);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.s, two.s, one.n);
    st_core_free(w->core);
    w->core = copy;
}

/* A chain breaks at its beginning: all end, so many at a moment and no more, also when loaded in between. */
static void test_chain(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    submit(&w, 1, "a");
    for (uint64_t id = 2; id <= CHAIN; id++) {
        st_await after = {.id = id - 1, .how = ST_AFTER_OK};
        st_event ev = after_event(id, &after, 1);
        step(&w, &ev);
    }
    assert_int_equal(w.core->idle.n, CHAIN - 1);
    assert_int_equal(w.core->off.n, 0); /* what a pass goes through */
    fail_job(&w, 1);
    size_t most = w.fx.list.n, steps = 1;
    assert_in_range(most, 2, 300);
    while (st_core_njobs(w.core) > 0) {
        assert_int_equal(st_core_next_timer(w.core), w.now + 1);
        tick(&w, w.now + 1);
        assert_in_range(w.fx.list.n, 1, most);
        if (steps++ == 7)
            same_when_loaded(&w);
        assert_in_range(steps, 1, CHAIN / 100);
    }
    end(&w);
}

/* Thirty thousand wait for one: what happens meanwhile looks at none of them. */
static void test_many_wait(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    submit(&w, 1, "a");
    for (uint64_t id = 2; id <= 30000; id++) {
        st_await after = {.id = 1};
        st_event ev = after_event(id, &after, 1);
        step(&w, &ev);
    }
    assert_int_equal(w.core->idle.n, 29999);
    submit(&w, 40000, "a");
    assert_non_null(effect(&w, ST_FX_START, 40000));
    assert_int_equal(w.core->off.n, 0);
    tell(&w, ST_EV_FINISH, 1);
    assert_int_equal(w.core->idle.n, 0);
    in_state(&w, 2, ST_JOB_RUNNING); /* in order of ids, as far as there is room */
    in_state(&w, 4, ST_JOB_RUNNING);
    in_state(&w, 5, ST_JOB_PENDING);
    end(&w);
}

/* Who comes and goes leaves nothing behind for the one they wait for. */
static void test_no_leak(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    submit(&w, 1, "a");
    for (uint64_t id = 2; id < 20000; id++) {
        st_await after = {.id = 1};
        st_event ev = after_event(id, &after, 1);
        step(&w, &ev);
        tell(&w, ST_EV_CANCEL, id);
        assert_in_range(w.core->waiters.rows.n, 0, 2000);
    }
    st_event ev = array_event(20000, 20000, 1);
    step(&w, &ev);
    ev = array_event(20001, 20000, 1);
    step(&w, &ev);
    for (int i = 0; i < 1000; i++) {
        st_event hold = event(ST_EV_HOLD);
        hold.u.hold.id = 20001;
        hold.u.hold.on = i % 2 == 0;
        hold.u.hold.by = 1;
        step(&w, &hold);
        assert_in_range(st_array_find(w.core, 20000)->ready.n, 0, 200);
    }
    end(&w);
}

static void test_refused(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    submit(&w, 1, "a");
    st_event ev = array_event(2, 2, 1);
    step(&w, &ev);
    st_await after = {.id = 9};
    ev = after_event(3, &after, 1);
    refused(&w, &ev, ST_ENOENT, "does not exist or is over");
    after = (st_await){.id = 1, .array = true};
    refused(&w, &ev, ST_ENOENT, "array 1, which it waits for");
    after = (st_await){.id = 1, .how = ST_AFTER_COUNT};
    refused(&w, &ev, ST_EINVAL, "unknown end");
    after = (st_await){.id = 2, .array = true};
    ev =
        array_event(3, 2, 1); /* of an array for that array, or one of it: it would wait for ever */
    ev.u.job.afters = &after;
    ev.u.job.nafters = 1;
    refused(&w, &ev, ST_EINVAL, "what was there before it");
    after.array = false;
    refused(&w, &ev, ST_EINVAL, "what was there before it");
    submit(&w, 4, "a");
    after = (st_await){.id = 4}; /* 4 came after the array, which goes on growing */
    ev = array_event(5, 2, 1);
    ev.u.job.afters = &after;
    ev.u.job.nafters = 1;
    refused(&w, &ev, ST_EINVAL, "not for anything later");
    ev = job_event(6, "a");
    ev.u.job.nafters = ST_AFTER_MAX + 1;
    refused(&w, &ev, ST_ERANGE, "at most 64");
    ev = job_event(6, "a");
    ev.u.job.throttle = 3;
    refused(&w, &ev, ST_ERANGE, "number of jobs of an array");
    ev = job_event(6, "a");
    ev.u.job.retry = (st_retries){.times = ST_RETRY_MAX + 1, .wait_ms = SEC, .most_ms = SEC};
    refused(&w, &ev, ST_ERANGE, "0 to 100 times");
    ev.u.job.retry = (st_retries){.times = 1, .wait_ms = 1, .most_ms = SEC};
    refused(&w, &ev, ST_ERANGE, "at least 1s");
    ev.u.job.retry = (st_retries){.wait_ms = SEC, .most_ms = SEC};
    refused(&w, &ev, ST_EINVAL, "how often");
    ev = event(ST_EV_ARRAY);
    ev.u.array.id = 1;
    refused(&w, &ev, ST_ENOENT, "array 1 does not exist");
    ev = event(ST_EV_HOLD);
    ev.u.hold.id = 1;
    ev.u.hold.on = true;
    ev.u.hold.by = 1;
    refused(&w, &ev, ST_ESTATE, "only a job that waits");
    end(&w);
}

/* One that is done too late for its node, and is told so when it waits again, is tried again all the same. */
static void test_retry_of_a_gang(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event agent = event(ST_EV_AGENT);
    step(&w, &agent);
    st_event ev = job_event(1, "a");
    ev.u.job.tasks = 2;
    ev.u.job.retry = (st_retries){.times = 1, .wait_ms = SEC, .most_ms = SEC};
    step(&w, &ev);
    st_await after = {.id = 1, .how = ST_AFTER_OK};
    ev = after_event(2, &after, 1);
    step(&w, &ev);
    fail_job(&w, 1); /* the other task is still there */
    in_state(&w, 1, ST_JOB_STOPPING);
    same_when_loaded(&w);
    st_event gone = event(ST_EV_GONE);
    gone.u.gone.id = 1;
    step(&w, &gone);
    const st_effect *again = effect(&w, ST_FX_RETRY, 1);
    assert_non_null(again);
    assert_int_equal(again->until_ms, w.now + SEC);
    assert_int_equal(again->unsaved_ms, 0);
    same_when_loaded(&w);
    tick(&w, w.now + SEC);
    in_state(&w, 1, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, 1)->stay, 2);
    fail_job(&w, 1); /* that was the last */
    step(&w, &gone);
    assert_null(st_core_job(w.core, 1));
    assert_null(st_core_job(w.core, 2));
    const st_effect *over = effect(&w, ST_FX_END, 2);
    assert_int_equal(over->state, ST_JOB_CANCELLED);
    assert_int_equal(over->never, 1);
    end(&w);
}

/* A failure that is final, and a cancel, are the last of it however many tries are left. */
static void test_no_retry(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    for (uint64_t id = 1; id <= 2; id++) {
        st_event ev = job_event(id, "a");
        ev.u.job.retry = (st_retries){.times = 9, .wait_ms = SEC, .most_ms = SEC};
        step(&w, &ev);
    }
    st_event ev = id_event(ST_EV_FINISH, 1);
    ev.u.finish.failed = ev.u.finish.final = true;
    step(&w, &ev);
    assert_int_equal(effect(&w, ST_FX_END, 1)->state, ST_JOB_FAILED);
    fail_job(&w, 2);
    tell(&w, ST_EV_CANCEL, 2);
    assert_int_equal(effect(&w, ST_FX_END, 2)->state, ST_JOB_CANCELLED);
    end(&w);
}

/* What one strength holds no weaker one releases; and a stronger one may take it over. */
static void test_hold_strength(void **state)
{
    (void)state;
    world w;
    begin_one(&w);
    st_event ev = job_event(1, "a");
    ev.u.job.held_by = 1;
    step(&w, &ev);
    st_event hold = event(ST_EV_HOLD);
    hold.u.hold.id = 1;
    hold.u.hold.on = true;
    hold.u.hold.by = 5;
    step(&w, &hold);
    hold.u.hold.by = 2; /* no weaker for it */
    step(&w, &hold);
    same_when_loaded(&w);
    hold.u.hold.on = false;
    refused(&w, &hold, ST_EPERM, "ask them");
    hold.u.hold.by = 5;
    step(&w, &hold);
    in_state(&w, 1, ST_JOB_RUNNING);
    end(&w);
}

/* What ended otherwise has, even if the array grows again and then ends as was wanted: a core that is loaded in between
 * does not know how often it has ended. */
static void test_never_is_for_good(void **state)
{
    (void)state;
    world w;
    for (int loads = 0; loads < 2; loads++) {
        begin_one(&w);
        st_event ev = array_event(5, 5, 0);
        step(&w, &ev);
        st_await after = {.id = 5, .array = true, .how = ST_AFTER_FAIL};
        ev = after_event(6, &after, 1);
        ev.u.job.keeps = true;
        step(&w, &ev);
        tell(&w, ST_EV_FINISH, 5);
        assert_int_equal(st_core_job(w.core, 6)->never, 5);
        if (loads)
            same_when_loaded(&w);
        ev = array_event(7, 5, 0);
        step(&w, &ev);
        fail_job(&w, 7);
        in_state(&w, 6, ST_JOB_PENDING);
        assert_int_equal(st_core_job(w.core, 6)->nafters, 1);
        end(&w);
    }
}

/* Whom no pass looks at changes nothing for those who wait: nobody is to look around on the next minute. */
static void test_idle_stirs_nobody(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 1);
    account(&w, "a", ST_UNSET);
    submit(&w, 1, "a");
    submit(&w, 2, "a");
    in_state(&w, 2, ST_JOB_PENDING);
    for (int minute = 1; minute <= 3; minute++)
        tick(&w, minute * 60 * SEC);
    int64_t before = st_core_next_timer(w.core);
    w.now += SEC;
    st_event ev = job_event(3, "a");
    ev.u.job.held_by = 1;
    step(&w, &ev);
    assert_int_equal(st_core_next_timer(w.core), before);
    st_core_pass(w.core, w.now, &w.fx); /* whoever looks at everybody finds the same */
    assert_int_equal(st_core_next_timer(w.core), before);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_many_wait),
        cmocka_unit_test(test_no_leak),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_retry_of_a_gang),
        cmocka_unit_test(test_no_retry),
        cmocka_unit_test(test_hold_strength),
        cmocka_unit_test(test_never_is_for_good),
        cmocka_unit_test(test_idle_stirs_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
