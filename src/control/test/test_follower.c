/*
 * The follower is what the writer was: after every transaction, after the store failed, after a restart.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing.h"
#include "billing/billing.h"
#include "control/control.h"
#include "control/follower.h"
#include "control/outlook.h"
#include "control/test/money.h"

/* ---- both, as bytes -------------------------------------------------------------------------- */

typedef struct image {
    st_strbuf core, meter, ledger;
    int64_t version; /* of the account team */
    uint64_t live;
} image;

static void image_done(image *i)
{
    st_strbuf_done(&i->core);
    st_strbuf_done(&i->meter);
    st_strbuf_done(&i->ledger);
}

static int take_image(st_tx *tx, void *ctx, st_err *err)
{
    image *i = ctx;

    (void)err;
    st_core_save(tx->ctl->core, &i->core);
    if (tx->ctl->billing->meter)
        st_meter_save(tx->ctl->billing->meter, &i->meter);
    if (tx->ctl->billing->ledger)
        st_ledger_save(tx->ctl->billing->ledger, &i->ledger);
    i->version = st_tx_version(tx, NULL, "team");
    return 0;
}

static int read_image(void *ctx, st_tx *tx, st_err *err)
{
    return take_image(tx, ctx, err);
}

static bool same(const st_strbuf *a, const st_strbuf *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->s, b->s, a->n) == 0);
}

static void expect_equal(world *w)
{
    image writer = {0}, follower = {0};
    int64_t position = -1;
    st_err err = {0};

    assert_ok(in_loop(w, take_image, &writer, &err));
    assert_ok(st_control_read(w->ctl, ST_READ_SHARED, 0, read_image, &follower, &position, &err));
    assert_true(same(&writer.core, &follower.core));
    assert_true(same(&writer.meter, &follower.meter));
    assert_true(same(&writer.ledger, &follower.ledger));
    assert_int_equal(writer.version, follower.version);
    assert_int_equal(position, st_control_position(w->ctl));
    image_done(&writer);
    image_done(&follower);
}

/* ---- what it is asked -------------------------------------------------------------------------- */

static int count_jobs(void *ctx, st_tx *tx, st_err *err)
{
    (void)err;
    *(size_t *)ctx = st_core_njobs(st_tx_core(tx));
    return 0;
}

static size_t jobs(world *w)
{
    size_t n = SIZE_MAX;
    st_err err = {0};

    assert_ok(st_control_read(w->ctl, ST_READ_SHARED, 0, count_jobs, &n, NULL, &err));
    return n;
}

static const char one[] = "{\"account\":\"team\",\"user\":\"ann\",\"gpus\":1,\"limit\":\"1h\"}";
static const char rendered[] = "{\"account\":\"team\",\"user\":\"ann\",\"gpus\":1,\"limit\":\"1h\","
                               "\"workload\":\"render\"}";

static void test_every_transaction(void **state)
{
    world *w = *state;
    uint64_t ids[12];
    st_err err = {0};

    expect_equal(w);
    make_fleet(w);
    expect_equal(w);
    for (int i = 0; i < 12; i++) { /* eight start, four wait */
        ids[i] = start_job(w, i % 3 ? one : rendered);
        let_pass(w, 700);
        expect_equal(w);
    }
    for (int i = 0; i < 12; i += 2) {
        end_job(w, ids[i], 0);
        let_pass(w, 1300);
        expect_equal(w);
    }
    assert_ok(put_account(w, false, "team", NULL, "{max: {gpu: 6}, weight: 2}", &err));
    expect_equal(w);
    let_pass(w, INT64_C(3) * 86400000); /* cuts */
    nudge(w);
    expect_equal(w);
}

/* Entries without a row of the log: prices, plans. */
static void test_money(void **state)
{
    world *w = *state;
    st_err err = {0};

    make_fleet(w);
    publish(w, PRICES);
    expect_equal(w);
    assert_ok(set_plan(w, "account: team\ncap: 100\n", &err));
    expect_equal(w);
    start_job(w, one);
    let_pass(w, 3600000);
    nudge(w);
    expect_equal(w);
}

static void test_own_write_is_seen(void **state)
{
    world *w = *state;

    make_fleet(w);
    for (size_t i = 0; i < 200; i++) {
        start_job(w, one);
        assert_int_equal(jobs(w), i + 1);
    }
}

/* ---- faults ------------------------------------------------------------------------------------- */

static void test_store_fails(void **state)
{
    world *w = *state;
    st_err err = {0};
    uint64_t id;

    make_fleet(w);
    start_job(w, one);
    faulty_arm(w->vfs, FAULT_WRITE_FULL, 1);
    assert_true(submit(w, NULL, one, &id, &err) < 0);
    assert_int_equal(jobs(w), 1); /* reading goes on, from what was committed */
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 60000);
    start_job(w, one);
    assert_int_equal(jobs(w), 2);
    expect_equal(w);
}

