/*
 * Figures over time: what was held, by whom and for how long, to the millisecond; wider buckets; restarts, pauses, a clock
 * that goes back, a store that fails; what is too old goes.
 */
#include <string.h>

#include "control/series.h"
#include "control/state.h"
#include "control/test/money.h"

#define M    INT64_C(60000)
#define TEAM 1 /* the number of the account */

static const st_series_options options = {.step_ms = M, .keep_ms = {2 * DAY, 30 * DAY, 730 * DAY}};

/* Jobs start in the turn in which they come, however slow the machine is. */
static int at_noon(void **state)
{
    st_err err = {0};
    world *w;

    begin_at(state, NOON);
    w = *state;
    st_control_free(w->ctl);
    w->pass_long_us = H * 1000;
    assert_ok(open_control(w, &err));
    return 0;
}

static st_gatherer *gatherer(world *w, const st_series_options *o)
{
    st_gatherer *g;
    st_err err = {0};

    assert_ok(st_gatherer_new(w->ctl, o, &g, &err));
    assert_ok(st_gatherer_look(g, &err));
    return g;
}

/* Looks every ten seconds. */
static void watch(world *w, st_gatherer *g, int64_t ms)
{
    st_err err = {0};

    for (; ms > 0; ms -= 10 * S) {
        let_pass(w, ST_MIN(ms, 10 * S));
        assert_ok(st_gatherer_look(g, &err));
    }
}

static int add(void *ctx, const st_series_blob *blob, st_err *err)
{
    st_series_set *all = ctx, set = {0};

    assert_int_equal(
        st_series_decode((st_series_kind)blob->kind, blob->data.p, blob->data.n, &set, err), 0);
    st_series_merge(all, &set);
    st_series_set_done(&set);
    return 0;
}

/* The sum over all buckets of a width that began in a span; has 0: there is none. */
static st_series_row sum(world *w, int64_t width, st_series_kind kind, uint64_t id, int64_t from,
                         int64_t to)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};
    const st_series_blob of = {.width_ms = width, .kind = kind, .part = st_series_part(kind, id)};
    const st_series_row *row;
    st_err err = {0};

    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_series_read(reader, &of, from, to, add, &set, &err));
    row = st_series_find(&set, id);
    return row ? *row : (st_series_row){0};
}

static st_series_row ever(world *w, int64_t width, st_series_kind kind, uint64_t id)
{
    return sum(w, width, kind, id, 0, INT64_MAX);
}

/* One GPU for 95 s, looked at every 10: the looks stand for the time before them. */
static void what_was_held(void **state)
{
    world *w = *state;
    st_gatherer *g;
    st_series_row team, job, gpu, all, node;
    uint64_t id, waits;
    st_err err = {0};

    make_fleet(w);
    publish(w, PRICES);
    let_pass(w, NOON + M - w->now);
    g = gatherer(w, &options);
    id = start_job(w, "{}");
    watch(w, g, 90 * S);
    end_job(w, id, 0);
    watch(w, g, 90 * S);
    team = ever(w, M, ST_SERIES_ACCOUNT, TEAM);
    assert_int_equal(team.v[ST_SERIES_WATCHED], 3 * M);
    assert_int_equal(team.v[ST_SERIES_HELD], 1000 * 90 * S);
    assert_int_equal(team.v[ST_SERIES_RUNNING], 90 * S);
    assert_int_equal(team.v[ST_SERIES_SHARE], 125000 * 90 * S); /* one of eight */
    assert_true(team.v[ST_SERIES_SPENT] >= 90 * 833);
    assert_false(team.has >> ST_SERIES_BUSY & 1); /* nobody measured: not 0 */
    all = ever(w, M, ST_SERIES_ACCOUNT, ST_ROOT);
    assert_int_equal(all.v[ST_SERIES_HELD], team.v[ST_SERIES_HELD]);
    assert_int_equal(all.v[ST_SERIES_CAPACITY], 8000 * 3 * M);
    job = ever(w, M, ST_SERIES_JOB, id);
    assert_int_equal(job.v[ST_SERIES_WATCHED], 90 * S);
    node = ever(w, M, ST_SERIES_NODE, 0);
    assert_int_equal(node.v[ST_SERIES_HELD], 1000 * 90 * S);
    assert_int_equal(node.v[ST_SERIES_AWAY], 0);
    gpu = (st_series_row){0};
    for (int d = 0; d < 8; d++) {
        st_series_row one = ever(w, M, ST_SERIES_GPU, ST_SERIES_GPU_ID(0, d));

        st_series_add(&gpu, &one);
    }
    assert_int_equal(gpu.v[ST_SERIES_HELD], 1000 * 90 * S);
    /* The first minute alone. */
    assert_int_equal(sum(w, M, ST_SERIES_ACCOUNT, TEAM, NOON + M, NOON + 2 * M).v[ST_SERIES_HELD],
                     1000 * M);
    /* Those who wait, and what they ask for. */
    for (int i = 0; i < 8; i++)
        start_job(w, "{}");
    waits = start_job(w, "{}");
    watch(w, g, M);
    team = sum(w, M, ST_SERIES_ACCOUNT, TEAM, NOON + 4 * M, NOON + 5 * M);
    assert_int_equal(team.v[ST_SERIES_WAITING], M);
    assert_int_equal(team.v[ST_SERIES_WANTED], 1000 * M);
    assert_int_equal(ever(w, M, ST_SERIES_JOB, waits).has, 0);
    all = sum(w, M, ST_SERIES_ACCOUNT, ST_ROOT, NOON + 4 * M, NOON + 5 * M);
    assert_int_equal(all.v[ST_SERIES_WAITING], M);
    assert_int_equal(all.v[ST_SERIES_RUNNING], 8 * M);
    assert_ok(st_gatherer_flush(g, &err));
    st_gatherer_free(g);
}

