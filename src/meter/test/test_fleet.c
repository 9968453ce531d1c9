/* Where devices are when nobody has them, floors, and which burst is on demand. */
#include "meter/test/bench.h"

static void test_node_states(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 1);
    st_job job = shared(1, ST_LEVEL_MPS, 400);
    start(&b, &job, 1, -1, 0);
    is_at(&b, 0, 400, 600, 0, 0);
    set_node(&b, 0, ST_NODE_DRAINING, 100);
    is_at(&b, 0, 400, 0, 0, 600);
    set_node(&b, 0, ST_NODE_FAILED, 200);
    is_at(&b, 0, 400, 0, 600, 0);
    assert_true(st_meter_failed(b.m, 1));
    stop(&b, 1, 200, ST_UNSET);
    is_at(&b, 0, 0, 0, 1000, 0);
    set_node(&b, 0, ST_NODE_READY, 300);
    is_at(&b, 0, 0, 1000, 0, 0);
    add_node(&b, 1, 2, 300); /* of another type */
    cut(&b, 400);
    totals(&b, 400 * 200, 600 * 100 + 1000 * 100, 1000 * 100, 600 * 100);
    assert_int_equal(nth(&b, ST_REC_FLEET, 0, 0)->total, 400000);
    const st_record *other = nth(&b, ST_REC_FLEET, 0, 1);
    assert_int_equal(other->type, 1);
    assert_int_equal(other->total, 2 * 1000 * 100);
    assert_int_equal(other->idle, other->total);
    assert_int_equal(other->from_ms, 0);
    end(&b);
}

static int64_t part(const bench *b, int32_t pool, st_where where)
{
    st_meter_part *list;
    size_t n = st_meter_parts(b->m, st_meter_now(b->m), &list);
    int64_t at = 0;
    for (size_t i = 0; i < n; i++)
        at += list[i].pool == pool ? list[i].at[where] : 0;
    free(list);
    return at;
}

/* The same by pool and cause, and a save in between changes nothing. */
static void test_parts(void **state)
{
    (void)state;
    bench b;
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_meter *again = NULL;
    st_err err = {0};
    begin(&b, 1, 2);
    st_node other = {.id = b.nnodes++, .ndevs = 1, .pool = 7};
    st_meter_node(b.m, &other, 0);
    st_job job = whole(1, 1), claimant = whole(2, 1);
    start(&b, &job, 1, -1, 0);
    st_meter_began(b.m, 1, 30, 40);
    st_meter_hold(b.m, 2, (const st_grant[]){{0, 2, -1}}, 1, &claimant.shape, 40);
    other.state = ST_NODE_DRAINING;
    st_meter_node(b.m, &other, 100);
    other.state = ST_NODE_FAILED;
    st_meter_node(b.m, &other, 150);
    st_meter_save(b.m, &bytes);
    assert_ok(st_meter_load(bytes.s, bytes.n, &again, &err));
    st_meter_free(b.m);
    b.m = again;
    stop(&b, 1, 200, 180);
    st_meter_advance(b.m, 300);
    assert_int_equal(part(&b, 0, ST_WHERE_GRANTED), 150 * 1000);
    assert_int_equal(part(&b, 0, ST_WHERE_STARTING), 30 * 1000);
    assert_int_equal(part(&b, 0, ST_WHERE_ENDED), 20 * 1000);
    assert_int_equal(part(&b, 0, ST_WHERE_KEPT), 260 * 1000);
    assert_int_equal(part(&b, 0, ST_WHERE_IDLE), (40 + 100) * 1000);
    assert_int_equal(part(&b, 7, ST_WHERE_IDLE), 100 * 1000);
    assert_int_equal(part(&b, 7, ST_WHERE_DRAINING), 50 * 1000);
    assert_int_equal(part(&b, 7, ST_WHERE_FAILED), 150 * 1000);
    end(&b);
}

/* Seven 1g slices charge 7 x 142 = 994; nothing fits the other 6. Three 2g (285 each) leave one compute
 * slice and room for a 1g. */
static void test_carved(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 2);
    for (int i = 0; i < 7; i++) {
        st_job job = slice((uint64_t)i + 1, ST_MIG_1G);
        start(&b, &job, 1, i, 0);
        if (i == 5)
            is_at(&b, 0, 852, 148, 0, 0);
    }
    is_at(&b, 0, 994, 0, 0, 6);
    for (int i = 0; i < 3; i++) {
        st_job job = slice((uint64_t)i + 11, ST_MIG_2G);
        start(&b, &job, 2, 2 * i, 0);
    }
    is_at(&b, 1, 855, 145, 0, 0);
    end(&b);
}

