/*
 * The loop with a real store and a clock of our own: ids, tokens, exactly-once submits, a store
 * that fails and comes back, replay, damage, late reports.
 */
#include <string.h>

#include "control/test/money.h"
#include "log/log.h"
#include "store/test/tamper.h"

/* ---- tests ----------------------------------------------------------------------------------- */

static void ids_go_there_and_back(void **state)
{
    static const char *const junk[] = {"", "j", "j1234567", "j123456789", "x12345678", "j1234567u"};
    const world *w = *state;
    char text[ST_ID_TEXT], other[ST_ID_TEXT];
    uint64_t back;

    for (uint64_t id = 0; id < 5000; id += 7) {
        st_control_id_text(w->ctl, id, text);
        assert_true(st_control_id_parse(w->ctl, text, &back));
        assert_int_equal(back, id);
        assert_false(st_control_named(w->ctl, 't', text, &back));
        st_control_id_text(w->ctl, id + 1, other);
        assert_string_not_equal(text, other);
    }
    for (size_t i = 0; i < ST_ARRAY_LEN(junk); i++)
        assert_false(st_control_id_parse(w->ctl, junk[i], &back));
}

static void tokens_that_open_nothing_are_alike(void **state)
{
    st_err err = {0};
    world *w = *state;
    st_directory *dir = st_control_directory(w->ctl);
    st_cmd_token good = {.who = owner,
                         .account = "",
                         .user = "ann",
                         .label = "",
                         .role = ST_ROLE_VIEWER,
                         .expires_ms = 5000};
    st_cmd_token gone = good;
    st_identity who;
    st_err unknown, expired, revoked;

    st_cmd_token_make(&good);
    assert_ok(do_cmd(w, &good.cmd, &err));
    st_cmd_token_make(&gone);
    assert_ok(do_cmd(w, &gone.cmd, &err));
    assert_ok(st_directory_token(dir, good.text, 4999, &who, &err));
    assert_string_equal(who.user, "ann");
    st_cmd_token_revoke(&gone);
    assert_ok(do_cmd(w, &gone.cmd, &err));
    assert_int_equal(st_directory_token(dir, "stint_none", 1, &who, &unknown), -ST_EAUTH);
    assert_int_equal(st_directory_token(dir, good.text, 5000, &who, &expired), -ST_EAUTH);
    assert_int_equal(st_directory_token(dir, gone.text, 1, &who, &revoked), -ST_EAUTH);
    assert_string_equal(unknown.msg, expired.msg);
    assert_string_equal(unknown.msg, revoked.msg);
    restart(w);
    dir = st_control_directory(w->ctl);
    assert_ok(st_directory_token(dir, good.text, 4999, &who, &err));
    assert_int_equal(st_directory_token(dir, gone.text, 1, &who, &revoked), -ST_EAUTH);
}

static void a_key_gives_one_job(void **state)
{
    st_err err = {0};
    world *w = *state;
    uint64_t first, again, other;
    st_err why;

    make_fleet(w);
    assert_ok(submit(w, "k", "{}", &first, &err));
    assert_ok(submit(w, "k", "{}", &again, &err));
    assert_int_equal(first, again);
    assert_int_equal(submit(w, "k", "{\"other\":1}", &other, &why), -ST_ESTATE);
    restart(w);
    assert_ok(submit(w, "k", "{}", &again, &err));
    assert_int_equal(first, again);
    assert_ok(submit(w, "l", "{}", &other, &err));
    assert_int_not_equal(first, other);
}

static void a_failing_store_is_waited_for(void **state)
{
    st_err err = {0};
    static const fault_kind kinds[] = {FAULT_WRITE_FULL, FAULT_WRITE_IO, FAULT_SYNC};
    world *w = *state;
    uint64_t id, kept;
    st_err why;

    make_fleet(w);
    assert_ok(submit(w, "kept", "{}", &kept, &err));
    for (size_t i = 0; i < ST_ARRAY_LEN(kinds); i++) {
        char key[16];

        snprintf(key, sizeof key, "lost%zu", i);
        faulty_arm(w->vfs, kinds[i], 1);
        assert_int_equal(submit(w, key, "{}", &id, &why), -ST_EDOWN);
        assert_false(st_control_ready(w->ctl, &why));
        assert_int_equal(submit(w, key, "{}", &id, &why), -ST_EDOWN);
        faulty_arm(w->vfs, FAULT_NONE, 0);
        let_pass(w, 60000);
        assert_ok(submit(w, key, "{}", &id, &err));
        assert_true(st_control_ready(w->ctl, &why));
    }
    assert_ok(submit(w, "kept", "{}", &id, &err));
    assert_int_equal(id, kept);
    restart(w);
}

