/*
 * A state of the past that goes on: what was given out in the future that is lost does not come back, and a job that nobody
 * has waits again at once, whatever it was about to do.
 */
#include "core/test/world.h"

#define OLD 1
#define NEW 2

static st_event branch_event(uint64_t job, int stay, int64_t serial)
{
    st_event ev = event(ST_EV_BRANCH);
    ev.u.branch.job = job;
    ev.u.branch.stay = stay;
    ev.u.branch.serial = serial;
    return ev;
}

/* A node with an agent: what runs there is gone when that says so. */
static void begin_here(world *w)
{
    st_policy policy = st_policy_default();
    st_event ev = event(ST_EV_AGENT);
    begin(w, &policy, 1, 1);
    step(w, &ev);
    account(w, "team", 1000);
    submit(w, OLD, "team");
    in_state(w, OLD, ST_JOB_RUNNING);
    assert_int_equal(job_of(w, OLD)->stay, 1);
}

static void reload(world *w)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_err err = {0};
    st_core_save(w->core, &data);
    st_core_free(ST_TAKE(w->core));
    assert_ok(st_core_load(data.s, data.n, &w->core, &err));
}

static void test_stays_go_on_beyond(void **state)
{
    (void)state;
    world w;
    begin_here(&w);
    st_event ev = branch_event(OLD, 40, 700);
    step(&w, &ev);
    in_state(&w, OLD, ST_JOB_RUNNING); /* what is there is as it was */
    assert_int_equal(job_of(&w, OLD)->stay, 1);
    reload(&w);
    w.now += SEC;
    tell(&w, ST_EV_ABSENT, OLD);
    assert_non_null(effect(&w, ST_FX_REQUEUE, OLD));
    in_state(&w, OLD, ST_JOB_RUNNING); /* again, at once */
    assert_int_equal(job_of(&w, OLD)->stay, 41);
    assert_int_equal(job_of(&w, OLD)->times, 2); /* records count on */
    reload(&w);
    tell(&w, ST_EV_ABSENT, OLD);
    assert_int_equal(job_of(&w, OLD)->stay, 42);
    tell(&w, ST_EV_FINISH, OLD);
    submit(&w, NEW, "team"); /* nobody has heard of this one */
    assert_int_equal(job_of(&w, NEW)->stay, 1);
    account(&w, "next", ST_UNSET);
    int32_t id = st_tree_find(st_core_tree(w.core), "next");
    assert_int_equal(st_tree_account(st_core_tree(w.core), id)->serial, 701);
    ev = branch_event(NEW, 3, 5); /* nothing goes back */
    step(&w, &ev);
    account(&w, "more", ST_UNSET);
    id = st_tree_find(st_core_tree(w.core), "more");
    assert_int_equal(st_tree_account(st_core_tree(w.core), id)->serial, 702);
    end(&w);
}

/* One that was to end has ended; who only waits is nowhere. */
static void test_absent(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin_here(&w);
    submit(&w, NEW, "team");
    in_state(&w, NEW, ST_JOB_PENDING);
    st_event ev = id_event(ST_EV_ABSENT, NEW);
    assert_int_equal(st_core_apply(w.core, &ev, w.now, &w.fx, &err), -ST_ESTATE);
    ev = id_event(ST_EV_ABSENT, 9);
    assert_int_equal(st_core_apply(w.core, &ev, w.now, &w.fx, &err), -ST_ENOENT);
    tell(&w, ST_EV_CANCEL, OLD);
    in_state(&w, OLD, ST_JOB_STOPPING);
    in_state(&w, NEW, ST_JOB_PENDING);
    tell(&w, ST_EV_ABSENT, OLD);
    assert_null(st_core_job(w.core, OLD));
    in_state(&w, NEW, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_go_on_beyond),
        cmocka_unit_test(test_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
