/*
 * What a reader who stands at an account is told: reasons and refusals without names and amounts
 * of anybody outside it. And the event that changes a pool.
 */
#include "core/test/world.h"

#define SECRET_ACCOUNTS "org", "bee", "bee-sub"

typedef struct readers {
    world w;
    int32_t org, ann, sub, bee;
} readers;

static int32_t make(world *w, const char *name, const char *parent, int64_t max_m)
{
    st_event ev = account_event(name, 0);
    ev.u.account.parent = parent;
    if (max_m > 0)
        ev.u.account.max.gpu_m = max_m;
    step(w, &ev);
    return st_tree_find(st_core_tree(w->core), name);
}

static void start(readers *r)
{
    st_policy policy = st_policy_default();
    begin(&r->w, &policy, 2, 8);
    r->org = make(&r->w, "org", NULL, 12000);
    r->ann = make(&r->w, "ann", "org", 0);
    r->sub = make(&r->w, "ann-sub", "ann", 3000);
    r->bee = make(&r->w, "bee", "org", 0);
    make(&r->w, "bee-sub", "bee", 0);
    for (uint64_t id = 1; id <= 2; id++) {
        st_event ev = job_event(id, id == 1 ? "bee-sub" : "ann-sub");
        ev.u.job.name = id == 1 ? "beejob" : "annjob";
        step(&r->w, &ev);
    }
}

/* Every reason there can be, about an account and a job, with numbers that are seen at once. */
static st_reason reason(st_why code, int32_t account, uint64_t other)
{
    return (st_reason){.code = code,
                       .account = account,
                       .type = 0,
                       .used = 7777000,
                       .asked = 8888000,
                       .bound = 9999000,
                       .other = other,
                       .until_ms = 60000};
}

static void text_of(const readers *r, const st_reason *why, int32_t reader, st_strbuf *out)
{
    st_strbuf_clear(out);
    st_reason_text(r->w.core, why, reader, out);
    assert_true(out->n > 0);
}

static bool has(const st_strbuf *text, const char *part)
{
    return strstr(st_strbuf_str(text), part) != NULL;
}

/* Whatever the reason, about whomever outside: no name of theirs. */
static void test_no_names(void **state)
{
    static const char *const secret[] = {SECRET_ACCOUNTS, "beejob"};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    readers r;
    (void)state;
    start(&r);
    const int32_t outside[] = {r.org, r.bee};
    for (int code = 0; code < ST_WHY_COUNT; code++) {
        for (size_t a = 0; a < ST_ARRAY_LEN(outside); a++) {
            st_reason why = reason((st_why)code, outside[a], 1);
            text_of(&r, &why, r.ann, &text);
            for (size_t s = 0; s < ST_ARRAY_LEN(secret); s++)
                if (has(&text, secret[s]))
                    fail_msg("%s tells %s: %s", st_reason_name((st_why)code), secret[s],
                             st_strbuf_str(&text));
        }
    }
    end(&r.w);
}

/* Free room is everybody's to know: these count how many of the job's own tasks fit it. Or they are the job's own words:
 * how many it waits for, how often it is tried again, its array's throttle, the nodes that it allows. */
static bool counts_room(st_why code)
{
    if (code == ST_WHY_AFTER || code == ST_WHY_NEVER || code == ST_WHY_THROTTLE ||
        code == ST_WHY_RETRY || code == ST_WHY_NODES)
        return true;
    return code == ST_WHY_GPUS_BUSY || code == ST_WHY_FRAGMENTED || code == ST_WHY_TOPOLOGY ||
           code == ST_WHY_CPU || code == ST_WHY_RAM || code == ST_WHY_NODES_DOWN ||
           code == ST_WHY_NO_NODES;
}

static bool counts(const st_strbuf *text)
{
    return has(text, "7777") || has(text, "8888") || has(text, "9999");
}

/* No other reason tells an amount of accounts outside, or how many others there are. */
static void test_no_amounts(void **state)
{
    static const st_why told[] = {ST_WHY_MAX,       ST_WHY_USER_LIMIT,    ST_WHY_OVER_FLOOR,
                                  ST_WHY_LOOKAHEAD, ST_WHY_RECLAIM_BOUND, ST_WHY_MOVES};
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    readers r;
    (void)state;
    start(&r);
    for (int code = 0; code < ST_WHY_COUNT; code++) {
        st_reason why = reason((st_why)code, r.org, 1);
        text_of(&r, &why, r.ann, &text);
        if (counts(&text) && !counts_room((st_why)code))
            fail_msg("%s: %s", st_reason_name((st_why)code), st_strbuf_str(&text));
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(told); i++) {
        st_reason why = reason(told[i], r.org, 1);
        text_of(&r, &why, ST_ROOT, &text);
        if (!counts(&text))
            fail_msg("%s hides it from the owner: %s", st_reason_name(told[i]),
                     st_strbuf_str(&text));
    }
    end(&r.w);
}

