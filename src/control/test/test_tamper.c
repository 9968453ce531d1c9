/*
 * Somebody changes the books behind stintd's back: any byte of any row and of the file is found. And the comparison of everything that
 * counts, with something wrong and without.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "control/test/money.h"
#include "store/test/tamper.h"

#define CHANGES      1000
#define FILE_CHANGES 300

static int64_t check_now(world *w, st_strbuf *out)
{
    int64_t n = 0;
    st_err err = {0};

    st_strbuf_clear(out);
    assert_ok(st_control_check(st_control_store(w->ctl), NULL, found, out, &n, &err));
    return n;
}

static void run_a_job(world *w, int64_t ms)
{
    uint64_t id = start_job(w, "{}");

    let_pass(w, ms);
    end_job(w, id, 0);
}

/* Accounts, floors, prices, a plan, holds, usage over days and the end of a month; then a stop. */
static int begin_books(void **state)
{
    st_err err = {0};
    world *w;

    begin_at(state, 1793448000 * S); /* 2026-10-31 12:00 */
    w = *state;
    w->limit_ms = DAY;
    make_fleet(w);
    make_account(w, "org", "", "{name: org, guarantee: {gpu: 2}}");
    publish(w, PRICES "cpu: 0.01\n");
    assert_ok(set_plan(w, "account: team\ncap: 500\ndiscount: 10%\n", &err));
    for (int i = 0; i < 3; i++)
        run_a_job(w, DAY / 3);
    return 0;
}

/* ---- one byte ------------------------------------------------------------------------------------- */

static void any_changed_byte_is_found(void **state)
{
    static const struct {
        const char *table, *column;
    } where[] = {{"book", "data"},        {"book", "data"},        {"book", "data"},
                 {"book", "chain"},       {"book", "period"},      {"book", "job"},
                 {"book", "account"},     {"book", "seq"},         {"book", "at_ms"},
                 {"checkpoints", "data"}, {"checkpoints", "at_ms"}};
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    st_rng rng;
    st_store *store;
    int changed = 0;

    st_control_stop(w->ctl);
    store = st_control_store(w->ctl);
    assert_int_equal(check_now(w, &out), 0);
    int64_t last = tamper_number(store, "SELECT MAX(n) FROM book");
    st_rng_seed(&rng, 20261031);
    for (int i = 0; i < CHANGES; i++) {
        size_t k = st_rng_below(&rng, ST_ARRAY_LEN(where));
        tamper_cell c = {.table = where[k].table, .column = where[k].column};

        while (!c.bytes) { /* not every number has a checkpoint */
            c.n = 1 + (int64_t)st_rng_below(&rng, (uint64_t)last);
            tamper_get(store, &c);
        }
        tamper_cell bad = c;
        bad.bytes = st_xmalloc(c.len + 1);
        memcpy(bad.bytes, c.bytes, c.len);
        bad.number ^= INT64_C(1) << st_rng_below(&rng, 40);
        if (c.len > 0)
            bad.bytes[st_rng_below(&rng, c.len)] ^= (unsigned char)(1 + st_rng_below(&rng, 255));
        if ((c.is_number || c.len > 0) && tamper_put(store, &bad)) {
            changed++;
            if (check_now(w, &out) == 0) {
                print_error("%s.%s of row %lld was changed and nothing was found\n", c.table,
                            c.column, (long long)c.n);
                fail();
            }
            assert_true(tamper_put(store, &c));
        }
        free(c.bytes);
        free(bad.bytes);
    }
    assert_int_equal(check_now(w, &out), 0);
    assert_true(changed > CHANGES / 2);
}

/* ---- one byte of the file -------------------------------------------------------------------------- */

/* What `stintd check` does. */
static bool file_is_sound(const world *w)
{
    ST_CLEANUP(st_store_closep) st_store *store = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    const st_store_options options = {.read_only = true};
    int64_t n = 0;
    st_err err = {0};

    return st_store_open(w->place.path, &options, &store, &err) == 0 &&
           st_store_check(store, NULL, 0, found, &out, &n, &err) == 0 &&
           st_control_check(store, NULL, found, &out, &n, &err) == 0 && n == 0;
}

static void change_byte(int fd, off_t at, unsigned char by)
{
    unsigned char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= by;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

/* Not through the database: on its disk. */
static void any_changed_byte_of_the_file_is_found(void **state)
{
    world *w = *state;
    struct stat file;
    st_rng rng;
    int fd, missed = 0;

    st_control_stop(w->ctl);
    st_control_free(w->ctl);
    w->ctl = NULL;
    assert_true(file_is_sound(w));
    fd = open(w->place.path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &file) == 0);
    st_rng_seed(&rng, 20261101);
    for (int i = 0; i < FILE_CHANGES; i++) {
        off_t at = (off_t)st_rng_below(&rng, (uint64_t)file.st_size);
        unsigned char by = (unsigned char)(1 + st_rng_below(&rng, 255));

        change_byte(fd, at, by);
        if (file_is_sound(w)) {
            print_error("byte %lld of %lld was changed and nothing was found\n", (long long)at,
                        (long long)file.st_size);
            missed++;
        }
        change_byte(fd, at, by);
    }
    close(fd);
    assert_true(file_is_sound(w));
    assert_int_equal(missed, 0);
}