/* While the store was away another stintd has begun: this one does not go on beside it. */
static void who_comes_back_too_late_stays_down(void **state)
{
    world *w = *state;
    uint64_t id;
    st_err why = {0};

    make_fleet(w);
    faulty_arm(w->vfs, FAULT_WRITE_IO, 1);
    assert_int_equal(submit(w, "a", "{}", &id, &why), -ST_EDOWN);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    /* The loop waits for its clock, so nobody else uses the connection. */
    tamper_exec(st_control_store(w->ctl), "UPDATE meta SET v = v + 1 WHERE k = 'epoch'");
    let_pass(w, 60000);
    assert_int_equal(submit(w, "a", "{}", &id, &why), -ST_EDOWN);
    assert_false(st_control_ready(w->ctl, &why));
    assert_non_null(strstr(why.msg, "another stintd decides"));
}

typedef struct pair {
    st_cmd cmd;
    st_cmd *first, *second;
} pair;

static int run_pair(st_tx *tx, st_cmd *cmd, st_err *err)
{
    pair *p = (pair *)cmd;
    int r = p->first->run(tx, p->first, err);

    return r < 0 ? r : p->second->run(tx, p->second, err);
}

static void two_changes_of_an_account_together(void **state)
{
    world *w = *state;
    st_cmd_account a = {.who = owner, .name = "team"}, b = a;
    pair both = {.cmd = {.run = run_pair}, .first = &a.cmd, .second = &b.cmd};
    st_err err = {0};

    make_fleet(w);
    st_cmd_account_put(&a);
    st_cmd_account_put(&b);
    assert_ok(do_cmd(w, &both.cmd, &err));
    assert_int_equal(b.version, a.version + 1);
    assert_true(st_control_ready(w->ctl, &err));
    st_strbuf_done(&a.floors);
    st_strbuf_done(&b.floors);
}

static int cut_log(void *ctx, const st_log_row *row, st_err *err)
{
    (void)err;
    *(int64_t *)ctx = row->seq;
    return 0;
}

static void a_log_that_does_not_fit_is_refused(void **state)
{
    st_err err = {0};
    world *w = *state;
    const st_store_options options = {.vfs = VFS, .loose = true};
    int64_t last = 0;
    st_store *store;
    uint64_t id;
    st_err why;

    make_fleet(w);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    st_control_free(w->ctl);
    w->ctl = NULL;
    assert_ok(st_store_open(w->place.path, &options, &store, &err));
    assert_ok(st_store_log_read(store, 1, cut_log, &last, &err));
    assert_ok(st_store_log_last(store, &last, &err));
    const st_log_row row = {
        .seq = last + 1, .at_ms = 2000, .version = ST_LOG_VERSION, .data = {"\x7f\x01\x02", 3}};
    assert_ok(st_store_log_append(store, &row, &err));
    st_store_close(store);
    assert_true(open_control(w, &why) < 0);
    assert_non_null(strstr(why.msg, "of the log"));
}

static void late_reports_are_ignored(void **state)
{
    st_err err = {0};
    world *w = *state;
    st_report report = {.kind = ST_REPORT_ENDED, .stay = 0};
    st_core *core;
    uint64_t id, next;

    make_fleet(w);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    report.job = id;
    st_control_report(w->ctl, &report);
    assert_ok(submit(w, NULL, "{}", &next, &err));
    report.stay = 1;
    st_control_report(w->ctl, &report);
    assert_ok(submit(w, NULL, "{}", &next, &err));
    restart(w);
    st_control_report(w->ctl, &report); /* of a job that is over: nothing happens */
    assert_ok(submit(w, NULL, "{}", &next, &err));
    assert_ok(submit(w, NULL, "{}", &next, &err));
    st_control_stop(w->ctl);
    assert_ok(st_control_replay(st_control_store(w->ctl), &core, NULL, &err));
    assert_int_equal(st_core_njobs(core), 4);
    st_core_free(core);
}