/* What is the reader's own, or below it, has its name and numbers. */
static void test_own_is_told(void **state)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    readers r;
    (void)state;
    start(&r);
    st_reason why = reason(ST_WHY_MAX, r.sub, 2);
    text_of(&r, &why, r.ann, &text);
    assert_true(has(&text, "account ann-sub holds 7777"));
    why = reason(ST_WHY_MAX, r.org, 2);
    text_of(&r, &why, r.ann, &text);
    assert_string_equal(st_strbuf_str(&text),
                        "an account above yours would exceed its max of h100");
    why = reason(ST_WHY_HELD, -1, 2);
    text_of(&r, &why, r.ann, &text);
    assert_string_equal(st_strbuf_str(&text), "the GPUs it needs are held for annjob");
    why = reason(ST_WHY_HELD, -1, 1);
    text_of(&r, &why, r.ann, &text);
    assert_string_equal(st_strbuf_str(&text),
                        "the GPUs it needs are held for a job of another account");
    text_of(&r, &why, r.bee, &text);
    assert_string_equal(st_strbuf_str(&text), "the GPUs it needs are held for beejob");
    why = reason(ST_WHY_RESERVED, -1, 1);
    text_of(&r, &why, r.ann, &text);
    assert_true(has(&text, "reserved for a job of another account, which should start in 1m"));
    why = reason(ST_WHY_WEIGHT_ZERO, r.bee, 0);
    text_of(&r, &why, r.ann, &text);
    assert_string_equal(st_strbuf_str(&text),
                        "an account of others has weight 0 and borrows nothing");
    end(&r.w);
}

/* Refusals: the bounds of those above are there, their names and numbers are not. */
static void test_refusals(void **state)
{
    readers r;
    st_err err = {0};
    (void)state;
    start(&r);
    st_event ev = job_event(9, "ann");
    ev.u.job.tasks = 13;
    assert_fails(st_core_step(r.w.core, &ev, 1, &r.w.fx, &err), ST_EQUOTA,
                 "account org may hold at most 12");
    ev.u.job.reader = "ann";
    assert_fails(st_core_step(r.w.core, &ev, 1, &r.w.fx, &err), ST_EQUOTA,
                 "than an account above yours may ever hold");
    assert_null(strstr(err.msg, "org"));
    assert_null(strstr(err.msg, "12"));
    ev.u.job.account = "ann-sub";
    ev.u.job.tasks = 4;
    assert_fails(st_core_step(r.w.core, &ev, 1, &r.w.fx, &err), ST_EQUOTA,
                 "account ann-sub may hold at most 3");

    st_event limit = account_event("org", 0);
    limit.u.account.max.gpu_m = 12000;
    limit.u.account.job_limits.gpu_m = 5000;
    step(&r.w, &limit);
    ev.u.job.account = "ann";
    ev.u.job.tasks = 6;
    assert_fails(st_core_step(r.w.core, &ev, 1, &r.w.fx, &err), ST_ELIMIT,
                 "an account above yours allows per job");
    assert_null(strstr(err.msg, "org"));
    assert_null(strstr(err.msg, " 5 "));
    ev.u.job.reader = NULL;
    assert_fails(st_core_step(r.w.core, &ev, 1, &r.w.fx, &err), ST_ELIMIT,
                 "account org allows 5 per job");
    end(&r.w);
}

static st_event change(uint32_t levels, int64_t oversub_m)
{
    st_event ev = event(ST_EV_POOL_CHANGE);
    ev.u.pool.name = "p";
    ev.u.pool.levels = levels;
    ev.u.pool.oversub_m = oversub_m;
    return ev;
}

static st_event shared_job(uint64_t id, int tasks)
{
    st_event ev = job_event(id, "ann");
    ev.u.job.tasks = tasks;
    ev.u.job.shape.level = ST_LEVEL_TIME;
    ev.u.job.shape.share_m = 1000;
    ev.u.job.shape.vram_mib = 1000;
    return ev;
}

