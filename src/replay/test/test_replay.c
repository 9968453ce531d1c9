/*
 * Playing a log again: it leads where it led; jobs that go their own ways with nothing changed go the same ways; what is
 * changed has its effect; and what is not a log is refused with one sentence. tests/service/test_replay.py does it with
 * the log of a real stintd.
 */
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "base/testing.h"
#include "log/log.h"
#include "replay/replay.h"
#include "spec/spec.h"
#include "store/test/scratch.h"

#define JOBS  80
#define START INT64_C(1790000000000)

typedef struct job {
    int64_t submit_ms, run_ms, due_ms, saved_at_ms;
    int gpus;
    const char *account;
    st_yield yield;
    bool cancelled;
} job;

/* A cluster whose log is written as stintd would, by a clock that is never late. */
typedef struct cluster {
    scratch place;
    st_store *store;
    st_core *core;
    st_meter *meter;
    st_effects fx;
    st_strbuf log;
    int64_t now, seq;
    const char *version;
    bool metered;
    job jobs[JOBS];
} cluster;

static void apply(cluster *c, st_event ev)
{
    st_err err = {0};

    assert_ok(st_core_apply(c->core, &ev, c->now, &c->fx, &err));
    st_event_encode(&ev, &c->log);
}

static void follow(cluster *c)
{
    for (size_t i = 0; i < c->fx.list.n; i++) {
        const st_effect *fx = &c->fx.list.v[i];
        job *j = fx->job ? &c->jobs[fx->job - 1] : NULL;
        const st_job *live = fx->job ? st_core_job(c->core, fx->job) : NULL;

        if (!j)
            continue;
        if (fx->kind == ST_FX_START || fx->kind == ST_FX_RESUME)
            j->due_ms = c->now + j->run_ms - st_job_ran_ms(live, c->now);
        else if (fx->kind == ST_FX_CHECKPOINT)
            j->saved_at_ms = c->now + 1500;
        else if (fx->kind == ST_FX_END || fx->kind == ST_FX_REQUEUE || fx->kind == ST_FX_PAUSE)
            j->due_ms = j->saved_at_ms = ST_TIME_NEVER;
    }
}

/* Settles and writes the row. */
static void commit(cluster *c)
{
    st_notes notes = {0};
    st_records records = {0};
    st_err err = {0};

    if (c->seq == 0)
        st_vec_push(&notes, (st_note){.kind = ST_NOTE_BEGIN});
    st_core_settle(c->core, c->now, &c->fx);
    st_log_meter(c->core, &c->fx, &notes, c->now, &c->meter, &records);
    st_notes_write(&notes, &c->log);
    const st_log_row row = {.seq = ++c->seq,
                            .at_ms = c->now,
                            .version = c->version,
                            .data = {c->log.s, c->log.n},
                            .hash = st_core_hash(c->core)};
    assert_ok(st_store_log_append(c->store, &row, &err));
    follow(c);
    st_effects_clear(&c->fx);
    st_strbuf_clear(&c->log);
    st_vec_free(&notes);
    st_vec_free(&records);
}

static void snapshot(cluster *c)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    int64_t len[ST_SNAP_PARTS] = {0};
    size_t at;
    st_err err = {0};

    st_snapshot_begin(&data);
    at = data.n;
    st_core_save(c->core, &data);
    len[ST_SNAP_CORE] = (int64_t)(data.n - at);
    at = data.n;
    st_meter_save(c->meter, &data);
    len[ST_SNAP_METER] = (int64_t)(data.n - at);
    st_snapshot_end(&data, len);
    const st_snap_row row = {
        .seq = c->seq, .at_ms = c->now, .version = c->version, .data = {data.s, data.n}};
    assert_ok(st_store_snap_put(c->store, &row, INT64_MAX, &err));
    assert_ok(st_store_log_prune(c->store, INT32_MAX, NULL, &err));
}