/* Sums of wide buckets are those of the narrow ones in them, for everybody. */
static void wide_is_the_sum_of_narrow(void **state)
{
    world *w = *state;
    st_gatherer *g;
    uint64_t id = 0;

    make_fleet(w);
    let_pass(w, NOON + H - w->now);
    g = gatherer(w, &options);
    for (int i = 0; i < 65; i++) {
        if (i % 7 == 3)
            id = start_job(w, "{}");
        if (i % 7 == 6)
            end_job(w, id, 0);
        watch(w, g, M);
    }
    for (int kind = 0; kind < ST_SERIES_KINDS; kind++)
        for (uint64_t i = 0; i < 16; i++) {
            st_series_row narrow = sum(w, M, (st_series_kind)kind, i, NOON + H, NOON + 2 * H);
            st_series_row ten = sum(w, 10 * M, (st_series_kind)kind, i, NOON + H, NOON + 2 * H);
            st_series_row hour = sum(w, H, (st_series_kind)kind, i, NOON + H, NOON + 2 * H);

            assert_memory_equal(narrow.v, ten.v, sizeof narrow.v);
            assert_memory_equal(narrow.v, hour.v, sizeof narrow.v);
            assert_int_equal(narrow.has, hour.has);
        }
    assert_int_equal(
        sum(w, H, ST_SERIES_ACCOUNT, TEAM, NOON + H, NOON + 2 * H).v[ST_SERIES_WATCHED], H);
    /* An hour that is not over has no bucket yet. */
    assert_int_equal(sum(w, H, ST_SERIES_ACCOUNT, TEAM, NOON + 2 * H, NOON + 4 * H).has, 0);
    st_gatherer_free(g);
}

static void a_restart_loses_only_its_own_time(void **state)
{
    world *w = *state;
    st_gatherer *g;
    st_series_row team;
    st_err err = {0};

    make_fleet(w);
    let_pass(w, NOON + M - w->now);
    start_job(w, "{}");
    g = gatherer(w, &options);
    watch(w, g, 30 * S);
    assert_ok(st_gatherer_flush(g, &err));
    st_gatherer_free(g);
    restart(w);
    let_pass(w, 5 * S);
    g = gatherer(w, &options);
    watch(w, g, 30 * S); /* over the end of the minute */
    team = sum(w, M, ST_SERIES_ACCOUNT, TEAM, NOON + M, NOON + 2 * M);
    assert_int_equal(team.v[ST_SERIES_WATCHED], 55 * S);
    assert_int_equal(team.v[ST_SERIES_HELD], 1000 * 55 * S);
    watch(w, g, 10 * M);
    st_gatherer_free(g);
    /* Ten minutes that were begun before it are whole. */
    assert_int_equal(sum(w, 10 * M, ST_SERIES_ACCOUNT, TEAM, NOON, NOON + H).v[ST_SERIES_WATCHED],
                     9 * M - 5 * S);
}

/* Nobody looked for an hour: that is a gap, and no zeros. The wall clock going back is no time at all. */
/* Ten hours of minutes that nobody has added up, in a store that keeps them for no time at all. */
static int fill_minutes(st_tx *tx, void *ctx, st_err *err)
{
    ST_CLEANUP(st_series_set_done) st_series_set set = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf data = {0};
    st_series_row row = {.id = ST_ROOT};
    int r = st_tx_open(tx, err);

    st_series_put(&row, ST_SERIES_WATCHED, M);
    st_vec_push(&set.rows, row);
    st_series_encode(ST_SERIES_ACCOUNT, &set, &data);
    for (int i = 0; r == 0 && i < 600; i++)
        r = st_store_series_put(tx->ctl->store,
                                &(st_series_blob){.width_ms = M,
                                                  .at_ms = *(int64_t *)ctx + i * M,
                                                  .data = {data.s, data.n}},
                                err);
    return r;
}

