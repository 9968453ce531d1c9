/* Stays: what they have of shared devices, pieces, real ends, stays of one job. */
#include "meter/test/bench.h"

/* Two whole GPUs for 90 s: 2 x 1000 x 90000 = 180,000,000 of share and held. CPU 2000 x 90000. */
static void test_whole(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 4);
    st_job job = whole(7, 2);
    job.user = 3;
    job.topo = ST_TOPO_NVLINK;
    job.topo_required = true;
    start(&b, &job, 0x3, -1, 10 * SEC);
    assert_int_equal(b.out.n, 0);
    stop(&b, 7, 100 * SEC, ST_UNSET);
    assert_int_equal(b.out.n, 1);
    const st_record *r = grant(&b, 7);
    assert_int_equal(r->from_ms, 10 * SEC);
    assert_int_equal(r->to_ms, 100 * SEC);
    assert_int_equal(r->share, 180000000);
    assert_int_equal(r->held, 180000000);
    assert_int_equal(r->cpu, 180000000);
    assert_int_equal(r->ram, 900000);
    assert_int_equal(r->gpu_m, 2000);
    assert_int_equal(r->stay, 1);
    assert_int_equal(r->piece, 1);
    assert_int_equal(r->user, 3);
    assert_int_equal(r->account, 1);
    assert_int_equal(r->profile, -1);
    assert_int_equal(r->topo, ST_TOPO_NVLINK);
    assert_int_equal(r->basis, ST_BASIS_BURST);
    assert_int_equal(r->cut, ST_CUT_ENDED);
    assert_int_equal(r->seen, ST_UNKNOWN);
    assert_int_equal(r->energy_mj, ST_UNKNOWN);
    assert_int_equal(r->grants[0].devs, 0x3);
    /* 4 GPUs x 100 s = 400,000,000, of which 180,000,000 were granted. */
    totals(&b, 180000000, 220000000, 0, 0);
    end(&b);
}

/* Without a GPU there are only CPU and RAM. */
static void test_cpu_only(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(7, 0);
    start(&b, &job, 0, -1, 0);
    stop(&b, 7, 5 * SEC, ST_UNSET);
    assert_int_equal(grant(&b, 7)->share, 0);
    assert_int_equal(grant(&b, 7)->held, 0);
    assert_int_equal(grant(&b, 7)->cpu, 2000 * 5 * SEC);
    assert_int_equal(grant(&b, 7)->type, -1);
    totals(&b, 0, 5 * SEC * 1000, 0, 0);
    end(&b);
}

/* 4g + 3g charge 571 + 500 = 1071. Over 1071 ms there are 1,071,000: 571,000 and 500,000. Alone
 * again, the 3g has its 500 and the rest is idle: a 4g fits. */
static void test_mig_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job big = slice(1, ST_MIG_4G), small = slice(2, ST_MIG_3G);
    start(&b, &big, 1, 0, 0);
    is_at(&b, 0, 571, 429, 0, 0);
    start(&b, &small, 1, 4, 0);
    is_at(&b, 0, 1000, 0, 0, 0);
    stop(&b, 1, 1071, ST_UNSET);
    assert_int_equal(grant(&b, 1)->share, 571000);
    assert_int_equal(grant(&b, 1)->held, 571 * 1071);
    assert_int_equal(grant(&b, 1)->profile, ST_MIG_4G);
    is_at(&b, 0, 500, 500, 0, 0);
    stop(&b, 2, 2071, ST_UNSET);
    assert_int_equal(grant(&b, 2)->share, 500000 + 500 * 1000);
    assert_int_equal(grant(&b, 2)->held, 500 * 2071);
    totals(&b, 1071000 + 500000, 500000, 0, 0);
    end(&b);
}

/* Three shares of 500 in a time-sliced GPU: a third each, and the third of 1000 x 1 ms is 333, 333 and
 * 334; nothing is lost. */
static void test_time_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        st_job job = shared(i, ST_LEVEL_TIME, 500);
        start(&b, &job, 1, -1, 0);
    }
    cut(&b, 1);
    assert_int_equal(grant(&b, 1)->share, 333);
    assert_int_equal(grant(&b, 2)->share, 333);
    assert_int_equal(grant(&b, 3)->share, 334);
    assert_int_equal(nth(&b, ST_REC_FLEET, 0, 0)->granted, 1000);
    /* Over 3000 ms it comes out even, although each ms does not. */
    cut(&b, 3001);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(grant(&b, i)->share, 1000000);
        assert_int_equal(grant(&b, i)->held, 1500000);
    }
    end(&b);
}

