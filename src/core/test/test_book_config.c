/*
 * What a booking's nodes must have: labels, and nobody else on them.
 */
#include "core/test/booked.h"

static st_event labels_event(int32_t node, const char *text, bool force)
{
    st_event ev = event(ST_EV_LABELS);
    ev.u.labels.node = node;
    ev.u.labels.text = text;
    ev.u.labels.force = force;
    return ev;
}

static void label(world *w, int32_t node, const char *text, bool force)
{
    st_event ev = labels_event(node, text, force);
    step(w, &ev);
}

static st_event ask(uint64_t id, int tasks, int gpus, const char *require, bool dedicated)
{
    static const st_window window = {2 * HOUR, 4 * HOUR};
    st_event ev = book_event(id, "b", tasks, gpus, &window, 1);
    ev.u.book.spec.require = require;
    ev.u.book.spec.dedicated = dedicated;
    return ev;
}

static void begin_three(world *w)
{
    st_policy policy = quick();
    begin(w, &policy, 3, 4);
    account(w, "b", ST_UNSET);
    label(w, 0, "driver=550.54\n", false);
    label(w, 1, "driver=550.54\nnet=ib\n", false);
}

static void test_plans_go_by_labels(void **state)
{
    (void)state;
    world w;
    begin_three(&w);
    st_event ev = ask(7, 1, 4, "driver=550\nnet=ib\n", false);
    step(&w, &ev);
    assert_int_equal(booking(&w, 7)->plan[0].node, 1);
    ev = ask(8, 2, 4, "driver=550\n", false); /* one is left */
    assert_int_equal(refused(&w, &ev), ST_EOVER);
    ev = ask(8, 1, 4, "driver=55\n", false); /* no node has that, ever */
    assert_int_equal(refused(&w, &ev), ST_ENOENT);
    ev = ask(8, 1, 4, "driver=550", false); /* no text of labels */
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = labels_event(0, "b=1\na=1\n", false);
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = labels_event(9, NULL, false);
    assert_int_equal(refused(&w, &ev), ST_ENOENT);
    end(&w);
}

/* A label that goes takes the plan along; where there is no other place it is refused, or the booking says so. */
static void test_a_label_goes(void **state)
{
    (void)state;
    world w;
    begin_three(&w);
    st_event ev = ask(7, 1, 4, "driver=550\n", false);
    step(&w, &ev);
    int32_t was = booking(&w, 7)->plan[0].node;
    label(&w, was, "driver=535\n", false);
    int32_t is = booking(&w, 7)->plan[0].node;
    assert_int_not_equal(is, was);
    assert_in_range(is, 0, 1);
    ev = labels_event(is, NULL, false);
    assert_int_equal(refused(&w, &ev), ST_ESTATE);
    label(&w, is, "driver=550.60\nmore=1\n", false); /* which it still requires */
    assert_int_equal(booking(&w, 7)->plan[0].node, is);
    label(&w, is, NULL, true);
    assert_true(st_booking_degraded(booking(&w, 7)));
    label(&w, 2, "driver=550\n", false);
    assert_false(st_booking_degraded(booking(&w, 7)));
    assert_int_equal(booking(&w, 7)->plan[0].node, 2);
    end(&w);
}

/* Whole nodes with all they have, and nothing of it is lent. */
static void test_dedicated(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 1, 4);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    st_event ev = ask(7, 1, 2, NULL, true);
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask(7, 1, 4, NULL, true);
    ev.u.book.spec.cpu_m = 1000;
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask(7, 1, 4, NULL, true);
    step(&w, &ev);
    submit_inside(&w, INSIDE, "b", 1, 7);
    submit(&w, LENT, "a");
    in_state(&w, LENT, ST_JOB_RUNNING);
    run_until(&w, 2 * HOUR);
    in_state(&w, INSIDE, ST_JOB_RUNNING);
    in_state(&w, LENT, ST_JOB_PENDING);
    run_until(&w, 4 * HOUR - SEC);
    in_state(&w, LENT, ST_JOB_PENDING);
    run_until(&w, 4 * HOUR + GRACE + STOP + SEC);
    in_state(&w, LENT, ST_JOB_RUNNING);
    end(&w);
}

/* Both outlive a save, and the log. */
static void test_kept(void **state)
{
    (void)state;
    world w;
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0}, again = {0}, bytes = {0};
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_core *twin;
    st_event back;
    st_err err;
    size_t at = 0;
    begin_three(&w);
    st_event ev = ask(7, 1, 4, "driver=550\nnet=ib\n", true);
    step(&w, &ev);
    st_core_save(w.core, &saved);
    assert_int_equal(st_core_load(saved.s, saved.n, &twin, &err), 0);
    assert_string_equal(st_core_booking(twin, 7)->require, "driver=550\nnet=ib\n");
    assert_true(st_core_booking(twin, 7)->dedicated);
    assert_string_equal(st_core_fleet(twin)->nodes.v[0]->labels, "driver=550.54\n");
    assert_null(st_core_fleet(twin)->nodes.v[2]->labels);
    st_core_save(twin, &again);
    assert_int_equal(saved.n, again.n);
    st_core_free(twin);
    st_event_encode(&ev, &bytes);
    st_event_encode(&(st_event){.kind = ST_EV_LABELS, .u.labels = {1, "a=1\n", true}}, &bytes);
    assert_int_equal(st_event_decode(bytes.s, bytes.n, &at, arena, &back, &err), 0);
    assert_string_equal(back.u.book.spec.require, "driver=550\nnet=ib\n");
    assert_true(back.u.book.spec.dedicated);
    assert_int_equal(st_event_decode(bytes.s, bytes.n, &at, arena, &back, &err), 0);
    assert_string_equal(back.u.labels.text, "a=1\n");
    assert_true(back.u.labels.force);
    assert_int_equal(back.u.labels.node, 1);
    end(&w);
}

