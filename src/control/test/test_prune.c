/*
 * Nothing grows for ever: jobs that ended long ago are forgotten while stintd runs, and so is the log behind the snapshots that
 * are kept; what was billed is not, and no number of a job is given twice.
 */
#include <string.h>

#include "control/test/money.h"

static int begin_pruning(void **state)
{
    world *w;
    st_err err = {0};

    begin(state);
    w = *state;
    st_control_free(w->ctl);
    w->keep_jobs_ms = 10 * DAY;
    w->keep_log_ms = 3 * DAY;
    w->snap_rows = 16;
    assert_ok(open_control(w, &err));
    return 0;
}

static int count_row(void *ctx, const st_job_row *row, st_err *err)
{
    (void)row, (void)err;
    ++*(int *)ctx;
    return 0;
}

static int jobs_kept(world *w)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    st_err err = {0};
    int n = 0;

    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(st_store_jobs_list(reader, &(st_job_filter){0}, count_row, &n, &err));
    return n;
}

static int first_log(void *ctx, const st_log_row *row, st_err *err)
{
    (void)err;
    *(int64_t *)ctx = row->at_ms;
    return 1;
}

static void a_day(world *w, uint64_t *ret_last)
{
    uint64_t id[4];

    for (int i = 0; i < 4; i++)
        id[i] = start_job(w, "{}");
    let_pass(w, 60000);
    for (int i = 0; i < 4; i++)
        end_job(w, id[i], 0);
    for (int hour = 0; hour < 24; hour++) {
        let_pass(w, DAY / 24);
        nudge(w);
    }
    *ret_last = id[3];
}

static void what_is_old_goes(void **state)
{
    world *w = *state;
    st_control_stats stats;
    uint64_t last = 0, next = 0;
    int64_t entries, first = 0;
    st_store *store;
    st_err err = {0};

    make_fleet(w);
    for (int day = 0; day < 30; day++)
        a_day(w, &last);
    assert_in_range(jobs_kept(w), 9 * 4, 10 * 4);
    st_control_stats_get(w->ctl, &stats);
    assert_in_range(stats.pruned_jobs, 20 * 4, 21 * 4);
    assert_true(stats.pruned_rows > 100);
    assert_true(stats.store_bytes > 0);
    entries = stats.entries;
    assert_true(entries > 30 * 4); /* every job was billed, and still is */

    /* The log goes back as far as it was asked to, and not much further. */
    {
        ST_CLEANUP(st_store_closep) st_store *reader = NULL;

        assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
        assert_true(st_store_log_read(reader, 1, first_log, &first, &err) >= 0);
        assert_true(first > 0 && first <= w->now - 3 * DAY + DAY / 12);
        assert_true(first > w->now - 6 * DAY);
    }

    /* Nothing happens for a long time: the newest job stays, so that numbers go on. */
    for (int day = 0; day < 20; day++) {
        let_pass(w, DAY);
        nudge(w);
        nudge(w);
    }
    assert_int_equal(jobs_kept(w), 1);
    restart(w);
    next = start_job(w, "{}");
    assert_true(next > last);
    st_control_stop(w->ctl);
    store = st_control_store(w->ctl);
    assert_ok(st_store_book_last(store, &entries, &err));
    assert_true(entries >= stats.entries);
}

/* Without a retention nothing goes but what no start needs. */
static void nothing_goes_unasked(void **state)
{
    world *w = *state;
    uint64_t last;

    make_fleet(w);
    for (int day = 0; day < 20; day++)
        a_day(w, &last);
    assert_int_equal(jobs_kept(w), 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_old_goes, begin_pruning, end),
        cmocka_unit_test_setup_teardown(nothing_goes_unasked, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
