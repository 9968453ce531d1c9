/*
 * What becomes of what agents have when a store was restored, and numbers that do not come back.
 */
#include <string.h>

#include "base/testing.h"
#include "control/restore.h"

#define DAY INT64_C(86400000)
#define NOW INT64_C(1794800000000) /* in November 2026 */

typedef struct site {
    st_core *core;
    st_told told;
    st_restore_plan plan;
} site;

static void give(site *s, const st_event *ev)
{
    st_effects fx = {0};
    st_err err = {0};
    assert_ok(st_core_step(s->core, ev, NOW, &fx, &err));
    st_effects_done(&fx);
}

/* Two nodes with agents that were heard, and a gang of two on both. */
static void begin(site *s)
{
    static const char *const names[] = {"a", "b"};
    st_policy policy = st_policy_default();
    st_event ev = {.kind = ST_EV_TYPE};

    *s = (site){.core = st_core_new(&policy)};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 80000;
    give(s, &ev);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "p";
    ev.u.pool.levels = 0xf;
    ev.u.pool.oversub_m = 1000;
    give(s, &ev);
    for (int32_t i = 0; i < 2; i++) {
        ev = (st_event){.kind = ST_EV_NODE};
        ev.u.node = (st_node_spec){.name = names[i], .ndevs = 1, .cpu_m = 8000, .ram_mib = 1000};
        give(s, &ev);
        ev = (st_event){.kind = ST_EV_AGENT};
        ev.u.node_state.node = i;
        give(s, &ev);
        st_vec_push(&s->told.nodes, (st_told_node){.node = i, .heard = true});
    }
    ev = (st_event){.kind = ST_EV_ACCOUNT};
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "team";
    give(s, &ev);
    ev = (st_event){.kind = ST_EV_SUBMIT};
    ev.u.job = (st_job_spec){.id = 1,
                             .name = "gang",
                             .account = "team",
                             .user = "ann",
                             .pool = -1,
                             .tasks = 2,
                             .shape = {.level = ST_LEVEL_WHOLE, .gpus = 1},
                             .limit_ms = ST_TIME_NEVER,
                             .yield = ST_YIELD_REQUEUE};
    give(s, &ev);
    assert_int_equal(st_core_job(s->core, 1)->state, ST_JOB_RUNNING);
}

static void end(site *s)
{
    st_restore_plan_done(&s->plan);
    st_told_done(&s->told);
    st_core_free(s->core);
}

static void has(site *s, uint64_t job, int stay, int task, bool there, bool by_itself)
{
    const st_job *known = st_core_job(s->core, job);
    int32_t node = known && task < known->tasks && known->grants ? known->grants[task].node : 0;

    st_vec_push(&s->told.tasks, (st_told_task){.node = node,
                                               .job = job,
                                               .stay = stay,
                                               .task = task,
                                               .there = there,
                                               .by_itself = by_itself});
}

static void look(site *s)
{
    st_restore_plan_done(&s->plan);
    st_restore_plan_make(s->core, &s->told, &s->plan);
}

static st_fate task_fate(const site *s, size_t i)
{
    assert_true(i < s->plan.tasks.n);
    return s->plan.tasks.v[i].fate;
}

static void test_whole_gang(void **state)
{
    (void)state;
    site s;
    begin(&s);
    has(&s, 1, 1, 0, true, false);
    has(&s, 1, 1, 1, false, true); /* it has ended meanwhile */
    look(&s);
    assert_int_equal(s.plan.jobs.n, 1);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_ADOPTED);
    assert_int_equal(task_fate(&s, 0), ST_FATE_ADOPTED);
    assert_int_equal(task_fate(&s, 1), ST_FATE_OVER);
    end(&s);
}

/* Half of it is none of it. */
static void test_half_a_gang(void **state)
{
    (void)state;
    site s;
    begin(&s);
    has(&s, 1, 1, 0, true, false);
    look(&s);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_AGAIN);
    assert_int_equal(task_fate(&s, 0), ST_FATE_ENDED);
    has(&s, 1, 1, 1, false, false); /* somebody had it end: how it ended says nothing */
    look(&s);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_AGAIN);
    assert_int_equal(task_fate(&s, 1), ST_FATE_FORGOTTEN);
    s.told.nodes.v[0].heard = s.told.nodes.v[1].heard = false;
    s.told.tasks.n = 0;
    look(&s);
    assert_string_equal(s.plan.jobs.v[0].why, "its node has not been heard");
    end(&s);
}

