/*
 * Jobs whose class has no right to preempt: they wait where others of their priority would not.
 */
#include "core/test/booked.h"

static void urgent_job(world *w, uint64_t id, const char *account, bool meek)
{
    st_event ev = job_event(id, account);
    ev.u.job.shape.gpus = 4;
    ev.u.job.priority = 100;
    ev.u.job.meek = meek;
    step(w, &ev);
}

/* Whether it is told that the right to preempt is all it lacks. */
static bool told(world *w, uint64_t id)
{
    st_reasons why = {0};
    bool found = false;
    st_err err;
    assert_ok(st_core_explain(w->core, id, &why, &err));
    for (size_t i = 0; i < why.n; i++)
        found |= why.v[i].code == ST_WHY_MEEK;
    st_vec_free(&why);
    return found;
}

/* Inside an account: who is more urgent takes the place of a borrower, unless it is meek. */
static void test_own_account(void **state)
{
    (void)state;
    for (int meek = 0; meek < 2; meek++) {
        world w;
        st_policy policy = quick();
        policy.urgent = 1;
        begin(&w, &policy, 1, 4);
        account(&w, "a", ST_UNSET);
        submit_gpus(&w, FIRST, "a", 4, ST_TIME_NEVER);
        run_reloaded(&w);
        w.now += 3600 * SEC;
        urgent_job(&w, SECOND, "a", meek);
        run_reloaded(&w);
        tick(&w, w.now + SEC);
        in_state(&w, FIRST, meek ? ST_JOB_RUNNING : ST_JOB_NOTIFIED);
        assert_int_equal(job_of(&w, SECOND)->meek, meek);
        assert_int_equal(told(&w, SECOND), meek);
        assert_int_equal(job_of(&w, SECOND)->meek, meek); /* asking changes nothing */
        end(&w);
    }
}

/* What its account is guaranteed it takes back all the same. */
static void test_owner(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    begin(&w, &policy, 1, 4);
    account(&w, "a", 4000);
    account(&w, "b", ST_UNSET);
    submit_gpus(&w, FIRST, "b", 4, ST_TIME_NEVER);
    w.now += 3600 * SEC;
    urgent_job(&w, SECOND, "a", true);
    in_state(&w, FIRST, ST_JOB_NOTIFIED);
    end(&w);
}

/* Nobody it could displace with the right: it waits for another reason, and is told no more than that. */
static void test_not_the_reason(void **state)
{
    (void)state;
    world w;
    st_policy policy = quick();
    policy.urgent = 1;
    begin(&w, &policy, 1, 8);
    account(&w, "a", ST_UNSET);
    account(&w, "b", ST_UNSET);
    urgent_job(&w, FIRST, "a", false);          /* as urgent as it */
    submit_gpus(&w, 77, "b", 4, ST_TIME_NEVER); /* less so, but b has no more than a */
    w.now += 3600 * SEC;
    urgent_job(&w, SECOND, "a", true);
    in_state(&w, SECOND, ST_JOB_PENDING);
    assert_false(told(&w, SECOND));
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_account),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_not_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
