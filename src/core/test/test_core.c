/*
 * The machine's frame: a step and its effects, refusals that leave no trace, time, saving and
 * loading.
 */
#include "core/test/world.h"

static void save(const world *w, st_strbuf *out)
{
    st_strbuf_clear(out);
    st_core_save(w->core, out);
}

static void test_a_job_comes_and_goes(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 4);
    account(&w, "a", 2000);
    st_event ev = job_event(5, "a");
    ev.u.job.tasks = 3;
    w.now = 10 * SEC;
    step(&w, &ev);
    assert_int_equal(w.fx.list.n, 2);
    assert_int_equal(w.fx.list.v[0].kind, ST_FX_QUEUED);
    const st_effect *start = effect(&w, ST_FX_START, 5);
    assert_non_null(start);
    assert_int_equal(start->ngrants, 3);
    assert_int_equal(start->at_ms, 10 * SEC);
    assert_int_equal(start->value, 0);                  /* the GPU type */
    assert_int_equal(start->class, ST_CLASS_BURSTABLE); /* 3 of 2 */
    uint16_t devs = 0;
    for (int i = 0; i < 3; i++)
        devs |= w.fx.grants.v[start->grants_at + (size_t)i].devs;
    assert_int_equal(__builtin_popcount(devs), 3);
    in_state(&w, 5, ST_JOB_RUNNING);
    assert_int_equal(st_core_njobs(w.core), 1);
    assert_int_equal(st_core_now(w.core), 10 * SEC);

    w.now = 20 * SEC;
    ev = id_event(ST_EV_FINISH, 5);
    ev.u.finish.failed = true;
    step(&w, &ev);
    assert_int_equal(effect(&w, ST_FX_END, 5)->state, ST_JOB_FAILED);
    assert_null(st_core_job(w.core, 5));
    assert_int_equal(st_core_njobs(w.core), 0);
    assert_int_equal(st_tree_account(st_core_tree(w.core), 1)->now.gpu_m, 0);
    end(&w);
}

static void test_limit_strikes(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 1);
    account(&w, "a", ST_UNSET);
    st_event ev = job_event(1, "a");
    ev.u.job.limit_ms = 60 * SEC;
    step(&w, &ev);
    submit(&w, 2, "a");
    in_state(&w, 2, ST_JOB_PENDING);
    assert_int_equal(st_core_next_timer(w.core), 60 * SEC);
    tick(&w, 60 * SEC - 1);
    in_state(&w, 1, ST_JOB_RUNNING);
    tick(&w, 60 * SEC);
    assert_int_equal(effect(&w, ST_FX_END, 1)->state, ST_JOB_TIMEOUT);
    assert_non_null(effect(&w, ST_FX_START, 2));
    assert_int_equal(st_core_next_timer(w.core), ST_TIME_NEVER);
    end(&w);
}

/* The order inside an account can be changed while it waits. */
static void test_priority(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 1);
    account(&w, "a", ST_UNSET);
    for (uint64_t id = 1; id <= 3; id++)
        submit(&w, id, "a");
    st_event ev = event(ST_EV_PRIORITY);
    ev.u.priority.id = 3;
    ev.u.priority.priority = 1;
    step(&w, &ev);
    tell(&w, ST_EV_FINISH, 1);
    in_state(&w, 3, ST_JOB_RUNNING);
    in_state(&w, 2, ST_JOB_PENDING);
    end(&w);
}

static void test_a_node_fails_and_returns(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 2, 1);
    account(&w, "a", 2000);
    submit(&w, 1, "a");
    submit(&w, 2, "a");
    int32_t node = job_of(&w, 1)->grants[0].node;
    w.now = 5 * SEC;
    set_node(&w, node, ST_NODE_FAILED);
    assert_int_equal(w.fx.list.v[0].kind, ST_FX_NODE);
    const st_effect *requeue = effect(&w, ST_FX_REQUEUE, 1);
    assert_non_null(requeue);
    assert_int_equal(requeue->value, 1000 * 5 * SEC);
    in_state(&w, 1, ST_JOB_PENDING);
    in_state(&w, 2, ST_JOB_RUNNING);
    bool told = false;
    for (size_t i = 0; i < w.fx.list.n; i++)
        told |= w.fx.list.v[i].kind == ST_FX_FLOOR && w.fx.list.v[i].value == 1000;
    assert_true(told);
    set_node(&w, node, ST_NODE_FAILED); /* said twice, heard once */
    assert_int_equal(w.fx.list.n, 0);
    set_node(&w, node, ST_NODE_READY);
    in_state(&w, 1, ST_JOB_RUNNING);
    end(&w);
}