/* Two of 300 fit: each has its own. With 700 more there are 1300: from then on 300/1300 and 700/1300. */
static void test_becomes_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job one = shared(1, ST_LEVEL_MPS, 300), two = shared(2, ST_LEVEL_MPS, 300);
    st_job three = shared(3, ST_LEVEL_MPS, 700);
    start(&b, &one, 1, -1, 0);
    start(&b, &two, 1, -1, 100);
    is_at(&b, 0, 600, 400, 0, 0);
    start(&b, &three, 1, -1, 200);
    stop(&b, 2, 200 + 1300, ST_UNSET);
    assert_int_equal(grant(&b, 2)->share, 300 * 100 + 300000);
    stop(&b, 3, 200 + 1300 + 1000, ST_UNSET);
    assert_int_equal(grant(&b, 3)->share, 700000 + 700 * 1000);
    stop(&b, 1, 3000, ST_UNSET);
    assert_int_equal(grant(&b, 1)->share, 300 * 200 + 300000 + 300 * 1500);
    end(&b);
}

/* Pieces join; each says by what right. */
static void test_class_change(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_class(b.m, b.tree, 1, ST_CLASS_GUARANTEED, 0, &b.out); /* nothing was had by then */
    assert_int_equal(b.out.n, 0);
    st_meter_class(b.m, b.tree, 1, ST_CLASS_GUARANTEED, 50, &b.out); /* is it already */
    assert_int_equal(b.out.n, 0);
    st_meter_class(b.m, b.tree, 1, ST_CLASS_BURSTABLE, 100, &b.out);
    assert_int_equal(b.out.n, 1);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_GUARANTEED);
    assert_int_equal(grant(&b, 1)->cut, ST_CUT_GOES_ON);
    assert_int_equal(grant(&b, 1)->share, 100000);
    stop(&b, 1, 250, ST_UNSET);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_BURST);
    assert_int_equal(grant(&b, 1)->from_ms, 100);
    assert_int_equal(grant(&b, 1)->piece, 2);
    assert_int_equal(grant(&b, 1)->share, 150000);
    end(&b);
}

/* What comes back is the next stay; a job that is moved is stopped first. */
static void test_stays_count(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 2);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 100, ST_UNSET, ST_CUT_PREEMPTED, 30, &b.out);
    assert_int_equal(grant(&b, 1)->cut, ST_CUT_PREEMPTED);
    assert_int_equal(nth(&b, ST_REC_LOST, 1, 0)->lost, 30000);
    start(&b, &job, 1, -1, 200);
    start(&b, &job, 2, -1, 300);
    assert_int_equal(grant(&b, 1)->stay, 2);
    assert_int_equal(grant(&b, 1)->share, 100000);
    is_at(&b, 0, 0, 1000, 0, 0);
    is_at(&b, 1, 1000, 0, 0, 0);
    stop(&b, 1, 400, ST_UNSET);
    assert_int_equal(grant(&b, 1)->stay, 3);
    st_meter_forget(b.m, 1);
    stop(&b, 1, 400, ST_UNSET);
    assert_int_equal(b.out.n, 0);
    end(&b);
}

static int count(const bench *b, st_record_kind kind)
{
    int n = 0;
    for (size_t i = 0; i < b->out.n; i++)
        n += b->out.v[i].kind == kind;
    return n;
}

static void is_lost(const bench *b, int n, int stay, int piece, int64_t from, int64_t to,
                    int64_t lost)
{
    const st_record *r = nth(b, ST_REC_LOST, 1, n);
    assert_int_equal(r->stay, stay);
    assert_int_equal(r->piece, piece);
    assert_int_equal(r->fixes, piece);
    assert_int_equal(r->from_ms, from);
    assert_int_equal(r->to_ms, to);
    assert_int_equal(r->lost, lost);
    assert_int_equal(r->share, 0);
}

/* A paused job loses what it had in memory, hours later and once. */
static void test_lost_later(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_pause(b.m, 1, 100, 77, &b.out);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 9 * HOUR, ST_UNSET, ST_CUT_PREEMPTED, 77, &b.out);
    assert_int_equal(b.out.n, 1);
    is_lost(&b, 0, 1, 1, 23, 100, 77000);
    assert_int_equal(nth(&b, ST_REC_LOST, 1, 0)->cut, ST_CUT_PREEMPTED);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 9 * HOUR, ST_UNSET, ST_CUT_PREEMPTED, 77, &b.out);
    assert_int_equal(b.out.n, 0);
    end(&b);
}