/* Nobody is put off a device, and nobody waits for what cannot come any more. */
static void test_pool_change(void **state)
{
    const uint32_t no_time = 0xf & ~(1u << ST_LEVEL_TIME);
    readers r;
    st_err err = {0};
    (void)state;
    start(&r);
    world *w = &r.w;
    st_event ev = change(no_time, 2000);
    step(w, &ev);
    ev = shared_job(10, 2);
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_EINVAL,
                 "no pool allows level time");
    ev = change(0xf, 2000);
    step(w, &ev);
    set_node(w, 1, ST_NODE_DRAINING);
    ev = shared_job(10, 10); /* on the eight GPUs of one node */
    step(w, &ev);
    in_state(w, 10, ST_JOB_RUNNING);

    ev = change(no_time, 2000);
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ESTATE, "has a place there");
    ev = change(0xf, 1000);
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ESTATE,
                 "is shared by 2, more than 1");
    ev = change(0xf, 4001);
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ERANGE, "1 to 4");
    ev.u.pool.name = "q";
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ENOENT, "pool q does not exist");
    tell(w, ST_EV_CANCEL, 10);
    set_node(w, 1, ST_NODE_READY);

    ev = change(0xf, 4000);
    ev.u.pool.rules.allow = 1u << ST_ALLOW_COUNT;
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_EINVAL, "does not exist");
    ev = change(0xf, 4000);
    step(w, &ev);
    for (uint64_t id = 20; id < 30; id++) /* nothing is free to be shared */
        submit(w, id, "ann");
    ev = shared_job(11, 33);
    ev.u.job.shape.share_m = 300;
    step(w, &ev);
    in_state(w, 11, ST_JOB_PENDING);
    ev = change(0xf, 1000);
    step(w, &ev);
    ev = change(no_time, 1000);
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ESTATE,
                 "job job could never start");
    assert_int_equal(st_core_fleet(w->core)->pools.v[0].levels, 0xf);
    tell(w, ST_EV_CANCEL, 11);
    step(w, &ev);
    assert_int_equal(st_core_fleet(w->core)->pools.v[0].levels, no_time);
    end(w);
}

/* Where every floor is a cluster of its own, a place on paper is kept too. */
/* A permission is placed by, and cannot be taken from those who use it or wait for it. */
static void test_permissions(void **state)
{
    const uint32_t both = 3;
    readers r;
    st_err err = {0};
    (void)state;
    start(&r);
    world *w = &r.w;
    st_event ev = job_event(10, "ann");
    ev.u.job.shape.needs = 1;
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_EINVAL,
                 "no pool allows the image");
    ev.u.job.shape.needs = 1u << ST_ALLOW_COUNT;
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_EINVAL, "permission");
    ev = change(0xf, 2000);
    ev.u.pool.rules.allow = both;
    step(w, &ev);
    ev = job_event(10, "ann");
    ev.u.job.shape.needs = 2;
    step(w, &ev);
    in_state(w, 10, ST_JOB_RUNNING);
    ev = change(0xf, 2000);
    ev.u.pool.rules.allow = 1;
    assert_fails(st_core_step(w->core, &ev, 1, &w->fx, &err), ST_ESTATE,
                 "has a place there and needs host-network");
    assert_int_equal(st_core_fleet(w->core)->pools.v[0].rules.allow, both);
    ev.u.pool.rules.allow = 2;
    step(w, &ev);
    tell(w, ST_EV_CANCEL, 10);
    end(w);
}

static void test_pool_change_on_paper(void **state)
{
    const uint32_t no_time = 0xf & ~(1u << ST_LEVEL_TIME);
    st_policy policy = st_policy_default();
    st_err err = {0};
    world w;
    (void)state;
    policy.as_if_alone = 1;
    begin(&w, &policy, 2, 8);
    account(&w, "ann", 8000);
    account(&w, "bee", 0);
    st_event ev = shared_job(1, 10);
    step(&w, &ev);
    in_state(&w, 1, ST_JOB_RUNNING);
    tell(&w, ST_EV_FINISH, 1); /* at once: on paper it stands for as long as it ran */
    ev = shared_job(2, 10);
    step(&w, &ev);
    ev = change(0xf, 1000);
    assert_fails(st_core_step(w.core, &ev, 1, &w.fx, &err), ST_ESTATE, "pool p");
    ev = change(no_time, 2000);
    assert_fails(st_core_step(w.core, &ev, 1, &w.fx, &err), ST_ESTATE, "pool p");
    tell(&w, ST_EV_CANCEL, 2);
    ev = change(no_time, 1000);
    step(&w, &ev);
    submit(&w, 3, "ann");
    in_state(&w, 3, ST_JOB_RUNNING);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_names),    cmocka_unit_test(test_no_amounts),
        cmocka_unit_test(test_own_is_told), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_pool_change), cmocka_unit_test(test_pool_change_on_paper),
        cmocka_unit_test(test_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