/* ---- refusals ------------------------------------------------------------------------ */

typedef struct refusal {
    const char *what;
    int code;
    st_event ev;
    char user[16];
} refusal;

#define REFUSALS 64

static st_event *refuse(refusal *list, int *n, const char *what, int code, st_event ev)
{
    assert_true(*n < REFUSALS);
    refusal *r = &list[(*n)++];
    *r = (refusal){.what = what, .code = code, .ev = ev};
    snprintf(r->user, sizeof r->user, "stranger-%d", *n);
    if (ev.kind == ST_EV_SUBMIT)
        r->ev.u.job.user = r->user; /* not seen before */
    return &r->ev;
}

static st_job_spec *refuse_job(refusal *list, int *n, const char *what, int code)
{
    return &refuse(list, n, what, code, job_event(50, "a"))->u.job;
}

static int bad_jobs(refusal *l, int n)
{
    refuse_job(l, &n, "id 0", ST_EINVAL)->id = 0;
    refuse_job(l, &n, "id in use", ST_EEXIST)->id = 1;
    refuse_job(l, &n, "name with a space", ST_EINVAL)->name = "a b";
    refuse_job(l, &n, "no name", ST_EINVAL)->name = NULL;
    refuse_job(l, &n, "no user", ST_EINVAL)->user = NULL;
    refuse_job(l, &n, "unknown account", ST_ENOENT)->account = "nobody";
    refuse_job(l, &n, "no account", ST_ENOENT)->account = NULL;
    refuse_job(l, &n, "the cluster itself", ST_EINVAL)->account = "cluster";
    refuse_job(l, &n, "no tasks", ST_ERANGE)->tasks = 0;
    refuse_job(l, &n, "too many tasks", ST_ERANGE)->tasks = ST_TASKS_MAX + 1;
    refuse_job(l, &n, "17 GPUs a task", ST_ERANGE)->shape.gpus = 17;
    refuse_job(l, &n, "GPUs below 0", ST_ERANGE)->shape.gpus = -1;
    refuse_job(l, &n, "nothing at all", ST_EINVAL)->shape.gpus = 0;
    refuse_job(l, &n, "CPU below 0", ST_ERANGE)->shape.cpu_m = -1;
    refuse_job(l, &n, "absurd RAM", ST_ERANGE)->shape.ram_mib = INT64_MAX;
    refuse_job(l, &n, "unknown level", ST_EINVAL)->shape.level = ST_LEVEL_COUNT;
    refuse_job(l, &n, "unknown topology", ST_EINVAL)->topo = ST_TOPO_COUNT;
    refuse_job(l, &n, "unknown yield", ST_EINVAL)->yield = ST_YIELD_COUNT;
    refuse_job(l, &n, "unknown pool", ST_ENOENT)->pool = 2;
    refuse_job(l, &n, "unknown type", ST_ENOENT)->shape.types = 4;
    refuse_job(l, &n, "limit 0", ST_ERANGE)->limit_ms = 0;
    refuse_job(l, &n, "limit of 1000 years", ST_ERANGE)->limit_ms = INT64_C(31536000000000);
    refuse_job(l, &n, "absurd priority", ST_ERANGE)->priority = ST_PRIO_MAX + 1;
    refuse_job(l, &n, "more VRAM than any GPU has", ST_EINVAL)->shape.vram_mib = 80001;
    refuse_job(l, &n, "more than could ever fit", ST_EINVAL)->account = "untrusted";
    l[n - 1].ev.u.job.tasks = 9;
    refuse_job(l, &n, "more than its max", ST_EQUOTA)->tasks = 7;
    refuse_job(l, &n, "more than its limit per job", ST_ELIMIT)->account = "limited";
    l[n - 1].ev.u.job.tasks = 2;
    st_job_spec *s = refuse_job(l, &n, "two slices a task", ST_EINVAL);
    s->shape.level = ST_LEVEL_MIG;
    s->shape.gpus = 2;
    s = refuse_job(l, &n, "MIG on a board without it", ST_EINVAL);
    s->shape.level = ST_LEVEL_MIG;
    s->shape.types = 2;
    s = refuse_job(l, &n, "a share of 0", ST_ERANGE);
    s->shape.level = ST_LEVEL_MPS;
    s = refuse_job(l, &n, "a share above 1", ST_ERANGE);
    s->shape.level = ST_LEVEL_TIME;
    s->shape.share_m = 1001;
    s = refuse_job(l, &n, "a pause under MPS", ST_EINVAL);
    s->shape.level = ST_LEVEL_MPS;
    s->shape.share_m = 500;
    s->yield = ST_YIELD_PAUSE;
    s = refuse_job(l, &n, "untrusted and shared", ST_EINVAL);
    s->account = "untrusted";
    s->shape.level = ST_LEVEL_TIME;
    s->shape.share_m = 500;
    s = refuse_job(l, &n, "a level its pool does not allow", ST_EINVAL);
    s->pool = 1;
    s->shape.level = ST_LEVEL_MPS;
    s->shape.share_m = 500;
    s = refuse_job(l, &n, "five in one node of four", ST_EINVAL);
    s->tasks = 5;
    s->topo = ST_TOPO_NODE;
    s->topo_required = true;
    return n;
}

