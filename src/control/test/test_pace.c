/*
 * Answers that do not wait for a pass (control/pace.c): what was answered starts all the same, the log leads to the same
 * state, and neither a store that fails nor a restart between the answer and its pass loses either.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/testing.h"
#include "billing/billing.h"
#include "control/control.h"
#include "control/follower.h"
#include "control/test/money.h"

static const char one[] = "{\"account\":\"team\",\"user\":\"ann\",\"gpus\":1,\"limit\":\"1h\"}";

static int begin_long(void **state)
{
    begin(state);
    world *w = *state;

    w->pass_long_us = -1;
    restart(w);
    make_fleet(w);
    return 0;
}

/* ---- what is owed --------------------------------------------------------------------------------- */

static int look(st_tx *tx, void *ctx, st_err *err)
{
    (void)err;
    *(bool *)ctx = tx->ctl->pace.owed;
    return 0;
}

static void wait_for_pass(world *w)
{
    bool owed = true;
    st_err err = {0};

    while (owed)
        assert_ok(in_loop(w, look, &owed, &err));
}

typedef struct running {
    uint64_t id;
    bool runs;
} running;

static int is_running(st_tx *tx, void *ctx, st_err *err)
{
    running *r = ctx;
    const st_job *job = st_core_job(tx->ctl->core, r->id);

    (void)err;
    r->runs = job && job->state == ST_JOB_RUNNING;
    return 0;
}

static bool runs(world *w, uint64_t id)
{
    running r = {.id = id};
    st_err err = {0};

    assert_ok(in_loop(w, is_running, &r, &err));
    return r.runs;
}

/* ---- what the log says ------------------------------------------------------------------------------ */

typedef struct rows {
    int later, pass;
} rows;

static int count_row(void *ctx, const st_log_row *row, st_err *ret)
{
    ST_CLEANUP(st_arena_freep) st_arena *arena = st_arena_new();
    rows *r = ctx;
    st_notes notes = {0};
    size_t at = 0;
    st_event ev;
    st_err err = {0};

    (void)ret;
    while (at < row->data.n && !st_notes_here(row->data.p, row->data.n, at))
        assert_ok(st_event_decode(row->data.p, row->data.n, &at, arena, &ev, &err));
    if (at < row->data.n)
        assert_ok(st_notes_read(row->data.p, row->data.n, at, &notes, &err));
    for (size_t i = 0; i < notes.n; i++) {
        r->later += notes.v[i].kind == ST_NOTE_LATER;
        r->pass += notes.v[i].kind == ST_NOTE_PASS;
    }
    st_vec_free(&notes);
    return 0;
}

static rows rows_of(world *w)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    rows r = {0};
    st_err err = {0};

    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_log_read(reader, 1, count_row, &r, &err));
    return r;
}

static void test_answered_without_a_pass(void **state)
{
    world *w = *state;
    rows before, after;
    uint64_t id;

    wait_for_pass(w);
    before = rows_of(w);
    id = start_job(w, one);
    wait_for_pass(w);
    after = rows_of(w);
    assert_int_equal(after.later, before.later + 1);
    assert_int_equal(after.pass, before.pass + 1);
    assert_true(runs(w, id));
}

/* Where passes are short, the answer tells what came of it. */
static void test_short_passes_are_not_put_off(void **state)
{
    world *w = *state;
    rows r;

    w->pass_long_us = INT64_MAX;
    restart(w);
    make_fleet(w);
    start_job(w, one);
    r = rows_of(w);
    assert_int_equal(r.later, 0);
    assert_int_equal(r.pass, 0);
}

/* ---- the follower ------------------------------------------------------------------------------------ */

static int hash_of(st_tx *tx, void *ctx, st_err *err)
{
    (void)err;
    *(uint64_t *)ctx = st_core_hash(tx->ctl->core);
    return 0;
}

static int read_hash(void *ctx, st_tx *tx, st_err *err)
{
    return hash_of(tx, ctx, err);
}

static void expect_followed(world *w)
{
    uint64_t writer = 0, follower = 1;
    st_err err = {0};

    wait_for_pass(w);
    assert_ok(in_loop(w, hash_of, &writer, &err));
    assert_ok(st_control_read(w->ctl, ST_READ_SHARED, 0, read_hash, &follower, NULL, &err));
    assert_true(writer == follower);
}

static int64_t seeds(world *w)
{
    st_follower_stats stats;

    st_control_follower_stats(w->ctl, &stats);
    return (int64_t)stats.seeds;
}

static void test_followed(void **state)
{
    world *w = *state;
    uint64_t ids[12];

    expect_followed(w);
    for (int i = 0; i < 12; i++) { /* eight start, four wait */
        ids[i] = start_job(w, one);
        let_pass(w, 700);
        if (i % 3 == 0)
            expect_followed(w);
    }
    for (int i = 0; i < 12; i += 2) {
        wait_for_pass(w); /* or it has not begun, and cannot end */
        end_job(w, ids[i], 0);
        let_pass(w, 1300);
        expect_followed(w);
    }
    let_pass(w, INT64_C(3) * 86400000); /* cuts */
    nudge(w);
    expect_followed(w);
    assert_int_equal(seeds(w), 0); /* it never parted */
}