/* What is kept for a plan is nobody's to have, as far as it is free. */
static void test_hold(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 3);
    st_job one = shared(1, ST_LEVEL_MPS, 700), claimant = shared(2, ST_LEVEL_MPS, 500);
    start(&b, &one, 1, -1, 0);
    st_grant plan[] = {{0, 1, -1}};
    st_meter_hold(b.m, 2, plan, 1, &claimant.shape, 0);
    is_at(&b, 0, 700, 0, 0, 300);
    st_job gang = whole(3, 2);
    st_grant two[] = {{0, 6, -1}};
    st_meter_hold(b.m, 3, two, 1, &gang.shape, 0);
    is_at(&b, 1, 0, 0, 0, 1000);
    is_at(&b, 2, 0, 0, 0, 1000);
    st_meter_hold(b.m, 3, NULL, 0, NULL, 100);
    st_meter_hold(b.m, 3, NULL, 0, NULL, 100);
    is_at(&b, 1, 0, 1000, 0, 0);
    stop(&b, 1, 100, ST_UNSET);
    is_at(&b, 0, 0, 500, 0, 500);
    start(&b, &claimant, 1, -1, 200); /* the plan comes true */
    is_at(&b, 0, 500, 500, 0, 0);
    end(&b);
}

static void set_floor(bench *b, int32_t id, int64_t gpu_m, int64_t type0_m)
{
    b->tree->accounts.v[id]->floor.gpu_m = gpu_m;
    b->tree->accounts.v[id]->floor.type_m[0] = type0_m;
}

static const st_record *reserve(const bench *b, int32_t account, int32_t type)
{
    for (size_t i = 0; i < b->out.n; i++)
        if (b->out.v[i].kind == ST_REC_RESERVE && b->out.v[i].account == account &&
            b->out.v[i].type == type)
            return &b->out.v[i];
    return NULL;
}

static void test_floors(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 8);
    int32_t kid = add_account(&b, "kid", "a");
    set_floor(&b, 1, 8000, ST_UNSET); /* of any type */
    set_floor(&b, kid, 3000, 2000);   /* 2 of type 0, 1 of any */
    set_floor(&b, 2, 0, ST_UNSET);
    st_meter_floors(b.m, b.tree, 0, &b.out);
    assert_int_equal(b.out.n, 0);
    cut(&b, 10);
    assert_int_equal(reserve(&b, 1, -1)->gpu_m, 5000); /* 8 less the child's 3 */
    assert_int_equal(reserve(&b, 1, -1)->share, 50000);
    assert_int_equal(reserve(&b, kid, 0)->share, 20000);
    assert_int_equal(reserve(&b, kid, -1)->share, 10000);
    assert_null(reserve(&b, 2, -1));
    /* The child's floor shrinks: only what changes is told. */
    set_floor(&b, kid, 2000, 2000);
    st_vec_clear(&b.out);
    st_meter_floors(b.m, b.tree, 30, &b.out);
    assert_int_equal(b.out.n, 2);
    assert_int_equal(reserve(&b, 1, -1)->share, 5000 * 20);
    assert_int_equal(reserve(&b, kid, -1)->share, 1000 * 20);
    cut(&b, 40);
    assert_int_equal(reserve(&b, 1, -1)->share, 6000 * 10);
    assert_int_equal(reserve(&b, kid, 0)->share, 2000 * 30);
    assert_int_equal(reserve(&b, kid, 0)->from_ms, 10);
    assert_null(reserve(&b, kid, -1));
    end(&b);
}