static void missing_and_new_rows_are_found(void **state)
{
    static const char *const deeds[] = {
        "DELETE FROM book WHERE n = (SELECT MAX(n) FROM book)",
        "DELETE FROM book WHERE n = 5",
        "DELETE FROM checkpoints; DELETE FROM book WHERE n > 9",
        "UPDATE book SET data = (SELECT b.data FROM book b WHERE b.n = 6) WHERE n = 7",
    };
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    st_control_stop(w->ctl);
    for (size_t i = 0; i < ST_ARRAY_LEN(deeds); i++) {
        st_store *store = st_control_store(w->ctl);

        tamper_exec(store, "SAVEPOINT before");
        tamper_exec(store, deeds[i]);
        assert_true(check_now(w, &out) > 0);
        tamper_exec(store, "ROLLBACK TO before; RELEASE before");
        assert_int_equal(check_now(w, &out), 0);
    }
}

/* ---- comparing ------------------------------------------------------------------------------------- */

typedef struct begin_cmd {
    st_cmd cmd;
    st_reconcile *rec;
} begin_cmd;

static int run_nothing(st_tx *tx, st_cmd *cmd, st_err *err)
{
    (void)tx;
    (void)cmd;
    (void)err;
    return 0;
}

static void publish_begin(st_control *ctl, st_cmd *cmd)
{
    ((begin_cmd *)cmd)->rec = st_reconcile_new(ctl);
}

/* The same is found whether jobs are looked at together or in parts, but where an entry cuts the books short. */
static int64_t reconcile(world *w, st_strbuf *out)
{
    ST_CLEANUP(st_store_closep) st_store *reader = NULL;
    ST_CLEANUP(st_strbuf_done) st_strbuf in_parts = {0};
    int64_t n_parts = -1;
    begin_cmd cmd = {.cmd = {.run = run_nothing, .publish = publish_begin}};
    int64_t n = -1;
    st_err err = {0};

    st_strbuf_clear(out);
    assert_ok(do_cmd(w, &cmd.cmd, &err));
    assert_non_null(cmd.rec);
    assert_ok(st_store_open_reader(st_control_store(w->ctl), &reader, &err));
    assert_ok(
        st_reconcile_run(w->ctl, cmd.rec, reader, ST_RECONCILE_ENTRIES, found, out, &n, &err));
    assert_ok(st_reconcile_run(w->ctl, cmd.rec, reader, 2, found, &in_parts, &n_parts, &err));
    if (strstr(st_strbuf_str(out), "does not follow"))
        assert_non_null(strstr(st_strbuf_str(&in_parts), "does not follow"));
    else
        assert_int_equal(n_parts, n);
    st_reconcile_free(cmd.rec);
    return n;
}

static void what_differs_is_said(void **state)
{
    static const struct {
        const char *deed, *said;
    } rows[] = {
        {"UPDATE jobs SET start_ms = start_ms + 1 WHERE id = 1", "is metered from"},
        {"UPDATE jobs SET end_ms = end_ms - 1 WHERE id = 2", "is metered until"},
        {"UPDATE jobs SET gpu_m = 2000 WHERE id = 3", "has 2 GPUs and is metered with 1"},
        {"UPDATE jobs SET start_ms = -1 WHERE id = 1", "never started"},
        {"UPDATE jobs SET result = '{\"usage\":{\"held_gpu_ms\":99999999}}' WHERE id = 1",
         "agents counted 99999 s of its GPUs and 28800 s were metered"},
        {"UPDATE jobs SET result = '{\"usage\":{\"held_gpu_ms\":1000}}' WHERE id = 1",
         "agents counted only 1 s"},
        {"UPDATE book SET data = REPLACE(data, '\"share\":2', '\"share\":3')",
         "does not follow from those before it"},
    };
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    assert_int_equal(reconcile(w, &out), 0);
    for (size_t i = 0; i < ST_ARRAY_LEN(rows); i++) {
        st_store *store;

        st_control_stop(w->ctl);
        store = st_control_store(w->ctl);
        tamper_exec(store, "CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM "
                           "jobs; CREATE TABLE IF NOT EXISTS kept_book AS "
                           "SELECT * FROM book");
        restart(w);
        nudge(w);
        store = st_control_store(w->ctl);
        tamper_exec(store, rows[i].deed);
        assert_true(reconcile(w, &out) > 0);
        if (!strstr(st_strbuf_str(&out), rows[i].said))
            print_error("%s", st_strbuf_str(&out));
        assert_non_null(strstr(st_strbuf_str(&out), rows[i].said));
        tamper_exec(store, "DELETE FROM jobs; INSERT INTO jobs SELECT * FROM "
                           "kept; UPDATE book SET data = (SELECT k.data FROM "
                           "kept_book k WHERE k.n = book.n)");
        assert_int_equal(reconcile(w, &out), 0);
    }
}

/* Prices change while a job runs, which ends an interval; its end, before that, is heard later. What was metered beyond it is
 * given back, so there is nothing to say. */
static void what_a_correction_gave_back_is_not_said(void **state)
{
    world *w = *state;
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};
    uint64_t id = start_job(w, "{name: late, account: team, user: u, gpus: 1}");

    let_pass(w, 600 * S);
    int64_t ended = w->now;
    let_pass(w, 20 * S);
    publish(w, PRICES "cpu: 0.02\n");
    let_pass(w, 20 * S);
    end_job(w, id, ended);
    int64_t n = reconcile(w, &out);
    if (n > 0)
        print_error("%s", st_strbuf_str(&out));
    assert_int_equal(n, 0);
    tamper_exec(st_control_store(w->ctl), "UPDATE jobs SET end_ms = end_ms + 1 WHERE id = 4");
    assert_int_equal(reconcile(w, &out), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_books, end)
    const struct CMUnitTest tests[] = {
        TEST(any_changed_byte_is_found),
        TEST(any_changed_byte_of_the_file_is_found),
        TEST(missing_and_new_rows_are_found),
        TEST(what_differs_is_said),
        TEST(what_a_correction_gave_back_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