static int bad_others(refusal *l, int n)
{
    st_event ev = type_event("h100", ST_BOARD_NONE);
    refuse(l, &n, "a type twice", ST_EEXIST, ev);
    ev.u.type.name = "gpu";
    refuse(l, &n, "a type named gpu", ST_EINVAL, ev);
    ev = type_event("new", ST_BOARD_NONE);
    ev.u.type.vram_mib = 0;
    refuse(l, &n, "a type without memory", ST_ERANGE, ev);
    refuse(l, &n, "a pool twice", ST_EEXIST, pool_event("p", 1));
    ev = pool_event("new", 1);
    ev.u.pool.oversub_m = 4001;
    refuse(l, &n, "a factor above 4", ST_ERANGE, ev);
    refuse(l, &n, "a node twice", ST_EEXIST, node_event("n0", 1));
    refuse(l, &n, "a node of 17 GPUs", ST_ERANGE, node_event("new", 17));
    refuse(l, &n, "a node in no pool", ST_ENOENT, node_event("new", 1))->u.node.pool = 9;
    refuse(l, &n, "a node of no type", ST_ENOENT, node_event("new", 1))->u.node.type = -1;
    refuse(l, &n, "CPU below 0", ST_ERANGE, node_event("new", 1))->u.node.cpu_m = -1;
    refuse(l, &n, "a rack without a name", ST_EINVAL, node_event("new", 1))->u.node.rack = "";
    refuse(l, &n, "a node that is not there", ST_ENOENT, state_event(9, ST_NODE_READY));
    refuse(l, &n, "a node below 0", ST_ENOENT, state_event(-1, ST_NODE_READY));
    refuse(l, &n, "an unknown state", ST_EINVAL, state_event(0, ST_NODE_STATE_COUNT));
    refuse(l, &n, "a cyclic account", ST_ESTATE, account_event("a", 1))->u.account.parent = "a";
    refuse(l, &n, "an orphan", ST_ENOENT, account_event("new", 1))->u.account.parent = "no";
    refuse(l, &n, "above its max", ST_EQUOTA, account_event("new", 2))->u.account.max.gpu_m = 1;
    refuse(l, &n, "finish of a waiting job", ST_ESTATE, id_event(ST_EV_FINISH, 2));
    refuse(l, &n, "finish of nobody", ST_ENOENT, id_event(ST_EV_FINISH, 77));
    refuse(l, &n, "cancel of nobody", ST_ENOENT, id_event(ST_EV_CANCEL, 77));
    refuse(l, &n, "checkpoint of a waiting job", ST_ESTATE, id_event(ST_EV_CHECKPOINTED, 2));
    refuse(l, &n, "checkpoint of nobody", ST_ENOENT, id_event(ST_EV_CHECKPOINTED, 77));
    ev = event(ST_EV_PRIORITY);
    ev.u.priority.id = 77;
    refuse(l, &n, "priority of nobody", ST_ENOENT, ev);
    ev.u.priority.id = 2;
    ev.u.priority.priority = -ST_PRIO_MAX - 1;
    refuse(l, &n, "absurd priority", ST_ERANGE, ev);
    ev = event(ST_EV_TOLD);
    ev.u.told.id = 77;
    refuse(l, &n, "an estimate for nobody", ST_ENOENT, ev);
    ev.u.told.id = 2;
    ev.u.told.start_ms = -1;
    refuse(l, &n, "an estimate before the epoch", ST_ERANGE, ev);
    return n;
}