/* Account a and all below it have agreed on 4 GPUs of burst. */
static void test_on_demand(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 8);
    int32_t kid = add_account(&b, "kid", "a");
    st_meter_agree(b.m, 1, 4000);
    st_job one = whole(1, 3), two = whole(2, 2), three = whole(3, 1);
    two.account = kid;
    start(&b, &one, 0x07, -1, 0);
    start(&b, &two, 0x18, -1, 0);   /* 5 would be too many */
    start(&b, &three, 0x20, -1, 0); /* fits */
    cut(&b, 10);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_BURST);
    assert_int_equal(grant(&b, 2)->basis, ST_BASIS_ON_DEMAND);
    assert_int_equal(grant(&b, 3)->basis, ST_BASIS_BURST);
    stop(&b, 1, 20, ST_UNSET); /* now there is room for 2; it counts from the next cut on */
    cut(&b, 30);
    assert_int_equal(grant(&b, 2)->basis, ST_BASIS_ON_DEMAND);
    cut(&b, 40);
    assert_int_equal(grant(&b, 2)->basis, ST_BASIS_BURST);
    /* Less is agreed: who was burst first by job stays so. */
    st_meter_agree(b.m, 1, 2000);
    cut(&b, 50);
    cut(&b, 60);
    assert_int_equal(grant(&b, 2)->basis, ST_BASIS_BURST);
    assert_int_equal(grant(&b, 3)->basis, ST_BASIS_ON_DEMAND);
    st_meter_agree(b.m, 1, ST_UNSET);
    st_meter_class(b.m, b.tree, 3, ST_CLASS_GUARANTEED, 70, &b.out);
    st_meter_class(b.m, b.tree, 3, ST_CLASS_BURSTABLE, 80, &b.out);
    cut(&b, 90);
    assert_int_equal(grant(&b, 3)->basis, ST_BASIS_BURST);
    end(&b);
}

/* A floor of 4 and a gang of 8: half of it is paid with the floor, less what guaranteed work takes of that. */
static void test_inside(void **state)
{
    (void)state;
    bench b;
    begin(&b, 2, 8);
    set_floor(&b, 1, 4000, ST_UNSET);
    st_meter_inside(b.m, b.tree, 0);
    st_meter_floors(b.m, b.tree, 0, &b.out);
    st_job gang = whole(1, 8), small = whole(2, 1), late = whole(3, 2), other = whole(4, 1);
    small.class = ST_CLASS_GUARANTEED;
    other.account = 2;
    start(&b, &gang, 0xff, -1, 0);
    cut(&b, 10);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_BURST);
    assert_int_equal(grant(&b, 1)->share, 80000);
    assert_int_equal(grant(&b, 1)->inside, 40000);
    /* No piece ends for it: 5 ms with 4 inside, 5 with 3. */
    st_grant on_two = {.node = 1, .devs = 0x01, .mig_start = -1};
    st_meter_start(b.m, b.tree, &small, 0, &on_two, 15, &b.out);
    cut(&b, 20);
    assert_int_equal(grant(&b, 1)->inside, 20000 + 15000);
    assert_int_equal(grant(&b, 2)->inside, 0);
    /* The oldest has the room; an account without a floor has none. */
    on_two.devs = 0x06;
    st_meter_start(b.m, b.tree, &late, 0, &on_two, 20, &b.out);
    on_two.devs = 0x08;
    st_meter_start(b.m, b.tree, &other, 0, &on_two, 20, &b.out);
    cut(&b, 30);
    assert_int_equal(grant(&b, 1)->inside, 30000);
    assert_int_equal(grant(&b, 3)->inside, 0);
    assert_int_equal(grant(&b, 4)->inside, 0);
    stop(&b, 1, 40, ST_UNSET);
    assert_int_equal(grant(&b, 1)->inside, 30000);
    cut(&b, 50);
    assert_int_equal(grant(&b, 3)->inside, 20000);
    /* The floor is gone. */
    set_floor(&b, 1, 1000, ST_UNSET);
    st_meter_floors(b.m, b.tree, 60, &b.out);
    cut(&b, 70);
    assert_int_equal(grant(&b, 3)->inside, 20000);
    end(&b);
}

/* What was promised of a type is kept for it, and an account below has what all above it leave. */
static void test_inside_tree(void **state)
{
    (void)state;
    bench b;
    begin(&b, 2, 8);
    int32_t kid = add_account(&b, "kid", "a");
    set_floor(&b, 1, 6000, 4000); /* 4 of type 0, 2 of any */
    set_floor(&b, kid, 3000, ST_UNSET);
    st_meter_inside(b.m, b.tree, 0);
    st_job gang = whole(1, 8), below = whole(2, 8);
    below.account = kid;
    start(&b, &gang, 0xff, -1, 0);
    st_grant on_two = {.node = 1, .devs = 0xff, .mig_start = -1};
    st_meter_start(b.m, b.tree, &below, 0, &on_two, 0, &b.out);
    cut(&b, 10);
    assert_int_equal(grant(&b, 1)->inside, 60000); /* accounts in order */
    assert_int_equal(grant(&b, 2)->inside, 0);
    stop(&b, 1, 10, ST_UNSET);
    cut(&b, 20);
    assert_int_equal(grant(&b, 2)->inside, 30000);
    end(&b);
}