static void begin(cluster *c)
{
    static const struct {
        const char *name;
        int64_t gpu_m;
    } accounts[] = {{"vision", 8000}, {"speech", 4000}, {"lab", 0}};
    st_policy policy = st_policy_default();
    st_event ev = {.kind = ST_EV_POLICY};
    st_err err = {0};

    *c = (cluster){.now = START, .version = ST_LOG_VERSION};
    scratch_init(&c->place);
    assert_ok(st_store_open(c->place.path, LOOSE, &c->store, &err));
    policy.notice_ms = 2000;
    policy.grace_ms = 5000;
    policy.min_run_ms = 10000;
    policy.cooldown_ms = 10000;
    c->core = st_core_new(&policy);
    ev.u.policy = policy;
    apply(c, ev);
    commit(c);
    ev = (st_event){.kind = ST_EV_TYPE};
    ev.u.type.name = "h100";
    ev.u.type.vram_mib = 81920;
    apply(c, ev);
    ev = (st_event){.kind = ST_EV_POOL};
    ev.u.pool.name = "main";
    ev.u.pool.levels = ST_POOL_LEVELS;
    ev.u.pool.oversub_m = ST_POOL_OVERSUB_M;
    apply(c, ev);
    for (int n = 0; n < 2; n++) {
        ev = (st_event){
            .kind = ST_EV_NODE,
            .u.node = {.name = n ? "n1" : "n0", .ndevs = 8, .cpu_m = 128000, .ram_mib = 1 << 20}};
        apply(c, ev);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(accounts); i++) {
        ev = (st_event){.kind = ST_EV_ACCOUNT};
        st_account_spec_init(&ev.u.account);
        ev.u.account.name = accounts[i].name;
        ev.u.account.guarantee.gpu_m = accounts[i].gpu_m;
        apply(c, ev);
    }
    commit(c);
}

static void end(cluster *c)
{
    st_store_close(c->store);
    st_core_free(c->core);
    st_meter_free(c->meter);
    st_effects_done(&c->fx);
    st_strbuf_done(&c->log);
    scratch_done(&c->place);
}

static void make_jobs(cluster *c)
{
    static const char *const accounts[] = {"vision", "speech", "lab"};
    static const int gpus[] = {1, 2, 4, 8};
    st_rng rng;
    int64_t at = START + 1000;

    st_rng_seed(&rng, 7);
    for (int i = 0; i < JOBS; i++) {
        at += 500 + (int64_t)st_rng_below(&rng, 6000);
        c->jobs[i] = (job){.submit_ms = at,
                           .run_ms = 3000 + (int64_t)st_rng_below(&rng, 60000),
                           .due_ms = ST_TIME_NEVER,
                           .saved_at_ms = ST_TIME_NEVER,
                           .gpus = gpus[st_rng_below(&rng, 4)],
                           .account = accounts[st_rng_below(&rng, 3)],
                           .yield = st_rng_below(&rng, 2) ? ST_YIELD_CHECKPOINT : ST_YIELD_REQUEUE};
    }
}

static void submit(cluster *c, int i)
{
    const job *j = &c->jobs[i];
    const st_event ev = {.kind = ST_EV_SUBMIT,
                         .u.job = {.id = (uint64_t)i + 1,
                                   .name = "train",
                                   .account = j->account,
                                   .user = "ann",
                                   .pool = -1,
                                   .tasks = 1,
                                   .shape = {.gpus = j->gpus, .cpu_m = 1000, .ram_mib = 1024},
                                   .limit_ms = 600000,
                                   .yield = j->yield}};

    apply(c, ev);
}

/* One moment: as the player of traces has them, jobs first, then who arrives, then what is due. */
static void one_moment(cluster *c)
{
    bool any = false;

    for (int i = 0; i < JOBS; i++)
        if (c->jobs[i].due_ms <= c->now) {
            c->jobs[i].due_ms = ST_TIME_NEVER;
            apply(c, (st_event){.kind = ST_EV_FINISH, .u.finish = {.id = (uint64_t)i + 1}});
            any = true;
        }
    for (int i = 0; i < JOBS; i++)
        if (c->jobs[i].saved_at_ms <= c->now) {
            c->jobs[i].saved_at_ms = ST_TIME_NEVER;
            apply(c, (st_event){.kind = ST_EV_CHECKPOINTED, .u.id = (uint64_t)i + 1});
            any = true;
        }
    if (st_core_next_timer(c->core) <= c->now) {
        apply(c, (st_event){.kind = ST_EV_TIMER});
        any = true;
    }
    for (int i = 0; i < JOBS; i++)
        if (c->jobs[i].submit_ms == c->now) {
            submit(c, i);
            any = true;
        } else if (c->jobs[i].submit_ms == c->now - 20000 && i % 11 == 5 &&
                   st_core_job(c->core, (uint64_t)i + 1)) {
            apply(c, (st_event){.kind = ST_EV_CANCEL, .u.id = (uint64_t)i + 1});
            any = true;
        }
    if (any)
        commit(c);
}