static void test_played_again(void **state)
{
    world *w = *state;
    uint64_t before = 0, after = 1;
    st_err err = {0};

    w->snap_rows = 1 << 20;
    restart(w);
    for (int i = 0; i < 10; i++) {
        start_job(w, one);
        let_pass(w, 50);
    }
    wait_for_pass(w);
    assert_ok(in_loop(w, hash_of, &before, &err));
    faulty_arm(w->vfs, FAULT_WRITE_FULL, 1); /* no snapshot at the end: the rows are all there is */
    st_control_stop(w->ctl);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    restart(w);
    assert_ok(in_loop(w, hash_of, &after, &err));
    assert_true(before == after);
    expect_followed(w);
}

/* ---- between the answer and its pass ------------------------------------------------------------------- */

typedef struct breaker {
    st_cmd_submit submit;
    world *w;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
} breaker;

/* In the loop, behind the commit: the next one fails. */
static void break_store(st_cmd *cmd, const st_err *err)
{
    breaker *b = (breaker *)cmd;

    assert_null(err);
    faulty_arm(b->w->vfs, FAULT_WRITE_FULL, 1);
    pthread_mutex_lock(&b->lock);
    b->done = true;
    pthread_cond_signal(&b->cond);
    pthread_mutex_unlock(&b->lock);
}

/* A job that was taken, and the pass for it could not be written. */
static uint64_t submit_and_break(world *w)
{
    st_submit_item item = {.spec = {.name = "train",
                                    .account = "team",
                                    .user = "ann",
                                    .pool = -1,
                                    .tasks = 1,
                                    .limit_ms = 3600000,
                                    .shape = {.gpus = 1, .types = 1, .cpu_m = 1000}},
                           .doc = one};
    breaker b = {.submit = {.who = owner, .items = &item, .n = 1},
                 .w = w,
                 .lock = PTHREAD_MUTEX_INITIALIZER,
                 .cond = PTHREAD_COND_INITIALIZER};
    st_err why;

    st_cmd_submit_init(&b.submit);
    b.submit.cmd.done = break_store;
    assert_true(st_control_post(w->ctl, &b.submit.cmd));
    pthread_mutex_lock(&b.lock);
    while (!b.done)
        pthread_cond_wait(&b.cond, &b.lock);
    pthread_mutex_unlock(&b.lock);
    while (st_control_ready(w->ctl, &why)) /* until the pass has failed */
        sched_yield();
    return item.id;
}

static void test_store_fails_between(void **state)
{
    world *w = *state;
    st_err why;
    uint64_t id;

    wait_for_pass(w);
    id = submit_and_break(w);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 60000);
    while (!st_control_ready(w->ctl, &why))
        sched_yield();
    wait_for_pass(w);
    assert_true(runs(w, id));
    expect_followed(w);
}

static void test_restart_between(void **state)
{
    world *w = *state;
    uint64_t id;

    wait_for_pass(w);
    id = submit_and_break(w);
    st_control_stop(w->ctl);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    restart(w);
    wait_for_pass(w);
    assert_true(runs(w, id));
    expect_followed(w);
    start_job(w, one);
    expect_followed(w);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static int do_event(st_tx *tx, st_cmd *cmd, st_err *err)
{
    const st_event timer = {.kind = ST_EV_TIMER};

    (void)cmd;
    return st_tx_apply(tx, &timer, err);
}

static void forget_cmd(st_cmd *cmd, const st_err *err)
{
    (void)err;
    free(cmd);
}

/* What is owed is paid before the end, and the end's snapshot knows it: the loop is told to stop with commands waiting. */
static void test_stop_pays(void **state)
{
    world *w = *state;
    uint64_t ids[5];

    for (int i = 0; i < 5; i++)
        ids[i] = start_job(w, one);
    for (int i = 0; i < 2000; i++) {
        st_cmd *cmd = calloc(1, sizeof *cmd);

        *cmd = (st_cmd){.run = do_event, .done = forget_cmd};
        assert_true(st_control_post(w->ctl, cmd));
    }
    st_control_stop(w->ctl);
    assert_false(w->ctl->pace.owed);
    restart(w);
    wait_for_pass(w);
    for (int i = 0; i < 5; i++)
        assert_true(runs(w, ids[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answered_without_a_pass, begin_long, end),
        cmocka_unit_test_setup_teardown(test_short_passes_are_not_put_off, begin, end),
        cmocka_unit_test_setup_teardown(test_followed, begin_long, end),
        cmocka_unit_test_setup_teardown(test_played_again, begin_long, end),
        cmocka_unit_test_setup_teardown(test_store_fails_between, begin_long, end),
        cmocka_unit_test_setup_teardown(test_restart_between, begin_long, end),
        cmocka_unit_test_setup_teardown(test_stop_pays, begin_long, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