/* What lies inside a floor is no burst, so it uses nothing of what was agreed. */
static void test_inside_agreed(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 8);
    set_floor(&b, 1, 4000, ST_UNSET);
    st_meter_inside(b.m, b.tree, 0);
    st_meter_agree(b.m, 1, 4000);
    st_job gang = whole(1, 8);
    start(&b, &gang, 0xff, -1, 0);
    cut(&b, 10);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_BURST);
    set_floor(&b, 1, 3000, ST_UNSET);
    st_meter_floors(b.m, b.tree, 20, &b.out);
    cut(&b, 30);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_BURST); /* as it began */
    assert_int_equal(grant(&b, 1)->inside, 40000 + 30000);
    cut(&b, 40);
    assert_int_equal(grant(&b, 1)->basis, ST_BASIS_ON_DEMAND);
    end(&b);
}

/* A real end that lies behind, time before the tasks ran, and what was seen unused: of each the same part. */
static void test_inside_corrected(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 8);
    set_floor(&b, 1, 2000, ST_UNSET);
    st_meter_inside(b.m, b.tree, 0);
    st_job gang = whole(1, 8);
    start(&b, &gang, 0xff, -1, 0);
    st_meter_began(b.m, 1, 40, 50);
    const st_sums sums = {.seen_gpu_ms = 8 * 60, .busy_gpu_ms = 8 * 20, .energy_mj = 0};
    st_meter_used(b.m, 1, 1, 0, &sums, &b.out);
    cut(&b, 100);
    assert_int_equal(grant(&b, 1)->share, 8000 * 60);
    assert_int_equal(grant(&b, 1)->inside, 2000 * 60);
    assert_int_equal(grant(&b, 1)->inside_idle, 2000 * 40);
    stop(&b, 1, 120, 70);
    const st_record *fix = NULL;
    for (size_t i = 0; i < b.out.n; i++)
        if (b.out.v[i].kind == ST_REC_FIX)
            fix = &b.out.v[i];
    assert_non_null(fix);
    assert_int_equal(fix->share, -8000 * 30);
    assert_int_equal(fix->inside, -2000 * 30);
    assert_int_equal(fix->inside_idle, -2000 * 30);
    end(&b);
}

static int collect(void *ctx, const st_record *r)
{
    bench *b = ctx;
    st_vec_push(&b->out, *r);
    return 0;
}

static int first_only(void *ctx, const st_record *r)
{
    (void)ctx, (void)r;
    return 42;
}

/* What is open is what a cut would hand out, in the same order, and asking changes nothing. */
static void test_open(void **state)
{
    (void)state;
    bench b;
    begin(&b, 1, 2);
    set_floor(&b, 2, 1000, ST_UNSET);
    st_meter_floors(b.m, b.tree, 0, &b.out);
    for (uint64_t i = 3; i >= 1; i--) {
        st_job job = shared(i, ST_LEVEL_TIME, 400);
        start(&b, &job, 1, -1, 0);
    }
    used(&b, 2, 1, 0, 5, 4);
    st_vec_clear(&b.out);
    assert_int_equal(st_meter_open(b.m, 7, collect, &b), 0);
    st_records open = b.out;
    b.out = (st_records){0};
    assert_int_equal(st_meter_open(b.m, 7, first_only, &b), 42);
    cut(&b, 7);
    assert_int_equal(open.n, b.out.n);
    assert_int_equal(open.n, 5);
    for (size_t i = 0; i < open.n; i++)
        assert_true(st_record_same(&open.v[i], &b.out.v[i]));
    st_vec_free(&open);
    cut(&b, 7); /* nothing has gone by */
    assert_int_equal(b.out.n, 0);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_states),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_carved),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_floors),
        cmocka_unit_test(test_on_demand),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_inside_tree),
        cmocka_unit_test(test_inside_agreed),
        cmocka_unit_test(test_inside_corrected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
