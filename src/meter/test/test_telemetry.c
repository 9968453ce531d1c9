/* Telemetry: from sums per task to amounts per record. */
#include "meter/test/bench.h"

/* Two tasks with two GPUs each, 100 s: 400 GPU-seconds are held, 300 + 0 of which were seen by then. */
static void test_whole(void **state)
{
    (void)state;
    bench b;
    begin(&b, 2, 2);
    st_job job = whole(1, 2);
    job.tasks = 2;
    st_grant grants[] = {{0, 3, -1}, {1, 3, -1}};
    start_on(&b, &job, grants, 0);
    used(&b, 1, 1, 0, 120000, 60000);
    used(&b, 1, 1, 1, 180000, 10000);
    used(&b, 1, 1, 0, 110000, 50000);  /* an older one */
    used(&b, 1, 1, 1, 180000, 10000);  /* the same again */
    used(&b, 1, 1, 2, 999999, 999999); /* no such task */
    used(&b, 1, 2, 0, 999999, 999999); /* no such stay */
    used(&b, 9, 1, 0, 999999, 999999); /* no such job */
    assert_int_equal(b.out.n, 0);
    cut(&b, 100 * SEC);
    assert_int_equal(grant(&b, 1)->share, 400000000);
    assert_int_equal(grant(&b, 1)->seen, 300000000);
    assert_int_equal(grant(&b, 1)->busy, 70000000);
    assert_int_equal(grant(&b, 1)->energy_mj, 600000);
    cut(&b, 200 * SEC); /* nothing came since */
    assert_int_equal(grant(&b, 1)->seen, 0);
    assert_int_equal(grant(&b, 1)->busy, 0);
    end(&b);
}

/* A quarter of a GPU for 100 ms: samples cover 80, busy in 20 of them. 25,000 x 80/100. */
static void test_slice(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = shared(1, ST_LEVEL_MPS, 250);
    start(&b, &job, 1, -1, 0);
    used(&b, 1, 1, 0, 80, 20);
    stop(&b, 1, 100, ST_UNSET);
    assert_int_equal(grant(&b, 1)->share, 25000);
    assert_int_equal(grant(&b, 1)->seen, 20000);
    assert_int_equal(grant(&b, 1)->busy, 5000);
    end(&b);
}

/* 1000 ms were seen of a piece of 600 ms: 400 of them before it began, where there is room for 300.
 * What is busy and what it took goes along. */
static void test_spans_a_cut(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    used(&b, 1, 1, 0, 100, 100);
    cut(&b, 400);
    assert_int_equal(grant(&b, 1)->seen, 100000);
    used(&b, 1, 1, 0, 1100, 600); /* 1000 more, 500 of them busy, 2000 mJ */
    cut(&b, 1000);
    assert_int_equal(grant(&b, 1)->seen, 600000);
    assert_int_equal(grant(&b, 1)->busy, 300000);
    assert_int_equal(grant(&b, 1)->energy_mj, 1200);
    const st_record *fix = nth(&b, ST_REC_FIX, 1, 0);
    assert_int_equal(fix->fixes, 1);
    assert_int_equal(fix->seen, 300000);
    assert_int_equal(fix->busy, 200000);
    assert_int_equal(fix->energy_mj, 800);
    assert_int_equal(fix->share, 0);
    assert_int_equal(fix->held, 0);
    end(&b);
}

static void test_late(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    stop(&b, 1, 1000, ST_UNSET);
    st_meter_forget(b.m, 1);
    assert_int_equal(grant(&b, 1)->seen, ST_UNKNOWN);
    used(&b, 1, 1, 0, 700, 300);
    assert_int_equal(b.out.n, 1);
    assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->seen, 700000);
    used(&b, 1, 1, 0, 700, 300); /* again */
    assert_int_equal(b.out.n, 0);
    used(&b, 1, 1, 0, 2000, 2000); /* more than there was */
    assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->seen, 300000);
    assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->busy, 700000);
    st_meter_advance(b.m, 1000 + ST_METER_LATE_MS + 1);
    used(&b, 1, 1, 0, 9000, 9000);
    assert_int_equal(b.out.n, 0);
    end(&b);
}

/* What the meter handed out, as the meter that is loaded from its save would go on. */
static void reload(bench *b)
{
    st_strbuf bytes = {0};
    st_meter *loaded = NULL;
    st_err err = {0};
    st_meter_save(b->m, &bytes);
    assert_ok(st_meter_load(bytes.s, bytes.n, &loaded, &err));
    st_meter_free(b->m);
    b->m = loaded;
    st_strbuf_done(&bytes);
}

/* Tasks that were paused go on counting where they were: each time on devices has what was seen in it, and
 * what does not fit it was seen before the pause. The next start counts from nothing. */