/* Two nodes of four; "a" may have 6; job 1 runs on all, job 2 waits. */
static void begin_busy(world *w)
{
    begin(w, NULL, 2, 4);
    st_event ev = type_event("l40", ST_BOARD_NONE);
    step(w, &ev);
    ev = pool_event("q", 1u << ST_LEVEL_WHOLE);
    step(w, &ev);
    ev = account_event("a", 2000);
    ev.u.account.max.gpu_m = 6000;
    step(w, &ev);
    ev = account_event("limited", ST_UNSET);
    ev.u.account.job_limits.gpu_m = 1000;
    step(w, &ev);
    ev = account_event("untrusted", ST_UNSET);
    ev.u.account.trust = ST_TRUST_UNTRUSTED;
    step(w, &ev);
    ev = job_event(1, "a");
    ev.u.job.tasks = 6;
    step(w, &ev);
    submit(w, 2, "a");
    in_state(w, 1, ST_JOB_RUNNING);
    in_state(w, 2, ST_JOB_PENDING);
}

static void test_refused_without_a_trace(void **state)
{
    (void)state;
    static refusal list[REFUSALS];
    int n = bad_others(list, bad_jobs(list, 0));
    assert_true(n > 50);
    world w;
    st_strbuf before = {0}, after = {0};
    begin_busy(&w);
    int traces = 0;
    for (int i = 0; i < n; i++) {
        st_err err = {0};
        save(&w, &before);
        uint64_t hash = st_core_hash(w.core);
        st_effects_clear(&w.fx);
        int rc = st_core_step(w.core, &list[i].ev, w.now, &w.fx, &err);
        if (rc != -list[i].code || err.code != list[i].code || !*err.msg)
            fail_msg("%s: %d \"%s\", wanted %d", list[i].what, rc, err.msg, -list[i].code);
        assert_int_equal(w.fx.list.n, 0);
        assert_int_equal(st_core_hash(w.core), hash);
        save(&w, &after);
        if (before.n != after.n || memcmp(before.s, after.s, after.n) != 0) {
            print_error("refused, but it left a trace: %s\n", list[i].what);
            traces++;
        }
    }
    assert_int_equal(traces, 0);
    st_strbuf_done(&before);
    st_strbuf_done(&after);
    end(&w);
}

/* Even one that comes late: a caller that drops a refused step's effects misses nothing. */
static void test_refused_later(void **state)
{
    (void)state;
    world w;
    st_strbuf before = {0}, after = {0};
    begin(&w, NULL, 1, 1);
    account(&w, "a", ST_UNSET);
    st_event ev = job_event(1, "a");
    ev.u.job.limit_ms = 60 * SEC;
    step(&w, &ev);
    save(&w, &before);
    st_err err = {0};
    st_effects_clear(&w.fx);
    ev = id_event(ST_EV_CANCEL, 77);
    assert_fails(st_core_step(w.core, &ev, 90 * SEC, &w.fx, &err), ST_ENOENT, "77");
    assert_int_equal(w.fx.list.n, 0);
    save(&w, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, after.n);
    tick(&w, 90 * SEC);
    assert_int_equal(effect(&w, ST_FX_END, 1)->state, ST_JOB_TIMEOUT);
    st_strbuf_done(&before);
    st_strbuf_done(&after);
    end(&w);
}

/* ---- time ---------------------------------------------------------------------------- */

/* A clock that steps back: time stands, nothing runs twice, nothing is early. */
static void test_time_goes_back(void **state)
{
    (void)state;
    world w;
    begin(&w, NULL, 1, 1);
    account(&w, "a", ST_UNSET);
    w.now = 100 * SEC;
    st_event ev = job_event(1, "a");
    ev.u.job.limit_ms = 60 * SEC;
    step(&w, &ev);
    tick(&w, 40 * SEC);
    assert_int_equal(st_core_now(w.core), 100 * SEC);
    assert_int_equal(w.fx.list.n, 0);
    w.now = 50 * SEC;
    submit(&w, 2, "a");
    assert_int_equal(job_of(&w, 2)->submit_ms, 100 * SEC);
    assert_int_equal(w.fx.list.v[0].at_ms, 100 * SEC);
    tick(&w, 159 * SEC);
    in_state(&w, 1, ST_JOB_RUNNING);
    tick(&w, 160 * SEC);
    assert_non_null(effect(&w, ST_FX_END, 1));
    end(&w);
}