/* The row's result once the loop has taken everything that was posted before. */
static void result_of(world *w, uint64_t id, st_strbuf *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_job_row row;
    st_err err = {0};
    uint64_t next;

    assert_ok(submit(w, NULL, "{}", &next, &err));
    assert_ok(submit(w, NULL, "{}", &next, &err));
    st_control_stop(w->ctl);
    assert_ok(st_store_job_get(st_control_store(w->ctl), (int64_t)id, arena, &row, &err));
    st_strbuf_add(ret, row.result);
}

static void what_was_used_is_in_the_row(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf again = {0};
    st_report used = {.kind = ST_REPORT_USED,
                      .stay = 1,
                      .used = {.has = 1u << ST_USED_HELD | 1u << ST_USED_BUSY, .v = {900, 0, 500}}};
    st_report end = {.kind = ST_REPORT_ENDED, .stay = 1};
    st_err err = {0};
    uint64_t id, next;

    make_fleet(w);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    assert_ok(submit(w, NULL, "{}", &next, &err));
    used.job = end.job = id;
    st_control_report(w->ctl, &used);
    used.used.v[ST_USED_HELD] = 1000;
    st_control_report(w->ctl, &used);
    st_control_report(w->ctl, &end);
    result_of(w, id, &out);
    assert_non_null(strstr(out.s, "\"usage\":{\"held_gpu_ms\":1000,\"busy_gpu_ms\":500}}]"));
    assert_non_null(strstr(out.s, "],\"usage\":{\"held_gpu_ms\":1000,\"busy_gpu_ms\":500}}"));
    assert_null(strstr(out.s, "scrub"));
    /* What comes after the end corrects it; what is of another stay does not. */
    restart(w);
    used.last = true;
    used.used.v[ST_USED_HELD] = 1200;
    used.scrub = (st_scrub){.result = ST_SCRUB_OVERWRITTEN, .bytes = 64, .found = 3, .ms = 7};
    st_control_report(w->ctl, &used);
    st_control_report(w->ctl, &used);
    used.stay = 2;
    used.used.v[ST_USED_HELD] = 9;
    st_control_report(w->ctl, &used);
    result_of(w, id, &again);
    assert_non_null(strstr(again.s, "],\"usage\":{\"held_gpu_ms\":1200,\"busy_gpu_ms\":500}}"));
    assert_non_null(strstr(again.s, "\"scrub\":{\"result\":\"overwritten\",\"bytes\":64,"
                                    "\"found\":3,\"ms\":7}"));
}

/* An array's shared beginning is written once, and is there after a restart and when its first piece
 * is over. */
static void pieces_share_a_document(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    st_submit_item items[3];
    st_cmd_submit cmd = {.who = owner, .items = items, .n = 3};
    static const char *const tails[] = {"0}", "1}", "2}"};
    st_job_row row;
    st_err err = {0};

    make_fleet(w);
    for (int i = 0; i < 3; i++)
        items[i] = (st_submit_item){.spec = {.name = "x",
                                             .account = "team",
                                             .user = "ann",
                                             .pool = -1,
                                             .tasks = 1,
                                             .limit_ms = 3600000,
                                             .shape = {.gpus = 8, .types = 1, .cpu_m = 1000}},
                                    .head = "{\"piece\":",
                                    .doc = tails[i],
                                    .array = 1};
    st_cmd_submit_init(&cmd);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < 3; i++) {
            char want[20];

            snprintf(want, sizeof want, "{\"piece\":%d}", i);
            assert_ok(st_store_job_get(st_control_store(w->ctl), (int64_t)items[i].id, arena, &row,
                                       &err));
            assert_string_equal(row.spec, want);
            assert_int_equal(row.part_of, items[0].id);
        }
        restart(w);
        if (again == 0) {
            st_cmd_job cancel = {.who = owner, .id = items[0].id};

            st_cmd_job_cancel(&cancel);
            assert_ok(do_cmd(w, &cancel.cmd, &err));
            restart(w);
        }
    }
}