static int64_t next_ms(const cluster *c)
{
    int64_t next = st_core_next_timer(c->core);

    for (int i = 0; i < JOBS; i++) {
        const job *j = &c->jobs[i];

        next = ST_MIN(next, ST_MIN(j->due_ms, j->saved_at_ms));
        if (j->submit_ms > c->now)
            next = ST_MIN(next, j->submit_ms);
        if (j->submit_ms + 20000 > c->now && i % 11 == 5)
            next = ST_MIN(next, j->submit_ms + 20000);
    }
    return ST_MAX(next, c->now);
}

/* Plays everything; a snapshot after the jobs of `snaps`. */
static void record(cluster *c, int64_t snap_rows)
{
    make_jobs(c);
    for (int64_t next, last = 0; (next = next_ms(c)) < START + 3600000;) {
        c->now = next;
        one_moment(c);
        if (snap_rows && c->seq - last >= snap_rows) {
            snapshot(c);
            last = c->seq;
        }
    }
}

static st_rerun *replay(cluster *c, st_rerun_options o)
{
    st_rerun *run = NULL;
    st_err err = {0};

    o.path = c->place.path;
    if (o.from_ms == 0)
        o.from_ms = ST_UNSET;
    if (o.to_ms == 0)
        o.to_ms = ST_UNSET;
    assert_ok(st_rerun_play(&o, &run, &err));
    return run;
}

/* ---- the same ------------------------------------------------------------------------------------------ */

static void nothing_changed_is_what_happened(void **state)
{
    cluster c;

    (void)state;
    for (int64_t snaps = 0; snaps <= 60; snaps += 60) {
        begin(&c);
        record(&c, snaps);
        st_rerun *run = replay(&c, (st_rerun_options){0});

        assert_true(run->same);
        assert_int_equal(run->side[ST_WAS].hash, st_core_hash(c.core));
        assert_int_equal(run->side[ST_WOULD].hash, st_core_hash(c.core));
        assert_int_equal(run->sooner + run->later, 0);
        assert_int_equal(run->side[ST_WAS].wait.p99, run->side[ST_WOULD].wait.p99);
        if (snaps == 0) {
            assert_int_equal(run->jobs, JOBS);
            assert_true(run->side[ST_WAS].preemptions > 0);
            assert_true(run->side[ST_WAS].wait.mean > 1000);
        } else {
            assert_true(run->jobs > 0 && run->jobs < JOBS);
            assert_true(run->from_ms > START);
        }
        st_rerun_free(run);
        end(&c);
    }
}

/* A log by a clock that is never late can be found again from the demand alone, to the last effect. */
static void jobs_that_go_their_own_ways_go_the_same(void **state)
{
    cluster c;

    (void)state;
    for (int64_t snaps = 0; snaps <= 60; snaps += 60) {
        begin(&c);
        record(&c, snaps);
        st_rerun *run = replay(&c, (st_rerun_options){.react = true});

        assert_false(run->same);
        assert_int_equal(run->side[ST_WOULD].hash, st_core_hash(c.core));
        assert_int_equal(run->sooner + run->later, 0);
        assert_int_equal(run->side[ST_WAS].preemptions, run->side[ST_WOULD].preemptions);
        assert_true(run->side[ST_WAS].lost_gpu_hours == run->side[ST_WOULD].lost_gpu_hours);
        st_rerun_free(run);
        end(&c);
    }
}

/* ---- changes --------------------------------------------------------------------------------------------- */

static int no_preemption(void *ctx, st_policy *policy, st_err *err)
{
    (void)ctx;
    (void)err;
    policy->min_run_ms = 2592000000;
    return 0;
}

static const st_rerun_account *of(const st_rerun *run, const char *name)
{
    for (size_t i = 0; i < run->accounts.n; i++)
        if (strcmp(run->accounts.v[i].name, name) == 0)
            return &run->accounts.v[i];
    return NULL;
}