/* What is lost lies in the pieces it lies in: each has its own basis, and what it had then. */
static void test_lost_pieces(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_cut(b.m, 1000, &b.out);
    st_meter_cut(b.m, 3000, &b.out);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 4000, 3900, ST_CUT_PREEMPTED, 3600, &b.out);
    is_lost(&b, 0, 1, 1, 400, 1000, 600000);
    is_lost(&b, 1, 1, 2, 1000, 3000, 2000000);
    is_lost(&b, 2, 1, 3, 3000, 3900, 900000);
    assert_int_equal(count(&b, ST_REC_LOST), 3);
    end(&b);
}

/* Beside another on the same GPU the first had half of it: that is what is lost, not what it holds. */
static void test_lost_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job one = shared(1, ST_LEVEL_TIME, 1000), two = shared(2, ST_LEVEL_TIME, 1000);
    start(&b, &one, 1, -1, 0);
    start(&b, &two, 1, -1, 1000);
    st_meter_cut(b.m, 1500, &b.out);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 2000, ST_UNSET, ST_CUT_PREEMPTED, 1200, &b.out);
    is_lost(&b, 0, 1, 1, 800, 1500, 200000 + 250000);
    is_lost(&b, 1, 1, 2, 1500, 2000, 250000);
    end(&b);
}

/* Paused twice without a checkpoint, then lost: both stays are, the first from its mark on, also when it
 * ended long before; a meter that was saved and loaded in between says the same. */
static void test_lost_across_pauses(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_pause(b.m, 1, 1000, 400, &b.out);
    start(&b, &job, 1, -1, 2000);
    st_meter_pause(b.m, 1, 2000, 400, &b.out);
    start(&b, &job, 1, -1, 5 * HOUR);
    st_meter_pause(b.m, 1, 10 * HOUR, 400 + 5 * HOUR, &b.out);
    start(&b, &job, 1, -1, 20 * HOUR);
    ST_CLEANUP(st_strbuf_done) st_strbuf saved = {0};
    st_err err;
    st_meter_save(b.m, &saved);
    st_meter_free(b.m);
    assert_ok(st_meter_load(saved.s, saved.n, &b.m, &err));
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 20 * HOUR + 50, ST_UNSET, ST_CUT_FAULT, 50 + 5 * HOUR + 400, &b.out);
    is_lost(&b, 0, 1, 1, 600, 1000, 400000);
    is_lost(&b, 1, 3, 1, 5 * HOUR, 10 * HOUR, 5 * HOUR * 1000);
    is_lost(&b, 2, 4, 1, 20 * HOUR, 20 * HOUR + 50, 50000);
    assert_int_equal(count(&b, ST_REC_LOST), 3);
    end(&b);
}

/* A checkpoint after it came back: what was kept before is safe. */
static void test_saved_since(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_pause(b.m, 1, 1000, 1000, &b.out);
    start(&b, &job, 1, -1, 2000);
    st_meter_pause(b.m, 1, 3000, 300, &b.out);
    st_vec_clear(&b.out);
    st_meter_stop(b.m, 1, 4000, ST_UNSET, ST_CUT_PREEMPTED, 300, &b.out);
    is_lost(&b, 0, 2, 1, 2700, 3000, 300000);
    assert_int_equal(b.out.n, 1);
    end(&b);
}

/* It ended at 600, which becomes known at 1000: 400 ms are overhead. */
static void test_real_end(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    stop(&b, 1, 1000, 600);
    assert_int_equal(b.out.n, 1);
    assert_int_equal(grant(&b, 1)->to_ms, 600);
    assert_int_equal(grant(&b, 1)->share, 600000);
    assert_int_equal(grant(&b, 1)->held, 600000);
    totals(&b, 600000, 0, 0, 400000);
    end(&b);
}

/* Its tasks run since 300 of 1000: the time before is overhead. What comes twice, or after a cut, changes nothing; so does
 * what lies before the start. */