static void test_restart(void **state)
{
    world *w = *state;

    make_fleet(w);
    for (int i = 0; i < 10; i++)
        start_job(w, one);
    restart(w);
    assert_int_equal(jobs(w), 10);
    expect_equal(w);
    start_job(w, one);
    expect_equal(w);
}

/* ---- positions ------------------------------------------------------------------------------------ */

static void test_positions(void **state)
{
    world *w = *state;
    char a[ST_POSITION_TEXT], b[ST_POSITION_TEXT];
    int64_t back = 0;
    size_t n;
    st_err err = {0};

    make_fleet(w);
    for (int64_t p = 0; p < 1000; p++) {
        st_control_position_text(w->ctl, p, a);
        assert_true(st_control_position_parse(w->ctl, a, &back));
        assert_int_equal(back, p);
    }
    st_control_position_text(w->ctl, 7, a);
    st_control_position_text(w->ctl, 7, b);
    assert_string_not_equal(a, b); /* but for one time in 16 million */
    assert_false(st_control_position_parse(w->ctl, "", &back));
    assert_false(st_control_position_parse(w->ctl, "p123", &back));
    assert_false(st_control_position_parse(w->ctl, "p!!!!!!!!!!!!!", &back));
    assert_ok(st_control_read(w->ctl, ST_READ_SHARED, st_control_position(w->ctl), count_jobs, &n,
                              NULL, &err));
    assert_fails(st_control_read(w->ctl, ST_READ_SHARED, st_control_position(w->ctl) + 1,
                                 count_jobs, &n, NULL, &err),
                 ST_EINVAL, "Stint-Position");
}

/* ---- estimates ------------------------------------------------------------------------------------- */

static void test_outlook(void **state)
{
    world *w = *state;
    st_estimate e;

    make_fleet(w);
    for (int i = 0; i < 8; i++)
        start_job(w, one);
    for (int i = 0; i < 50; i++) {
        uint64_t id = start_job(w, one); /* waits */
        st_outlook *o = st_control_outlook(w->ctl, st_control_position(w->ctl));

        assert_non_null(o);
        assert_true(st_timeline_find(st_outlook_timeline(o), id, &e));
        assert_int_equal(e.start_ms, w->now + (1 + i / 8) * H);
        st_outlook_unref(o);
    }
    expect_equal(w);
}

static int is_told(void *ctx, st_tx *tx, st_err *err)
{
    (void)err;
    *(bool *)ctx = st_core_job_at(st_tx_core(tx), 8)->told_at_ms >= 0;
    return 0;
}

/* Nobody asks; how good estimates are is learned all the same. */
static void test_told_by_itself(void **state)
{
    world *w = *state;
    bool told = false;
    st_err err = {0};

    w->tell_ms = 1;
    restart(w);
    make_fleet(w);
    for (int i = 0; i < 8; i++)
        start_job(w, one);
    /* Long enough that it looks and finds nothing to tell: the row behind that must not be taken for its own. */
    usleep(50000);
    start_job(w, one);
    while (!told)
        assert_ok(st_control_read(w->ctl, ST_READ_SHARED, 0, is_told, &told, NULL, &err));
    expect_equal(w);
}

/* ---- many at once ----------------------------------------------------------------------------------- */

typedef struct asker {
    world *w;
    pthread_t thread;
    bool stop;
    size_t asked, last;
} asker;

/* What one sees never goes back. */
static void *ask_on(void *arg)
{
    asker *a = arg;

    while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED)) {
        size_t n = jobs(a->w);

        assert_true(n >= a->last);
        a->last = n;
        a->asked++;
    }
    return NULL;
}

static void test_askers_beside_the_writer(void **state)
{
    world *w = *state;
    asker askers[4] = {0};

    make_fleet(w);
    for (int i = 0; i < 4; i++) {
        askers[i].w = w;
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_on, &askers[i]), 0);
    }
    for (size_t i = 0; i < 300; i++) {
        start_job(w, one);
        assert_int_equal(jobs(w), i + 1);
    }
    for (int i = 0; i < 4; i++) {
        __atomic_store_n(&askers[i].stop, true, __ATOMIC_RELAXED);
        pthread_join(askers[i].thread, NULL);
        assert_true(askers[i].asked > 0);
    }
    expect_equal(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_transaction, begin, end),
        cmocka_unit_test_setup_teardown(test_money, begin, end),
        cmocka_unit_test_setup_teardown(test_own_write_is_seen, begin, end),
        cmocka_unit_test_setup_teardown(test_store_fails, begin, end),
        cmocka_unit_test_setup_teardown(test_restart, begin, end),
        cmocka_unit_test_setup_teardown(test_positions, begin, end),
        cmocka_unit_test_setup_teardown(test_outlook, begin, end),
        cmocka_unit_test_setup_teardown(test_told_by_itself, begin, end),
        cmocka_unit_test_setup_teardown(test_askers_beside_the_writer, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
