/*
 * Events as bytes, and the event that changes the policy.
 */
#include "core/test/world.h"

static st_event account_sample(void)
{
    st_event ev = event(ST_EV_ACCOUNT);
    st_account_spec_init(&ev.u.account);
    ev.u.account.name = "vision";
    ev.u.account.parent = "org";
    ev.u.account.guarantee.gpu_m = 16000;
    ev.u.account.max.type_m[3] = 64000;
    ev.u.account.user_limits.run_ms = 7200000;
    ev.u.account.book_limits.lead_ms = 86400000;
    ev.u.account.trust = ST_TRUST_UNTRUSTED;
    return ev;
}

static st_event job_sample(void)
{
    static const st_await afters[] = {{.id = 12, .how = ST_AFTER_OK},
                                      {.id = 13, .how = ST_AFTER_FAIL, .array = true}};
    st_event ev = event(ST_EV_SUBMIT);
    ev.u.job = (st_job_spec){
        .id = 77,
        .name = "train",
        .account = "vision",
        .user = "ada",
        .pool = -1,
        .tasks = 4,
        .shape = {.types = 5, .gpus = 8, .cpu_m = 96000, .ram_mib = 1 << 20, .needs = 3},
        .topo = ST_TOPO_BLOCK,
        .topo_required = true,
        .priority = -100,
        .limit_ms = ST_TIME_NEVER,
        .yield = ST_YIELD_CHECKPOINT,
        .afters = afters,
        .nafters = 2,
        .keeps = true,
        .held_by = 3,
        .array = 70,
        .throttle = 8,
        .retry = {.times = 3, .wait_ms = 60000, .most_ms = 3600000, .timeout = true}};
    return ev;
}

static size_t samples(st_event *ret)
{
    st_event policy = event(ST_EV_POLICY);
    policy.u.policy = st_policy_default();
    policy.u.policy.notice_ms = 1;
    policy.u.policy.order = ST_ORDER_SHORTEST;
    st_event finish = event(ST_EV_FINISH), cancel = event(ST_EV_CANCEL);
    finish.u.finish.id = 9;
    finish.u.finish.failed = finish.u.finish.final = true;
    st_event hold = event(ST_EV_HOLD), array = event(ST_EV_ARRAY);
    hold.u.hold = (__typeof__(hold.u.hold)){.id = 14, .on = true, .by = 2};
    array.u.array = (__typeof__(array.u.array)){.id = 15, .throttle = 4};
    cancel.u.id = 10;
    st_event estimated = event(ST_EV_TOLD);
    estimated.u.told.id = 11;
    estimated.u.told.start_ms = 12000;
    st_event other = pool_event("main", 7);
    other.kind = ST_EV_POOL_CHANGE;
    st_event node = node_event("n1", 8);
    node.u.node.rack = "r1";
    st_event all[] = {event(ST_EV_TIMER),
                      type_event("h100", ST_BOARD_H100_80),
                      pool_event("main", 15),
                      node,
                      state_event(3, ST_NODE_DRAINING),
                      account_sample(),
                      job_sample(),
                      finish,
                      hold,
                      array,
                      cancel,
                      estimated,
                      other,
                      policy};
    memcpy(ret, all, sizeof all);
    return ST_ARRAY_LEN(all);
}

/* Written, read and written again: the same bytes, and nothing left over. */
static void test_round_trip(void **state)
{
    st_event all[16];
    size_t n = samples(all);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        ST_CLEANUP(st_strbuf_done) st_strbuf a = {0}, b = {0};
        st_event read;
        size_t at = 0;
        st_err err = {0};
        st_event_encode(&all[i], &a);
        assert_ok(st_event_decode(st_strbuf_str(&a), a.n, &at, arena, &read, &err));
        assert_int_equal(at, a.n);
        st_event_encode(&read, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.s, b.s, a.n);
    }
}

#define BOOKING_BYTES 3 /* of a pool that limits no bookings; and of a change without force */
#define ENGINE_BYTES  2 /* of a pool that names none, and lacks nothing */

/* Rows of the log from before pools named engines have neither a name nor what the engine lacks. */
static void test_format_10(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf now = {0}, old = {0};
    st_event pool = pool_event("main", 7), named = pool, read;
    size_t at = 0;
    st_err err = {0};
    (void)state;
    pool.u.pool.rules.allow = 1;
    st_event_encode(&pool, &now);
    int64_t front = (ST_EV_POOL | INT64_C(10) << 6) << 1; /* as it is written: seven bits a byte */
    assert_true(front < 1 << 14);
    st_strbuf_addc(&old, (char)((front & 0x7f) | 0x80));
    st_strbuf_addc(&old, (char)(front >> 7));
    st_strbuf_addn(&old, now.s + 2, now.n - 2 - ENGINE_BYTES - BOOKING_BYTES);
    assert_ok(st_event_decode(old.s, old.n, &at, arena, &read, &err));
    assert_int_equal(at, old.n);
    assert_int_equal(read.u.pool.rules.allow, 1);
    assert_string_equal(read.u.pool.rules.engine, "");
    assert_int_equal(read.u.pool.rules.lacks, 0);

    /* The longest name has no byte behind it that says where it ends. */
    memset(named.u.pool.rules.engine, 'e', ST_ENGINE_NAME);
    named.u.pool.rules.lacks = 1u << ST_YIELD_PAUSE;
    st_strbuf_clear(&now);
    st_event_encode(&named, &now);
    at = 0;
    assert_ok(st_event_decode(now.s, now.n, &at, arena, &read, &err));
    assert_int_equal(at, now.n);
    assert_string_equal(read.u.pool.rules.engine, named.u.pool.rules.engine);
    assert_int_equal(read.u.pool.rules.lacks, 1u << ST_YIELD_PAUSE);
}

