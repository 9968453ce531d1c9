/* Saving and loading: the same bytes, the same future; damage is refused. */
#include "meter/test/bench.h"

/* A bit of everything. */
static void fill(bench *b)
{
    begin(b, 2, 3);
    b->tree->accounts.v[1]->floor.gpu_m = 2000;
    st_meter_floors(b->m, b->tree, 0, &b->out);
    st_meter_agree(b->m, 2, 500);
    for (uint64_t i = 1; i <= 4; i++) {
        st_job job = shared(i, ST_LEVEL_TIME, 400);
        job.account = 1 + (int32_t)(i % 2);
        start(b, &job, 1, -1, (int64_t)i);
        used(b, i, 1, 0, 3, 2);
    }
    st_job mig = slice(5, ST_MIG_4G), other = slice(6, ST_MIG_3G), large = whole(7, 2);
    large.tasks = 1;
    start(b, &mig, 2, 0, 7);
    start(b, &other, 2, 4, 9);
    st_grant there[] = {{1, 3, -1}};
    start_on(b, &large, there, 11);
    cut(b, 20);
    st_grant plan[] = {{1, 4, -1}};
    st_job waits = whole(8, 1);
    st_meter_hold(b->m, 8, plan, 1, &waits.shape, 21);
    stop(b, 3, 23, 15); /* may come back */
    stop(b, 5, 29, 28);
    st_meter_forget(b->m, 5);
    set_node(b, 1, ST_NODE_DRAINING, 31);
}

static st_meter *reload(const st_meter *m)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf one = {0}, two = {0};
    st_meter *ret = NULL;
    st_err err = {0};
    st_meter_save(m, &one);
    assert_ok(st_meter_load(one.s, one.n, &ret, &err));
    st_meter_save(ret, &two);
    assert_int_equal(one.n, two.n);
    assert_memory_equal(one.s, two.s, one.n);
    return ret;
}

/* Goes on: everything ends, with telemetry on the way. */
static void go_on(bench *b)
{
    used(b, 3, 1, 0, 9, 9);
    st_records all = b->out;
    b->out = (st_records){0};
    st_job back = shared(3, ST_LEVEL_TIME, 700);
    back.account = 2; /* beyond what is agreed */
    st_meter_start(b->m, b->tree, &back, 0, &(st_grant){0, 1, -1}, 40, &all);
    st_meter_cut(b->m, 55, &all);
    st_sums sums = {30, 20, 10, ST_UNKNOWN};
    st_meter_used(b->m, 5, 1, 0, &sums, &all);
    st_meter_used(b->m, 2, 1, 0, &sums, &all);
    for (uint64_t i = 1; i <= 7; i++)
        st_meter_stop(b->m, i, 60 + (int64_t)i, 12, ST_CUT_ENDED, 0, &all);
    st_meter_cut(b->m, 90, &all);
    b->out = all;
}

static void test_same_future(void **state)
{
    (void)state;
    bench b, c;
    fill(&b);
    fill(&c);
    st_meter *loaded = reload(c.m);
    st_meter_free(c.m);
    c.m = loaded;
    go_on(&b);
    go_on(&c);
    assert_int_equal(b.out.n, c.out.n);
    assert_true(b.out.n > 20);
    for (size_t i = 0; i < b.out.n; i++) {
        b.out.v[i].grants = c.out.v[i].grants = NULL;
        assert_true(st_record_same(&b.out.v[i], &c.out.v[i]));
    }
    st_meter_free(reload(c.m));
    end(&b);
    end(&c);
}

static void test_damage(void **state)
{
    (void)state;
    bench b;
    st_err err = {0};
    st_meter *m = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    fill(&b);
    st_meter_save(b.m, &bytes);
    for (size_t i = 0; i < bytes.n; i++) {
        bytes.s[i] = (char)(bytes.s[i] ^ 4);
        assert_fails(st_meter_load(bytes.s, bytes.n, &m, &err), ST_EPARSE, "damaged");
        bytes.s[i] = (char)(bytes.s[i] ^ 4);
        assert_fails(st_meter_load(bytes.s, i, &m, &err), ST_EPARSE, "damaged");
    }
    assert_null(m);
    end(&b);
}

static void test_empty(void **state)
{
    (void)state;
    st_meter *m = st_meter_new(5), *n = reload(m);
    assert_int_equal(st_meter_now(n), 5);
    st_meter_free(m);
    st_meter_free(n);
    st_meter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_future),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
