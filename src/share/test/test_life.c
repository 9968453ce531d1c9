/*
 * Life tables: stages, counting, and the prices that follow.
 */
#include "base/macros.h"
#include "base/testing.h"
#include "share/life.h"

#define FAR (INT64_C(1) << 50)

/* A job that ran for so long and ended. */
static void live(st_account *a, int64_t run_ms)
{
    st_job job = {.served_ms = run_ms};
    st_life_note(a, &job, 0);
    st_life_end(a, &job);
}

static void test_stages(void **state)
{
    (void)state;
    assert_int_equal(st_stage_of(0), 0);
    assert_int_equal(st_stage_of(ST_STAGE_ONE_MS - 1), 0);
    for (int s = 0; s < ST_STAGES - 1; s++) {
        assert_int_equal(st_stage_of(st_stage_end_ms(s) - 1), s);
        assert_int_equal(st_stage_of(st_stage_end_ms(s)), s + 1);
    }
    assert_int_equal(st_stage_of(FAR), ST_STAGES - 1);
    assert_int_equal(st_stage_end_ms(ST_STAGES - 1), ST_TIME_NEVER);
}

/* Each stage is outlived once, however often the job is looked at; and only what is over. */
static void test_counts(void **state)
{
    (void)state;
    st_account a = {0};
    st_job job = {.state = ST_JOB_RUNNING, .start_ms = 1000};
    st_life_note(&a, &job, 1000 + ST_STAGE_ONE_MS - 1);
    assert_int_equal(job.stage, 0);
    assert_int_equal(a.life.outlived[0], 0);
    for (int i = 0; i < 3; i++)
        st_life_note(&a, &job, 1000 + 4 * ST_STAGE_ONE_MS);
    assert_int_equal(job.stage, 3);
    assert_int_equal(a.life.outlived[0], 1);
    assert_int_equal(a.life.outlived[2], 1);
    assert_int_equal(a.life.outlived[3], 0);
    st_life_end(&a, &job);
    assert_int_equal(a.life.ended[3], 1);
    assert_int_equal(a.life.ended[0], 0);
}

/* Without a history who has run longer is dearer, stage by stage. */
static void test_nothing_known(void **state)
{
    (void)state;
    st_account a = {0};
    for (int s = 0; s < ST_STAGES; s++)
        assert_true(st_life_price_ms(&a, s) > 0);
    for (int s = 1; s + 1 < ST_STAGES; s++) {
        int64_t price = st_life_price_ms(&a, s), next = st_life_price_ms(&a, s + 1);
        assert_true(next > price * 15 / 10 && next < price * 25 / 10);
    }
}

/* Most end within minutes, the rest runs for a day: who is past the minutes is dear at once, and
 * gets cheaper again as the day comes near. */
static void test_two_kinds(void **state)
{
    (void)state;
    st_account a = {0};
    for (int i = 0; i < 100; i++)
        live(&a, i % 4 == 0 ? 90000000 : 60000);
    int last = st_stage_of(90000000);
    assert_true(st_life_price_ms(&a, 0) < 600000);
    assert_true(st_life_price_ms(&a, 1) > 10 * st_life_price_ms(&a, 0));
    for (int s = 6; s < last; s++)
        assert_true(st_life_price_ms(&a, s) > st_life_price_ms(&a, s + 1));
    /* Nobody was seen to go further. */
    assert_true(st_life_price_ms(&a, last + 1) > st_life_price_ms(&a, last));
}

/* Those who are still there count as far as they got. */
static void test_the_living_count(void **state)
{
    (void)state;
    st_account a = {0};
    for (int i = 0; i < 20; i++)
        live(&a, 400000);
    int64_t before = st_life_price_ms(&a, 1);
    for (int i = 0; i < 20; i++) {
        st_job job = {.state = ST_JOB_RUNNING};
        st_life_note(&a, &job, 10000000);
    }
    assert_true(st_life_price_ms(&a, 1) > before);
}

/* What was is forgotten; and counts stay small whatever comes. */
static void test_forgets(void **state)
{
    (void)state;
    st_account a = {0};
    for (int i = 0; i < 5000; i++)
        live(&a, 50000000);
    int64_t before = st_life_price_ms(&a, 0), sum = 0;
    for (int i = 0; i < 5000; i++)
        live(&a, 1000);
    assert_true(st_life_price_ms(&a, 0) * 50 < before);
    for (int s = 0; s < ST_STAGES; s++) {
        sum += a.life.ended[s];
        assert_true(a.life.outlived[s] <= ST_LIVES_MAX);
    }
    assert_true(sum < ST_LIVES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages),           cmocka_unit_test(test_counts),
        cmocka_unit_test(test_nothing_known),    cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_the_living_count), cmocka_unit_test(test_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