/* A log from before formats were counted: the kind alone in front, and no rules behind. */
static void test_format_0(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf now = {0}, old = {0};
    st_event pool = pool_event("main", 7), read;
    size_t at = 0, rules = 1 + ENGINE_BYTES + 1;
    st_err err = {0};
    (void)state;
#define X(field, key, kind, def, hi) rules++;
    ST_POOL_RULE_TABLE(X)
#undef X
    st_event_encode(&pool, &now);
    st_strbuf_addc(&old, ST_EV_POOL << 1);
    st_strbuf_addn(&old, now.s + 2, now.n - 2 - rules);
    assert_ok(st_event_decode(old.s, old.n, &at, arena, &read, &err));
    assert_int_equal(at, old.n);
    assert_string_equal(read.u.pool.name, "main");
    assert_int_equal(read.u.pool.oversub_m, 2000);
    assert_int_equal(read.u.pool.rules.allow, 0);
}

static void test_fields_survive(void **state)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    ST_CLEANUP(st_strbuf_done) st_strbuf bytes = {0};
    st_event account = account_sample(), job = job_sample(), a, j;
    size_t at = 0;
    st_err err = {0};
    (void)state;
    st_event_encode(&account, &bytes);
    st_event_encode(&job, &bytes);
    assert_ok(st_event_decode(st_strbuf_str(&bytes), bytes.n, &at, arena, &a, &err));
    assert_ok(st_event_decode(st_strbuf_str(&bytes), bytes.n, &at, arena, &j, &err));
    assert_string_equal(a.u.account.parent, "org");
    assert_int_equal(a.u.account.max.type_m[3], 64000);
    assert_int_equal(a.u.account.user_limits.run_ms, 7200000);
    assert_int_equal(a.u.account.book_limits.lead_ms, 86400000);
    assert_int_equal(a.u.account.book_limits.hours_m, ST_UNSET);
    assert_int_equal(a.u.account.trust, ST_TRUST_UNTRUSTED);
    assert_string_equal(j.u.job.user, "ada");
    assert_int_equal(j.u.job.pool, -1);
    assert_int_equal(j.u.job.shape.ram_mib, 1 << 20);
    assert_int_equal(j.u.job.limit_ms, ST_TIME_NEVER);
    assert_int_equal(j.u.job.yield, ST_YIELD_CHECKPOINT);
    assert_true(j.u.job.topo_required);
    assert_int_equal(j.u.job.nafters, 2);
    assert_int_equal(j.u.job.afters[1].id, 13);
    assert_int_equal(j.u.job.afters[1].how, ST_AFTER_FAIL);
    assert_true(j.u.job.afters[1].array && j.u.job.keeps);
    assert_int_equal(j.u.job.throttle, 8);
    assert_int_equal(j.u.job.retry.most_ms, 3600000);
}

/* Cut anywhere, or with a kind that does not exist: refused, never half an event. */
static void test_damaged(void **state)
{
    st_event all[16];
    size_t n = samples(all);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
        ST_CLEANUP(st_strbuf_done) st_strbuf a = {0};
        st_event read;
        st_err err = {0};
        st_event_encode(&all[i], &a);
        for (size_t cut = 0; cut < a.n; cut++) {
            size_t at = 0;
            assert_fails(st_event_decode(a.s, cut, &at, arena, &read, &err), ST_EPARSE, "byte 0");
            assert_int_equal(at, 0);
        }
        size_t at = 0;
        a.s[0] = 0x7f;
        assert_fails(st_event_decode(a.s, a.n, &at, arena, &read, &err), ST_EPARSE, "damaged");
    }
}

static void test_policy(void **state)
{
    world w = {.core = st_core_new(NULL)};
    st_event ev = event(ST_EV_POLICY);
    st_err err = {0};
    (void)state;
    ev.u.policy = st_policy_default();
    ev.u.policy.notice_ms = 5000;
    step(&w, &ev);
    assert_int_equal(st_core_policy(w.core)->notice_ms, 5000);
    ev.u.policy.bound_m = 1;
    assert_fails(st_core_step(w.core, &ev, 0, &w.fx, &err), ST_ERANGE, "reclaim_bound");
    assert_int_equal(st_core_policy(w.core)->notice_ms, 5000);
    st_effects_done(&w.fx);
    st_core_free(w.core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_fields_survive),
        cmocka_unit_test(test_format_0),   cmocka_unit_test(test_format_10),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