static void changes_have_their_effect(void **state)
{
    static const char fleet[] = "fleet: [{count: 32, name: \"x%d\", gpu: h100}]\n";
    static const char accounts[] =
        "accounts: [{name: vision, guarantee: {gpu: 0}}, {name: lab, guarantee: {gpu: 12}}]\n";
    static const char prices[] = "prices: p\ngpu: {\"*\": {reserved: 0, burst: 2, on_demand: 3}}\n";
    ST_CLEANUP(st_doc_freep) st_doc *fleet_doc = NULL;
    ST_CLEANUP(st_doc_freep) st_doc *accounts_doc = NULL;
    cluster c;
    st_err err = {0};
    st_rerun *run;

    (void)state;
    begin(&c);
    record(&c, 0);
    run = replay(&c, (st_rerun_options){.policy = no_preemption});
    assert_false(run->same);
    assert_true(run->differ_ms > run->from_ms);
    assert_int_equal(run->side[ST_WOULD].preemptions, 0);
    assert_int_equal(run->side[ST_WOULD].ended, JOBS);
    st_rerun_free(run);

    assert_ok(st_doc_parse("fleet", fleet, strlen(fleet), &fleet_doc, &err));
    run = replay(&c, (st_rerun_options){.fleet = fleet_doc});
    assert_int_equal(run->side[ST_WOULD].wait.p99, 0); /* there is room for everybody */
    assert_int_equal(run->side[ST_WOULD].preemptions, 0);
    assert_int_equal(run->later, 0);
    assert_true(run->sooner > 10);
    assert_int_equal(of(run, "lab")->verdict, 1);
    st_rerun_free(run);

    assert_ok(st_doc_parse("accounts", accounts, strlen(accounts), &accounts_doc, &err));
    run = replay(&c, (st_rerun_options){.accounts = accounts_doc});
    assert_int_equal(of(run, "lab")->verdict, 1);
    assert_int_equal(of(run, "vision")->verdict, -1);
    assert_true(of(run, "lab")->side[ST_WOULD].wait_ms < of(run, "lab")->side[ST_WAS].wait_ms);
    st_rerun_free(run);

    run = replay(&c, (st_rerun_options){.prices = prices, .nprices = strlen(prices)});
    assert_true(run->same); /* money decides nothing here */
    assert_int_equal(run->side[ST_WAS].bill_udollars, 0);
    /* Two dollars for every GPU-hour that is borrowed: of the lab, whose floor is 0, for all of them. */
    double dollars = (double)of(run, "lab")->side[ST_WOULD].bill_udollars / 1e6;
    assert_true(of(run, "lab")->side[ST_WOULD].gpu_hours > 0.5);
    assert_true(fabs(dollars - 2 * of(run, "lab")->side[ST_WOULD].gpu_hours) < 0.001);
    st_rerun_free(run);
    end(&c);
}

static void a_part_of_the_time_is_counted(void **state)
{
    cluster c;
    st_rerun *run;
    st_rerun_options o = {.from_ms = START + 60000, .to_ms = START + 120000};
    st_err err = {0};

    (void)state;
    begin(&c);
    record(&c, 0);
    run = replay(&c, o);
    assert_true(run->same);
    assert_int_equal(run->from_ms, START + 60000);
    assert_true(run->to_ms <= START + 120000);
    assert_true(run->jobs > 5 && run->jobs < JOBS);
    st_rerun_free(run);

    o = (st_rerun_options){.path = c.place.path, .from_ms = START + 7200000, .to_ms = ST_UNSET};
    assert_fails(st_rerun_play(&o, &run, &err), ST_ERANGE, "nothing was submitted");
    snapshot(&c);
    snapshot(&c);
    end(&c);
}

/* What is written is a world and jobs in which nobody is named. */
static void a_trace_has_no_names(void **state)
{
    char *text = NULL;
    size_t n = 0;
    cluster c;
    st_rerun *run;

    (void)state;
    begin(&c);
    record(&c, 0);
    run = replay(&c, (st_rerun_options){0});
    FILE *f = open_memstream(&text, &n);
    st_rerun_write_world(run->trace, f);
    fclose(f);
    assert_non_null(strstr(text, "team1"));
    assert_null(strstr(text, "vision"));
    assert_null(strstr(text, "n0"));
    for (size_t i = 0; i < run->trace->jobs.n; i++) {
        assert_null(strstr(run->trace->jobs.v[i].name, "train"));
        assert_null(strstr(run->trace->jobs.v[i].user, "ann"));
    }
    assert_true(run->trace->jobs.n > JOBS / 2);
    free(text);
    st_rerun_free(run);
    end(&c);
}

/* ---- what is not a log ------------------------------------------------------------------------------------- */