static void what_is_old_is_added_up_before_it_goes(void **state)
{
    world *w = *state;
    const st_series_options none = {.step_ms = M, .keep_ms = {0, 0, 730 * DAY}};
    int64_t from = NOON;
    st_gatherer *g;
    st_err err = {0};

    make_fleet(w);
    assert_ok(in_loop(w, fill_minutes, &from, &err));
    let_pass(w, NOON + 11 * H - w->now);
    g = gatherer(w, &none);
    watch(w, g, H + 10 * M);
    st_gatherer_free(g);
    assert_int_equal(
        sum(w, H, ST_SERIES_ACCOUNT, ST_ROOT, from, from + 10 * H).v[ST_SERIES_WATCHED], 10 * H);
    assert_true(sum(w, M, ST_SERIES_ACCOUNT, ST_ROOT, 0, w->now - H).v[ST_SERIES_WATCHED] < 10 * H);
}

static void pauses_and_a_clock_that_goes_back(void **state)
{
    world *w = *state;
    st_gatherer *g;
    st_err err = {0};

    make_fleet(w);
    let_pass(w, NOON + M - w->now);
    start_job(w, "{}");
    g = gatherer(w, &options);
    watch(w, g, 90 * S);
    let_pass(w, H);
    watch(w, g, 3 * M);
    assert_int_equal(sum(w, M, ST_SERIES_ACCOUNT, TEAM, NOON + 3 * M, NOON + H).has, 0);
    assert_in_range(ever(w, M, ST_SERIES_ACCOUNT, TEAM).v[ST_SERIES_WATCHED], 3 * M, 5 * M);

    int64_t before = ever(w, M, ST_SERIES_ACCOUNT, TEAM).v[ST_SERIES_WATCHED];
    let_pass(w, -30 * S);
    for (int i = 0; i < 3; i++) {
        assert_ok(st_gatherer_look(g, &err));
        let_pass(w, 10 * S);
    }
    watch(w, g, 2 * M);
    assert_in_range(ever(w, M, ST_SERIES_ACCOUNT, TEAM).v[ST_SERIES_WATCHED], before + M,
                    before + 3 * M);
    for (int64_t at = NOON; at < w->now + H; at += M)
        assert_true(sum(w, M, ST_SERIES_ACCOUNT, TEAM, at, at + M).v[ST_SERIES_WATCHED] <= M);
    st_gatherer_free(g);
}

static void what_is_too_old_goes(void **state)
{
    world *w = *state;
    const st_series_options few = {.step_ms = M, .keep_ms = {20 * M, H, 3 * H}};
    const st_series_options other = {.step_ms = 30 * S, .keep_ms = {20 * M, H, 3 * H}};
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_gatherer *g;
    int64_t next;
    st_err err = {0};

    make_fleet(w);
    let_pass(w, NOON + H - w->now);
    start_job(w, "{}");
    g = gatherer(w, &few);
    for (int i = 0; i < 5 * 60 * 2; i++) {
        let_pass(w, 30 * S);
        assert_ok(st_gatherer_look(g, &err));
    }
    assert_int_equal(sum(w, M, ST_SERIES_ACCOUNT, TEAM, 0, w->now - 40 * M).has, 0);
    assert_int_equal(sum(w, M, ST_SERIES_GPU, 0, 0, w->now - 40 * M).has, 0);
    assert_int_equal(sum(w, 10 * M, ST_SERIES_ACCOUNT, TEAM, 0, w->now - 130 * M).has, 0);
    assert_int_equal(
        sum(w, M, ST_SERIES_ACCOUNT, TEAM, w->now - 20 * M, w->now).v[ST_SERIES_WATCHED], 20 * M);
    assert_int_equal(
        sum(w, H, ST_SERIES_ACCOUNT, TEAM, w->now - 3 * H, w->now).v[ST_SERIES_WATCHED], 3 * H);
    st_gatherer_free(g);
    /* Another step: buckets of the one before go in time. */
    g = gatherer(w, &other);
    for (int i = 0; i < 6 * 60 * 4; i++) {
        let_pass(w, 15 * S);
        assert_ok(st_gatherer_look(g, &err));
    }
    st_gatherer_free(g);
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_series_next_width(reader, 30 * S, &next, &err));
    assert_int_equal(next, 5 * M); /* and none of a minute */
}