/* It has left its old place, or stands in two: the later stay is not known here, so neither goes on. */
static void test_later_stay(void **state)
{
    (void)state;
    site s;
    begin(&s);
    has(&s, 1, 1, 0, true, false);
    has(&s, 1, 1, 1, true, false);
    has(&s, 1, 3, 0, true, false);
    look(&s);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_AGAIN);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(task_fate(&s, i), ST_FATE_ENDED);
    assert_int_equal(s.plan.stay, 3);
    has(&s, 1, 2000000000, 0, false, true); /* that cannot be */
    look(&s);
    assert_int_equal(s.plan.stay, 3);
    end(&s);
}

static void test_strangers(void **state)
{
    (void)state;
    site s;
    char before[33];
    begin(&s);
    has(&s, 1, 1, 0, true, false);
    has(&s, 1, 1, 1, true, false);
    look(&s);
    memcpy(before, s.plan.digest, sizeof before);
    has(&s, 7, 1, 0, true, false);
    has(&s, 0, 1, 0, true, false); /* a name that is none */
    has(&s, 8, 1, 0, false, true);
    has(&s, 1, 1, 9, true, false);
    look(&s);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_ADOPTED);
    assert_int_equal(task_fate(&s, 2), ST_FATE_ENDED);
    assert_int_equal(task_fate(&s, 3), ST_FATE_ENDED);
    assert_int_equal(task_fate(&s, 4), ST_FATE_FORGOTTEN);
    assert_int_equal(task_fate(&s, 5), ST_FATE_ENDED);
    assert_string_not_equal(before, s.plan.digest);
    end(&s);
}

/* One that was to leave is on no list. */
static void test_leaving(void **state)
{
    (void)state;
    site s;
    st_event ev = {.kind = ST_EV_CANCEL, .u.id = 1};
    begin(&s);
    give(&s, &ev);
    has(&s, 1, 1, 0, true, false);
    has(&s, 1, 1, 1, true, false);
    look(&s);
    assert_int_equal(s.plan.jobs.v[0].fate, ST_FATE_STOPS);
    assert_int_equal(task_fate(&s, 0), ST_FATE_ENDED);
    end(&s);
}

/* Whatever was counted before a moment is below its floor, and floors fit where the numbers go: jobs in 40 bits, accounts in
 * what nodes have users for, epochs above the 32 bits of a revision. */
static void test_floors(void **state)
{
    (void)state;
    int64_t in_30_years = NOW + 30 * 365 * DAY;
    assert_int_equal(st_restore_floor(ST_FLOOR_JOBS, 0), 0);
    assert_true(st_restore_floor(ST_FLOOR_JOBS, NOW + DAY) - st_restore_floor(ST_FLOOR_JOBS, NOW) ==
                DAY);
    assert_true(st_restore_floor(ST_FLOOR_JOBS, in_30_years) < INT64_C(1) << 40);
    assert_true(st_restore_floor(ST_FLOOR_ACCOUNTS, in_30_years) < 2000000000);
    assert_true(st_restore_floor(ST_FLOOR_TOKENS, in_30_years) < INT64_C(1) << 40);
    assert_true(st_restore_floor(ST_FLOOR_BOOKINGS, in_30_years) < INT64_C(1) << 40);
    assert_true(st_restore_floor(ST_FLOOR_BOOKINGS, NOW) > 1000000);
    assert_true(st_restore_floor(ST_FLOOR_EPOCHS, in_30_years) < INT64_C(1) << 31);
    assert_true(st_restore_stay(3, NOW - DAY, NOW) > 3 + 8640);
    assert_true(st_restore_stay(3, NOW + DAY, NOW) > 3);
    assert_int_equal(st_restore_stay(ST_STAY_MAX, 0, NOW), ST_STAY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_gang), cmocka_unit_test(test_half_a_gang),
        cmocka_unit_test(test_later_stay), cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_leaving),    cmocka_unit_test(test_floors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