static void refused(const char *path, int code, const char *text)
{
    const st_rerun_options o = {
        .path = path, .backup = true, .from_ms = ST_UNSET, .to_ms = ST_UNSET};
    st_rerun *run = NULL;
    st_err err = {0};

    assert_fails(st_rerun_play(&o, &run, &err), code, text);
    assert_null(run);
    assert_null(strchr(err.msg, '\n'));
}

static void add_row(cluster *c, const void *data, size_t n, uint64_t hash, int64_t at_ms)
{
    const st_log_row row = {
        .seq = ++c->seq, .at_ms = at_ms, .version = c->version, .data = {data, n}, .hash = hash};
    st_err err = {0};

    assert_ok(st_store_log_append(c->store, &row, &err));
    st_store_close(ST_TAKE(c->store));
}

static void damage_is_said_in_one_sentence(void **state)
{
    cluster c;
    FILE *f;
    struct stat st;

    (void)state;
    begin(&c);
    add_row(&c, "\x7fgarbage", 8, 0, c.now);
    refused(c.place.path, ST_ECORRUPT, "row 3 of the log: ");
    end(&c);

    begin(&c);
    add_row(&c, "", 0, 12345, c.now);
    refused(c.place.path, ST_ECORRUPT, "does not lead to the state");
    end(&c);

    begin(&c);
    add_row(&c, "", 0, st_core_hash(c.core), c.now - 5000);
    refused(c.place.path, ST_ECORRUPT, "older than the one before");
    end(&c);

    begin(&c);
    record(&c, 0);
    st_store_close(ST_TAKE(c.store));
    assert_int_equal(stat(c.place.path, &st), 0);
    assert_int_equal(truncate(c.place.path, st.st_size / 2), 0);
    refused(c.place.path, ST_ECORRUPT, "damaged");
    f = fopen(c.place.path, "w");
    fputs("this is a letter to my mother\n", f);
    fclose(f);
    refused(c.place.path, ST_ECORRUPT, "damaged");
    refused("/nonexistent/stint.db", ST_EIO, "/nonexistent/stint.db");
    end(&c);
}

/* Another version may decide otherwise: that is said, and not taken for damage. */
static void another_version_may_part(void **state)
{
    cluster c;
    st_rerun *run;
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};

    (void)state;
    begin(&c);
    make_jobs(&c);
    c.now += 1000;
    submit(&c, 0);
    c.version = "0.0.1";
    st_core_settle(c.core, c.now, &c.fx);
    st_strbuf_addn(&data, c.log.s, c.log.n);
    add_row(&c, data.s, data.n, 12345, c.now);
    run = replay(&c, (st_rerun_options){0});
    assert_int_equal(run->parted, 3);
    assert_string_equal(run->written_by, "0.0.1");
    st_rerun_free(run);
    end(&c);
}

/* Nothing is written, and nothing is made beside it, whether it is called a store or a copy. */
static void the_store_is_left_alone(void **state)
{
    cluster c;
    char beside[128];
    struct stat was, is;

    (void)state;
    begin(&c);
    record(&c, 0);
    st_store_close(ST_TAKE(c.store));
    assert_int_equal(stat(c.place.path, &was), 0);
    assert_int_equal(chmod(c.place.path, 0400), 0);
    for (int backup = 0; backup < 2; backup++) {
        st_rerun *run = replay(&c, (st_rerun_options){.backup = backup});

        st_rerun_free(run);
        assert_int_equal(stat(c.place.path, &is), 0);
        assert_int_equal(was.st_mtim.tv_nsec, is.st_mtim.tv_nsec);
        assert_int_equal(was.st_size, is.st_size);
        snprintf(beside, sizeof beside, "%s-wal", c.place.path);
        assert_int_not_equal(stat(beside, &is), 0);
        snprintf(beside, sizeof beside, "%s-shm", c.place.path);
        assert_int_not_equal(stat(beside, &is), 0);
    }
    end(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changed_is_what_happened),
        cmocka_unit_test(jobs_that_go_their_own_ways_go_the_same),
        cmocka_unit_test(changes_have_their_effect),
        cmocka_unit_test(a_part_of_the_time_is_counted),
        cmocka_unit_test(a_trace_has_no_names),
        cmocka_unit_test(damage_is_said_in_one_sentence),
        cmocka_unit_test(another_version_may_part),
        cmocka_unit_test(the_store_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