/* A little of everything: running, leaving, planned, paused and waiting jobs, a reservation,
 * and a past. */
static void begin_mixed(world *w)
{
    st_policy policy = st_policy_default();
    policy.min_run_ms = policy.cooldown_ms = 0;
    begin(w, &policy, 3, 2);
    st_event ev = account_event("own", 3000);
    ev.u.account.own_domain = true;
    ev.u.account.user_limits.gpu_m = 100000;
    step(w, &ev);
    account(w, "lend", ST_UNSET);
    for (uint64_t id = 1; id <= 6; id++) {
        ev = job_event(id, "lend");
        ev.u.job.yield = id <= 3 ? ST_YIELD_CHECKPOINT : ST_YIELD_PAUSE;
        ev.u.job.limit_ms = 5000 * SEC;
        ev.u.job.user = id % 2 ? "ann" : "bob";
        ev.u.job.priority = -(int)id;
        w->now += SEC;
        step(w, &ev);
    }
    w->now = 100 * SEC;
    tell(w, ST_EV_CHECKPOINTED, 1);
    submit(w, 10, "own"); /* displaces the lowest, 6 */
    tick(w, 130 * SEC);
    tell(w, ST_EV_CHECKPOINTED, 6);
    in_state(w, 6, ST_JOB_PAUSED);
    in_state(w, 10, ST_JOB_RUNNING);
    submit(w, 11, "own");
    tick(w, 160 * SEC);
    submit(w, 12, "own");
    ev = job_event(13, "lend");
    ev.u.job.tasks = 4;
    ev.u.job.limit_ms = 50 * SEC;
    step(w, &ev);
    in_state(w, 13, ST_JOB_PENDING);
    assert_true(job_of(w, 11)->held && job_of(w, 12)->held);
}

static void test_a_timer_twice(void **state)
{
    (void)state;
    world w;
    st_strbuf before = {0}, after = {0};
    begin_mixed(&w);
    const int64_t times[] = {160 * SEC, 170 * SEC, 190 * SEC, 280 * SEC, 310 * SEC, 9999 * SEC};
    for (size_t i = 0; i < ST_ARRAY_LEN(times); i++) {
        tick(&w, times[i]);
        save(&w, &before);
        uint64_t hash = st_core_hash(w.core);
        tick(&w, times[i]);
        assert_int_equal(w.fx.list.n, 0);
        assert_int_equal(st_core_hash(w.core), hash);
        save(&w, &after);
        assert_int_equal(before.n, after.n);
        assert_memory_equal(before.s, after.s, after.n);
    }
    st_strbuf_done(&before);
    st_strbuf_done(&after);
    end(&w);
}

/* Asking why is free. */
static void test_explain_changes_nothing(void **state)
{
    (void)state;
    world w;
    st_strbuf before = {0}, after = {0}, text = {0};
    st_reasons why = {0};
    st_err err = {0};
    begin_mixed(&w);
    save(&w, &before);
    for (size_t i = 0; i < st_core_njobs(w.core); i++) {
        const st_job *job = st_core_job_at(w.core, i);
        st_vec_clear(&why);
        assert_ok(st_core_explain(w.core, job->id, &why, &err));
        bool waits = job->state == ST_JOB_PENDING || job->state == ST_JOB_PAUSED;
        assert_int_equal(why.n > 0, waits); /* who waits has a reason, who does not has none */
        bool blocked = false;
        for (size_t k = 0; k < why.n; k++) {
            blocked |= st_reason_blocks(why.v[k].code);
            st_strbuf_clear(&text);
            st_reason_text(w.core, &why.v[k], ST_ROOT, &text);
            assert_true(text.n > 10);
        }
        assert_int_equal(blocked, waits);
    }
    assert_fails(st_core_explain(w.core, 77, &why, &err), ST_ENOENT, "77");
    save(&w, &after);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.s, after.s, after.n);
    st_vec_free(&why);
    st_strbuf_done(&before);
    st_strbuf_done(&after);
    st_strbuf_done(&text);
    end(&w);
}