static void test_real_start(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_began(b.m, 1, 300, 1000);
    st_meter_began(b.m, 1, 400, 1000);
    stop(&b, 1, 1000, ST_UNSET);
    assert_int_equal(grant(&b, 1)->from_ms, 300);
    assert_int_equal(grant(&b, 1)->share, 700000);
    assert_int_equal(grant(&b, 1)->held, 700000);
    assert_int_equal(grant(&b, 1)->cpu, 2000 * 700);
    totals(&b, 700000, 0, 0, 300000);
    start(&b, &job, 1, -1, 1000);
    cut(&b, 1500);
    st_meter_began(b.m, 1, 1400, 1600);
    stop(&b, 1, 2000, ST_UNSET);
    assert_int_equal(grant(&b, 1)->from_ms, 1500);
    totals(&b, 700000 + 1000000, 0, 0, 300000);
    start(&b, &job, 1, -1, 2000);
    st_meter_began(b.m, 1, 900, 2100);
    stop(&b, 1, 2200, 2050);
    assert_int_equal(grant(&b, 1)->from_ms, 2000);
    assert_int_equal(grant(&b, 1)->share, 50000);
    end(&b);
}

/* A node cannot make a job cheap by its word, nor can an image that takes for ever. */
static void test_real_start_bound(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_began(b.m, 1, HOUR, HOUR);
    stop(&b, 1, HOUR, ST_UNSET);
    assert_int_equal(grant(&b, 1)->from_ms, ST_METER_READY_MS);
    assert_int_equal(grant(&b, 1)->share, 1000 * (HOUR - ST_METER_READY_MS));
    totals(&b, 1000 * (HOUR - ST_METER_READY_MS), 0, 0, 1000 * ST_METER_READY_MS);
    end(&b);
}

/* Two shares of 500 and one of 500 more: a third each. The third runs since 600: 200,000 of what it was dealt before is
 * overhead, and the others keep theirs. */
static void test_real_start_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        st_job job = shared(i, ST_LEVEL_TIME, 500);
        start(&b, &job, 1, -1, 0);
    }
    st_meter_began(b.m, 3, 600, 900);
    stop(&b, 3, 900, ST_UNSET);
    assert_int_equal(grant(&b, 3)->share, 100000);
    assert_int_equal(grant(&b, 3)->held, 500 * 300);
    stop(&b, 1, 900, ST_UNSET);
    assert_int_equal(grant(&b, 1)->share, 300000);
    stop(&b, 2, 900, ST_UNSET);
    totals(&b, 700000, 0, 0, 200000);
    end(&b);
}

/* Beside others on a crowded GPU. There are three shares of 500 all the time: 1, 2 and 3, from 600 on
 * 4 instead of 3. Job 2 really ended at 450 and is taken off at 1000: it has 450/3 = 150,000 of the
 * 333,333 it was dealt, and 183,333 are overhead. The others keep what they had: the GPU was not theirs. */
static void test_real_end_crowded(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        st_job job = shared(i, ST_LEVEL_TIME, 500);
        start(&b, &job, 1, -1, 0);
    }
    stop(&b, 3, 600, ST_UNSET);
    assert_int_equal(grant(&b, 3)->share, 200000);
    st_job four = shared(4, ST_LEVEL_TIME, 500);
    start(&b, &four, 1, -1, 600);
    stop(&b, 2, 1000, 450);
    assert_int_equal(grant(&b, 2)->share, 150000);
    assert_int_equal(grant(&b, 2)->held, 500 * 450);
    stop(&b, 1, 1000, ST_UNSET);
    assert_int_equal(grant(&b, 1)->share, 333333);
    stop(&b, 4, 1000, ST_UNSET);
    assert_int_equal(grant(&b, 4)->share, 133334); /* it got what was left over */
    totals(&b, 1000000 - 183333, 0, 0, 183333);
    end(&b);
}

/* It ended at 60, when it had the GPU to itself with 800 of it; the crowd came at 100. */
static void test_real_end_before_crowd(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job one = shared(1, ST_LEVEL_TIME, 800), two = shared(2, ST_LEVEL_TIME, 800);
    start(&b, &one, 1, -1, 0);
    start(&b, &two, 1, -1, 100);
    stop(&b, 1, 300, 60);
    assert_int_equal(grant(&b, 1)->share, 800 * 60);
    stop(&b, 2, 300, ST_UNSET);
    assert_int_equal(grant(&b, 2)->share, 500 * 200);
    totals(&b, 48000 + 100000, 200 * 100, 0, 32000 + 100000);
    end(&b);
}