static int submit_many(world *w, st_submit_item *items, size_t n, st_err *err)
{
    st_cmd_submit cmd = {.who = owner, .key = "many", .items = items, .n = n};

    memset(items, 0, n * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = (st_submit_item){.spec = {.name = "x",
                                             .account = "team",
                                             .user = "ann",
                                             .pool = -1,
                                             .tasks = 1,
                                             .limit_ms = 3600000,
                                             .shape = {.gpus = 8, .types = 1, .cpu_m = 1000}},
                                    .head = "{\"piece\":",
                                    .doc = "1}",
                                    .array = 1};
    st_cmd_submit_init(&cmd);
    return do_cmd(w, &cmd.cmd, err);
}

static int count_jobs(st_tx *tx, void *ret, st_err *err)
{
    return st_store_jobs_count(tx->ctl->store, &(st_job_filter){0}, ret, err);
}

static int64_t jobs_there(world *w)
{
    st_err err = {0};
    int64_t n = 0;

    assert_ok(in_loop(w, count_jobs, &n, &err));
    return n;
}

/* A batch is many transactions; one that is cut off in between goes on where it was, with its key. */
static void a_batch_goes_on(void **state)
{
    enum { N = 700 };
    world *w = *state;
    st_submit_item items[N], again[N];
    int64_t before;
    st_err err = {0};

    make_fleet(w);
    faulty_arm(w->vfs, FAULT_SYNC, 2);
    assert_int_equal(submit_many(w, items, N, &err), -ST_EDOWN);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 60000);
    restart(w);
    before = jobs_there(w);
    assert_in_range(before, 1, N - 1);
    assert_ok(submit_many(w, again, N, &err));
    assert_int_equal(jobs_there(w), N);
    for (int i = 0; i < before; i++)
        assert_int_equal(again[i].id, items[i].id);
    assert_ok(submit_many(w, items, N, &err));
    assert_int_equal(jobs_there(w), N);
    for (int i = 0; i < N; i++)
        assert_int_equal(again[i].id, items[i].id);
    assert_ok(st_store_jobs_count(st_control_store(w->ctl),
                                  &(st_job_filter){.part_of = (int64_t)items[0].id}, &before,
                                  &err));
    assert_int_equal(before, N); /* one array all the same */
}

/* What waits is counted, also over a restart, and is given back as jobs go. */
static void waiting_jobs_are_counted(void **state)
{
    world *w = *state;
    st_allowance *al = st_control_allowance(w->ctl);
    st_allowance_limits limits = st_allowance_nothing();
    st_allowance_row rows[ST_AL_COUNT];
    st_submit_item items[20];
    st_err err = {0};
    uint64_t id;

    make_fleet(w);
    limits.v[ST_AL_PENDING] = 19;
    st_allowance_set(al, "team", &limits);
    assert_fails(submit_many(w, items, 20, &err), ST_EALLOWANCE, "team"); /* whole or not at all */
    for (int i = 0; i < 20; i++)
        free(items[i].refusal);
    assert_ok(submit_many(w, items, 19, &err));
    assert_true(st_allowance_read(al, "team", "", rows));
    assert_int_equal(rows[ST_AL_PENDING].used, 18); /* one has started */
    restart(w);
    al = st_control_allowance(w->ctl);
    st_allowance_set(al, "team", &limits);
    assert_true(st_allowance_read(al, "team", "", rows));
    assert_int_equal(rows[ST_AL_PENDING].used, 18);
    assert_int_equal(rows[ST_AL_PIECES].used, 18);
    assert_ok(submit(w, NULL, "{}", &id, &err));
    assert_fails(submit(w, NULL, "{}", &id, &err), ST_EALLOWANCE, "19 of 19");
    for (int i = 0; i < 19; i++) {
        st_cmd_job cancel = {.who = owner, .id = items[i].id};

        st_cmd_job_cancel(&cancel);
        assert_ok(do_cmd(w, &cancel.cmd, &err));
    }
    assert_true(st_allowance_read(al, "team", "", rows));
    assert_int_equal(rows[ST_AL_PENDING].used, 0);
    assert_int_equal(rows[ST_AL_PENDING_BYTES].used, 0);
    assert_int_equal(rows[ST_AL_PIECES].used, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(ids_go_there_and_back),
        TEST(tokens_that_open_nothing_are_alike),
        TEST(a_key_gives_one_job),
        TEST(a_failing_store_is_waited_for),
        TEST(who_comes_back_too_late_stays_down),
        TEST(two_changes_of_an_account_together),
        TEST(a_log_that_does_not_fit_is_refused),
        TEST(late_reports_are_ignored),
        TEST(what_was_used_is_in_the_row),
        TEST(pieces_share_a_document),
        TEST(a_batch_goes_on),
        TEST(waiting_jobs_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