/* What the store did not take is written when it takes it again. */
static void a_store_that_fails(void **state)
{
    world *w = *state;
    st_gatherer *g;
    st_err err = {0};
    int failed = 0;

    make_fleet(w);
    let_pass(w, NOON + M - w->now);
    start_job(w, "{}");
    g = gatherer(w, &options);
    watch(w, g, 50 * S);
    faulty_arm(w->vfs, FAULT_WRITE_FULL, 1);
    for (int i = 0; i < 2; i++) {
        let_pass(w, 10 * S);
        failed += st_gatherer_look(g, &err) < 0;
    }
    assert_int_equal(failed, 1);
    faulty_arm(w->vfs, FAULT_NONE, 0);
    let_pass(w, 10 * S);
    assert_ok(st_gatherer_look(g, &err));
    let_pass(w, 30 * S); /* the loop tries again by then */
    nudge(w);
    watch(w, g, M);
    assert_int_equal(
        sum(w, M, ST_SERIES_ACCOUNT, TEAM, NOON + M, NOON + 2 * M).v[ST_SERIES_WATCHED], M);
    st_gatherer_free(g);
}

/* ---- what engines measured -------------------------------------------------------------------------- */

typedef struct meter {
    st_engine base;
    st_engine_ops ops;
    st_measures next;
} meter;

static void on_measures(st_engine *engine, st_measures *ret)
{
    meter *m = (meter *)engine;

    for (size_t i = 0; i < m->next.list.n; i++)
        st_vec_push(&ret->list, m->next.list.v[i]);
    st_vec_clear(&m->next.list);
}

static void on_order(st_engine *engine, const st_engine_order *order)
{
    (void)engine;
    (void)order;
}

static int64_t serial_of(world *w)
{
    return st_directory_serial(st_control_directory(w->ctl), "team");
}

static void what_was_measured(void **state)
{
    world *w = *state;
    meter m = {.ops = {.name = "meter", .order = on_order, .measures = on_measures}};
    st_measure said = {.devs = 0x0b}; /* GPUs 0, 1 and 3 */
    st_gatherer *g;
    st_series_row row, gpus = {0};
    st_err err = {0};

    make_fleet(w);
    st_control_free(w->ctl);
    m.base.ops = &m.ops;
    w->engine = &m.base;
    assert_ok(open_control(w, &err));
    let_pass(w, NOON + M - w->now);
    said.job = start_job(w, "{}");
    said.tenant = serial_of(w);
    said.used.has = 1u << ST_USED_SEEN | 1u << ST_USED_BUSY | 1u << ST_USED_ENERGY;
    said.used.v[ST_USED_SEEN] = 100000;
    said.used.v[ST_USED_BUSY] = 70001;
    said.used.v[ST_USED_ENERGY] = 35000000;
    g = gatherer(w, &options);
    st_vec_push(&m.next.list, said);
    st_vec_push(&m.next.list,
                (st_measure){.node = 77, .devs = 1, .used = said.used}); /* none of ours */
    watch(w, g, M);
    row = ever(w, M, ST_SERIES_ACCOUNT, TEAM);
    assert_int_equal(row.v[ST_SERIES_SEEN], 100000);
    assert_int_equal(row.v[ST_SERIES_BUSY], 70001);
    assert_int_equal(row.v[ST_SERIES_ENERGY], 35000000);
    assert_false(row.has >> ST_SERIES_MEMORY & 1);
    assert_int_equal(ever(w, M, ST_SERIES_ACCOUNT, ST_ROOT).v[ST_SERIES_BUSY], 70001);
    assert_int_equal(ever(w, M, ST_SERIES_JOB, said.job).v[ST_SERIES_BUSY], 70000);
    /* Of devices tenths of a second; what is below comes with the next minute. */
    st_vec_push(&m.next.list, said);
    watch(w, g, M);
    for (int d = 0; d < 8; d++) {
        row = ever(w, M, ST_SERIES_GPU, ST_SERIES_GPU_ID(0, d));
        assert_int_equal(row.has >> ST_SERIES_BUSY & 1, 0x0b >> d & 1);
        assert_in_range(row.v[ST_SERIES_BUSY], 0x0b >> d & 1 ? 46500 : 0, 46700);
        st_series_add(&gpus, &row);
    }
    assert_in_range(gpus.v[ST_SERIES_BUSY], 140002 - 3 * 100, 140002);
    st_gatherer_free(g);
    st_control_free(w->ctl);
    w->ctl = NULL;
    w->engine = NULL;
    st_vec_free(&m.next.list);
}

#define T(name) cmocka_unit_test_setup_teardown(name, at_noon, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_was_held),
        T(wide_is_the_sum_of_narrow),
        T(a_restart_loses_only_its_own_time),
        T(what_is_old_is_added_up_before_it_goes),
        T(pauses_and_a_clock_that_goes_back),
        T(what_is_too_old_goes),
        T(a_store_that_fails),
        T(what_was_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