/* ---- saving -------------------------------------------------------------------------- */

/* Saved, loaded and saved again: the same bytes; and the loaded one goes on the same way. */
static void test_save_and_load(void **state)
{
    (void)state;
    st_strbuf first = {0}, second = {0};
    st_err err = {0};
    world w;
    begin_mixed(&w);
    const int64_t times[] = {165 * SEC, 190 * SEC, 280 * SEC, 400 * SEC, 6000 * SEC};
    for (size_t i = 0; i < ST_ARRAY_LEN(times); i++) {
        world copy = {.now = w.now};
        save(&w, &first);
        assert_ok(st_core_load(first.s, first.n, &copy.core, &err));
        save(&copy, &second);
        assert_int_equal(first.n, second.n);
        assert_memory_equal(first.s, second.s, first.n);
        assert_int_equal(st_core_next_timer(w.core), st_core_next_timer(copy.core));
        tick(&w, times[i]);
        tick(&copy, times[i]);
        if (i == 1) {
            tell(&w, ST_EV_FINISH, 10);
            tell(&copy, ST_EV_FINISH, 10);
        }
        assert_int_equal(st_core_hash(w.core), st_core_hash(copy.core));
        save(&w, &first);
        save(&copy, &second);
        assert_int_equal(first.n, second.n);
        assert_memory_equal(first.s, second.s, first.n);
        end(&copy);
    }
    st_strbuf_done(&first);
    st_strbuf_done(&second);
    end(&w);
}

static void test_damaged_saves(void **state)
{
    (void)state;
    world w;
    st_strbuf good = {0};
    st_err err = {0};
    begin(&w, NULL, 1, 1);
    account(&w, "a", 1000);
    submit(&w, 1, "a");
    save(&w, &good);
    st_core *core = NULL;
    for (size_t n = 0; n < good.n; n++) {
        assert_fails(st_core_load(good.s, n, &core, &err), ST_EPARSE, "saved state");
        assert_null(core);
    }
    for (size_t i = 0; i < good.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            good.s[i] = (char)(good.s[i] ^ 1 << bit);
            if (st_core_load(good.s, good.n, &core, &err) != -ST_EPARSE)
                fail_msg("byte %d bit %d changed and taken", (int)i, bit);
            assert_null(core);
            good.s[i] = (char)(good.s[i] ^ 1 << bit);
        }
    }
    st_strbuf_addc(&good, 0);
    assert_fails(st_core_load(good.s, good.n, &core, &err), ST_EPARSE, "saved state");
    assert_ok(st_core_load(good.s, good.n - 1, &core, &err));
    st_core_free(core);
    st_strbuf_done(&good);
    end(&w);
}

/* Whatever is accepted can be saved and loaded. */
static void test_what_is_accepted_can_be_loaded(void **state)
{
    (void)state;
    static refusal list[REFUSALS];
    int n = 0, unloadable = 0;
    refuse_job(list, &n, "pool -7", 0)->pool = -7;
    refuse_job(list, &n, "a whole GPU with a share below 0", 0)->shape.share_m = ST_UNSET;
    refuse_job(list, &n, "a whole GPU with an absurd share", 0)->shape.share_m = INT64_MAX;
    refuse(list, &n, "a type on an unknown board", 0, type_event("odd", (st_board)99));
    refuse(list, &n, "a pool of unknown levels", 0, pool_event("odd", UINT32_MAX));
    refuse(list, &n, "an unknown trust", 0, account_event("odd", 0))->u.account.trust = (st_trust)9;
    for (int i = 0; i < n; i++) {
        world w;
        st_strbuf saved = {0};
        st_err err = {0};
        st_core *core = NULL;
        begin(&w, NULL, 1, 4);
        account(&w, "a", 1000);
        if (st_core_step(w.core, &list[i].ev, 0, &w.fx, &err) == 0) {
            save(&w, &saved);
            if (st_core_load(saved.s, saved.n, &core, &err) < 0) {
                print_error("%s was accepted, but: %s\n", list[i].what, err.msg);
                unloadable++;
            }
            st_core_free(core);
        }
        st_strbuf_done(&saved);
        end(&w);
    }
    assert_int_equal(unloadable, 0);
}

/* ---- several events of one moment ------------------------------------------------------ */