static void test_pause(void **state)
{
    (void)state;
    for (int saved = 0; saved < 2; saved++) {
        bench b;
        begin(&b, 1, 2);
        st_job job = whole(1, 1);
        job.stay = job.times = 1;
        start(&b, &job, 1, -1, 0);
        used(&b, 1, 1, 0, 400, 100);
        st_vec_clear(&b.out);
        st_meter_pause(b.m, 1, 1000, 500, &b.out);
        assert_int_equal(grant(&b, 1)->stay, 1);
        assert_int_equal(grant(&b, 1)->seen, 400000);
        job.times = 2;
        resume(&b, &job, 2, 5000);
        if (saved)
            reload(&b);
        assert_true(st_meter_watches(b.m, 1, 1));
        assert_false(st_meter_watches(b.m, 1, 2));
        assert_int_equal(st_meter_times(b.m, 1), 2);
        used(&b, 1, 1, 0, 1000, 100);
        stop(&b, 1, 5500, ST_UNSET);
        assert_int_equal(grant(&b, 1)->stay, 2);
        assert_int_equal(grant(&b, 1)->seen, 500000);
        assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->stay, 1);
        assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->seen, 100000);
        job.stay = 2;
        job.times = 3;
        start(&b, &job, 1, -1, 6000);
        if (saved)
            reload(&b);
        used(&b, 1, 2, 0, 300, 0);
        used(&b, 1, 1, 0, 1200, 100); /* late, of the first start */
        assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->stay, 1);
        assert_int_equal(nth(&b, ST_REC_FIX, 1, 0)->seen, 200000);
        stop(&b, 1, 7000, ST_UNSET);
        assert_int_equal(grant(&b, 1)->stay, 3);
        assert_int_equal(grant(&b, 1)->seen, 300000);
        end(&b);
    }
}

/* Energy may be known where nothing else is. */
static void test_partly_known(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_sums sums = {ST_UNKNOWN, ST_UNKNOWN, 5000, ST_UNKNOWN};
    st_meter_used(b.m, 1, 1, 0, &sums, &b.out);
    stop(&b, 1, 1000, ST_UNSET);
    assert_int_equal(grant(&b, 1)->seen, ST_UNKNOWN);
    assert_int_equal(grant(&b, 1)->busy, ST_UNKNOWN);
    assert_int_equal(grant(&b, 1)->energy_mj, 5000);
    end(&b);
}

/* One meter hears telemetry; another plays the same without it and is told what was stored. Sums that
 * come again then say nothing new to it, and more says the same to both. */
static void test_recall(void **state)
{
    (void)state;
    bench b, c;
    begin(&b, 1, 1);
    begin(&c, 1, 1);
    st_job job = shared(1, ST_LEVEL_MPS, 300);
    start(&b, &job, 1, -1, 0);
    start(&c, &job, 1, -1, 0);
    used(&b, 1, 1, 0, 500, 200);
    cut(&b, 1000);
    cut(&c, 1000);
    assert_int_equal(grant(&c, 1)->seen, ST_UNKNOWN);
    st_meter_recall(c.m, grant(&b, 1));
    used(&b, 1, 1, 0, 1900, 900);
    stop(&b, 1, 2000, ST_UNSET);
    stop(&c, 1, 2000, ST_UNSET);
    assert_int_equal(b.out.n, 2);
    for (size_t i = 0; i < b.out.n; i++)
        st_meter_recall(c.m, &b.out.v[i]);
    used(&c, 1, 1, 0, 1900, 900);
    assert_int_equal(c.out.n, 0);
    used(&b, 1, 1, 0, 2000, 1000);
    used(&c, 1, 1, 0, 2000, 1000);
    assert_int_equal(c.out.n, 1);
    assert_true(st_record_same(&b.out.v[0], &c.out.v[0]));
    end(&b);
    end(&c);
}

/* A piece that was taken back in part: the meter that plays does that by itself, and what is stored about
 * it must not be taken off again. */
static void test_recall_shortened(void **state)
{
    (void)state;
    bench b, c;
    begin(&b, 1, 1);
    begin(&c, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    start(&c, &job, 1, -1, 0);
    used(&b, 1, 1, 0, 900, 900);
    cut(&b, 1000);
    cut(&c, 1000);
    st_meter_recall(c.m, grant(&b, 1));
    stop(&b, 1, 2000, 800); /* 900 seen become 800 */
    stop(&c, 1, 2000, 800);
    for (size_t i = 0; i < b.out.n; i++) {
        assert_int_equal(b.out.v[i].share, c.out.v[i].share);
        st_meter_recall(c.m, &b.out.v[i]);
    }
    assert_int_equal(nth(&c, ST_REC_FIX, 1, 0)->seen, -100000);
    used(&c, 1, 1, 0, 900, 900); /* nothing of it is new */
    assert_int_equal(c.out.n, 0);
    end(&b);
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),       cmocka_unit_test(test_slice),
        cmocka_unit_test(test_spans_a_cut), cmocka_unit_test(test_late),
        cmocka_unit_test(test_pause),       cmocka_unit_test(test_partly_known),
        cmocka_unit_test(test_recall),      cmocka_unit_test(test_recall_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