/* Two pieces were handed out, [0, 100) and [100, 200), and then it turns out that it ended at 40: the
 * first loses 60 ms, the second all, the open one says only that it is over. */
static void test_real_end_before_pieces(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 0);
    used(&b, 1, 1, 0, 90, 50);
    cut(&b, 100);
    assert_int_equal(grant(&b, 1)->seen, 90000);
    st_meter_class(b.m, b.tree, 1, ST_CLASS_GUARANTEED, 200, &b.out);
    stop(&b, 1, 300, 40);
    /* fleet, fix, fix, grant: the first piece lies before the cut. */
    assert_int_equal(b.out.n, 4);
    const st_record *fleet = &b.out.v[0], *one = &b.out.v[1], *two = &b.out.v[2];
    assert_int_equal(fleet->kind, ST_REC_FLEET);
    assert_int_equal(fleet->total, 0);
    assert_int_equal(fleet->granted, -60000);
    assert_int_equal(fleet->overhead, 60000);
    assert_int_equal(one->kind, ST_REC_FIX);
    assert_int_equal(one->fixes, 1);
    assert_int_equal(one->from_ms, 40);
    assert_int_equal(one->to_ms, 100);
    assert_int_equal(one->share, -60000);
    assert_int_equal(one->held, -60000);
    assert_int_equal(one->cpu, -120000);
    assert_int_equal(one->basis, ST_BASIS_BURST);
    assert_int_equal(one->seen, 40000 - 90000); /* no more than there was */
    assert_int_equal(one->busy, 40000 - 50000);
    assert_null(one->grants);
    assert_int_equal(two->fixes, 2);
    assert_int_equal(two->share, -100000);
    assert_int_equal(grant(&b, 1)->from_ms, 200);
    assert_int_equal(grant(&b, 1)->to_ms, 200);
    assert_int_equal(grant(&b, 1)->share, 0);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_GUARANTEED);
    totals(&b, 40000, 0, 0, 260000);
    end(&b);
}

/* A clock that goes back is taken as standing still. */
static void test_clock_back(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = whole(1, 1);
    start(&b, &job, 1, -1, 1000);
    cut(&b, 500);
    assert_int_equal(st_meter_now(b.m), 1000);
    stop(&b, 1, 900, 200);
    assert_int_equal(grant(&b, 1)->from_ms, 1000);
    assert_int_equal(grant(&b, 1)->to_ms, 1000);
    totals(&b, 0, 1000000, 0, 0);
    end(&b);
}

/* More changes than are remembered one by one: what is had after a moment long ago is interpolated, and
 * the sum is still right. */
static void test_long_past(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job a = shared(1, ST_LEVEL_TIME, 1000), c = shared(2, ST_LEVEL_TIME, 1000);
    start(&b, &a, 1, -1, 0);
    start(&b, &c, 1, -1, 0);
    int64_t sum = 0;
    for (int i = 1; i <= 200; i++) {
        cut(&b, 10 * i);
        sum += grant(&b, 1)->share + grant(&b, 2)->share;
    }
    assert_int_equal(sum, 2000000);
    stop(&b, 1, 2000, 1005);
    for (size_t i = 0; i < b.out.n; i++)
        sum += b.out.v[i].share;
    assert_in_range(sum, 2000000 - 497501, 2000000 - 497499);
    st_record r;
    st_meter_totals(b.m, 0, &r);
    assert_int_equal(r.granted, sum);
    assert_int_equal(r.overhead, 2000000 - sum);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_cpu_only),
        cmocka_unit_test(test_mig_crowded),
        cmocka_unit_test(test_time_crowded),
        cmocka_unit_test(test_becomes_crowded),
        cmocka_unit_test(test_class_change),
        cmocka_unit_test(test_stays_count),
        cmocka_unit_test(test_lost_later),
        cmocka_unit_test(test_lost_pieces),
        cmocka_unit_test(test_lost_crowded),
        cmocka_unit_test(test_lost_across_pauses),
        cmocka_unit_test(test_saved_since),
        cmocka_unit_test(test_real_start),
        cmocka_unit_test(test_real_start_bound),
        cmocka_unit_test(test_real_start_crowded),
        cmocka_unit_test(test_real_end),
        cmocka_unit_test(test_real_end_crowded),
        cmocka_unit_test(test_real_end_before_crowd),
        cmocka_unit_test(test_real_end_before_pieces),
        cmocka_unit_test(test_clock_back),
        cmocka_unit_test(test_long_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