/* A node fails and another joins before the pass: the gang starts again on the new one. */
static void test_apply_then_pass(void **state)
{
    (void)state;
    world w;
    st_err err = {0};
    begin(&w, NULL, 1, 1);
    account(&w, "a", 1000);
    submit(&w, 1, "a");
    st_event fail_ = state_event(0, ST_NODE_FAILED), join = node_event("late", 1);
    st_effects_clear(&w.fx);
    assert_ok(st_core_apply(w.core, &fail_, 5, &w.fx, &err));
    assert_ok(st_core_apply(w.core, &join, 5, &w.fx, &err));
    in_state(&w, 1, ST_JOB_PENDING);
    st_core_pass(w.core, 5, &w.fx);
    in_state(&w, 1, ST_JOB_RUNNING);
    assert_int_equal(job_of(&w, 1)->grants[0].node, 1);
    end(&w);
}

/* Two plans wait for victims, in two pools: the one in the way is named, not the one that was first. */
static void test_held_for_whom(void **state)
{
    (void)state;
    world w;
    st_policy policy = st_policy_default();
    policy.min_run_ms = policy.cooldown_ms = 0;
    begin(&w, &policy, 1, 8);
    st_event ev = pool_event("q", 0xf);
    step(&w, &ev);
    ev = node_event("other", 8);
    ev.u.node.pool = 1;
    step(&w, &ev);
    account(&w, "owner", 16000);
    account(&w, "guest", ST_UNSET);
    for (uint64_t id = 1; id <= 4; id++) { /* two of 4 GPUs in each pool, all borrowed */
        ev = job_event(id, "guest");
        ev.u.job.pool = id > 2;
        ev.u.job.shape.gpus = 4;
        step(&w, &ev);
    }
    for (uint64_t id = 5; id <= 6; id++) { /* the owner claims both nodes */
        ev = job_event(id, "owner");
        ev.u.job.pool = id == 6;
        ev.u.job.shape.gpus = 8;
        step(&w, &ev);
        assert_true(st_core_job(w.core, id)->held);
    }
    tell(&w, ST_EV_FINISH, 3); /* half of the second node is free, and held for 6 */
    ev = job_event(7, "guest");
    ev.u.job.pool = 1;
    ev.u.job.shape.gpus = 4;
    step(&w, &ev);
    st_reasons why = {0};
    st_err err = {0};
    uint64_t held_for = 0;
    assert_ok(st_core_explain(w.core, 7, &why, &err));
    for (size_t i = 0; i < why.n; i++)
        if (why.v[i].code == ST_WHY_HELD)
            held_for = why.v[i].other;
    assert_int_equal(held_for, 6);
    st_vec_free(&why);
    end(&w);
}

/* That a long job finds nobody to swap with says nothing about a short one of the same shape. */
static void test_swap_behind_a_longer_one(void **state)
{
    (void)state;
    st_policy policy = st_policy_default();
    policy.swap = 1;
    policy.order = ST_ORDER_SHORTEST;
    policy.reservations = policy.notice_ms = policy.min_run_ms = 0;
    world w;
    begin(&w, &policy, 1, 1);
    account(&w, "a", 0);
    static const int64_t limits_s[] = {36000, 72000, 600};
    for (uint64_t id = 1; id <= 3; id++) {
        st_event ev = job_event(id, "a");
        ev.u.job.limit_ms = limits_s[id - 1] * SEC;
        ev.u.job.yield = ST_YIELD_CHECKPOINT;
        w.now += SEC;
        step(&w, &ev);
        assert_int_equal(job_of(&w, 1)->state == ST_JOB_RUNNING, id < 3);
    }
    assert_true(job_of(&w, 3)->held);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_for_whom),
        cmocka_unit_test(test_a_job_comes_and_goes),
        cmocka_unit_test(test_limit_strikes),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_a_node_fails_and_returns),
        cmocka_unit_test(test_refused_without_a_trace),
        cmocka_unit_test(test_refused_later),
        cmocka_unit_test(test_time_goes_back),
        cmocka_unit_test(test_a_timer_twice),
        cmocka_unit_test(test_explain_changes_nothing),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_damaged_saves),
        cmocka_unit_test(test_what_is_accepted_can_be_loaded),
        cmocka_unit_test(test_apply_then_pass),
        cmocka_unit_test(test_swap_behind_a_longer_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