static st_event ask_parts(uint64_t id, st_parts parts, int tasks)
{
    st_event ev = ask(id, tasks, 1, NULL, false);
    ev.u.book.spec.parts = parts;
    return ev;
}

static st_event resized(uint64_t id, int parts, int tasks)
{
    st_event ev = event(ST_EV_BOOK_CHANGE);
    ev.u.rebook.id = id;
    ev.u.rebook.from_ms = 2 * HOUR;
    ev.u.rebook.to_ms = 4 * HOUR;
    ev.u.rebook.parts = parts;
    ev.u.rebook.tasks = tasks;
    return ev;
}

/* Slices are booked as the GPUs that have room for them; more of them need more. */
static void test_slices(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 1, 4);
    account(&w, "b", ST_UNSET);
    st_parts slices = {.level = ST_LEVEL_MIG, .profile = ST_MIG_1G, .n = 8};
    st_event ev = ask_parts(7, slices, 1); /* one GPU has room for seven */
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask_parts(7, slices, 3);
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask_parts(7, slices, 2);
    ev.u.book.spec.gpus = 2;
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask_parts(7, slices, 2);
    step(&w, &ev);
    run_reloaded(&w);
    assert_int_equal(booking(&w, 7)->parts.n, 8);
    assert_int_equal(booking(&w, 7)->parts.profile, ST_MIG_1G);

    ev = resized(7, 0, 3);
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = resized(7, 15, 2);
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = resized(7, 29, 5); /* there are four */
    assert_int_equal(refused(&w, &ev), ST_EOVER);
    ev = resized(7, 28, 4);
    step(&w, &ev);
    assert_int_equal(booking(&w, 7)->tasks, 4);
    assert_int_equal(booking(&w, 7)->parts.n, 28);

    for (uint64_t id = 1; id <= 29; id++) {
        ev = job_event(id, "b");
        ev.u.job.shape.level = ST_LEVEL_MIG;
        ev.u.job.shape.profile = ST_MIG_1G;
        ev.u.job.booking = 7;
        step(&w, &ev);
    }
    ev.u.job.id = 30;
    ev.u.job.tasks = 29; /* more than the four ever have room for */
    assert_int_equal(refused(&w, &ev), ST_EQUOTA);
    run_until(&w, 2 * HOUR);
    for (uint64_t id = 1; id <= 28; id++)
        assert_int_equal(job_of(&w, id)->class, ST_CLASS_BOOKED);
    in_state(&w, 29, ST_JOB_PENDING);
    ev = resized(7, 27, 4); /* the same GPUs */
    step(&w, &ev);
    assert_int_equal(booking(&w, 7)->parts.n, 27);
    ev = resized(7, 21, 3);
    assert_int_equal(refused(&w, &ev), ST_ESTATE);
    end(&w);
}

/* What a pool does not divide, or does not any more, is no place. */
static void test_slices_by_pool(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 1, 4);
    account(&w, "b", ST_UNSET);
    st_event pool = pool_event("p", 1u << ST_LEVEL_WHOLE | 1u << ST_LEVEL_MPS);
    pool.kind = ST_EV_POOL_CHANGE;
    pool.u.pool.name = st_core_fleet(w.core)->pools.v[0].name;
    step(&w, &pool);
    st_parts shares = {.level = ST_LEVEL_MPS, .share_m = 300, .n = 4};
    st_event ev = ask_parts(7, (st_parts){.level = ST_LEVEL_MIG, .profile = ST_MIG_3G, .n = 1}, 1);
    assert_int_equal(refused(&w, &ev), ST_ENOENT);
    ev = account_event("strange", ST_UNSET);
    ev.u.account.trust = ST_TRUST_UNTRUSTED;
    step(&w, &ev);
    ev = ask_parts(7, shares, 2);
    ev.u.book.spec.account = "strange";
    assert_int_equal(refused(&w, &ev), ST_EINVAL);
    ev = ask_parts(7, shares, 2);
    step(&w, &ev);
    pool.u.pool.levels = 1u << ST_LEVEL_WHOLE;
    assert_int_equal(refused(&w, &pool), ST_ESTATE);
    pool.u.pool.force = true;
    step(&w, &pool);
    assert_true(st_booking_degraded(booking(&w, 7)));
    pool.u.pool.levels |= 1u << ST_LEVEL_MPS;
    step(&w, &pool);
    tick(&w, w.now + SEC);
    assert_false(st_booking_degraded(booking(&w, 7)));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_go_by_labels),
        cmocka_unit_test(test_a_label_goes),
        cmocka_unit_test(test_dedicated),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_slices_by_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
