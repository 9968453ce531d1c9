/*
 * What must be so at the commit, with a driver that knows at once how many rows a statement has changed and with one that
 * sends statements in a batch and knows only then. Nothing may be kept in either case.
 */
#include <string.h>

#include "store/impl.h"
#include "store/test/scratch.h"

/* SQLite, but what was changed is told with the commit. There is one store at a time. */
static bool others; /* a statement changed another number of rows than it had to */

static int late_write(st_stmt *stmt, const st_val *params, size_t n, int64_t expect,
                      int64_t *ret_changed, st_err *err)
{
    int64_t changed = 0;
    int r = st_sqlite_driver.write(stmt, params, n, expect, &changed, err);

    others = others || (r == 0 && changed != expect);
    *ret_changed = ST_STORE_LATER;
    return r;
}

static int late_begin(st_db *db, bool write, st_err *err)
{
    others = false;
    return st_sqlite_driver.begin(db, write, err);
}

static int late_commit(st_db *db, st_err *err)
{
    if (!others)
        return st_sqlite_driver.commit(db, err);
    st_sqlite_driver.rollback(db);
    return st_fail(err, ST_ESTATE, "a batch changed other rows than it must");
}

typedef struct world {
    scratch s;
    st_store *store;
    st_arena *a;
} world;

static int open_it(world *w, const st_driver *driver)
{
    static const st_store_options usual = {0};
    st_err err = {0};

    scratch_init(&w->s);
    w->a = st_arena_new();
    assert_ok(st_store_open_with(driver, w->s.path, &usual, &w->store, &err));
    return 0;
}

/* Does something in a transaction with a change that is fine; what the step says, or the commit. */
typedef int (*step_fn)(world *w, st_err *err);

static int try_step(world *w, step_fn step, const char *mark, st_err *err)
{
    int r;

    assert_int_equal(st_store_begin(w->store, err), 0);
    assert_int_equal(st_store_meta_put(w->store, "mark", mark, err), 0);
    r = step(w, err);
    return st_store_end(w->store, r, err);
}

static int job_new(world *w, st_err *err)
{
    const st_job_row row = a_job(1, "team");

    return st_store_job_insert(w->store, &row, err);
}

static int job_none(world *w, st_err *err)
{
    const st_job_row row = a_job(99, "team");

    return st_store_job_update(w->store, &row, err);
}

static int log_next(world *w, st_err *err)
{
    const st_log_row row = a_log(1);

    return st_store_log_append(w->store, &row, err);
}

static int log_gap(world *w, st_err *err)
{
    const st_log_row row = a_log(7);

    return st_store_log_append(w->store, &row, err);
}

static int document_first(world *w, st_err *err)
{
    const st_document_row row = {.kind = "k", .name = "n", .doc = "{}"};

    return st_store_document_put(w->store, &row, err);
}

static int document_other(world *w, st_err *err)
{
    const st_document_row row = {.kind = "k", .name = "n", .version = 5, .doc = "{}"};

    return st_store_document_put(w->store, &row, err);
}

static int document_gone(world *w, st_err *err)
{
    return st_store_document_delete(w->store, "k", "n", 9, err);
}

static int token_none(world *w, st_err *err)
{
    return st_store_token_revoke(w->store, 5, 1, err);
}

static int idem_none(world *w, st_err *err)
{
    return st_store_idem_more(w->store, "o", "k", "answer", err);
}

static int epoch_first(world *w, st_err *err)
{
    return st_store_meta_swap(w->store, "epoch", NULL, "1", err);
}

static int epoch_next(world *w, st_err *err)
{
    return st_store_meta_swap(w->store, "epoch", "1", "2", err);
}

/* Each is done twice; what may be done once fails then, and what may not at all fails both times. */
static void play(world *w)
{
    static const struct {
        step_fn step;
        bool once;
    } rows[] = {{job_new, true},        {job_none, false},      {log_next, true},
                {log_gap, false},       {document_first, true}, {document_other, false},
                {document_gone, false}, {token_none, false},    {idem_none, false},
                {epoch_first, true},    {epoch_next, true}};
    const char *was;
    st_err err = {0};

    assert_ok(st_store_begin(w->store, &err));
    assert_ok(st_store_end(w->store, st_store_meta_put(w->store, "mark", "start", &err), &err));
    for (size_t i = 0; i < 2 * ST_ARRAY_LEN(rows); i++) {
        bool good = rows[i / 2].once && i % 2 == 0;
        char mark[16];
        int r;

        snprintf(mark, sizeof mark, "m%zu", i);
        r = try_step(w, rows[i / 2].step, mark, &err);
        if (good != (r == 0))
            fail_msg("step %zu, time %zu: %d %s", i / 2, i % 2, r, err.msg);
        assert_true(good || r == -ST_ESTATE || r == -ST_EEXIST || r == -ST_ENOENT);
        assert_ok(st_store_meta_get(w->store, "mark", w->a, &was, &err));
        assert_true(good == (strcmp(was, mark) == 0)); /* with it, or not at all */
    }
    assert_ok(st_store_meta_get(w->store, "epoch", w->a, &was, &err));
    assert_string_equal(was, "2");
}

static void close_it(world *w)
{
    st_arena_free(w->a);
    st_store_close(w->store);
    scratch_done(&w->s);
}

static void known_at_once(void **state)
{
    world w;

    (void)state;
    open_it(&w, &st_sqlite_driver);
    play(&w);
    close_it(&w);
}

static void known_at_the_commit(void **state)
{
    st_driver late = st_sqlite_driver;
    world w;

    (void)state;
    late.write = late_write;
    late.begin = late_begin;
    late.commit = late_commit;
    open_it(&w, &late);
    play(&w);
    close_it(&w);
}

/* Who goes on after a refusal cannot keep the rest by mistake. */
static void a_miss_is_not_committed(void **state)
{
    world w;
    st_err err = {0};
    const char *was;

    (void)state;
    open_it(&w, &st_sqlite_driver);
    assert_ok(st_store_begin(w.store, &err));
    assert_ok(st_store_meta_put(w.store, "mark", "lost", &err));
    assert_fails(job_none(&w, &err), ST_ENOENT, "99");
    assert_fails(st_store_commit(w.store, &err), ST_ESTATE, "nothing of the transaction");
    assert_fails(st_store_meta_get(w.store, "mark", w.a, &was, &err), ST_ENOENT, "mark");
    close_it(&w);
}

static void nothing_is_written_outside(void **state)
{
    world w;
    st_err err = {0};
    const st_audit_row act = an_act("team", "x");

    (void)state;
    open_it(&w, &st_sqlite_driver);
    assert_fails(st_store_meta_put(w.store, "a", "b", &err), ST_EINTERNAL, "outside");
    assert_fails(job_new(&w, &err), ST_EINTERNAL, "outside");
    assert_fails(st_store_audit_append(w.store, &act, NULL, &err), ST_EINTERNAL, "outside");
    assert_fails(st_store_jobs_prune(w.store, 1, 1, NULL, &err), ST_EINTERNAL, "outside");
    assert_ok(st_store_begin(w.store, &err));
    assert_ok(st_store_end(w.store, job_new(&w, &err), &err));
    close_it(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_at_once),
        cmocka_unit_test(known_at_the_commit),
        cmocka_unit_test(a_miss_is_not_committed),
        cmocka_unit_test(nothing_is_written_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
